//! Views over objects that cannot be made yet: right in their columns, and truly empty.

use crate::session::state::SessionState;
use crate::views::objects::OBJECT_COLUMNS;
use crate::views::{Column, DESC, Rows, View, col, null};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{BigInt, Bit, DateTime, Int, TinyInt};
use thawdb_types::{SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

/// The columns of an object, then `tail`. `N` is their number.
const fn object_with<const N: usize>(tail: &[Column]) -> [Column; N] {
    let mut columns = [OBJECT_COLUMNS[0]; N];
    let mut at = 0;
    while at < N {
        columns[at] = if at < 12 { OBJECT_COLUMNS[at] } else { tail[at - 12] };
        at += 1;
    }
    columns
}

const FOREIGN_KEYS: [Column; 22] = object_with(&[
    null("referenced_object_id", Int),
    null("key_index_id", Int),
    col("is_disabled", Bit),
    col("is_not_for_replication", Bit),
    col("is_not_trusted", Bit),
    null("delete_referential_action", TinyInt),
    null("delete_referential_action_desc", DESC),
    null("update_referential_action", TinyInt),
    null("update_referential_action_desc", DESC),
    col("is_system_named", Bit),
]);

const CHECKS: [Column; 19] = object_with(&[
    col("is_disabled", Bit),
    col("is_not_for_replication", Bit),
    col("is_not_trusted", Bit),
    col("parent_column_id", Int),
    null("definition", SqlType::NVARCHAR_MAX),
    null("uses_database_collation", Bit),
    col("is_system_named", Bit),
]);

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
    col("start_value", BigInt),
    col("increment", BigInt),
    null("minimum_value", BigInt),
    null("maximum_value", BigInt),
    null("is_cycling", Bit),
    null("is_cached", Bit),
    null("cache_size", Int),
    col("system_type_id", TinyInt),
    col("user_type_id", Int),
    col("precision", TinyInt),
    null("scale", TinyInt),
    col("current_value", BigInt),
    col("is_exhausted", Bit),
]);

const TRIGGERS: &[Column] = &[
    col("name", NAME),
    col("object_id", Int),
    col("parent_class", TinyInt),
    null("parent_class_desc", DESC),
    col("parent_id", Int),
    col("type", crate::views::CHAR_2),
    null("type_desc", DESC),
    col("create_date", DateTime),
    col("modify_date", DateTime),
    col("is_ms_shipped", Bit),
    col("is_disabled", Bit),
    col("is_not_for_replication", Bit),
    col("is_instead_of_trigger", Bit),
];

const FOREIGN_KEY_COLUMNS: &[Column] = &[
    col("constraint_object_id", Int),
    col("constraint_column_id", Int),
    col("parent_object_id", Int),
    col("parent_column_id", Int),
    col("referenced_object_id", Int),
    col("referenced_column_id", Int),
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

const EXTENDED_PROPERTIES: &[Column] = &[
    col("class", TinyInt),
    null("class_desc", DESC),
    col("major_id", Int),
    col("minor_id", Int),
    col("name", NAME),
    null("value", SqlType::nvarchar(4000)),
];

const COMPUTED_COLUMNS: &[Column] = &[
    col("object_id", Int),
    null("name", NAME),
    col("column_id", Int),
    col("is_computed", Bit),
    null("definition", SqlType::NVARCHAR_MAX),
    col("is_persisted", Bit),
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
    col("has_default_value", Bit),
];

const STATS: &[Column] = &[
    col("object_id", Int),
    null("name", NAME),
    col("stats_id", Int),
    null("auto_created", Bit),
    null("user_created", Bit),
    null("no_recompute", Bit),
    null("has_filter", Bit),
    null("filter_definition", SqlType::NVARCHAR_MAX),
];

const ROLE_MEMBERS: &[Column] = &[col("role_principal_id", Int), col("member_principal_id", Int)];

const REFERENTIAL_CONSTRAINTS: &[Column] = &[
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
    null("UNIQUE_CONSTRAINT_CATALOG", NAME),
    null("UNIQUE_CONSTRAINT_SCHEMA", NAME),
    null("UNIQUE_CONSTRAINT_NAME", NAME),
    null("MATCH_OPTION", SqlType::varchar(7)),
    null("UPDATE_RULE", SqlType::varchar(11)),
    null("DELETE_RULE", SqlType::varchar(11)),
];

const IS_VIEWS: &[Column] = &[
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    col("TABLE_NAME", NAME),
    null("VIEW_DEFINITION", SqlType::nvarchar(4000)),
    null("CHECK_OPTION", SqlType::varchar(7)),
    col("IS_UPDATABLE", SqlType::varchar(2)),
];

const ROUTINES: &[Column] = &[
    null("SPECIFIC_CATALOG", NAME),
    null("SPECIFIC_SCHEMA", NAME),
    col("SPECIFIC_NAME", NAME),
    null("ROUTINE_CATALOG", NAME),
    null("ROUTINE_SCHEMA", NAME),
    col("ROUTINE_NAME", NAME),
    null("ROUTINE_TYPE", SqlType::nvarchar(20)),
];

const fn sys(name: &'static str, columns: &'static [Column]) -> View {
    View { schema: "sys", name, columns, rows: nothing }
}

const fn standard(name: &'static str, columns: &'static [Column]) -> View {
    View { schema: "INFORMATION_SCHEMA", name, columns, rows: nothing }
}

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    sys("foreign_keys", &FOREIGN_KEYS),
    sys("foreign_key_columns", FOREIGN_KEY_COLUMNS),
    sys("check_constraints", &CHECKS),
    sys("views", &OBJECT_VIEWS),
    sys("procedures", &PROCEDURES),
    sys("synonyms", &SYNONYMS),
    sys("sequences", &SEQUENCES),
    sys("triggers", TRIGGERS),
    sys("sql_modules", SQL_MODULES),
    sys("extended_properties", EXTENDED_PROPERTIES),
    sys("computed_columns", COMPUTED_COLUMNS),
    sys("parameters", PARAMETERS),
    sys("stats", STATS),
    sys("database_role_members", ROLE_MEMBERS),
    standard("REFERENTIAL_CONSTRAINTS", REFERENTIAL_CONSTRAINTS),
    standard("VIEWS", IS_VIEWS),
    standard("ROUTINES", ROUTINES),
];

fn nothing(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(Rows::new())
}
