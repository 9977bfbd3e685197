//! Builds on a simulated machine: crashed at any moment, with writers between the chunks, against the check of the table.

use super::*;
use crate::check::check_table;
use crate::index_build::tests::{Place, index, rows, table};
use std::collections::BTreeSet;
use thawdb_catalog::{DatabaseCatalog, DatabaseId, IndexDef, TreeLayout};
use thawdb_device::sim::{CrashPoint, SimOptions, Simulation};
use thawdb_storage::page_reads::page_reads;
use thawdb_storage::{DatabaseSpec, FileKind, FileSpec, KeyRange, Row, ScanDirection, Storage, StorageConfig, TreeSpec};
use thawdb_types::Scalar;
use thawdb_types::key::encode_key;
use thawdb_types::row::RowBuffer;

const MIB: u64 = 1 << 20;

fn spec(log_bytes: u64, growth_bytes: u64) -> DatabaseSpec {
    let file = |name: &str, kind, size_bytes, growth_bytes| FileSpec {
        name: name.into(),
        path: format!("/{name}").into(),
        kind,
        size_bytes,
        size_bytes_max: None,
        growth_bytes,
    };
    let rows = file("data", FileKind::Rows { filegroup: 1 }, 4 * MIB, MIB);
    DatabaseSpec { name: "online".into(), files: vec![rows, file("log", FileKind::Log, log_bytes, growth_bytes)], temporary: false }
}

struct Machine {
    simulation: Simulation,
    database: Option<Arc<Database>>,
    catalog: DatabaseCatalog,
}

struct Words<'t> {
    layout: TreeLayout,
    table: &'t TableDef,
}

impl Words<'_> {
    fn key(&self, own: &TreeLayout, row: &[Scalar]) -> Vec<u8> {
        let of = |columns: &[usize]| columns.iter().map(|c| row[*c].clone()).collect::<Vec<_>>();
        let mut key = Vec::new();
        encode_key(&of(&self.layout.key_columns[..self.layout.own_key_count]), self.layout.own_key(), &mut key);
        encode_key(&of(&own.key_columns), &own.key, &mut key);
        key
    }
}

fn encoded(layout: &TreeLayout, row: &[Scalar]) -> Vec<u8> {
    let mut buffer = RowBuffer::default();
    layout.row.encode(&layout.row_columns.iter().map(|c| row[*c].clone()).collect::<Vec<_>>(), &mut buffer).unwrap();
    buffer.inline().to_vec()
}

impl Machine {
    /// A table of `count` rows and a job that has not begun. `w` is short in every row.
    fn new(seed: u64, count: i32, wanted: IndexDef, log: (u64, u64)) -> Self {
        let simulation = Simulation::new(SimOptions::new(seed));
        let storage = Storage::new(simulation.env(), StorageConfig { memory_bytes_max: 8 * MIB });
        let database = storage.create_database(&spec(log.0, log.1)).unwrap();
        let mut txn = database.begin();
        let mut tree = |index_id| txn.create_tree(TreeSpec { object_id: 100, index_id, filegroup: 1 }).unwrap();
        let (rows_tree, target, side, runs) = (tree(1), tree(2), tree(2), tree(2));
        let definition = table(vec![IndexDef { tree: rows_tree, ..index(1, &[(0, false)], &[], true) }]);
        let mut catalog = DatabaseCatalog::empty(DatabaseId(5), 0);
        catalog.create(&mut txn).unwrap();
        catalog.put_table(&mut txn, definition.clone()).unwrap();
        let job = IndexJob {
            table: definition.id,
            index: IndexDef { tree: target, ..wanted },
            side,
            runs,
            statement: String::new(),
            max_dop: 0,
            resumable: true,
            fill_factor: 0,
            started: 0,
            rows_expected: count as u64,
            purpose: thawdb_catalog::JobPurpose::Create,
            progress: JobProgress::default(),
        };
        catalog.put_job(&mut txn, job).unwrap();
        txn.commit().unwrap();
        let machine = Self { simulation, database: Some(database), catalog };
        for part in rows(count).chunks(500) {
            machine.write(&[], part, false).unwrap();
        }
        machine
    }

