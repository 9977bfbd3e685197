//! ALTER DATABASE: options that are recorded and shown, those that have an effect, and the name.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{filegroups, files};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported, unsupported_option};
use crate::views::databases::recovery;
use thawdb_catalog::DatabaseRecord;
use thawdb_storage::StorageError;
use thawdb_storage::log::RecoveryModel;
use thawdb_tsql::ast::{AlterDatabase, AlterDatabaseAction, OptionItem, OptionValue};
use thawdb_types::SqlError;

/// Options with the values they may take here: what this engine does, or what changes nothing but what views show.
const OPTIONS: &[(&str, &[&str])] = &[
    ("ALLOW_SNAPSHOT_ISOLATION", &["ON", "OFF"]),
    ("ANSI_NULL_DEFAULT", &["ON", "OFF"]),
    ("ANSI_NULLS", &["ON", "OFF"]),
    ("ANSI_PADDING", &["ON", "OFF"]),
    ("ANSI_WARNINGS", &["ON", "OFF"]),
    ("ARITHABORT", &["ON", "OFF"]),
    ("AUTO_CLOSE", &["OFF"]),
    ("AUTO_CREATE_STATISTICS", &["ON", "OFF"]),
    ("AUTO_SHRINK", &["OFF"]),
    ("AUTO_UPDATE_STATISTICS", &["ON", "OFF"]),
    ("AUTO_UPDATE_STATISTICS_ASYNC", &["ON", "OFF"]),
    ("CONCAT_NULL_YIELDS_NULL", &["ON", "OFF"]),
    ("CURSOR_CLOSE_ON_COMMIT", &["ON", "OFF"]),
    ("CURSOR_DEFAULT", &["GLOBAL", "LOCAL"]),
    ("DATE_CORRELATION_OPTIMIZATION", &["OFF"]),
    ("DB_CHAINING", &["OFF"]),
    ("DELAYED_DURABILITY", &["DISABLED", "ALLOWED", "FORCED"]),
    ("NUMERIC_ROUNDABORT", &["OFF"]),
    ("PAGE_VERIFY", &["CHECKSUM"]),
    ("PARAMETERIZATION", &["SIMPLE"]),
    ("QUERY_STORE", &["OFF"]),
    ("QUOTED_IDENTIFIER", &["ON", "OFF"]),
    ("READ_COMMITTED_SNAPSHOT", &["ON", "OFF"]),
    ("RECOVERY", &["FULL", "SIMPLE", "BULK_LOGGED"]),
    ("RECURSIVE_TRIGGERS", &["ON", "OFF"]),
    ("TRUSTWORTHY", &["OFF"]),
];

const TARGET_RECOVERY_TIME: &str = "TARGET_RECOVERY_TIME";
/// The target of new databases, SQL Server's own since 2016.
const TARGET_RECOVERY_S: u32 = 60;

/// Compatibility levels of SQL Server 2022.
const COMPATIBILITY_LEVELS: [i64; 7] = [100, 110, 120, 130, 140, 150, 160];

/// ALTER DATABASE.
pub(crate) fn alter_database(interpreter: &mut Interpreter<'_, '_>, node: &AlterDatabase) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    if session.transactions.count > 0 {
        return Err(message(226, &[&"ALTER DATABASE"]).into());
    }
    let open = match &node.name {
        None => session.database.clone(),
        Some(name) => session.engine.database_named(&name.text).ok_or_else(|| message(5011, &[&name.text]))?,
    };
    match &node.action {
        AlterDatabaseAction::Set { options, .. } => {
            let mut changes = Vec::with_capacity(options.len());
            for option in options {
                changes.push(setting(interpreter, option)?);
            }
            if open.id == TEMPDB_ID
                && let Some((name, _)) = changes.iter().find(|(name, _)| name == "RECOVERY")
            {
                return Err(message(5058, &[name, &"tempdb"]).into());
            }
            let engine = interpreter.session.engine.clone();
            engine.change_database(open.id, |record| record.properties.extend(changes))?;
            apply_recovery(&open).map_err(|error| interpreter.session.storage_failure(open.id, error))?;
            Ok(())
        }
        AlterDatabaseAction::ModifyName(new) => rename(interpreter, &open.name(), &new.text, open.id),
        AlterDatabaseAction::AddFiles { files: new, filegroup } => {
            files::add(interpreter, &open, new, filegroup.as_ref().map(|name| name.text.as_str()))
        }
        AlterDatabaseAction::AddLogFiles(_) => Err(files::add_log()),
        AlterDatabaseAction::ModifyFile(clause) => files::modify(interpreter, &open, clause),
        AlterDatabaseAction::RemoveFile(name) => files::remove(interpreter, &open, &name.text),
        AlterDatabaseAction::AddFileGroup { name, contains } => filegroups::add(interpreter, &open, &name.text, contains.as_deref()),
        AlterDatabaseAction::RemoveFileGroup(name) => filegroups::remove(interpreter, &open, &name.text),
        AlterDatabaseAction::ModifyFileGroup { name, property } => filegroups::modify(interpreter, &open, &name.text, property),
        AlterDatabaseAction::Collate(_) => Err(unsupported("ALTER DATABASE COLLATE").into()),
        _ => Err(unsupported("ALTER DATABASE").into()),
    }
}

