//! How a table's rows are locked while they are read: what the hints say, what the session's isolation level says, and
//! what follows from both.
//!
//! ```text
//! level of the transaction ─┐
//! isolation hint, if any ───┴─► level of the read ─┬─► versions: a view, nothing locked
//! UPDLOCK, XLOCK, target of a change ──────────────┼─► uncommitted: a view that sees what is not committed
//! TABLOCK(X), READPAST, NOWAIT ────────────────────┴─► locks: `ReadLocks`
//! ```
//! Messages: 1047 for hints that exclude each other, 650 for READPAST at a level that must not pass rows over, 1065 for
//! NOLOCK on the target of a change (`bind`).

use thawdb_storage::ReadLocks;
use thawdb_storage::locks::LockMode;
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// How reads of a database behave in the running transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLevel {
    /// What is there, committed or not.
    ReadUncommitted,
    /// What was committed when the statement began.
    ReadCommittedVersions,
    /// What is committed when the row is read.
    ReadCommittedLocks,
    /// Rows read stay as they are.
    RepeatableRead,
    /// Ranges read stay as they are.
    Serializable,
    /// What was committed when the transaction began.
    Snapshot,
}

/// An isolation level that a table hint asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the hint of its name
pub enum IsolationHint {
    ReadUncommitted,
    ReadCommitted,
    ReadCommittedLock,
    RepeatableRead,
    Serializable,
}

/// What the hints of one table reference say about locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LockHints {
    /// The rows are to be updated or deleted by the statement.
    pub target: bool,
    /// NOLOCK to SERIALIZABLE.
    pub isolation: Option<IsolationHint>,
    /// UPDLOCK.
    pub update: bool,
    /// XLOCK, TABLOCKX.
    pub exclusive: bool,
    /// TABLOCK, TABLOCKX.
    pub table: bool,
    /// ROWLOCK, PAGLOCK: rows are locked one by one in either case.
    pub rows: bool,
    /// READPAST.
    pub read_past: bool,
    /// NOWAIT.
    pub no_wait: bool,
}

/// How one execution reads a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPlan {
    /// By the statement's view.
    Versions,
    /// By the statement's view, with what is not committed.
    Uncommitted,
    /// Under locks; with `gives_back`, locks of rows that the predicate refuses are given back.
    Locks {
        /// Which.
        locks: ReadLocks,
        /// Rows that are not wanted are not kept locked.
        gives_back: bool,
    },
}

impl LockHints {
    /// The target of UPDATE and DELETE.
    pub const TARGET: Self = Self {
        target: true,
        isolation: None,
        update: false,
        exclusive: false,
        table: false,
        rows: false,
        read_past: false,
        no_wait: false,
    };

    /// Adds the hint of this name; true if it is one about locks. 1047 if it excludes an earlier one.
    pub fn add(&mut self, word: &str) -> Result<bool, SqlError> {
        let isolation = match word {
            "NOLOCK" | "READUNCOMMITTED" => Some(IsolationHint::ReadUncommitted),
            "READCOMMITTED" => Some(IsolationHint::ReadCommitted),
            "READCOMMITTEDLOCK" => Some(IsolationHint::ReadCommittedLock),
            "REPEATABLEREAD" => Some(IsolationHint::RepeatableRead),
            "SERIALIZABLE" | "HOLDLOCK" => Some(IsolationHint::Serializable),
            _ => None,
        };
        let conflict = || message(1047, &[]);
        if isolation.is_some() {
            if self.isolation.is_some_and(|other| Some(other) != isolation) {
                return Err(conflict());
            }
            self.isolation = isolation;
        }
        match word {
            "UPDLOCK" => self.update = true,
            "XLOCK" => self.exclusive = true,
            "TABLOCK" => self.table = true,
            "TABLOCKX" => (self.table, self.exclusive) = (true, true),
            "ROWLOCK" | "PAGLOCK" => self.rows = true,
            "READPAST" => self.read_past = true,
            "NOWAIT" => self.no_wait = true,
            _ if isolation.is_none() => return Ok(false),
            _ => {}
        }
        let dirty = self.isolation == Some(IsolationHint::ReadUncommitted);
        let locks = self.update || self.exclusive || self.table || self.rows || self.read_past;
        if (dirty && locks) || (self.table && self.rows) {
            return Err(conflict());
        }
        Ok(true)
    }

