//! The check of a database's structures: every page, tree, value and map, every finding, not the first.
//!
//! ```text
//!   units tree ──> each tree: pages by descent, order, separators, siblings, versions, large parts ──> reached pages
//!   maps (IAM, PFS, GAM) <── compared with ──> reached pages and owners of extents
//! ```
//! What is checked: boot page, file headers and map pages; P1 to P9 of every reached page (`page::verify`) and its checksum when it is read; header facts against
//! the tree; keys of a level rising over page ends and within the separators above; siblings pointing at each other; every
//! version that some view may need readable; every large part whole; each allocated page reached exactly once and each
//! reached page allocated; each extent owned once and marked taken.
//!
//! Invariants: 1. nothing found stops the check (`Findings::add`). 2. The walk is bounded: levels fall from parent to
//! child, so a circle of pages ends.
//! Latches: one page at a time, shared. The cleaner rests meanwhile: what it merges and gives back is half here and half there. It
//! expects that nobody else writes: with writers it may report what is only on its way. Agreement of indexes with their table is the caller's, who knows types: [`EntrySum`] is for that.

mod files;
mod maps;
mod tree;

use crate::database::Database;
use crate::error::StorageError;
use crate::hash::key_hash;
use crate::ids::{PageId, TreeId};
use crate::page::{PageType, Slotted, header};
use crate::units::{TreeInfo, UnitKind};
use crate::versions::commit_table::Fate;
use crate::versions::version::decode_record;
use std::collections::BTreeMap;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// The page cannot be read: device error or checksum.
    Unreadable,
    /// The page breaks one of P1 to P10.
    Page,
    /// A packed row cannot be made whole.
    Row,
    /// The page is not what its place in the tree asks for: type, tree, object, level.
    Header,
    /// A key is below the separator above.
    LowKey,
    /// A key is not below the next separator above.
    HighKey,
    /// The page before is not the one that the parent has before this.
    Previous,
    /// The page after is not the one that the parent has after this.
    Next,
    /// A child reference is none.
    Child,
    /// A version that may be needed is not where its pointer says.
    Version,
    /// A large part is not whole.
    LargePart,
    /// A page is reached twice.
    Shared,
    /// A page is allocated and nothing leads to it.
    Unreached,
    /// A page is in use and not allocated.
    Unallocated,
    /// An extent is owned twice, or owned and marked free.
    ExtentTwice,
    /// An extent is taken and not owned.
    ExtentLost,
    /// A map page cannot be read: what it maps is not checked.
    Map,
    /// A map page is not what its place in the file asks for.
    MapHeader,
    /// The boot page or a file header is not what the open database has.
    File,
    /// A row of the units tree is none.
    Unit,
}

impl FindingKind {
    /// Whether it is an error of allocation rather than of content.
    pub const fn is_allocation(self) -> bool {
        matches!(self, Self::Unreached | Self::Unallocated | Self::ExtentTwice | Self::ExtentLost | Self::Map | Self::MapHeader)
    }
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The tree, if it is of one.
    pub tree: Option<TreeId>,
    /// The page.
    pub page: PageId,
    /// The slot, if it is of one.
    pub slot: Option<u16>,
    /// The page above, where there is one.
    pub parent: PageId,
    /// The page beside that it is about: the one before it, or the one after for [`FindingKind::Next`].
    pub beside: PageId,
    /// What was expected and found.
    pub detail: String,
}

/// An order-independent sum over entries: equal sums of two sets of entries mean equal sets, but for one chance in 2^64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntrySum {
    /// Entries.
    pub count: u64,
    sum: u64,
    xor: u64,
}

impl EntrySum {
    /// Adds an entry.
    pub fn add(&mut self, entry: &[u8]) {
        let hash = key_hash(entry);
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash);
        self.xor ^= hash.rotate_left(32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.xor ^= other.xor;
    }
}

