//! Keys and indexes of a table being defined: from PRIMARY KEY, UNIQUE and INDEX clauses to index definitions.

use crate::ddl::compression;
use crate::ddl::index_filter::FilterReader;
use crate::messages::{message, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, IndexDef, IndexFilter, IndexId, IndexKey, IndexOptions};
use thawdb_storage::TreeId;
use thawdb_tsql::ast::{
    Expr, ExprKind, Ident, IndexKey as KeySyntax, IndexOption, IndexOptionKind, InlineIndex, KeyConstraint, Literal, StorageTarget,
};
use thawdb_types::SqlError;

/// Columns of an index key: SQL Server's limit.
const KEY_COLUMNS_MAX: usize = 32;

/// An index to be made, before it has a tree and a number.
#[derive(Debug, Clone)]
pub(crate) struct NewIndex {
    /// Its name; `None` where the engine makes one up.
    pub(crate) name: Option<String>,
    pub(crate) keys: Vec<IndexKey>,
    pub(crate) included: Vec<usize>,
    pub(crate) unique: bool,
    pub(crate) primary_key: bool,
    pub(crate) unique_constraint: bool,
    /// As written: `None` leaves it to the defaults.
    pub(crate) clustered: Option<bool>,
    pub(crate) filegroup: Option<String>,
    pub(crate) filter: Option<Arc<IndexFilter>>,
    pub(crate) options: IndexOptions,
    /// Whether DATA_COMPRESSION was written.
    pub(crate) says_compression: bool,
}

impl NewIndex {
    /// The definition, with its number and tree.
    pub(crate) fn definition(&self, id: IndexId, name: String, tree: TreeId) -> IndexDef {
        IndexDef {
            id,
            name: Some(name),
            keys: self.keys.clone(),
            included: self.included.clone(),
            unique: self.unique,
            primary_key: self.primary_key,
            unique_constraint: self.unique_constraint,
            filter: self.filter.clone(),
            options: self.options,
            tree,
        }
    }
}

/// A key clause at a column (`at_column`) or of the table.
pub(crate) fn key_constraint(
    columns: &[ColumnDef],
    table: &str,
    name: Option<&Ident>,
    clause: &KeyConstraint,
    primary_key: bool,
    at_column: Option<usize>,
) -> Result<NewIndex, SqlError> {
    if clause.hash || clause.not_enforced {
        return Err(unsupported_option(if clause.hash { "HASH" } else { "NOT ENFORCED" }));
    }
    check_options(&clause.options)?;
    let keys = match at_column {
        Some(column_index) => vec![IndexKey { column_index, descending: false }],
        None => keys_of(columns, table, &clause.columns, if primary_key { "constraint" } else { "constraint" })?,
    };
    check_key_types(columns, table, &keys)?;
    Ok(NewIndex {
        name: name.map(|name| name.text.clone()),
        keys,
        included: Vec::new(),
        unique: true,
        primary_key,
        unique_constraint: !primary_key,
        clustered: clause.clustered,
        filegroup: filegroup_of(clause.on.as_ref())?,
        filter: None,
        options: options_of(&clause.options)?,
        says_compression: says_compression(&clause.options),
    })
}

