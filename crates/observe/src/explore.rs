//! A schedule explorer: runs threads one at a time and lets a seed decide, at each lock, who goes on.
//!
//! ```text
//! thread A  --lock--> point --------------------> ... unlock --> point
//! thread B              |  <- the seed chose B ->  point
//! ```
//!
//! A race that the machine shows once in a million runs needs only the right choice at a few points; a
//! hundred seeds usually contain it, and the seed replays it. A wait nobody can end is found as a deadlock at once.
//!
//! 1. One thread runs at any time: the others wait in [`Explorer::until_chosen`].
//! 2. Choices depend on the seed and the threads' own steps only, so a seed replays (as long as the bodies do not
//!    ask time, addresses or hash maps).
//! 3. A run ends: after [`STEPS_MAX`] steps it fails as [`Failure::TooLong`].
//!
//! Seeds differ in how long they let one thread go on ([`TURNS`]): some races need a switch at every step, others that one
//! thread does all of its work between two steps of another, which a fair coin at each step hardly ever chooses (the
//! observation behind Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", 2010).
//!
//! It switches at the primitives of `observe::sync` and at `sync::point()`; orders weaker than sequential
//! consistency are not explored. A body must not block outside those primitives, nor start threads.

use crate::seeded::SeededRandom;
use crate::sync::hook::{self, Scheduler};
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Longest run: far beyond what a test of a structure needs, short enough to end in a second.
pub const STEPS_MAX: u64 = 1_000_000;

/// Steps after which another thread is chosen, on average, by seed.
const TURNS: [u64; 4] = [1, 4, 16, 64];

/// A thread of an exploration.
pub type Body<'a> = Box<dyn FnOnce() + Send + 'a>;

/// How a schedule failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A thread panicked, with this message.
    Panicked {
        /// Which, by its place in the list.
        thread: usize,
        /// What it said.
        message: String,
    },
    /// No thread could go on.
    Deadlock {
        /// The threads that wait.
        threads: Vec<usize>,
    },
    /// The run did not end within [`STEPS_MAX`] steps.
    TooLong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Blocked(usize),
    Waiting { condition: usize, timed: bool },
    Done,
}

struct State {
    threads: Vec<Status>,
    timed_out: Vec<bool>,
    running: Option<usize>,
    /// One step in so many is a switch.
    turn: u64,
    random: SeededRandom,
    steps: u64,
    failure: Option<Failure>,
}

struct Explorer {
    state: Mutex<State>,
    chosen: Condvar,
}

/// What a thread unwinds with when the run has failed elsewhere.
struct Abandoned;

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs `bodies` as threads, under the schedule of `seed`.
pub fn run(seed: u64, bodies: Vec<Body<'_>>) -> Result<(), Failure> {
    let explorer = Arc::new(Explorer::new(seed, bodies.len()));
    std::thread::scope(|scope| {
        for (thread, body) in bodies.into_iter().enumerate() {
            let explorer = Arc::clone(&explorer);
            scope.spawn(move || explorer.host(thread, body));
        }
        explorer.start();
    });
    let mut state = explorer.state();
    state.failure.take().map_or(Ok(()), Err)
}

/// Runs fresh bodies under each seed in turn; the first failure, with its seed.
pub fn search<'a>(seeds: impl IntoIterator<Item = u64>, mut make: impl FnMut() -> Vec<Body<'a>>) -> Result<(), (u64, Failure)> {
    seeds.into_iter().try_for_each(|seed| run(seed, make()).map_err(|failure| (seed, failure)))
}

