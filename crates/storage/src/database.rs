//! An open database: its trees, its transactions' table, its versions, over the lower half's store.
//!
//! ```text
//!   Storage ── Database ┬ Store: pages, log, space          CommitTable: fates, views
//!                       ├ trees: id -> root, unit (cache of the units tree)
//!                       ├ VersionStore: segments            Cleaner: what waits to be tidied
//!                       └ LockManager (the instance's)
//! ```
//! Boot page, trees' part: version u8 | zero u8 | units tree's root 6 | units tree's unit 6.
//!
//! Invariants: 1. the units tree and the root tree exist from creation on, under fixed ids. 2. A tree in the cache is one
//! whose row was seen committed or made by an open transaction that alone knows its id.
//! Locks: TREE_CACHE (5), VERSION_SEGMENT_MAKING (1). Failure: as of the rooms below.

use crate::btree::{Settler, Tree};
use crate::checkpoint::TransactionTable;
use crate::cleaner::{Cleaner, CleanerThread};
use crate::error::StorageError;
use crate::hash::FastHash;
use crate::ids::{Lsn, PageId, TreeId, TxnId};
use crate::locks::{LockInfo, LockManager, Party};
use crate::mini::{Mini, UnitSpec};
use crate::page::{Entry, Format, PageOp, PageType, header};
use crate::pool::Pool;
use crate::recovery::RecoveryListener;
use crate::space::Unit;
use crate::store::{Store, background::Background};
use crate::txn::Txn;
use crate::txn_locks::RangeHolders;
use crate::units::{TreeInfo, TreePage, UnitKind, unit_key};
use crate::versions::commit_table::CommitTable;
use crate::versions::records::{OpenTxns, TxnRecord};
use crate::versions::store::{Segment, VersionStore};
use crate::view::{self, ReadView};
use observe::sync::{LockClass, Mutex, RwLock};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use thawdb_device::{BackgroundWork, Env};
use thawdb_observe as observe;

pub use crate::spec::{DatabaseSpec, TreeSpec};

static TREE_CACHE: LockClass = LockClass::new("TREE_CACHE", 5);
static BACKGROUND: LockClass = LockClass::new("DATABASE_BACKGROUND", 1);
static SEGMENT_MAKING: LockClass = LockClass::new("VERSION_SEGMENT_MAKING", 1);

/// Version of the trees' part of the boot page.
const BOOT_VERSION: u8 = 1;
/// Bytes of that part that are used.
const BOOT_BYTES: usize = 14;
/// Extents freed in one mini-transaction: half a gigabyte at most, a few map pages.
const FREE_EXTENTS: u32 = 8192;

/// An open database.
pub struct Database {
    spec: DatabaseSpec,
    pub(crate) number: u32,
    pub(crate) store: Arc<Store>,
    pub(crate) commits: Arc<CommitTable>,
    pub(crate) versions: VersionStore,
    pub(crate) locks: Arc<LockManager>,
    pub(crate) cleaner: Cleaner,
    units: Arc<TreeInfo>,
    trees: RwLock<HashMap<u64, Arc<TreeInfo>, FastHash>>,
    /// Transactions that hold key ranges.
    pub(crate) range_holders: RangeHolders,
    segment_making: Mutex<()>,
    background: Mutex<Option<(Background, CleanerThread)>>,
}

/// Who is seen by all, for one tree.
pub(crate) struct DatabaseSettler<'a> {
    database: &'a Database,
    tree: TreeId,
}

impl Settler for DatabaseSettler<'_> {
    fn seen_by_all(&self, writer: u64) -> bool {
        self.database.commits.seen_by_all(writer)
    }

    fn purges_ghosts(&self) -> bool {
        // A ghost in the units tree names pages that are still to be freed.
        self.tree != Database::UNITS_TREE
    }

    fn ghost_is_locked(&self, key: &[u8]) -> bool {
        self.database.ghost_is_locked(self.tree, key)
    }
}

impl Database {
    /// The instance's memory account.
    pub fn memory(&self) -> &Arc<crate::memory::MemoryAccount> {
        self.store.pool().account()
    }

