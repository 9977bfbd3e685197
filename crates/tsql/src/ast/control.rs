//! Variables, control of flow, cursors, transactions, EXECUTE, SET. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{AssignOp, DataType, Expr, ForClause, Ident, ObjectName, Query, Span, Stmt, TableBody, Variable};

/// `IF condition then [ELSE otherwise]`
#[derive(Debug, Clone, PartialEq)]
pub struct If {
    pub condition: Expr,
    pub then: Stmt,
    pub otherwise: Option<Stmt>,
}

/// `WHILE condition body`
#[derive(Debug, Clone, PartialEq)]
pub struct While {
    pub condition: Expr,
    pub body: Stmt,
}

/// `BEGIN TRY body END TRY BEGIN CATCH handler END CATCH`
#[derive(Debug, Clone, PartialEq)]
pub struct TryCatch {
    pub body: Vec<Stmt>,
    pub handler: Vec<Stmt>,
}

/// `THROW number, message, state`
#[derive(Debug, Clone, PartialEq)]
pub struct Throw {
    pub number: Expr,
    pub message: Expr,
    pub state: Expr,
}

/// `RAISERROR (message, severity, state [, arguments]) [WITH LOG, NOWAIT, SETERROR]`
#[derive(Debug, Clone, PartialEq)]
pub struct RaiseError {
    pub message: Expr,
    pub severity: Expr,
    pub state: Expr,
    pub arguments: Vec<Expr>,
    pub log: bool,
    pub no_wait: bool,
    pub set_error: bool,
}

/// `WAITFOR DELAY | TIME value`
#[derive(Debug, Clone, PartialEq)]
pub struct WaitFor {
    pub kind: WaitForKind,
    pub value: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitForKind {
    Delay,
    Time,
}

/// One variable of `DECLARE @v [AS] type [= value], ...`; a cursor variable has the type `cursor`.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    pub variable: Variable,
    pub data_type: DataType,
    pub value: Option<Expr>,
}

/// `DECLARE @t [AS] TABLE ( ... )`
#[derive(Debug, Clone, PartialEq)]
pub struct DeclareTable {
    pub variable: Variable,
    pub body: TableBody,
}