impl Explorer {
    fn new(seed: u64, threads: usize) -> Self {
        let state = State {
            threads: vec![Status::Ready; threads],
            timed_out: vec![false; threads],
            running: None,
            turn: TURNS[usize::try_from(seed % TURNS.len() as u64).expect("few")],
            random: SeededRandom::new(seed),
            steps: 0,
            failure: None,
        };
        Self { state: Mutex::new(state), chosen: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) {
        self.state().choose();
        self.chosen.notify_all();
    }

    fn host(self: Arc<Self>, thread: usize, body: Body<'_>) {
        THREAD.set(thread);
        hook::enter(Some(Arc::clone(&self) as Arc<dyn Scheduler>));
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            self.until_chosen(self.state());
            body();
        }));
        hook::enter(None);
        let mut state = self.state();
        state.threads[thread] = Status::Done;
        if let Err(payload) = outcome
            && !payload.is::<Abandoned>()
            && state.failure.is_none()
        {
            state.failure = Some(Failure::Panicked { thread, message: message_of(payload.as_ref()) });
        }
        state.choose();
        drop(state);
        self.chosen.notify_all();
    }

    /// Lets the seed choose, then waits for this thread's turn.
    fn switch(&self, mut state: MutexGuard<'_, State>) {
        state.choose();
        self.chosen.notify_all();
        self.until_chosen(state);
    }

    fn until_chosen(&self, mut state: MutexGuard<'_, State>) {
        let thread = THREAD.get();
        while state.running != Some(thread) && state.failure.is_none() {
            state = self.chosen.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failure.is_some() {
            drop(state);
            panic::resume_unwind(Box::new(Abandoned));
        }
    }
}

impl State {
    fn choose(&mut self) {
        let last = self.running.take();
        if self.failure.is_some() {
            return;
        }
        self.steps += 1;
        if self.steps > STEPS_MAX {
            self.failure = Some(Failure::TooLong);
            return;
        }
        if let Some(last) = last.filter(|last| self.threads[*last] == Status::Ready)
            && !self.random.chance(1, self.turn)
        {
            self.running = Some(last);
            return;
        }
        let of = |wanted: fn(&Status) -> bool| -> Vec<usize> {
            self.threads.iter().enumerate().filter(|(_, status)| wanted(status)).map(|(thread, _)| thread).collect()
        };
        let mut candidates = of(|status| *status == Status::Ready);
        // A timed wait may end whenever it likes; letting it do so rarely keeps schedules short.
        if candidates.is_empty() || self.random.chance(1, 8) {
            candidates.extend(of(|status| matches!(status, Status::Waiting { timed: true, .. })));
        }
        if candidates.is_empty() {
            let threads = of(|status| *status != Status::Done);
            if !threads.is_empty() {
                self.failure = Some(Failure::Deadlock { threads });
            }
            return;
        }
        let place = self.random.below(candidates.len() as u64);
        let thread = candidates[usize::try_from(place).expect("below a length")];
        self.timed_out[thread] = matches!(self.threads[thread], Status::Waiting { .. });
        self.threads[thread] = Status::Ready;
        self.running = Some(thread);
    }

    fn wake(&mut self, mut wanted: impl FnMut(Status) -> bool) {
        for status in &mut self.threads {
            if wanted(*status) {
                *status = Status::Ready;
            }
        }
    }
}

impl Scheduler for Explorer {
    fn point(&self) {
        self.switch(self.state());
    }

    fn blocked(&self, address: usize) {
        let mut state = self.state();
        state.threads[THREAD.get()] = Status::Blocked(address);
        self.switch(state);
    }

    fn released(&self, address: usize) {
        self.state().wake(|status| status == Status::Blocked(address));
    }

    fn enqueue(&self, address: usize, timed: bool) {
        self.state().threads[THREAD.get()] = Status::Waiting { condition: address, timed };
    }

    fn wait(&self) -> bool {
        self.switch(self.state());
        self.state().timed_out[THREAD.get()]
    }

