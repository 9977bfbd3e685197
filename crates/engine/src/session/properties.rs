//! SERVERPROPERTY, DATABASEPROPERTYEX, OBJECTPROPERTY, COLUMNPROPERTY and their kin. An unknown property is NULL.

use crate::session::state::SessionState;
use thawdb_catalog::{ColumnDef, IndexDef, ObjectId, ObjectKind, TriggerDef};
use thawdb_types::{Collation, Scalar, SqlType};

fn text(value: impl Into<String>) -> Scalar {
    Scalar::Text(value.into())
}

/// A property as the sql_variant it is shown as: texts as nvarchar(128).
fn variant(value: Scalar) -> Scalar {
    let base = match value {
        Scalar::Null => return Scalar::Null,
        Scalar::TinyInt(_) => SqlType::TinyInt,
        Scalar::Int(_) => SqlType::Int,
        Scalar::BigInt(_) => SqlType::BigInt,
        _ => SqlType::SYSNAME,
    };
    Scalar::Binary(thawdb_types::variant::encode(&value, &base))
}

fn flag(value: bool) -> Scalar {
    Scalar::Int(i32::from(value))
}

/// SERVERPROPERTY, a sql_variant.
pub(crate) fn server(session: &SessionState, property: &str) -> Scalar {
    variant(server_value(session, property))
}

fn server_value(session: &SessionState, property: &str) -> Scalar {
    let config = &session.engine.config;
    let folder = || text(format!("{}/", config.data_folder.display()));
    match property.to_ascii_lowercase().as_str() {
        "productversion" => text("16.0.1000.6"),
        "productlevel" => text("RTM"),
        "productmajorversion" => text("16"),
        "productminorversion" => text("0"),
        "productbuild" => text("1000"),
        "resourceversion" => text("16.00.1000"),
        "edition" => text("Developer Edition (64-bit)"),
        "editionid" => Scalar::BigInt(-2_117_995_310),
        "engineedition" => Scalar::Int(3),
        "servername" => text(config.server_name.clone()),
        "machinename" | "computernamephysicalnetbios" => text(config.server_name.split('\\').next().unwrap_or_default()),
        "instancename" => Scalar::Null,
        "collation" => text(Collation::DEFAULT.name()),
        "collationid" => Scalar::Int(872_468_488),
        "lcid" => Scalar::Int(1033),
        "sqlcharset" => Scalar::TinyInt(1),
        "sqlcharsetname" => text("iso_1"),
        "sqlsortorder" => Scalar::TinyInt(52),
        "sqlsortordername" => text("nocase_iso"),
        "comparisonstyle" => Scalar::Int(196_609),
        "isclustered"
        | "ishadrenabled"
        | "isfulltextinstalled"
        | "isintegratedsecurityonly"
        | "isxtpsupported"
        | "issingleuser"
        | "islocaldb"
        | "isbigdatacluster"
        | "isadvancedanalyticsinstalled"
        | "ispolybaseinstalled"
        | "filestreamconfiguredlevel"
        | "filestreameffectivelevel"
        | "istempdbmetadatamemoryoptimized" => Scalar::Int(0),
        "processid" => Scalar::Int(std::process::id() as i32),
        "instancedefaultdatapath" | "instancedefaultlogpath" | "instancedefaultbackuppath" => folder(),
        "buildclrversion" => text("v4.0.30319"),
        _ => Scalar::Null,
    }
}

/// CONNECTIONPROPERTY, a sql_variant.
pub(crate) fn connection(session: &SessionState, property: &str) -> Scalar {
    variant(connection_value(session, property))
}

fn connection_value(session: &SessionState, property: &str) -> Scalar {
    let facts = session.ticket.facts.lock().clone();
    match property.to_ascii_lowercase().as_str() {
        "net_transport" | "physical_net_transport" => text(if facts.client_address.starts_with('<') { "Shared memory" } else { "TCP" }),
        "protocol_type" => text("TSQL"),
        "auth_scheme" => text("SQL"),
        "client_net_address" => text(facts.client_address),
        _ => Scalar::Null,
    }
}

/// SESSIONPROPERTY.
pub(crate) fn session(session: &SessionState, property: &str) -> Scalar {
    let options = &session.options;
    match property.to_ascii_lowercase().as_str() {
        "ansi_nulls" => flag(options.ansi_nulls),
        "ansi_padding" => flag(options.ansi_padding),
        "ansi_warnings" => flag(options.ansi_warnings),
        "arithabort" => flag(options.arithmetic_abort),
        "concat_null_yields_null" => flag(options.concat_null_yields_null),
        "numeric_roundabort" => flag(options.numeric_round_abort),
        "quoted_identifier" => flag(options.quoted_identifier),
        _ => Scalar::Null,
    }
}

