//! Several transactions and views at once against ordered maps: every operation's answer and every view's content must
//! be the model's. One thread with NOWAIT locks, so that who must wait is itself predicted.

use crate::world::{Dice, World, compact_row, packing_tree_in, tree_in};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;
use thawdb_storage::{KeyRange, ReadView, Row, Savepoint, ScanDirection, StorageError, TreeId, Txn};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct OpenTxn {
    txn: Txn,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    locked: BTreeSet<Vec<u8>>,
    savepoints: Vec<(Savepoint, BTreeMap<Vec<u8>, Option<Vec<u8>>>)>,
}

impl OpenTxn {
    fn new(world: &World) -> Self {
        let mut txn = world.database.begin();
        txn.set_lock_timeout(Some(Duration::ZERO));
        Self { txn, changes: BTreeMap::new(), locked: BTreeSet::new(), savepoints: Vec::new() }
    }

    fn sees(&self, committed: &Map) -> Map {
        overlaid(committed, &self.changes)
    }
}

fn overlaid(below: &Map, changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> Map {
    let mut map = below.clone();
    for (key, change) in changes {
        match change {
            Some(value) => map.insert(key.clone(), value.clone()),
            None => map.remove(key),
        };
    }
    map
}

pub fn content(view: &ReadView, tree: TreeId, range: KeyRange, direction: ScanDirection) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = view.scan(tree, range, direction).unwrap();
    let mut rows = Vec::new();
    while let Some(block) = scan.next_block().unwrap() {
        assert!(!block.is_empty(), "blocks have rows");
        rows.extend((0..block.len()).map(|i| (block.key(i).to_vec(), block.value(i).to_vec())));
    }
    rows
}

fn check_view(view: &ReadView, tree: TreeId, expected: &Map, dice: &mut Dice, keys: &[Vec<u8>]) {
    let all: Vec<_> = expected.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(content(view, tree, KeyRange::ALL, ScanDirection::Forward) == all, "forward scan");
    let reversed: Vec<_> = all.iter().rev().cloned().collect();
    assert!(content(view, tree, KeyRange::ALL, ScanDirection::Backward) == reversed, "backward scan");
    for _ in 0..3 {
        let mut ends = [dice.below(keys.len() as u64), dice.below(keys.len() as u64)].map(|n| keys[n as usize].clone());
        ends.sort();
        let [start, end] = ends;
        if start == end {
            continue;
        }
        let range = match dice.below(3) {
            0 => KeyRange { start: Bound::Included(start), end: Bound::Excluded(end) },
            1 => KeyRange { start: Bound::Excluded(start), end: Bound::Included(end) },
            _ => KeyRange { start: Bound::Included(start), end: Bound::Unbounded },
        };
        let inside: Vec<_> =
            expected.range::<Vec<u8>, _>((range.start.clone(), range.end.clone())).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert!(content(view, tree, range.clone(), ScanDirection::Forward) == inside, "range {range:?}");
        let back: Vec<_> = inside.into_iter().rev().collect();
        assert!(content(view, tree, range, ScanDirection::Backward) == back, "range backwards");
        let key = &keys[dice.below(keys.len() as u64) as usize];
        let got = view.get(tree, key).unwrap().map(|block| block.value(0).to_vec());
        assert_eq!(got.as_ref(), expected.get(key), "point");
    }
}

