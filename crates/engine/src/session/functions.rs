//! Functions that answer from the catalog and the session: OBJECT_ID, DB_NAME, SERVERPROPERTY and their kin.
//!
//! Names and types are the binder's table; a name it knows and this file does not is answered by 195.

use crate::ddl::names::{find_table, parse_name};
use crate::messages::message;
use crate::session::application_locks::{Ownership, mode_named};
use crate::session::globals;
use crate::session::properties;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::temporal::PeriodColumn;
use thawdb_catalog::{DatabaseCatalog, DatabaseId, ObjectId, TableDef};
use thawdb_types::{Scalar, SqlError, SqlType};

fn text(value: impl Into<String>) -> Scalar {
    Scalar::Text(value.into())
}

fn optional<T>(value: Option<T>, scalar: impl FnOnce(T) -> Scalar) -> Scalar {
    value.map_or(Scalar::Null, scalar)
}

/// Arguments by position.
pub(crate) struct Arguments<'a>(pub(crate) &'a [Scalar]);

impl Arguments<'_> {
    fn text(&self, at: usize) -> Option<&str> {
        self.0.get(at).and_then(Scalar::as_text)
    }

    fn int(&self, at: usize) -> Option<i32> {
        self.0.get(at).and_then(Scalar::as_i64).and_then(|value| i32::try_from(value).ok())
    }
}

/// The value of a function of this upper-case name.
pub(crate) fn function(session: &SessionState, name: &str, arguments: &[Scalar]) -> Result<Scalar, SqlError> {
    let given = Arguments(arguments);
    if name == "NEXT VALUE FOR" {
        return next_value(session, &given);
    }
    if arguments.is_empty() {
        return of_nothing(session, name);
    }
    if name == "RETAINED SINCE" {
        return session.retained_since(i64::from(given.int(0).unwrap_or(0)), i64::from(given.int(1).unwrap_or(0)));
    }
    if let "APPLOCK_MODE" | "APPLOCK_TEST" = name {
        return of_application_locks(session, name, &given);
    }
    let found = of_databases(session, name, &given)
        .or_else(|| of_objects(session, name, &given))
        .or_else(|| of_columns(session, name, &given))
        .or_else(|| crate::security::functions::of_principals(session, name, arguments))
        .or_else(|| of_files(session, name, &given));
    found.ok_or_else(|| message(195, &[&name, &"built-in function name"]))
}

/// APPLOCK_MODE(principal, resource, owner) and APPLOCK_TEST(principal, resource, mode, owner).
fn of_application_locks(session: &SessionState, name: &str, given: &Arguments<'_>) -> Result<Scalar, SqlError> {
    let shown = name.to_ascii_lowercase();
    let tests = name == "APPLOCK_TEST";
    let principal = given.text(0).ok_or_else(|| message(1230, &[&shown]))?;
    if catalog_of(session, None).is_none_or(|catalog| catalog.user(principal).is_none()) {
        return Err(message(1202, &[&principal]));
    }
    let resource = given.text(1).ok_or_else(|| message(1224, &[&shown]))?;
    let ownership = given.text(if tests { 3 } else { 2 }).and_then(Ownership::named);
    let ownership = ownership.ok_or_else(|| message(1226, &[&shown]))?;
    let resource = session.application_resource(principal, resource);
    if !tests {
        return Ok(text(session.application_mode(resource, ownership)));
    }
    let mode = given.text(2).and_then(mode_named).ok_or_else(|| message(1225, &[&shown]))?;
    Ok(Scalar::SmallInt(i16::from(session.test_application_lock(resource, mode))))
}

/// The next value of a sequence given by its database's and its own number.
fn next_value(session: &SessionState, given: &Arguments<'_>) -> Result<Scalar, SqlError> {
    let (database, id) = (DatabaseId(given.int(0).unwrap_or(0)), given.int(1).unwrap_or(0));
    let object = session.definitions(database).and_then(|catalog| catalog.objects.get(&id).cloned());
    let object = object.ok_or_else(|| message(208, &[&id]))?;
    crate::ddl::sequence::next(&*session.storage_of(database)?, &object).map(Scalar::BigInt)
}

