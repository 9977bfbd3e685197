//! Row numbers and identity values: handed out from memory, reserved on disk in blocks.
//!
//! ```text
//! memory:  next ──► ... values handed out one statement at a time ... ──► limit
//! disk:    limit                     a start after a crash goes on at the limit; a clean close writes `next` itself
//! ```
//!
//! 1. A value is handed out only below the recorded limit (`CounterTable::reserve`), so none is handed out twice,
//!    whatever transaction commits or rolls back.
//! 2. The record of the limit is a transaction of its own whose commit precedes, in the log, every row that uses the block.
//! 3. No transaction of a user holds a lock on a record: one that did would make `record` wait for the very session that
//!    asks for a number. So what is dropped is forgotten after the commit ([`CounterTable::forget`]).
//!
//! Locks: COUNTER_LIST (rank 5) for the map only; a table's own COUNTERS (rank 1) across the write of its record.
//! A crash skips at most a block, as SQL Server's identity cache does. tempdb records nothing.

use crate::instance::database::OpenDatabase;
use crate::messages::message;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::store::{put_counters, remove_counters};
use thawdb_catalog::{CatalogError, Counters, IdentityDef, ObjectId, SequenceDef};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_storage::StorageError;
use thawdb_types::{SqlError, SqlType};

static LIST: LockClass = LockClass::new("COUNTER_LIST", 5);
static COUNTERS: LockClass = LockClass::new("TABLE_COUNTERS", 1);

/// Row numbers reserved at once: one log flush a million rows, and numbers last 2^44 crashes.
const ROW_NUMBER_BLOCK: u64 = 1 << 20;

/// Whose row numbers a database's rowversions are: no object has this number.
pub(crate) const ROW_VERSIONS: ObjectId = ObjectId(0);

/// The first rowversion of a database: SQL Server's begin behind 2,000.
pub(crate) const ROW_VERSION_FIRST: u64 = 2_001;

/// Values of a sequence reserved at once where its definition leaves it to the server.
const SEQUENCE_CACHE: i64 = 50;

/// Identity values reserved at once: SQL Server's own (1,000 for int and below, 10,000 beyond).
fn identity_block(sql_type: &SqlType) -> i64 {
    if matches!(sql_type, SqlType::BigInt | SqlType::Decimal { .. }) { 10_000 } else { 1_000 }
}

#[derive(Default)]
struct TableCounters {
    row_number_next: u64,
    row_number_limit: u64,
    /// `None` until the first value is handed out or read from disk.
    identity_next: Option<i64>,
    /// Values up to and including this one may be handed out without a new record.
    identity_limit: Option<i64>,
    last_identity: Option<i64>,
}

/// The counters of a database's tables.
pub(crate) struct CounterTable {
    tables: Mutex<BTreeMap<i32, Arc<Mutex<TableCounters>>>>,
    persistent: bool,
}

/// An identity column: where its values begin, how they go on, what they must fit.
#[derive(Clone, Copy)]
pub(crate) struct IdentityColumn {
    pub(crate) definition: IdentityDef,
    pub(crate) sql_type: SqlType,
}

impl CounterTable {
    /// Counters as recorded. Those of a temporary database are never recorded.
    pub(crate) fn new(recorded: BTreeMap<i32, Counters>, persistent: bool) -> Self {
        let tables = recorded.into_iter().map(|(table, counters)| {
            let counters = TableCounters {
                row_number_next: counters.row_number_next,
                row_number_limit: counters.row_number_next,
                identity_next: counters.identity_next,
                ..TableCounters::default()
            };
            (table, Arc::new(Mutex::new(&COUNTERS, counters)))
        });
        Self { tables: Mutex::new(&LIST, tables.collect()), persistent }
    }

    fn of(&self, table: ObjectId) -> Arc<Mutex<TableCounters>> {
        let mut tables = self.tables.lock();
        tables.entry(table.0).or_insert_with(|| Arc::new(Mutex::new(&COUNTERS, TableCounters::default()))).clone()
    }

    fn record(&self, database: &OpenDatabase, table: ObjectId, counters: Counters) -> Result<(), StorageError> {
        if !self.persistent {
            return Ok(());
        }
        let mut txn = database.storage.begin();
        put_counters(&mut txn, table, counters).map_err(storage_of)?;
        txn.commit()
    }

    /// Hands out `count` row numbers; the first is returned.
    pub(crate) fn next_row_number(&self, database: &OpenDatabase, table: ObjectId, count: u64) -> Result<u64, StorageError> {
        let counters = self.of(table);
        let mut counters = counters.lock();
        let first = counters.row_number_next;
        let next = first.checked_add(count).ok_or_else(|| StorageError::Bug("2^64 row numbers used up".into()))?;
        if next > counters.row_number_limit {
            let limit = next.saturating_add(ROW_NUMBER_BLOCK);
            let identity_next = counters.identity_limit.or(counters.identity_next);
            self.record(database, table, Counters { row_number_next: limit, identity_next })?;
            counters.row_number_limit = limit;
        }
        counters.row_number_next = next;
        Ok(first)
    }

