//! Join on equal keys: the right side's keys go into a table, each left row asks it.
//!
//! ```text
//! right: batch kept whole        first[key number] ─► row ─► next[row] ─► ... ─► END     rows of one key, rising
//! left:  key ─► number ─► chain = candidates ─► Pairs (residual, outer, semi, anti)
//! ```
//! Several threads share one right side: who divides the work reads it first ([`Built::of`]), and each thread's join finds it
//! in the execution's state in place of reading its own.
//!
//! NULL keys match nothing. Left order is kept as long as nothing is set aside.
//!
//! When the right side fills its share of the memory, both sides are set aside by the hash of their keys. Then as many
//! hashes of the right side as there is room for are loaded at a time, up to the end of a hash, and joined with the left
//! rows of the same hashes. What must fit in memory are the right rows of one hash (701 if they do not).

use crate::eval::eval_array;
use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::hash_spill::{HashSpill, HashedRows};
use crate::exec::key_table::{IntTable, KeyTable, hash_bytes};
use crate::exec::keys::{KeyColumns, for_each_integer, is_integer_like};
use crate::exec::pairs::{Candidates, PAIRS_AIM, Pairs};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{JoinKind, Node, OutputColumn};
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_types::{SqlError, SqlType};

const END: u32 = u32::MAX;

/// Bytes a row takes in the table, about: two chain links, and a slot of an eighth more than it needs, twice as large
/// after growing.
const TABLE_BYTES_PER_ROW: usize = 40;

pub(super) struct HashJoin<'p> {
    left: BoxOperator<'p>,
    right: BoxOperator<'p>,
    keys: &'p [(Expr, Expr)],
    types: Vec<SqlType>,
    pairs: Pairs<'p>,
    built: Arc<Built>,
    present: Option<Present>,
    ended: bool,
    held: usize,
    spilled: Option<SpilledJoin>,
}

/// The right side in memory.
pub(super) struct Built {
    kept: Batch,
    table: JoinTable,
}

/// Both sides, set aside.
struct SpilledJoin {
    left: HashedRows,
    right: HashedRows,
    /// The right rows loaded now are those up to this hash; `None` before the first are.
    hash_max: Option<u64>,
    /// No right rows come after them.
    is_last: bool,
}

struct Present {
    batch: Batch,
    /// First candidate of each row, or END.
    first: Vec<u32>,
    from: usize,
}

enum Numbers {
    Ints(IntTable),
    Bytes(KeyTable),
}

struct JoinTable {
    numbers: Numbers,
    first: Vec<u32>,
    next: Vec<u32>,
}

impl JoinTable {
    fn new(types: &[SqlType]) -> Self {
        let numbers = match types {
            [only] if is_integer_like(only) => Numbers::Ints(IntTable::new()),
            _ => Numbers::Bytes(KeyTable::new()),
        };
        Self { numbers, first: Vec::new(), next: Vec::new() }
    }

    /// Enters every row whose key has no NULL, last row first, so that each chain rises.
    fn fill(&mut self, keys: &KeyColumns<'_>, rows: usize) {
        self.next = vec![END; rows];
        let mut values = Vec::new();
        if let Numbers::Ints(_) = self.numbers {
            values.reserve(rows);
            for_each_integer(&keys.arrays[0], &keys.types[0], |v| values.push(v));
        }
        let mut key = Vec::new();
        for row in (0..rows).rev() {
            let (number, new) = match &mut self.numbers {
                Numbers::Ints(table) => match values[row] {
                    Some(value) => table.insert(value, self.first.len() as u32),
                    None => continue,
                },
                Numbers::Bytes(_) if keys.any_null(row) => continue,
                Numbers::Bytes(table) => {
                    keys.encode(row, &mut key);
                    table.insert(&key)
                }
            };
            if new {
                self.first.push(END);
            }
            self.next[row] = std::mem::replace(&mut self.first[number as usize], row as u32);
        }
    }

