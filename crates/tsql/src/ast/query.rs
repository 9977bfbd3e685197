//! Queries: WITH, SELECT, set operations, FROM. See [`super`] for the rules of the tree.
//!
//! ```text
//! query ::= [WITH cte, ...] body [ORDER BY ...] [OFFSET ... FETCH ...] [FOR ...] [OPTION (...)]
//! body  ::= SELECT ... | ( query ) | body {UNION [ALL] | EXCEPT | INTERSECT} body
//! ```
#![allow(missing_docs)] // see the module text of `ast`

use super::{DataType, Delete, Expr, Ident, Insert, Merge, ObjectName, OptionItem, OrderItem, Span, Update, Variable, WindowSpec};

/// A query with everything around its body.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub offset: Option<Offset>,
    pub for_clause: Option<ForClause>,
    pub hints: Vec<QueryHint>,
    pub span: Span,
}

/// `WITH [XMLNAMESPACES (...),] name [(columns)] AS (query), ...`
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    pub ctes: Vec<Cte>,
    /// `'uri' AS prefix`; `DEFAULT 'uri'` has no prefix.
    pub xml_namespaces: Vec<(String, Option<Ident>)>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cte {
    pub name: Ident,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// A parenthesised query; its ORDER BY, if any, came with a TOP or OFFSET.
    Paren(Box<Query>),
    /// Two or more operands, folded from the left: `a EXCEPT b EXCEPT c` is `(a EXCEPT b) EXCEPT c`. A chain of one
    /// operation is one node; INTERSECT binds tighter than the others.
    Set {
        op: SetOp,
        operands: Vec<QueryBody>,
        span: Span,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOp {
    Union,
    UnionAll,
    Except,
    Intersect,
}

/// `SELECT [ALL | DISTINCT] [TOP ...] items [INTO t] [FROM ...] [WHERE ...] [GROUP BY ...] [HAVING ...] [WINDOW ...]`
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Top>,
    pub items: Vec<SelectItem>,
    pub into: Option<SelectInto>,
    /// Several members are the comma join.
    pub from: Vec<TableRef>,
    pub where_: Option<Expr>,
    pub group_by: Option<GroupBy>,
    pub having: Option<Expr>,
    pub windows: Vec<NamedWindow>,
    pub span: Span,
}

/// `INTO table [ON filegroup]`
#[derive(Debug, Clone, PartialEq)]
pub struct SelectInto {
    pub table: ObjectName,
    pub filegroup: Option<Ident>,
}

/// `TOP n [PERCENT] [WITH TIES]`; `parenthesised` because only a constant may stand bare.
#[derive(Debug, Clone, PartialEq)]
pub struct Top {
    pub count: Expr,
    pub percent: bool,
    pub with_ties: bool,
    pub parenthesised: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// `*`, `t.*`
    Wildcard { table: Option<ObjectName>, span: Span },
    /// `expr [[AS] alias]`, `alias = expr`. A string literal may be an alias; its quotes are undone then.
    Expr { expr: Expr, alias: Option<Ident> },
    /// `@v = expr`, `@v += expr`
    Assign { variable: Variable, op: AssignOp, value: Expr },
}

/// `=`, `+=` ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AssignOp {
    Set,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
}

