//! Logical operators.
//!
//! ```text
//! Get Source Values OneRow          leaves
//! Filter Project Aggregate Distinct Sort Limit SingleRow Window     one input
//! Join Apply SetDifference UnionAll Recursive                       several
//! ```
//!
//! Each operator's output columns are [`Rel::columns`]; an operator that computes has ids for what it computes.

use super::columns::ColumnRef;
use super::expr::{BoundAggregate, BoundExpr, BoundSortKey, BoundWindow};
use crate::locking::LockHints;
use crate::phys::{JoinKind, RowSource};
use std::sync::Arc;
use thawdb_catalog::TableDef;

/// Reads a table.
#[derive(Debug, Clone)]
pub struct Get {
    /// The table.
    pub table: Arc<TableDef>,
    /// Position in the table (`table.columns.len()` is the locator) and id of each column read.
    pub columns: Vec<(usize, ColumnRef)>,
    /// How rows are locked: hints, and whether it is the target of UPDATE or DELETE.
    pub locking: LockHints,
    /// Position of the index an INDEX hint asks for.
    pub index_hint: Option<usize>,
    /// FORCESEEK.
    pub force_seek: bool,
}

/// What TOP, OFFSET and FETCH keep.
#[derive(Debug, Clone)]
pub struct Top {
    /// Rows skipped.
    pub offset: Option<BoundExpr>,
    /// Rows kept, or their percentage.
    pub limit: Option<BoundExpr>,
    /// PERCENT.
    pub percent: bool,
    /// WITH TIES: by these keys, the input's order.
    pub ties: Vec<BoundSortKey>,
}

/// How a join was asked to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the hint of its name
pub enum JoinHint {
    Loop,
    Hash,
    Merge,
}

/// A logical operator.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // described where they are not plain
pub enum Rel {
    /// One row without columns.
    OneRow,
    Values {
        rows: Vec<Vec<BoundExpr>>,
        columns: Vec<ColumnRef>,
    },
    Get(Box<Get>),
    Source {
        source: Arc<dyn RowSource>,
        arguments: Vec<BoundExpr>,
        /// Position in the source and id.
        columns: Vec<(usize, ColumnRef)>,
    },
    /// All of `predicates` hold.
    Filter {
        input: Box<Rel>,
        predicates: Vec<BoundExpr>,
    },
    /// Puts out exactly `exprs`.
    Project {
        input: Box<Rel>,
        exprs: Vec<(ColumnRef, BoundExpr)>,
    },
    /// All of `predicates` hold; the right side does not refer to the left.
    Join {
        left: Box<Rel>,
        right: Box<Rel>,
        kind: JoinKind,
        predicates: Vec<BoundExpr>,
        hint: Option<JoinHint>,
    },
    /// The right side may refer to the left's columns: it is evaluated for each left row. Never RightOuter or FullOuter.
    Apply {
        left: Box<Rel>,
        right: Box<Rel>,
        kind: JoinKind,
        predicates: Vec<BoundExpr>,
    },
    /// Puts out keys, then aggregates. Without keys one row even of no input.
    Aggregate {
        input: Box<Rel>,
        keys: Vec<(ColumnRef, BoundExpr)>,
        aggregates: Vec<(ColumnRef, BoundAggregate)>,
    },
    Distinct {
        input: Box<Rel>,
    },
    Sort {
        input: Box<Rel>,
        keys: Vec<BoundSortKey>,
    },
    Limit {
        input: Box<Rel>,
        top: Box<Top>,
    },
    /// `columns[i]` is column `inputs[j].1[i]` of each input.
    UnionAll {
        inputs: Vec<(Rel, Vec<ColumnRef>)>,
        columns: Vec<ColumnRef>,
    },
    /// EXCEPT (`keep` false) or INTERSECT: distinct; columns are the left's.
    SetDifference {
        left: Box<Rel>,
        right: Box<Rel>,
        left_columns: Vec<ColumnRef>,
        right_columns: Vec<ColumnRef>,
        keep: bool,
    },
    /// Exactly one row: NULLs for none, 512 for more than one.
    SingleRow {
        input: Box<Rel>,
    },
    /// Input columns and the functions'.
    Window {
        input: Box<Rel>,
        partition: Vec<BoundExpr>,
        order: Vec<BoundSortKey>,
        functions: Vec<(ColumnRef, BoundWindow)>,
    },
    /// Rows of `anchor`, then of `recursive` over the rows before, until there are none.
    Recursive {
        anchor: Box<(Rel, Vec<ColumnRef>)>,
        recursive: Box<(Rel, Vec<ColumnRef>)>,
        columns: Vec<ColumnRef>,
        /// Which [`Rel::WorkTable`] inside `recursive` reads the rows before.
        work_table: u32,
        /// MAXRECURSION; 0 is none.
        depth_max: u32,
    },
    /// The rows that the enclosing [`Rel::Recursive`] of this number produced last.
    WorkTable {
        work_table: u32,
        columns: Vec<ColumnRef>,
    },
}

