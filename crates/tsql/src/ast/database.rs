//! Databases, their files and options. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{Expr, Ident, OptionItem, Span};

/// `CREATE DATABASE name [CONTAINMENT = ...] [ON files] [LOG ON files] [COLLATE c] [WITH options] [FOR ATTACH ...]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDatabase {
    pub name: Ident,
    /// `NONE`, `PARTIAL`
    pub containment: Option<String>,
    /// The files of the primary filegroup.
    pub primary: Vec<FileSpec>,
    pub filegroups: Vec<FileGroupSpec>,
    pub log: Vec<FileSpec>,
    pub collation: Option<Ident>,
    pub options: Vec<OptionItem>,
    pub attach: Option<Attach>,
    /// `AS SNAPSHOT OF source`
    pub snapshot_of: Option<Ident>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attach {
    Attach,
    AttachRebuildLog,
}

/// `FILEGROUP name [CONTAINS FILESTREAM | MEMORY_OPTIMIZED_DATA] [DEFAULT] files`
#[derive(Debug, Clone, PartialEq)]
pub struct FileGroupSpec {
    pub name: Ident,
    pub contains: Option<String>,
    pub default: bool,
    pub files: Vec<FileSpec>,
}

/// `(NAME = n, FILENAME = 'path', SIZE = s, MAXSIZE = m, FILEGROWTH = g)`; in ALTER also NEWNAME and OFFLINE.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileSpec {
    pub name: Option<Ident>,
    pub new_name: Option<Ident>,
    pub file_name: Option<String>,
    pub size: Option<FileSize>,
    pub max_size: Option<FileSize>,
    pub file_growth: Option<FileSize>,
    pub offline: bool,
    pub span: Span,
}

/// A size of a file clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSize {
    /// In bytes; a number without a unit is megabytes.
    Bytes(u64),
    Percent(u32),
    Unlimited,
}

/// `ALTER DATABASE {name | CURRENT} action`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDatabase {
    /// `None` is CURRENT.
    pub name: Option<Ident>,
    pub action: AlterDatabaseAction,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterDatabaseAction {
    /// `SET option, ... [WITH ROLLBACK IMMEDIATE | ROLLBACK AFTER n | NO_WAIT]`
    Set {
        options: Vec<OptionItem>,
        termination: Option<Termination>,
    },
    ModifyName(Ident),
    Collate(Ident),
    AddFiles {
        files: Vec<FileSpec>,
        filegroup: Option<Ident>,
    },
    AddLogFiles(Vec<FileSpec>),
    RemoveFile(Ident),
    ModifyFile(Box<FileSpec>),
    AddFileGroup {
        name: Ident,
        contains: Option<String>,
    },
    RemoveFileGroup(Ident),
    /// `MODIFY FILEGROUP name {DEFAULT | READ_ONLY | READ_WRITE | NAME = new | AUTOGROW_ALL_FILES ...}`
    ModifyFileGroup {
        name: Ident,
        property: OptionItem,
    },
    /// `MODIFY (EDITION = ...)` of the cloud service.
    Modify(Vec<OptionItem>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Termination {
    RollbackImmediate,
    RollbackAfterSeconds(Expr),
    NoWait,
}

/// `ALTER DATABASE SCOPED CONFIGURATION [FOR SECONDARY] {SET name = value | CLEAR name}`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDatabaseScoped {
    pub for_secondary: bool,
    pub clear: bool,
    pub option: OptionItem,
}
