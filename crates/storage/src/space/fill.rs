//! Bringing into memory, or making, what a reservation lacked: IAM chains, GAM bits, free pages, longer files.
//!
//! ```text
//! reserve -> Need -> satisfy -> reserve again
//! ```
//!
//! 1. Growth of files and IAM chains happens in mini-transactions of their own, committed before the reservation is tried
//!    again: an empty IAM page or a longer file harms nobody if the rest is taken back.
//! 2. A file's new length is seen by others only after its maps are formatted ([`Store::grow_file`]).
//!
//! Locks: `SPACE_CHAINS` (2) while an IAM chain grows, then `SPACE_GROWTH` (2) while a file does, because an IAM page may
//! need a longer file and never the other way round; under both only map pages are latched.

use super::layout::{self, EXTENT_PAGES, INTERVAL_PAGES, PFS_ALLOCATED, PFS_PAGES};
use super::{Change, Iam, Need, Run, SYSTEM_UNIT, Unit, map_bits};
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::mini::{Mini, UnitSpec, used_pages};
use crate::page::{Format, PageOp, PageType, header};
use crate::store::Store;
use crate::store::boot::{self, FileFacts, IamFacts};
use crate::store::file::DataFile;

/// Extents of a unit that one search looks at: bounded, so that an allocation in a large unit costs no scan of its maps.
const SEARCH_EXTENTS: usize = 64;
/// Longest IAM chain believed: one page for each interval of every file; a longer one is a circle.
const CHAIN_MAX: usize = crate::store::FILES_MAX * (layout::FILE_PAGES_MAX / INTERVAL_PAGES) as usize;
/// Map of the system's own pages: no tree.
const NO_TREE: TreeId = TreeId(0);

impl Store {
    pub(crate) fn satisfy(&self, unit: Unit, need: Need) -> Result<(), StorageError> {
        match need {
            Need::Unit => self.load_unit(unit),
            Need::Search => self.search_unit(unit),
            Need::Interval { file, interval } => {
                let page = self.read(PageId { file, page: layout::gam(interval) })?;
                let bits = map_bits(&page);
                drop(page);
                self.space.set_interval(file, interval, bits);
                Ok(())
            }
            Need::Iam { file, interval } => self.extend_chain(unit, file, interval),
            Need::Growth { filegroup } => self.grow(filegroup).map_err(|error| match error {
                StorageError::FileFull { filegroup, .. } => StorageError::FileFull { filegroup, tree: self.tree_of(unit) },
                other => other,
            }),
        }
    }

    /// Whose unit it is, for messages.
    fn tree_of(&self, unit: Unit) -> TreeId {
        if unit == SYSTEM_UNIT {
            return NO_TREE;
        }
        self.read(unit.0).map_or(NO_TREE, |page| header::tree(&page))
    }

    fn load_unit(&self, unit: Unit) -> Result<(), StorageError> {
        if unit == SYSTEM_UNIT {
            self.load_system_unit();
            return Ok(());
        }
        let (mut iams, mut filegroup) = (Vec::new(), 0);
        let mut next = unit.0;
        while next != PageId::NONE {
            let page = self.read(next)?;
            if header::page_type(&page) != Some(PageType::Iam) || iams.len() >= CHAIN_MAX {
                return Err(crate::page::checksum::damage(next, "no IAM page, or the chain of IAM pages is a circle".into()));
            }
            let facts = IamFacts::decode(&page);
            filegroup = facts.filegroup;
            iams.push(Iam { page: next, file: facts.file, interval: facts.interval });
            next = header::right(&page);
        }
        self.space.set_unit(unit, filegroup, iams, false);
        Ok(())
    }

    fn load_system_unit(&self) {
        let iams = self.files().filter(|file| file.filegroup == 1).flat_map(|file| {
            (0..file.pages().div_ceil(INTERVAL_PAGES)).map(|interval| Iam {
                page: PageId { file: file.number, page: layout::system_iam(interval) },
                file: file.number,
                interval,
            })
        });
        self.space.set_unit(SYSTEM_UNIT, 1, iams.collect(), false);
    }

