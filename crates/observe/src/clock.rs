//! The monotonic clock behind every statistic of this crate.
//!
//! `observe` stands below `device` and cannot ask its clock, so the clock is injected: [`set`] hands in a function
//! (a simulation's, say) and [`now_ns`] asks it. Until then it is the system's monotonic clock.
//!
//! 1. Nothing but statistics depends on this clock, so replacing it cannot change a result.
//! 2. It is one for the process: a test that replaces it must not run beside another that does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

type Source = Arc<dyn Fn() -> u64 + Send + Sync>;

static REPLACED: AtomicBool = AtomicBool::new(false);
static SOURCE: RwLock<Option<Source>> = RwLock::new(None);
static START: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds since an arbitrary start.
pub fn now_ns() -> u64 {
    // Relaxed: a thread that sees the replacement late reads the system's clock once more, which harms only a figure.
    if REPLACED.load(Ordering::Relaxed)
        && let Some(source) = SOURCE.read().unwrap_or_else(PoisonError::into_inner).as_ref()
    {
        return source();
    }
    let elapsed = START.get_or_init(Instant::now).elapsed().as_nanos();
    u64::try_from(elapsed).unwrap_or(u64::MAX)
}

/// Replaces the clock, or with `None` gives the system's back.
pub fn set(source: Option<Source>) {
    let mut held = SOURCE.write().unwrap_or_else(PoisonError::into_inner);
    REPLACED.store(source.is_some(), Ordering::Relaxed);
    *held = source;
}
