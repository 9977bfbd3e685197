//! The whole engine on a simulated disk and clock, from one seed: workload, trouble, restart, comparison.
//!
//! ```text
//! Plan::of(seed) ─► disk (prepared or empty) ─► open ─► round: steps of sessions and of background work, with trouble
//!                                                │         │ crash, close, or frozen databases
//!                                                └─────────┴─► restart (crashes in recovery) ─► settle ─► check ─► ...
//!
//! ledger     committed: what was acknowledged; doubt: what was asked and not answered
//! settle     every database equals its ledger, or the ledger with the whole of the doubt
//! check      CHECKDB finds nothing (no rot); each database takes a table, rows, and gives them back
//! ```
//!
//! 1. One thread does everything: sessions take their statements in turn and wait for no lock, background work is
//!    stepped ([`thawdb_device::BackgroundWork::Stepped`]). So a seed replays byte for byte ([`Outcome::fingerprint`]).
//! 2. Workload ([`workload`]) and model ([`model`]) know nothing of the engine; the driver judges answers by the plan's
//!    trouble alone ([`judge`]): an error that the trouble does not explain is a violation, and so is any panic.
//! 3. A read equals the model or fails with an error the trouble explains; never anything else ([`driver`]).
//!
//! It does not interleave within a statement (storage's threaded tests and `observe::explore` do), nor speak TDS.
//! Model: TigerBeetle's VOPR.

pub(crate) mod client;
mod definitions;
mod driver;
mod judge;
pub mod model;
pub mod plan;
mod player;
mod settle;
mod steps;
mod upkeep;
mod value;
mod workload;

use driver::Driver;
pub use plan::{Plan, Trouble};
use std::collections::BTreeMap;
use std::fmt;

/// What a run was like, if nothing was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// What kind of trouble it had.
    pub trouble: Trouble,
    /// Statements run.
    pub statements: u64,
    /// Of those, statements that failed because of the trouble.
    pub failures: u64,
    /// Commits acknowledged, those of single statements included.
    pub commits: u64,
    /// Commits whose answer a crash or an error swallowed.
    pub doubts: u64,
    /// Crashes, those in recovery included.
    pub crashes: u64,
    /// Mutations of the disk.
    pub mutations: u64,
    /// The disk at the end.
    pub fingerprint: u64,
}

/// Something was wrong.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The run.
    pub plan: Plan,
    /// What was wrong.
    pub message: String,
    /// What was done up to there, a line a step.
    pub schedule: Vec<String>,
}

/// Lines of the schedule that a violation shows.
const SHOWN_LINES: usize = 60;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.plan, self.message)?;
        let skipped = self.schedule.len().saturating_sub(SHOWN_LINES);
        if skipped > 0 {
            writeln!(f, "  ... {skipped} steps before")?;
        }
        self.schedule[skipped..].iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl std::error::Error for Violation {}

/// Runs a seed.
///
/// # Errors
/// The violation, if there is one.
pub fn run(seed: u64) -> Result<Outcome, Box<Violation>> {
    run_plan(Plan::of(seed))
}

/// Runs a plan.
///
/// # Errors
/// The violation, if there is one.
pub fn run_plan(plan: Plan) -> Result<Outcome, Box<Violation>> {
    let mut driver = Driver::new(plan.clone());
    match driver.run() {
        Ok(()) => Ok(driver.outcome()),
        Err(message) => Err(Box::new(Violation { plan, message, schedule: driver.into_schedule() })),
    }
}

/// Sums over many runs, by kind of trouble.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    kinds: BTreeMap<Trouble, [u64; 7]>,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        let Outcome { statements, failures, commits, doubts, crashes, mutations, .. } = *outcome;
        let sums = self.kinds.entry(outcome.trouble).or_default();
        let values = [1, statements, failures, commits, doubts, crashes, mutations];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    /// Runs so far.
    pub fn runs(&self) -> u64 {
        self.kinds.values().map(|sums| sums[0]).sum()
    }

    /// Runs with one kind of trouble.
    pub fn runs_with(&self, trouble: Trouble) -> u64 {
        self.kinds.get(&trouble).map_or(0, |sums| sums[0])
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<12}{:>9}{:>12}{:>10}{:>10}{:>9}{:>9}{:>12}",
            "trouble", "runs", "statements", "failed", "commits", "doubts", "crashes", "mutations"
        )?;
        for (kind, sums) in &self.kinds {
            let [runs, statements, failures, commits, doubts, crashes, mutations] = sums;
            writeln!(
                f,
                "{:<12}{runs:>9}{statements:>12}{failures:>10}{commits:>10}{doubts:>9}{crashes:>9}{mutations:>12}",
                format!("{kind:?}")
            )?;
        }
        Ok(())
    }
}
