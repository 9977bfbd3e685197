//! Index operations stopped again and again by whatever stops them: nothing is lost, nothing falls back, and at the end
//! the index agrees with the table and with one built in one go.

use crate::asked::value;
use crate::folders::folder;
use crate::script::{config, fresh_engine, said};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use thawdb_device::Clock;
use thawdb_engine::{Engine, Session};

const CREATE: &str = "CREATE INDEX i ON t (a) INCLUDE (b) WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1)";

const KEPT: &str = "SELECT COUNT(*) FROM sys.thawdb_index_operations WHERE is_kept_in_memory = 1";

fn percent(session: &mut Session) -> f64 {
    value(session, "SELECT percent_complete FROM sys.index_resumable_operations").parse().unwrap_or(0.0)
}

/// A table of `2^doublings` rows whose keys come in no order.
fn scattered(session: &mut Session, doublings: u32) {
    said(session, "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a int NOT NULL, b varchar(40)) INSERT t VALUES (0, 0, 'r')");
    for turn in 0..doublings {
        let step = 1 << turn;
        said(session, &format!("INSERT t SELECT id + {step}, (id + {step}) * 7919 % 100003, b + 'x' FROM t"));
    }
}

/// The finished index has what the table has and what an offline build makes of it.
fn is_right(session: &mut Session) {
    let lines = said(session, "DBCC CHECKTABLE (t) WITH NO_INFOMSGS");
    assert!(lines.iter().all(|line| line.starts_with("done")), "{lines:?}");
    assert_eq!(value(session, "SELECT COUNT(*) FROM sys.index_resumable_operations"), "0");
    said(session, "CREATE INDEX offline ON t (a) INCLUDE (b)");
    for other in ["0", "offline"] {
        let (one, two) = ("SELECT id, a, b FROM t WITH (INDEX (i))".to_owned(), format!("SELECT id, a, b FROM t WITH (INDEX ({other}))"));
        let both = format!("SELECT COUNT(*) FROM (({one} EXCEPT {two}) UNION ALL ({two} EXCEPT {one})) AS d");
        assert_eq!(value(session, &both), "0", "{other}");
    }
    said(session, "DROP INDEX offline ON t");
}

