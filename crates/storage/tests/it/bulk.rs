//! Bulk append: what was pushed is read back, ended how it may.

use crate::world::World;
use thawdb_storage::{KeyRange, Row, ScanDirection, StorageError, TreeId};

const ROWS: u64 = 60_000;

fn row(n: u64) -> Vec<u8> {
    format!("{n:0width$}", width = 8 + (n % 40) as usize).into_bytes()
}

fn append(world: &World, tree: TreeId, from: u64, to: u64, commit: bool) {
    let mut txn = world.database.begin();
    let mut appender = txn.bulk_append(tree).unwrap();
    for n in from..to {
        appender.push(&n.to_be_bytes(), Row::inline(&row(n))).unwrap();
    }
    appender.finish().unwrap();
    if commit {
        txn.commit().unwrap();
    } else {
        txn.rollback().unwrap();
    }
}

fn check(world: &World, tree: TreeId, count: u64) {
    let view = world.database.read_view(None);
    let mut n = 0u64;
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    while let Some(block) = scan.next_block().unwrap() {
        for index in 0..block.len() {
            assert_eq!(block.key(index), n.to_be_bytes());
            assert_eq!(block.value(index), row(n));
            n += 1;
        }
    }
    assert_eq!(n, count);
    for probe in (0..count).step_by(997) {
        assert_eq!(view.get(tree, &probe.to_be_bytes()).unwrap().unwrap().value(0), row(probe));
    }
    assert!(view.get(tree, &count.to_be_bytes()).unwrap().is_none());
    assert!(world.database.check().unwrap().is_empty());
}

#[test]
fn append_read_back_resume_and_change() {
    let mut world = World::new("bulk");
    let tree = world.tree();
    append(&world, tree, 0, ROWS, true);
    check(&world, tree, ROWS);
    append(&world, tree, ROWS, ROWS + 20_000, true);
    check(&world, tree, ROWS + 20_000);
    world.reopen();
    check(&world, tree, ROWS + 20_000);
    let mut txn = world.database.begin();
    for n in (0..ROWS).step_by(101) {
        assert!(txn.update(tree, &n.to_be_bytes(), Row::inline(&row(n))).unwrap());
    }
    assert!(matches!(txn.insert(tree, &5u64.to_be_bytes(), Row::inline(b"")), Err(StorageError::Duplicate { .. })));
    txn.commit().unwrap();
    check(&world, tree, ROWS + 20_000);
}

#[test]
fn an_append_that_is_rolled_back_leaves_nothing() {
    let world = World::new("bulk-undo");
    let tree = world.tree();
    append(&world, tree, 0, ROWS, false);
    check(&world, tree, 0);
    append(&world, tree, 0, 3_000, true);
    append(&world, tree, 3_000, ROWS, false);
    check(&world, tree, 3_000);
    append(&world, tree, 3_000, 9_000, true);
    check(&world, tree, 9_000);
}

#[test]
fn keys_must_rise() {
    let world = World::new("bulk-order");
    let tree = world.tree();
    let mut txn = world.database.begin();
    let mut appender = txn.bulk_append(tree).unwrap();
    appender.push(b"m", Row::inline(b"1")).unwrap();
    assert!(matches!(appender.push(b"m", Row::inline(b"2")), Err(StorageError::Duplicate { .. })));
    assert!(matches!(appender.push(b"l", Row::inline(b"2")), Err(StorageError::Bug(_))));
    drop(appender);
    txn.rollback().unwrap();
    check(&world, tree, 0);
}
