//! The check of one page by itself: every violation, not the first.
//!
//! | | invariant |
//! |---|---|
//! | P1 | type and format version are known |
//! | P2 | the page carries the name under which it was asked for |
//! | P3 | reserved bytes are zero |
//! | P4 | `free_begin` lies between the prefix and the slots |
//! | P5 | every slot points to bytes between the prefix and `free_begin` |
//! | P6 | no two entries overlap, and with `garbage_bytes` they account for every byte below `free_begin` |
//! | P7 | every entry parses, and its slot's head is its suffix's |
//! | P8 | keys rise strictly from slot to slot, where the type has keys |
//! | P9 | the counts of tagged entries and ghosts are right |
//! | P10 | the dictionary is sound, and only a leaf with one has packed entries |
//!
//! P1, P2, P4, P5, P7 and P10 are what the accessors rely on; [`first_violation`] checks all each time a page enters the pool.
//! That every packed entry can be made whole is looked at when it is, and by the check of a database ([`unpack_all`]): it would
//! cost more than all the others together. It does not look beyond the page: siblings, parents and maps are for the database's check.

use super::checksum::damage;
use super::dictionary;
use super::entry::{self, Entry};
use super::header::{self, HEADER_BYTES, PAGE_BYTES, PageBytes, PageType};
use super::slotted::{SLOT_BYTES, SLOTS_MAX, Slotted};
use crate::error::StorageError;
use crate::ids::PageId;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// "P1" to "P10".
    pub invariant: &'static str,
    /// What was expected and found.
    pub detail: String,
}

impl Violation {
    /// As an error of the page.
    pub fn into_error(self, id: PageId) -> StorageError {
        damage(id, format!("{}: {}", self.invariant, self.detail))
    }
}

/// Reports every violation of the page named `id`; the checksum is not looked at.
pub fn verify(page: &PageBytes, id: PageId, report: &mut dyn FnMut(Violation)) {
    let mut say = |invariant, detail| report(Violation { invariant, detail });
    if header::format_version(page) != header::FORMAT_VERSION {
        say("P1", format!("format version {}", header::format_version(page)));
    }
    if header::page_id(page) != id {
        say("P2", format!("expected {id:?}, found {:?}", header::page_id(page)));
    }
    if page[15] != 0 || page[header::RESERVED_BEGIN..HEADER_BYTES].iter().any(|byte| *byte != 0) {
        say("P3", "reserved bytes of the header are not zero".into());
    }
    match header::page_type(page) {
        None => say("P1", format!("page type {}", header::type_number(page))),
        Some(page_type) if page_type.is_slotted() => verify_slots(page, page_type, &mut say),
        Some(_) => {}
    }
}

/// The first violation, if any.
pub fn first_violation(page: &PageBytes, id: PageId) -> Option<Violation> {
    let mut first = None;
    verify(page, id, &mut |violation| {
        first.get_or_insert(violation);
    });
    first
}

/// Reports every packed entry of a page that was verified, and cannot be made whole.
pub fn unpack_all(page: &PageBytes, report: &mut dyn FnMut(usize, String)) {
    let view = Slotted(page);
    let mut whole = Vec::new();
    for slot in 0..view.len() {
        if let Err(error) = view.row(slot, &mut whole) {
            report(slot, error.to_string());
        }
    }
}

