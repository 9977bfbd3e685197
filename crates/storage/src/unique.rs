//! The look of a uniqueness check: is there a row in a range that lives, or might?
//!
//! Unlike a view's scan it must not overlook what is not committed: an entry of an open transaction is reported by its
//! key, so that the caller can wait for its writer and look again. Nor, under SNAPSHOT, what has gone since: its transaction
//! would see two rows of one key. Latches: one leaf, shared. Failure: as a scan's.

use crate::btree::{Seek, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::page::{Slotted, header};
use crate::spec::KeyRange;
use crate::units::TreeInfo;
use crate::versions::commit_table::{Fate, Visibility, txn_of};
use crate::versions::version::Version;
use crate::view;
use std::ops::{Bound, RangeBounds};

/// What a look found.
pub(crate) enum Found {
    /// A row that lives.
    Live,
    /// An entry whose writer is open.
    Open(Vec<u8>),
    /// An entry that is gone, and was there when the transaction's snapshot was taken.
    GoneSince,
    /// Neither.
    Nothing,
}

/// Looks at the entries of `range` other than `except`.
pub(crate) fn look(
    database: &Database,
    info: &TreeInfo,
    range: &KeyRange,
    except: Option<&[u8]>,
    (view, snapshot): (&Visibility, Option<&Visibility>),
) -> Result<Found, StorageError> {
    let tree = Tree { store: &database.store, info, author: TxnId(0), finishing: false };
    let bounds = (range.start.as_ref().map(Vec::as_slice), range.end.as_ref().map(Vec::as_slice));
    let mut after: Option<Vec<u8>> = None;
    let (mut open, mut gone) = (None, false);
    loop {
        let seek = match (&after, &range.start) {
            (Some(key), _) | (None, Bound::Included(key) | Bound::Excluded(key)) => Seek::Key(key),
            (None, Bound::Unbounded) => Seek::First,
        };
        let mut page = *tree.leaf_for_read(seek, &mut |_, _| {})?;
        loop {
            match look_at(database, info, &page, bounds, except, (view, snapshot), &mut after)? {
                Found::Live => return Ok(Found::Live),
                Found::Open(key) => open = open.or(Some(key)),
                Found::GoneSince => gone = true,
                Found::Nothing => {}
            }
            let leaf = Slotted(&page);
            let beyond = !leaf.is_empty() && {
                let mut last = Vec::new();
                leaf.key(leaf.len() - 1, &mut last);
                is_beyond(&last, bounds.1)
            };
            let (here, right) = (header::page_id(&page), header::right(&page));
            if beyond || right == PageId::NONE {
                return Ok(found(open, gone));
            }
            let next = *database.store.read(right)?;
            if header::left(&next) != here || header::tree(&next) != info.id || header::level(&next) != 0 {
                // The leaf beside has moved: find the way anew.
                break;
            }
            page = next;
        }
    }
}

/// What comes of a look that met nothing that lives.
fn found(open: Option<Vec<u8>>, gone: bool) -> Found {
    match open {
        Some(key) => Found::Open(key),
        None if gone => Found::GoneSince,
        None => Found::Nothing,
    }
}

fn is_beyond(key: &[u8], end: Bound<&[u8]>) -> bool {
    match end {
        Bound::Included(end) | Bound::Excluded(end) => key >= end,
        Bound::Unbounded => false,
    }
}

fn look_at(
    database: &Database,
    info: &TreeInfo,
    page: &crate::page::PageBytes,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    except: Option<&[u8]>,
    (view, snapshot): (&Visibility, Option<&Visibility>),
    after: &mut Option<Vec<u8>>,
) -> Result<Found, StorageError> {
    let leaf = Slotted(page);
    let creator = header::creator_number(page);
    let from = match bounds.0 {
        Bound::Included(key) | Bound::Excluded(key) => leaf.search(key).unwrap_or_else(|slot| slot),
        Bound::Unbounded => 0,
    };
    let (mut open, mut gone) = (None, false);
    for slot in from..leaf.len() {
        let mut key = Vec::new();
        leaf.key(slot, &mut key);
        if is_beyond(&key, bounds.1) && !RangeBounds::<[u8]>::contains(&bounds, key.as_slice()) {
            break;
        }
        let outside = !RangeBounds::<[u8]>::contains(&bounds, key.as_slice()) || except == Some(key.as_slice());
        if !outside {
            let version = Version::of(&leaf.entry(slot), creator);
            let mine = txn_of(version.writer) == view.own() && version.writer != 0;
            match database.commits.fate(version.writer) {
                Fate::Active if !mine => open = open.or(Some(key.clone())),
                Fate::Aborted => {
                    if view::row_of(database, info, &key, view)?.is_some() {
                        return Ok(Found::Live);
                    }
                }
                Fate::Active | Fate::Committed => {
                    if !version.ghost {
                        return Ok(Found::Live);
                    }
                    gone |= !mine && snapshot.is_some_and(|snapshot| !snapshot.sees(version.writer));
                }
            }
        }
        *after = Some(key);
    }
    Ok(found(open, gone))
}
