//! The catalog in its tree: every database keeps its own in [`Database::ROOT_TREE`], master the instance's too.
//!
//! ```text
//! key = kind u8 | number i32, big-endian with the sign bit turned        row = record (record.rs), inline or, when it
//! kinds: 1 properties · 2 schema · 3 table · 4 counters · 5 user · 6 constraint       is long, as one large part
//!        7 object that is no table · 8 index operation · 9 a role's members · 10 a grantee's permissions
//!        11 an object's owner and context · 12 a table's statistics
//!        16 database · 17 login · 18 setting · 19 a server role's members · 20 a login's permissions (master only)
//! ```
//!
//! 1. A definition changes in memory and in the tree together: every `put_`/`remove_` does both ([`DatabaseCatalog`]).
//! 2. Changes go through the caller's transaction on the caller's private copy; the caller publishes the copy after the
//!    commit and drops it after a rollback.
//! 3. Object numbers rise and are not reused while the database is open ([`DatabaseCatalog::take_object_id`]).
//!
//! Takes no lock of its own: the caller serialises writers of one database. A record that cannot be read is
//! [`CatalogError::Damage`].

use crate::defs::{Catalog, DatabaseId, IndexDef, ObjectId, TableDef};
use crate::instance::{self, DatabaseRecord, LoginRecord};
use crate::jobs::{self, IndexJob};
use crate::module::{self, ObjectDef, ObjectKind};
use crate::objects::{self, ConstraintDef, ConstraintKind, Properties, SchemaDef, UserDef};
use crate::record::{Reader, RecordError, Writer};
use crate::security::{self, Grant, ObjectSecurity, Security};
use crate::statistics::{self, TableStatistics};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_storage::{Database, KeyRange, ReadView, Row, ScanDirection, StorageError, Txn};

/// What can go wrong with a catalog.
#[derive(Debug, Clone)]
pub enum CatalogError {
    /// The floor below failed.
    Storage(StorageError),
    /// A record is not what this version writes.
    Damage(String),
}

impl From<StorageError> for CatalogError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<RecordError> for CatalogError {
    fn from(error: RecordError) -> Self {
        Self::Damage(error.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Properties = 1,
    Schema = 2,
    Table = 3,
    Counters = 4,
    User = 5,
    Constraint = 6,
    Object = 7,
    Job = 8,
    Members = 9,
    Grants = 10,
    ObjectSecurity = 11,
    Statistics = 12,
    Database = 16,
    Login = 17,
    Setting = 18,
    ServerMembers = 19,
    ServerGrants = 20,
}

/// Records longer than this go to a large part: two fit a page beside their neighbours.
const INLINE_BYTES_MAX: usize = 3000;

fn key(kind: Kind, number: i32) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    bytes.extend_from_slice(&(number.cast_unsigned() ^ 0x8000_0000).to_be_bytes());
    bytes
}

fn put(txn: &mut Txn, kind: Kind, number: i32, record: &[u8]) -> Result<(), CatalogError> {
    let key = key(kind, number);
    let large = [record];
    let row = if record.len() <= INLINE_BYTES_MAX { Row::inline(record) } else { Row { inline: &[], large: &large } };
    if !txn.update(Database::ROOT_TREE, &key, row)? {
        txn.insert(Database::ROOT_TREE, &key, row)?;
    }
    Ok(())
}

fn remove(txn: &mut Txn, kind: Kind, number: i32) -> Result<(), CatalogError> {
    txn.delete(Database::ROOT_TREE, &key(kind, number))?;
    Ok(())
}

fn each(view: &ReadView, kind: Kind, mut record: impl FnMut(&[u8]) -> Result<(), CatalogError>) -> Result<(), CatalogError> {
    let range = KeyRange { start: Bound::Included(vec![kind as u8]), end: Bound::Excluded(vec![kind as u8 + 1]) };
    let mut scan = view.scan(Database::ROOT_TREE, range, ScanDirection::Forward)?;
    while let Some(block) = scan.next_block()? {
        for index in 0..block.len() {
            match block.large(index) {
                [] => record(block.value(index))?,
                [large, ..] => record(&view.read_large(*large)?)?,
            }
        }
    }
    Ok(())
}

fn name_key(kind: ObjectKind, schema: &str, name: &str) -> (bool, String, String) {
    (kind.is_type(), schema.to_lowercase(), name.to_lowercase())
}

/// A catalog version that no catalog of this process had before: a definition that was rolled back and another that came
/// later never share one, so a plan made for the first is never taken for the second.
fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only uniqueness matters.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// What is bound to changes of a table's rows: enabled constraints and triggers, in order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct Related {
    /// CHECK constraints.
    pub checks: Vec<Arc<ConstraintDef>>,
    /// FOREIGN KEY constraints of the table itself.
    pub foreign_keys: Vec<Arc<ConstraintDef>>,
    /// FOREIGN KEY constraints that refer to it.
    pub referenced_by: Vec<Arc<ConstraintDef>>,
    /// Triggers.
    pub triggers: Vec<Arc<ObjectDef>>,
}