/// An INDEX clause of CREATE TABLE. At a column its key is that column.
pub(crate) fn inline_index(reader: &FilterReader<'_>, clause: &InlineIndex, at_column: Option<usize>) -> Result<NewIndex, SqlError> {
    if clause.hash || clause.columnstore {
        return Err(unsupported_option("HASH or COLUMNSTORE index"));
    }
    let (columns, table) = (reader.columns, reader.table);
    check_options(&clause.options)?;
    let keys = match at_column {
        Some(column_index) if clause.keys.is_empty() => vec![IndexKey { column_index, descending: false }],
        _ => keys_of(columns, table, &clause.keys, "index")?,
    };
    check_key_types(columns, table, &keys)?;
    let is_clustered = clause.clustered == Some(true);
    check_clause(is_clustered, clause.unique, &clause.include, clause.filter.is_some(), (&clause.name.text, table), &clause.options)?;
    Ok(NewIndex {
        name: Some(clause.name.text.clone()),
        included: included_of(columns, table, &clause.include, &keys)?,
        keys,
        unique: clause.unique,
        primary_key: false,
        unique_constraint: false,
        clustered: Some(clause.clustered.unwrap_or(false)),
        filegroup: filegroup_of(clause.on.as_ref())?,
        filter: clause.filter.as_ref().map(|filter| reader.read(&clause.name.text, filter)).transpose()?,
        options: options_of(&clause.options)?,
        says_compression: says_compression(&clause.options),
    })
}

/// Key columns by name: 1911 for one that is not there, 1909 for one named twice, 1904 for too many.
pub(crate) fn keys_of(columns: &[ColumnDef], table: &str, syntax: &[KeySyntax], what: &str) -> Result<Vec<IndexKey>, SqlError> {
    let mut keys: Vec<IndexKey> = Vec::with_capacity(syntax.len());
    for key in syntax {
        let position = columns.iter().position(|column| key.column.is(&column.name));
        let column_index = position.ok_or_else(|| message(1911, &[&key.column.text]).at_line(key.column.span.line))?;
        if keys.iter().any(|known| known.column_index == column_index) {
            return Err(message(1909, &[&what, &key.column.text]).at_line(key.column.span.line));
        }
        keys.push(IndexKey { column_index, descending: key.descending });
    }
    if keys.len() > KEY_COLUMNS_MAX {
        return Err(message(1904, &[&what, &"", &table, &keys.len(), &what, &KEY_COLUMNS_MAX]));
    }
    Ok(keys)
}

/// INCLUDE columns by name.
pub(crate) fn included_of(columns: &[ColumnDef], table: &str, names: &[Ident], keys: &[IndexKey]) -> Result<Vec<usize>, SqlError> {
    let mut included: Vec<usize> = Vec::with_capacity(names.len());
    for name in names {
        let position = columns.iter().position(|column| name.is(&column.name));
        let position = position.ok_or_else(|| message(1911, &[&name.text]).at_line(name.span.line))?;
        if included.contains(&position) || keys.iter().any(|key| key.column_index == position) {
            return Err(message(1909, &[&"index", &name.text]).at_line(name.span.line));
        }
        if columns[position].sql_type.is_incomparable() {
            return Err(message(1999, &[&name.text, &table]).at_line(name.span.line));
        }
        included.push(position);
    }
    Ok(included)
}

/// 1919 for key columns of types that have no order or no bound.
pub(crate) fn check_key_types(columns: &[ColumnDef], table: &str, keys: &[IndexKey]) -> Result<(), SqlError> {
    let bad = keys.iter().map(|key| &columns[key.column_index]).find(|column| column.sql_type.is_large());
    match bad {
        Some(column) => Err(message(1919, &[&column.name, &table])),
        None => Ok(()),
    }
}

/// The filegroup an ON clause names; a partition scheme is refused.
pub(crate) fn filegroup_of(on: Option<&StorageTarget>) -> Result<Option<String>, SqlError> {
    match on {
        None => Ok(None),
        Some(target) if target.column.is_some() => Err(unsupported_option("PARTITION SCHEME")),
        Some(target) => Ok(Some(target.name.text.clone())),
    }
}

