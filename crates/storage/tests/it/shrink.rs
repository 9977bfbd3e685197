//! Trees that lose most of their rows give their pages back, level by level, and stay what the model says while they do.

use crate::model::content;
use crate::world::{Dice, World};
use std::collections::BTreeMap;
use thawdb_storage::{KeyRange, Row, ScanDirection, TreeId};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn check(world: &World, tree: TreeId, expected: &Map) {
    let view = world.database.read_view(None);
    let all: Vec<_> = expected.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(content(&view, tree, KeyRange::ALL, ScanDirection::Forward) == all, "forward");
    let back: Vec<_> = all.into_iter().rev().collect();
    assert!(content(&view, tree, KeyRange::ALL, ScanDirection::Backward) == back, "backward");
    assert_eq!(world.database.check_tree(tree).unwrap(), Vec::new());
}

fn key(dice: &mut Dice, number: u64) -> Vec<u8> {
    // Long enough that inner nodes have many levels' worth of separators, unlike enough that they are not all prefix.
    let mut key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
    let length = dice.below(200) as usize;
    key.extend(dice.bytes(length));
    key
}

fn fill(world: &World, tree: TreeId, model: &mut Map, dice: &mut Dice, rows: u64) {
    let mut txn = world.database.begin();
    for _ in 0..rows {
        let number = dice.next();
        let (key, length) = (key(dice, number), dice.below(150) as usize);
        let value = dice.bytes(length);
        txn.insert(tree, &key, Row::inline(&value)).unwrap();
        model.insert(key, value);
    }
    txn.commit().unwrap();
}

/// Deletes all rows but one in `keep`, a hundred a transaction, tidying in between.
fn thin(world: &World, tree: TreeId, model: &mut Map, dice: &mut Dice, keep: u64) {
    let mut doomed: Vec<Vec<u8>> = model.keys().cloned().collect();
    doomed.retain(|_| dice.below(keep) != 0);
    // In no order, so that every leaf thins out at once.
    doomed.sort_by_key(|key| key.iter().fold(0u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)));
    for (turn, some) in doomed.chunks(100).enumerate() {
        let mut txn = world.database.begin();
        for key in some {
            assert!(txn.delete(tree, key).unwrap());
            model.remove(key);
        }
        txn.commit().unwrap();
        if turn % 3 == 0 {
            world.database.clean().unwrap();
        }
    }
    world.database.clean().unwrap();
}

#[test]
fn pages_come_back_and_levels_go() {
    let world = World::new("shrink");
    let (tree, mut dice, mut model) = (world.tree(), Dice::new(77), Map::new());
    fill(&world, tree, &mut model, &mut dice, 12_000);
    world.database.clean().unwrap();
    check(&world, tree, &model);
    let full = world.database.tree_page_count(tree).unwrap();
    assert!(full > 300, "{full} pages: at least three levels");
    thin(&world, tree, &mut model, &mut dice, 20);
    check(&world, tree, &model);
    let thinned = world.database.tree_page_count(tree).unwrap();
    assert!(thinned < full / 5, "{thinned} pages of {full} for a twentieth of the rows");
    thin(&world, tree, &mut model, &mut dice, 300);
    check(&world, tree, &model);
    let few = world.database.tree_page_count(tree).unwrap();
    assert!(few <= 3, "{few} pages for {} rows", model.len());
    fill(&world, tree, &mut model, &mut dice, 3_000);
    check(&world, tree, &model);
}

#[test]
fn a_scan_that_stands_still_meanwhile_misses_nothing_and_repeats_nothing() {
    for direction in [ScanDirection::Forward, ScanDirection::Backward] {
        let world = World::new("shrink-scan");
        let (tree, mut dice, mut model) = (world.tree(), Dice::new(5), Map::new());
        fill(&world, tree, &mut model, &mut dice, 4_000);
        thin(&world, tree, &mut model, &mut dice, 5);
        let expected: Vec<Vec<u8>> = match direction {
            ScanDirection::Forward => model.keys().cloned().collect(),
            ScanDirection::Backward => model.keys().rev().cloned().collect(),
        };
        let view = world.database.read_view(None);
        let mut scan = view.scan(tree, KeyRange::ALL, direction).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = scan.next_block().unwrap() {
            seen.extend((0..block.len()).map(|at| block.key(at).to_vec()));
            // New rows that come and go beside it: splits, then merges once nobody needs them.
            let mut other = Map::new();
            fill(&world, tree, &mut other, &mut dice, 300);
            thin(&world, tree, &mut other, &mut dice, u64::MAX);
        }
        assert!(seen == expected, "{} rows seen of {}", seen.len(), expected.len());
        drop((scan, view));
        world.database.clean().unwrap();
        check(&world, tree, &model);
    }
}

#[test]
fn merged_trees_survive_a_reopening() {
    let mut world = World::new("shrink-reopen");
    let (tree, mut dice, mut model) = (world.tree(), Dice::new(9), Map::new());
    for _ in 0..3 {
        fill(&world, tree, &mut model, &mut dice, 2_000);
        thin(&world, tree, &mut model, &mut dice, 10);
        world.reopen();
        check(&world, tree, &model);
        assert_eq!(world.database.check().unwrap(), Vec::new());
    }
}

/// The first leaf of a tree went when it was empty, and with it the key under which its parent had it. The leaf after it
/// stood for all keys below its own separator then: when such keys came and it split, the parent's children were out of
/// order, searches missed whole leaves, and the page was damage when it was next read (found by `thawdb simulate`).
#[test]
fn keys_below_a_first_leaf_that_went_are_found_again() {
    let world = World::new("shrink-first");
    let (tree, mut dice, mut model) = (world.tree(), Dice::new(31), Map::new());
    fill(&world, tree, &mut model, &mut dice, 1_500);
    world.database.clean().unwrap();
    let low: Vec<(Vec<u8>, Vec<u8>)> = model.iter().take(300).map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut txn = world.database.begin();
    for (key, _) in &low {
        assert!(txn.delete(tree, key).unwrap());
        model.remove(key);
    }
    txn.commit().unwrap();
    world.database.clean().unwrap();
    check(&world, tree, &model);
    let mut txn = world.database.begin();
    for (key, value) in &low {
        txn.insert(tree, key, Row::inline(value)).unwrap();
        model.insert(key.clone(), value.clone());
    }
    txn.commit().unwrap();
    check(&world, tree, &model);
    let view = world.database.read_view(None);
    assert!(model.keys().all(|key| view.get(tree, key).unwrap().is_some()), "every key is found by descent");
}
