//! The engine's doors: login, cancellation, remote calls, transactions of the client's manager.

use crate::asked::{is_done, value};
use crate::script::{config, fresh_engine, said};
use std::collections::BTreeMap;
use std::path::Path;
use thawdb_engine::{Engine, LoginRequest, Secret};

fn request(user: &str, password: &str, database: &str) -> LoginRequest {
    LoginRequest { user: user.into(), password: Secret::new(password), database: database.into(), ..LoginRequest::default() }
}

#[test]
fn login_checks_name_password_and_database() {
    let (engine, _) = fresh_engine("login");
    let number = |user: &str, password: &str, database: &str| match engine.login(request(user, password, database)) {
        Ok(_) => 0,
        Err(error) => error.number,
    };
    assert_eq!(number("sa", "Right-1234", ""), 0);
    assert_eq!(number("SA", "Right-1234", "tempdb"), 0);
    assert_eq!(number("sa", "wrong", ""), 18456);
    assert_eq!(number("sa", "", ""), 18456);
    assert_eq!(number("nobody", "Right-1234", ""), 18456);
    assert_eq!(number("sa", "Right-1234", "nowhere"), 4060);
    let (session, info) = engine.login(request("sa", "Right-1234", "")).expect("right");
    assert_eq!(info.session_id, session.id());
    assert!(session.id() >= 51);
    assert_eq!(info.messages.iter().map(|m| m.number).collect::<Vec<_>>(), [5701, 5703]);
}

#[test]
fn first_query() {
    let (engine, _) = fresh_engine("first");
    let mut session = engine.internal_session();
    assert_eq!(said(&mut session, "SELECT 1 AS a, N'x' AS b"), ["[a int, b nvarchar(1)]", "1 | x", "done 1"]);
}

#[test]
fn everything_committed_is_there_after_reopening() {
    let (engine, folder) = fresh_engine("reopen");
    let mut session = engine.internal_session();
    let setup = "CREATE DATABASE shop; USE shop; CREATE TABLE t (id int IDENTITY PRIMARY KEY, v nvarchar(20) CONSTRAINT df DEFAULT N'x');";
    assert!(said(&mut session, setup).iter().all(|line| !line.starts_with("Msg")));
    said(&mut session, "USE shop; INSERT t DEFAULT VALUES; INSERT t (v) VALUES (N'two'); CREATE INDEX ix ON t (v)");
    said(&mut session, "BEGIN TRAN; INSERT t (v) VALUES (N'lost')");
    drop(session);
    engine.close().expect("closes");
    drop(engine);
    let engine = thawdb_engine::Engine::open(crate::script::config(&folder)).expect("opens again");
    let mut session = engine.internal_session();
    let found =
        said(&mut session, "USE shop; SELECT * FROM t ORDER BY id; INSERT t (v) VALUES (N'new'); SELECT id FROM t WHERE v = N'new'");
    let rows: Vec<_> = found.iter().filter(|line| !line.starts_with("env") && !line.starts_with("info")).collect();
    assert_eq!(rows, ["[id int, v nvarchar(20)]", "1 | x", "2 | two", "done 2", "done 1", "[id int]", "4", "done 1"]);
    assert_eq!(said(&mut session, "SELECT name FROM sys.databases WHERE database_id > 4"), ["[name nvarchar(128)]", "shop", "done 1"]);
}

#[test]
fn what_was_committed_outlives_an_instance_that_just_stops() {
    let (engine, folder) = fresh_engine("stopped");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE DATABASE shop");
    said(&mut session, "USE shop CREATE TABLE t (id int IDENTITY PRIMARY KEY, v int)");
    said(&mut session, "INSERT t (v) VALUES (1), (2)");
    said(&mut session, "BEGIN TRAN INSERT t (v) VALUES (3) CREATE TABLE never (a int)");
    // Nothing is closed: what a kill leaves. The files are locked by the old instance, so copies are opened.
    let copy = folder.with_extension("copy");
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir_all(&copy).expect("made");
    for entry in std::fs::read_dir(&folder).expect("readable").flatten().filter(|e| e.path().is_file()) {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
    }
    drop(session);
    drop(engine);
    // The record in master names the old folder: the copy replaces it.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::rename(&copy, &folder).expect("renamed");
    let engine = thawdb_engine::Engine::open(crate::script::config(&folder)).expect("opens after a stop");
    let mut session = engine.internal_session();
    said(&mut session, "USE shop");
    assert_eq!(said(&mut session, "SELECT v FROM t ORDER BY id"), ["[v int]", "1", "2", "done 2"]);
    assert_eq!(said(&mut session, "SELECT OBJECT_ID('never') AS id"), ["[id int]", "NULL", "done 1"]);
}

/// A copied database has the same stamp as the original, which is still there: its log is the one beside it.
#[test]
fn a_copied_master_has_its_own_log() {
    let (engine, folder) = fresh_engine("original");
    is_done(&mut engine.internal_session(), "CREATE LOGIN early WITH PASSWORD = 'Wonder-Land9'");
    engine.close().expect("closes");
    drop(engine);
    let files = |folder: &Path| -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
        entries.map(|entry| (entry.file_name().into_string().expect("a name"), std::fs::read(entry.path()).expect("a file"))).collect()
    };
    let (original, copy) = (files(&folder), folder.with_extension("copy"));
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir(&copy).expect("a new folder");
    original.iter().for_each(|(name, bytes)| std::fs::write(copy.join(name), bytes).expect("a copy"));
    let engine = Engine::open(config(&copy)).expect("the copy opens");
    is_done(&mut engine.internal_session(), "CREATE LOGIN late WITH PASSWORD = 'Wonder-Land9'");
    engine.close().expect("closes");
    drop(engine);
    let after = files(&folder);
    for name in ["master.mdf", "mastlog.ldf"] {
        assert!(original[name] == after[name], "{name} of the original changed");
    }
    let engine = Engine::open(config(&copy)).expect("opens again");
    let logins = "SELECT COUNT(*) FROM sys.sql_logins WHERE name IN ('early', 'late')";
    assert_eq!(value(&mut engine.internal_session(), logins), "2");
}
