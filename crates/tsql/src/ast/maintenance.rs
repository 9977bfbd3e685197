//! Backup, restore, DBCC, KILL, event sessions. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{Expr, Ident, OptionItem, Span, Variable};

/// A name that may be a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum NameOrVariable {
    Name(Ident),
    Variable(Variable),
}

/// `BACKUP {DATABASE | LOG} name [files] TO devices [MIRROR TO devices] [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct Backup {
    pub kind: BackupKind,
    pub database: NameOrVariable,
    /// `FILE = 'x'`, `FILEGROUP = 'y'`, `READ_WRITE_FILEGROUPS`
    pub files: Vec<OptionItem>,
    pub to: Vec<BackupDevice>,
    pub mirrors: Vec<Vec<BackupDevice>>,
    pub options: Vec<OptionItem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackupKind {
    Database,
    Log,
}

/// `DISK = 'path'`, `URL = '...'`, `TAPE = '...'`, or a logical device.
#[derive(Debug, Clone, PartialEq)]
pub struct BackupDevice {
    pub kind: BackupDeviceKind,
    /// A string, a variable, or (logical device) a name as a string.
    pub target: Expr,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackupDeviceKind {
    Disk,
    Url,
    Tape,
    Logical,
}

/// `RESTORE {DATABASE | LOG | VERIFYONLY ...} [name] [files] [FROM devices] [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct Restore {
    pub kind: RestoreKind,
    pub database: Option<NameOrVariable>,
    /// `FILE = 'x'`, `FILEGROUP = 'y'`, `PAGE = '1:57'`, `READ_WRITE_FILEGROUPS`
    pub files: Vec<OptionItem>,
    pub from: Vec<BackupDevice>,
    /// `FROM DATABASE_SNAPSHOT = name`
    pub snapshot: Option<Expr>,
    /// `MOVE 'logical' TO 'path'`
    pub moves: Vec<(Expr, Expr)>,
    /// All other options: `REPLACE`, `NORECOVERY`, `STOPAT = ...`, `STATS = 10`, `FILE = 2` ...
    pub options: Vec<OptionItem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestoreKind {
    Database,
    Log,
    VerifyOnly,
    HeaderOnly,
    FileListOnly,
    LabelOnly,
    RewindOnly,
}

/// `DBCC name [(arguments)] [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct Dbcc {
    /// In upper case.
    pub name: String,
    pub arguments: Vec<DbccArgument>,
    pub options: Vec<OptionItem>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DbccArgument {
    /// A literal or variable.
    Expr(Expr),
    /// A bare name such as `REPAIR_REBUILD`, `NOINDEX` or a table; several parts keep their points.
    Name(super::ObjectName),
}

/// `KILL spid [WITH STATUSONLY]`, `KILL UOW`, `KILL QUERY NOTIFICATION SUBSCRIPTION`, `KILL STATS JOB id`
#[derive(Debug, Clone, PartialEq)]
pub struct Kill {
    pub session: Expr,
    /// Empty, `STATS JOB` or `QUERY NOTIFICATION SUBSCRIPTION`.
    pub what: String,
    pub status_only: bool,
    /// `WITH COMMIT | ROLLBACK`: in upper case.
    pub outcome: Option<String>,
}

/// `CREATE EVENT SESSION name ON SERVER | DATABASE ADD EVENT ..., ADD TARGET ... WITH (...)`
#[derive(Debug, Clone, PartialEq)]
pub struct EventSession {
    pub name: Ident,
    pub on_server: bool,
    pub events: Vec<SessionEvent>,
    pub targets: Vec<SessionTarget>,
    pub options: Vec<OptionItem>,
}

/// `ADD EVENT package.name [( [SET a = v, ...] [ACTION (p.a, ...)] [WHERE predicate] )]`
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEvent {
    /// Module identifier, package and event as written: `sqlserver.sql_statement_completed`.
    pub name: Vec<Ident>,
    pub settings: Vec<(Ident, Expr)>,
    pub actions: Vec<Vec<Ident>>,
    /// Comparisons of `[package.]source` with literals under AND, OR, NOT; predicate functions as function calls.
    pub predicate: Option<Expr>,
}

/// `ADD TARGET package.name [(SET a = v, ...)]`
#[derive(Debug, Clone, PartialEq)]
pub struct SessionTarget {
    pub name: Vec<Ident>,
    pub settings: Vec<(Ident, Expr)>,
}

/// `ALTER EVENT SESSION name ON SERVER | DATABASE ...`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterEventSession {
    pub name: Ident,
    pub on_server: bool,
    pub actions: Vec<AlterEventSessionAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterEventSessionAction {
    AddEvent(SessionEvent),
    DropEvent(Vec<Ident>),
    AddTarget(SessionTarget),
    DropTarget(Vec<Ident>),
    Options(Vec<OptionItem>),
    /// `STATE = START | STOP`
    State {
        start: bool,
    },
}

/// `DROP EVENT SESSION name ON SERVER | DATABASE`
#[derive(Debug, Clone, PartialEq)]
pub struct DropEventSession {
    pub name: Ident,
    pub on_server: bool,
}
