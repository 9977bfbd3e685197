//! sys.procedures, sys.views, sys.triggers, sys.sql_modules, sys.parameters, sys.synonyms, sys.sequences, and the
//! standard's views of routines: everything that is an object and no table.

use crate::session::state::SessionState;
use crate::views::objects::{OBJECT_COLUMNS, catalog, module_row};
use crate::views::{CHAR_2, Column, DESC, Rows, View, bit, col, int, null, optional_text, small, text, tiny, variant};
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectDef, ObjectKind};
use thawdb_types::SqlType::{Bit, DateTime, Int, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

/// The columns of an object, then `tail`. `N` is their number.
pub(crate) const fn object_with<const N: usize>(tail: &[Column]) -> [Column; N] {
    let mut columns = [OBJECT_COLUMNS[0]; N];
    let mut at = 0;
    while at < N {
        columns[at] = if at < 12 { OBJECT_COLUMNS[at] } else { tail[at - 12] };
        at += 1;
    }
    columns
}

const OBJECT_VIEWS: [Column; 18] = object_with(&[
    null("is_replicated", Bit),
    null("has_replication_filter", Bit),
    col("has_opaque_metadata", Bit),
    col("has_unchecked_assembly_data", Bit),
    col("with_check_option", Bit),
    col("is_date_correlation_view", Bit),
]);

const PROCEDURES: [Column; 16] = object_with(&[
    col("is_auto_executed", Bit),
    null("is_execution_replicated", Bit),
    null("is_repl_serializable_only", Bit),
    null("skips_repl_constraints", Bit),
]);

const SYNONYMS: [Column; 13] = object_with(&[null("base_object_name", SqlType::nvarchar(1035))]);

const SEQUENCES: [Column; 25] = object_with(&[
    col("start_value", SqlType::SqlVariant),
    col("increment", SqlType::SqlVariant),
    null("minimum_value", SqlType::SqlVariant),
    null("maximum_value", SqlType::SqlVariant),
    null("is_cycling", Bit),
    null("is_cached", Bit),
    null("cache_size", Int),
    col("system_type_id", TinyInt),
    col("user_type_id", Int),
    col("precision", TinyInt),
    null("scale", TinyInt),
    col("current_value", SqlType::SqlVariant),
    col("is_exhausted", Bit),
]);

const TRIGGERS: &[Column] = &[
    col("name", NAME),
    col("object_id", Int),
    col("parent_class", TinyInt),
    null("parent_class_desc", DESC),
    col("parent_id", Int),
    col("type", CHAR_2),
    null("type_desc", DESC),
    col("create_date", DateTime),
    col("modify_date", DateTime),
    col("is_ms_shipped", Bit),
    col("is_disabled", Bit),
    col("is_not_for_replication", Bit),
    col("is_instead_of_trigger", Bit),
];

const TRIGGER_EVENTS: &[Column] = &[
    col("object_id", Int),
    col("type", Int),
    col("type_desc", DESC),
    null("is_first", Bit),
    null("is_last", Bit),
    null("event_group_type", Int),
    null("event_group_type_desc", DESC),
    col("is_trigger_event", Bit),
];

const SQL_MODULES: &[Column] = &[
    col("object_id", Int),
    null("definition", SqlType::NVARCHAR_MAX),
    null("uses_ansi_nulls", Bit),
    null("uses_quoted_identifier", Bit),
    null("is_schema_bound", Bit),
    null("uses_database_collation", Bit),
    null("is_recompiled", Bit),
    null("null_on_null_input", Bit),
    null("execute_as_principal_id", Int),
    null("uses_native_compilation", Bit),
    null("is_inlineable", Bit),
    null("inline_type", Bit),
];

const PARAMETERS: &[Column] = &[
    col("object_id", Int),
    null("name", NAME),
    col("parameter_id", Int),
    col("system_type_id", TinyInt),
    col("user_type_id", Int),
    col("max_length", SqlType::SmallInt),
    col("precision", TinyInt),
    col("scale", TinyInt),
    col("is_output", Bit),
    col("is_cursor_ref", Bit),
    col("has_default_value", Bit),
    col("is_xml_document", Bit),
    null("default_value", SqlType::nvarchar(4000)),
    col("xml_collection_id", Int),
    col("is_readonly", Bit),
    null("is_nullable", Bit),
];

const ROUTINES: &[Column] = &[
    null("SPECIFIC_CATALOG", NAME),
    null("SPECIFIC_SCHEMA", NAME),
    col("SPECIFIC_NAME", NAME),
    null("ROUTINE_CATALOG", NAME),
    null("ROUTINE_SCHEMA", NAME),
    col("ROUTINE_NAME", NAME),
    null("ROUTINE_TYPE", SqlType::nvarchar(20)),
    null("DATA_TYPE", NAME),
    null("ROUTINE_BODY", SqlType::nvarchar(30)),
    null("ROUTINE_DEFINITION", SqlType::nvarchar(4000)),
    null("CREATED", DateTime),
    null("LAST_ALTERED", DateTime),
];

const ROUTINE_PARAMETERS: &[Column] = &[
    null("SPECIFIC_CATALOG", NAME),
    null("SPECIFIC_SCHEMA", NAME),
    col("SPECIFIC_NAME", NAME),
    col("ORDINAL_POSITION", Int),
    null("PARAMETER_MODE", SqlType::nvarchar(10)),
    null("IS_RESULT", SqlType::nvarchar(10)),
    null("AS_LOCATOR", SqlType::nvarchar(10)),
    null("PARAMETER_NAME", NAME),
    null("DATA_TYPE", NAME),
    null("CHARACTER_MAXIMUM_LENGTH", Int),
    null("NUMERIC_PRECISION", TinyInt),
    null("NUMERIC_SCALE", Int),
];

const IS_VIEWS: &[Column] = &[
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    col("TABLE_NAME", NAME),
    null("VIEW_DEFINITION", SqlType::nvarchar(4000)),
    null("CHECK_OPTION", SqlType::varchar(7)),
    col("IS_UPDATABLE", SqlType::varchar(2)),
];

const fn sys(name: &'static str, columns: &'static [Column], rows: fn(&SessionState, DatabaseId) -> Result<Rows, SqlError>) -> View {
    View { schema: "sys", name, columns, rows }
}

const fn standard(name: &'static str, columns: &'static [Column], rows: fn(&SessionState, DatabaseId) -> Result<Rows, SqlError>) -> View {
    View { schema: "INFORMATION_SCHEMA", name, columns, rows }
}

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    sys("views", &OBJECT_VIEWS, views),
    sys("system_views", &OBJECT_VIEWS, system_views),
    sys("all_views", &OBJECT_VIEWS, all_views),
    sys("procedures", &PROCEDURES, procedures),
    sys("synonyms", &SYNONYMS, synonyms),
    sys("sequences", &SEQUENCES, sequences),
    sys("triggers", TRIGGERS, triggers),
    sys("trigger_events", TRIGGER_EVENTS, trigger_events),
    sys("sql_modules", SQL_MODULES, sql_modules),
    sys("all_sql_modules", SQL_MODULES, sql_modules),
    sys("parameters", PARAMETERS, parameters),
    sys("all_parameters", PARAMETERS, parameters),
    standard("ROUTINES", ROUTINES, routines),
    standard("PARAMETERS", ROUTINE_PARAMETERS, routine_parameters),
    standard("VIEWS", IS_VIEWS, standard_views),
];