fn of_nothing(session: &SessionState, name: &str) -> Result<Scalar, SqlError> {
    Ok(match name {
        "DB_ID" => Scalar::Int(session.database.id.0),
        "ORIGINAL_DB_NAME" => text(session.engine.database(session.login_database).map_or(String::new(), |open| open.name())),
        "CURRENT_TIMEZONE" => text("(UTC) Coordinated Universal Time"),
        "CURRENT_TIMEZONE_ID" => text("UTC"),
        "CURRENT_REQUEST_ID" => Scalar::SmallInt(0),
        "CURRENT_TRANSACTION_ID" => {
            let part = session.transactions.existing(session.database.id.0);
            let id = part.and_then(|part| part.txn.id()).map(|id| i64::try_from(id.0).unwrap_or(i64::MAX));
            optional(id, Scalar::BigInt)
        }
        "TRANSACTION TIME" => Scalar::DateTime2(session.transaction_time()),
        "TRIGGER_NESTLEVEL" => {
            let running = session.frames.iter().filter(|frame| frame.is_trigger).count();
            Scalar::Int(i32::try_from(running).unwrap_or(i32::MAX))
        }
        "COLUMNS_UPDATED" => match session.frames.last().filter(|frame| frame.is_trigger) {
            Some(frame) => Scalar::Binary(frame.updated_mask.clone()),
            None => return Err(message(140, &[])),
        },
        "GETANSINULL" => Scalar::Int(1),
        "PERMISSIONS" => Scalar::Int(if session.is_sysadmin() { i32::MAX } else { 0 }),
        _ => globals::global(session, &name.to_ascii_lowercase()).map_err(|_| message(195, &[&name, &"built-in function name"]))?,
    })
}

/// COLLATIONPROPERTY: NULL for a collation or property that there is not.
fn collation_property(name: &str, property: &str) -> Scalar {
    let Some(collation) = thawdb_types::Collation::by_name(name) else { return Scalar::Null };
    let info = collation.info();
    let style = |on: bool, value: i32| if on { value } else { 0 };
    Scalar::Int(match property.to_ascii_lowercase().as_str() {
        "codepage" if info.utf8 => 65001,
        "codepage" => 1252,
        "lcid" => i32::try_from(info.lcid).unwrap_or(0),
        // Kana and width are not told apart.
        "comparisonstyle" if info.binary => 0,
        "comparisonstyle" => style(!info.case_sensitive, 1) | style(!info.accent_sensitive, 2) | 0x0003_0000,
        "version" => i32::from(info.version),
        _ => return Scalar::Null,
    })
}

fn of_databases(session: &SessionState, name: &str, given: &Arguments<'_>) -> Option<Scalar> {
    let engine = &session.engine;
    Some(match name {
        "DB_ID" => optional(given.text(0).and_then(|name| engine.database_named(name)), |open| Scalar::Int(open.id.0)),
        "DB_NAME" => optional(given.int(0).and_then(|id| engine.database(DatabaseId(id))), |open| text(open.name())),
        "DATABASEPROPERTYEX" => properties::database(session, given.text(0)?, given.text(1)?),
        "DATABASEPROPERTY" => {
            let value = properties::database_value(session, given.text(0)?, given.text(1)?);
            optional(value.as_i64().and_then(|value| i32::try_from(value).ok()), Scalar::Int)
        }
        "COLLATIONPROPERTY" => collation_property(given.text(0)?, given.text(1)?),
        "SERVERPROPERTY" => given.text(0).map_or(Scalar::Null, |property| properties::server(session, property)),
        "CONNECTIONPROPERTY" => given.text(0).map_or(Scalar::Null, |property| properties::connection(session, property)),
        "SESSIONPROPERTY" => given.text(0).map_or(Scalar::Null, |property| properties::session(session, property)),
        "CURSOR_STATUS" => optional(session.cursor_status(given.text(0)?, given.text(1)?), Scalar::SmallInt),
        "SESSION_CONTEXT" => session.key_values.get(given.text(0)?),
        _ => return None,
    })
}

