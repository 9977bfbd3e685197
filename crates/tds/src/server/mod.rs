//! The server: a listener that joins the codec to an engine.
//!
//! ```text
//!  accept ─► connection task (async): TLS, login, silent connections, attention
//!                 │ the first request                      ▲ bytes read and written by the worker itself
//!                 └──► worker thread (bounded pool): engine session ─► sink ─► transport, and the next request
//! ```
//!
//! Silent sockets are waited for by an async runtime; statements run on worker threads, one connection a thread, at most
//! [`ServerConfig::worker_count_max`] at once. A worker stays with a connection that goes on asking, so that a short
//! request costs no hand-over at all, and leaves one that falls silent (`worker`). While a request runs for longer than
//! [`TICK`], the connection's task reads beside it: an attention cancels the statement, a closed socket too.
//!
//! Limits: [`CONNECTIONS_MAX`] connections, [`LOGIN_SECONDS_MAX`] seconds from accept to the end of the login, message
//! sizes of [`crate::packet`]. Before the login is through nothing but PRELOGIN, TLS and LOGIN7 is answered.
//!
//! What it does not do: multiple active result sets (declined at PRELOGIN), SSPI and federated logins (18456 as for
//! any failed login), distributed transactions.

mod bulk;
mod connection;
mod line;
mod request;
mod sink;
mod tls;
mod transport;
mod worker;

pub use tls::{Certificate, CertificateError};

use crate::prelogin::Encryption;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use thawdb_engine::Engine;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use worker::Crowd;

/// Most connections at once, as SQL Server has it (`user connections`).
pub const CONNECTIONS_MAX: usize = 32_767;
/// A client that has not logged in after this long is dropped.
pub const LOGIN_SECONDS_MAX: u64 = 30;
/// A request that has run from one tick to the next is watched for an attention; nobody types faster.
const TICK: Duration = Duration::from_millis(10);
/// Stack of a worker: room for the deepest nesting the parser and binder allow.
const WORKER_STACK_BYTES: usize = 8 << 20;

/// How a server listens.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// What messages call it (`@@SERVERNAME`).
    pub server_name: String,
    /// Where; port 0 lets the system choose.
    pub address: SocketAddr,
    /// What it shows of itself under TLS.
    pub certificate: Certificate,
    /// `Off`: encrypt if the client wants it; `Required`: always.
    pub encryption: Encryption,
    /// Most statements at once (`max worker threads`).
    pub worker_count_max: usize,
}

/// A listening server.
pub struct Server {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) server_name: Arc<str>,
    pub(crate) encryption: Encryption,
    pub(crate) tls: tls::TlsConfigs,
    pub(crate) crowd: Crowd,
    /// The connections that workers are at.
    pub(crate) roll: line::Roll,
    /// A worker has gone to a connection.
    pub(crate) tick_wanted: Notify,
}

/// Looks for long requests as long as workers are at connections, and sleeps while none is.
async fn tick(shared: Arc<Shared>) {
    loop {
        shared.tick_wanted.notified().await;
        while shared.roll.look() {
            tokio::time::sleep(TICK).await;
        }
    }
}

/// Stops a running server from another thread.
#[derive(Clone)]
pub struct StopHandle(watch::Sender<bool>);

impl StopHandle {
    /// No new connections; those open are closed when their present request ends.
    pub fn stop(&self) {
        // Not `send`, which changes nothing while nobody listens: the server may be about to run.
        self.0.send_replace(true);
    }
}

impl Server {
    /// Binds; connections are accepted from here on and served once [`Server::run`] is called.
    pub fn bind(engine: Arc<Engine>, config: ServerConfig) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(config.worker_count_max)
            .thread_stack_size(WORKER_STACK_BYTES)
            .thread_name("thawdb-tds")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(config.address))?;
        let tls = tls::TlsConfigs::new(&config.certificate).map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            engine,
            server_name: Arc::from(config.server_name),
            encryption: config.encryption,
            tls,
            crowd: Crowd::new(config.worker_count_max),
            roll: line::Roll::new(),
            tick_wanted: Notify::new(),
        });
        Ok(Self { runtime, listener, shared, stop: watch::channel(false).0 })
    }

    /// The address bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What stops it.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.stop.clone())
    }

    /// Serves until stopped, then waits for the requests that run.
    pub fn run(self) -> io::Result<()> {
        let Self { runtime, listener, shared, stop } = self;
        runtime.block_on(async {
            let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
            let mut stopped = stop.subscribe();
            tokio::spawn(tick(shared.clone()));
            loop {
                let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
                tokio::select! {
                    accepted = listener.accept() => {
                        // A failed accept (out of descriptors, a client gone already) concerns that client alone.
                        let Ok((socket, peer)) = accepted else { continue };
                        let connection = connection::serve(shared.clone(), socket, peer, stop.subscribe());
                        tokio::spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    _ = stopped.wait_for(|stopped| *stopped) => break,
                }
            }
            let everybody = u32::try_from(CONNECTIONS_MAX).expect("fits");
            drop(listener);
            // Relaxed: workers look for it at every wait.
            shared.crowd.stopping.store(true, Ordering::Relaxed);
            shared.engine.pause_index_operations();
            let _all_gone = places.acquire_many(everybody).await;
        });
        Ok(())
    }
}
