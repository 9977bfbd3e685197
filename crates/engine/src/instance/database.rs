//! An open database: its storage, its published catalog, its counters.

use crate::instance::counters::CounterTable;
use crate::instance::index_jobs::JobTable;
use std::sync::Arc;
use thawdb_catalog::{DatabaseCatalog, DatabaseId, DatabaseRecord};
use thawdb_observe::sync::{LockClass, RwLock};
use thawdb_storage::locks::{Resource, ResourceKind};

static RECORD: LockClass = LockClass::new("DATABASE_RECORD", 5);
static CATALOG: LockClass = LockClass::new("DATABASE_CATALOG", 5);

/// Databases with lower numbers are the system's.
const FIRST_USER_DATABASE: i32 = 5;

/// An open database.
pub(crate) struct OpenDatabase {
    pub(crate) id: DatabaseId,
    pub(crate) storage: Arc<thawdb_storage::Database>,
    pub(crate) counters: CounterTable,
    /// Index operations that go on beside their tables' use.
    pub(crate) jobs: JobTable,
    record: RwLock<Arc<DatabaseRecord>>,
    catalog: RwLock<Arc<DatabaseCatalog>>,
}

impl OpenDatabase {
    pub(crate) fn new(
        record: DatabaseRecord,
        storage: Arc<thawdb_storage::Database>,
        catalog: DatabaseCatalog,
        counters: CounterTable,
    ) -> Self {
        Self {
            id: record.id,
            storage,
            counters,
            jobs: JobTable::new(),
            record: RwLock::new(&RECORD, Arc::new(record)),
            catalog: RwLock::new(&CATALOG, Arc::new(catalog)),
        }
    }

    pub(crate) fn name(&self) -> String {
        self.record.read().name.clone()
    }

    /// What master records of it.
    pub(crate) fn record(&self) -> Arc<DatabaseRecord> {
        self.record.read().clone()
    }

    pub(crate) fn set_record(&self, record: Arc<DatabaseRecord>) {
        *self.record.write() = record;
    }

    fn option(&self, name: &str, default: bool) -> bool {
        self.record.read().properties.get(name).map_or(default, |value| value == "ON")
    }

    /// Whether an option that is OFF unless set is ON.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.option(name, false)
    }

    /// READ_COMMITTED_SNAPSHOT.
    pub(crate) fn reads_versions(&self) -> bool {
        self.option("READ_COMMITTED_SNAPSHOT", true)
    }

    /// ALLOW_SNAPSHOT_ISOLATION: the system's databases always do.
    pub(crate) fn allows_snapshot(&self) -> bool {
        self.id.0 < FIRST_USER_DATABASE || self.option("ALLOW_SNAPSHOT_ISOLATION", false)
    }

    /// The committed catalog.
    pub(crate) fn catalog(&self) -> Arc<DatabaseCatalog> {
        self.catalog.read().clone()
    }

    /// Makes a catalog the committed one: after the commit of the transaction that changed it.
    pub(crate) fn publish(&self, catalog: Arc<DatabaseCatalog>) {
        *self.catalog.write() = catalog;
    }

    /// What an object's schema locks are taken on.
    pub(crate) fn object_resource(&self, object: thawdb_catalog::ObjectId) -> Resource {
        Resource {
            database: self.storage.lock_number(),
            kind: ResourceKind::Object,
            container: u64::from(object.0.cast_unsigned()),
            item: 0,
        }
    }

    /// What one changing the catalog holds until its transaction ends.
    pub(crate) fn definitions_resource(&self) -> Resource {
        Resource { database: self.storage.lock_number(), kind: ResourceKind::Metadata, container: 0, item: 0 }
    }

    /// What a session using the database holds shared, and dropping it takes exclusively.
    pub(crate) fn database_resource(&self) -> Resource {
        Resource { database: self.storage.lock_number(), kind: ResourceKind::Database, container: 0, item: 0 }
    }
}
