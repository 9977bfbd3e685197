//! The demo's child: inserts rows in small transactions and says which ones the engine acknowledged, until it is killed.
//!
//! Invariants: W1 an Id is printed only after COMMIT has returned, and is in the pipe before the next transaction
//! begins; so whatever the parent reads was acknowledged. W2 it goes on behind the rows that are there, so that it can
//! be killed again and again.

use crate::args::DemoWriterArguments;
use crate::cmd::Failure;
use crate::embed::{self, Options};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Rows of a transaction; their number tells a half one.
pub(crate) const ROWS_PER_TRANSACTION: u64 = 10;
/// A writer nobody kills ends here.
const TRANSACTIONS_MAX: u64 = 1_000_000;

/// What row `id` says, so that a row with another row's text is seen.
pub(crate) fn payload(id: u64) -> String {
    format!("row {id} of transaction {}", (id - 1) / ROWS_PER_TRANSACTION)
}

/// Runs the command.
pub fn run(arguments: &DemoWriterArguments) -> Result<ExitCode, Failure> {
    let instance = embed::open(&arguments.data, Options { memory_bytes_max: arguments.memory, ..Options::default() })?;
    let mut session = instance.session();
    session.execute(&format!("USE [{}]", arguments.database.replace(']', "]]")))?;
    let mut output = std::io::stdout().lock();
    let last = session.execute("SELECT MAX(Id) FROM dbo.Acknowledged")?.scalar().and_then(|id| id.as_i64()).unwrap_or(0);
    let first = last.cast_unsigned() / ROWS_PER_TRANSACTION;
    for transaction in first..first + TRANSACTIONS_MAX {
        session.execute(&statements(transaction))?;
        writeln!(output, "{}", (transaction + 1) * ROWS_PER_TRANSACTION)?;
        output.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn statements(transaction: u64) -> String {
    let mut text = "BEGIN TRANSACTION;\n".to_owned();
    for row in 1..=ROWS_PER_TRANSACTION {
        let id = transaction * ROWS_PER_TRANSACTION + row;
        let written = writeln!(text, "INSERT dbo.Acknowledged (Id, Batch, Payload) VALUES ({id}, {transaction}, N'{}');", payload(id));
        written.expect("a String takes everything");
    }
    text + "COMMIT TRANSACTION;"
}
