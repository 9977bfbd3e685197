//! Rollback of many rows: others neither wait for it nor see anything of it, on the same pages too.

use crate::world::World;
use thawdb_storage::{KeyRange, Row, ScanDirection, StorageError};

const ROWS: u32 = 20_000;

fn key(id: u32) -> [u8; 4] {
    id.to_be_bytes()
}

fn filled(world: &World) -> thawdb_storage::TreeId {
    let tree = world.tree();
    let mut txn = world.database.begin();
    for id in 0..ROWS {
        txn.insert(tree, &key(id), Row::inline(b"before")).unwrap();
    }
    txn.commit().unwrap();
    tree
}

/// Values in key order.
fn values(world: &World, tree: thawdb_storage::TreeId) -> Vec<Vec<u8>> {
    let view = world.database.read_view(None);
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let mut values = Vec::new();
    while let Some(block) = scan.next_block().unwrap() {
        (0..block.len()).for_each(|index| values.push(block.value(index).to_vec()));
    }
    values
}

/// Nothing is undone by the time the rollback has returned, so nobody can have waited for undoing: the whole table, locked
/// by escalation, is free at once, and each of its rows can be read and changed in whatever order the cleaner comes by.
#[test]
fn a_long_rollback_blocks_nobody() {
    let world = World::new("rollback");
    let tree = filled(&world);
    let database = &world.database;
    let mut long = database.begin();
    for id in 0..ROWS {
        match id % 4 {
            0 => drop(long.delete(tree, &key(id)).unwrap()),
            _ => drop(long.update(tree, &key(id), Row::inline(b"undone")).unwrap()),
        }
    }
    // A second time: its own versions lie between.
    for id in (0..ROWS).step_by(7).filter(|id| id % 4 != 0) {
        assert!(long.update(tree, &key(id), Row::inline(b"undone twice")).unwrap());
    }
    for id in ROWS..ROWS + 100 {
        long.insert(tree, &key(id), Row::inline(b"undone")).unwrap();
    }
    let mut other = database.begin();
    other.set_lock_timeout(Some(std::time::Duration::ZERO));
    assert!(matches!(other.update(tree, &key(1), Row::inline(b"blocked")), Err(StorageError::LockTimeout)), "it holds the table");
    other.rollback().unwrap();
    let log = database.store().log().unwrap();
    let before = log.end();
    long.rollback().unwrap();
    assert!(log.end().0 - before.0 < 4096, "the rollback itself undid nothing");
    assert_eq!(values(&world, tree), vec![b"before".to_vec(); ROWS as usize]);

    // Between two turns of the cleaner another session changes rows: reverted ones, unreverted ones, on the same pages.
    let mut changed = 0;
    // The cleaner never runs out of work, since each of these transactions leaves some.
    while changed < 60 {
        let mut txn = database.begin();
        txn.set_lock_timeout(Some(std::time::Duration::ZERO));
        for id in [changed, ROWS - 1 - changed, ROWS / 2 + changed] {
            assert!(txn.update(tree, &key(id), Row::inline(b"after")).unwrap());
        }
        txn.insert(tree, &key(ROWS + changed), Row::inline(b"after")).unwrap();
        txn.commit().unwrap();
        changed += 1;
        assert!(database.clean_turn().unwrap());
        let found = values(&world, tree);
        assert_eq!(found.iter().filter(|value| *value == b"after").count(), 4 * changed as usize);
        assert_eq!(found.iter().filter(|value| *value == b"before").count(), (ROWS - 3 * changed) as usize);
    }
    database.clean().unwrap();
    assert_eq!(database.check().unwrap(), []);
}

#[test]
fn a_long_rollback_under_way_survives_a_restart() {
    let mut world = World::new("rollback-restart");
    let tree = filled(&world);
    let mut long = world.database.begin();
    for id in 0..ROWS {
        assert!(long.update(tree, &key(id), Row::inline(b"undone")).unwrap());
    }
    long.rollback().unwrap();
    (0..5).for_each(|_| assert!(world.database.clean_turn().unwrap()));
    world.reopen();
    assert_eq!(values(&world, tree), vec![b"before".to_vec(); ROWS as usize]);
    world.database.clean().unwrap();
    assert_eq!(values(&world, tree), vec![b"before".to_vec(); ROWS as usize]);
    assert_eq!(world.database.check().unwrap(), []);
}
