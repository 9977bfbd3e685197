//! Scans a tree of rows shaped like Votes with nothing of it in memory, beside the disk's own speed at that moment:
//! `cargo run --release -p thawdb-storage --example cold_scan -- 10000000 /tmp/cold-scan 128`, the last being the memory in MB.
//! The folder is kept, and used again by the next run.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;
use thawdb_device::{AlignedBuf, OpenMode, OwnedRequest};
use thawdb_storage::{
    DatabaseSpec, FileKind, FileSpec, KeyRange, Row, RowBlock, ScanDirection, Storage, StorageConfig, StorageError, TreeId, TreeSpec,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let row_count: u32 = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let folder = std::path::PathBuf::from(arguments.next().unwrap_or_else(|| "/tmp/thawdb-cold-scan".into()));
    let memory_bytes_max = arguments.next().map_or(Ok(128), |text| text.parse::<u64>())? << 20;
    let note = folder.join("tree");
    if !note.exists() {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(&note, make(row_count, &folder)?.0.to_string())?;
    }
    let tree = TreeId(std::fs::read_to_string(&note)?.parse()?);
    let data = folder.join("cold.mdf");
    for _ in 0..3 {
        for counted in [true, false] {
            let before = disk(&data)?;
            let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max });
            let database = storage.open_database(&data)?;
            let (start, io) = (Instant::now(), read_bytes());
            let rows = scan(&database, tree, counted)?;
            let seconds = start.elapsed().as_secs_f64();
            let rate = (read_bytes() - io) / seconds;
            database.close()?;
            drop((database, storage));
            let disk = (before + disk(&data)?) / 2.0;
            let what = if counted { "count" } else { "rows" };
            println!(
                "{what}: {rows} in {seconds:.3} s, {:.0} MB/s, {:.0} % of the disk's {:.0}",
                rate / 1e6,
                100.0 * rate / disk,
                disk / 1e6
            );
        }
    }
    Ok(())
}

fn make(row_count: u32, folder: &Path) -> Result<TreeId, StorageError> {
    let file = |name: &str, kind| FileSpec {
        name: name.into(),
        path: folder.join(name),
        kind,
        size_bytes: 64 << 20,
        size_bytes_max: None,
        growth_bytes: 64 << 20,
    };
    let files = vec![file("cold.mdf", FileKind::Rows { filegroup: 1 }), file("cold.ldf", FileKind::Log)];
    let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max: 512 << 20 });
    let database = storage.create_database(&DatabaseSpec { name: "cold".into(), files, temporary: false })?;
    let mut txn = database.begin();
    let tree = txn.create_tree(TreeSpec { object_id: 1, index_id: 1, filegroup: 1 })?;
    let mut appender = txn.bulk_append(tree)?;
    for id in 0..row_count {
        let mut row = [0; 25];
        row[..4].copy_from_slice(&id.wrapping_mul(2_654_435_761).to_le_bytes());
        appender.push(&id.to_be_bytes(), Row::inline(&row))?;
    }
    appender.finish()?;
    txn.commit()?;
    database.close()?;
    Ok(tree)
}

fn scan(database: &std::sync::Arc<thawdb_storage::Database>, tree: TreeId, counted: bool) -> Result<usize, StorageError> {
    let mut scan = database.read_view(None).scan(tree, KeyRange::ALL, ScanDirection::Forward)?;
    let mut rows = 0;
    if counted {
        while let Some(more) = scan.next_count()? {
            rows += more;
        }
        return Ok(rows);
    }
    let mut block = RowBlock::default();
    while scan.next_into(&mut block)? {
        rows += block.len();
    }
    Ok(rows)
}

/// Bytes a second of a plain read of the file, 16 MiB under way.
fn disk(path: &Path) -> Result<f64, Box<dyn std::error::Error>> {
    const BATCH_BYTES: usize = 2 << 20;
    let file = thawdb_device::os::env().device.open(path, OpenMode::ReadOnly)?;
    let batches = file.len_bytes()? / BATCH_BYTES as u64;
    let mut under_way = VecDeque::new();
    let (start, io) = (Instant::now(), read_bytes());
    for batch in 0..batches {
        let buffer = if under_way.len() < 8 { AlignedBuf::zeroed(BATCH_BYTES) } else { finish(&mut under_way)? };
        under_way.push_back(file.start_read(vec![OwnedRequest::new(batch * BATCH_BYTES as u64, buffer)]));
    }
    while !under_way.is_empty() {
        finish(&mut under_way)?;
    }
    // As the system counts: what was reserved and never written costs no read.
    Ok((read_bytes() - io) / start.elapsed().as_secs_f64())
}

fn finish(under_way: &mut VecDeque<thawdb_device::Ticket>) -> Result<AlignedBuf, Box<dyn std::error::Error>> {
    let (mut requests, result) = under_way.pop_front().ok_or("nothing is under way")?.wait();
    result?;
    Ok(requests.remove(0).into_aligned())
}

fn read_bytes() -> f64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok()).unwrap_or(0.0)
}