/// The objects of a database that are no tables, by number.
pub(crate) fn objects_of(session: &SessionState, database: DatabaseId) -> Vec<Arc<ObjectDef>> {
    catalog(session, database).map_or_else(Vec::new, |catalog| catalog.objects.values().cloned().collect())
}

fn of_kind(session: &SessionState, database: DatabaseId, kind: ObjectKind, tail: impl Fn(&ObjectDef) -> Vec<Scalar>) -> Rows {
    let objects = objects_of(session, database).into_iter().filter(|object| object.kind == kind);
    let row = |object: Arc<ObjectDef>| {
        let mut row = module_row(&object);
        row.extend(tail(&object));
        row
    };
    objects.map(row).collect()
}

fn views(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let tail = |object: &ObjectDef| vec![bit(false), bit(false), bit(false), bit(false), bit(object.flags.check_option), bit(false)];
    Ok(of_kind(session, database, ObjectKind::View, tail))
}

fn system_views(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = crate::views::objects::system_objects(session, database)?;
    rows.iter_mut().for_each(|row| row.extend((0..6).map(|_| bit(false))));
    Ok(rows)
}

fn all_views(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = views(session, database)?;
    rows.extend(system_views(session, database)?);
    Ok(rows)
}

fn procedures(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    Ok(of_kind(session, database, ObjectKind::Procedure, |_| vec![bit(false); 4]))
}

