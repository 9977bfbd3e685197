//! A small blocking client: for our own shell, our benchmarks and our tests.
//!
//! ```text
//! connect: PRELOGIN ─► [TLS in PRELOGIN] ─► LOGIN7 ─► LOGINACK          then one request at a time:
//! batch / call / bulk ──► Response ──next_item──► Columns Row* Done ...     Canceller::cancel ──► attention
//! ```
//!
//! Invariants: C1 one response is open at a time, because [`Response`] borrows the client; what was not read of it is
//! read before the next request ([`Client::send`]). C2 a client that met an I/O or protocol error is closed.
//!
//! Locks: those of [`transport`]. Failure: [`ClientError`]; a failed login carries the server's own message.
//! It does not do: certificates' verification (any is taken), integrated security, TDS 8.0, pooling, async.

mod bulk;
mod response;
#[cfg(test)]
mod tests;
mod tls;
mod transport;

pub use bulk::BulkWriter;
pub use response::Item;

use crate::TdsVersion;
use crate::batch::{self, Headers};
use crate::buffer::DecodeError;
use crate::login::{Feature, Login};
use crate::packet::{PACKET_BYTES_DEFAULT, PacketType, PacketWriter};
use crate::prelogin::{Encryption, PreLogin};
use crate::rpc::{self, RpcCall, RpcParameter};
use crate::token::{ColMetadata, ColumnMeta, EnvChange};
use crate::type_info::TypeInfo;
use response::Incoming;
use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thawdb_types::{Scalar, SqlError, SqlType};
use transport::Transport;

/// Option flags 1: the client minds USE, warns of failed USE, wants the initial language; as other clients send them.
const LOGIN_FLAGS_1: u8 = 0xE0;
/// Option flags 2: failing to set the initial language is fatal, ODBC defaults for SET options.
const LOGIN_FLAGS_2: u8 = 0x03;
/// en-US.
const LOCALE: u32 = 1033;
/// What our version is in PRELOGIN: major, minor, build, sub-build.
const CLIENT_VERSION: [u8; 6] = [0, 1, 0, 0, 0, 0];

/// Why a request failed.
#[derive(Debug)]
pub enum ClientError {
    /// The socket or TLS.
    Io(io::Error),
    /// The server sent what is no TDS.
    Protocol(DecodeError),
    /// The server refused, with its message.
    Server(SqlError),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => f.write_str("the server closed the connection"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Protocol(error) => write!(f, "the server's answer is not TDS: {error}"),
            Self::Server(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DecodeError> for ClientError {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(error)
    }
}

/// Where to connect, and as whom.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Login name.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Database to begin in; empty for the login's default.
    pub database: String,
    /// APP_NAME().
    pub application: String,
    /// `On`: everything encrypted; `Off`: the login only; `NotSupported`: nothing.
    pub encryption: Encryption,
    /// Packet size to ask for.
    pub packet_bytes: u32,
    /// How long connecting and logging in may take.
    pub login_timeout: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 1433,
            user: String::new(),
            password: String::new(),
            database: String::new(),
            application: "thawdb".into(),
            encryption: Encryption::On,
            packet_bytes: 16_384,
            login_timeout: Duration::from_secs(15),
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, user, database, encryption, .. } = self;
        write!(f, "ConnectOptions({user}@{host}:{port}/{database}, {encryption:?})")
    }
}

/// A connection that is logged in.
#[derive(Debug)]
pub struct Client {
    transport: Arc<Transport>,
    incoming: Incoming,
    attention: Arc<AtomicBool>,
    packet_bytes: usize,
    transaction: u64,
    database: String,
    encrypted: bool,
}

impl Client {
    /// Connects and logs in.
    pub fn connect(options: &ConnectOptions) -> Result<Self, ClientError> {
        let socket = connect_socket(options)?;
        // Cloned so that the time limit of the login can be lifted once the transport owns the socket.
        let limit = socket.try_clone()?;
        limit.set_read_timeout(Some(options.login_timeout))?;
        let mut client = Self {
            transport: Arc::new(Transport::new(socket)?),
            incoming: Incoming::new(),
            attention: Arc::new(AtomicBool::new(false)),
            packet_bytes: PACKET_BYTES_DEFAULT,
            transaction: 0,
            database: String::new(),
            encrypted: false,
        };
        let agreed = client.agree(options)?;
        if agreed != Encryption::NotSupported {
            let config = tls::config().map_err(io::Error::other)?;
            client.transport.start_tls(config, &options.host)?;
        }
        client.encrypted = client.transport.is_encrypted() && agreed != Encryption::Off;
        client.log_in(options, agreed)?;
        limit.set_read_timeout(None)?;
        Ok(client)
    }