impl Rel {
    /// The filter of `predicates` over this; this itself for none.
    pub fn filter(self, predicates: Vec<BoundExpr>) -> Self {
        if predicates.is_empty() { self } else { Self::Filter { input: Box::new(self), predicates } }
    }

    /// Columns it puts out, in order.
    pub fn columns(&self) -> Vec<ColumnRef> {
        match self {
            Self::OneRow => Vec::new(),
            Self::Values { columns, .. }
            | Self::UnionAll { columns, .. }
            | Self::Recursive { columns, .. }
            | Self::WorkTable { columns, .. } => columns.clone(),
            Self::Get(get) => get.columns.iter().map(|(_, c)| *c).collect(),
            Self::Source { columns, .. } => columns.iter().map(|(_, c)| *c).collect(),
            Self::Filter { input, .. }
            | Self::Distinct { input }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::SingleRow { input } => input.columns(),
            Self::Project { exprs, .. } => exprs.iter().map(|(c, _)| *c).collect(),
            Self::Join { left, right, kind, .. } | Self::Apply { left, right, kind, .. } => {
                let mut columns = left.columns();
                if !matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti) {
                    columns.extend(right.columns());
                }
                columns
            }
            Self::Aggregate { keys, aggregates, .. } => keys.iter().map(|(c, _)| *c).chain(aggregates.iter().map(|(c, _)| *c)).collect(),
            Self::SetDifference { left_columns, .. } => left_columns.clone(),
            Self::Window { input, functions, .. } => {
                let mut columns = input.columns();
                columns.extend(functions.iter().map(|(c, _)| *c));
                columns
            }
        }
    }

    /// Its inputs.
    pub fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::OneRow | Self::Values { .. } | Self::Get(_) | Self::Source { .. } | Self::WorkTable { .. } => Vec::new(),
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Distinct { input }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::SingleRow { input }
            | Self::Window { input, .. } => vec![input],
            Self::Join { left, right, .. } | Self::Apply { left, right, .. } | Self::SetDifference { left, right, .. } => vec![left, right],
            Self::UnionAll { inputs, .. } => inputs.iter().map(|(r, _)| r).collect(),
            Self::Recursive { anchor, recursive, .. } => vec![&anchor.0, &recursive.0],
        }
    }

    /// Its inputs, to be changed.
    pub fn inputs_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::OneRow | Self::Values { .. } | Self::Get(_) | Self::Source { .. } | Self::WorkTable { .. } => Vec::new(),
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::Aggregate { input, .. }
            | Self::Distinct { input }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::SingleRow { input }
            | Self::Window { input, .. } => vec![input],
            Self::Join { left, right, .. } | Self::Apply { left, right, .. } | Self::SetDifference { left, right, .. } => vec![left, right],
            Self::UnionAll { inputs, .. } => inputs.iter_mut().map(|(r, _)| r).collect(),
            Self::Recursive { anchor, recursive, .. } => vec![&mut anchor.0, &mut recursive.0],
        }
    }

    /// Expressions of this operator itself.
    pub fn exprs(&self) -> Vec<&BoundExpr> {
        match self {
            Self::OneRow
            | Self::Get(_)
            | Self::WorkTable { .. }
            | Self::Distinct { .. }
            | Self::SingleRow { .. }
            | Self::UnionAll { .. }
            | Self::SetDifference { .. }
            | Self::Recursive { .. } => Vec::new(),
            Self::Values { rows, .. } => rows.iter().flatten().collect(),
            Self::Source { arguments, .. } => arguments.iter().collect(),
            Self::Filter { predicates, .. } | Self::Join { predicates, .. } | Self::Apply { predicates, .. } => predicates.iter().collect(),
            Self::Project { exprs, .. } => exprs.iter().map(|(_, e)| e).collect(),
            Self::Aggregate { keys, aggregates, .. } => {
                keys.iter().map(|(_, e)| e).chain(aggregates.iter().flat_map(|(_, a)| a.exprs())).collect()
            }
            Self::Sort { keys, .. } => keys.iter().map(|k| &k.expr).collect(),
            Self::Limit { top, .. } => top.offset.iter().chain(&top.limit).chain(top.ties.iter().map(|k| &k.expr)).collect(),
            Self::Window { partition, order, functions, .. } => {
                let own = functions.iter().flat_map(|(_, f)| f.exprs());
                partition.iter().chain(order.iter().map(|k| &k.expr)).chain(own).collect()
            }
        }
    }

    /// Expressions of this operator itself, to be changed.
    pub fn exprs_mut(&mut self) -> Vec<&mut BoundExpr> {
        match self {
            Self::OneRow
            | Self::Get(_)
            | Self::WorkTable { .. }
            | Self::Distinct { .. }
            | Self::SingleRow { .. }
            | Self::UnionAll { .. }
            | Self::SetDifference { .. }
            | Self::Recursive { .. } => Vec::new(),
            Self::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Self::Source { arguments, .. } => arguments.iter_mut().collect(),
            Self::Filter { predicates, .. } | Self::Join { predicates, .. } | Self::Apply { predicates, .. } => {
                predicates.iter_mut().collect()
            }
            Self::Project { exprs, .. } => exprs.iter_mut().map(|(_, e)| e).collect(),
            Self::Aggregate { keys, aggregates, .. } => {
                keys.iter_mut().map(|(_, e)| e).chain(aggregates.iter_mut().flat_map(|(_, a)| a.exprs_mut())).collect()
            }
            Self::Sort { keys, .. } => keys.iter_mut().map(|k| &mut k.expr).collect(),
            Self::Limit { top, .. } => {
                top.offset.iter_mut().chain(&mut top.limit).chain(top.ties.iter_mut().map(|k| &mut k.expr)).collect()
            }
            Self::Window { partition, order, functions, .. } => {
                let own = functions.iter_mut().flat_map(|(_, f)| f.exprs_mut());
                partition.iter_mut().chain(order.iter_mut().map(|k| &mut k.expr)).chain(own).collect()
            }
        }
    }

    /// Calls `visit` on every expression of this tree, those of subqueries included.
    pub fn walk_exprs(&self, visit: &mut dyn FnMut(&BoundExpr)) {
        for expr in self.exprs() {
            expr.walk(visit);
        }
        for input in self.inputs() {
            input.walk_exprs(visit);
        }
    }

    /// Calls `change` on every expression of this tree, innermost first.
    pub fn rewrite_exprs(&mut self, change: &mut dyn FnMut(&mut BoundExpr)) {
        for input in self.inputs_mut() {
            input.rewrite_exprs(change);
        }
        for expr in self.exprs_mut() {
            expr.rewrite(change);
        }
    }

    /// Every column produced anywhere in this tree, subqueries' plans not included.
    pub fn produced(&self) -> Vec<ColumnRef> {
        let mut all = self.columns();
        for input in self.inputs() {
            all.extend(input.produced());
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Columns it refers to that nothing in it produces: its correlations.
    pub fn free_columns(&self) -> Vec<ColumnRef> {
        let produced = self.produced();
        let mut free = Vec::new();
        self.collect_used(&mut free);
        free.sort_unstable();
        free.dedup();
        free.retain(|c| produced.binary_search(c).is_err());
        free
    }

    fn collect_used(&self, into: &mut Vec<ColumnRef>) {
        for expr in self.exprs() {
            expr.collect_free(into);
        }
        for input in self.inputs() {
            input.collect_used(into);
        }
    }
}

impl BoundAggregate {
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &BoundExpr> {
        self.argument.iter().chain(self.order.iter().map(|k| &k.expr))
    }

    pub(crate) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut BoundExpr> {
        self.argument.iter_mut().chain(self.order.iter_mut().map(|k| &mut k.expr))
    }
}

impl BoundWindow {
    pub(crate) fn exprs(&self) -> Vec<&BoundExpr> {
        match self {
            Self::RowNumber | Self::Rank | Self::DenseRank | Self::PercentRank | Self::CumeDist => Vec::new(),
            Self::Percentile { value, fraction, .. } => vec![value, fraction],
            Self::Ntile(e) => vec![e],
            Self::Lag { value, offset, default, .. } => [value, offset].into_iter().chain(default).collect(),
            Self::FirstValue { value, .. } => vec![value],
            Self::Aggregate { aggregate, .. } => aggregate.exprs().collect(),
        }
    }

    pub(crate) fn exprs_mut(&mut self) -> Vec<&mut BoundExpr> {
        match self {
            Self::RowNumber | Self::Rank | Self::DenseRank | Self::PercentRank | Self::CumeDist => Vec::new(),
            Self::Percentile { value, fraction, .. } => vec![value, fraction],
            Self::Ntile(e) => vec![e],
            Self::Lag { value, offset, default, .. } => [value, offset].into_iter().chain(default).collect(),
            Self::FirstValue { value, .. } => vec![value],
            Self::Aggregate { aggregate, .. } => aggregate.exprs_mut().collect(),
        }
    }
}
