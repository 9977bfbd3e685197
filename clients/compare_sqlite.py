#!/usr/bin/env python3
"""Random queries whose meaning the SQL standard fixes: the same rows from ThawDB and from SQLite.

    python3 clients/compare_sqlite.py [--thawdb target/release/thawdb] [--queries 2000] [--seed 1]

One seed makes the tables and the queries: integers and texts with NULLs and duplicates, joins, subqueries, groups, windows,
set operations, common table expressions. Left out is what the two mean differently: division, text comparison without regard
to case, integer overflow, the order of rows. Needs only the binary and Python; prints the first queries that differ, ends with 1
if there are any.
"""

import argparse
import random
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = ["a", "b", "c"]
TABLES = ["r", "s", "t"]


def table_rows(rng):
    return [tuple(rng.choice([None, 0, 1, 1, 2, 3, 5, 8]) for _ in COLUMNS) for _ in range(rng.randint(8, 16))]


def column(rng, alias):
    return f"{alias}.{rng.choice(COLUMNS)}"


def value(rng, alias):
    kind = rng.randrange(8)
    if kind == 0:
        return str(rng.randint(0, 5))
    if kind == 1:
        return f"({column(rng, alias)} + {column(rng, alias)})"
    if kind == 2:
        return f"COALESCE({column(rng, alias)}, {rng.randint(0, 3)})"
    if kind == 3:
        return f"CASE WHEN {predicate(rng, [alias], 0)} THEN {column(rng, alias)} ELSE {rng.randint(0, 9)} END"
    if kind == 4:
        return f"NULLIF({column(rng, alias)}, {rng.randint(0, 3)})"
    return column(rng, alias)


def predicate(rng, aliases, depth):
    alias = rng.choice(aliases)
    if depth > 0:
        inner, table = f"q{depth}", rng.choice(TABLES)
        link = f"{inner}.{rng.choice(COLUMNS)} {rng.choice(['=', '<', '>='])} {column(rng, alias)}"
        kind = rng.randrange(8)
        if kind == 0:
            return f"EXISTS (SELECT 1 FROM {table} {inner} WHERE {link})"
        if kind == 1:
            return f"NOT EXISTS (SELECT 1 FROM {table} {inner} WHERE {link} AND {predicate(rng, [inner], depth - 1)})"
        if kind == 2:
            return f"{column(rng, alias)} {rng.choice(['', 'NOT '])}IN (SELECT {column(rng, inner)} FROM {table} {inner})"
        if kind == 3:
            aggregate = rng.choice(["MAX", "MIN", "SUM", "COUNT"])
            return f"{column(rng, alias)} {rng.choice(['=', '<', '>='])} (SELECT {aggregate}({column(rng, inner)}) FROM {table} {inner} WHERE {link})"
    kind = rng.randrange(7)
    if kind == 0:
        return f"{column(rng, alias)} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 1:
        return f"{column(rng, alias)} BETWEEN {rng.randint(0, 2)} AND {rng.randint(2, 8)}"
    if kind == 2:
        return f"{column(rng, alias)} {rng.choice(['', 'NOT '])}IN (1, 3, {rng.randint(0, 8)})"
    if kind == 3:
        return f"NOT ({predicate(rng, aliases, max(depth - 1, 0))})"
    if kind == 4:
        return f"({predicate(rng, aliases, 0)} {rng.choice(['AND', 'OR'])} {predicate(rng, aliases, 0)})"
    return f"{column(rng, alias)} {rng.choice(['=', '<>', '<', '>='])} {column(rng, rng.choice(aliases))}"


def from_clause(rng, aliases):
    text = f"{rng.choice(TABLES)} {aliases[0]}"
    for before, alias in zip(aliases, aliases[1:]):
        join = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        on = "" if join == "CROSS JOIN" else f" ON {column(rng, before)} = {column(rng, alias)}"
        text += f" {join} {rng.choice(TABLES)} {alias}{on}"
    return text


def simple(rng):
    return f"SELECT x.a AS k, {value(rng, 'x')} AS v FROM {rng.choice(TABLES)} x WHERE {predicate(rng, ['x'], 1)}"


