//! The language itself: loops, procedures of point statements, and the way of a point query's text to its plan.
//!
//! | figure | what one of it is | rival |
//! |---|---|---|
//! | loop | a turn of `WHILE @i < n SET @i += 1` | the same loop in PL/pgSQL |
//! | ten reads | a call of a procedure of ten SELECTs of one row by key each | the same function in PL/pgSQL |
//! | five and five | a call of a procedure of five such SELECTs and five UPDATEs of one row | the same, one transaction for all calls |
//! | text | a point query sent as text, its parse tree and plan kept from before | |
//! | ten-way join | planning a join of ten tables anew, from text to an empty answer | |
//!
//! Everything runs in one session of this process; the rival's loop runs within one statement of its own, so that neither
//! has a wire in it. Rounds of both take turns. The sums that the procedures return must be the same.

use crate::args::BenchArguments;
use crate::cmd::Failure;
use crate::cmd::bench::oltp::local::Counting;
use crate::cmd::bench::oltp::measured::process_cpu_seconds;
use crate::cmd::bench::oltp::workload;
use crate::cmd::bench::postgres::Cluster;
use crate::cmd::bench::{DATABASE, median, open};
use crate::cmd::figures::{Figures, Stopwatch};
use crate::embed::Session;
use std::path::Path;

const AREA: &str = "language";
/// Turns of the loop, calls of a procedure, queries as text: each a second or two.
const TURNS: u64 = 2_000_000;
const CALLS: u64 = 20_000;
const TEXTS: u64 = 100_000;
/// Plans of the join of ten tables, of which the median counts.
const PLANS: usize = 21;
/// Accounts the procedures read: all in memory.
const ACCOUNTS: u64 = 100_000;

const OWN_SETUP: [&str; 2] = [
    "CREATE PROCEDURE dbo.ten_reads @aid int, @sum bigint OUTPUT AS BEGIN SET NOCOUNT ON DECLARE @b int
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 1 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 2 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 3 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 4 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 5 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 6 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 7 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 8 SET @sum += @b
       SELECT @b = bid FROM dbo.pgbench_accounts WHERE aid = @aid + 9 SET @sum += @b END",
    "CREATE PROCEDURE dbo.five_and_five @aid int, @sum bigint OUTPUT AS BEGIN SET NOCOUNT ON DECLARE @b int
       SELECT @b = abalance FROM dbo.pgbench_accounts WHERE aid = @aid SET @sum += @b
       UPDATE dbo.pgbench_accounts SET abalance = abalance + 1 WHERE aid = @aid
       SELECT @b = abalance FROM dbo.pgbench_accounts WHERE aid = @aid + 1 SET @sum += @b
       UPDATE dbo.pgbench_accounts SET abalance = abalance + 1 WHERE aid = @aid + 1
       SELECT @b = abalance FROM dbo.pgbench_accounts WHERE aid = @aid + 2 SET @sum += @b
       UPDATE dbo.pgbench_accounts SET abalance = abalance + 1 WHERE aid = @aid + 2
       SELECT @b = abalance FROM dbo.pgbench_accounts WHERE aid = @aid + 3 SET @sum += @b
       UPDATE dbo.pgbench_accounts SET abalance = abalance + 1 WHERE aid = @aid + 3
       SELECT @b = abalance FROM dbo.pgbench_accounts WHERE aid = @aid + 4 SET @sum += @b
       UPDATE dbo.pgbench_accounts SET abalance = abalance + 1 WHERE aid = @aid + 4 END",
];

/// Seconds and processor seconds of some work.
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
}

/// Measures.
pub fn measure(arguments: &BenchArguments, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    let instance = open(arguments, &folder.join("thawdb"))?;
    let mut session = instance.session();
    workload::create(&mut session, DATABASE, 1)?;
    OWN_SETUP.iter().try_for_each(|text| session.execute(text).map(|_| ()))?;
    let rival = arguments.postgres.then(|| rival(&folder.join("postgres"))).transpose()?;
    let rival = rival.as_ref();
    let own = format!("DECLARE @i int = 0 WHILE @i < {TURNS} SET @i += 1 SELECT CONVERT(bigint, @i)");
    let theirs = format!("i int := 0; BEGIN WHILE i < {TURNS} LOOP i := i + 1; END LOOP; PERFORM set_config('t.sum', i::text, false);");
    pair(arguments, &mut session, rival, ("loop", TURNS), (&own, &theirs), &mut figures)?;
    for (name, what) in [("ten_reads", "ten reads"), ("five_and_five", "five and five")] {
        let (own, theirs) = calls(name);
        pair(arguments, &mut session, rival, (what, CALLS), (&own, &theirs), &mut figures)?;
    }
    texts(&mut session, &mut figures)?;
    ten_way_join(&mut session, &mut figures)?;
    drop(session);
    instance.close()?;
    Ok(figures)
}

