//! Which permissions there are, on what, and which of them cover which others.
//!
//! ```text
//! column ─► object, type ─► schema ─┐
//!                      user, role ──┴► database ─┐
//!                            login, server role ─┴► server
//! ```
//! A permission is had where it was granted, where one that covers it on the same thing was, or where one that covers it on
//! the thing around was: the table of `sys.fn_builtin_permissions`, as far as there is something to permit.
//!
//! Invariant: every name in the table's last two columns is a row of it (a test goes through them). It knows no principal and
//! decides nothing.

use thawdb_catalog::ObjectKind;

/// What a permission is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // each is the thing of its name
pub(crate) enum Kind {
    Server,
    Login,
    ServerRole,
    Database,
    Schema,
    Object,
    Type,
    User,
    Role,
}

impl Kind {
    /// `class` of the permission views.
    pub(crate) fn class(self) -> u8 {
        match self {
            Self::Server => 100,
            Self::Login | Self::ServerRole => 101,
            Self::Database => 0,
            Self::Object => 1,
            Self::Schema => 3,
            Self::User | Self::Role => 4,
            Self::Type => 6,
        }
    }

    /// `class_desc` of the permission views.
    pub(crate) fn class_name(self) -> &'static str {
        match self {
            Self::Server => "SERVER",
            Self::Login | Self::ServerRole => "SERVER_PRINCIPAL",
            Self::Database => "DATABASE",
            Self::Object => "OBJECT_OR_COLUMN",
            Self::Schema => "SCHEMA",
            Self::User | Self::Role => "DATABASE_PRINCIPAL",
            Self::Type => "TYPE",
        }
    }

    /// What it is in.
    pub(crate) fn around(self) -> Option<Self> {
        match self {
            Self::Server => None,
            Self::Login | Self::ServerRole | Self::Database => Some(Self::Server),
            Self::Schema | Self::User | Self::Role => Some(Self::Database),
            Self::Object | Self::Type => Some(Self::Schema),
        }
    }

    /// Whether it is of the instance and not of a database.
    pub(crate) fn is_of_server(self) -> bool {
        matches!(self, Self::Server | Self::Login | Self::ServerRole)
    }
}

/// A permission.
#[derive(Debug)]
pub(crate) struct Permission {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    code: &'static str,
    /// What covers it on the same thing; empty for nothing.
    pub(crate) covered_by: &'static str,
    /// What covers it on the thing around; empty for nothing.
    pub(crate) covered_around: &'static str,
}

impl Permission {
    /// Its code, filled up with blanks.
    pub(crate) fn code(&self) -> [u8; 4] {
        let mut code = [b' '; 4];
        code[..self.code.len()].copy_from_slice(self.code.as_bytes());
        code
    }
}

const fn row(kind: Kind, name: &'static str, code: &'static str, covered_by: &'static str, covered_around: &'static str) -> Permission {
    Permission { kind, name, code, covered_by, covered_around }
}

use Kind::{Database as D, Login as L, Object as O, Role as R, Schema as C, Server as S, ServerRole as G, Type as T, User as U};

