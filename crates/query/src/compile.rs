//! The door of plan production: a statement's tree in, a plan out.
//!
//! ```text
//! ast::Stmt ── bind ──► BoundStmt (algebra) ── optimize ──► lower ──► Compiled { phys::Node, ... }
//! ```
//!
//! Invariants: compiling changes nothing and reads no rows; everything a plan depends on besides the text is named in
//! [`Compiled::dependencies`], so that a cache knows when a plan is stale; the same inputs give the same plan.
//!
//! Locks: none; catalogs are immutable snapshots. Failure: a [`SqlError`] with SQL Server's number and the line of what
//! is wrong. What the language has and we have not built yet is refused by 40517-free, honest numbers: see `bind::error`.

use crate::access::{AccessNeed, Remembered};
use crate::algebra::Columns;
pub use crate::bind::computed::ComputedFacts;
use crate::bind::computed::facts_of;
use crate::bind::statement::BoundStmt;
use crate::bind::{Binder, error};
use crate::context::SessionInfo;
use crate::exec::PointRead;
use crate::expr::Expr;
use crate::optimize;
use crate::phys::{Node, OutputColumn, RowSource};
use crate::usage::PlanUsage;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_catalog::{ColumnDef, DatabaseId, ObjectId, SchemaId, TableDef, TableStatistics};
use thawdb_tsql::ast;
use thawdb_types::convert::DateOrder;
use thawdb_types::{Scalar, SqlError, SqlType};

/// Session options that change what a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// SET ANSI_NULLS: off makes `= NULL` mean `IS NULL`.
    pub ansi_nulls: bool,
    /// SET CONCAT_NULL_YIELDS_NULL.
    pub concat_null_yields_null: bool,
    /// SET ANSI_NULL_DFLT_ON: columns of SELECT INTO and CREATE TABLE.
    pub ansi_null_default: bool,
    /// The schema in which names without one are looked for first.
    pub default_schema: SchemaId,
    /// SET DATEFORMAT.
    pub date_order: DateOrder,
    /// Optional rewrites; off gives the plan as written, which must have the same result.
    pub rewrite: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ansi_nulls: true,
            concat_null_yields_null: true,
            ansi_null_default: true,
            default_schema: SchemaId(1),
            date_order: DateOrder::Mdy,
            rewrite: true,
        }
    }
}

/// How many threads a plan may use.
#[derive(Debug, Clone, Copy)]
pub struct Parallelism {
    /// What the server is set to: 1 for plans of one thread.
    pub degree_max: u16,
    /// What OPTION (MAXDOP) may ask for at most.
    pub degree_limit: u16,
    /// What a plan of one thread must cost more than, in SQL Server's units.
    pub cost_threshold: f64,
}

impl Parallelism {
    /// One thread, whatever a hint says.
    pub const NONE: Self = Self { degree_max: 1, degree_limit: 1, cost_threshold: f64::INFINITY };

    /// The same as a statement's hint has it.
    fn hinted(self, hints: &[ast::QueryHint]) -> Self {
        let max_dop = hints.iter().find_map(|hint| match hint {
            ast::QueryHint::Value(name, expr) if name.eq_ignore_ascii_case("MAXDOP") => match &expr.kind {
                ast::ExprKind::Literal(ast::Literal::Integer(degree)) => u16::try_from(*degree).ok(),
                _ => None,
            },
            _ => None,
        });
        let degree_max = match max_dop {
            None => self.degree_max,
            Some(0) => self.degree_limit,
            Some(degree) => degree.min(self.degree_limit),
        };
        Self { degree_max, ..self }
    }
}

/// A view as the binder needs it.
#[derive(Debug, Clone)]
pub struct ViewText {
    /// Its number.
    pub id: ObjectId,
    /// What was said when it was made.
    pub definition: Arc<ast::CreateView>,
}

/// A view WITH CHECK OPTION that rows written to a table must be in afterwards.
#[derive(Debug)]
pub struct ViewCheck {
    /// The view.
    pub view: ViewText,
    /// Its database.
    pub database: DatabaseId,
    /// Its schema.
    pub schema: String,
    /// The table.
    pub table: Arc<TableDef>,
}