fn synonyms(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    Ok(of_kind(session, database, ObjectKind::Synonym, |object| vec![text(object.definition.clone())]))
}

fn sequences(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let open = session.storage_of(database)?;
    let tail = |object: &ObjectDef| {
        let sequence = object.sequence.expect("a sequence has its numbers");
        let (current, exhausted) = crate::ddl::sequence::current(&open, object.id, &sequence);
        let of = |value: i64| variant(super::columns::whole(value, &sequence.sql_type), &sequence.sql_type);
        vec![
            of(sequence.start),
            of(sequence.increment),
            of(sequence.minimum),
            of(sequence.maximum),
            bit(sequence.cycle),
            bit(sequence.cache.is_some()),
            sequence.cache.filter(|size| *size > 0).map_or(Scalar::Null, int),
            tiny(sequence.sql_type.system_type_id()),
            int(sequence.sql_type.user_type_id()),
            tiny(sequence.sql_type.precision()),
            tiny(0),
            of(current),
            bit(exhausted),
        ]
    };
    Ok(of_kind(session, database, ObjectKind::Sequence, tail))
}

fn triggers(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let objects = objects_of(session, database).into_iter().filter(|object| object.kind == ObjectKind::Trigger);
    let row = |object: Arc<ObjectDef>| {
        let trigger = object.trigger.expect("a trigger has its events");
        vec![
            text(object.name.clone()),
            int(object.id.0),
            tiny(1),
            text("OBJECT_OR_COLUMN"),
            int(object.parent.map_or(0, |id| id.0)),
            text("TR"),
            text("SQL_TRIGGER"),
            crate::views::moment(object.created),
            crate::views::moment(object.modified),
            bit(false),
            bit(trigger.disabled),
            bit(false),
            bit(trigger.instead_of),
        ]
    };
    Ok(objects.map(row).collect())
}

fn trigger_events(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for object in objects_of(session, database).into_iter().filter(|object| object.kind == ObjectKind::Trigger) {
        let trigger = object.trigger.expect("a trigger has its events");
        for (fires, number, name) in [(trigger.insert, 1, "INSERT"), (trigger.update, 2, "UPDATE"), (trigger.delete, 3, "DELETE")] {
            if fires {
                let none = Scalar::Null;
                rows.push(vec![int(object.id.0), int(number), text(name), bit(false), bit(false), none.clone(), none, bit(true)]);
            }
        }
    }
    Ok(rows)
}

/// The definition that may be shown to the session.
fn definition_for<'o>(session: &SessionState, database: DatabaseId, object: &'o ObjectDef) -> Option<&'o str> {
    shown_definition(object).filter(|_| crate::security::visibility::defines(session, database, object.id))
}

/// The definition that may be shown to those who may see definitions.
pub(crate) fn shown_definition(object: &ObjectDef) -> Option<&str> {
    (object.kind.is_module() && !object.flags.encrypted).then_some(object.definition.as_str())
}

fn sql_modules(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let objects = objects_of(session, database).into_iter().filter(|object| object.kind.is_module());
    let executed_as = session.definitions(database).map(|catalog| catalog.security.clone());
    let row = |object: Arc<ObjectDef>| {
        let flags = object.flags;
        vec![
            int(object.id.0),
            optional_text(definition_for(session, database, &object)),
            bit(flags.ansi_nulls),
            bit(flags.quoted_identifier),
            bit(flags.schema_bound),
            bit(false),
            bit(flags.recompiled),
            bit(flags.null_on_null_input),
            executed_as.as_ref().and_then(|security| security.object(object.id.0).execute_as).map_or(Scalar::Null, int),
            bit(false),
            bit(false),
            bit(false),
        ]
    };
    Ok(objects.map(row).collect())
}

