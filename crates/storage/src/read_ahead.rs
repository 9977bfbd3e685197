//! Read-ahead of a forward scan: the leaves that the level above names next, in deep queues of long requests.
//!
//! ```text
//!   level 2:  | node | node | ... |  -> right sibling             nodes of level 1 are asked for some dozens ahead
//!                └► level 1:  | leaf | leaf | ... |               cursor walks ahead of the scan
//!                 └── absent leaves of a chunk, in file order, neighbours joined ──► fetches, by the device's threads
//!   scan asks for a leaf ──► its chunk is waited for ──► looked at in its buffer, or it is in the pool by now
//! ```
//! A scan of one of many parts of a tree is begun before its turn comes ([`ReadAhead::begin`]), so that the disk does not stand
//! still between two parts; what it shares with the others is in [`group`].
//!
//! Some pages go into the pool ([`group`] says which). The rest is served from the buffers alone, so a scan of everything
//! neither flushes the pool nor pays for it. Nodes of level 1 go into the pool: there is one to some hundred leaves, and
//! reading one only when the cursor comes to it would make the whole queue wait for a single page at the queue's end.
//!
//! Invariants: 1. a page from a buffer is whole and sound, and its mark of absence is what it was before it was asked for
//! (`plan_chunk`, `page_of`, `fetch`): nobody has had it in the pool since, nor written it otherwise, so the bytes
//! are its newest. 2. At most [`CHUNKS_MAX`] chunks of one scan are under way, of [`CHUNK_LEAVES`] leaves at most, together at
//! most an [`AHEAD_SHARE`]th of the pool; beyond the first ones only as far as the instance's memory account grants it. 3. Nothing
//! here is needed for a right answer: what is not served, the scan reads through the pool, where errors are met.
//!
//! Latches: one node of level 1 at a time, shared. Failure: none; a failed read serves nothing.

mod fetch;
pub(crate) mod group;

use crate::ahead_page::AheadPage;
use crate::btree::{Tree, child_of};
use crate::ids::{PageId, TxnId};
use crate::memory::{Clerk, Grant};
use crate::page::{PAGE_BYTES, PageType, Slotted, header};
use crate::page_reads;
use crate::pool::Pool;
use crate::spec::KeyRange;
use crate::store::Store;
use crate::units::TreeInfo;
use fetch::{Fetch, Job, Run, Wanted};
use group::ScanGroup;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_device::AlignedBuf;

/// Leaves of a chunk once the scan has shown to be long: 2 MiB, two of the device's pieces at the least.
const CHUNK_LEAVES: usize = 256;
/// Leaves of the first chunk; each next one doubles.
const FIRST_CHUNK_LEAVES: usize = 16;
/// Chunks under way: 16 MiB, which keeps a disk at its full speed for some milliseconds of other work.
const CHUNKS_MAX: usize = 8;
/// Leaves of a chunk in a small pool: below it requests are too short for any disk.
const CHUNK_LEAVES_MIN: usize = 8;
/// One part of so many of the pool's size is what one scan's buffers may take.
const AHEAD_SHARE: usize = 4;
/// Nodes of level 1 asked for at once, and as many again when half of them are used: 128 name 400 MB of full leaves. Many at
/// a time, because the system's I/O scheduler may serve requests in the order of their place on the disk: a node that lies
/// further on than the leaves of a deep queue comes no sooner than those around it, whenever it was asked for.
const NODES_AHEAD: usize = 128;
/// Chunks of so many leaves at least belong to a scan that is worth asking for nodes.
const NODES_CHUNK_LEAVES: usize = 32;
/// Nodes asked for first: before the queue is deep, so that the first of them does not wait at its end.
const FIRST_NODES_AHEAD: usize = 8;
/// Pages of a request at most: 2 MiB, so that its buffer is one huge page of memory; the device divides it.
const RUN_PAGES_MAX: usize = 256;
/// Unwanted pages read along between two wanted ones rather than splitting the request.
const GAP_PAGES_MAX: u32 = 4;

