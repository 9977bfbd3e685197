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
//! 4. From its first page on a part is either held by a row or version, or in the list of loose parts (`store::loose`),
//! and all its pages can be found from the first at every moment: a crash leaves no page behind, whatever it prevents.
//! Latches: from the first page down. Failure: a page that is no part of this tree at this depth is `Damage`; what a failed
//! write has made is freed by the cleaner.

use crate::btree::Seek;
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{LargeRef, PageId, TreeId, TxnId};
use crate::mini::{Mini, UnitSpec};
use crate::page::header::{self, HEADER_BYTES};
use crate::page::{Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted};
use crate::page_reads;
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
/// Pages of data written in one group of the log.
const GROUP_PAGES: usize = 8;
/// Pages of data freed in one group of the log.
const FREE_PAGES: usize = 64;

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
    page_reads::was_large();
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

/// Writes a part for a row of the tree that `author` is about to write. It is loose until the row holds it.
pub(crate) fn write(database: &Database, info: &TreeInfo, author: TxnId, part: &[u8]) -> Result<LargeRef, StorageError> {
    if part.len() > LENGTH_MAX {
        return Err(StorageError::TooLong { bytes: part.len(), bytes_max: LENGTH_MAX });
    }
    if part.is_empty() {
        return Ok(encode(PageId::NONE, 0, info.id));
    }
    let unit = ensure_unit(database, info)?;
    let mut writer = PartWriter { database, info, unit, author, spine: Vec::new() };
    match writer.write(part) {
        Ok(()) => Ok(encode(writer.spine[0].page, part.len(), info.id)),
        Err(error) => {
            if let Some(root) = writer.spine.first() {
                database.cleaner.free_large(vec![(info.id, encode(root.page, part.len(), info.id).0.to_vec())]);
            }
            Err(error)
        }
    }
}

/// Writes a part from its first page down: what is written of it can be found from there at every moment.
struct PartWriter<'a> {
    database: &'a Database,
    info: &'a TreeInfo,
    unit: Unit,
    author: TxnId,
    /// The pages being filled, the first one first.
    spine: Vec<Filling>,
}

#[derive(Clone, Copy)]
struct Filling {
    page: PageId,
    /// References, or 1 for a page of data.
    count: usize,
}

impl PartWriter<'_> {
    fn write(&mut self, part: &[u8]) -> Result<(), StorageError> {
        let depth = depth_of(part.len());
        let mut bodies = part.chunks(BODY_BYTES).peekable();
        while bodies.peek().is_some() {
            let mut mini = Mini::begin(&self.database.store, self.author);
            // Kept only if the group is: else the pages of it are none.
            let mut spine = self.spine.clone();
            for body in bodies.by_ref().take(GROUP_PAGES) {
                self.add_page(&mut mini, &mut spine, depth, body)?;
            }
            if self.spine.is_empty() {
                mini.loosen(self.info.id, &encode(spine[0].page, part.len(), self.info.id).0);
            }
            mini.commit()?;
            self.spine = spine;
        }
        Ok(())
    }

    /// Adds a page of data, and the pages above it that are missing.
    fn add_page(&self, mini: &mut Mini<'_>, spine: &mut Vec<Filling>, depth: u8, body: &[u8]) -> Result<(), StorageError> {
        let height = usize::from(depth);
        spine.truncate(height);
        while spine.len() > 1 && spine.last().is_some_and(|last| last.count == FAN_OUT) {
            spine.pop();
        }
        while spine.len() <= height {
            let level = depth - u8::try_from(spine.len()).expect("depths are small");
            let (tree, object_id, index_id) = (self.info.id, self.info.object_id, self.info.index_id);
            let format = Format { page_type: PageType::Large, tree, object_id, index_id, level, creator: TxnId(0) };
            let page = mini.allocate(self.unit, format)?;
            if level == 0 {
                mini.apply(page, PageOp::RawPatch { offset: place_of(0), bytes: body })?;
            }
            let page = mini.id(page);
            if let Some(parent) = spine.last_mut() {
                let bytes = encode(page, 0, tree);
                let latched = mini.latch(parent.page)?;
                mini.apply(latched, PageOp::RawPatch { offset: place_of(parent.count), bytes: &bytes.0[..REF_BYTES] })?;
                parent.count += 1;
            }
            spine.push(Filling { page, count: 0 });
        }
        Ok(())
    }
}

