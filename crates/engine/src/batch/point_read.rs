//! Statements that read one row by its key, run without operators, views or entries in the lock table.
//!
//! ```text
//! kept plan is a PointRead, session reads committed versions
//!   ─► key ─► brief read: table unchanged? ─► look ─► Seen, Absent ─► result
//!                              └ no ──────────────────► Unsure ────► false: the statement runs as any other
//! ```
//! Invariants: 1. nothing has been sent, assigned or counted where `false` is returned ([`Interpreter::point_read`]).
//! 2. The catalog's version is compared after the brief read has begun, so that the plan is of the table as it is while it
//! is looked at. 3. What the client sees is what the ordinary way shows: same order of metadata, row, error and completion.
//!
//! Functions' statements go the ordinary way: they see what the statement around them sees.

use crate::api::sink::StatementKind;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::session::isolation::Isolation;
use crate::session::state::SessionState;
use thawdb_query::compile::Compiled;
use thawdb_query::exec::{PointBuffers, PointRead};
use thawdb_storage::Look;
use thawdb_types::SqlError;

impl Interpreter<'_, '_> {
    /// Runs `plan` as the read of one row, if it is one and that can be told at once; otherwise nothing was done.
    pub(crate) fn point_read(&mut self, plan: &Compiled) -> Result<bool, Failure> {
        let Some(point) = plan.point.as_deref().filter(|_| self.session.may_look()) else { return Ok(false) };
        let mut buffers = std::mem::take(&mut self.session.point_buffers);
        let outcome = self.look(plan, point, &mut buffers);
        self.session.point_buffers = buffers;
        outcome
    }

    fn look(&mut self, plan: &Compiled, point: &PointRead, buffers: &mut PointBuffers) -> Result<bool, Failure> {
        if point.calls_function() {
            self.session.note_moment();
        }
        let seen = match point.find_key(self.session, buffers) {
            Ok(true) => match self.session.look(plan, point, buffers)? {
                Look::Seen(()) => true,
                Look::Absent => false,
                Look::Unsure => return Ok(false),
            },
            Ok(false) => false,
            Err(error) => {
                self.begin_point_result(plan, point)?;
                return Err(error.into());
            }
        };
        self.begin_point_result(plan, point)?;
        let wanted = seen && point.finish(self.session, buffers)?;
        self.send_infos();
        let count = u64::from(wanted);
        match point.variables() {
            Some(variables) => {
                for (variable, value) in variables.iter().zip(buffers.outputs.drain(..)).filter(|_| wanted) {
                    self.session.frame_mut().variables[*variable].value = value;
                }
                self.counted(count);
            }
            None => {
                if wanted {
                    self.out.row(&plan.columns, &buffers.outputs)?;
                }
                self.counted(count);
                self.out.done(StatementKind::Select, self.shown_count(count), false);
            }
        }
        Ok(true)
    }

    fn begin_point_result(&mut self, plan: &Compiled, point: &PointRead) -> Result<(), SqlError> {
        if point.variables().is_none() { self.out.columns(&plan.columns) } else { Ok(()) }
    }
}

impl SessionState {
    /// Whether a statement of the session may read rows as they are at one moment, with nothing told about how.
    fn may_look(&self) -> bool {
        let options = &self.options;
        options.isolation == Isolation::ReadCommitted
            && self.in_function == 0
            && options.row_count == 0
            && !(options.format_only || options.statistics_io || options.statistics_time)
            && self.database.reads_versions()
    }

    /// Looks at the row whose key is in `buffers`.
    fn look(&mut self, plan: &Compiled, point: &PointRead, buffers: &mut PointBuffers) -> Result<Look<()>, SqlError> {
        let [dependency] = &plan.dependencies[..] else { return Ok(Look::Unsure) };
        if dependency.database != self.database.id {
            return Ok(Look::Unsure);
        }
        let Some(brief) = self.brief_reader.enter(self.database.object_resource(dependency.table)) else { return Ok(Look::Unsure) };
        if self.catalog_version(dependency.database) != Some(dependency.catalog_version) {
            return Ok(Look::Unsure);
        }
        let own = self.transactions.existing(dependency.database.0).and_then(|part| part.txn.id());
        let found = point.look(&self.database.storage, own, buffers);
        drop(brief);
        if self.transactions.count > 0 {
            // As `enter_database`: the transaction has begun at this level.
            self.transactions.began_at.get_or_insert(Isolation::ReadCommitted);
        }
        found.map_err(|error| self.storage_failure(dependency.database, error))
    }
}
