"""FreeTDS' own tools, tsql and freebcp, through the checks that drive.py counts.

Claim: tsql shows results, counts and messages of batches as it does with SQL Server; freebcp copies every type of
types.json out of a table and into another in its character and native formats, and the server finds both tables the same.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

ENCRYPTED = os.environ["THAWDB_ENCRYPT"] == "on"
FOLDER = tempfile.TemporaryDirectory(prefix="thawdb-freetds-")
PLACE = pathlib.Path(FOLDER.name)
(PLACE / "freetds.conf").write_text(
    f"[thaw]\nhost = 127.0.0.1\nport = {os.environ['THAWDB_PORT']}\ntds version = 7.4\nclient charset = UTF-8\n"
    f"text size = 2147483647\nencryption = {'require' if ENCRYPTED else 'off'}\n[master]\n"
)
ENVIRONMENT = dict(os.environ, FREETDSCONF=str(PLACE / "freetds.conf"), LC_ALL="C.UTF-8")
NONE = {
    "output": "tsql has no parameters", "tables": "tsql has no parameters", "parameters": "tsql has no parameters",
    "cancel": "tsql has no cancel", "timeout": "tsql has no time-out",
}  # fmt: skip


class Refused(Exception):
    """A check that did not hold."""


def expect(got, wanted, what):
    if got != wanted:
        raise Refused(f"{what}: got {str(got)[:400]!r}, wanted {str(wanted)[:400]!r}")


def tool(*command, text=None):
    return subprocess.run(command, env=ENVIRONMENT, input=text, capture_output=True, text=True, timeout=120)


def tsql(batch, database="checks", password=os.environ["THAWDB_PASSWORD"]):
    """The lines that tsql shows for a batch, rows by tabs, without names of columns and the tool's own words."""
    done = tool("tsql", "-S", "thaw", "-U", "sa", "-P", password, "-D", database, "-o", "fhq", text=f"{batch}\nGO\nEXIT\n")
    return done.stdout, done.stderr


def rows(batch):
    out, err = tsql(batch)
    if re.search(r"Msg \d+ \(severity (?!0)", err):
        raise Refused(f"{batch!r}: {err}")
    return [line.split("\t") for line in out.splitlines()]


def login():
    text = "SELECT encrypt_option, DB_NAME() FROM sys.dm_exec_connections WHERE session_id = @@SPID"
    expect(rows(text), [["TRUE" if ENCRYPTED else "FALSE", "checks"]], "this connection")
    for settings, text in (({"password": "wrong"}, "Login failed for user 'sa'"), ({"database": "nonesuch"}, "nonesuch")):
        out, err = tsql("SELECT 1", **settings)
        if text not in out + err:
            raise Refused(f"{settings} gave {out}{err}")


def results():
    expect(rows("DECLARE @n int = 0 WHILE @n < 3 BEGIN SET @n = @n + 1 SELECT @n AS n, @n * @n AS square END"), [["1", "1"], ["2", "4"], ["3", "9"]], "result sets")
    out, err = tsql("EXEC dbo.three_results 4")
    expect([line for line in out.splitlines() if line], ["4", "4\tx", "5\tNULL"], "result sets of a procedure")
    if "between" not in out + err:
        raise Refused(f"no PRINT in {err}")
    expect(len(rows("SELECT n FROM dbo.numbers")), 1000, "many rows")


def errors():
    cases = [
        ("\n\nSELECT * FROM dbo.nonesuch", 208, 16, 1, 3, "Invalid object name 'dbo.nonesuch'."),
        ("\nINSERT dbo.accounts VALUES (1, 1)", 2627, 14, 1, 2, "Violation of PRIMARY KEY constraint"),
        ("EXEC dbo.fails 1", 50000, 14, 9, 4, "told by fails"),
        ("EXEC dbo.fails 2", 8134, 16, 1, 6, "Divide by zero error encountered."),
        ("EXEC dbo.fails 4", 50123, 16, 5, 10, "thrown"),
    ]
    for batch, number, severity, state, line, text in cases:
        _, err = tsql(batch)
        told = re.search(r"Msg (\d+) \(severity (\d+), state (\d+)\) from .*?(?:Procedure \S+ )?Line (\d+):\s*\"?(.*)", err)
        if not told:
            raise Refused(f"{batch!r} gave {err}")
        expect(tuple(int(told[n]) for n in range(1, 5)), (number, severity, state, line), batch)
        if text not in err:
            raise Refused(f"text of {number}: {err}")


def transactions():
    tsql("BEGIN TRANSACTION UPDATE dbo.accounts SET balance = 7 ROLLBACK")
    expect(rows("SELECT balance FROM dbo.accounts WHERE id = 1"), [["100.00"]], "after a rollback")
    # A connection that is left takes its transaction along.
    tsql("BEGIN TRANSACTION UPDATE dbo.accounts SET balance = 8")
    expect(rows("SELECT balance FROM dbo.accounts WHERE id = 1"), [["100.00"]], "after a connection was left")
    tsql("BEGIN TRANSACTION UPDATE dbo.accounts SET balance = 9 WHERE id = 1 COMMIT")
    expect(rows("SELECT balance FROM dbo.accounts WHERE id = 1"), [["9.00"]], "after a commit")


