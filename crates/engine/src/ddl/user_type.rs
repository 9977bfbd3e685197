//! CREATE TYPE: alias types and table types; what a type name means.
//!
//! ```text
//! alias type   ObjectDef.columns[0]: the type it stands for, whether NULL is allowed where nothing is said
//! table type   ObjectDef.definition: the CREATE TYPE text, parsed again where a variable is declared of it
//! ```
//!
//! 1. Built-in names come first; a user's type is looked for in the current database, in dbo where no schema is written.
//! 2. A type that columns or parameters have cannot be dropped (3732).
//!
//! Messages: 219 (the type is there already), 2715 (no such type), 350 (a table type as a column's), 206 (a table of another
//! type as an argument), 352 (a table-valued parameter without READONLY).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::columns::sql_type;
use crate::ddl::names::{schema_for_new, schemas_of, shown};
use crate::ddl::temporary::make_variable;
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::{message, unsupported};
use crate::session::state::SessionState;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, ColumnId, DatabaseCatalog, ModuleFlags, ObjectDef, ObjectId, ObjectKind, TableDef};
use thawdb_tsql::ast::{CreateType, CreateTypeKind, DataType, Stmt, StmtKind, TableBody};
use thawdb_tsql::{Batch, ParseOptions, parse_batch};
use thawdb_types::{Collation, SqlError, TypeUse};

