//! A server for a test: a fresh data folder, a free port, gone at the end.

use crate::patience;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use thawdb_tds::client::{Client, ClientError, ConnectOptions};
use thawdb_tds::prelogin::Encryption;

/// Password of sa in tests.
pub const PASSWORD: &str = "Test-Password-1";

/// The binary, told what to do and about no password.
pub fn thawdb(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thawdb"));
    command.args(arguments).env_remove("MSSQL_SA_PASSWORD").env_remove("SQLCMDPASSWORD").stdin(Stdio::null());
    command
}

/// A command's output as text: standard output, standard error.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the output is UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

/// A folder that goes with the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("thawdb-it-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub struct TestServer {
    child: Child,
    pub port: u16,
}

impl TestServer {
    /// Starts one on `folder`.
    pub fn start(folder: &Path, options: &[&str]) -> Self {
        let mut child = thawdb(&["serve", "--listen", "127.0.0.1:0", "--memory", "256MB", "--data"])
            .arg(folder)
            .args(options)
            .env("MSSQL_SA_PASSWORD", PASSWORD)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the server is not ready: {line:?}"));
        Self { child, port }
    }

    pub fn options(&self) -> ConnectOptions {
        ConnectOptions {
            port: self.port,
            user: "sa".into(),
            password: PASSWORD.into(),
            encryption: Encryption::NotSupported,
            ..ConnectOptions::default()
        }
    }

    pub fn connect(&self) -> Client {
        self.try_connect(&self.options()).unwrap()
    }

    pub fn try_connect(&self, options: &ConnectOptions) -> Result<Client, ClientError> {
        Client::connect(options)
    }

    /// SIGTERM, and the exit code.
    pub fn stop(mut self) -> Option<i32> {
        let signal = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
        patience::end(&mut self.child).code()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Already gone after `stop` and `kill`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
