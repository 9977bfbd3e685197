//! One row by its whole key: plans that come down to that, run without operators, arrays or a view.
//!
//! ```text
//! Node ─ PointRead::of, once a plan ─► key values ─► key bytes ─► look at the newest row ─► columns ─► residual ─► outputs
//!                                       variables     reused        Database::look          reused     eval       reused
//! ```
//! What qualifies: a scan of one key of a unique first index, of a stored table, read without lock hints, below it nothing,
//! above it at most a projection and an assignment of variables, and no expression that runs a plan or a statement.
//!
//! Invariants: 1. the outcome is that of the plan's operators at the same moment: expressions are the plan's own, evaluated
//! by the same `eval_row` ([`PointRead::finish`]); what a look cannot tell is [`Look::Unsure`] and goes by the operators.
//! 2. Between [`PointRead::look`]'s latch and its return nothing is evaluated that could wait.
//! The caller sees to it that the table keeps its definition from the moment the plan is found valid to the end of the
//! look, and that the session reads committed row versions. Failure: as the operators', errors of expressions and damage.

use crate::context::StatementHost;
use crate::eval::{RowRef, eval_free, eval_row};
use crate::exec::correlation::visit_operands;
use crate::exec::cx::{Cx, CxState};
use crate::exec::layouts::{Layout, layout_of};
use crate::expr::{Expr, ExprKind};
use crate::functions::USER_FUNCTION;
use crate::locking::LockHints;
use crate::phys::{Node, NodeKind, SeekRange};
use std::sync::{Arc, OnceLock};
use thawdb_catalog::{ColumnPlace, ObjectId, TableDef};
use thawdb_storage::{Database, Look, PageId, StorageError, TreeHandle, TxnId};
use thawdb_types::key::{Damage, decode_value, encode_value, skip_value};
use thawdb_types::row::RowSource;
use thawdb_types::{Scalar, SqlError};

/// Memory that looks use again and again.
#[derive(Debug, Default)]
pub struct PointBuffers {
    key: Vec<u8>,
    columns: Vec<Scalar>,
    /// What the row gives: for the client, or for variables.
    pub outputs: Vec<Scalar>,
}

/// A plan that reads one row.
#[derive(Debug)]
pub struct PointRead {
    table: Arc<TableDef>,
    layout: Layout,
    /// Values of the key's columns.
    key: Vec<Expr>,
    /// Where the scan's columns are.
    places: Vec<ColumnPlace>,
    residual: Option<Expr>,
    /// What is put out, over the scan's columns; the columns themselves if nothing.
    outputs: Option<Vec<Expr>>,
    /// The variables that take the outputs, if they do not go to the client.
    variables: Option<Vec<usize>>,
    /// Whether an expression calls a function: it may ask for the moment.
    calls_function: bool,
    tree: OnceLock<TreeHandle>,
}

/// One row's bytes.
pub(super) struct OneRow<'a>(pub(super) &'a [u8]);

impl RowSource for OneRow<'_> {
    type Error = Damage;

    fn len(&self) -> usize {
        1
    }

    #[inline]
    fn row(&self, _: usize) -> &[u8] {
        self.0
    }

    fn large(&self, _: usize, ordinal: usize) -> Result<Vec<u8>, Damage> {
        Err(Damage::new(format!("a row names large part {ordinal} and has none")))
    }
}