/// A parameter of a user's function.
#[derive(Debug, Clone)]
pub struct UserParameter {
    /// Its name with the `@`.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// What DEFAULT means for it, if anything.
    pub default: Option<ast::Expr>,
    /// Whether it is a table-valued parameter: the number of a table variable is its value.
    pub table: bool,
}

/// A user's function as the binder needs it.
#[derive(Debug, Clone)]
pub struct UserFunction {
    /// Its number.
    pub id: ObjectId,
    /// Its parameters in order.
    pub parameters: Vec<UserParameter>,
    /// What it gives.
    pub kind: UserFunctionKind,
}

/// What a user's function gives.
#[derive(Debug, Clone)]
pub enum UserFunctionKind {
    /// A value of this type.
    Scalar(SqlType),
    /// The rows of a query over its parameters.
    Inline(Arc<ast::Query>),
    /// Rows that running its body gives.
    Rows(Arc<dyn RowSource>),
}

/// What a statement does to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // each is the statement of its name
pub enum ChangeAction {
    Insert,
    Update,
    Delete,
}

/// Which triggers an action on a table or view has.
#[derive(Debug, Clone, Copy, Default)]
pub struct TriggerKinds {
    /// AFTER triggers.
    pub after: bool,
    /// An INSTEAD OF trigger that is not running already.
    pub instead: bool,
}

