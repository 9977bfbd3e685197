//! Cursors by call: opened, scrolled, changed through, prepared, refused.

use crate::script::{fresh_engine, said};
use crate::transcript::Transcript;
use thawdb_engine::{Parameter, Session};
use thawdb_types::{Scalar, SqlType};

const KEYSET: i32 = 1;
const DYNAMIC: i32 = 2;
const FAST_FORWARD: i32 = 16;
const READ_ONLY: i32 = 1;
const LOCKS: i32 = 2;
const OPTIMISTIC: i32 = 4;

fn called(session: &mut Session, procedure: &str, parameters: &[Parameter]) -> Vec<String> {
    let mut transcript = Transcript::default();
    session.execute_rpc(procedure, parameters, &mut transcript);
    assert!(transcript.last.is_some_and(|last| !last.more));
    transcript.lines
}

fn text(value: &str) -> Parameter {
    Parameter::input("", SqlType::NVARCHAR_MAX, Scalar::text(value))
}

fn int(value: i32) -> Parameter {
    Parameter::input("", SqlType::Int, Scalar::Int(value))
}

fn out(value: i32) -> Parameter {
    Parameter { output: true, ..int(value) }
}

/// Opens a cursor; what was said, and its handle.
fn open(session: &mut Session, query: &str, scroll: i32, concurrency: i32) -> (Vec<String>, i32) {
    let parameters = [out(0), text(query), out(scroll), out(concurrency), out(0)];
    let lines = called(session, "sp_cursoropen", &parameters);
    let handle = lines.iter().find_map(|line| line.strip_prefix("value 0  int: ")).and_then(|handle| handle.parse().ok());
    (lines, handle.unwrap_or(0))
}

/// The rows of a fetch.
fn fetched(session: &mut Session, handle: i32, kind: i32, row: i32, count: i32) -> Vec<String> {
    let lines = called(session, "sp_cursorfetch", &[int(handle), int(kind), int(row), int(count)]);
    assert_eq!(lines.last().map(String::as_str), Some("done-proc"), "{lines:?}");
    lines[1..].iter().take_while(|line| !line.starts_with("done")).cloned().collect()
}

fn with_rows(name: &str) -> (std::sync::Arc<thawdb_engine::Engine>, Session) {
    let (engine, _) = fresh_engine(name);
    let mut session = engine.internal_session();
    let made = said(
        &mut session,
        "CREATE TABLE t (id int PRIMARY KEY, name nvarchar(9), n int) \
         INSERT t VALUES (1, N'a', 10), (2, N'b', 20), (3, N'c', 30), (4, N'd', 40), (5, N'e', 50)",
    );
    assert!(made.iter().all(|line| !line.starts_with("Msg")), "{made:?}");
    (engine, session)
}

#[test]
fn an_open_tells_columns_options_and_count() {
    let (_engine, mut session) = with_rows("api-open");
    let (lines, handle) = open(&mut session, "SELECT id, name FROM t ORDER BY id", KEYSET, READ_ONLY);
    assert!(handle > 0);
    let columns = "[id int, name nvarchar(9), ROWSTAT int]";
    let wanted = [
        columns,
        "done-in-proc 0",
        "status 0",
        &format!("value 0  int: {handle}"),
        "value 2  int: 1",
        "value 3  int: 1",
        "value 4  int: 5",
        "done-proc",
    ];
    assert_eq!(lines, wanted);
    // What cannot be followed in its table is a snapshot; what is not counted says -1.
    let (grouped, _) = open(&mut session, "SELECT n, COUNT(*) AS c FROM t GROUP BY n", KEYSET, OPTIMISTIC);
    assert_eq!(grouped[4..7], ["value 2  int: 8", "value 3  int: 1", "value 4  int: 5"]);
    let (dynamic, _) = open(&mut session, "SELECT id FROM t", DYNAMIC, READ_ONLY);
    assert_eq!(dynamic[4..7], ["value 2  int: 2", "value 3  int: 1", "value 4  int: -1"]);
    assert_eq!(called(&mut session, "sp_cursorclose", &[int(handle)]), ["status 0", "done-proc"]);
    assert!(called(&mut session, "sp_cursorclose", &[int(handle)])[0].starts_with("Msg 16909,"));
    assert_eq!(called(&mut session, "sp_cursorclose", &[int(-1)]), ["status 0", "done-proc"]);
}

