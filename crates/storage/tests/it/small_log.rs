//! Random schedules on logs of a megabyte or two, on the simulated device: changes, log backups, shrinks, growth up to a
//! limit, changes of the recovery model, delayed commits, crashes. Claims: nothing but `LogFull` stops a change, and what
//! it stops can be taken back; a log backup is always possible and the next change then finds room; every acknowledged
//! commit is there after a crash (a delayed one only with all before it); backups follow each other without a gap; the
//! check is clean at the end.
//!
//! `THAWDB_SEED` runs one seed, `THAWDB_SEEDS` that many.

use crate::model::content;
use crate::world::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_device::sim::{CrashPoint, SimOptions, Simulation};
use thawdb_storage::log::{LogHoldup, RecoveryModel};
use thawdb_storage::store::data_backup::BackupSink;
use thawdb_storage::{
    Database, DatabaseSpec, FileKind, FileSpec, KeyRange, Lsn, PageId, Row, ScanDirection, Storage, StorageConfig, StorageError, TreeId,
    TreeSpec,
};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const MIB: u64 = 1 << 20;
const SPEC: TreeSpec = TreeSpec { object_id: 7, index_id: 1, filegroup: 1 };

/// Counts, and holds blocks of log to one unbroken stretch.
#[derive(Default)]
struct Counting {
    bytes: u64,
    last: Lsn,
}

impl BackupSink for Counting {
    fn pages(&mut self, _: PageId, bytes: &[u8]) -> Result<(), StorageError> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn log(&mut self, at: Lsn, bytes: &[u8]) -> Result<(), StorageError> {
        assert!(at >= self.last, "blocks rise");
        self.last = Lsn(at.0 + bytes.len() as u64);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn finish(&mut self, first: Lsn, last: Lsn) -> Result<(), StorageError> {
        assert!(first <= last && self.last <= last, "all of it was given");
        Ok(())
    }
}

/// What a seed provoked.
#[derive(Debug, Default)]
struct Seen {
    full: BTreeMap<&'static str, u32>,
    backups: u32,
    crashes: u32,
    shrinks: u32,
    lost_delayed: u32,
}

struct Run {
    simulation: Simulation,
    dice: Dice,
    tree: TreeId,
    /// The last state known to be durable, and those after it, which a crash may fall back to.
    states: Vec<Rows>,
    /// Where the last log backup ended, while the chain lasts.
    backed_up: Option<Lsn>,
    seen: Seen,
}

fn spec(log_bytes: u64, growth_bytes: u64) -> DatabaseSpec {
    let file = |name: &str, kind, size_bytes, size_bytes_max, growth_bytes| FileSpec {
        name: name.into(),
        path: format!("/{name}").into(),
        kind,
        size_bytes,
        size_bytes_max,
        growth_bytes,
    };
    let data = file("data", FileKind::Rows { filegroup: 1 }, 3 * MIB, None, MIB);
    DatabaseSpec {
        name: "small".into(),
        files: vec![data, file("log", FileKind::Log, log_bytes, Some(2 * log_bytes), growth_bytes)],
        temporary: false,
    }
}

impl Run {
    fn now(&self) -> &Rows {
        self.states.last().expect("there is always a state")
    }

