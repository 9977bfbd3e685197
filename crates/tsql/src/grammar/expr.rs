//! Scalar expressions.
//!
//! ```text
//! expression ::= term ({+ | - | & | ^ | '|' | << | >> | ||} term)*                       left to right
//! term       ::= unary ({* | / | %} unary)*
//! unary      ::= {+ | -} term | ~ unary | postfix
//! postfix    ::= primary [.method(...)]* [COLLATE name]* [AT TIME ZONE postfix]*
//! primary    ::= literal | @v | @@g | column | function | CASE ... | ( expression ) | ( query ) | {escape} | $name
//! ```
//!
//! The signs bind looser than `*` and `/`, as SQL Server has it: `-100 / -100 * 10` is `-(100 / -(100 * 10))`, which is 0.
//!
//! Where a condition is allowed, a parenthesis may hold one; the flag `conditional` carries that down to the first
//! primary, and a condition found there ends the expression (see `condition.rs`).

use crate::ast::{BinaryOp, CaseBranch, Expr, ExprKind, Literal, Niladic, ObjectName, UnaryOp};
use crate::limits::NESTING_MAX;
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword, TokenKind};

/// The methods of the types `xml` and `hierarchyid`; their case matters.
const METHODS: &[&str] = &[
    "value",
    "query",
    "exist",
    "nodes",
    "modify",
    "GetAncestor",
    "GetDescendant",
    "GetLevel",
    "GetReparentedValue",
    "IsDescendantOf",
    "ToString",
];