/// Where a reference lies in its page.
fn place_of(index: usize) -> u16 {
    u16::try_from(HEADER_BYTES + index * REF_BYTES).expect("within a page")
}

/// The references of a page of a part, whole or being written or freed.
fn children(page: &PageBytes) -> Vec<PageId> {
    if header::level(page) == 0 {
        return Vec::new();
    }
    page[HEADER_BYTES..].chunks_exact(REF_BYTES).take(FAN_OUT).map(page_ref).take_while(|child| *child != PageId::NONE).collect()
}

fn is_part_of(page: &PageBytes, tree: TreeId) -> bool {
    header::page_type(page) == Some(PageType::Large) && header::tree(page) == tree
}

/// Names every page of a loose part, whole or not.
pub(crate) fn loose_pages(store: &Store, tree: TreeId, root: PageId, visit: &mut dyn FnMut(PageId)) -> Result<(), StorageError> {
    visit(root);
    let page = store.read(root)?;
    if !is_part_of(&page, tree) {
        return Err(no_part(root, &page));
    }
    let (level, below) = (header::level(&page), children(&page));
    drop(page);
    for child in below {
        match level {
            1 => visit(child),
            _ => loose_pages(store, tree, child, visit)?,
        }
    }
    Ok(())
}

fn no_part(id: PageId, page: &PageBytes) -> StorageError {
    let detail = format!("expected a page of a large part, found {:?} of tree {}", header::page_type(page), header::tree(page).0);
    StorageError::Damage { page: id, offset: u64::from(id.page) * PAGE_BYTES as u64, detail }
}

/// A reference to a loose part of which only the first page is known: good for freeing it.
pub(crate) fn reference(root: PageId, tree: TreeId) -> Vec<u8> {
    encode(root, 1, tree).0.to_vec()
}

/// Frees a loose part, a group of its pages at a time: a crash leaves the rest of it loose.
pub(crate) fn free(database: &Database, info: &TreeInfo, at: LargeRef) -> Result<(), StorageError> {
    if at.page() == PageId::NONE {
        return Ok(());
    }
    let Some(unit) = info.large_unit() else {
        return Err(StorageError::Bug(format!("a large part of {:?}, which has no unit for them", info.id)));
    };
    while !free_step(&database.store, info.id, unit, at)? {}
    Ok(())
}

/// Frees the last pages of a part; true when the part is gone.
fn free_step(store: &Store, tree: TreeId, unit: Unit, at: LargeRef) -> Result<bool, StorageError> {
    let mut mini = Mini::begin(store, TxnId(0)).finishing();
    let mut node = mini.latch(at.page())?;
    loop {
        let bytes = mini.page(node);
        if !is_part_of(bytes, tree) {
            return Err(no_part(mini.id(node), bytes));
        }
        let (level, below) = (header::level(bytes), children(bytes));
        let Some(last) = below.last().copied() else {
            // Everything below is gone: only the first page comes here.
            mini.free(unit, at.page())?;
            mini.hold_parts(tree, &at.0);
            mini.commit()?;
            return Ok(true);
        };
        if level > 1 {
            let child = mini.latch(last)?;
            if !children(mini.page(child)).is_empty() {
                mini.unlatch(node);
                node = child;
                continue;
            }
        }
        // Pages of data, many at a time; of the pages above only those that name nothing any more.
        let count = if level == 1 { below.len().min(FREE_PAGES) } else { 1 };
        let first = below.len() - count;
        for page in &below[first..] {
            mini.free(unit, *page)?;
        }
        let zeros = vec![0; count * REF_BYTES];
        mini.apply(node, PageOp::RawPatch { offset: place_of(first), bytes: &zeros })?;
        mini.commit()?;
        return Ok(false);
    }
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
