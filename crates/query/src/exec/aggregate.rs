//! GROUP BY: each row finds its group, each aggregate takes the row into its group's state.
//!
//! ```text
//! keys ─► Groups: number per row, by first appearance ─► Accumulator::update(numbers, argument)
//!         1 bit/tinyint key    direct table              ... end of input ─► keys beside results, in number order
//!         1 integer-like key   a direct table for 0 to 4095, IntTable for the rest
//!         otherwise            KeyTable
//!         sorted input         a new number wherever a row's keys differ from those before
//! ```
//! Without keys there is one group even for no input. Over sorted input (`streamed`) groups are handed on as soon as a
//! later key appears, so memory is that of one batch.
//!
//! Several threads ([`Phase`]): each groups its rows and hands keys and states on, early where memory is short; one of them
//! takes the states of equal keys together.
//!
//! When hashed groups fill their share of the memory, no more are made: rows of those that are there go on being taken in,
//! others are set aside by hash (keys and arguments) and grouped after the first groups are handed on. What cannot be set
//! aside are the states of one group: a DISTINCT or STRING_AGG beyond the grant fails (701).

use crate::aggregate::{Accumulator, GroupIds, accumulator, partial_types};
use crate::eval::eval_array;
use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::hash_spill::{HashSpill, HashedRows};
use crate::exec::key_table::{self, IntTable, KeyTable, hash_bytes};
use crate::exec::keys::{KeyColumns, encode_value, for_each_integer, is_integer_like};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::{Aggregate, Expr};
use crate::phys::{GatherOrder, Node, NodeKind};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::concat::concat;
use arrow_select::take::take;
use std::collections::VecDeque;
use thawdb_types::{SqlError, SqlType};

const NO_GROUP: u32 = key_table::NONE;
/// Values with a place of their own: 16 KiB of groups, which stay in the first-level cache.
const DIRECT_VALUES: usize = 4096;

enum GroupTable {
    /// No keys.
    One,
    /// Group of each byte value, the last for NULL.
    Byte(Box<[u32; 257]>),
    Int {
        /// Groups of the small values, which most codes and types are.
        direct: Box<[u32; DIRECT_VALUES]>,
        table: IntTable,
        null: u32,
    },
    Bytes(KeyTable),
    /// Sorted input: equality bytes of the last group's keys.
    Sorted(Vec<u8>),
}

struct Groups {
    types: Vec<SqlType>,
    table: GroupTable,
    /// Keys of the groups in number order, in the pieces in which they came: arrays of each key.
    keys: Vec<Vec<ArrayRef>>,
    key_bytes: usize,
    count: usize,
}

impl Groups {
    fn new(types: &[SqlType], sorted: bool) -> Self {
        let table = match types {
            [] => GroupTable::One,
            _ if sorted => GroupTable::Sorted(Vec::new()),
            [SqlType::TinyInt] => GroupTable::Byte(Box::new([NO_GROUP; 257])),
            [only] if is_integer_like(only) => {
                GroupTable::Int { direct: Box::new([NO_GROUP; DIRECT_VALUES]), table: IntTable::new(), null: NO_GROUP }
            }
            _ => GroupTable::Bytes(KeyTable::new()),
        };
        Self { types: types.to_vec(), table, keys: vec![Vec::new(); types.len()], key_bytes: 0, count: usize::from(types.is_empty()) }
    }

