//! The text of modify() to a [`Dml`]: keywords and constructors here, paths by the XPath parser.
//!
//! Namespaces that the text declares hold for each of its paths, and are declared anew on inserted elements that use them.
//! Failure: 2209 with what stands where it does not go on. No locks, nothing blocks; nesting is bounded by the XPath parser
//! and by the reader of the result.

use super::xpath::{self, Outside, Query};
use std::ops::Range;
use thawdb_types::SqlError;
use thawdb_types::error::message;

type Result<T> = std::result::Result<T, SqlError>;

/// A path or value, and which of the outside values it reads.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) query: Query,
    pub(super) outside: Range<usize>,
    text: String,
}

impl Value {
    /// How messages call what the path finds.
    pub(super) fn found(&self) -> String {
        let last = self.text.trim().trim_end_matches([')', ']']).rsplit('/').next().unwrap_or_default();
        let name = last.split(['[', '(']).next().unwrap_or_default();
        match name.strip_prefix('@') {
            Some(attribute) => format!("attribute({attribute},xdt:untypedAtomic) *"),
            None => format!("element({name},xdt:untyped) *"),
        }
    }
}

/// Where content goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Last,
    Before,
    After,
}

/// A part of a constructor.
#[derive(Debug)]
pub(super) enum Piece {
    Literal(String),
    InAttribute(Value),
    InContent(Value),
}

/// What is inserted.
#[derive(Debug)]
pub(super) enum Content {
    /// Elements as they are written, with `{...}` inside.
    Markup(Vec<Piece>),
    Attribute {
        name: String,
        value: Value,
    },
    Text(Value),
    Value(Value),
}

#[derive(Debug)]
pub(super) enum Action {
    Delete(Value),
    Replace { path: Value, with: Value },
    Insert { content: Vec<Content>, place: Place, path: Value },
}

/// A parsed modification, and the outside values it names in the order of [`Value::outside`].
#[derive(Debug)]
pub(crate) struct Dml {
    pub(super) action: Action,
    pub(crate) outside: Vec<Outside>,
}

/// Parses the text of modify().
pub(crate) fn parse(text: &str) -> Result<Dml> {
    let begin = prolog_end(text);
    let mut parser = Parser { prolog: text[..begin].to_owned(), rest: &text[begin..], outside: Vec::new() };
    let action = parser.action()?;
    Ok(Dml { action, outside: parser.outside })
}

/// Where the declarations end.
fn prolog_end(text: &str) -> usize {
    let mut at = 0;
    while text[at..].trim_start().starts_with("declare") {
        match text[at..].find(';') {
            Some(end) => at += end + 1,
            None => return at,
        }
    }
    at
}

struct Parser<'t> {
    prolog: String,
    rest: &'t str,
    outside: Vec<Outside>,
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}

impl<'t> Parser<'t> {
    fn fault<T>(&self) -> Result<T> {
        let near: String = self.rest.trim_start().chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        Err(message(2209, &[&"modify()", &(if near.is_empty() { "<eof>" } else { near.as_str() })]))
    }

    fn eat(&mut self, words: &[&str]) -> bool {
        let mut rest = self.rest;
        for word in words {
            match rest.trim_start().strip_prefix(word) {
                Some(behind) if !word.ends_with(is_name) || !behind.starts_with(is_name) => rest = behind,
                _ => return false,
            }
        }
        self.rest = rest;
        true
    }

    fn value(&mut self, text: &str) -> Result<Value> {
        let query = xpath::parse(&format!("{}{text}", self.prolog), "modify()")?;
        let begin = self.outside.len();
        self.outside.extend(query.outside.iter().cloned());
        Ok(Value { query, outside: begin..self.outside.len(), text: text.to_owned() })
    }

    fn action(&mut self) -> Result<Action> {
        if self.eat(&["delete"]) {
            return Ok(Action::Delete(self.value(self.rest)?));
        }
        if self.eat(&["replace", "value", "of"]) {
            let Some(at) = word_outside(self.rest, "with") else { return self.fault() };
            let (path, with) = (&self.rest[..at], &self.rest[at + "with".len()..]);
            return Ok(Action::Replace { path: self.value(path)?, with: self.value(with)? });
        }
        if !self.eat(&["insert"]) {
            return self.fault();
        }
        let content = self.contents()?;
        let place = self.place()?;
        let path = self.value(self.rest)?;
        Ok(Action::Insert { content, place, path })
    }

    fn place(&mut self) -> Result<Place> {
        const PLACES: &[(&[&str], Place)] = &[
            (&["as", "first", "into"], Place::First),
            (&["as", "last", "into"], Place::Last),
            (&["into"], Place::Last),
            (&["before"], Place::Before),
            (&["after"], Place::After),
        ];
        match PLACES.iter().find(|(words, _)| self.eat(words)) {
            Some((_, place)) => Ok(*place),
            None => self.fault(),
        }
    }

