//! Reads a table through one of its indexes: whole, in ranges, or one row by its key.
//!
//! ```text
//! spans ─► scan, a leaf's rows at a time ─► blocks until a batch is full, their memory used again
//!   columns of the residual predicate ─► which rows stay ─► the other columns: of those rows if they are few, else of
//!                                        all and filtered, which the loops over whole pages make cheaper
//!   columns the index lacks: the row is looked up by its key, for rows that stay
//! ```
//! Invariants: 1. one view for the whole execution, so a statement never sees its own changes. 2. Rows come in index
//! order, spans too. 3. The first batch is one leaf, so that a query that wants one row does not read twenty leaves.
//! A COUNT(*) without predicate decodes nothing.
//!
//! Under an isolation level or hint that locks, rows come by `locked_rows` instead, and the view serves large values only.
//!
//! One of several threads (`gather`) reads by the view and the spans that it is given; the other scans of the thread's plan
//! read what that says.
//!
//! A key of a unique first index is fetched without a scan. Cancellation is asked for once a batch. A row that an index
//! names and that is not there is damage (824).

use crate::eval::select;
use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::correlation::visit_operands;
use crate::exec::decode::{Fetched, ReadError, Wanted, decode, needs_whole_keys};
use crate::exec::layouts::{Layout, layout_of};
use crate::exec::locked_rows::LockedRead;
use crate::exec::parts::{PartSource, PartSupply};
use crate::exec::seek::{Span, spans};
use crate::exec::{Batch, Cx, Operator};
use crate::expr::{Expr, ExprKind};
use crate::locking::{LockHints, ReadPlan};
use crate::phys::SeekRange;
use arrow_array::{ArrayRef, NullArray};
use arrow_buffer::BooleanBuffer;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use thawdb_catalog::{ColumnPlace, DatabaseId, ObjectId, TableDef, TreeLayout};
use thawdb_storage::{ReadView, RowBlock, Scan, ScanDirection, StorageError};
use thawdb_types::SqlError;
use thawdb_types::key::Damage;

/// Rows a batch of a COUNT(*) stands for: cancellation is asked for once a batch.
const COUNT_ROWS: usize = 1 << 17;
/// With at least one row in so many kept, all are decoded and filtered.
const KEPT_SHARE: usize = 16;

/// What a scan was asked for.
pub(super) struct ScanSpec<'p> {
    pub(super) table: &'p Arc<TableDef>,
    pub(super) index: usize,
    pub(super) ranges: &'p [SeekRange],
    pub(super) columns: &'p [usize],
    pub(super) residual: Option<&'p Expr>,
    pub(super) backward: bool,
    pub(super) locking: LockHints,
}

impl ScanSpec<'_> {
    /// What tells a scan of a plan from all others: where its table is named, which stays in place as long as the plan does.
    pub(super) fn identity(&self) -> usize {
        std::ptr::from_ref(self.table).addr()
    }

    /// Whether the scan is of one key of a unique first index.
    pub(super) fn is_one_row(&self) -> bool {
        let index = &self.table.indexes[self.index];
        self.index == 0
            && index.unique
            && !index.keys.is_empty()
            && self.ranges.len() == 1
            && self.ranges[0].start.as_ref().is_some_and(|b| b.inclusive && b.values.len() == index.keys.len())
            && self.ranges[0].end.as_ref().is_some_and(|b| b.inclusive && b.values.len() == index.keys.len())
    }
}

