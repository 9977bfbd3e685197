//! Statistics of a database's tables: as recorded, with how much has changed since.
//!
//! ```text
//! statements that change rows ─ note ─► counters by table and column ─► past the threshold: stale, plans are made anew
//! compilation ─ of ─► TableStatistics            made or updated ─ put ─► memory, then a record of its own transaction
//! ```
//! 1. Statistics belong to the table that was created when they say; of another table with that number they say nothing.
//! 2. What memory has is what counts: a record that cannot be written (a full log, a read-only filegroup) is lost with the
//!    instance, and made again when it is wanted.
//!
//! The counters are not recorded: after a start nothing has changed. Lock: STATISTICS (rank 5), for a look or a change.

use crate::instance::database::OpenDatabase;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::store::{put_statistics, remove_statistics};
use thawdb_catalog::{ObjectId, Statistics, TableDef, TableStatistics};
use thawdb_observe::sync::{LockClass, Mutex};

static STATISTICS: LockClass = LockClass::new("STATISTICS", 5);

/// Rows up to which a fixed number of changes makes statistics stale, and that number.
const FEW_ROWS: f64 = 500.0;

/// Changes after which statistics over so many rows are stale: compatibility level 130 and up.
pub(crate) fn threshold(rows: f64) -> f64 {
    if rows <= FEW_ROWS { FEW_ROWS } else { (FEW_ROWS + 0.2 * rows).min((1000.0 * rows).sqrt()) }
}

struct Entry {
    known: Arc<TableStatistics>,
    /// Rows inserted and deleted, and rows updated by column number, since the instance started.
    changed: u64,
    updated: BTreeMap<i32, u64>,
    /// Inserted less deleted.
    grown: i64,
    /// What [`Self::changes_of`] and `grown` were when each of the statistics was made.
    bases: BTreeMap<i32, (u64, i64)>,
}

impl Entry {
    fn new(known: TableStatistics) -> Self {
        Self { known: Arc::new(known), changed: 0, updated: BTreeMap::new(), grown: 0, bases: BTreeMap::new() }
    }

    fn changes_of(&self, one: &Statistics) -> u64 {
        self.changed + one.columns.first().and_then(|column| self.updated.get(column)).copied().unwrap_or(0)
    }

    fn changes_since(&self, one: &Statistics) -> u64 {
        self.changes_of(one) - self.bases.get(&one.id).map_or(0, |base| base.0)
    }

    fn is_stale(&self, one: &Statistics) -> bool {
        let threshold = one.data.as_ref().map(|data| threshold(data.rows));
        threshold.is_some_and(|threshold| self.changes_since(one) as f64 >= threshold)
    }
}

/// What a statement changed.
pub(crate) enum Changed<'c> {
    /// Rows were inserted (or deleted, below zero).
    Rows(i64),
    /// Rows were updated in these columns, by number.
    Columns(u64, &'c [i32]),
}

/// The statistics of a database.
pub(crate) struct StatisticsTable {
    tables: Mutex<BTreeMap<i32, Entry>>,
    persistent: bool,
}

impl StatisticsTable {
    /// As recorded. Those of a temporary database are never recorded.
    pub(crate) fn new(recorded: BTreeMap<i32, TableStatistics>, persistent: bool) -> Self {
        let tables = recorded.into_iter().map(|(table, known)| (table, Entry::new(known)));
        Self { tables: Mutex::new(&STATISTICS, tables.collect()), persistent }
    }

    /// What is known of a table.
    pub(crate) fn of(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        self.tables.lock().get(&table.id.0).map(|entry| entry.known.clone()).filter(|known| known.created == table.created)
    }

    /// Rows of a table, from its latest statistics and what was inserted and deleted since.
    pub(crate) fn rows(&self, table: &TableDef) -> Option<u64> {
        let tables = self.tables.lock();
        let entry = tables.get(&table.id.0).filter(|entry| entry.known.created == table.created)?;
        let latest = entry.known.list.iter().filter_map(|one| Some((one.id, one.data.as_ref()?))).max_by_key(|(_, data)| data.updated)?;
        let base = entry.bases.get(&latest.0).map_or(0, |base| base.1);
        Some((latest.1.rows + (entry.grown - base) as f64).max(0.0) as u64)
    }

