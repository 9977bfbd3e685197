//! Random queries: the rewritten plan and the plan as written give the same rows.
//!
//! A seed makes one query over small tables full of NULLs and duplicates, where NOT IN, outer joins and empty groups
//! differ from each other most. Every failure names its statement.

use super::Db;

/// A generator that needs no crate: the numbers of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

const COLUMNS: [&str; 4] = ["k", "a", "b", "s"];

fn tables(name: &str) -> Db {
    let mut db = Db::new(name);
    db.table("r", &["k int", "a int null", "b smallint null", "s varchar(5) null"], &["pk_r:k unique", "ix_ra:a", "ix_rs:s,b desc"]);
    db.table("u", &["k int", "a int null", "b smallint null", "s varchar(5) null"], &["pk_u:k unique", "ix_ub:b include a"]);
    db.table("w", &["k int null", "a int null", "b smallint null", "s varchar(5) null"], &["heap"]);
    let mut random = Random(42);
    for table in ["r", "u", "w"] {
        let rows: Vec<String> = (0..14)
            .map(|k| {
                let a = random.pick(&["NULL", "0", "1", "2", "3", "7"]);
                let b = random.pick(&["NULL", "1", "2", "5"]);
                let s = random.pick(&["NULL", "'x'", "'Y'", "'y'", "'zz'"]);
                let k = if table == "w" { random.pick(&["NULL", "1", "2", "2", "9"]).to_string() } else { k.to_string() };
                format!("({k},{a},{b},{s})")
            })
            .collect();
        db.exec(&format!("INSERT INTO {table} VALUES {}", rows.join(",")));
    }
    db
}

fn number(random: &mut Random, alias: &str) -> String {
    match random.below(6) {
        0 => random.pick(&["0", "1", "2", "5", "NULL"]).to_string(),
        1 => format!("{alias}.a + {}", random.below(3)),
        2 => format!("ISNULL({alias}.a, {alias}.b)"),
        _ => format!("{alias}.{}", random.pick(&["k", "a", "b"])),
    }
}

fn predicate(random: &mut Random, aliases: &[&str], depth: u32) -> String {
    let alias = aliases[random.below(aliases.len() as u64) as usize];
    let other = aliases[random.below(aliases.len() as u64) as usize];
    let op = random.pick(&["=", "=", "=", "<>", "<", ">=", ">"]);
    if depth > 0 {
        let inner = format!("q{depth}");
        let table = random.pick(&["r", "u", "w"]);
        match random.below(14) {
            0 | 1 => return format!("EXISTS (SELECT 1 FROM {table} {inner} WHERE {})", correlated(random, &inner, alias, depth)),
            2 | 3 => return format!("NOT EXISTS (SELECT 1 FROM {table} {inner} WHERE {})", correlated(random, &inner, alias, depth)),
            4 => return format!("{} IN (SELECT {} FROM {table} {inner})", number(random, alias), number(random, &inner)),
            5 => return format!("{} NOT IN (SELECT {} FROM {table} {inner})", number(random, alias), number(random, &inner)),
            6 => {
                let inside = correlated(random, &inner, alias, depth);
                return format!("{} NOT IN (SELECT {} FROM {table} {inner} WHERE {inside})", number(random, alias), number(random, &inner));
            }
            7 => {
                let inside = correlated(random, &inner, alias, depth);
                let f = random.pick(&["COUNT(*)", "SUM", "MAX", "MIN"]);
                let f = if f == "COUNT(*)" { f.to_string() } else { format!("{f}({inner}.a)") };
                return format!("{} {op} (SELECT {f} FROM {table} {inner} WHERE {inside})", number(random, alias));
            }
            8 => {
                let quantifier = random.pick(&["ANY", "ALL"]);
                let inside = correlated(random, &inner, alias, depth);
                return format!("{} {op} {quantifier} (SELECT {inner}.a FROM {table} {inner} WHERE {inside})", number(random, alias));
            }
            _ => {}
        }
    }
    match random.below(9) {
        0 => format!("{alias}.a IS {}NULL", random.pick(&["", "NOT "])),
        1 => format!("{alias}.s = {}", random.pick(&["'x'", "'y'", "N'zz'"])),
        2 => format!("({} OR {})", predicate(random, aliases, 0), predicate(random, aliases, depth.saturating_sub(1))),
        3 => format!("NOT ({})", predicate(random, aliases, depth.saturating_sub(1))),
        4 => format!("{alias}.b {}IN (1, 2, {})", random.pick(&["", "NOT "]), random.below(4)),
        5 => format!("{alias}.k BETWEEN {} AND {}", random.below(4), 3 + random.below(8)),
        _ => format!("{} {op} {}", number(random, alias), number(random, other)),
    }
}

