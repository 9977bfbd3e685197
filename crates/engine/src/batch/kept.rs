//! What running a text has led to, kept beside its tree for the next run: plans and bound expressions, step by step.
//!
//! ```text
//! tree of a text, or of a module ─► KeptRuns ─ situation ─► KeptRun ─ step ─► plan of its statement
//!                                                                        └─► expressions of IF, WHILE, SET, DECLARE, RETURN
//! ```
//! A situation is everything besides text and catalogs that decides what a statement means: database, settings, variables.
//! It is compared once a run, and again only where a statement may have changed it; a step then finds its plan by its number.
//!
//! Invariants: 1. a kept run is given out only in the situation it was made in ([`KeptRuns::run`], [`KeptRun::is_of`]).
//! 2. A kept plan is used only if the catalogs it was made under are unchanged, which the caller asks, and the statistics it
//!    was made of have not aged ([`KeptRun::plan`]).
//! 3. A kept expression depends on no catalog: it runs no plan and no statement ([`KeptExpr::of`]).
//! Bounded: [`RUNS_MAX`] situations a text.
//!
//! Locks: KEPT_RUNS and KEPT_PLAN (rank 5), each for a look or a change. No failure.

use crate::session::frame::Variable;
use crate::session::state::SessionState;
use std::sync::{Arc, OnceLock};
use thawdb_catalog::{DatabaseId, ObjectId};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_query::compile::{Compiled, Settings};
use thawdb_query::exec::{calls_function, runs_nothing};
use thawdb_query::expr::Expr;
use thawdb_types::SqlType;

static KEPT_RUNS: LockClass = LockClass::new("KEPT_RUNS", 5);
static KEPT_PLAN: LockClass = LockClass::new("KEPT_PLAN", 5);

/// Situations kept a text: those of the few kinds of clients that say it.
const RUNS_MAX: usize = 16;

/// What a text has led to, in each situation.
#[derive(Default)]
pub(crate) struct KeptRuns(OnceLock<Mutex<Vec<Arc<KeptRun>>>>);

/// What a text has led to in one situation.
pub(crate) struct KeptRun {
    /// Of the plan cache: when that is emptied, this is of the past.
    generation: u64,
    database: DatabaseId,
    settings: Settings,
    identity_insert: Option<(DatabaseId, ObjectId)>,
    variables: Vec<(String, SqlType, usize)>,
    steps: Vec<KeptStep>,
}

struct KeptStep {
    plan: Mutex<Option<Arc<Compiled>>>,
    exprs: OnceLock<Vec<KeptExpr>>,
}

/// A bound expression, and the variable that takes its value if one does.
pub(crate) struct KeptExpr {
    pub(crate) expr: Expr,
    pub(crate) target: usize,
    /// Whether it may ask for the moment or the state of the session.
    pub(crate) calls_function: bool,
}

impl KeptExpr {
    /// The expression, if it may be kept.
    pub(crate) fn of(expr: Expr, target: usize) -> Option<Self> {
        runs_nothing(&expr).then(|| Self { calls_function: calls_function(&expr), expr, target })
    }
}

impl std::fmt::Debug for KeptRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptRuns").finish_non_exhaustive()
    }
}

impl KeptRuns {
    fn runs(&self) -> &Mutex<Vec<Arc<KeptRun>>> {
        self.0.get_or_init(|| Mutex::new(&KEPT_RUNS, Vec::new()))
    }

    /// The run of a text of so many steps in the session's present situation, its variables being declared.
    pub(crate) fn run(&self, session: &SessionState, steps: usize) -> Arc<KeptRun> {
        // The settings look at who the session is, whose locks come before this one.
        let settings = session.settings();
        let mut runs = self.runs().lock();
        let fits = |run: &&Arc<KeptRun>| {
            run.is_under(session, settings) && run.has_variables(&session.frame().variables) && run.steps.len() == steps
        };
        if let Some(run) = runs.iter().find(fits) {
            return run.clone();
        }
        let run = Arc::new(KeptRun::new(session, settings, steps));
        if runs.len() >= RUNS_MAX {
            runs.clear();
        }
        runs.push(run.clone());
        run
    }
}

impl KeptRun {
    fn new(session: &SessionState, settings: Settings, steps: usize) -> Self {
        let step = || KeptStep { plan: Mutex::new(&KEPT_PLAN, None), exprs: OnceLock::new() };
        let variables = session.frame().variables.iter().map(|v| (v.name.clone(), v.sql_type, v.declared_at));
        Self {
            generation: session.engine.plans.generation(),
            database: session.database.id,
            settings,
            identity_insert: session.options.identity_insert,
            variables: variables.collect(),
            steps: std::iter::repeat_with(step).take(steps).collect(),
        }
    }

    /// Whether the session's database and settings are those of the run.
    #[inline]
    pub(crate) fn is_of(&self, session: &SessionState) -> bool {
        self.is_under(session, session.settings())
    }

    #[inline]
    fn is_under(&self, session: &SessionState, settings: Settings) -> bool {
        self.generation == session.engine.plans.generation()
            && self.database == session.database.id
            && self.settings == settings
            && self.identity_insert == session.options.identity_insert
    }

    fn has_variables(&self, variables: &[Variable]) -> bool {
        let same =
            |(kept, now): (&(String, SqlType, usize), &Variable)| kept.1 == now.sql_type && kept.2 == now.declared_at && kept.0 == now.name;
        self.variables.len() == variables.len() && self.variables.iter().zip(variables).all(same)
    }

    /// The plan of a step, if it is still true under the catalogs whose versions `version` tells.
    pub(crate) fn plan(&self, step: usize, version: impl Fn(DatabaseId) -> Option<u64>) -> Option<Arc<Compiled>> {
        // The catalogs are asked without the lock: their own come before it.
        let plan = self.steps.get(step)?.plan.lock().clone()?;
        (plan.is_fresh() && plan.dependencies.iter().all(|d| version(d.database) == Some(d.catalog_version))).then_some(plan)
    }

    /// Keeps the plan of a step.
    pub(crate) fn keep_plan(&self, step: usize, plan: &Arc<Compiled>) {
        if let Some(kept) = self.steps.get(step) {
            *kept.plan.lock() = Some(plan.clone());
        }
    }

    /// The expressions of a step.
    #[inline]
    pub(crate) fn exprs(&self, step: usize) -> Option<&[KeptExpr]> {
        self.steps.get(step)?.exprs.get().map(Vec::as_slice)
    }

    /// Keeps the expressions of a step: all of them, or none if one may not be kept.
    pub(crate) fn keep_exprs(&self, step: usize, exprs: Option<Vec<KeptExpr>>) {
        if let (Some(kept), Some(exprs)) = (self.steps.get(step), exprs) {
            // Two sessions that meet here have bound the same expressions.
            let _ = kept.exprs.set(exprs);
        }
    }
}
