//! Stored rows to columns: key columns from keys, row columns by the row codec, the locator as it is.
//!
//! ```text
//! blocks of a scan ─► plain and uniform: values gathered by their places in the page copy ─┐
//!                  ─► else Picked { block, row }... ─► one loop a column ──────────────────┴─► ColumnBuilder
//! ```
//! Integers at a fixed place of the key take a loop of their own; they are most clustered keys.

use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::take::take;
use std::sync::Arc;
use thawdb_catalog::{ColumnPlace, TreeLayout};
use thawdb_storage::{PageId, PlainRows, ReadView, RowBlock, StorageError};
use thawdb_types::key::{Damage, KeyColumn, decode_value, skip_value};
use thawdb_types::row::{PackedRows, RowSource, Uniform};
use thawdb_types::{ColumnBuilder, SqlType};

/// What reading rows may fail with.
#[derive(Debug)]
pub(super) struct ReadError(pub(super) StorageError);

impl From<Damage> for ReadError {
    fn from(damage: Damage) -> Self {
        Self(StorageError::Damage { page: PageId::NONE, offset: 0, detail: damage.detail })
    }
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self(error)
    }
}

/// All rows of a block.
struct Whole<'a> {
    block: &'a RowBlock,
    view: &'a ReadView,
}

/// Some rows of some blocks.
struct Picked<'a> {
    blocks: &'a [RowBlock],
    picks: &'a [(u32, u32)],
    view: &'a ReadView,
}

/// Rows whose keys can be asked as well.
trait KeyedRows: RowSource<Error = ReadError> {
    fn key(&self, index: usize) -> &[u8];
}

fn large(view: &ReadView, block: &RowBlock, row: usize, ordinal: usize) -> Result<Vec<u8>, ReadError> {
    let part = block.large(row).get(ordinal).ok_or_else(|| Damage::new(format!("a row names large part {ordinal} and has none")))?;
    Ok(view.read_large(*part)?)
}

impl RowSource for Whole<'_> {
    type Error = ReadError;

    fn len(&self) -> usize {
        self.block.len()
    }

    #[inline]
    fn row(&self, index: usize) -> &[u8] {
        self.block.value(index)
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, ReadError> {
        large(self.view, self.block, index, ordinal)
    }
}

impl KeyedRows for Whole<'_> {
    #[inline]
    fn key(&self, index: usize) -> &[u8] {
        self.block.key(index)
    }
}

impl RowSource for Picked<'_> {
    type Error = ReadError;

    fn len(&self) -> usize {
        self.picks.len()
    }

    #[inline]
    fn row(&self, index: usize) -> &[u8] {
        let (block, row) = self.picks[index];
        self.blocks[block as usize].value(row as usize)
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, ReadError> {
        let (block, row) = self.picks[index];
        large(self.view, &self.blocks[block as usize], row as usize, ordinal)
    }
}

impl KeyedRows for Picked<'_> {
    #[inline]
    fn key(&self, index: usize) -> &[u8] {
        let (block, row) = self.picks[index];
        self.blocks[block as usize].key(row as usize)
    }
}

/// What a scan reads: a column of the table, or the locator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Column {
        place: ColumnPlace,
        sql_type: SqlType,
    },
    /// The row's whole key.
    Locator {
        of_secondary: bool,
    },
}

/// Blocks of a scan, and which of them hold rows that were all written by the layout.
pub(super) struct Fetched<'b> {
    blocks: &'b [RowBlock],
    uniform: Vec<Option<Uniform>>,
    rows: usize,
}

fn packed(plain: PlainRows<'_>) -> PackedRows<'_> {
    PackedRows { bytes: plain.page, starts: plain.values_at, ends: plain.values_end }
}

impl<'b> Fetched<'b> {
    /// `of_rows` says whether columns of the row, and not the key's only, are going to be read.
    pub(super) fn new(layout: &TreeLayout, blocks: &'b [RowBlock], of_rows: bool) -> Self {
        let uniform = |block: &RowBlock| block.plain().filter(|_| of_rows).and_then(|plain| layout.row.uniform(packed(plain)));
        Self { blocks, uniform: blocks.iter().map(uniform).collect(), rows: blocks.iter().map(RowBlock::len).sum() }
    }

    /// Rows in all blocks.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Places among all rows of rows named by block and row.
    fn positions(&self, picks: &[(u32, u32)]) -> UInt32Array {
        let before: Vec<u32> = self
            .blocks
            .iter()
            .scan(0, |next, block| {
                let start = *next;
                *next += block.len() as u32;
                Some(start)
            })
            .collect();
        picks.iter().map(|(block, row)| before[*block as usize] + row).collect::<Vec<_>>().into()
    }

    /// The blocks.
    pub(super) fn blocks(&self) -> &'b [RowBlock] {
        self.blocks
    }
}

