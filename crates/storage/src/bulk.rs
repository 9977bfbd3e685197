//! Bulk append: rows in key order become whole leaves, written in large requests and hung onto the tree's right end.
//!
//! ```text
//!   push ──> leaf in the making ──full──> batch of leaves ──full──> logged, on its way to the device (a few at once)
//!                                                                      ──written──> one group: extents, links, separators
//! ```
//! Rows carry no tag: their pages have the transaction as creator. The tree is locked whole. A batch that is not hung
//! when the process ends never was: its pages are allocated in the group that makes them reachable.
//!
//! Invariants: 1. keys rise strictly (`push`). 2. The undo log says from which key on the tree is to be cut before the
//! first leaf is hung (`begin`). 3. Batches are hung in order, each after it is written (`land_oldest`). 4. Dropped
//! without `finish`, everything appended is cut off again ([`BulkAppender`]); a [`BulkAppend`] leaves that to its caller.
//! Under SIMPLE and BULK_LOGGED long batches are forced to the device before they are hung, and the log has their making
//! only ([`crate::store::bulk_pages`]).
//! Cost: constant per row; a leaf is laid out once, packed once and written once.
//! Failure: `LogFull` and `FileFull` leave whole batches hung; the caller rolls back to its savepoint.

use crate::btree::{NewLeaf, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::locks::LockMode;
use crate::mini::Mini;
use crate::page::header::HEADER_BYTES;
use crate::page::packing::PackedRows;
use crate::page::slotted::SLOT_BYTES;
use crate::page::whole::LeafMaker;
use crate::page::{Entry, Format, PAGE_BYTES, PageBytes, PageType, header};
use crate::space::Reserved;
use crate::space::layout::{EXTENT_PAGES, page_of};
use crate::spec::Row;
use crate::store::stream::Batch;
use crate::txn::{Savepoint, Txn};
use crate::units::TreeInfo;
use crate::versions::records::TxnRecord;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use thawdb_device::AlignedBuf;

/// Leaves of a batch: 2 MiB, long enough for a disk's full bandwidth, short enough to be nothing in memory.
const BATCH_LEAVES: usize = 256;
/// Batches on their way at once: one whose log is being flushed, one being written, and one done while they were.
const BATCHES_MAX: usize = 4;
/// References to large parts after which a batch ends: each is named in its group, which a small log must take.
const BATCH_PARTS_BYTES: usize = 16 << 10;
const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
/// A batch of fewer leaves is logged whatever the recovery model: a sync of its own costs more than its log.
const FORCED_LEAVES_MIN: usize = 32;
/// Log that cutting one batch off again takes: its separators, and a bit for each page.
const UNDO_BYTES: u64 = 8192;

/// The leaf in the making: rows are laid out when it is full and their common prefix is known.
#[derive(Default)]
struct LeafBuilder {
    /// Entries, one behind the other, as key, large references, row, in the first `used` bytes.
    bytes: Vec<u8>,
    used: usize,
    entries: Vec<EntryAt>,
    /// Bytes of the entries and slots with whole keys.
    whole_bytes: usize,
    prefix_bytes: usize,
    /// Of a tree that packs its leaves.
    packing: Option<PackedRows>,
}

#[derive(Clone, Copy)]
struct EntryAt {
    key: u32,
    large: u32,
    row: u32,
    end: u32,
}

/// Copies `from` to `into` at `at`. Short pieces are moved as two numbers that may overlap: a call of memcpy costs more.
#[inline]
fn put(into: &mut [u8], at: usize, from: &[u8]) {
    let into = &mut into[at..at + from.len()];
    if let (Some(first), Some(last), 8..=16) = (from.first_chunk::<8>(), from.last_chunk::<8>(), from.len()) {
        *into.first_chunk_mut().expect("as long as `from`") = *first;
        *into.last_chunk_mut().expect("as long as `from`") = *last;
    } else if let (Some(first), Some(last), 4..8) = (from.first_chunk::<4>(), from.last_chunk::<4>(), from.len()) {
        *into.first_chunk_mut().expect("as long as `from`") = *first;
        *into.last_chunk_mut().expect("as long as `from`") = *last;
    } else if from.len() < 4 {
        into.iter_mut().zip(from).for_each(|(to, byte)| *to = *byte);
    } else {
        into.copy_from_slice(from);
    }
}

/// Bytes that two keys have in common at their beginning, `most` at the most.
#[inline]
fn common_bytes(a: &[u8], b: &[u8], most: usize) -> usize {
    if let (Some(a), Some(b)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        let differ = u64::from_be_bytes(*a) ^ u64::from_be_bytes(*b);
        if differ != 0 {
            return most.min(differ.leading_zeros() as usize / 8);
        }
    }
    a.iter().zip(b).take(most).take_while(|(a, b)| a == b).count()
}

impl LeafBuilder {
    #[inline]
    fn key(&self, index: usize) -> &[u8] {
        let at = &self.entries[index];
        &self.bytes[at.key as usize..at.large as usize]
    }

    #[inline]
    fn last_key(&self) -> Option<&[u8]> {
        self.entries.last().map(|at| &self.bytes[at.key as usize..at.large as usize])
    }

    /// Adds a row; false if the leaf, filled up to `body_bytes`, has no room for it.
    #[inline]
    fn push(&mut self, key: &[u8], large: &[u8], row: &[u8], body_bytes: usize) -> bool {
        let prefix_bytes = if self.entries.is_empty() { key.len() } else { common_bytes(self.key(0), key, self.prefix_bytes) };
        let encoded = Entry { large_bytes: large, ..Entry::plain(key, row) }.encoded_bytes() + SLOT_BYTES;
        let whole_bytes = self.whole_bytes + encoded;
        let unpacked_bytes = whole_bytes - self.entries.len() * prefix_bytes;
        if unpacked_bytes > body_bytes && !self.entries.is_empty() && !self.fits_packed(unpacked_bytes, row, body_bytes) {
            return false;
        }
        let start = self.used;
        let (large_at, row_at) = (start + key.len(), start + key.len() + large.len());
        let end = row_at + row.len();
        // Sixteen bytes more, so that the last entry can be moved as such.
        if self.bytes.len() < end + 16 {
            self.bytes.resize((end + 16).max(2 * PAGE_BYTES).next_power_of_two(), 0);
        }
        put(&mut self.bytes, start, key);
        put(&mut self.bytes, large_at, large);
        put(&mut self.bytes, row_at, row);
        let narrow = |at: usize| u32::try_from(at).expect("a leaf's entries take kilobytes");
        self.entries.push(EntryAt { key: narrow(start), large: narrow(large_at), row: narrow(row_at), end: narrow(end) });
        self.used = end;
        self.whole_bytes = whole_bytes;
        self.prefix_bytes = prefix_bytes;
        true
    }

    /// Whether a leaf that is full unpacked has room for another row packed; then the row is packed.
    fn fits_packed(&mut self, unpacked_bytes: usize, row: &[u8], body_bytes: usize) -> bool {
        let Some(packing) = &mut self.packing else { return false };
        if !packing.was_tried() {
            let rows: Vec<&[u8]> = self.entries.iter().map(|at| &self.bytes[at.row as usize..at.end as usize]).collect();
            packing.train(&rows);
        }
        packing.push_if(row, |saved| unpacked_bytes - saved <= body_bytes)
    }

    /// Adds the references to its rows' large parts.
    fn add_large(&self, parts: &mut Vec<u8>) {
        self.entries.iter().for_each(|at| parts.extend_from_slice(&self.bytes[at.large as usize..at.row as usize]));
    }

    fn clear(&mut self) {
        self.used = 0;
        self.entries.clear();
        self.whole_bytes = 0;
        self.prefix_bytes = 0;
        if let Some(packing) = &mut self.packing {
            packing.clear();
        }
    }

    /// The page, whole but for its name and siblings.
    fn lay_out(&self, format: Format, page: &mut PageBytes) {
        let dictionary = self.packing.as_ref().map_or(&[][..], PackedRows::dictionary);
        let mut leaf = LeafMaker::new(page, PageId::NONE, format, &self.key(0)[..self.prefix_bytes], dictionary);
        let prefix_bytes = self.prefix_bytes;
        for (index, at) in self.entries.iter().enumerate() {
            if let Some(packed) = self.packing.as_ref().and_then(|packing| packing.row(index)) {
                let (key, large, row) = (at.key as usize + prefix_bytes, at.large as usize, at.row as usize);
                leaf.push_row(&self.bytes[key..large], &self.bytes[large..row], packed, true);
                continue;
            }
            let (key, large, row, end) = (at.key as usize + prefix_bytes, at.large as usize, at.row as usize, at.end as usize);
            if large == row && leaf.push_short(&self.bytes, key..large, end) {
                continue;
            }
            leaf.push(&self.bytes[key..large], &self.bytes[large..row], &self.bytes[row..end]);
        }
        leaf.finish();
    }
}

/// A batch on its way, and what hanging it takes.
struct Flight {
    batch: Batch,
    reserved: Reserved,
    after: Option<PageId>,
    leaves: Vec<NewLeaf>,
    /// References to the large parts of its rows: loose until it is hung.
    parts: Vec<u8>,
    /// The transaction it belongs to, and the tree's place there.
    me: TxnId,
    place: usize,
}

/// An append at work, between calls with its transaction. It must be finished; dropped or failed, its caller rolls back
/// to where it began.
pub struct BulkAppend {
    database: Arc<Database>,
    place: usize,
    mode: LockMode,
    tree: TreeId,
    me: TxnId,
    /// The transaction and its present command.
    writer: u64,
    /// What the tree had before.
    above: Option<Vec<u8>>,
    /// Last key of the leaf before the one in the making.
    leaf_before: Option<Vec<u8>>,
    leaf: LeafBuilder,
    leaf_body_bytes: usize,
    pages: AlignedBuf,
    spare: Vec<AlignedBuf>,
    separators: Vec<Vec<u8>>,
    parts: Vec<u8>,
    flights: VecDeque<Flight>,
    /// The page after which the next batch will hang, once the first has begun.
    after: Option<Option<PageId>>,
    hung: bool,
    forced: Forced,
    leaves_hung: u64,
    logged_bytes: u64,
}

/// Which batches are forced to the device and not logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forced {
    Never,
    /// Those long enough: the recovery model allows it.
    Long,
    Always,
}

