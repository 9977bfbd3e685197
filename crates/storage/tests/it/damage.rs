//! Damage below: bits that rot, writes that are lost or land elsewhere. A page is made right again from what is left of it
//! and the log, or its reader gets the error that becomes 824; never a wrong row, and everything else goes on.

use crate::crash::{SPEC, spec, storage};
use crate::world::{Dice, World, compact_row, packing_tree_in};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use thawdb_device::sim::{Fault, FaultRule, Operation, SimOptions, Simulation};
use thawdb_storage::check::FindingKind;
use thawdb_storage::page::{PAGE_BYTES, PageBytes, PageType, Slotted, checksum, header};
use thawdb_storage::store::suspect::SuspectEvent;
use thawdb_storage::{Database, KeyRange, PageId, Row, ScanDirection, StorageError, TreeId};

const ROWS: u32 = 1500;

fn value(id: u32, round: u32) -> Vec<u8> {
    format!("row {id} as of round {round}, {}", "x".repeat(id as usize % 150)).into_bytes()
}

fn write(database: &Arc<Database>, tree: TreeId, round: u32) -> Result<(), StorageError> {
    let mut txn = database.begin();
    for id in 0..ROWS {
        let (key, row) = (id.to_be_bytes(), value(id, round));
        if !txn.update(tree, &key, Row::inline(&row))? {
            txn.insert(tree, &key, Row::inline(&row))?;
        }
    }
    txn.commit()
}

/// Every row is what it must be, or the error says why it cannot be told.
fn read(database: &Arc<Database>, tree: TreeId, round: u32) -> Result<(), StorageError> {
    let view = database.read_view(None);
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward)?;
    let mut id = 0_u32;
    while let Some(block) = scan.next_block()? {
        for index in 0..block.len() {
            assert_eq!((block.key(index), block.value(index)), (&id.to_be_bytes()[..], &value(id, round)[..]));
            id += 1;
        }
    }
    assert_eq!(id, ROWS, "no row is left out");
    Ok(())
}

fn two_trees(simulation: &Simulation) -> [TreeId; 2] {
    let database = storage(simulation).create_database(&spec()).unwrap();
    let mut txn = database.begin();
    let trees = [txn.create_tree(SPEC).unwrap(), txn.create_tree(SPEC).unwrap()];
    txn.commit().unwrap();
    for tree in trees {
        write(&database, tree, 0).unwrap();
        database.clean().unwrap();
    }
    // More than the log holds: pages of the first tree cannot be made from it, those changed now can.
    for round in 1..12 {
        write(&database, trees[1], round).unwrap();
        database.background_turn().unwrap();
        database.clean().unwrap();
    }
    database.close().unwrap();
    trees
}

#[test]
fn a_rotten_page_is_repaired_or_refused_and_all_else_goes_on() {
    let simulation = Simulation::new(SimOptions::new(5));
    let trees = two_trees(&simulation);
    let (mut repaired, mut refused) = (0, 0);
    for page in (0..400_u32).step_by(5) {
        let offset = u64::from(page) * 8192 + 200 + u64::from(page) * 17 % 4000;
        simulation.flip_bit("/data".as_ref(), offset, 1).unwrap();
        let unrot = || simulation.flip_bit("/data".as_ref(), offset, 1).unwrap();
        let storage = storage(&simulation);
        let database = match storage.open_database("/data".as_ref()) {
            Ok(database) => database,
            // A page that opening needs: the database does not open, and says which.
            Err(StorageError::Damage { page: told, .. }) => {
                assert_eq!(told.page, page);
                unrot();
                continue;
            }
            Err(error) => panic!("page {page}: {error}"),
        };
        let here = PageId { file: 1, page };
        let outcomes = [read(&database, trees[0], 0), read(&database, trees[1], 11)];
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        for outcome in &outcomes {
            assert!(matches!(outcome, Ok(()) | Err(StorageError::Damage { .. })), "page {page}: {outcome:?}");
        }
        assert!(failed <= 1, "a page is of one tree");
        let event = database.store().suspect_pages().into_iter().find(|row| row.page == here).map(|row| row.event);
        match event {
            Some(SuspectEvent::Restored) if failed == 0 => repaired += 1,
            Some(SuspectEvent::Checksum) if failed == 1 => refused += 1,
            None => assert_eq!(failed, 0),
            other => panic!("page {page}: {other:?} with {failed} failed reads"),
        }
        // The tree that is whole takes changes.
        let whole = trees[usize::from(outcomes[0].is_ok() && outcomes[1].is_err() || failed == 0) ^ 1];
        let whole = if failed == 0 { trees[1] } else { whole };
        if failed == 1 {
            let mut txn = database.begin();
            txn.insert(whole, b"more", Row::inline(b"row")).unwrap();
            txn.rollback().unwrap();
            // The device finds its bit again, as when a cable is changed: the page is read anew.
            unrot();
            read(&database, trees[0], 0).and(read(&database, trees[1], 11)).unwrap();
        } else if event.is_none() {
            unrot();
        }
        database.close().unwrap();
    }
    assert!(repaired >= 3 && refused >= 3, "{repaired} repaired, {refused} refused");
    let database = storage(&simulation).open_database("/data".as_ref()).unwrap();
    assert_eq!(database.check().unwrap(), []);
}

