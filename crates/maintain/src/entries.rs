//! The entries that rows have in an index: own key and row key, and the included columns packed for a sort.
//!
//! Both builds ask here, and the bytes are those that DML writes: `catalog::TreeLayout` and the codecs of `types` decide.
//! It keeps its buffers from call to call and holds no rows.

use crate::columns::{Keys, append_column};
use crate::index_build::BuildError;
use std::sync::Arc;
use thawdb_catalog::sort_row::pack;
use thawdb_catalog::{IndexFilter, TableDef, TreeLayout};
use thawdb_storage::{ReadView, RowBlock};
use thawdb_types::ColumnBuilder;
use thawdb_types::key::{KeyBuffer, encode_arrays};
use thawdb_types::row::{RowBuffer, RowEncoder};

/// Bytes of a row's number at the end of its key.
const ROW_NUMBER_BYTES: usize = size_of::<u64>();

/// Makes entries of one index.
pub(crate) struct EntryMaker {
    source: TreeLayout,
    pub(crate) layout: TreeLayout,
    filter: Option<Arc<IndexFilter>>,
    /// The index holds the rows themselves.
    holds_rows: bool,
    keys: KeyBuffer,
    entry: Vec<u8>,
    row: RowBuffer,
    packed: Vec<u8>,
}

impl EntryMaker {
    /// For index `index` of `table`, from rows as `source` lays them out.
    pub(crate) fn new(source: &TableDef, table: &TableDef, index: usize) -> Self {
        Self {
            source: TreeLayout::new(source, 0),
            layout: TreeLayout::new(table, index),
            filter: table.indexes[index].filter.clone(),
            holds_rows: index == 0,
            keys: KeyBuffer::default(),
            entry: Vec::new(),
            row: RowBuffer::default(),
            packed: Vec::new(),
        }
    }

    /// Hands on the entry of every row of `blocks` that the index's filter keeps: its key, and its row as [`pack`] makes it, empty where the index keeps
    /// nothing beside keys. `number` counts the rows before, where rows are numbered anew.
    pub(crate) fn each(
        &mut self,
        table: &TableDef,
        blocks: &[RowBlock],
        view: &ReadView,
        number: u64,
        hand_on: &mut dyn FnMut(&[u8], &[u8]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let rows: usize = blocks.iter().map(RowBlock::len).sum();
        let column = |column: &usize| {
            let mut builder = ColumnBuilder::new(&table.columns[*column].sql_type, rows);
            append_column(&self.source, *column, blocks, view, &mut builder)?;
            Ok::<_, BuildError>(builder.finish())
        };
        let own_count = self.layout.own_key_count;
        let own = self.layout.key_columns[..own_count].iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let stored = self.layout.row_columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let kept = match &self.filter {
            Some(filter) => Some(filter.kept(&table.columns, rows, |at| column(&at))?),
            None => None,
        };
        let Self { keys, entry, row: buffer, packed, .. } = self;
        encode_arrays(&own, self.layout.own_key(), keys);
        let mut encoder = RowEncoder::new(&self.layout.row, &stored);
        let mut first = 0;
        for block in blocks {
            let row_keys = Keys::new(block);
            for row in 0..block.len() {
                let at = first + row;
                if kept.as_ref().is_some_and(|kept| !kept[at]) {
                    continue;
                }
                entry.clear();
                if own_count > 0 {
                    entry.extend_from_slice(keys.key(at));
                }
                match (self.holds_rows, self.layout.row_number) {
                    (true, false) => {}
                    (true, true) => entry.extend_from_slice(&(number + at as u64 + 1).to_be_bytes()),
                    (false, _) => row_keys.append(row, entry),
                }
                if stored.is_empty() {
                    hand_on(entry, &[])?;
                    continue;
                }
                encoder.encode(at, buffer)?;
                pack(buffer, packed);
                hand_on(entry, packed)?;
            }
            first += block.len();
        }
        Ok(())
    }

    /// Last bytes of the entries' keys that come in order where rows come in the order of the table: the row's key, if it
    /// takes the same bytes in every entry.
    pub(crate) fn ordered_bytes(&self) -> usize {
        let row_key = self.source.fixed_key_offset(self.source.key.len());
        match (self.holds_rows, row_key) {
            (false, Some(bytes)) => bytes + if self.source.row_number { ROW_NUMBER_BYTES } else { 0 },
            _ => 0,
        }
    }
}
