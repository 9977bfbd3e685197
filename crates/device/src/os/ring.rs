//! Batches through io_uring: many transfers in flight with one system call each way.
//!
//! ```text
//! transfers --> submission queue --enter--> kernel --> completion queue --> answer(): done, or once more
//!               at most DEPTH in flight, counted from push to reap
//! ```
//!
//! One of the modules where `unsafe` is allowed: the kernel writes to addresses we give it.
//!
//! 1. [`Ring::run`] does not return, nor unwind, while the kernel may touch a buffer: it counts pushed less reaped,
//!    and ends at 0, or when what is left was never taken by the kernel and the ring is given up ([`Ring::run`]'s
//!    `false`, whereupon [`Rings::run`] destroys the ring before it goes on). Unwinding aborts ([`Abort`]).
//! 2. A ring is used by one thread at a time: [`Rings`] lends it out.
//!
//! Failure: a refusal at start (old kernel, seccomp, sysctl) is an error of [`Rings::detect`], and the device uses
//! threads. A refusal later (memory) makes the batch run on the calling thread.
#![allow(unsafe_code)]

use super::transfer::{Ask, Transfer};
use crate::stats::Direction;
use io_uring::{IoUring, Probe, opcode, squeue, types};
use std::io;
use std::time::Duration;
use thawdb_observe::sync::{LockClass, Mutex};

/// Most transfers in flight per batch: beyond it disks of today gain nothing, and latency grows.
const DEPTH: u32 = 64;
/// Rings kept for reuse; a burst may make more, which are destroyed after.
const RINGS_KEPT_MAX: usize = 16;
/// Failed entries in a row, 100 µs apart, before a ring is given up: the kernel was out of memory for a second.
const FAILURES_MAX: u32 = 10_000;

static RINGS: LockClass = LockClass::new("DEVICE_RINGS", 5);

/// The rings of a device.
pub(super) struct Rings {
    idle: Mutex<Vec<Ring>>,
}

impl Rings {
    /// Makes the first ring; an error if the kernel refuses it or cannot read and write through it.
    pub(super) fn detect() -> io::Result<Self> {
        let ring = Ring::new()?;
        let mut probe = Probe::new();
        ring.inner.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        Ok(Self { idle: Mutex::new(&RINGS, vec![ring]) })
    }

    /// Performs all transfers.
    ///
    /// # Safety
    /// The buffers and the files of the transfers must stay borrowed until this returns.
    pub(super) unsafe fn run(&self, transfers: &mut [Transfer]) {
        let idle = self.idle.lock().pop();
        if let Ok(mut ring) = idle.map_or_else(Ring::new, Ok) {
            // SAFETY: passed on from the caller.
            if unsafe { ring.run(transfers) } {
                let mut idle = self.idle.lock();
                if idle.len() < RINGS_KEPT_MAX {
                    idle.push(ring);
                }
                return;
            }
            // What the ring still holds must never be submitted: it is destroyed before the transfers run here.
            drop(ring);
        }
        // SAFETY: passed on from the caller; the ring that had these transfers is gone.
        transfers.iter_mut().for_each(|transfer| unsafe { transfer.perform() });
    }
}

struct Ring {
    inner: IoUring,
}

/// Ends the process if the stack unwinds while the kernel may write to a buffer of an outer frame.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl Ring {
    fn new() -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_clamp().dontfork();
        Ok(Self { inner: builder.build(DEPTH)? })
    }

    /// Performs all transfers. False if the ring failed for good; then it must be destroyed, the kernel has none of
    /// the transfers, and some may be unfinished.
    ///
    /// # Safety
    /// The buffers and the files of the transfers must stay borrowed until this returns.
    unsafe fn run(&mut self, transfers: &mut [Transfer]) -> bool {
        let abort = Abort;
        let mut waiting: Vec<usize> = (0..transfers.len()).rev().filter(|&index| !transfers[index].is_finished()).collect();
        let mut in_flight = 0;
        let mut failures = 0;
        let usable = loop {
            // SAFETY: passed on from the caller; the loop ends only with nothing in the kernel.
            in_flight += unsafe { self.push(transfers, &mut waiting, DEPTH as usize - in_flight) };
            if in_flight == 0 {
                break true;
            }
            let entered = self.inner.submit_and_wait(1);
            let reaped = self.reap(transfers, &mut waiting);
            in_flight -= reaped;
            if entered.is_ok() || reaped > 0 {
                failures = 0;
                continue;
            }
            failures += 1;
            let untaken = self.inner.submission().len();
            if failures >= FAILURES_MAX && untaken == in_flight {
                break false;
            }
            std::thread::sleep(Duration::from_micros(100));
        };
        std::mem::forget(abort);
        usable
    }

    /// Puts up to `room` waiting transfers into the submission queue; tells how many.
    ///
    /// # Safety
    /// As [`Self::run`].
    unsafe fn push(&mut self, transfers: &[Transfer], waiting: &mut Vec<usize>, room: usize) -> usize {
        let mut queue = self.inner.submission();
        let mut pushed = 0;
        while pushed < room
            && let Some(&index) = waiting.last()
        {
            // SAFETY: the entry's address range lies in a buffer that stays borrowed until it is reaped.
            if unsafe { queue.push(&entry(&transfers[index], index)) }.is_err() {
                break;
            }
            waiting.pop();
            pushed += 1;
        }
        pushed
    }

    /// Takes all completions; tells how many. Unfinished transfers wait again.
    fn reap(&mut self, transfers: &mut [Transfer], waiting: &mut Vec<usize>) -> usize {
        let mut reaped = 0;
        for completion in self.inner.completion() {
            let index = usize::try_from(completion.user_data()).expect("it is an index we gave");
            if !transfers[index].answer(completion.result()) {
                waiting.push(index);
            }
            reaped += 1;
        }
        reaped
    }
}

fn entry(transfer: &Transfer, index: usize) -> squeue::Entry {
    let Ask { file, offset, address, len } = transfer.ask();
    let entry = match transfer.direction {
        Direction::Read => opcode::Read::new(types::Fd(file), address, len).offset(offset).build(),
        Direction::Write => opcode::Write::new(types::Fd(file), address, len).offset(offset).build(),
    };
    entry.user_data(index as u64)
}