/// Works on the operation until it is done; `stop` is what another does while a session, whose number it gets, works.
/// How often it was stopped, and how often it was begun anew to be stopped often enough.
fn stopped_by(engine: &Arc<Engine>, stops_least: usize, said_by_stop: &str, stop: impl Fn(&mut Session, i16) + Sync) -> usize {
    let mut watcher = engine.internal_session();
    let (mut stops, mut before) = (0, 0.0);
    let mut next = CREATE.to_owned();
    loop {
        let mut worker = engine.internal_session();
        let (id, statement, ended) = (worker.id(), next.clone(), AtomicBool::new(false));
        let lines = std::thread::scope(|scope| {
            let stopper = scope.spawn(|| {
                let mut session = engine.internal_session();
                while !ended.load(Ordering::Acquire) {
                    stop(&mut session, id);
                    std::thread::yield_now();
                }
            });
            let lines = if stops < stops_least { said(&mut worker, &statement) } else { Vec::new() };
            ended.store(true, Ordering::Release);
            stopper.join().expect("no panic");
            lines
        });
        if stops >= stops_least {
            let lines = said(&mut watcher, &next);
            assert!(lines.is_empty(), "{lines:?}");
            return stops;
        }
        let is_there = value(&mut watcher, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1";
        if is_there {
            assert!(lines.iter().any(|line| line.starts_with(said_by_stop)), "{lines:?}");
            stops += 1;
            let now = percent(&mut watcher);
            assert!(now >= before, "{before} to {now} after {stops} stops");
            before = now;
            assert_eq!(value(&mut watcher, KEPT), "1", "it need not be opened again");
            next = "ALTER INDEX i ON t RESUME".to_owned();
            continue;
        }
        if value(&mut watcher, "SELECT COUNT(*) FROM sys.indexes WHERE name = 'i'") == "1" {
            // It was done before it was stopped often enough.
            said(&mut watcher, "DROP INDEX i ON t");
        }
        before = 0.0;
        next = CREATE.to_owned();
    }
}

#[test]
fn two_hundred_pauses() {
    let (engine, _) = fresh_engine("stops-pause");
    let mut a = engine.internal_session();
    scattered(&mut a, 13);
    let stops = stopped_by(&engine, 200, "Msg 1219", |session, _| {
        said(session, "ALTER INDEX i ON t PAUSE");
    });
    assert!(stops >= 200);
    is_right(&mut a);
    let lines =
        value(&mut a, "SELECT COUNT(*) FROM sys.thawdb_error_log WHERE Text LIKE 'The resumable index operation for index ''i''%paused.'");
    assert!(lines.parse::<usize>().expect("a number") >= 200, "{lines}");
    let lines = said(&mut a, "EXEC sp_readerrorlog 0, 1, N'ALTER INDEX ''PAUSE'''");
    assert!(lines.len() > 200, "{}", lines.len());
}

#[test]
fn fourteen_kills_and_fourteen_attentions() {
    let (engine, _) = fresh_engine("stops-kill");
    let mut a = engine.internal_session();
    scattered(&mut a, 15);
    let running = "SELECT COUNT(*) FROM sys.dm_exec_requests WHERE is_resumable = 1";
    let stops = stopped_by(&engine, 14, "Msg 596", |session, worker| {
        if value(session, running) == "1" {
            said(session, &format!("KILL {worker}"));
        }
    });
    assert_eq!(stops, 14);
    is_right(&mut a);
    said(&mut a, "DROP INDEX i ON t");
    // An attention leaves the session as it was.
    let mut worker = engine.internal_session();
    let (mut stops, mut before) = (0, 0.0);
    let mut next = CREATE;
    while stops < 14 {
        let (cancel, ended) = (worker.cancel_token(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let mut watcher = engine.internal_session();
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Ordering::Acquire) {
                    if value(&mut watcher, running) == "1" {
                        cancel.cancel();
                    }
                }
            });
            said(&mut worker, next);
            ended.store(true, Ordering::Release);
        });
        if value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1" {
            stops += 1;
            let now = percent(&mut a);
            assert!(now >= before, "{before} to {now}");
            (before, next) = (now, "ALTER INDEX i ON t RESUME");
        } else {
            said(&mut a, "DROP INDEX IF EXISTS i ON t");
            (before, next) = (0.0, CREATE);
        }
        assert_eq!(value(&mut worker, "SELECT 1"), "1");
    }
    said(&mut a, next);
    is_right(&mut a);
}

/// The system's clock, shifted as the test likes.
struct Shifted {
    base: Arc<dyn Clock>,
    by_ns: AtomicU64,
    /// What every look at it adds.
    each_ns: AtomicU64,
}

impl Clock for Shifted {
    fn monotonic_ns(&self) -> u64 {
        let by = self.by_ns.fetch_add(self.each_ns.load(Ordering::Relaxed), Ordering::Relaxed);
        self.base.monotonic_ns() + by
    }

    fn utc_ns(&self) -> i128 {
        self.base.utc_ns() + i128::from(self.by_ns.load(Ordering::Relaxed))
    }

    fn local_offset_minutes(&self) -> i32 {
        self.base.local_offset_minutes()
    }

    fn sleep(&self, duration: Duration) {
        self.base.sleep(duration);
    }
}

fn engine_with_clock(name: &str) -> (Arc<Engine>, Arc<Shifted>) {
    let mut config = config(&folder(name));
    let clock = Arc::new(Shifted { base: config.env.clock.clone(), by_ns: AtomicU64::new(0), each_ns: AtomicU64::new(0) });
    config.env.clock = clock.clone();
    (Engine::open(config).expect("opens"), clock)
}

