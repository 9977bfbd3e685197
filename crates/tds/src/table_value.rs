//! Table-valued parameters (MS-TDS 2.2.5.5.5, TVP_TYPE_INFO and its rows).
//!
//! ```text
//! 0xF3 | B_VARCHAR database | B_VARCHAR schema | B_VARCHAR type
//!   count u16 (0xFFFF: no columns told) { user type u32 | flags u16 | TYPE_INFO | B_VARCHAR name (empty) }*
//!   { 0x10 ORDER_UNIQUE count u16 { ordinal u16 | flags u8 }* | 0x11 COLUMN_ORDERING count u16 { ordinal u16 }* }* 0x00
//!   { 0x01 value* }* 0x00
//! ```
//! Columns flagged as default have no values in the rows. COLUMN_ORDERING says in which order columns are sent.
//!
//! Bounds: the columns of a table, and the bytes of the message, which bound the rows. What does not fit is malformed.

use crate::buffer::{DecodeError, Flaw, Reader, Writer};
use crate::type_info::TypeInfo;
use crate::value;
use thawdb_types::{Scalar, SqlType};

/// The type token.
pub const TYPE: u8 = 0xF3;
const NULL_COLUMNS: u16 = 0xFFFF;
const ROW: u8 = 0x01;
const END: u8 = 0x00;
const ORDER_UNIQUE: u8 = 0x10;
const COLUMN_ORDERING: u8 = 0x11;
/// Column flag: every row takes the column's default, and none is sent.
const DEFAULT: u16 = 0x0200;
/// Columns of a table type: SQL Server's limit.
const COLUMNS_MAX: u16 = 1024;

/// A table as a parameter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableValue {
    /// Schema of the table type; may be empty.
    pub schema: String,
    /// Name of the table type; empty where the procedure's declaration says it.
    pub type_name: String,
    /// Type of each column, and whether its default is taken.
    pub columns: Vec<(SqlType, bool)>,
    /// Position in the table type of each column, in the order sent.
    pub order: Vec<usize>,
    /// The values sent, a row at a time.
    pub rows: Vec<Vec<Scalar>>,
}

impl TableValue {
    /// Types of the columns that have values.
    pub fn types(&self) -> Vec<SqlType> {
        self.columns.iter().filter(|(_, default)| !default).map(|(sql_type, _)| *sql_type).collect()
    }

    /// Positions in the table type of the columns that have values.
    pub fn targets(&self) -> Vec<usize> {
        self.order.iter().zip(&self.columns).filter(|(_, (_, default))| !default).map(|(at, _)| *at).collect()
    }
}

/// Reads a table-valued parameter, its type token first, and whether all its values are ones of their types; one that is
/// not was read as NULL.
pub fn decode(reader: &mut Reader<'_>) -> Result<(TableValue, bool), DecodeError> {
    reader.u8("table type")?;
    reader.b_varchar("database of the table type")?;
    let (schema, type_name) = (reader.b_varchar("schema of the table type")?, reader.b_varchar("name of the table type")?);
    let count = reader.u16("columns of the table type")?;
    let mut table = TableValue { schema, type_name, ..TableValue::default() };
    let mut infos = Vec::new();
    if count != NULL_COLUMNS {
        if count > COLUMNS_MAX {
            return Err(reader.malformed("columns of the table type"));
        }
        for _ in 0..count {
            reader.u32("user type")?;
            let flags = reader.u16("column flags")?;
            let info = TypeInfo::decode(reader)?;
            reader.b_varchar("column name")?;
            table.columns.push((info.sql_type, flags & DEFAULT != 0));
            infos.push(info);
        }
    }
    table.order = (0..infos.len()).collect();
    decode_hints(reader, &mut table)?;
    let mut valid = true;
    loop {
        match reader.u8("table row")? {
            END => return Ok((table, valid)),
            ROW if !infos.is_empty() => {
                let sent = infos.iter().zip(&table.columns).filter(|(_, (_, default))| !default);
                let value = |(info, _)| match value::decode_parameter(info, reader) {
                    Err(error) if error.flaw == Flaw::Value => {
                        valid = false;
                        Ok(Scalar::Null)
                    }
                    value => value,
                };
                table.rows.push(sent.map(value).collect::<Result<_, _>>()?);
            }
            _ => return Err(reader.malformed("table row")),
        }
    }
}

