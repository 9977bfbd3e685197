//! The rows of one leaf that a view sees, in a buffer of their own.
//!
//! ```text
//! plain:   every entry of the leaf is seen as it stands and carries no tag, ghost mark or large part
//!          the copy, and for each row where its key suffix, its value and its end lie in it: [`PlainRows`]
//! else:    the copy and a side buffer, into which keys that lack the prefix, rows of older versions and packed rows are spelled
//! ```
//! The leaf is copied whole under its latch, or looked at in the buffer it was read ahead into, which a block keeps alive until
//! it is used again or let go of ([`RowBlock::let_go`]). A plain block is what decoders of columns read without looking at rows
//! one by one; whole keys are there only once they are asked for ([`RowBlock::spell_keys`]).
//!
//! Invariants: 1. every span lies in the copy or in the side buffer (`Span`, made only here), and a plain row's parts lie
//! in the copy in order (`list_plain`). 2. Rows are in the order of the scan. No latches. Failure: an old version that is
//! not where its pointer says is `Damage`.

use crate::ahead_page::AheadPage;
use crate::error::StorageError;
use crate::ids::LargeRef;
use crate::page::entry::FIXED_BYTES;
use crate::page::slotted::SLOT_BYTES;
use crate::page::{Entry, PAGE_BYTES, PageBytes, Slotted, header};
use crate::versions::commit_table::Visibility;
use crate::versions::version::{SAME, Version};
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

/// The rows of a plain block: where they lie in the page.
#[derive(Debug, Clone, Copy)]
pub struct PlainRows<'a> {
    /// The page.
    pub page: &'a PageBytes,
    /// What every key begins with.
    pub prefix: &'a [u8],
    /// Where each row's key goes on after the prefix; it ends where the value begins.
    pub keys_at: &'a [u16],
    /// Where each row's value begins.
    pub values_at: &'a [u16],
    /// Where it ends.
    pub values_end: &'a [u16],
}

/// The leaf that a block is of: a copy, or where it was read ahead.
#[derive(Default)]
struct Held {
    ahead: Option<AheadPage>,
    /// Memory for a copy, which is used again; of the leaf only if `ahead` is none.
    copy: Option<Box<PageBytes>>,
}

impl Clone for Held {
    /// A copy, whatever it was: who clones a block keeps it, and a buffer is not to be kept alive for the sake of one leaf.
    fn clone(&self) -> Self {
        Self { ahead: None, copy: self.page().map(|page| Box::new(*page)) }
    }
}

impl Held {
    #[inline]
    fn page(&self) -> Option<&PageBytes> {
        match &self.ahead {
            Some(page) => Some(page),
            None => self.copy.as_deref(),
        }
    }
}

/// The visible rows of one leaf, in memory of their own.
#[derive(Default, Clone)]
pub struct RowBlock {
    held: Held,
    side: Vec<u8>,
    /// Whether the rows are those of the three lists below rather than of `rows`.
    plain: bool,
    keys_at: Vec<u16>,
    values_at: Vec<u16>,
    values_end: Vec<u16>,
    rows: Vec<RowAt>,
    refs: Vec<LargeRef>,
}

fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a leaf's rows and their old versions stay far below 4 GiB")
}

impl RowBlock {
    /// Rows in it.
    pub fn len(&self) -> usize {
        if self.plain { self.values_at.len() } else { self.rows.len() }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Key of row `index`, whole: of a block that came without whole keys only after [`Self::spell_keys`].
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        if self.plain {
            assert!(header::prefix_bytes(self.page()) == 0, "whole keys are spelled before they are asked for");
            return &self.page()[usize::from(self.keys_at[index])..usize::from(self.values_at[index])];
        }
        self.span(self.rows[index].key)
    }

    /// Key of row `index`, whole whether keys were spelled or not.
    pub fn whole_key(&self, index: usize) -> Vec<u8> {
        match self.plain() {
            Some(plain) => [plain.prefix, &plain.page[usize::from(self.keys_at[index])..usize::from(self.values_at[index])]].concat(),
            None => self.key(index).to_vec(),
        }
    }