impl Parser<'_> {
    /// A scalar expression.
    pub(crate) fn expression(&mut self) -> Parsed<Expr> {
        self.additive(false)
    }

    pub(crate) fn boxed_expression(&mut self) -> Parsed<Box<Expr>> {
        self.expression().map(Box::new)
    }

    /// An expression or `DEFAULT`.
    pub(crate) fn expression_or_default(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        if self.eat_keyword(Keyword::Default) {
            return Ok(Expr { kind: ExprKind::Default, span: self.span_since(mark) });
        }
        self.expression()
    }

    pub(crate) fn expr_since(&self, mark: usize, kind: ExprKind) -> Expr {
        Expr { kind, span: self.span_since(mark) }
    }

    pub(crate) fn additive(&mut self, conditional: bool) -> Parsed<Expr> {
        self.chain(|p| {
            let mark = p.position;
            let mut left = p.multiplicative(conditional)?;
            while let Some(op) = additive_op(p.kind()) {
                if left.kind.is_condition() {
                    break;
                }
                p.advance();
                let right = p.multiplicative(false)?;
                p.grow()?;
                left = p.expr_since(mark, ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) });
            }
            Ok(left)
        })
    }

    fn multiplicative(&mut self, conditional: bool) -> Parsed<Expr> {
        self.chain(|p| {
            let mark = p.position;
            let mut left = p.unary(conditional)?;
            while let Some(op) = multiplicative_op(p.kind()) {
                if left.kind.is_condition() {
                    break;
                }
                p.advance();
                let right = p.unary(false)?;
                p.grow()?;
                left = p.expr_since(mark, ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) });
            }
            Ok(left)
        })
    }

    fn unary(&mut self, conditional: bool) -> Parsed<Expr> {
        let op = match self.kind() {
            TokenKind::Plus => UnaryOp::Plus,
            TokenKind::Minus => UnaryOp::Minus,
            TokenKind::Tilde => UnaryOp::BitNot,
            _ => return self.postfix(conditional),
        };
        let mark = self.position;
        self.advance();
        let operand = self.nested(|p| if op == UnaryOp::BitNot { p.unary(false) } else { p.multiplicative(false) })?;
        Ok(self.expr_since(mark, ExprKind::Unary { op, operand: Box::new(operand) }))
    }

    fn postfix(&mut self, conditional: bool) -> Parsed<Expr> {
        self.chain(|p| {
            let mark = p.position;
            let mut operand = p.primary(conditional)?;
            loop {
                if operand.kind.is_condition() {
                    return Ok(operand);
                }
                let kind = if p.at(TokenKind::Dot) && p.ident_at(1) {
                    p.advance();
                    p.method(Box::new(operand))?
                } else if p.eat_keyword(Keyword::Collate) {
                    ExprKind::Collate { operand: Box::new(operand), collation: p.collation()? }
                } else if p.at_words(&["AT", "TIME", "ZONE"]) {
                    p.position += 3;
                    let zone_mark = p.position;
                    let mut zone = p.primary(false)?;
                    if p.eat_keyword(Keyword::Collate) {
                        let collation = p.collation()?;
                        zone = p.expr_since(zone_mark, ExprKind::Collate { operand: Box::new(zone), collation });
                    }
                    ExprKind::AtTimeZone { operand: Box::new(operand), zone: Box::new(zone) }
                } else {
                    return Ok(operand);
                };
                p.grow()?;
                operand = p.expr_since(mark, kind);
            }
        })
    }

    /// A collation's name; `DATABASE_DEFAULT` and `CATALOG_DEFAULT` are names too.
    pub(crate) fn collation(&mut self) -> Parsed<crate::ast::Ident> {
        self.ident()
    }

    /// `method(arguments)` or a property, the dot being taken.
    fn method(&mut self, receiver: Box<Expr>) -> Parsed<ExprKind> {
        let method = self.ident()?;
        let arguments = if self.at(TokenKind::LeftParen) { Some(self.plain_arguments()?) } else { None };
        Ok(ExprKind::Method { receiver, method, arguments })
    }

    /// `( [expression, ...] )`
    pub(crate) fn plain_arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect(TokenKind::LeftParen)?;
        let arguments = if self.at(TokenKind::RightParen) { Vec::new() } else { self.nested(|p| p.comma_list(Self::expression))? };
        self.expect(TokenKind::RightParen)?;
        Ok(arguments)
    }

    fn primary(&mut self, conditional: bool) -> Parsed<Expr> {
        let mark = self.position;
        if let Some(literal) = self.literal()? {
            return Ok(self.expr_since(mark, ExprKind::Literal(literal)));
        }
        let kind = match self.kind() {
            TokenKind::LeftParen => self.parenthesised(conditional)?,
            TokenKind::Variable => ExprKind::Variable(self.variable()?),
            TokenKind::GlobalVariable => {
                let name = self.text_at(0).to_owned();
                self.advance();
                ExprKind::GlobalVariable(name)
            }
            TokenKind::DollarName => self.pseudo(None)?,
            TokenKind::LeftBrace => self.odbc_escape()?,
            TokenKind::Keyword(keyword) => self.keyword_primary(keyword)?,
            TokenKind::Word | TokenKind::BracketName | TokenKind::QuotedName => self.name_primary()?,
            _ => return self.unexpected(),
        };
        Ok(self.expr_since(mark, kind))
    }

    fn parenthesised(&mut self, conditional: bool) -> Parsed<ExprKind> {
        if self.at_query_paren() {
            return Ok(ExprKind::Subquery(self.subquery()?));
        }
        self.advance();
        let inner = self.nested(|p| if conditional { p.condition_or_value() } else { p.expression() })?;
        self.expect(TokenKind::RightParen)?;
        Ok(ExprKind::Paren(Box::new(inner)))
    }

    /// True if the parenthesis at the position holds a query rather than an expression or a table.
    ///
    /// `((SELECT 1) + 1)` is an expression and `((SELECT 1) UNION SELECT 2)` a query: what follows the inner parenthesis
    /// tells. The walk is bounded by the nesting limit in depth and by the text in length.
    pub(crate) fn at_query_paren(&self) -> bool {
        let mut opened = 0;
        while self.kind_at(opened) == TokenKind::LeftParen {
            opened += 1;
            if opened > NESTING_MAX as usize {
                return false;
            }
        }
        if opened == 0 || !(self.keyword_at(opened, Keyword::Select) || self.keyword_at(opened, Keyword::With)) {
            return false;
        }
        // From the innermost parenthesis outwards each but the last must be closed within a query.
        let mut ahead = opened;
        for _ in 1..opened {
            ahead = match self.behind_close(ahead) {
                Some(behind) => behind,
                None => return true,
            };
            if !matches!(
                self.kind_at(ahead),
                TokenKind::RightParen
                    | TokenKind::Keyword(
                        Keyword::Union | Keyword::Except | Keyword::Intersect | Keyword::Order | Keyword::For | Keyword::Option
                    )
            ) {
                return false;
            }
        }
        true
    }

    /// From inside a parenthesis, `ahead` tokens on: the place behind the one that closes it.
    fn behind_close(&self, mut ahead: usize) -> Option<usize> {
        let mut depth = 1_u32;
        loop {
            match self.kind_at(ahead) {
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => depth -= 1,
                TokenKind::End => return None,
                _ => {}
            }
            ahead += 1;
            if depth == 0 {
                return Some(ahead);
            }
        }
    }

    /// `$name`, qualified by `table`; or `$PARTITION.function(...)`.
    fn pseudo(&mut self, table: Option<Box<ObjectName>>) -> Parsed<ExprKind> {
        let name = self.text_at(0)[1..].to_owned();
        self.advance();
        if name.eq_ignore_ascii_case("PARTITION") && self.eat(TokenKind::Dot) {
            let mut function = ObjectName::simple(self.ident()?);
            function.database = table.map(|t| t.name);
            let arguments = self.plain_arguments()?;
            return Ok(ExprKind::PartitionFunction { function: Box::new(function), arguments });
        }
        Ok(ExprKind::Pseudo { table, name })
    }

    /// What begins with a name: a column, a function, a method of a column, a static method.
    fn name_primary(&mut self) -> Parsed<ExprKind> {
        if self.at(TokenKind::Word) {
            if self.kind_at(1) == TokenKind::LeftParen {
                if let Some(kind) = self.special_function()? {
                    return Ok(kind);
                }
            } else if self.at_words(&["NEXT", "VALUE", "FOR"]) {
                return self.next_value_for();
            }
        }
        let mark = self.position;
        let mut parts = self.name_parts()?;
        match self.kind() {
            TokenKind::LeftParen => {
                let method = parts.len() > 1 && matches!(parts.last(), Some(Some(last)) if METHODS.contains(&last.text.as_str()));
                if !method {
                    let name = self.object_of(parts, mark)?;
                    return self.function_call(name).map(|call| ExprKind::Function(Box::new(call)));
                }
                let method = parts.pop().flatten().expect("looked at above");
                let column = self.column_of(parts, mark)?;
                let span = crate::ast::Span { end: column.column.span.end, ..column.span };
                let receiver = Box::new(Expr { kind: ExprKind::Column(column), span });
                Ok(ExprKind::Method { receiver, method, arguments: Some(self.plain_arguments()?) })
            }
            TokenKind::DoubleColon => {
                let data_type = Box::new(self.object_of(parts, mark)?);
                self.advance();
                let method = self.ident()?;
                let arguments = if self.at(TokenKind::LeftParen) { Some(self.plain_arguments()?) } else { None };
                Ok(ExprKind::StaticMethod { data_type, method, arguments })
            }
            TokenKind::Dot => {
                let table = Some(Box::new(self.object_of(parts, mark)?));
                self.advance();
                match self.kind() {
                    TokenKind::DollarName => self.pseudo(table),
                    TokenKind::Keyword(Keyword::Identitycol | Keyword::Rowguidcol) => self.old_pseudo(table),
                    _ => self.unexpected(),
                }
            }
            _ => Ok(ExprKind::Column(self.column_of(parts, mark)?)),
        }
    }

    /// `IDENTITYCOL`, `ROWGUIDCOL`: the old spellings of `$identity` and `$rowguid`.
    fn old_pseudo(&mut self, table: Option<Box<ObjectName>>) -> Parsed<ExprKind> {
        let name = if self.at_keyword(Keyword::Identitycol) { "identity" } else { "rowguid" };
        self.advance();
        Ok(ExprKind::Pseudo { table, name: name.to_owned() })
    }

    /// What begins with a reserved word.
    fn keyword_primary(&mut self, keyword: Keyword) -> Parsed<ExprKind> {
        let niladic = match keyword {
            Keyword::CurrentTimestamp => Niladic::CurrentTimestamp,
            Keyword::CurrentDate => Niladic::CurrentDate,
            Keyword::CurrentTime => Niladic::CurrentTime,
            Keyword::CurrentUser => Niladic::CurrentUser,
            Keyword::SessionUser => Niladic::SessionUser,
            Keyword::SystemUser => Niladic::SystemUser,
            Keyword::User => Niladic::User,
            Keyword::Case => return self.case(),
            Keyword::Convert => return self.convert(false),
            Keyword::TryConvert => return self.convert(true),
            Keyword::Coalesce => {
                self.advance();
                return Ok(ExprKind::Coalesce(self.plain_arguments()?));
            }
            Keyword::Nullif => return self.null_if(),
            Keyword::Identitycol | Keyword::Rowguidcol => return self.old_pseudo(None),
            // IDENTITY(type, seed, increment) in SELECT INTO: the type reads as a column or a function call.
            Keyword::Left | Keyword::Right | Keyword::Identity if self.kind_at(1) == TokenKind::LeftParen => {
                let token = self.advance();
                let name = ObjectName::simple(self.ident_of(token));
                return self.function_call(name).map(|call| ExprKind::Function(Box::new(call)));
            }
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(ExprKind::Niladic(niladic))
    }

    /// `CASE [operand] WHEN a THEN b ... [ELSE c] END`
    fn case(&mut self) -> Parsed<ExprKind> {
        self.advance();
        self.nested(|p| {
            let operand = if p.at_keyword(Keyword::When) { None } else { Some(p.boxed_expression()?) };
            let mut branches = Vec::new();
            while p.eat_keyword(Keyword::When) {
                let when = if operand.is_some() { p.expression()? } else { p.condition()? };
                p.expect_keyword(Keyword::Then)?;
                branches.push(CaseBranch { when, then: p.expression()? });
            }
            if branches.is_empty() {
                return p.unexpected();
            }
            let otherwise = if p.eat_keyword(Keyword::Else) { Some(p.boxed_expression()?) } else { None };
            p.expect_keyword(Keyword::End)?;
            Ok(ExprKind::Case { operand, branches, otherwise })
        })
    }

    /// A number with an optional sign, or a variable: what options and sequences take.
    pub(crate) fn signed_number(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        let sign = match self.kind() {
            TokenKind::Minus => Some(UnaryOp::Minus),
            TokenKind::Plus => Some(UnaryOp::Plus),
            _ => None,
        };
        if sign.is_some() {
            self.advance();
        }
        let operand_mark = self.position;
        let operand = match self.literal()? {
            Some(literal @ (Literal::Integer(_) | Literal::Decimal { .. } | Literal::Float(_) | Literal::Money(_))) => {
                self.expr_since(operand_mark, ExprKind::Literal(literal))
            }
            Some(_) => {
                self.position = operand_mark;
                return self.unexpected();
            }
            None if sign.is_none() && self.at(TokenKind::Variable) => {
                let variable = self.variable()?;
                self.expr_since(operand_mark, ExprKind::Variable(variable))
            }
            None => return self.unexpected(),
        };
        Ok(match sign {
            None | Some(UnaryOp::Plus) => operand,
            Some(op) => self.expr_since(mark, ExprKind::Unary { op, operand: Box::new(operand) }),
        })
    }

    /// A literal with an optional sign, or a variable.
    pub(crate) fn literal_or_variable(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        if matches!(self.kind(), TokenKind::Minus | TokenKind::Plus | TokenKind::Variable) {
            return self.signed_number();
        }
        match self.literal()? {
            Some(literal) => Ok(self.expr_since(mark, ExprKind::Literal(literal))),
            None => self.unexpected(),
        }
    }

    /// A string literal or a variable.
    pub(crate) fn string_or_variable(&mut self) -> Parsed<Expr> {
        if self.at_string() || self.at(TokenKind::Variable) { self.literal_or_variable() } else { self.unexpected() }
    }
}

fn additive_op(kind: TokenKind) -> Option<BinaryOp> {
    Some(match kind {
        TokenKind::Plus => BinaryOp::Add,
        TokenKind::Minus => BinaryOp::Subtract,
        TokenKind::Ampersand => BinaryOp::BitAnd,
        TokenKind::Pipe => BinaryOp::BitOr,
        TokenKind::Caret => BinaryOp::BitXor,
        TokenKind::ShiftLeft => BinaryOp::ShiftLeft,
        TokenKind::ShiftRight => BinaryOp::ShiftRight,
        TokenKind::DoublePipe => BinaryOp::Concat,
        _ => return None,
    })
}

fn multiplicative_op(kind: TokenKind) -> Option<BinaryOp> {
    Some(match kind {
        TokenKind::Star => BinaryOp::Multiply,
        TokenKind::Slash => BinaryOp::Divide,
        TokenKind::Percent => BinaryOp::Modulo,
        _ => return None,
    })
}
