//! Reading JSON text: one pass, values as spans.
//!
//! A [`Scanner`] stands before a value. [`Scanner::value`] passes over a whole one; [`Scanner::open`] and
//! [`Scanner::next_member`] / [`Scanner::next_element`] walk into one. The first character that cannot stand where it
//! stands ends everything with a [`Fault`].

use thawdb_types::SqlError;
use thawdb_types::error::message;

/// What a value is; the numbers are OPENJSON's `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null = 0,
    String = 1,
    Number = 2,
    Boolean = 3,
    Array = 4,
    Object = 5,
}

/// A value: `text[start..end]`, quotes and brackets included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Value {
    pub(super) fn is_scalar(self) -> bool {
        !matches!(self.kind, Kind::Array | Kind::Object)
    }

    pub(super) fn raw(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    /// The value of a scalar as SQL text; `None` for null.
    pub(super) fn scalar_text(self, text: &str) -> Option<String> {
        match self.kind {
            Kind::Null => None,
            Kind::String => Some(unescape(&text[self.start + 1..self.end - 1])),
            _ => Some(self.raw(text).to_owned()),
        }
    }
}

/// The character that cannot be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte offset; the length of the text if it ended too early.
    pub at: usize,
}

impl Fault {
    /// 13609. The position counts UTF-16 units from 0; a text that ends too early is told as SQL Server does, with a '.'.
    pub(super) fn error(self, text: &str) -> SqlError {
        let character = text[self.at..].chars().next().unwrap_or('.');
        let position = text[..self.at].encode_utf16().count();
        message(13609, &[&character, &(position as i64)])
    }
}

pub(super) type Scanned<T> = Result<T, Fault>;

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// A scanner before `value`.
    pub(super) fn at(text: &'a str, value: Value) -> Self {
        Self { text, at: value.start }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault<T>(&self) -> Scanned<T> {
        Err(Fault { at: self.at })
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Scanned<()> {
        self.skip_space();
        if self.peek() != Some(byte) {
            return self.fault();
        }
        self.at += 1;
        Ok(())
    }

    /// What the next value is, without passing it.
    pub(super) fn kind(&mut self) -> Scanned<(Kind, usize)> {
        self.skip_space();
        let kind = match self.peek() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => return self.fault(),
        };
        Ok((kind, self.at))
    }

    /// Passes over one value, whole.
    pub(super) fn value(&mut self) -> Scanned<Value> {
        let (kind, start) = self.kind()?;
        match kind {
            Kind::Array | Kind::Object => self.container()?,
            Kind::String => self.string()?,
            Kind::Number => self.number()?,
            Kind::Boolean if self.peek() == Some(b't') => self.word("true")?,
            Kind::Boolean => self.word("false")?,
            Kind::Null => self.word("null")?,
        }
        Ok(Value { kind, start, end: self.at })
    }

    /// Nothing but white space is left.
    pub(super) fn end(&mut self) -> Scanned<()> {
        self.skip_space();
        if self.at < self.text.len() { self.fault() } else { Ok(()) }
    }

    /// Steps over the `{` or `[` before it.
    pub(super) fn open(&mut self) {
        self.at += 1;
    }

    /// The next member's key (with its quotes) and value, or `None` behind the `}`. `first`: right behind the `{`.
    pub(super) fn next_member(&mut self, first: bool) -> Scanned<Option<(Value, Value)>> {
        let Some(key) = self.next_key(first)? else {
            return Ok(None);
        };
        Ok(Some((key, self.value()?)))
    }

    /// The next member's key; the scanner then stands before its value.
    pub(super) fn next_key(&mut self, first: bool) -> Scanned<Option<Value>> {
        if !self.more(b'}', first)? {
            return Ok(None);
        }
        self.skip_space();
        let start = self.at;
        self.string()?;
        let key = Value { kind: Kind::String, start, end: self.at };
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Whether another element follows; the scanner then stands before it. `first`: right behind the `[`.
    pub(super) fn next_element(&mut self, first: bool) -> Scanned<bool> {
        self.more(b']', first)
    }

    fn more(&mut self, close: u8, first: bool) -> Scanned<bool> {
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ if first => Ok(true),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            _ => self.fault(),
        }
    }

    /// Passes over an object or array. `open` has one entry a level: whether it is an object.
    fn container(&mut self) -> Scanned<()> {
        let mut open = vec![self.peek() == Some(b'{')];
        self.at += 1;
        let mut first = true;
        while let Some(object) = open.last().copied() {
            if !self.more(if object { b'}' } else { b']' }, first)? {
                open.pop();
                first = false;
                continue;
            }
            if object {
                self.skip_space();
                self.string()?;
                self.expect(b':')?;
            }
            match self.kind()?.0 {
                Kind::Object | Kind::Array => {
                    open.push(self.peek() == Some(b'{'));
                    self.at += 1;
                    first = true;
                }
                _ => {
                    self.value_of_scalar()?;
                    first = false;
                }
            }
        }
        Ok(())
    }

    fn value_of_scalar(&mut self) -> Scanned<()> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str) -> Scanned<()> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.fault();
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scanned<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.fault();
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn string(&mut self) -> Scanned<()> {
        if self.peek() != Some(b'"') {
            return self.fault();
        }
        self.at += 1;
        loop {
            match self.peek() {
                None | Some(0..0x20) => return self.fault(),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Scanned<()> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return self.fault();
                    }
                    self.at += 1;
                }
            }
            _ => return self.fault(),
        }
        Ok(())
    }
}

