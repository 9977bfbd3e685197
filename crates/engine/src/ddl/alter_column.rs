//! ALTER TABLE ALTER COLUMN and DROP COLUMN.
//!
//! ```text
//! DROP COLUMN    nothing depends on it? (5074, 4922) ─► rows rewritten without it
//! ALTER COLUMN   nothing forbids it? ─► rows read the same under the new type ─ yes ─► NOT NULL? rows looked at ─► catalog alone
//!                                                                              └ no ─► rows rewritten by the rules of INSERT
//! ```
//!
//! Messages: 4922, 4923, 4924, 5074, 515 for a NULL in the way of NOT NULL, 2749; what conversion raises.

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::rewrite::{Source, quoted, rewrite};
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::ddl::{catalog_error, change_catalog};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, ConstraintDef, ConstraintKind, IndexDef, StatisticsOrigin, TableDef};
use thawdb_query::compile::{bind_default, bind_row_condition, compile};
use thawdb_query::exec;
use thawdb_tsql::ast::{AlterColumn, Ident};
use thawdb_tsql::{ParseOptions, parse_batch, parse_expr};
use thawdb_types::{Collation, MaxLength, SqlError, SqlType, TypeUse};

/// DROP COLUMN.
pub(crate) fn drop_column(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    name: &Ident,
    if_exists: bool,
) -> Result<(), Failure> {
    const STATEMENT: &str = "ALTER TABLE DROP COLUMN";
    let (line, name) = (name.span.line, &name.text);
    let Some(position) = table.column_index(name) else {
        return if if_exists { Ok(()) } else { Err(message(4924, &[&STATEMENT, name, &table.name]).into()) };
    };
    let shown = table.columns[position].name.clone();
    let mut altered = table.clone();
    altered.columns.remove(position);
    let dependents = dependents(interpreter, open, table, position, &altered)?;
    refuse_dependents(interpreter, &dependents, STATEMENT, (&shown, line))?;
    if altered.columns.is_empty() {
        return Err(message(4923, &[&shown, &table.name]).into());
    }
    for index in altered.every_index_mut() {
        let places = index.keys.iter_mut().map(|key| &mut key.column_index).chain(index.included.iter_mut());
        places.filter(|place| **place > position).for_each(|place| *place -= 1);
        if let Some(filter) = &mut index.filter {
            let conjuncts = Arc::make_mut(filter).conjuncts.iter_mut().map(|conjunct| &mut conjunct.column_index);
            conjuncts.filter(|place| **place > position).for_each(|place| *place -= 1);
        }
    }
    forget_automatic(open, table, position);
    rewrite(interpreter, open, table, altered, |_| Source::Kept).map(drop)
}

/// Forgets what was made by itself about a column: what is still wanted after the change is made again.
fn forget_automatic(open: &OpenDatabase, table: &TableDef, position: usize) {
    let id = table.columns[position].id.0;
    open.statistics.purge(open, table.id, &|one| one.origin == StatisticsOrigin::Automatic && one.columns.contains(&id));
}

/// Whether an index's entries hold the column.
fn holds(index: &IndexDef, position: usize) -> bool {
    index.keys.iter().any(|key| key.column_index == position) || index.included.contains(&position)
}

/// Whether an index's filter speaks of the column.
fn filters(index: &IndexDef, position: usize) -> bool {
    index.filter.as_ref().is_some_and(|filter| filter.conjuncts.iter().any(|conjunct| conjunct.column_index == position))
}

/// What speaks of a column: the kind messages call it, and its name.
struct Dependent {
    word: &'static str,
    name: String,
    is_default: bool,
    is_check: bool,
}

