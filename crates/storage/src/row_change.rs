//! What becomes of a row when a transaction inserts, updates or deletes it, decided under the leaf's latch.
//!
//! ```text
//!   entry there?  writer aborted      -> give the version before back, look again
//!                 writer open, not me -> impossible: it would hold the key's lock
//!                 newer than snapshot -> SnapshotConflict
//!                 else                -> `versions::version::plan`, encode, push the version before
//! ```
//! Invariants: 1. the undo entry is written after the group is committed and before anybody else can change the row: the
//! key's lock is held. 2. The first group of a transaction in a tree carries its `Touch` record. 3. Log space for undoing
//! is reserved in `push`, before anything is changed.
//! Latches: the leaf, then the version page. Failure: errors leave the row as it was.

use crate::btree::{Decision, EditKind, Editor, RowEdit};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::mini::Mini;
use crate::page::{Entry, PageBytes, Slotted, VersionTag, header};
use crate::txn_locks::{Gap, NextKey};
use crate::undo::UndoLog;
use crate::versions::commit_table::{Fate, Visibility, txn_of};
use crate::versions::records::TxnRecord;
use crate::versions::store::VersionStore;
use crate::versions::version::{self, Before, Change, SAME, Version};

/// Bytes that undoing an edit may log beside twice its entry: page records, headers, a prefix.
const UNDO_OVERHEAD_BYTES: u64 = 256;

/// Log space that a transaction has set aside for its rollback.
#[derive(Debug, Default)]
pub(crate) struct LogReserve {
    pub(crate) held_bytes: u64,
    pub(crate) used_bytes: u64,
}

/// Log that a transaction's end takes: two sectors hold its record and the rest of the block before.
const END_BYTES: u64 = 8 << 10;

impl LogReserve {
    /// Sets bytes aside, more at a time the more there are already.
    pub(crate) fn grow(&mut self, database: &Database, bytes: u64) -> Result<(), StorageError> {
        // With the first change also what its end needs: the record, and the padding of the block that is flushed with it.
        let bytes = if self.used_bytes == 0 { bytes + END_BYTES } else { bytes };
        self.used_bytes += bytes;
        if self.used_bytes > self.held_bytes
            && let Some(log) = database.store.log()
        {
            let step = (self.used_bytes - self.held_bytes).max((self.held_bytes / 2).min(64 << 10));
            if let Err(error) = log.reserve(step) {
                self.used_bytes -= bytes;
                return Err(error);
            }
            self.held_bytes += step;
        }
        Ok(())
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self, database: &Database) {
        if let Some(log) = database.store.log().filter(|_| self.held_bytes > 0) {
            log.unreserve(self.held_bytes);
        }
        *self = Self::default();
    }
}

/// What a row was before a transaction touched it.
pub(crate) enum Original {
    /// It was not there.
    Absent,
    /// These bytes, encoded as a version record, and where they lie in the store if they do.
    Row { record: Vec<u8>, at: u64 },
}

/// Follows the chain behind `version` past all versions of the same transaction.
pub(crate) fn original(database: &Database, version: &Version<'_>) -> Result<Original, StorageError> {
    let txn = txn_of(version.writer);
    let mut record = Vec::new();
    assert!(!version.packed || version.pointer != SAME, "a packed row that is its own version before is given back as it lies");
    // What the transaction itself has written is passed by: of a packed row the bytes are not needed.
    let row = if version.packed { Version { payload: &[], packed: false, ..*version } } else { *version };
    version::encode_record(&row, 0, 0, &mut record);
    let mut at = 0;
    loop {
        let (_, current) = version::decode_record(&record).map_err(|why| version::damaged(at, why))?;
        if at != 0 && txn_of(current.writer) != txn {
            return Ok(Original::Row { record, at });
        }
        match current.pointer {
            0 => return Ok(Original::Absent),
            SAME => {
                let kept = Version { ghost: false, ..current.settled() };
                let mut settled = Vec::new();
                version::encode_record(&kept, 0, 0, &mut settled);
                return Ok(Original::Row { record: settled, at });
            }
            pointer => {
                record.clear();
                VersionStore::read(&database.store, pointer, &mut record)?;
                at = pointer;
            }
        }
    }
}