    /// Looks through some extents of the unit for free pages, from the last IAM page back.
    fn search_unit(&self, unit: Unit) -> Result<(), StorageError> {
        let Some((iam, from, changes)) = self.space.search_at(unit) else {
            return Ok(());
        };
        let bits = map_bits(&*self.read(iam.page)?);
        let base = iam.interval * layout::INTERVAL_EXTENTS;
        let mut owned = (from..layout::INTERVAL_EXTENTS).filter(|bit| super::is_set(&bits, *bit));
        let extents: Vec<u32> = owned.by_ref().take(SEARCH_EXTENTS).collect();
        let next_bit = owned.next();
        let mut found = Vec::new();
        for bit in extents {
            let extent = base + bit;
            let (map, first) = layout::pfs(layout::page_of(extent));
            let pfs = self.read(PageId { file: iam.file, page: map })?;
            found.push((iam.file, extent, used_pages(&pfs, first)));
        }
        self.space.add_room(unit, changes, &found, next_bit);
        Ok(())
    }

    /// Adds an IAM page for an interval to the end of the unit's chain.
    fn extend_chain(&self, unit: Unit, file: u16, interval: u32) -> Result<(), StorageError> {
        let _extending = self.chains.lock();
        let (filegroup, mut iams) = self.space.iams(unit).ok_or_else(|| StorageError::Bug("a unit vanished".into()))?;
        if iams.iter().any(|iam| (iam.file, iam.interval) == (file, interval)) {
            return Ok(());
        }
        let last = iams.last().expect("a unit has an IAM page").page;
        let (tree, object_id, index_id) = {
            let page = self.read(last)?;
            (header::tree(&page), header::object_id(&page), header::index_id(&page))
        };
        let mut mini = Mini::begin(self, TxnId(0));
        let page = mini.make_iam(UnitSpec { tree, object_id, index_id, filegroup }, file, interval)?;
        let last = mini.latch(last)?;
        mini.apply(last, PageOp::SetRight(page))?;
        mini.commit()?;
        iams.push(Iam { page, file, interval });
        self.space.set_unit(unit, filegroup, iams, false);
        Ok(())
    }

    fn grow(&self, filegroup: u16) -> Result<(), StorageError> {
        let length = || self.files().filter(|f| f.filegroup == filegroup).map(|f| u64::from(f.pages())).sum::<u64>();
        let before = length();
        let _growing = self.growth.lock();
        if length() != before {
            return Ok(());
        }
        let candidates = self.files().filter(|file| file.filegroup == filegroup);
        let mut growing: Vec<_> = candidates.filter_map(|file| Some((file.pages(), file, file.grown_pages()?))).collect();
        growing.sort_by_key(|(pages, file, _)| (*pages, file.number));
        let mut outcome = Err(StorageError::FileFull { filegroup, tree: NO_TREE });
        for (_, file, pages) in growing {
            outcome = self.grow_file(file, pages);
            // Another file of the filegroup may lie on a disk that has room.
            if !matches!(outcome, Err(StorageError::FileFull { .. })) {
                break;
            }
        }
        outcome
    }

    /// Makes a file longer: room on the device, then maps, then the length in its header.
    pub(crate) fn grow_file(&self, file: &DataFile, pages: u32) -> Result<(), StorageError> {
        let before = file.pages();
        let length = file.device.set_len(u64::from(pages) * crate::page::PAGE_BYTES as u64);
        length.map_err(|error| match error.kind {
            thawdb_device::DeviceErrorKind::Full => StorageError::FileFull { filegroup: file.filegroup, tree: NO_TREE },
            _ => error.into(),
        })?;
        if self.log().is_some() {
            file.device.sync()?;
        }
        file.set_pages(pages);
        let result = self.format_maps(file, before, pages).and_then(|()| {
            let mut mini = Mini::begin(self, TxnId(0));
            let header = mini.latch(boot::file_header(file.number))?;
            let facts = FileFacts { pages, ..FileFacts::decode(mini.page(header)) };
            mini.apply(header, PageOp::RawPatch { offset: boot::FILE_FACTS, bytes: &facts.encode() })?;
            mini.commit()
        });
        if let Err(error) = result {
            file.set_pages(before);
            return Err(error);
        }
        self.space.set_file(file.number, file.filegroup, pages);
        self.load_system_unit();
        Ok(())
    }

