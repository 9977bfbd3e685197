//! The binder: names become columns, types are decided, every implicit conversion is written out.
//!
//! ```text
//! ast::Stmt ─► statement/* ─► query/* ─► table_ref/* ─► Rel
//!                                 └────► expr/*      ─► BoundExpr
//! ```
//!
//! What enters unresolved and leaves resolved: table names (by [`objects`]), column names (by [`scope`]: innermost query
//! outwards, aliases hide table names, case ignored), types (by [`types`] and [`coerce`]), collations (by [`collation`]),
//! functions (by [`crate::functions::signature`]).
//!
//! Invariants:
//! 1. Operands of every bound operator have the types its definition in [`crate::expr`] asks for.
//! 2. Each reference of a table in the text has columns of its own, so a table joined with itself is two tables.
//! 3. A common table expression is bound anew where it is used, as SQL Server does.
//!
//! Catalogs read: immutable snapshots, one per database, taken at first use; no locks. Failure: the first error found, in
//! the order FROM, WHERE, GROUP BY, HAVING, select list, ORDER BY. It does not evaluate anything and knows no indexes.

pub(crate) mod access;
pub mod coerce;
pub mod collation;
pub mod computed;
pub mod error;
pub mod expr;
pub mod objects;
pub mod query;
pub mod scope;
pub mod statement;
pub mod table_ref;
pub(crate) mod temporal;
pub mod types;
pub(crate) mod undeclared;

use crate::access::Place;
use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind, BoundSortKey, BoundWindow, ColumnRef, Columns};
use crate::compile::{CompileContext, Dependency, Settings};
use scope::ScopeTable;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use thawdb_catalog::{Catalog, DatabaseId, ObjectId, TableDef};
use thawdb_tsql::ast;

/// Which part of a query is being bound: decides what may stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    /// FROM and ON.
    From,
    /// WHERE.
    Where,
    /// GROUP BY.
    GroupBy,
    /// HAVING.
    Having,
    /// The select list.
    Select,
    /// ORDER BY.
    OrderBy,
    /// TOP, OFFSET, VALUES and everything outside a query.
    Other,
    /// The new values of UPDATE.
    Set,
    /// OUTPUT.
    Output,
}

/// A window function waiting to be planned.
#[derive(Debug, Clone)]
pub(crate) struct PendingWindow {
    pub column: ColumnRef,
    pub function: BoundWindow,
    pub partition: Vec<BoundExpr>,
    pub order: Vec<BoundSortKey>,
}

/// Tables out of reach, and the message for who reaches for them.
#[derive(Debug, Clone)]
pub(crate) struct HiddenTables {
    pub number: i32,
    pub tables: Vec<ScopeTable>,
}

/// A query being bound.
#[derive(Debug)]
pub(crate) struct Level {
    /// What FROM offers.
    pub tables: Vec<ScopeTable>,
    /// Where in the query we are.
    pub clause: Clause,
    /// Aggregates met so far.
    pub aggregates: Vec<(ColumnRef, BoundAggregate)>,
    /// GROUPING and GROUPING_ID met so far: column and the keys asked for.
    pub groupings: Vec<(ColumnRef, Vec<BoundExpr>)>,
    /// Window functions met so far.
    pub windows: Vec<PendingWindow>,
    /// NEXT VALUE FOR met so far in the select list: a sequence gives one value a row, however often it is named.
    pub next_values: Vec<(ColumnRef, BoundExpr)>,
    /// WINDOW clause.
    pub named_windows: Vec<ast::NamedWindow>,
    /// Tables that a clause of MERGE must not look at.
    pub hidden: Option<HiddenTables>,
    /// Set while the argument of an aggregate is bound: 130 for another inside.
    pub in_aggregate: bool,
    /// Set while the arguments of a window function are bound: 4109 for another inside.
    pub in_window: bool,
}

impl Level {
    pub(crate) fn new() -> Self {
        Self {
            tables: Vec::new(),
            clause: Clause::From,
            aggregates: Vec::new(),
            groupings: Vec::new(),
            windows: Vec::new(),
            next_values: Vec::new(),
            named_windows: Vec::new(),
            hidden: None,
            in_aggregate: false,
            in_window: false,
        }
    }
}

/// A common table expression in reach.
#[derive(Debug, Clone)]
pub(crate) struct CteInReach {
    pub cte: Arc<ast::Cte>,
    /// Set while its own recursive member is bound: the work table and the names and types of its columns.
    pub recursion: Option<(u32, Vec<(String, thawdb_types::SqlType)>)>,
}

