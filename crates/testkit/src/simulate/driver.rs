//! The driver of a run: steps, trouble, restarts, and the ledger.
//!
//! 1. The ledger of a database changes only when a statement or COMMIT was acknowledged ([`Driver::acknowledge`]) or a
//!    restart has decided a doubt (`settle`).
//! 2. A database with a doubt is frozen: nobody asks it anything until the restart, so there is one doubt at most.

use super::Outcome;
use super::client::Client;
use super::model::{Change, DatabaseModel, IndexModel};
use super::plan::{Plan, Trouble, bad_reads, bad_writes, crash_point, delays, io_errors};
use super::player::Player;
use super::workload::Workload;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use thawdb_device::sim::{CrashPoint, SimOptions, Simulation};
use thawdb_engine::{Engine, EngineConfig};
use thawdb_observe::seeded::SeededRandom;
use thawdb_types::SqlError;

/// Room on the disk unless the trouble is that there is little: a cheap bound on runaway growth.
const CAPACITY_BYTES: u64 = 1 << 40;
/// Most crashes in recovery between two rounds.
const RECOVERY_CRASHES_MAX: u64 = 3;
/// Characters of a statement that the schedule shows.
const SHOWN_CHARACTERS: usize = 240;

/// The state of a run.
pub struct Driver {
    pub(super) plan: Plan,
    pub(super) committed: BTreeMap<String, DatabaseModel>,
    /// Commits without an answer, by database.
    pub(super) doubts: BTreeMap<String, Vec<Change>>,
    /// Tables where it is not known whether a resumable operation is, by database.
    pub(super) job_doubts: BTreeMap<String, (String, IndexModel)>,
    /// Databases of which it is not known whether they are there.
    pub(super) database_doubts: BTreeMap<String, ()>,
    pub(super) frozen: BTreeSet<String>,
    /// Databases known to be damaged by the trouble.
    pub(super) damaged: BTreeSet<String>,
    /// Whether writes of the first database may have been lost in an earlier life of the instance.
    pub(super) was_lost: bool,
    /// Databases that are older than their ledger by the trouble: nobody asks them any more.
    pub(super) stale: BTreeSet<String>,
    sim: Simulation,
    pub(super) random: SeededRandom,
    pub(super) workload: Workload,
    engine: Option<Arc<Engine>>,
    pub(super) players: Vec<Player>,
    schedule: Vec<String>,
    pub(super) statements: u64,
    pub(super) failures: u64,
    pub(super) commits: u64,
    pub(super) doubt_count: u64,
    crashes: u64,
    mutations: u64,
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(SHOWN_CHARACTERS)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

fn config(sim: &Simulation, memory_bytes: u64) -> EngineConfig {
    EngineConfig {
        env: sim.env(),
        data_folder: "/data".into(),
        memory_bytes_max: memory_bytes,
        sa_password: None,
        server_name: "SIMULATED".into(),
    }
}

/// CREATE DATABASE with small files that grow.
pub(super) fn create_database(name: &str) -> String {
    format!(
        "CREATE DATABASE {name} ON (NAME = {name}, FILENAME = '/data/{name}.mdf', SIZE = 1MB, FILEGROWTH = 1MB) \
         LOG ON (NAME = {name}_log, FILENAME = '/data/{name}.ldf', SIZE = 1MB, FILEGROWTH = 1MB)"
    )
}

/// A disk with an instance and two databases on it, closed; made once.
fn prepared() -> &'static Simulation {
    static PREPARED: OnceLock<Simulation> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let sim = Simulation::new(SimOptions::new(0));
        let engine = Engine::open(config(&sim, 4 << 20)).expect("an empty disk takes an instance");
        for name in ["user0", "user1"] {
            let mut client = Client::new(&engine, "master").expect("master is open");
            let answer = client.ask(&create_database(name));
            assert!(answer.errors.is_empty(), "{}", answer.told());
            let answer = client.ask(&format!("ALTER DATABASE {name} SET ALLOW_SNAPSHOT_ISOLATION ON"));
            assert!(answer.errors.is_empty(), "{}", answer.told());
        }
        engine.close().expect("nothing is wrong with the disk");
        sim
    })
}

