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
use crate::views::{Column, big, col, int, null, text, tiny};
use thawdb_storage::PageId;
use thawdb_storage::page::describe::{Detail, lines};
use thawdb_storage::page::{PageType, header};
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
        let pages = open.storage.pages_of_tree(index.tree);
        let mut iam = None;
        for (id, bytes) in pages.map_err(|error| Failure::run(interpreter.session.storage_failure(open.id, error)))? {
            let of = header::page_type(&bytes);
            let own_iam = if of == Some(PageType::Iam) { None } else { iam };
            if of == Some(PageType::Iam) {
                iam = Some(id);
            }
            let (left, right) = (header::left(&bytes), header::right(&bytes));
            // SQL Server's numbers: 1 data, 2 index, 3 large values, 10 IAM.
            let shown = match of {
                Some(PageType::Leaf) if index.id.0 <= 1 => 1,
                Some(PageType::Leaf | PageType::Inner) => 2,
                Some(PageType::Large) => 3,
                _ => bytes[5],
            };
            let level = if matches!(of, Some(PageType::Leaf | PageType::Inner)) { tiny(header::level(&bytes)) } else { Scalar::Null };
            let chain = if of == Some(PageType::Large) { "LOB data" } else { "In-row data" };
            rows.push(vec![
                file_id(id),
                page_id(id),
                own_iam.map_or(Scalar::Null, file_id),
                own_iam.map_or(Scalar::Null, page_id),
                int(table.id.0),
                int(index.id.0),
                int(1),
                big(index.tree.0),
                text(chain),
                tiny(shown),
                level,
                file_id(right),
                page_id(right),
                file_id(left),
                page_id(left),
            ]);
        }
    }
    send_rows(interpreter, COLUMNS, &rows)
}