/// All of them.
pub(crate) static PERMISSIONS: &[Permission] = &[
    row(S, "CONTROL SERVER", "CL", "", ""),
    row(S, "CONNECT SQL", "COSQ", "CONTROL SERVER", ""),
    row(S, "SHUTDOWN", "SHDN", "CONTROL SERVER", ""),
    row(S, "ALTER ANY DATABASE", "ALDB", "CONTROL SERVER", ""),
    row(S, "CREATE ANY DATABASE", "CRDB", "ALTER ANY DATABASE", ""),
    row(S, "VIEW ANY DATABASE", "VWDB", "ALTER ANY DATABASE", ""),
    row(S, "ALTER ANY LOGIN", "ALLG", "CONTROL SERVER", ""),
    row(S, "CREATE LOGIN", "CRLG", "ALTER ANY LOGIN", ""),
    row(S, "ALTER ANY CREDENTIAL", "ALCD", "CONTROL SERVER", ""),
    row(S, "ALTER ANY ENDPOINT", "ALHE", "CONTROL SERVER", ""),
    row(S, "ALTER ANY LINKED SERVER", "ALLS", "CONTROL SERVER", ""),
    row(S, "ALTER ANY CONNECTION", "ALCO", "CONTROL SERVER", ""),
    row(S, "ALTER RESOURCES", "ALRS", "CONTROL SERVER", ""),
    row(S, "ALTER SETTINGS", "ALST", "CONTROL SERVER", ""),
    row(S, "ALTER TRACE", "ALTR", "CONTROL SERVER", ""),
    row(S, "ALTER ANY SERVER ROLE", "ALSR", "CONTROL SERVER", ""),
    row(S, "CREATE SERVER ROLE", "CRSR", "ALTER ANY SERVER ROLE", ""),
    row(S, "ALTER ANY EVENT SESSION", "AAES", "CONTROL SERVER", ""),
    row(S, "ADMINISTER BULK OPERATIONS", "ADBO", "CONTROL SERVER", ""),
    row(S, "AUTHENTICATE SERVER", "AUTH", "CONTROL SERVER", ""),
    row(S, "ALTER SERVER STATE", "ALSS", "CONTROL SERVER", ""),
    row(S, "VIEW SERVER STATE", "VWSS", "ALTER SERVER STATE", ""),
    row(S, "VIEW SERVER PERFORMANCE STATE", "VSPS", "VIEW SERVER STATE", ""),
    row(S, "VIEW SERVER SECURITY STATE", "VSSS", "VIEW SERVER STATE", ""),
    row(S, "VIEW ANY DEFINITION", "VWAD", "CONTROL SERVER", ""),
    row(S, "VIEW ANY SECURITY DEFINITION", "VASD", "VIEW ANY DEFINITION", ""),
    row(S, "CONNECT ANY DATABASE", "CADB", "CONTROL SERVER", ""),
    row(S, "IMPERSONATE ANY LOGIN", "IAL", "CONTROL SERVER", ""),
    row(S, "SELECT ALL USER SECURABLES", "SUS", "CONTROL SERVER", ""),
    row(L, "CONTROL", "CL", "", "CONTROL SERVER"),
    row(L, "IMPERSONATE", "IM", "CONTROL", "IMPERSONATE ANY LOGIN"),
    row(L, "VIEW DEFINITION", "VW", "CONTROL", "VIEW ANY SECURITY DEFINITION"),
    row(L, "ALTER", "AL", "CONTROL", "ALTER ANY LOGIN"),
    row(G, "CONTROL", "CL", "", "CONTROL SERVER"),
    row(G, "VIEW DEFINITION", "VW", "CONTROL", "VIEW ANY SECURITY DEFINITION"),
    row(G, "TAKE OWNERSHIP", "TO", "CONTROL", ""),
    row(G, "ALTER", "AL", "CONTROL", "ALTER ANY SERVER ROLE"),
    row(D, "CONTROL", "CL", "", "CONTROL SERVER"),
    row(D, "ALTER", "AL", "CONTROL", "ALTER ANY DATABASE"),
    row(D, "CONNECT", "CO", "CONTROL", "CONNECT ANY DATABASE"),
    row(D, "CREATE TABLE", "CRTB", "ALTER", ""),
    row(D, "CREATE VIEW", "CRVW", "ALTER", ""),
    row(D, "CREATE PROCEDURE", "CRPR", "ALTER", ""),
    row(D, "CREATE FUNCTION", "CRFN", "ALTER", ""),
    row(D, "CREATE RULE", "CRRU", "ALTER", ""),
    row(D, "CREATE DEFAULT", "CRDF", "ALTER", ""),
    row(D, "CREATE TYPE", "CRTY", "ALTER", ""),
    row(D, "CREATE SYNONYM", "CRSN", "ALTER", ""),
    row(D, "CREATE ASSEMBLY", "CRAS", "ALTER", ""),
    row(D, "CREATE AGGREGATE", "CRAG", "ALTER", ""),
    row(D, "CREATE XML SCHEMA COLLECTION", "CRXS", "ALTER", ""),
    row(D, "CREATE DATABASE", "CRDB", "CONTROL", "CREATE ANY DATABASE"),
    row(D, "ALTER ANY SCHEMA", "ALSM", "ALTER", ""),
    row(D, "CREATE SCHEMA", "CRSM", "ALTER ANY SCHEMA", ""),
    row(D, "ALTER ANY USER", "ALUS", "ALTER", ""),
    row(D, "CREATE USER", "CUSR", "ALTER ANY USER", ""),
    row(D, "ALTER ANY ROLE", "ALRL", "ALTER", ""),
    row(D, "CREATE ROLE", "CRRL", "ALTER ANY ROLE", ""),
    row(D, "ALTER ANY APPLICATION ROLE", "ALAR", "ALTER", ""),
    row(D, "ALTER ANY DATASPACE", "ALDS", "ALTER", ""),
    row(D, "ALTER ANY DATABASE DDL TRIGGER", "ALTG", "ALTER", ""),
    row(D, "ALTER ANY DATABASE SCOPED CONFIGURATION", "ALDC", "CONTROL", "ALTER SERVER STATE"),
    row(D, "BACKUP DATABASE", "BADB", "CONTROL", ""),
    row(D, "BACKUP LOG", "BALO", "CONTROL", ""),
    row(D, "CHECKPOINT", "CP", "CONTROL", ""),
    row(D, "SHOWPLAN", "SPLN", "ALTER", "ALTER TRACE"),
    row(D, "VIEW DATABASE STATE", "VWDS", "CONTROL", "VIEW SERVER STATE"),
    row(D, "VIEW DATABASE PERFORMANCE STATE", "VDP", "VIEW DATABASE STATE", "VIEW SERVER PERFORMANCE STATE"),
    row(D, "VIEW DEFINITION", "VW", "CONTROL", "VIEW ANY DEFINITION"),
    row(D, "TAKE OWNERSHIP", "TO", "CONTROL", ""),
    row(D, "SELECT", "SL", "CONTROL", "SELECT ALL USER SECURABLES"),
    row(D, "INSERT", "IN", "CONTROL", ""),
    row(D, "UPDATE", "UP", "CONTROL", ""),
    row(D, "DELETE", "DL", "CONTROL", ""),
    row(D, "REFERENCES", "RF", "CONTROL", ""),
    row(D, "EXECUTE", "EX", "CONTROL", ""),
    row(C, "CONTROL", "CL", "", "CONTROL"),
    row(C, "ALTER", "AL", "CONTROL", "ALTER ANY SCHEMA"),
    row(C, "CREATE SEQUENCE", "CRSO", "ALTER", ""),
    row(C, "TAKE OWNERSHIP", "TO", "CONTROL", "CONTROL"),
    row(C, "VIEW DEFINITION", "VW", "CONTROL", "VIEW DEFINITION"),
    row(C, "SELECT", "SL", "CONTROL", "SELECT"),
    row(C, "INSERT", "IN", "CONTROL", "INSERT"),
    row(C, "UPDATE", "UP", "CONTROL", "UPDATE"),
    row(C, "DELETE", "DL", "CONTROL", "DELETE"),
    row(C, "REFERENCES", "RF", "CONTROL", "REFERENCES"),
    row(C, "EXECUTE", "EX", "CONTROL", "EXECUTE"),
    row(O, "CONTROL", "CL", "", "CONTROL"),
    row(O, "ALTER", "AL", "CONTROL", "ALTER"),
    row(O, "TAKE OWNERSHIP", "TO", "CONTROL", "CONTROL"),
    row(O, "VIEW DEFINITION", "VW", "CONTROL", "VIEW DEFINITION"),
    row(O, "SELECT", "SL", "CONTROL", "SELECT"),
    row(O, "INSERT", "IN", "CONTROL", "INSERT"),
    row(O, "UPDATE", "UP", "CONTROL", "UPDATE"),
    row(O, "DELETE", "DL", "CONTROL", "DELETE"),
    row(O, "REFERENCES", "RF", "CONTROL", "REFERENCES"),
    row(O, "EXECUTE", "EX", "CONTROL", "EXECUTE"),
    row(T, "CONTROL", "CL", "", "CONTROL"),
    row(T, "TAKE OWNERSHIP", "TO", "CONTROL", "CONTROL"),
    row(T, "VIEW DEFINITION", "VW", "CONTROL", "VIEW DEFINITION"),
    row(T, "REFERENCES", "RF", "CONTROL", "REFERENCES"),
    row(T, "EXECUTE", "EX", "CONTROL", "EXECUTE"),
    row(U, "CONTROL", "CL", "", "CONTROL"),
    row(U, "IMPERSONATE", "IM", "CONTROL", ""),
    row(U, "ALTER", "AL", "CONTROL", "ALTER ANY USER"),
    row(U, "VIEW DEFINITION", "VW", "CONTROL", "VIEW DEFINITION"),
    row(R, "CONTROL", "CL", "", "CONTROL"),
    row(R, "ALTER", "AL", "CONTROL", "ALTER ANY ROLE"),
    row(R, "TAKE OWNERSHIP", "TO", "CONTROL", "CONTROL"),
    row(R, "VIEW DEFINITION", "VW", "CONTROL", "VIEW DEFINITION"),
];

