"""The common checks for Python drivers that keep to the DB API; a driver's own program fills in what differs.

Claim: what a driver does with SQL Server it does with ThawDB. Every value is read from a literal, sent as a parameter,
read back, and compared by the server with the literal; so neither a fault in one direction nor the same one in both
passes. Errors are compared by number, severity, state, line and procedure as far as the driver tells them.

A subclass gives `connect`, `facts` and what the driver has of `call`, `table`, `bulk`, `cancel`. What it does not have it
answers with `raise Without(why)`. `run(Subclass)` is a program's main.
"""

import datetime
import decimal
import json
import os
import sys
import threading
import time
import traceback
import uuid

D = decimal.Decimal
ENCRYPTED = os.environ["THAWDB_ENCRYPT"] == "on"
PORT = int(os.environ["THAWDB_PORT"])
PASSWORD = os.environ["THAWDB_PASSWORD"]
CERTIFICATE = os.environ["THAWDB_CERTIFICATE"]
ENDLESS = "DECLARE @n int = 1 WHILE 1 = 1 SET @n = @n + 1 - 1"
WAITED_SECONDS_MAX = 20


class Refused(Exception):
    """A check that did not hold."""


class Without(Exception):
    """The driver has no such thing."""


def expect(got, wanted, what):
    if got != wanted or (type(got) is not type(wanted) and not isinstance(got, (tuple, list))):
        raise Refused(f"{what}: got {str(got)[:200]!r}, wanted {str(wanted)[:200]!r}")


def rows_of(fetched):
    """Rows as tuples, whatever the driver makes of them."""
    return [tuple(row) for row in fetched]


