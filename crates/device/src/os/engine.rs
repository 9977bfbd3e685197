//! Chooses how batches reach the kernel, once per device.
//!
//! The only place through which files run transfers, so that the promise "done with the buffers on return" is kept
//! in one place. One of the modules where `unsafe` is allowed.
#![allow(unsafe_code)]

use super::ring::Rings;
use super::threads;
use super::transfer::{self, Transfer};
use super::workers::Workers;
use crate::file::{ReadRequest, WriteRequest};
use std::io;
use std::os::fd::BorrowedFd;

/// Which way batches go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batching {
    /// io_uring if the kernel takes it, threads otherwise.
    #[default]
    Detect,
    /// io_uring, or an error at start.
    Ring,
    /// Threads.
    Threads,
}

pub(super) enum Engine {
    Ring(Rings),
    Threads(Workers),
}

impl Engine {
    pub(super) fn new(batching: Batching) -> io::Result<Self> {
        let threads = || Self::Threads(Workers::new("thaw-io", threads::THREADS_MAX));
        match batching {
            Batching::Threads => Ok(threads()),
            Batching::Ring => Rings::detect().map(Self::Ring),
            Batching::Detect => Ok(Rings::detect().map_or_else(|_| threads(), Self::Ring)),
        }
    }

    pub(super) fn read(&self, file: BorrowedFd<'_>, direct: bool, requests: &mut [ReadRequest<'_>]) -> Vec<Transfer> {
        let mut transfers = transfer::of_reads(file, direct, requests);
        // SAFETY: `requests` and `file` are borrowed until this function returns.
        unsafe { self.run(&mut transfers) };
        transfers
    }

    pub(super) fn write(&self, file: BorrowedFd<'_>, direct: bool, requests: &[WriteRequest<'_>]) -> Vec<Transfer> {
        let mut transfers = transfer::of_writes(file, direct, requests);
        // SAFETY: as in `read`.
        unsafe { self.run(&mut transfers) };
        transfers
    }

    /// Performs all transfers; on return each is finished.
    ///
    /// # Safety
    /// The buffers and the files of the transfers must stay borrowed until this returns.
    unsafe fn run(&self, transfers: &mut [Transfer]) {
        // SAFETY (all three): passed on from the caller.
        match (self, &mut *transfers) {
            // One transfer is one system call either way, and pread needs no ring.
            (_, [single]) => unsafe { single.perform() },
            (Self::Ring(rings), many) => unsafe { rings.run(many) },
            (Self::Threads(workers), many) => unsafe { threads::run(workers, many) },
        }
        assert!(transfers.iter().all(Transfer::is_finished), "a batch ends with all its transfers");
    }
}
