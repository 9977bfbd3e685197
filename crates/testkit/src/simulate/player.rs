//! One session's side of the ledger: its database, its transaction, what it has changed and not committed.

use super::client::Client;
use super::model::{Change, DatabaseModel};

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
    /// Changes there were at the savepoint.
    pub savepoint: Option<usize>,
}

impl Player {
    /// Without a session yet.
    pub fn new(database: &str) -> Self {
        Self { client: None, database: database.to_owned(), is_in_transaction: false, changes: Vec::new(), savepoint: None }
    }

    /// What it sees.
    pub fn view(&self, committed: &DatabaseModel) -> DatabaseModel {
        committed.with(&self.changes)
    }

    /// Its transaction is over.
    pub fn end_transaction(&mut self) -> Vec<Change> {
        self.is_in_transaction = false;
        self.savepoint = None;
        std::mem::take(&mut self.changes)
    }

    /// Its session is over, and its transaction with it.
    pub fn end_session(&mut self) {
        self.client = None;
        self.end_transaction();
    }
}
