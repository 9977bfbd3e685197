//! Crashes of a simulated machine in the middle of transactions: what is read after the next open is exactly what was
//! committed and acknowledged, with or without the one commit whose answer the crash swallowed, before and after the
//! cleaner has been over it; and the check is clean.
//!
//! `THAWDB_SEED` runs one seed, `THAWDB_SEEDS` that many.

use crate::world::{Dice, compact_row};
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_device::sim::{CrashPoint, SimOptions, Simulation};
use thawdb_storage::{
    Database, DatabaseSpec, FileKind, FileSpec, KeyRange, Row, ScanDirection, Storage, StorageConfig, StorageError, TreeId, TreeSpec, Txn,
};

pub type Value = (Vec<u8>, Vec<Vec<u8>>);
pub type Rows = BTreeMap<Arc<[u8]>, Arc<Value>>;
pub type Trees = BTreeMap<TreeId, Rows>;

const MIB: u64 = 1 << 20;
pub const SPEC: TreeSpec = TreeSpec { object_id: 7, index_id: 1, filegroup: 1 };

pub fn spec() -> DatabaseSpec {
    let file = |name: &str, kind, size_bytes| FileSpec {
        name: name.into(),
        path: format!("/{name}").into(),
        kind,
        size_bytes,
        size_bytes_max: None,
        growth_bytes: MIB,
    };
    DatabaseSpec {
        name: "crash".into(),
        files: vec![file("data", FileKind::Rows { filegroup: 1 }, 2 * MIB), file("log", FileKind::Log, 2 * MIB)],
        temporary: false,
    }
}

/// A transaction and what it would make of the trees.
struct Open {
    txn: Txn,
    trees: Trees,
}

pub struct Run {
    pub simulation: Simulation,
    pub dice: Dice,
    pub committed: Trees,
    in_doubt: Option<Trees>,
}

fn value(dice: &mut Dice) -> Value {
    let inline_bytes = dice.below(300) as usize;
    let large = (0..if dice.below(12) == 0 { 1 + dice.below(2) } else { 0 })
        .map(|_| {
            let length = [0, 500, 9_000, 60_000, 250_000][dice.below(5) as usize];
            dice.bytes(length)
        })
        .collect();
    (compact_row(dice, inline_bytes), large)
}

fn key(dice: &mut Dice) -> Vec<u8> {
    format!("key/{:05}", dice.below(600)).into_bytes()
}

impl Run {
    /// One change; the model follows only what succeeded.
    fn change(&mut self, open: &mut Open) -> Result<(), StorageError> {
        let dice = &mut self.dice;
        let trees: Vec<TreeId> = open.trees.keys().copied().collect();
        let tree = trees[dice.below(trees.len() as u64) as usize];
        let (key, new) = (key(dice), value(dice));
        let parts: Vec<&[u8]> = new.1.iter().map(Vec::as_slice).collect();
        let row = Row { inline: &new.0, large: &parts };
        let rows = open.trees.get_mut(&tree).unwrap();
        match dice.below(20) {
            0..8 => match open.txn.insert(tree, &key, row) {
                Ok(()) => assert!(rows.insert(key.into(), Arc::new(new)).is_none()),
                Err(StorageError::Duplicate { .. }) => assert!(rows.contains_key(key.as_slice())),
                Err(error) => return Err(error),
            },
            8..13 => {
                if open.txn.update(tree, &key, row)? {
                    assert!(rows.insert(key.into(), Arc::new(new)).is_some());
                }
            }
            13..17 => assert_eq!(open.txn.delete(tree, &key)?, rows.remove(key.as_slice()).is_some()),
            17 => self.append(open, tree)?,
            18 => {
                let point = open.txn.savepoint();
                let before = open.trees.clone();
                for _ in 0..self.dice.below(6) {
                    self.simple_change(open, tree)?;
                }
                open.txn.rollback_to(point)?;
                open.trees = before;
            }
            _ => self.change_trees(open)?,
        }
        Ok(())
    }

