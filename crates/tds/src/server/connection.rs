//! One connection from accept to close.
//!
//! ```text
//! first byte 0x16 ─► TLS ─► PRELOGIN ─────────────┐
//! otherwise ─► PRELOGIN ─► [TLS in PRELOGIN] ─────┴─► LOGIN7 ─► ready ⇄ with a worker ─► closed
//! ```
//!
//! With its first request the connection goes to a worker, which keeps it as long as requests come (`worker`); the task
//! sleeps meanwhile and reads beside the worker only if a request runs for more than a tick (`line`).
//!
//! Invariants: C1 nothing but PRELOGIN and LOGIN7 is looked at before the login succeeds ([`log_in`]). C2 one request
//! runs at a time; while it does, only an attention is taken ([`Connection::watch`]). C3 every attention is answered
//! by a DONE with its bit, after the response it cut short.

use crate::TdsVersion;
use crate::login::{FEATURE_UTF8_SUPPORT, Feature, Login};
use crate::packet::{Framer, MESSAGE_BYTES_MAX, Message, PACKET_BYTES_DEFAULT, PACKET_BYTES_RANGE, Packet, PacketType, frame};
use crate::prelogin::{Encryption, PreLogin};
use crate::server::line::Line;
use crate::server::request::Outcome;
use crate::server::sink::{Peer, ResponseSink};
use crate::server::transport::Transport;
use crate::server::worker::{self, Leaving, Post};
use crate::server::{LOGIN_SECONDS_MAX, Shared, bulk};
use crate::token::{Done, EnvChange, FeatureExtAck, LoginAck};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use thawdb_engine::{CancelToken, LoginInfo, LoginRequest, PRODUCT_VERSION, PROGRAM_NAME, ResultSink, Secret, Session};
use thawdb_types::SqlError;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// First byte of a TLS handshake record: the client speaks TDS 8.0.
const TLS_HANDSHAKE: u8 = 0x16;

/// The number of "Login failed for user".
const LOGIN_FAILED: i32 = 18456;

/// Why a connection ends. Nobody is told: the client is gone or has broken the protocol.
struct Closed;

