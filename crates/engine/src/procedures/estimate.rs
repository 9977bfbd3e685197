//! sp_estimate_data_compression_savings: how large a table's indexes would be with another DATA_COMPRESSION.
//!
//! ```text
//! index ─► a sample: every row of a small tree, else leaves from many places of it
//!       ─► the sample built anew in tempdb as it is now, and as asked for ─► pages of both
//!       ─► pages of the index now, times the second by the first
//! ```
//! Nothing is computed from averages: the sample goes the way that a rebuild would take, and is gone when it has been counted.
//!
//! Messages: 201, 8144, 8145 for arguments; 15001 for an object that is no table; 15600 for another word than NONE, ROW, PAGE;
//! 40517 for COLUMNSTORE. An index or partition that is not there gives no row. Locks: none beyond the view's.

use crate::api::sink::StatementKind;
use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::ddl::compression;
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::procedures::{Returned, parameter};
use crate::session::state::SessionState;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_catalog::{Compression, TableDef, TreeLayout};
use thawdb_query::context::StatementHost;
use thawdb_query::phys::OutputColumn;
use thawdb_storage::{KeyRange, ReadView, Row, RowBlock, ScanDirection, StorageError, TreeSpec};
use thawdb_types::row::{RowBuffer, RowSource};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: &str = "sp_estimate_data_compression_savings";
const PARAMETERS: [&str; 6] = ["@schema_name", "@object_name", "@index_id", "@partition_number", "@data_compression", "@xml_compression"];
/// Leaves of a sample: SQL Server's number of pages.
const SAMPLE_LEAVES: usize = 5_000;
/// Places of a large tree that its sample is taken from.
const SAMPLE_PLACES: usize = 50;
const PAGE_KB: u64 = 8;

/// Calls it, as a statement of its own.
pub(crate) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    let mut given: [Scalar; 6] = std::array::from_fn(|_| Scalar::Null);
    for (at, argument) in arguments.iter().enumerate() {
        given[parameter::place(NAME, &PARAMETERS, at, argument)?] = argument.value.clone();
    }
    let mark = session.begin_statement();
    let outcome = estimates(session, &given).and_then(|rows| session.end_statement().map(|()| rows));
    let rows = match outcome {
        Ok(rows) => rows,
        Err(error) => {
            session.undo_statement(&mark)?;
            return Err(error.into());
        }
    };
    let columns = columns();
    out.columns(&columns)?;
    rows.iter().try_for_each(|row| out.row(&columns, row))?;
    out.done(StatementKind::Select, Some(rows.len() as u64), false);
    Ok(Returned::default())
}

fn columns() -> Vec<OutputColumn> {
    let column = |name: &str, sql_type, nullable| OutputColumn { name: name.to_owned(), sql_type, nullable, identity: false };
    let size = |name: &str| column(name, SqlType::BigInt, true);
    vec![
        column("object_name", SqlType::SYSNAME, false),
        column("schema_name", SqlType::SYSNAME, false),
        column("index_id", SqlType::Int, false),
        column("partition_number", SqlType::Int, false),
        size("size_with_current_compression_setting(KB)"),
        size("size_with_requested_compression_setting(KB)"),
        size("sample_size_with_current_compression_setting(KB)"),
        size("sample_size_with_requested_compression_setting(KB)"),
    ]
}

