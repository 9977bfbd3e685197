//! Function calls, windows, and the functions with a syntax of their own.
//!
//! ```text
//! call   ::= name ( [* | [ALL | DISTINCT] argument, ...] ) [WITHIN GROUP (ORDER BY ...)] [{IGNORE | RESPECT} NULLS] [OVER window]
//! window ::= name | ( [name] [PARTITION BY e, ...] [ORDER BY item, ...] [{ROWS | RANGE} frame] )
//! escape ::= { fn call } | { d | t | ts | guid 'text' }
//! ```

use crate::ast::{
    Expr, ExprKind, Frame, FrameBound, FunctionCall, Ident, NullTreatment, ObjectName, OrderItem, TrimSide, Window, WindowSpec,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// The call of `name`, whose parenthesis stands at the position.
    pub(crate) fn function_call(&mut self, name: ObjectName) -> Parsed<FunctionCall> {
        let mut call = FunctionCall {
            name,
            distinct: false,
            star: false,
            arguments: Vec::new(),
            within_group: Vec::new(),
            null_treatment: None,
            over: None,
            odbc: false,
        };
        self.expect(TokenKind::LeftParen)?;
        if self.at(TokenKind::Star) && self.kind_at(1) == TokenKind::RightParen {
            self.advance();
            call.star = true;
        } else if !self.at(TokenKind::RightParen) {
            call.distinct = self.eat_keyword(Keyword::Distinct);
            let _ = !call.distinct && self.eat_keyword(Keyword::All);
            call.arguments = self.nested(|p| p.comma_list(Self::expression_or_default))?;
        }
        self.expect(TokenKind::RightParen)?;
        self.function_suffix(&mut call)?;
        Ok(call)
    }

    fn function_suffix(&mut self, call: &mut FunctionCall) -> Parsed<()> {
        if self.at_words(&["WITHIN", "GROUP"]) {
            self.position += 2;
            self.expect(TokenKind::LeftParen)?;
            self.expect_keyword(Keyword::Order)?;
            call.within_group = self.nested(Self::order_items)?;
            self.expect(TokenKind::RightParen)?;
        }
        if self.eat_words(&["IGNORE", "NULLS"]) {
            call.null_treatment = Some(NullTreatment::IgnoreNulls);
        } else if self.eat_words(&["RESPECT", "NULLS"]) {
            call.null_treatment = Some(NullTreatment::RespectNulls);
        }
        if self.eat_keyword(Keyword::Over) {
            call.over = Some(self.window()?);
        }
        Ok(())
    }

    fn window(&mut self) -> Parsed<Window> {
        if self.at_ident() {
            return self.ident().map(Window::Named);
        }
        self.window_spec().map(|spec| Window::Spec(Box::new(spec)))
    }

    /// `( [name] [PARTITION BY ...] [ORDER BY ...] [frame] )`
    pub(crate) fn window_spec(&mut self) -> Parsed<WindowSpec> {
        self.expect(TokenKind::LeftParen)?;
        let spec = self.nested(|p| {
            let mut spec = WindowSpec::default();
            if p.at_ident() && !p.at_words(&["PARTITION", "BY"]) && !p.at_word("ROWS") && !p.at_word("RANGE") {
                spec.base = Some(p.ident()?);
            }
            if p.eat_words(&["PARTITION", "BY"]) {
                spec.partition_by = p.comma_list(Self::expression)?;
            }
            if p.eat_keyword(Keyword::Order) {
                spec.order_by = p.order_items()?;
            }
            if p.at_word("ROWS") || p.at_word("RANGE") {
                spec.frame = Some(p.frame()?);
            }
            Ok(spec)
        })?;
        self.expect(TokenKind::RightParen)?;
        Ok(spec)
    }

    fn frame(&mut self) -> Parsed<Frame> {
        let rows = self.any_word()? == "ROWS";
        if self.eat_keyword(Keyword::Between) {
            let start = self.frame_bound()?;
            self.expect_keyword(Keyword::And)?;
            return Ok(Frame { rows, start, end: Some(self.frame_bound()?) });
        }
        Ok(Frame { rows, start: self.frame_bound()?, end: None })
    }

    fn frame_bound(&mut self) -> Parsed<FrameBound> {
        if self.eat_words(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        if self.eat_words(&["UNBOUNDED", "PRECEDING"]) {
            return Ok(FrameBound::UnboundedPreceding);
        }
        if self.eat_words(&["UNBOUNDED", "FOLLOWING"]) {
            return Ok(FrameBound::UnboundedFollowing);
        }
        let offset = self.literal_or_variable()?;
        if self.eat_word("PRECEDING") {
            return Ok(FrameBound::Preceding(offset));
        }
        self.expect_word("FOLLOWING")?;
        Ok(FrameBound::Following(offset))
    }

    /// `BY item [ASC | DESC], ...`, the word ORDER being taken.
    pub(crate) fn order_items(&mut self) -> Parsed<Vec<OrderItem>> {
        self.expect_keyword(Keyword::By)?;
        self.comma_list(|p| {
            let expr = p.expression()?;
            let descending = p.eat_keyword(Keyword::Desc);
            let _ = !descending && p.eat_keyword(Keyword::Asc);
            Ok(OrderItem { expr, descending })
        })
    }

    /// `NEXT VALUE FOR sequence [OVER (...)]`
    pub(crate) fn next_value_for(&mut self) -> Parsed<ExprKind> {
        self.position += 3;
        let sequence = Box::new(self.object_name()?);
        let over = if self.eat_keyword(Keyword::Over) { Some(Box::new(self.window_spec()?)) } else { None };
        Ok(ExprKind::NextValueFor { sequence, over })
    }

    /// The functions with a syntax of their own that are no reserved words; `None` for all others.
    pub(crate) fn special_function(&mut self) -> Parsed<Option<ExprKind>> {
        let text = self.text_at(0);
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if is("CAST") || is("TRY_CAST") {
            return self.cast(is("TRY_CAST")).map(Some);
        }
        if is("PARSE") || is("TRY_PARSE") {
            return self.parse_function(is("TRY_PARSE")).map(Some);
        }
        if is("IIF") {
            return self.iif().map(Some);
        }
        if is("TRIM") {
            return self.trim().map(Some);
        }
        if is("JSON_OBJECT") {
            return self.json_object().map(Some);
        }
        if is("JSON_ARRAY") {
            return self.json_array().map(Some);
        }
        Ok(None)
    }

    /// Runs `body` between the parentheses behind the word at the position.
    fn call_of<T>(&mut self, body: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.advance();
        self.expect(TokenKind::LeftParen)?;
        let value = self.nested(body)?;
        self.expect(TokenKind::RightParen)?;
        Ok(value)
    }

    fn cast(&mut self, try_: bool) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let operand = p.boxed_expression()?;
            if !p.at_keyword(Keyword::As) {
                return p.error(1035, vec![if try_ { "TRY_CAST" } else { "CAST" }.to_owned(), "AS".to_owned()]);
            }
            p.expect_keyword(Keyword::As)?;
            Ok(ExprKind::Cast { operand, data_type: Box::new(p.data_type()?), try_ })
        })
    }

    pub(crate) fn convert(&mut self, try_: bool) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let data_type = Box::new(p.data_type()?);
            p.expect(TokenKind::Comma)?;
            let operand = p.boxed_expression()?;
            let style = if p.eat(TokenKind::Comma) { Some(p.boxed_expression()?) } else { None };
            Ok(ExprKind::Convert { data_type, operand, style, try_ })
        })
    }

    fn parse_function(&mut self, try_: bool) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let operand = p.boxed_expression()?;
            p.expect_keyword(Keyword::As)?;
            let data_type = Box::new(p.data_type()?);
            let culture = if p.eat_word("USING") { Some(p.boxed_expression()?) } else { None };
            Ok(ExprKind::Parse { operand, data_type, culture, try_ })
        })
    }

    fn iif(&mut self) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let condition = Box::new(p.condition()?);
            p.expect(TokenKind::Comma)?;
            let then = p.boxed_expression()?;
            p.expect(TokenKind::Comma)?;
            Ok(ExprKind::Iif { condition, then, otherwise: p.boxed_expression()? })
        })
    }

    pub(crate) fn null_if(&mut self) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let first = p.boxed_expression()?;
            p.expect(TokenKind::Comma)?;
            Ok(ExprKind::NullIf(first, p.boxed_expression()?))
        })
    }

    fn trim(&mut self) -> Parsed<ExprKind> {
        let token = self.token_at(0);
        let name = ObjectName::simple(self.ident_of(token));
        self.call_of(|p| {
            let side = match () {
                () if p.eat_word("LEADING") => Some(TrimSide::Leading),
                () if p.eat_word("TRAILING") => Some(TrimSide::Trailing),
                () if p.eat_word("BOTH") => Some(TrimSide::Both),
                () => None,
            };
            let first = p.expression()?;
            if p.eat_keyword(Keyword::From) {
                let characters = Some(Box::new(first));
                return Ok(ExprKind::Trim { side, characters, source: p.boxed_expression()? });
            }
            if side.is_some() {
                return p.unexpected();
            }
            Ok(plain_call(name, vec![first], false))
        })
    }

    fn json_object(&mut self) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let mut members = Vec::new();
            if !p.at(TokenKind::RightParen) && !p.at_json_null_clause() {
                members = p.comma_list(|p| {
                    let key = p.expression()?;
                    p.expect(TokenKind::Colon)?;
                    Ok((key, p.expression()?))
                })?;
            }
            Ok(ExprKind::JsonObject { members, absent_on_null: p.json_null_clause(false) })
        })
    }

    fn json_array(&mut self) -> Parsed<ExprKind> {
        self.call_of(|p| {
            let mut elements = Vec::new();
            if !p.at(TokenKind::RightParen) && !p.at_json_null_clause() {
                elements = p.comma_list(Self::expression)?;
            }
            Ok(ExprKind::JsonArray { elements, absent_on_null: p.json_null_clause(true) })
        })
    }

    fn at_json_null_clause(&self) -> bool {
        self.at_words(&["NULL", "ON", "NULL"]) || self.at_words(&["ABSENT", "ON", "NULL"])
    }

    /// Takes `NULL ON NULL` or `ABSENT ON NULL`; JSON_OBJECT keeps nulls unless told, JSON_ARRAY drops them unless told.
    fn json_null_clause(&mut self, default: bool) -> bool {
        if self.eat_words(&["NULL", "ON", "NULL"]) {
            return false;
        }
        self.eat_words(&["ABSENT", "ON", "NULL"]) || default
    }

    /// An ODBC escape, the brace being at the position.
    pub(crate) fn odbc_escape(&mut self) -> Parsed<ExprKind> {
        self.advance();
        if !self.eat_word("FN") {
            return self.odbc_literal().map(ExprKind::Literal);
        }
        let kind = self.nested(Self::odbc_function)?;
        self.expect(TokenKind::RightBrace)?;
        Ok(kind)
    }

    fn odbc_function(&mut self) -> Parsed<ExprKind> {
        let token = self.token_at(0);
        self.any_word()?;
        let name = ObjectName::simple(self.ident_of(token));
        if name.name.is("EXTRACT") {
            self.expect(TokenKind::LeftParen)?;
            let mark = self.position;
            let part = self.ident()?;
            let span = part.span;
            let part = self.expr_since(mark, ExprKind::Column(crate::ast::ColumnName { table: None, column: part, span }));
            self.expect_keyword(Keyword::From)?;
            let arguments = vec![part, self.expression()?];
            self.expect(TokenKind::RightParen)?;
            return Ok(plain_call(name, arguments, true));
        }
        let mut call = self.function_call(name)?;
        call.odbc = true;
        Ok(ExprKind::Function(Box::new(call)))
    }

    /// A parenthesised query as an operand.
    pub(crate) fn subquery(&mut self) -> Parsed<Box<crate::ast::Query>> {
        self.expect(TokenKind::LeftParen)?;
        let query = self.nested(|p| p.query(false))?;
        self.expect(TokenKind::RightParen)?;
        Ok(Box::new(query))
    }

    /// `name = value, ...` of event sessions and similar: the name and the literal.
    pub(crate) fn settings(&mut self) -> Parsed<Vec<(Ident, Expr)>> {
        self.comma_list(|p| {
            let name = p.ident()?;
            p.expect(TokenKind::Equal)?;
            let parenthesised = p.eat(TokenKind::LeftParen);
            let value = p.literal_or_variable()?;
            if parenthesised {
                p.expect(TokenKind::RightParen)?;
            }
            Ok((name, value))
        })
    }
}

fn plain_call(name: ObjectName, arguments: Vec<Expr>, odbc: bool) -> ExprKind {
    ExprKind::Function(Box::new(FunctionCall {
        name,
        distinct: false,
        star: false,
        arguments,
        within_group: Vec::new(),
        null_treatment: None,
        over: None,
        odbc,
    }))
}
