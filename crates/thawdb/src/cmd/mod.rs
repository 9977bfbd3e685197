//! The commands of the binary, one a module, and what they share.

pub mod bench;
pub mod demo;
pub mod dump;
pub mod figures;
pub mod fuzz;
pub mod load;
pub mod password;
pub mod serve;
pub mod simulate;
pub mod sql;
pub mod workspace;

use std::fmt;
use thawdb_types::SqlError;

/// Why a command failed: what to tell the user, whole sentences.
#[derive(Debug)]
pub struct Failure(pub String);

impl Failure {
    /// A failure of `what` because of `error`.
    pub fn of(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<thawdb_tds::client::ClientError> for Failure {
    fn from(error: thawdb_tds::client::ClientError) -> Self {
        Self(error.to_string())
    }
}
