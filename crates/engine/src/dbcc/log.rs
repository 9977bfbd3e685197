//! DBCC SQLPERF (LOGSPACE) and DBCC LOGINFO.

use super::{argument, database_argument, send_rows};
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::unsupported;
use crate::views::log::{loginfo as loginfo_rows, usage};
use crate::views::{Column, col, int, text};
use thawdb_tsql::ast::Dbcc;
use thawdb_types::SqlType::{BigInt, Int, Real, TinyInt};
use thawdb_types::{Scalar, SqlType};

const SPACE_COLUMNS: &[Column] =
    &[col("Database Name", SqlType::SYSNAME), col("Log Size (MB)", Real), col("Log Space Used (%)", Real), col("Status", Int)];

const INFO_COLUMNS: &[Column] = &[
    col("RecoveryUnitId", Int),
    col("FileId", Int),
    col("FileSize", BigInt),
    col("StartOffset", BigInt),
    col("FSeqNo", Int),
    col("Status", Int),
    col("Parity", TinyInt),
    col("CreateLSN", SqlType::numeric(38, 0)),
];

/// SQLPERF.
pub(super) fn performance(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let what = argument(interpreter, node, 0)?.unwrap_or_default();
    if !what.eq_ignore_ascii_case("LOGSPACE") {
        return Err(unsupported(format!("DBCC SQLPERF ({what})")).into());
    }
    let mut rows = Vec::new();
    for open in interpreter.session.engine.all_databases() {
        if let Some(log) = open.storage.store().log() {
            let (total, _, percent) = usage(log);
            rows.push(vec![text(open.name()), Scalar::Real(total as f32 / 1_048_576.0), Scalar::Real(percent), int(0)]);
        }
    }
    send_rows(interpreter, SPACE_COLUMNS, &rows)
}

/// LOGINFO.
pub(super) fn loginfo(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let open = database_argument(interpreter, node, 0)?;
    send_rows(interpreter, INFO_COLUMNS, &loginfo_rows(&open))
}
