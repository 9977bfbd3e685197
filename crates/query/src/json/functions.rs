//! ISJSON, JSON_VALUE, JSON_QUERY, JSON_PATH_EXISTS, JSON_MODIFY, JSON_OBJECT, JSON_ARRAY.
//!
//! lax (the default): what is not there, or is of the other sort, gives NULL. strict: it is an error (13608, 13623, 13624).

use super::format::{self, Shape};
use super::modify::modify;
use super::path::Path;
use super::scan::{Kind, Scanner};
use crate::bind::query::auto_nesting::nest;
use crate::expr::{Expr, ExprKind};
use crate::functions::call::Call;
use crate::functions::or_null;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

/// JSON_VALUE gives no more; UTF-16 units.
const VALUE_UNITS_MAX: usize = 4000;

/// Functions whose text is JSON already and goes into other JSON as it is.
const FRAGMENTS: [&str; 5] = ["FOR JSON", "JSON_ARRAY", "JSON_MODIFY", "JSON_OBJECT", "JSON_QUERY"];

/// Whether a call of `name` gives JSON rather than text.
pub(crate) fn is_fragment(name: &str) -> bool {
    FRAGMENTS.contains(&name)
}

fn gives_json(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Function { name, .. } => is_fragment(name),
        ExprKind::Convert { operand, .. } => gives_json(operand),
        _ => false,
    }
}

/// What argument `at` is written as.
fn shape(call: &Call<'_>, at: usize) -> Shape {
    if gives_json(&call.arguments[at]) { Shape::Json } else { Shape::of(call.type_of(at)) }
}

pub(crate) fn isjson(call: &Call<'_>) -> Result {
    let text = or_null!(call.text(0));
    let mut scanner = Scanner::new(text);
    let kind = scanner.value().and_then(|value| scanner.end().map(|()| value.kind));
    let wanted = |kind: Kind| match call.text(1) {
        None => matches!(kind, Kind::Array | Kind::Object),
        Some("value") => true,
        Some("array") => kind == Kind::Array,
        Some("object") => kind == Kind::Object,
        // As RFC 8259 has it, a scalar is a string or a number.
        Some(_) => matches!(kind, Kind::String | Kind::Number),
    };
    Ok(Scalar::Int(i32::from(kind.is_ok_and(wanted))))
}

pub(crate) fn json_value(call: &Call<'_>) -> Result {
    let (text, path) = (or_null!(call.text(0)), Path::parse(or_null!(call.text(1)))?);
    match path.find(text).map_err(|fault| fault.error(text))? {
        None if path.strict => Err(message(13608, &[])),
        None => Ok(Scalar::Null),
        Some(value) if !value.is_scalar() => {
            if path.strict {
                Err(message(13623, &[]))
            } else {
                Ok(Scalar::Null)
            }
        }
        Some(value) => {
            let text = or_null!(value.scalar_text(text));
            match text.encode_utf16().count() > VALUE_UNITS_MAX {
                true if path.strict => Err(message(13625, &[])),
                true => Ok(Scalar::Null),
                false => Ok(Scalar::Text(text)),
            }
        }
    }
}

pub(crate) fn json_query(call: &Call<'_>) -> Result {
    let text = or_null!(call.text(0));
    let path = match call.values.len() {
        1 => Path::default(),
        _ => Path::parse(or_null!(call.text(1)))?,
    };
    match path.find(text).map_err(|fault| fault.error(text))? {
        None if path.strict => Err(message(13608, &[])),
        Some(value) if !value.is_scalar() => Ok(Scalar::text(value.raw(text))),
        Some(_) if path.strict => Err(message(13624, &[])),
        _ => Ok(Scalar::Null),
    }
}

pub(crate) fn json_path_exists(call: &Call<'_>) -> Result {
    let (text, path) = (or_null!(call.text(0)), Path::parse(or_null!(call.text(1)))?);
    Ok(Scalar::Int(i32::from(path.find(text).is_ok_and(|found| found.is_some()))))
}

pub(crate) fn json_modify(call: &Call<'_>) -> Result {
    let (text, path) = (or_null!(call.text(0)), Path::parse(or_null!(call.text(1)))?);
    let new = match call.value(2) {
        Scalar::Null => None,
        value => {
            let mut json = String::new();
            format::write_value(&mut json, value, call.type_of(2), shape(call, 2))?;
            Some(json)
        }
    };
    modify(text, &path, new.as_deref()).map(Scalar::Text)
}

/// JSON_OBJECT(key, value, ..., absent on null): the binder hands on what the clause says as the last argument.
pub(crate) fn json_object(call: &Call<'_>) -> Result {
    let (absent, members) = split_flag(call);
    let mut out = String::from("{");
    for at in (0..members).step_by(2) {
        let key = call.text(at).ok_or_else(|| message(13610, &[&(at / 2 + 1), &"JSON_OBJECT"]))?;
        if absent && call.value(at + 1).is_null() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        super::scan::quote_into(&mut out, key);
        out.push(':');
        format::write_value(&mut out, call.value(at + 1), call.type_of(at + 1), shape(call, at + 1))?;
    }
    out.push('}');
    Ok(Scalar::Text(out))
}

/// JSON_ARRAY(value, ..., absent on null).
pub(crate) fn json_array(call: &Call<'_>) -> Result {
    let (absent, elements) = split_flag(call);
    let mut out = String::from("[");
    for at in 0..elements {
        if absent && call.value(at).is_null() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        format::write_value(&mut out, call.value(at), call.type_of(at), shape(call, at))?;
    }
    out.push(']');
    Ok(Scalar::Text(out))
}

fn split_flag(call: &Call<'_>) -> (bool, usize) {
    let last = call.values.len() - 1;
    (*call.value(last) == Scalar::Bit(true), last)
}

/// `FOR JSON` of one row: the layout of its properties, then the columns' values.
pub(crate) fn for_json_row(call: &Call<'_>) -> Result {
    let layout = format::Layout::decode(call.text(0).expect("the binder writes the layout"));
    let mut out = String::new();
    layout.write_row(&mut out, |column| {
        let at = column + 1;
        if call.value(at).is_null() && !layout.include_nulls {
            return Ok(None);
        }
        let mut value = String::new();
        let shape = if layout.fragments[column] { Shape::Json } else { shape(call, at) };
        format::write_value(&mut value, call.value(at), call.type_of(at), shape)?;
        Ok(Some(value))
    })?;
    Ok(Scalar::Text(out))
}

/// `FOR JSON NEST`: rows of several levels put into one another.
pub(crate) fn for_json_nest(call: &Call<'_>) -> Result {
    let names: Vec<&str> = call.text(0).expect("the binder writes the names").split('\u{1f}').collect();
    let rows = or_null!(call.text(1));
    let open = |out: &mut String, level: usize, object: &str| {
        out.push_str(object.strip_suffix('}').unwrap_or(object));
        out.push_str(if object.len() > 2 { ",\"" } else { "\"" });
        super::escape_into(out, names[level + 1]);
        out.push_str("\":[");
    };
    Ok(Scalar::Text(nest(rows, ",", open, |out, _| out.push_str("]}"))))
}

/// `FOR JSON` of all rows: the wrapping, then the rows joined by the aggregate; NULL for no row.
pub(crate) fn for_json(call: &Call<'_>) -> Result {
    let wrapping = call.text(0).expect("the binder writes the wrapping");
    let rows = or_null!(call.text(1));
    let (before, after) = wrapping.split_once('\u{1f}').expect("both halves");
    Ok(Scalar::Text([before, rows, after].concat()))
}
