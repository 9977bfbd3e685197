//! ThawDB as a server of its own: this very program, `serve`, in a child process, as PostgreSQL's is one.

use crate::cmd::Failure;
use crate::cmd::bench::oltp::measured::{Measured, process_cpu_seconds};
use crate::cmd::bench::oltp::wire;
use crate::cmd::bench::oltp::workload::Kind;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use thawdb_tds::client::{Client, ConnectOptions};
use thawdb_tds::prelogin::Encryption;
use thawdb_types::Scalar;

/// A server that runs; stopped when dropped.
pub struct OwnServer {
    child: Child,
    options: ConnectOptions,
}

impl OwnServer {
    /// Serves the instance in `folder`, made with the password for sa.
    pub fn start(folder: &Path, memory_bytes: u64, password: &str, database: &str) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg("--data")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0", "--memory", &memory_bytes.to_string()])
            .env("MSSQL_SA_PASSWORD", password)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or_else(|| Failure("the server has no output".into()))?;
        BufReader::new(output).read_line(&mut line)?;
        // "thawdb: ready on ADDRESS:PORT in N ms"
        let port = line.split_whitespace().find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok());
        let options = ConnectOptions {
            port: port.ok_or_else(|| Failure(format!("the server did not start: {line}")))?,
            user: "sa".into(),
            password: password.into(),
            database: database.into(),
            encryption: Encryption::NotSupported,
            ..ConnectOptions::default()
        };
        Ok(Self { child, options })
    }

    /// Runs one kind of work.
    pub fn run(&self, kind: Kind, scale: u32, connections: usize, time: Duration) -> Result<Measured, Failure> {
        let cpu = || -> Result<f64, Failure> { Ok(process_cpu_seconds(self.child.id())? + process_cpu_seconds(std::process::id())?) };
        wire::run(&self.options, (kind, scale), connections, time, cpu)
    }

    /// Rows of a query.
    pub fn query(&self, text: &str) -> Result<Vec<Vec<Scalar>>, Failure> {
        Ok(Client::connect(&self.options)?.batch(text)?.finish()?.rows)
    }

    /// Processor seconds the server has used.
    pub fn cpu_seconds(&self) -> Result<f64, Failure> {
        process_cpu_seconds(self.child.id())
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // It keeps nothing that the benchmark needs: what is committed is in its log.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