fn dependents(
    interpreter: &Interpreter<'_, '_>,
    open: &OpenDatabase,
    table: &TableDef,
    position: usize,
    without: &TableDef,
) -> Result<Vec<Dependent>, SqlError> {
    let session = &*interpreter.session;
    let definitions = session.definitions(open.id).ok_or_else(|| internal("an open database has a catalog".to_owned()))?;
    let id = table.columns[position].id;
    let mut found = Vec::new();
    for index in table.every_index() {
        let uses = holds(index, position) || filters(index, position);
        if let Some(name) = index.name.clone().filter(|_| uses) {
            let word = if index.primary_key || index.unique_constraint { "object" } else { "index" };
            found.push(Dependent { word, name, is_default: false, is_check: false });
        }
    }
    for one in crate::statistics::all_of(open, table) {
        if one.origin == StatisticsOrigin::User && one.columns.contains(&id.0) {
            found.push(Dependent { word: "statistics", name: one.name, is_default: false, is_check: false });
        }
    }
    for name in crate::ddl::computed::users_of(session, table, position)? {
        found.push(Dependent { word: "column", name, is_default: false, is_check: false });
    }
    let without = Arc::new(without.clone());
    for constraint in definitions.constraints.values() {
        let own = constraint.table == table.id;
        let uses = match (&constraint.kind, &constraint.foreign_key) {
            (ConstraintKind::Default(column), _) => own && *column == id,
            (ConstraintKind::Check, _) => own && !binds(session, constraint, &without),
            (_, Some(key)) => (own && key.columns.contains(&id)) || (key.referenced == table.id && key.referenced_columns.contains(&id)),
            _ => false,
        };
        if uses {
            let is_default = matches!(constraint.kind, ConstraintKind::Default(_));
            let is_check = constraint.kind == ConstraintKind::Check;
            found.push(Dependent { word: "object", name: constraint.name.clone(), is_default, is_check });
        }
    }
    for name in crate::ddl::binding::users_of_column(session, open, table.id, id.0) {
        found.push(Dependent { word: "object", name, is_default: false, is_check: false });
    }
    Ok(found)
}

/// Whether a CHECK or a filtered index of the table means nothing without the column at `position`.
pub(crate) fn checks_without(session: &SessionState, open: &OpenDatabase, table: &TableDef, position: usize) -> bool {
    if table.every_index().any(|index| filters(index, position)) {
        return true;
    }
    if crate::ddl::computed::users_of(session, table, position).map_or(true, |users| !users.is_empty()) {
        return true;
    }
    let mut without = table.clone();
    without.columns.remove(position);
    let without = Arc::new(without);
    let Some(definitions) = session.definitions(open.id) else { return false };
    definitions.constraints_of(table.id).any(|constraint| !binds(session, constraint, &without))
}

/// Whether a CHECK still means something over `table`.
fn binds(session: &SessionState, constraint: &ConstraintDef, table: &Arc<TableDef>) -> bool {
    let Some(check) = &constraint.check else { return true };
    let Ok(condition) = parse_expr(&check.definition, &ParseOptions::default()) else { return false };
    bind_row_condition(&condition, table, &CompileCx::new(session, 0)).is_ok()
}

fn refuse_dependents(
    interpreter: &mut Interpreter<'_, '_>,
    dependents: &[Dependent],
    statement: &str,
    (column, line): (&str, u32),
) -> Result<(), Failure> {
    // A TRY takes the last error alone.
    for dependent in dependents.iter().filter(|_| !interpreter.guarded) {
        interpreter.out.message(&message(5074, &[&dependent.word, &dependent.name, &"column", &column]).at_line(line));
    }
    if dependents.is_empty() { Ok(()) } else { Err(message(4922, &[&statement, &column]).into()) }
}

/// ALTER COLUMN.
pub(crate) fn alter_column(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    node: &AlterColumn,
) -> Result<(), Failure> {
    const STATEMENT: &str = "ALTER TABLE ALTER COLUMN";
    if node.sparse || !node.options.is_empty() {
        return Err(unsupported_option(if node.sparse { "SPARSE" } else { "ALTER COLUMN ... WITH" }).into());
    }
    let name = &node.name.text;
    let position = table.column_index(name).ok_or_else(|| message(4924, &[&STATEMENT, name, &table.name]))?;
    let old = &table.columns[position];
    if old.computed.is_some() {
        return Err(message(4928, &[&old.name, &"COMPUTED"]).into());
    }
    if old.sql_type == SqlType::RowVersion {
        return Err(message(4928, &[&old.name, &"timestamp"]).into());
    }
    let new = new_definition(interpreter, old, node)?;
    let mut altered = table.clone();
    altered.columns[position] = new.clone();
    let mut without = table.clone();
    without.columns.remove(position);
    let mut found = dependents(interpreter, open, table, position, &without)?;
    let wider = same_family(&old.sql_type, &new.sql_type) && !narrower(&old.sql_type, &new.sql_type);
    let key = |dependent: &Dependent| table.every_index().any(|index| index.primary_key && index.name.as_ref() == Some(&dependent.name));
    let same_type = old.sql_type == new.sql_type;
    found.retain(|dependent| match () {
        // Constants of a filter are kept in the column's type.
        () if table.every_index().any(|index| index.name.as_ref() == Some(&dependent.name) && filters(index, position)) => !same_type,
        () if dependent.is_default => old.sql_type.base_name() != new.sql_type.base_name(),
        () if dependent.is_check => !(wider && is_variable(&new.sql_type)),
        // An index bears a longer value of its type and another nullability; a primary key neither.
        () => !(wider && is_variable(&new.sql_type) || same_type) || (key(dependent) && (new.nullable || !same_type)),
    });
    refuse_dependents(interpreter, &found, STATEMENT, (&old.name, node.name.span.line))?;
    if let Some(default) = new.default.as_ref().filter(|_| !same_type) {
        check_default(interpreter, default, &new)?;
    }
    let indexed = table.indexes.iter().any(|index| holds(index, position));
    if !same_type {
        forget_automatic(open, table, position);
    }
    if wider && is_variable(&new.sql_type) || same_type {
        if old.nullable && !new.nullable {
            refuse_nulls(interpreter, open, table, old)?;
        }
        if !indexed {
            altered.modified = interpreter.session.engine.now_datetime();
            return change_catalog(interpreter.session, open, |catalog, part| {
                catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))
            })
            .map_err(Failure::run);
        }
    }
    rewrite(interpreter, open, table, altered, |_| Source::Kept).map(drop)
}