/// The text that the inside of a valid JSON string stands for. A lone surrogate becomes U+FFFD.
pub(super) fn unescape(inside: &str) -> String {
    if !inside.contains('\\') {
        return inside.to_owned();
    }
    let mut units: Vec<u16> = Vec::with_capacity(inside.len());
    let mut chars = inside.chars();
    let mut buffer = [0; 2];
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut buffer));
            continue;
        }
        units.push(match chars.next() {
            Some('b') => 8,
            Some('f') => 12,
            Some('n') => 10,
            Some('r') => 13,
            Some('t') => 9,
            Some('u') => chars.by_ref().take(4).filter_map(|c| c.to_digit(16)).fold(0, |unit, digit| unit << 4 | digit as u16),
            Some(other) => other as u16,
            None => break,
        });
    }
    String::from_utf16_lossy(&units)
}

/// Appends `text` escaped as STRING_ESCAPE and FOR JSON do, without quotes.
pub(crate) fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
}

/// `text` as a JSON string, quotes included.
pub(super) fn quote_into(out: &mut String, text: &str) {
    out.push('"');
    escape_into(out, text);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Scanned<Value> {
        let mut scanner = Scanner::new(text);
        let value = scanner.value()?;
        scanner.end().map(|()| value)
    }

    #[test]
    fn values_and_their_ends() {
        for (text, kind) in [
            (" {\"a\":[1,{\"b\":null}],\"c\":true} ", Kind::Object),
            ("[]", Kind::Array),
            ("-0.5e+10", Kind::Number),
            ("\"\\u00e9\\n\"", Kind::String),
            ("false", Kind::Boolean),
        ] {
            let value = whole(text).expect("is JSON");
            assert_eq!((value.kind, value.raw(text)), (kind, text.trim()));
        }
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(whole(&deep).expect("is JSON").end, deep.len());
    }

    #[test]
    fn faults_are_where_they_are() {
        for (text, at) in [
            ("abc", 0),
            ("{\"a\" 1}", 5),
            ("[1,]", 3),
            ("{,}", 1),
            ("01", 1),
            ("[1", 2),
            ("\"a\nb\"", 2),
            ("\"\\x\"", 2),
            ("\"\\u12g4\"", 5),
            ("tru", 3),
            ("{\"a\":1,}", 7),
            ("1.", 2),
            ("", 0),
        ] {
            assert_eq!(whole(text).expect_err(text).at, at, "{text}");
        }
    }

    #[test]
    fn escapes_come_back() {
        assert_eq!(unescape("a\\u00e9\\\\\\/\\ud83d\\ude00\\ud800"), "a\u{e9}\\/\u{1f600}\u{fffd}");
        let mut out = String::new();
        escape_into(&mut out, "\u{1}/\"\t\u{e9}");
        assert_eq!(out, "\\u0001\\/\\\"\\t\u{e9}");
    }
}
