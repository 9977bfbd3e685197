//! The instance's error log: what happened that a DBA looks for afterwards, in the order it did.
//!
//! Lines are kept in memory since the start, the latest [`LINES_MAX`] of them; `sp_readerrorlog` reads them. Nothing is
//! written to a file, so that nothing that fails can keep work from being told.
//!
//! Locks: `ERROR_LOG` (5), for the time of a copy. No failure.

use std::collections::VecDeque;
use thawdb_observe::sync::{LockClass, Mutex};

static ERROR_LOG: LockClass = LockClass::new("ERROR_LOG", 5);

/// Lines kept: some megabytes at most.
const LINES_MAX: usize = 10_000;

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// 1/300 s since 1900-01-01.
    pub(crate) moment: i64,
    /// `spid51`, or `Server` for the instance itself.
    pub(crate) source: String,
    pub(crate) text: String,
}

/// The log.
pub(crate) struct ErrorLog(Mutex<VecDeque<Line>>);

impl ErrorLog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(&ERROR_LOG, VecDeque::new()))
    }

    /// Adds a line; the oldest goes where there are too many.
    pub(crate) fn write(&self, moment: i64, session: Option<i16>, text: impl Into<String>) {
        let source = session.map_or_else(|| "Server".to_owned(), |id| format!("spid{id}"));
        let mut lines = self.0.lock();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(Line { moment, source, text: text.into() });
    }

    /// Every line, oldest first.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_lines_are_kept() {
        let log = ErrorLog::new();
        for n in 0..LINES_MAX + 3 {
            log.write(n as i64, (n % 2 == 0).then_some(51), n.to_string());
        }
        let lines = log.lines();
        assert_eq!((lines.len(), lines[0].text.as_str(), lines[0].source.as_str()), (LINES_MAX, "3", "Server"));
        assert_eq!(lines[1].source, "spid51");
    }
}
