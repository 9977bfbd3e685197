//! `thawdb serve`: an instance behind a listener.
//!
//! ```text
//! password ─► open the instance ─► bind ─► "ready" ─► serve ── SIGINT, SIGTERM ──► requests end ─► checkpoint ─► out
//! ```
//!
//! Invariants: V1 an empty folder without a password is refused before anything is made in it. V2 the line with
//! "ready" is printed once the port accepts connections, and nothing else goes to standard output. V3 a signal lets
//! running requests end, resumable index operations by a pause, and closes the databases; a second one does not wait, which is a crash, and safe as one.

use crate::args::ServeArguments;
use crate::cmd::{Failure, password};
use crate::embed::{self, Options};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use thawdb_tds::prelogin::Encryption;
use thawdb_tds::server::{Certificate, Server, ServerConfig, StopHandle};
use tokio::signal::unix::{SignalKind, signal};

/// Runs the command. `started` is when the process began.
pub fn run(arguments: &ServeArguments, started: Instant) -> Result<ExitCode, Failure> {
    let sa_password = password::find(arguments.sa_password_file.as_deref())?;
    if sa_password.is_none() && is_empty(&arguments.data) {
        let text = "a new data folder needs a password for sa: set MSSQL_SA_PASSWORD or give --sa-password-file";
        return Err(Failure(text.into()));
    }
    let certificate = certificate(arguments)?;
    let server_name = arguments.server_name.clone().unwrap_or_else(embed::server_name);
    let options = Options { memory_bytes_max: arguments.memory, sa_password, server_name: server_name.clone(), ..Options::default() };
    let instance = embed::open(&arguments.data, options)?;
    let encryption = if arguments.require_encryption { Encryption::Required } else { Encryption::Off };
    let worker_count_max = usize::from(arguments.workers);
    let config = ServerConfig { server_name, address: arguments.listen, certificate, encryption, worker_count_max };
    let bound = Server::bind(instance.engine().clone(), config);
    let server = bound.map_err(|e| Failure::of(format_args!("cannot listen on {}", arguments.listen), e))?;
    stop_on_signals(server.stop_handle())?;
    announce(&server, started)?;
    server.run()?;
    instance.close()?;
    Ok(ExitCode::SUCCESS)
}

fn announce(server: &Server, started: Instant) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "thawdb: ready on {} in {} ms", server.address()?, started.elapsed().as_millis())?;
    Ok(output.flush()?)
}

/// Whether there is nothing in the folder, or no folder.
fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

fn certificate(arguments: &ServeArguments) -> Result<Certificate, Failure> {
    let (Some(chain), Some(key)) = (&arguments.cert, &arguments.key) else {
        return Ok(Certificate::SelfSigned { names: vec!["localhost".into(), embed::server_name().to_lowercase()] });
    };
    let read = |path: &Path| std::fs::read(path).map_err(|e| Failure::of(path.display(), e));
    Ok(Certificate::Pem { chain: read(chain)?, key: read(key)? })
}

/// From here on the first signal stops the server and the second ends the process.
fn stop_on_signals(stop: StopHandle) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watch = move || {
        runtime.block_on(async {
            let mut signals = 0;
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                signals += 1;
                if signals == 2 {
                    eprintln!("thawdb: not waiting; the databases will be recovered at the next start");
                    std::process::exit(130);
                }
                stop.stop();
            }
        });
    };
    std::thread::Builder::new().name("thawdb-signals".into()).spawn(watch)?;
    Ok(())
}
