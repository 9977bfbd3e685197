//! How an instance is opened.

use std::fmt;
use std::path::PathBuf;
use thawdb_device::Env;

/// A text that must not reach a log or a message. Debug shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that must compare or hash it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        // Overwrites the bytes in place; a plain fill may be optimised away, which `black_box` prevents.
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        std::hint::black_box(&bytes);
    }
}

/// Settings of an instance.
#[derive(Clone)]
pub struct EngineConfig {
    /// Files, time, randomness.
    pub env: Env,
    /// Folder of master and of every database whose files CREATE DATABASE does not name; made if missing.
    pub data_folder: PathBuf,
    /// `max server memory`, in bytes.
    pub memory_bytes_max: u64,
    /// Password that sa has from now on; `None` keeps the one stored, and if none is stored sa cannot log in.
    pub sa_password: Option<Secret>,
    /// What `@@SERVERNAME` says.
    pub server_name: String,
}
