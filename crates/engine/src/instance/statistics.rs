//! Statistics of a database's tables: as recorded, with how much has changed since.
//!
//! ```text
//! statements that change rows ─ note ─► counters by table and column ─► past the threshold: stale, the table's stamp rises
//! compilation ─ meet ─► TableStatistics, what is stale, a stamp: the plan is current while the stamp is what it was
//! made or updated ─ put ─► memory, then a record of its own transaction
//! ```
//! 1. Statistics belong to the table that was created when they say; of another table with that number they say nothing.
//! 2. What memory has is what counts. A record that cannot be written (a full log, a read-only filegroup) is lost with the
//!    instance and made again when it is wanted; of a statement's own statistics it is an error, and memory is taken back.
//! 3. The last record is of what memory has: whoever recorded looks again (`StatisticsTable::record`).
//! 4. No number is that of two statistics, or of statistics and an index (`Known::next_id`, `ddl::index::next_index_id`).
//!
//! The counters are not recorded. After a start nothing has changed, but that a table takes more or fewer leaves than when
//! its statistics were made is seen at its first compilation (`Known::compare_leaves`).
//!
//! Locks: STATISTICS_LIST (rank 5) to find a table, then, without it, STATISTICS (rank 5) for a look or a change. No record is
//! written under either.

use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::storage_error;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thawdb_catalog::store::{put_statistics, remove_statistics};
use thawdb_catalog::{CatalogError, ObjectId, Statistics, StatisticsOrigin, TableDef, TableStatistics};
use thawdb_observe::sync::{LockClass, Mutex, RwLock};
use thawdb_query::compile::Stamp;
use thawdb_types::SqlError;

static LIST: LockClass = LockClass::new("STATISTICS_LIST", 5);
static STATISTICS: LockClass = LockClass::new("STATISTICS", 5);

/// Rows up to which a fixed number of changes makes statistics stale, and that number.
const FEW_ROWS: f64 = 500.0;
/// A part of a table's leaves, and a number beside it, by which it may differ from its statistics after a start.
const LEAVES_PART: f64 = 0.2;
const LEAVES_FEW: f64 = 2.0;

/// Changes after which statistics over so many rows are stale: compatibility level 130 and up.
pub(crate) fn threshold(rows: f64) -> f64 {
    if rows <= FEW_ROWS { FEW_ROWS } else { (FEW_ROWS + 0.2 * rows).min((1000.0 * rows).sqrt()) }
}

/// What has happened to the rows since some statistics were made.
struct Age {
    id: i32,
    /// The leading column.
    column: i32,
    /// [`Known::changes_of`] and [`Known::grown`] then.
    changes: u64,
    grown: i64,
    threshold: u64,
    is_stale: bool,
    /// Whether they are never updated by themselves.
    is_kept: bool,
}

/// What is known of a table.
struct Known {
    statistics: Arc<TableStatistics>,
    /// Rows inserted and deleted since the instance started, and rows updated by leading column.
    changed: u64,
    updated: BTreeMap<i32, u64>,
    /// Inserted less deleted.
    grown: i64,
    ages: Vec<Age>,
    /// Whether they come from records whose age nobody has looked at.
    is_unseen: bool,
    /// Whether somebody makes some by itself, and whether somebody else would have liked to.
    is_busy: bool,
    is_missed: bool,
}

impl Known {
    fn new(statistics: TableStatistics) -> Self {
        let mut known = Self {
            statistics: Arc::new(statistics),
            changed: 0,
            updated: BTreeMap::new(),
            grown: 0,
            ages: Vec::new(),
            is_unseen: false,
            is_busy: false,
            is_missed: false,
        };
        known.is_unseen = !known.statistics.list.is_empty();
        let list = known.statistics.clone();
        known.ages = list.list.iter().filter_map(|one| known.age_of(one)).collect();
        known
    }

    fn of_table(table: &TableDef) -> Self {
        Self::new(TableStatistics { table: table.id, created: table.created, list: Vec::new() })
    }

    fn changes_of(&self, column: i32) -> u64 {
        self.changed + self.updated.get(&column).copied().unwrap_or(0)
    }

    /// The age of statistics that are made now.
    fn age_of(&self, one: &Statistics) -> Option<Age> {
        let (data, column) = (one.data.as_ref()?, *one.columns.first()?);
        let threshold = threshold(data.rows).ceil() as u64;
        let (changes, is_kept) = (self.changes_of(column), one.no_recompute);
        Some(Age { id: one.id, column, changes, grown: self.grown, threshold, is_stale: false, is_kept })
    }

    /// Marks what has become stale; whether anything that is updated by itself has.
    fn grow_old(&mut self) -> bool {
        let (changed, updated) = (self.changed, &self.updated);
        let mut any = false;
        for age in self.ages.iter_mut().filter(|age| !age.is_stale) {
            let changes = changed + updated.get(&age.column).copied().unwrap_or(0);
            age.is_stale = changes - age.changes >= age.threshold;
            any |= age.is_stale && !age.is_kept;
        }
        any
    }

