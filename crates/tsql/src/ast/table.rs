//! Tables: columns, constraints, ALTER TABLE, DROP. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{DataType, Expr, Ident, IndexKey, IndexOption, Literal, ObjectName, OptionItem, Query, Span};

/// `CREATE TABLE name ( ... ) [AS NODE | EDGE] [ON ...] [TEXTIMAGE_ON g] [FILESTREAM_ON g] [WITH (options)]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    pub name: ObjectName,
    pub body: TableBody,
    /// `AS FILETABLE`, `AS NODE`, `AS EDGE`: the word in upper case.
    pub flavor: Option<String>,
    pub on: Option<StorageTarget>,
    pub textimage_on: Option<Ident>,
    pub filestream_on: Option<Ident>,
    pub options: Vec<OptionItem>,
    /// `CREATE TABLE ... AS SELECT`, which other members of the family have.
    pub as_query: Option<Box<Query>>,
}

/// What stands between the parentheses of CREATE TABLE, `DECLARE @t TABLE`, RETURNS and CREATE TYPE.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableBody {
    pub columns: Vec<ColumnDefinition>,
    pub constraints: Vec<TableConstraint>,
    pub indexes: Vec<InlineIndex>,
    pub period: Option<SystemTimePeriod>,
}

/// `PERIOD FOR SYSTEM_TIME (start, end)`
#[derive(Debug, Clone, PartialEq)]
pub struct SystemTimePeriod {
    pub start: Ident,
    pub end: Ident,
}

/// `ON filegroup`, `ON "default"`, `ON scheme (column)`
#[derive(Debug, Clone, PartialEq)]
pub struct StorageTarget {
    pub name: Ident,
    pub column: Option<Ident>,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    pub name: Ident,
    pub kind: ColumnKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ColumnKind {
    Regular(Box<RegularColumn>),
    Computed(Box<ComputedColumn>),
    /// `xml COLUMN_SET FOR ALL_SPARSE_COLUMNS`
    ColumnSet,
}

/// `type [COLLATE c] [IDENTITY ...] [NULL | NOT NULL] [constraints] ...`
#[derive(Debug, Clone, PartialEq)]
pub struct RegularColumn {
    pub data_type: DataType,
    pub collation: Option<Ident>,
    /// `Some(true)` is NULL, `Some(false)` NOT NULL, `None` is unsaid.
    pub nullable: Option<bool>,
    pub identity: Option<Identity>,
    pub default: Option<DefaultDefinition>,
    /// PRIMARY KEY, UNIQUE, FOREIGN KEY and CHECK written at the column; their column lists are empty.
    pub constraints: Vec<TableConstraint>,
    pub row_guid: bool,
    pub sparse: bool,
    pub filestream: bool,
    pub hidden: bool,
    pub not_for_replication: bool,
    pub generated: Option<GeneratedAlways>,
    /// `MASKED WITH (FUNCTION = '...')`
    pub mask: Option<String>,
    /// `ENCRYPTED WITH (...)`
    pub encryption: Vec<OptionItem>,
    pub index: Option<Box<InlineIndex>>,
}

/// `AS expression [PERSISTED [NOT NULL]] [constraints]`
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedColumn {
    pub expr: Expr,
    pub persisted: bool,
    pub nullable: Option<bool>,
    pub constraints: Vec<TableConstraint>,
}

/// `IDENTITY [(seed, increment)] [NOT FOR REPLICATION]`: numbers with their sign, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub seed: Option<String>,
    pub increment: Option<String>,
    pub not_for_replication: bool,
}

