//! Whether every index of a table agrees with its rows.
//!
//! ```text
//! rows  ─ what each index must hold for them ─► sum an index ┐ equal ─► they agree
//! index ─ what it holds ──────────────────────► sum ─────────┘ not equal ─► each entry is looked up, both ways
//! ```
//! An entry is its whole key and the values of its INCLUDE columns, byte for byte. The sum does not depend on order, so
//! both sides are read as they lie, and no memory grows with the table.
//!
//! Invariants: 1. a finding is told only after the entry itself was looked up and not found as it should be. 2. The list
//! of findings is bounded ([`FINDINGS_MAX`]); their count is not.
//!
//! Everything is read under one view: writers go on and are not seen. Locks: none. Failure: storage's errors and bytes that
//! do not decode end the check of the table. Pages, maps and order of keys are storage's own check.

use crate::columns::append_column;
use crate::index_build::BuildError;
use arrow_array::ArrayRef;
use thawdb_catalog::{TableDef, TreeLayout};
use thawdb_storage::check::EntrySum;
use thawdb_storage::{KeyRange, ReadView, RowBlock, ScanDirection};
use thawdb_types::key::{KeyBuffer, KeyColumn, encode_array_value, encode_arrays};
use thawdb_types::{Collation, ColumnBuilder, SqlError};

/// Findings kept of one index: enough to see a pattern, few enough to read.
pub const FINDINGS_MAX: usize = 100;
/// Rows decoded together.
const DECODE_ROWS: usize = 4_096;

/// What is wrong between an index and its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexFinding {
    /// A row has no entry (8951): the entry's key.
    Missing(Vec<u8>),
    /// An entry has no row, or another one's values (8952): its key.
    Extra(Vec<u8>),
}

/// One index's part of a check.
#[derive(Debug, Clone, Default)]
pub struct IndexCheck {
    /// Entries it has.
    pub entries: u64,
    /// What was found, the first [`FINDINGS_MAX`].
    pub findings: Vec<IndexFinding>,
    /// How much was found.
    pub finding_count: u64,
}

/// A table's check.
#[derive(Debug, Clone, Default)]
pub struct TableCheck {
    /// Rows it has.
    pub rows: u64,
    /// Its other indexes, in the order of the definition from the second on.
    pub indexes: Vec<IndexCheck>,
}