class Checks:
    """The checks, in the order of drive.py."""

    mark = "?"
    """How a parameter is written."""
    digits = 6
    """Digits of a second that the driver keeps."""
    unread = {}
    """Types that the driver does not read as they are: type and why."""
    error = Exception
    """The driver's class of errors."""
    rows_bulk = 20_000

    # What differs ----------------------------------------------------------------------------------------------

    def connect(self, database="checks", password=PASSWORD, autocommit=False, timeout=0):
        raise NotImplementedError

    def facts(self, error, connection):
        """A dictionary of what the driver tells of an error: number and message at least."""
        raise NotImplementedError

    def call(self, connection, arguments):
        """dbo.add_up with `arguments` (a, b or no b): the sum, the text of 'é', the status; None for what is not told."""
        raise Without("output parameters are not offered")

    def table(self, connection, rows, start):
        """The row of dbo.total for a table-valued parameter of `rows`."""
        raise Without("table-valued parameters are not offered")

    def bulk(self, connection, rows):
        """Loads rows into dbo.loaded."""
        raise Without("bulk copy is not offered")

    def cancel(self, connection, cursor):
        """Ends what the cursor does, from another thread."""
        raise Without("cancelling is not offered")

    def is_timeout(self, error):
        return "time" in str(error).lower()

    def driver_metadata(self, connection):
        """The driver's own calls, if it has any."""

    def driver_cursors(self, connection):
        """Cursors through the driver's own calls, if it has any."""

    # The checks ------------------------------------------------------------------------------------------------

    def execute(self, connection, sql, *parameters):
        cursor = connection.cursor()
        sql = sql.replace("?", self.mark)
        cursor.execute(sql, tuple(parameters)) if parameters else cursor.execute(sql)
        return cursor

    def query(self, connection, sql, *parameters):
        return rows_of(self.execute(connection, sql, *parameters).fetchall())

    def failing(self, connection, sql, *parameters):
        """What the driver tells of the error that `sql` ends with."""
        try:
            cursor = self.execute(connection, sql, *parameters)
            while cursor.nextset():
                pass
        except self.error as error:
            return self.facts(error, connection)
        raise Refused(f"no error from {sql!r}")

    def login(self):
        with self.connect() as connection:
            text = "SELECT encrypt_option, DB_NAME() FROM sys.dm_exec_connections WHERE session_id = @@SPID"
            expect(self.query(connection, text), [("TRUE" if ENCRYPTED else "FALSE", "checks")], "this connection")
        for settings, number in (({"password": "wrong"}, 18456), ({"database": "nonesuch"}, 4060)):
            try:
                self.connect(**settings).close()
            except self.error as error:
                if str(number) not in str(error) and self.facts(error, None).get("number") != number:
                    if not self.login_told(number, error):
                        raise Refused(f"{settings} gave {error}") from error
            else:
                raise Refused(f"{settings} was accepted")

    def login_told(self, number, error):
        """Whether the error is the one of this number, for drivers that do not tell numbers at login."""
        # The server says both of a database it cannot open, and some drivers show the last one.
        texts = {18456: ["Login failed for user 'sa'"], 4060: ['Cannot open database "nonesuch"', "Login failed for user 'sa'"]}[number]
        return any(text in str(error) for text in texts)

    def known_values(self):
        """Literals and what they are in Python: types.json's values are only compared with themselves."""
        return [
            ("CAST(-42 AS int)", -42),
            ("CAST(12345678.9 AS decimal(12,3))", D("12345678.900")),
            ("CAST(-922337203685477.5808 AS money)", D("-922337203685477.5808")),
            ("CAST(0.1 AS float)", 0.1),
            ("N'Zoë 日本 😀'", "Zoë 日本 😀"),
            ("CAST(N'€ ß' AS varchar(10))", "€ ß"),
            ("CAST('ab' AS char(4))", "ab  "),
            ("CAST(1 AS bit)", True),
            ("0x00FF10", b"\x00\xff\x10"),
            ("CAST('2008-07-31' AS date)", datetime.date(2008, 7, 31)),
            ("CAST('12:34:56.123456' AS time(6))", datetime.time(12, 34, 56, 123456)),
            ("CAST('2008-07-31T12:34:56.787' AS datetime)", datetime.datetime(2008, 7, 31, 12, 34, 56, 787000)),
            ("CAST('2008-07-31 12:34:56.123456' AS datetime2(6))", datetime.datetime(2008, 7, 31, 12, 34, 56, 123456)),
            ("CAST('2008-07-31 12:34' AS smalldatetime)", datetime.datetime(2008, 7, 31, 12, 34)),
            ("CAST('00112233-4455-6677-8899-AABBCCDDEEFF' AS uniqueidentifier)", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
            ("CAST(NULL AS int)", None),
        ]

    def types(self):
        with self.connect() as connection:
            for literal, value in self.known_values():
                expect(self.query(connection, f"SELECT {literal}"), [(value,)], literal)
                expect(type(self.query(connection, f"SELECT {literal}")[0][0]), type(value), f"the type of {literal}")
            with open(os.environ["THAWDB_TYPES"], encoding="utf-8") as file:
                entries = json.load(file)
            for at, entry in enumerate(entries):
                if entry.get("digits", 0) <= self.digits and entry["type"] not in self.unread:
                    self.round_trip(connection, f"dbo.type_{at}", entry)

    def round_trip(self, connection, table, entry):
        name = entry["type"]
        literals = [f"CAST({value} AS {name})" for value in entry["values"]]
        if entry.get("read_only"):
            for literal in literals:
                if self.query(connection, f"SELECT {literal}")[0][0] is None:
                    raise Refused(f"{literal} came as NULL")
            expect(self.query(connection, f"SELECT CAST(NULL AS {name})"), [(None,)], f"a NULL {name}")
            return
        self.execute(connection, f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, v {name} NULL)")
        wide = entry.get("as", name)
        marked = f"CONVERT({name}, ?)" if entry.get("convert") else "?"
        for id, literal in enumerate([f"CAST(NULL AS {name})", *literals]):
            if self.skips(name, literal):
                continue
            [(value,)] = self.query(connection, f"SELECT {literal}")
            expect(self.execute(connection, f"INSERT {table} (id, v) VALUES (?, {marked})", id, self.parameter(name, value)).rowcount, 1, "rows inserted")
            expect(self.query(connection, f"SELECT v FROM {table} WHERE id = ?", id), [(value,)], f"{literal} read back")
            same = f"CAST(CAST(v AS {wide}) AS varbinary(max)) = CAST(CAST({literal} AS {wide}) AS varbinary(max))"
            [(count,)] = self.query(connection, f"SELECT COUNT(*) FROM {table} WHERE id = ? AND ({same} OR (v IS NULL AND {literal} IS NULL))", id)
            if count != 1:
                shown = self.query(connection, f"SELECT CONVERT(nvarchar(60), CAST(v AS {wide}), 2) FROM {table} WHERE id = ?", id)
                raise Refused(f"{literal} ({str(value)[:60]!r}) was stored as {shown}")
        connection.commit()

    def skips(self, name, literal):
        """Whether the driver cannot send this value at all."""
        return False

    def parameter(self, name, value):
        """A value as it is handed over."""
        return value

    def parameters(self):
        with self.connect() as connection:
            for n in range(1, 30):
                wanted = [(n, None if n % 10 == 0 else f"number {n}")]
                expect(self.query(connection, "SELECT n, name FROM dbo.numbers WHERE n = ? AND square = ?", n, n * n), wanted, "by number")
            expect(self.query(connection, "SELECT n FROM dbo.numbers WHERE name = ?", "number 7"), [(7,)], "by name")
            expect(self.query(connection, "SELECT COUNT(*) FROM dbo.numbers WHERE name = ?", "' OR 1 = 1 --"), [(0,)], "by a quoted name")
            expect(self.query(connection, "SELECT COUNT(*) FROM dbo.numbers WHERE n > ? AND n <= ?", 10, 30), [(20,)], "by range")
            updated = self.execute(connection, "UPDATE dbo.numbers SET name = ? WHERE n BETWEEN ? AND ?", "x", 1, 5)
            expect(updated.rowcount, 5, "rows updated")
            connection.rollback()
            cursor = connection.cursor()
            cursor.executemany("INSERT dbo.authors (name, born) VALUES (?, ?)".replace("?", self.mark),
                               [("Zoë Müller", datetime.date(1990, 5, 17)), ("O'Neil", None), ("山田", datetime.date(2001, 1, 1))])  # fmt: skip
            wanted = [("O'Neil", None), ("Zoë Müller", datetime.date(1990, 5, 17)), ("山田", datetime.date(2001, 1, 1))]
            expect(self.query(connection, "SELECT name, born FROM dbo.authors ORDER BY name"), wanted, "many rows inserted")
            connection.rollback()

    def results(self):
        with self.connect() as connection:
            cursor = self.execute(connection, "DECLARE @n int = 0 WHILE @n < 3 BEGIN SET @n = @n + 1 SELECT @n AS n, @n * @n AS square END")
            for n in range(1, 4):
                expect([column[0] for column in cursor.description], ["n", "square"], "names of the columns")
                expect(rows_of(cursor.fetchall()), [(n, n * n)], f"result set {n}")
                expect(bool(cursor.nextset()), n < 3, f"another result set after {n}")
            cursor = self.execute(connection, "EXEC dbo.three_results ?", 4)
            sets = [rows_of(cursor.fetchall())]
            while cursor.nextset():
                if cursor.description:
                    sets.append(rows_of(cursor.fetchall()))
            # Whether one without rows is told apart from a count of rows is the driver's affair.
            expect([rows for rows in sets if rows], [[(4,)], [(4, "x"), (5, None)]], "result sets of a procedure")
            [(n, large)] = self.query(connection, "SELECT COUNT(*), REPLICATE(CAST('z' AS varchar(max)), 1000000) FROM dbo.numbers")
            expect((n, len(large)), (1000, 1_000_000), "a large value")
            expect(len(self.query(connection, "SELECT a.n, b.n FROM dbo.numbers AS a CROSS JOIN dbo.numbers AS b WHERE a.n <= 20")), 20_000, "many rows")

    def output(self):
        with self.connect(autocommit=True) as connection:
            for arguments, total in (((1, 2), 3), ((10,), 15), ((-5, None), None)):
                told = self.call(connection, arguments)
                expect((told[0], told[1]), (total, "É!"), f"add_up{arguments}")
                if told[2] is not None:
                    expect(told[2], 7, "the status")

    def tables(self):
        with self.connect(autocommit=True) as connection:
            rows = [(n, None if n % 3 == 0 else f"line {n:04d} é", D("0.25")) for n in range(1, 1001)]
            expect(tuple(self.table(connection, rows, 501)), (500, D("125.00"), "line 1000 é"), "a table of a thousand rows")
            expect(tuple(self.table(connection, [], 1)), (0, None, None), "a table of no row")

    def cursors(self):
        with self.connect() as connection:
            self.execute(connection, "DECLARE every CURSOR GLOBAL SCROLL STATIC FOR SELECT n, name FROM dbo.numbers WHERE n <= 5 ORDER BY n OPEN every")
            for how, n in (("NEXT", 1), ("LAST", 5), ("PRIOR", 4), ("FIRST", 1), ("ABSOLUTE 3", 3), ("RELATIVE 2", 5)):
                expect(self.query(connection, f"FETCH {how} FROM every"), [(n, f"number {n}")], f"FETCH {how}")
            self.execute(connection, "CLOSE every DEALLOCATE every")
            connection.rollback()
            self.driver_cursors(connection)

    def transactions(self):
        with self.connect() as connection, self.connect() as other:
            balance = "SELECT balance FROM dbo.accounts ORDER BY id"
            for end in (connection.rollback, connection.commit):
                before = self.query(other, balance)
                other.rollback()
                self.execute(connection, "UPDATE dbo.accounts SET balance = balance - 30 WHERE id = 1")
                self.execute(connection, "UPDATE dbo.accounts SET balance = balance + 30 WHERE id = 2")
                within = self.query(connection, "SELECT @@TRANCOUNT, balance FROM dbo.accounts WHERE id = 2")
                expect(within, [(1, before[1][0] + 30)], "inside the transaction")
                expect(self.query(other, balance), before, "seen by another")
                other.rollback()
                end()
                wanted = before if end == connection.rollback else [(before[0][0] - 30,), (before[1][0] + 30,)]
                expect(self.query(connection, balance), wanted, "after its end")
                connection.rollback()
            self.execute(connection, "SAVE TRANSACTION here")
            self.execute(connection, "DELETE dbo.accounts")
            self.execute(connection, "ROLLBACK TRANSACTION here")
            expect(self.query(connection, "SELECT COUNT(*) FROM dbo.accounts"), [(2,)], "after rolling back to a savepoint")
            connection.rollback()

    def bulk_row(self, n):
        at = datetime.datetime(2008, 7, 31) + datetime.timedelta(seconds=n, milliseconds=n % 1000)
        name = None if n % 7 == 0 else f"Zeile {n} für alle"
        return n, name, n / 4, D(n) / 100, at, n % 2 == 0, n.to_bytes(4, "big"), "ü" * (1 + n % 50)

    def check_bulk(self):
        with self.connect() as connection:
            rows = self.rows_bulk
            begin = time.monotonic()
            self.bulk(connection, [self.bulk_row(n) for n in range(rows)])
            connection.commit()
            print(f"  {rows / (time.monotonic() - begin):,.0f} rows a second")
            sums = self.query(connection, "SELECT COUNT(*), COUNT(name), SUM(CAST(id AS bigint)), SUM(price), SUM(LEN(long)) FROM dbo.loaded")
            wanted = (rows, rows - (rows + 6) // 7, rows * (rows - 1) // 2, D(rows * (rows - 1) // 2) / 100, sum(1 + n % 50 for n in range(rows)))
            expect(sums, [wanted], "sums of the rows")
            for n in (0, 1, 999, rows // 2, rows - 1):
                expect(self.query(connection, "SELECT * FROM dbo.loaded WHERE id = ?", n), [self.bulk_row(n)], f"row {n}")

    def check_cancel(self):
        with self.connect(autocommit=True) as connection:
            cursor = connection.cursor()
            # A driver without a cancel says so before the loop begins.
            self.can_cancel()
            begin = time.monotonic()
            timer = threading.Timer(0.5, lambda: self.cancel(connection, cursor))
            timer.start()
            try:
                cursor.execute(ENDLESS)
                while cursor.nextset():
                    pass
            except self.error:
                pass
            else:
                raise Refused("a loop without end ended without an error")
            finally:
                timer.join()
            if time.monotonic() - begin > WAITED_SECONDS_MAX:
                raise Refused("the cancellation took too long")
            expect(self.query(connection, "SELECT 5"), [(5,)], "a query afterwards")

    def can_cancel(self):
        if type(self).cancel is Checks.cancel:
            raise Without("cancelling is not offered")

    def timeout(self):
        connection = self.connect(autocommit=True, timeout=1)
        begin = time.monotonic()
        try:
            self.execute(connection, ENDLESS)
        except self.error as error:
            if not self.is_timeout(error):
                raise
        else:
            raise Refused("a loop without end ended")
        if time.monotonic() - begin > WAITED_SECONDS_MAX:
            raise Refused("the time-out took too long")
        self.after_timeout(connection)

    def after_timeout(self, connection):
        """The connection goes on, with drivers that keep it."""
        expect(self.query(connection, "SELECT 6"), [(6,)], "a query afterwards")
        connection.close()

    def errors(self):
        cases = [
            ("\n\nSELECT * FROM dbo.nonesuch", (), 208, 16, 1, 3, "", "Invalid object name 'dbo.nonesuch'."),
            ("\nINSERT dbo.accounts VALUES (1, 1)", (), 2627, 14, 1, 2, "", "Violation of PRIMARY KEY constraint 'PK_accounts'."),
            ("DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", (), 8134, 16, 1, 4, "", "Divide by zero error encountered."),
            ("SELECT\n FROM", (), 156, 15, 1, 2, "", "Incorrect syntax near the keyword 'FROM'."),
            ("INSERT dbo.books (author, number) VALUES (999, 1)", (), 547, 16, 0, 1, "", 'conflicted with the FOREIGN KEY constraint "FK_books_author"'),
            ("SELECT CAST(? AS int)", ("x",), 245, 16, 1, 1, "", "Conversion failed when converting the"),
            ("EXEC dbo.fails 1", (), 50000, 14, 9, 4, "fails", "told by fails"),
            ("EXEC dbo.fails 2", (), 8134, 16, 1, 6, "fails", "Divide by zero error encountered."),
            ("EXEC dbo.fails 3", (), 2627, 14, 1, 8, "fails", "Violation of PRIMARY KEY constraint"),
            ("EXEC dbo.fails 4", (), 50123, 16, 5, 10, "fails", "thrown"),
        ]
        with self.connect(autocommit=True) as connection:
            for sql, parameters, number, severity, state, line, procedure, message in cases:
                told = self.failing(connection, sql, *parameters)
                wanted = {"number": number, "severity": severity, "state": state, "line": line, "procedure": procedure}
                for name, value in wanted.items():
                    if name in told:
                        got = told[name].removeprefix("dbo.") if name == "procedure" else told[name]
                        expect(got, value, f"{name} of {sql!r}")
                if message not in told["message"]:
                    raise Refused(f"message of {sql!r}: {told['message']}")
                expect(self.query(connection, "SELECT 7"), [(7,)], f"a query after {sql!r}")

    def metadata(self):
        with self.connect(autocommit=True) as connection:

            def named(sql, *columns):
                cursor = self.execute(connection, sql)
                names = [column[0] for column in cursor.description]
                places = [names.index(column) for column in columns]
                return [tuple(row[place] for place in places) for row in cursor.fetchall()]

            tables = named("EXEC sp_tables @table_type = '''TABLE'''", "TABLE_QUALIFIER", "TABLE_OWNER", "TABLE_NAME", "TABLE_TYPE")
            if ("checks", "dbo", "books", "TABLE") not in tables:
                raise Refused(f"sp_tables: {tables}")
            columns = named("EXEC sp_columns 'books'", "COLUMN_NAME", "TYPE_NAME", "NULLABLE", "COLUMN_DEF", "ORDINAL_POSITION")
            wanted = [("author", "int", 0, None, 1), ("number", "smallint", 0, None, 2), ("title", "varchar", 0, "('(untitled)')", 3), ("price", "decimal", 1, None, 4)]
            expect(columns, wanted, "sp_columns")
            expect(named("EXEC sp_pkeys 'books'", "COLUMN_NAME", "KEY_SEQ", "PK_NAME"), [("author", 1, "PK_books"), ("number", 2, "PK_books")], "sp_pkeys")
            keys = named("EXEC sp_fkeys @fktable_name = 'books'", "PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "FK_NAME", "PK_NAME")
            expect(keys, [("authors", "id", "books", "author", "FK_books_author", "PK_authors")], "sp_fkeys")
            found = named("EXEC sp_statistics 'books'", "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE")
            for index in (("PK_books", "author", 0), ("PK_books", "number", 0), ("IX_books_title", "title", 1)):
                if index not in found:
                    raise Refused(f"sp_statistics: {found}")
            if ("add_up;1",) not in named("EXEC sp_stored_procedures", "PROCEDURE_NAME"):
                raise Refused("sp_stored_procedures does not tell of add_up")
            parameters = named("EXEC sp_sproc_columns 'add_up'", "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME")
            wanted = [("@RETURN_VALUE", 5, "int"), ("@a", 1, "int"), ("@b", 1, "int"), ("@sum", 2, "int"), ("@text", 2, "nvarchar")]
            expect(parameters, wanted, "sp_sproc_columns")
            expect(named("EXEC sp_special_columns 'books'", "COLUMN_NAME"), [("author",), ("number",)], "sp_special_columns")
            described = named("EXEC sp_describe_first_result_set N'SELECT n, name FROM dbo.numbers'", "name", "system_type_name", "is_nullable")
            expect(described, [("n", "int", False), ("name", "nvarchar(20)", True)], "sp_describe_first_result_set")
            types = {row[0] for row in named("EXEC sp_datatype_info", "TYPE_NAME")}
            if not {"int", "nvarchar", "datetime2", "decimal() identity"} <= types:
                raise Refused(f"sp_datatype_info: {sorted(types)}")
            self.driver_metadata(connection)


def odbc_metadata(cursor, referring="foreignTable"):
    """The calls of ODBC's catalogue, as pyodbc and mssql-python name them; `referring` is what names a key's own table."""

    def named(found, *columns):
        names = [column[0].lower() for column in found.description]
        return [tuple(row[names.index(column)] for column in columns) for row in found.fetchall()]

    expect(named(cursor.tables(table="books"), "table_schem", "table_name", "table_type"), [("dbo", "books", "TABLE")], "tables")
    expect(named(cursor.columns(table="books"), "column_name", "type_name"), [("author", "int"), ("number", "smallint"), ("title", "varchar"), ("price", "decimal")], "columns")
    expect(named(cursor.primaryKeys("books"), "column_name", "pk_name"), [("author", "PK_books"), ("number", "PK_books")], "primaryKeys")
    expect(named(cursor.foreignKeys(**{referring: "books"}), "pktable_name", "fkcolumn_name", "fk_name"), [("authors", "author", "FK_books_author")], "foreignKeys")
    found = named(cursor.statistics("books"), "index_name", "column_name")
    expect({("PK_books", "author"), ("IX_books_title", "title")} <= set(found), True, f"statistics {found}")
    expect(("add_up;1",) in named(cursor.procedures(), "procedure_name"), True, "procedures")
    expect(("int",) in named(cursor.getTypeInfo(), "type_name"), True, "getTypeInfo")
    expect(named(cursor.rowIdColumns("authors"), "column_name"), [("id",)], "rowIdColumns")


def run(driver):
    """Runs the checks named in the arguments, or all."""
    checks = driver()
    methods = {"bulk": checks.check_bulk, "cancel": checks.check_cancel}
    failed = 0
    names = "login types parameters results output tables cursors transactions bulk cancel timeout errors metadata".split()
    for name in [name for name in names if name in sys.argv[1:] or len(sys.argv) == 1]:
        try:
            methods.get(name, getattr(checks, name))()
        except Without as why:
            print(f"none {name}: {why}", flush=True)
        except Exception as error:  # noqa: BLE001 - every failure is told, and the others run
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {name}: {error!r}"[:1000], flush=True)
        else:
            print(f"ok {name}", flush=True)
    sys.stdout.flush()
    # Drivers with threads of their own are not waited for.
    os._exit(1 if failed else 0)
