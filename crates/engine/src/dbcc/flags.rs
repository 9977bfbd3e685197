//! DBCC TRACEON, TRACEOFF, TRACESTATUS: flags of a session.

use super::send_rows;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::message;
use crate::views::{Column, col, small};
use thawdb_tsql::ast::{Dbcc, DbccArgument};
use thawdb_types::SqlType;
use thawdb_types::SqlType::SmallInt;

/// Sends DBCC PAGE's and IND's answer to the client.
pub(super) const TO_CLIENT: i32 = 3604;

const COLUMNS: &[Column] = &[col("TraceFlag", SmallInt), col("Status", SmallInt), col("Global", SmallInt), col("Session", SmallInt)];

fn flags_of(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<Vec<i32>, Failure> {
    let mut flags = Vec::with_capacity(node.arguments.len());
    for argument in &node.arguments {
        let DbccArgument::Expr(expr) = argument else { return Err(message(2526, &[]).into()) };
        let flag = interpreter.assignment(expr, SqlType::Int)?.as_i64().unwrap_or(0);
        flags.push(i32::try_from(flag).map_err(|_| message(2560, &[&1]))?);
    }
    Ok(flags)
}

/// TRACEON, TRACEOFF.
pub(super) fn change(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    for flag in flags_of(interpreter, node)? {
        let flags = &mut interpreter.session.trace_flags;
        flags.retain(|known| *known != flag);
        if node.name == "TRACEON" && flag != -1 {
            flags.push(flag);
        }
    }
    Ok(())
}

/// TRACESTATUS: the flags that are on, or the state of those asked for.
pub(super) fn status(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let asked: Vec<i32> = flags_of(interpreter, node)?.into_iter().filter(|flag| *flag != -1).collect();
    let mut on = interpreter.session.trace_flags.clone();
    on.sort_unstable();
    let shown = if asked.is_empty() { on.clone() } else { asked };
    let row = |flag: &i32| {
        let set = i16::from(on.contains(flag));
        vec![small(i16::try_from(*flag).unwrap_or(i16::MAX)), small(set), small(0), small(set)]
    };
    let rows: Vec<_> = shown.iter().map(row).collect();
    if rows.is_empty() { Ok(()) } else { send_rows(interpreter, COLUMNS, &rows) }
}
