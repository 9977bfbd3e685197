//! Packets and messages (MS-TDS 2.2.3): every byte of the conversation travels in packets of one header each.
//!
//! ```text
//! type u8 | status u8 | length u16 big-endian, header included | spid u16 be | packet id u8 | window u8 = 0 | data
//! ```
//!
//! A message is one or more packets of a type; the last has bit 0 of the status set. Invariants: P1 a packet longer
//! than the negotiated size, or shorter than its header, ends the connection ([`Framer::next_packet`]). P2 a message
//! is bounded by [`Framer::message_bytes_max`]; bulk loads are taken packet by packet instead.

use crate::buffer::{DecodeError, Flaw};

/// Bytes of a packet header.
pub const HEADER_BYTES: usize = 8;
/// Packet size until the login agrees on another.
pub const PACKET_BYTES_DEFAULT: usize = 4096;
/// Smallest and largest packet a login may ask for (MS-TDS 2.2.6.4 and 2.2.3.1.3).
pub const PACKET_BYTES_RANGE: std::ops::RangeInclusive<usize> = 512..=32_767;
/// Largest message before authentication: LOGIN7 cannot reach it, and nobody unknown gets more memory.
pub const MESSAGE_BYTES_MAX_LOGIN: usize = 128 * 1024;
/// Largest batch or RPC: 65,536 packets of the default size, as documented for SQL Server.
pub const MESSAGE_BYTES_MAX: usize = 65_536 * PACKET_BYTES_DEFAULT;

/// Types of packets (MS-TDS 2.2.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// T-SQL text.
    SqlBatch = 1,
    /// Remote procedure call.
    Rpc = 3,
    /// What the server answers.
    TabularResult = 4,
    /// Stop what you are doing.
    Attention = 6,
    /// Rows of a bulk load.
    BulkLoad = 7,
    /// Federated authentication token.
    FedAuthToken = 8,
    /// Transaction manager request.
    TransactionManager = 14,
    /// LOGIN7.
    Login7 = 16,
    /// SSPI.
    Sspi = 17,
    /// PRELOGIN, and TLS records while the handshake lasts.
    PreLogin = 18,
}

impl PacketType {
    /// The type with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        [
            Self::SqlBatch,
            Self::Rpc,
            Self::TabularResult,
            Self::Attention,
            Self::BulkLoad,
            Self::FedAuthToken,
            Self::TransactionManager,
            Self::Login7,
            Self::Sspi,
            Self::PreLogin,
        ]
        .into_iter()
        .find(|known| *known as u8 == number)
    }
}

/// Last packet of its message.
pub const STATUS_END_OF_MESSAGE: u8 = 0x01;
/// The client gave the message up while sending it.
pub const STATUS_IGNORE: u8 = 0x02;
/// Reset the session before executing this message.
pub const STATUS_RESET_CONNECTION: u8 = 0x08;
/// Reset the session but keep its transaction.
pub const STATUS_RESET_CONNECTION_SKIP_TRANSACTION: u8 = 0x10;

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its type.
    pub packet_type: PacketType,
    /// Its status bits.
    pub status: u8,
    /// Its data.
    pub data: Vec<u8>,
}

impl Packet {
    /// Whether the message ends here.
    pub fn is_last(&self) -> bool {
        self.status & STATUS_END_OF_MESSAGE != 0
    }
}

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Type of its packets.
    pub packet_type: PacketType,
    /// Status bits of its first packet, where resets are asked for.
    pub status: u8,
    /// Data of all packets.
    pub data: Vec<u8>,
}

/// Cuts received bytes into packets.
#[derive(Debug)]
pub struct Framer {
    buffer: Vec<u8>,
    start: usize,
    packet_bytes_max: usize,
    message: Option<Message>,
    /// Largest message [`Framer::next_message`] puts together.
    pub message_bytes_max: usize,
}

impl Default for Framer {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            packet_bytes_max: *PACKET_BYTES_RANGE.end(),
            message: None,
            message_bytes_max: MESSAGE_BYTES_MAX_LOGIN,
        }
    }
}

