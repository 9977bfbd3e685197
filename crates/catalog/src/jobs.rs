//! Index operations that go on beside the table's use: one record a table, changed by every chunk of the work.
//!
//! ```text
//! start: record with the index to be, its trees ─► chunks: the progress in it moves with their rows ─► end: record gone,
//!                                                                                                  index in the table
//! ```
//! The record is the whole state of the operation: what is not in it (whether a session works on it now) is of the
//! instance's life and is "paused" after a start.
//!
//! Invariants: 1. the progress of a record and the rows it speaks of are written by one transaction. 2. A table has at most
//! one record. 3. While the record is there, [`TableDef::building`](crate::TableDef) is, and so every writer of the table
//! knows the side tree.

use crate::defs::{IndexDef, ObjectId};
use crate::objects::{TABLE_VERSION, read_index, write_index};
use crate::record::{Reader, RecordError, Writer};
use thawdb_storage::TreeId;

/// How far an index operation is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// The scan is over and runs are being merged into the index.
    pub merging: bool,
    /// Every run has been merged; what is left are the side tree's words.
    pub merged: bool,
    /// Key of the last row that was read.
    pub scan_after: Option<Vec<u8>>,
    /// Sorted runs made.
    pub run_count: u32,
    /// Rows read.
    pub rows_scanned: u64,
    /// Key of the last entry that is in the index.
    pub last_entry: Option<Vec<u8>>,
    /// Entries in the index.
    pub rows_appended: u64,
    /// Time spent working.
    pub worked_ms: u64,
    /// When it was last paused, 1/300 s since 1900-01-01, as far as was written down.
    pub paused: Option<i64>,
}

/// An index operation.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexJob {
    /// The table.
    pub table: ObjectId,
    /// The index as it will be; its tree is the one being filled.
    pub index: IndexDef,
    /// Where writers of the table leave what becomes of entries meanwhile: entry key, then 0 (gone) or 1 and its row.
    pub side: TreeId,
    /// Sorted runs: run number (big-endian, 32 bits), entry key.
    pub runs: TreeId,
    /// The statement that began it.
    pub statement: String,
    /// Its MAXDOP; 0 if none was said.
    pub max_dop: i16,
    /// An error pauses it; otherwise it ends it.
    pub resumable: bool,
    /// FILLFACTOR; 0 is full.
    pub fill_factor: u8,
    /// First start, 1/300 s since 1900-01-01.
    pub started: i64,
    /// Rows of the table when it began, for the percentage.
    pub rows_expected: u64,
    /// What it makes.
    pub purpose: JobPurpose,
    /// How far it is.
    pub progress: JobProgress,
}

/// What an index operation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPurpose {
    /// A new index.
    Create,
    /// An index in place of the one that has its number: REBUILD, DROP_EXISTING.
    Replace,
    /// The index of a new constraint; whether the engine made its name up.
    Constraint {
        /// Nobody gave it the name it has.
        system_named: bool,
    },
}

impl IndexJob {
    /// Share of the work that is done, 0 to 100: reading and writing are half each. What waits to be published reads 100.
    pub fn percent(&self, progress: &JobProgress) -> f64 {
        if progress.merged {
            return 100.0;
        }
        let whole = if progress.merging { progress.rows_scanned } else { self.rows_expected.max(progress.rows_scanned) };
        ((progress.rows_scanned + progress.rows_appended) as f64 * 50.0 / whole.max(1) as f64).min(100.0)
    }
}

fn optional_bytes(w: &mut Writer, bytes: Option<&[u8]>) {
    w.flag(bytes.is_some());
    if let Some(bytes) = bytes {
        w.bytes(bytes);
    }
}

fn read_optional_bytes(r: &mut Reader<'_>) -> Result<Option<Vec<u8>>, RecordError> {
    if r.flag()? { Ok(Some(r.bytes()?.to_vec())) } else { Ok(None) }
}

