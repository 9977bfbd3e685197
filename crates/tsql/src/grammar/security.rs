//! Logins, users, roles, permissions, impersonation.
//!
//! ```text
//! {CREATE | ALTER} LOGIN name {WITH PASSWORD = p [HASHED] [MUST_CHANGE] [UNLOCK] [OLD_PASSWORD = o], option, ...
//!                             | FROM source [WITH ...] | ENABLE | DISABLE | {ADD | DROP} CREDENTIAL c}
//! CREATE USER name [{FOR | FROM} {LOGIN l | source} | WITHOUT LOGIN] [WITH option, ...]
//! {CREATE | ALTER} [SERVER] ROLE name ...
//! {GRANT | DENY | REVOKE [GRANT OPTION FOR]} permission [(c, ...)], ... [ON [class ::] name [(c, ...)]] {TO | FROM} p, ...
//!        [WITH GRANT OPTION] [CASCADE] [AS p]
//! EXECUTE AS {CALLER | {USER | LOGIN} = v} [WITH {NO REVERT | COOKIE INTO @c}]        REVERT [WITH COOKIE = @c]
//! ALTER AUTHORIZATION ON [class ::] name TO {p | SCHEMA OWNER}
//! ```

use crate::ast::{
    AlterAuthorization, AlterRole, AlterRoleAction, AlterUser, CreateRole, CreateUser, ExecuteAs, ExecuteAsPrincipal, Ident, Login,
    OptionItem, OptionValue, Password, Permission, PermissionAction, RoleKind, Securable, StmtKind,
};
use crate::parser::{Parsed, Parser};
use crate::token::{Keyword as K, TokenKind};

/// Options whose value is a name, kept as it is written.
const NAMED: [&str; 5] = ["NAME", "DEFAULT_SCHEMA", "DEFAULT_DATABASE", "DEFAULT_LANGUAGE", "LOGIN"];