/// Leaves that scans taking turns have asked for together: a deep queue, in proportion to the pool.
pub(crate) fn leaves_ahead(store: &Store) -> usize {
    (CHUNK_LEAVES * CHUNKS_MAX).min(store.pool().frame_count() / AHEAD_SHARE)
}

/// Some leaves in key order, those absent under way or read.
struct Chunk {
    leaves: usize,
    /// Those under way, by file.
    fetches: Vec<(u16, Fetch)>,
    /// Pages asked for, in file order.
    pages: Vec<PageId>,
    /// What was read, by file.
    read: Vec<(u16, Vec<Wanted>, Vec<ReadRun>)>,
}

/// A run that was read.
struct ReadRun {
    first: u32,
    pages: usize,
    memory: Arc<AlignedBuf>,
}

impl Chunk {
    fn has(&self, page: PageId) -> bool {
        self.pages.binary_search_by_key(&(page.file, page.page), |page| (page.file, page.page)).is_ok()
    }

    /// Waits for the reads.
    fn receive(&mut self) {
        for (file, fetch) in self.fetches.drain(..) {
            let fetched = fetch.wait();
            if fetched.wanted.iter().any(|wanted| wanted.sound) {
                page_reads::fetched_ahead(fetched.runs.iter().map(|run| run.pages).sum());
            }
            let run = |run: Run| ReadRun { first: run.first, pages: run.pages, memory: Arc::new(run.memory) };
            self.read.push((file, fetched.wanted, fetched.runs.into_iter().map(run).collect()));
        }
    }

    /// `page` and the mark of its absence, if it can be used.
    fn page_of(&self, page: PageId) -> Option<(AheadPage, u64)> {
        let (_, wanted, runs) = self.read.iter().find(|(file, ..)| *file == page.file)?;
        let at = wanted.binary_search_by_key(&page.page, |wanted| wanted.page).ok()?;
        let wanted = wanted[at];
        let inside = |run: &&ReadRun| page.page.checked_sub(run.first).is_some_and(|at| (at as usize) < run.pages);
        let run = runs.iter().find(inside).filter(|_| wanted.sound)?;
        let bytes_before = (page.page - run.first) as usize * PAGE_BYTES;
        Some((AheadPage::new(run.memory.clone(), bytes_before), wanted.mark))
    }
}

/// The read-ahead of one scan.
pub(crate) struct ReadAhead {
    cursor: Cursor,
    /// Which child of which node of level 2 is the next node of level 1 to be asked for.
    upper: Cursor,
    /// Nodes of level 1 that were asked for and that the cursor has not come to.
    nodes: VecDeque<PageId>,
    /// Those on their way, as they were asked for.
    node_fetches: VecDeque<(Vec<PageId>, Vec<(u16, Fetch)>)>,
    chunks: VecDeque<Chunk>,
    /// Leaves asked for since the front chunk came to the front.
    consumed: usize,
    /// Leaves asked for in all.
    consumed_in_all: usize,
    next_leaves: usize,
    /// Leaves of a chunk and chunks under way at most: [`CHUNK_LEAVES`] and [`CHUNKS_MAX`] unless the scan is one of many.
    bounds: (usize, usize),
    /// Leave to use memory beyond the first chunks.
    grant: Option<Grant>,
    group: Arc<ScanGroup>,
    /// Whether the scan goes on beyond its range in another one, so that nodes beyond it are worth reading.
    goes_on: bool,
}

impl ReadAhead {
    /// Nothing to read ahead yet.
    pub(crate) fn new() -> Self {
        Self {
            cursor: None,
            upper: None,
            nodes: VecDeque::new(),
            node_fetches: VecDeque::new(),
            chunks: VecDeque::new(),
            consumed: 0,
            consumed_in_all: 0,
            next_leaves: FIRST_CHUNK_LEAVES,
            bounds: (CHUNK_LEAVES, CHUNKS_MAX),
            grant: None,
            group: Arc::default(),
            goes_on: false,
        }
    }

