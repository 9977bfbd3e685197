//! FOR XML RAW, AUTO (one table) and PATH: one row as text.
//!
//! A [`Layout`] is made once by the binder, travels in the plan as a text constant, and is read by the row function:
//! `nil? U+001F element U+001F column U+001F column ...`, each column as its kind's letter and its path.

use crate::json::format::base64_into;
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::error::message;
use thawdb_types::xml::{escape_attribute_into, escape_text_into};
use thawdb_types::{Scalar, SqlError, SqlType};

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// What a column becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Attribute,
    Element,
    /// Content of the element its path names: `text()`, `*`, `node()`, no name.
    Content,
    /// `data()`: content, items apart by a blank.
    Data,
    Comment,
}

impl Kind {
    const LETTERS: [(Self, char); 5] =
        [(Self::Attribute, '@'), (Self::Element, 'e'), (Self::Content, 't'), (Self::Data, 'd'), (Self::Comment, 'c')];

    fn letter(self) -> char {
        Self::LETTERS.iter().find(|(kind, _)| *kind == self).expect("each has one").1
    }

    fn of_letter(letter: char) -> Self {
        Self::LETTERS.iter().find(|(_, known)| *known == letter).map_or(Self::Content, |(kind, _)| *kind)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    kind: Kind,
    /// Elements around it, outermost first.
    around: Vec<String>,
    /// Its own name; empty for content.
    name: String,
}

/// How a row's columns become XML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// ELEMENTS XSINIL: NULL is an element that says so.
    nil: bool,
    /// Declarations of WITH XMLNAMESPACES, as attributes; on outermost elements.
    declared: String,
    /// The row's element; empty for none.
    element: String,
    columns: Vec<Column>,
}

impl Layout {
    /// RAW and AUTO: attributes, or elements when the clause says ELEMENTS. 6809 for a column without a name.
    pub(crate) fn flat(element: &str, names: &[String], elements: bool, nil: bool) -> Result<Self, SqlError> {
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            if name.is_empty() {
                return Err(message(6809, &[]));
            }
            if !elements && columns.iter().any(|before: &Column| before.name == encoded_name(name)) {
                return Err(message(6810, &[name]));
            }
            let kind = if elements { Kind::Element } else { Kind::Attribute };
            columns.push(Column { kind, around: Vec::new(), name: encoded_name(name) });
        }
        Ok(Self { nil, declared: String::new(), element: encoded_name(element), columns })
    }

    /// PATH: 6850 for a name that is none, 6852 for an attribute behind content.
    pub(crate) fn path(element: &str, names: &[String], nil: bool) -> Result<Self, SqlError> {
        if !element.is_empty() {
            check_name("Row tag", element)?;
        }
        let mut columns: Vec<Column> = Vec::with_capacity(names.len());
        for name in names {
            let column = path_column(name)?;
            let behind = |before: &Column| {
                before.around.starts_with(&column.around) && (before.around.len() > column.around.len() || before.kind != Kind::Attribute)
            };
            if column.kind == Kind::Attribute && columns.iter().any(behind) {
                return Err(message(6852, &[name]));
            }
            columns.push(column);
        }
        Ok(Self { nil, declared: String::new(), element: element.to_owned(), columns })
    }

    /// The row's element as it is written.
    pub(crate) fn element(&self) -> &str {
        &self.element
    }

    /// The same with declarations on its outermost elements.
    pub(crate) fn declaring(self, declared: String) -> Self {
        Self { declared, ..self }
    }

    pub(crate) fn encode(&self) -> String {
        let mut out = format!("{}{}\u{1f}{}", u8::from(self.nil), self.declared, self.element);
        for column in &self.columns {
            out.push('\u{1f}');
            out.push(column.kind.letter());
            column.around.iter().for_each(|name| out.extend([name, "\u{1e}"]));
            out.push_str(&column.name);
        }
        out
    }

    pub(crate) fn decode(text: &str) -> Self {
        let mut parts = text.split('\u{1f}');
        let first = parts.next().unwrap_or("0");
        let (nil, declared) = (first.starts_with('1'), first.get(1..).unwrap_or_default().to_owned());
        let element = parts.next().unwrap_or_default().to_owned();
        let columns = parts
            .map(|part| {
                let mut path: Vec<String> = part[1..].split('\u{1e}').map(str::to_owned).collect();
                let name = path.pop().unwrap_or_default();
                Column { kind: Kind::of_letter(part.chars().next().unwrap_or('t')), around: path, name }
            })
            .collect();
        Self { nil, declared, element, columns }
    }

    /// Appends the row. `value` gives a column's value as escaped text for an attribute (true) or for content, or `None`
    /// for NULL.
    pub(crate) fn write_row(
        &self,
        out: &mut String,
        mut value: impl FnMut(usize, bool) -> Result<Option<String>, SqlError>,
    ) -> Result<(), SqlError> {
        let mut writer = RowWriter { out, open: Vec::new(), in_tag: false, data_before: false, declared: &self.declared };
        if !self.element.is_empty() {
            writer.begin(&self.element);
            if self.nil {
                writer.attribute("xmlns:xsi", XSI);
            }
        }
        let base = writer.open.len();
        for (at, column) in self.columns.iter().enumerate() {
            let found = value(at, column.kind == Kind::Attribute)?;
            if found.is_none() && !(self.nil && column.kind == Kind::Element) {
                continue;
            }
            writer.step_into(base, &column.around);
            writer.column(column, found.as_deref());
        }
        while !writer.open.is_empty() {
            writer.end();
        }
        Ok(())
    }
}

