//! sp_describe_first_result_set: the columns of the first result that a text would give, without running it.
//!
//! ```text
//! text, parameters ─► parsed ─► statement by statement: the first that gives rows is compiled ─► a row for each column
//!                                                       EXEC of a procedure is looked into, 32 deep
//! ```
//! Failure: errors of parsing and compiling are told, and then 11501; 11513 for a text that is run by EXEC, 11525 for a
//! temporary table that the text itself makes. No result at all is no row and no error. Nothing is run, locked or changed.
//!
//! Not told: the source of a column (`@browse_information_mode` 1 and 2), which no driver we know asks for.

use crate::api::sink::StatementKind;
use crate::batch::arguments::Argument;
use crate::batch::compile_cx::CompileCx;
use crate::batch::execute::{bind_table, declare_all, parse_declarations};
use crate::batch::failure::Failure;
use crate::batch::interpreter::NESTING_MAX;
use crate::batch::module::{Module, find_procedure, statements_of};
use crate::batch::outbox::Outbox;
use crate::batch::program::{Op, Program};
use crate::ddl::names::shown;
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::messages::message;
use crate::procedures::{Returned, parameter};
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ParseOptions;
use thawdb_tsql::ast::{ExecuteModule, Parameter, Stmt, StmtKind};
use thawdb_types::SqlType::{Bit, Int, SmallInt, TinyInt};
use thawdb_types::{Collation, Scalar, SqlError, SqlType, TypeUse};

const NAME: &str = "sp_describe_first_result_set";
const PARAMETERS: [&str; 3] = ["@tsql", "@params", "@browse_information_mode"];
const SYSNAME: SqlType = SqlType::SYSNAME;
/// The columns of the answer, and whether each can be NULL.
const COLUMNS: [(&str, SqlType, bool); 39] = [
    ("is_hidden", Bit, false),
    ("column_ordinal", Int, false),
    ("name", SYSNAME, true),
    ("is_nullable", Bit, false),
    ("system_type_id", Int, false),
    ("system_type_name", SqlType::nvarchar(256), true),
    ("max_length", SmallInt, false),
    ("precision", TinyInt, false),
    ("scale", TinyInt, false),
    ("collation_name", SYSNAME, true),
    ("user_type_id", Int, true),
    ("user_type_database", SYSNAME, true),
    ("user_type_schema", SYSNAME, true),
    ("user_type_name", SYSNAME, true),
    ("assembly_qualified_type_name", SqlType::nvarchar(4000), true),
    ("xml_collection_id", Int, true),
    ("xml_collection_database", SYSNAME, true),
    ("xml_collection_schema", SYSNAME, true),
    ("xml_collection_name", SYSNAME, true),
    ("is_xml_document", Bit, false),
    ("is_case_sensitive", Bit, false),
    ("is_fixed_length_clr_type", Bit, false),
    ("source_server", SYSNAME, true),
    ("source_database", SYSNAME, true),
    ("source_schema", SYSNAME, true),
    ("source_table", SYSNAME, true),
    ("source_column", SYSNAME, true),
    ("is_identity_column", Bit, true),
    ("is_part_of_unique_key", Bit, true),
    ("is_updateable", Bit, true),
    ("is_computed_column", Bit, true),
    ("is_sparse_column_set", Bit, true),
    ("ordinal_in_order_by_list", SmallInt, true),
    ("order_by_is_descending", SmallInt, true),
    ("order_by_list_length", SmallInt, true),
    ("tds_type_id", Int, false),
    ("tds_length", Int, false),
    ("tds_collation_id", Int, true),
    ("tds_collation_sort_id", TinyInt, true),
];

