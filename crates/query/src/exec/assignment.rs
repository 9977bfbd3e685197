//! Values on their way into a column: converted, checked for length and NULL, padded.
//!
//! Unlike CAST an assignment never shortens text: what does not fit is 2628. Blanks at the end of a
//! text may be cut, as SQL Server does. char, nchar and binary are filled up to their length.

use crate::eval::eval_array;
use crate::eval::{How, convert_scalar_by};
use crate::exec::{Batch, Cx};
use crate::expr::Expr;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use thawdb_catalog::{ColumnDef, TableDef};
use thawdb_types::convert::{cut_value, fit_text, would_truncate};
use thawdb_types::error::message;
use thawdb_types::{ColumnBuilder, MaxLength, Scalar, SqlError, SqlType, scalar_at};

/// Name of a table as messages 515 and 2628 have it.
pub(super) fn full_name(table: &TableDef, cx: &Cx<'_, '_>) -> String {
    match cx.host.global("db_name") {
        Ok(Scalar::Text(database)) => format!("{database}.{}.{}", table.schema_name, table.name),
        _ => format!("{}.{}", table.schema_name, table.name),
    }
}

/// Fails with 515 if a column that may not be NULL has one; `verb` is INSERT or UPDATE.
pub(super) fn check_not_null(table: &TableDef, columns: &[ArrayRef], verb: &str, cx: &Cx<'_, '_>) -> Result<(), SqlError> {
    for (definition, array) in table.columns.iter().zip(columns) {
        if !definition.nullable && array.null_count() > 0 && !definition.is_virtual() {
            return Err(message(515, &[&definition.name, &full_name(table, cx), &verb]));
        }
    }
    Ok(())
}

/// Works out what a new row has by itself: rowversions and stored computed columns.
pub(super) fn derive<'p>(
    table: &TableDef,
    computed: &'p [(usize, Expr)],
    columns: &mut [ArrayRef],
    rows: usize,
    cx: &mut Cx<'p, '_>,
) -> Result<(), SqlError> {
    if let Some(at) = table.columns.iter().position(|column| column.sql_type == SqlType::RowVersion) {
        let first = cx.host.next_row_version(table.database, rows as u64)?;
        let mut builder = ColumnBuilder::new(&SqlType::RowVersion, rows);
        (0..rows as u64).for_each(|row| builder.append(&Scalar::Binary((first + row).to_be_bytes().to_vec())));
        columns[at] = builder.finish();
    }
    if computed.is_empty() {
        return Ok(());
    }
    let row = Batch::new(columns.to_vec(), rows);
    for (at, expr) in computed {
        let values = eval_array(expr, &row, cx)?;
        columns[*at] = fit(table, &table.columns[*at], &values, &expr.sql_type, cx)?;
    }
    Ok(())
}

/// `array` of type `from` as values of a column.
pub(super) fn fit(table: &TableDef, column: &ColumnDef, array: &ArrayRef, from: &SqlType, cx: &Cx<'_, '_>) -> Result<ArrayRef, SqlError> {
    let to = &column.sql_type;
    if from == to && !needs_length(to) {
        return Ok(array.clone());
    }
    if from == to && fits_as_it_is(array, to) {
        return Ok(array.clone());
    }
    let mut builder = ColumnBuilder::new(to, array.len());
    for row in 0..array.len() {
        builder.append(&fit_value(table, column, scalar_at(array.as_ref(), row, from), from, cx)?);
    }
    Ok(builder.finish())
}

/// A value of type `from` as one of a column.
pub(super) fn fit_value(table: &TableDef, column: &ColumnDef, value: Scalar, from: &SqlType, cx: &Cx<'_, '_>) -> Result<Scalar, SqlError> {
    let to = &column.sql_type;
    let how = How { style: 0, attempt: false, date_order: cx.host.session().date_order() };
    let value = if from == to || value.is_null() { value } else { convert_scalar_by(value, from, &unlimited(from, to), how)? };
    fit_length(value, to).map_err(|cut| message(2628, &[&full_name(table, cx), &column.name, &cut]))
}

