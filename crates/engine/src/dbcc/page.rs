//! DBCC PAGE and DBCC IND: undocumented in SQL Server and used by everybody who looks below.
//!
//! ```text
//! PAGE (database, file, page [, 0 | 1 | 2 | 3])   header; entries; all bytes; entries      to the client under TRACEON(3604)
//! IND  (database, table, index)                   a row a page
//! ```
//! Without trace flag 3604 PAGE says nothing to the client, as SQL Server, whose error log takes the lines. Entries are
//! shown as key and payload bytes.

use super::flags::TO_CLIENT;
use super::{argument, database_argument, number, send_rows};
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{find_table, parse_name};
use crate::messages::message;
use crate::views::allocations::{level_of, type_of};
use crate::views::{Column, big, col, int, null, text, tiny};
use thawdb_storage::PageId;
use thawdb_storage::page::describe::{Detail, lines};
use thawdb_storage::page::header;
use thawdb_tsql::ast::Dbcc;
use thawdb_types::SqlType::{BigInt, Int, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const COLUMNS: &[Column] = &[
    col("PageFID", TinyInt),
    col("PagePID", Int),
    null("IAMFID", TinyInt),
    null("IAMPID", Int),
    col("ObjectID", Int),
    col("IndexID", Int),
    col("PartitionNumber", Int),
    col("PartitionID", BigInt),
    col("iam_chain_type", SqlType::nvarchar(20)),
    col("PageType", TinyInt),
    null("IndexLevel", TinyInt),
    col("NextPageFID", TinyInt),
    col("NextPagePID", Int),
    col("PrevPageFID", TinyInt),
    col("PrevPagePID", Int),
];

/// DBCC PAGE.
pub(super) fn page(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let open = database_argument(interpreter, node, 0)?;
    let file = number(interpreter, node, 1)?.ok_or_else(|| message(2560, &[&2]))?;
    let page = number(interpreter, node, 2)?.ok_or_else(|| message(2560, &[&3]))?;
    let detail = match number(interpreter, node, 3)?.unwrap_or(0) {
        0 => Detail::Header,
        1 | 3 => Detail::Entries,
        2 => Detail::Bytes,
        _ => return Err(message(2560, &[&4]).into()),
    };
    let store = open.storage.store();
    let file = u16::try_from(file).ok().and_then(|file| store.file(file).ok()).ok_or_else(|| message(2560, &[&2]))?;
    let page = u32::try_from(page).ok().filter(|page| *page < file.pages()).ok_or_else(|| message(2560, &[&3]))?;
    let id = PageId { file: file.number, page };
    let read = store.read(id).map(|bytes| lines(&bytes, id, detail));
    let shown = read.map_err(|error| Failure::run(interpreter.session.storage_failure(open.id, error)))?;
    if interpreter.session.trace_flags.contains(&TO_CLIENT) {
        for line in shown {
            interpreter.out.message(&SqlError { number: 0, severity: 0, state: 1, text: line, line: 0, procedure: None });
        }
    }
    Ok(())
}

fn file_id(page: PageId) -> Scalar {
    tiny(u8::try_from(page.file).unwrap_or(u8::MAX))
}

fn page_id(page: PageId) -> Scalar {
    int(i32::try_from(page.page).unwrap_or(i32::MAX))
}

/// DBCC IND.
pub(super) fn index_pages(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let open = database_argument(interpreter, node, 0)?;
    let name = argument(interpreter, node, 1)?.ok_or_else(|| message(2526, &[]))?;
    let wanted = number(interpreter, node, 2)?.unwrap_or(-1);
    let mut parsed = parse_name(&name).ok_or_else(|| message(2501, &[&name]))?;
    if parsed.database.is_none() && open.id != interpreter.session.database.id {
        parsed = parse_name(&format!("[{}].dbo.[{}]", open.name(), parsed.name.text)).ok_or_else(|| message(2501, &[&name]))?;
    }
    let table = find_table(interpreter.session, &parsed)?.ok_or_else(|| message(2501, &[&name]))?;
    let mut rows = Vec::new();
    for index in table.indexes.iter().filter(|index| wanted < 0 || wanted == i64::from(index.id.0)) {
        let failed = |error| Failure::run(interpreter.session.storage_failure(open.id, error));
        for page in open.storage.pages_of_tree(index.tree).map_err(failed)?.iter().filter(|page| page.is_used) {
            let bytes = open.storage.store().read(page.page).map_err(failed)?;
            let (left, right) = (header::left(&bytes), header::right(&bytes));
            rows.push(vec![
                file_id(page.page),
                page_id(page.page),
                page.map.map_or(Scalar::Null, file_id),
                page.map.map_or(Scalar::Null, page_id),
                int(table.id.0),
                int(index.id.0),
                int(1),
                big(index.tree.0),
                text(if page.is_large { "LOB data" } else { "In-row data" }),
                tiny(type_of(index, &bytes).0),
                level_of(&bytes),
                file_id(right),
                page_id(right),
                file_id(left),
                page_id(left),
            ]);
        }
    }
    send_rows(interpreter, COLUMNS, &rows)
}