    fn database(&self) -> &Arc<Database> {
        self.database.as_ref().unwrap()
    }

    fn definition(&self) -> Arc<TableDef> {
        self.catalog.tables.tables[&100].clone()
    }

    fn job(&self) -> IndexJob {
        (*self.catalog.jobs[&100]).clone()
    }

    /// Deletes and inserts rows as DML does, in one transaction.
    fn write(&self, gone: &[Vec<Scalar>], new: &[Vec<Scalar>], with_words: bool) -> Result<(), StorageError> {
        let definition = self.definition();
        let shadow = definition.with_building().unwrap();
        let own = TreeLayout::new(&definition, 0);
        let words = Words { layout: TreeLayout::new(&shadow, 1), table: &shadow };
        let side = words.table.indexes[1].tree;
        let mut txn = self.database().begin();
        let say = |txn: &mut Txn, key: &[u8], word: &[u8]| {
            if txn.update(side, key, Row::inline(word))? { Ok(()) } else { txn.insert(side, key, Row::inline(word)) }
        };
        for (row, lives) in gone.iter().map(|row| (row, false)).chain(new.iter().map(|row| (row, true))) {
            let mut key = Vec::new();
            encode_key(&own.key_columns.iter().map(|c| row[*c].clone()).collect::<Vec<_>>(), &own.key, &mut key);
            if lives {
                let short: Vec<Scalar> = row[..3].iter().cloned().chain([Scalar::text("w")]).collect();
                txn.insert(definition.indexes[0].tree, &key, Row::inline(&encoded(&own, &short)))?;
            } else {
                assert!(txn.delete(definition.indexes[0].tree, &key)?);
            }
            if with_words {
                let word = if lives { [&[1], &encoded(&words.layout, row)[..]].concat() } else { vec![0] };
                say(&mut txn, &words.key(&own, row), &word)?;
            }
        }
        txn.commit()
    }

    /// Opens after a crash.
    fn restart(&mut self) {
        self.database = None;
        self.simulation.restart();
        let storage = Storage::new(self.simulation.env(), StorageConfig { memory_bytes_max: 8 * MIB });
        let database = storage.open_database("/data".as_ref()).unwrap();
        self.catalog = DatabaseCatalog::load(&database.read_view(None), DatabaseId(5)).unwrap();
        self.database = Some(database);
    }

    /// Every key of a tree.
    fn keys(&self, tree: TreeId) -> Vec<Vec<u8>> {
        let mut scan = self.database().read_view(None).scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
        let mut keys = Vec::new();
        while let Some(block) = scan.next_block().unwrap() {
            keys.extend((0..block.len()).map(|at| block.whole_key(at)));
        }
        keys
    }

    /// Publishes the index.
    fn finish(&mut self, build: &mut OnlineBuild) -> Result<(), BuildError> {
        let mut txn = self.database().begin();
        build.catch_up_all(&mut txn)?;
        let job = build.job().clone();
        let mut altered = (*self.definition()).clone();
        altered.indexes.push(job.index.clone());
        self.catalog.put_table(&mut txn, altered)?;
        self.catalog.remove_job(&mut txn, job.table)?;
        txn.drop_tree(job.side)?;
        txn.drop_tree(job.runs)?;
        txn.commit()?;
        Ok(())
    }

