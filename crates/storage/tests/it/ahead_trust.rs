//! What scans read ahead is trusted no more than any other page: damage in it is repaired or refused, writers beside the scans
//! lose nothing and show nothing half done, and reading ahead leaves the pool to others.

use crate::crash::{SPEC, spec, storage};
use crate::read_ahead::{MEMORY_BYTES, ROWS, fill, scan_parts, value};
use crate::world::{Dice, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_device::sim::{SimOptions, Simulation};
use thawdb_storage::page_reads::{PageReads, page_reads};
use thawdb_storage::store::suspect::SuspectEvent;
use thawdb_storage::{Database, KeyRange, PageId, ReadView, Row, RowBlock, ScanDirection, StorageError, TreeId};

/// Ways of reading a tree: by one scan, by parts that are begun at their turn, and before it.
const WAYS: [Option<usize>; 4] = [None, Some(0), Some(1), Some(5)];

fn read(view: &ReadView, tree: TreeId, way: Option<usize>, mut each: impl FnMut(&RowBlock)) -> Result<(), StorageError> {
    if let Some(begun) = way {
        return scan_parts(view, tree, begun, each).map(drop);
    }
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward)?;
    while let Some(block) = scan.next_block()? {
        each(block);
    }
    Ok(())
}

/// Reads all; rows that come must be right, whatever comes of the rest.
fn read_filled(database: &Arc<Database>, tree: TreeId, way: Option<usize>) -> Result<(), StorageError> {
    let mut n = 0_u64;
    read(&database.read_view(None), tree, way, |block| {
        for index in 0..block.len() {
            assert_eq!(block.key(index), (n * 2).to_be_bytes());
            assert!(block.value(index) == value(n, 1), "row {n}");
            n += 1;
        }
    })?;
    assert_eq!(n, ROWS, "no row is left out");
    Ok(())
}

/// A tree in a file of the simulation, its pages in file order. What was appended was forced to the file, and the log does not
/// have it; the last pages came from leaves that were divided, and the log has them whole.
fn tree_in_file(simulation: &Simulation) -> (TreeId, Vec<PageId>) {
    let database = storage(simulation).create_database(&spec()).unwrap();
    let mut txn = database.begin();
    let tree = txn.create_tree(SPEC).unwrap();
    txn.commit().unwrap();
    fill(&database, tree);
    let mut txn = database.begin();
    let between = || (ROWS / 2..ROWS / 2 + 1200).step_by(60).map(|n| (n * 2 + 1).to_be_bytes());
    between().for_each(|key| txn.insert(tree, &key, Row::inline(&value(0, 1))).unwrap());
    txn.commit().unwrap();
    let mut txn = database.begin();
    between().for_each(|key| assert!(txn.delete(tree, &key).unwrap()));
    txn.commit().unwrap();
    // No ghosts are left to be removed, nor leaves to be put together, by a later life.
    database.clean().unwrap();
    let pages = database.pages_of_tree(tree).unwrap().into_iter().filter(|page| page.is_used && page.map.is_some());
    let pages = pages.map(|page| page.page).collect();
    database.close().unwrap();
    (tree, pages)
}