/// Calls it.
pub(crate) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    let mut given: [Scalar; 3] = std::array::from_fn(|_| Scalar::Null);
    for (at, argument) in arguments.iter().enumerate() {
        given[parameter::place(NAME, &PARAMETERS, at, argument)?] = argument.value.clone();
    }
    let text = given[0].as_text().ok_or_else(|| message(201, &[&NAME, &PARAMETERS[0]]))?;
    let declared = parse_declarations(session, given[1].as_text().unwrap_or_default())?;
    let described = within_scope(session, &declared, |session| of_text(session, text)).map_err(|error| {
        out.message(&error);
        Failure::run(message(11_501, &[]))
    })?;
    let column = |(name, sql_type, nullable): &(&str, SqlType, bool)| OutputColumn {
        name: (*name).to_owned(),
        sql_type: *sql_type,
        nullable: *nullable,
        identity: false,
    };
    let columns: Vec<OutputColumn> = COLUMNS.iter().map(column).collect();
    out.columns(&columns)?;
    let described = described.unwrap_or_default();
    for (ordinal, column) in (1..).zip(&described) {
        out.row(&columns, &row(ordinal, column))?;
    }
    out.done(StatementKind::Select, Some(described.len() as u64), false);
    Ok(Returned::default())
}

type Described = Result<Option<Vec<OutputColumn>>, SqlError>;

/// Does `work` in a scope with parameters that have no values.
pub(super) fn within_scope<T>(
    session: &mut SessionState,
    declared: &[Parameter],
    work: impl FnOnce(&mut SessionState) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let mut frame = Frame::default();
    for (ordinal, parameter) in (1..).zip(declared) {
        let name = &parameter.variable.name;
        match meaning(session, &parameter.data_type, TypeUse::Parameter { ordinal, name }, Collation::DEFAULT)? {
            TypeMeaning::Value { sql_type, .. } => {
                frame.declare(name, sql_type, 0);
            }
            TypeMeaning::Table(of) => bind_table(session, &mut frame, name, &of, None)?,
        }
    }
    session.frames.push(frame);
    let described = work(session);
    let ended = crate::ddl::temporary::end_scope(session);
    session.frames.pop();
    described.and_then(|described| ended.map(|()| described))
}

fn of_text(session: &mut SessionState, text: &str) -> Described {
    let options = ParseOptions { quoted_identifier: session.options.quoted_identifier };
    let parsed = session.engine.plans.texts.batch(text, &options);
    if let Some(error) = parsed.batch.errors.first() {
        return Err(crate::batch::execute::syntax_error(error));
    }
    of_statements(session, &parsed.batch.statements, 1)
}

/// The columns of the first statement that gives rows.
fn of_statements(session: &mut SessionState, statements: &[Stmt], depth: usize) -> Described {
    let program = Program::new(statements)?;
    declare_all(session, &program)?;
    for (at, step) in program.steps.iter().enumerate() {
        let Op::Statement(statement) = step.op else { continue };
        let columns = match &statement.kind {
            StmtKind::Select(_) | StmtKind::Insert(_) | StmtKind::Update(_) | StmtKind::Delete(_) | StmtKind::Merge(_) => {
                let compiled = thawdb_query::compile::compile(statement, &CompileCx::new(session, at))?;
                session.may_run(&compiled)?;
                compiled.columns
            }
            StmtKind::Execute(node) => match &node.module {
                ExecuteModule::Name(name) => of_procedure(session, &shown(name), depth)?.unwrap_or_default(),
                ExecuteModule::Variable(variable) => return Err(message(11_513, &[&"EXECUTE", &variable.name])),
            },
            StmtKind::ExecuteString(_) => return Err(message(11_513, &[&"EXECUTE", &""])),
            _ => continue,
        };
        if !columns.is_empty() {
            return Ok(Some(columns));
        }
    }
    Ok(None)
}

/// The columns of the first result of a procedure; those of the system's tell none.
fn of_procedure(session: &mut SessionState, name: &str, depth: usize) -> Described {
    if depth >= NESTING_MAX || crate::procedures::find(name).is_some() {
        return Ok(None);
    }
    let found = find_procedure(session, name)?.ok_or_else(|| message(2812, &[&name]).with_state(62))?;
    session.may_call(&found)?;
    let module = Module::of(&found.object);
    let definition = module.procedure()?;
    let statements = statements_of(&definition.body);
    within_scope(session, &definition.parameters, |session| of_statements(session, statements, depth + 1))
}

