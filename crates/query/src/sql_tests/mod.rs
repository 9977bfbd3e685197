//! SQL in, plans and rows out: tests of the whole of this crate over the real storage.
//!
//! Each row test runs its statement with and without the optional rewrites, and by several threads, and wants the same rows.

mod dml;
mod errors;
mod json;
mod parallel;
mod plans;
mod random;
mod row_goals;
mod rows;
mod types;
mod xml;

use crate::compile::{CompileContext, Compiled, Parallelism, Settings, compile};
use crate::context::SessionInfo;
use crate::explain::explain;
use crate::testing::{DATABASE, TestHost};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use thawdb_catalog::{Catalog, ColumnDef, ColumnId, DatabaseId, IdentityDef, IndexDef, IndexId, IndexKey, ObjectId, SchemaId, TableDef};
use thawdb_storage::TreeId;
use thawdb_tsql::{ParseOptions, ast, parse_batch, parse_data_type};
use thawdb_types::{Scalar, SqlError, SqlType, TypeUse};

/// A database made for one test.
pub(super) struct Db {
    pub host: TestHost,
    catalog: Arc<Catalog>,
    variables: Vec<(String, SqlType)>,
    counts: BTreeMap<i32, u64>,
    rewrite: AtomicBool,
    /// Threads that plans may use.
    degree: AtomicU16,
    /// Compare rows without regard to case.
    pub fold_case: bool,
}

/// What the compiler is told of the session.
struct Facts<'d>(&'d Db);

impl SessionInfo for Facts<'_> {
    fn global(&self, name: &str) -> Result<Scalar, SqlError> {
        self.0.host.global(name)
    }
    fn now_utc_ticks(&self) -> i64 {
        self.0.host.now_utc_ticks()
    }
    fn local_offset_minutes(&self) -> i32 {
        0
    }
    fn date_first(&self) -> u8 {
        7
    }
    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
    fn database(&self) -> DatabaseId {
        DATABASE
    }
    fn catalog(&self, database: DatabaseId) -> Option<Arc<Catalog>> {
        (database == DATABASE).then(|| self.0.catalog.clone())
    }
    fn database_id(&self, name: &str) -> Result<Option<DatabaseId>, SqlError> {
        Ok(name.eq_ignore_ascii_case("t").then_some(DATABASE))
    }
    fn as_any(&self) -> &dyn std::any::Any {
        &()
    }
}

struct Cx<'d> {
    facts: Facts<'d>,
}

impl CompileContext for Cx<'_> {
    fn session(&self) -> &dyn SessionInfo {
        &self.facts
    }
    fn settings(&self) -> Settings {
        Settings { rewrite: self.facts.0.rewrite.load(Ordering::Relaxed), ..Settings::default() }
    }
    fn variable(&self, name: &str) -> Option<(usize, SqlType)> {
        let at = self.facts.0.variables.iter().position(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some((at, self.facts.0.variables[at].1))
    }
    fn parallelism(&self) -> Parallelism {
        // However little a plan costs: small tables are what most tests have.
        Parallelism { degree_max: self.facts.0.degree.load(Ordering::Relaxed), degree_limit: 4, cost_threshold: -1.0 }
    }
    fn row_count(&self, table: &TableDef) -> Option<u64> {
        self.facts.0.counts.get(&table.id.0).copied()
    }
}

/// `name type [null] [identity] [= default]`.
fn column(at: usize, text: &str) -> ColumnDef {
    let (head, default) = text.split_once('=').map_or((text, None), |(h, d)| (h, Some(d.trim().to_string())));
    let words: Vec<&str> = head.split_whitespace().collect();
    let data_type = parse_data_type(words[1], &ParseOptions::default()).unwrap();
    let sql_type = crate::bind::expr::resolve_type(&data_type, TypeUse::Cast).unwrap();
    ColumnDef {
        id: ColumnId(at as i32 + 1),
        name: words[0].into(),
        sql_type,
        nullable: words.contains(&"null"),
        identity: words.contains(&"identity").then_some(IdentityDef { seed: 1, increment: 1 }),
        default,
        default_name: None,
        computed: None,
        user_type: None,
    }
}

/// `name: a, b desc [include c] [unique]`; the name `heap` is the heap, the first one is the clustered index.
fn index(at: usize, text: &str, columns: &[ColumnDef]) -> IndexDef {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let unique = rest.contains("unique");
    let rest = rest.replace("unique", "");
    let (keys, included) = rest.split_once("include").unwrap_or((&rest, ""));
    let find = |n: &str| columns.iter().position(|c| c.name == n.trim()).unwrap_or_else(|| panic!("no column {n}"));
    let list = |t: &str| t.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_string).collect::<Vec<_>>();
    let key = |k: &String| IndexKey { column_index: find(k.trim_end_matches(" desc")), descending: k.ends_with(" desc") };
    IndexDef {
        id: IndexId(if name == "heap" { 0 } else { at as i32 + 1 }),
        name: (name != "heap").then(|| name.to_string()),
        keys: list(keys).iter().map(key).collect(),
        included: list(included).iter().map(|c| find(c)).collect(),
        unique,
        primary_key: name.starts_with("pk"),
        unique_constraint: false,
        filter: None,
        options: Default::default(),
        tree: TreeId(0),
    }
}

