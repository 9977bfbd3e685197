//! Logins, users, roles, permissions. See [`super`] for the rules of the tree.
#![allow(missing_docs)] // see the module text of `ast`

use super::{Expr, Ident, ObjectName, OptionItem};

/// `CREATE | ALTER LOGIN name {WITH options | FROM source | ENABLE | DISABLE | ADD | DROP CREDENTIAL c}`
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    pub name: Ident,
    /// `WINDOWS`, `EXTERNAL PROVIDER`, `CERTIFICATE c`, `ASYMMETRIC KEY k`: in upper case but for the name.
    pub from: Option<String>,
    pub password: Option<Password>,
    /// `ENABLE`, `DISABLE` of ALTER LOGIN.
    pub enable: Option<bool>,
    /// `SID`, `DEFAULT_DATABASE`, `DEFAULT_LANGUAGE`, `CHECK_EXPIRATION`, `CHECK_POLICY`, `CREDENTIAL`, `NAME`, `NO CREDENTIAL`.
    pub options: Vec<OptionItem>,
}

/// `PASSWORD = 'text' | 0xhash HASHED [MUST_CHANGE] [UNLOCK] [OLD_PASSWORD = 'text']`
#[derive(Clone, PartialEq)]
pub struct Password {
    pub value: Expr,
    pub hashed: bool,
    pub must_change: bool,
    pub unlock: bool,
    pub old: Option<String>,
}

impl std::fmt::Debug for Password {
    /// A tree printed into a log must not carry the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").field("hashed", &self.hashed).field("must_change", &self.must_change).finish_non_exhaustive()
    }
}

/// `CREATE USER name [{FOR | FROM} {LOGIN l | CERTIFICATE c | EXTERNAL PROVIDER} | WITHOUT LOGIN] [WITH options]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateUser {
    pub name: Ident,
    pub login: Option<Ident>,
    pub without_login: bool,
    /// Another source than a login, in upper case but for the name.
    pub from: Option<String>,
    pub password: Option<Password>,
    pub options: Vec<OptionItem>,
}

/// `ALTER USER name WITH options`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterUser {
    pub name: Ident,
    pub password: Option<Password>,
    /// `NAME`, `DEFAULT_SCHEMA`, `LOGIN`, `DEFAULT_LANGUAGE` ...
    pub options: Vec<OptionItem>,
}

/// `CREATE [SERVER | APPLICATION] ROLE name [AUTHORIZATION owner]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRole {
    pub kind: RoleKind,
    pub name: Ident,
    pub authorization: Option<Ident>,
    pub options: Vec<OptionItem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleKind {
    Database,
    Server,
    Application,
}

/// `ALTER [SERVER] ROLE name {ADD | DROP} MEMBER m | WITH NAME = n`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterRole {
    pub kind: RoleKind,
    pub name: Ident,
    pub action: AlterRoleAction,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlterRoleAction {
    AddMember(Ident),
    DropMember(Ident),
    Rename(Ident),
}

/// `ALTER AUTHORIZATION ON [class ::] object TO {principal | SCHEMA OWNER}`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterAuthorization {
    pub class: Option<String>,
    pub object: ObjectName,
    /// `None` is SCHEMA OWNER.
    pub owner: Option<Ident>,
}

/// `GRANT | DENY | REVOKE permissions [ON [class ::] securable] TO | FROM principals ...`
#[derive(Debug, Clone, PartialEq)]
pub struct Permission {
    pub action: PermissionAction,
    /// `REVOKE GRANT OPTION FOR`
    pub grant_option_for: bool,
    /// The words in upper case (`SELECT`, `VIEW SERVER STATE`, `ALL`) and the columns behind them.
    pub permissions: Vec<(String, Vec<Ident>)>,
    pub securable: Option<Securable>,
    pub principals: Vec<Ident>,
    pub with_grant_option: bool,
    pub cascade: bool,
    pub as_principal: Option<Ident>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionAction {
    Grant,
    Deny,
    Revoke,
}

/// `[class ::] name [(columns)]`
#[derive(Debug, Clone, PartialEq)]
pub struct Securable {
    /// `OBJECT`, `SCHEMA`, `DATABASE`, `LOGIN` ... in upper case.
    pub class: Option<String>,
    pub name: ObjectName,
    pub columns: Vec<Ident>,
}

/// `EXECUTE AS {CALLER | {USER | LOGIN} = name} [WITH NO REVERT | COOKIE INTO @v]`
#[derive(Debug, Clone, PartialEq)]
pub struct ExecuteAs {
    pub principal: ExecuteAsPrincipal,
    pub no_revert: bool,
    pub cookie: Option<super::Variable>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExecuteAsPrincipal {
    Caller,
    Login(Expr),
    User(Expr),
}
