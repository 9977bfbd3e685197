//! Databases that master lists and that could not be opened: why, and what whoever names one is told.
//!
//! ```text
//! a file is not there, or the device fails ─► RECOVERY_PENDING, 945      what the files say is wrong ─► SUSPECT, 926
//! ```
//! They stay closed until the instance starts again. DROP DATABASE removes one: of a suspect one the files too, while those
//! that could not be read are left where they are, as SQL Server leaves an offline database's. The others go on.

use crate::instance::Engine;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::storage_error::plain;
use std::sync::Arc;
use thawdb_catalog::DatabaseRecord;
use thawdb_storage::StorageError;
use thawdb_types::SqlError;

/// Why one is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// Its files cannot be read: nothing is known to be wrong with what they say.
    Pending,
    /// They can, and are damaged.
    Suspect,
}

impl Unopened {
    /// sys.databases.state and state_desc.
    pub(crate) fn state(self) -> (u8, &'static str) {
        match self {
            Self::Pending => (3, "RECOVERY_PENDING"),
            Self::Suspect => (4, "SUSPECT"),
        }
    }

    fn error(self, name: &str) -> SqlError {
        match self {
            Self::Pending => message(945, &[&name]),
            Self::Suspect => message(926, &[&name]),
        }
    }
}

impl Engine {
    /// Remembers that a database could not be opened, and tells the error log why.
    pub(crate) fn note_unopened(&self, record: &DatabaseRecord, cause: StorageError) {
        let why = if matches!(cause, StorageError::Damage { .. }) { Unopened::Suspect } else { Unopened::Pending };
        self.unopened.lock().insert(record.id.0, why);
        let now = self.now_datetime();
        self.error_log.write(now, None, plain_text(&record.name, cause));
        self.error_log.write(now, None, why.error(&record.name).text);
    }

    /// Why a listed database is not open.
    pub(crate) fn unopened(&self, id: i32) -> Option<Unopened> {
        self.unopened.lock().get(&id).copied()
    }

    /// The open database of a name; 945 or 926 for one that could not be opened.
    pub(crate) fn usable_database(&self, name: &str) -> Result<Option<Arc<OpenDatabase>>, SqlError> {
        if let Some(open) = self.database_named(name) {
            return Ok(Some(open));
        }
        self.unopened_of(name).map_or(Ok(None), |(why, record)| Err(why.error(&record.name)))
    }

    fn unopened_of(&self, name: &str) -> Option<(Unopened, DatabaseRecord)> {
        let listed = self.master.lock().databases.values().find(|record| record.name.eq_ignore_ascii_case(name)).cloned()?;
        Some((self.unopened(listed.id.0)?, (*listed).clone()))
    }

    /// Drops the database of that name if it is one that could not be opened; false if it is not.
    pub(crate) fn remove_unopened(&self, name: &str) -> Result<bool, SqlError> {
        let Some((why, mut record)) = self.unopened_of(name) else { return Ok(false) };
        if why == Unopened::Pending {
            record.files.clear();
        }
        self.finish_removal(&record)?;
        self.unopened.lock().remove(&record.id.0);
        Ok(true)
    }
}

fn plain_text(name: &str, cause: StorageError) -> String {
    let SqlError { number, severity, state, text, .. } = plain(name, cause);
    format!("Error: {number}, Severity: {severity}, State: {state}. {text}")
}
