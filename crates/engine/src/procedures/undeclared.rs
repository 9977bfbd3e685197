//! sp_describe_undeclared_parameters: what the parameters of a text that @params does not declare should be declared as.
//!
//! ```text
//! text, parameters ─► parsed ─► each statement bound, with undeclared names let through ─► a row for each of these names
//!                               EXEC of a procedure: its parameters' types
//! ```
//! Rows come in the order in which the names first stand in the text. Nothing is run, locked or changed.
//!
//! Failure: errors of parsing and binding, and then 11501; 11508 for a name that stands there twice; 11502 and 11503 where no
//! type follows.

use crate::api::sink::StatementKind;
use crate::batch::arguments::Argument;
use crate::batch::compile_cx::CompileCx;
use crate::batch::execute::{declare_all, parse_declarations};
use crate::batch::failure::Failure;
use crate::batch::module::{Module, find_procedure};
use crate::batch::outbox::Outbox;
use crate::batch::program::{Op, Program};
use crate::ddl::names::shown;
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::messages::message;
use crate::procedures::describe::{on_the_wire, within_scope};
use crate::procedures::{Returned, parameter};
use crate::session::state::SessionState;
use thawdb_query::compile::undeclared_types;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ParseOptions;
use thawdb_tsql::ast::{Execute, ExecuteModule, ExprKind, StmtKind};
use thawdb_tsql::token::TokenKind;
use thawdb_types::SqlType::{Bit, Int, SmallInt, TinyInt};
use thawdb_types::{Collation, Scalar, SqlError, SqlType, TypeUse};

const NAME: &str = "sp_describe_undeclared_parameters";
const PARAMETERS: [&str; 2] = ["@tsql", "@params"];
const SYSNAME: SqlType = SqlType::SYSNAME;
/// The columns of the answer, and whether each can be NULL.
const COLUMNS: [(&str, SqlType, bool); 24] = [
    ("parameter_ordinal", Int, false),
    ("name", SYSNAME, false),
    ("suggested_system_type_id", Int, false),
    ("suggested_system_type_name", SqlType::nvarchar(256), true),
    ("suggested_max_length", SmallInt, false),
    ("suggested_precision", TinyInt, false),
    ("suggested_scale", TinyInt, false),
    ("suggested_user_type_id", Int, true),
    ("suggested_user_type_database", SYSNAME, true),
    ("suggested_user_type_schema", SYSNAME, true),
    ("suggested_user_type_name", SYSNAME, true),
    ("suggested_assembly_qualified_type_name", SqlType::nvarchar(4000), true),
    ("suggested_xml_collection_id", Int, true),
    ("suggested_xml_collection_database", SYSNAME, true),
    ("suggested_xml_collection_schema", SYSNAME, true),
    ("suggested_xml_collection_name", SYSNAME, true),
    ("suggested_is_xml_document", Bit, false),
    ("suggested_is_case_sensitive", Bit, false),
    ("suggested_is_fixed_length_clr_type", Bit, false),
    ("suggested_is_input", Bit, false),
    ("suggested_is_output", Bit, false),
    ("formal_parameter_name", SYSNAME, true),
    ("suggested_tds_type_id", Int, false),
    ("suggested_tds_length", Int, false),
];

/// A parameter without a declaration, and what it should be declared as.
struct Suggested {
    name: String,
    sql_type: SqlType,
    output: bool,
    formal: Option<String>,
}

