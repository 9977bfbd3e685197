//! sys.database_files, sys.master_files, sys.filegroups, sys.data_spaces.

use crate::ddl::filegroups;
use crate::instance::database::OpenDatabase;
use crate::security::rule::Securable;
use crate::session::state::SessionState;
use crate::views::databases::records;
use crate::views::functions::{Function, databases};
use crate::views::{CHAR_2, Column, DESC, Rows, View, big, bit, col, int, null, small, text, tiny};
use thawdb_catalog::{DatabaseId, DatabaseRecord};
use thawdb_device::FileStats;
use thawdb_storage::space::layout::EXTENT_PAGES;
use thawdb_storage::{FileKind, FileSpec, GROWTH_PERCENT};
use thawdb_types::SqlType::{BigInt, Bit, Int, SmallInt, TinyInt, UniqueIdentifier};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;
/// Bytes of a page: sizes are told in pages.
const PAGE_BYTES: u64 = 8192;

const FILE_COLUMNS: [Column; 16] = [
    col("file_id", Int),
    null("file_guid", UniqueIdentifier),
    col("type", TinyInt),
    null("type_desc", DESC),
    col("data_space_id", Int),
    col("name", NAME),
    null("physical_name", SqlType::nvarchar(260)),
    null("state", TinyInt),
    null("state_desc", DESC),
    col("size", Int),
    col("max_size", Int),
    col("growth", Int),
    col("is_media_read_only", Bit),
    col("is_read_only", Bit),
    col("is_sparse", Bit),
    col("is_percent_growth", Bit),
];

const MASTER_FILE_COLUMNS: [Column; 17] = master_columns();

const fn master_columns() -> [Column; 17] {
    let mut columns = [col("database_id", Int); 17];
    let mut at = 0;
    while at < 16 {
        columns[at + 1] = FILE_COLUMNS[at];
        at += 1;
    }
    columns
}

const FILEGROUP_COLUMNS: &[Column] = &[
    col("name", NAME),
    col("data_space_id", Int),
    col("type", CHAR_2),
    null("type_desc", DESC),
    null("is_default", Bit),
    null("is_system", Bit),
    null("filegroup_guid", UniqueIdentifier),
    null("log_filegroup_id", Int),
    null("is_read_only", Bit),
    null("is_autogrow_all_files", Bit),
];

const DATA_SPACE_COLUMNS: &[Column] = FILEGROUP_COLUMNS.split_at(6).0;

const SPACE_COLUMNS: &[Column] = &[
    null("database_id", SmallInt),
    null("file_id", SmallInt),
    null("filegroup_id", SmallInt),
    null("total_page_count", BigInt),
    null("allocated_extent_page_count", BigInt),
    null("unallocated_extent_page_count", BigInt),
    null("version_store_reserved_page_count", BigInt),
    null("user_object_reserved_page_count", BigInt),
    null("internal_object_reserved_page_count", BigInt),
    null("mixed_extent_page_count", BigInt),
    null("modified_extent_page_count", BigInt),
];

const IO_COLUMNS: &[Column] = &[
    col("database_id", SmallInt),
    col("file_id", SmallInt),
    col("sample_ms", BigInt),
    col("num_of_reads", BigInt),
    col("num_of_bytes_read", BigInt),
    col("io_stall_read_ms", BigInt),
    col("io_stall_queued_read_ms", BigInt),
    col("num_of_writes", BigInt),
    col("num_of_bytes_written", BigInt),
    col("io_stall_write_ms", BigInt),
    col("io_stall_queued_write_ms", BigInt),
    col("io_stall", BigInt),
    col("size_on_disk_bytes", BigInt),
    col("file_handle", SqlType::varbinary(8)),
];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[Function] =
    &[Function { name: "dm_io_virtual_file_stats", columns: IO_COLUMNS, arguments: 2, rows: file_stats }];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "database_files", columns: &FILE_COLUMNS, rows: database_files },
    View { schema: "sys", name: "master_files", columns: &MASTER_FILE_COLUMNS, rows: master_files },
    View { schema: "sys", name: "filegroups", columns: FILEGROUP_COLUMNS, rows: filegroups },
    View { schema: "sys", name: "data_spaces", columns: DATA_SPACE_COLUMNS, rows: data_spaces },
    View { schema: "sys", name: "dm_db_file_space_usage", columns: SPACE_COLUMNS, rows: space_usage },
];

