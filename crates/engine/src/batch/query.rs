//! Statements that a plan runs: SELECT, INSERT, UPDATE, DELETE, MERGE.
//!
//! ```text
//! cached plan or compile ─► lock its tables ─► still the same definitions? ─ no ─► compile again
//!                                                    └ yes ─► run, batch by batch ─► Outbox
//! ```
//!
//! A plan runs only while its tables are locked against changes of definition, and only if no definition changed between
//! compiling and locking (`plan_and_lock`). Reads give the lock back with the statement, changes with the transaction.

use crate::api::sink::StatementKind;
use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::kept::KeptRun;
use crate::batch::plan_cache::PlanKey;
use crate::batch::trigger::ChangeKind;
use crate::instance::TEMPDB_ID;
use crate::instance::statistics::Changed;
use crate::session::changes::Watch;
use crate::session::temporary::VARIABLES_ID;
use crate::statistics::can_have;
use std::sync::Arc;
use thawdb_catalog::{LockEscalation, ObjectId, TableDef};
use thawdb_query::compile::{ChangeAction, Compiled, CompiledKind, Dependency, compile, insert_all};
use thawdb_query::exec::{self, BulkInsert, BulkTarget};
use thawdb_query::phys::{MergeStep, Node, NodeKind};
use thawdb_query::usage::PlanRun;
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::{Expr, ExprKind, QueryHint, Stmt, StmtKind};

/// Definitions may change again and again while a statement waits; after so many it gives up with the last plan's error.
const COMPILES_MAX: usize = 20;