/// Fills `edit` with what takes the changes of an aborted or undone transaction back.
pub(crate) fn give_back(database: &Database, version: &Version<'_>, creator: u64, edit: &mut RowEdit) -> Result<(), StorageError> {
    if version.pointer == SAME {
        let kept = version.settled();
        edit.kind = EditKind::Replace;
        edit.ghost = false;
        edit.tag = kept.tag_on(creator);
        edit.large.extend_from_slice(kept.large);
        edit.payload.extend_from_slice(kept.payload);
        edit.packed = kept.packed;
        return Ok(());
    }
    match original(database, version)? {
        Original::Absent => {
            edit.kind = EditKind::Remove;
            edit.freed_large.extend_from_slice(version.large);
        }
        Original::Row { record, at } => {
            let (_, before) = version::decode_record(&record).map_err(|why| version::damaged(at, why))?;
            edit.kind = EditKind::Replace;
            edit.ghost = before.ghost;
            edit.tag = before.tag_on(creator);
            edit.large.extend_from_slice(before.large);
            edit.payload.extend_from_slice(before.payload);
            if at != 0 {
                // The bytes come from the store: what the entry held of its own goes, and the record keeps nothing.
                edit.freed_large.extend_from_slice(version.large);
                edit.restores = if before.large.is_empty() { 0 } else { at };
            }
        }
    }
    Ok(())
}

/// Puts the version record of an edit into its group, and marks the record that it restores.
pub(crate) fn push_versions(
    database: &Database,
    mini: &mut Mini<'_>,
    edit: &mut RowEdit,
    tree: TreeId,
    pusher: TxnId,
    has_large: bool,
) -> Result<(), StorageError> {
    if !edit.record.is_empty() {
        edit.record_at = database.versions.push(mini, pusher, &edit.record, has_large)?;
        if edit.linked {
            edit.tag = edit.tag.map(|tag| VersionTag { version: edit.record_at, ..tag });
        }
    }
    // What the entry gives up is in nobody's hands from this group on.
    mini.loosen(tree, &edit.freed_large);
    if edit.restores != 0 {
        VersionStore::mark_restored(mini, edit.restores)?;
    }
    Ok(())
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It was made.
    Done,
    /// There is a row already.
    Duplicate,
    /// There is no row.
    Missing,
    /// The key is new, and the gap it falls into must be locked first.
    GapUnlocked,
}

/// What is done in the same group, before the entry changes: it may complete the payload.
pub(crate) type Along<'t, 'a> = &'t mut (dyn FnMut(&mut Mini<'_>, &mut RowEdit) -> Result<(), StorageError> + 'a);

/// One change of one row.
pub(crate) struct RowEditor<'t, 'a> {
    pub(crate) database: &'t Database,
    pub(crate) undo: &'t mut UndoLog,
    pub(crate) reserve: &'t mut LogReserve,
    /// The `Touch` record is still to be logged.
    pub(crate) touch: &'t mut bool,
    pub(crate) leaves: &'t mut Vec<(TreeId, PageId)>,
    pub(crate) freed_large: &'t mut Vec<(TreeId, Vec<u8>)>,
    pub(crate) snapshot: Option<&'t Visibility>,
    pub(crate) along: Option<Along<'t, 'a>>,
    pub(crate) me: TxnId,
    /// The transaction and its present command.
    pub(crate) writer: u64,
    pub(crate) tree: TreeId,
    pub(crate) key: &'t [u8],
    pub(crate) change: Change,
    pub(crate) inline: &'t [u8],
    pub(crate) large: &'t [u8],
    /// What is locked of the gap that a new key falls into; `None` if the whole table is.
    pub(crate) gap: Option<&'t Gap>,
    pub(crate) state: EditorState,
}

/// What `decide` tells `push` and `done`.
#[derive(Debug, Default)]
pub(crate) struct EditorState {
    reverts: bool,
    again: bool,
    record_has_large: bool,
    old_entry: Vec<u8>,
    /// The first key to the right of the leaf, if the leaf beside is latched by this very edit.
    beside: Option<NextKey>,
    /// The key above the new one, to be locked.
    pub(crate) next_key: NextKey,
}

