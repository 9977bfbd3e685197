//! What ONLINE, RESUMABLE and their companions ask for, and which of them do not go together.
//!
//! | refused | message |
//! |---|---|
//! | RESUMABLE without ONLINE; SORT_IN_TEMPDB with RESUMABLE | 11438 |
//! | MAX_DURATION without RESUMABLE, or out of range | 11431, 11432 |
//! | DROP_EXISTING with RESUMABLE | 10665 |
//!
//! What is left over goes to `constraints::check_options`.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::{message, unsupported_option};
use std::time::Duration;
use thawdb_tsql::ast::{IndexOption, IndexOptionKind};

/// One more than the longest MAX_DURATION, a week in minutes.
const MAX_DURATION_END: i64 = 10_081;

/// How an index operation is to go.
#[derive(Debug, Clone, Default)]
pub(crate) struct BuildOptions {
    pub(crate) online: bool,
    pub(crate) resumable: bool,
    pub(crate) max_duration: Option<Duration>,
    pub(crate) max_dop: i16,
    pub(crate) fill_factor: u8,
    /// Those that others look at.
    pub(crate) rest: Vec<IndexOption>,
}

impl BuildOptions {
    /// Reads the options of a statement called `what`.
    pub(crate) fn read(interpreter: &mut Interpreter<'_, '_>, options: &[IndexOption], what: &str) -> Result<Self, Failure> {
        let mut read = Self::default();
        let (mut minutes, mut in_tempdb, mut drops_existing) = (None, false, false);
        for option in options {
            let line = option.span.line;
            match &option.kind {
                IndexOptionKind::Online { on, wait } => {
                    if wait.is_some() {
                        return Err(unsupported_option("WAIT_AT_LOW_PRIORITY").at_line(line).into());
                    }
                    read.online = *on;
                }
                IndexOptionKind::Resumable(on) => read.resumable = *on,
                IndexOptionKind::MaxDuration(value) => minutes = Some(interpreter.int_value(value)?.unwrap_or(0)),
                IndexOptionKind::MaxDop(value) => {
                    let dop = interpreter.int_value(value)?.unwrap_or(0);
                    read.max_dop = i16::try_from(dop).unwrap_or(0);
                }
                IndexOptionKind::FillFactor(value) => {
                    let percent = interpreter.int_value(value)?.unwrap_or(0);
                    let given = u8::try_from(percent).ok().filter(|percent| (1..=100).contains(percent));
                    read.fill_factor = given.ok_or_else(|| message(129, &[&percent]).at_line(line))?;
                }
                IndexOptionKind::SortInTempdb(on) => in_tempdb = *on,
                IndexOptionKind::DropExisting(true) if read.resumable || resumable_follows(options) => drops_existing = true,
                _ => read.rest.push(option.clone()),
            }
        }
        if read.resumable && !read.online {
            return Err(message(11438, &[&"RESUMABLE", &"ON", &"ONLINE", &"OFF"]).into());
        }
        if read.resumable && in_tempdb {
            return Err(message(11438, &[&"SORT_IN_TEMPDB", &"ON", &"RESUMABLE", &"ON"]).into());
        }
        if drops_existing {
            return Err(message(10665, &[&what, &"RESUMABLE"]).into());
        }
        read.set_duration(minutes)?;
        if read.resumable && interpreter.session.transactions.count > 0 {
            return Err(message(574, &[&format!("{what} WITH RESUMABLE=ON")]).into());
        }
        Ok(read)
    }

    fn set_duration(&mut self, minutes: Option<i64>) -> Result<(), Failure> {
        let Some(minutes) = minutes else { return Ok(()) };
        if !self.resumable {
            return Err(message(11431, &[&"MAX_DURATION", &"RESUMABLE", &"ON"]).into());
        }
        self.max_duration = Some(duration_of(minutes)?);
        Ok(())
    }
}

/// MAX_DURATION in minutes: 11432 out of range.
pub(crate) fn duration_of(minutes: i64) -> Result<Duration, Failure> {
    match u64::try_from(minutes) {
        Ok(minutes) if minutes > 0 && minutes < MAX_DURATION_END.unsigned_abs() => Ok(Duration::from_secs(minutes * 60)),
        _ => Err(message(11432, &[&"MAX_DURATION", &minutes, &MAX_DURATION_END]).into()),
    }
}

fn resumable_follows(options: &[IndexOption]) -> bool {
    options.iter().any(|option| matches!(option.kind, IndexOptionKind::Resumable(true)))
}