    /// One piece of content, or several in parentheses.
    fn contents(&mut self) -> Result<Vec<Content>> {
        if !self.eat(&["("]) {
            return Ok(vec![self.content()?]);
        }
        let mut contents = vec![self.content()?];
        while self.eat(&[","]) {
            contents.push(self.content()?);
        }
        if self.eat(&[")"]) { Ok(contents) } else { self.fault() }
    }

    fn content(&mut self) -> Result<Content> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('<') {
            return self.markup();
        }
        if self.eat(&["attribute"]) {
            let name: String = self.rest.trim_start().chars().take_while(|c| is_name(*c)).collect();
            self.rest = &self.rest.trim_start()[name.len()..];
            return Ok(Content::Attribute { name, value: self.braced()? });
        }
        if self.rest.strip_prefix("text").is_some_and(|rest| rest.trim_start().starts_with('{')) {
            self.rest = &self.rest["text".len()..];
            return Ok(Content::Text(self.braced()?));
        }
        let ends = ["as", "into", "before", "after"].iter().filter_map(|word| word_outside(self.rest, word));
        let end = ends.chain(mark_outside(self.rest, &[',', ')'])).min();
        let Some(end) = end else { return self.fault() };
        let text = &self.rest[..end];
        self.rest = &self.rest[end..];
        self.value(text).map(Content::Value)
    }

    /// `{ value }`
    fn braced(&mut self) -> Result<Value> {
        let Some(inside) = self.rest.trim_start().strip_prefix('{') else { return self.fault() };
        let Some(end) = mark_outside(inside, &['}']) else { return self.fault() };
        self.rest = &inside[end + 1..];
        self.value(&inside[..end])
    }

    /// An element as it is written, to its closing tag.
    fn markup(&mut self) -> Result<Content> {
        let (mut pieces, mut literal) = (Vec::new(), String::new());
        let (mut depth, mut in_tag, mut quote) = (0usize, false, None);
        let mut first = true;
        loop {
            let Some(c) = self.rest.chars().next() else { return Err(message(2209, &[&"modify()", &"<eof>"])) };
            if c == '{' {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                let value = self.braced()?;
                pieces.push(if in_tag { Piece::InAttribute(value) } else { Piece::InContent(value) });
                continue;
            }
            let closes = c == '<' && self.rest.starts_with("</");
            let closed_at_once = in_tag && quote.is_none() && self.rest.starts_with("/>");
            literal.push(c);
            self.rest = &self.rest[c.len_utf8()..];
            match (c, quote) {
                ('"' | '\'', None) if in_tag => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (_, Some(_)) => {}
                ('<', None) => {
                    in_tag = true;
                    depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
                    if std::mem::take(&mut first) {
                        let name: String = self.rest.chars().take_while(|c| is_name(*c)).collect();
                        self.rest = &self.rest[name.len()..];
                        literal.push_str(&name);
                        self.declare_namespaces(&mut literal);
                    }
                }
                ('/', None) if closed_at_once => depth -= 1,
                ('>', None) if in_tag => {
                    in_tag = false;
                    if depth == 0 {
                        pieces.push(Piece::Literal(literal));
                        return Ok(Content::Markup(pieces));
                    }
                }
                _ => {}
            }
        }
    }

    /// Declares on the element that just begins the namespaces of the text; the normal form drops those that are known.
    fn declare_namespaces(&self, literal: &mut String) {
        let Ok(declared) = xpath::parse(&format!("{}.", self.prolog), "modify()") else { return };
        for (prefix, uri) in declared.namespaces {
            let used = prefix.is_empty() || self.rest.contains(&format!("{prefix}:")) || literal.contains(&format!("{prefix}:"));
            if used {
                literal.push_str(" xmlns");
                if !prefix.is_empty() {
                    literal.extend([":", prefix.as_str()]);
                }
                literal.extend(["=\"", uri.as_str(), "\""]);
            }
        }
    }
}

/// Calls `found` at each character outside of quotes and brackets, until it is true.
fn outside_of_quotes(text: &str, mut found: impl FnMut(usize, char) -> bool) -> Option<usize> {
    let (mut depth, mut quote) = (0usize, None);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            _ if depth == 0 && found(at, c) => return Some(at),
            ('"' | '\'', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Where a word of its own stands.
fn word_outside(text: &str, word: &str) -> Option<usize> {
    outside_of_quotes(text, |at, _| {
        let alone = |c: Option<char>| c.is_none_or(|c| !is_name(c));
        text[at..].starts_with(word) && alone(text[..at].chars().next_back()) && alone(text[at + word.len()..].chars().next())
    })
}

/// Where one of the marks stands.
fn mark_outside(text: &str, marks: &[char]) -> Option<usize> {
    outside_of_quotes(text, |_, c| marks.contains(&c))
}
