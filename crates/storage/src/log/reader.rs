//! Reading the log back: one record by its LSN, or all from an LSN on.
//!
//! One record proves itself by its check (`format`), so `read` needs no more of its block than the record. The
//! sequential reader walks block by block from the start of a VLF and verifies each whole.

use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::format::{BLOCK_HEADER_BYTES, BlockHeader, RECORD_HEADER_BYTES, VLF_HEADER_BYTES, padded, record_length, record_verify};
use crate::log::ring::Active;
use crate::log::{Log, ScanStart};
use std::collections::VecDeque;
use std::sync::Arc;
use thawdb_device::file::SECTOR_BYTES;
use thawdb_device::{AlignedBuf, ReadRequest};
use thawdb_observe::sync::{LockClass, Mutex};

static LOG_WINDOWS: LockClass = LockClass::new("LOG_WINDOWS", 5);

/// Bytes read at a time by the sequential reader: enough for the disk's sequential speed.
const WINDOW_BYTES: usize = 1 << 20;
/// Bytes of a stretch that is kept: large beside a record, small beside what a disk reads in a millisecond.
const CACHE_WINDOW_BYTES: u64 = 256 << 10;
/// Stretches kept: 32 MiB, a small share of any pool that has much to redo.
const CACHE_WINDOWS: usize = 128;
/// Bytes read at first for one record.
const PROBE_BYTES: usize = 4 * SECTOR_BYTES;

impl Log {
    /// Reads the record at `at` into `out` and returns the LSN after it. What is not durable yet is flushed first.
    pub fn read(&self, at: Lsn, out: &mut Vec<u8>) -> Result<Lsn, StorageError> {
        if at >= self.durable() {
            self.flush(self.end())?;
        }
        let vlf = self.state.lock().ring.locate(at).ok_or_else(|| damage(at, 0, "the record's part of the log is no longer held"))?;
        let offset = vlf.file_offset(at);
        let mut sectors = AlignedBuf::zeroed(PROBE_BYTES);
        let base = offset / SECTOR_BYTES as u64 * SECTOR_BYTES as u64;
        let within = usize::try_from(offset - base).expect("below a sector");
        let vlf_end = vlf.shape.offset + vlf.shape.size_bytes;
        let probe = usize::try_from((vlf_end - base).min(PROBE_BYTES as u64)).expect("small");
        self.file.read(&mut [ReadRequest { offset: base, buffer: &mut sectors[..probe] }])?;
        let torn = || damage(at, offset, "the record's checksum does not match");
        let header: [u8; RECORD_HEADER_BYTES] =
            sectors[within..probe].get(..RECORD_HEADER_BYTES).ok_or_else(torn)?.try_into().expect("eight bytes");
        let length = record_length(&header);
        let whole = within + RECORD_HEADER_BYTES + length;
        if base + whole as u64 > vlf_end {
            return Err(torn());
        }
        if whole > probe {
            sectors = AlignedBuf::zeroed(whole.next_multiple_of(SECTOR_BYTES));
            self.file.read(&mut [ReadRequest { offset: base, buffer: &mut sectors }])?;
        }
        let content = &sectors[within + RECORD_HEADER_BYTES..whole];
        if !record_verify(&header, at, content) {
            return Err(torn());
        }
        out.clear();
        out.extend_from_slice(content);
        Ok(Lsn(at.0 + (RECORD_HEADER_BYTES + length) as u64))
    }

    /// The VLF that the log from `from` on begins in.
    fn holding(&self, from: Lsn) -> Result<Active, StorageError> {
        let state = self.state.lock();
        let held = state.ring.locate(state.ring.settled(from));
        held.ok_or_else(|| damage(from, 0, "that part of the log is no longer held"))
    }

    /// A reader of every durable record from `from` (a record's LSN, or any point before it that is held) on.
    pub fn reader(self: &Arc<Self>, from: Lsn) -> Result<LogReader, StorageError> {
        self.reader_at(ScanStart { at: Lsn(0), incarnation: 0 }, from)
    }

    /// As [`Self::reader`], reading no block before `start` if that lies in the VLF of `from`.
    pub fn reader_at(self: &Arc<Self>, start: ScanStart, from: Lsn) -> Result<LogReader, StorageError> {
        // The end of a VLF that is full to the last byte lies in none, until the next one is put to use.
        if self.durable() <= from {
            return Ok(LogReader { walk: None, from, upto: from, record_at: 0 });
        }
        let vlf = self.holding(from)?;
        let mut walk = BlockWalk::new(self.clone(), vlf);
        if start.at >= vlf.start {
            walk.begin_at(start);
        }
        Ok(LogReader { walk: Some(walk), from, upto: self.durable(), record_at: 0 })
    }
}

