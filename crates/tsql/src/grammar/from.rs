//! The FROM clause.
//!
//! ```text
//! from    ::= FROM source, ...
//! source  ::= primary step*
//! step    ::= [INNER | {LEFT | RIGHT | FULL} [OUTER]] [LOOP | HASH | MERGE | REMOTE] JOIN source ON condition
//!           | CROSS JOIN primary | {CROSS | OUTER} APPLY primary | PIVOT (...) alias | UNPIVOT (...) alias
//! primary ::= name ... | @t | f(...) | x.nodes(...) | ( query ) alias | ( VALUES ... ) alias | ( dml ) alias | ( source )
//!           | OPENROWSET ( ... ) | {oj source}
//! ```
//!
//! `a JOIN b JOIN c ON x ON y` nests to the right: a join without its ON yet takes the joins behind it as its operand.
//! `t (NOLOCK)` is a hint and `t (1)` a function: the known hints decide.
//!
//! Messages: 336 (WITH that begins a statement, behind a table).

use crate::ast::{
    Alias, DmlSource, ForSystemTime, JoinHint, JoinKind, NamedTable, ObjectName, OpenRowset, OpenRowsetSource, Pivot, RowsetColumn,
    TableRef, TableRefKind, TableSample, Unpivot,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

/// What a join step is.
enum Step {
    Join(JoinKind, Option<JoinHint>),
    CrossJoin,
    Apply { outer: bool },
    Pivot,
    Unpivot,
}

impl Parser<'_> {
    /// `FROM source, ...`, or nothing.
    pub(crate) fn from_clause(&mut self) -> Parsed<Vec<TableRef>> {
        if self.eat_keyword(Keyword::From) { self.comma_list(Self::table_source) } else { Ok(Vec::new()) }
    }

    /// A table with everything joined to it.
    pub(crate) fn table_source(&mut self) -> Parsed<TableRef> {
        self.chain(|p| {
            let mut left = p.table_primary()?;
            while let Some(step) = p.join_step() {
                left = p.apply_step(left, step)?;
            }
            Ok(left)
        })
    }

    /// Takes the words that begin a step.
    fn join_step(&mut self) -> Option<Step> {
        let kind = match self.kind() {
            TokenKind::Keyword(Keyword::Join) => {
                self.advance();
                return Some(Step::Join(JoinKind::Inner, None));
            }
            TokenKind::Keyword(Keyword::Inner) => JoinKind::Inner,
            TokenKind::Keyword(Keyword::Left) => JoinKind::Left,
            TokenKind::Keyword(Keyword::Right) => JoinKind::Right,
            TokenKind::Keyword(Keyword::Full) => JoinKind::Full,
            TokenKind::Keyword(Keyword::Cross) if self.keyword_at(1, Keyword::Join) => {
                self.position += 2;
                return Some(Step::CrossJoin);
            }
            TokenKind::Keyword(Keyword::Cross | Keyword::Outer) if self.word_at(1, "APPLY") => {
                let outer = self.at_keyword(Keyword::Outer);
                self.position += 2;
                return Some(Step::Apply { outer });
            }
            TokenKind::Keyword(Keyword::Pivot) => {
                self.advance();
                return Some(Step::Pivot);
            }
            TokenKind::Keyword(Keyword::Unpivot) => {
                self.advance();
                return Some(Step::Unpivot);
            }
            _ => return None,
        };
        let outer = usize::from(kind != JoinKind::Inner && self.keyword_at(1, Keyword::Outer));
        let hint = [("LOOP", JoinHint::Loop), ("HASH", JoinHint::Hash), ("MERGE", JoinHint::Merge), ("REMOTE", JoinHint::Remote)]
            .into_iter()
            .find(|(word, _)| self.word_at(1 + outer, word))
            .map(|(_, hint)| hint);
        let words = 1 + outer + usize::from(hint.is_some());
        if !self.keyword_at(words, Keyword::Join) {
            return None;
        }
        self.position += words + 1;
        Some(Step::Join(kind, hint))
    }

    fn apply_step(&mut self, left: TableRef, step: Step) -> Parsed<TableRef> {
        let start = left.span;
        let left_box = Box::new(left);
        let kind = match step {
            Step::CrossJoin => {
                let right = Box::new(self.table_primary()?);
                TableRefKind::Join { kind: JoinKind::Cross, hint: None, left: left_box, right, on: None }
            }
            Step::Apply { outer } => TableRefKind::Apply { outer, left: left_box, right: Box::new(self.table_primary()?) },
            Step::Join(kind, hint) => {
                let right = Box::new(self.nested(Self::join_operand)?);
                self.expect_keyword(Keyword::On)?;
                let on = Some(Box::new(self.condition()?));
                TableRefKind::Join { kind, hint, left: left_box, right, on }
            }
            Step::Pivot => self.pivot(*left_box)?,
            Step::Unpivot => self.unpivot(*left_box)?,
        };
        self.grow()?;
        let end = self.tokens[self.position - 1].end;
        Ok(TableRef { kind, span: crate::ast::Span { end, ..start } })
    }

    /// The right side of a join up to its ON: a table and the joins that come before that ON.
    fn join_operand(&mut self) -> Parsed<TableRef> {
        self.chain(|p| {
            let mut right = p.table_primary()?;
            while !p.at_keyword(Keyword::On) {
                match p.join_step() {
                    Some(step) => right = p.apply_step(right, step)?,
                    None => break,
                }
            }
            Ok(right)
        })
    }

    fn table_primary(&mut self) -> Parsed<TableRef> {
        let mark = self.position;
        let kind = match self.kind() {
            TokenKind::LeftParen => return self.table_in_parens(),
            TokenKind::Variable => self.table_variable()?,
            TokenKind::LeftBrace if self.word_at(1, "OJ") => {
                self.position += 2;
                let inner = self.nested(Self::table_source)?;
                self.expect(TokenKind::RightBrace)?;
                return Ok(inner);
            }
            TokenKind::Keyword(Keyword::Openrowset) => self.open_rowset()?,
            TokenKind::Keyword(Keyword::Openquery | Keyword::Openxml) => {
                let token = self.advance();
                let name = ObjectName::simple(self.ident_of(token));
                self.table_function(name)?
            }
            TokenKind::Keyword(
                Keyword::Containstable
                | Keyword::Freetexttable
                | Keyword::Opendatasource
                | Keyword::Semantickeyphrasetable
                | Keyword::Semanticsimilaritytable
                | Keyword::Semanticsimilaritydetailstable,
            ) => self.special_table()?,
            TokenKind::Word if self.at_word("CHANGETABLE") && self.kind_at(1) == TokenKind::LeftParen => self.special_table()?,
            TokenKind::DoubleColon => {
                self.advance();
                let name = self.object_name()?;
                self.table_function(name)?
            }
            _ => self.named_source()?,
        };
        Ok(TableRef { kind, span: self.span_since(mark) })
    }

    fn table_in_parens(&mut self) -> Parsed<TableRef> {
        let mark = self.position;
        let kind = if self.at_query_paren() {
            let query = self.subquery()?;
            TableRefKind::Derived { query, alias: self.table_alias()? }
        } else if self.keyword_at(1, Keyword::Values) {
            self.position += 2;
            let rows = self.nested(|p| p.comma_list(|p| p.paren_list(Self::expression_or_default)))?;
            self.expect(TokenKind::RightParen)?;
            TableRefKind::Values { rows, alias: self.table_alias()? }
        } else if let TokenKind::Keyword(Keyword::Insert | Keyword::Update | Keyword::Delete | Keyword::Merge) = self.kind_at(1) {
            self.advance();
            let statement = Box::new(self.nested(Self::dml_source)?);
            self.expect(TokenKind::RightParen)?;
            TableRefKind::Dml { statement, alias: self.table_alias()? }
        } else {
            self.advance();
            let inner = self.nested(Self::table_source)?;
            self.expect(TokenKind::RightParen)?;
            return Ok(TableRef { span: self.span_since(mark), ..inner });
        };
        Ok(TableRef { kind, span: self.span_since(mark) })
    }

    fn dml_source(&mut self) -> Parsed<DmlSource> {
        Ok(match self.kind() {
            TokenKind::Keyword(Keyword::Insert) => DmlSource::Insert(Box::new(self.insert(None)?)),
            TokenKind::Keyword(Keyword::Update) => DmlSource::Update(Box::new(self.update(None)?)),
            TokenKind::Keyword(Keyword::Delete) => DmlSource::Delete(Box::new(self.delete(None)?)),
            _ => DmlSource::Merge(Box::new(self.merge(None)?)),
        })
    }

    /// `@t [AS alias] [WITH (...)]` or `@x.nodes(...) AS t(c)`
    fn table_variable(&mut self) -> Parsed<TableRefKind> {
        if self.kind_at(1) == TokenKind::Dot {
            let call = Box::new(self.expression()?);
            return Ok(TableRefKind::Method { call, alias: self.table_alias()? });
        }
        let variable = self.variable()?;
        let alias = self.simple_alias()?;
        Ok(TableRefKind::Variable { variable, alias, hints: self.table_hints()? })
    }

    /// What begins with a name: a table or view, a function, a method of a column.
    fn named_source(&mut self) -> Parsed<TableRefKind> {
        let mark = self.position;
        let parts = self.name_parts()?;
        if self.at(TokenKind::LeftParen) && !self.at_hint_list() {
            if parts.len() > 1 && matches!(parts.last(), Some(Some(last)) if last.text == "nodes") {
                self.position = mark;
                let call = Box::new(self.expression()?);
                return Ok(TableRefKind::Method { call, alias: self.table_alias()? });
            }
            let name = self.object_of(parts, mark)?;
            return self.table_function(name);
        }
        if self.at(TokenKind::Dot) {
            self.advance();
            return self.unexpected();
        }
        let name = self.object_of(parts, mark)?;
        self.named_table(name).map(|table| TableRefKind::Table(Box::new(table)))
    }

    fn named_table(&mut self, name: ObjectName) -> Parsed<NamedTable> {
        let mut table = NamedTable { name, alias: None, system_time: None, sample: None, hints: Vec::new() };
        if self.at_keyword(Keyword::For) && self.word_at(1, "SYSTEM_TIME") {
            self.position += 2;
            table.system_time = Some(self.system_time()?);
        }
        // The sample and the hints may stand before the alias as well as behind it.
        table.sample = self.table_sample()?;
        if self.at_hint_list() {
            table.hints = self.table_hints()?;
        }
        table.alias = self.simple_alias()?;
        if table.sample.is_none() {
            table.sample = self.table_sample()?;
        }
        let more = self.table_hints()?;
        table.hints.extend(more);
        Ok(table)
    }

    fn system_time(&mut self) -> Parsed<ForSystemTime> {
        if self.eat_keyword(Keyword::All) {
            return Ok(ForSystemTime::All);
        }
        if self.eat_words(&["AS", "OF"]) {
            return self.expression().map(ForSystemTime::AsOf);
        }
        if self.eat_words(&["CONTAINED", "IN"]) {
            self.expect(TokenKind::LeftParen)?;
            let start = self.expression()?;
            self.expect(TokenKind::Comma)?;
            let end = self.expression()?;
            self.expect(TokenKind::RightParen)?;
            return Ok(ForSystemTime::ContainedIn(start, end));
        }
        if self.eat_keyword(Keyword::Between) {
            let start = self.expression()?;
            self.expect_keyword(Keyword::And)?;
            return Ok(ForSystemTime::Between(start, self.expression()?));
        }
        self.expect_keyword(Keyword::From)?;
        let start = self.expression()?;
        self.expect_keyword(Keyword::To)?;
        Ok(ForSystemTime::FromTo(start, self.expression()?))
    }

    fn table_sample(&mut self) -> Parsed<Option<TableSample>> {
        if !self.eat_keyword(Keyword::Tablesample) {
            return Ok(None);
        }
        let _ = self.eat_word("SYSTEM");
        self.expect(TokenKind::LeftParen)?;
        let count = self.expression()?;
        let rows = self.eat_word("ROWS");
        let _ = !rows && self.eat_keyword(Keyword::Percent);
        self.expect(TokenKind::RightParen)?;
        let mut repeatable = None;
        if self.eat_word("REPEATABLE") {
            self.expect(TokenKind::LeftParen)?;
            repeatable = Some(self.expression()?);
            self.expect(TokenKind::RightParen)?;
        }
        Ok(Some(TableSample { count, rows, repeatable }))
    }

    /// `( arguments ) [WITH ( columns )] [alias [(columns)]]`, the name being taken.
    fn table_function(&mut self, name: ObjectName) -> Parsed<TableRefKind> {
        let call = self.function_call(name)?;
        let schema = self.rowset_schema()?;
        Ok(TableRefKind::Function { name: call.name, arguments: call.arguments, schema, alias: self.table_alias()? })
    }

    /// `WITH ( name type ['path'] [AS JSON], ... )` of OPENJSON and OPENXML.
    fn rowset_schema(&mut self) -> Parsed<Vec<RowsetColumn>> {
        if !self.at_keyword(Keyword::With) || self.kind_at(1) != TokenKind::LeftParen || !self.ident_at(2) {
            return Ok(Vec::new());
        }
        self.advance();
        self.paren_list(|p| {
            let name = p.ident()?;
            let data_type = p.data_type()?;
            let collation = if p.eat_keyword(Keyword::Collate) { Some(p.ident()?) } else { None };
            let path = if p.at_string() || p.at(TokenKind::Integer) { Some(p.literal_or_variable()?) } else { None };
            let as_json = p.eat_words(&["AS", "JSON"]);
            Ok(RowsetColumn { name, data_type, collation, path, as_json })
        })
    }

    /// A rowset function whose arguments have a syntax of their own: kept as written.
    fn special_table(&mut self) -> Parsed<TableRefKind> {
        let name = self.any_word()?;
        let mark = self.position + 1;
        self.expect(TokenKind::LeftParen)?;
        self.skip_to_close()?;
        let written = crate::ast::Span { end: self.tokens[self.position - 1].start, ..self.span_since(mark) };
        let mut arguments = written.slice(self.text).to_owned();
        // OPENDATASOURCE ( ... ).database.schema.table
        while self.at(TokenKind::Dot) {
            self.advance();
            arguments.push('.');
            if self.at_ident() {
                arguments.push_str(self.text_at(0));
                self.advance();
            }
        }
        Ok(TableRefKind::Special { name, arguments, alias: self.table_alias()? })
    }

    /// Takes tokens up to the parenthesis that closes the one taken last, that one included.
    pub(crate) fn skip_to_close(&mut self) -> Parsed<()> {
        let mut depth = 1_u32;
        while depth > 0 {
            match self.kind() {
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => depth -= 1,
                TokenKind::End => return self.unexpected(),
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }

    /// `OPENROWSET ( BULK 'file', options | expressions )`
    fn open_rowset(&mut self) -> Parsed<TableRefKind> {
        self.advance();
        self.expect(TokenKind::LeftParen)?;
        let source = if self.eat_keyword(Keyword::Bulk) {
            let files = if self.at(TokenKind::LeftParen) { self.paren_list(Self::string)? } else { vec![self.string()?] };
            let options =
                if self.eat(TokenKind::Comma) { self.comma_list(|p| p.option_item(super::option::Style::Enclosed))? } else { Vec::new() };
            OpenRowsetSource::Bulk { files, options }
        } else {
            let mut parts = vec![self.expression()?];
            while self.eat(TokenKind::Comma) || self.eat(TokenKind::Semicolon) {
                parts.push(self.expression()?);
            }
            OpenRowsetSource::Provider(parts)
        };
        self.expect(TokenKind::RightParen)?;
        let columns = self.rowset_schema()?;
        let alias = self.table_alias()?;
        Ok(TableRefKind::OpenRowset(Box::new(OpenRowset { source, columns, alias })))
    }

    /// `( aggregate ( arguments ) FOR column IN ( values ) ) alias`
    fn pivot(&mut self, input: TableRef) -> Parsed<TableRefKind> {
        self.expect(TokenKind::LeftParen)?;
        let aggregate = self.object_name()?;
        let call = self.function_call(aggregate)?;
        self.expect_keyword(Keyword::For)?;
        let column = self.column_name()?;
        self.expect_keyword(Keyword::In)?;
        let values = self.ident_list()?;
        self.expect(TokenKind::RightParen)?;
        let alias = self.table_alias()?;
        Ok(TableRefKind::Pivot(Box::new(Pivot { input, aggregate: call.name, arguments: call.arguments, column, values, alias })))
    }

    /// `( value FOR column IN ( columns ) ) alias`
    fn unpivot(&mut self, input: TableRef) -> Parsed<TableRefKind> {
        self.expect(TokenKind::LeftParen)?;
        let value = self.ident()?;
        self.expect_keyword(Keyword::For)?;
        let column = self.ident()?;
        self.expect_keyword(Keyword::In)?;
        let columns = self.paren_list(Self::column_name)?;
        self.expect(TokenKind::RightParen)?;
        Ok(TableRefKind::Unpivot(Box::new(Unpivot { input, value, column, columns, alias: self.table_alias()? })))
    }

    /// `[AS] alias`
    pub(crate) fn simple_alias(&mut self) -> Parsed<Option<crate::ast::Ident>> {
        if self.eat_keyword(Keyword::As) {
            return self.ident().map(Some);
        }
        let is_alias = self.at_ident() && !self.at_label() && !self.at_window_clause() && !self.at_word("USING");
        if is_alias { self.ident().map(Some) } else { Ok(None) }
    }

    /// `[AS] alias [(columns)]`
    pub(crate) fn table_alias(&mut self) -> Parsed<Option<Alias>> {
        let Some(name) = self.simple_alias()? else { return Ok(None) };
        let columns = if self.at(TokenKind::LeftParen) && self.ident_at(1) { self.ident_list()? } else { Vec::new() };
        Ok(Some(Alias { name, columns }))
    }
}
