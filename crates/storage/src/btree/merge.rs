//! Sparse nodes put together, and roots that have one child left made lower.
//!
//! ```text
//!   parent: ... | a: left | b: right | ...          parent: ... | a: right | ...
//!   before <──> left <──> right <──> after    ──►   before <──> right <──> after        left is free after commit
//! ```
//! Rows move to the right only, as in a split: a sweep that goes from left to right by key misses none. Leaves are merged
//! when all their rows are settled, since untagged rows take their writer from the page; inner nodes when a merge below
//! has left them sparse. A root with one child takes its entries and its level.
//!
//! Invariants: 1. two nodes are merged only under one parent, all exclusively latched with the node before. 2. The merged
//! node keeps a quarter of its page free, so that the next insert does not split it again. 3. A freed node names no
//! neighbours: a scan that still has its id finds that it is not beside the leaf it came from, and descends.
//! Latches: path, before, left, right; the node before is only tried where it hangs elsewhere. Failure: nothing is changed.

use super::node::{child_at, child_bytes, common_bytes, slot_for};
use super::{Settler, Tree};
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::mini::{Handle, Mini};
use crate::page::header::{self, HEADER_BYTES};
use crate::page::packing::Packer;
use crate::page::slotted::SLOT_BYTES;
use crate::page::{Entry, Format, PAGE_BYTES, PageBytes, PageOp, PageType, Slotted, op};

/// Bytes of a page for prefix, entries and slots.
pub(super) const BODY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
/// Most bytes of a merged node.
const MERGED_BYTES_MAX: usize = BODY_BYTES / 4 * 3;
/// A node with less in use is worth a merge.
const SPARSE_BYTES: usize = BODY_BYTES / 4;

/// Which nodes are put together, and how full the one becomes.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Only if one of the two has little left.
    pub(super) only_sparse: bool,
    pub(super) bytes_max: usize,
}

impl Limit {
    const OF_SPARSE: Self = Self { only_sparse: true, bytes_max: MERGED_BYTES_MAX };
}

/// Whether so little of a node is in use that it should be merged.
pub(super) fn is_sparse(page: &PageBytes) -> bool {
    BODY_BYTES - Slotted(page).free_bytes().min(BODY_BYTES) < SPARSE_BYTES
}

/// Whether every view sees every row of a leaf as it stands there.
pub(super) fn is_settled(page: &PageBytes, settler: &dyn Settler) -> bool {
    header::tagged_count(page) == 0 && header::ghost_count(page) == 0 && settler.seen_by_all(header::creator_number(page))
}

/// The rows of some nodes whose entries are packed, as they were before: memory for [`entries_of`].
pub(super) fn rows_of(nodes: &[Slotted<'_>]) -> Result<Vec<Vec<u8>>, StorageError> {
    let mut rows = Vec::new();
    for node in nodes.iter().filter(|node| !node.dictionary().is_empty()) {
        for slot in (0..node.len()).filter(|slot| node.entry(*slot).packed) {
            let mut whole = Vec::new();
            node.row(slot, &mut whole)?;
            rows.push(whole);
        }
    }
    Ok(rows)
}

/// The entries of some nodes, one after the other, with whole keys and none packed; `rows` are what [`rows_of`] has of them.
pub(super) fn entries_of<'a>(nodes: &[Slotted<'a>], rows: &'a [Vec<u8>]) -> Vec<(Vec<u8>, Entry<'a>)> {
    let mut entries = Vec::new();
    let mut rows = rows.iter();
    for node in nodes {
        for slot in 0..node.len() {
            let mut key = Vec::new();
            node.key(slot, &mut key);
            let entry = node.entry(slot);
            let mut whole = |entry: Entry<'a>| Entry { packed: false, payload: rows.next().expect("a row of each packed entry"), ..entry };
            entries.push((key, if entry.packed { whole(entry) } else { entry }));
        }
    }
    entries
}

/// Entries of a node to be made, and what its page begins with.
struct Parts {
    dictionary: Vec<u8>,
    entries: Vec<Vec<u8>>,
}

impl Parts {
    fn bytes(&self) -> usize {
        self.dictionary.len() + self.entries.iter().map(|one| one.len() + SLOT_BYTES).sum::<usize>()
    }

