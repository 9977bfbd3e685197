//! Statement lists and the choice of the statement by its first words.
//!
//! ```text
//! batch     ::= statement*                      statement ::= ... [;]
//! ```
//!
//! A statement that begins with WITH needs a semicolon before it (319). The first statement of a batch may be a procedure's
//! name without EXEC. A module's definition fills its batch (111 in front of it, a syntax error behind it).
//!
//! Messages: 111, 132, 133, 135, 136, 178, 319, 10713.

use crate::ast::{Query, Stmt, StmtKind, Unbuilt};
use crate::parser::{Parsed, Parser, Within};
use crate::token::{Keyword as K, TokenKind};

/// The words a statement without a tree begins with, behind its verb; longer ones before their prefixes.
const UNBUILT: &[&str] = &[
    "AGGREGATE",
    "APPLICATION ROLE",
    "ASSEMBLY",
    "ASYMMETRIC KEY",
    "AVAILABILITY GROUP",
    "BROKER PRIORITY",
    "CERTIFICATE",
    "COLUMN ENCRYPTION KEY",
    "COLUMN MASTER KEY",
    "CONTRACT",
    "CREDENTIAL",
    "CRYPTOGRAPHIC PROVIDER",
    "DATABASE AUDIT SPECIFICATION",
    "DATABASE ENCRYPTION KEY",
    "DATABASE SCOPED CREDENTIAL",
    "DEFAULT",
    "ENDPOINT",
    "EVENT NOTIFICATION",
    "EXTERNAL DATA SOURCE",
    "EXTERNAL FILE FORMAT",
    "EXTERNAL LANGUAGE",
    "EXTERNAL LIBRARY",
    "EXTERNAL MODEL",
    "EXTERNAL RESOURCE POOL",
    "EXTERNAL TABLE",
    "FULLTEXT CATALOG",
    "FULLTEXT INDEX",
    "FULLTEXT STOPLIST",
    "MASTER KEY",
    "MESSAGE TYPE",
    "PARTITION FUNCTION",
    "PARTITION SCHEME",
    "PRIMARY XML INDEX",
    "QUEUE",
    "REMOTE SERVICE BINDING",
    "RESOURCE GOVERNOR",
    "RESOURCE POOL",
    "ROUTE",
    "RULE",
    "SEARCH PROPERTY LIST",
    "SECURITY POLICY",
    "SELECTIVE XML INDEX",
    "SERVER AUDIT SPECIFICATION",
    "SERVER AUDIT",
    "SERVER CONFIGURATION",
    "SERVICE MASTER KEY",
    "SERVICE",
    "SIGNATURE",
    "SPATIAL INDEX",
    "SYMMETRIC KEY",
    "WORKLOAD CLASSIFIER",
    "WORKLOAD GROUP",
    "XML INDEX",
    "XML SCHEMA COLLECTION",
];

