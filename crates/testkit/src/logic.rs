//! The suite of SQL answers: files of statements and queries with what must come back, in the format of sqllogictest.
//!
//! ```text
//! # a comment                              skipped, as are empty lines between records
//! statement ok                             the text up to an empty line must raise no error
//! statement error 2627                     it must raise this error, and no other before it
//! statement count 3                        it must change (or return) so many rows, all completions together
//! query [rowsort]                          its rows are those under the four dashes, a row a line, values between bars
//! SELECT a, b FROM t
//! ----
//! 1 | x
//! connection b                             the records that follow run in this session; `a` is the first
//! ```
//! NULL is `NULL`, an empty text `(empty)`, binary `0x...`, bit 0 or 1; other values are as CONVERT to nvarchar shows them.
//! `rowsort` orders found and expected rows as text: for queries whose order is not asked for.
//!
//! 1. Each file has an engine of its own on a simulated disk: the same answers everywhere, and no file is left behind.
//! 2. A record that fails does not end its file: all that is wrong is told at once ([`run_file`]).
//!
//! Expectations come from documented behaviour or from a model outside the engine, never from the engine's own answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_device::sim::{SimOptions, Simulation};
use thawdb_engine::{Batch, DoneInfo, Engine, EngineConfig, EnvChange, OutputColumn, ResultSink, Session, SinkClosed};
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// What a record asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// No error.
    Ok,
    /// This error first.
    Error(i32),
    /// So many rows.
    Count(u64),
    /// These rows; `true` in any order.
    Rows(Vec<String>, bool),
}

/// One record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The line it begins at.
    pub line: usize,
    /// The session it runs in.
    pub connection: String,
    /// The text.
    pub text: String,
    /// What it must give.
    pub expected: Expected,
}

/// The records of a file.
///
/// # Errors
/// The line that is no record.
pub fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut connection = "a".to_owned();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = || format!("line {}: not a record: {line}", at + 1);
        let expected = match words.as_slice() {
            ["connection", name] => {
                connection = (*name).to_owned();
                continue;
            }
            ["statement", "ok"] => Expected::Ok,
            ["statement", "error", number] => Expected::Error(number.parse().map_err(|_| wrong())?),
            ["statement", "count", count] => Expected::Count(count.parse().map_err(|_| wrong())?),
            ["query"] => Expected::Rows(Vec::new(), false),
            ["query", "rowsort"] => Expected::Rows(Vec::new(), true),
            _ => return Err(wrong()),
        };
        let is_query = matches!(expected, Expected::Rows(..));
        let mut body = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty() && !(is_query && *line == "----")) {
            body.push(line);
        }
        let expected = match expected {
            Expected::Rows(_, sorted) => {
                lines.next_if(|(_, line)| *line == "----").ok_or_else(wrong)?;
                let mut rows = Vec::new();
                while let Some((_, row)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
                    rows.push(row.to_owned());
                }
                Expected::Rows(rows, sorted)
            }
            other => other,
        };
        if body.is_empty() {
            return Err(wrong());
        }
        records.push(Record { line: at + 1, connection: connection.clone(), text: body.join("\n"), expected });
    }
    Ok(records)
}

/// What a text gave.
#[derive(Default)]
struct Answer {
    types: Vec<SqlType>,
    rows: Vec<String>,
    count: u64,
    error: Option<SqlError>,
}

fn shown(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Text(text) if text.is_empty() => "(empty)".into(),
        Scalar::Text(text) => text.replace('\n', "\\n"),
        Scalar::Binary(bytes) => format!("0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
        Scalar::Bit(on) => u8::from(*on).to_string(),
        other => match convert(other, sql_type, &SqlType::nvarchar(4000), &ConvertOptions::default()) {
            Ok(Scalar::Text(text)) => text,
            _ => format!("{other:?}"),
        },
    }
}

