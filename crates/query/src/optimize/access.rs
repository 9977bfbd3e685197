//! Access paths: which index of a table to read, which part of it, and in which order rows come.
//!
//! ```text
//! predicates ── a key's leading columns by =, then one by a range ──► SeekRange*     rest ──► residual
//! ```
//!
//! A predicate is usable on a key column when the column stands alone on one side, or under a conversion that keeps
//! different values different (`smallint` to `int`), and the other side does not use this table. A seek under such a
//! conversion keeps the predicate as a residual: the narrowed value may be NULL or rounded, the residual decides.
//!
//! `LIKE 'abc%'` is the range from 'abc' to below 'abd', with the predicate kept as a residual ([`like_sargs`]). A filtered
//! index is a path only where the predicates imply its filter (`super::filtered`).
//!
//! Soundness rests on the executor: a NULL bound value empties the range, ranges are put in order and merged.

use super::RuleCx;
use super::cost;
use super::filtered::implying;
use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Get};
use crate::expr::CompareOp;
use thawdb_catalog::{IndexDef, TableDef};
use thawdb_types::collation::LikePattern;
use thawdb_types::key::is_lossless;
use thawdb_types::{Scalar, SqlType};

/// The most ranges a list of values may make.
const RANGES_MAX: usize = 256;

/// A bound of a range, of expressions over outer rows and variables.
#[derive(Debug, Clone)]
pub struct PathBound {
    /// Values of leading key columns.
    pub values: Vec<BoundExpr>,
    /// Whether the prefix itself is inside.
    pub inclusive: bool,
}

/// A way to read a table.
#[derive(Debug, Clone)]
pub struct Path {
    /// Position of the index.
    pub index: usize,
    /// Ranges in index order; empty for all.
    pub ranges: Vec<(Option<PathBound>, Option<PathBound>)>,
    /// Predicates the ranges do not answer.
    pub residual: Vec<BoundExpr>,
    /// Rows read from the index.
    pub rows_read: f64,
    /// What reading costs.
    pub cost: f64,
    /// Key columns in order with DESC, those with one value first.
    pub order: Vec<(ColumnRef, bool)>,
    /// Columns that have one value.
    pub constants: Vec<ColumnRef>,
    /// Whether every needed column is in the index.
    pub covering: bool,
}

/// How a key column is restricted.
enum Restriction {
    Equal(Vec<BoundExpr>),
    Range { low: Option<(BoundExpr, bool)>, high: Option<(BoundExpr, bool)> },
}

