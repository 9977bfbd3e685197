//! Crash runs: a workload on the simulated device until a seeded crash, then the question what is left.
//!
//! ```text
//! workload(env, ledger) --- crash point ---> restart -> check -> (crash in recovery, restart -> check)* -> check again
//!        |  attempt, acknowledge                          |
//!        +---------------- ledger ------------------------+   acknowledged: must be there; in doubt: all or nothing
//! ```
//!
//! The harness knows neither storage nor SQL: workload and checker are closures over [`Env`], apart from each other,
//! so that a checker cannot excuse what its workload did.
//!
//! 1. A workload that fails without a crash or an ordered fault is a violation, and so is any panic ([`Harness::run`]).
//! 2. The checker runs at least twice, with a crash between: recovery must be repeatable.
//! 3. A violation names its seed and crash point; [`Harness::run`] with that plan replays it, if the workload does
//!    its I/O from one thread.

use std::any::Any;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use thawdb_device::Env;
use thawdb_device::sim::{CrashPoint, FaultRule, SimOptions, Simulation};
use thawdb_observe::seeded::SeededRandom;
use thawdb_observe::sync::{LockClass, Mutex};

static LEDGER: LockClass = LockClass::new("TEST_LEDGER", 5);

/// Mutations within which a crash in recovery comes: recoveries of small databases make this many.
const RECOVERY_MUTATIONS: u64 = 32;

/// What a workload tried and what was acknowledged to it, in the order of the attempts.
pub struct Ledger<T> {
    entries: Mutex<Vec<Entry<T>>>,
}

/// An operation a workload tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// What it was.
    pub operation: T,
    /// Whether its success was reported. If not, it is in doubt: wholly there or wholly absent.
    pub acknowledged: bool,
}

/// Stands for an attempt until it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptId(usize);

impl<T> Ledger<T> {
    fn new() -> Self {
        Self { entries: Mutex::new(&LEDGER, Vec::new()) }
    }

    /// Notes that an operation begins; to be called before it can have any effect.
    pub fn attempt(&self, operation: T) -> AttemptId {
        let mut entries = self.entries.lock();
        entries.push(Entry { operation, acknowledged: false });
        AttemptId(entries.len() - 1)
    }

    /// Notes that the operation was reported done.
    pub fn acknowledge(&self, attempt: AttemptId) {
        self.entries.lock()[attempt.0].acknowledged = true;
    }
}

/// One crash run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The world.
    pub options: SimOptions,
    /// When the workload is stopped; without one it is let end, and the crash comes then.
    pub crash: Option<CrashPoint>,
    /// Faults during the workload; with any, the workload may fail without a crash. They are over when the check runs.
    pub faults: Vec<FaultRule>,
    /// Crashes during recovery, one after another.
    pub recovery_crashes: u32,
}

impl Plan {
    /// A calm run: the crash comes after the workload's end.
    pub fn calm(options: SimOptions) -> Self {
        Self { options, crash: None, faults: Vec::new(), recovery_crashes: 0 }
    }
}

/// What a run was like, if nothing was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Operations tried.
    pub attempts: usize,
    /// Operations acknowledged.
    pub acknowledged: usize,
    /// Mutations of the disk before the crash.
    pub mutations: u64,
    /// Whether the crash came before the workload's end.
    pub interrupted: bool,
}

/// What many runs were like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs.
    pub runs: u64,
    /// Runs whose workload was interrupted.
    pub interrupted: u64,
    /// Operations acknowledged, over all runs.
    pub acknowledged: u64,
    /// Operations in doubt, over all runs.
    pub in_doubt: u64,
}

/// Something was wrong.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The run that shows it.
    pub plan: Box<Plan>,
    /// When: "workload", "recovery 1", "check" ...
    pub stage: String,
    /// What.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { options, crash, faults, recovery_crashes } = &*self.plan;
        write!(f, "seed {}: {} in {}; crash at {crash:?}, ", options.seed, self.message, self.stage)?;
        write!(f, "{recovery_crashes} crashes in recovery, faults {faults:?}, {options:?}")
    }
}

