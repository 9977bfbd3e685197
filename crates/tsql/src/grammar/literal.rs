//! Literals: from the text of a token to a value that has lost nothing.
//!
//! Messages: 168 (float out of range), 1007 (more than 38 digits).

use crate::ast::{Literal, OdbcLiteral};
use crate::lexer::CURRENCY;
use crate::parser::{Parsed, Parser};
use crate::token::{Token, TokenKind};

/// Digits `decimal` can hold.
const PRECISION_MAX: usize = 38;

impl Parser<'_> {
    /// The literal at the position, if there is one.
    pub(crate) fn literal(&mut self) -> Parsed<Option<Literal>> {
        let token = self.token_at(0);
        let text = self.text_at(0);
        let literal = match token.kind {
            TokenKind::Integer => self.integer(text)?,
            TokenKind::Decimal => self.decimal(text)?,
            TokenKind::Float => self.float(text)?,
            TokenKind::Money => Literal::Money(text.trim_start_matches(CURRENCY).to_owned()),
            TokenKind::Binary => Literal::Binary(binary(text)),
            TokenKind::String => Literal::String { value: self.string_value(token), national: false },
            TokenKind::NationalString => Literal::String { value: self.string_value(token), national: true },
            TokenKind::Keyword(crate::token::Keyword::Null) => Literal::Null,
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(literal))
    }

    fn integer(&self, text: &str) -> Parsed<Literal> {
        match text.parse::<i32>() {
            Ok(value) => Ok(Literal::Integer(value)),
            Err(_) => self.decimal(text),
        }
    }

    fn decimal(&self, text: &str) -> Parsed<Literal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.trim_start_matches('0').len() + fraction.len();
        if digits > PRECISION_MAX {
            return self.error(1007, vec![text.to_owned()]);
        }
        let small = |n: usize| u8::try_from(n).expect("checked against PRECISION_MAX");
        Ok(Literal::Decimal { text: text.to_owned(), precision: small(digits.max(1)), scale: small(fraction.len()) })
    }

    fn float(&self, text: &str) -> Parsed<Literal> {
        match float_value(text) {
            Some(value) if value.is_finite() => Ok(Literal::Float(text.to_owned())),
            _ => self.error(168, vec![text.to_owned(), "8".to_owned()]),
        }
    }

    /// The value of a string token, quotes undone.
    pub(crate) fn string_value(&self, token: Token) -> String {
        let written = &self.text[token.start as usize..token.end as usize];
        let quoted = written.trim_start_matches(['N', 'n']);
        let quote = quoted.chars().next().unwrap_or('\'');
        let closed = quoted.len() >= 2 && quoted.ends_with(quote);
        let inner = if closed { &quoted[1..quoted.len() - 1] } else { quoted.get(1..).unwrap_or("") };
        let value = inner.replace(&format!("{quote}{quote}"), &quote.to_string());
        // A backslash before a line end joins the two lines.
        if value.contains('\\') { value.replace("\\\r\n", "").replace("\\\n", "") } else { value }
    }

    /// A string token's value.
    pub(crate) fn string(&mut self) -> Parsed<String> {
        if !matches!(self.kind(), TokenKind::String | TokenKind::NationalString) {
            return self.unexpected();
        }
        let token = self.advance();
        Ok(self.string_value(token))
    }

    /// True if a string literal stands at the position.
    pub(crate) fn at_string(&self) -> bool {
        matches!(self.kind(), TokenKind::String | TokenKind::NationalString)
    }

    /// The literal of `{d '...'}`, `{t '...'}`, `{ts '...'}`, `{guid '...'}`, the position being behind the brace.
    pub(crate) fn odbc_literal(&mut self) -> Parsed<Literal> {
        let kind = match self.any_word()?.as_str() {
            "D" => OdbcLiteral::Date,
            "T" => OdbcLiteral::Time,
            "TS" => OdbcLiteral::Timestamp,
            "GUID" => OdbcLiteral::Guid,
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        };
        let value = self.string()?;
        self.expect(TokenKind::RightBrace)?;
        Ok(Literal::Odbc { kind, value })
    }
}

/// The value of a float literal; its exponent may lack digits (`1e`, `1e+`).
pub(crate) fn float_value(text: &str) -> Option<f64> {
    let complete = if text.ends_with(|c: char| c.is_ascii_digit()) { text.to_owned() } else { format!("{text}0") };
    complete.parse().ok()
}

fn binary(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text[2..].chars().filter_map(|c| c.to_digit(16)).map(|d| u8::try_from(d).expect("a nibble")).collect();
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    odd.iter().copied().chain(pairs.chunks(2).map(|pair| pair[0] << 4 | pair[1])).collect()
}