/// Writes tags so that one without content is closed at once.
struct RowWriter<'o> {
    out: &'o mut String,
    open: Vec<String>,
    /// Inside the last begin tag.
    in_tag: bool,
    data_before: bool,
    /// What outermost elements declare.
    declared: &'o str,
}

impl RowWriter<'_> {
    fn begin(&mut self, name: &str) {
        self.content();
        self.out.extend(["<", name]);
        if self.open.is_empty() {
            self.out.push_str(self.declared);
        }
        self.open.push(name.to_owned());
        self.in_tag = true;
    }

    fn attribute(&mut self, name: &str, escaped: &str) {
        self.out.extend([" ", name, "=\"", escaped, "\""]);
    }

    /// What follows is content.
    fn content(&mut self) {
        if std::mem::take(&mut self.in_tag) {
            self.out.push('>');
        }
        self.data_before = false;
    }

    fn end(&mut self) {
        let name = self.open.pop().expect("an element is open");
        if std::mem::take(&mut self.in_tag) {
            self.out.push_str("/>");
        } else {
            self.out.extend(["</", &name, ">"]);
        }
        self.data_before = false;
    }

    fn step_into(&mut self, base: usize, around: &[String]) {
        let shared = self.open[base..].iter().zip(around).take_while(|(a, b)| a == b).count();
        while self.open.len() > base + shared {
            self.end();
        }
        for name in &around[shared..] {
            self.begin(name);
        }
    }

    fn column(&mut self, column: &Column, value: Option<&str>) {
        let text = value.unwrap_or_default();
        match column.kind {
            Kind::Attribute if self.in_tag => self.attribute(&column.name, text),
            // PATH('') has no tag for it; the binder refuses that.
            Kind::Attribute => {}
            Kind::Element => {
                self.begin(&column.name);
                match value {
                    None => self.attribute("xsi:nil", "true"),
                    Some("") => self.content(),
                    Some(text) => {
                        self.content();
                        self.out.push_str(text);
                    }
                }
                self.end();
            }
            Kind::Data => {
                let blank = self.data_before;
                self.content();
                self.out.push_str(if blank { " " } else { "" });
                self.out.push_str(text);
                self.data_before = true;
            }
            Kind::Content => {
                self.content();
                self.out.push_str(text);
            }
            Kind::Comment => {
                self.content();
                self.out.extend(["<!--", text, "-->"]);
            }
        }
    }
}

fn path_column(name: &str) -> Result<Column, SqlError> {
    let mut around: Vec<String> = name.split('/').map(str::to_owned).collect();
    let last = around.pop().unwrap_or_default();
    for name in &around {
        check_name("Column", name)?;
    }
    let (kind, name) = match last.as_str() {
        "" | "*" | "text()" | "node()" => (Kind::Content, ""),
        "data()" => (Kind::Data, ""),
        "comment()" => (Kind::Comment, ""),
        attribute if attribute.starts_with('@') => (Kind::Attribute, &attribute[1..]),
        element => (Kind::Element, element),
    };
    if matches!(kind, Kind::Attribute | Kind::Element) {
        check_name("Column", name)?;
    }
    Ok(Column { kind, around, name: name.to_owned() })
}