fn new_definition(interpreter: &Interpreter<'_, '_>, old: &ColumnDef, node: &AlterColumn) -> Result<ColumnDef, SqlError> {
    let line = node.name.span.line;
    let collation = match &node.collation {
        None => Collation::DEFAULT,
        Some(collation) => Collation::by_name(&collation.text).ok_or_else(|| message(448, &[&collation.text]).at_line(line))?,
    };
    let at = TypeUse::Column { ordinal: old.id.0, name: &old.name };
    let (sql_type, user_type) = match meaning(interpreter.session, &node.data_type, at, collation)? {
        TypeMeaning::Value { sql_type, user } => (sql_type, user.map(|(id, _)| id)),
        TypeMeaning::Table(_) => return Err(message(350, &[&old.name]).at_line(line)),
    };
    if sql_type == SqlType::RowVersion {
        return Err(unsupported_option(format!("{} column", sql_type.base_name())).at_line(line));
    }
    let whole = sql_type.is_integer() || matches!(sql_type, SqlType::Decimal { scale: 0, .. });
    if old.identity.is_some() && (!whole || node.nullable == Some(true)) {
        return Err(message(2749, &[&old.name]));
    }
    let nullable = node.nullable.unwrap_or(interpreter.session.options.ansi_null_default_on && old.identity.is_none());
    Ok(ColumnDef { sql_type, nullable, user_type, ..old.clone() })
}

/// Whether both are the same type but for its length.
fn same_family(old: &SqlType, new: &SqlType) -> bool {
    match (old, new) {
        (SqlType::VarChar { collation: a, .. }, SqlType::VarChar { collation: b, .. })
        | (SqlType::NVarChar { collation: a, .. }, SqlType::NVarChar { collation: b, .. }) => a == b,
        (SqlType::VarBinary { .. }, SqlType::VarBinary { .. }) => true,
        _ => old == new,
    }
}

/// Whether a value's bytes are the same whatever length is declared. The max forms may lie apart from the row: not they.
fn is_variable(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::VarChar { length, .. } | SqlType::NVarChar { length, .. } | SqlType::VarBinary { length, .. } => *length != MaxLength::Max,
        _ => false,
    }
}

fn narrower(old: &SqlType, new: &SqlType) -> bool {
    match (old.length(), new.length()) {
        (Some(old), Some(new)) => new < old,
        (None, Some(_)) => true,
        _ => false,
    }
}

fn check_default(interpreter: &Interpreter<'_, '_>, default: &str, column: &ColumnDef) -> Result<(), SqlError> {
    let expr = parse_expr(default, &ParseOptions::default());
    let expr = expr.map_err(|_| internal(format!("the default of {} no longer parses", column.name)))?;
    bind_default(&expr, column, &CompileCx::new(interpreter.session, 0)).map(drop)
}

/// 515 if a row has NULL in the column.
fn refuse_nulls(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    column: &ColumnDef,
) -> Result<(), SqlError> {
    let from = format!("{}.{}.{}", quoted(&open.name()), quoted(&table.schema_name), quoted(&table.name));
    let text = format!("SELECT TOP (1) 1 FROM {from} WHERE {} IS NULL", quoted(&column.name));
    let batch = parse_batch(&text, &ParseOptions { quoted_identifier: true });
    let statement = batch.statements.first().ok_or_else(|| internal(format!("a text of ours does not parse: {text}")))?;
    let session = &mut *interpreter.session;
    let plan = compile(statement, &CompileCx::new(session, 0))?;
    let mut execution = exec::run(&plan.node, session)?;
    match execution.next(session)? {
        None => Ok(()),
        Some(_) => {
            let shown = format!("{}.{}.{}", open.name(), table.schema_name, table.name);
            Err(message(515, &[&column.name, &shown, &"UPDATE"]))
        }
    }
}