pub(super) struct TableScan<'p> {
    spec: ScanSpec<'p>,
    layout: Layout,
    /// Layout of the rows' own tree, if columns must be looked up there.
    rows_layout: Option<Layout>,
    wanted: Vec<Wanted>,
    /// Output columns the residual predicate looks at.
    residual_columns: Vec<usize>,
    /// Whether whole keys are needed: for locators, look-ups, and key columns that only a walk over the key finds.
    whole_keys: bool,
    /// Whether a column of the tree's rows is read.
    of_rows: bool,
    /// Memory of blocks, the first of which the present batch uses.
    blocks: Vec<RowBlock>,
    view: Option<ReadView>,
    spans: VecDeque<Span>,
    /// Where more spans come from, if this is one of several threads.
    supply: Option<Arc<PartSupply>>,
    /// Whether each span is read to its end: what one of several threads reads.
    whole_spans: bool,
    /// Whether of each span the first leaf alone is read: a sample.
    first_leaves: bool,
    scan: Option<Scan>,
    batch_rows: usize,
    /// The read, if it is one under locks.
    locked: Option<LockedRead>,
    /// Which rows of the last batch the predicate kept, of a read under locks.
    kept: RefCell<Option<BooleanBuffer>>,
    /// Rows that will be asked for at most, and how many have been given.
    goal: u64,
    given: u64,
}

impl<'p> TableScan<'p> {
    pub(super) fn new(spec: ScanSpec<'p>) -> Self {
        let layout = layout_of(spec.table, spec.index);
        let of_secondary = spec.index != 0;
        let wanted: Vec<Wanted> = spec
            .columns
            .iter()
            .map(|&column| match spec.table.columns.get(column) {
                Some(definition) => Wanted::Column { place: layout.place(column), sql_type: definition.sql_type },
                None => Wanted::Locator { of_secondary },
            })
            .collect();
        let looks_up = wanted.iter().any(|w| matches!(w, Wanted::Column { place: ColumnPlace::Elsewhere, .. }));
        let rows_layout = looks_up.then(|| layout_of(spec.table, 0));
        let mut residual_columns = Vec::new();
        if let Some(residual) = spec.residual {
            columns_of(residual, &mut residual_columns);
        }
        let whole_keys = looks_up || wanted.iter().any(|w| needs_whole_keys(&layout, w));
        let of_rows = wanted.iter().any(|w| matches!(w, Wanted::Column { place: ColumnPlace::Row(_), .. }));
        Self {
            spec,
            layout,
            rows_layout,
            wanted,
            residual_columns,
            whole_keys,
            of_rows,
            blocks: Vec::new(),
            view: None,
            spans: VecDeque::new(),
            supply: None,
            whole_spans: false,
            first_leaves: false,
            scan: None,
            batch_rows: 1,
            locked: None,
            kept: RefCell::new(None),
            goal: u64::MAX,
            given: 0,
        }
    }

    /// The view this execution reads by, taken at the first opening. Reads under locks have it for what is shared.
    fn view(&mut self, cx: &mut Cx<'p, '_>) -> Result<ReadView, SqlError> {
        if self.view.is_none() {
            let database = self.spec.table.database;
            let plan = self.spec.read_plan(cx)?;
            if let ReadPlan::Locks { locks, gives_back } = plan {
                // The transaction begins before the view: the view is to see what it changed before.
                cx.host.txn(database)?;
                self.locked = Some(LockedRead::new(locks, gives_back, self.spec.table.indexes[self.spec.index].tree));
            }
            let view = cx.host.read_view(database)?;
            self.view = Some(if plan == ReadPlan::Uncommitted { view.uncommitted() } else { view });
        }
        Ok(self.view.clone().expect("taken above"))
    }

    /// The next rows of a read under locks, decoded; `None` at the end.
    fn next_locked(&mut self, view: &ReadView, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let database = self.spec.table.database;
        let mut locked = self.locked.take().expect("a read under locks");
        let goal = usize::try_from(self.goal.saturating_sub(self.given)).unwrap_or(usize::MAX);
        let look_up = self.rows_layout.is_some().then(|| (self.spec.table.rows().tree, &*self.layout));
        let mut spans = std::mem::take(&mut self.spans);
        let next_span = || {
            let span = if self.spec.backward { spans.pop_back() } else { spans.pop_front() };
            span.map(|span| {
                let one_row = self.is_one_row(&span);
                (span, one_row)
            })
        };
        let fetched = locked.fetch(cx.host.txn(database)?, goal, self.spec.backward, next_span, look_up);
        self.spans = spans;
        if !fetched.map_err(|error| cx.host.storage_error(database, error))? {
            self.locked = Some(locked);
            return Ok(None);
        }
        let blocks = [locked.block()];
        self.locked = Some(locked);
        self.kept.replace(None);
        let decoded = self.decode_batch(&Fetched::new(&self.layout, &blocks, self.of_rows), view, cx);
        let locked = self.locked.as_mut().expect("put back above");
        let [block] = blocks;
        locked.restore(block);
        if let Some(kept) = self.kept.take() {
            locked.give_back(cx.host.txn(database)?, &kept);
        }
        let batch = decoded.map_err(|failure| failure.to_sql(database, cx))?;
        self.given += batch.rows as u64;
        Ok(Some(batch))
    }