fn keys_of(shape: u64, dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..400u64)
        .map(|n| match shape % PACKED {
            0 => n.to_be_bytes().to_vec(),
            1 => {
                let length = 1 + dice.below(60) as usize;
                let mut key = b"a shared beginning of keys/".to_vec();
                key.extend((0..length).map(|_| b"xyz"[dice.below(3) as usize]));
                key
            }
            _ => {
                let length = 1 + dice.below(1600) as usize;
                dice.bytes(length)
            }
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Shapes from here on have leaves that are packed.
const PACKED: u64 = 4;

fn value(dice: &mut Dice, shape: u64) -> Vec<u8> {
    if shape >= PACKED {
        let length = if dice.below(40) == 0 { dice.below(6000) } else { dice.below(30) };
        return compact_row(dice, length as usize);
    }
    let length = if shape == 2 { dice.below(3000) } else { dice.below(120) };
    dice.bytes(length as usize)
}

fn step(world: &World, tree: TreeId, open: &mut [OpenTxn], committed: &mut Map, keys: &[Vec<u8>], shape: u64, dice: &mut Dice) {
    let me = dice.below(open.len() as u64) as usize;
    let key = keys[dice.below(keys.len() as u64) as usize].clone();
    let blocked = open.iter().enumerate().any(|(other, txn)| other != me && txn.locked.contains(&key));
    let present = open[me].sees(committed).contains_key(&key);
    let this = &mut open[me];
    let choice = dice.below(100);
    match choice {
        0..75 => {
            let new = value(dice, shape);
            let outcome = match choice {
                0..35 => this.txn.insert(tree, &key, Row::inline(&new)).map(|()| true),
                35..60 => this.txn.update(tree, &key, Row::inline(&new)),
                _ => this.txn.delete(tree, &key),
            };
            if blocked {
                assert!(matches!(outcome, Err(StorageError::LockTimeout)), "{outcome:?}");
                return;
            }
            this.locked.insert(key.clone());
            match (choice, present) {
                (0..35, true) => assert!(matches!(outcome, Err(StorageError::Duplicate { .. })), "{outcome:?}"),
                (0..35, false) => assert!(outcome.unwrap()),
                _ => assert_eq!(outcome.unwrap(), present),
            }
            if (choice < 35) != present {
                this.changes.insert(key, (choice < 60).then_some(new));
            }
        }
        75..81 => {
            let savepoint = this.txn.savepoint();
            this.savepoints.push((savepoint, this.changes.clone()));
        }
        81..87 => {
            let count = this.savepoints.len() as u64;
            if count > 0 {
                let (savepoint, changes) = this.savepoints[dice.below(count) as usize].clone();
                this.savepoints.retain(|(kept, _)| *kept <= savepoint);
                this.txn.rollback_to(savepoint).unwrap();
                this.changes = changes;
            }
        }
        87..93 => {
            let done = std::mem::replace(this, OpenTxn::new(world));
            *committed = overlaid(committed, &done.changes);
            done.txn.commit().unwrap();
        }
        93..97 => {
            let done = std::mem::replace(this, OpenTxn::new(world));
            if dice.below(2) == 0 {
                done.txn.rollback().unwrap();
            } else {
                drop(done.txn);
            }
        }
        _ => {
            let view = world.database.read_view(Some(&this.txn));
            check_view(&view, tree, &this.sees(committed), dice, keys);
        }
    }
}

fn run(seed: u64, shape: u64, steps: u64) {
    let world = World::new("model");
    let mut dice = Dice::new(seed);
    let keys = keys_of(shape, &mut dice);
    let mut txn = world.database.begin();
    let tree = if shape >= PACKED { packing_tree_in(&mut txn) } else { tree_in(&mut txn) };
    txn.commit().unwrap();
    let mut committed = Map::new();
    let mut open: Vec<OpenTxn> = (0..4).map(|_| OpenTxn::new(&world)).collect();
    let mut views: Vec<(ReadView, Map)> = Vec::new();
    for n in 0..steps {
        step(&world, tree, &mut open, &mut committed, &keys, shape, &mut dice);
        match dice.below(60) {
            0 => views.push((world.database.read_view(None), committed.clone())),
            1 if !views.is_empty() => {
                let chosen = dice.below(views.len() as u64) as usize;
                let (view, expected) = &views[chosen];
                check_view(view, tree, expected, &mut dice, &keys);
                if dice.below(2) == 0 {
                    views.swap_remove(chosen);
                }
            }
            2 => world.database.clean().unwrap(),
            _ => {}
        }
        if n % 500 == 499 {
            world.database.checkpoint().unwrap();
        }
    }
    for (view, expected) in &views {
        check_view(view, tree, expected, &mut dice, &keys);
    }
    drop(open);
    drop(views);
    check_view(&world.database.read_view(None), tree, &committed, &mut dice, &keys);
    let findings = world.database.check().unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn integer_keys() {
    (1..6).for_each(|seed| run(seed, 0, 3000));
}

#[test]
fn text_keys_with_a_long_common_beginning() {
    (11..16).for_each(|seed| run(seed, 1, 3000));
}

#[test]
fn keys_and_rows_near_the_limits() {
    (21..25).for_each(|seed| run(seed, 2, 2500));
}

#[test]
fn leaves_that_are_packed() {
    (31..36).for_each(|seed| run(seed, PACKED, 3000));
    (36..38).for_each(|seed| run(seed, PACKED + 1, 3000));
}

#[test]
fn trees_come_and_go_with_their_transactions() {
    let mut world = World::new("trees");
    let mut txn = world.database.begin();
    let kept = tree_in(&mut txn);
    txn.insert(kept, b"k", Row::inline(b"v")).unwrap();
    let point = txn.savepoint();
    let undone = tree_in(&mut txn);
    txn.insert(undone, b"k", Row::inline(b"v")).unwrap();
    txn.rollback_to(point).unwrap();
    assert!(matches!(world.database.read_view(Some(&txn)).get(undone, b"k"), Err(StorageError::NoTree(_))));
    txn.commit().unwrap();

    let mut txn = world.database.begin();
    txn.drop_tree(kept).unwrap();
    assert!(matches!(txn.insert(kept, b"l", Row::inline(b"v")), Err(StorageError::NoTree(_))));
    txn.rollback().unwrap();
    assert!(world.database.read_view(None).get(kept, b"k").unwrap().is_some());
    world.reopen();
    assert!(world.database.read_view(None).get(kept, b"k").unwrap().is_some());

    let mut txn = world.database.begin();
    txn.drop_tree(kept).unwrap();
    txn.commit().unwrap();
    world.reopen();
    assert!(matches!(world.database.read_view(None).get(kept, b"k"), Err(StorageError::NoTree(_))));
    world.database.clean().unwrap();
    assert!(world.database.check().unwrap().is_empty());
}

#[test]
fn a_snapshot_writer_meets_a_newer_row() {
    let world = World::new("snapshot");
    let tree = world.tree();
    let mut first = world.database.begin();
    for key in [b"a", b"b"] {
        first.insert(tree, key, Row::inline(b"1")).unwrap();
    }
    first.commit().unwrap();
    let view = world.database.read_view(None);
    let mut snapshot = world.database.begin();
    snapshot.use_snapshot(&view);
    let mut other = world.database.begin();
    assert!(other.update(tree, b"a", Row::inline(b"2")).unwrap());
    other.commit().unwrap();
    assert!(matches!(snapshot.update(tree, b"a", Row::inline(b"3")), Err(StorageError::SnapshotConflict { .. })));
    assert!(snapshot.update(tree, b"b", Row::inline(b"3")).unwrap());
    let own = view.with_txn(&snapshot);
    assert_eq!(own.get(tree, b"a").unwrap().unwrap().value(0), b"1");
    assert_eq!(own.get(tree, b"b").unwrap().unwrap().value(0), b"3");
    snapshot.commit().unwrap();
}

#[test]
fn uniqueness_over_a_range_sees_only_the_living() {
    let world = World::new("unique");
    let tree = world.tree();
    let range = KeyRange { start: Bound::Included(b"k".to_vec()), end: Bound::Excluded(b"l".to_vec()) };
    let mut txn = world.database.begin();
    txn.insert(tree, b"k1", Row::inline(b"")).unwrap();
    assert!(!txn.any_live_in(tree, &range, Some(b"k1")).unwrap());
    assert!(txn.any_live_in(tree, &range, None).unwrap());
    let mut other = world.database.begin();
    other.set_lock_timeout(Some(Duration::ZERO));
    assert!(matches!(other.any_live_in(tree, &range, None), Err(StorageError::LockTimeout)));
    txn.commit().unwrap();
    assert!(other.any_live_in(tree, &range, None).unwrap());
    assert!(other.delete(tree, b"k1").unwrap());
    assert!(!other.any_live_in(tree, &range, None).unwrap());
    other.commit().unwrap();
}

#[test]
fn a_statement_does_not_see_what_it_writes() {
    let world = World::new("halloween");
    let tree = world.tree();
    let mut txn = world.database.begin();
    let mut expected = Map::new();
    for n in 0..500u32 {
        txn.insert(tree, &n.to_be_bytes(), Row::inline(b"0")).unwrap();
        expected.insert(n.to_be_bytes().to_vec(), b"0".to_vec());
    }
    for round in 1..4u32 {
        let before = txn.savepoint();
        let view = world.database.read_view(Some(&txn));
        let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
        let mut after = Map::new();
        let mut number = 0;
        while let Some(block) = scan.next_block().unwrap().map(std::mem::take) {
            for index in 0..block.len() {
                let key = block.key(index).to_vec();
                assert_eq!(block.value(index), expected[&key], "the row as it was before the statement");
                number += 1;
                let value = format!("{round}/{number}").into_bytes();
                match number % 3 {
                    0 => assert!(txn.delete(tree, &key).unwrap()),
                    1 => {
                        assert!(txn.update(tree, &key, Row::inline(&value)).unwrap());
                        after.insert(key.clone(), value.clone());
                    }
                    _ => {
                        assert!(txn.delete(tree, &key).unwrap());
                        txn.insert(tree, &key, Row::inline(&value)).unwrap();
                        after.insert(key.clone(), value.clone());
                    }
                }
                let further = [key.as_slice(), &round.to_be_bytes(), b"further"].concat();
                txn.insert(tree, &further, Row::inline(&value)).unwrap();
                after.insert(further, value);
            }
        }
        assert_eq!(number as usize, expected.len(), "each row once, none of its own");
        let rows = |map: &Map| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>();
        assert!(content(&view, tree, KeyRange::ALL, ScanDirection::Forward) == rows(&expected), "the statement's view stays");
        let now = world.database.read_view(Some(&txn));
        assert!(content(&now, tree, KeyRange::ALL, ScanDirection::Backward).into_iter().rev().eq(rows(&after)));
        if round == 2 {
            txn.rollback_to(before).unwrap();
            let now = world.database.read_view(Some(&txn));
            assert!(content(&now, tree, KeyRange::ALL, ScanDirection::Forward) == rows(&expected), "undone");
        } else {
            expected = after;
        }
    }
    txn.rollback().unwrap();
    assert!(content(&world.database.read_view(None), tree, KeyRange::ALL, ScanDirection::Forward).is_empty());
    world.database.clean().unwrap();
    assert!(world.database.check().unwrap().is_empty());
}
