//! What the shell talks to: a server through our TDS client, or an engine in this very process.

use crate::embed::{Instance, Session};
use crate::shell::table::Printer;
use std::fmt;
use std::io;
use thawdb_engine::{Batch, DoneInfo, EnvChange, OutputColumn, ResultSink, SinkClosed};
use thawdb_tds::client::{Client, ClientError, Item};
use thawdb_tds::token::ColumnMeta;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// Why nothing more can be run.
#[derive(Debug)]
pub enum TargetError {
    /// The connection.
    Client(ClientError),
    /// Our own input or output.
    Io(io::Error),
    /// The session was ended by an error or KILL.
    Ended,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => write!(f, "{error}"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Ended => f.write_str("the session has been ended"),
        }
    }
}

impl std::error::Error for TargetError {}

impl From<ClientError> for TargetError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for TargetError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Something that runs batches.
pub trait Target {
    /// Runs one; what it answers goes to the printer. The server's errors are part of the answer.
    fn run(&mut self, batch: &str, printer: &mut Printer) -> Result<(), TargetError>;

    /// What errors call the server.
    fn server_name(&self) -> String;
}

/// A server.
pub struct Remote {
    client: Client,
    server_name: String,
}

impl Remote {
    /// A target over a connection; `server_name` is how the user called the server.
    pub fn new(client: Client, server_name: String) -> Self {
        Self { client, server_name }
    }
}

impl Target for Remote {
    fn run(&mut self, batch: &str, printer: &mut Printer) -> Result<(), TargetError> {
        let canceller = self.client.canceller();
        let mut response = self.client.batch(batch)?;
        while let Some(item) = response.next_item()? {
            match item {
                Item::Columns(columns) => printer.columns(&columns.columns.into_iter().map(output_column).collect::<Vec<_>>()),
                Item::Row(values) => printer.row(&values),
                Item::Done(done) => printer.done(done.rows),
                Item::Message(message) => printer.message(&message.error),
                _ => {}
            }
            if printer.is_broken() {
                canceller.cancel()?;
            }
        }
        Ok(())
    }

    fn server_name(&self) -> String {
        self.server_name.clone()
    }
}

fn output_column(column: ColumnMeta) -> OutputColumn {
    OutputColumn { name: column.name, sql_type: column.info.sql_type, nullable: column.nullable, identity: column.identity }
}

/// An engine in this process.
pub struct Embedded {
    session: Session,
    server_name: String,
}

impl Embedded {
    /// A target over a new session of `instance`.
    pub fn new(instance: &Instance) -> Self {
        Self { session: instance.session(), server_name: instance.server_name().to_owned() }
    }

    /// Begins in a database.
    ///
    /// # Errors
    /// 911 when there is none of this name.
    pub fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        self.session.execute(&format!("USE [{}]", name.replace(']', "]]"))).map(drop)
    }
}

impl Target for Embedded {
    fn run(&mut self, batch: &str, printer: &mut Printer) -> Result<(), TargetError> {
        self.session.execute_into(batch, &[], &mut PrinterSink { printer, columns: Vec::new() });
        if self.session.is_ended() { Err(TargetError::Ended) } else { Ok(()) }
    }

    fn server_name(&self) -> String {
        self.server_name.clone()
    }
}

/// Batches of columns to rows of values.
struct PrinterSink<'p> {
    printer: &'p mut Printer,
    columns: Vec<OutputColumn>,
}

impl ResultSink for PrinterSink<'_> {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        self.columns = columns.to_vec();
        self.printer.columns(columns);
        Ok(())
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        for row in 0..batch.row_count {
            let cells = batch.columns.iter().zip(&self.columns);
            let values: Vec<Scalar> = cells.map(|(array, column)| scalar_at(array, row, &column.sql_type)).collect();
            self.printer.row(&values);
        }
        if self.printer.is_broken() { Err(SinkClosed) } else { Ok(()) }
    }

    fn done(&mut self, info: DoneInfo) {
        self.printer.done(info.rows_affected);
    }

    fn message(&mut self, message: &SqlError) {
        self.printer.message(message);
    }

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _ordinal: u16, _name: &str, _sql_type: &SqlType, _value: &Scalar) {}

    fn env_change(&mut self, _change: &EnvChange) {}
}