def query(rng):
    aliases = ["x", "y", "z"][: rng.randint(1, 3)]
    last = aliases[-1]
    tables = from_clause(rng, aliases)
    where = f" WHERE {predicate(rng, aliases, 2)}" if rng.random() < 0.7 else ""
    kind = rng.randrange(9)
    if kind == 0:
        return f"SELECT COUNT(*), COUNT({last}.a), SUM(x.b), MIN({last}.c), MAX(x.a), COUNT(DISTINCT x.c) FROM {tables}{where}"
    if kind == 1:
        having = rng.choice(["", " HAVING COUNT(*) > 1", " HAVING MAX(x.b) IS NOT NULL"])
        return f"SELECT x.a, {last}.b, COUNT(*), SUM(x.c), MIN({last}.a) FROM {tables}{where} GROUP BY x.a, {last}.b{having}"
    if kind == 2:
        return f"SELECT DISTINCT {column(rng, 'x')}, {value(rng, last)} FROM {tables}{where}"
    if kind == 3:
        function = rng.choice(["RANK()", "DENSE_RANK()", "SUM(x.b)", "COUNT(*)", "MAX(x.c)", "CUME_DIST()"])
        partition = rng.choice(["", "PARTITION BY x.b "])
        return f"SELECT x.a, x.b, {function} OVER ({partition}ORDER BY x.a) FROM {tables}{where}"
    if kind == 4:
        operator = rng.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
        return f"SELECT k, v FROM ({simple(rng)}) m {operator} SELECT k, v FROM ({simple(rng)}) n"
    if kind == 5:
        return f"WITH e AS ({simple(rng)}), f AS (SELECT k, COUNT(*) AS n FROM e GROUP BY k) SELECT e.k, e.v, f.n FROM e LEFT JOIN f ON e.k = f.k"
    if kind == 6:
        return f"SELECT x.a, (SELECT {rng.choice(['MAX', 'COUNT', 'SUM'])}(q.b) FROM {rng.choice(TABLES)} q WHERE q.a = x.a) FROM {tables}{where}"
    return f"SELECT {value(rng, 'x')}, {value(rng, last)}, {column(rng, 'x')} FROM {tables}{where}"


def literal(v):
    return "NULL" if v is None else str(v)


def script(rows):
    lines = []
    for name, content in rows.items():
        lines.append(f"CREATE TABLE {name} (a int NULL, b int NULL, c int NULL)")
        values = ", ".join("(" + ", ".join(literal(v) for v in row) + ")" for row in content)
        lines.append(f"INSERT INTO {name} VALUES {values}")
    return lines


def shown(v):
    if v is None:
        return "NULL"
    return f"{v:.10g}" if isinstance(v, float) else str(v)


def from_sqlite(setup, queries):
    connection = sqlite3.connect(":memory:")
    for line in setup:
        connection.execute(line)
    return [sorted("|".join(shown(v) for v in row) for row in connection.execute(text)) for text in queries]


def from_thawdb(binary, setup, queries):
    with tempfile.TemporaryDirectory() as folder:
        batches = ["SET NOCOUNT ON; SET ANSI_WARNINGS ON"] + setup
        for text in queries:
            batches.append(f"PRINT '-- next'\nGO\n{text}")
        path = Path(folder) / "queries.sql"
        path.write_text("\nGO\n".join(batches) + "\nGO\n")
        command = [binary, "sql", "--data", str(Path(folder) / "data"), "-i", str(path), "-W", "-s", "|", "-h", "-1"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    results = []
    for part in out.split("-- next\n")[1:]:
        lines = [line for line in part.splitlines() if line and not line.startswith(("Warning: Null value", "("))]
        results.append(sorted("|".join(number(field) for field in line.split("|")) for line in lines))
    return results


def number(field):
    try:
        return f"{float(field):.10g}" if "." in field or "e" in field else field
    except ValueError:
        return field


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thawdb", default="target/release/thawdb")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    setup = script({name: table_rows(rng) for name in TABLES})
    queries = [query(rng) for _ in range(arguments.queries)]
    theirs, ours = from_sqlite(setup, queries), from_thawdb(arguments.thawdb, setup, queries)
    if len(theirs) != len(ours):
        sys.exit(f"{len(queries)} queries, {len(ours)} answers")
    differing = [at for at in range(len(queries)) if theirs[at] != ours[at]]
    for at in differing[:10]:
        print(f"{queries[at]}\n  SQLite {theirs[at][:12]}\n  ThawDB {ours[at][:12]}\n")
    print(f"{len(queries)} queries, {sum(map(len, theirs))} rows, {len(differing)} differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