    /// Whether requests and answers are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// The database in use, as the server last told.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Gives up the socket of a connection without encryption and without a response under way, for a caller that does
    /// its own framing: a load generator that waits for many connections at once.
    pub fn into_socket(self) -> io::Result<TcpStream> {
        let transport = Arc::try_unwrap(self.transport);
        let transport = transport.map_err(|_| io::Error::other("a canceller still has the connection"))?;
        transport.into_socket()
    }

    /// What cancels the request under way, from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller { transport: self.transport.clone(), attention: self.attention.clone() }
    }

    /// Runs a batch of T-SQL.
    pub fn batch(&mut self, text: &str) -> Result<Response<'_>, ClientError> {
        let headers = Headers { transaction: self.transaction };
        self.send(PacketType::SqlBatch, |body| batch::encode(text, headers, body))
    }

    /// Calls a procedure.
    pub fn call(&mut self, call: &RpcCall) -> Result<Response<'_>, ClientError> {
        let headers = Headers { transaction: self.transaction };
        self.send(PacketType::Rpc, |body| rpc::encode(call, headers, body))
    }

    /// Runs a statement with parameters, by sp_executesql.
    pub fn execute(&mut self, text: &str, parameters: &[(&str, SqlType, Scalar)]) -> Result<Response<'_>, ClientError> {
        let parameter =
            |name: &str, sql_type, value| RpcParameter { name: name.into(), output: false, default: false, sql_type, value, table: None };
        let declared: Vec<String> = parameters.iter().map(|(name, sql_type, _)| format!("{name} {}", sql_type.name())).collect();
        let mut all = vec![parameter("", SqlType::NVARCHAR_MAX, Scalar::text(text))];
        if !parameters.is_empty() {
            all.push(parameter("", SqlType::NVARCHAR_MAX, Scalar::text(declared.join(", "))));
        }
        all.extend(parameters.iter().map(|(name, sql_type, value)| parameter(name, *sql_type, value.clone())));
        self.call(&RpcCall { procedure: "sp_executesql".into(), no_metadata: false, parameters: all, invalid: None })
    }

    /// Begins a bulk load into `table` (as T-SQL writes it); `options` go into INSERT BULK's WITH.
    pub fn bulk(&mut self, table: &str, columns: &[(String, SqlType)], options: &str) -> Result<BulkWriter<'_>, ClientError> {
        let statement = bulk::statement(table, columns, options);
        self.batch(&statement)?.finish()?;
        let column = |(name, sql_type): &(String, SqlType)| ColumnMeta {
            name: name.clone(),
            info: TypeInfo::of(*sql_type),
            nullable: true,
            identity: false,
        };
        let columns = ColMetadata { columns: columns.iter().map(column).collect() };
        Ok(BulkWriter::new(self, columns))
    }

    fn agree(&mut self, options: &ConnectOptions) -> Result<Encryption, ClientError> {
        let asked = PreLogin {
            version: CLIENT_VERSION,
            encryption: options.encryption,
            instance: Vec::new(),
            thread_id: Some(std::process::id()),
            mars: false,
            federated_authentication: None,
        };
        self.write_message(PacketType::PreLogin, |body| asked.encode(body))?;
        let message = loop {
            if let Some(message) = self.incoming.framer.next_message()? {
                break message;
            }
            self.transport.read(&mut self.incoming.framer)?;
        };
        let answered = PreLogin::decode(&message.data)?.encryption;
        let refused = |text: &str| Err(io::Error::new(io::ErrorKind::ConnectionRefused, text).into());
        match (options.encryption, answered) {
            (Encryption::On | Encryption::Required, Encryption::Off | Encryption::NotSupported) => {
                refused("the server does not support encryption")
            }
            (Encryption::NotSupported, Encryption::On | Encryption::Required) => refused("the server demands encryption"),
            (_, answered) => Ok(answered),
        }
    }

    fn log_in(&mut self, options: &ConnectOptions, agreed: Encryption) -> Result<(), ClientError> {
        let login = Login {
            version: TdsVersion::V7_4,
            packet_bytes: options.packet_bytes,
            client_process: std::process::id(),
            flags: [LOGIN_FLAGS_1, LOGIN_FLAGS_2, 0, 0],
            lcid: LOCALE,
            host: String::new(),
            user: options.user.clone(),
            password: options.password.clone(),
            application: options.application.clone(),
            server: options.host.clone(),
            library: "thawdb client".into(),
            language: String::new(),
            database: options.database.clone(),
            new_password: String::new(),
            features: vec![Feature { id: crate::login::FEATURE_UTF8_SUPPORT, data: Vec::new() }],
        };
        self.write_message(PacketType::Login7, |body| login.encode(body))?;
        if agreed == Encryption::Off {
            self.transport.stop_tls();
        }
        self.incoming.expect_response();
        let (mut refusal, mut accepted) = (None, false);
        while let Some(item) = self.next_item()? {
            match item {
                Item::LoginAck(ack) => {
                    self.incoming.version = ack.version;
                    accepted = true;
                }
                Item::Message(message) if message.error.severity > 10 => refusal = refusal.or(Some(message.error)),
                _ => {}
            }
        }
        match (accepted, refusal) {
            (true, _) => Ok(()),
            (false, Some(error)) => Err(ClientError::Server(error)),
            (false, None) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    fn write_message(&mut self, packet_type: PacketType, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        let mut writer = PacketWriter::new(packet_type, 0, self.packet_bytes);
        body(writer.body());
        let mut framed = Vec::new();
        writer.finish(&mut framed);
        Ok(self.transport.write(&framed)?)
    }

    fn send(&mut self, packet_type: PacketType, body: impl FnOnce(&mut Vec<u8>)) -> Result<Response<'_>, ClientError> {
        self.incoming.drain(&self.transport, &self.attention)?;
        self.attention.store(false, Ordering::Release);
        self.incoming.expect_response();
        self.write_message(packet_type, body)?;
        Ok(Response { client: self })
    }

    /// The next item, with what it changes of the connection applied.
    fn next_item(&mut self) -> Result<Option<Item>, ClientError> {
        let item = self.incoming.next_item(&self.transport, &self.attention)?;
        if let Some(Item::EnvChange(change)) = &item {
            match change {
                EnvChange::BeginTransaction(descriptor) => self.transaction = *descriptor,
                EnvChange::CommitTransaction(_) | EnvChange::RollbackTransaction(_) => self.transaction = 0,
                EnvChange::Database { new, .. } => self.database.clone_from(new),
                EnvChange::PacketSize { new, .. } => {
                    let agreed = new.parse().ok().filter(|bytes| crate::packet::PACKET_BYTES_RANGE.contains(bytes));
                    self.packet_bytes = agreed.unwrap_or(self.packet_bytes);
                }
                _ => {}
            }
        }
        Ok(item)
    }
}