/// Of every page in a row that is longer than any part of the tree, so that among them are leaves that begin parts, which are
/// found by the node above, and leaves inside, which are found by their neighbours. A page that was forced and changed since
/// once came with the error of its redo, and was not noted as one whose checksum is wrong.
#[test]
fn a_rotten_page_among_those_read_ahead_is_repaired_or_refused_by_name() {
    let simulation = Simulation::new(SimOptions::new(11));
    let (tree, pages) = tree_in_file(&simulation);
    let (mut refused, mut repaired) = (0, 0);
    let middle = pages.len() / 2 - 20;
    for (at, here) in pages[middle..middle + 60].iter().chain(&pages[pages.len() - 12..]).enumerate() {
        let offset = u64::from(here.page) * 8192 + 100 + at as u64 * 131 % 8000;
        let rot = || simulation.flip_bit("/data".as_ref(), offset, 3).unwrap();
        rot();
        let storage = storage(&simulation);
        let database = storage.open_database("/data".as_ref()).unwrap();
        let way = WAYS[at % WAYS.len()];
        let outcome = read_filled(&database, tree, way);
        let event = database.store().suspect_pages().into_iter().find(|row| row.page == *here).map(|row| row.event);
        match (&outcome, event) {
            (Err(StorageError::Damage { page, .. }), Some(SuspectEvent::Checksum)) if page == here => refused += 1,
            (Ok(()), Some(SuspectEvent::Restored)) => repaired += 1,
            _ => panic!("page {here:?}, read by {way:?}: {outcome:?}, {event:?}"),
        }
        if outcome.is_err() {
            rot();
            // As when a cable is changed: nobody has kept what was wrong.
            read_filled(&database, tree, way).unwrap();
        }
        database.close().unwrap();
    }
    assert!(refused >= 20 && repaired >= 4, "{refused} refused, {repaired} repaired");
}

const WRITERS: u64 = 2;
const TURNS: u64 = 150;
const CHANGES: u64 = 12;

fn marker(writer: u64) -> [u8; 8] {
    (u64::MAX - writer).to_be_bytes()
}

/// What turn `turn` of a writer does: for each key the generation that it has from then on, none if it has gone. Keys of
/// different writers differ.
fn changes(writer: u64, turn: u64) -> Vec<(u64, Option<u8>)> {
    let mut dice = Dice::new(turn * WRITERS + writer + 1);
    let generation = turn as u8;
    let mut change = |_| {
        let n = dice.below(ROWS / WRITERS) * WRITERS + writer;
        match dice.below(4) {
            0 => (n * 2, None),
            1 | 2 => (n * 2, Some(generation)),
            _ => (n * 2 + 1, Some(generation)),
        }
    };
    (0..CHANGES).map(&mut change).collect()
}

/// Every fifth turn is taken back.
fn is_kept(turn: u64) -> bool {
    !turn.is_multiple_of(5)
}

fn write_turns(database: &Arc<Database>, tree: TreeId, writer: u64) {
    for turn in 1..=TURNS {
        let mut txn = database.begin();
        txn.set_delayed_durability(true);
        for (key, generation) in changes(writer, turn) {
            let (key, row) = (key.to_be_bytes(), generation.map(|generation| value(turn, generation)));
            match row {
                None => drop(txn.delete(tree, &key).unwrap()),
                Some(row) if txn.update(tree, &key, Row::inline(&row)).unwrap() => {}
                Some(row) => txn.insert(tree, &key, Row::inline(&row)).unwrap(),
            }
        }
        assert!(txn.update(tree, &marker(writer), Row::inline(&turn.to_le_bytes())).unwrap());
        if is_kept(turn) {
            txn.commit().unwrap()
        } else {
            txn.rollback().unwrap()
        }
        if turn % 10 == writer {
            database.background_turn().unwrap();
        }
    }
}

/// What there is after some turns of each writer.
struct Model {
    rows: BTreeMap<u64, (u64, u8)>,
    turns: [u64; WRITERS as usize],
}

impl Model {
    fn new() -> Self {
        Self { rows: (0..ROWS).map(|n| (n * 2, (n, 1))).collect(), turns: [0; WRITERS as usize] }
    }

    /// Goes on to where `view` is, and compares all it sees.
    fn check(&mut self, view: &ReadView, tree: TreeId, way: Option<usize>) {
        for writer in 0..WRITERS {
            let row = view.get(tree, &marker(writer)).unwrap().unwrap();
            let turn = u64::from_le_bytes(row.value(0).try_into().unwrap());
            let before = std::mem::replace(&mut self.turns[writer as usize], turn);
            for turn in (before + 1..=turn).filter(|turn| is_kept(*turn)) {
                for (key, generation) in changes(writer, turn) {
                    match generation {
                        None => drop(self.rows.remove(&key)),
                        Some(generation) => drop(self.rows.insert(key, (turn, generation))),
                    }
                }
            }
        }
        let mut expected = self.rows.iter();
        let mut markers = 0;
        let outcome = read(view, tree, way, |block| {
            for index in 0..block.len() {
                let Some((key, (n, generation))) = expected.next() else {
                    markers += 1;
                    continue;
                };
                assert_eq!(block.key(index), key.to_be_bytes(), "after {:?} by {way:?}", self.turns);
                assert!(block.value(index) == value(*n, *generation), "key {key} after {:?} by {way:?}", self.turns);
            }
        });
        outcome.unwrap();
        assert_eq!((expected.next(), markers), (None, WRITERS), "after {:?} by {way:?}", self.turns);
    }
}