/// Fills a tree in key order beyond every key it has, whole leaves at a time.
pub struct BulkAppender<'t> {
    txn: &'t mut Txn,
    append: BulkAppend,
    start: Savepoint,
    finished: bool,
}

impl Txn {
    /// An appender of rows in rising key order, beyond every key the tree has. Locks the whole tree.
    pub fn bulk_append(&mut self, tree: TreeId) -> Result<BulkAppender<'_>, StorageError> {
        let start = self.savepoint();
        let append = self.begin_bulk_append(tree)?;
        Ok(BulkAppender { txn: self, append, start, finished: false })
    }

    /// Removes every row above `key` (all, for `None`), at the cost of their leaves: what appends that did not commit have
    /// left at the end of a tree. The caller is the tree's only writer.
    pub fn cut_off_above(&mut self, tree: TreeId, key: Option<&[u8]>) -> Result<(), StorageError> {
        let me = self.ensure_id()?;
        let place = self.open_tree(tree, LockMode::IS)?;
        let info = self.trees[place].info.clone();
        let tree = Tree { store: &self.database.store, info: &info, author: me, finishing: false };
        let mut large = Vec::new();
        while tree.cut_off_step(key, &mut large)? {}
        if !large.is_empty() {
            self.freed_large.push((info.id, large));
        }
        Ok(())
    }

    /// The same without holding the transaction between rows.
    pub fn begin_bulk_append(&mut self, tree: TreeId) -> Result<BulkAppend, StorageError> {
        self.begin_append(tree, LockMode::X)
    }

    /// The same to a tree that nobody else knows yet: the table it will belong to goes on in use.
    pub fn begin_private_append(&mut self, tree: TreeId) -> Result<BulkAppend, StorageError> {
        self.begin_append(tree, LockMode::IS)
    }

    fn begin_append(&mut self, tree: TreeId, mode: LockMode) -> Result<BulkAppend, StorageError> {
        let me = self.ensure_id()?;
        let place = self.open_tree(tree, mode)?;
        let writer = self.writer(me);
        let info = self.trees[place].info.clone();
        let above = self.database.system_tree(&info).last_key()?;
        // Leaves at the right end that have lost their rows may stand for keys above the rows to come.
        while self.database.system_tree(&info).cut_off_step(above.as_deref(), &mut Vec::new())? {}
        Ok(BulkAppend {
            database: self.database.clone(),
            place,
            mode,
            tree,
            me,
            writer,
            leaf_before: above.clone(),
            above,
            leaf: LeafBuilder { packing: info.packs_leaves.then(PackedRows::default), ..LeafBuilder::default() },
            leaf_body_bytes: BODY_BYTES,
            pages: AlignedBuf::zeroed(0),
            spare: Vec::new(),
            separators: Vec::new(),
            parts: Vec::new(),
            flights: VecDeque::new(),
            after: None,
            hung: false,
            forced: if self.database.store.logs_bulk_work_by_extent() { Forced::Long } else { Forced::Never },
            leaves_hung: 0,
            logged_bytes: 0,
        })
    }
}