impl<'a> Interpreter<'a, '_> {
    /// Runs a query or a statement that changes rows.
    pub(crate) fn data_statement(&mut self, statement: &Stmt) -> Result<(), Failure> {
        if self.session.options.shows_plan() {
            self.session.allow_database("SHOWPLAN", self.session.database.id)?;
            let plan = self.compiled(statement)?;
            return self.show_plan(statement, &plan);
        }
        let start_ns = self.session.engine.config.env.clock.monotonic_ns();
        let kept = self.kept_plan(statement);
        if let Some(plan) = &kept {
            self.session.may_run(plan)?;
        }
        if let Some(plan) = &kept
            && self.point_read(plan)?
        {
            self.note_run(plan, start_ns);
            return Ok(());
        }
        let plan = self.transactional(|this| {
            let watch = this.stopwatch();
            let plan = this.plan_and_lock(statement, kept)?;
            this.tell_compile_time(watch);
            let watch = this.stopwatch();
            this.run_plan(&plan, at_cursor(statement))?;
            this.tell_reads();
            this.tell_execution_time(watch);
            Ok(plan)
        })?;
        self.note_run(&plan, start_ns);
        Ok(())
    }

    /// Counts a run of a plan that has just ended, for sys.dm_exec_query_stats.
    fn note_run(&self, plan: &Compiled, start_ns: u64) {
        let elapsed_ns = self.session.engine.config.env.clock.monotonic_ns().saturating_sub(start_ns);
        let rows = self.session.row_count.cast_unsigned();
        plan.usage.note(PlanRun { at: self.session.call_start, elapsed_ns, rows });
    }

    fn plan_key(&self, statement: &Stmt) -> PlanKey {
        let variables = self.session.frame().variables.iter().filter(|v| v.declared_at <= self.at);
        PlanKey {
            text: statement.span.slice(self.text).to_owned(),
            database: self.session.database.id,
            settings: self.session.settings(),
            quoted_identifier: self.session.options.quoted_identifier,
            line: statement.span.line,
            identity_insert: self.session.options.identity_insert,
            variables: variables.map(|v| (v.name.to_lowercase(), v.sql_type)).collect(),
        }
    }

    /// What is kept of earlier runs in the present situation, where plans are shared at all: temporary tables of one session
    /// mean nothing to another, nor do views of it, nor the row a cursor stands on.
    fn shared_run(&self, statement: &Stmt) -> Option<&'a KeptRun> {
        self.kept.filter(|kept| self.shares_plans(statement) && kept.is_of(self.session))
    }

    fn shares_plans(&self, statement: &Stmt) -> bool {
        let frame = self.session.frame();
        self.session.temp.is_empty()
            && !self.session.in_trigger()
            && frame.table_variables.is_empty()
            && frame.rowsets.is_empty()
            && !at_cursor(statement)
            && !is_recompiled(statement)
    }

    fn kept_plan(&self, statement: &Stmt) -> Option<Arc<Compiled>> {
        self.shared_run(statement)?.plan(self.at, |database| self.session.catalog_version(database))
    }

    /// The plan of a statement, which the session may run.
    pub(crate) fn compiled(&mut self, statement: &Stmt) -> Result<Arc<Compiled>, Failure> {
        let plan = self.plan_of(statement)?;
        self.session.may_run(&plan).map_err(Failure::run)?;
        Ok(plan)
    }

    /// The plan of a statement, whoever may run it.
    pub(crate) fn plan_of(&mut self, statement: &Stmt) -> Result<Arc<Compiled>, Failure> {
        if let Some(plan) = self.kept_plan(statement) {
            return Ok(plan);
        }
        let (shared, beside) = (self.shares_plans(statement), self.shared_run(statement));
        let version = |database| self.session.catalog_version(database);
        let key = self.plan_key(statement);
        if shared {
            if let Some(plan) = self.session.engine.plans.get(&key, version) {
                beside.inspect(|kept| kept.keep_plan(self.at, &plan));
                return Ok(plan);
            }
        }
        let refused = |error: thawdb_types::SqlError| match error.number {
            // The cursor of WHERE CURRENT OF is looked at when the statement runs: no error of the whole scope.
            16_900..17_000 | 229 | 230 | 916 => Failure::run(error),
            _ => Failure::compile(error),
        };
        let cx = CompileCx::new(self.session, self.at);
        let mut plan = compile(statement, &cx).map_err(refused)?;
        let (wanted, stale) = (cx.wanted.into_inner(), cx.stale.into_inner());
        let is_asked = !(wanted.is_empty() && stale.is_empty()) && self.session.may_run(&plan).is_ok();
        let is_postponed = is_asked && self.is_recovering(&wanted, &stale);
        if is_asked && !is_postponed && self.refresh_statistics(&wanted, &stale) {
            plan = compile(statement, &CompileCx::new(self.session, self.at)).map_err(refused)?;
        }
        let plan = Arc::new(plan);
        if shared && !is_postponed && plan.dependencies.iter().all(|d| d.database != TEMPDB_ID && d.database != VARIABLES_ID) {
            beside.inspect(|kept| kept.keep_plan(self.at, &plan));
            self.session.engine.plans.put(key, plan.clone(), self.session.call_start);
        }
        Ok(plan)
    }

    /// A plan whose tables are locked and defined as they were when it was made.
    fn plan_and_lock(&mut self, statement: &Stmt, kept: Option<Arc<Compiled>>) -> Result<Arc<Compiled>, Failure> {
        let mut plan = kept.map_or_else(|| self.compiled(statement), Ok)?;
        for _ in 0..COMPILES_MAX {
            self.lock_tables(&plan.dependencies)?;
            let session = &self.session;
            if plan.dependencies.iter().all(|d| session.catalog_version(d.database) == Some(d.catalog_version)) {
                return Ok(plan);
            }
            plan = self.compiled(statement)?;
        }
        Ok(plan)
    }

    pub(crate) fn lock_tables(&mut self, dependencies: &[Dependency]) -> Result<(), Failure> {
        for dependency in dependencies {
            let private = dependency.table < ObjectId(0) || dependency.database == VARIABLES_ID;
            if private {
                continue;
            }
            let open = self.session.storage_of(dependency.database)?;
            self.session.enter_database(&open)?;
            let resource = open.object_resource(dependency.table);
            self.note_escalation(dependency)?;
            if !dependency.writes {
                self.session.lock(resource, LockMode::SchS, true)?;
                self.session.check_unchanged(&open, dependency.table)?;
                continue;
            }
            let mode = if dependency.whole { LockMode::X } else { LockMode::IX };
            let part = self.session.part(dependency.database)?;
            part.txn.lock(resource, mode).map_err(|error| self.session.storage_failure(dependency.database, error))?;
            self.session.check_unchanged(&open, dependency.table)?;
        }
        Ok(())
    }

    /// Tells the transaction whether the table's locks may become one. Most may, and are not even looked for.
    fn note_escalation(&mut self, dependency: &Dependency) -> Result<(), Failure> {
        let definition = self.session.table(dependency.database, dependency.table);
        let escalates = definition.is_none_or(|table| table.lock_escalation != LockEscalation::Disable);
        let table = dependency.table.0.cast_unsigned();
        if let Some(part) = self.session.transactions.existing_mut(dependency.database.0) {
            part.txn.set_escalates(table, escalates);
        } else if !escalates && !self.session.transactions.doomed {
            self.session.part(dependency.database)?.txn.set_escalates(table, escalates);
        }
        Ok(())
    }

    /// `one` if a row must be changed (16947): that of a cursor.
    fn run_plan(&mut self, plan: &Compiled, one: bool) -> Result<(), Failure> {
        let (kind, returns) = match &plan.kind {
            CompiledKind::Rows => (StatementKind::Select, true),
            CompiledKind::Assign => {
                let count = self.drain(&plan.node)?;
                self.counted(count);
                return Ok(());
            }
            CompiledKind::Insert { output } => (StatementKind::Insert, *output),
            CompiledKind::Update { output } => (StatementKind::Update, *output),
            CompiledKind::Delete { output } => (StatementKind::Delete, *output),
            CompiledKind::Merge { output } => (StatementKind::Merge, *output),
            CompiledKind::SelectInto { table, columns } => {
                self.session.may_create_table(table)?;
                let made = crate::ddl::table::create_for_select_into(self, table, columns)?;
                let count = if made.database == TEMPDB_ID || made.id.0 < 0 {
                    self.drain(&insert_all(plan.node.clone(), made))?
                } else {
                    self.append_all(&plan.node, made)?
                };
                self.counted(count);
                self.out.done(StatementKind::Select, self.shown_count(count), false);
                return Ok(());
            }
        };
        let limited = self.under_row_count(plan);
        let node = limited.as_ref().unwrap_or(&plan.node);
        let count = self.with_watches(plan, |this| if returns { this.stream(plan, node) } else { this.drain(node) })?;
        self.note_changes(plan, count);
        if one && count == 0 {
            return Err(crate::messages::message(16_947, &[]).into());
        }
        self.counted(count);
        self.out.done(kind, self.shown_count(count), false);
        Ok(())
    }

    /// Runs a plan that changes rows and sends none; how many it changed.
    pub(crate) fn change_rows(&mut self, plan: &Compiled) -> Result<u64, Failure> {
        self.run_watched(plan)
    }

    /// The same, for changes that follow from others.
    pub(crate) fn run_watched(&mut self, plan: &Compiled) -> Result<u64, Failure> {
        let count = self.with_watches(plan, |this| this.drain(&plan.node))?;
        self.note_changes(plan, count);
        Ok(count)
    }

    /// Counts what a plan has changed towards the age of its table's statistics.
    fn note_changes(&self, plan: &Compiled, count: u64) {
        if count == 0 {
            return;
        }
        let rows = i64::try_from(count).unwrap_or(i64::MAX);
        match changed_by(&plan.node) {
            Some((table, NodeKind::Insert { .. })) => self.note_change(table, Changed::Rows(rows)),
            Some((table, NodeKind::Delete { .. })) => self.note_change(table, Changed::Rows(-rows)),
            Some((table, NodeKind::Update { assignments, .. })) => {
                let mut columns = assignments.iter().filter_map(|(at, _)| table.columns.get(*at)).map(|column| column.id.0);
                self.note_change(table, Changed::Columns(count, &mut columns));
            }
            Some((table, _)) => self.note_change(table, Changed::Mixed(count)),
            None => {}
        }
    }

    fn note_change(&self, table: &TableDef, changed: Changed<'_>) {
        if can_have(table)
            && let Ok(open) = self.session.storage_of(table.database)
        {
            open.statistics.note(table.id, changed);
        }
    }

    /// Runs `work`, the changes of a plan, and then what constraints and triggers make of them.
    fn with_watches(&mut self, plan: &Compiled, work: impl FnOnce(&mut Self) -> Result<u64, Failure>) -> Result<u64, Failure> {
        let statement = match plan.kind {
            CompiledKind::Insert { .. } => "INSERT",
            CompiledKind::Update { .. } => "UPDATE",
            CompiledKind::Delete { .. } => "DELETE",
            CompiledKind::Merge { .. } => "MERGE",
            _ => return work(self),
        };
        let instead = instead_of(&plan.node);
        let mut watches: Vec<Watch> = instead.map(|(table, ..)| Watch::instead(table)).into_iter().collect();
        let taken = |id: ObjectId| instead.is_some_and(|(table, ..)| table.id == id);
        for dependency in plan.dependencies.iter().filter(|d| d.writes && !taken(d.table)) {
            let lasts = dependency.table > ObjectId(0) && dependency.database != VARIABLES_ID;
            if !lasts && !self.session.temp_checks.contains_key(&dependency.table.0) {
                continue;
            }
            let Some(table) = self.session.table(dependency.database, dependency.table) else { continue };
            let mut watch = self.session.watch_of(dependency.database, &table)?;
            let changes = !matches!(plan.kind, CompiledKind::Insert { .. });
            let is_asked = plan.view_check.as_ref().is_some_and(|check| check.table.id == table.id);
            if is_asked || changes && table.temporal.versioning.is_some() {
                watch = Some(Watch::keeping(watch, &table));
            }
            watches.extend(watch);
        }
        let watched = !watches.is_empty();
        self.session.changes.begin(watches);
        let outcome = work(self);
        let watches = self.session.changes.end();
        let count = outcome?;
        if watched {
            self.follow_changes(plan, statement, watches, count)?;
        }
        Ok(count)
    }

    fn follow_changes(&mut self, plan: &Compiled, statement: &str, watches: Vec<Watch>, count: u64) -> Result<(), Failure> {
        let target = changed_table(&plan.node);
        for mut watch in watches {
            if let Some((_, action, updated)) = instead_of(&plan.node).filter(|(table, ..)| table.id == watch.table.id) {
                self.fire_instead(action, &mut watch, updated, count)?;
                continue;
            }
            // The table of OUTPUT INTO takes new rows whatever the statement is.
            let Some((_, actions)) = target.as_ref().filter(|(table, _)| *table == watch.table.id) else {
                self.keep_foreign_keys("INSERT", &watch)?;
                continue;
            };
            self.keep_to_view(plan, &watch)?;
            self.keep_history(&watch)?;
            self.keep_foreign_keys(statement, &watch)?;
            for (kind, updated) in actions {
                self.fire_triggers(*kind, &mut watch, updated, count)?;
            }
        }
        Ok(())
    }

    /// The plan under SET ROWCOUNT, if that is on.
    fn under_row_count(&self, plan: &Compiled) -> Option<Node> {
        let limit = self.session.options.row_count;
        (limit > 0).then(|| crate::batch::row_limit::limited(&plan.node, limit))
    }

    fn drain(&mut self, node: &Node) -> Result<u64, Failure> {
        let mut execution = exec::run(node, self.session)?;
        if self.session.options.statistics_io {
            execution.count_reads();
        }
        execution.drain(self.session)?;
        self.note_reads(&execution);
        self.send_infos();
        Ok(execution.rows_affected())
    }

    /// Fills a table that this statement has made, and that nobody else knows: whole leaves are appended, which the log of a
    /// database that is not under FULL has by their making only.
    fn append_all(&mut self, node: &Node, table: Arc<TableDef>) -> Result<u64, Failure> {
        let target = BulkTarget {
            targets: (0..table.columns.len()).collect(),
            types: table.columns.iter().map(|column| column.sql_type).collect(),
            defaults: Vec::new(),
            keep_identity: true,
            keep_nulls: true,
            computed: Vec::new(),
            table,
        };
        let mut load = BulkInsert::begin(target, self.session)?;
        let mut execution = exec::run(node, self.session)?;
        if self.session.options.statistics_io {
            execution.count_reads();
        }
        while let Some(batch) = execution.next(self.session)? {
            load.push(batch, self.session)?;
        }
        self.note_reads(&execution);
        let rows = load.finish(self.session)?;
        self.send_infos();
        Ok(rows)
    }

    fn stream(&mut self, plan: &Compiled, node: &Node) -> Result<u64, Failure> {
        self.out.columns(&plan.columns)?;
        if self.session.options.format_only {
            return Ok(0);
        }
        let mut execution = exec::run(node, self.session)?;
        if self.session.options.statistics_io {
            execution.count_reads();
        }
        while let Some(batch) = execution.next(self.session)? {
            self.send_infos();
            self.out.rows(&batch.into())?;
        }
        self.note_reads(&execution);
        self.send_infos();
        Ok(execution.rows_affected())
    }

    /// Sets `@@ROWCOUNT` after a statement that counts.
    pub(crate) fn counted(&mut self, count: u64) {
        self.session.row_count = i64::try_from(count).unwrap_or(i64::MAX);
        self.session.last_error = 0;
    }

    /// The count a completion tells: none under SET NOCOUNT ON.
    pub(crate) fn shown_count(&self, count: u64) -> Option<u64> {
        (!self.session.options.nocount).then_some(count)
    }
}

