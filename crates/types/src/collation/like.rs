//! LIKE: `%` any text, `_` one unit, `[a-f]` one of a set, `[^a-f]` one not of it, ESCAPE.
//!
//! A pattern is compiled once to tokens and matched with one backtrack point per `%` (the newest `%` only: an older one
//! can never help when a newer one has failed), so matching takes at most pattern times text steps, never more.
//!
//! Units are UTF-16 units as in SQL Server: under a collation without `_SC` a supplementary character is two `_`. A
//! character and its decomposed form match only in the same form. Trailing blanks of the *pattern* count; blanks at
//! the end of the *text* have to be matched when either is Unicode text, and do not when both are varchar.

use super::{compare, equal};
use crate::SqlError;
use crate::error::message;
use crate::sql_type::Collation;
use std::cmp::Ordering;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct LikePattern {
    tokens: Vec<Token>,
    collation: Collation,
    /// What every match begins with, when nothing but letters does: the optimizer seeks on it.
    prefix: String,
    /// Text units are compared one to one without looking at collations: ASCII pattern, folded to lower case if it has to be.
    fold: bool,
    /// Whether blanks at the end of the text have to be matched too.
    blanks_count: bool,
}

#[derive(Debug, Clone)]
enum Token {
    /// `%`.
    Any,
    /// `_`.
    One,
    /// A unit that must be there.
    Unit(u32),
    /// `[...]`: ranges of units, and whether it is negated.
    Set { ranges: Vec<(u32, u32)>, negated: bool },
}

impl LikePattern {
    /// Compiles `pattern`. `escape` is the text of the ESCAPE clause; it must be one character (506).
    pub fn new(pattern: &str, escape: Option<&str>, collation: Collation) -> Result<Self, SqlError> {
        let escape = match escape {
            None => None,
            Some(text) => {
                let mut units = Units::new(text, collation);
                match (units.next(), units.next()) {
                    (Some(unit), None) => Some(unit),
                    _ => return Err(message(506, &[&text, &"LIKE"])),
                }
            }
        };
        let units: Vec<u32> = Units::new(pattern, collation).collect();
        let tokens = compile(&units, escape);
        let prefix = tokens
            .iter()
            .map_while(|token| match token {
                Token::Unit(unit) => char::from_u32(*unit),
                _ => None,
            })
            .collect();
        let info = collation.info();
        Ok(Self { tokens, collation, prefix, fold: !info.case_sensitive && !info.binary, blanks_count: false })
    }

    /// The pattern as it is for Unicode text, where blanks at the end count, if `unicode`.
    pub fn for_unicode(self, unicode: bool) -> Self {
        Self { blanks_count: unicode, ..self }
    }

    /// What every matching text begins with (as written in the pattern); empty if the pattern begins with a wildcard.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the pattern is only its prefix and one `%` at the end.
    pub fn is_prefix_only(&self) -> bool {
        matches!(self.tokens.split_last(), Some((Token::Any, rest)) if rest.len() == self.prefix.chars().count())
    }

    /// Whether `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        if text.is_ascii() {
            let bytes = text.as_bytes();
            self.matches_units(bytes.len(), |at| u32::from(bytes[at]))
        } else {
            let units: Vec<u32> = Units::new(text, self.collation).collect();
            self.matches_units(units.len(), |at| units[at])
        }
    }

    fn matches_units(&self, length: usize, unit: impl Fn(usize) -> u32) -> bool {
        let (mut token, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let ahead = match self.tokens.get(token) {
                Some(Token::Any) => {
                    token += 1;
                    if token == self.tokens.len() {
                        return true;
                    }
                    retry = Some((token, at));
                    continue;
                }
                Some(one) => at < length && self.matches_one(one, unit(at)),
                None if at == length => return true,
                None if !self.blanks_count && (at..length).all(|rest| unit(rest) == u32::from(b' ')) => return true,
                None => false,
            };
            if ahead {
                token += 1;
                at += 1;
                continue;
            }
            match &mut retry {
                Some((back_token, back_at)) if *back_at < length => {
                    *back_at += 1;
                    (token, at) = (*back_token, *back_at);
                }
                _ => return false,
            }
        }
    }

    fn matches_one(&self, token: &Token, unit: u32) -> bool {
        match token {
            Token::Any | Token::One => true,
            Token::Unit(wanted) => self.equal_units(*wanted, unit),
            Token::Set { ranges, negated } => ranges.iter().any(|(low, high)| self.in_range(*low, *high, unit)) != *negated,
        }
    }

    fn equal_units(&self, left: u32, right: u32) -> bool {
        if left == right {
            return true;
        }
        if left < 0x80 && right < 0x80 {
            return self.fold && (left as u8).eq_ignore_ascii_case(&(right as u8));
        }
        if left == u32::from(b' ') || right == u32::from(b' ') {
            return false;
        }
        match (char::from_u32(left), char::from_u32(right)) {
            (Some(a), Some(b)) => equal(a.encode_utf8(&mut [0; 4]), b.encode_utf8(&mut [0; 4]), self.collation),
            _ => false,
        }
    }

    fn in_range(&self, low: u32, high: u32, unit: u32) -> bool {
        if low == high {
            return self.equal_units(low, unit);
        }
        match (char::from_u32(low), char::from_u32(high), char::from_u32(unit)) {
            (Some(low), Some(high), Some(c)) if c != ' ' => {
                let (mut a, mut b, mut d) = ([0; 4], [0; 4], [0; 4]);
                let c = c.encode_utf8(&mut d);
                compare(low.encode_utf8(&mut a), c, self.collation) != Ordering::Greater
                    && compare(c, high.encode_utf8(&mut b), self.collation) != Ordering::Greater
            }
            _ => low <= unit && unit <= high,
        }
    }
}