    fn check(&self, rows: u64) {
        let definition = self.definition();
        assert_eq!(definition.indexes.len(), 2);
        let found = check_table(&definition, &self.database().read_view(None), &mut || Ok(())).unwrap();
        assert_eq!((found.rows, found.indexes[0].entries), (rows, rows));
        assert!(found.indexes[0].findings.is_empty(), "{:?}", found.indexes[0].findings);
        // A short log takes what cleaning writes in several goes.
        let _ = (0..20).any(|_| self.database().clean().is_ok() || self.database().checkpoint().is_err());
        self.database().clean().unwrap();
        let findings = self.database().check().unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// Chunks of 250 rows, more than a leaf has.
const REDONE: usize = 1_000;

fn small() -> OnlineOptions {
    OnlineOptions { redone_rows: REDONE, ..OnlineOptions::default() }
}

#[test]
fn a_crash_at_any_moment_costs_a_bounded_number_of_rows() {
    for seed in 1..=30 {
        let mut machine = Machine::new(seed, 2_400, index(2, &[(1, false)], &[2], false), (8 * MIB, MIB));
        let mut rows_read = 0;
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut crashes = 0;
        let (mut live, mut next_id) = (2_400_u64, 100_000);
        'life: loop {
            let job = machine.job();
            let at = &job.progress;
            let redone = rows_read - (at.rows_scanned + at.rows_appended);
            assert!(redone <= REDONE as u64, "seed {seed}: {redone} rows redone");
            rows_read -= redone;
            if crashes < 12 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let point = machine.simulation.counts().mutations() + 1 + (dice >> 33) % 24;
                machine.simulation.crash_at(Some(CrashPoint::Mutation(point)));
            }
            let outcome = (|| -> Result<(), BuildError> {
                // With no memory for runs, with some, and with enough.
                let options = OnlineOptions { memory_bytes_max: (seed % 3) as usize * 9_000, ..small() };
                let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &job, options)?;
                let before = rows_read;
                loop {
                    let stepped = build.step(0);
                    rows_read = before + build.rows_read();
                    if stepped? == Step::Ready {
                        break;
                    }
                }
                machine.finish(&mut build)
            })();
            match outcome {
                Ok(()) => break 'life,
                Err(error) => assert!(machine.simulation.is_crashed(), "seed {seed}: {error:?}"),
            }
            crashes += 1;
            machine.simulation.crash_at(None);
            machine.restart();
            if machine.catalog.jobs.is_empty() {
                break 'life;
            }
            // Writers while it is paused.
            let new = |id: i32| vec![Scalar::Int(id), Scalar::Int(id % 50), Scalar::Null, Scalar::text("w")];
            machine.write(&[], &[new(next_id), new(next_id + 1)], true).unwrap();
            machine.write(&[new(next_id)], &[], true).unwrap();
            (live, next_id) = (live + 1, next_id + 2);
        }
        machine.simulation.crash_at(None);
        assert!(crashes > 3, "seed {seed}: {crashes}");
        machine.check(live);
    }
}

#[test]
fn writers_between_chunks_have_the_last_word() {
    let mut machine = Machine::new(7, 3_000, index(2, &[(1, true)], &[2], false), (8 * MIB, MIB));
    let all = rows(3_000);
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    let (mut turn, mut live, mut percent) = (0_usize, 3_000, 0.0);
    let changed = |row: &[Scalar], a: i32| {
        let mut row = row.to_vec();
        row[1] = Scalar::Int(a);
        row
    };
    while build.step(0).unwrap() == Step::More {
        assert!(build.percent() >= percent, "it only rises");
        percent = build.percent();
        // Rows before and behind the scan: some change their key, one goes, and one goes and comes back.
        let at = |n: usize| &all[(turn * 97 + n * 911) % 3_000];
        if turn < 20 {
            machine.write(&[at(0).clone()], &[changed(at(0), turn as i32)], true).unwrap();
            machine.write(&[changed(at(0), turn as i32)], &[at(0).clone()], true).unwrap();
            machine.write(&[all[turn * 140 + 3].clone()], &[], true).unwrap();
            live -= 1;
        }
        turn += 1;
    }
    assert!(turn > 20, "{turn} chunks");
    machine.finish(&mut build).unwrap();
    machine.check(live);
}

