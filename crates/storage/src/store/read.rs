//! Reading pages: from the pool, or from the device through every check.

use super::Store;
use super::file::DataFile;
use crate::error::StorageError;
use crate::ids::PageId;
use crate::page::{PAGE_BYTES, PageBytes};
use crate::page_reads;
use crate::pool::{AccessHint, Loaded, Loading, PageRead, PageWrite};
use thawdb_device::ReadRequest;

/// One part of so many of the pool's frames takes the pages that are being loaded in one batch.
const PREFETCH_SHARE: usize = 16;

impl Store {
    /// Latches a page to read.
    pub fn read(&self, page: PageId) -> Result<PageRead<'_>, StorageError> {
        self.read_with(page, AccessHint::Keep)
    }

    /// Latches a page to read; a scan says [`AccessHint::Once`].
    pub fn read_with(&self, page: PageId, hint: AccessHint) -> Result<PageRead<'_>, StorageError> {
        let file = self.file_of(page)?;
        page_reads::looked_at();
        self.pool.read(&file.pool_file, page.page, hint, &mut |bytes| self.load(file, page, bytes))
    }

    pub(crate) fn write_existing(&self, page: PageId, wait: bool) -> Result<Option<PageWrite<'_>>, StorageError> {
        let file = self.file_of(page)?;
        page_reads::looked_at();
        self.pool.write(&file.pool_file, page.page, wait, &mut |bytes| self.load(file, page, bytes))
    }

    pub(crate) fn write_new(&self, page: PageId) -> Result<PageWrite<'_>, StorageError> {
        if self.pending.holds(page) {
            // Its old changes must reach the page first: were this mini-transaction dropped, they would still be missing.
            return Ok(self.write_existing(page, true)?.expect("waiting ends with the latch"));
        }
        self.pool.write_new(&self.file_of(page)?.pool_file, page.page)
    }

    /// Brings pages into the pool that are not there, in long batches of requests. Those that cannot be read are left out: who
    /// needs one will meet its error.
    pub fn prefetch(&self, pages: &[PageId]) -> Result<(), StorageError> {
        // Pages being loaded keep their frames from everybody.
        let batch_max = (self.pool.frame_count() / PREFETCH_SHARE).max(1);
        for file in self.files() {
            let mut loading = Vec::new();
            for page in pages.iter().filter(|page| page.file == file.number && page.page < file.pages()) {
                if !file.pool_file.is_present(page.page)
                    && let Some(one) = self.pool.begin_load(&file.pool_file, page.page)?
                {
                    loading.push(one);
                }
                if loading.len() == batch_max {
                    self.load_batch(file, std::mem::take(&mut loading));
                }
            }
            self.load_batch(file, loading);
        }
        Ok(())
    }

    /// A mark of the absence of a page that may be read beside the pool; `None` if the pool has it, or the log owes it
    /// changes.
    pub(crate) fn absence(&self, page: PageId) -> Option<u64> {
        let file = self.file_of(page).ok()?;
        file.pool_file.absence(page.page).filter(|_| !self.pending.holds(page))
    }

    fn load_batch(&self, file: &DataFile, mut loading: Vec<Loading<'_>>) {
        let mut requests: Vec<_> = loading
            .iter_mut()
            .map(|one| ReadRequest { offset: u64::from(one.page()) * PAGE_BYTES as u64, buffer: one.bytes().as_mut_slice() })
            .collect();
        if requests.is_empty() || file.device.read(&mut requests).is_err() {
            return;
        }
        page_reads::fetched_ahead(loading.len());
        for mut one in loading {
            let page = PageId { file: file.number, page: one.page() };
            if let Ok(loaded) = self.admit_ahead(page, one.bytes()) {
                one.install(loaded, AccessHint::Once, false);
            }
        }
    }

    fn load(&self, file: &DataFile, page: PageId, bytes: &mut PageBytes) -> Result<Loaded, StorageError> {
        let offset = u64::from(page.page) * PAGE_BYTES as u64;
        page_reads::fetched();
        if let Err(error) = file.device.read(&mut [ReadRequest { offset, buffer: bytes.as_mut_slice() }]) {
            let error = error.into();
            self.suspect.failed(page, &error, self.env().clock.utc_ns());
            return Err(error);
        }
        self.admit(page, bytes)
    }
}