/// The permission of a name in upper case on a kind of thing.
pub(crate) fn find(kind: Kind, name: &str) -> Option<&'static Permission> {
    let name = match name {
        "EXEC" => "EXECUTE",
        "CREATE PROC" => "CREATE PROCEDURE",
        other => other,
    };
    PERMISSIONS.iter().find(|p| p.kind == kind && p.name == name)
}

/// The permission of a code on a class of things.
pub(crate) fn by_code(class: u8, code: [u8; 4]) -> Option<&'static Permission> {
    PERMISSIONS.iter().find(|p| p.kind.class() == class && p.code() == code)
}

/// A permission and everything that covers it, on the same thing and on those around.
pub(crate) fn covering(permission: &'static Permission) -> Vec<&'static Permission> {
    let mut all = vec![permission];
    let mut at = 0;
    while let Some(next) = all.get(at).copied() {
        let around = next.kind.around().and_then(|kind| find(kind, next.covered_around));
        for more in [find(next.kind, next.covered_by), around].into_iter().flatten() {
            if !all.iter().any(|known| std::ptr::eq(*known, more)) {
                all.push(more);
            }
        }
        at += 1;
    }
    all
}

/// Whether a permission can be had on an object: 4606 if not.
pub(crate) fn fits(permission: &Permission, object: Option<ObjectKind>) -> bool {
    let data = matches!(permission.name, "SELECT" | "INSERT" | "UPDATE" | "DELETE");
    match object {
        // A table.
        None => permission.name != "EXECUTE",
        Some(ObjectKind::View) => permission.name != "EXECUTE",
        Some(ObjectKind::Procedure) => !data && permission.name != "REFERENCES",
        Some(ObjectKind::ScalarFunction) => !data,
        Some(ObjectKind::InlineFunction | ObjectKind::TableFunction) => permission.name != "EXECUTE",
        Some(ObjectKind::Sequence) => permission.name == "UPDATE" || (!data && permission.name != "EXECUTE"),
        Some(ObjectKind::Synonym) => permission.name != "REFERENCES" && permission.name != "ALTER",
        Some(ObjectKind::Trigger) => false,
        Some(ObjectKind::TableType | ObjectKind::AliasType) => true,
    }
}

/// What GRANT ALL means for a table, view, function or procedure.
pub(crate) fn all_of(object: Option<ObjectKind>) -> &'static [&'static str] {
    match object {
        None | Some(ObjectKind::View | ObjectKind::InlineFunction | ObjectKind::TableFunction) => {
            &["SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES"]
        }
        Some(ObjectKind::ScalarFunction) => &["EXECUTE", "REFERENCES"],
        Some(ObjectKind::Procedure) => &["EXECUTE"],
        _ => &[],
    }
}

