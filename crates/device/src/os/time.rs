//! The system's clock and randomness.

use crate::{Clock, Random};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The system's clock.
pub(super) struct OsClock {
    start: Instant,
}

impl OsClock {
    pub(super) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for OsClock {
    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("584 years have not passed")
    }

    fn thread_cpu_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let (seconds, rest) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
        seconds * 1_000_000_000 + rest
    }

    fn process_memory_bytes(&self) -> u64 {
        // Pages: size, resident, of that shared with files, ...
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let mut pages = text.split_whitespace().skip(1).map(|word| word.parse::<u64>().unwrap_or(0));
        let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
        resident.saturating_sub(shared) * rustix::param::page_size() as u64
    }

    fn utc_ns(&self) -> i128 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).expect("fits for 10^21 years"),
            Err(before) => -i128::try_from(before.duration().as_nanos()).expect("fits for 10^21 years"),
        }
    }

    /// Always 0: the server's civil time is UTC, as it is in SQL Server's containers. A configured time zone would be
    /// a setting of the instance, not read from the machine.
    fn local_offset_minutes(&self) -> i32 {
        0
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The system's randomness.
pub(super) struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        File::open("/dev/urandom").and_then(|mut f| f.read_exact(bytes)).expect("the system has a source of randomness");
    }
}
