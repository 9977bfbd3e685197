//! The syntax tree: what a batch says, before anybody asks what it means.
//!
//! ```text
//! Batch ── statements: Vec<Stmt> ── Stmt { kind: StmtKind, span }
//!                                      └─ Query, Select, Expr { kind: ExprKind, span }, DDL structs ...
//! ```
//!
//! 1. Every statement, expression and name carries a [`Span`]: byte offsets into the batch text and the line of the first
//!    byte. The written text of any node is `&text[span.start..span.end]`; a module's definition is the text of its batch.
//! 2. Names keep the characters the user wrote, quotes undone, case kept. Comparing them is the binder's work, because
//!    that needs the collation of the catalog.
//! 3. Chains that programs generate by the thousand (AND, OR, UNION, VALUES rows) are flat lists, and everything else is
//!    no deeper than [`crate::limits`] allows, so walking or dropping a tree by recursion is safe.
//!
//! The tree knows no catalog: `f.value(x)` is a name and arguments, and whether `f` is a schema or a column is asked later.
//! Field names are the words of the grammar quoted above each structure, which is why they carry no comments of their own.

mod control;
mod database;
mod dml;
mod expr;
mod index;
mod maintenance;
mod module;
mod query;
mod security;
mod table;

pub use control::*;
pub use database::*;
pub use dml::*;
pub use expr::*;
pub use index::*;
pub use maintenance::*;
pub use module::*;
pub use query::*;
pub use security::*;
pub use table::*;

/// Where a node stands in the batch text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
    /// Line of the first byte, from 1.
    pub line: u32,
}

impl Span {
    /// The written text of this node, where `text` is the text that was parsed.
    #[must_use]
    pub fn slice<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }

    /// From the start of `self` to the end of `last`.
    #[must_use]
    pub fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end.max(self.end), line: self.line }
    }
}

/// How an identifier was delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Quote {
    /// A regular identifier.
    #[default]
    None,
    /// `[name]`.
    Bracket,
    /// `"name"`.
    Double,
}

/// An identifier: the text between its delimiters with doubled delimiters undone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ident {
    /// The name.
    pub text: String,
    /// How it was delimited.
    pub quote: Quote,
    /// Where it stands.
    pub span: Span,
}

impl Ident {
    /// A regular identifier made by the engine rather than read from a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), quote: Quote::None, span: Span::default() }
    }

    /// True if this is the undelimited or delimited word `word`, ASCII case apart.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

/// `[server.] [database.] [schema.] name`; `db..t` has a database and no schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ObjectName {
    /// Linked server.
    pub server: Option<Ident>,
    /// Database.
    pub database: Option<Ident>,
    /// Schema.
    pub schema: Option<Ident>,
    /// The object itself.
    pub name: Ident,
    /// Where it stands.
    pub span: Span,
}

impl ObjectName {
    /// A one-part name.
    #[must_use]
    pub fn simple(name: Ident) -> Self {
        let span = name.span;
        Self { name, span, ..Self::default() }
    }

    /// True if only the last part was written.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        self.server.is_none() && self.database.is_none() && self.schema.is_none()
    }
}

/// `@name`, without the sign: `text` of `@a` is `@a`, as SQL Server names variables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable {
    /// The name with its `@`.
    pub name: String,
    /// Where it stands.
    pub span: Span,
}

/// A number in parentheses behind a type name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeParameter {
    /// A length, precision or scale.
    Number(u32),
    /// `max`.
    Max,
}

/// A data type as written. Spellings of several words are reduced to one: `double precision` is `float`, `national
/// char varying(n)` is `nvarchar(n)`, `binary varying` is `varbinary`. Synonyms (`dec`, `integer`, `rowversion`) stay.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The type's name, system or user-defined, with its schema if one was written.
    pub name: ObjectName,
    /// Length, or precision and scale.
    pub parameters: Vec<TypeParameter>,
    /// `xml([CONTENT | DOCUMENT] collection)`.
    pub xml_collection: Option<ObjectName>,
    /// Where it stands.
    pub span: Span,
}

/// A statement and where it stands (its terminating semicolon not included).
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// What it says.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// Every statement.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each variant is the statement of its name; its structure quotes the grammar
pub enum StmtKind {
    // Queries and data (query.rs, dml.rs)
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    TruncateTable(Box<TruncateTable>),
    BulkInsert(Box<BulkInsert>),
    /// `INSERT BULK`, sent by drivers before the rows of a bulk load.
    InsertBulk(Box<InsertBulk>),

