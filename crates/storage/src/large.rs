//! Large parts of rows: bytes spread over pages of their own, found through a small tree of page references.
//!
//! ```text
//!   reference (16 bytes): file u16 | page u32 | length u32 | low 48 bits of the tree id
//!   depth 0: the page holds the bytes        depth d: the page holds references of up to 1,349 pages of depth d - 1
//!   page: header (level = depth) | 8,096 bytes of data or of references, 6 bytes each
//! ```
//! The depth follows from the length, so nothing else need be stored: one level reaches 10.9 MB, two 14.7 GB.
//!
//! Invariants: 1. a part's pages belong to it alone: freeing the reference frees them all. 2. A part is never changed: a
//! new value is a new part. 3. References live in entries and version records; who drops the last one frees the part.
//! Latches: one page at a time. Failure: a page that is no part of this tree at this depth is `Damage`; a failed write
//! gives its pages back.
//! Known: a crash between writing a part and the row that refers to it leaves its pages allocated to nobody; the check
//! reports them.

use crate::btree::Seek;
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{LargeRef, PageId, TreeId, TxnId};
use crate::mini::{Mini, UnitSpec};
use crate::page::header::{self, HEADER_BYTES};
use crate::page::{Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted};
use crate::space::Unit;
use crate::store::Store;
use crate::units::{LARGE_UNIT_AT, TreeInfo, unit_key};

/// Data bytes of a page.
const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
const REF_BYTES: usize = 6;
/// References of a page.
const FAN_OUT: usize = BODY_BYTES / REF_BYTES;
/// Greatest length, as of SQL Server's (max) types.
const LENGTH_MAX: usize = (1 << 31) - 1;
/// Pages written or freed in one group of the log.
const GROUP_PAGES: usize = 8;

fn encode(page: PageId, length: usize, tree: TreeId) -> LargeRef {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&page.file.to_le_bytes());
    bytes[2..6].copy_from_slice(&page.page.to_le_bytes());
    bytes[6..10].copy_from_slice(&u32::try_from(length).expect("lengths are limited").to_le_bytes());
    bytes[10..].copy_from_slice(&tree.0.to_le_bytes()[..6]);
    LargeRef(bytes)
}

struct Decoded {
    page: PageId,
    length: usize,
    tree_bytes: [u8; 6],
}

fn page_ref(bytes: &[u8]) -> PageId {
    PageId { file: u16::from_le_bytes([bytes[0], bytes[1]]), page: u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]) }
}

fn decode(at: LargeRef) -> Decoded {
    let length = u32::from_le_bytes(*at.0[6..].first_chunk().expect("sixteen bytes")) as usize;
    Decoded { page: page_ref(&at.0), length, tree_bytes: *at.0[10..].first_chunk().expect("sixteen bytes") }
}

fn depth_of(length: usize) -> u8 {
    let (mut depth, mut reach) = (0, BODY_BYTES);
    while reach < length {
        reach = reach.saturating_mul(FAN_OUT);
        depth += 1;
    }
    depth
}

/// The pages of the level below that `depth` needs for so many bytes.
fn child_count(length: usize, depth: u8) -> usize {
    let below = BODY_BYTES * FAN_OUT.pow(u32::from(depth) - 1);
    length.div_ceil(below)
}

/// Reads a part whole.
pub(crate) fn read(store: &Store, at: LargeRef) -> Result<Vec<u8>, StorageError> {
    let part = decode(at);
    let mut bytes = Vec::with_capacity(part.length);
    if part.length > 0 {
        read_from(store, &part, part.page, depth_of(part.length), part.length, &mut bytes)?;
    }
    Ok(bytes)
}

fn checked<'a>(page: &'a PageBytes, id: PageId, part: &Decoded, depth: u8) -> Result<&'a [u8], StorageError> {
    let good = header::page_type(page) == Some(PageType::Large)
        && header::level(page) == depth
        && header::tree(page).0.to_le_bytes()[..6] == part.tree_bytes;
    if good {
        return Ok(&page[HEADER_BYTES..]);
    }
    let detail = format!("expected a large value's page at depth {depth}, found {:?}", header::page_type(page));
    Err(StorageError::Damage { page: id, offset: u64::from(id.page) * PAGE_BYTES as u64, detail })
}

fn read_from(store: &Store, part: &Decoded, id: PageId, depth: u8, length: usize, out: &mut Vec<u8>) -> Result<(), StorageError> {
    let page = store.read(id)?;
    let body = checked(&page, id, part, depth)?;
    if depth == 0 {
        out.extend_from_slice(&body[..length]);
        return Ok(());
    }
    let children: Vec<PageId> = body.chunks_exact(REF_BYTES).take(child_count(length, depth)).map(page_ref).collect();
    drop(page);
    store.prefetch(&children)?;
    let below = BODY_BYTES * FAN_OUT.pow(u32::from(depth) - 1);
    let mut left = length;
    for child in children {
        read_from(store, part, child, depth - 1, left.min(below), out)?;
        left -= left.min(below);
    }
    Ok(())
}

/// Names every page of a part.
pub(crate) fn pages(store: &Store, at: LargeRef, visit: &mut dyn FnMut(PageId)) -> Result<(), StorageError> {
    let part = decode(at);
    if part.length > 0 { pages_from(store, &part, part.page, depth_of(part.length), part.length, visit) } else { Ok(()) }
}

