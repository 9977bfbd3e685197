//! A plan's rows from a few leaves of its table: what statistics are made of.
//!
//! ```text
//! dividing keys of the tree ──► parts of about the same size ──► of each the first leaf
//! ```
//! The rows are read under the view that is given, without locks, whatever the isolation level: statistics need not agree
//! with anything.

use crate::context::StatementHost;
use crate::exec::cx::CxState;
use crate::exec::parts::{PartSource, WorkerScan, divide};
use crate::exec::seek::Span;
use crate::exec::{Execution, Phase, build, scan_below};
use crate::phys::{Node, NodeKind};
use crate::statistics::SampleSize;
use std::collections::VecDeque;
use thawdb_storage::ReadView;
use thawdb_types::SqlError;

/// Prepares `plan`, a sort over the scan of a whole table, and tells how many leaves will be read; `None` is all.
pub(crate) fn run<'p>(
    plan: &'p Node,
    size: SampleSize,
    view: ReadView,
    host: &mut dyn StatementHost,
) -> Result<(Execution<'p>, Option<usize>), SqlError> {
    let NodeKind::Sort { input, .. } = &plan.kind else { unreachable!("a sample is sorted") };
    let NodeKind::TableScan { table, index, .. } = &scan_below(input).kind else { unreachable!("a sample is of one table") };
    let mut spans = vec![Span::everything()];
    let mut leaves = None;
    if let SampleSize::Leaves(wanted) = size {
        let keys = view.dividing_keys(table.indexes[*index].tree, wanted).map_err(|error| host.storage_error(table.database, error))?;
        // So few parts that they may be leaves themselves are read whole.
        if keys.len() * 2 > wanted {
            spans = divide(spans, &keys);
            leaves = Some(spans.len());
        }
    }
    let source = PartSource::Sample { spans: VecDeque::from(spans), first_leaves: leaves.is_some() };
    let mut state = CxState::default();
    state.worker_scan = Some(WorkerScan { view, source, scan: std::ptr::from_ref(table).addr() });
    Ok((Execution { plan, root: build(plan), state, phase: Phase::New }, leaves))
}