#[test]
fn words_have_their_leaves_brought_in_together() {
    let mut machine = Machine::new(8, 3_000, index(2, &[(1, true)], &[2], false), (8 * MIB, MIB));
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    while build.step(0).unwrap() == Step::More {}
    drop(build);
    let gone: Vec<Vec<Scalar>> = rows(3_000).into_iter().step_by(30).collect();
    machine.write(&gone, &[], true).unwrap();
    machine.database().checkpoint().unwrap();
    machine.restart();
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    assert_eq!(build.step(0).unwrap(), Step::Ready);
    let before = page_reads();
    machine.finish(&mut build).unwrap();
    let reads = page_reads().since(&before);
    assert!(reads.ahead >= 10 && reads.physical < 10, "{reads:?}");
    machine.check(2_900);
}

#[test]
fn a_unique_build_stops_at_two_that_live_and_goes_on_when_one_is_gone() {
    let mut machine = Machine::new(9, 0, index(2, &[(1, false)], &[], true), (8 * MIB, MIB));
    let row = |id: i32, a: i32| vec![Scalar::Int(id), Scalar::Int(a), Scalar::Null, Scalar::text("w")];
    machine.write(&[], &[row(1, 5), row(2, 6), row(3, 5), row(4, 7)], false).unwrap();
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    let run = |build: &mut OnlineBuild| loop {
        match build.step(0) {
            Ok(Step::More) => {}
            other => return other,
        }
    };
    let Err(BuildError::Sql(error)) = run(&mut build) else { panic!("two rows have one key") };
    assert_eq!(error.number, 1505);
    machine.write(&[row(3, 5)], &[row(3, 8)], true).unwrap();
    assert_eq!(run(&mut build).unwrap(), Step::Ready);
    // One that comes late.
    machine.write(&[], &[row(5, 7)], true).unwrap();
    assert!(matches!(machine.finish(&mut build), Err(BuildError::Sql(error)) if error.number == 1505));
    machine.write(&[row(4, 7)], &[], true).unwrap();
    let job = build.job().clone();
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &job, small()).unwrap();
    assert_eq!(build.step(0).unwrap(), Step::Ready);
    machine.finish(&mut build).unwrap();
    machine.check(4);
}

/// Words are taken some at a time: where the row that had a key goes in the next batch, the one that has it now is no duplicate.
#[test]
fn a_key_that_moves_from_row_to_row_is_no_duplicate_wherever_a_batch_ends() {
    let mut machine = Machine::new(10, 0, index(2, &[(1, false)], &[], true), (8 * MIB, MIB));
    let row = |id: i32, a: i32| vec![Scalar::Int(id), Scalar::Int(a), Scalar::Null, Scalar::text("w")];
    let before: Vec<Vec<Scalar>> = (0..400).map(|n| row(n, n)).collect();
    machine.write(&[], &before, false).unwrap();
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    while build.step(0).unwrap() == Step::More {}
    // Row n takes the key of row n + 1: of each key the row that comes lies before the row that goes.
    let after: Vec<Vec<Scalar>> = (0..400).map(|n| row(n, n + 1)).collect();
    machine.write(&before, &after, true).unwrap();
    build.words_max = WORDS_MIN + 1;
    while build.step(0).unwrap() == Step::More {}
    machine.finish(&mut build).unwrap();
    machine.check(400);
}

