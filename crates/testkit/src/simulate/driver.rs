//! The driver of a run: steps, trouble, restarts, and the ledger.
//!
//! 1. The ledger of a database changes only when a statement or COMMIT was acknowledged ([`Driver::acknowledge`]) or a
//!    restart has decided a doubt (`settle`).
//! 2. A database with a doubt is frozen: nobody asks it anything until the restart, so there is one doubt at most.

use super::Outcome;
use super::client::{Answer, Client};
use super::judge::{Verdict, tells_damage, verdict};
use super::model::{Change, DatabaseModel, difference};
use super::plan::{Plan, Trouble, bad_reads, bad_writes, crash_point, io_errors};
use super::player::Player;
use super::workload::{Expect, Statement, Workload};
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
    /// Databases of which it is not known whether they are there.
    pub(super) database_doubts: BTreeMap<String, ()>,
    pub(super) frozen: BTreeSet<String>,
    /// Databases known to be damaged by the trouble.
    pub(super) damaged: BTreeSet<String>,
    /// Databases that are older than their ledger by the trouble, as the check has told: nobody asks them any more.
    pub(super) stale: BTreeSet<String>,
    sim: Simulation,
    random: SeededRandom,
    workload: Workload,
    engine: Option<Arc<Engine>>,
    players: Vec<Player>,
    schedule: Vec<String>,
    statements: u64,
    failures: u64,
    commits: u64,
    doubt_count: u64,
    crashes: u64,
    mutations: u64,
}

