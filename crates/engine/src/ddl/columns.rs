//! Columns of CREATE TABLE, ALTER TABLE ADD and table variables: from tree to definition.

use crate::batch::compile_cx::CompileCx;
use crate::ddl::computed::define_computed;
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use std::borrow::Cow;
use thawdb_catalog::{ColumnDef, ColumnId, IdentityDef};
use thawdb_query::compile::bind_default;
use thawdb_tsql::ast::{
    ColumnDefinition, ColumnKind, ComputedColumn, ConstraintKind, DataType, DefaultDefinition, GeneratedAlways, Identity, RegularColumn,
    TypeParameter,
};
use thawdb_types::{Collation, SqlError, SqlType, TypeArgument, TypeUse};

/// Columns of a table: SQL Server's limit of ordinary tables.
pub(crate) const COLUMNS_MAX: usize = 1024;

/// The type that a type name means.
pub(crate) fn sql_type(data_type: &DataType, at: TypeUse<'_>, collation: Collation) -> Result<SqlType, SqlError> {
    let line = data_type.span.line;
    let own_schema = data_type.name.schema.as_ref().is_some_and(|schema| !schema.is("sys"));
    if own_schema || data_type.name.database.is_some() {
        let ordinal = if let TypeUse::Column { ordinal, .. } | TypeUse::Parameter { ordinal, .. } = at { ordinal } else { 1 };
        return Err(message(2715, &[&ordinal, &crate::ddl::names::shown(&data_type.name)]).at_line(line));
    }
    if data_type.xml_collection.is_some() {
        return Err(unsupported_option("XML SCHEMA COLLECTION").at_line(line));
    }
    let arguments: Vec<TypeArgument> = data_type
        .parameters
        .iter()
        .map(|parameter| match parameter {
            TypeParameter::Number(n) => TypeArgument::Number(i64::from(*n)),
            TypeParameter::Max => TypeArgument::Max,
        })
        .collect();
    SqlType::from_name(&data_type.name.name.text, &arguments, at, collation).map_err(|error| error.at_line(line))
}

/// A column being defined: its definition and what constraints and names still have to be made of.
pub(crate) struct NewColumn<'t> {
    pub(crate) definition: ColumnDef,
    pub(crate) syntax: Cow<'t, RegularColumn>,
    /// NULL was written, so a primary key over it is refused.
    pub(crate) explicitly_nullable: bool,
}

/// The definition of a column; its DEFAULT is checked but not yet named. `others` are the columns that a computed one may
/// name.
pub(crate) fn define<'t>(
    session: &SessionState,
    table: &str,
    others: &[ColumnDef],
    column: &'t ColumnDefinition,
    ordinal: i32,
) -> Result<NewColumn<'t>, SqlError> {
    let line = column.span.line;
    let syntax = match &column.kind {
        ColumnKind::Regular(syntax) => syntax,
        ColumnKind::ColumnSet => return Err(unsupported_option("COLUMN_SET").at_line(line)),
        ColumnKind::Computed(syntax) => {
            let definition = define_computed(session, table, others, column, syntax, ordinal)?;
            return Ok(NewColumn { definition, syntax: Cow::Owned(constraints_alone(syntax, column)), explicitly_nullable: false });
        }
    };
    refuse_unbuilt(syntax).map_err(|error| error.at_line(line))?;
    let name = &column.name.text;
    let collation = match &syntax.collation {
        None => Collation::DEFAULT,
        Some(collation) => Collation::by_name(&collation.text).ok_or_else(|| message(448, &[&collation.text]).at_line(line))?,
    };
    let (sql_type, user) = match meaning(session, &syntax.data_type, TypeUse::Column { ordinal, name }, collation)? {
        TypeMeaning::Value { sql_type, user } => (sql_type, user),
        TypeMeaning::Table(_) => return Err(message(350, &[&name]).at_line(line)),
    };
    if let Some(collation) = syntax.collation.as_ref().filter(|_| !sql_type.is_text()) {
        return Err(message(447, &[&sql_type.base_name()]).at_line(collation.span.line));
    }
    if sql_type == SqlType::RowVersion && syntax.default.is_some() {
        return Err(message(1755, &[&table, &name]).at_line(line));
    }
    let identity = syntax.identity.as_ref().map(|identity| identity_of(identity, name, &sql_type, syntax.nullable)).transpose();
    let identity = identity.map_err(|error| error.at_line(line))?;
    if identity.is_some() && syntax.default.is_some() {
        return Err(message(1754, &[&table, &name]).at_line(line));
    }
    let is_key = syntax.constraints.iter().any(|constraint| matches!(constraint.kind, ConstraintKind::PrimaryKey(_)));
    let by_type = user.map(|(_, nullable)| nullable && identity.is_none() && !is_key);
    let by_default = session.options.ansi_null_default_on && identity.is_none() && !is_key && sql_type != SqlType::RowVersion;
    if is_period(syntax) && syntax.nullable == Some(true) {
        return Err(message(13_587, &[&name]).at_line(line));
    }
    let nullable = !is_period(syntax) && syntax.nullable.or(by_type).unwrap_or(by_default);
    let mut definition = ColumnDef {
        id: ColumnId(ordinal),
        name: name.clone(),
        sql_type,
        nullable,
        identity,
        default: None,
        default_name: None,
        computed: None,
        user_type: user.map(|(id, _)| id),
    };
    if let Some(default) = &syntax.default {
        definition.default = Some(default_text(session, default, &definition)?);
    }
    Ok(NewColumn { definition, syntax: Cow::Borrowed(syntax), explicitly_nullable: syntax.nullable == Some(true) })
}