    /// The words plans show.
    pub fn shown(&self) -> &'static str {
        if self.exclusive {
            " XLOCK"
        } else if self.target || self.update {
            " UPDLOCK"
        } else {
            ""
        }
    }

    fn level(&self, of_session: ReadLevel, versions: bool) -> ReadLevel {
        match self.isolation {
            None => of_session,
            Some(IsolationHint::ReadUncommitted) => ReadLevel::ReadUncommitted,
            Some(IsolationHint::ReadCommitted) if versions => ReadLevel::ReadCommittedVersions,
            Some(IsolationHint::ReadCommitted | IsolationHint::ReadCommittedLock) => ReadLevel::ReadCommittedLocks,
            Some(IsolationHint::RepeatableRead) => ReadLevel::RepeatableRead,
            Some(IsolationHint::Serializable) => ReadLevel::Serializable,
        }
    }

    /// How to read in a transaction at `of_session`, in a database where READ COMMITTED reads `versions` or not. `keyed` is
    /// whether the index read has keys whose gaps can be locked: a heap is locked whole.
    pub fn plan(&self, of_session: ReadLevel, versions: bool, keyed: bool) -> Result<ReadPlan, SqlError> {
        use ReadLevel::{ReadCommittedLocks, ReadCommittedVersions, ReadUncommitted, RepeatableRead, Serializable, Snapshot};
        let level = self.level(of_session, versions);
        let locks_rows = self.update || self.exclusive;
        if self.read_past && (matches!(level, ReadUncommitted | Serializable) || (level == Snapshot && !locks_rows)) {
            return Err(message(650, &[]));
        }
        let reads_versions = match level {
            ReadUncommitted | ReadCommittedVersions => !self.target,
            Snapshot => true,
            ReadCommittedLocks | RepeatableRead | Serializable => false,
        };
        if reads_versions && !locks_rows && !self.table && !self.read_past {
            return Ok(if level == ReadUncommitted { ReadPlan::Uncommitted } else { ReadPlan::Versions });
        }
        let mode = if self.exclusive {
            LockMode::X
        } else if self.update || self.target {
            LockMode::U
        } else {
            LockMode::S
        };
        let ranges = level == Serializable;
        let table = match (self.table, mode) {
            (true, LockMode::S) => Some(LockMode::S),
            (true, _) => Some(LockMode::X),
            (false, _) if ranges && !keyed => Some(LockMode::S),
            (false, _) => None,
        };
        let locks = ReadLocks {
            mode,
            keep: mode != LockMode::S || matches!(level, RepeatableRead | Serializable),
            ranges: ranges && keyed,
            skip_locked: self.read_past,
            no_wait: self.no_wait,
            table,
        };
        let gives_back = matches!(level, ReadUncommitted | ReadCommittedVersions | ReadCommittedLocks) && !self.exclusive;
        Ok(ReadPlan::Locks { locks, gives_back })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(words: &[&str]) -> Result<LockHints, i32> {
        let mut hints = LockHints::default();
        words.iter().try_for_each(|word| hints.add(word).map(|known| assert!(known, "{word}"))).map_err(|error| error.number)?;
        Ok(hints)
    }

    #[test]
    fn hints_that_exclude_each_other() {
        for words in [
            &["NOLOCK", "HOLDLOCK"][..],
            &["NOLOCK", "UPDLOCK"],
            &["TABLOCK", "NOLOCK"],
            &["READCOMMITTED", "REPEATABLEREAD"],
            &["ROWLOCK", "TABLOCKX"],
            &["READPAST", "READUNCOMMITTED"],
        ] {
            assert_eq!(hints(words), Err(1047), "{words:?}");
        }
        assert!(hints(&["HOLDLOCK", "SERIALIZABLE", "UPDLOCK", "ROWLOCK", "NOWAIT"]).is_ok());
        assert!(!LockHints::default().add("FORCESCAN").unwrap());
    }

    #[test]
    fn plans_follow_level_and_hints() {
        let plan = |words: &[&str], level| hints(words).unwrap().plan(level, true, true).map_err(|error| error.number);
        let locks = |words: &[&str], level| match plan(words, level) {
            Ok(ReadPlan::Locks { locks, gives_back }) => (locks.mode, locks.keep, locks.ranges, locks.table, gives_back),
            other => panic!("{other:?}"),
        };
        use LockMode::{S, U, X};
        use ReadLevel::{ReadCommittedLocks, ReadCommittedVersions, ReadUncommitted, RepeatableRead, Serializable, Snapshot};
        assert_eq!(plan(&[], ReadCommittedVersions), Ok(ReadPlan::Versions));
        assert_eq!(plan(&["READCOMMITTED"], Serializable), Ok(ReadPlan::Versions));
        assert_eq!(plan(&["NOLOCK"], Serializable), Ok(ReadPlan::Uncommitted));
        assert_eq!(plan(&[], Snapshot), Ok(ReadPlan::Versions));
        assert_eq!(locks(&[], ReadCommittedLocks), (S, false, false, None, true));
        assert_eq!(locks(&["READCOMMITTEDLOCK"], ReadCommittedVersions), (S, false, false, None, true));
        assert_eq!(locks(&[], RepeatableRead), (S, true, false, None, false));
        assert_eq!(locks(&["HOLDLOCK"], ReadCommittedVersions), (S, true, true, None, false));
        assert_eq!(locks(&["UPDLOCK"], Serializable), (U, true, true, None, false));
        assert_eq!(locks(&["UPDLOCK", "READPAST"], ReadCommittedVersions), (U, true, false, None, true));
        assert_eq!(locks(&["TABLOCK"], ReadCommittedVersions), (S, false, false, Some(S), true));
        assert_eq!(locks(&["TABLOCKX"], ReadUncommitted), (X, true, false, Some(X), false));
        for level in [ReadUncommitted, Serializable, Snapshot] {
            assert_eq!(plan(&["READPAST"], level), Err(650));
        }
        let heap = LockHints::default().plan(Serializable, true, false);
        assert!(matches!(heap, Ok(ReadPlan::Locks { locks, .. }) if locks.table == Some(S) && !locks.ranges));
        assert_eq!(LockHints::TARGET.plan(Snapshot, true, true), Ok(ReadPlan::Versions));
    }
}
