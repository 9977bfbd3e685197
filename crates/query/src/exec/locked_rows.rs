//! Rows a scan reads under locks: fetched a few at a time, looked up where the index lacks columns, given back if refused.
//!
//! ```text
//! span ─► LockingScan / one key ─► entries, locked ─► rows they name, locked ─► predicate ─► refused: locks given back
//! ```
//! Invariants: 1. `found`, if rows are looked up, has one row for each entry of `rows` (`look_up` drops the others).
//! 2. No more rows are locked ahead than the query is known to want (`rows_max`), so that a queue read with TOP (1) and
//! READPAST locks one. Locks are the transaction's; waits may last for ever. Failure: as of storage.

use crate::exec::seek::Span;
use arrow_buffer::BooleanBuffer;
use thawdb_catalog::TreeLayout;
use thawdb_storage::{LockedRows, LockingScan, ReadLocks, RowBlock, ScanDirection, StorageError, TreeId, Txn};

/// Rows first read at a time: then ever more, up to a leaf's.
const ROWS_FIRST: usize = 1;
/// How many times more each time.
const ROWS_GROWTH: usize = 4;
/// More rows than a leaf has.
const ROWS_MAX: usize = 1024;

/// A locking read under way, and the rows it has just found.
pub(super) struct LockedRead {
    locks: ReadLocks,
    gives_back: bool,
    tree: TreeId,
    scan: Option<LockingScan>,
    rows_max: usize,
    rows: LockedRows,
    /// The rows of the table's own tree, if they are looked up, with whether their locks are new.
    found: Vec<(RowBlock, bool)>,
    looked_up_in: Option<TreeId>,
}

impl LockedRead {
    pub(super) fn new(locks: ReadLocks, gives_back: bool, tree: TreeId) -> Self {
        let (rows, found) = (LockedRows::default(), Vec::new());
        Self { locks, gives_back, tree, scan: None, rows_max: ROWS_FIRST, rows, found, looked_up_in: None }
    }

    /// Starts over.
    pub(super) fn begin_anew(&mut self) {
        self.scan = None;
        self.rows_max = ROWS_FIRST;
    }

    /// The entries found last.
    pub(super) fn block(&mut self) -> RowBlock {
        std::mem::take(&mut self.rows.block)
    }

    /// Takes the entries back, to give up those that were refused.
    pub(super) fn restore(&mut self, block: RowBlock) {
        self.rows.block = block;
    }

    /// The rows looked up for the entries at `picks`.
    pub(super) fn looked_up(&self, picks: Option<&[(u32, u32)]>) -> Vec<RowBlock> {
        let take = |row: usize| self.found[row].0.clone();
        match picks {
            Some(picks) => picks.iter().map(|&(_, row)| take(row as usize)).collect(),
            None => (0..self.found.len()).map(take).collect(),
        }
    }

    /// Reads on; false at the end of all spans. `goal` is how many rows are wanted at most.
    pub(super) fn fetch(
        &mut self,
        txn: &mut Txn,
        goal: usize,
        backward: bool,
        mut next_span: impl FnMut() -> Option<(Span, bool)>,
        look_up: Option<(TreeId, &TreeLayout)>,
    ) -> Result<bool, StorageError> {
        let direction = if backward { ScanDirection::Backward } else { ScanDirection::Forward };
        loop {
            self.found.clear();
            let Some(scan) = &mut self.scan else {
                let Some((span, one_row)) = next_span() else { return Ok(false) };
                if one_row {
                    self.rows = txn.read_locked(self.tree, &span.from, self.locks)?;
                    if self.rows.block.is_empty() {
                        continue;
                    }
                    return Ok(true);
                }
                self.scan = Some(txn.locking_scan(self.tree, span.into_range(), direction, self.locks)?);
                continue;
            };
            let Some(rows) = scan.next_rows(txn, self.rows_max.min(goal).max(1))? else {
                self.scan = None;
                continue;
            };
            self.rows_max = (self.rows_max * ROWS_GROWTH).min(ROWS_MAX);
            self.rows = rows;
            if let Some((tree, layout)) = look_up {
                self.look_up(txn, tree, layout)?;
            }
            if !self.rows.block.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Locks and reads the rows that the entries name. An entry whose row has gone, or is passed over, goes too.
    fn look_up(&mut self, txn: &mut Txn, tree: TreeId, layout: &TreeLayout) -> Result<(), StorageError> {
        self.looked_up_in = Some(tree);
        // The entry's lock keeps the gap; the row itself needs none.
        let locks = ReadLocks { ranges: false, ..self.locks };
        let mut there = vec![false; self.rows.block.len()];
        for (row, there) in there.iter_mut().enumerate() {
            let key =
                layout.row_key(self.rows.block.key(row)).map_err(|damage| StorageError::Bug(format!("an index entry: {damage:?}")))?;
            let mut read = txn.read_locked(tree, key, locks)?;
            if !read.block.is_empty() {
                *there = true;
                let fresh = read.fresh.first().copied().unwrap_or(false);
                self.found.push((std::mem::take(&mut read.block), fresh));
            } else if self.is_fresh(row) {
                txn.unlock_read(self.tree, self.rows.block.key(row));
            }
        }
        self.rows.retain(|row| there[row]);
        Ok(())
    }

    fn is_fresh(&self, row: usize) -> bool {
        self.rows.fresh.get(row).copied().unwrap_or(false)
    }

    /// Gives the locks of rows that are not among `kept` back, if the level lets it.
    pub(super) fn give_back(&mut self, txn: &mut Txn, kept: &BooleanBuffer) {
        if !self.gives_back || !self.locks.keep {
            return;
        }
        for row in (0..self.rows.block.len()).filter(|row| !kept.value(*row)) {
            if self.is_fresh(row) {
                txn.unlock_read(self.tree, self.rows.block.key(row));
            }
            if let (Some((found, true)), Some(tree)) = (self.found.get(row), self.looked_up_in) {
                txn.unlock_read(tree, found.key(0));
            }
        }
    }
}
