//! Table hints and query hints.
//!
//! ```text
//! table hints ::= WITH ( hint [,] ... ) | ( hint [,] ... )
//! query hints ::= OPTION ( hint, ... )
//! ```
//!
//! Which hints exist and which exclude each other is the binder's knowledge; here only their forms are.
//!
//! Messages: 336 (WITH that begins a statement, behind a table).

use crate::ast::{IndexReference, QueryHint, TableHint};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

/// The hints that may stand behind a table without WITH. They decide that `t (NOLOCK)` calls no function.
const TABLE_HINTS: &[&str] = &[
    "FASTFIRSTROW",
    "FORCESCAN",
    "FORCESEEK",
    "HOLDLOCK",
    "INDEX",
    "NOEXPAND",
    "NOLOCK",
    "NOWAIT",
    "PAGLOCK",
    "READCOMMITTED",
    "READCOMMITTEDLOCK",
    "READPAST",
    "READUNCOMMITTED",
    "REPEATABLEREAD",
    "ROWLOCK",
    "SERIALIZABLE",
    "SNAPSHOT",
    "TABLOCK",
    "TABLOCKX",
    "UPDLOCK",
    "XLOCK",
];

impl Parser<'_> {
    /// True at `( hint`.
    pub(crate) fn at_hint_list(&self) -> bool {
        self.at(TokenKind::LeftParen)
            && TABLE_HINTS.iter().any(|hint| self.word_at(1, hint))
            && (matches!(self.kind_at(2), TokenKind::Comma | TokenKind::RightParen | TokenKind::Word | TokenKind::Keyword(_))
                || self.word_at(1, "INDEX")
                || self.word_at(1, "FORCESEEK"))
    }

    /// Table hints, with or without WITH.
    pub(crate) fn table_hints(&mut self) -> Parsed<Vec<TableHint>> {
        if self.at_keyword(Keyword::With) {
            if self.kind_at(1) != TokenKind::LeftParen {
                return self.with_behind_table();
            }
            self.advance();
        } else if self.at_keyword(Keyword::Holdlock) {
            self.advance();
            return Ok(vec![TableHint::Word("HOLDLOCK".to_owned())]);
        } else if !self.at_hint_list() {
            return Ok(Vec::new());
        }
        self.expect(TokenKind::LeftParen)?;
        let mut hints = vec![self.table_hint()?];
        while !self.at(TokenKind::RightParen) {
            let _ = self.eat(TokenKind::Comma);
            hints.push(self.table_hint()?);
        }
        self.expect(TokenKind::RightParen)?;
        Ok(hints)
    }

    /// `WITH` behind a table without a parenthesis. `WITH ROLLUP` and others belong to the clause around; a name begins
    /// a common table expression that lacks its semicolon.
    fn with_behind_table(&mut self) -> Parsed<Vec<TableHint>> {
        if self.ident_at(1) && (self.keyword_at(2, Keyword::As) || self.kind_at(2) == TokenKind::LeftParen) {
            self.advance();
            return self.error(336, vec![self.near()]);
        }
        Ok(Vec::new())
    }

    fn table_hint(&mut self) -> Parsed<TableHint> {
        if self.eat_keyword(Keyword::Index) {
            if self.eat(TokenKind::Equal) && !self.at(TokenKind::LeftParen) {
                return Ok(TableHint::Index(vec![self.index_reference()?]));
            }
            return self.paren_list(Self::index_reference).map(TableHint::Index);
        }
        let word = self.any_word()?;
        if word == "FORCESEEK" && self.eat(TokenKind::LeftParen) {
            let index = self.index_reference()?;
            let columns = self.ident_list()?;
            self.expect(TokenKind::RightParen)?;
            return Ok(TableHint::ForceSeek(Some((index, columns))));
        }
        if self.eat(TokenKind::Equal) {
            return Ok(TableHint::Value(word, self.literal_or_variable()?));
        }
        Ok(if word == "FORCESEEK" { TableHint::ForceSeek(None) } else { TableHint::Word(word) })
    }

    fn index_reference(&mut self) -> Parsed<IndexReference> {
        match self.text_at(0).parse() {
            Ok(number) if self.at(TokenKind::Integer) => {
                self.advance();
                Ok(IndexReference::Number(number))
            }
            _ => self.ident().map(IndexReference::Name),
        }
    }

    /// `OPTION ( hint, ... )`, or nothing.
    pub(crate) fn option_clause(&mut self) -> Parsed<Vec<QueryHint>> {
        if self.eat_keyword(Keyword::Option) { self.paren_list(Self::query_hint) } else { Ok(Vec::new()) }
    }

    fn query_hint(&mut self) -> Parsed<QueryHint> {
        if self.eat_words(&["USE", "HINT"]) {
            return self.paren_list(Self::string).map(QueryHint::Use);
        }
        if self.eat_words(&["USE", "PLAN"]) {
            return self.string().map(QueryHint::UsePlan);
        }
        if self.eat_words(&["OPTIMIZE", "FOR"]) {
            return self.optimize_for();
        }
        if self.eat_words(&["TABLE", "HINT"]) {
            self.expect(TokenKind::LeftParen)?;
            let table = self.object_name()?;
            let mut hints = Vec::new();
            while self.eat(TokenKind::Comma) {
                hints.push(self.table_hint()?);
            }
            self.expect(TokenKind::RightParen)?;
            return Ok(QueryHint::Table(table, hints));
        }
        let mut words = self.any_word()?;
        while matches!(self.kind(), TokenKind::Word | TokenKind::Keyword(_)) {
            words.push(' ');
            words.push_str(&self.any_word()?);
        }
        if self.eat(TokenKind::Equal) || !matches!(self.kind(), TokenKind::Comma | TokenKind::RightParen) {
            return Ok(QueryHint::Value(words, self.literal_or_variable()?));
        }
        Ok(QueryHint::Words(words))
    }

    fn optimize_for(&mut self) -> Parsed<QueryHint> {
        if self.eat_word("UNKNOWN") {
            return Ok(QueryHint::OptimizeFor(Vec::new()));
        }
        let pairs = self.paren_list(|p| {
            let variable = p.variable()?;
            if p.eat_word("UNKNOWN") {
                return Ok((variable, None));
            }
            p.expect(TokenKind::Equal)?;
            Ok((variable, Some(p.literal_or_variable()?)))
        })?;
        Ok(QueryHint::OptimizeFor(pairs))
    }
}
