//! Allocation units and what they belong to: trees, their large values, and segments of the version store.
//!
//! ```text
//!   boot page ──> units tree:  tree id (8 bytes, big-endian) -> version u8 | kind u8 | filegroup u16 | object u32 | index u32
//!                                                              | root page 6 | first IAM page 6 | large values' first IAM page 6
//! ```
//! The units tree is itself a tree; its rows are versioned, so that a tree made or dropped by a transaction comes and
//! goes with it. Only the large values' unit is filled in later, in place: it is made when a tree first needs it.
//!
//! Invariants: 1. a root page stays where it is for the life of its tree. 2. An id names one tree for ever.
//! Failure: a row that does not decode is `Damage`.

use crate::error::StorageError;
use crate::ids::{PageId, TreeId};
use crate::mini::used_pages;
use crate::page::{PageType, header};
use crate::space::layout::{self, EXTENT_PAGES, INTERVAL_EXTENTS};
use crate::space::{Unit, map_bits};
use crate::store::Store;
use crate::store::boot::IamFacts;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a row of the units tree.
pub(crate) const UNIT_ROW_BYTES: usize = 30;
/// Where the large values' unit lies in the row.
pub(crate) const LARGE_UNIT_AT: usize = 24;
const VERSION: u8 = 1;

/// What a unit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// A tree.
    Tree,
    /// A segment of the version store: it has no root.
    Versions,
}

/// A tree as all who use it share it.
#[derive(Debug)]
pub(crate) struct TreeInfo {
    pub(crate) id: TreeId,
    pub(crate) kind: UnitKind,
    pub(crate) root: PageId,
    pub(crate) unit: Unit,
    pub(crate) filegroup: u16,
    pub(crate) object_id: u32,
    pub(crate) index_id: u32,
    /// Its rows are in the compact form, and a leaf that is full is packed before it is split.
    pub(crate) packs_leaves: bool,
    /// First IAM page of the large values' unit as a number, 0 while there is none.
    large: AtomicU64,
    /// The transaction that has dropped it and not ended yet, 0 if none.
    dropped_by: AtomicU64,
}

fn page_bytes(page: PageId) -> [u8; 6] {
    let mut bytes = [0; 6];
    bytes[..2].copy_from_slice(&page.file.to_le_bytes());
    bytes[2..].copy_from_slice(&page.page.to_le_bytes());
    bytes
}

fn page_at(bytes: &[u8], at: usize) -> PageId {
    PageId {
        file: u16::from_le_bytes([bytes[at], bytes[at + 1]]),
        page: u32::from_le_bytes([bytes[at + 2], bytes[at + 3], bytes[at + 4], bytes[at + 5]]),
    }
}

fn number(page: PageId) -> u64 {
    (u64::from(page.file) << 32) | u64::from(page.page)
}

/// The key of a tree's row.
pub(crate) fn unit_key(tree: TreeId) -> [u8; 8] {
    tree.0.to_be_bytes()
}

impl TreeInfo {
    pub(crate) fn new(id: TreeId, kind: UnitKind, root: PageId, unit: Unit, filegroup: u16, object_id: u32, index_id: u32) -> Self {
        Self {
            id,
            kind,
            root,
            unit,
            filegroup,
            object_id,
            index_id,
            packs_leaves: false,
            large: AtomicU64::new(0),
            dropped_by: AtomicU64::new(0),
        }
    }

    /// The same with leaves that are packed, or not.
    pub(crate) fn packing(self, packs_leaves: bool) -> Self {
        Self { packs_leaves, ..self }
    }

    /// The units tree itself, by what the boot page has of it: root and unit.
    pub(crate) fn units(id: TreeId, places: &[u8; 12]) -> Self {
        Self::new(id, UnitKind::Tree, page_at(places, 0), Unit(page_at(places, 6)), 1, 2, 1)
    }

    /// The unit of its large values, once there is one.
    pub(crate) fn large_unit(&self) -> Option<Unit> {
        // Acquire: who sees the unit finds its IAM page made.
        match self.large.load(Ordering::Acquire) {
            0 => None,
            page => Some(Unit(PageId { file: (page >> 32) as u16, page: page as u32 })),
        }
    }

