//! The instance: its databases and its sessions.

use crate::api::config::EngineConfig;
use crate::api::login::{LoginInfo, LoginRequest};
use crate::session::Session;
use std::sync::Arc;
use thawdb_types::SqlError;

/// A running instance. One a data folder.
pub struct Engine {
    config: EngineConfig,
}

impl Engine {
    /// Opens the instance in `config.data_folder`, creating master, tempdb, model and msdb if the folder is empty.
    pub fn open(config: EngineConfig) -> Result<Arc<Self>, SqlError> {
        Ok(Arc::new(Self { config }))
    }

    /// Checks name and password and opens a session. 18456 whatever was wrong with them, 4060 for the database.
    pub fn login(self: &Arc<Self>, request: LoginRequest) -> Result<(Session, LoginInfo), SqlError> {
        let _ = (&self.config, request);
        Err(SqlError { number: 18456, severity: 14, state: 1, text: "Login failed.".into(), line: 0, procedure: None })
    }

    /// A session as sa without a login, for embedding and for the engine's own use.
    pub fn internal_session(self: &Arc<Self>) -> Session {
        Session::new(self.clone())
    }

    /// Ends a session's statement and the session itself (KILL); false if there is none with this number.
    pub fn kill(&self, session_id: i16) -> bool {
        let _ = session_id;
        false
    }

    /// Checkpoints and closes every database. Sessions still open fail from here on.
    pub fn close(&self) -> Result<(), SqlError> {
        Ok(())
    }
}