    /// The last rowversion handed out in the database (`@@DBTS`).
    pub(crate) fn last_row_version(&self) -> u64 {
        self.of(ROW_VERSIONS).lock().row_number_next + ROW_VERSION_FIRST - 1
    }

    /// Makes later row numbers be at least `next`.
    pub(crate) fn raise_row_number(&self, database: &OpenDatabase, table: ObjectId, next: u64) -> Result<(), StorageError> {
        let counters = self.of(table);
        let present = counters.lock().row_number_next;
        match next.checked_sub(present) {
            Some(missing) if missing > 0 => self.next_row_number(database, table, missing).map(drop),
            _ => Ok(()),
        }
    }

    /// Hands out `count` identity values; the first is returned. 8115 when the type has no more.
    pub(crate) fn next_identity(
        &self,
        database: &OpenDatabase,
        table: ObjectId,
        column: IdentityColumn,
        count: u64,
    ) -> Result<i64, IdentityError> {
        let counters = self.of(table);
        let mut counters = counters.lock();
        let first = counters.identity_next.unwrap_or(column.definition.seed);
        let step = i128::from(column.definition.increment);
        let last = i128::from(first) + step * (i128::from(count) - 1).max(0);
        let last = i64::try_from(last).ok().filter(|&last| fits(last, &column.sql_type) && fits(first, &column.sql_type));
        let last = last.ok_or(IdentityError::Overflow)?;
        self.advance(database, table, &mut counters, column, last)?;
        counters.last_identity = Some(last);
        Ok(first)
    }

    /// Makes the next value lie beyond `value`, which was inserted explicitly.
    pub(crate) fn note_identity(
        &self,
        database: &OpenDatabase,
        table: ObjectId,
        column: IdentityColumn,
        value: i64,
    ) -> Result<(), IdentityError> {
        let counters = self.of(table);
        let mut counters = counters.lock();
        let current = counters.last_identity.or(counters.identity_next.map(|next| next.saturating_sub(column.definition.increment)));
        let beyond = match current {
            None => true,
            Some(current) if column.definition.increment >= 0 => value > current,
            Some(current) => value < current,
        };
        if beyond {
            self.advance(database, table, &mut counters, column, value)?;
            counters.last_identity = Some(value);
        }
        Ok(())
    }

    fn advance(
        &self,
        database: &OpenDatabase,
        table: ObjectId,
        counters: &mut TableCounters,
        column: IdentityColumn,
        last: i64,
    ) -> Result<(), IdentityError> {
        let increment = column.definition.increment;
        let rising = increment >= 0;
        let within = counters.identity_limit.is_some_and(|limit| if rising { last < limit } else { last > limit });
        if !within {
            let limit = last.saturating_add(increment.saturating_mul(identity_block(&column.sql_type)));
            let record = Counters { row_number_next: counters.row_number_limit, identity_next: Some(limit) };
            self.record(database, table, record).map_err(IdentityError::Storage)?;
            counters.identity_limit = Some(limit);
        }
        counters.identity_next = Some(last.saturating_add(increment));
        Ok(())
    }

    /// The last identity value handed out or recorded, for IDENT_CURRENT and sys.identity_columns.
    pub(crate) fn last_identity(&self, table: ObjectId, column: IdentityColumn) -> Option<i64> {
        let counters = self.of(table);
        let counters = counters.lock();
        counters.last_identity.or(counters.identity_next.map(|next| next.saturating_sub(column.definition.increment)))
    }

    /// The next value of a sequence; `None` when it has no more. One statement's record reserves a cache of them.
    pub(crate) fn next_in_sequence(
        &self,
        database: &OpenDatabase,
        id: ObjectId,
        sequence: &SequenceDef,
    ) -> Result<Option<i64>, StorageError> {
        let counters = self.of(id);
        let mut counters = counters.lock();
        let range = sequence.minimum..=sequence.maximum;
        let begun = counters.last_identity.is_some() || counters.identity_next.is_some();
        let next = if begun { counters.identity_next } else { Some(sequence.start) };
        let value = match next.filter(|next| range.contains(next)) {
            Some(next) => next,
            None if sequence.cycle => *(if sequence.increment > 0 { range.start() } else { range.end() }),
            None => return Ok(None),
        };
        let rising = sequence.increment > 0;
        let within = counters.identity_limit.is_some_and(|limit| if rising { value < limit } else { value > limit });
        if !within || value == *range.start() || value == *range.end() {
            let ahead = sequence.cache.map_or(1, |size| if size == 0 { SEQUENCE_CACHE } else { i64::from(size) });
            let limit = value.saturating_add(sequence.increment.saturating_mul(ahead));
            self.record(database, id, Counters { row_number_next: 0, identity_next: Some(limit) })?;
            counters.identity_limit = Some(limit);
        }
        counters.identity_next = value.checked_add(sequence.increment);
        counters.last_identity = Some(value);
        Ok(Some(value))
    }

