//! Results while they come: the batch runs on a thread of its own, a short channel between it and the caller.
//!
//! ```text
//! thread: Session::execute ─► ChannelSink ──(at most ITEMS_WAITING_MAX)──► Stream::next ─► caller
//! ```
//!
//! Invariants: S1 a slow caller slows the statement down; nothing piles up. S2 a stream dropped early cancels the
//! statement, waits for it to end, and leaves the session ready for the next ([`Stream::drop`]).

use crate::embed::result::{record_batch, schema_of};
use crate::embed::session::Session;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use thawdb_engine::{Batch, CancelToken, DoneInfo, EnvChange, OutputColumn, ResultSink, SinkClosed};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Items that may wait for the caller.
const ITEMS_WAITING_MAX: usize = 4;
/// Stack of the thread: room for the deepest nesting the parser and binder allow, as the server's workers have.
const STACK_BYTES: usize = 8 << 20;

/// A piece of a batch's results.
#[derive(Debug, Clone)]
pub enum StreamItem {
    /// A result set begins.
    Columns {
        /// Its columns.
        columns: Vec<OutputColumn>,
        /// The same for Arrow.
        schema: SchemaRef,
    },
    /// Rows of it.
    Rows(RecordBatch),
    /// A statement completed, having affected so many rows.
    Done(Option<u64>),
    /// An informational message.
    Message(SqlError),
}

/// Results while they come. An error ends no stream by itself: a batch may go on after it.
pub struct Stream<'s> {
    session: &'s mut Session,
    cancel: CancelToken,
    items: Option<Receiver<Result<StreamItem, SqlError>>>,
    thread: Option<JoinHandle<thawdb_engine::Session>>,
}

impl<'s> Stream<'s> {
    pub(crate) fn start(session: &'s mut Session, sql: String) -> Self {
        let mut engine = session.take_engine();
        let cancel = engine.cancel_token();
        let (sender, items) = sync_channel(ITEMS_WAITING_MAX);
        let thread = std::thread::Builder::new().name("thawdb-stream".into()).stack_size(STACK_BYTES).spawn(move || {
            engine.execute(&sql, &[], &mut ChannelSink { sender, schema: schema_of(&[]) });
            engine
        });
        Self { session, cancel, items: Some(items), thread: Some(thread.expect("a thread can be started")) }
    }
}

impl Iterator for Stream<'_> {
    type Item = Result<StreamItem, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.items.as_ref()?.recv().ok()
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !thread.is_finished() {
            self.cancel.cancel();
        }
        // With the receiver gone a sink that waits for room is refused, and the statement stops.
        self.items = None;
        match thread.join() {
            Ok(engine) => self.session.give_back(engine),
            Err(panic) if !std::thread::panicking() => std::panic::resume_unwind(panic),
            Err(_) => {}
        }
    }
}

/// Hands on what the engine says.
struct ChannelSink {
    sender: SyncSender<Result<StreamItem, SqlError>>,
    schema: SchemaRef,
}

impl ChannelSink {
    fn send(&self, item: Result<StreamItem, SqlError>) -> Result<(), SinkClosed> {
        self.sender.send(item).map_err(|_| SinkClosed)
    }
}

impl ResultSink for ChannelSink {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        self.schema = schema_of(columns);
        self.send(Ok(StreamItem::Columns { columns: columns.to_vec(), schema: self.schema.clone() }))
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        self.send(Ok(StreamItem::Rows(record_batch(&self.schema, batch))))
    }

    fn done(&mut self, info: DoneInfo) {
        // A caller that has gone wants no news; `rows` and `columns` tell the engine so.
        let _ = self.send(Ok(StreamItem::Done(info.rows_affected)));
    }

    fn message(&mut self, message: &SqlError) {
        let item = if message.is_informational() { Ok(StreamItem::Message(message.clone())) } else { Err(message.clone()) };
        let _ = self.send(item);
    }

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _ordinal: u16, _name: &str, _sql_type: &SqlType, _value: &Scalar) {}

    fn env_change(&mut self, _change: &EnvChange) {}
}
