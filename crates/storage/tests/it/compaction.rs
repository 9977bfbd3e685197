//! Leaves filled up in place: fewer of them, the same rows, and scans on their way miss none and see none twice.

use crate::world::World;
use thawdb_storage::{KeyRange, Row, Scan, ScanDirection, TreeId};

const ROWS: u64 = 20_000;

/// Keys in no order, each once.
fn scattered(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes()
}

fn row(n: u64) -> Vec<u8> {
    format!("{n:0width$}", width = 8 + (n % 60) as usize).into_bytes()
}

/// A tree of leaves that splits left two thirds full, and of which every third row is gone again.
fn fragmented(world: &World) -> (TreeId, Vec<(Vec<u8>, Vec<u8>)>) {
    let tree = world.tree();
    for start in (0..ROWS).step_by(500) {
        let mut txn = world.database.begin();
        for n in start..start + 500 {
            txn.insert(tree, &scattered(n), Row::inline(&row(n))).unwrap();
        }
        txn.commit().unwrap();
    }
    let mut txn = world.database.begin();
    for n in (0..ROWS).step_by(3) {
        assert!(txn.delete(tree, &scattered(n)).unwrap());
    }
    txn.commit().unwrap();
    let mut rows: Vec<_> = (0..ROWS).filter(|n| n % 3 != 0).map(|n| (scattered(n).to_vec(), row(n))).collect();
    rows.sort();
    (tree, rows)
}

fn take(scan: &mut Scan, blocks: usize, into: &mut Vec<(Vec<u8>, Vec<u8>)>) -> bool {
    for _ in 0..blocks {
        let Some(block) = scan.next_block().unwrap() else { return false };
        into.extend((0..block.len()).map(|at| (block.key(at).to_vec(), block.value(at).to_vec())));
    }
    true
}

#[test]
fn leaves_are_filled_while_scans_go_both_ways() {
    let world = World::new("compaction");
    let (tree, rows) = fragmented(&world);
    let leaves = || world.used_pages(tree).len();
    let before = leaves();
    let view = world.database.read_view(None);
    let mut forward = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let mut backward = view.scan(tree, KeyRange::ALL, ScanDirection::Backward).unwrap();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    drop(view);
    let mut from = None;
    let mut turns = 0;
    loop {
        take(&mut forward, 30, &mut up);
        take(&mut backward, 50, &mut down);
        from = world.database.compact_leaves(tree, from.as_deref(), 100).unwrap();
        turns += 1;
        if from.is_none() {
            break;
        }
    }
    while take(&mut forward, 1, &mut up) {}
    while take(&mut backward, 1, &mut down) {}
    assert!(up == rows, "{} rows forward of {}", up.len(), rows.len());
    down.sort();
    assert!(down == rows, "{} rows backward of {}", down.len(), rows.len());
    drop((forward, backward));
    // The scans' view kept ghosts; without it they go too.
    let mut from = None;
    loop {
        from = world.database.compact_leaves(tree, from.as_deref(), 100).unwrap();
        turns += 1;
        if from.is_none() {
            break;
        }
    }
    let after = leaves();
    assert!(after * 20 < before * 11, "{before} pages before, {after} after {turns} turns");
    let view = world.database.read_view(None);
    let mut again = Vec::new();
    while take(&mut view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap(), usize::MAX, &mut again) {}
    assert!(again == rows);
    assert!(world.database.check().unwrap().is_empty());
}

#[test]
fn a_fill_percentage_is_kept_to_and_small_trees_are_left_alone() {
    let world = World::new("compaction-fill");
    let (tree, _) = fragmented(&world);
    let pages = |percent: u8| {
        let mut from = None;
        loop {
            from = world.database.compact_leaves(tree, from.as_deref(), percent).unwrap();
            if from.is_none() {
                return world.used_pages(tree).len();
            }
        }
    };
    let (loose, full) = (pages(75), pages(100));
    assert!(full * 10 < loose * 9, "{loose} pages at 75 %, {full} at 100 %");
    let small = world.tree();
    assert_eq!(world.database.compact_leaves(small, None, 100).unwrap(), None);
    let mut txn = world.database.begin();
    txn.insert(small, b"a", Row::inline(b"1")).unwrap();
    txn.commit().unwrap();
    assert_eq!(world.database.compact_leaves(small, None, 100).unwrap(), None);
    assert!(world.database.check().unwrap().is_empty());
}
