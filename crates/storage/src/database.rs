//! The doors of the storage floor, standing on an in-memory model until the rooms behind them are built.
//!
//! The signatures are the contract; the bodies are a stand-in that keeps every tree in a `BTreeMap` under one
//! lock and has no isolation, so that the floors above can be built and tested at the same time.

use crate::error::StorageError;
use crate::ids::{LargeRef, TreeId, TxnId};
use observe::sync::{LockClass, Mutex};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_device::Env;
use thawdb_observe as observe;

static MODEL: LockClass = LockClass::new("STORAGE_MODEL", 1);

/// Settings of the instance's storage.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// Most memory the buffer pool, sorts and versions may use together, in bytes (`max server memory`).
    pub memory_bytes_max: u64,
}

/// What a file of a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Rows, of the filegroup with this number (1 is PRIMARY).
    Rows {
        /// Filegroup number.
        filegroup: u16,
    },
    /// The log.
    Log,
}

/// One file of a database as CREATE DATABASE names it.
#[derive(Debug, Clone)]
pub struct FileSpec {
    /// Logical name.
    pub name: String,
    /// Physical path, as written.
    pub path: PathBuf,
    /// What it holds.
    pub kind: FileKind,
    /// First size in bytes.
    pub size_bytes: u64,
    /// Greatest size in bytes; `None` is UNLIMITED.
    pub size_bytes_max: Option<u64>,
    /// Growth step in bytes; 0 is none.
    pub growth_bytes: u64,
}

/// A database to be made or opened.
#[derive(Debug, Clone)]
pub struct DatabaseSpec {
    /// Its name, for messages and views only.
    pub name: String,
    /// Its files; the first `Rows` file is the primary one.
    pub files: Vec<FileSpec>,
    /// Contents need not outlive the instance (tempdb): nothing is logged or synced.
    pub temporary: bool,
}

/// Storage of one instance: the buffer pool and the open databases that share it.
pub struct Storage {
    env: Env,
}

impl Storage {
    /// Storage in `env` under `config`.
    pub fn new(env: Env, config: StorageConfig) -> Arc<Self> {
        let _ = config;
        Arc::new(Self { env })
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Makes the files of a new database; durable on return. Fails with `Io(AlreadyExists)` if a file is there.
    pub fn create_database(self: &Arc<Self>, spec: &DatabaseSpec) -> Result<Arc<Database>, StorageError> {
        Ok(Arc::new(Database { spec: spec.clone(), model: Mutex::new(&MODEL, Model::default()) }))
    }

    /// Opens a database after a clean shutdown or a crash; `primary` is its first data file, which names the others.
    pub fn open_database(self: &Arc<Self>, primary: &std::path::Path) -> Result<Arc<Database>, StorageError> {
        Err(StorageError::NotFound(primary.display().to_string()))
    }
}

#[derive(Default)]
struct Model {
    trees: BTreeMap<u64, BTreeMap<Vec<u8>, StoredRow>>,
    tree_next: u64,
    txn_next: u64,
}

#[derive(Clone, Default)]
struct StoredRow {
    inline: Vec<u8>,
    large: Vec<Vec<u8>>,
}

/// An open database.
pub struct Database {
    spec: DatabaseSpec,
    model: Mutex<Model>,
}

/// A tree to be made.
#[derive(Debug, Clone, Copy)]
pub struct TreeSpec {
    /// Object it belongs to; written in every page header.
    pub object_id: u32,
    /// Index number within the object (1 clustered, 2.. others); written in every page header.
    pub index_id: u32,
    /// Filegroup to allocate from.
    pub filegroup: u16,
}

/// A row to be written: its inline bytes and the values too large for a page.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Stored on the leaf; with the key at most [`Database::INLINE_BYTES_MAX`] bytes.
    pub inline: &'a [u8],
    /// Stored apart, each up to 2^31 - 1 bytes; read back one at a time by position. At most 1,024.
    pub large: &'a [&'a [u8]],
}

