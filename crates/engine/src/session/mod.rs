//! A session: one client's state, and the doors through which it asks for work.
//!
//! ```text
//! Session ── execute(text) ─────────► frame ─► Interpreter over the batch
//!         ── execute_rpc(name) ─────► procedures
//!         ── begin/commit/... ──────► batch::transactions
//!         ── bulk_load() ───────────► BulkLoader ─► exec::bulk_insert
//! ```
//!
//! A panic in a statement is caught here: the client is told 3624, the work is rolled back, the session ends. Nothing
//! below is left locked by it: storage's own latches abort the process instead.

pub(crate) mod api_cursors;
pub(crate) mod application_locks;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod cursors;
pub(crate) mod frame;
pub(crate) mod functions;
pub(crate) mod globals;
pub(crate) mod host;
pub(crate) mod isolation;
pub(crate) mod key_values;
pub(crate) mod options;
pub(crate) mod prepared;
pub(crate) mod properties;
pub(crate) mod rowset;
pub(crate) mod state;
pub(crate) mod temporary;
pub(crate) mod transaction;

use crate::api::parameter::Parameter;
use crate::api::sink::{DoneKind, EnvChange, ResultSink};
use crate::batch::execute::run_batch;
use crate::batch::outbox::Outbox;
use crate::batch::transactions;
use crate::instance::Engine;
use crate::instance::registry::SessionTicket;
use crate::instance::suspect_pages;
use crate::messages::message;
use crate::storage_error::internal;
use state::SessionState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use thawdb_observe::cancel::CancelReason;
use thawdb_observe::wait::SessionWaits;
use thawdb_types::SqlError;

pub use bulk::BulkLoader;
pub use isolation::Isolation;

/// Cancels what a session is doing, from another thread. Cheap to clone.
#[derive(Clone)]
pub struct CancelToken(Arc<SessionTicket>);

impl CancelToken {
    /// The running call ends at its next check, with a `done` that says `cancelled`. No effect on an idle session:
    /// every call has a token of its own beneath this one.
    pub fn cancel(&self) {
        self.0.cancel_call(CancelReason::Attention);
    }
}

/// One client's session. Calls run on the caller's thread, one at a time. Dropping it rolls back and ends it.
pub struct Session {
    state: Box<SessionState>,
}

/// How a call ended, for its last completion.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallEnd {
    pub(crate) failed: bool,
    pub(crate) cancelled: bool,
}

impl Session {
    pub(crate) fn new(state: SessionState) -> Self {
        Self { state: Box::new(state) }
    }

    /// What its calls wait for, to be read from any thread.
    pub fn waits(&self) -> Arc<SessionWaits> {
        self.state.ticket.waits.clone()
    }

    /// Whether the login may be here at all: CONNECT SQL, and a user in the database it begins in. 18456, 4060, 4064.
    pub(crate) fn check_login(&self, request: &crate::api::login::LoginRequest) -> Result<(), SqlError> {
        let state = &*self.state;
        if !state.server_judge().allows(crate::security::rule::Securable::Server, "CONNECT SQL") {
            return Err(message(18456, &[&request.user, &"", &""]).with_state(1));
        }
        match (state.user_token(state.database.id), request.database.is_empty()) {
            (Some(_), _) => Ok(()),
            (None, true) => Err(message(4064, &[])),
            (None, false) => Err(message(4060, &[&request.database])),
        }
    }

    /// `@@SPID`.
    pub fn id(&self) -> i16 {
        self.state.ticket.id
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.state.engine
    }

    /// Name of the database in use.
    pub fn database(&self) -> String {
        self.state.database.name()
    }

    /// Has `tell` called when somebody kills the session: one that is between two calls ends only when it is dropped, and
    /// keeps its transaction and locks until then.
    pub fn on_kill(&self, tell: impl Fn() + Send + Sync + 'static) {
        *self.state.ticket.on_kill.lock() = Some(Arc::new(tell));
    }

