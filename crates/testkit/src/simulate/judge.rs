//! Which errors the trouble of a run explains, and what they leave behind.

use super::plan::Trouble;
use thawdb_types::SqlError;

/// What a failed statement says about its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did nothing: it failed before it could commit.
    Nothing,
    /// It waited for a lock of another session, which here means it did nothing.
    Locked,
    /// A row of the key was there: it did nothing.
    Duplicate,
    /// The statement may say so in any case: it did nothing that the ledger knows.
    Expected,
    /// What a snapshot sees has changed (3960, 3961): its transaction is over.
    Conflict,
    /// It may have been committed: only a restart tells.
    Doubt,
    /// Nothing explains it.
    Unexplained,
}

/// I/O failed (823), the log is out of use (9001), a file cannot be opened (5120, 5123, 4861) or read for a load (4862).
const IO: [i32; 6] = [823, 4861, 4862, 5120, 5123, 9001];
/// No room: in the filegroup (1105, 1101), in the log (9002), for a new file (5149).
const FULL: [i32; 5] = [1101, 1105, 9002, 5123, 5149];
/// The read succeeded and the content is wrong.
const DAMAGED: [i32; 1] = [824];
/// The same, or a page is whole and older than another that rests on it: the catalog names a tree that is not there (608),
/// an index has no entry for a row (8646). While a database is open every page is known by the LSN it was written with, and
/// a page at the wrong place by its own number; so only what was lost before a restart explains these.
const STALE: [i32; 3] = [608, 824, 8646];

/// Whether an error says that what is on the disk is wrong, as the trouble has it; `was_lost` says whether writes may have
/// been lost in an earlier life of the instance.
pub fn tells_damage(number: i32, trouble: Trouble, was_lost: bool) -> bool {
    match trouble {
        Trouble::Misdirected if was_lost => STALE.contains(&number),
        Trouble::Rot | Trouble::Misdirected => DAMAGED.contains(&number),
        _ => false,
    }
}

/// Judges a failed statement. `is_commit` says whether it was COMMIT alone, `has_rivals` whether another session has
/// a transaction open, `was_lost` is as for [`tells_damage`].
pub fn verdict(error: &SqlError, trouble: Trouble, is_commit: bool, has_rivals: bool, was_lost: bool) -> Verdict {
    match error.number {
        2601 | 2627 => return Verdict::Duplicate,
        1222 if has_rivals => return Verdict::Locked,
        3960 | 3961 => return Verdict::Conflict,
        _ => {}
    }
    let explained = match trouble {
        Trouble::Calm | Trouble::Crash => false,
        Trouble::IoErrors => IO.contains(&error.number),
        Trouble::DiskFull => FULL.contains(&error.number),
        Trouble::SmallLog => error.number == 9002,
        Trouble::Rot | Trouble::Misdirected => tells_damage(error.number, trouble, was_lost),
    };
    if !explained {
        return Verdict::Unexplained;
    }
    // A statement that read in vain, found no room, or met damage did so before its commit record.
    let is_definite = match error.number {
        823 => error.text.contains("during a read") || error.text.contains("during read"),
        608 | 8646 | 1101 | 1105 | 4861 | 4862 | 9002 | 824 => true,
        _ => false,
    };
    if is_definite && !is_commit { Verdict::Nothing } else { Verdict::Doubt }
}