/// Calls it.
pub(crate) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    let mut given: [Scalar; 2] = std::array::from_fn(|_| Scalar::Null);
    for (at, argument) in arguments.iter().enumerate() {
        given[parameter::place(NAME, &PARAMETERS, at, argument)?] = argument.value.clone();
    }
    let text = given[0].as_text().ok_or_else(|| message(201, &[&NAME, &PARAMETERS[0]]))?;
    let declared = parse_declarations(session, given[1].as_text().unwrap_or_default())?;
    let suggested = within_scope(session, &declared, |session| of_text(session, text)).map_err(|error| {
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
    for (ordinal, suggested) in (1..).zip(&suggested) {
        out.row(&columns, &row(ordinal, suggested))?;
    }
    out.done(StatementKind::Select, Some(suggested.len() as u64), false);
    Ok(Returned::default())
}

fn of_text(session: &mut SessionState, text: &str) -> Result<Vec<Suggested>, SqlError> {
    let options = ParseOptions { quoted_identifier: session.options.quoted_identifier };
    let parsed = session.engine.plans.texts.batch(text, &options);
    if let Some(error) = parsed.batch.errors.first() {
        return Err(crate::batch::execute::syntax_error(error));
    }
    let program = Program::new(&parsed.batch.statements)?;
    declare_all(session, &program)?;
    let mut found = Vec::new();
    let mut formal_names = Vec::new();
    let cx = CompileCx::letting_undeclared(session);
    let names = || cx.undeclared.as_ref().map_or_else(Vec::new, |names| names.borrow().clone());
    for step in &program.steps {
        let Op::Statement(statement) = step.op else { continue };
        match &statement.kind {
            StmtKind::Select(_) | StmtKind::Insert(_) | StmtKind::Update(_) | StmtKind::Delete(_) | StmtKind::Merge(_) => {
                for (number, sql_type) in undeclared_types(statement, &cx, names)? {
                    found.push(Suggested { name: names()[number].clone(), sql_type, output: false, formal: None });
                }
            }
            StmtKind::Execute(node) => {
                formal_names.extend(node.arguments.iter().filter_map(|argument| argument.parameter.as_ref()).map(|p| p.span.start));
                found.extend(of_call(session, node)?);
            }
            _ => {}
        }
    }
    in_order(session, text, &options, &formal_names, found)
}

/// The undeclared names among the arguments of a call, as the procedure's parameters.
fn of_call(session: &SessionState, node: &Execute) -> Result<Vec<Suggested>, SqlError> {
    let ExecuteModule::Name(name) = &node.module else { return Ok(Vec::new()) };
    let name = shown(name);
    let asked = |at: usize| match &node.arguments[at].value.kind {
        ExprKind::Variable(variable) if session.frame().position(&variable.name).is_none() => Some(variable.name.clone()),
        _ => None,
    };
    if (0..node.arguments.len()).all(|at| asked(at).is_none()) || crate::procedures::find(&name).is_some() {
        return Ok(Vec::new());
    }
    let found = find_procedure(session, &name)?.ok_or_else(|| message(2812, &[&name]).with_state(62))?;
    session.may_call(&found)?;
    let module = Module::of(&found.object);
    let parameters = &module.procedure()?.parameters;
    let mut suggested = Vec::new();
    for (at, argument) in node.arguments.iter().enumerate() {
        let Some(name) = asked(at) else { continue };
        let parameter = match &argument.parameter {
            Some(named) => parameters.iter().find(|parameter| parameter.variable.name.eq_ignore_ascii_case(&named.name)),
            None => parameters.get(at),
        };
        let parameter = parameter.ok_or_else(|| message(8144, &[&found.object.name]))?;
        let formal = &parameter.variable.name;
        let of = TypeUse::Parameter { ordinal: i32::try_from(at).unwrap_or(0) + 1, name: formal };
        let TypeMeaning::Value { sql_type, .. } = meaning(session, &parameter.data_type, of, Collation::DEFAULT)? else {
            return Err(message(11_502, &[&name]));
        };
        suggested.push(Suggested { name, sql_type, output: argument.output, formal: Some(formal.clone()) });
    }
    Ok(suggested)
}

/// What was found, by the places of the names in the text. 11508 for one that stands there twice, 11502 for one not found.
fn in_order(
    session: &SessionState,
    text: &str,
    options: &ParseOptions,
    formal_names: &[u32],
    mut found: Vec<Suggested>,
) -> Result<Vec<Suggested>, SqlError> {
    let (tokens, _) = thawdb_tsql::lexer::lex(text, options);
    let mut ordered: Vec<Suggested> = Vec::new();
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Variable && !formal_names.contains(&token.start)) {
        let name = &text[token.start as usize..token.end as usize];
        let frame = session.frame();
        if frame.position(name).is_some() || frame.table_variables.contains_key(&name.to_lowercase()) {
            continue;
        }
        let same = |known: &Suggested| known.name.eq_ignore_ascii_case(name);
        if ordered.iter().any(same) {
            return Err(message(11_508, &[&name]).at_line(token.line));
        }
        let at = found.iter().position(same).ok_or_else(|| message(11_502, &[&name]).at_line(token.line))?;
        ordered.push(found.swap_remove(at));
    }
    Ok(ordered)
}

fn row(ordinal: i32, suggested: &Suggested) -> Vec<Scalar> {
    let sql_type = &suggested.sql_type;
    let text = |text: &str| Scalar::Text(text.to_owned());
    let mut row = vec![
        Scalar::Int(ordinal),
        text(&suggested.name),
        Scalar::Int(i32::from(sql_type.system_type_id())),
        text(&sql_type.name()),
        Scalar::SmallInt(sql_type.max_length()),
        Scalar::TinyInt(sql_type.precision()),
        Scalar::TinyInt(sql_type.scale()),
    ];
    row.extend(std::iter::repeat_n(Scalar::Null, 9));
    let case_sensitive = sql_type.collation().is_some_and(|collation| collation.info().case_sensitive);
    row.extend([false, case_sensitive, false, true, suggested.output].map(Scalar::Bit));
    row.push(suggested.formal.as_deref().map_or(Scalar::Null, text));
    let (id, length) = on_the_wire(sql_type, true);
    row.extend([Scalar::Int(id), Scalar::Int(length)]);
    row
}
