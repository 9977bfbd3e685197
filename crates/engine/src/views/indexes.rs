//! sys.indexes, sys.index_columns, sys.partitions, sys.stats, sys.allocation_units.

use crate::session::state::SessionState;
use crate::views::objects::tables_of;
use crate::views::{Column, DESC, Rows, View, big, bit, col, int, null, optional_text, text, tiny};
use thawdb_catalog::{DatabaseId, IndexDef, TableDef};
use thawdb_query::context::StatementHost;
use thawdb_storage::{KeyRange, ScanDirection};
use thawdb_types::SqlType::{BigInt, Bit, Int, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const INDEX_COLUMNS: &[Column] = &[
    col("object_id", Int),
    null("name", NAME),
    col("index_id", Int),
    col("type", TinyInt),
    null("type_desc", DESC),
    null("is_unique", Bit),
    null("data_space_id", Int),
    null("ignore_dup_key", Bit),
    null("is_primary_key", Bit),
    null("is_unique_constraint", Bit),
    col("fill_factor", TinyInt),
    null("is_padded", Bit),
    null("is_disabled", Bit),
    null("is_hypothetical", Bit),
    null("is_ignored_in_optimization", Bit),
    null("allow_row_locks", Bit),
    null("allow_page_locks", Bit),
    null("has_filter", Bit),
    null("filter_definition", SqlType::NVARCHAR_MAX),
    null("compression_delay", Int),
    null("suppress_dup_key_messages", Bit),
    null("auto_created", Bit),
    null("optimize_for_sequential_key", Bit),
];

const INDEX_COLUMN_COLUMNS: &[Column] = &[
    col("object_id", Int),
    col("index_id", Int),
    col("index_column_id", Int),
    col("column_id", Int),
    col("key_ordinal", TinyInt),
    col("partition_ordinal", TinyInt),
    null("is_descending_key", Bit),
    null("is_included_column", Bit),
    col("column_store_order_ordinal", TinyInt),
];

const PARTITION_COLUMNS: &[Column] = &[
    col("partition_id", BigInt),
    col("object_id", Int),
    col("index_id", Int),
    col("partition_number", Int),
    col("hobt_id", BigInt),
    null("rows", BigInt),
    col("filestream_filegroup_id", SqlType::SmallInt),
    col("data_compression", TinyInt),
    null("data_compression_desc", DESC),
    null("xml_compression", Bit),
    null("xml_compression_desc", SqlType::varchar(3)),
];

const PARTITION_STATS_COLUMNS: &[Column] = &[
    null("partition_id", BigInt),
    col("object_id", Int),
    col("index_id", Int),
    col("partition_number", Int),
    null("in_row_used_page_count", BigInt),
    null("used_page_count", BigInt),
    null("row_count", BigInt),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "indexes", columns: INDEX_COLUMNS, rows: indexes },
    View { schema: "sys", name: "index_columns", columns: INDEX_COLUMN_COLUMNS, rows: index_columns },
    View { schema: "sys", name: "partitions", columns: PARTITION_COLUMNS, rows: partitions },
    View { schema: "sys", name: "dm_db_partition_stats", columns: PARTITION_STATS_COLUMNS, rows: partition_stats },
];

/// sys.indexes.type and type_desc.
fn index_type(index: &IndexDef) -> (u8, &'static str) {
    match index.id.0 {
        0 => (0, "HEAP"),
        1 => (1, "CLUSTERED"),
        _ => (2, "NONCLUSTERED"),
    }
}

fn each_index<'s>(session: &'s SessionState, database: DatabaseId) -> impl Iterator<Item = (std::sync::Arc<TableDef>, IndexDef)> + 's {
    tables_of(session, database).into_iter().flat_map(|table| {
        let mut indexes: Vec<_> = table.every_index().map(|index| (table.clone(), index.clone())).collect();
        indexes.sort_by_key(|(_, index)| index.id);
        indexes
    })
}

fn indexes(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let row = |(table, index): (std::sync::Arc<TableDef>, IndexDef)| {
        let (kind, description) = index_type(&index);
        vec![
            int(table.id.0),
            optional_text(index.name.as_deref()),
            int(index.id.0),
            tiny(kind),
            text(description),
            bit(index.unique),
            int(1),
            bit(index.options.ignore_dup_key),
            bit(index.primary_key),
            bit(index.unique_constraint),
            tiny(index.options.fill_factor),
            bit(index.options.pad_index),
            bit(table.is_disabled(index.id)),
            bit(false),
            bit(false),
            bit(index.options.allow_row_locks),
            bit(index.options.allow_page_locks),
            bit(index.filter.is_some()),
            optional_text(index.filter.as_ref().map(|filter| filter.text.as_str())),
            Scalar::Null,
            bit(false),
            bit(false),
            bit(index.options.sequential_key),
        ]
    };
    Ok(each_index(session, database).map(row).collect())
}

fn index_columns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (table, index) in each_index(session, database) {
        let column_id = |position: usize| table.columns[position].id.0;
        let keys = index.keys.iter().zip(1_u8..).map(|(key, ordinal)| (column_id(key.column_index), ordinal, key.descending, false));
        let included = index.included.iter().map(|position| (column_id(*position), 0, false, true));
        for (number, (column, ordinal, descending, included)) in (1..).zip(keys.chain(included)) {
            rows.push(vec![
                int(table.id.0),
                int(index.id.0),
                int(number),
                int(column),
                tiny(ordinal),
                tiny(0),
                bit(descending),
                bit(included),
                tiny(0),
            ]);
        }
    }
    Ok(rows)
}

/// Rows of a table, counted under the statement's view.
pub(crate) fn count_rows(session: &SessionState, table: &TableDef) -> Result<u64, SqlError> {
    let failed = |error| session.storage_failure(table.database, error);
    let view = session.read_view(table.database)?;
    let mut scan = view.scan(table.rows().tree, KeyRange::ALL, ScanDirection::Forward).map_err(failed)?;
    let mut count = 0;
    while let Some(block) = scan.next_block().map_err(failed)? {
        count += block.len() as u64;
        session.check()?;
    }
    Ok(count)
}

fn partitions(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for table in tables_of(session, database) {
        let count = count_rows(session, &table)?;
        for index in &table.indexes {
            rows.push(vec![
                big(index.tree.0),
                int(table.id.0),
                int(index.id.0),
                int(1),
                big(index.tree.0),
                big(count),
                Scalar::SmallInt(0),
                tiny(index.options.compression as u8),
                text(index.options.compression.name()),
                bit(false),
                text("OFF"),
            ]);
        }
    }
    Ok(rows)
}

fn partition_stats(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    let open = session.storage_of(database)?;
    for table in tables_of(session, database) {
        let count = count_rows(session, &table)?;
        for index in &table.indexes {
            let pages = open.storage.tree_page_count(index.tree).map_err(|error| session.storage_failure(database, error))?;
            rows.push(vec![big(index.tree.0), int(table.id.0), int(index.id.0), int(1), big(pages), big(pages), big(count)]);
        }
    }
    Ok(rows)
}