/// CREATE TYPE.
pub(crate) fn create_type(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, node: &CreateType) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    let name = &node.name.name.text;
    let (kind, columns) = match &node.kind {
        CreateTypeKind::Alias { data_type, nullable } => {
            let base = sql_type(data_type, TypeUse::Column { ordinal: 1, name }, Collation::DEFAULT)?;
            let nullable = nullable.unwrap_or(session.options.ansi_null_default_on);
            (ObjectKind::AliasType, vec![ColumnDef::plain(ColumnId(1), "", base, nullable)])
        }
        CreateTypeKind::Table { body, options } => {
            if let Some(option) = options.first() {
                return Err(crate::messages::unsupported_option(&option.name).into());
            }
            if body.period.is_some() {
                return Err(message(13_572, &[]).into());
            }
            let described = crate::ddl::table::describe(session, name, body)?;
            crate::ddl::temporary::validate_rules(session, name, &described)?;
            (ObjectKind::TableType, described.columns)
        }
        CreateTypeKind::External(_) => return Err(unsupported("CLR").into()),
    };
    let definition = statement.span.slice(interpreter.text).to_owned();
    let quoted_identifier = interpreter.session.options.quoted_identifier;
    interpreter.transactional(|this| {
        let (open, now) = (this.session.database.clone(), this.session.engine.now_datetime());
        let schema = schema_for_new(this.session, &node.name);
        change_catalog(this.session, &open, |catalog, part| {
            let schema = catalog.schema(&schema).ok_or_else(|| message(2760, &[&schema]))?.clone();
            if catalog.user_type(&schema.name, name).is_some() {
                return Err(message(219, &[&shown(&node.name)]));
            }
            let object = ObjectDef {
                id: catalog.take_object_id(),
                schema: schema.id,
                schema_name: schema.name,
                name: name.clone(),
                kind,
                parent: None,
                definition,
                flags: ModuleFlags { quoted_identifier, ..ModuleFlags::default() },
                columns,
                parameters: Vec::new(),
                trigger: None,
                sequence: None,
                created: now,
                modified: now,
                parsed: Arc::default(),
            };
            catalog.put_object(&mut part.txn, object).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

/// What a type name means.
pub(crate) enum TypeMeaning {
    /// A type of values; of a user's type its number and whether it allows NULL.
    Value { sql_type: thawdb_types::SqlType, user: Option<(ObjectId, bool)> },
    /// A table type.
    Table(Arc<ObjectDef>),
}

impl TypeMeaning {
    /// The type of values it is: 350 for a table type.
    pub(crate) fn value(self, what: &str) -> Result<thawdb_types::SqlType, SqlError> {
        match self {
            Self::Value { sql_type, .. } => Ok(sql_type),
            Self::Table(_) => Err(message(350, &[&what])),
        }
    }
}

/// What a type name means, here and now.
pub(crate) fn meaning(
    session: &SessionState,
    data_type: &DataType,
    at: TypeUse<'_>,
    collation: Collation,
) -> Result<TypeMeaning, SqlError> {
    let error = match sql_type(data_type, at, collation) {
        Ok(sql_type) => return Ok(TypeMeaning::Value { sql_type, user: None }),
        Err(error) if error.number != 2715 && error.number != 243 => return Err(error),
        Err(error) => error,
    };
    let Some(object) = find(session, data_type) else { return Err(error) };
    if object.kind == ObjectKind::TableType {
        session.allow_action(thawdb_query::access::AccessAction::Execute, (session.database.id, object.id))?;
        return Ok(TypeMeaning::Table(object));
    }
    let base = object.columns.first().ok_or_else(|| internal(format!("type {} stands for nothing", object.name)))?;
    Ok(TypeMeaning::Value { sql_type: base.sql_type, user: Some((object.id, base.nullable)) })
}

fn find(session: &SessionState, data_type: &DataType) -> Option<Arc<ObjectDef>> {
    let name = &data_type.name;
    let database = match &name.database {
        None => session.database.id,
        Some(database) => session.engine.database_named(&database.text)?.id,
    };
    let catalog = session.definitions(database)?;
    schemas_of(session, name).iter().find_map(|schema| catalog.user_type(schema, &name.name.text).cloned())
}

/// The clauses of a table type; parsed at their first use.
fn with_body<R>(object: &ObjectDef, work: impl FnOnce(&TableBody) -> Result<R, SqlError>) -> Result<R, SqlError> {
    let parse = || -> Arc<dyn std::any::Any + Send + Sync> {
        Arc::new(parse_batch(&object.definition, &ParseOptions { quoted_identifier: object.flags.quoted_identifier }))
    };
    let parsed: Arc<Batch> =
        object.parsed.get_or_init(parse).clone().downcast().expect("only this function fills the slot of a table type");
    match parsed.statements.first().map(|statement| &statement.kind) {
        Some(StmtKind::CreateType(node)) => match &node.kind {
            CreateTypeKind::Table { body, .. } => work(body),
            _ => Err(internal(format!("{} is no table type", object.name))),
        },
        _ => Err(internal(format!("the definition of type {} no longer parses", object.name))),
    }
}

/// An empty table variable of a table type; its trees live in the present statement's work.
pub(crate) fn make_table(session: &mut SessionState, object: &ObjectDef, variable: &str) -> Result<Arc<TableDef>, SqlError> {
    with_body(object, |body| make_variable(session, variable, body))
}

/// A table of a table type as the binder sees one: it holds no rows and is never run on.
pub(crate) fn outline(session: &SessionState, of: ObjectId) -> Option<Arc<TableDef>> {
    let object = session.definitions(session.database.id)?.objects.get(&of.0)?.clone();
    Some(Arc::new(TableDef {
        database: crate::session::temporary::VARIABLES_ID,
        id: SessionState::new_temp_object(),
        schema: object.schema,
        schema_name: object.schema_name.clone(),
        name: object.name.clone(),
        columns: object.columns.clone(),
        indexes: vec![crate::ddl::table::heap(thawdb_storage::TreeId(0), Default::default())],
        rows_disabled: false,
        disabled: Vec::new(),
        lock_escalation: thawdb_catalog::LockEscalation::default(),
        temporal: Default::default(),
        building: None,
        created: object.created,
        modified: object.modified,
    }))
}

/// 3732 for a type that a column or a parameter has.
pub(crate) fn refuse_used(catalog: &DatabaseCatalog, object: &ObjectDef) -> Result<(), SqlError> {
    let is_of = |column: &ColumnDef| column.user_type == Some(object.id);
    let table = catalog.tables.tables.values().find(|table| table.columns.iter().any(is_of)).map(|table| table.name.clone());
    let user = table.or_else(|| {
        let uses = |other: &&Arc<ObjectDef>| {
            other.parameters.iter().any(|parameter| parameter.table_type == Some(object.id)) || other.columns.iter().any(is_of)
        };
        catalog.objects.values().find(uses).map(|other| other.name.clone())
    });
    match user {
        Some(user) => Err(message(3732, &[&object.name, &user])),
        None => Ok(()),
    }
}