    /// Notes which rows the predicate keeps, for a read that gives the locks of the others back.
    fn note_kept(&self, keep: &BooleanBuffer) {
        if self.locked.is_some() {
            self.kept.replace(Some(keep.clone()));
        }
    }

    /// Whether `span` is one key of a unique first index.
    fn is_one_row(&self, span: &Span) -> bool {
        self.spec.is_one_row() && span.to.as_ref().is_some_and(|to| *to == thawdb_types::key::range_end(&span.from))
    }

    /// The next span's scan, or the row that the span is; `None` at the end.
    fn next_span(&mut self, view: &ReadView) -> Result<Option<Option<RowBlock>>, StorageError> {
        let tree = self.spec.table.indexes[self.spec.index].tree;
        let mut span = if self.spec.backward { self.spans.pop_back() } else { self.spans.pop_front() };
        if span.is_none()
            && let Some(part) = self.supply.as_ref().and_then(|supply| supply.take())
        {
            if part.scan.is_some() {
                self.scan = part.scan;
                return Ok(Some(None));
            }
            span = Some(part.span);
        }
        let Some(span) = span else { return Ok(None) };
        if self.is_one_row(&span) {
            return Ok(Some(view.get(tree, &span.from)?));
        }
        let direction = if self.spec.backward { ScanDirection::Backward } else { ScanDirection::Forward };
        let mut scan = view.scan(tree, span.into_range(), direction)?;
        if self.whole_spans {
            scan.expect_whole();
        }
        self.scan = Some(scan);
        Ok(Some(None))
    }

    /// Fills blocks for the next batch; returns how many, 0 at the end.
    fn fetch(&mut self, view: &ReadView) -> Result<usize, StorageError> {
        let (mut filled, mut rows) = (0, 0);
        while rows < self.batch_rows {
            if filled == self.blocks.len() {
                self.blocks.push(RowBlock::default());
            }
            let Some(scan) = &mut self.scan else {
                match self.next_span(view)? {
                    None => break,
                    Some(None) => {}
                    Some(Some(row)) => {
                        self.blocks[filled] = row;
                        (filled, rows) = (filled + 1, rows + 1);
                    }
                }
                continue;
            };
            let block = &mut self.blocks[filled];
            if !scan.next_into(block)? {
                self.scan = None;
                continue;
            }
            if self.whole_keys {
                block.spell_keys();
            }
            (filled, rows) = (filled + 1, rows + block.len());
            if self.first_leaves {
                self.scan = None;
            }
        }
        // Those of a longer batch before.
        self.blocks[filled..].iter_mut().for_each(RowBlock::let_go);
        self.batch_rows = BATCH_ROWS;
        Ok(filled)
    }

    /// Rows of the next batch when no column is asked for.
    fn count(&mut self, view: &ReadView) -> Result<usize, StorageError> {
        let mut rows = 0;
        if let Some(scan) = self.scan.as_mut().filter(|_| self.goal == u64::MAX && self.batch_rows > 1) {
            // Who asks for a second batch of nothing but a count wants all of it.
            scan.expect_whole();
        }
        while rows < self.batch_rows {
            match &mut self.scan {
                Some(scan) => match scan.next_count()? {
                    Some(more) => rows += more,
                    None => self.scan = None,
                },
                None => match self.next_span(view)? {
                    Some(row) => rows += usize::from(row.is_some()),
                    None => break,
                },
            }
        }
        self.batch_rows = COUNT_ROWS;
        Ok(rows)
    }

