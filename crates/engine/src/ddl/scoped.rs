//! ALTER DATABASE SCOPED CONFIGURATION: what a database sets for itself.
//!
//! Settings lie among the properties that master records of the database, under their name behind [`PREFIX`]; one that
//! is not there has its default. Those of [`SETTINGS`] act; the others that SQL Server knows are refused by name (40517),
//! except for the value that is what this engine does anyway.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use thawdb_tsql::ast::{AlterDatabaseScoped, ExprKind, Literal, OptionItem, OptionValue};
use thawdb_types::SqlError;

/// What names of settings have before them among a database's properties.
const PREFIX: &str = "SCOPED ";
/// Longest pause that may be allowed in minutes: SQL Server's.
const PAUSED_MINUTES_MAX: i64 = 71_582;

/// A setting: sys.database_scoped_configurations.configuration_id, its name, its default.
pub(crate) const SETTINGS: &[(i32, &str, &str)] =
    &[(11, "ELEVATE_ONLINE", "OFF"), (12, "ELEVATE_RESUMABLE", "OFF"), (25, "PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES", "1440")];

/// ELEVATE_ONLINE or ELEVATE_RESUMABLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elevation {
    Off,
    WhenSupported,
    FailUnsupported,
}

/// A setting's value, and whether it is the default.
pub(crate) fn value_of(open: &OpenDatabase, name: &str) -> (String, bool) {
    let default = SETTINGS.iter().find(|setting| setting.1 == name).map_or("", |setting| setting.2);
    let set = open.record().properties.get(&format!("{PREFIX}{name}")).cloned();
    let value = set.unwrap_or_else(|| default.to_owned());
    let is_default = value == default;
    (value, is_default)
}

/// What a database says of operations that do not say it themselves.
pub(crate) fn elevation(open: &OpenDatabase, name: &str) -> Elevation {
    match value_of(open, name).0.as_str() {
        "WHEN_SUPPORTED" => Elevation::WhenSupported,
        "FAIL_UNSUPPORTED" => Elevation::FailUnsupported,
        _ => Elevation::Off,
    }
}

/// Minutes after which a paused operation is aborted; `None` if never.
pub(crate) fn paused_minutes_max(open: &OpenDatabase) -> Option<u32> {
    let minutes = value_of(open, "PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES").0.parse().unwrap_or(0);
    (minutes > 0).then_some(minutes)
}

/// ALTER DATABASE SCOPED CONFIGURATION.
pub(crate) fn alter(interpreter: &mut Interpreter<'_, '_>, node: &AlterDatabaseScoped) -> Result<(), Failure> {
    let session = &*interpreter.session;
    if session.transactions.count > 0 {
        return Err(message(226, &[&"ALTER DATABASE SCOPED CONFIGURATION"]).into());
    }
    let option = &node.option;
    if node.for_secondary || node.clear {
        let what = if node.for_secondary { "FOR SECONDARY" } else { "CLEAR" };
        return Err(unsupported_option(what).at_line(option.span.line).into());
    }
    let (name, value) = setting(option).map_err(|error| error.at_line(option.span.line))?;
    let (engine, id) = (session.engine.clone(), session.database.id);
    engine.change_database(id, |record| drop(record.properties.insert(format!("{PREFIX}{name}"), value)))?;
    Ok(())
}

fn setting(option: &OptionItem) -> Result<(&'static str, String), SqlError> {
    let known = SETTINGS.iter().find(|setting| setting.1 == option.name);
    let name = known.ok_or_else(|| unsupported_option(&option.name))?.1;
    if name.starts_with("ELEVATE") {
        return match &option.value {
            OptionValue::Word(word) if ["OFF", "WHEN_SUPPORTED", "FAIL_UNSUPPORTED"].contains(&word.as_str()) => Ok((name, word.clone())),
            OptionValue::Switch(false) => Ok((name, "OFF".to_owned())),
            _ => Err(message(102, &[&name])),
        };
    }
    let (OptionValue::Expr(minutes) | OptionValue::Quantity(minutes, _)) = &option.value else { return Err(message(102, &[&name])) };
    match &minutes.kind {
        ExprKind::Literal(Literal::Integer(minutes)) if (0..=PAUSED_MINUTES_MAX).contains(&i64::from(*minutes)) => {
            Ok((name, minutes.to_string()))
        }
        _ => Err(message(102, &[&name])),
    }
}