/// Whether reading `wanted` needs whole keys.
pub(super) fn needs_whole_keys(layout: &TreeLayout, wanted: &Wanted) -> bool {
    match wanted {
        Wanted::Locator { .. } => true,
        Wanted::Column { place: ColumnPlace::Key(at), .. } => fixed_integer(layout, *at).is_none(),
        Wanted::Column { .. } => false,
    }
}

/// Column `wanted` of the rows of `fetched`: of all of them, or of `picks` only.
pub(super) fn decode(
    layout: &TreeLayout,
    wanted: &Wanted,
    fetched: &Fetched<'_>,
    picks: Option<&[(u32, u32)]>,
    view: &ReadView,
) -> Result<ArrayRef, ReadError> {
    let blocks = fetched.blocks;
    let rows = picks.map_or(fetched.rows, <[_]>::len);
    match wanted {
        Wanted::Locator { of_secondary } => locators(layout, *of_secondary, blocks, picks, view, rows),
        Wanted::Column { place, sql_type } => {
            if let (Some(picks), ColumnPlace::Key(at)) = (picks, place)
                && fixed_integer(layout, *at).is_some()
            {
                // Whole keys may not be there; the loop over all of them is shorter than spelling a few.
                let all = decode(layout, wanted, fetched, None, view)?;
                return Ok(take(&all, &fetched.positions(picks), None).expect("picks lie within the blocks"));
            }
            let mut builder = ColumnBuilder::new(sql_type, rows);
            match picks {
                Some(picks) => append(layout, *place, &Picked { blocks, picks, view }, &mut builder)?,
                None => {
                    for (block, uniform) in blocks.iter().zip(&fetched.uniform) {
                        if !append_plain(layout, *place, block, *uniform, &mut builder)? {
                            append(layout, *place, &Whole { block, view }, &mut builder)?;
                        }
                    }
                }
            }
            Ok(builder.finish())
        }
    }
}

/// The short loops over a plain block; false if there is none for it.
fn append_plain(
    layout: &TreeLayout,
    place: ColumnPlace,
    block: &RowBlock,
    uniform: Option<Uniform>,
    builder: &mut ColumnBuilder,
) -> Result<bool, Damage> {
    let Some(plain) = block.plain() else { return Ok(false) };
    match (place, uniform) {
        (ColumnPlace::Row(position), Some(uniform)) => layout.row.decode_packed(position, packed(plain), uniform, builder),
        (ColumnPlace::Key(at), _) => match fixed_integer(layout, at) {
            Some(offset) => append_plain_key(&layout.key[at], offset, plain, builder),
            None => Ok(false),
        },
        _ => Ok(false),
    }
}

/// Where key column `at` lies in every key, if it is an integer that has loops of its own.
fn fixed_integer(layout: &TreeLayout, at: usize) -> Option<usize> {
    let column = &layout.key[at];
    let has_loop =
        matches!(column.sql_type, SqlType::Int | SqlType::Date | SqlType::BigInt | SqlType::DateTime | SqlType::DateTime2 { .. });
    layout.fixed_key_offset(at).filter(|_| has_loop && !column.nullable)
}