    /// Puts the group of each row in `ids`.
    fn assign(&mut self, arrays: &[ArrayRef], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        ids.reserve(rows);
        let mut new_rows: Vec<u32> = Vec::new();
        let before = self.count as u32;
        let mut next = before;
        let mut found = |group: &mut u32, row: usize| {
            if *group == NO_GROUP {
                *group = next;
                next += 1;
                new_rows.push(row as u32);
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
            GroupTable::Int { direct, table, null } => for_each_integer(&arrays[0], &self.types[0], |value| {
                let row = ids.len();
                let id = match value {
                    Some(value) => match usize::try_from(value).ok().and_then(|value| direct.get_mut(value)) {
                        Some(group) => found(group, row),
                        None => found(table.number_of(value), row),
                    },
                    None => found(null, row),
                };
                ids.push(id);
            }),
            GroupTable::Bytes(table) => {
                let columns = KeyColumns { arrays, types: &self.types };
                let mut key = Vec::new();
                for row in 0..rows {
                    columns.encode(row, &mut key);
                    let (id, new) = table.insert(&key);
                    ids.push(found(&mut if new { NO_GROUP } else { id }, row));
                }
            }
            GroupTable::Sorted(last) => {
                let columns = KeyColumns { arrays, types: &self.types };
                let (mut key, mut id) = (Vec::new(), before.wrapping_sub(1));
                columns.encode(0, &mut key);
                let begins = changes(&columns, rows);
                for row in 0..rows {
                    let same = if row == 0 { before > 0 && key == *last } else { !begins[row] };
                    id = found(&mut if same { id } else { NO_GROUP }, row);
                    ids.push(id);
                }
                columns.encode(rows - 1, last);
            }
        }
        self.count = next as usize;
        self.keep(arrays, new_rows);
    }

    /// Keeps the keys of new groups.
    fn keep(&mut self, arrays: &[ArrayRef], new_rows: Vec<u32>) {
        if new_rows.is_empty() {
            return;
        }
        let places = UInt32Array::from(new_rows);
        for (kept, array) in self.keys.iter_mut().zip(arrays) {
            let piece = take(array, &places, None).expect("rows lie within the batch");
            self.key_bytes += piece.get_array_memory_size();
            kept.push(piece);
        }
    }

    /// The keys of all groups; they are kept no more.
    fn take_keys(&mut self) -> Vec<ArrayRef> {
        let whole = |(pieces, sql_type): (&mut Vec<ArrayRef>, &SqlType)| {
            let pieces = std::mem::take(pieces);
            match &pieces[..] {
                [] => thawdb_types::column::empty_array(sql_type),
                [only] => only.clone(),
                many => concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>()).expect("keys of one expression have one type"),
            }
        };
        self.key_bytes = 0;
        self.keys.iter_mut().zip(&self.types).map(whole).collect()
    }

    /// Puts the group of each row in `ids`, `NO_GROUP` where there is none yet.
    fn find(&self, arrays: &[ArrayRef], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        ids.reserve(rows);
        match &self.table {
            GroupTable::Byte(groups) => {
                let array = arrays[0].as_primitive::<UInt8Type>();
                ids.extend(array.iter().map(|v| groups[v.map_or(256, usize::from)]));
            }
            GroupTable::Int { direct, table, null } => for_each_integer(&arrays[0], &self.types[0], |value| {
                ids.push(match value {
                    Some(value) => match usize::try_from(value).ok().and_then(|value| direct.get(value)) {
                        Some(group) => *group,
                        None => table.find(value).unwrap_or(NO_GROUP),
                    },
                    None => *null,
                });
            }),
            GroupTable::Bytes(table) => {
                let columns = KeyColumns { arrays, types: &self.types };
                let mut key = Vec::new();
                ids.extend((0..rows).map(|row| {
                    columns.encode(row, &mut key);
                    table.find(&key).unwrap_or(NO_GROUP)
                }));
            }
            GroupTable::One | GroupTable::Sorted(_) => unreachable!("only hashed groups are looked for"),
        }
    }

    fn memory_bytes(&self) -> usize {
        let table = match &self.table {
            GroupTable::One | GroupTable::Byte(_) | GroupTable::Sorted(_) => 0,
            GroupTable::Int { table, .. } => table.memory_bytes() + DIRECT_VALUES * size_of::<u32>(),
            GroupTable::Bytes(table) => table.memory_bytes(),
        };
        table + self.key_bytes
    }
}

