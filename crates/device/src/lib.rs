//! The outside world behind traits: files, time, randomness.
//!
//! Everything above reads and writes files, tells the time and draws random numbers through [`Env`], so that
//! the simulated environment can replace all of it from one seed.
//!
//! | module | what it is |
//! |---|---|
//! | [`file`] | the traits, and what every implementation keeps |
//! | [`buffer`] | sector-aligned memory (`unsafe` allowed) |
//! | [`ticket`] | transfers under way, with buffers that go along |
//! | [`os`] | the real environment: direct I/O by io_uring or threads |
//! | [`sim`] | the simulated environment: one seed, faults and crashes on order |
//!
//! It does not know pages, nor retry: what to do about a failed request is decided above (`docs/FAULTS.md`).

pub mod buffer;
pub mod file;
pub mod os;
pub mod sim;
mod stats;
pub mod ticket;

pub use buffer::{AlignedBuf, IoBuffer};
pub use file::{
    BlockFile, Device, DeviceError, DeviceErrorKind, FileStats, ForeignFile, OpenMode, ReadRequest, SECTOR_BYTES, WriteRequest,
};
pub use ticket::{OwnedRequest, Ticket};

use std::sync::Arc;

/// The environment an instance lives in.
#[derive(Clone)]
pub struct Env {
    /// Files.
    pub device: Arc<dyn Device>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Who does what nobody waits for.
    pub background: BackgroundWork,
}

/// Who does the work that no statement waits for: redo, writing back, checkpoints, tidying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundWork {
    /// Threads of their own.
    Threads,
    /// Whoever owns the environment, turn by turn: a simulation, whose runs must replay. No thread is started.
    Stepped,
}

/// Time: monotonic for waiting, civil for stamping.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary start; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// Processor time the calling thread has used; 0 where nobody measures it.
    fn thread_cpu_ns(&self) -> u64 {
        0
    }
    /// Bytes of memory of this process's own that are resident, files mapped into it apart; 0 where nobody measures it.
    fn process_memory_bytes(&self) -> u64 {
        0
    }
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    fn utc_ns(&self) -> i128;
    /// Minutes that local civil time is ahead of UTC now.
    fn local_offset_minutes(&self) -> i32;
    /// Blocks the calling thread.
    fn sleep(&self, duration: std::time::Duration);
}

/// Randomness fit for salts and unique identifiers; seeded in simulation.
pub trait Random: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}