impl Db {
    pub(super) fn new(name: &str) -> Self {
        let mut catalog = Catalog::default();
        catalog.version = 7;
        Self {
            host: TestHost::new(name),
            catalog: Arc::new(catalog),
            variables: Vec::new(),
            counts: BTreeMap::new(),
            rewrite: AtomicBool::new(true),
            degree: AtomicU16::new(1),
            fold_case: false,
        }
    }

    pub(super) fn table(&mut self, name: &str, columns: &[&str], indexes: &[&str]) -> &mut Self {
        let columns: Vec<ColumnDef> = columns.iter().enumerate().map(|(i, c)| column(i, c)).collect();
        let indexes = indexes.iter().enumerate().map(|(i, t)| index(i, t, &columns)).collect();
        let id = 100 + self.catalog.tables.len() as i32;
        let def = TableDef {
            database: DATABASE,
            id: ObjectId(id),
            schema: SchemaId(1),
            schema_name: "dbo".into(),
            name: name.into(),
            columns,
            indexes,
            lock_escalation: Default::default(),
            disabled: Vec::new(),
            rows_disabled: false,
            temporal: Default::default(),
            building: None,
            created: 0,
            modified: 0,
        };
        let def = self.host.make(def);
        Arc::make_mut(&mut self.catalog).tables.insert(id, def);
        self
    }

    /// What the compiler believes a table has.
    pub(super) fn count(&mut self, table: &str, rows: u64) -> &mut Self {
        let id = self.catalog.tables.values().find(|t| t.name == table).unwrap().id.0;
        self.counts.insert(id, rows);
        self
    }

    pub(super) fn variable(&mut self, name: &str, sql_type: SqlType, value: Scalar) -> &mut Self {
        self.variables.push((name.into(), sql_type));
        self.host.variables.push(value);
        self
    }

    fn statement(sql: &str) -> ast::Stmt {
        let batch = parse_batch(sql, &ParseOptions::default());
        assert!(batch.errors.is_empty(), "{sql}: {:?}", batch.errors);
        batch.statements.into_iter().next().unwrap()
    }

    pub(super) fn compile(&self, sql: &str) -> Result<Compiled, SqlError> {
        compile(&Self::statement(sql), &Cx { facts: Facts(self) })
    }

    pub(super) fn plan(&self, sql: &str) -> String {
        let compiled = self.compile(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        explain(&compiled.node, &|_| "t".into())
    }

    /// Runs a statement that changes rows; how many.
    pub(super) fn exec(&mut self, sql: &str) -> u64 {
        self.try_exec(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).1
    }

    pub(super) fn try_exec(&mut self, sql: &str) -> Result<(Vec<Vec<Scalar>>, u64), SqlError> {
        let compiled = self.compile(sql)?;
        let result = self.host.run(&compiled.node);
        self.host.commit();
        result
    }

    /// Rows of a query as text, sorted unless it has an ORDER BY; the same with and without rewrites, and divided.
    pub(super) fn query(&mut self, sql: &str) -> Vec<String> {
        let mut results = Vec::new();
        for (rewrite, degree) in [(true, 1), (false, 1), (true, 3)] {
            self.rewrite.store(rewrite, Ordering::Relaxed);
            self.degree.store(degree, Ordering::Relaxed);
            let compiled = self.compile(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
            let text = explain(&compiled.node, &|_| "t".into());
            let rows = self.host.run(&compiled.node).unwrap_or_else(|e| panic!("{sql}: {e}\n{text}")).0;
            let mut rows: Vec<String> = rows
                .iter()
                .map(|r| r.iter().zip(&compiled.columns).map(|(v, c)| shown(v, &c.sql_type)).collect::<Vec<_>>().join("|"))
                .collect();
            let lower = sql.to_ascii_lowercase();
            // An ORDER BY of the whole stands behind the last FROM; those of OVER and WITHIN GROUP before it.
            let ordered = lower.rfind("order by").is_some_and(|at| lower.rfind("from ").is_none_or(|from| from < at));
            if self.fold_case {
                // Of values that are equal under the collation either may stand for the group.
                rows.iter_mut().for_each(|r| *r = r.to_lowercase());
            }
            if !ordered {
                rows.sort();
            }
            results.push((rows, text));
        }
        self.degree.store(1, Ordering::Relaxed);
        for (other, how) in [(1, "as written"), (2, "divided")] {
            assert_eq!(results[0].0, results[other].0, "{sql}\nrewritten:\n{}\n{how}:\n{}", results[0].1, results[other].1);
        }
        results.swap_remove(0).0
    }

    #[track_caller]
    pub(super) fn check(&mut self, sql: &str, expected: &[&str]) {
        let rows = self.query(sql);
        assert_eq!(rows, expected, "{sql}\n{}", self.plan(sql));
    }
}

fn shown(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Bit(v) => i32::from(*v).to_string(),
        Scalar::TinyInt(v) => v.to_string(),
        Scalar::SmallInt(v) => v.to_string(),
        Scalar::Int(v) => v.to_string(),
        Scalar::BigInt(v) => v.to_string(),
        Scalar::Decimal(v) => thawdb_types::convert::format_decimal(*v, sql_type.scale()),
        Scalar::Float(v) => v.to_string(),
        Scalar::Text(v) => v.to_string(),
        other => format!("{other:?}"),
    }
}