/// Everything one database's catalog says, at one moment. Cloning shares the definitions.
#[derive(Debug, Clone)]
pub struct DatabaseCatalog {
    /// The database.
    pub database: DatabaseId,
    /// Tables, as the binder sees them.
    pub tables: Arc<Catalog>,
    /// Schemas by number.
    pub schemas: BTreeMap<i32, SchemaDef>,
    /// Constraints by object number.
    pub constraints: BTreeMap<i32, Arc<ConstraintDef>>,
    /// Procedures, functions, views and what else is no table, by object number.
    pub objects: BTreeMap<i32, Arc<ObjectDef>>,
    /// Their numbers by lower-case schema and name; types apart.
    object_names: BTreeMap<(bool, String, String), i32>,
    /// What is bound to the changes of a table's rows, by its number; made from the constraints and objects.
    related: BTreeMap<i32, Arc<Related>>,
    /// Users and roles by number.
    pub users: BTreeMap<i32, UserDef>,
    /// Who is in which role, who may do what.
    pub security: Arc<Security>,
    /// Properties kept within the database.
    pub properties: Properties,
    /// Index operations by table, as they were when they began or the database was opened.
    pub jobs: BTreeMap<i32, Arc<IndexJob>>,
    object_id_last: i32,
}

/// First number of a user's object, and the step between them: SQL Server's, so that numbers look familiar.
const OBJECT_ID_FIRST: i32 = 901_578_250;
const OBJECT_ID_STEP: i32 = 16_000_057;

/// Numbers of schemas that every database has: (number, name, owner).
pub const FIXED_SCHEMAS: [(i32, &str, i32); 4] = [(1, "dbo", 1), (2, "guest", 2), (3, "INFORMATION_SCHEMA", 3), (4, "sys", 4)];

/// Users and roles that every database has: (number, name, kind, default schema).
const FIXED_USERS: [(i32, &str, u8, Option<&str>); 14] = [
    (0, "public", b'R', None),
    (1, "dbo", b'S', Some("dbo")),
    (2, "guest", b'S', Some("guest")),
    (3, "INFORMATION_SCHEMA", b'S', None),
    (4, "sys", b'S', None),
    (16384, "db_owner", b'R', None),
    (16385, "db_accessadmin", b'R', None),
    (16386, "db_securityadmin", b'R', None),
    (16387, "db_ddladmin", b'R', None),
    (16389, "db_backupoperator", b'R', None),
    (16390, "db_datareader", b'R', None),
    (16391, "db_datawriter", b'R', None),
    (16392, "db_denydatareader", b'R', None),
    (16393, "db_denydatawriter", b'R', None),
];

impl DatabaseCatalog {
    /// The catalog of a new database, not yet in its tree.
    pub fn empty(database: DatabaseId, created: i64) -> Self {
        let schemas: BTreeMap<_, _> =
            FIXED_SCHEMAS.iter().map(|&(id, name, owner)| (id, SchemaDef { id: crate::SchemaId(id), name: name.into(), owner })).collect();
        let users = FIXED_USERS
            .iter()
            .map(|&(id, name, kind, schema)| {
                let sid = (id == 1).then(|| vec![1]);
                (
                    id,
                    UserDef {
                        id,
                        name: name.into(),
                        kind,
                        sid,
                        default_schema: schema.map(Into::into),
                        fixed: true,
                        created,
                        owner: objects::DBO,
                    },
                )
            })
            .collect();
        let names = schemas.iter().map(|(id, s)| (*id, s.name.clone())).collect();
        let tables = Catalog { version: next_version(), schemas: names, ..Catalog::default() };
        Self {
            database,
            tables: Arc::new(tables),
            schemas,
            constraints: BTreeMap::new(),
            objects: BTreeMap::new(),
            object_names: BTreeMap::new(),
            related: BTreeMap::new(),
            users,
            security: Arc::default(),
            properties: Properties::new(),
            jobs: BTreeMap::new(),
            object_id_last: OBJECT_ID_FIRST - OBJECT_ID_STEP,
        }
    }