/// The loops that call a procedure: keys spread over the table by a multiplicative step.
fn calls(name: &str) -> (String, String) {
    let last = ACCOUNTS - 10;
    let own = format!(
        "SET NOCOUNT ON DECLARE @i int = 0, @aid int, @sum bigint = 0 BEGIN TRANSACTION \
         WHILE @i < {CALLS} BEGIN SET @aid = 1 + @i * 7919 % {last} EXEC dbo.{name} @aid, @sum OUTPUT SET @i += 1 END \
         COMMIT SELECT @sum"
    );
    let theirs = format!(
        "i int := 0; s bigint := 0; BEGIN WHILE i < {CALLS} LOOP s := s + {name}(1 + i * 7919 % {last}); i := i + 1; END LOOP; \
         PERFORM set_config('t.sum', s::text, false);"
    );
    (own, theirs)
}

fn rival(folder: &Path) -> Result<Cluster, Failure> {
    let cluster = Cluster::start(folder)?;
    cluster.query("CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))", None)?;
    let rows = format!("INSERT INTO pgbench_accounts SELECT n, 1, 0, '' FROM generate_series(1, {ACCOUNTS}) n");
    cluster.query(&rows, None)?;
    for (name, column, updates) in [("ten_reads", "bid", false), ("five_and_five", "abalance", true)] {
        let one = |at: u64| {
            let update = format!("UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = k + {at};");
            let update = if updates { update.as_str() } else { "" };
            format!("SELECT {column} INTO b FROM pgbench_accounts WHERE aid = k + {at}; s := s + b; {update}\n")
        };
        let body: String = (0..if updates { 5 } else { 10 }).map(one).collect();
        let head = format!("CREATE FUNCTION {name}(k int) RETURNS bigint LANGUAGE plpgsql AS");
        cluster.query(&format!("{head} $$ DECLARE b int; s bigint := 0; BEGIN {body} RETURN s; END $$"), None)?;
    }
    cluster.query("VACUUM (FREEZE, ANALYZE)", None)?;
    Ok(cluster)
}

/// Runs a piece of work of ours and the rival's in turn, after one turn of each that is not counted.
fn pair(
    arguments: &BenchArguments,
    session: &mut Session,
    rival: Option<&Cluster>,
    (what, count): (&str, u64),
    (own, theirs): (&str, &str),
    figures: &mut Figures,
) -> Result<(), Failure> {
    let block = format!("DO $do$ DECLARE {theirs} END $do$");
    let (mut ours, mut rivals) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        let (cost, answer) = run(session, own)?;
        let other = match rival {
            Some(cluster) => {
                let timed = cluster.timed("SET max_parallel_workers_per_gather = 0", &block)?;
                Some(Cost { seconds: timed.seconds, cpu_seconds: timed.cpu_seconds })
            }
            None => None,
        };
        if round == 0 {
            check(rival, theirs, what, answer)?;
            continue;
        }
        ours.push(cost);
        rivals.extend(other);
    }
    let rate = |costs: &[Cost]| count as f64 / median(costs.iter().map(|cost| cost.seconds).collect());
    let cpu_us = |costs: &[Cost]| median(costs.iter().map(|cost| cost.cpu_seconds).collect()) * 1e6 / count as f64;
    let note = format!("CPU {:.3} us each", cpu_us(&ours));
    println!("{what}: {:.0}/s, {note}", rate(&ours));
    figures.note(AREA, what, rate(&ours), "/s", note);
    if !rivals.is_empty() {
        let note = format!("CPU {:.3} us each", cpu_us(&rivals));
        figures.note(AREA, format!("{what}, PL/pgSQL"), rate(&rivals), "/s", note);
        let (ratio, cpu) = (rate(&ours) / rate(&rivals), cpu_us(&ours) / cpu_us(&rivals).max(1e-9));
        println!("{what}, PL/pgSQL: {:.0}/s; ratio {ratio:.2} x the rate, {cpu:.2} x the CPU", rate(&rivals));
        figures.note(AREA, format!("{what}, ratio"), ratio, "x", format!("CPU {cpu:.2} x"));
    }
    Ok(())
}

