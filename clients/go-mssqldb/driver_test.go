// Package driver has the tests of ThawDB with go-mssqldb: types, transactions, errors, a million rows; encrypted and
// not.
//
// Claim: what go-mssqldb does with SQL Server it does with ThawDB. Parameters travel through sp_executesql, prepared
// statements through sp_prepexec, the bulk copy through INSERT BULK.
//
//	THAWDB_SERVER=target/release/thawdb go test ./...
package driver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// rowsBulk is how many rows the bulk copy loads without encryption; a tenth of it with.
const rowsBulk = 1_000_000

// server is a running thawdb.
type server struct {
	address  string
	password string
}

func start(t *testing.T, options ...string) *server {
	t.Helper()
	binary := os.Getenv("THAWDB_SERVER")
	if binary == "" {
		t.Fatal("THAWDB_SERVER must name the thawdb binary")
	}
	drawn := make([]byte, 12)
	if _, err := rand.Read(drawn); err != nil {
		t.Fatal(err)
	}
	s := &server{password: "Aa1!" + hex.EncodeToString(drawn)}
	arguments := append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, options...)
	command := exec.Command(binary, arguments...)
	command.Env = append(os.Environ(), "MSSQL_SA_PASSWORD="+s.password)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not get ready: %v", err)
	}
	s.address = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	return s
}

// dsn of a connection; encrypt is go-mssqldb's own setting.
func (s *server) dsn(database, encrypt, password string) string {
	query := url.Values{"database": {database}, "encrypt": {encrypt}, "TrustServerCertificate": {"true"}}
	u := url.URL{Scheme: "sqlserver", User: url.UserPassword("sa", password), Host: s.address, RawQuery: query.Encode()}
	return u.String()
}

func (s *server) open(t *testing.T, database, encrypt string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", s.dsn(database, encrypt, s.password))
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
	s := start(t)
	master := s.open(t, "master", "disable")
	execute(t, master, "CREATE DATABASE tests")
	for _, encrypt := range []string{"disable", "false", "true"} {
		t.Run("encrypt="+encrypt, func(t *testing.T) {
			db := s.open(t, "tests", encrypt)
			t.Run("types", func(t *testing.T) { types(t, db) })
			t.Run("transaction", func(t *testing.T) { transaction(t, db) })
			t.Run("errors", func(t *testing.T) { errorsOf(t, db) })
			t.Run("prepared", func(t *testing.T) { prepared(t, db) })
			t.Run("output", func(t *testing.T) { output(t, db) })
			t.Run("tables", func(t *testing.T) { tables(t, db) })
			t.Run("cancel", func(t *testing.T) { cancelled(t, db) })
			t.Run("bulk", func(t *testing.T) {
				rows := rowsBulk
				if encrypt != "disable" {
					rows /= 10
				}
				bulk(t, db, rows)
			})
		})
	}
}

// line is a row of the table type that tables passes.
type line struct {
	ID    int64
	Name  string
	Price float64
}

// tables passes table-valued parameters to a procedure and to a text.
func tables(t *testing.T, db *sql.DB) {
	execute(t, db, "DROP PROCEDURE IF EXISTS total")
	execute(t, db, "DROP TYPE IF EXISTS dbo.Lines")
	execute(t, db, "CREATE TYPE dbo.Lines AS TABLE (id bigint NOT NULL PRIMARY KEY, name nvarchar(20), price float)")
	execute(t, db, "CREATE PROCEDURE total @lines dbo.Lines READONLY, @from bigint AS "+
		"SELECT COUNT(*), SUM(price), MAX(name) FROM @lines WHERE id >= @from")
	var rows []line
	for i := int64(1); i <= 1000; i++ {
		rows = append(rows, line{ID: i, Name: fmt.Sprintf("line %04d", i), Price: 0.5})
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

func TestDemandedEncryption(t *testing.T) {
	s := start(t, "--require-encryption")
	var one int
	if err := s.open(t, "master", "true").QueryRow("SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Fatalf("encrypted: %v, %v", one, err)
	}
	if err := s.open(t, "master", "disable").Ping(); err == nil {
		t.Fatal("a connection without encryption was accepted")
	}
	db, err := sql.Open("sqlserver", s.dsn("master", "true", "wrong"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var refused mssql.Error
	if err := db.Ping(); !errors.As(err, &refused) || refused.Number != 18456 {
		t.Fatalf("a wrong password gave %v", err)
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
	execute(t, db, "CREATE TABLE dbo.accounts (id int NOT NULL PRIMARY KEY, balance int NOT NULL)")
	defer execute(t, db, "DROP TABLE dbo.accounts")
	execute(t, db, "INSERT dbo.accounts VALUES (1, 100), (2, 0)")
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("UPDATE dbo.accounts SET balance = balance + @p1 WHERE id = 2", 30); err != nil {
			t.Fatal(err)
		}
		var within, after int
		if err := tx.QueryRow("SELECT balance FROM dbo.accounts WHERE id = 2").Scan(&within); err != nil || within != 30 {
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
		if err := db.QueryRow("SELECT balance FROM dbo.accounts WHERE id = 2").Scan(&after); err != nil || after != wanted {
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
		class        uint8
		message      string
	}{
		{"\n\nSELECT * FROM dbo.nonesuch", 208, 3, 16, "Invalid object name 'dbo.nonesuch'."},
		{"\nINSERT dbo.keys VALUES (1)", 2627, 2, 14, "Violation of PRIMARY KEY constraint"},
		{"DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 4, 16, "Divide by zero error encountered."},
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
		if got.Number != c.number || got.Class != c.class || got.LineNo != c.line || !strings.Contains(got.Message, c.message) {
			t.Errorf("%q: Msg %d, Level %d, Line %d: %s", c.text, got.Number, got.Class, got.LineNo, got.Message)
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

func bulk(t *testing.T, db *sql.DB, rows int) {
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
