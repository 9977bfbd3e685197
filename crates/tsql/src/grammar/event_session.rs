//! Event sessions.
//!
//! ```text
//! CREATE EVENT SESSION name ON {SERVER | DATABASE} ADD EVENT e [( [SET n = v, ...] [ACTION (a, ...)] [WHERE predicate] )], ...
//!        [ADD TARGET t [( SET n = v, ... )], ...] [WITH ( option, ... )]
//! ALTER EVENT SESSION name ON {SERVER | DATABASE} {ADD | DROP} {EVENT | TARGET} ... | WITH (...) | STATE = {START | STOP}
//! DROP EVENT SESSION name ON {SERVER | DATABASE}
//! predicate ::= condition over [package.source op literal] and package.function ( source, literal )
//! ```

use crate::ast::{
    AlterEventSession, AlterEventSessionAction as Action, DropEventSession, EventSession, Expr, ExprKind, Ident, SessionEvent,
    SessionTarget, StmtKind,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    /// Behind `CREATE EVENT SESSION`.
    pub(crate) fn create_event_session(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        let on_server = self.session_scope()?;
        let mut session = EventSession { name, on_server, events: Vec::new(), targets: Vec::new(), options: Vec::new() };
        loop {
            // The list goes on with a comma or without, and the word ADD may be repeated.
            let _ = self.eat(TokenKind::Comma);
            if self.eat_words(&["ADD", "EVENT"]) {
                session.events.push(self.session_event()?);
            } else if self.eat_words(&["ADD", "TARGET"]) {
                session.targets.push(self.session_target()?);
            } else {
                break;
            }
        }
        if self.at_keyword(K::With) && self.kind_at(1) == TokenKind::LeftParen {
            self.advance();
            session.options = self.option_list()?;
        }
        Ok(StmtKind::CreateEventSession(Box::new(session)))
    }

    fn session_scope(&mut self) -> Parsed<bool> {
        self.expect_keyword(K::On)?;
        if self.eat_keyword(K::Database) {
            return Ok(false);
        }
        self.expect_word("SERVER")?;
        Ok(true)
    }

    /// `[module.] package.name`
    fn session_name(&mut self) -> Parsed<Vec<Ident>> {
        let mut parts = vec![self.ident()?];
        while self.eat(TokenKind::Dot) {
            parts.push(self.ident()?);
        }
        Ok(parts)
    }

    fn session_event(&mut self) -> Parsed<SessionEvent> {
        let mut event = SessionEvent { name: self.session_name()?, settings: Vec::new(), actions: Vec::new(), predicate: None };
        if self.eat(TokenKind::LeftParen) {
            if self.eat_keyword(K::Set) {
                event.settings = self.settings()?;
            }
            if self.eat_word("ACTION") {
                event.actions = self.paren_list(Self::session_name)?;
            }
            if self.eat_keyword(K::Where) {
                event.predicate = Some(self.session_predicate()?);
            }
            self.expect(TokenKind::RightParen)?;
        }
        Ok(event)
    }

    /// A condition in which a function call is a condition too.
    fn session_predicate(&mut self) -> Parsed<Expr> {
        self.session_terms(K::Or, |p| p.session_terms(K::And, Self::session_factor))
    }

    fn session_terms(&mut self, word: K, mut operand: impl FnMut(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        let mark = self.position;
        let mut operands = vec![operand(self)?];
        while self.eat_keyword(word) {
            operands.push(operand(self)?);
        }
        if operands.len() == 1 {
            return operands.pop().map_or_else(|| self.unexpected(), Ok);
        }
        self.grow()?;
        let kind = if word == K::Or { ExprKind::Or(operands) } else { ExprKind::And(operands) };
        Ok(self.expr_since(mark, kind))
    }

    fn session_factor(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        if self.eat_keyword(K::Not) {
            let operand = Box::new(self.nested(Self::session_factor)?);
            return Ok(self.expr_since(mark, ExprKind::Not(operand)));
        }
        if self.at(TokenKind::LeftParen) {
            self.advance();
            let inner = self.nested(Self::session_predicate)?;
            self.expect(TokenKind::RightParen)?;
            return Ok(self.expr_since(mark, ExprKind::Paren(Box::new(inner))));
        }
        self.predicate()
    }

    fn session_target(&mut self) -> Parsed<SessionTarget> {
        let mut target = SessionTarget { name: self.session_name()?, settings: Vec::new() };
        if self.eat(TokenKind::LeftParen) {
            self.expect_keyword(K::Set)?;
            target.settings = self.settings()?;
            self.expect(TokenKind::RightParen)?;
        }
        Ok(target)
    }

    /// Behind `ALTER EVENT SESSION`.
    pub(crate) fn alter_event_session(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        let on_server = self.session_scope()?;
        let mut actions = Vec::new();
        loop {
            let _ = !actions.is_empty() && self.eat(TokenKind::Comma);
            actions.push(if self.eat_words(&["ADD", "EVENT"]) {
                Action::AddEvent(self.session_event()?)
            } else if self.eat_words(&["DROP", "EVENT"]) {
                Action::DropEvent(self.session_name()?)
            } else if self.eat_words(&["ADD", "TARGET"]) {
                Action::AddTarget(self.session_target()?)
            } else if self.eat_words(&["DROP", "TARGET"]) {
                Action::DropTarget(self.session_name()?)
            } else if self.at_keyword(K::With) && self.kind_at(1) == TokenKind::LeftParen {
                self.advance();
                Action::Options(self.option_list()?)
            } else if self.eat_word("STATE") {
                self.expect(TokenKind::Equal)?;
                let start = self.eat_word("START");
                if !start {
                    self.expect_word("STOP")?;
                }
                Action::State { start }
            } else if actions.is_empty() {
                return self.unexpected();
            } else {
                break;
            });
        }
        Ok(StmtKind::AlterEventSession(Box::new(AlterEventSession { name, on_server, actions })))
    }

    /// Behind `DROP EVENT SESSION`.
    pub(crate) fn drop_event_session(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        let on_server = self.session_scope()?;
        Ok(StmtKind::DropEventSession(Box::new(DropEventSession { name, on_server })))
    }
}
