//! The demo's other child: builds an index resumably, backs the log up whenever it is full, and goes on, until it is done or
//! killed. What it does it says on standard output, a line an [`Event`].
//!
//! Invariant: W3 it begins where the catalog says that a build stands, so that it can be killed again and again.

use crate::args::DemoWriterArguments;
use crate::cmd::Failure;
use crate::cmd::demo::builds::{log_bytes, number, watched};
use crate::embed::{self, Options, Session};
use std::io::Write as _;
use std::process::ExitCode;

/// What is built.
pub(crate) const CREATE_RESUMABLE: &str = "CREATE INDEX IX_Votes_PostId ON dbo.Votes (PostId) WITH (ONLINE = ON, RESUMABLE = ON)";
const RESUME: &str = "ALTER INDEX IX_Votes_PostId ON dbo.Votes RESUME";
const PERCENT: &str = "SELECT MAX(percent_complete) FROM sys.index_resumable_operations";
const BUILT: &str = "SELECT COUNT(*) FROM sys.indexes WHERE object_id = OBJECT_ID(N'dbo.Votes') AND name = N'IX_Votes_PostId'";
/// The log is full.
const LOG_FULL: i32 = 9002;

/// What the child says. Seconds are those its statements have run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Event {
    /// It is so far.
    At { seconds: f64, percent: f64, log_bytes: u64 },
    /// The log was full.
    Full { seconds: f64, percent: f64 },
    /// It is done.
    Done { seconds: f64, log_bytes: u64 },
}

impl Event {
    pub(crate) fn seconds(&self) -> f64 {
        match self {
            Self::At { seconds, .. } | Self::Full { seconds, .. } | Self::Done { seconds, .. } => *seconds,
        }
    }

    /// As a line, its end marked, so that half a line is none.
    fn line(&self) -> String {
        match self {
            Self::At { seconds, percent, log_bytes } => format!("at {seconds} {percent} {log_bytes} ."),
            Self::Full { seconds, percent } => format!("full {seconds} {percent} ."),
            Self::Done { seconds, log_bytes } => format!("done {seconds} {log_bytes} ."),
        }
    }

    /// From a line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.strip_suffix(" .")?.split(' ').collect();
        match words[..] {
            ["at", seconds, percent, log_bytes] => {
                Some(Self::At { seconds: seconds.parse().ok()?, percent: percent.parse().ok()?, log_bytes: log_bytes.parse().ok()? })
            }
            ["full", seconds, percent] => Some(Self::Full { seconds: seconds.parse().ok()?, percent: percent.parse().ok()? }),
            ["done", seconds, log_bytes] => Some(Self::Done { seconds: seconds.parse().ok()?, log_bytes: log_bytes.parse().ok()? }),
            _ => None,
        }
    }
}

fn say(event: Event) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", event.line())?;
    Ok(output.flush()?)
}

/// Whether a builder killed before it could say so had built the index.
fn is_built(session: &mut Session) -> Result<bool, Failure> {
    Ok(session.execute(BUILT)?.scalar().and_then(|count| count.as_i64()) == Some(1))
}

fn percent(session: &mut Session) -> Result<Option<f64>, Failure> {
    Ok(session.execute(PERCENT)?.scalar().as_ref().and_then(number))
}

/// Runs the command.
pub fn run(arguments: &DemoWriterArguments) -> Result<ExitCode, Failure> {
    let instance = embed::open(&arguments.data, Options { memory_bytes_max: arguments.memory, ..Options::default() })?;
    let database = arguments.database.replace(']', "]]");
    let mut session = instance.session();
    session.execute(&format!("USE [{database}]"))?;
    let mut observer = instance.session();
    observer.execute(&format!("USE [{database}]"))?;
    let mut statement = match percent(&mut session)? {
        Some(_) => RESUME,
        None if is_built(&mut session)? => {
            say(Event::Done { seconds: 0.0, log_bytes: 0 })?;
            instance.close()?;
            return Ok(ExitCode::SUCCESS);
        }
        None => CREATE_RESUMABLE,
    };
    let log_before = log_bytes(&mut session)?;
    let mut worked = 0.0;
    loop {
        let mut ran = 0.0;
        let outcome = watched(&instance, &mut session, statement, |seconds, percent| {
            ran = seconds;
            if let Ok(bytes) = log_bytes(&mut observer) {
                // A parent that has gone wants no news, and the statement need not hear of it.
                let _ = say(Event::At { seconds: worked + seconds, percent, log_bytes: bytes - log_before });
            }
        });
        match outcome {
            Ok(seconds) => {
                let log_bytes = log_bytes(&mut session)? - log_before;
                say(Event::Done { seconds: worked + seconds, log_bytes })?;
                instance.close()?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) if error.number == LOG_FULL => {
                worked += ran;
                say(Event::Full { seconds: worked, percent: percent(&mut session)?.unwrap_or(0.0) })?;
                session.execute(&format!("BACKUP LOG [{database}] TO DISK = 'NUL'"))?;
                statement = RESUME;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_pipe_and_half_a_line_is_none() {
        for event in [
            Event::At { seconds: 1.5, percent: 12.25, log_bytes: 7 },
            Event::Full { seconds: 2.0, percent: 50.0 },
            Event::Done { seconds: 3.25, log_bytes: 99 },
        ] {
            let line = event.line();
            assert_eq!(Event::parse(&line), Some(event));
            assert!((0..line.len()).all(|end| Event::parse(&line[..end]).is_none()), "{line}");
        }
    }
}
