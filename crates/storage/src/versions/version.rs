//! A version of a row, wherever it lies, and what a change makes of the one before.
//!
//! ```text
//!   leaf entry (writer, pointer) ──> version record (writer, pointer) ──> ... ──> 0: no row before
//!                   │
//!                   └ SAME: a ghost that kept its row; the row itself is the version before, seen by everybody
//! ```
//! An entry without a tag was written by the page's creator and has nothing before it.
//!
//! Invariants: 1. `plan` never lets a version be lost that a view not seeing `me` needs: it is pushed, or kept in place
//! (SAME), or the writer's own and its pointer goes on. 2. SAME is only ever on ghosts. No locks, no failure.

use super::commit_table::{Visibility, txn_of};
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::page::{Entry, PAGE_BYTES, VersionTag};

/// The pointer of a ghost whose own bytes are the version before.
pub(crate) const SAME: u64 = u64::MAX;

/// Names a record of the version store.
pub(crate) fn pointer(page: PageId, slot: u16) -> u64 {
    (u64::from(page.file) << 48) | (u64::from(page.page) << 16) | u64::from(slot)
}

/// What [`pointer`] named.
pub(crate) fn target(pointer: u64) -> (PageId, u16) {
    let cut = |shift: u32| pointer >> shift;
    let page = PageId { file: cut(48) as u16, page: (cut(16) & 0xFFFF_FFFF) as u32 };
    (page, (pointer & 0xFFFF) as u16)
}

/// One version of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version<'a> {
    pub(crate) ghost: bool,
    pub(crate) writer: u64,
    pub(crate) pointer: u64,
    pub(crate) large: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// The payload is packed, and nothing away from its leaf.
    pub(crate) packed: bool,
}

impl<'a> Version<'a> {
    /// The version an entry of a leaf made by `creator` is.
    #[inline]
    pub(crate) fn of(entry: &Entry<'a>, creator: u64) -> Self {
        let (writer, pointer) = entry.tag.map_or((creator, 0), |tag| (tag.txn.0, tag.version));
        Self { ghost: entry.ghost, writer, pointer, large: entry.large_bytes, payload: entry.payload, packed: entry.packed }
    }

    /// The tag it must carry on a leaf whose creator is `creator`.
    pub(crate) fn tag_on(&self, creator: u64) -> Option<VersionTag> {
        let needless = self.writer == creator && self.pointer == 0;
        (!needless).then_some(VersionTag { txn: TxnId(self.writer), version: self.pointer })
    }

    /// The same row once everybody sees its writer.
    pub(crate) fn settled(self) -> Self {
        Self { writer: 0, pointer: 0, ..self }
    }
}

/// What is to be done with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A row where none is seen.
    Insert,
    /// Other bytes for a row.
    Update,
    /// No row any more.
    Delete,
}

/// Where the tag of the new version points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// To this.
    At(u64),
    /// To the record that is pushed.
    Pushed,
}

/// How an entry changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// The version to put into the store first.
    pub(crate) push: Option<Version<'a>>,
    /// Where the new tag points.
    pub(crate) before: Before,
    /// The entry keeps its bytes and becomes a ghost.
    pub(crate) keep_bytes: bool,
    /// The entry before was the transaction's own: undoing must restore it, not what was there before the transaction.
    pub(crate) again: bool,
}

/// Plans a change by the writer `me` of `current`, which is absent, its transaction's own, or committed; live or ghost as
/// the change demands. A version of an earlier command of the same transaction is pushed like another's: views taken
/// between the two commands see it.
pub(crate) fn plan<'a>(change: Change, current: Option<Version<'a>>, me: u64, seen_by_all: bool) -> Plan<'a> {
    let Some(current) = current else {
        return Plan { push: None, before: Before::At(0), keep_bytes: false, again: false };
    };
    assert!(current.ghost == (change == Change::Insert), "{change:?} of a row that is ghost: {}", current.ghost);
    if txn_of(current.writer) == txn_of(me) && current.writer != me {
        return Plan { push: Some(current), before: Before::Pushed, keep_bytes: false, again: true };
    }
    if current.writer == me {
        let kept = current.pointer == SAME;
        let push = kept.then_some(Version { ghost: false, ..current.settled() });
        let before = if kept { Before::Pushed } else { Before::At(current.pointer) };
        return Plan { push, before, keep_bytes: false, again: true };
    }
    let first = Plan { push: None, before: Before::At(0), keep_bytes: false, again: false };
    match change {
        Change::Insert if seen_by_all => first,
        Change::Delete if seen_by_all => Plan { before: Before::At(SAME), keep_bytes: true, ..first },
        _ => {
            let pushed = if seen_by_all { current.settled() } else { current };
            Plan { push: Some(pushed), before: Before::Pushed, ..first }
        }
    }
}

/// The bytes that a version record's entry has in place of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordKey {
    /// Who pushed the version: until it has committed and everybody sees that, the record is needed.
    pub(crate) pusher: u64,
    /// The tree of the row.
    pub(crate) tree: u64,
    /// The row has been given back to its leaf, large parts and all.
    pub(crate) restored: bool,
}

