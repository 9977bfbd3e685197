//! What ONLINE, RESUMABLE and their companions ask for, and which of them do not go together.
//!
//! | refused | message |
//! |---|---|
//! | RESUMABLE without ONLINE; SORT_IN_TEMPDB with RESUMABLE | 11438 |
//! | MAX_DURATION without RESUMABLE, or out of range | 11431, 11432 |
//! | DROP_EXISTING with RESUMABLE | 10665 |
//! | RESUMABLE inside a transaction | 574 |
//!
//! What a statement leaves open, ELEVATE_ONLINE and ELEVATE_RESUMABLE of its database decide: WHEN_SUPPORTED where the
//! operation can go so ([`Supports`]), FAIL_UNSUPPORTED as if the statement had said it.
//!
//! What is left over goes to `constraints::check_options`.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::scoped::{Elevation, elevation};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use std::time::Duration;
use thawdb_tsql::ast::{AbortAfterWait, IndexOption, IndexOptionKind, LowPriorityWait};

/// One more than the longest MAX_DURATION of an operation, a week in minutes.
const MAX_DURATION_END: i64 = 10_081;
/// One more than the longest wait at low priority in minutes: SQL Server's.
const LOW_PRIORITY_END: i64 = 71_583;
/// Highest MAXDOP.
const MAX_DOP: i64 = 64;

/// How an operation waits for the locks it begins and ends with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowPriority {
    /// So long others pass by.
    pub(crate) duration: Duration,
    /// What happens then.
    pub(crate) after: AbortAfterWait,
}

/// How an index operation is to go.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildOptions {
    pub(crate) online: bool,
    pub(crate) resumable: bool,
    pub(crate) max_duration: Option<Duration>,
    pub(crate) max_dop: i16,
    pub(crate) fill_factor: u8,
    pub(crate) drop_existing: bool,
    pub(crate) low_priority: Option<LowPriority>,
    /// Those that others look at.
    pub(crate) rest: Vec<IndexOption>,
}

/// How an operation can go, for what the database elevates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Supports {
    pub(crate) online: bool,
    pub(crate) resumable: bool,
}

/// What options say before the database has its say.
#[derive(Default)]
struct Written {
    online: Option<bool>,
    resumable: Option<bool>,
    minutes: Option<i64>,
    in_tempdb: bool,
}

impl BuildOptions {
    /// Reads the options of a statement called `what` on an index of a table in `open`.
    pub(crate) fn read(
        interpreter: &mut Interpreter<'_, '_>,
        open: &OpenDatabase,
        options: &[IndexOption],
        what: &str,
        supports: Supports,
    ) -> Result<Self, Failure> {
        let mut read = Self::default();
        let mut written = Written::default();
        for option in options {
            read.take(interpreter, option, &mut written)?;
        }
        let is_free = interpreter.session.transactions.count == 0;
        read.elevate(open, &written, supports, is_free);
        if read.resumable && !read.online {
            return Err(message(11438, &[&"RESUMABLE", &"ON", &"ONLINE", &"OFF"]).into());
        }
        if read.resumable && written.in_tempdb {
            return Err(message(11438, &[&"SORT_IN_TEMPDB", &"ON", &"RESUMABLE", &"ON"]).into());
        }
        if read.resumable && read.drop_existing {
            return Err(message(10665, &[&what, &"RESUMABLE"]).into());
        }
        if let Some(minutes) = written.minutes {
            if !read.resumable {
                return Err(message(11431, &[&"MAX_DURATION", &"RESUMABLE", &"ON"]).into());
            }
            read.max_duration = Some(duration_of(minutes)?);
        }
        if read.resumable && !is_free {
            return Err(message(574, &[&format!("{what} WITH RESUMABLE=ON")]).into());
        }
        Ok(read)
    }

    fn take(&mut self, interpreter: &mut Interpreter<'_, '_>, option: &IndexOption, written: &mut Written) -> Result<(), Failure> {
        let line = option.span.line;
        match &option.kind {
            IndexOptionKind::Online { on, wait } => {
                self.low_priority = wait.as_ref().map(|wait| low_priority(interpreter, wait)).transpose()?;
                written.online = Some(*on);
            }
            IndexOptionKind::Resumable(on) => written.resumable = Some(*on),
            IndexOptionKind::MaxDuration(value) => written.minutes = Some(interpreter.int_value(value)?.unwrap_or(0)),
            IndexOptionKind::MaxDop(value) => {
                let dop = interpreter.int_value(value)?.unwrap_or(0);
                let given = i16::try_from(dop).ok().filter(|_| (0..=MAX_DOP).contains(&dop));
                self.max_dop = given.ok_or_else(|| message(1080, &[&dop]).at_line(line))?;
            }
            IndexOptionKind::FillFactor(value) => {
                let percent = interpreter.int_value(value)?.unwrap_or(0);
                let given = u8::try_from(percent).ok().filter(|percent| (1..=100).contains(percent));
                self.fill_factor = given.ok_or_else(|| message(129, &[&percent]).at_line(line))?;
            }
            IndexOptionKind::SortInTempdb(on) => written.in_tempdb = *on,
            IndexOptionKind::DropExisting(on) => self.drop_existing = *on,
            _ => self.rest.push(option.clone()),
        }
        Ok(())
    }

    /// What the database says where the statement says nothing.
    fn elevate(&mut self, open: &OpenDatabase, written: &Written, supports: Supports, is_free: bool) {
        let decide = |said: Option<bool>, name: &str, supported: bool| match (said, elevation(open, name)) {
            (Some(said), _) => said,
            (None, Elevation::Off) => false,
            (None, Elevation::WhenSupported) => supported,
            (None, Elevation::FailUnsupported) => true,
        };
        self.online = decide(written.online, "ELEVATE_ONLINE", supports.online && is_free);
        let can_resume = supports.resumable && is_free && self.online && !written.in_tempdb && !self.drop_existing;
        self.resumable = decide(written.resumable, "ELEVATE_RESUMABLE", can_resume);
    }
}

/// MAX_DURATION in minutes: 11432 out of range.
pub(crate) fn duration_of(minutes: i64) -> Result<Duration, Failure> {
    match u64::try_from(minutes) {
        Ok(minutes) if minutes > 0 && minutes < MAX_DURATION_END.unsigned_abs() => Ok(Duration::from_secs(minutes * 60)),
        _ => Err(message(11432, &[&"MAX_DURATION", &minutes, &MAX_DURATION_END]).into()),
    }
}

/// WAIT_AT_LOW_PRIORITY: 11432 for minutes out of range, and for none with SELF, which would never wait.
pub(crate) fn low_priority(interpreter: &mut Interpreter<'_, '_>, wait: &LowPriorityWait) -> Result<LowPriority, Failure> {
    let minutes = interpreter.int_value(&wait.max_duration_minutes)?.unwrap_or(0);
    let least = i64::from(wait.abort_after_wait == AbortAfterWait::Self_);
    if minutes < least || minutes >= LOW_PRIORITY_END {
        return Err(message(11432, &[&"MAX_DURATION", &minutes, &LOW_PRIORITY_END]).into());
    }
    Ok(LowPriority { duration: Duration::from_secs(minutes.unsigned_abs() * 60), after: wait.abort_after_wait })
}
