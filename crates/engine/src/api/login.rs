//! Who asks to come in, and what they are told.

use crate::api::config::Secret;
use thawdb_types::{Collation, SqlError};

/// What a client says of itself when it logs in.
#[derive(Debug, Clone)]
pub struct LoginRequest {
    /// Login name.
    pub user: String,
    /// Its password, as typed.
    pub password: Secret,
    /// Database to begin in; empty for the login's default.
    pub database: String,
    /// Language; empty for the login's default.
    pub language: String,
    /// APP_NAME().
    pub app_name: String,
    /// HOST_NAME().
    pub host_name: String,
    /// Name of the client library, as sys.dm_exec_sessions shows it.
    pub client_interface: String,
    /// Process id on the client's machine.
    pub client_process_id: i32,
    /// Its network address, or `<local machine>`.
    pub client_address: String,
    /// Size of its packets.
    pub packet_bytes: u32,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}

impl Default for LoginRequest {
    fn default() -> Self {
        Self {
            user: String::new(),
            password: Secret::new(""),
            database: String::new(),
            language: String::new(),
            app_name: String::new(),
            host_name: String::new(),
            client_interface: String::new(),
            client_process_id: 0,
            client_address: "<local machine>".into(),
            packet_bytes: 4096,
            encrypted: false,
        }
    }
}

/// What the server tells a client that it let in.
#[derive(Debug, Clone)]
pub struct LoginInfo {
    /// The session's number (`@@SPID`), from 51.
    pub session_id: i16,
    /// The database in use.
    pub database: String,
    /// The language in use.
    pub language: String,
    /// Collation of the instance.
    pub collation: Collation,
    /// `@@SERVERNAME`.
    pub server_name: String,
    /// Messages 5701 and 5703, in the order to send them.
    pub messages: Vec<SqlError>,
}

/// Product name of the login acknowledgement: drivers compare it.
pub const PROGRAM_NAME: &str = "Microsoft SQL Server";

/// Product version of the login acknowledgement: major, minor, build (SQL Server 2022 RTM, 16.0.1000).
pub const PRODUCT_VERSION: (u8, u8, u16) = (16, 0, 1000);
