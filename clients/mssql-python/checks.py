"""mssql-python (Microsoft's ODBC driver underneath) through the common checks of `common/dbapi.py`."""

import pathlib
import platform
import sys

import mssql_python
import mssql_python_odbc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
import odbc_cursors  # noqa: E402
from dbapi import ENCRYPTED, PASSWORD, PORT, Checks, odbc_metadata, run  # noqa: E402


class MssqlPython(Checks):
    error = mssql_python.Error

    def connect(self, database="checks", password=PASSWORD, autocommit=False, timeout=0):
        connection = mssql_python.connect(
            f"Server=127.0.0.1,{PORT};UID=sa;PWD={password};Database={database};Encrypt={'yes' if ENCRYPTED else 'no'};TrustServerCertificate=yes",
            autocommit=autocommit,
        )  # fmt: skip
        connection.timeout = timeout
        return connection

    def facts(self, error, connection):
        # It tells neither number nor line.
        return {"message": str(error)}

    def skips(self, name, literal):
        # It refuses dates before 1753 itself.
        return "0001-01-01" in literal

    def after_timeout(self, connection):
        connection.close()

    def driver_cursors(self, connection):
        [library] = [path for path in pathlib.Path(mssql_python_odbc.__file__).parent.rglob("libmsodbcsql*") if "debian" in str(path) and platform.machine() in str(path)]
        odbc_cursors.check(
            f"DRIVER={library};Server=127.0.0.1,{PORT};UID=sa;PWD={PASSWORD};Database=checks;TrustServerCertificate=yes;"
            f"Encrypt={'yes' if ENCRYPTED else 'no'}"
        )  # fmt: skip

    def driver_metadata(self, connection):
        odbc_metadata(connection.cursor(), referring="table")

    def bulk(self, connection, rows):
        connection.cursor().bulkcopy("dbo.loaded", rows, batch_size=5000, table_lock=True)


run(MssqlPython)