    /// Rows of the table's own tree that the entries at `picks` point to.
    fn look_up(&self, blocks: &[RowBlock], picks: &[(u32, u32)], view: &ReadView) -> Result<Vec<RowBlock>, ReadError> {
        let tree = self.spec.table.rows().tree;
        picks
            .iter()
            .map(|&(block, row)| {
                let key = self.layout.row_key(blocks[block as usize].key(row as usize))?;
                view.get(tree, key)?.ok_or_else(|| Damage::new("an index entry names a row that is not there").into())
            })
            .collect()
    }

    fn decode_batch(&self, fetched: &Fetched<'_>, view: &ReadView, cx: &mut Cx<'p, '_>) -> Result<Batch, Failure> {
        let rows = fetched.rows();
        let missing: ArrayRef = Arc::new(NullArray::new(rows));
        let mut columns: Vec<ArrayRef> = vec![missing; self.wanted.len()];
        let mut kept = Kept::All;
        let residual_looks_up = self.residual_columns.iter().any(|at| self.is_elsewhere(*at));
        if let Some(residual) = self.spec.residual.filter(|_| !residual_looks_up) {
            for &at in &self.residual_columns {
                columns[at] = decode(&self.layout, &self.wanted[at], fetched, None, view)?;
            }
            let keep = select(residual, &Batch { columns: columns.clone(), rows }, cx)?;
            self.note_kept(&keep);
            kept = match keep.count_set_bits() {
                0 => return Ok(Batch::new(columns.iter().map(|column| column.slice(0, 0)).collect(), 0)),
                count if count == rows => Kept::All,
                count if count * KEPT_SHARE >= rows && self.rows_layout.is_none() => Kept::Mask(keep),
                _ => Kept::Picks(picked(fetched.blocks(), &keep), keep),
            };
        }
        if let Kept::Picks(_, keep) = &kept {
            for &at in &self.residual_columns {
                let only = Batch { columns: vec![columns[at].clone()], rows };
                columns[at] = only.filter(keep).columns.remove(0);
            }
        }
        self.decode_rest(fetched, kept.picks(), &mut columns, residual_looks_up, view)?;
        let batch = Batch::new(columns, kept.picks().map_or(rows, <[_]>::len));
        match (kept, self.spec.residual.filter(|_| residual_looks_up)) {
            (_, Some(residual)) => {
                let keep = select(residual, &batch, cx)?;
                self.note_kept(&keep);
                Ok(batch.filter(&keep))
            }
            (Kept::Mask(keep), None) => Ok(batch.filter(&keep)),
            _ => Ok(batch),
        }
    }

    fn is_elsewhere(&self, at: usize) -> bool {
        matches!(self.wanted[at], Wanted::Column { place: ColumnPlace::Elsewhere, .. })
    }

    /// Decodes every column that the residual predicate has not decoded yet.
    fn decode_rest(
        &self,
        fetched: &Fetched<'_>,
        picks: Option<&[(u32, u32)]>,
        columns: &mut [ArrayRef],
        all: bool,
        view: &ReadView,
    ) -> Result<(), ReadError> {
        let found = match (&self.rows_layout, &self.locked) {
            (Some(_), Some(locked)) => locked.looked_up(picks),
            (Some(_), None) => match picks {
                Some(picks) => self.look_up(fetched.blocks(), picks, view)?,
                None => self.look_up(fetched.blocks(), &every_row(fetched.blocks()), view)?,
            },
            (None, _) => Vec::new(),
        };
        let found = Fetched::new(&self.layout, &found, false);
        for (at, wanted) in self.wanted.iter().enumerate() {
            if !all && self.residual_columns.contains(&at) {
                continue;
            }
            columns[at] = match (wanted, &self.rows_layout) {
                (Wanted::Column { place: ColumnPlace::Elsewhere, sql_type }, Some(layout)) => {
                    let place = layout.place(self.spec.columns[at]);
                    decode(layout, &Wanted::Column { place, sql_type: *sql_type }, &found, None, view)?
                }
                _ => decode(&self.layout, wanted, fetched, picks, view)?,
            };
        }
        Ok(())
    }

