//! SET.
//!
//! ```text
//! SET @v {= | += ...} e | SET @c = CURSOR ... | SET @x.method(...) | SET @v.property = e
//! SET name, ... {ON | OFF} | SET STATISTICS name, ... {ON | OFF} | SET IDENTITY_INSERT t {ON | OFF}
//! SET TRANSACTION ISOLATION LEVEL l | SET name {number | word | 'text' | @v}
//! ```
//!
//! Messages: 195 (no such option).

use crate::ast::{Expr, ExprKind, IsolationLevel, Literal, SetCursor, SetOption, SetVariable, StmtKind};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

/// The options that are ON or OFF.
const SWITCHES: &[&str] = &[
    "ANSI_DEFAULTS",
    "ANSI_NULLS",
    "ANSI_NULL_DFLT_OFF",
    "ANSI_NULL_DFLT_ON",
    "ANSI_PADDING",
    "ANSI_WARNINGS",
    "ARITHABORT",
    "ARITHIGNORE",
    "CONCAT_NULL_YIELDS_NULL",
    "CURSOR_CLOSE_ON_COMMIT",
    "DISABLE_DEF_CNST_CHK",
    "FMTONLY",
    "FORCEPLAN",
    "IMPLICIT_TRANSACTIONS",
    "NOCOUNT",
    "NOEXEC",
    "NO_BROWSETABLE",
    "NUMERIC_ROUNDABORT",
    "PARSEONLY",
    "QUOTED_IDENTIFIER",
    "REMOTE_PROC_TRANSACTIONS",
    "RESULT_SET_CACHING",
    "SHOWPLAN_ALL",
    "SHOWPLAN_TEXT",
    "SHOWPLAN_XML",
    "XACT_ABORT",
];

/// The options that take a value.
const VALUES: &[&str] = &[
    "CONTEXT_INFO",
    "DATEFIRST",
    "DATEFORMAT",
    "DEADLOCK_PRIORITY",
    "FIPS_FLAGGER",
    "LANGUAGE",
    "LOCK_TIMEOUT",
    "QUERY_GOVERNOR_COST_LIMIT",
    "ROWCOUNT",
    "TEXTSIZE",
];

impl Parser<'_> {
    pub(crate) fn set(&mut self) -> Parsed<StmtKind> {
        self.advance();
        if self.at(TokenKind::Variable) {
            return self.set_variable();
        }
        if self.eat_keyword(K::Transaction) || self.eat_keyword(K::Tran) {
            self.expect_words(&["ISOLATION", "LEVEL"])?;
            return self.isolation_level().map(|level| StmtKind::SetOption(SetOption::IsolationLevel(level)));
        }
        if self.eat_keyword(K::IdentityInsert) {
            let table = self.object_name()?;
            return Ok(StmtKind::SetOption(SetOption::IdentityInsert { table, on: self.on_off()? }));
        }
        if self.eat_keyword(K::Statistics) {
            let names = self.comma_list(Self::any_word)?;
            return Ok(StmtKind::SetOption(SetOption::Statistics { names, on: self.on_off()? }));
        }
        if self.eat_keyword(K::Offsets) {
            let names = self.comma_list(Self::any_word)?;
            return Ok(StmtKind::SetOption(SetOption::Offsets { names, on: self.on_off()? }));
        }
        if VALUES.iter().any(|name| self.at_word(name)) {
            let name = self.any_word()?;
            let value = self.set_value()?;
            return Ok(StmtKind::SetOption(SetOption::Value { name, value }));
        }
        self.set_switch()
    }

    fn set_switch(&mut self) -> Parsed<StmtKind> {
        let names = self.comma_list(|p| {
            if !SWITCHES.iter().any(|name| p.at_word(name)) {
                return match p.kind() {
                    TokenKind::Word => p.error(195, vec![p.near(), "SET option".to_owned()]),
                    _ => p.unexpected(),
                };
            }
            p.any_word()
        })?;
        Ok(StmtKind::SetOption(SetOption::Switch { names, on: self.on_off()? }))
    }

    fn set_value(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        if self.at_ident() {
            return self.bare_string();
        }
        if self.at_keyword(K::Off) {
            self.advance();
            let literal = Literal::String { value: "OFF".to_owned(), national: false };
            return Ok(self.expr_since(mark, ExprKind::Literal(literal)));
        }
        self.literal_or_variable()
    }

    fn isolation_level(&mut self) -> Parsed<IsolationLevel> {
        let levels: [(&[&str], IsolationLevel); 5] = [
            (&["READ", "UNCOMMITTED"], IsolationLevel::ReadUncommitted),
            (&["READ", "COMMITTED"], IsolationLevel::ReadCommitted),
            (&["REPEATABLE", "READ"], IsolationLevel::RepeatableRead),
            (&["SNAPSHOT"], IsolationLevel::Snapshot),
            (&["SERIALIZABLE"], IsolationLevel::Serializable),
        ];
        match levels.into_iter().find(|(words, _)| self.at_words(words)) {
            Some((words, level)) => {
                self.position += words.len();
                Ok(level)
            }
            None => self.unexpected(),
        }
    }

    fn set_variable(&mut self) -> Parsed<StmtKind> {
        if self.kind_at(1) == TokenKind::Dot && self.ident_at(2) && self.kind_at(3) == TokenKind::LeftParen {
            let value = self.expression()?;
            let ExprKind::Method { receiver, method, .. } = &value.kind else { return self.unexpected() };
            let ExprKind::Variable(variable) = &receiver.kind else { return self.unexpected() };
            let (variable, property) = (variable.clone(), Some(method.clone()));
            return Ok(StmtKind::SetVariable(Box::new(SetVariable { variable, op: crate::ast::AssignOp::Set, value, property })));
        }
        let variable = self.variable()?;
        let mut property = None;
        if self.eat(TokenKind::Dot) {
            property = Some(self.ident()?);
        }
        let Some(op) = super::select::assign_op(self.kind()) else { return self.unexpected() };
        self.advance();
        if self.eat_keyword(K::Cursor) {
            let cursor = self.cursor_definition()?;
            return Ok(StmtKind::SetCursor(Box::new(SetCursor { variable, cursor })));
        }
        let value = self.expression()?;
        Ok(StmtKind::SetVariable(Box::new(SetVariable { variable, op, value, property })))
    }
}
