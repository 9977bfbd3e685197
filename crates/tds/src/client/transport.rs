//! The client's bytes: a blocking socket, and TLS where the server and we have agreed on it.
//!
//! ```text
//! Plain ──start_tls──► handshake inside PRELOGIN packets ──► Tls ──stop_tls (login-only encryption)──► Plain
//! ```
//!
//! Invariants: T1 bytes reach the socket in the order they were encrypted ([`Transport::write`] holds the writer's
//! turn over both). T2 nothing of a response is lost when TLS begins or ends: the server says nothing of its own
//! accord between the handshake and the login's answer.
//!
//! Locks: CLIENT_WRITE (1) before CLIENT_TLS (5). One thread reads; any thread may write (an attention comes from
//! another one), and blocks in the socket under CLIENT_WRITE alone.

use crate::buffer::{DecodeError, Flaw};
use crate::packet::{Framer, HEADER_BYTES, PACKET_BYTES_DEFAULT, PacketType, STATUS_END_OF_MESSAGE, frame};
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use thawdb_observe::sync::{LockClass, Mutex};

static TLS: LockClass = LockClass::new("CLIENT_TLS", 5);
static WRITE: LockClass = LockClass::new("CLIENT_WRITE", 1);
/// Bytes read from the socket at a time.
const READ_BYTES: usize = 64 * 1024;

/// A connection's bytes.
#[derive(Debug)]
pub(crate) struct Transport {
    socket: TcpStream,
    tls: Mutex<Option<Box<ClientConnection>>>,
    writing: Mutex<()>,
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Transport {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, tls: Mutex::new(&TLS, None), writing: Mutex::new(&WRITE, ()) })
    }

    pub(crate) fn into_socket(self) -> io::Result<TcpStream> {
        if self.is_encrypted() {
            return Err(io::Error::other("the connection is encrypted"));
        }
        Ok(self.socket)
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.lock().is_some()
    }

    /// Writes all.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _turn = self.writing.lock();
        let cipher = self.encrypt(bytes)?;
        (&self.socket).write_all(cipher.as_deref().unwrap_or(bytes))
    }

    fn encrypt(&self, bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut tls = self.tls.lock();
        let Some(connection) = tls.as_mut() else { return Ok(None) };
        connection.writer().write_all(bytes)?;
        let mut cipher = Vec::with_capacity(bytes.len() + 256);
        while connection.wants_write() {
            connection.write_tls(&mut cipher)?;
        }
        Ok(Some(cipher))
    }

    /// Reads what has come, waiting for the first byte, and gives it, decrypted, to the framer.
    pub(crate) fn read(&self, framer: &mut Framer) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let count = (&self.socket).read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut raw = &buffer[..count];
        let mut tls = self.tls.lock();
        let Some(connection) = tls.as_mut() else {
            framer.push(raw);
            return Ok(());
        };
        while !raw.is_empty() {
            connection.read_tls(&mut raw)?;
            connection.process_new_packets().map_err(invalid)?;
            take_plain(connection, framer)?;
        }
        Ok(())
    }

    /// Shakes hands; each flight travels in PRELOGIN packets (MS-TDS 3.2.5.1).
    pub(crate) fn start_tls(&self, config: Arc<ClientConfig>, host: &str) -> io::Result<()> {
        let name = rustls::pki_types::ServerName::try_from(host.to_owned()).map_err(invalid)?;
        let mut connection = Box::new(ClientConnection::new(config, name).map_err(invalid)?);
        connection.set_buffer_limit(None);
        let mut framer = Framer::default();
        loop {
            self.send_flight(&mut connection)?;
            if !connection.is_handshaking() {
                break;
            }
            self.receive_flight(&mut connection, &mut framer)?;
        }
        *self.tls.lock() = Some(connection);
        Ok(())
    }

    fn send_flight(&self, connection: &mut ClientConnection) -> io::Result<()> {
        let mut flight = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut flight)?;
        }
        let pieces = flight.chunks(PACKET_BYTES_DEFAULT - HEADER_BYTES);
        let count = pieces.len();
        let mut packets = Vec::new();
        for (index, piece) in pieces.enumerate() {
            let status = if index + 1 == count { STATUS_END_OF_MESSAGE } else { 0 };
            frame(PacketType::PreLogin, status, 0, 0, piece, &mut packets);
        }
        (&self.socket).write_all(&packets)
    }

    fn receive_flight(&self, connection: &mut ClientConnection, framer: &mut Framer) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let count = (&self.socket).read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        framer.push(&buffer[..count]);
        while let Some(packet) = framer.next_packet().map_err(invalid)? {
            if packet.packet_type != PacketType::PreLogin {
                return Err(invalid(DecodeError { what: "packet during the TLS handshake", remaining: 0, flaw: Flaw::Malformed }));
            }
            let mut raw = packet.data.as_slice();
            while !raw.is_empty() {
                connection.read_tls(&mut raw)?;
                connection.process_new_packets().map_err(invalid)?;
            }
        }
        Ok(())
    }

    /// Back to plain bytes: only the login was to be encrypted.
    pub(crate) fn stop_tls(&self) {
        *self.tls.lock() = None;
    }
}

fn take_plain(connection: &mut ClientConnection, framer: &mut Framer) -> io::Result<()> {
    let mut plain = [0; READ_BYTES];
    loop {
        match connection.reader().read(&mut plain) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => framer.push(&plain[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