/// Pages of trees, values and versions, counted from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCounts {
    /// In use by the maps.
    pub allocated: u64,
    /// Led to by a tree, a row, a version or the list of loose parts.
    pub reached: u64,
}

/// What the units tree has.
#[derive(Default)]
struct Units {
    /// Those that exist, as whoever changed them last left them, whatever became of him.
    here: Vec<TreeInfo>,
    /// Dropped for good, or never there for good: the cleaner is giving their pages back, and what leads to a page tells nothing there any more.
    gone: Vec<TreeInfo>,
}

#[derive(Default)]
struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, kind: FindingKind, tree: Option<TreeId>, page: PageId, slot: Option<usize>, detail: impl Into<String>) {
        let slot = slot.map(|slot| u16::try_from(slot).unwrap_or(u16::MAX));
        self.list.push(Finding { kind, tree, page, slot, parent: PageId::NONE, beside: PageId::NONE, detail: detail.into() });
    }

    /// Says how the page of the last finding hangs in its tree.
    fn hangs(&mut self, parent: PageId, beside: PageId) {
        let last = self.list.last_mut().expect("a finding was just added");
        (last.parent, last.beside) = (parent, beside);
    }
}

/// Pages that lead somewhere, with what leads to them.
#[derive(Default)]
struct Reached {
    pages: BTreeMap<PageId, TreeId>,
}

impl Reached {
    fn add(&mut self, page: PageId, tree: TreeId, findings: &mut Findings) {
        if let Some(other) = self.pages.insert(page, tree) {
            findings.add(FindingKind::Shared, Some(tree), page, None, format!("reached before, in tree {}", other.0));
        }
    }
}

impl Database {
    /// Checks every structure of the database and returns all that is wrong, in order of page.
    pub fn check(&self) -> Result<Vec<Finding>, StorageError> {
        let _no_tidying = self.cleaner.pause();
        let mut findings = Findings::default();
        let mut reached = Reached::default();
        let units = self.reach(&mut reached, &mut findings)?;
        maps::check(self, &units, &reached, &mut findings);
        files::check(self, &mut findings);
        findings.list.sort_by(|a, b| (a.page, a).cmp(&(b.page, b)));
        Ok(findings.list)
    }

    /// Goes from the units tree to everything that something leads to.
    fn reach(&self, reached: &mut Reached, findings: &mut Findings) -> Result<Units, StorageError> {
        let units = self.check_units(findings)?;
        for info in units.here.iter().filter(|info| info.kind == UnitKind::Tree) {
            tree::check(self, info, reached, findings);
        }
        for info in units.here.iter().filter(|info| info.kind == UnitKind::Versions) {
            self.check_segment(info, &units.here, reached, findings);
        }
        self.check_loose(&units.here, reached, findings);
        Ok(units)
    }

    /// How many pages the maps say are in use by trees, values and versions, and how many something leads to.
    pub fn page_counts(&self) -> Result<PageCounts, StorageError> {
        let _no_tidying = self.cleaner.pause();
        let mut findings = Findings::default();
        let mut reached = Reached::default();
        let units = self.reach(&mut reached, &mut findings)?;
        let mut allocated = 0;
        for info in &units.here {
            for unit in [Some(info.unit), info.large_unit()].into_iter().flatten() {
                allocated += crate::units::page_count(&self.store, unit)?;
            }
        }
        Ok(PageCounts { allocated, reached: reached.pages.len() as u64 })
    }

    /// Checks one tree's pages, order, versions and large parts; its maps are [`Self::check`]'s.
    pub fn check_tree(&self, tree: TreeId) -> Result<Vec<Finding>, StorageError> {
        let _no_tidying = self.cleaner.pause();
        let info = self.tree(tree, 0)?;
        let mut findings = Findings::default();
        tree::check(self, &info, &mut Reached::default(), &mut findings);
        Ok(findings.list)
    }

