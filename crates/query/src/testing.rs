//! A host, a table and short ways to write plans, for the tests of this crate.

use crate::context::{SessionInfo, StatementHost};
use crate::exec::{Batch, run};
use crate::expr::{ArithmeticOp, CompareOp, Expr, ExprKind};
use crate::phys::{Node, NodeKind, OutputColumn, SeekBound, SeekRange};
use crate::workers::WorkerBudget;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use thawdb_catalog::{Catalog, ColumnDef, ColumnId, DatabaseId, IdentityDef, IndexDef, IndexId, IndexKey, ObjectId, SchemaId, TableDef};
use thawdb_device::Env;
use thawdb_storage::{Database, DatabaseSpec, FileKind, FileSpec, ReadView, Storage, StorageConfig, StorageError, TreeSpec, Txn};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

pub(crate) const DATABASE: DatabaseId = DatabaseId(5);

/// A session over one database.
pub(crate) struct TestHost {
    env: Env,
    pub(crate) database: Arc<Database>,
    txn: Option<Txn>,
    pub(crate) variables: Vec<Scalar>,
    identity: i64,
    pub(crate) last_identity: Option<i64>,
    row_number: u64,
    pub(crate) messages: Vec<i32>,
    pub(crate) memory_bytes: usize,
    /// Of the last plan that ran: bytes spilled, and the most memory its operators accounted for.
    pub(crate) spilled_bytes: u64,
    pub(crate) memory_bytes_peak: usize,
    /// Of the last plan: threads beside its own, and pages looked at.
    pub(crate) workers: usize,
    pub(crate) logical_reads: u64,
    /// Rows that the scans of the last plan handed on.
    pub(crate) rows_read: u64,
    pub(crate) budget: Arc<WorkerBudget>,
    /// Looks at whether the statement is cancelled that find it is not; none ever does below zero.
    pub(crate) looks_left: AtomicI64,
    folder: PathBuf,
}