/// For each row but the first, whether its keys differ from those of the row before.
fn changes(columns: &KeyColumns<'_>, rows: usize) -> Vec<bool> {
    let mut begins = vec![false; rows];
    for (array, sql_type) in columns.arrays.iter().zip(columns.types) {
        if is_integer_like(sql_type) {
            let mut before = None;
            let mut row = 0;
            for_each_integer(array, sql_type, |value| {
                begins[row] |= value != before;
                (before, row) = (value, row + 1);
            });
            continue;
        }
        let (mut before, mut key) = (Vec::new(), Vec::new());
        for (row, begin) in begins.iter_mut().enumerate() {
            key.clear();
            encode_value(array.as_ref(), row, sql_type, &mut key);
            *begin |= key != before;
            std::mem::swap(&mut key, &mut before);
        }
    }
    begins
}

/// What a grouping takes in and puts out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Rows; results.
    Whole,
    /// Rows; states, of a group perhaps more than once.
    Partial,
    /// Keys and states of other groupings; results.
    Final,
}

pub(super) struct Aggregation<'p> {
    input: BoxOperator<'p>,
    phase: Phase,
    keys: &'p [Expr],
    key_types: Vec<SqlType>,
    aggregates: &'p [Aggregate],
    /// Types of the columns that each aggregate takes in.
    argument_types: Vec<Vec<SqlType>>,
    streamed: bool,
    /// Its rows come from several threads, and are taken while those run.
    of_threads: bool,
    groups: Groups,
    states: Vec<Box<dyn Accumulator>>,
    ids: Vec<u32>,
    ready: VecDeque<Batch>,
    ended: bool,
    held: usize,
    /// Rows of groups for which there was no room: their keys, then the arguments there are.
    aside: Option<HashSpill>,
    back: Option<HashedRows>,
}

impl<'p> Aggregation<'p> {
    pub(super) fn hashed(input: &'p Node, keys: &'p [Expr], aggregates: &'p [Aggregate]) -> Self {
        let key_types: Vec<SqlType> = keys.iter().map(|k| k.sql_type).collect();
        let argument_types = aggregates.iter().map(|a| a.argument.iter().map(|argument| argument.sql_type).collect()).collect();
        Self {
            input: build(input),
            phase: Phase::Whole,
            keys,
            groups: Groups::new(&key_types, false),
            key_types,
            aggregates,
            argument_types,
            streamed: false,
            of_threads: matches!(input.kind, NodeKind::Gather { order: GatherOrder::Any, .. }),
            states: Vec::new(),
            ids: Vec::new(),
            ready: VecDeque::new(),
            ended: false,
            held: 0,
            aside: None,
            back: None,
        }
    }

    pub(super) fn streamed(input: &'p Node, keys: &'p [Expr], aggregates: &'p [Aggregate]) -> Self {
        Self { streamed: !keys.is_empty(), ..Self::hashed(input, keys, aggregates) }
    }

    /// One thread's grouping of several: puts out keys, then states.
    pub(super) fn partial(input: &'p Node, keys: &'p [Expr], aggregates: &'p [Aggregate]) -> Self {
        Self { phase: Phase::Partial, ..Self::hashed(input, keys, aggregates) }
    }

    /// The results of what such groupings put out; the keys are the first columns of `input`.
    pub(super) fn finishing(input: &'p Node, key_count: usize, aggregates: &'p [Aggregate]) -> Self {
        let key_types: Vec<SqlType> = input.columns[..key_count].iter().map(|column| column.sql_type).collect();
        let argument_types = aggregates.iter().map(|a| partial_types(a).expect("the optimizer divides what can be divided")).collect();
        let groups = Groups::new(&key_types, false);
        Self { phase: Phase::Final, key_types, groups, argument_types, ..Self::hashed(input, &[], aggregates) }
    }

