//! Writing dirty pages back: in file order, after the log.

use super::Store;
use super::dirty::{DirtyPage, Taken};
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::page::{PAGE_BYTES, PageBytes, checksum, header};
use crate::pool::{BegunWrite, WriteBack};
use thawdb_device::{AlignedBuf, WriteRequest};

/// State of the writer.
pub struct Writer {}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {}
    }
}

/// Pages written at once.
pub const BATCH_PAGES: usize = 128;

struct Copied {
    page: PageId,
    frame: u32,
    recovery: Lsn,
}

impl WriteBack for Store {
    fn write_back(&self, pages_max: usize) -> Result<usize, StorageError> {
        let taken = self.dirty.take(pages_max.min(BATCH_PAGES));
        let mut back = Vec::new();
        let written = self.write_taken(&taken, &mut back);
        self.dirty.done(&taken, &back);
        written
    }
}

impl Store {
    /// Writes every page that is dirty now.
    pub(crate) fn checkpoint_new(&self) -> Result<(), StorageError> {
        while self.write_back(BATCH_PAGES)? > 0 {}
        Ok(())
    }

    fn write_taken(&self, taken: &Taken, back: &mut Vec<DirtyPage>) -> Result<usize, StorageError> {
        let mut buffer = AlignedBuf::zeroed(taken.pages.len() * PAGE_BYTES);
        let mut copied: Vec<Copied> = Vec::with_capacity(taken.pages.len());
        let mut group_end = Lsn(0);
        for (page, recovery) in &taken.pages {
            let at = copied.len() * PAGE_BYTES;
            let out: &mut PageBytes = buffer[at..].first_chunk_mut().expect("a place for each");
            match self.pool.begin_write(&self.file(page.file)?.pool_file, page.page, out) {
                BegunWrite::Begun { frame, recovery: own, group_end: end } => {
                    group_end = group_end.max(end);
                    copied.push(Copied { page: *page, frame, recovery: own.min(*recovery) });
                }
                BegunWrite::Clean => {}
                BegunWrite::Busy => back.push((*page, *recovery)),
            }
        }
        let result = self.flush_log(group_end).and_then(|()| self.write_copies(&copied, &mut buffer));
        for one in &copied {
            self.pool.end_write(one.frame, result.is_err().then_some(one.recovery));
            if result.is_err() {
                back.push((one.page, one.recovery));
            }
        }
        result.map(|()| copied.len())
    }

    fn write_copies(&self, copied: &[Copied], buffer: &mut AlignedBuf) -> Result<(), StorageError> {
        for at in 0..copied.len() {
            let page: &mut PageBytes = buffer[at * PAGE_BYTES..].first_chunk_mut().expect("a place for each");
            if !header::is_blank(page) {
                checksum::seal(page);
            }
        }
        for file in self.files() {
            let requests: Vec<_> = copied
                .iter()
                .enumerate()
                .filter(|(_, one)| one.page.file == file.number)
                .map(|(at, one)| WriteRequest {
                    offset: u64::from(one.page.page) * PAGE_BYTES as u64,
                    buffer: &buffer[at * PAGE_BYTES..(at + 1) * PAGE_BYTES],
                })
                .collect();
            if !requests.is_empty() {
                file.device.write(&requests)?;
                if self.log.is_some() {
                    file.device.sync()?;
                }
            }
        }
        Ok(())
    }
}
