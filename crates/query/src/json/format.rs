//! FOR JSON: values, rows and their nesting as text.
//!
//! A [`Layout`] says how a row's columns become properties. It is made once by the binder, travels in the plan as a text
//! constant, and is read by the row function:
//!
//! ```text
//! include nulls? U+001F  name U+001F name ...    a name is the path of its property, parts joined by U+001E,
//!                                                U+001D before one whose column holds JSON
//! ```

use super::scan::{escape_into, quote_into};
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As a string.
    Quoted,
    /// As it is converted to text: numbers.
    Plain,
    /// true or false.
    Boolean,
    /// Base64 in a string.
    Base64,
    /// JSON text already.
    Json,
}

impl Shape {
    pub(crate) fn of(sql_type: &SqlType) -> Self {
        match sql_type {
            SqlType::Bit => Self::Boolean,
            SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Image | SqlType::RowVersion => Self::Base64,
            other if other.is_numeric() => Self::Plain,
            _ => Self::Quoted,
        }
    }
}

/// Appends a value as JSON.
pub(crate) fn write_value(out: &mut String, value: &Scalar, sql_type: &SqlType, shape: Shape) -> Result<(), SqlError> {
    match (value, shape) {
        (Scalar::Null, _) => out.push_str("null"),
        (Scalar::Binary(bytes), _) if *sql_type == SqlType::SqlVariant => match thawdb_types::variant::decode(bytes) {
            Some((base, value)) => write_value(out, &value, &base, Shape::of(&base))?,
            None => out.push_str("null"),
        },
        (Scalar::Bit(bit), _) => out.push_str(if *bit { "true" } else { "false" }),
        (Scalar::Text(text), Shape::Json) => out.push_str(text),
        (Scalar::Text(text), _) => quote_into(out, text),
        (Scalar::Binary(bytes), _) => {
            out.push('"');
            base64_into(out, bytes);
            out.push('"');
        }
        (other, shape) => {
            let text = convert(other, sql_type, &SqlType::NVARCHAR_MAX, ConvertOptions::with_style(style(sql_type)))?;
            let text = text.as_text().unwrap_or_default();
            if shape == Shape::Plain {
                out.push_str(text);
            } else {
                quote_into(out, text);
            }
        }
    }
    Ok(())
}

/// The CONVERT style FOR JSON writes a type in: ISO 8601 for dates, all digits for floats.
fn style(sql_type: &SqlType) -> i32 {
    match sql_type {
        SqlType::Float => 2,
        SqlType::Real => 1,
        SqlType::Money | SqlType::SmallMoney => 2,
        SqlType::DateTimeOffset { .. } => 127,
        other if other.is_date_time() => 126,
        _ => 0,
    }
}

/// Appends the base64 (RFC 4648) of `bytes`.
pub(crate) fn base64_into(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            out.push(if digit <= chunk.len() { DIGITS[(word >> (18 - 6 * digit)) as usize & 63] as char } else { '=' });
        }
    }
}

/// Stands before the name of a column that holds JSON.
const FRAGMENT: char = '\u{1d}';

/// How a row's columns become properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) include_nulls: bool,
    /// Path of each column's property, outermost first.
    pub(crate) paths: Vec<Vec<String>>,
    /// Whether each column holds JSON, which stands in the row as it is.
    pub(crate) fragments: Vec<bool>,
}

impl Layout {
    /// PATH mode: dots nest. 13603 for a name that cannot be split, 13601 for two that claim one place.
    pub(crate) fn of_names(names: &[String], fragments: Vec<bool>, include_nulls: bool) -> Result<Self, SqlError> {
        let mut paths: Vec<Vec<String>> = Vec::with_capacity(names.len());
        for name in names {
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            if path.iter().any(String::is_empty) {
                return Err(message(13603, &[name]));
            }
            if conflicts(&paths, &path) {
                return Err(message(13601, &[name]));
            }
            paths.push(path);
        }
        Ok(Self { include_nulls, paths, fragments })
    }