    /// Inline bytes of row `index`.
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        if self.plain {
            return &self.page()[usize::from(self.values_at[index])..usize::from(self.values_end[index])];
        }
        self.span(self.rows[index].value)
    }

    /// Large parts of row `index`, by position.
    pub fn large(&self, index: usize) -> &[LargeRef] {
        if self.plain {
            return &[];
        }
        let row = self.rows[index];
        &self.refs[row.large_from as usize..(row.large_from + row.large_count) as usize]
    }

    /// The rows of a plain block.
    pub fn plain(&self) -> Option<PlainRows<'_>> {
        let page = self.held.page().filter(|_| self.plain)?;
        let prefix = Slotted(page).prefix();
        Some(PlainRows { page, prefix, keys_at: &self.keys_at, values_at: &self.values_at, values_end: &self.values_end })
    }

    /// Makes [`Self::key`] good for every row.
    pub fn spell_keys(&mut self) {
        if !self.plain || header::prefix_bytes(self.page()) == 0 {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let page = held.page().expect("a plain block has a page");
        let prefix = Slotted(page).prefix();
        self.plain = false;
        self.rows.reserve(self.values_at.len());
        for index in 0..self.values_at.len() {
            let (key_at, at, end) = (usize::from(self.keys_at[index]), usize::from(self.values_at[index]), self.values_end[index]);
            let key = self.spell(&[prefix, &page[key_at..at]]);
            let value = Span { at: narrow(at), bytes: narrow(usize::from(end) - at) };
            self.rows.push(RowAt { key, value, large_from: 0, large_count: 0 });
        }
        self.held = held;
    }

    #[inline]
    fn span(&self, span: Span) -> &[u8] {
        let (at, bytes) = (span.at as usize, span.bytes as usize);
        if at < PAGE_BYTES { &self.page()[at..at + bytes] } else { &self.side[at - PAGE_BYTES..at - PAGE_BYTES + bytes] }
    }

    /// A block of one row.
    pub(crate) fn of_one(key: &[u8], value: &[u8], large: &[u8]) -> Self {
        let mut block = Self::default();
        let (key, value) = (block.spell(&[key]), block.spell(&[value]));
        block.push_row(key, value, large);
        block
    }

    /// Keeps the rows whose number `keep` accepts; they are numbered anew.
    pub(crate) fn retain_listed(&mut self, mut keep: impl FnMut(usize) -> bool) {
        assert!(!self.plain, "only rows listed one by one are dropped");
        let mut row = 0;
        self.rows.retain(|_| {
            row += 1;
            keep(row - 1)
        });
    }

    /// Takes a copy of `page`, without rows yet.
    pub(crate) fn copy_page(&mut self, page: &PageBytes) {
        self.held.ahead = None;
        match &mut self.held.copy {
            Some(copy) => copy.copy_from_slice(page),
            None => self.held.copy = Some(Box::new(*page)),
        }
        self.clear_rows();
    }

    /// Is of `page` itself, without rows yet.
    pub(crate) fn look_at(&mut self, page: AheadPage) {
        self.held.ahead = Some(page);
        self.clear_rows();
    }

    /// Has no rows, and keeps no buffer alive any more.
    pub fn let_go(&mut self) {
        self.held.ahead = None;
        self.clear_rows();
    }

    fn clear_rows(&mut self) {
        self.plain = false;
        self.keys_at.clear();
        self.values_at.clear();
        self.values_end.clear();
        self.side.clear();
        self.rows.clear();
        self.refs.clear();
    }

    fn page(&self) -> &PageBytes {
        self.held.page().expect("rows are listed of a page")
    }

    /// Lists the rows of `slots` that `view` sees. `older` finds the version behind a pointer.
    pub(crate) fn list(
        &mut self,
        slots: Range<usize>,
        backward: bool,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let held = std::mem::take(&mut self.held);
        let page = held.page().expect("a page was copied, or is looked at");
        let outcome = self.list_from(page, slots, backward, view, older);
        self.held = held;
        outcome
    }

    /// Adds the row of one slot, if `view` sees one, to those listed one by one before.
    pub(crate) fn list_one(
        &mut self,
        slot: usize,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let held = std::mem::take(&mut self.held);
        let page = held.page().expect("a page was copied, or is looked at");
        let outcome = self.list_slot(page, slot, view, older);
        self.held = held;
        outcome
    }

    fn list_slot(
        &mut self,
        page: &PageBytes,
        slot: usize,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let leaf = Slotted(page);
        let entry = leaf.entry(slot);
        let version = Version::of(&entry, header::creator_number(page));
        match (view.sees(version.writer), version.ghost) {
            (true, true) => Ok(()),
            (true, false) => self.push_entry(leaf, slot, &entry),
            (false, _) if version.pointer == SAME => self.push_entry(leaf, slot, &entry),
            (false, _) => self.push_older(leaf, &entry, version.pointer, view, older),
        }
    }

    fn list_from(
        &mut self,
        page: &PageBytes,
        slots: Range<usize>,
        backward: bool,
        view: &Visibility,
        older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let all_seen = Self::all_seen(page, view);
        if all_seen && self.list_plain(page, slots.clone(), backward) {
            return Ok(());
        }
        let leaf = Slotted(page);
        let mut list_slot = |slot: usize| {
            if all_seen { self.push_entry(leaf, slot, &leaf.entry(slot)) } else { self.list_slot(page, slot, view, older) }
        };
        if backward { slots.rev().try_for_each(&mut list_slot) } else { slots.clone().try_for_each(&mut list_slot) }
    }

    /// Whether `view` sees every entry of a leaf as it stands.
    pub(crate) fn all_seen(page: &PageBytes, view: &Visibility) -> bool {
        header::tagged_count(page) == 0 && header::ghost_count(page) == 0 && view.sees(header::creator_number(page))
    }

    /// Lists `slots` if every entry is plain; false, with nothing listed, if one is not.
    fn list_plain(&mut self, page: &PageBytes, slots: Range<usize>, backward: bool) -> bool {
        let count = slots.len();
        self.keys_at.resize(count, 0);
        self.values_at.resize(count, 0);
        self.values_end.resize(count, 0);
        let rows = self.keys_at.iter_mut().zip(&mut self.values_at).zip(&mut self.values_end);
        // Slots stand at the page's end, the first one last.
        let bytes = &page[PAGE_BYTES - slots.end * SLOT_BYTES..PAGE_BYTES - slots.start * SLOT_BYTES];
        let mut flags = 0;
        let mut whole = true;
        for (slot, ((key_at, value_at), value_end)) in bytes.rchunks_exact(SLOT_BYTES).zip(rows) {
            let at = u16::from_le_bytes([slot[0], slot[1]]);
            let end = at.saturating_add(u16::from_le_bytes([slot[2], slot[3]]));
            let Some(fixed) = page.get(usize::from(at)..usize::from(at) + FIXED_BYTES) else { return false };
            flags |= fixed[0];
            *key_at = at + FIXED_BYTES as u16;
            *value_at = key_at.saturating_add(u16::from_le_bytes([fixed[1], fixed[2]]));
            *value_end = end;
            whole &= *value_at <= end && usize::from(end) <= PAGE_BYTES;
        }
        self.plain = flags == 0 && whole;
        if self.plain && backward {
            self.keys_at.reverse();
            self.values_at.reverse();
            self.values_end.reverse();
        }
        self.plain
    }

    fn push_entry(&mut self, leaf: Slotted<'_>, slot: usize, entry: &Entry<'_>) -> Result<(), StorageError> {
        let (offset, bytes) = leaf.place(slot);
        let end = offset + bytes;
        let value = if entry.packed {
            let at = self.side.len();
            leaf.unpack(entry.payload, slot, &mut self.side)?;
            Span { at: narrow(PAGE_BYTES + at), bytes: narrow(self.side.len() - at) }
        } else {
            Span { at: narrow(end - entry.payload.len()), bytes: narrow(entry.payload.len()) }
        };
        let key = if leaf.prefix().is_empty() {
            Span { at: narrow(end - entry.payload.len() - entry.suffix.len()), bytes: narrow(entry.suffix.len()) }
        } else {
            self.spell(&[leaf.prefix(), entry.suffix])
        };
        self.push_row(key, value, entry.large_bytes);
        Ok(())
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