impl RecordKey {
    pub(crate) const BYTES: usize = 17;
    /// Where `restored` lies.
    pub(crate) const RESTORED_AT: usize = 16;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.pusher.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.tree.to_le_bytes());
        bytes[Self::RESTORED_AT] = u8::from(self.restored);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (pusher, rest) = bytes.split_first_chunk::<8>()?;
        let (tree, rest) = rest.split_first_chunk::<8>()?;
        let &[restored] = rest else { return None };
        Some(Self { pusher: u64::from_le_bytes(*pusher), tree: u64::from_le_bytes(*tree), restored: restored != 0 })
    }
}

/// Encodes a version as a record pushed by `pusher`.
pub(crate) fn encode_record(version: &Version<'_>, pusher: u64, tree: u64, out: &mut Vec<u8>) {
    assert!(!version.packed, "a version leaves its leaf whole");
    let key = RecordKey { pusher, tree, restored: false }.encode();
    let tag = Some(VersionTag { txn: TxnId(version.writer), version: version.pointer });
    Entry { ghost: version.ghost, packed: false, tag, large_bytes: version.large, suffix: &key, payload: version.payload }.encode(out);
}

/// The version a record is.
pub(crate) fn decode_record(bytes: &[u8]) -> Result<(RecordKey, Version<'_>), &'static str> {
    let entry = Entry::parse(bytes).map_err(|malformed| malformed.0)?;
    let key = RecordKey::decode(entry.suffix).ok_or("a version record without its key")?;
    if entry.tag.is_none() || entry.packed {
        return Err("a version record without its tag, or packed");
    }
    Ok((key, Version::of(&entry, 0)))
}

/// The version that `view` sees behind an entry whose writer it does not see. `older` reads the record at a pointer.
pub(crate) fn visible_behind<'a>(
    pointer: u64,
    entry: &Entry<'a>,
    record: &'a mut Vec<u8>,
    view: &Visibility,
    older: &mut dyn FnMut(u64, &mut Vec<u8>) -> Result<(), StorageError>,
) -> Result<Option<Version<'a>>, StorageError> {
    let mut pointer = pointer;
    if pointer == SAME {
        return Ok(Some(Version { ghost: false, ..Version::of(entry, 0) }));
    }
    loop {
        if pointer == 0 {
            return Ok(None);
        }
        record.clear();
        older(pointer, record)?;
        let version = decode_record(record).map_err(|why| damaged(pointer, why))?.1;
        if view.sees(version.writer) {
            break;
        }
        if version.pointer == SAME {
            let version = decode_record(record).map_err(|why| damaged(pointer, why))?.1;
            return Ok(Some(Version { ghost: false, ..version }));
        }
        pointer = version.pointer;
    }
    let version = decode_record(record).map_err(|why| damaged(pointer, why))?.1;
    Ok((!version.ghost).then_some(version))
}

/// Damage at a record.
pub(crate) fn damaged(pointer: u64, why: &str) -> StorageError {
    let (page, slot) = target(pointer);
    StorageError::Damage { page, offset: u64::from(page.page) * PAGE_BYTES as u64, detail: format!("version in slot {slot}: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Version<'static> = Version { ghost: false, writer: 5, pointer: 77, large: &[], payload: b"row", packed: false };
    const GHOST: Version<'static> = Version { ghost: true, ..ROW };

    #[test]
    fn pointers_read_back_and_are_no_marks() {
        let page = PageId { file: 3, page: 0xDEAD_BEEF };
        let made = pointer(page, 700);
        assert_eq!(target(made), (page, 700));
        assert!(made != 0 && made != SAME);
    }

    #[test]
    fn plans() {
        let none = Plan { push: None, before: Before::At(0), keep_bytes: false, again: false };
        let push = |version| Plan { push: Some(version), before: Before::Pushed, ..none };
        let settled = Version { writer: 0, pointer: 0, ..ROW };
        let same = Version { writer: 9, pointer: SAME, ..GHOST };
        for (change, current, seen_by_all, expected) in [
            (Change::Insert, None, false, none),
            (Change::Insert, Some(GHOST), true, none),
            (Change::Insert, Some(GHOST), false, push(GHOST)),
            (Change::Update, Some(ROW), true, push(settled)),
            (Change::Update, Some(ROW), false, push(ROW)),
            (Change::Delete, Some(ROW), true, Plan { before: Before::At(SAME), keep_bytes: true, ..none }),
            (Change::Delete, Some(ROW), false, push(ROW)),
            (Change::Update, Some(Version { writer: 9, ..ROW }), false, Plan { before: Before::At(77), again: true, ..none }),
            (
                Change::Update,
                Some(Version { writer: 9 | (1 << 42), ..ROW }),
                false,
                Plan { again: true, ..push(Version { writer: 9 | (1 << 42), ..ROW }) },
            ),
            (Change::Insert, Some(same), false, Plan { again: true, ..push(Version { ghost: false, ..same.settled() }) }),
        ] {
            assert_eq!(plan(change, current, 9, seen_by_all), expected, "{change:?} {current:?} {seen_by_all}");
        }
    }
}