    /// Whether this scan locks the rows themselves for update as it reads them.
    pub(super) fn locks_rows(&self, cx: &Cx<'p, '_>) -> Result<bool, SqlError> {
        let locks = matches!(self.spec.read_plan(cx)?, ReadPlan::Locks { locks, .. } if locks.keep);
        Ok(locks && (self.spec.index == 0 || self.rows_layout.is_some()))
    }

    /// The newest state of one row as this scan would put it out; `None` if it lies outside the ranges or the residual
    /// predicate is not true. `block` holds the row of the table's own tree.
    pub(super) fn recheck(&mut self, block: RowBlock, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let view = self.view(cx)?;
        let database = self.spec.table.database;
        let layout = layout_of(self.spec.table, 0);
        let blocks = [block];
        let fetched = Fetched::new(&layout, &blocks, false);
        let mut columns = Vec::with_capacity(self.spec.columns.len());
        for &column in self.spec.columns {
            let wanted = match self.spec.table.columns.get(column) {
                Some(definition) => Wanted::Column { place: layout.place(column), sql_type: definition.sql_type },
                None => Wanted::Locator { of_secondary: false },
            };
            columns.push(decode(&layout, &wanted, &fetched, None, &view).map_err(|e| cx.host.storage_error(database, e.0))?);
        }
        let batch = Batch::new(columns, 1);
        if !self.spec.ranges.is_empty() && !self.in_ranges(&layout, &fetched, &view, cx)? {
            return Ok(None);
        }
        match self.spec.residual {
            Some(residual) if select(residual, &batch, cx)?.count_set_bits() == 0 => Ok(None),
            _ => Ok(Some(batch)),
        }
    }

    /// Whether the row's key in the scan's index lies in the scan's ranges.
    fn in_ranges(&self, layout: &TreeLayout, row: &Fetched<'_>, view: &ReadView, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        let mut key = Vec::new();
        for (own, column) in self.layout.own_key().iter().zip(&self.layout.key_columns) {
            let wanted = Wanted::Column { place: layout.place(*column), sql_type: own.sql_type };
            let value = decode(layout, &wanted, row, None, view).map_err(|e| cx.host.storage_error(self.spec.table.database, e.0))?;
            thawdb_types::key::encode_array_value(&value, 0, own, &mut key);
        }
        Ok(spans(self.spec.ranges, self.layout.own_key(), cx)?.iter().any(|span| span.contains(&key)))
    }
}

/// Which rows of a batch the residual predicate keeps.
enum Kept {
    All,
    /// So many that all are decoded and then filtered.
    Mask(BooleanBuffer),
    /// So few that only they are decoded.
    Picks(Vec<(u32, u32)>, BooleanBuffer),
}

impl Kept {
    fn picks(&self) -> Option<&[(u32, u32)]> {
        match self {
            Self::Picks(picks, _) => Some(picks),
            Self::All | Self::Mask(_) => None,
        }
    }
}

/// Reading failed, or evaluating did.
enum Failure {
    Read(ReadError),
    Sql(SqlError),
}

impl Failure {
    fn to_sql(self, database: DatabaseId, cx: &Cx<'_, '_>) -> SqlError {
        match self {
            Self::Read(error) => cx.host.storage_error(database, error.0),
            Self::Sql(error) => error,
        }
    }
}

