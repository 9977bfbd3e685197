//! A page in the buffer it was read ahead into, which others look at too.
//!
//! Invariants: 1. the page lies in the buffer ([`AheadPage::new`]). 2. As long as there is one, nobody writes to the buffer: who
//! wants to needs the buffer for himself alone (`read_ahead::group`). No lock, no failure. What it does not do: say that the
//! bytes are sound, or the page's newest; who makes one has seen to that (`read_ahead`).

use crate::page::{PAGE_BYTES, PageBytes};
use std::ops::Deref;
use std::sync::Arc;
use thawdb_device::AlignedBuf;

/// A page that was read ahead. It keeps the whole buffer alive, some hundred pages: nothing to hold for long.
pub(crate) struct AheadPage {
    buffer: Arc<AlignedBuf>,
    at: usize,
}

impl AheadPage {
    /// The page at `at` of a buffer.
    pub(crate) fn new(buffer: Arc<AlignedBuf>, at: usize) -> Self {
        assert!(at + PAGE_BYTES <= buffer.len(), "the buffer holds the page");
        Self { buffer, at }
    }
}

impl Deref for AheadPage {
    type Target = PageBytes;
    #[inline]
    fn deref(&self) -> &PageBytes {
        self.buffer[self.at..].first_chunk().expect("the buffer holds the page")
    }
}
