//! What the binder asks of a session: variables, temporary tables, views of the system.

use crate::batch::module::Module;
use crate::ddl::index::MAX_DEGREE_OF_PARALLELISM;
use crate::instance::TEMPDB_ID;
use crate::instance::startup::processors;
use crate::session::state::SessionState;
use crate::statistics::can_have;
use crate::views::server::setting;
use std::cell::RefCell;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectDef, ObjectId, ObjectKind, TableDef, TableStatistics, TriggerDef};
use thawdb_query::access::AccessNeed;
use thawdb_query::compile::{ChangeAction, CursorRow, TriggerKinds, UserFunction, ViewText};
use thawdb_query::compile::{CompileContext, Parallelism, Settings, Stamp};
use thawdb_query::context::SessionInfo;
use thawdb_query::phys::RowSource;
use thawdb_tsql::ast::{CursorName, ObjectName};
use thawdb_types::{SqlError, SqlType};

/// Number of the setting in sys.configurations.
const COST_THRESHOLD: i32 = 1538;

/// A session at one step of its program.
pub(crate) struct CompileCx<'a> {
    pub(crate) session: &'a SessionState,
    /// Variables declared at later steps are not there yet.
    pub(crate) step: usize,
    /// Columns whose statistics the optimizer missed.
    pub(crate) wanted: RefCell<Vec<(Arc<TableDef>, usize)>>,
    /// Statistics that it used, and that have seen too many changes.
    pub(crate) stale: RefCell<Vec<(Arc<TableDef>, i32)>>,
    /// Those that have, whether it uses them or not, with their leading columns.
    aged: RefCell<Vec<((DatabaseId, ObjectId), i32, i32)>>,
    /// The tables whose statistics were told, and what plans of them depend on.
    stamps: RefCell<Vec<((DatabaseId, ObjectId), Stamp)>>,
    /// Names that nobody has declared, where the question is what they should be declared as.
    pub(crate) undeclared: Option<RefCell<Vec<String>>>,
    /// Whether the text is a schema-bound view's.
    is_schema_bound: bool,
}

impl<'a> CompileCx<'a> {
    pub(crate) fn new(session: &'a SessionState, step: usize) -> Self {
        Self {
            session,
            step,
            wanted: RefCell::default(),
            stale: RefCell::default(),
            aged: RefCell::default(),
            stamps: RefCell::default(),
            undeclared: None,
            is_schema_bound: false,
        }
    }

    /// For the text of a schema-bound view.
    pub(crate) fn of_schema_bound(session: &'a SessionState) -> Self {
        Self { is_schema_bound: true, ..Self::new(session, 0) }
    }

    /// At the end of a program, letting names through that nobody has declared.
    pub(crate) fn letting_undeclared(session: &'a SessionState) -> Self {
        Self { undeclared: Some(RefCell::default()), ..Self::new(session, usize::MAX) }
    }
}

