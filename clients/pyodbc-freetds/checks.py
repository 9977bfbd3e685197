"""pyodbc over FreeTDS' ODBC driver through the common checks of `common/dbapi.py`."""

import pathlib
import re
import sys

import pyodbc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
import odbc_cursors  # noqa: E402
from dbapi import ENCRYPTED, PASSWORD, PORT, Checks, odbc_metadata, run  # noqa: E402

pyodbc.pooling = False
pyodbc.native_uuid = True


class PyodbcFreeTds(Checks):
    error = pyodbc.Error
    digits = 3

    def connect(self, database="checks", password=PASSWORD, autocommit=False, timeout=0):
        connection = pyodbc.connect(
            f"DRIVER=FreeTDS;Server=127.0.0.1;Port={PORT};UID=sa;PWD={password};Database={database};TDS_Version=7.4;ClientCharset=UTF-8;"
            f"Encryption={'require' if ENCRYPTED else 'off'}", autocommit=autocommit,
        )  # fmt: skip
        connection.timeout = timeout
        return connection

    def facts(self, error, connection):
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        number = re.search(r"\((\d+)\) \(SQL", text)
        return {"number": int(number[1]) if number else None, "message": text}

    def skips(self, name, literal):
        # The driver's own arithmetic of dates fails at the first year; pyodbc hands it times without their fractions.
        return (name.startswith("date") and "0001-01-01" in literal) or (name.startswith("time(") and "." in literal)

    def cancel(self, connection, cursor):
        cursor.cancel()

    def driver_cursors(self, connection):
        odbc_cursors.check(
            f"DRIVER=FreeTDS;Server=127.0.0.1;Port={PORT};UID=sa;PWD={PASSWORD};Database=checks;TDS_Version=7.4;ClientCharset=UTF-8;"
            f"Encryption={'require' if ENCRYPTED else 'off'}"
        )  # fmt: skip

    def driver_metadata(self, connection):
        odbc_metadata(connection.cursor())

    unread = {
        "sql_variant": "the driver describes it as a type that pyodbc does not know",
        "datetimeoffset(0)": "pyodbc has no such type", "datetimeoffset(6)": "pyodbc has no such type",
    }  # fmt: skip


run(PyodbcFreeTds)