pub(crate) fn write_job(job: &IndexJob) -> Vec<u8> {
    let mut w = Writer::new(TABLE_VERSION);
    w.i32(job.table.0);
    write_index(&mut w, &job.index);
    w.u64(job.side.0).u64(job.runs.0).text(&job.statement).u16(job.max_dop.cast_unsigned()).flag(job.resumable).u8(job.fill_factor);
    w.i64(job.started).u64(job.rows_expected);
    w.u8(match job.purpose {
        JobPurpose::Create => 0,
        JobPurpose::Replace => 1,
        JobPurpose::Constraint { system_named: false } => 2,
        JobPurpose::Constraint { system_named: true } => 3,
    });
    let progress = &job.progress;
    w.flag(progress.merging)
        .flag(progress.merged)
        .i32(progress.run_count.cast_signed())
        .u64(progress.rows_scanned)
        .u64(progress.rows_appended);
    w.u64(progress.worked_ms).flag(progress.paused.is_some()).i64(progress.paused.unwrap_or(0));
    optional_bytes(&mut w, progress.scan_after.as_deref());
    optional_bytes(&mut w, progress.last_entry.as_deref());
    w.finish()
}

pub(crate) fn read_job(record: &[u8]) -> Result<IndexJob, RecordError> {
    let mut r = Reader::of_versions(record, 1, TABLE_VERSION)?;
    let (table, index) = (ObjectId(r.i32()?), read_index(&mut r)?);
    let (side, runs, statement) = (TreeId(r.u64()?), TreeId(r.u64()?), r.text()?);
    let (max_dop, resumable, fill_factor) = (r.u16()?.cast_signed(), r.flag()?, r.u8()?);
    let (started, rows_expected) = (r.i64()?, r.u64()?);
    let purpose = match if r.version() > 2 { r.u8()? } else { 0 } {
        0 => JobPurpose::Create,
        1 => JobPurpose::Replace,
        2 => JobPurpose::Constraint { system_named: false },
        3 => JobPurpose::Constraint { system_named: true },
        other => return Err(RecordError(format!("an index operation of purpose {other}"))),
    };
    let (merging, merged, run_count, rows_scanned, rows_appended) = (r.flag()?, r.flag()?, r.i32()?.cast_unsigned(), r.u64()?, r.u64()?);
    let (worked_ms, was_paused, paused) = (r.u64()?, r.flag()?, r.i64()?);
    let (scan_after, last_entry) = (read_optional_bytes(&mut r)?, read_optional_bytes(&mut r)?);
    r.finish()?;
    let paused = was_paused.then_some(paused);
    let progress = JobProgress { merging, merged, scan_after, run_count, rows_scanned, last_entry, rows_appended, worked_ms, paused };
    Ok(IndexJob { table, index, side, runs, statement, max_dop, resumable, fill_factor, started, rows_expected, purpose, progress })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defs::{IndexId, IndexKey};

    #[test]
    fn a_record_comes_back_and_its_percentage_only_rises() {
        let index = IndexDef {
            id: IndexId(2),
            name: Some("i".into()),
            keys: vec![IndexKey { column_index: 1, descending: true }],
            included: vec![2],
            unique: true,
            primary_key: false,
            unique_constraint: true,
            filter: None,
            options: Default::default(),
            tree: TreeId(100),
        };
        let mut job = IndexJob {
            table: ObjectId(7),
            index,
            side: TreeId(101),
            runs: TreeId(102),
            statement: "CREATE INDEX i ON t(a)".into(),
            max_dop: 1,
            resumable: true,
            fill_factor: 80,
            started: 5,
            rows_expected: 100,
            purpose: JobPurpose::Constraint { system_named: true },
            progress: JobProgress::default(),
        };
        assert_eq!(read_job(&write_job(&job)).unwrap(), job);
        let mut before = 0.0;
        for (merging, scanned, appended) in [(false, 50, 0), (false, 120, 0), (true, 120, 0), (true, 120, 60), (true, 120, 120)] {
            let progress = JobProgress { merging, rows_scanned: scanned, rows_appended: appended, ..JobProgress::default() };
            assert!(job.percent(&progress) >= before);
            before = job.percent(&progress);
        }
        assert!((before - 100.0).abs() < f64::EPSILON);
        job.progress =
            JobProgress { merging: true, scan_after: Some(vec![1]), last_entry: Some(vec![]), paused: Some(9), ..JobProgress::default() };
        let bytes = write_job(&job);
        assert_eq!(read_job(&bytes).unwrap(), job);
        (0..bytes.len()).for_each(|cut| assert!(read_job(&bytes[..cut]).is_err()));
    }
}