/// DATABASEPROPERTYEX, a sql_variant.
pub(crate) fn database(session: &SessionState, name: &str, property: &str) -> Scalar {
    variant(database_value(session, name, property))
}

/// The same as the value it is made of.
pub(crate) fn database_value(session: &SessionState, name: &str, property: &str) -> Scalar {
    let Some(open) = session.engine.database_named(name) else { return Scalar::Null };
    let record = open.record();
    let option = |name: &str, default: &str| record.properties.get(name).cloned().unwrap_or_else(|| default.to_owned());
    let switch = |name: &str| flag(option(name, "OFF") == "ON");
    match property.to_ascii_lowercase().as_str() {
        "collation" => text(Collation::DEFAULT.name()),
        "recovery" => text(option("RECOVERY", "FULL")),
        "status" => text("ONLINE"),
        "updateability" => text("READ_WRITE"),
        "useraccess" => text("MULTI_USER"),
        "version" => Scalar::Int(957),
        "comparisonstyle" => Scalar::Int(196_609),
        "lcid" => Scalar::Int(1033),
        "sqlsortorder" => Scalar::TinyInt(52),
        "isansinulldefault" => switch("ANSI_NULL_DEFAULT"),
        "isansinullsenabled" => switch("ANSI_NULLS"),
        "isansipaddingenabled" => switch("ANSI_PADDING"),
        "isansiwarningsenabled" => switch("ANSI_WARNINGS"),
        "isarithmeticabortenabled" => switch("ARITHABORT"),
        "isquotedidentifiersenabled" => switch("QUOTED_IDENTIFIER"),
        "isnullconcat" => switch("CONCAT_NULL_YIELDS_NULL"),
        "isautocreatestatistics" => flag(option("AUTO_CREATE_STATISTICS", "ON") == "ON"),
        "isautoupdatestatistics" => flag(option("AUTO_UPDATE_STATISTICS", "ON") == "ON"),
        "isautoclose"
        | "isautoshrink"
        | "isinstandby"
        | "isclosecursorsoncommitenabled"
        | "isfulltextenabled"
        | "ispublished"
        | "issubscribed"
        | "ismergepublished"
        | "isrecursivetriggersenabled"
        | "isnumericroundabortenabled"
        | "istornpagedetectionenabled"
        | "isxtpsupported"
        | "issyncwithbackup"
        | "isparameterizationforced" => Scalar::Int(0),
        _ => Scalar::Null,
    }
}

/// OBJECTPROPERTY of a table or a view of the system.
pub(crate) fn object(session: &SessionState, id: i32, property: &str) -> Scalar {
    let table = crate::security::visibility::table(session, session.database.id, ObjectId(id));
    let property = property.to_ascii_lowercase();
    if crate::views::name_of(id).is_some() {
        return match property.as_str() {
            "isview" | "issystemtable" | "ismsshipped" => flag(property != "issystemtable"),
            "istable" | "isusertable" | "isprocedure" => flag(false),
            _ => Scalar::Null,
        };
    }
    let Some(table) = table else { return module(session, id, &property) };
    let has = |test: fn(&IndexDef) -> bool| flag(table.every_index().any(test));
    match property.as_str() {
        "isusertable" | "istable" => flag(true),
        "tabletemporaltype" => Scalar::Int(match (table.temporal.history_of, table.temporal.versioning) {
            (Some(_), _) => 1,
            (None, Some(_)) => 2,
            (None, None) => 0,
        }),
        "isview"
        | "isprocedure"
        | "isscalarfunction"
        | "istablefunction"
        | "isinlinefunction"
        | "istrigger"
        | "ismsshipped"
        | "issystemtable"
        | "tablehasforeignkey"
        | "tablehasforeignref"
        | "tablehascheckcnst"
        | "tablehastimestamp"
        | "tableisfake"
        | "tabletextinrowlimit"
        | "tableismemoryoptimized"
        | "isencrypted"
        | "tablehasactivefulltextindex" => flag(false),
        "tablehasprimarykey" => has(|index| index.primary_key),
        "tablehasuniquecnst" => has(|index| index.unique_constraint),
        "tablehasclustindex" => has(|index| index.id.0 == 1),
        "tablehasnonclustindex" => has(|index| index.id.0 > 1),
        "tablehasindex" => has(|index| index.id.0 > 0),
        "tablehasidentity" => flag(table.columns.iter().any(|column| column.identity.is_some())),
        "tablehasdefaultcnst" => flag(table.columns.iter().any(|column| column.default.is_some())),
        "schemaid" => Scalar::Int(table.schema.0),
        "ownerid" => Scalar::Int(1),
        "isansinullson" | "isquotedidenton" | "isansipadded" => flag(true),
        "cardinality" => Scalar::Null,
        _ => Scalar::Null,
    }
}