fn catalog_of(session: &SessionState, database: Option<i32>) -> Option<Arc<DatabaseCatalog>> {
    session.visible(database.map_or(session.database.id, DatabaseId))
}

fn table_by_id(session: &SessionState, id: i32, database: Option<i32>) -> Option<Arc<TableDef>> {
    crate::security::visibility::table(session, database.map_or(session.database.id, DatabaseId), ObjectId(id))
}

fn of_objects(session: &SessionState, name: &str, given: &Arguments<'_>) -> Option<Scalar> {
    Some(match name {
        "OBJECT_ID" => optional(given.text(0).and_then(|name| object_id(session, name, given.text(1))), Scalar::Int),
        "OBJECT_NAME" => optional(given.int(0).and_then(|id| object_name(session, id, given.int(1))), text),
        "OBJECT_SCHEMA_NAME" => {
            let table = given.int(0).and_then(|id| table_by_id(session, id, given.int(1)));
            let system = given.int(0).and_then(crate::views::name_of).map(|(schema, _)| schema.to_owned());
            let object = catalog_of(session, given.int(1)).and_then(|catalog| catalog.objects.get(&given.int(0)?).cloned());
            let own = table.map(|table| table.schema_name.clone()).or(object.map(|object| object.schema_name.clone()));
            optional(own.or(system), text)
        }
        "OBJECT_DEFINITION" => {
            let object = catalog_of(session, None).and_then(|catalog| catalog.objects.get(&given.int(0)?).cloned());
            let object = object.filter(|object| crate::security::visibility::defines(session, session.database.id, object.id));
            optional(object.as_deref().and_then(crate::views::modules::shown_definition), text)
        }
        "OBJECTPROPERTYEX" => {
            let property = given.text(1).unwrap_or_default();
            if property.eq_ignore_ascii_case("BaseType") {
                let table = given.int(0).and_then(|id| table_by_id(session, id, None));
                let object = catalog_of(session, None).and_then(|catalog| catalog.objects.get(&given.int(0)?).cloned());
                let code = table.map(|_| "U ").or_else(|| object.map(|object| object.kind.code().0));
                return Some(code.map_or(Scalar::Null, |code| crate::views::variant(text(code), &crate::views::CHAR_2)));
            }
            given.int(0).map_or(Scalar::Null, |id| crate::views::variant(properties::object(session, id, property), &SqlType::Int))
        }
        "OBJECTPROPERTY" => {
            let property = given.text(1).unwrap_or_default();
            given.int(0).map_or(Scalar::Null, |id| properties::object(session, id, property))
        }
        "SCHEMA_ID" => {
            let catalog = catalog_of(session, None)?;
            optional(given.text(0).and_then(|name| catalog.schema(name)), |schema| Scalar::Int(schema.id.0))
        }
        "SCHEMA_NAME" => {
            let catalog = catalog_of(session, None)?;
            optional(given.int(0).and_then(|id| catalog.schemas.get(&id)), |schema| text(schema.name.clone()))
        }
        "TYPE_ID" => {
            let name = given.text(0).and_then(parse_name)?;
            let schema = name.schema.as_ref().map_or_else(|| session.default_schema().1.to_string(), |schema| schema.text.clone());
            let known = crate::views::types::id_of_name(&name.name.text);
            optional(known.or_else(|| crate::views::types::user_type_named(session, &schema, &name.name.text)), Scalar::Int)
        }
        "TYPE_NAME" => optional(given.int(0), |id| {
            let known = crate::views::types::name_of_id(id).map(str::to_owned);
            optional(known.or_else(|| crate::views::types::user_type_name(session, id)), text)
        }),
        "TYPEPROPERTY" => {
            let found = given.text(0).and_then(parse_name).and_then(|name| crate::views::types::by_name(&name.name.text));
            optional(found, |known| match given.text(1).unwrap_or_default().to_ascii_lowercase().as_str() {
                "precision" => Scalar::Int(i32::from(known.precision)),
                "scale" => Scalar::Int(i32::from(known.scale)),
                "allowsnull" => Scalar::Int(1),
                _ => Scalar::Null,
            })
        }
        "STATS_DATE" => match table_by_id(session, given.int(0)?, None) {
            Some(table) => crate::views::statistics::date(session, &table, given.int(1)?),
            None => Scalar::Null,
        },
        _ => return None,
    })
}

