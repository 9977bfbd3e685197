//! The wish that a statement ends: an attention, KILL, a timeout, a shutdown.
//!
//! One token goes with each request through all layers. Who works checks it at every batch, page or retry
//! ([`CancelToken::check`], one relaxed load); who blocks hands in a way to be woken ([`CancelToken::on_cancel`]).
//!
//! 1. The strongest reason stays: a KILL is not weakened by a later attention ([`CancelToken::cancel`]).
//! 2. A waker handed in after the fact is called at once, so that no cancellation is slept through.
//!
//! A token is not reused for the next request: an attention that comes late would end the wrong one.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Why a request ends, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CancelReason {
    /// The client sent an attention.
    Attention = 1,
    /// Its time is over.
    Timeout = 2,
    /// Another session killed this one.
    Kill = 3,
    /// The instance stops.
    Shutdown = 4,
}

/// The request was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// Why.
    pub reason: CancelReason,
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancelled: {:?}", self.reason)
    }
}

impl std::error::Error for Cancelled {}

type Waker = Arc<dyn Fn() + Send + Sync>;

/// A flag that all layers of a request share; clones are the same flag.
#[derive(Clone, Default)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    reason: AtomicU8,
    wakers: Mutex<Wakers>,
}

#[derive(Default)]
struct Wakers {
    next: u64,
    list: Vec<(u64, Waker)>,
}

/// While it lives, its waker is called on cancellation.
#[must_use = "the waker is forgotten when this is dropped"]
pub struct CancelSubscription {
    shared: Arc<Shared>,
    number: u64,
}

impl CancelToken {
    /// A token nobody cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// An error if the request is to end; cheap enough for inner loops over batches.
    #[inline]
    pub fn check(&self) -> Result<(), Cancelled> {
        match self.reason() {
            None => Ok(()),
            Some(reason) => Err(Cancelled { reason }),
        }
    }

    /// Why the request is to end, if it is.
    #[inline]
    pub fn reason(&self) -> Option<CancelReason> {
        // Relaxed: the flag says "stop soon" and publishes nothing else.
        match self.shared.reason.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(CancelReason::Attention),
            2 => Some(CancelReason::Timeout),
            3 => Some(CancelReason::Kill),
            _ => Some(CancelReason::Shutdown),
        }
    }

    /// Asks the request to end, and wakes those who block for it.
    pub fn cancel(&self, reason: CancelReason) {
        self.shared.reason.fetch_max(reason as u8, Ordering::Relaxed);
        let wakers: Vec<Waker> = self.shared.wakers().list.iter().map(|(_, waker)| Arc::clone(waker)).collect();
        wakers.iter().for_each(|waker| waker());
    }

    /// Has `waker` called (from the cancelling thread, with no lock of the token held) when the request is cancelled.
    /// It may be called more than once, and once more after the subscription is dropped.
    pub fn on_cancel(&self, waker: impl Fn() + Send + Sync + 'static) -> CancelSubscription {
        let waker: Waker = Arc::new(waker);
        let number = {
            let mut wakers = self.shared.wakers();
            wakers.next += 1;
            let number = wakers.next;
            wakers.list.push((number, Arc::clone(&waker)));
            number
        };
        // Asked only after the waker is in the list: a cancellation before is seen here, one after finds the waker.
        if self.reason().is_some() {
            waker();
        }
        CancelSubscription { shared: Arc::clone(&self.shared), number }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("reason", &self.reason()).finish()
    }
}

impl Shared {
    fn wakers(&self) -> std::sync::MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CancelSubscription {
    fn drop(&mut self) {
        self.shared.wakers().list.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_strongest_reason_stays() {
        let token = CancelToken::new();
        assert_eq!(token.check(), Ok(()));
        let other = token.clone();
        other.cancel(CancelReason::Kill);
        other.cancel(CancelReason::Attention);
        assert_eq!(token.check(), Err(Cancelled { reason: CancelReason::Kill }));
    }

    #[test]
    fn wakers_are_called_before_and_after_the_fact_and_forgotten_when_dropped() {
        let token = CancelToken::new();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = |calls: &Arc<AtomicUsize>| {
            let calls = Arc::clone(calls);
            move || {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        };
        let kept = token.on_cancel(counted(&calls));
        drop(token.on_cancel(counted(&calls)));
        token.cancel(CancelReason::Attention);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        drop(kept);
        let _late = token.on_cancel(counted(&calls));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