/// COLUMNPROPERTY.
pub(crate) fn column(column: &ColumnDef, property: &str) -> Scalar {
    match property.to_ascii_lowercase().as_str() {
        "allowsnull" => flag(column.nullable),
        "columnid" => Scalar::Int(column.id.0),
        "isidentity" => flag(column.identity.is_some()),
        "iscomputed" => flag(column.computed.is_some()),
        "isidnotforrepl" | "isrowguidcol" | "issparse" | "isfulltextindexed" | "isoutparam" | "iscolumnset" | "isxmlindexable" => {
            flag(false)
        }
        "precision" => Scalar::Int(match column.sql_type.length() {
            Some(length) => i32::from(length),
            None => i32::from(column.sql_type.precision()),
        }),
        "scale" => Scalar::Int(i32::from(column.sql_type.scale())),
        "charmaxlen" => column.sql_type.length().map_or(Scalar::Int(-1), |length| Scalar::Int(i32::from(length))),
        "usesansitrim" => flag(true),
        _ => Scalar::Null,
    }
}

/// INDEXPROPERTY.
pub(crate) fn index(index: &IndexDef, disabled: bool, property: &str) -> Scalar {
    match property.to_ascii_lowercase().as_str() {
        "indexid" => Scalar::Int(index.id.0),
        "isclustered" => flag(index.id.0 == 1),
        "isunique" => flag(index.unique),
        "isdisabled" => flag(disabled),
        "ispadindex" => flag(index.options.pad_index),
        "ispagelockdisallowed" => flag(!index.options.allow_page_locks),
        "isrowlockdisallowed" => flag(!index.options.allow_row_locks),
        "ishypothetical" | "isstatistics" | "isautostatistics" | "isfulltextkey" | "iscolumnstore" => flag(false),
        "indexfillfactor" => Scalar::Int(i32::from(index.options.fill_factor)),
        "indexdepth" => Scalar::Null,
        _ => Scalar::Null,
    }
}

/// OBJECTPROPERTY of an object that is no table, by lower-case name.
fn module(session: &SessionState, id: i32, property: &str) -> Scalar {
    let found = session.visible(session.database.id).and_then(|catalog| catalog.objects.get(&id).cloned());
    let Some(object) = found else { return Scalar::Null };
    let is = |kind: ObjectKind| flag(object.kind == kind);
    let fires = |test: fn(&TriggerDef) -> bool| object.trigger.as_ref().map_or(Scalar::Null, |trigger| flag(test(trigger)));
    match property {
        "isprocedure" => is(ObjectKind::Procedure),
        "isview" => is(ObjectKind::View),
        "isscalarfunction" => is(ObjectKind::ScalarFunction),
        "isinlinefunction" => is(ObjectKind::InlineFunction),
        "istablefunction" => flag(matches!(object.kind, ObjectKind::InlineFunction | ObjectKind::TableFunction)),
        "istrigger" => is(ObjectKind::Trigger),
        "isusertable" | "istable" | "ismsshipped" | "issystemtable" => flag(false),
        "isencrypted" => flag(object.flags.encrypted),
        "isschemabound" => flag(object.flags.schema_bound),
        "isansinullson" | "execisansinullson" => flag(object.flags.ansi_nulls),
        "isquotedidenton" | "execisquotedidenton" => flag(object.flags.quoted_identifier),
        "execistriggerdisabled" => fires(|trigger| trigger.disabled),
        "execisinsteadoftrigger" => fires(|trigger| trigger.instead_of),
        "execisaftertrigger" => fires(|trigger| !trigger.instead_of),
        "execisinserttrigger" => fires(|trigger| trigger.insert),
        "execisupdatetrigger" => fires(|trigger| trigger.update),
        "execisdeletetrigger" => fires(|trigger| trigger.delete),
        "schemaid" => Scalar::Int(object.schema.0),
        "ownerid" => Scalar::Int(1),
        _ => Scalar::Null,
    }
}
