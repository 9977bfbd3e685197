//! One tree's part of a load: sorted rows, inserted below the greatest key that is there and appended above it.
//!
//! ```text
//! ExternalSort ─► key, payload ─┬─ key <= greatest ─► Txn::insert, uniqueness asked of the tree
//!                               └─ key >  greatest ─► BulkAppender, uniqueness is that of neighbours
//! payload   nothing for a tree whose rows are all the same bytes, else the packed row (`catalog::sort_row`)
//! ```
//! Invariant: in a unique index no two entries share the index's own key, be they of the load or of the tree: equal ones
//! are neighbours in the sort, and the greatest entry there is the neighbour of the first appended.
//!
//! The transaction is borrowed for [`ROWS_AT_ONCE`] rows at most; between them cancellation is asked for.

use crate::context::StatementHost;
use crate::exec::table_writer::{Keys, TableRows, TableWriter, WriteError, with_row};
use std::ops::Bound;
use thawdb_catalog::sort_row::{pack, unpack};
use thawdb_catalog::{DatabaseId, IndexDef, TableDef, TreeLayout};
use thawdb_storage::sort::{ExternalSort, SortedRows};
use thawdb_storage::{KeyRange, ReadView, Row, ScanDirection, StorageError, TreeId, Txn};
use thawdb_types::SqlError;
use thawdb_types::key::{Damage, range_end};
use thawdb_types::row::RowBuffer;

/// Rows between two looks at cancellation: a tenth of a second's work.
const ROWS_AT_ONCE: usize = 262_144;

#[derive(Debug)]
pub(super) enum LoadError {
    Storage(StorageError),
    Sql(SqlError),
    /// The second of two rows with one key.
    Duplicate {
        key: Vec<u8>,
        row: Vec<u8>,
    },
}

impl From<StorageError> for LoadError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<SqlError> for LoadError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<Damage> for LoadError {
    fn from(damage: Damage) -> Self {
        Self::Storage(StorageError::Bug(damage.detail))
    }
}

/// Entries of one index other than the first, on their way through a sort.
pub(super) struct Entries {
    layout: TreeLayout,
    sort: ExternalSort,
}

impl Entries {
    pub(super) fn new(layout: TreeLayout, sort: ExternalSort) -> Self {
        Self { layout, sort }
    }

    /// Takes the entries of some rows.
    pub(super) fn push(&mut self, writer: &TableWriter<'_>, index: usize, rows: TableRows<'_>, keys: &Keys) -> Result<(), WriteError> {
        let own = writer.own_keys(index, rows);
        let (mut entry, mut packed) = (Vec::new(), Vec::new());
        let mut push = |row: usize, payload: &[u8]| {
            entry.clear();
            entry.extend_from_slice(own.key(row));
            entry.extend_from_slice(keys.get(row));
            self.sort.push(&entry, payload)
        };
        if self.layout.row_columns.is_empty() {
            return (0..rows.rows).try_for_each(|row| Ok(push(row, &[])?));
        }
        writer.for_each_row(index, rows, |row, bytes| {
            pack(bytes, &mut packed);
            Ok(push(row, &packed)?)
        })
    }

    pub(super) fn load(
        self,
        index: &IndexDef,
        greatest: Option<Vec<u8>>,
        database: DatabaseId,
        host: &mut dyn StatementHost,
    ) -> Result<(), LoadError> {
        let mut empty = RowBuffer::default();
        if self.layout.row_columns.is_empty() {
            self.layout.row.encode(&[], &mut empty)?;
        }
        let unique = if index.unique { Uniqueness::OwnKey(&self.layout) } else { Uniqueness::None };
        TreeLoad { tree: index.tree, unique, empty, greatest }.run(self.sort.finish()?, database, host)
    }
}

/// Which bytes of keys no two rows may share.
enum Uniqueness<'a> {
    None,
    WholeKey,
    OwnKey(&'a TreeLayout),
}

impl Uniqueness<'_> {
    fn part<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Damage> {
        match self {
            Self::OwnKey(layout) => Ok(&key[..key.len() - layout.row_key(key)?.len()]),
            Self::None | Self::WholeKey => Ok(key),
        }
    }
}

/// A tree, and what is to be known of it before sorted rows go in.
pub(super) struct TreeLoad<'a> {
    tree: TreeId,
    unique: Uniqueness<'a>,
    /// The row of an empty payload.
    empty: RowBuffer,
    greatest: Option<Vec<u8>>,
}

