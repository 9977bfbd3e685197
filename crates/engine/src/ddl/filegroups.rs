//! Filegroups of a database: which is the default, which are read-only, and ALTER DATABASE ADD, REMOVE, MODIFY FILEGROUP.
//!
//! Names and numbers are in the database's record; the default and what is read-only are properties of it, by number.
//! Storage is told what is read-only ([`apply_read_only`]), because every write goes through it.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::DatabaseRecord;
use thawdb_storage::FileKind;
use thawdb_tsql::ast::{OptionItem, OptionValue};
use thawdb_types::SqlError;

const PRIMARY: u16 = 1;
/// Property with the number of the default filegroup.
const DEFAULT: &str = "DEFAULT_FILEGROUP";
/// Property with the numbers of the read-only filegroups, with commas between them.
const READ_ONLY: &str = "READ_ONLY_FILEGROUPS";

/// Number of the default filegroup.
pub(crate) fn default_of(record: &DatabaseRecord) -> u16 {
    record.properties.get(DEFAULT).and_then(|number| number.parse().ok()).unwrap_or(PRIMARY)
}

/// Makes a filegroup the default one.
pub(crate) fn set_default(record: &mut DatabaseRecord, number: u16) {
    record.properties.insert(DEFAULT.to_owned(), number.to_string());
}

fn read_only(record: &DatabaseRecord) -> Vec<u16> {
    record.properties.get(READ_ONLY).map(|list| list.split(',').filter_map(|number| number.parse().ok()).collect()).unwrap_or_default()
}

/// Whether a filegroup is read-only.
pub(crate) fn is_read_only(record: &DatabaseRecord, number: u16) -> bool {
    read_only(record).contains(&number)
}

/// Tells storage which filegroups are read-only.
pub(crate) fn apply_read_only(open: &OpenDatabase) {
    open.storage.store().set_read_only(&read_only(&open.record()));
}

/// Number of a filegroup by its name.
pub(crate) fn number_of(record: &DatabaseRecord, name: &str) -> Option<u16> {
    record.filegroups.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(number, _)| *number)
}

/// Name of a filegroup by its number.
pub(crate) fn name_of(record: &DatabaseRecord, number: u16) -> String {
    record.filegroups.iter().find(|(known, _)| *known == number).map_or_else(|| "PRIMARY".to_owned(), |(_, name)| name.clone())
}

fn missing(name: &str) -> SqlError {
    message(1921, &[&"filegroup", &name])
}

/// ADD FILEGROUP.
pub(crate) fn add(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    name: &str,
    contains: Option<&str>,
) -> Result<(), Failure> {
    if let Some(contains) = contains {
        return Err(unsupported_option(format!("CONTAINS {contains}")).into());
    }
    if open.id == TEMPDB_ID {
        return Err(message(1826, &[&"tempdb"]).into());
    }
    let record = open.record();
    if number_of(&record, name).is_some() {
        return Err(message(5035, &[&name]).into());
    }
    let number = (PRIMARY + 1..).find(|number| record.filegroups.iter().all(|(known, _)| known != number));
    let number = number.ok_or_else(|| message(1921, &[&"filegroup", &name]))?;
    let engine = interpreter.session.engine.clone();
    Ok(engine.change_database(open.id, |record| record.filegroups.push((number, name.to_owned())))?)
}

/// REMOVE FILEGROUP: one without files.
pub(crate) fn remove(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, name: &str) -> Result<(), Failure> {
    let record = open.record();
    let number = number_of(&record, name).ok_or_else(|| missing(name))?;
    let used = record.files.iter().any(|file| file.kind == FileKind::Rows { filegroup: number });
    if number == PRIMARY || used || number == default_of(&record) {
        return Err(message(5042, &[&"filegroup", &name]).into());
    }
    let engine = interpreter.session.engine.clone();
    engine.change_database(open.id, |record| {
        record.filegroups.retain(|(known, _)| *known != number);
        let left: Vec<String> = read_only(record).into_iter().filter(|known| *known != number).map(|number| number.to_string()).collect();
        record.properties.insert(READ_ONLY.to_owned(), left.join(","));
    })?;
    interpreter.session.infos.push(SqlError { text: format!("The filegroup '{name}' has been removed."), ..message(5021, &[&"", &""]) });
    Ok(())
}

/// MODIFY FILEGROUP: DEFAULT, READ_ONLY, READ_WRITE, NAME = new.
pub(crate) fn modify(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    name: &str,
    property: &OptionItem,
) -> Result<(), Failure> {
    let record = open.record();
    let number = number_of(&record, name).ok_or_else(|| missing(name))?;
    let engine = interpreter.session.engine.clone();
    let empty = !record.files.iter().any(|file| file.kind == FileKind::Rows { filegroup: number });
    match (property.name.as_str(), &property.value) {
        ("NAME", OptionValue::Word(new)) => rename(interpreter, open, number, new),
        (_, OptionValue::None) if empty => Err(message(5050, &[&name]).into()),
        ("DEFAULT", OptionValue::None) => {
            if default_of(&record) == number {
                return Err(message(5045, &[&"DEFAULT"]).into());
            }
            engine.change_database(open.id, |record| set_default(record, number))?;
            interpreter.session.infos.push(set_message("DEFAULT"));
            Ok(())
        }
        ("READ_ONLY" | "READONLY", OptionValue::None) => set_read_only(interpreter, open, name, number, true),
        ("READ_WRITE" | "READWRITE", OptionValue::None) => set_read_only(interpreter, open, name, number, false),
        ("AUTOGROW_SINGLE_FILE", OptionValue::None) => Ok(()),
        (other, _) => Err(unsupported_option(other).at_line(property.span.line).into()),
    }
}

fn set_message(what: &str) -> SqlError {
    message(5043, &[&what])
}

fn rename(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, number: u16, new: &str) -> Result<(), Failure> {
    if number == PRIMARY {
        return Err(message(5042, &[&"filegroup", &"PRIMARY"]).into());
    }
    if number_of(&open.record(), new).is_some_and(|other| other != number) {
        return Err(message(5035, &[&new]).into());
    }
    let engine = interpreter.session.engine.clone();
    engine.change_database(open.id, |record| {
        record.filegroups.iter_mut().filter(|(known, _)| *known == number).for_each(|(_, name)| *name = new.to_owned());
    })?;
    interpreter.session.infos.push(message(5021, &[&"filegroup", &new]));
    Ok(())
}

fn set_read_only(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    name: &str,
    number: u16,
    on: bool,
) -> Result<(), Failure> {
    if number == PRIMARY {
        // The catalog itself is there.
        return Err(message(5047, &[&name]).into());
    }
    let mut numbers = read_only(&open.record());
    if numbers.contains(&number) == on {
        return Err(message(5045, &[&if on { "READ_ONLY" } else { "READ_WRITE" }]).into());
    }
    let engine = interpreter.session.engine.clone();
    if engine.sessions.uses(open.id, interpreter.session.ticket.id) {
        return Err(message(5070, &[&open.name()]).into());
    }
    numbers.retain(|known| *known != number);
    if on {
        numbers.push(number);
    }
    let list = numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
    engine.change_database(open.id, |record| {
        record.properties.insert(READ_ONLY.to_owned(), list);
    })?;
    apply_read_only(open);
    interpreter.session.infos.push(set_message(if on { "READ_ONLY" } else { "READ_WRITE" }));
    Ok(())
}
