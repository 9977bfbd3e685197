//! Bulk append: what was pushed is read back, ended how it may.

use crate::world::World;
use std::collections::BTreeMap;
use thawdb_storage::log::RecoveryModel;
use thawdb_storage::page::PAGE_BYTES;
use thawdb_storage::store::data_backup::BackupSink;
use thawdb_storage::{KeyRange, Lsn, PageId, Row, ScanDirection, StorageError, TreeId};

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

/// Takes backups and keeps their pages.
#[derive(Default)]
struct Kept(BTreeMap<PageId, Vec<u8>>);

impl BackupSink for Kept {
    fn pages(&mut self, first: PageId, bytes: &[u8]) -> Result<(), StorageError> {
        for (at, page) in (first.page..).zip(bytes.chunks(PAGE_BYTES)) {
            self.0.insert(PageId { file: first.file, page: at }, page.to_vec());
        }
        Ok(())
    }

    fn log(&mut self, _: Lsn, _: &[u8]) -> Result<(), StorageError> {
        Ok(())
    }

    fn finish(&mut self, _: Lsn, _: Lsn) -> Result<(), StorageError> {
        Ok(())
    }
}

fn with_model(name: &str, model: RecoveryModel) -> (World, TreeId) {
    let world = World::new(name);
    let tree = world.tree();
    world.database.store().set_recovery_model(model).unwrap();
    (world, tree)
}

#[test]
fn under_simple_and_bulk_logged_the_log_has_bulk_work_by_its_extents() {
    for (model, percent) in [(RecoveryModel::Simple, 0..5), (RecoveryModel::BulkLogged, 0..5), (RecoveryModel::Full, 20..110)] {
        let (mut world, tree) = with_model("minimal", model);
        let log_end = || world.database.store().log().unwrap().end().0;
        let before = log_end();
        append(&world, tree, 0, ROWS, true);
        let logged = log_end() - before;
        let pages = world.used_pages(tree).len() * PAGE_BYTES;
        assert!(percent.contains(&(logged * 100 / pages as u64)), "{model:?}: {logged} bytes of log for {pages} bytes of pages");
        check(&world, tree, ROWS);
        append(&world, tree, ROWS, ROWS + 30_000, false);
        check(&world, tree, ROWS);
        world.reopen();
        check(&world, tree, ROWS);
    }
}

#[test]
fn a_log_backup_has_the_pages_that_the_log_only_names() {
    for model in [RecoveryModel::BulkLogged, RecoveryModel::Full] {
        let (world, tree) = with_model("pages", model);
        let store = world.database.store();
        store.back_up_data(&mut Kept::default()).unwrap();
        append(&world, tree, 0, ROWS, true);
        for copy_only in [true, false] {
            let mut kept = Kept::default();
            let backup = store.back_up_log(1, copy_only, &mut kept).unwrap();
            assert_eq!(backup.pages, kept.0.len() as u64);
            if model == RecoveryModel::Full {
                assert_eq!(backup.pages, 0, "they are in the log");
                continue;
            }
            let all = world.used_pages(tree);
            let is_missing = |page: &PageId| kept.0.get(page).is_none_or(|copy| copy[..] != store.read(*page).unwrap()[..]);
            let missing = all.iter().filter(|page| is_missing(page)).count();
            // The root, the other inner nodes, and a last batch too short to be forced are in the log.
            assert!(backup.pages >= 256 && missing < 40, "{missing} of {} pages are not in the backup", all.len());
        }
        let mut kept = Kept::default();
        assert_eq!(store.back_up_log(2, false, &mut kept).unwrap().pages, 0, "they were in the one before");
    }
}
