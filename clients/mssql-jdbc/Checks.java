import com.microsoft.sqlserver.jdbc.ISQLServerBulkData;
import com.microsoft.sqlserver.jdbc.SQLServerBulkCopy;
import com.microsoft.sqlserver.jdbc.SQLServerBulkCopyOptions;
import com.microsoft.sqlserver.jdbc.SQLServerDataTable;
import com.microsoft.sqlserver.jdbc.SQLServerException;
import com.microsoft.sqlserver.jdbc.SQLServerPreparedStatement;
import com.microsoft.sqlserver.jdbc.SQLServerResultSet;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * mssql-jdbc through the checks that common/drive.py counts; claim and method are those of common/dbapi.py. Beyond the
 * common list: server cursors, adaptive and by selectMethod=cursor, scrolled and updated; batches; DatabaseMetaData.
 */
public final class Checks {
    private static final boolean ENCRYPTED = System.getenv("THAWDB_ENCRYPT").equals("on");
    private static final String ENDLESS = "DECLARE @n int = 1 WHILE 1 = 1 SET @n = @n + 1 - 1";

    /** A check. */
    private interface Check {
        void run() throws Exception;
    }

    private Checks() {}

    private static Connection connect(String more) throws SQLException {
        String encryption = ENCRYPTED ? "encrypt=true;trustServerCertificate=true;" : "encrypt=false;";
        String url = "jdbc:sqlserver://127.0.0.1:" + System.getenv("THAWDB_PORT") + ";loginTimeout=20;sendTimeAsDatetime=false;" + encryption + more;
        return DriverManager.getConnection(url.contains("user=") ? url : url + ";user=sa;password=" + System.getenv("THAWDB_PASSWORD"));
    }

    private static Connection connect() throws SQLException {
        return connect("databaseName=checks");
    }

    private static void expect(Object got, Object wanted, String what) {
        if (!Objects.deepEquals(got, wanted)) {
            throw new AssertionError(what + ": got " + shown(got) + ", wanted " + shown(wanted));
        }
    }

    private static String shown(Object value) {
        String text = value instanceof byte[] bytes ? Arrays.toString(bytes) : String.valueOf(value);
        return text.length() > 300 ? text.substring(0, 300) + "..." : text;
    }

