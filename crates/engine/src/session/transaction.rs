//! A session's transaction: one of storage for each database it has written, begun, marked and ended together.
//!
//! ```text
//! count 0   autocommit: every statement's work is committed or undone with the statement
//! count n   BEGIN TRANSACTION was said n times; the work ends with the n-th COMMIT or any ROLLBACK
//! doomed    only ROLLBACK is left (XACT_STATE() = -1)
//! ```
//!
//! 1. A definition changed by an open transaction is seen by its session alone: the changed catalog waits in
//!    [`DatabaseTxn::catalog`] and is published after the commit, never before (`commit`).
//! 2. A [`Mark`] takes rows, definitions and temporary tables back together (`rollback_to`).
//!
//! Failure: databases commit one after another, in order of their numbers; a crash or error between two leaves the first
//! committed. Log space is checked by storage before, so that this needs a device failing in that moment.

use crate::instance::database::OpenDatabase;
use crate::session::isolation::Isolation;
use crate::session::temporary::TempTables;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use thawdb_catalog::{DatabaseCatalog, ObjectId};
use thawdb_storage::locks::Party;
use thawdb_storage::{ReadView, Savepoint, StorageError, Txn};

/// What is done to a table's counters once its change is committed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnCommit {
    /// TRUNCATE: the identity begins again at its seed.
    ResetIdentity(ObjectId),
    /// DROP: the counters are forgotten.
    Forget(ObjectId),
}

/// A transaction's part in one database.
pub(crate) struct DatabaseTxn {
    pub(crate) database: Arc<OpenDatabase>,
    pub(crate) txn: Txn,
    start: Savepoint,
    /// What the transaction sees of the database under SNAPSHOT, once it has touched it.
    pub(crate) snapshot: Option<ReadView>,
    /// The definitions there were when that view was taken.
    pub(crate) seen: Option<Arc<DatabaseCatalog>>,
    /// The catalog with this transaction's changes, if it changed definitions.
    pub(crate) catalog: Option<Arc<DatabaseCatalog>>,
    pub(crate) on_commit: Vec<OnCommit>,
}

/// A point to which everything can be taken back.
#[derive(Clone, Default)]
pub(crate) struct Mark {
    databases: Vec<(i32, Savepoint, Option<Arc<DatabaseCatalog>>, usize)>,
    temp: TempTables,
}

/// The transaction state of a session.
#[derive(Default)]
pub(crate) struct Transactions {
    databases: BTreeMap<i32, DatabaseTxn>,
    /// `@@TRANCOUNT`.
    pub(crate) count: u32,
    pub(crate) doomed: bool,
    /// Name given to the outermost BEGIN TRANSACTION.
    pub(crate) name: Option<String>,
    /// COMMIT asked for delayed durability.
    pub(crate) delayed: bool,
    /// What the client calls it; 0 outside a transaction.
    pub(crate) descriptor: u64,
    /// The level at which rows were first touched.
    pub(crate) began_at: Option<Isolation>,
    /// Whose waits its locks belong to.
    party: Option<Party>,
    /// When it began, for the periods of rows it writes: 100 ns since 0001-01-01; 0 until somebody asks or BEGIN says.
    pub(crate) began_ticks: AtomicI64,
    savepoints: Vec<(String, Mark)>,
    temp_before: Option<TempTables>,
}

impl Transactions {
    /// The transactions of a session.
    pub(crate) fn of(party: Party) -> Self {
        Self { party: Some(party), ..Self::default() }
    }

    /// A statement begins.
    pub(crate) fn begin_statement(&mut self) {
        self.databases.values_mut().for_each(|part| part.txn.begin_statement());
    }

    /// A statement ends: the locks that were its own go.
    pub(crate) fn end_statement(&mut self) {
        self.databases.values_mut().for_each(|part| part.txn.end_statement());
    }

    /// What a deadlock would cost.
    pub(crate) fn cost(&self) -> u64 {
        self.databases.values().map(|part| part.txn.undo_count()).sum()
    }

    /// The part in a database, if it has one.
    pub(crate) fn existing_mut(&mut self, database: i32) -> Option<&mut DatabaseTxn> {
        self.databases.get_mut(&database)
    }

    /// The part in `database`, begun if need be.
    pub(crate) fn part(&mut self, database: &Arc<OpenDatabase>) -> &mut DatabaseTxn {
        self.databases.entry(database.id.0).or_insert_with(|| {
            let txn = match self.party {
                Some(party) => database.storage.begin_for(party),
                None => database.storage.begin(),
            };
            let start = txn.savepoint();
            DatabaseTxn { database: database.clone(), txn, start, snapshot: None, seen: None, catalog: None, on_commit: Vec::new() }
        })
    }

    /// The part in a database, if it has one.
    pub(crate) fn existing(&self, database: i32) -> Option<&DatabaseTxn> {
        self.databases.get(&database)
    }

    /// Whether it changed definitions of a database.
    pub(crate) fn has_own_definitions(&self, database: i32) -> bool {
        self.existing(database).is_some_and(|part| part.catalog.is_some())
    }

