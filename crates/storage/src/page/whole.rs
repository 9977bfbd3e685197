//! Whole leaves: laid out at once instead of entry by entry, and packed for the log.
//!
//! ```text
//! packed = header 96 (checksum and LSN zero) | prefix | entry bytes u16 | mask, a bit a byte of an entry
//!          | the bytes that all entries share | the others, entry by entry
//! ```
//! A leaf made by a bulk append holds entries one after another in slot order, and most indexes have entries of one
//! length. Their flags and lengths are the same throughout, and the high bytes of numbers nearly so: leaving out what is
//! constant and the slots, which follow from the entries, makes an index leaf a third of its size for a tenth of what
//! LZ4 costs. Leaves of other shapes are left to LZ4.
//!
//! Invariants: 1. [`LeafMaker`] makes the very bytes that the operations `Format`, `SetPrefix` and `SlotInsert` at the end
//! would make (a test compares them). 2. [`unpack`] gives back what [`pack`] took, and takes hostile bytes: a result that
//! is no sound page is an error.

use super::entry::{self, Entry, FIXED_BYTES};
use super::header::{self, HEADER_BYTES, PAGE_BYTES, PageBytes};
use super::op::{Decoder, Format, PageOp, PageOpError, apply};
use super::slotted::{SLOT_BYTES, Slotted};
use super::verify;
use crate::ids::PageId;
use std::ops::Range;

/// Entries without their fixed part that [`LeafMaker::push_short`] takes.
const SHORT_BYTES: usize = 16;

/// Draws a leaf entry by entry in key order.
pub(crate) struct LeafMaker<'p> {
    page: &'p mut PageBytes,
    free_begin: usize,
    slot_count: usize,
}

impl<'p> LeafMaker<'p> {
    /// Makes `page` an empty leaf whose keys begin with `prefix`, with a dictionary if it is to be packed.
    pub(crate) fn new(page: &'p mut PageBytes, id: PageId, format: Format, prefix: &[u8], dictionary: &[u8]) -> Self {
        apply(page, id, &PageOp::Format(format)).expect("any page can be formatted");
        page[HEADER_BYTES..HEADER_BYTES + prefix.len()].copy_from_slice(prefix);
        header::set_prefix_bytes(page, narrow(prefix.len()));
        let body = HEADER_BYTES + prefix.len();
        page[body..body + dictionary.len()].copy_from_slice(dictionary);
        header::set_dictionary_bytes(page, narrow(dictionary.len()));
        Self { page, free_begin: body + dictionary.len(), slot_count: 0 }
    }

    /// Adds an entry; the caller has counted that it fits.
    #[inline]
    pub(crate) fn push(&mut self, suffix: &[u8], large: &[u8], payload: &[u8]) {
        self.push_row(suffix, large, payload, false);
    }

    /// The same, `payload` packed or not.
    #[inline]
    pub(crate) fn push_row(&mut self, suffix: &[u8], large: &[u8], payload: &[u8], packed: bool) {
        let start = self.free_begin;
        let bytes = FIXED_BYTES + suffix.len() + payload.len() + if large.is_empty() { 0 } else { 2 + large.len() };
        let slot_at = PAGE_BYTES - (self.slot_count + 1) * SLOT_BYTES;
        let (entries, slots) = self.page.split_at_mut(slot_at);
        let out = &mut entries[start..start + bytes];
        let (fixed, mut rest) = out.split_at_mut(FIXED_BYTES);
        fixed[0] = if large.is_empty() { 0 } else { entry::LARGE } | if packed { entry::PACKED } else { 0 };
        fixed[1..3].copy_from_slice(&narrow(suffix.len()).to_le_bytes());
        if !large.is_empty() {
            let (part, after) = rest.split_at_mut(2 + large.len());
            part[..2].copy_from_slice(&narrow(large.len() / entry::LARGE_REF_BYTES).to_le_bytes());
            part[2..].copy_from_slice(large);
            rest = after;
        }
        let (key, row) = rest.split_at_mut(suffix.len());
        key.copy_from_slice(suffix);
        row.copy_from_slice(payload);
        let slot = u64::from(narrow(start)) | u64::from(narrow(bytes)) << 16 | u64::from(entry::head(suffix)) << 32;
        slots[..SLOT_BYTES].copy_from_slice(&slot.to_le_bytes());
        self.free_begin += bytes;
        self.slot_count += 1;
    }

