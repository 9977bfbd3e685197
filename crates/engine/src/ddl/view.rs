//! CREATE, ALTER and CREATE OR ALTER VIEW.
//!
//! The query is compiled when the view is made, so that what it names must be there, and its columns are kept for the
//! catalog. Whoever uses the view binds its text anew.
//!
//! Messages: 4511 (a column without a name), 4506 (a name twice), 8158 and 8159 (too few or many names), 1033 (ORDER BY
//! without TOP), 4512 (SCHEMABINDING with names of one part), 4510 (WITH CHECK OPTION of a view that cannot be updated).

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::module::{NewModule, flags_of, keep_module};
use crate::ddl::procedure::in_module;
use crate::messages::message;
use crate::session::state::SessionState;
use thawdb_catalog::{ColumnDef, ColumnId, ObjectKind};
use thawdb_query::compile::{check_updatable, compile};
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ast::{Alias, CreateView, Ident, Query, QueryBody, Select, SelectItem, Span, Stmt, StmtKind, TableRef, TableRefKind};
use thawdb_types::SqlError;

/// CREATE [OR ALTER] VIEW, ALTER VIEW.
pub(crate) fn create_view(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, node: &CreateView) -> Result<(), Failure> {
    let name = &node.name.name.text;
    let mut flags = flags_of(interpreter.session, &node.options)?;
    flags.check_option = node.check_option;
    let columns = columns_of_query(interpreter.session, &node.query, name, &node.columns).map_err(|error| in_module(error, name))?;
    if flags.schema_bound {
        let full = format!("{}.{name}", node.name.schema.as_ref().map_or_else(|| "dbo".to_owned(), |schema| schema.text.clone()));
        crate::ddl::binding::check_names(interpreter.session, &full, &node.query).map_err(|error| in_module(error, name))?;
    }
    if node.check_option {
        check_updatable(&node.query, &CompileCx::new(interpreter.session, 0)).map_err(|error| in_module(error, name))?;
    }
    let mut new = NewModule::new(node.mode, &node.name, ObjectKind::View, flags);
    new.columns = columns;
    keep_module(interpreter, statement, new)
}

/// The columns a query has as a view or inline function.
pub(crate) fn columns_of_query(session: &SessionState, query: &Query, name: &str, columns: &[Ident]) -> Result<Vec<ColumnDef>, SqlError> {
    let around = Stmt { kind: StmtKind::Select(Box::new(select_from(query, name, columns))), span: query.span };
    let plan = compile(&around, &CompileCx::new(session, 0)).map_err(|error| match error.number {
        8155 => message(4511, &[&unnamed(&error)]).at_line(error.line),
        8156 => message(4506, &[&repeated(&error), &name]).at_line(error.line),
        _ => error,
    })?;
    Ok((1..).zip(&plan.columns).map(|(ordinal, column)| definition(ordinal, column)).collect())
}

/// `SELECT * FROM (query) AS name (columns)`: a view's rules are those of a derived table.
fn select_from(query: &Query, name: &str, columns: &[Ident]) -> Query {
    let span = query.span;
    let alias = Some(Alias { name: Ident::new(name), columns: columns.to_vec() });
    let derived = TableRef { kind: TableRefKind::Derived { query: Box::new(query.clone()), alias }, span };
    let select = Select {
        distinct: false,
        top: None,
        items: vec![SelectItem::Wildcard { table: None, span: Span::default() }],
        into: None,
        from: vec![derived],
        where_: None,
        group_by: None,
        having: None,
        windows: Vec::new(),
        span,
    };
    let body = QueryBody::Select(Box::new(select));
    Query { with: None, body, order_by: Vec::new(), offset: None, for_clause: None, hints: Vec::new(), span }
}

/// The position that 8155 tells.
fn unnamed(error: &SqlError) -> String {
    error.text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// The name that 8156 tells.
fn repeated(error: &SqlError) -> String {
    error.text.split('\'').nth(1).unwrap_or_default().to_owned()
}

/// A column of a query as the catalog keeps it.
pub(crate) fn definition(ordinal: i32, column: &OutputColumn) -> ColumnDef {
    ColumnDef {
        id: ColumnId(ordinal),
        name: column.name.clone(),
        sql_type: column.sql_type,
        nullable: column.nullable,
        identity: None,
        default: None,
        default_name: None,
        computed: None,
        user_type: None,
    }
}
