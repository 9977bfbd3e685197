//! Counts what an open file goes through. Atomics suffice: one update per request is nothing beside the request.

use crate::file::FileStats;
use std::sync::atomic::{AtomicU64, Ordering};

/// The running figures of one file.
#[derive(Debug, Default)]
pub(crate) struct FileCounters {
    reads: Work,
    writes: Work,
    syncs: Work,
    in_flight: AtomicU64,
    queue_depth_max: AtomicU64,
}

#[derive(Debug, Default)]
struct Work {
    count: AtomicU64,
    bytes: AtomicU64,
    stall_ns: AtomicU64,
}

/// Which figures a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

// Relaxed throughout: the figures order nothing else.
impl FileCounters {
    pub(crate) fn begin(&self, requests: usize) {
        let added = requests as u64;
        let depth = self.in_flight.fetch_add(added, Ordering::Relaxed) + added;
        self.queue_depth_max.fetch_max(depth, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, requests: usize) {
        self.in_flight.fetch_sub(requests as u64, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, direction: Direction, bytes: u64, stall_ns: u64) {
        match direction {
            Direction::Read => self.reads.add(bytes, stall_ns),
            Direction::Write => self.writes.add(bytes, stall_ns),
        }
    }

    pub(crate) fn synced(&self, stall_ns: u64) {
        self.syncs.add(0, stall_ns);
    }

    pub(crate) fn read_out(&self) -> FileStats {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        FileStats {
            reads: get(&self.reads.count),
            read_bytes: get(&self.reads.bytes),
            read_stall_ns: get(&self.reads.stall_ns),
            writes: get(&self.writes.count),
            write_bytes: get(&self.writes.bytes),
            write_stall_ns: get(&self.writes.stall_ns),
            syncs: get(&self.syncs.count),
            sync_stall_ns: get(&self.syncs.stall_ns),
            queue_depth_max: get(&self.queue_depth_max),
        }
    }
}

impl Work {
    fn add(&self, bytes: u64, stall_ns: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.stall_ns.fetch_add(stall_ns, Ordering::Relaxed);
    }
}