    /// First candidate of each left row.
    fn look_up(&self, keys: &KeyColumns<'_>, rows: usize) -> Vec<u32> {
        let chain = |number: Option<u32>| number.map_or(END, |n| self.first[n as usize]);
        let mut found = Vec::with_capacity(rows);
        match &self.numbers {
            Numbers::Ints(table) => {
                for_each_integer(&keys.arrays[0], &keys.types[0], |v| found.push(chain(v.and_then(|v| table.find(v)))));
            }
            Numbers::Bytes(table) => {
                let mut key = Vec::new();
                for row in 0..rows {
                    let number = if keys.any_null(row) {
                        None
                    } else {
                        keys.encode(row, &mut key);
                        table.find(&key)
                    };
                    found.push(chain(number));
                }
            }
        }
        found
    }

    fn memory_bytes(&self) -> usize {
        let numbers = match &self.numbers {
            Numbers::Ints(table) => table.memory_bytes(),
            Numbers::Bytes(table) => table.memory_bytes(),
        };
        numbers + (self.first.capacity() + self.next.capacity()) * size_of::<u32>()
    }
}

/// What tells a join of a plan from all others: where its keys are, which stay in place as long as the plan does.
pub(super) fn identity(keys: &[(Expr, Expr)]) -> usize {
    keys.as_ptr().addr()
}

impl Built {
    fn new<'p>(batches: &[Batch], columns: &[OutputColumn], keys: &'p [(Expr, Expr)], cx: &mut Cx<'p, '_>) -> Result<Self, SqlError> {
        let kept = match batches {
            [] => Batch::empty(columns.iter().map(|c| &c.sql_type)),
            some => Batch::concat(some),
        };
        let types: Vec<SqlType> = keys.iter().map(|(left, _)| left.sql_type).collect();
        let mut table = JoinTable::new(&types);
        let arrays = keys.iter().map(|(_, key)| eval_array(key, &kept, cx)).collect::<Result<Vec<_>, _>>()?;
        table.fill(&KeyColumns { arrays: &arrays, types: &types }, kept.rows);
        Ok(Self { kept, table })
    }

    /// The right side of a join, read to be shared; `None` if it takes more than a part of the memory, of which `held` is
    /// accounted for then no more.
    pub(super) fn of<'p>(
        right: &'p Node,
        keys: &'p [(Expr, Expr)],
        held: &mut usize,
        cx: &mut Cx<'p, '_>,
    ) -> Result<Option<Arc<Self>>, SqlError> {
        let before = *held;
        let (mut batches, mut bytes, mut rows, mut fits) = (Vec::new(), 0, 0, true);
        let mut operator = build(right);
        operator.open(cx)?;
        operator.for_each(cx, &mut |batch, cx| {
            bytes += batch.memory_bytes();
            rows += batch.rows;
            // What is read in vain is read to the end, as the threads that read it are not told to stop.
            fits = fits && cx.hold(held, before + bytes + rows * TABLE_BYTES_PER_ROW);
            if fits {
                batches.push(batch);
            } else {
                batches.clear();
            }
            Ok(())
        })?;
        if !fits {
            cx.hold(held, before);
            return Ok(None);
        }
        let built = Self::new(&batches, &right.columns, keys, cx)?;
        cx.hold_or_fail(held, before + built.memory_bytes())?;
        Ok(Some(Arc::new(built)))
    }

    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.kept.memory_bytes()
    }
}