impl Log {
    /// Gives every block from `from` (the first that reaches beyond it) up to `upto`, the end of one, to `sink`, whole and
    /// verified. Returns the bytes of log given. Both must be durable and held.
    pub fn copy_blocks(
        self: &Arc<Self>,
        from: Lsn,
        upto: Lsn,
        sink: &mut dyn FnMut(Lsn, &[u8]) -> Result<(), StorageError>,
    ) -> Result<u64, StorageError> {
        let mut bytes = 0;
        if from >= upto {
            return Ok(bytes);
        }
        let vlf = self.holding(from)?;
        let mut walk = BlockWalk::new(self.clone(), vlf);
        while walk.position() < upto && walk.next_block(upto)? {
            if walk.position() > from {
                bytes += walk.block().len() as u64;
                sink(walk.block_lsn, walk.block())?;
            }
        }
        Ok(bytes)
    }
}

pub(super) fn damage(at: Lsn, offset: u64, detail: &str) -> StorageError {
    StorageError::Damage { page: PageId::NONE, offset, detail: format!("log, LSN {:#x}: {detail}", at.0) }
}

/// Records in order.
pub struct LogReader {
    /// `None` for a log nothing was ever written to.
    walk: Option<BlockWalk>,
    from: Lsn,
    upto: Lsn,
    record_at: usize,
}

impl LogReader {
    /// The next record; `None` at what was durable when the reader was made.
    pub fn next_record(&mut self) -> Result<Option<(Lsn, &[u8])>, StorageError> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let (lsn, content) = loop {
            if self.record_at == 0 || self.record_at >= walk.block().len() {
                if walk.position() >= self.upto || !walk.next_block(self.upto)? {
                    return Ok(None);
                }
                self.record_at = BLOCK_HEADER_BYTES;
            }
            let lsn = Lsn(walk.block_lsn.0 + self.record_at as u64);
            let rest = &walk.block()[self.record_at..];
            let length = record_length(rest.get(..RECORD_HEADER_BYTES).ok_or_else(|| damage(lsn, 0, "record header is cut"))?);
            let end = self.record_at + RECORD_HEADER_BYTES + length;
            if end > walk.block().len() {
                return Err(damage(lsn, 0, "record is longer than its block"));
            }
            let content = self.record_at + RECORD_HEADER_BYTES..end;
            self.record_at = end;
            if lsn >= self.from {
                break (lsn, content);
            }
        };
        Ok(Some((lsn, &walk.block()[content])))
    }
}

/// Stretches of the log that were read for records of pages: a chain of records goes from one place to places near by.
pub struct WindowCache {
    windows: Mutex<VecDeque<(Lsn, Arc<AlignedBuf>)>>,
}

impl WindowCache {
    /// Nothing is read yet.
    pub fn new() -> Self {
        Self { windows: Mutex::new(&LOG_WINDOWS, VecDeque::new()) }
    }

    /// Stretches it has.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.windows.lock().len()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.windows.lock().clear();
    }

    fn get(&self, at: Lsn) -> Option<Arc<AlignedBuf>> {
        let windows = self.windows.lock();
        windows.iter().rev().find(|(start, _)| *start == at).map(|(_, window)| window.clone())
    }

    fn put(&self, at: Lsn, window: Arc<AlignedBuf>) {
        let mut windows = self.windows.lock();
        if windows.len() == CACHE_WINDOWS {
            windows.pop_front();
        }
        windows.push_back((at, window));
    }
}

impl Default for WindowCache {
    fn default() -> Self {
        Self::new()
    }
}

impl Log {
    /// Reads the record at `at`, as [`Self::read`] does, from a stretch in `cache` if it lies in one whole. One that is further
    /// from `met`, the record of the chain met before, than a stretch is long is read alone: a page that is changed now and
    /// then has its records all over the log, and stretches read for them would cost more than what they lead to.
    pub fn read_through(&self, cache: &WindowCache, at: Lsn, met: Lsn, out: &mut Vec<u8>) -> Result<(), StorageError> {
        let vlf = self.state.lock().ring.locate(at).ok_or_else(|| damage(at, 0, "the record's part of the log is no longer held"))?;
        let number = (at.0 - vlf.start.0) / CACHE_WINDOW_BYTES;
        let start = Lsn(vlf.start.0 + number * CACHE_WINDOW_BYTES);
        let window = match cache.get(start) {
            Some(window) => window,
            None if met.0.abs_diff(at.0) > CACHE_WINDOW_BYTES => return self.read(at, out).map(drop),
            None => {
                let bytes = CACHE_WINDOW_BYTES.min(vlf.end().0 - start.0);
                let mut window = AlignedBuf::zeroed(usize::try_from(bytes).expect("a window is small"));
                self.file.read(&mut [ReadRequest { offset: vlf.file_offset(start), buffer: &mut window }])?;
                let window = Arc::new(window);
                cache.put(start, window.clone());
                window
            }
        };
        let from = usize::try_from(at.0 - start.0).expect("within the window");
        if let Some((header, rest)) = window[from..].split_first_chunk::<RECORD_HEADER_BYTES>()
            && let Some(content) = rest.get(..record_length(header))
            && record_verify(header, at, content)
        {
            out.clear();
            out.extend_from_slice(content);
            return Ok(());
        }
        // It goes on in the next window, or was written after this one was read, or is damaged.
        self.read(at, out).map(drop)
    }
}