/// Of two rows that share a key for good, one is told however few words are taken at a time.
#[test]
fn more_duplicates_than_a_batch_takes_end_a_build() {
    let machine = Machine::new(11, 0, index(2, &[(1, false)], &[], true), (8 * MIB, MIB));
    let row = |id: i32, a: i32| vec![Scalar::Int(id), Scalar::Int(a), Scalar::Null, Scalar::text("w")];
    let before: Vec<Vec<Scalar>> = (0..400).map(|n| row(n, n)).collect();
    machine.write(&[], &before, false).unwrap();
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    while build.step(0).unwrap() == Step::More {}
    machine.write(&[], &(0..400).map(|n| row(n + 400, n)).collect::<Vec<_>>(), true).unwrap();
    build.words_max = WORDS_MIN;
    let error = loop {
        match build.step(0) {
            Ok(Step::More) => {}
            Ok(Step::Ready) => panic!("four hundred keys are there twice"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, BuildError::Sql(error) if error.number == 1505));
}

#[test]
fn a_small_log_is_enough_and_a_full_one_pauses() {
    // The table's rows alone fill this log many times; nothing of a build may need more than a chunk's worth.
    let mut machine = Machine::new(11, 6_000, index(2, &[(1, false)], &[], false), (MIB, 0));
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), OnlineOptions::default()).unwrap();
    // A hold keeps the log from being truncated, as a log that waits for its backup does.
    let store = machine.database().store().clone();
    let log = store.log().unwrap();
    let hold = log.hold(log.start(), thawdb_storage::log::LogHoldup::LogScan);
    let mut stopped = false;
    for _ in 0..1_000 {
        match build.step(0) {
            Ok(Step::More) => {}
            Ok(Step::Ready) => break,
            Err(BuildError::Storage(StorageError::LogFull { .. })) => {
                stopped = true;
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
        // Small writes fill the log beside the build.
        let row = |id: i32| vec![Scalar::Int(id), Scalar::Int(1), Scalar::Null, Scalar::text("w")];
        let id = 1_000_000 + build.progress().run_count as i32;
        if machine.write(&[], &(0..200).map(|n| row(id * 1_000 + n)).collect::<Vec<_>>(), true).is_err() {
            stopped = true;
            break;
        }
    }
    drop(hold);
    machine.database().checkpoint().unwrap();
    assert!(stopped || build.progress().merged);
    let job = build.job().clone();
    drop(build);
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &job, OnlineOptions::default()).unwrap();
    while build.step(0).unwrap() == Step::More {}
    machine.finish(&mut build).unwrap();
    let rows = check_table(&machine.definition(), &machine.database().read_view(None), &mut || Ok(())).unwrap().rows;
    machine.check(rows);
}

/// Where the log is not short, two chunks are on their way when the next finds no room.
#[test]
fn a_full_log_loses_none_of_the_chunks_on_their_way() {
    let mut machine = Machine::new(13, 40_000, index(2, &[(1, false)], &[3], false), (3 * MIB, 0));
    let options = || OnlineOptions { redone_rows: 10_000, ..OnlineOptions::default() };
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), options()).unwrap();
    let (mut stops, mut most, mut written) = (0, 0, 0);
    'lives: loop {
        machine.database().checkpoint().unwrap();
        let store = machine.database().store().clone();
        let log = store.log().unwrap();
        let hold = log.hold(log.end(), thawdb_storage::log::LogHoldup::LogScan);
        loop {
            // Others leave the build a log that is not short, and is full soon.
            while written < 20_000 && build.progress().merging && build.free_log_bytes() > 3 * MIB / 2 {
                let new = |id| vec![Scalar::Int(id), Scalar::Int(3), Scalar::Null, Scalar::text("w")];
                machine.write(&[], &(0..100).map(|more| new(-1 - written - more)).collect::<Vec<_>>(), true).unwrap();
                written += 100;
            }
            match build.step(0) {
                Ok(Step::More) => most = most.max(build.flights.len()),
                Ok(Step::Ready) => break 'lives,
                Err(BuildError::Storage(StorageError::LogFull { .. })) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        drop(hold);
        stops += 1;
        assert!(stops < 100, "{:?}", build.progress());
        build.settle().unwrap();
        build.rest();
        machine.database().checkpoint().unwrap();
        build.go_on(options()).unwrap();
    }
    assert!(stops > 0 && most == FLIGHTS_MAX, "{stops} stops, {most} chunks at once");
    machine.finish(&mut build).unwrap();
    machine.check(40_000 + written.cast_unsigned() as u64);
}

/// Extents of the data file in use, once what is given back has been.
fn used_extents(machine: &Machine) -> u32 {
    let database = machine.database();
    for _ in 0..50 {
        database.clean().unwrap();
        database.background_turn().unwrap();
    }
    database.store().used_extents(1).unwrap().0
}

