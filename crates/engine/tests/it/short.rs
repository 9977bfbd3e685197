//! Runs the files of `tests/sql/short`: one line a record, what is asked and what SQL Server answers.
//!
//! ```text
//! LEFT('abc', 2)                => varchar(2): ab        an expression: its type and its value
//! SELECT v FROM t ORDER BY v    => 1 ; 2                 a batch: rows, counts and messages in order, between semicolons
//! 1/0                           => Msg 8134, Level 16, State 1: Divide by zero error encountered.
//! ! CREATE TABLE t (v int)                               a batch that must not fail
//! ```
//!
//! The record is what stands left of the first arrow. The lines of a file share one session. `THAWDB_UPDATE=1` rewrites the
//! answers, for review against SQL Server's documentation.

use crate::script::{fresh_engine, said};
use std::path::Path;
use thawdb_engine::Session;

const ARROW: &str = " => ";

/// Words that begin a batch; any other line is an expression.
const STATEMENTS: &[&str] = &[
    "ALTER",
    "BEGIN",
    "COMMIT",
    "CREATE",
    "DECLARE",
    "DELETE",
    "DENY",
    "DROP",
    "EXEC",
    "EXECUTE",
    "GRANT",
    "IF",
    "INSERT",
    "MERGE",
    "OPEN",
    "PRINT",
    "RAISERROR",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SELECT",
    "SET",
    "THROW",
    "TRUNCATE",
    "UPDATE",
    "USE",
    "WAITFOR",
    "WHILE",
    "WITH",
    "DBCC",
    "BREAK",
    "CONTINUE",
    "END",
    "FETCH",
    "CLOSE",
    "DEALLOCATE",
    "GOTO",
    "RETURN",
    "DISABLE",
    "ENABLE",
    "BULK",
    "REVERT",
];

fn is_batch(text: &str) -> bool {
    let word = text.trim_start_matches('(').split(|c: char| !c.is_ascii_alphabetic() && c != '_').next().unwrap_or_default();
    let called = text.strip_prefix(word).is_some_and(|rest| rest.starts_with('(')) && !word.eq_ignore_ascii_case("RAISERROR");
    !called && STATEMENTS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// A message without its line, which is always the first.
fn without_line(line: &str) -> String {
    match line.split_once(", Line 1: ") {
        Some((head, text)) if line.starts_with("Msg ") => format!("{head}: {text}"),
        _ => line.to_owned(),
    }
}

/// What a batch said, in one line: no headings, no counts of rows that are seen.
fn batch_answer(lines: &[String]) -> String {
    let mut parts = Vec::new();
    let (mut in_rows, mut rows) = (false, 0);
    for line in lines {
        let count = line.strip_prefix("done-in-proc").or_else(|| line.strip_prefix("done")).filter(|rest| !rest.starts_with('-'));
        match count {
            Some(rest) => {
                if in_rows && rows == 0 && !rest.contains("error") {
                    parts.push("no rows".to_owned());
                } else if !in_rows && !rest.is_empty() && !rest.contains("error") {
                    parts.push(format!("{} rows", rest.trim()));
                }
                (in_rows, rows) = (false, 0);
            }
            None if line.starts_with('[') && !in_rows => (in_rows, rows) = (true, 0),
            None if line == "done-proc" || line == "status 0" || line.starts_with("env ") => {}
            None => {
                rows += 1;
                parts.push(without_line(line));
            }
        }
    }
    parts.join(" ; ")
}

/// What an expression is: its type and value, or the error.
fn expression_answer(lines: &[String]) -> String {
    if let Some(message) = lines.iter().find(|line| line.starts_with("Msg ")) {
        return without_line(message);
    }
    let sql_type = lines.first().and_then(|line| line.strip_prefix('[')).and_then(|line| line.strip_suffix(']'));
    let told: Vec<&String> = lines.iter().skip(2).filter(|line| *line != "done 1").collect();
    match (sql_type, lines.get(1)) {
        (Some(sql_type), Some(value)) if told.is_empty() => format!("{sql_type}: {value}"),
        _ => lines.join(" ; "),
    }
}

fn answer(session: &mut Session, asked: &str) -> String {
    if is_batch(asked) { batch_answer(&said(session, asked)) } else { expression_answer(&said(session, &format!("SELECT {asked}"))) }
}

fn run_file(path: &Path) -> (usize, Vec<String>) {
    let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
    let (engine, _folder) = fresh_engine(&format!("short-{name}"));
    let mut session = engine.internal_session();
    let text = std::fs::read_to_string(path).expect("readable");
    let update = std::env::var_os("THAWDB_UPDATE").is_some();
    let (mut rewritten, mut wrong, mut records) = (String::new(), Vec::new(), 0);
    for line in text.lines() {
        let mut kept = line.to_owned();
        if let Some(batch) = line.strip_prefix("! ") {
            let lines = said(&mut session, batch);
            if lines.iter().any(|line| line.starts_with("Msg ")) {
                wrong.push(format!("{batch}\n  must not fail: {}", lines.join(" ; ")));
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            let (asked, expected) =
                line.split_once(ARROW).map_or((line.trim_end_matches(" =>"), ""), |(asked, expected)| (asked, expected));
            records += 1;
            let found = answer(&mut session, asked.trim_end()).trim_end().to_owned();
            if found != expected {
                wrong.push(format!("{asked}\n  expected {expected}\n  found    {found}"));
            }
            kept = format!("{asked}{ARROW}{found}");
        }
        rewritten.push_str(kept.trim_end());
        rewritten.push('\n');
    }
    if update {
        std::fs::write(path, rewritten).expect("writable");
    }
    (records, wrong)
}

#[test]
fn short_records() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql/short");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let chosen = std::env::var("THAWDB_FILE").ok();
    let (mut records, mut wrong) = (0, Vec::new());
    for file in files.iter().filter(|f| chosen.as_ref().is_none_or(|c| f.to_string_lossy().contains(c.as_str()))) {
        let (count, differing) = run_file(file);
        records += count;
        wrong.extend(differing.into_iter().map(|text| format!("{}: {text}", file.file_name().expect("a file").to_string_lossy())));
    }
    assert!(wrong.is_empty(), "{} of {records} records differ:\n{}", wrong.len(), wrong.join("\n"));
}
