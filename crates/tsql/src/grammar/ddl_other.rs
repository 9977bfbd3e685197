//! CREATE, ALTER and DROP: which object, and the small objects themselves.
//!
//! ```text
//! CREATE SCHEMA {name [AUTHORIZATION o] | AUTHORIZATION o} [CREATE TABLE | CREATE VIEW | GRANT ...]*
//! ALTER SCHEMA name TRANSFER [class ::] object
//! {CREATE | ALTER} SEQUENCE name [AS type] [START WITH n | RESTART [WITH n] | INCREMENT BY n | [NO] MINVALUE [n] | ...]*
//! CREATE SYNONYM name FOR object
//! CREATE TYPE name {FROM type [[NOT] NULL] | AS TABLE body [WITH (...)] | EXTERNAL NAME x}
//! CREATE PARTITION FUNCTION f (type) AS RANGE [LEFT | RIGHT] FOR VALUES (e, ...)
//! CREATE PARTITION SCHEME s AS PARTITION f [ALL] TO (g, ...)
//! DROP kind [IF EXISTS] name, ...
//! ```
//!
//! Messages: 111.

use crate::ast::{
    AlterSchema, CreateMode, CreatePartitionFunction, CreatePartitionScheme, CreateSchema, CreateSynonym, CreateType, CreateTypeKind,
    DropKind, DropObject, Expr, Sequence, SequenceCache, Stmt, StmtKind,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

/// What DROP takes by name alone; longer ones before their prefixes.
const DROPS: &[(&[&str], DropKind)] = &[
    (&["TABLE"], DropKind::Table),
    (&["VIEW"], DropKind::View),
    (&["PROCEDURE"], DropKind::Procedure),
    (&["PROC"], DropKind::Procedure),
    (&["FUNCTION"], DropKind::Function),
    (&["TRIGGER"], DropKind::Trigger),
    (&["SCHEMA"], DropKind::Schema),
    (&["SEQUENCE"], DropKind::Sequence),
    (&["SYNONYM"], DropKind::Synonym),
    (&["TYPE"], DropKind::Type),
    (&["LOGIN"], DropKind::Login),
    (&["USER"], DropKind::User),
    (&["ROLE"], DropKind::Role),
    (&["SERVER", "ROLE"], DropKind::ServerRole),
    (&["DEFAULT"], DropKind::Default),
    (&["RULE"], DropKind::Rule),
    (&["AGGREGATE"], DropKind::Aggregate),
    (&["ASSEMBLY"], DropKind::Assembly),
    (&["PARTITION", "FUNCTION"], DropKind::PartitionFunction),
    (&["PARTITION", "SCHEME"], DropKind::PartitionScheme),
    (&["EXTERNAL", "TABLE"], DropKind::ExternalTable),
    (&["SECURITY", "POLICY"], DropKind::SecurityPolicy),
    (&["XML", "SCHEMA", "COLLECTION"], DropKind::XmlSchemaCollection),
];

impl Parser<'_> {
    /// CREATE; `None`, with nothing taken, if the object has no tree.
    pub(crate) fn create(&mut self) -> Parsed<Option<StmtKind>> {
        if self.at_index_words() {
            self.advance();
            return self.create_index().map(Some);
        }
        let or_alter = self.at_words(&["CREATE", "OR", "ALTER"]);
        let ahead = if or_alter { 3 } else { 1 };
        if let Some(parsed) = self.create_module(ahead, if or_alter { CreateMode::CreateOrAlter } else { CreateMode::Create })? {
            return Ok(Some(parsed));
        }
        if or_alter {
            self.position += 3;
            return self.unexpected();
        }
        if self.word_at(1, "PARTITION") {
            return self.create_partition();
        }
        // A certificate's private key, an application role and others come by the list of the unbuilt.
        if self.word_at(1, "DATABASE") && (self.word_at(2, "AUDIT") || self.word_at(2, "ENCRYPTION") || self.word_at(2, "SCOPED")) {
            return Ok(None);
        }
        let word = self.text_at(1).to_ascii_uppercase();
        let parse: fn(&mut Self) -> Parsed<StmtKind> = match word.as_str() {
            "TABLE" => Self::create_table,
            "DATABASE" => Self::create_database,
            "STATISTICS" => Self::create_statistics,
            "SCHEMA" => Self::create_schema,
            "SEQUENCE" => |p| p.sequence().map(|sequence| StmtKind::CreateSequence(Box::new(sequence))),
            "SYNONYM" => Self::create_synonym,
            "TYPE" => Self::create_type,
            "LOGIN" => Self::create_login,
            "USER" => Self::create_user,
            "ROLE" => |p| p.create_role(crate::ast::RoleKind::Database),
            "SERVER" if self.word_at(2, "ROLE") => |p| {
                p.advance();
                p.create_role(crate::ast::RoleKind::Server)
            },
            "APPLICATION" if self.word_at(2, "ROLE") => |p| {
                p.advance();
                p.create_role(crate::ast::RoleKind::Application)
            },
            "EVENT" if self.word_at(2, "SESSION") => |p| {
                p.advance();
                p.create_event_session()
            },
            _ => return Ok(None),
        };
        self.position += 2;
        parse(self).map(Some)
    }

    /// A module, whose word stands `ahead`.
    fn create_module(&mut self, ahead: usize, mode: CreateMode) -> Parsed<Option<StmtKind>> {
        let (what, parse): (&str, fn(&mut Self, CreateMode) -> Parsed<StmtKind>) = match self.kind_at(ahead) {
            TokenKind::Keyword(K::Procedure | K::Proc) => ("CREATE/ALTER PROCEDURE", Self::create_procedure),
            TokenKind::Keyword(K::Function) if mode == CreateMode::Alter => ("ALTER FUNCTION", Self::create_function),
            TokenKind::Keyword(K::Function) => ("CREATE FUNCTION", Self::create_function),
            TokenKind::Keyword(K::View) if mode == CreateMode::Alter => ("ALTER VIEW", Self::create_view),
            TokenKind::Keyword(K::View) => ("CREATE VIEW", Self::create_view),
            TokenKind::Keyword(K::Trigger) if mode == CreateMode::Alter => ("ALTER TRIGGER", Self::create_trigger),
            TokenKind::Keyword(K::Trigger) => ("CREATE TRIGGER", Self::create_trigger),
            _ => return Ok(None),
        };
        self.must_be_first(what)?;
        self.position += ahead + 1;
        parse(self, mode).map(Some)
    }

    /// ALTER; `None`, with nothing taken, if the object has no tree.
    pub(crate) fn alter(&mut self) -> Parsed<Option<StmtKind>> {
        if let Some(parsed) = self.create_module(1, CreateMode::Alter)? {
            return Ok(Some(parsed));
        }
        if self.word_at(1, "DATABASE") && (self.word_at(2, "AUDIT") || self.word_at(2, "ENCRYPTION") || self.word_at(3, "CREDENTIAL")) {
            return Ok(None);
        }
        let word = self.text_at(1).to_ascii_uppercase();
        let parse: fn(&mut Self) -> Parsed<StmtKind> = match word.as_str() {
            "TABLE" => Self::alter_table,
            "INDEX" => Self::alter_index,
            "DATABASE" => Self::alter_database,
            "SCHEMA" => Self::alter_schema,
            "SEQUENCE" => |p| p.sequence().map(|sequence| StmtKind::AlterSequence(Box::new(sequence))),
            "LOGIN" => Self::alter_login,
            "USER" => Self::alter_user,
            "ROLE" => |p| p.alter_role(crate::ast::RoleKind::Database),
            "SERVER" if self.word_at(2, "ROLE") => |p| {
                p.advance();
                p.alter_role(crate::ast::RoleKind::Server)
            },
            "AUTHORIZATION" => Self::alter_authorization,
            "EVENT" if self.word_at(2, "SESSION") => |p| {
                p.advance();
                p.alter_event_session()
            },
            _ => return Ok(None),
        };
        self.position += 2;
        parse(self).map(Some)
    }

    /// DROP; `None`, with nothing taken, if the object has no tree.
    pub(crate) fn drop_statement(&mut self) -> Parsed<Option<StmtKind>> {
        if self.keyword_at(1, K::Index) {
            self.position += 2;
            return self.drop_index().map(Some);
        }
        if self.keyword_at(1, K::Statistics) {
            self.position += 2;
            return self.comma_list(Self::object_name).map(|names| Some(StmtKind::DropStatistics(names)));
        }
        if self.word_at(1, "EVENT") && self.word_at(2, "SESSION") {
            self.position += 3;
            return self.drop_event_session().map(Some);
        }
        let database =
            self.keyword_at(1, K::Database) && !(self.word_at(2, "AUDIT") || self.word_at(2, "ENCRYPTION") || self.word_at(2, "SCOPED"));
        let found = DROPS.iter().find(|(words, _)| words.iter().enumerate().all(|(ahead, word)| self.word_at(1 + ahead, word)));
        let (words, kind) = match found {
            Some((words, kind)) => (words.len(), *kind),
            None if database => (1, DropKind::Database),
            None => return Ok(None),
        };
        self.position += 1 + words;
        let if_exists = self.eat_words(&["IF", "EXISTS"]);
        let names = self.comma_list(Self::object_name)?;
        let mut scope = None;
        if kind == DropKind::Trigger && self.eat_keyword(K::On) {
            scope = Some(if self.eat_keyword(K::Database) {
                "ON DATABASE".to_owned()
            } else {
                self.expect_words(&["ALL", "SERVER"])?;
                "ON ALL SERVER".to_owned()
            });
        } else if kind == DropKind::Assembly {
            let _ = self.eat_words(&["WITH", "NO", "DEPENDENTS"]);
        }
        Ok(Some(StmtKind::Drop(Box::new(DropObject { kind, if_exists, names, scope }))))
    }

    fn create_schema(&mut self) -> Parsed<StmtKind> {
        // The two words are taken already.
        self.position -= 2;
        self.must_be_first("CREATE SCHEMA")?;
        self.position += 2;
        let name = if self.at_keyword(K::Authorization) { None } else { Some(self.ident()?) };
        let authorization = if self.eat_keyword(K::Authorization) { Some(self.ident()?) } else { None };
        let mut elements: Vec<Stmt> = Vec::new();
        loop {
            let element = match self.kind() {
                TokenKind::Keyword(K::Create) => self.keyword_at(1, K::Table) || self.keyword_at(1, K::View),
                TokenKind::Keyword(K::Grant | K::Deny | K::Revoke) => true,
                _ => false,
            };
            if !element {
                break;
            }
            elements.push(self.schema_element()?);
        }
        self.must_be_last()?;
        Ok(StmtKind::CreateSchema(Box::new(CreateSchema { name, authorization, elements })))
    }

    /// A statement within CREATE SCHEMA. A view there is not the first of its batch.
    fn schema_element(&mut self) -> Parsed<Stmt> {
        let mark = self.position;
        if self.keyword_at(1, K::View) {
            self.position += 2;
            let name = self.object_name()?;
            let columns = if self.at(TokenKind::LeftParen) { self.ident_list()? } else { Vec::new() };
            self.expect_keyword(K::As)?;
            let query = Box::new(self.query(false)?);
            let view = crate::ast::CreateView { mode: CreateMode::Create, name, columns, options: Vec::new(), query, check_option: false };
            return Ok(Stmt { kind: StmtKind::CreateView(Box::new(view)), span: self.span_since(mark) });
        }
        self.statement()
    }

    fn alter_schema(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        self.expect_word("TRANSFER")?;
        let class = self.securable_class()?;
        let object = self.object_name()?;
        Ok(StmtKind::AlterSchema(Box::new(AlterSchema { name, class, object })))
    }

    fn sequence(&mut self) -> Parsed<Sequence> {
        let mut sequence = Sequence {
            name: self.object_name()?,
            data_type: None,
            start: None,
            restart: None,
            increment: None,
            minimum: None,
            maximum: None,
            cycle: None,
            cache: None,
        };
        if self.eat_keyword(K::As) {
            sequence.data_type = Some(self.data_type()?);
        }
        while self.sequence_option(&mut sequence)? {}
        Ok(sequence)
    }

    fn sequence_option(&mut self, sequence: &mut Sequence) -> Parsed<bool> {
        let no = self.at_word("NO") && ["MINVALUE", "MAXVALUE", "CYCLE", "CACHE"].iter().any(|word| self.word_at(1, word));
        if no {
            self.advance();
        }
        let number = |p: &mut Self| -> Parsed<Option<Expr>> { if no { Ok(None) } else { p.signed_number().map(Some) } };
        if self.eat_words(&["START", "WITH"]) {
            sequence.start = Some(self.signed_number()?);
        } else if self.eat_word("RESTART") {
            sequence.restart = Some(if self.eat_keyword(K::With) { Some(self.signed_number()?) } else { None });
        } else if self.eat_words(&["INCREMENT", "BY"]) {
            sequence.increment = Some(self.signed_number()?);
        } else if self.eat_word("MINVALUE") {
            sequence.minimum = Some(number(self)?);
        } else if self.eat_word("MAXVALUE") {
            sequence.maximum = Some(number(self)?);
        } else if self.eat_word("CYCLE") {
            sequence.cycle = Some(!no);
        } else if self.eat_word("CACHE") {
            sequence.cache = Some(match self.kind() {
                _ if no => SequenceCache::NoCache,
                TokenKind::Integer => SequenceCache::Size(self.signed_number()?),
                _ => SequenceCache::Default,
            });
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn create_synonym(&mut self) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        self.expect_keyword(K::For)?;
        let object = self.object_name()?;
        Ok(StmtKind::CreateSynonym(Box::new(CreateSynonym { name, object })))
    }

    fn create_type(&mut self) -> Parsed<StmtKind> {
        let name = self.object_name()?;
        let kind = if self.eat_keyword(K::From) {
            let data_type = self.data_type()?;
            CreateTypeKind::Alias { data_type, nullable: self.nullability() }
        } else if self.at_words(&["EXTERNAL", "NAME"]) {
            CreateTypeKind::External(self.external_name()?)
        } else {
            self.expect_keyword(K::As)?;
            self.expect_keyword(K::Table)?;
            let body = self.table_body()?;
            let with = self.at_keyword(K::With) && self.kind_at(1) == TokenKind::LeftParen && self.eat_keyword(K::With);
            CreateTypeKind::Table { body, options: if with { self.option_list()? } else { Vec::new() } }
        };
        Ok(StmtKind::CreateType(Box::new(CreateType { name, kind })))
    }

    fn create_partition(&mut self) -> Parsed<Option<StmtKind>> {
        self.position += 2;
        if self.eat_word("SCHEME") {
            let name = self.ident()?;
            self.expect_words(&["AS", "PARTITION"])?;
            let function = self.ident()?;
            let all = self.eat_keyword(K::All);
            self.expect_keyword(K::To)?;
            let filegroups = self.paren_list(Self::partition_filegroup)?;
            return Ok(Some(StmtKind::CreatePartitionScheme(Box::new(CreatePartitionScheme { name, function, all, filegroups }))));
        }
        self.expect_keyword(K::Function)?;
        let name = self.ident()?;
        self.expect(TokenKind::LeftParen)?;
        let data_type = self.data_type()?;
        self.expect(TokenKind::RightParen)?;
        self.expect_words(&["AS", "RANGE"])?;
        let right = self.eat_keyword(K::Right);
        let _ = !right && self.eat_keyword(K::Left);
        self.expect_words(&["FOR", "VALUES"])?;
        self.expect(TokenKind::LeftParen)?;
        let values = if self.at(TokenKind::RightParen) { Vec::new() } else { self.comma_list(Self::expression)? };
        self.expect(TokenKind::RightParen)?;
        Ok(Some(StmtKind::CreatePartitionFunction(Box::new(CreatePartitionFunction { name, data_type, right, values }))))
    }

    /// A filegroup, PRIMARY being a reserved word.
    fn partition_filegroup(&mut self) -> Parsed<crate::ast::Ident> {
        if self.at_keyword(K::Primary) {
            let token = self.advance();
            return Ok(self.ident_of(token));
        }
        self.name_or_string()
    }
}
