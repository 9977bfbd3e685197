//! msdb.dbo.suspect_pages: pages that were found wrong, kept beyond the process.
//!
//! ```text
//! storage: read fails ─► list in memory ─► after the call that met it ([`record`]) ─► row in msdb, counts added up
//! ```
//! It is an ordinary table, as in SQL Server: whoever looks after the server deletes its rows; past [`ROWS_MAX`] new pages
//! are not recorded.
//!
//! 1. One session at a time records, and recording never begins within itself (`Engine::recording_suspects`).
//! 2. What cannot be written now, because msdb is full or somebody holds its rows, is tried again after the next call
//!    that meets a wrong page.
//!
//! Locks: those of a statement in msdb, never waited for. Failure: swallowed; the page's own error has been told.

use crate::api::batch::Batch;
use crate::api::sink::{DoneInfo, EnvChange, ResultSink, SinkClosed};
use crate::instance::Engine;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thawdb_query::phys::OutputColumn;
use thawdb_storage::store::suspect::SuspectPage;
use thawdb_types::{Scalar, SqlError, SqlType};

/// Rows of the table; SQL Server's limit.
const ROWS_MAX: usize = 1000;

const TABLE: &str = "IF OBJECT_ID(N'msdb.dbo.suspect_pages') IS NULL CREATE TABLE msdb.dbo.suspect_pages (\
    database_id int NOT NULL, file_id int NOT NULL, page_id bigint NOT NULL, event_type int NOT NULL, \
    error_count int NOT NULL, last_update_date datetime NOT NULL DEFAULT (GETDATE()))";

/// Whether anything failed.
#[derive(Default)]
struct Outcome {
    failed: bool,
}

impl ResultSink for Outcome {
    fn columns(&mut self, _columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        Ok(())
    }

    fn rows(&mut self, _batch: &Batch) -> Result<(), SinkClosed> {
        Ok(())
    }

    fn done(&mut self, _info: DoneInfo) {}

    fn message(&mut self, message: &SqlError) {
        self.failed |= !message.is_informational();
    }

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _ordinal: u16, _name: &str, _sql_type: &SqlType, _value: &Scalar) {}

    fn env_change(&mut self, _change: &EnvChange) {}
}

/// Makes the table where it is missing.
pub(crate) fn ensure_table(engine: &Arc<Engine>) {
    engine.internal_session().execute(TABLE, &[], &mut Outcome::default());
}

/// Writes down what reads have found since the last time.
pub(crate) fn record(engine: &Arc<Engine>) {
    // Acquire, and Release below: one records after the other.
    if engine.recording_suspects.swap(true, Ordering::Acquire) {
        return;
    }
    for open in engine.all_databases().iter().filter(|open| open.storage.store().has_new_suspect_pages()) {
        let rows = open.storage.store().take_suspect_pages();
        let mut outcome = Outcome::default();
        engine.internal_session().execute(&statements(open.id.0, &rows), &[], &mut outcome);
        if outcome.failed {
            open.storage.store().give_suspect_pages_back(&rows);
        }
    }
    engine.recording_suspects.store(false, Ordering::Release);
}

/// One transaction that adds the rows to the table.
fn statements(database: i32, rows: &[SuspectPage]) -> String {
    let mut text = String::from("SET XACT_ABORT ON SET LOCK_TIMEOUT 0 BEGIN TRANSACTION ");
    for row in rows {
        let SuspectPage { page, event, error_count, last_update_ns } = row;
        let (file, page, event) = (page.file, page.page, event.number());
        let seconds = last_update_ns.div_euclid(1_000_000_000);
        let when = format!("DATEADD(SECOND, {}, DATEADD(DAY, {}, CONVERT(datetime, '19700101')))", seconds % 86_400, seconds / 86_400);
        write!(
            text,
            "UPDATE msdb.dbo.suspect_pages SET event_type = {event}, error_count = error_count + {error_count}, \
             last_update_date = {when} WHERE database_id = {database} AND file_id = {file} AND page_id = {page} \
             IF @@ROWCOUNT = 0 AND (SELECT COUNT(*) FROM msdb.dbo.suspect_pages) < {ROWS_MAX} \
             INSERT msdb.dbo.suspect_pages VALUES ({database}, {file}, {page}, {event}, {error_count}, {when}) "
        )
        .expect("a String takes everything");
    }
    text.push_str("COMMIT");
    text
}