    fn notify(&self, address: usize, all: bool) {
        let mut state = self.state();
        let waits = |status: &Status| matches!(status, Status::Waiting { condition, .. } if *condition == address);
        if all {
            state.wake(|status| waits(&status));
        } else {
            let waiters: Vec<usize> = (0..state.threads.len()).filter(|&thread| waits(&state.threads[thread])).collect();
            if !waiters.is_empty() {
                let place = state.random.below(waiters.len() as u64);
                state.threads[waiters[usize::try_from(place).expect("below a length")]] = Status::Ready;
            }
        }
        self.switch(state);
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{self, LockClass, RwLock, SpinLock};
    use std::sync::atomic::{AtomicU64, Ordering};

    static CLASS: LockClass = LockClass::new("TEST_EXPLORED", 5);
    static SPIN_CLASS: LockClass = LockClass::new("TEST_EXPLORED_SPIN", 5);

    /// Adds one in two critical sections, so that another's addition between them is lost.
    fn add_wrongly(sum: &sync::Mutex<u64>) {
        let seen = *sum.lock();
        *sum.lock() = seen + 1;
    }

    #[test]
    fn a_planted_lost_update_is_found_and_its_seed_replays() {
        let make = |sum: &Arc<sync::Mutex<u64>>, left: &Arc<AtomicU64>| -> Vec<Body<'static>> {
            (0..2)
                .map(|_| -> Body<'static> {
                    let (sum, left) = (Arc::clone(sum), Arc::clone(left));
                    Box::new(move || {
                        add_wrongly(&sum);
                        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                            assert_eq!(*sum.lock(), 2, "an update was lost");
                        }
                    })
                })
                .collect()
        };
        let fresh = || make(&Arc::new(sync::Mutex::new(&CLASS, 0)), &Arc::new(AtomicU64::new(2)));
        let (seed, failure) = search(0..100, fresh).expect_err("100 schedules contain the race");
        assert!(matches!(&failure, Failure::Panicked { message, .. } if message.contains("an update was lost")));
        for _ in 0..3 {
            assert_eq!(run(seed, fresh()), Err(failure.clone()));
        }
    }

    /// A queue of one place: correct, with two conditions and both kinds of notification.
    struct Slot {
        value: sync::Mutex<Option<u32>>,
        filled: sync::Condvar,
        emptied: sync::Condvar,
    }

    impl Slot {
        fn new() -> Self {
            Self { value: sync::Mutex::new(&CLASS, None), filled: sync::Condvar::new(), emptied: sync::Condvar::new() }
        }

        fn put(&self, new: u32) {
            let mut value = self.value.lock();
            while value.is_some() {
                self.emptied.wait(&mut value);
            }
            *value = Some(new);
            self.filled.notify_one();
        }

        fn take(&self) -> u32 {
            let mut value = self.value.lock();
            loop {
                if let Some(taken) = value.take() {
                    self.emptied.notify_all();
                    return taken;
                }
                self.filled.wait_for(&mut value, std::time::Duration::from_secs(1));
            }
        }
    }

    #[test]
    fn a_correct_queue_passes_every_schedule() {
        for seed in 0..300 {
            let slot = Slot::new();
            let sum = SpinLock::new(&SPIN_CLASS, 0);
            let mut bodies: Vec<Body<'_>> = Vec::new();
            for start in [1, 10] {
                let (slot, sum) = (&slot, &sum);
                bodies.push(Box::new(move || (start..start + 3).for_each(|value| slot.put(value))));
                bodies.push(Box::new(move || (0..3).for_each(|_| *sum.lock() += slot.take())));
            }
            assert_eq!(run(seed, bodies), Ok(()), "seed {seed}");
            assert_eq!(*sum.lock(), 1 + 2 + 3 + 10 + 11 + 12);
        }
    }

    #[test]
    fn crossed_locks_are_found_as_a_deadlock() {
        let make = || -> Vec<Body<'static>> {
            let locks = Arc::new([RwLock::new(&CLASS, ()), RwLock::new(&CLASS, ())]);
            [(0, 1), (1, 0)]
                .map(|(first, second)| -> Body<'static> {
                    let locks = Arc::clone(&locks);
                    Box::new(move || {
                        let _first = locks[first].write();
                        let _second = locks[second].read();
                    })
                })
                .into()
        };
        let (_, failure) = search(0..100, make).expect_err("100 schedules contain the crossing");
        assert_eq!(failure, Failure::Deadlock { threads: vec![0, 1] });
    }

    #[test]
    fn a_race_of_atomics_is_found_at_marked_points() {
        let lost = (0..50).filter(|&seed| {
            let sum = AtomicU64::new(0);
            let bodies = (0..2)
                .map(|_| -> Body<'_> {
                    let sum = &sum;
                    Box::new(move || {
                        let seen = sum.load(Ordering::SeqCst);
                        sync::point();
                        sum.store(seen + 1, Ordering::SeqCst);
                    })
                })
                .collect();
            run(seed, bodies).expect("nothing here panics or blocks");
            sum.load(Ordering::SeqCst) == 1
        });
        let lost = lost.count();
        assert!(lost > 0 && lost < 50, "some schedules lose the update and some do not: {lost}");
    }
}
