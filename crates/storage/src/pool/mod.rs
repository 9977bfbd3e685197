//! The buffer pool: frames of memory shared by all databases of an instance, and the only doors to a page's bytes.
//!
//! ```text
//! page -> PageTable -> PageWord {frame, latch, version} -> Frame (state) + Arena (bytes)
//!
//! frame:  free -- Loading --> clean <-- write done -- writing
//!                              |  \ mark_dirty           ^   \ changed meanwhile: dirty and writing
//!                     evicted <+   dirty -- begin_write -+
//! ```
//!
//! 1. Bytes are read only under a latch ([`PageRead`]) and changed only under the exclusive one ([`PageWrite`]); a page
//!    being loaded is latched exclusively by its loader, others wait for it ([`Loading`]).
//! 2. A frame that is dirty or being written is not evicted, so a page read again is never older than its frame was
//!    ([`Pool::sweep`]).
//! 3. A page is written from a copy taken under a shared latch; the writer flushes the log up to what the copy says
//!    ([`Pool::begin_write`], asserted by the store before the write).
//! 4. `place`, `recovery` and `group_end` of a frame change under the exclusive latch of its page, or while it has none;
//!    `group_end` is never below the LSN of a page with a log.
//!
//! Locks: page latches (rank 2 by use), then `BUFFER_CLEANING` (2) while there is no free frame, whose holder waits for no
//! latch, then `BUFFER_FREE_LIST` and `BUFFER_TABLES` (5). The sweep only try-latches,
//! so a thread that holds latches may need a frame. Loading blocks on input under the page's own latch.
//!
//! Failure: a failed load leaves the page absent. With no frame to be had, [`StorageError::PoolExhausted`].
//!
//! How many frames serve is for the memory account to say; those beyond are given back to the system ([`resize`]).
//!
//! It does not read optimistically yet (the version is kept for that).

pub mod memory;
mod resize;
pub mod word;

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::memory::MemoryAccount;
use crate::page::{PAGE_BYTES, PageBytes, header};
use memory::{Arena, PageTable};
use observe::counter::{Counter, CounterKind};
use observe::sync::{LockClass, Mutex, RwLock};
use observe::wait::WaitResource;
use resize::FreeFrames;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use thawdb_observe as observe;
use word::{PageWord, Tried};

static FREE_LIST: LockClass = LockClass::new("BUFFER_FREE_LIST", 5);
static CLEANING: LockClass = LockClass::new("BUFFER_CLEANING", 2);
static TABLES: LockClass = LockClass::new("BUFFER_TABLES", 5);
static LOOKUPS: Counter = Counter::new("Buffer Manager", "Page lookups/sec", CounterKind::PerSecond);
static READS: Counter = Counter::new("Buffer Manager", "Page reads/sec", CounterKind::PerSecond);
static EVICTIONS: Counter = Counter::new("Buffer Manager", "Lazy writes/sec", CounterKind::PerSecond);

/// Frames that a sweep tries to free at once: enough that the free list's lock is rare, few enough to be fast.
const SWEEP_FRAMES: usize = 64;
/// What a frame costs.
const FRAME_BYTES: usize = PAGE_BYTES + size_of::<Frame>();
/// Fewest frames of a pool: what a few mini-transactions may have latched at once, several times over.
pub const FRAMES_MIN: usize = 256;
/// Fruitless sweeps, each followed by giving the processor away, before the pool says it has no frame.
const FRUITLESS_MAX: usize = 20_000;

const CLEAN: u8 = 0;
const DIRTY: u8 = 1;
const WRITING: u8 = 2;

/// Who can write dirty pages so that frames become clean.
pub trait WriteBack: Send + Sync {
    /// Writes up to `pages_max` of its dirty pages without waiting for latches; returns how many.
    fn write_back(&self, pages_max: usize) -> Result<usize, StorageError>;
}

