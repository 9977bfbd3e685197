//! Several threads read one table, each a part of it at a time, and one thread brings their rows together.
//!
//! ```text
//!            ┌─ worker: operators of `input` over part 0, 3, ... ─┐
//! session ───┼─ worker: the same over part 1, 2, ...             ─┼─► Exchange ─► session's thread: `for_each`, `next`
//!            └─ ...                                              ─┘
//! GatherOrder::Any     one round, in which a worker's scan goes from part to part as it takes them (`parts`)
//! GatherOrder::Parts   parts by rounds, each run for itself; their rows are handed on in the order of the parts
//! ```
//! Where hash joins stand between the scan and the top, their right sides are read first, by this thread, and shared; what
//! an Apply runs for each row, each worker runs for its own.
//!
//! Invariants: 1. all workers read by one view, the statement's: they see the transaction's own changes and no later ones.
//! 2. Rows are those of `input` run alone; their order is too, under `Parts`. 3. Workers run only while a call of this
//! operator does, so the session may lend them all it has (`parallel_host`). 4. Nothing is divided where rows are locked as
//! they are read (by any scan a worker would run), where a right side does not fit into its share of the memory, where
//! workers would read several tables and somebody asks what was read of each, where workers are not to be had, or where the
//! memory is too little to be shared: then `input` runs on the session's thread.
//!
//! Memory: each worker may hold its share of half the statement's grant; rows between threads are bounded by the exchange,
//! rows of a round by its growth, which ends at an eighth of the grant. Failure: the first one's error; the others end at
//! their next look (cancellation is looked for once a batch). 8642 if the system gives no thread. A panic of a worker goes on
//! in the session's thread.

use crate::context::StatementHost;
use crate::exec::batch::Rows;
use crate::exec::correlation::visit_inputs;
use crate::exec::cx::CxState;
use crate::exec::exchange::{Exchange, Sender, WorkReport};
use crate::exec::hash_join::{Built, identity};
use crate::exec::layouts::layout_of;
use crate::exec::parallel_host::ParallelHost;
use crate::exec::parts::{PartSource, PartSupply, WorkerScan, cut, divide};
use crate::exec::seek::{Span, spans};
use crate::exec::table_scan::ScanSpec;
use crate::exec::{Batch, BoxOperator, Cx, Operator, TakeBatch, build, scan_spec};
use crate::expr::Expr;
use crate::locking::ReadPlan;
use crate::phys::{GatherOrder, Node, NodeKind};
use crate::workers::{WorkerBudget, Workers};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use thawdb_storage::page_reads::{count_for_me, page_reads};
use thawdb_storage::{ReadView, ScanGroup};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// Parts for each worker of one round at least: so many that all end at about the same time, however small the tree.
const PARTS_PER_WORKER: usize = 8;
/// The same at most, for a worker whose scan goes on from part to part: what is read for parts that long is not in memory long
/// before it is used. Where each part is run for itself, more of them cost more than they gain: a TOP finds its first rows anew
/// in each, which took as long as all else with 82 parts of 10,000,000 rows.
const PARTS_PER_WORKER_GOING_ON: usize = 64;
/// Leaves of such a part: 2 MiB, as much as a disk is asked for at once.
const PART_LEAVES: usize = 256;
/// Parts for each worker where they are worked on in rounds.
const PARTS_PER_WORKER_IN_ROUNDS: usize = 32;
/// Finer division of a tree of which ranges are read only.
const RANGE_FACTOR: usize = 4;
/// Least memory of a worker.
const WORKER_MEMORY_BYTES_MIN: usize = 512 << 10;
/// A round's rows may take one part of so many of the grant.
const ROUND_SHARE: usize = 8;
/// Batches between threads, for each worker.
const BATCHES_PER_WORKER: usize = 16;
/// As much stack as a session's own thread has: expressions nest as deeply here.
const STACK_BYTES: usize = 8 << 20;

