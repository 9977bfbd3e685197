//! JSON paths: `[append] [lax | strict] $.key."quoted key"[3]`, and walking them.

use super::scan::{Fault, Kind, Scanned, Scanner, Value, unescape};
use thawdb_types::SqlError;
use thawdb_types::error::message;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Path {
    pub append: bool,
    /// What is not there is an error rather than NULL.
    pub strict: bool,
    pub steps: Vec<Step>,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A value; for a member of an object, where its key begins, and the values before it there.
    Value { value: Value, key: Option<usize>, before: usize },
    /// All but the last step: the container that lacks it, and the members it has.
    Missing { container: Value, members: usize },
    /// Not even that.
    Nowhere,
}

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, SqlError> {
        Parser { chars: text.chars().collect(), at: 0 }.path()
    }

    /// Follows the path from the one value of `text`.
    pub(super) fn walk(&self, text: &str) -> Scanned<Place> {
        let mut scanner = Scanner::new(text);
        let (mut key, mut before) = (None, 0);
        for (depth, step) in self.steps.iter().enumerate() {
            let (kind, start) = scanner.kind()?;
            let last = depth + 1 == self.steps.len();
            let found = match (step, kind) {
                (Step::Key(name), Kind::Object) => find_key(&mut scanner, text, name)?.map_err(|members| (members, start)),
                (Step::Index(index), Kind::Array) => find_index(&mut scanner, *index)?.map_err(|members| (members, start)),
                // Read all the same: a text that is no JSON is told of.
                _ => {
                    scanner.value()?;
                    return Ok(Place::Nowhere);
                }
            };
            match found {
                Ok((at, position)) => (key, before) = (at, position),
                Err((members, start)) if last => {
                    let container = Scanner::at(text, Value { kind, start, end: start }).value()?;
                    return Ok(Place::Missing { container, members });
                }
                Err(_) => return Ok(Place::Nowhere),
            }
        }
        Ok(Place::Value { value: scanner.value()?, key, before })
    }

    /// The value the path leads to.
    pub(super) fn find(&self, text: &str) -> Scanned<Option<Value>> {
        Ok(match self.walk(text)? {
            Place::Value { value, .. } => Some(value),
            Place::Missing { .. } | Place::Nowhere => None,
        })
    }
}

type Found = Result<(Option<usize>, usize), usize>;

/// Stands before the value of the first member called `name`, or says how many members there are.
fn find_key(scanner: &mut Scanner<'_>, text: &str, name: &str) -> Result<Found, Fault> {
    scanner.open();
    let mut members = 0;
    while let Some(key) = scanner.next_key(members == 0)? {
        let inside = &text[key.start + 1..key.end - 1];
        if inside == name || inside.contains('\\') && unescape(inside) == name {
            return Ok(Ok((Some(key.start), members)));
        }
        scanner.value()?;
        members += 1;
    }
    Ok(Err(members))
}

fn find_index(scanner: &mut Scanner<'_>, index: usize) -> Result<Found, Fault> {
    scanner.open();
    let mut members = 0;
    while scanner.next_element(members == 0)? {
        if members == index {
            return Ok(Ok((None, members)));
        }
        scanner.value()?;
        members += 1;
    }
    Ok(Err(members))
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn fault<T>(&self) -> Result<T, SqlError> {
        let character = self.chars.get(self.at).copied().unwrap_or('.');
        let position: usize = self.chars[..self.at.min(self.chars.len())].iter().map(|c| c.len_utf16()).sum();
        Err(message(13607, &[&character, &(position as i64)]))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.chars[self.at..].iter().zip(word.chars()).filter(|(a, b)| **a == *b).count() == word.len();
        if found {
            self.at += word.len();
            self.skip_space();
        }
        found
    }

    fn path(mut self) -> Result<Path, SqlError> {
        self.skip_space();
        let append = self.word("append");
        let strict = if self.word("lax") { false } else { self.word("strict") };
        if self.peek() != Some('$') {
            return self.fault();
        }
        self.at += 1;
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                None => return Ok(Path { append, strict, steps }),
                Some('.') => {
                    self.at += 1;
                    steps.push(Step::Key(self.key()?));
                }
                Some('[') => {
                    self.at += 1;
                    steps.push(Step::Index(self.index()?));
                }
                Some(c) if c.is_whitespace() && self.chars[self.at..].iter().all(|c| c.is_whitespace()) => self.at = self.chars.len(),
                Some(_) => return self.fault(),
            }
        }
    }

    fn key(&mut self) -> Result<String, SqlError> {
        if self.peek() == Some('"') {
            return self.quoted_key();
        }
        let start = self.at;
        if !self.peek().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$') {
            return self.fault();
        }
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            self.at += 1;
        }
        Ok(self.chars[start..self.at].iter().collect())
    }

    fn quoted_key(&mut self) -> Result<String, SqlError> {
        self.at += 1;
        let start = self.at;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    let inside: String = self.chars[start..self.at].iter().collect();
                    self.at += 1;
                    return Ok(unescape(&inside));
                }
                '\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.fault()
    }

    fn index(&mut self) -> Result<usize, SqlError> {
        self.skip_space();
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        let Ok(index) = digits.parse() else {
            return self.fault();
        };
        self.skip_space();
        if self.peek() != Some(']') {
            return self.fault();
        }
        self.at += 1;
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_parse() {
        let path = Path::parse("append strict $.a.\"b c\"[3]._x").expect("parses");
        assert!(path.append && path.strict);
        let key = |s: &str| Step::Key(s.into());
        assert_eq!(path.steps, [key("a"), key("b c"), Step::Index(3), key("_x")]);
        assert_eq!(Path::parse("$").expect("parses"), Path::default());
        for (bad, position) in [("a", 0), ("$.", 2), ("$[x]", 2), ("$.a b", 3), ("$.1", 2), ("", 0), ("$.\"a", 4), ("$[1", 3)] {
            let error = Path::parse(bad).expect_err(bad);
            assert!(error.number == 13607 && error.text.ends_with(&format!("position {position}.")), "{bad}: {error:?}");
        }
    }

    #[test]
    fn paths_lead_to_the_first_of_a_name() {
        let text = r#"{"a":[10,{"b\u0063":"x"}],"a":2}"#;
        let at = |path: &str| Path::parse(path).expect("parses").find(text).expect("is JSON").map(|v| v.raw(text));
        assert_eq!(at("$.a[0]"), Some("10"));
        assert_eq!(at("$.a[1].bc"), Some("\"x\""));
        assert_eq!(at("$.a[2]"), None);
        assert_eq!(at("$.a.b"), None);
        assert_eq!(at("$.A"), None);
    }
}
