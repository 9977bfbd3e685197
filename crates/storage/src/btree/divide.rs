//! Keys that divide a tree into parts of about the same size, for work that goes on at several places of it at once; and how
//! many leaves a range has, about.
//!
//! The upper levels are read until they name enough keys to choose from; parts then differ by a share of what one of these
//! keys stands for. Keys are advice: the tree may change meanwhile, and a part may turn out empty. No latch is held from node
//! to node; a node that is no longer where its parent said ends the search, with what has been found.

use super::node::child_at;
use super::{Seek, Tree};
use crate::error::StorageError;
use crate::ids::PageId;
use crate::page::{Slotted, header};
use crate::spec::KeyRange;
use std::ops::{Bound, RangeInclusive};

/// Keys to choose from for each part.
const CHOICES: usize = 16;
/// Nodes of one level that are read to count what is below them; of more, this many at even distances tell of the others.
const COUNTED_NODES: usize = 64;

/// One part of so many of the pool's frames takes the nodes that are read in one batch.
const BATCH_SHARE: usize = 16;

/// The keys between the children of some nodes of one level, in order, and the children: one more.
struct Level {
    keys: Vec<Vec<u8>>,
    children: Vec<PageId>,
    level: u8,
}

impl Tree<'_> {
    /// Keys, rising, each of which begins a part but for the first: of as many parts as have about `leaves_each` leaves, if that
    /// is inside of `parts`, else of what is nearest. Fewer where the tree has too few leaves.
    pub(crate) fn dividing_keys(&self, parts: RangeInclusive<usize>, leaves_each: usize) -> Result<Vec<Vec<u8>>, StorageError> {
        let (least, most) = parts.into_inner();
        assert!(0 < least && least <= most && leaves_each > 0, "parts are some, and have leaves");
        let mut found = self.level_of(self.info.root, None)?;
        while found.keys.len() < most * CHOICES && found.level > 1 {
            let Some(finer) = self.level_below(&found) else { break };
            found = finer;
        }
        // The children are leaves; those of higher levels stand for hundreds each.
        let parts = if found.level == 1 { (found.children.len() / leaves_each).clamp(least, most) } else { most };
        let before = |part: usize| found.keys.get((part * found.children.len() / parts).checked_sub(1)?).cloned();
        let mut chosen: Vec<Vec<u8>> = (1..parts).filter_map(before).collect();
        chosen.dedup();
        Ok(chosen)
    }

    /// How many leaves there are: exactly where one level of few nodes stands above them, about elsewhere.
    pub(crate) fn leaf_count(&self) -> Result<u64, StorageError> {
        let root = self.level_of(self.info.root, None)?;
        let (mut nodes, mut level, mut count) = (root.children, root.level, 1.0);
        if level == 0 {
            return Ok(1);
        }
        count *= nodes.len() as f64;
        while level > 1 {
            level -= 1;
            let read = nodes.len().clamp(1, COUNTED_NODES);
            let sample = (0..read).filter_map(|at| nodes.get(at * nodes.len() / read));
            let below: Vec<Vec<PageId>> = sample.filter_map(|node| Some(self.level_of(*node, Some(level)).ok()?.children)).collect();
            let children: usize = below.iter().map(Vec::len).sum();
            count *= children as f64 / below.len().max(1) as f64;
            nodes = below.into_iter().flatten().collect();
        }
        Ok(count.max(1.0) as u64)
    }

    /// About how many leaves `range` has: as if every node had as many children as those on the way to where it starts.
    pub(crate) fn leaves_between(&self, range: &KeyRange) -> Result<usize, StorageError> {
        let start = match &range.start {
            Bound::Included(key) | Bound::Excluded(key) => Seek::Key(key),
            Bound::Unbounded => Seek::First,
        };
        let (start, leaves) = self.place_of(start)?;
        let end = match &range.end {
            Bound::Included(key) | Bound::Excluded(key) => self.place_of(Seek::Key(key))?.0,
            Bound::Unbounded => 1.0,
        };
        // The leaf at the end is one as well.
        Ok(((end - start).max(0.0) * leaves) as usize + 1)
    }

    /// Which share of the tree's leaves lies before the one sought, and how many leaves there are, about.
    fn place_of(&self, seek: Seek<'_>) -> Result<(f64, f64), StorageError> {
        let (mut before, mut leaves) = (0.0, 1.0);
        let mut pass = |node: Slotted<'_>, slot: usize| {
            leaves *= node.len() as f64;
            before += slot as f64 / leaves;
        };
        let above = self.above_leaf(seek, &mut pass)?;
        assert!(above.is_none_or(|(node, _)| header::level(&node) == 1), "the node above a leaf is of level 1");
        Ok((before, leaves))
    }

    fn level_of(&self, node: PageId, level: Option<u8>) -> Result<Level, StorageError> {
        let page = self.store.read(node)?;
        let level = self.check_node(&page, node, level)?;
        let mut found = Level { keys: Vec::new(), children: Vec::new(), level };
        if level == 0 {
            return Ok(found);
        }
        let node = Slotted(&page);
        for slot in 0..node.len() {
            found.children.push(child_at(node, slot)?);
            if slot > 0 {
                let mut key = Vec::new();
                node.key(slot, &mut key);
                found.keys.push(key);
            }
        }
        Ok(found)
    }

    fn level_below(&self, above: &Level) -> Option<Level> {
        let mut found = Level { keys: Vec::new(), children: Vec::new(), level: above.level - 1 };
        let batch = (self.store.pool().frame_count() / BATCH_SHARE).max(1);
        for (at, child) in above.children.iter().enumerate() {
            if at % batch == 0 {
                // One after another, each would wait for the disk. What cannot be read is met below.
                let end = above.children.len().min(at + batch);
                let _ = self.store.prefetch(&above.children[at..end]);
            }
            if at > 0 {
                found.keys.push(above.keys[at - 1].clone());
            }
            let own = self.level_of(*child, Some(found.level)).ok()?;
            found.keys.extend(own.keys);
            found.children.extend(own.children);
        }
        Some(found)
    }
}
