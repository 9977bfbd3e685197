//! Threads of the device that do tasks in the order they come.
//!
//! Two sets exist per device: one performs tickets (each task is a whole batch), one performs single transfers where
//! io_uring is refused. They are apart because a ticket's task waits for transfers.
//!
//! 1. Threads start when a task finds none idle, up to a limit, and end when the device is dropped, after the queue.
//! 2. The queue is bounded: [`Workers::submit`] blocks at [`QUEUED_MAX`] tasks.

use std::collections::VecDeque;
use std::sync::Arc;
use thawdb_observe::sync::{Condvar, LockClass, Mutex};

/// Tasks waiting at most: as many batches as any reader could want ahead.
const QUEUED_MAX: usize = 1024;

static WORKERS: LockClass = LockClass::new("DEVICE_WORKERS", 5);

pub(super) type Task = Box<dyn FnOnce() + Send>;

/// A set of threads.
pub(super) struct Workers {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    threads_max: usize,
    state: Mutex<State>,
    arrived: Condvar,
    left: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    threads: usize,
    idle: usize,
    closing: bool,
}

impl Workers {
    pub(super) fn new(name: &'static str, threads_max: usize) -> Self {
        let state = Mutex::new(&WORKERS, State::default());
        Self { shared: Arc::new(Shared { name, threads_max, state, arrived: Condvar::new(), left: Condvar::new() }) }
    }

    /// Has a task done, waiting for room in the queue. If no thread exists and none can be started, does it here.
    pub(super) fn submit(&self, task: Task) {
        let mut state = self.shared.state.lock();
        while state.queue.len() >= QUEUED_MAX {
            self.shared.left.wait(&mut state);
        }
        if state.queue.len() >= state.idle && state.threads < self.shared.threads_max && !self.start(&mut state) && state.threads == 0 {
            drop(state);
            return task();
        }
        state.queue.push_back(task);
        self.shared.arrived.notify_one();
    }

    fn start(&self, state: &mut State) -> bool {
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new().name(self.shared.name.to_owned()).spawn(move || shared.work());
        state.threads += usize::from(started.is_ok());
        started.is_ok()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.state.lock().closing = true;
        self.shared.arrived.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.queue.pop_front() {
                self.left.notify_one();
                drop(state);
                task();
                state = self.state.lock();
            } else if state.closing {
                return;
            } else {
                state.idle += 1;
                self.arrived.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn tasks_run_at_once_up_to_the_limit_and_the_rest_after() {
        let workers = Workers::new("test", 2);
        let (entering, entered) = mpsc::channel();
        let (releases, gates): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel::<()>()).unzip();
        for (number, gate) in gates.into_iter().enumerate() {
            let entering = entering.clone();
            workers.submit(Box::new(move || {
                entering.send(number).expect("the test listens");
                let _ = gate.recv();
            }));
        }
        let mut first = [entered.recv().expect("one"), entered.recv().expect("two")];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert!(entered.try_recv().is_err(), "the third waits for a thread");
        drop(releases);
        assert_eq!(entered.recv(), Ok(2));
    }

    #[test]
    fn what_was_queued_is_done_though_the_owner_is_gone() {
        let workers = Workers::new("test", 1);
        let (sending, sent) = mpsc::channel();
        for number in 0..10 {
            let sending = sending.clone();
            workers.submit(Box::new(move || sending.send(number).expect("the test listens")));
        }
        drop((workers, sending));
        assert_eq!(sent.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    }
}
