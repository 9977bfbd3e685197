//! Definitions of tables, columns and indexes: immutable, shared, complete enough to compile any statement.

use crate::filter::IndexFilter;
use crate::temporal::Temporal;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_storage::TreeId;
use thawdb_types::SqlType;
use thawdb_types::row::RowForm;

/// A database of the instance, as in sys.databases.database_id: master 1, tempdb 2, model 3, msdb 4, users' from 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(pub i32);

/// An object of a database, as in sys.objects.object_id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub i32);

/// A schema, as in sys.schemas.schema_id: dbo 1, guest 2, INFORMATION_SCHEMA 3, sys 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub i32);

/// An index of a table, as in sys.indexes.index_id: 0 the heap, 1 the clustered index, 2.. the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub i32);

/// A column of a table, as in sys.columns.column_id: from 1, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub i32);

/// IDENTITY of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentityDef {
    /// First value.
    pub seed: i64,
    /// Step.
    pub increment: i64,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    /// Its number.
    pub id: ColumnId,
    /// Its name as written.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Whether NULL may be stored.
    pub nullable: bool,
    /// IDENTITY, if it has it.
    pub identity: Option<IdentityDef>,
    /// Text of the DEFAULT expression, as sys.default_constraints.definition shows it, if any.
    pub default: Option<String>,
    /// Name of the default constraint, if any.
    pub default_name: Option<String>,
    /// Of a computed column.
    pub computed: Option<ComputedDef>,
    /// The alias type it was declared of.
    pub user_type: Option<ObjectId>,
}

/// What a computed column is computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedDef {
    /// Text of the expression, as sys.computed_columns.definition shows it.
    pub definition: String,
    /// PERSISTED.
    pub persisted: bool,
    /// Whether rows hold the value: it is persisted or in an index.
    pub stored: bool,
}

impl ColumnDef {
    /// A column with nothing but a type.
    pub fn plain(id: ColumnId, name: &str, sql_type: SqlType, nullable: bool) -> Self {
        Self {
            id,
            name: name.to_owned(),
            sql_type,
            nullable,
            identity: None,
            default: None,
            default_name: None,
            computed: None,
            user_type: None,
        }
    }

    /// Whether its value is worked out when it is read: rows do not hold it.
    pub fn is_virtual(&self) -> bool {
        self.computed.as_ref().is_some_and(|computed| !computed.stored)
    }
}

/// One column of an index key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexKey {
    /// Position in `TableDef::columns`.
    pub column_index: usize,
    /// DESC.
    pub descending: bool,
}

/// DATA_COMPRESSION of an index or heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Compression {
    /// Rows in the plain form.
    #[default]
    None = 0,
    /// Rows in the compact form.
    Row = 1,
    /// The same, and leaves that fill up share what their rows have in common.
    Page = 2,
}

impl Compression {
    /// Every setting, by its number in sys.partitions.
    pub const ALL: [Self; 3] = [Self::None, Self::Row, Self::Page];

    /// Its name in WITH and in sys.partitions.data_compression_desc.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Row => "ROW",
            Self::Page => "PAGE",
        }
    }

    /// How rows are encoded.
    pub const fn row_form(self) -> RowForm {
        match self {
            Self::None => RowForm::Plain,
            Self::Row | Self::Page => RowForm::Compact,
        }
    }

    /// Whether the tree's leaves are packed.
    pub const fn packs_leaves(self) -> bool {
        matches!(self, Self::Page)
    }
}

/// What WITH says of an index, as sys.indexes shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOptions {
    /// IGNORE_DUP_KEY: an inserted row whose key is there already is passed over.
    pub ignore_dup_key: bool,
    /// FILLFACTOR: per cent of a leaf that a build fills; 0 is full.
    pub fill_factor: u8,
    /// PAD_INDEX: inner nodes likewise.
    pub pad_index: bool,
    /// ALLOW_ROW_LOCKS.
    pub allow_row_locks: bool,
    /// ALLOW_PAGE_LOCKS.
    pub allow_page_locks: bool,
    /// OPTIMIZE_FOR_SEQUENTIAL_KEY.
    pub sequential_key: bool,
    /// DATA_COMPRESSION.
    pub compression: Compression,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            ignore_dup_key: false,
            fill_factor: 0,
            pad_index: false,
            allow_row_locks: true,
            allow_page_locks: true,
            sequential_key: false,
            compression: Compression::None,
        }
    }
}