/// The table of a name that the session may know of.
fn visible_table(session: &SessionState, name: &thawdb_tsql::ast::ObjectName) -> Option<Arc<TableDef>> {
    let table = find_table(session, name).ok().flatten()?;
    crate::security::visibility::table(session, table.database, table.id)
}

/// OBJECT_ID: a table, a constraint or a view of the system; `kind` is the second argument.
pub(crate) fn object_id(session: &SessionState, name: &str, kind: Option<&str>) -> Option<i32> {
    let name = parse_name(name)?;
    let kind = kind.map(|kind| kind.trim().to_ascii_uppercase());
    let wants = |code: &str| kind.as_deref().is_none_or(|kind| kind == code);
    if let Some(table) = visible_table(session, &name) {
        return wants("U").then_some(table.id.0);
    }
    if let Some(schema) = &name.schema
        && let Some(id) = crate::views::id_of(&schema.text, &name.name.text)
    {
        return (wants("V") || wants("S")).then_some(id);
    }
    let open = crate::ddl::names::database_of(session, &name).ok()?;
    let catalog = session.visible(open.id)?;
    if let Some(object) = crate::ddl::names::find_object(session, &catalog, &name) {
        return wants(object.kind.code().0.trim()).then_some(object.id.0);
    }
    let constraint = crate::ddl::names::schemas_of(session, &name).iter().find_map(|schema| catalog.constraint(schema, &name.name.text))?;
    wants(crate::views::objects::constraint_type(&constraint.kind).0.trim()).then_some(constraint.id.0)
}

/// OBJECT_NAME.
pub(crate) fn object_name(session: &SessionState, id: i32, database: Option<i32>) -> Option<String> {
    if let Some(table) = table_by_id(session, id, database) {
        return Some(table.name.clone());
    }
    if let Some((_, name)) = crate::views::name_of(id) {
        return Some(name.to_owned());
    }
    let catalog = catalog_of(session, database)?;
    let object = catalog.objects.get(&id).map(|object| object.name.clone());
    object.or_else(|| catalog.constraints.get(&id).map(|constraint| constraint.name.clone()))
}

