//! The logical log records of transactions, and the state of the transaction table that they and a checkpoint rebuild.
//!
//! ```text
//!   record: kind u8 | txn u64 | tree u64      (all fixed width, little endian, 17 bytes)
//!   image:  version u8 | next txn u64 | next tree u64 | count u32 | { txn u64 | tree count u32 | tree u64 ... } ...
//! ```
//! `Touch` is written in the same atomic group as a transaction's first change of each tree, so that the log knows every
//! transaction that may have left a row, and where to look for it. A transaction is open from its first `Touch` to its
//! `Commit` or to `Reverted`, which says that no row of it is left. Whoever is open at the end of the log has aborted.
//!
//! Invariants: 1. replaying a record twice changes nothing (`OpenTxns::apply`). 2. ids given out after recovery are
//! above all ids the image or the log mentions. Failure: bytes that do not decode are `Damage`.

use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of every logical record.
pub(crate) const RECORD_BYTES: usize = 17;
const IMAGE_VERSION: u8 = 1;
/// Ids leave room below for what the system makes itself.
const TREE_NEXT_FIRST: u64 = 100;

/// A logical record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxnRecord {
    /// The transaction changes the tree for the first time.
    Touch(TxnId, TreeId),
    /// The transaction has committed.
    Commit(TxnId),
    /// The transaction has been rolled back and nothing of it is left.
    Reverted(TxnId),
    /// The tree id has been used.
    TreeMade(TreeId),
}

impl TxnRecord {
    pub(crate) fn encode(self) -> [u8; RECORD_BYTES] {
        let (kind, txn, tree) = match self {
            Self::Touch(txn, tree) => (1, txn.0, tree.0),
            Self::Commit(txn) => (2, txn.0, 0),
            Self::Reverted(txn) => (3, txn.0, 0),
            Self::TreeMade(tree) => (4, 0, tree.0),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = kind;
        bytes[1..9].copy_from_slice(&txn.to_le_bytes());
        bytes[9..17].copy_from_slice(&tree.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StorageError> {
        let mut reader = Reader { bytes };
        let (kind, txn, tree) = (reader.u8()?, reader.u64()?, reader.u64()?);
        match kind {
            1 => Ok(Self::Touch(TxnId(txn), TreeId(tree))),
            2 => Ok(Self::Commit(TxnId(txn))),
            3 => Ok(Self::Reverted(TxnId(txn))),
            4 => Ok(Self::TreeMade(TreeId(tree))),
            _ => Err(damaged("kind of a transaction record", u64::from(kind))),
        }
    }
}

/// Transactions that have neither committed nor been reverted, with the trees they touched, and the next ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenTxns {
    pub(crate) txn_next: u64,
    pub(crate) tree_next: u64,
    pub(crate) open: BTreeMap<u64, BTreeSet<u64>>,
}

impl Default for OpenTxns {
    fn default() -> Self {
        Self { txn_next: 1, tree_next: TREE_NEXT_FIRST, open: BTreeMap::new() }
    }
}

impl OpenTxns {
    pub(crate) fn apply(&mut self, record: TxnRecord) {
        match record {
            TxnRecord::Touch(txn, tree) => {
                self.open.entry(txn.0).or_default().insert(tree.0);
                self.txn_next = self.txn_next.max(txn.0 + 1);
            }
            TxnRecord::Commit(txn) | TxnRecord::Reverted(txn) => {
                self.open.remove(&txn.0);
                self.txn_next = self.txn_next.max(txn.0 + 1);
            }
            TxnRecord::TreeMade(tree) => self.tree_next = self.tree_next.max(tree.0 + 1),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![IMAGE_VERSION];
        bytes.extend_from_slice(&self.txn_next.to_le_bytes());
        bytes.extend_from_slice(&self.tree_next.to_le_bytes());
        let count = |n: usize| u32::try_from(n).expect("open transactions are bounded by sessions").to_le_bytes();
        bytes.extend_from_slice(&count(self.open.len()));
        for (txn, trees) in &self.open {
            bytes.extend_from_slice(&txn.to_le_bytes());
            bytes.extend_from_slice(&count(trees.len()));
            for tree in trees {
                bytes.extend_from_slice(&tree.to_le_bytes());
            }
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StorageError> {
        let mut reader = Reader { bytes };
        let version = reader.u8()?;
        if version != IMAGE_VERSION {
            return Err(damaged("version of the transaction table", u64::from(version)));
        }
        let mut table = Self { txn_next: reader.u64()?, tree_next: reader.u64()?, open: BTreeMap::new() };
        for _ in 0..reader.u32()? {
            let txn = reader.u64()?;
            let mut trees = BTreeSet::new();
            for _ in 0..reader.u32()? {
                trees.insert(reader.u64()?);
            }
            table.open.insert(txn, trees);
        }
        if !reader.bytes.is_empty() {
            return Err(damaged("bytes behind the transaction table", reader.bytes.len() as u64));
        }
        Ok(table)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StorageError> {
        let Some((first, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(damaged("bytes left of a transaction record", self.bytes.len() as u64));
        };
        self.bytes = rest;
        Ok(*first)
    }

    fn u8(&mut self) -> Result<u8, StorageError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, StorageError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, StorageError> {
        self.take().map(u64::from_le_bytes)
    }
}

fn damaged(what: &str, found: u64) -> StorageError {
    StorageError::Damage { page: PageId::NONE, offset: 0, detail: format!("{what}: {found}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_table_read_back() {
        let records = [
            TxnRecord::TreeMade(TreeId(200)),
            TxnRecord::Touch(TxnId(5), TreeId(1)),
            TxnRecord::Touch(TxnId(5), TreeId(200)),
            TxnRecord::Touch(TxnId(6), TreeId(1)),
            TxnRecord::Commit(TxnId(6)),
            TxnRecord::Touch(TxnId(9), TreeId(3)),
            TxnRecord::Reverted(TxnId(9)),
        ];
        let mut table = OpenTxns::default();
        for record in records {
            assert_eq!(TxnRecord::decode(&record.encode()).unwrap(), record);
            table.apply(record);
        }
        assert_eq!(table, OpenTxns { txn_next: 10, tree_next: 201, open: BTreeMap::from([(5, BTreeSet::from([1, 200]))]) });
        let bytes = table.encode();
        assert_eq!(OpenTxns::decode(&bytes).unwrap(), table);
        for length in 0..bytes.len() {
            assert!(OpenTxns::decode(&bytes[..length]).is_err(), "cut at {length}");
        }
    }
}