    /// Writes a new database's catalog into its tree.
    pub fn create(&self, txn: &mut Txn) -> Result<(), CatalogError> {
        put(txn, Kind::Properties, 0, &objects::write_properties(&self.properties))?;
        for schema in self.schemas.values() {
            put(txn, Kind::Schema, schema.id.0, &objects::write_schema(schema))?;
        }
        for user in self.users.values() {
            put(txn, Kind::User, user.id, &objects::write_user(user))?;
        }
        Ok(())
    }

    /// Reads a database's catalog.
    pub fn load(view: &ReadView, database: DatabaseId) -> Result<Self, CatalogError> {
        let mut catalog = Self::empty(database, 0);
        catalog.users.clear();
        catalog.schemas.clear();
        each(view, Kind::Properties, |record| {
            catalog.properties = objects::read_properties(record)?;
            Ok(())
        })?;
        each(view, Kind::Schema, |record| {
            let schema = objects::read_schema(record)?;
            catalog.schemas.insert(schema.id.0, schema);
            Ok(())
        })?;
        each(view, Kind::User, |record| {
            let user = objects::read_user(record)?;
            catalog.users.insert(user.id, user);
            Ok(())
        })?;
        catalog.security = Arc::new(load_security(view, [Kind::Members, Kind::Grants], Some(Kind::ObjectSecurity))?);
        each(view, Kind::Constraint, |record| {
            let constraint = objects::read_constraint(record)?;
            catalog.object_id_last = catalog.object_id_last.max(constraint.id.0);
            catalog.constraints.insert(constraint.id.0, Arc::new(constraint));
            Ok(())
        })?;
        each(view, Kind::Object, |record| {
            let object = module::read_object(record, &catalog.schemas)?;
            catalog.object_id_last = catalog.object_id_last.max(object.id.0);
            catalog.object_names.insert(name_key(object.kind, &object.schema_name, &object.name), object.id.0);
            catalog.objects.insert(object.id.0, Arc::new(object));
            Ok(())
        })?;
        let mut tables = Catalog { version: next_version(), schemas: catalog.schema_names(), ..Catalog::default() };
        each(view, Kind::Table, |record| {
            let table = objects::read_table(record, database, &catalog.schemas)?;
            catalog.object_id_last = catalog.object_id_last.max(table.id.0);
            tables.tables.insert(table.id.0, Arc::new(table));
            Ok(())
        })?;
        each(view, Kind::Job, |record| {
            let job = jobs::read_job(record)?;
            let table = tables.tables.get_mut(&job.table.0);
            let table = table.ok_or_else(|| RecordError(format!("an index operation on table {}, which is not there", job.table.0)))?;
            Arc::make_mut(table).building = Some(Arc::new(side_index(&job)));
            catalog.jobs.insert(job.table.0, Arc::new(job));
            Ok(())
        })?;
        catalog.tables = Arc::new(tables);
        catalog.relate();
        Ok(catalog)
    }

    fn schema_names(&self) -> BTreeMap<i32, String> {
        self.schemas.iter().map(|(id, s)| (*id, s.name.clone())).collect()
    }

    fn change_tables(&mut self, change: impl FnOnce(&mut Catalog)) {
        let tables = Arc::make_mut(&mut self.tables);
        tables.version = next_version();
        change(tables);
    }

    /// The next object number.
    pub fn take_object_id(&mut self) -> ObjectId {
        loop {
            let next = self.object_id_last.wrapping_add(OBJECT_ID_STEP);
            // Beyond 2^31 - 1 SQL Server's numbers wrap into the free ones; low numbers are its own objects'.
            self.object_id_last = if next > 0 { next } else { next.wrapping_add(i32::MAX).max(1_000_000) };
            let id = &self.object_id_last;
            let taken = self.tables.tables.contains_key(id) || self.constraints.contains_key(id) || self.objects.contains_key(id);
            if !taken {
                return ObjectId(self.object_id_last);
            }
        }
    }

