//! Option lists: `NAME`, `NAME = value`, `NAME value`, `NAME ( ... )`.
//!
//! ```text
//! value ::= ON | OFF | {ON | OFF} ( option, ... ) | ( option, ... ) | literal [unit] | @v | word | name.name
//! ```
//!
//! Statements with dozens of options that only the engine tells apart (databases, backups, logins, BULK INSERT) share
//! this form; a statement whose options shape its tree has its own functions (`ddl_index`).

use crate::ast::{Expr, ExprKind, Literal, OptionItem, OptionValue};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

/// Where an option stands; it tells whether a word behind a name can be its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Between parentheses: whatever comes before the comma belongs to the option.
    Enclosed,
    /// At the end of a statement: only a value behind `=`, or a bare number or string, belongs to the option.
    Open,
    /// At the end of a statement, and each option is a name and a value (`RECOVERY SIMPLE`).
    OpenPairs,
}

/// What may stand behind a number.
const UNITS: &[&str] = &[
    "KB", "MB", "GB", "TB", "SECONDS", "SECOND", "MINUTES", "MINUTE", "HOURS", "HOUR", "DAYS", "DAY", "WEEKS", "WEEK", "MONTHS", "MONTH",
    "YEARS", "YEAR", "PERCENT", "ROWS",
];

/// Options whose value names something: the name is kept as written, as a column name.
const NAMING: &[&str] =
    &["NAME", "LOGIN", "DEFAULT_SCHEMA", "DEFAULT_DATABASE", "DEFAULT_LANGUAGE", "CREDENTIAL", "HISTORY_TABLE", "FILESTREAM_ON"];

impl Parser<'_> {
    /// `( option, ... )`
    pub(crate) fn option_list(&mut self) -> Parsed<Vec<OptionItem>> {
        self.nested(|p| p.paren_list(|p| p.option_item(Style::Enclosed)))
    }

    /// One option.
    pub(crate) fn option_item(&mut self, style: Style) -> Parsed<OptionItem> {
        let mark = self.position;
        let name = self.any_word()?;
        self.option_behind(name, style, mark)
    }

    /// The option whose name was read since `mark`.
    pub(crate) fn option_behind(&mut self, name: String, style: Style, mark: usize) -> Parsed<OptionItem> {
        let value = if self.eat(TokenKind::Equal) {
            if self.at_ident() && NAMING.contains(&name.as_str()) { self.named_value()? } else { self.option_value()? }
        } else if self.has_bare_value(style) {
            self.option_value()?
        } else {
            OptionValue::None
        };
        Ok(OptionItem { name, value, span: self.span_since(mark) })
    }

    fn has_bare_value(&self, style: Style) -> bool {
        match self.kind() {
            TokenKind::LeftParen => true,
            TokenKind::Integer | TokenKind::Decimal | TokenKind::String | TokenKind::NationalString => true,
            TokenKind::Word | TokenKind::Keyword(_) | TokenKind::BracketName => style != Style::Open,
            TokenKind::Variable | TokenKind::Minus | TokenKind::Binary => style == Style::Enclosed,
            _ => false,
        }
    }

    fn option_value(&mut self) -> Parsed<OptionValue> {
        let switch = match self.kind() {
            TokenKind::Keyword(Keyword::On) => Some(true),
            TokenKind::Keyword(Keyword::Off) => Some(false),
            _ => None,
        };
        if let Some(on) = switch {
            self.advance();
            if self.at(TokenKind::LeftParen) {
                return Ok(OptionValue::SwitchList(on, self.option_list()?));
            }
            return Ok(OptionValue::Switch(on));
        }
        if self.at(TokenKind::LeftParen) {
            return self.parenthesised_value();
        }
        if matches!(self.kind(), TokenKind::Keyword(Keyword::Null) | TokenKind::Word | TokenKind::Keyword(_)) {
            return self.word_value();
        }
        if self.at_ident() {
            return self.named_value();
        }
        let number = self.literal_or_variable()?;
        if self.eat(TokenKind::Percent) {
            return Ok(OptionValue::Quantity(number, "%".to_owned()));
        }
        if UNITS.iter().any(|unit| self.at_word(unit)) {
            return Ok(OptionValue::Quantity(number, self.any_word()?));
        }
        Ok(OptionValue::Expr(number))
    }

    /// A list of options, or of literals: `(1, 2)` is options without names, each its value.
    fn parenthesised_value(&mut self) -> Parsed<OptionValue> {
        if !matches!(self.kind_at(1), TokenKind::Word | TokenKind::Keyword(_)) {
            let items = self.paren_list(|p| {
                let mark = p.position;
                let value = if p.at_ident() {
                    let column = p.column_name()?;
                    p.expr_since(mark, ExprKind::Column(column))
                } else {
                    p.literal_or_variable()?
                };
                Ok(OptionItem { name: String::new(), value: OptionValue::Expr(value), span: p.span_since(mark) })
            })?;
            return Ok(OptionValue::List(items));
        }
        self.option_list().map(OptionValue::List)
    }

    /// A name of one or more parts.
    fn named_value(&mut self) -> Parsed<OptionValue> {
        let mark = self.position;
        let column = self.column_name()?;
        Ok(OptionValue::Expr(self.expr_since(mark, ExprKind::Column(column))))
    }

    /// A word, or a name of several parts.
    fn word_value(&mut self) -> Parsed<OptionValue> {
        if self.at(TokenKind::Word) && self.kind_at(1) == TokenKind::Dot {
            return self.named_value();
        }
        let word = self.any_word()?;
        if self.at(TokenKind::LeftParen) && matches!(word.as_str(), "AUTO" | "ALL") {
            let span_mark = self.position;
            let items = self.option_list()?;
            let item = OptionItem { name: word, value: OptionValue::List(items), span: self.span_since(span_mark) };
            return Ok(OptionValue::List(vec![item]));
        }
        Ok(OptionValue::Word(word))
    }

    /// `ON` or `OFF`.
    pub(crate) fn on_off(&mut self) -> Parsed<bool> {
        if self.eat_keyword(Keyword::On) {
            return Ok(true);
        }
        self.expect_keyword(Keyword::Off)?;
        Ok(false)
    }

    /// `NULL` or `NOT NULL`, or nothing.
    pub(crate) fn nullability(&mut self) -> Option<bool> {
        if self.eat_keyword(Keyword::Null) {
            return Some(true);
        }
        if self.at_keyword(Keyword::Not) && self.keyword_at(1, Keyword::Null) {
            self.position += 2;
            return Some(false);
        }
        None
    }

    /// A directive of FOR XML and FOR JSON.
    pub(crate) fn for_option(&mut self) -> Parsed<OptionItem> {
        let mark = self.position;
        let mut name = self.any_word()?;
        for second in ["XSINIL", "ABSENT", "BASE64"] {
            if self.eat_word(second) {
                name = format!("{name} {second}");
            }
        }
        let mut value = OptionValue::None;
        if self.eat(TokenKind::LeftParen) {
            let value_mark = self.position;
            let text = self.string()?;
            let literal = ExprKind::Literal(Literal::String { value: text, national: false });
            value = OptionValue::Expr(Expr { kind: literal, span: self.span_since(value_mark) });
            self.expect(TokenKind::RightParen)?;
        }
        Ok(OptionItem { name, value, span: self.span_since(mark) })
    }
}
