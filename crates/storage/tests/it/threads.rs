//! Many threads at once: transfers keep the sum, and every view sees the same sum.

use crate::world::{Dice, World};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thawdb_storage::{KeyRange, ReadLocks, Row, ScanDirection, StorageError, TreeId, Txn};

const ACCOUNTS: u64 = 500;
const START: i64 = 1000;

fn amount(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn transfer(txn: &mut Txn, tree: TreeId, dice: &mut Dice) -> Result<(), StorageError> {
    let (from, to) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS));
    let sum = dice.below(50) as i64;
    for (account, change) in [(from, -sum), (to, sum)] {
        let key = account.to_be_bytes();
        let row = txn.lock_row(tree, &key)?.expect("accounts stay");
        let mut bytes = (amount(row.value(0)) + change).to_le_bytes().to_vec();
        bytes.resize(8 + dice.below(100) as usize, 0);
        assert!(txn.update(tree, &key, Row::inline(&bytes))?);
    }
    Ok(())
}

#[test]
fn transfers_keep_the_sum() {
    let world = World::new("transfers");
    let tree = world.tree();
    let mut txn = world.database.begin();
    for account in 0..ACCOUNTS {
        txn.insert(tree, &account.to_be_bytes(), Row::inline(&START.to_le_bytes())).unwrap();
    }
    txn.commit().unwrap();
    let running = AtomicBool::new(true);
    let (committed, deadlocks) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u64)
            .map(|seed| {
                let (world, committed, deadlocks) = (&world, &committed, &deadlocks);
                scope.spawn(move || {
                    let mut dice = Dice::new(seed + 1);
                    for _ in 0..300 {
                        let mut txn = world.database.begin();
                        match transfer(&mut txn, tree, &mut dice) {
                            Ok(()) if dice.below(5) == 0 => txn.rollback().unwrap(),
                            Ok(()) => {
                                txn.commit().unwrap();
                                committed.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(StorageError::Deadlock) => drop(deadlocks.fetch_add(1, Ordering::Relaxed)),
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                let view = world.database.read_view(None);
                let rows = crate::model::content(&view, tree, KeyRange::ALL, ScanDirection::Forward);
                assert_eq!(rows.len() as u64, ACCOUNTS);
                let sum: i64 = rows.iter().map(|(_, value)| amount(value)).sum();
                assert_eq!(sum, START * ACCOUNTS as i64);
                world.database.clean().unwrap();
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        running.store(false, Ordering::Relaxed);
    });
    assert!(committed.load(Ordering::Relaxed) > 0);
    assert!(world.database.locks().is_empty());
    assert!(world.database.check().unwrap().is_empty());
}

#[test]
fn inserts_from_all_sides_split_pages_at_once() {
    let mut world = World::new("splits");
    let tree = world.tree();
    std::thread::scope(|scope| {
        for me in 0..4u64 {
            let world = &world;
            scope.spawn(move || {
                let mut dice = Dice::new(me + 40);
                for batch in 0..20u64 {
                    let mut txn = world.database.begin();
                    for n in 0..100u64 {
                        let number: u64 = (batch * 100 + n) * 4 + me;
                        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
                        let row = dice.bytes(30 + (n as usize % 200));
                        txn.insert(tree, &key, Row::inline(&row)).unwrap();
                    }
                    txn.commit().unwrap();
                }
            });
        }
    });
    for _ in 0..2 {
        let rows = crate::model::content(&world.database.read_view(None), tree, KeyRange::ALL, ScanDirection::Forward);
        let mut expected: Vec<Vec<u8>> = (0..8000u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec()).collect();
        expected.sort();
        assert!(rows.iter().map(|(key, _)| key).eq(expected.iter()));
        assert!(world.database.check().unwrap().is_empty());
        world.reopen();
    }
}

/// A transaction changes a row twice; a reader without versions sees it before or after, and never half-way. It once did:
/// the leaf was copied after the first change, and the view taken after the commit.
#[test]
fn whatever_the_schedule_a_read_that_waits_for_writers_sees_no_transaction_half_way() {
    use thawdb_device::sim::{SimOptions, Simulation};
    for seed in 0..150 {
        let storage = crate::crash::storage(&Simulation::new(SimOptions::new(seed)));
        let database = storage.create_database(&crate::crash::spec()).unwrap();
        let mut txn = database.begin();
        let tree = txn.create_tree(crate::crash::SPEC).unwrap();
        txn.insert(tree, b"row", Row::inline(&[0])).unwrap();
        txn.commit().unwrap();
        let mut bodies: Vec<thawdb_observe::explore::Body<'_>> = Vec::new();
        bodies.push(Box::new(|| {
            let mut txn = database.begin();
            for value in [1, 2] {
                assert!(txn.update(tree, b"row", Row::inline(&[value])).unwrap());
            }
            txn.commit().unwrap();
        }));
        bodies.push(Box::new(|| {
            for _ in 0..2 {
                let mut txn = database.begin();
                let mut scan = txn.locking_scan(tree, KeyRange::ALL, ScanDirection::Forward, ReadLocks::COMMITTED).unwrap();
                let rows = scan.next_rows(&mut txn, 10).unwrap().expect("the row is there");
                assert!([[0], [2]].iter().any(|whole| rows.block.value(0) == whole), "{:?} was never committed", rows.block.value(0));
                txn.commit().unwrap();
            }
        }));
        assert_eq!(thawdb_observe::explore::run(seed, bodies), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_check_sees_nothing_half_tidied() {
    const ROWS: u64 = 8_000;
    let world = World::new("check_beside_cleaner");
    let tree = world.tree();
    let fill = |value: u8| {
        let mut txn = world.database.begin();
        (0..ROWS).for_each(|n| txn.insert(tree, &n.to_be_bytes(), Row::inline(&[value; 400])).unwrap());
        txn.commit().unwrap();
    };
    fill(1);
    for round in 2..6 {
        let mut txn = world.database.begin();
        (0..ROWS).for_each(|n| assert!(txn.delete(tree, &n.to_be_bytes()).unwrap()));
        txn.commit().unwrap();
        std::thread::scope(|scope| {
            let tidying = scope.spawn(|| world.database.clean().unwrap());
            while !tidying.is_finished() {
                assert_eq!(world.database.check_tree(tree).unwrap(), Vec::new());
                assert_eq!(world.database.check_allocation().unwrap(), Vec::new());
            }
        });
        fill(round);
    }
}
