//! One data file: its device, its place in the pool, its size and how it may grow.

use crate::page::PAGE_BYTES;
use crate::pool::PoolFile;
use crate::space::layout::{EXTENT_PAGES, FILE_PAGES_MAX};
use crate::spec::FileSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thawdb_device::BlockFile;

/// A data file of an open database.
pub struct DataFile {
    /// Its number, from 1.
    pub number: u16,
    /// Its filegroup.
    pub filegroup: u16,
    /// As CREATE DATABASE named it.
    pub spec: FileSpec,
    /// The file.
    pub device: Arc<dyn BlockFile>,
    pub(crate) pool_file: Arc<PoolFile>,
    pages: AtomicU32,
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
        Self { number, filegroup, spec, device, pool_file, pages: AtomicU32::new(pages) }
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
        if self.spec.growth_bytes == 0 {
            return None;
        }
        let now = self.pages();
        let limit = self.spec.size_bytes_max.map_or(FILE_PAGES_MAX, |max| {
            let whole = max / (PAGE_BYTES as u64 * u64::from(EXTENT_PAGES)) * u64::from(EXTENT_PAGES);
            u32::try_from(whole).unwrap_or(FILE_PAGES_MAX).min(FILE_PAGES_MAX)
        });
        let wanted = u64::from(now) + u64::from(extents_of(self.spec.growth_bytes)) * u64::from(EXTENT_PAGES);
        let grown = u32::try_from(wanted).unwrap_or(FILE_PAGES_MAX).min(limit);
        (grown > now).then_some(grown)
    }
}