/// What compiling asks of the session above.
pub trait CompileContext {
    /// Catalogs, the current database, facts of the session.
    fn session(&self) -> &dyn SessionInfo;
    /// The user's default schema.
    fn default_schema(&self) -> Arc<str> {
        Arc::from("dbo")
    }
    /// Options that change what a text means.
    fn settings(&self) -> Settings {
        Settings::default()
    }
    /// Position and type of a variable or parameter; the name has its `@`.
    fn variable(&self, name: &str) -> Option<(usize, SqlType)>;
    /// Whether names must have two parts, and `*` is not allowed: WITH SCHEMABINDING.
    fn is_schema_bound(&self) -> bool {
        false
    }
    /// Whether the statement is the engine's own, which keeps old rows in a history.
    fn writes_history(&self) -> bool {
        false
    }
    /// The number of a parameter that nobody has declared, where the question is what type it has.
    fn undeclared(&self, name: &str) -> Option<usize> {
        let _ = name;
        None
    }
    /// Rows that the running scope holds under a bare name: `inserted` and `deleted` in a trigger.
    fn rowset(&self, name: &str) -> Option<Arc<dyn RowSource>> {
        let _ = name;
        None
    }
    /// The table whose rows the rowset of a name has, where that is a trigger's.
    fn rowset_table(&self, name: &str) -> Option<Arc<TableDef>> {
        let _ = name;
        None
    }
    /// Whether the statement that fired the running trigger set the column; `None` outside triggers.
    fn updated(&self, column: &str) -> Option<bool> {
        let _ = column;
        None
    }
    /// A catalog or management view, by its schema and name (`sys`, `INFORMATION_SCHEMA`; `dbo` for `sysobjects`).
    fn source(&self, database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
        let _ = (database, schema, name);
        None
    }
    /// A table-valued function, by its schema (empty if none was written) and name.
    fn table_function(&self, database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
        let _ = (database, schema, name);
        None
    }
    /// A view, by its schema and name.
    fn view(&self, database: DatabaseId, schema: &str, name: &str) -> Option<ViewText> {
        let _ = (database, schema, name);
        None
    }
    /// A function of the user's, by its schema and name.
    fn user_function(&self, database: DatabaseId, schema: &str, name: &str) -> Result<Option<UserFunction>, SqlError> {
        let _ = (database, schema, name);
        Ok(None)
    }
    /// The synonym of this schema and name: its number and what it stands for.
    fn synonym(&self, database: DatabaseId, schema: &str, name: &str) -> Option<(ObjectId, ast::ObjectName)> {
        let _ = (database, schema, name);
        None
    }
    /// The sequence of this schema and name: its number and the type of its values.
    fn sequence(&self, database: DatabaseId, schema: &str, name: &str) -> Option<(ObjectId, SqlType)> {
        let _ = (database, schema, name);
        None
    }
    /// The table behind a local or global temporary name, which begins with `#`.
    fn temp_table(&self, name: &str) -> Option<Arc<TableDef>> {
        let _ = name;
        None
    }
    /// The table behind a table variable; the name has its `@`.
    fn table_variable(&self, name: &str) -> Option<Arc<TableDef>> {
        let _ = name;
        None
    }
    /// Whether a table variable is a table-valued parameter, which is READONLY.
    fn is_read_only(&self, name: &str) -> bool {
        let _ = name;
        false
    }
    /// Whether SET IDENTITY_INSERT is ON for the table.
    fn identity_insert(&self, table: &TableDef) -> bool {
        let _ = table;
        false
    }
    /// The row that a cursor stands on, of a table that WHERE CURRENT OF is to change.
    fn cursor_row(&self, cursor: &ast::CursorName, table: &TableDef) -> Result<CursorRow, SqlError> {
        let (_, _) = (cursor, table);
        Err(thawdb_types::message(16_945, &[]))
    }
    /// The enabled triggers that such a change of a table or view fires.
    fn triggers(&self, database: DatabaseId, object: ObjectId, action: ChangeAction) -> TriggerKinds {
        let (_, _, _) = (database, object, action);
        TriggerKinds::default()
    }
    /// How many threads a plan may use.
    fn parallelism(&self) -> Parallelism {
        Parallelism::NONE
    }
    /// Whether what an expression needs is allowed: it has no plan that could be asked about later.
    fn allow(&self, needs: &[AccessNeed]) -> Result<(), SqlError> {
        let _ = needs;
        Ok(())
    }
    /// What is known of the values in a table's columns.
    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        let _ = table;
        None
    }
    /// The optimizer uses what is known of the values in a column.
    fn use_statistics(&self, table: &TableDef, column: usize) {
        let (_, _) = (table, column);
    }
    /// The optimizer would have liked to know of the values in a column.
    fn want_statistics(&self, table: &TableDef, column: usize) {
        let (_, _) = (table, column);
    }
    /// What the statistics told so far depend on.
    fn stamps(&self) -> Vec<Stamp> {
        Vec::new()
    }
    /// Rows a table has, about; `None` if nobody has counted.
    fn row_count(&self, table: &TableDef) -> Option<u64> {
        let _ = table;
        None
    }
    /// Pages that are set aside for the rows of a table, in extents of eight; `None` if nobody knows. Asked without a look at
    /// the pages themselves: a plan is made before the statement reads, and what that reads is counted as its own.
    fn page_count(&self, table: &TableDef) -> Option<u64> {
        let _ = table;
        None
    }
}

/// A table that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Its database.
    pub database: DatabaseId,
    /// Version of that database's catalog when the plan was made.
    pub catalog_version: u64,
    /// The table.
    pub table: ObjectId,
    /// Whether the plan changes its rows.
    pub writes: bool,
    /// Whether it is to be locked whole for that (TABLOCK on the target of INSERT).
    pub whole: bool,
}

/// What running a compiled statement means to the client.
#[derive(Debug, Clone)]
pub enum CompiledKind {
    /// Rows go to the client; the count of rows is told.
    Rows,
    /// Variables are assigned; the count of rows is told.
    Assign,
    /// Rows of a table were inserted. With `output` rows go to the client as well.
    Insert {
        /// OUTPUT without INTO.
        output: bool,
    },
    /// Rows of a table were updated.
    Update {
        /// OUTPUT without INTO.
        output: bool,
    },
    /// Rows of a table were deleted.
    Delete {
        /// OUTPUT without INTO.
        output: bool,
    },
    /// Rows of a table were inserted, updated and deleted.
    Merge {
        /// OUTPUT without INTO.
        output: bool,
    },
    /// SELECT INTO: make the table with these columns, then run [`insert_all`] of the node into it.
    SelectInto {
        /// The name as written.
        table: ast::ObjectName,
        /// Definitions of its columns.
        columns: Vec<ColumnDef>,
    },
}