/// A computed column's constraints as those of a column.
fn constraints_alone(syntax: &ComputedColumn, column: &ColumnDefinition) -> RegularColumn {
    RegularColumn {
        data_type: DataType {
            name: thawdb_tsql::ast::ObjectName::simple(column.name.clone()),
            parameters: Vec::new(),
            xml_collection: None,
            span: column.span,
        },
        collation: None,
        nullable: syntax.nullable,
        identity: None,
        default: None,
        constraints: syntax.constraints.clone(),
        row_guid: false,
        sparse: false,
        filestream: false,
        hidden: false,
        not_for_replication: false,
        generated: None,
        mask: None,
        encryption: Vec::new(),
        index: None,
    }
}

/// Whether a column is one of a period.
fn is_period(syntax: &RegularColumn) -> bool {
    matches!(syntax.generated, Some(GeneratedAlways::RowStart | GeneratedAlways::RowEnd))
}

fn refuse_unbuilt(syntax: &RegularColumn) -> Result<(), SqlError> {
    let unbuilt = [
        (syntax.row_guid, "ROWGUIDCOL"),
        (syntax.sparse, "SPARSE"),
        (syntax.filestream, "FILESTREAM"),
        (syntax.hidden && !is_period(syntax), "HIDDEN"),
        (syntax.generated.is_some() && !is_period(syntax), "GENERATED ALWAYS"),
        (syntax.mask.is_some(), "MASKED"),
        (!syntax.encryption.is_empty(), "ENCRYPTED"),
    ];
    match unbuilt.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(unsupported_option(what)),
        None => Ok(()),
    }
}

fn identity_of(identity: &Identity, name: &str, sql_type: &SqlType, nullable: Option<bool>) -> Result<IdentityDef, SqlError> {
    let whole = sql_type.is_integer() || matches!(sql_type, SqlType::Decimal { scale: 0, .. });
    if !whole || nullable == Some(true) {
        return Err(message(2749, &[&name]));
    }
    let number = |text: &Option<String>, kind: &str| match text {
        None => Ok(1),
        Some(text) => text.parse::<i64>().map_err(|_| message(2753, &[&name]).with_state(if kind == "SEED" { 1 } else { 2 })),
    };
    let definition = IdentityDef { seed: number(&identity.seed, "SEED")?, increment: number(&identity.increment, "INCREMENT")? };
    if definition.increment == 0 { Err(message(2753, &[&name])) } else { Ok(definition) }
}

/// The text of a DEFAULT as sys.default_constraints shows it, checked against the column.
pub(crate) fn default_text(session: &SessionState, default: &DefaultDefinition, column: &ColumnDef) -> Result<String, SqlError> {
    let cx = CompileCx::new(session, 0);
    bind_default(&default.value, column, &cx)?;
    thawdb_tsql::definition(&default.value).ok_or_else(|| message(1046, &[]).at_line(default.span.line))
}