/// A file known to the pool.
pub struct PoolFile {
    table: PageTable,
    number: u32,
    database: u32,
    file: u16,
    owner: Weak<dyn WriteBack>,
}

/// How a page is going to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessHint {
    /// Likely again.
    Keep,
    /// Once, by a scan: the first to go, so that a scan of everything does not flush the rest.
    Once,
}

#[derive(Default)]
struct Frame {
    /// Number of the file + 1 in the upper half, page in the lower; 0 is none.
    place: AtomicU64,
    state: AtomicU8,
    referenced: AtomicBool,
    /// Where redo of the page must begin, while dirty.
    recovery: AtomicU64,
    /// End of the last group that changed the page: the log must be durable to here before the page is written.
    group_end: AtomicU64,
    /// The last record known that starts the page afresh; 0 if none is known. From there the log alone can make it.
    afresh: AtomicU64,
    /// Groups that changed the page since it became dirty or was started afresh.
    changes: AtomicU32,
}

/// What loading found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// As on the device.
    Clean,
    /// Changed by redo: dirty since, and with what the log must hold.
    Redone {
        /// First change that the device lacks.
        recovery: Lsn,
        /// End of the last.
        group_end: Lsn,
        /// The record that started it afresh, 0 if none did.
        afresh: Lsn,
    },
}

/// The pool.
pub struct Pool {
    arena: Arena,
    frames: Box<[Frame]>,
    free: Mutex<FreeFrames>,
    account: Arc<MemoryAccount>,
    hand: AtomicU32,
    cleaning: Mutex<()>,
    files: RwLock<Vec<Option<Arc<PoolFile>>>>,
}

impl Pool {
    /// A pool of as many frames as fit in `memory_bytes`, with an account of its own.
    pub fn new(memory_bytes: u64) -> Arc<Self> {
        Self::with_account(MemoryAccount::for_pool(memory_bytes))
    }

    /// A pool of as many frames as the account lets it have at most.
    pub fn with_account(account: Arc<MemoryAccount>) -> Arc<Self> {
        let frames = usize::try_from(account.pool_bytes_max()).unwrap_or(usize::MAX) / FRAME_BYTES;
        let frames = frames.clamp(FRAMES_MIN, word::FRAMES_MAX);
        let pool = Arc::new(Self {
            arena: Arena::new(frames),
            frames: std::iter::repeat_with(Frame::default).take(frames).collect(),
            free: Mutex::new(&FREE_LIST, FreeFrames::all(frames)),
            account: account.clone(),
            hand: AtomicU32::new(0),
            cleaning: Mutex::new(&CLEANING, ()),
            files: RwLock::new(&TABLES, Vec::new()),
        });
        let weak: Weak<Self> = Arc::downgrade(&pool);
        account.set_pool(weak);
        pool
    }

    /// The instance's memory account.
    pub fn account(&self) -> &Arc<MemoryAccount> {
        &self.account
    }

    /// Number of frames that serve.
    pub fn frame_count(&self) -> usize {
        self.free.lock().serving()
    }

    /// Makes a file known.
    pub fn register(&self, database: u32, file: u16, owner: Weak<dyn WriteBack>) -> Arc<PoolFile> {
        let mut files = self.files.write();
        let number = files.iter().position(Option::is_none).unwrap_or(files.len());
        let known =
            Arc::new(PoolFile { table: PageTable::new(), number: u32::try_from(number).expect("few files"), database, file, owner });
        if number == files.len() {
            files.push(None);
        }
        files[number] = Some(known.clone());
        known
    }

    /// Drops every page of `file` from the pool, dirty or not, and forgets it. Nobody else uses it any more.
    pub fn forget(&self, file: &PoolFile) {
        for (page, word) in file.table.touched() {
            while word.is_present() {
                match word.try_exclusive(false) {
                    Tried::Latched(frame) => {
                        self.release(frame);
                        word.leave(None, false);
                        self.put_back(&[frame]);
                    }
                    Tried::Absent => break,
                    Tried::Busy => word::wait(word, true, false, || file.resource(page)),
                }
            }
        }
        self.files.write()[file.number as usize] = None;
    }