fn is_name_character(c: char, first: bool) -> bool {
    c.is_alphabetic() || c == '_' || !first && (c.is_alphanumeric() || matches!(c, '-' | '.' | ':' | '\u{b7}'))
}

fn check_name(what: &str, name: &str) -> Result<(), SqlError> {
    let fault = name.char_indices().find(|(at, c)| !is_name_character(*c, *at == 0)).map(|(_, c)| c);
    match fault.or(name.is_empty().then_some(' ')) {
        None => Ok(()),
        Some(c) => Err(message(6850, &[&what, &name, &c, &(c as u32)])),
    }
}

/// A name of SQL as one of XML: what XML does not take becomes `_xHHHH_`.
fn encoded_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        if is_name_character(c, at == 0) && c != ':' {
            out.push(c);
        } else {
            out.push_str(&format!("_x{:04X}_", c as u32));
        }
    }
    out
}

/// A value as escaped text; `raw` XML goes into content as it is.
pub(crate) fn value_text(value: &Scalar, sql_type: &SqlType, in_attribute: bool) -> Result<String, SqlError> {
    let mut out = String::new();
    if let (Scalar::Binary(bytes), SqlType::SqlVariant) = (value, sql_type) {
        return match thawdb_types::variant::decode(bytes) {
            Some((base, value)) => value_text(&value, &base, in_attribute),
            None => Ok(out),
        };
    }
    let text = match value {
        Scalar::Text(text) if *sql_type == SqlType::Xml && !in_attribute => return Ok(text.clone()),
        Scalar::Text(text) => text.clone(),
        Scalar::Bit(bit) => u8::from(*bit).to_string(),
        Scalar::Binary(bytes) => {
            base64_into(&mut out, bytes);
            return Ok(out);
        }
        other => {
            let style = match sql_type {
                SqlType::Float => 2,
                SqlType::Real => 1,
                SqlType::Money | SqlType::SmallMoney => 2,
                SqlType::DateTimeOffset { .. } => 127,
                other if other.is_date_time() => 126,
                _ => 0,
            };
            let text = convert(other, sql_type, &SqlType::NVARCHAR_MAX, ConvertOptions::with_style(style))?;
            text.as_text().unwrap_or_default().to_owned()
        }
    };
    if in_attribute {
        escape_attribute_into(&mut out, &text)
    } else {
        escape_text_into(&mut out, &text)
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn row(layout: &Layout, values: &[Option<&str>]) -> String {
        let mut out = String::new();
        let layout = Layout::decode(&layout.encode());
        layout.write_row(&mut out, |at, _| Ok(values[at].map(str::to_owned))).expect("writes");
        out
    }

    #[test]
    fn paths_nest() {
        let layout = Layout::path("row", &names(&["@id", "a/@x", "a/b", "a/text()", "c", ""]), false).expect("a layout");
        let all = [Some("1"), Some("2"), Some("3"), Some("4"), Some(""), Some("t")];
        assert_eq!(row(&layout, &all), "<row id=\"1\"><a x=\"2\"><b>3</b>4</a><c></c>t</row>");
        assert_eq!(row(&layout, &[None, None, None, None, None, None]), "<row/>");
        let bare = Layout::path("", &names(&["data()", "data()"]), false).expect("a layout");
        assert_eq!(row(&bare, &[Some("a"), Some("b")]), "a b");
    }

    #[test]
    fn flat_rows() {
        let layout = Layout::flat("row", &names(&["id", "two words"]), false, false).expect("a layout");
        assert_eq!(row(&layout, &[Some("1"), Some("2")]), "<row id=\"1\" two_x0020_words=\"2\"/>");
        let nil = Layout::flat("t", &names(&["id"]), true, true).expect("a layout");
        assert_eq!(row(&nil, &[None]), format!("<t xmlns:xsi=\"{XSI}\"><id xsi:nil=\"true\"/></t>"));
    }

    #[test]
    fn names_that_cannot_be() {
        assert_eq!(Layout::path("row", &names(&["a b"]), false).expect_err("refused").number, 6850);
        assert_eq!(Layout::path("row", &names(&["a", "@b"]), false).expect_err("refused").number, 6852);
        assert_eq!(Layout::flat("row", &names(&[""]), false, false).expect_err("refused").number, 6809);
    }
}
