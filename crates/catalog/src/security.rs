//! Who belongs to which role and who may do what: what a catalog keeps of it, for a database and for the instance.
//!
//! ```text
//! role ─► members                 one record a role
//! grantee ─► [Grant]              one record a grantee: class, securable, column, permission, GRANT or DENY, by whom
//! object ─► ObjectSecurity        only where an object has an owner of its own or runs as somebody else
//! ```
//! What permissions mean, and how they cover each other, a floor above knows: here a permission is its code of four
//! characters, as `sys.database_permissions.type` shows it.
//!
//! Invariants: 1. `version` changes with every change, also of users and schemas, so that whoever decided under one version
//! decides anew under another ([`Security::touch`]). 2. No record is empty: the last member or grant takes it along.
//! It reads and writes nothing itself, and takes no lock.

use crate::objects::RECORD_VERSION;
use crate::record::{Reader, RecordError, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// What was said about a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum GrantState {
    /// GRANT.
    Grant = b'G',
    /// GRANT ... WITH GRANT OPTION.
    WithGrantOption = b'W',
    /// DENY.
    Deny = b'D',
}

/// A permission granted or denied to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// `sys.database_permissions.class`: 0 database, 1 object or column, 3 schema, 4 principal, 6 type; 100 server, 101 login.
    pub class: u8,
    /// What it is about: number of the object, schema, principal or type; 0 for the database and the server.
    pub major: i32,
    /// Number of the column; 0 for the whole.
    pub minor: i32,
    /// Its code, filled up with blanks.
    pub permission: [u8; 4],
    /// What was said.
    pub state: GrantState,
    /// Who said it.
    pub grantor: i32,
}

/// What is said of one object alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectSecurity {
    /// Its owner, where that is not its schema's.
    pub owner: Option<i32>,
    /// Whom it runs as: a principal, or [`ObjectSecurity::AS_OWNER`]; `None` is the caller.
    pub execute_as: Option<i32>,
}

impl ObjectSecurity {
    /// EXECUTE AS OWNER, as sys.sql_modules.execute_as_principal_id has it.
    pub const AS_OWNER: i32 = -2;
}

/// Roles' members, permissions, owners.
#[derive(Debug, Clone)]
pub struct Security {
    /// No other of this process has the same, unless they say the same.
    pub version: u64,
    /// Members by role.
    pub members: BTreeMap<i32, BTreeSet<i32>>,
    /// Permissions by grantee.
    pub grants: BTreeMap<i32, Vec<Grant>>,
    /// Objects with a word of their own.
    pub objects: BTreeMap<i32, ObjectSecurity>,
}

impl Default for Security {
    fn default() -> Self {
        Self { version: next_version(), members: BTreeMap::new(), grants: BTreeMap::new(), objects: BTreeMap::new() }
    }
}

fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only uniqueness matters.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Security {
    /// Something that decisions rest on has changed.
    pub fn touch(&mut self) {
        self.version = next_version();
    }

    /// What was granted and denied to a principal itself.
    pub fn grants_of(&self, grantee: i32) -> &[Grant] {
        self.grants.get(&grantee).map_or(&[], Vec::as_slice)
    }

    /// Owner and context of an object, where they were set.
    pub fn object(&self, id: i32) -> ObjectSecurity {
        self.objects.get(&id).copied().unwrap_or_default()
    }

    /// The roles a principal is in, through other roles too.
    pub fn roles_of(&self, principal: i32) -> BTreeSet<i32> {
        let (mut all, mut news) = (BTreeSet::new(), vec![principal]);
        while let Some(member) = news.pop() {
            for (role, _) in self.members.iter().filter(|(_, members)| members.contains(&member)) {
                if all.insert(*role) {
                    news.push(*role);
                }
            }
        }
        all
    }
}

