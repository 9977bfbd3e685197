//! How soon a database answers after a crash: `cargo run --release -p thawdb-storage --example recovery_speed -- FOLDER
//! [ROWS]`. A child process fills a table, changes every row in one transaction (5,000,000 rows are about 1 GB of log), and
//! ends like a crash with the transaction open, its pages unwritten. The parent opens the files and asks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thawdb_storage::{Database, DatabaseSpec, FileKind, FileSpec, Row, Storage, StorageConfig, TreeId, TreeSpec};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const MIB: u64 = 1 << 20;
const MEMORY_BYTES: u64 = 3 << 30;
const RACE: Duration = Duration::from_secs(1);

fn spec(folder: &Path) -> DatabaseSpec {
    let file = |name: &str, kind, size_bytes| FileSpec {
        name: name.into(),
        path: folder.join(name),
        kind,
        size_bytes,
        size_bytes_max: None,
        growth_bytes: 256 * MIB,
    };
    let files = vec![file("crash.mdf", FileKind::Rows { filegroup: 1 }, 512 * MIB), file("crash.ldf", FileKind::Log, 6144 * MIB)];
    DatabaseSpec { name: "crash".into(), files, temporary: false }
}

fn row(id: u32, version: u8) -> [u8; 25] {
    let mut row = [version; 25];
    row[..4].copy_from_slice(&id.wrapping_mul(2_654_435_761).to_le_bytes());
    row
}

/// Fills, changes, and ends without a word.
fn crash(folder: &Path, rows: u32) -> Outcome<()> {
    let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max: MEMORY_BYTES });
    let database = storage.create_database(&spec(folder))?;
    let mut txn = database.begin();
    let tree = txn.create_tree(TreeSpec { object_id: 1, index_id: 1, filegroup: 1 })?;
    let mut appender = txn.bulk_append(tree)?;
    for id in 0..rows {
        appender.push(&id.to_be_bytes(), Row::inline(&row(id, 1)))?;
    }
    appender.finish()?;
    txn.commit()?;
    database.checkpoint()?;
    println!("TREE {}", tree.0);
    let store = database.store();
    let start_bytes = store.log().ok_or("a log")?.end().0;
    let start = Instant::now();
    let mut txn = database.begin();
    for id in 0..rows {
        txn.update(tree, &id.to_be_bytes(), Row::inline(&row(id, 2)))?;
        // What the background does, but for writing pages: everything is left to redo.
        if id % 1000 == 0 && store.log_bytes_since_checkpoint() > 32 * MIB {
            store.checkpoint()?;
        }
    }
    let log = store.log().ok_or("a log")?;
    log.flush(log.end())?;
    let bytes = log.end().0 - start_bytes;
    println!("{rows} rows changed in {:.1} s, {} MiB of log", start.elapsed().as_secs_f64(), bytes / MIB);
    std::process::abort();
}

fn point_reads(database: &Arc<Database>, tree: TreeId, rows: u32, dice: &mut u32) -> Outcome<()> {
    let view = database.read_view(None);
    *dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let id = *dice % rows;
    let block = view.get(tree, &id.to_be_bytes())?.ok_or("row is gone")?;
    if block.value(0) != row(id, 1) {
        return Err("a row of the open transaction was seen".into());
    }
    Ok(())
}

/// Processor time of this thread: what remains when other work on the machine is left out.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("name a folder")?);
    let rows: u32 = arguments.next().map_or(Ok(5_000_000), |text| text.parse())?;
    if arguments.next().is_some() {
        return crash(&folder, rows);
    }
    std::fs::create_dir_all(&folder)?;
    for file in spec(&folder).files {
        let _ = std::fs::remove_file(file.path);
    }
    let child = std::process::Command::new(std::env::current_exe()?).arg(&folder).arg(rows.to_string()).arg("crash").output()?;
    let told = String::from_utf8_lossy(&child.stdout).into_owned();
    print!("{told}");
    eprint!("{}", String::from_utf8_lossy(&child.stderr));
    let tree = told.lines().find_map(|line| line.strip_prefix("TREE ")).ok_or("the child failed")?;
    let tree = TreeId(tree.parse()?);
    let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max: MEMORY_BYTES });
    let (start, cpu_start) = (Instant::now(), cpu());
    let database = storage.open_database(&folder.join("crash.mdf"))?;
    let opened = start.elapsed();
    println!("processor time of opening {:.1?}", cpu() - cpu_start);
    let mut dice = 7;
    point_reads(&database, tree, rows, &mut dice)?;
    let first = start.elapsed();
    for _ in 0..99 {
        point_reads(&database, tree, rows, &mut dice)?;
    }
    let hundred = start.elapsed();
    println!(
        "open {opened:.1?}, first row {first:.1?}, 100 rows at random {hundred:.1?}; {} pages to redo",
        database.store().pending_pages()
    );
    let (redo, redo_cpu) = (Instant::now(), cpu());
    let before = database.store().pending_pages();
    while database.store().pending_pages() + 5000 > before && database.store().redo_step()? > 0 {}
    let done = before - database.store().pending_pages();
    println!("{done} pages redone in {:.1?}, processor time {:.1?}", redo.elapsed(), cpu() - redo_cpu);
    database.start_background();
    let mut seconds = 0;
    loop {
        let (mut count, start) = (0_u64, Instant::now());
        while start.elapsed() < RACE {
            for _ in 0..20 {
                point_reads(&database, tree, rows, &mut dice)?;
            }
            count += 20;
        }
        let left = database.store().pending_pages();
        seconds += 1;
        println!("after {seconds} s: {count} rows/s, {left} pages to redo");
        if left == 0 && seconds > 3 || seconds > 90 {
            break;
        }
    }
    database.close()?;
    drop(database);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
