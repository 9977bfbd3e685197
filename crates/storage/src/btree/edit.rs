//! One entry of one leaf changed: what the change is, whether it fits, and the operations it takes.
//!
//! The caller holds the leaf exclusively in a mini-transaction and has found the slot. A key that lacks the page's
//! common prefix shortens the prefix first; that too is asked before anything is changed.
//!
//! Invariants: 1. `install` is called only after `fits` said yes on the same page state (asserted by the operations).
//! 2. With `linked`, the tag's pointer is the record pushed in the same mini-transaction, so that a crash keeps both or
//! neither. Failure: none of its own.

use super::node::common_bytes;
use crate::error::StorageError;
use crate::mini::{Handle, Mini};
use crate::page::{Entry, PageBytes, PageOp, Slotted, VersionTag, slotted::SLOT_BYTES};

/// What becomes of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// A new entry at the slot.
    Insert,
    /// Another entry in the slot.
    Replace,
    /// No entry.
    Remove,
}

/// A change of one entry, in buffers that are used again.
#[derive(Debug)]
pub(crate) struct RowEdit {
    pub(crate) kind: EditKind,
    pub(crate) ghost: bool,
    pub(crate) tag: Option<VersionTag>,
    pub(crate) large: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// The payload is packed: it was copied from the very leaf that it goes back to.
    pub(crate) packed: bool,
    /// A version record to push first; empty for none.
    pub(crate) record: Vec<u8>,
    /// The tag's pointer becomes the record pushed.
    pub(crate) linked: bool,
    /// Where the record was pushed.
    pub(crate) record_at: u64,
    /// A record whose version this edit gives back to the leaf with its large parts, 0 if none.
    pub(crate) restores: u64,
    /// References to large parts that the entry held and nothing will hold after.
    pub(crate) freed_large: Vec<u8>,
}

impl Default for RowEdit {
    fn default() -> Self {
        Self {
            kind: EditKind::Remove,
            ghost: false,
            tag: None,
            large: Vec::new(),
            payload: Vec::new(),
            packed: false,
            record: Vec::new(),
            linked: false,
            record_at: 0,
            restores: 0,
            freed_large: Vec::new(),
        }
    }
}

impl RowEdit {
    /// Makes it a removal that does nothing else.
    pub(crate) fn clear(&mut self) {
        self.kind = EditKind::Remove;
        self.ghost = false;
        self.tag = None;
        self.packed = false;
        self.linked = false;
        self.record_at = 0;
        self.restores = 0;
        for buffer in [&mut self.large, &mut self.payload, &mut self.record, &mut self.freed_large] {
            buffer.clear();
        }
    }

    pub(super) fn entry<'a>(&'a self, suffix: &'a [u8]) -> Entry<'a> {
        Entry { ghost: self.ghost, packed: self.packed, tag: self.tag, large_bytes: &self.large, suffix, payload: &self.payload }
    }

    /// Whether the leaf takes it.
    pub(super) fn fits(&self, page: &PageBytes, slot: usize, key: &[u8]) -> bool {
        let leaf = Slotted(page);
        let prefix = leaf.prefix();
        let shared = common_bytes(prefix, key);
        let lost = prefix.len() - shared;
        // Every entry grows by what the prefix loses, the prefix itself shrinks by it once.
        let growth = (lost * leaf.len()).saturating_sub(lost);
        let entry_bytes = self.entry(&key[shared..]).encoded_bytes();
        match self.kind {
            EditKind::Remove => true,
            EditKind::Insert => entry_bytes + SLOT_BYTES + growth <= leaf.free_bytes(),
            EditKind::Replace => entry_bytes + growth <= leaf.free_bytes() + leaf.place(slot).1,
        }
    }

    /// Applies it.
    pub(super) fn install(&self, mini: &mut Mini<'_>, leaf: Handle, slot: usize, key: &[u8]) -> Result<(), StorageError> {
        let slot_number = u16::try_from(slot).expect("slots are fewer than 64 Ki");
        if self.kind == EditKind::Remove {
            return mini.apply(leaf, PageOp::SlotRemove { slot: slot_number });
        }
        let prefix_bytes = Slotted(mini.page(leaf)).prefix().len();
        let shared = common_bytes(Slotted(mini.page(leaf)).prefix(), key);
        if shared < prefix_bytes {
            mini.apply(leaf, PageOp::SetPrefix(&key[..shared]))?;
        }
        let mut bytes = Vec::with_capacity(64 + self.payload.len());
        self.entry(&key[shared..]).encode(&mut bytes);
        match self.kind {
            EditKind::Insert => mini.apply(leaf, PageOp::SlotInsert { slot: slot_number, bytes: &bytes }),
            _ => mini.apply(leaf, PageOp::SlotReplace { slot: slot_number, bytes: &bytes }),
        }
    }
}
