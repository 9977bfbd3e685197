//! Leaves filled up from the end of a tree to its beginning: ALTER INDEX REORGANIZE.
//!
//! ```text
//!   before <──> left [a b c d] <──> right [e f]          one fits:   before <──> right [a b c d e f]       left is free
//!                                                        else:       before <──> new [a b] <──> right [c d e f]   left is free
//! ```
//! Rows move to the right only, as in a split and a merge, so that a scan going to the right, which passes over what it has
//! seen, misses none and sees none twice. A scan going to the left that holds the id of the left leaf finds it freed, and
//! descends: that is why what stays of the left leaf gets a page of its own.
//!
//! Invariants: 1. a step changes two leaves under one parent, exclusively latched with the leaf before, in one
//! mini-transaction. 2. Leaves whose rows are not all settled stay as they are: untagged rows take their writer from the page.
//! Latches: path, before, left, right, then maps by the allocator. Failure: `FileFull` and `LogFull` before any change.

use super::merge::{BODY_BYTES, Limit, entries_of, image, is_settled, rows_of};
use super::node::{child_at, child_bytes, separator, slot_for};
use super::{Settler, Tree};
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::mini::{Handle, Mini};
use crate::page::{Entry, Format, PageOp, PageType, Slotted, header};

/// Least bytes that a move must bring to the right: less is not worth two page images in the log.
const MOVED_BYTES_MIN: usize = BODY_BYTES / 8;

/// An inner node's entry beside its key: more than its head, page id and slot.
const ENTRY_BYTES: usize = 32;

/// The leaves of a step.
struct Pair {
    parent: Handle,
    slot: usize,
    before: Option<Handle>,
    left: Handle,
    right: Handle,
}

impl<'a> Tree<'a> {
    /// Fills the leaf to which `key` leads from the one before it under the same parent, up to `fill_percent`; true if that
    /// one is in it whole, and the next before it may follow.
    pub(crate) fn pack_leaf(&self, key: &[u8], settler: &dyn Settler, fill_percent: u8) -> Result<bool, StorageError> {
        let bytes_max = BODY_BYTES * usize::from(fill_percent.clamp(1, 100)) / 100;
        let mut mini = self.begin();
        let Some(parent) = self.parent_at(&mut mini, key, 0)? else { return Ok(false) };
        let Some(slot) = slot_for(Slotted(mini.page(parent)), key).checked_sub(1) else { return Ok(false) };
        if self.merge_children(&mut mini, parent, slot, settler, Limit { only_sparse: false, bytes_max })? {
            self.lower_root(&mut mini, parent)?;
            mini.commit()?;
            for level in 1..u8::MAX {
                if !self.merge_at(key, level, settler)? {
                    break;
                }
            }
            return Ok(true);
        }
        drop(mini);
        self.move_tail(key, settler, bytes_max).map(|()| false)
    }

    /// Latches the leaf that `key` leads to and the one before it; `None` where they are not what they were.
    fn latch_pair(&self, mini: &mut Mini<'a>, key: &[u8]) -> Result<Option<Pair>, StorageError> {
        let Some(parent) = self.parent_at(mini, key, 0)? else { return Ok(None) };
        let view = Slotted(mini.page(parent));
        let Some(slot) = slot_for(view, key).checked_sub(1) else { return Ok(None) };
        let (left_id, right_id) = (child_at(view, slot)?, child_at(view, slot + 1)?);
        let before = match slot.checked_sub(1) {
            Some(before) => Some(mini.latch(child_at(Slotted(mini.page(parent)), before)?)?),
            None => match header::left(&*self.store.read(left_id)?) {
                PageId::NONE => None,
                before => match mini.try_latch(before)? {
                    Some(latched) => Some(latched),
                    None => return Ok(None),
                },
            },
        };
        let (left, right) = (mini.latch(left_id)?, mini.latch(right_id)?);
        let before_id = before.map_or(PageId::NONE, |before| mini.id(before));
        let (left_page, right_page) = (mini.page(left), mini.page(right));
        let beside = header::left(left_page) == before_id && header::right(left_page) == right_id && header::left(right_page) == left_id;
        Ok(beside.then_some(Pair { parent, slot, before, left, right }))
    }