    pub(crate) fn set_large_unit(&self, unit: Unit) {
        self.large.store(number(unit.0), Ordering::Release);
    }

    /// Who has dropped it, 0 if nobody.
    pub(crate) fn dropped_by(&self) -> u64 {
        self.dropped_by.load(Ordering::Acquire)
    }

    pub(crate) fn set_dropped_by(&self, txn: u64) {
        self.dropped_by.store(txn, Ordering::Release);
    }

    pub(crate) fn encode(&self) -> [u8; UNIT_ROW_BYTES] {
        let mut row = [0; UNIT_ROW_BYTES];
        row[0] = VERSION;
        row[1] = match self.kind {
            UnitKind::Tree if self.packs_leaves => 2,
            UnitKind::Tree => 0,
            UnitKind::Versions => 1,
        };
        row[2..4].copy_from_slice(&self.filegroup.to_le_bytes());
        row[4..8].copy_from_slice(&self.object_id.to_le_bytes());
        row[8..12].copy_from_slice(&self.index_id.to_le_bytes());
        row[12..18].copy_from_slice(&page_bytes(self.root));
        row[18..24].copy_from_slice(&page_bytes(self.unit.0));
        let large = self.large_unit().map_or(PageId::NONE, |unit| unit.0);
        row[LARGE_UNIT_AT..].copy_from_slice(&page_bytes(large));
        row
    }

    pub(crate) fn decode(key: &[u8], row: &[u8]) -> Result<Self, StorageError> {
        let damage = |detail: String| StorageError::Damage { page: PageId::NONE, offset: 0, detail };
        let Ok(id) = <[u8; 8]>::try_from(key) else {
            return Err(damage(format!("key of {} bytes in the units tree", key.len())));
        };
        let (kind, packs_leaves) = match (row.len(), row.first(), row.get(1)) {
            (UNIT_ROW_BYTES, Some(&VERSION), Some(0)) => (UnitKind::Tree, false),
            (UNIT_ROW_BYTES, Some(&VERSION), Some(1)) => (UnitKind::Versions, false),
            (UNIT_ROW_BYTES, Some(&VERSION), Some(2)) => (UnitKind::Tree, true),
            _ => return Err(damage(format!("row of {} bytes in the units tree is none", row.len()))),
        };
        let word = |at: usize| u32::from_le_bytes(*row[at..].first_chunk().expect("the row's length was checked"));
        let id = TreeId(u64::from_be_bytes(id));
        let info = Self::new(id, kind, page_at(row, 12), Unit(page_at(row, 18)), u16::from_le_bytes([row[2], row[3]]), word(4), word(8));
        let info = info.packing(packs_leaves);
        if page_at(row, LARGE_UNIT_AT) != PageId::NONE {
            info.set_large_unit(Unit(page_at(row, LARGE_UNIT_AT)));
        }
        Ok(info)
    }
}

/// The pages of a unit that its maps say are in use, in order, IAM pages left out.
pub(crate) fn pages_of(store: &Store, unit: Unit) -> Result<Vec<PageId>, StorageError> {
    let mut pages = Vec::new();
    let mut next = unit.0;
    while next != PageId::NONE {
        let (mapped, after) = pages_of_map(store, next)?;
        pages.extend(mapped);
        next = after;
    }
    Ok(pages)
}

/// How many extents a unit has, by its maps alone.
pub(crate) fn extents_of(store: &Store, unit: Unit) -> Result<u64, StorageError> {
    let (mut extents, mut next) = (0, unit.0);
    while next != PageId::NONE {
        let iam = store.read(next)?;
        if header::page_type(&iam) != Some(PageType::Iam) {
            return Err(crate::page::checksum::damage(next, "no IAM page in a chain of them".into()));
        }
        extents += map_bits(&iam).iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        next = header::right(&iam);
    }
    Ok(extents)
}

