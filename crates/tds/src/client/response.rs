//! What a server answers, token by token, as it arrives.
//!
//! ```text
//! packets ──► pending bytes ──decode──► Item ──► caller          a token cut by a packet waits for the next one
//! ```
//!
//! Invariants: R1 a response is read to its end before the next request is sent ([`Incoming::drain`]). R2 after an
//! attention was sent, the response ends with the DONE that acknowledges it and with nothing before
//! ([`Incoming::next_item`]). R3 a token is decoded at most a constant number of times per doubling of its size.
//!
//! Failure: bytes that are no tokens, or a connection cut short, are errors; the connection is of no use afterwards.

use crate::TdsVersion;
use crate::buffer::{DecodeError, Flaw, Reader};
use crate::client::ClientError;
use crate::client::transport::Transport;
use crate::packet::{Framer, PacketType};
use crate::token::{ColMetadata, Done, DoneToken, EnvChange, FeatureExtAck, LoginAck, Message, ReturnStatus, ReturnValue, code};
use crate::value;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_types::Scalar;

/// Tokens that only we skip: TABNAME, COLINFO, SSPI.
const SKIPPED: [u8; 3] = [0xA4, 0xA5, 0xED];
/// Pending bytes beyond which a cut token waits for half as much again before it is tried once more.
const PATIENCE_BYTES: usize = 64 * 1024;

