//! The bytes of one connection: a socket, and TLS in whichever of its forms has been agreed on.
//!
//! ```text
//! Plain ──start_tls──► handshake inside PRELOGIN packets ──► Tls ──stop_tls (login-only encryption)──► Plain
//! ```
//!
//! Reading is async and belongs to the connection's task; writing blocks and belongs to whoever answers (a worker, or
//! the task itself during the login). TLS is the sans-I/O `rustls` connection under one leaf lock; no I/O under it.

use crate::buffer::DecodeError;
use crate::packet::{Framer, PacketType, frame};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_observe::sync::{LockClass, Mutex};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

static TLS: LockClass = LockClass::new("TDS_TLS_CONNECTION", 5);
/// Bytes read from the socket at a time.
const READ_BYTES: usize = 64 * 1024;

/// A connection's bytes.
pub(crate) struct Transport {
    socket: TcpStream,
    runtime: Handle,
    tls: Mutex<Option<Box<ServerConnection>>>,
    encrypted: AtomicBool,
    /// One writer at a time: the worker, and the task that acknowledges an attention after it.
    writing: Mutex<()>,
}

static WRITING: LockClass = LockClass::new("TDS_WRITE", 1);

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Transport {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            runtime: Handle::current(),
            tls: Mutex::new(&TLS, None),
            encrypted: AtomicBool::new(false),
            writing: Mutex::new(&WRITING, ()),
        })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.encrypted.load(Ordering::Acquire)
    }

    /// The first byte the client sends, left where it is.
    pub(crate) async fn peek(&self) -> io::Result<u8> {
        let mut byte = [0];
        match self.socket.peek(&mut byte).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(byte[0]),
        }
    }

    async fn read_raw(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// Reads what has come and gives it, decrypted, to the framer. Cancel safe: nothing read is lost.
    pub(crate) async fn read(&self, framer: &mut Framer) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let count = self.read_raw(&mut buffer).await?;
        self.accept(&buffer[..count], framer)
    }

    /// Takes raw bytes.
    fn accept(&self, mut raw: &[u8], framer: &mut Framer) -> io::Result<()> {
        let mut tls = self.tls.lock();
        let Some(connection) = tls.as_mut() else {
            framer.push(raw);
            return Ok(());
        };
        let mut plain = [0; READ_BYTES];
        while !raw.is_empty() {
            connection.read_tls(&mut raw)?;
            connection.process_new_packets().map_err(invalid)?;
            loop {
                match connection.reader().read(&mut plain) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => framer.push(&plain[..count]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Writes all, blocking the calling worker thread.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _turn = self.writing.lock();
        let cipher = self.encrypt(bytes)?;
        let mut rest = cipher.as_deref().unwrap_or(bytes);
        while !rest.is_empty() {
            match self.socket.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.runtime.block_on(self.socket.writable())?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all from the connection's task.
    pub(crate) async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let cipher = self.encrypt(bytes)?;
        self.send_raw(cipher.as_deref().unwrap_or(bytes)).await
    }

    async fn send_raw(&self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
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

    /// Shakes hands. `wrapped`: each flight travels in PRELOGIN packets (MS-TDS 3.2.5.1); otherwise raw, from the
    /// first byte of the connection.
    pub(crate) async fn start_tls(&self, config: Arc<ServerConfig>, framer: &mut Framer, wrapped: bool) -> io::Result<()> {
        let mut connection = Box::new(ServerConnection::new(config).map_err(invalid)?);
        connection.set_buffer_limit(None);
        let mut buffer = [0; READ_BYTES];
        let mut early = Vec::new();
        while connection.is_handshaking() {
            let count = self.read_raw(&mut buffer).await?;
            if wrapped {
                framer.push(&buffer[..count]);
                while let Some(packet) = framer.next_packet().map_err(invalid)? {
                    if packet.packet_type != PacketType::PreLogin {
                        return Err(invalid(DecodeError { what: "packet during the TLS handshake", remaining: 0, incomplete: false }));
                    }
                    feed(&mut connection, &packet.data)?;
                }
                // What is not a whole packet belongs to the next flight, or is TLS already: told apart by its first byte.
                early = framer.take_unframed();
                if early.first().is_some_and(|byte| *byte == PacketType::PreLogin as u8) {
                    framer.push(&std::mem::take(&mut early));
                }
            } else {
                feed(&mut connection, &buffer[..count])?;
            }
            let mut flight = Vec::new();
            while connection.wants_write() {
                connection.write_tls(&mut flight)?;
            }
            self.send_flight(&flight, wrapped).await?;
        }
        *self.tls.lock() = Some(connection);
        self.encrypted.store(true, Ordering::Release);
        self.accept(&early, framer)
    }

    async fn send_flight(&self, flight: &[u8], wrapped: bool) -> io::Result<()> {
        if flight.is_empty() || !wrapped {
            return self.send_raw(flight).await;
        }
        let mut packets = Vec::new();
        let pieces = flight.chunks(crate::packet::PACKET_BYTES_DEFAULT - crate::packet::HEADER_BYTES);
        let last = pieces.len() - 1;
        for (index, piece) in pieces.enumerate() {
            let status = if index == last { crate::packet::STATUS_END_OF_MESSAGE } else { 0 };
            frame(PacketType::PreLogin, status, 0, 0, piece, &mut packets);
        }
        self.send_raw(&packets).await
    }

    /// Back to plain bytes: only the login was to be encrypted.
    pub(crate) fn stop_tls(&self) {
        *self.tls.lock() = None;
        self.encrypted.store(false, Ordering::Release);
    }
}

fn feed(connection: &mut ServerConnection, mut raw: &[u8]) -> io::Result<()> {
    while !raw.is_empty() {
        connection.read_tls(&mut raw)?;
        connection.process_new_packets().map_err(invalid)?;
    }
    Ok(())
}
