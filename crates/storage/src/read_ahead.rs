//! Read-ahead of a forward scan: the leaves that the level above names next, in deep queues of long requests.
//!
//! ```text
//!   level 1:  | child | child | ... |  -> right sibling          cursor walks ahead of the scan
//!                 └── absent leaves of a chunk, in file order, neighbours joined ──► tickets (device buffers)
//!   scan asks for a leaf ──► its chunk is waited for ──► copied out, or admitted to free frames of the pool
//! ```
//! Pages go into the pool only where that evicts nobody: into free frames, or for the first quarter of the pool. The
//! rest is served from the buffers alone, so a scan of everything neither flushes the pool nor pays for it.
//!
//! Invariants: 1. a page from a buffer is whole and sound, and its mark of absence is what it was before it was asked for
//! (`plan_chunk`, `page_of`, `Store::let_in`): nobody has had it in the pool since, nor written it otherwise, so the bytes
//! are its newest. 2. At most [`CHUNKS_MAX`] chunks of
//! [`CHUNK_LEAVES`] leaves are under way. 3. Nothing here is needed for a right answer: what is not served, the scan reads
//! through the pool, where errors are met.
//!
//! Latches: one node of level 1 at a time, shared. Failure: none; a failed read serves nothing.

use crate::btree::child_of;
use crate::ids::PageId;
use crate::page::{PAGE_BYTES, PageBytes, PageType, Slotted, header};
use crate::page_reads;
use crate::spec::KeyRange;
use crate::store::Store;
use crate::units::TreeInfo;
use std::any::Any;
use std::collections::VecDeque;
use std::ops::Bound;
use thawdb_device::{AlignedBuf, IoBuffer, OwnedRequest, Ticket};

/// Leaves of a chunk once the scan has shown to be long: 2 MiB, two of the device's pieces at the least.
const CHUNK_LEAVES: usize = 256;
/// Leaves of the first chunk; each next one doubles.
const FIRST_CHUNK_LEAVES: usize = 16;
/// Chunks under way: 16 MiB, which keeps a disk at its full speed for some milliseconds of other work.
const CHUNKS_MAX: usize = 8;
/// Pages of a request at most: 1 MiB, the device's own largest piece.
const RUN_PAGES_MAX: usize = 128;
/// Unwanted pages read along between two wanted ones rather than splitting the request.
const GAP_PAGES_MAX: u32 = 4;

/// A buffer of which the first `pages` pages are asked for; its size is a power of two, so that it can be used again.
struct RunBuffer {
    memory: AlignedBuf,
    bytes: usize,
}

impl IoBuffer for RunBuffer {
    fn bytes(&self) -> &[u8] {
        &self.memory[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.bytes]
    }
}

/// Neighbouring pages that were read together.
struct Run {
    first: PageId,
    buffer: RunBuffer,
}

impl Run {
    fn holds(&self, page: PageId) -> bool {
        page.file == self.first.file && (self.first.page..self.first.page + (self.buffer.bytes / PAGE_BYTES) as u32).contains(&page.page)
    }

    fn page(&mut self, page: PageId) -> &mut PageBytes {
        let at = (page.page - self.first.page) as usize * PAGE_BYTES;
        self.buffer.memory[at..].first_chunk_mut().expect("the run holds the page")
    }
}

/// Some leaves in key order, those absent under way or read.
struct Chunk {
    leaves: usize,
    /// Wanted pages in file order, each with the mark of its absence.
    wanted: Vec<(PageId, u64)>,
    tickets: Vec<(u16, Ticket)>,
    runs: Vec<Run>,
}

impl Chunk {
    fn place(&self, page: PageId) -> Option<usize> {
        self.wanted.binary_search_by_key(&(page.file, page.page), |(page, _)| (page.file, page.page)).ok()
    }
}