    /// Never asks for more than `leaves` at a time, the next once those are used: for one of many scans that take turns, whose
    /// whole queues nobody has the memory for.
    pub(crate) fn bound(&mut self, leaves: usize) {
        self.bounds = (leaves.clamp(1, FIRST_CHUNK_LEAVES), 1);
        self.next_leaves = self.bounds.0;
    }

    /// Everything that is asked for will be used: the queue is as deep as it gets from the beginning.
    pub(crate) fn expect_whole(&mut self) {
        self.next_leaves = self.bounds.0;
        self.consumed_in_all = CHUNK_LEAVES * CHUNKS_MAX;
    }

    /// Starts after `slot` of `node`, the node of level 1 that led to the scan's present leaf, and after the place of the
    /// node in the one above it, if there is one; goes on if it already runs.
    pub(crate) fn start(&mut self, (node, slot): (PageId, usize), above: Option<(PageId, usize)>) {
        if self.cursor.is_none() && self.chunks.is_empty() {
            self.cursor = Some((node, slot + 1));
            self.upper = above.map(|(node, slot)| (node, slot + 1));
        }
    }

    /// Starts at `slot` of `node` and asks for what comes first, before the scan is asked for it. The next part of the tree is
    /// read by another scan of `group`.
    pub(crate) fn begin(
        &mut self,
        (store, tree, range): (&Store, &TreeInfo, &KeyRange),
        group: &Arc<ScanGroup>,
        (node, slot): (PageId, usize),
        above: Option<(PageId, usize)>,
    ) {
        assert!(self.cursor.is_none() && self.chunks.is_empty(), "a scan begins once");
        (self.group, self.goes_on) = (group.clone(), true);
        self.expect_whole();
        self.cursor = Some((node, slot));
        self.upper = above.map(|(node, slot)| (node, slot + 1));
        self.fill(store, tree, range);
    }

