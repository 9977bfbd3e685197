//! Statements that change rows. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{
    AssignOp, ColumnName, DataType, Execute, ExecuteString, Expr, Ident, ObjectName, OptionItem, Query, QueryHint, SelectItem, Span,
    TableHint, TableRef, Top, Variable, With,
};

/// What a statement changes.
#[derive(Debug, Clone, PartialEq)]
pub struct DmlTarget {
    pub kind: DmlTargetKind,
    pub hints: Vec<TableHint>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DmlTargetKind {
    /// A table, a view, or an alias of the FROM clause.
    Name(ObjectName),
    /// `@t`
    Variable(Variable),
    /// `OPENQUERY(...)`, `OPENROWSET(...)`.
    Rowset(Box<TableRef>),
}

/// `[WITH ...] INSERT [TOP (n)] [INTO] target [(columns)] [OUTPUT ...] source [OPTION (...)]`
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    pub with: Option<With>,
    pub top: Option<Top>,
    pub target: DmlTarget,
    pub columns: Vec<Ident>,
    pub output: Vec<Output>,
    pub source: InsertSource,
    pub hints: Vec<QueryHint>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (...), (...)`; a value may be [`super::ExprKind::Default`].
    Values(Vec<Vec<Expr>>),
    DefaultValues,
    Query(Box<Query>),
    Execute(Box<Execute>),
    ExecuteString(Box<ExecuteString>),
}

/// `OUTPUT items [INTO target [(columns)]]`; a statement may have one with INTO and one without.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub items: Vec<SelectItem>,
    pub into: Option<OutputInto>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OutputInto {
    pub target: DmlTargetKind,
    pub columns: Vec<Ident>,
}

/// `[WITH ...] UPDATE [TOP (n)] target SET ... [OUTPUT ...] [FROM ...] [WHERE ...] [OPTION (...)]`
///
/// `WHERE CURRENT OF c` is [`super::ExprKind::CurrentOf`].
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub with: Option<With>,
    pub top: Option<Top>,
    pub target: DmlTarget,
    pub assignments: Vec<Assignment>,
    pub output: Vec<Output>,
    pub from: Vec<TableRef>,
    pub where_: Option<Expr>,
    pub hints: Vec<QueryHint>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    /// `column op value`
    Column { column: ColumnName, op: AssignOp, value: Expr },
    /// `@v op value` and `@v = column op value`
    Variable { variable: Variable, column: Option<ColumnName>, op: AssignOp, value: Expr },
    /// `column.WRITE(value, offset, length)` and other mutators
    Method { column: ColumnName, method: Ident, arguments: Vec<Expr> },
}

/// `[WITH ...] DELETE [TOP (n)] [FROM] target [OUTPUT ...] [FROM ...] [WHERE ...] [OPTION (...)]`
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub with: Option<With>,
    pub top: Option<Top>,
    pub target: DmlTarget,
    pub output: Vec<Output>,
    pub from: Vec<TableRef>,
    pub where_: Option<Expr>,
    pub hints: Vec<QueryHint>,
}

/// `[WITH ...] MERGE [TOP (n)] [INTO] target [AS alias] USING source ON condition WHEN ... [OUTPUT ...] [OPTION (...)];`
#[derive(Debug, Clone, PartialEq)]
pub struct Merge {
    pub with: Option<With>,
    pub top: Option<Top>,
    pub target: DmlTarget,
    pub alias: Option<Ident>,
    pub source: TableRef,
    pub on: Expr,
    pub clauses: Vec<MergeClause>,
    pub output: Vec<Output>,
    pub hints: Vec<QueryHint>,
}

/// `WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action`
#[derive(Debug, Clone, PartialEq)]
pub struct MergeClause {
    pub when: MergeWhen,
    pub condition: Option<Expr>,
    pub action: MergeAction,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MergeWhen {
    Matched,
    NotMatchedByTarget,
    NotMatchedBySource,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MergeAction {
    Update(Vec<Assignment>),
    Delete,
    /// An empty row is `DEFAULT VALUES`.
    Insert {
        columns: Vec<Ident>,
        values: Vec<Expr>,
    },
}

/// `TRUNCATE TABLE name [WITH (PARTITIONS (1, 3 TO 5))]`
#[derive(Debug, Clone, PartialEq)]
pub struct TruncateTable {
    pub table: ObjectName,
    pub partitions: Vec<(Expr, Option<Expr>)>,
}

/// `BULK INSERT table FROM 'file' [WITH (options)]`
#[derive(Debug, Clone, PartialEq)]
pub struct BulkInsert {
    pub table: ObjectName,
    pub file: String,
    /// `FIELDTERMINATOR = ','`, `FIRSTROW = 2`, `TABLOCK`, `FORMAT = 'CSV'` ...
    pub options: Vec<OptionItem>,
    /// `ORDER (column [ASC | DESC], ...)`; `true` is descending.
    pub order: Vec<(Ident, bool)>,
}

/// `INSERT BULK table (column type [COLLATE c], ...) [WITH (options)]`
#[derive(Debug, Clone, PartialEq)]
pub struct InsertBulk {
    pub table: ObjectName,
    pub columns: Vec<InsertBulkColumn>,
    pub options: Vec<OptionItem>,
    /// `ORDER (column [ASC | DESC], ...)`; `true` is descending.
    pub order: Vec<(Ident, bool)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct InsertBulkColumn {
    pub name: Ident,
    pub data_type: DataType,
    pub collation: Option<Ident>,
}