#[test]
fn what_a_build_takes_is_given_back_however_it_ends() {
    for (steps, crash) in [(3, false), (3, true), (9, false), (9, true), (usize::MAX, false)] {
        let mut machine = Machine::new(13, 4_000, index(2, &[(1, false)], &[2], false), (8 * MIB, MIB));
        let before = used_extents(&machine);
        let job = machine.job();
        let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &job, small()).unwrap();
        let mut done = 0;
        while done < steps && build.step(0).unwrap() == Step::More {
            done += 1;
        }
        build.settle().unwrap();
        drop(build);
        assert!(used_extents(&machine) > before, "after {done} steps nothing is there yet");
        if crash {
            machine.simulation.crash_at(Some(CrashPoint::Mutation(machine.simulation.counts().mutations() + 1)));
            assert!(machine.database().checkpoint().is_err());
            machine.simulation.crash_at(None);
            machine.restart();
        }
        // As ABORT does.
        let mut txn = machine.database().begin();
        machine.catalog.remove_job(&mut txn, job.table).unwrap();
        [job.index.tree, job.side, job.runs].into_iter().for_each(|tree| txn.drop_tree(tree).unwrap());
        txn.commit().unwrap();
        let after = used_extents(&machine);
        assert!(after <= before, "{steps} steps, crash {crash}: {before} extents before, {after} after");
        assert!(machine.database().check().unwrap().is_empty());
    }
}

#[test]
fn long_chunks_and_a_bounded_memory_give_the_same_index() {
    for memory_bytes_max in [0, 40_000, 64 << 20] {
        let mut machine = Machine::new(17, 12_000, index(2, &[(2, true)], &[1], false), (8 * MIB, MIB));
        let options = OnlineOptions { redone_rows: 12_000, memory_bytes_max, ..OnlineOptions::default() };
        let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), options).unwrap();
        while build.step(0).unwrap() == Step::More {
            assert!(build.cache.bytes() <= memory_bytes_max);
        }
        assert!(build.progress().run_count >= 3);
        machine.finish(&mut build).unwrap();
        machine.check(12_000);
    }
}

#[derive(Debug, PartialEq)]
enum Written {
    None,
    Some,
    All,
}

/// Runs that memory keeps are written only where somebody may take the operation up; what memory has no room for always is.
#[test]
fn runs_that_nobody_will_take_up_are_written_as_far_as_memory_lacks() {
    for (resumable, memory_bytes_max, written) in
        [(true, 64 << 20, Written::All), (false, 64 << 20, Written::None), (false, 40_000, Written::Some), (false, 0, Written::All)]
    {
        let mut machine = Machine::new(18, 6_000, index(2, &[(2, true)], &[1], false), (8 * MIB, MIB));
        let options = OnlineOptions { memory_bytes_max, ..small() };
        let job = IndexJob { resumable, ..machine.job() };
        let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &job, options).unwrap();
        while !build.progress().merging {
            assert_eq!(build.step(0).unwrap(), Step::More);
        }
        build.settle().unwrap();
        let run_count = build.progress().run_count;
        assert!(run_count >= 20, "{run_count} runs");
        let in_tree: BTreeSet<[u8; 4]> = machine.keys(job.runs).iter().map(|key| *key.first_chunk().unwrap()).collect();
        let found = match in_tree.len() {
            0 => Written::None,
            all if all == run_count as usize => Written::All,
            _ => Written::Some,
        };
        assert_eq!(found, written, "{} of {run_count}, resumable {resumable}, {memory_bytes_max} bytes", in_tree.len());
        while build.step(0).unwrap() == Step::More {}
        machine.finish(&mut build).unwrap();
        machine.check(6_000);
    }
}

