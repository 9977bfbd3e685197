//! The version store: old versions of rows, appended to pages of their own, logged with the change that made them old.
//!
//! ```text
//!   segment (an allocation unit) ──> pages of type Version ──> records (slots), named by version pointers
//!   one segment takes records; sealed ones wait until nobody needs them and then go whole, as a dropped tree does
//! ```
//! A record is needed while its pusher is open or aborted with rows left, and while a view does not see the pusher. So a
//! sealed segment may go when every pusher in it is below the horizon and no aborted transaction is left that could
//! have pushed into it. After a restart nobody but the aborted need the segments found: they go when the last of those
//! has been cleaned.
//!
//! Invariants: 1. records never move and their slots are never used again while the segment lives (`push` only appends).
//! 2. `max_pusher` is raised before the record can be reached (`push`). 3. A group pushes at most one record, and
//! version pages are latched after all pages of trees.
//! Locks: VERSION_APPEND (2, while latching the page appended to), VERSION_SEGMENTS (5). Failure: `FileFull`, `LogFull`
//! before anything is changed; a record that is not where its pointer says is `Damage`.

use super::version::{self, damaged};
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::mini::Mini;
use crate::page::{Format, PageOp, PageType, Slotted, header};
use crate::space::Unit;
use crate::store::Store;
use observe::sync::{LockClass, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use thawdb_observe as observe;

static VERSION_APPEND: LockClass = LockClass::new("VERSION_APPEND", 2);
static VERSION_SEGMENTS: LockClass = LockClass::new("VERSION_SEGMENTS", 5);

/// Writers that append at the same time without meeting.
const APPENDERS: usize = 4;
/// Pages after which a segment is sealed: 8 MiB, so that space comes back soon and segments stay few.
const SEGMENT_PAGES: u32 = 1024;

/// A piece of the store.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) tree: TreeId,
    pub(crate) unit: Unit,
    page_count: AtomicU32,
    /// The greatest transaction that has pushed into it.
    max_pusher: AtomicU64,
    /// Some record may hold large parts.
    pub(crate) has_large: AtomicBool,
}

impl Segment {
    pub(crate) fn new(tree: TreeId, unit: Unit) -> Self {
        Self { tree, unit, page_count: AtomicU32::new(0), max_pusher: AtomicU64::new(0), has_large: AtomicBool::new(false) }
    }
}

#[derive(Default)]
struct Segments {
    current: Option<Arc<Segment>>,
    sealed: Vec<Arc<Segment>>,
    /// Found at start: needed by the aborted only.
    inherited: Vec<Arc<Segment>>,
}

#[derive(Default)]
struct Appender {
    segment: Option<Arc<Segment>>,
    page: Option<PageId>,
}

/// The store of one database.
pub(crate) struct VersionStore {
    appenders: [Mutex<Appender>; APPENDERS],
    segments: Mutex<Segments>,
}

impl VersionStore {
    /// An empty store.
    pub(crate) fn new() -> Self {
        Self {
            appenders: std::array::from_fn(|_| Mutex::new(&VERSION_APPEND, Appender::default())),
            segments: Mutex::new(&VERSION_SEGMENTS, Segments::default()),
        }
    }

    /// Takes over segments from before the start; what they hold of large parts is not known.
    pub(crate) fn inherit(&self, found: Vec<Segment>) {
        for segment in &found {
            segment.has_large.store(true, Ordering::Release);
        }
        self.segments.lock().inherited.extend(found.into_iter().map(Arc::new));
    }

    /// Whether a segment must be made before the next push.
    pub(crate) fn needs_segment(&self) -> bool {
        let segments = self.segments.lock();
        segments.current.as_ref().is_none_or(|segment| segment.page_count.load(Ordering::Relaxed) >= SEGMENT_PAGES)
    }

    /// Seals the present segment and appends to this one from now on.
    pub(crate) fn begin_segment(&self, segment: Segment) {
        let mut segments = self.segments.lock();
        if let Some(full) = segments.current.replace(Arc::new(segment)) {
            segments.sealed.push(full);
        }
    }

