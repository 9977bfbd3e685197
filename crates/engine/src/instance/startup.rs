//! Opening an instance: a new one is made, an old one is read, tempdb is made anew.

use crate::api::config::EngineConfig;
use crate::batch::plan_cache::PlanCache;
use crate::instance::caretaker::Caretaker;
use crate::instance::counters::{CounterTable, storage_of};
use crate::instance::database::OpenDatabase;
use crate::instance::error_log::ErrorLog;
use crate::instance::lifecycle::system_files;
use crate::instance::registry::Sessions;
use crate::instance::{
    DATABASES, Engine, MASTER, MASTER_ID, SETTINGS, SORT_FOLDER, TEMPDB_ID, UNOPENED, datetime_of, login, suspect_pages,
};
use crate::storage_error::{internal, plain};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thawdb_catalog::store::load_counters;
use thawdb_catalog::{DatabaseCatalog, DatabaseId, DatabaseRecord, DatabaseState, InstanceCatalog, Properties};
use thawdb_device::{BackgroundWork, OpenMode};
use thawdb_observe::sync::{Mutex, RwLock};
use thawdb_query::workers::WorkerBudget;
use thawdb_storage::{DatabaseSpec, FileKind, Storage, StorageConfig, StorageError};
use thawdb_types::SqlError;

/// System databases beside master and tempdb: number, name, data file, log file.
const OTHER_SYSTEM: [(i32, &str, &str, &str); 2] = [(3, "model", "model", "modellog"), (4, "msdb", "MSDBData", "MSDBLog")];

/// Stands in the data folder from before master's files are made until what master records of itself is committed.
const MAKING_MASTER: &str = "master.making";

/// Workers of an instance: one a processor, and two where there is but one, for a statement that asks for them.
pub(crate) fn workers_most() -> usize {
    processors().max(2)
}

/// Processors of the machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Opens the instance of `config`.
pub(crate) fn open(config: EngineConfig) -> Result<Arc<Engine>, SqlError> {
    let failed = |name: &'static str| move |error: StorageError| plain(name, error);
    let env = &config.env;
    env.device.create_folder(&config.data_folder).map_err(|e| plain("master", e.into()))?;
    empty_sort_folder(&config).map_err(failed("tempdb"))?;
    let storage = Storage::new(env.clone(), StorageConfig { memory_bytes_max: config.memory_bytes_max });
    let started = datetime_of(env.clock.utc_ns());
    let (master, instance) = open_master(&storage, &config, started).map_err(failed("master"))?;
    let engine = Arc::new(Engine {
        locks: storage.lock_manager().clone(),
        storage,
        sessions: Sessions::new(),
        plans: PlanCache::new(),
        settings: RwLock::new(&SETTINGS, instance.settings.clone()),
        workers: WorkerBudget::new(if env.background == BackgroundWork::Threads { workers_most() } else { 0 }),
        master: Mutex::new(&MASTER, instance),
        databases: RwLock::new(&DATABASES, BTreeMap::from([(MASTER_ID.0, Arc::new(master))])),
        unopened: Mutex::new(&UNOPENED, BTreeMap::new()),
        started,
        error_log: ErrorLog::new(),
        caretaker: Caretaker::new(),
        closed: AtomicBool::new(false),
        recording_suspects: AtomicBool::new(false),
        config,
    });
    engine.bring_up()?;
    suspect_pages::ensure_table(&engine);
    if engine.config.env.background == BackgroundWork::Threads {
        engine.caretaker.start(&engine);
    }
    Ok(engine)
}

/// Removes what sorts of an earlier run left when it was killed.
fn empty_sort_folder(config: &EngineConfig) -> Result<(), StorageError> {
    let folder = config.data_folder.join(SORT_FOLDER);
    if config.env.device.exists(&folder) {
        for name in config.env.device.list(&folder)? {
            config.env.device.remove(&folder.join(name))?;
        }
    }
    Ok(())
}

fn record(id: i32, name: &str, files: Vec<thawdb_storage::FileSpec>, created: i64, recovery: &str) -> DatabaseRecord {
    let properties = Properties::from([("RECOVERY".to_owned(), recovery.to_owned())]);
    DatabaseRecord {
        id: DatabaseId(id),
        name: name.into(),
        state: DatabaseState::Online,
        files,
        filegroups: vec![(1, "PRIMARY".into())],
        created,
        properties,
        owner_sid: vec![1],
    }
}

