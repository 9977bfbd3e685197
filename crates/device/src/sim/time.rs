//! The clock and the randomness of a simulated world.

use super::Simulation;
use crate::{Clock, Random};
use std::time::Duration;

/// Civil time at which every simulation begins: 2024-01-01T00:00:00Z.
const BEGIN_UTC_NS: i128 = 1_704_067_200 * 1_000_000_000;
/// Longest real sleep for a simulated one: background threads that poll must not eat the processor.
const REAL_SLEEP_MAX: Duration = Duration::from_millis(1);

impl Clock for Simulation {
    fn monotonic_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    fn utc_ns(&self) -> i128 {
        BEGIN_UTC_NS + i128::from(self.monotonic_ns())
    }

    fn local_offset_minutes(&self) -> i32 {
        0
    }

    fn sleep(&self, duration: Duration) {
        self.shared.advance(u64::try_from(duration.as_nanos()).expect("nobody sleeps 584 years"));
        std::thread::sleep(duration.min(REAL_SLEEP_MAX));
    }
}

impl Random for Simulation {
    fn fill(&self, bytes: &mut [u8]) {
        self.shared.random.lock().fill(bytes);
    }
}
