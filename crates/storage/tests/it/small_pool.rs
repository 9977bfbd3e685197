//! Twenty times as much data as the pool: scans, point reads and updates at once, while the pool becomes smaller and larger.

use crate::world::{Dice, World};
use thawdb_storage::memory::{Clerk, Grant};
use thawdb_storage::page_reads::page_reads;
use thawdb_storage::{KeyRange, ReadView, Row, RowBlock, ScanDirection, TreeId};

const ROWS: u64 = 200_000;
const ROW_BYTES: usize = 400;
/// Of it three quarters are the pool's: 4.2 MB, for 80 MB of rows.
const MEMORY_BYTES: u64 = 5_600_000;
const POOL_BYTES: u64 = MEMORY_BYTES / 4 * 3;

fn value(n: u64, generation: u8) -> Vec<u8> {
    let mut bytes = n.to_le_bytes().to_vec();
    bytes.resize(ROW_BYTES, generation);
    bytes
}

fn fill(world: &World, tree: TreeId) {
    let mut txn = world.database.begin();
    let mut appender = txn.bulk_append(tree).unwrap();
    for n in 0..ROWS {
        appender.push(&n.to_be_bytes(), Row::inline(&value(n, 1))).unwrap();
    }
    appender.finish().unwrap();
    txn.commit().unwrap();
}

/// Scans all of the tree; row n must be of generation `model[n]`. Calls `between` after each block.
fn check(view: &ReadView, tree: TreeId, model: &[u8], mut between: impl FnMut(usize)) {
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let (mut block, mut n) = (RowBlock::default(), 0);
    while scan.next_into(&mut block).unwrap() {
        block.spell_keys();
        for index in 0..block.len() {
            assert_eq!(block.key(index), (n as u64).to_be_bytes());
            assert!(block.value(index) == value(n as u64, model[n]), "row {n}");
            n += 1;
        }
        between(n);
    }
    assert_eq!(n as u64, ROWS);
}

/// Updates some rows in one transaction, or takes that back.
fn update(world: &World, tree: TreeId, model: &mut [u8], dice: &mut Dice) {
    let mut txn = world.database.begin();
    let commits = dice.below(4) != 0;
    for _ in 0..20 {
        let n = dice.below(ROWS);
        let generation = model[n as usize].wrapping_add(1);
        assert!(txn.update(tree, &n.to_be_bytes(), Row::inline(&value(n, generation))).unwrap());
        if commits {
            model[n as usize] = generation;
        }
    }
    if commits {
        txn.commit().unwrap();
    } else {
        txn.rollback().unwrap();
    }
}

#[test]
fn twenty_times_the_pool_is_scanned_read_and_changed() {
    let mut world = World::with_memory("small_pool", MEMORY_BYTES);
    let (tree, mut dice, mut model) = (world.tree(), Dice::new(5), vec![1_u8; ROWS as usize]);
    fill(&world, tree);
    let pages = world.database.tree_page_count(tree).unwrap();
    assert!(pages * 8192 > 19 * POOL_BYTES, "{pages} pages are not twenty pools");
    let account = world.storage.memory().clone();
    let view = world.database.read_view(None);
    let (first, before) = (model.clone(), page_reads());
    let mut grants = Vec::new();
    let mut turn = 0;
    check(&view, tree, &first, |_| {
        turn += 1;
        if turn % 40 == 0 {
            update(&world, tree, &mut model, &mut dice);
            let now = world.database.read_view(None);
            for _ in 0..10 {
                let n = dice.below(ROWS);
                let row = now.get(tree, &n.to_be_bytes()).unwrap().unwrap();
                assert!(row.value(0) == value(n, model[n as usize]), "row {n}");
            }
        }
        if turn % 700 == 0 {
            let mut grant = Grant::new(account.clone(), Clerk::Query);
            // Refused where the scan's read-ahead and those before have what may be granted.
            if grant.try_resize(MEMORY_BYTES / 5) {
                grants.push(grant);
            } else {
                grants.clear();
            }
        }
        assert!(account.bytes_of(Clerk::Pool) <= POOL_BYTES);
    });
    assert!(account.granted_bytes_peak() > MEMORY_BYTES / 2 && turn > 2_000, "{turn} blocks: the pool gave way");
    let reads = page_reads().since(&before);
    assert!(reads.ahead * 10 > pages * 9, "{reads:?}: of {pages} pages most were read ahead");
    drop((view, grants));
    // Backward, and so without read-ahead: all through the pool.
    let view = world.database.read_view(None);
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Backward).unwrap();
    let mut rows = 0;
    while let Some(more) = scan.next_count().unwrap() {
        rows += more as u64;
    }
    assert_eq!(rows, ROWS);
    drop((scan, view));
    world.reopen();
    check(&world.database.read_view(None), tree, &model, |_| ());
    assert_eq!(world.database.check_tree(tree).unwrap(), Vec::new());
}
