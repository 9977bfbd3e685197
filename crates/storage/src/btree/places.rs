//! Many places of a tree brought into the pool together, for who goes to all of them next.
//!
//! ```text
//!   keys ──► root ──► nodes of level 2 ──► nodes of level 1 ──► leaves        a batch of requests a level, not a wait a node
//! ```
//! One after another, thousands of descents into a tree that is on the disk would each wait for every level.
//!
//! What is found is advice: no latch is held from level to level, and a node that is no longer where its parent said ends the
//! search for the keys below it. Latches: one node, shared. Failure: the root's; what else cannot be read is met by who needs it.

use super::Tree;
use super::descend::Seek;
use super::node::child_at;
use crate::error::StorageError;
use crate::ids::PageId;
use crate::page::Slotted;
use std::ops::Range;

/// A node, and which of the keys lead to it.
type Below = (PageId, Range<usize>);

impl Tree<'_> {
    /// Brings the leaf with the greatest keys below each of `keys`, which rise, into the pool, and with it those behind it that
    /// the same node names, `leaves` in all. The pool has room for them.
    pub(crate) fn prefetch_below<K: AsRef<[u8]>>(&self, keys: &[K], leaves: usize) -> Result<(), StorageError> {
        assert!(keys.is_sorted_by(|a, b| a.as_ref() <= b.as_ref()), "the keys rise");
        let root = self.store.read(self.info.root)?;
        let height = self.check_node(&root, self.info.root, None)?;
        drop(root);
        let mut nodes: Vec<Below> = vec![(self.info.root, 0..keys.len())];
        for level in (1..=height).rev() {
            let is_last = level == 1;
            let mut found: Vec<Below> = Vec::new();
            for (node, some) in nodes {
                let Ok(page) = self.store.read(node) else { continue };
                if self.check_node(&page, node, Some(level)).is_err() {
                    continue;
                }
                add_children(Slotted(&page), (keys, some), if is_last { leaves } else { 1 }, &mut found)?;
            }
            let pages: Vec<PageId> = found.iter().map(|(page, _)| *page).collect();
            self.store.prefetch(&pages)?;
            nodes = found;
        }
        Ok(())
    }
}

/// Adds the children of a node that `some` of the keys lead to, and those behind each, `count` in all; each child once.
fn add_children<K: AsRef<[u8]>>(
    node: Slotted<'_>,
    (keys, some): (&[K], Range<usize>),
    count: usize,
    found: &mut Vec<Below>,
) -> Result<(), StorageError> {
    let (begin, mut next) = (found.len(), 0);
    for at in some {
        let slot = Seek::Before(keys[at].as_ref()).slot(node);
        for slot in next.max(slot)..node.len().min(slot + count) {
            found.push((child_at(node, slot)?, at..at));
            next = slot + 1;
        }
        if count == 1 && found.len() > begin {
            found.last_mut().expect("just seen").1.end = at + 1;
        }
    }
    Ok(())
}