    /// Leaves asked for that the scan has not come to.
    pub(crate) fn leaves_under_way(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.leaves).sum::<usize>().saturating_sub(self.consumed)
    }

    /// Waits for the first chunk.
    pub(crate) fn receive_first(&mut self) {
        if let Some(chunk) = self.chunks.front_mut() {
            chunk.receive();
        }
    }

    /// The scan has lost its way and descends: what was planned may lie elsewhere.
    pub(crate) fn restart(&mut self) {
        (self.cursor, self.upper, self.consumed) = (None, None, 0);
        self.chunks.clear();
        self.nodes.clear();
        self.node_fetches.clear();
    }

    /// Notes that the scan goes to its next leaf, and keeps the queue filled.
    pub(crate) fn advance(&mut self, store: &Store, tree: &TreeInfo, range: &KeyRange) {
        self.consumed += 1;
        self.consumed_in_all += 1;
        while self.chunks.front().is_some_and(|chunk| chunk.leaves < self.consumed) {
            let done = self.chunks.pop_front().expect("seen above");
            self.consumed -= done.leaves;
            self.recycle(done, store.pool());
        }
        self.fill(store, tree, range);
    }

    /// Asks for more while that is in bounds.
    fn fill(&mut self, store: &Store, tree: &TreeInfo, range: &KeyRange) {
        // What is asked for stays in proportion to what was used, so that a short scan reads little in vain.
        let mut planned: usize = self.chunks.iter().map(|chunk| chunk.leaves).sum();
        while self.cursor.is_some() && self.chunks.len() < self.bounds.1 && planned < self.consumed_in_all * 4 {
            if !self.may_plan(store, planned + self.next_leaves) {
                break;
            }
            self.plan_chunk(store, tree, range);
            planned += self.next_leaves;
        }
    }

    /// Whether there is memory for `leaves` under way.
    fn may_plan(&mut self, store: &Store, leaves: usize) -> bool {
        let bytes = (leaves * PAGE_BYTES) as u64;
        if leaves <= 2 * FIRST_CHUNK_LEAVES {
            return true;
        }
        let grant = self.grant.get_or_insert_with(|| Grant::new(store.pool().account().clone(), Clerk::Storage));
        // With one chunk at least, however little there is: without any the disk stands still between two pages.
        bytes <= grant.bytes() || grant.try_resize(bytes) || self.chunks.is_empty()
    }

    fn recycle(&self, chunk: Chunk, pool: &Pool) {
        chunk.read.into_iter().flat_map(|(.., runs)| runs).for_each(|run| self.group.lend(run.memory, pool));
    }

    /// Asks for the next leaves.
    fn plan_chunk(&mut self, store: &Store, tree: &TreeInfo, range: &KeyRange) {
        let leaves_max = store.pool().frame_count() / AHEAD_SHARE / CHUNKS_MAX;
        let aim = self.next_leaves.min(leaves_max.max(CHUNK_LEAVES_MIN));
        if self.consumed_in_all >= CHUNK_LEAVES {
            let nodes = Tree { store, info: tree, author: TxnId(0), finishing: false };
            // What cannot be told may be little.
            self.group.expect(|| nodes.leaves_between(range).unwrap_or(0), store.pool());
        }
        self.next_leaves = (aim * 2).min(leaves_max.clamp(CHUNK_LEAVES_MIN, CHUNK_LEAVES)).min(self.bounds.0);
        if aim >= NODES_CHUNK_LEAVES.min(leaves_max) {
            self.ask_nodes(store, tree, range);
        }
        let (mut leaves, mut wanted) = (0, Vec::new());
        while leaves < aim
            && let Some((node, slot)) = self.cursor
        {
            self.come_to_node(node, store.pool());
            let Some((next, found)) = children(store, tree, Some(range), (node, slot), 1, aim - leaves) else {
                self.cursor = None;
                break;
            };
            self.cursor = next;
            leaves += found.len();
            wanted.extend(found.into_iter().filter_map(|page| Some((page, store.absence(page)?))));
        }
        if leaves == 0 {
            return;
        }
        wanted.sort_unstable_by_key(|(page, _)| (page.file, page.page));
        let fetches = self.ask(store, &wanted, Some(self.group.clone()));
        let pages = wanted.into_iter().map(|(page, _)| page).collect();
        self.chunks.push_back(Chunk { leaves, fetches, pages, read: Vec::new() });
    }

    /// Asks for the next nodes of level 1 when half of those asked for are used.
    fn ask_nodes(&mut self, store: &Store, tree: &TreeInfo, range: &KeyRange) {
        let most = NODES_AHEAD.min(store.pool().frame_count() / AHEAD_SHARE / 4);
        let Some(upper) = self.upper.filter(|_| self.nodes.len() <= most / 2) else { return };
        let count_max = if self.nodes.is_empty() { FIRST_NODES_AHEAD.min(most) } else { most };
        let range = Some(range).filter(|_| !self.goes_on);
        let Some((next, found)) = children(store, tree, range, upper, 2, count_max) else {
            self.upper = None;
            return;
        };
        self.upper = next;
        let mut wanted: Vec<(PageId, u64)> = found.iter().filter_map(|page| Some((*page, store.absence(*page)?))).collect();
        wanted.sort_unstable_by_key(|(page, _)| (page.file, page.page));
        self.nodes.extend(&found);
        let fetches = self.ask(store, &wanted, None);
        self.node_fetches.push_back((found, fetches));
    }

    /// The cursor is at `node`: if that was asked for and is on its way, waits for it.
    fn come_to_node(&mut self, node: PageId, pool: &Pool) {
        let Some(at) = self.nodes.iter().position(|known| *known == node) else { return };
        self.nodes.drain(..=at);
        let Some(batch) = self.node_fetches.iter().position(|(nodes, _)| nodes.contains(&node)) else { return };
        for (_, fetch) in self.node_fetches.drain(..=batch).flat_map(|(_, fetches)| fetches) {
            let fetched = fetch.wait();
            page_reads::fetched_ahead(fetched.wanted.iter().filter(|wanted| wanted.sound).count());
            fetched.runs.into_iter().for_each(|run| self.group.put_back(run.memory, pool));
        }
    }

    /// Starts reading the wanted pages, in runs.
    fn ask(&self, store: &Store, wanted: &[(PageId, u64)], group: Option<Arc<ScanGroup>>) -> Vec<(u16, Fetch)> {
        let mut fetches = Vec::new();
        for of_file in wanted.chunk_by(|a, b| a.0.file == b.0.file) {
            let Some(file) = store.files().find(|file| file.number == of_file[0].0.file) else { continue };
            // What lies beyond the end is for the pool to tell.
            let inside = of_file.partition_point(|(page, _)| page.page < file.pages());
            let wanted: Vec<Wanted> =
                of_file[..inside].iter().map(|(page, mark)| Wanted { page: page.page, mark: *mark, sound: false }).collect();
            if wanted.is_empty() {
                continue;
            }
            let runs = self.runs_of(&wanted);
            let job = Job {
                file: file.number,
                device: file.device.clone(),
                pool: store.pool_handle(),
                pool_file: file.pool_file.clone(),
                written: store.written.clone(),
                group: group.clone(),
                wanted,
                runs,
            };
            fetches.push((file.number, Fetch::start(job)));
        }
        fetches
    }

    /// Joins pages in file order to long requests.
    fn runs_of(&self, wanted: &[Wanted]) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut from = 0;
        while from < wanted.len() {
            let first = wanted[from].page;
            let joins =
                |at: usize| wanted[at].page - wanted[at - 1].page <= GAP_PAGES_MAX && ((wanted[at].page - first) as usize) < RUN_PAGES_MAX;
            let to = (from + 1..wanted.len()).find(|at| !joins(*at)).unwrap_or(wanted.len());
            let pages = (wanted[to - 1].page - first) as usize + 1;
            from = to;
            runs.push(Run { first, pages, memory: self.group.buffer(pages) });
        }
        runs
    }

    /// Leaf `page` if it was read ahead and is still nowhere else; `None` if the pool is to be asked.
    pub(crate) fn page_of(&mut self, store: &Store, page: PageId) -> Option<AheadPage> {
        let chunk = self.chunks.iter_mut().find(|chunk| chunk.has(page))?;
        chunk.receive();
        let (found, mark) = chunk.page_of(page)?;
        if store.absence(page) != Some(mark) {
            return None;
        }
        page_reads::looked_at();
        Some(found)
    }
}

