//! A scan divided among threads: ranges of keys, handed out one after another to whoever asks.
//!
//! ```text
//! spans of the plan, dividing keys of the tree ── divide ──► part | part | part | part | ...
//!                                                 PartSupply::take: the next    └──begun: read ahead before their turn
//! ```
//! Parts are short, so that all threads end at about the same time; and as a disk that is asked only at the beginning of each
//! part stands still between them, scans of the next ones are begun as long as too little is under way.
//!
//! Invariants: 1. the parts hold every key of the spans, each once, in their order. 2. Cut by the first `n` key columns, no
//! two parts have rows that are equal in them: an end lies at the beginning of all keys that start with the columns' bytes.
//! Lock: `PART_SUPPLY` (5), nothing is called under it. No failure: a key that cannot be cut divides nothing, and what meets
//! an error when it is begun is begun anew when its turn comes.

use crate::exec::seek::Span;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_storage::{ReadView, Scan, ScanDirection, ScanGroup, TreeId};
use thawdb_types::key::{KeyColumn, skip_value};

static PART_SUPPLY: LockClass = LockClass::new("PART_SUPPLY", 5);

/// Parts begun before their turn at most.
const BEGUN_MAX: usize = 16;

/// Parts that wait to be worked on.
pub(super) struct PartSupply {
    parts: Vec<Span>,
    next: AtomicUsize,
    end: usize,
    /// How parts are begun, if they are.
    ahead: Option<Ahead>,
}

/// A part of the work.
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) span: Span,
    /// Its scan, if that was begun.
    pub(super) scan: Option<Scan>,
}

/// Beginning parts before their turn.
struct Ahead {
    view: ReadView,
    tree: TreeId,
    group: Arc<ScanGroup>,
    /// In about the order of their numbers.
    begun: Mutex<VecDeque<Part>>,
}

impl Ahead {
    /// Whether too little is under way.
    fn is_wanting(&self) -> bool {
        let aim = self.view.leaves_ahead();
        let begun = self.begun.lock();
        begun.len() < BEGUN_MAX && begun.iter().filter_map(|part| Some(part.scan.as_ref()?.leaves_ahead())).sum::<usize>() < aim
    }

    fn begin(&self, span: &Span) -> Option<Scan> {
        let mut scan = self.view.scan(self.tree, span.clone().into_range(), ScanDirection::Forward).ok()?;
        scan.begin(&self.group).ok()?;
        Some(scan)
    }
}

impl PartSupply {
    /// Parts `from..end` of `parts`.
    pub(super) fn new(parts: Vec<Span>, from: usize, end: usize) -> Self {
        assert!(from <= end && end <= parts.len(), "a supply is of parts there are");
        Self { parts, next: AtomicUsize::new(from), end, ahead: None }
    }

    /// The same, whose parts are ranges of `tree` that are read forward to their ends.
    pub(super) fn reading_ahead(self, view: &ReadView, tree: TreeId, group: &Arc<ScanGroup>) -> Self {
        let begun = Mutex::new(&PART_SUPPLY, VecDeque::new());
        Self { ahead: Some(Ahead { view: view.clone(), tree, group: group.clone(), begun }), ..self }
    }

    /// The next part; `None` when all are taken.
    pub(super) fn take(&self) -> Option<Part> {
        let Some(ahead) = &self.ahead else { return self.next_part() };
        let first = ahead.begun.lock().pop_front();
        let part = match first {
            Some(part) => part,
            None => {
                let part = self.next_part()?;
                Part { scan: ahead.begin(&part.span), ..part }
            }
        };
        while ahead.is_wanting()
            && let Some(next) = self.next_part()
        {
            let next = Part { scan: ahead.begin(&next.span), ..next };
            ahead.begun.lock().push_back(next);
        }
        Some(part)
    }

    fn next_part(&self) -> Option<Part> {
        // Relaxed: the parts themselves do not change.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.end).then(|| Part { number, span: self.parts[number].clone(), scan: None })
    }
}

/// What the scan of a thread reads, in place of what its plan says.
pub struct WorkerScan {
    /// The view that all threads of the statement share.
    pub(super) view: ReadView,
    pub(super) source: PartSource,
    /// Which scan of the plan ([`ScanSpec::identity`](crate::exec::table_scan::ScanSpec::identity)); others read what their
    /// plan says.
    pub(super) scan: usize,
}

