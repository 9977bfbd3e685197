//! A session of the embedding API.

use crate::embed::bulk::{BulkColumn, BulkLoad};
use crate::embed::result::{Gather, Results};
use crate::embed::stream::Stream;
use thawdb_engine::{CancelToken, Parameter, ResultSink};
use thawdb_types::{Scalar, SqlError, SqlType};

/// One session: its database, its transaction, its temporary tables, its options. Dropping it rolls back.
pub struct Session {
    /// Absent only while a [`Stream`] has it, which borrows `self`.
    engine: Option<thawdb_engine::Session>,
}

impl Session {
    pub(crate) fn new(engine: thawdb_engine::Session) -> Self {
        Self { engine: Some(engine) }
    }

    pub(crate) fn engine(&mut self) -> &mut thawdb_engine::Session {
        self.engine.as_mut().expect("only a stream takes the session, and it borrows us")
    }

    pub(crate) fn take_engine(&mut self) -> thawdb_engine::Session {
        self.engine.take().expect("only a stream takes the session, and it borrows us")
    }

    pub(crate) fn give_back(&mut self, engine: thawdb_engine::Session) {
        self.engine = Some(engine);
    }

    /// `@@SPID`.
    pub fn id(&mut self) -> i16 {
        self.engine().id()
    }

    /// What cancels this session's statements from another thread.
    pub fn cancel_token(&mut self) -> CancelToken {
        self.engine().cancel_token()
    }

    /// Whether an error of severity 20 or KILL has ended the session.
    pub fn is_ended(&mut self) -> bool {
        self.engine().is_ended()
    }

    /// Runs a batch.
    ///
    /// # Errors
    /// The first error the batch raised. Use [`Session::run`] to see what else it answered.
    pub fn execute(&mut self, sql: &str) -> Result<Results, SqlError> {
        check(self.run(sql))
    }

    /// Runs a statement with parameters, as `sp_executesql` does: `SELECT ... WHERE Id = @id`.
    ///
    /// # Errors
    /// The first error it raised.
    pub fn execute_with(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Results, SqlError> {
        let mut gather = Gather::default();
        self.execute_into(sql, parameters, &mut gather);
        check(gather.results)
    }

    /// Runs a batch and gathers all it answers, errors among the messages.
    pub fn run(&mut self, sql: &str) -> Results {
        let mut gather = Gather::default();
        self.engine().execute(sql, &[], &mut gather);
        gather.results
    }

    /// Runs a batch with parameters; everything it answers goes to `sink` while it runs.
    pub fn execute_into(&mut self, sql: &str, parameters: &[Parameter], sink: &mut dyn ResultSink) {
        if parameters.is_empty() {
            return self.engine().execute(sql, &[], sink);
        }
        let declared: Vec<String> = parameters.iter().map(declaration).collect();
        let mut all = vec![text_parameter(sql), text_parameter(&declared.join(", "))];
        all.extend_from_slice(parameters);
        self.engine().execute_rpc("sp_executesql", &all, sink);
    }

    /// Calls a procedure; output parameters are among the results.
    ///
    /// # Errors
    /// The first error it raised.
    pub fn call(&mut self, procedure: &str, parameters: &[Parameter]) -> Result<Results, SqlError> {
        let mut gather = Gather::default();
        self.engine().execute_rpc(procedure, parameters, &mut gather);
        check(gather.results)
    }

    /// Runs a batch on a thread of its own and gives its results piece by piece: memory for a few batches, whatever
    /// the size of the result.
    pub fn stream(&mut self, sql: &str) -> Stream<'_> {
        Stream::start(self, sql.to_owned())
    }

    /// Begins a bulk load into `table` (its name as T-SQL writes it). `options` is the text of INSERT BULK's WITH.
    ///
    /// # Errors
    /// When the table or a column does not exist, or the load cannot begin.
    pub fn bulk(&mut self, table: &str, columns: &[BulkColumn], options: &str) -> Result<BulkLoad<'_>, SqlError> {
        BulkLoad::start(self, table, columns, options)
    }
}

fn check(results: Results) -> Result<Results, SqlError> {
    match results.first_error() {
        Some(error) => Err(error.clone()),
        None => Ok(results),
    }
}

fn declaration(parameter: &Parameter) -> String {
    let output = if parameter.output { " OUTPUT" } else { "" };
    format!("{} {}{output}", parameter.name, parameter.sql_type.name())
}

fn text_parameter(text: &str) -> Parameter {
    Parameter::input("", SqlType::NVARCHAR_MAX, Scalar::text(text))
}
