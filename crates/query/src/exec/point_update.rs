//! UPDATE of one row by its whole key, where no key and no other index changes: without arrays and operators below.
//!
//! ```text
//! key values ─► key bytes ─► lock and read the newest row ─► values ─► residual ─► new values ─► encode ─► replace
//!      anything special (large values, triggers, constraints, a level that does not lock): Update does it all
//! ```
//! Invariants: 1. the row is locked and read as `TableScan` would for the same plan ([`ScanSpec::read_plan`]), so waits,
//! conflicts and what stays locked are the same; when `Update` takes over, it finds the lock held already. 2. Values go into
//! columns by the same checks, in the same order ([`fit_value`], 515). Failure: as `Update`'s.

use crate::eval::{RowRef, eval_free, eval_row};
use crate::exec::assignment::{fit_value, full_name};
use crate::exec::layouts::{Layout, layout_of};
use crate::exec::point::{OneRow, runs_nothing, whole_key};
use crate::exec::table_scan::{ScanSpec, columns_of};
use crate::exec::table_writer::with_row;
use crate::exec::update::Update;
use crate::exec::{Batch, BoxOperator, Cx, Operator, moves_in, scan_spec};
use crate::expr::Expr;
use crate::locking::{LockHints, ReadPlan};
use crate::phys::Node;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, ColumnPlace, ObjectId, TableDef};
use thawdb_storage::{RowBlock, StorageError};
use thawdb_types::error::message;
use thawdb_types::key::{Damage, decode_value, encode_value, skip_value};
use thawdb_types::row::RowBuffer;
use thawdb_types::{Scalar, SqlError, SqlType};

/// An UPDATE as its node has it.
#[derive(Clone, Copy)]
pub(super) struct UpdateSpec<'p> {
    pub(super) table: &'p Arc<TableDef>,
    pub(super) input: &'p Node,
    pub(super) assignments: &'p [(usize, Expr)],
    pub(super) old_columns: &'p [usize],
    pub(super) output: &'p [Expr],
}

impl<'p> UpdateSpec<'p> {
    fn ordinary(self) -> Update<'p> {
        Update::new(self.table, self.input, self.assignments, &[], self.old_columns, self.output)
    }
}

pub(super) struct PointUpdate<'p> {
    update: UpdateSpec<'p>,
    scan: ScanSpec<'p>,
    key: &'p [Expr],
    layout: Layout,
    /// Columns of the scan that an expression names.
    named: Vec<usize>,
    /// What does it all, where this cannot.
    ordinary: Option<BoxOperator<'p>>,
    done: bool,
}

impl<'p> PointUpdate<'p> {
    /// The operator, if the statement is one of those.
    pub(super) fn of(update: UpdateSpec<'p>) -> Option<Self> {
        let scan = scan_spec(update.input).filter(|scan| scan.index == 0 && scan.locking == LockHints::TARGET)?;
        let key = whole_key(update.table, scan.ranges)?;
        let changed: Vec<usize> = update.assignments.iter().map(|(column, _)| *column).collect();
        let touches_index = |(at, index): (usize, &thawdb_catalog::IndexDef)| {
            if at == 0 { moves_in(index, &changed) } else { changed.iter().any(|column| index.depends_on(*column)) }
        };
        let mut named = Vec::new();
        update.assignments.iter().map(|(_, expr)| expr).chain(scan.residual).for_each(|expr| columns_of(expr, &mut named));
        let names_locator = named.iter().any(|at| scan.columns[*at] >= update.table.columns.len());
        // What a new row works out by itself is `Update`'s.
        let is_plain = |column: &ColumnDef| column.computed.is_none() && column.sql_type != SqlType::RowVersion;
        let plain = update.table.columns.iter().all(is_plain);
        let simple =
            plain && update.output.is_empty() && update.table.building.is_none() && update.table.id > ObjectId(0) && !names_locator;
        let exprs = update.assignments.iter().map(|(_, expr)| expr).chain(scan.residual).chain(key);
        if !simple || update.table.indexes.iter().enumerate().any(touches_index) || !exprs.into_iter().all(runs_nothing) {
            return None;
        }
        let layout = layout_of(update.table, 0);
        Some(Self { update, scan, key, layout, named, ordinary: None, done: false })
    }