    /// Drops `page` from the pool, dirty or not, once no write of it is under way: its content is being replaced on the
    /// device by other means. Called before and after that, also for an absent page: its mark of absence changes, so that
    /// nobody lets in bytes read before ([`Self::begin_load_since`]).
    pub fn discard(&self, file: &PoolFile, page: u32) {
        let word = file.table.word(page);
        loop {
            match word.try_exclusive(true) {
                Tried::Absent => return word.leave(None, false),
                Tried::Busy => word::wait(word, true, false, || file.resource(page)),
                Tried::Latched(frame) if self.meta(frame).state.load(Ordering::Acquire) & WRITING != 0 => {
                    word.leave(Some(frame), false);
                    std::thread::yield_now();
                }
                Tried::Latched(frame) => {
                    self.release(frame);
                    word.leave(None, false);
                    self.put_back(&[frame]);
                    return;
                }
            }
        }
    }

    fn release(&self, frame: u32) {
        let meta = self.meta(frame);
        meta.place.store(0, Ordering::Relaxed);
        meta.state.store(CLEAN, Ordering::Relaxed);
    }

    fn meta(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    /// Latches `page` to read, loading it with `load` if it is not here.
    pub fn read<'p>(
        &'p self,
        file: &'p PoolFile,
        page: u32,
        hint: AccessHint,
        load: &mut dyn FnMut(&mut PageBytes) -> Result<Loaded, StorageError>,
    ) -> Result<PageRead<'p>, StorageError> {
        LOOKUPS.increment();
        let word = file.table.word(page);
        word::give_way(word);
        loop {
            match word.try_shared() {
                Tried::Latched(frame) => {
                    self.reference(frame, hint);
                    return Ok(PageRead { pool: self, word, frame });
                }
                Tried::Busy => word::wait(word, false, !word.is_present(), || file.resource(page)),
                Tried::Absent => {
                    if let Some(mut loading) = self.begin_load(file, page)? {
                        let loaded = load(loading.bytes())?;
                        let frame = loading.install(loaded, hint, true);
                        return Ok(PageRead { pool: self, word, frame });
                    }
                }
            }
        }
    }

    fn reference(&self, frame: u32, hint: AccessHint) {
        let meta = self.meta(frame);
        // Relaxed, and written only if it changes: a hint, on a line that many readers share.
        if hint == AccessHint::Keep && !meta.referenced.load(Ordering::Relaxed) {
            meta.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Latches `page` to change it, loading it with `load` if it is not here. Without `wait`, `None` if others hold it.
    pub fn write<'p>(
        &'p self,
        file: &'p PoolFile,
        page: u32,
        wait: bool,
        load: &mut dyn FnMut(&mut PageBytes) -> Result<Loaded, StorageError>,
    ) -> Result<Option<PageWrite<'p>>, StorageError> {
        LOOKUPS.increment();
        let word = file.table.word(page);
        loop {
            match word.try_exclusive(false) {
                Tried::Latched(frame) => {
                    self.reference(frame, AccessHint::Keep);
                    return Ok(Some(PageWrite { pool: self, file, page, frame, present: true }));
                }
                Tried::Busy if !wait => return Ok(None),
                Tried::Busy => word::wait(word, true, !word.is_present(), || file.resource(page)),
                Tried::Absent => {
                    if let Some(mut loading) = self.begin_load(file, page)? {
                        let loaded = load(loading.bytes())?;
                        loading.install_exclusive(loaded);
                        let frame = loading.into_frame();
                        return Ok(Some(PageWrite { pool: self, file, page, frame, present: true }));
                    }
                }
            }
        }
    }

    /// Latches `page` to give it new content, without reading it: what it held does not matter.
    pub fn write_new<'p>(&'p self, file: &'p PoolFile, page: u32) -> Result<PageWrite<'p>, StorageError> {
        let word = file.table.word(page);
        loop {
            match word.try_exclusive(false) {
                Tried::Latched(frame) => return Ok(PageWrite { pool: self, file, page, frame, present: true }),
                Tried::Busy => word::wait(word, true, false, || file.resource(page)),
                Tried::Absent => {
                    if let Some(mut loading) = self.begin_load(file, page)? {
                        loading.bytes().fill(0);
                        let frame = loading.into_frame();
                        return Ok(PageWrite { pool: self, file, page, frame, present: false });
                    }
                }
            }
        }
    }

    /// Begins to load `page`; `None` if it is here or somebody loads it.
    pub fn begin_load<'p>(&'p self, file: &'p PoolFile, page: u32) -> Result<Option<Loading<'p>>, StorageError> {
        // The frame comes first: waiting for one with the page latched would keep those out who need the page.
        let frame = self.take_frame()?;
        let word = file.table.word(page);
        match word.try_exclusive(true) {
            Tried::Absent => Ok(Some(Loading { pool: self, file, page, frame, open: true })),
            other => {
                if let Tried::Latched(present) = other {
                    word.leave(Some(present), false);
                }
                self.put_back(&[frame]);
                Ok(None)
            }
        }
    }

    /// Begins to load `page` with bytes read while it was absent; `None` if it has not been absent since `mark`, or no frame
    /// is to be had without writing one.
    pub fn begin_load_since<'p>(&'p self, file: &'p PoolFile, page: u32, mark: u64) -> Option<Loading<'p>> {
        let word = file.table.word(page);
        if word.absence() != Some(mark) {
            return None;
        }
        let frame = self.free_frame()?;
        match word.try_exclusive(true) {
            Tried::Absent if word.absence_latched() == mark => return Some(Loading { pool: self, file, page, frame, open: true }),
            Tried::Absent => word.leave(None, false),
            Tried::Latched(present) => word.leave(Some(present), false),
            Tried::Busy => {}
        }
        self.put_back(&[frame]);
        None
    }

    /// A frame that is free, or whose page was clean and not wanted.
    fn free_frame(&self) -> Option<u32> {
        let free = self.free.lock().pop();
        free.or_else(|| if self.sweep().0 > 0 { self.free.lock().pop() } else { None })
    }

    /// Frames that hold no page.
    pub fn free_count(&self) -> usize {
        self.free.lock().len()
    }

    /// Copies `page` for writing if it is dirty, not being written, and its latch free to read.
    pub fn begin_write(&self, file: &PoolFile, page: u32, out: &mut PageBytes) -> BegunWrite {
        let word = file.table.word(page);
        let frame = match word.try_shared() {
            Tried::Latched(frame) => frame,
            Tried::Busy => return BegunWrite::Busy,
            Tried::Absent => return BegunWrite::Clean,
        };
        let read = PageRead { pool: self, word, frame };
        let meta = self.meta(frame);
        match meta.state.compare_exchange(DIRTY, WRITING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                *out = *read;
                let recovery = Lsn(meta.recovery.load(Ordering::Relaxed));
                let group_end = Lsn(meta.group_end.load(Ordering::Relaxed));
                let afresh = Lsn(meta.afresh.load(Ordering::Relaxed));
                BegunWrite::Begun { frame, recovery, group_end, afresh }
            }
            Err(CLEAN) => BegunWrite::Clean,
            Err(_) => BegunWrite::Busy,
        }
    }

    /// The LSN of a page that is in the pool; `Err` while somebody changes or loads it.
    pub fn page_lsn(&self, file: &PoolFile, page: u32) -> Result<Option<Lsn>, ()> {
        let word = file.table.word(page);
        match word.try_shared() {
            Tried::Latched(frame) => Ok(Some(header::lsn(&PageRead { pool: self, word, frame }))),
            Tried::Busy => Err(()),
            Tried::Absent => Ok(None),
        }
    }

    /// Ends a write that [`Self::begin_write`] began. A failed one makes the page dirty again, since `failed`.
    /// Returns whether the page has thereby become dirty and must be put on its list.
    pub fn end_write(&self, frame: u32, failed: Option<Lsn>) -> bool {
        let meta = self.meta(frame);
        match failed {
            None => {
                meta.state.fetch_and(!WRITING, Ordering::AcqRel);
                false
            }
            Some(recovery) => {
                meta.recovery.fetch_min(recovery.0, Ordering::AcqRel);
                let before = meta.state.swap(DIRTY, Ordering::AcqRel);
                before & DIRTY == 0
            }
        }
    }

    fn take_frame(&self) -> Result<u32, StorageError> {
        let mut fruitless = 0;
        loop {
            if let Some(frame) = self.free.lock().pop() {
                return Ok(frame);
            }
            // One thread looks for frames at a time: dozens that find the same dirty pages would write them in dozens of
            // small batches, each synced for itself, and burn the processor between.
            let _turn = self.cleaning.lock();
            if self.free_count() > 0 {
                continue;
            }
            let (freed, dirty) = self.sweep();
            if freed > 0 {
                continue;
            }
            let mut written = 0;
            for owner in dirty {
                written += owner.write_back(SWEEP_FRAMES * 4)?;
            }
            if written == 0 {
                fruitless += 1;
                if fruitless > FRUITLESS_MAX {
                    return Err(StorageError::PoolExhausted);
                }
                std::thread::yield_now();
            }
        }
    }

    /// Drops every clean page that nobody has latched (DBCC DROPCLEANBUFFERS).
    pub fn drop_clean(&self) {
        let files = self.files.read();
        for frame in (0..self.frames.len()).filter_map(|frame| u32::try_from(frame).ok()) {
            let place = self.meta(frame).place.load(Ordering::Relaxed);
            let file = usize::try_from(place >> 32).ok().and_then(|number| files[number.checked_sub(1)?].as_ref());
            if let Some(file) = file
                && self.evict(file, place as u32, frame)
            {
                self.put_back(&[frame]);
            }
        }
    }

    /// Frees up to [`SWEEP_FRAMES`] frames that nobody used since the hand last passed. Returns how many, and who owns
    /// dirty ones met on the way.
    fn sweep(&self) -> (usize, Vec<Arc<dyn WriteBack>>) {
        let count = self.frames.len();
        let files = self.files.read();
        let mut freed = Vec::with_capacity(SWEEP_FRAMES);
        let mut dirty: Vec<u32> = Vec::new();
        for _ in 0..2 * count {
            let frame = self.hand.fetch_add(1, Ordering::Relaxed) % u32::try_from(count).expect("28 bits");
            let meta = self.meta(frame);
            let place = meta.place.load(Ordering::Relaxed);
            if place == 0 {
                continue;
            }
            let number = u32::try_from((place >> 32) - 1).expect("32 bits");
            if meta.state.load(Ordering::Relaxed) != CLEAN {
                if !dirty.contains(&number) {
                    dirty.push(number);
                }
            } else if !meta.referenced.swap(false, Ordering::Relaxed)
                && let Some(file) = &files[number as usize]
                && self.evict(file, place as u32, frame)
            {
                freed.push(frame);
                if freed.len() == SWEEP_FRAMES {
                    break;
                }
            }
        }
        let owners = dirty.iter().filter_map(|number| files[*number as usize].as_ref()?.owner.upgrade()).collect();
        drop(files);
        EVICTIONS.add(freed.len() as u64);
        self.put_back(&freed);
        (freed.len(), owners)
    }

    fn evict(&self, file: &PoolFile, page: u32, frame: u32) -> bool {
        let word = file.table.word(page);
        let Tried::Latched(found) = word.try_exclusive(false) else {
            return false;
        };
        // Looked at again under the latch: the frame may have changed hands or become dirty since.
        let meta = self.meta(frame);
        let evict = found == frame && meta.state.load(Ordering::Acquire) == CLEAN;
        if evict {
            self.release(frame);
        }
        word.leave(if evict { None } else { Some(found) }, false);
        evict
    }
}