impl std::error::Error for Violation {}

/// A workload and its checker.
pub struct Harness<W, C> {
    workload: W,
    checker: C,
}

impl<W, C> Harness<W, C> {
    /// `workload` works until it is done or fails; `checker` opens what is left and compares it with the ledger.
    pub fn new<T>(workload: W, checker: C) -> Self
    where
        W: Fn(&Env, &Ledger<T>) -> Result<(), String>,
        C: Fn(&Env, &[Entry<T>]) -> Result<(), String>,
    {
        Self { workload, checker }
    }

    /// Does one run.
    pub fn run<T>(&self, plan: &Plan) -> Result<Outcome, Violation>
    where
        W: Fn(&Env, &Ledger<T>) -> Result<(), String>,
        C: Fn(&Env, &[Entry<T>]) -> Result<(), String>,
    {
        let sim = Simulation::new(plan.options);
        plan.faults.iter().for_each(|rule| sim.add_fault(rule.clone()));
        sim.crash_at(plan.crash);
        let ledger = Ledger::new();
        let violation = |stage: &str, message: String| Violation { plan: Box::new(plan.clone()), stage: stage.to_owned(), message };

        let worked = guarded(|| (self.workload)(&sim.env(), &ledger)).map_err(|message| violation("workload", message))?;
        let interrupted = sim.is_crashed();
        if let Err(message) = worked
            && !interrupted
            && plan.faults.is_empty()
        {
            return Err(violation("workload", format!("failed without a crash: {message}")));
        }
        let mutations = sim.counts().mutations();
        sim.clear_faults();
        sim.crash();

        let entries = ledger.entries.into_inner();
        self.check(&sim, plan, &entries).map_err(|(stage, message)| violation(&stage, message))?;
        let acknowledged = entries.iter().filter(|entry| entry.acknowledged).count();
        Ok(Outcome { attempts: entries.len(), acknowledged, mutations, interrupted })
    }

    fn check<T>(&self, sim: &Simulation, plan: &Plan, entries: &[Entry<T>]) -> Result<(), (String, String)>
    where
        C: Fn(&Env, &[Entry<T>]) -> Result<(), String>,
    {
        let mut random = SeededRandom::new(plan.options.seed ^ 0x5EC0_7E57);
        let check = |stage: String, crash: Option<CrashPoint>| {
            sim.restart();
            sim.crash_at(crash);
            match guarded(|| (self.checker)(&sim.env(), entries)) {
                Ok(Err(_)) if sim.is_crashed() => Ok(()),
                Ok(Ok(())) => Ok(()),
                Ok(Err(message)) | Err(message) => Err((stage, message)),
            }
        };
        for number in 1..=plan.recovery_crashes {
            let crash = CrashPoint::Mutation(1 + random.below(RECOVERY_MUTATIONS));
            check(format!("recovery {number}"), Some(crash))?;
        }
        check("check".to_owned(), None)?;
        check("second check".to_owned(), None)
    }

    /// Crashes at every `step`-th mutation of the workload in turn.
    pub fn sweep<T>(&self, options: SimOptions, step: usize) -> Result<Summary, Violation>
    where
        W: Fn(&Env, &Ledger<T>) -> Result<(), String>,
        C: Fn(&Env, &[Entry<T>]) -> Result<(), String>,
    {
        let calm = self.run(&Plan::calm(options))?;
        let mut summary = Summary::default();
        for number in (1..=calm.mutations).step_by(step) {
            let plan = Plan { crash: Some(CrashPoint::Mutation(number)), recovery_crashes: 1, ..Plan::calm(options) };
            summary.add(&self.run(&plan)?);
        }
        Ok(summary)
    }