impl PointRead {
    /// The plan as a read of one row, if it is one.
    pub fn of(plan: &Node) -> Option<Self> {
        let (below, assignments) = match &plan.kind {
            NodeKind::AssignVariables { input, assignments } => (&**input, Some(assignments)),
            _ => (plan, None),
        };
        let (scan, exprs) = match &below.kind {
            NodeKind::Project { input, exprs } => (&**input, Some(exprs)),
            _ => (below, None),
        };
        let NodeKind::TableScan { table, index: 0, ranges, columns, residual, locking, .. } = &scan.kind else { return None };
        let key = whole_key(table, ranges)?.to_vec();
        if *locking != LockHints::default() || table.id <= ObjectId(0) || columns.iter().any(|c| *c >= table.columns.len()) {
            return None;
        }
        let outputs = match (assignments, exprs) {
            (Some(assignments), Some(exprs)) => {
                // An assignment reads the projection's columns: only those passed on as they are can be put in their place.
                let through = |(_, value): &(usize, Expr)| match value.kind {
                    ExprKind::Column(at) => exprs.get(at).cloned(),
                    _ => None,
                };
                Some(assignments.iter().map(through).collect::<Option<Vec<_>>>()?)
            }
            (Some(assignments), None) => Some(assignments.iter().map(|(_, value)| value.clone()).collect()),
            (None, exprs) => exprs.cloned(),
        };
        // Of several assignments a later one may read what an earlier one assigned.
        let variables: Option<Vec<usize>> = assignments.map(|list| list.iter().map(|(variable, _)| *variable).collect());
        let reads_assigned = variables.as_ref().is_some_and(|set| set.len() > 1 && outputs.iter().flatten().any(names_variable));
        if reads_assigned || !key.iter().chain(residual).chain(outputs.iter().flatten()).all(runs_nothing) {
            return None;
        }
        let calls_function = key.iter().chain(residual).chain(outputs.iter().flatten()).any(calls_function);
        let layout = layout_of(table, 0);
        let places: Vec<ColumnPlace> = columns.iter().map(|column| layout.place(*column)).collect();
        if places.contains(&ColumnPlace::Elsewhere) {
            return None;
        }
        let (table, residual) = (table.clone(), residual.clone());
        Some(Self { table, layout, key, places, residual, outputs, variables, calls_function, tree: OnceLock::new() })
    }

    /// Whether the statement's moment must be known.
    pub fn calls_function(&self) -> bool {
        self.calls_function
    }

    /// The variables that take the outputs, in order; `None` if the client does.
    pub fn variables(&self) -> Option<&[usize]> {
        self.variables.as_deref()
    }

    /// Finds the key's bytes; false if a value of it is NULL, which no row equals.
    ///
    /// # Errors
    /// Those of the key's expressions.
    pub fn find_key(&self, host: &mut dyn StatementHost, buffers: &mut PointBuffers) -> Result<bool, SqlError> {
        let mut state = CxState::default();
        let mut cx = Cx { host, state: &mut state };
        buffers.key.clear();
        for (expr, column) in self.key.iter().zip(&self.layout.key) {
            let value = eval_free(expr, &mut cx)?;
            if value.is_null() {
                return Ok(false);
            }
            encode_value(&value, column, &mut buffers.key);
        }
        Ok(true)
    }

    /// Looks at the row whose key was found, and decodes its columns.
    ///
    /// # Errors
    /// Damage and I/O.
    pub fn look(&self, database: &Database, own: Option<TxnId>, buffers: &mut PointBuffers) -> Result<Look<()>, StorageError> {
        let tree = match self.tree.get() {
            Some(tree) => tree,
            None => {
                let found = database.handle(self.table.rows().tree)?;
                self.tree.get_or_init(|| found)
            }
        };
        let PointBuffers { key, columns, .. } = buffers;
        columns.clear();
        let decode = |row: &[u8]| {
            for place in &self.places {
                columns.push(match place {
                    ColumnPlace::Row(position) => self.layout.row.decode_value(*position, &OneRow(row), 0)?,
                    ColumnPlace::Key(at) => self.key_column(key, *at)?,
                    ColumnPlace::Elsewhere => return Err(Damage::new("the rows' own tree lacks a column")),
                });
            }
            Ok(())
        };
        let damaged = |damage: Damage| StorageError::Damage { page: PageId::NONE, offset: 0, detail: damage.detail };
        match database.look(tree, own, key, decode)? {
            Look::Seen(decoded) => decoded.map(Look::Seen).map_err(damaged),
            Look::Absent => Ok(Look::Absent),
            Look::Unsure => Ok(Look::Unsure),
        }
    }