    private static List<List<Object>> rows(ResultSet result) throws SQLException {
        List<List<Object>> rows = new ArrayList<>();
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (int column = 1; column <= columns; column++) {
                row.add(result.getObject(column));
            }
            rows.add(row);
        }
        return rows;
    }

    private static List<List<Object>> query(Connection connection, String sql, Object... parameters) throws SQLException {
        if (parameters.length == 0) {
            try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
                return rows(result);
            }
        }
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int at = 0; at < parameters.length; at++) {
                statement.setObject(at + 1, parameters[at]);
            }
            try (ResultSet result = statement.executeQuery()) {
                return rows(result);
            }
        }
    }

    private static Object value(Connection connection, String sql) throws SQLException {
        return query(connection, sql).get(0).get(0);
    }

    private static int execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.executeUpdate(sql);
        }
    }

    private static List<Object> row(Object... values) {
        return Arrays.asList(values);
    }

    private static SQLServerException failing(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            boolean results = statement.execute(sql);
            while (results || statement.getUpdateCount() >= 0) {
                if (results) {
                    rows(statement.getResultSet());
                }
                results = statement.getMoreResults();
            }
        } catch (SQLServerException error) {
            return error;
        }
        throw new AssertionError("no error from " + sql);
    }

    // ---- the checks ----

    private static void login() throws SQLException {
        try (Connection connection = connect()) {
            String text = "SELECT encrypt_option, DB_NAME() FROM sys.dm_exec_connections WHERE session_id = @@SPID";
            expect(query(connection, text), List.of(row(ENCRYPTED ? "TRUE" : "FALSE", "checks")), "this connection");
            expect(connection.isValid(5), true, "isValid");
        }
        for (Object[] refused : new Object[][] {
            {"databaseName=checks;user=sa;password=wrong", 18456},
            {"databaseName=nonesuch;user=sa;password=" + System.getenv("THAWDB_PASSWORD"), 4060},
        }) {
            try {
                connect((String) refused[0]).close();
                throw new AssertionError("accepted: " + refused[0]);
            } catch (SQLException error) {
                expect(error.getErrorCode(), refused[1], "the number of a refused login");
            }
        }
    }

    /** An entry of types.json. */
    private record Entry(String type, List<String> values, String as, boolean readOnly, boolean convert) {
        /** Reads the file: one entry a line, whose form this knows. */
        static List<Entry> all() throws Exception {
            List<Entry> entries = new ArrayList<>();
            for (String line : Files.readAllLines(Path.of(System.getenv("THAWDB_TYPES")))) {
                Matcher entry = Pattern.compile("\\{\"type\": \"([^\"]+)\".*\"values\": \\[(.*?)](?=[,}])(.*)}").matcher(line);
                if (!entry.find()) {
                    continue;
                }
                List<String> values = new ArrayList<>();
                Matcher value = Pattern.compile("\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(entry.group(2));
                while (value.find()) {
                    values.add(value.group(1).replace("\\\"", "\"").replace("\\\\", "\\"));
                }
                Matcher as = Pattern.compile("\"as\": \"([^\"]+)\"").matcher(entry.group(3));
                String wide = as.find() ? as.group(1) : entry.group(1);
                entries.add(new Entry(entry.group(1), values, wide, line.contains("read_only"), line.contains("\"convert\"")));
            }
            return entries;
        }
    }

    private static void types() throws Exception {
        try (Connection connection = connect()) {
            Object[][] known = {
                {"CAST(-42 AS int)", -42},
                {"CAST(9223372036854775807 AS bigint)", Long.MAX_VALUE},
                {"CAST(255 AS tinyint)", (short) 255},
                {"CAST(12345678.9 AS decimal(12,3))", new BigDecimal("12345678.900")},
                {"CAST(-922337203685477.5808 AS money)", new BigDecimal("-922337203685477.5808")},
                {"CAST(0.1 AS float)", 0.1},
                {"N'Zoë 日本 😀'", "Zoë 日本 😀"},
                {"CAST(N'€ ß' AS varchar(10))", "€ ß"},
                {"CAST(1 AS bit)", true},
                {"0x00FF10", new byte[] {0, -1, 16}},
                {"CAST('2008-07-31' AS date)", java.sql.Date.valueOf("2008-07-31")},
                {"CAST('2008-07-31T12:34:56.787' AS datetime)", java.sql.Timestamp.valueOf("2008-07-31 12:34:56.787")},
                {"CAST('2008-07-31 12:34:56.1234567' AS datetime2(7))", java.sql.Timestamp.valueOf("2008-07-31 12:34:56.1234567")},
                {"CAST('00112233-4455-6677-8899-AABBCCDDEEFF' AS uniqueidentifier)", "00112233-4455-6677-8899-AABBCCDDEEFF"},
                {"CAST(CAST(42 AS int) AS sql_variant)", 42},
                {"CAST(N'<a>1</a>' AS xml)", "<a>1</a>"},
                {"CAST(NULL AS int)", null},
            };
            for (Object[] literal : known) {
                expect(value(connection, "SELECT " + literal[0]), literal[1], (String) literal[0]);
            }
            List<Entry> entries = Entry.all();
            expect(entries.size() > 40, true, "entries of types.json");
            for (int at = 0; at < entries.size(); at++) {
                try {
                    roundTrip(connection, "dbo.type_" + at, entries.get(at));
                } catch (SQLException error) {
                    throw new AssertionError(entries.get(at).type + ": " + error.getMessage(), error);
                }
            }
        }
    }

    private static void roundTrip(Connection connection, String table, Entry entry) throws SQLException {
        List<String> literals = new ArrayList<>(List.of("NULL"));
        literals.addAll(entry.values);
        if (entry.readOnly) {
            for (String literal : literals) {
                Object got = value(connection, "SELECT CAST(" + literal + " AS " + entry.type + ")");
                expect(got == null, literal.equals("NULL"), entry.type + " " + literal);
            }
            return;
        }
        execute(connection, "CREATE TABLE " + table + " (id int NOT NULL PRIMARY KEY, v " + entry.type + " NULL)");
        String marked = entry.convert ? "CONVERT(" + entry.type + ", ?)" : "?";
        for (int id = 0; id < literals.size(); id++) {
            if (literals.get(id).contains("1582")) {
                // The driver sends dates by a calendar that leaves out ten days of that year.
                continue;
            }
            String cast = "CAST(" + literals.get(id) + " AS " + entry.type + ")";
            Object value = exact(connection, "SELECT " + cast, entry.type);
            try (PreparedStatement insert = connection.prepareStatement("INSERT " + table + " (id, v) VALUES (?, " + marked + ")")) {
                insert.setInt(1, id);
                set((SQLServerPreparedStatement) insert, entry.type, value);
                expect(insert.executeUpdate(), 1, cast + ": rows inserted");
            }
            expect(exact(connection, "SELECT v FROM " + table + " WHERE id = " + id, entry.type), value, cast + " read back");
            String same = "CAST(CAST(v AS " + entry.as + ") AS varbinary(max)) = CAST(CAST(" + cast + " AS " + entry.as + ") AS varbinary(max))";
            String count = "SELECT COUNT(*) FROM " + table + " WHERE id = " + id + " AND (" + same + " OR (v IS NULL AND " + cast + " IS NULL))";
            expect(value(connection, count), 1, cast + " is what is stored (" + shown(value) + ")");
        }
    }

    /** A value without loss: a time as text, for java.sql.Time has no fractions. */
    private static Object exact(Connection connection, String sql, String type) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
            result.next();
            if (type.startsWith("time")) {
                return result.getObject(1, java.time.LocalTime.class);
            }
            if (type.startsWith("datetime2")) {
                // The Gregorian calendar throughout, which java.sql.Timestamp is not before 1582.
                return result.getObject(1, java.time.LocalDateTime.class);
            }
            return type.equals("date") ? result.getObject(1, java.time.LocalDate.class) : result.getObject(1);
        }
    }

    private static void set(SQLServerPreparedStatement insert, String type, Object value) throws SQLException {
        int scale = type.matches(".*\\(\\d\\)") ? type.charAt(type.length() - 2) - '0' : 7;
        if (value == null) {
            insert.setNull(2, type.contains("binary") || type.equals("image") ? Types.VARBINARY : Types.VARCHAR);
        } else if (type.equals("datetime") || type.equals("smalldatetime")) {
            insert.setDateTime(2, (java.sql.Timestamp) value);
        } else if (type.equals("money") || type.equals("smallmoney")) {
            insert.setMoney(2, (BigDecimal) value);
        } else if (type.startsWith("time")) {
            insert.setObject(2, value, Types.TIME, null, scale);
        } else if (type.startsWith("datetime2")) {
            insert.setObject(2, value, Types.TIMESTAMP, null, scale);
        } else if (type.equals("uniqueidentifier")) {
            insert.setUniqueIdentifier(2, (String) value);
        } else {
            insert.setObject(2, value);
        }
    }

    private static void parameters() throws SQLException {
        try (Connection connection = connect()) {
            try (PreparedStatement statement = connection.prepareStatement("SELECT n, name FROM dbo.numbers WHERE n = ? AND square = ?")) {
                for (int n = 1; n < 30; n++) {
                    statement.setInt(1, n);
                    statement.setLong(2, (long) n * n);
                    expect(rows(statement.executeQuery()), List.of(row(n, n % 10 == 0 ? null : "number " + n)), "by number");
                }
            }
            expect(query(connection, "SELECT COUNT(*) FROM dbo.numbers WHERE name = ?", "' OR 1 = 1 --"), List.of(row(0)), "by a quoted name");
            connection.setAutoCommit(false);
            try (PreparedStatement batch = connection.prepareStatement("INSERT dbo.authors (name, born) VALUES (?, ?)")) {
                for (int n = 0; n < 50; n++) {
                    batch.setString(1, "Autor " + n + " é");
                    batch.setDate(2, n % 3 == 0 ? null : java.sql.Date.valueOf("2001-01-01"));
                    batch.addBatch();
                }
                int[] ones = new int[50];
                Arrays.fill(ones, 1);
                expect(batch.executeBatch(), ones, "counts of a batch");
            }
            expect(query(connection, "SELECT COUNT(*), COUNT(born) FROM dbo.authors"), List.of(row(50, 33)), "rows of a batch");
            try (PreparedStatement keys = connection.prepareStatement("INSERT dbo.authors (name) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
                keys.setString(1, "Zoë");
                keys.executeUpdate();
                try (ResultSet generated = keys.getGeneratedKeys()) {
                    generated.next();
                    expect(generated.getInt(1), value(connection, "SELECT id FROM dbo.authors WHERE name = N'Zoë'"), "the generated key");
                }
            }
            connection.rollback();
        }
    }

    private static void results() throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            boolean more = statement.execute("DECLARE @n int = 0 WHILE @n < 3 BEGIN SET @n = @n + 1 SELECT @n AS n, @n * @n AS square END");
            for (int n = 1; n <= 3; n++) {
                expect(more, true, "a result set " + n);
                expect(rows(statement.getResultSet()), List.of(row(n, n * n)), "result set " + n);
                more = statement.getMoreResults();
            }
            expect(more, false, "a fourth");
            List<List<List<Object>>> sets = new ArrayList<>();
            List<Integer> counts = new ArrayList<>();
            more = statement.execute("EXEC dbo.three_results 4");
            while (more || statement.getUpdateCount() >= 0) {
                if (more) {
                    sets.add(rows(statement.getResultSet()));
                } else {
                    counts.add(statement.getUpdateCount());
                }
                more = statement.getMoreResults();
            }
            expect(sets, List.of(List.of(row(4)), List.of(row(4, "x"), row(5, null)), List.of()), "result sets of a procedure");
            expect(counts, List.of(1), "its counts");
            ResultSetMetaData columns = statement.executeQuery("SELECT n, name AS other FROM dbo.numbers WHERE n < 0").getMetaData();
            expect(row(columns.getColumnName(1), columns.isNullable(1), columns.getColumnLabel(2), columns.getPrecision(2), columns.isNullable(2)),
                row("n", ResultSetMetaData.columnNoNulls, "other", 20, ResultSetMetaData.columnNullable), "metadata of a result");
            expect(((String) value(connection, "SELECT REPLICATE(CAST('z' AS varchar(max)), 1000000)")).length(), 1_000_000, "a large value");
            expect(query(connection, "SELECT a.n, b.n FROM dbo.numbers AS a CROSS JOIN dbo.numbers AS b WHERE a.n <= 20").size(), 20_000, "many rows");
        }
    }

    private static void output() throws SQLException {
        try (Connection connection = connect(); CallableStatement call = connection.prepareCall("{? = call dbo.add_up(?, ?, ?, ?)}")) {
            for (Object[] given : new Object[][] {{1, 2, 3}, {-5, null, null}}) {
                call.registerOutParameter(1, Types.INTEGER);
                call.setObject(2, given[0], Types.INTEGER);
                call.setObject(3, given[1], Types.INTEGER);
                call.registerOutParameter(4, Types.INTEGER);
                call.registerOutParameter(5, Types.NVARCHAR);
                call.setString(5, "é");
                call.execute();
                expect(row(call.getInt(1), call.getObject(4), call.getString(5)), row(7, given[2], "É!"), "add_up");
            }
        }
    }

    private static void tables() throws SQLException {
        try (Connection connection = connect()) {
            for (int count : new int[] {1000, 0}) {
                SQLServerDataTable lines = new SQLServerDataTable();
                lines.addColumnMetadata("id", Types.BIGINT);
                lines.addColumnMetadata("name", Types.NVARCHAR);
                lines.addColumnMetadata("price", Types.DECIMAL);
                for (int n = 1; n <= count; n++) {
                    lines.addRow((long) n, n % 3 == 0 ? null : String.format("line %04d é", n), new BigDecimal("0.25"));
                }
                try (PreparedStatement call = connection.prepareStatement("EXEC dbo.total ?, ?")) {
                    ((SQLServerPreparedStatement) call).setStructured(1, "dbo.lines", lines);
                    call.setLong(2, count / 2 + 1);
                    List<Object> wanted = count == 0 ? row(0, null, null) : row(500, new BigDecimal("125.00"), "line 1000 é");
                    expect(rows(call.executeQuery()), List.of(wanted), "a table of " + count);
                }
            }
        }
    }

    private static void cursors() throws SQLException {
        // Read forward through server cursors, by the connection's default.
        try (Connection connection = connect("databaseName=checks;selectMethod=cursor")) {
            expect(query(connection, "SELECT COUNT(*) FROM dbo.numbers"), List.of(row(1000)), "selectMethod=cursor");
            expect(query(connection, "SELECT n FROM dbo.numbers WHERE n > ? ORDER BY n", 500).size(), 500, "selectMethod=cursor, prepared");
            connection.setAutoCommit(false);
            try (PreparedStatement statement = connection.prepareStatement("SELECT n, name FROM dbo.numbers WHERE n <= ? ORDER BY n")) {
                statement.setFetchSize(7);
                for (int most : new int[] {20, 700}) {
                    statement.setInt(1, most);
                    try (ResultSet result = statement.executeQuery()) {
                        int n = 0;
                        while (result.next()) {
                            expect(result.getInt(1), ++n, "a row in order");
                        }
                        expect(n, most, "rows in buffers of seven");
                    }
                }
            }
            expect(failing(connection, "SELECT nonesuch FROM dbo.numbers").getErrorCode(), 207, "an error of a cursor's text");
            connection.rollback();
        }
        try (Connection connection = connect()) {
            int[] kinds = {
                ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.TYPE_SCROLL_SENSITIVE, SQLServerResultSet.TYPE_SS_SCROLL_DYNAMIC,
                SQLServerResultSet.TYPE_SS_SERVER_CURSOR_FORWARD_ONLY,
            };
            for (int kind : kinds) {
                scroll(connection, kind);
            }
            change(connection, ResultSet.TYPE_SCROLL_SENSITIVE);
            change(connection, SQLServerResultSet.TYPE_SS_SCROLL_DYNAMIC);
        }
    }

    private static void scroll(Connection connection, int kind) throws SQLException {
        try (Statement statement = connection.createStatement(kind, ResultSet.CONCUR_READ_ONLY)) {
            statement.setFetchSize(4);
            try (ResultSet result = statement.executeQuery("SELECT n, name FROM dbo.numbers WHERE n <= 10 ORDER BY n")) {
                if (kind == SQLServerResultSet.TYPE_SS_SERVER_CURSOR_FORWARD_ONLY) {
                    expect(rows(result).size(), 10, "rows forward");
                    return;
                }
                expect(row(result.next(), result.getInt(1)), row(true, 1), "next");
                expect(row(result.last(), result.getInt(1), result.getString(2)), row(true, 10, null), "last");
                expect(row(result.previous(), result.getInt(1)), row(true, 9), "previous");
                expect(row(result.relative(-4), result.getInt(1)), row(true, 5), "relative");
                expect(row(result.first(), result.getInt(1)), row(true, 1), "first");
                expect(result.previous(), false, "before the first");
                expect(row(result.next(), result.getInt(1)), row(true, 1), "the first again");
                if (kind != SQLServerResultSet.TYPE_SS_SCROLL_DYNAMIC) {
                    expect(row(result.absolute(7), result.getInt(1), result.getRow()), row(true, 7, 7), "absolute");
                    expect(row(result.absolute(-2), result.getInt(1)), row(true, 9), "absolute from the end");
                    expect(row(result.absolute(99), result.isAfterLast()), row(false, true), "beyond the end");
                }
                result.afterLast();
                expect(row(result.previous(), result.getInt(1)), row(true, 10), "from behind the last");
                result.beforeFirst();
                expect(rows(result).size(), 10, "all rows again");
            }
        }
    }

    private static void change(Connection connection, int kind) throws SQLException {
        execute(connection, "DELETE dbo.books DELETE dbo.authors");
        execute(connection, "INSERT dbo.authors (name) VALUES (N'a'), (N'b'), (N'c'), (N'd')");
        try (Statement statement = connection.createStatement(kind, ResultSet.CONCUR_UPDATABLE);
            ResultSet result = statement.executeQuery("SELECT id, name, born FROM dbo.authors")) {
            expect(result.getConcurrency(), ResultSet.CONCUR_UPDATABLE, "concurrency");
            result.next();
            result.next();
            result.updateString("name", "Béla");
            result.updateDate("born", java.sql.Date.valueOf("1990-05-17"));
            result.updateRow();
            expect(row(result.getString("name"), result.getDate("born")), row("Béla", java.sql.Date.valueOf("1990-05-17")), "the row that was changed");
            result.next();
            result.deleteRow();
            result.moveToInsertRow();
            result.updateString("name", "e");
            result.insertRow();
            result.moveToCurrentRow();
        }
        expect(query(connection, "SELECT name FROM dbo.authors ORDER BY name"), List.of(row("a"), row("Béla"), row("d"), row("e")), "rows changed through a cursor");
        execute(connection, "DELETE dbo.authors");
    }

    private static void transactions() throws SQLException {
        String balances = "SELECT balance FROM dbo.accounts ORDER BY id";
        try (Connection connection = connect(); Connection other = connect()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            for (boolean commit : new boolean[] {false, true}) {
                List<List<Object>> before = query(other, balances);
                execute(connection, "UPDATE dbo.accounts SET balance = balance - 30 WHERE id = 1");
                execute(connection, "UPDATE dbo.accounts SET balance = balance + 30 WHERE id = 2");
                expect(query(other, balances), before, "seen by another");
                expect(value(connection, "SELECT @@TRANCOUNT"), 1, "inside");
                if (commit) {
                    connection.commit();
                } else {
                    connection.rollback();
                }
                BigDecimal change = new BigDecimal(commit ? 30 : 0);
                List<List<Object>> wanted = List.of(row(((BigDecimal) before.get(0).get(0)).subtract(change)), row(((BigDecimal) before.get(1).get(0)).add(change)));
                expect(query(connection, balances).toString(), wanted.toString(), "after its end");
                connection.rollback();
            }
            execute(connection, "INSERT dbo.accounts VALUES (3, 0)");
            Savepoint here = connection.setSavepoint("here");
            execute(connection, "DELETE dbo.accounts");
            connection.rollback(here);
            expect(value(connection, "SELECT COUNT(*) FROM dbo.accounts"), 3, "after rolling back to a savepoint");
            connection.rollback();
        }
    }

    private static List<Object> bulkRow(int n) {
        java.sql.Timestamp at = java.sql.Timestamp.valueOf(java.time.LocalDateTime.of(2008, 7, 31, 0, 0).plusSeconds(n).plusNanos(n % 1000 * 1_000_000L));
        byte[] raw = {(byte) (n >> 8), (byte) n};
        return row(n, n % 7 == 0 ? null : "Zeile " + n + " für alle", n / 4.0, new BigDecimal(n).movePointLeft(2).setScale(2), at, n % 2 == 0, raw, "ü".repeat(1 + n % 50));
    }

    /** The rows of the bulk copy. */
    private static final class BulkRows implements ISQLServerBulkData {
        static final String[] NAMES = {"id", "name", "amount", "price", "happened", "flag", "raw", "long"};
        private static final int[] TYPES =
            {Types.INTEGER, Types.NVARCHAR, Types.DOUBLE, Types.DECIMAL, Types.TIMESTAMP, Types.BIT, Types.VARBINARY, Types.LONGNVARCHAR};
        private static final int[] PRECISIONS = {0, 40, 0, 9, 0, 0, 20, 0};
        private final int count;
        private int n = -1;

        BulkRows(int count) {
            this.count = count;
        }

        @Override
        public Set<Integer> getColumnOrdinals() {
            return new TreeSet<>(List.of(1, 2, 3, 4, 5, 6, 7, 8));
        }

        @Override
        public String getColumnName(int column) {
            return NAMES[column - 1];
        }

        @Override
        public int getColumnType(int column) {
            return TYPES[column - 1];
        }

        @Override
        public int getPrecision(int column) {
            return PRECISIONS[column - 1];
        }

        @Override
        public int getScale(int column) {
            return column == 4 ? 2 : column == 5 ? 3 : 0;
        }

        @Override
        public boolean next() {
            return ++n < count;
        }

        @Override
        public Object[] getRowData() {
            return bulkRow(n).toArray();
        }
    }

    private static void bulk() throws SQLException {
        int count = 20_000;
        try (Connection connection = connect()) {
            long begin = System.nanoTime();
            try (SQLServerBulkCopy copy = new SQLServerBulkCopy(connection)) {
                SQLServerBulkCopyOptions options = new SQLServerBulkCopyOptions();
                options.setTableLock(true);
                copy.setBulkCopyOptions(options);
                copy.setDestinationTableName("dbo.loaded");
                copy.writeToServer(new BulkRows(count));
            }
            System.out.printf("  %,.0f rows a second%n", count / ((System.nanoTime() - begin) / 1e9));
            expect(query(connection, "SELECT COUNT(*), COUNT(name), SUM(CAST(id AS bigint)) FROM dbo.loaded"),
                List.of(row(count, count - (count + 6) / 7, (long) count * (count - 1) / 2)), "sums of the rows");
            for (int n : new int[] {0, 1, 999, count - 1}) {
                List<Object> got = query(connection, "SELECT * FROM dbo.loaded WHERE id = " + n).get(0);
                List<Object> wanted = bulkRow(n);
                for (int at = 0; at < got.size(); at++) {
                    expect(got.get(at), wanted.get(at), BulkRows.NAMES[at] + " of row " + n);
                }
            }
        }
    }

    private static void cancel() throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    Thread.sleep(500);
                    statement.cancel();
                } catch (InterruptedException | SQLException error) {
                    throw new IllegalStateException(error);
                }
            });
            long begin = System.nanoTime();
            other.start();
            try {
                statement.execute(ENDLESS);
                throw new AssertionError("a loop without end ended");
            } catch (SQLException error) {
                expect(error.getMessage().toLowerCase().contains("cancel"), true, error.getMessage());
            }
            other.join();
            expect((System.nanoTime() - begin) / 1e9 < 20, true, "the cancellation was quick");
            expect(value(connection, "SELECT 5"), 5, "a query afterwards");
        }
    }

    private static void timeout() throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            try {
                statement.execute(ENDLESS);
                throw new AssertionError("a loop without end ended");
            } catch (java.sql.SQLTimeoutException expected) {
                expect(value(connection, "SELECT 6"), 6, "a query afterwards");
            }
            execute(connection, "SET LOCK_TIMEOUT 50");
            try (Connection other = connect()) {
                other.setAutoCommit(false);
                execute(other, "UPDATE dbo.accounts SET balance = balance WHERE id = 1");
                expect(failing(connection, "UPDATE dbo.accounts SET balance = balance WHERE id = 1").getErrorCode(), 1222, "LOCK_TIMEOUT");
                other.rollback();
            }
        }
    }

    private static void errors() throws SQLException {
        Object[][] cases = {
            {"\n\nSELECT * FROM dbo.nonesuch", 208, 16, 1, 3L, "", "Invalid object name 'dbo.nonesuch'."},
            {"\nINSERT dbo.accounts VALUES (1, 1)", 2627, 14, 1, 2L, "", "Violation of PRIMARY KEY constraint 'PK_accounts'."},
            {"DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 16, 1, 4L, "", "Divide by zero error encountered."},
            {"SELECT\n FROM", 156, 15, 1, 2L, "", "Incorrect syntax near the keyword 'FROM'."},
            {"INSERT dbo.books (author, number) VALUES (999, 1)", 547, 16, 0, 1L, "", "conflicted with the FOREIGN KEY constraint \"FK_books_author\""},
            {"EXEC dbo.fails 1", 50000, 14, 9, 4L, "fails", "told by fails"},
            {"EXEC dbo.fails 2", 8134, 16, 1, 6L, "fails", "Divide by zero error encountered."},
            {"EXEC dbo.fails 3", 2627, 14, 1, 8L, "fails", "Violation of PRIMARY KEY constraint"},
            {"EXEC dbo.fails 4", 50123, 16, 5, 10L, "fails", "thrown"},
        };
        try (Connection connection = connect()) {
            for (Object[] wanted : cases) {
                SQLServerException error = failing(connection, (String) wanted[0]);
                var told = error.getSQLServerError();
                String procedure = told.getProcedureName() == null ? "" : told.getProcedureName().replace("dbo.", "");
                expect(row(told.getErrorNumber(), told.getErrorSeverity(), told.getErrorState(), told.getLineNumber(), procedure),
                    Arrays.asList(wanted).subList(1, 6), (String) wanted[0]);
                expect(error.getMessage().contains((String) wanted[6]), true, error.getMessage());
                expect(value(connection, "SELECT 7"), 7, "a query afterwards");
            }
        }
    }

    private static List<List<Object>> named(ResultSet result, String... columns) throws SQLException {
        List<List<Object>> rows = new ArrayList<>();
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (String column : columns) {
                Object value = result.getObject(column);
                row.add(value instanceof Number number ? (Object) number.intValue() : value);
            }
            rows.add(row);
        }
        result.close();
        return rows;
    }

    private static void metadata() throws SQLException {
        try (Connection connection = connect()) {
            DatabaseMetaData meta = connection.getMetaData();
            expect(row(meta.getDatabaseProductName(), meta.getDatabaseMajorVersion()), row("Microsoft SQL Server", 16), "the product");
            expect(named(meta.getTables("checks", "dbo", "b%", new String[] {"TABLE"}), "TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"),
                List.of(row("checks", "dbo", "books", "TABLE")), "getTables");
            expect(named(meta.getColumns("checks", "dbo", "books", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "NULLABLE", "ORDINAL_POSITION", "IS_AUTOINCREMENT"),
                List.of(row("author", Types.INTEGER, "int", 10, 0, 1, "NO"), row("number", Types.SMALLINT, "smallint", 5, 0, 2, "NO"),
                    row("title", Types.VARCHAR, "varchar", 100, 0, 3, "NO"), row("price", Types.DECIMAL, "decimal", 9, 1, 4, "NO")), "getColumns");
            expect(named(meta.getPrimaryKeys("checks", "dbo", "books"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
                List.of(row("author", 1, "PK_books"), row("number", 2, "PK_books")), "getPrimaryKeys");
            List<Object> key = row("authors", "id", "books", "author", DatabaseMetaData.importedKeyNoAction, "FK_books_author", "PK_authors");
            String[] columns = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "DELETE_RULE", "FK_NAME", "PK_NAME"};
            expect(named(meta.getImportedKeys("checks", "dbo", "books"), columns), List.of(key), "getImportedKeys");
            expect(named(meta.getExportedKeys("checks", "dbo", "authors"), columns), List.of(key), "getExportedKeys");
            expect(named(meta.getCrossReference("checks", "dbo", "authors", "checks", "dbo", "books"), columns), List.of(key), "getCrossReference");
            List<List<Object>> indexes = named(meta.getIndexInfo("checks", "dbo", "books", false, true), "INDEX_NAME", "COLUMN_NAME", "ORDINAL_POSITION");
            for (List<Object> index : List.of(row("PK_books", "author", 1), row("PK_books", "number", 2), row("IX_books_title", "title", 1))) {
                expect(indexes.contains(index), true, "getIndexInfo " + indexes);
            }
            expect(named(meta.getProcedures("checks", "dbo", "add_up"), "PROCEDURE_NAME"), List.of(row("add_up;1")), "getProcedures");
            expect(named(meta.getProcedureColumns("checks", "dbo", "add_up", "%"), "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME"),
                List.of(row("@RETURN_VALUE", 5, "int"), row("@a", 1, "int"), row("@b", 1, "int"), row("@sum", 2, "int"), row("@text", 2, "nvarchar")), "getProcedureColumns");
            expect(named(meta.getBestRowIdentifier("checks", "dbo", "authors", DatabaseMetaData.bestRowTransaction, true), "COLUMN_NAME"),
                List.of(row("id")), "getBestRowIdentifier");
            expect(named(meta.getVersionColumns("checks", "dbo", "authors"), "COLUMN_NAME"), List.of(), "getVersionColumns");
            Set<Object> types = new TreeSet<>();
            named(meta.getTypeInfo(), "TYPE_NAME").forEach(row -> types.add(row.get(0)));
            expect(types.containsAll(List.of("int", "int identity", "nvarchar", "datetime2", "sql_variant")), true, "getTypeInfo " + types);
            expect(named(meta.getCatalogs(), "TABLE_CAT").contains(row("checks")), true, "getCatalogs");
            expect(named(meta.getSchemas(), "TABLE_SCHEM").contains(row("dbo")), true, "getSchemas");
            expect(named(meta.getTableTypes(), "TABLE_TYPE").contains(row("TABLE")), true, "getTableTypes");
            for (ResultSet privileges : List.of(meta.getTablePrivileges("checks", "dbo", "books"), meta.getColumnPrivileges("checks", "dbo", "books", "%"))) {
                expect(named(privileges, "TABLE_NAME", "PRIVILEGE").contains(row("books", "SELECT")), true, "privileges");
            }
            expect(named(meta.getFunctions("checks", "dbo", "%"), "FUNCTION_NAME").isEmpty(), false, "getFunctions");
        }
    }

    /** Runs the checks named, or all. */
    public static void main(String[] names) {
        record Named(String name, Check check) {}
        List<Named> checks = List.of(new Named("login", Checks::login), new Named("types", Checks::types), new Named("parameters", Checks::parameters),
            new Named("results", Checks::results), new Named("output", Checks::output), new Named("tables", Checks::tables),
            new Named("cursors", Checks::cursors), new Named("transactions", Checks::transactions), new Named("bulk", Checks::bulk),
            new Named("cancel", Checks::cancel), new Named("timeout", Checks::timeout), new Named("errors", Checks::errors),
            new Named("metadata", Checks::metadata));
        int failed = 0;
        for (Named check : checks) {
            if (names.length > 0 && !List.of(names).contains(check.name)) {
                continue;
            }
            try {
                check.check.run();
                System.out.println("ok " + check.name);
            } catch (Throwable error) {
                failed++;
                error.printStackTrace(System.out);
                System.out.println("FAILED " + check.name + ": " + String.valueOf(error.getMessage()).replace('\n', ' '));
            }
        }
        System.exit(failed > 0 ? 1 : 0);
    }
}