fn verify_slots(page: &PageBytes, page_type: PageType, say: &mut dyn FnMut(&'static str, String)) {
    let view = Slotted(page);
    let body = HEADER_BYTES + usize::from(header::prefix_bytes(page)) + usize::from(header::dictionary_bytes(page));
    let free_begin = usize::from(header::free_begin(page));
    if view.len() > SLOTS_MAX || body > PAGE_BYTES || free_begin < body || free_begin > PAGE_BYTES - view.len() * SLOT_BYTES {
        say("P4", format!("{} slots, entries from {body} to {free_begin}", view.len()));
        return;
    }
    let dictionary = view.dictionary();
    if let Err(malformed) = dictionary::check(dictionary) {
        say("P10", malformed.0.to_owned());
    }
    if !dictionary.is_empty() && (page_type != PageType::Leaf || header::level(page) > 0) {
        say("P10", "a page that is no leaf has a dictionary".into());
    }
    if page_type.is_keyed() && is_plain_and_sound(view, body, free_begin) {
        return;
    }
    // One bit a byte tells overlap in a single pass without sorting the places.
    let mut used = [0_u64; PAGE_BYTES / 64];
    let mut total = 0;
    let mut whole = true;
    let (mut tagged, mut ghosts) = (0_u16, 0_u16);
    for slot in 0..view.len() {
        let (offset, bytes) = view.place(slot);
        if offset < body || offset + bytes > free_begin {
            say("P5", format!("slot {slot} points to {offset}, {bytes} bytes"));
            whole = false;
            continue;
        }
        total += bytes;
        if !mark(&mut used, offset, bytes) {
            say("P6", format!("slot {slot} at {offset}, {bytes} bytes, overlaps another"));
        }
        match Entry::parse(view.bytes(slot)) {
            Ok(parsed) => {
                tagged += u16::from(parsed.tag.is_some());
                ghosts += u16::from(parsed.ghost);
                if parsed.packed && dictionary.is_empty() {
                    say("P10", format!("slot {slot} is packed and there is no dictionary"));
                }
                if view.head(slot) != entry::head(parsed.suffix) {
                    say("P7", format!("slot {slot} has head {:#010x}", view.head(slot)));
                }
            }
            Err(malformed) => {
                say("P7", format!("slot {slot}: {}", malformed.0));
                whole = false;
            }
        }
    }
    let garbage = usize::from(header::garbage_bytes(page));
    if body + total + garbage != free_begin {
        say("P6", format!("{total} bytes of entries and {garbage} of garbage do not fill {body} to {free_begin}"));
    }
    if whole && page_type.is_keyed() {
        verify_order(view, say);
    }
    if (tagged, ghosts) != (header::tagged_count(page), header::ghost_count(page)) {
        let stored = (header::tagged_count(page), header::ghost_count(page));
        say("P9", format!("tagged and ghosts: stored {stored:?}, found {:?}", (tagged, ghosts)));
    }
}

/// Whether the slots keep P5 to P10 in the way that most pages do: entries in slot order without gaps, none with flags, but
/// for that of packed ones. In
/// one short loop; of a page of which it is not true nothing is said.
fn is_plain_and_sound(view: Slotted<'_>, body: usize, free_begin: usize) -> bool {
    let page = view.0;
    let slots = &page[PAGE_BYTES - view.len() * SLOT_BYTES..];
    let packed = if view.dictionary().is_empty() { 0 } else { entry::PACKED };
    let (mut next, mut head_before, mut suffix_before): (usize, u32, &[u8]) = (body, 0, &[]);
    for (index, slot) in slots.rchunks_exact(SLOT_BYTES).enumerate() {
        let offset = usize::from(u16::from_le_bytes([slot[0], slot[1]]));
        let end = offset + usize::from(u16::from_le_bytes([slot[2], slot[3]]));
        let head = u32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]]);
        if offset != next || end > free_begin || end < offset + entry::FIXED_BYTES {
            return false;
        }
        let bytes = &page[offset..end];
        let suffix_end = entry::FIXED_BYTES + usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
        let Some(suffix) = bytes.get(entry::FIXED_BYTES..suffix_end).filter(|_| bytes[0] & !packed == 0) else { return false };
        let rises = index == 0 || head > head_before || (head == head_before && suffix > suffix_before);
        if !rises || entry::head(suffix) != head {
            return false;
        }
        (next, head_before, suffix_before) = (end, head, suffix);
    }
    next == free_begin && header::garbage_bytes(page) == 0 && header::tagged_count(page) == 0 && header::ghost_count(page) == 0
}

fn mark(used: &mut [u64; PAGE_BYTES / 64], offset: usize, bytes: usize) -> bool {
    let mut free = true;
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let bits = (64 - at % 64).min(end - at);
        let mask = (u64::MAX >> (64 - bits)) << (at % 64);
        free &= used[at / 64] & mask == 0;
        used[at / 64] |= mask;
        at += bits;
    }
    free
}

fn verify_order(view: Slotted<'_>, say: &mut dyn FnMut(&'static str, String)) {
    for slot in 1..view.len() {
        // Heads are right by now (P7), and where they differ they decide.
        if view.head(slot - 1) < view.head(slot) {
            continue;
        }
        if view.entry(slot - 1).suffix >= view.entry(slot).suffix {
            say("P8", format!("key of slot {slot} is not above the one before"));
        }
    }
}
