"""pymssql (FreeTDS' DB-Library underneath) through the common checks of `common/dbapi.py`."""

import pathlib
import sys

import pymssql

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
from dbapi import ENCRYPTED, PASSWORD, PORT, Checks, run  # noqa: E402


class Pymssql(Checks):
    mark = "%s"
    error = pymssql.Error

    def connect(self, database="checks", password=PASSWORD, autocommit=False, timeout=0):
        return pymssql.connect(
            server="127.0.0.1", port=str(PORT), user="sa", password=password, database=database, autocommit=autocommit,
            timeout=timeout, login_timeout=20, tds_version="7.4", use_datetime2=True, encryption="require" if ENCRYPTED else "off",
        )  # fmt: skip

    def facts(self, error, connection):
        inner = error.__cause__ or error.__context__ or error
        number, message = error.args[:2] if len(error.args) > 1 else (0, str(error))
        told = {"number": number, "message": message.decode() if isinstance(message, bytes) else str(message)}
        if hasattr(inner, "severity"):
            procedure = inner.procname.decode() if isinstance(inner.procname, bytes) else inner.procname
            told.update(severity=inner.severity, state=inner.state, line=inner.line, procedure=procedure)
        return told

    def login_told(self, number, error):
        # It calls whatever happens at a login 18456, without the server's text.
        return "18456" in str(error)

    def parameter(self, name, value):
        # With use_datetime2 it writes six decimals, more than a datetime takes.
        return value.isoformat(" ", "milliseconds") if name in ("datetime", "smalldatetime") and value else value

    def after_timeout(self, connection):
        """It answers a time-out by closing the connection."""

    def call(self, connection, arguments):
        cursor = connection.cursor()
        given = [arguments[0], arguments[1] if len(arguments) > 1 else 5]
        values = cursor.callproc("dbo.add_up", (*given, pymssql.output(int), pymssql.output(str, "é")))
        return values[2], values[3], cursor.returnvalue

    def bulk(self, connection, rows):
        connection.bulk_copy("dbo.loaded", rows, batch_size=5000, tablock=True)


run(Pymssql)
