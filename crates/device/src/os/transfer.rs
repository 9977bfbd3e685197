//! One piece of a batch on its way between a file and memory, shared by the ring and the threads.
//!
//! One of the modules where `unsafe` is allowed: a transfer holds the address of a caller's buffer.
//!
//! 1. Whoever runs transfers does not return to the caller before each of them is finished; the callers of
//!    [`super::engine::Engine::run`] keep the buffers borrowed meanwhile.
//! 2. No two transfers of a batch overlap in memory: reads come from distinct `&mut` slices, cut without overlap.
#![allow(unsafe_code)]

use crate::file::{ReadRequest, SECTOR_BYTES, WriteRequest};
use crate::stats::Direction;
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use thawdb_observe::clock;

/// Largest piece: enough to keep a disk streaming, small enough that one big request is many in flight.
pub(super) const PIECE_BYTES_MAX: usize = 1 << 20;
/// Repetitions after EINTR or EAGAIN before the piece fails: signals do not come in thousands.
const RETRIES_MAX: u32 = 1_000;

/// A piece of a request.
#[derive(Debug)]
pub(super) struct Transfer {
    pub direction: Direction,
    /// Which request of the batch it belongs to.
    pub request: usize,
    /// When it ended, by the statistics' clock.
    pub finished_ns: u64,
    file: RawFd,
    direct: bool,
    offset: u64,
    address: *mut u8,
    len: usize,
    done: usize,
    retries: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unfinished,
    Succeeded,
    Ended,
    Failed(Errno),
}

/// How a finished transfer failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The file ended before the bytes did.
    EndOfFile,
    /// The system's error.
    Os(Errno),
}

/// What the kernel is asked next.
pub(super) struct Ask {
    pub file: RawFd,
    pub offset: u64,
    pub address: *mut u8,
    pub len: u32,
}

/// Cuts reads into pieces.
pub(super) fn of_reads(file: BorrowedFd<'_>, direct: bool, requests: &mut [ReadRequest<'_>]) -> Vec<Transfer> {
    let mut transfers = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter_mut().enumerate() {
        let mut offset = request.offset;
        for piece in request.buffer.chunks_mut(PIECE_BYTES_MAX) {
            transfers.push(Transfer::new(file, direct, Direction::Read, index, offset, piece.as_mut_ptr(), piece.len()));
            offset += piece.len() as u64;
        }
    }
    transfers
}

/// Cuts writes into pieces.
pub(super) fn of_writes(file: BorrowedFd<'_>, direct: bool, requests: &[WriteRequest<'_>]) -> Vec<Transfer> {
    let mut transfers = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let mut offset = request.offset;
        for piece in request.buffer.chunks(PIECE_BYTES_MAX) {
            // Never written through: `Direction::Write` makes it the source of a pwrite.
            transfers.push(Transfer::new(file, direct, Direction::Write, index, offset, piece.as_ptr().cast_mut(), piece.len()));
            offset += piece.len() as u64;
        }
    }
    transfers
}

impl Transfer {
    fn new(file: BorrowedFd<'_>, direct: bool, direction: Direction, request: usize, offset: u64, address: *mut u8, len: usize) -> Self {
        let file = file.as_fd().as_raw_fd();
        let state = if len == 0 { State::Succeeded } else { State::Unfinished };
        Self { direction, request, finished_ns: 0, file, direct, offset, address, len, done: 0, retries: 0, state }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.state != State::Unfinished
    }

    pub(super) fn result(&self) -> Result<(), Failure> {
        match self.state {
            State::Succeeded => Ok(()),
            State::Ended => Err(Failure::EndOfFile),
            State::Failed(error) => Err(Failure::Os(error)),
            State::Unfinished => unreachable!("results are asked only of finished transfers"),
        }
    }

    /// The rest of the piece.
    pub(super) fn ask(&self) -> Ask {
        let len = u32::try_from(self.len - self.done).expect("a piece is at most PIECE_BYTES_MAX");
        Ask { file: self.file, offset: self.offset + self.done as u64, address: self.address.wrapping_add(self.done), len }
    }

    /// Takes the kernel's answer: bytes moved, or a negated error number. True if the transfer is finished.
    pub(super) fn answer(&mut self, answer: i32) -> bool {
        self.state = match usize::try_from(answer) {
            Err(_) => self.after_error(Errno::from_raw_os_error(-answer)),
            Ok(moved) => self.after_progress(moved),
        };
        if self.is_finished() {
            self.finished_ns = clock::now_ns();
        }
        self.is_finished()
    }

    fn after_error(&mut self, error: Errno) -> State {
        if matches!(error, Errno::INTR | Errno::AGAIN) && self.retries < RETRIES_MAX {
            self.retries += 1;
            return State::Unfinished;
        }
        State::Failed(error)
    }

