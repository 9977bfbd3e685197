//! Rows written and read back, and damaged rows refused.

use super::*;
use crate::ColumnBuilder;
use crate::column::{array_from_scalars, scalar_at};
use crate::value::{any_value, samples, value_of};
use arrow_array::ArrayRef;
use proptest::prelude::*;

/// Rows with their large parts, as a leaf would give them.
struct Stored(Vec<(Vec<u8>, Vec<Vec<u8>>)>);

impl RowSource for Stored {
    type Error = Damage;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn row(&self, index: usize) -> &[u8] {
        &self.0[index].0
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, Damage> {
        self.0[index].1.get(ordinal).cloned().ok_or_else(|| Damage::new("no such large part"))
    }
}

fn encode(layout: &RowLayout, rows: &[Vec<Scalar>]) -> Stored {
    let mut buffer = RowBuffer::default();
    Stored(
        rows.iter()
            .map(|row| {
                layout.encode(row, &mut buffer).unwrap();
                (buffer.inline().to_vec(), buffer.large().to_vec())
            })
            .collect(),
    )
}

/// The rows in one piece, as a page has them.
fn packed(stored: &Stored) -> (Vec<u8>, Vec<u16>, Vec<u16>) {
    let (mut bytes, mut starts, mut ends) = (vec![0xEE; 3], Vec::new(), Vec::new());
    for (row, _) in &stored.0 {
        starts.push(bytes.len() as u16);
        bytes.extend(row);
        ends.push(bytes.len() as u16);
    }
    (bytes, starts, ends)
}

/// What the loops over packed rows give is what the general ones give.
fn check_packed(layout: &RowLayout, stored: &Stored) {
    let (bytes, starts, ends) = packed(stored);
    // A table has a column, and its rows fit a page.
    if bytes.len() > usize::from(u16::MAX) || layout.columns().is_empty() {
        return;
    }
    let rows = PackedRows { bytes: &bytes, starts: &starts, ends: &ends };
    if layout.form == RowForm::Compact {
        assert!(layout.uniform(rows).is_none(), "the short loops are for the plain form");
        return;
    }
    let uniform = layout.uniform(rows).expect("one layout wrote all rows");
    for (position, column) in layout.columns().iter().enumerate() {
        let mut general = ColumnBuilder::new(&column.sql_type, 0);
        layout.decode_column(position, stored, &mut general).unwrap();
        let mut short = ColumnBuilder::new(&column.sql_type, 0);
        if layout.decode_packed(position, rows, uniform, &mut short).unwrap() {
            assert_eq!(&general.finish(), &short.finish(), "{}", column.sql_type.name());
        }
    }
}

#[test]
fn packed_rows_of_another_layout_or_cut_short_are_not_uniform() {
    let column = |nullable| StoredColumn::new(SqlType::Int, nullable);
    let (old, new) = (RowLayout::new(vec![column(false)]), RowLayout::new(vec![column(false), column(true)]));
    let stored = encode(&old, &[vec![Scalar::Int(7)], vec![Scalar::Int(-7)]]);
    let (bytes, starts, ends) = packed(&stored);
    let rows = PackedRows { bytes: &bytes, starts: &starts, ends: &ends };
    let uniform = old.uniform(rows).expect("one layout");
    assert!(new.uniform(rows).is_none());
    let cut: Vec<u16> = starts.iter().map(|start| start + 5).collect();
    assert!(old.uniform(PackedRows { ends: &cut, ..rows }).is_none());
    let beyond: Vec<u16> = ends.iter().map(|end| end + 100).collect();
    assert!(old.uniform(PackedRows { ends: &beyond, ..rows }).is_none());
    // Even against the promise that the rows are uniform there is no panic.
    let far = vec![bytes.len() as u16; 2];
    let mut builder = ColumnBuilder::new(&SqlType::Int, 0);
    assert!(old.decode_packed(0, PackedRows { starts: &far, ..rows }, uniform, &mut builder).is_err());
}

fn check(layout: &RowLayout, rows: &[Vec<Scalar>], stored: &Stored) {
    check_packed(layout, stored);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(&layout.decode_row(stored, index).unwrap(), row);
    }
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (position, column) in layout.columns().iter().enumerate() {
        let mut builder = ColumnBuilder::new(&column.sql_type, rows.len());
        layout.decode_column(position, stored, &mut builder).unwrap();
        let array = builder.finish();
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(scalar_at(&array, index, &column.sql_type), row[position], "{}", column.sql_type.name());
        }
        arrays.push(array);
    }
    let mut encoder = RowEncoder::new(layout, &arrays);
    let mut buffer = RowBuffer::default();
    for index in 0..rows.len() {
        encoder.encode(index, &mut buffer).unwrap();
        assert_eq!((buffer.inline(), buffer.large()), (stored.0[index].0.as_slice(), stored.0[index].1.as_slice()));
    }
}

