//! GROUP BY: each row finds its group, each aggregate takes the row into its group's state.
//!
//! ```text
//! keys ─► Groups: number per row, by first appearance ─► Accumulator::update(numbers, argument)
//!         1 bit/tinyint key    direct table              ... end of input ─► keys beside results, in number order
//!         1 integer-like key   IntTable
//!         otherwise            KeyTable
//! ```
//! Without keys there is one group even for no input. Over sorted input (`streamed`) groups are handed on as soon as a
//! later key appears, so memory is that of one batch. Hashed groups are held in memory within the grant (701).

use crate::aggregate::{Accumulator, GroupIds, accumulator};
use crate::eval::eval_array;
use crate::exec::batch::BATCH_ROWS;
use crate::exec::key_table::{IntTable, KeyTable};
use crate::exec::keys::{KeyColumns, for_each_integer, is_integer_like};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::{Aggregate, Expr};
use crate::phys::Node;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef};
use std::collections::VecDeque;
use thawdb_types::{ColumnBuilder, SqlError, SqlType, scalar_at};

const NO_GROUP: u32 = u32::MAX;

enum GroupTable {
    /// No keys.
    One,
    /// Group of each byte value, the last for NULL.
    Byte(Box<[u32; 257]>),
    Int {
        table: IntTable,
        null: u32,
    },
    Bytes(KeyTable),
}

struct Groups {
    types: Vec<SqlType>,
    table: GroupTable,
    keys: Vec<ColumnBuilder>,
    count: usize,
}

impl Groups {
    fn new(types: &[SqlType]) -> Self {
        let table = match types {
            [] => GroupTable::One,
            [SqlType::TinyInt] => GroupTable::Byte(Box::new([NO_GROUP; 257])),
            [only] if is_integer_like(only) => GroupTable::Int { table: IntTable::new(), null: NO_GROUP },
            _ => GroupTable::Bytes(KeyTable::new()),
        };
        let keys = types.iter().map(|t| ColumnBuilder::new(t, 0)).collect();
        Self { types: types.to_vec(), table, keys, count: usize::from(types.is_empty()) }
    }

    /// Puts the group of each row in `ids`.
    fn assign(&mut self, arrays: &[ArrayRef], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        ids.reserve(rows);
        let mut new_rows = Vec::new();
        let mut next = self.count as u32;
        let mut found = |group: &mut u32, row: usize| {
            if *group == NO_GROUP {
                *group = next;
                next += 1;
                new_rows.push(row);
            }
            *group
        };
        match &mut self.table {
            GroupTable::One => return,
            GroupTable::Byte(groups) => {
                let array = arrays[0].as_primitive::<UInt8Type>();
                match array.nulls() {
                    None => ids.extend(array.values().iter().enumerate().map(|(row, v)| found(&mut groups[usize::from(*v)], row))),
                    Some(_) => ids.extend(array.iter().enumerate().map(|(row, v)| found(&mut groups[v.map_or(256, usize::from)], row))),
                }
            }
            GroupTable::Int { table, null } => {
                for_each_integer(&arrays[0], &self.types[0], |value| {
                    let row = ids.len();
                    let id = match value {
                        Some(value) => {
                            let (id, new) = table.insert(value, next);
                            if new {
                                next += 1;
                                new_rows.push(row);
                            }
                            id
                        }
                        None => {
                            if *null == NO_GROUP {
                                *null = next;
                                next += 1;
                                new_rows.push(row);
                            }
                            *null
                        }
                    };
                    ids.push(id);
                });
            }
            GroupTable::Bytes(table) => {
                let columns = KeyColumns { arrays, types: &self.types };
                let mut key = Vec::new();
                for row in 0..rows {
                    columns.encode(row, &mut key);
                    let (id, new) = table.insert(&key);
                    if new {
                        next += 1;
                        new_rows.push(row);
                    }
                    ids.push(id);
                }
            }
        }
        self.count = next as usize;
        for ((builder, array), sql_type) in self.keys.iter_mut().zip(arrays).zip(&self.types) {
            new_rows.iter().for_each(|row| builder.append(&scalar_at(array.as_ref(), *row, sql_type)));
        }
    }

    fn memory_bytes(&self) -> usize {
        let table = match &self.table {
            GroupTable::One | GroupTable::Byte(_) => 0,
            GroupTable::Int { table, .. } => table.memory_bytes(),
            GroupTable::Bytes(table) => table.memory_bytes(),
        };
        table + self.count * self.types.iter().map(|t| t.fixed_bytes().unwrap_or(32)).sum::<usize>()
    }
}

