//! OPENJSON, and the pieces in which a long text is handed out.

use super::path::Path;
use super::scan::{Kind, Scanned, Scanner, Value};
use crate::context::SessionInfo;
use crate::phys::{OutputColumn, RowSource};
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

type Rows = Vec<Vec<Scalar>>;

fn column(name: &str, sql_type: SqlType, nullable: bool) -> OutputColumn {
    OutputColumn { name: name.to_owned(), sql_type, nullable, identity: false }
}

/// The object or array that OPENJSON's arguments (text, path) name; `None`: no rows.
fn opened(arguments: &[Scalar]) -> Result<Option<(&str, Value)>, SqlError> {
    let Some(text) = arguments[0].as_text() else {
        return Ok(None);
    };
    let path = match arguments.get(1) {
        None => Path::default(),
        Some(path) => match path.as_text() {
            Some(path) => Path::parse(path)?,
            None => return Ok(None),
        },
    };
    let found = path.find(text).map_err(|fault| fault.error(text))?;
    if path.steps.is_empty() {
        let mut scanner = Scanner::new(text);
        scanner.value().and_then(|_| scanner.end()).map_err(|fault| fault.error(text))?;
    }
    match found {
        None if path.strict => Err(message(13608, &[])),
        Some(value) if !value.is_scalar() => Ok(Some((text, value))),
        Some(_) if path.strict => Err(message(13624, &[])),
        _ => Ok(None),
    }
}

/// Members of an object or array: key and value.
fn members(text: &str, container: Value) -> Scanned<Vec<(String, Value)>> {
    let mut scanner = Scanner::at(text, container);
    scanner.open();
    let mut found = Vec::new();
    if container.kind == Kind::Object {
        while let Some((key, value)) = scanner.next_member(found.is_empty())? {
            found.push((key.scalar_text(text).unwrap_or_default(), value));
        }
    } else {
        while scanner.next_element(found.is_empty())? {
            found.push((found.len().to_string(), scanner.value()?));
        }
    }
    Ok(found)
}

/// OPENJSON without a schema: key, value, type of each member.
#[derive(Debug)]
pub(crate) struct OpenJson {
    columns: [OutputColumn; 3],
}

impl OpenJson {
    pub(crate) fn new() -> Self {
        let key = SqlType::nvarchar(4000);
        Self { columns: [column("key", key, false), column("value", SqlType::NVARCHAR_MAX, true), column("type", SqlType::TinyInt, false)] }
    }
}

impl RowSource for OpenJson {
    fn name(&self) -> &str {
        "OPENJSON"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        let Some((text, container)) = opened(arguments)? else {
            return Ok(Vec::new());
        };
        let members = members(text, container).map_err(|fault| fault.error(text))?;
        Ok(members
            .into_iter()
            .map(|(key, value)| {
                let shown = value.scalar_text(text).map_or(Scalar::Null, Scalar::Text);
                vec![Scalar::Text(key), shown, Scalar::TinyInt(value.kind as u8)]
            })
            .collect())
    }
}

/// A column of OPENJSON ... WITH.
#[derive(Debug)]
pub(crate) struct SchemaColumn {
    pub(crate) output: OutputColumn,
    /// Checked when the query is bound.
    pub(crate) path: String,
    /// AS JSON: objects and arrays, not scalars.
    pub(crate) as_json: bool,
}

/// OPENJSON with a schema: a row for the object, or for each element of the array.
#[derive(Debug)]
pub(crate) struct OpenJsonWith {
    columns: Vec<OutputColumn>,
    paths: Vec<(Path, bool)>,
}

impl OpenJsonWith {
    /// 13607 for a path that is none.
    pub(crate) fn new(schema: Vec<SchemaColumn>) -> Result<Self, SqlError> {
        let mut columns = Vec::with_capacity(schema.len());
        let mut paths = Vec::with_capacity(schema.len());
        for column in schema {
            paths.push((Path::parse(&column.path)?, column.as_json));
            columns.push(column.output);
        }
        Ok(Self { columns, paths })
    }

    fn cell(&self, at: usize, row: &str) -> Result<Scalar, SqlError> {
        let (path, as_json) = &self.paths[at];
        let fault = |found: Option<i32>| match found {
            Some(number) if path.strict => Err(message(number, &[])),
            _ => Ok(Scalar::Null),
        };
        let Some(value) = path.find(row).map_err(|fault| fault.error(row))? else {
            return fault(Some(13608));
        };
        if *as_json {
            return if value.is_scalar() { fault(Some(13624)) } else { Ok(Scalar::text(value.raw(row))) };
        }
        if !value.is_scalar() {
            return fault(Some(13623));
        }
        let sql_type = &self.columns[at].sql_type;
        match value.scalar_text(row) {
            None => Ok(Scalar::Null),
            Some(text) => convert(&Scalar::Text(text), &SqlType::NVARCHAR_MAX, sql_type, ConvertOptions::with_style(0)),
        }
    }
}

impl RowSource for OpenJsonWith {
    fn name(&self) -> &str {
        "OPENJSON"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        let Some((text, container)) = opened(arguments)? else {
            return Ok(Vec::new());
        };
        let objects: Vec<Value> = match container.kind {
            Kind::Array => members(text, container).map_err(|fault| fault.error(text))?.into_iter().map(|(_, value)| value).collect(),
            _ => vec![container],
        };
        let row = |object: Value| (0..self.columns.len()).map(|at| self.cell(at, object.raw(text))).collect();
        objects.into_iter().map(row).collect()
    }
}

/// UTF-16 units in a piece of a statement's own FOR JSON or FOR XML result.
const PIECE_UNITS: usize = 2033;

/// A text in pieces, one a row; no row for NULL.
#[derive(Debug)]
pub(crate) struct Pieces {
    columns: [OutputColumn; 1],
}

impl Pieces {
    pub(crate) fn new() -> Self {
        Self { columns: [column("piece", SqlType::NVARCHAR_MAX, false)] }
    }
}

impl RowSource for Pieces {
    fn name(&self) -> &str {
        "PIECES"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        let Some(text) = arguments[0].as_text() else {
            return Ok(Vec::new());
        };
        let mut rows = Vec::new();
        let (mut start, mut units) = (0, 0);
        for (at, c) in text.char_indices() {
            if units + c.len_utf16() > PIECE_UNITS {
                rows.push(vec![Scalar::text(&text[start..at])]);
                (start, units) = (at, 0);
            }
            units += c.len_utf16();
        }
        rows.push(vec![Scalar::text(&text[start..])]);
        Ok(rows)
    }
}