impl BlockWalk {
    /// Begins at a block, with what is known of the blocks from there on.
    pub(super) fn begin_at(&mut self, start: ScanStart) {
        if start.at > self.next {
            self.next = start.at;
        }
        self.incarnation = start.incarnation;
    }

    /// Goes to the next block below `upto`, in this VLF or the next; false if there is none.
    fn next_block(&mut self, upto: Lsn) -> Result<bool, StorageError> {
        if self.advance()? {
            return Ok(true);
        }
        let at = self.position();
        let next = self.log.state.lock().ring.locate(self.vlf.end());
        match next {
            Some(vlf) if vlf.body() >= upto => Ok(false),
            Some(vlf) => {
                self.enter(vlf);
                if self.advance()? { Ok(true) } else { Err(damage(at, 0, "a durable block does not match its checksum")) }
            }
            None => Err(damage(at, 0, "a durable block does not match its checksum")),
        }
    }
}

/// Walks the valid blocks of a VLF.
pub(super) struct BlockWalk {
    pub(super) log: Arc<Log>,
    pub(super) vlf: Active,
    /// Incarnation of the last block: none below it may follow.
    pub(super) incarnation: u32,
    pub(super) block_lsn: Lsn,
    next: Lsn,
    window: AlignedBuf,
    window_at: Lsn,
    window_bytes: usize,
    block_used: usize,
}

impl BlockWalk {
    pub(super) fn new(log: Arc<Log>, vlf: Active) -> Self {
        Self {
            log,
            vlf,
            incarnation: 0,
            block_lsn: vlf.body(),
            next: vlf.body(),
            window: AlignedBuf::zeroed(WINDOW_BYTES),
            window_at: vlf.body(),
            window_bytes: 0,
            block_used: 0,
        }
    }

    /// Goes on at the start of another VLF.
    pub(super) fn enter(&mut self, vlf: Active) {
        self.vlf = vlf;
        self.next = vlf.body();
        self.window_bytes = 0;
        self.block_used = 0;
    }

    /// Goes to a place of the present VLF.
    pub(super) fn seek(&mut self, at: Lsn) {
        self.next = at;
    }

    /// Where the next block would begin.
    pub(super) fn position(&self) -> Lsn {
        self.next
    }

    /// The present block's used bytes.
    pub(super) fn block(&self) -> &[u8] {
        let start = usize::try_from(self.block_lsn.0.saturating_sub(self.window_at.0)).expect("within the window");
        &self.window[start..start + self.block_used]
    }

    /// Goes to the next block; false if the bytes there are no valid block.
    pub(super) fn advance(&mut self) -> Result<bool, StorageError> {
        let at = self.next;
        let Some(header) = self.header_at(at)? else { return Ok(false) };
        let end = at.0 + padded(header.used_bytes as usize);
        if header.incarnation < self.incarnation || end > self.vlf.end().0 {
            return Ok(false);
        }
        self.fill(at, header.used_bytes as usize)?;
        self.block_lsn = at;
        self.block_used = header.used_bytes as usize;
        if !BlockHeader::verify(self.block()) {
            self.block_used = 0;
            return Ok(false);
        }
        self.incarnation = header.incarnation;
        self.next = Lsn(end);
        Ok(true)
    }

    /// The header of a block that claims to begin at `at`.
    pub(super) fn header_at(&mut self, at: Lsn) -> Result<Option<BlockHeader>, StorageError> {
        if at.0 + SECTOR_BYTES as u64 > self.vlf.end().0 {
            return Ok(None);
        }
        self.fill(at, SECTOR_BYTES)?;
        let start = usize::try_from(at.0 - self.window_at.0).expect("within the window");
        Ok(BlockHeader::decode(self.log.stamp, at, &self.window[start..start + SECTOR_BYTES]))
    }

    /// Makes sure that `bytes` from `at` are in the window.
    fn fill(&mut self, at: Lsn, bytes: usize) -> Result<(), StorageError> {
        let inside = at >= self.window_at && at.0 + bytes as u64 <= self.window_at.0 + self.window_bytes as u64;
        if inside {
            return Ok(());
        }
        let needed = bytes.next_multiple_of(SECTOR_BYTES);
        if needed > self.window.len() {
            self.window = AlignedBuf::zeroed(needed);
        }
        let left = usize::try_from(self.vlf.end().0 - at.0).unwrap_or(usize::MAX);
        let length = self.window.len().min(left);
        assert!(at.0 >= self.vlf.start.0 + VLF_HEADER_BYTES, "blocks lie in the body");
        let offset = self.vlf.file_offset(at);
        self.log.file.read(&mut [ReadRequest { offset, buffer: &mut self.window[..length] }])?;
        self.window_at = at;
        self.window_bytes = length;
        Ok(())
    }
}
