"""python-tds (TDS in Python itself) through the common checks of `common/dbapi.py`."""

import pathlib
import sys

import pytds
from pytds.tds_types import BitType, DateTime2Type, DecimalType, FloatType, IntType, NVarCharMaxType, NVarCharType, VarBinaryType

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "common"))
from dbapi import CERTIFICATE, ENCRYPTED, PASSWORD, PORT, Checks, expect, run  # noqa: E402


class PythonTds(Checks):
    mark = "%s"
    error = (pytds.tds_base.Error, TimeoutError)

    def connect(self, database="checks", password=PASSWORD, autocommit=False, timeout=0):
        encryption = {"cafile": CERTIFICATE} if ENCRYPTED else {}
        return pytds.connect(
            "127.0.0.1", port=PORT, user="sa", password=password, database=database, autocommit=autocommit, timeout=timeout or None, login_timeout=20,
            **encryption,
        )  # fmt: skip

    def facts(self, error, connection):
        told = {"number": getattr(error, "msg_no", None), "message": str(error)}
        if getattr(error, "severity", None) is not None:
            told.update(severity=error.severity, state=error.state, line=error.line, procedure=error.procname or "")
        return told

    def call(self, connection, arguments):
        cursor = connection.cursor()
        second = arguments[1] if len(arguments) > 1 else pytds.default
        values = cursor.callproc("dbo.add_up", (arguments[0], second, pytds.output(param_type="int"), pytds.output("é", "nvarchar(50)")))
        return values[2], values[3], cursor.get_proc_return_status()

    def table(self, connection, rows, start):
        value = pytds.TableValuedParam(type_name="dbo.lines", rows=iter(rows), columns=[
            pytds.Column(type=pytds.tds_types.BigIntType()), pytds.Column(type=NVarCharType(40)), pytds.Column(type=DecimalType(9, 2)),
        ])  # fmt: skip
        cursor = connection.cursor()
        cursor.callproc("dbo.total", {"@lines": value, "@from": start})
        return cursor.fetchone()

    def bulk(self, connection, rows):
        types = [IntType(), NVarCharType(40), FloatType(), DecimalType(9, 2), DateTime2Type(3), BitType(), VarBinaryType(20), NVarCharMaxType()]
        names = ["id", "name", "amount", "price", "happened", "flag", "raw", "long"]
        columns = [pytds.Column(name, type=type) for name, type in zip(names, types)]
        connection.cursor().copy_to(data=rows, table_or_view="loaded", schema="dbo", columns=columns, tablock=True)

    def parameter(self, name, value):
        return pytds.Binary(value) if isinstance(value, bytes) else value

    def check_cancel(self):
        """Within a result: its connections are one thread's."""
        with self.connect(autocommit=True) as connection:
            cursor = self.execute(connection, "SELECT a.n FROM dbo.numbers AS a CROSS JOIN dbo.numbers AS b CROSS JOIN dbo.numbers AS c")
            expect(type(cursor.fetchone()[0]), int, "the first row")
            cursor.cancel()
            expect(self.query(connection, "SELECT 5"), [(5,)], "a query afterwards")

    def after_timeout(self, connection):
        """A time-out is its socket's: the connection is given up."""


run(PythonTds)