/// Whether values of the type may be too long or too short for it.
fn needs_length(sql_type: &SqlType) -> bool {
    limit(sql_type).is_some()
}

/// Length of a limited type, and whether values are filled up to it.
fn limit(sql_type: &SqlType) -> Option<(usize, bool)> {
    match *sql_type {
        SqlType::Char { length, .. } | SqlType::NChar { length, .. } | SqlType::Binary { length } => Some((usize::from(length), true)),
        SqlType::VarChar { length: MaxLength::Limited(n), .. }
        | SqlType::NVarChar { length: MaxLength::Limited(n), .. }
        | SqlType::VarBinary { length: MaxLength::Limited(n) } => Some((usize::from(n), false)),
        _ => None,
    }
}

/// Whether every value is surely short enough, and needs no filling up.
fn fits_as_it_is(array: &ArrayRef, sql_type: &SqlType) -> bool {
    let Some((most, padded)) = limit(sql_type) else { return true };
    if padded {
        return false;
    }
    // Bytes of UTF-8 are never fewer than the units that count.
    let offsets =
        if sql_type.collation().is_some() { array.as_string::<i32>().value_offsets() } else { array.as_binary::<i32>().value_offsets() };
    offsets.windows(2).all(|pair| (pair[1] - pair[0]) as usize <= most)
}

/// The type to convert to before the length is checked: the target's, without its limit if text goes to text.
fn unlimited(from: &SqlType, to: &SqlType) -> SqlType {
    match *to {
        SqlType::Char { collation, .. } | SqlType::VarChar { collation, .. } if from.collation().is_some() => {
            SqlType::VarChar { length: MaxLength::Max, collation }
        }
        SqlType::NChar { collation, .. } | SqlType::NVarChar { collation, .. } if from.collation().is_some() => {
            SqlType::NVarChar { length: MaxLength::Max, collation }
        }
        SqlType::Binary { .. } | SqlType::VarBinary { .. } if from.is_binary() => SqlType::VarBinary { length: MaxLength::Max },
        other => other,
    }
}

/// `value` brought to the length of its column; what would be left of a value that is too long otherwise.
fn fit_length(value: Scalar, sql_type: &SqlType) -> Result<Scalar, String> {
    if would_truncate(&value, sql_type) {
        return Err(cut_value(&value, sql_type));
    }
    Ok(match value {
        Scalar::Text(text) => Scalar::Text(fit_text(text, sql_type)),
        Scalar::Binary(mut bytes) if matches!(sql_type, SqlType::Binary { .. }) => {
            bytes.resize(usize::from(sql_type.length().unwrap_or(0)), 0);
            Scalar::Binary(bytes)
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        let text = |s: &str| Scalar::text(s);
        assert_eq!(fit_length(text("abc"), &SqlType::varchar(3)), Ok(text("abc")));
        assert_eq!(fit_length(text("abc  "), &SqlType::varchar(3)), Ok(text("abc")));
        assert_eq!(fit_length(text("ab   "), &SqlType::varchar(3)), Ok(text("ab ")));
        assert_eq!(fit_length(text("abcd"), &SqlType::varchar(3)), Err("abc".into()));
        assert_eq!(fit_length(text("\u{1F600}x"), &SqlType::nvarchar(2)), Err("\u{1F600}".into()));
        let char_5 = SqlType::Char { length: 5, collation: thawdb_types::Collation::DEFAULT };
        assert_eq!(fit_length(text("ab"), &char_5), Ok(text("ab   ")));
        assert_eq!(fit_length(Scalar::Binary(vec![1]), &SqlType::Binary { length: 3 }), Ok(Scalar::Binary(vec![1, 0, 0])));
        assert_eq!(fit_length(Scalar::Binary(vec![1, 2]), &SqlType::varbinary(1)), Err(String::new()));
    }
}
