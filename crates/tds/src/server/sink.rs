//! Results on their way out: the engine's sink, written as tokens.

use crate::TdsVersion;
use crate::packet::{PacketType, PacketWriter};
use crate::server::transport::Transport;
use crate::token::{ColMetadata, ColumnMeta, Done, DoneToken, EnvChange, Message, ReturnStatus, ReturnValue};
use crate::type_info::TypeInfo;
use crate::value::RowEncoder;
use std::sync::Arc;
use thawdb_engine::{Batch, BrowseColumn, DoneInfo, DoneKind, EnvChange as SessionChange, OutputColumn, ResultSink, SinkClosed};
use thawdb_observe::wait::{self, WaitKind};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Rows are encoded this many at a time before full packets are looked for.
const ROWS_PER_TURN: usize = 64;
/// Full packets are sent when this much waits.
const SEND_BYTES: usize = 32 * 1024;

/// Severity 10 goes out as 0, as SQL Server does it "for compatibility reasons": drivers on FreeTDS take what is above 6 for
/// an error.
const SEVERITY_SHOWN_AS_NONE: u8 = 10;

/// What of a connection every response needs.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) transport: Arc<Transport>,
    pub(crate) version: TdsVersion,
    pub(crate) packet_bytes: usize,
    pub(crate) session_id: i16,
    pub(crate) server_name: Arc<str>,
}

/// A response.
pub(crate) struct ResponseSink {
    peer: Peer,
    writer: PacketWriter,
    ready: Vec<u8>,
    rows: Option<RowEncoder>,
    closed: bool,
    /// Another call of the same request follows: no `done` of this one is the last.
    pub(crate) more_calls: bool,
}

impl ResponseSink {
    pub(crate) fn new(peer: Peer) -> Self {
        let spid = u16::try_from(peer.session_id).unwrap_or(0);
        let writer = PacketWriter::new(PacketType::TabularResult, spid, peer.packet_bytes);
        Self { peer, writer, ready: Vec::new(), rows: None, closed: false, more_calls: false }
    }

    /// Where tokens go.
    pub(crate) fn body(&mut self) -> &mut Vec<u8> {
        self.writer.body()
    }

    /// Ends the response and sends what is left of it.
    pub(crate) fn finish(mut self) {
        self.writer.finish(&mut self.ready);
        self.send();
    }

    /// Appends a completion of the server's own.
    pub(crate) fn plain_done(&mut self, error: bool) {
        Done { error, ..Done::FINAL }.encode(self.peer.version, self.writer.body());
    }

    fn send_when_full(&mut self) {
        if self.writer.pending_bytes() > SEND_BYTES {
            self.writer.flush_full(&mut self.ready);
            self.send();
        }
    }

    fn send(&mut self) {
        if !self.closed && !self.ready.is_empty() {
            let waiting = wait::enter(WaitKind::AsyncNetworkIo);
            self.closed = self.peer.transport.write(&self.ready).is_err();
            drop(waiting);
        }
        self.ready.clear();
    }

    fn open(&self) -> Result<(), SinkClosed> {
        if self.closed { Err(SinkClosed) } else { Ok(()) }
    }
}

impl ResultSink for ResponseSink {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        let infos: Vec<TypeInfo> = columns.iter().map(|column| TypeInfo::of(column.sql_type)).collect();
        let column = |(column, info): (&OutputColumn, &TypeInfo)| ColumnMeta {
            name: column.name.clone(),
            info: *info,
            nullable: column.nullable,
            identity: column.identity,
        };
        let metadata = ColMetadata { columns: columns.iter().zip(&infos).map(column).collect() };
        metadata.encode(self.peer.version, self.writer.body());
        self.rows = Some(RowEncoder::new(infos));
        self.open()
    }

    fn browse(&mut self, tables: &[[String; 3]], columns: &[BrowseColumn]) {
        crate::token::browse::encode(tables, columns, self.writer.body());
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        let rows = self.rows.take().expect("columns come before rows");
        for start in (0..batch.row_count).step_by(ROWS_PER_TURN) {
            let end = (start + ROWS_PER_TURN).min(batch.row_count);
            rows.encode(&batch.columns, start..end, self.writer.body());
            self.send_when_full();
        }
        self.rows = Some(rows);
        self.open()
    }

    fn done(&mut self, info: DoneInfo) {
        let token = match info.kind {
            DoneKind::Statement => DoneToken::Done,
            DoneKind::InProcedure => DoneToken::DoneInProc,
            DoneKind::Procedure => DoneToken::DoneProc,
        };
        let done = Done {
            token,
            more: info.more || self.more_calls,
            error: info.error,
            fatal: false,
            attention: false,
            command: info.statement as u16,
            rows: info.rows_affected,
        };
        done.encode(self.peer.version, self.writer.body());
        self.rows = None;
        self.send_when_full();
    }

    fn message(&mut self, message: &SqlError) {
        let mut error = message.clone();
        if error.severity == SEVERITY_SHOWN_AS_NONE {
            error.severity = 0;
        }
        let message = Message { error, server: self.peer.server_name.to_string() };
        message.encode(self.peer.version, self.writer.body());
        self.send_when_full();
    }

    fn return_status(&mut self, status: i32) {
        ReturnStatus(status).encode(self.writer.body());
    }

    fn return_value(&mut self, ordinal: u16, name: &str, sql_type: &SqlType, value: &Scalar) {
        let value = ReturnValue { ordinal, name: name.to_owned(), sql_type: *sql_type, value: value.clone() };
        value.encode(self.peer.version, self.writer.body());
    }

    fn env_change(&mut self, change: &SessionChange) {
        let change = match change.clone() {
            SessionChange::Database { old, new } => EnvChange::Database { new, old },
            SessionChange::Language { old, new } => EnvChange::Language { new, old },
            SessionChange::BeginTransaction { descriptor } => EnvChange::BeginTransaction(descriptor),
            SessionChange::CommitTransaction { descriptor } => EnvChange::CommitTransaction(descriptor),
            SessionChange::RollbackTransaction { descriptor } => EnvChange::RollbackTransaction(descriptor),
            SessionChange::ResetConnection => EnvChange::ResetConnection,
        };
        change.encode(self.writer.body());
    }
}
