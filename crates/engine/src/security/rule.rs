//! The rule: whether somebody has a permission on something. Everything that asks, asks here.
//!
//! ```text
//! sysadmin, dbo ─► yes
//! the permission and all that cover it, on the thing and on those around (permissions::covering)
//!     a DENY to any of the principals ─► no          but: GRANT on a column outweighs DENY on its table
//!     a GRANT to any, ownership, a fixed role ─► yes
//! nothing said ─► no
//! ```
//! Invariants: 1. DENY is looked for in everything before a GRANT counts (`Judge::decide`). 2. An owner has CONTROL of what it
//! owns, a schema's owner of what is in it unless that has an owner of its own.
//!
//! It changes nothing and takes no lock beyond those of the snapshots it is given.

use crate::security::permissions::{self, Kind, Permission};
use crate::security::token::{DATABASE_ROLES, SERVER_ROLES, ServerToken, UserToken};
use std::sync::Arc;
use thawdb_catalog::{DatabaseCatalog, Grant, GrantState, ObjectKind};

/// Something that permissions are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Securable {
    Server,
    Login(i32),
    ServerRole(i32),
    Database,
    Schema(i32),
    Object(i32),
    Column(i32, i32),
    Type(i32),
    User(i32),
    Role(i32),
}

impl Securable {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Server => Kind::Server,
            Self::Login(_) => Kind::Login,
            Self::ServerRole(_) => Kind::ServerRole,
            Self::Database => Kind::Database,
            Self::Schema(_) => Kind::Schema,
            Self::Object(_) | Self::Column(..) => Kind::Object,
            Self::Type(_) => Kind::Type,
            Self::User(_) => Kind::User,
            Self::Role(_) => Kind::Role,
        }
    }

    /// `major_id` of the permission views.
    pub(crate) fn major(self) -> i32 {
        match self {
            Self::Server | Self::Database => 0,
            Self::Login(id) | Self::ServerRole(id) | Self::Schema(id) | Self::Object(id) | Self::Column(id, _) => id,
            Self::Type(id) | Self::User(id) | Self::Role(id) => id,
        }
    }
}

/// What was said about a permission, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Granted,
    Denied,
    Unsaid,
}

/// The number of the schema an object is in.
pub(crate) fn schema_of_object(catalog: &DatabaseCatalog, id: i32) -> Option<i32> {
    if let Some(table) = catalog.tables.tables.get(&id) {
        return Some(table.schema.0);
    }
    if let Some(object) = catalog.objects.get(&id) {
        return Some(object.schema.0);
    }
    let constraint = catalog.constraints.get(&id)?;
    catalog.tables.tables.get(&constraint.table.0).map(|table| table.schema.0)
}

/// The principal who owns an object: its own owner, or its schema's. Triggers and constraints are their table's.
pub(crate) fn owner_of(catalog: &DatabaseCatalog, id: i32) -> Option<i32> {
    if let Some(parent) = catalog.objects.get(&id).and_then(|object| object.parent) {
        return owner_of(catalog, parent.0);
    }
    if let Some(owner) = catalog.security.object(id).owner {
        return Some(owner);
    }
    let schema = schema_of_object(catalog, id)?;
    catalog.schemas.get(&schema).map(|schema| schema.owner)
}

/// Who asks, and the snapshots in which it is looked up.
pub(crate) struct Judge {
    pub(crate) server: Arc<ServerToken>,
    /// The user, with the catalog of the database asked about; none outside databases.
    pub(crate) user: Option<(Arc<UserToken>, Arc<DatabaseCatalog>)>,
}

impl Judge {
    /// Whether it has the permission of this name; a name that there is not is had by nobody but those who may everything.
    pub(crate) fn allows(&self, securable: Securable, permission: &str) -> bool {
        self.verdict(securable, permission) == Verdict::Granted
    }

    /// The same, told apart by whether it was denied.
    pub(crate) fn verdict(&self, securable: Securable, permission: &str) -> Verdict {
        if self.is_unlimited(securable.kind()) {
            return Verdict::Granted;
        }
        match permissions::find(securable.kind(), permission) {
            Some(permission) => self.decide(securable, permission),
            None => Verdict::Unsaid,
        }
    }

    /// Whether there is nothing to ask.
    pub(crate) fn is_unlimited(&self, kind: Kind) -> bool {
        self.server.sysadmin || (!kind.is_of_server() && self.user.as_ref().is_some_and(|(user, _)| user.is_dbo()))
    }

    fn decide(&self, securable: Securable, permission: &'static Permission) -> Verdict {
        if let Securable::Column(object, column) = securable {
            let own = |grant: &&Grant| {
                grant.class == 1 && grant.major == object && grant.minor == column && grant.permission == permission.code()
            };
            let mut granted = false;
            for grant in self.said().filter(own) {
                if grant.state == GrantState::Deny {
                    return Verdict::Denied;
                }
                granted = true;
            }
            // A grant on the column outweighs a denial on the table: so it was before there were schemas, and so it stays.
            return if granted { Verdict::Granted } else { self.decide(Securable::Object(object), permission) };
        }
        let mut granted = false;
        for covering in permissions::covering(permission) {
            match self.said_of(securable, covering) {
                Verdict::Denied => return Verdict::Denied,
                Verdict::Granted => granted = true,
                Verdict::Unsaid => {}
            }
        }
        if granted { Verdict::Granted } else { Verdict::Unsaid }
    }

