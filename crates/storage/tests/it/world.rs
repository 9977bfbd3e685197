//! Databases for tests, and dice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thawdb_storage::{Database, DatabaseSpec, FileKind, FileSpec, PageId, Storage, StorageConfig, TreeId, TreeSpec, Txn};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A database of its own in a folder of its own, removed at the end.
pub struct World {
    pub folder: PathBuf,
    pub storage: Arc<Storage>,
    pub database: Holder,
}

pub fn spec(folder: &std::path::Path) -> DatabaseSpec {
    let file = |name: &str, kind, size_bytes| FileSpec {
        name: name.into(),
        path: folder.join(name),
        kind,
        size_bytes,
        size_bytes_max: None,
        growth_bytes: 16 << 20,
    };
    DatabaseSpec {
        name: "test".into(),
        files: vec![file("test.mdf", FileKind::Rows { filegroup: 1 }, 8 << 20), file("test.ldf", FileKind::Log, 16 << 20)],
        temporary: false,
    }
}

impl World {
    pub fn new(name: &str) -> Self {
        Self::with_memory(name, 64 << 20)
    }

    pub fn with_memory(name: &str, memory_bytes_max: u64) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("thawdb-storage-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let storage = Storage::new(thawdb_device::os::env(), StorageConfig { memory_bytes_max });
        let database = storage.create_database(&spec(&folder)).unwrap();
        Self { folder, storage, database: Holder(Some(database)) }
    }

    /// Closes and opens again.
    pub fn reopen(&mut self) {
        self.close();
        self.open();
    }

    pub fn close(&mut self) {
        self.database.close().unwrap();
        // Files are free when the last reference is gone.
        self.database.0 = None;
    }

    pub fn open(&mut self) {
        self.database.0 = Some(self.storage.open_database(&self.folder.join("test.mdf")).unwrap());
    }

    /// The pages that a tree's maps say are in use.
    pub fn used_pages(&self, tree: TreeId) -> Vec<PageId> {
        let all = self.database.pages_of_tree(tree).unwrap();
        all.into_iter().filter_map(|page| page.is_used.then_some(page.page)).collect()
    }

    pub fn tree(&self) -> TreeId {
        let mut txn = self.database.begin();
        let tree = tree_in(&mut txn);
        txn.commit().unwrap();
        tree
    }
}

/// The open database.
pub struct Holder(Option<Arc<Database>>);

impl std::ops::Deref for Holder {
    type Target = Arc<Database>;
    fn deref(&self) -> &Arc<Database> {
        self.0.as_ref().unwrap()
    }
}

pub fn tree_in(txn: &mut Txn) -> TreeId {
    txn.create_tree(TreeSpec { object_id: 7, index_id: 1, filegroup: 1 }).unwrap()
}

/// A tree whose leaves are packed: its rows are from [`compact_row`].
pub fn packing_tree_in(txn: &mut Txn) -> TreeId {
    txn.create_tree_of(TreeSpec { object_id: 7, index_id: 1, filegroup: 1 }, true).unwrap()
}

/// A row of the compact form with much that other rows have too, and a last value of so many random bytes.
pub fn compact_row(dice: &mut Dice, bytes: usize) -> Vec<u8> {
    let values = [
        Some(vec![7, 7, 7, dice.below(200) as u8]),
        (dice.below(4) > 0).then(|| b"one name of a few".repeat(1 + dice.below(2) as usize)),
        Some(if dice.below(3) == 0 { vec![1] } else { vec![dice.below(5) as u8 + 2; dice.below(4) as usize] }),
        Some([&b"begins alike: "[..], &dice.bytes(4)].concat()),
        Some(dice.bytes(bytes)),
    ];
    let mut row = vec![values.len() as u8, 0, 0, 0];
    let mut long = Vec::new();
    for (column, value) in values.iter().enumerate() {
        let code = match value {
            None => 9,
            Some(value) if value == &[1] => 12,
            Some(value) if value.len() <= 8 => {
                row.extend(value);
                value.len() as u8
            }
            Some(value) => {
                long.push(value);
                10
            }
        };
        row[1 + column / 2] |= code << (4 * (column % 2));
    }
    let ends_at = row.len();
    row.resize(ends_at + 2 * long.len(), 0);
    for (index, value) in long.into_iter().enumerate() {
        row.extend(value);
        let end = (row.len() as u16).to_le_bytes();
        row[ends_at + 2 * index..ends_at + 2 * index + 2].copy_from_slice(&end);
    }
    row
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.database.close();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
