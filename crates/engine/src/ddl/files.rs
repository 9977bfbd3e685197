//! ALTER DATABASE ADD FILE, ADD LOG FILE, REMOVE FILE, MODIFY FILE.
//!
//! Storage changes first and durably, then master's record: a crash between the two is mended at the next start, when the
//! record takes over what the database's own table of files says ([`crate::instance::startup`]).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::database::{check_names, file_of, growth_of};
use crate::ddl::filegroups;
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::storage_error::operating_system_error;
use crate::views::files::{FileFacts, facts_of};
use std::sync::Arc;
use thawdb_device::DeviceErrorKind;
use thawdb_storage::store::files::Removal;
use thawdb_storage::{FileKind, StorageError};
use thawdb_tsql::ast::{FileSize, FileSpec as FileSyntax};
use thawdb_types::SqlError;

/// Turns of the cleaner that wait for a dropped table's pages before a file counts as not empty.
const CLEANING_TURNS: u32 = 10_000;

fn failure(interpreter: &Interpreter<'_, '_>, open: &OpenDatabase, error: StorageError) -> Failure {
    match error {
        StorageError::Io(device) if device.kind == DeviceErrorKind::AlreadyExists => message(5170, &[&device.path.display()]).into(),
        StorageError::Io(device) if device.operation == "open" => {
            message(5123, &[&operating_system_error(device.os_error), &device.path.display()]).into()
        }
        other => Failure::run(interpreter.session.storage_failure(open.id, other)),
    }
}

/// ADD FILE.
pub(crate) fn add(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    files: &[FileSyntax],
    filegroup: Option<&str>,
) -> Result<(), Failure> {
    let record = open.record();
    let number = match filegroup {
        None => 1,
        Some(name) => filegroups::number_of(&record, name).ok_or_else(|| message(1921, &[&"filegroup", &name]))?,
    };
    if filegroups::is_read_only(&record, number) {
        return Err(message(5047, &[&filegroups::name_of(&record, number)]).into());
    }
    let folder = interpreter.session.engine.config.data_folder.clone();
    let mut all = record.files.clone();
    let mut new = Vec::new();
    for file in files {
        let spec = file_of(file, FileKind::Rows { filegroup: number }, &folder)?;
        all.push(spec.clone());
        new.push(spec);
    }
    check_names(&all)?;
    let engine = interpreter.session.engine.clone();
    for spec in new {
        open.storage.store().add_data_file(&spec).map_err(|error| failure(interpreter, open, error))?;
        engine.change_database(open.id, |record| record.files.push(spec))?;
    }
    Ok(())
}

/// ADD LOG FILE: one log file is what there is.
pub(crate) fn add_log() -> Failure {
    unsupported_option("ADD LOG FILE").into()
}

fn find(open: &OpenDatabase, name: &str) -> Option<FileFacts> {
    facts_of(open).into_iter().find(|file| file.spec.name.eq_ignore_ascii_case(name))
}

/// REMOVE FILE.
pub(crate) fn remove(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, name: &str) -> Result<(), Failure> {
    let file = find(open, name).ok_or_else(|| message(5009, &[]))?;
    if file.spec.kind == FileKind::Log || file.number == 1 {
        return Err(message(5020, &[]).into());
    }
    let number = u16::try_from(file.number).expect("a data file's number");
    for _ in 0..CLEANING_TURNS {
        let busy = open.storage.background_turn().map_err(|error| failure(interpreter, open, error))?;
        if !busy {
            break;
        }
    }
    match open.storage.store().remove_data_file(number).map_err(|error| failure(interpreter, open, error))? {
        Removal::NotEmpty => Err(message(5042, &[&"file", &file.spec.name]).into()),
        Removal::Removed => {
            let engine = interpreter.session.engine.clone();
            engine.change_database(open.id, |record| record.files.retain(|known| !known.name.eq_ignore_ascii_case(name)))?;
            let text = format!("The file '{}' has been removed.", file.spec.name);
            interpreter.session.infos.push(SqlError { text, ..message(5021, &[&"", &""]) });
            Ok(())
        }
    }
}