/// An integer of the key, of which the page's prefix may hold the first bytes.
fn append_plain_key(column: &KeyColumn, offset: usize, plain: PlainRows<'_>, builder: &mut ColumnBuilder) -> Result<bool, Damage> {
    let turn = if column.descending { !0 } else { 0 };
    match builder {
        ColumnBuilder::Int32(b) => {
            let width = size_of::<u32>();
            let values = key_integers(plain, offset, width, |value| ((value as u32 ^ turn as u32) ^ 1 << 31) as i32)?;
            b.append_slice(&values);
        }
        ColumnBuilder::Int64(b) => {
            let values = key_integers(plain, offset, size_of::<u64>(), |value| ((value ^ turn) ^ 1 << 63) as i64)?;
            b.append_slice(&values);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The `width` big-endian bytes at `offset` of every key.
fn key_integers<T>(plain: PlainRows<'_>, offset: usize, width: usize, convert: impl Fn(u64) -> T) -> Result<Vec<T>, Damage> {
    let from_prefix = plain.prefix.len().saturating_sub(offset).min(width);
    let first = plain.prefix.iter().skip(offset).take(from_prefix).fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let left = width - from_prefix;
    let skipped = (offset + from_prefix).saturating_sub(plain.prefix.len());
    let high = if left < 8 { first << (8 * left) } else { 0 };
    let mut short = false;
    let values = plain.keys_at.iter().zip(plain.values_at).map(|(key_at, value_at)| {
        let at = usize::from(*key_at) + skipped;
        short |= at + left > usize::from(*value_at);
        // Eight bytes at once where the page has them; a key's last bytes are followed by its row and the slots.
        let low = match plain.page.get(at..at + 8).and_then(|bytes| bytes.first_chunk()) {
            Some(bytes) if left > 0 => u64::from_be_bytes(*bytes) >> (64 - 8 * left),
            _ => plain.page[at.min(plain.page.len())..].iter().take(left).fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        convert(high | low)
    });
    let values = values.collect();
    if short { Err(Damage::new(format!("a key ends before byte {}", offset + width))) } else { Ok(values) }
}

fn append(layout: &TreeLayout, place: ColumnPlace, rows: &impl KeyedRows, builder: &mut ColumnBuilder) -> Result<(), ReadError> {
    match place {
        ColumnPlace::Row(position) => layout.row.decode_column(position, rows, builder),
        ColumnPlace::Key(at) => append_key(layout, at, rows, builder),
        ColumnPlace::Elsewhere => panic!("the scan looks up columns its index lacks"),
    }
}

fn append_key(layout: &TreeLayout, at: usize, rows: &impl KeyedRows, builder: &mut ColumnBuilder) -> Result<(), ReadError> {
    let column = &layout.key[at];
    if let Some(offset) = layout.fixed_key_offset(at).filter(|_| !column.nullable) {
        if append_fixed(column, offset, rows, builder)? {
            return Ok(());
        }
    }
    for index in 0..rows.len() {
        let mut rest = rows.key(index);
        layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before))?;
        builder.append(&decode_value(&mut rest, column)?);
    }
    Ok(())
}

/// The loop for integers at a fixed place of the key; false if the column is not one.
fn append_fixed(column: &KeyColumn, offset: usize, rows: &impl KeyedRows, builder: &mut ColumnBuilder) -> Result<bool, Damage> {
    fn bytes<const W: usize>(key: &[u8], offset: usize, turn: u8) -> Result<[u8; W], Damage> {
        let found: [u8; W] = key
            .get(offset..offset + W)
            .and_then(|b| b.try_into().ok())
            .ok_or_else(|| Damage::new(format!("a key ends before byte {}", offset + W)))?;
        Ok(if turn == 0 { found } else { found.map(|b| !b) })
    }
    let turn = if column.descending { 0xFF } else { 0 };
    match builder {
        ColumnBuilder::Int32(b) if matches!(column.sql_type, SqlType::Int | SqlType::Date) => {
            for index in 0..rows.len() {
                b.append_value((u32::from_be_bytes(bytes(rows.key(index), offset, turn)?) ^ 1 << 31) as i32);
            }
        }
        ColumnBuilder::Int64(b) => {
            for index in 0..rows.len() {
                b.append_value((u64::from_be_bytes(bytes(rows.key(index), offset, turn)?) ^ 1 << 63) as i64);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn locators(
    layout: &TreeLayout,
    of_secondary: bool,
    blocks: &[RowBlock],
    picks: Option<&[(u32, u32)]>,
    view: &ReadView,
    rows: usize,
) -> Result<ArrayRef, ReadError> {
    fn fill(layout: &TreeLayout, of_secondary: bool, rows: &impl KeyedRows, builder: &mut BinaryBuilder) -> Result<(), ReadError> {
        for index in 0..rows.len() {
            let key = rows.key(index);
            builder.append_value(if of_secondary { layout.row_key(key)? } else { key });
        }
        Ok(())
    }
    let mut builder = BinaryBuilder::with_capacity(rows, rows * 8);
    match picks {
        Some(picks) => fill(layout, of_secondary, &Picked { blocks, picks, view }, &mut builder)?,
        None => blocks.iter().try_for_each(|block| fill(layout, of_secondary, &Whole { block, view }, &mut builder))?,
    }
    Ok(Arc::new(builder.finish()))
}
