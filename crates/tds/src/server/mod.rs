//! The server: a listener that joins the codec to an engine.
//!
//! ```text
//!  accept ─► connection task (async): framing, TLS, login, attention
//!                 │ one request at a time                  ▲ bytes written from the worker itself
//!                 └──► worker thread (bounded pool): engine session ─► sink ─► transport
//! ```
//!
//! Sockets are waited for by an async runtime; statements run on worker threads, one request a thread, at most
//! [`ServerConfig::worker_count_max`] at once. A worker writes its response straight to the socket, so a short request
//! costs one hand-over, not two. While it works, the connection's task goes on reading: an attention cancels the
//! statement, a closed socket too.
//!
//! Limits: [`CONNECTIONS_MAX`] connections, [`LOGIN_SECONDS_MAX`] seconds from accept to the end of the login, message
//! sizes of [`crate::packet`]. Before the login is through nothing but PRELOGIN, TLS and LOGIN7 is answered.
//!
//! What it does not do: multiple active result sets (declined at PRELOGIN), SSPI and federated logins (18456 as for
//! any failed login), distributed transactions.

mod bulk;
mod connection;
mod request;
mod sink;
mod tls;
mod transport;

pub use tls::{Certificate, CertificateError};

use crate::prelogin::Encryption;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use thawdb_engine::Engine;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Most connections at once, as SQL Server has it (`user connections`).
pub const CONNECTIONS_MAX: usize = 32_767;
/// A client that has not logged in after this long is dropped.
pub const LOGIN_SECONDS_MAX: u64 = 30;
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
}

/// Stops a running server from another thread.
#[derive(Clone)]
pub struct StopHandle(watch::Sender<bool>);

impl StopHandle {
    /// No new connections; those open are closed when their present request ends.
    pub fn stop(&self) {
        // The receiver is gone only if the server has ended already.
        let _ = self.0.send(true);
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
        let shared = Arc::new(Shared { engine, server_name: Arc::from(config.server_name), encryption: config.encryption, tls });
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
            let _all_gone = places.acquire_many(everybody).await;
        });
        Ok(())
    }
}