/// A table's rows by several threads.
pub(super) struct Gather<'p> {
    input: &'p Node,
    scan: ScanSpec<'p>,
    order: GatherOrder,
    degree_max: usize,
    way: Way<'p>,
    /// Memory of right sides that are shared.
    held: usize,
}

enum Way<'p> {
    Closed,
    Alone(BoxOperator<'p>),
    Together(Division),
}

/// Work divided.
struct Division {
    budget: Arc<WorkerBudget>,
    /// Those of the next round, if they are taken already: between rounds others may have them.
    workers: Option<Workers>,
    degree: usize,
    view: ReadView,
    parts: Vec<Span>,
    /// What the scans of all parts share; none where they are not begun before their turn.
    group: Option<Arc<ScanGroup>>,
    /// The first part that no round has had, and how many the next one gets.
    next: usize,
    round: usize,
    ready: VecDeque<Batch>,
    held: usize,
    built: SharedSides,
}

/// Right sides of hash joins, by the joins' identities.
type SharedSides = Vec<(usize, Arc<Built>)>;

/// The parts of a tree, and what their scans share.
type Parted = (Vec<Span>, Option<Arc<ScanGroup>>);

/// What a worker needs.
struct Work<'s, 'p> {
    input: &'p Node,
    order: GatherOrder,
    supply: &'s Arc<PartSupply>,
    view: &'s ReadView,
    session: &'s dyn StatementHost,
    exchange: &'s Exchange,
    memory_bytes: usize,
    built: &'s SharedSides,
    /// The scan that is divided.
    scan: usize,
}

impl<'p> Gather<'p> {
    pub(super) fn new(input: &'p Node, order: GatherOrder, degree_max: u16) -> Self {
        let scan = scan_spec(scan_below(input)).expect("what is gathered reads one table");
        Self { input, scan, order, degree_max: usize::from(degree_max), way: Way::Closed, held: 0 }
    }

    /// Whether each part's rows are so few that all parts can be run in one round.
    fn is_one_round(&self) -> bool {
        self.order == GatherOrder::Any || matches!(self.input.kind, NodeKind::TopN { .. })
    }

    /// How many workers the statement may ask for; `None` where the work is not to be divided.
    fn wanted(&self, cx: &mut Cx<'p, '_>) -> Result<Option<(usize, Arc<WorkerBudget>)>, SqlError> {
        let memory_bytes = cx.host.memory_grant_bytes();
        let wanted = self.degree_max.min(memory_bytes / 2 / WORKER_MEMORY_BYTES_MIN);
        let Some(budget) = cx.host.worker_budget().filter(|budget| wanted >= 2 && budget.most() >= 2) else { return Ok(None) };
        let mut scans = Vec::new();
        scans_of_workers(self.input, true, &mut scans);
        // Who wants to know what was read of each table is told by one thread: workers know their sum alone.
        if scans.len() > 1 && cx.state.reads.is_some() {
            return Ok(None);
        }
        for scan in scans {
            if matches!(scan.read_plan(cx)?, ReadPlan::Locks { .. }) {
                return Ok(None);
            }
        }
        Ok(Some((wanted, budget)))
    }

