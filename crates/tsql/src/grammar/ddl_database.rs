//! Databases.
//!
//! ```text
//! CREATE DATABASE name [CONTAINMENT = w] [ON [PRIMARY] file, ... [, FILEGROUP g [CONTAINS w] [DEFAULT] file, ...]]
//!        [LOG ON file, ...] [COLLATE c] [WITH option, ...] [FOR {ATTACH | ATTACH_REBUILD_LOG}] [AS SNAPSHOT OF d]
//! file ::= ( NAME = n, FILENAME = 'path' [, SIZE = s] [, MAXSIZE = {s | UNLIMITED}] [, FILEGROWTH = {s | n %}] )
//! ALTER DATABASE {name | CURRENT} {SET option, ... [WITH termination] | COLLATE c | MODIFY NAME = n | ADD [LOG] FILE ... | ...}
//! ALTER DATABASE SCOPED {CONFIGURATION [FOR SECONDARY] SET name = v | ... CLEAR name}
//! ```

use crate::ast::{
    AlterDatabase, AlterDatabaseAction as Action, AlterDatabaseScoped, Attach, CreateDatabase, FileGroupSpec, FileSize, FileSpec, Ident,
    OptionItem, StmtKind, Termination,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

/// Options of ALTER DATABASE SET that stand alone.
const ALONE: &[&str] = &[
    "ONLINE",
    "OFFLINE",
    "EMERGENCY",
    "SINGLE_USER",
    "RESTRICTED_USER",
    "MULTI_USER",
    "READ_ONLY",
    "READ_WRITE",
    "ENABLE_BROKER",
    "DISABLE_BROKER",
    "NEW_BROKER",
    "ERROR_BROKER_CONVERSATIONS",
];

const MEGABYTE: u64 = 1 << 20;

impl Parser<'_> {
    /// Behind `CREATE DATABASE`.
    pub(crate) fn create_database(&mut self) -> Parsed<StmtKind> {
        let mut database = CreateDatabase {
            name: self.ident()?,
            containment: None,
            primary: Vec::new(),
            filegroups: Vec::new(),
            log: Vec::new(),
            collation: None,
            options: Vec::new(),
            attach: None,
            snapshot_of: None,
        };
        if self.eat_word("CONTAINMENT") {
            self.expect(TokenKind::Equal)?;
            database.containment = Some(self.any_word()?);
        }
        if self.eat_keyword(K::On) {
            let _ = self.eat_keyword(K::Primary);
            self.database_files(&mut database)?;
        }
        loop {
            if self.eat_words(&["LOG", "ON"]) {
                database.log = self.comma_list(Self::file_spec)?;
            } else if self.eat_keyword(K::Collate) {
                database.collation = Some(self.collation()?);
            } else if self.at_keyword(K::With) && !self.keyword_at(2, K::As) {
                self.advance();
                database.options = self.comma_list(|p| p.option_item(super::option::Style::OpenPairs))?;
            } else if self.eat_words(&["FOR", "ATTACH"]) {
                database.attach = Some(Attach::Attach);
            } else if self.eat_words(&["FOR", "ATTACH_REBUILD_LOG"]) {
                database.attach = Some(Attach::AttachRebuildLog);
            } else if self.eat_words(&["AS", "SNAPSHOT", "OF"]) {
                database.snapshot_of = Some(self.ident()?);
            } else {
                return Ok(StmtKind::CreateDatabase(Box::new(database)));
            }
        }
    }

    /// The files behind ON: those of the primary filegroup, then filegroups.
    fn database_files(&mut self, database: &mut CreateDatabase) -> Parsed<()> {
        loop {
            if self.eat_word("FILEGROUP") {
                let name = self.ident()?;
                let contains = if self.eat_keyword(K::Contains) { Some(self.any_word()?) } else { None };
                let default = self.eat_keyword(K::Default);
                let files = vec![self.file_spec()?];
                database.filegroups.push(FileGroupSpec { name, contains, default, files });
            } else {
                let file = self.file_spec()?;
                match database.filegroups.last_mut() {
                    Some(group) => group.files.push(file),
                    None => database.primary.push(file),
                }
            }
            if !self.eat(TokenKind::Comma) {
                return Ok(());
            }
        }
    }

    fn file_spec(&mut self) -> Parsed<FileSpec> {
        let mark = self.position;
        let mut file = FileSpec::default();
        self.paren_list(|p| p.file_property(&mut file))?;
        file.span = self.span_since(mark);
        Ok(file)
    }

    fn file_property(&mut self, file: &mut FileSpec) -> Parsed<()> {
        let name = self.any_word()?;
        if name == "OFFLINE" {
            file.offline = true;
            return Ok(());
        }
        self.expect(TokenKind::Equal)?;
        match name.as_str() {
            "NAME" => file.name = Some(self.file_name()?),
            "NEWNAME" => file.new_name = Some(self.file_name()?),
            "FILENAME" => file.file_name = Some(self.string()?),
            "SIZE" => file.size = Some(self.file_size()?),
            "MAXSIZE" => file.max_size = Some(self.file_size()?),
            "FILEGROWTH" => file.file_growth = Some(self.file_size()?),
            _ => {
                self.position -= 2;
                return self.unexpected();
            }
        }
        Ok(())
    }

    /// A logical file's name, which may be a string.
    fn file_name(&mut self) -> Parsed<Ident> {
        if self.at_string() {
            let token = self.advance();
            return Ok(self.ident_of(token));
        }
        self.ident()
    }

    fn file_size(&mut self) -> Parsed<FileSize> {
        if self.eat_word("UNLIMITED") {
            return Ok(FileSize::Unlimited);
        }
        let Ok(number) = self.text_at(0).parse::<u64>() else { return self.unexpected() };
        self.expect(TokenKind::Integer)?;
        if self.eat(TokenKind::Percent) {
            return match u32::try_from(number) {
                Ok(percent) => Ok(FileSize::Percent(percent)),
                Err(_) => self.unexpected(),
            };
        }
        let unit = [("KB", 1 << 10), ("MB", MEGABYTE), ("GB", 1 << 30), ("TB", 1 << 40)].into_iter().find(|(unit, _)| self.at_word(unit));
        if unit.is_some() {
            self.advance();
        }
        match number.checked_mul(unit.map_or(MEGABYTE, |(_, bytes)| bytes)) {
            Some(bytes) => Ok(FileSize::Bytes(bytes)),
            None => self.unexpected(),
        }
    }

    /// Behind `ALTER DATABASE`.
    pub(crate) fn alter_database(&mut self) -> Parsed<StmtKind> {
        if self.eat_words(&["SCOPED", "CONFIGURATION"]) {
            return self.scoped_configuration();
        }
        let name = if self.eat_keyword(K::Current) { None } else { Some(self.ident()?) };
        let action = self.database_action()?;
        Ok(StmtKind::AlterDatabase(Box::new(AlterDatabase { name, action })))
    }

    fn scoped_configuration(&mut self) -> Parsed<StmtKind> {
        let for_secondary = self.eat_words(&["FOR", "SECONDARY"]);
        let clear = self.eat_word("CLEAR");
        if !clear {
            self.expect_keyword(K::Set)?;
        }
        let option = self.option_item(super::option::Style::Open)?;
        Ok(StmtKind::AlterDatabaseScoped(Box::new(AlterDatabaseScoped { for_secondary, clear, option })))
    }

    fn database_action(&mut self) -> Parsed<Action> {
        match self.any_word()?.as_str() {
            "SET" => self.database_options(),
            "COLLATE" => self.collation().map(Action::Collate),
            "ADD" => self.database_add(),
            "REMOVE" => {
                if self.eat_word("FILEGROUP") {
                    return self.ident().map(Action::RemoveFileGroup);
                }
                self.expect_keyword(K::File)?;
                self.file_name().map(Action::RemoveFile)
            }
            "MODIFY" => self.database_modify(),
            _ => {
                self.position -= 1;
                self.unexpected()
            }
        }
    }

    fn database_options(&mut self) -> Parsed<Action> {
        let options = self.comma_list(|p| {
            let mark = p.position;
            if ALONE.iter().any(|name| p.at_word(name)) {
                let name = p.any_word()?;
                return Ok(OptionItem { name, value: crate::ast::OptionValue::None, span: p.span_since(mark) });
            }
            p.option_item(super::option::Style::OpenPairs)
        })?;
        let termination = if self.at_keyword(K::With) { self.termination()? } else { None };
        Ok(Action::Set { options, termination })
    }

    /// `WITH {ROLLBACK IMMEDIATE | ROLLBACK AFTER n [SECONDS] | NO_WAIT}`
    fn termination(&mut self) -> Parsed<Option<Termination>> {
        if self.word_at(1, "NO_WAIT") {
            self.position += 2;
            return Ok(Some(Termination::NoWait));
        }
        if !self.keyword_at(1, K::Rollback) {
            return Ok(None);
        }
        self.position += 2;
        if self.eat_word("IMMEDIATE") {
            return Ok(Some(Termination::RollbackImmediate));
        }
        self.expect_word("AFTER")?;
        let seconds = self.literal_or_variable()?;
        let _ = self.eat_word("SECONDS");
        Ok(Some(Termination::RollbackAfterSeconds(seconds)))
    }

    fn database_add(&mut self) -> Parsed<Action> {
        if self.eat_words(&["LOG", "FILE"]) {
            return self.comma_list(Self::file_spec).map(Action::AddLogFiles);
        }
        if self.eat_word("FILEGROUP") {
            let name = self.ident()?;
            let contains = if self.eat_keyword(K::Contains) { Some(self.any_word()?) } else { None };
            return Ok(Action::AddFileGroup { name, contains });
        }
        self.expect_keyword(K::File)?;
        let files = self.comma_list(Self::file_spec)?;
        let filegroup = if self.eat_words(&["TO", "FILEGROUP"]) { Some(self.name_or_string()?) } else { None };
        Ok(Action::AddFiles { files, filegroup })
    }

    fn database_modify(&mut self) -> Parsed<Action> {
        if self.at(TokenKind::LeftParen) {
            return self.option_list().map(Action::Modify);
        }
        match self.any_word()?.as_str() {
            "NAME" => {
                self.expect(TokenKind::Equal)?;
                self.ident().map(Action::ModifyName)
            }
            "FILE" => self.file_spec().map(|file| Action::ModifyFile(Box::new(file))),
            "FILEGROUP" => {
                let name = self.name_or_string()?;
                let property = self.option_item(super::option::Style::Open)?;
                Ok(Action::ModifyFileGroup { name, property })
            }
            _ => {
                self.position -= 1;
                self.unexpected()
            }
        }
    }
}