    /// What cancels this session's statements.
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken(self.state.ticket.clone())
    }

    /// Whether an error of severity 20 or KILL has ended the session: the connection must be closed.
    pub fn is_ended(&self) -> bool {
        self.state.ended || self.state.ticket.is_killed() || self.state.engine.is_closed()
    }

    /// Runs a batch. Everything it says goes to `sink`.
    pub fn execute(&mut self, text: &str, parameters: &[Parameter], sink: &mut dyn ResultSink) {
        self.call(text, DoneKind::Statement, sink, |state, out| run_batch(state, out, text, parameters));
    }

    /// Calls a procedure by name (`sp_executesql`, `sp_prepare`, `sp_execute`, `sp_unprepare`, `sp_prepexec`, ...).
    /// Output parameters come back through `return_value`.
    pub fn execute_rpc(&mut self, procedure: &str, parameters: &[Parameter], sink: &mut dyn ResultSink) {
        self.call(procedure, DoneKind::Procedure, sink, |state, out| {
            out.depth = 1;
            crate::procedures::call_rpc(state, out, procedure, parameters)
        });
    }

    /// Puts the session back as after login: rolls back, drops temporary tables, default options (the connection
    /// reset that pooling drivers ask for). `keep_transaction` leaves the transaction open.
    pub fn reset(&mut self, keep_transaction: bool, sink: &mut dyn ResultSink) {
        let state = &mut *self.state;
        let mut out = Outbox::new(sink);
        if !keep_transaction {
            // What cannot be rolled back now is read through as aborted later; the session is clean either way.
            let _ = state.rollback_work();
            let _ = crate::ddl::temporary::drop_all(state);
        }
        state.application_locks.forget(&state.engine.locks);
        state.frames.clear();
        state.cursors = cursors::Cursors::default();
        state.api_cursors = api_cursors::ApiCursors::default();
        state.options = options::Options::default();
        state.prepared = prepared::PreparedTexts::default();
        state.bulk = None;
        state.key_values = key_values::KeyValues::default();
        state.contexts.truncate(1);
        (state.last_error, state.row_count, state.last_identity) = (0, 0, None);
        let old = state.database.name();
        if state.database.id != state.login_database
            && let Some(open) = state.engine.database(state.login_database)
            && state.use_database(open).is_ok()
        {
            out.env_change(&EnvChange::Database { old, new: state.database.name() });
        }
        out.env_change(&EnvChange::ResetConnection);
    }

    /// Begins a transaction on the client's behalf. The descriptor reaches the sink as an environment change.
    pub fn begin_transaction(&mut self, isolation: Option<Isolation>, name: &str, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        if let Some(isolation) = isolation {
            self.state.options.isolation = isolation;
            self.state.ticket.facts.lock().isolation = isolation.number();
        }
        let name = (!name.is_empty()).then_some(name);
        transactions::begin(&mut self.state, &mut Outbox::new(sink), name)
    }

    /// Commits; with `begin_next` begins another at once.
    pub fn commit_transaction(&mut self, begin_next: bool, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let mut out = Outbox::new(sink);
        transactions::commit(&mut self.state, &mut out)?;
        if begin_next { transactions::begin(&mut self.state, &mut out, None) } else { Ok(()) }
    }

    /// Rolls back the transaction, or to the savepoint `name` if it is not empty; with `begin_next` begins another.
    pub fn rollback_transaction(&mut self, name: &str, begin_next: bool, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let mut out = Outbox::new(sink);
        let name = (!name.is_empty()).then_some(name);
        transactions::rollback(&mut self.state, &mut out, name)?;
        if begin_next { transactions::begin(&mut self.state, &mut out, None) } else { Ok(()) }
    }

    /// Marks a savepoint.
    pub fn save_transaction(&mut self, name: &str) -> Result<(), SqlError> {
        transactions::save(&mut self.state, name)
    }

    /// The loader that the last batch, an `INSERT BULK` statement, announced. 4002 if there was none.
    pub fn bulk_load(&mut self) -> Result<BulkLoader<'_>, SqlError> {
        bulk::begin(&mut self.state)
    }

    fn call(
        &mut self,
        text: &str,
        kind: DoneKind,
        sink: &mut dyn ResultSink,
        work: impl FnOnce(&mut SessionState, &mut Outbox<'_>) -> CallEnd,
    ) {
        let state = &mut *self.state;
        let _waits = thawdb_observe::wait::bind(&state.ticket.waits);
        let mut out = Outbox::new(sink);
        state.cancel = state.ticket.begin_call();
        state.note_start(text);
        let end = catch_unwind(AssertUnwindSafe(|| work(state, &mut out)));
        let end = end.unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            out.message(&internal(what.unwrap_or("panic").to_owned()));
            state.frames.clear();
            state.in_function = 0;
            state.changes = changes::Changes::default();
            let _ = state.rollback_work();
            state.ended = true;
            CallEnd { failed: true, cancelled: false }
        });
        if state.ticket.is_killed() {
            out.message(&message(596, &[]));
            let _ = state.rollback_work();
            state.ended = true;
        }
        state.note_end();
        if end.failed || state.database.storage.store().has_new_suspect_pages() {
            suspect_pages::record(&state.engine);
        }
        out.finish(kind, end.failed, end.cancelled);
    }
}

impl SessionState {
    /// Lets others see that a call runs.
    fn note_start(&mut self, text: &str) {
        let now = self.engine.now_datetime();
        self.call_start = now;
        let mut facts = self.ticket.facts.lock();
        facts.running = true;
        facts.request_start = now;
        facts.command = "EXECUTE";
        if *facts.text != *text {
            facts.text = Arc::from(text);
        }
    }

    fn note_end(&mut self) {
        let now = self.engine.now_datetime();
        let mut facts = self.ticket.facts.lock();
        facts.running = false;
        facts.request_end = now;
        facts.command = "AWAITING COMMAND";
        facts.transaction_count = i32::try_from(self.transactions.count).unwrap_or(i32::MAX);
        facts.isolation = self.options.isolation.number();
        facts.row_count = self.row_count;
        facts.last_error = self.last_error;
        facts.prepared_count = self.prepared.len();
    }
}