    /// Most bytes of key plus inline row.
    pub const INLINE_BYTES_MAX: usize = 8000;
    /// Most bytes of a key.
    pub const KEY_BYTES_MAX: usize = 1700;
    /// The tree that a new database has, empty: where `catalog` keeps its root.
    pub const ROOT_TREE: TreeId = TreeId(1);
    /// The tree of trees.
    pub(crate) const UNITS_TREE: TreeId = TreeId(2);
    /// Ids below are the system's own and cannot be dropped.
    pub(crate) const FIRST_FREE_TREE: u64 = 100;

    pub(crate) fn create(
        pool: &Arc<Pool>,
        env: &Env,
        locks: &Arc<LockManager>,
        number: u32,
        spec: &DatabaseSpec,
    ) -> Result<Arc<Self>, StorageError> {
        let store = Store::create(pool, env, number, spec)?;
        let own = |object_id| TreeSpec { object_id, index_id: 1, filegroup: 1 };
        let mut mini = Mini::begin(&store, TxnId(0));
        let units = Self::make_tree(&mut mini, Self::UNITS_TREE, (own(2), false), TxnId(0))?;
        let root = Self::make_tree(&mut mini, Self::ROOT_TREE, (own(1), false), TxnId(0))?;
        for (slot, info) in [&root, &units].into_iter().enumerate() {
            let leaf = mini.latch(units.root)?;
            let mut bytes = Vec::new();
            Entry::plain(&unit_key(info.id), &info.encode()).encode(&mut bytes);
            mini.apply(leaf, PageOp::SlotInsert { slot: u16::try_from(slot).expect("two"), bytes: &bytes })?;
        }
        let row = units.encode();
        let mut boot = [0; BOOT_BYTES];
        boot[0] = BOOT_VERSION;
        boot[2..].copy_from_slice(&row[12..24]);
        mini.patch_boot(0, &boot)?;
        let end = mini.commit()?;
        store.flush_log(end)?;
        Ok(Self::assemble(store, locks, number, spec.clone(), units, OpenTxns::default()))
    }

    fn assemble(
        store: Arc<Store>,
        locks: &Arc<LockManager>,
        number: u32,
        spec: DatabaseSpec,
        units: TreeInfo,
        open: OpenTxns,
    ) -> Arc<Self> {
        let units = Arc::new(units);
        let mut trees = HashMap::with_hasher(FastHash);
        trees.insert(units.id.0, units.clone());
        let commits = Arc::new(CommitTable::new(open));
        store.set_transaction_table(commits.clone());
        Arc::new(Self {
            spec,
            number,
            store,
            commits,
            versions: VersionStore::new(),
            locks: locks.clone(),
            cleaner: Cleaner::new(),
            units,
            trees: RwLock::new(&TREE_CACHE, trees),
            range_holders: RangeHolders::new(),
            segment_making: Mutex::new(&SEGMENT_MAKING, ()),
            background: Mutex::new(&BACKGROUND, None),
        })
    }

    pub(crate) fn open(
        pool: &Arc<Pool>,
        env: &Env,
        locks: &Arc<LockManager>,
        number: u32,
        primary: &Path,
    ) -> Result<Arc<Self>, StorageError> {
        let name = primary.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let mut analysis = Analysis { open: OpenTxns::default(), failed: None };
        let store = Store::open(pool, env, &name, number, primary, &mut analysis)?;
        if let Some(error) = analysis.failed {
            return Err(error);
        }
        let spec = DatabaseSpec { name, files: store.files().map(|file| (*file.spec()).clone()).collect(), temporary: false };
        let boot = store.boot()?;
        if boot[0] != BOOT_VERSION {
            let detail = format!("trees' part of the boot page has version {}", boot[0]);
            return Err(StorageError::Damage { page: crate::space::layout::BOOT, offset: 0, detail });
        }
        let units = TreeInfo::units(Self::UNITS_TREE, boot[2..BOOT_BYTES].try_into().expect("twelve bytes"));
        let database = Self::assemble(store, locks, number, spec, units, analysis.open);
        database.inherit()?;
        Ok(database)
    }