    // Control of flow (control.rs)
    Block(Vec<Stmt>),
    If(Box<If>),
    While(Box<While>),
    Break,
    Continue,
    Goto(Ident),
    Label(Ident),
    Return(Option<Expr>),
    TryCatch(Box<TryCatch>),
    Throw(Option<Box<Throw>>),
    RaiseError(Box<RaiseError>),
    Print(Expr),
    WaitFor(Box<WaitFor>),
    Declare(Vec<Declaration>),
    DeclareTable(Box<DeclareTable>),
    DeclareCursor(Box<DeclareCursor>),
    SetVariable(Box<SetVariable>),
    SetCursor(Box<SetCursor>),
    SetOption(SetOption),
    Execute(Box<Execute>),
    ExecuteString(Box<ExecuteString>),
    Use(Ident),
    OpenCursor(CursorName),
    CloseCursor(CursorName),
    DeallocateCursor(CursorName),
    Fetch(Box<Fetch>),

    // Transactions (control.rs)
    BeginTransaction(BeginTransaction),
    CommitTransaction(CommitTransaction),
    RollbackTransaction(RollbackTransaction),
    SaveTransaction(TransactionName),

    // Tables (table.rs)
    CreateTable(Box<CreateTable>),
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE | VIEW | PROCEDURE | ... [IF EXISTS] name, ...`: everything dropped by name alone.
    Drop(Box<DropObject>),
    // Indexes and statistics (index.rs)
    CreateIndex(Box<CreateIndex>),
    AlterIndex(Box<AlterIndex>),
    DropIndex(Box<DropIndex>),
    CreateStatistics(Box<CreateStatistics>),
    UpdateStatistics(Box<UpdateStatistics>),
    DropStatistics(Vec<ObjectName>),

    // Databases (database.rs)
    CreateDatabase(Box<CreateDatabase>),
    AlterDatabase(Box<AlterDatabase>),
    AlterDatabaseScoped(Box<AlterDatabaseScoped>),

    // Modules and small objects (module.rs)
    CreateProcedure(Box<CreateProcedure>),
    CreateFunction(Box<CreateFunction>),
    CreateView(Box<CreateView>),
    CreateTrigger(Box<CreateTrigger>),
    /// `ENABLE | DISABLE TRIGGER`.
    EnableTrigger(Box<EnableTrigger>),
    CreateSchema(Box<CreateSchema>),
    AlterSchema(Box<AlterSchema>),
    CreateSequence(Box<Sequence>),
    AlterSequence(Box<Sequence>),
    CreateSynonym(Box<CreateSynonym>),
    CreateType(Box<CreateType>),
    CreatePartitionFunction(Box<CreatePartitionFunction>),
    CreatePartitionScheme(Box<CreatePartitionScheme>),

    // Security (security.rs)
    CreateLogin(Box<Login>),
    AlterLogin(Box<Login>),
    CreateUser(Box<CreateUser>),
    AlterUser(Box<AlterUser>),
    CreateRole(Box<CreateRole>),
    AlterRole(Box<AlterRole>),
    AlterAuthorization(Box<AlterAuthorization>),
    Permission(Box<Permission>),
    ExecuteAs(Box<ExecuteAs>),
    Revert(Option<Expr>),
    SetUser(Option<Expr>),

    // Maintenance (maintenance.rs)
    Backup(Box<Backup>),
    Restore(Box<Restore>),
    Dbcc(Box<Dbcc>),
    Checkpoint(Option<Expr>),
    Kill(Box<Kill>),
    Reconfigure {
        with_override: bool,
    },
    Shutdown {
        no_wait: bool,
    },
    CreateEventSession(Box<EventSession>),
    AlterEventSession(Box<AlterEventSession>),
    DropEventSession(Box<DropEventSession>),

    /// `{call name(arguments)}` and `{? = call name(arguments)}` of ODBC.
    OdbcCall(Box<Execute>),
    /// A statement of SQL Server that is recognised by its first words but has no tree yet; the engine answers by name.
    Unbuilt(Unbuilt),
}

/// The words a recognised but unbuilt statement begins with, such as `CREATE FULLTEXT INDEX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbuilt {
    /// The leading words in upper case, one blank between them.
    pub name: String,
}

/// One `NAME`, `NAME = value` or `NAME (value)` of an option list whose meaning is the engine's.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionItem {
    /// The option's word or words in upper case, one blank between them.
    pub name: String,
    /// What stands behind it.
    pub value: OptionValue,
    /// Where it stands.
    pub span: Span,
}

/// What stands behind an option's name.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// Nothing: the option's presence says it.
    None,
    /// `ON`, `OFF`.
    Switch(bool),
    /// A literal, variable or signed number.
    Expr(Expr),
    /// A word, such as `FULL` or `AUTO`, in upper case.
    Word(String),
    /// A number with a unit, such as `10 MB`, `5 %` or `60 MINUTES`; the unit in upper case.
    Quantity(Expr, String),
    /// A parenthesised list of further options.
    List(Vec<OptionItem>),
    /// `ON ( ... )`, `OFF ( ... )`.
    SwitchList(bool, Vec<OptionItem>),
}