#[test]
fn a_build_that_rests_goes_on_with_what_it_has() {
    for memory_bytes_max in [0, 9_000, 64 << 20] {
        let mut machine = Machine::new(19, 3_000, index(2, &[(1, false)], &[2], false), (8 * MIB, MIB));
        let options = || OnlineOptions { memory_bytes_max, ..small() };
        let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), options()).unwrap();
        let mut written = 0;
        while build.step(0).unwrap() == Step::More {
            build.settle().unwrap();
            build.rest();
            // Behind the scan, wherever that is.
            let row = vec![Scalar::Int(-1 - written), Scalar::Int(3), Scalar::Null, Scalar::text("w")];
            machine.write(&[], &[row], true).unwrap();
            written += 1;
            let job = build.job().clone();
            assert!(build.is_of(machine.database(), &machine.definition(), &job));
            assert!(!build.is_of(machine.database(), &machine.definition(), &IndexJob { fill_factor: 50, ..job }));
            build.go_on(options()).unwrap();
        }
        assert!(written > 15, "{written} pauses");
        let at = build.progress().clone();
        assert_eq!(build.rows_read(), at.rows_scanned + at.rows_appended, "a pause has cost rows");
        machine.finish(&mut build).unwrap();
        machine.check(3_000 + written.cast_unsigned() as u64);
    }
}