    /// Takes over what is left from before: version segments, and trees that were dropped and not freed yet.
    fn inherit(&self) -> Result<(), StorageError> {
        let mut segments = Vec::new();
        for crate::cleaner::EntryByFate { key, row, ghost, .. } in crate::cleaner::settled_entries(self, &self.units)? {
            let info = TreeInfo::decode(&key, &row)?;
            match (info.kind, ghost) {
                (UnitKind::Versions, false) => segments.push(Segment::new(info.id, info.unit)),
                (UnitKind::Tree, true) => self.cleaner.committed(TxnId(0), Vec::new(), vec![Arc::new(info)]),
                (UnitKind::Versions, true) | (UnitKind::Tree, false) => {}
            }
        }
        self.versions.inherit(segments);
        let loose = self.store.loose.all().into_iter();
        self.cleaner.free_large(loose.map(|(root, tree)| (tree, crate::large::reference(root, tree))).collect());
        Ok(())
    }

    /// The files and name.
    pub fn spec(&self) -> &DatabaseSpec {
        &self.spec
    }

    /// Its number in the lock table.
    pub fn lock_number(&self) -> u32 {
        self.number
    }

    /// The lower half: pages, log, files.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Every page of a tree's extents by its maps, each map before the pages that it has; nothing but maps is read.
    pub fn pages_of_tree(&self, tree: TreeId) -> Result<Vec<TreePage>, StorageError> {
        let info = self.tree(tree, 0)?;
        let mut pages = Vec::new();
        for (unit, is_large) in [(Some(info.unit), false), (info.large_unit(), true)] {
            let mut map = unit.map_or(PageId::NONE, |unit| unit.0);
            while map != PageId::NONE {
                let (mapped, next) = crate::units::mapped_pages(&self.store, map)?;
                pages.push(TreePage { page: map, map: None, is_large, is_used: true });
                pages.extend(mapped.into_iter().map(|(page, is_used)| TreePage { page, map: Some(map), is_large, is_used }));
                map = next;
            }
        }
        Ok(pages)
    }

    /// Brings the leaf with the greatest keys below each of `keys`, which rise, into the pool, and with it those behind it,
    /// about `leaves` in all: for who goes to all these places next and would wait for the disk at each. The pool should have
    /// room for them.
    ///
    /// # Errors
    /// `NoTree`, and what is wrong with the root; who needs another page that cannot be read meets that there.
    pub fn prefetch_below<K: AsRef<[u8]>>(&self, tree: TreeId, keys: &[K], leaves: usize) -> Result<(), StorageError> {
        let info = self.tree(tree, 0)?;
        self.system_tree(&info).prefetch_below(keys, leaves)
    }

    /// The filegroup a tree was made in.
    pub fn filegroup_of(&self, tree: TreeId) -> Result<u16, StorageError> {
        Ok(self.tree(tree, 0)?.filegroup)
    }

    /// Starts a transaction; costs nothing until its first write.
    pub fn begin(self: &Arc<Self>) -> Txn {
        Txn::new(self.clone(), None)
    }

    /// Starts a transaction of a session: its waits and those for the session's other locks are seen as one.
    pub fn begin_for(self: &Arc<Self>, party: Party) -> Txn {
        Txn::new(self.clone(), Some(party))
    }

    /// A view of what is committed now and, with `txn`, of its own changes up to now: a statement that reads through it
    /// does not see what it writes itself.
    pub fn read_view(self: &Arc<Self>, txn: Option<&Txn>) -> ReadView {
        let visibility = match txn {
            Some(txn) => self.commits.view_up_to(txn.id(), txn.begin_view()),
            None => self.commits.view(None),
        };
        ReadView::new(self.clone(), visibility)
    }

    /// Every lock held or waited for in this database.
    pub fn locks(&self) -> Vec<LockInfo> {
        self.locks.locks().into_iter().filter(|lock| lock.resource.database == self.number).collect()
    }

