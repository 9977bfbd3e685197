//! The memory of the pool: the arena of frames, and the tables that lead from a page to its word.
//!
//! ```text
//! Arena:     frame 0 | frame 1 | ...            one reservation; a frame costs memory once it is touched
//! PageTable: segment pointer x 131,072 -> segment of 32,768 words, made when a page of it is first asked for
//! ```
//!
//! 1. A frame's bytes are reached only through a guard of its page's latch, or by its one owner while it belongs to no
//!    page ([`Arena::frame`] says so; `pool/mod.rs` keeps it).
//! 2. A segment, once made, stays where it is until its table is dropped ([`PageTable::word`]).
//!
//! Unsafe code: all of it is here and in the guards of `pool/mod.rs`; the tests of both exercise it under threads.

use super::word::PageWord;
use crate::page::{PAGE_BYTES, PageBytes};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Pages whose words lie together: 256 MiB of file, 256 KiB of words.
const SEGMENT_PAGES: usize = 1 << 15;
/// Segments of a file of 2^32 pages; their pointers are 1 MiB, resident only where used.
const SEGMENTS: usize = 1 << 17;

/// A zeroed block of memory that is reserved at once and backed when touched.
struct Block {
    start: *mut u8,
    /// What the allocator gave, and how it was asked: `start` lies within, at the alignment wanted.
    base: *mut u8,
    base_layout: Layout,
}

/// The alignment every allocation has. Asked for more, the allocator zeroes by hand and so touches all of a block: 0.6 s
/// and all its memory for a pool of 2 GB, measured at a start.
const PLAIN_ALIGN: usize = 16;

// SAFETY: a block is plain memory; who may touch which part of it when is the invariant of its owners below.
#[allow(unsafe_code)]
unsafe impl Send for Block {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Block {}

impl Block {
    #[allow(unsafe_code)]
    fn zeroed(layout: Layout) -> Self {
        assert!(layout.size() > 0, "a block has bytes");
        let base_layout = Self::base_layout(layout);
        // SAFETY: the size is not zero.
        let base = unsafe { alloc_zeroed(base_layout) };
        if base.is_null() {
            handle_alloc_error(base_layout);
        }
        let offset = base.align_offset(layout.align());
        assert!(offset + layout.size() <= base_layout.size(), "the block was made larger by its alignment");
        // SAFETY: within the allocation, by the assertion.
        let start = unsafe { base.add(offset) };
        assert!(start.addr().is_multiple_of(layout.align()), "the block is aligned");
        Self { start, base, base_layout }
    }

    /// What the allocator is asked for where `layout` is wanted.
    fn base_layout(layout: Layout) -> Layout {
        let room = if layout.align() > PLAIN_ALIGN { layout.align() } else { 0 };
        Layout::from_size_align(layout.size() + room, PLAIN_ALIGN).expect("a block fits in the address space")
    }
}

impl Drop for Block {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `zeroed`, freed once.
        unsafe { dealloc(self.base, self.base_layout) }
    }
}

/// The frames.
pub struct Arena {
    block: Block,
    frames: usize,
}

impl Arena {
    /// Reserves `frames` frames.
    #[allow(unsafe_code)]
    pub fn new(frames: usize) -> Self {
        let layout = Layout::from_size_align(frames * PAGE_BYTES, 4096).expect("the pool's size fits in the address space");
        let block = Block::zeroed(layout);
        // Frames are taken from one end, so that all but one of the huge pages are used whole.
        // SAFETY: the block's own memory, which nobody reaches yet.
        unsafe { thawdb_device::buffer::prefer_huge_pages(block.start, layout.size()) };
        Self { block, frames }
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.frames
    }

    /// The bytes of `frame`. Reading them needs a latch of the page in it, or ownership of a frame without page;
    /// writing needs the exclusive latch or that ownership.
    #[allow(unsafe_code)]
    pub fn frame(&self, frame: u32) -> *mut PageBytes {
        assert!((frame as usize) < self.frames, "frame {frame} of {}", self.frames);
        // SAFETY: within the block, by the assertion.
        unsafe { self.block.start.add(frame as usize * PAGE_BYTES).cast() }
    }
}

