//! Rows set for good in a tree that nobody else reads: no versions, no splits for rows that go, no rollback.

use crate::world::World;
use thawdb_storage::{KeyRange, Row, ScanDirection};

#[test]
fn rows_are_set_for_good_and_take_no_room_to_go() {
    let mut world = World::new("private_rows");
    let (tree, other) = (world.tree(), world.tree());
    let mut txn = world.database.begin();
    let mut append = txn.bulk_append(tree).unwrap();
    (0..20_000_u32).for_each(|n| append.push(&n.to_be_bytes(), Row::inline(&[1; 20])).unwrap());
    append.finish().unwrap();
    txn.commit().unwrap();
    let pages = world.database.tree_page_count(tree).unwrap();
    let mut txn = world.database.begin();
    for n in 0..20_000_u32 {
        match n {
            // Whole leaves go, and single rows of the others.
            0..5_000 => txn.set_private(tree, &n.to_be_bytes(), None).unwrap(),
            _ if n % 10 == 0 => txn.set_private(tree, &n.to_be_bytes(), None).unwrap(),
            _ if n % 10 == 1 => txn.set_private(tree, &n.to_be_bytes(), Some(&[2; 20])).unwrap(),
            _ => {}
        }
    }
    txn.set_private(tree, &7_u32.to_be_bytes(), Some(&[3])).unwrap();
    txn.set_private(tree, b"not there", None).unwrap();
    assert_eq!(world.database.tree_page_count(tree).unwrap(), pages);
    txn.insert(other, b"a word", Row::inline(&[])).unwrap();
    txn.commit().unwrap();
    world.database.clean().unwrap();
    assert!(world.database.tree_page_count(tree).unwrap() < pages * 4 / 5, "empty leaves go");
    // A rollback takes nothing back.
    let mut txn = world.database.begin();
    txn.set_private(tree, &9_u32.to_be_bytes(), Some(&[4])).unwrap();
    txn.rollback().unwrap();
    for _ in 0..2 {
        let mut rows = Vec::new();
        let mut scan = world.database.read_view(None).scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
        while let Some(block) = scan.next_block().unwrap() {
            rows.extend((0..block.len()).map(|at| (u32::from_be_bytes(block.key(at).try_into().unwrap()), block.value(at).to_vec())));
        }
        let of_many = (5_000..20_000).filter(|n| n % 10 != 0).map(|n| (n, vec![if n % 10 == 1 { 2 } else { 1 }; 20]));
        assert_eq!(rows, [(7, vec![3]), (9, vec![4])].into_iter().chain(of_many).collect::<Vec<_>>());
        assert_eq!(world.database.check().unwrap(), Vec::new());
        drop(scan);
        world.reopen();
    }
}