    /// Appends a record in the mini-transaction's group and returns its pointer.
    pub(crate) fn push(&self, mini: &mut Mini<'_>, pusher: TxnId, record: &[u8], has_large: bool) -> Result<u64, StorageError> {
        let mut appender = self.appenders[pusher.0 as usize % APPENDERS].lock();
        let current = self.segments.lock().current.clone().ok_or_else(|| StorageError::Bug("no version segment was made".into()))?;
        if appender.segment.as_ref().is_none_or(|segment| !Arc::ptr_eq(segment, &current)) {
            *appender = Appender { segment: Some(current.clone()), page: None };
        }
        // Before the record exists: whoever asks whether the segment may go must count this pusher.
        current.max_pusher.fetch_max(pusher.0, Ordering::AcqRel);
        if has_large {
            current.has_large.store(true, Ordering::Release);
        }
        if let Some(page) = appender.page {
            let latched = mini.latch(page)?;
            let view = Slotted(mini.page(latched));
            if view.fits(record.len()) {
                let slot = u16::try_from(view.len()).expect("slots are fewer than 64 Ki");
                mini.apply(latched, PageOp::SlotInsert { slot, bytes: record })?;
                return Ok(version::pointer(page, slot));
            }
        }
        let format = Format { page_type: PageType::Version, tree: current.tree, object_id: 0, index_id: 0, level: 0, creator: TxnId(0) };
        let latched = mini.allocate(current.unit, format)?;
        let page = mini.id(latched);
        mini.apply(latched, PageOp::SlotInsert { slot: 0, bytes: record })?;
        Ok(version::pointer(page, 0))
    }

    /// The group that pushed a record has been committed: its page may be appended to.
    pub(crate) fn pushed(&self, pusher: TxnId, pointer: u64) {
        let (page, slot) = version::target(pointer);
        let mut appender = self.appenders[pusher.0 as usize % APPENDERS].lock();
        if slot == 0 && appender.page != Some(page) {
            appender.page = Some(page);
            if let Some(segment) = &appender.segment {
                segment.page_count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Copies the record at `pointer`.
    pub(crate) fn read(store: &Store, pointer: u64, out: &mut Vec<u8>) -> Result<(), StorageError> {
        let (page, slot) = version::target(pointer);
        let bytes = store.read(page)?;
        if header::page_type(&bytes) != Some(PageType::Version) || usize::from(slot) >= Slotted(&bytes).len() {
            return Err(damaged(pointer, "no such record"));
        }
        out.extend_from_slice(Slotted(&bytes).bytes(usize::from(slot)));
        Ok(())
    }

    /// Marks a record as given back to its leaf.
    pub(crate) fn mark_restored(mini: &mut Mini<'_>, pointer: u64) -> Result<(), StorageError> {
        let (page, slot) = version::target(pointer);
        let latched = mini.latch(page)?;
        let view = Slotted(mini.page(latched));
        if header::page_type(mini.page(latched)) != Some(PageType::Version) || usize::from(slot) >= view.len() {
            return Err(damaged(pointer, "no such record"));
        }
        let entry = view.entry(usize::from(slot));
        let suffix_at = entry.encoded_bytes() - entry.payload.len() - entry.suffix.len();
        let at = u16::try_from(suffix_at + version::RecordKey::RESTORED_AT).expect("an entry is shorter than a page");
        mini.apply(latched, PageOp::SlotPatch { slot, at, bytes: &[1] })
    }

    /// Takes the segments that nobody needs, given the horizon and whether any aborted transaction has rows left.
    pub(crate) fn take_unneeded(&self, horizon: u64, aborted_left: bool) -> Vec<Arc<Segment>> {
        if aborted_left {
            return Vec::new();
        }
        let mut segments = self.segments.lock();
        let mut taken = std::mem::take(&mut segments.inherited);
        let (gone, kept) = segments.sealed.drain(..).partition(|segment| segment.max_pusher.load(Ordering::Acquire) < horizon);
        segments.sealed = kept;
        taken.extend::<Vec<_>>(gone);
        taken
    }

    /// Takes segments back whose freeing did not end.
    pub(crate) fn give_back(&self, segments: Vec<Arc<Segment>>) {
        self.segments.lock().inherited.extend(segments);
    }
}
