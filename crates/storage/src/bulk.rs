//! Bulk append: rows in key order become whole leaves, written in large requests and hung onto the tree's right end.
//!
//! ```text
//!   push ──> leaf in the making ──full──> batch of leaves in memory ──256──> one group: extents, links, separators
//!                                                                     before it: images logged, pages written past the pool
//! ```
//! Rows carry no tag: their pages have the transaction as creator. The tree is locked whole. A batch that is not complete
//! when the process ends never was: its pages are allocated in the group that makes them reachable.
//!
//! Invariants: 1. keys rise strictly (`push`). 2. The undo log says from which key on the tree is to be cut before the
//! first leaf is hung (`flush`). 3. Dropped without `finish`, everything appended is cut off again.
//! Cost: constant per row; a leaf is compressed once, checked once and written once.
//! Failure: `LogFull` and `FileFull` leave whole batches hung; the caller rolls back to its savepoint.

use crate::btree::{NewLeaf, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::locks::LockMode;
use crate::mini::Mini;
use crate::page::header::HEADER_BYTES;
use crate::page::slotted::SLOT_BYTES;
use crate::page::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageType, header, op};
use crate::space::layout::{EXTENT_PAGES, page_of};
use crate::spec::Row;
use crate::txn::{Savepoint, Txn};
use crate::units::TreeInfo;
use crate::versions::records::TxnRecord;
use std::cmp::Ordering;

/// Leaves of a batch: 2 MiB, long enough for a disk's full bandwidth, short enough to be nothing in memory.
const BATCH_LEAVES: usize = 256;
/// References to large parts after which a batch ends: each is named in its group, which a small log must take.
const BATCH_PARTS_BYTES: usize = 16 << 10;
const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
/// Log that cutting one batch off again takes: its separators, and a bit for each page.
const UNDO_BYTES: u64 = 8192;

/// The leaf in the making: rows are laid out when it is full and their common prefix is known.
#[derive(Default)]
struct LeafBuilder {
    bytes: Vec<u8>,
    /// Where each entry begins and its key ends: entries lie as key, large references, row.
    entries: Vec<EntryAt>,
    /// Bytes of the entries and slots with whole keys.
    whole_bytes: usize,
    prefix_bytes: usize,
}

struct EntryAt {
    key: usize,
    large: usize,
    row: usize,
    end: usize,
}

impl LeafBuilder {
    fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.entries[index].key..self.entries[index].large]
    }

    /// Adds a row; false if the leaf has no room for it.
    fn push(&mut self, key: &[u8], large: &[u8], row: &[u8]) -> bool {
        let mut prefix_bytes = key.len();
        if !self.entries.is_empty() {
            let first = &self.key(0)[..self.prefix_bytes];
            prefix_bytes = first.iter().zip(key).take_while(|(a, b)| a == b).count();
        }
        let encoded = Entry { large_bytes: large, ..Entry::plain(key, row) }.encoded_bytes() + SLOT_BYTES;
        let whole_bytes = self.whole_bytes + encoded;
        if whole_bytes - self.entries.len() * prefix_bytes > BODY_BYTES {
            return false;
        }
        let start = self.bytes.len();
        for part in [key, large, row] {
            self.bytes.extend_from_slice(part);
        }
        let large_at = start + key.len();
        self.entries.push(EntryAt { key: start, large: large_at, row: large_at + large.len(), end: self.bytes.len() });
        self.whole_bytes = whole_bytes;
        self.prefix_bytes = prefix_bytes;
        true
    }

    /// Adds the references to its rows' large parts.
    fn add_large(&self, parts: &mut Vec<u8>) {
        self.entries.iter().for_each(|at| parts.extend_from_slice(&self.bytes[at.large..at.row]));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.whole_bytes = 0;
        self.prefix_bytes = 0;
    }

    /// The page, whole but for its siblings.
    fn lay_out(&self, format: Format, id: PageId, page: &mut PageBytes) -> Result<(), StorageError> {
        let mut draw = |operation: &PageOp<'_>| {
            op::apply(page, id, operation).map_err(|error| StorageError::Bug(format!("leaf of a bulk append: {error:?}")))
        };
        draw(&PageOp::Format(format))?;
        let prefix = &self.key(0)[..self.prefix_bytes];
        draw(&PageOp::SetPrefix(prefix))?;
        let mut bytes = Vec::with_capacity(256);
        for (slot, at) in self.entries.iter().enumerate() {
            bytes.clear();
            let suffix = &self.bytes[at.key + self.prefix_bytes..at.large];
            let entry = Entry { large_bytes: &self.bytes[at.large..at.row], ..Entry::plain(suffix, &self.bytes[at.row..at.end]) };
            entry.encode(&mut bytes);
            draw(&PageOp::SlotInsert { slot: u16::try_from(slot).expect("slots are few"), bytes: &bytes })?;
        }
        Ok(())
    }
}

