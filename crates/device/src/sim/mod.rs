//! The simulated environment: a disk, a clock and randomness made of one seed, with faults on order.
//!
//! ```text
//! write -> seen by reads at once, durable only in `pending`     sync -> pending forgotten: durable
//! crash -> each unsynced write is kept, lost or torn, by the seed; every call fails until restart()
//! restart -> the disk as the crash left it, all locks free, old handles dead
//! ```
//!
//! The fault model, and what the engine owes for each fault, is `docs/FAULTS.md`.
//!
//! 1. What a completed sync covered survives every crash ([`disk::Inode::crash`]), unless a fault was ordered.
//! 2. Creation, renaming and removal are durable on return, as the contract of [`crate::file`] says.
//! 3. Same seed, same calls, same answers, byte for byte. Calls of several threads are atomic, but their order is the
//!    machine's: a run that must replay does its I/O from one thread, or under `observe::explore`.
//! 4. Memory is taken only by sectors that were written: a length of gigabytes costs nothing.
//!
//! Locks: `SIMULATION` (5) around every call; nothing else is taken inside.
//!
//! It does not simulate partial visibility between handles, links, permissions, or time that passes by itself: a
//! sleep moves the clock and returns after at most a millisecond.

mod device;
mod disk;
mod fault;
mod time;
mod world;

pub use fault::{CrashPoint, Fault, FaultRule, Operation, OperationCounts};

use crate::file::{Device, DeviceError};
use crate::{BackgroundWork, Clock, Env, Random};
use device::SimDevice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_observe::seeded::SeededRandom;
use thawdb_observe::sync::{LockClass, Mutex};
use world::World;

static SIMULATION: LockClass = LockClass::new("SIMULATION", 5);

/// What the simulated world is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimOptions {
    /// Decides everything.
    pub seed: u64,
    /// Room on the disk, counted by file lengths.
    pub capacity_bytes: u64,
    /// Smallest piece a torn write may leave: 4096 (a sector, as disks of today write it) or 512 (old disks).
    pub tear_bytes: usize,
    /// Time each call of the device takes on the simulated clock.
    pub latency_ns: u64,
}

impl SimOptions {
    /// An unlimited disk that tears at 4 KiB and takes 50 µs for a call.
    pub const fn new(seed: u64) -> Self {
        Self { seed, capacity_bytes: u64::MAX, tear_bytes: 4096, latency_ns: 50_000 }
    }
}

/// A simulated world; clones are the same world.
#[derive(Clone)]
pub struct Simulation {
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
    /// Nanoseconds since the simulation began.
    now_ns: AtomicU64,
    random: Mutex<SeededRandom>,
}

impl Simulation {
    /// A world with an empty disk.
    pub fn new(options: SimOptions) -> Self {
        assert!(options.tear_bytes == 4096 || options.tear_bytes == 512, "writes tear at 4096 or 512 bytes");
        let mut random = SeededRandom::new(options.seed);
        let world = Mutex::new(&SIMULATION, World::new(options, random.split()));
        Self { shared: Arc::new(Shared { world, now_ns: AtomicU64::new(0), random: Mutex::new(&SIMULATION, random) }) }
    }

    /// A world of its own whose disk begins as this one's is now, as reads see it and all of it durable. What is the same
    /// is shared, so that a disk made once begins many runs at no cost.
    pub fn fork(&self, options: SimOptions) -> Self {
        let fork = Self::new(options);
        fork.shared.world.lock().take_disk(&self.shared.world.lock());
        fork
    }

    /// A world with the usual options.
    pub fn with_seed(seed: u64) -> Self {
        Self::new(SimOptions::new(seed))
    }

    /// The world as the engine sees it.
    pub fn env(&self) -> Env {
        let clock: Arc<dyn Clock> = Arc::new(self.clone());
        let random: Arc<dyn Random> = Arc::new(self.clone());
        Env { device: self.device(), clock, random, background: BackgroundWork::Stepped }
    }

    /// Its files.
    pub fn device(&self) -> Arc<dyn Device> {
        Arc::new(SimDevice::new(Arc::clone(&self.shared)))
    }

    /// Orders a fault. Rules are asked in the order they were added; the first that is due acts, and
    /// later ones do not count that operation.
    ///
    /// # Panics
    /// If the fault makes no sense for the operation ([`Fault::fits`]).
    pub fn add_fault(&self, rule: FaultRule) {
        assert!(rule.fault.fits(rule.operation), "{:?} cannot happen to {:?}", rule.fault, rule.operation);
        self.shared.world.lock().faults.push(rule);
    }

    /// Cancels all faults ordered.
    pub fn clear_faults(&self) {
        self.shared.world.lock().faults.clear();
    }

    /// Orders a crash; `None` cancels it. Numbers count from the last start or [`Self::restart`].
    pub fn crash_at(&self, point: Option<CrashPoint>) {
        self.shared.world.lock().crash_at = point;
    }

    /// Crashes now.
    pub fn crash(&self) {
        self.shared.world.lock().crash();
    }

    /// Whether the world has crashed and was not restarted.
    pub fn is_crashed(&self) -> bool {
        self.shared.world.lock().crashed
    }

    /// Starts the machine anew, after a crash or by crashing it. Counts begin at 0; a crash ordered is cancelled.
    pub fn restart(&self) {
        self.shared.world.lock().restart();
    }

    /// Operations since the start or the last restart.
    pub fn counts(&self) -> OperationCounts {
        self.shared.world.lock().counts
    }

    /// Puts a file on the disk that the engine did not write, durably.
    pub fn put_foreign(&self, path: &Path, bytes: &[u8]) {
        self.shared.world.lock().put_foreign(path, bytes);
    }

    /// Rots one bit of a file on the disk, durably and unseen.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> Result<(), DeviceError> {
        self.shared.world.lock().flip_bit(path, offset, bit)
    }

    /// Files whose path contains `text`, with their lengths.
    pub fn files(&self, text: &str) -> Vec<(std::path::PathBuf, u64)> {
        let world = self.shared.world.lock();
        let chosen = world.names.iter().filter(|(path, _)| path.to_string_lossy().contains(text));
        chosen.map(|(path, id)| (path.clone(), world.inodes[id].len)).collect()
    }

    /// The bytes of a file as reads see them; empty if there is none.
    pub fn bytes_of(&self, path: &Path) -> Vec<u8> {
        let world = self.shared.world.lock();
        let Some(inode) = world.names.get(path).map(|id| &world.inodes[id]) else { return Vec::new() };
        let mut bytes = vec![0; usize::try_from(inode.len).expect("a simulated file fits in memory")];
        inode.read(0, &mut bytes);
        bytes
    }

    /// Sectors of a file that were ever written, as offsets in bytes: where rot can matter.
    pub fn written(&self, path: &Path) -> Vec<u64> {
        let world = self.shared.world.lock();
        world.names.get(path).map_or_else(Vec::new, |id| world.inodes[id].written())
    }

    /// Room on the disk from now on, counted by file lengths.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.shared.world.lock().set_capacity(capacity_bytes);
    }

    /// Sum of the files' lengths.
    pub fn used_bytes(&self) -> u64 {
        self.shared.world.lock().inodes.values().map(|inode| inode.len).sum()
    }

    /// A number that differs if anything on the disk differs, as reads see it.
    pub fn fingerprint(&self) -> u64 {
        self.shared.world.lock().fingerprint()
    }
}

impl Shared {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn advance(&self, by_ns: u64) {
        // Relaxed: the clock orders nothing but itself, and additions are atomic.
        self.now_ns.fetch_add(by_ns, Ordering::Relaxed);
    }
}