impl<'p> HashJoin<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, kind: JoinKind, keys: &'p [(Expr, Expr)], residual: Option<&'p Expr>) -> Self {
        let types: Vec<SqlType> = keys.iter().map(|(left, _)| left.sql_type).collect();
        Self {
            left: build(left),
            right: build(right),
            keys,
            built: Arc::new(Built { kept: Batch::default(), table: JoinTable::new(&types) }),
            types,
            pairs: Pairs::new(kind, residual, &left.columns, &right.columns),
            present: None,
            ended: false,
            held: 0,
            spilled: None,
        }
    }

    fn key_arrays(&self, batch: &Batch, of_left: bool, cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        self.keys.iter().map(|(l, r)| eval_array(if of_left { l } else { r }, batch, cx)).collect()
    }

    /// Reads the right side: all of it into memory, or else it is set aside.
    fn read_right(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<HashSpill>, SqlError> {
        // Out of its place meanwhile, for its rows come while it runs.
        let mut right = std::mem::replace(&mut self.right, Box::new(crate::exec::values::Values::one_row()));
        let (mut batches, mut bytes, mut rows) = (Vec::new(), 0, 0);
        let mut aside = None;
        let read = right.for_each(cx, &mut |batch, cx| {
            if let Some(aside) = &mut aside {
                return self.set_aside(&batch, false, aside, cx);
            }
            bytes += batch.memory_bytes();
            rows += batch.rows;
            batches.push(batch);
            if !cx.hold(&mut self.held, bytes + rows * TABLE_BYTES_PER_ROW) {
                aside = Some(self.set_right_aside(std::mem::take(&mut batches), cx)?);
            }
            Ok(())
        });
        self.right = right;
        read?;
        if aside.is_none() {
            self.load(&batches, cx)?;
        }
        Ok(aside)
    }

    /// Makes the table of right rows.
    fn load(&mut self, batches: &[Batch], cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let built = Built::new(batches, self.pairs.right_columns(), self.keys, cx)?;
        let spill_bytes = if self.spilled.is_some() { 2 * HashSpill::memory_bytes(cx) } else { 0 };
        cx.hold_or_fail(&mut self.held, built.memory_bytes() + spill_bytes)?;
        self.pairs.reset(built.kept.rows);
        self.built = Arc::new(built);
        Ok(())
    }

    fn forget(&mut self) {
        self.built = Arc::new(Built { kept: Batch::default(), table: JoinTable::new(&self.types) });
    }

    fn set_right_aside(&mut self, batches: Vec<Batch>, cx: &mut Cx<'p, '_>) -> Result<HashSpill, SqlError> {
        let mut aside = HashSpill::new(self.pairs.right_columns().iter().map(|c| c.sql_type).collect(), cx);
        for batch in batches {
            self.set_aside(&batch, false, &mut aside, cx)?;
        }
        cx.hold(&mut self.held, 2 * HashSpill::memory_bytes(cx));
        Ok(aside)
    }

    fn set_left_aside(&mut self, cx: &mut Cx<'p, '_>) -> Result<HashSpill, SqlError> {
        let mut aside = HashSpill::new(self.pairs.left_columns().iter().map(|c| c.sql_type).collect(), cx);
        while let Some(batch) = self.left.next(cx)? {
            self.set_aside(&batch, true, &mut aside, cx)?;
        }
        Ok(aside)
    }

    fn set_aside(&self, batch: &Batch, of_left: bool, aside: &mut HashSpill, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        use JoinKind as K;
        let arrays = self.key_arrays(batch, of_left, cx)?;
        let keys = KeyColumns { arrays: &arrays, types: &self.types };
        // A row without a key matches nothing; it counts only where rows without a match do.
        let counts = match self.pairs.kind {
            K::FullOuter => true,
            K::LeftOuter | K::LeftAnti => of_left,
            K::RightOuter => !of_left,
            K::Inner | K::LeftSemi => false,
        };
        let mut key = Vec::new();
        for row in 0..batch.rows {
            if counts || !keys.any_null(row) {
                keys.encode(row, &mut key);
                aside.push(hash_bytes(&key), &batch.columns, row, cx)?;
            }
        }
        Ok(())
    }

    /// Loads the next right rows that were set aside; false if none are left and the left rows are done too.
    fn load_next(&mut self, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        if spilled.is_last {
            return Ok(false);
        }
        self.built = Arc::new(Built { kept: Batch::default(), table: JoinTable::new(&self.types) });
        let spill_bytes = 2 * HashSpill::memory_bytes(cx);
        let (mut batches, mut bytes, mut rows) = (Vec::new(), spill_bytes, 0);
        loop {
            cx.host.check_cancelled()?;
            let Some(part) = spilled.right.next(BATCH_ROWS, u64::MAX, cx)? else {
                (spilled.hash_max, spilled.is_last) = (Some(u64::MAX), true);
                break;
            };
            bytes += part.batch.memory_bytes();
            rows += part.batch.rows;
            batches.push(part.batch);
            let room = cx.hold(&mut self.held, bytes + rows * TABLE_BYTES_PER_ROW);
            cx.hold_or_fail(&mut self.held, bytes + rows * TABLE_BYTES_PER_ROW)?;
            if !room && part.ends_hash {
                spilled.hash_max = Some(part.hash);
                break;
            }
        }
        self.load(&batches, cx)?;
        Ok(true)
    }

    fn next_left(&mut self, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        let batch = match &mut self.spilled {
            None => self.left.next(cx)?,
            Some(SpilledJoin { hash_max: None, .. }) => None,
            Some(SpilledJoin { left, hash_max: Some(hash_max), .. }) => left.next(BATCH_ROWS, *hash_max, cx)?.map(|part| part.batch),
        };
        let Some(batch) = batch else { return Ok(false) };
        let arrays = self.key_arrays(&batch, true, cx)?;
        let first = self.built.table.look_up(&KeyColumns { arrays: &arrays, types: &self.types }, batch.rows);
        self.present = Some(Present { batch, first, from: 0 });
        Ok(true)
    }

    /// Candidates of the next left rows, at least one row's, and where those rows end.
    fn candidates(&self, present: &Present) -> (Candidates, usize) {
        let mut found = Candidates::default();
        let mut to = present.from;
        while to < present.batch.rows && found.left.len() < PAIRS_AIM {
            let mut at = present.first[to];
            while at != END {
                found.left.push(to as u32);
                found.right.push(at);
                at = self.built.table.next[at as usize];
            }
            to += 1;
        }
        (found, to)
    }
}