/// `GROUP BY [ALL] items [WITH ROLLUP | CUBE]`
#[derive(Debug, Clone, PartialEq)]
pub struct GroupBy {
    pub all: bool,
    pub items: Vec<GroupItem>,
    pub with: Option<GroupWith>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupWith {
    Rollup,
    Cube,
}

#[derive(Debug, Clone, PartialEq)]
pub enum GroupItem {
    Expr(Expr),
    /// Each member is one expression or a composite `(a, b)`.
    Rollup(Vec<Vec<Expr>>),
    Cube(Vec<Vec<Expr>>),
    GroupingSets(Vec<GroupItem>),
    /// `()` or `(a, b)`, only inside GROUPING SETS.
    Composite(Vec<Expr>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct NamedWindow {
    pub name: Ident,
    pub spec: WindowSpec,
}

/// `OFFSET n ROWS [FETCH NEXT m ROWS ONLY]`
#[derive(Debug, Clone, PartialEq)]
pub struct Offset {
    pub offset: Expr,
    pub fetch: Option<Expr>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ForClause {
    Browse,
    /// `FOR XML RAW | AUTO | EXPLICIT | PATH ...`: the mode in upper case, its element name, the directives.
    Xml {
        mode: String,
        name: Option<String>,
        options: Vec<OptionItem>,
    },
    /// `FOR JSON AUTO | PATH ...`
    Json {
        mode: String,
        options: Vec<OptionItem>,
    },
    ReadOnly,
    /// `FOR UPDATE [OF columns]`, in a cursor.
    Update(Vec<Expr>),
}

/// One hint of `OPTION (...)`.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryHint {
    /// `HASH JOIN`, `RECOMPILE`, `FORCE ORDER`, `KEEPFIXED PLAN` ...: the words in upper case.
    Words(String),
    /// `MAXDOP 2`, `FAST 10`, `MAXRECURSION 0`, `QUERYTRACEON 8675`, `MAX_GRANT_PERCENT = 5`, `LABEL = 'x'`.
    Value(String, Expr),
    /// `USE HINT ('a', 'b')`
    Use(Vec<String>),
    /// `USE PLAN N'xml'`
    UsePlan(String),
    /// `OPTIMIZE FOR UNKNOWN` (empty) or `OPTIMIZE FOR (@v = 1, @w UNKNOWN)`.
    OptimizeFor(Vec<(Variable, Option<Expr>)>),
    /// `TABLE HINT (name, hints)`
    Table(ObjectName, Vec<TableHint>),
}

/// Something a FROM clause names.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRef {
    pub kind: TableRefKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableRefKind {
    Table(Box<NamedTable>),
    /// `@t`
    Variable {
        variable: Variable,
        alias: Option<Ident>,
        hints: Vec<TableHint>,
    },
    /// `(query) [AS] alias [(columns)]`
    Derived {
        query: Box<Query>,
        alias: Option<Alias>,
    },
    /// `(VALUES (...), ...) [AS] alias (columns)`
    Values {
        rows: Vec<Vec<Expr>>,
        alias: Option<Alias>,
    },
    /// `f(arguments) [WITH (schema)] [AS alias [(columns)]]`, OPENJSON, OPENQUERY, STRING_SPLIT and `::fn_name()` among them.
    Function {
        name: ObjectName,
        arguments: Vec<Expr>,
        /// `WITH (column type ['path'] [AS JSON], ...)` of OPENJSON and OPENXML.
        schema: Vec<RowsetColumn>,
        alias: Option<Alias>,
    },
    /// `x.nodes('path') AS t(c)`: the call is an [`super::ExprKind::Method`].
    Method {
        call: Box<Expr>,
        alias: Option<Alias>,
    },
    OpenRowset(Box<OpenRowset>),
    Join {
        kind: JoinKind,
        /// `LOOP`, `HASH`, `MERGE` or `REMOTE`.
        hint: Option<JoinHint>,
        left: Box<TableRef>,
        right: Box<TableRef>,
        /// Present except for CROSS.
        on: Option<Box<Expr>>,
    },
    /// `left {CROSS | OUTER} APPLY right`
    Apply {
        outer: bool,
        left: Box<TableRef>,
        right: Box<TableRef>,
    },
    Pivot(Box<Pivot>),
    Unpivot(Box<Unpivot>),
    /// `(INSERT | UPDATE | DELETE | MERGE ... OUTPUT ...) AS alias`
    Dml {
        statement: Box<DmlSource>,
        alias: Option<Alias>,
    },
    /// `CONTAINSTABLE`, `FREETEXTTABLE`, `CHANGETABLE` and relatives: the written words between the parentheses.
    Special {
        name: String,
        arguments: String,
        alias: Option<Alias>,
    },
}

/// The statement inside a FROM clause that yields its OUTPUT rows.
#[derive(Debug, Clone, PartialEq)]
pub enum DmlSource {
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
}

/// `name [FOR SYSTEM_TIME ...] [AS alias] [TABLESAMPLE ...] [WITH (hints)]`
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTable {
    pub name: ObjectName,
    pub alias: Option<Ident>,
    pub system_time: Option<ForSystemTime>,
    pub sample: Option<TableSample>,
    pub hints: Vec<TableHint>,
}

/// `alias [(columns)]`
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ForSystemTime {
    AsOf(Expr),
    FromTo(Expr, Expr),
    Between(Expr, Expr),
    ContainedIn(Expr, Expr),
    All,
}

/// `TABLESAMPLE [SYSTEM] (n [PERCENT | ROWS]) [REPEATABLE (seed)]`
#[derive(Debug, Clone, PartialEq)]
pub struct TableSample {
    pub count: Expr,
    pub rows: bool,
    pub repeatable: Option<Expr>,
}

/// One table hint.
#[derive(Debug, Clone, PartialEq)]
pub enum TableHint {
    /// `NOLOCK`, `HOLDLOCK`, `UPDLOCK`, `TABLOCK`, `SERIALIZABLE`, `NOEXPAND`, `KEEPIDENTITY` ...: in upper case.
    Word(String),
    /// `INDEX (name | number, ...)`, `INDEX = name`
    Index(Vec<IndexReference>),
    /// `FORCESEEK [(index (columns))]`
    ForceSeek(Option<(IndexReference, Vec<Ident>)>),
    /// `SPATIAL_WINDOW_MAX_CELLS = n`
    Value(String, Expr),
}

#[derive(Debug, Clone, PartialEq)]
pub enum IndexReference {
    Name(Ident),
    Number(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinHint {
    Loop,
    Hash,
    Merge,
    Remote,
}

/// `input PIVOT (aggregate(arguments) FOR column IN (values)) AS alias`
#[derive(Debug, Clone, PartialEq)]
pub struct Pivot {
    pub input: TableRef,
    pub aggregate: ObjectName,
    pub arguments: Vec<Expr>,
    pub column: super::ColumnName,
    pub values: Vec<Ident>,
    pub alias: Option<Alias>,
}

/// `input UNPIVOT (value FOR column IN (columns)) AS alias`
#[derive(Debug, Clone, PartialEq)]
pub struct Unpivot {
    pub input: TableRef,
    pub value: Ident,
    pub column: Ident,
    pub columns: Vec<super::ColumnName>,
    pub alias: Option<Alias>,
}

/// `name type [COLLATE c] ['path' | number] [AS JSON]`
#[derive(Debug, Clone, PartialEq)]
pub struct RowsetColumn {
    pub name: Ident,
    pub data_type: DataType,
    pub collation: Option<Ident>,
    pub path: Option<Expr>,
    pub as_json: bool,
}

/// `OPENROWSET (BULK 'file', options) [WITH (columns)] [AS alias [(columns)]]` or the provider form.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRowset {
    pub source: OpenRowsetSource,
    pub columns: Vec<RowsetColumn>,
    pub alias: Option<Alias>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OpenRowsetSource {
    /// Options include `SINGLE_BLOB`, `SINGLE_CLOB`, `SINGLE_NCLOB`, `FORMATFILE = '...'`, `FORMAT = 'CSV'`.
    Bulk {
        files: Vec<String>,
        options: Vec<OptionItem>,
    },
    Provider(Vec<Expr>),
}
