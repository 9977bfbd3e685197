//! DBCC SHRINKFILE and SHRINKDATABASE.
//!
//! ```text
//! log file    move the writing before the target, checkpoint, cut VLFs off the end        (storage: Store::shrink_log)
//! data file   give the free extents at the end back                                       (storage: Store::shrink_file)
//! ```
//! A target of 0, or none, is the size the file was made with. NOTRUNCATE and EMPTYFILE move pages between and within
//! files: not built (40517).

use super::{argument, database_argument, number, send_rows};
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::views::files::{FileFacts, facts_of};
use crate::views::{Column, col, int, small};
use std::sync::Arc;
use thawdb_storage::FileKind;
use thawdb_tsql::ast::Dbcc;
use thawdb_types::Scalar;
use thawdb_types::SqlType::{Int, SmallInt};

const COLUMNS: &[Column] = &[
    col("DbId", SmallInt),
    col("FileId", Int),
    col("CurrentSize", Int),
    col("MinimumSize", Int),
    col("UsedPages", Int),
    col("EstimatedPages", Int),
];

const PAGE_BYTES: u64 = 8192;
const MEGABYTE: u64 = 1 << 20;

fn pages(bytes: u64) -> Scalar {
    int(i32::try_from(bytes / PAGE_BYTES).unwrap_or(i32::MAX))
}

/// Which of the words at the end was said.
fn refuse_moving(word: Option<&str>) -> Result<(), Failure> {
    match word.map(str::to_ascii_uppercase).as_deref() {
        None | Some("TRUNCATEONLY" | "") => Ok(()),
        Some(other) => Err(unsupported_option(other).into()),
    }
}

/// SHRINKFILE.
pub(super) fn shrink_file(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    if interpreter.session.transactions.count > 0 {
        return Err(message(226, &[&"DBCC SHRINKFILE"]).into());
    }
    let open = interpreter.session.database.clone();
    let name = argument(interpreter, node, 0)?.ok_or_else(|| message(2526, &[]))?;
    let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    let files = facts_of(&open);
    let by_number = |file: &&FileFacts| name.parse::<i32>().is_ok_and(|number| number == file.number);
    let file = files.iter().find(|file| file.spec.name.eq_ignore_ascii_case(&name)).or_else(|| files.iter().find(by_number));
    let file = file.cloned().ok_or_else(|| message(8985, &[&name, &open.name()]))?;
    let second = argument(interpreter, node, 1)?;
    let target = match second.as_deref().map(|text| text.trim().parse::<u64>()) {
        Some(Ok(megabytes)) => {
            refuse_moving(argument(interpreter, node, 2)?.as_deref())?;
            Some(megabytes)
        }
        Some(Err(_)) => {
            refuse_moving(second.as_deref())?;
            // Without a target TRUNCATEONLY gives back all that is free at the end.
            if file.spec.kind == FileKind::Log { None } else { Some(u64::MAX) }
        }
        None => None,
    };
    let target_bytes = match target {
        Some(u64::MAX) => 1,
        Some(megabytes) if megabytes > 0 => megabytes.saturating_mul(MEGABYTE),
        _ => file.spec.size_bytes,
    };
    let row = shrink_one(interpreter, &open, &file, target_bytes)?;
    send_rows(interpreter, COLUMNS, &vec![row])
}

/// Shrinks one file and describes it.
fn shrink_one(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    file: &FileFacts,
    target_bytes: u64,
) -> Result<Vec<Scalar>, Failure> {
    let store = open.storage.store();
    let outcome = match file.spec.kind {
        FileKind::Log => {
            store.shrink_log(target_bytes).map(|(bytes, stopped)| (bytes, stopped, store.log().map_or(0, |log| log.space().used_bytes)))
        }
        FileKind::Rows { .. } => {
            let number = u16::try_from(file.number).unwrap_or(0);
            store.shrink_file(number, target_bytes).map(|shrunk| (shrunk.bytes, false, shrunk.used_bytes))
        }
    };
    let (bytes, stopped, used) = outcome.map_err(|error| Failure::run(interpreter.session.storage_failure(open.id, error)))?;
    if stopped {
        interpreter.out.message(&message(9008, &[&file.number, &file.spec.name]));
    }
    let id = i16::try_from(open.id.0).unwrap_or(i16::MAX);
    Ok(vec![small(id), int(file.number), pages(bytes), pages(file.spec.size_bytes), pages(used), pages(used)])
}

/// SHRINKDATABASE: each file, leaving the per cent asked for free.
pub(super) fn shrink_database(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    if interpreter.session.transactions.count > 0 {
        return Err(message(226, &[&"DBCC SHRINKDATABASE"]).into());
    }
    let open = database_argument(interpreter, node, 0)?;
    let second = argument(interpreter, node, 1)?;
    let percent = match second.as_deref().map(|text| text.trim().parse::<u64>()) {
        Some(Ok(percent)) if percent < 100 => {
            refuse_moving(argument(interpreter, node, 2)?.as_deref())?;
            percent
        }
        Some(Ok(_)) => {
            number(interpreter, node, 1)?;
            return Err(message(2560, &[&2]).into());
        }
        Some(Err(_)) => {
            refuse_moving(second.as_deref())?;
            0
        }
        None => 0,
    };
    let mut rows = Vec::new();
    for file in facts_of(&open) {
        let wanted = file.used_bytes.saturating_mul(100) / (100 - percent);
        rows.push(shrink_one(interpreter, &open, &file, wanted.max(file.spec.size_bytes))?);
    }
    send_rows(interpreter, COLUMNS, &rows)
}