impl<E: std::error::Error> From<E> for Closed {
    fn from(_: E) -> Self {
        Self
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(shared: Arc<Shared>, socket: TcpStream, address: SocketAddr, stop: watch::Receiver<bool>) {
    let Ok(transport) = Transport::new(socket) else { return };
    let transport = Arc::new(transport);
    let mut framer = Framer::default();
    let login = log_in(&shared, &transport, &mut framer, address);
    if let Ok(Ok((session, peer))) = tokio::time::timeout(Duration::from_secs(LOGIN_SECONDS_MAX), login).await {
        framer.message_bytes_max = MESSAGE_BYTES_MAX;
        let line = Arc::new(Line::new(framer));
        let cancel = session.cancel_token();
        let killed = Arc::new(Notify::new());
        let told = killed.clone();
        session.on_kill(move || told.notify_one());
        let connection = Connection { cancel, session: Some(session), peer, line, early: None, stop, killed, shared };
        // However it ended, the session goes with it.
        let _ = connection.run().await;
    }
}

async fn next_message(transport: &Transport, framer: &mut Framer) -> Result<Message, Closed> {
    loop {
        if let Some(message) = framer.next_message()? {
            return Ok(message);
        }
        transport.readable().await?;
        transport.read_in_task(framer)?;
    }
}

async fn log_in(
    shared: &Arc<Shared>,
    transport: &Arc<Transport>,
    framer: &mut Framer,
    address: SocketAddr,
) -> Result<(Session, Peer), Closed> {
    let strict = transport.peek().await? == TLS_HANDSHAKE;
    if strict {
        transport.start_tls(shared.tls.strict.clone(), framer, false).await?;
    }
    let agreed = agree(shared, transport, framer, strict).await?;
    if !strict && agreed != Encryption::NotSupported {
        transport.start_tls(shared.tls.wrapped.clone(), framer, true).await?;
    }
    let message = next_message(transport, framer).await?;
    if message.packet_type != PacketType::Login7 {
        return Err(Closed);
    }
    let login = Login::decode(&message.data)?;
    let encrypted = transport.is_encrypted();
    if !strict && agreed == Encryption::Off {
        transport.stop_tls();
    }
    let version = if strict { TdsVersion::V8_0 } else { login.version.negotiate().ok_or(Closed)? };
    let packet_bytes = packet_bytes(login.packet_bytes);
    let request = login_request(&login, address, packet_bytes, encrypted && agreed != Encryption::Off);
    let engine = shared.engine.clone();
    let outcome = tokio::task::spawn_blocking(move || engine.login(request)).await?;
    let mut peer = Peer {
        transport: transport.clone(),
        version,
        packet_bytes: PACKET_BYTES_DEFAULT,
        session_id: 0,
        server_name: shared.server_name.clone(),
    };
    match outcome {
        Ok((session, info)) => {
            peer.session_id = info.session_id;
            let answered = peer.clone();
            tokio::task::spawn_blocking(move || accept(answered, &login, &info, packet_bytes)).await?;
            peer.packet_bytes = packet_bytes;
            Ok((session, peer))
        }
        Err(error) => {
            tokio::task::spawn_blocking(move || refuse(peer, &error, &login.user)).await?;
            Err(Closed)
        }
    }
}

/// PRELOGIN and its answer.
async fn agree(shared: &Shared, transport: &Transport, framer: &mut Framer, strict: bool) -> Result<Encryption, Closed> {
    let message = next_message(transport, framer).await?;
    if message.packet_type != PacketType::PreLogin {
        return Err(Closed);
    }
    let asked = PreLogin::decode(&message.data)?;
    let agreed = if strict { Encryption::NotSupported } else { shared.encryption.answer(asked.encryption).ok_or(Closed)? };
    let (major, minor, build) = PRODUCT_VERSION;
    let [build_high, build_low] = build.to_be_bytes();
    let answer = PreLogin {
        version: [major, minor, build_high, build_low, 0, 0],
        encryption: agreed,
        instance: Vec::new(),
        thread_id: None,
        mars: false,
        federated_authentication: None,
    };
    let mut data = Vec::new();
    answer.encode(&mut data);
    let mut packet = Vec::new();
    frame(PacketType::TabularResult, crate::packet::STATUS_END_OF_MESSAGE, 0, 1, &data, &mut packet);
    transport.send(&packet).await?;
    // A client without encryption where it is demanded has been told so; it ends here.
    if agreed == Encryption::Required && asked.encryption == Encryption::NotSupported { Err(Closed) } else { Ok(agreed) }
}

fn packet_bytes(asked: u32) -> usize {
    match usize::try_from(asked) {
        Ok(0) | Err(_) => PACKET_BYTES_DEFAULT,
        Ok(asked) => asked.clamp(*PACKET_BYTES_RANGE.start(), *PACKET_BYTES_RANGE.end()),
    }
}

fn login_request(login: &Login, address: SocketAddr, packet_bytes: usize, encrypted: bool) -> LoginRequest {
    LoginRequest {
        user: login.user.clone(),
        password: Secret::new(login.password.clone()),
        database: login.database.clone(),
        language: login.language.clone(),
        app_name: login.application.clone(),
        host_name: login.host.clone(),
        client_interface: login.library.clone(),
        client_process_id: i32::try_from(login.client_process).unwrap_or(0),
        client_address: address.ip().to_string(),
        packet_bytes: u32::try_from(packet_bytes).expect("at most 32,767"),
        encrypted,
    }
}

/// Tells the client that it is in. Sent in packets of the default size; the new size counts from the next message on.
fn accept(peer: Peer, login: &Login, info: &LoginInfo, packet_bytes: usize) {
    let version = peer.version;
    let mut sink = ResponseSink::new(peer);
    EnvChange::Database { new: info.database.clone(), old: "master".into() }.encode(sink.body());
    EnvChange::Collation(info.collation.tds_bytes()).encode(sink.body());
    EnvChange::Language { new: info.language.clone(), old: String::new() }.encode(sink.body());
    info.messages.iter().for_each(|message| sink.message(message));
    LoginAck { version, program: PROGRAM_NAME.into(), program_version: PRODUCT_VERSION }.encode(sink.body());
    if version.since_7_4() && !login.features.is_empty() {
        let mut features = Vec::new();
        if login.offers(FEATURE_UTF8_SUPPORT) {
            features.push(Feature { id: FEATURE_UTF8_SUPPORT, data: vec![1] });
        }
        FeatureExtAck { features }.encode(sink.body());
    }
    let old = PACKET_BYTES_DEFAULT.to_string();
    EnvChange::PacketSize { new: packet_bytes.to_string(), old }.encode(sink.body());
    sink.plain_done(false);
    sink.finish();
}

/// Tells the client why it is not let in. Whatever its reason, the last word is 18456: drivers look for it.
fn refuse(peer: Peer, error: &SqlError, user: &str) {
    let mut sink = ResponseSink::new(peer);
    sink.message(error);
    if error.number != LOGIN_FAILED {
        let refused = thawdb_types::message(LOGIN_FAILED, &[&user, &"", &""]);
        sink.message(&SqlError { state: 1, ..refused });
    }
    sink.plain_done(true);
    sink.finish();
}

/// A connection that is logged in.
struct Connection {
    /// Absent while a worker has it.
    session: Option<Session>,
    cancel: CancelToken,
    peer: Peer,
    line: Arc<Line>,
    /// The first packet of what comes next, read while a worker had the session.
    early: Option<Packet>,
    stop: watch::Receiver<bool>,
    /// The session is to end, whatever its client does.
    killed: Arc<Notify>,
    shared: Arc<Shared>,
}

/// What came while a request ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interruption {
    /// The client wants the request to end.
    Attention,
    /// The client has left, or broken the protocol.
    Gone,
}

/// What a worker gives back.
type Worker = JoinHandle<(Session, Leaving)>;

impl Connection {
    async fn run(mut self) -> Result<(), Closed> {
        loop {
            let Some(packet) = self.next_packet().await? else { return Ok(()) };
            match packet.packet_type {
                PacketType::Attention => self.acknowledge_attention().await?,
                PacketType::BulkLoad => self.load(packet).await?,
                _ => {
                    let whole = self.line.framer.lock().add(packet)?;
                    if let Some(message) = whole {
                        self.request(message).await?;
                    }
                }
            }
        }
    }