/// `DECLARE name [INSENSITIVE] [SCROLL] CURSOR [options] FOR query [FOR READ ONLY | UPDATE [OF ...]]`
#[derive(Debug, Clone, PartialEq)]
pub struct DeclareCursor {
    pub name: Ident,
    pub cursor: CursorDefinition,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CursorDefinition {
    /// `LOCAL`, `GLOBAL`, `FORWARD_ONLY`, `SCROLL`, `STATIC`, `KEYSET`, `DYNAMIC`, `FAST_FORWARD`, `READ_ONLY`,
    /// `SCROLL_LOCKS`, `OPTIMISTIC`, `TYPE_WARNING`, `INSENSITIVE`.
    pub options: Vec<String>,
    pub query: Box<Query>,
    pub for_clause: Option<ForClause>,
}

/// `[GLOBAL] name` or `@variable`
#[derive(Debug, Clone, PartialEq)]
pub enum CursorName {
    Name { name: Ident, global: bool },
    Variable(Variable),
}

/// `FETCH [NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n] [FROM] cursor [INTO @v, ...]`
#[derive(Debug, Clone, PartialEq)]
pub struct Fetch {
    pub direction: FetchDirection,
    pub cursor: CursorName,
    pub into: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FetchDirection {
    Next,
    Prior,
    First,
    Last,
    Absolute(Expr),
    Relative(Expr),
}

/// `SET @v op value`
#[derive(Debug, Clone, PartialEq)]
pub struct SetVariable {
    pub variable: Variable,
    pub op: AssignOp,
    pub value: Expr,
    /// `SET @v.Property = value`; of `SET @v.method(arguments)` the method's name, the call being `value`.
    pub property: Option<Ident>,
}

/// `SET @c = CURSOR ... FOR query`
#[derive(Debug, Clone, PartialEq)]
pub struct SetCursor {
    pub variable: Variable,
    pub cursor: CursorDefinition,
}

/// `SET option ...`
#[derive(Debug, Clone, PartialEq)]
pub enum SetOption {
    /// `SET NOCOUNT, XACT_ABORT ON`: names in upper case.
    Switch { names: Vec<String>, on: bool },
    /// `SET STATISTICS IO, TIME ON`
    Statistics { names: Vec<String>, on: bool },
    /// `SET OFFSETS SELECT, FROM ON`
    Offsets { names: Vec<String>, on: bool },
    /// `SET IDENTITY_INSERT table ON`
    IdentityInsert { table: ObjectName, on: bool },
    /// `SET TRANSACTION ISOLATION LEVEL ...`
    IsolationLevel(IsolationLevel),
    /// `SET ROWCOUNT n`, `LOCK_TIMEOUT`, `TEXTSIZE`, `DATEFIRST`, `DATEFORMAT`, `LANGUAGE`, `DEADLOCK_PRIORITY`,
    /// `CONTEXT_INFO`, `QUERY_GOVERNOR_COST_LIMIT`, `FIPS_FLAGGER`: a bare word is a string literal.
    Value { name: String, value: Expr },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Snapshot,
    Serializable,
}

/// `[EXEC] [@return =] module [;number] arguments [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct Execute {
    pub return_variable: Option<Variable>,
    pub module: ExecuteModule,
    /// `;number` behind the name.
    pub number: Option<i32>,
    pub arguments: Vec<Argument>,
    pub recompile: bool,
    pub result_sets: Option<ResultSets>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExecuteModule {
    Name(ObjectName),
    /// `EXEC @name`
    Variable(Variable),
}

/// `[@parameter =] value [OUTPUT]`; `DEFAULT` is [`super::ExprKind::Default`]; a bare word is a string literal.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    pub parameter: Option<Variable>,
    pub value: Expr,
    pub output: bool,
}

/// `EXEC (text + ...  [, arguments]) [AS USER | LOGIN = 'name'] [AT server]`
#[derive(Debug, Clone, PartialEq)]
pub struct ExecuteString {
    /// The operands of the concatenation as one expression.
    pub text: Expr,
    pub arguments: Vec<Argument>,
    /// `true` is LOGIN.
    pub as_principal: Option<(bool, String)>,
    pub at: Option<Ident>,
    pub result_sets: Option<ResultSets>,
}

/// `WITH RESULT SETS ...`
#[derive(Debug, Clone, PartialEq)]
pub enum ResultSets {
    Undefined,
    None,
    Definitions(Vec<ResultSet>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ResultSet {
    Columns(Vec<ResultColumn>),
    AsObject(ObjectName),
    AsType(ObjectName),
    AsForXml,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResultColumn {
    pub name: Ident,
    pub data_type: DataType,
    pub collation: Option<Ident>,
    /// `Some(true)` is NULL, `Some(false)` NOT NULL.
    pub nullable: Option<bool>,
}

/// A transaction's or savepoint's name.
#[derive(Debug, Clone, PartialEq)]
pub enum TransactionName {
    Name(Ident),
    Variable(Variable),
}

/// `BEGIN [DISTRIBUTED] TRAN [name [WITH MARK ['text']]]`
#[derive(Debug, Clone, PartialEq)]
pub struct BeginTransaction {
    pub distributed: bool,
    pub name: Option<TransactionName>,
    /// `Some("")` is WITH MARK without a text.
    pub mark: Option<String>,
}

/// `COMMIT [TRAN [name]] [WITH (DELAYED_DURABILITY = ON)]`, `COMMIT WORK`
#[derive(Debug, Clone, PartialEq)]
pub struct CommitTransaction {
    pub name: Option<TransactionName>,
    pub delayed_durability: Option<bool>,
}

/// `ROLLBACK [TRAN [name]]`, `ROLLBACK WORK`
#[derive(Debug, Clone, PartialEq)]
pub struct RollbackTransaction {
    pub name: Option<TransactionName>,
}

/// A parameter of a procedure, function or `sp_executesql` declaration list.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    pub variable: Variable,
    pub data_type: DataType,
    /// `VARYING`, of a cursor parameter.
    pub varying: bool,
    /// `NULL` or `NOT NULL` behind the type; `Some(true)` is NULL.
    pub nullable: Option<bool>,
    pub default: Option<Expr>,
    pub output: bool,
    pub read_only: bool,
    pub span: Span,
}
