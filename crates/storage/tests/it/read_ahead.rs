//! Scans of a tree four times the pool, which read ahead beside it, while the tree changes under them.

use crate::world::World;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_storage::page_reads::page_reads;
use thawdb_storage::{Database, KeyRange, ReadView, Row, RowBlock, Scan, ScanDirection, StorageError, TreeId};

pub const ROWS: u64 = 20_000;
/// The smallest pool, 2 MiB: rows of 400 bytes make the tree four times as large.
pub const MEMORY_BYTES: u64 = 1 << 20;

pub fn value(n: u64, generation: u8) -> Vec<u8> {
    let mut bytes = n.to_le_bytes().to_vec();
    bytes.resize(400, generation);
    bytes
}

fn filled(world: &World) -> TreeId {
    let tree = world.tree();
    fill(&world.database, tree);
    tree
}

/// Rows of even keys.
pub fn fill(database: &Arc<Database>, tree: TreeId) {
    let mut txn = database.begin();
    let mut appender = txn.bulk_append(tree).unwrap();
    for n in 0..ROWS {
        appender.push(&(n * 2).to_be_bytes(), Row::inline(&value(n, 1))).unwrap();
    }
    appender.finish().unwrap();
    txn.commit().unwrap();
}

/// Scans all of the tree, calling `between` after each block; every row must be the one of the first generation.
fn check(view: &ReadView, tree: TreeId, mut between: impl FnMut(u64)) {
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let (mut block, mut n) = (RowBlock::default(), 0_u64);
    while scan.next_into(&mut block).unwrap() {
        block.spell_keys();
        for index in 0..block.len() {
            assert_eq!(block.key(index), (n * 2).to_be_bytes());
            assert!(block.value(index) == value(n, 1), "row {n}");
            n += 1;
        }
        between(n);
    }
    assert_eq!(n, ROWS);
}

fn count(view: &ReadView, tree: TreeId) -> u64 {
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let mut rows = 0;
    while let Some(more) = scan.next_count().unwrap() {
        rows += more as u64;
    }
    rows
}

#[test]
fn every_row_is_met_and_counted() {
    let mut world = World::with_memory("ahead", MEMORY_BYTES);
    let tree = filled(&world);
    world.reopen();
    let view = world.database.read_view(None);
    check(&view, tree, |_| ());
    check(&view, tree, |_| ());
    assert_eq!(count(&view, tree), ROWS);
}

/// What is read ahead is older than what another transaction makes of it before the scan gets there: updates, deletions,
/// and insertions that split leaves. The scan's view sees none of it, a view taken later all.
#[test]
fn changes_ahead_of_the_scan_are_not_seen_and_not_lost() {
    let world = World::with_memory("ahead_changes", MEMORY_BYTES);
    let tree = filled(&world);
    let view = world.database.read_view(None);
    let (mut turn, mut next, mut inserted, mut deleted) = (0, 0, 0, 0);
    check(&view, tree, |n| {
        turn += 1;
        if turn % 4 != 0 {
            return;
        }
        // At every fourth block some rows of what has been asked for already, and some far ahead.
        let mut txn = world.database.begin();
        for at in [n + 3, n + 40, n + 600, n + 3_000].into_iter().filter(|at| *at < ROWS) {
            let key = (at * 2).to_be_bytes();
            match next % 3 {
                0 => {
                    txn.update(tree, &key, Row::inline(&value(at, 2))).unwrap();
                }
                1 => deleted += u64::from(txn.delete(tree, &key).unwrap()),
                _ => inserted += u64::from(txn.insert(tree, &(at * 2 + 1).to_be_bytes(), Row::inline(&value(at, 3))).is_ok()),
            }
            next += 1;
        }
        txn.commit().unwrap();
    });
    assert!(inserted > 50 && deleted > 50, "{inserted} {deleted}");
    assert_eq!(count(&view, tree), ROWS);
    assert_eq!(count(&world.database.read_view(None), tree), ROWS + inserted - deleted);
    assert!(world.database.check().unwrap().is_empty());
}

