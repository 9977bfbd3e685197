//! Modules at work: procedures kept in the catalog, from their text to a frame and back.
//!
//! ```text
//! EXEC p, RPC p ─► find ─► ObjectDef ─ parsed once (Module) ─► parameters into a Frame ─► run_scope over its body
//! ```
//!
//! 1. A module's text is parsed once for each definition, under the options it was made with (`Module::of`).
//! 2. A module runs in the database it lives in and under its own QUOTED_IDENTIFIER and ANSI_NULLS; what it sets, and the
//!    database, go back with its end (`execute::run_scope`).
//!
//! Names inside are resolved when the statement is reached: a table that does not exist yet is 208 then.

use crate::batch::arguments::Argument;
use crate::batch::execute::{Caller, Declared, Source, bind_declared, run_scope};
use crate::batch::failure::Failure;
use crate::batch::function::TableReturn;
use crate::batch::kept::KeptRuns;
use crate::batch::outbox::Outbox;
use crate::ddl::names::{LAST_SCHEMA, database_of};
use crate::instance::MASTER_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::procedures::Returned;
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::{ObjectDef, ObjectKind};
use thawdb_tsql::ast::{CreateFunction, CreateProcedure, CreateTrigger, CreateView, ModuleBody, ObjectName, Stmt, StmtKind};
use thawdb_tsql::{Batch, ParseOptions, parse_batch};
use thawdb_types::SqlError;

/// A definition's tree.
#[derive(Debug)]
pub(crate) struct Module {
    batch: Batch,
    returns: Option<TableReturn>,
    kept: KeptRuns,
}

impl Module {
    /// The tree of a module; made at the first call for a definition.
    pub(crate) fn of(object: &ObjectDef) -> Arc<Self> {
        let parse = || -> Arc<dyn std::any::Any + Send + Sync> {
            let options = ParseOptions { quoted_identifier: object.flags.quoted_identifier };
            let batch = parse_batch(&object.definition, &options);
            let returns = match batch.statements.first().map(|statement| &statement.kind) {
                Some(StmtKind::CreateFunction(node)) => TableReturn::of(node),
                _ => None,
            };
            Arc::new(Self { batch, returns, kept: KeptRuns::default() })
        };
        let parsed = object.parsed.get_or_init(parse).clone();
        parsed.downcast().expect("only this function fills the slot of a module")
    }

    fn statement(&self) -> Result<&StmtKind, SqlError> {
        let first = self.batch.statements.first().map(|statement| &statement.kind);
        first.ok_or_else(|| internal("a module's text no longer parses".to_owned()))
    }

    /// The procedure it is.
    pub(crate) fn procedure(&self) -> Result<&CreateProcedure, SqlError> {
        match self.statement()? {
            StmtKind::CreateProcedure(node) => Ok(node),
            other => Err(internal(format!("a procedure was expected, not {other:?}"))),
        }
    }

    /// The view it is.
    pub(crate) fn view(&self) -> Result<&CreateView, SqlError> {
        match self.statement()? {
            StmtKind::CreateView(node) => Ok(node),
            other => Err(internal(format!("a view was expected, not {other:?}"))),
        }
    }

    /// The function it is.
    pub(crate) fn function(&self) -> Result<&CreateFunction, SqlError> {
        match self.statement()? {
            StmtKind::CreateFunction(node) => Ok(node),
            other => Err(internal(format!("a function was expected, not {other:?}"))),
        }
    }

    /// What its runs have led to.
    pub(crate) fn kept(&self) -> &KeptRuns {
        &self.kept
    }

    /// The table variable it returns, if it is a function with one.
    pub(crate) fn returns(&self) -> Option<&TableReturn> {
        self.returns.as_ref()
    }

    /// The trigger it is.
    pub(crate) fn trigger(&self) -> Result<&CreateTrigger, SqlError> {
        match self.statement()? {
            StmtKind::CreateTrigger(node) => Ok(node),
            other => Err(internal(format!("a trigger was expected, not {other:?}"))),
        }
    }
}

