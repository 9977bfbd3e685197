//! What the lower half of storage does a second on this machine: `cargo run --release -p thawdb-storage --example
//! pages_speed -- FOLDER`. The figures are for one thread; FOLDER should lie on the disk to be measured.

use std::sync::Arc;
use std::time::Instant;
use thawdb_storage::page::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted, op};
use thawdb_storage::pool::Pool;
use thawdb_storage::space::layout::page_of;
use thawdb_storage::{DatabaseSpec, FileKind, FileSpec, Mini, PageId, RecoveryListener, Store, TreeId, TxnId, UnitSpec};

const MIB: u64 = 1 << 20;
const LEAF: Format = Format { page_type: PageType::Leaf, tree: TreeId(7), object_id: 1, index_id: 1, level: 0, creator: TxnId(0) };

struct Deaf;
impl RecoveryListener for Deaf {
    fn table(&mut self, _transactions: &[u8]) {}
    fn record(&mut self, _lsn: thawdb_storage::Lsn, _payload: &[u8]) {}
}

fn timed(what: &str, count: usize, bytes: usize, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:<46} {:>12.0} /s {:>9.1} MB/s", count as f64 / seconds, bytes as f64 / seconds / 1e6);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let env = thawdb_device::os::env();
    env.device.create_folder(&folder)?;
    let file = |name: &str, kind, size_bytes| FileSpec {
        name: name.into(),
        path: folder.join(name),
        kind,
        size_bytes,
        size_bytes_max: None,
        growth_bytes: 64 * MIB,
    };
    let files = vec![file("speed.mdf", FileKind::Rows { filegroup: 1 }, 512 * MIB), file("speed.ldf", FileKind::Log, 1024 * MIB)];
    for file in &files {
        let _ = env.device.remove(&file.path);
    }
    let spec = DatabaseSpec { name: "speed".into(), files, temporary: false };
    let store = Store::create(&Pool::new(256 * MIB), &env, 5, &spec)?;
    let mut mini = Mini::begin(&store, TxnId(1));
    let unit = mini.create_unit(UnitSpec { tree: TreeId(7), object_id: 1, index_id: 1, filegroup: 1 })?;
    mini.commit()?;
    inserts(&store, unit);
    reads(&store);
    bulk(&store, unit);
    timed("checkpoint", 1, 0, || store.write_all().and_then(|()| store.checkpoint()).expect("writes"));
    store.close()?;
    drop(store);
    let path = spec.files[0].path.clone();
    let start = Instant::now();
    let store = Store::open(&Pool::new(256 * MIB), &env, "speed", 5, &path, &mut Deaf)?;
    println!("open after close: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    scan(&store);
    Ok(())
}

fn inserts(store: &Arc<Store>, unit: thawdb_storage::Unit) {
    const ROWS: u32 = 1_000_000;
    timed("rows of Votes inserted, a mini each", ROWS as usize, 0, || {
        let (mut page, mut slot, mut bytes) = (PageId::NONE, 0_u16, Vec::new());
        for n in 0..ROWS {
            bytes.clear();
            Entry::plain(&n.to_be_bytes(), &[7; 25]).encode(&mut bytes);
            let mut mini = Mini::begin(store, TxnId(1));
            let leaf = if slot == 0 { mini.allocate(unit, LEAF) } else { mini.latch(page) }.expect("a page");
            page = mini.id(leaf);
            mini.apply(leaf, PageOp::SlotInsert { slot, bytes: &bytes }).expect("fits");
            slot = if Slotted(mini.page(leaf)).fits(bytes.len()) { slot + 1 } else { 0 };
            mini.commit().expect("commits");
        }
    });
}

fn reads(store: &Arc<Store>) {
    const READS: usize = 5_000_000;
    let page = PageId { file: 1, page: 9 };
    timed("pages latched to read, in the pool", READS, 0, || {
        let sum: u64 = (0..READS).map(|_| u64::from(store.read(page).expect("reads")[100])).sum();
        assert!(sum < u64::MAX);
    });
}

fn bulk(store: &Arc<Store>, unit: thawdb_storage::Unit) {
    const PAGES: usize = 32_768;
    timed("new pages logged as images and written", PAGES, PAGES * PAGE_BYTES, || {
        let mut left = PAGES;
        while left > 0 {
            let mut mini = Mini::begin(store, TxnId(1));
            let run = mini.allocate_run(unit, 256).expect("room");
            mini.commit().expect("commits");
            let first = PageId { file: run.file, page: page_of(run.extent) };
            let pages: Vec<PageBytes> = (0..run.count * 8).map(|at| leaf(PageId { page: first.page + at, ..first })).collect();
            left = left.saturating_sub(pages.len());
            store.write_new_pages(first, &pages, TxnId(1)).expect("writes");
        }
    });
}

fn leaf(id: PageId) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    op::apply(&mut page, id, &PageOp::Format(LEAF)).expect("formats");
    let mut bytes = Vec::new();
    for slot in 0..200_u16 {
        bytes.clear();
        let row: Vec<u8> = (0..25_u32).map(|n| ((id.page + n + u32::from(slot) * 977).wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        Entry::plain(&(id.page * 200 + u32::from(slot)).to_be_bytes(), &row).encode(&mut bytes);
        op::apply(&mut page, id, &PageOp::SlotInsert { slot, bytes: &bytes }).expect("fits");
    }
    page
}

fn scan(store: &Arc<Store>) {
    let ids: Vec<PageId> = (144..60_000).map(|page| PageId { file: 1, page }).collect();
    timed("pages read from the device, prefetched by 128", ids.len(), ids.len() * PAGE_BYTES, || {
        for chunk in ids.chunks(128) {
            store.prefetch(chunk).expect("prefetches");
        }
    });
}
