//! Backup, restore, DBCC, and the other statements of an administrator.
//!
//! ```text
//! BACKUP {DATABASE | LOG} {name | @v} [file, ...] TO device, ... [MIRROR TO device, ...] [WITH option, ...]
//! RESTORE {DATABASE | LOG} {name | @v} [file, ...] [FROM device, ...] [WITH {MOVE 'a' TO 'b' | option}, ...]
//! RESTORE {VERIFYONLY | HEADERONLY | FILELISTONLY | LABELONLY | REWINDONLY} FROM device, ... [WITH option, ...]
//! device ::= {DISK | URL | TAPE} = {'path' | @v} | name | @v
//! DBCC name [( [argument, ...] )] [WITH option, ...]
//! CHECKPOINT [n] | KILL n [WITH STATUSONLY] | RECONFIGURE [WITH OVERRIDE] | SHUTDOWN [WITH NOWAIT]
//! ```

use crate::ast::{
    Backup, BackupDevice, BackupDeviceKind, BackupKind, Dbcc, DbccArgument, Expr, ExprKind, Kill, Literal, NameOrVariable, OptionItem,
    Restore, RestoreKind, StmtKind,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    pub(crate) fn backup_or_restore(&mut self, keyword: K) -> Parsed<StmtKind> {
        let backup = keyword == K::Backup;
        let words = ["CERTIFICATE", "MASTER", "SERVICE", "SYMMETRIC"];
        if words.iter().any(|word| self.word_at(1, word)) {
            return self.unbuilt_statement();
        }
        self.advance();
        if backup { self.backup() } else { self.restore() }
    }

    fn backup(&mut self) -> Parsed<StmtKind> {
        let kind = match self.any_word()?.as_str() {
            "DATABASE" => BackupKind::Database,
            "LOG" | "TRAN" | "TRANSACTION" => BackupKind::Log,
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        };
        let database = self.name_or_variable()?;
        let files = self.backup_files()?;
        self.expect_keyword(K::To)?;
        let to = self.comma_list(Self::backup_device)?;
        let mut mirrors = Vec::new();
        while self.eat_words(&["MIRROR", "TO"]) {
            mirrors.push(self.comma_list(Self::backup_device)?);
        }
        let options = if self.eat_keyword(K::With) { self.comma_list(Self::backup_option)? } else { Vec::new() };
        Ok(StmtKind::Backup(Box::new(Backup { kind, database, files, to, mirrors, options })))
    }

    fn name_or_variable(&mut self) -> Parsed<NameOrVariable> {
        if self.at(TokenKind::Variable) {
            return self.variable().map(NameOrVariable::Variable);
        }
        self.ident().map(NameOrVariable::Name)
    }

    /// `FILE = ...`, `FILEGROUP = ...`, `PAGE = ...`, `READ_WRITE_FILEGROUPS` behind the database's name.
    fn backup_files(&mut self) -> Parsed<Vec<OptionItem>> {
        if !["FILE", "FILEGROUP", "PAGE", "READ_WRITE_FILEGROUPS"].iter().any(|word| self.at_word(word)) {
            return Ok(Vec::new());
        }
        self.comma_list(|p| p.option_item(super::option::Style::Open))
    }

    fn backup_device(&mut self) -> Parsed<BackupDevice> {
        let mark = self.position;
        let kinds = [("DISK", BackupDeviceKind::Disk), ("URL", BackupDeviceKind::Url), ("TAPE", BackupDeviceKind::Tape)];
        if self.kind_at(1) == TokenKind::Equal
            && let Some((_, kind)) = kinds.into_iter().find(|(word, _)| self.at_word(word))
        {
            self.position += 2;
            let target = self.string_or_variable()?;
            return Ok(BackupDevice { kind, target, span: self.span_since(mark) });
        }
        let target = if self.at(TokenKind::Variable) { self.literal_or_variable()? } else { self.bare_string()? };
        Ok(BackupDevice { kind: BackupDeviceKind::Logical, target, span: self.span_since(mark) })
    }

    /// An option of BACKUP; `ENCRYPTION (ALGORITHM = ..., SERVER CERTIFICATE = c)` is kept as words.
    fn backup_option(&mut self) -> Parsed<OptionItem> {
        let mark = self.position;
        let name = self.any_word()?;
        if name == "ENCRYPTION" && self.eat(TokenKind::LeftParen) {
            let inner = self.position;
            self.skip_to_close()?;
            let written = crate::ast::Span { end: self.tokens[self.position - 1].start, ..self.span_since(inner) };
            let literal = Literal::String { value: written.slice(self.text).to_owned(), national: false };
            let value = crate::ast::OptionValue::Expr(Expr { kind: ExprKind::Literal(literal), span: written });
            return Ok(OptionItem { name, value, span: self.span_since(mark) });
        }
        self.option_behind(name, super::option::Style::Open, mark)
    }

    fn restore(&mut self) -> Parsed<StmtKind> {
        let kind = match self.any_word()?.as_str() {
            "DATABASE" => RestoreKind::Database,
            "LOG" | "TRAN" | "TRANSACTION" => RestoreKind::Log,
            "VERIFYONLY" => RestoreKind::VerifyOnly,
            "HEADERONLY" => RestoreKind::HeaderOnly,
            "FILELISTONLY" => RestoreKind::FileListOnly,
            "LABELONLY" => RestoreKind::LabelOnly,
            "REWINDONLY" => RestoreKind::RewindOnly,
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        };
        let mut restore =
            Restore { kind, database: None, files: Vec::new(), from: Vec::new(), snapshot: None, moves: Vec::new(), options: Vec::new() };
        if matches!(kind, RestoreKind::Database | RestoreKind::Log) {
            restore.database = Some(self.name_or_variable()?);
            restore.files = self.backup_files()?;
        }
        if self.eat_keyword(K::From) {
            if self.eat_word("DATABASE_SNAPSHOT") {
                self.expect(TokenKind::Equal)?;
                restore.snapshot = Some(if self.at_ident() { self.bare_string()? } else { self.string_or_variable()? });
            } else {
                restore.from = self.comma_list(Self::backup_device)?;
            }
        }
        if self.eat_keyword(K::With) {
            self.comma_list(|p| p.restore_option(&mut restore))?;
        }
        Ok(StmtKind::Restore(Box::new(restore)))
    }

    fn restore_option(&mut self, restore: &mut Restore) -> Parsed<()> {
        if self.eat_word("MOVE") {
            let from = self.string_or_variable()?;
            self.expect_keyword(K::To)?;
            restore.moves.push((from, self.string_or_variable()?));
            return Ok(());
        }
        let mark = self.position;
        let mut item = self.option_item(super::option::Style::Open)?;
        if self.eat_word("AFTER") {
            // STOPATMARK = 'mark' AFTER 'time'
            let after = self.string_or_variable()?;
            item = OptionItem {
                name: item.name,
                value: crate::ast::OptionValue::List(vec![
                    OptionItem { name: "MARK".to_owned(), value: item.value, span: item.span },
                    OptionItem { name: "AFTER".to_owned(), span: after.span, value: crate::ast::OptionValue::Expr(after) },
                ]),
                span: self.span_since(mark),
            };
        }
        restore.options.push(item);
        Ok(())
    }

    pub(crate) fn dbcc(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let name = self.any_word()?;
        let mut arguments = Vec::new();
        if self.eat(TokenKind::LeftParen) {
            if !self.at(TokenKind::RightParen) {
                arguments = self.comma_list(Self::dbcc_argument)?;
            }
            self.expect(TokenKind::RightParen)?;
        }
        let mut options = Vec::new();
        if self.at_keyword(K::With) && !self.keyword_at(2, K::As) {
            self.advance();
            options = self.comma_list(|p| p.option_item(super::option::Style::Open))?;
        }
        Ok(StmtKind::Dbcc(Box::new(Dbcc { name, arguments, options })))
    }

    fn dbcc_argument(&mut self) -> Parsed<DbccArgument> {
        if self.at_ident() || (self.at(TokenKind::Dot) && self.kind_at(1) != TokenKind::Integer) {
            return self.object_name().map(DbccArgument::Name);
        }
        self.literal_or_variable().map(DbccArgument::Expr)
    }

    pub(crate) fn checkpoint(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let seconds = if self.at(TokenKind::Integer) { Some(self.literal_or_variable()?) } else { None };
        Ok(StmtKind::Checkpoint(seconds))
    }

    pub(crate) fn kill(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let mut what = String::new();
        for phrase in [&["STATS", "JOB"][..], &["QUERY", "NOTIFICATION", "SUBSCRIPTION"]] {
            if self.eat_words(phrase) {
                what = phrase.join(" ");
            }
        }
        let mark = self.position;
        let session = if self.eat_keyword(K::All) {
            let literal = Literal::String { value: "ALL".to_owned(), national: false };
            self.expr_since(mark, ExprKind::Literal(literal))
        } else {
            self.literal_or_variable()?
        };
        let status_only = self.eat_words(&["WITH", "STATUSONLY"]);
        let mut outcome = None;
        if !status_only && self.at_keyword(K::With) && (self.keyword_at(1, K::Commit) || self.keyword_at(1, K::Rollback)) {
            self.advance();
            outcome = Some(self.any_word()?);
        }
        Ok(StmtKind::Kill(Box::new(Kill { session, what, status_only, outcome })))
    }

    pub(crate) fn reconfigure(&mut self) -> Parsed<StmtKind> {
        self.advance();
        Ok(StmtKind::Reconfigure { with_override: self.eat_words(&["WITH", "OVERRIDE"]) })
    }

    pub(crate) fn shutdown(&mut self) -> Parsed<StmtKind> {
        self.advance();
        Ok(StmtKind::Shutdown { no_wait: self.eat_words(&["WITH", "NOWAIT"]) })
    }
}
