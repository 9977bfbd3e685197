//! Whether a plan may run for who runs it: once per plan and security context, then remembered by a number.
//!
//! ```text
//! plan.needs ─► same owner as the view or module it was named in? ─ yes ─► nothing to ask   (ownership chain)
//!                                                      └ no ──► security::rule ─► 229, 230, 916
//! ```
//! A security context is the user's token and the owner of the running module. Plans that reach into other databases are looked
//! at each time: their users change without this one's token.
//!
//! 1. A chain never crosses databases, and dynamic SQL begins without one (`Frame::chain`).
//! 2. A plan is remembered only when all it needs was allowed ([`SessionState::check_plan`]).

use crate::messages::message;
use crate::security::permissions::Kind;
use crate::security::rule::{Judge, Securable, Verdict, owner_of};
use crate::session::state::SessionState;
use thawdb_catalog::{DatabaseCatalog, DatabaseId};
use thawdb_query::access::{AccessAction, AccessNeed, Place};
use thawdb_query::compile::Compiled;
use thawdb_types::SqlError;

fn permission(action: AccessAction) -> &'static str {
    match action {
        AccessAction::Select => "SELECT",
        AccessAction::Insert => "INSERT",
        AccessAction::Update => "UPDATE",
        AccessAction::Delete => "DELETE",
        AccessAction::Execute => "EXECUTE",
    }
}

/// Schema and name of an object, as messages give them.
pub(crate) fn names_of(catalog: &DatabaseCatalog, id: i32) -> (String, String) {
    let table = catalog.tables.tables.get(&id).map(|table| (table.schema_name.clone(), table.name.clone()));
    let object = || catalog.objects.get(&id).map(|object| (object.schema_name.clone(), object.name.clone()));
    table.or_else(object).unwrap_or_default()
}

impl SessionState {
    /// Whether the session may run a plan.
    #[inline]
    pub(crate) fn may_run(&self, plan: &Compiled) -> Result<(), SqlError> {
        if plan.needs.is_empty() || self.is_sysadmin() { Ok(()) } else { self.check_plan(plan) }
    }

    fn check_plan(&self, plan: &Compiled) -> Result<(), SqlError> {
        let context = self.context_number();
        if context.is_some_and(|context| plan.remembered.has(context)) {
            return Ok(());
        }
        self.allow_needs(&plan.needs)?;
        let at_home = plan.needs.iter().all(|need| need.object.0 == self.database.id);
        if let Some(context) = context.filter(|_| at_home) {
            plan.remembered.keep(context);
        }
        Ok(())
    }

    /// The number of the present context: token and owner of the running module.
    fn context_number(&self) -> Option<u64> {
        let token = self.user_token(self.database.id)?;
        let chain = match self.frame().chain {
            None => 0,
            Some((database, owner)) if database == self.database.id => u64::from(owner.cast_unsigned()) + 1,
            Some(_) => return None,
        };
        Some(u64::from(token.id) << 32 | chain)
    }

    /// Fails with the first need that is not allowed.
    pub(crate) fn allow_needs(&self, needs: &[AccessNeed]) -> Result<(), SqlError> {
        if self.is_sysadmin() {
            return Ok(());
        }
        needs.iter().try_for_each(|need| self.allow_need(need))
    }

    fn allow_need(&self, need: &AccessNeed) -> Result<(), SqlError> {
        let (database, object) = need.object;
        if self.is_chained(need) {
            return Ok(());
        }
        let judge = self.judge(database)?;
        if judge.is_unlimited(Kind::Database) {
            return Ok(());
        }
        let name = permission(need.action);
        if let Some(synonym) = need.synonym {
            match self.judge(synonym.0)?.verdict(Securable::Object(synonym.1.0), name) {
                Verdict::Denied => return Err(self.denied(&judge, name, synonym)),
                Verdict::Granted if self.owner(synonym).is_some() && self.owner(synonym) == self.owner(need.object) => return Ok(()),
                _ => {}
            }
        }
        let securable = self.securable_of(need.object);
        if matches!(securable, Securable::Type(_)) || !judge.speaks_of_columns(object.0, name) {
            return if judge.allows(securable, name) { Ok(()) } else { Err(self.denied(&judge, name, need.object)) };
        }
        self.allow_columns(&judge, need, name)
    }

