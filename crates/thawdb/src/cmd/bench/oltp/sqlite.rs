//! SQLite in a process of its own, through its C interface: `sqlite.c`, compiled here with the system's compiler.

use crate::cmd::Failure;
use crate::cmd::bench::oltp::measured::Measured;
use crate::cmd::bench::oltp::workload::Kind;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("sqlite.c");

/// A database of SQLite and the program that works on it.
pub struct Sqlite {
    program: PathBuf,
    file: PathBuf,
    scale: String,
}

impl Sqlite {
    pub fn create(folder: &Path, scale: u32) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder)?;
        let source = folder.join("sqlite.c");
        std::fs::write(&source, SOURCE)?;
        let program = folder.join("sqlite");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-o"]).arg(&program).arg(&source).args(["-lsqlite3", "-lpthread"]);
        output(&mut compiler)?;
        let made = Self { program, file: folder.join("votes.sqlite"), scale: scale.to_string() };
        made.ask(&["create"])?;
        Ok(made)
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, Failure> {
        output(Command::new(&self.program).arg(&self.file).arg(&self.scale).args(arguments))
    }

    /// Runs `kind`, select or insert, by so many connections, a thread each.
    pub fn run(&self, kind: Kind, connections: usize, seconds: u64) -> Result<Measured, Failure> {
        let text = self.ask(&[kind.name(), &connections.to_string(), &seconds.to_string()])?;
        let mut lines = text.lines();
        let first: Vec<f64> = lines.next().unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
        let [_, seconds, cpu_seconds] = first[..] else { return Err(Failure("SQLite's program said nothing".into())) };
        let latencies = lines.filter_map(|line| line.parse::<f64>().ok()).map(|us| us * 1e-6).collect();
        Ok(Measured { latencies, seconds, cpu_seconds })
    }
}

fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|e| Failure::of(format_args!("{command:?}"), e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Failure(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