/// A node and the child of it that is next.
type Cursor = Option<(PageId, usize)>;

/// Up to `count_max` children of a node of `level`, from a child on, whose keys are not all beyond the range, if there is
/// one; and where to go on.
fn children(
    store: &Store,
    tree: &TreeInfo,
    range: Option<&KeyRange>,
    (node, from): (PageId, usize),
    level: u8,
    count_max: usize,
) -> Option<(Cursor, Vec<PageId>)> {
    let page = store.read(node).ok()?;
    if header::page_type(&page) != Some(PageType::Inner) || header::tree(&page) != tree.id || header::level(&page) != level {
        return None;
    }
    let view = Slotted(&page);
    let (mut found, mut key) = (Vec::new(), Vec::new());
    let mut at = from;
    while at < view.len() && found.len() < count_max {
        if let Some(Bound::Included(end) | Bound::Excluded(end)) = range.map(|range| &range.end) {
            key.clear();
            view.key(at, &mut key);
            if key.as_slice() > end.as_slice() {
                return Some((None, found));
            }
        }
        found.push(child_of(view, at)?);
        at += 1;
    }
    let right = header::right(&page);
    let next = if at < view.len() { Some((node, at)) } else { (right != PageId::NONE).then_some((right, 0)) };
    Some((next, found))
}
