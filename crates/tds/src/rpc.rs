//! Remote procedure calls (MS-TDS 2.2.6.6): sp_executesql and its relations, and any other procedure.
//!
//! ```text
//! ALL_HEADERS | name length u16 (0xFFFF: number u16 follows; else the name) | options u16
//!   { B_VARCHAR name | status u8 | TYPE_INFO | value }*     then 0xFF or 0x80 and another call, or the end
//! ```

use crate::TdsVersion;
use crate::batch::Headers;
use crate::buffer::{DecodeError, Flaw, Reader, Writer};
use crate::table_value::{self, TableValue};
use crate::type_info::TypeInfo;
use crate::value;
use thawdb_types::{Scalar, SqlType};

/// Separates calls of one message since 7.2; before, 0x80.
const CALL_SEPARATORS: [u8; 3] = [0xFF, 0x80, 0xFE];
/// Parameter status: its value is wanted back.
const BY_REFERENCE: u8 = 0x01;
/// Parameter status: use the procedure's default.
const DEFAULT_VALUE: u8 = 0x02;
/// Most parameters of a call, as documented for stored procedures.
const PARAMETERS_MAX: usize = 2100;
/// Names of the procedures that go by number.
const PROCEDURE_BY_NUMBER: [&str; 16] = [
    "",
    "sp_cursor",
    "sp_cursoropen",
    "sp_cursorprepare",
    "sp_cursorexecute",
    "sp_cursorprepexec",
    "sp_cursorunprepare",
    "sp_cursorfetch",
    "sp_cursoroption",
    "sp_cursorclose",
    "sp_executesql",
    "sp_prepare",
    "sp_execute",
    "sp_prepexec",
    "sp_prepexecrpc",
    "sp_unprepare",
];

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcParameter {
    /// Name with its sign, or empty.
    pub name: String,
    /// Whether its value is wanted back.
    pub output: bool,
    /// Whether the procedure's default is wanted.
    pub default: bool,
    /// Its type.
    pub sql_type: SqlType,
    /// Its value.
    pub value: Scalar,
    /// The rows of a table-valued parameter, which has no value.
    pub table: Option<TableValue>,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcCall {
    /// Name of the procedure.
    pub procedure: String,
    /// The client does not want metadata back.
    pub no_metadata: bool,
    /// Its parameters.
    pub parameters: Vec<RpcParameter>,
    /// Position of the first parameter whose value its type does not have; it was read as NULL. Such a call is to be
    /// refused (8023), and those beside it stand.
    pub invalid: Option<usize>,
}

/// The calls of an RPC message.
pub fn decode(data: &[u8], version: TdsVersion) -> Result<Vec<RpcCall>, DecodeError> {
    let mut reader = Reader::new(data);
    Headers::decode(&mut reader, version)?;
    let mut calls = Vec::new();
    while !reader.is_empty() {
        calls.push(call(&mut reader)?);
    }
    Ok(calls)
}

fn call(reader: &mut Reader<'_>) -> Result<RpcCall, DecodeError> {
    let procedure = match reader.u16("procedure name")? {
        u16::MAX => {
            let number = usize::from(reader.u16("procedure number")?);
            let name = PROCEDURE_BY_NUMBER.get(number).filter(|name| !name.is_empty());
            (*name.ok_or(reader.malformed("procedure number"))?).to_owned()
        }
        units => reader.utf16(usize::from(units), "procedure name")?,
    };
    let options = reader.u16("procedure options")?;
    let mut parameters = Vec::new();
    let mut invalid = None;
    while let Some(next) = reader.peek() {
        if CALL_SEPARATORS.contains(&next) {
            reader.u8("call separator")?;
            break;
        }
        if parameters.len() == PARAMETERS_MAX {
            return Err(reader.malformed("parameter count"));
        }
        let (parameter, valid) = parameter(reader)?;
        if !valid {
            invalid = invalid.or(Some(parameters.len()));
        }
        parameters.push(parameter);
    }
    Ok(RpcCall { procedure, no_metadata: options & 0x02 != 0, parameters, invalid })
}

/// A parameter, and whether its type has the value.
fn parameter(reader: &mut Reader<'_>) -> Result<(RpcParameter, bool), DecodeError> {
    let name = reader.b_varchar("parameter name")?;
    let status = reader.u8("parameter status")?;
    let (output, default) = (status & BY_REFERENCE != 0, status & DEFAULT_VALUE != 0);
    if reader.peek() == Some(table_value::TYPE) {
        let (table, valid) = table_value::decode(reader)?;
        return Ok((RpcParameter { name, output, default, sql_type: SqlType::Int, value: Scalar::Null, table: Some(table) }, valid));
    }
    let info = TypeInfo::decode(reader)?;
    let (value, valid) = match value::decode_parameter(&info, reader) {
        Err(error) if error.flaw == Flaw::Value => (Scalar::Null, false),
        value => (value?, true),
    };
    Ok((RpcParameter { name, output, default, sql_type: info.sql_type, value, table: None }, valid))
}

/// Appends the data of an RPC message with one call.
pub fn encode(call: &RpcCall, headers: Headers, out: &mut Vec<u8>) {
    headers.encode(out);
    match PROCEDURE_BY_NUMBER.iter().position(|name| !name.is_empty() && *name == call.procedure) {
        Some(number) => {
            out.put_u16(u16::MAX);
            out.put_u16(u16::try_from(number).expect("16 numbers"));
        }
        None => out.put_us_varchar(&call.procedure),
    }
    out.put_u16(u16::from(call.no_metadata) * 2);
    for parameter in &call.parameters {
        out.put_b_varchar(&parameter.name);
        out.put_u8(u8::from(parameter.output) * BY_REFERENCE | u8::from(parameter.default) * DEFAULT_VALUE);
        if let Some(table) = &parameter.table {
            table_value::encode(table, out);
            continue;
        }
        let info = TypeInfo::of(parameter.sql_type);
        info.encode(out);
        value::encode(&info, &parameter.value, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::{Collation, MaxLength};

    fn sample(procedure: &str) -> RpcCall {
        let text = SqlType::NVarChar { length: MaxLength::Max, collation: Collation::DEFAULT };
        let parameter =
            |name: &str, output, sql_type, value| RpcParameter { name: name.into(), output, default: false, sql_type, value, table: None };
        RpcCall {
            procedure: procedure.into(),
            no_metadata: false,
            parameters: vec![
                parameter("", false, text, Scalar::Text("SELECT @a".into())),
                parameter("@a", true, SqlType::Int, Scalar::Int(-5)),
                parameter("@b", false, SqlType::DateTime2 { scale: 3 }, Scalar::Null),
            ],
            invalid: None,
        }
    }

    #[test]
    fn round_trip_by_number_and_by_name() {
        for procedure in ["sp_executesql", "dbo.mine"] {
            let mut bytes = Vec::new();
            encode(&sample(procedure), Headers::default(), &mut bytes);
            assert_eq!(decode(&bytes, TdsVersion::V7_4).unwrap(), [sample(procedure)]);
            for at in 22..bytes.len() {
                for bit in 0..8 {
                    let mut hostile = bytes.clone();
                    hostile[at] ^= 1 << bit;
                    let _ = decode(&hostile, TdsVersion::V7_4);
                }
            }
        }
    }

    /// A datetime before 1753, which FreeTDS sends for a timestamp of the year 1, once ended the connection.
    #[test]
    fn a_value_that_its_type_has_not_is_told_and_the_rest_read() {
        let mut bytes = Vec::new();
        let mut call = sample("dbo.mine");
        call.parameters[2] = RpcParameter { sql_type: SqlType::DateTime, value: Scalar::DateTime(0), ..call.parameters[2].clone() };
        call.parameters.push(call.parameters[1].clone());
        encode(&call, Headers::default(), &mut bytes);
        let value = bytes.windows(9).position(|w| w == [8, 0, 0, 0, 0, 0, 0, 0, 0]).expect("the datetime is there");
        bytes[value + 1..value + 5].copy_from_slice(&(-693_595i32).to_le_bytes());
        call.parameters[2].value = Scalar::Null;
        call.invalid = Some(2);
        assert_eq!(decode(&bytes, TdsVersion::V7_4).unwrap(), [call]);
    }

    #[test]
    fn unknown_numbers_are_refused() {
        let mut bytes = Vec::new();
        Headers::default().encode(&mut bytes);
        bytes.extend_from_slice(&[255, 255, 77, 0, 0, 0]);
        assert_eq!(decode(&bytes, TdsVersion::V7_4).unwrap_err().what, "procedure number");
    }
}