/// Options that are what this engine does anyway, or only advise, are taken; others are refused by name.
pub(crate) fn check_options(options: &[IndexOption]) -> Result<(), SqlError> {
    for option in options {
        let refused = match &option.kind {
            IndexOptionKind::PadIndex(_)
            | IndexOptionKind::FillFactor(_)
            | IndexOptionKind::SortInTempdb(_)
            | IndexOptionKind::StatisticsNoRecompute(_)
            | IndexOptionKind::AllowRowLocks(_)
            | IndexOptionKind::AllowPageLocks(_)
            | IndexOptionKind::OptimizeForSequentialKey(_)
            | IndexOptionKind::MaxDop(_)
            | IndexOptionKind::IgnoreDupKey(_)
            | IndexOptionKind::StatisticsIncremental(false)
            | IndexOptionKind::DropExisting(false)
            | IndexOptionKind::Resumable(false)
            | IndexOptionKind::Online { on: false, .. }
            | IndexOptionKind::DataCompression { .. }
            | IndexOptionKind::XmlCompression(false) => None,
            IndexOptionKind::DropExisting(true) => Some("DROP_EXISTING".to_owned()),
            IndexOptionKind::Resumable(true) => Some("RESUMABLE".to_owned()),
            IndexOptionKind::Online { .. } => Some("ONLINE".to_owned()),
            IndexOptionKind::MaxDuration(_) => Some("MAX_DURATION".to_owned()),
            IndexOptionKind::Other(item) => Some(item.name.clone()),
            _ => Some("index option".to_owned()),
        };
        if let Some(name) = refused {
            return Err(unsupported_option(name).at_line(option.span.line));
        }
    }
    Ok(())
}

/// Whether DATA_COMPRESSION is among the options.
pub(crate) fn says_compression(options: &[IndexOption]) -> bool {
    options.iter().any(|option| matches!(option.kind, IndexOptionKind::DataCompression { .. }))
}

/// What WITH says that the index keeps. 129 for a FILLFACTOR that is no percentage.
pub(crate) fn options_of(options: &[IndexOption]) -> Result<IndexOptions, SqlError> {
    let mut read = IndexOptions::default();
    change_options(&mut read, options).map(|()| read)
}

/// Takes over what WITH or SET says.
pub(crate) fn change_options(read: &mut IndexOptions, options: &[IndexOption]) -> Result<(), SqlError> {
    if let Some(compression) = compression::said(options, ("create", "index", ""))? {
        read.compression = compression;
    }
    for option in options {
        match &option.kind {
            IndexOptionKind::IgnoreDupKey(on) => read.ignore_dup_key = *on,
            IndexOptionKind::PadIndex(on) => read.pad_index = *on,
            IndexOptionKind::AllowRowLocks(on) => read.allow_row_locks = *on,
            IndexOptionKind::AllowPageLocks(on) => read.allow_page_locks = *on,
            IndexOptionKind::OptimizeForSequentialKey(on) => read.sequential_key = *on,
            IndexOptionKind::FillFactor(value) => {
                read.fill_factor = fill_factor(value).map_err(|error| error.at_line(option.span.line))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn fill_factor(value: &Expr) -> Result<u8, SqlError> {
    let ExprKind::Literal(Literal::Integer(percent)) = &value.kind else { return Err(message(102, &[&"FILLFACTOR"])) };
    let given = u8::try_from(*percent).ok().filter(|percent| (1..=100).contains(percent));
    given.ok_or_else(|| message(129, &[percent]))
}

/// What an INDEX clause or CREATE INDEX may not put together. `names` are the index's and the table's.
pub(crate) fn check_clause(
    clustered: bool,
    unique: bool,
    include: &[Ident],
    filtered: bool,
    names: (&str, &str),
    options: &[IndexOption],
) -> Result<(), SqlError> {
    let ignores = options.iter().any(|option| option.kind == IndexOptionKind::IgnoreDupKey(true));
    if clustered && !include.is_empty() {
        return Err(message(10601, &[]));
    }
    if ignores && filtered {
        return Err(message(10618, &[&"create", &names.0, &names.1]));
    }
    if ignores && !unique {
        return Err(message(1916, &[&"nonunique", &"ignore_dup_key"]));
    }
    // The rows themselves cannot be left out of their own tree.
    if clustered && filtered { Err(message(156, &[&"WHERE"])) } else { Ok(()) }
}
