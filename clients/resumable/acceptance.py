"""Index builds that are stopped again and again, through a real client: what stops cost, and that nothing else changes.

Claim: a resumable build that a full log, PAUSE, SIGKILL, KILL, a full data file, an attention or a shutdown stops takes no
longer than one that nothing stops, apart from what lies between; it loses at most 100,000 rows to a crash and none to
anything else; its percentage rises from stop to stop; the index is right in the end.

Method: a table like Stack Overflow's Votes is made on a server of its own; the index on PostId is built offline, online
and resumably; then again through each kind of stop. Times are those of the statements that build: log backups, restarts
and reconnecting lie between them and are told apart; they are set against builds that nothing stops just before and just
after, and where each stop empties the server's memory, against such builds on a server just started. What is right is
asked of DBCC CHECKTABLE and of the sums of both indexes. Counts are checked always; ratios of times only with --times, because a shared machine has no times.

    python acceptance.py --server target/release/thawdb [--rows 300000] [--log 512MB --log 64MB ...] [--case NAME ...] [--times]

The log's size is for 52,928,720 rows and scaled to the rows there are, but never below 1 MB. One line of figures a case.
"""

import argparse
import itertools
import pathlib
import random
import re
import sys
import threading
import time
import traceback

import pymssql

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from server import Server  # noqa: E402

FULL_ROWS = 52_928_720
REDONE_ROWS_MAX = 100_000
LOAD_ROWS = 1_000_000
CREATE = "CREATE NONCLUSTERED INDEX i ON dbo.Votes(PostId) WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1);"
RESUME = "ALTER INDEX i ON dbo.Votes RESUME;"
TABLE = (
    "CREATE TABLE dbo.Votes (Id int IDENTITY PRIMARY KEY CLUSTERED, PostId int NOT NULL, UserId int NULL, "
    "BountyAmount int NULL, VoteTypeId int NOT NULL, CreationDate datetime NOT NULL)"
)
STATE = (
    "SELECT o.rows_scanned, o.rows_appended, o.rows_processed, r.percent_complete, o.is_kept_in_memory, r.state "
    "FROM sys.thawdb_index_operations AS o JOIN sys.index_resumable_operations AS r "
    "ON r.object_id = o.object_id AND r.index_id = o.index_id"
)
# The script as it was published, but for what it says when the log is full: the same text at every size of the log.
SCRIPT = """
SET NOCOUNT, XACT_ABORT ON;
DROP INDEX IF EXISTS i ON dbo.Votes;
DECLARE @t0 datetime2 = SYSUTCDATETIME(), @sec integer,
        @sql nvarchar(max) = N'CREATE NONCLUSTERED INDEX i ON dbo.Votes(PostId)
             WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1);';
Again:
BEGIN TRY
  EXECUTE (@sql);
  SET @sec = DATEDIFF(SECOND, @t0, SYSUTCDATETIME());
  RAISERROR ('Completed after %i seconds.', 0, 1, @sec);
END TRY
BEGIN CATCH
  IF ERROR_NUMBER() = 9002
  BEGIN
    DECLARE @pc integer = (SELECT TOP (1) CONVERT(integer, FLOOR(r.percent_complete))
      FROM sys.index_resumable_operations AS r
      WHERE r.object_id = OBJECT_ID(N'dbo.Votes','U') AND r.name = N'i');
    RAISERROR ('Log full at %i%% complete.', 0, 1, @pc);
    IF @@TRANCOUNT <> 0 RAISERROR ('A transaction is open.', 0, 1);
    BACKUP LOG SO TO DISK = 'NUL';
    SET @sql = N'ALTER INDEX i ON dbo.Votes RESUME;';
    GOTO Again;
  END;
  THROW;
END CATCH;
"""


class Refused(Exception):
    """A check that did not hold."""


def expect(holds, what):
    if not holds:
        raise Refused(what)


def megabytes(text):
    number, unit = re.fullmatch(r"(\d+)(MB|GB)", text.upper()).groups()
    return int(number) * (1024 if unit == "GB" else 1)


