//! sys.key_constraints, sys.default_constraints, sys.check_constraints, sys.foreign_keys and sys.foreign_key_columns.

use crate::session::state::SessionState;
use crate::views::modules::object_with;
use crate::views::objects::{OBJECT_COLUMNS, constraint_row, constraints_of};
use crate::views::{Column, DESC, Rows, View, bit, col, int, null, optional_text, text, tiny};
use thawdb_catalog::{ConstraintKind, DatabaseId, ReferentialAction};
use thawdb_types::SqlType::{Bit, Int, TinyInt};
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

const FOREIGN_KEYS: [Column; 22] = object_with(&[
    null("referenced_object_id", Int),
    null("key_index_id", Int),
    col("is_disabled", Bit),
    col("is_not_for_replication", Bit),
    col("is_not_trusted", Bit),
    null("delete_referential_action", TinyInt),
    null("delete_referential_action_desc", DESC),
    null("update_referential_action", TinyInt),
    null("update_referential_action_desc", DESC),
    col("is_system_named", Bit),
]);

const CHECKS: [Column; 19] = object_with(&[
    col("is_disabled", Bit),
    col("is_not_for_replication", Bit),
    col("is_not_trusted", Bit),
    col("parent_column_id", Int),
    null("definition", SqlType::NVARCHAR_MAX),
    null("uses_database_collation", Bit),
    col("is_system_named", Bit),
]);

const FOREIGN_KEY_COLUMNS: &[Column] = &[
    col("constraint_object_id", Int),
    col("constraint_column_id", Int),
    col("parent_object_id", Int),
    col("parent_column_id", Int),
    col("referenced_object_id", Int),
    col("referenced_column_id", Int),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "key_constraints", columns: &KEY_COLUMNS, rows: keys },
    View { schema: "sys", name: "default_constraints", columns: &DEFAULT_COLUMNS, rows: defaults },
    View { schema: "sys", name: "check_constraints", columns: &CHECKS, rows: checks },
    View { schema: "sys", name: "foreign_keys", columns: &FOREIGN_KEYS, rows: foreign_keys },
    View { schema: "sys", name: "foreign_key_columns", columns: FOREIGN_KEY_COLUMNS, rows: foreign_key_columns },
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
        let table = crate::security::visibility::table(session, database, constraint.table);
        let definition = table.as_ref().and_then(|table| table.columns.iter().find(|c| c.id == column)?.default.as_deref());
        let mut row: Vec<Scalar> = constraint_row(&constraint, schema);
        row.extend([int(column.0), optional_text(definition), bit(constraint.system_named)]);
        rows.push(row);
    }
    Ok(rows)
}

fn checks(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (constraint, schema) in constraints_of(session, database) {
        let Some(check) = &constraint.check else { continue };
        let mut row = constraint_row(&constraint, schema);
        let column = check.column.map_or(0, |column| column.0);
        row.extend([bit(check.disabled), bit(false), bit(check.not_trusted || check.disabled), int(column)]);
        row.extend([optional_text(Some(&check.definition)), bit(false), bit(constraint.system_named)]);
        rows.push(row);
    }
    Ok(rows)
}

fn action(action: ReferentialAction) -> [Scalar; 2] {
    let word = match action {
        ReferentialAction::NoAction => "NO_ACTION",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET_NULL",
        ReferentialAction::SetDefault => "SET_DEFAULT",
    };
    [tiny(action as u8), text(word)]
}

fn foreign_keys(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (constraint, schema) in constraints_of(session, database) {
        let Some(key) = &constraint.foreign_key else { continue };
        let mut row = constraint_row(&constraint, schema);
        row.extend([int(key.referenced.0), int(key.index.0), bit(key.disabled), bit(false), bit(key.not_trusted || key.disabled)]);
        row.extend(action(key.on_delete));
        row.extend(action(key.on_update));
        row.push(bit(constraint.system_named));
        rows.push(row);
    }
    Ok(rows)
}

fn foreign_key_columns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (constraint, _) in constraints_of(session, database) {
        let Some(key) = &constraint.foreign_key else { continue };
        for (ordinal, (own, referenced)) in (1..).zip(key.columns.iter().zip(&key.referenced_columns)) {
            let (table, parent) = (int(constraint.table.0), int(key.referenced.0));
            rows.push(vec![int(constraint.id.0), int(ordinal), table, int(own.0), parent, int(referenced.0)]);
        }
    }
    Ok(rows)
}