fn pages(bytes: u64) -> Scalar {
    int(i32::try_from(bytes / PAGE_BYTES).unwrap_or(i32::MAX))
}

/// A file's number: rows files first, the first log file is 2, as SQL Server gives them out.
pub(crate) fn numbered(record: &DatabaseRecord) -> Vec<(i32, &FileSpec)> {
    let is_log = |file: &&FileSpec| file.kind == FileKind::Log;
    let mut rows = record.files.iter().filter(|file| !is_log(file));
    let first = rows.next();
    let mut logs = record.files.iter().filter(is_log);
    let ordered = first.into_iter().chain(logs.next()).chain(rows).chain(logs);
    (1..).zip(ordered).collect()
}

/// A file of a database as it is now.
#[derive(Debug, Clone)]
pub(crate) struct FileFacts {
    pub(crate) number: i32,
    pub(crate) spec: FileSpec,
    /// Its length.
    pub(crate) bytes: u64,
    /// Of a data file its extents in use, of the log the part in use.
    pub(crate) used_bytes: u64,
    pub(crate) stats: FileStats,
}

/// The files of an open database, by number.
pub(crate) fn facts_of(open: &OpenDatabase) -> Vec<FileFacts> {
    let store = open.storage.store();
    let record = open.record();
    let mut facts = Vec::new();
    for file in store.files() {
        // A map that cannot be read shows as a file in full use: the message is CHECKDB's to give.
        let extents = store.used_extents(file.number).map_or(file.pages() / EXTENT_PAGES, |(count, _)| count);
        let bytes = |pages: u32| u64::from(pages) * PAGE_BYTES;
        facts.push(FileFacts {
            number: i32::from(file.number),
            spec: (*file.spec()).clone(),
            bytes: bytes(file.pages()),
            used_bytes: bytes(extents * EXTENT_PAGES),
            stats: file.device.stats(),
        });
    }
    for (number, spec) in numbered(&record).into_iter().filter(|(_, spec)| spec.kind == FileKind::Log) {
        let (space, stats) = store.log().map(|log| (log.space(), log.file_stats())).unzip();
        let bytes = space.map_or(spec.size_bytes, |space| space.size_bytes);
        let used_bytes = space.map_or(0, |space| space.used_bytes);
        facts.push(FileFacts { number, spec: spec.clone(), bytes, used_bytes, stats: stats.unwrap_or_default() });
    }
    facts.sort_by_key(|file| file.number);
    facts
}

/// Rows of a database's files: as they are if it is open, else as master records them.
fn rows_of(session: &SessionState, record: &DatabaseRecord) -> Rows {
    match session.engine.database(record.id) {
        Some(open) => facts_of(&open).iter().map(|file| row(record, file.number, &file.spec, file.bytes)).collect(),
        None => numbered(record).into_iter().map(|(number, file)| row(record, number, file, file.size_bytes)).collect(),
    }
}

fn row(record: &DatabaseRecord, number: i32, file: &FileSpec, present_bytes: u64) -> Vec<Scalar> {
    let (kind, description, space) = match file.kind {
        FileKind::Log => (1, "LOG", 0),
        FileKind::Rows { filegroup } => (0, "ROWS", i32::from(filegroup)),
    };
    let most = match (file.size_bytes_max, file.growth_bytes) {
        (_, 0) => int(0),
        (None, _) if kind == 1 => int(268_435_456),
        (None, _) => int(-1),
        (Some(most), _) => pages(most),
    };
    let percent = file.growth_bytes & GROWTH_PERCENT != 0;
    vec![
        int(number),
        Scalar::Null,
        tiny(kind),
        text(description),
        int(space),
        text(file.name.clone()),
        text(file.path.display().to_string()),
        tiny(0),
        text("ONLINE"),
        pages(present_bytes),
        most,
        if percent { int(i32::try_from(file.growth_bytes & !GROWTH_PERCENT).unwrap_or(i32::MAX)) } else { pages(file.growth_bytes) },
        bit(false),
        bit(matches!(file.kind, FileKind::Rows { filegroup } if filegroups::is_read_only(record, filegroup))),
        bit(false),
        bit(percent),
    ]
}

