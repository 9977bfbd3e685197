//! A load generator that speaks TDS: two threads, each waiting for its share of the connections, as pgbench does it.
//!
//! Statements are prepared once (`sp_prepare`) and called by handle (`sp_execute`); BEGIN and COMMIT are transaction
//! manager requests. One request is one round trip. Every response is looked at for an error.

use crate::cmd::Failure;
use crate::cmd::bench::oltp::measured::Measured;
use crate::cmd::bench::oltp::workload::{self, Draw, Kind};
use crate::cmd::figures::Stopwatch;
use std::net::TcpStream as Socket;
use std::sync::Barrier;
use std::time::Duration;
use thawdb_tds::batch::Headers;
use thawdb_tds::client::{Client, ConnectOptions};
use thawdb_tds::packet::{HEADER_BYTES, PACKET_BYTES_DEFAULT, PacketType, PacketWriter, STATUS_END_OF_MESSAGE};
use thawdb_tds::rpc::{self, RpcCall, RpcParameter};
use thawdb_tds::transaction::TransactionRequest;
use thawdb_types::{Scalar, SqlType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Threads of the generator, as many as pgbench is given.
const THREADS_MAX: usize = 2;
/// A response fits; a longer one is an error.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Isolation level 2: READ COMMITTED.
const READ_COMMITTED: u8 = 2;
/// Bytes of a DONE token, and its bit that says the request failed (MS-TDS 2.2.7.6).
const DONE_BYTES: usize = 13;
const DONE_ERROR: u8 = 0x02;
/// ENVCHANGE of a begun transaction: token, length, type 8, length of the descriptor (MS-TDS 2.2.7.9).
const BEGUN: [u8; 5] = [0xE3, 11, 0, 8, 8];

/// A connection and the statements prepared on it.
struct Connection {
    stream: TcpStream,
    handles: Vec<i32>,
    transaction: u64,
    request: Vec<u8>,
    response: Vec<u8>,
    draw: Draw,
    scale: u32,
}

/// A statement's text and the names of its parameters, all int.
type Prepared = (&'static str, &'static [&'static str]);

fn statements(kind: Kind) -> &'static [Prepared] {
    match kind {
        Kind::Select => &[(workload::SELECT, &["@aid"])],
        Kind::Insert => &[(workload::INSERT_JOURNAL, &["@aid", "@delta"])],
        Kind::Update => &[(workload::UPDATE_ACCOUNT, &["@aid", "@delta"])],
        Kind::Tpcb => &[
            (workload::UPDATE_ACCOUNT, &["@aid", "@delta"]),
            (workload::SELECT, &["@aid"]),
            (workload::UPDATE_TELLER, &["@tid", "@delta"]),
            (workload::UPDATE_BRANCH, &["@bid", "@delta"]),
            (workload::INSERT_HISTORY, &["@tid", "@bid", "@aid", "@delta"]),
        ],
    }
}

fn int(value: i32) -> RpcParameter {
    RpcParameter { name: String::new(), output: false, default: false, sql_type: SqlType::Int, value: Scalar::Int(value), table: None }
}

fn prepare(client: &mut Client, (text, parameters): Prepared) -> Result<i32, Failure> {
    let declared: Vec<String> = parameters.iter().map(|name| format!("{name} int")).collect();
    let textual = |value: String| RpcParameter {
        name: String::new(),
        output: false,
        default: false,
        sql_type: SqlType::NVARCHAR_MAX,
        value: Scalar::Text(value),
        table: None,
    };
    let handle = RpcParameter { output: true, value: Scalar::Null, ..int(0) };
    let parameters = vec![handle, textual(declared.join(", ")), textual(text.into())];
    let call = RpcCall { procedure: "sp_prepare".into(), no_metadata: false, parameters, invalid: None };
    let mut response = client.call(&call)?;
    while let Some(item) = response.next_item()? {
        if let thawdb_tds::client::Item::ReturnValue(value) = item
            && let Scalar::Int(handle) = value.value
        {
            response.finish()?;
            return Ok(handle);
        }
    }
    Err(Failure("sp_prepare gave no handle".into()))
}

/// Logs in and prepares: everything before the measuring.
fn connect(options: &ConnectOptions, kind: Kind) -> Result<(Socket, Vec<i32>), Failure> {
    let mut client = Client::connect(options)?;
    let handles = statements(kind).iter().map(|statement| prepare(&mut client, *statement)).collect::<Result<_, _>>()?;
    let socket = client.into_socket()?;
    socket.set_nonblocking(true)?;
    Ok((socket, handles))
}

impl Connection {
    fn frame(&mut self, packet_type: PacketType, body: impl FnOnce(&mut Vec<u8>)) {
        let mut writer = PacketWriter::new(packet_type, 0, PACKET_BYTES_DEFAULT);
        body(writer.body());
        self.request.clear();
        writer.finish(&mut self.request);
    }

    fn headers(&self) -> Headers {
        Headers { transaction: self.transaction }
    }

    /// One round trip.
    async fn ask(&mut self) -> Result<(), Failure> {
        self.stream.write_all(&self.request).await?;
        self.response.clear();
        loop {
            self.response.reserve(4096);
            if self.stream.read_buf(&mut self.response).await? == 0 {
                return Err(Failure("the server has closed a connection".into()));
            }
            if self.is_whole()? {
                break;
            }
        }
        let done = self.response.len().checked_sub(DONE_BYTES).and_then(|at| self.response.get(at + 1));
        if done.is_none_or(|status| status & DONE_ERROR != 0) {
            let text = String::from_utf8_lossy(&self.response).replace('\0', "");
            return Err(Failure(format!("a request failed: {text}")));
        }
        Ok(())
    }

    /// Whether the last packet of the response is there.
    fn is_whole(&self) -> Result<bool, Failure> {
        let mut rest = self.response.as_slice();
        while let Some(header) = rest.get(..HEADER_BYTES) {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            if header[1] & STATUS_END_OF_MESSAGE != 0 {
                return Ok(rest.len() >= length);
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        if self.response.len() > RESPONSE_BYTES_MAX {
            return Err(Failure("a response of the benchmark is longer than any should be".into()));
        }
        Ok(false)
    }

    async fn call(&mut self, statement: usize, values: &[i32]) -> Result<(), Failure> {
        let mut parameters = vec![int(self.handles[statement])];
        parameters.extend(values.iter().map(|value| int(*value)));
        let call = RpcCall { procedure: "sp_execute".into(), no_metadata: false, parameters, invalid: None };
        let headers = self.headers();
        self.frame(PacketType::Rpc, |body| rpc::encode(&call, headers, body));
        self.ask().await
    }

    async fn transaction(&mut self, request: TransactionRequest) -> Result<(), Failure> {
        let headers = self.headers();
        self.frame(PacketType::TransactionManager, |body| request.encode(headers, body));
        self.ask().await?;
        let tokens = self.response.get(HEADER_BYTES..).unwrap_or_default();
        self.transaction = match tokens.strip_prefix(&BEGUN).and_then(|rest| rest.first_chunk()) {
            Some(descriptor) => u64::from_le_bytes(*descriptor),
            None => 0,
        };
        Ok(())
    }

    async fn operation(&mut self, kind: Kind) -> Result<(), Failure> {
        let aid = self.draw.up_to(self.scale * workload::ACCOUNTS_PER_BRANCH);
        match kind {
            Kind::Select => self.call(0, &[aid]).await,
            Kind::Insert | Kind::Update => {
                let delta = self.draw.delta();
                self.call(0, &[aid, delta]).await
            }
            Kind::Tpcb => {
                let (bid, tid) = (self.draw.up_to(self.scale), self.draw.up_to(self.scale * workload::TELLERS_PER_BRANCH));
                let delta = self.draw.delta();
                self.transaction(TransactionRequest::Begin { isolation: READ_COMMITTED, name: String::new() }).await?;
                self.call(0, &[aid, delta]).await?;
                self.call(1, &[aid]).await?;
                self.call(2, &[tid, delta]).await?;
                self.call(3, &[bid, delta]).await?;
                self.call(4, &[tid, bid, aid, delta]).await?;
                self.transaction(TransactionRequest::Commit { then_begin: None }).await
            }
        }
    }

    async fn run(mut self, kind: Kind, time: Duration) -> Result<Vec<f64>, Failure> {
        let mut latencies = Vec::with_capacity(1 << 16);
        let whole = Stopwatch::start();
        while whole.elapsed() < time {
            let watch = Stopwatch::start();
            self.operation(kind).await?;
            latencies.push(watch.seconds());
        }
        Ok(latencies)
    }
}

/// Runs `kind` by `connections` at once. `cpu` tells processor seconds used so far; logins are not counted.
pub fn run(
    options: &ConnectOptions,
    (kind, scale): (Kind, u32),
    connections: usize,
    time: Duration,
    cpu: impl Fn() -> Result<f64, Failure>,
) -> Result<Measured, Failure> {
    let mut made = Vec::with_capacity(connections);
    for number in 0..connections {
        made.push((number, connect(options, kind)?));
    }
    let threads = connections.min(THREADS_MAX);
    let mut shares: Vec<Vec<(usize, (Socket, Vec<i32>))>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, connection) in made.into_iter().enumerate() {
        shares[at % threads].push(connection);
    }
    let together = Barrier::new(threads);
    let work = |share: Vec<(usize, (Socket, Vec<i32>))>| -> Result<Vec<f64>, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        together.wait();
        runtime?.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for (number, (socket, handles)) in share {
                let stream = TcpStream::from_std(socket)?;
                let draw = Draw::new(number);
                let (request, response) = (Vec::new(), Vec::new());
                tasks.spawn(Connection { stream, handles, transaction: 0, request, response, draw, scale }.run(kind, time));
            }
            let mut all = Vec::new();
            while let Some(done) = tasks.join_next().await {
                all.extend(done.map_err(|_| Failure("a connection of the benchmark panicked".into()))??);
            }
            Ok(all)
        })
    };
    let mut latencies = Vec::new();
    let cpu_before = cpu()?;
    std::thread::scope(|scope| {
        let running: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| work(share))).collect();
        for thread in running {
            latencies.extend(thread.join().map_err(|_| Failure("the load generator panicked".into()))??);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(Measured { latencies, seconds: time.as_secs_f64(), cpu_seconds: cpu()? - cpu_before })
}
