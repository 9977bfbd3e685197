//! Appends rows shaped like Votes to an empty tree and scans them back, printing what each phase took:
//! `cargo run --release -p thawdb-storage --example bulk_speed -- 10000000 /tmp/bulk-speed`.

use std::time::Instant;
use thawdb_storage::{DatabaseSpec, FileKind, FileSpec, KeyRange, Row, ScanDirection, Storage, StorageConfig, TreeSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let row_count: u32 = arguments.next().map_or(Ok(10_000_000), |text| text.parse())?;
    let folder = std::path::PathBuf::from(arguments.next().unwrap_or_else(|| "/tmp/thawdb-bulk-speed".into()));
    std::fs::create_dir_all(&folder)?;
    let file = |name: &str, kind| FileSpec {
        name: name.into(),
        path: folder.join(name),
        kind,
        size_bytes: 64 << 20,
        size_bytes_max: None,
        growth_bytes: 256 << 20,
    };
    let files = vec![file("bulk.mdf", FileKind::Rows { filegroup: 1 }), file("bulk.ldf", FileKind::Log)];
    let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max: 2 << 30 });
    let database = storage.create_database(&DatabaseSpec { name: "bulk".into(), files, temporary: false })?;
    let start = Instant::now();
    let mut txn = database.begin();
    let tree = txn.create_tree(TreeSpec { object_id: 1, index_id: 1, filegroup: 1 })?;
    let mut appender = txn.bulk_append(tree)?;
    for id in 0..row_count {
        let mut row = [0; 25];
        row[..4].copy_from_slice(&id.wrapping_mul(2_654_435_761).to_le_bytes());
        row[4] = (id % 7) as u8;
        row[8..16].copy_from_slice(&(u64::from(id) * 1_000_003).to_le_bytes());
        appender.push(&id.to_be_bytes(), Row::inline(&row))?;
    }
    appender.finish()?;
    txn.commit()?;
    let appended = start.elapsed();
    let view = database.read_view(None);
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Forward)?;
    let (mut count, mut sum) = (0u64, 0u64);
    while let Some(block) = scan.next_block()? {
        count += block.len() as u64;
        sum += (0..block.len()).map(|index| u64::from(block.value(index)[4])).sum::<u64>();
    }
    let scanned = start.elapsed();
    println!("{count} rows: append {appended:.2?}, scan {:.2?} ({sum})", scanned - appended);
    let mut txn = database.begin();
    let inserts = 200_000u32;
    for id in 0..inserts {
        txn.insert(tree, &(row_count + id).to_be_bytes(), Row::inline(&[7; 25]))?;
    }
    txn.commit()?;
    let inserted = start.elapsed();
    for id in (0..row_count).step_by(row_count as usize / 100_000 + 1) {
        view.get(tree, &id.to_be_bytes())?.ok_or("row is gone")?;
    }
    println!("{inserts} inserts in one transaction {:.2?}, 100,000 point reads {:.2?}", inserted - scanned, start.elapsed() - inserted);
    drop(view);
    database.close()?;
    drop(database);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
