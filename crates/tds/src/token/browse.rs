//! TABNAME and COLINFO (MS-TDS 2.2.7.22 and 2.2.7.5): the tables and columns that the rows of a cursor come from.
//!
//! ```text
//! 0xA4 | length u16 | { parts u8 | US_VARCHAR part * }*
//! 0xA5 | length u16 | { column u8 | table u8 | status u8 | [B_VARCHAR name] }*
//! ```
//! Columns and tables are counted from 1 and in a byte: of more than 255 columns nothing is told.

use crate::buffer::Writer;
use crate::token::code;
use thawdb_engine::BrowseColumn;

const EXPRESSION: u8 = 0x04;
const KEY: u8 = 0x08;
const DIFFERENT_NAME: u8 = 0x20;

/// Appends both tokens.
pub fn encode(tables: &[[String; 3]], columns: &[BrowseColumn], out: &mut Vec<u8>) {
    let mut names = Vec::new();
    for table in tables {
        names.put_u8(3);
        table.iter().for_each(|part| names.put_us_varchar(part));
    }
    let mut info = Vec::new();
    for (number, column) in (1u8..=u8::MAX).zip(columns) {
        let status = if column.table == 0 { EXPRESSION } else { u8::from(column.key) * KEY };
        info.extend([number, column.table, status | u8::from(column.base_name.is_some()) * DIFFERENT_NAME]);
        if let Some(name) = &column.base_name {
            info.put_b_varchar(name);
        }
    }
    let lengths = (u16::try_from(names.len()), u16::try_from(info.len()));
    let (Ok(names_bytes), Ok(info_bytes)) = lengths else { return };
    if columns.len() > usize::from(u8::MAX) {
        return;
    }
    out.put_u8(code::TABLE_NAME);
    out.put_u16(names_bytes);
    out.extend(names);
    out.put_u8(code::COLUMN_INFO);
    out.put_u16(info_bytes);
    out.extend(info);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let column = |table, key, name: Option<&str>| BrowseColumn { table, key, base_name: name.map(str::to_owned) };
        let mut out = Vec::new();
        encode(
            &[["d".into(), "s".into(), "t".into()]],
            &[column(1, true, None), column(1, false, Some("b")), column(0, false, None)],
            &mut out,
        );
        let names = [0xA4, 13, 0, 3, 1, 0, b'd', 0, 1, 0, b's', 0, 1, 0, b't', 0];
        let info = [0xA5, 12, 0, 1, 1, 0x08, 2, 1, 0x20, 1, b'b', 0, 3, 0, 0x04];
        assert_eq!(out, [&names[..], &info[..]].concat());
    }
}
