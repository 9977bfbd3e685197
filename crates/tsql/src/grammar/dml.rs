//! Statements that change rows.
//!
//! ```text
//! INSERT [TOP (n)] [INTO] target [hints] [(columns)] [OUTPUT ...] {VALUES rows | DEFAULT VALUES | query | EXEC ...}
//! UPDATE [TOP (n)] target [hints] SET assignment, ... [OUTPUT ...] [FROM ...] [WHERE ...] [OPTION (...)]
//! DELETE [TOP (n)] [FROM] target [hints] [OUTPUT ...] [FROM ...] [WHERE ...] [OPTION (...)]
//! MERGE [TOP (n)] [INTO] target [hints] [AS a] USING source ON condition WHEN ... [OUTPUT ...] [OPTION (...)] ;
//! BULK INSERT table FROM 'file' [WITH (options)]        INSERT BULK table (columns) [WITH (options)]
//! TRUNCATE TABLE name [WITH (PARTITIONS (...))]
//! ```
//!
//! Message 10713 (MERGE without its semicolon) is the statement list's.

use crate::ast::{
    Assignment, BulkInsert, Delete, DmlTarget, DmlTargetKind, Expr, ExprKind, Ident, Insert, InsertBulk, InsertBulkColumn, InsertSource,
    Merge, MergeAction, MergeClause, MergeWhen, OptionItem, Output, OutputInto, SelectItem, StmtKind, TruncateTable, Update, With,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    fn target_kind(&mut self) -> Parsed<DmlTargetKind> {
        match self.kind() {
            TokenKind::Variable => self.variable().map(DmlTargetKind::Variable),
            TokenKind::Keyword(K::Openquery | K::Openrowset | K::Opendatasource) => {
                self.table_source().map(|source| DmlTargetKind::Rowset(Box::new(source)))
            }
            _ => self.object_name().map(DmlTargetKind::Name),
        }
    }

    fn target(&mut self) -> Parsed<DmlTarget> {
        let mark = self.position;
        let kind = self.target_kind()?;
        let hints = self.table_hints()?;
        Ok(DmlTarget { kind, hints, span: self.span_since(mark) })
    }

    pub(crate) fn insert(&mut self, with: Option<With>) -> Parsed<Insert> {
        self.advance();
        let top = self.top(false)?;
        let _ = self.eat_keyword(K::Into);
        let target = self.target()?;
        let columns = if self.at(TokenKind::LeftParen) && !self.at_query_paren() {
            self.paren_list(|p| p.column_name().map(|name| name.column))?
        } else {
            Vec::new()
        };
        let output = self.output_clauses()?;
        let source = self.insert_source()?;
        let hints = self.option_clause()?;
        Ok(Insert { with, top, target, columns, output, source, hints })
    }

    fn insert_source(&mut self) -> Parsed<InsertSource> {
        if self.at_keyword(K::Default) {
            self.advance();
            self.expect_keyword(K::Values)?;
            return Ok(InsertSource::DefaultValues);
        }
        if self.eat_keyword(K::Values) {
            return self.nested(|p| p.comma_list(|p| p.paren_list(Self::expression_or_default))).map(InsertSource::Values);
        }
        if self.at_keyword(K::Exec) || self.at_keyword(K::Execute) {
            self.advance();
            if self.at(TokenKind::LeftParen) {
                return self.execute_string().map(|execute| InsertSource::ExecuteString(Box::new(execute)));
            }
            return self.execute_module().map(|execute| InsertSource::Execute(Box::new(execute)));
        }
        self.query(false).map(|query| InsertSource::Query(Box::new(query)))
    }

    /// Up to two OUTPUT clauses: one into a table and one to the client.
    fn output_clauses(&mut self) -> Parsed<Vec<Output>> {
        let mut clauses = Vec::new();
        while self.at_word("OUTPUT") && clauses.len() < 2 {
            let mark = self.position;
            self.advance();
            let items = self.comma_list(Self::output_item)?;
            let mut into = None;
            if self.eat_keyword(K::Into) {
                let target = self.target_kind()?;
                let columns = if self.at(TokenKind::LeftParen) && self.ident_at(1) { self.ident_list()? } else { Vec::new() };
                into = Some(OutputInto { target, columns });
            }
            clauses.push(Output { items, into, span: self.span_since(mark) });
        }
        Ok(clauses)
    }

    fn output_item(&mut self) -> Parsed<SelectItem> {
        self.select_item()
    }

    pub(crate) fn update(&mut self, with: Option<With>) -> Parsed<Update> {
        self.advance();
        let top = self.top(false)?;
        let target = self.target()?;
        self.expect_keyword(K::Set)?;
        let assignments = self.comma_list(Self::assignment)?;
        let output = self.output_clauses()?;
        let from = self.from_clause()?;
        let where_ = self.dml_where()?;
        let hints = self.option_clause()?;
        Ok(Update { with, top, target, assignments, output, from, where_, hints })
    }

    pub(crate) fn delete(&mut self, with: Option<With>) -> Parsed<Delete> {
        self.advance();
        let top = self.top(false)?;
        let _ = self.eat_keyword(K::From);
        let target = self.target()?;
        let output = self.output_clauses()?;
        let from = self.from_clause()?;
        let where_ = self.dml_where()?;
        let hints = self.option_clause()?;
        Ok(Delete { with, top, target, output, from, where_, hints })
    }

    fn dml_where(&mut self) -> Parsed<Option<Expr>> {
        if !self.eat_keyword(K::Where) {
            return Ok(None);
        }
        let mark = self.position;
        if self.eat_keyword(K::Current) {
            self.expect_keyword(K::Of)?;
            let cursor = self.cursor_name()?;
            return Ok(Some(self.expr_since(mark, ExprKind::CurrentOf(Box::new(cursor)))));
        }
        self.condition().map(Some)
    }

    fn assignment(&mut self) -> Parsed<Assignment> {
        if self.at(TokenKind::Variable) {
            return self.variable_assignment();
        }
        let mark = self.position;
        let mut parts = self.name_parts()?;
        if self.at(TokenKind::LeftParen) {
            let Some(method) = parts.pop().flatten() else { return self.unexpected() };
            if parts.is_empty() {
                return self.unexpected();
            }
            let column = self.column_of(parts, mark)?;
            return Ok(Assignment::Method { column, method, arguments: self.plain_arguments()? });
        }
        let column = self.column_of(parts, mark)?;
        let Some(op) = super::select::assign_op(self.kind()) else { return self.unexpected() };
        self.advance();
        Ok(Assignment::Column { column, op, value: self.expression_or_default()? })
    }

    /// `@v = e`, `@v = column = e`
    fn variable_assignment(&mut self) -> Parsed<Assignment> {
        let variable = self.variable()?;
        let Some(op) = super::select::assign_op(self.kind()) else { return self.unexpected() };
        self.advance();
        if let Some(column_op) = self.column_assignment_ahead() {
            let column = Some(self.column_name()?);
            self.advance();
            return Ok(Assignment::Variable { variable, column, op: column_op, value: self.expression()? });
        }
        Ok(Assignment::Variable { variable, column: None, op, value: self.expression()? })
    }

    /// The operator of `name [. name]* op` at the position.
    fn column_assignment_ahead(&self) -> Option<crate::ast::AssignOp> {
        let mut ahead = 0;
        while self.ident_at(ahead) && self.kind_at(ahead + 1) == TokenKind::Dot && ahead < 8 {
            ahead += 2;
        }
        if self.ident_at(ahead) { super::select::assign_op(self.kind_at(ahead + 1)) } else { None }
    }

    pub(crate) fn merge(&mut self, with: Option<With>) -> Parsed<Merge> {
        self.advance();
        let top = self.top(false)?;
        let _ = self.eat_keyword(K::Into);
        let mut target = self.target()?;
        let alias = self.simple_alias()?;
        if target.hints.is_empty() {
            target.hints = self.table_hints()?;
        }
        self.expect_word("USING")?;
        let source = self.table_source()?;
        self.expect_keyword(K::On)?;
        let on = self.condition()?;
        let mut clauses = vec![self.merge_clause()?];
        while self.at_keyword(K::When) {
            clauses.push(self.merge_clause()?);
        }
        let output = self.output_clauses()?;
        let hints = self.option_clause()?;
        Ok(Merge { with, top, target, alias, source, on, clauses, output, hints })
    }

    fn merge_clause(&mut self) -> Parsed<MergeClause> {
        let mark = self.position;
        self.expect_keyword(K::When)?;
        let not = self.eat_keyword(K::Not);
        self.expect_word("MATCHED")?;
        let when = if !not {
            MergeWhen::Matched
        } else if self.eat_words(&["BY", "SOURCE"]) {
            MergeWhen::NotMatchedBySource
        } else {
            let _ = self.eat_words(&["BY", "TARGET"]);
            MergeWhen::NotMatchedByTarget
        };
        let condition = if self.eat_keyword(K::And) { Some(self.condition()?) } else { None };
        self.expect_keyword(K::Then)?;
        let action = self.merge_action()?;
        Ok(MergeClause { when, condition, action, span: self.span_since(mark) })
    }

    fn merge_action(&mut self) -> Parsed<MergeAction> {
        if self.eat_keyword(K::Delete) {
            return Ok(MergeAction::Delete);
        }
        if self.eat_keyword(K::Update) {
            self.expect_keyword(K::Set)?;
            return self.comma_list(Self::assignment).map(MergeAction::Update);
        }
        self.expect_keyword(K::Insert)?;
        let columns = if self.at(TokenKind::LeftParen) { self.paren_list(Self::merge_column)? } else { Vec::new() };
        if self.eat_keyword(K::Default) {
            self.expect_keyword(K::Values)?;
            return Ok(MergeAction::Insert { columns, values: Vec::new() });
        }
        self.expect_keyword(K::Values)?;
        let values = self.paren_list(Self::expression_or_default)?;
        Ok(MergeAction::Insert { columns, values })
    }

    fn merge_column(&mut self) -> Parsed<Ident> {
        let name = self.column_name()?;
        if name.table.is_some() { self.error(10739, Vec::new()) } else { Ok(name.column) }
    }

    pub(crate) fn truncate_table(&mut self) -> Parsed<StmtKind> {
        self.advance();
        self.expect_keyword(K::Table)?;
        let table = self.object_name()?;
        let mut partitions = Vec::new();
        if self.at_keyword(K::With) && self.kind_at(1) == TokenKind::LeftParen {
            self.position += 2;
            self.expect_word("PARTITIONS")?;
            partitions = self.partition_ranges()?;
            self.expect(TokenKind::RightParen)?;
        }
        Ok(StmtKind::TruncateTable(Box::new(TruncateTable { table, partitions })))
    }

    /// `( n [TO m], ... )`
    pub(crate) fn partition_ranges(&mut self) -> Parsed<Vec<(Expr, Option<Expr>)>> {
        self.paren_list(|p| {
            let first = p.expression()?;
            let last = if p.eat_keyword(K::To) { Some(p.expression()?) } else { None };
            Ok((first, last))
        })
    }

    pub(crate) fn bulk_insert(&mut self) -> Parsed<StmtKind> {
        self.advance();
        self.expect_keyword(K::Insert)?;
        let table = self.object_name()?;
        self.expect_keyword(K::From)?;
        let file = self.string()?;
        let (options, order) = self.bulk_options()?;
        Ok(StmtKind::BulkInsert(Box::new(BulkInsert { table, file, options, order })))
    }

    /// `WITH ( option, ... )`, one of which may be ORDER.
    fn bulk_options(&mut self) -> Parsed<(Vec<OptionItem>, Vec<(Ident, bool)>)> {
        let mut options = Vec::new();
        let mut order = Vec::new();
        if self.eat_keyword(K::With) {
            self.paren_list(|p| {
                if p.eat_keyword(K::Order) {
                    order = p.paren_list(Self::index_key)?.into_iter().map(|key| (key.column, key.descending)).collect();
                } else {
                    options.push(p.option_item(super::option::Style::Enclosed)?);
                }
                Ok(())
            })?;
        }
        Ok((options, order))
    }

    pub(crate) fn insert_bulk(&mut self) -> Parsed<StmtKind> {
        self.position += 2;
        let table = self.object_name()?;
        let columns = if self.at(TokenKind::LeftParen) { self.paren_list(Self::insert_bulk_column)? } else { Vec::new() };
        let (options, order) = self.bulk_options()?;
        Ok(StmtKind::InsertBulk(Box::new(InsertBulk { table, columns, options, order })))
    }

    fn insert_bulk_column(&mut self) -> Parsed<InsertBulkColumn> {
        let name = self.ident()?;
        let data_type = self.data_type()?;
        let collation = if self.eat_keyword(K::Collate) { Some(self.ident()?) } else { None };
        Ok(InsertBulkColumn { name, data_type, collation })
    }
}
