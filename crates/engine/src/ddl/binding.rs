//! WITH SCHEMABINDING of views: what they name is named in two parts, and stays as it is.
//!
//! ```text
//! CREATE VIEW ... WITH SCHEMABINDING ─► its query bound with `CompileCx::schema_bound`: 4512, 1054
//! DROP of a table or view, ALTER and DROP COLUMN ─► the schema-bound views whose queries name it: 3729; 5074 and 4922
//! ```
//! Who is bound to what is kept nowhere: the views' queries are bound again when somebody asks, which is when something they
//! might name is about to go.

use crate::batch::compile_cx::CompileCx;
use crate::batch::module::Module;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::state::SessionState;
use thawdb_catalog::{ObjectId, ObjectKind};
use thawdb_query::compile::{Compiled, compile};
use thawdb_tsql::ast::{Query, Stmt, StmtKind};
use thawdb_types::SqlError;

/// Checks the names of a schema-bound view's query: 4512, 1054.
pub(crate) fn check_names(session: &SessionState, view: &str, query: &Query) -> Result<(), SqlError> {
    let cx = CompileCx::of_schema_bound(session);
    let statement = Stmt { kind: StmtKind::Select(Box::new(query.clone())), span: query.span };
    match compile(&statement, &cx) {
        Err(error) if error.number == 4512 => {
            let name = error.text.rsplit("name '").next().and_then(|rest| rest.split('\'').next()).unwrap_or_default().to_owned();
            Err(message(4512, &[&"view", &view, &name]).at_line(error.line))
        }
        Err(error) if error.number == 1054 => Err(error),
        // What else is wrong is told when its columns are asked for.
        _ => Ok(()),
    }
}

/// The schema-bound views of a database whose plans fit, by name.
fn views(session: &SessionState, open: &OpenDatabase, fits: impl Fn(&Compiled) -> bool) -> Vec<String> {
    let Some(catalog) = session.definitions(open.id) else { return Vec::new() };
    let bound = catalog.objects.values().filter(|object| object.kind == ObjectKind::View && object.flags.schema_bound);
    let mut found = Vec::new();
    for object in bound {
        let module = Module::of(object);
        let Ok(view) = module.view() else { continue };
        let statement = Stmt { kind: StmtKind::Select(view.query.clone()), span: view.query.span };
        if compile(&statement, &CompileCx::new(session, 0)).is_ok_and(|plan| fits(&plan)) {
            found.push(object.name.clone());
        }
    }
    found
}

/// 3729 if a schema-bound view names the object.
pub(crate) fn refuse_drop(
    session: &SessionState,
    open: &OpenDatabase,
    id: ObjectId,
    (statement, shown): (&str, &str),
) -> Result<(), SqlError> {
    let names = |plan: &Compiled| plan.dependencies.iter().any(|dependency| dependency.database == open.id && dependency.table == id);
    match views(session, open, names).first() {
        Some(view) => Err(message(3729, &[&statement, &shown, view])),
        None => Ok(()),
    }
}

/// The schema-bound views that name a column.
pub(crate) fn users_of_column(session: &SessionState, open: &OpenDatabase, table: ObjectId, column: i32) -> Vec<String> {
    views(session, open, |plan| plan.needs.iter().any(|need| need.object == (open.id, table) && need.columns.contains(&column)))
}