    /// Column by column, where permissions speak of columns.
    fn allow_columns(&self, judge: &Judge, need: &AccessNeed, name: &str) -> Result<(), SqlError> {
        let (database, object) = need.object;
        let Some((_, catalog)) = &judge.user else { return Ok(()) };
        if need.columns.is_empty() {
            // Nothing of a row is shown: that there are rows may know who may see any column.
            let whole = judge.allows(Securable::Object(object.0), name);
            let some = need.action == AccessAction::Select && judge.has_column(object.0);
            return if whole || some { Ok(()) } else { Err(self.denied(judge, name, need.object)) };
        }
        for column in &need.columns {
            if judge.allows(Securable::Column(object.0, *column), name) {
                continue;
            }
            let (schema, table) = names_of(catalog, object.0);
            let named = catalog.tables.tables.get(&object.0).and_then(|t| t.columns.iter().find(|c| c.id.0 == *column));
            let column = named.map_or_else(|| column.to_string(), |column| column.name.clone());
            let shown = self.storage_of(database)?.name();
            return Err(message(230, &[&name, &column, &table, &shown, &schema]));
        }
        Ok(())
    }

    /// An object or a type as what permissions are on.
    fn securable_of(&self, (database, object): Place) -> Securable {
        let kind = self.definitions(database).and_then(|catalog| catalog.objects.get(&object.0).map(|object| object.kind));
        if kind.is_some_and(thawdb_catalog::ObjectKind::is_type) { Securable::Type(object.0) } else { Securable::Object(object.0) }
    }

    fn owner(&self, (database, object): Place) -> Option<i32> {
        owner_of(&*self.definitions(database)?, object.0)
    }

    /// Whether the object has the owner of what named it.
    fn is_chained(&self, need: &AccessNeed) -> bool {
        let database = need.object.0;
        let by = match need.parent {
            Some(parent) if parent.0 == database => self.owner(parent),
            Some(_) => None,
            None => self.frames.last().and_then(|frame| frame.chain).filter(|(home, _)| *home == database).map(|(_, owner)| owner),
        };
        by.is_some() && by == self.owner(need.object)
    }

    /// 229.
    fn denied(&self, judge: &Judge, name: &str, (database, object): Place) -> SqlError {
        let catalog = judge.user.as_ref().map(|(_, catalog)| catalog.clone()).filter(|catalog| catalog.database == database);
        let catalog = catalog.or_else(|| self.definitions(database));
        let (schema, table) = catalog.map_or_else(Default::default, |catalog| names_of(&catalog, object.0));
        let shown = self.engine.database(database).map_or_else(String::new, |open| open.name());
        message(229, &[&name, &table, &shown, &schema])
    }

    /// Whether something is allowed to be done to an object, chains considered: 229 if not.
    pub(crate) fn allow_action(&self, action: AccessAction, object: Place) -> Result<(), SqlError> {
        if self.is_sysadmin() {
            return Ok(());
        }
        self.allow_need(&AccessNeed { action, object, columns: Vec::new(), parent: None, synonym: None })
    }

    /// Whether the user has a permission on an object itself, chains apart: 229 if not.
    pub(crate) fn allow_object(&self, name: &'static str, object: Place) -> Result<(), SqlError> {
        if self.is_sysadmin() {
            return Ok(());
        }
        let judge = self.judge(object.0)?;
        if judge.allows(self.securable_of(object), name) { Ok(()) } else { Err(self.denied(&judge, name, object)) }
    }

    /// Whether the user has a permission on a database: 262 if not.
    pub(crate) fn allow_database(&self, name: &'static str, database: DatabaseId) -> Result<(), SqlError> {
        if self.is_sysadmin() || self.judge(database)?.allows(Securable::Database, name) {
            return Ok(());
        }
        Err(message(262, &[&name, &self.storage_of(database)?.name()]))
    }
}