fn pages_from(
    store: &Store,
    part: &Decoded,
    id: PageId,
    depth: u8,
    length: usize,
    visit: &mut dyn FnMut(PageId),
) -> Result<(), StorageError> {
    visit(id);
    if depth == 0 {
        return Ok(());
    }
    let children: Vec<PageId> = {
        let page = store.read(id)?;
        checked(&page, id, part, depth)?.chunks_exact(REF_BYTES).take(child_count(length, depth)).map(page_ref).collect()
    };
    let below = BODY_BYTES * FAN_OUT.pow(u32::from(depth) - 1);
    let mut left = length;
    for child in children {
        pages_from(store, part, child, depth - 1, left.min(below), visit)?;
        left -= left.min(below);
    }
    Ok(())
}

/// Writes a part for a row of the tree that `author` is about to write.
pub(crate) fn write(database: &Database, info: &TreeInfo, author: TxnId, part: &[u8]) -> Result<LargeRef, StorageError> {
    if part.len() > LENGTH_MAX {
        return Err(StorageError::TooLong { bytes: part.len(), bytes_max: LENGTH_MAX });
    }
    if part.is_empty() {
        return Ok(encode(PageId::NONE, 0, info.id));
    }
    let unit = ensure_unit(database, info)?;
    let mut made = Vec::new();
    match write_levels(database, info, unit, author, part, &mut made) {
        Ok(page) => Ok(encode(page, part.len(), info.id)),
        Err(error) => {
            // What cannot be given back now stays allocated to nobody; the first error is the one to tell.
            let _ = free_pages(database, unit, &made);
            Err(error)
        }
    }
}

fn write_levels(
    database: &Database,
    info: &TreeInfo,
    unit: Unit,
    author: TxnId,
    part: &[u8],
    made: &mut Vec<PageId>,
) -> Result<PageId, StorageError> {
    let mut level = write_pages(database, info, unit, author, 0, &mut part.chunks(BODY_BYTES), made)?;
    for depth in 1..=depth_of(part.len()) {
        let refs: Vec<u8> = level.iter().flat_map(|page| encode(*page, 0, info.id).0[..REF_BYTES].to_vec()).collect();
        level = write_pages(database, info, unit, author, depth, &mut refs.chunks(FAN_OUT * REF_BYTES), made)?;
    }
    assert!(level.len() == 1, "a part has one root");
    Ok(level[0])
}

fn write_pages(
    database: &Database,
    info: &TreeInfo,
    unit: Unit,
    author: TxnId,
    depth: u8,
    bodies: &mut dyn Iterator<Item = &[u8]>,
    made: &mut Vec<PageId>,
) -> Result<Vec<PageId>, StorageError> {
    let (object_id, index_id) = (info.object_id, info.index_id);
    let format = Format { page_type: PageType::Large, tree: info.id, object_id, index_id, level: depth, creator: TxnId(0) };
    let mut ids = Vec::new();
    let mut bodies = bodies.peekable();
    while bodies.peek().is_some() {
        let mut mini = Mini::begin(&database.store, author);
        let mut group = Vec::with_capacity(GROUP_PAGES);
        for body in bodies.by_ref().take(GROUP_PAGES) {
            let page = mini.allocate(unit, format)?;
            mini.apply(page, PageOp::RawPatch { offset: u16::try_from(HEADER_BYTES).expect("96"), bytes: body })?;
            group.push(mini.id(page));
        }
        mini.commit()?;
        made.extend_from_slice(&group);
        ids.append(&mut group);
    }
    Ok(ids)
}

/// Frees a part.
pub(crate) fn free(database: &Database, info: &TreeInfo, at: LargeRef) -> Result<(), StorageError> {
    if decode(at).length == 0 {
        return Ok(());
    }
    let Some(unit) = info.large_unit() else {
        return Err(StorageError::Bug(format!("a large part of {:?}, which has no unit for them", info.id)));
    };
    let mut all = Vec::new();
    pages(&database.store, at, &mut |page| all.push(page))?;
    // Children first: what is left after a crash between two groups is still reachable from the root.
    all.reverse();
    free_pages(database, unit, &all)
}

fn free_pages(database: &Database, unit: Unit, pages: &[PageId]) -> Result<(), StorageError> {
    for group in pages.chunks(GROUP_PAGES) {
        let mut mini = Mini::begin(&database.store, TxnId(0)).finishing();
        for page in group {
            mini.free(unit, *page)?;
        }
        mini.commit()?;
    }
    Ok(())
}

/// The unit of the tree's large parts, made now if there is none.
fn ensure_unit(database: &Database, info: &TreeInfo) -> Result<Unit, StorageError> {
    if let Some(unit) = info.large_unit() {
        return Ok(unit);
    }
    let units = database.units().clone();
    let tree = database.system_tree(&units);
    let mut mini = Mini::begin(&database.store, TxnId(0));
    let key = unit_key(info.id);
    let leaf = tree.leaf_for_write(&mut mini, Seek::Key(&key))?;
    // Under the row's latch: two writers that find none must not make two.
    if let Some(unit) = info.large_unit() {
        return Ok(unit);
    }
    let view = Slotted(mini.page(leaf));
    let slot = view.search(&key).map_err(|_| StorageError::NotFound(format!("{:?}", info.id)))?;
    let entry = view.entry(slot);
    let at = u16::try_from(entry.encoded_bytes() - entry.payload.len() + LARGE_UNIT_AT).expect("an entry is shorter than a page");
    let spec = UnitSpec { tree: info.id, object_id: info.object_id, index_id: info.index_id, filegroup: info.filegroup };
    let unit = mini.create_unit(spec)?;
    let bytes = encode(unit.0, 0, info.id);
    mini.apply(leaf, PageOp::SlotPatch { slot: u16::try_from(slot).expect("slots are few"), at, bytes: &bytes.0[..REF_BYTES] })?;
    mini.commit()?;
    info.set_large_unit(unit);
    Ok(unit)
}