impl RowEditor<'_, '_> {
    /// `current` is the row as it was before it was packed, `lies` the entry as it lies there.
    fn fill(&mut self, edit: &mut RowEdit, current: Option<(Version<'_>, Entry<'_>)>, lies: Option<Entry<'_>>, creator: u64) {
        let version = current.map(|(version, _)| version);
        let seen_by_all = version.is_some_and(|version| self.database.commits.seen_by_all(version.writer));
        let plan = version::plan(self.change, version, self.writer, seen_by_all);
        edit.kind = if current.is_some() { EditKind::Replace } else { EditKind::Insert };
        edit.ghost = self.change == Change::Delete;
        match lies {
            Some(kept) if plan.keep_bytes => {
                edit.payload.extend_from_slice(kept.payload);
                edit.packed = kept.packed;
                edit.large.extend_from_slice(kept.large_bytes);
            }
            _ => {
                edit.payload.extend_from_slice(self.inline);
                edit.large.extend_from_slice(self.large);
            }
        }
        if let Some(dead) = version.filter(|version| !plan.again && plan.before == Before::At(0) && !version.large.is_empty()) {
            // A ghost that everybody sees as one, and that no version will remember.
            edit.freed_large.extend_from_slice(dead.large);
        }
        edit.linked = plan.before == Before::Pushed;
        let pointer = if let Before::At(pointer) = plan.before { pointer } else { 0 };
        let tag = VersionTag { txn: TxnId(self.writer), version: pointer };
        let needless = !edit.linked && pointer == 0 && creator == self.writer;
        edit.tag = (!needless).then_some(tag);
        // The store keeps the large parts of own older versions too: it frees what it holds when a segment goes.
        let own_large = version.filter(|version| plan.again && plan.push.is_none() && !version.large.is_empty());
        if let Some(pushed) = plan.push.or(own_large) {
            version::encode_record(&pushed, self.me.0, self.tree.0, &mut edit.record);
            self.state.record_has_large = !pushed.large.is_empty();
        }
        self.state.again = plan.again;
        self.state.old_entry.clear();
        if let Some((version, entry)) = current.filter(|_| plan.again) {
            // With its writer spelled out: the page's creator may be another when it is restored.
            let tag = Some(VersionTag { txn: TxnId(version.writer), version: version.pointer });
            Entry { suffix: &[], tag, ..entry }.encode(&mut self.state.old_entry);
        }
    }
}

impl RowEditor<'_, '_> {
    /// Whether a new key at `slot` may go in; otherwise `next_key` is to be locked.
    fn gap_is_ours(&mut self, page: &PageBytes, slot: usize) -> Result<bool, StorageError> {
        let Some(gap) = self.gap.filter(|_| self.database.has_range_holders(self.tree)) else { return Ok(true) };
        let next = if slot < Slotted(page).len() {
            let mut key = Vec::new();
            Slotted(page).key(slot, &mut key);
            Some(key)
        } else {
            match &self.state.beside {
                Some(beside) => beside.clone(),
                None => first_key_from(self.database, header::right(page))?,
            }
        };
        if let Gap::Locked { next: locked, .. } = gap
            && *locked == next
        {
            return Ok(true);
        }
        self.state.next_key = next;
        Ok(false)
    }
}

/// The first key of the leaf `page` or of those to its right. The caller has the leaf before latched, and so has this of
/// each it leaves: left to right, so that no leaf goes away in between.
fn first_key_from(database: &Database, page: PageId) -> Result<NextKey, StorageError> {
    if page == PageId::NONE {
        return Ok(None);
    }
    let mut leaf = database.store.read(page)?;
    loop {
        if !Slotted(&leaf).is_empty() {
            let mut key = Vec::new();
            Slotted(&leaf).key(0, &mut key);
            return Ok(Some(key));
        }
        let right = header::right(&leaf);
        if right == PageId::NONE {
            return Ok(None);
        }
        leaf = database.store.read(right)?;
    }
}

impl Editor for RowEditor<'_, '_> {
    type Outcome = Changed;

    fn beside(&mut self, right: Option<&PageBytes>) -> Result<(), StorageError> {
        self.state.beside = None;
        if let Some(right) = right.filter(|_| self.gap.is_some() && self.database.has_range_holders(self.tree)) {
            self.state.beside = Some(if Slotted(right).is_empty() {
                first_key_from(self.database, header::right(right))?
            } else {
                let mut key = Vec::new();
                Slotted(right).key(0, &mut key);
                Some(key)
            });
        }
        Ok(())
    }

    fn decide(&mut self, page: &PageBytes, found: Result<usize, usize>, edit: &mut RowEdit) -> Result<Decision<Changed>, StorageError> {
        let creator = header::creator_number(page);
        self.state.reverts = false;
        self.state.record_has_large = false;
        let lies = found.ok().map(|slot| Slotted(page).entry(slot));
        let mut whole = Vec::new();
        let row = match (lies, found) {
            (Some(entry), Ok(slot)) if entry.packed => Some(Slotted(page).row(slot, &mut whole)?),
            (entry, _) => entry,
        };
        let current = row.map(|entry| (Version::of(&entry, creator), entry));
        if let Some((version, _)) = current.filter(|(version, _)| txn_of(version.writer) != self.me.0) {
            match self.database.commits.fate(version.writer) {
                Fate::Aborted => {
                    self.state.reverts = true;
                    let version = lies.map_or(version, |entry| Version::of(&entry, creator));
                    give_back(self.database, &version, creator, edit)?;
                    return Ok(Decision::ApplyAndLookAgain);
                }
                // A commit whose log could not be written is neither: it gave its locks back, and only a restart tells.
                Fate::Active if self.database.store.log().is_some_and(|log| log.is_poisoned()) => return Err(StorageError::Poisoned),
                Fate::Active => {
                    return Err(StorageError::Bug(format!(
                        "row of open transaction {} met by {} under its key's lock",
                        version.writer, self.me.0
                    )));
                }
                // A row that is there is a duplicate whoever sees it; what has gone or changed since is a conflict.
                Fate::Committed
                    if self.snapshot.is_some_and(|view| !view.sees(version.writer))
                        && !(self.change == Change::Insert && !version.ghost) =>
                {
                    return Err(StorageError::SnapshotConflict { tree: self.tree });
                }
                Fate::Committed => {}
            }
        }
        let live = current.is_some_and(|(version, _)| !version.ghost);
        if let (Change::Insert, Err(slot)) = (self.change, found)
            && !self.gap_is_ours(page, slot)?
        {
            return Ok(Decision::Leave(Changed::GapUnlocked));
        }
        match (self.change, live) {
            (Change::Insert, true) => return Ok(Decision::Leave(Changed::Duplicate)),
            (Change::Update | Change::Delete, false) => return Ok(Decision::Leave(Changed::Missing)),
            _ => {}
        }
        self.fill(edit, current, lies, creator);
        Ok(Decision::Apply(Changed::Done))
    }

