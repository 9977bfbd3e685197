// Package driver has go-mssqldb's checks of ThawDB, for common/drive.py, which starts a server and counts.
//
// Claim: what go-mssqldb does with SQL Server it does with ThawDB. Parameters travel through sp_executesql, prepared
// statements through sp_prepexec, the bulk copy through INSERT BULK.
package driver

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// rowsBulk is how many rows the bulk copy loads.
const rowsBulk = 200_000

// dsn of a connection; the settings come from drive.py.
func dsn(database, password string) string {
	encrypt := map[string]string{"off": "disable", "on": "true"}[os.Getenv("THAWDB_ENCRYPT")]
	query := url.Values{"database": {database}, "encrypt": {encrypt}, "certificate": {os.Getenv("THAWDB_CERTIFICATE")}}
	u := url.URL{Scheme: "sqlserver", User: url.UserPassword("sa", password), Host: "127.0.0.1:" + os.Getenv("THAWDB_PORT"), RawQuery: query.Encode()}
	return u.String()
}

func open(t *testing.T, database, password string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", dsn(database, password))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, text string, arguments ...any) sql.Result {
	t.Helper()
	result, err := db.Exec(text, arguments...)
	if err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return result
}

func TestDriver(t *testing.T) {
	db := open(t, "checks", os.Getenv("THAWDB_PASSWORD"))
	for _, check := range []struct {
		name string
		run  func(*testing.T, *sql.DB)
	}{
		{"login", login},
		{"types", types},
		{"parameters", prepared},
		{"results", results},
		{"output", output},
		{"tables", tables},
		{"cursors", cursors},
		{"transactions", transaction},
		{"bulk", bulk},
		{"cancel", cancelled},
		{"timeout", timeout},
		{"errors", errorsOf},
		{"metadata", metadata},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, db) })
	}
}

func login(t *testing.T, db *sql.DB) {
	var encrypted, name string
	text := "SELECT encrypt_option, DB_NAME() FROM sys.dm_exec_connections WHERE session_id = @@SPID"
	wanted := map[string]string{"off": "FALSE", "on": "TRUE"}[os.Getenv("THAWDB_ENCRYPT")]
	if err := db.QueryRow(text).Scan(&encrypted, &name); err != nil || encrypted != wanted || name != "checks" {
		t.Fatalf("%v: %q, %q", err, encrypted, name)
	}
	for _, c := range []struct {
		database, password string
		number             int32
	}{{"checks", "wrong", 18456}, {"nonesuch", os.Getenv("THAWDB_PASSWORD"), 4060}} {
		err := open(t, c.database, c.password).Ping()
		var refused mssql.Error
		if !errors.As(err, &refused) || (refused.Number != c.number && !strings.Contains(err.Error(), c.database)) {
			t.Fatalf("%s with %s gave %v", c.database, c.password, err)
		}
	}
}

// rowsOf reads the present result set as text.
func rowsOf(t *testing.T, rows *sql.Rows) [][]string {
	t.Helper()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	all := [][]string{}
	for rows.Next() {
		values := make([]any, len(columns))
		for at := range values {
			values[at] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for at, value := range values {
			row[at] = fmt.Sprint(*value.(*any))
		}
		all = append(all, row)
	}
	return all
}

func query(t *testing.T, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, text string, arguments ...any) [][]string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), text, arguments...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	all := rowsOf(t, rows)
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}

func expect(t *testing.T, got, wanted any, what string) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Fatalf("%s: got %.300v, wanted %.300v", what, got, wanted)
	}
}

func results(t *testing.T, db *sql.DB) {
	rows, err := db.Query("EXEC dbo.three_results @p1", 4)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	sets := [][][]string{rowsOf(t, rows)}
	for rows.NextResultSet() {
		sets = append(sets, rowsOf(t, rows))
	}
	expect(t, sets, [][][]string{{{"4"}}, {{"4", "x"}, {"5", "<nil>"}}, {}}, "result sets of a procedure")
	expect(t, len(query(t, db, "SELECT a.n, b.n FROM dbo.numbers AS a CROSS JOIN dbo.numbers AS b WHERE a.n <= 20")), 20_000, "many rows")
}

func cursors(t *testing.T, db *sql.DB) {
	connection, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	text := "DECLARE every CURSOR GLOBAL SCROLL STATIC FOR SELECT n, name FROM dbo.numbers WHERE n <= 5 ORDER BY n OPEN every"
	if _, err := connection.ExecContext(context.Background(), text); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"NEXT", "1"}, {"LAST", "5"}, {"PRIOR", "4"}, {"FIRST", "1"}, {"ABSOLUTE 3", "3"}, {"RELATIVE 2", "5"}} {
		expect(t, query(t, connection, "FETCH "+c[0]+" FROM every"), [][]string{{c[1], "number " + c[1]}}, "FETCH "+c[0])
	}
	if _, err := connection.ExecContext(context.Background(), "CLOSE every DEALLOCATE every"); err != nil {
		t.Fatal(err)
	}
}

