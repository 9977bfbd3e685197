//! A bulk load on a worker thread: packets in, rows to the session's loader.
//!
//! The connection's task hands packets over through a channel of [`PACKETS_WAITING_MAX`]; a slow table so slows the
//! client down instead of filling memory. Rows become columns of [`Batch::row_count`] up to [`ROWS_PER_BATCH`].

use crate::bulk::{BulkDecoder, BulkItem};
use crate::server::request::Outcome;
use crate::server::sink::{Peer, ResponseSink};
use crate::token::ColMetadata;
use std::sync::mpsc::Receiver;
use thawdb_engine::{Batch, BulkColumn, BulkLoader, ResultSink, Session};
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::{ColumnBuilder, Scalar, SqlError, SqlType};

/// Packets that may wait for the worker.
pub(crate) const PACKETS_WAITING_MAX: usize = 64;
/// Rows handed to the engine at a time.
const ROWS_PER_BATCH: usize = 4096;

/// What the connection's task hands over.
pub(crate) enum Piece {
    /// Data of a packet.
    Data(Vec<u8>),
    /// That was the last packet.
    End,
    /// The client has given the load up.
    Cancelled,
}

/// Loads until the message ends. A message that ends within a row, or a client that leaves before it ends, breaks the
/// protocol and nothing is kept; a DONE at the end is welcome but FreeTDS sends none.
pub(crate) fn run(session: &mut Session, packets: &Receiver<Piece>, peer: &Peer) -> Outcome {
    let mut sink = ResponseSink::new(peer.clone());
    let outcome = load(session, packets, peer, &mut sink);
    match outcome {
        Ok(()) => {}
        Err(Failure::Sql(error)) => {
            // The client sends all its rows before it listens.
            packets.iter().for_each(drop);
            sink.message(&error);
            sink.plain_done(true);
        }
        Err(Failure::Cancelled) => sink.plain_done(true),
        Err(Failure::Protocol) => return Outcome::Close,
    }
    sink.finish();
    if session.is_ended() { Outcome::Close } else { Outcome::Ready }
}

enum Failure {
    Sql(SqlError),
    Cancelled,
    Protocol,
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

fn load(session: &mut Session, packets: &Receiver<Piece>, peer: &Peer, sink: &mut ResponseSink) -> Result<(), Failure> {
    let mut loader = session.bulk_load()?;
    let mut decoder = BulkDecoder::new(peer.version);
    let mut pending: Option<PendingRows> = None;
    let mut over = false;
    for piece in packets {
        match piece {
            Piece::Data(data) => decoder.push(&data),
            Piece::End => over = decoder.is_between_rows(),
            Piece::Cancelled => return Err(Failure::Cancelled),
        }
        while let Some(item) = decoder.next_item().map_err(|_| Failure::Protocol)? {
            match item {
                BulkItem::Columns(columns) => pending = Some(PendingRows::new(&columns, loader.columns())?),
                BulkItem::Row(row) => pending.as_mut().ok_or(Failure::Protocol)?.add(row, &mut loader)?,
                BulkItem::NoValue(sql_type) => return Err(thawdb_types::message(9803, &[&sql_type.message_name()]).into()),
                BulkItem::Done => {}
            }
        }
    }
    if !over {
        return Err(Failure::Protocol);
    }
    pending.ok_or(Failure::Protocol)?.push_to(&mut loader)?;
    loader.finish(sink);
    Ok(())
}

/// Rows on their way to becoming a batch.
struct PendingRows {
    types: Vec<(SqlType, SqlType)>,
    builders: Vec<ColumnBuilder>,
    row_count: usize,
}

impl PendingRows {
    fn new(sent: &ColMetadata, wanted: &[BulkColumn]) -> Result<Self, SqlError> {
        if sent.columns.len() != wanted.len() {
            // Invalid column client id or count in the bulk load's metadata.
            return Err(thawdb_types::message(4816, &[&sent.columns.len().to_string()]));
        }
        let types: Vec<_> = sent.columns.iter().zip(wanted).map(|(s, w)| (s.info.sql_type, w.sql_type)).collect();
        let builders = types.iter().map(|(_, wanted)| ColumnBuilder::new(wanted, ROWS_PER_BATCH)).collect();
        Ok(Self { types, builders, row_count: 0 })
    }

    fn add(&mut self, row: Vec<Scalar>, loader: &mut BulkLoader<'_>) -> Result<(), SqlError> {
        for ((value, (from, to)), builder) in row.into_iter().zip(&self.types).zip(&mut self.builders) {
            if from == to || value == Scalar::Null {
                builder.append(&value);
            } else {
                builder.append(&convert(&value, from, to, &ConvertOptions::default())?);
            }
        }
        self.row_count += 1;
        if self.row_count == ROWS_PER_BATCH { self.push_to(loader) } else { Ok(()) }
    }

    fn push_to(&mut self, loader: &mut BulkLoader<'_>) -> Result<(), SqlError> {
        if self.row_count == 0 {
            return Ok(());
        }
        let columns = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let row_count = std::mem::take(&mut self.row_count);
        loader.push(Batch { columns, row_count })
    }
}
