//! SET STATISTICS IO and TIME: what a statement read and how long it took, told behind its completion.
//!
//! Not told: work tables (what does not fit memory goes to files, and shows in no page count) and what triggers and
//! functions that the statement runs read, which tell their own.

use crate::batch::interpreter::Interpreter;
use crate::messages::message;
use std::fmt::Display;
use std::time::Duration;
use thawdb_query::exec::{Execution, ReadAccount, TableReads};

/// A statement's clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    start_ns: u64,
    cpu_start_ns: u64,
}

fn ms(ns: u64) -> u128 {
    Duration::from_nanos(ns).as_millis()
}

impl Interpreter<'_, '_> {
    /// The clocks, if SET STATISTICS TIME is on.
    pub(crate) fn stopwatch(&self) -> Option<Stopwatch> {
        let clock = &self.session.engine.config.env.clock;
        let on = self.session.options.statistics_time;
        on.then(|| Stopwatch { start_ns: clock.monotonic_ns(), cpu_start_ns: clock.thread_cpu_ns() })
    }

    fn passed(&self, since: Stopwatch) -> (u128, u128) {
        let clock = &self.session.engine.config.env.clock;
        let cpu = clock.thread_cpu_ns().saturating_sub(since.cpu_start_ns);
        (ms(cpu), ms(clock.monotonic_ns().saturating_sub(since.start_ns)))
    }

    /// Tells how long compiling took.
    pub(crate) fn tell_compile_time(&mut self, since: Option<Stopwatch>) {
        if let Some(since) = since {
            let (cpu, elapsed) = self.passed(since);
            self.out.message(&message(3613, &[&"\n", &cpu, &elapsed]));
        }
    }

    /// Tells how long the statement took.
    pub(crate) fn tell_execution_time(&mut self, since: Option<Stopwatch>) {
        if let Some(since) = since {
            let (cpu, elapsed) = self.passed(since);
            self.out.message(&message(3612, &[&"\n", &"\n", &cpu, &elapsed]));
        }
    }

    /// Keeps what a plan has read until the statement's completion has been told.
    pub(crate) fn note_reads(&mut self, execution: &Execution<'_>) {
        let tables = execution.reads().map(ReadAccount::tables).unwrap_or_default();
        self.session.statement_reads.extend_from_slice(tables);
    }

    /// Tells what was read, if SET STATISTICS IO is on.
    pub(crate) fn tell_reads(&mut self) {
        for TableReads { table, scans, pages, .. } in std::mem::take(&mut self.session.statement_reads) {
            let (zero, name, scans): (&dyn Display, &dyn Display, &dyn Display) = (&0, &table.name, &scans);
            let counts: [&dyn Display; 12] =
                [name, scans, &pages.logical, &pages.physical, zero, &pages.ahead, zero, &pages.large, zero, zero, zero, zero];
            self.out.message(&message(3615, &counts));
        }
    }
}
