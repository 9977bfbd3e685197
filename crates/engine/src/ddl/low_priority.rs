//! WAIT_AT_LOW_PRIORITY: how an index operation takes the table's lock without holding everybody else up.
//!
//! ```text
//! low priority, others pass by ── granted ─► held
//!        └─ MAX_DURATION over ─┬─ NONE ─────► waits as anybody does
//!                              ├─ SELF ─────► 1222, the statement ends
//!                              └─ BLOCKERS ─► sessions in the way are killed, then waits as anybody does
//! ```
//! Locks: the table's, of the session's owner. Failure: 1222, 1205, cancellation; nothing is held then that was not before.

use crate::ddl::index_options::LowPriority;
use crate::session::state::SessionState;
use std::collections::BTreeSet;
use thawdb_storage::locks::{LockMode, LockStatus, Resource};
use thawdb_tsql::ast::AbortAfterWait;
use thawdb_types::SqlError;

/// Takes an object lock to the end of the transaction, as `wait` says.
pub(crate) fn lock(session: &mut SessionState, resource: Resource, mode: LockMode, wait: Option<LowPriority>) -> Result<(), SqlError> {
    let Some(wait) = wait else { return session.lock(resource, mode, false) };
    if !wait.duration.is_zero() {
        match session.lock_at_low_priority(resource, mode, wait.duration) {
            Err(error) if error.number == 1222 && wait.after != AbortAfterWait::Self_ => {}
            other => return other,
        }
    }
    if wait.after == AbortAfterWait::Blockers {
        kill_blockers(session, resource, mode);
    }
    session.lock(resource, mode, false)
}

/// Kills the sessions that hold what `mode` does not go with.
fn kill_blockers(session: &SessionState, resource: Resource, mode: LockMode) {
    let own = session.ticket.id;
    let locks = session.engine.locks.locks();
    let in_the_way =
        locks.iter().filter(|lock| lock.resource == resource && lock.status == LockStatus::Grant && !lock.mode.compatible(mode));
    let blockers: BTreeSet<i16> =
        in_the_way.filter_map(|lock| i16::try_from(lock.party.session_id()?).ok()).filter(|blocker| *blocker != own).collect();
    for blocker in blockers {
        session.engine.kill(blocker);
    }
}