impl CompileContext for CompileCx<'_> {
    fn session(&self) -> &dyn SessionInfo {
        self.session
    }

    fn settings(&self) -> Settings {
        self.session.settings()
    }

    fn variable(&self, name: &str) -> Option<(usize, SqlType)> {
        let frame = self.session.frames.last()?;
        let position = frame.position(name)?;
        let variable = &frame.variables[position];
        (variable.declared_at <= self.step).then_some((position, variable.sql_type))
    }

    fn is_schema_bound(&self) -> bool {
        self.is_schema_bound
    }

    fn writes_history(&self) -> bool {
        self.session.frames.last().is_some_and(|frame| frame.writes_history)
    }

    fn undeclared(&self, name: &str) -> Option<usize> {
        let mut names = self.undeclared.as_ref()?.borrow_mut();
        let known = names.iter().position(|known| known.eq_ignore_ascii_case(name));
        Some(known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        }))
    }

    fn rowset(&self, name: &str) -> Option<Arc<dyn RowSource>> {
        crate::session::rowset::source(self.session, name)
    }

    fn rowset_table(&self, name: &str) -> Option<Arc<TableDef>> {
        let frame = self.session.frames.last()?;
        frame.rowset_table.clone().filter(|_| name.eq_ignore_ascii_case("inserted") || name.eq_ignore_ascii_case("deleted"))
    }

    fn updated(&self, column: &str) -> Option<bool> {
        let frame = self.session.frames.last().filter(|frame| frame.is_trigger)?;
        Some(frame.updated.iter().any(|updated| updated.eq_ignore_ascii_case(column)))
    }

    fn source(&self, database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
        crate::views::find(database, schema, name)
    }

    fn table_function(&self, database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
        crate::views::find_function(database, schema, name)
    }

    fn view(&self, database: DatabaseId, schema: &str, name: &str) -> Option<ViewText> {
        let object = self.object(database, schema, name, ObjectKind::View)?;
        let definition = Module::of(&object).view().ok()?.clone();
        Some(ViewText { id: object.id, definition: Arc::new(definition) })
    }

    fn user_function(&self, database: DatabaseId, schema: &str, name: &str) -> Result<Option<UserFunction>, SqlError> {
        let Some(catalog) = self.session.definitions(database) else { return Ok(None) };
        match catalog.object(schema, name) {
            Some(object) => crate::batch::function::described(database, object),
            None => Ok(None),
        }
    }

    fn default_schema(&self) -> Arc<str> {
        self.session.default_schema().1
    }

    fn allow(&self, needs: &[AccessNeed]) -> Result<(), SqlError> {
        self.session.allow_needs(needs)
    }

    fn synonym(&self, database: DatabaseId, schema: &str, name: &str) -> Option<(ObjectId, ObjectName)> {
        let object = self.object(database, schema, name, ObjectKind::Synonym)?;
        crate::ddl::names::parse_name(&object.definition).map(|base| (object.id, base))
    }

    fn sequence(&self, database: DatabaseId, schema: &str, name: &str) -> Option<(ObjectId, SqlType)> {
        let object = self.object(database, schema, name, ObjectKind::Sequence)?;
        Some((object.id, object.sequence?.sql_type))
    }

    fn temp_table(&self, name: &str) -> Option<Arc<TableDef>> {
        if let Some(temp) = self.session.temp.get(name) {
            return Some(temp.table.clone());
        }
        self.session.definitions(TEMPDB_ID)?.tables.table("dbo", name).cloned()
    }

    fn table_variable(&self, name: &str) -> Option<Arc<TableDef>> {
        self.session.frames.last()?.table_variables.get(&name.to_lowercase()).cloned()
    }

    fn is_read_only(&self, name: &str) -> bool {
        self.session.frames.last().is_some_and(|frame| frame.read_only_tables.contains(&name.to_lowercase()))
    }

    fn identity_insert(&self, table: &TableDef) -> bool {
        self.session.options.identity_insert == Some((table.database, table.id))
    }

    fn cursor_row(&self, cursor: &CursorName, table: &TableDef) -> Result<CursorRow, SqlError> {
        self.session.cursor_row(cursor, table)
    }

    fn triggers(&self, database: DatabaseId, object: ObjectId, action: ChangeAction) -> TriggerKinds {
        let Some(catalog) = self.session.definitions(database) else { return TriggerKinds::default() };
        let mut kinds = TriggerKinds::default();
        for trigger in catalog.triggers_of(object) {
            let fires = trigger.trigger.is_some_and(|definition| !definition.disabled && fires_on(&definition, action));
            let instead = trigger.trigger.is_some_and(|definition| definition.instead_of);
            kinds.after |= fires && !instead;
            kinds.instead |= fires && instead && !self.session.is_running(trigger.id);
        }
        kinds
    }

    fn parallelism(&self) -> Parallelism {
        let session = self.session;
        let most = session.engine.workers.most();
        if session.in_function > 0 || session.in_trigger() || most < 2 {
            return Parallelism::NONE;
        }
        let degree = |degree: usize| u16::try_from(degree).unwrap_or(u16::MAX);
        let set = usize::try_from(setting(session, MAX_DEGREE_OF_PARALLELISM)).unwrap_or(0);
        let processors = processors();
        Parallelism {
            degree_max: degree(if set == 0 { processors } else { set.min(processors) }),
            degree_limit: degree(most),
            cost_threshold: setting(session, COST_THRESHOLD) as f64,
        }
    }

    fn row_count(&self, table: &TableDef) -> Option<u64> {
        let open = self.session.storage_of(table.database).ok()?;
        open.statistics.rows(table).or_else(|| open.counters.rows_at_most(table.id))
    }

    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        if !can_have(table) {
            return None;
        }
        let open = self.session.storage_of(table.database).ok()?;
        let met = open.statistics.meet(table, || {
            let is_redone = open.storage.store().pending_pages() == 0;
            is_redone.then(|| open.storage.read_view(None).leaf_count(table.rows().tree).ok())?
        });
        let place = (table.database, table.id);
        let mut stamps = self.stamps.borrow_mut();
        if !stamps.iter().any(|(of, _)| *of == place) {
            stamps.push((place, met.stamp));
        }
        let aged = met.known.list.iter().filter(|one| met.stale.contains(&one.id));
        self.aged.borrow_mut().extend(aged.filter_map(|one| Some((place, one.id, *one.columns.first()?))));
        Some(met.known)
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.stamps.borrow().iter().map(|(_, stamp)| stamp.clone()).collect()
    }

    fn use_statistics(&self, table: &TableDef, column: usize) {
        let (place, column) = ((table.database, table.id), table.columns[column].id.0);
        let mut stale = self.stale.borrow_mut();
        for (_, id, _) in self.aged.borrow().iter().filter(|(of, _, leading)| (*of, *leading) == (place, column)) {
            if !stale.iter().any(|(of, known)| (of.database, of.id) == place && known == id) {
                stale.extend(self.session.table(table.database, table.id).map(|table| (table, *id)));
            }
        }
    }

    fn want_statistics(&self, table: &TableDef, column: usize) {
        let mut wanted = self.wanted.borrow_mut();
        let known = |(of, at): &(Arc<TableDef>, usize)| (of.database, of.id, *at) == (table.database, table.id, column);
        if can_have(table) && !wanted.iter().any(known) {
            wanted.extend(self.session.table(table.database, table.id).map(|table| (table, column)));
        }
    }

    fn page_count(&self, table: &TableDef) -> Option<u64> {
        let open = self.session.storage_of(table.database).ok()?;
        open.storage.pages_at_most(table.rows().tree).ok()
    }
}