    /// The right sides of the hash joins that the workers' rows go through; `None` if one is too large to be shared.
    fn right_sides(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<SharedSides>, SqlError> {
        let mut joins = Vec::new();
        hash_joins_below(self.input, &mut joins);
        let mut built = SharedSides::new();
        for (right, keys) in joins {
            match Built::of(right, keys, &mut self.held, cx)? {
                Some(side) => built.push((identity(keys), side)),
                None => return Ok(None),
            }
        }
        Ok(Some(built))
    }

    /// The work divided; `None` where it is to be done by one thread.
    fn division(
        &self,
        (wanted, budget): (usize, Arc<WorkerBudget>),
        built: SharedSides,
        cx: &mut Cx<'p, '_>,
    ) -> Result<Option<Division>, SqlError> {
        let database = self.scan.table.database;
        let plan = self.scan.read_plan(cx)?;
        let Some(workers) = budget.take(wanted) else { return Ok(None) };
        let view = cx.host.read_view(database)?;
        let view = if plan == ReadPlan::Uncommitted { view.uncommitted() } else { view };
        let (parts, group) = self.parts(workers.count(), &view, cx)?;
        let degree = workers.count();
        let round = if self.is_one_round() { parts.len() } else { degree };
        let workers = Some(workers);
        let division = Division { budget, workers, degree, view, parts, group, next: 0, round, ready: VecDeque::new(), held: 0, built };
        Ok((division.parts.len() >= 2).then_some(division))
    }

    fn parts(&self, workers: usize, view: &ReadView, cx: &mut Cx<'p, '_>) -> Result<Parted, SqlError> {
        let layout = layout_of(self.scan.table, self.scan.index);
        let (spans, factor) = match self.scan.ranges {
            [] => (vec![Span::everything()], 1),
            ranges => (spans(ranges, layout.own_key(), cx)?, RANGE_FACTOR),
        };
        let (least, most) = match self.order {
            GatherOrder::Any => (PARTS_PER_WORKER, PARTS_PER_WORKER_GOING_ON),
            GatherOrder::Parts(_) if self.is_one_round() => (PARTS_PER_WORKER, PARTS_PER_WORKER),
            GatherOrder::Parts(_) => (PARTS_PER_WORKER_IN_ROUNDS, PARTS_PER_WORKER_IN_ROUNDS),
        };
        let parts = workers * least * factor..=workers * most * factor;
        let tree = self.scan.table.indexes[self.scan.index].tree;
        let keys = view.dividing_keys_of_leaves(tree, parts, PART_LEAVES);
        let mut keys = keys.map_err(|error| cx.host.storage_error(self.scan.table.database, error))?;
        if let GatherOrder::Parts(columns @ 1..) = self.order {
            keys = cut(keys, &layout.own_key()[..columns]);
        }
        let ranges: Vec<_> = spans.iter().cloned().map(Span::into_range).collect();
        // What cannot be read now is met again by who takes the first part.
        let group = if self.scan.backward { None } else { view.scan_group(tree, &ranges).ok() };
        Ok((divide(spans, &keys), group))
    }

    /// Has the workers run the next round of parts and hands what they give to `take`, with its part.
    fn round(
        &self,
        division: &mut Division,
        cx: &mut Cx<'p, '_>,
        take: &mut dyn FnMut(usize, Batch, &mut Cx<'p, '_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let end = (division.next + division.round).min(division.parts.len());
        let mut supply = PartSupply::new(division.parts.clone(), division.next, end);
        if let Some(group) = &division.group {
            supply = supply.reading_ahead(&division.view, self.scan.table.indexes[self.scan.index].tree, group);
        }
        let supply = Arc::new(supply);
        let workers = division.workers.take().or_else(|| division.budget.take(division.degree));
        // One at the least: the session's own thread waits meanwhile.
        let count = workers.as_ref().map_or(1, Workers::count).min(end - division.next);
        division.next = end;
        let exchange = Exchange::new(count * BATCHES_PER_WORKER);
        let Cx { host, state } = cx;
        let session: &dyn StatementHost = &**host;
        let memory_bytes = session.memory_grant_bytes();
        let mut own = ParallelHost::new(session, &exchange, memory_bytes);
        let memory_bytes = memory_bytes / 2 / division.degree;
        let work = Work {
            input: self.input,
            order: self.order,
            supply: &supply,
            view: &division.view,
            session,
            exchange: &exchange,
            memory_bytes,
            built: &division.built,
            scan: self.scan.identity(),
        };
        let outcome = thread::scope(|scope| {
            let closing = exchange.closing();
            let mut handles = Vec::with_capacity(count);
            for _ in 0..count {
                let (work, sender) = (&work, exchange.sender());
                let builder = thread::Builder::new().name("thawdb-parallel".into()).stack_size(STACK_BYTES);
                // One thread does what several would, a little later: it takes all parts.
                handles.extend(builder.spawn_scoped(scope, move || work.run(&sender)));
            }
            if handles.is_empty() {
                return Err(message(8642, &[]));
            }
            state.workers += handles.len();
            let mut cx = Cx { host: &mut own, state };
            let mut received = || -> Result<(), SqlError> {
                while let Some((part, batch)) = exchange.receive()? {
                    take(part, batch, &mut cx)?;
                }
                Ok(())
            };
            let outcome = received();
            drop(closing);
            for handle in handles {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            outcome
        });
        let infos = own.infos;
        drop(workers);
        account(exchange.take_reports(), infos, cx);
        outcome
    }

    /// Runs a round and keeps its rows in the order of the parts.
    fn fill(&self, division: &mut Division, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let mut came: Vec<(usize, Batch)> = Vec::new();
        let mut bytes = 0;
        let mut held = division.held;
        self.round(division, cx, &mut |part, batch, cx| {
            bytes += batch.memory_bytes();
            came.push((part, batch));
            cx.hold_or_fail(&mut held, bytes)
        })?;
        division.held = held;
        came.sort_by_key(|(part, _)| *part);
        division.ready.extend(came.into_iter().map(|(_, batch)| batch));
        if bytes * 2 < cx.host.memory_grant_bytes() / ROUND_SHARE {
            division.round *= 2;
        }
        Ok(())
    }
}

/// Adds what workers have done to the statement's accounts.
fn account(reports: Vec<WorkReport>, mut infos: Vec<SqlError>, cx: &mut Cx<'_, '_>) {
    let mut peak = 0;
    for report in reports {
        count_for_me(&report.reads);
        cx.state.null_eliminated |= report.null_eliminated;
        cx.state.spilled_bytes += report.spilled_bytes;
        peak += report.memory_bytes_peak;
        infos.extend(report.infos);
    }
    cx.state.note_peak_beside(peak);
    infos.into_iter().for_each(|info| cx.host.info(info));
}

impl<'p> Work<'_, 'p> {
    /// A worker's life.
    fn run(&self, sender: &Sender<'_>) {
        let before = page_reads();
        let mut host = ParallelHost::new(self.session, self.exchange, self.memory_bytes);
        let mut state = CxState::default();
        if let Err(error) = self.send_all(sender, &mut Cx { host: &mut host, state: &mut state }) {
            sender.fail(error);
        }
        sender.report(WorkReport {
            reads: page_reads().since(&before),
            null_eliminated: state.null_eliminated,
            spilled_bytes: state.spilled_bytes,
            memory_bytes_peak: state.memory_bytes_peak(),
            infos: host.infos,
        });
    }

    fn send_all(&self, sender: &Sender<'_>, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let mut operator = build(self.input);
        cx.state.built.clone_from(self.built);
        if self.order == GatherOrder::Any {
            let source = PartSource::Supply(self.supply.clone());
            cx.state.worker_scan = Some(WorkerScan { view: self.view.clone(), source, scan: self.scan });
            return send_rows(&mut operator, 0, sender, cx);
        }
        while let Some(part) = self.supply.take() {
            let number = part.number;
            cx.state.worker_scan = Some(WorkerScan { view: self.view.clone(), source: PartSource::One(part), scan: self.scan });
            send_rows(&mut operator, number, sender, cx)?;
        }
        Ok(())
    }
}

fn send_rows<'p>(operator: &mut BoxOperator<'p>, part: usize, sender: &Sender<'_>, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
    operator.open(cx)?;
    while let Some(batch) = operator.next(cx)? {
        if !sender.send(part, batch) {
            break;
        }
    }
    Ok(())
}

/// The scan that everything in `node` stands on.
pub(crate) fn scan_below(node: &Node) -> &Node {
    match &node.kind {
        NodeKind::Filter { input, .. }
        | NodeKind::Project { input, .. }
        | NodeKind::PartialAggregate { input, .. }
        | NodeKind::StreamAggregate { input, .. }
        | NodeKind::TopN { input, .. }
        | NodeKind::HashJoin { left: input, .. }
        | NodeKind::NestedLoopJoin { left: input, .. }
        | NodeKind::Apply { left: input, .. } => scan_below(input),
        _ => node,
    }
}

/// The right side and the keys of a hash join.
type RightSide<'p> = (&'p Node, &'p [(Expr, Expr)]);

/// The hash joins between `node` and the scan that it stands on.
fn hash_joins_below<'p>(node: &'p Node, found: &mut Vec<RightSide<'p>>) {
    match &node.kind {
        NodeKind::HashJoin { left, right, keys, .. } => {
            found.push((right, keys));
            hash_joins_below(left, found);
        }
        NodeKind::Filter { input, .. }
        | NodeKind::Project { input, .. }
        | NodeKind::PartialAggregate { input, .. }
        | NodeKind::StreamAggregate { input, .. }
        | NodeKind::TopN { input, .. }
        | NodeKind::NestedLoopJoin { left: input, .. }
        | NodeKind::Apply { left: input, .. } => hash_joins_below(input, found),
        _ => {}
    }
}