/// A token of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A result set begins.
    Columns(ColMetadata),
    /// A row of it.
    Row(Vec<Scalar>),
    /// A statement or procedure is over.
    Done(Done),
    /// An error or an informational message.
    Message(Message),
    /// What a procedure returned.
    ReturnStatus(i32),
    /// An output parameter.
    ReturnValue(ReturnValue),
    /// The session's surroundings changed.
    EnvChange(EnvChange),
    /// Come in.
    LoginAck(LoginAck),
    /// Features taken up.
    FeatureExtAck(FeatureExtAck),
    /// Something without meaning for us (ORDER).
    Skipped,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) framer: Framer,
    pub(crate) version: TdsVersion,
    pending: Vec<u8>,
    start: usize,
    columns: Option<ColMetadata>,
    /// The message's last packet has come.
    message_over: bool,
    /// Nothing more of the present response is owed.
    response_over: bool,
    attention_acknowledged: bool,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self {
            framer: Framer::default(),
            version: TdsVersion::V7_4,
            pending: Vec::new(),
            start: 0,
            columns: None,
            message_over: true,
            response_over: true,
            attention_acknowledged: false,
        }
    }

    /// A request has been sent: its response is owed.
    pub(crate) fn expect_response(&mut self) {
        self.pending.clear();
        self.start = 0;
        self.columns = None;
        self.message_over = false;
        self.response_over = false;
        self.attention_acknowledged = false;
    }

    /// The next item, `None` at the end of the response. `attention` says whether one was sent during this response,
    /// and is cleared when it has been acknowledged.
    pub(crate) fn next_item(&mut self, transport: &Transport, attention: &AtomicBool) -> Result<Option<Item>, ClientError> {
        loop {
            if self.response_over {
                return Ok(None);
            }
            if let Some(item) = self.decode()? {
                if let Item::Done(done) = &item {
                    self.attention_acknowledged |= done.attention;
                }
                return Ok(Some(item));
            }
            if !self.message_over {
                self.receive(transport)?;
            } else if self.start < self.pending.len() {
                return Err(DecodeError { what: "token cut by the end of the response", remaining: 0, flaw: Flaw::Malformed }.into());
            } else if attention.load(Ordering::Acquire) && !self.attention_acknowledged {
                self.message_over = false;
            } else {
                attention.store(false, Ordering::Release);
                self.response_over = true;
            }
        }
    }

    /// Reads the rest of the response.
    pub(crate) fn drain(&mut self, transport: &Transport, attention: &AtomicBool) -> Result<(), ClientError> {
        while self.next_item(transport, attention)?.is_some() {}
        Ok(())
    }

    /// Takes at least one packet more.
    fn receive(&mut self, transport: &Transport) -> Result<(), ClientError> {
        self.pending.drain(..self.start);
        self.start = 0;
        let wanted = if self.pending.len() > PATIENCE_BYTES { self.pending.len() / 2 } else { 1 };
        let before = self.pending.len();
        while self.pending.len() < before + wanted && !self.message_over {
            while let Some(packet) = self.framer.next_packet()? {
                if packet.packet_type != PacketType::TabularResult {
                    return Err(DecodeError { what: "packet type of a response", remaining: 0, flaw: Flaw::Malformed }.into());
                }
                self.pending.extend_from_slice(&packet.data);
                if packet.is_last() {
                    self.message_over = true;
                    return Ok(());
                }
            }
            if self.pending.len() < before + wanted {
                transport.read(&mut self.framer)?;
            }
        }
        Ok(())
    }

    /// The next whole token among the pending bytes.
    fn decode(&mut self) -> Result<Option<Item>, ClientError> {
        let bytes = &self.pending[self.start..];
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader::new(bytes);
        match token(&mut reader, self.version, self.columns.as_ref()) {
            Ok(item) => {
                self.start = self.pending.len() - reader.remaining();
                if let Item::Columns(columns) = &item {
                    self.columns = Some(columns.clone());
                }
                Ok(Some(item))
            }
            Err(error) if error.is_incomplete() && !self.message_over => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn token(reader: &mut Reader<'_>, version: TdsVersion, columns: Option<&ColMetadata>) -> Result<Item, DecodeError> {
    let first = reader.u8("token")?;
    let done = |token, reader: &mut Reader<'_>| Done::decode(token, reader, version).map(Item::Done);
    match first {
        code::ROW => row(columns.ok_or(reader.malformed("row without columns"))?, reader),
        code::NBC_ROW => sparse_row(columns.ok_or(reader.malformed("row without columns"))?, reader),
        code::COL_METADATA => ColMetadata::decode(reader, version).map(Item::Columns),
        code::DONE => done(DoneToken::Done, reader),
        code::DONE_PROC => done(DoneToken::DoneProc, reader),
        code::DONE_IN_PROC => done(DoneToken::DoneInProc, reader),
        code::ERROR | code::INFO => Message::decode(reader, version).map(Item::Message),
        code::ENV_CHANGE => EnvChange::decode(reader).map(Item::EnvChange),
        code::RETURN_STATUS => ReturnStatus::decode(reader).map(|status| Item::ReturnStatus(status.0)),
        code::RETURN_VALUE => ReturnValue::decode(reader, version).map(Item::ReturnValue),
        code::LOGIN_ACK => LoginAck::decode(reader).map(Item::LoginAck),
        code::FEATURE_EXT_ACK => FeatureExtAck::decode(reader).map(Item::FeatureExtAck),
        code::ORDER | code::TABLE_NAME | code::COLUMN_INFO => skip(reader),
        other if SKIPPED.contains(&other) => skip(reader),
        _ => Err(reader.malformed("token")),
    }
}

fn skip(reader: &mut Reader<'_>) -> Result<Item, DecodeError> {
    let length = reader.u16("token length")?;
    reader.bytes(usize::from(length), "token")?;
    Ok(Item::Skipped)
}

fn row(columns: &ColMetadata, reader: &mut Reader<'_>) -> Result<Item, DecodeError> {
    let values = columns.columns.iter().map(|column| value::decode(&column.info, reader));
    values.collect::<Result<_, _>>().map(Item::Row)
}

/// A row whose NULLs are told by a bitmap in front (MS-TDS 2.2.7.13).
fn sparse_row(columns: &ColMetadata, reader: &mut Reader<'_>) -> Result<Item, DecodeError> {
    let nulls = reader.bytes(columns.columns.len().div_ceil(8), "null bitmap")?;
    let values = columns.columns.iter().enumerate().map(|(at, column)| {
        let null = nulls[at / 8] >> (at % 8) & 1 == 1;
        if null { Ok(Scalar::Null) } else { value::decode(&column.info, reader) }
    });
    values.collect::<Result<_, _>>().map(Item::Row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::ColumnMeta;
    use crate::type_info::TypeInfo;
    use thawdb_types::SqlType;

    fn columns() -> ColMetadata {
        let column = |name: &str, sql_type| ColumnMeta { name: name.into(), info: TypeInfo::of(sql_type), nullable: true, identity: false };
        ColMetadata { columns: vec![column("a", SqlType::Int), column("b", SqlType::NVARCHAR_MAX)] }
    }

    #[test]
    fn rows_with_and_without_bitmap() {
        let columns = columns();
        let mut bytes = vec![code::NBC_ROW, 0b01];
        value::encode(&columns.columns[1].info, &Scalar::text("é"), &mut bytes);
        let got = token(&mut Reader::new(&bytes), TdsVersion::V7_4, Some(&columns)).unwrap();
        assert_eq!(got, Item::Row(vec![Scalar::Null, Scalar::text("é")]));
        for length in 0..bytes.len() {
            assert!(token(&mut Reader::new(&bytes[..length]), TdsVersion::V7_4, Some(&columns)).unwrap_err().is_incomplete());
        }
        let error = token(&mut Reader::new(&bytes), TdsVersion::V7_4, None).unwrap_err();
        assert!(!error.is_incomplete());
    }

    #[test]
    fn unknown_tokens_are_errors_and_known_ones_are_skipped() {
        for (bytes, fine) in [(&[0xA9, 2, 0, 1, 0][..], true), (&[0xA4, 0, 0], true), (&[0x42, 0, 0], false)] {
            assert_eq!(token(&mut Reader::new(bytes), TdsVersion::V7_4, None).is_ok(), fine);
        }
    }
}
