//! A node of a tree as a list of entries: children, separators, and the list with one change made on paper.
//!
//! ```text
//!   inner:  slot 0        slot 1         ...     child i holds keys from separator i (slot 0: from the node's low end)
//!           key, child    separator, child       up to separator i + 1, exclusive
//!   leaf:   key, row      key, row       ...
//! ```
//! Slot 0 of the leftmost inner node has the empty key; elsewhere slot 0 keeps the separator that its parent has, so
//! that inner nodes share prefixes too. Nothing relies on slot 0's key but the order of slots.
//!
//! Invariants: 1. `cut` makes pieces that each fit a page under the prefix of their own keys, none empty. 2. An entry
//! within the limits of keys and rows always fits a page alone. No latches, no failure: pure functions of bytes.

use crate::error::StorageError;
use crate::ids::PageId;
use crate::page::header::{self, HEADER_BYTES};
use crate::page::slotted::SLOT_BYTES;
use crate::page::{Entry, PAGE_BYTES, Slotted};

/// Bytes of a child reference: file u16, page u32.
pub(super) const CHILD_BYTES: usize = 6;
/// Bytes of a page for prefix, entries and slots.
const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;

pub(super) fn child_bytes(child: PageId) -> [u8; CHILD_BYTES] {
    let mut bytes = [0; CHILD_BYTES];
    bytes[..2].copy_from_slice(&child.file.to_le_bytes());
    bytes[2..].copy_from_slice(&child.page.to_le_bytes());
    bytes
}

/// The child in `slot` of an inner node.
pub(super) fn child_at(node: Slotted<'_>, slot: usize) -> Result<PageId, StorageError> {
    let payload = node.entry(slot).payload;
    let Ok(bytes) = <[u8; CHILD_BYTES]>::try_from(payload) else {
        return Err(damage(node, format!("slot {slot} of an inner node has {} bytes for a child", payload.len())));
    };
    Ok(PageId { file: u16::from_le_bytes([bytes[0], bytes[1]]), page: u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]) })
}

/// The slot whose child holds `key`.
pub(super) fn slot_for(node: Slotted<'_>, key: &[u8]) -> usize {
    match node.search(key) {
        Ok(slot) => slot,
        Err(slot) => slot.saturating_sub(1),
    }
}

/// The slot whose child holds the greatest keys below `key`.
pub(super) fn slot_before(node: Slotted<'_>, key: &[u8]) -> usize {
    let (Ok(slot) | Err(slot)) = node.search(key);
    slot.saturating_sub(1)
}

/// Damage of the page behind a node.
pub(super) fn damage(node: Slotted<'_>, detail: String) -> StorageError {
    let page = header::page_id(node.0);
    StorageError::Damage { page, offset: u64::from(page.page) * PAGE_BYTES as u64, detail }
}

/// Length of what two keys begin with alike.
pub(super) fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The shortest key above `left` and not above `right`.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    debug_assert!(left < right, "keys rise");
    &right[..(common_bytes(left, right) + 1).min(right.len())]
}

/// A node with one entry inserted or replaced on paper.
pub(super) struct Draft<'a> {
    pub(super) node: Slotted<'a>,
    /// Where the new entry stands.
    pub(super) at: usize,
    /// It stands there instead of the present one.
    pub(super) replaces: bool,
    /// Its whole key.
    pub(super) key: &'a [u8],
    /// Its other parts; the suffix does not count.
    pub(super) entry: Entry<'a>,
}

impl<'a> Draft<'a> {
    pub(super) fn len(&self) -> usize {
        self.node.len() + usize::from(!self.replaces)
    }

    fn slot_of(&self, index: usize) -> usize {
        index - usize::from(!self.replaces && index > self.at)
    }

    /// Appends the whole key of an entry.
    pub(super) fn key(&self, index: usize, out: &mut Vec<u8>) {
        if index == self.at { out.extend_from_slice(self.key) } else { self.node.key(self.slot_of(index), out) }
    }

    pub(super) fn whole_key(&self, index: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.key(index, &mut key);
        key
    }