    /// All that was granted and denied to the user's principals.
    fn said(&self) -> impl Iterator<Item = &Grant> {
        let of_user = self.user.iter().flat_map(|(user, catalog)| user.principals.iter().flat_map(|id| catalog.security.grants_of(*id)));
        let of_server = self.server.principals.iter().flat_map(|id| self.server.security.grants_of(*id));
        of_server.filter(|grant| grant.class >= 100).chain(of_user.filter(|grant| grant.class < 100))
    }

    /// What was said of one permission of a covering chain.
    fn said_of(&self, securable: Securable, permission: &'static Permission) -> Verdict {
        let Some(major) = self.major_at(securable, permission.kind) else { return Verdict::Unsaid };
        let (class, code) = (permission.kind.class(), permission.code());
        let mut verdict = Verdict::Unsaid;
        for grant in self.said().filter(|g| g.class == class && g.major == major && g.minor == 0 && g.permission == code) {
            if grant.state == GrantState::Deny {
                return Verdict::Denied;
            }
            verdict = Verdict::Granted;
        }
        match self.implied(permission, major) {
            Verdict::Unsaid => verdict,
            Verdict::Denied => Verdict::Denied,
            Verdict::Granted => Verdict::Granted,
        }
    }

    /// Number of the thing of a kind that a securable is or lies in.
    fn major_at(&self, securable: Securable, kind: Kind) -> Option<i32> {
        if securable.kind() == kind {
            return Some(securable.major());
        }
        match kind {
            Kind::Server | Kind::Database => Some(0),
            Kind::Schema => {
                let (_, catalog) = self.user.as_ref()?;
                schema_of_object(catalog, securable.major())
            }
            _ => None,
        }
    }

    /// What fixed roles and ownership give.
    fn implied(&self, permission: &Permission, major: i32) -> Verdict {
        if permission.kind == Kind::Server {
            let fixed = SERVER_ROLES.iter().filter(|(role, ..)| self.server.principals.contains(role));
            let given = fixed.flat_map(|(.., names)| names.iter()).any(|name| *name == permission.name);
            return if given { Verdict::Granted } else { Verdict::Unsaid };
        }
        if permission.kind == Kind::Database {
            let Some((user, _)) = &self.user else { return Verdict::Unsaid };
            let says = DATABASE_ROLES.iter().filter(|(role, _, names)| user.principals.contains(role) && names.contains(&permission.name));
            return says.fold(Verdict::Unsaid, |so_far, (_, denied, _)| match (so_far, denied) {
                (Verdict::Denied, _) | (_, true) => Verdict::Denied,
                _ => Verdict::Granted,
            });
        }
        if permission.name == "CONTROL" && self.owns(permission.kind, major) { Verdict::Granted } else { Verdict::Unsaid }
    }

    /// Whether one of the principals owns the thing.
    pub(crate) fn owns(&self, kind: Kind, major: i32) -> bool {
        let Some((user, catalog)) = &self.user else { return false };
        let owner = match kind {
            Kind::Object | Kind::Type => owner_of(catalog, major),
            Kind::Schema => catalog.schemas.get(&major).map(|schema| schema.owner),
            Kind::Role => catalog.users.get(&major).map(|role| role.owner),
            _ => None,
        };
        owner.is_some_and(|owner| user.principals.contains(&owner))
    }

    /// Whether anything was denied to one of the principals.
    pub(crate) fn is_denied_anything(&self) -> bool {
        self.said().any(|grant| grant.state == GrantState::Deny)
    }

    /// Whether the user has a permission on some column of an object.
    pub(crate) fn has_column(&self, object: i32) -> bool {
        self.said().any(|grant| grant.class == 1 && grant.major == object && grant.minor != 0 && grant.state != GrantState::Deny)
    }

    /// Whether a column of the object was spoken of for a permission: then columns are asked about one by one.
    pub(crate) fn speaks_of_columns(&self, object: i32, permission: &str) -> bool {
        let Some(permission) = permissions::find(Kind::Object, permission) else { return false };
        self.said().any(|grant| grant.class == 1 && grant.major == object && grant.minor != 0 && grant.permission == permission.code())
    }

    /// Whether the user may know that an object is there: it has some permission on it or owns it, and VIEW DEFINITION is not denied.
    pub(crate) fn sees(&self, object: i32, kind: Option<ObjectKind>) -> bool {
        let securable = if kind.is_some_and(ObjectKind::is_type) { Securable::Type(object) } else { Securable::Object(object) };
        match self.verdict(securable, "VIEW DEFINITION") {
            Verdict::Granted => return true,
            Verdict::Denied => return false,
            Verdict::Unsaid => {}
        }
        let any = permissions::PERMISSIONS.iter().filter(|p| p.kind == securable.kind() && permissions::fits(p, kind));
        self.has_column(object) || any.into_iter().any(|p| self.allows(securable, p.name))
    }
}