/// OPTION (RECOMPILE): the plan is made for this execution and not kept.
fn is_recompiled(statement: &Stmt) -> bool {
    let hints = match &statement.kind {
        StmtKind::Select(query) => &query.hints,
        StmtKind::Insert(insert) => &insert.hints,
        StmtKind::Update(update) => &update.hints,
        StmtKind::Delete(delete) => &delete.hints,
        StmtKind::Merge(merge) => &merge.hints,
        _ => return false,
    };
    hints.iter().any(|hint| matches!(hint, QueryHint::Words(words) if words == "RECOMPILE"))
}

/// Whether a statement changes the row a cursor stands on: its plan is for that row alone.
fn at_cursor(statement: &Stmt) -> bool {
    let condition = match &statement.kind {
        StmtKind::Update(update) => update.where_.as_ref(),
        StmtKind::Delete(delete) => delete.where_.as_ref(),
        _ => None,
    };
    matches!(condition, Some(Expr { kind: ExprKind::CurrentOf(_), .. }))
}

/// The target whose INSTEAD OF trigger takes a statement's rows, the statement, and the columns an UPDATE sets.
fn instead_of(node: &Node) -> Option<(&Arc<TableDef>, ChangeAction, &[usize])> {
    match &node.kind {
        NodeKind::Insert { input, .. } | NodeKind::AssignVariables { input, .. } => instead_of(input),
        NodeKind::Instead { table, action, updated, .. } => Some((table, *action, updated)),
        _ => None,
    }
}