impl Parser<'_> {
    /// All statements of the text.
    pub(crate) fn batch(&mut self) -> Parsed<Vec<Stmt>> {
        let statements = self.statements(|p| p.at_end())?;
        self.check_labels()?;
        Ok(statements)
    }

    /// Statements up to where `ends` holds.
    pub(crate) fn statements(&mut self, ends: fn(&Self) -> bool) -> Parsed<Vec<Stmt>> {
        let mut statements = Vec::new();
        let mut terminated = true;
        loop {
            while self.eat(TokenKind::Semicolon) {
                terminated = true;
            }
            if ends(self) {
                return Ok(statements);
            }
            if self.at_keyword(K::With) && !terminated {
                return self.error(319, Vec::new());
            }
            statements.push(self.statement()?);
            terminated = false;
        }
    }

    /// One statement, without its semicolon.
    pub(crate) fn statement(&mut self) -> Parsed<Stmt> {
        let mark = self.position;
        let kind = self.nested(Self::statement_kind)?;
        Ok(Stmt { kind, span: self.span_since(mark) })
    }

    fn statement_kind(&mut self) -> Parsed<StmtKind> {
        match self.kind() {
            TokenKind::Keyword(keyword) => self.keyword_statement(keyword),
            TokenKind::LeftParen => self.query(true).map(|query| StmtKind::Select(Box::new(query))),
            TokenKind::Word | TokenKind::BracketName | TokenKind::QuotedName => self.word_statement(),
            TokenKind::LeftBrace => self.odbc_call(),
            _ => self.unexpected(),
        }
    }

    fn keyword_statement(&mut self, keyword: K) -> Parsed<StmtKind> {
        match keyword {
            K::Select => self.query(true).map(|query| StmtKind::Select(Box::new(query))),
            K::With => self.with_statement(),
            K::Insert if self.keyword_at(1, K::Bulk) => self.insert_bulk(),
            K::Insert => self.insert(None).map(|s| StmtKind::Insert(Box::new(s))),
            K::Update if self.keyword_at(1, K::Statistics) => self.update_statistics(),
            K::Update => self.update(None).map(|s| StmtKind::Update(Box::new(s))),
            K::Delete => self.delete(None).map(|s| StmtKind::Delete(Box::new(s))),
            K::Merge => self.merge_statement(None),
            K::Truncate => self.truncate_table(),
            K::Bulk => self.bulk_insert(),
            K::Begin => self.begin(),
            K::If => self.if_statement(),
            K::While => self.while_statement(),
            K::Break => self.loop_exit(StmtKind::Break, 135),
            K::Continue => self.loop_exit(StmtKind::Continue, 136),
            K::Goto => self.goto(),
            K::Return => self.return_statement(),
            K::Raiserror => self.raise_error(),
            K::Print => {
                self.advance();
                self.expression().map(StmtKind::Print)
            }
            K::Waitfor => self.wait_for(),
            K::Declare => self.declare(),
            K::Set => self.set(),
            K::Exec | K::Execute => self.execute_statement(),
            K::Use => {
                self.advance();
                self.ident().map(StmtKind::Use)
            }
            K::Open | K::Close | K::Deallocate | K::Fetch => self.cursor_statement(keyword),
            K::Commit | K::Rollback | K::Save => self.transaction_statement(keyword),
            K::Create | K::Alter | K::Drop => self.definition(keyword),
            K::Grant | K::Deny | K::Revoke => self.permission(),
            K::Revert => self.revert(),
            K::Setuser => self.set_user(),
            K::Backup | K::Restore => self.backup_or_restore(keyword),
            K::Dbcc => self.dbcc(),
            K::Checkpoint => self.checkpoint(),
            K::Kill => self.kill(),
            K::Reconfigure => self.reconfigure(),
            K::Shutdown => self.shutdown(),
            K::Readtext | K::Writetext | K::Updatetext | K::Add | K::Lineno => self.unbuilt_statement(),
            K::End if self.word_at(1, "CONVERSATION") => self.unbuilt_statement(),
            _ => self.unexpected(),
        }
    }

    /// What begins with a word that is not reserved.
    fn word_statement(&mut self) -> Parsed<StmtKind> {
        if self.at_label() {
            return self.label();
        }
        if self.at_word("THROW") {
            return self.throw();
        }
        if (self.at_word("ENABLE") || self.at_word("DISABLE")) && self.keyword_at(1, K::Trigger) {
            return self.enable_trigger();
        }
        if self.at_words(&["SEND", "ON"]) || self.at_words(&["RECEIVE", "TOP"]) || self.at_words(&["GET", "CONVERSATION"]) {
            return self.unbuilt_statement();
        }
        if self.position == self.first_statement() {
            return self.execute_module().map(|execute| StmtKind::Execute(Box::new(execute)));
        }
        self.unexpected()
    }

    /// The position of the first token that is no semicolon.
    fn first_statement(&self) -> usize {
        self.tokens.iter().position(|token| token.kind != TokenKind::Semicolon).unwrap_or(0)
    }

    /// A statement that begins with a WITH clause.
    fn with_statement(&mut self) -> Parsed<StmtKind> {
        let with = Some(self.with_clause()?);
        match self.kind() {
            TokenKind::Keyword(K::Insert) => self.insert(with).map(|s| StmtKind::Insert(Box::new(s))),
            TokenKind::Keyword(K::Update) => self.update(with).map(|s| StmtKind::Update(Box::new(s))),
            TokenKind::Keyword(K::Delete) => self.delete(with).map(|s| StmtKind::Delete(Box::new(s))),
            TokenKind::Keyword(K::Merge) => self.merge_statement(with),
            _ => {
                let query: Query = self.query_behind(with, true)?;
                Ok(StmtKind::Select(Box::new(query)))
            }
        }
    }

    fn merge_statement(&mut self, with: Option<crate::ast::With>) -> Parsed<StmtKind> {
        let merge = self.merge(with)?;
        if !self.at(TokenKind::Semicolon) {
            return self.error(10713, Vec::new());
        }
        Ok(StmtKind::Merge(Box::new(merge)))
    }

    /// CREATE, ALTER, DROP.
    fn definition(&mut self, verb: K) -> Parsed<StmtKind> {
        let built = match verb {
            K::Create => self.create()?,
            K::Alter => self.alter()?,
            _ => self.drop_statement()?,
        };
        match built {
            Some(kind) => Ok(kind),
            None if self.names_unbuilt() => self.unbuilt_statement(),
            None => {
                self.advance();
                self.unexpected()
            }
        }
    }

    /// The kind of object behind the verb, if it is one without a tree.
    fn unbuilt_kind(&self) -> Option<&'static str> {
        UNBUILT.iter().copied().find(|kind| kind.split(' ').enumerate().all(|(ahead, word)| self.word_at(1 + ahead, word)))
    }

    fn names_unbuilt(&self) -> bool {
        self.unbuilt_kind().is_some()
    }

    /// Takes a statement that has no tree.
    pub(crate) fn unbuilt_statement(&mut self) -> Parsed<StmtKind> {
        let kind = self.unbuilt_kind();
        let mut name = self.any_word()?;
        match kind {
            Some(kind) => {
                name = format!("{name} {kind}");
                self.position += kind.split(' ').count();
            }
            None if self.at(TokenKind::Word) => name = format!("{name} {}", self.text_at(0).to_ascii_uppercase()),
            None => {}
        }
        self.skip_statement()?;
        Ok(StmtKind::Unbuilt(Unbuilt { name }))
    }

    /// Takes tokens to where a statement plainly ends: a semicolon, the end, or a word that begins another.
    fn skip_statement(&mut self) -> Parsed<()> {
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::Semicolon => return Ok(()),
                TokenKind::LeftParen => {
                    self.advance();
                    self.skip_to_close()?;
                }
                TokenKind::RightParen => return self.unexpected(),
                TokenKind::Keyword(
                    K::Select
                    | K::Exec
                    | K::Execute
                    | K::Declare
                    | K::If
                    | K::While
                    | K::Print
                    | K::Create
                    | K::Drop
                    | K::Begin
                    | K::End
                    | K::Use
                    | K::Return,
                ) => return Ok(()),
                _ => {
                    self.advance();
                }
            }
        }
    }

    /// A module must be alone in its batch: nothing before `CREATE` at the position.
    pub(crate) fn must_be_first(&self, what: &str) -> Parsed<()> {
        if self.position == self.first_statement() { Ok(()) } else { self.error(111, vec![what.to_owned()]) }
    }

    /// Reads the statements of a module's body, which fill the rest of the batch.
    pub(crate) fn module_statements(&mut self, within: Within) -> Parsed<Vec<Stmt>> {
        self.within = within;
        let statements = self.statements(|p| p.at_end())?;
        if statements.is_empty() && within != Within::Procedure {
            return self.unexpected();
        }
        Ok(statements)
    }

    /// Nothing may follow a view or function.
    pub(crate) fn must_be_last(&mut self) -> Parsed<()> {
        while self.at(TokenKind::Semicolon) {
            self.advance();
        }
        if self.at_end() { Ok(()) } else { self.unexpected() }
    }
}