impl ResultSink for Answer {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        self.types = columns.iter().map(|column| column.sql_type).collect();
        Ok(())
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        for row in 0..batch.row_count {
            let cells = batch.columns.iter().zip(&self.types);
            let values: Vec<String> = cells.map(|(array, of)| shown(&scalar_at(array.as_ref(), row, of), of)).collect();
            self.rows.push(values.join(" | "));
        }
        Ok(())
    }

    fn done(&mut self, info: DoneInfo) {
        self.count += info.rows_affected.unwrap_or(0);
    }

    fn message(&mut self, message: &SqlError) {
        if message.severity > 10 && self.error.is_none() {
            self.error = Some(message.clone());
        }
    }

    fn return_status(&mut self, _: i32) {}

    fn return_value(&mut self, _: u16, _: &str, _: &SqlType, _: &Scalar) {}

    fn env_change(&mut self, _: &EnvChange) {}
}

/// What is wrong with an answer; `None` if nothing is.
fn judge(expected: &Expected, answer: &mut Answer) -> Option<String> {
    let error = answer.error.as_ref().map(|error| format!("error {}: {}", error.number, error.text));
    match (expected, &answer.error) {
        (Expected::Error(number), Some(found)) if found.number == *number => None,
        (Expected::Error(number), _) => Some(format!("expected error {number}, found {}", error.unwrap_or_else(|| "none".into()))),
        (_, Some(_)) => error,
        (Expected::Ok, None) => None,
        (Expected::Count(count), None) if answer.count == *count => None,
        (Expected::Count(count), None) => Some(format!("expected {count} rows, found {}", answer.count)),
        (Expected::Rows(rows, sorted), None) => {
            let mut rows = rows.clone();
            if *sorted {
                rows.sort();
                answer.rows.sort();
            }
            let differs = rows != answer.rows;
            differs.then(|| format!("expected\n{}\nfound\n{}", rows.join("\n"), answer.rows.join("\n")))
        }
    }
}

/// Runs the records of a text on an engine of its own: how many there were, and what was wrong.
///
/// # Errors
/// The line that is no record, or why the engine did not open.
pub fn run_file(text: &str) -> Result<(usize, Vec<String>), String> {
    let records = parse(text)?;
    let sim = Simulation::new(SimOptions::new(1));
    let config = EngineConfig {
        env: sim.env(),
        data_folder: "/data".into(),
        memory_bytes_max: 256 << 20,
        sa_password: None,
        server_name: "LOGIC".into(),
    };
    let engine: Arc<Engine> = Engine::open(config).map_err(|error| format!("the engine does not open: {error:?}"))?;
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let mut wrong = Vec::new();
    for record in &records {
        let session = sessions.entry(record.connection.clone()).or_insert_with(|| engine.internal_session());
        let mut answer = Answer::default();
        session.execute(&record.text, &[], &mut answer);
        if let Some(what) = judge(&record.expected, &mut answer) {
            wrong.push(format!("line {}:\n{}\n{what}", record.line, record.text));
        }
    }
    Ok((records.len(), wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let text = "# c\nstatement ok\nSELECT 1\n\nconnection b\nquery rowsort\nSELECT 2,\n3\n----\n2 | 3\n\nstatement error 208\nSELECT * FROM x\n";
        let records = parse(text).unwrap();
        assert_eq!(records.len(), 3);
        assert_eq!((records[1].connection.as_str(), records[1].line), ("b", 6));
        assert_eq!(records[1].text, "SELECT 2,\n3");
        assert_eq!(records[1].expected, Expected::Rows(vec!["2 | 3".into()], true));
        assert_eq!(records[2].expected, Expected::Error(208));
        assert!(parse("statement maybe\nSELECT 1\n").is_err());
        assert!(parse("query\nSELECT 1\n").is_err());
        assert!(parse("statement ok\n\n").is_err());
    }

    #[test]
    fn wrong_answers_are_told() {
        let text = "query\nSELECT 1\n----\n2\n\nstatement error 208\nSELECT 1\n\nstatement ok\nSELECT 1 / 0\n\nstatement count 2\nSELECT 1\n\n\
                    query rowsort\nSELECT * FROM (VALUES (2), (1)) AS v (n)\n----\n1\n2\n";
        let (count, wrong) = run_file(text).unwrap();
        assert_eq!((count, wrong.len()), (5, 4), "{wrong:?}");
        assert!(wrong[2].contains("error 8134"), "{}", wrong[2]);
    }
}