fn connect_socket(options: &ConnectOptions) -> Result<TcpStream, ClientError> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (options.host.as_str(), options.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, options.login_timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure.into())
}

/// Cancels the request under way of a client, from another thread.
#[derive(Clone, Debug)]
pub struct Canceller {
    transport: Arc<Transport>,
    attention: Arc<AtomicBool>,
}

impl Canceller {
    /// Sends an attention. The response then ends early, with a DONE that says so. To be called only while a request
    /// is under way; one too many is answered with the next response.
    pub fn cancel(&self) -> io::Result<()> {
        if self.attention.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let mut packet = Vec::new();
        crate::packet::frame(PacketType::Attention, crate::packet::STATUS_END_OF_MESSAGE, 0, 1, &[], &mut packet);
        self.transport.write(&packet)
    }
}

/// The answer to a request, read item by item.
#[derive(Debug)]
pub struct Response<'c> {
    client: &'c mut Client,
}

impl Response<'_> {
    /// The next item, `None` at the end.
    pub fn next_item(&mut self) -> Result<Option<Item>, ClientError> {
        self.client.next_item()
    }

    /// Reads to the end: all rows and the sum of the counts. The first error of the server becomes an error here.
    pub fn finish(mut self) -> Result<Collected, ClientError> {
        let mut collected = Collected::default();
        let mut failure = None;
        while let Some(item) = self.next_item()? {
            match item {
                Item::Columns(columns) => collected.columns = columns.columns,
                Item::Row(row) => collected.rows.push(row),
                Item::Done(done) => {
                    collected.affected += done.rows.unwrap_or(0);
                    collected.cancelled |= done.attention;
                }
                Item::Message(message) if message.error.severity > 10 => failure = failure.or(Some(message.error)),
                Item::Message(message) => collected.messages.push(message.error),
                _ => {}
            }
        }
        failure.map_or(Ok(collected), |error| Err(ClientError::Server(error)))
    }
}

/// A response read to its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collected {
    /// Columns of the last result set.
    pub columns: Vec<ColumnMeta>,
    /// Rows of all result sets.
    pub rows: Vec<Vec<Scalar>>,
    /// Sum of the counts of all statements.
    pub affected: u64,
    /// Informational messages.
    pub messages: Vec<SqlError>,
    /// Whether an attention cut it short.
    pub cancelled: bool,
}