/// The scans that a worker runs: all but those of the right sides that are shared, which are of hash joins on the way from
/// the scan that is divided to the top.
fn scans_of_workers<'p>(node: &'p Node, is_on_the_way: bool, found: &mut Vec<ScanSpec<'p>>) {
    found.extend(scan_spec(node));
    match &node.kind {
        NodeKind::HashJoin { left, .. } if is_on_the_way => scans_of_workers(left, true, found),
        NodeKind::Apply { left, right, .. } | NodeKind::NestedLoopJoin { left, right, .. } if is_on_the_way => {
            scans_of_workers(left, true, found);
            scans_of_workers(right, false, found);
        }
        _ => visit_inputs(node, &mut |input, _| scans_of_workers(input, is_on_the_way, found)),
    }
}

impl<'p> Operator<'p> for Gather<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        // What an earlier opening held is given back first.
        self.way = Way::Closed;
        cx.hold(&mut self.held, 0);
        let wanted = self.wanted(cx)?;
        let built = if wanted.is_some() { self.right_sides(cx)? } else { None };
        let shared = built.clone().unwrap_or_default();
        let division = match (wanted, built) {
            (Some(wanted), Some(built)) => self.division(wanted, built, cx)?,
            _ => None,
        };
        self.way = match division {
            Some(division) => {
                if let Some(account) = &mut cx.state.reads {
                    account.count_scans(division.degree as u64);
                }
                Way::Together(division)
            }
            None => {
                // What was read to be shared is of use to one as well.
                let mut alone = build(self.input);
                cx.state.built.extend(shared.iter().cloned());
                let opened = alone.open(cx);
                cx.state.built.retain(|(of, _)| !shared.iter().any(|(own, _)| own == of));
                opened?;
                Way::Alone(alone)
            }
        };
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let mut division = match std::mem::replace(&mut self.way, Way::Closed) {
            Way::Closed => return Ok(None),
            Way::Alone(mut alone) => {
                let next = alone.next(cx)?;
                self.way = Way::Alone(alone);
                return Ok(next);
            }
            Way::Together(division) => division,
        };
        while division.ready.is_empty() && division.next < division.parts.len() {
            cx.hold(&mut division.held, 0);
            self.fill(&mut division, cx)?;
        }
        let next = division.ready.pop_front();
        if next.is_none() {
            cx.hold(&mut division.held, 0);
            cx.hold(&mut self.held, 0);
        } else {
            self.way = Way::Together(division);
        }
        Ok(next)
    }

    fn for_each(&mut self, cx: &mut Cx<'p, '_>, take: &mut TakeBatch<'_, 'p>) -> Result<(), SqlError> {
        if self.order == GatherOrder::Any && matches!(self.way, Way::Together(_)) {
            let Way::Together(mut division) = std::mem::replace(&mut self.way, Way::Closed) else { unreachable!("seen before") };
            self.round(&mut division, cx, &mut |_, batch, cx| take(batch, cx))?;
            drop(division);
            cx.hold(&mut self.held, 0);
            return Ok(());
        }
        while let Some(batch) = self.next(cx)? {
            take(batch, cx)?;
        }
        Ok(())
    }
}