    /// Makes dirty pages durable and moves the start of recovery forward.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        self.store.write_all()?;
        self.store.checkpoint()
    }

    /// Starts the work that goes on while nobody asks: redo after a crash, writing back, checkpoints, tidying. Where the
    /// environment steps it, nothing is started, and [`Database::background_turn`] is called instead.
    pub fn start_background(self: &Arc<Self>) {
        if self.store.env().background == BackgroundWork::Stepped {
            return;
        }
        let mut running = self.background.lock();
        if running.is_none() {
            *running = Some((Background::start(&self.store), crate::cleaner::CleanerThread::start(self)));
        }
    }

    /// A bounded piece of background work; true if there is more.
    pub fn background_turn(&self) -> Result<bool, StorageError> {
        Ok(self.store.background_turn()? | self.clean_turn()?)
    }

    /// Checkpoints and closes; the next open has nothing to redo. Transactions still open are as after a crash.
    pub fn close(&self) -> Result<(), StorageError> {
        let running = self.background.lock().take();
        drop(running);
        self.store.close()
    }

    pub(crate) fn settler(&self, tree: TreeId) -> DatabaseSettler<'_> {
        DatabaseSettler { database: self, tree }
    }

    /// Makes a tree's unit and root in the mini-transaction's group. Its rows without tags are `creator`'s.
    pub(crate) fn make_tree(
        mini: &mut Mini<'_>,
        tree: TreeId,
        (spec, packs_leaves): (TreeSpec, bool),
        creator: TxnId,
    ) -> Result<TreeInfo, StorageError> {
        let TreeSpec { object_id, index_id, filegroup } = spec;
        let unit = mini.create_unit(UnitSpec { tree, object_id, index_id, filegroup })?;
        let root = mini.allocate(unit, Format { page_type: PageType::Leaf, tree, object_id, index_id, level: 0, creator })?;
        let info = TreeInfo::new(tree, UnitKind::Tree, mini.id(root), unit, filegroup, object_id, index_id);
        Ok(info.packing(packs_leaves))
    }

    /// The tree with this id, as transaction `own` (0 for none) may use it.
    pub(crate) fn tree(&self, tree: TreeId, own: u64) -> Result<Arc<TreeInfo>, StorageError> {
        let absent = || StorageError::NoTree(tree);
        let cached = self.trees.read().get(&tree.0).cloned();
        let info = match cached {
            Some(info) => info,
            None => {
                let view = self.commits.view(if own == 0 { None } else { Some(TxnId(own)) });
                let row = view::row_of(self, &self.units, &unit_key(tree), &view)?.ok_or_else(absent)?;
                let info = Arc::new(TreeInfo::decode(row.key(0), row.value(0))?);
                self.trees.write().entry(tree.0).or_insert(info).clone()
            }
        };
        if own != 0 && info.dropped_by() == own || info.kind != UnitKind::Tree {
            return Err(absent());
        }
        Ok(info)
    }

    pub(crate) fn units(&self) -> &Arc<TreeInfo> {
        &self.units
    }

    pub(crate) fn add_tree(&self, info: TreeInfo) {
        self.trees.write().insert(info.id.0, Arc::new(info));
    }

    pub(crate) fn forget_tree(&self, tree: TreeId) {
        self.trees.write().remove(&tree.0);
    }

    /// Forgets the cached trees that an abandoned transaction made or dropped: their rows tell what is true.
    pub(crate) fn forget_trees_of(&self, _txn: TxnId) {
        let units = self.units.clone();
        let mut trees = self.trees.write();
        trees.clear();
        trees.insert(units.id.0, units);
    }

    /// Frees every page of a tree and of its large values. Called again after a crash it goes on.
    pub(crate) fn free_tree_pages(&self, info: &TreeInfo) -> Result<(), StorageError> {
        for unit in [info.large_unit(), Some(info.unit)].into_iter().flatten() {
            self.free_unit(unit, info.id)?;
        }
        Ok(())
    }

    /// Frees a unit, unless it is gone already.
    pub(crate) fn free_unit(&self, unit: Unit, tree: TreeId) -> Result<(), StorageError> {
        while self.has_unit(unit, tree)? && !self.store.free_unit_step(unit, FREE_EXTENTS)? {}
        Ok(())
    }

    /// Whether a unit is there: its first page is in use as a map, and says whose it is. One that was given back keeps its
    /// bytes until it is used again.
    pub(crate) fn has_unit(&self, unit: Unit, tree: TreeId) -> Result<bool, StorageError> {
        let page = self.store.read(unit.0)?;
        let is_its = header::page_type(&page) == Some(PageType::Iam) && header::tree(&page) == tree;
        drop(page);
        Ok(is_its && crate::mini::is_in_use(&self.store, unit.0)?)
    }

    /// The data pages of a unit, by its maps; none if it is gone.
    pub(crate) fn unit_pages(&self, unit: Unit, tree: TreeId) -> Result<Vec<PageId>, StorageError> {
        if self.has_unit(unit, tree)? { crate::units::pages_of(&self.store, unit) } else { Ok(Vec::new()) }
    }

    /// Makes a segment of the version store if the next push needs one.
    pub(crate) fn make_version_segment(&self) -> Result<(), StorageError> {
        if !self.versions.needs_segment() {
            return Ok(());
        }
        let _making = self.segment_making.lock();
        if !self.versions.needs_segment() {
            return Ok(());
        }
        let tree = self.commits.tree_id();
        let unit = crate::cleaner::make_segment(self, tree)?;
        self.versions.begin_segment(Segment::new(tree, unit));
        Ok(())
    }

    /// What follows a commit: dropped trees and touched leaves wait for the cleaner.
    pub(crate) fn after_commit(&self, txn: TxnId, leaves: &mut Vec<(TreeId, PageId)>, dropped: &mut Vec<Arc<TreeInfo>>) {
        for info in dropped.iter() {
            self.forget_tree(info.id);
        }
        self.cleaner.committed(txn, std::mem::take(leaves), std::mem::take(dropped));
    }

    pub(crate) fn free_large_later(&self, freed: &mut Vec<(TreeId, Vec<u8>)>) {
        self.cleaner.free_large(std::mem::take(freed));
    }

    /// A tree for reading and for the system's own changes.
    pub(crate) fn system_tree<'a>(&'a self, info: &'a TreeInfo) -> Tree<'a> {
        Tree { store: &self.store, info, author: TxnId(0), finishing: false }
    }

    pub(crate) fn tree_made_record(tree: TreeId) -> [u8; crate::versions::records::RECORD_BYTES] {
        TxnRecord::TreeMade(tree).encode()
    }
}