    fn simple_change(&mut self, open: &mut Open, tree: TreeId) -> Result<(), StorageError> {
        let (key, new) = (key(&mut self.dice), value(&mut self.dice));
        let parts: Vec<&[u8]> = new.1.iter().map(Vec::as_slice).collect();
        if !open.txn.update(tree, &key, Row { inline: &new.0, large: &parts })? {
            open.txn.insert(tree, &key, Row::inline(&new.0))?;
        }
        open.txn.delete(tree, &key).map(drop)
    }

    /// Appends in bulk beyond everything: keys that begin with "z".
    fn append(&mut self, open: &mut Open, tree: TreeId) -> Result<(), StorageError> {
        let rows = open.trees.get_mut(&tree).unwrap();
        let count = self.dice.below(1200);
        let start = rows
            .last_key_value()
            .and_then(|(key, _)| std::str::from_utf8(key).ok()?.strip_prefix('z')?.parse::<u64>().ok())
            .map_or(0, |n| n + 1);
        let mut appender = open.txn.bulk_append(tree)?;
        if appender.last_key().is_some_and(|last| last >= format!("z{start:09}").as_bytes()) {
            // A ghost of a greater key is still there.
            return appender.finish();
        }
        let mut made = Vec::new();
        // Some are long enough to be forced to the device rather than logged.
        let widest = if self.dice.below(4) == 0 { 600 } else { 90 };
        for n in start..start + count {
            let key = format!("z{n:09}").into_bytes();
            let inline = compact_row(&mut self.dice, (n % widest) as usize);
            let large: Vec<Vec<u8>> = if self.dice.below(80) == 0 { vec![self.dice.bytes(9_000)] } else { Vec::new() };
            let parts: Vec<&[u8]> = large.iter().map(Vec::as_slice).collect();
            appender.push(&key, Row { inline: &inline, large: &parts })?;
            made.push((key.into(), Arc::new((inline, large))));
        }
        if self.dice.below(3) == 0 {
            drop(appender);
            return Ok(());
        }
        appender.finish()?;
        rows.extend(made);
        Ok(())
    }

    fn change_trees(&mut self, open: &mut Open) -> Result<(), StorageError> {
        if open.trees.len() < 4 {
            let packs_leaves = self.dice.below(2) == 0;
            open.trees.insert(open.txn.create_tree_of(SPEC, packs_leaves)?, Rows::new());
        } else {
            let trees: Vec<TreeId> = open.trees.keys().copied().collect();
            let tree = trees[1 + self.dice.below(trees.len() as u64 - 1) as usize];
            open.txn.drop_tree(tree)?;
            open.trees.remove(&tree);
        }
        Ok(())
    }