    /// Checks whose extents and pages are whose, and the files' own pages; what leads to a page is followed silently.
    pub fn check_allocation(&self) -> Result<Vec<Finding>, StorageError> {
        let _no_tidying = self.cleaner.pause();
        let mut findings = Findings::default();
        let mut reached = Reached::default();
        let units = self.reach(&mut reached, &mut Findings::default())?;
        maps::check(self, &units, &reached, &mut findings);
        files::check(self, &mut findings);
        findings.list.sort_by(|a, b| (a.page, a).cmp(&(b.page, b)));
        Ok(findings.list)
    }

    /// Where the row with this key lies now.
    pub fn place_of(&self, tree: TreeId, key: &[u8]) -> Result<Option<(PageId, usize)>, StorageError> {
        let info = self.tree(tree, 0)?;
        let page = self.system_tree(&info).leaf_for_read(crate::btree::Seek::Key(key), &mut |_, _| {})?;
        Ok(Slotted(&page).search(key).ok().map(|slot| (header::page_id(&page), slot)))
    }

    /// Pages allocated to the rows of a tree: parts of large values have a unit of their own.
    pub fn tree_page_count(&self, tree: TreeId) -> Result<u64, StorageError> {
        let info = self.tree(tree, 0)?;
        crate::units::page_count(&self.store, info.unit)
    }

    fn check_units(&self, findings: &mut Findings) -> Result<Units, StorageError> {
        let mut units = Units::default();
        for entry in crate::cleaner::entries_by_fate(self, self.units())? {
            match TreeInfo::decode(&entry.key, &entry.row) {
                // Dropped for good, or made by a transaction that was rolled back: its pages are given back when there is log
                // for that, and until then not all of them need hang in it.
                Ok(info) if entry.ghost && entry.fate == Fate::Committed => units.gone.push(info),
                Ok(info) if !entry.ghost && entry.is_first && entry.fate == Fate::Aborted => units.gone.push(info),
                Ok(info) => units.here.push(info),
                Err(error) => findings.add(FindingKind::Unit, Some(Self::UNITS_TREE), PageId::NONE, None, error.to_string()),
            }
        }
        Ok(units)
    }

    /// Loose parts of a tree that is gone went with it.
    fn check_loose(&self, units: &[TreeInfo], reached: &mut Reached, findings: &mut Findings) {
        for (root, tree) in self.store.loose.all() {
            if units.iter().all(|unit| unit.id != tree) {
                continue;
            }
            let mut pages = Vec::new();
            match crate::large::loose_pages(&self.store, tree, root, &mut |page| pages.push(page)) {
                Ok(()) => pages.into_iter().for_each(|page| reached.add(page, tree, findings)),
                Err(error) => findings.add(FindingKind::LargePart, Some(tree), root, None, error.to_string()),
            }
        }
    }

    fn check_segment(&self, info: &TreeInfo, units: &[TreeInfo], reached: &mut Reached, findings: &mut Findings) {
        // Maps that cannot be read are told where the maps are checked.
        for page in crate::units::pages_of(&self.store, info.unit).unwrap_or_default() {
            reached.add(page, info.id, findings);
            let copy = match self.store.read(page) {
                Ok(copy) => *copy,
                Err(error) => {
                    findings.add(FindingKind::Unreadable, Some(info.id), page, None, error.to_string());
                    continue;
                }
            };
            if header::page_type(&copy) != Some(PageType::Version) || header::tree(&copy) != info.id {
                findings.add(FindingKind::Header, Some(info.id), page, None, "not a page of its version segment");
                continue;
            }
            for slot in 0..Slotted(&copy).len() {
                match decode_record(Slotted(&copy).bytes(slot)) {
                    Err(why) => findings.add(FindingKind::Version, Some(info.id), page, Some(slot), why),
                    Ok((key, version)) if !key.restored && units.iter().any(|unit| unit.id.0 == key.tree) => {
                        tree::reach_large(self, TreeId(key.tree), version.large, (page, slot), reached, findings);
                    }
                    Ok(_) => {}
                }
            }
        }
    }
}
