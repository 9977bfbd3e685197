//! As whom a session acts: its login, and whom EXECUTE AS put on top of that; tokens kept while nothing changes.
//!
//! ```text
//! login ─► [EXECUTE AS ...] ─► [EXECUTE AS of a module] ─► the one that counts
//!                                └ goes with its scope (`run_scope`)
//! ```
//! A statement asks for the token of the one on top. It is kept in the session until somebody, anywhere in the process, changes
//! logins, users, roles, permissions or owners: then one counter rises ([`changed`]), and whoever looks at it next looks up anew.
//! What the session itself has changed and not committed is looked up each time.
//!
//! Invariants: 1. the bottom of the stack is the login and stays. 2. `unlimited` is the counter's value under which the one on top
//! was found to be in sysadmin, or 0 ([`Contexts::forget`] whenever the stack changes).
//!
//! Lock: SECURITY_TOKENS (rank 5), for a look or a change of the session's own few tokens.

use crate::messages::message;
use crate::security::rule::Judge;
use crate::security::token::{ServerToken, UserToken, Who, server_token, user_token};
use crate::session::state::SessionState;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_catalog::{DatabaseCatalog, DatabaseId, SchemaId};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_types::SqlError;

static SECURITY_TOKENS: LockClass = LockClass::new("SECURITY_TOKENS", 5);

static EPOCH: AtomicU64 = AtomicU64::new(1);

/// Tokens kept a session: of itself and of those its modules run as.
const KEPT_MAX: usize = 16;

/// Somebody's rights may be others from now on.
pub(crate) fn changed() {
    // Release: who sees the new number sees what was published before it.
    EPOCH.fetch_add(1, Ordering::Release);
}

#[inline]
fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// How one came onto the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Logged in.
    Login,
    /// EXECUTE AS, in the database it was said in.
    Statement(DatabaseId),
    /// WITH EXECUTE AS of a module.
    Module,
}

/// Somebody on the stack.
#[derive(Debug, Clone)]
pub(crate) struct Acting {
    pub(crate) who: Who,
    pub(crate) origin: Origin,
    /// WITH NO REVERT.
    pub(crate) stays: bool,
    /// WITH COOKIE.
    pub(crate) cookie: Option<Vec<u8>>,
}

/// The catalog as somebody sees it, and what it was made of.
#[derive(Debug)]
struct Seen {
    made_of: (u64, u64, u64),
    catalog: Arc<DatabaseCatalog>,
}

#[derive(Debug, Default)]
struct Kept {
    epoch: u64,
    server: Option<Arc<ServerToken>>,
    users: BTreeMap<i32, Option<Arc<UserToken>>>,
    seen: BTreeMap<i32, Seen>,
}

/// The stack, and what was looked up for the one on top.
#[derive(Debug)]
pub(crate) struct Contexts {
    stack: Vec<Acting>,
    unlimited: AtomicU64,
    /// By whom it was looked up for: modules that run as somebody come and go.
    kept: Mutex<BTreeMap<Who, Kept>>,
}

impl Contexts {
    /// Those of a session of this login.
    pub(crate) fn of(login: i32) -> Self {
        let bottom = Acting { who: Who::Login(login), origin: Origin::Login, stays: true, cookie: None };
        Self { stack: vec![bottom], unlimited: AtomicU64::new(0), kept: Mutex::new(&SECURITY_TOKENS, BTreeMap::new()) }
    }

    fn forget(&mut self) {
        self.unlimited.store(0, Ordering::Relaxed);
    }

    pub(crate) fn top(&self) -> &Acting {
        self.stack.last().expect("the login stays")
    }

    pub(crate) fn bottom(&self) -> Who {
        self.stack[0].who
    }

    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    pub(crate) fn push(&mut self, acting: Acting) {
        self.stack.push(acting);
        self.forget();
    }

    /// Goes back to so many.
    pub(crate) fn truncate(&mut self, depth: usize) {
        if self.stack.len() > depth.max(1) {
            self.stack.truncate(depth.max(1));
            self.forget();
        }
    }
}

impl SessionState {
    /// Whether the session may do everything everywhere; one comparison while nothing changes.
    #[inline]
    pub(crate) fn is_sysadmin(&self) -> bool {
        self.contexts.unlimited.load(Ordering::Relaxed) == epoch() || self.look_up_sysadmin()
    }

    #[cold]
    fn look_up_sysadmin(&self) -> bool {
        let now = epoch();
        let sysadmin = self.server_token().sysadmin;
        if sysadmin {
            self.contexts.unlimited.store(now, Ordering::Relaxed);
        }
        sysadmin
    }

    fn with_kept<R>(&self, use_it: impl FnOnce(&mut Kept) -> R) -> R {
        let (mut kept, now, who) = (self.contexts.kept.lock(), epoch(), self.contexts.top().who);
        if kept.len() >= KEPT_MAX && !kept.contains_key(&who) {
            kept.clear();
        }
        let own = kept.entry(who).or_default();
        if own.epoch != now {
            *own = Kept { epoch: now, ..Kept::default() };
        }
        use_it(own)
    }