/// What [`Pool::begin_write`] brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BegunWrite {
    /// The page was copied and must be given to [`Pool::end_write`].
    Begun {
        /// Its frame.
        frame: u32,
        /// Where redo of the page had to begin.
        recovery: Lsn,
        /// The log must be durable to here first.
        group_end: Lsn,
        /// The last record known that starts the page afresh; 0 if none is.
        afresh: Lsn,
    },
    /// Nothing to write.
    Clean,
    /// Latched, or being written.
    Busy,
}

impl PoolFile {
    /// A page as who waits for it names it.
    pub fn resource(&self, page: u32) -> WaitResource {
        WaitResource::Page { database: self.database, file: u32::from(self.file), page: u64::from(page) }
    }

    /// A mark of the page's absence, `None` while it is in the pool: see [`PageWord::absence`].
    pub fn absence(&self, page: u32) -> Option<u64> {
        self.table.word(page).absence()
    }

    /// Whether `page` is in the pool at this moment.
    pub fn is_present(&self, page: u32) -> bool {
        self.table.word(page).is_present()
    }
}

/// A page being loaded: its latch is held and its frame is ours. Dropped, the page is absent again.
pub struct Loading<'p> {
    pool: &'p Pool,
    file: &'p PoolFile,
    page: u32,
    frame: u32,
    open: bool,
}