/// Two writers and two readers beside each other, with a pool that holds a quarter of the tree: pages that were read ahead
/// become others' and are written and leave the pool again before they are looked at, leaves divide and empty. Each view shows
/// exactly what was committed when it was taken.
#[test]
fn scans_beside_writers_give_exactly_what_was_committed() {
    let mut world = World::with_memory("ahead_writers", MEMORY_BYTES);
    let tree = world.tree();
    fill(&world.database, tree);
    let mut txn = world.database.begin();
    (0..WRITERS).for_each(|writer| txn.insert(tree, &marker(writer), Row::inline(&0_u64.to_le_bytes())).unwrap());
    txn.commit().unwrap();
    world.reopen();
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let database: &Arc<Database> = &world.database;
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write_turns(database, tree, writer))).collect();
        for reader in 0..2 {
            let running = &running;
            scope.spawn(move || {
                let mut model = Model::new();
                for way in WAYS.iter().cycle().skip(reader * 2) {
                    // Once more after the end.
                    let is_last = !running.load(Ordering::Relaxed);
                    model.check(&database.read_view(None), tree, *way);
                    if is_last {
                        break;
                    }
                }
                let last = (1..=TURNS).rev().find(|turn| is_kept(*turn)).unwrap();
                assert_eq!(model.turns, [last; WRITERS as usize]);
            });
        }
        let ends: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        running.store(false, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.unwrap());
    });
    assert!(world.database.check().unwrap().is_empty());
}

/// What `work` read.
fn counted(work: impl FnOnce()) -> PageReads {
    let before = page_reads();
    work();
    page_reads().since(&before)
}

/// Each page comes from the device about once, however many parts there are and however early they were begun; and what others
/// have in the pool stays there.
#[test]
fn parts_read_each_page_once_and_leave_the_pool_to_others() {
    let mut world = World::with_memory("ahead_counted", MEMORY_BYTES);
    let (tree, small) = (world.tree(), world.tree());
    fill(&world.database, tree);
    let mut txn = world.database.begin();
    (0..600_u64).for_each(|n| txn.insert(small, &n.to_be_bytes(), Row::inline(&value(n, 7))).unwrap());
    txn.commit().unwrap();
    world.reopen();
    let pages = world.used_pages(tree).len() as u64;
    let small_pages = world.used_pages(small).len() as u64;
    assert!(pages > 1000 && small_pages > 30, "{pages} pages, {small_pages} pages");
    let read_small = || {
        (0..600_u64).for_each(|n| assert!(world.database.read_view(None).get(small, &n.to_be_bytes()).unwrap().is_some()));
    };
    for way in [Some(5), Some(0), None] {
        counted(read_small);
        let reads = counted(|| read_filled(&world.database, tree, way).unwrap());
        let fetched = reads.physical + reads.ahead;
        assert!(fetched <= pages + pages / 16, "{way:?}: {reads:?} of {pages} pages");
        assert!(fetched >= pages - pages / 4, "{way:?}: {reads:?} of {pages} pages");
        assert!(reads.physical <= 60, "{way:?}: {reads:?}: pages were waited for one by one");
        // Each leaf, and the nodes above it some times: for a descent of each part, and for each chunk.
        assert!(reads.logical >= pages - 10 && reads.logical <= pages + pages / 3, "{way:?}: {reads:?} of {pages} pages");
        let again = counted(read_small);
        assert_eq!((again.physical, again.ahead), (0, 0), "{way:?}: others' pages left the pool");
    }
}