class Stage:
    """The server with its table, and what an uninterrupted build took just before."""

    def __init__(self, server, options):
        self.server, self.options, self.rows = server, options, options.rows
        self.before = 0.0
        self.random = random.Random(options.seed)

    def connect(self, database="SO"):
        return pymssql.connect(**self.server.login(), database=database, autocommit=True, login_timeout=60)

    def execute(self, *statements):
        with self.connect() as connection:
            for statement in statements:
                connection.cursor().execute(statement)

    def ask(self, query):
        with self.connect() as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return cursor.fetchone()

    def load(self):
        with self.connect("master") as connection:
            connection.cursor().execute("CREATE DATABASE SO")
        log_name = self.ask("SELECT name FROM sys.database_files WHERE type = 1")[0]
        if log_name != "SO_log":
            self.execute(f"ALTER DATABASE SO MODIFY FILE (NAME = [{log_name}], NEWNAME = SO_log)")
        self.execute("ALTER DATABASE SO SET RECOVERY SIMPLE", TABLE)
        begin, posts = time.monotonic(), max(self.rows * 39 // 100, 1)
        with self.connect() as connection:
            for first in range(1, self.rows + 1, LOAD_ROWS):
                last = min(first + LOAD_ROWS - 1, self.rows)
                connection.cursor().execute(
                    "INSERT dbo.Votes WITH (TABLOCK) (PostId, UserId, BountyAmount, VoteTypeId, CreationDate) "
                    f"SELECT CONVERT(int, (CONVERT(bigint, value) * 2654435761 % 4294967296) * {posts} / 4294967296) + 1, "
                    "IIF(value % 9 = 0, value % 1000003, NULL), IIF(value % 101 = 0, 50, NULL), value % 15 + 1, "
                    f"DATEADD(day, value / {self.rows // 1980 + 1}, '20080731') FROM GENERATE_SERIES({first}, {last})"
                )
        self.execute(
            "ALTER DATABASE SO SET RECOVERY FULL",
            "BACKUP DATABASE SO TO DISK = 'NUL'",
            "BACKUP LOG SO TO DISK = 'NUL'",
        )
        print(f"{self.rows:,} rows loaded in {time.monotonic() - begin:.1f} s", flush=True)

    def cut_log(self, size):
        """Cuts the log to what `size` is for as many rows as there are; tells its megabytes."""
        wanted = max(size * self.rows // FULL_ROWS, 1)
        self.execute("ALTER DATABASE SO MODIFY FILE (NAME = SO_log, FILEGROWTH = 0KB)")
        for _ in range(2):
            self.execute("BACKUP LOG SO TO DISK = 'NUL'", f"DBCC SHRINKFILE (SO_log, {wanted}) WITH NO_INFOMSGS")
        return self.ask("SELECT size / 128 FROM sys.database_files WHERE type = 1")[0]

    def free_log(self):
        """A log that never stops anything."""
        self.execute("BACKUP LOG SO TO DISK = 'NUL'", "ALTER DATABASE SO MODIFY FILE (NAME = SO_log, FILEGROWTH = 64MB)")

    def state(self, connection=None):
        """Rows scanned, rows appended, rows processed in this life, per cent, whether it is kept, 1 if it is paused; None
        without operation."""
        if connection is None:
            return self.ask(STATE)
        cursor = connection.cursor()
        cursor.execute(STATE)
        return cursor.fetchone()

    def paused(self):
        """The same once nobody works on it: a client may hear of the end before the server has seen to it."""
        for _ in range(2000):
            state = self.state()
            if state is None or state[5] == 1:
                return state
            time.sleep(0.005)
        raise Refused("the operation does not stop")

    def has_index(self):
        return self.ask("SELECT COUNT(*) FROM sys.indexes WHERE name = 'i'")[0] == 1

    def is_right(self):
        """The index has what the table has."""
        with self.connect() as connection:
            cursor = connection.cursor()
            cursor.execute("DBCC CHECKTABLE ('dbo.Votes') WITH NO_INFOMSGS")
            sums = "SELECT COUNT_BIG(*), CHECKSUM_AGG(CHECKSUM(PostId, Id)) FROM dbo.Votes WITH (INDEX({}))"
            found = []
            for index in ("1", "i"):
                cursor.execute(sums.format(index))
                found.append(cursor.fetchone())
            expect(found[0] == found[1], f"the table has {found[0]}, the index {found[1]}")
            cursor.execute("SELECT COUNT(*) FROM sys.index_resumable_operations")
            expect(cursor.fetchone()[0] == 0, "an operation is left")
        self.execute("DROP INDEX i ON dbo.Votes", "BACKUP LOG SO TO DISK = 'NUL'")

    def reference(self, cold=False):
        """Seconds of a resumable build that nothing stops, now: machines drift. A cold one has nothing in memory."""
        self.free_log()
        if cold:
            self.server.kill()
            self.server.start()
        attempt = Attempt(self, CREATE).end()
        expect(attempt.error is None, f"stopped by {attempt.error}")
        self.execute("DROP INDEX i ON dbo.Votes", "BACKUP LOG SO TO DISK = 'NUL'")
        return attempt.seconds

    def ratio(self, name, seconds, most, cold=False):
        """Seconds over those of uninterrupted builds before and after; checked if times are."""
        if not self.options.times:
            return f"{seconds:.2f} s"
        references = (self.before, self.reference(cold))
        ratio = seconds / (sum(references) / 2)
        expect(ratio <= most, f"{name}: {seconds:.2f} s, {ratio:.2f} of {references[0]:.2f} and {references[1]:.2f} s, at most {most}")
        return f"{seconds:.2f} s, {ratio:.2f} of {references[0]:.2f} before and {references[1]:.2f} s after (at most {most})"


class Attempt(threading.Thread):
    """A statement on a connection of its own; what it failed with, and how long it ran."""

    def __init__(self, stage, statement, timeout=0):
        super().__init__(daemon=True)
        self.stage, self.statement, self.error, self.seconds = stage, statement, None, 0.0
        self.connection = stage.connect()
        # The library has one time for all connections of the process.
        self.connection._conn.query_timeout = timeout
        self.session = self.connection.cursor()
        self.session.execute("SELECT @@SPID")
        self.spid = self.session.fetchone()[0]
        self.begin = time.monotonic()
        self.start()

    def run(self):
        try:
            self.session.execute(self.statement)
        except pymssql.Error as error:
            self.error = error
        self.seconds = time.monotonic() - self.begin

    def end(self, seconds=600):
        self.join(seconds)
        expect(not self.is_alive(), f"{self.statement} does not end")
        try:
            self.connection._conn.query_timeout = 0
            self.connection.close()
        except pymssql.Error:
            pass  # It was closed from the other side.
        return self

    def number(self):
        """The error's number; 0 if there was none."""
        return self.error.args[0] if self.error and self.error.args and isinstance(self.error.args[0], int) else -1 if self.error else 0


class Stops:
    """Stops one after another, and what must hold of each."""

    def __init__(self, stage):
        self.stage, self.percents, self.seconds, self.count, self.intervals = stage, [], 0.0, 0, []
        self.done, self.next = (0, 0), CREATE

    def stopped(self, attempt, state, strictly=False):
        """Notes a stop with the operation's state after it."""
        self.seconds += attempt.seconds
        self.count += 1
        percent = state[3]
        if self.percents:
            rises = percent > self.percents[-1] if strictly else percent >= self.percents[-1]
            expect(rises, f"from {self.percents[-1]} to {percent} per cent at stop {self.count}")
        self.percents.append(percent)
        rows = state[0] + state[1]
        self.intervals.append((rows - sum(self.done), attempt.seconds, state[1] > 0 and self.done[1] == 0, state[1] > 0))
        self.done, self.next = (state[0], state[1]), RESUME

    def ended(self, attempt):
        expect(attempt.error is None, f"the build ended with {attempt.error}")
        self.seconds += attempt.seconds

    def rates(self):
        """Least and greatest rows a second of the intervals of each phase, those apart that belong to both or are short."""
        told = []
        for merging, name in ((False, "scan"), (True, "merge")):
            rates = [rows / seconds for rows, seconds, both, of in self.intervals if of == merging and not both and seconds > 0]
            if len(rates) > 1:
                told.append(f"{name} {min(rates):,.0f} to {max(rates):,.0f} rows/s in {len(rates)} intervals")
        return "; ".join(told)


def uninterrupted(stage):
    """Offline, online, resumable: seconds and log."""
    kinds = (("offline", "ONLINE = OFF"), ("online", "ONLINE = ON, RESUMABLE = OFF"), ("resumable", "ONLINE = ON, RESUMABLE = ON"))
    # One unmeasured, so that all begin alike.
    stage.execute("CREATE INDEX i ON dbo.Votes(PostId); DROP INDEX i ON dbo.Votes", "BACKUP LOG SO TO DISK = 'NUL'")
    told = []
    for name, options in kinds:
        used = "SELECT used_log_space_in_bytes FROM sys.dm_db_log_space_usage"
        before = stage.ask(used)[0]
        attempt = Attempt(stage, f"CREATE NONCLUSTERED INDEX i ON dbo.Votes(PostId) WITH ({options}, MAXDOP = 1)").end()
        expect(attempt.error is None, f"{name}: {attempt.error}")
        log = stage.ask(used)[0] - before
        told.append(f"{name} {attempt.seconds:.2f} s, {log:,} bytes of log")
        stage.is_right()
    return "; ".join(told)


def script(stage, size):
    """The published script through a small log, unchanged."""
    log = stage.cut_log(size)
    said = []
    with stage.connect() as connection:
        connection._conn.set_msghandler(lambda state, severity, server, procedure, line, text: said.append(text.decode()))
        begin = time.monotonic()
        connection.cursor().execute(SCRIPT)
        seconds = time.monotonic() - begin
    text = "\n".join(said)
    stops = [int(percent) for percent in re.findall(r"Log full at (\d+)% complete", text)]
    expect("Completed after" in text, f"it did not complete: {text[-500:]}")
    expect("A transaction is open" not in text, "a transaction is open in CATCH")
    expect(stops == sorted(stops), f"percentages fall: {stops}")
    stage.is_right()
    return f"log of {log} MB: {len(stops)} stops at {stops} per cent; {seconds:.2f} s with the backups"


def full_log(stage, size):
    """The same from the client, each statement's time apart."""
    log = stage.cut_log(size)
    stops, backups = Stops(stage), 0.0
    used = stage.ask("SELECT SUM(num_of_bytes_written) FROM sys.dm_io_virtual_file_stats(DB_ID(), 2)")[0]
    while True:
        attempt = Attempt(stage, stops.next).end()
        if attempt.error is None:
            stops.ended(attempt)
            break
        expect(attempt.number() == 9002, f"stopped by {attempt.error}")
        stops.stopped(attempt, stage.state(), strictly=True)
        begin = time.monotonic()
        stage.execute("BACKUP LOG SO TO DISK = 'NUL'")
        backups += time.monotonic() - begin
    written = stage.ask("SELECT SUM(num_of_bytes_written) FROM sys.dm_io_virtual_file_stats(DB_ID(), 2)")[0] - used
    # A log that is a part of what the build writes is full that often at least; what it keeps free for rollbacks comes on top.
    least = int(written / (log << 20))
    expect(stops.count >= least, f"{stops.count} stops, {written:,} bytes through a log of {log} MB")
    stage.is_right()
    figures = stage.ratio("full log", stops.seconds, 1.1)
    return f"log of {log} MB: {stops.count} stops; {figures}; backups {backups:.2f} s; {written:,} bytes of log; {stops.rates()}"


def pauses(stage):
    """PAUSE and RESUME from a second connection."""
    stage.free_log()
    stops, wanted = Stops(stage), stage.options.pauses
    each = 2 * stage.rows / (wanted + 1)
    with stage.connect() as other:
        while True:
            attempt = Attempt(stage, stops.next)
            while stops.count < wanted and attempt.is_alive():
                state = stage.state(other)
                # One that is beyond its mark may not have been taken up again yet.
                if state and state[5] == 0 and state[0] + state[1] >= each * (stops.count + 1):
                    try:
                        other.cursor().execute("ALTER INDEX i ON dbo.Votes PAUSE")
                        break
                    except pymssql.Error:
                        pass  # It was done, or about to be.
                time.sleep(0.001)
            attempt.end()
            state = stage.paused()
            if state is None:
                stops.ended(attempt)
                break
            expect(attempt.error is not None, "it ended and is there")
            expect(state[4], "a paused build is kept")
            stops.stopped(attempt, state)
        # Of few rows a build is over before a second client has looked twice.
        expect(stage.rows < 5_000_000 or stops.count >= wanted // 2, f"only {stops.count} pauses")
    stage.is_right()
    return f"{stops.count} pauses; {stage.ratio('pauses', stops.seconds, 1.3)}"


def kills(stage):
    """SIGKILL at random moments: rows done again, by the server's own count."""
    if stage.options.times:
        warm, stage.before = stage.before, stage.reference(cold=True)
    stage.free_log()
    stops, wanted, redone, restarts = Stops(stage), stage.options.kills, [], 0.0
    while True:
        other = stage.connect()
        before = sum(stops.done)
        target = before + stage.random.randrange(1, max(2, 4 * stage.rows // (wanted + 1)))
        attempt, seen = Attempt(stage, stops.next), 0
        while attempt.is_alive() and stops.count < wanted:
            state = stage.state(other)
            if state:
                seen = max(seen, before + state[2])
                if seen >= target:
                    stage.server.kill()
                    break
            time.sleep(0.001)
        attempt.end()
        if stage.server.process.poll() is None:
            expect(stage.state(other) is None, f"stopped by {attempt.error}")
            stops.ended(attempt)
            break
        begin = time.monotonic()
        stage.server.start()
        state = stage.paused()
        restarts += time.monotonic() - begin
        if state is None:
            # It was done, or had not begun.
            if stage.has_index():
                stops.seconds += attempt.seconds
                break
            continue
        redone.append(max(0, seen - state[0] - state[1]))
        expect(redone[-1] <= REDONE_ROWS_MAX, f"{redone[-1]} rows are done again")
        stops.stopped(attempt, state)
    stage.is_right()
    most, mean = max(redone, default=0), sum(redone) / max(1, len(redone))
    figures = stage.ratio("kills", stops.seconds, 1.1, cold=True)
    if stage.options.times:
        figures += f", {stops.seconds / warm:.2f} of {warm:.2f} s with all in memory"
    return f"{stops.count} kills; {figures}; rows done again at most {most:,}, {mean:,.0f} on average; restarts {restarts:.2f} s"


def stopped_by(stage, name, number, stop, prepare=lambda: None, mend=lambda: None, timeout=0, lead=lambda turn: 0, cold=False):
    """So many stops by whatever `stop` does once the build has gone on for a while, which begins `lead` milliseconds after its batch."""
    if cold and stage.options.times:
        stage.before = stage.reference(cold)
    stage.free_log()
    stops, wanted = Stops(stage), stage.options.stops
    each = 2 * stage.rows / (wanted + 1)
    for turn in itertools.count():
        stopping = turn < wanted
        if stopping:
            prepare()
        wait = lead(turn) if stopping else 0
        stops.seconds -= wait / 1000
        attempt = Attempt(stage, f"WAITFOR DELAY '00:00:00.{wait:03}'; " * (wait > 0) + stops.next, timeout if stopping else 0)
        if stop and stopping:
            with stage.connect() as other:
                while attempt.is_alive():
                    state = stage.state(other)
                    if state and state[5] == 0 and state[0] + state[1] >= each * (stops.count + 1):
                        stop(attempt)
                        break
                    time.sleep(0.001)
        attempt.end()
        mend()
        state = stage.paused()
        if state is not None or attempt.error is not None:
            expect(number is None or attempt.number() in number, f"{name}: stopped by {attempt.error}")
        if state is not None:
            stops.stopped(attempt, state)
        elif stopping and attempt.error is not None:
            # It came too late to stop the build, which is done, or before it had begun.
            stops.seconds += attempt.seconds
            if stage.has_index():
                break
        else:
            stops.ended(attempt)
            break
    # Of few rows a build is over before it can be stopped.
    expect(stage.rows < 5_000_000 or stops.count >= wanted // 2, f"only {stops.count} stops")
    stage.is_right()
    return f"{stops.count} stops by {name}; {stage.ratio(name, stops.seconds, 1.1, cold)}"


def session_kills(stage):
    def stop(attempt):
        with stage.connect() as other:
            try:
                other.cursor().execute(f"KILL {attempt.spid}")
            except pymssql.Error:
                pass  # It has ended.
    return stopped_by(stage, "KILL", None, stop)


def full_file(stage):
    """1105: the data file may not grow, then it may a little."""
    name = stage.ask("SELECT name FROM sys.database_files WHERE type = 0")[0]
    size = "SELECT size / 128 FROM sys.database_files WHERE type = 0"
    used = "SELECT SUM(total_page_count - unallocated_extent_page_count) / 128 FROM sys.dm_db_file_space_usage"
    step = max(1, stage.rows * 40 // (stage.options.stops << 20))
    stage.execute(f"ALTER DATABASE SO MODIFY FILE (NAME = [{name}], FILEGROWTH = 1MB)")
    # What dropped indexes left free would hold the index.
    stage.execute(f"DBCC SHRINKFILE ([{name}]) WITH NO_INFOMSGS", "CREATE TABLE dbo.filler (c char(8000) NOT NULL)")
    for _ in range(100):
        free = stage.ask(size)[0] - stage.ask(used)[0] - step
        if free <= 0:
            break
        stage.execute(f"INSERT dbo.filler WITH (TABLOCK) SELECT 'x' FROM GENERATE_SERIES(1, {free * 120})")
    else:
        raise Refused(f"{free} MB of the file stay free")
    stage.free_log()

    def prepare():
        room = max(stage.ask(size)[0], stage.ask(used)[0] + step)
        stage.execute(f"ALTER DATABASE SO MODIFY FILE (NAME = [{name}], MAXSIZE = {room + 1}MB)")

    def mend():
        stage.execute(f"ALTER DATABASE SO MODIFY FILE (NAME = [{name}], MAXSIZE = UNLIMITED)")

    try:
        return stopped_by(stage, "1105", (1105,), None, prepare, mend)
    finally:
        stage.execute(f"ALTER DATABASE SO MODIFY FILE (NAME = [{name}], MAXSIZE = UNLIMITED, FILEGROWTH = 64MB)", "DROP TABLE dbo.filler")


def attentions(stage):
    """The client gives up after a second, of which the build has the end."""
    return stopped_by(stage, "attention", None, None, timeout=1, lead=lambda turn: 999 - 10 * turn)


def shutdowns(stage):
    def stop(_):
        stage.server.stop()

    def mend():
        if stage.server.process.poll() is not None:
            stage.server.start()

    return stopped_by(stage, "shutdown", None, stop, mend=mend, cold=True)


def writers(stage):
    """Eight writers without a build, and beside one."""
    stage.free_log()
    stop, counts = threading.Event(), [0] * 8

    def write(place):
        dice = random.Random(place)
        with stage.connect() as connection:
            cursor = connection.cursor()
            while not stop.is_set():
                key = dice.randrange(1, stage.rows + 1)
                turn = dice.randrange(10)
                if turn < 6:
                    cursor.execute(f"UPDATE dbo.Votes SET PostId = {dice.randrange(1, stage.rows)} WHERE Id = {key}")
                elif turn < 8:
                    cursor.execute(f"INSERT dbo.Votes (PostId, VoteTypeId, CreationDate) VALUES ({key}, 2, '20130101')")
                else:
                    cursor.execute(f"DELETE dbo.Votes WHERE Id = {key}")
                counts[place] += 1

    def rate(seconds, until=None):
        before, begin = sum(counts), time.monotonic()
        until.join() if until else time.sleep(seconds)
        return (sum(counts) - before) / (time.monotonic() - begin)

    threads = [threading.Thread(target=write, args=(place,), daemon=True) for place in range(8)]
    [thread.start() for thread in threads]
    seconds = stage.options.seconds
    rate(min(1, seconds))
    alone = rate(seconds)
    attempt = Attempt(stage, CREATE)
    beside = rate(0, attempt)
    attempt.end()
    again = rate(seconds)
    stop.set()
    [thread.join() for thread in threads]
    expect(attempt.error is None, f"the build ended with {attempt.error}")
    stage.is_right()
    loss = 1 - beside / ((alone + again) / 2)
    expect(not stage.options.times or loss <= 0.1, f"writers lose {loss:.0%}")
    return f"eight writers: {alone:,.0f} and {again:,.0f} statements/s alone, {beside:,.0f} beside a build of {attempt.seconds:.2f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--log", type=megabytes, action="append", help="log for 52,928,720 rows")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--case", action="append")
    parser.add_argument("--pauses", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--stops", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=3.0, help="of writers without a build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", action="store_true", help="check ratios of times too")
    options = parser.parse_args()
    cases = [("uninterrupted", uninterrupted)]
    for size in options.log or [512, 64, 32]:
        cases.append((f"script {size}MB", lambda stage, size=size: script(stage, size)))
        cases.append((f"full log {size}MB", lambda stage, size=size: full_log(stage, size)))
    cases += [("pauses", pauses), ("kills", kills), ("KILL", session_kills), ("1105", full_file), ("attention", attentions),
              ("shutdown", shutdowns), ("writers", writers)]
    passed = failed = 0
    with Server(options.server, "--memory", options.memory) as server:
        stage = Stage(server, options)
        stage.load()
        for name, case in cases:
            if options.case and name != "uninterrupted" and not any(name.startswith(wanted) for wanted in options.case):
                continue
            try:
                if options.times and name != "uninterrupted":
                    stage.before = stage.reference()
                print(f"ok   {name}: {case(stage)}", flush=True)
                passed += 1
            except Exception as error:  # noqa: BLE001 - one case's failure leaves the others
                failed += 1
                print(f"FAIL {name}: {error!r}", flush=True)
                if not isinstance(error, Refused):
                    traceback.print_exc()
                if server.process.poll() is not None:
                    server.start()
                stage.execute(
                    "IF EXISTS (SELECT * FROM sys.index_resumable_operations) ALTER INDEX ALL ON dbo.Votes ABORT",
                    "DROP INDEX IF EXISTS i ON dbo.Votes",
                )
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