    fn key_column(&self, key: &[u8], at: usize) -> Result<Scalar, Damage> {
        let mut rest = key;
        self.layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before))?;
        decode_value(&mut rest, &self.layout.key[at])
    }

    /// Whether the row that was seen is wanted; if so `outputs` has what it gives.
    ///
    /// # Errors
    /// Those of the plan's expressions.
    pub fn finish(&self, host: &mut dyn StatementHost, buffers: &mut PointBuffers) -> Result<bool, SqlError> {
        let PointBuffers { columns, outputs, .. } = buffers;
        if self.residual.is_none() && self.outputs.is_none() {
            std::mem::swap(columns, outputs);
            return Ok(true);
        }
        let mut state = CxState::default();
        let mut cx = Cx { host, state: &mut state };
        let row = RowRef::of_values(columns);
        if let Some(residual) = &self.residual
            && eval_row(residual, row, &mut cx)? != Scalar::Bit(true)
        {
            return Ok(false);
        }
        outputs.clear();
        match &self.outputs {
            Some(exprs) => {
                for expr in exprs {
                    outputs.push(eval_row(expr, row, &mut cx)?);
                }
            }
            None => outputs.append(columns),
        }
        Ok(true)
    }
}

/// The values of every key column, if the ranges are one whole key of a unique index.
pub(super) fn whole_key<'r>(table: &TableDef, ranges: &'r [SeekRange]) -> Option<&'r [Expr]> {
    let index = table.rows();
    let [SeekRange { start: Some(start), end: Some(end) }] = ranges else { return None };
    let whole = index.unique && !index.keys.is_empty() && start.values.len() == index.keys.len() && end.values.len() == index.keys.len();
    let one = whole && start.inclusive && end.inclusive && start.values.iter().zip(&end.values).all(|(a, b)| is_same(a, b));
    one.then_some(&start.values)
}

/// Whether two expressions are one: of the kinds that key values are.
fn is_same(a: &Expr, b: &Expr) -> bool {
    a.sql_type == b.sql_type
        && match (&a.kind, &b.kind) {
            (ExprKind::Literal(a), ExprKind::Literal(b)) => a == b,
            (ExprKind::Variable(a), ExprKind::Variable(b)) => a == b,
            (
                ExprKind::Convert { operand: a, style: a_style, attempt: a_attempt },
                ExprKind::Convert { operand: b, style: b_style, attempt: b_attempt },
            ) => (a_style, a_attempt) == (b_style, b_attempt) && is_same(a, b),
            (
                ExprKind::Arithmetic { op: a_op, left: a_left, right: a_right },
                ExprKind::Arithmetic { op: b_op, left: b_left, right: b_right },
            ) => a_op == b_op && is_same(a_left, b_left) && is_same(a_right, b_right),
            _ => false,
        }
}

/// Whether evaluating the expression runs no plan and no statement, changes nothing and looks at no enclosing row.
pub fn runs_nothing(expr: &Expr) -> bool {
    let mut plain = match &expr.kind {
        ExprKind::Subquery { .. } | ExprKind::Outer { .. } => false,
        ExprKind::Function { name, .. } => !matches!(*name, USER_FUNCTION | "NEXT VALUE FOR"),
        _ => true,
    };
    visit_operands(expr, &mut |operand| plain = plain && runs_nothing(operand));
    plain
}

/// Whether the expression calls a function.
pub fn calls_function(expr: &Expr) -> bool {
    let mut calls = matches!(expr.kind, ExprKind::Function { .. });
    visit_operands(expr, &mut |operand| calls = calls || calls_function(operand));
    calls
}

fn names_variable(expr: &Expr) -> bool {
    let mut names = matches!(expr.kind, ExprKind::Variable(_));
    visit_operands(expr, &mut |operand| names = names || names_variable(operand));
    names
}