impl Driver {
    /// A run that has not begun.
    pub fn new(plan: Plan) -> Self {
        let options = SimOptions { capacity_bytes: CAPACITY_BYTES, tear_bytes: plan.tear_bytes, ..SimOptions::new(plan.seed) };
        let sim = if plan.from_nothing { Simulation::new(options) } else { prepared().fork(options) };
        let mut random = SeededRandom::new(plan.seed);
        let workload = Workload::new(random.split());
        let known = if plan.from_nothing { Vec::new() } else { vec!["user0", "user1"] };
        let committed = known.into_iter().map(|name| (name.to_owned(), DatabaseModel::default())).collect();
        Self {
            players: (0..plan.clients).map(|_| Player::new("master")).collect(),
            plan,
            committed,
            doubts: BTreeMap::new(),
            job_doubts: BTreeMap::new(),
            database_doubts: BTreeMap::new(),
            frozen: BTreeSet::new(),
            damaged: BTreeSet::new(),
            was_lost: false,
            stale: BTreeSet::new(),
            sim,
            random,
            workload,
            engine: None,
            schedule: Vec::new(),
            statements: 0,
            failures: 0,
            commits: 0,
            doubt_count: 0,
            crashes: 0,
            mutations: 0,
        }
    }

    /// What the run was like.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            trouble: self.plan.trouble,
            statements: self.statements,
            failures: self.failures,
            commits: self.commits,
            doubts: self.doubt_count,
            crashes: self.crashes,
            mutations: self.mutations,
            fingerprint: self.sim.fingerprint(),
        }
    }

    /// What was done.
    pub fn into_schedule(self) -> Vec<String> {
        self.schedule
    }

    /// Whether the disk has stopped answering.
    pub(super) fn is_crashed(&self) -> bool {
        self.sim.is_crashed()
    }

    /// Puts a file on the disk that is not the engine's.
    pub(super) fn put_foreign(&self, path: &Path, bytes: &[u8]) {
        self.sim.put_foreign(path, bytes);
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("between a start and a stop")
    }

    /// Adds a line to the schedule.
    pub(super) fn note(&mut self, line: impl Into<String>) {
        let line = line.into();
        if self.plan.traces {
            eprintln!("{line}");
        }
        self.schedule.push(line);
    }

    /// The whole run.
    pub fn run(&mut self) -> Result<(), String> {
        for round in 0..self.plan.rounds {
            self.start(round == 0)?;
            if self.sim.is_crashed() {
                // A first start on an empty disk may be what the crash hits.
                self.stop(true);
                continue;
            }
            self.work()?;
            let is_clean = !self.sim.is_crashed() && self.plan.trouble != Trouble::Crash && self.random.chance(1, 2);
            self.quiet();
            self.stop(!is_clean);
            self.rot();
        }
        self.restart()?;
        self.bound_log("1MB")?;
        self.use_all()?;
        self.stop(false);
        self.restart()?;
        self.stop(false);
        Ok(())
    }

    /// Starts for a round of work, with the trouble ahead.
    fn start(&mut self, is_first: bool) -> Result<(), String> {
        if is_first && self.plan.from_nothing {
            self.sim.restart();
            if self.plan.trouble == Trouble::Crash && self.random.chance(1, 2) {
                self.sim.crash_at(Some(CrashPoint::Mutation(1 + self.random.below(120))));
            }
            match Engine::open(config(&self.sim, self.plan.memory_bytes)) {
                Ok(engine) => self.engine = Some(engine),
                Err(_) if self.sim.is_crashed() => return Ok(()),
                Err(error) => return Err(format!("an empty disk: {error}")),
            }
        } else {
            self.restart()?;
        }
        self.bound_log("0")?;
        self.arm();
        Ok(())
    }

    /// Orders the trouble of a round.
    fn arm(&mut self) {
        let counts = self.sim.counts();
        match self.plan.trouble {
            Trouble::Calm => {}
            Trouble::Crash => self.sim.crash_at(Some(crash_point(&mut self.random, counts.mutations(), counts.syncs))),
            Trouble::IoErrors => io_errors(&mut self.random).into_iter().for_each(|rule| self.sim.add_fault(rule)),
            Trouble::DiskFull => self.sim.set_capacity(self.sim.used_bytes() + self.random.below(4 << 20)),
            Trouble::Rot => bad_reads(&mut self.random).into_iter().for_each(|rule| self.sim.add_fault(rule)),
            Trouble::Misdirected => bad_writes(&mut self.random).into_iter().for_each(|rule| self.sim.add_fault(rule)),
            Trouble::SmallLog if self.random.chance(1, 2) => {
                self.sim.crash_at(Some(crash_point(&mut self.random, counts.mutations(), counts.syncs)));
            }
            Trouble::SmallLog => {}
        }
        if self.random.chance(1, 4) {
            delays(&mut self.random).into_iter().for_each(|rule| self.sim.add_fault(rule));
        }
    }

    /// Keeps the first database's log as small as it is, or lets it grow again.
    fn bound_log(&mut self, growth: &str) -> Result<(), String> {
        if self.plan.trouble != Trouble::SmallLog || !self.committed.contains_key("user0") {
            return Ok(());
        }
        let mut client = Client::new(self.engine(), "master").map_err(|error| error.to_string())?;
        // A log that is full is backed up first; without a full backup there is nothing to back up.
        let backup_log = "BACKUP LOG user0 TO DISK = 'NUL'";
        let answer = client.ask(backup_log);
        if ![0, 4208, 4214].contains(&answer.number()) {
            return Err(format!("{backup_log}: {}", answer.told()));
        }
        self.answer(&mut client, &format!("ALTER DATABASE user0 MODIFY FILE (NAME = user0_log, FILEGROWTH = {growth})"))?;
        self.answer(&mut client, "ALTER DATABASE user0 SET RECOVERY FULL")?;
        self.answer(&mut client, "BACKUP DATABASE user0 TO DISK = 'NUL'")?;
        self.answer(&mut client, backup_log).map(drop)
    }

    /// Ends the trouble.
    fn quiet(&mut self) {
        self.sim.clear_faults();
        self.sim.set_capacity(CAPACITY_BYTES);
    }

    /// Flips bits of the first database's data file, between two starts.
    fn rot(&mut self) {
        if self.plan.trouble != Trouble::Rot {
            return;
        }
        let path = Path::new("/data/user0.mdf");
        let sectors = self.sim.written(path);
        for _ in 0..self.random.below(4) {
            let Some(sector) = sectors.get(self.workload.below(sectors.len().max(1))) else { return };
            let offset = sector + self.random.below(4096);
            let bit = u8::try_from(self.random.below(8)).expect("a bit");
            // Fails only beyond the end of the file, where there is nothing to rot.
            if self.sim.flip_bit(path, offset, bit).is_ok() {
                self.note(format!("bit {bit} of byte {offset:#x} rots"));
            }
        }
    }

    /// Closes the instance, or stops it dead.
    fn stop(&mut self, is_dead: bool) {
        self.players.iter_mut().for_each(Player::end_session);
        if let Some(engine) = self.engine.take() {
            if is_dead {
                self.sim.crash();
            } else if let Err(error) = engine.close() {
                self.note(format!("close: {error}"));
            }
        }
        self.was_lost |= self.plan.trouble == Trouble::Misdirected;
        self.mutations += self.sim.counts().mutations();
        self.crashes += u64::from(is_dead);
        self.note(if is_dead { "-- crash" } else { "-- closed" });
    }

    /// Starts anew, with crashes on the way where crashes are the trouble; then compares and checks.
    fn restart(&mut self) -> Result<(), String> {
        let crashes = if self.plan.trouble == Trouble::Crash { self.random.below(RECOVERY_CRASHES_MAX) } else { 0 };
        for _ in 0..crashes {
            self.sim.restart();
            let at = 1 + self.random.below(60);
            self.sim.crash_at(Some(CrashPoint::Mutation(at)));
            let opened = Engine::open(config(&self.sim, self.plan.memory_bytes));
            self.note(format!(
                "-- start that crashes at mutation {at}: {}",
                opened.as_ref().map_or_else(SqlError::to_string, |_| "open".into())
            ));
            if let Ok(engine) = opened {
                while engine.background_turn() && !self.sim.is_crashed() {}
            } else if !self.sim.is_crashed() {
                return Err("the instance does not open, and nothing crashed".into());
            }
            self.sim.crash();
            self.crashes += 1;
        }
        self.sim.restart();
        let engine = Engine::open(config(&self.sim, self.plan.memory_bytes)).map_err(|error| format!("start: {error}"))?;
        self.engine = Some(engine);
        self.note("-- start");
        self.settle()?;
        self.check()
    }

    /// A round's steps.
    fn work(&mut self) -> Result<(), String> {
        for _ in 0..self.plan.steps {
            if self.sim.is_crashed() {
                return Ok(());
            }
            let at = self.workload.below(self.players.len());
            match self.random.below(100) {
                0..6 => drop(self.engine().background_turn()),
                6..8 => self.make_or_drop_database(at)?,
                _ => self.step(at)?,
            }
        }
        if self.plan.trouble == Trouble::DiskFull {
            // There is room again: everything must work without a restart.
            self.quiet();
            for _ in 0..10 {
                let at = self.workload.below(self.players.len());
                self.step(at)?;
            }
        }
        Ok(())
    }
}