/// A statement ready to run.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The plan.
    pub node: Node,
    /// What its running means.
    pub kind: CompiledKind,
    /// Columns of the rows for the client; empty if there are none.
    pub columns: Vec<OutputColumn>,
    /// What the plan depends on, sorted.
    pub dependencies: Vec<Dependency>,
    /// The plan as a read of one row, if it is one.
    pub point: Option<Arc<PointRead>>,
    /// Its runs.
    pub usage: PlanUsage,
    /// What has to be allowed to who runs it.
    pub needs: Vec<AccessNeed>,
    /// Who was allowed it.
    pub remembered: Remembered,
    /// What it was made of besides definitions.
    pub stamps: Vec<Stamp>,
    /// The view that rows it writes must be in.
    pub view_check: Option<Arc<ViewCheck>>,
}

impl Compiled {
    /// Whether what the plan was made of is of the present: if not it is still right, but another might be faster.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.stamps.iter().all(Stamp::is_fresh)
    }
}

/// A number that rises when plans should be made again, as it was when a plan was made.
#[derive(Debug, Clone)]
pub struct Stamp {
    now: Arc<AtomicU64>,
    seen: u64,
}

impl Stamp {
    /// The number as it is.
    pub fn of(now: &Arc<AtomicU64>) -> Self {
        Self { now: now.clone(), seen: now.load(Ordering::Relaxed) }
    }

    /// Whether it is still what it was.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        // Relaxed: a plan found old one statement late is as right as before.
        self.now.load(Ordering::Relaxed) == self.seen
    }
}

/// Compiles a query or a statement that changes rows: SELECT, INSERT, UPDATE, DELETE, MERGE.
///
/// # Errors
/// What is wrong with the statement, as SQL Server would say it.
pub fn compile(stmt: &ast::Stmt, cx: &dyn CompileContext) -> Result<Compiled, SqlError> {
    let mut binder = Binder::new(cx, stmt.span.line);
    let bound = bind(stmt, &mut binder)?;
    let mut compiled = finish(bound, binder, cx)?;
    compiled.stamps = cx.stamps();
    let parallelism = cx.parallelism().hinted(hints_of(stmt));
    if compiled.point.is_none() && parallelism.degree_max > 1 {
        compiled.node = optimize::parallel::divide(compiled.node, &parallelism, cx);
    }
    Ok(compiled)
}

fn bind(stmt: &ast::Stmt, binder: &mut Binder<'_>) -> Result<BoundStmt, SqlError> {
    match &stmt.kind {
        ast::StmtKind::Select(query) => binder.bind_select_statement(query),
        ast::StmtKind::Insert(insert) => binder.bind_insert(insert),
        ast::StmtKind::Update(update) => binder.bind_update(update),
        ast::StmtKind::Delete(delete) => binder.bind_delete(delete),
        ast::StmtKind::Merge(merge) => binder.bind_merge(merge),
        _ => Err(error::not_built("this statement", stmt.span)),
    }
}

/// The types that the undeclared parameters of a statement should have, by the numbers that the context gives them; `names`
/// are theirs.
///
/// # Errors
/// What is wrong with the statement; 11502 and 11503 for parameters whose places tell no type.
pub fn undeclared_types(
    stmt: &ast::Stmt,
    cx: &dyn CompileContext,
    names: impl FnOnce() -> Vec<String>,
) -> Result<Vec<(usize, SqlType)>, SqlError> {
    let mut binder = Binder::new(cx, stmt.span.line);
    let bound = bind(stmt, &mut binder)?;
    cx.allow(&binder.take_needs())?;
    crate::bind::undeclared::types_of(&bound, &names(), stmt.span)
}

/// OPTION (...) of a statement.
fn hints_of(stmt: &ast::Stmt) -> &[ast::QueryHint] {
    match &stmt.kind {
        ast::StmtKind::Select(query) => &query.hints,
        ast::StmtKind::Insert(insert) => &insert.hints,
        ast::StmtKind::Update(update) => &update.hints,
        ast::StmtKind::Delete(delete) => &delete.hints,
        ast::StmtKind::Merge(merge) => &merge.hints,
        _ => &[],
    }
}

