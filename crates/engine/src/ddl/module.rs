//! What CREATE, ALTER and CREATE OR ALTER of procedures, functions, views and triggers have in common.
//!
//! ```text
//! statement ─► name, text as it is kept ─► change_catalog: kind fits the mode? ─► put_object, same number when altered
//! ```
//!
//! Messages: 2714 (the name is taken), 208 (ALTER of nothing), 2010 (ALTER of another kind), 2760 (no such schema), 166
//! (a database before the name).

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{find_object, schema_for_new, shown};
use crate::ddl::table::check_free;
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::{message, unsupported_option};
use crate::security::token::Who;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, ModuleFlags, ObjectDef, ObjectId, ObjectKind, ObjectSecurity, ParameterDef, SchemaId, TriggerDef};
use thawdb_tsql::ast::{CreateMode, ModuleOption, ModulePrincipal, ObjectName, Parameter, Stmt};
use thawdb_tsql::token::{Keyword, TokenKind};
use thawdb_types::{Collation, SqlError, TypeUse};

/// Parameters of a module: SQL Server's limit.
const PARAMETERS_MAX: usize = 2100;

/// A module about to be kept.
pub(crate) struct NewModule<'t> {
    pub(crate) mode: CreateMode,
    pub(crate) name: &'t ObjectName,
    pub(crate) kind: ObjectKind,
    pub(crate) flags: ModuleFlags,
    pub(crate) columns: Vec<ColumnDef>,
    pub(crate) parameters: Vec<ParameterDef>,
    pub(crate) parent: Option<ObjectId>,
    pub(crate) trigger: Option<TriggerDef>,
    /// Whom it runs as.
    pub(crate) execute_as: Option<i32>,
}

impl<'t> NewModule<'t> {
    pub(crate) fn new(mode: CreateMode, name: &'t ObjectName, kind: ObjectKind, flags: ModuleFlags) -> Self {
        Self { mode, name, kind, flags, columns: Vec::new(), parameters: Vec::new(), parent: None, trigger: None, execute_as: None }
    }
}

/// The options a module is made under, WITH options included.
pub(crate) fn flags_of(session: &SessionState, options: &[ModuleOption]) -> Result<ModuleFlags, SqlError> {
    let mut flags = ModuleFlags {
        quoted_identifier: session.options.quoted_identifier,
        ansi_nulls: session.options.ansi_nulls,
        ..ModuleFlags::default()
    };
    for option in options {
        match option {
            // Kept beside the object, see `execute_as_of`.
            ModuleOption::ExecuteAs(_) => {}
            ModuleOption::Word(word) => match word.as_str() {
                "RECOMPILE" => flags.recompiled = true,
                "ENCRYPTION" => flags.encrypted = true,
                "SCHEMABINDING" => flags.schema_bound = true,
                "RETURNS NULL ON NULL INPUT" => flags.null_on_null_input = true,
                "CALLED ON NULL INPUT" | "VIEW_METADATA" | "INLINE = ON" | "INLINE = OFF" => {}
                other => return Err(unsupported_option(other)),
            },
        }
    }
    Ok(flags)
}

/// Whom a module is to run as: a user, [`ObjectSecurity::AS_OWNER`], or `None` for its caller. 15517 for somebody one may not be.
pub(crate) fn execute_as_of(session: &SessionState, options: &[ModuleOption]) -> Result<Option<i32>, SqlError> {
    let given = options.iter().find_map(|option| match option {
        ModuleOption::ExecuteAs(principal) => Some(principal),
        ModuleOption::Word(_) => None,
    });
    Ok(match given {
        None | Some(ModulePrincipal::Caller) => None,
        Some(ModulePrincipal::Owner) => Some(ObjectSecurity::AS_OWNER),
        Some(ModulePrincipal::Self_) => session.user_token(session.database.id).map(|user| user.user),
        Some(ModulePrincipal::Name(name)) => match crate::security::impersonation::user_to_be(session, name)? {
            Who::User(_, user) => Some(user),
            Who::Login(_) => None,
        },
    })
}

/// The definitions of declared parameters: 134 for one named twice, 180 for too many.
pub(crate) fn parameters_of(session: &SessionState, declared: &[Parameter]) -> Result<Vec<ParameterDef>, SqlError> {
    if declared.len() > PARAMETERS_MAX {
        return Err(message(180, &[&declared.len(), &PARAMETERS_MAX]));
    }
    let mut parameters: Vec<ParameterDef> = Vec::with_capacity(declared.len());
    for (ordinal, parameter) in (1..).zip(declared) {
        let name = &parameter.variable.name;
        if parameters.iter().any(|known| known.name.eq_ignore_ascii_case(name)) {
            return Err(message(134, &[name]).at_line(parameter.span.line));
        }
        if parameter.varying {
            return Err(unsupported_option("CURSOR VARYING").at_line(parameter.span.line));
        }
        let (sql_type, table_type) = match meaning(session, &parameter.data_type, TypeUse::Parameter { ordinal, name }, Collation::DEFAULT)?
        {
            TypeMeaning::Value { sql_type, .. } if !parameter.read_only => (sql_type, None),
            TypeMeaning::Value { .. } => {
                return Err(message(346, &[name]).at_line(parameter.span.line));
            }
            TypeMeaning::Table(_) if !parameter.read_only => return Err(message(352, &[name]).at_line(parameter.span.line)),
            TypeMeaning::Table(of) => (thawdb_types::SqlType::Int, Some(of.id)),
        };
        if let Some(default) = &parameter.default {
            // Whether it is a constant that fits is told when the module is made.
            thawdb_query::bind_assignment(default, sql_type, &CompileCx::new(session, 0))?;
        }
        parameters.push(ParameterDef {
            name: name.clone(),
            sql_type,
            table_type,
            output: parameter.output,
            has_default: parameter.default.is_some(),
            read_only: parameter.read_only,
        });
    }
    Ok(parameters)
}