    /// Changes to the leading column since statistics were made.
    pub(crate) fn changes(&self, table: ObjectId, one: &Statistics) -> u64 {
        self.tables.lock().get(&table.0).map_or(0, |entry| entry.changes_since(one))
    }

    /// Those of a table's statistics that have seen too many changes, but for those that are not to be updated.
    pub(crate) fn stale(&self, table: &TableDef) -> Vec<i32> {
        let tables = self.tables.lock();
        let Some(entry) = tables.get(&table.id.0).filter(|entry| entry.known.created == table.created) else { return Vec::new() };
        entry.known.list.iter().filter(|one| !one.no_recompute && entry.is_stale(one)).map(|one| one.id).collect()
    }

    /// Notes what a statement has changed; whether some statistics became stale by it.
    pub(crate) fn note(&self, table: ObjectId, changed: &Changed<'_>) -> bool {
        let mut tables = self.tables.lock();
        let Some(entry) = tables.get_mut(&table.0) else { return false };
        let stale = |entry: &Entry| entry.known.list.iter().filter(|one| entry.is_stale(one)).count();
        let before = stale(entry);
        match changed {
            Changed::Rows(rows) => {
                entry.changed += rows.unsigned_abs();
                entry.grown += rows;
            }
            Changed::Columns(rows, columns) => {
                columns.iter().for_each(|column| *entry.updated.entry(*column).or_default() += rows);
            }
        }
        stale(entry) > before
    }

    /// Adds statistics, or puts them in place of those of the same number, and records them.
    pub(crate) fn put(&self, open: &OpenDatabase, table: &TableDef, one: Statistics) {
        let known = {
            let mut tables = self.tables.lock();
            let fresh = || Entry::new(TableStatistics { table: table.id, created: table.created, list: Vec::new() });
            let entry = tables.entry(table.id.0).or_insert_with(fresh);
            if entry.known.created != table.created {
                *entry = fresh();
            }
            let base = (entry.changes_of(&one), entry.grown);
            entry.bases.insert(one.id, base);
            let list = &mut Arc::make_mut(&mut entry.known).list;
            match list.iter_mut().find(|known| known.id == one.id) {
                Some(known) => *known = one,
                None => list.push(one),
            }
            list.sort_by_key(|known| known.id);
            entry.known.clone()
        };
        self.record(open, &known);
    }

    /// Removes statistics; whether they were there.
    pub(crate) fn remove(&self, open: &OpenDatabase, table: &TableDef, id: i32) -> bool {
        let known = {
            let mut tables = self.tables.lock();
            let Some(entry) = tables.get_mut(&table.id.0) else { return false };
            let list = &mut Arc::make_mut(&mut entry.known).list;
            let before = list.len();
            list.retain(|known| known.id != id);
            if list.len() == before {
                return false;
            }
            entry.known.clone()
        };
        self.record(open, &known);
        true
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, open: &OpenDatabase, table: ObjectId) {
        if self.tables.lock().remove(&table.0).is_some() && self.persistent {
            let mut txn = open.storage.begin();
            txn.set_delayed_durability(true);
            // A record that stays is of a table that is not there: whoever has its number next was created later.
            let _removed = remove_statistics(&mut txn, table).is_ok() && txn.commit().is_ok();
        }
    }

    fn record(&self, open: &OpenDatabase, known: &TableStatistics) {
        if !self.persistent {
            return;
        }
        let mut txn = open.storage.begin();
        txn.set_delayed_durability(true);
        let _recorded = put_statistics(&mut txn, known).is_ok() && txn.commit().is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_the_documented_ones() {
        assert_eq!(threshold(0.0), 500.0);
        assert_eq!(threshold(500.0), 500.0);
        assert_eq!(threshold(1000.0), 700.0);
        assert!((threshold(2_000_000.0) - 44_721.36).abs() < 0.01);
    }
}
