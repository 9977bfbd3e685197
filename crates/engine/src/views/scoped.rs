//! sys.database_scoped_configurations: what a database sets for itself.

use crate::ddl::scoped::{SETTINGS, value_of};
use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, bit, col, int, null, text, variant};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{Bit, Int};
use thawdb_types::{Scalar, SqlError, SqlType};

const COLUMNS: &[Column] = &[
    col("configuration_id", Int),
    col("name", SqlType::SYSNAME),
    null("value", SqlType::SqlVariant),
    null("value_for_secondary", SqlType::SqlVariant),
    col("is_value_default", Bit),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[View { schema: "sys", name: "database_scoped_configurations", columns: COLUMNS, rows: settings }];

fn settings(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Ok(open) = session.storage_of(database) else { return Ok(Rows::new()) };
    let row = |&(id, name, _): &(i32, &str, &str)| {
        let (value, is_default) = value_of(&open, name);
        vec![int(id), text(name.to_owned()), variant(text(value), &SqlType::SYSNAME), Scalar::Null, bit(is_default)]
    };
    Ok(SETTINGS.iter().map(row).collect())
}