#[test]
fn fetches_move_a_buffer() {
    let (_engine, mut session) = with_rows("api-fetch");
    let (_, handle) = open(&mut session, "SELECT id FROM t ORDER BY id", KEYSET, READ_ONLY);
    for (kind, row, wanted) in [
        (2, 0, &["1 | 1", "2 | 1"][..]),
        (2, 0, &["3 | 1", "4 | 1"]),
        (2, 0, &["5 | 1"]),
        (2, 0, &[]),
        (8, 0, &["4 | 1", "5 | 1"]),
        (4, 0, &["2 | 1", "3 | 1"]),
        (0x10, 5, &["5 | 1"]),
        (0x20, -1, &["4 | 1", "5 | 1"]),
        (1, 0, &["1 | 1", "2 | 1"]),
    ] {
        assert_eq!(fetched(&mut session, handle, kind, row, 2), wanted, "{kind:x} {row}");
    }
    let info = called(&mut session, "sp_cursorfetch", &[int(handle), int(0x100), out(0), out(0)]);
    assert_eq!(info, ["status 0", "value 2  int: 1", "value 3  int: 5", "done-proc"]);
    let (_, forward) = open(&mut session, "SELECT id FROM t ORDER BY id", FAST_FORWARD | 0x4000, READ_ONLY);
    assert!(called(&mut session, "sp_cursorfetch", &[int(forward), int(4), int(0), int(2)])[0].starts_with("Msg 16911,"));
    let last = called(&mut session, "sp_cursorfetch", &[int(forward), int(2), int(0), int(9)]);
    assert!(last.contains(&"status 16".to_owned()), "AUTO_CLOSE: {last:?}");
    assert!(called(&mut session, "sp_cursorfetch", &[int(forward), int(2), int(0), int(9)])[0].starts_with("Msg 16909,"));
}

#[test]
fn rows_are_changed_through_it() {
    let (_engine, mut session) = with_rows("api-change");
    let (_, handle) = open(&mut session, "SELECT id, n FROM t ORDER BY id", KEYSET, LOCKS);
    assert_eq!(fetched(&mut session, handle, 1, 0, 3), ["1 | 10 | 1", "2 | 20 | 1", "3 | 30 | 1"]);
    let named = |name: &str, value| Parameter::input(name, SqlType::Int, Scalar::Int(value));
    assert_eq!(
        called(&mut session, "sp_cursor", &[int(handle), int(1), int(1), text("dbo.t"), named("@n", 99)]),
        ["done-in-proc", "status 0", "done-proc"]
    );
    assert_eq!(called(&mut session, "sp_cursor", &[int(handle), int(2), int(3), text("")]), ["done-in-proc", "status 0", "done-proc"]);
    assert_eq!(
        called(&mut session, "sp_cursor", &[int(handle), int(4), int(0), text("t"), named("@id", 9), named("@n", 90)]),
        ["done-in-proc", "status 0", "done-proc"]
    );
    assert!(called(&mut session, "sp_cursor", &[int(handle), int(1), int(4), text("t"), named("@n", 1)])[0].starts_with("Msg 16930,"));
    let twice = called(&mut session, "sp_cursor", &[int(handle), int(4), int(0), text("t"), named("@id", 9)]);
    assert!(twice[0].starts_with("Msg 2627,"), "{twice:?}");
    assert_eq!(twice.last().map(String::as_str), Some("done-proc error"));
    // A keyset shows values as they are now, and what is gone as missing.
    assert_eq!(fetched(&mut session, handle, 0x80, 0, 3), ["1 | 99 | 1", "2 | 20 | 1", "NULL | NULL | 2"]);
    assert_eq!(said(&mut session, "SELECT id, n FROM t WHERE id IN (1, 3, 9)")[1..3], ["1 | 99", "9 | 90"]);
    let (_, read_only) = open(&mut session, "SELECT COUNT(*) AS c FROM t", KEYSET, OPTIMISTIC);
    fetched(&mut session, read_only, 1, 0, 1);
    assert!(called(&mut session, "sp_cursor", &[int(read_only), int(2), int(1), text("")])[0].starts_with("Msg 16929,"));
}

#[test]
fn a_trigger_may_close_the_cursor_that_changes_rows() {
    let (_engine, mut session) = with_rows("api-closing");
    let (_, handle) = open(&mut session, "SELECT id, n FROM t", KEYSET, OPTIMISTIC);
    said(&mut session, &format!("CREATE TRIGGER g ON t AFTER UPDATE AS EXEC sp_cursorclose {handle}"));
    assert_eq!(fetched(&mut session, handle, 1, 0, 3).len(), 3);
    let n = Parameter::input("@n", SqlType::Int, Scalar::Int(99));
    let lines = called(&mut session, "sp_cursor", &[int(handle), int(1), int(0), text("t"), n]);
    assert!(lines.iter().any(|line| line.starts_with("Msg 16909,")), "{lines:?}");
    assert_eq!(said(&mut session, "SELECT COUNT(*) FROM t WHERE n = 99")[1], "1");
}

