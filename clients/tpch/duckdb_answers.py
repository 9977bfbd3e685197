#!/usr/bin/env python3
"""Compares the answers that `thawdb bench tpch` left with DuckDB's to the same queries over the same rows.

    pip install duckdb
    cargo run --release -- bench tpch --data FOLDER --keep
    python clients/tpch/duckdb_answers.py FOLDER/tpch

A number agrees up to six digits, anything else as text without trailing blanks; rows agree in their order, or sorted if
an ORDER BY leaves equals in any order. Ends with 1 if any answer differs.
"""

import pathlib
import sys

import duckdb

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "crates/thawdb/src/cmd/bench/tpch"
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
TOLERANCE = 2e-6


def duckdb_text(text):
    """LIMIT for TOP, EXTRACT for YEAR; a text compared with a date is one."""
    text = text.replace("YEAR(", "EXTRACT(year FROM ")
    if "TOP (" in text:
        head, rest = text.split("TOP (", 1)
        count, rest = rest.split(")", 1)
        text = f"{head}{rest.strip()} LIMIT {count}"
    return text


def same(ours, theirs):
    try:
        a, b = float(ours), float(theirs)
    except ValueError:
        return ours == theirs
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1.0)


def agree(ours, theirs):
    def rows_agree(left, right):
        return all(len(a) == len(b) and all(map(same, a, b)) for a, b in zip(left, right))

    return len(ours) == len(theirs) and (rows_agree(ours, theirs) or rows_agree(sorted(ours), sorted(theirs)))


def main(folder):
    connection = duckdb.connect()
    for statement in (SOURCES / "tables.sql").read_text().split(";"):
        if statement.strip():
            connection.execute(statement)
    for table in TABLES:
        path = folder / "tables" / f"{table}.tbl"
        connection.execute(f"COPY {table} FROM '{path}' (DELIMITER '|', HEADER false, QUOTE '')")
    differing = 0
    queries = sorted((SOURCES / "queries").glob("q*.sql"))
    for query in queries:
        rows = connection.execute(duckdb_text(query.read_text())).fetchall()
        theirs = [["NULL" if cell is None else str(cell).rstrip() for cell in row] for row in rows]
        lines = (folder / "answers" / f"{query.stem}.txt").read_text().split("\n")[:-1]
        ours = [[cell.rstrip() for cell in line.split("\t")] for line in lines]
        is_right = agree(ours, theirs)
        differing += not is_right
        print(f"{query.stem}: {len(ours)} rows {'agree' if is_right else 'DIFFER'}")
    print(f"{len(queries) - differing} passed, {differing} failed")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