    /// One transaction. A full log is met by rolling back to a savepoint, or as a whole.
    fn change(&mut self, database: &Arc<Database>) -> Result<(), StorageError> {
        let mut rows = self.now().clone();
        let mut txn = database.begin();
        let mut full = None;
        for _ in 0..1 + self.dice.below(40) {
            let point = txn.savepoint();
            let key = format!("k{:04}", self.dice.below(400)).into_bytes();
            let length = 1 + self.dice.below(900) as usize;
            let value = self.dice.bytes(length);
            let changed = match rows.contains_key(&key) {
                false => txn.insert(self.tree, &key, Row::inline(&value)),
                true if self.dice.below(3) == 0 => txn.delete(self.tree, &key).map(|there| assert!(there)),
                true => txn.update(self.tree, &key, Row::inline(&value)).map(|there| assert!(there)),
            };
            match changed {
                Ok(()) if rows.contains_key(&key) && txn_deleted(&txn, database, self.tree, &key) => drop(rows.remove(&key)),
                Ok(()) => drop(rows.insert(key, value)),
                Err(StorageError::LogFull { reuse_wait, .. }) => {
                    *self.seen.full.entry(reuse_wait).or_default() += 1;
                    full = Some(reuse_wait);
                    txn.rollback_to(point)?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if full.is_some() && self.dice.below(2) == 0 || self.dice.below(8) == 0 {
            txn.rollback()?;
        } else {
            let delayed = self.dice.below(4) == 0;
            txn.set_delayed_durability(delayed);
            // A crash in the commit leaves either; one that returns and waited leaves this.
            self.states.push(rows);
            match txn.commit() {
                Ok(()) if delayed => {}
                Ok(()) => drop(self.states.drain(..self.states.len() - 1)),
                Err(StorageError::LogFull { .. }) => drop(self.states.pop()),
                Err(error) => return Err(error),
            }
        }
        if full == Some("LOG_BACKUP") {
            self.back_up(database)?;
            self.must_find_room(database)?;
        }
        Ok(())
    }

    fn must_find_room(&mut self, database: &Arc<Database>) -> Result<(), StorageError> {
        let mut txn = database.begin();
        let key = b"z".to_vec();
        let there = self.now().contains_key(&key);
        let made = if there {
            txn.update(self.tree, &key, Row::inline(b"room")).map(drop)
        } else {
            txn.insert(self.tree, &key, Row::inline(b"room"))
        };
        match made {
            Err(StorageError::LogFull { reuse_wait, .. }) => {
                panic!("no room after a log backup: {reuse_wait}, {:?}", database.store().log().map(|log| log.space()))
            }
            other => other?,
        }
        let mut rows = self.now().clone();
        rows.insert(key, b"room".to_vec());
        self.states.push(rows);
        txn.commit()?;
        self.states.drain(..self.states.len() - 1);
        Ok(())
    }

    fn back_up(&mut self, database: &Arc<Database>) -> Result<(), StorageError> {
        let log = database.store().log().expect("logged").clone();
        if log.policy().chain.is_none() {
            return Ok(());
        }
        let taken = database.store().back_up_log(1, false, &mut Counting::default());
        let taken = match taken {
            Err(StorageError::LogFull { .. }) => panic!("a log backup needs no log"),
            other => other?,
        };
        if let Some(before) = self.backed_up {
            assert_eq!(taken.first, before, "log backups follow each other");
        }
        self.backed_up = Some(taken.last);
        self.seen.backups += 1;
        Ok(())
    }

    fn step(&mut self, database: &Arc<Database>) -> Result<(), StorageError> {
        let store = database.store();
        match self.dice.below(24) {
            0 | 1 => self.back_up(database),
            2 => {
                let target = self.dice.below(3) * 512 * 1024;
                let (bytes, _) = store.shrink_log(target)?;
                self.seen.shrinks += 1;
                assert_eq!(bytes, store.log().expect("logged").space().size_bytes);
                Ok(())
            }
            3 => match store.log().expect("logged").grow_to(MIB + self.dice.below(2) * MIB) {
                Err(StorageError::LogFull { .. }) => Ok(()),
                other => other,
            },
            4 => {
                let model = [RecoveryModel::Full, RecoveryModel::BulkLogged, RecoveryModel::Simple][self.dice.below(3) as usize];
                store.set_recovery_model(model)?;
                if store.log().expect("logged").policy().chain.is_none() {
                    self.backed_up = None;
                }
                Ok(())
            }
            5 | 6 => {
                store.back_up_data(&mut Counting::default())?;
                Ok(())
            }
            7 => match database.checkpoint() {
                Err(StorageError::LogFull { .. }) => Ok(()),
                other => other,
            },
            8 | 9 => match database.background_turn() {
                Err(StorageError::LogFull { .. }) => Ok(()),
                other => other.map(drop),
            },
            _ => self.change(database),
        }
    }

    fn compare(&mut self, database: &Arc<Database>) {
        let found: Rows = content(&database.read_view(None), self.tree, KeyRange::ALL, ScanDirection::Forward)
            .into_iter()
            .map(|(key, row)| (key.to_vec(), row.to_vec()))
            .collect();
        let place = self.states.iter().rposition(|rows| *rows == found).expect("a state from the last durable one on");
        self.seen.lost_delayed += u32::try_from(self.states.len() - 1 - place).expect("few");
        self.states = vec![found];
    }
}

fn txn_deleted(txn: &thawdb_storage::Txn, database: &Arc<Database>, tree: TreeId, key: &[u8]) -> bool {
    database.read_view(Some(txn)).get(tree, key).expect("reads").is_none()
}

fn storage(simulation: &Simulation) -> Arc<Storage> {
    Storage::new(simulation.env(), StorageConfig { memory_bytes_max: 4 * MIB })
}

fn run(seed: u64) -> Seen {
    let simulation = Simulation::new(SimOptions::new(seed));
    let mut dice = Dice::new(seed);
    let spec = spec(MIB + dice.below(2) * MIB, dice.below(2) * 256 * 1024);
    let tree = {
        let database = storage(&simulation).create_database(&spec).expect("made");
        let mut txn = database.begin();
        let tree = txn.create_tree(SPEC).expect("made");
        txn.commit().expect("committed");
        database.store().set_recovery_model(RecoveryModel::Full).expect("set");
        tree
    };
    let mut run = Run { simulation: simulation.clone(), dice, tree, states: vec![Rows::new()], backed_up: None, seen: Seen::default() };
    for _ in 0..3 {
        let storage = storage(&simulation);
        let database = storage.open_database("/data".as_ref()).expect("opens");
        run.compare(&database);
        // What the crash cut off of a backup's end is in the next one.
        run.backed_up = database.store().log().expect("logged").policy().keeps_from();
        if run.dice.below(2) == 0 {
            let at = run.simulation.counts().mutations() + 20 + run.dice.below(900);
            run.simulation.crash_at(Some(CrashPoint::Mutation(at)));
        }
        let outcome = (0..60).try_for_each(|_| run.step(&database));
        if let Err(error) = outcome {
            assert!(run.simulation.is_crashed(), "seed {seed}: {error}");
        }
        run.seen.crashes += 1;
        run.simulation.crash();
        drop((database, storage));
        run.simulation.restart();
    }
    run.simulation.crash_at(None);
    let storage = storage(&simulation);
    let database = storage.open_database("/data".as_ref()).expect("opens");
    run.compare(&database);
    run.backed_up = None;
    run.back_up(&database).expect("a log backup is always possible");
    run.must_find_room(&database).expect("the database goes on");
    database.clean().expect("cleans");
    let findings = database.check().expect("checks");
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
    run.seen
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_small_log_never_wedges() {
    if let Some(seed) = number("THAWDB_SEED") {
        println!("{:?}", run(seed));
        return;
    }
    let mut all = Seen::default();
    for seed in 0..number("THAWDB_SEEDS").unwrap_or(200) {
        let seen = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed}"));
        seen.full.into_iter().for_each(|(why, count)| *all.full.entry(why).or_default() += count);
        all.backups += seen.backups;
        all.crashes += seen.crashes;
        all.shrinks += seen.shrinks;
        all.lost_delayed += seen.lost_delayed;
    }
    println!("{all:?}");
    if number("THAWDB_SEEDS").is_none() {
        assert!(all.full.contains_key("LOG_BACKUP") && all.backups > 100 && all.shrinks > 100 && all.lost_delayed > 0, "{all:?}");
    }
}

/// Changes until the log is full. Returns the reason.
fn fill(database: &Arc<Database>, tree: TreeId) -> &'static str {
    for n in 0_u32..100_000 {
        let mut txn = database.begin();
        let key = (n % 50).to_be_bytes();
        let row = [n as u8; 700];
        let changed = txn
            .update(tree, &key, Row::inline(&row))
            .and_then(|there| if there { Ok(()) } else { txn.insert(tree, &key, Row::inline(&row)) });
        match changed.and_then(|()| txn.commit()) {
            Ok(()) => {}
            Err(StorageError::LogFull { reuse_wait, .. }) => return reuse_wait,
            Err(error) => panic!("{error}"),
        }
    }
    "never full"
}

#[test]
fn every_reason_is_provoked() {
    let simulation = Simulation::with_seed(1);
    let database = storage(&simulation).create_database(&spec(MIB, 0)).expect("made");
    let mut txn = database.begin();
    let tree = txn.create_tree(SPEC).expect("made");
    txn.commit().expect("committed");
    let (store, log) = (database.store().clone(), database.store().log().expect("logged").clone());
    assert_eq!(fill(&database, tree), "never full", "SIMPLE goes round by itself");
    store.set_recovery_model(RecoveryModel::Full).expect("set");
    assert_eq!(fill(&database, tree), "never full", "FULL acts as SIMPLE before the first backup");
    store.back_up_data(&mut Counting::default()).expect("backed up");
    for round in 0..20 {
        assert_eq!(fill(&database, tree), "LOG_BACKUP");
        assert_eq!(log.holdup(), LogHoldup::LogBackup);
        let taken = store.back_up_log(round, false, &mut Counting::default()).expect("always possible");
        assert!(taken.bytes > 200_000, "{taken:?}");
    }
    assert_eq!(log.policy().backup_time, 19);
    store.set_recovery_model(RecoveryModel::Simple).expect("set");
    let (_, hold) = log.hold_checkpoint(LogHoldup::ActiveBackup);
    assert_eq!(fill(&database, tree), "ACTIVE_BACKUP_OR_RESTORE");
    drop(hold);
    let hold = log.hold(log.checkpoint_lsn(), LogHoldup::LogScan);
    assert_eq!(fill(&database, tree), "LOG_SCAN");
    drop(hold);
    database.checkpoint().expect("room again");
    let mut txn = database.begin();
    let mut reason = None;
    for n in 1000_u32..60_000 {
        match txn.insert(tree, &n.to_be_bytes(), Row::inline(&[n as u8; 30])) {
            Ok(()) => {}
            Err(StorageError::LogFull { reuse_wait, .. }) => {
                reason = Some(reuse_wait);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(reason, Some("ACTIVE_TRANSACTION"), "what is free is its rollback's");
    txn.rollback().expect("rolls back");
    database.checkpoint().expect("room again");
    assert_eq!(log.holdup(), LogHoldup::Nothing);
}

#[test]
fn one_backup_and_one_shrink_bring_a_log_down() {
    let simulation = Simulation::with_seed(2);
    let database = storage(&simulation).create_database(&spec(MIB, MIB)).expect("made");
    let mut txn = database.begin();
    let tree = txn.create_tree(SPEC).expect("made");
    txn.commit().expect("committed");
    let (store, log) = (database.store().clone(), database.store().log().expect("logged").clone());
    store.set_recovery_model(RecoveryModel::Full).expect("set");
    store.back_up_data(&mut Counting::default()).expect("backed up");
    assert_eq!(fill(&database, tree), "LOG_BACKUP");
    assert_eq!(log.space().size_bytes, 2 * MIB, "it grew to its limit");
    store.back_up_log(1, false, &mut Counting::default()).expect("backed up");
    let largest = log.vlfs().iter().map(|vlf| vlf.size_bytes).max().expect("some");
    store.shrink_log(MIB).expect("shrinks");
    store.back_up_log(2, false, &mut Counting::default()).expect("backed up");
    let (bytes, stopped) = store.shrink_log(MIB).expect("shrinks");
    assert!(!stopped && bytes < MIB + largest, "{bytes}");
    drop(store);
    drop((log, database));
    let database = storage(&simulation).open_database("/data".as_ref()).expect("opens");
    assert_eq!(database.store().log().expect("logged").space().size_bytes, bytes);
}
