//! Procedures, functions, views, triggers.
//!
//! ```text
//! {CREATE [OR ALTER] | ALTER} {PROC | PROCEDURE} name [;n] [[(] parameter, ... [)]] [WITH option, ...] [FOR REPLICATION] AS body
//! ... FUNCTION name ( [parameter, ...] ) RETURNS {type | TABLE | @t TABLE body} [WITH option, ...] [AS]
//!              {BEGIN statement* END | RETURN query | RETURN ( query ) | EXTERNAL NAME x}
//! ... VIEW name [(c, ...)] [WITH option, ...] AS query [WITH CHECK OPTION]
//! ... TRIGGER name ON {t | DATABASE | ALL SERVER} [WITH option, ...] {FOR | AFTER | INSTEAD OF} event, ... AS body
//! {ENABLE | DISABLE} TRIGGER {ALL | name, ...} ON {t | DATABASE | ALL SERVER}
//! ```
//!
//! Messages: 111 (not the first statement of its batch).

use crate::ast::{
    CreateFunction, CreateMode, CreateProcedure, CreateTrigger, CreateView, EnableTrigger, FunctionBody, FunctionReturns, ModuleBody,
    ModuleOption, ModulePrincipal, OptionItem, Stmt, StmtKind, TriggerTarget,
};
use crate::parser::{Parsed, Parser, Within};
use crate::token::{Keyword as K, TokenKind};

