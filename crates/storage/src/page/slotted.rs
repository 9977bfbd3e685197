//! Slots and entries of a page: reading them, finding a key, and the changes from which operations are made.
//!
//! ```text
//! | header 96 | prefix | dictionary | entries, growing up ... free_begin|   free   |slot n-1 ... slot 1|slot 0|
//!                                                                      slot = offset u16, length u16, head u32
//! ```
//!
//! 1. Entries lie between the dictionary, which most pages have not, and `free_begin`, slots between the free bytes and the
//!    page's end; they never meet ([`insert`] refuses, `verify` reports).
//! 2. `garbage_bytes` is what lies below `free_begin` and belongs to no entry ([`remove`], [`replace`], [`compact`]).
//! 3. A slot's head is that of its entry's suffix ([`entry::head`]); the header's counts of tagged entries and
//!    ghosts are those of the entries ([`count_in`], [`count_out`]).
//! 4. Changes are deterministic functions of the page's bytes and their arguments, the place of bytes included: redo
//!    makes the same page.
//!
//! Only [`super::op::apply`] calls the changing functions: what they do is thereby logged. A change that fails has
//! changed nothing.

use super::checksum::damage;
use super::dictionary::{self, Dictionary};
use super::entry::{self, Entry, Malformed};
use super::header::{self, HEADER_BYTES, PAGE_BYTES, PageBytes};
use crate::error::StorageError;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 8;
/// Most slots a page can hold: every entry has at least its fixed part.
pub const SLOTS_MAX: usize = (PAGE_BYTES - HEADER_BYTES) / (SLOT_BYTES + entry::FIXED_BYTES);

/// Why a change is impossible; the page is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotError {
    /// The bytes do not fit, even after compaction.
    NoRoom,
    /// No such slot.
    NoSlot,
    /// The entry's bytes are none, or the key lacks the prefix.
    Malformed(&'static str),
}

impl From<Malformed> for SlotError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error.0)
    }
}

/// A reading view of a slotted page whose slots were verified when it was loaded.
#[derive(Clone, Copy)]
pub struct Slotted<'a>(pub &'a PageBytes);

#[inline]
fn slot_at(slot: usize) -> usize {
    PAGE_BYTES - (slot + 1) * SLOT_BYTES
}

#[inline]
fn u16_at(page: &PageBytes, at: usize) -> usize {
    usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
}

impl<'a> Slotted<'a> {
    /// Number of slots.
    #[inline]
    pub fn len(self) -> usize {
        usize::from(header::slot_count(self.0))
    }