    /// XACT_STATE().
    pub(crate) fn state(&self) -> i16 {
        match (self.count, self.doomed) {
            (0, _) => 0,
            (_, true) => -1,
            _ => 1,
        }
    }

    /// Begins an explicit transaction at the outermost level.
    pub(crate) fn begin(&mut self, name: Option<String>, descriptor: u64, temp: &TempTables) {
        debug_assert_eq!(self.count, 0, "nested BEGIN only counts");
        self.count = 1;
        self.name = name;
        self.descriptor = descriptor;
        self.temp_before = Some(temp.clone());
    }

    /// The present point.
    pub(crate) fn mark(&self, temp: &TempTables) -> Mark {
        let databases = self.databases.iter().map(|(id, d)| (*id, d.txn.savepoint(), d.catalog.clone(), d.on_commit.len())).collect();
        Mark { databases, temp: temp.clone() }
    }

    /// Takes everything after `mark` back.
    pub(crate) fn rollback_to(&mut self, mark: &Mark, temp: &mut TempTables) -> Result<(), StorageError> {
        for (id, part) in &mut self.databases {
            match mark.databases.iter().find(|(marked, ..)| marked == id) {
                Some((_, savepoint, catalog, actions)) => {
                    part.txn.rollback_to(*savepoint)?;
                    part.catalog.clone_from(catalog);
                    part.on_commit.truncate(*actions);
                }
                None => {
                    part.txn.rollback_to(part.start)?;
                    part.catalog = None;
                    part.on_commit.clear();
                }
            }
        }
        *temp = mark.temp.clone();
        Ok(())
    }

    /// Marks a savepoint; a later one of the same name hides it.
    pub(crate) fn save(&mut self, name: String, temp: &TempTables) {
        let mark = self.mark(temp);
        self.savepoints.push((name, mark));
    }

    /// Position of the newest savepoint of this name. Names are compared as written, as SQL Server does.
    pub(crate) fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|(saved, _)| saved == name)
    }

    /// Takes everything after a savepoint back; it stays, later ones go.
    pub(crate) fn rollback_to_savepoint(&mut self, index: usize, temp: &mut TempTables) -> Result<(), StorageError> {
        let mark = self.savepoints[index].1.clone();
        self.savepoints.truncate(index + 1);
        self.rollback_to(&mark, temp)
    }

    /// Ends the counting of a statement's own transaction: its work stays, to end with the statement.
    pub(crate) fn end_of_statement_transaction(&mut self) {
        debug_assert!(!self.doomed, "a doomed transaction is rolled back");
        self.forget();
    }

    fn forget(&mut self) {
        self.count = 0;
        self.doomed = false;
        self.delayed = false;
        self.name = None;
        self.descriptor = 0;
        self.began_at = None;
        *self.began_ticks.get_mut() = 0;
        self.savepoints.clear();
        self.temp_before = None;
    }

    /// Commits everything and publishes changed definitions.
    pub(crate) fn commit(&mut self) -> Result<(), (Arc<OpenDatabase>, StorageError)> {
        let parts = std::mem::take(&mut self.databases);
        let asked = self.delayed;
        self.forget();
        // A commit of several databases is always durable when it returns.
        let single = parts.values().filter(|part| part.txn.id().is_some()).count() <= 1;
        for part in parts.into_values() {
            let DatabaseTxn { database, mut txn, catalog, on_commit, .. } = part;
            txn.set_delayed_durability(single && is_delayed(&database, asked));
            txn.commit().map_err(|error| (database.clone(), error))?;
            if let Some(catalog) = catalog {
                database.publish(catalog);
            }
            for action in on_commit {
                match action {
                    OnCommit::Forget(table) => {
                        database.counters.forget(&database, table);
                        database.statistics.forget(&database, table);
                    }
                    OnCommit::ResetIdentity(table) => {
                        // The transaction is committed, and must not be told to have failed: what cannot be recorded now
                        // meets the next statement that records a block.
                        let _recorded = database.counters.reset_identity(&database, table, None);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes everything back and ends the transaction.
    pub(crate) fn rollback(&mut self, temp: &mut TempTables) -> Result<(), (Arc<OpenDatabase>, StorageError)> {
        if let Some(before) = self.temp_before.take() {
            *temp = before;
        }
        let parts = std::mem::take(&mut self.databases);
        self.forget();
        let mut outcome = Ok(());
        for part in parts.into_values() {
            if let Err(error) = part.txn.rollback() {
                outcome = Err((part.database, error));
            }
        }
        outcome
    }
}

/// Whether a commit in this database may return before it is durable: the database decides, and under ALLOWED the COMMIT.
fn is_delayed(database: &OpenDatabase, asked: bool) -> bool {
    match database.record().properties.get("DELAYED_DURABILITY").map(String::as_str) {
        Some("FORCED") => true,
        Some("ALLOWED") => asked,
        _ => false,
    }
}

impl Mark {
    /// Puts the temporary tables of the marked moment back.
    pub(crate) fn restore_temp(&self, temp: &mut TempTables) {
        temp.clone_from(&self.temp);
    }
}
