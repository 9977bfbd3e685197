//! Tidying: what commits, rollbacks and crashes leave behind goes when nobody needs it any more.
//!
//! ```text
//!   committed, below the horizon ──> leaves: tags and ghosts out, empty leaves unlinked
//!                                ──> dropped trees: pages freed, then their row's ghost removed
//!   long rollbacks               ──> rows given back by their undo entries, then forgotten
//!   aborted with rows left       ──> sweep of the trees they touched: rows given back; made trees freed; then forgotten
//!   version segments             ──> large parts of dead versions loosened, then the segment freed, then its row
//!   loose large parts            ──> freed, page by page from their ends
//! ```
//! Everything is found again after a crash except the list of leaves to tidy: tags of long committed transactions cost a
//! look at the commit table until the leaf is next cleaned or rewritten.
//!
//! Invariants: 1. nothing that a view, present or to come, may read is changed to its eyes (`Settler`, horizon). 2. An
//! aborted transaction is forgotten only when every tree it touched has been swept from end to end after its end.
//! 3. A unit is freed before the row that names it goes, and freeing an already freed one does nothing (`free_unit`).
//! Latches: one leaf at a time, or a path for unlinking. Failure: the piece of work is put back and tried again later.

mod deferred;
mod segment;
mod sweep;
mod thread;

pub(crate) use deferred::Deferred;
pub(crate) use segment::make_segment;
pub(crate) use thread::CleanerThread;

use crate::btree::{RowEdit, Tidied};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{LargeRef, PageId, TreeId, TxnId};
use crate::mini::Mini;
use crate::page::{PageBytes, PageType, Slotted, header};
use crate::units::{TreeInfo, unit_key};
use crate::versions::commit_table::Fate;
use crate::versions::version::Version;
use observe::sync::{LockClass, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use sweep::Sweep;
use thawdb_observe as observe;

static CLEANER: LockClass = LockClass::new("VERSION_CLEANER", 5);
static CLEANER_TURN: LockClass = LockClass::new("VERSION_CLEANER_TURN", 1);

/// Leaves tidied in a turn: a few milliseconds of work.
const TURN_LEAVES: usize = 64;

/// Rows that are undone in the time that others wait for a lock without noticing: about ten milliseconds.
const EAGER_ROWS_MAX: u64 = 1000;

struct Committed {
    txn: TxnId,
    leaves: Vec<(TreeId, PageId)>,
    dropped: Vec<Arc<TreeInfo>>,
}

#[derive(Default)]
struct Queue {
    committed: VecDeque<Committed>,
    large: Vec<(TreeId, Vec<u8>)>,
    deferred: VecDeque<Deferred>,
}

/// What waits to be tidied.
pub(crate) struct Cleaner {
    queue: Mutex<Queue>,
    /// Held for the length of a turn: one tidies at a time.
    turn: Mutex<Option<Sweep>>,
    /// Rows up to which a rollback is done by the transaction itself.
    eager_rows_max: AtomicU64,
}

impl Cleaner {
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::new(&CLEANER, Queue::default()),
            turn: Mutex::new(&CLEANER_TURN, None),
            eager_rows_max: AtomicU64::new(EAGER_ROWS_MAX),
        }
    }

    pub(crate) fn committed(&self, txn: TxnId, leaves: Vec<(TreeId, PageId)>, dropped: Vec<Arc<TreeInfo>>) {
        if !leaves.is_empty() || !dropped.is_empty() {
            self.queue.lock().committed.push_back(Committed { txn, leaves, dropped });
        }
    }

    pub(crate) fn free_large(&self, mut large: Vec<(TreeId, Vec<u8>)>) {
        if !large.is_empty() {
            self.queue.lock().large.append(&mut large);
        }
    }

    /// Keeps turns from being taken until what is returned is dropped.
    pub(crate) fn pause(&self) -> impl Drop + '_ {
        self.turn.lock()
    }

    /// Takes the oldest committed transaction that everybody sees.
    fn next_settled(&self, horizon: u64) -> Option<Committed> {
        let mut queue = self.queue.lock();
        let ready = queue.committed.front().is_some_and(|next| next.txn.0 < horizon);
        if ready { queue.committed.pop_front() } else { None }
    }
}

impl Database {
    /// Tidies until nothing is left that can be tidied now.
    pub fn clean(&self) -> Result<(), StorageError> {
        while self.clean_turn()? {}
        Ok(())
    }

    /// A bounded piece of tidying; true if there is more.
    pub fn clean_turn(&self) -> Result<bool, StorageError> {
        let mut sweep = self.cleaner.turn.lock();
        let horizon = self.commits.advance_horizon();
        let mut busy = self.free_large_parts()?;
        busy |= self.roll_back_turn()?;
        busy |= self.sweep_turn(&mut sweep)?;
        busy |= self.clean_settled(horizon)?;
        busy |= self.free_segments(horizon)?;
        Ok(busy)
    }

    fn clean_settled(&self, horizon: u64) -> Result<bool, StorageError> {
        let Some(mut settled) = self.cleaner.next_settled(horizon) else { return Ok(false) };
        let outcome = self.clean_one(&mut settled);
        if outcome.is_err() || !settled.leaves.is_empty() || !settled.dropped.is_empty() {
            self.cleaner.queue.lock().committed.push_front(settled);
        }
        outcome.map(|()| true)
    }

