//! Operators that touch tables, with an account of the pages they read: for SET STATISTICS IO.
//!
//! ```text
//! enter(table) ─► pages read so far go to whoever was at work ─► own work ─► leave ─► pages read go to the table
//! ```
//! An operator below, or a subquery's within, enters its own table in between, so that every page is counted once and for
//! the table it was read for. Without an account (the option is off) a call costs one comparison.

use crate::exec::{Batch, Cx, Operator, TakeBatch};
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_storage::page_reads::{PageReads, page_reads};
use thawdb_types::SqlError;

/// What was read of one table.
#[derive(Debug, Clone)]
pub struct TableReads {
    /// The table.
    pub table: Arc<TableDef>,
    /// Scans and seeks begun, those of one row by a unique key not among them.
    pub scans: u64,
    /// Pages.
    pub pages: PageReads,
    /// Rows that scans and seeks handed on.
    pub rows: u64,
}

/// What a plan has read, table by table in the order they were first touched.
#[derive(Debug)]
pub struct ReadAccount {
    tables: Vec<TableReads>,
    /// Whose work is going on.
    current: Option<usize>,
    /// The thread's counts when it began.
    mark: PageReads,
}

impl ReadAccount {
    /// An account that begins now.
    pub fn new() -> Self {
        Self { tables: Vec::new(), current: None, mark: page_reads() }
    }

    /// The tables.
    pub fn tables(&self) -> &[TableReads] {
        &self.tables
    }

    fn settle(&mut self) {
        let now = page_reads();
        if let Some(at) = self.current {
            let table = &mut self.tables[at];
            table.pages = table.pages.plus(&now.since(&self.mark));
        }
        self.mark = now;
    }

    fn enter(&mut self, table: &Arc<TableDef>, scans: u64) -> Option<usize> {
        self.settle();
        let known = self.tables.iter().position(|known| (known.table.database, known.table.id) == (table.database, table.id));
        let at = known.unwrap_or_else(|| {
            self.tables.push(TableReads { table: table.clone(), scans: 0, pages: PageReads::default(), rows: 0 });
            self.tables.len() - 1
        });
        self.tables[at].scans += scans;
        self.current.replace(at)
    }

    /// Counts scans that have begun of the table that is read now.
    pub(super) fn count_scans(&mut self, scans: u64) {
        if let Some(at) = self.current {
            self.tables[at].scans += scans;
        }
    }

    fn count_rows(&mut self, rows: u64) {
        if let Some(at) = self.current {
            self.tables[at].rows += rows;
        }
    }

    fn leave(&mut self, before: Option<usize>) {
        self.settle();
        self.current = before;
    }
}

impl Default for ReadAccount {
    fn default() -> Self {
        Self::new()
    }
}

/// An operator of a table.
pub(super) struct Counted<'p, O> {
    inner: O,
    table: &'p Arc<TableDef>,
    /// Scans that opening it begins.
    scans: u64,
}

impl<'p, O: Operator<'p>> Counted<'p, O> {
    pub(super) fn new(inner: O, table: &'p Arc<TableDef>, scans: u64) -> Self {
        Self { inner, table, scans }
    }

    fn within<R>(&mut self, scans: u64, cx: &mut Cx<'p, '_>, work: impl FnOnce(&mut O, &mut Cx<'p, '_>) -> R) -> R {
        let Some(account) = &mut cx.state.reads else { return work(&mut self.inner, cx) };
        let before = account.enter(self.table, scans);
        let result = work(&mut self.inner, cx);
        if let Some(account) = &mut cx.state.reads {
            account.leave(before);
        }
        result
    }
}

impl<'p, O: Operator<'p>> Operator<'p> for Counted<'p, O> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.within(self.scans, cx, |inner, cx| inner.open(cx))
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        self.within(0, cx, |inner, cx| {
            let batch = inner.next(cx)?;
            batch.iter().for_each(|batch| count_rows(batch, cx));
            Ok(batch)
        })
    }

    fn for_each(&mut self, cx: &mut Cx<'p, '_>, take: &mut TakeBatch<'_, 'p>) -> Result<(), SqlError> {
        self.within(0, cx, |inner, cx| {
            inner.for_each(cx, &mut |batch, cx| {
                count_rows(&batch, cx);
                take(batch, cx)
            })
        })
    }

    fn row_goal(&mut self, rows: u64) {
        self.inner.row_goal(rows);
    }
}

/// Counts what the table being read hands on.
fn count_rows(batch: &Batch, cx: &mut Cx<'_, '_>) {
    if let Some(account) = &mut cx.state.reads {
        account.count_rows(batch.rows as u64);
    }
}