fn correlated(random: &mut Random, inner: &str, outer: &str, depth: u32) -> String {
    let link = match random.below(4) {
        0 => format!("{inner}.a {} {outer}.b", random.pick(&["=", "<", ">="])),
        1 => format!("{inner}.b = {outer}.b"),
        _ => format!("{inner}.{} = {outer}.{}", random.pick(&["k", "a"]), random.pick(&["k", "a", "b"])),
    };
    match random.below(3) {
        0 => link,
        1 => format!("{link} AND {}", predicate(random, &[inner], 0)),
        _ => format!("{link} AND {}", predicate(random, &[inner, outer], depth - 1)),
    }
}

fn from(random: &mut Random, aliases: &[&str]) -> String {
    let mut text = String::new();
    for (at, alias) in aliases.iter().enumerate() {
        let table = random.pick(&["r", "u", "w"]);
        let derived = random.below(6) == 0;
        let source = match (derived, random.below(3)) {
            (false, _) => table.to_string(),
            (true, 0) => format!("(SELECT DISTINCT k, a, b, s FROM {table})"),
            (true, 1) => format!("(SELECT MAX(k) AS k, a, MIN(b) AS b, MAX(s) AS s FROM {table} GROUP BY a)"),
            (true, _) => format!("(SELECT k, a, b, s FROM {table} UNION ALL SELECT k, b, a, 'u' FROM w)"),
        };
        if at == 0 {
            text = format!("{source} {alias}");
            continue;
        }
        let join = random.pick(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let link = format!("{}.{} = {alias}.{}", aliases[at - 1], random.pick(&["k", "a", "b"]), random.pick(&["k", "a", "b"]));
        let more = if random.below(3) == 0 { format!(" AND {}", predicate(random, &aliases[..=at], 0)) } else { String::new() };
        text = format!("{text} {join} {source} {alias} ON {link}{more}");
    }
    text
}

fn query(random: &mut Random) -> String {
    let aliases = &["x", "y", "z"][..1 + random.below(3) as usize];
    let tables = from(random, aliases);
    let mut conditions: Vec<String> = (0..random.below(3)).map(|_| predicate(random, aliases, 2)).collect();
    let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let last = aliases[aliases.len() - 1];
    match random.below(6) {
        0 => format!("SELECT COUNT(*), SUM({last}.a), MIN(x.s), COUNT(DISTINCT x.b) FROM {tables}{filter}"),
        1 => {
            conditions.clear();
            let having = random.pick(&["", " HAVING COUNT(*) > 1", " HAVING MAX(x.b) IS NOT NULL"]);
            format!("SELECT x.a, {last}.b, COUNT(*), MAX(x.k) FROM {tables}{filter} GROUP BY x.a, {last}.b{having}")
        }
        2 => format!("SELECT DISTINCT x.{}, {last}.{} FROM {tables}{filter}", random.pick(&COLUMNS), random.pick(&COLUMNS)),
        3 => {
            let inside = correlated(random, "q", "x", 1);
            let f = random.pick(&["COUNT(*)", "SUM(q.a)", "MAX(q.k) + COUNT(q.a)", "MIN(q.b)"]);
            format!("SELECT x.k, {last}.a, (SELECT {f} FROM u q WHERE {inside}) FROM {tables}{filter}")
        }
        _ => format!("SELECT x.k, x.a, x.s, {last}.k, {last}.b FROM {tables}{filter}"),
    }
}

#[test]
fn rewritten_plans_agree_with_plans_as_written() {
    let mut db = tables("random");
    db.fold_case = true;
    let rounds = std::env::var("RANDOM_QUERIES").ok().and_then(|n| n.parse().ok()).unwrap_or(1500);
    let mut rows = 0;
    for seed in 0..rounds {
        let sql = query(&mut Random(seed * 7919 + 1));
        rows += db.query(&sql).len();
    }
    assert!(rows > rounds as usize, "queries that return nothing compare nothing");
}
