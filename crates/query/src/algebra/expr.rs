//! Bound scalar expressions of the algebra: those of [`crate::expr`] with columns by id and subqueries as algebra.

use super::columns::ColumnRef;
use super::rel::Rel;
use crate::expr::{AggregateFunction, ArithmeticOp, CompareOp};
use crate::phys::Frame;
use std::sync::Arc;
use thawdb_types::{Scalar, SqlType};

/// An expression and its type.
#[derive(Debug, Clone)]
pub struct BoundExpr {
    /// What it computes.
    pub kind: BoundExprKind,
    /// Type of the result; a condition has `Bit`.
    pub sql_type: SqlType,
    /// False only when the result can never be NULL.
    pub nullable: bool,
}

/// What an expression computes; see [`crate::expr::ExprKind`].
#[derive(Debug, Clone)]
#[allow(missing_docs)] // each variant is the physical one of its name
pub enum BoundExprKind {
    Literal(Scalar),
    Column(ColumnRef),
    Variable(usize),
    Global(Arc<str>),
    Arithmetic {
        op: ArithmeticOp,
        left: Box<BoundExpr>,
        right: Box<BoundExpr>,
    },
    Negate(Box<BoundExpr>),
    BitNot(Box<BoundExpr>),
    Concat(Box<BoundExpr>, Box<BoundExpr>),
    Compare {
        op: CompareOp,
        left: Box<BoundExpr>,
        right: Box<BoundExpr>,
    },
    And(Vec<BoundExpr>),
    Or(Vec<BoundExpr>),
    Not(Box<BoundExpr>),
    IsNull {
        operand: Box<BoundExpr>,
        negated: bool,
    },
    InList {
        operand: Box<BoundExpr>,
        list: Vec<BoundExpr>,
        negated: bool,
    },
    Like {
        operand: Box<BoundExpr>,
        pattern: Box<BoundExpr>,
        escape: Option<Box<BoundExpr>>,
        negated: bool,
    },
    Case {
        branches: Vec<(BoundExpr, BoundExpr)>,
        otherwise: Option<Box<BoundExpr>>,
    },
    Convert {
        operand: Box<BoundExpr>,
        style: i32,
        attempt: bool,
    },
    /// COLLATE: the operand's value under the result type's collation, which beats an implicit one.
    Collate(Box<BoundExpr>),
    Function {
        name: &'static str,
        arguments: Vec<BoundExpr>,
    },
    /// The plan's first output column is the value, where one is asked for.
    Subquery {
        plan: Box<Rel>,
        column: ColumnRef,
        kind: BoundSubquery,
    },
}

/// What is asked of a subquery's rows.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // each variant is the physical one of its name
pub enum BoundSubquery {
    Scalar,
    Exists { negated: bool },
    Quantified { operand: Box<BoundExpr>, op: CompareOp, all: bool },
}

/// An aggregate of a group.
#[derive(Debug, Clone)]
pub struct BoundAggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Its argument; `None` for COUNT(*).
    pub argument: Option<BoundExpr>,
    /// DISTINCT.
    pub distinct: bool,
    /// Type of the result.
    pub sql_type: SqlType,
    /// Separator of STRING_AGG.
    pub separator: Option<String>,
    /// WITHIN GROUP (ORDER BY ...) of STRING_AGG.
    pub order: Vec<BoundSortKey>,
}

/// One key of an order.
#[derive(Debug, Clone)]
pub struct BoundSortKey {
    /// The key.
    pub expr: BoundExpr,
    /// DESC.
    pub descending: bool,
}

/// A window function.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // each variant is the physical one of its name
pub enum BoundWindow {
    RowNumber,
    Rank,
    DenseRank,
    Ntile(BoundExpr),
    PercentRank,
    CumeDist,
    Percentile { value: BoundExpr, fraction: BoundExpr, continuous: bool },
    Lag { value: BoundExpr, offset: BoundExpr, default: Option<BoundExpr>, lead: bool, ignore_nulls: bool },
    FirstValue { value: BoundExpr, last: bool, frame: Frame, ignore_nulls: bool },
    Aggregate { aggregate: BoundAggregate, frame: Frame },
}

impl BoundExpr {
    /// An expression that may be NULL.
    pub fn new(kind: BoundExprKind, sql_type: SqlType) -> Self {
        Self { kind, sql_type, nullable: true }
    }

