//! Random queries: the rewritten plan and the plan as written give the same rows.
//!
//! A seed makes one query over small tables full of NULLs and duplicates, where NOT IN, outer joins and empty groups
//! differ from each other most. Every failure names its statement. More of them, in a build that is optimized:
//!
//! ```text
//! RANDOM_QUERIES=100000 cargo test --release -p thawdb-query rewritten_plans_agree
//! RANDOM_FIRST=100000 RANDOM_QUERIES=100000 ...                                        the next ones
//! ```

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
    match random.below(10) {
        6 => {
            let (common, one, two) = (predicate(random, aliases, 0), predicate(random, aliases, 0), predicate(random, aliases, 0));
            let more = if random.below(2) == 0 { format!(" AND {}", predicate(random, aliases, 0)) } else { String::new() };
            format!("(({common} AND {one}) OR ({two} AND {common}{more}))")
        }
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
    let aliases = &["x", "y", "z", "t"][..1 + random.below(4) as usize];
    let tables = from(random, aliases);
    let mut conditions: Vec<String> = (0..random.below(3)).map(|_| predicate(random, aliases, 2)).collect();
    let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let last = aliases[aliases.len() - 1];
    match random.below(12) {
        6 => windowed(random, &tables, &filter, last),
        7 => grouping_sets(random, &tables, &filter, last),
        8 => set_operation(random),
        9 => common_table_expression(random),
        10 => applied(random),
        // What a limit keeps of equal rows is any of them, so that only what it is decided by is shown.
        11 => {
            let (rows, way) = (random.below(20), random.pick(&["", " DESC"]));
            format!("SELECT COUNT(*), MIN(q.o), MAX(q.o) FROM (SELECT TOP {rows} x.k AS o FROM {tables}{filter} ORDER BY x.k{way}) q")
        }
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

/// Functions over windows whose value does not depend on which of equal rows comes first.
fn windowed(random: &mut Random, tables: &str, filter: &str, last: &str) -> String {
    let partition = random.pick(&["", "PARTITION BY x.a ", "PARTITION BY x.b, x.s "]);
    let key = random.pick(&["x.k", "x.a", "x.s DESC", "x.b DESC, x.k"]);
    let function = match random.below(9) {
        0 => format!("RANK() OVER ({partition}ORDER BY {key})"),
        1 => format!("DENSE_RANK() OVER ({partition}ORDER BY {key})"),
        2 => format!("SUM({last}.a) OVER ({partition}ORDER BY {key})"),
        3 => format!("COUNT(*) OVER ({partition}ORDER BY {key} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"),
        4 => format!("MAX({last}.b) OVER ({})", partition.trim()),
        5 => format!("PERCENT_RANK() OVER ({partition}ORDER BY {key})"),
        6 => format!("CUME_DIST() OVER ({partition}ORDER BY {key})"),
        7 => format!("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x.k) OVER ({})", partition.trim()),
        _ => format!("SUM(COUNT(*)) OVER ({})", if partition.is_empty() { "" } else { "PARTITION BY x.a" }),
    };
    if function.starts_with("SUM(COUNT") {
        return format!("SELECT x.a, {last}.b, {function} FROM {tables}{filter} GROUP BY x.a, {last}.b");
    }
    match random.below(2) {
        0 => format!("SELECT x.k, {last}.a, {function} FROM {tables}{filter}"),
        // Conditions on a function of a window stay above it; those on its partition may go below.
        _ => format!(
            "SELECT q.k, q.f FROM (SELECT x.k, x.a, x.b, x.s, {function} AS f FROM {tables}{filter}) q WHERE q.{} {} {}",
            random.pick(&["a", "b", "f"]),
            random.pick(&["=", "<", ">="]),
            random.below(4)
        ),
    }
}

fn grouping_sets(random: &mut Random, tables: &str, filter: &str, last: &str) -> String {
    let sets = match random.below(4) {
        0 => format!("ROLLUP (x.a, {last}.b)"),
        1 => format!("CUBE (x.a, {last}.b)"),
        2 => format!("GROUPING SETS ((x.a), ({last}.b), ())"),
        _ => format!("x.a, ROLLUP ({last}.b)"),
    };
    let having = random.pick(&["", " HAVING COUNT(*) > 1", " HAVING MAX(x.k) > 2"]);
    format!(
        "SELECT x.a, {last}.b, GROUPING(x.a), GROUPING_ID(x.a, {last}.b), COUNT(*), SUM(x.k) FROM {tables}{filter} GROUP BY {sets}{having}"
    )
}

fn simple(random: &mut Random) -> String {
    let columns = random.pick(&["x.k, x.s", "x.a, x.s", "x.b, x.s"]);
    let tables = from(random, &["x"]);
    let condition = predicate(random, &["x"], 1);
    format!("SELECT {columns} FROM {tables} WHERE {condition}")
}

fn set_operation(random: &mut Random) -> String {
    let (left, right) = (simple(random), simple(random));
    let operator = random.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
    match random.below(3) {
        0 => format!("{left} {operator} {right}"),
        1 => format!("{left} {operator} {right} {} {}", random.pick(&["UNION ALL", "EXCEPT", "INTERSECT"]), simple(random)),
        _ => format!(
            "SELECT q.k, COUNT(*) FROM ({left} {operator} {right}) q (k, s) WHERE {} GROUP BY q.k",
            random.pick(&["q.k > 1", "q.s = 'y'", "q.k IS NULL"])
        ),
    }
}

fn common_table_expression(random: &mut Random) -> String {
    let inner = simple(random);
    let condition = random.pick(&["c.k = d.k", "c.k < d.k", "c.s = d.s"]);
    match random.below(3) {
        0 => format!("WITH c (k, s) AS ({inner}) SELECT c.k, d.s FROM c JOIN c d ON {condition}"),
        1 => format!(
            "WITH c (k, s) AS ({inner}), d AS (SELECT k, COUNT(*) AS n FROM c GROUP BY k) SELECT c.s, d.n FROM c LEFT JOIN d ON c.k = d.k"
        ),
        _ => format!(
            "WITH c (k, s) AS ({inner}), n AS (SELECT 0 AS v UNION ALL SELECT v + 1 FROM n WHERE v < {}) SELECT n.v, COUNT(c.k) FROM n LEFT JOIN c ON c.k = n.v GROUP BY n.v",
            random.below(9)
        ),
    }
}

fn applied(random: &mut Random) -> String {
    let tables = from(random, &["x"]);
    let inside = correlated(random, "q", "x", 1);
    let apply = random.pick(&["CROSS APPLY", "OUTER APPLY"]);
    let body = match random.below(4) {
        0 => format!("SELECT COUNT(*) AS v, MAX(q.k) AS w FROM u q WHERE {inside}"),
        1 => format!("SELECT TOP 1 q.k AS v, 1 AS w FROM r q WHERE {inside} ORDER BY q.k DESC"),
        2 => format!("SELECT q.a AS v, q.b AS w FROM w q WHERE {inside}"),
        _ => format!("SELECT v, v + 1 AS w FROM (VALUES (x.a), (x.b)) p (v) WHERE v > {}", random.below(3)),
    };
    // The last FROM stands behind the ORDER BY, so that the rows are known to have no order.
    let condition = random.pick(&["f.v > 1", "f.v IS NULL", "x.a = f.v", "1 = 1"]);
    format!("SELECT x.k, x.a, f.v, f.w FROM {tables} {apply} ({body}) f WHERE {condition} AND EXISTS (SELECT 1 FROM r)")
}

#[test]
fn rewritten_plans_agree_with_plans_as_written() {
    let mut db = tables("random");
    db.fold_case = true;
    let rounds = std::env::var("RANDOM_QUERIES").ok().and_then(|n| n.parse().ok()).unwrap_or(1500);
    let first = std::env::var("RANDOM_FIRST").ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let mut rows = 0;
    for seed in first..first + rounds {
        let sql = query(&mut Random(seed * 7919 + 1));
        rows += db.query(&sql).len();
    }
    assert!(rows > rounds as usize, "queries that return nothing compare nothing");
}