    fn push(&mut self, mini: &mut Mini<'_>, edit: &mut RowEdit) -> Result<(), StorageError> {
        if !self.state.reverts {
            let bytes = 2 * (edit.payload.len() + edit.record.len() + edit.large.len() + self.key.len()) as u64 + UNDO_OVERHEAD_BYTES;
            self.reserve.grow(self.database, bytes)?;
            if *self.touch {
                mini.log_only(&TxnRecord::Touch(self.me, self.tree).encode());
            }
            if let Some(along) = &mut self.along {
                along(mini, edit)?;
            }
            mini.hold_parts(self.tree, self.large);
        }
        push_versions(self.database, mini, edit, self.tree, self.me, self.state.record_has_large)
    }

    fn done(&mut self, leaf: PageId, edit: &RowEdit) {
        if edit.record_at != 0 {
            self.database.versions.pushed(self.me, edit.record_at);
        }
        if !edit.freed_large.is_empty() {
            self.freed_large.push((self.tree, edit.freed_large.clone()));
        }
        if self.state.reverts {
            return;
        }
        *self.touch = false;
        if self.state.again {
            self.undo.again(self.tree, self.key, &self.state.old_entry, edit.record_at);
        } else {
            self.undo.first(self.tree, self.key);
        }
        if self.leaves.last() != Some(&(self.tree, leaf)) {
            self.leaves.push((self.tree, leaf));
        }
    }
}

/// One step of undoing: the entry as it was before the step.
pub(crate) struct UndoEditor<'t> {
    pub(crate) database: &'t Database,
    pub(crate) freed_large: &'t mut Vec<(TreeId, Vec<u8>)>,
    pub(crate) me: TxnId,
    pub(crate) tree: TreeId,
    /// The entry to restore and the record that keeps its large parts; `None` gives back what was before the transaction.
    pub(crate) restore: Option<(&'t [u8], u64)>,
}

impl Editor for UndoEditor<'_> {
    type Outcome = ();

    fn decide(&mut self, page: &PageBytes, found: Result<usize, usize>, edit: &mut RowEdit) -> Result<Decision<()>, StorageError> {
        let creator = header::creator_number(page);
        let slot = found.map_err(|_| StorageError::Bug("a row to be undone is gone".into()))?;
        let entry = Slotted(page).entry(slot);
        let version = Version::of(&entry, creator);
        if txn_of(version.writer) != self.me.0 {
            return Err(StorageError::Bug(format!("a row of {} to be undone by {}", txn_of(version.writer), self.me.0)));
        }
        let Some((bytes, record)) = self.restore else {
            give_back(self.database, &version, creator, edit)?;
            return Ok(Decision::Apply(()));
        };
        let before = Entry::parse(bytes).map_err(|why| StorageError::Bug(format!("undo log: {}", why.0)))?;
        let restored = Version::of(&before, 0);
        edit.kind = EditKind::Replace;
        edit.ghost = restored.ghost;
        edit.tag = restored.tag_on(creator);
        edit.large.extend_from_slice(restored.large);
        edit.payload.extend_from_slice(restored.payload);
        edit.freed_large.extend_from_slice(version.large);
        if !restored.large.is_empty() {
            edit.restores = record;
        }
        Ok(Decision::Apply(()))
    }

    fn push(&mut self, mini: &mut Mini<'_>, edit: &mut RowEdit) -> Result<(), StorageError> {
        push_versions(self.database, mini, edit, self.tree, self.me, false)
    }

    fn done(&mut self, _leaf: PageId, edit: &RowEdit) {
        if !edit.freed_large.is_empty() {
            self.freed_large.push((self.tree, edit.freed_large.clone()));
        }
    }
}