/// Whether a trigger is one of these statements'.
pub(crate) fn fires_on(trigger: &TriggerDef, action: ChangeAction) -> bool {
    match action {
        ChangeAction::Insert => trigger.insert,
        ChangeAction::Update => trigger.update,
        ChangeAction::Delete => trigger.delete,
    }
}

impl CompileCx<'_> {
    fn object(&self, database: DatabaseId, schema: &str, name: &str, kind: ObjectKind) -> Option<Arc<ObjectDef>> {
        let catalog = self.session.definitions(database)?;
        catalog.object(schema, name).filter(|object| object.kind == kind).cloned()
    }
}

impl SessionState {
    /// Whether any trigger runs: plans then leave out what runs already.
    pub(crate) fn in_trigger(&self) -> bool {
        self.frames.iter().any(|frame| frame.is_trigger)
    }

    /// Whether a trigger runs, here or in a caller.
    pub(crate) fn is_running(&self, trigger: ObjectId) -> bool {
        self.frames.iter().any(|frame| frame.is_trigger && frame.module == trigger.0)
    }

    /// The options that change what a text means.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            ansi_nulls: self.options.ansi_nulls,
            concat_null_yields_null: self.options.concat_null_yields_null,
            ansi_null_default: self.options.ansi_null_default_on,
            default_schema: self.default_schema_id(),
            date_order: self.options.date_order,
            rewrite: true,
        }
    }
}