/// What a predicate says of one column.
struct Sarg {
    column: ColumnRef,
    op: SargOp,
    /// Values in the column's type.
    values: Vec<BoundExpr>,
    /// Whether the seek alone answers the predicate.
    exact: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SargOp {
    Equal,
    Low { inclusive: bool },
    High { inclusive: bool },
}

/// Every way to read `get` under `predicates`, in the order of its indexes.
pub fn paths(get: &Get, predicates: &[BoundExpr], rows: f64, selectivity: &dyn Fn(&[BoundExpr]) -> f64, cx: &RuleCx<'_>) -> Vec<Path> {
    let own: Vec<ColumnRef> = get.columns.iter().map(|(_, c)| *c).collect();
    let sargs: Vec<(usize, Sarg)> =
        predicates.iter().enumerate().flat_map(|(i, p)| sargs(p, &own, cx).into_iter().map(move |s| (i, s))).collect();
    let usable = |(position, index): (usize, &IndexDef)| {
        let hinted = get.index_hint.is_none_or(|hint| hint == position);
        let implying = index.filter.as_ref().map_or(Some(Vec::new()), |filter| implying(filter, get, predicates))?;
        hinted.then(|| path(get, (position, &implying), index, predicates, &sargs, rows, selectivity))
    };
    get.table.indexes.iter().enumerate().filter_map(usable).collect()
}

/// Whether `index` holds the value of the table's column `column` (the locator is everywhere).
pub fn covers(table: &TableDef, index: usize, column: usize) -> bool {
    if index == 0 || column == table.columns.len() {
        return true;
    }
    let key = |i: &IndexDef| i.keys.iter().any(|k| k.column_index == column);
    let def = &table.indexes[index];
    def.included.contains(&column) || ((key(def) || key(&table.indexes[0])) && is_lossless(&table.columns[column].sql_type))
}

/// Bytes of an entry of an index, about.
pub(super) fn row_bytes(table: &TableDef, index: usize) -> f64 {
    let bytes = |c: usize| {
        let t = table.columns[c].sql_type;
        t.fixed_bytes().map_or_else(|| f64::from(t.length().unwrap_or(400)).min(400.0) * 0.4 + 4.0, |b| b as f64)
    };
    if index == 0 {
        return 16.0 + (0..table.columns.len()).map(bytes).sum::<f64>();
    }
    let def = &table.indexes[index];
    let key = def.keys.iter().chain(&table.indexes[0].keys).map(|k| bytes(k.column_index)).sum::<f64>();
    20.0 + key + def.included.iter().map(|c| bytes(*c)).sum::<f64>()
}

fn path(
    get: &Get,
    (position, implying): (usize, &[usize]),
    index: &IndexDef,
    predicates: &[BoundExpr],
    sargs: &[(usize, Sarg)],
    rows: f64,
    selectivity: &dyn Fn(&[BoundExpr]) -> f64,
) -> Path {
    let id_of = |column_index: usize| get.columns.iter().find(|(i, _)| *i == column_index).map(|(_, c)| *c);
    let mut fixed: Vec<Vec<BoundExpr>> = Vec::new();
    let mut constants = Vec::new();
    let mut range = None;
    let mut used: Vec<(usize, bool)> = Vec::new();
    for key in &index.keys {
        let Some(column) = id_of(key.column_index) else { break };
        match restriction(column, sargs, &mut used) {
            Some(Restriction::Equal(values)) => {
                let product: usize = fixed.iter().map(Vec::len).product::<usize>() * values.len();
                if product > RANGES_MAX {
                    break;
                }
                if values.len() == 1 {
                    constants.push(column);
                }
                fixed.push(values);
            }
            Some(Restriction::Range { low, high }) => {
                range = Some(if key.descending { (high, low) } else { (low, high) });
                break;
            }
            None => break,
        }
    }
    let ranges = make_ranges(&fixed, range.as_ref());
    // Rows of a filtered index pass the predicates that imply its filter, or fewer read than the others do.
    let answering = used.iter().map(|(i, _)| i).chain(implying.iter().filter(|i| !used.iter().any(|(u, _)| u == *i)));
    let answered: Vec<BoundExpr> = answering.map(|i| predicates[*i].clone()).collect();
    let residual: Vec<BoundExpr> =
        predicates.iter().enumerate().filter(|(i, _)| !used.iter().any(|(u, exact)| u == i && *exact)).map(|(_, p)| p.clone()).collect();
    let rows_read = if ranges.is_empty() && implying.is_empty() { rows } else { (rows * selectivity(&answered)).max(1.0) };
    let covering = get.columns.iter().all(|(c, _)| covers(&get.table, position, *c));
    let width = row_bytes(&get.table, position);
    let seeks = ranges.len().max(1) as f64 * cost::SEEK;
    let mut total = seeks + rows_read * (cost::scan_row(width) + residual.len() as f64 * cost::EVALUATE);
    if !covering {
        let index_only = |p: &&BoundExpr| {
            let free = p.free_columns();
            get.columns.iter().filter(|(_, c)| free.contains(c)).all(|(i, _)| covers(&get.table, position, *i))
        };
        let early: Vec<BoundExpr> = residual.iter().filter(index_only).cloned().collect();
        total += rows_read * selectivity(&early) * cost::LOOKUP;
    }
    // Behind its own keys an index has those of the row, in their order.
    let row_keys = if position == 0 { &[][..] } else { &get.table.indexes[0].keys };
    let order = index.keys.iter().chain(row_keys).map_while(|k| id_of(k.column_index).map(|c| (c, k.descending))).collect();
    Path { index: position, ranges, residual, rows_read, cost: total, order, constants, covering }
}

fn restriction(column: ColumnRef, sargs: &[(usize, Sarg)], used: &mut Vec<(usize, bool)>) -> Option<Restriction> {
    let of_column = || sargs.iter().filter(|(_, s)| s.column == column);
    // The shortest list of values wins; other equalities stay residuals.
    let equal = of_column().filter(|(_, s)| s.op == SargOp::Equal).min_by_key(|(_, s)| s.values.len());
    if let Some((predicate, sarg)) = equal {
        used.push((*predicate, sarg.exact));
        return Some(Restriction::Equal(sarg.values.clone()));
    }
    let mut low = None;
    let mut high = None;
    for (predicate, sarg) in of_column() {
        match sarg.op {
            SargOp::Low { inclusive } if low.is_none() => low = Some((sarg.values[0].clone(), inclusive)),
            SargOp::High { inclusive } if high.is_none() => high = Some((sarg.values[0].clone(), inclusive)),
            _ => continue,
        }
        used.push((*predicate, sarg.exact));
    }
    (low.is_some() || high.is_some()).then_some(Restriction::Range { low, high })
}

type Ends = (Option<(BoundExpr, bool)>, Option<(BoundExpr, bool)>);

fn make_ranges(fixed: &[Vec<BoundExpr>], range: Option<&Ends>) -> Vec<(Option<PathBound>, Option<PathBound>)> {
    if fixed.is_empty() && range.is_none() {
        return Vec::new();
    }
    let mut prefixes: Vec<Vec<BoundExpr>> = vec![Vec::new()];
    for values in fixed {
        prefixes = prefixes
            .iter()
            .flat_map(|p| {
                values.iter().map(move |v| {
                    let mut prefix = p.clone();
                    prefix.push(v.clone());
                    prefix
                })
            })
            .collect();
    }
    let bound = |prefix: &[BoundExpr], end: Option<&(BoundExpr, bool)>| match end {
        None if prefix.is_empty() => None,
        None => Some(PathBound { values: prefix.to_vec(), inclusive: true }),
        Some((value, inclusive)) => {
            let mut values = prefix.to_vec();
            values.push(value.clone());
            Some(PathBound { values, inclusive: *inclusive })
        }
    };
    let (low, high) = range.map_or((None, None), |(l, h)| (l.as_ref(), h.as_ref()));
    prefixes.iter().map(|p| (bound(p, low), bound(p, high))).collect()
}

/// What `predicate` says of columns among `own`.
fn sargs(predicate: &BoundExpr, own: &[ColumnRef], cx: &RuleCx<'_>) -> Vec<Sarg> {
    let foreign = |e: &BoundExpr| !e.has_subquery() && !e.is_volatile() && !e.free_columns().iter().any(|c| own.contains(c));
    match &predicate.kind {
        BoundExprKind::Compare { op, left, right } => {
            let one = |column: &BoundExpr, value: &BoundExpr, op: CompareOp| {
                if foreign(value) { sarg(column, value, op, own, cx) } else { None }
            };
            [one(left, right, *op), one(right, left, flipped(*op))].into_iter().flatten().collect()
        }
        BoundExprKind::InList { operand, list, negated: false } if list.len() <= RANGES_MAX && list.iter().all(foreign) => {
            let each: Option<Vec<Sarg>> = list.iter().map(|v| sarg(operand, v, CompareOp::Equal, own, cx)).collect();
            match each {
                Some(each) if !each.is_empty() => {
                    let column = each[0].column;
                    let exact = each.iter().all(|s| s.exact);
                    let values = each.into_iter().flat_map(|s| s.values).collect();
                    vec![Sarg { column, op: SargOp::Equal, values, exact }]
                }
                _ => Vec::new(),
            }
        }
        BoundExprKind::Like { operand, pattern, escape, negated: false } => like_sargs(operand, pattern, escape.as_deref(), own, cx),
        _ => Vec::new(),
    }
}

/// The range of what begins with a pattern's first letters and digits. Only those are used, since under every collation
/// they have weights of their own that rise with them: what begins with 'abc' is not below 'abc', and below 'abd'.
fn like_sargs(operand: &BoundExpr, pattern: &BoundExpr, escape: Option<&BoundExpr>, own: &[ColumnRef], cx: &RuleCx<'_>) -> Vec<Sarg> {
    let text = |expr: &BoundExpr| match &expr.kind {
        BoundExprKind::Literal(Scalar::Text(text)) => Some(text.to_string()),
        _ => None,
    };
    let escape = escape.map(text);
    let (Some(pattern), Some(collation), false) = (text(pattern), operand.sql_type.collation(), escape == Some(None)) else {
        return Vec::new();
    };
    let Ok(compiled) = LikePattern::new(&pattern, escape.flatten().as_deref(), collation) else { return Vec::new() };
    let low: String = compiled.prefix().chars().take_while(char::is_ascii_alphanumeric).collect();
    if low.is_empty() {
        return Vec::new();
    }
    // The last letter or digit that has a next one of its kind; what follows it is left out.
    let mut high = low.clone();
    while high.ends_with(['z', 'Z', '9']) {
        high.pop();
    }
    let above = high.pop().map(|last| (high + char::from(last as u8 + 1).encode_utf8(&mut [0; 4]), CompareOp::Less));
    [Some((low, CompareOp::GreaterOrEqual)), above]
        .into_iter()
        .flatten()
        .filter_map(|(bound, op)| {
            let bound = BoundExpr::new(BoundExprKind::Literal(Scalar::text(bound)), operand.sql_type);
            sarg(operand, &bound, op, own, cx).map(|sarg| Sarg { exact: false, ..sarg })
        })
        .collect()
}

pub(super) fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
        other => other,
    }
}

