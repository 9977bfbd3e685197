//! Bound scalar expressions: names resolved, types decided, conversions explicit.
//!
//! Made by `bind`, rewritten by `optimize`, evaluated by `exec` a batch at a time. A column is a position in the
//! operator's input; [`Expr::Outer`] is a column of an enclosing query's current row (correlated Apply).

use crate::functions::call::Calling;
use crate::phys::Node;
use std::sync::Arc;
use thawdb_types::{Scalar, SqlType};

/// An expression and its type.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Type of the result.
    pub sql_type: SqlType,
    /// False only when the result can never be NULL.
    pub nullable: bool,
}

/// What an expression computes. Operands already have the types the operation wants.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum ExprKind {
    Literal(Scalar),
    /// Column of the input, by position.
    Column(usize),
    /// Column of an enclosing row: `level` 1 is the nearest enclosing Apply, `column` a position in its outer row.
    Outer {
        level: usize,
        column: usize,
    },
    /// Value of a variable or parameter of the batch, by position in the session's frame.
    Variable(usize),
    /// `@@name` and other values of the session; `exec` asks the context.
    Global(Arc<str>),
    /// Both operands have the result's type (`decimal` excepted: own precision and scale each).
    Arithmetic {
        op: ArithmeticOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Negate(Box<Expr>),
    BitNot(Box<Expr>),
    /// Concatenation of two character or two binary values.
    Concat(Box<Expr>, Box<Expr>),
    /// Operands have one type (and collation, for text).
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    IsNull {
        operand: Box<Expr>,
        negated: bool,
    },
    /// `list` has the operand's type.
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    /// Searched CASE (simple CASE is bound to comparisons); results have the result's type.
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// From the operand's type to `sql_type`; `style` of CONVERT; `attempt` is TRY_: NULL instead of an error.
    Convert {
        operand: Box<Expr>,
        style: i32,
        attempt: bool,
    },
    /// A scalar function of `crate::functions`, by its stable name in upper case.
    Function {
        name: &'static str,
        calling: Calling,
        arguments: Vec<Expr>,
    },
    /// Scalar subquery that stayed a subquery: NULL for no row, 512 for more than one.
    Subquery {
        plan: Arc<Node>,
        kind: SubqueryKind,
    },
}

/// What is asked of a subquery's rows.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum SubqueryKind {
    Scalar,
    Exists {
        negated: bool,
    },
    /// `operand op ANY/ALL (subquery)`; IN is `= ANY`, NOT IN is `<> ALL`, with three-valued logic.
    Quantified {
        operand: Box<Expr>,
        op: CompareOp,
        all: bool,
    },
}

/// Arithmetic and bitwise operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// IS NOT DISTINCT FROM: NULL equals NULL.
    Same,
    /// IS DISTINCT FROM.
    NotSame,
}

/// An aggregate over a group.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Its argument; `None` for COUNT(*).
    pub argument: Option<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// Type of the result.
    pub sql_type: SqlType,
    /// Separator of STRING_AGG.
    pub separator: Option<String>,
}

/// Aggregate functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AggregateFunction {
    /// COUNT(*) and COUNT(x), int.
    Count,
    /// COUNT_BIG, bigint.
    CountBig,
    Sum,
    Avg,
    Min,
    Max,
    StDev,
    StDevP,
    Var,
    VarP,
    ChecksumAgg,
    StringAgg,
    /// Any value of the group: for columns functionally dependent on the key.
    Any,
}