    /// AUTO mode: every name is one property. 13601 for one that stands there twice.
    pub(crate) fn of_keys(names: &[String], fragments: Vec<bool>, include_nulls: bool) -> Result<Self, SqlError> {
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(message(13601, &[twice]));
        }
        Ok(Self { include_nulls, paths: names.iter().map(|name| vec![name.clone()]).collect(), fragments })
    }

    pub(crate) fn encode(&self) -> String {
        let mut out = String::from(if self.include_nulls { "1" } else { "0" });
        for (path, fragment) in self.paths.iter().zip(&self.fragments) {
            out.push('\u{1f}');
            out.extend(fragment.then_some(FRAGMENT));
            out.push_str(&path.join("\u{1e}"));
        }
        out
    }

    pub(crate) fn decode(text: &str) -> Self {
        let mut parts = text.split('\u{1f}');
        let include_nulls = parts.next() == Some("1");
        let (mut paths, mut fragments) = (Vec::new(), Vec::new());
        for part in parts {
            let path = part.strip_prefix(FRAGMENT);
            fragments.push(path.is_some());
            paths.push(path.unwrap_or(part).split('\u{1e}').map(str::to_owned).collect());
        }
        Self { include_nulls, paths, fragments }
    }

    /// Appends the row's object. `value` gives a column's value as JSON, or `None` for one that is left out.
    pub(crate) fn write_row(
        &self,
        out: &mut String,
        mut value: impl FnMut(usize) -> Result<Option<String>, SqlError>,
    ) -> Result<(), SqlError> {
        out.push('{');
        // Names of the objects open at this point.
        let mut open: Vec<&str> = Vec::new();
        for (column, path) in self.paths.iter().enumerate() {
            let Some(value) = value(column)? else {
                continue;
            };
            let objects = &path[..path.len() - 1];
            let shared = open.iter().zip(objects).take_while(|(a, b)| **a == b.as_str()).count();
            (shared..open.len()).for_each(|_| out.push('}'));
            open.truncate(shared);
            for object in &objects[shared..] {
                name_into(out, object);
                out.push('{');
                open.push(object);
            }
            name_into(out, path.last().expect("a path has a part"));
            out.push_str(&value);
        }
        (0..=open.len()).for_each(|_| out.push('}'));
        Ok(())
    }
}

fn name_into(out: &mut String, name: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    escape_into(out, name);
    out.push_str("\":");
}

/// Whether `path` claims a place taken: the same property, a property as an object, or an object closed before.
fn conflicts(paths: &[Vec<String>], path: &[String]) -> bool {
    let taken = |before: &Vec<String>| before.starts_with(path) || path.starts_with(before);
    if paths.iter().any(taken) {
        return true;
    }
    let objects = &path[..path.len() - 1];
    (1..=objects.len()).any(|depth| {
        let within = |other: &&Vec<String>| other.len() > depth && other[..depth] == objects[..depth];
        paths.iter().any(|p| within(&p)) && !paths.last().is_some_and(|last| within(&last))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(names: &[&str], values: &[Scalar], include_nulls: bool) -> String {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let layout = Layout::decode(&Layout::of_names(&names, vec![false; names.len()], include_nulls).expect("a layout").encode());
        let mut out = String::new();
        let value = |column: usize| match &values[column] {
            Scalar::Null if !include_nulls => Ok(None),
            Scalar::Int(number) => Ok(Some(number.to_string())),
            _ => Ok(Some("null".to_owned())),
        };
        layout.write_row(&mut out, value).expect("writes");
        out
    }

    #[test]
    fn dots_nest() {
        let values = [Scalar::Int(1), Scalar::Int(2), Scalar::Null, Scalar::Int(4)];
        let names = ["a", "b.c", "b.d.e", "f"];
        assert_eq!(row(&names, &values, false), r#"{"a":1,"b":{"c":2},"f":4}"#);
        assert_eq!(row(&names, &values, true), r#"{"a":1,"b":{"c":2,"d":{"e":null}},"f":4}"#);
        assert_eq!(row(&["a"], &[Scalar::Null], false), "{}");
    }

    #[test]
    fn names_that_cannot_be() {
        let number = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
            Layout::of_names(&names, vec![false; names.len()], false).expect_err("refused").number
        };
        assert_eq!(number(&[".a"]), 13603);
        assert_eq!(number(&["a..b"]), 13603);
        assert_eq!(number(&["a", "a"]), 13601);
        assert_eq!(number(&["a.b", "a"]), 13601);
        assert_eq!(number(&["a.b", "c", "a.d"]), 13601);
    }

    #[test]
    fn base64_of_every_rest() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut out = String::new();
            base64_into(&mut out, bytes.as_bytes());
            assert_eq!(out, text);
        }
    }
}