/// The text as the catalog keeps it: whatever the statement, it reads as a CREATE.
fn definition_text(text: &str, statement: &Stmt, mode: CreateMode) -> String {
    if mode == CreateMode::Create {
        return text.to_owned();
    }
    let (tokens, _) = thawdb_tsql::lexer::lex(text, &thawdb_tsql::ParseOptions::default());
    let words = tokens.iter().skip_while(|token| token.start < statement.span.start);
    let mut kept = text.to_owned();
    match mode {
        CreateMode::Alter => {
            let alter = words.into_iter().next().expect("a statement has a first word");
            kept.replace_range(alter.start as usize..alter.end as usize, "CREATE");
        }
        _ => {
            // From the back, so that places before stay where they are.
            let gone: Vec<_> = words.skip(1).take(2).filter(|token| is_or_alter(token.kind)).collect();
            gone.into_iter().rev().for_each(|token| kept.replace_range(token.start as usize..token.end as usize, ""));
        }
    }
    kept
}

fn is_or_alter(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Keyword(Keyword::Or | Keyword::Alter))
}

/// Keeps a module.
pub(crate) fn keep_module(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, new: NewModule<'_>) -> Result<(), Failure> {
    if new.name.database.is_some() || new.name.server.is_some() {
        return Err(message(166, &[&format!("{} {}", verb(new.mode), word_of(new.kind).to_uppercase())]).into());
    }
    if new.name.name.text.starts_with('#') {
        return Err(unsupported_option("temporary procedure").into());
    }
    let definition = definition_text(interpreter.text, statement, new.mode);
    interpreter.transactional(|this| {
        let (open, now) = (this.session.database.clone(), this.session.engine.now_datetime());
        let known = this.session.definitions(open.id).and_then(|catalog| find_object(this.session, &catalog, new.name));
        let known = known.filter(|_| new.mode != CreateMode::Create).map(|object| object.schema_name.clone());
        let schema = known.unwrap_or_else(|| schema_for_new(this.session, new.name));
        change_catalog(this.session, &open, |catalog, part| {
            let schema = catalog.schema(&schema).ok_or_else(|| message(2760, &[&schema]))?.clone();
            let known = catalog.object(&schema.name, &new.name.name.text).cloned();
            let (id, created) = match (&known, new.mode) {
                (Some(known), CreateMode::Alter | CreateMode::CreateOrAlter) if same_family(known.kind, new.kind) => {
                    (known.id, known.created)
                }
                (Some(_), CreateMode::Alter | CreateMode::CreateOrAlter) => {
                    return Err(message(2010, &[&shown(new.name)]));
                }
                (None, CreateMode::Alter) if catalog.tables.table(&schema.name, &new.name.name.text).is_none() => {
                    return Err(message(208, &[&shown(new.name)]).with_state(6));
                }
                (None, CreateMode::Alter) => return Err(message(2010, &[&shown(new.name)])),
                _ => {
                    check_free(catalog, &schema.name, &new.name.name.text, &new.name.name.text)?;
                    (catalog.take_object_id(), now)
                }
            };
            let execute_as = new.execute_as;
            let object = object_of(new, (id, schema.id, schema.name), definition, (created, now));
            catalog.put_object(&mut part.txn, object).map_err(catalog_error(&open))?;
            let owner = catalog.security.object(id.0).owner;
            catalog.put_object_security(&mut part.txn, id, ObjectSecurity { owner, execute_as }).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

fn object_of(new: NewModule<'_>, place: (ObjectId, SchemaId, String), definition: String, times: (i64, i64)) -> ObjectDef {
    ObjectDef {
        id: place.0,
        schema: place.1,
        schema_name: place.2,
        name: new.name.name.text.clone(),
        kind: new.kind,
        parent: new.parent,
        definition,
        flags: new.flags,
        columns: new.columns,
        parameters: new.parameters,
        trigger: new.trigger,
        sequence: None,
        created: times.0,
        modified: times.1,
        parsed: Arc::default(),
    }
}

/// ALTER FUNCTION may not make another kind of function of one, but the table-valued ones count as their own each.
fn same_family(known: ObjectKind, new: ObjectKind) -> bool {
    known == new
}

fn verb(mode: CreateMode) -> &'static str {
    if mode == CreateMode::Alter { "ALTER" } else { "CREATE" }
}

/// The word of a kind in statements and messages.
pub(crate) fn word_of(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Procedure => "procedure",
        ObjectKind::View => "view",
        ObjectKind::ScalarFunction | ObjectKind::InlineFunction | ObjectKind::TableFunction => "function",
        ObjectKind::Trigger => "trigger",
        ObjectKind::Synonym => "synonym",
        ObjectKind::Sequence => "sequence object",
        ObjectKind::TableType | ObjectKind::AliasType => "type",
    }
}