/// Checks all indexes of `table` as `view` sees them; `between` is called every some thousand rows and may end it.
///
/// # Errors
/// Storage's, and what `between` fails with.
pub fn check_table(table: &TableDef, view: &ReadView, between: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<TableCheck, BuildError> {
    let layouts: Vec<TreeLayout> = (0..table.indexes.len()).map(|index| TreeLayout::new(table, index)).collect();
    let mut check = TableCheck { rows: 0, indexes: vec![IndexCheck::default(); layouts.len() - 1] };
    let mut expected = vec![EntrySum::default(); layouts.len()];
    for_each_chunk(view, table, 0, between, &mut |blocks| {
        check.rows += blocks.iter().map(|block| block.len() as u64).sum::<u64>();
        for (index, layout) in layouts.iter().enumerate().skip(1) {
            expected_entries(table, index, (&layouts[0], layout), view, blocks, &mut |entry, _| {
                expected[index].add(entry);
                Ok(())
            })?;
        }
        Ok(())
    })?;
    for index in 1..layouts.len() {
        let mut found = EntrySum::default();
        for_each_chunk(view, table, index, between, &mut |blocks| {
            present_entries(&layouts[index], table, view, blocks, &mut |entry, _| {
                found.add(entry);
                Ok(())
            })
        })?;
        check.indexes[index - 1].entries = found.count;
        if found != expected[index] {
            compare(table, &layouts, index, view, between, &mut check.indexes[index - 1])?;
        }
    }
    Ok(check)
}

/// Looks every entry of one index up, from the rows and from the index.
fn compare(
    table: &TableDef,
    layouts: &[TreeLayout],
    index: usize,
    view: &ReadView,
    between: &mut dyn FnMut() -> Result<(), SqlError>,
    check: &mut IndexCheck,
) -> Result<(), BuildError> {
    let tree = table.indexes[index].tree;
    let layout = &layouts[index];
    for_each_chunk(view, table, 0, between, &mut |blocks| {
        expected_entries(table, index, (&layouts[0], layout), view, blocks, &mut |_, key| {
            if view.get(tree, key)?.is_none() {
                add(check, IndexFinding::Missing(key.to_vec()));
            }
            Ok(())
        })
    })?;
    for_each_chunk(view, table, index, between, &mut |blocks| {
        present_entries(layout, table, view, blocks, &mut |entry, key| {
            let mut agrees = false;
            if let Some(block) = view.get(table.rows().tree, layout.row_key(key)?)? {
                expected_entries(table, index, (&layouts[0], layout), view, &[block], &mut |wanted, _| {
                    agrees = wanted == entry;
                    Ok(())
                })?;
            }
            if !agrees {
                add(check, IndexFinding::Extra(key.to_vec()));
            }
            Ok(())
        })
    })
}

fn add(check: &mut IndexCheck, finding: IndexFinding) {
    check.finding_count += 1;
    if check.findings.len() < FINDINGS_MAX {
        check.findings.push(finding);
    }
}

/// Reads a tree of the table some thousand rows at a time.
fn for_each_chunk(
    view: &ReadView,
    table: &TableDef,
    index: usize,
    between: &mut dyn FnMut() -> Result<(), SqlError>,
    work: &mut dyn FnMut(&[RowBlock]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut scan = view.scan(table.indexes[index].tree, KeyRange::ALL, ScanDirection::Forward)?;
    loop {
        let (mut blocks, mut rows) = (Vec::new(), 0);
        while rows < DECODE_ROWS {
            let Some(block) = scan.next_block()? else { break };
            rows += block.len();
            blocks.push(std::mem::take(block));
        }
        if blocks.is_empty() {
            return Ok(());
        }
        work(&blocks)?;
        between()?;
    }
}

/// The columns of INCLUDE as bytes that differ when the values do: text by its code points, whatever its collation.
fn included_columns(table: &TableDef, layout: &TreeLayout) -> Vec<KeyColumn> {
    let binary = Collation::by_name("Latin1_General_BIN2").unwrap_or(Collation::DEFAULT);
    let column = |at: &usize| KeyColumn::ascending(table.columns[*at].sql_type.with_collation(binary), true);
    layout.row_columns.iter().map(column).collect()
}

/// Whole key of each row of some blocks.
fn keys(blocks: &[RowBlock]) -> impl Iterator<Item = &[u8]> {
    blocks.iter().flat_map(|block| (0..block.len()).map(|index| block.key(index)))
}

/// The entries that rows must have in index `index`, of `layout`: the entry with its INCLUDE values, and its key alone.
/// Rows that its filter leaves out have none.
fn expected_entries(
    table: &TableDef,
    index: usize,
    (rows, layout): (&TreeLayout, &TreeLayout),
    view: &ReadView,
    blocks: &[RowBlock],
    take: &mut dyn FnMut(&[u8], &[u8]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let read = |column: usize| -> Result<ArrayRef, BuildError> {
        let mut builder = ColumnBuilder::new(&table.columns[column].sql_type, DECODE_ROWS);
        append_column(rows, column, blocks, view, &mut builder)?;
        Ok(builder.finish())
    };
    let own = layout.key_columns[..layout.own_key_count].iter().map(|column| read(*column)).collect::<Result<Vec<_>, _>>()?;
    let included = layout.row_columns.iter().map(|column| read(*column)).collect::<Result<Vec<_>, _>>()?;
    let row_count = blocks.iter().map(RowBlock::len).sum();
    let kept = match &table.indexes[index].filter {
        Some(filter) => Some(filter.kept(&table.columns, row_count, read)?),
        None => None,
    };
    let columns = included_columns(table, layout);
    let mut own_keys = KeyBuffer::default();
    encode_arrays(&own, layout.own_key(), &mut own_keys);
    let mut entry = Vec::new();
    for (row, row_key) in keys(blocks).enumerate().filter(|(row, _)| kept.as_ref().is_none_or(|kept| kept[*row])) {
        entry.clear();
        entry.extend_from_slice(own_keys.key(row));
        entry.extend_from_slice(row_key);
        let key_bytes = entry.len();
        included.iter().zip(&columns).for_each(|(array, column)| encode_array_value(array, row, column, &mut entry));
        take(&entry, &entry[..key_bytes])?;
    }
    Ok(())
}

/// The entries an index has, likewise.
fn present_entries(
    layout: &TreeLayout,
    table: &TableDef,
    view: &ReadView,
    blocks: &[RowBlock],
    take: &mut dyn FnMut(&[u8], &[u8]) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut included = Vec::with_capacity(layout.row_columns.len());
    for (position, column) in layout.row_columns.iter().enumerate() {
        let mut builder = ColumnBuilder::new(&table.columns[*column].sql_type, DECODE_ROWS);
        crate::columns::append_row_column(layout, position, blocks, view, &mut builder)?;
        included.push(builder.finish());
    }
    let columns = included_columns(table, layout);
    let mut entry = Vec::new();
    for (row, key) in keys(blocks).enumerate() {
        entry.clear();
        entry.extend_from_slice(key);
        included.iter().zip(&columns).for_each(|(array, column)| encode_array_value(array, row, column, &mut entry));
        take(&entry, key)?;
    }
    Ok(())
}