    /// The last value of a sequence, if there was one, and the next, if the type has it.
    pub(crate) fn sequence_state(&self, id: ObjectId) -> (Option<i64>, Option<i64>) {
        let counters = self.of(id);
        let counters = counters.lock();
        (counters.last_identity.or(counters.identity_next), counters.identity_next)
    }

    /// A guess at how many rows a table has, from the numbers handed out; `None` if none were.
    pub(crate) fn rows_at_most(&self, table: ObjectId) -> Option<u64> {
        let counters = self.tables.lock().get(&table.0)?.clone();
        let counters = counters.lock();
        // After a start none was handed out yet, and the next one tells as much.
        let identities = counters.last_identity.or(counters.identity_next).and_then(|last| u64::try_from(last).ok()).unwrap_or(0);
        Some(counters.row_number_next.max(identities)).filter(|rows| *rows > 0)
    }

    /// Starts the identity again at its seed (TRUNCATE) or at a value (DBCC CHECKIDENT RESEED). It does so even where the
    /// record fails: values then begin again now, and after a restart go on where they would have without.
    pub(crate) fn reset_identity(&self, database: &OpenDatabase, table: ObjectId, next: Option<i64>) -> Result<(), StorageError> {
        let counters = self.of(table);
        let mut counters = counters.lock();
        let recorded = self.record(database, table, Counters { row_number_next: counters.row_number_limit, identity_next: next });
        counters.identity_next = next;
        counters.identity_limit = None;
        counters.last_identity = None;
        recorded
    }

    /// Forgets a dropped table. Ids are not given twice, so that a record which cannot be removed now is only in the way;
    /// the next clean close removes it (`save_exact`).
    pub(crate) fn forget(&self, database: &OpenDatabase, table: ObjectId) {
        let is_known = self.tables.lock().contains_key(&table.0);
        if is_known && (!self.persistent || self.remove_record(database, table).is_ok()) {
            self.tables.lock().remove(&table.0);
        }
    }

    fn remove_record(&self, database: &OpenDatabase, table: ObjectId) -> Result<(), StorageError> {
        let mut txn = database.storage.begin();
        // Nobody waits for it to be durable: a record that comes back with a crash is only in the way.
        txn.set_delayed_durability(true);
        remove_counters(&mut txn, table).map_err(storage_of)?;
        txn.commit()
    }

    /// Records the exact next values: a clean start then skips none.
    pub(crate) fn save_exact(&self, database: &OpenDatabase) -> Result<(), StorageError> {
        if !self.persistent {
            return Ok(());
        }
        let tables: Vec<_> = self.tables.lock().iter().map(|(id, counters)| (ObjectId(*id), counters.clone())).collect();
        let known = database.catalog();
        let mut txn = database.storage.begin();
        for (table, counters) in tables {
            let mut counters = counters.lock();
            if known.tables.tables.contains_key(&table.0) || known.objects.contains_key(&table.0) {
                let exact = Counters { row_number_next: counters.row_number_next, identity_next: counters.identity_next };
                put_counters(&mut txn, table, exact).map_err(storage_of)?;
            } else {
                remove_counters(&mut txn, table).map_err(storage_of)?;
            }
            counters.row_number_limit = counters.row_number_next;
            counters.identity_limit = None;
        }
        txn.commit()
    }
}

/// Why no identity value was handed out.
pub(crate) enum IdentityError {
    /// The column's type has no more.
    Overflow,
    /// The record could not be written.
    Storage(StorageError),
}

/// 8115 as SQL Server says it for IDENTITY.
pub(crate) fn identity_overflow(sql_type: &SqlType) -> SqlError {
    message(8115, &[&"IDENTITY", &sql_type.message_name()])
}

fn fits(value: i64, sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::TinyInt => u8::try_from(value).is_ok(),
        SqlType::SmallInt => i16::try_from(value).is_ok(),
        SqlType::Int => i32::try_from(value).is_ok(),
        SqlType::Decimal { precision, .. } => i128::from(value).abs() < 10_i128.pow(u32::from((*precision).min(38))),
        _ => true,
    }
}

/// A catalog error on the way of a storage error; damage in a record is damage.
pub(crate) fn storage_of(error: CatalogError) -> StorageError {
    match error {
        CatalogError::Storage(error) => error,
        CatalogError::Damage(detail) => StorageError::Bug(format!("catalog record damaged: {detail}")),
    }
}
