//! The history of a system-versioned table: old rows go there when a statement has changed or deleted them.
//!
//! ```text
//! changed rows (session::changes) ─► old rows, their period ended at the transaction's time ─► INSERT into the history
//! ```
//! 1. Both ends of a change have the same time, that of the transaction's begin: the old row's period ends where the new one's
//!    begins (`SessionState::transaction_time`).
//! 2. A row is never older than its past: 13535 if its period began after the transaction.
//! 3. Rows go to the history before triggers and foreign keys look at the change: all of it is taken back together.

use crate::batch::failure::Failure;
use crate::batch::integrity::bracketed;
use crate::batch::interpreter::Interpreter;
use crate::batch::trigger::ChangeKind;
use crate::messages::message;
use crate::session::changes::Watch;
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thawdb_catalog::TableDef;
use thawdb_types::calendar::Moment;
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::datepart::{DatePart, dateadd};
use thawdb_types::{Scalar, SqlError, SqlType};

const MOMENT: SqlType = SqlType::DateTime2 { scale: 7 };

impl SessionState {
    /// When the transaction began, as the period of what it writes has it: 100 ns since 0001-01-01, in UTC.
    pub(crate) fn transaction_time(&self) -> i64 {
        let began = &self.transactions.began_ticks;
        // Relaxed: one thread runs a session's statement; its workers find the value set.
        match began.compare_exchange(0, self.now_ticks, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => self.now_ticks,
            Err(set) => set,
        }
    }

    /// The moment that lies a retention period back; `unit` is a number of sys.tables.
    pub(crate) fn retained_since(&self, count: i64, unit: i64) -> Result<Scalar, SqlError> {
        let part = match unit {
            3 => DatePart::Day,
            4 => DatePart::Week,
            5 => DatePart::Month,
            _ => DatePart::Year,
        };
        // A period longer than there is time leaves out nothing.
        Ok(dateadd(part, -count, &Scalar::DateTime2(self.now_ticks), &MOMENT).unwrap_or(Scalar::DateTime2(0)))
    }

    /// The name that messages of temporal tables have for a table.
    pub(crate) fn full_name(&self, table: &TableDef) -> String {
        let database = self.storage_of(table.database).map_or(String::new(), |open| open.name());
        format!("{database}.{}.{}", table.schema_name, table.name)
    }
}

impl Interpreter<'_, '_> {
    /// Puts the old rows of a statement into the table's history.
    pub(crate) fn keep_history(&mut self, watch: &Watch) -> Result<(), Failure> {
        let table = &watch.table;
        let (Some(versioning), Some((start, end))) = (table.temporal.versioning, table.period_positions()) else { return Ok(()) };
        let now = self.session.transaction_time();
        for kind in [ChangeKind::Update, ChangeKind::Delete] {
            let old = &watch.changed(kind).old;
            if old.rows.is_empty() {
                continue;
            }
            let until = convert(&Scalar::DateTime2(now), &MOMENT, &table.columns[end].sql_type, ConvertOptions::default())?;
            let mut rows = old.clone();
            for row in &mut rows.rows {
                let began = Moment::of(&row[start]).map_or(0, |moment| moment.total_ticks());
                if began > Moment::of(&until).map_or(now, |moment| moment.total_ticks()) {
                    return Err(message(13_535, &[&self.session.full_name(table)]).into());
                }
                row[end] = until.clone();
            }
            let Some(history) = self.session.table(table.database, versioning.history) else { continue };
            let names = table.columns.iter().map(|column| bracketed(&column.name)).collect::<Vec<_>>().join(", ");
            let place = self.session.storage_of(table.database)?.name();
            let into = format!("{}.{}.{}", bracketed(&place), bracketed(&history.schema_name), bracketed(&history.name));
            // `deleted` has the values of columns that rows do not hold.
            let text = format!("INSERT INTO {into} ({names}) SELECT {names} FROM deleted");
            let mut frame = Frame { rowset_table: Some(table.clone()), writes_history: true, ..Frame::default() };
            frame.rowsets.insert("deleted".to_owned(), Arc::new(rows));
            self.internally_in(&text, frame, |this, plan| this.run_watched(plan).map(drop))?;
        }
        Ok(())
    }
}
