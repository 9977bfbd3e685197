//! Cursors.
//!
//! ```text
//! DECLARE name [INSENSITIVE] [SCROLL] CURSOR [option]* FOR query [FOR {READ ONLY | UPDATE [OF c, ...]}]
//! OPEN | CLOSE | DEALLOCATE cursor          FETCH [[NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n] FROM] cursor [INTO @v, ...]
//! cursor ::= [GLOBAL] name | @v
//! ```

use crate::ast::{CursorDefinition, CursorName, DeclareCursor, Fetch, FetchDirection, ForClause, StmtKind};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

const OPTIONS: &[&str] = &[
    "LOCAL",
    "GLOBAL",
    "FORWARD_ONLY",
    "SCROLL",
    "STATIC",
    "KEYSET",
    "DYNAMIC",
    "FAST_FORWARD",
    "READ_ONLY",
    "SCROLL_LOCKS",
    "OPTIMISTIC",
    "TYPE_WARNING",
    "INSENSITIVE",
];

impl Parser<'_> {
    /// `name ... CURSOR ...`, the word DECLARE being taken.
    pub(crate) fn declare_cursor(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        let mut options = self.cursor_options()?;
        self.expect_keyword(K::Cursor)?;
        let mut cursor = self.cursor_definition()?;
        options.append(&mut cursor.options);
        cursor.options = options;
        Ok(StmtKind::DeclareCursor(Box::new(DeclareCursor { name, cursor })))
    }

    fn cursor_options(&mut self) -> Parsed<Vec<String>> {
        let mut options = Vec::new();
        while OPTIONS.iter().any(|option| self.at_word(option)) {
            options.push(self.any_word()?);
        }
        Ok(options)
    }

    /// `[options] FOR query [FOR ...]`, the word CURSOR being taken.
    pub(crate) fn cursor_definition(&mut self) -> Parsed<CursorDefinition> {
        let options = self.cursor_options()?;
        self.expect_keyword(K::For)?;
        let query = Box::new(self.query(true)?);
        let mut for_clause = None;
        if self.eat_words(&["FOR", "READ", "ONLY"]) {
            for_clause = Some(ForClause::ReadOnly);
        } else if self.at_keyword(K::For) && self.keyword_at(1, K::Update) {
            self.position += 2;
            let columns = if self.eat_keyword(K::Of) {
                self.comma_list(|p| {
                    let mark = p.position;
                    let column = p.column_name()?;
                    Ok(p.expr_since(mark, crate::ast::ExprKind::Column(column)))
                })?
            } else {
                Vec::new()
            };
            for_clause = Some(ForClause::Update(columns));
        }
        Ok(CursorDefinition { options, query, for_clause })
    }

    /// OPEN, CLOSE, DEALLOCATE, FETCH.
    pub(crate) fn cursor_statement(&mut self, keyword: K) -> Parsed<StmtKind> {
        if self.word_at(1, "SYMMETRIC") || self.word_at(1, "MASTER") || (keyword == K::Close && self.keyword_at(1, K::All)) {
            return self.unbuilt_statement();
        }
        self.advance();
        match keyword {
            K::Open => self.cursor_name().map(StmtKind::OpenCursor),
            K::Close => self.cursor_name().map(StmtKind::CloseCursor),
            K::Deallocate => {
                let _ = self.eat_keyword(K::Cursor);
                self.cursor_name().map(StmtKind::DeallocateCursor)
            }
            _ => self.fetch(),
        }
    }

    pub(crate) fn cursor_name(&mut self) -> Parsed<CursorName> {
        if self.at(TokenKind::Variable) {
            return self.variable().map(CursorName::Variable);
        }
        let global = self.at_word("GLOBAL") && self.ident_at(1);
        if global {
            self.advance();
        }
        Ok(CursorName::Name { name: self.ident()?, global })
    }

    fn fetch(&mut self) -> Parsed<StmtKind> {
        let direction = self.fetch_direction()?;
        let _ = self.eat_keyword(K::From);
        let cursor = self.cursor_name()?;
        let into = if self.eat_keyword(K::Into) { self.comma_list(Self::variable)? } else { Vec::new() };
        Ok(StmtKind::Fetch(Box::new(Fetch { direction, cursor, into })))
    }

    fn fetch_direction(&mut self) -> Parsed<FetchDirection> {
        // A cursor may be named NEXT: only a name or FROM behind the word makes it a direction.
        let directed = self.keyword_at(1, K::From) || self.ident_at(1) || self.kind_at(1) == TokenKind::Variable;
        let numbered = directed || matches!(self.kind_at(1), TokenKind::Integer | TokenKind::Minus | TokenKind::Plus);
        Ok(if directed && self.eat_word("NEXT") {
            FetchDirection::Next
        } else if directed && self.eat_word("PRIOR") {
            FetchDirection::Prior
        } else if directed && self.eat_word("FIRST") {
            FetchDirection::First
        } else if directed && self.eat_word("LAST") {
            FetchDirection::Last
        } else if numbered && self.eat_word("ABSOLUTE") {
            FetchDirection::Absolute(self.signed_number()?)
        } else if numbered && self.eat_word("RELATIVE") {
            FetchDirection::Relative(self.signed_number()?)
        } else {
            FetchDirection::Next
        })
    }
}
