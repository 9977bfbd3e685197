//! An open database: its storage, its published catalog, its counters and statistics.

use crate::instance::counters::CounterTable;
use crate::instance::index_jobs::JobTable;
use crate::instance::statistics::StatisticsTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    pub(crate) statistics: StatisticsTable,
    /// Index operations that go on beside their tables' use.
    pub(crate) jobs: JobTable,
    record: RwLock<Arc<DatabaseRecord>>,
    /// READ_COMMITTED_SNAPSHOT in `record`: every read asks.
    reads_versions: AtomicBool,
    catalog: RwLock<Arc<DatabaseCatalog>>,
    /// Version of the tables in `catalog`: changes while that is held for writing, so that readers of one agree.
    version: AtomicU64,
}

impl OpenDatabase {
    pub(crate) fn new(
        record: DatabaseRecord,
        storage: Arc<thawdb_storage::Database>,
        catalog: DatabaseCatalog,
        counters: CounterTable,
        statistics: StatisticsTable,
    ) -> Self {
        Self {
            id: record.id,
            storage,
            counters,
            statistics,
            jobs: JobTable::new(),
            reads_versions: AtomicBool::new(reads_versions(&record)),
            record: RwLock::new(&RECORD, Arc::new(record)),
            version: AtomicU64::new(catalog.tables.version),
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
        let mut kept = self.record.write();
        // Relaxed: a statement that runs meanwhile reads by either.
        self.reads_versions.store(reads_versions(&record), Ordering::Relaxed);
        *kept = record;
    }

    /// Whether an option that is OFF unless set is ON.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        option(&self.record.read(), name, false)
    }

    /// READ_COMMITTED_SNAPSHOT.
    pub(crate) fn reads_versions(&self) -> bool {
        self.reads_versions.load(Ordering::Relaxed)
    }

    /// ALLOW_SNAPSHOT_ISOLATION: the system's databases always do.
    pub(crate) fn allows_snapshot(&self) -> bool {
        self.id.0 < FIRST_USER_DATABASE || option(&self.record.read(), "ALLOW_SNAPSHOT_ISOLATION", false)
    }

    /// The committed catalog.
    pub(crate) fn catalog(&self) -> Arc<DatabaseCatalog> {
        self.catalog.read().clone()
    }

    /// Makes a catalog the committed one: after the commit of the transaction that changed it.
    pub(crate) fn publish(&self, catalog: Arc<DatabaseCatalog>) {
        let mut published = self.catalog.write();
        // Release: who finds the version finds the catalog. A session that read the old one holds off the definition's change
        // (`storage::locks::brief`) or meets the new one when it has its lock.
        self.version.store(catalog.tables.version, Ordering::Release);
        let same = published.security.version == catalog.security.version;
        *published = catalog;
        drop(published);
        if !same {
            crate::security::context::changed();
        }
    }

    /// Version of the tables in the committed catalog.
    #[inline]
    pub(crate) fn catalog_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
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

fn option(record: &DatabaseRecord, name: &str, default: bool) -> bool {
    record.properties.get(name).map_or(default, |value| value == "ON")
}

fn reads_versions(record: &DatabaseRecord) -> bool {
    option(record, "READ_COMMITTED_SNAPSHOT", true)
}
