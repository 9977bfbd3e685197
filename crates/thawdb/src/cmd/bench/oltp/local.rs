//! The work without a wire: sessions of this process, a thread each, statements prepared once and run by handle.

use crate::cmd::Failure;
use crate::cmd::bench::oltp::DATABASE;
use crate::cmd::bench::oltp::measured::{Measured, process_cpu_seconds};
use crate::cmd::bench::oltp::workload::{self, Draw, Kind};
use crate::cmd::figures::Stopwatch;
use crate::embed::{Instance, Session};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use thawdb_engine::{Batch, DoneInfo, EnvChange, OutputColumn, Parameter, ResultSink, SinkClosed};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Takes results as SQLite's rival takes its row: counts them, and keeps the first error.
#[derive(Default)]
pub struct Counting {
    pub rows: usize,
    /// Of the values, so that each is looked at.
    sum: i64,
    affected: u64,
    handle: Option<i32>,
    pub error: Option<SqlError>,
}

impl ResultSink for Counting {
    fn columns(&mut self, _: &[OutputColumn]) -> Result<(), SinkClosed> {
        Ok(())
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        self.rows += batch.row_count;
        Ok(())
    }

    fn row(&mut self, _: &[OutputColumn], values: &[Scalar]) -> Result<(), SinkClosed> {
        self.rows += 1;
        self.sum += values.iter().filter_map(Scalar::as_i64).sum::<i64>();
        Ok(())
    }

    fn done(&mut self, info: DoneInfo) {
        self.affected += info.rows_affected.unwrap_or(0);
    }

    fn message(&mut self, message: &SqlError) {
        if message.severity > 10 && self.error.is_none() {
            self.error = Some(message.clone());
        }
    }

    fn return_status(&mut self, _: i32) {}

    fn return_value(&mut self, _: u16, _: &str, _: &SqlType, value: &Scalar) {
        if let Scalar::Int(handle) = value {
            self.handle = Some(*handle);
        }
    }

    fn env_change(&mut self, _: &EnvChange) {}
}

fn int(name: &str, value: i32) -> Parameter {
    Parameter::input(name, SqlType::Int, Scalar::Int(value))
}

fn prepare(session: &mut Session, kind: Kind) -> Result<i32, Failure> {
    let (text, declarations) = match kind {
        Kind::Insert => (workload::INSERT_JOURNAL, "@aid int, @delta int"),
        Kind::Update => (workload::UPDATE_ACCOUNT, "@aid int, @delta int"),
        Kind::Select | Kind::Tpcb => (workload::SELECT, "@aid int"),
    };
    let textual = |value: &str| Parameter::input("", SqlType::NVARCHAR_MAX, Scalar::text(value));
    let handle = Parameter { output: true, ..Parameter::input("", SqlType::Int, Scalar::Null) };
    let mut sink = Counting::default();
    session.engine().execute_rpc("sp_prepare", &[handle, textual(declarations), textual(text)], &mut sink);
    match (sink.error, sink.handle) {
        (None, Some(handle)) => Ok(handle),
        (error, _) => Err(error.map_or_else(|| Failure("sp_prepare gave no handle".into()), Failure::from)),
    }
}

/// One session's loop.
fn one(instance: &Instance, kind: Kind, scale: u32, number: usize, time: Duration, together: &Barrier) -> Result<Vec<f64>, Failure> {
    let mut session = instance.session();
    let prepared = session.execute(&format!("USE [{DATABASE}]")).map_err(Failure::from).and_then(|_| prepare(&mut session, kind));
    together.wait();
    let handle = prepared?;
    let mut draw = Draw::new(number);
    let mut latencies = Vec::with_capacity(1 << 16);
    let mut parameters = vec![int("", handle), int("", 0)];
    if kind != Kind::Select {
        parameters.push(int("", 0));
    }
    let whole = Stopwatch::start();
    let mut at = 0.0;
    while at < time.as_secs_f64() {
        parameters[1].value = Scalar::Int(draw.up_to(scale * workload::ACCOUNTS_PER_BRANCH));
        if let Some(delta) = parameters.get_mut(2) {
            delta.value = Scalar::Int(draw.delta());
        }
        let mut sink = Counting::default();
        session.engine().execute_rpc("sp_execute", &parameters, &mut sink);
        if let Some(error) = sink.error {
            return Err(error.into());
        }
        if (sink.rows, sink.affected) != (usize::from(kind == Kind::Select), 1) {
            let Counting { rows, affected, sum, .. } = sink;
            return Err(Failure(format!("{}: {rows} rows of sum {sum}, {affected} affected", kind.name())));
        }
        let end = whole.seconds();
        latencies.push(end - at);
        at = end;
    }
    Ok(latencies)
}

/// Runs `kind` by so many sessions at once.
pub fn run(instance: &Instance, kind: Kind, scale: u32, sessions: usize, time: Duration) -> Result<Measured, Failure> {
    let before = process_cpu_seconds(std::process::id())?;
    let together = Barrier::new(sessions);
    let mut latencies = Vec::new();
    thread::scope(|scope| {
        let together = &together;
        let running: Vec<_> = (0..sessions).map(|number| scope.spawn(move || one(instance, kind, scale, number, time, together))).collect();
        for thread in running {
            latencies.extend(thread.join().map_err(|_| Failure("a session of the benchmark panicked".into()))??);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(Measured { latencies, seconds: time.as_secs_f64(), cpu_seconds: process_cpu_seconds(std::process::id())? - before })
}