    /// The latest statistics with data.
    fn latest(&self) -> Option<(i32, &thawdb_catalog::StatisticsData)> {
        let with_data = self.statistics.list.iter().filter_map(|one| Some((one.id, one.data.as_ref()?)));
        with_data.max_by_key(|(_, data)| data.updated)
    }

    fn rows(&self) -> Option<f64> {
        let (id, data) = self.latest()?;
        let before = self.ages.iter().find(|age| age.id == id).map_or(0, |age| age.grown);
        Some((data.rows + (self.grown - before) as f64).max(0.0))
    }

    /// Looks whether a table has about the size it had when its recorded statistics were made.
    fn compare_leaves(&mut self, leaves: u64) {
        self.is_unseen = false;
        let Some((_, data)) = self.latest() else { return };
        let (then, now) = (data.leaves.max(1) as f64, leaves as f64);
        if (now - then).abs() > then * LEAVES_PART + LEAVES_FEW {
            self.grown += (data.rows.max(1.0) * (now / then - 1.0)) as i64;
            self.ages.iter_mut().for_each(|age| age.is_stale = true);
        }
    }

    /// A number that neither statistics nor an index of the table has.
    fn next_id(&self, table: &TableDef) -> i32 {
        let own = self.statistics.list.iter().map(|one| one.id);
        let building = table.building.iter().map(|building| building.id.0);
        own.chain(table.every_index().map(|index| index.id.0)).chain(building).max().unwrap_or(0).max(1) + 1
    }

    fn put(&mut self, one: Statistics) {
        let age = self.age_of(&one);
        self.ages.retain(|known| known.id != one.id);
        self.ages.extend(age);
        let list = &mut Arc::make_mut(&mut self.statistics).list;
        list.retain(|known| known.id != one.id);
        list.push(one);
        list.sort_by_key(|known| known.id);
    }

    /// Removes what `is_gone` says; whether there was any.
    fn remove(&mut self, is_gone: &dyn Fn(&Statistics) -> bool) -> bool {
        if !self.statistics.list.iter().any(is_gone) {
            return false;
        }
        Arc::make_mut(&mut self.statistics).list.retain(|one| !is_gone(one));
        let list = self.statistics.clone();
        self.ages.retain(|age| list.list.iter().any(|one| one.id == age.id));
        true
    }
}

struct Entry {
    /// Rises when plans made of the table's statistics should be made again.
    stamp: Arc<AtomicU64>,
    known: Mutex<Known>,
}

impl Entry {
    fn new(known: Known) -> Self {
        Self { stamp: Arc::default(), known: Mutex::new(&STATISTICS, known) }
    }

