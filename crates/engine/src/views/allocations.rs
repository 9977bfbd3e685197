//! sys.dm_db_database_page_allocations: which pages each index has, undocumented in SQL Server and used by everybody who
//! looks below; and the names it shares with DBCC IND.
//!
//! LIMITED (NULL, DEFAULT) reads maps alone. DETAILED reads every page; one that cannot be read shows NULL where its header
//! would tell, since what is wrong with it is CHECKDB's to say.

use crate::instance::database::OpenDatabase;
use crate::session::state::SessionState;
use crate::views::functions::Function;
use crate::views::{Column, DESC, Rows, big, bit, col, int, null, small, text, tiny};
use thawdb_catalog::{DatabaseId, IndexDef, TableDef};
use thawdb_storage::page::{PageBytes, PageType, header};
use thawdb_storage::space::layout::EXTENT_PAGES;
use thawdb_storage::{PageId, TreePage};
use thawdb_types::SqlType::{BigInt, Bit, Int, SmallInt, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const COLUMNS: &[Column] = &[
    col("database_id", SmallInt),
    col("object_id", Int),
    null("index_id", Int),
    null("partition_id", Int),
    null("rowset_id", BigInt),
    null("allocation_unit_id", BigInt),
    null("allocation_unit_type", TinyInt),
    null("allocation_unit_type_desc", DESC),
    null("data_clone_id", Int),
    null("clone_state", TinyInt),
    null("clone_state_desc", SqlType::nvarchar(9)),
    null("extent_file_id", SmallInt),
    null("extent_page_id", Int),
    null("allocated_page_iam_file_id", SmallInt),
    null("allocated_page_iam_page_id", Int),
    null("allocated_page_file_id", SmallInt),
    null("allocated_page_page_id", Int),
    null("is_allocated", Bit),
    null("is_iam_page", Bit),
    null("is_mixed_page_allocation", Bit),
    null("page_free_space_percent", SqlType::nvarchar(64)),
    null("page_type", TinyInt),
    null("page_type_desc", SqlType::nvarchar(64)),
    null("page_level", TinyInt),
    null("next_page_file_id", SmallInt),
    null("next_page_page_id", Int),
    null("previous_page_file_id", SmallInt),
    null("previous_page_page_id", Int),
    null("is_page_compressed", Bit),
    null("has_ghost_records", Bit),
];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[Function] =
    &[Function { name: "dm_db_database_page_allocations", columns: COLUMNS, arguments: 5, rows: allocations }];

/// A page's type as SQL Server numbers and names it: large values are what it calls text.
pub(crate) fn type_of(index: &IndexDef, page: &PageBytes) -> (u8, &'static str) {
    match header::page_type(page) {
        Some(PageType::Leaf) if index.id.0 <= 1 => (1, "DATA_PAGE"),
        Some(PageType::Leaf | PageType::Inner) => (2, "INDEX_PAGE"),
        Some(PageType::Large) => (3, "TEXT_MIX_PAGE"),
        Some(PageType::Iam) => (10, "IAM_PAGE"),
        _ => (page[5], "UNKNOWN"),
    }
}

/// A page's level in its tree; NULL for one that is in none.
pub(crate) fn level_of(page: &PageBytes) -> Scalar {
    let in_tree = matches!(header::page_type(page), Some(PageType::Leaf | PageType::Inner));
    if in_tree { tiny(header::level(page)) } else { Scalar::Null }
}

fn place(page: PageId) -> [Scalar; 2] {
    [small(i16::try_from(page.file).unwrap_or(i16::MAX)), int(i32::try_from(page.page).unwrap_or(i32::MAX))]
}

fn allocations(session: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let number = |at: usize| arguments[at].as_i64();
    let is_detailed = matches!(&arguments[4], Scalar::Text(mode) if mode.eq_ignore_ascii_case("DETAILED"));
    let database = number(0).and_then(|id| i32::try_from(id).ok()).map(DatabaseId);
    let Some(open) = database.and_then(|id| session.engine.database(id)) else { return Ok(Rows::new()) };
    let is_wanted = |at: usize, id: i64| number(at).is_none_or(|wanted| wanted == id);
    let mut rows = Rows::new();
    for table in super::objects::tables_of(session, open.id).iter().filter(|table| is_wanted(1, i64::from(table.id.0))) {
        for index in table.indexes.iter().filter(|index| is_wanted(2, i64::from(index.id.0)) && is_wanted(3, 1)) {
            let pages = open.storage.pages_of_tree(index.tree).map_err(|error| session.storage_failure(open.id, error))?;
            rows.extend(pages.iter().map(|page| row(&open, table, index, page, is_detailed)));
        }
    }
    Ok(rows)
}

fn row(open: &OpenDatabase, table: &TableDef, index: &IndexDef, page: &TreePage, is_detailed: bool) -> Vec<Scalar> {
    let extent = PageId { page: page.page.page / EXTENT_PAGES * EXTENT_PAGES, ..page.page };
    let (unit, unit_name) = if page.is_large { (2, "LOB_DATA") } else { (1, "IN_ROW_DATA") };
    let rowset = big(index.tree.0);
    let mut row = vec![
        small(i16::try_from(open.id.0).unwrap_or(i16::MAX)),
        int(table.id.0),
        int(index.id.0),
        int(1),
        rowset.clone(),
        rowset,
        tiny(unit),
        text(unit_name),
        int(0),
        tiny(0),
        text("PRIMARY"),
    ];
    row.extend(place(extent));
    row.extend(page.map.map_or([Scalar::Null, Scalar::Null], place));
    row.extend(place(page.page));
    row.extend([bit(page.is_used), bit(page.map.is_none()), bit(false), Scalar::Null]);
    let bytes = if is_detailed && page.is_used { open.storage.store().read(page.page).ok() } else { None };
    let Some(bytes) = bytes else {
        row.resize(COLUMNS.len(), Scalar::Null);
        return row;
    };
    let (number, name) = type_of(index, &bytes);
    row.extend([tiny(number), text(name), level_of(&bytes)]);
    for beside in [header::right(&bytes), header::left(&bytes)] {
        row.extend(if beside == PageId::NONE { [Scalar::Null, Scalar::Null] } else { place(beside) });
    }
    row.extend([bit(header::dictionary_bytes(&bytes) > 0), bit(header::ghost_count(&bytes) > 0)]);
    row
}
