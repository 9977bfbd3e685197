//! Views over objects that cannot be made yet: right in their columns, and truly empty.

use crate::session::state::SessionState;
use crate::views::{Column, DESC, Rows, View, col, null};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{Int, TinyInt};
use thawdb_types::{SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const EXTENDED_PROPERTIES: &[Column] = &[
    col("class", TinyInt),
    null("class_desc", DESC),
    col("major_id", Int),
    col("minor_id", Int),
    col("name", NAME),
    null("value", SqlType::nvarchar(4000)),
];

const fn sys(name: &'static str, columns: &'static [Column]) -> View {
    View { schema: "sys", name, columns, rows: nothing }
}

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[sys("extended_properties", EXTENDED_PROPERTIES)];

fn nothing(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(Rows::new())
}