impl<'p> Operator<'p> for HashJoin<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        (self.present, self.ended, self.spilled) = (None, false, None);
        self.forget();
        cx.hold(&mut self.held, 0);
        let aside = match cx.state.built(identity(self.keys)) {
            Some(built) => {
                self.pairs.reset(0);
                self.built = built;
                None
            }
            None => {
                self.right.open(cx)?;
                self.read_right(cx)?
            }
        };
        // Nothing on the right decides an inner or semi join before its left side runs.
        if aside.is_none() && self.built.kept.rows == 0 && matches!(self.pairs.kind, JoinKind::Inner | JoinKind::LeftSemi) {
            self.ended = true;
            return Ok(());
        }
        self.left.open(cx)?;
        if let Some(right) = aside {
            let left = self.set_left_aside(cx)?.finish(cx)?;
            self.spilled = Some(SpilledJoin { left, right: right.finish(cx)?, hash_max: None, is_last: false });
        }
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while !self.ended {
            let Some(mut present) = self.present.take() else {
                if self.next_left(cx)? {
                    continue;
                }
                let unmatched = self.pairs.unmatched_right(&self.built.kept);
                if !self.load_next(cx)? {
                    self.ended = true;
                    cx.hold(&mut self.held, 0);
                }
                if unmatched.is_some() {
                    return Ok(unmatched);
                }
                continue;
            };
            let (found, to) = self.candidates(&present);
            let joined = self.pairs.judge((&present.batch, present.from..to), &self.built.kept, found, cx)?;
            present.from = to;
            if to < present.batch.rows {
                self.present = Some(present);
            }
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
        Ok(None)
    }

    fn row_goal(&mut self, rows: u64) {
        self.left.row_goal(rows);
    }
}