/// What a plan's statement does to the table it changes, with the columns an UPDATE sets, by position.
type Actions = Vec<(ChangeKind, Vec<usize>)>;

/// The table a plan changes, and the node that does.
fn changed_by(node: &Node) -> Option<(&TableDef, &NodeKind)> {
    match &node.kind {
        NodeKind::AssignVariables { input, .. } => changed_by(input),
        // OUTPUT INTO: the statement itself stands below.
        NodeKind::Insert { input, table, .. } => changed_by(input).or(Some((table.as_ref(), &node.kind))),
        NodeKind::Update { table, .. } | NodeKind::Delete { table, .. } | NodeKind::Merge { table, .. } => {
            Some((table.as_ref(), &node.kind))
        }
        _ => None,
    }
}

/// The table whose rows a plan's statement changes.
fn changed_table(node: &Node) -> Option<(ObjectId, Actions)> {
    let set = |assignments: &[(usize, thawdb_query::expr::Expr)]| assignments.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    match &node.kind {
        NodeKind::AssignVariables { input, .. } => changed_table(input),
        // OUTPUT INTO: the statement itself stands below.
        NodeKind::Insert { input, table, .. } => changed_table(input).or(Some((table.id, vec![(ChangeKind::Insert, Vec::new())]))),
        NodeKind::Update { table, assignments, .. } => Some((table.id, vec![(ChangeKind::Update, set(assignments))])),
        NodeKind::Delete { table, .. } => Some((table.id, vec![(ChangeKind::Delete, Vec::new())])),
        NodeKind::Merge { table, steps, .. } => {
            let mut actions: Actions = Vec::new();
            for step in steps {
                let (kind, columns) = match step {
                    MergeStep::Insert { .. } => (ChangeKind::Insert, Vec::new()),
                    MergeStep::Update { assignments } => (ChangeKind::Update, set(assignments)),
                    MergeStep::Delete => (ChangeKind::Delete, Vec::new()),
                };
                match actions.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, known)) => known.extend(columns),
                    None => actions.push((kind, columns)),
                }
            }
            actions.sort_by_key(|(kind, _)| *kind as usize);
            Some((table.id, actions))
        }
        _ => None,
    }
}
