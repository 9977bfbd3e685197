//! A second thread that a build keeps while it works.
//!
//! Pieces of a build take a millisecond, and a thread that has to be made, or woken on a processor that sleeps, takes a tenth of
//! one and more. So the thread stays, and whoever waits looks for a moment before it sleeps.
//!
//! Invariants: 1. one piece at a time ([`Helper::begin`] after [`Pending::wait`] of the one before, or after it was given up).
//! 2. What a piece has read counts for whoever waits for it. 3. Dropped, it ends the piece it is at.
//!
//! Locks: `BUILD_HELPER` (5) guards what is handed over; nothing is called under it. Failure: a panic goes on where it is
//! waited for. Where no thread can be started the caller does the work.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use thawdb_observe::sync::{Condvar, LockClass, Mutex};
use thawdb_storage::page_reads::{PageReads, count_for_me, page_reads};

static BUILD_HELPER: LockClass = LockClass::new("BUILD_HELPER", 5);

/// Looks before a thread sleeps: some tens of microseconds.
const LOOKS_MAX: usize = 1_000;

type Piece = Box<dyn FnOnce() + Send>;

/// The thread.
pub(super) struct Helper {
    next: Arc<Handover<Option<Piece>>>,
    thread: Option<JoinHandle<()>>,
}

/// A piece of work that was handed to it.
pub(super) struct Pending<T> {
    outcome: Arc<Handover<(thread::Result<T>, PageReads)>>,
}

/// A place for one value, which one thread puts there and another takes.
struct Handover<T> {
    is_there: AtomicBool,
    value: Mutex<Option<T>>,
    changed: Condvar,
}

impl<T> Handover<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_there: AtomicBool::new(false), value: Mutex::new(&BUILD_HELPER, None), changed: Condvar::new() })
    }

    /// Waits for the value before to be taken.
    fn put(&self, value: T) {
        let mut place = self.value.lock();
        while place.is_some() {
            self.changed.wait(&mut place);
        }
        *place = Some(value);
        self.is_there.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    fn take(&self) -> T {
        let _ = (0..LOOKS_MAX).any(|_| {
            spin_loop();
            self.is_there.load(Ordering::Acquire)
        });
        let mut value = self.value.lock();
        loop {
            if let Some(taken) = value.take() {
                self.is_there.store(false, Ordering::Release);
                self.changed.notify_one();
                return taken;
            }
            self.changed.wait(&mut value);
        }
    }
}

impl Helper {
    pub(super) fn start() -> Self {
        let next = Handover::<Option<Piece>>::new();
        let pieces = next.clone();
        let work = move || {
            while let Some(piece) = pieces.take() {
                piece();
            }
        };
        Self { next, thread: thread::Builder::new().name("index build".into()).spawn(work).ok() }
    }

    /// Has it do a piece of work.
    pub(super) fn begin<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
        let outcome = Handover::new();
        let told = outcome.clone();
        let piece = move || {
            let before = page_reads();
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            told.put((done, page_reads().since(&before)));
        };
        if self.thread.is_some() {
            self.next.put(Some(Box::new(piece)));
        } else {
            piece();
        }
        Pending { outcome }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.next.put(None);
            let _ = thread.join();
        }
    }
}

impl<T> Pending<T> {
    /// What came of it.
    pub(super) fn wait(self) -> T {
        let (done, reads) = self.outcome.take();
        count_for_me(&reads);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::Helper;

    #[test]
    fn pieces_are_done_one_after_another_and_panics_go_on() {
        let helper = Helper::start();
        let texts: Vec<String> = (0..100).map(|number| helper.begin(move || number.to_string()).wait()).collect();
        assert_eq!(texts.last().map(String::as_str), Some("99"));
        let pending = helper.begin(|| std::panic::panic_any(7));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pending.wait()));
        assert_eq!(outcome.err().and_then(|panic| panic.downcast_ref::<i32>().copied()), Some(7));
        assert_eq!(helper.begin(|| 8).wait(), 8);
    }

    #[test]
    fn a_piece_that_nobody_waits_for_is_done_before_the_helper_ends() {
        let (sending, sent) = std::sync::mpsc::channel();
        let helper = Helper::start();
        drop(helper.begin(move || sending.send(1)));
        drop(helper);
        assert_eq!(sent.recv(), Ok(1));
    }
}