func timeout(t *testing.T, db *sql.DB) {
	limited := open(t, "checks", os.Getenv("THAWDB_PASSWORD"))
	context, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := limited.ExecContext(context, "WHILE 1 = 1 DECLARE @n int = 1"); !errors.Is(err, context.Err()) {
		t.Fatalf("a loop without end gave %v", err)
	}
	expect(t, query(t, limited, "SELECT 6"), [][]string{{"6"}}, "a query afterwards")
}

func metadata(t *testing.T, db *sql.DB) {
	rows, err := db.Query("SELECT n, name, CAST(1 AS decimal(9, 2)) AS price FROM dbo.numbers WHERE n < 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	length, _ := columns[1].Length()
	precision, scale, _ := columns[2].DecimalSize()
	nullable, _ := columns[1].Nullable()
	expect(t, []any{columns[0].DatabaseTypeName(), columns[1].DatabaseTypeName(), length, nullable, precision, scale},
		[]any{"INT", "NVARCHAR", int64(20), true, int64(9), int64(2)}, "types of columns")
	keys := query(t, db, "EXEC sp_pkeys 'books'")
	expect(t, []string{keys[0][3], keys[1][3], keys[0][5]}, []string{"author", "number", "PK_books"}, "sp_pkeys")
	expect(t, len(query(t, db, "EXEC sp_columns 'books'")), 4, "sp_columns")
	foreign := query(t, db, "EXEC sp_fkeys @fktable_name = 'books'")
	expect(t, []string{foreign[0][2], foreign[0][6], foreign[0][11]}, []string{"authors", "books", "FK_books_author"}, "sp_fkeys")
}

// line is a row of the table type that tables passes.
type line struct {
	ID    int64
	Name  string
	Price string
}

// tables passes table-valued parameters to a procedure and to a text.
func tables(t *testing.T, db *sql.DB) {
	var rows []line
	for i := int64(1); i <= 1000; i++ {
		rows = append(rows, line{ID: i, Name: fmt.Sprintf("line %04d", i), Price: "0.5"})
	}
	value := mssql.TVP{TypeName: "dbo.Lines", Value: rows}
	for _, text := range []string{"total", "SELECT COUNT(*), SUM(price), MAX(name) FROM @lines WHERE id >= @from"} {
		var count int
		var sum float64
		var last string
		row := db.QueryRow(text, sql.Named("lines", value), sql.Named("from", int64(501)))
		if err := row.Scan(&count, &sum, &last); err != nil || count != 500 || sum != 250 || last != "line 1000" {
			t.Fatalf("%s: %v: %d, %v, %q", text, err, count, sum, last)
		}
	}
	rows = append(rows, rows[0])
	_, err := db.Exec("total", sql.Named("lines", mssql.TVP{TypeName: "dbo.Lines", Value: rows}), sql.Named("from", int64(1)))
	var refused mssql.Error
	if !errors.As(err, &refused) || refused.Number != 2627 {
		t.Fatalf("a key sent twice gave %v", err)
	}
}

func day(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

func types(t *testing.T, db *sql.DB) {
	long := strings.Repeat("ü", 100_000)
	guid := []byte{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	cases := []struct {
		name   string
		values []any
	}{
		{"tinyint", []any{int64(0), int64(255)}},
		{"smallint", []any{int64(math.MinInt16), int64(math.MaxInt16)}},
		{"int", []any{int64(math.MinInt32), int64(math.MaxInt32)}},
		{"bigint", []any{int64(math.MinInt64), int64(math.MaxInt64)}},
		{"decimal(38,4)", []any{"9999999999999999999999999999999999.9999", "-0.0001"}},
		{"float", []any{0.0, -1.5, math.MaxFloat64, 2.2250738585072014e-308}},
		{"real", []any{-1.5, 0.25}},
		{"bit", []any{true, false}},
		{"char(5)", []any{"ab   "}},
		{"varchar(20)", []any{"", "plain", "café £ €"}},
		{"nchar(4)", []any{"日本  "}},
		{"nvarchar(20)", []any{"", "Zoë", "日本語", "😀🎉"}},
		{"nvarchar(max)", []any{"", long}},
		{"binary(4)", []any{[]byte{0, 1, 254, 255}}},
		{"varbinary(20)", []any{[]byte{}, []byte{0}, bytes.Repeat([]byte{7}, 20)}},
		{"varbinary(max)", []any{bytes.Repeat([]byte{1, 2, 3}, 30_000)}},
		{"date", []any{day(1, 1, 1), day(9999, 12, 31), day(2008, 7, 31)}},
		{"time(7)", []any{time.Date(1, 1, 1, 23, 59, 59, 999_999_900, time.UTC)}},
		{"datetime", []any{day(1753, 1, 1), time.Date(9999, 12, 31, 23, 59, 59, 997_000_000, time.UTC)}},
		{"datetime2(7)", []any{day(1, 1, 1), time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC)}},
		{"uniqueidentifier", []any{make([]byte, 16), guid}},
	}
	for at, c := range cases {
		table := fmt.Sprintf("dbo.types_%d", at)
		execute(t, db, fmt.Sprintf("CREATE TABLE %s (id int NOT NULL PRIMARY KEY, v %s NULL)", table, c.name))
		for id, value := range append([]any{nil}, c.values...) {
			result := execute(t, db, fmt.Sprintf("INSERT %s (id, v) VALUES (@p1, %s)", table, convertible(c.name)), id, parameter(c.name, value))
			if n, err := result.RowsAffected(); n != 1 || err != nil {
				t.Fatalf("%s: %d rows affected, %v", c.name, n, err)
			}
			var got any
			if err := db.QueryRow(fmt.Sprintf("SELECT v FROM %s WHERE id = @p1", table), id).Scan(&got); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if !same(c.name, got, value) {
				t.Errorf("%s: got %.80v, wanted %.80v", c.name, got, value)
			}
		}
		execute(t, db, "DROP TABLE "+table)
	}
}

// convertible is how the second parameter is written: NULL travels as nvarchar, which binary columns do not take.
func convertible(name string) string {
	if strings.Contains(name, "binary") {
		return fmt.Sprintf("CONVERT(%s, @p2)", name)
	}
	return "@p2"
}

func parameter(name string, value any) any {
	switch v := value.(type) {
	case time.Time:
		switch {
		case name == "datetime":
			return mssql.DateTime1(v)
		case name == "date":
			return v.Format("2006-01-02")
		case strings.HasPrefix(name, "time"):
			return v.Format("15:04:05.0000000")
		}
		return v.Format("2006-01-02 15:04:05.0000000")
	case []byte:
		if name == "uniqueidentifier" {
			var guid mssql.UniqueIdentifier
			copy(guid[:], v)
			return guid
		}
	}
	return value
}

func same(name string, got, wanted any) bool {
	switch w := wanted.(type) {
	case nil:
		return got == nil
	case []byte:
		g, ok := got.([]byte)
		if ok && name == "uniqueidentifier" {
			var guid mssql.UniqueIdentifier
			return guid.Scan(g) == nil && bytes.Equal(guid[:], w)
		}
		return ok && bytes.Equal(g, w)
	case string:
		if g, ok := got.([]byte); ok {
			return string(g) == w
		}
	case time.Time:
		g, ok := got.(time.Time)
		return ok && g.Sub(w).Abs() < time.Microsecond
	}
	return got == wanted
}

func transaction(t *testing.T, db *sql.DB) {
	execute(t, db, "CREATE TABLE dbo.balances (id int NOT NULL PRIMARY KEY, balance int NOT NULL)")
	defer execute(t, db, "DROP TABLE dbo.balances")
	execute(t, db, "INSERT dbo.balances VALUES (1, 100), (2, 0)")
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("UPDATE dbo.balances SET balance = balance + @p1 WHERE id = 2", 30); err != nil {
			t.Fatal(err)
		}
		var within, after int
		if err := tx.QueryRow("SELECT balance FROM dbo.balances WHERE id = 2").Scan(&within); err != nil || within != 30 {
			t.Fatalf("within the transaction: %d, %v", within, err)
		}
		wanted := 0
		if commit {
			wanted, err = 30, tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRow("SELECT balance FROM dbo.balances WHERE id = 2").Scan(&after); err != nil || after != wanted {
			t.Fatalf("after the transaction (commit %v): %d, %v", commit, after, err)
		}
	}
}

func errorsOf(t *testing.T, db *sql.DB) {
	execute(t, db, "CREATE TABLE dbo.keys (id int NOT NULL PRIMARY KEY)")
	defer execute(t, db, "DROP TABLE dbo.keys")
	execute(t, db, "INSERT dbo.keys VALUES (1)")
	for _, c := range []struct {
		text         string
		number, line int32
		class, state uint8
		procedure    string
		message      string
	}{
		{"\n\nSELECT * FROM dbo.nonesuch", 208, 3, 16, 1, "", "Invalid object name 'dbo.nonesuch'."},
		{"\nINSERT dbo.keys VALUES (1)", 2627, 2, 14, 1, "", "Violation of PRIMARY KEY constraint"},
		{"DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 4, 16, 1, "", "Divide by zero error encountered."},
		{"EXEC dbo.fails 1", 50000, 4, 14, 9, "fails", "told by fails"},
		{"EXEC dbo.fails 2", 8134, 6, 16, 1, "fails", "Divide by zero error encountered."},
		{"EXEC dbo.fails 4", 50123, 10, 16, 5, "fails", "thrown"},
	} {
		rows, err := db.Query(c.text)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		var got mssql.Error
		if !errors.As(err, &got) {
			t.Fatalf("%q: %v", c.text, err)
		}
		told := []any{got.Number, got.LineNo, got.Class, got.State, strings.TrimPrefix(got.ProcName, "dbo.")}
		expect(t, told, []any{c.number, c.line, c.class, c.state, c.procedure}, c.text)
		if !strings.Contains(got.Message, c.message) {
			t.Errorf("%q: %s", c.text, got.Message)
		}
	}
}

func prepared(t *testing.T, db *sql.DB) {
	statement, err := db.Prepare("SELECT @p1 + @p2, N'é' + @p3")
	if err != nil {
		t.Fatal(err)
	}
	defer statement.Close()
	for n := range 50 {
		var sum int
		var text string
		if err := statement.QueryRow(n, 1, strconv.Itoa(n)).Scan(&sum, &text); err != nil || sum != n+1 || text != "é"+strconv.Itoa(n) {
			t.Fatalf("%d: %d %q %v", n, sum, text, err)
		}
	}
}

func output(t *testing.T, db *sql.DB) {
	number, text := int64(21), "größer"
	_, err := db.Exec("SET @number = @number * 2; SET @text = UPPER(@text)", sql.Named("number", sql.Out{Dest: &number, In: true}),
		sql.Named("text", sql.Out{Dest: &text, In: true}))
	if err != nil || number != 42 || text != "GRÖßER" {
		t.Fatalf("%d %q %v", number, text, err)
	}
	var sum int64
	var status mssql.ReturnStatus
	text = "é"
	_, err = db.Exec("dbo.add_up", sql.Named("a", 10), sql.Named("sum", sql.Out{Dest: &sum}), sql.Named("text", sql.Out{Dest: &text, In: true}), &status)
	if err != nil || sum != 15 || text != "É!" || status != 7 {
		t.Fatalf("%d %q %d %v", sum, text, status, err)
	}
}

func cancelled(t *testing.T, db *sql.DB) {
	connection, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	limited, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = connection.ExecContext(limited, "WHILE 1 = 1 DECLARE @n int = 1")
	if err == nil {
		t.Fatal("a loop without end ended")
	}
	if waited := time.Since(begin); waited > 10*time.Second {
		t.Fatalf("the cancellation took %v", waited)
	}
	var one int
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Fatalf("after the cancellation: %d, %v", one, err)
	}
}

func bulk(t *testing.T, db *sql.DB) {
	rows := rowsBulk
	execute(t, db, "CREATE TABLE dbo.bulk_rows (id int NOT NULL, name nvarchar(40) NULL, amount float NULL, at datetime2(3) NULL)")
	defer execute(t, db, "DROP TABLE dbo.bulk_rows")
	begin := time.Now()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	statement, err := tx.Prepare(mssql.CopyIn("dbo.bulk_rows", mssql.BulkOptions{Tablock: true}, "id", "name", "amount", "at"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range rows {
		var name any
		if n%7 != 0 {
			name = fmt.Sprintf("Zeile %d für alle", n)
		}
		if _, err := statement.Exec(n, name, float64(n)/4, day(2008, 7, 31).Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	result, err := statement.Exec()
	if err != nil {
		t.Fatal(err)
	}
	if loaded, err := result.RowsAffected(); loaded != int64(rows) || err != nil {
		t.Fatalf("%d rows loaded, %v", loaded, err)
	}
	if err := statement.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	seconds := time.Since(begin).Seconds()
	t.Logf("bulk copy of %d rows: %.1f s, %.0f rows/s", rows, seconds, float64(rows)/seconds)
	var count, named int
	var sum int64
	var last time.Time
	query := "SELECT COUNT(*), COUNT(name), SUM(CAST(id AS bigint)), MAX(at) FROM dbo.bulk_rows"
	if err := db.QueryRow(query).Scan(&count, &named, &sum, &last); err != nil {
		t.Fatal(err)
	}
	wanted := day(2008, 7, 31).Add(time.Duration(rows-1) * time.Second)
	if count != rows || named != rows-(rows+6)/7 || sum != int64(rows)*int64(rows-1)/2 || !last.Equal(wanted) {
		t.Fatalf("%d rows, %d named, sum %d, last %v", count, named, sum, last)
	}
}