fn cut(text: &str) -> &str {
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
fn create_database(name: &str) -> String {
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
            let answer = Client::new(&engine, "master").expect("master is open").ask(&create_database(name));
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
            database_doubts: BTreeMap::new(),
            frozen: BTreeSet::new(),
            damaged: BTreeSet::new(),
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
        }
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

    /// A database that may be asked, for a session without a transaction.
    fn usable(&mut self) -> Option<String> {
        let names: Vec<_> = self.committed.keys().filter(|name| !self.frozen.contains(*name)).cloned().collect();
        if names.is_empty() { None } else { Some(names[self.workload.below(names.len().min(self.plan.databases))].clone()) }
    }

    fn rivals(&self, at: usize) -> bool {
        self.players.iter().enumerate().any(|(other, player)| other != at && player.is_in_transaction)
    }

    /// Gives the player a session in a database that can be asked; false if there is none.
    fn seat(&mut self, at: usize) -> Result<bool, String> {
        let player = &self.players[at];
        let moves = !player.is_in_transaction && self.random.chance(1, 10);
        let is_seated = player.client.is_some() && self.committed.contains_key(&player.database) && !self.frozen.contains(&player.database);
        if is_seated && !moves {
            return Ok(true);
        }
        self.players[at].end_session();
        let Some(database) = self.usable() else { return Ok(false) };
        match Client::new(self.engine(), &database) {
            Ok(client) => {
                self.players[at].client = Some(client);
                self.players[at].database = database;
                Ok(true)
            }
            Err(error) => {
                let explained = verdict(&error, self.plan.trouble, false, true) != Verdict::Unexplained
                    || (self.damaged.contains(&database) && self.plan.trouble.damages());
                if explained || self.sim.is_crashed() { Ok(false) } else { Err(format!("no session in {database}: {error}")) }
            }
        }
    }

    fn ask(&mut self, at: usize, text: &str) -> Answer {
        let player = &mut self.players[at];
        let database = player.database.clone();
        let answer = player.client.as_mut().expect("the player has a seat").ask(text);
        self.statements += 1;
        let said = if answer.errors.is_empty() {
            answer.counted.map_or_else(|| "done".to_owned(), |count| format!("{count} rows"))
        } else {
            answer.told()
        };
        self.note(format!("{at} {database}: {} -> {said}", cut(text)));
        if self.players[at].client.as_ref().is_some_and(Client::is_ended) {
            self.players[at].end_session();
        }
        answer
    }

    /// One step of a session.
    fn step(&mut self, at: usize) -> Result<(), String> {
        if !self.seat(at)? {
            return Ok(());
        }
        let is_open = self.players[at].is_in_transaction;
        match (self.random.below(100), is_open) {
            (0..12, true) => self.commit(at),
            (0..12, false) => self.begin(at),
            (12..16, true) => self.roll_back(at),
            (16..21, true) => self.save(at),
            (21..25, true) => self.roll_back_to_savepoint(at),
            (12..15, false) => self.plain(at, "CHECKPOINT"),
            (15..17, false) if !self.rivals(at) => self.check_now(at),
            (25..50, _) => self.read(at),
            _ => self.write(at),
        }
    }

    /// A statement that changes nothing the ledger knows.
    fn plain(&mut self, at: usize, text: &str) -> Result<(), String> {
        let answer = self.ask(at, text);
        self.explain(at, &answer, false).map(drop)
    }

    fn check_now(&mut self, at: usize) -> Result<(), String> {
        if self.plan.trouble != Trouble::Calm && self.plan.trouble != Trouble::Crash {
            return self.plain(at, "CHECKPOINT");
        }
        let text = format!("DBCC CHECKDB ('{}') WITH NO_INFOMSGS", self.players[at].database);
        self.plain(at, &text)
    }

    /// What a failed answer means. `Ok(None)` is success; an error nothing explains is a violation.
    fn explain(&mut self, at: usize, answer: &Answer, is_commit: bool) -> Result<Option<Verdict>, String> {
        if answer.number() == -1 || answer.number() == 3624 {
            return Err(format!("a panic or a broken assertion: {}", answer.told()));
        }
        let Some(error) = answer.errors.first() else { return Ok(None) };
        if self.sim.is_crashed() {
            self.failures += 1;
            return Ok(Some(Verdict::Doubt));
        }
        let verdict = verdict(error, self.plan.trouble, is_commit, self.rivals(at));
        match verdict {
            Verdict::Unexplained => return Err(format!("nothing explains {}", answer.told())),
            Verdict::Locked | Verdict::Duplicate => {}
            Verdict::Nothing | Verdict::Doubt => {
                self.failures += 1;
                if tells_damage(answer.number(), self.plan.trouble) {
                    self.damaged.insert(self.players[at].database.clone());
                }
            }
        }
        Ok(Some(verdict))
    }

    fn acknowledge(&mut self, database: &str, changes: &[Change]) {
        self.commits += 1;
        let ledger = self.committed.get_mut(database).expect("a session's database is known");
        changes.iter().for_each(|change| ledger.apply(change));
    }

    fn doubt(&mut self, database: &str, changes: Vec<Change>) {
        self.doubt_count += 1;
        self.frozen.insert(database.to_owned());
        let earlier = self.doubts.insert(database.to_owned(), changes);
        assert!(earlier.is_none(), "a database in doubt is not asked");
    }

    /// After a failure within a transaction: it is taken back, as a careful client does.
    fn give_up(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        self.players[at].end_transaction();
        if self.players[at].client.is_none() || self.sim.is_crashed() {
            return Ok(());
        }
        let answer = self.ask(at, "IF @@TRANCOUNT > 0 ROLLBACK");
        if self.explain(at, &answer, false)?.is_some() {
            self.players[at].end_session();
            self.frozen.insert(database);
        }
        Ok(())
    }

    fn write(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        let view = self.players[at].view(&self.committed[&database]);
        let statement = self.workload.write(&view);
        if let Some((path, bytes)) = self.workload.file.take() {
            self.sim.put_foreign(Path::new(&path), &bytes);
        }
        let is_open = self.players[at].is_in_transaction;
        let answer = self.ask(at, &statement.text);
        match self.explain(at, &answer, false)? {
            None => self.written(at, &database, statement, &answer),
            Some(Verdict::Duplicate) if statement.expect == Expect::Duplicate => Ok(()),
            Some(Verdict::Duplicate) => Err(format!("no such row was there: {}", answer.told())),
            Some(Verdict::Locked) => Ok(()),
            Some(_) if is_open => self.give_up(at),
            Some(Verdict::Doubt) if statement.expect != Expect::Duplicate => {
                self.doubt(&database, statement.changes);
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    fn written(&mut self, at: usize, database: &str, statement: Statement, answer: &Answer) -> Result<(), String> {
        match statement.expect {
            Expect::Duplicate => return Err("a second row of the same key was taken".into()),
            Expect::Rows(expected) if answer.counted != Some(expected) => {
                return Err(format!("{expected} rows had to be counted, not {:?}", answer.counted));
            }
            Expect::Rows(_) | Expect::Done => {}
        }
        if self.players[at].is_in_transaction {
            self.players[at].changes.extend(statement.changes);
        } else {
            self.acknowledge(database, &statement.changes);
        }
        Ok(())
    }

    fn read(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        let view = self.players[at].view(&self.committed[&database]);
        let Some(question) = self.workload.read(&view) else { return Ok(()) };
        let is_open = self.players[at].is_in_transaction;
        let answer = self.ask(at, &question.text);
        match self.explain(at, &answer, false)? {
            None => {}
            Some(Verdict::Locked) => return Ok(()),
            Some(_) if is_open => return self.give_up(at),
            Some(_) => return Ok(()),
        }
        match difference(&question.expected, &answer.rows) {
            None => Ok(()),
            // A write went astray: a page may be what it was before. It is seen at the restart that the check tells.
            Some(why) if self.plan.trouble == Trouble::Misdirected && database == "user0" => {
                self.note(format!("stale: {why}"));
                self.damaged.insert(database.clone());
                self.frozen.insert(database);
                Ok(())
            }
            Some(why) => Err(format!("a read is wrong: {why}")),
        }
    }

    fn begin(&mut self, at: usize) -> Result<(), String> {
        let answer = self.ask(at, "BEGIN TRANSACTION");
        if self.explain(at, &answer, false)?.is_none() {
            self.players[at].is_in_transaction = true;
        }
        Ok(())
    }

    fn commit(&mut self, at: usize) -> Result<(), String> {
        let database = self.players[at].database.clone();
        // Before it is asked: an error may end the session.
        let changes = self.players[at].end_transaction();
        let answer = self.ask(at, "COMMIT");
        let explained = self.explain(at, &answer, true)?;
        match explained {
            None => self.acknowledge(&database, &changes),
            Some(_) => {
                self.players[at].end_session();
                self.doubt(&database, changes);
            }
        }
        Ok(())
    }

    fn roll_back(&mut self, at: usize) -> Result<(), String> {
        let answer = self.ask(at, "ROLLBACK");
        let explained = self.explain(at, &answer, false)?;
        self.players[at].end_transaction();
        if explained.is_some() {
            let database = self.players[at].database.clone();
            self.players[at].end_session();
            self.frozen.insert(database);
        }
        Ok(())
    }

    fn save(&mut self, at: usize) -> Result<(), String> {
        let answer = self.ask(at, "SAVE TRANSACTION s");
        match self.explain(at, &answer, false)? {
            None => self.players[at].savepoint = Some(self.players[at].changes.len()),
            Some(_) => self.give_up(at)?,
        }
        Ok(())
    }

    fn roll_back_to_savepoint(&mut self, at: usize) -> Result<(), String> {
        let Some(savepoint) = self.players[at].savepoint else { return self.save(at) };
        let answer = self.ask(at, "ROLLBACK TRANSACTION s");
        match self.explain(at, &answer, false)? {
            None => {
                self.players[at].changes.truncate(savepoint);
                Ok(())
            }
            Some(_) => self.give_up(at),
        }
    }

    /// Makes a database, or drops one that nobody is in.
    fn make_or_drop_database(&mut self, at: usize) -> Result<(), String> {
        if self.players[at].is_in_transaction || self.committed.len() > 3 && self.random.chance(1, 2) {
            return Ok(());
        }
        let extra = self.committed.keys().find(|name| name.starts_with("extra")).cloned();
        let (name, text) = match (extra, self.committed.contains_key("user0")) {
            (_, false) => ("user0".to_owned(), create_database("user0")),
            (Some(name), _) if self.players.iter().all(|player| player.database != name) => {
                let text = format!("DROP DATABASE {name}");
                (name, text)
            }
            (Some(_), _) => return Ok(()),
            (None, _) => {
                let name = format!("extra{}", self.statements);
                let text = create_database(&name);
                (name, text)
            }
        };
        self.players[at].end_session();
        let Ok(client) = Client::new(self.engine(), "master") else { return Ok(()) };
        self.players[at].client = Some(client);
        self.players[at].database = "master".into();
        let answer = self.ask(at, &text);
        let explained = self.explain(at, &answer, true)?;
        self.players[at].end_session();
        match explained {
            None if text.starts_with("DROP") => drop(self.committed.remove(&name)),
            None => drop(self.committed.insert(name, DatabaseModel::default())),
            Some(_) => {
                self.frozen.insert(name.clone());
                self.database_doubts.insert(name, ());
            }
        }
        Ok(())
    }
}