/// `[CONSTRAINT name] DEFAULT value [WITH VALUES]`
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultDefinition {
    pub name: Option<Ident>,
    pub value: Expr,
    pub with_values: bool,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GeneratedAlways {
    RowStart,
    RowEnd,
    TransactionIdStart,
    TransactionIdEnd,
    SequenceNumberStart,
    SequenceNumberEnd,
}

/// `[CONSTRAINT name] kind`
#[derive(Debug, Clone, PartialEq)]
pub struct TableConstraint {
    pub name: Option<Ident>,
    pub kind: ConstraintKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ConstraintKind {
    /// `PRIMARY KEY [CLUSTERED | NONCLUSTERED] [HASH] (columns) [WITH ...] [ON ...]`
    PrimaryKey(Box<KeyConstraint>),
    Unique(Box<KeyConstraint>),
    ForeignKey(Box<ForeignKey>),
    Check {
        condition: Box<Expr>,
        not_for_replication: bool,
    },
    /// `DEFAULT value FOR column [WITH VALUES]`, in ALTER TABLE ADD.
    Default {
        value: Box<Expr>,
        column: Ident,
        with_values: bool,
    },
    /// `CONNECTION (a TO b, ...)` of an edge table: as written.
    Connection(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct KeyConstraint {
    /// `Some(true)` CLUSTERED, `Some(false)` NONCLUSTERED.
    pub clustered: Option<bool>,
    pub hash: bool,
    /// Empty at a column.
    pub columns: Vec<IndexKey>,
    pub options: Vec<IndexOption>,
    pub on: Option<StorageTarget>,
    /// `NOT ENFORCED`
    pub not_enforced: bool,
}

/// `[FOREIGN KEY (columns)] REFERENCES table [(columns)] [ON DELETE a] [ON UPDATE a] [NOT FOR REPLICATION]`
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    /// Empty at a column.
    pub columns: Vec<Ident>,
    pub table: ObjectName,
    pub referenced_columns: Vec<Ident>,
    pub on_delete: Option<ReferentialAction>,
    pub on_update: Option<ReferentialAction>,
    pub not_for_replication: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferentialAction {
    NoAction,
    Cascade,
    SetNull,
    SetDefault,
}

/// `INDEX name [UNIQUE] [CLUSTERED | NONCLUSTERED] [HASH | COLUMNSTORE] [(keys)] [INCLUDE] [WHERE] [WITH] [ON]`
#[derive(Debug, Clone, PartialEq)]
pub struct InlineIndex {
    pub name: Ident,
    pub unique: bool,
    pub clustered: Option<bool>,
    pub hash: bool,
    pub columnstore: bool,
    pub keys: Vec<IndexKey>,
    pub include: Vec<Ident>,
    pub filter: Option<Expr>,
    pub options: Vec<IndexOption>,
    pub on: Option<StorageTarget>,
    pub span: Span,
}

/// `ALTER TABLE name action`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    pub table: ObjectName,
    pub action: AlterTableAction,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterTableAction {
    /// `[WITH CHECK | NOCHECK] ADD columns, constraints, indexes`
    Add {
        /// `Some(false)` is WITH NOCHECK.
        check: Option<bool>,
        body: TableBody,
    },
    /// `ALTER COLUMN name type ... [WITH (ONLINE = ON)]`
    AlterColumn { column: Box<AlterColumn> },
    /// `ALTER COLUMN name ADD | DROP {ROWGUIDCOL | PERSISTED | NOT FOR REPLICATION | SPARSE | HIDDEN | MASKED ...}`
    AlterColumnProperty { column: Ident, add: bool, property: String, value: Option<Literal> },
    /// `DROP [COLUMN | CONSTRAINT] [IF EXISTS] name, ... [WITH (options)]`
    Drop(Vec<AlterTableDrop>),
    /// `[WITH CHECK | NOCHECK] {CHECK | NOCHECK} CONSTRAINT {ALL | names}`; empty names are ALL.
    CheckConstraint { with_check: Option<bool>, enable: bool, names: Vec<Ident> },
    /// `{ENABLE | DISABLE} TRIGGER {ALL | names}`
    Trigger { enable: bool, names: Vec<Ident> },
    /// `REBUILD [PARTITION = ALL | n] [WITH (options)]`
    Rebuild { partition: Option<Expr>, options: Vec<IndexOption> },
    /// `SET (options)`: SYSTEM_VERSIONING, LOCK_ESCALATION, FILESTREAM_ON ...
    Set(Vec<OptionItem>),
    /// `SWITCH [PARTITION n] TO table [PARTITION m] [WITH (...)]`
    Switch { partition: Option<Expr>, target: ObjectName, target_partition: Option<Expr>, options: Vec<OptionItem> },
    /// `{ENABLE | DISABLE} CHANGE_TRACKING [WITH (...)]`
    ChangeTracking { enable: bool, options: Vec<OptionItem> },
    /// `DROP PERIOD FOR SYSTEM_TIME`
    DropPeriod,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AlterColumn {
    pub name: Ident,
    pub data_type: DataType,
    pub collation: Option<Ident>,
    pub nullable: Option<bool>,
    pub sparse: bool,
    pub options: Vec<IndexOption>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AlterTableDrop {
    /// `true` for COLUMN; a name without a word before it is a constraint.
    pub column: bool,
    pub if_exists: bool,
    pub name: Ident,
    pub options: Vec<IndexOption>,
}

/// `DROP kind [IF EXISTS] name, ...`
#[derive(Debug, Clone, PartialEq)]
pub struct DropObject {
    pub kind: DropKind,
    pub if_exists: bool,
    pub names: Vec<ObjectName>,
    /// Of a trigger: `ON ALL SERVER` or `ON DATABASE`, in upper case.
    pub scope: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropKind {
    Table,
    View,
    Procedure,
    Function,
    Trigger,
    Schema,
    Sequence,
    Synonym,
    Type,
    Database,
    Login,
    User,
    Role,
    ServerRole,
    Default,
    Rule,
    Aggregate,
    Assembly,
    PartitionFunction,
    PartitionScheme,
    ExternalTable,
    SecurityPolicy,
    XmlSchemaCollection,
}