/// Which parts.
pub(super) enum PartSource {
    /// One after another, as long as there are any.
    Supply(Arc<PartSupply>),
    One(Part),
    /// One after another, of each its first leaf or all.
    Sample {
        spans: std::collections::VecDeque<Span>,
        first_leaves: bool,
    },
}

/// Divides `spans`, which rise, at those of `keys`, which rise too, that lie inside.
pub(super) fn divide(spans: Vec<Span>, keys: &[Vec<u8>]) -> Vec<Span> {
    let mut parts = Vec::with_capacity(spans.len() + keys.len());
    for mut span in spans {
        for key in keys {
            if *key > span.from && span.to.as_ref().is_none_or(|to| key < to) {
                let from = std::mem::replace(&mut span.from, key.clone());
                parts.push(Span { from, to: Some(key.clone()) });
            }
        }
        parts.push(span);
    }
    parts
}

/// `keys` cut behind the first columns, each cut once; a key that does not hold them whole is left out.
pub(super) fn cut(keys: Vec<Vec<u8>>, columns: &[KeyColumn]) -> Vec<Vec<u8>> {
    let whole = |mut key: Vec<u8>| {
        let mut rest = key.as_slice();
        columns.iter().try_for_each(|column| skip_value(&mut rest, column)).ok()?;
        let length = key.len() - rest.len();
        key.truncate(length);
        Some(key)
    };
    let mut keys: Vec<Vec<u8>> = keys.into_iter().filter_map(whole).collect();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::key::encode_key;
    use thawdb_types::{Scalar, SqlType};

    fn span(from: &[u8], to: Option<&[u8]>) -> Span {
        Span { from: from.to_vec(), to: to.map(<[u8]>::to_vec) }
    }

    fn shown(parts: &[Span]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        parts.iter().map(|part| (part.from.clone(), part.to.clone())).collect()
    }

    #[test]
    fn parts_hold_every_key_once() {
        let keys = [vec![2], vec![5], vec![7, 1]];
        assert_eq!(
            shown(&divide(vec![Span::everything()], &keys)),
            shown(&[span(&[], Some(&[2])), span(&[2], Some(&[5])), span(&[5], Some(&[7, 1])), span(&[7, 1], None)])
        );
        // Ends of spans divide nothing, nor do keys between spans.
        let spans = vec![span(&[1], Some(&[2])), span(&[3], Some(&[7])), span(&[7], Some(&[8]))];
        assert_eq!(
            shown(&divide(spans, &keys)),
            shown(&[
                span(&[1], Some(&[2])),
                span(&[3], Some(&[5])),
                span(&[5], Some(&[7])),
                span(&[7], Some(&[7, 1])),
                span(&[7, 1], Some(&[8]))
            ])
        );
    }

    #[test]
    fn cuts_lie_between_values() {
        let columns = [
            KeyColumn { sql_type: SqlType::Int, nullable: true, descending: false },
            KeyColumn { sql_type: SqlType::BigInt, nullable: false, descending: true },
        ];
        let key = |first: Scalar, second: i64| {
            let mut bytes = Vec::new();
            encode_key(&[first, Scalar::BigInt(second)], &columns, &mut bytes);
            bytes
        };
        let only = |first: Scalar| {
            let mut bytes = Vec::new();
            encode_key(&[first], &columns[..1], &mut bytes);
            bytes
        };
        let keys = vec![key(Scalar::Null, 1), key(Scalar::Int(3), 9), key(Scalar::Int(3), 1), key(Scalar::Int(4), 1), vec![1]];
        assert_eq!(cut(keys, &columns[..1]), [only(Scalar::Null), only(Scalar::Int(3)), only(Scalar::Int(4))]);
    }

    #[test]
    fn a_supply_hands_out_its_parts_once() {
        let parts = divide(vec![Span::everything()], &[vec![1], vec![2], vec![3]]);
        let supply = PartSupply::new(parts, 1, 3);
        let taken: Vec<usize> = std::iter::from_fn(|| supply.take().map(|part| part.number)).collect();
        assert_eq!((taken, supply.take().is_none()), (vec![1, 2], true));
    }
}
