//! The rows of one leaf that a view sees, in a buffer of their own.
//!
//! The leaf is copied whole under its latch; rows that the view sees as they stand are left where they lie in the copy,
//! and only keys that lack the page's prefix and rows of older versions are spelled into a side buffer.
//!
//! Invariants: 1. every span lies in the copy or in the side buffer (`Span`, made only here). 2. Rows are in the order of
//! the scan. No latches. Failure: an old version that is not where its pointer says is `Damage`.

use crate::error::StorageError;
use crate::ids::LargeRef;
use crate::page::{Entry, PAGE_BYTES, PageBytes, Slotted, header};
use crate::versions::commit_table::Visibility;
use crate::versions::version::Version;
use std::ops::Range;

/// A place in the page copy or, from [`PAGE_BYTES`] on, in the side buffer.
#[derive(Debug, Clone, Copy)]
struct Span {
    at: u32,
    bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct RowAt {
    key: Span,
    value: Span,
    large_from: u32,
    large_count: u32,
}

/// The visible rows of one leaf, copied out of the page.
#[derive(Default, Clone)]
pub struct RowBlock {
    page: Option<Box<PageBytes>>,
    side: Vec<u8>,
    rows: Vec<RowAt>,
    refs: Vec<LargeRef>,
}

fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a leaf's rows and their old versions stay far below 4 GiB")
}

impl RowBlock {
    /// Rows in it.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Key of row `index`, whole.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        self.span(self.rows[index].key)
    }

    /// Inline bytes of row `index`.
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        self.span(self.rows[index].value)
    }

    /// Large parts of row `index`, by position.
    pub fn large(&self, index: usize) -> &[LargeRef] {
        let row = self.rows[index];
        &self.refs[row.large_from as usize..(row.large_from + row.large_count) as usize]
    }

    #[inline]
    fn span(&self, span: Span) -> &[u8] {
        let (at, bytes) = (span.at as usize, span.bytes as usize);
        if at < PAGE_BYTES {
            &self.page.as_ref().expect("spans below the page's size are made from it")[at..at + bytes]
        } else {
            &self.side[at - PAGE_BYTES..at - PAGE_BYTES + bytes]
        }
    }

    /// A block of one row.
    pub(crate) fn of_one(key: &[u8], value: &[u8], large: &[u8]) -> Self {
        let mut block = Self::default();
        let (key, value) = (block.spell(&[key]), block.spell(&[value]));
        block.push_row(key, value, large);
        block
    }

    /// Keeps the rows whose number `keep` accepts; they are numbered anew.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut row = 0;
        self.rows.retain(|_| {
            row += 1;
            keep(row - 1)
        });
    }

    /// Takes a copy of `page`, without rows yet.
    pub(crate) fn copy_page(&mut self, page: &PageBytes) {
        match &mut self.page {
            Some(copy) => copy.copy_from_slice(page),
            None => self.page = Some(Box::new(*page)),
        }
        self.clear_rows();
    }

    pub(crate) fn clear_rows(&mut self) {
        self.side.clear();
        self.rows.clear();
        self.refs.clear();
    }

    /// The page copied last.
    pub(crate) fn page(&self) -> &PageBytes {
        self.page.as_ref().expect("a page was copied")
    }

    /// Lists the rows of `slots` that `view` sees. `older` finds the version behind a pointer.
    pub(crate) fn list(
        &mut self,
        slots: Range<usize>,
        backward: bool,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let page = self.page.take().expect("a page was copied");
        let outcome = self.list_from(&page, slots, backward, view, older);
        self.page = Some(page);
        outcome
    }

    fn list_from(
        &mut self,
        page: &PageBytes,
        slots: Range<usize>,
        backward: bool,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let leaf = Slotted(page);
        let creator = header::creator_number(page);
        let all_seen = header::tagged_count(page) == 0 && header::ghost_count(page) == 0 && view.sees(creator);
        let mut list_slot = |slot: usize| {
            let entry = leaf.entry(slot);
            if all_seen {
                self.push_entry(leaf, slot, &entry);
                return Ok(());
            }
            let version = Version::of(&entry, creator);
            if view.sees(version.writer) {
                if !version.ghost {
                    self.push_entry(leaf, slot, &entry);
                }
                return Ok(());
            }
            self.push_older(leaf, &entry, version.pointer, view, older)
        };
        if backward { slots.rev().try_for_each(&mut list_slot) } else { slots.clone().try_for_each(&mut list_slot) }
    }

    fn push_entry(&mut self, leaf: Slotted<'_>, slot: usize, entry: &Entry<'_>) {
        let (offset, bytes) = leaf.place(slot);
        let end = offset + bytes;
        let value = Span { at: narrow(end - entry.payload.len()), bytes: narrow(entry.payload.len()) };
        let key = if leaf.prefix().is_empty() {
            Span { at: narrow(end - entry.payload.len() - entry.suffix.len()), bytes: narrow(entry.suffix.len()) }
        } else {
            self.spell(&[leaf.prefix(), entry.suffix])
        };
        self.push_row(key, value, entry.large_bytes);
    }

    fn spell(&mut self, parts: &[&[u8]]) -> Span {
        let at = self.side.len();
        for part in parts {
            self.side.extend_from_slice(part);
        }
        Span { at: narrow(PAGE_BYTES + at), bytes: narrow(self.side.len() - at) }
    }

    fn push_row(&mut self, key: Span, value: Span, large: &[u8]) {
        let large_from = narrow(self.refs.len());
        self.refs.extend(large.chunks_exact(16).map(|part| LargeRef(part.try_into().expect("chunks of sixteen"))));
        self.rows.push(RowAt { key, value, large_from, large_count: narrow(self.refs.len()) - large_from });
    }

    /// Follows the chain behind an entry that `view` does not see, and lists the version it does see, if any.
    fn push_older(
        &mut self,
        leaf: Slotted<'_>,
        entry: &Entry<'_>,
        pointer: u64,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut record = Vec::new();
        let Some(version) = crate::versions::version::visible_behind(pointer, entry, &mut record, view, older)? else { return Ok(()) };
        let key = self.spell(&[leaf.prefix(), entry.suffix]);
        let value = self.spell(&[version.payload]);
        self.push_row(key, value, version.large);
        Ok(())
    }
}