/// A table whose rows can be changed through a cursor.
#[derive(Debug, Clone)]
pub struct CursorTable {
    /// Its database.
    pub database: DatabaseId,
    /// The table.
    pub table: ObjectId,
    /// Column of the cursor's rows that holds the locator.
    pub locator: usize,
    /// Position in the table, and column of the cursor's rows, of each column of the clustered key.
    pub keys: Vec<(usize, usize)>,
}

/// A row that a cursor stands on.
#[derive(Debug, Clone)]
pub struct CursorRow {
    /// Where it is.
    pub locator: Vec<u8>,
    /// Position in the table and value of the columns of the clustered key.
    pub keys: Vec<(usize, Scalar)>,
}

/// Compiles the query of a cursor. Columns that the tables named beside the plan speak of stand behind those of the
/// select list; `updatable` asks for them.
///
/// # Errors
/// What is wrong with the query.
pub fn compile_cursor(
    query: &ast::Query,
    updatable: bool,
    line: u32,
    cx: &dyn CompileContext,
) -> Result<(Compiled, Vec<CursorTable>), SqlError> {
    let mut binder = Binder::new(cx, line);
    let (rel, outputs, tables) = binder.bind_cursor_query(query, updatable)?;
    let compiled = finish(BoundStmt::Query { rel, outputs }, binder, cx)?;
    Ok((compiled, tables))
}

fn finish(bound: BoundStmt, mut binder: Binder<'_>, cx: &dyn CompileContext) -> Result<Compiled, SqlError> {
    let needs = binder.take_needs();
    let view_check = binder.view_check.take();
    let (columns, dependencies) = binder.finish();
    let mut compiled = optimize::plan_statement(bound, columns, cx)?;
    let only_reads = matches!(compiled.kind, CompiledKind::Rows | CompiledKind::Assign) && dependencies.len() == 1;
    compiled.point = if only_reads { PointRead::of(&compiled.node).map(Arc::new) } else { None };
    compiled.dependencies = dependencies;
    compiled.needs = needs;
    compiled.view_check = view_check;
    Ok(compiled)
}

/// Compiles the query for those of `rows`, new rows of the table, that the view would not show.
///
/// # Errors
/// What is wrong with the view by now.
pub fn compile_view_check(check: &ViewCheck, rows: Arc<dyn RowSource>, cx: &dyn CompileContext) -> Result<Compiled, SqlError> {
    let mut binder = Binder::new(cx, 0);
    let (rel, outputs) = binder.rows_outside_view(check, rows)?;
    finish(BoundStmt::Query { rel, outputs }, binder, cx)
}

/// Whether rows can be changed through a view of this query.
///
/// # Errors
/// 4510 if not; what is wrong with the query.
pub fn check_updatable(query: &ast::Query, cx: &dyn CompileContext) -> Result<(), SqlError> {
    Binder::new(cx, query.span.line).check_updatable(query)
}

/// Compiles an expression outside a query: of IF, WHILE, SET, DECLARE, PRINT, RETURN. A condition has type `bit`;
/// subqueries may be inside.
///
/// # Errors
/// What is wrong with it.
pub fn bind_scalar(expr: &ast::Expr, cx: &dyn CompileContext) -> Result<Expr, SqlError> {
    let mut binder = Binder::new(cx, expr.span.line);
    let bound = if expr.kind.is_condition() { binder.bind_condition(expr)? } else { binder.bind_expr(expr)? };
    cx.allow(&binder.take_needs())?;
    let (columns, _) = binder.finish();
    optimize::plan_scalar(bound, columns, cx)
}

/// Like [`bind_scalar`], with the value converted to `target` as an assignment does (SET, DECLARE, arguments).
///
/// # Errors
/// What is wrong with it; 206 or 257 if it does not convert by itself.
pub fn bind_assignment(expr: &ast::Expr, target: SqlType, cx: &dyn CompileContext) -> Result<Expr, SqlError> {
    let mut binder = Binder::new(cx, expr.span.line);
    let bound = binder.bind_expr(expr)?;
    let bound = crate::bind::coerce::assign(bound, target, expr.span)?;
    cx.allow(&binder.take_needs())?;
    let (columns, _) = binder.finish();
    optimize::plan_scalar(bound, columns, cx)
}