    fn after_progress(&mut self, moved: usize) -> State {
        assert!(moved <= self.len - self.done, "the kernel moved more than it was asked to");
        let mut done = self.done + moved;
        if done == self.len {
            return State::Succeeded;
        }
        if self.direct {
            // A short direct transfer may end inside a sector, where the next must not begin: repeat that sector.
            done -= done % SECTOR_BYTES;
        }
        if done == self.done {
            let ended = self.direction == Direction::Read;
            return if ended { State::Ended } else { State::Failed(Errno::IO) };
        }
        self.done = done;
        State::Unfinished
    }

    /// Performs the transfer to its end on the calling thread.
    ///
    /// # Safety
    /// The buffer the transfer was made of must still be borrowed, and no other thread may use this transfer.
    pub(super) unsafe fn perform(&mut self) {
        while !self.is_finished() {
            let Ask { file, offset, address, len } = self.ask();
            let len = len as usize;
            // SAFETY: the caller's file is open while the batch runs, for it borrows the file's handle.
            let file = unsafe { BorrowedFd::borrow_raw(file) };
            let moved = match self.direction {
                // SAFETY: `address..address + len` is the rest of a `&mut [u8]` that the caller keeps borrowed.
                Direction::Read => rustix::io::pread(file, unsafe { std::slice::from_raw_parts_mut(address, len) }, offset),
                // SAFETY: as above, of a `&[u8]`.
                Direction::Write => rustix::io::pwrite(file, unsafe { std::slice::from_raw_parts(address, len) }, offset),
            };
            self.answer(match moved {
                Ok(moved) => i32::try_from(moved).expect("a piece is at most PIECE_BYTES_MAX"),
                Err(error) => -error.raw_os_error(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuf;

    fn reading(direct: bool, buffer: &mut AlignedBuf) -> Transfer {
        let stdin = std::io::stdin();
        let mut requests = [ReadRequest { offset: 8192, buffer }];
        of_reads(stdin.as_fd(), direct, &mut requests).remove(0)
    }

    #[test]
    fn short_answers_are_continued_and_interruptions_repeated() {
        let mut buffer = AlignedBuf::zeroed(3 * SECTOR_BYTES);
        let mut transfer = reading(false, &mut buffer);
        assert!(!transfer.answer(100));
        assert_eq!((transfer.ask().offset, transfer.ask().len), (8292, 12_188));
        assert!(!transfer.answer(-Errno::INTR.raw_os_error()));
        assert!(!transfer.answer(-Errno::AGAIN.raw_os_error()));
        assert!(transfer.answer(12_188));
        assert_eq!(transfer.result(), Ok(()));
    }

    #[test]
    fn a_direct_continuation_begins_at_a_sector_and_no_progress_is_the_end() {
        let mut buffer = AlignedBuf::zeroed(3 * SECTOR_BYTES);
        let mut transfer = reading(true, &mut buffer);
        assert!(!transfer.answer(5000));
        assert_eq!((transfer.ask().offset, transfer.ask().len), (8192 + 4096, 8192));
        assert!(transfer.answer(904));
        assert_eq!(transfer.result(), Err(Failure::EndOfFile));
    }

    #[test]
    fn errors_end_the_transfer_and_so_do_endless_interruptions() {
        let mut buffer = AlignedBuf::zeroed(SECTOR_BYTES);
        let mut transfer = reading(true, &mut buffer);
        assert!(transfer.answer(-Errno::IO.raw_os_error()));
        assert_eq!(transfer.result(), Err(Failure::Os(Errno::IO)));
        let mut transfer = reading(true, &mut buffer);
        let answers = (1..).find(|_| transfer.answer(-Errno::INTR.raw_os_error()));
        assert_eq!(answers, Some(RETRIES_MAX + 1));
    }

    #[test]
    fn requests_are_cut_into_pieces_that_cover_them() {
        let mut buffer = AlignedBuf::zeroed(2 * PIECE_BYTES_MAX + SECTOR_BYTES);
        let start = buffer.as_ptr().addr();
        let stdin = std::io::stdin();
        let mut requests = [ReadRequest { offset: 4096, buffer: &mut buffer }];
        let transfers = of_reads(stdin.as_fd(), true, &mut requests);
        let pieces: Vec<_> = transfers.iter().map(|t| (t.offset, t.address.addr() - start, t.len)).collect();
        let piece = PIECE_BYTES_MAX as u64;
        assert_eq!(
            pieces,
            [
                (4096, 0, PIECE_BYTES_MAX),
                (4096 + piece, PIECE_BYTES_MAX, PIECE_BYTES_MAX),
                (4096 + 2 * piece, 2 * PIECE_BYTES_MAX, SECTOR_BYTES)
            ]
        );
    }
}