/// The statements of a body that is T-SQL.
pub(crate) fn statements_of(body: &ModuleBody) -> &[Stmt] {
    match body {
        ModuleBody::Statements(statements) | ModuleBody::Atomic { statements, .. } => statements,
        ModuleBody::External(_) => &[],
    }
}

/// A procedure found by name, and the database it runs in.
#[derive(Clone)]
pub(crate) struct FoundModule {
    pub(crate) object: Arc<ObjectDef>,
    pub(crate) database: Arc<OpenDatabase>,
}

/// The object a name means, synonyms followed: in its database; one called `sp_...` also in master.
pub(crate) fn find_object(session: &SessionState, name: &ObjectName) -> Result<Option<FoundModule>, SqlError> {
    let mut name = name.clone();
    // A synonym of a synonym is not allowed (470 at its use), so one step is all.
    for _ in 0..2 {
        let open = database_of(session, &name)?;
        session.check_entry(open.id)?;
        let Some(catalog) = session.definitions(open.id) else { return Ok(None) };
        match crate::ddl::names::find_object(session, &catalog, &name) {
            Some(object) if object.kind == ObjectKind::Synonym => match crate::ddl::names::parse_name(&object.definition) {
                Some(base) => name = base,
                None => return Ok(None),
            },
            Some(object) => return Ok(Some(FoundModule { object, database: open })),
            None => break,
        }
    }
    let bare = name.name.text.to_ascii_lowercase();
    if bare.starts_with("sp_") && name.database.is_none() {
        let schema = name.schema.as_ref().map_or(LAST_SCHEMA, |schema| &schema.text);
        let found = session.definitions(MASTER_ID).and_then(|catalog| catalog.object(schema, &name.name.text).cloned());
        return Ok(found.map(|object| FoundModule { object, database: session.database.clone() }));
    }
    Ok(None)
}

/// The procedure a name means.
pub(crate) fn find_procedure(session: &SessionState, name: &str) -> Result<Option<FoundModule>, SqlError> {
    let Some(name) = crate::ddl::names::parse_name(name) else { return Ok(None) };
    match find_object(session, &name)? {
        Some(found) if found.object.kind == ObjectKind::Procedure => Ok(Some(found)),
        Some(found) => {
            let is = crate::ddl::module::word_of(found.object.kind);
            Err(message(2809, &[&"procedure", &name.name.text, &name.name.text, &is]))
        }
        None => Ok(None),
    }
}

/// Runs a procedure.
pub(crate) fn call_procedure(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    found: &FoundModule,
    arguments: &[Argument],
    guarded: bool,
) -> Result<Returned, Failure> {
    let object = &found.object;
    let module = Module::of(object);
    let procedure = module.procedure()?;
    let mut frame = Frame { guarded, procedure: Some(object.name.clone()), module: object.id.0, ..Frame::default() };
    let outputs = bind_declared(session, &mut frame, &procedure.parameters, Declared::Procedure(&object.name), arguments)?;
    let (status, frame) = run_module(session, out, found, statements_of(&procedure.body), frame)?;
    let value = |(argument, position): (usize, usize)| {
        let variable = &frame.variables[position];
        (argument, variable.value.clone(), variable.sql_type)
    };
    Ok(Returned { status, outputs: outputs.into_iter().map(value).collect() })
}

/// Runs a module's statements in a frame of their own.
pub(crate) fn run_module(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    found: &FoundModule,
    statements: &[Stmt],
    frame: Frame,
) -> Result<(i32, Frame), Failure> {
    let (guarded, before) = (frame.guarded, session.transactions.count);
    let source = Source::Module { object: &found.object, statements, database: &found.database, returns: None };
    let (status, frame) = run_scope(session, out, source, frame, Caller::Module)?;
    // A trigger whose transaction has ended says so by 3609 instead.
    if crate::batch::execute::transactions_differ(session, before) && !frame.is_trigger {
        let mut error = message(266, &[&before, &session.transactions.count]).with_state(2);
        error.procedure = Some(found.object.name.clone());
        if guarded {
            return Err(error.into());
        }
        out.message(&error);
        session.last_error = 266;
    }
    Ok((status, frame))
}
