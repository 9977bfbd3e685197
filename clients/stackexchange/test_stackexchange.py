"""Real rows, loaded two ways, asked the same questions as another database.

Claim: the Stack Exchange dump's Votes of two sites and its posts with HTML bodies load through BULK INSERT and through
a driver's bulk copy, and counts, groups and joins over them equal SQLite's over the same rows.

Method: the dump's files (a folder given by --data) become CSV in a temporary folder; a server on a free port loads
them; every question runs on both databases and the answers are compared as sorted rows.

    python test_stackexchange.py --server target/release/thawdb --data FOLDER
"""

import argparse
import csv
import datetime
import pathlib
import sqlite3
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import pymssql

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from server import Server  # noqa: E402

VOTE_COLUMNS = ["Id", "PostId", "VoteTypeId", "UserId", "CreationDate", "BountyAmount"]
CREATE_VOTES = (
    "CREATE TABLE dbo.{} (Id int NOT NULL PRIMARY KEY, PostId int NOT NULL, VoteTypeId int NOT NULL, "
    "UserId int NULL, CreationDate datetime NOT NULL, BountyAmount int NULL)"
)
POST_TYPES = {
    "Id": "int NOT NULL PRIMARY KEY", "PostTypeId": "int NOT NULL", "ParentId": "int NULL", "ViewCount": "int NULL",
    "AcceptedAnswerId": "int NULL", "OwnerUserId": "int NULL", "Score": "int NOT NULL", "FavoriteCount": "int NULL",
    "AnswerCount": "int NULL", "CommentCount": "int NULL", "LastEditorUserId": "int NULL",
    "CreationDate": "datetime NOT NULL", "LastActivityDate": "datetime NOT NULL", "LastEditDate": "datetime NULL",
    "ClosedDate": "datetime NULL", "CommunityOwnedDate": "datetime NULL", "Body": "nvarchar(max) NULL",
}

# Each pair: T-SQL, and the same for SQLite where it differs.
QUESTIONS = [
    ("SELECT COUNT(*) FROM Votes_{site}", None),
    ("SELECT VoteTypeId, COUNT(*) FROM Votes_{site} GROUP BY VoteTypeId", None),
    ("SELECT COUNT(UserId), COUNT(BountyAmount), SUM(BountyAmount), MIN(PostId), MAX(PostId) FROM Votes_{site}", None),
    ("SELECT TOP 20 PostId, COUNT(*) AS n FROM Votes_{site} GROUP BY PostId ORDER BY n DESC, PostId",
     "SELECT PostId, COUNT(*) AS n FROM Votes_{site} GROUP BY PostId ORDER BY n DESC, PostId LIMIT 20"),
    ("SELECT YEAR(CreationDate), COUNT(*) FROM Votes_{site} GROUP BY YEAR(CreationDate)",
     "SELECT CAST(strftime('%Y', CreationDate) AS int), COUNT(*) FROM Votes_{site} GROUP BY 1"),
    ("SELECT VoteTypeId, COUNT(DISTINCT PostId) FROM Votes_{site} GROUP BY VoteTypeId HAVING COUNT(*) > 10", None),
]
POST_QUESTIONS = [
    ("SELECT COUNT(*), SUM(Score), MAX(ViewCount), COUNT(AcceptedAnswerId) FROM Posts", None),
    ("SELECT PostTypeId, COUNT(*), SUM(CommentCount) FROM Posts GROUP BY PostTypeId", None),
    ("SELECT Id, LEN(Body + '.') - 1 FROM Posts", "SELECT Id, length(Body) + length16(Body) FROM Posts"),
    ("SELECT COUNT(*) FROM Posts WHERE Body LIKE '%<blockquote>%'", None),
    ("SELECT p.PostTypeId, v.VoteTypeId, COUNT(*) FROM Posts p JOIN Votes_history v ON v.PostId = p.Id "
     "GROUP BY p.PostTypeId, v.VoteTypeId", None),
    ("SELECT q.Id, COUNT(a.Id), MAX(a.Score) FROM Posts q LEFT JOIN Posts a ON a.ParentId = q.Id "
     "WHERE q.PostTypeId = 1 GROUP BY q.Id", None),
    ("SELECT COUNT(*) FROM Posts p WHERE NOT EXISTS (SELECT * FROM Votes_history v WHERE v.PostId = p.Id)", None),
    ("SELECT OwnerUserId, COUNT(*), SUM(Score) FROM Posts WHERE OwnerUserId IN "
     "(SELECT UserId FROM Votes_history WHERE UserId IS NOT NULL) GROUP BY OwnerUserId", None),
]


def vote_rows(path):
    """Rows of a Votes.xml as tuples of text or None, in the order of VOTE_COLUMNS."""
    for element in ElementTree.parse(path).getroot():
        yield tuple(element.get(column) for column in VOTE_COLUMNS)