/// The DEFAULT of a column, converted to its type.
///
/// # Errors
/// What is wrong with the text.
pub fn bind_default(expr: &ast::Expr, column: &ColumnDef, cx: &dyn CompileContext) -> Result<Expr, SqlError> {
    let mut binder = Binder::new(cx, expr.span.line);
    let bound = binder.bind_default_value(expr, column)?;
    cx.allow(&binder.take_needs())?;
    optimize::plan_scalar(bound, Columns::default(), cx)
}

/// What new rows of a table have in the columns of its period: position and value.
///
/// # Errors
/// None that a table which was made can give.
pub fn bind_period(table: &TableDef, cx: &dyn CompileContext) -> Result<Vec<(usize, Expr)>, SqlError> {
    let binder = Binder::new(cx, 0);
    let values = (0..table.columns.len()).filter_map(|at| Some((at, binder.period_value(table, at)?)));
    values.map(|(at, value)| Ok((at, optimize::plan_scalar(value, Columns::default(), cx)?))).collect()
}

/// A condition over the columns of a table, each by its position: a CHECK.
///
/// # Errors
/// What is wrong with it; 1046 for a subquery.
pub fn bind_row_condition(expr: &ast::Expr, table: &Arc<TableDef>, cx: &dyn CompileContext) -> Result<Expr, SqlError> {
    let mut binder = Binder::new(cx, expr.span.line);
    let (bound, columns) = binder.bind_row_condition(expr, table)?;
    cx.allow(&binder.take_needs())?;
    if bound.has_subquery() {
        return Err(error::error(1046, &[], expr.span));
    }
    let (infos, _) = binder.finish();
    optimize::plan_over(bound, &columns, infos, cx)
}

/// The stored computed columns of a table: position and value over all its columns, each by its position.
///
/// # Errors
/// What is wrong with a definition.
pub fn bind_computed_columns(table: &Arc<TableDef>, cx: &dyn CompileContext) -> Result<Vec<(usize, Expr)>, SqlError> {
    let mut binder = Binder::new(cx, 0);
    let computed = binder.stored_computed(table)?;
    cx.allow(&binder.take_needs())?;
    let mut lowered = Vec::with_capacity(computed.exprs.len());
    let (infos, _) = binder.finish();
    for (at, expr) in computed.exprs {
        lowered.push((at, optimize::plan_over(expr, &computed.row, infos.clone(), cx)?));
    }
    Ok(lowered)
}

/// What a column computed by `expr` over the columns of `table` would be.
///
/// # Errors
/// What is wrong with it; 1046 for a subquery, 1759 for a computed column in it.
pub fn bind_computed(expr: &ast::Expr, table: &Arc<TableDef>, cx: &dyn CompileContext) -> Result<ComputedFacts, SqlError> {
    let mut binder = Binder::new(cx, expr.span.line);
    let row = binder.row_columns(table);
    let bound = binder.over_row(expr, table, &row, false)?;
    cx.allow(&binder.take_needs())?;
    if bound.has_subquery() {
        return Err(error::error(1046, &[], expr.span));
    }
    let facts = facts_of(&bound, &row);
    match facts.columns.iter().map(|at| &table.columns[*at]).find(|column| column.computed.is_some()) {
        Some(column) => Err(error::error(1759, &[&column.name, &table.name], expr.span)),
        None => Ok(facts),
    }
}

/// A node that inserts all rows of `node` into `table`, column by column in order: the second half of SELECT INTO.
pub fn insert_all(node: Node, table: Arc<TableDef>) -> Node {
    let targets = (0..node.columns.len()).collect();
    let rows_estimate = node.rows_estimate;
    let kind = crate::phys::NodeKind::Insert {
        table,
        input: Box::new(node),
        targets,
        defaults: Vec::new(),
        computed: Vec::new(),
        passed: Vec::new(),
        output: Vec::new(),
    };
    Node { kind, columns: Vec::new(), rows_estimate }
}
