//! Large parts.
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{LargeRef, TxnId};
use crate::store::Store;
use crate::units::TreeInfo;

pub(crate) fn read(_store: &Store, _at: LargeRef) -> Result<Vec<u8>, StorageError> {
    Err(StorageError::Bug("large".into()))
}

pub(crate) fn write(_database: &Database, _info: &TreeInfo, _me: TxnId, _part: &[u8]) -> Result<LargeRef, StorageError> {
    Err(StorageError::Bug("large".into()))
}