impl Parser<'_> {
    pub(crate) fn create_login(&mut self) -> Parsed<StmtKind> {
        self.login().map(|login| StmtKind::CreateLogin(Box::new(login)))
    }

    pub(crate) fn alter_login(&mut self) -> Parsed<StmtKind> {
        self.login().map(|login| StmtKind::AlterLogin(Box::new(login)))
    }

    fn login(&mut self) -> Parsed<Login> {
        let mut login = Login { name: self.ident()?, from: None, password: None, enable: None, options: Vec::new() };
        if self.at_word("ENABLE") || self.at_word("DISABLE") {
            login.enable = Some(self.any_word()? == "ENABLE");
            return Ok(login);
        }
        if self.at_keyword(K::Add) || self.at_keyword(K::Drop) {
            let mark = self.position;
            let verb = self.any_word()?;
            self.expect_word("CREDENTIAL")?;
            let value = OptionValue::Expr(self.bare_string()?);
            login.options.push(OptionItem { name: format!("{verb} CREDENTIAL"), value, span: self.span_since(mark) });
            return Ok(login);
        }
        if self.eat_keyword(K::From) {
            login.from = Some(self.principal_source()?);
        } else if !self.at_keyword(K::With) {
            return self.unexpected();
        }
        if self.eat_keyword(K::With) {
            (login.password, login.options) = self.principal_options()?;
        }
        Ok(login)
    }

    /// `WINDOWS`, `EXTERNAL PROVIDER`, `CERTIFICATE c`, `ASYMMETRIC KEY k`
    fn principal_source(&mut self) -> Parsed<String> {
        for (words, named) in
            [(&["WINDOWS"][..], false), (&["EXTERNAL", "PROVIDER"], false), (&["CERTIFICATE"], true), (&["ASYMMETRIC", "KEY"], true)]
        {
            if self.eat_words(words) {
                let source = words.join(" ");
                return if named { Ok(format!("{source} {}", self.ident()?.text)) } else { Ok(source) };
            }
        }
        self.unexpected()
    }

    /// The options behind WITH, the password among them.
    fn principal_options(&mut self) -> Parsed<(Option<Password>, Vec<OptionItem>)> {
        let mut password = None;
        let mut options = Vec::new();
        loop {
            let mark = self.position;
            if self.eat_word("PASSWORD") {
                self.expect(TokenKind::Equal)?;
                password = Some(self.password()?);
            } else if NAMED.iter().any(|name| self.at_word(name)) && self.kind_at(1) == TokenKind::Equal {
                let name = self.any_word()?;
                self.expect(TokenKind::Equal)?;
                let value = if self.at_string() { self.literal_or_variable()? } else { self.bare_string()? };
                options.push(OptionItem { name, value: OptionValue::Expr(value), span: self.span_since(mark) });
            } else if self.eat_words(&["NO", "CREDENTIAL"]) {
                options.push(OptionItem { name: "NO CREDENTIAL".to_owned(), value: OptionValue::None, span: self.span_since(mark) });
            } else {
                options.push(self.option_item(super::option::Style::Open)?);
            }
            if !self.eat(TokenKind::Comma) {
                return Ok((password, options));
            }
        }
    }

    fn password(&mut self) -> Parsed<Password> {
        let value = self.literal_or_variable()?;
        let mut password = Password { value, hashed: false, must_change: false, unlock: false, old: None };
        loop {
            if self.eat_word("HASHED") {
                password.hashed = true;
            } else if self.eat_word("MUST_CHANGE") {
                password.must_change = true;
            } else if self.eat_word("UNLOCK") {
                password.unlock = true;
            } else if self.eat_word("OLD_PASSWORD") {
                self.expect(TokenKind::Equal)?;
                password.old = Some(self.string()?);
            } else {
                return Ok(password);
            }
        }
    }

    pub(crate) fn create_user(&mut self) -> Parsed<StmtKind> {
        let mut user =
            CreateUser { name: self.ident()?, login: None, without_login: false, from: None, password: None, options: Vec::new() };
        if self.eat_words(&["WITHOUT", "LOGIN"]) {
            user.without_login = true;
        } else if self.eat_keyword(K::For) || self.eat_keyword(K::From) {
            if self.eat_word("LOGIN") {
                user.login = Some(self.ident()?);
            } else {
                user.from = Some(self.principal_source()?);
            }
        }
        if self.at_keyword(K::With) && self.kind_at(2) == TokenKind::Equal {
            self.advance();
            (user.password, user.options) = self.principal_options()?;
        }
        Ok(StmtKind::CreateUser(Box::new(user)))
    }

    pub(crate) fn alter_user(&mut self) -> Parsed<StmtKind> {
        let name = self.ident()?;
        self.expect_keyword(K::With)?;
        let (password, options) = self.principal_options()?;
        Ok(StmtKind::AlterUser(Box::new(AlterUser { name, password, options })))
    }

    pub(crate) fn create_role(&mut self, kind: RoleKind) -> Parsed<StmtKind> {
        let name = self.ident()?;
        let authorization = if self.eat_keyword(K::Authorization) { Some(self.ident()?) } else { None };
        let mut options = Vec::new();
        if kind == RoleKind::Application && self.eat_keyword(K::With) {
            options = self.comma_list(|p| p.option_item(super::option::Style::Open))?;
        }
        Ok(StmtKind::CreateRole(Box::new(CreateRole { kind, name, authorization, options })))
    }

    pub(crate) fn alter_role(&mut self, kind: RoleKind) -> Parsed<StmtKind> {
        let name = self.ident()?;
        let action = if self.eat_words(&["ADD", "MEMBER"]) {
            AlterRoleAction::AddMember(self.ident()?)
        } else if self.eat_words(&["DROP", "MEMBER"]) {
            AlterRoleAction::DropMember(self.ident()?)
        } else {
            self.expect_words(&["WITH", "NAME"])?;
            self.expect(TokenKind::Equal)?;
            AlterRoleAction::Rename(self.ident()?)
        };
        Ok(StmtKind::AlterRole(Box::new(AlterRole { kind, name, action })))
    }

    pub(crate) fn alter_authorization(&mut self) -> Parsed<StmtKind> {
        self.expect_keyword(K::On)?;
        let class = self.securable_class()?;
        let object = self.object_name()?;
        self.expect_keyword(K::To)?;
        let owner = if self.eat_words(&["SCHEMA", "OWNER"]) { None } else { Some(self.ident()?) };
        Ok(StmtKind::AlterAuthorization(Box::new(AlterAuthorization { class, object, owner })))
    }

    /// `class ::`, which may be several words, or nothing.
    pub(crate) fn securable_class(&mut self) -> Parsed<Option<String>> {
        let mut words = 0;
        while matches!(self.kind_at(words), TokenKind::Word | TokenKind::Keyword(_)) && words < 4 {
            words += 1;
        }
        if words == 0 || self.kind_at(words) != TokenKind::DoubleColon {
            return Ok(None);
        }
        let class: Vec<String> = (0..words).map(|ahead| self.text_at(ahead).to_ascii_uppercase()).collect();
        self.position += words + 1;
        Ok(Some(class.join(" ")))
    }

    /// GRANT, DENY, REVOKE.
    pub(crate) fn permission(&mut self) -> Parsed<StmtKind> {
        let action = match self.any_word()?.as_str() {
            "GRANT" => PermissionAction::Grant,
            "DENY" => PermissionAction::Deny,
            _ => PermissionAction::Revoke,
        };
        let grant_option_for = self.eat_words(&["GRANT", "OPTION", "FOR"]);
        let permissions = self.comma_list(Self::permission_name)?;
        let mut securable = None;
        if self.eat_keyword(K::On) {
            let class = self.securable_class()?;
            let name = self.object_name()?;
            let columns = if self.at(TokenKind::LeftParen) { self.ident_list()? } else { Vec::new() };
            securable = Some(Securable { class, name, columns });
        }
        if !self.eat_keyword(K::To) {
            if action != PermissionAction::Revoke {
                return self.unexpected();
            }
            self.expect_keyword(K::From)?;
        }
        let principals = self.comma_list(Self::grantee)?;
        let with_grant_option = self.eat_words(&["WITH", "GRANT", "OPTION"]);
        let cascade = self.eat_keyword(K::Cascade);
        let as_principal = if self.eat_keyword(K::As) { Some(self.ident()?) } else { None };
        Ok(StmtKind::Permission(Box::new(Permission {
            action,
            grant_option_for,
            permissions,
            securable,
            principals,
            with_grant_option,
            cascade,
            as_principal,
        })))
    }

    fn permission_name(&mut self) -> Parsed<(String, Vec<Ident>)> {
        let mut name = self.any_word()?;
        while matches!(self.kind(), TokenKind::Word | TokenKind::Keyword(_))
            && !self.at_keyword(K::On)
            && !self.at_keyword(K::To)
            && !self.at_keyword(K::From)
        {
            name.push(' ');
            name.push_str(&self.any_word()?);
        }
        let columns = if self.at(TokenKind::LeftParen) { self.ident_list()? } else { Vec::new() };
        Ok((name, columns))
    }

    /// A principal; PUBLIC is a reserved word.
    fn grantee(&mut self) -> Parsed<Ident> {
        if self.at_keyword(K::Public) {
            let token = self.advance();
            return Ok(self.ident_of(token));
        }
        self.ident()
    }

    pub(crate) fn execute_as(&mut self) -> Parsed<StmtKind> {
        self.position += 2;
        let principal = match self.any_word()?.as_str() {
            "CALLER" => ExecuteAsPrincipal::Caller,
            word @ ("USER" | "LOGIN") => {
                let login = word == "LOGIN";
                self.expect(TokenKind::Equal)?;
                let name = self.string_or_variable()?;
                if login { ExecuteAsPrincipal::Login(name) } else { ExecuteAsPrincipal::User(name) }
            }
            _ => {
                self.position -= 1;
                return self.unexpected();
            }
        };
        let no_revert = self.eat_words(&["WITH", "NO", "REVERT"]);
        let cookie = if self.eat_words(&["WITH", "COOKIE", "INTO"]) { Some(self.variable()?) } else { None };
        Ok(StmtKind::ExecuteAs(Box::new(ExecuteAs { principal, no_revert, cookie })))
    }

    pub(crate) fn revert(&mut self) -> Parsed<StmtKind> {
        self.advance();
        if !self.eat_words(&["WITH", "COOKIE"]) {
            return Ok(StmtKind::Revert(None));
        }
        self.expect(TokenKind::Equal)?;
        self.literal_or_variable().map(|cookie| StmtKind::Revert(Some(cookie)))
    }

    pub(crate) fn set_user(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let user = if self.at_string() || self.at(TokenKind::Variable) { Some(self.literal_or_variable()?) } else { None };
        let _ = self.eat_words(&["WITH", "NORESET"]);
        Ok(StmtKind::SetUser(user))
    }
}