pub(crate) fn write_members(role: i32, members: &BTreeSet<i32>) -> Vec<u8> {
    let mut w = Writer::new(RECORD_VERSION);
    w.i32(role).count(members.len());
    for member in members {
        w.i32(*member);
    }
    w.finish()
}

pub(crate) fn read_members(record: &[u8]) -> Result<(i32, BTreeSet<i32>), RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let (role, members) = (r.i32()?, r.list(Reader::i32)?);
    r.finish().map(|()| (role, members.into_iter().collect()))
}

pub(crate) fn write_grants(grantee: i32, grants: &[Grant]) -> Vec<u8> {
    let mut w = Writer::new(RECORD_VERSION);
    w.i32(grantee).count(grants.len());
    for grant in grants {
        w.u8(grant.class).i32(grant.major).i32(grant.minor).i32(i32::from_be_bytes(grant.permission));
        w.u8(grant.state as u8).i32(grant.grantor);
    }
    w.finish()
}

pub(crate) fn read_grants(record: &[u8]) -> Result<(i32, Vec<Grant>), RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let grantee = r.i32()?;
    let grants = r.list(|r| {
        let (class, major, minor, permission) = (r.u8()?, r.i32()?, r.i32()?, r.i32()?.to_be_bytes());
        let state = match r.u8()? {
            b'G' => GrantState::Grant,
            b'W' => GrantState::WithGrantOption,
            b'D' => GrantState::Deny,
            other => return Err(RecordError(format!("state {other} of a permission"))),
        };
        Ok(Grant { class, major, minor, permission, state, grantor: r.i32()? })
    })?;
    r.finish().map(|()| (grantee, grants))
}

pub(crate) fn write_object_security(id: i32, object: ObjectSecurity) -> Vec<u8> {
    let mut w = Writer::new(RECORD_VERSION);
    for part in [object.owner, object.execute_as] {
        w.flag(part.is_some()).i32(part.unwrap_or(0));
    }
    w.i32(id);
    w.finish()
}

pub(crate) fn read_object_security(record: &[u8]) -> Result<(i32, ObjectSecurity), RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let mut part = || Ok::<_, RecordError>((r.flag()?, r.i32()?)).map(|(known, value)| known.then_some(value));
    let object = ObjectSecurity { owner: part()?, execute_as: part()? };
    let id = r.i32()?;
    r.finish().map(|()| (id, object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_no_part_of_them_does() {
        let members = BTreeSet::from([1, 5, 16384]);
        let record = write_members(7, &members);
        assert_eq!(read_members(&record), Ok((7, members)));
        (0..record.len()).for_each(|cut| assert!(read_members(&record[..cut]).is_err(), "{cut}"));
        let grant = Grant { class: 1, major: -3, minor: 2, permission: *b"SL  ", state: GrantState::Deny, grantor: 1 };
        let grants = vec![grant, Grant { state: GrantState::WithGrantOption, permission: *b"CRTB", ..grant }];
        let record = write_grants(9, &grants);
        assert_eq!(read_grants(&record), Ok((9, grants)));
        (0..record.len()).for_each(|cut| assert!(read_grants(&record[..cut]).is_err(), "{cut}"));
        let object = ObjectSecurity { owner: Some(6), execute_as: Some(ObjectSecurity::AS_OWNER) };
        let record = write_object_security(77, object);
        assert_eq!(read_object_security(&record), Ok((77, object)));
        (0..record.len()).for_each(|cut| assert!(read_object_security(&record[..cut]).is_err(), "{cut}"));
    }

    #[test]
    fn roles_reach_through_roles() {
        let mut security = Security::default();
        security.members.insert(10, BTreeSet::from([5]));
        security.members.insert(11, BTreeSet::from([10]));
        // A circle, which no statement makes, ends all the same.
        security.members.insert(10, BTreeSet::from([5, 11]));
        assert_eq!(security.roles_of(5), BTreeSet::from([10, 11]));
        assert_eq!(security.roles_of(6), BTreeSet::new());
    }
}