    /// An entry; its suffix is of no use.
    pub(super) fn entry(&self, index: usize) -> Entry<'a> {
        if index == self.at { self.entry } else { self.node.entry(self.slot_of(index)) }
    }

    /// Length of the prefix common to a piece's keys.
    pub(super) fn prefix_bytes(&self, from: usize, to: usize) -> usize {
        common_bytes(&self.whole_key(from), &self.whole_key(to - 1))
    }

    /// Running sums of the entries' bytes with whole keys and slots.
    fn sums(&self) -> Vec<usize> {
        let old_prefix = self.node.prefix().len();
        let mut sums = Vec::with_capacity(self.len() + 1);
        let mut sum = 0;
        sums.push(0);
        for index in 0..self.len() {
            sum += SLOT_BYTES
                + if index == self.at {
                    Entry { suffix: self.key, ..self.entry }.encoded_bytes()
                } else {
                    old_prefix + self.node.place(self.slot_of(index)).1
                };
            sums.push(sum);
        }
        sums
    }

    /// Whether one of a piece's entries is packed.
    pub(super) fn is_packed(&self, from: usize, to: usize) -> bool {
        !self.node.dictionary().is_empty() && (from..to).any(|index| self.entry(index).packed)
    }

    fn piece_fits(&self, sums: &[usize], from: usize, to: usize) -> bool {
        let dictionary = if self.is_packed(from, to) { self.node.dictionary().len() } else { 0 };
        let whole = sums[to] - sums[from] + dictionary;
        // Without a common prefix is the usual case of pieces that fit, and costs no look at the keys.
        whole <= BODY_BYTES || whole - (to - from - 1) * self.prefix_bytes(from, to) <= BODY_BYTES
    }

    /// How the entries are laid on pages.
    pub(super) fn cut(&self) -> Cut {
        let (sums, count) = (self.sums(), self.len());
        if self.piece_fits(&sums, 0, count) {
            return Cut::None;
        }
        let appends = self.at + 1 == count && !self.replaces && header::right(self.node.0) == PageId::NONE;
        if appends && self.piece_fits(&sums, 0, count - 1) {
            // Rising keys fill pages: what came before is not halved, the next page begins with the new entry.
            return Cut::At(count - 1);
        }
        let half = sums[count] / 2;
        let mut nearest: Vec<usize> = (1..count).collect();
        nearest.sort_by_key(|cut| sums[*cut].abs_diff(half));
        let fits = |cut: &usize| self.piece_fits(&sums, 0, *cut) && self.piece_fits(&sums, *cut, count);
        match nearest.into_iter().find(fits) {
            Some(cut) => Cut::At(cut),
            None => {
                assert!(self.at > 0 && self.at + 1 < count, "an entry at an end can always be cut off");
                Cut::Without(self.at)
            }
        }
    }
}

/// How a draft is laid on pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// It fits one.
    None,
    /// The second page begins with this entry of the draft.
    At(usize),
    /// The new entry is so long that it goes with neither half: cut the node as it is before this slot, and look again.
    Without(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{TreeId, TxnId};
    use crate::page::{Format, PageBytes, PageOp, PageType, op};

    const ID: PageId = PageId { file: 1, page: 9 };

    fn page(entries: &[(Vec<u8>, usize)], prefix: &[u8]) -> Box<PageBytes> {
        let mut page = Box::new([0; PAGE_BYTES]);
        let format = Format { page_type: PageType::Leaf, tree: TreeId(1), object_id: 1, index_id: 1, level: 0, creator: TxnId(0) };
        op::apply(&mut page, ID, &PageOp::Format(format)).unwrap();
        op::apply(&mut page, ID, &PageOp::SetPrefix(prefix)).unwrap();
        for (slot, (key, bytes)) in entries.iter().enumerate() {
            let mut encoded = Vec::new();
            Entry::plain(&key[prefix.len()..], &vec![1; *bytes]).encode(&mut encoded);
            op::apply(&mut page, ID, &PageOp::SlotInsert { slot: slot as u16, bytes: &encoded }).unwrap();
        }
        page
    }

    fn cut(page: &PageBytes, at: usize, replaces: bool, key: &[u8], payload: usize) -> Cut {
        let payload = vec![2; payload];
        Draft { node: Slotted(page), at, replaces, key, entry: Entry::plain(b"", &payload) }.cut()
    }

    #[test]
    fn separators_are_short_and_between() {
        for (left, right, expected) in [("abc", "abd", "abd"), ("abc", "b", "b"), ("a", "ab", "ab"), ("", "x", "x"), ("ab", "abcd", "abc")]
        {
            let made = separator(left.as_bytes(), right.as_bytes());
            assert_eq!(made, expected.as_bytes());
            assert!(left.as_bytes() < made && made <= right.as_bytes());
        }
    }

    #[test]
    fn pages_are_cut_where_it_pays() {
        let rows: Vec<_> = (0..10u8).map(|n| (vec![b'k', n * 2 + 1], 760)).collect();
        let full = page(&rows, b"k");
        assert_eq!(cut(&full, 10, false, b"kz", 760), Cut::At(10), "rising keys leave full pages behind");
        assert_eq!(cut(&full, 0, false, b"k\0", 760), Cut::At(5));
        assert_eq!(cut(&full, 3, false, b"k\x06", 10), Cut::None);
        let two = page(&[(b"a".to_vec(), 4000), (b"c".to_vec(), 4000)], b"");
        assert_eq!(cut(&two, 1, false, b"b", 7990), Cut::Without(1), "a long row stands alone");
        assert_eq!(cut(&two, 0, true, b"a", 7990), Cut::At(1));
    }

    #[test]
    fn a_prefix_that_is_lost_is_counted() {
        let long = vec![b'p'; 500];
        let rows: Vec<_> = (0..30u8).map(|n| ([long.as_slice(), &[n]].concat(), 200)).collect();
        let full = page(&rows, &long);
        // Without the prefix an entry takes 712 bytes: beside the new one, eleven others fit.
        assert_eq!(cut(&full, 0, false, b"a", 10), Cut::At(12));
        assert_eq!(cut(&full, 30, false, b"z", 10), Cut::At(30));
    }
}