fn compile(units: &[u32], escape: Option<u32>) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(units.len());
    let mut at = 0;
    while at < units.len() {
        let unit = units[at];
        at += 1;
        if Some(unit) == escape && at < units.len() {
            tokens.push(Token::Unit(units[at]));
            at += 1;
            continue;
        }
        match u8::try_from(unit) {
            Ok(b'%') if matches!(tokens.last(), Some(Token::Any)) => {}
            Ok(b'%') => tokens.push(Token::Any),
            Ok(b'_') => tokens.push(Token::One),
            Ok(b'[') => {
                let (set, next) = compile_set(units, at, escape);
                tokens.push(set);
                at = next;
            }
            _ => tokens.push(Token::Unit(unit)),
        }
    }
    tokens
}

/// The set that begins after `[`; one that is never closed matches nothing, as in SQL Server.
fn compile_set(units: &[u32], mut at: usize, escape: Option<u32>) -> (Token, usize) {
    let nothing = (Token::Set { ranges: Vec::new(), negated: false }, units.len());
    let negated = units.get(at) == Some(&u32::from(b'^'));
    at += usize::from(negated);
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    loop {
        let Some(mut low) = units.get(at).copied() else { return nothing };
        at += 1;
        if low == u32::from(b']') {
            return (Token::Set { ranges, negated }, at);
        }
        if Some(low) == escape {
            let Some(escaped) = units.get(at).copied() else { return nothing };
            low = escaped;
            at += 1;
        }
        let high = units.get(at + 1).copied().filter(|high| units[at] == u32::from(b'-') && *high != u32::from(b']'));
        match high {
            Some(high) => {
                ranges.push((low, high));
                at += 2;
            }
            None => ranges.push((low, low)),
        }
    }
}

/// Text as UTF-16 units, or as code points under an `_SC` collation.
struct Units<'a> {
    chars: std::str::Chars<'a>,
    pending: Option<u32>,
    whole: bool,
}

impl<'a> Units<'a> {
    fn new(text: &'a str, collation: Collation) -> Self {
        Self { chars: text.chars(), pending: None, whole: collation.info().supplementary }
    }
}

impl Iterator for Units<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if let Some(low) = self.pending.take() {
            return Some(low);
        }
        let c = self.chars.next()?;
        if self.whole || c.len_utf16() == 1 {
            return Some(c as u32);
        }
        let mut pair = [0; 2];
        c.encode_utf16(&mut pair);
        self.pending = Some(u32::from(pair[1]));
        Some(u32::from(pair[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str, escape: Option<&str>, collation: Collation) -> Result<bool, SqlError> {
        Ok(LikePattern::new(pattern, escape, collation)?.matches(text))
    }

    fn matches(text: &str, pattern: &str) -> bool {
        like(text, pattern, None, Collation::DEFAULT).unwrap()
    }

    #[test]
    fn wildcards() {
        for (text, pattern, expected) in [
            ("abc", "ABC", true),
            ("abc", "a%", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("abc", "a_", false),
            ("", "%", true),
            ("", "_", false),
            ("abcabd", "%ab_", true),
            ("abc   ", "abc", true),
            ("abc", "abc ", false),
            ("mississippi", "m%iss%ip%i", true),
            ("mississippi", "m%iss%ipz%i", false),
            ("b", "[a-c]", true),
            ("B", "[a-c]", true),
            ("d", "[a-c]", false),
            ("d", "[^a-c]", true),
            ("-", "[a-]", true),
            ("%", "[%]", true),
            ("x", "[%]", false),
            ("[", "[[]", true),
            ("ab", "[ab", false),
            ("caf\u{c9}", "caf\u{e9}", true),
            ("cafe", "caf\u{e9}", false),
            ("\u{1F600}", "__", true),
            ("\u{1F600}", "_", false),
        ] {
            assert_eq!(matches(text, pattern), expected, "{text:?} like {pattern:?}");
        }
    }

    #[test]
    fn escape_and_prefix() {
        assert!(like("50%", "50!%", Some("!"), Collation::DEFAULT).unwrap());
        assert!(!like("50x", "50!%", Some("!"), Collation::DEFAULT).unwrap());
        assert_eq!(like("a", "a", Some("!!"), Collation::DEFAULT).unwrap_err().number, 506);
        let sc = Collation::by_name("Latin1_General_100_CI_AS_SC").unwrap();
        assert!(like("\u{1F600}", "_", None, sc).unwrap());
        let pattern = LikePattern::new("ab%", None, Collation::DEFAULT).unwrap();
        assert_eq!((pattern.prefix(), pattern.is_prefix_only()), ("ab", true));
        assert!(!LikePattern::new("ab%c", None, Collation::DEFAULT).unwrap().is_prefix_only());
    }

    #[test]
    fn hostile_patterns_end() {
        let text = "a".repeat(4000);
        assert!(!matches(&text, &format!("{}b", "%a".repeat(500))));
    }
}
