//! The values of a row's key as messages show them: `(1, <NULL>, abc)` of 1505, 2601 and 2627.
//!
//! Key bytes of text cannot be read back, so the values come from the row of the table's own tree.

use crate::defs::TableDef;
use crate::layout::{ColumnPlace, TreeLayout};
use thawdb_types::key::{decode_value, skip_value};
use thawdb_types::{Scalar, SqlType};

/// The values of index `index`'s key columns in the row with this whole key and these inline bytes.
pub fn key_text(table: &TableDef, index: usize, key: &[u8], row: &[u8]) -> String {
    let layout = TreeLayout::new(table, 0);
    let value = |column: &crate::defs::IndexKey| {
        let sql_type = &table.columns[column.column_index].sql_type;
        column_value(&layout, column.column_index, key, row).map_or_else(|| "...".to_owned(), |value| shown(&value, sql_type))
    };
    format!("({})", table.indexes[index].keys.iter().map(value).collect::<Vec<_>>().join(", "))
}

/// A column of a row of the tree of `layout`; `None` if it is stored apart, not in this tree, or damaged.
pub fn column_value(layout: &TreeLayout, column: usize, key: &[u8], row: &[u8]) -> Option<Scalar> {
    match layout.place(column) {
        ColumnPlace::Key(at) => {
            let mut rest = key;
            layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before)).ok()?;
            decode_value(&mut rest, &layout.key[at]).ok()
        }
        ColumnPlace::Row(position) => layout.row.decode_value(position, &[row][..], 0).ok(),
        ColumnPlace::Elsewhere => None,
    }
}

/// A value as messages show it.
pub fn shown(value: &Scalar, sql_type: &SqlType) -> String {
    if value.is_null() {
        return "<NULL>".into();
    }
    match thawdb_types::convert::convert(value, sql_type, &SqlType::NVARCHAR_MAX, 0) {
        Ok(Scalar::Text(text)) => text.trim_end_matches(' ').to_owned(),
        _ => "...".into(),
    }
}