pub(super) struct Aggregation<'p> {
    input: BoxOperator<'p>,
    keys: &'p [Expr],
    key_types: Vec<SqlType>,
    aggregates: &'p [Aggregate],
    streamed: bool,
    groups: Groups,
    states: Vec<Box<dyn Accumulator>>,
    ids: Vec<u32>,
    ready: VecDeque<Batch>,
    ended: bool,
}

impl<'p> Aggregation<'p> {
    pub(super) fn hashed(input: &'p Node, keys: &'p [Expr], aggregates: &'p [Aggregate]) -> Self {
        let key_types: Vec<SqlType> = keys.iter().map(|k| k.sql_type).collect();
        Self {
            input: build(input),
            keys,
            groups: Groups::new(&key_types),
            key_types,
            aggregates,
            streamed: false,
            states: Vec::new(),
            ids: Vec::new(),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    pub(super) fn streamed(input: &'p Node, keys: &'p [Expr], aggregates: &'p [Aggregate]) -> Self {
        Self { streamed: !keys.is_empty(), ..Self::hashed(input, keys, aggregates) }
    }

    fn start(&mut self) {
        self.groups = Groups::new(&self.key_types);
        self.states = self.aggregates.iter().map(accumulator).collect();
    }

    fn take_in(&mut self, keys: &[ArrayRef], arguments: &[Option<ArrayRef>], rows: usize, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.groups.assign(keys, rows, &mut self.ids);
        let ids = GroupIds { ids: (!keys.is_empty()).then_some(&self.ids), rows, group_count: self.groups.count };
        let mut bytes = self.groups.memory_bytes();
        for (state, argument) in self.states.iter_mut().zip(arguments) {
            cx.state.null_eliminated |= state.update(&ids, argument.as_ref())?;
            bytes += state.memory_bytes();
        }
        cx.check_memory(bytes)
    }

    /// Puts the groups so far in `ready` and starts anew.
    fn flush(&mut self) -> Result<(), SqlError> {
        let count = self.groups.count;
        let mut columns: Vec<ArrayRef> = self.groups.keys.iter_mut().map(ColumnBuilder::finish).collect();
        for state in &mut self.states {
            columns.push(state.finish(count)?);
        }
        let all = Batch::new(columns, count);
        for from in (0..count).step_by(BATCH_ROWS) {
            self.ready.push_back(all.slice(from, BATCH_ROWS.min(count - from)));
        }
        self.start();
        Ok(())
    }

    /// First row of the last group of a batch sorted by its keys.
    fn last_group_start(&self, keys: &[ArrayRef], rows: usize) -> usize {
        let columns = KeyColumns { arrays: keys, types: &self.key_types };
        let (mut last, mut key) = (Vec::new(), Vec::new());
        columns.encode(rows - 1, &mut last);
        let mut start = rows - 1;
        while start > 0 {
            columns.encode(start - 1, &mut key);
            if key != last {
                break;
            }
            start -= 1;
        }
        start
    }

    fn take_batch(&mut self, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let keys = self.keys.iter().map(|k| eval_array(k, batch, cx)).collect::<Result<Vec<_>, _>>()?;
        let arguments = self
            .aggregates
            .iter()
            .map(|a| a.argument.as_ref().map(|e| eval_array(e, batch, cx)).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        let split = if self.streamed { self.last_group_start(&keys, batch.rows) } else { 0 };
        if split == 0 {
            return self.take_in(&keys, &arguments, batch.rows, cx);
        }
        let part = |from: usize, len: usize| {
            let keys: Vec<ArrayRef> = keys.iter().map(|a| a.slice(from, len)).collect();
            let arguments: Vec<Option<ArrayRef>> = arguments.iter().map(|a| a.as_ref().map(|a| a.slice(from, len))).collect();
            (keys, arguments, len)
        };
        let (first_keys, first_arguments, first_rows) = part(0, split);
        self.take_in(&first_keys, &first_arguments, first_rows, cx)?;
        self.flush()?;
        let (last_keys, last_arguments, last_rows) = part(split, batch.rows - split);
        self.take_in(&last_keys, &last_arguments, last_rows, cx)
    }
}

impl<'p> Operator<'p> for Aggregation<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.start();
        self.ready.clear();
        self.ended = false;
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            match self.input.next(cx)? {
                Some(batch) => self.take_batch(&batch, cx)?,
                None => {
                    self.ended = true;
                    self.flush()?;
                }
            }
        }
    }
}
