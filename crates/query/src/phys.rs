//! Physical plans: what the optimizer decides and the executor runs.
//!
//! Each node lists its output columns by position. Expressions refer to positions of the node's input; of a
//! join's, left columns come first, then right. `bind`/`optimize` make these trees, `exec` turns each node into an
//! operator; nothing else knows both sides.

use crate::compile::ChangeAction;
use crate::expr::{Aggregate, Expr};
use crate::locking::LockHints;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::SqlType;

/// A column a plan puts out.
#[derive(Debug, Clone)]
pub struct OutputColumn {
    /// Name shown to the client; empty for an unnamed expression.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// IDENTITY column of a base table (metadata for the client).
    pub identity: bool,
}

/// A node with what it puts out and the optimizer's estimate.
#[derive(Debug, Clone)]
pub struct Node {
    /// The operation.
    pub kind: NodeKind,
    /// Output columns.
    pub columns: Vec<OutputColumn>,
    /// Rows expected.
    pub rows_estimate: f64,
}

/// Rows that come from code rather than a tree: catalog and dynamic management views, table-valued functions.
pub trait RowSource: Send + Sync + std::fmt::Debug {
    /// Name, as plans show it.
    fn name(&self) -> &str;
    /// Columns, in order.
    fn columns(&self) -> &[OutputColumn];
    /// All rows now; `arguments` of a table-valued function.
    fn rows(
        &self,
        cx: &dyn crate::context::SessionInfo,
        arguments: &[thawdb_types::Scalar],
    ) -> Result<Vec<Vec<thawdb_types::Scalar>>, thawdb_types::SqlError>;
    /// The same, for sources that have to run statements for their rows.
    fn rows_by(
        &self,
        host: &mut dyn crate::context::StatementHost,
        arguments: &[thawdb_types::Scalar],
    ) -> Result<Vec<Vec<thawdb_types::Scalar>>, thawdb_types::SqlError> {
        self.rows(host.session(), arguments)
    }
}

/// One bound of an index seek: values for a prefix of the key columns.
#[derive(Debug, Clone)]
pub struct SeekBound {
    /// Values of the leading key columns, of the columns' own types, evaluated against the outer row and variables.
    pub values: Vec<Expr>,
    /// Whether keys equal to the prefix are inside.
    pub inclusive: bool,
}

/// A range of an index. A key column compared with NULL makes the range empty.
#[derive(Debug, Clone, Default)]
pub struct SeekRange {
    /// Lower end in index order.
    pub start: Option<SeekBound>,
    /// Upper end in index order.
    pub end: Option<SeekBound>,
}

