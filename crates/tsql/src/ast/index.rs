//! Indexes and statistics. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{Expr, Ident, ObjectName, OptionItem, Span, StorageTarget};

/// One key column: `column [ASC | DESC]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexKey {
    pub column: Ident,
    pub descending: bool,
}

/// `CREATE [UNIQUE] [CLUSTERED | NONCLUSTERED] [COLUMNSTORE] INDEX name ON table (keys) [INCLUDE (...)] [WHERE ...]
/// [WITH (...)] [ON ...] [FILESTREAM_ON ...]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    pub unique: bool,
    /// `Some(true)` CLUSTERED, `Some(false)` NONCLUSTERED.
    pub clustered: Option<bool>,
    pub columnstore: bool,
    pub name: Ident,
    pub table: ObjectName,
    pub keys: Vec<IndexKey>,
    pub include: Vec<Ident>,
    pub filter: Option<Expr>,
    pub options: Vec<IndexOption>,
    pub on: Option<StorageTarget>,
    pub filestream_on: Option<Ident>,
}

/// One option of an index statement.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexOption {
    pub kind: IndexOptionKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum IndexOptionKind {
    PadIndex(bool),
    FillFactor(Expr),
    SortInTempdb(bool),
    IgnoreDupKey(bool),
    StatisticsNoRecompute(bool),
    StatisticsIncremental(bool),
    DropExisting(bool),
    /// `ONLINE = ON [(WAIT_AT_LOW_PRIORITY (...))]`
    Online {
        on: bool,
        wait: Option<LowPriorityWait>,
    },
    Resumable(bool),
    /// In minutes.
    MaxDuration(Expr),
    AllowRowLocks(bool),
    AllowPageLocks(bool),
    OptimizeForSequentialKey(bool),
    MaxDop(Expr),
    /// `NONE`, `ROW`, `PAGE`, `COLUMNSTORE`, `COLUMNSTORE_ARCHIVE`; the partitions it is for.
    DataCompression {
        method: String,
        partitions: Vec<(Expr, Option<Expr>)>,
    },
    XmlCompression(bool),
    BucketCount(Expr),
    LobCompaction(bool),
    CompressAllRowGroups(bool),
    WaitAtLowPriority(LowPriorityWait),
    /// `MOVE TO target`, in DROP INDEX and DROP CONSTRAINT.
    MoveTo(StorageTarget),
    FileStreamOn(Ident),
    /// An option this list does not name.
    Other(OptionItem),
}

/// `WAIT_AT_LOW_PRIORITY (MAX_DURATION = n [MINUTES], ABORT_AFTER_WAIT = NONE | SELF | BLOCKERS)`
#[derive(Debug, Clone, PartialEq)]
pub struct LowPriorityWait {
    pub max_duration_minutes: Expr,
    pub abort_after_wait: AbortAfterWait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbortAfterWait {
    None,
    Self_,
    Blockers,
}

/// `ALTER INDEX {name | ALL} ON table action`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterIndex {
    /// `None` is ALL.
    pub name: Option<Ident>,
    pub table: ObjectName,
    pub action: AlterIndexAction,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterIndexAction {
    /// `REBUILD [PARTITION = ALL | n] [WITH (...)]`; ALL is no partition.
    Rebuild {
        partition: Option<Expr>,
        options: Vec<IndexOption>,
    },
    Reorganize {
        partition: Option<Expr>,
        options: Vec<IndexOption>,
    },
    Disable,
    Set(Vec<IndexOption>),
    /// `RESUME [WITH (MAXDOP, MAX_DURATION, WAIT_AT_LOW_PRIORITY)]`
    Resume(Vec<IndexOption>),
    Pause,
    Abort,
}

/// `DROP INDEX [IF EXISTS] name ON table [WITH (...)], ...` or the old `table.name`
#[derive(Debug, Clone, PartialEq)]
pub struct DropIndex {
    pub if_exists: bool,
    pub items: Vec<DropIndexItem>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DropIndexItem {
    pub name: Ident,
    pub table: ObjectName,
    pub options: Vec<IndexOption>,
}

/// `CREATE STATISTICS name ON table (columns) [WHERE ...] [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateStatistics {
    pub name: Ident,
    pub table: ObjectName,
    pub columns: Vec<Ident>,
    pub filter: Option<Expr>,
    pub options: Vec<OptionItem>,
}

/// `UPDATE STATISTICS table [name | (names)] [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateStatistics {
    pub table: ObjectName,
    pub names: Vec<Ident>,
    pub options: Vec<OptionItem>,
}
