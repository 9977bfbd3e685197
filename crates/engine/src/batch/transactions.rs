//! BEGIN, COMMIT, ROLLBACK and SAVE TRANSACTION, as statements and as requests of the client's transaction manager.
//!
//! ```text
//! BEGIN      count 0 → 1: a transaction begins            count n → n+1: only counted
//! COMMIT     count 1 → 0: everything is committed         count n → n-1: only counted
//! ROLLBACK   any count → 0: everything is taken back      ROLLBACK name: to the savepoint, count unchanged
//! ```
//!
//! Messages: 3902 and 3903 outside a transaction, 628 for SAVE there, 3930/3931 when it is doomed, 6401 for a name that
//! is neither the outermost transaction's nor a savepoint's.

use crate::api::sink::EnvChange;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::session::state::SessionState;
use thawdb_types::SqlError;

/// Bytes of a transaction's name that count: SQL Server uses the first 32.
const NAME_CHARACTERS: usize = 32;

fn cut_name(name: &str) -> String {
    name.chars().take(NAME_CHARACTERS).collect()
}

/// BEGIN TRANSACTION.
pub(crate) fn begin(session: &mut SessionState, out: &mut Outbox<'_>, name: Option<&str>) -> Result<(), SqlError> {
    if session.transactions.count == 0 {
        let descriptor = SessionState::new_descriptor();
        let temp = session.temp.clone();
        session.transactions.begin(name.map(cut_name), descriptor, &temp);
        session.note_moment();
        *session.transactions.began_ticks.get_mut() = session.now_ticks;
        out.env_change(&EnvChange::BeginTransaction { descriptor });
    } else {
        session.transactions.count += 1;
    }
    session.note_transaction();
    Ok(())
}

/// COMMIT TRANSACTION: a name is not looked at, as in SQL Server.
pub(crate) fn commit(session: &mut SessionState, out: &mut Outbox<'_>) -> Result<(), SqlError> {
    match session.transactions.count {
        0 => Err(message(3902, &[])),
        _ if session.transactions.doomed => Err(message(3930, &[])),
        count if out.captured_since().is_some_and(|begun| count <= begun) => Err(message(3916, &[])),
        1 => {
            let descriptor = session.transactions.descriptor;
            session.commit_work()?;
            out.env_change(&EnvChange::CommitTransaction { descriptor });
            Ok(())
        }
        _ => {
            session.transactions.count -= 1;
            session.note_transaction();
            Ok(())
        }
    }
}

/// ROLLBACK TRANSACTION, to the savepoint `name` or whole.
pub(crate) fn rollback(session: &mut SessionState, out: &mut Outbox<'_>, name: Option<&str>) -> Result<(), SqlError> {
    if session.transactions.count == 0 {
        return Err(message(3903, &[]));
    }
    if out.is_capturing() {
        return Err(message(3915, &[]));
    }
    if let Some(name) = name.map(cut_name) {
        if let Some(index) = session.transactions.savepoint(&name) {
            if session.transactions.doomed {
                return Err(message(3931, &[]));
            }
            let undone = session.transactions.rollback_to_savepoint(index, &mut session.temp);
            session.views.lock().clear();
            return undone.map_err(|error| crate::storage_error::plain(&session.database.name(), error));
        }
        if session.transactions.name.as_deref() != Some(name.as_str()) {
            return Err(message(6401, &[&name]));
        }
    }
    let descriptor = session.transactions.descriptor;
    session.rollback_work()?;
    session.cursors.rolled_back();
    out.env_change(&EnvChange::RollbackTransaction { descriptor });
    Ok(())
}

/// SAVE TRANSACTION.
pub(crate) fn save(session: &mut SessionState, name: &str) -> Result<(), SqlError> {
    match session.transactions.count {
        0 => Err(message(628, &[])),
        _ if session.transactions.doomed => Err(message(3930, &[])),
        _ => {
            let temp = session.temp.clone();
            session.transactions.save(cut_name(name), &temp);
            Ok(())
        }
    }
}
