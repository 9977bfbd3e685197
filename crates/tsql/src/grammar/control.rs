//! Control of flow and declarations.
//!
//! ```text
//! BEGIN statement* END | BEGIN TRY ... END TRY BEGIN CATCH ... END CATCH | IF c s [ELSE s] | WHILE c s | BREAK | CONTINUE
//! GOTO l | l: | RETURN [e] | THROW [n, m, s] | RAISERROR (m, s, t, ...) [WITH ...] | WAITFOR {DELAY | TIME} v
//! DECLARE @v [AS] type [= e], ... | DECLARE @t [AS] TABLE ( ... ) | DECLARE c CURSOR ...
//! ```
//!
//! Messages: 132 and 133 (labels), 135 and 136 (outside WHILE), 178 (RETURN with a value).

use crate::ast::{Declaration, DeclareTable, If, RaiseError, Stmt, StmtKind, Throw, TryCatch, WaitFor, WaitForKind, While};
use crate::lexer::span_of;
use crate::parser::{Parsed, Parser, Within};
use crate::token::{Keyword as K, Token, TokenKind};

impl Parser<'_> {
    /// What begins with BEGIN.
    pub(crate) fn begin(&mut self) -> Parsed<StmtKind> {
        if self.keyword_at(1, K::Tran) || self.keyword_at(1, K::Transaction) || self.keyword_at(1, K::Distributed) {
            return self.begin_transaction();
        }
        if self.word_at(1, "TRY") {
            return self.try_catch();
        }
        if self.word_at(1, "DIALOG") || self.word_at(1, "CONVERSATION") {
            return self.unbuilt_statement();
        }
        self.advance();
        let statements = self.block_statements()?;
        Ok(StmtKind::Block(statements))
    }

    /// Statements up to END, that included; at least one.
    pub(crate) fn block_statements(&mut self) -> Parsed<Vec<Stmt>> {
        let start = self.position;
        let statements = self.statements(|p| p.at_block_end())?;
        if statements.is_empty() && self.position == start {
            return self.unexpected();
        }
        self.expect_keyword(K::End)?;
        Ok(statements)
    }

    fn at_block_end(&self) -> bool {
        self.at_end() || (self.at_keyword(K::End) && !self.word_at(1, "CONVERSATION"))
    }

    fn try_catch(&mut self) -> Parsed<StmtKind> {
        self.position += 2;
        let body = self.statements(|p| p.at_block_end())?;
        self.expect_keyword(K::End)?;
        self.expect_word("TRY")?;
        while self.at(TokenKind::Semicolon) && self.kind_at(1) == TokenKind::Semicolon {
            self.advance();
        }
        self.expect_keyword(K::Begin)?;
        self.expect_word("CATCH")?;
        let handler = self.statements(|p| p.at_block_end())?;
        self.expect_keyword(K::End)?;
        self.expect_word("CATCH")?;
        Ok(StmtKind::TryCatch(Box::new(TryCatch { body, handler })))
    }

    /// `IF c s ELSE IF c s ... ELSE s`: the chain is read in a loop, because generated code has long ones.
    pub(crate) fn if_statement(&mut self) -> Parsed<StmtKind> {
        self.chain(|p| {
            let mut arms = Vec::new();
            let mut last = None;
            loop {
                let mark = p.position;
                p.expect_keyword(K::If)?;
                let condition = p.condition()?;
                let then = p.statement()?;
                arms.push((mark, condition, then));
                p.grow()?;
                if p.at(TokenKind::Semicolon) && p.keyword_at(1, K::Else) {
                    p.advance();
                }
                if !p.eat_keyword(K::Else) {
                    break;
                }
                if !p.at_keyword(K::If) {
                    last = Some(p.statement()?);
                    break;
                }
            }
            let mut whole = None;
            while let Some((mark, condition, then)) = arms.pop() {
                let kind = StmtKind::If(Box::new(If { condition, then, otherwise: last.take() }));
                last = Some(Stmt { kind, span: p.span_since(mark) });
                whole = Some(());
            }
            match (whole, last) {
                (Some(()), Some(statement)) => Ok(statement.kind),
                _ => p.unexpected(),
            }
        })
    }

    pub(crate) fn while_statement(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let condition = self.condition()?;
        self.loops += 1;
        let body = self.statement();
        self.loops -= 1;
        Ok(StmtKind::While(Box::new(While { condition, body: body? })))
    }

    pub(crate) fn loop_exit(&mut self, kind: StmtKind, outside: i32) -> Parsed<StmtKind> {
        if self.loops == 0 {
            return self.error(outside, Vec::new());
        }
        self.advance();
        Ok(kind)
    }

    pub(crate) fn goto(&mut self) -> Parsed<StmtKind> {
        self.advance();
        self.ident().map(StmtKind::Goto)
    }

    pub(crate) fn label(&mut self) -> Parsed<StmtKind> {
        let label = self.ident()?;
        self.advance();
        Ok(StmtKind::Label(label))
    }

    /// Every label is declared once, and every GOTO has its label. Runs over the tokens: `GOTO x` and, where a statement may
    /// begin, `x:`.
    pub(crate) fn check_labels(&self) -> Parsed<()> {
        if !self.tokens.iter().any(|t| matches!(t.kind, TokenKind::Colon | TokenKind::Keyword(K::Goto))) {
            return Ok(());
        }
        let text = |token: Token| self.text[token.start as usize..token.end as usize].to_lowercase();
        let mut labels: Vec<String> = Vec::new();
        for pair in self.tokens.windows(2).filter(|p| p[0].kind == TokenKind::Word && p[1].kind == TokenKind::Colon) {
            let label = text(pair[0]);
            if labels.contains(&label) && !self.in_json_object() {
                let written = self.ident_of(pair[0]).text;
                return self.error_near(132, vec![written.clone()], &written, span_of(pair[0]));
            }
            labels.push(label);
        }
        for pair in self.tokens.windows(2).filter(|p| p[0].kind == TokenKind::Keyword(K::Goto)) {
            if !labels.contains(&text(pair[1])) {
                let written = self.ident_of(pair[1]).text;
                return self.error_near(133, vec![written.clone()], &written, span_of(pair[1]));
            }
        }
        Ok(())
    }

    /// JSON_OBJECT uses the colon too; a text that has it is not searched for doubled labels.
    fn in_json_object(&self) -> bool {
        self.text.to_ascii_uppercase().contains("JSON_OBJECT")
    }

    pub(crate) fn return_statement(&mut self) -> Parsed<StmtKind> {
        self.advance();
        if !self.at_expression() {
            return Ok(StmtKind::Return(None));
        }
        let mark = self.position;
        let value = self.expression()?;
        if matches!(self.within, Within::Batch | Within::Trigger) {
            let span = self.span_since(mark);
            return self.error_near(178, Vec::new(), span.slice(self.text), span);
        }
        Ok(StmtKind::Return(Some(value)))
    }

    /// True if an expression, and no statement, begins here.
    pub(crate) fn at_expression(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(keyword) => matches!(
                keyword,
                K::Case
                    | K::Null
                    | K::Convert
                    | K::TryConvert
                    | K::Coalesce
                    | K::Nullif
                    | K::Left
                    | K::Right
                    | K::CurrentTimestamp
                    | K::CurrentUser
                    | K::SessionUser
                    | K::SystemUser
                    | K::User
            ),
            TokenKind::Word => !self.at_label() && !self.at_word("THROW"),
            TokenKind::BracketName
            | TokenKind::QuotedName
            | TokenKind::Variable
            | TokenKind::GlobalVariable
            | TokenKind::DollarName
            | TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Float
            | TokenKind::Money
            | TokenKind::Binary
            | TokenKind::String
            | TokenKind::NationalString
            | TokenKind::LeftParen
            | TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::Tilde => true,
            TokenKind::LeftBrace => !self.word_at(1, "CALL") && self.kind_at(1) != TokenKind::Question,
            _ => false,
        }
    }

    pub(crate) fn throw(&mut self) -> Parsed<StmtKind> {
        self.advance();
        if !matches!(self.kind(), TokenKind::Integer | TokenKind::Variable | TokenKind::Minus | TokenKind::Decimal) {
            return Ok(StmtKind::Throw(None));
        }
        let number = self.literal_or_variable()?;
        self.expect(TokenKind::Comma)?;
        let message = self.string_or_variable()?;
        self.expect(TokenKind::Comma)?;
        let state = self.literal_or_variable()?;
        Ok(StmtKind::Throw(Some(Box::new(Throw { number, message, state }))))
    }

    pub(crate) fn raise_error(&mut self) -> Parsed<StmtKind> {
        self.advance();
        self.expect(TokenKind::LeftParen)?;
        let message = self.literal_or_variable()?;
        self.expect(TokenKind::Comma)?;
        let severity = self.literal_or_variable()?;
        self.expect(TokenKind::Comma)?;
        let state = self.literal_or_variable()?;
        let mut arguments = Vec::new();
        while self.eat(TokenKind::Comma) {
            arguments.push(self.raise_argument()?);
        }
        self.expect(TokenKind::RightParen)?;
        let mut raise = RaiseError { message, severity, state, arguments, log: false, no_wait: false, set_error: false };
        if self.at_keyword(K::With) && ["LOG", "NOWAIT", "SETERROR"].iter().any(|word| self.word_at(1, word)) {
            self.advance();
            for option in self.comma_list(Self::any_word)? {
                match option.as_str() {
                    "LOG" => raise.log = true,
                    "NOWAIT" => raise.no_wait = true,
                    "SETERROR" => raise.set_error = true,
                    _ => return self.error(155, vec![option, "RAISERROR".to_owned()]),
                }
            }
        }
        Ok(StmtKind::RaiseError(Box::new(raise)))
    }

    fn raise_argument(&mut self) -> Parsed<crate::ast::Expr> {
        let mark = self.position;
        if self.at(TokenKind::GlobalVariable) {
            let name = self.text_at(0).to_owned();
            self.advance();
            return Ok(self.expr_since(mark, crate::ast::ExprKind::GlobalVariable(name)));
        }
        self.literal_or_variable()
    }

    pub(crate) fn wait_for(&mut self) -> Parsed<StmtKind> {
        if self.kind_at(1) == TokenKind::LeftParen {
            return self.unbuilt_statement();
        }
        self.advance();
        let kind = match self.any_word()?.as_str() {
            "DELAY" => WaitForKind::Delay,
            "TIME" => WaitForKind::Time,
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        };
        let value = self.string_or_variable()?;
        Ok(StmtKind::WaitFor(Box::new(WaitFor { kind, value })))
    }

    /// DECLARE. Scalars and tables in one statement become a block of the declarations: a block opens no scope in T-SQL.
    pub(crate) fn declare(&mut self) -> Parsed<StmtKind> {
        self.advance();
        if !self.at(TokenKind::Variable) {
            return self.declare_cursor();
        }
        let mut parts: Vec<Stmt> = Vec::new();
        loop {
            let mark = self.position;
            let kind = self.declare_one(&mut parts)?;
            if let Some(kind) = kind {
                parts.push(Stmt { kind, span: self.span_since(mark) });
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        if parts.len() > 1 {
            return Ok(StmtKind::Block(parts));
        }
        parts.pop().map(|only| only.kind).map_or_else(|| self.unexpected(), Ok)
    }

    /// One declaration; a scalar behind a scalar joins it.
    fn declare_one(&mut self, parts: &mut [Stmt]) -> Parsed<Option<StmtKind>> {
        let variable = self.variable()?;
        let _ = self.eat_keyword(K::As);
        if self.eat_keyword(K::Table) {
            let body = self.table_body()?;
            return Ok(Some(StmtKind::DeclareTable(Box::new(DeclareTable { variable, body }))));
        }
        let data_type = self.data_type()?;
        let value = if self.eat(TokenKind::Equal) { Some(self.expression()?) } else { None };
        let declaration = Declaration { variable, data_type, value };
        if let Some(Stmt { kind: StmtKind::Declare(list), span }) = parts.last_mut() {
            span.end = self.tokens[self.position - 1].end;
            list.push(declaration);
            return Ok(None);
        }
        Ok(Some(StmtKind::Declare(vec![declaration])))
    }
}
