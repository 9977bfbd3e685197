//! Builds an index on a column like Votes.PostId offline, online and resumably, and says what each took:
//! `cargo run --release -p thawdb-maintain --example index_speed -- 5000000 [sort MB] [f: offline, 2: by two
//! threads, m: offline under SIMPLE, o: online] [folder]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use thawdb_catalog::{
    ColumnDef, ColumnId, DatabaseCatalog, DatabaseId, IndexDef, IndexId, IndexJob, IndexKey, JobProgress, ObjectId, SchemaId, TableDef,
    TreeLayout,
};
use thawdb_maintain::{BuildPhase, IndexBuild, IndexBuildOptions, OnlineBuild, OnlineOptions, Step};
use thawdb_storage::log::RecoveryModel;
use thawdb_storage::{Database, DatabaseSpec, FileKind, FileSpec, Row, Storage, StorageConfig, StorageError, TreeId, TreeSpec};
use thawdb_types::key::encode_key;
use thawdb_types::row::RowBuffer;
use thawdb_types::{Scalar, SqlType};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn failed(error: impl std::fmt::Debug) -> Box<dyn std::error::Error> {
    format!("{error:?}").into()
}

/// User and system time of the process, its threads included.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

struct Watch {
    start: Instant,
    cpu: f64,
    log: u64,
}

impl Watch {
    fn start(database: &Database) -> Self {
        Self { start: Instant::now(), cpu: cpu_seconds(), log: log_bytes(database) }
    }

    fn tell(&self, what: &str, database: &Database) {
        let (seconds, cpu) = (self.start.elapsed().as_secs_f64(), cpu_seconds() - self.cpu);
        println!("{what:24} {seconds:7.2} s {cpu:7.2} s of processor, log {:>12} bytes", log_bytes(database) - self.log);
    }
}

fn log_bytes(database: &Database) -> u64 {
    let log = database.store().log().expect("the database is logged");
    log.end().0
}

fn index(id: i32, column_index: usize, unique: bool) -> IndexDef {
    IndexDef {
        id: IndexId(id),
        name: Some(format!("i{id}")),
        keys: vec![IndexKey { column_index, descending: false }],
        included: Vec::new(),
        unique,
        primary_key: id == 1,
        unique_constraint: false,
        filter: None,
        options: Default::default(),
        tree: TreeId(0),
    }
}

fn votes() -> TableDef {
    let columns = [("Id", SqlType::Int, false), ("PostId", SqlType::Int, false), ("UserId", SqlType::Int, true)];
    let column = |(at, (name, sql_type, nullable)): (usize, &(&str, SqlType, bool))| ColumnDef {
        id: ColumnId(at as i32 + 1),
        name: (*name).into(),
        sql_type: *sql_type,
        nullable: *nullable,
        identity: None,
        default: None,
        default_name: None,
        computed: None,
        user_type: None,
    };
    TableDef {
        database: DatabaseId(5),
        id: ObjectId(100),
        schema: SchemaId(1),
        schema_name: "dbo".into(),
        name: "Votes".into(),
        columns: columns.iter().enumerate().map(column).collect(),
        indexes: vec![index(1, 0, true)],
        rows_disabled: false,
        disabled: Vec::new(),
        lock_escalation: Default::default(),
        temporal: Default::default(),
        building: None,
        created: 0,
        modified: 0,
    }
}

fn load(database: &Arc<Database>, table: &mut TableDef, rows: u32) -> Outcome<()> {
    let mut txn = database.begin();
    let tree = txn.create_tree(TreeSpec { object_id: 100, index_id: 1, filegroup: 1 }).map_err(failed)?;
    table.indexes[0].tree = tree;
    let layout = TreeLayout::new(table, 0);
    let (mut key, mut buffer) = (Vec::new(), RowBuffer::default());
    let mut appender = txn.bulk_append(tree).map_err(failed)?;
    let mut post = 12_345_u64;
    for id in 1..=rows {
        post = post.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = (post >> 33) % (u64::from(rows) + 1);
        let row = [Scalar::Int(id as i32), Scalar::Int(spread as i32), Scalar::Int((post >> 40) as i32)];
        key.clear();
        encode_key(&row[..1], &layout.key, &mut key);
        let stored: Vec<Scalar> = layout.row_columns.iter().map(|column| row[*column].clone()).collect();
        layout.row.encode(&stored, &mut buffer).map_err(failed)?;
        appender.push(&key, Row::inline(buffer.inline())).map_err(failed)?;
    }
    appender.finish().map_err(failed)?;
    txn.commit().map_err(failed)
}

