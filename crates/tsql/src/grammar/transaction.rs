//! Transactions.
//!
//! ```text
//! BEGIN [DISTRIBUTED] {TRAN | TRANSACTION} [name [WITH MARK ['text']]]      SAVE {TRAN | TRANSACTION} name
//! COMMIT [TRAN | TRANSACTION [name] | WORK] [WITH (DELAYED_DURABILITY = {ON | OFF})]
//! ROLLBACK [TRAN | TRANSACTION [name] | WORK]
//! ```

use crate::ast::{BeginTransaction, CommitTransaction, RollbackTransaction, StmtKind, TransactionName};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    pub(crate) fn begin_transaction(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let distributed = self.eat_keyword(K::Distributed);
        if !self.eat_transaction_word() {
            return self.unexpected();
        }
        let name = self.transaction_name()?;
        let mut mark = None;
        if name.is_some() && self.at_keyword(K::With) && self.word_at(1, "MARK") {
            self.position += 2;
            mark = Some(if self.at_string() { self.string()? } else { String::new() });
        }
        Ok(StmtKind::BeginTransaction(BeginTransaction { distributed, name, mark }))
    }

    fn eat_transaction_word(&mut self) -> bool {
        self.eat_keyword(K::Tran) || self.eat_keyword(K::Transaction)
    }

    fn transaction_name(&mut self) -> Parsed<Option<TransactionName>> {
        if self.at(TokenKind::Variable) {
            return self.variable().map(|variable| Some(TransactionName::Variable(variable)));
        }
        if self.at_ident() && !self.at_label() {
            return self.ident().map(|name| Some(TransactionName::Name(name)));
        }
        Ok(None)
    }

    /// COMMIT, ROLLBACK, SAVE.
    pub(crate) fn transaction_statement(&mut self, keyword: K) -> Parsed<StmtKind> {
        self.advance();
        if keyword == K::Save {
            if !self.eat_transaction_word() {
                return self.unexpected();
            }
            return match self.transaction_name()? {
                Some(name) => Ok(StmtKind::SaveTransaction(name)),
                None => self.unexpected(),
            };
        }
        let named = self.eat_transaction_word();
        let name = if named { self.transaction_name()? } else { None };
        let _ = !named && self.eat_word("WORK");
        if keyword == K::Rollback {
            return Ok(StmtKind::RollbackTransaction(RollbackTransaction { name }));
        }
        let mut delayed_durability = None;
        if self.at_keyword(K::With) && self.kind_at(1) == TokenKind::LeftParen && self.word_at(2, "DELAYED_DURABILITY") {
            self.position += 3;
            self.expect(TokenKind::Equal)?;
            delayed_durability = Some(self.on_off()?);
            self.expect(TokenKind::RightParen)?;
        }
        Ok(StmtKind::CommitTransaction(CommitTransaction { name, delayed_durability }))
    }
}