impl Loading<'_> {
    /// The frame's bytes.
    #[allow(unsafe_code)]
    pub fn bytes(&mut self) -> &mut PageBytes {
        // SAFETY: the frame came from the free list and belongs to no page yet: this guard is its one owner.
        unsafe { &mut *self.pool.arena.frame(self.frame) }
    }

    /// The page.
    pub fn page(&self) -> u32 {
        self.page
    }

    fn install_exclusive(&mut self, loaded: Loaded) {
        READS.increment();
        let lsn = header::lsn(self.bytes());
        let meta = self.pool.meta(self.frame);
        meta.place.store((u64::from(self.file.number) + 1) << 32 | u64::from(self.page), Ordering::Relaxed);
        meta.referenced.store(true, Ordering::Relaxed);
        meta.afresh.store(0, Ordering::Relaxed);
        meta.changes.store(0, Ordering::Relaxed);
        let state = match loaded {
            Loaded::Clean => {
                // Not what the frame's last page left: a mini-transaction that fails makes this page dirty as it is.
                meta.group_end.store(lsn.0, Ordering::Relaxed);
                CLEAN
            }
            Loaded::Redone { recovery, group_end, afresh } => {
                meta.afresh.store(afresh.0, Ordering::Relaxed);
                meta.recovery.store(recovery.0, Ordering::Relaxed);
                meta.group_end.store(group_end.0, Ordering::Relaxed);
                DIRTY
            }
        };
        meta.state.store(state, Ordering::Release);
    }

    /// The page is loaded: others may use it. With `keep_shared` the caller keeps a shared latch.
    pub fn install(mut self, loaded: Loaded, hint: AccessHint, keep_shared: bool) -> u32 {
        self.install_exclusive(loaded);
        self.pool.meta(self.frame).referenced.store(hint == AccessHint::Keep, Ordering::Relaxed);
        self.file.table.word(self.page).leave(Some(self.frame), keep_shared);
        self.open = false;
        self.frame
    }

    fn into_frame(mut self) -> u32 {
        self.open = false;
        self.frame
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if self.open {
            self.file.table.word(self.page).leave(None, false);
            self.pool.put_back(&[self.frame]);
        }
    }
}

