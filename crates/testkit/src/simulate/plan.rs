//! What a seed decides before a run begins: the kind of trouble, the crowd, the disk.

use std::fmt;
use thawdb_device::sim::{CrashPoint, Fault, FaultRule, Operation};
use thawdb_observe::seeded::SeededRandom;

/// The kind of trouble of a run. Each run has one, so that what it must show is sharp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// None: the instance is closed and opened again.
    Calm,
    /// Crashes at some mutation or sync, then in recovery: torn and lost unsynced writes.
    Crash,
    /// Reads, writes, syncs, changes of length that fail, once or until the end.
    IoErrors,
    /// No room on the disk, then room again.
    DiskFull,
    /// Bits of the data files flip, on the disk or in the answer of a read; reads go astray.
    Rot,
    /// Writes of data pages go astray or are lost though acknowledged.
    Misdirected,
    /// A log that does not grow, under the FULL recovery model, backed up now and then; crashes too.
    SmallLog,
}

impl Trouble {
    /// Whether what is on the disk may be wrong without the engine's doing.
    pub const fn damages(self) -> bool {
        matches!(self, Self::Rot | Self::Misdirected)
    }
}

/// What a run is going to be like.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed of all of it.
    pub seed: u64,
    /// What goes wrong.
    pub trouble: Trouble,
    /// Sessions at once.
    pub clients: usize,
    /// Databases.
    pub databases: usize,
    /// Times the instance is stopped and started.
    pub rounds: u32,
    /// Steps of a round, if nothing stops it.
    pub steps: u32,
    /// Whether the instance begins on an empty disk rather than a prepared one.
    pub from_nothing: bool,
    /// Smallest piece a torn write leaves.
    pub tear_bytes: usize,
    /// `max server memory`.
    pub memory_bytes: u64,
    /// Whether every step is printed as it is done: for a run that does not end.
    pub traces: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, trouble, clients, databases, rounds, steps, .. } = self;
        write!(f, "seed {seed}: {trouble:?}, {clients} clients, {databases} databases, {rounds} rounds of {steps} steps")
    }
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed ^ 0x51_4D41_5445);
        let trouble = match random.below(18) {
            0 => Trouble::Calm,
            1..9 => Trouble::Crash,
            9..11 => Trouble::IoErrors,
            11..13 => Trouble::DiskFull,
            13..15 => Trouble::Rot,
            15 => Trouble::Misdirected,
            _ => Trouble::SmallLog,
        };
        Self {
            seed,
            trouble,
            clients: 1 + usize::try_from(random.below(3)).expect("small"),
            databases: 1 + usize::try_from(random.below(2)).expect("small"),
            rounds: 1 + u32::try_from(random.below(3)).expect("small"),
            steps: 10 + u32::try_from(random.below(50)).expect("small"),
            from_nothing: random.chance(1, 24),
            tear_bytes: if random.chance(1, 4) { 512 } else { 4096 },
            memory_bytes: (3 + random.below(3)) << 20,
            traces: false,
        }
    }
}

/// A crash some way ahead: by mutations, or at a sync.
pub fn crash_point(random: &mut SeededRandom, mutations_so_far: u64, syncs_so_far: u64) -> CrashPoint {
    if random.chance(1, 3) {
        return CrashPoint::Operation(Operation::Sync, syncs_so_far + 1 + random.below(40));
    }
    CrashPoint::Mutation(mutations_so_far + 1 + random.below(200))
}

/// Failing calls: one to three rules, on one database's files, its log's or anybody's.
pub fn io_errors(random: &mut SeededRandom) -> Vec<FaultRule> {
    let rule = |random: &mut SeededRandom| {
        let operation = [Operation::Read, Operation::Write, Operation::Sync, Operation::SetLen][random.below(4) as usize];
        let within = if operation == Operation::SetLen { 4 } else { 60 };
        let times = [1, 1, 3, u64::MAX][random.below(4) as usize];
        let rule = FaultRule { times, ..FaultRule::nth(operation, 1 + random.below(within), Fault::IoError) };
        match random.below(4) {
            0 => rule,
            1 => rule.on(".ldf"),
            _ => rule.on("/user0"),
        }
    };
    (0..1 + random.below(3)).map(|_| rule(random)).collect()
}

/// Reads of a user database's data file that answer wrong bytes.
pub fn bad_reads(random: &mut SeededRandom) -> Vec<FaultRule> {
    let fault = if random.chance(1, 2) { Fault::FlipBit } else { Fault::Misdirect };
    vec![FaultRule { times: 1 + random.below(3), ..FaultRule::nth(Operation::Read, 1 + random.below(30), fault) }.on("/user0.mdf")]
}

/// Writes of a user database's data file that do not arrive where they should.
pub fn bad_writes(random: &mut SeededRandom) -> Vec<FaultRule> {
    let fault = if random.chance(2, 3) { Fault::Misdirect } else { Fault::Lose };
    vec![FaultRule { times: 1 + random.below(2), ..FaultRule::nth(Operation::Write, 1 + random.below(40), fault) }.on("/user0.mdf")]
}

/// I/O of a database that takes minutes, so that what has a limit of time meets it.
pub fn delays(random: &mut SeededRandom) -> Vec<FaultRule> {
    let operation = if random.chance(1, 2) { Operation::Write } else { Operation::Read };
    let delay = Fault::Delay(70_000_000_000);
    vec![FaultRule { times: 1 + random.below(60), ..FaultRule::nth(operation, 1 + random.below(30), delay) }.on("/user")]
}
