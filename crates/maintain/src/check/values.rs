//! Whether every value of a table's rows is one its column may have: it decodes, lies in the type's range, and is not NULL
//! where the column is NOT NULL.
//!
//! Columns of some thousand rows are decoded at once; only if one does not decode is it looked for row by row. A row that
//! is wrong is named by its key. Failure: storage's errors, a large value's damage among them, are the caller's.

use super::{DECODE_ROWS, FINDINGS_MAX};
use crate::columns::append_column;
use crate::index_build::BuildError;
use thawdb_catalog::{TableDef, TreeLayout};
use thawdb_storage::{ReadView, RowBlock};
use thawdb_types::column::scalar_at;
use thawdb_types::{ColumnBuilder, Scalar, SqlType};

/// A value that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFinding {
    /// The row's key.
    pub key: Vec<u8>,
    /// Position of the column.
    pub column: usize,
    /// Whether it is NULL and may not be (8970); else out of its type's range, or bytes that are no value of it (2570).
    pub is_null: bool,
}

/// Days from 0001-01-01 to the end of 9999.
const DAYS: i64 = 3_652_059;
/// 100 ns of a day.
const DAY_TICKS: i64 = 864_000_000_000;
/// datetime: days from 1900-01-01 back to 1753-01-01 and on to the end of 9999, each of 300 parts a second.
const DATETIME_DAYS: (i64, i64) = (-53_690, 2_958_464);
const DATETIME_DAY: i64 = 86_400 * 300;
/// smalldatetime: 65,536 days of minutes.
const SMALL_DATETIME_MINUTES: i64 = 65_536 * 1_440;

/// Looks at every column of the rows in `blocks`; `false` if one does not decode.
pub(super) fn check(
    table: &TableDef,
    rows: &TreeLayout,
    view: &ReadView,
    blocks: &[RowBlock],
    findings: &mut Vec<ColumnFinding>,
) -> Result<bool, BuildError> {
    let mut all_decode = true;
    for (at, column) in table.columns.iter().enumerate() {
        let mut builder = ColumnBuilder::new(&column.sql_type, DECODE_ROWS);
        match append_column(rows, at, blocks, view, &mut builder) {
            Ok(()) => {}
            Err(BuildError::Storage(error)) => return Err(BuildError::Storage(error)),
            Err(BuildError::Sql(_)) => {
                all_decode = false;
                find_undecodable(table, rows, view, at, blocks, findings)?;
                continue;
            }
        }
        let array = builder.finish();
        if is_any_pattern_a_value(&column.sql_type) && (column.nullable || array.null_count() == 0) {
            continue;
        }
        let keys = blocks.iter().flat_map(|block| (0..block.len()).map(|index| block.key(index)));
        for (row, key) in keys.enumerate() {
            let is_null = array.is_null(row);
            if (is_null && !column.nullable) || (!is_null && !is_in_range(&scalar_at(&array, row, &column.sql_type), &column.sql_type)) {
                add(findings, key, at, is_null);
            }
        }
    }
    Ok(all_decode)
}

fn find_undecodable(
    table: &TableDef,
    rows: &TreeLayout,
    view: &ReadView,
    column: usize,
    blocks: &[RowBlock],
    findings: &mut Vec<ColumnFinding>,
) -> Result<(), BuildError> {
    for block in blocks {
        for index in 0..block.len() {
            let Some(one) = view.get(table.rows().tree, block.key(index))? else { continue };
            let mut builder = ColumnBuilder::new(&table.columns[column].sql_type, 1);
            match append_column(rows, column, &[one], view, &mut builder) {
                Ok(()) => {}
                Err(BuildError::Storage(error)) => return Err(BuildError::Storage(error)),
                Err(BuildError::Sql(_)) => add(findings, block.key(index), column, false),
            }
        }
    }
    Ok(())
}

fn add(findings: &mut Vec<ColumnFinding>, key: &[u8], column: usize, is_null: bool) {
    if findings.len() < FINDINGS_MAX {
        findings.push(ColumnFinding { key: key.to_vec(), column, is_null });
    }
}

fn fits(text: &str, sql_type: &SqlType) -> bool {
    let Some(length) = sql_type.length().map(usize::from) else { return true };
    match sql_type {
        SqlType::NChar { .. } | SqlType::NVarChar { .. } => text.encode_utf16().count() <= length,
        // A character of a code page is a byte at least.
        _ => text.chars().count() <= length,
    }
}

/// Whether whatever decodes is in the type's range.
fn is_any_pattern_a_value(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Money | SqlType::UniqueIdentifier
    )
}

fn is_in_range(value: &Scalar, sql_type: &SqlType) -> bool {
    match (value, sql_type) {
        (Scalar::Real(number), _) => number.is_finite(),
        (Scalar::Float(number), _) => number.is_finite(),
        (Scalar::Decimal(number), SqlType::Decimal { precision, .. }) => number.unsigned_abs() < 10_u128.pow(u32::from(*precision)),
        (Scalar::Money(number), SqlType::SmallMoney) => i32::try_from(*number).is_ok(),
        (Scalar::Date(days), _) => (0..DAYS).contains(&i64::from(*days)),
        (Scalar::Time(ticks), _) => (0..DAY_TICKS).contains(ticks),
        (Scalar::DateTime2(ticks) | Scalar::DateTimeOffset(ticks, _), _) => (0..DAYS * DAY_TICKS).contains(ticks),
        (Scalar::DateTime(parts), _) => (DATETIME_DAYS.0 * DATETIME_DAY..DATETIME_DAYS.1 * DATETIME_DAY).contains(parts),
        (Scalar::SmallDateTime(minutes), _) => (0..SMALL_DATETIME_MINUTES).contains(minutes),
        (Scalar::Text(text), sql_type) => fits(text, sql_type),
        (Scalar::Binary(bytes), sql_type) => sql_type.length().is_none_or(|length| bytes.len() <= usize::from(length)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_their_types_are_seen() {
        let decimal = SqlType::Decimal { precision: 4, scale: 2, numeric: false };
        let cases = [
            (Scalar::Decimal(9_999), decimal, true),
            (Scalar::Decimal(-10_000), decimal, false),
            (Scalar::Float(1e300), SqlType::Float, true),
            (Scalar::Float(f64::NAN), SqlType::Float, false),
            (Scalar::Real(f32::INFINITY), SqlType::Real, false),
            (Scalar::Date(3_652_058), SqlType::Date, true),
            (Scalar::Date(3_652_059), SqlType::Date, false),
            (Scalar::Date(-1), SqlType::Date, false),
            (Scalar::Time(DAY_TICKS), SqlType::Time { scale: 7 }, false),
            (Scalar::DateTime(DATETIME_DAYS.0 * DATETIME_DAY), SqlType::DateTime, true),
            (Scalar::DateTime(DATETIME_DAYS.0 * DATETIME_DAY - 1), SqlType::DateTime, false),
            (Scalar::SmallDateTime(-1), SqlType::SmallDateTime, false),
            (Scalar::Money(i64::from(i32::MAX) + 1), SqlType::SmallMoney, false),
            (Scalar::Money(i64::from(i32::MAX) + 1), SqlType::Money, true),
            (Scalar::text("😀"), SqlType::nvarchar(2), true),
            (Scalar::text("😀a"), SqlType::nvarchar(2), false),
            (Scalar::Binary(vec![0; 4]), SqlType::Binary { length: 3 }, false),
        ];
        for (value, sql_type, expected) in cases {
            assert_eq!(is_in_range(&value, &sql_type), expected, "{value:?} as {sql_type:?}");
        }
    }
}