impl BulkAppender<'_> {
    /// The last key so far, the tree's own included: the next must be above.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.append.last_key()
    }

    /// Fills leaves to this share of a hundred (FILLFACTOR); 0 and 100 are whole.
    pub fn set_fill_percent(&mut self, percent: u8) {
        self.append.set_fill_percent(percent);
    }

    /// Appends a row; `key` must be above every key before it, `Duplicate` if it equals the last, `Bug` if below.
    #[inline]
    pub fn push(&mut self, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        self.append.push(self.txn, key, row)
    }

    /// Completes the last leaf and the levels above; without it nothing of the append is kept.
    pub fn finish(mut self) -> Result<(), StorageError> {
        self.append.flush_all(self.txn)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for BulkAppender<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.append.abandon();
            // A failure marks the transaction as one that can only end.
            let _ = self.txn.rollback_to(self.start);
        }
    }
}

impl BulkAppend {
    /// The last key so far, the tree's own included: the next must be above.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.leaf.last_key().or(self.leaf_before.as_deref())
    }

    /// Fills leaves to this share of a hundred (FILLFACTOR); 0 and 100 are whole.
    pub fn set_fill_percent(&mut self, percent: u8) {
        let percent = if percent == 0 { 100 } else { usize::from(percent.min(100)) };
        self.leaf_body_bytes = BODY_BYTES * percent / 100;
    }

    /// Leaves the rows out of the log: their pages are on the device before they are part of the tree, and a log backup
    /// does not have them. For what can be made again: sorted runs.
    pub fn force_pages(&mut self) {
        self.forced = Forced::Always;
    }

    /// The tree.
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// Leaves that are part of the tree.
    pub fn leaves_hung(&self) -> u64 {
        self.leaves_hung
    }

    /// Bytes of log that the leaves sent so far took.
    pub fn logged_bytes(&self) -> u64 {
        self.logged_bytes
    }

    /// Appends a row within `txn`, the transaction it was begun in; `key` must be above every key before it, `Duplicate`
    /// if it equals the last, `Bug` if below.
    #[inline]
    pub fn push(&mut self, txn: &mut Txn, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        match self.last_key().map(|last| compare(key, last)) {
            Some(Ordering::Equal) => return Err(StorageError::Duplicate { tree: self.tree, key: key.to_vec() }),
            Some(Ordering::Less) => return Err(StorageError::Bug("keys of a bulk append do not rise".into())),
            _ => {}
        }
        crate::txn::check_lengths(key, row)?;
        let large = if row.large.is_empty() { Vec::new() } else { txn.write_large(self.place, row.large)? };
        if !self.leaf.push(key, &large, row.inline, self.leaf_body_bytes) {
            if let Err(error) = self.end_leaf(txn) {
                self.parts.extend_from_slice(&large);
                return Err(error);
            }
            assert!(self.leaf.push(key, &large, row.inline, self.leaf_body_bytes), "an empty leaf has room for any row");
        }
        Ok(())
    }

    /// Goes on within another transaction, whose rows come behind those of the transaction before; that one has sent all
    /// it pushed, and lands it with [`Self::land_all`] before this one does.
    pub fn go_on_in(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        assert!(self.leaf.entries.is_empty() && self.separators.is_empty(), "a transaction sends its rows before another goes on");
        self.me = txn.ensure_id()?;
        self.place = txn.open_tree(self.tree, self.mode)?;
        self.writer = txn.writer(self.me);
        self.above = self.leaf_before.clone();
        self.hung = false;
        Ok(())
    }

    /// Makes everything that `txn` has sent part of the tree.
    pub fn land_all(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        let me = txn.ensure_id()?;
        while self.flights.front().is_some_and(|flight| flight.me == me) {
            self.land_oldest(txn)?;
        }
        Ok(())
    }

    fn format(&self, txn: &Txn) -> Format {
        let info = &txn.trees[self.place].info;
        Format {
            page_type: PageType::Leaf,
            tree: info.id,
            object_id: info.object_id,
            index_id: info.index_id,
            level: 0,
            creator: TxnId(self.writer),
        }
    }

    fn end_leaf(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        if self.pages.is_empty() {
            self.pages = self.spare.pop().unwrap_or_else(|| AlignedBuf::zeroed(BATCH_LEAVES * PAGE_BYTES));
        }
        let format = self.format(txn);
        // The page gets its name when its batch gets its extents.
        self.leaf.lay_out(format, page_at(&mut self.pages, self.separators.len()));
        let first = self.leaf.key(0);
        let separator = match &self.leaf_before {
            Some(before) => crate::btree::separator_between(before, first).to_vec(),
            None => first.to_vec(),
        };
        self.separators.push(separator);
        let before = self.leaf_before.get_or_insert_default();
        before.clear();
        before.extend_from_slice(self.leaf.last_key().expect("a leaf that ends has rows"));
        self.leaf.add_large(&mut self.parts);
        self.leaf.clear();
        if self.separators.len() == BATCH_LEAVES || self.parts.len() >= BATCH_PARTS_BYTES { self.start_batch(txn) } else { Ok(()) }
    }

    /// Sends the batch on its way.
    fn start_batch(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        let database = self.database.clone();
        // A long append must not wait for the background to make room in the log.
        database.store.keep_up()?;
        txn.reserve.grow(&database, UNDO_BYTES)?;
        // Those of a transaction before are for it to land.
        while self.flights.len() >= BATCHES_MAX && self.flights.front().is_some_and(|flight| flight.me == self.me) {
            self.land_oldest(txn)?;
        }
        let info = txn.trees[self.place].info.clone();
        let after = self.begin(txn, &info)?;
        let count = self.separators.len();
        let mut mini = Mini::begin(&database.store, self.me);
        let ids = take_pages(&mut mini, &info, count)?;
        let reserved = std::mem::take(&mut mini.reserved);
        drop(mini);
        let mut buffer = std::mem::replace(&mut self.pages, AlignedBuf::zeroed(0));
        name_pages(&mut buffer, &ids, after);
        let separators = std::mem::take(&mut self.separators);
        let leaves = ids.iter().zip(separators).map(|(page, separator)| NewLeaf { page: *page, separator }).collect();
        self.after = Some(ids.last().copied());
        let forced = match self.forced {
            Forced::Never => false,
            Forced::Long => count >= FORCED_LEAVES_MIN,
            Forced::Always => true,
        };
        match database.store.start_new_pages(ids, buffer, self.me, forced) {
            Ok(batch) => {
                self.logged_bytes += batch.logged_bytes;
                let parts = std::mem::take(&mut self.parts);
                self.flights.push_back(Flight { batch, reserved, after, leaves, parts, me: self.me, place: self.place });
                Ok(())
            }
            Err(error) => {
                self.give_back(reserved);
                Err(error)
            }
        }
    }

    /// The page after which this batch will hang. Before the first, a root that is a leaf with rows hands them down.
    fn begin(&mut self, txn: &mut Txn, info: &TreeInfo) -> Result<Option<PageId>, StorageError> {
        if !self.hung {
            txn.undo.appended(self.tree, self.above.as_deref());
            self.hung = true;
        }
        if let Some(after) = self.after {
            return Ok(after);
        }
        let database = self.database.clone();
        let tree = Tree { store: &database.store, info, author: self.me, finishing: false };
        let mut mini = Mini::begin(&database.store, self.me);
        let after = tree.begin_append(&mut mini)?;
        mini.commit()?;
        self.after = Some(after);
        Ok(after)
    }

    /// Waits until the oldest batch is written, and makes it part of the tree.
    fn land_oldest(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        let Some(flight) = self.flights.pop_front() else { return Ok(()) };
        let database = self.database.clone();
        match database.store.land(flight.batch) {
            Ok(buffer) => self.spare.push(buffer),
            Err(error) => {
                self.give_back(flight.reserved);
                self.parts.extend_from_slice(&flight.parts);
                return Err(error);
            }
        }
        let known = &mut txn.trees[flight.place];
        let tree = Tree { store: &database.store, info: &known.info, author: flight.me, finishing: false };
        let mut mini = Mini::begin(&database.store, flight.me);
        mini.reserved = flight.reserved;
        mini.hold_parts(self.tree, &flight.parts);
        let hung = tree.hang_leaves(&mut mini, flight.after, &flight.leaves).and_then(|()| {
            if known.touch {
                mini.log_only(&TxnRecord::Touch(flight.me, self.tree).encode());
            }
            mini.commit()
        });
        if let Err(error) = hung {
            self.parts.extend_from_slice(&flight.parts);
            return Err(error);
        }
        known.touch = false;
        self.leaves_hung += flight.leaves.len() as u64;
        Ok(())
    }

    /// Sends everything pushed so far on its way to the device, without waiting for it. Pushing may go on in a new leaf.
    pub fn send_all(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        if !self.leaf.entries.is_empty() {
            self.end_leaf(txn)?;
        }
        if !self.separators.is_empty() {
            self.start_batch(txn)?;
        }
        Ok(())
    }

    /// Makes everything pushed so far part of the tree. Pushing may go on after it, in a new leaf.
    pub fn flush_all(&mut self, txn: &mut Txn) -> Result<(), StorageError> {
        self.send_all(txn)?;
        while !self.flights.is_empty() {
            self.land_oldest(txn)?;
        }
        Ok(())
    }

    /// Completes the last leaf and the levels above.
    pub fn finish(mut self, txn: &mut Txn) -> Result<(), StorageError> {
        self.flush_all(txn)
    }

    fn give_back(&self, reserved: Reserved) {
        let mut mini = Mini::begin(&self.database.store, self.me);
        mini.reserved = reserved;
        drop(mini);
    }

    /// Waits for what is on its way and gives its pages up.
    fn abandon(&mut self) {
        while let Some(flight) = self.flights.pop_front() {
            // Written or not, nobody will reach the pages.
            let _ = self.database.store.land(flight.batch);
            self.give_back(flight.reserved);
            self.parts.extend_from_slice(&flight.parts);
        }
        self.leaf.add_large(&mut self.parts);
        self.leaf.clear();
        if !self.parts.is_empty() {
            // No row will ever name them.
            self.database.free_large_later(&mut vec![(self.tree, std::mem::take(&mut self.parts))]);
        }
    }
}

