//! Indexes and statistics.
//!
//! ```text
//! CREATE [UNIQUE] [CLUSTERED | NONCLUSTERED] [COLUMNSTORE] INDEX name ON table [(key, ...)] [INCLUDE (c, ...)] [ORDER (c, ...)]
//!        [WHERE condition] [WITH (option, ...)] [ON target] [FILESTREAM_ON g]
//! ALTER INDEX {name | ALL} ON table {REBUILD ... | REORGANIZE ... | DISABLE | SET (...) | RESUME [WITH (...)] | PAUSE | ABORT}
//! DROP INDEX [IF EXISTS] {name ON table [WITH (...)] | table.name}, ...
//! CREATE STATISTICS name ON table (c, ...) [WHERE condition] [WITH option, ...]
//! UPDATE STATISTICS table [name | (name, ...)] [WITH option, ...]
//! ```
//!
//! Messages: 155 (no such option).

use crate::ast::{
    AbortAfterWait, AlterIndex, AlterIndexAction, CreateIndex, CreateStatistics, DropIndex, DropIndexItem, Expr, IndexKey, IndexOption,
    IndexOptionKind as Kind, InlineIndex, LowPriorityWait, ObjectName, StmtKind, StorageTarget, UpdateStatistics,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

/// The options that are ON or OFF.
const SWITCHES: &[(&str, fn(bool) -> Kind)] = &[
    ("PAD_INDEX", Kind::PadIndex),
    ("SORT_IN_TEMPDB", Kind::SortInTempdb),
    ("IGNORE_DUP_KEY", Kind::IgnoreDupKey),
    ("STATISTICS_NORECOMPUTE", Kind::StatisticsNoRecompute),
    ("STATISTICS_INCREMENTAL", Kind::StatisticsIncremental),
    ("DROP_EXISTING", Kind::DropExisting),
    ("RESUMABLE", Kind::Resumable),
    ("ALLOW_ROW_LOCKS", Kind::AllowRowLocks),
    ("ALLOW_PAGE_LOCKS", Kind::AllowPageLocks),
    ("OPTIMIZE_FOR_SEQUENTIAL_KEY", Kind::OptimizeForSequentialKey),
    ("XML_COMPRESSION", Kind::XmlCompression),
    ("LOB_COMPACTION", Kind::LobCompaction),
    ("COMPRESS_ALL_ROW_GROUPS", Kind::CompressAllRowGroups),
];

/// The options that take a number.
const NUMBERS: &[(&str, fn(Expr) -> Kind)] =
    &[("FILLFACTOR", Kind::FillFactor), ("MAXDOP", Kind::MaxDop), ("BUCKET_COUNT", Kind::BucketCount)];

impl Parser<'_> {
    /// True behind CREATE where an index begins.
    pub(crate) fn at_index_words(&self) -> bool {
        let mut ahead = 1;
        while ["UNIQUE", "CLUSTERED", "NONCLUSTERED", "COLUMNSTORE"].iter().any(|word| self.word_at(ahead, word)) {
            ahead += 1;
        }
        self.keyword_at(ahead, K::Index)
    }

    /// Behind `CREATE`.
    pub(crate) fn create_index(&mut self) -> Parsed<StmtKind> {
        let unique = self.eat_keyword(K::Unique);
        let clustered = self.clustering();
        let columnstore = self.eat_word("COLUMNSTORE");
        self.expect_keyword(K::Index)?;
        let name = self.ident()?;
        self.expect_keyword(K::On)?;
        let table = self.object_name()?;
        let mut index = CreateIndex {
            unique,
            clustered,
            columnstore,
            name,
            table,
            keys: Vec::new(),
            include: Vec::new(),
            filter: None,
            options: Vec::new(),
            on: None,
            filestream_on: None,
        };
        if self.at(TokenKind::LeftParen) || !columnstore {
            index.keys = self.paren_list(Self::index_key)?;
        }
        if self.eat_word("INCLUDE") {
            index.include = self.ident_list()?;
        }
        if columnstore && self.eat_keyword(K::Order) {
            index.keys = self.paren_list(Self::index_key)?;
        }
        if self.eat_keyword(K::Where) {
            index.filter = Some(self.condition()?);
        }
        index.options = self.index_with_clause()?;
        index.on = self.storage_target()?;
        if self.eat_word("FILESTREAM_ON") {
            index.filestream_on = Some(self.name_or_string()?);
        }
        Ok(StmtKind::CreateIndex(Box::new(index)))
    }

    /// `column [ASC | DESC]`
    pub(crate) fn index_key(&mut self) -> Parsed<IndexKey> {
        let column = self.ident()?;
        let descending = self.eat_keyword(K::Desc);
        let _ = !descending && self.eat_keyword(K::Asc);
        Ok(IndexKey { column, descending })
    }

    /// An index inside a table's body.
    pub(crate) fn inline_index(&mut self) -> Parsed<InlineIndex> {
        let mark = self.position;
        self.expect_keyword(K::Index)?;
        let name = self.ident()?;
        let unique = self.eat_keyword(K::Unique);
        let clustered = self.clustering();
        let hash = self.eat_word("HASH");
        let columnstore = self.eat_word("COLUMNSTORE");
        let keys = if self.at(TokenKind::LeftParen) { self.paren_list(Self::index_key)? } else { Vec::new() };
        let include = if self.eat_word("INCLUDE") { self.ident_list()? } else { Vec::new() };
        let filter = if self.eat_keyword(K::Where) { Some(self.condition()?) } else { None };
        let options = self.index_with_clause()?;
        let on = self.storage_target()?;
        Ok(InlineIndex { name, unique, clustered, hash, columnstore, keys, include, filter, options, on, span: self.span_since(mark) })
    }

    /// `WITH ( option, ... )`, `WITH FILLFACTOR = n` (the old form), or nothing.
    pub(crate) fn index_with_clause(&mut self) -> Parsed<Vec<IndexOption>> {
        if !self.at_keyword(K::With) {
            return Ok(Vec::new());
        }
        if self.kind_at(1) == TokenKind::LeftParen {
            self.advance();
            return self.nested(|p| p.paren_list(Self::index_option));
        }
        let old = ["FILLFACTOR", "PAD_INDEX", "IGNORE_DUP_KEY", "DROP_EXISTING", "STATISTICS_NORECOMPUTE", "SORT_IN_TEMPDB"];
        if !old.iter().any(|word| self.word_at(1, word)) {
            return Ok(Vec::new());
        }
        self.advance();
        self.comma_list(Self::index_option)
    }

    fn index_option(&mut self) -> Parsed<IndexOption> {
        let mark = self.position;
        let kind = self.index_option_kind()?;
        Ok(IndexOption { kind, span: self.span_since(mark) })
    }

    fn index_option_kind(&mut self) -> Parsed<Kind> {
        let mark = self.position;
        let name = self.any_word()?;
        if let Some((_, make)) = SWITCHES.iter().find(|(word, _)| *word == name) {
            // The old form has the name alone.
            let value = if self.eat(TokenKind::Equal) { self.on_off()? } else { true };
            if self.at(TokenKind::LeftParen) {
                // IGNORE_DUP_KEY = ON (SUPPRESS_MESSAGES = ON)
                self.option_list()?;
            }
            return Ok(make(value));
        }
        if let Some((_, make)) = NUMBERS.iter().find(|(word, _)| *word == name) {
            self.expect(TokenKind::Equal)?;
            return self.literal_or_variable().map(make);
        }
        match name.as_str() {
            "ONLINE" => self.online(),
            "MAX_DURATION" => {
                self.expect(TokenKind::Equal)?;
                let minutes = self.literal_or_variable()?;
                let _ = self.eat_word("MINUTES");
                Ok(Kind::MaxDuration(minutes))
            }
            "DATA_COMPRESSION" => {
                self.expect(TokenKind::Equal)?;
                let method = self.any_word()?;
                let on = self.at_keyword(K::On) && self.word_at(1, "PARTITIONS");
                self.position += if on { 2 } else { 0 };
                let partitions = if on { self.partition_ranges()? } else { Vec::new() };
                Ok(Kind::DataCompression { method, partitions })
            }
            "WAIT_AT_LOW_PRIORITY" => self.low_priority_wait().map(Kind::WaitAtLowPriority),
            "MOVE" => {
                self.expect_keyword(K::To)?;
                let name = self.name_or_string()?;
                let mut column = None;
                if self.eat(TokenKind::LeftParen) {
                    column = Some(self.ident()?);
                    self.expect(TokenKind::RightParen)?;
                }
                Ok(Kind::MoveTo(StorageTarget { name, column }))
            }
            "FILESTREAM_ON" => self.name_or_string().map(Kind::FileStreamOn),
            _ => self.option_behind(name, super::option::Style::Enclosed, mark).map(Kind::Other),
        }
    }

    /// `= {ON [( WAIT_AT_LOW_PRIORITY (...) )] | OFF}`
    fn online(&mut self) -> Parsed<Kind> {
        self.expect(TokenKind::Equal)?;
        let on = self.on_off()?;
        let mut wait = None;
        if on && self.eat(TokenKind::LeftParen) {
            self.expect_word("WAIT_AT_LOW_PRIORITY")?;
            wait = Some(self.low_priority_wait()?);
            self.expect(TokenKind::RightParen)?;
        }
        Ok(Kind::Online { on, wait })
    }

    /// `( MAX_DURATION = n [MINUTES], ABORT_AFTER_WAIT = {NONE | SELF | BLOCKERS} )`
    fn low_priority_wait(&mut self) -> Parsed<LowPriorityWait> {
        self.expect(TokenKind::LeftParen)?;
        self.expect_word("MAX_DURATION")?;
        self.expect(TokenKind::Equal)?;
        let max_duration_minutes = self.literal_or_variable()?;
        let _ = self.eat_word("MINUTES");
        self.expect(TokenKind::Comma)?;
        self.expect_word("ABORT_AFTER_WAIT")?;
        self.expect(TokenKind::Equal)?;
        let abort_after_wait = match self.any_word()?.as_str() {
            "NONE" => AbortAfterWait::None,
            "SELF" => AbortAfterWait::Self_,
            "BLOCKERS" => AbortAfterWait::Blockers,
            other => return self.error(155, vec![other.to_owned(), "ABORT_AFTER_WAIT".to_owned()]),
        };
        self.expect(TokenKind::RightParen)?;
        Ok(LowPriorityWait { max_duration_minutes, abort_after_wait })
    }

    /// `PARTITION = {ALL | n}`; ALL is nothing.
    pub(crate) fn partition(&mut self) -> Parsed<Option<Expr>> {
        if !self.eat_word("PARTITION") {
            return Ok(None);
        }
        self.expect(TokenKind::Equal)?;
        if self.eat_keyword(K::All) { Ok(None) } else { self.literal_or_variable().map(Some) }
    }

    /// Behind `ALTER INDEX`.
    pub(crate) fn alter_index(&mut self) -> Parsed<StmtKind> {
        let name = if self.eat_keyword(K::All) { None } else { Some(self.ident()?) };
        self.expect_keyword(K::On)?;
        let table = self.object_name()?;
        let action = match self.any_word()?.as_str() {
            "REBUILD" => {
                let partition = self.partition()?;
                AlterIndexAction::Rebuild { partition, options: self.index_with_clause()? }
            }
            "REORGANIZE" => {
                let partition = self.partition()?;
                AlterIndexAction::Reorganize { partition, options: self.index_with_clause()? }
            }
            "DISABLE" => AlterIndexAction::Disable,
            "SET" => AlterIndexAction::Set(self.nested(|p| p.paren_list(Self::index_option))?),
            "RESUME" => AlterIndexAction::Resume(self.index_with_clause()?),
            "PAUSE" => AlterIndexAction::Pause,
            "ABORT" => AlterIndexAction::Abort,
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        };
        Ok(StmtKind::AlterIndex(Box::new(AlterIndex { name, table, action })))
    }

    /// Behind `DROP INDEX`.
    pub(crate) fn drop_index(&mut self) -> Parsed<StmtKind> {
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let items = self.comma_list(|p| {
            let mark = p.position;
            let mut parts = p.name_parts()?;
            if p.eat_keyword(K::On) {
                let name = p.object_of(parts, mark)?.name;
                let table = p.object_name()?;
                return Ok(DropIndexItem { name, table, options: p.index_with_clause()? });
            }
            let Some(name) = parts.pop().flatten() else { return p.unexpected() };
            if parts.is_empty() {
                return p.unexpected();
            }
            let mut table: ObjectName = p.object_of(parts, mark)?;
            table.span.end = table.name.span.end;
            Ok(DropIndexItem { name, table, options: Vec::new() })
        })?;
        Ok(StmtKind::DropIndex(Box::new(DropIndex { if_exists, items })))
    }

    /// Behind `CREATE STATISTICS`.
    pub(crate) fn create_statistics(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        self.expect_keyword(K::On)?;
        let table = self.object_name()?;
        let columns = self.ident_list()?;
        let filter = if self.eat_keyword(K::Where) { Some(self.condition()?) } else { None };
        let options = self.statistics_options()?;
        Ok(StmtKind::CreateStatistics(Box::new(CreateStatistics { name, table, columns, filter, options })))
    }

    fn statistics_options(&mut self) -> Parsed<Vec<crate::ast::OptionItem>> {
        let next_statement = self.ident_at(1) && (self.keyword_at(2, K::As) || self.kind_at(2) == TokenKind::LeftParen);
        if !self.at_keyword(K::With) || next_statement && !self.word_at(1, "RESAMPLE") {
            return Ok(Vec::new());
        }
        self.advance();
        self.comma_list(|p| p.option_item(super::option::Style::Open))
    }

    pub(crate) fn update_statistics(&mut self) -> Parsed<StmtKind> {
        self.position += 2;
        let table = self.object_name()?;
        let names = if self.at(TokenKind::LeftParen) {
            self.ident_list()?
        } else if self.at_ident() && !self.at_label() {
            vec![self.ident()?]
        } else {
            Vec::new()
        };
        let options = self.statistics_options()?;
        Ok(StmtKind::UpdateStatistics(Box::new(UpdateStatistics { table, names, options })))
    }
}
