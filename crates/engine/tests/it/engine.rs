//! The engine's doors: login, cancellation, remote calls, transactions of the client's manager.

use crate::asked::{is_done, value};
use crate::folders::folder as own_folder;
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
    let copy = own_folder("stopped-copy");
    std::fs::create_dir_all(&copy).expect("made");
    for entry in std::fs::read_dir(&folder).expect("readable").flatten().filter(|e| e.path().is_file()) {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
    }
    drop(session);
    drop(engine);
    let engine = Engine::open(config(&copy)).expect("opens after a stop");
    let mut session = engine.internal_session();
    said(&mut session, "USE shop");
    assert_eq!(said(&mut session, "SELECT v FROM t ORDER BY id"), ["[v int]", "1", "2", "done 2"]);
    assert_eq!(said(&mut session, "SELECT OBJECT_ID('never') AS id"), ["[id int]", "NULL", "done 1"]);
}

/// A copy's master names the original's databases, and all have the same stamps: what is opened, changed and dropped there is
/// what lies in the copy, wherever below the data folder.
#[test]
fn a_copied_data_folder_is_one_of_its_own() {
    let (engine, folder) = fresh_engine("original");
    std::fs::create_dir_all(folder.join("far/log")).expect("a folder");
    let mut session = engine.internal_session();
    is_done(&mut session, "CREATE DATABASE near");
    let at = |name: &str| folder.join(name).display().to_string();
    let (rows, more, log) = (at("far/far.mdf"), at("more.ndf"), at("far/log/far.ldf"));
    is_done(
        &mut session,
        &format!(
            "CREATE DATABASE far ON PRIMARY (NAME = a, FILENAME = '{rows}'), (NAME = b, FILENAME = '{more}') LOG ON (NAME = l, FILENAME = '{log}')"
        ),
    );
    for name in ["near", "far"] {
        is_done(&mut session, &format!("USE {name} CREATE TABLE t (v int) INSERT t VALUES (1)"));
    }
    drop(session);
    engine.close().expect("closes");
    drop(engine);
    let original = files(&folder);
    let copy = own_folder("original-copy");
    std::fs::create_dir_all(copy.join("far/log")).expect("a new folder");
    original.iter().for_each(|(path, bytes)| std::fs::write(copy.join(path), bytes).expect("a copy"));

    let copied = Engine::open(config(&copy)).expect("the copy opens");
    let mut session = copied.internal_session();
    for name in ["near", "far"] {
        is_done(&mut session, &format!("USE {name} INSERT t VALUES (2) ALTER DATABASE {name} SET RECOVERY FULL"));
        // A change of one file records where all are.
        is_done(
            &mut session,
            &format!("USE master ALTER DATABASE {name} MODIFY FILE (NAME = {}, SIZE = 16MB)", if name == "far" { "a" } else { "near" }),
        );
    }
    is_done(&mut session, "CREATE LOGIN late WITH PASSWORD = 'Wonder-Land9'");
    let elsewhere = format!("SELECT COUNT(*) FROM sys.master_files WHERE physical_name NOT LIKE '{}/%'", copy.display());
    assert_eq!(value(&mut session, &elsewhere), "0");
    drop(session);
    copied.close().expect("closes");
    drop(copied);
    assert!(files(&folder) == original, "the original changed");

    let moved = own_folder("original-moved");
    std::fs::rename(&copy, &moved).expect("moved");
    let copied = Engine::open(config(&moved)).expect("opens again");
    let mut session = copied.internal_session();
    assert_eq!(value(&mut session, "SELECT COUNT(*) FROM sys.sql_logins WHERE name = 'late'"), "1");
    for name in ["near", "far"] {
        assert_eq!(value(&mut session, &format!("SELECT SUM(v) FROM {name}.dbo.t")), "3");
        is_done(&mut session, &format!("DROP DATABASE {name}"));
    }
    drop(session);
    copied.close().expect("closes");
    drop(copied);
    assert!(files(&folder) == original, "the original changed");
    let left = files(&moved);
    assert!(!left.keys().any(|path| path.contains("far") || path.contains("near") || path.contains("more")), "{:?}", left.keys());
}

/// Of a copy without one of its databases the original's is not opened in its place.
#[test]
fn what_was_not_copied_is_not_found() {
    let (engine, folder) = fresh_engine("half-copied");
    is_done(&mut engine.internal_session(), "CREATE DATABASE shop");
    engine.close().expect("closes");
    drop(engine);
    for missing in ["shop.mdf", "shop_log.ldf"] {
        let original = files(&folder);
        let copy = own_folder("half-copy");
        std::fs::create_dir_all(&copy).expect("a new folder");
        original
            .iter()
            .filter(|(path, _)| *path != missing)
            .for_each(|(path, bytes)| std::fs::write(copy.join(path), bytes).expect("a copy"));
        assert_eq!(files(&copy).len() + 1, original.len(), "{missing}");
        let copied = Engine::open(config(&copy)).expect("the copy opens");
        assert_eq!(value(&mut copied.internal_session(), "SELECT state_desc FROM sys.databases WHERE name = 'shop'"), "RECOVERY_PENDING");
        copied.close().expect("closes");
        drop(copied);
        assert!(files(&folder) == original, "the original changed");
    }
}

/// What a folder and those below hold, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("a name");
        if entry.path().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            found.insert(name, std::fs::read(entry.path()).expect("a file"));
        }
    }
    found
}