/// The right to read a page; dropping it ends the right.
pub struct PageRead<'p> {
    pool: &'p Pool,
    word: &'p PageWord,
    frame: u32,
}

impl Deref for PageRead<'_> {
    type Target = PageBytes;
    #[allow(unsafe_code)]
    fn deref(&self) -> &PageBytes {
        // SAFETY: the shared latch is held until `drop`, so the frame stays and nobody writes it.
        unsafe { &*self.pool.arena.frame(self.frame) }
    }
}

impl Drop for PageRead<'_> {
    fn drop(&mut self) {
        self.word.leave_shared();
    }
}

/// The right to change a page; dropping it ends the right. Only mini-transactions have one.
pub struct PageWrite<'p> {
    pool: &'p Pool,
    file: &'p PoolFile,
    page: u32,
    frame: u32,
    /// Whether the frame is the page's; a new page's is not until something is written.
    present: bool,
}

impl PageWrite<'_> {
    /// Notes that the page is about to differ from the device, since `recovery`. Returns whether it was clean.
    pub fn mark_dirty(&mut self, recovery: Lsn) -> bool {
        let meta = self.pool.meta(self.frame);
        if !self.present {
            meta.place.store((u64::from(self.file.number) + 1) << 32 | u64::from(self.page), Ordering::Relaxed);
            meta.group_end.store(0, Ordering::Relaxed);
            meta.afresh.store(0, Ordering::Relaxed);
            meta.state.store(CLEAN, Ordering::Relaxed);
            self.present = true;
        }
        meta.referenced.store(true, Ordering::Relaxed);
        let was_clean = meta.state.load(Ordering::Acquire) & DIRTY == 0;
        if was_clean {
            meta.recovery.store(recovery.0, Ordering::Relaxed);
            meta.changes.store(0, Ordering::Relaxed);
        }
        // Release: who sees the page dirty sees since when.
        meta.state.fetch_or(DIRTY, Ordering::AcqRel);
        was_clean
    }

    /// Notes how far the log must be durable before the page may be written, and the record that started it afresh.
    pub fn set_group_end(&mut self, end: Lsn, afresh: Option<Lsn>) {
        assert!(self.present, "only a dirty page has a group");
        let meta = self.pool.meta(self.frame);
        meta.group_end.store(end.0, Ordering::Relaxed);
        match afresh {
            Some(lsn) => {
                meta.afresh.store(lsn.0, Ordering::Relaxed);
                meta.changes.store(0, Ordering::Relaxed);
            }
            // The exclusive latch is held: nobody else counts.
            None => meta.changes.store(meta.changes.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed),
        }
    }

    /// How many groups, over how many bytes of a log that ends at `end`, redo of the page would go back: to where the page
    /// became dirty or was started afresh.
    pub fn chain(&self, end: Lsn) -> (u32, u64) {
        let meta = self.pool.meta(self.frame);
        let start = meta.recovery.load(Ordering::Relaxed).max(meta.afresh.load(Ordering::Relaxed));
        (meta.changes.load(Ordering::Relaxed), end.0.saturating_sub(start))
    }

    /// Whether the page had content in the pool; if not, its bytes are zero and it vanishes unless marked dirty.
    pub fn is_present(&self) -> bool {
        self.present
    }
}

impl Deref for PageWrite<'_> {
    type Target = PageBytes;
    #[allow(unsafe_code)]
    fn deref(&self) -> &PageBytes {
        // SAFETY: the exclusive latch is held until `drop`; the bytes change only through `&mut self`.
        unsafe { &*self.pool.arena.frame(self.frame) }
    }
}

impl DerefMut for PageWrite<'_> {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut PageBytes {
        // SAFETY: the exclusive latch is held until `drop`, and `&mut self` makes this the only reference.
        unsafe { &mut *self.pool.arena.frame(self.frame) }
    }
}

impl Drop for PageWrite<'_> {
    fn drop(&mut self) {
        let frame = self.present.then_some(self.frame);
        self.file.table.word(self.page).leave(frame, false);
        if !self.present {
            self.pool.put_back(&[self.frame]);
        }
    }
}

#[cfg(test)]
mod tests;
