//! sys.thawdb_error_log: the error log's lines, which sp_readerrorlog reads.

use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, col, moment, text};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::DateTime;
use thawdb_types::{SqlError, SqlType};

const COLUMNS: &[Column] = &[col("LogDate", DateTime), col("ProcessInfo", SqlType::nvarchar(50)), col("Text", SqlType::NVARCHAR_MAX)];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[View { schema: "sys", name: "thawdb_error_log", columns: COLUMNS, rows: lines }];

fn lines(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let lines = session.engine.error_log.lines();
    Ok(lines.into_iter().map(|line| vec![moment(line.moment), text(line.source), text(line.text)]).collect())
}