/// Binds one statement.
pub struct Binder<'c> {
    pub(crate) cx: &'c dyn CompileContext,
    pub(crate) settings: Settings,
    pub(crate) columns: Columns,
    pub(crate) levels: Vec<Level>,
    pub(crate) ctes: Vec<CteInReach>,
    pub(crate) work_tables: u32,
    pub(crate) views_deep: u32,
    /// Database and schema of the view or function being expanded: what bare names in it mean.
    pub(crate) home: Option<(DatabaseId, String)>,
    /// Parameters of the inline functions being expanded, the innermost last.
    pub(crate) parameters: Vec<Vec<(String, BoundExpr)>>,
    /// Tables behind their table-valued parameters, likewise.
    pub(crate) table_parameters: Vec<Vec<(String, Arc<TableDef>)>>,
    /// MAXRECURSION; 100 unless said, 0 is none.
    pub(crate) recursion_max: u32,
    /// WITH XMLNAMESPACES: prefix (empty for the default one) and URI.
    pub(crate) xml_namespaces: Vec<(String, String)>,
    /// IDENTITY(...) of SELECT INTO: which item of the select list it is, and what the new column counts by.
    pub(crate) identity_item: Option<(usize, thawdb_catalog::IdentityDef)>,
    /// What `$action` is while the OUTPUT of MERGE is bound.
    pub(crate) merge_action: Option<ColumnRef>,
    /// What has to be allowed.
    needs: Vec<access::OpenNeed>,
    /// Columns named so far, each with the depth of views it was named at.
    used: RefCell<BTreeSet<(ColumnRef, u32)>>,
    /// The views, functions and tables whose definitions are being bound, the innermost last.
    pub(crate) parents: Vec<Place>,
    /// The synonym that led to the object found last.
    synonym: Option<Place>,
    /// The view through which rows are changed.
    pub(crate) target_view: Option<Place>,
    /// FOR SYSTEM_TIME of the views being expanded, the innermost last.
    pub(crate) system_times: Vec<temporal::PeriodTimes>,
    /// Whether a temporal table was met under the innermost of them.
    pub(crate) met_temporal: bool,
    /// Views WITH CHECK OPTION met so far, inner ones before those around them.
    pub(crate) checked_views: Vec<statement::CheckedView>,
    /// The one of them that rows written must be in.
    pub(crate) view_check: Option<Arc<crate::compile::ViewCheck>>,
    /// Definitions of columns being bound, one within the other: what they name is no use by the statement.
    pub(crate) definitions_deep: u32,
    dependencies: Vec<Dependency>,
    catalogs: Vec<(DatabaseId, Arc<Catalog>)>,
    /// Line of the statement, for errors that SQL Server places there.
    pub(crate) statement: ast::Span,
}

impl<'c> Binder<'c> {
    /// A binder of a statement that begins at `line`.
    pub fn new(cx: &'c dyn CompileContext, line: u32) -> Self {
        Self {
            cx,
            settings: cx.settings(),
            columns: Columns::default(),
            levels: Vec::new(),
            ctes: Vec::new(),
            work_tables: 0,
            views_deep: 0,
            home: None,
            parameters: Vec::new(),
            table_parameters: Vec::new(),
            recursion_max: 100,
            xml_namespaces: Vec::new(),
            identity_item: None,
            merge_action: None,
            needs: Vec::new(),
            used: RefCell::default(),
            parents: Vec::new(),
            synonym: None,
            target_view: None,
            system_times: Vec::new(),
            met_temporal: false,
            checked_views: Vec::new(),
            view_check: None,
            definitions_deep: 0,
            dependencies: Vec::new(),
            catalogs: Vec::new(),
            statement: ast::Span { start: 0, end: 0, line },
        }
    }

    /// The columns it made and what the plan depends on.
    pub(crate) fn finish(mut self) -> (Columns, Vec<Dependency>) {
        self.dependencies.sort_unstable();
        self.dependencies.dedup();
        (self.columns, self.dependencies)
    }

    pub(crate) fn catalog(&mut self, database: DatabaseId) -> Option<Arc<Catalog>> {
        if let Some((_, catalog)) = self.catalogs.iter().find(|(d, _)| *d == database) {
            return Some(catalog.clone());
        }
        let catalog = self.cx.session().catalog(database)?;
        self.catalogs.push((database, catalog.clone()));
        Some(catalog)
    }

    pub(crate) fn depend(&mut self, table: &TableDef, writes: bool) {
        let catalog_version = self.catalog(table.database).map_or(0, |c| c.version);
        self.dependencies.push(Dependency { database: table.database, catalog_version, table: table.id, writes, whole: false });
    }

    /// The plan depends on a view or function.
    pub(crate) fn depend_on(&mut self, database: DatabaseId, id: ObjectId) {
        let catalog_version = self.catalog(database).map_or(0, |c| c.version);
        self.dependencies.push(Dependency { database, catalog_version, table: id, writes: false, whole: false });
    }

    pub(crate) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("a query is being bound")
    }

    pub(crate) fn clause(&self) -> Clause {
        self.levels.last().map_or(Clause::Other, |l| l.clause)
    }

    /// Binds with another clause, then restores the present one.
    pub(crate) fn within<T>(&mut self, clause: Clause, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.level().clause, clause);
        let result = bind(self);
        self.level().clause = before;
        result
    }

    /// A reference to `column` as the binder knows it now.
    pub(crate) fn column_expr(&self, column: ColumnRef) -> BoundExpr {
        let info = self.columns.info(column);
        BoundExpr { kind: BoundExprKind::Column(column), sql_type: info.sql_type, nullable: info.nullable }
    }

    /// A new column for `expr`'s value; the same column if it is one already.
    pub(crate) fn name_expr(&mut self, name: &str, expr: &BoundExpr) -> ColumnRef {
        match expr.as_column() {
            Some(column) => column,
            None => self.columns.add(name, expr.sql_type, expr.nullable),
        }
    }
}
