//! Storage of an instance: what its databases share.
//!
//! One buffer pool, one memory account and one lock table serve all databases, so that memory is bounded once and a deadlock across databases
//! is seen. Databases get numbers as they are opened; they are not persistent.

use crate::database::Database;
use crate::error::StorageError;
use crate::locks::{LockInfo, LockManager};
use crate::memory::MemoryAccount;
use crate::pool::Pool;
use crate::spec::{DatabaseSpec, StorageConfig};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thawdb_device::Env;

/// Storage of one instance: the buffer pool and the open databases that share it.
pub struct Storage {
    env: Env,
    config: StorageConfig,
    pool: Arc<Pool>,
    locks: Arc<LockManager>,
    number_next: AtomicU32,
}

impl Storage {
    /// Storage in `env` under `config`.
    pub fn new(env: Env, config: StorageConfig) -> Arc<Self> {
        let pool = Pool::with_account(MemoryAccount::new(config.memory_bytes_max));
        let locks = Arc::new(LockManager::new(env.clone()));
        Arc::new(Self { env, config, pool, locks, number_next: AtomicU32::new(1) })
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The settings.
    pub fn config(&self) -> &StorageConfig {
        &self.config
    }

    /// The memory account.
    pub fn memory(&self) -> &Arc<MemoryAccount> {
        self.pool.account()
    }

    /// The lock table.
    pub fn lock_manager(&self) -> &Arc<LockManager> {
        &self.locks
    }

    /// Every lock held or waited for.
    pub fn locks(&self) -> Vec<LockInfo> {
        self.locks.locks()
    }

    /// Drops every clean page from the buffer pool (DBCC DROPCLEANBUFFERS).
    pub fn drop_clean_pages(&self) {
        self.pool.drop_clean();
    }

    fn number(&self) -> u32 {
        // Relaxed: only uniqueness matters.
        self.number_next.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the files of a new database; durable on return. Fails with `Io(AlreadyExists)` if a file is there.
    pub fn create_database(self: &Arc<Self>, spec: &DatabaseSpec) -> Result<Arc<Database>, StorageError> {
        Database::create(&self.pool, &self.env, &self.locks, self.number(), spec)
    }

    /// Opens a database after a clean shutdown or a crash; `primary` is its first data file, which names the others.
    pub fn open_database(self: &Arc<Self>, primary: &Path) -> Result<Arc<Database>, StorageError> {
        Database::open(&self.pool, &self.env, &self.locks, self.number(), primary)
    }
}
