//! CREATE TABLE and ALTER TABLE.
//!
//! ```text
//! CREATE TABLE name body [AS {NODE | EDGE | FILETABLE}] [ON target] [TEXTIMAGE_ON g] [FILESTREAM_ON g] [WITH (options)]
//! ALTER TABLE name { [WITH {CHECK | NOCHECK}] ADD member, ... | ALTER COLUMN c ... | DROP item, ...
//!                  | [WITH {CHECK | NOCHECK}] {CHECK | NOCHECK} CONSTRAINT {ALL | c, ...} | {ENABLE | DISABLE} TRIGGER {ALL | t, ...}
//!                  | REBUILD ... | SET (options) | SWITCH ... | {ENABLE | DISABLE} CHANGE_TRACKING ... }
//! ```

use crate::ast::{
    AlterColumn, AlterTable, AlterTableAction, AlterTableDrop, CreateTable, Ident, Literal, ObjectName, StmtKind, StorageTarget, TableBody,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    /// Behind `CREATE TABLE`.
    pub(crate) fn create_table(&mut self) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        let mut flavor = self.table_flavor()?;
        let body = if self.at(TokenKind::LeftParen) || flavor.is_none() { self.table_body()? } else { TableBody::default() };
        let mut table = CreateTable {
            name,
            body,
            flavor: None,
            on: None,
            textimage_on: None,
            filestream_on: None,
            options: Vec::new(),
            as_query: None,
        };
        if flavor.is_none() {
            flavor = self.table_flavor()?;
        }
        table.flavor = flavor;
        loop {
            if self.at_keyword(K::On) {
                table.on = self.storage_target()?;
            } else if self.eat_word("TEXTIMAGE_ON") {
                table.textimage_on = Some(self.name_or_string()?);
            } else if self.eat_word("FILESTREAM_ON") {
                table.filestream_on = Some(self.name_or_string()?);
            } else if self.at_keyword(K::With) && self.kind_at(1) == TokenKind::LeftParen {
                self.advance();
                table.options = self.option_list()?;
            } else {
                return Ok(StmtKind::CreateTable(Box::new(table)));
            }
        }
    }

    fn table_flavor(&mut self) -> Parsed<Option<String>> {
        let flavored = self.at_keyword(K::As) && ["NODE", "EDGE", "FILETABLE"].iter().any(|word| self.word_at(1, word));
        if !flavored {
            return Ok(None);
        }
        self.advance();
        self.any_word().map(Some)
    }

    /// A name, which may be written as a string or the word DEFAULT.
    pub(crate) fn name_or_string(&mut self) -> Parsed<Ident> {
        if self.at_string() || self.at_keyword(K::Default) {
            let token = self.advance();
            return Ok(self.ident_of(token));
        }
        self.ident()
    }

    /// `ON name [(column)]`
    pub(crate) fn storage_target(&mut self) -> Parsed<Option<StorageTarget>> {
        if !self.eat_keyword(K::On) {
            return Ok(None);
        }
        let name = self.name_or_string()?;
        let mut column = None;
        if self.eat(TokenKind::LeftParen) {
            column = Some(self.ident()?);
            self.expect(TokenKind::RightParen)?;
        }
        Ok(Some(StorageTarget { name, column }))
    }

    /// Behind `ALTER TABLE`.
    pub(crate) fn alter_table(&mut self) -> Parsed<StmtKind> {
        let table = self.object_name()?;
        let action = self.alter_table_action()?;
        Ok(StmtKind::AlterTable(Box::new(AlterTable { table, action })))
    }

    fn alter_table_action(&mut self) -> Parsed<AlterTableAction> {
        let mut check = None;
        if self.at_keyword(K::With) && (self.keyword_at(1, K::Check) || self.keyword_at(1, K::Nocheck)) {
            check = Some(self.keyword_at(1, K::Check));
            self.position += 2;
        }
        match self.kind() {
            TokenKind::Keyword(K::Add) => self.alter_add(check),
            TokenKind::Keyword(K::Check | K::Nocheck) => self.check_constraint(check),
            _ if check.is_some() => self.unexpected(),
            TokenKind::Keyword(K::Alter) => self.alter_column(),
            TokenKind::Keyword(K::Drop) => self.alter_drop(),
            TokenKind::Keyword(K::Set) => {
                self.advance();
                self.option_list().map(AlterTableAction::Set)
            }
            TokenKind::Word => self.alter_word_action(),
            _ => self.unexpected(),
        }
    }

    fn alter_add(&mut self, check: Option<bool>) -> Parsed<AlterTableAction> {
        self.advance();
        // The word COLUMN is not part of T-SQL here.
        if self.at_keyword(K::Column) {
            return self.unexpected();
        }
        let parenthesised = self.eat(TokenKind::LeftParen);
        let mut body = TableBody::default();
        loop {
            if self.at_keyword(K::Default) {
                body.constraints.push(self.table_constraint(false)?);
            } else {
                self.table_member(&mut body)?;
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        if parenthesised {
            self.expect(TokenKind::RightParen)?;
        }
        Ok(AlterTableAction::Add { check, body })
    }

    /// `ALL` or names.
    fn all_or_names(&mut self) -> Parsed<Vec<Ident>> {
        if self.eat_keyword(K::All) { Ok(Vec::new()) } else { self.comma_list(Self::ident) }
    }

    fn check_constraint(&mut self, with_check: Option<bool>) -> Parsed<AlterTableAction> {
        let enable = self.eat_keyword(K::Check);
        let _ = !enable && self.eat_keyword(K::Nocheck);
        self.expect_keyword(K::Constraint)?;
        Ok(AlterTableAction::CheckConstraint { with_check, enable, names: self.all_or_names()? })
    }

    fn alter_column(&mut self) -> Parsed<AlterTableAction> {
        self.advance();
        self.expect_keyword(K::Column)?;
        let name = self.ident()?;
        if self.at_keyword(K::Add) || self.at_keyword(K::Drop) {
            return self.alter_column_property(name);
        }
        let data_type = self.data_type()?;
        let mut column = AlterColumn { name, data_type, collation: None, nullable: None, sparse: false, options: Vec::new() };
        loop {
            if self.eat_keyword(K::Collate) {
                column.collation = Some(self.collation()?);
            } else if let Some(nullable) = self.nullability() {
                column.nullable = Some(nullable);
            } else if self.eat_word("SPARSE") {
                column.sparse = true;
            } else {
                break;
            }
        }
        column.options = self.index_with_clause()?;
        Ok(AlterTableAction::AlterColumn { column: Box::new(column) })
    }

    fn alter_column_property(&mut self, column: Ident) -> Parsed<AlterTableAction> {
        let add = self.eat_keyword(K::Add);
        let _ = !add && self.eat_keyword(K::Drop);
        let mut property = self.any_word()?;
        let mut value = None;
        if property == "NOT" {
            self.expect_words(&["FOR", "REPLICATION"])?;
            property.push_str(" FOR REPLICATION");
        } else if property == "MASKED" && self.eat_keyword(K::With) {
            self.expect(TokenKind::LeftParen)?;
            self.expect_keyword(K::Function)?;
            self.expect(TokenKind::Equal)?;
            value = Some(Literal::String { value: self.string()?, national: false });
            self.expect(TokenKind::RightParen)?;
        }
        Ok(AlterTableAction::AlterColumnProperty { column, add, property, value })
    }

    fn alter_drop(&mut self) -> Parsed<AlterTableAction> {
        self.advance();
        if self.eat_words(&["PERIOD", "FOR", "SYSTEM_TIME"]) {
            return Ok(AlterTableAction::DropPeriod);
        }
        // `DROP COLUMN a, b`: the word holds for the names behind it until another word.
        let mut column = false;
        let items = self.comma_list(|p| {
            if p.eat_keyword(K::Column) {
                column = true;
            } else if p.eat_keyword(K::Constraint) {
                column = false;
            }
            let if_exists = p.eat_words(&["IF", "EXISTS"]);
            let name = p.ident()?;
            Ok(AlterTableDrop { column, if_exists, name, options: p.index_with_clause()? })
        })?;
        Ok(AlterTableAction::Drop(items))
    }

    fn alter_word_action(&mut self) -> Parsed<AlterTableAction> {
        let enable = self.at_word("ENABLE");
        if enable || self.at_word("DISABLE") {
            self.advance();
            if self.eat_keyword(K::Trigger) {
                return Ok(AlterTableAction::Trigger { enable, names: self.all_or_names()? });
            }
            self.expect_word("CHANGE_TRACKING")?;
            let options = if self.eat_keyword(K::With) { self.option_list()? } else { Vec::new() };
            return Ok(AlterTableAction::ChangeTracking { enable, options });
        }
        if self.eat_word("REBUILD") {
            let partition = self.partition()?;
            return Ok(AlterTableAction::Rebuild { partition, options: self.index_with_clause()? });
        }
        if self.eat_word("SWITCH") {
            let partition = if self.eat_word("PARTITION") { Some(self.expression()?) } else { None };
            self.expect_keyword(K::To)?;
            let target: ObjectName = self.object_name()?;
            let target_partition = if self.eat_word("PARTITION") { Some(self.expression()?) } else { None };
            let options = if self.eat_keyword(K::With) { self.option_list()? } else { Vec::new() };
            return Ok(AlterTableAction::Switch { partition, target, target_partition, options });
        }
        self.unexpected()
    }
}