impl TreeLoad<'_> {
    /// A load of the rows' own tree.
    pub(super) fn of_rows(tree: TreeId, greatest: Option<Vec<u8>>) -> Self {
        Self { tree, unique: Uniqueness::WholeKey, empty: RowBuffer::default(), greatest }
    }

    /// Loads all rows.
    pub(super) fn run(&self, mut sorted: SortedRows, database: DatabaseId, host: &mut dyn StatementHost) -> Result<(), LoadError> {
        let mut last = match &self.greatest {
            Some(key) => Some(self.unique.part(key)?.to_vec()),
            None => None,
        };
        let mut next = owned(sorted.next()?);
        while let Some((key, payload)) = next {
            host.check_cancelled()?;
            let txn = host.txn(database)?;
            next = if self.greatest.as_ref().is_some_and(|greatest| key <= *greatest) {
                self.insert_some(txn, &mut sorted, (key, payload))?
            } else {
                self.append_some(txn, &mut sorted, (key, payload), &mut last)?
            };
        }
        Ok(())
    }

    /// Inserts rows up to the greatest key; the row it did not insert, if any.
    fn insert_some(&self, txn: &mut Txn, sorted: &mut SortedRows, first: OwnedRow) -> Result<Option<OwnedRow>, LoadError> {
        self.insert(txn, &first.0, &first.1)?;
        for _ in 1..ROWS_AT_ONCE {
            match sorted.next()? {
                None => return Ok(None),
                Some((key, payload)) if self.greatest.as_ref().is_some_and(|greatest| key <= greatest.as_slice()) => {
                    self.insert(txn, key, payload)?;
                }
                beyond => return Ok(owned(beyond)),
            }
        }
        Ok(owned(sorted.next()?))
    }

    fn insert(&self, txn: &mut Txn, key: &[u8], payload: &[u8]) -> Result<(), LoadError> {
        match self.with_payload(payload, |row| txn.insert(self.tree, key, row)) {
            Err(LoadError::Storage(StorageError::Duplicate { .. })) => return Err(self.duplicate(key, payload)),
            other => other?,
        }
        if let Uniqueness::OwnKey(_) = self.unique {
            let own = self.unique.part(key)?;
            let range = KeyRange { start: Bound::Included(own.to_vec()), end: Bound::Excluded(range_end(own)) };
            if txn.any_live_in(self.tree, &range, Some(key))? {
                return Err(self.duplicate(key, payload));
            }
        }
        Ok(())
    }

    /// Appends rows; the row it did not append, if any. `last` is what the row before has of what must be unique.
    fn append_some(
        &self,
        txn: &mut Txn,
        sorted: &mut SortedRows,
        first: OwnedRow,
        last: &mut Option<Vec<u8>>,
    ) -> Result<Option<OwnedRow>, LoadError> {
        let mut appender = txn.bulk_append(self.tree)?;
        let mut push = |key: &[u8], payload: &[u8]| -> Result<(), LoadError> {
            if !matches!(self.unique, Uniqueness::None) {
                let part = self.unique.part(key)?;
                if last.as_deref() == Some(part) {
                    return Err(self.duplicate(key, payload));
                }
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(part);
            }
            self.with_payload(payload, |row| appender.push(key, row))
        };
        push(&first.0, &first.1)?;
        for _ in 1..ROWS_AT_ONCE {
            match sorted.next()? {
                Some((key, payload)) => push(key, payload)?,
                None => {
                    appender.finish()?;
                    return Ok(None);
                }
            }
        }
        appender.finish()?;
        Ok(owned(sorted.next()?))
    }

    fn with_payload(&self, payload: &[u8], write: impl FnOnce(Row<'_>) -> Result<(), StorageError>) -> Result<(), LoadError> {
        if payload.is_empty() {
            return Ok(with_row(&self.empty, write)?);
        }
        let (inline, parts) = unpack(payload)?;
        Ok(write(Row { inline, large: &parts })?)
    }

    fn duplicate(&self, key: &[u8], payload: &[u8]) -> LoadError {
        let row = unpack(payload).map_or(Vec::new(), |(inline, _)| inline.to_vec());
        LoadError::Duplicate { key: key.to_vec(), row }
    }
}

type OwnedRow = (Vec<u8>, Vec<u8>);

fn owned(row: Option<(&[u8], &[u8])>) -> Option<OwnedRow> {
    row.map(|(key, payload)| (key.to_vec(), payload.to_vec()))
}

/// The greatest key of a tree in a view.
pub(super) fn greatest(view: &ReadView, tree: TreeId) -> Result<Option<Vec<u8>>, StorageError> {
    let mut scan = view.scan(tree, KeyRange::ALL, ScanDirection::Backward)?;
    Ok(scan.next_block()?.map(|block| block.key(0).to_vec()))
}

/// The values of index `index`'s key as 2627 and 2601 show them, for an entry of that index.
pub(super) fn key_text(table: &TableDef, index: usize, key: &[u8], row: &[u8], host: &mut dyn StatementHost) -> Result<String, SqlError> {
    if index == 0 {
        return Ok(thawdb_catalog::key_text(table, index, key, row));
    }
    let layout = TreeLayout::new(table, index);
    let row_key = match layout.row_key(key) {
        Ok(row_key) => row_key,
        Err(damage) => return Err(host.storage_error(table.database, StorageError::Bug(damage.detail))),
    };
    let found = host.txn(table.database)?.lock_row(table.indexes[0].tree, row_key);
    let found = found.map_err(|error| host.storage_error(table.database, error))?;
    Ok(thawdb_catalog::key_text(table, index, row_key, found.as_ref().map_or(&[], |block| block.value(0))))
}