fn of_columns(session: &SessionState, name: &str, given: &Arguments<'_>) -> Option<Scalar> {
    let named = |at: usize| given.text(at).and_then(parse_name).and_then(|name| visible_table(session, &name));
    let by_id = |at: usize| given.int(at).and_then(|id| table_by_id(session, id, None));
    Some(match name {
        "COL_NAME" => {
            let table = by_id(0);
            let column = table.as_ref().and_then(|table| table.columns.iter().find(|column| Some(column.id.0) == given.int(1)));
            optional(column, |column| text(column.name.clone()))
        }
        "COL_LENGTH" => {
            let table = named(0);
            let column = table.as_ref().and_then(|table| table.column_index(given.text(1)?).map(|at| &table.columns[at]));
            optional(column, |column| Scalar::SmallInt(column.sql_type.max_length()))
        }
        "COLUMNPROPERTY" => {
            let table = by_id(0);
            let at = table.as_ref().and_then(|table| table.column_index(given.text(1)?));
            match (table.as_ref().zip(at), given.text(2).unwrap_or_default()) {
                (None, _) => Scalar::Null,
                (Some((table, at)), property) if property.eq_ignore_ascii_case("IsHidden") => Scalar::Int(i32::from(table.is_hidden(at))),
                (Some((table, at)), property) if property.eq_ignore_ascii_case("GeneratedAlwaysType") => {
                    Scalar::Int(match table.period_column(at) {
                        None => 0,
                        Some(PeriodColumn::Start) => 1,
                        Some(PeriodColumn::End) => 2,
                    })
                }
                (Some((table, at)), property) => properties::column(&table.columns[at], property),
            }
        }
        "INDEXPROPERTY" => {
            let table = by_id(0);
            let index =
                table.as_ref().and_then(|table| table.index_named(given.text(1)?).map(|index| (index, table.is_disabled(index.id))));
            optional(index, |(index, disabled)| properties::index(index, disabled, given.text(2).unwrap_or_default()))
        }
        "INDEX_COL" => {
            let table = named(0);
            let column = table.as_ref().and_then(|table| {
                let index = table.every_index().find(|index| Some(index.id.0) == given.int(1))?;
                let key = index.keys.get(usize::try_from(given.int(2)? - 1).ok()?)?;
                Some(table.columns[key.column_index].name.clone())
            });
            optional(column, text)
        }
        "IDENT_CURRENT" => optional(named(0).and_then(|table| ident_current(session, &table)), |v| Scalar::Decimal(i128::from(v))),
        "IDENT_SEED" => optional(named(0).and_then(|table| identity_of(&table)), |i| Scalar::Decimal(i128::from(i.seed))),
        "IDENT_INCR" => optional(named(0).and_then(|table| identity_of(&table)), |i| Scalar::Decimal(i128::from(i.increment))),
        _ => return None,
    })
}

fn identity_of(table: &TableDef) -> Option<thawdb_catalog::IdentityDef> {
    table.columns.iter().find_map(|column| column.identity)
}

/// The last identity value of a table, or its seed before the first.
pub(crate) fn ident_current(session: &SessionState, table: &TableDef) -> Option<i64> {
    let column = session.identity_column(table.database, table.id).ok()?;
    let open = session.storage_of(table.database).ok()?;
    Some(open.counters.last_identity(table.id, column).unwrap_or(column.definition.seed))
}

fn of_files(session: &SessionState, name: &str, given: &Arguments<'_>) -> Option<Scalar> {
    let record = session.database.record();
    let files = || crate::views::files::facts_of(&session.database);
    let position = |wanted: Option<&str>| {
        let found = files().into_iter().find(|file| wanted.is_some_and(|w| file.spec.name.eq_ignore_ascii_case(w)));
        found.map(|file| file.number)
    };
    Some(match name {
        "FILE_ID" => optional(position(given.text(0)).and_then(|id| i16::try_from(id).ok()), Scalar::SmallInt),
        "FILE_IDEX" => optional(position(given.text(0)), Scalar::Int),
        "FILE_NAME" => {
            let file = files().into_iter().find(|file| given.int(0) == Some(file.number));
            optional(file, |file| text(file.spec.name))
        }
        "FILEGROUP_ID" => {
            let group = record.filegroups.iter().find(|(_, name)| given.text(0).is_some_and(|g| g.eq_ignore_ascii_case(name)));
            optional(group, |(id, _)| Scalar::Int(i32::from(*id)))
        }
        "FILEGROUP_NAME" => {
            let group = record.filegroups.iter().find(|(id, _)| given.int(0) == Some(i32::from(*id)));
            optional(group, |(_, name)| text(name.clone()))
        }
        _ => return None,
    })
}