    /// Moves as many of the left leaf's last rows as fit to the right one.
    fn move_tail(&self, key: &[u8], settler: &dyn Settler, bytes_max: usize) -> Result<(), StorageError> {
        let mut mini = self.begin();
        let Some(pair) = self.latch_pair(&mut mini, key)? else { return Ok(()) };
        let (left_id, right_id) = (mini.id(pair.left), mini.id(pair.right));
        let (left_copy, right_copy) = (*mini.page(pair.left), *mini.page(pair.right));
        if !is_settled(&left_copy, settler) || !is_settled(&right_copy, settler) {
            return Ok(());
        }
        let nodes = [Slotted(&left_copy), Slotted(&right_copy)];
        let rows = rows_of(&nodes)?;
        let entries = entries_of(&nodes, &rows);
        let packs = self.info.packs_leaves;
        let left_count = Slotted(&left_copy).len();
        // Cuts that leave something on the left; the more is taken the less fits, so the least cut that fits is sought.
        let fits =
            |cut: usize| image(&right_copy, right_id, (left_id, header::right(&right_copy)), &entries[cut..], (bytes_max, packs)).is_some();
        let (mut low, mut high) = (1, left_count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if fits(middle) { high = middle } else { low = middle + 1 }
        }
        let cut = low;
        let moved: usize = (cut..left_count).map(|slot| Slotted(&left_copy).bytes(slot).len()).sum();
        if cut >= left_count || moved < MOVED_BYTES_MIN {
            return Ok(());
        }
        // A part of packed rows is packed anew, and might share less.
        if packs && image(&left_copy, left_id, (left_id, right_id), &entries[..cut], (BODY_BYTES, packs)).is_none() {
            return Ok(());
        }
        let view = Slotted(mini.page(pair.parent));
        let new_separator = separator(&entries[cut - 1].0, &entries[cut].0).to_vec();
        // The parent may have no room for a longer one.
        if new_separator.len() + ENTRY_BYTES > view.free_bytes() || !new_separator.starts_with(view.prefix()) {
            return Ok(());
        }
        let new = mini.allocate(self.info.unit, leaf_format(&left_copy))?;
        let new_id = mini.id(new);
        let before_id = header::left(&left_copy);
        let left_image = image(&left_copy, new_id, (before_id, right_id), &entries[..cut], (BODY_BYTES, packs));
        let right_image = image(&right_copy, right_id, (new_id, header::right(&right_copy)), &entries[cut..], (bytes_max, packs));
        let (Some(left_image), Some(right_image)) = (left_image, right_image) else {
            return Err(StorageError::Bug("a part of a leaf does not fit one".into()));
        };
        mini.apply(new, PageOp::Image { lz4: &PageOp::compress(&left_image) })?;
        mini.apply(pair.right, PageOp::Image { lz4: &PageOp::compress(&right_image) })?;
        if let Some(before) = pair.before {
            mini.apply(before, PageOp::SetRight(new_id))?;
        }
        mini.apply(pair.left, PageOp::SetLeft(PageId::NONE))?;
        mini.apply(pair.left, PageOp::SetRight(PageId::NONE))?;
        self.hang_pair(&mut mini, &pair, (new_id, right_id), &new_separator)?;
        mini.free(self.info.unit, left_id)?;
        mini.commit().map(drop)
    }

    /// Gives the parent the left leaf's new page and the key that now leads to the right one.
    fn hang_pair(
        &self,
        mini: &mut Mini<'a>,
        pair: &Pair,
        (left_id, right_id): (PageId, PageId),
        right_key: &[u8],
    ) -> Result<(), StorageError> {
        let place = |slot: usize| u16::try_from(slot).expect("slots are few");
        let prefix_bytes = Slotted(mini.page(pair.parent)).prefix().len();
        let mut bytes = Vec::new();
        Entry { payload: &child_bytes(left_id), ..Slotted(mini.page(pair.parent)).entry(pair.slot) }.encode(&mut bytes);
        mini.apply(pair.parent, PageOp::SlotReplace { slot: place(pair.slot), bytes: &bytes })?;
        bytes.clear();
        Entry::plain(&right_key[prefix_bytes..], &child_bytes(right_id)).encode(&mut bytes);
        mini.apply(pair.parent, PageOp::SlotReplace { slot: place(pair.slot + 1), bytes: &bytes })
    }
}

fn leaf_format(like: &crate::page::PageBytes) -> Format {
    Format {
        page_type: PageType::Leaf,
        tree: header::tree(like),
        object_id: header::object_id(like),
        index_id: header::index_id(like),
        level: 0,
        creator: TxnId(0),
    }
}
