//! The embedding API: the engine without a wire.
//!
//! ```text
//! open(folder) ─► Instance ── session() ─► Session ── execute ─► Results { sets of RecordBatch, messages, counts }
//!                     │                       ├── stream  ─► Stream: the same, piece by piece, while it runs
//!                     └ close()               └── bulk    ─► BulkLoad: rows in as columns
//! ```
//!
//! Invariants: E1 a folder is open in one instance at a time; the engine sees to it. E2 errors are the server's own
//! ([`SqlError`]): the same numbers a driver would get. E3 a session runs one thing at a time, because everything that
//! runs borrows it.
//!
//! Locks: none of its own. Failure: a statement that fails is an error of that call and leaves the session usable,
//! unless severity 20 or above ended it.

mod bulk;
mod result;
mod session;
mod stream;

pub use bulk::{BulkColumn, BulkLoad};
pub use result::{METADATA_SQL_TYPE, ResultSet, Results};
pub use session::Session;
pub use stream::{Stream, StreamItem};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use thawdb_engine::{Engine, EngineConfig, Secret};
use thawdb_types::SqlError;

/// Memory an instance takes unless told otherwise: what a laptop can spare.
pub const MEMORY_BYTES_DEFAULT: u64 = 1 << 30;

/// Settings of an instance.
#[derive(Clone)]
pub struct Options {
    /// `max server memory`, in bytes.
    pub memory_bytes_max: u64,
    /// Password of sa, for those who also serve the instance; embedding needs none.
    pub sa_password: Option<Secret>,
    /// What `@@SERVERNAME` says.
    pub server_name: String,
    /// Files, time and randomness; the operating system's unless a test says otherwise.
    pub env: thawdb_device::Env,
}

impl Default for Options {
    fn default() -> Self {
        Self { memory_bytes_max: MEMORY_BYTES_DEFAULT, sa_password: None, server_name: server_name(), env: thawdb_device::os::env() }
    }
}

/// The machine's name in SQL Server's spelling, or THAWDB where it has none.
pub fn server_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "THAWDB".into() } else { name.to_uppercase() }
}

/// Opens the instance in `folder`, making it and its system databases if there are none.
///
/// # Errors
/// What the engine says: the folder cannot be used, is open elsewhere, or is damaged.
pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Instance, SqlError> {
    let folder = absolute(folder.as_ref());
    let config = EngineConfig {
        env: options.env,
        data_folder: folder,
        memory_bytes_max: options.memory_bytes_max,
        sa_password: options.sa_password,
        server_name: options.server_name.clone(),
    };
    let engine = Engine::open(config)?;
    Ok(Instance { engine, server_name: options.server_name })
}

/// The folder seen from the root, so that a later change of the working directory does not move it.
fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// A running instance. Cheap to clone; [`Instance::close`] ends it for all.
#[derive(Clone)]
pub struct Instance {
    engine: Arc<Engine>,
    server_name: String,
}

impl Instance {
    /// A session with all rights, in master.
    pub fn session(&self) -> Session {
        Session::new(self.engine.internal_session())
    }

    /// The engine underneath, for serving it.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What `@@SERVERNAME` says.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Checkpoints and closes every database. Sessions still open fail from here on.
    ///
    /// # Errors
    /// When something could not be written; recovery will see to it at the next start.
    pub fn close(&self) -> Result<(), SqlError> {
        self.engine.close()
    }
}