    /// The key's bytes; `None` if a value is NULL, which no row equals.
    fn key(&self, cx: &mut Cx<'p, '_>) -> Result<Option<Vec<u8>>, SqlError> {
        let mut bytes = Vec::with_capacity(16);
        for (expr, column) in self.key.iter().zip(&self.layout.key) {
            let value = eval_free(expr, cx)?;
            if value.is_null() {
                return Ok(None);
            }
            encode_value(&value, column, &mut bytes);
        }
        Ok(Some(bytes))
    }

    /// Every column of the table.
    fn values(&self, key: &[u8], block: &RowBlock) -> Result<Vec<Scalar>, Damage> {
        let row = OneRow(block.value(0));
        (0..self.update.table.columns.len())
            .map(|column| match self.layout.place(column) {
                ColumnPlace::Row(position) => self.layout.row.decode_value(position, &row, 0),
                ColumnPlace::Key(at) => {
                    let mut rest = key;
                    self.layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before))?;
                    decode_value(&mut rest, &self.layout.key[at])
                }
                ColumnPlace::Elsewhere => Err(Damage::new("the rows' own tree lacks a column")),
            })
            .collect()
    }

    /// Changes the row; false if `Update` must do it.
    fn change(&self, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        let table = self.update.table;
        let database = table.database;
        let ReadPlan::Locks { locks, gives_back } = self.scan.read_plan(cx)? else { return Ok(false) };
        if !locks.keep || cx.host.watches(table) {
            return Ok(false);
        }
        let Some(key) = self.key(cx)? else { return Ok(true) };
        let tree = table.rows().tree;
        let read = cx.host.txn(database)?.read_locked(tree, &key, locks).map_err(|e| cx.host.storage_error(database, e))?;
        if read.block.is_empty() {
            return Ok(true);
        }
        if !read.block.large(0).is_empty() {
            return Ok(false);
        }
        let damaged = |cx: &Cx<'p, '_>, damage: Damage| {
            let page = thawdb_storage::PageId::NONE;
            cx.host.storage_error(database, StorageError::Damage { page, offset: 0, detail: damage.detail })
        };
        let mut values = self.values(&key, &read.block).map_err(|damage| damaged(cx, damage))?;
        let mut seen = vec![Scalar::Null; self.scan.columns.len()];
        self.named.iter().for_each(|at| seen[*at] = values[self.scan.columns[*at]].clone());
        let row = RowRef::of_values(&seen);
        if let Some(residual) = self.scan.residual
            && eval_row(residual, row, cx)? != Scalar::Bit(true)
        {
            if gives_back && read.fresh.first() == Some(&true) {
                cx.host.txn(database)?.unlock_read(tree, &key);
            }
            return Ok(true);
        }
        for (column, expr) in self.update.assignments {
            let value = eval_row(expr, row, cx)?;
            values[*column] = fit_value(table, &table.columns[*column], value, &expr.sql_type, cx)?;
        }
        if let Some((definition, _)) = table.columns.iter().zip(&values).find(|(definition, value)| !definition.nullable && value.is_null())
        {
            return Err(message(515, &[&definition.name, &full_name(table, cx), &"UPDATE"]));
        }
        let stored: Vec<Scalar> =
            self.layout.row_columns.iter().map(|column| std::mem::replace(&mut values[*column], Scalar::Null)).collect();
        let mut bytes = RowBuffer::default();
        self.layout.row.encode(&stored, &mut bytes)?;
        let txn = cx.host.txn(database)?;
        let replaced = with_row(&bytes, |row| txn.update(tree, &key, row));
        match replaced.and_then(|there| if there { Ok(()) } else { Err(StorageError::Bug("a locked row is gone".into())) }) {
            Ok(()) => cx.state.rows_affected += 1,
            Err(error) => return Err(cx.host.storage_error(database, error)),
        }
        Ok(true)
    }
}

impl<'p> Operator<'p> for PointUpdate<'p> {
    fn open(&mut self, _: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        (self.ordinary, self.done) = (None, false);
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if let Some(ordinary) = &mut self.ordinary {
            return ordinary.next(cx);
        }
        if std::mem::replace(&mut self.done, true) || self.change(cx)? {
            return Ok(None);
        }
        let mut ordinary: BoxOperator<'p> = Box::new(self.update.ordinary());
        ordinary.open(cx)?;
        self.ordinary.insert(ordinary).next(cx)
    }
}