impl<'a> Row<'a> {
    /// A row without large parts.
    pub const fn inline(inline: &'a [u8]) -> Self {
        Self { inline, large: &[] }
    }
}

/// A transaction, or a place for one: it gets its id with its first write. Dropping an unfinished one rolls it back.
pub struct Txn {
    database: Arc<Database>,
    id: Option<TxnId>,
    undo: Vec<Undo>,
}

enum Undo {
    Entry { tree: TreeId, key: Vec<u8>, before: Option<StoredRow> },
    TreeMade(TreeId),
    TreeDropped(TreeId, BTreeMap<Vec<u8>, StoredRow>),
}

/// A point within a transaction to which it can be rolled back (statement start, SAVE TRANSACTION).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(usize);

/// What a reader sees: everything committed before it was taken, and its own transaction's changes.
#[derive(Clone)]
pub struct ReadView {
    database: Arc<Database>,
}

/// Keys from one bound to another.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// Lower bound.
    pub start: Bound<Vec<u8>>,
    /// Upper bound.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: Self = Self { start: Bound::Unbounded, end: Bound::Unbounded };
}

/// Direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanDirection {
    /// Rising keys.
    Forward,
    /// Falling keys.
    Backward,
}

/// A scan of a tree in key order, one leaf's visible rows at a time; holds no latch between calls.
pub struct Scan {
    view: ReadView,
    tree: TreeId,
    range: KeyRange,
    direction: ScanDirection,
    block: RowBlock,
    done: bool,
}

/// The visible rows of one leaf, copied out of the page.
#[derive(Default)]
pub struct RowBlock {
    rows: Vec<(Vec<u8>, StoredRow)>,
    refs: Vec<Vec<LargeRef>>,
}

/// Fills an empty or freshly truncated tree in key order, whole leaves at a time.
pub struct BulkAppender<'t> {
    txn: &'t mut Txn,
    tree: TreeId,
}

impl Database {
    /// Most bytes of key plus inline row.
    pub const INLINE_BYTES_MAX: usize = 8000;
    /// Most bytes of a key.
    pub const KEY_BYTES_MAX: usize = 1700;
    /// The tree that a new database has, empty: where `catalog` keeps its root.
    pub const ROOT_TREE: TreeId = TreeId(1);

    /// The files and name.
    pub fn spec(&self) -> &DatabaseSpec {
        &self.spec
    }

    /// Starts a transaction; costs nothing until its first write.
    pub fn begin(self: &Arc<Self>) -> Txn {
        Txn { database: self.clone(), id: None, undo: Vec::new() }
    }

    /// A view of what is committed now and, with `txn`, of its own changes up to now.
    pub fn read_view(self: &Arc<Self>, txn: Option<&Txn>) -> ReadView {
        let _ = txn;
        ReadView { database: self.clone() }
    }

