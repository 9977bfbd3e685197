//! A session of the simulated instance: asks, and keeps what it was answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use thawdb_engine::{Batch, DoneInfo, Engine, EnvChange, OutputColumn, ResultSink, Session, SinkClosed};
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// What a batch said.
#[derive(Debug, Default)]
pub struct Answer {
    types: Vec<SqlType>,
    /// Rows of all result sets.
    pub rows: Vec<Vec<Scalar>>,
    /// Rows counted by the last statement that counted any.
    pub counted: Option<u64>,
    /// Messages of severity above 10.
    pub errors: Vec<SqlError>,
    /// Messages of severity up to 10.
    pub infos: Vec<SqlError>,
    is_ended: bool,
}

impl Answer {
    /// The first error's number, 0 if there was none.
    pub fn number(&self) -> i32 {
        self.errors.first().map_or(0, |error| error.number)
    }

    /// The errors, one after another.
    pub fn told(&self) -> String {
        let told: Vec<_> = self.errors.iter().map(|error| format!("Msg {}: {}", error.number, error.text)).collect();
        told.join(" / ")
    }
}

impl ResultSink for Answer {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        self.types = columns.iter().map(|column| column.sql_type).collect();
        Ok(())
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        for row in 0..batch.row_count {
            let values = batch.columns.iter().zip(&self.types).map(|(column, sql_type)| scalar_at(column.as_ref(), row, sql_type));
            self.rows.push(values.collect());
        }
        Ok(())
    }

    fn done(&mut self, info: DoneInfo) {
        assert!(!self.is_ended, "a completion after the last");
        self.is_ended = !info.more;
        self.counted = info.rows_affected.or(self.counted);
    }

    fn message(&mut self, message: &SqlError) {
        if message.is_informational() { self.infos.push(message.clone()) } else { self.errors.push(message.clone()) }
    }

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _ordinal: u16, _name: &str, _sql_type: &SqlType, _value: &Scalar) {}

    fn env_change(&mut self, _change: &EnvChange) {}
}

/// A client.
pub struct Client {
    session: Session,
}

impl Client {
    /// A session in `database` that waits for no lock: with one thread nobody would end its wait.
    pub fn new(engine: &Arc<Engine>, database: &str) -> Result<Self, SqlError> {
        let mut client = Self { session: engine.internal_session() };
        let answer = client.ask(&format!("USE [{database}]"));
        let answer = if answer.errors.is_empty() { client.ask("SET LOCK_TIMEOUT 0") } else { answer };
        match answer.errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(client),
        }
    }

    /// Runs a batch. A panic that comes out of the engine is an error no client may see: number -1.
    pub fn ask(&mut self, text: &str) -> Answer {
        let mut answer = Answer::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.session.execute(text, &[], &mut answer)));
        if let Err(panic) = outcome {
            let what = crate::crash::message_of(panic.as_ref());
            answer.errors.insert(0, SqlError { number: -1, severity: 20, state: 1, text: what, line: 0, procedure: None });
        }
        answer
    }

    /// Whether the session has been ended by an error.
    pub fn is_ended(&self) -> bool {
        self.session.is_ended()
    }
}