    /// The schema of this name.
    pub fn schema(&self, name: &str) -> Option<&SchemaDef> {
        self.schemas.values().find(|s| s.name.eq_ignore_ascii_case(name))
    }

    /// The user or role of this name.
    pub fn user(&self, name: &str) -> Option<&UserDef> {
        self.users.values().find(|u| u.name.eq_ignore_ascii_case(name))
    }

    /// The constraint of this name whose table is in `schema`.
    pub fn constraint(&self, schema: &str, name: &str) -> Option<&Arc<ConstraintDef>> {
        let of_schema = |c: &ConstraintDef| self.tables.tables.get(&c.table.0).is_some_and(|t| t.schema_name.eq_ignore_ascii_case(schema));
        self.constraints.values().find(|c| c.name.eq_ignore_ascii_case(name) && of_schema(c))
    }

    /// Constraints of a table, in order of their numbers.
    pub fn constraints_of(&self, table: ObjectId) -> impl Iterator<Item = &Arc<ConstraintDef>> {
        self.constraints.values().filter(move |c| c.table == table)
    }

    /// Adds or changes a table.
    pub fn put_table(&mut self, txn: &mut Txn, table: TableDef) -> Result<(), CatalogError> {
        put(txn, Kind::Table, table.id.0, &objects::write_table(&table))?;
        self.change_tables(|t| drop(t.tables.insert(table.id.0, Arc::new(table))));
        Ok(())
    }

    /// Removes a table, its constraints and triggers. Its trees are the caller's to drop.
    pub fn remove_table(&mut self, txn: &mut Txn, table: ObjectId) -> Result<(), CatalogError> {
        let constraints: Vec<_> = self.constraints_of(table).map(|c| c.id).collect();
        for id in constraints {
            self.remove_constraint(txn, id)?;
        }
        let triggers: Vec<_> = self.triggers_of(table).map(|trigger| trigger.id).collect();
        for id in triggers {
            self.remove_object(txn, id)?;
        }
        self.forget_securable(txn, 1, table.0)?;
        remove(txn, Kind::Table, table.0)?;
        self.change_tables(|t| drop(t.tables.remove(&table.0)));
        Ok(())
    }

    /// Begins an index operation: the table's writers learn of it with this catalog.
    pub fn put_job(&mut self, txn: &mut Txn, job: IndexJob) -> Result<(), CatalogError> {
        put_job(txn, &job)?;
        self.set_building(job.table, Some(Arc::new(side_index(&job))));
        self.jobs.insert(job.table.0, Arc::new(job));
        Ok(())
    }

    /// Ends an index operation. Its trees are the caller's.
    pub fn remove_job(&mut self, txn: &mut Txn, table: ObjectId) -> Result<(), CatalogError> {
        remove(txn, Kind::Job, table.0)?;
        self.set_building(table, None);
        self.jobs.remove(&table.0);
        Ok(())
    }

    fn set_building(&mut self, table: ObjectId, building: Option<Arc<IndexDef>>) {
        self.change_tables(|t| {
            if let Some(table) = t.tables.get_mut(&table.0) {
                Arc::make_mut(table).building = building;
            }
        });
    }

    /// Adds a constraint.
    pub fn put_constraint(&mut self, txn: &mut Txn, constraint: ConstraintDef) -> Result<(), CatalogError> {
        put(txn, Kind::Constraint, constraint.id.0, &objects::write_constraint(&constraint))?;
        self.constraints.insert(constraint.id.0, Arc::new(constraint));
        self.relate();
        self.change_tables(|_| {});
        Ok(())
    }

    /// Removes a constraint.
    pub fn remove_constraint(&mut self, txn: &mut Txn, id: ObjectId) -> Result<(), CatalogError> {
        remove(txn, Kind::Constraint, id.0)?;
        self.constraints.remove(&id.0);
        self.relate();
        self.change_tables(|_| {});
        Ok(())
    }

    /// The object of this schema and name that is no table and no type.
    pub fn object(&self, schema: &str, name: &str) -> Option<&Arc<ObjectDef>> {
        self.objects.get(self.object_names.get(&(false, schema.to_lowercase(), name.to_lowercase()))?)
    }

    /// The type of this schema and name.
    pub fn user_type(&self, schema: &str, name: &str) -> Option<&Arc<ObjectDef>> {
        self.objects.get(self.object_names.get(&(true, schema.to_lowercase(), name.to_lowercase()))?)
    }

