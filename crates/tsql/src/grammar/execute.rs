//! EXECUTE in all its forms, and parameter lists.
//!
//! ```text
//! EXEC [@r =] {name [;n] | @v} [[@p =] value [OUTPUT], ...] [WITH {RECOMPILE | RESULT SETS ...}, ...]
//! EXEC ( text [, value [OUTPUT], ...] ) [AS {USER | LOGIN} = 'name'] [AT server]
//! EXECUTE AS {CALLER | {USER | LOGIN} = 'name'} ...          see security.rs
//! {call name [(value, ...)]} | {? = call name ...}
//! parameter ::= @p [AS] type [VARYING] [NULL | NOT NULL] [= default] [OUT | OUTPUT] [READONLY]
//! ```
//!
//! A bare word as an argument is a string, as SQL Server has it: `EXEC sp_help Votes`.

use crate::ast::{
    Argument, Execute, ExecuteModule, ExecuteString, Expr, ExprKind, Literal, ObjectName, Parameter, ResultColumn, ResultSet, ResultSets,
    StmtKind,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    pub(crate) fn execute_statement(&mut self) -> Parsed<StmtKind> {
        if self.keyword_at(1, K::As) {
            return self.execute_as();
        }
        self.advance();
        if self.at(TokenKind::LeftParen) {
            return self.execute_string().map(|execute| StmtKind::ExecuteString(Box::new(execute)));
        }
        self.execute_module().map(|execute| StmtKind::Execute(Box::new(execute)))
    }

    /// The statement behind the word EXEC.
    pub(crate) fn execute_module(&mut self) -> Parsed<Execute> {
        let mut return_variable = None;
        if self.at(TokenKind::Variable) && self.kind_at(1) == TokenKind::Equal {
            return_variable = Some(self.variable()?);
            self.advance();
        }
        let module =
            if self.at(TokenKind::Variable) { ExecuteModule::Variable(self.variable()?) } else { ExecuteModule::Name(self.object_name()?) };
        let mut number = None;
        if self.at(TokenKind::Semicolon) && self.kind_at(1) == TokenKind::Integer {
            self.advance();
            number = self.text_at(0).parse().ok();
            self.advance();
        }
        let arguments = if self.at_argument() { self.comma_list(Self::argument)? } else { Vec::new() };
        let mut execute = Execute { return_variable, module, number, arguments, recompile: false, result_sets: None };
        if self.at_keyword(K::With) && (self.word_at(1, "RECOMPILE") || self.word_at(1, "RESULT")) {
            self.advance();
            self.execute_options(&mut execute)?;
        }
        Ok(execute)
    }

    fn execute_options(&mut self, execute: &mut Execute) -> Parsed<()> {
        self.comma_list(|p| {
            if p.eat_word("RECOMPILE") {
                execute.recompile = true;
            } else {
                execute.result_sets = Some(p.result_sets()?);
            }
            Ok(())
        })
        .map(|_| ())
    }

    fn result_sets(&mut self) -> Parsed<ResultSets> {
        self.expect_words(&["RESULT", "SETS"])?;
        if self.eat_word("UNDEFINED") {
            return Ok(ResultSets::Undefined);
        }
        if self.eat_word("NONE") {
            return Ok(ResultSets::None);
        }
        self.paren_list(Self::result_set).map(ResultSets::Definitions)
    }

    fn result_set(&mut self) -> Parsed<ResultSet> {
        if self.eat_words(&["AS", "OBJECT"]) {
            return self.object_name().map(ResultSet::AsObject);
        }
        if self.eat_words(&["AS", "TYPE"]) {
            return self.object_name().map(ResultSet::AsType);
        }
        if self.eat_words(&["AS", "FOR", "XML"]) {
            return Ok(ResultSet::AsForXml);
        }
        let columns = self.paren_list(|p| {
            let name = p.ident()?;
            let data_type = p.data_type()?;
            let collation = if p.eat_keyword(K::Collate) { Some(p.ident()?) } else { None };
            Ok(ResultColumn { name, data_type, collation, nullable: p.nullability() })
        })?;
        Ok(ResultSet::Columns(columns))
    }

    /// True if an argument, and no other statement, begins here.
    fn at_argument(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(K::Null | K::Default) => true,
            TokenKind::Keyword(_) | TokenKind::LeftParen | TokenKind::Tilde => false,
            TokenKind::LeftBrace | TokenKind::Plus => false,
            _ => self.at_expression(),
        }
    }

    fn argument(&mut self) -> Parsed<Argument> {
        let mut parameter = None;
        if self.at(TokenKind::Variable) && self.kind_at(1) == TokenKind::Equal {
            parameter = Some(self.variable()?);
            self.advance();
        }
        let value = self.argument_value()?;
        let output = self.eat_word("OUTPUT") || self.eat_word("OUT");
        Ok(Argument { parameter, value, output })
    }

    fn argument_value(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        match self.kind() {
            TokenKind::Keyword(K::Default) => self.expression_or_default(),
            TokenKind::GlobalVariable => {
                let name = self.text_at(0).to_owned();
                self.advance();
                Ok(self.expr_since(mark, ExprKind::GlobalVariable(name)))
            }
            TokenKind::LeftBrace => {
                let kind = self.odbc_escape()?;
                Ok(self.expr_since(mark, kind))
            }
            TokenKind::Word | TokenKind::BracketName | TokenKind::QuotedName => self.bare_string(),
            TokenKind::Keyword(K::On | K::Off) => {
                let value = self.text_at(0).to_owned();
                self.advance();
                Ok(self.expr_since(mark, ExprKind::Literal(Literal::String { value, national: true })))
            }
            _ => self.literal_or_variable(),
        }
    }

    /// A word that stands for a string; several parts keep their dots.
    pub(crate) fn bare_string(&mut self) -> Parsed<Expr> {
        let mark = self.position;
        let mut value = self.ident()?.text;
        while self.at(TokenKind::Dot) && self.ident_at(1) {
            self.advance();
            value.push('.');
            value.push_str(&self.ident()?.text);
        }
        Ok(self.expr_since(mark, ExprKind::Literal(Literal::String { value, national: true })))
    }

    /// `( text [, argument, ...] ) [AS ...] [AT server]`, the word EXEC being taken.
    pub(crate) fn execute_string(&mut self) -> Parsed<ExecuteString> {
        self.expect(TokenKind::LeftParen)?;
        let text = self.nested(Self::expression)?;
        let arguments = if self.eat(TokenKind::Comma) { self.comma_list(Self::argument)? } else { Vec::new() };
        self.expect(TokenKind::RightParen)?;
        let mut as_principal = None;
        if self.at_keyword(K::As) && (self.keyword_at(1, K::User) || self.word_at(1, "LOGIN")) {
            self.advance();
            let login = self.any_word()? == "LOGIN";
            self.expect(TokenKind::Equal)?;
            as_principal = Some((login, self.string()?));
        }
        let mut at = None;
        if self.at_word("AT") && (self.ident_at(1) || self.word_at(1, "DATA_SOURCE")) {
            self.advance();
            let _ = self.eat_word("DATA_SOURCE");
            at = Some(self.ident()?);
        }
        let mut result_sets = None;
        if self.at_keyword(K::With) && self.word_at(1, "RESULT") {
            self.advance();
            result_sets = Some(self.result_sets()?);
        }
        Ok(ExecuteString { text, arguments, as_principal, at, result_sets })
    }

    /// `{call name (arguments)}` and `{? = call name (arguments)}`; a `?` is the result, which the driver binds itself.
    pub(crate) fn odbc_call(&mut self) -> Parsed<StmtKind> {
        self.expect(TokenKind::LeftBrace)?;
        if self.eat(TokenKind::Question) {
            self.expect(TokenKind::Equal)?;
        }
        let mut return_variable = None;
        if self.at(TokenKind::Variable) {
            return_variable = Some(self.variable()?);
            self.expect(TokenKind::Equal)?;
        }
        self.expect_word("CALL")?;
        let name: ObjectName = self.object_name()?;
        let mut arguments = Vec::new();
        if self.eat(TokenKind::LeftParen) {
            if !self.at(TokenKind::RightParen) {
                arguments = self.comma_list(Self::argument)?;
            }
            self.expect(TokenKind::RightParen)?;
        }
        self.expect(TokenKind::RightBrace)?;
        let module = ExecuteModule::Name(name);
        Ok(StmtKind::OdbcCall(Box::new(Execute { return_variable, module, number: None, arguments, recompile: false, result_sets: None })))
    }

    /// One parameter's declaration.
    pub(crate) fn parameter(&mut self) -> Parsed<Parameter> {
        let mark = self.position;
        let variable = self.variable()?;
        let _ = self.eat_keyword(K::As);
        let data_type = self.data_type()?;
        let varying = self.eat_keyword(K::Varying);
        let mut nullable = self.nullability();
        let default = if self.eat(TokenKind::Equal) { Some(self.parameter_default()?) } else { None };
        if nullable.is_none() {
            nullable = self.nullability();
        }
        let mut output = false;
        let mut read_only = false;
        loop {
            if self.eat_word("OUTPUT") || self.eat_word("OUT") {
                output = true;
            } else if self.eat_word("READONLY") {
                read_only = true;
            } else {
                break;
            }
        }
        Ok(Parameter { variable, data_type, varying, nullable, default, output, read_only, span: self.span_since(mark) })
    }

    /// A constant; a bare word is a string, as in an argument.
    fn parameter_default(&mut self) -> Parsed<Expr> {
        if self.at_ident() {
            return self.bare_string();
        }
        if self.at(TokenKind::GlobalVariable) {
            return self.argument_value();
        }
        if self.at(TokenKind::LeftParen) {
            return self.expression();
        }
        self.literal_or_variable()
    }
}
