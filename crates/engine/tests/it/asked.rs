//! What a test asks of a session: one value, one message, or that nothing went wrong.

use crate::script::said;
use thawdb_engine::Session;

/// The batch says just this.
pub fn check(session: &mut Session, sql: &str, expected: &[&str]) {
    assert_eq!(said(session, sql), expected, "{sql}");
}

/// The first line that the batch says.
pub fn first(session: &mut Session, sql: &str) -> String {
    said(session, sql).first().cloned().unwrap_or_default()
}

/// The number of the first message, 0 if there is none.
pub fn error(session: &mut Session, sql: &str) -> i32 {
    let lines = said(session, sql);
    let found = lines.iter().find_map(|line| line.strip_prefix("Msg "));
    found.and_then(|rest| rest.split(',').next()).map_or(0, |number| number.parse().expect("a number"))
}

/// The one value of the first row.
pub fn value(session: &mut Session, sql: &str) -> String {
    said(session, sql).get(1).cloned().unwrap_or_default()
}

/// The one value of the first row, which is a whole number.
pub fn number(session: &mut Session, sql: &str) -> i64 {
    let lines = said(session, sql);
    lines.get(1).and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{sql}: {lines:?}"))
}

/// The batch raises no error.
pub fn is_done(session: &mut Session, sql: &str) {
    let lines = said(session, sql);
    assert!(lines.iter().all(|line| !line.starts_with("Msg")), "{sql}: {lines:?}");
}

/// The check of the table with its indexes finds nothing.
pub fn is_sound(session: &mut Session, table: &str) {
    let lines = said(session, &format!("DBCC CHECKTABLE ({table}) WITH NO_INFOMSGS"));
    assert!(lines.iter().all(|line| line.starts_with("done")), "{table}: {lines:?}");
}
