//! A full node becomes two, up to the root if need be, in one mini-transaction.
//!
//! ```text
//!   parent:  ... | c1 | ...            parent:  ... | c1 | sep: c2 | ...
//!                  │            ==>                   │       │
//!            [ a b x c d ]                      [ a b x ]  [ c d ]          siblings relinked
//! ```
//! The left piece stays on its page; the right one gets a new page, logged as one image, or as its few entries.
//! A root that splits hands both pieces to new pages and becomes their parent, so its page id never changes.
//!
//! Invariants: 1. after commit every key is found by descent, and each level is linked left to right. 2. A new leaf keeps
//! the creator of the page it came from, since untagged rows move with it; a leaf that starts with the writer's new row
//! alone has the writer as creator, so the row needs no tag; and a piece with packed entries takes the dictionary along.
//! 3. Nothing is changed before all pages that take part are latched and allocated (`mini`'s reservation covers the log).
//! Latches: the whole path exclusively, then the right neighbour, then maps by the allocator. Failure: `FileFull` and
//! `LogFull` before any change.

use super::Tree;
use super::descend::Path;
use super::edit::{EditKind, RowEdit};
use super::node::{Cut, Draft, child_bytes, separator};
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::mini::{Handle, Mini};
use crate::page::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted, VersionTag, header, op};
use std::ops::Range;

/// Up to so many entries a new page is logged entry by entry: shorter than its image.
const LOGGED_ENTRIES_MAX: usize = 3;

/// A new node to be hung into the level above, right of the node it came from.
struct NewNode {
    separator: Vec<u8>,
    page: PageId,
}

/// Whether a split brought the new entry in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitDone {
    /// It is in.
    Installed,
    /// The node was cut where the entry belongs; it fits one of the halves or another cut away from it.
    LookAgain,
}