    /// Whether it has no slot.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The common prefix of its keys.
    #[inline]
    pub fn prefix(self) -> &'a [u8] {
        &self.0[HEADER_BYTES..HEADER_BYTES + usize::from(header::prefix_bytes(self.0))]
    }

    /// What its packed entries have in common; none on most pages.
    #[inline]
    pub(crate) fn dictionary(self) -> &'a [u8] {
        let at = HEADER_BYTES + usize::from(header::prefix_bytes(self.0));
        &self.0[at..at + usize::from(header::dictionary_bytes(self.0))]
    }

    /// `slot`'s entry with its payload as it was before it was packed, for which `whole` gives the memory.
    pub(crate) fn row<'b>(self, slot: usize, whole: &'b mut Vec<u8>) -> Result<Entry<'b>, StorageError>
    where
        'a: 'b,
    {
        let entry = self.entry(slot);
        if !entry.packed {
            return Ok(entry);
        }
        whole.clear();
        self.unpack(entry.payload, slot, whole)?;
        Ok(Entry { packed: false, payload: whole, ..entry })
    }

    /// Appends the row that the packed `payload` of `slot` was.
    pub(crate) fn unpack(self, payload: &[u8], slot: usize, whole: &mut Vec<u8>) -> Result<(), StorageError> {
        let outcome = Dictionary::new(self.dictionary()).unpack(payload, whole);
        outcome.map_err(|why| damage(header::page_id(self.0), format!("P10: slot {slot}: {}", why.0)))
    }

    /// Where the bytes of `slot`'s entry lie.
    #[inline]
    pub fn place(self, slot: usize) -> (usize, usize) {
        assert!(slot < self.len(), "slot {slot} of {}", self.len());
        (u16_at(self.0, slot_at(slot)), u16_at(self.0, slot_at(slot) + 2))
    }

    /// The bytes of `slot`'s entry.
    #[inline]
    pub fn bytes(self, slot: usize) -> &'a [u8] {
        let (offset, bytes) = self.place(slot);
        &self.0[offset..offset + bytes]
    }

    /// `slot`'s entry.
    #[inline]
    pub fn entry(self, slot: usize) -> Entry<'a> {
        Entry::parse(self.bytes(slot)).expect("entries are verified when a page is read and when one is stored")
    }

    /// The head that `slot` carries.
    #[inline]
    pub fn head(self, slot: usize) -> u32 {
        let at = slot_at(slot) + 4;
        u32::from_le_bytes(*self.0[at..].first_chunk().expect("a slot lies in the page"))
    }

    /// Appends the whole key of `slot`.
    pub fn key(self, slot: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(self.entry(slot).suffix);
    }

    /// Finds a whole key: `Ok` its slot, `Err` the slot at which it would stand.
    pub fn search(self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        match key.strip_prefix(prefix) {
            Some(suffix) => self.search_suffix(suffix),
            None if key < prefix => Err(0),
            None => Err(self.len()),
        }
    }

    /// Finds a key that is known to have the prefix, by what follows it.
    pub fn search_suffix(self, suffix: &[u8]) -> Result<usize, usize> {
        let head = entry::head(suffix);
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let order = self.head(middle).cmp(&head).then_with(|| self.entry(middle).suffix.cmp(suffix));
            match order {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Bytes between the entries and the slots.
    pub fn contiguous_bytes(self) -> usize {
        (PAGE_BYTES - self.len() * SLOT_BYTES).saturating_sub(usize::from(header::free_begin(self.0)))
    }

    /// Bytes free for entries and their slots, after compaction if need be.
    pub fn free_bytes(self) -> usize {
        self.contiguous_bytes() + usize::from(header::garbage_bytes(self.0))
    }

    /// Whether a new entry of `entry_bytes` fits.
    pub fn fits(self, entry_bytes: usize) -> bool {
        entry_bytes + SLOT_BYTES <= self.free_bytes()
    }

    /// Whether `slot`'s entry may be replaced by one of `entry_bytes`.
    pub fn fits_instead(self, slot: usize, entry_bytes: usize) -> bool {
        entry_bytes <= self.free_bytes() + self.place(slot).1
    }
}

fn set_slot(page: &mut PageBytes, slot: usize, offset: usize, bytes: usize, head: u32) {
    let at = slot_at(slot);
    page[at..at + 2].copy_from_slice(&in_page(offset).to_le_bytes());
    page[at + 2..at + 4].copy_from_slice(&in_page(bytes).to_le_bytes());
    page[at + 4..at + 8].copy_from_slice(&head.to_le_bytes());
}

fn in_page(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("a page is shorter than 64 KiB")
}

fn count_in(page: &mut PageBytes, tagged: bool, ghost: bool) {
    header::set_tagged_count(page, header::tagged_count(page) + u16::from(tagged));
    header::set_ghost_count(page, header::ghost_count(page) + u16::from(ghost));
}

fn count_out(page: &mut PageBytes, tagged: bool, ghost: bool) {
    // Saturating: a hostile page may carry any count, and `verify` is where that is told.
    header::set_tagged_count(page, header::tagged_count(page).saturating_sub(u16::from(tagged)));
    header::set_ghost_count(page, header::ghost_count(page).saturating_sub(u16::from(ghost)));
}

fn flags_of(bytes: &[u8]) -> (bool, bool) {
    (bytes[0] & entry::TAGGED != 0, bytes[0] & entry::GHOST != 0)
}

/// Moves the slots from `slot` on by one place: down to make room, or up over a removed one.
fn shift_slots(page: &mut PageBytes, slot: usize, count: usize, open: bool) {
    let from = PAGE_BYTES - count * SLOT_BYTES;
    if open {
        page.copy_within(from..slot_at(slot) + SLOT_BYTES, from - SLOT_BYTES);
    } else {
        page.copy_within(from..slot_at(slot), from + SLOT_BYTES);
    }
}

/// Writes `bytes` at `free_begin`, compacting first if they would not reach; the caller has checked that they fit.
fn place(page: &mut PageBytes, bytes: &[u8], slot_bytes: usize) -> usize {
    if Slotted(page).contiguous_bytes() < bytes.len() + slot_bytes {
        compact(page);
    }
    let offset = usize::from(header::free_begin(page));
    page[offset..offset + bytes.len()].copy_from_slice(bytes);
    header::set_free_begin(page, in_page(offset + bytes.len()));
    offset
}

/// The head of an entry that is to lie on the page.
fn head_of(page: &PageBytes, bytes: &[u8]) -> Result<u32, SlotError> {
    let entry = Entry::parse(bytes)?;
    if entry.packed && Slotted(page).dictionary().is_empty() {
        return Err(SlotError::Malformed("a packed entry for a page without a dictionary"));
    }
    Ok(entry::head(entry.suffix))
}

/// Inserts an entry as slot `slot`; those from there on move by one.
pub(super) fn insert(page: &mut PageBytes, slot: usize, bytes: &[u8]) -> Result<(), SlotError> {
    let head = head_of(page, bytes)?;
    let view = Slotted(page);
    let count = view.len();
    if slot > count {
        return Err(SlotError::NoSlot);
    }
    if !view.fits(bytes.len()) {
        return Err(SlotError::NoRoom);
    }
    let offset = place(page, bytes, SLOT_BYTES);
    shift_slots(page, slot, count, true);
    set_slot(page, slot, offset, bytes.len(), head);
    header::set_slot_count(page, in_page(count + 1));
    let (tagged, ghost) = flags_of(bytes);
    count_in(page, tagged, ghost);
    Ok(())
}

/// Replaces `slot`'s entry, in place if the new one is not longer.
pub(super) fn replace(page: &mut PageBytes, slot: usize, bytes: &[u8]) -> Result<(), SlotError> {
    let head = head_of(page, bytes)?;
    let view = Slotted(page);
    if slot >= view.len() {
        return Err(SlotError::NoSlot);
    }
    if !view.fits_instead(slot, bytes.len()) {
        return Err(SlotError::NoRoom);
    }
    let (old_offset, old_bytes) = view.place(slot);
    let (tagged, ghost) = flags_of(view.bytes(slot));
    count_out(page, tagged, ghost);
    let offset = if bytes.len() <= old_bytes {
        page[old_offset..old_offset + bytes.len()].copy_from_slice(bytes);
        discard(page, old_offset + bytes.len(), old_bytes - bytes.len());
        old_offset
    } else {
        set_slot(page, slot, HEADER_BYTES, 0, 0);
        discard(page, old_offset, old_bytes);
        place(page, bytes, 0)
    };
    set_slot(page, slot, offset, bytes.len(), head);
    let (tagged, ghost) = flags_of(bytes);
    count_in(page, tagged, ghost);
    Ok(())
}

/// Notes that bytes belong to no entry any more; the last ones are simply free again.
fn discard(page: &mut PageBytes, offset: usize, bytes: usize) {
    if offset + bytes == usize::from(header::free_begin(page)) {
        header::set_free_begin(page, in_page(offset));
    } else {
        let garbage = usize::from(header::garbage_bytes(page)) + bytes;
        header::set_garbage_bytes(page, in_page(garbage));
    }
}

/// Removes slot `slot`; those after it move by one.
pub(super) fn remove(page: &mut PageBytes, slot: usize) -> Result<(), SlotError> {
    let view = Slotted(page);
    let count = view.len();
    if slot >= count {
        return Err(SlotError::NoSlot);
    }
    let (offset, bytes) = view.place(slot);
    let (tagged, ghost) = flags_of(view.bytes(slot));
    count_out(page, tagged, ghost);
    shift_slots(page, slot, count, false);
    header::set_slot_count(page, in_page(count - 1));
    discard(page, offset, bytes);
    Ok(())
}

/// Overwrites bytes within `slot`'s entry, whose length stays.
pub(super) fn patch(page: &mut PageBytes, slot: usize, at: usize, bytes: &[u8]) -> Result<(), SlotError> {
    let view = Slotted(page);
    if slot >= view.len() {
        return Err(SlotError::NoSlot);
    }
    let (offset, length) = view.place(slot);
    if at + bytes.len() > length {
        return Err(SlotError::Malformed("patch reaches beyond its entry"));
    }
    let before = view.bytes(slot).to_vec();
    page[offset + at..offset + at + bytes.len()].copy_from_slice(bytes);
    let head = match Entry::parse(&page[offset..offset + length]) {
        Ok(entry) => entry::head(entry.suffix),
        Err(malformed) => {
            page[offset..offset + length].copy_from_slice(&before);
            return Err(malformed.into());
        }
    };
    set_slot(page, slot, offset, length, head);
    let (was, is) = (flags_of(&before), flags_of(&page[offset..]));
    count_out(page, was.0, was.1);
    count_in(page, is.0, is.1);
    Ok(())
}

/// Removes all slots from `slot` on.
pub(super) fn truncate(page: &mut PageBytes, slot: usize) -> Result<(), SlotError> {
    if slot > Slotted(page).len() {
        return Err(SlotError::NoSlot);
    }
    for last in (slot..Slotted(page).len()).rev() {
        remove(page, last)?;
    }
    compact(page);
    Ok(())
}

/// Gives the page another common prefix and encodes every entry's suffix anew.
pub(super) fn set_prefix(page: &mut PageBytes, prefix: &[u8]) -> Result<(), SlotError> {
    let old = Slotted(page);
    let mut entries = Vec::with_capacity(old.len());
    let mut total = prefix.len();
    let mut key = Vec::new();
    for slot in 0..old.len() {
        key.clear();
        old.key(slot, &mut key);
        let suffix = key.strip_prefix(prefix).ok_or(SlotError::Malformed("a key lacks the new prefix"))?;
        let mut bytes = Vec::new();
        let mut entry = old.entry(slot);
        entry.suffix = suffix;
        entry.encode(&mut bytes);
        total += bytes.len() + SLOT_BYTES;
        entries.push((entry::head(suffix), bytes));
    }
    let dictionary = old.dictionary().to_vec();
    if total + dictionary.len() > PAGE_BYTES - HEADER_BYTES {
        return Err(SlotError::NoRoom);
    }
    page[HEADER_BYTES..HEADER_BYTES + prefix.len()].copy_from_slice(prefix);
    header::set_prefix_bytes(page, in_page(prefix.len()));
    put_dictionary(page, &dictionary);
    lay_out(page, entries.iter().map(|(head, bytes)| (*head, bytes.as_slice())));
    Ok(())
}

fn put_dictionary(page: &mut PageBytes, dictionary: &[u8]) {
    let at = HEADER_BYTES + usize::from(header::prefix_bytes(page));
    page[at..at + dictionary.len()].copy_from_slice(dictionary);
    header::set_dictionary_bytes(page, in_page(dictionary.len()));
}

/// Gives a page without packed entries another dictionary.
pub(super) fn set_dictionary(page: &mut PageBytes, dictionary: &[u8]) -> Result<(), SlotError> {
    dictionary::check(dictionary)?;
    let old = Slotted(page);
    if (0..old.len()).any(|slot| old.entry(slot).packed) {
        return Err(SlotError::Malformed("packed entries lose their dictionary"));
    }
    if old.dictionary().len() + old.free_bytes() < dictionary.len() {
        return Err(SlotError::NoRoom);
    }
    let entries: Vec<(u32, Vec<u8>)> = (0..old.len()).map(|slot| (old.head(slot), old.bytes(slot).to_vec())).collect();
    put_dictionary(page, dictionary);
    lay_out(page, entries.iter().map(|(head, bytes)| (*head, bytes.as_slice())));
    Ok(())
}

/// Rewrites the entries without gaps, in slot order.
pub(super) fn compact(page: &mut PageBytes) {
    let copy = *page;
    let view = Slotted(&copy);
    lay_out(page, (0..view.len()).map(|slot| (view.head(slot), view.bytes(slot))));
}

fn lay_out<'a>(page: &mut PageBytes, entries: impl Iterator<Item = (u32, &'a [u8])>) {
    let mut offset = HEADER_BYTES + usize::from(header::prefix_bytes(page)) + usize::from(header::dictionary_bytes(page));
    for (slot, (head, bytes)) in entries.enumerate() {
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
        let kept = if bytes.is_empty() { HEADER_BYTES } else { offset };
        set_slot(page, slot, kept, bytes.len(), head);
        offset += bytes.len();
    }
    let slots = PAGE_BYTES - Slotted(page).len() * SLOT_BYTES;
    // Zeroed so that the page's bytes, and with them its compressed image, depend on its content alone.
    page[offset..slots].fill(0);
    header::set_free_begin(page, in_page(offset));
    header::set_garbage_bytes(page, 0);
}