fn database_files(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let record = session.storage_of(database)?.record();
    Ok(rows_of(session, &record))
}

fn master_files(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    let judge = session.server_judge();
    let all = ["VIEW ANY DEFINITION", "CREATE ANY DATABASE", "ALTER ANY DATABASE"].iter().any(|p| judge.allows(Securable::Server, p));
    let seen = |id| all || session.judge(id).is_ok_and(|judge| judge.allows(Securable::Database, "VIEW DEFINITION"));
    for (record, _) in records(session).into_iter().filter(|(record, _)| seen(record.id)) {
        for mut columns in rows_of(session, &record) {
            columns.insert(0, int(record.id.0));
            rows.push(columns);
        }
    }
    Ok(rows)
}

fn filegroups(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let record = session.storage_of(database)?.record();
    let row = |(number, name): &(u16, String)| {
        vec![
            text(name.clone()),
            int(i32::from(*number)),
            text("FG"),
            text("ROWS_FILEGROUP"),
            bit(*number == filegroups::default_of(&record)),
            bit(false),
            Scalar::Null,
            Scalar::Null,
            bit(filegroups::is_read_only(&record, *number)),
            bit(false),
        ]
    };
    Ok(record.filegroups.iter().map(row).collect())
}

fn data_spaces(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = filegroups(session, database)?;
    rows.iter_mut().for_each(|row| row.truncate(6));
    Ok(rows)
}

fn id_of(open: &OpenDatabase) -> i16 {
    i16::try_from(open.id.0).unwrap_or(i16::MAX)
}

fn space_usage(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let open = session.storage_of(database)?;
    let row = |file: FileFacts| {
        let FileKind::Rows { filegroup } = file.spec.kind else { return None };
        let (total, used) = (file.bytes / PAGE_BYTES, file.used_bytes / PAGE_BYTES);
        Some(vec![
            small(id_of(&open)),
            small(i16::try_from(file.number).unwrap_or(i16::MAX)),
            small(i16::try_from(filegroup).unwrap_or(i16::MAX)),
            big(total),
            big(used),
            big(total - used),
            Scalar::Null,
            Scalar::Null,
            Scalar::Null,
            big(0),
            Scalar::Null,
        ])
    };
    Ok(facts_of(&open).into_iter().filter_map(row).collect())
}

fn file_stats(session: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let wanted = arguments[1].as_i64();
    let sample_ms = session.engine.config.env.clock.monotonic_ns() / 1_000_000;
    let ms = |ns: u64| ns / 1_000_000;
    let mut rows = Rows::new();
    for open in databases(session, &arguments[0]) {
        for file in facts_of(&open).into_iter().filter(|file| wanted.is_none_or(|wanted| wanted == i64::from(file.number))) {
            let stats = file.stats;
            // The time of a write is not over before it is durable.
            let write_ns = stats.write_stall_ns + stats.sync_stall_ns;
            rows.push(vec![
                small(id_of(&open)),
                small(i16::try_from(file.number).unwrap_or(i16::MAX)),
                big(sample_ms),
                big(stats.reads),
                big(stats.read_bytes),
                big(ms(stats.read_stall_ns)),
                big(0),
                big(stats.writes),
                big(stats.write_bytes),
                big(ms(write_ns)),
                big(0),
                big(ms(stats.read_stall_ns + write_ns)),
                big(file.bytes),
                Scalar::Binary(u64::try_from(file.number).unwrap_or(0).to_be_bytes().to_vec()),
            ]);
        }
    }
    Ok(rows)
}