/// The read-ahead of one scan.
pub(crate) struct ReadAhead {
    cursor: Option<(PageId, usize)>,
    chunks: VecDeque<Chunk>,
    /// Leaves asked for since the front chunk came to the front.
    consumed: usize,
    /// Leaves asked for in all.
    consumed_in_all: usize,
    next_leaves: usize,
    admitted: usize,
    spare: Vec<AlignedBuf>,
}

impl ReadAhead {
    /// Nothing to read ahead yet.
    pub(crate) fn new() -> Self {
        Self {
            cursor: None,
            chunks: VecDeque::new(),
            consumed: 0,
            consumed_in_all: 0,
            next_leaves: FIRST_CHUNK_LEAVES,
            admitted: 0,
            spare: Vec::new(),
        }
    }

    /// Starts after `slot` of `node`, the node of level 1 that led to the scan's present leaf; goes on if it already runs.
    pub(crate) fn start(&mut self, node: PageId, slot: usize) {
        if self.cursor.is_none() && self.chunks.is_empty() {
            self.cursor = Some((node, slot + 1));
        }
    }

    /// The scan has lost its way and descends: what was planned may lie elsewhere.
    pub(crate) fn restart(&mut self) {
        (self.cursor, self.consumed) = (None, 0);
        self.chunks.clear();
    }

    /// Notes that the scan goes to its next leaf, and keeps the queue filled.
    pub(crate) fn advance(&mut self, store: &Store, tree: &TreeInfo, range: &KeyRange) {
        self.consumed += 1;
        self.consumed_in_all += 1;
        while self.chunks.front().is_some_and(|chunk| chunk.leaves < self.consumed) {
            let done = self.chunks.pop_front().expect("seen above");
            self.consumed -= done.leaves;
            self.recycle(done);
        }
        // What is asked for stays in proportion to what was used, so that a short scan reads little in vain.
        let mut planned: usize = self.chunks.iter().map(|chunk| chunk.leaves).sum();
        while self.cursor.is_some() && self.chunks.len() < CHUNKS_MAX && planned < self.consumed_in_all * 4 {
            self.plan_chunk(store, tree, range);
            planned += self.next_leaves;
        }
    }

    /// Whether a chunk may have asked for `page`.
    pub(crate) fn may_have(&self, page: PageId) -> bool {
        self.chunks.iter().any(|chunk| chunk.place(page).is_some())
    }

    fn recycle(&mut self, chunk: Chunk) {
        for run in chunk.runs {
            self.spare.push(run.buffer.memory);
        }
    }

