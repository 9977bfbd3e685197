//! Mini-transactions on the simulated device: what commits is there, what is dropped never was.

use super::*;
use crate::page::{Entry, Slotted};
use crate::pool::Pool;
use crate::spec::{DatabaseSpec, FileKind, FileSpec};
use std::sync::Arc;
use thawdb_device::sim::Simulation;

const MIB: u64 = 1 << 20;

fn file(name: &str, kind: FileKind, size_bytes: u64, growth_bytes: u64) -> FileSpec {
    FileSpec { name: name.into(), path: format!("/{name}").into(), kind, size_bytes, size_bytes_max: Some(64 * MIB), growth_bytes }
}

fn store(temporary: bool) -> Arc<Store> {
    let spec = DatabaseSpec {
        name: "test".into(),
        files: vec![file("data", FileKind::Rows { filegroup: 1 }, 2 * MIB, MIB), file("log", FileKind::Log, 4 * MIB, 0)],
        temporary,
    };
    Store::create(&Pool::new(8 * MIB), &Simulation::with_seed(1).env(), 5, &spec).expect("creates")
}

const SPEC: UnitSpec = UnitSpec { tree: TreeId(7), object_id: 1, index_id: 1, filegroup: 1 };
const LEAF: Format = Format { page_type: PageType::Leaf, tree: TreeId(7), object_id: 1, index_id: 1, level: 0, creator: TxnId(0) };

fn entry(key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Entry::plain(key, b"row").encode(&mut bytes);
    bytes
}

fn unit(store: &Store) -> Unit {
    let mut mini = Mini::begin(store, TxnId(1));
    let unit = mini.create_unit(SPEC).expect("creates");
    mini.commit().expect("commits");
    unit
}

#[test]
fn a_commit_is_read_and_a_drop_leaves_no_trace() {
    for temporary in [false, true] {
        let store = store(temporary);
        let unit = unit(&store);
        let mut mini = Mini::begin(&store, TxnId(1));
        let leaf = mini.allocate(unit, LEAF).expect("allocates");
        let page = mini.id(leaf);
        mini.apply(leaf, PageOp::SlotInsert { slot: 0, bytes: &entry(b"a") }).expect("applies");
        let end = mini.commit().expect("commits");
        assert_eq!(end > Lsn(0), !temporary);
        store.flush_log(end).expect("flushes");
        let before = *store.read(page).expect("reads");
        assert_eq!(Slotted(&before).search(b"a"), Ok(0));
        let mut mini = Mini::begin(&store, TxnId(1));
        let leaf = mini.latch(page).expect("latches");
        mini.apply(leaf, PageOp::SlotRemove { slot: 0 }).expect("applies");
        let other = mini.allocate(unit, LEAF).expect("allocates");
        let other = mini.id(other);
        drop(mini);
        assert_eq!(*store.read(page).expect("reads"), before);
        let mut mini = Mini::begin(&store, TxnId(1));
        let again = mini.allocate(unit, LEAF).expect("allocates");
        assert_eq!(mini.id(again), other, "the dropped reservation was given back");
    }
}

#[test]
fn pages_are_handed_out_once_files_grow_and_all_comes_back() {
    let store = store(false);
    let unit = unit(&store);
    let mut pages = Vec::new();
    while pages.len() < 1_500 {
        let mut mini = Mini::begin(&store, TxnId(1));
        for _ in 0..50 {
            let handle = mini.allocate(unit, LEAF).expect("allocates, growing the file");
            pages.push(mini.id(handle));
        }
        mini.commit().expect("commits");
        store.write_all().expect("writes");
    }
    let mut sorted = pages.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), pages.len(), "no page is handed out twice");
    assert!(store.file(1).expect("is there").pages() > 1_500);
    let freed = &pages[8..24];
    let mut mini = Mini::begin(&store, TxnId(1));
    freed.iter().for_each(|page| mini.free(unit, *page).expect("frees"));
    mini.commit().expect("commits");
    let other = self::unit(&store);
    let mut mini = Mini::begin(&store, TxnId(2));
    let handle = mini.allocate(other, LEAF).expect("allocates");
    assert!(freed.contains(&mini.id(handle)), "an extent without pages goes to whoever asks");
    mini.commit().expect("commits");
    while !store.free_unit_step(unit, 10).expect("frees") {}
    let run = {
        let mut mini = Mini::begin(&store, TxnId(2));
        let run = mini.allocate_run(other, 100).expect("takes");
        mini.commit().expect("commits");
        run
    };
    assert_eq!(run.count, 100);
}

#[test]
fn a_full_file_and_a_full_log_are_clean_errors() {
    let store = store(false);
    let unit = unit(&store);
    let mut mini = Mini::begin(&store, TxnId(1));
    let leaf = mini.allocate(unit, LEAF).expect("allocates");
    let page = mini.id(leaf);
    mini.apply(leaf, PageOp::SlotInsert { slot: 0, bytes: &entry(b"a") }).expect("applies");
    mini.commit().expect("commits");
    let failed = (0..100_000).find_map(|n: u32| {
        let before = *store.read(page).expect("reads");
        let mut mini = Mini::begin(&store, TxnId(1));
        let leaf = mini.latch(page).expect("latches");
        mini.apply(leaf, PageOp::SlotReplace { slot: 0, bytes: &entry(&[b'k'; 900]) }).expect("applies");
        mini.apply(leaf, PageOp::SlotReplace { slot: 0, bytes: &entry(&n.to_be_bytes()) }).expect("applies");
        mini.commit().err().map(|error| (error, before))
    });
    let (error, before) = failed.expect("the log is full at last");
    assert!(matches!(error, StorageError::LogFull { .. }), "{error:?}");
    assert_eq!(*store.read(page).expect("reads"), before);
    let temporary = self::store(true);
    let unit = self::unit(&temporary);
    let full = (0..2_000).find_map(|_| {
        let mut mini = Mini::begin(&temporary, TxnId(1));
        let run = mini.allocate_run(unit, 8).err();
        mini.commit().expect("commits");
        run
    });
    assert!(matches!(full, Some(StorageError::FileFull { .. })), "{full:?}");
}

#[test]
fn threads_allocate_and_free_without_losing_or_sharing_a_page() {
    let store = store(true);
    let units = [unit(&store), unit(&store)];
    let kept: Vec<Vec<PageId>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_usize)
            .map(|thread| {
                let (store, unit) = (&store, units[thread % 2]);
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for turn in 0..300 {
                        let mut mini = Mini::begin(store, TxnId(1));
                        let handles = [mini.allocate(unit, LEAF).expect("allocates"), mini.allocate(unit, LEAF).expect("allocates")];
                        let pages = handles.map(|handle| mini.id(handle));
                        match turn % 3 {
                            0 => drop(mini),
                            _ => {
                                mini.commit().expect("commits");
                                kept.extend(pages);
                            }
                        }
                        if turn % 4 == 0 && kept.len() > 2 {
                            let mut mini = Mini::begin(store, TxnId(1));
                            mini.free(unit, kept.remove(turn % kept.len())).expect("frees");
                            mini.commit().expect("commits");
                        }
                    }
                    kept
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut all: Vec<PageId> = kept.concat();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    for page in all {
        let (map, at) = layout::pfs(page.page);
        let pfs = store.read(PageId { file: 1, page: map }).expect("reads");
        assert_eq!(pfs[MAP_BEGIN + at as usize], PFS_ALLOCATED);
    }
}