    /// Adds an entry without large parts, whose key suffix is `suffix` of `bytes` and whose row goes on to `end`, if both are
    /// at most sixteen bytes and there is room to move them as such: what is moved beyond comes under the next entry, or is
    /// cleared in the end.
    #[inline]
    pub(crate) fn push_short(&mut self, bytes: &[u8], suffix: Range<usize>, end: usize) -> bool {
        let (start, length) = (self.free_begin, end - suffix.start);
        let slot_at = PAGE_BYTES - (self.slot_count + 1) * SLOT_BYTES;
        if length > SHORT_BYTES || start + FIXED_BYTES + SHORT_BYTES > slot_at {
            return false;
        }
        let Some(moved) = bytes[suffix.start..].first_chunk::<SHORT_BYTES>() else { return false };
        let suffix_bytes = (suffix.end - suffix.start) as u16;
        let [low, high] = suffix_bytes.to_le_bytes();
        self.page[start..start + FIXED_BYTES].copy_from_slice(&[0, low, high]);
        *self.page[start + FIXED_BYTES..].first_chunk_mut::<SHORT_BYTES>().expect("looked at above") = *moved;
        let first = u32::from_be_bytes([moved[0], moved[1], moved[2], moved[3]]);
        let head = if suffix_bytes >= 4 { first } else { entry::head(&moved[..usize::from(suffix_bytes)]) };
        let entry_bytes = narrow(FIXED_BYTES + length);
        let slot = u64::from(narrow(start)) | u64::from(entry_bytes) << 16 | u64::from(head) << 32;
        *self.page[slot_at..].first_chunk_mut().expect("a slot lies in the page") = slot.to_le_bytes();
        self.free_begin += usize::from(entry_bytes);
        self.slot_count += 1;
        true
    }

    /// Completes the header.
    pub(crate) fn finish(self) {
        let slots_at = PAGE_BYTES - self.slot_count * SLOT_BYTES;
        let moved_end = slots_at.min(self.free_begin + SHORT_BYTES);
        self.page[self.free_begin..moved_end].fill(0);
        header::set_free_begin(self.page, narrow(self.free_begin));
        header::set_slot_count(self.page, narrow(self.slot_count));
    }
}

fn narrow(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("a page is shorter than 64 KiB")
}

/// Length of the entries, if all have one and lie without gaps in slot order.
fn entry_bytes(page: &PageBytes) -> Option<usize> {
    let view = Slotted(page);
    if view.is_empty() || header::garbage_bytes(page) != 0 || !view.dictionary().is_empty() {
        return None;
    }
    let body = HEADER_BYTES + view.prefix().len();
    let (_, bytes) = view.place(0);
    let in_order = |slot: usize| view.place(slot) == (body + slot * bytes, bytes);
    (bytes >= FIXED_BYTES && (0..view.len()).all(in_order)).then_some(bytes)
}

#[inline]
fn word(page: &PageBytes, at: usize) -> u64 {
    u64::from_le_bytes(*page[at..].first_chunk().expect("slots follow the entries"))
}