    fn make_plans_again(&self) {
        // Relaxed: a statement that runs meanwhile uses the plan it found.
        self.stamp.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a statement changed.
pub(crate) enum Changed<'c> {
    /// Rows were inserted (or deleted, below zero).
    Rows(i64),
    /// Rows were changed in several ways.
    Mixed(u64),
    /// Rows were updated in these columns, by number.
    Columns(u64, &'c mut dyn Iterator<Item = i32>),
}

/// What a compilation finds.
pub(crate) struct Met {
    pub(crate) known: Arc<TableStatistics>,
    /// Those that have seen too many changes, but for those that are not to be updated.
    pub(crate) stale: Vec<i32>,
    pub(crate) stamp: Stamp,
}

/// The right to make a table's statistics by itself: one at a time.
pub(crate) struct Making(Arc<Entry>);

impl Drop for Making {
    fn drop(&mut self) {
        let is_missed = {
            let mut known = self.0.known.lock();
            known.is_busy = false;
            std::mem::take(&mut known.is_missed)
        };
        if is_missed {
            self.0.make_plans_again();
        }
    }
}

/// The statistics of a database.
pub(crate) struct StatisticsTable {
    tables: RwLock<BTreeMap<i32, Arc<Entry>>>,
    persistent: bool,
}

impl StatisticsTable {
    /// As recorded. Those of a temporary database are never recorded.
    pub(crate) fn new(recorded: BTreeMap<i32, TableStatistics>, persistent: bool) -> Self {
        let tables = recorded.into_iter().map(|(table, known)| (table, Arc::new(Entry::new(Known::new(known)))));
        Self { tables: RwLock::new(&LIST, tables.collect()), persistent }
    }

    fn find(&self, table: ObjectId) -> Option<Arc<Entry>> {
        self.tables.read().get(&table.0).cloned()
    }

    /// The entry of a table, made or made empty if it is another table's.
    fn entry(&self, table: &TableDef) -> Arc<Entry> {
        let found = self.find(table.id);
        let entry = found.unwrap_or_else(|| {
            let mut tables = self.tables.write();
            tables.entry(table.id.0).or_insert_with(|| Arc::new(Entry::new(Known::of_table(table)))).clone()
        });
        let mut known = entry.known.lock();
        if known.statistics.created != table.created {
            *known = Known::of_table(table);
        }
        drop(known);
        entry
    }

    /// What is known of a table.
    pub(crate) fn of(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        let known = self.find(table.id)?.known.lock().statistics.clone();
        (known.created == table.created).then_some(known)
    }

    /// The same for a compilation. `leaves` tells how many leaves the table takes, and is asked after a start until it is known.
    pub(crate) fn meet(&self, table: &TableDef, leaves: impl FnOnce() -> Option<u64>) -> Met {
        let entry = self.entry(table);
        let is_unseen = std::mem::take(&mut entry.known.lock().is_unseen);
        // Reads pages: not under the lock.
        let leaves = if is_unseen { leaves() } else { None };
        let stamp = Stamp::of(&entry.stamp);
        let mut known = entry.known.lock();
        match leaves {
            Some(leaves) => known.compare_leaves(leaves),
            // It is looked at when that is known.
            None => known.is_unseen |= is_unseen,
        }
        let stale = known.ages.iter().filter(|age| age.is_stale && !age.is_kept).map(|age| age.id).collect();
        Met { known: known.statistics.clone(), stale, stamp }
    }

    /// Begins to make some by itself; `None` while somebody else does, after which plans will be made again.
    pub(crate) fn begin_making(&self, table: &TableDef) -> Option<Making> {
        let entry = self.entry(table);
        {
            let mut known = entry.known.lock();
            if known.is_busy {
                known.is_missed = true;
                return None;
            }
            known.is_busy = true;
        }
        Some(Making(entry))
    }

    /// Rows of a table, from its latest statistics and what was inserted and deleted since.
    pub(crate) fn rows(&self, table: &TableDef) -> Option<u64> {
        let entry = self.find(table.id)?;
        let known = entry.known.lock();
        if known.statistics.created == table.created { known.rows().map(|rows| rows as u64) } else { None }
    }

    /// Changes to the leading column since statistics were made.
    pub(crate) fn changes(&self, table: ObjectId, one: &Statistics) -> u64 {
        let Some(entry) = self.find(table) else { return 0 };
        let known = entry.known.lock();
        let age = known.ages.iter().find(|age| age.id == one.id && Some(&age.column) == one.columns.first());
        age.map_or(0, |age| known.changes_of(age.column) - age.changes)
    }

    /// Notes what a statement has changed. Where some statistics become stale by it, plans made of them are of the past.
    pub(crate) fn note(&self, table: ObjectId, changed: Changed<'_>) {
        let Some(entry) = self.find(table) else { return };
        let is_old = {
            let mut known = entry.known.lock();
            match changed {
                Changed::Rows(rows) => {
                    known.changed += rows.unsigned_abs();
                    known.grown += rows;
                }
                Changed::Mixed(rows) => known.changed += rows,
                Changed::Columns(rows, columns) => {
                    for column in columns {
                        if known.ages.iter().any(|age| age.column == column) {
                            *known.updated.entry(column).or_default() += rows;
                        }
                    }
                }
            }
            known.grow_old()
        };
        if is_old {
            entry.make_plans_again();
        }
    }

    /// Adds statistics (their number is 0), or puts them in place of those of the same number, and records them.
    ///
    /// # Errors
    /// 1927 where there are others of the name now; what recording says, if they are of a statement (`is_asked`).
    pub(crate) fn put(&self, open: &OpenDatabase, table: &TableDef, mut one: Statistics, is_asked: bool) -> Result<(), SqlError> {
        let entry = self.entry(table);
        let before = {
            let mut known = entry.known.lock();
            let others = known.statistics.list.iter().find(|other| one.id == 0 && other.name.eq_ignore_ascii_case(&one.name));
            one.id = match others {
                Some(_) if one.origin == StatisticsOrigin::User => return Err(message(1927, &[&table.name, &one.name])),
                Some(other) => other.id,
                None if one.id == 0 => known.next_id(table),
                None => one.id,
            };
            let before = known.statistics.list.iter().find(|known| known.id == one.id).cloned();
            known.put(one.clone());
            before
        };
        if is_asked || before.as_ref().is_some_and(|before| before.data.is_some()) {
            entry.make_plans_again();
        }
        match self.record(open, &entry, is_asked) {
            Err(error) if is_asked => {
                let mut known = entry.known.lock();
                known.remove(&|known| known.id == one.id);
                before.into_iter().for_each(|before| known.put(before));
                Err(storage_error::catalog(&open.name(), error))
            }
            _ => Ok(()),
        }
    }

    /// Removes what a statement names; whether there was any.
    ///
    /// # Errors
    /// What recording says; they are there still then.
    pub(crate) fn drop_one(&self, open: &OpenDatabase, table: &TableDef, id: i32) -> Result<bool, SqlError> {
        let Some(entry) = self.find(table.id) else { return Ok(false) };
        let before = entry.known.lock().statistics.list.iter().find(|one| one.id == id).cloned();
        let Some(before) = before else { return Ok(false) };
        entry.known.lock().remove(&|one| one.id == id);
        entry.make_plans_again();
        self.record(open, &entry, true).map_err(|error| {
            entry.known.lock().put(before);
            storage_error::catalog(&open.name(), error)
        })?;
        Ok(true)
    }

    /// Removes what is about something that is no longer there: an index, a column.
    pub(crate) fn purge(&self, open: &OpenDatabase, table: ObjectId, is_gone: &dyn Fn(&Statistics) -> bool) {
        let Some(entry) = self.find(table) else { return };
        if entry.known.lock().remove(is_gone) {
            let _recorded = self.record(open, &entry, false);
        }
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, open: &OpenDatabase, table: ObjectId) {
        let Some(entry) = self.tables.write().remove(&table.0) else { return };
        if entry.known.lock().remove(&|_| true) {
            // A record that stays is of a table that is not there: whoever has its number next was created later.
            let _recorded = self.record(open, &entry, false);
        }
    }

    /// Writes a table's record. What nobody has asked for waits for nothing: neither for the log to be on disk nor for
    /// somebody who records the same table, and who looks again when done.
    fn record(&self, open: &OpenDatabase, entry: &Entry, is_asked: bool) -> Result<(), CatalogError> {
        // Ends when no statistics of the table were made during the write.
        while self.persistent {
            let known = entry.known.lock().statistics.clone();
            let mut txn = open.storage.begin();
            if !is_asked {
                txn.set_delayed_durability(true);
                txn.set_lock_timeout(Some(Duration::ZERO));
            }
            if known.list.is_empty() {
                remove_statistics(&mut txn, known.table)?;
            } else {
                put_statistics(&mut txn, &known)?;
            }
            txn.commit().map_err(CatalogError::Storage)?;
            if Arc::ptr_eq(&known, &entry.known.lock().statistics) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_catalog::StatisticsData;
    use thawdb_types::SqlType;

    fn known(rows: f64, leaves: u64, no_recompute: bool) -> Known {
        let data = StatisticsData {
            updated: 1,
            rows,
            rows_sampled: rows as u64,
            leaves,
            key_type: SqlType::Int,
            steps: Vec::new(),
            distinct: vec![rows],
            average_bytes: vec![4.0],
        };
        let (id, name, data) = (2, String::from("s"), Some(data));
        let one = Statistics { id, name, columns: vec![7], origin: StatisticsOrigin::User, no_recompute, sample_percent: None, data };
        Known::new(TableStatistics { table: ObjectId(5), created: 1, list: vec![one] })
    }

    #[test]
    fn thresholds_are_the_documented_ones() {
        assert_eq!(threshold(0.0), 500.0);
        assert_eq!(threshold(500.0), 500.0);
        assert_eq!(threshold(1000.0), 700.0);
        assert!((threshold(2_000_000.0) - 44_721.36).abs() < 0.01);
    }

    #[test]
    fn changes_of_the_leading_column_make_them_stale_once() {
        let mut known = known(1000.0, 10, false);
        known.changed = 400;
        known.updated.insert(8, 10_000);
        assert!(!known.grow_old(), "400 of 700 changes, and those of another column do not count");
        known.updated.insert(7, 300);
        assert!(known.grow_old() && !known.grow_old(), "told once");
        let again = Statistics { data: known.statistics.list[0].data.clone(), ..known.statistics.list[0].clone() };
        known.put(again);
        assert!(!known.ages[0].is_stale && known.ages[0].changes == 700);
    }

    #[test]
    fn what_is_not_to_be_updated_makes_no_plan_old() {
        let mut known = known(1000.0, 10, true);
        known.changed = 5000;
        assert!(!known.grow_old() && known.ages[0].is_stale);
    }

    #[test]
    fn a_table_that_grew_unseen_is_told_by_its_leaves() {
        let mut same = known(1000.0, 10, false);
        assert!(same.is_unseen);
        same.compare_leaves(13);
        assert!(!same.ages[0].is_stale && same.rows() == Some(1000.0));
        let mut grown = known(1000.0, 10, false);
        grown.compare_leaves(40);
        assert!(grown.ages[0].is_stale && grown.rows() == Some(4000.0));
        let mut shrunk = known(1000.0, 10, false);
        shrunk.compare_leaves(1);
        assert!(shrunk.ages[0].is_stale && shrunk.rows() == Some(100.0));
    }
}