def post_rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            yield tuple(row[column] or None for column in POST_TYPES)


def integers(row, names, types):
    """The row with its integer columns as numbers, as both databases shall have them."""
    return tuple(int(v) if v is not None and types[n].startswith("int") else v for v, n in zip(row, names))


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["" if v is None else v for v in row] for row in rows])


def utf16_extra(text):
    """UTF-16 units beyond one a character: what T-SQL's LEN counts more than SQLite's length()."""
    return None if text is None else sum(1 for c in text if ord(c) > 0xFFFF)


def normal(rows):
    """The rows in one order, whatever the database's."""
    return sorted((tuple(row) for row in rows), key=lambda row: [(v is not None, str(v)) for v in row])


class Check:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def equal(self, name, got, expected):
        if got == expected:
            self.passed += 1
            print(f"ok     {name}")
        else:
            self.failed += 1
            print(f"FAILED {name}\n  got      {str(got)[:300]}\n  expected {str(expected)[:300]}")


def load_votes(connection, lite, folder, site, source, check):
    rows = list(vote_rows(source))
    types = dict.fromkeys(VOTE_COLUMNS, "int") | {"CreationDate": "datetime"}
    numbers = [integers(row, VOTE_COLUMNS, types) for row in rows]
    lite.execute(f"CREATE TABLE Votes_{site} ({', '.join(VOTE_COLUMNS)})")
    lite.executemany(f"INSERT INTO Votes_{site} VALUES (?,?,?,?,?,?)", numbers)
    path = folder / f"votes_{site}.csv"
    write_csv(path, rows)
    cursor = connection.cursor()
    cursor.execute(CREATE_VOTES.format(f"Votes_{site}"))
    cursor.execute(f"BULK INSERT dbo.Votes_{site} FROM '{path}' WITH (FORMAT = 'CSV', ROWTERMINATOR = '0x0a', TABLOCK)")
    cursor.execute(CREATE_VOTES.format(f"Driver_{site}"))
    date = VOTE_COLUMNS.index("CreationDate")
    values = [row[:date] + (datetime.datetime.fromisoformat(row[date]),) + row[date + 1:] for row in numbers]
    connection.bulk_copy(f"Driver_{site}", values, batch_size=10_000)
    cursor.execute(
        f"SELECT COUNT(*) FROM Votes_{site} a JOIN Driver_{site} b ON a.Id = b.Id AND a.PostId = b.PostId AND "
        "a.VoteTypeId = b.VoteTypeId AND a.CreationDate = b.CreationDate AND "
        "ISNULL(a.UserId, -7) = ISNULL(b.UserId, -7) AND ISNULL(a.BountyAmount, -7) = ISNULL(b.BountyAmount, -7)"
    )
    check.equal(f"{site}: BULK INSERT and bulk copy agree", cursor.fetchone()[0], len(rows))


def load_posts(connection, lite, folder, source):
    rows = [integers(row, POST_TYPES, POST_TYPES) for row in post_rows(source)]
    lite.execute(f"CREATE TABLE Posts ({', '.join(POST_TYPES)})")
    lite.executemany(f"INSERT INTO Posts VALUES ({','.join('?' * len(POST_TYPES))})", rows)
    path = folder / "posts.csv"
    write_csv(path, rows)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.Posts (" + ", ".join(f"{n} {t}" for n, t in POST_TYPES.items()) + ")")
    cursor.execute(
        f"BULK INSERT dbo.Posts FROM '{path}' WITH (FORMAT = 'CSV', FIELDQUOTE = '\"', ROWTERMINATOR = '0x0a', CODEPAGE = '65001')"
    )


def ask(connection, lite, questions, site, check):
    cursor = connection.cursor()
    for ours, theirs in questions:
        cursor.execute(ours.format(site=site))
        expected = lite.execute((theirs or ours).format(site=site)).fetchall()
        check.equal(ours.format(site=site)[:100], normal(cursor.fetchall()), normal(expected))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    check = Check()
    lite = sqlite3.connect(":memory:")
    lite.create_function("length16", 1, utf16_extra, deterministic=True)
    with tempfile.TemporaryDirectory() as temporary, Server(options.server) as server:
        folder = pathlib.Path(temporary)
        connection = pymssql.connect(**server.login(), autocommit=True)
        connection.cursor().execute("CREATE DATABASE stackexchange")
        connection.cursor().execute("USE stackexchange")
        for site in ["cseducators", "history"]:
            load_votes(connection, lite, folder, site, options.data / site / "Votes.xml", check)
            ask(connection, lite, QUESTIONS, site, check)
        load_posts(connection, lite, folder, options.data / "history" / "Posts.csv")
        ask(connection, lite, POST_QUESTIONS, "history", check)
        connection.close()
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
