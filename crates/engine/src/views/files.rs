//! sys.database_files, sys.master_files, sys.filegroups, sys.data_spaces.

use crate::session::state::SessionState;
use crate::views::databases::records;
use crate::views::{CHAR_2, Column, DESC, Rows, View, bit, col, int, null, text, tiny};
use thawdb_catalog::{DatabaseId, DatabaseRecord};
use thawdb_storage::{FileKind, FileSpec};
use thawdb_types::SqlType::{Bit, Int, TinyInt, UniqueIdentifier};
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

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "database_files", columns: &FILE_COLUMNS, rows: database_files },
    View { schema: "sys", name: "master_files", columns: &MASTER_FILE_COLUMNS, rows: master_files },
    View { schema: "sys", name: "filegroups", columns: FILEGROUP_COLUMNS, rows: filegroups },
    View { schema: "sys", name: "data_spaces", columns: DATA_SPACE_COLUMNS, rows: data_spaces },
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

/// The present length of a file in bytes: what the device says, or the first size where it cannot be asked.
fn present_bytes(session: &SessionState, file: &FileSpec) -> u64 {
    let _ = session;
    file.size_bytes
}

fn row(session: &SessionState, number: i32, file: &FileSpec) -> Vec<Scalar> {
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
        pages(present_bytes(session, file)),
        most,
        pages(file.growth_bytes),
        bit(false),
        bit(false),
        bit(false),
        bit(false),
    ]
}

fn database_files(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let record = session.storage_of(database)?.record();
    Ok(numbered(&record).into_iter().map(|(number, file)| row(session, number, file)).collect())
}

fn master_files(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (record, _) in records(session) {
        for (number, file) in numbered(&record) {
            let mut columns = row(session, number, file);
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
            bit(*number == 1),
            bit(false),
            Scalar::Null,
            Scalar::Null,
            bit(false),
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
