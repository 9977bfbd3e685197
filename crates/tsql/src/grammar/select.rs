//! Queries.
//!
//! ```text
//! query  ::= [WITH ctes] body [ORDER BY items [OFFSET e ROWS [FETCH NEXT e ROWS ONLY]]] [FOR ...] [OPTION (...)]
//! body   ::= term ({UNION [ALL] | EXCEPT} term)*           term ::= operand (INTERSECT operand)*
//! operand::= SELECT ... | ( query )
//! item   ::= * | name.* | alias = e | @v op e | e [[AS] alias]
//! ```
//!
//! `alias = e` and a comparison look alike; in a select list it is always the alias, as in SQL Server. A word before a
//! colon is no alias but the label of the next statement.

use crate::ast::{
    AssignOp, Cte, ForClause, GroupBy, GroupItem, GroupWith, Ident, NamedWindow, Offset, Query, QueryBody, Select, SelectInto, SelectItem,
    SetOp, Top, With,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// A query; `statement` is one that may carry OPTION.
    pub(crate) fn query(&mut self, statement: bool) -> Parsed<Query> {
        let with = if self.at_keyword(Keyword::With) { Some(self.with_clause()?) } else { None };
        self.query_behind(with, statement)
    }

    /// The query behind a WITH clause.
    pub(crate) fn query_behind(&mut self, with: Option<With>, statement: bool) -> Parsed<Query> {
        let mark = self.position;
        let start = with.as_ref().map(|w| w.span);
        let body = self.query_body()?;
        let mut order_by = Vec::new();
        let mut offset = None;
        if self.at_keyword(Keyword::Order) {
            self.advance();
            order_by = self.order_items()?;
            offset = self.offset()?;
        }
        let for_clause = self.for_clause()?;
        let hints = if statement { self.option_clause()? } else { Vec::new() };
        let own = self.span_since(mark);
        let span = start.map_or(own, |first| first.to(own));
        Ok(Query { with, body, order_by, offset, for_clause, hints, span })
    }

    /// `WITH [XMLNAMESPACES (...)] [,] name [(columns)] AS ( query ), ...`
    pub(crate) fn with_clause(&mut self) -> Parsed<With> {
        let mark = self.position;
        self.expect_keyword(Keyword::With)?;
        let mut with = With { ctes: Vec::new(), xml_namespaces: Vec::new(), span: self.span_since(mark) };
        let mut more = true;
        if self.eat_word("XMLNAMESPACES") {
            with.xml_namespaces = self.paren_list(|p| {
                let default = p.eat_keyword(Keyword::Default);
                let uri = p.string()?;
                let prefix = if !default && p.eat_keyword(Keyword::As) { Some(p.ident()?) } else { None };
                Ok((uri, prefix))
            })?;
            more = self.eat(TokenKind::Comma);
        }
        if more {
            with.ctes = self.comma_list(Self::cte)?;
        }
        with.span = self.span_since(mark);
        Ok(with)
    }

    fn cte(&mut self) -> Parsed<Cte> {
        let mark = self.position;
        let name = self.ident()?;
        let columns = if self.at(TokenKind::LeftParen) { self.ident_list()? } else { Vec::new() };
        self.expect_keyword(Keyword::As)?;
        let query = self.subquery()?;
        Ok(Cte { name, columns, query, span: self.span_since(mark) })
    }

    /// Set operations.
    pub(crate) fn query_body(&mut self) -> Parsed<QueryBody> {
        self.chain(|p| {
            let mark = p.position;
            let mut body = p.intersection()?;
            loop {
                let op = match p.kind() {
                    TokenKind::Keyword(Keyword::Union) if p.keyword_at(1, Keyword::All) => SetOp::UnionAll,
                    TokenKind::Keyword(Keyword::Union) => SetOp::Union,
                    TokenKind::Keyword(Keyword::Except) => SetOp::Except,
                    _ => return Ok(body),
                };
                p.position += if op == SetOp::UnionAll { 2 } else { 1 };
                let right = p.intersection()?;
                body = p.combine(op, body, right, mark)?;
            }
        })
    }

    fn intersection(&mut self) -> Parsed<QueryBody> {
        let mark = self.position;
        let mut body = self.query_operand()?;
        while self.eat_keyword(Keyword::Intersect) {
            let right = self.query_operand()?;
            body = self.combine(SetOp::Intersect, body, right, mark)?;
        }
        Ok(body)
    }

    /// Puts `right` behind `left`: into the same node if that is a chain of the same operation.
    fn combine(&mut self, op: SetOp, left: QueryBody, right: QueryBody, mark: usize) -> Parsed<QueryBody> {
        let span = self.span_since(mark);
        let operands = match left {
            QueryBody::Set { op: same, mut operands, .. } if same == op => {
                operands.push(right);
                operands
            }
            left => {
                self.grow()?;
                vec![left, right]
            }
        };
        Ok(QueryBody::Set { op, operands, span })
    }

    fn query_operand(&mut self) -> Parsed<QueryBody> {
        if self.at(TokenKind::LeftParen) {
            return self.subquery().map(QueryBody::Paren);
        }
        self.nested(Self::select).map(|select| QueryBody::Select(Box::new(select)))
    }

    fn select(&mut self) -> Parsed<Select> {
        let mark = self.position;
        self.expect_keyword(Keyword::Select)?;
        let distinct = self.eat_keyword(Keyword::Distinct);
        let _ = !distinct && self.eat_keyword(Keyword::All);
        let top = self.top(true)?;
        let items = self.comma_list(Self::select_item)?;
        let into = if self.eat_keyword(Keyword::Into) {
            let table = self.object_name()?;
            let filegroup = if self.eat_keyword(Keyword::On) { Some(self.ident()?) } else { None };
            Some(SelectInto { table, filegroup })
        } else {
            None
        };
        let from = self.from_clause()?;
        let where_ = if self.eat_keyword(Keyword::Where) { Some(self.condition()?) } else { None };
        let group_by = self.group_by()?;
        let having = if self.eat_keyword(Keyword::Having) { Some(self.condition()?) } else { None };
        let windows = self.window_clause()?;
        Ok(Select { distinct, top, items, into, from, where_, group_by, having, windows, span: self.span_since(mark) })
    }

    /// `TOP n | (e) [PERCENT] [WITH TIES]`; `bare` allows the number without parentheses.
    pub(crate) fn top(&mut self, bare: bool) -> Parsed<Option<Top>> {
        if !self.eat_keyword(Keyword::Top) {
            return Ok(None);
        }
        let parenthesised = self.at(TokenKind::LeftParen);
        let count = if parenthesised {
            let mark = self.position;
            if self.at_query_paren() {
                let query = self.subquery()?;
                self.expr_since(mark, crate::ast::ExprKind::Subquery(query))
            } else {
                self.advance();
                let count = self.nested(Self::expression)?;
                self.expect(TokenKind::RightParen)?;
                count
            }
        } else {
            if !bare || !matches!(self.kind(), TokenKind::Integer | TokenKind::Decimal | TokenKind::Float) {
                return self.unexpected();
            }
            self.literal_or_variable()?
        };
        let percent = self.eat_keyword(Keyword::Percent);
        let with_ties = self.at_keyword(Keyword::With) && self.word_at(1, "TIES");
        if with_ties {
            self.position += 2;
        }
        Ok(Some(Top { count, percent, with_ties, parenthesised }))
    }

    /// One member of a select list or an OUTPUT clause.
    pub(crate) fn select_item(&mut self) -> Parsed<SelectItem> {
        let mark = self.position;
        if self.at(TokenKind::Star) {
            self.advance();
            return Ok(SelectItem::Wildcard { table: None, span: self.span_since(mark) });
        }
        if self.at_qualified_star() {
            let parts = self.name_parts()?;
            let table = Some(self.object_of(parts, mark)?);
            self.position += 2;
            return Ok(SelectItem::Wildcard { table, span: self.span_since(mark) });
        }
        if self.at(TokenKind::Variable)
            && let Some(op) = assign_op(self.kind_at(1))
        {
            let variable = self.variable()?;
            self.advance();
            return Ok(SelectItem::Assign { variable, op, value: self.expression()? });
        }
        if (self.at_ident() || self.at_string()) && self.kind_at(1) == TokenKind::Equal {
            let token = self.advance();
            let alias = Some(self.ident_of(token));
            self.advance();
            return Ok(SelectItem::Expr { expr: self.expression()?, alias });
        }
        let expr = self.expression()?;
        Ok(SelectItem::Expr { expr, alias: self.column_alias()? })
    }

    /// True at `a.b.*`.
    fn at_qualified_star(&self) -> bool {
        let mut ahead = 0;
        while (self.ident_at(ahead) || self.kind_at(ahead) == TokenKind::Dot) && ahead < 8 {
            if self.ident_at(ahead) && self.kind_at(ahead + 1) == TokenKind::Dot && self.kind_at(ahead + 2) == TokenKind::Star {
                return true;
            }
            ahead += 1;
        }
        false
    }

    /// `[AS] alias`, where the alias may be a string.
    fn column_alias(&mut self) -> Parsed<Option<Ident>> {
        let explicit = self.eat_keyword(Keyword::As);
        if (self.at_ident() && (explicit || !self.at_label())) || self.at_string() {
            let token = self.advance();
            return Ok(Some(self.ident_of(token)));
        }
        if explicit { self.unexpected() } else { Ok(None) }
    }

    /// True at `name:`.
    pub(crate) fn at_label(&self) -> bool {
        self.at(TokenKind::Word) && self.kind_at(1) == TokenKind::Colon
    }

    fn group_by(&mut self) -> Parsed<Option<GroupBy>> {
        if !self.eat_keyword(Keyword::Group) {
            return Ok(None);
        }
        self.expect_keyword(Keyword::By)?;
        let all = self.eat_keyword(Keyword::All);
        let items = self.comma_list(|p| p.group_item(false))?;
        let with = if self.at_keyword(Keyword::With) && self.word_at(1, "ROLLUP") {
            Some(GroupWith::Rollup)
        } else if self.at_keyword(Keyword::With) && self.word_at(1, "CUBE") {
            Some(GroupWith::Cube)
        } else {
            None
        };
        if with.is_some() {
            self.position += 2;
        }
        Ok(Some(GroupBy { all, items, with }))
    }

    fn group_item(&mut self, in_sets: bool) -> Parsed<GroupItem> {
        let call = self.kind_at(1) == TokenKind::LeftParen;
        if call && self.eat_word("ROLLUP") {
            return self.nested(|p| p.paren_list(Self::group_member)).map(GroupItem::Rollup);
        }
        if call && self.eat_word("CUBE") {
            return self.nested(|p| p.paren_list(Self::group_member)).map(GroupItem::Cube);
        }
        if self.eat_words(&["GROUPING", "SETS"]) {
            return self.nested(|p| p.paren_list(|p| p.group_item(true))).map(GroupItem::GroupingSets);
        }
        if self.at(TokenKind::LeftParen) && self.kind_at(1) == TokenKind::RightParen {
            self.position += 2;
            return Ok(GroupItem::Composite(Vec::new()));
        }
        if in_sets && self.at(TokenKind::LeftParen) {
            return self.nested(|p| p.paren_list(Self::expression)).map(GroupItem::Composite);
        }
        self.expression().map(GroupItem::Expr)
    }

    /// A member of ROLLUP or CUBE: an expression, or several in parentheses.
    fn group_member(&mut self) -> Parsed<Vec<crate::ast::Expr>> {
        if self.at(TokenKind::LeftParen) {
            let mark = self.position;
            self.advance();
            let list = self.nested(|p| p.comma_list(Self::expression))?;
            self.expect(TokenKind::RightParen)?;
            if matches!(self.kind(), TokenKind::Comma | TokenKind::RightParen) {
                return Ok(list);
            }
            self.position = mark;
        }
        Ok(vec![self.expression()?])
    }

    fn window_clause(&mut self) -> Parsed<Vec<NamedWindow>> {
        if !self.at_window_clause() {
            return Ok(Vec::new());
        }
        self.advance();
        self.comma_list(|p| {
            let name = p.ident()?;
            p.expect_keyword(Keyword::As)?;
            Ok(NamedWindow { name, spec: p.window_spec()? })
        })
    }

    /// True at `WINDOW name AS (`; elsewhere WINDOW is an ordinary name.
    pub(crate) fn at_window_clause(&self) -> bool {
        self.at_word("WINDOW") && self.ident_at(1) && self.keyword_at(2, Keyword::As) && self.kind_at(3) == TokenKind::LeftParen
    }

    fn offset(&mut self) -> Parsed<Option<Offset>> {
        if !self.eat_word("OFFSET") {
            return Ok(None);
        }
        let offset = self.expression()?;
        if !self.eat_word("ROWS") {
            self.expect_word("ROW")?;
        }
        if !self.at_keyword(Keyword::Fetch) || !(self.word_at(1, "NEXT") || self.word_at(1, "FIRST")) || self.fetches_cursor() {
            return Ok(Some(Offset { offset, fetch: None }));
        }
        self.position += 2;
        let fetch = self.expression()?;
        if !self.eat_word("ROWS") {
            self.expect_word("ROW")?;
        }
        self.expect_word("ONLY")?;
        Ok(Some(Offset { offset, fetch: Some(fetch) }))
    }

    /// True at `FETCH NEXT FROM`: the next statement rather than a clause.
    fn fetches_cursor(&self) -> bool {
        self.keyword_at(2, Keyword::From) || self.ident_at(2)
    }

    /// `FOR XML ...`, `FOR JSON ...`, `FOR BROWSE`. FOR UPDATE and READ ONLY belong to the cursor around the query.
    fn for_clause(&mut self) -> Parsed<Option<ForClause>> {
        if !self.at_keyword(Keyword::For) {
            return Ok(None);
        }
        if self.keyword_at(1, Keyword::Browse) {
            self.position += 2;
            return Ok(Some(ForClause::Browse));
        }
        let xml = self.word_at(1, "XML");
        if !xml && !self.word_at(1, "JSON") {
            return Ok(None);
        }
        self.position += 2;
        let mode = self.any_word()?;
        let mut name = None;
        if xml && self.at(TokenKind::LeftParen) {
            self.advance();
            name = Some(self.string()?);
            self.expect(TokenKind::RightParen)?;
        }
        let options = if self.eat(TokenKind::Comma) { self.comma_list(Self::for_option)? } else { Vec::new() };
        Ok(Some(if xml { ForClause::Xml { mode, name, options } } else { ForClause::Json { mode, options } }))
    }
}

/// The assignment operator a token is.
pub(crate) fn assign_op(kind: TokenKind) -> Option<AssignOp> {
    Some(match kind {
        TokenKind::Equal => AssignOp::Set,
        TokenKind::PlusEqual => AssignOp::Add,
        TokenKind::MinusEqual => AssignOp::Subtract,
        TokenKind::StarEqual => AssignOp::Multiply,
        TokenKind::SlashEqual => AssignOp::Divide,
        TokenKind::PercentEqual => AssignOp::Modulo,
        TokenKind::AmpersandEqual => AssignOp::BitAnd,
        TokenKind::PipeEqual => AssignOp::BitOr,
        TokenKind::CaretEqual => AssignOp::BitXor,
        _ => return None,
    })
}
