//! Constraints, at a column or at a table.
//!
//! ```text
//! constraint ::= [CONSTRAINT name] {PRIMARY KEY | UNIQUE} [CLUSTERED | NONCLUSTERED] [HASH] [(key, ...)] [WITH ...] [ON ...]
//!              | [CONSTRAINT name] [FOREIGN KEY [(c, ...)]] REFERENCES t [(c, ...)] [ON DELETE a] [ON UPDATE a] [NOT FOR REPLICATION]
//!              | [CONSTRAINT name] CHECK [NOT FOR REPLICATION] ( condition )
//!              | [CONSTRAINT name] DEFAULT e FOR c [WITH VALUES] | [CONSTRAINT name] CONNECTION ( ... )
//! ```

use crate::ast::{ConstraintKind, ForeignKey, IndexKey, KeyConstraint, ReferentialAction, TableConstraint};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    /// True where a constraint of a table begins.
    pub(crate) fn at_table_constraint(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(K::Constraint | K::Primary | K::Unique | K::Foreign | K::Check) => true,
            TokenKind::Word => self.at_word("CONNECTION") && self.kind_at(1) == TokenKind::LeftParen,
            _ => false,
        }
    }

    /// True where a constraint other than DEFAULT begins at a column.
    pub(crate) fn at_column_constraint(&self) -> bool {
        let ahead = if self.at_keyword(K::Constraint) { 2 } else { 0 };
        matches!(self.kind_at(ahead), TokenKind::Keyword(K::Primary | K::Unique | K::Foreign | K::References | K::Check))
    }

    /// One constraint; at a column its column lists may be missing.
    pub(crate) fn table_constraint(&mut self, at_column: bool) -> Parsed<TableConstraint> {
        let mark = self.position;
        let name = if self.eat_keyword(K::Constraint) { Some(self.ident()?) } else { None };
        let kind = match self.kind() {
            TokenKind::Keyword(K::Primary) => {
                self.advance();
                self.expect_keyword(K::Key)?;
                ConstraintKind::PrimaryKey(Box::new(self.key_constraint(at_column)?))
            }
            TokenKind::Keyword(K::Unique) => {
                self.advance();
                ConstraintKind::Unique(Box::new(self.key_constraint(at_column)?))
            }
            TokenKind::Keyword(K::Foreign | K::References) => ConstraintKind::ForeignKey(Box::new(self.foreign_key(at_column)?)),
            TokenKind::Keyword(K::Check) => {
                self.advance();
                let not_for_replication = self.eat_words(&["NOT", "FOR", "REPLICATION"]);
                self.expect(TokenKind::LeftParen)?;
                let condition = Box::new(self.nested(Self::condition)?);
                self.expect(TokenKind::RightParen)?;
                ConstraintKind::Check { condition, not_for_replication }
            }
            TokenKind::Keyword(K::Default) => {
                self.advance();
                let value = self.boxed_expression()?;
                self.expect_keyword(K::For)?;
                let column = self.ident()?;
                ConstraintKind::Default { value, column, with_values: self.eat_words(&["WITH", "VALUES"]) }
            }
            TokenKind::Word if self.at_word("CONNECTION") => self.connection()?,
            _ => return self.unexpected(),
        };
        Ok(TableConstraint { name, kind, span: self.span_since(mark) })
    }

    fn connection(&mut self) -> Parsed<ConstraintKind> {
        self.advance();
        let mark = self.position;
        self.expect(TokenKind::LeftParen)?;
        self.skip_to_close()?;
        let written = self.span_since(mark).slice(self.text).to_owned();
        if self.eat_keyword(K::On) {
            self.expect_keyword(K::Delete)?;
            self.referential_action()?;
        }
        Ok(ConstraintKind::Connection(written))
    }

    /// `CLUSTERED` or `NONCLUSTERED`, or nothing.
    pub(crate) fn clustering(&mut self) -> Option<bool> {
        if self.eat_keyword(K::Clustered) {
            return Some(true);
        }
        if self.eat_keyword(K::Nonclustered) { Some(false) } else { None }
    }

    fn key_constraint(&mut self, at_column: bool) -> Parsed<KeyConstraint> {
        let clustered = self.clustering();
        let hash = self.eat_word("HASH");
        let columns: Vec<IndexKey> =
            if !at_column || self.at(TokenKind::LeftParen) { self.paren_list(Self::index_key)? } else { Vec::new() };
        let options = self.index_with_clause()?;
        let on = if self.at_keyword(K::On) { self.storage_target()? } else { None };
        let not_enforced = self.eat_words(&["NOT", "ENFORCED"]);
        Ok(KeyConstraint { clustered, hash, columns, options, on, not_enforced })
    }

    fn foreign_key(&mut self, at_column: bool) -> Parsed<ForeignKey> {
        let mut columns = Vec::new();
        if self.eat_keyword(K::Foreign) {
            self.expect_keyword(K::Key)?;
            if !at_column || self.at(TokenKind::LeftParen) {
                columns = self.ident_list()?;
            }
        }
        self.expect_keyword(K::References)?;
        let table = self.object_name()?;
        let referenced_columns = if self.at(TokenKind::LeftParen) { self.ident_list()? } else { Vec::new() };
        let mut key = ForeignKey { columns, table, referenced_columns, on_delete: None, on_update: None, not_for_replication: false };
        while self.at_keyword(K::On) && (self.keyword_at(1, K::Delete) || self.keyword_at(1, K::Update)) {
            let delete = self.keyword_at(1, K::Delete);
            self.position += 2;
            let action = Some(self.referential_action()?);
            if delete {
                key.on_delete = action;
            } else {
                key.on_update = action;
            }
        }
        key.not_for_replication = self.eat_words(&["NOT", "FOR", "REPLICATION"]);
        Ok(key)
    }

    fn referential_action(&mut self) -> Parsed<ReferentialAction> {
        if self.eat_words(&["NO", "ACTION"]) {
            return Ok(ReferentialAction::NoAction);
        }
        if self.eat_keyword(K::Cascade) {
            return Ok(ReferentialAction::Cascade);
        }
        self.expect_keyword(K::Set)?;
        if self.eat_keyword(K::Null) {
            return Ok(ReferentialAction::SetNull);
        }
        self.expect_keyword(K::Default)?;
        Ok(ReferentialAction::SetDefault)
    }
}
