//! Ranges of a plan as ranges of key bytes.
//!
//! ```text
//! start = 5, inclusive   Included(key(5))            end = 5, inclusive   Excluded(range_end(key(5)))
//! start = 5, exclusive   Included(range_end(key(5))) end = 5, exclusive   Excluded(key(5))
//! ```
//! A value of the plan is compared with a key column, so NULL on either side is no match: a NULL value empties the
//! range, and where only one end speaks of a nullable column, the NULLs at the other end are cut off. Ranges that meet
//! or overlap are made one, so no row comes twice (`IN (@a, @b)` with equal variables).

use crate::eval::eval_free;
use crate::exec::Cx;
use crate::phys::{SeekBound, SeekRange};
use std::ops::Bound;
use thawdb_storage::KeyRange;
use thawdb_types::key::{KeyColumn, encode_value, range_end};
use thawdb_types::{Scalar, SqlError};

/// Inclusive lower and exclusive upper bytes; `None` above is no bound.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: Vec<u8>,
    pub(super) to: Option<Vec<u8>>,
}

impl Span {
    pub(super) fn everything() -> Self {
        Self { from: Vec::new(), to: None }
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }

    pub(super) fn into_range(self) -> KeyRange {
        let start = if self.from.is_empty() { Bound::Unbounded } else { Bound::Included(self.from) };
        KeyRange { start, end: self.to.map_or(Bound::Unbounded, Bound::Excluded) }
    }
}

/// The spans of `ranges` over an index with these key columns: rising, apart from each other.
pub(super) fn spans<'p>(ranges: &'p [SeekRange], key: &[KeyColumn], cx: &mut Cx<'p, '_>) -> Result<Vec<Span>, SqlError> {
    let mut spans = Vec::with_capacity(ranges.len());
    for range in ranges {
        if let Some(span) = span(range, key, cx)? {
            spans.push(span);
        }
    }
    if spans.len() > 1 {
        spans.sort();
        spans.dedup_by(|next, kept| match &mut kept.to {
            None => true,
            Some(to) if next.from <= *to => {
                match next.to.take() {
                    None => kept.to = None,
                    Some(end) if end > *to => *to = end,
                    Some(_) => {}
                }
                true
            }
            Some(_) => false,
        });
    }
    Ok(spans)
}

/// Key bytes of a bound's values; `None` if one is NULL.
fn prefix<'p>(bound: &'p SeekBound, key: &[KeyColumn], cx: &mut Cx<'p, '_>) -> Result<Option<Vec<u8>>, SqlError> {
    let mut bytes = Vec::with_capacity(16);
    for (expr, column) in bound.values.iter().zip(key) {
        let value = eval_free(expr, cx)?;
        if value.is_null() {
            return Ok(None);
        }
        encode_value(&value, column, &mut bytes);
    }
    Ok(Some(bytes))
}

fn span<'p>(range: &'p SeekRange, key: &[KeyColumn], cx: &mut Cx<'p, '_>) -> Result<Option<Span>, SqlError> {
    let mut span = Span::everything();
    let lengths = [&range.start, &range.end].map(|b| b.as_ref().map_or(0, |b| b.values.len()));
    let mut shorter = None;
    if let Some(start) = &range.start {
        let Some(bytes) = prefix(start, key, cx)? else { return Ok(None) };
        if lengths[0] < lengths[1] {
            shorter = Some(bytes.clone());
        }
        span.from = if start.inclusive { bytes } else { range_end(&bytes) };
    }
    if let Some(end) = &range.end {
        let Some(bytes) = prefix(end, key, cx)? else { return Ok(None) };
        if lengths[1] < lengths[0] {
            shorter = Some(bytes.clone());
        }
        span.to = Some(if end.inclusive { range_end(&bytes) } else { bytes });
    }
    if lengths[0] != lengths[1] {
        cut_nulls(&mut span, lengths, shorter.unwrap_or_default(), key);
    }
    Ok(span.to.as_ref().is_none_or(|to| span.from < *to).then_some(span))
}

/// Cuts off the NULLs of the column that only one end speaks of. `prefix` is what the end that is shorter says.
fn cut_nulls(span: &mut Span, [start, end]: [usize; 2], prefix: Vec<u8>, key: &[KeyColumn]) {
    let longer = start.max(end);
    // Only where the shorter end stops right before the last column of the longer one do we know the NULLs' place.
    let column = &key[longer - 1];
    if !column.nullable || start.min(end) + 1 != longer {
        return;
    }
    let mut nulls = prefix;
    encode_value(&Scalar::Null, column, &mut nulls);
    if !column.descending && end == longer {
        span.from = span.from.clone().max(range_end(&nulls));
    }
    if column.descending && start == longer {
        span.to = Some(span.to.take().map_or(nulls.clone(), |to| to.min(nulls)));
    }
}