impl<'a> Tree<'a> {
    /// Splits a leaf that `edit` does not fit, and installs it unless its length asks for a second split. A record that
    /// `edit` pushes must be pushed only if it is installed: `push` is called then, before the leaf changes.
    pub(super) fn split_leaf(
        &self,
        mini: &mut Mini<'a>,
        path: Path,
        slot: usize,
        key: &[u8],
        edit: &mut RowEdit,
        push: &mut dyn FnMut(&mut Mini<'a>, &mut RowEdit) -> Result<(), StorageError>,
    ) -> Result<SplitDone, StorageError> {
        let page = *mini.page(path.leaf);
        let node = Slotted(&page);
        let replaces = edit.kind == EditKind::Replace;
        let creator = header::creator(&page);
        match (Draft { node, at: slot, replaces, key, entry: edit.entry(&[]) }).cut() {
            Cut::Without(at) => {
                let mut own_key = Vec::new();
                node.key(at, &mut own_key);
                let same = Draft { node, at, replaces: true, key: &own_key, entry: node.entry(at) };
                self.split_node(mini, path.inner, path.leaf, &same, Cut::At(at), creator)?;
                Ok(SplitDone::LookAgain)
            }
            cut => {
                push(mini, edit)?;
                let draft = Draft { node, at: slot, replaces, key, entry: edit.entry(&[]) };
                let (creator, draft) = match edit.tag {
                    // A page that begins with a new row alone is its writer's: neither this row nor the next need tags.
                    Some(VersionTag { txn, version: 0 }) if cut == Cut::At(slot) && slot + 1 == draft.len() && !replaces && !edit.ghost => {
                        (txn, Draft { entry: Entry { tag: None, ..draft.entry }, ..draft })
                    }
                    _ => (creator, draft),
                };
                self.split_node(mini, path.inner, path.leaf, &draft, cut, creator)?;
                Ok(SplitDone::Installed)
            }
        }
    }

    fn split_node(
        &self,
        mini: &mut Mini<'a>,
        mut above: Vec<(Handle, usize)>,
        node: Handle,
        draft: &Draft<'_>,
        cut: Cut,
        creator: TxnId,
    ) -> Result<(), StorageError> {
        let cut = match cut {
            // It fits under a longer common prefix than the node has, if not under the present one.
            Cut::None => return self.keep_left_piece(mini, node, draft, draft.len()),
            Cut::At(cut) => cut,
            Cut::Without(_) => return Err(StorageError::Bug("an inner node's entry is longer than half a page".into())),
        };
        let level = header::level(draft.node.0);
        let Some((parent, parent_slot)) = above.pop() else {
            return self.split_root(mini, node, draft, cut, creator);
        };
        let (left_id, old_right) = (mini.id(node), header::right(draft.node.0));
        let right = mini.allocate(self.info.unit, self.format(level, creator))?;
        let new = NewNode { separator: separator_at(draft, cut), page: mini.id(right) };
        let neighbour = if old_right == PageId::NONE { None } else { Some(mini.latch(old_right)?) };
        self.fill(mini, right, draft, cut..draft.len(), self.format(level, creator), (left_id, old_right))?;
        self.keep_left_piece(mini, node, draft, cut)?;
        mini.apply(node, PageOp::SetRight(new.page))?;
        if let Some(neighbour) = neighbour {
            mini.apply(neighbour, PageOp::SetLeft(new.page))?;
        }
        self.hang_in(mini, above, parent, parent_slot + 1, &new)
    }

    /// Hangs a new node into `parent` at `slot`, splitting the parent if it is full.
    fn hang_in(
        &self,
        mini: &mut Mini<'a>,
        above: Vec<(Handle, usize)>,
        parent: Handle,
        slot: usize,
        new: &NewNode,
    ) -> Result<(), StorageError> {
        let copy = *mini.page(parent);
        let child = child_bytes(new.page);
        let draft = Draft { node: Slotted(&copy), at: slot, replaces: false, key: &new.separator, entry: Entry::plain(&[], &child) };
        let cut = draft.cut();
        self.split_node(mini, above, parent, &draft, cut, TxnId(0))
    }

    /// Puts the draft's new entry into the node it was drafted on.
    fn place_in_node(&self, mini: &mut Mini<'a>, node: Handle, draft: &Draft<'_>) -> Result<(), StorageError> {
        let kind = if draft.replaces { EditKind::Replace } else { EditKind::Insert };
        let entry = draft.entry;
        let edit = RowEdit {
            kind,
            ghost: entry.ghost,
            packed: entry.packed,
            tag: entry.tag,
            large: entry.large_bytes.to_vec(),
            payload: entry.payload.to_vec(),
            ..RowEdit::default()
        };
        edit.install(mini, node, draft.at, draft.key)
    }

    /// Cuts off what moved away, and brings the new entry in if it stays.
    fn keep_left_piece(&self, mini: &mut Mini<'a>, node: Handle, draft: &Draft<'_>, cut: usize) -> Result<(), StorageError> {
        let stays = draft.at < cut;
        let kept = if stays && !draft.replaces { cut - 1 } else { cut };
        let number = |slot: usize| u16::try_from(slot).expect("slots are fewer than 64 Ki");
        if kept < draft.node.len() {
            mini.apply(node, PageOp::Truncate { from_slot: number(kept) })?;
        }
        if stays && draft.replaces {
            // Out with the old first: with the new prefix both might not fit.
            mini.apply(node, PageOp::SlotRemove { slot: number(draft.at) })?;
        }
        if !draft.is_packed(0, cut) && !Slotted(mini.page(node)).dictionary().is_empty() {
            // Nothing that stays needs it, and the new entry may need its room.
            mini.apply(node, PageOp::SetDictionary(&[]))?;
        }
        let prefix_bytes = draft.prefix_bytes(0, cut);
        let present = Slotted(mini.page(node)).prefix().len();
        if prefix_bytes != present && !Slotted(mini.page(node)).is_empty() {
            let prefix = draft.whole_key(0)[..prefix_bytes].to_vec();
            mini.apply(node, PageOp::SetPrefix(&prefix))?;
        }
        if stays {
            let inserted = Draft { node: draft.node, at: draft.at, replaces: false, key: draft.key, entry: draft.entry };
            self.place_in_node(mini, node, &inserted)?;
        }
        Ok(())
    }

    /// A root's pieces go to two new pages; the root becomes their parent.
    fn split_root(&self, mini: &mut Mini<'a>, root: Handle, draft: &Draft<'_>, cut: usize, creator: TxnId) -> Result<(), StorageError> {
        let level = header::level(draft.node.0);
        let (left_format, right_format) = (self.format(level, header::creator(draft.node.0)), self.format(level, creator));
        let (left, right) = (mini.allocate(self.info.unit, left_format)?, mini.allocate(self.info.unit, right_format)?);
        let (left_id, right_id) = (mini.id(left), mini.id(right));
        self.fill(mini, left, draft, 0..cut, left_format, (PageId::NONE, right_id))?;
        self.fill(mini, right, draft, cut..draft.len(), right_format, (left_id, PageId::NONE))?;
        mini.apply(root, PageOp::Format(self.format(level + 1, TxnId(0))))?;
        for (slot, key, child) in [(0, Vec::new(), left_id), (1, separator_at(draft, cut), right_id)] {
            let mut bytes = Vec::new();
            Entry::plain(&key, &child_bytes(child)).encode(&mut bytes);
            mini.apply(root, PageOp::SlotInsert { slot, bytes: &bytes })?;
        }
        Ok(())
    }

    pub(super) fn format(&self, level: u8, creator: TxnId) -> Format {
        Format {
            page_type: if level == 0 { PageType::Leaf } else { PageType::Inner },
            tree: self.info.id,
            object_id: self.info.object_id,
            index_id: self.info.index_id,
            level,
            creator,
        }
    }

    /// Makes a new page of some of the draft's entries between these siblings.
    fn fill(
        &self,
        mini: &mut Mini<'a>,
        page: Handle,
        draft: &Draft<'_>,
        range: Range<usize>,
        format: Format,
        siblings: (PageId, PageId),
    ) -> Result<(), StorageError> {
        let id = mini.id(page);
        let prefix_bytes = draft.prefix_bytes(range.start, range.end);
        let prefix = draft.whole_key(range.start)[..prefix_bytes].to_vec();
        let dictionary = if draft.is_packed(range.start, range.end) { draft.node.dictionary() } else { &[] };
        let mut entries = Vec::with_capacity(range.len());
        for index in range {
            let key = draft.whole_key(index);
            let mut bytes = Vec::new();
            Entry { suffix: &key[prefix_bytes..], ..draft.entry(index) }.encode(&mut bytes);
            entries.push(bytes);
        }
        if entries.len() <= LOGGED_ENTRIES_MAX {
            return page_ops(siblings, (&prefix, dictionary), &entries, &mut |operation| mini.apply(page, operation));
        }
        let mut image: Box<PageBytes> = Box::new([0; PAGE_BYTES]);
        let mut draw = |operation: PageOp<'_>| {
            op::apply(&mut image, id, &operation).map_err(|error| StorageError::Bug(format!("piece of a split: {error:?}")))
        };
        draw(PageOp::Format(format))?;
        page_ops(siblings, (&prefix, dictionary), &entries, &mut draw)?;
        mini.apply(page, PageOp::Image { lz4: &PageOp::compress(&image) })
    }
}

/// The key that leads to the piece beginning at `cut`.
fn separator_at(draft: &Draft<'_>, cut: usize) -> Vec<u8> {
    let first = draft.whole_key(cut);
    if header::level(draft.node.0) > 0 {
        return first;
    }
    separator(&draft.whole_key(cut - 1), &first).to_vec()
}

/// The operations that fill a formatted node.
fn page_ops(
    (left, right): (PageId, PageId),
    (prefix, dictionary): (&[u8], &[u8]),
    entries: &[Vec<u8>],
    apply: &mut dyn FnMut(PageOp<'_>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    if left != PageId::NONE {
        apply(PageOp::SetLeft(left))?;
    }
    if right != PageId::NONE {
        apply(PageOp::SetRight(right))?;
    }
    if !prefix.is_empty() {
        apply(PageOp::SetPrefix(prefix))?;
    }
    if !dictionary.is_empty() {
        apply(PageOp::SetDictionary(dictionary))?;
    }
    for (slot, bytes) in entries.iter().enumerate() {
        apply(PageOp::SlotInsert { slot: u16::try_from(slot).expect("slots are fewer than 64 Ki"), bytes })?;
    }
    Ok(())
}
