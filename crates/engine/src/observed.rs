//! What `observe` has counted, as rows of the management views.

use crate::views::{Rows, big, text};
use thawdb_observe::sync::{LockKind, classes};
use thawdb_observe::wait;
use thawdb_types::Scalar;

/// Whole milliseconds of nanoseconds.
fn ms(ns: u64) -> Scalar {
    big(ns / 1_000_000)
}

/// sys.dm_os_wait_stats. Signal waits are not told apart here: a thread woken runs when the system lets it.
pub(crate) fn waits() -> Rows {
    let row = |stats: wait::WaitStats| vec![text(stats.kind.name()), big(stats.count), ms(stats.wait_ns), ms(stats.wait_ns_max), big(0)];
    wait::stats().into_iter().map(row).collect()
}

/// sys.dm_os_latch_stats.
pub(crate) fn latches() -> Rows {
    let latches = classes().into_iter().filter(|class| matches!(class.kind(), Some(LockKind::Mutex | LockKind::RwLock)));
    latches
        .map(|class| {
            let stats = class.stats();
            vec![text(class.name), big(stats.contentions), ms(stats.wait_ns), ms(stats.wait_ns_max)]
        })
        .collect()
}

/// sys.dm_os_spinlock_stats.
pub(crate) fn spinlocks() -> Rows {
    let spinlocks = classes().into_iter().filter(|class| class.kind() == Some(LockKind::SpinLock));
    spinlocks
        .map(|class| {
            let stats = class.stats();
            let each = if stats.contentions == 0 { 0.0 } else { stats.spins as f32 / stats.contentions as f32 };
            vec![text(class.name), big(stats.contentions), big(stats.spins), Scalar::Real(each), ms(stats.wait_ns), big(stats.backoffs)]
        })
        .collect()
}
