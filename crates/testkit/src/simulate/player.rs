//! One session's side of the ledger: its database, its transaction, what it has changed and not committed.

use super::client::Client;
use super::model::{Change, DatabaseModel};

/// How a session's reads and writes are kept from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// By the newest committed rows, versions or locks.
    ReadCommitted,
    /// With locks on what was read.
    RepeatableRead,
    /// With locks on ranges.
    Serializable,
    /// By what there was when the transaction first looked.
    Snapshot,
}

impl Isolation {
    /// As T-SQL names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
            Self::Snapshot => "SNAPSHOT",
        }
    }
}

/// A session and what it would make of its database.
pub struct Player {
    /// The session; none if it ended and was not opened again.
    pub client: Option<Client>,
    /// Database it is in.
    pub database: String,
    /// Whether BEGIN TRANSACTION was said.
    pub is_in_transaction: bool,
    /// What its open transaction has done, in order.
    pub changes: Vec<Change>,
    /// Changes there were at the savepoint, of the database and of temporary tables.
    pub savepoint: Option<(usize, usize)>,
    /// The isolation of its transaction.
    pub isolation: Isolation,
    /// What the database held when its transaction under SNAPSHOT first looked.
    pub snapshot: Option<DatabaseModel>,
    /// Its temporary tables.
    pub temporary: DatabaseModel,
    /// What its open transaction has done to them.
    pub temporary_changes: Vec<Change>,
}

impl Player {
    /// Without a session yet.
    pub fn new(database: &str) -> Self {
        Self {
            client: None,
            database: database.to_owned(),
            is_in_transaction: false,
            changes: Vec::new(),
            savepoint: None,
            isolation: Isolation::ReadCommitted,
            snapshot: None,
            temporary: DatabaseModel::default(),
            temporary_changes: Vec::new(),
        }
    }

    /// What it sees; its snapshot is taken when it first looks.
    pub fn view(&mut self, committed: &DatabaseModel) -> DatabaseModel {
        if self.is_in_transaction && self.isolation == Isolation::Snapshot {
            return self.snapshot.get_or_insert_with(|| committed.clone()).with(&self.changes);
        }
        committed.with(&self.changes)
    }

    /// Its temporary tables as it sees them.
    pub fn temporary_view(&self) -> DatabaseModel {
        self.temporary.with(&self.temporary_changes)
    }

    /// Its transaction has committed: what it did to temporary tables stays.
    pub fn keep_temporary(&mut self) {
        self.temporary = self.temporary_view();
        self.temporary_changes.clear();
    }

    /// Its transaction is over.
    pub fn end_transaction(&mut self) -> Vec<Change> {
        self.is_in_transaction = false;
        self.savepoint = None;
        self.snapshot = None;
        self.temporary_changes.clear();
        std::mem::take(&mut self.changes)
    }

    /// Its session is over, and its transaction with it.
    pub fn end_session(&mut self) {
        self.client = None;
        self.end_transaction();
        self.temporary = DatabaseModel::default();
    }
}