/// The rival's answer to the same work, once: the sums must agree.
fn check(rival: Option<&Cluster>, theirs: &str, what: &str, own: i64) -> Result<(), Failure> {
    let Some(cluster) = rival.filter(|_| what != "five and five") else { return Ok(()) };
    let answer = cluster.query(&format!("DO $do$ DECLARE {theirs} END $do$; SELECT current_setting('t.sum')"), None)?;
    if answer.trim() == own.to_string() { Ok(()) } else { Err(Failure(format!("{what}: {own} here, {} there", answer.trim()))) }
}

/// Runs a batch and takes its one number.
fn run(session: &mut Session, text: &str) -> Result<(Cost, i64), Failure> {
    let before = process_cpu_seconds(std::process::id())?;
    let watch = Stopwatch::start();
    let result = session.execute(text)?;
    let seconds = watch.seconds();
    let answer = result.scalar().and_then(|value| value.as_i64());
    let answer = answer.ok_or_else(|| Failure("the benchmark's batch gave no number".into()))?;
    Ok((Cost { seconds, cpu_seconds: process_cpu_seconds(std::process::id())? - before }, answer))
}

/// A join of ten tables, nine of which meet the first and each the one before, planned anew each time; the tables are empty.
fn ten_way_join(session: &mut Session, figures: &mut Figures) -> Result<(), Failure> {
    let tables: Vec<String> = (0..10).map(|n| format!("dbo.ten_{n}")).collect();
    for table in &tables {
        session
            .execute(&format!("CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, one int NOT NULL, two int NOT NULL, v int NOT NULL)"))?;
        session.execute(&format!("CREATE INDEX one ON {table} (one); CREATE INDEX two ON {table} (two)"))?;
    }
    let from: Vec<String> = tables.iter().enumerate().map(|(n, table)| format!("{table} t{n}")).collect();
    let links: Vec<String> = (1..10).map(|n| format!("t{n}.one = t{}.id AND t{n}.two = t0.v", n - 1)).collect();
    let query = format!("SELECT COUNT(*) FROM {} WHERE {} OPTION (RECOMPILE)", from.join(", "), links.join(" AND "));
    let mut seconds = Vec::new();
    for _ in 0..PLANS {
        let watch = Stopwatch::start();
        session.execute(&query)?;
        seconds.push(watch.seconds());
    }
    let planned = median(seconds) * 1e3;
    println!("ten-way join, planned anew: {planned:.2} ms");
    figures.add(AREA, "ten-way join, planned anew", planned, "ms");
    Ok(())
}

/// Point queries as text: one text again and again, and texts that differ in their literal.
fn texts(session: &mut Session, figures: &mut Figures) -> Result<(), Failure> {
    let query = |key: u64| format!("SELECT abalance FROM dbo.pgbench_accounts WHERE aid = {key}");
    for (what, distinct) in [("text, the same each time", 1), ("text, another literal each time", TEXTS)] {
        let texts: Vec<String> = (0..TEXTS).map(|n| query(1 + n % distinct * 7919 % ACCOUNTS)).collect();
        // As the first time: parsed, planned, and kept from then on.
        session.execute(&texts[0])?;
        let mut sink = Counting::default();
        let before = process_cpu_seconds(std::process::id())?;
        let watch = Stopwatch::start();
        for text in &texts {
            session.execute_into(text, &[], &mut sink);
        }
        let seconds = watch.seconds();
        if let Some(error) = sink.error {
            return Err(error.into());
        }
        if sink.rows as u64 != TEXTS {
            return Err(Failure(format!("{what}: {} rows of {TEXTS}", sink.rows)));
        }
        let cpu_us = (process_cpu_seconds(std::process::id())? - before) * 1e6 / TEXTS as f64;
        let note = format!("CPU {cpu_us:.2} us each, from text to row");
        println!("{what}: {:.0}/s, {note}", TEXTS as f64 / seconds);
        figures.note(AREA, what, TEXTS as f64 / seconds, "/s", note);
    }
    Ok(())
}