/// The operations.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum NodeKind {
    /// One row without columns: SELECT without FROM.
    OneRow,
    /// Literal rows (VALUES).
    Values {
        rows: Vec<Vec<Expr>>,
    },
    /// Reads `columns` (positions in the table; `table.columns.len()` means the locator, a Binary column with the
    /// clustered key) of the rows in `ranges` of index `index` (position in `table.indexes`); all rows if `ranges`
    /// is empty. A secondary index that lacks a column looks it up in the rows. `residual` sees `columns`.
    TableScan {
        table: Arc<TableDef>,
        index: usize,
        ranges: Vec<SeekRange>,
        columns: Vec<usize>,
        residual: Option<Expr>,
        backward: bool,
        locking: LockHints,
    },
    SourceScan {
        source: Arc<dyn RowSource>,
        arguments: Vec<Expr>,
        columns: Vec<usize>,
        residual: Option<Expr>,
    },
    Filter {
        input: Box<Node>,
        predicate: Expr,
    },
    Project {
        input: Box<Node>,
        exprs: Vec<Expr>,
    },
    /// Join by evaluating `right` again for each left row, which it sees as `Outer { level: 1 }`. Index nested loops,
    /// CROSS/OUTER APPLY and correlated subqueries are all this.
    Apply {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        predicate: Option<Expr>,
    },
    /// Equality of `keys` pairs, then `residual` over left+right columns. Builds on the right.
    HashJoin {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        keys: Vec<(Expr, Expr)>,
        residual: Option<Expr>,
    },
    /// Both inputs sorted by the keys.
    MergeJoin {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        keys: Vec<(usize, usize)>,
        residual: Option<Expr>,
    },
    /// Any predicate, right side kept in memory.
    NestedLoopJoin {
        left: Box<Node>,
        right: Box<Node>,
        kind: JoinKind,
        predicate: Option<Expr>,
    },
    /// Output: keys, then aggregates. No keys: one row even for no input.
    HashAggregate {
        input: Box<Node>,
        keys: Vec<Expr>,
        aggregates: Vec<Aggregate>,
    },
    /// The same over input sorted by the keys.
    StreamAggregate {
        input: Box<Node>,
        keys: Vec<Expr>,
        aggregates: Vec<Aggregate>,
    },
    /// One thread's part of an aggregate: keys, then the columns in which `aggregate::partial_types` hands states over; of
    /// a group perhaps more than one row.
    PartialAggregate {
        input: Box<Node>,
        keys: Vec<Expr>,
        aggregates: Vec<Aggregate>,
    },
    /// Takes what [`NodeKind::PartialAggregate`] puts out together: the first `key_count` columns are the keys.
    FinalAggregate {
        input: Box<Node>,
        key_count: usize,
        aggregates: Vec<Aggregate>,
    },
    /// Rows of `input`, which reads one table, by up to `degree_max` threads, each over parts of it.
    Gather {
        input: Box<Node>,
        order: GatherOrder,
        degree_max: u16,
    },
    Distinct {
        input: Box<Node>,
    },
    Sort {
        input: Box<Node>,
        keys: Vec<SortKey>,
    },
    /// Sort that keeps the first `limit` rows.
    TopN {
        input: Box<Node>,
        keys: Vec<SortKey>,
        limit: Expr,
        percent: bool,
        with_ties: bool,
    },
    Limit {
        input: Box<Node>,
        offset: Option<Expr>,
        limit: Option<Expr>,
        percent: bool,
    },
    Concatenate {
        inputs: Vec<Node>,
    },
    /// EXCEPT (keep = false) or INTERSECT (keep = true), distinct.
    SetDifference {
        left: Box<Node>,
        right: Box<Node>,
        keep: bool,
    },
    /// Asserts that at most one row comes (512); puts out exactly one, NULLs if none.
    SingleRow {
        input: Box<Node>,
    },
    /// Appends window function columns; input sorted by partition then order keys.
    Window {
        input: Box<Node>,
        partition: Vec<Expr>,
        order: Vec<SortKey>,
        functions: Vec<WindowFunction>,
    },
    /// Inserts input rows; `targets[i]` is the table column of input column i; other columns get defaults, given as
    /// `defaults` (table column, expression). `computed` are the stored computed columns, over the new row. `passed` input columns are handed on as they came. OUTPUT puts out `output` over the inserted row's table columns.
    Insert {
        table: Arc<TableDef>,
        input: Box<Node>,
        targets: Vec<usize>,
        defaults: Vec<(usize, Expr)>,
        computed: Vec<(usize, Expr)>,
        passed: Vec<usize>,
        output: Vec<Expr>,
    },
    /// Updates the rows whose locator is input column 0: `assignments` (table column, expression over input).
    /// `old_columns[c]` is the input position of table column c, all present. `output` sees deleted then inserted
    /// columns, then input columns.
    Update {
        table: Arc<TableDef>,
        input: Box<Node>,
        assignments: Vec<(usize, Expr)>,
        computed: Vec<(usize, Expr)>,
        old_columns: Vec<usize>,
        output: Vec<Expr>,
    },
    /// Deletes the rows whose locator is input column 0; `old_columns` and `output` likewise.
    Delete {
        table: Arc<TableDef>,
        input: Box<Node>,
        old_columns: Vec<usize>,
        output: Vec<Expr>,
    },
    /// Changes rows by several steps: input column 0 is the target row's locator (NULL where there is none), column 1 the
    /// number of the row's step, by which the input is sorted. `output` sees deleted, inserted and input columns, then the
    /// name of the action.
    Merge {
        table: Arc<TableDef>,
        input: Box<Node>,
        steps: Vec<MergeStep>,
        computed: Vec<(usize, Expr)>,
        old_columns: Vec<usize>,
        output: Vec<Expr>,
    },
    /// Works out rows and hands them to the host for an INSTEAD OF trigger: `old_columns` are input positions (none for
    /// INSERT), `new` one value a column (none for DELETE), `updated` the columns an UPDATE sets. `output` as in the
    /// statement's own node.
    Instead {
        table: Arc<TableDef>,
        action: ChangeAction,
        input: Box<Node>,
        old_columns: Vec<usize>,
        new: Vec<Expr>,
        updated: Vec<usize>,
        output: Vec<Expr>,
    },
    /// Assigns variables for every row (SELECT @v = ...), puts out nothing.
    AssignVariables {
        input: Box<Node>,
        assignments: Vec<(usize, Expr)>,
    },
    /// A recursive common table expression: rows of `anchor`, then of `recursive` over the rows of the round before
    /// (which its [`NodeKind::WorkTableScan`] of the same number reads) until a round has none. 530 past `depth_max`
    /// rounds, unless it is 0.
    Recursive {
        anchor: Box<Node>,
        recursive: Box<Node>,
        work_table: u32,
        depth_max: u32,
    },
    /// The rows of the round before of the enclosing [`NodeKind::Recursive`] with this number.
    WorkTableScan {
        work_table: u32,
    },
}

