"""pymssql against ThawDB: types, transactions, errors, a million rows; encrypted and not.

Claim: what pymssql (FreeTDS underneath) does with SQL Server it does with ThawDB: a table of every type, values
written as parameters and read back (NULL, empty, extreme, non-ASCII), commit and rollback, errors with SQL Server's
number, severity and line, bulk copy.

Method: a server on a free port for each setting of encryption; every check is a function, all run, each failure told.

    python test_pymssql.py --server target/release/thawdb [--rows 1000000]
"""

import argparse
import datetime
import decimal
import pathlib
import sys
import time
import traceback
import uuid

import pymssql

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from server import Server  # noqa: E402

D = decimal.Decimal
TYPES = {
    "tinyint": [0, 255],
    "smallint": [-32768, 32767],
    "int": [-2147483648, 2147483647, 0],
    "bigint": [-9223372036854775808, 9223372036854775807],
    "decimal(9,2)": [D("-1234567.89"), D("0.01")],
    "decimal(38,0)": [D("9" * 38), D("-" + "9" * 38)],
    "numeric(38,38)": [D("0." + "0" * 37 + "1")],
    "float": [0.0, -1.5, 1.7976931348623157e308, 2.2250738585072014e-308],
    "real": [-1.5, 0.25],
    "bit": [True, False],
    "char(5)": ["ab   ", "     "],
    "varchar(20)": ["", "plain", "café £ €", "it's 'quoted'"],
    "varchar(max)": ["", "x" * 100000],
    "nchar(4)": ["日本  ", "    "],
    "nvarchar(20)": ["", "Zoë", "日本語", "😀🎉", "' -- ;"],
    "nvarchar(max)": ["", "ü" * 100000],
    "binary(4)": [b"\x00\x01\xfe\xff"],
    "varbinary(20)": [b"\x00", bytes(range(20))],
    "varbinary(max)": [bytes(range(256)) * 400],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2008, 7, 31)],
    "time(0)": [datetime.time(0, 0, 0), datetime.time(23, 59, 59)],
    "time(6)": [datetime.time(23, 59, 59, 999999)],
    "datetime": [datetime.datetime(1753, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 997000)],
    "datetime2(0)": [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59)],
    "datetime2(6)": [datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "uniqueidentifier": [uuid.UUID(int=0), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")],
}


class Refused(Exception):
    """A check that did not hold."""


def expect(got, wanted, what):
    if got != wanted or type(got) is not type(wanted):
        raise Refused(f"{what}: got {str(got)[:200]!r}, wanted {str(wanted)[:200]!r}")


def column(position):
    return f"c{position}"


def parameter(name, value):
    """A value as it is handed over: with use_datetime2 pymssql writes six decimals, more than a datetime takes."""
    return value.isoformat(" ", "milliseconds") if name == "datetime" and value else value


def check_types(connection, rows):
    """Every value of every type goes in as a parameter and comes back as it was."""
    cursor = connection.cursor()
    declared = ", ".join(f"{column(at)} {name} NULL" for at, name in enumerate(TYPES))
    cursor.execute(f"CREATE TABLE dbo.types (id int NOT NULL PRIMARY KEY, {declared})")
    wanted = {}
    for at, (name, values) in enumerate(TYPES.items()):
        for value in [None, *values]:
            wanted[len(wanted)] = (at, value)
            cursor.execute(f"INSERT dbo.types (id, {column(at)}) VALUES (%s, %s)", (len(wanted) - 1, parameter(name, value)))
            expect(cursor.rowcount, 1, "rows affected")
    connection.commit()
    cursor.execute("SELECT * FROM dbo.types ORDER BY id")
    names = list(TYPES)
    for row in cursor.fetchall():
        at, value = wanted.pop(row[0])
        expect(row[1 + at], value, f"{names[at]} read back")
        for other, left_out in enumerate(row[1:]):
            if other != at:
                expect(left_out, None, f"{names[other]} left out")
    expect(wanted, {}, "rows not read back")
    cursor.execute("DROP TABLE dbo.types")
    connection.commit()


def check_conditions(connection, rows):
    """Parameters in a WHERE compare as values, not as text."""
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.people (id int NOT NULL PRIMARY KEY, name nvarchar(50) NOT NULL, born date NULL)")
    people = [(1, "Zoë", datetime.date(1990, 5, 17)), (2, "O'Neil", None), (3, "山田", datetime.date(2001, 1, 1))]
    cursor.executemany("INSERT dbo.people VALUES (%d, %s, %s)", people)
    for person in people:
        cursor.execute("SELECT id, name, born FROM dbo.people WHERE name = %s", (person[1],))
        expect(cursor.fetchall(), [person], "row by name")
    cursor.execute("SELECT COUNT(*) FROM dbo.people WHERE born > %s OR born IS NULL", (datetime.date(2000, 1, 1),))
    expect(cursor.fetchone(), (2,), "count by date")
    expect([d[0] for d in cursor.description], [""], "name of an unnamed column")
    cursor.execute("UPDATE dbo.people SET name = %s WHERE id IN %s", ("X", (1, 3)))
    expect(cursor.rowcount, 2, "rows updated")
    cursor.execute("DELETE dbo.people WHERE name = 'X'")
    expect(cursor.rowcount, 2, "rows deleted")
    cursor.execute("DROP TABLE dbo.people")
    connection.commit()


def check_transaction(connection, rows):
    """What is rolled back is gone, what is committed stays."""
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.accounts (id int NOT NULL PRIMARY KEY, balance decimal(9,2) NOT NULL)")
    connection.commit()
    cursor.execute("INSERT dbo.accounts VALUES (1, 100), (2, 0)")
    connection.commit()
    cursor.execute("UPDATE dbo.accounts SET balance = balance - 30 WHERE id = 1")
    cursor.execute("UPDATE dbo.accounts SET balance = balance + 30 WHERE id = 2")
    cursor.execute("SELECT @@TRANCOUNT, balance FROM dbo.accounts WHERE id = 2")
    expect(cursor.fetchone(), (1, D("30.00")), "inside the transaction")
    connection.rollback()
    cursor.execute("SELECT balance FROM dbo.accounts ORDER BY id")
    expect(cursor.fetchall(), [(D("100.00"),), (D("0.00"),)], "after the rollback")
    connection.rollback()
    cursor.execute("DROP TABLE dbo.accounts")
    connection.commit()


def check_errors(connection, rows):
    """Errors have SQL Server's number, severity, state and line, and leave the connection usable."""
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.keys (id int NOT NULL PRIMARY KEY)")
    cursor.execute("INSERT dbo.keys VALUES (1)")
    connection.commit()
    cases = [
        ("\n\nSELECT * FROM dbo.nonesuch", 208, 16, 3, "Invalid object name 'dbo.nonesuch'."),
        ("\nINSERT dbo.keys VALUES (1)", 2627, 14, 2, "Violation of PRIMARY KEY constraint"),
        ("DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 16, 4, "Divide by zero error encountered."),
        ("SELECT\n FROM", 156, 15, 2, "Incorrect syntax near the keyword 'FROM'."),
        ("SELECT nonesuch\nFROM dbo.keys", 207, 16, 1, "Invalid column name 'nonesuch'."),
    ]
    for text, number, severity, line, message in cases:
        try:
            cursor.execute(text)
            cursor.fetchall()
        except pymssql.Error as error:
            expect(error.args[0], number, f"number of {text!r}")
            inner = error.__cause__ or error.__context__
            expect((inner.severity, inner.line), (severity, line), f"severity and line of {number}")
            if message not in error.args[1].decode():
                raise Refused(f"text of {number}: {error.args[1]!r}")
        else:
            raise Refused(f"no error from {text!r}")
        connection.rollback()
    cursor.execute("SELECT COUNT(*) FROM dbo.keys")
    expect(cursor.fetchone(), (1,), "rows after the errors")
    cursor.execute("DROP TABLE dbo.keys")
    connection.commit()


def check_batches(connection, rows):
    """Several result sets of one batch, and a procedure's variables across statements."""
    cursor = connection.cursor()
    cursor.execute("DECLARE @n int = 0; WHILE @n < 3 BEGIN SET @n = @n + 1; SELECT @n AS n, @n * @n AS square END")
    for n in range(1, 4):
        expect(cursor.fetchall(), [(n, n * n)], f"result set {n}")
        expect(bool(cursor.nextset()), n < 3, f"another result set after {n}")
    connection.rollback()


def check_catalog(connection, rows):
    """Tables and columns are listed the way tools ask for them."""
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.listed (id int IDENTITY PRIMARY KEY, name nvarchar(30) NOT NULL)")
    cursor.execute("SELECT name FROM sys.tables WHERE name = 'listed'")
    expect(cursor.fetchall(), [("listed",)], "sys.tables")
    cursor.execute(
        "SELECT c.name, t.name, c.max_length, c.is_nullable FROM sys.columns c JOIN sys.types t "
        "ON t.user_type_id = c.user_type_id WHERE c.object_id = OBJECT_ID('dbo.listed') ORDER BY c.column_id"
    )
    expect(cursor.fetchall(), [("id", "int", 4, False), ("name", "nvarchar", 60, False)], "sys.columns")
    cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'listed'")
    expect(cursor.fetchall(), [("dbo", "listed")], "INFORMATION_SCHEMA.TABLES")
    cursor.execute("DROP TABLE dbo.listed")
    connection.commit()


def check_bulk(connection, rows):
    """Bulk copy of many rows; all of them are there, as they were."""
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.bulk_rows (id int NOT NULL, name nvarchar(40) NULL, amount float NULL, big bigint NULL)")
    connection.commit()

    def row(n):
        return (n, None if n % 7 == 0 else f"Zeile {n} für alle", n / 4, -n * 1_000_000_007)

    begin = time.monotonic()
    connection.bulk_copy("dbo.bulk_rows", [row(n) for n in range(rows)], batch_size=100_000, tablock=True)
    connection.commit()
    seconds = time.monotonic() - begin
    print(f"  bulk copy of {rows:,} rows: {seconds:.1f} s, {rows / seconds:,.0f} rows/s", flush=True)
    cursor.execute("SELECT COUNT(*), COUNT(name), SUM(CAST(id AS bigint)), MIN(big) FROM dbo.bulk_rows")
    expected = (rows, rows - (rows + 6) // 7, rows * (rows - 1) // 2, row(rows - 1)[3])
    expect(cursor.fetchone(), expected, "sums of the rows")
    for n in (0, 1, rows // 2, rows - 1):
        cursor.execute("SELECT id, name, amount, big FROM dbo.bulk_rows WHERE id = %d", (n,))
        expect(cursor.fetchall(), [row(n)], f"row {n}")
    cursor.execute("DROP TABLE dbo.bulk_rows")
    connection.commit()


CHECKS = [check_types, check_conditions, check_transaction, check_errors, check_batches, check_catalog, check_bulk]


def run_checks(server, encryption, rows):
    """Passed and failed checks over connections with this setting."""
    passed = failed = 0
    for check in CHECKS:
        name = f"pymssql {check.__name__.removeprefix('check_')}, encryption {encryption}"
        try:
            settings = {"encryption": encryption, "database": f"tests_{encryption}", "tds_version": "7.4", "use_datetime2": True}
            with pymssql.connect(**server.login(), **settings) as connection:
                check(connection, rows)
        except Exception:  # noqa: BLE001 - every failure is told, and the others run
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
        else:
            passed += 1
            print(f"ok {name}", flush=True)
    return passed, failed


def check_demand(binary):
    """A server that demands encryption takes nobody without it; a wrong password is 18456 either way."""
    with Server(binary, "--require-encryption") as server:
        with pymssql.connect(**server.login(), encryption="require") as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT 1")
            expect(cursor.fetchone(), (1,), "a select over an encrypted connection")
        for change in ({"encryption": "off"}, {"encryption": "require", "password": "wrong"}):
            try:
                pymssql.connect(**{**server.login(), **change}, login_timeout=10).close()
            except pymssql.Error as error:
                if "password" in change and "18456" not in str(error):
                    raise Refused(f"a wrong password gave {error}") from error
            else:
                raise Refused(f"a connection with {sorted(change)} was accepted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True, help="the thawdb binary")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the bulk copy")
    arguments = parser.parse_args()
    passed = failed = 0
    with Server(arguments.server) as server:
        for encryption, rows in (("off", arguments.rows), ("require", arguments.rows // 10)):
            with pymssql.connect(**server.login(), autocommit=True) as connection:
                connection.cursor().execute(f"CREATE DATABASE tests_{encryption}")
            more_passed, more_failed = run_checks(server, encryption, rows)
            passed, failed = passed + more_passed, failed + more_failed
    try:
        check_demand(arguments.server)
        passed += 1
        print("ok pymssql demanded encryption")
    except Exception:  # noqa: BLE001
        failed += 1
        print(f"FAILED pymssql demanded encryption\n{traceback.format_exc()}")
    print(f"pymssql: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
