//! Batches from several threads to one, in a queue of bounded length.
//!
//! ```text
//! Sender::send ─► | part, batch | part, batch | ... | ─► Exchange::receive        Sender dropped: one sender fewer
//!   full: CXPACKET                                          empty: CXCONSUMER     fail: the first failure stays
//! ```
//! Invariants: 1. batches of one sender come in the order in which they were sent. 2. `receive` ends when every sender is
//! gone and the queue is empty, or at once with the first failure. 3. Once the receiver is gone (`Closing` dropped) or a
//! sender failed, no `send` waits and [`Exchange::is_closed`] tells whoever works on, so that all threads end soon.
//!
//! Lock: `EXCHANGE` (5), nothing is called under it.

use crate::exec::Batch;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_observe::sync::{Condvar, LockClass, Mutex};
use thawdb_observe::wait::{self, WaitKind};
use thawdb_storage::page_reads::PageReads;
use thawdb_types::SqlError;

static EXCHANGE: LockClass = LockClass::new("EXCHANGE", 5);

/// What a sender's work came to, beside its batches.
#[derive(Debug, Default)]
pub(super) struct WorkReport {
    pub(super) reads: PageReads,
    pub(super) null_eliminated: bool,
    pub(super) spilled_bytes: u64,
    pub(super) memory_bytes_peak: usize,
    pub(super) infos: Vec<SqlError>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<(usize, Batch)>,
    senders: usize,
    failure: Option<SqlError>,
    reports: Vec<WorkReport>,
}

/// The queue.
pub(super) struct Exchange {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    closed: AtomicBool,
    batches_max: usize,
}

impl Exchange {
    /// A queue of so many batches at most.
    pub(super) fn new(batches_max: usize) -> Self {
        Self {
            state: Mutex::new(&EXCHANGE, State::default()),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            closed: AtomicBool::new(false),
            batches_max,
        }
    }

    /// One sender more.
    pub(super) fn sender(&self) -> Sender<'_> {
        self.state.lock().senders += 1;
        Sender { exchange: self }
    }

    /// Closes the exchange when it is dropped: held by the receiver.
    pub(super) fn closing(&self) -> Closing<'_> {
        Closing(self)
    }

    /// Whether nobody wants more batches.
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: seen late, it costs work in vain and nothing else.
        self.closed.load(Ordering::Relaxed)
    }

    /// The next batch and the part it is of; `None` at the end.
    pub(super) fn receive(&self) -> Result<Option<(usize, Batch)>, SqlError> {
        let mut state = self.state.lock();
        loop {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            if let Some(next) = state.queue.pop_front() {
                self.emptied.notify_one();
                return Ok(Some(next));
            }
            if state.senders == 0 {
                return Ok(None);
            }
            let waiting = wait::enter(WaitKind::ParallelConsumer);
            self.filled.wait(&mut state);
            drop(waiting);
        }
    }

    /// What senders that ended have reported.
    pub(super) fn take_reports(&self) -> Vec<WorkReport> {
        std::mem::take(&mut self.state.lock().reports)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // Under the lock, so that no sender is between its look at the mark and its wait.
        let _state = self.state.lock();
        self.emptied.notify_all();
    }
}

/// The receiver's hold on an exchange.
pub(super) struct Closing<'e>(&'e Exchange);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// One thread's side.
pub(super) struct Sender<'e> {
    exchange: &'e Exchange,
}

impl Sender<'_> {
    /// Hands a batch of `part` over, when there is room; false if nobody wants it.
    pub(super) fn send(&self, part: usize, batch: Batch) -> bool {
        let mut state = self.exchange.state.lock();
        while state.queue.len() >= self.exchange.batches_max && !self.exchange.is_closed() {
            let waiting = wait::enter(WaitKind::ParallelExchange);
            self.exchange.emptied.wait(&mut state);
            drop(waiting);
        }
        if self.exchange.is_closed() {
            return false;
        }
        state.queue.push_back((part, batch));
        self.exchange.filled.notify_one();
        true
    }

    /// Ends the work of all with `error`, unless another failed before.
    pub(super) fn fail(&self, error: SqlError) {
        let mut state = self.exchange.state.lock();
        if !self.exchange.is_closed() {
            state.failure = Some(error);
        }
        drop(state);
        self.exchange.close();
    }

    /// Tells what the work came to.
    pub(super) fn report(&self, report: WorkReport) {
        self.exchange.state.lock().reports.push(report);
    }
}

impl Drop for Sender<'_> {
    fn drop(&mut self) {
        self.exchange.state.lock().senders -= 1;
        self.exchange.filled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use thawdb_types::error::message;

    fn batch(rows: usize) -> Batch {
        Batch::new(Vec::new(), rows)
    }

    #[test]
    fn batches_of_a_sender_keep_their_order_and_all_arrive() {
        let exchange = Exchange::new(3);
        let senders = [exchange.sender(), exchange.sender()];
        thread::scope(|scope| {
            for (part, sender) in senders.into_iter().enumerate() {
                scope.spawn(move || (1..=500).all(|rows| sender.send(part, batch(rows))));
            }
            let mut next = [1, 1];
            while let Some((part, batch)) = exchange.receive().unwrap() {
                assert_eq!(batch.rows, next[part]);
                next[part] += 1;
                assert!(exchange.state.lock().queue.len() <= 3);
            }
            assert_eq!(next, [501, 501]);
        });
    }

    #[test]
    fn the_first_failure_ends_all() {
        let exchange = Exchange::new(1);
        let (first, second, third) = (exchange.sender(), exchange.sender(), exchange.sender());
        thread::scope(|scope| {
            scope.spawn(move || while second.send(0, batch(1)) {});
            first.fail(message(8134, &[]));
            third.fail(message(8115, &[&"expression", &"int"]));
            drop((first, third));
            assert_eq!(exchange.receive().unwrap_err().number, 8134);
            assert!(exchange.is_closed());
        });
    }

    #[test]
    fn nobody_waits_for_a_receiver_that_is_gone() {
        let exchange = Exchange::new(1);
        let sender = exchange.sender();
        thread::scope(|scope| {
            let sends = scope.spawn(move || (0..10).take_while(|_| sender.send(0, batch(1))).count());
            drop(exchange.closing());
            assert!(sends.join().unwrap() <= 1);
        });
    }
}
