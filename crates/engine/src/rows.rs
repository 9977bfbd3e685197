//! Small bridges from values to what the engine says or stores: text of a value, keys decoded for messages.

use thawdb_types::convert::ConvertOptions;
use thawdb_types::key::{KeyColumn, decode_value, is_lossless};
use thawdb_types::{Scalar, SqlError, SqlType};

/// A value as PRINT and messages show it.
pub(crate) fn display(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Text(text) => text.clone(),
        Scalar::Null => String::new(),
        _ => match convert(value, sql_type, &SqlType::nvarchar(4000)) {
            Ok(Scalar::Text(text)) => text,
            _ => format!("{value:?}"),
        },
    }
}

/// A value of one type as another, by CAST's rules.
pub(crate) fn convert(value: &Scalar, from: &SqlType, to: &SqlType) -> Result<Scalar, SqlError> {
    thawdb_types::convert::convert(value, from, to, &ConvertOptions::default())
}

/// The values of a key's columns; a column whose key cannot be turned back shows as NULL does not: as `...`.
pub(crate) fn decode_key(columns: impl Iterator<Item = KeyColumn>, mut key: &[u8]) -> Vec<(Scalar, SqlType)> {
    let mut values = Vec::new();
    for column in columns {
        let unknown = (Scalar::Text("...".into()), SqlType::nvarchar(3));
        if !is_lossless(&column.sql_type) {
            if thawdb_types::key::skip_value(&mut key, &column).is_err() {
                break;
            }
            values.push(unknown);
            continue;
        }
        match decode_value(&mut key, &column) {
            Ok(value) => values.push((value, column.sql_type)),
            Err(_) => break,
        }
    }
    values
}
