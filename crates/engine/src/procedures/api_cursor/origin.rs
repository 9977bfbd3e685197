//! Where the columns of a cursor come from: drivers that change rows through it ask for it with the columns.

use crate::session::api_cursors::ColumnOrigin;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_query::compile::CursorTable;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ast::{ExprKind, Query, QueryBody, SelectItem};

/// Database, schema and name of each table that can be changed.
pub(super) fn tables(session: &SessionState, tables: &[CursorTable]) -> Vec<[String; 3]> {
    let named = |table: &CursorTable| {
        let definition = definition(session, table)?;
        let database = session.engine.database(table.database).map_or_else(String::new, |open| open.name());
        let definitions = session.definitions(table.database)?;
        let schema = definitions.tables.schemas.get(&definition.schema.0).map_or_else(|| "dbo".to_owned(), Clone::clone);
        Some([database, schema, definition.name.clone()])
    };
    tables.iter().filter_map(named).collect()
}

/// The origin of each column: the column of that name in the first of the tables that has it, unless it was computed.
pub(super) fn columns(session: &SessionState, query: &Query, columns: &[OutputColumn], tables: &[CursorTable]) -> Vec<ColumnOrigin> {
    let definitions: Vec<Option<Arc<TableDef>>> = tables.iter().map(|table| definition(session, table)).collect();
    let written = written_names(query, columns.len());
    let origin = |(at, column): (usize, &OutputColumn)| {
        let name = match &written {
            Some(names) => names[at].as_ref()?,
            None => &column.name,
        };
        for (number, (definition, table)) in (1u8..).zip(definitions.iter().zip(tables)) {
            let Some(definition) = definition else { continue };
            if let Some(place) = definition.columns.iter().position(|known| known.name.eq_ignore_ascii_case(name)) {
                let key = table.keys.iter().any(|(key, _)| *key == place);
                return Some(ColumnOrigin { table: number, column: definition.columns[place].name.clone(), key });
            }
        }
        None
    };
    columns.iter().enumerate().map(|column| origin(column).unwrap_or_default()).collect()
}

/// The column that each item of the select list is, if it is one; `None` if the list has a `*` and names have to do.
fn written_names(query: &Query, count: usize) -> Option<Vec<Option<String>>> {
    let QueryBody::Select(select) = &query.body else { return None };
    let names: Option<Vec<Option<String>>> = select.items.iter().map(written_name).collect();
    names.filter(|names| names.len() == count)
}

fn written_name(item: &SelectItem) -> Option<Option<String>> {
    match item {
        SelectItem::Expr { expr, .. } => match &expr.kind {
            ExprKind::Column(column) => Some(Some(column.column.text.clone())),
            _ => Some(None),
        },
        _ => None,
    }
}

fn definition(session: &SessionState, table: &CursorTable) -> Option<Arc<TableDef>> {
    session.table(table.database, table.table)
}