#[test]
fn fourteen_times_its_duration_is_over() {
    let (engine, clock) = engine_with_clock("stops-duration");
    let mut a = engine.internal_session();
    scattered(&mut a, 15);
    let (mut stops, mut before) = (0, 0.0);
    while stops < 14 {
        let is_there = value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1";
        let statement = if is_there { "ALTER INDEX i ON t RESUME WITH (MAX_DURATION = 1 MINUTES)" } else { CREATE };
        if !is_there {
            said(&mut a, "DROP INDEX IF EXISTS i ON t");
            before = 0.0;
        }
        let statement = statement.replace("MAXDOP = 1)", "MAXDOP = 1, MAX_DURATION = 1)");
        // Some looks at the clock, and the minute is over.
        clock.each_ns.store(5_000_000_000, Ordering::Relaxed);
        let lines = said(&mut engine.internal_session(), &statement);
        clock.each_ns.store(0, Ordering::Relaxed);
        if value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1" {
            assert!(lines[0].starts_with("Msg 3643, Level 16") && lines[1].starts_with("Msg 596"), "{lines:?}");
            stops += 1;
            let now = percent(&mut a);
            assert!(now >= before, "{before} to {now}");
            before = now;
        }
    }
    said(&mut a, "ALTER INDEX i ON t RESUME");
    is_right(&mut a);
}

#[test]
fn an_operation_paused_for_too_long_is_aborted() {
    let (engine, clock) = engine_with_clock("stops-abort");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE TABLE t (id int PRIMARY KEY, a int) INSERT t VALUES (1, 1), (2, 1)");
    said(&mut a, "ALTER DATABASE SCOPED CONFIGURATION SET PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES = 90");
    said(&mut a, "CREATE UNIQUE INDEX i ON t (a) WITH (ONLINE = ON, RESUMABLE = ON)");
    let there = "SELECT COUNT(*) FROM sys.index_resumable_operations WHERE last_pause_time IS NOT NULL";
    let told =
        |session: &mut Session, text: &str| value(session, &format!("SELECT COUNT(*) FROM sys.thawdb_error_log WHERE Text LIKE '{text}'"));
    let minutes = |count: u64| clock.by_ns.fetch_add(count * 60_000_000_000, Ordering::Relaxed);
    engine.care();
    assert_eq!((value(&mut a, there), told(&mut a, "%hours%")), ("1".into(), "0".into()));
    minutes(61);
    engine.care();
    engine.care();
    assert_eq!(
        (value(&mut a, there), told(&mut a, "%''i'' on object ''t'' has been paused for ''1.0_'' hours.")),
        ("1".into(), "1".into())
    );
    minutes(30);
    engine.care();
    assert_eq!((value(&mut a, there), told(&mut a, "%is being auto aborted%more than 90 minutes%")), ("0".into(), "1".into()));
    assert!(said(&mut a, "ALTER TABLE t ADD c int").is_empty(), "the table is free again");
}

#[test]
fn shutdowns_pause_and_the_next_start_goes_on() {
    let (engine, folder) = fresh_engine("stops-shutdown");
    let mut a = engine.internal_session();
    scattered(&mut a, 15);
    drop(a);
    let (mut engine, mut before, mut stops) = (engine, 0.0, 0);
    for turn in 0..6 {
        let mut worker = engine.internal_session();
        let statement = if turn == 0 { CREATE } else { "ALTER INDEX i ON t RESUME" };
        let closing = engine.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut session = closing.internal_session();
                while value(&mut session, "SELECT COUNT(*) FROM sys.dm_exec_requests WHERE is_resumable = 1") == "0" {
                    if value(&mut session, "SELECT COUNT(*) FROM sys.indexes WHERE name = 'i'") == "1" {
                        break;
                    }
                }
                drop(session);
                closing.close().expect("closes");
            });
            said(&mut worker, statement);
        });
        drop(worker);
        drop(engine);
        engine = Engine::open(config(&folder)).expect("opens");
        let mut a = engine.internal_session();
        if value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "0" {
            break;
        }
        stops += 1;
        let state = value(&mut a, "SELECT state_desc FROM sys.index_resumable_operations WHERE last_pause_time IS NOT NULL");
        assert_eq!(state, "PAUSED");
        let now = percent(&mut a);
        assert!(now >= before, "{before} to {now}");
        before = now;
    }
    assert!(stops > 0);
    let mut a = engine.internal_session();
    if value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1" {
        said(&mut a, "ALTER INDEX i ON t RESUME");
    }
    is_right(&mut a);
}