/// Writes that the device acknowledged and lost, or put over another page: found when the page is read again, while the
/// database is open, and repaired from the old page and the log.
#[test]
fn lost_and_misdirected_writes_are_found_while_the_database_is_open() {
    let mut restored = 0;
    for seed in 0..12 {
        let simulation = Simulation::new(SimOptions::new(seed));
        let trees = two_trees(&simulation);
        let storage = storage(&simulation);
        let database = storage.open_database("/data".as_ref()).unwrap();
        let fault = if seed % 2 == 0 { Fault::Lose } else { Fault::Misdirect };
        write(&database, trees[0], 20).unwrap();
        simulation.add_fault(FaultRule::nth(Operation::Write, 1 + seed / 2, fault).on("data"));
        database.store().write_all().unwrap();
        simulation.clear_faults();
        // Out of the pool with everything, so that it is read again.
        storage.drop_clean_pages();
        for (tree, round) in [(trees[0], 20), (trees[1], 11)] {
            match read(&database, tree, round) {
                Ok(()) => {}
                // Over a page of which the log has nothing any more.
                Err(StorageError::Damage { .. }) if fault == Fault::Misdirect => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        restored += database.store().suspect_pages().iter().filter(|row| row.event == SuspectEvent::Restored).count();
    }
    assert!(restored > 2, "{restored} pages restored");
}

/// Bytes within a packed row that are wrong though the page's checksum is right, as a fault in memory leaves them: the check
/// names the row, a reader of it gets the error, and nobody a row that never was.
#[test]
fn a_packed_row_that_cannot_be_made_whole_is_told() {
    let mut world = World::new("packed-damage");
    let mut txn = world.database.begin();
    let tree = packing_tree_in(&mut txn);
    let mut dice = Dice::new(3);
    for id in 0..3_000_u32 {
        txn.insert(tree, &id.to_be_bytes(), Row::inline(&compact_row(&mut dice, 5))).unwrap();
    }
    txn.commit().unwrap();
    assert!(world.database.check().unwrap().is_empty());
    world.close();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(world.folder.join("test.mdf")).unwrap();
    let has_dictionary = |page: &PageBytes| {
        header::page_type(page) == Some(PageType::Leaf) && header::tree(page) == tree && header::dictionary_bytes(page) > 0
    };
    let mut page = [0; PAGE_BYTES];
    let packed = (0..1_000_u64).find(|number| file.read_exact_at(&mut page, number * 8192).is_ok() && has_dictionary(&page));
    let id = PageId { file: 1, page: packed.expect("leaves are packed") as u32 };
    let view = Slotted(&page);
    let slot = (0..view.len()).find(|slot| view.entry(*slot).packed).expect("a packed row");
    let (offset, bytes) = view.place(slot);
    let payload_at = offset + bytes - view.entry(slot).payload.len();
    // More columns than the row has codes for.
    page[payload_at] = 0x7F;
    checksum::seal(&mut page);
    file.write_all_at(&page, u64::from(id.page) * 8192).unwrap();
    world.open();
    let findings = world.database.check().unwrap();
    assert!(findings.iter().any(|finding| finding.kind == FindingKind::Row && finding.page == id), "{findings:?}");
    let view = world.database.read_view(None);
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward).unwrap();
    let outcome = loop {
        match scan.next_block() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the scan passed over a damaged row"),
            Err(error) => break error,
        }
    };
    assert!(matches!(&outcome, StorageError::Damage { page, .. } if *page == id), "{outcome:?}");
}