    fn clean_one(&self, settled: &mut Committed) -> Result<(), StorageError> {
        for _ in 0..TURN_LEAVES {
            let Some((tree, page)) = settled.leaves.last().copied() else { break };
            match self.tree(tree, 0) {
                Ok(info) => self.tidy_leaf(&info, page)?,
                // The tree is gone, and its leaves with it.
                Err(StorageError::NoTree(_)) => {}
                Err(error) => return Err(error),
            }
            settled.leaves.pop();
        }
        if let Some(info) = settled.dropped.last() {
            self.free_tree_pages(info)?;
            self.remove_unit_row(info.id)?;
            settled.dropped.pop();
        }
        Ok(())
    }

    /// Takes tags and ghosts that nobody needs out of a leaf; unlinks it if nothing is left, merges it if little is.
    pub(crate) fn tidy_leaf(&self, info: &TreeInfo, page: PageId) -> Result<(), StorageError> {
        let tree = self.system_tree(info);
        let mut freed = Vec::new();
        let settler = self.settler(info.id);
        let tidied = tree.tidy_leaf(page, &settler, &mut freed)?;
        if !freed.is_empty() {
            self.cleaner.free_large(vec![(info.id, freed)]);
        }
        match tidied {
            Tidied::Good => Ok(()),
            Tidied::Empty(key) => tree.unlink_empty_leaf(&key),
            Tidied::Sparse(key) => tree.merge_leaf(&key, &settler),
        }
    }

    fn remove_unit_row(&self, tree: TreeId) -> Result<(), StorageError> {
        let units = self.units().clone();
        let mut remover = segment::RowRemover;
        self.system_tree(&units).edit(&unit_key(tree), &mut RowEdit::default(), &self.settler(units.id), &mut remover)
    }

    fn free_large_parts(&self) -> Result<bool, StorageError> {
        let Some((tree, refs)) = self.cleaner.queue.lock().large.pop() else { return Ok(false) };
        let info = match self.tree(tree, 0) {
            Ok(info) => info,
            Err(StorageError::NoTree(_)) => {
                // The tree is gone, or will be, and its parts with it.
                let mut mini = Mini::begin(&self.store, TxnId(0)).finishing();
                mini.hold_parts(tree, &refs);
                mini.commit()?;
                return Ok(true);
            }
            Err(error) => {
                self.cleaner.free_large(vec![(tree, refs)]);
                return Err(error);
            }
        };
        for (index, part) in LargeRef::all(&refs).enumerate() {
            if let Err(error) = crate::large::free(self, &info, part) {
                // A damaged part stays in the list of loose parts, and keeps nobody from freeing the others.
                let kept = index + usize::from(matches!(error, StorageError::Damage { .. }));
                self.cleaner.free_large(vec![(tree, refs[kept * size_of::<LargeRef>()..].to_vec())]);
                return Err(error);
            }
        }
        Ok(true)
    }
}

/// Visits the leaves of a tree from left to right, each as it was at its moment.
pub(crate) fn each_leaf(
    database: &Database,
    info: &TreeInfo,
    from: Option<&[u8]>,
    visit: &mut dyn FnMut(&PageBytes) -> Result<bool, StorageError>,
) -> Result<(), StorageError> {
    use crate::btree::Seek;
    let tree = database.system_tree(info);
    let mut after: Option<Vec<u8>> = from.map(<[u8]>::to_vec);
    'descend: loop {
        let seek = after.as_deref().map_or(Seek::First, Seek::Key);
        let mut page = *tree.leaf_for_read(seek, &mut |_, _| {})?;
        loop {
            if !visit(&page)? {
                return Ok(());
            }
            let leaf = Slotted(&page);
            if !leaf.is_empty() {
                let mut key = Vec::new();
                leaf.key(leaf.len() - 1, &mut key);
                after = Some(key);
            }
            let (here, right) = (header::page_id(&page), header::right(&page));
            if right == PageId::NONE {
                return Ok(());
            }
            let next = *database.store.read(right)?;
            let beside = header::page_type(&next) == Some(PageType::Leaf) && header::tree(&next) == info.id && header::left(&next) == here;
            if !beside {
                continue 'descend;
            }
            page = next;
        }
    }
}

/// An entry as it lies in its leaf, and what became of who wrote it last.
pub(crate) struct EntryByFate {
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
    pub(crate) ghost: bool,
    pub(crate) fate: Fate,
    /// Its writer made it: there was none before.
    pub(crate) is_first: bool,
}

/// Every entry of a tree whose writer has committed, ghosts included. For when nobody writes yet.
pub(crate) fn settled_entries(database: &Database, info: &TreeInfo) -> Result<Vec<EntryByFate>, StorageError> {
    let mut entries = entries_by_fate(database, info)?;
    entries.retain(|entry| entry.fate == Fate::Committed);
    Ok(entries)
}

/// Every entry of a tree, ghosts included.
pub(crate) fn entries_by_fate(database: &Database, info: &TreeInfo) -> Result<Vec<EntryByFate>, StorageError> {
    let mut entries = Vec::new();
    each_leaf(database, info, None, &mut |page| {
        let leaf = Slotted(page);
        for slot in 0..leaf.len() {
            let entry = leaf.entry(slot);
            let version = Version::of(&entry, header::creator_number(page));
            let (fate, is_first) = (database.commits.fate(version.writer), version.pointer == 0);
            let mut key = Vec::new();
            leaf.key(slot, &mut key);
            let mut whole = Vec::new();
            let row = leaf.row(slot, &mut whole)?.payload.to_vec();
            entries.push(EntryByFate { key, row, ghost: entry.ghost, fate, is_first });
        }
        Ok(true)
    })?;
    Ok(entries)
}
