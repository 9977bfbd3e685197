//! Procedures, functions, views, triggers, and the small objects beside them. See [`super`] for the rules of the tree.
//!
//! The definition a catalog view shows is the text of the whole batch, comments included: the caller has that text.
#![allow(missing_docs)] // see the module text of `ast`

use super::{DataType, Expr, Ident, ObjectName, OptionItem, Parameter, Query, Stmt, TableBody, Variable};

/// `CREATE`, `ALTER` or `CREATE OR ALTER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreateMode {
    Create,
    Alter,
    CreateOrAlter,
}

/// `PROCEDURE name [;number] [parameters] [WITH options] [FOR REPLICATION] AS body`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateProcedure {
    pub mode: CreateMode,
    pub name: ObjectName,
    pub number: Option<i32>,
    pub parameters: Vec<Parameter>,
    pub options: Vec<ModuleOption>,
    pub for_replication: bool,
    pub body: ModuleBody,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModuleBody {
    Statements(Vec<Stmt>),
    /// `BEGIN ATOMIC WITH (options) ... END`
    Atomic {
        options: Vec<OptionItem>,
        statements: Vec<Stmt>,
    },
    /// `EXTERNAL NAME assembly.class.method`
    External(String),
}

/// `RECOMPILE`, `ENCRYPTION`, `SCHEMABINDING`, `EXECUTE AS ...` ...
#[derive(Debug, Clone, PartialEq)]
pub enum ModuleOption {
    /// In upper case: `RECOMPILE`, `ENCRYPTION`, `SCHEMABINDING`, `NATIVE_COMPILATION`, `VIEW_METADATA`,
    /// `RETURNS NULL ON NULL INPUT`, `CALLED ON NULL INPUT`, `INLINE = ON`, `INLINE = OFF`.
    Word(String),
    ExecuteAs(ModulePrincipal),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModulePrincipal {
    Caller,
    Self_,
    Owner,
    Name(String),
}

/// `FUNCTION name (parameters) RETURNS ... [WITH options] [AS] body`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    pub mode: CreateMode,
    pub name: ObjectName,
    pub parameters: Vec<Parameter>,
    pub returns: FunctionReturns,
    pub options: Vec<ModuleOption>,
    pub body: FunctionBody,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FunctionReturns {
    Scalar {
        data_type: DataType,
        nullable: Option<bool>,
    },
    /// `RETURNS TABLE`
    InlineTable,
    /// `RETURNS @t TABLE ( ... )`
    Table {
        variable: Variable,
        body: TableBody,
    },
    /// `RETURNS TABLE ( ... )` of a CLR function
    ExternalTable(TableBody),
}

#[derive(Debug, Clone, PartialEq)]
pub enum FunctionBody {
    /// `BEGIN ... END`
    Statements(Vec<Stmt>),
    Atomic {
        options: Vec<OptionItem>,
        statements: Vec<Stmt>,
    },
    /// `RETURN query`
    Query(Box<Query>),
    External(String),
}

/// `VIEW name [(columns)] [WITH options] AS query [WITH CHECK OPTION]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    pub mode: CreateMode,
    pub name: ObjectName,
    pub columns: Vec<Ident>,
    pub options: Vec<ModuleOption>,
    pub query: Box<Query>,
    pub check_option: bool,
}

/// `TRIGGER name ON target [WITH options] {FOR | AFTER | INSTEAD OF} events [NOT FOR REPLICATION] AS body`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTrigger {
    pub mode: CreateMode,
    pub name: ObjectName,
    pub target: TriggerTarget,
    pub options: Vec<ModuleOption>,
    pub instead_of: bool,
    /// `INSERT`, `UPDATE`, `DELETE`, or DDL events, in upper case.
    pub events: Vec<String>,
    pub not_for_replication: bool,
    pub body: ModuleBody,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TriggerTarget {
    Object(ObjectName),
    Database,
    AllServer,
}

/// `{ENABLE | DISABLE} TRIGGER {ALL | names} ON target`; empty names are ALL.
#[derive(Debug, Clone, PartialEq)]
pub struct EnableTrigger {
    pub enable: bool,
    pub names: Vec<ObjectName>,
    pub target: TriggerTarget,
}

/// `CREATE SCHEMA [name] [AUTHORIZATION owner] [elements]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSchema {
    /// Without one the schema has its owner's name.
    pub name: Option<Ident>,
    pub authorization: Option<Ident>,
    /// CREATE TABLE, CREATE VIEW, GRANT, REVOKE and DENY statements within.
    pub elements: Vec<Stmt>,
}

/// `ALTER SCHEMA name TRANSFER [class ::] object`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterSchema {
    pub name: Ident,
    pub class: Option<String>,
    pub object: ObjectName,
}

/// `CREATE | ALTER SEQUENCE name [AS type] [START WITH n] [INCREMENT BY n] [MINVALUE n] ...`
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    pub name: ObjectName,
    pub data_type: Option<DataType>,
    pub start: Option<Expr>,
    /// `RESTART [WITH n]`
    pub restart: Option<Option<Expr>>,
    pub increment: Option<Expr>,
    /// `Some(None)` is NO MINVALUE.
    pub minimum: Option<Option<Expr>>,
    pub maximum: Option<Option<Expr>>,
    pub cycle: Option<bool>,
    pub cache: Option<SequenceCache>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SequenceCache {
    NoCache,
    Default,
    Size(Expr),
}

/// `CREATE SYNONYM name FOR object`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSynonym {
    pub name: ObjectName,
    pub object: ObjectName,
}

/// `CREATE TYPE name {FROM type [NULL | NOT NULL] | AS TABLE ( ... ) [WITH (...)] | EXTERNAL NAME ...}`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateType {
    pub name: ObjectName,
    pub kind: CreateTypeKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CreateTypeKind {
    Alias { data_type: DataType, nullable: Option<bool> },
    Table { body: TableBody, options: Vec<OptionItem> },
    External(String),
}

/// `CREATE PARTITION FUNCTION name (type) AS RANGE [LEFT | RIGHT] FOR VALUES (...)`
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionFunction {
    pub name: Ident,
    pub data_type: DataType,
    pub right: bool,
    pub values: Vec<Expr>,
}

/// `CREATE PARTITION SCHEME name AS PARTITION function [ALL] TO (filegroups)`
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionScheme {
    pub name: Ident,
    pub function: Ident,
    pub all: bool,
    pub filegroups: Vec<Ident>,
}