impl Drop for BulkAppend {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// Order of two keys; most differ in their first eight bytes, which compare as a number without a call.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some((a_first, a_rest)), Some((b_first, b_rest))) = (a.split_first_chunk::<8>(), b.split_first_chunk::<8>()) {
        return u64::from_be_bytes(*a_first).cmp(&u64::from_be_bytes(*b_first)).then_with(|| a_rest.cmp(b_rest));
    }
    a.cmp(b)
}

fn page_at(pages: &mut AlignedBuf, at: usize) -> &mut PageBytes {
    pages[at * PAGE_BYTES..].first_chunk_mut().expect("a batch has a place for each leaf")
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

fn name_pages(pages: &mut AlignedBuf, ids: &[PageId], after: Option<PageId>) {
    for (index, id) in ids.iter().enumerate() {
        let page = page_at(pages, index);
        header::set_page_id(page, *id);
        let left = index.checked_sub(1).map_or(after.unwrap_or(PageId::NONE), |left| ids[left]);
        let right = ids.get(index + 1).copied().unwrap_or(PageId::NONE);
        header::set_left_file(page, left.file);
        header::set_left_page(page, left.page);
        header::set_right_file(page, right.file);
        header::set_right_page(page, right.page);
    }
}

/// Cuts off what was appended above a key.
pub(crate) fn undo(database: &Database, info: &TreeInfo, me: TxnId, above: Option<&[u8]>) -> Result<Vec<u8>, StorageError> {
    let tree = Tree { store: &database.store, info, author: me, finishing: true };
    let mut large = Vec::new();
    while tree.cut_off_step(above, &mut large)? {}
    Ok(large)
}