/// Hears what the log says of transactions.
struct Analysis {
    open: OpenTxns,
    failed: Option<StorageError>,
}

impl RecoveryListener for Analysis {
    fn table(&mut self, transactions: &[u8]) {
        if transactions.is_empty() {
            return;
        }
        match OpenTxns::decode(transactions) {
            Ok(open) => self.open = open,
            Err(error) => self.failed = Some(error),
        }
    }

    fn record(&mut self, _lsn: Lsn, payload: &[u8]) {
        match TxnRecord::decode(payload) {
            Ok(record) => self.open.apply(record),
            Err(error) => self.failed = Some(error),
        }
    }
}

impl TransactionTable for CommitTable {
    fn snapshot(&self, log_end: &dyn Fn() -> Lsn) -> (Lsn, Vec<u8>) {
        let (end, open) = self.open_txns(log_end);
        (end, open.encode())
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::{DatabaseSpec, FileKind, FileSpec, StorageConfig, TreeSpec};
    use crate::storage::Storage;
    use thawdb_device::sim::Simulation;

    /// Between giving a unit back and forgetting its row the log may be full, or the process end: both come again.
    #[test]
    fn a_unit_that_was_given_back_is_gone_though_its_bytes_are_there() {
        let file = |name: &str, kind| FileSpec {
            name: name.into(),
            path: format!("/{name}").into(),
            kind,
            size_bytes: 4 << 20,
            size_bytes_max: None,
            growth_bytes: 1 << 20,
        };
        let files = vec![file("data", FileKind::Rows { filegroup: 1 }), file("log", FileKind::Log)];
        let storage = Storage::new(Simulation::with_seed(1).env(), StorageConfig { memory_bytes_max: 8 << 20 });
        let database = storage.create_database(&DatabaseSpec { name: "units".into(), files, temporary: false }).unwrap();
        let mut txn = database.begin();
        let tree = txn.create_tree(TreeSpec { object_id: 1, index_id: 1, filegroup: 1 }).unwrap();
        txn.commit().unwrap();
        let info = database.tree(tree, 0).unwrap();
        assert!(database.has_unit(info.unit, info.id).unwrap());
        let mut txn = database.begin();
        txn.drop_tree(tree).unwrap();
        txn.commit().unwrap();
        database.free_tree_pages(&info).unwrap();
        assert!(!database.has_unit(info.unit, info.id).unwrap());
        assert!(database.check().unwrap().is_empty(), "its row is still there");
        database.free_tree_pages(&info).unwrap();
        database.clean().unwrap();
        assert!(database.check().unwrap().is_empty());
    }
}