    /// For each seed, crashes at a mutation the seed chooses, then up to two times in recovery; every fourth disk tears
    /// at 512 bytes.
    pub fn run_seeds<T>(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Summary, Violation>
    where
        W: Fn(&Env, &Ledger<T>) -> Result<(), String>,
        C: Fn(&Env, &[Entry<T>]) -> Result<(), String>,
    {
        let mut summary = Summary::default();
        for seed in seeds {
            let tear_bytes = if seed % 4 == 3 { 512 } else { 4096 };
            let options = SimOptions { tear_bytes, ..SimOptions::new(seed) };
            let mutations = self.run(&Plan::calm(options))?.mutations;
            let mut random = SeededRandom::new(seed);
            let crash = Some(CrashPoint::Mutation(1 + random.below(mutations.max(1))));
            let recovery_crashes = u32::try_from(random.below(3)).expect("below 3");
            summary.add(&self.run(&Plan { crash, recovery_crashes, ..Plan::calm(options) })?);
        }
        Ok(summary)
    }
}

impl Summary {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.interrupted += u64::from(outcome.interrupted);
        self.acknowledged += outcome.acknowledged as u64;
        self.in_doubt += (outcome.attempts - outcome.acknowledged) as u64;
    }
}

/// Turns a panic into a message.
fn guarded<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    panic::catch_unwind(AssertUnwindSafe(body)).map_err(|payload| format!("panicked: {}", message_of(payload.as_ref())))
}

pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    //! A store of one record a sector, right and wrong in known ways: the harness must tell them apart.

    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use thawdb_device::sim::{Fault, Operation};
    use thawdb_device::{AlignedBuf, BlockFile, DeviceError, DeviceErrorKind, OpenMode, ReadRequest, SECTOR_BYTES, WriteRequest};

    const RECORDS: u64 = 6;
    const SECTOR: u64 = SECTOR_BYTES as u64;

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Habit {
        Right,
        AcknowledgesBeforeSync,
        NeverSyncs,
        TrustsTornRecords,
    }

    fn path() -> &'static Path {
        Path::new("/log")
    }

    /// Records are two sectors long, each with the record's number at both ends.
    fn append(file: &dyn BlockFile, number: u64) -> Result<(), DeviceError> {
        let mut buffer = AlignedBuf::zeroed(2 * SECTOR_BYTES);
        buffer[..8].copy_from_slice(&number.to_le_bytes());
        buffer[2 * SECTOR_BYTES - 8..].copy_from_slice(&number.to_le_bytes());
        file.write(&[WriteRequest { offset: (number - 1) * 2 * SECTOR, buffer: &buffer }])
    }

    fn work(env: &Env, ledger: &Ledger<u64>, habit: Habit) -> Result<(), DeviceError> {
        let file = env.device.open(path(), OpenMode::CreateNew)?;
        file.set_len(RECORDS * 2 * SECTOR)?;
        for number in 1..=RECORDS {
            let attempt = ledger.attempt(number);
            append(&*file, number)?;
            if habit == Habit::AcknowledgesBeforeSync {
                ledger.acknowledge(attempt);
            }
            if habit != Habit::NeverSyncs {
                file.sync()?;
            }
            ledger.acknowledge(attempt);
        }
        Ok(())
    }

    /// Reads the records and, as a recovery does, wipes what is not whole.
    fn recover(file: &Arc<dyn BlockFile>, habit: Habit) -> Result<Vec<u64>, DeviceError> {
        let mut records = Vec::new();
        for place in 0..file.len_bytes()? / (2 * SECTOR) {
            let mut buffer = AlignedBuf::zeroed(2 * SECTOR_BYTES);
            file.read(&mut [ReadRequest { offset: place * 2 * SECTOR, buffer: &mut buffer }])?;
            let number_at = |at: usize| u64::from_le_bytes(buffer[at..at + 8].try_into().expect("eight bytes"));
            let (first, last) = (number_at(0), number_at(2 * SECTOR_BYTES - 8));
            match habit {
                Habit::TrustsTornRecords if first != 0 => {
                    assert!(first == last, "half a record");
                    records.push(first);
                }
                _ if first == last && first != 0 => records.push(first),
                _ => {
                    let zero = AlignedBuf::zeroed(2 * SECTOR_BYTES);
                    file.write(&[WriteRequest { offset: place * 2 * SECTOR, buffer: &zero }])?;
                }
            }
        }
        file.sync()?;
        Ok(records)
    }

    fn check(env: &Env, entries: &[Entry<u64>], habit: Habit) -> Result<(), String> {
        let records = match env.device.open(path(), OpenMode::Existing) {
            Ok(file) => recover(&file, habit).map_err(|e| e.to_string())?,
            Err(error) if error.kind == DeviceErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.to_string()),
        };
        match entries.iter().find(|entry| entry.acknowledged && !records.contains(&entry.operation)) {
            Some(lost) => Err(format!("record {} is lost", lost.operation)),
            None => Ok(()),
        }
    }

    type Workload = Box<dyn Fn(&Env, &Ledger<u64>) -> Result<(), String>>;
    type Checker = Box<dyn Fn(&Env, &[Entry<u64>]) -> Result<(), String>>;

    fn harness(habit: Habit) -> Harness<Workload, Checker> {
        let workload: Workload = Box::new(move |env, ledger| work(env, ledger, habit).map_err(|e| e.to_string()));
        let checker: Checker = Box::new(move |env, entries| check(env, entries, habit));
        Harness::new(workload, checker)
    }

    #[test]
    fn a_store_that_syncs_first_loses_nothing() {
        let harness = harness(Habit::Right);
        for seed in 0..20 {
            let summary = harness.sweep(SimOptions::new(seed), 1).expect("nothing is lost");
            // One creation, one length, six writes and six syncs; each run is interrupted before its acknowledgement.
            assert_eq!((summary.runs, summary.interrupted), (14, 14));
            // Crashes 1 and 2 find no record, 3 and 4 one in doubt, 5 and 6 one acknowledged and one in doubt ...
            assert_eq!((summary.acknowledged, summary.in_doubt), (2 * (1 + 2 + 3 + 4 + 5), 12));
        }
        let summary = harness.run_seeds(0..50).expect("nothing is lost");
        assert_eq!((summary.runs, summary.interrupted), (50, 50));
    }

    #[test]
    fn stores_that_lie_are_found_and_their_runs_replay() {
        for habit in [Habit::AcknowledgesBeforeSync, Habit::NeverSyncs] {
            let harness = harness(habit);
            let violation = (0..50).find_map(|seed| harness.sweep(SimOptions::new(seed), 1).err()).expect("50 seeds find it");
            assert!(violation.message.ends_with("is lost"), "{violation}");
            let again = harness.run(&violation.plan).expect_err("it replays");
            assert_eq!((again.stage, again.message), (violation.stage, violation.message));
        }
    }

    #[test]
    fn a_panic_of_the_checker_is_a_violation() {
        let harness = harness(Habit::TrustsTornRecords);
        let violation = (0..50).find_map(|seed| harness.sweep(SimOptions::new(seed), 1).err()).expect("50 seeds tear a record");
        assert_eq!(violation.message, "panicked: half a record");
    }

    #[test]
    fn a_workload_may_fail_only_when_something_was_ordered() {
        let harness = harness(Habit::Right);
        let small = SimOptions { capacity_bytes: SECTOR, ..SimOptions::new(1) };
        let violation = harness.run(&Plan::calm(small)).expect_err("the disk is too small");
        assert!(violation.message.starts_with("failed without a crash: resize"), "{violation}");

        let faults = vec![FaultRule::nth(Operation::Sync, 3, Fault::IoError)];
        let outcome = harness.run(&Plan { faults, ..Plan::calm(SimOptions::new(1)) }).expect("nothing acknowledged is lost");
        assert_eq!((outcome.attempts, outcome.acknowledged, outcome.interrupted), (3, 2, false));

        // A disk that loses a write it acknowledged: this store cannot survive it, and the harness says so.
        let faults = vec![FaultRule::nth(Operation::Write, 2, Fault::Lose)];
        let violation = harness.run(&Plan { faults, ..Plan::calm(SimOptions::new(1)) }).expect_err("a write was lost");
        assert_eq!(violation.message, "record 2 is lost");
    }
}