/// Makes a database's files with an empty catalog in them.
pub(crate) fn make_database(storage: &Arc<Storage>, record: &DatabaseRecord, temporary: bool) -> Result<OpenDatabase, StorageError> {
    let spec = DatabaseSpec { name: record.name.clone(), files: record.files.clone(), temporary };
    let database = storage.create_database(&spec)?;
    let catalog = DatabaseCatalog::empty(record.id, record.created);
    let mut txn = database.begin();
    catalog.create(&mut txn).map_err(storage_of)?;
    txn.commit()?;
    database.start_background();
    let open = OpenDatabase::new(record.clone(), database, catalog, CounterTable::new(BTreeMap::new(), !temporary));
    crate::ddl::alter_database::apply_recovery(&open)?;
    Ok(open)
}

/// Opens a database's files and reads its catalog.
fn open_database(storage: &Arc<Storage>, record: &DatabaseRecord) -> Result<OpenDatabase, StorageError> {
    let primary = record.files.iter().find(|f| matches!(f.kind, FileKind::Rows { .. }));
    let primary = primary.ok_or_else(|| StorageError::NotFound(format!("primary file of {}", record.name)))?;
    let database = storage.open_database(&primary.path)?;
    let view = database.read_view(None);
    let mut catalog = DatabaseCatalog::load(&view, record.id).map_err(storage_of)?;
    if catalog.schemas.is_empty() {
        // The instance stopped between making the files and writing the first definitions.
        catalog = DatabaseCatalog::empty(record.id, record.created);
        let mut txn = database.begin();
        catalog.create(&mut txn).map_err(storage_of)?;
        txn.commit()?;
    }
    match without_ended_builds(&database, &catalog) {
        Ok(without) => catalog = without,
        // It goes at a later start: until a log backup makes room, what it left is only kept up to date.
        Err(StorageError::LogFull { .. }) => {}
        Err(error) => return Err(error),
    }
    let counters = load_counters(&view).map_err(storage_of)?;
    // The database's own table of files is the truer one: a crash may have come before master heard of a change.
    let mut record = record.clone();
    let mut table = database.store().file_table()?;
    table.sort_by_key(|(number, _)| *number);
    record.files = table.into_iter().map(|(_, file)| file).collect();
    database.start_background();
    let open = OpenDatabase::new(record, database, catalog, CounterTable::new(counters, true));
    crate::ddl::alter_database::apply_recovery(&open)?;
    crate::ddl::filegroups::apply_read_only(&open);
    Ok(open)
}

/// The catalog without online builds that were not resumable: they ended with the instance, and what they left goes.
fn without_ended_builds(database: &Arc<thawdb_storage::Database>, catalog: &DatabaseCatalog) -> Result<DatabaseCatalog, StorageError> {
    let mut without = catalog.clone();
    let ended: Vec<_> = catalog.jobs.values().filter(|job| !job.resumable).cloned().collect();
    if ended.is_empty() {
        return Ok(without);
    }
    let mut txn = database.begin();
    for job in ended {
        without.remove_job(&mut txn, job.table).map_err(storage_of)?;
        for tree in [job.index.tree, job.side, job.runs] {
            txn.drop_tree(tree)?;
        }
    }
    txn.commit()?;
    Ok(without)
}

fn open_master(storage: &Arc<Storage>, config: &EngineConfig, now: i64) -> Result<(OpenDatabase, InstanceCatalog), StorageError> {
    let files = system_files(&config.data_folder, "master", "mastlog", "master", "mastlog");
    let device = &config.env.device;
    let making = config.data_folder.join(MAKING_MASTER);
    if device.exists(&making) {
        // A first start ended before master was whole: what there is of it was made under this mark, and holds nothing.
        for file in files.iter().filter(|file| device.exists(&file.path)) {
            device.remove(&file.path)?;
        }
        device.remove(&making)?;
    }
    if config.env.device.exists(&files[0].path) {
        let master = open_database(storage, &record(1, "master", files, now, "SIMPLE"))?;
        let mut instance = InstanceCatalog::load(&master.storage.read_view(None)).map_err(storage_of)?;
        match instance.databases.get(&MASTER_ID.0).cloned() {
            Some(stored) => {
                let folder = stored.files.first().and_then(|file| file.path.parent());
                relocate(&master, &mut instance, folder.unwrap_or(&config.data_folder), &config.data_folder)?;
                master.set_record(instance.databases[&MASTER_ID.0].clone());
            }
            None => record_master(&master, &mut instance)?,
        }
        return Ok((master, instance));
    }
    drop(device.open(&making, OpenMode::CreateNew)?);
    let record = record(1, "master", files, now, "SIMPLE");
    let master = make_database(storage, &record, false)?;
    let mut instance = InstanceCatalog::default();
    record_master(&master, &mut instance)?;
    device.remove(&making)?;
    Ok((master, instance))
}

