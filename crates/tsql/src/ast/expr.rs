//! Expressions and search conditions. See [`super`] for the rules of the tree.
//!
//! A search condition is an expression whose [`ExprKind::is_condition`] holds; the parser admits conditions only where
//! T-SQL does, so that a binder never meets `SELECT a = b + (c LIKE d)`.
#![allow(missing_docs)] // see the module text of `ast`

use super::{DataType, Ident, ObjectName, Query, Span, Variable};

/// An expression and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

/// A constant as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Null,
    /// A whole number that fits `int`. A larger one is `Decimal` of scale 0, as in SQL Server.
    Integer(i32),
    /// Digits with at most one point: `text` is as written, precision counts digits without leading zeros (at least
    /// `scale`, at least 1).
    Decimal {
        text: String,
        precision: u8,
        scale: u8,
    },
    /// `1e3`, `.5E-2`: `text` as written.
    Float(String),
    /// `$12.50`, `-£3`: digits and point without the currency sign and without separators.
    Money(String),
    /// `'text'` or `N'text'` (`national`), quotes undone.
    String {
        value: String,
        national: bool,
    },
    /// `0x0102`; an odd number of digits has a leading zero nibble.
    Binary(Vec<u8>),
    /// `{d '2020-01-31'}`, `{t '10:00:00'}`, `{ts '...'}`, `{guid '...'}` of ODBC.
    Odbc {
        kind: OdbcLiteral,
        value: String,
    },
}

/// The kinds of ODBC literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OdbcLiteral {
    Date,
    Time,
    Timestamp,
    Guid,
}