impl ScanSpec<'_> {
    /// Whether and how this scan locks what it reads.
    pub(super) fn read_plan(&self, cx: &Cx<'_, '_>) -> Result<ReadPlan, SqlError> {
        if self.table.id < ObjectId(0) {
            // A temporary table or table variable is its session's alone.
            return Ok(ReadPlan::Versions);
        }
        let (level, versions) = cx.host.read_level(self.table.database)?;
        let keyed = self.index != 0 || !self.table.indexes[0].keys.is_empty();
        self.locking.plan(level, versions, keyed)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// Columns an expression names, each once.
pub(super) fn columns_of(expr: &Expr, found: &mut Vec<usize>) {
    match &expr.kind {
        ExprKind::Column(at) if !found.contains(at) => found.push(*at),
        // A subquery sees the row as its outer row: any column may be meant.
        ExprKind::Subquery { plan, .. } => outer_columns(plan, found),
        _ => {}
    }
    visit_operands(expr, &mut |operand| columns_of(operand, found));
}

fn outer_columns(plan: &crate::phys::Node, found: &mut Vec<usize>) {
    crate::exec::correlation::columns_of_outer_row(plan, 1, &mut |column| {
        if !found.contains(&column) {
            found.push(column);
        }
    });
}

fn every_row(blocks: &[RowBlock]) -> Vec<(u32, u32)> {
    let rows = |(at, block): (usize, &RowBlock)| (0..block.len()).map(move |row| (at as u32, row as u32));
    blocks.iter().enumerate().flat_map(rows).collect()
}

/// Places of the rows whose bit is set.
fn picked(blocks: &[RowBlock], keep: &BooleanBuffer) -> Vec<(u32, u32)> {
    let mut picks = Vec::with_capacity(keep.count_set_bits());
    let (mut block, mut start) = (0, 0);
    for at in keep.set_indices() {
        while at - start >= blocks[block].len() {
            start += blocks[block].len();
            block += 1;
        }
        picks.push((block as u32, (at - start) as u32));
    }
    picks
}

impl<'p> Operator<'p> for TableScan<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.scan = None;
        self.batch_rows = 1;
        self.given = 0;
        let identity = self.spec.identity();
        if let Some(own) = cx.state.worker_scan.as_mut().filter(|own| own.scan == identity) {
            (self.view, self.whole_spans) = (Some(own.view.clone()), true);
            match &mut own.source {
                PartSource::Supply(supply) => self.supply = Some(supply.clone()),
                PartSource::Sample { spans, first_leaves } => {
                    self.spans = spans.clone();
                    (self.whole_spans, self.first_leaves) = (!*first_leaves, *first_leaves);
                }
                PartSource::One(part) => {
                    self.scan = part.scan.take();
                    let unbegun = self.scan.is_none().then(|| part.span.clone());
                    self.spans = unbegun.into_iter().collect();
                }
            }
            return Ok(());
        }
        self.view(cx)?;
        if let Some(locked) = &mut self.locked {
            locked.begin_anew();
        }
        self.spans = match self.spec.ranges {
            [] => VecDeque::from([Span::everything()]),
            ranges => spans(ranges, self.layout.own_key(), cx)?.into(),
        };
        Ok(())
    }

    fn row_goal(&mut self, rows: u64) {
        self.goal = rows;
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let database = self.spec.table.database;
        let view = self.view.clone().expect("opened before");
        loop {
            cx.host.check_cancelled()?;
            if self.locked.is_some() {
                match self.next_locked(&view, cx)? {
                    Some(batch) if batch.rows == 0 => continue,
                    other => return Ok(other),
                }
            }
            if self.wanted.is_empty() && self.spec.residual.is_none() {
                let rows = self.count(&view).map_err(|e| cx.host.storage_error(database, e))?;
                return Ok((rows > 0).then(|| Batch::new(Vec::new(), rows)));
            }
            let filled = self.fetch(&view).map_err(|e| cx.host.storage_error(database, e))?;
            if filled == 0 {
                return Ok(None);
            }
            let fetched = Fetched::new(&self.layout, &self.blocks[..filled], self.of_rows);
            let batch = self.decode_batch(&fetched, &view, cx).map_err(|failure| failure.to_sql(database, cx))?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }
}