/// What may stand between columns and rows.
fn decode_hints(reader: &mut Reader<'_>, table: &mut TableValue) -> Result<(), DecodeError> {
    loop {
        match reader.u8("table hint")? {
            END => return Ok(()),
            ORDER_UNIQUE => {
                for _ in 0..reader.u16("table order")? {
                    reader.u16("table order")?;
                    reader.u8("table order")?;
                }
            }
            COLUMN_ORDERING => {
                let count = usize::from(reader.u16("column ordering")?);
                let mut order = Vec::with_capacity(count.min(usize::from(COLUMNS_MAX)));
                for _ in 0..count {
                    let ordinal = usize::from(reader.u16("column ordering")?);
                    let at = ordinal.checked_sub(1).filter(|at| *at < table.columns.len() && !order.contains(at));
                    order.push(at.ok_or(reader.malformed("column ordering"))?);
                }
                if order.len() != table.columns.len() {
                    return Err(reader.malformed("column ordering"));
                }
                table.order = order;
            }
            _ => return Err(reader.malformed("table hint")),
        }
    }
}

/// Appends a table-valued parameter whose columns are in the table type's order.
pub fn encode(table: &TableValue, out: &mut Vec<u8>) {
    out.put_u8(TYPE);
    out.put_b_varchar("");
    out.put_b_varchar(&table.schema);
    out.put_b_varchar(&table.type_name);
    if table.columns.is_empty() {
        out.put_u16(NULL_COLUMNS);
        out.extend_from_slice(&[END, END]);
        return;
    }
    out.put_u16(u16::try_from(table.columns.len()).expect("at most 1,024 columns"));
    let infos: Vec<TypeInfo> = table.columns.iter().map(|(sql_type, _)| TypeInfo::of(*sql_type)).collect();
    for (info, (_, default)) in infos.iter().zip(&table.columns) {
        out.put_u32(0);
        out.put_u16(if *default { DEFAULT | 1 } else { 1 });
        info.encode(out);
        out.put_b_varchar("");
    }
    out.put_u8(END);
    for row in &table.rows {
        out.put_u8(ROW);
        let sent = infos.iter().zip(&table.columns).filter(|(_, (_, default))| !default);
        sent.zip(row).for_each(|((info, _), value)| value::encode(info, value, out));
    }
    out.put_u8(END);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> TableValue {
        TableValue {
            schema: "dbo".into(),
            type_name: "Ids".into(),
            columns: vec![(SqlType::Int, false), (SqlType::BigInt, true), (SqlType::nvarchar(20), false)],
            order: vec![0, 1, 2],
            rows: vec![vec![Scalar::Int(1), Scalar::text("a")], vec![Scalar::Null, Scalar::text("")]],
        }
    }

    #[test]
    fn round_trip() {
        for table in [sample(), TableValue::default()] {
            let mut bytes = Vec::new();
            encode(&table, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(decode(&mut reader).unwrap(), (table, true));
            assert!(reader.is_empty());
        }
        assert_eq!(sample().targets(), [0, 2]);
        assert_eq!(sample().types().len(), 2);
    }

    #[test]
    fn columns_may_come_in_another_order() {
        let mut bytes = Vec::new();
        encode(&TableValue { rows: Vec::new(), ..sample() }, &mut bytes);
        bytes.truncate(bytes.len() - 2);
        bytes.extend_from_slice(&[ORDER_UNIQUE, 1, 0, 1, 0, 1, COLUMN_ORDERING, 3, 0, 3, 0, 1, 0, 2, 0, END, END]);
        assert_eq!(decode(&mut Reader::new(&bytes)).unwrap().0.order, [2, 0, 1]);
        let at = bytes.len() - 4;
        bytes[at] = 1;
        assert_eq!(decode(&mut Reader::new(&bytes)).unwrap_err().what, "column ordering");
    }

    #[test]
    fn damage_is_an_error() {
        let mut bytes = Vec::new();
        encode(&sample(), &mut bytes);
        for cut in 0..bytes.len() {
            assert!(decode(&mut Reader::new(&bytes[..cut])).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut hostile = bytes.clone();
                hostile[at] ^= 1 << bit;
                let _ = decode(&mut Reader::new(&hostile));
            }
        }
    }
}
