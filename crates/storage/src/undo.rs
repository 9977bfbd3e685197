//! What a transaction has done, in order, so that it can be undone from any point on.
//!
//! ```text
//!   entry: kind u8 | tree u64 | key length u16 | key | old bytes (Again only) | length of the entry u32
//! ```
//! One buffer, read from its end: an insert costs its key and fifteen bytes. Nothing here is persistent.
//!
//! Invariants: 1. `pop` returns entries in exactly the reverse order of `push`. 2. A position is a length of the buffer
//! between entries. No locks, no failure.

use crate::ids::TreeId;

/// A point in the log: everything below stays.
pub(crate) type Position = usize;

/// One thing done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undo {
    /// The row was changed for the first time: what was before is where its entry points.
    First { tree: TreeId, key: Vec<u8> },
    /// The transaction's own row was changed: this is its entry before, encoded without key; `record` is the store's
    /// copy that holds its large parts, or 0.
    Again { tree: TreeId, key: Vec<u8>, entry: Vec<u8>, record: u64 },
    /// The tree was made.
    TreeMade { tree: TreeId },
    /// The tree was dropped.
    TreeDropped { tree: TreeId },
    /// Rows above the key were appended in bulk (above nothing: to the empty tree).
    Appended { tree: TreeId, above: Option<Vec<u8>> },
}

/// The undo log of a transaction.
#[derive(Debug, Default)]
pub(crate) struct UndoLog {
    bytes: Vec<u8>,
    entry_count: u64,
    /// Entries that are not of rows.
    tree_count: u64,
}

const FIRST: u8 = 1;
const AGAIN: u8 = 2;
const TREE_MADE: u8 = 3;
const TREE_DROPPED: u8 = 4;
const APPENDED: u8 = 5;
const APPENDED_TO_EMPTY: u8 = 6;
const TRAILER_BYTES: usize = 4;

impl UndoLog {
    /// The present point.
    pub(crate) fn position(&self) -> Position {
        self.bytes.len()
    }

    /// Things that can be undone; the measure of a deadlock victim's cost.
    pub(crate) fn entry_count(&self) -> u64 {
        self.entry_count
    }

    fn push(&mut self, kind: u8, tree: TreeId, key: &[u8], rest: &[&[u8]]) {
        let start = self.bytes.len();
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&tree.0.to_le_bytes());
        self.bytes.extend_from_slice(&u16::try_from(key.len()).expect("keys are limited").to_le_bytes());
        self.bytes.extend_from_slice(key);
        for part in rest {
            self.bytes.extend_from_slice(part);
        }
        let length = u32::try_from(self.bytes.len() - start).expect("rows are limited");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.entry_count += 1;
        self.tree_count += u64::from(kind > AGAIN);
    }

    /// Whether nothing but rows was changed.
    pub(crate) fn is_of_rows(&self) -> bool {
        self.tree_count == 0
    }

    pub(crate) fn first(&mut self, tree: TreeId, key: &[u8]) {
        self.push(FIRST, tree, key, &[]);
    }

    pub(crate) fn again(&mut self, tree: TreeId, key: &[u8], entry: &[u8], record: u64) {
        self.push(AGAIN, tree, key, &[&record.to_le_bytes(), entry]);
    }

    pub(crate) fn tree_made(&mut self, tree: TreeId) {
        self.push(TREE_MADE, tree, &[], &[]);
    }

    pub(crate) fn tree_dropped(&mut self, tree: TreeId) {
        self.push(TREE_DROPPED, tree, &[], &[]);
    }

    pub(crate) fn appended(&mut self, tree: TreeId, above: Option<&[u8]>) {
        let kind = if above.is_some() { APPENDED } else { APPENDED_TO_EMPTY };
        self.push(kind, tree, above.unwrap_or_default(), &[]);
    }

    /// Takes the newest entry off, if it lies above `to`.
    pub(crate) fn pop(&mut self, to: Position) -> Option<Undo> {
        if self.bytes.len() <= to {
            return None;
        }
        let end = self.bytes.len() - TRAILER_BYTES;
        let length = u32::from_le_bytes(*self.bytes[end..].first_chunk().expect("entries end with their length")) as usize;
        let start = end - length;
        assert!(start >= to, "positions lie between entries");
        let entry = &self.bytes[start..end];
        let tree = TreeId(u64::from_le_bytes(*entry[1..].first_chunk().expect("entries have a tree")));
        let key_bytes = usize::from(u16::from_le_bytes([entry[9], entry[10]]));
        let (key, rest) = entry[11..].split_at(key_bytes);
        let key = key.to_vec();
        self.tree_count -= u64::from(entry[0] > AGAIN);
        let undo = match entry[0] {
            FIRST => Undo::First { tree, key },
            AGAIN => {
                let record = u64::from_le_bytes(*rest.first_chunk().expect("Again has a record"));
                Undo::Again { tree, key, entry: rest[8..].to_vec(), record }
            }
            TREE_MADE => Undo::TreeMade { tree },
            TREE_DROPPED => Undo::TreeDropped { tree },
            APPENDED => Undo::Appended { tree, above: Some(key) },
            _ => Undo::Appended { tree, above: None },
        };
        self.bytes.truncate(start);
        self.entry_count -= 1;
        Some(undo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_reverse_down_to_a_position() {
        let mut log = UndoLog::default();
        let tree = TreeId(7);
        log.first(tree, b"a");
        log.again(tree, b"", b"old", 42);
        let middle = log.position();
        log.tree_made(TreeId(8));
        log.tree_dropped(TreeId(9));
        log.appended(tree, None);
        log.appended(tree, Some(b"last"));
        assert_eq!((log.entry_count(), log.is_of_rows()), (6, false));
        assert_eq!(log.pop(middle), Some(Undo::Appended { tree, above: Some(b"last".to_vec()) }));
        assert_eq!(log.pop(middle), Some(Undo::Appended { tree, above: None }));
        assert_eq!(log.pop(middle), Some(Undo::TreeDropped { tree: TreeId(9) }));
        assert_eq!(log.pop(middle), Some(Undo::TreeMade { tree: TreeId(8) }));
        assert_eq!(log.pop(middle), None);
        assert!(log.is_of_rows());
        assert_eq!(log.pop(0), Some(Undo::Again { tree, key: Vec::new(), entry: b"old".to_vec(), record: 42 }));
        assert_eq!(log.pop(0), Some(Undo::First { tree, key: b"a".to_vec() }));
        assert!(log.position() == 0 && log.pop(0).is_none());
    }
}