/// The scans of all parts of the tree, one after another, `begun` of them asked for before the turn of the one in use; how many
/// leaves were asked for before their scan's turn.
pub fn scan_parts(view: &ReadView, tree: TreeId, begun: usize, mut each: impl FnMut(&RowBlock)) -> Result<usize, StorageError> {
    let keys = view.dividing_keys_of_leaves(tree, 1..=24, 8)?;
    assert!(keys.len() > 8 && keys.is_sorted(), "{} keys divide the tree", keys.len());
    let starts = std::iter::once(Bound::Unbounded).chain(keys.iter().cloned().map(Bound::Included));
    let ends = keys.iter().cloned().map(Bound::Excluded).chain([Bound::Unbounded]);
    let mut ranges = starts.zip(ends).map(|(start, end)| KeyRange { start, end });
    let group = view.scan_group(tree, &[KeyRange::ALL])?;
    let (mut waiting, mut block, mut asked) = (VecDeque::<Scan>::new(), RowBlock::default(), 0);
    loop {
        while waiting.len() <= begun
            && let Some(range) = ranges.next()
        {
            let mut scan = view.scan(tree, range, ScanDirection::Forward)?;
            scan.begin(&group)?;
            waiting.push_back(scan);
        }
        let Some(mut scan) = waiting.pop_front() else { return Ok(asked) };
        asked += scan.leaves_ahead();
        while scan.next_into(&mut block)? {
            block.spell_keys();
            each(&block);
        }
    }
}

/// Every row must be the one of the first generation; calls `between` after each block.
fn check_parts(view: &ReadView, tree: TreeId, begun: usize, mut between: impl FnMut(u64)) {
    let mut n = 0_u64;
    let asked = scan_parts(view, tree, begun, |block| {
        for index in 0..block.len() {
            assert_eq!(block.key(index), (n * 2).to_be_bytes());
            assert!(block.value(index) == value(n, 1), "row {n}");
            n += 1;
        }
        between(n);
    });
    assert_eq!(n, ROWS);
    let asked = asked.unwrap();
    assert!(asked > 100, "{asked} leaves were asked for before their scan's turn");
}

#[test]
fn parts_begun_before_their_turn_hold_every_row_once() {
    let mut world = World::with_memory("ahead_parts", MEMORY_BYTES);
    let tree = filled(&world);
    world.reopen();
    let view = world.database.read_view(None);
    for begun in [0, 1, 6] {
        check_parts(&view, tree, begun, |_| ());
    }
    assert!(world.database.check().unwrap().is_empty());
}

/// The first leaf of a part that was begun is found by the node above it: also where rows came into that leaf, or divided it,
/// after it was read.
#[test]
fn parts_begun_before_a_change_show_what_their_view_sees() {
    let world = World::with_memory("ahead_parts_changes", MEMORY_BYTES);
    let tree = filled(&world);
    let view = world.database.read_view(None);
    let (mut turn, mut inserted) = (0, 0);
    check_parts(&view, tree, 4, |n| {
        turn += 1;
        if turn % 16 != 0 {
            return;
        }
        // Around where the next parts begin, and in the middle of this one.
        let mut txn = world.database.begin();
        for at in (n + 100..n + 3_500).step_by(97).filter(|at| *at < ROWS) {
            inserted += u64::from(txn.insert(tree, &(at * 2 + 1).to_be_bytes(), Row::inline(&value(at, 3))).is_ok());
            let key = (at * 2).to_be_bytes();
            txn.update(tree, &key, Row::inline(&value(at, 2))).unwrap();
        }
        txn.commit().unwrap();
    });
    assert!(inserted > 100, "{inserted}");
    assert_eq!(count(&world.database.read_view(None), tree), ROWS + inserted);
    assert!(world.database.check().unwrap().is_empty());
}

#[test]
fn many_places_are_brought_into_the_pool_in_few_batches() {
    let mut world = World::new("prefetch_below");
    let tree = filled(&world);
    world.reopen();
    let keys: Vec<[u8; 8]> = (0..ROWS).step_by(ROWS as usize / 100).map(|n| (n * 2).to_be_bytes()).collect();
    let before = page_reads();
    world.database.prefetch_below(tree, &keys, 2).unwrap();
    let reads = page_reads().since(&before);
    assert!(reads.ahead > 100 && reads.physical < 5, "{reads:?}");
    let before = page_reads();
    for key in &keys[1..] {
        let range = KeyRange { start: Bound::Unbounded, end: Bound::Excluded(key.to_vec()) };
        let mut scan = world.database.read_view(None).scan(tree, range, ScanDirection::Backward).unwrap();
        let last = scan.next_block().unwrap().unwrap();
        assert_eq!(u64::from_be_bytes(last.key(0).try_into().unwrap()), u64::from_be_bytes(*key) - 2);
    }
    let reads = page_reads().since(&before);
    assert_eq!(reads.physical, 0, "{reads:?}");
}