impl Parser<'_> {
    /// Behind `CREATE [OR ALTER] PROCEDURE`.
    pub(crate) fn create_procedure(&mut self, mode: CreateMode) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        let mut number = None;
        if self.eat(TokenKind::Semicolon) {
            number = self.text_at(0).parse().ok();
            self.expect(TokenKind::Integer)?;
        }
        let parenthesised = self.eat(TokenKind::LeftParen);
        let mut parameters = Vec::new();
        if self.at(TokenKind::Variable) {
            parameters = self.comma_list(Self::parameter)?;
        }
        if parenthesised {
            self.expect(TokenKind::RightParen)?;
        }
        let options = self.module_options()?;
        let for_replication = self.eat_words(&["FOR", "REPLICATION"]);
        self.expect_keyword(K::As)?;
        let body = self.module_body(Within::Procedure)?;
        Ok(StmtKind::CreateProcedure(Box::new(CreateProcedure { mode, name, number, parameters, options, for_replication, body })))
    }

    /// `WITH option, ...` of a module.
    fn module_options(&mut self) -> Parsed<Vec<ModuleOption>> {
        if !self.eat_keyword(K::With) {
            return Ok(Vec::new());
        }
        self.comma_list(|p| {
            if (p.at_keyword(K::Exec) || p.at_keyword(K::Execute)) && p.keyword_at(1, K::As) {
                p.position += 2;
                return p.module_principal().map(ModuleOption::ExecuteAs);
            }
            for phrase in [&["RETURNS", "NULL", "ON", "NULL", "INPUT"][..], &["CALLED", "ON", "NULL", "INPUT"]] {
                if p.eat_words(phrase) {
                    return Ok(ModuleOption::Word(phrase.join(" ")));
                }
            }
            let word = p.any_word()?;
            if word == "INLINE" && p.eat(TokenKind::Equal) {
                let on = p.on_off()?;
                return Ok(ModuleOption::Word(format!("INLINE = {}", if on { "ON" } else { "OFF" })));
            }
            Ok(ModuleOption::Word(word))
        })
    }

    fn module_principal(&mut self) -> Parsed<ModulePrincipal> {
        if self.at_string() {
            return self.string().map(ModulePrincipal::Name);
        }
        match self.any_word()?.as_str() {
            "CALLER" => Ok(ModulePrincipal::Caller),
            "SELF" => Ok(ModulePrincipal::Self_),
            "OWNER" => Ok(ModulePrincipal::Owner),
            _ => {
                self.position -= 1;
                self.unexpected()
            }
        }
    }

    /// A module's statements, or where its code is.
    fn module_body(&mut self, within: Within) -> Parsed<ModuleBody> {
        if self.at_words(&["EXTERNAL", "NAME"]) {
            return self.external_name().map(ModuleBody::External);
        }
        if self.at_words(&["BEGIN", "ATOMIC"]) {
            self.within = within;
            let (options, statements) = self.atomic_block()?;
            self.must_be_last()?;
            return Ok(ModuleBody::Atomic { options, statements });
        }
        self.module_statements(within).map(ModuleBody::Statements)
    }

    /// `BEGIN ATOMIC WITH ( option, ... ) statement* END`
    fn atomic_block(&mut self) -> Parsed<(Vec<OptionItem>, Vec<Stmt>)> {
        self.position += 2;
        self.expect_keyword(K::With)?;
        let options = self.paren_list(Self::atomic_option)?;
        Ok((options, self.block_statements()?))
    }

    /// `TRANSACTION ISOLATION LEVEL = SNAPSHOT`, `LANGUAGE = N'us_english'` ...
    fn atomic_option(&mut self) -> Parsed<OptionItem> {
        let mark = self.position;
        let mut name = self.any_word()?;
        if name == "TRANSACTION" {
            self.expect_words(&["ISOLATION", "LEVEL"])?;
            name.push_str(" ISOLATION LEVEL");
            self.expect(TokenKind::Equal)?;
            let mut level = self.any_word()?;
            if matches!(level.as_str(), "REPEATABLE" | "READ") {
                level = format!("{level} {}", self.any_word()?);
            }
            return Ok(OptionItem { name, value: crate::ast::OptionValue::Word(level), span: self.span_since(mark) });
        }
        self.option_behind(name, super::option::Style::Enclosed, mark)
    }

    /// `EXTERNAL NAME a.b.c`: the name as written.
    pub(crate) fn external_name(&mut self) -> Parsed<String> {
        self.expect_words(&["EXTERNAL", "NAME"])?;
        let mark = self.position;
        self.name_parts()?;
        Ok(self.span_since(mark).slice(self.text).to_owned())
    }

    /// Behind `CREATE [OR ALTER] FUNCTION`.
    pub(crate) fn create_function(&mut self, mode: CreateMode) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        self.expect(TokenKind::LeftParen)?;
        let parameters = if self.at(TokenKind::RightParen) { Vec::new() } else { self.comma_list(Self::parameter)? };
        self.expect(TokenKind::RightParen)?;
        self.expect_word("RETURNS")?;
        let returns = self.function_returns()?;
        let options = self.module_options()?;
        if self.eat_keyword(K::Order) {
            self.paren_list(Self::index_key)?;
        }
        let _ = self.eat_keyword(K::As);
        self.within = Within::Function;
        let body = self.function_body(&returns)?;
        self.must_be_last()?;
        Ok(StmtKind::CreateFunction(Box::new(CreateFunction { mode, name, parameters, returns, options, body })))
    }

    fn function_returns(&mut self) -> Parsed<FunctionReturns> {
        if self.at(TokenKind::Variable) {
            let variable = self.variable()?;
            self.expect_keyword(K::Table)?;
            return Ok(FunctionReturns::Table { variable, body: self.table_body()? });
        }
        if self.eat_keyword(K::Table) {
            if self.at(TokenKind::LeftParen) {
                return self.table_body().map(FunctionReturns::ExternalTable);
            }
            return Ok(FunctionReturns::InlineTable);
        }
        let data_type = self.data_type()?;
        Ok(FunctionReturns::Scalar { data_type, nullable: self.nullability() })
    }

    fn function_body(&mut self, returns: &FunctionReturns) -> Parsed<FunctionBody> {
        if self.at_words(&["EXTERNAL", "NAME"]) {
            return self.external_name().map(FunctionBody::External);
        }
        if *returns == FunctionReturns::InlineTable {
            self.expect_keyword(K::Return)?;
            let query = self.query(true)?;
            return Ok(FunctionBody::Query(Box::new(query)));
        }
        if self.at_words(&["BEGIN", "ATOMIC"]) {
            let (options, statements) = self.atomic_block()?;
            return Ok(FunctionBody::Atomic { options, statements });
        }
        self.expect_keyword(K::Begin)?;
        self.block_statements().map(FunctionBody::Statements)
    }

    /// Behind `CREATE [OR ALTER] VIEW`.
    pub(crate) fn create_view(&mut self, mode: CreateMode) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        let columns = if self.at(TokenKind::LeftParen) { self.ident_list()? } else { Vec::new() };
        let options = self.module_options()?;
        self.expect_keyword(K::As)?;
        let query = Box::new(self.query(true)?);
        let check_option = self.eat_words(&["WITH", "CHECK", "OPTION"]);
        self.must_be_last()?;
        Ok(StmtKind::CreateView(Box::new(CreateView { mode, name, columns, options, query, check_option })))
    }

    /// Behind `CREATE [OR ALTER] TRIGGER`.
    pub(crate) fn create_trigger(&mut self, mode: CreateMode) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        self.expect_keyword(K::On)?;
        let target = self.trigger_target()?;
        let options = self.module_options()?;
        let instead_of = self.eat_words(&["INSTEAD", "OF"]);
        if !instead_of && !self.eat_keyword(K::For) {
            self.expect_word("AFTER")?;
        }
        let events = self.comma_list(Self::any_word)?;
        let _ = self.eat_words(&["WITH", "APPEND"]);
        let not_for_replication = self.eat_words(&["NOT", "FOR", "REPLICATION"]);
        self.expect_keyword(K::As)?;
        let body = self.module_body(Within::Trigger)?;
        let trigger = CreateTrigger { mode, name, target, options, instead_of, events, not_for_replication, body };
        Ok(StmtKind::CreateTrigger(Box::new(trigger)))
    }

    fn trigger_target(&mut self) -> Parsed<TriggerTarget> {
        if self.eat_keyword(K::Database) {
            return Ok(TriggerTarget::Database);
        }
        if self.eat_words(&["ALL", "SERVER"]) {
            return Ok(TriggerTarget::AllServer);
        }
        self.object_name().map(TriggerTarget::Object)
    }

    /// `ENABLE | DISABLE TRIGGER ...`
    pub(crate) fn enable_trigger(&mut self) -> Parsed<StmtKind> {
        let enable = self.any_word()? == "ENABLE";
        self.advance();
        let names = if self.eat_keyword(K::All) { Vec::new() } else { self.comma_list(Self::object_name)? };
        self.expect_keyword(K::On)?;
        let target = self.trigger_target()?;
        Ok(StmtKind::EnableTrigger(Box::new(EnableTrigger { enable, names, target })))
    }
}