#[test]
fn a_chunk_that_found_no_room_in_the_log_is_not_gathered_again() {
    let mut machine = Machine::new(23, 6_000, index(2, &[(1, false)], &[], false), (MIB, 0));
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    let (mut full, mut full_in_merge, mut written) = (0, 0, 0);
    'build: for _ in 0..200 {
        let store = machine.database().store().clone();
        let log = store.log().unwrap();
        let hold = log.hold(log.end(), thawdb_storage::log::LogHoldup::LogScan);
        // Others leave the build very little.
        while machine.write(&[], &[vec![Scalar::Int(-1 - written), Scalar::Int(3), Scalar::Null, Scalar::text("w")]], true).is_ok() {
            written += 1;
        }
        let outcome = build.step(0);
        drop(hold);
        if let Err(error) = outcome {
            assert!(matches!(error, BuildError::Storage(StorageError::LogFull { .. })), "{error:?}");
            full += 1;
            full_in_merge += u64::from(build.progress().merging);
            build.settle().unwrap();
            build.rest();
            // A turn may need more log than there is yet.
            let goes_on = (0..50).any(|_| {
                let _ = machine.database().background_turn();
                let _ = machine.database().checkpoint();
                build.go_on(small()).is_ok()
            });
            assert!(goes_on, "the log has room again");
        }
        for _ in 0..2 {
            match build.step(0) {
                Ok(Step::Ready) => break 'build,
                Ok(Step::More) | Err(BuildError::Storage(StorageError::LogFull { .. })) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(
            turns < 200,
            "no room comes: {:?} {full} {full_in_merge} {:?}",
            machine.database().store().log().unwrap().space(),
            build.progress()
        );
        let _ = machine.database().background_turn();
        let _ = machine.database().checkpoint();
        match build.step(0) {
            Ok(Step::Ready) => break,
            Ok(Step::More) | Err(BuildError::Storage(StorageError::LogFull { .. })) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(full_in_merge > 2, "the log was full {full} times, {full_in_merge} times while merging");
    let at = build.progress().clone();
    // Rows of the scan are read again; what was gathered from runs is kept.
    let again = build.rows_read() - at.rows_scanned - at.rows_appended;
    assert!(again <= (full - full_in_merge) * 2 * REDONE as u64, "{again} rows again after {full} stops, {full_in_merge} while merging");
    machine.finish(&mut build).unwrap();
    machine.check(6_000 + written.cast_unsigned() as u64);
}

#[test]
fn two_threads_make_the_same_index() {
    let place = Place::new("online-by-two");
    let both = place.make(table(vec![index(1, &[(0, false)], &[], true), index(2, &[(1, false)], &[2], false)]));
    let count = 9_000;
    place.insert(&both, &rows(count), 0..1);
    let (target, offline) = (both.indexes[1].tree, place.make(table(vec![index(2, &[], &[], false)])).indexes[0].tree);
    let source = TableDef { indexes: vec![both.indexes[0].clone()], ..(*both).clone() };
    let mut txn = place.database.begin();
    let mut tree = || txn.create_tree(TreeSpec { object_id: 100, index_id: 2, filegroup: 1 }).unwrap();
    let (side, runs) = (tree(), tree());
    DatabaseCatalog::empty(DatabaseId(5), 0).create(&mut txn).unwrap();
    let job = IndexJob {
        table: source.id,
        index: IndexDef { tree: target, ..both.indexes[1].clone() },
        side,
        runs,
        statement: String::new(),
        max_dop: 2,
        resumable: true,
        fill_factor: 0,
        started: 0,
        rows_expected: count as u64,
        purpose: thawdb_catalog::JobPurpose::Create,
        progress: JobProgress::default(),
    };
    put_job(&mut txn, &job).unwrap();
    txn.commit().unwrap();
    let options = || OnlineOptions { threads: 2, redone_rows: 2_000, ..OnlineOptions::default() };
    let mut build = OnlineBuild::begin(&place.database, &source, &job, options()).unwrap();
    let (mut turns, mut percent) = (0, 0.0);
    while build.step(0).unwrap() == Step::More {
        turns += 1;
        if turns % 5 == 0 {
            build.settle().unwrap();
            build.rest();
            build.go_on(options()).unwrap();
        }
        if turns % 7 == 0 {
            // As after a crash, but for what was not durable.
            let job = build.job().clone();
            let redone = build.rows_read() - job.progress.rows_scanned - job.progress.rows_appended;
            assert!(redone <= 2_000, "{redone} rows of no use");
            drop(build);
            build = OnlineBuild::begin(&place.database, &source, &job, options()).unwrap();
            build.rows_read = job.progress.rows_scanned + job.progress.rows_appended;
        }
        assert!(build.percent() >= percent, "it only rises");
        percent = build.percent();
    }
    assert!(turns > 20, "{turns} turns");
    let mut txn = place.database.begin();
    build.catch_up_all(&mut txn).unwrap();
    txn.commit().unwrap();
    let mut compared = (*both).clone();
    compared.indexes[1].tree = offline;
    place.build(&source, &Arc::new(compared), 1, 1 << 20).unwrap();
    assert_eq!(place.contents(target).len(), count as usize);
    assert!(place.contents(target) == place.contents(offline));
    assert!(place.database.check().unwrap().is_empty());
}

/// A run that is none, as another version or a fault could leave it: the operation cannot be taken up, and says so by its number.
#[test]
fn a_state_that_is_none_is_refused() {
    let machine = Machine::new(17, 3_000, index(2, &[(1, false)], &[], false), (8 * MIB, MIB));
    let mut build = OnlineBuild::begin(machine.database(), &machine.definition(), &machine.job(), small()).unwrap();
    while !build.job().progress.merging {
        assert_eq!(build.step(0).unwrap(), Step::More);
    }
    let job = build.job().clone();
    drop(build);
    let view = machine.database().read_view(None);
    let mut scan = view.scan(job.runs, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let keys: Vec<Vec<u8>> =
        scan.next_block().unwrap().map_or_else(Vec::new, |block| (0..block.len()).map(|at| block.key(at).to_vec()).collect());
    let mut txn = machine.database().begin();
    for key in &keys {
        assert!(txn.update(job.runs, key, Row::inline(b"no block of a run")).unwrap());
    }
    txn.commit().unwrap();
    let begun = OnlineBuild::begin(machine.database(), &machine.definition(), &job, small());
    let outcome = begun.and_then(|mut build| {
        loop {
            match build.step(0) {
                Ok(Step::More) => {}
                other => return other,
            }
        }
    });
    assert!(matches!(&outcome, Err(BuildError::Sql(error)) if error.number == 10673), "{outcome:?}");
}