impl TestHost {
    pub(crate) fn new(name: &str) -> Self {
        let env = thawdb_device::os::env();
        let folder = std::env::temp_dir().join(format!("thawdb-query-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let storage = Storage::new(env.clone(), StorageConfig { memory_bytes_max: 256 << 20 });
        let file = |name: &str, kind| FileSpec {
            name: name.into(),
            path: folder.join(name),
            kind,
            size_bytes: 16 << 20,
            size_bytes_max: None,
            growth_bytes: 16 << 20,
        };
        let files = vec![file("t.mdf", FileKind::Rows { filegroup: 1 }), file("t.ldf", FileKind::Log)];
        let database = storage.create_database(&DatabaseSpec { name: "t".into(), files, temporary: false }).unwrap();
        Self {
            env,
            database,
            txn: None,
            variables: Vec::new(),
            identity: 1,
            last_identity: None,
            row_number: 1,
            messages: Vec::new(),
            memory_bytes: 64 << 20,
            spilled_bytes: 0,
            memory_bytes_peak: 0,
            workers: 0,
            logical_reads: 0,
            rows_read: 0,
            budget: WorkerBudget::new(4),
            looks_left: AtomicI64::new(-1),
            folder,
        }
    }

    /// Makes the trees of a table's indexes.
    pub(crate) fn make(&mut self, mut table: TableDef) -> Arc<TableDef> {
        let mut txn = self.database.begin();
        for index in &mut table.indexes {
            index.tree = txn.create_tree(TreeSpec { object_id: 100, index_id: index.id.0 as u32, filegroup: 1 }).unwrap();
        }
        txn.commit().unwrap();
        Arc::new(table)
    }

    /// A folder of the test's own.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    pub(crate) fn commit(&mut self) {
        if let Some(txn) = self.txn.take() {
            txn.commit().unwrap();
        }
    }

    /// Runs a plan to its end: its rows and the count of rows affected.
    pub(crate) fn run(&mut self, plan: &Node) -> Result<(Vec<Vec<Scalar>>, u64), SqlError> {
        let mut execution = run(plan, self)?;
        execution.count_reads();
        let mut rows = Vec::new();
        while let Some(batch) = execution.next(self)? {
            rows.extend(rows_of(&batch, &plan.columns));
        }
        (self.spilled_bytes, self.memory_bytes_peak) = execution.spilled_and_peak_bytes();
        self.workers = execution.workers();
        self.rows_read = execution.reads().map_or(0, |reads| reads.tables().iter().map(|table| table.rows).sum());
        self.logical_reads = execution.reads().map_or(0, |reads| reads.tables().iter().map(|table| table.pages.logical).sum());
        Ok((rows, execution.rows_affected()))
    }

    pub(crate) fn rows(&mut self, plan: &Node) -> Vec<Vec<Scalar>> {
        self.run(plan).unwrap().0
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.txn = None;
        let _ = self.database.close();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn rows_of(batch: &Batch, columns: &[OutputColumn]) -> Vec<Vec<Scalar>> {
    let row = |row: usize| batch.columns.iter().zip(columns).map(|(a, c)| scalar_at(a.as_ref(), row, &c.sql_type)).collect();
    (0..batch.rows).map(row).collect()
}

impl SessionInfo for TestHost {
    fn global(&self, name: &str) -> Result<Scalar, SqlError> {
        match name {
            "@@spid" => Ok(Scalar::SmallInt(51)),
            "db_name" => Ok(Scalar::text("t")),
            _ => Err(message(137, &[&name])),
        }
    }
    fn now_utc_ticks(&self) -> i64 {
        638_000_000_000_000_000
    }
    fn local_offset_minutes(&self) -> i32 {
        60
    }
    fn date_first(&self) -> u8 {
        7
    }
    fn random(&self, bytes: &mut [u8]) {
        self.env.random.fill(bytes);
    }
    fn database(&self) -> DatabaseId {
        DATABASE
    }
    fn catalog(&self, _database: DatabaseId) -> Option<Arc<Catalog>> {
        None
    }
    fn database_id(&self, _name: &str) -> Result<Option<DatabaseId>, SqlError> {
        Ok(None)
    }
    fn as_any(&self) -> &dyn std::any::Any {
        &()
    }
}

impl StatementHost for TestHost {
    fn read_view(&self, _database: DatabaseId) -> Result<ReadView, SqlError> {
        Ok(self.database.read_view(self.txn.as_ref()))
    }
    fn txn(&mut self, _database: DatabaseId) -> Result<&mut Txn, SqlError> {
        let database = &self.database;
        Ok(self.txn.get_or_insert_with(|| database.begin()))
    }
    fn next_identity(&mut self, _database: DatabaseId, _table: ObjectId, count: u64) -> Result<i64, SqlError> {
        self.identity += count as i64;
        Ok(self.identity - count as i64)
    }
    fn note_identity(&mut self, _database: DatabaseId, _table: ObjectId, value: i64) -> Result<(), SqlError> {
        self.identity = self.identity.max(value + 1);
        Ok(())
    }
    fn set_last_identity(&mut self, value: i64) {
        self.last_identity = Some(value);
    }
    fn next_row_number(&mut self, _database: DatabaseId, _table: ObjectId, count: u64) -> Result<u64, SqlError> {
        self.row_number += count;
        Ok(self.row_number - count)
    }
    fn identity_insert(&self, _database: DatabaseId, _table: ObjectId) -> bool {
        false
    }
    fn check_cancelled(&self) -> Result<(), SqlError> {
        let less = |left: i64| (left >= 0).then(|| (left - 1).max(0));
        match self.looks_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(0) => Err(message(3617, &[])),
            _ => Ok(()),
        }
    }
    fn worker_budget(&self) -> Option<Arc<WorkerBudget>> {
        Some(self.budget.clone())
    }
    fn variable(&self, index: usize) -> Scalar {
        self.variables[index].clone()
    }
    fn set_variable(&mut self, index: usize, value: Scalar) {
        self.variables[index] = value;
    }
    fn info(&mut self, message: SqlError) {
        self.messages.push(message.number);
    }
    fn session(&self) -> &dyn SessionInfo {
        self
    }
    fn memory_grant_bytes(&self) -> usize {
        self.memory_bytes
    }
    fn storage_error(&self, _database: DatabaseId, error: StorageError) -> SqlError {
        SqlError { number: 0, severity: 20, state: 1, text: error.to_string(), line: 0, procedure: None }
    }
    fn env(&self) -> &Env {
        &self.env
    }
}

/// A table `dbo.name` of these columns (name, type, nullable); its first index is a heap until [`with_index`] is called.
pub(crate) fn table(name: &str, columns: &[(&str, SqlType, bool)]) -> TableDef {
    let column = |(at, (name, sql_type, nullable)): (usize, &(&str, SqlType, bool))| ColumnDef {
        id: ColumnId(at as i32 + 1),
        name: (*name).into(),
        sql_type: *sql_type,
        nullable: *nullable,
        identity: None,
        default: None,
        default_name: None,
        computed: None,
        user_type: None,
    };
    TableDef {
        database: DATABASE,
        id: ObjectId(1000),
        schema: SchemaId(1),
        schema_name: "dbo".into(),
        name: name.into(),
        columns: columns.iter().enumerate().map(column).collect(),
        indexes: vec![index(0, &[], false)],
        lock_escalation: Default::default(),
        disabled: Vec::new(),
        rows_disabled: false,
        temporal: Default::default(),
        building: None,
        created: 0,
        modified: 0,
    }
}

fn index(id: i32, keys: &[(usize, bool)], unique: bool) -> IndexDef {
    IndexDef {
        id: IndexId(id),
        name: (id > 0).then(|| format!("ix{id}")),
        keys: keys.iter().map(|(column_index, descending)| IndexKey { column_index: *column_index, descending: *descending }).collect(),
        included: Vec::new(),
        unique,
        primary_key: false,
        unique_constraint: false,
        filter: None,
        options: Default::default(),
        tree: Database::ROOT_TREE,
    }
}

/// The table with a clustered key.
pub(crate) fn clustered(mut table: TableDef, keys: &[usize], unique: bool) -> TableDef {
    let keys: Vec<(usize, bool)> = keys.iter().map(|k| (*k, false)).collect();
    table.indexes[0] = IndexDef { primary_key: unique, ..index(1, &keys, unique) };
    table
}

/// The table with one index more.
pub(crate) fn with_index(mut table: TableDef, keys: &[(usize, bool)], included: &[usize], unique: bool) -> TableDef {
    let id = table.indexes.len() as i32 + 1;
    table.indexes.push(IndexDef { included: included.to_vec(), ..index(id, keys, unique) });
    table
}

/// The table with an identity column.
pub(crate) fn with_identity(mut table: TableDef, column: usize) -> TableDef {
    table.columns[column].identity = Some(IdentityDef { seed: 1, increment: 1 });
    table
}

pub(crate) fn expr(kind: ExprKind, sql_type: SqlType) -> Expr {
    Expr { kind, sql_type, nullable: true }
}

pub(crate) fn column(at: usize, sql_type: SqlType) -> Expr {
    expr(ExprKind::Column(at), sql_type)
}

pub(crate) fn int(value: i32) -> Expr {
    expr(ExprKind::Literal(Scalar::Int(value)), SqlType::Int)
}

pub(crate) fn literal(value: Scalar, sql_type: SqlType) -> Expr {
    expr(ExprKind::Literal(value), sql_type)
}

pub(crate) fn text(value: &str) -> Expr {
    literal(Scalar::text(value), SqlType::varchar(100))
}

pub(crate) fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Compare { op, left: Box::new(left), right: Box::new(right) }, SqlType::Bit)
}