/// What GRANT ALL means for a database.
pub(crate) const ALL_OF_DATABASE: &[&str] = &[
    "BACKUP DATABASE",
    "BACKUP LOG",
    "CREATE DEFAULT",
    "CREATE FUNCTION",
    "CREATE PROCEDURE",
    "CREATE RULE",
    "CREATE TABLE",
    "CREATE VIEW",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_covers_is_a_permission() {
        for permission in PERMISSIONS {
            assert!(permission.covered_by.is_empty() || find(permission.kind, permission.covered_by).is_some(), "{permission:?}");
            let around = permission.kind.around();
            assert!(permission.covered_around.is_empty() || around.is_some_and(|kind| find(kind, permission.covered_around).is_some()));
            assert!(std::ptr::eq(find(permission.kind, permission.name).expect("listed"), permission), "{permission:?} is there twice");
        }
    }

    #[test]
    fn covering_reaches_to_the_server() {
        let names = |kind, name| {
            let all = covering(find(kind, name).expect("listed"));
            all.iter().map(|p| (p.kind, p.name)).collect::<Vec<_>>()
        };
        let select = names(O, "SELECT");
        for expected in [(O, "CONTROL"), (C, "SELECT"), (C, "CONTROL"), (D, "SELECT"), (D, "CONTROL"), (S, "CONTROL SERVER")] {
            assert!(select.contains(&expected), "{expected:?}");
        }
        assert!(!select.contains(&(O, "ALTER")) && !select.contains(&(D, "ALTER")));
        assert!(names(D, "CREATE TABLE").contains(&(S, "ALTER ANY DATABASE")));
    }
}
