//! sys.key_constraints and sys.default_constraints.

use crate::session::state::SessionState;
use crate::views::objects::{OBJECT_COLUMNS, constraint_row, constraints_of};
use crate::views::{Column, Rows, View, bit, col, int, null, optional_text};
use thawdb_catalog::{ConstraintKind, DatabaseId};
use thawdb_types::SqlType::{Bit, Int};
use thawdb_types::{Scalar, SqlError, SqlType};

const fn with_tail(tail: [Column; 3]) -> [Column; 15] {
    let mut columns = [OBJECT_COLUMNS[0]; 15];
    let mut at = 0;
    while at < 15 {
        columns[at] = if at < 12 { OBJECT_COLUMNS[at] } else { tail[at - 12] };
        at += 1;
    }
    columns
}

const KEY_COLUMNS: [Column; 15] = with_tail([null("unique_index_id", Int), col("is_system_named", Bit), null("is_enforced", Bit)]);
const DEFAULT_COLUMNS: [Column; 15] =
    with_tail([col("parent_column_id", Int), null("definition", SqlType::NVARCHAR_MAX), col("is_system_named", Bit)]);

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "key_constraints", columns: &KEY_COLUMNS, rows: keys },
    View { schema: "sys", name: "default_constraints", columns: &DEFAULT_COLUMNS, rows: defaults },
];

fn keys(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (constraint, schema) in constraints_of(session, database) {
        if let ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) = constraint.kind {
            let mut row = constraint_row(&constraint, schema);
            row.extend([int(index.0), bit(constraint.system_named), bit(true)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn defaults(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (constraint, schema) in constraints_of(session, database) {
        let ConstraintKind::Default(column) = constraint.kind else { continue };
        let table = session.table(database, constraint.table);
        let definition = table.as_ref().and_then(|table| table.columns.iter().find(|c| c.id == column)?.default.as_deref());
        let mut row: Vec<Scalar> = constraint_row(&constraint, schema);
        row.extend([int(column.0), optional_text(definition), bit(constraint.system_named)]);
        rows.push(row);
    }
    Ok(rows)
}
