//! What writers of a table leave for an index that is being built beside them.
//!
//! ```text
//! side tree:  entry key ─► 0              the entry is gone
//!             entry key ─► 1 | its row    the entry is there, with these included columns
//! ```
//! The last word on an entry is the side tree's, whatever the build's scan has seen of its row: so neither needs to know
//! where the other is, and a writer that rolls back takes its word back with everything else.
//!
//! Invariants: 1. after each call that returns, every entry whose row was written has its word in the side tree, by the
//! same transaction. 2. A duplicate is none of a writer's business here: the build finds it and pauses.
//! Failure: storage's; 10681 for a row whose included columns do not fit in line.

use crate::exec::table_writer::{Keys, TableRows, WriteError, is_kept, join, kept_by};
use thawdb_catalog::{IndexDef, TableDef, TreeLayout};
use thawdb_storage::{Row, TreeId, Txn};
use thawdb_types::error::message;
use thawdb_types::key::{KeyBuffer, encode_arrays};
use thawdb_types::row::{INLINE_BYTES_MAX, RowBuffer, RowEncoder};

pub(crate) struct SideWriter {
    table: TableDef,
    layout: TreeLayout,
    tree: TreeId,
}

impl SideWriter {
    /// The writer for a table's index being built, if one is.
    pub(crate) fn new(table: &TableDef) -> Option<Self> {
        let shadow = table.with_building()?;
        let index = shadow.indexes.len() - 1;
        let tree = shadow.indexes[index].tree;
        Some(Self { layout: TreeLayout::new(&shadow, index), tree, table: shadow })
    }

    fn index(&self) -> &IndexDef {
        self.table.indexes.last().expect("a table has its rows' index")
    }

    /// Whether what the index has of a row depends on a column of the table.
    pub(crate) fn has(&self, column: usize) -> bool {
        self.index().depends_on(column)
    }

    fn own_keys(&self, rows: TableRows<'_>) -> KeyBuffer {
        let mut keys = KeyBuffer::default();
        encode_arrays(&rows.of(&self.layout.key_columns[..self.layout.own_key_count]), self.layout.own_key(), &mut keys);
        keys
    }

    /// Says that the entries of these rows are there, of those that the index's filter keeps.
    pub(crate) fn inserted(&self, txn: &mut Txn, rows: TableRows<'_>, row_keys: &Keys) -> Result<(), WriteError> {
        let own = self.own_keys(rows);
        let arrays = rows.of(&self.layout.row_columns);
        let mut encoder = RowEncoder::new(&self.layout.row, &arrays);
        let (mut bytes, mut entry, mut word) = (RowBuffer::default(), Vec::new(), Vec::new());
        let kept = kept_by(self.index(), &self.table.columns, rows);
        for row in (0..rows.rows).filter(|row| is_kept(&kept, *row)) {
            encoder.encode(row, &mut bytes)?;
            if !bytes.large().is_empty() {
                let size: usize = bytes.inline().len() + bytes.large().iter().map(Vec::len).sum::<usize>();
                return Err(message(10681, &[&size, &INLINE_BYTES_MAX]).into());
            }
            word.clear();
            word.push(1);
            word.extend_from_slice(bytes.inline());
            join(&mut entry, own.key(row), row_keys.get(row));
            self.say(txn, &entry, &word)?;
        }
        Ok(())
    }

    /// Says that the entries of these rows are gone.
    pub(crate) fn deleted(&self, txn: &mut Txn, rows: TableRows<'_>, row_keys: &Keys) -> Result<(), WriteError> {
        let own = self.own_keys(rows);
        let mut entry = Vec::new();
        for row in 0..rows.rows {
            join(&mut entry, own.key(row), row_keys.get(row));
            self.say(txn, &entry, &[0])?;
        }
        Ok(())
    }

    fn say(&self, txn: &mut Txn, entry: &[u8], word: &[u8]) -> Result<(), WriteError> {
        if !txn.update(self.tree, entry, Row::inline(word))? {
            txn.insert(self.tree, entry, Row::inline(word))?;
        }
        Ok(())
    }
}