fn offline(database: &Arc<Database>, table: &TableDef, memory: usize, folder: &std::path::Path, threads: usize) -> Outcome<()> {
    let env = thawdb_device::os::env();
    let mut txn = database.begin();
    let mut altered = table.clone();
    let tree = txn.create_tree(TreeSpec { object_id: 100, index_id: 2, filegroup: 1 }).map_err(failed)?;
    altered.indexes.push(IndexDef { tree, ..index(2, 1, false) });
    let altered = Arc::new(altered);
    let options = IndexBuildOptions { memory_bytes_max: memory, temp_folder: folder.join("sort"), rows_expected: None };
    let view = database.read_view(Some(&txn));
    let watch = Watch::start(database);
    let mut build = IndexBuild::new(&env, table, &altered, 1, view, options).map_err(failed)?;
    build.use_threads(threads).map_err(failed)?;
    let mut phase = BuildPhase::Scan;
    build
        .run(&mut txn, &mut |progress| {
            if progress.phase != phase {
                watch.tell(&format!("  until {:?}", progress.phase), database);
                phase = progress.phase;
            }
            Ok(())
        })
        .map_err(failed)?;
    txn.commit().map_err(failed)?;
    watch.tell("offline", database);
    println!("{:?}", build.sort_statistics());
    let mut txn = database.begin();
    txn.drop_tree(tree).map_err(failed)?;
    Ok(txn.commit().map_err(failed)?)
}

fn online(database: &Arc<Database>, table: &TableDef, rows: u32, name: &str) -> Outcome<()> {
    let mut txn = database.begin();
    let mut tree = || txn.create_tree(TreeSpec { object_id: 100, index_id: 2, filegroup: 1 });
    let (target, side, runs) = (tree().map_err(failed)?, tree().map_err(failed)?, tree().map_err(failed)?);
    let mut catalog = DatabaseCatalog::empty(DatabaseId(5), 0);
    catalog.create(&mut txn).map_err(failed)?;
    catalog.put_table(&mut txn, table.clone()).map_err(failed)?;
    let job = IndexJob {
        table: table.id,
        index: IndexDef { tree: target, ..index(2, 1, false) },
        side,
        runs,
        statement: "CREATE INDEX i2 ON dbo.Votes (PostId) WITH (ONLINE = ON, RESUMABLE = ON)".into(),
        max_dop: 0,
        purpose: thawdb_catalog::JobPurpose::Create,
        resumable: true,
        fill_factor: 0,
        started: 0,
        rows_expected: u64::from(rows),
        progress: JobProgress::default(),
    };
    catalog.put_job(&mut txn, job.clone()).map_err(failed)?;
    txn.commit().map_err(failed)?;
    let watch = Watch::start(database);
    let mut build = OnlineBuild::begin(database, table, &job, OnlineOptions::default()).map_err(failed)?;
    let mut merging = false;
    while build.step(0).map_err(failed)? == Step::More {
        if build.progress().merging != merging {
            merging = true;
            watch.tell("  until merging", database);
        }
    }
    build.settle().map_err(failed)?;
    watch.tell(name, database);
    let mut txn = database.begin();
    [target, side, runs].into_iter().try_for_each(|tree| txn.drop_tree(tree)).map_err(|error: StorageError| failed(error))?;
    Ok(txn.commit().map_err(failed)?)
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let rows: u32 = arguments.next().map_or(Ok(5_000_000), |text| text.parse())?;
    let memory: usize = arguments.next().map_or(Ok(512), |text| text.parse())?;
    let only = arguments.next().unwrap_or_else(|| "fo".into());
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "/tmp/thawdb-index-speed".into()));
    std::fs::create_dir_all(&folder)?;
    let file = |name: &str, kind| FileSpec {
        name: name.into(),
        path: folder.join(name),
        kind,
        size_bytes: 64 << 20,
        size_bytes_max: None,
        growth_bytes: 256 << 20,
    };
    let files = vec![file("votes.mdf", FileKind::Rows { filegroup: 1 }), file("votes.ldf", FileKind::Log)];
    let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max: 2 << 30 });
    let database = storage.create_database(&DatabaseSpec { name: "votes".into(), files, temporary: false }).map_err(failed)?;
    database.start_background();
    let mut table = votes();
    let watch = Watch::start(&database);
    load(&database, &mut table, rows)?;
    watch.tell("load", &database);
    for what in only.chars() {
        let model = if what == 'm' { RecoveryModel::Simple } else { RecoveryModel::Full };
        database.store().set_recovery_model(model).map_err(failed)?;
        match what {
            'f' | 'm' => offline(&database, &table, memory << 20, &folder, 1)?,
            '2' => offline(&database, &table, memory << 20, &folder, 2)?,
            _ => online(&database, &table, rows, "online")?,
        }
    }
    database.close().map_err(failed)?;
    drop(database);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