    /// Works until the machine crashes or `steps` transactions are done.
    pub fn work(&mut self, database: &Arc<Database>, steps: u64) -> Result<(), StorageError> {
        for _ in 0..steps {
            let mut open = Open { txn: database.begin(), trees: self.committed.clone() };
            for _ in 0..1 + self.dice.below(25) {
                self.change(&mut open)?;
            }
            match self.dice.below(10) {
                0 => open.txn.rollback()?,
                1 => drop(open.txn),
                _ => {
                    self.in_doubt = Some(open.trees);
                    open.txn.commit()?;
                    self.committed = self.in_doubt.take().unwrap();
                }
            }
            match self.dice.below(8) {
                0 => database.checkpoint()?,
                1 => database.clean()?,
                2 => drop(database.background_turn()?),
                // With pages still dirty: recovery must learn of them from its records.
                3 | 4 => database.store().checkpoint()?,
                5 => self.change_files(database)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a file, or removes or cuts one, whatever is in it.
    fn change_files(&mut self, database: &Arc<Database>) -> Result<(), StorageError> {
        let store = database.store();
        let table = store.file_table()?;
        let rows: Vec<u16> = table.iter().filter(|(_, spec)| spec.kind != FileKind::Log).map(|(number, _)| *number).collect();
        match self.dice.below(3) {
            0 if rows.len() < 4 => {
                let name = format!("extra{}", self.dice.next());
                let path = format!("/{name}").into();
                let kind = FileKind::Rows { filegroup: 1 };
                let spec = FileSpec { name, path, kind, size_bytes: MIB / 2, size_bytes_max: None, growth_bytes: MIB / 2 };
                store.add_data_file(&spec).map(drop)
            }
            1 if rows.len() > 1 => store.remove_data_file(rows[1 + self.dice.below(rows.len() as u64 - 1) as usize]).map(drop),
            _ => store.shrink_file(rows[self.dice.below(rows.len() as u64) as usize], 0).map(drop),
        }
    }

    /// Whether the database has exactly the rows of `expected`; an error if it cannot be read.
    pub fn try_matches(database: &Arc<Database>, expected: &Trees) -> Result<bool, StorageError> {
        let view = database.read_view(None);
        for (tree, rows) in expected {
            let mut scan = match view.scan(*tree, KeyRange::ALL, ScanDirection::Forward) {
                Err(StorageError::NoTree(_)) => return Ok(false),
                other => other?,
            };
            let mut expected = rows.iter();
            while let Some(block) = scan.next_block()? {
                for index in 0..block.len() {
                    let Some((key, model)) = expected.next() else { return Ok(false) };
                    if *block.key(index) != **key || *block.value(index) != *model.0 || block.large(index).len() != model.1.len() {
                        return Ok(false);
                    }
                    for (at, part) in block.large(index).iter().zip(&model.1) {
                        if view.read_large(*at)? != *part {
                            return Ok(false);
                        }
                    }
                }
            }
            if expected.next().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn matches(database: &Arc<Database>, expected: &Trees) -> bool {
        Self::try_matches(database, expected).unwrap()
    }

    /// Opens after the crash and compares.
    pub fn settle(&mut self, database: &Arc<Database>) -> Result<(), StorageError> {
        if !Self::try_matches(database, &self.committed)? {
            let in_doubt = self.in_doubt.take().expect("what was acknowledged is there, or a commit was in doubt");
            assert!(Self::try_matches(database, &in_doubt)?, "neither what was acknowledged nor the commit in doubt");
            self.committed = in_doubt;
        } else if let Some(in_doubt) = self.in_doubt.take()
            && in_doubt != self.committed
            && Self::try_matches(database, &in_doubt)?
            && in_doubt.keys().eq(self.committed.keys())
        {
            panic!("both at once");
        }
        Ok(())
    }

    /// A new database with one empty tree.
    pub fn start(simulation: &Simulation, seed: u64) -> Self {
        let mut run = Self { simulation: simulation.clone(), dice: Dice::new(seed), committed: Trees::new(), in_doubt: None };
        let database = storage(simulation).create_database(&spec()).unwrap();
        let mut txn = database.begin();
        let tree = txn.create_tree_of(SPEC, seed % 2 == 0).unwrap();
        txn.commit().unwrap();
        run.committed.insert(tree, Rows::new());
        run
    }
}

pub fn storage(simulation: &Simulation) -> Arc<Storage> {
    Storage::new(simulation.env(), StorageConfig { memory_bytes_max: 4 * MIB })
}

fn run(seed: u64) {
    let simulation = Simulation::new(SimOptions::new(seed));
    let mut run = Run::start(&simulation, seed);
    for round in 0..3 {
        let storage = storage(&simulation);
        let database = storage.open_database("/data".as_ref()).unwrap();
        run.settle(&database).unwrap();
        // Some lives roll back at once and leave the rows to the cleaner.
        database.set_eager_rollback_rows([0, 5, 1000][run.dice.below(3) as usize]);
        if run.dice.below(2) == 0 {
            database.clean().unwrap();
            assert!(Run::matches(&database, &run.committed), "after cleaning");
            let findings = database.check().unwrap();
            assert!(findings.is_empty(), "round {round}: {findings:#?}");
        }
        let point = run.simulation.counts().mutations() + 1 + run.dice.below(300);
        run.simulation.crash_at(Some(CrashPoint::Mutation(point)));
        let outcome = run.work(&database, 40);
        if let Err(error) = outcome {
            assert!(run.simulation.is_crashed(), "only the crash makes errors: {error}");
        }
        drop(database);
        drop(storage);
        run.simulation.restart();
    }
    let storage = storage(&simulation);
    let database = storage.open_database("/data".as_ref()).unwrap();
    run.settle(&database).unwrap();
    database.clean().unwrap();
    assert!(Run::matches(&database, &run.committed), "at the end");
    let findings = database.check().unwrap();
    assert!(findings.is_empty(), "at the end: {findings:#?}");
}

/// What the maps say is allocated is what something leads to, page for page, after a crash anywhere in work on large
/// values: written, replaced, appended, rolled back, cleaned.
#[test]
fn no_page_is_left_behind_wherever_work_on_large_values_ends() {
    let mut point = 1;
    loop {
        let simulation = Simulation::new(SimOptions::new(point));
        let database = storage(&simulation).create_database(&spec()).unwrap();
        let mut txn = database.begin();
        let tree = txn.create_tree(SPEC).unwrap();
        txn.commit().unwrap();
        let counts = simulation.counts().mutations();
        simulation.crash_at(Some(CrashPoint::Mutation(counts + point)));
        let outcome = large_work(&database, tree);
        drop(database);
        if outcome.is_ok() {
            assert!(point > 30, "the work has many points to crash at");
            return;
        }
        simulation.restart();
        let database = storage(&simulation).open_database("/data".as_ref()).unwrap();
        database.clean().unwrap();
        let pages = database.page_counts().unwrap();
        assert_eq!(pages.allocated, pages.reached, "crash at mutation {point}");
        assert_eq!(database.check().unwrap(), [], "crash at mutation {point}");
        // Every point at first, where the steps are short, then ever fewer.
        point += 1 + point / 12;
    }
}

fn large_work(database: &Arc<Database>, tree: TreeId) -> Result<(), StorageError> {
    let long = vec![7; 12_000_000];
    let parts: [&[u8]; 3] = [&long[..100], &long[..70_000], &long[..20_000]];
    let row = |count: usize| Row { inline: b"row", large: &parts[..count] };
    // Committed to the log and to the device after each step, so that there is a point to crash at in each.
    let settle = || database.store().flush_log(database.store().log().unwrap().end());
    let mut txn = database.begin();
    txn.insert(tree, b"a", row(3))?;
    settle()?;
    txn.insert(tree, b"b", row(2))?;
    settle()?;
    let point = txn.savepoint();
    txn.update(tree, b"a", row(1))?;
    txn.update(tree, b"a", row(2))?;
    settle()?;
    txn.rollback_to(point)?;
    settle()?;
    txn.commit()?;
    let mut txn = database.begin();
    txn.update(tree, b"a", row(2))?;
    txn.delete(tree, b"b")?;
    txn.commit()?;
    database.clean()?;
    settle()?;
    let mut txn = database.begin();
    txn.insert(tree, b"b", row(1))?;
    let mut appender = txn.bulk_append(tree)?;
    for n in 0..200_u32 {
        let large: &[&[u8]] = if n % 16 == 0 { &parts[..1] } else { &[] };
        appender.push(format!("z{n:05}").as_bytes(), Row { inline: &long[..400], large })?;
    }
    appender.finish()?;
    settle()?;
    txn.rollback()?;
    settle()?;
    database.clean()?;
    database.checkpoint()?;
    // Deep enough for three levels.
    let mut txn = database.begin();
    txn.insert(tree, b"c", Row { inline: b"", large: &[&long] })?;
    settle()?;
    txn.rollback()?;
    settle()?;
    database.checkpoint()?;
    database.clean()?;
    settle()
}

/// Runs `run` for so many seeds; `THAWDB_SEED` runs one, `THAWDB_SEEDS` that many.
pub fn seeds(first: u64, count: u64, run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    if let Ok(seed) = std::env::var("THAWDB_SEED") {
        return run(seed.parse().unwrap());
    }
    let count = std::env::var("THAWDB_SEEDS").map_or(count, |count| count.parse().unwrap());
    for seed in first..first + count {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed} failed");
    }
}

#[test]
fn acknowledged_commits_survive_and_nothing_else_does() {
    seeds(1, 100, run);
}
