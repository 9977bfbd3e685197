//! Large parts of rows: read back whole, from every version that a view may see.

use crate::world::{Dice, World};
use thawdb_storage::{ReadView, Row, TreeId};

fn parts(view: &ReadView, tree: TreeId, key: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let block = view.get(tree, key).unwrap()?;
    let large = block.large(0).iter().map(|at| view.read_large(*at).unwrap()).collect();
    Some((block.value(0).to_vec(), large))
}

#[test]
fn large_parts_follow_their_row() {
    let mut world = World::new("large");
    let tree = world.tree();
    let mut dice = Dice::new(3);
    let lengths = [0usize, 1, 100, 7_999, 8_000, 8_192, 70_000, 1_000_003];
    let first: Vec<Vec<u8>> = lengths.iter().map(|length| dice.bytes(*length)).collect();
    let borrowed: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
    let mut txn = world.database.begin();
    txn.insert(tree, b"k", Row { inline: b"old", large: &borrowed }).unwrap();
    txn.insert(tree, b"l", Row { inline: b"other", large: &borrowed[3..5] }).unwrap();
    txn.commit().unwrap();
    let before = world.database.read_view(None);
    assert_eq!(parts(&before, tree, b"k"), Some((b"old".to_vec(), first.clone())));

    let second = dice.bytes(40_000);
    let mut txn = world.database.begin();
    txn.update(tree, b"k", Row { inline: b"new", large: &[&second] }).unwrap();
    txn.delete(tree, b"l").unwrap();
    assert_eq!(parts(&before, tree, b"k"), Some((b"old".to_vec(), first.clone())));
    txn.rollback().unwrap();
    assert_eq!(parts(&world.database.read_view(None), tree, b"k"), Some((b"old".to_vec(), first.clone())));

    let mut txn = world.database.begin();
    txn.update(tree, b"k", Row { inline: b"new", large: &[&second] }).unwrap();
    txn.delete(tree, b"l").unwrap();
    txn.commit().unwrap();
    world.database.clean().unwrap();
    assert_eq!(parts(&before, tree, b"k"), Some((b"old".to_vec(), first.clone())));
    assert_eq!(parts(&before, tree, b"l"), Some((b"other".to_vec(), first[3..5].to_vec())));
    let after = world.database.read_view(None);
    assert_eq!(parts(&after, tree, b"k"), Some((b"new".to_vec(), vec![second.clone()])));
    assert_eq!(parts(&after, tree, b"l"), None);
    drop((before, after));
    world.database.clean().unwrap();
    world.reopen();
    assert_eq!(parts(&world.database.read_view(None), tree, b"k"), Some((b"new".to_vec(), vec![second])));
    assert!(world.database.check().unwrap().is_empty());
}
