//! Join on equal keys: the right side's keys go into a table, each left row asks it.
//!
//! ```text
//! right: batch kept whole        first[key number] ─► row ─► next[row] ─► ... ─► END     rows of one key, rising
//! left:  key ─► number ─► chain = candidates ─► Pairs (residual, outer, semi, anti)
//! ```
//! NULL keys match nothing. Left order is kept. Merge joins run here too: their left input is sorted, so the output is
//! sorted as the plan expects for every kind but RIGHT and FULL OUTER, whose unmatched right rows come last.
//! The right side is held in memory within the grant (701 beyond); it does not spill yet.

use crate::eval::eval_array;
use crate::exec::batch::Rows;
use crate::exec::key_table::{IntTable, KeyTable};
use crate::exec::keys::{KeyColumns, for_each_integer, is_integer_like};
use crate::exec::nested_loop::collect;
use crate::exec::pairs::{Candidates, PAIRS_AIM, Pairs};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{JoinKind, Node};
use arrow_array::ArrayRef;
use thawdb_types::{SqlError, SqlType};

const END: u32 = u32::MAX;

/// What is compared.
#[derive(Clone, Copy)]
pub(super) enum JoinKeys<'p> {
    Exprs(&'p [(Expr, Expr)]),
    Columns(&'p [(usize, usize)]),
}

pub(super) struct HashJoin<'p> {
    left: BoxOperator<'p>,
    right: BoxOperator<'p>,
    keys: JoinKeys<'p>,
    types: Vec<SqlType>,
    pairs: Pairs<'p>,
    kept: Batch,
    table: JoinTable,
    present: Option<Present>,
    ended: bool,
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

impl<'p> HashJoin<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, kind: JoinKind, keys: JoinKeys<'p>, residual: Option<&'p Expr>) -> Self {
        let types: Vec<SqlType> = match keys {
            JoinKeys::Exprs(keys) => keys.iter().map(|(left, _)| left.sql_type).collect(),
            JoinKeys::Columns(keys) => keys.iter().map(|(at, _)| left.columns[*at].sql_type).collect(),
        };
        Self {
            left: build(left),
            right: build(right),
            keys,
            table: JoinTable::new(&types),
            types,
            pairs: Pairs::new(kind, residual, &left.columns, &right.columns),
            kept: Batch::default(),
            present: None,
            ended: false,
        }
    }

    fn key_arrays(&self, batch: &Batch, of_left: bool, cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        match self.keys {
            JoinKeys::Exprs(keys) => keys.iter().map(|(l, r)| eval_array(if of_left { l } else { r }, batch, cx)).collect(),
            JoinKeys::Columns(keys) => Ok(keys.iter().map(|(l, r)| batch.columns[if of_left { *l } else { *r }].clone()).collect()),
        }
    }

    fn next_left(&mut self, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        let Some(batch) = self.left.next(cx)? else { return Ok(false) };
        let arrays = self.key_arrays(&batch, true, cx)?;
        let first = self.table.look_up(&KeyColumns { arrays: &arrays, types: &self.types }, batch.rows);
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
                at = self.table.next[at as usize];
            }
            to += 1;
        }
        (found, to)
    }
}

impl<'p> Operator<'p> for HashJoin<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.right.open(cx)?;
        self.kept = collect(&mut self.right, self.pairs.right_columns(), cx)?;
        self.table = JoinTable::new(&self.types);
        let arrays = self.key_arrays(&self.kept, false, cx)?;
        self.table.fill(&KeyColumns { arrays: &arrays, types: &self.types }, self.kept.rows);
        cx.check_memory(self.table.memory_bytes() + self.kept.memory_bytes())?;
        self.pairs.reset(self.kept.rows);
        (self.present, self.ended) = (None, false);
        // Nothing on the right decides an inner or semi join before its left side runs.
        if self.kept.rows == 0 && matches!(self.pairs.kind, JoinKind::Inner | JoinKind::LeftSemi) {
            self.ended = true;
            return Ok(());
        }
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while !self.ended {
            let Some(mut present) = self.present.take() else {
                if !self.next_left(cx)? {
                    self.ended = true;
                    return Ok(self.pairs.unmatched_right(&self.kept));
                }
                continue;
            };
            let (found, to) = self.candidates(&present);
            let joined = self.pairs.judge((&present.batch, present.from..to), &self.kept, found, cx)?;
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
}