    /// The next packet; `None` when the server stops or the session was killed.
    async fn next_packet(&mut self) -> Result<Option<Packet>, Closed> {
        if let Some(packet) = self.early.take() {
            return Ok(Some(packet));
        }
        loop {
            if let Some(packet) = self.line.framer.lock().next_packet()? {
                return Ok(Some(packet));
            }
            tokio::select! {
                readable = self.peer.transport.readable() => readable?,
                _ = self.stop.wait_for(|stopped| *stopped) => return Ok(None),
                () = self.killed.notified() => return Ok(None),
            }
            self.read()?;
        }
    }

    fn read(&self) -> Result<(), Closed> {
        Ok(self.peer.transport.read_in_task(&mut self.line.framer.lock())?)
    }

    fn take_session(&mut self) -> Session {
        self.session.take().expect("one request runs at a time")
    }

    async fn request(&mut self, message: Message) -> Result<(), Closed> {
        let mut session = self.take_session();
        let (peer, line, shared) = (self.peer.clone(), self.line.clone(), self.shared.clone());
        self.peer.transport.leave_reactor();
        line.begin();
        let number = shared.roll.add(line.clone());
        shared.tick_wanted.notify_one();
        // Relaxed, all three: they are hints to workers that could leave.
        shared.crowd.queued.fetch_add(1, Ordering::Relaxed);
        let worker = tokio::task::spawn_blocking(move || {
            shared.crowd.queued.fetch_sub(1, Ordering::Relaxed);
            shared.crowd.working.fetch_add(1, Ordering::Relaxed);
            let post = Post { line: &line, peer: &peer, crowd: &shared.crowd };
            let leaving = worker::run(&mut session, message, &post);
            line.give_back();
            shared.crowd.working.fetch_sub(1, Ordering::Relaxed);
            (session, leaving)
        });
        let outcome = self.wait(worker).await;
        self.shared.roll.remove(number);
        outcome
    }

    /// Waits for a worker that reads for itself; once a request of its runs for more than a tick, watches it.
    async fn wait(&mut self, mut worker: Worker) -> Result<(), Closed> {
        loop {
            tokio::select! {
                biased;
                done = &mut worker => return self.take_back(done?, None).await,
                () = self.line.overdue.notified() => {}
            }
            // It may have ended since; then it was another one's turn, or nobody's.
            if self.line.watch() {
                return self.watch(worker, None).await;
            }
        }
    }