/// Makes storage keep to the recovery model and the target of recovery that are recorded.
pub(crate) fn apply_recovery(open: &OpenDatabase) -> Result<(), StorageError> {
    open.storage.store().set_target_recovery_s(target_recovery_s(&open.record()));
    let model = match recovery(&open.record()).0 {
        1 => RecoveryModel::Full,
        2 => RecoveryModel::BulkLogged,
        _ => RecoveryModel::Simple,
    };
    open.storage.store().set_recovery_model(model)
}

fn setting(interpreter: &mut Interpreter<'_, '_>, option: &OptionItem) -> Result<(String, String), Failure> {
    let line = option.span.line;
    if option.name == TARGET_RECOVERY_TIME {
        return target_recovery_setting(interpreter, option);
    }
    let value = match &option.value {
        OptionValue::Switch(true) => "ON".to_owned(),
        OptionValue::Switch(false) => "OFF".to_owned(),
        OptionValue::Word(word) => word.clone(),
        OptionValue::None => String::new(),
        OptionValue::Expr(expr) => interpreter.int_value(expr)?.map_or_else(String::new, |value| value.to_string()),
        _ => return Err(unsupported_option(&option.name).at_line(line).into()),
    };
    let recorded = match (option.name.as_str(), value.as_str()) {
        ("MULTI_USER" | "READ_WRITE" | "ONLINE", "") => (option.name.clone(), "ON".to_owned()),
        ("COMPATIBILITY_LEVEL", level) => {
            let known = level.parse::<i64>().is_ok_and(|level| COMPATIBILITY_LEVELS.contains(&level));
            if !known {
                return Err(message(15048, &[]).at_line(line).into());
            }
            (option.name.clone(), value)
        }
        (name, value) => {
            let allowed = OPTIONS.iter().find(|(known, _)| *known == name).map(|(_, values)| *values).unwrap_or_default();
            if !allowed.contains(&value) {
                return Err(refusal(name, value).at_line(line).into());
            }
            (name.to_owned(), value.to_owned())
        }
    };
    Ok(recorded)
}

/// `TARGET_RECOVERY_TIME = n {SECONDS | MINUTES}`, recorded in seconds.
fn target_recovery_setting(interpreter: &mut Interpreter<'_, '_>, option: &OptionItem) -> Result<(String, String), Failure> {
    let line = option.span.line;
    let refused = |value: &str| Failure::from(refusal(TARGET_RECOVERY_TIME, value).at_line(line));
    let OptionValue::Quantity(number, unit) = &option.value else { return Err(refused("")) };
    let number = interpreter.int_value(number)?.unwrap_or(-1);
    let seconds = match unit.as_str() {
        "SECONDS" => Some(number),
        "MINUTES" => number.checked_mul(60),
        _ => None,
    };
    let seconds = seconds.and_then(|seconds| i32::try_from(seconds).ok()).filter(|seconds| *seconds >= 0);
    let seconds = seconds.ok_or_else(|| refused(&format!("{number} {unit}")))?;
    Ok((TARGET_RECOVERY_TIME.to_owned(), seconds.to_string()))
}

/// sys.databases.target_recovery_time_in_seconds; 0 leaves the length of recovery to the log's size alone.
pub(crate) fn target_recovery_s(record: &DatabaseRecord) -> u32 {
    let recorded = record.properties.get(TARGET_RECOVERY_TIME).and_then(|seconds| seconds.parse().ok());
    recorded.unwrap_or(TARGET_RECOVERY_S)
}

fn refusal(name: &str, value: &str) -> SqlError {
    unsupported_option(format!("SET {name} {value}").trim_end())
}

fn rename(interpreter: &mut Interpreter<'_, '_>, old: &str, new: &str, id: thawdb_catalog::DatabaseId) -> Result<(), Failure> {
    let engine = interpreter.session.engine.clone();
    if id.0 < 5 {
        return Err(message(3708, &[&"alter", &"database", &old, &"database"]).into());
    }
    if engine.database_named(new).is_some_and(|other| other.id != id) {
        return Err(message(1801, &[&new]).with_state(3).into());
    }
    if engine.sessions.uses(id, interpreter.session.ticket.id) {
        return Err(message(5030, &[]).into());
    }
    engine.change_database(id, |record| record.name = new.to_owned())?;
    let info = message(0, &[]);
    interpreter.session.infos.push(thawdb_types::SqlError {
        number: 0,
        severity: 0,
        text: format!("The database name '{new}' has been set."),
        ..info
    });
    Ok(())
}