    /// What is bound to changes of a table's rows; `None` for most tables.
    pub fn related(&self, table: ObjectId) -> Option<&Arc<Related>> {
        self.related.get(&table.0)
    }

    fn relate(&mut self) {
        let mut all: BTreeMap<i32, Related> = BTreeMap::new();
        for constraint in self.constraints.values() {
            if constraint.check.as_ref().is_some_and(|check| !check.disabled) {
                all.entry(constraint.table.0).or_default().checks.push(constraint.clone());
            }
            if let Some(key) = constraint.foreign_key.as_ref().filter(|key| !key.disabled) {
                all.entry(constraint.table.0).or_default().foreign_keys.push(constraint.clone());
                all.entry(key.referenced.0).or_default().referenced_by.push(constraint.clone());
            }
        }
        for object in self.objects.values() {
            if let (Some(parent), Some(trigger)) = (object.parent, object.trigger)
                && !trigger.disabled
            {
                all.entry(parent.0).or_default().triggers.push(object.clone());
            }
        }
        self.related = all.into_iter().map(|(table, related)| (table, Arc::new(related))).collect();
    }

    /// Triggers of a table or view, in order of their numbers.
    pub fn triggers_of(&self, parent: ObjectId) -> impl Iterator<Item = &Arc<ObjectDef>> {
        self.objects.values().filter(move |object| object.parent == Some(parent) && object.kind == ObjectKind::Trigger)
    }

    /// Adds or changes an object that is no table.
    pub fn put_object(&mut self, txn: &mut Txn, object: ObjectDef) -> Result<(), CatalogError> {
        put(txn, Kind::Object, object.id.0, &module::write_object(&object))?;
        if let Some(old) = self.objects.get(&object.id.0) {
            self.object_names.remove(&name_key(old.kind, &old.schema_name, &old.name));
        }
        self.object_names.insert(name_key(object.kind, &object.schema_name, &object.name), object.id.0);
        self.objects.insert(object.id.0, Arc::new(object));
        self.relate();
        self.change_tables(|_| {});
        Ok(())
    }

    /// Removes an object that is no table, and its triggers.
    pub fn remove_object(&mut self, txn: &mut Txn, id: ObjectId) -> Result<(), CatalogError> {
        let triggers: Vec<_> = self.triggers_of(id).map(|trigger| trigger.id).collect();
        for id in triggers.into_iter().chain([id]) {
            remove(txn, Kind::Object, id.0)?;
            let class = if self.objects.get(&id.0).is_some_and(|object| object.kind.is_type()) { 6 } else { 1 };
            self.forget_securable(txn, class, id.0)?;
            if let Some(old) = self.objects.remove(&id.0) {
                self.object_names.remove(&name_key(old.kind, &old.schema_name, &old.name));
            }
        }
        self.relate();
        self.change_tables(|_| {});
        Ok(())
    }

    /// Adds a schema.
    pub fn put_schema(&mut self, txn: &mut Txn, schema: SchemaDef) -> Result<(), CatalogError> {
        put(txn, Kind::Schema, schema.id.0, &objects::write_schema(&schema))?;
        self.schemas.insert(schema.id.0, schema);
        Arc::make_mut(&mut self.security).touch();
        let names = self.schema_names();
        self.change_tables(|t| t.schemas = names);
        Ok(())
    }

    /// Removes a schema, which must be empty.
    pub fn remove_schema(&mut self, txn: &mut Txn, id: crate::SchemaId) -> Result<(), CatalogError> {
        remove(txn, Kind::Schema, id.0)?;
        self.forget_securable(txn, 3, id.0)?;
        self.schemas.remove(&id.0);
        let names = self.schema_names();
        self.change_tables(|t| t.schemas = names);
        Ok(())
    }

    /// Adds or changes a user.
    pub fn put_user(&mut self, txn: &mut Txn, user: UserDef) -> Result<(), CatalogError> {
        put(txn, Kind::User, user.id, &objects::write_user(&user))?;
        self.users.insert(user.id, user);
        Arc::make_mut(&mut self.security).touch();
        Ok(())
    }