/// MODIFY FILE.
pub(crate) fn modify(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, clause: &FileSyntax) -> Result<(), Failure> {
    let name = clause.name.as_ref().ok_or_else(|| message(5036, &[]))?;
    let file = find(open, &name.text).ok_or_else(|| message(5041, &[&name.text]))?;
    if clause.offline {
        return Err(unsupported_option("OFFLINE").into());
    }
    if clause.file_name.is_some() {
        return Err(unsupported_option("FILENAME").into());
    }
    let nothing = clause.new_name.is_none() && clause.size.is_none() && clause.max_size.is_none() && clause.file_growth.is_none();
    if nothing {
        return Err(message(5038, &[&file.spec.name]).into());
    }
    let mut spec = file.spec.clone();
    if let Some(new) = &clause.new_name {
        let taken = facts_of(open).iter().any(|other| other.number != file.number && other.spec.name.eq_ignore_ascii_case(&new.text));
        if taken {
            return Err(message(1828, &[&new.text]).into());
        }
        spec.name.clone_from(&new.text);
    }
    match clause.max_size {
        None => {}
        Some(FileSize::Unlimited) => spec.size_bytes_max = None,
        Some(FileSize::Bytes(bytes)) if bytes < file.bytes => return Err(message(5040, &[]).into()),
        Some(FileSize::Bytes(bytes)) => spec.size_bytes_max = Some(bytes),
        Some(FileSize::Percent(_)) => return Err(unsupported_option("MAXSIZE").into()),
    }
    if let Some(growth) = clause.file_growth {
        spec.growth_bytes = growth_of(growth)?;
    }
    match clause.size {
        None => {}
        Some(FileSize::Bytes(bytes)) if bytes <= file.bytes => return Err(message(5039, &[]).into()),
        Some(FileSize::Bytes(bytes)) if spec.size_bytes_max.is_some_and(|most| bytes > most) => return Err(message(5040, &[]).into()),
        Some(FileSize::Bytes(bytes)) => {
            grow(interpreter, open, &file, bytes)?;
            spec.size_bytes = bytes;
        }
        Some(_) => return Err(unsupported_option("SIZE").into()),
    }
    let number = u16::try_from(file.number).unwrap_or(0);
    let changed = spec.clone();
    if open.id != TEMPDB_ID || spec.kind != FileKind::Log {
        open.storage.store().change_file(number, |old| *old = changed).map_err(|error| failure(interpreter, open, error))?;
    }
    let engine = interpreter.session.engine.clone();
    let old = file.spec.name.clone();
    engine.change_database(open.id, |record| {
        record.files.iter_mut().filter(|known| known.name.eq_ignore_ascii_case(&old)).for_each(|known| *known = spec.clone());
    })?;
    if let Some(new) = &clause.new_name {
        interpreter.session.infos.push(message(5021, &[&"file", &new.text]));
    }
    Ok(())
}

fn grow(interpreter: &Interpreter<'_, '_>, open: &OpenDatabase, file: &FileFacts, bytes: u64) -> Result<(), Failure> {
    let store = open.storage.store();
    let grown = match (file.spec.kind, store.log()) {
        (FileKind::Log, Some(log)) => log.grow_to(bytes),
        (FileKind::Log, None) => Ok(()),
        (FileKind::Rows { .. }, _) => store.grow_data_file(u16::try_from(file.number).unwrap_or(0), bytes),
    };
    grown.map_err(|error| match error {
        // No room on the device: what SQL Server reports as the operating system's error.
        StorageError::LogFull { .. } | StorageError::FileFull { .. } => {
            message(5149, &[&operating_system_error(28), &file.spec.path.display()]).into()
        }
        other => failure(interpreter, open, other),
    })
}