/// `column`, `table.column`, `schema.table.column`, ...
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnName {
    /// Boxed: most columns have none, and every expression is as large as its largest kind.
    pub table: Option<Box<ObjectName>>,
    pub column: Ident,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Plus,
    Minus,
    BitNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    /// `||`, which SQL Server has from 2025 on.
    Concat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    Equal,
    /// `<>` and `!=`.
    NotEqual,
    Less,
    /// `<=` and `!>`.
    LessOrEqual,
    Greater,
    /// `>=` and `!<`.
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantifier {
    All,
    /// `ANY` and `SOME`.
    Any,
}

/// Functions written without parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Niladic {
    CurrentTimestamp,
    CurrentDate,
    CurrentTime,
    CurrentUser,
    SessionUser,
    SystemUser,
    User,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    // Scalar expressions
    Literal(Literal),
    Column(ColumnName),
    /// `@v`
    Variable(Variable),
    /// `@@name`, with both signs.
    GlobalVariable(String),
    /// `$identity`, `$rowguid`, `$action`, `$node_id` ...: the word behind the sign, qualified by a table if written so.
    Pseudo {
        table: Option<Box<ObjectName>>,
        name: String,
    },
    /// `[database.]$PARTITION.function(arguments)`
    PartitionFunction {
        /// `[database.] function`
        function: Box<ObjectName>,
        arguments: Vec<Expr>,
    },
    /// `DEFAULT`, only as a value of INSERT, UPDATE, MERGE or an argument.
    Default,
    /// An expression in parentheses, kept so that texts stored in the catalog read as written.
    Paren(Box<Expr>),
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `CASE [operand] WHEN .. THEN .. [ELSE ..] END`; without an operand `when` is a condition.
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<CaseBranch>,
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(operand AS type)`, `TRY_CAST`.
    Cast {
        operand: Box<Expr>,
        data_type: Box<DataType>,
        try_: bool,
    },
    /// `CONVERT(type, operand [, style])`, `TRY_CONVERT`.
    Convert {
        data_type: Box<DataType>,
        operand: Box<Expr>,
        style: Option<Box<Expr>>,
        try_: bool,
    },
    /// `PARSE(operand AS type [USING culture])`, `TRY_PARSE`.
    Parse {
        operand: Box<Expr>,
        data_type: Box<DataType>,
        culture: Option<Box<Expr>>,
        try_: bool,
    },
    /// `IIF(condition, then, otherwise)`
    Iif {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Coalesce(Vec<Expr>),
    NullIf(Box<Expr>, Box<Expr>),
    Function(Box<FunctionCall>),
    Niladic(Niladic),
    /// `receiver.method(arguments)`; without parentheses (`arguments` is `None`) a property of a CLR value.
    Method {
        receiver: Box<Expr>,
        method: Ident,
        arguments: Option<Vec<Expr>>,
    },
    /// `type::method(arguments)`, `type::property`.
    StaticMethod {
        data_type: Box<ObjectName>,
        method: Ident,
        arguments: Option<Vec<Expr>>,
    },
    /// `TRIM([LEADING | TRAILING | BOTH] [characters FROM] source)` in its SQL form; `TRIM(x)` is a `Function`.
    Trim {
        side: Option<TrimSide>,
        characters: Option<Box<Expr>>,
        source: Box<Expr>,
    },
    /// `JSON_OBJECT(key : value, ... [NULL ON NULL | ABSENT ON NULL])`
    JsonObject {
        members: Vec<(Expr, Expr)>,
        absent_on_null: bool,
    },
    /// `JSON_ARRAY(value, ... [NULL ON NULL | ABSENT ON NULL])`
    JsonArray {
        elements: Vec<Expr>,
        absent_on_null: bool,
    },
    /// `NEXT VALUE FOR sequence [OVER (ORDER BY ...)]`
    NextValueFor {
        sequence: Box<ObjectName>,
        over: Option<Box<WindowSpec>>,
    },
    AtTimeZone {
        operand: Box<Expr>,
        zone: Box<Expr>,
    },
    Collate {
        operand: Box<Expr>,
        collation: Ident,
    },
    Subquery(Box<Query>),

    // Conditions
    /// Two or more operands.
    And(Vec<Expr>),
    /// Two or more operands.
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `left op ALL | ANY | SOME (query)`
    Quantified {
        op: CompareOp,
        quantifier: Quantifier,
        left: Box<Expr>,
        query: Box<Query>,
    },
    IsNull {
        operand: Box<Expr>,
        negated: bool,
    },
    /// `left IS [NOT] DISTINCT FROM right`; `negated` is with NOT.
    IsDistinctFrom {
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
    },
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InQuery {
        operand: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    Exists(Box<Query>),
    /// `CONTAINS` and `FREETEXT`.
    FullText {
        predicate: String,
        columns: Vec<Expr>,
        search: Box<Expr>,
    },
    /// `UPDATE(column)` inside a trigger.
    UpdatedColumn(Ident),
    /// `CURRENT OF cursor`, only as the whole WHERE of UPDATE and DELETE.
    CurrentOf(Box<super::CursorName>),
}

impl ExprKind {
    /// True if this is a search condition rather than a value.
    #[must_use]
    pub fn is_condition(&self) -> bool {
        match self {
            Self::Paren(inner) => inner.kind.is_condition(),
            Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::Compare { .. }
            | Self::Quantified { .. }
            | Self::IsNull { .. }
            | Self::IsDistinctFrom { .. }
            | Self::Between { .. }
            | Self::InList { .. }
            | Self::InQuery { .. }
            | Self::Like { .. }
            | Self::Exists(_)
            | Self::FullText { .. }
            | Self::UpdatedColumn(_)
            | Self::CurrentOf(_) => true,
            _ => false,
        }
    }
}

/// `WHEN when THEN then`
#[derive(Debug, Clone, PartialEq)]
pub struct CaseBranch {
    pub when: Expr,
    pub then: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrimSide {
    Leading,
    Trailing,
    Both,
}

/// `name([ALL | DISTINCT] arguments | *) [WITHIN GROUP (ORDER BY ...)] [IGNORE | RESPECT NULLS] [OVER window]`
///
/// A date part (`DATEADD(day, ...)`) is the first argument as a one-part column name.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    pub name: ObjectName,
    pub distinct: bool,
    /// `COUNT(*)`: no arguments then.
    pub star: bool,
    pub arguments: Vec<Expr>,
    pub within_group: Vec<OrderItem>,
    pub null_treatment: Option<NullTreatment>,
    pub over: Option<Window>,
    /// Written as `{fn name(...)}`.
    pub odbc: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NullTreatment {
    IgnoreNulls,
    RespectNulls,
}

/// `OVER name` or `OVER ( ... )`
#[derive(Debug, Clone, PartialEq)]
pub enum Window {
    Named(Ident),
    Spec(Box<WindowSpec>),
}

/// `( [name] [PARTITION BY ...] [ORDER BY ...] [frame] )`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WindowSpec {
    pub base: Option<Ident>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<Frame>,
}

/// `ROWS | RANGE start` or `ROWS | RANGE BETWEEN start AND end`
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub rows: bool,
    pub start: FrameBound,
    pub end: Option<FrameBound>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// `expr [ASC | DESC]`; a COLLATE is part of the expression.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}