impl Framer {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the bytes that belong to no packet yet: what follows when the framing changes (raw TLS).
    pub fn take_unframed(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.start);
        self.buffer.clear();
        self.start = 0;
        rest
    }

    /// The next whole packet, `None` while it is incomplete.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, DecodeError> {
        let bytes = &self.buffer[self.start..];
        let malformed = |what| DecodeError { what, remaining: bytes.len(), flaw: Flaw::Malformed };
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let packet_type = PacketType::from_u8(header[0]).ok_or_else(|| malformed("packet type"))?;
        if length < HEADER_BYTES || length > self.packet_bytes_max {
            return Err(malformed("packet length"));
        }
        let Some(data) = bytes.get(HEADER_BYTES..length) else { return Ok(None) };
        let packet = Packet { packet_type, status: header[1], data: data.to_vec() };
        self.start += length;
        Ok(Some(packet))
    }

    /// The next whole message, `None` while it is incomplete. A message the client gave up is skipped.
    pub fn next_message(&mut self) -> Result<Option<Message>, DecodeError> {
        while let Some(packet) = self.next_packet()? {
            if let Some(message) = self.add(packet)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Adds a packet to the message being put together; returns the message when it is whole.
    pub fn add(&mut self, packet: Packet) -> Result<Option<Message>, DecodeError> {
        let last = packet.is_last();
        let given_up = last && packet.status & STATUS_IGNORE != 0;
        match &mut self.message {
            None => self.message = Some(Message { packet_type: packet.packet_type, status: packet.status, data: packet.data }),
            Some(message) if message.packet_type != packet.packet_type => {
                return Err(DecodeError { what: "packet type within a message", remaining: 0, flaw: Flaw::Malformed });
            }
            Some(message) => message.data.extend_from_slice(&packet.data),
        }
        let message_bytes = self.message.as_ref().map_or(0, |m| m.data.len());
        if message_bytes > self.message_bytes_max {
            return Err(DecodeError { what: "message length", remaining: message_bytes, flaw: Flaw::Malformed });
        }
        let whole = if last { self.message.take() } else { None };
        Ok(if given_up { None } else { whole })
    }
}

/// Cuts a message to be sent into packets as it grows.
#[derive(Debug)]
pub struct PacketWriter {
    packet_type: PacketType,
    spid: u16,
    packet_bytes: usize,
    packet_id: u8,
    pending: Vec<u8>,
}

impl PacketWriter {
    /// A writer of messages of `packet_type` in packets of `packet_bytes`.
    pub fn new(packet_type: PacketType, spid: u16, packet_bytes: usize) -> Self {
        assert!(PACKET_BYTES_RANGE.contains(&packet_bytes), "packet size was checked at login");
        Self { packet_type, spid, packet_bytes, packet_id: 0, pending: Vec::with_capacity(packet_bytes * 2) }
    }

    /// Where tokens of the present message are appended; call [`Self::flush_full`] now and then.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Bytes that wait to be framed.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Moves whole packets to `out`, keeping back at least one byte so that the last packet is never empty of data.
    pub fn flush_full(&mut self, out: &mut Vec<u8>) {
        let data_bytes = self.packet_bytes - HEADER_BYTES;
        let mut taken = 0;
        while self.pending.len() - taken > data_bytes {
            self.packet_id = self.packet_id.wrapping_add(1);
            frame(self.packet_type, 0, self.spid, self.packet_id, &self.pending[taken..taken + data_bytes], out);
            taken += data_bytes;
        }
        self.pending.drain(..taken);
    }

    /// Ends the message.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush_full(out);
        self.packet_id = self.packet_id.wrapping_add(1);
        frame(self.packet_type, STATUS_END_OF_MESSAGE, self.spid, self.packet_id, &self.pending, out);
        self.pending.clear();
        self.packet_id = 0;
    }
}

/// Appends one packet to `out`.
pub fn frame(packet_type: PacketType, status: u8, spid: u16, packet_id: u8, data: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(HEADER_BYTES + data.len()).expect("packets are at most 32,767 bytes");
    out.extend_from_slice(&[packet_type as u8, status]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&spid.to_be_bytes());
    out.extend_from_slice(&[packet_id, 0]);
    out.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_in_any_cut() {
        for length in [0, 1, 503, 504, 505, 5000] {
            let data: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let mut writer = PacketWriter::new(PacketType::TabularResult, 51, 512);
            writer.body().extend_from_slice(&data);
            let mut wire = Vec::new();
            writer.finish(&mut wire);
            for cut in [1, 7, 512, wire.len()] {
                let mut framer = Framer::default();
                let mut got = Vec::new();
                for piece in wire.chunks(cut) {
                    framer.push(piece);
                    got.extend(framer.next_message().unwrap());
                }
                assert_eq!(got, [Message { packet_type: PacketType::TabularResult, status: got[0].status, data: data.clone() }]);
            }
        }
    }

    #[test]
    fn hostile_headers_are_errors() {
        for (bytes, what) in [
            ([1, 1, 0, 7, 0, 0, 0, 0], "packet length"),
            ([1, 1, 255, 255, 0, 0, 0, 0], "packet length"),
            ([99, 1, 0, 8, 0, 0, 0, 0], "packet type"),
        ] {
            let mut framer = Framer::default();
            framer.push(&bytes);
            assert_eq!(framer.next_packet().unwrap_err().what, what);
        }
    }

    #[test]
    fn messages_are_bounded_and_can_be_given_up() {
        let mut framer = Framer::default();
        framer.message_bytes_max = 10;
        let packet = |status, length| Packet { packet_type: PacketType::SqlBatch, status, data: vec![0; length] };
        assert!(framer.add(packet(0, 6)).unwrap().is_none());
        assert_eq!(framer.add(packet(1, 6)).unwrap_err().what, "message length");
        let mut framer = Framer::default();
        assert_eq!(framer.add(packet(STATUS_IGNORE | STATUS_END_OF_MESSAGE, 6)).unwrap(), None);
        assert!(framer.add(packet(STATUS_END_OF_MESSAGE, 6)).unwrap().is_some());
    }
}