    fn plain(prefix_bytes: usize, entries: &[(Vec<u8>, Entry<'_>)]) -> Self {
        let encoded = |(key, entry): &(Vec<u8>, Entry<'_>)| {
            let mut bytes = Vec::new();
            Entry { suffix: &key[prefix_bytes..], ..*entry }.encode(&mut bytes);
            bytes
        };
        Self { dictionary: Vec::new(), entries: entries.iter().map(encoded).collect() }
    }

    fn packed(prefix_bytes: usize, entries: &[(Vec<u8>, Entry<'_>)]) -> Option<Self> {
        let packer = Packer::train(&entries.iter().map(|(_, entry)| entry.payload).collect::<Vec<_>>())?;
        let mut packed = Vec::new();
        let mut encoded = |(key, entry): &(Vec<u8>, Entry<'_>)| {
            packed.clear();
            let is_packed = packer.pack(entry.payload, &mut packed);
            let mut bytes = Vec::new();
            let payload = if is_packed { &packed } else { entry.payload };
            Entry { suffix: &key[prefix_bytes..], packed: is_packed, payload, ..*entry }.encode(&mut bytes);
            bytes
        };
        let entries = entries.iter().map(&mut encoded).collect();
        Some(Self { dictionary: packer.dictionary().to_vec(), entries })
    }
}

/// A node like `like`, on page `id`, with these entries, packed if they do not fit otherwise and the tree packs its leaves; `None`
/// if they take more than `bytes_max`.
pub(super) fn image(
    like: &PageBytes,
    id: PageId,
    (left, right): (PageId, PageId),
    entries: &[(Vec<u8>, Entry<'_>)],
    (bytes_max, packs): (usize, bool),
) -> Option<Box<PageBytes>> {
    let prefix = match entries {
        [] => &[],
        [(first, _), .., (last, _)] => &first[..common_bytes(first, last)],
        [(only, _)] => &only[..],
    };
    let mut parts = Parts::plain(prefix.len(), entries);
    if prefix.len() + parts.bytes() > bytes_max && packs {
        parts = Parts::packed(prefix.len(), entries)?;
    }
    if prefix.len() + parts.bytes() > bytes_max {
        return None;
    }
    let level = header::level(like);
    let mut made: Box<PageBytes> = Box::new([0; PAGE_BYTES]);
    let mut apply = |operation: &PageOp<'_>| op::apply(&mut made, id, operation).expect("the sizes were added up");
    apply(&PageOp::Format(Format {
        page_type: if level == 0 { PageType::Leaf } else { PageType::Inner },
        tree: header::tree(like),
        object_id: header::object_id(like),
        index_id: header::index_id(like),
        level,
        creator: TxnId(0),
    }));
    apply(&PageOp::SetLeft(left));
    apply(&PageOp::SetRight(right));
    apply(&PageOp::SetPrefix(prefix));
    if !parts.dictionary.is_empty() {
        apply(&PageOp::SetDictionary(&parts.dictionary));
    }
    for (slot, bytes) in parts.entries.iter().enumerate() {
        apply(&PageOp::SlotInsert { slot: u16::try_from(slot).expect("slots are fewer than 64 Ki"), bytes });
    }
    Some(made)
}

impl<'a> Tree<'a> {
    /// Merges the leaf to which `key` leads with one beside it, if both are settled and fit one page well; then the nodes
    /// above it, as far as that has left them sparse.
    pub(crate) fn merge_leaf(&self, key: &[u8], settler: &dyn Settler) -> Result<(), StorageError> {
        for level in 0..u8::MAX {
            if !self.merge_at(key, level, settler)? {
                break;
            }
        }
        Ok(())
    }

    /// The node above `level` on the way to `key`, latched exclusively with all above it; `None` if there is none.
    pub(super) fn parent_at(&self, mini: &mut Mini<'a>, key: &[u8], level: u8) -> Result<Option<Handle>, StorageError> {
        let mut node = mini.latch(self.info.root)?;
        let mut found = self.check_node(mini.page(node), self.info.root, None)?;
        if found <= level {
            return Ok(None);
        }
        while found > level + 1 {
            let view = Slotted(mini.page(node));
            let child = child_at(view, slot_for(view, key))?;
            node = mini.latch(child)?;
            found = self.check_node(mini.page(node), child, Some(found - 1))?;
        }
        Ok(Some(node))
    }

    /// Merges at one level; true if something was merged or the tree became lower.
    pub(super) fn merge_at(&self, key: &[u8], level: u8, settler: &dyn Settler) -> Result<bool, StorageError> {
        let mut mini = self.begin();
        let Some(parent) = self.parent_at(&mut mini, key, level)? else { return Ok(false) };
        let view = Slotted(mini.page(parent));
        let (at, count) = (slot_for(view, key), view.len());
        let merged = count >= 2 && self.merge_children(&mut mini, parent, at.min(count - 2), settler, Limit::OF_SPARSE)?;
        let lowered = self.lower_root(&mut mini, parent)?;
        if merged || lowered {
            mini.commit()?;
        }
        Ok(merged || lowered)
    }

    /// Moves the entries of the child in `slot` to the child behind it.
    pub(super) fn merge_children(
        &self,
        mini: &mut Mini<'a>,
        parent: Handle,
        slot: usize,
        settler: &dyn Settler,
        limit: Limit,
    ) -> Result<bool, StorageError> {
        let view = Slotted(mini.page(parent));
        let level = header::level(mini.page(parent)) - 1;
        let (left_id, right_id) = (child_at(view, slot)?, child_at(view, slot + 1)?);
        let before = match slot.checked_sub(1) {
            Some(before) => Some(mini.latch(child_at(Slotted(mini.page(parent)), before)?)?),
            // It hangs under another parent, and is to be latched before these two, without waiting.
            None => match header::left(&*self.store.read(left_id)?) {
                PageId::NONE => None,
                before => match mini.try_latch(before)? {
                    Some(latched) => Some(latched),
                    None => return Ok(false),
                },
            },
        };
        let (left, right) = (mini.latch(left_id)?, mini.latch(right_id)?);
        self.check_node(mini.page(left), left_id, Some(level))?;
        self.check_node(mini.page(right), right_id, Some(level))?;
        let (left_page, right_page) = (mini.page(left), mini.page(right));
        let before_id = before.map_or(PageId::NONE, |before| mini.id(before));
        let beside = header::left(left_page) == before_id && header::right(left_page) == right_id && header::left(right_page) == left_id;
        let settled = level > 0 || is_settled(left_page, settler) && is_settled(right_page, settler);
        if !beside || !settled || limit.only_sparse && !(is_sparse(left_page) || is_sparse(right_page)) {
            return Ok(false);
        }
        let nodes = [Slotted(left_page), Slotted(right_page)];
        let rows = rows_of(&nodes)?;
        let entries = entries_of(&nodes, &rows);
        let packs = level == 0 && self.info.packs_leaves;
        let neighbours = (before_id, header::right(right_page));
        let Some(merged) = image(right_page, right_id, neighbours, &entries, (limit.bytes_max, packs)) else { return Ok(false) };
        let mut separator = Vec::new();
        let child = child_bytes(right_id);
        Entry { payload: &child, ..Slotted(mini.page(parent)).entry(slot) }.encode(&mut separator);
        mini.apply(right, PageOp::Image { lz4: &PageOp::compress(&merged) })?;
        if let Some(before) = before {
            mini.apply(before, PageOp::SetRight(right_id))?;
        }
        mini.apply(left, PageOp::SetLeft(PageId::NONE))?;
        mini.apply(left, PageOp::SetRight(PageId::NONE))?;
        let place = |slot: usize| u16::try_from(slot).expect("slots are few");
        mini.apply(parent, PageOp::SlotReplace { slot: place(slot), bytes: &separator })?;
        mini.apply(parent, PageOp::SlotRemove { slot: place(slot + 1) })?;
        mini.free(self.info.unit, left_id)?;
        Ok(true)
    }

    /// Gives the root the entries and the level of its only child, if `node` is the root and has but one.
    pub(super) fn lower_root(&self, mini: &mut Mini<'a>, node: Handle) -> Result<bool, StorageError> {
        if mini.id(node) != self.info.root || Slotted(mini.page(node)).len() != 1 {
            return Ok(false);
        }
        let level = header::level(mini.page(node)) - 1;
        let child_id = child_at(Slotted(mini.page(node)), 0)?;
        let child = mini.latch(child_id)?;
        let page = mini.page(child);
        self.check_node(page, child_id, Some(level))?;
        let alone = header::left(page) == PageId::NONE && header::right(page) == PageId::NONE;
        // A leaf's rows may take their writer from it; the root would have to take it over with them.
        let plain = level > 0 || header::creator_number(page) == 0;
        if !alone || !plain {
            return Ok(false);
        }
        let rows = rows_of(&[Slotted(page)])?;
        let entries = entries_of(&[Slotted(page)], &rows);
        let packs = level == 0 && self.info.packs_leaves;
        let lower = image(page, self.info.root, (PageId::NONE, PageId::NONE), &entries, (BODY_BYTES, packs));
        let Some(lower) = lower else { return Ok(false) };
        mini.apply(node, PageOp::Image { lz4: &PageOp::compress(&lower) })?;
        mini.free(self.info.unit, child_id)?;
        Ok(true)
    }
}
