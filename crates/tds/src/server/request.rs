//! One request on a worker thread: decode, ask the session, answer.

use crate::packet::{Message, PacketType, STATUS_RESET_CONNECTION, STATUS_RESET_CONNECTION_SKIP_TRANSACTION};
use crate::server::sink::{Peer, ResponseSink};
use crate::transaction::TransactionRequest;
use crate::{batch, rpc};
use std::sync::Arc;
use thawdb_engine::{Isolation, Parameter, ResultSink, Session, TableRows};
use thawdb_types::SqlError;

/// What a request leaves behind.
pub(crate) enum Outcome {
    /// The connection goes on.
    Ready,
    /// The connection must be closed: the client broke the protocol, or the session has ended.
    Close,
}

/// Answers `message`. A malformed request ends the connection, as SQL Server does (error 4002 in its log).
pub(crate) fn run(session: &mut Session, message: &Message, peer: &Peer) -> Outcome {
    let mut sink = ResponseSink::new(peer.clone());
    if message.status & (STATUS_RESET_CONNECTION | STATUS_RESET_CONNECTION_SKIP_TRANSACTION) != 0 {
        session.reset(message.status & STATUS_RESET_CONNECTION_SKIP_TRANSACTION != 0, &mut sink);
    }
    let well_formed = match message.packet_type {
        PacketType::SqlBatch => run_batch(session, message, peer, &mut sink),
        PacketType::Rpc => run_rpc(session, message, peer, &mut sink),
        PacketType::TransactionManager => run_transaction(session, message, peer, &mut sink),
        _ => None,
    };
    if well_formed.is_none() {
        return Outcome::Close;
    }
    sink.finish();
    if session.is_ended() { Outcome::Close } else { Outcome::Ready }
}

fn run_batch(session: &mut Session, message: &Message, peer: &Peer, sink: &mut ResponseSink) -> Option<()> {
    let text = batch::decode(&message.data, peer.version).ok()?;
    session.execute(&text, &[], sink);
    Some(())
}

fn run_rpc(session: &mut Session, message: &Message, peer: &Peer, sink: &mut ResponseSink) -> Option<()> {
    let calls = rpc::decode(&message.data, peer.version).ok()?;
    let last = calls.len().checked_sub(1)?;
    for (index, call) in calls.into_iter().enumerate() {
        sink.more_calls = index < last;
        if let Some(at) = call.invalid {
            sink.message(&invalid_value(at, &call.parameters[at]));
            sink.plain_done(true);
            continue;
        }
        let parameter = |p: rpc::RpcParameter| Parameter {
            name: p.name,
            sql_type: p.sql_type,
            value: p.value,
            output: p.output,
            is_default: p.default,
            rows: p.table.map(|table| Arc::new(TableRows { types: table.types(), targets: table.targets(), rows: table.rows })),
        };
        let parameters: Vec<Parameter> = call.parameters.into_iter().map(parameter).collect();
        session.execute_rpc(&call.procedure, &parameters, sink);
    }
    Some(())
}

/// A parameter whose value is none of its type.
fn invalid_value(at: usize, parameter: &rpc::RpcParameter) -> SqlError {
    let type_name = if parameter.table.is_some() { "table" } else { parameter.sql_type.message_name() };
    thawdb_types::message(8023, &[&(at + 1), &parameter.name, &type_name])
}

fn run_transaction(session: &mut Session, message: &Message, peer: &Peer, sink: &mut ResponseSink) -> Option<()> {
    let request = TransactionRequest::decode(&message.data, peer.version).ok()?;
    let result = match request {
        TransactionRequest::Begin { isolation: level, name } => session.begin_transaction(isolation(level), &name, sink),
        TransactionRequest::Commit { then_begin } => session.commit_transaction(then_begin.is_some(), sink),
        TransactionRequest::Rollback { name, then_begin } => session.rollback_transaction(&name, then_begin.is_some(), sink),
        TransactionRequest::Save { name } => session.save_transaction(&name),
        TransactionRequest::Unsupported(_) => Err(unsupported()),
    };
    if let Err(error) = &result {
        sink.message(error);
    }
    sink.plain_done(result.is_err());
    Some(())
}

fn isolation(level: u8) -> Option<Isolation> {
    match level {
        1 => Some(Isolation::ReadUncommitted),
        2 => Some(Isolation::ReadCommitted),
        3 => Some(Isolation::RepeatableRead),
        4 => Some(Isolation::Serializable),
        5 => Some(Isolation::Snapshot),
        _ => None,
    }
}

/// Distributed transactions (8501: the coordinator is not there).
fn unsupported() -> SqlError {
    let text = "MSDTC on server is unavailable.".into();
    SqlError { number: 8501, severity: 16, state: 3, text, line: 0, procedure: None }
}