impl Arena {
    /// Gives the memory of `count` frames from `first` on back to the system; they read as zero when touched again. They
    /// belong to the caller and hold no page.
    #[allow(unsafe_code)]
    pub(super) fn release(&self, first: u32, count: usize) {
        if count == 0 {
            return;
        }
        let bytes = self.frame(first);
        assert!(first as usize + count <= self.frames, "frames {first} and {count} more of {}", self.frames);
        // SAFETY: whole frames within the block, by the assertions, of which the caller is the one owner; a frame is whole
        // pages of the system, at their alignment.
        unsafe { thawdb_device::buffer::give_back(bytes.cast(), count * PAGE_BYTES) };
    }
}

/// The words of one file's pages.
pub struct PageTable {
    top: Block,
}

impl PageTable {
    /// A table in which no page is in the pool.
    pub fn new() -> Self {
        Self { top: Block::zeroed(Layout::array::<AtomicPtr<PageWord>>(SEGMENTS).expect("1 MiB")) }
    }

    #[allow(unsafe_code)]
    fn slot(&self, segment: usize) -> &AtomicPtr<PageWord> {
        assert!(segment < SEGMENTS, "a page number has 32 bits");
        // SAFETY: within the block; zero bytes are a null `AtomicPtr`; only shared references are ever made.
        unsafe { &*self.top.start.cast::<AtomicPtr<PageWord>>().add(segment) }
    }

    fn segment_layout() -> Layout {
        Layout::array::<PageWord>(SEGMENT_PAGES).expect("256 KiB")
    }

    /// The word of `page`.
    #[inline]
    #[allow(unsafe_code)]
    pub fn word(&self, page: u32) -> &PageWord {
        let slot = self.slot(page as usize / SEGMENT_PAGES);
        // Acquire: the zeroed words are seen before their address is.
        let mut words = slot.load(Ordering::Acquire);
        if words.is_null() {
            words = Self::make(slot);
        }
        // SAFETY: a segment has SEGMENT_PAGES words, zero bytes are an empty word, and it lives as long as the table.
        unsafe { &*words.add(page as usize % SEGMENT_PAGES) }
    }

    #[cold]
    #[allow(unsafe_code)]
    fn make(slot: &AtomicPtr<PageWord>) -> *mut PageWord {
        let block = Block::zeroed(Self::segment_layout());
        match slot.compare_exchange(std::ptr::null_mut(), block.start.cast(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let start = block.start.cast();
                // The table owns it now; `drop` below makes the block again.
                std::mem::forget(block);
                start
            }
            Err(others) => others,
        }
    }

    /// Pages that were ever asked for, by segment: what closing a database has to look through.
    pub fn touched(&self) -> impl Iterator<Item = (u32, &PageWord)> {
        let made = (0..SEGMENTS).filter(|segment| !self.slot(*segment).load(Ordering::Acquire).is_null());
        made.flat_map(|segment| (0..SEGMENT_PAGES).map(move |at| u32::try_from(segment * SEGMENT_PAGES + at).expect("32 bits")))
            .map(|page| (page, self.word(page)))
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        for segment in 0..SEGMENTS {
            let start = self.slot(segment).load(Ordering::Acquire);
            if !start.is_null() {
                // Words are aligned as everything is, so a segment starts where its allocation does.
                const { assert!(align_of::<PageWord>() <= PLAIN_ALIGN) };
                let (start, base_layout) = (start.cast(), Block::base_layout(Self::segment_layout()));
                drop(Block { start, base: start, base_layout });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_distant_pages_are_distinct_and_stay() {
        let table = PageTable::new();
        let first = std::ptr::from_ref(table.word(0));
        let last = std::ptr::from_ref(table.word(u32::MAX));
        assert_ne!(first, last);
        assert_eq!(first, std::ptr::from_ref(table.word(0)));
        assert_eq!(table.touched().count(), 2 * SEGMENT_PAGES);
    }

    #[test]
    #[allow(unsafe_code)]
    fn frames_are_aligned_zeroed_and_apart() {
        let arena = Arena::new(3);
        for frame in 0..3 {
            assert!(arena.frame(frame).addr().is_multiple_of(4096));
            // SAFETY: this thread owns the arena; no other reference to a frame exists.
            let bytes = unsafe { &mut *arena.frame(frame) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(u8::try_from(frame).expect("small") + 1);
        }
    }
}