    /// Removes a user, its memberships and what was granted to it and on it.
    pub fn remove_user(&mut self, txn: &mut Txn, id: i32) -> Result<(), CatalogError> {
        remove(txn, Kind::User, id)?;
        self.users.remove(&id);
        self.forget_securable(txn, 4, id)?;
        self.put_grants(txn, id, Vec::new())?;
        let roles: Vec<i32> = self.security.members.iter().filter(|(role, m)| **role == id || m.contains(&id)).map(|(r, _)| *r).collect();
        for role in roles {
            let mut members = if role == id { BTreeSet::new() } else { self.security.members[&role].clone() };
            members.remove(&id);
            self.put_members(txn, role, members)?;
        }
        Ok(())
    }

    /// Replaces the members of a role.
    pub fn put_members(&mut self, txn: &mut Txn, role: i32, members: BTreeSet<i32>) -> Result<(), CatalogError> {
        put_members(txn, Kind::Members, Arc::make_mut(&mut self.security), role, members)
    }

    /// Replaces what is granted and denied to a principal.
    pub fn put_grants(&mut self, txn: &mut Txn, grantee: i32, grants: Vec<Grant>) -> Result<(), CatalogError> {
        put_grants(txn, Kind::Grants, Arc::make_mut(&mut self.security), grantee, grants)
    }

    /// Sets owner and context of an object.
    pub fn put_object_security(&mut self, txn: &mut Txn, id: ObjectId, object: ObjectSecurity) -> Result<(), CatalogError> {
        if self.security.object(id.0) == object {
            return Ok(());
        }
        let security = Arc::make_mut(&mut self.security);
        security.touch();
        if object == ObjectSecurity::default() {
            security.objects.remove(&id.0);
            return remove(txn, Kind::ObjectSecurity, id.0);
        }
        security.objects.insert(id.0, object);
        put(txn, Kind::ObjectSecurity, id.0, &security::write_object_security(id.0, object))
    }

    /// Whatever was granted on a securable goes with it.
    pub fn forget_securable(&mut self, txn: &mut Txn, class: u8, major: i32) -> Result<(), CatalogError> {
        let about = |grant: &Grant| grant.class == class && grant.major == major;
        let grantees: Vec<i32> = self.security.grants.iter().filter(|(_, g)| g.iter().any(about)).map(|(id, _)| *id).collect();
        for grantee in grantees {
            let kept = self.security.grants_of(grantee).iter().filter(|grant| !about(grant)).copied().collect();
            self.put_grants(txn, grantee, kept)?;
        }
        if class == 1 { self.put_object_security(txn, ObjectId(major), ObjectSecurity::default()) } else { Ok(()) }
    }

    /// The catalog as somebody sees it who may know of some objects, constraints, users and schemas only.
    pub fn restricted(
        &self,
        object: impl Fn(i32) -> bool,
        constraint: impl Fn(&ConstraintDef) -> bool,
        user: impl Fn(&UserDef) -> bool,
        schema: impl Fn(&SchemaDef) -> bool,
    ) -> Self {
        let mut seen = self.clone();
        let tables = Arc::make_mut(&mut seen.tables);
        tables.tables.retain(|id, _| object(*id));
        seen.objects.retain(|id, _| object(*id));
        let shown: BTreeSet<i32> = tables.tables.values().map(|t| t.schema.0).chain(seen.objects.values().map(|o| o.schema.0)).collect();
        seen.object_names.retain(|_, id| seen.objects.contains_key(id));
        seen.constraints.retain(|_, c| object(c.table.0) && constraint(c));
        seen.users.retain(|_, u| user(u));
        seen.schemas.retain(|id, s| shown.contains(id) || schema(s));
        seen.jobs.retain(|id, _| object(*id));
        seen
    }

    /// The table with the names of its DEFAULT constraints in its columns.
    pub fn constraints_named(&self, mut table: TableDef) -> TableDef {
        let names: Vec<_> = self
            .constraints_of(table.id)
            .filter_map(|constraint| match constraint.kind {
                ConstraintKind::Default(column) => Some((column, constraint.name.clone())),
                _ => None,
            })
            .collect();
        for column in &mut table.columns {
            column.default_name = names.iter().find(|(id, _)| *id == column.id).map(|(_, name)| name.clone());
        }
        table
    }
}

fn put_members(txn: &mut Txn, kind: Kind, security: &mut Security, role: i32, members: BTreeSet<i32>) -> Result<(), CatalogError> {
    security.touch();
    if members.is_empty() {
        return if security.members.remove(&role).is_some() { remove(txn, kind, role) } else { Ok(()) };
    }
    put(txn, kind, role, &security::write_members(role, &members))?;
    security.members.insert(role, members);
    Ok(())
}