fn layout_of(types: &[SqlType]) -> RowLayout {
    RowLayout::new(types.iter().map(|t| StoredColumn::new(*t, true)).collect())
}

/// The layout in both forms.
fn both(layout: RowLayout) -> [RowLayout; 2] {
    [layout.clone(), layout.with_form(RowForm::Compact)]
}

#[test]
fn every_type_round_trips() {
    let (types, values): (Vec<_>, Vec<_>) = samples().into_iter().unzip();
    both(layout_of(&types)).into_iter().for_each(|layout| round_trip_samples(layout, &types, &values));
}

fn round_trip_samples(layout: RowLayout, types: &[SqlType], values: &[Scalar]) {
    let values = values.to_vec();
    let nulls = vec![Scalar::Null; types.len()];
    let rows = [values, nulls];
    let stored = encode(&layout, &rows);
    assert_eq!(stored.0[0].1.len(), 2, "the two values over 3,900 bytes are stored apart");
    check(&layout, &rows, &stored);
}

#[test]
fn a_row_is_laid_out_as_the_picture_says() {
    let layout = RowLayout::new(vec![
        StoredColumn::new(SqlType::Int, false),
        StoredColumn::new(SqlType::varchar(10), true),
        StoredColumn::new(SqlType::Date, true),
        StoredColumn::new(SqlType::varchar(10), true),
    ]);
    let stored = encode(&layout, &[vec![Scalar::Int(258), Scalar::text("ab"), Scalar::Null, Scalar::Null]]);
    assert_eq!(stored.0[0].0, [9, 0, 2, 1, 0, 0, 0, 0, 0, 4, 0, 0b1100, 1, 0, 18, 0, b'a', b'b']);
}

#[test]
fn a_compact_row_is_laid_out_as_the_picture_says() {
    let column = |sql_type| StoredColumn::new(sql_type, true);
    let types = [
        SqlType::Int,
        SqlType::varchar(20),
        SqlType::Date,
        SqlType::Bit,
        SqlType::Char { length: 10, collation: crate::Collation::DEFAULT },
        SqlType::BigInt,
        SqlType::Float,
    ];
    let layout = RowLayout::new(types.into_iter().map(column).collect()).with_form(RowForm::Compact);
    let values = vec![
        Scalar::Int(258),
        Scalar::text("abcdefghi"),
        Scalar::Null,
        Scalar::Bit(true),
        Scalar::text("xy        "),
        Scalar::BigInt(-1),
        Scalar::Float(0.5),
    ];
    let stored = encode(&layout, std::slice::from_ref(&values));
    let expected = [7, 0xA2, 0xC9, 0x13, 2, 1, 2, b'x', b'y', 8, 0xFF, 0x3F, 0xE0, 15, 0];
    assert_eq!(stored.0[0].0[..13], expected[..13]);
    assert_eq!(stored.0[0].0[13..], [&[24, 0][..], b"abcdefghi"].concat());
    check(&layout, &[values], &stored);
}