/// As a server does that is told to stop while its clients' statements run.
#[test]
fn an_instance_about_to_stop_pauses_what_would_keep_it() {
    let (engine, _) = fresh_engine("stops-asked");
    let mut a = engine.internal_session();
    scattered(&mut a, 15);
    let stops = stopped_by(&engine, 5, "Msg 1219", |_, _| engine.pause_index_operations());
    assert!(stops >= 5);
    is_right(&mut a);
    engine.pause_index_operations();
    assert_eq!(value(&mut a, "SELECT 1"), "1");
}

#[test]
fn a_full_file_pauses_until_it_may_grow() {
    let (engine, _) = fresh_engine("stops-1105");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE DATABASE d");
    said(&mut a, "USE d");
    said(&mut a, "CREATE TABLE t (id int IDENTITY NOT NULL PRIMARY KEY, a int NOT NULL, b char(250)) INSERT t VALUES (1, NEWID())");
    for _ in 0..14 {
        said(&mut a, "INSERT t SELECT a * 7 % 1009 + 1, NEWID() FROM t");
    }
    let size = "SELECT size FROM sys.database_files WHERE type = 0";
    let mut pages: i64 = value(&mut a, size).parse().expect("a number");
    let limit = |pages: i64| format!("ALTER DATABASE d MODIFY FILE (NAME = d, MAXSIZE = {}KB, FILEGROWTH = 512KB)", pages * 8);
    said(&mut a, &limit(pages));
    let (mut stops, mut before) = (0, 0.0);
    let mut next = CREATE;
    loop {
        let lines = said(&mut a, next);
        if lines.is_empty() {
            break;
        }
        assert!(lines[0].starts_with("Msg 1105, Level 17") && lines[0].contains("object 'dbo.t'.'i' in"), "{lines:?}");
        assert_eq!(value(&mut a, "SELECT @@TRANCOUNT"), "0");
        if value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1" {
            next = "ALTER INDEX i ON t RESUME";
            let now = percent(&mut a);
            assert!(now >= before, "{before} to {now}");
            before = now;
        }
        stops += 1;
        pages += 64;
        said(&mut a, &limit(pages));
    }
    assert!(stops >= 10, "{stops}");
    said(&mut a, "ALTER DATABASE d MODIFY FILE (NAME = d, MAXSIZE = UNLIMITED)");
    is_right(&mut a);
}

#[test]
fn eight_writers_while_it_is_built_and_while_it_is_paused() {
    let (engine, _) = fresh_engine("stops-writers");
    let mut a = engine.internal_session();
    scattered(&mut a, 15);
    let written = AtomicU64::new(0);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..8_u64 {
            let (engine, ended, written) = (&engine, &ended, &written);
            scope.spawn(move || {
                let mut session = engine.internal_session();
                let mut dice = writer * 7919 + 1;
                while !ended.load(Ordering::Acquire) {
                    dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let id = (dice >> 33) % 32_768;
                    let sql = match dice >> 61 {
                        0..=3 => format!("UPDATE t SET a = a + 1 WHERE id = {id}"),
                        4 => format!("UPDATE t SET b = LEFT(b, 10) + 'w' WHERE id = {id}"),
                        5 => format!("DELETE t WHERE id = {id}"),
                        _ => format!("INSERT t VALUES ({}, {id}, 'new')", 100_000 + (dice >> 20) % 1_000_000_000),
                    };
                    said(&mut session, &sql);
                    written.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
        let more = |count: u64| {
            let until = written.load(Ordering::Acquire) + count;
            while written.load(Ordering::Acquire) < until {
                std::thread::yield_now();
            }
        };
        let mut next = CREATE;
        for _ in 0..3 {
            let mut worker = engine.internal_session();
            let done = std::thread::scope(|scope| {
                let build = scope.spawn(move || said(&mut worker, next));
                more(20);
                said(&mut a, "ALTER INDEX i ON t PAUSE");
                build.join().expect("no panic").is_empty()
            });
            more(100);
            if done {
                break;
            }
            next = "ALTER INDEX i ON t RESUME";
        }
        if value(&mut a, "SELECT COUNT(*) FROM sys.index_resumable_operations") == "1" {
            assert_eq!(said(&mut a, "ALTER INDEX i ON t RESUME"), Vec::<String>::new());
        }
        more(100);
        ended.store(true, Ordering::Release);
    });
    is_right(&mut a);
}