/// A page of a tree's extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreePage {
    /// The page.
    pub page: PageId,
    /// The map (IAM) that has its extent; `None` for a map itself.
    pub map: Option<PageId>,
    /// Whether it is for parts of large values rather than for rows.
    pub is_large: bool,
    /// Whether it is allocated: an extent's other pages wait for their first use.
    pub is_used: bool,
}

/// The pages in use of the extents that one map has, and the next map of its chain.
pub(crate) fn pages_of_map(store: &Store, map: PageId) -> Result<(Vec<PageId>, PageId), StorageError> {
    let (pages, next) = mapped_pages(store, map)?;
    Ok((pages.into_iter().filter_map(|(page, is_used)| is_used.then_some(page)).collect(), next))
}

/// Every page of the extents that one map has, whether it is in use, and the next map of its chain.
pub(crate) fn mapped_pages(store: &Store, map: PageId) -> Result<(Vec<(PageId, bool)>, PageId), StorageError> {
    let mut pages = Vec::new();
    let next = each_extent(store, map, |first, used| {
        pages.extend((0..EXTENT_PAGES).map(|page| (PageId { page: first.page + page, ..first }, used & (1 << page) != 0)));
    })?;
    Ok((pages, next))
}

/// How many pages of a unit its maps say are in use, IAM pages left out.
pub(crate) fn page_count(store: &Store, unit: Unit) -> Result<u64, StorageError> {
    let mut count = 0;
    let mut next = unit.0;
    while next != PageId::NONE {
        next = each_extent(store, next, |_, used| count += u64::from(used.count_ones()))?;
    }
    Ok(count)
}

/// Shows the extents that one map has: the first page, and a bit for each page in use. Returns the next map of its chain.
fn each_extent(store: &Store, map: PageId, mut show: impl FnMut(PageId, u8)) -> Result<PageId, StorageError> {
    let iam = *store.read(map)?;
    if header::page_type(&iam) != Some(PageType::Iam) {
        return Err(crate::page::checksum::damage(map, "no IAM page in a chain of them".into()));
    }
    let facts = IamFacts::decode(&iam);
    let page = |page| PageId { file: facts.file, page };
    // A thousand extents have their bytes on one page.
    let mut bytes = None;
    for (word, bits) in (0..).zip(map_bits(&iam)) {
        let mut bits = bits;
        while bits != 0 {
            let first = layout::page_of(facts.interval * INTERVAL_EXTENTS + word * u64::BITS + bits.trailing_zeros());
            bits &= bits - 1;
            let (of, byte) = layout::pfs(first);
            let states = match &mut bytes {
                Some((known, states)) if *known == of => states,
                other => &mut other.insert((of, *store.read(page(of))?)).1,
            };
            show(page(first), used_pages(states, byte));
        }
    }
    Ok(header::right(&iam))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back() {
        let page = |page| PageId { file: 2, page };
        let info = TreeInfo::new(TreeId(0x1122), UnitKind::Versions, page(5), Unit(page(6)), 3, 77, 2);
        info.set_large_unit(Unit(page(0xFFFF_FFF0)));
        let row = info.encode();
        let back = TreeInfo::decode(&unit_key(info.id), &row).unwrap();
        assert_eq!((back.id, back.kind, back.root, back.unit), (info.id, info.kind, info.root, info.unit));
        assert_eq!((back.filegroup, back.object_id, back.index_id, back.large_unit()), (3, 77, 2, info.large_unit()));
        let tree = |packs_leaves| TreeInfo::new(info.id, UnitKind::Tree, page(5), Unit(page(6)), 3, 77, 2).packing(packs_leaves);
        for packs_leaves in [false, true] {
            let back = TreeInfo::decode(&unit_key(info.id), &tree(packs_leaves).encode()).unwrap();
            assert_eq!((back.kind, back.packs_leaves), (UnitKind::Tree, packs_leaves));
        }
        assert!(TreeInfo::decode(b"short", &row).is_err() && TreeInfo::decode(&unit_key(info.id), &row[1..]).is_err());
    }
}