/// How [`NodeKind::Gather`] divides its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatherOrder {
    /// Anyhow; rows come as they are ready.
    Any,
    /// Only between different values of the first so many key columns of the index; each part is run for itself, and rows
    /// come in the order of the parts.
    Parts(usize),
}

/// What MERGE does with the rows of a step; values are over the input.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum MergeStep {
    Delete,
    Update { assignments: Vec<(usize, Expr)> },
    Insert { values: Vec<(usize, Expr)>, defaults: Vec<(usize, Expr)> },
}

impl MergeStep {
    /// The expressions of the step's values.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (values, defaults): (&[(usize, Expr)], &[(usize, Expr)]) = match self {
            Self::Delete => (&[], &[]),
            Self::Update { assignments } => (assignments, &[]),
            Self::Insert { values, defaults } => (values, defaults),
        };
        values.iter().chain(defaults).map(|(_, expr)| expr)
    }
}

/// Kinds of join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    LeftOuter,
    RightOuter,
    FullOuter,
    /// Left rows with a match; left columns only.
    LeftSemi,
    /// Left rows without a match; left columns only.
    LeftAnti,
}

/// One key of an order; NULL is lowest.
#[derive(Debug, Clone)]
pub struct SortKey {
    /// The key.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
}

/// A window function over the node's partition and order.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    Ntile(Expr),
    PercentRank,
    CumeDist,
    /// PERCENTILE_CONT and PERCENTILE_DISC: `value` is what the rows are ordered by.
    Percentile {
        value: Expr,
        fraction: Expr,
        continuous: bool,
    },
    Lag {
        value: Expr,
        offset: Expr,
        default: Option<Expr>,
        lead: bool,
        ignore_nulls: bool,
    },
    FirstValue {
        value: Expr,
        last: bool,
        frame: Frame,
        ignore_nulls: bool,
    },
    Aggregate {
        aggregate: Aggregate,
        frame: Frame,
    },
}

/// ROWS or RANGE frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// ROWS (true) or RANGE.
    pub rows: bool,
    /// First row.
    pub start: FrameBound,
    /// Last row.
    pub end: FrameBound,
}

/// An end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(u64),
    CurrentRow,
    Following(u64),
    UnboundedFollowing,
}
