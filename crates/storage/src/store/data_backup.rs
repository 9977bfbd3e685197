//! A full backup's content: the allocated extents of every data file as they are now, then the log that makes them one
//! moment.
//!
//! ```text
//! hold the log ─► checkpoint ─► extents of file 1, 3, .. (fuzzy) ─► log from the checkpoint's redo start to its end ─► chain
//! ```
//!
//! 1. Log from the checkpoint before the first page read is in the backup: whatever a page read here lacks, or has too
//!    much of, the log after it makes right ([`Store::back_up_data`]).
//! 2. A page whose bytes on the device do not verify (half written at that moment) is read through the pool; only what no
//!    page of a file is, the doublewrite region, is left out ([`Store::copy_run`]).
//!
//! Locks: none beside a checkpoint's and a page's latch. Cost: data copied and dirty pages, never the pool's size.

use super::Store;
use super::file::DataFile;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::{LogHoldup, LogPoint};
use crate::page::{PAGE_BYTES, PageBytes, checksum};
use crate::space::layout::{self, DOUBLEWRITE_PAGE, DOUBLEWRITE_PAGES, EXTENT_PAGES, INTERVAL_EXTENTS};
use crate::space::map_bits;
use thawdb_device::{AlignedBuf, ReadRequest};

/// Pages read and given at once: 1 MiB.
const RUN_PAGES: u32 = 128;

/// What takes a full backup.
pub trait BackupSink {
    /// Pages of a file that follow each other, each as it is to be on the device.
    fn pages(&mut self, first: PageId, bytes: &[u8]) -> Result<(), StorageError>;
    /// A block of log.
    fn log(&mut self, at: Lsn, bytes: &[u8]) -> Result<(), StorageError>;
    /// That was all: durable on return. Log from `first` up to `last` is in it.
    fn finish(&mut self, first: Lsn, last: Lsn) -> Result<(), StorageError>;
}

/// A full backup that was taken.
#[derive(Debug, Clone)]
pub struct DataBackup {
    /// Where log begins that a restore needs.
    pub first: Lsn,
    /// Where its log ends: the moment that it shows.
    pub last: Lsn,
    /// The same for people.
    pub first_point: Option<LogPoint>,
    /// The same for people.
    pub last_point: Option<LogPoint>,
    /// Pages of each data file.
    pub pages: Vec<(u16, u64)>,
    /// Bytes of log.
    pub log_bytes: u64,
}

impl Store {
    /// Gives all data and the log that goes with it to `sink`; then a chain of log backups begins where the model has one.
    pub fn back_up_data(&self, sink: &mut dyn BackupSink) -> Result<DataBackup, StorageError> {
        let log = self.log().ok_or_else(|| StorageError::NotFound(format!("a log of database {}", self.name())))?;
        self.write_all()?;
        match self.checkpoint() {
            // On a log without room the checkpoint before will do: more log is copied, and nothing is appended.
            Ok(()) | Err(StorageError::LogFull { .. }) => {}
            Err(error) => return Err(error),
        }
        let (first, hold) = log.hold_checkpoint(LogHoldup::ActiveBackup);
        let mut pages = Vec::new();
        for file in self.files() {
            pages.push((file.number, self.copy_file(file, sink)?));
        }
        log.flush(log.end())?;
        let last = log.durable();
        let log_bytes = log.copy_blocks(first, last, &mut |at, bytes| sink.log(at, bytes))?;
        sink.finish(first, last)?;
        let (first_point, last_point) = (log.point(first), log.point(last));
        log.change_policy(|policy| policy.begin_chain(first, last))?;
        drop(hold);
        Ok(DataBackup { first, last, first_point, last_point, pages, log_bytes })
    }

    fn copy_file(&self, file: &DataFile, sink: &mut dyn BackupSink) -> Result<u64, StorageError> {
        let extents = file.pages() / EXTENT_PAGES;
        let mut copied = 0;
        for interval in 0..extents.div_ceil(INTERVAL_EXTENTS) {
            let bits = map_bits(&*self.read(PageId { file: file.number, page: layout::gam(interval) })?);
            let base = interval * INTERVAL_EXTENTS;
            let count = (extents - base).min(INTERVAL_EXTENTS);
            let is_taken = |bit: u32| bits[bit as usize / 64] & (1 << (bit % 64)) != 0;
            let mut bit = 0;
            while bit < count {
                let run = (bit..count.min(bit + RUN_PAGES / EXTENT_PAGES)).take_while(|bit| is_taken(*bit)).count();
                let run = u32::try_from(run).expect("few");
                if run > 0 {
                    copied += self.copy_run(file, layout::page_of(base + bit), run * EXTENT_PAGES, sink)?;
                }
                bit += run.max(1);
            }
        }
        Ok(copied)
    }

    fn copy_run(&self, file: &DataFile, first: u32, count: u32, sink: &mut dyn BackupSink) -> Result<u64, StorageError> {
        let mut buffer = AlignedBuf::zeroed(count as usize * PAGE_BYTES);
        file.device.read(&mut [ReadRequest { offset: u64::from(first) * PAGE_BYTES as u64, buffer: &mut buffer }])?;
        let own = |page: u32| file.number != 1 || !(DOUBLEWRITE_PAGE..DOUBLEWRITE_PAGE + DOUBLEWRITE_PAGES).contains(&page);
        let mut copied = 0;
        for at in 0..count {
            let page = PageId { file: file.number, page: first + at };
            let place: &mut PageBytes = buffer[at as usize * PAGE_BYTES..].first_chunk_mut().expect("a place for each page");
            if !own(page.page) {
                place.fill(0);
            } else {
                copied += 1;
                if checksum::verify(place, page).is_err() {
                    *place = *self.read(page)?;
                    checksum::seal(place);
                }
            }
        }
        if copied > 0 {
            sink.pages(PageId { file: file.number, page: first }, &buffer)?;
        }
        Ok(copied)
    }
}