/// ALTER TABLE SET (LOCK_ESCALATION): what becomes of many row locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum LockEscalation {
    /// They become one of the table.
    #[default]
    Table = 0,
    /// They stay.
    Disable = 1,
    /// They become one of the partition; of a table without partitions one of the table.
    Auto = 2,
}

/// An index, the clustered one or the heap included.
///
/// The tree's key is the key columns encoded by `types::key`. A clustered index that is not unique, and a heap
/// (`keys` empty), append an 8-byte big-endian row number that the table hands out. Every other index appends the
/// whole clustered key; its payload is the row codec over `included` columns.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDef {
    /// Its number: 0 heap, 1 clustered, 2.. others.
    pub id: IndexId,
    /// Its name; `None` for a heap.
    pub name: Option<String>,
    /// Key columns in order.
    pub keys: Vec<IndexKey>,
    /// INCLUDE columns, as positions in `TableDef::columns`.
    pub included: Vec<usize>,
    /// UNIQUE.
    pub unique: bool,
    /// Backs a PRIMARY KEY constraint.
    pub primary_key: bool,
    /// Backs a UNIQUE constraint.
    pub unique_constraint: bool,
    /// The condition of a filtered index.
    pub filter: Option<Arc<IndexFilter>>,
    /// What WITH said.
    pub options: IndexOptions,
    /// Where it is stored.
    pub tree: TreeId,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDef {
    /// The database it is in.
    pub database: DatabaseId,
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// Its schema's name.
    pub schema_name: String,
    /// Its name.
    pub name: String,
    /// Columns in `column_id` order.
    pub columns: Vec<ColumnDef>,
    /// Indexes in use; the first is the heap or clustered index and holds the rows.
    pub indexes: Vec<IndexDef>,
    /// Nonclustered indexes that ALTER INDEX DISABLE took out of use: definitions whose tree is [`IndexDef::NO_TREE`].
    /// Queries and writers look at `indexes` alone and so never meet them.
    pub disabled: Vec<IndexDef>,
    /// The clustered index is disabled: the rows are there and nobody may read or write them.
    pub rows_disabled: bool,
    /// ALTER TABLE SET (LOCK_ESCALATION).
    pub lock_escalation: LockEscalation,
    /// PERIOD FOR SYSTEM_TIME and SYSTEM_VERSIONING.
    pub temporal: Temporal,
    /// An index being built beside the table's use: its definition, whose tree is the operation's side tree.
    pub building: Option<Arc<IndexDef>>,
    /// Creation, 1/300 s since 1900-01-01 (datetime).
    pub created: i64,
    /// Last change of definition, likewise.
    pub modified: i64,
}

impl IndexDef {
    /// What stands for the tree of an index that has none.
    pub const NO_TREE: TreeId = TreeId(0);
}

impl TableDef {
    /// Every index, in use or disabled.
    pub fn every_index(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().chain(&self.disabled)
    }

    /// Every index, in use or disabled.
    pub fn every_index_mut(&mut self) -> impl Iterator<Item = &mut IndexDef> {
        self.indexes.iter_mut().chain(&mut self.disabled)
    }

    /// The index of this name, in use or disabled, compared as the catalog collation does (ASCII case ignored here).
    pub fn index_named(&self, name: &str) -> Option<&IndexDef> {
        self.every_index().find(|index| index.name.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Whether an index of the table is disabled.
    pub fn is_disabled(&self, index: crate::IndexId) -> bool {
        self.disabled.iter().any(|known| known.id == index) || (self.rows_disabled && self.rows().id == index)
    }

    /// The heap or clustered index.
    pub fn rows(&self) -> &IndexDef {
        &self.indexes[0]
    }

    /// The table as if the index being built were its last, with the side tree in place of its own.
    pub fn with_building(&self) -> Option<Self> {
        let building = self.building.as_ref()?;
        let mut table = self.clone();
        table.indexes.push((**building).clone());
        Some(table)
    }

    /// Position of the column named `name`, compared as the catalog collation does (ASCII case ignored here).
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }
}

/// A database's objects at one moment.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Rises with every change of definition.
    pub version: u64,
    /// Schemas by number.
    pub schemas: BTreeMap<i32, String>,
    /// Tables by number.
    pub tables: BTreeMap<i32, Arc<TableDef>>,
}

impl Catalog {
    /// The table with this schema and name (ASCII case ignored).
    pub fn table(&self, schema: &str, name: &str) -> Option<&Arc<TableDef>> {
        self.tables.values().find(|t| t.schema_name.eq_ignore_ascii_case(schema) && t.name.eq_ignore_ascii_case(name))
    }
}