fn parameters(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for object in objects_of(session, database) {
        // What a scalar function returns is its parameter 0.
        let first = i32::from(object.kind != ObjectKind::ScalarFunction);
        for (number, parameter) in (first..).zip(&object.parameters) {
            let of = &parameter.sql_type;
            let (system, user) = match parameter.table_type {
                Some(id) => (243, id.0),
                None => (of.system_type_id(), of.user_type_id()),
            };
            rows.push(vec![
                int(object.id.0),
                text(parameter.name.clone()),
                int(number),
                tiny(system),
                int(user),
                small(of.max_length()),
                tiny(of.precision()),
                tiny(of.scale()),
                bit(parameter.output || number == 0),
                bit(false),
                // As documented, only CLR modules tell of their defaults here.
                bit(false),
                bit(false),
                Scalar::Null,
                int(0),
                bit(parameter.read_only),
                bit(true),
            ]);
        }
    }
    Ok(rows)
}

fn is_routine(object: &ObjectDef) -> bool {
    use ObjectKind::{InlineFunction, Procedure, ScalarFunction, TableFunction};
    matches!(object.kind, Procedure | ScalarFunction | InlineFunction | TableFunction)
}

/// The first 4,000 characters, as the standard's views show a definition.
fn start_of(definition: &str) -> String {
    definition.chars().take(4000).collect()
}

fn routines(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = text(session.storage_of(database)?.name());
    let row = |object: &Arc<ObjectDef>| {
        let returned = match object.kind {
            ObjectKind::ScalarFunction => object.parameters.first().map(|value| value.sql_type.base_name().to_owned()),
            ObjectKind::Procedure => None,
            _ => Some("TABLE".to_owned()),
        };
        vec![
            name.clone(),
            text(object.schema_name.clone()),
            text(object.name.clone()),
            name.clone(),
            text(object.schema_name.clone()),
            text(object.name.clone()),
            text(if object.kind == ObjectKind::Procedure { "PROCEDURE" } else { "FUNCTION" }),
            optional_text(returned.as_deref()),
            text("SQL"),
            optional_text(definition_for(session, database, object).map(start_of).as_deref()),
            crate::views::moment(object.created),
            crate::views::moment(object.modified),
        ]
    };
    Ok(objects_of(session, database).iter().filter(|object| is_routine(object)).map(row).collect())
}

fn routine_parameters(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = text(session.storage_of(database)?.name());
    let mut rows = Rows::new();
    for object in objects_of(session, database).iter().filter(|object| is_routine(object)) {
        let scalar = object.kind == ObjectKind::ScalarFunction;
        for (number, parameter) in (i32::from(!scalar)..).zip(&object.parameters) {
            let of = &parameter.sql_type;
            let result = scalar && number == 0;
            let length = of.length().map_or(-1, i32::from);
            let lengthy = of.is_text() || of.is_binary();
            let mode = if result {
                "OUT"
            } else if parameter.output {
                "INOUT"
            } else {
                "IN"
            };
            rows.push(vec![
                name.clone(),
                text(object.schema_name.clone()),
                text(object.name.clone()),
                int(number),
                text(mode),
                text(if result { "YES" } else { "NO" }),
                text("NO"),
                text(parameter.name.clone()),
                text(if parameter.table_type.is_some() { "table type" } else { of.base_name() }),
                if lengthy { int(length) } else { Scalar::Null },
                if of.is_numeric() { tiny(of.precision()) } else { Scalar::Null },
                if of.is_numeric() { int(i32::from(of.scale())) } else { Scalar::Null },
            ]);
        }
    }
    Ok(rows)
}

fn standard_views(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = text(session.storage_of(database)?.name());
    let row = |object: &Arc<ObjectDef>| {
        vec![
            name.clone(),
            text(object.schema_name.clone()),
            text(object.name.clone()),
            optional_text(definition_for(session, database, object).map(start_of).as_deref()),
            text(if object.flags.check_option { "CASCADE" } else { "NONE" }),
            text("NO"),
        ]
    };
    Ok(objects_of(session, database).iter().filter(|object| object.kind == ObjectKind::View).map(row).collect())
}
