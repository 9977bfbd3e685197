//! The bytes of one connection: a socket, and TLS in whichever of its forms has been agreed on.
//!
//! ```text
//! Plain ──start_tls──► handshake inside PRELOGIN packets ──► Tls ──stop_tls (login-only encryption)──► Plain
//! ```
//!
//! The socket never blocks. Whoever has the connection waits for it in his own way: a worker by poll(2), the connection's
//! task by the reactor, with which a duplicate of the descriptor is registered only while the task waits
//! ([`Transport::leave_reactor`]): otherwise each request would wake the reactor's thread beside the worker. Writing blocks
//! and belongs to whoever answers (a worker, or the task itself during the login). TLS is the sans-I/O `rustls` connection
//! under one leaf lock; no I/O under it.

use crate::buffer::{DecodeError, Flaw};
use crate::packet::{Framer, PacketType, frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ServerConfig, ServerConnection};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::TcpStream as Socket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thawdb_observe::sync::{LockClass, Mutex};
use tokio::net::TcpStream;

static TLS: LockClass = LockClass::new("TDS_TLS_CONNECTION", 5);
/// Bytes read from the socket at a time.
const READ_BYTES: usize = 64 * 1024;

/// A connection's bytes.
pub(crate) struct Transport {
    socket: Socket,
    /// The duplicate that the reactor watches, while the task waits.
    watched: Mutex<Option<Arc<TcpStream>>>,
    tls: Mutex<Option<Box<ServerConnection>>>,
    encrypted: AtomicBool,
    /// One writer at a time: the worker, and the task that acknowledges an attention after it.
    writing: Mutex<()>,
}

static WRITING: LockClass = LockClass::new("TDS_WRITE", 1);
static WATCHED: LockClass = LockClass::new("TDS_REACTOR", 5);

thread_local! {
    /// Where a thread's reads go first: made once, for zeroing it at each read would cost more than a short request.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Transport {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        let socket = socket.into_std()?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            watched: Mutex::new(&WATCHED, None),
            tls: Mutex::new(&TLS, None),
            encrypted: AtomicBool::new(false),
            writing: Mutex::new(&WRITING, ()),
        })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.encrypted.load(Ordering::Acquire)
    }

    /// The duplicate registered with the reactor of the calling task.
    fn watched(&self) -> io::Result<Arc<TcpStream>> {
        if let Some(watched) = self.watched.lock().clone() {
            return Ok(watched);
        }
        let watched = Arc::new(TcpStream::from_std(self.socket.try_clone()?)?);
        *self.watched.lock() = Some(watched.clone());
        Ok(watched)
    }

    /// The reactor no longer hears of the socket. Called by the task, which does not wait then.
    pub(crate) fn leave_reactor(&self) {
        drop(self.watched.lock().take());
    }

    /// The first byte the client sends, left where it is.
    pub(crate) async fn peek(&self) -> io::Result<u8> {
        let mut byte = [0];
        match self.watched()?.peek(&mut byte).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(byte[0]),
        }
    }

    async fn read_raw(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let watched = self.watched()?;
        loop {
            watched.readable().await?;
            match watched.try_read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// Waits in the task until there may be something to read. Cancel safe.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.watched()?.readable().await
    }

    /// In the task: takes what has come, if anything has.
    pub(crate) fn read_in_task(&self, framer: &mut Framer) -> io::Result<()> {
        let watched = self.watched()?;
        // The reactor must learn of an empty socket, or it would never wait.
        let read = |buffer: &mut [u8]| watched.try_read(buffer);
        self.read_by(read, framer).map(|_| ())
    }

    /// Takes what has come; false if nothing has.
    pub(crate) fn read_now(&self, framer: &mut Framer) -> io::Result<bool> {
        self.read_by(|buffer| (&self.socket).read(buffer), framer)
    }

    fn read_by(&self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>, framer: &mut Framer) -> io::Result<bool> {
        BUFFER.with_borrow_mut(|buffer| match read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.accept(&buffer[..count], framer).map(|()| true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        })
    }

    /// Waits on a worker thread; false after `timeout` without anything to read.
    pub(crate) fn wait_readable(&self, timeout: Duration) -> io::Result<bool> {
        self.wait(PollFlags::IN, Some(timeout))
    }

    fn wait(&self, what: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).expect("waits are short"));
        match poll(&mut [PollFd::new(&self.socket, what)], timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            // As good as nothing: the caller looks, and waits again.
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes raw bytes.
    fn accept(&self, mut raw: &[u8], framer: &mut Framer) -> io::Result<()> {
        if !self.is_encrypted() {
            framer.push(raw);
            return Ok(());
        }
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
            match (&self.socket).write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => drop(self.wait(PollFlags::OUT, None)?),
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
        let watched = self.watched()?;
        while !rest.is_empty() {
            watched.writable().await?;
            match watched.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn encrypt(&self, bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
        if !self.is_encrypted() {
            return Ok(None);
        }
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
                        return Err(invalid(DecodeError { what: "packet during the TLS handshake", remaining: 0, flaw: Flaw::Malformed }));
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
