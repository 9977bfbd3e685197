//! Batches on threads, where io_uring is refused: each transfer a pread or pwrite.
//!
//! One of the modules where `unsafe` is allowed: workers reach transfers on the caller's stack.
//!
//! 1. A transfer is performed by exactly one thread: [`Batch::help`] takes indexes by fetch-add.
//! 2. The caller returns only when all are done ([`run`] waits for `unfinished` to reach 0), and helps itself, so
//!    a batch ends even if no worker ever comes. A worker that comes late finds no index left and touches nothing.
#![allow(unsafe_code)]

use super::transfer::Transfer;
use super::workers::Workers;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use thawdb_observe::sync::{Condvar, LockClass, Mutex};

/// Threads per device: a queue depth at which disks reach most of their speed.
pub(super) const THREADS_MAX: usize = 16;

static BATCH: LockClass = LockClass::new("DEVICE_BATCH", 5);

struct Batch {
    transfers: *mut Transfer,
    count: usize,
    next: AtomicUsize,
    unfinished: Mutex<usize>,
    finished: Condvar,
}

// SAFETY: `transfers` is dereferenced only in `help`, for an index that one thread owns, while `run` keeps the slice
// borrowed; everything else is atomic or locked.
unsafe impl Send for Batch {}
// SAFETY: as for `Send`.
unsafe impl Sync for Batch {}

/// Performs all transfers.
///
/// # Safety
/// The buffers and the files of the transfers must stay borrowed until this returns.
pub(super) unsafe fn run(workers: &Workers, transfers: &mut [Transfer]) {
    let count = transfers.len();
    let batch = Arc::new(Batch {
        transfers: transfers.as_mut_ptr(),
        count,
        next: AtomicUsize::new(0),
        unfinished: Mutex::new(&BATCH, count),
        finished: Condvar::new(),
    });
    for _ in 1..count.min(THREADS_MAX) {
        let batch = Arc::clone(&batch);
        // SAFETY: `run` does not return before all transfers are done.
        workers.submit(Box::new(move || unsafe { batch.help() }));
    }
    // SAFETY: as above.
    unsafe { batch.help() };
    let mut unfinished = batch.unfinished.lock();
    while *unfinished > 0 {
        batch.finished.wait(&mut unfinished);
    }
}

impl Batch {
    /// Performs transfers until none is left.
    ///
    /// # Safety
    /// As long as an index is left, the slice, its buffers and files must be borrowed by whoever made the batch.
    unsafe fn help(&self) {
        loop {
            // Relaxed: the index alone is taken; what the transfer holds was published by the queue's lock.
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.count {
                return;
            }
            // SAFETY: the index is in the slice and ours alone; `unfinished` is above 0 until we are done with it.
            unsafe { (*self.transfers.add(index)).perform() };
            let mut unfinished = self.unfinished.lock();
            *unfinished -= 1;
            if *unfinished == 0 {
                self.finished.notify_all();
            }
        }
    }
}