    fn start(&mut self) {
        self.groups = Groups::new(&self.key_types, self.streamed);
        self.states = self.aggregates.iter().map(accumulator).collect();
    }

    /// Takes rows in; false if there is no room for more groups.
    fn take_in(&mut self, keys: &[ArrayRef], arguments: &[ArrayRef], rows: usize, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        self.groups.assign(keys, rows, &mut self.ids);
        self.update(!keys.is_empty(), arguments, rows, cx)?;
        let bytes = self.groups.memory_bytes() + self.states.iter().map(|state| state.memory_bytes()).sum::<usize>();
        let spill_bytes = if self.back.is_some() { HashSpill::memory_bytes(cx) } else { 0 };
        if self.streamed || keys.is_empty() {
            cx.hold_or_fail(&mut self.held, bytes)?;
            return Ok(true);
        }
        let room = cx.hold(&mut self.held, bytes + spill_bytes);
        cx.hold_or_fail(&mut self.held, bytes + spill_bytes)?;
        Ok(room)
    }

    /// Hands rows to the states; their groups are in `ids`.
    fn update(&mut self, grouped: bool, arguments: &[ArrayRef], rows: usize, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let ids = GroupIds { ids: grouped.then_some(&self.ids), rows, group_count: self.groups.count };
        let mut arguments = arguments;
        for (state, types) in self.states.iter_mut().zip(&self.argument_types) {
            let (own, rest) = arguments.split_at(types.len());
            arguments = rest;
            match self.phase {
                Phase::Final => state.join(&ids, own)?,
                Phase::Whole | Phase::Partial => cx.state.null_eliminated |= state.update(&ids, own.first())?,
            }
        }
        Ok(())
    }

    /// Takes in the rows of groups that are there, sets the others aside.
    fn take_in_known(&mut self, keys: &[ArrayRef], arguments: &[ArrayRef], rows: usize, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.groups.find(keys, rows, &mut self.ids);
        let known = BooleanBuffer::collect_bool(rows, |row| self.ids[row] != NO_GROUP);
        let aside = self.aside.as_mut().expect("rows are set aside once there is a place");
        let columns: Vec<ArrayRef> = keys.iter().chain(arguments).cloned().collect();
        let key_columns = KeyColumns { arrays: keys, types: &self.key_types };
        let mut key = Vec::new();
        for row in (!&known).set_indices() {
            key_columns.encode(row, &mut key);
            aside.push(hash_bytes(&key), &columns, row, cx)?;
        }
        let chosen = Batch::new(arguments.to_vec(), rows).filter(&known);
        self.ids.retain(|id| *id != NO_GROUP);
        self.update(true, &chosen.columns, chosen.rows, cx)?;
        let states: usize = self.states.iter().map(|state| state.memory_bytes()).sum();
        cx.hold_or_fail(&mut self.held, self.groups.memory_bytes() + states + HashSpill::memory_bytes(cx))
    }

    /// Types of a row set aside.
    fn aside_types(&self) -> Vec<SqlType> {
        self.key_types.iter().chain(self.argument_types.iter().flatten()).copied().collect()
    }

