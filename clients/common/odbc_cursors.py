"""Server cursors through ODBC's own calls, which neither pyodbc nor mssql-python reaches: by ctypes and the driver manager.

Claim: a driver's keyset, static and dynamic cursors (sp_cursoropen, sp_cursorfetch, sp_cursor) scroll and change rows.

    odbc_cursors.check(connection_string)
"""

import ctypes

HANDLE_ENVIRONMENT, HANDLE_CONNECTION, HANDLE_STATEMENT = 1, 2, 3
ATTR_ODBC_VERSION, ATTR_CONCURRENCY, ATTR_CURSOR_TYPE, ATTR_ROW_ARRAY_SIZE, ATTR_ROWS_FETCHED = 200, 7, 6, 27, 26
FORWARD_ONLY, KEYSET, DYNAMIC, STATIC = 0, 1, 2, 3
READ_ONLY, LOCK = 1, 2
NEXT, FIRST, LAST, PRIOR, ABSOLUTE, RELATIVE = 1, 2, 3, 4, 5, 6
POSITION, UPDATE, DELETE = 0, 2, 3
C_LONG, C_WCHAR, NO_DATA = 4, -8, 100


class Odbc:
    """A connection and one statement at a time."""

    def __init__(self, connection_string):
        self.odbc = ctypes.CDLL("libodbc.so.2")
        self.environment = self.allocate(HANDLE_ENVIRONMENT, None)
        self.odbc.SQLSetEnvAttr(self.environment, ATTR_ODBC_VERSION, ctypes.c_void_p(3), 0)
        self.connection = self.allocate(HANDLE_CONNECTION, self.environment)
        text = connection_string.encode()
        self.must(self.odbc.SQLDriverConnect(self.connection, None, text, len(text), None, 0, None, 0), HANDLE_CONNECTION, self.connection)

    def allocate(self, kind, parent):
        handle = ctypes.c_void_p()
        self.odbc.SQLAllocHandle(kind, parent, ctypes.byref(handle))
        return handle

    def must(self, status, kind, handle):
        if status not in (0, 1, NO_DATA):
            state, number, text = ctypes.create_string_buffer(6), ctypes.c_int(), ctypes.create_string_buffer(1000)
            self.odbc.SQLGetDiagRec(kind, handle, 1, state, ctypes.byref(number), text, 1000, None)
            raise AssertionError(f"ODBC {state.value.decode()} {number.value}: {text.value.decode(errors='replace')}")
        return status

    def open(self, sql, kind, concurrency):
        """Opens a cursor over a query of an int and a text; their buffers."""
        self.statement = self.allocate(HANDLE_STATEMENT, self.connection)
        self.fetched = ctypes.c_size_t()
        for attribute, value in ((ATTR_CURSOR_TYPE, kind), (ATTR_CONCURRENCY, concurrency), (ATTR_ROW_ARRAY_SIZE, 2)):
            self.call("SQLSetStmtAttr", attribute, ctypes.c_void_p(value), 0)
        self.call("SQLSetStmtAttr", ATTR_ROWS_FETCHED, ctypes.byref(self.fetched), 0)
        self.call("SQLExecDirect", sql.encode(), len(sql))
        self.numbers, self.number_sizes = (ctypes.c_int * 2)(), (ctypes.c_ssize_t * 2)()
        self.texts, self.text_sizes = (ctypes.c_byte * 200)(), (ctypes.c_ssize_t * 2)()
        self.call("SQLBindCol", ctypes.c_ushort(1), ctypes.c_short(C_LONG), self.numbers, ctypes.c_ssize_t(4), self.number_sizes)
        self.call("SQLBindCol", ctypes.c_ushort(2), ctypes.c_short(C_WCHAR), self.texts, ctypes.c_ssize_t(100), self.text_sizes)

    def call(self, name, *arguments):
        return self.must(getattr(self.odbc, name)(self.statement, *arguments), HANDLE_STATEMENT, self.statement)

    def fetch(self, how, offset=0):
        """The numbers of the rows fetched, two at most."""
        if self.call("SQLFetchScroll", ctypes.c_short(how), ctypes.c_ssize_t(offset)) == NO_DATA:
            return []
        return list(self.numbers[: self.fetched.value])

    def change(self, row, operation):
        self.call("SQLSetPos", ctypes.c_ulonglong(row), ctypes.c_ushort(operation), ctypes.c_ushort(0))

    def close(self):
        self.odbc.SQLFreeHandle(HANDLE_STATEMENT, self.statement)

    def disconnect(self):
        self.odbc.SQLDisconnect(self.connection)
        self.odbc.SQLFreeHandle(HANDLE_CONNECTION, self.connection)
        self.odbc.SQLFreeHandle(HANDLE_ENVIRONMENT, self.environment)


def check(connection_string):
    """Scrolls through cursors of each kind, and changes rows through one."""
    odbc = Odbc(connection_string)
    for kind in (STATIC, KEYSET, DYNAMIC):
        odbc.open("SELECT n, name FROM dbo.numbers WHERE n <= 5 ORDER BY n", kind, READ_ONLY)
        steps = [(NEXT, 0, [1, 2]), (NEXT, 0, [3, 4]), (NEXT, 0, [5]), (NEXT, 0, []), (LAST, 0, [4, 5]), (PRIOR, 0, [2, 3]), (FIRST, 0, [1, 2]), (RELATIVE, 1, [2, 3])]
        if kind != DYNAMIC:
            steps += [(ABSOLUTE, 4, [4, 5]), (ABSOLUTE, -1, [5])]
        for how, offset, wanted in steps:
            got = odbc.fetch(how, offset)
            assert got == wanted, f"cursor {kind}, fetch {how} {offset}: got {got}, wanted {wanted}"
        odbc.close()
    odbc.open("SELECT n, name FROM dbo.numbers WHERE n >= 999 ORDER BY n", KEYSET, LOCK)
    assert odbc.fetch(NEXT) == [999, 1000]
    text = "geändert".encode("utf-16-le")
    ctypes.memmove(odbc.texts, text, len(text))
    odbc.text_sizes[0] = len(text)
    odbc.change(1, UPDATE)
    odbc.change(2, DELETE)
    odbc.close()
    odbc.disconnect()
