//! A database's life: made, listed, removed, so that a crash at any step leaves it whole or gone.
//!
//! ```text
//! create:  record Creating ─► make files, empty catalog ─► record Online ─► listed
//! drop:    record Dropping ─► unlisted ─► close ─► remove files ─► record removed
//! start:   Creating and Dropping are removed, files and record
//! ```
//!
//! 1. `Creating` is recorded only after the files were seen not to exist, so removing them at start removes nobody
//!    else's (`create_database`).
//! 2. A name and a number belong to one database from its first record to the removal of its last (under MASTER).

use crate::instance::startup::make_database;
use crate::instance::{Engine, MASTER_ID};
use crate::messages::message;
use crate::storage_error::{self, plain};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, DatabaseRecord, DatabaseState, InstanceCatalog};
use thawdb_storage::{FileKind, FileSpec, StorageError, Txn};
use thawdb_types::SqlError;

/// First size of a data file and of a log file whose SIZE is not given (SQL Server takes model's: 8 MB each), and the
/// growth of both (64 MB).
pub(crate) const FILE_BYTES: (u64, u64) = (8 << 20, 64 << 20);

/// First number of a user's database.
const FIRST_USER_DATABASE: i32 = 5;

/// One data and one log file under `folder`.
pub(crate) fn system_files(folder: &Path, data_name: &str, log_name: &str, data_file: &str, log_file: &str) -> Vec<FileSpec> {
    vec![
        file_spec(data_name, folder.join(format!("{data_file}.mdf")), FileKind::Rows { filegroup: 1 }),
        file_spec(log_name, folder.join(format!("{log_file}.ldf")), FileKind::Log),
    ]
}

/// A file with the default sizes.
pub(crate) fn file_spec(name: &str, path: PathBuf, kind: FileKind) -> FileSpec {
    FileSpec { name: name.into(), path, kind, size_bytes: FILE_BYTES.0, size_bytes_max: None, growth_bytes: FILE_BYTES.1 }
}

impl Engine {
    /// Changes what master records, in one transaction, and publishes it.
    pub(crate) fn change_master<R>(
        &self,
        change: impl FnOnce(&mut InstanceCatalog, &mut Txn) -> Result<R, thawdb_catalog::CatalogError>,
    ) -> Result<R, SqlError> {
        let master = self.database(MASTER_ID).ok_or_else(|| message(911, &[&"master"]))?;
        let mut published = self.master.lock();
        let mut next = published.clone();
        let mut txn = master.storage.begin();
        let result = change(&mut next, &mut txn).map_err(|e| storage_error::catalog("master", e))?;
        txn.commit().map_err(|e| plain("master", e))?;
        let same = published.security.version == next.security.version;
        *published = next;
        if !same {
            crate::security::context::changed();
        }
        Ok(result)
    }

    /// Number for a new database of this name: 1801 if there is one already.
    pub(crate) fn claim_database_number(&self, name: &str) -> Result<DatabaseId, SqlError> {
        let master = self.master.lock();
        if master.databases.values().any(|d| d.name.eq_ignore_ascii_case(name)) || name.eq_ignore_ascii_case("tempdb") {
            return Err(message(1801, &[&name]).with_state(3));
        }
        let number = (FIRST_USER_DATABASE..).find(|id| !master.databases.contains_key(id));
        Ok(DatabaseId(number.expect("numbers do not run out")))
    }

    /// Makes a database as `record` says, `Online` when done.
    pub(crate) fn add_database(&self, mut record: DatabaseRecord) -> Result<(), SqlError> {
        for file in &record.files {
            if self.config.env.device.exists(&file.path) {
                return Err(message(5170, &[&file.path.display()]));
            }
        }
        record.state = DatabaseState::Creating;
        let creating = record.clone();
        self.change_master(|instance, txn| instance.put_database(txn, creating))?;
        record.state = DatabaseState::Online;
        let made = match make_database(&self.storage, &record, false) {
            Ok(made) => made,
            Err(error) => {
                let failure = creation_error(&record, error);
                self.finish_removal(&record)?;
                return Err(failure);
            }
        };
        let online = record.clone();
        self.change_master(|instance, txn| instance.put_database(txn, online))?;
        self.databases.write().insert(record.id.0, Arc::new(made));
        Ok(())
    }

    /// Removes an open database that nobody uses.
    pub(crate) fn remove_database(&self, id: DatabaseId) -> Result<(), SqlError> {
        let Some(database) = self.database(id) else { return Ok(()) };
        let mut record = (*database.record()).clone();
        record.state = DatabaseState::Dropping;
        let dropping = record.clone();
        self.change_master(|instance, txn| instance.put_database(txn, dropping))?;
        self.databases.write().remove(&id.0);
        // What is not closed cleanly is removed all the same: nothing of it is needed any more.
        let _ = database.storage.close();
        drop(database);
        self.finish_removal(&record)
    }

    /// Removes what is left of a database that is not to be: its files, then its record.
    pub(crate) fn finish_removal(&self, record: &DatabaseRecord) -> Result<(), SqlError> {
        for file in &record.files {
            if self.config.env.device.exists(&file.path) {
                self.config.env.device.remove(&file.path).map_err(|e| plain(&record.name, e.into()))?;
            }
        }
        let id = record.id;
        self.change_master(|instance, txn| instance.remove_database(txn, id))
    }

    /// Records a change of a database's options, name or files.
    pub(crate) fn change_database(&self, id: DatabaseId, change: impl FnOnce(&mut DatabaseRecord)) -> Result<(), SqlError> {
        let Some(database) = self.database(id) else { return Err(message(911, &[&id.0])) };
        let mut record = (*database.record()).clone();
        change(&mut record);
        let recorded = record.clone();
        // tempdb is made anew at every start: its changes are kept in memory only.
        if id != crate::instance::TEMPDB_ID {
            self.change_master(|instance, txn| instance.put_database(txn, recorded))?;
        }
        database.set_record(Arc::new(record));
        // The owner is dbo there.
        crate::security::context::changed();
        Ok(())
    }
}

/// What CREATE DATABASE says when its files cannot be made: 5170, 5123, or what storage says.
fn creation_error(record: &DatabaseRecord, error: StorageError) -> SqlError {
    match &error {
        StorageError::Io(device) if device.kind == thawdb_device::DeviceErrorKind::AlreadyExists => {
            message(5170, &[&device.path.display()])
        }
        StorageError::Io(device) => message(5123, &[&storage_error::operating_system_error(device.os_error), &device.path.display()]),
        _ => plain(&record.name, error),
    }
}
