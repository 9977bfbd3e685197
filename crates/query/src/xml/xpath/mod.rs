//! XPath over untyped XML: text to expression ([`parse`]), expression over a tree to items ([`eval`]).
//!
//! Source: XML Path Language (XPath) 1.0, and where SQL Server's XQuery differs (sequences, singletons, sql:variable,
//! sql:column) its documentation.

mod eval;
mod parse;

pub(crate) use eval::{Focus, Item, evaluate, holds};
pub(crate) use parse::parse;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Text(String),
    Number(f64),
    /// `sql:variable("@x")`, `sql:column("t.c")`: which of the values handed in.
    Outside(usize),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    Call(Function, Vec<Expr>),
    /// `(a, b)`
    Sequence(Vec<Expr>),
    /// `.`
    Context,
    /// `/`
    Root,
    /// Steps from what `from` gives.
    Path(Box<Expr>, Vec<Step>),
    /// `from[p][q]`, positions counted over all of it.
    Filter(Box<Expr>, Vec<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Union,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Position,
    Last,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Not,
    Empty,
    Exists,
    True,
    False,
    String,
    Number,
    Data,
    Concat,
    Contains,
    Substring,
    StringLength,
    LocalName,
    Name,
    UpperCase,
    LowerCase,
    Floor,
    Ceiling,
    Round,
    DistinctValues,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub axis: Axis,
    pub test: Test,
    pub predicates: Vec<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Child,
    Attribute,
    DescendantOrSelf,
    Myself,
    Parent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Test {
    /// `*`
    Any,
    /// A local name, and its prefix if it has one; prefix `*` is any.
    Name(Option<String>, String),
    Node,
    Text,
    Comment,
    Instruction,
}

/// A parsed query: the expression, the namespaces it declares, and the outside values it names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub expr: Expr,
    /// Prefix (empty for the default element namespace) and URI.
    pub namespaces: Vec<(String, String)>,
    pub outside: Vec<Outside>,
}

/// A value from the statement around the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outside {
    Variable(String),
    Column(String),
}

impl Expr {
    /// Whether it gives at most one item by its form, as value() asks.
    pub(crate) fn is_single(&self) -> bool {
        match self {
            Self::Path(from, steps) => from.is_single() && steps.iter().all(Step::is_single),
            Self::Filter(_, predicates) => predicates.iter().any(picks_one),
            Self::Sequence(members) => matches!(members.as_slice(), [only] if only.is_single()),
            Self::Binary(Operator::Union, ..) | Self::Call(Function::DistinctValues, _) => false,
            Self::Call(Function::Data, arguments) => arguments.iter().all(Self::is_single),
            _ => true,
        }
    }
}

impl Step {
    fn is_single(&self) -> bool {
        let one_by_axis = matches!(self.axis, Axis::Myself | Axis::Parent) || self.axis == Axis::Attribute && self.test != Test::Any;
        one_by_axis || self.axis != Axis::DescendantOrSelf && self.predicates.iter().any(picks_one)
    }
}

fn picks_one(predicate: &Expr) -> bool {
    matches!(predicate, Expr::Number(_) | Expr::Call(Function::Last, _))
}
