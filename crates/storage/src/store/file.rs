//! One data file: its device, its place in the pool, its size and how it may grow.

use crate::page::PAGE_BYTES;
use crate::pool::PoolFile;
use crate::space::layout::{EXTENT_PAGES, FILE_PAGES_MAX};
use crate::spec::{FileSpec, growth_step};
use observe::sync::{LockClass, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use thawdb_device::BlockFile;
use thawdb_observe as observe;

static FILE_SETTINGS: LockClass = LockClass::new("FILE_SETTINGS", 5);

/// A data file of an open database.
pub struct DataFile {
    /// Its number, from 1.
    pub number: u16,
    /// Its filegroup.
    pub filegroup: u16,
    /// The file.
    pub device: Arc<dyn BlockFile>,
    pub(crate) pool_file: Arc<PoolFile>,
    /// As CREATE or ALTER DATABASE named it.
    spec: RwLock<Arc<FileSpec>>,
    pages: AtomicU32,
    removed: AtomicBool,
}

/// Whole extents of `bytes`, within what a file can have.
pub(crate) fn extents_of(bytes: u64) -> u32 {
    let pages_max = u64::from(FILE_PAGES_MAX);
    let pages = bytes.div_ceil(PAGE_BYTES as u64).min(pages_max);
    u32::try_from(pages).expect("below the limit").next_multiple_of(EXTENT_PAGES) / EXTENT_PAGES
}

impl DataFile {
    pub(crate) fn new(
        number: u16,
        filegroup: u16,
        spec: FileSpec,
        device: Arc<dyn BlockFile>,
        pool_file: Arc<PoolFile>,
        pages: u32,
    ) -> Self {
        Self {
            number,
            filegroup,
            device,
            pool_file,
            spec: RwLock::new(&FILE_SETTINGS, Arc::new(spec)),
            pages: AtomicU32::new(pages),
            removed: AtomicBool::new(false),
        }
    }

    /// As CREATE or ALTER DATABASE named it.
    pub fn spec(&self) -> Arc<FileSpec> {
        self.spec.read().clone()
    }

    pub(crate) fn set_spec(&self, spec: FileSpec) {
        *self.spec.write() = Arc::new(spec);
    }

    /// Whether it has left the database.
    pub(crate) fn is_removed(&self) -> bool {
        // Acquire: who sees it removed also sees that nothing leads to its pages.
        self.removed.load(Ordering::Acquire)
    }

    pub(crate) fn set_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }

    /// Its length in pages.
    pub fn pages(&self) -> u32 {
        // Acquire: who sees the new length may use the maps that were formatted before it.
        self.pages.load(Ordering::Acquire)
    }

    pub(crate) fn set_pages(&self, pages: u32) {
        self.pages.store(pages, Ordering::Release);
    }

    /// The length after one growth, if it may grow.
    pub(crate) fn grown_pages(&self) -> Option<u32> {
        let spec = self.spec();
        let now = self.pages();
        let step = growth_step(spec.growth_bytes, u64::from(now) * PAGE_BYTES as u64);
        if step == 0 {
            return None;
        }
        let limit = spec.size_bytes_max.map_or(FILE_PAGES_MAX, |max| {
            let whole = max / (PAGE_BYTES as u64 * u64::from(EXTENT_PAGES)) * u64::from(EXTENT_PAGES);
            u32::try_from(whole).unwrap_or(FILE_PAGES_MAX).min(FILE_PAGES_MAX)
        });
        let wanted = u64::from(now) + u64::from(extents_of(step)) * u64::from(EXTENT_PAGES);
        let grown = u32::try_from(wanted).unwrap_or(FILE_PAGES_MAX).min(limit);
        (grown > now).then_some(grown)
    }
}