fn sarg(column: &BoundExpr, value: &BoundExpr, op: CompareOp, own: &[ColumnRef], cx: &RuleCx<'_>) -> Option<Sarg> {
    let op = match op {
        CompareOp::Equal => SargOp::Equal,
        CompareOp::Greater => SargOp::Low { inclusive: false },
        CompareOp::GreaterOrEqual => SargOp::Low { inclusive: true },
        CompareOp::Less => SargOp::High { inclusive: false },
        CompareOp::LessOrEqual => SargOp::High { inclusive: true },
        CompareOp::NotEqual | CompareOp::Same | CompareOp::NotSame => return None,
    };
    let mut inner = column;
    while let BoundExprKind::Convert { operand, attempt: false, .. } = &inner.kind {
        if !keeps_values_apart(&operand.sql_type, &inner.sql_type) {
            return None;
        }
        inner = operand;
    }
    let id = inner.as_column().filter(|c| own.contains(c))?;
    let target = cx.columns.info(id).sql_type;
    let direct = inner.sql_type == column.sql_type && seekable_as(&value.sql_type, &target);
    if direct {
        return Some(Sarg { column: id, op, values: vec![retyped(value, target)], exact: true });
    }
    // Under a widening conversion only equality: the narrowed value may be off, but an equal one is never missed.
    if op != SargOp::Equal {
        return None;
    }
    let narrowed = BoundExpr::new(BoundExprKind::Convert { operand: Box::new(value.clone()), style: 0, attempt: true }, target);
    Some(Sarg { column: id, op, values: vec![narrowed], exact: false })
}