    /// Asks for the next leaves.
    fn plan_chunk(&mut self, store: &Store, tree: &TreeInfo, range: &KeyRange) {
        let aim = self.next_leaves;
        self.next_leaves = (aim * 2).min(CHUNK_LEAVES);
        let (mut leaves, mut wanted) = (0, Vec::new());
        while leaves < aim
            && let Some((node, slot)) = self.cursor
        {
            let Some((next, found)) = children(store, tree, range, node, slot, aim - leaves) else {
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
        let tickets = self.ask(store, &wanted);
        self.chunks.push_back(Chunk { leaves, wanted, tickets, runs: Vec::new() });
    }

    /// Starts reading the wanted pages, in runs.
    fn ask(&mut self, store: &Store, wanted: &[(PageId, u64)]) -> Vec<(u16, Ticket)> {
        let mut tickets = Vec::new();
        for of_file in wanted.chunk_by(|a, b| a.0.file == b.0.file) {
            let Some(file) = store.files().find(|file| file.number == of_file[0].0.file) else { continue };
            let mut requests = Vec::new();
            let mut from = 0;
            while from < of_file.len() {
                let first = of_file[from].0.page;
                let joins = |at: usize| {
                    of_file[at].0.page - of_file[at - 1].0.page <= GAP_PAGES_MAX && ((of_file[at].0.page - first) as usize) < RUN_PAGES_MAX
                };
                let to = (from + 1..of_file.len()).find(|at| !joins(*at)).unwrap_or(of_file.len());
                let last = of_file[to - 1].0.page;
                from = to;
                if last < file.pages() {
                    let buffer = self.buffer((last - first) as usize + 1);
                    requests.push(OwnedRequest { offset: u64::from(first) * PAGE_BYTES as u64, buffer: Box::new(buffer) });
                }
            }
            if !requests.is_empty() {
                tickets.push((file.number, file.device.start_read(requests)));
            }
        }
        tickets
    }

    fn buffer(&mut self, pages: usize) -> RunBuffer {
        let bytes = pages * PAGE_BYTES;
        let room = bytes.next_power_of_two();
        let memory = match self.spare.iter().position(|spare| spare.len() == room) {
            Some(at) => self.spare.swap_remove(at),
            None => AlignedBuf::zeroed(room),
        };
        RunBuffer { memory, bytes }
    }

    /// Copies leaf `page` to `out` if it was read ahead and is still nowhere else; false if the pool is to be asked.
    pub(crate) fn page_of(&mut self, store: &Store, page: PageId, out: &mut PageBytes) -> bool {
        let found = self.chunks.iter().enumerate().find_map(|(at, chunk)| Some((at, chunk.place(page)?)));
        let Some((at, place)) = found else { return false };
        self.receive(store, at);
        let chunk = &mut self.chunks[at];
        if store.absence(page) != Some(chunk.wanted[place].1) {
            return false;
        }
        let Some(run) = chunk.runs.iter_mut().find(|run| run.holds(page)) else { return false };
        out.copy_from_slice(run.page(page));
        page_reads::looked_at();
        store.is_sound(page, out)
    }

    /// Waits for a chunk's reads, and lets its pages into the pool as far as that takes no frame from others.
    fn receive(&mut self, store: &Store, at: usize) {
        let tickets = std::mem::take(&mut self.chunks[at].tickets);
        if tickets.is_empty() {
            return;
        }
        for (file, ticket) in tickets {
            let (requests, result) = ticket.wait();
            for request in requests {
                let buffer: Box<dyn Any> = request.buffer;
                let Ok(buffer) = buffer.downcast::<RunBuffer>() else { continue };
                if result.is_err() {
                    self.spare.push(buffer.memory);
                    continue;
                }
                let page = u32::try_from(request.offset / PAGE_BYTES as u64).expect("a page's number is 32 bits");
                page_reads::fetched_ahead(buffer.bytes / PAGE_BYTES);
                self.chunks[at].runs.push(Run { first: PageId { file, page }, buffer: *buffer });
            }
        }
        self.admit(store, at);
    }

    fn admit(&mut self, store: &Store, at: usize) {
        let chunk = &mut self.chunks[at];
        if !store.has_room_for(chunk.wanted.len(), self.admitted) {
            return;
        }
        for run in &mut chunk.runs {
            let inside = |(page, _): &&(PageId, u64)| run.holds(*page);
            let own: Vec<(PageId, u64)> = chunk.wanted.iter().filter(inside).copied().collect();
            for (page, mark) in own {
                self.admitted += usize::from(store.let_in(page, mark, run.page(page)));
            }
        }
    }
}

type Cursor = Option<(PageId, usize)>;

/// Up to `count_max` children of `node` from `slot` on whose keys are not all beyond the range, and where to go on.
fn children(
    store: &Store,
    tree: &TreeInfo,
    range: &KeyRange,
    node: PageId,
    slot: usize,
    count_max: usize,
) -> Option<(Cursor, Vec<PageId>)> {
    let page = store.read(node).ok()?;
    if header::page_type(&page) != Some(PageType::Inner) || header::tree(&page) != tree.id || header::level(&page) != 1 {
        return None;
    }
    let view = Slotted(&page);
    let (mut found, mut key) = (Vec::new(), Vec::new());
    let mut at = slot;
    while at < view.len() && found.len() < count_max {
        if let Bound::Included(end) | Bound::Excluded(end) = &range.end {
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