    /// A constant.
    pub fn literal(value: Scalar, sql_type: SqlType) -> Self {
        let nullable = value == Scalar::Null;
        Self { kind: BoundExprKind::Literal(value), sql_type, nullable }
    }

    /// A truth value; SQL has no such literal, rewriting does.
    pub fn truth(value: bool) -> Self {
        Self::literal(Scalar::Bit(value), SqlType::Bit)
    }

    /// NULL without a type of its own.
    pub fn null() -> Self {
        Self::literal(Scalar::Null, SqlType::Int)
    }

    /// Whether it is the constant NULL, or a parameter without a declaration: what stands beside it says what type it has.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, BoundExprKind::Literal(Scalar::Null)) || crate::bind::undeclared::number_of(self).is_some()
    }

    /// Whether it is the constant `value` of type bit.
    pub fn is_truth(&self, value: bool) -> bool {
        matches!(self.kind, BoundExprKind::Literal(Scalar::Bit(v)) if v == value)
    }

    /// The column it is, if it is just that.
    pub fn as_column(&self) -> Option<ColumnRef> {
        match self.kind {
            BoundExprKind::Column(c) => Some(c),
            _ => None,
        }
    }

    /// The conjunction of `terms`; TRUE of none.
    pub fn and(mut terms: Vec<Self>) -> Self {
        match terms.len() {
            0 => Self::truth(true),
            1 => terms.remove(0),
            _ => {
                let nullable = terms.iter().any(|t| t.nullable);
                Self { kind: BoundExprKind::And(terms), sql_type: SqlType::Bit, nullable }
            }
        }
    }

    /// `left op right`; both have one type already.
    pub fn compare(op: CompareOp, left: Self, right: Self) -> Self {
        let nullable = (left.nullable || right.nullable) && !matches!(op, CompareOp::Same | CompareOp::NotSame);
        Self { kind: BoundExprKind::Compare { op, left: Box::new(left), right: Box::new(right) }, sql_type: SqlType::Bit, nullable }
    }

    /// The terms of a conjunction, flattened, TRUE left out.
    pub fn conjuncts(self) -> Vec<Self> {
        match self.kind {
            BoundExprKind::And(terms) => terms.into_iter().flat_map(Self::conjuncts).collect(),
            _ if self.is_truth(true) => Vec::new(),
            _ => vec![self],
        }
    }

    /// Its direct operands, subqueries' plans not among them (but their operands are).
    pub fn children(&self) -> Vec<&Self> {
        use BoundExprKind as K;
        match &self.kind {
            K::Literal(_) | K::Column(_) | K::Variable(_) | K::Global(_) => Vec::new(),
            K::Arithmetic { left, right, .. } | K::Compare { left, right, .. } | K::Concat(left, right) => vec![left, right],
            K::Negate(e) | K::BitNot(e) | K::Not(e) | K::Collate(e) => vec![e],
            K::IsNull { operand, .. } | K::Convert { operand, .. } => vec![operand],
            K::And(list) | K::Or(list) | K::Function { arguments: list, .. } => list.iter().collect(),
            K::InList { operand, list, .. } => std::iter::once(&**operand).chain(list).collect(),
            K::Like { operand, pattern, escape, .. } => {
                [Some(operand), Some(pattern), escape.as_ref()].into_iter().flatten().map(|e| &**e).collect()
            }
            K::Case { branches, otherwise } => branches.iter().flat_map(|(w, t)| [w, t]).chain(otherwise.as_deref()).collect(),
            K::Subquery { kind: BoundSubquery::Quantified { operand, .. }, .. } => vec![operand],
            K::Subquery { .. } => Vec::new(),
        }
    }

    /// The same for changing them.
    pub fn children_mut(&mut self) -> Vec<&mut Self> {
        use BoundExprKind as K;
        match &mut self.kind {
            K::Literal(_) | K::Column(_) | K::Variable(_) | K::Global(_) => Vec::new(),
            K::Arithmetic { left, right, .. } | K::Compare { left, right, .. } | K::Concat(left, right) => vec![left, right],
            K::Negate(e) | K::BitNot(e) | K::Not(e) | K::Collate(e) => vec![e],
            K::IsNull { operand, .. } | K::Convert { operand, .. } => vec![operand],
            K::And(list) | K::Or(list) | K::Function { arguments: list, .. } => list.iter_mut().collect(),
            K::InList { operand, list, .. } => std::iter::once(&mut **operand).chain(list).collect(),
            K::Like { operand, pattern, escape, .. } => {
                [Some(operand), Some(pattern), escape.as_mut()].into_iter().flatten().map(|e| &mut **e).collect()
            }
            K::Case { branches, otherwise } => branches.iter_mut().flat_map(|(w, t)| [w, t]).chain(otherwise.as_deref_mut()).collect(),
            K::Subquery { kind: BoundSubquery::Quantified { operand, .. }, .. } => vec![operand],
            K::Subquery { .. } => Vec::new(),
        }
    }

    /// Calls `visit` on this and every expression below it, those inside subqueries' plans included.
    pub fn walk(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
        if let BoundExprKind::Subquery { plan, .. } = &self.kind {
            plan.walk_exprs(visit);
        }
    }

    /// Calls `change` on every expression below and then on this, those inside subqueries' plans included.
    pub fn rewrite(&mut self, change: &mut dyn FnMut(&mut Self)) {
        for child in self.children_mut() {
            child.rewrite(change);
        }
        if let BoundExprKind::Subquery { plan, .. } = &mut self.kind {
            plan.rewrite_exprs(change);
        }
        change(self);
    }

    /// Columns it refers to that it does not itself produce (a subquery's own columns are its own).
    pub fn free_columns(&self) -> Vec<ColumnRef> {
        let mut free = Vec::new();
        self.collect_free(&mut free);
        free.sort_unstable();
        free.dedup();
        free
    }

    pub(crate) fn collect_free(&self, into: &mut Vec<ColumnRef>) {
        match &self.kind {
            BoundExprKind::Column(c) => into.push(*c),
            BoundExprKind::Subquery { plan, .. } => into.extend(plan.free_columns()),
            _ => {}
        }
        for child in self.children() {
            child.collect_free(into);
        }
    }

    /// Whether a subquery is somewhere in it.
    pub fn has_subquery(&self) -> bool {
        matches!(self.kind, BoundExprKind::Subquery { .. }) || self.children().into_iter().any(Self::has_subquery)
    }

    /// Whether it gives another value each time it is asked (NEWID, RAND without seed...).
    pub fn is_volatile(&self) -> bool {
        matches!(&self.kind, BoundExprKind::Function { name, .. } if crate::functions::signature::is_volatile(name))
            || self.children().into_iter().any(Self::is_volatile)
    }

    /// Replaces references to columns by `map`; plans of subqueries included.
    pub fn replace_columns(&mut self, map: &dyn Fn(ColumnRef) -> Option<Self>) {
        self.rewrite(&mut |e| {
            if let BoundExprKind::Column(c) = e.kind {
                if let Some(new) = map(c) {
                    *e = new;
                }
            }
        });
    }

    /// Whether both are written the same; subqueries never are.
    pub fn same(&self, other: &Self) -> bool {
        use BoundExprKind as K;
        if self.sql_type != other.sql_type {
            return false;
        }
        let shape = match (&self.kind, &other.kind) {
            (K::Literal(a), K::Literal(b)) => a == b,
            (K::Column(a), K::Column(b)) => a == b,
            (K::Variable(a), K::Variable(b)) => a == b,
            (K::Global(a), K::Global(b)) => a == b,
            (K::Arithmetic { op: a, .. }, K::Arithmetic { op: b, .. }) => a == b,
            (K::Compare { op: a, .. }, K::Compare { op: b, .. }) => a == b,
            (K::IsNull { negated: a, .. }, K::IsNull { negated: b, .. }) => a == b,
            (K::InList { negated: a, .. }, K::InList { negated: b, .. }) => a == b,
            (K::Like { negated: a, escape: x, .. }, K::Like { negated: b, escape: y, .. }) => a == b && x.is_some() == y.is_some(),
            (K::Case { otherwise: a, .. }, K::Case { otherwise: b, .. }) => a.is_some() == b.is_some(),
            (K::Convert { style: a, attempt: x, .. }, K::Convert { style: b, attempt: y, .. }) => a == b && x == y,
            (K::Function { name: a, .. }, K::Function { name: b, .. }) => a == b && !crate::functions::signature::is_volatile(a),
            (K::Subquery { .. }, _) => false,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        let (mine, theirs) = (self.children(), other.children());
        shape && mine.len() == theirs.len() && mine.iter().zip(theirs).all(|(a, b)| a.same(b))
    }
}
