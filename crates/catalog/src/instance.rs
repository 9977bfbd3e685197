//! What master knows of the instance: its databases and their files, its logins, its settings.

use crate::defs::DatabaseId;
use crate::objects::{Properties, RECORD_VERSION};
use crate::record::{Reader, RecordError, Writer};
use std::path::PathBuf;
use thawdb_storage::{FileKind, FileSpec};

/// Where a database is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseState {
    /// Its files are being made; found so at start, they are removed with its record.
    Creating,
    /// Usable.
    Online,
    /// Its files are being removed; found so at start, the removal is completed.
    Dropping,
}

/// A database of the instance, as master records it.
#[derive(Debug, Clone)]
pub struct DatabaseRecord {
    /// Its number.
    pub id: DatabaseId,
    /// Its name.
    pub name: String,
    /// Where it is in its life.
    pub state: DatabaseState,
    /// Its files.
    pub files: Vec<FileSpec>,
    /// Filegroups by number, 1 is PRIMARY.
    pub filegroups: Vec<(u16, String)>,
    /// Creation, as in `TableDef`.
    pub created: i64,
    /// Options set by ALTER DATABASE.
    pub properties: Properties,
    /// Security identifier of the login that owns it.
    pub owner_sid: Vec<u8>,
}

/// Format of logins' records: 1 knew neither roles nor policies.
const LOGIN_VERSION: u8 = 2;

/// A login or a role of the instance.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRecord {
    /// principal_id.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Security identifier.
    pub sid: Vec<u8>,
    /// Hash of its password in PHC form; `None` cannot log in.
    pub password_hash: Option<String>,
    /// Default database.
    pub default_database: String,
    /// Default language.
    pub default_language: String,
    /// DISABLE.
    pub disabled: bool,
    /// Creation, as in `TableDef`.
    pub created: i64,
    /// Last change, as in `TableDef`.
    pub modified: i64,
    /// `sys.server_principals.type`: `S` login, `R` role.
    pub kind: u8,
    /// The login that owns it, if it is a role.
    pub owner: i32,
    /// CHECK_POLICY.
    pub check_policy: bool,
    /// CHECK_EXPIRATION.
    pub check_expiration: bool,
}

impl LoginRecord {
    /// Whether it is a role.
    pub fn is_role(&self) -> bool {
        self.kind == b'R'
    }
}

impl std::fmt::Debug for LoginRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginRecord").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

fn write_file(w: &mut Writer, file: &FileSpec) {
    let filegroup = match file.kind {
        FileKind::Rows { filegroup } => filegroup,
        FileKind::Log => 0,
    };
    w.text(&file.name).text(&file.path.to_string_lossy()).u16(filegroup).u64(file.size_bytes);
    w.flag(file.size_bytes_max.is_some()).u64(file.size_bytes_max.unwrap_or(0)).u64(file.growth_bytes);
}

fn read_file(r: &mut Reader<'_>) -> Result<FileSpec, RecordError> {
    let (name, path, filegroup, size_bytes) = (r.text()?, PathBuf::from(r.text()?), r.u16()?, r.u64()?);
    let kind = if filegroup == 0 { FileKind::Log } else { FileKind::Rows { filegroup } };
    let (limited, size_bytes_max, growth_bytes) = (r.flag()?, r.u64()?, r.u64()?);
    Ok(FileSpec { name, path, kind, size_bytes, size_bytes_max: limited.then_some(size_bytes_max), growth_bytes })
}

pub(crate) fn write_database(database: &DatabaseRecord) -> Vec<u8> {
    let state = match database.state {
        DatabaseState::Creating => 1,
        DatabaseState::Online => 2,
        DatabaseState::Dropping => 3,
    };
    let mut w = Writer::new(RECORD_VERSION);
    w.i32(database.id.0).text(&database.name).u8(state).count(database.files.len());
    for file in &database.files {
        write_file(&mut w, file);
    }
    w.count(database.filegroups.len());
    for (number, name) in &database.filegroups {
        w.u16(*number).text(name);
    }
    w.i64(database.created).count(database.properties.len());
    for (name, value) in &database.properties {
        w.text(name).text(value);
    }
    w.bytes(&database.owner_sid);
    w.finish()
}

pub(crate) fn read_database(record: &[u8]) -> Result<DatabaseRecord, RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let (id, name) = (DatabaseId(r.i32()?), r.text()?);
    let state = match r.u8()? {
        1 => DatabaseState::Creating,
        2 => DatabaseState::Online,
        3 => DatabaseState::Dropping,
        other => return Err(RecordError(format!("database state {other}"))),
    };
    let files = r.list(read_file)?;
    let filegroups = r.list(|r| Ok((r.u16()?, r.text()?)))?;
    let created = r.i64()?;
    let properties = r.list(|r| Ok((r.text()?, r.text()?)))?.into_iter().collect();
    let owner_sid = r.bytes()?.to_vec();
    r.finish()?;
    Ok(DatabaseRecord { id, name, state, files, filegroups, created, properties, owner_sid })
}

pub(crate) fn write_login(login: &LoginRecord) -> Vec<u8> {
    let mut w = Writer::new(LOGIN_VERSION);
    w.i32(login.id).text(&login.name).bytes(&login.sid).optional_text(login.password_hash.as_deref());
    w.text(&login.default_database).text(&login.default_language).flag(login.disabled).i64(login.created).i64(login.modified);
    w.u8(login.kind).i32(login.owner).flag(login.check_policy).flag(login.check_expiration);
    w.finish()
}

pub(crate) fn read_login(record: &[u8]) -> Result<LoginRecord, RecordError> {
    let mut r = Reader::of_versions(record, 1, LOGIN_VERSION)?;
    let (id, name, sid, password_hash) = (r.i32()?, r.text()?, r.bytes()?.to_vec(), r.optional_text()?);
    let (default_database, default_language) = (r.text()?, r.text()?);
    let (disabled, created, modified) = (r.flag()?, r.i64()?, r.i64()?);
    let (mut kind, mut owner, mut check_policy, mut check_expiration) = (b'S', 1, false, false);
    if r.version() > 1 {
        (kind, owner, check_policy, check_expiration) = (r.u8()?, r.i32()?, r.flag()?, r.flag()?);
    }
    r.finish()?;
    Ok(LoginRecord {
        id,
        name,
        sid,
        password_hash,
        default_database,
        default_language,
        disabled,
        created,
        modified,
        kind,
        owner,
        check_policy,
        check_expiration,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> LoginRecord {
        LoginRecord {
            id: 260,
            name: "l".into(),
            sid: vec![1, 2],
            password_hash: Some("h".into()),
            default_database: "master".into(),
            default_language: "us_english".into(),
            disabled: true,
            created: 3,
            modified: 4,
            kind: b'S',
            owner: 1,
            check_policy: false,
            check_expiration: false,
        }
    }

    #[test]
    fn a_login_comes_back_and_no_part_of_it_does() {
        let login = LoginRecord { kind: b'R', owner: 9, check_policy: true, ..login() };
        let record = write_login(&login);
        assert_eq!(read_login(&record), Ok(login));
        (0..record.len()).for_each(|cut| assert!(read_login(&record[..cut]).is_err(), "{cut}"));
    }

    /// Format 1, as it was written before there were roles and policies.
    #[test]
    fn a_login_of_format_1_is_read() {
        let mut w = Writer::new(1);
        w.i32(260).text("l").bytes(&[1, 2]).optional_text(Some("h")).text("master").text("us_english").flag(true).i64(3).i64(4);
        assert_eq!(read_login(&w.finish()), Ok(login()));
    }
}