fn put_grants(txn: &mut Txn, kind: Kind, security: &mut Security, grantee: i32, mut grants: Vec<Grant>) -> Result<(), CatalogError> {
    security.touch();
    if grants.is_empty() {
        return if security.grants.remove(&grantee).is_some() { remove(txn, kind, grantee) } else { Ok(()) };
    }
    grants.sort_unstable();
    put(txn, kind, grantee, &security::write_grants(grantee, &grants))?;
    security.grants.insert(grantee, grants);
    Ok(())
}

fn load_security(view: &ReadView, [members, grants]: [Kind; 2], objects: Option<Kind>) -> Result<Security, CatalogError> {
    let mut loaded = Security::default();
    each(view, members, |record| {
        let (role, members) = security::read_members(record)?;
        loaded.members.insert(role, members);
        Ok(())
    })?;
    each(view, grants, |record| {
        let (grantee, grants) = security::read_grants(record)?;
        loaded.grants.insert(grantee, grants);
        Ok(())
    })?;
    if let Some(objects) = objects {
        each(view, objects, |record| {
            let (id, object) = security::read_object_security(record)?;
            loaded.objects.insert(id, object);
            Ok(())
        })?;
    }
    Ok(loaded)
}

/// The index as the table's writers see it: in the side tree.
fn side_index(job: &IndexJob) -> IndexDef {
    IndexDef { tree: job.side, ..job.index.clone() }
}

/// Records how far an index operation is, by the transaction that took it there.
pub fn put_job(txn: &mut Txn, job: &IndexJob) -> Result<(), CatalogError> {
    put(txn, Kind::Job, job.table.0, &jobs::write_job(job))
}

/// Counters of a table: values below them may have been handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Row numbers of heaps and non-unique clustered indexes: the first never handed out.
    pub row_number_next: u64,
    /// Identity: the next value; `None` before the first.
    pub identity_next: Option<i64>,
}

/// Records a table's counters.
pub fn put_counters(txn: &mut Txn, table: ObjectId, counters: Counters) -> Result<(), CatalogError> {
    let mut w = Writer::new(objects::RECORD_VERSION);
    w.u64(counters.row_number_next).flag(counters.identity_next.is_some()).i64(counters.identity_next.unwrap_or(0)).i32(table.0);
    put(txn, Kind::Counters, table.0, &w.finish())
}

/// Removes a table's counters.
pub fn remove_counters(txn: &mut Txn, table: ObjectId) -> Result<(), CatalogError> {
    remove(txn, Kind::Counters, table.0)
}

/// All recorded counters, by table.
pub fn load_counters(view: &ReadView) -> Result<BTreeMap<i32, Counters>, CatalogError> {
    let mut all = BTreeMap::new();
    each(view, Kind::Counters, |record| {
        let mut r = Reader::new(record, objects::RECORD_VERSION)?;
        let (row_number_next, known, identity, table) = (r.u64()?, r.flag()?, r.i64()?, r.i32()?);
        r.finish()?;
        all.insert(table, Counters { row_number_next, identity_next: known.then_some(identity) });
        Ok(())
    })?;
    Ok(all)
}

/// Records a table's statistics.
pub fn put_statistics(txn: &mut Txn, all: &TableStatistics) -> Result<(), CatalogError> {
    put(txn, Kind::Statistics, all.table.0, &statistics::write_statistics(all))
}

/// Removes a table's statistics.
pub fn remove_statistics(txn: &mut Txn, table: ObjectId) -> Result<(), CatalogError> {
    remove(txn, Kind::Statistics, table.0)
}

/// All recorded statistics, by table. A record that cannot be read is passed over: rows can be asked again.
pub fn load_statistics(view: &ReadView) -> Result<BTreeMap<i32, TableStatistics>, CatalogError> {
    let mut all = BTreeMap::new();
    each(view, Kind::Statistics, |record| {
        if let Ok(found) = statistics::read_statistics(record) {
            all.insert(found.table.0, found);
        }
        Ok(())
    })?;
    Ok(all)
}