    /// Formats the map pages that a file of `to` pages needs and one of `from` pages did not have.
    pub(crate) fn format_maps(&self, file: &DataFile, from: u32, to: u32) -> Result<(), StorageError> {
        let mut base = from.next_multiple_of(PFS_PAGES);
        while base < to {
            // One mini-transaction a PFS interval: few latches and a small group, whatever the growth.
            let mut mini = Mini::begin(self, TxnId(0));
            let mut make = |page: u32, page_type: PageType| {
                let handle = mini.make_page(PageId { file: file.number, page })?;
                let format = Format { page_type, tree: NO_TREE, object_id: 0, index_id: 0, level: 0, creator: TxnId(0) };
                mini.apply(handle, PageOp::Format(format)).map(|()| handle)
            };
            let pfs = make(base + 1, PageType::Pfs)?;
            let mut gam = None;
            if base.is_multiple_of(INTERVAL_PAGES) {
                let interval = base / INTERVAL_PAGES;
                gam = Some(make(layout::gam(interval), PageType::Gam)?);
                let iam = make(layout::system_iam(interval), PageType::Iam)?;
                make(layout::dcm(interval), PageType::Dcm)?;
                make(layout::ml(interval), PageType::Ml)?;
                let facts = IamFacts { file: file.number, filegroup: file.filegroup, interval };
                mini.apply(iam, PageOp::RawPatch { offset: boot::IAM_FACTS, bytes: &facts.encode() })?;
            }
            mini.apply(pfs, PageOp::MapBits { first: 0, count: EXTENT_PAGES, value: PFS_ALLOCATED, width: 8 })?;
            if let Some(gam) = gam {
                // The map extents of the whole interval are taken at once, those beyond the file's end too.
                for number in 0..INTERVAL_PAGES / PFS_PAGES {
                    let first = number * (PFS_PAGES / EXTENT_PAGES);
                    mini.apply(gam, PageOp::MapBits { first, count: 1, value: 1, width: 1 })?;
                }
            }
            mini.commit()?;
            base += PFS_PAGES;
        }
        Ok(())
    }

    /// Gives an extent without pages back to its file, if it still is without.
    pub(crate) fn return_extent(&self, unit: Unit, file: u16, extent: u32) {
        if let Some(run) = self.space.withdraw_empty(unit, file, extent) {
            let mut mini = Mini::begin(self, TxnId(0));
            mini.reserved.changes.push(Change::RunFreed { unit, run });
            // A failure leaves the extent with its unit, where its pages are used again.
            let _ = mini.commit();
        }
    }

    /// Frees up to `extents_max` extents of a unit that nobody uses any more, and at last the unit itself; true when it
    /// is gone. Called again after a crash it goes on where it was.
    pub fn free_unit_step(&self, unit: Unit, extents_max: u32) -> Result<bool, StorageError> {
        self.space.forget_unit(unit);
        self.load_unit(unit)?;
        let (_, iams) = self.space.iams(unit).ok_or_else(|| StorageError::Bug("just loaded".into()))?;
        let last = *iams.last().expect("a unit has an IAM page");
        let runs = owned_runs(&map_bits(&*self.read(last.page)?), &last, extents_max);
        let mut mini = Mini::begin(self, TxnId(0));
        if runs.is_empty() {
            mini.free(SYSTEM_UNIT, last.page)?;
            if let Some(before) = iams.len().checked_sub(2) {
                let before = mini.latch(iams[before].page)?;
                mini.apply(before, PageOp::SetRight(PageId::NONE))?;
            }
        }
        let gone = runs.is_empty() && iams.len() == 1;
        mini.reserved.changes.extend(runs.into_iter().map(|run| Change::RunFreed { unit, run }));
        mini.commit()?;
        self.space.forget_unit(unit);
        Ok(gone)
    }
}

fn owned_runs(bits: &[u64], iam: &Iam, extents_max: u32) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let base = iam.interval * layout::INTERVAL_EXTENTS;
    let owned = (0..layout::INTERVAL_EXTENTS).filter(|bit| super::is_set(bits, *bit));
    for bit in owned.take(extents_max as usize) {
        let extent = base + bit;
        match runs.last_mut() {
            Some(run) if run.extent + run.count == extent => run.count += 1,
            _ => runs.push(Run { file: iam.file, extent, count: 1, iam: iam.page }),
        }
    }
    runs
}