    /// Makes dirty pages durable and moves the start of recovery forward.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Checkpoints and closes; the next open has nothing to redo.
    pub fn close(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

impl Txn {
    /// Its id; `None` before its first write.
    pub fn id(&self) -> Option<TxnId> {
        self.id
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    fn ensure_id(&mut self) {
        if self.id.is_none() {
            let mut model = self.database.model.lock();
            model.txn_next += 1;
            self.id = Some(TxnId(model.txn_next));
        }
    }

    /// Makes an empty tree; gone again if the transaction rolls back.
    pub fn create_tree(&mut self, spec: TreeSpec) -> Result<TreeId, StorageError> {
        let _ = spec;
        self.ensure_id();
        let tree = {
            let mut model = self.database.model.lock();
            model.tree_next += 1;
            let id = 100 + model.tree_next;
            model.trees.insert(id, BTreeMap::new());
            TreeId(id)
        };
        self.undo.push(Undo::TreeMade(tree));
        Ok(tree)
    }

    /// Drops a tree: unseen at once, its pages freed in the background after commit, there again after rollback.
    pub fn drop_tree(&mut self, tree: TreeId) -> Result<(), StorageError> {
        self.ensure_id();
        let old = self.database.model.lock().trees.remove(&tree.0).ok_or_else(|| StorageError::NotFound(format!("{tree:?}")))?;
        self.undo.push(Undo::TreeDropped(tree, old));
        Ok(())
    }

    fn change(&mut self, tree: TreeId, key: &[u8], after: Option<StoredRow>, expect_absent: bool) -> Result<bool, StorageError> {
        self.ensure_id();
        let before = {
            let mut model = self.database.model.lock();
            let rows = model.trees.entry(tree.0).or_default();
            let before = rows.get(key).cloned();
            if expect_absent && before.is_some() {
                return Err(StorageError::Duplicate { tree, key: key.to_vec() });
            }
            if !expect_absent && before.is_none() {
                return Ok(false);
            }
            match after {
                Some(row) => rows.insert(key.to_vec(), row),
                None => rows.remove(key),
            };
            before
        };
        self.undo.push(Undo::Entry { tree, key: key.to_vec(), before });
        Ok(true)
    }

    /// Inserts; `Duplicate` if a row with the key is there (waits for the fate of another transaction's).
    pub fn insert(&mut self, tree: TreeId, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        self.change(tree, key, Some(stored(row)), true).map(|_| ())
    }

    /// Replaces the row with `key`; false if none is there now. Waits for other writers of the row.
    pub fn update(&mut self, tree: TreeId, key: &[u8], row: Row<'_>) -> Result<bool, StorageError> {
        self.change(tree, key, Some(stored(row)), false)
    }

    /// Deletes the row with `key`; false if none is there now. Waits for other writers of the row.
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool, StorageError> {
        self.change(tree, key, None, false)
    }

    /// Locks the row for update and returns its newest committed (or own) state, `None` if it is gone:
    /// what UPDATE and DELETE re-check their predicate on under READ COMMITTED.
    pub fn lock_row(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<RowBlock>, StorageError> {
        self.database.clone().read_view(Some(self)).get(tree, key)
    }

    /// Whether any live entry (committed, or this transaction's own) has a key in `range` other than `except`:
    /// the uniqueness check of secondary indexes. Waits for the fate of other transactions' entries there.
    pub fn any_live_in(&mut self, tree: TreeId, range: &KeyRange, except: Option<&[u8]>) -> Result<bool, StorageError> {
        let model = self.database.model.lock();
        Ok(model.trees.get(&tree.0).is_some_and(|rows| {
            rows.range::<Vec<u8>, _>((range.start.clone(), range.end.clone())).any(|(k, _)| Some(k.as_slice()) != except)
        }))
    }

    /// An appender of rows in rising key order, beyond every key the tree has.
    pub fn bulk_append(&mut self, tree: TreeId) -> Result<BulkAppender<'_>, StorageError> {
        self.ensure_id();
        Ok(BulkAppender { txn: self, tree })
    }

    /// The present point.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    /// Undoes everything after `to`, newest first; locks are kept.
    pub fn rollback_to(&mut self, to: Savepoint) -> Result<(), StorageError> {
        let mut model = self.database.model.lock();
        while self.undo.len() > to.0 {
            match self.undo.pop().expect("longer than the savepoint") {
                Undo::Entry { tree, key, before: Some(row) } => drop(model.trees.entry(tree.0).or_default().insert(key, row)),
                Undo::Entry { tree, key, before: None } => drop(model.trees.entry(tree.0).or_default().remove(&key)),
                Undo::TreeMade(tree) => drop(model.trees.remove(&tree.0)),
                Undo::TreeDropped(tree, rows) => drop(model.trees.insert(tree.0, rows)),
            }
        }
        Ok(())
    }

    /// Commits; durable on return.
    pub fn commit(mut self) -> Result<(), StorageError> {
        self.undo.clear();
        Ok(())
    }

    /// Rolls everything back.
    pub fn rollback(mut self) -> Result<(), StorageError> {
        self.rollback_to(Savepoint(0))
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        let _ = self.rollback_to(Savepoint(0));
    }
}

fn stored(row: Row<'_>) -> StoredRow {
    StoredRow { inline: row.inline.to_vec(), large: row.large.iter().map(|l| l.to_vec()).collect() }
}

impl ReadView {
    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The one row with `key`, if the view sees one.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<RowBlock>, StorageError> {
        let mut scan =
            self.scan(tree, KeyRange { start: Bound::Included(key.to_vec()), end: Bound::Included(key.to_vec()) }, ScanDirection::Forward)?;
        Ok(scan.next_block()?.map(std::mem::take))
    }

    /// A scan of `range`.
    pub fn scan(&self, tree: TreeId, range: KeyRange, direction: ScanDirection) -> Result<Scan, StorageError> {
        Ok(Scan { view: self.clone(), tree, range, direction, block: RowBlock::default(), done: false })
    }

    /// Reads a large part whole.
    pub fn read_large(&self, at: LargeRef) -> Result<Vec<u8>, StorageError> {
        let part = |from: usize| {
            usize::try_from(u32::from_le_bytes([at.0[from], at.0[from + 1], at.0[from + 2], at.0[from + 3]])).expect("usize holds u32")
        };
        let model = self.database.model.lock();
        let row = model.trees.get(&(part(0) as u64)).and_then(|t| t.values().nth(part(4)));
        row.and_then(|r| r.large.get(part(8)).cloned()).ok_or_else(|| StorageError::Bug("large part is gone".into()))
    }
}

impl Scan {
    /// The next leaf's visible rows, at least one; `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<&mut RowBlock>, StorageError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let model = self.view.database.model.lock();
        self.block = RowBlock::default();
        if let Some(rows) = model.trees.get(&self.tree.0) {
            let inside = |key: &Vec<u8>| std::ops::RangeBounds::contains(&(self.range.start.clone(), self.range.end.clone()), key);
            for (position, (key, row)) in rows.iter().enumerate().filter(|(_, (k, _))| inside(k)) {
                let tag = |ordinal: usize| {
                    let mut bytes = [0; 16];
                    for (at, n) in [(0, self.tree.0 as usize), (4, position), (8, ordinal)] {
                        bytes[at..at + 4].copy_from_slice(&u32::try_from(n).expect("the model is small").to_le_bytes());
                    }
                    LargeRef(bytes)
                };
                self.block.refs.push((0..row.large.len()).map(tag).collect());
                self.block.rows.push((key.clone(), row.clone()));
            }
        }
        if self.direction == ScanDirection::Backward {
            self.block.rows.reverse();
            self.block.refs.reverse();
        }
        Ok(if self.block.rows.is_empty() { None } else { Some(&mut self.block) })
    }
}

impl RowBlock {
    /// Rows in it.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Key of row `index`, whole.
    pub fn key(&self, index: usize) -> &[u8] {
        &self.rows[index].0
    }

    /// Inline bytes of row `index`.
    pub fn value(&self, index: usize) -> &[u8] {
        &self.rows[index].1.inline
    }

    /// Large parts of row `index`, by position.
    pub fn large(&self, index: usize) -> &[LargeRef] {
        &self.refs[index]
    }
}

impl BulkAppender<'_> {
    /// Appends a row; `key` must be above every key before it, `Duplicate` if it equals the last, `Bug` if below.
    pub fn push(&mut self, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        self.txn.insert(self.tree, key, row)
    }

    /// Completes the last leaf and the levels above; without it nothing of the append is kept.
    pub fn finish(self) -> Result<(), StorageError> {
        Ok(())
    }
}