/// Fills a tree in key order beyond every key it has, whole leaves at a time.
pub struct BulkAppender<'t> {
    txn: &'t mut Txn,
    place: usize,
    tree: TreeId,
    me: TxnId,
    /// The transaction and its present command.
    writer: u64,
    start: Savepoint,
    /// What the tree had before.
    above: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    /// Last key of the leaf before the one in the making.
    leaf_before: Option<Vec<u8>>,
    leaf: LeafBuilder,
    pages: Vec<PageBytes>,
    /// References to the large parts of the rows on `pages`: loose until these are hung.
    parts: Vec<u8>,
    separators: Vec<Vec<u8>>,
    hung: bool,
    finished: bool,
}

impl Txn {
    /// An appender of rows in rising key order, beyond every key the tree has. Locks the whole tree.
    pub fn bulk_append(&mut self, tree: TreeId) -> Result<BulkAppender<'_>, StorageError> {
        let me = self.ensure_id()?;
        let place = self.open_tree(tree, LockMode::X)?;
        let writer = self.writer(me);
        let start = self.savepoint();
        let info = self.trees[place].info.clone();
        let above = self.database.system_tree(&info).last_key()?;
        // Leaves at the right end that have lost their rows may stand for keys above the rows to come.
        while self.database.system_tree(&info).cut_off_step(above.as_deref(), &mut Vec::new())? {}
        Ok(BulkAppender {
            txn: self,
            place,
            tree,
            me,
            writer,
            start,
            last: above.clone(),
            leaf_before: above.clone(),
            above,
            leaf: LeafBuilder::default(),
            pages: Vec::new(),
            parts: Vec::new(),
            separators: Vec::new(),
            hung: false,
            finished: false,
        })
    }
}

