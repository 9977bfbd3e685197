//! Search conditions.
//!
//! ```text
//! condition ::= and (OR and)*          and ::= not (AND not)*          not ::= NOT not | predicate
//! predicate ::= expression op expression | expression op {ALL | ANY | SOME} ( query )
//!             | expression IS [NOT] {NULL | DISTINCT FROM expression}
//!             | expression [NOT] {BETWEEN a AND b | IN ( ... ) | LIKE pattern [ESCAPE c]}
//!             | EXISTS ( query ) | CONTAINS ( ... ) | FREETEXT ( ... ) | UPDATE ( column ) | ( condition )
//! ```
//!
//! Values and conditions are different things in T-SQL: `SELECT a = b` never compares and `WHERE 1` is error 4145.
//!
//! Messages: 4145 (a value where a condition is expected).

use crate::ast::{CompareOp, Expr, ExprKind, Quantifier};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// A search condition.
    pub(crate) fn condition(&mut self) -> Parsed<Expr> {
        let condition = self.condition_or_value()?;
        self.must_be_condition(&condition)?;
        Ok(condition)
    }

    fn must_be_condition(&self, expr: &Expr) -> Parsed<()> {
        if expr.kind.is_condition() { Ok(()) } else { self.error(4145, vec![self.near()]) }
    }

    /// A condition, or a value where nothing made a condition of it.
    pub(crate) fn condition_or_value(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        let first = self.conjunction()?;
        if !self.at_keyword(Keyword::Or) {
            return Ok(first);
        }
        self.must_be_condition(&first)?;
        let mut operands = vec![first];
        while self.eat_keyword(Keyword::Or) {
            let operand = self.conjunction()?;
            self.must_be_condition(&operand)?;
            operands.push(operand);
        }
        self.grow()?;
        Ok(self.expr_since(mark, ExprKind::Or(operands)))
    }

    fn conjunction(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        let first = self.negation()?;
        if !self.at_keyword(Keyword::And) {
            return Ok(first);
        }
        self.must_be_condition(&first)?;
        let mut operands = vec![first];
        while self.eat_keyword(Keyword::And) {
            let operand = self.negation()?;
            self.must_be_condition(&operand)?;
            operands.push(operand);
        }
        self.grow()?;
        Ok(self.expr_since(mark, ExprKind::And(operands)))
    }

    fn negation(&mut self) -> Parsed<Expr> {
        if !self.at_keyword(Keyword::Not) {
            return self.predicate();
        }
        let mark = self.position;
        self.advance();
        let operand = self.nested(Self::negation)?;
        self.must_be_condition(&operand)?;
        Ok(self.expr_since(mark, ExprKind::Not(Box::new(operand))))
    }

    pub(crate) fn predicate(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        let kind = match self.kind() {
            TokenKind::Keyword(Keyword::Exists) => {
                self.advance();
                ExprKind::Exists(self.subquery()?)
            }
            TokenKind::Keyword(Keyword::Contains | Keyword::Freetext) => self.full_text()?,
            TokenKind::Keyword(Keyword::Update) => {
                self.advance();
                self.expect(TokenKind::LeftParen)?;
                let column = self.ident()?;
                self.expect(TokenKind::RightParen)?;
                ExprKind::UpdatedColumn(column)
            }
            _ => {
                let left = self.additive(true)?;
                if left.kind.is_condition() {
                    return Ok(left);
                }
                match self.predicate_behind(left)? {
                    Ok(kind) => kind,
                    Err(value) => return Ok(value),
                }
            }
        };
        Ok(self.expr_since(mark, kind))
    }

    /// The predicate `left` begins, or `left` itself if none does.
    fn predicate_behind(&mut self, left: Expr) -> Parsed<Result<ExprKind, Expr>> {
        if let Some(op) = self.compare_op() {
            return self.comparison(op, left).map(Ok);
        }
        let negated = self.at_keyword(Keyword::Not)
            && (self.keyword_at(1, Keyword::Between) || self.keyword_at(1, Keyword::In) || self.keyword_at(1, Keyword::Like));
        if negated {
            self.advance();
        }
        let operand = Box::new(left);
        let kind = match self.kind() {
            TokenKind::Keyword(Keyword::Is) => self.is_predicate(operand)?,
            TokenKind::Keyword(Keyword::Between) => {
                self.advance();
                let low = self.boxed_expression()?;
                self.expect_keyword(Keyword::And)?;
                ExprKind::Between { operand, low, high: self.boxed_expression()?, negated }
            }
            TokenKind::Keyword(Keyword::In) => {
                self.advance();
                if self.at_query_paren() {
                    ExprKind::InQuery { operand, query: self.subquery()?, negated }
                } else {
                    let list = self.nested(|p| p.paren_list(Self::expression))?;
                    ExprKind::InList { operand, list, negated }
                }
            }
            TokenKind::Keyword(Keyword::Like) => {
                self.advance();
                let pattern = self.boxed_expression()?;
                let escape = self.like_escape()?;
                ExprKind::Like { operand, pattern, escape, negated }
            }
            _ => return Ok(Err(*operand)),
        };
        Ok(Ok(kind))
    }

    /// `ESCAPE c` or `{escape 'c'}`
    fn like_escape(&mut self) -> Parsed<Option<Box<Expr>>> {
        if self.eat_keyword(Keyword::Escape) {
            return self.boxed_expression().map(Some);
        }
        if self.at(TokenKind::LeftBrace) && self.word_at(1, "ESCAPE") {
            self.position += 2;
            let escape = self.boxed_expression()?;
            self.expect(TokenKind::RightBrace)?;
            return Ok(Some(escape));
        }
        Ok(None)
    }

    fn comparison(&mut self, op: CompareOp, left: Expr) -> Parsed<ExprKind> {
        let left = Box::new(left);
        let quantifier = match self.kind() {
            TokenKind::Keyword(Keyword::All) => Quantifier::All,
            TokenKind::Keyword(Keyword::Any | Keyword::Some) => Quantifier::Any,
            _ => return Ok(ExprKind::Compare { op, left, right: self.boxed_expression()? }),
        };
        self.advance();
        Ok(ExprKind::Quantified { op, quantifier, left, query: self.subquery()? })
    }

    fn is_predicate(&mut self, operand: Box<Expr>) -> Parsed<ExprKind> {
        self.advance();
        let negated = self.eat_keyword(Keyword::Not);
        if self.eat_keyword(Keyword::Null) {
            return Ok(ExprKind::IsNull { operand, negated });
        }
        self.expect_keyword(Keyword::Distinct)?;
        self.expect_keyword(Keyword::From)?;
        Ok(ExprKind::IsDistinctFrom { left: operand, right: self.boxed_expression()?, negated })
    }

    /// `CONTAINS | FREETEXT ( {column | (columns) | *} , search [, LANGUAGE n] )`
    fn full_text(&mut self) -> Parsed<ExprKind> {
        let predicate = self.any_word()?;
        self.expect(TokenKind::LeftParen)?;
        let columns = match self.kind() {
            TokenKind::LeftParen if self.kind_at(1) == TokenKind::Star => {
                self.position += 2;
                self.expect(TokenKind::RightParen)?;
                Vec::new()
            }
            TokenKind::LeftParen => self.nested(|p| p.paren_list(Self::expression))?,
            TokenKind::Star => {
                self.advance();
                Vec::new()
            }
            _ => vec![self.nested(Self::expression)?],
        };
        self.expect(TokenKind::Comma)?;
        let search = Box::new(self.string_or_variable()?);
        if self.eat(TokenKind::Comma) {
            self.expect_word("LANGUAGE")?;
            self.literal_or_variable()?;
        }
        self.expect(TokenKind::RightParen)?;
        Ok(ExprKind::FullText { predicate, columns, search })
    }

    /// Takes a comparison operator; blanks may stand between its two characters.
    fn compare_op(&mut self) -> Option<CompareOp> {
        let (op, tokens) = match (self.kind(), self.kind_at(1)) {
            (TokenKind::NotEqual, _) => (CompareOp::NotEqual, 1),
            (TokenKind::LessOrEqual, _) => (CompareOp::LessOrEqual, 1),
            (TokenKind::GreaterOrEqual, _) => (CompareOp::GreaterOrEqual, 1),
            (TokenKind::Less, TokenKind::Greater) | (TokenKind::Bang, TokenKind::Equal) => (CompareOp::NotEqual, 2),
            (TokenKind::Less, TokenKind::Equal) | (TokenKind::Bang, TokenKind::Greater) => (CompareOp::LessOrEqual, 2),
            (TokenKind::Greater, TokenKind::Equal) | (TokenKind::Bang, TokenKind::Less) => (CompareOp::GreaterOrEqual, 2),
            (TokenKind::Equal, _) => (CompareOp::Equal, 1),
            (TokenKind::Less, _) => (CompareOp::Less, 1),
            (TokenKind::Greater, _) => (CompareOp::Greater, 1),
            _ => return None,
        };
        self.position += tokens;
        Some(op)
    }
}