    /// Waits for the worker; meanwhile an attention, or the client's leaving, cancels it. Anything else is the client's
    /// next request and waits its turn; nothing is read behind it.
    async fn watch(&mut self, mut worker: Worker, mut interrupted: Option<Interruption>) -> Result<(), Closed> {
        let done = loop {
            if interrupted.is_none() && self.early.is_none() {
                interrupted = self.interruption();
                if interrupted.is_some() {
                    self.cancel.cancel();
                }
            }
            let readable = tokio::select! {
                biased;
                done = &mut worker => break done?,
                readable = self.peer.transport.readable(), if interrupted.is_none() && self.early.is_none() => readable,
            };
            if readable.is_err() || self.read().is_err() {
                interrupted = Some(Interruption::Gone);
                self.cancel.cancel();
            }
        };
        self.take_back(done, interrupted).await
    }

    /// The connection comes back from a worker.
    async fn take_back(&mut self, (session, leaving): (Session, Leaving), interrupted: Option<Interruption>) -> Result<(), Closed> {
        self.session = Some(session);
        match (leaving, interrupted) {
            (Leaving::Close, _) | (_, Some(Interruption::Gone)) => Err(Closed),
            (Leaving::Ready | Leaving::Packet(_), Some(Interruption::Attention)) => self.acknowledge_attention().await,
            (Leaving::Ready, None) => Ok(()),
            (Leaving::Packet(packet), None) => {
                self.early = Some(packet);
                Ok(())
            }
        }
    }

    fn interruption(&mut self) -> Option<Interruption> {
        let packet = self.line.framer.lock().next_packet();
        match packet {
            Ok(None) => None,
            Ok(Some(packet)) if packet.packet_type == PacketType::Attention => Some(Interruption::Attention),
            Ok(Some(packet)) => {
                self.early = Some(packet);
                None
            }
            Err(_) => Some(Interruption::Gone),
        }
    }

    async fn acknowledge_attention(&mut self) -> Result<(), Closed> {
        let mut data = Vec::new();
        Done { attention: true, ..Done::FINAL }.encode(self.peer.version, &mut data);
        let spid = u16::try_from(self.peer.session_id).unwrap_or(0);
        let mut packet = Vec::new();
        frame(PacketType::TabularResult, crate::packet::STATUS_END_OF_MESSAGE, spid, 1, &data, &mut packet);
        Ok(self.peer.transport.send(&packet).await?)
    }

    /// A bulk load: its packets go to the worker as they come.
    async fn load(&mut self, first: Packet) -> Result<(), Closed> {
        let (sender, receiver) = sync_channel(bulk::PACKETS_WAITING_MAX);
        let mut session = self.take_session();
        let peer = self.peer.clone();
        let worker: Worker = tokio::task::spawn_blocking(move || {
            let leaving = match bulk::run(&mut session, &receiver, &peer) {
                Outcome::Ready => Leaving::Ready,
                Outcome::Close => Leaving::Close,
            };
            (session, leaving)
        });
        let mut packet = first;
        let interrupted = loop {
            match packet.packet_type {
                PacketType::BulkLoad => {}
                PacketType::Attention => {
                    hand_over(&sender, bulk::Piece::Cancelled).await;
                    break Some(Interruption::Attention);
                }
                _ => break Some(Interruption::Gone),
            }
            let last = packet.is_last();
            hand_over(&sender, bulk::Piece::Data(packet.data)).await;
            if last {
                hand_over(&sender, bulk::Piece::End).await;
                break None;
            }
            match self.next_packet().await {
                Ok(Some(next)) => packet = next,
                Ok(None) | Err(Closed) => break Some(Interruption::Gone),
            }
        };
        drop(sender);
        self.watch(worker, interrupted).await
    }
}

/// Waits for room; a worker that has given up takes no more, and what is left of the load is dropped.
async fn hand_over(sender: &SyncSender<bulk::Piece>, piece: bulk::Piece) {
    let mut piece = piece;
    loop {
        match sender.try_send(piece) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => return,
            Err(TrySendError::Full(back)) => {
                piece = back;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
