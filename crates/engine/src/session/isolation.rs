//! Transaction isolation levels, by the numbers sys.dm_exec_sessions shows, and what a transaction at each of them does
//! when it first touches a database.
//!
//! Under SNAPSHOT the view is the database's at the first touch, one for each database, and stays the transaction's while
//! its level changes and comes back. A transaction begins with its first touch, not with BEGIN TRANSACTION.

use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::ObjectId;
use thawdb_query::locking::ReadLevel;
use thawdb_types::SqlError;

/// Isolation of a session's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the level of its name
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
    Snapshot,
}

impl Isolation {
    /// sys.dm_exec_sessions.transaction_isolation_level.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::ReadUncommitted => 1,
            Self::ReadCommitted => 2,
            Self::RepeatableRead => 3,
            Self::Serializable => 4,
            Self::Snapshot => 5,
        }
    }

    /// How reads behave at this level; `versions`: READ_COMMITTED_SNAPSHOT is on.
    pub(crate) fn read_level(self, versions: bool) -> ReadLevel {
        match self {
            Self::ReadUncommitted => ReadLevel::ReadUncommitted,
            Self::ReadCommitted if versions => ReadLevel::ReadCommittedVersions,
            Self::ReadCommitted => ReadLevel::ReadCommittedLocks,
            Self::RepeatableRead => ReadLevel::RepeatableRead,
            Self::Serializable => ReadLevel::Serializable,
            Self::Snapshot => ReadLevel::Snapshot,
        }
    }
}

impl SessionState {
    /// Says that the running statement is about to touch rows of a database, which begins the transaction if nothing did
    /// before. Under SNAPSHOT the transaction's view of the database is taken now. 3951 if the transaction began at
    /// another level, 3952 if the database does not allow SNAPSHOT.
    pub(crate) fn enter_database(&mut self, open: &Arc<OpenDatabase>) -> Result<(), SqlError> {
        let isolation = self.options.isolation;
        let began = *self.transactions.began_at.get_or_insert(isolation);
        if isolation != Isolation::Snapshot {
            if let Some(part) = self.transactions.existing_mut(open.id.0) {
                part.txn.leave_snapshot();
            }
            return Ok(());
        }
        if began != Isolation::Snapshot {
            return Err(message(3951, &[&open.name()]));
        }
        if !open.allows_snapshot() {
            return Err(message(3952, &[&open.name()]));
        }
        // Before the view: a definition committed in between is then told as changed, never taken for the view's.
        let definitions = open.catalog();
        let part = self.part(open.id)?;
        part.seen.get_or_insert(definitions);
        let view = part.snapshot.get_or_insert_with(|| open.storage.read_view(None)).clone();
        part.txn.use_snapshot(&view);
        Ok(())
    }

    /// 3961 under SNAPSHOT if another transaction changed a table's definition after this one's view was taken:
    /// definitions have no versions.
    pub(crate) fn check_unchanged(&self, open: &Arc<OpenDatabase>, table: ObjectId) -> Result<(), SqlError> {
        let Some(part) = self.transactions.existing(open.id.0).filter(|_| self.options.isolation == Isolation::Snapshot) else {
            return Ok(());
        };
        let Some(seen) = &part.seen else { return Ok(()) };
        let published = open.catalog();
        // What this transaction changed itself is not published yet.
        match (seen.tables.tables.get(&table.0), published.tables.tables.get(&table.0)) {
            (Some(then), Some(now)) if Arc::ptr_eq(then, now) => Ok(()),
            (None, None) => Ok(()),
            _ => Err(message(3961, &[&open.name()])),
        }
    }
}
