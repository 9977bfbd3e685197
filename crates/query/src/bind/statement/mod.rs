//! Statements: one file each.

mod cursor;
mod delete;
mod insert;
mod instead;
mod merge;
mod output;
mod select;
mod target;
mod update;
mod view_check;

pub(crate) use view_check::CheckedView;

use crate::algebra::{BoundExpr, ColumnRef, Rel};
use crate::bind::computed::BoundComputed;
use crate::bind::query::OutputName;
use crate::compile::ChangeAction;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, TableDef};
use thawdb_tsql::ast;

/// A bound statement.
#[derive(Debug)]
pub enum BoundStmt {
    /// Rows for the client.
    Query {
        /// The rows.
        rel: Rel,
        /// Their columns.
        outputs: Vec<OutputName>,
    },
    /// SELECT @v = ...
    Assign {
        /// The rows the values are computed over.
        rel: Rel,
        /// Variable and value, in order.
        assignments: Vec<(usize, BoundExpr)>,
    },
    /// SELECT INTO.
    SelectInto {
        /// The rows.
        rel: Rel,
        /// Their columns.
        outputs: Vec<OutputName>,
        /// The new table's name.
        table: ast::ObjectName,
        /// The new table's columns.
        columns: Vec<ColumnDef>,
    },
    /// INSERT.
    Insert(Box<BoundInsert>),
    /// UPDATE.
    Update(Box<BoundUpdate>),
    /// DELETE.
    Delete(Box<BoundDelete>),
    /// MERGE.
    Merge(Box<BoundMerge>),
    /// A statement whose rows go to an INSTEAD OF trigger.
    Instead(Box<BoundInstead>),
}

/// A bound INSERT.
#[derive(Debug)]
pub struct BoundInsert {
    /// Where to.
    pub table: Arc<TableDef>,
    /// The rows.
    pub input: Rel,
    /// Position in the table and column of the input.
    pub values: Vec<(usize, ColumnRef)>,
    /// Position in the table and default of columns not among `values`.
    pub defaults: Vec<(usize, BoundExpr)>,
    /// Its stored computed columns.
    pub computed: BoundComputed,
    /// OUTPUT.
    pub output: Option<BoundOutput>,
}

/// A bound UPDATE.
#[derive(Debug)]
pub struct BoundUpdate {
    /// The table.
    pub table: Arc<TableDef>,
    /// The rows to change, each once.
    pub input: Rel,
    /// The locator.
    pub locator: ColumnRef,
    /// Present values of all the table's columns.
    pub old: Vec<ColumnRef>,
    /// Position in the table and new value.
    pub assignments: Vec<(usize, BoundExpr)>,
    /// The table's stored computed columns.
    pub computed: BoundComputed,
    /// `@v = ...`: over deleted, inserted and input columns.
    pub variables: Vec<(usize, BoundExpr)>,
    /// OUTPUT; its inserted columns are there also when only `variables` needs them.
    pub output: Option<BoundOutput>,
    /// Columns that stand for the new row in `variables` and `output`.
    pub inserted: Vec<ColumnRef>,
}

/// A bound DELETE.
#[derive(Debug)]
pub struct BoundDelete {
    /// The table.
    pub table: Arc<TableDef>,
    /// The rows to delete, each once.
    pub input: Rel,
    /// The locator.
    pub locator: ColumnRef,
    /// Values of all the table's columns.
    pub old: Vec<ColumnRef>,
    /// OUTPUT.
    pub output: Option<BoundOutput>,
}

/// A bound MERGE.
#[derive(Debug)]
pub struct BoundMerge {
    /// The table.
    pub table: Arc<TableDef>,
    /// The rows that some clause takes.
    pub input: Rel,
    /// The target row's locator, NULL where there is none.
    pub locator: ColumnRef,
    /// Present values of all the table's columns.
    pub old: Vec<ColumnRef>,
    /// Number of the step that takes the row.
    pub action: ColumnRef,
    /// `$action` in OUTPUT.
    pub action_name: ColumnRef,
    /// What to do: deletes first, then updates, then inserts.
    pub steps: Vec<MergeStepKind>,
    /// The table's stored computed columns.
    pub computed: BoundComputed,
    /// OUTPUT.
    pub output: Option<BoundOutput>,
}

/// The action of a clause of MERGE.
#[derive(Debug)]
#[allow(missing_docs)] // as in `BoundUpdate` and `BoundInsert`
pub enum MergeStepKind {
    Delete,
    Update { assignments: Vec<(usize, BoundExpr)> },
    Insert { values: Vec<(usize, BoundExpr)>, defaults: Vec<(usize, BoundExpr)> },
}

/// A statement whose rows go to an INSTEAD OF trigger.
#[derive(Debug)]
pub struct BoundInstead {
    /// The table, or a view's columns as a table.
    pub table: Arc<TableDef>,
    /// The statement.
    pub action: ChangeAction,
    /// The rows.
    pub input: Rel,
    /// The old row's columns; none for INSERT.
    pub old: Vec<ColumnRef>,
    /// The new row's values, one a column; none for DELETE.
    pub new: Vec<BoundExpr>,
    /// Columns that UPDATE sets, by position.
    pub updated: Vec<usize>,
    /// OUTPUT.
    pub output: Option<BoundOutput>,
}

/// A bound OUTPUT clause.
#[derive(Debug)]
pub struct BoundOutput {
    /// Columns that stand for the new row, by position in the table; empty for DELETE.
    pub inserted: Vec<ColumnRef>,
    /// Columns that stand for the old row; empty for INSERT.
    pub deleted: Vec<ColumnRef>,
    /// Name and value of each item: with INTO those of the table first, then those of an OUTPUT to the client beside it.
    pub items: Vec<(String, BoundExpr)>,
    /// INTO: the table, position in it of each item, defaults of its other columns.
    pub into: Option<OutputInto>,
}

/// Where OUTPUT INTO puts its rows.
#[derive(Debug)]
pub struct OutputInto {
    /// The table.
    pub table: Arc<TableDef>,
    /// Position in the table of each item that is put there.
    pub targets: Vec<usize>,
    /// Position and default of its other columns.
    pub defaults: Vec<(usize, BoundExpr)>,
    /// Its stored computed columns.
    pub computed: BoundComputed,
}