/// What master records of the instance.
#[derive(Debug, Clone, Default)]
pub struct InstanceCatalog {
    /// Databases by number, master's own record included.
    pub databases: BTreeMap<i32, Arc<DatabaseRecord>>,
    /// Logins by number.
    pub logins: BTreeMap<i32, LoginRecord>,
    /// Settings changed by sp_configure, by configuration_id.
    pub settings: BTreeMap<i32, i64>,
    /// Who is in which server role, who may do what on the instance.
    pub security: Arc<Security>,
}

impl InstanceCatalog {
    /// Reads it from master.
    pub fn load(view: &ReadView) -> Result<Self, CatalogError> {
        let mut catalog = Self::default();
        each(view, Kind::Database, |record| {
            let database = instance::read_database(record)?;
            catalog.databases.insert(database.id.0, Arc::new(database));
            Ok(())
        })?;
        each(view, Kind::Login, |record| {
            let login = instance::read_login(record)?;
            catalog.logins.insert(login.id, login);
            Ok(())
        })?;
        each(view, Kind::Setting, |record| {
            let mut r = Reader::new(record, objects::RECORD_VERSION)?;
            let (id, value) = (r.i32()?, r.i64()?);
            r.finish()?;
            catalog.settings.insert(id, value);
            Ok(())
        })?;
        catalog.security = Arc::new(load_security(view, [Kind::ServerMembers, Kind::ServerGrants], None)?);
        Ok(catalog)
    }

    /// Adds or changes a database.
    pub fn put_database(&mut self, txn: &mut Txn, database: DatabaseRecord) -> Result<(), CatalogError> {
        put(txn, Kind::Database, database.id.0, &instance::write_database(&database))?;
        self.databases.insert(database.id.0, Arc::new(database));
        Ok(())
    }

    /// Removes a database's record.
    pub fn remove_database(&mut self, txn: &mut Txn, id: DatabaseId) -> Result<(), CatalogError> {
        remove(txn, Kind::Database, id.0)?;
        self.databases.remove(&id.0);
        Ok(())
    }

    /// Adds or changes a login.
    pub fn put_login(&mut self, txn: &mut Txn, login: LoginRecord) -> Result<(), CatalogError> {
        put(txn, Kind::Login, login.id, &instance::write_login(&login))?;
        self.logins.insert(login.id, login);
        Arc::make_mut(&mut self.security).touch();
        Ok(())
    }

    /// Removes a login or server role, its memberships and what was granted to it and on it.
    pub fn remove_login(&mut self, txn: &mut Txn, id: i32) -> Result<(), CatalogError> {
        remove(txn, Kind::Login, id)?;
        self.logins.remove(&id);
        let about = |grant: &Grant| grant.class == 101 && grant.major == id;
        let grantees: Vec<i32> =
            self.security.grants.iter().filter(|(of, g)| **of == id || g.iter().any(about)).map(|(of, _)| *of).collect();
        for grantee in grantees {
            let kept = self.security.grants_of(grantee).iter().filter(|g| grantee != id && !about(g)).copied().collect();
            self.put_grants(txn, grantee, kept)?;
        }
        let roles: Vec<i32> = self.security.members.iter().filter(|(role, m)| **role == id || m.contains(&id)).map(|(r, _)| *r).collect();
        for role in roles {
            let mut members = if role == id { BTreeSet::new() } else { self.security.members[&role].clone() };
            members.remove(&id);
            self.put_members(txn, role, members)?;
        }
        Ok(())
    }

    /// Replaces the members of a server role.
    pub fn put_members(&mut self, txn: &mut Txn, role: i32, members: BTreeSet<i32>) -> Result<(), CatalogError> {
        put_members(txn, Kind::ServerMembers, Arc::make_mut(&mut self.security), role, members)
    }

    /// Replaces what is granted and denied to a login or server role.
    pub fn put_grants(&mut self, txn: &mut Txn, grantee: i32, grants: Vec<Grant>) -> Result<(), CatalogError> {
        put_grants(txn, Kind::ServerGrants, Arc::make_mut(&mut self.security), grantee, grants)
    }

    /// Records a setting.
    pub fn put_setting(&mut self, txn: &mut Txn, id: i32, value: i64) -> Result<(), CatalogError> {
        let mut w = Writer::new(objects::RECORD_VERSION);
        w.i32(id).i64(value);
        put(txn, Kind::Setting, id, &w.finish())?;
        self.settings.insert(id, value);
        Ok(())
    }
}