def cursors():
    text = "DECLARE c CURSOR SCROLL STATIC FOR SELECT n FROM dbo.numbers WHERE n <= 5 ORDER BY n OPEN c FETCH LAST FROM c FETCH PRIOR FROM c CLOSE c DEALLOCATE c"
    expect(rows(text), [["5"], ["4"]], "fetches")


def metadata():
    expect([row[3] for row in rows("EXEC sp_columns 'books'")], ["author", "number", "title", "price"], "sp_columns")
    expect([row[5] for row in rows("EXEC sp_pkeys 'books'")], ["PK_books", "PK_books"], "sp_pkeys")
    expect([row[11] for row in rows("EXEC sp_fkeys @fktable_name = 'books'")], ["FK_books_author"], "sp_fkeys")


def freebcp(table, way, file, *options):
    done = tool("freebcp", f"checks.dbo.{table}", way, str(file), "-S", "thaw", "-U", "sa", "-P", os.environ["THAWDB_PASSWORD"], *options)
    if done.returncode or "rows copied" not in done.stdout:
        raise Refused(f"freebcp {table} {way} {options}: {done.stdout}{done.stderr}")


def types():
    """Every type out in the character format and in again; the native format is known for fewer types to the tool itself."""
    with open(os.environ["THAWDB_TYPES"], encoding="utf-8") as file:
        # Of a time the tool writes milliseconds, and of a datetimeoffset no offset.
        plain = [entry for entry in json.load(file) if not entry.get("read_only") and not entry["type"].startswith("datetimeoffset")]
        entries = [entry for entry in plain if entry.get("digits", 0) <= 3]
    for at, entry in enumerate(entries):
        name, wide, table = entry["type"], entry.get("as", entry["type"]), f"type_{at}"
        # The tool writes an empty value as it writes NULL, and its arithmetic of dates fails at the first year.
        values = [value for value in entry["values"] if value not in ("''", "N''", "0x") and "0001-01-01" not in value]
        text = f"CREATE TABLE dbo.{table} (id int NOT NULL, v {name} NULL) INSERT dbo.{table} VALUES (0, NULL)"
        for id, value in enumerate(values, 1):
            text += f" INSERT dbo.{table} VALUES ({id}, CAST({value} AS {name}))"
        rows(f"{text} SELECT TOP 0 * INTO dbo.{table}_in FROM dbo.{table}")
        freebcp(table, "out", PLACE / table, "-c", "-t", "\\t|\\t", "-r", "\\n|\\n")
        freebcp(f"{table}_in", "in", PLACE / table, "-c", "-t", "\\t|\\t", "-r", "\\n|\\n")
        bytes = "CAST(CAST({} AS %s) AS varbinary(max))" % wide
        same = f"({bytes.format('a.v')} = {bytes.format('b.v')} OR (a.v IS NULL AND b.v IS NULL))"
        got = rows(f"SELECT COUNT(*) FROM dbo.{table} AS a JOIN dbo.{table}_in AS b ON b.id = a.id AND {same}")
        expect(got, [[str(len(values) + 1)]], f"{name} copied")


def bulk():
    count = 20_000
    lines = "".join(f"{n}\t{'' if n % 7 == 0 else f'Zeile {n} für alle'}\t{n / 4}\t{n / 100:.2f}\t2008-07-31 12:34:56.{n % 1000:03d}\t{n % 2}\t{n:06x}\tlang {n}\n" for n in range(count))
    (PLACE / "loaded").write_text(lines, encoding="utf-8")
    freebcp("loaded", "in", PLACE / "loaded", "-c", "-b", "5000", "-h", "TABLOCK")
    sums = "SELECT COUNT(*), COUNT(name), SUM(CAST(id AS bigint)), SUM(price), MAX(happened) FROM dbo.loaded"
    wanted = [str(count), str(count - (count + 6) // 7), str(count * (count - 1) // 2), f"{count * (count - 1) // 2 / 100:.2f}"]
    expect(rows(sums)[0][:4], wanted, "sums of the rows")
    expect(rows("SELECT name, raw, long FROM dbo.loaded WHERE id = 300"), [["Zeile 300 für alle", "00012c", "lang 300"]], "a row")
    # The tool's own native format holds what DB-Library knows, and no NULL that it reads again.
    rows("SELECT id, amount, CAST(price AS float) AS price, flag, CAST(happened AS datetime) AS happened, CAST(LEFT(long, 40) AS varchar(40)) AS name INTO dbo.simple FROM dbo.loaded")
    freebcp("simple", "out", PLACE / "native", "-n")
    rows("SELECT TOP 0 * INTO dbo.again FROM dbo.simple")
    freebcp("again", "in", PLACE / "native", "-n")
    expect(rows("SELECT COUNT(*) FROM (SELECT * FROM dbo.simple INTERSECT SELECT * FROM dbo.again) AS x"), [[str(count)]], "rows copied natively")


def main():
    failed = 0
    checks = {check.__name__: check for check in (login, types, results, cursors, transactions, bulk, errors, metadata)}
    for name in [*checks, *NONE]:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        if name in NONE:
            print(f"none {name}: {NONE[name]}")
            continue
        try:
            checks[name]()
        except Exception as error:  # noqa: BLE001 - every failure is told, and the others run
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {name}: {error!r}"[:1000], flush=True)
        else:
            print(f"ok {name}", flush=True)
    sys.exit(1 if failed else 0)


main()