pub(crate) fn arithmetic(op: ArithmeticOp, left: Expr, right: Expr) -> Expr {
    let sql_type = left.sql_type;
    expr(ExprKind::Arithmetic { op, left: Box::new(left), right: Box::new(right) }, sql_type)
}

pub(crate) fn node(kind: NodeKind, types: &[SqlType]) -> Node {
    let column = |sql_type: &SqlType| OutputColumn { name: String::new(), sql_type: *sql_type, nullable: true, identity: false };
    Node { kind, columns: types.iter().map(column).collect(), rows_estimate: 1.0 }
}

/// VALUES of literals.
pub(crate) fn values(types: &[SqlType], rows: &[Vec<Scalar>]) -> Node {
    let rows = rows.iter().map(|row| row.iter().zip(types).map(|(v, t)| literal(v.clone(), *t)).collect()).collect();
    node(NodeKind::Values { rows }, types)
}

/// A scan of these columns; beyond the last column is the locator.
pub(crate) fn scan(table: &Arc<TableDef>, index: usize, columns: &[usize]) -> Node {
    let types: Vec<SqlType> =
        columns.iter().map(|c| table.columns.get(*c).map_or(SqlType::varbinary(1700), |column| column.sql_type)).collect();
    let kind = NodeKind::TableScan {
        table: table.clone(),
        index,
        ranges: Vec::new(),
        columns: columns.to_vec(),
        residual: None,
        backward: false,
        locking: crate::locking::LockHints::default(),
    };
    node(kind, &types)
}

/// The same scan under a predicate.
pub(crate) fn where_(mut scan: Node, predicate: Expr) -> Node {
    let NodeKind::TableScan { residual, .. } = &mut scan.kind else { panic!("a scan") };
    *residual = Some(predicate);
    scan
}

/// The same scan in ranges.
pub(crate) fn within(mut scan: Node, of: Vec<SeekRange>) -> Node {
    let NodeKind::TableScan { ranges, .. } = &mut scan.kind else { panic!("a scan") };
    *ranges = of;
    scan
}

pub(crate) fn bound(values: Vec<Expr>, inclusive: bool) -> Option<SeekBound> {
    Some(SeekBound { values, inclusive })
}

/// INSERT INTO table VALUES: every column given.
pub(crate) fn insert(table: &Arc<TableDef>, rows: &[Vec<Scalar>]) -> Node {
    let types: Vec<SqlType> = table.columns.iter().map(|c| c.sql_type).collect();
    let targets = (0..types.len()).collect();
    let input = Box::new(values(&types, rows));
    node(
        NodeKind::Insert {
            table: table.clone(),
            input,
            targets,
            defaults: Vec::new(),
            computed: Vec::new(),
            passed: Vec::new(),
            output: Vec::new(),
        },
        &[],
    )
}

/// Rows of integers.
pub(crate) fn ints(rows: &[&[i32]]) -> Vec<Vec<Scalar>> {
    rows.iter().map(|row| row.iter().map(|v| Scalar::Int(*v)).collect()).collect()
}