#[test]
fn numbers_take_their_least_length() {
    let layout = RowLayout::new(vec![StoredColumn::new(SqlType::Int, false)]).with_form(RowForm::Compact);
    let cases =
        [(0, 0), (1, 0), (2, 1), (-1, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (32_767, 2), (32_768, 3), (i32::MIN, 4), (i32::MAX, 4)];
    for (value, bytes) in cases {
        let stored = encode(&layout, &[vec![Scalar::Int(value)]]);
        assert_eq!(stored.0[0].0.len(), 2 + bytes, "{value}");
        check(&layout, &[vec![Scalar::Int(value)]], &stored);
    }
}

#[test]
fn columns_added_later_read_their_default() {
    both(layout_of(&[SqlType::Int, SqlType::varchar(5)])).into_iter().for_each(read_added_columns);
}

fn read_added_columns(before: RowLayout) {
    let stored = encode(&before, &[vec![Scalar::Int(1), Scalar::text("x")]]);
    let mut columns = before.columns().to_vec();
    let added = [
        (SqlType::BigInt, false, Scalar::BigInt(7)),
        (SqlType::varchar(5), true, Scalar::text("new")),
        (SqlType::DateTime, true, Scalar::Null),
        (SqlType::UniqueIdentifier, false, Scalar::Guid([3; 16])),
    ];
    columns.extend(added.iter().map(|(sql_type, nullable, missing)| StoredColumn {
        sql_type: *sql_type,
        nullable: *nullable,
        missing: missing.clone(),
    }));
    let after = RowLayout::new(columns).with_form(before.form);
    let expected = vec![Scalar::Int(1), Scalar::text("x"), Scalar::BigInt(7), Scalar::text("new"), Scalar::Null, Scalar::Guid([3; 16])];
    assert_eq!(after.decode_row(&stored, 0).unwrap(), expected);
    for (position, value) in expected.iter().enumerate() {
        let sql_type = after.columns()[position].sql_type;
        let mut builder = ColumnBuilder::new(&sql_type, 1);
        after.decode_column(position, &stored, &mut builder).unwrap();
        assert_eq!(scalar_at(&builder.finish(), 0, &sql_type), *value);
    }
}

#[test]
fn long_rows_overflow_and_too_long_ones_are_refused() {
    let rows = [vec![Scalar::text("a".repeat(5000)), Scalar::text("b".repeat(6000)), Scalar::Int(1)]];
    for layout in both(layout_of(&[SqlType::varchar(8000), SqlType::varchar(8000), SqlType::Int])) {
        let stored = encode(&layout, &rows);
        assert_eq!(stored.0[0].1, vec![b"b".repeat(6000)]);
        check(&layout, &rows, &stored);
    }

    let wide = layout_of(&[SqlType::decimal(38, 0); 520]);
    let error = wide.encode(&vec![Scalar::Null; 520], &mut RowBuffer::default()).unwrap_err();
    assert_eq!(error.number, 511);
}

proptest! {
    #[test]
    fn rows_round_trip((types, values) in proptest::collection::vec(any_value(), 0..12).prop_map(|v| v.into_iter().unzip::<_, _, Vec<_>, Vec<_>>())) {
        let rows = [values];
        for layout in both(layout_of(&types)) {
            let stored = encode(&layout, &rows);
            check(&layout, &rows, &stored);
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_read(
        (types, values) in proptest::collection::vec(any_value(), 1..8).prop_map(|v| v.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        keep in any::<prop::sample::Index>(),
    ) {
        for layout in both(layout_of(&types)) {
            let mut stored = encode(&layout, std::slice::from_ref(&values));
            let row = &mut stored.0[0].0;
            for (at, byte) in &flips {
                let at = at.index(row.len());
                row[at] = *byte;
            }
            let length = keep.index(row.len() + 1);
            row.truncate(length);
            let _ = layout.decode_row(&stored, 0);
            for (position, sql_type) in types.iter().enumerate() {
                let mut builder = ColumnBuilder::new(sql_type, 1);
                let _ = layout.decode_column(position, &stored, &mut builder);
            }
        }
    }

    #[test]
    fn noise_is_refused_or_read(row in proptest::collection::vec(any::<u8>(), 0..60), (sql_type, value) in any_value().prop_flat_map(|(t, _)| (Just(t), value_of(t)))) {
        let _ = array_from_scalars(&sql_type, [&value]);
        let stored = Stored(vec![(row, Vec::new())]);
        for layout in both(RowLayout::new(vec![StoredColumn::new(SqlType::Int, false), StoredColumn::new(sql_type, true)])) {
            let _ = layout.decode_row(&stored, 0);
            for position in 0..2 {
                let mut builder = ColumnBuilder::new(&layout.columns()[position].sql_type, 1);
                let _ = layout.decode_column(position, &stored, &mut builder);
            }
        }
    }
}
