//! Keys that divide a tree into parts of about the same size: for work that goes on at several places of it at once.
//!
//! The upper levels are read until they name enough keys to choose from; parts then differ by a share of what one of these
//! keys stands for. Keys are advice: the tree may change meanwhile, and a part may turn out empty. No latch is held from node
//! to node; a node that is no longer where its parent said ends the search, with what has been found.

use super::Tree;
use super::node::child_at;
use crate::error::StorageError;
use crate::ids::PageId;
use crate::page::Slotted;

/// Keys to choose from for each part.
const CHOICES: usize = 16;
/// Nodes of one level that are read to count what is below them; of more, this many at even distances tell of the others.
const COUNTED_NODES: usize = 64;

/// The keys between the children of some nodes of one level, in order, and the children: one more.
struct Level {
    keys: Vec<Vec<u8>>,
    children: Vec<PageId>,
    level: u8,
}

impl Tree<'_> {
    /// Up to `parts - 1` keys, rising: each begins a part. Fewer where the tree is small.
    pub(crate) fn dividing_keys(&self, parts: usize) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut found = self.level_of(self.info.root, None)?;
        while found.keys.len() < parts * CHOICES && found.level > 1 {
            let Some(finer) = self.level_below(&found) else { break };
            found = finer;
        }
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
        for (at, child) in above.children.iter().enumerate() {
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