    /// The login that counts, with its roles.
    pub(crate) fn server_token(&self) -> Arc<ServerToken> {
        if let Some(known) = self.with_kept(|kept| kept.server.clone()) {
            return known;
        }
        let before = epoch();
        // A login dropped meanwhile may do nothing more, whatever it was.
        let nobody = || ServerToken {
            login: 0,
            name: String::new(),
            sid: Vec::new(),
            sysadmin: false,
            principals: std::collections::BTreeSet::new(),
            security: Arc::default(),
        };
        let token = Arc::new(server_token(self, self.contexts.top().who).unwrap_or_else(nobody));
        self.with_kept(|kept| kept.server = (kept.epoch == before).then(|| token.clone()));
        token
    }

    /// The user that counts in a database; `None` if it is nobody there.
    pub(crate) fn user_token(&self, database: DatabaseId) -> Option<Arc<UserToken>> {
        let fresh = self.transactions.has_own_definitions(database.0);
        if !fresh && let Some(known) = self.with_kept(|kept| kept.users.get(&database.0).cloned()) {
            return known;
        }
        let (before, server) = (epoch(), self.server_token());
        let token = user_token(self, self.contexts.top().who, &server, database).map(Arc::new);
        if !fresh {
            self.with_kept(|kept| {
                if kept.epoch == before {
                    drop(kept.users.insert(database.0, token.clone()))
                }
            });
        }
        token
    }

    /// Who decides about what is in a database: 916 if the session is nobody there.
    pub(crate) fn judge(&self, database: DatabaseId) -> Result<Judge, SqlError> {
        let server = self.server_token();
        let catalog = self.definitions(database).ok_or_else(|| message(911, &[&database.0]))?;
        let user = match self.user_token(database) {
            Some(user) => Some((user, catalog)),
            None if server.sysadmin => None,
            None => return Err(self.not_let_in(database)),
        };
        Ok(Judge { server, user })
    }

    /// Who decides about the instance.
    pub(crate) fn server_judge(&self) -> Judge {
        Judge { server: self.server_token(), user: None }
    }

    /// 916.
    pub(crate) fn not_let_in(&self, database: DatabaseId) -> SqlError {
        let name = self.engine.database(database).map_or_else(String::new, |open| open.name());
        message(916, &[&self.server_token().name, &name])
    }

    /// Whether the session may use a database: 916 if not.
    pub(crate) fn check_entry(&self, database: DatabaseId) -> Result<(), SqlError> {
        if database == self.database.id || database.0 < 0 || self.is_sysadmin() || self.user_token(database).is_some() {
            return Ok(());
        }
        Err(self.not_let_in(database))
    }

    /// The schema in which names without one are looked for first: that of the running module, or the user's.
    pub(crate) fn default_schema(&self) -> (SchemaId, Arc<str>) {
        if let Some(schema) = self.frames.last().and_then(|frame| frame.schema.clone()) {
            return schema;
        }
        self.users_schema()
    }

    /// The user's default schema in the current database.
    pub(crate) fn users_schema(&self) -> (SchemaId, Arc<str>) {
        if self.is_sysadmin() {
            return (SchemaId(DBO_SCHEMA), Arc::from("dbo"));
        }
        let own = self.user_token(self.database.id).map(|user| user.default_schema.clone());
        own.unwrap_or_else(|| (SchemaId(DBO_SCHEMA), Arc::from("dbo")))
    }

    /// The number of [`SessionState::default_schema`], which decides with others what a text means.
    #[inline]
    pub(crate) fn default_schema_id(&self) -> SchemaId {
        match self.frames.last().and_then(|frame| frame.schema.as_ref()) {
            Some((id, _)) => *id,
            None if self.is_sysadmin() => SchemaId(DBO_SCHEMA),
            None => self.users_schema().0,
        }
    }

    /// The catalog of a database as the one who acts may see it.
    pub(crate) fn visible(&self, database: DatabaseId) -> Option<Arc<DatabaseCatalog>> {
        let catalog = self.definitions(database)?;
        if self.is_sysadmin() {
            return Some(catalog);
        }
        let judge = self.judge(database).ok()?;
        let user = judge.user.as_ref().map_or(0, |(user, _)| u64::from(user.id));
        let made_of = (catalog.tables.version, catalog.security.version, user);
        let known =
            self.with_kept(|kept| kept.seen.get(&database.0).filter(|seen| seen.made_of == made_of).map(|seen| seen.catalog.clone()));
        if known.is_some() {
            return known;
        }
        let seen = crate::security::visibility::seen_by(&judge, &catalog);
        self.with_kept(|kept| drop(kept.seen.insert(database.0, Seen { made_of, catalog: seen.clone() })));
        Some(seen)
    }
}

/// Number of the schema dbo.
const DBO_SCHEMA: i32 = 1;