fn row(ordinal: i32, column: &OutputColumn) -> Vec<Scalar> {
    let sql_type = &column.sql_type;
    let collation = sql_type.collation();
    let text = |text: &str| Scalar::Text(text.to_owned());
    let no = Scalar::Bit(false);
    let mut row = vec![
        no.clone(),
        Scalar::Int(ordinal),
        if column.name.is_empty() { Scalar::Null } else { text(&column.name) },
        Scalar::Bit(column.nullable),
        Scalar::Int(i32::from(sql_type.system_type_id())),
        text(&sql_type.name()),
        Scalar::SmallInt(sql_type.max_length()),
        Scalar::TinyInt(sql_type.precision()),
        Scalar::TinyInt(sql_type.scale()),
        collation.map_or(Scalar::Null, |collation| text(collation.name())),
    ];
    row.extend(std::iter::repeat_n(Scalar::Null, 9));
    row.extend([no.clone(), Scalar::Bit(collation.is_some_and(|c| c.info().case_sensitive)), no.clone()]);
    row.extend(std::iter::repeat_n(Scalar::Null, 5));
    row.extend([Scalar::Bit(column.identity), Scalar::Null, Scalar::Bit(!column.identity), no.clone(), no]);
    row.extend(std::iter::repeat_n(Scalar::Null, 3));
    let (id, length) = on_the_wire(sql_type, column.nullable);
    row.extend([Scalar::Int(id), Scalar::Int(length)]);
    let bytes = collation.map(Collation::tds_bytes);
    row.push(bytes.map_or(Scalar::Null, |b| Scalar::Int(i32::from_le_bytes([b[0], b[1], b[2], b[3]]))));
    row.push(bytes.map_or(Scalar::Null, |b| Scalar::TinyInt(b[4])));
    row
}

/// Token and length of a type as TDS has it (MS-TDS 2.2.5.4).
pub(super) fn on_the_wire(sql_type: &SqlType, nullable: bool) -> (i32, i32) {
    let fixed = |with_null: i32, without: i32| if nullable { with_null } else { without };
    let length = i32::from(sql_type.max_length());
    let id = match sql_type {
        SqlType::Bit => fixed(104, 50),
        SqlType::TinyInt => fixed(38, 48),
        SqlType::SmallInt => fixed(38, 52),
        SqlType::Int => fixed(38, 56),
        SqlType::BigInt => fixed(38, 127),
        SqlType::Real => fixed(109, 59),
        SqlType::Float => fixed(109, 62),
        SqlType::Money => fixed(110, 60),
        SqlType::SmallMoney => fixed(110, 122),
        SqlType::DateTime => fixed(111, 61),
        SqlType::SmallDateTime => fixed(111, 58),
        SqlType::Decimal { numeric: true, .. } => return (108, 17),
        SqlType::Decimal { .. } => return (106, 17),
        SqlType::UniqueIdentifier => 36,
        SqlType::Date => 40,
        SqlType::Time { .. } => 41,
        SqlType::DateTime2 { .. } => 42,
        SqlType::DateTimeOffset { .. } => 43,
        SqlType::Char { .. } => 175,
        SqlType::VarChar { .. } => 167,
        SqlType::NChar { .. } => 239,
        SqlType::NVarChar { .. } => 231,
        SqlType::Binary { .. } | SqlType::RowVersion => 173,
        SqlType::VarBinary { .. } => 165,
        SqlType::Text { .. } => return (35, i32::MAX),
        SqlType::NText { .. } => return (99, i32::MAX - 1),
        SqlType::Image => return (34, i32::MAX),
        SqlType::Xml => return (241, 0xFFFF),
        SqlType::SqlVariant => return (98, 8009),
        SqlType::HierarchyId => 240,
    };
    (id, if length == -1 { 0xFFFF } else { length })
}