    /// Groups rows that were set aside until some groups are ready; false if there are none left.
    fn take_back(&mut self, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        while let Some(back) = &mut self.back {
            cx.host.check_cancelled()?;
            let Some(part) = back.next(piece_rows(cx), u64::MAX, cx)? else {
                self.back = None;
                let some = self.groups.count > 0;
                self.flush()?;
                return Ok(some);
            };
            let (keys, arguments) = part.batch.columns.split_at(self.key_types.len());
            if !self.take_in(keys, arguments, part.batch.rows, cx)? && part.ends_hash {
                self.flush()?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts the groups so far in `ready` and starts anew.
    fn flush(&mut self) -> Result<(), SqlError> {
        let count = self.groups.count;
        let mut columns = self.groups.take_keys();
        for state in &mut self.states {
            match self.phase {
                Phase::Partial => columns.extend(state.hand_over(count)?),
                Phase::Whole | Phase::Final => columns.push(state.finish(count)?),
            }
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
        let begins = changes(&KeyColumns { arrays: keys, types: &self.key_types }, rows);
        (1..rows).rev().find(|row| begins[*row]).unwrap_or(0)
    }

    /// Keys of a batch's rows, and what the aggregates take in of them.
    fn inputs(&self, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<(Vec<ArrayRef>, Vec<ArrayRef>), SqlError> {
        if self.phase == Phase::Final {
            let (keys, states) = batch.columns.split_at(self.key_types.len());
            return Ok((keys.to_vec(), states.to_vec()));
        }
        let keys = self.keys.iter().map(|k| eval_array(k, batch, cx)).collect::<Result<Vec<_>, _>>()?;
        let arguments = self.aggregates.iter().filter_map(|a| a.argument.as_ref());
        let arguments = arguments.map(|e| eval_array(e, batch, cx)).collect::<Result<Vec<_>, _>>()?;
        Ok((keys, arguments))
    }

    fn take_batch(&mut self, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let (keys, arguments) = self.inputs(batch, cx)?;
        let slices = |arrays: &[ArrayRef], from: usize, len: usize| arrays.iter().map(|a| a.slice(from, len)).collect::<Vec<_>>();
        let part = |from: usize, len: usize| (slices(&keys, from, len), slices(&arguments, from, len));
        if self.streamed {
            let split = self.last_group_start(&keys, batch.rows);
            if split > 0 {
                let (first_keys, first_arguments) = part(0, split);
                self.take_in(&first_keys, &first_arguments, split, cx)?;
                self.flush()?;
            }
            let (last_keys, last_arguments) = part(split, batch.rows - split);
            self.take_in(&last_keys, &last_arguments, batch.rows - split, cx)?;
            return Ok(());
        }
        let piece_rows = if keys.is_empty() { batch.rows } else { piece_rows(cx) };
        for from in (0..batch.rows).step_by(piece_rows.max(1)) {
            let rows = piece_rows.min(batch.rows - from);
            let (keys, arguments) = part(from, rows);
            if self.aside.is_some() {
                self.take_in_known(&keys, &arguments, rows, cx)?;
            } else if !self.take_in(&keys, &arguments, rows, cx)? {
                match self.phase {
                    // Whoever takes states together has them set aside, if need be.
                    Phase::Partial => self.flush()?,
                    Phase::Whole | Phase::Final => self.aside = Some(HashSpill::new(self.aside_types(), cx)),
                }
            }
        }
        Ok(())
    }
}

/// Rows taken in between two looks at the memory: each may be a group of a few hundred bytes.
fn piece_rows(cx: &Cx<'_, '_>) -> usize {
    (cx.host.memory_grant_bytes() / 4096).clamp(16, BATCH_ROWS)
}

impl<'p> Operator<'p> for Aggregation<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.start();
        self.ready.clear();
        (self.ended, self.aside, self.back) = (false, None, None);
        cx.hold(&mut self.held, 0);
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                if !self.take_back(cx)? {
                    cx.hold(&mut self.held, 0);
                    return Ok(None);
                }
                continue;
            }
            if self.of_threads {
                // Out of its place meanwhile, for the rows come while it runs.
                let mut input = std::mem::replace(&mut self.input, Box::new(crate::exec::values::Values::one_row()));
                let taken = input.for_each(cx, &mut |batch, cx| self.take_batch(&batch, cx));
                self.input = input;
                taken?;
            }
            let next = if self.of_threads { None } else { self.input.next(cx)? };
            match next {
                Some(batch) => self.take_batch(&batch, cx)?,
                None => {
                    self.ended = true;
                    self.back = self.aside.take().map(|aside| aside.finish(cx)).transpose()?;
                    self.flush()?;
                }
            }
        }
    }
}