/// Of a data folder that was moved, or copied: master names the files of all databases where they were, and nothing of the
/// original is to be touched. What lies elsewhere did not move with it.
fn relocate(master: &OpenDatabase, instance: &mut InstanceCatalog, from: &Path, to: &Path) -> Result<(), StorageError> {
    if from == to {
        return Ok(());
    }
    let mut txn = master.storage.begin();
    for listed in instance.databases.values().cloned().collect::<Vec<_>>() {
        let mut record = (*listed).clone();
        for file in &mut record.files {
            if let Ok(within) = file.path.strip_prefix(from) {
                file.path = to.join(within);
            }
        }
        instance.put_database(&mut txn, record).map_err(storage_of)?;
    }
    txn.commit()
}

fn record_master(master: &OpenDatabase, instance: &mut InstanceCatalog) -> Result<(), StorageError> {
    let mut txn = master.storage.begin();
    instance.put_database(&mut txn, (*master.record()).clone()).map_err(storage_of)?;
    txn.commit()
}

impl Engine {
    fn make_tempdb(&self) -> Result<(), StorageError> {
        let files = system_files(&self.config.data_folder, "tempdev", "templog", "tempdb", "templog");
        for file in &files {
            if self.config.env.device.exists(&file.path) {
                self.config.env.device.remove(&file.path)?;
            }
        }
        let record = record(TEMPDB_ID.0, "tempdb", files, self.started, "SIMPLE");
        let tempdb = make_database(&self.storage, &record, true)?;
        self.databases.write().insert(TEMPDB_ID.0, Arc::new(tempdb));
        Ok(())
    }

    /// Everything that master alone does not hold, side by side: it is waiting for disks, and for the password's hash.
    /// One after another where the environment has no threads to spare.
    fn bring_up(&self) -> Result<(), SqlError> {
        if self.config.env.background == BackgroundWork::Stepped {
            self.make_tempdb().map_err(|error| plain("tempdb", error))?;
            OTHER_SYSTEM.into_iter().try_for_each(|system| self.make_system_database(system))?;
            login::ensure_sa(self)?;
            return self.open_others();
        }
        std::thread::scope(|scope| {
            let tempdb = scope.spawn(|| self.make_tempdb().map_err(|error| plain("tempdb", error)));
            let made = OTHER_SYSTEM.map(|system| scope.spawn(move || self.make_system_database(system)));
            let sa = login::ensure_sa(self);
            let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<(), SqlError>>| {
                thread.join().unwrap_or_else(|_| Err(internal("a thread of the start panicked".into())))
            };
            let outcomes = [ended(tempdb)].into_iter().chain(made.map(ended)).chain([sa]);
            outcomes.into_iter().collect::<Result<(), SqlError>>()
        })?;
        self.open_others()
    }

    fn make_system_database(&self, (id, name, data, log): (i32, &str, &str, &str)) -> Result<(), SqlError> {
        if self.master.lock().databases.contains_key(&id) {
            return Ok(());
        }
        let file_name = if id == 4 { "MSDBData" } else { name };
        let files = system_files(&self.config.data_folder, data, log, file_name, log);
        self.add_database(record(id, name, files, self.started, if id == 3 { "FULL" } else { "SIMPLE" }))
    }

    fn open_others(&self) -> Result<(), SqlError> {
        let known: Vec<_> = self.master.lock().databases.values().cloned().collect();
        for record in known.iter().filter(|r| r.id.0 > TEMPDB_ID.0) {
            if self.database(record.id).is_some() {
                continue;
            }
            if record.state != DatabaseState::Online {
                self.finish_removal(record)?;
                continue;
            }
            // A database that cannot be opened must not keep the others from it: it stays listed.
            match open_database(&self.storage, record) {
                Ok(database) => drop(self.databases.write().insert(record.id.0, Arc::new(database))),
                Err(error) => self.note_unopened(record, error),
            }
        }
        Ok(())
    }
}