fn estimates(session: &mut SessionState, given: &[Scalar; 6]) -> Result<Vec<Vec<Scalar>>, SqlError> {
    let missing = |at: usize| message(201, &[&NAME, &PARAMETERS[at]]);
    let name = given[1].as_text().ok_or_else(|| missing(1))?;
    let schema = given[0].as_text().map_or_else(|| session.default_schema().1, Arc::from);
    let wrong = || message(15600, &[&format!("sys.{NAME}")]);
    let word = given[4].as_text().ok_or_else(wrong)?;
    let wanted = compression::method(word).map_err(|error| if error.number == 102 { wrong() } else { error })?;
    let open = session.database.clone();
    let found = session.visible(open.id).and_then(|catalog| catalog.tables.table(&schema, name).cloned());
    let table = found.ok_or_else(|| message(15001, &[&name]))?;
    session.allow_object("SELECT", (open.id, table.id))?;
    if given[3].as_i64().is_some_and(|partition| partition != 1) {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for (at, index) in table.indexes.iter().enumerate() {
        if given[2].as_i64().is_some_and(|id| id != i64::from(index.id.0)) {
            continue;
        }
        let pages = open.storage.tree_page_count(index.tree).map_err(|error| session.storage_failure(open.id, error))?;
        let now = sample_pages(session, &open, &table, at, index.options.compression)?;
        let then = sample_pages(session, &open, &table, at, wanted)?;
        let size = |pages: u64| Scalar::BigInt(i64::try_from(pages * PAGE_KB).unwrap_or(i64::MAX));
        rows.push(vec![
            Scalar::text(table.name.as_str()),
            Scalar::text(table.schema_name.as_str()),
            Scalar::Int(index.id.0),
            Scalar::Int(1),
            size(pages),
            size((pages * then).div_ceil(now.max(1))),
            size(now),
            size(then),
        ]);
    }
    Ok(rows)
}

/// Pages of a sample of index `at` built anew with `setting`.
fn sample_pages(
    session: &SessionState,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    at: usize,
    setting: Compression,
) -> Result<u64, SqlError> {
    let view = session.read_view(open.id)?;
    let tempdb = session.storage_of(TEMPDB_ID)?;
    let mut made = (**table).clone();
    made.indexes[at].options.compression = setting;
    let layouts = (TreeLayout::new(table, at), TreeLayout::new(&made, at));
    let of_table = |error: SampleError| error.to_sql(|error| session.storage_failure(open.id, error));
    let of_tempdb = |error: StorageError| session.storage_failure(TEMPDB_ID, error);
    let mut txn = tempdb.storage.begin();
    let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: table.indexes[at].id.0.cast_unsigned(), filegroup: 1 };
    let tree = txn.create_tree_of(spec, setting.packs_leaves()).map_err(of_tempdb)?;
    let mut append = txn.bulk_append(tree).map_err(of_tempdb)?;
    append.set_fill_percent(table.indexes[at].options.fill_factor);
    let mut buffer = RowBuffer::default();
    let copied = each_sampled_leaf(&view, table.indexes[at].tree, &mut |block| {
        session.check().map_err(SampleError::Sql)?;
        for row in 0..block.len() {
            let values = layouts.0.row.decode_row(&Leaf { block, view: &view }, row)?;
            layouts.1.row.encode(&values, &mut buffer).map_err(SampleError::Sql)?;
            append.push(block.key(row), Row::inline(buffer.inline())).map_err(SampleError::Storage)?;
        }
        Ok(())
    });
    copied.map_err(of_table)?;
    append.finish().map_err(of_tempdb)?;
    let pages = tempdb.storage.tree_page_count(tree).map_err(of_tempdb)?;
    txn.rollback().map_err(of_tempdb)?;
    Ok(pages)
}

/// What taking a sample may fail with.
enum SampleError {
    Storage(StorageError),
    Sql(SqlError),
}

impl SampleError {
    fn to_sql(self, of_storage: impl Fn(StorageError) -> SqlError) -> SqlError {
        match self {
            Self::Storage(error) => of_storage(error),
            Self::Sql(error) => error,
        }
    }
}

impl From<thawdb_types::row::Damage> for SampleError {
    fn from(damage: thawdb_types::row::Damage) -> Self {
        Self::Storage(StorageError::Damage { page: thawdb_storage::PageId::NONE, offset: 0, detail: damage.detail })
    }
}

/// The rows of a leaf.
struct Leaf<'a> {
    block: &'a RowBlock,
    view: &'a ReadView,
}

impl RowSource for Leaf<'_> {
    type Error = SampleError;

    fn len(&self) -> usize {
        self.block.len()
    }

    fn row(&self, index: usize) -> &[u8] {
        self.block.value(index)
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, SampleError> {
        let part = self.block.large(index).get(ordinal);
        let part = part.ok_or_else(|| thawdb_types::row::Damage::new(format!("a row names large part {ordinal} and has none")))?;
        self.view.read_large(*part).map_err(SampleError::Storage)
    }
}

/// Hands over the leaves of a tree: all of a small one, else some from each of many places, in the order of their keys.
fn each_sampled_leaf(
    view: &ReadView,
    tree: thawdb_storage::TreeId,
    each: &mut dyn FnMut(&RowBlock) -> Result<(), SampleError>,
) -> Result<(), SampleError> {
    let pages = view.database().tree_page_count(tree).map_err(SampleError::Storage)?;
    let places = if pages <= SAMPLE_LEAVES as u64 { 1 } else { SAMPLE_PLACES };
    let keys = if places > 1 { view.dividing_keys(tree, places).map_err(SampleError::Storage)? } else { Vec::new() };
    let leaves_max = SAMPLE_LEAVES / (keys.len() + 1);
    let starts = std::iter::once(Bound::Unbounded).chain(keys.iter().cloned().map(Bound::Included));
    let ends = keys.iter().cloned().map(Bound::Excluded).chain([Bound::Unbounded]);
    for (start, end) in starts.zip(ends) {
        let mut scan = view.scan(tree, KeyRange { start, end }, ScanDirection::Forward).map_err(SampleError::Storage)?;
        let mut left = if keys.is_empty() { usize::MAX } else { leaves_max };
        while left > 0
            && let Some(block) = scan.next_block().map_err(SampleError::Storage)?
        {
            each(block)?;
            left -= 1;
        }
    }
    Ok(())
}