/// Whether a value of type `value` can be put into a key of type `column` as it is.
fn seekable_as(value: &SqlType, column: &SqlType) -> bool {
    value == column
        || (value.is_text() && column.is_text() && value.collation() == column.collation())
        || (value.is_binary() && column.is_binary() && !matches!(column, SqlType::Binary { .. } | SqlType::RowVersion))
}

/// A text or binary value under the column's name of the same thing: no conversion, so that nothing is cut.
fn retyped(value: &BoundExpr, target: SqlType) -> BoundExpr {
    let mut value = value.clone();
    if matches!(value.kind, BoundExprKind::Literal(Scalar::Text(_) | Scalar::Binary(_))) && value.sql_type != target {
        value.sql_type =
            if target.is_text() { value.sql_type.with_collation(target.collation().unwrap_or_default()) } else { value.sql_type };
    }
    value
}

/// Whether the conversion maps different values to different values, keeping their order.
pub(super) fn keeps_values_apart(from: &SqlType, to: &SqlType) -> bool {
    let whole = |t: &SqlType| match t {
        SqlType::Bit => Some(1),
        SqlType::TinyInt => Some(3),
        SqlType::SmallInt => Some(5),
        SqlType::Int => Some(10),
        SqlType::BigInt => Some(19),
        _ => None,
    };
    match (from, to) {
        (f, t) if whole(f).is_some() && whole(t).is_some() => whole(f) <= whole(t),
        (f, SqlType::Decimal { precision, scale, .. }) if whole(f).is_some() => whole(f).is_some_and(|d| precision - scale >= d),
        (SqlType::Decimal { precision: p1, scale: s1, .. }, SqlType::Decimal { precision: p2, scale: s2, .. }) => {
            s2 >= s1 && p2 - s2 >= p1 - s1
        }
        (SqlType::TinyInt | SqlType::SmallInt | SqlType::Int, SqlType::Float) | (SqlType::Real, SqlType::Float) => true,
        (SqlType::Date | SqlType::SmallDateTime, SqlType::DateTime2 { .. }) => true,
        (SqlType::DateTime2 { scale: a }, SqlType::DateTime2 { scale: b }) | (SqlType::Time { scale: a }, SqlType::Time { scale: b }) => {
            a <= b
        }
        _ => false,
    }
}