/// Bytes of an entry in which not all entries agree, as runs.
fn varying_runs(page: &PageBytes, body: usize, count: usize, bytes: usize) -> Vec<(usize, usize)> {
    let mut varies = vec![false; bytes];
    for from in (0..bytes).step_by(8) {
        let first = word(page, body + from);
        let differ = (1..count).fold(0, |differ, slot| differ | (word(page, body + slot * bytes + from) ^ first));
        for (at, byte) in differ.to_le_bytes().into_iter().enumerate().take(bytes - from) {
            varies[from + at] = byte != 0;
        }
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in (0..bytes).filter(|at| varies[*at]) {
        match runs.last_mut() {
            // Runs of at most a word are copied as words.
            Some((start, length)) if *start + *length == at && *length < 8 => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// Appends the packed form of `page` to `out`; false if it has none, and `out` is as before.
pub(crate) fn pack(page: &PageBytes, out: &mut Vec<u8>) -> bool {
    let Some(bytes) = entry_bytes(page) else { return false };
    let count = Slotted(page).len();
    let body = HEADER_BYTES + usize::from(header::prefix_bytes(page));
    let runs = varying_runs(page, body, count, bytes);
    let start = out.len();
    out.extend_from_slice(&page[..body]);
    // The checksum and the LSN come after: they are zero in the record.
    out[start..start + 4].fill(0);
    out[start + 16..start + 24].fill(0);
    out.extend_from_slice(&narrow(bytes).to_le_bytes());
    let mask_at = out.len();
    out.resize(mask_at + bytes.div_ceil(8), 0);
    let mut constant = vec![true; bytes];
    for (from, length) in &runs {
        for at in *from..from + length {
            out[mask_at + at / 8] |= 1 << (at % 8);
            constant[at] = false;
        }
    }
    out.extend((0..bytes).filter(|at| constant[*at]).map(|at| page[body + at]));
    let varying: usize = runs.iter().map(|(_, length)| length).sum();
    let mut at = out.len();
    let end = at + count * varying;
    out.resize(end + 8, 0);
    for slot in 0..count {
        let entry = body + slot * bytes;
        for (from, length) in &runs {
            let target = out[at..].first_chunk_mut::<8>().expect("eight bytes follow the last run");
            *target = *page[entry + from..].first_chunk().expect("slots follow the entries");
            at += length;
        }
    }
    out.truncate(end);
    true
}

/// Makes `page`, named `id`, from its packed form.
pub(super) fn unpack(page: &mut PageBytes, id: PageId, packed: &[u8]) -> Result<(), PageOpError> {
    let malformed = PageOpError::Malformed;
    let mut from = Decoder(packed);
    let mut made = [0; PAGE_BYTES];
    made[..HEADER_BYTES].copy_from_slice(from.take(HEADER_BYTES as u16)?);
    let prefix = from.take(header::prefix_bytes(&made))?;
    let bytes = usize::from(from.u16()?);
    let count = usize::from(header::slot_count(&made));
    let body = HEADER_BYTES + prefix.len();
    if bytes < FIXED_BYTES || count == 0 || body + count * (bytes + SLOT_BYTES) > PAGE_BYTES {
        return Err(malformed("packed leaf does not fit a page"));
    }
    made[HEADER_BYTES..body].copy_from_slice(prefix);
    let mask = from.take(narrow(bytes.div_ceil(8)))?;
    let varies = |at: usize| mask[at / 8] & 1 << (at % 8) != 0;
    let mut pattern = vec![0; bytes];
    for at in (0..bytes).filter(|at| !varies(*at)) {
        pattern[at] = from.u8()?;
    }
    let varying: Vec<usize> = (0..bytes).filter(|at| varies(*at)).collect();
    for slot in 0..count {
        let values = from.take(narrow(varying.len()))?;
        for (at, value) in varying.iter().zip(values) {
            pattern[*at] = *value;
        }
        let start = body + slot * bytes;
        made[start..start + bytes].copy_from_slice(&pattern);
        let head = entry::head(Entry::parse(&pattern).map_err(|why| malformed(why.0))?.suffix);
        let value = u64::from(narrow(start)) | u64::from(narrow(bytes)) << 16 | u64::from(head) << 32;
        let slot_at = PAGE_BYTES - (slot + 1) * SLOT_BYTES;
        made[slot_at..slot_at + SLOT_BYTES].copy_from_slice(&value.to_le_bytes());
    }
    if !from.0.is_empty() || verify::first_violation(&made, id).is_some() {
        return Err(malformed("packed leaf is no page of this name"));
    }
    *page = made;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{TreeId, TxnId};
    use crate::page::PageType;

    const ID: PageId = PageId { file: 1, page: 42 };

    fn leaf(entries: &[(Vec<u8>, Vec<u8>)], large: &[u8]) -> PageBytes {
        let format = Format { page_type: PageType::Leaf, tree: TreeId(7), object_id: 1, index_id: 2, level: 0, creator: TxnId(9) };
        let (mut made, mut drawn) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        let mut maker = LeafMaker::new(&mut made, ID, format, b"pre", &[]);
        for (suffix, payload) in entries {
            let moved = [&suffix[..], payload, &[0xEE; SHORT_BYTES]].concat();
            if !large.is_empty() || !maker.push_short(&moved, 0..suffix.len(), suffix.len() + payload.len()) {
                maker.push(suffix, large, payload);
            }
        }
        maker.finish();
        apply(&mut drawn, ID, &PageOp::Format(format)).unwrap();
        apply(&mut drawn, ID, &PageOp::SetPrefix(b"pre")).unwrap();
        for (slot, (suffix, payload)) in entries.iter().enumerate() {
            let mut bytes = Vec::new();
            Entry::plain(suffix, payload).with_large(large).encode(&mut bytes);
            apply(&mut drawn, ID, &PageOp::SlotInsert { slot: slot as u16, bytes: &bytes }).unwrap();
        }
        assert!(made == drawn, "the maker and the operations agree");
        made
    }

    #[test]
    fn leaves_are_made_and_packed_and_come_back() {
        let numbered = |n: u32| (n.to_be_bytes().to_vec(), vec![7, 0, (n % 5) as u8]);
        let wide = |n: u32| (n.to_be_bytes().to_vec(), [&[1; 20][..], &n.to_le_bytes()[..2], &[9; 9]].concat());
        for (page, packs) in [
            (leaf(&(0..400).map(numbered).collect::<Vec<_>>(), &[]), true),
            (leaf(&(0..448).map(numbered).collect::<Vec<_>>(), &[]), true),
            (leaf(&(0..100).map(wide).collect::<Vec<_>>(), &[]), true),
            (leaf(&[numbered(5)], &[3; 16]), true),
            (leaf(&[(b"a".to_vec(), vec![1]), (b"bb".to_vec(), vec![])], &[]), true),
            (leaf(&[(b"a".to_vec(), vec![1]), (b"bb".to_vec(), vec![1])], &[]), false),
            (leaf(&[], &[]), false),
        ] {
            let mut packed = vec![0xEE];
            assert_eq!(pack(&page, &mut packed), packs);
            if !packs {
                assert_eq!(packed, [0xEE]);
                continue;
            }
            let mut back = [1; PAGE_BYTES];
            unpack(&mut back, ID, &packed[1..]).unwrap();
            assert!(back == page);
            assert!(unpack(&mut back, PageId { file: 1, page: 43 }, &packed[1..]).is_err(), "a page of another name");
            (0..packed.len() - 1).for_each(|cut| assert!(unpack(&mut back, ID, &packed[1..1 + cut]).is_err(), "cut at {cut}"));
            for at in 1..packed.len() {
                let mut bad = packed.clone();
                bad[at] ^= 0x41;
                // Any outcome but a panic or an unsound page.
                if unpack(&mut back, ID, &bad[1..]).is_ok() {
                    assert!(verify::first_violation(&back, ID).is_none());
                }
            }
        }
        let index = leaf(&(0..400).map(numbered).collect::<Vec<_>>(), &[]);
        let mut packed = Vec::new();
        pack(&index, &mut packed);
        assert!(packed.len() < 1_350, "two bytes of the number and one of the row vary: {}", packed.len());
    }
}