#[test]
fn prepared_once_and_opened_often() {
    let (_engine, mut session) = with_rows("api-prepared");
    let prepexec =
        [out(0), out(0), text("@n int"), text("SELECT id FROM t WHERE n >= @n ORDER BY id"), out(0x1001), out(1), out(0), int(40)];
    let lines = called(&mut session, "sp_cursorprepexec", &prepexec);
    let value = |lines: &[String], at: usize| -> i32 {
        let found = lines.iter().find_map(|line| line.strip_prefix(&format!("value {at}  int: ")).map(str::to_owned));
        found.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no value {at} in {lines:?}"))
    };
    let (prepared, cursor) = (value(&lines, 0), value(&lines, 1));
    assert_eq!(value(&lines, 6), 2);
    assert_eq!(fetched(&mut session, cursor, 2, 0, 9), ["4 | 1", "5 | 1"]);
    let again = called(&mut session, "sp_cursorexecute", &[int(prepared), out(0), out(1), out(1), out(0), int(50)]);
    let second = value(&again, 1);
    assert_eq!(fetched(&mut session, second, 2, 0, 9), ["5 | 1"]);
    assert_eq!(called(&mut session, "sp_cursorunprepare", &[int(prepared)]), ["status 0", "done-proc"]);
    assert!(called(&mut session, "sp_cursorunprepare", &[int(prepared)])[0].starts_with("Msg 8179,"));
    // The first cursor kept its parameters' values.
    assert_eq!(fetched(&mut session, cursor, 1, 0, 9), ["4 | 1", "5 | 1"]);
}

#[test]
fn what_is_no_cursor() {
    let (_engine, mut session) = with_rows("api-refused");
    let (wrong, handle) = open(&mut session, "SELECT nothing FROM t", KEYSET, READ_ONLY);
    assert_eq!(handle, 0);
    assert!(wrong[0].starts_with("Msg 207,") && wrong[1].starts_with("Msg 16945,"), "{wrong:?}");
    assert!(open(&mut session, "UPDATE t SET n = 1", KEYSET, READ_ONLY).0[0].starts_with("Msg 16937,"));
    assert!(open(&mut session, "SELECT id FROM t", 8, OPTIMISTIC).0[0].starts_with("Msg 16966,"));
    // With ALLOW_DIRECT it is run as it is.
    let (direct, handle) =
        open(&mut session, "UPDATE t SET n = 1 WHERE id = 1 SELECT n FROM t WHERE id = 1", FAST_FORWARD, READ_ONLY | 0x2000);
    assert_eq!((handle, direct[1].as_str(), direct[2].as_str()), (0, "[n int]", "1"), "{direct:?}");
}

#[test]
fn the_columns_of_a_text_are_told_without_running_it() {
    let (_engine, mut session) = with_rows("describe");
    said(&mut session, "CREATE PROC p @a int AS IF @a = 1 DELETE t SELECT name, n + @a AS more FROM t");
    let described = |session: &mut Session, text_of: &str, declared: &str| -> Vec<String> {
        let lines = called(session, "sp_describe_first_result_set", &[text(text_of), text(declared)]);
        let short = |line: &String| line.split(" | ").skip(1).take(5).collect::<Vec<_>>().join(" ");
        if lines[0].starts_with("Msg") { lines } else { lines[1..lines.len() - 3].iter().map(short).collect() }
    };
    assert_eq!(
        described(&mut session, "DECLARE @x int = 1 DELETE t SELECT id, name FROM t WHERE id = @p", "@p int"),
        ["1 id 0 56 int", "2 name 1 231 nvarchar(9)"]
    );
    assert_eq!(described(&mut session, "EXEC p 1", ""), ["1 name 1 231 nvarchar(9)", "2 more 1 56 int"]);
    assert_eq!(described(&mut session, "UPDATE t SET n = 2 OUTPUT deleted.n WHERE id = 1", ""), ["1 n 1 56 int"]);
    assert_eq!(described(&mut session, "DELETE t", ""), Vec::<String>::new());
    let wrong = described(&mut session, "SELECT nothing FROM t", "");
    assert!(wrong[0].starts_with("Msg 207,") && wrong[1].starts_with("Msg 11501,"), "{wrong:?}");
    assert_eq!(said(&mut session, "SELECT COUNT(*) FROM t WHERE n < 10")[1], "0", "nothing was run");
}