impl BulkAppender<'_> {
    /// The last key so far, the tree's own included: the next must be above.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// Appends a row; `key` must be above every key before it, `Duplicate` if it equals the last, `Bug` if below.
    pub fn push(&mut self, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        match self.last.as_deref().map(|last| key.cmp(last)) {
            Some(Ordering::Equal) => return Err(StorageError::Duplicate { tree: self.tree, key: key.to_vec() }),
            Some(Ordering::Less) => return Err(StorageError::Bug("keys of a bulk append do not rise".into())),
            _ => {}
        }
        crate::txn::check_lengths(key, row)?;
        let large = if row.large.is_empty() { Vec::new() } else { self.txn.write_large(self.place, row.large)? };
        if !self.leaf.push(key, &large, row.inline) {
            if let Err(error) = self.end_leaf() {
                self.txn.freed_large.push((self.tree, large));
                return Err(error);
            }
            assert!(self.leaf.push(key, &large, row.inline), "an empty leaf has room for any row");
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    fn format(&self) -> Format {
        let info = &self.txn.trees[self.place].info;
        Format {
            page_type: PageType::Leaf,
            tree: info.id,
            object_id: info.object_id,
            index_id: info.index_id,
            level: 0,
            creator: TxnId(self.writer),
        }
    }

    fn end_leaf(&mut self) -> Result<(), StorageError> {
        let mut page = [0; PAGE_BYTES];
        // The page gets its name when its batch gets its extents.
        self.leaf.lay_out(self.format(), PageId::NONE, &mut page)?;
        let first = self.leaf.key(0);
        let separator = match &self.leaf_before {
            Some(before) => crate::btree::separator_between(before, first).to_vec(),
            None => first.to_vec(),
        };
        self.pages.push(page);
        self.separators.push(separator);
        self.leaf_before.clone_from(&self.last);
        self.leaf.add_large(&mut self.parts);
        self.leaf.clear();
        if self.pages.len() == BATCH_LEAVES || self.parts.len() >= BATCH_PARTS_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the batch and hangs it onto the tree.
    fn flush(&mut self) -> Result<(), StorageError> {
        if self.pages.is_empty() {
            return Ok(());
        }
        let database = self.txn.database.clone();
        // A long append must not wait for the background to make room in the log.
        database.store.background_turn()?;
        self.txn.reserve.grow(&database, UNDO_BYTES)?;
        if !self.hung {
            self.txn.undo.appended(self.tree, self.above.as_deref());
            self.hung = true;
        }
        let known = &mut self.txn.trees[self.place];
        let tree = Tree { store: &database.store, info: &known.info, author: self.me, finishing: false };
        let mut mini = Mini::begin(&database.store, self.me);
        let ids = take_pages(&mut mini, &known.info, self.pages.len())?;
        let after = tree.begin_append(&mut mini)?;
        name_pages(&mut self.pages, &ids, after);
        write_runs(&database, &ids, &self.pages, self.me)?;
        let separators = std::mem::take(&mut self.separators);
        let leaves: Vec<NewLeaf> = ids.iter().zip(separators).map(|(page, separator)| NewLeaf { page: *page, separator }).collect();
        tree.hang_leaves(&mut mini, after, &leaves)?;
        mini.hold_parts(self.tree, &self.parts);
        if known.touch {
            mini.log_only(&TxnRecord::Touch(self.me, self.tree).encode());
        }
        mini.commit()?;
        known.touch = false;
        self.pages.clear();
        self.parts.clear();
        Ok(())
    }

    /// Completes the last leaf and the levels above; without it nothing of the append is kept.
    pub fn finish(mut self) -> Result<(), StorageError> {
        if !self.leaf.entries.is_empty() {
            self.end_leaf()?;
        }
        self.flush()?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for BulkAppender<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // A failure marks the transaction as one that can only end.
            let _ = self.txn.rollback_to(self.start);
            self.leaf.add_large(&mut self.parts);
            if !self.parts.is_empty() {
                self.txn.freed_large.push((self.tree, std::mem::take(&mut self.parts)));
            }
        }
    }
}

/// Takes pages of whole extents; what is left of the last extent is given back.
fn take_pages(mini: &mut Mini<'_>, info: &TreeInfo, count: usize) -> Result<Vec<PageId>, StorageError> {
    let mut ids = Vec::with_capacity(count + EXTENT_PAGES as usize);
    while ids.len() < count {
        let extents = (count - ids.len()).div_ceil(EXTENT_PAGES as usize);
        let run = mini.allocate_run(info.unit, u32::try_from(extents).expect("a batch is small"))?;
        let first = page_of(run.extent);
        ids.extend((first..first + run.count * EXTENT_PAGES).map(|page| PageId { file: run.file, page }));
    }
    for page in ids.drain(count..) {
        mini.free(info.unit, page)?;
    }
    Ok(ids)
}

fn name_pages(pages: &mut [PageBytes], ids: &[PageId], after: Option<PageId>) {
    for (index, page) in pages.iter_mut().enumerate() {
        header::set_page_id(page, ids[index]);
        let left = index.checked_sub(1).map_or(after.unwrap_or(PageId::NONE), |left| ids[left]);
        let right = ids.get(index + 1).copied().unwrap_or(PageId::NONE);
        header::set_left_file(page, left.file);
        header::set_left_page(page, left.page);
        header::set_right_file(page, right.file);
        header::set_right_page(page, right.page);
    }
}

/// Writes pages, run by run of ids that follow each other.
fn write_runs(database: &Database, ids: &[PageId], pages: &[PageBytes], me: TxnId) -> Result<(), StorageError> {
    let mut start = 0;
    while start < ids.len() {
        let follows = |at: &usize| ids[*at].file == ids[start].file && ids[*at].page as usize == ids[start].page as usize + at - start;
        let count = (start..ids.len()).take_while(follows).count();
        database.store.write_new_pages(ids[start], &pages[start..start + count], me)?;
        start += count;
    }
    Ok(())
}

/// Cuts off what was appended above a key.
pub(crate) fn undo(database: &Database, info: &TreeInfo, me: TxnId, above: Option<&[u8]>) -> Result<Vec<u8>, StorageError> {
    let tree = Tree { store: &database.store, info, author: me, finishing: true };
    let mut large = Vec::new();
    while tree.cut_off_step(above, &mut large)? {}
    Ok(large)
}
