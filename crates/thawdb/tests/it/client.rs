//! Our own TDS client against our own server: parameters, transactions, attention, bulk loads.

use crate::support::{Folder, TestServer};
use std::time::Duration;
use thawdb_tds::client::{Client, ClientError, Collected, Item};
use thawdb_tds::rpc::{RpcCall, RpcParameter};
use thawdb_tds::table_value::TableValue;
use thawdb_types::{Scalar, SqlType};

fn all(client: &mut Client, text: &str) -> Collected {
    client.batch(text).unwrap().finish().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn number(client: &mut Client, text: &str) -> i64 {
    all(client, text).rows[0][0].as_i64().unwrap()
}

#[test]
fn every_type_goes_and_comes_back() {
    let folder = Folder::new("client-types");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    let date = 733_253;
    let cases = [
        (SqlType::TinyInt, vec![Scalar::TinyInt(0), Scalar::TinyInt(255)]),
        (SqlType::SmallInt, vec![Scalar::SmallInt(i16::MIN), Scalar::SmallInt(i16::MAX)]),
        (SqlType::Int, vec![Scalar::Int(i32::MIN), Scalar::Int(i32::MAX)]),
        (SqlType::BigInt, vec![Scalar::BigInt(i64::MIN), Scalar::BigInt(i64::MAX)]),
        (SqlType::decimal(38, 10), vec![Scalar::Decimal(-(10i128.pow(38) - 1)), Scalar::Decimal(1)]),
        (SqlType::decimal(9, 2), vec![Scalar::Decimal(999_999_999)]),
        (SqlType::Real, vec![Scalar::Real(f32::MIN), Scalar::Real(0.0)]),
        (SqlType::Float, vec![Scalar::Float(f64::MAX), Scalar::Float(f64::MIN_POSITIVE)]),
        (SqlType::Bit, vec![Scalar::Bit(true), Scalar::Bit(false)]),
        (SqlType::varchar(20), vec![Scalar::text(""), Scalar::text("café €")]),
        (SqlType::nvarchar(20), vec![Scalar::text(""), Scalar::text("日本語 😀")]),
        (SqlType::NVARCHAR_MAX, vec![Scalar::text(""), Scalar::text("ü".repeat(100_000))]),
        (SqlType::varbinary(20), vec![Scalar::Binary(vec![]), Scalar::Binary(vec![0, 255])]),
        (SqlType::VARBINARY_MAX, vec![Scalar::Binary(vec![7; 100_000])]),
        (SqlType::Date, vec![Scalar::Date(0), Scalar::Date(3_652_058)]),
        (SqlType::Time { scale: 7 }, vec![Scalar::Time(0), Scalar::Time(863_999_999_999)]),
        (SqlType::DateTime, vec![Scalar::DateTime(-53_690 * 25_920_000), Scalar::DateTime(1)]),
        (SqlType::DateTime2 { scale: 7 }, vec![Scalar::DateTime2(0), Scalar::DateTime2(3_155_378_975_999_999_999)]),
        (SqlType::DateTime2 { scale: 0 }, vec![Scalar::DateTime2(date * 864_000_000_000)]),
        (SqlType::UniqueIdentifier, vec![Scalar::Guid([0; 16]), Scalar::Guid(*b"0123456789abcdef")]),
    ];
    for (sql_type, values) in cases {
        let name = sql_type.name();
        all(&mut client, &format!("CREATE TABLE #t (id int NOT NULL PRIMARY KEY, v {name} NULL)"));
        for (id, value) in (0..).zip([vec![Scalar::Null], values].concat()) {
            let parameters = [("@id", SqlType::Int, Scalar::Int(id)), ("@v", sql_type, value.clone())];
            let inserted = client.execute("INSERT #t VALUES (@id, @v)", &parameters).unwrap().finish().unwrap();
            assert_eq!(inserted.affected, 1, "{name}");
            let read = client.execute("SELECT v FROM #t WHERE id = @id", &parameters[..1]).unwrap().finish().unwrap();
            assert_eq!(read.rows, [[value]], "{name}");
            assert_eq!(read.columns[0].info.sql_type.name(), name);
        }
        all(&mut client, "DROP TABLE #t");
    }
}

#[test]
fn errors_leave_the_connection_usable() {
    let folder = Folder::new("client-errors");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    all(&mut client, "CREATE TABLE #k (id int NOT NULL PRIMARY KEY); INSERT #k VALUES (1)");
    for (text, number, severity, line) in [
        ("\n\nSELECT * FROM dbo.nonesuch", 208, 16, 3),
        ("\nINSERT #k VALUES (1)", 2627, 14, 2),
        ("DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 16, 4),
        ("SELECT (1", 102, 15, 1),
    ] {
        match client.batch(text).unwrap().finish() {
            Err(ClientError::Server(error)) => assert_eq!((error.number, error.severity, error.line), (number, severity, line), "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM #k"), 1);
}

#[test]
fn warnings_go_out_as_sql_server_sends_them() {
    let folder = Folder::new("client-warnings");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    let answer = all(&mut client, "PRINT N'grüß dich'; SELECT SUM(n) FROM (VALUES (1), (NULL)) AS v (n)");
    let messages: Vec<_> = answer.messages.iter().map(|m| (m.number, m.severity, m.text.as_str())).collect();
    let warning = "Warning: Null value is eliminated by an aggregate or other SET operation.";
    assert_eq!(messages, [(0, 0, "grüß dich"), (8153, 0, warning)]);
}

#[test]
fn output_parameters_and_prepared_statements() {
    let folder = Folder::new("client-rpc");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    let parameter =
        |name: &str, sql_type, value, output| RpcParameter { name: name.into(), output, default: false, sql_type, value, table: None };
    let text = |text: &str| parameter("", SqlType::NVARCHAR_MAX, Scalar::text(text), false);
    let call = RpcCall {
        procedure: "sp_executesql".into(),
        no_metadata: false,
        parameters: vec![text("SET @n = @n * 2; SELECT @n"), text("@n int OUTPUT"), parameter("@n", SqlType::Int, Scalar::Int(21), true)],
        invalid: None,
    };
    let mut response = client.call(&call).unwrap();
    let (mut status, mut value) = (None, None);
    while let Some(item) = response.next_item().unwrap() {
        match item {
            Item::ReturnStatus(given) => status = Some(given),
            Item::ReturnValue(given) => value = Some((given.name, given.value)),
            _ => {}
        }
    }
    assert_eq!((status, value), (Some(0), Some(("@n".into(), Scalar::Int(42)))));

    let prepare = RpcCall {
        procedure: "sp_prepare".into(),
        no_metadata: false,
        parameters: vec![
            parameter("", SqlType::Int, Scalar::Null, true),
            text("@a int"),
            text("SELECT @a + 1"),
            parameter("", SqlType::Int, Scalar::Int(1), false),
        ],
        invalid: None,
    };
    let mut response = client.call(&prepare).unwrap();
    let mut handle = Scalar::Null;
    while let Some(item) = response.next_item().unwrap() {
        if let Item::ReturnValue(given) = item {
            handle = given.value;
        }
    }
    for n in 0..20 {
        let parameters = vec![parameter("", SqlType::Int, handle.clone(), false), parameter("@a", SqlType::Int, Scalar::Int(n), false)];
        let execute = RpcCall { procedure: "sp_execute".into(), no_metadata: false, parameters, invalid: None };
        assert_eq!(client.call(&execute).unwrap().finish().unwrap().rows, [[Scalar::Int(n + 1)]]);
    }
}

#[test]
fn table_valued_parameters() {
    let folder = Folder::new("client-tables");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    all(&mut client, "CREATE TYPE dbo.Lines AS TABLE (id bigint NOT NULL PRIMARY KEY, price float DEFAULT 2.5, name nvarchar(20))");
    all(
        &mut client,
        "CREATE PROCEDURE total @lines dbo.Lines READONLY, @from int = 0 AS SELECT COUNT(*), SUM(price), MAX(name) FROM @lines WHERE id > @from",
    );
    let plain =
        |name: &str, sql_type, value| RpcParameter { name: name.into(), output: false, default: false, sql_type, value, table: None };
    let table = |rows: Vec<Vec<Scalar>>| TableValue {
        schema: "dbo".into(),
        type_name: "Lines".into(),
        columns: vec![(SqlType::BigInt, false), (SqlType::Float, true), (SqlType::nvarchar(20), false)],
        order: vec![0, 1, 2],
        rows,
    };
    let lines = |rows| RpcParameter { table: Some(table(rows)), ..plain("@lines", SqlType::Int, Scalar::Null) };
    let row = |id: i64| vec![Scalar::BigInt(id), Scalar::text(format!("line {id:04}"))];
    let rows: Vec<_> = (1..=2000).map(row).collect();
    let call = |procedure: &str, parameters| RpcCall { procedure: procedure.into(), no_metadata: false, parameters, invalid: None };
    let expected = vec![Scalar::Int(1000), Scalar::Float(2500.0), Scalar::text("line 2000")];
    let from = plain("@from", SqlType::Int, Scalar::Int(1000));
    let answer = client.call(&call("total", vec![lines(rows.clone()), from.clone()])).unwrap().finish().unwrap();
    assert_eq!(answer.rows, [expected.clone()]);
    let text = |text: &str| plain("", SqlType::NVARCHAR_MAX, Scalar::text(text));
    let statement = text("EXEC total @lines, @from");
    let parameters = vec![statement, text("@lines dbo.Lines READONLY, @from int"), lines(rows), from];
    assert_eq!(client.call(&call("sp_executesql", parameters)).unwrap().finish().unwrap().rows, [expected]);
    // No rows, and no parameter at all.
    let none = vec![Scalar::Int(0), Scalar::Null, Scalar::Null];
    assert_eq!(client.call(&call("total", vec![lines(Vec::new())])).unwrap().finish().unwrap().rows, [none.clone()]);
    assert_eq!(client.call(&call("total", Vec::new())).unwrap().finish().unwrap().rows, [none]);
    match client.call(&call("total", vec![lines(vec![row(1), row(1)])])).unwrap().finish() {
        Err(ClientError::Server(error)) => assert_eq!(error.number, 2627),
        other => panic!("{other:?}"),
    }
    let wrong = plain("@lines", SqlType::Int, Scalar::Int(1));
    match client.call(&call("total", vec![wrong])).unwrap().finish() {
        Err(ClientError::Server(error)) => assert_eq!(error.number, 206),
        other => panic!("{other:?}"),
    }
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM tempdb.sys.tables"), 0);
}

#[test]
fn an_attention_stops_a_statement_and_nothing_else() {
    let folder = Folder::new("client-attention");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    all(&mut client, "CREATE TABLE #n (i int NOT NULL); INSERT #n VALUES (1)");
    for text in ["WHILE 1 = 1 DECLARE @n int = 1", "WHILE 1 = 1 SELECT i FROM #n"] {
        let canceller = client.canceller();
        let cancelling = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            canceller.cancel().unwrap();
        });
        assert!(client.batch(text).unwrap().finish().unwrap().cancelled, "{text}");
        cancelling.join().unwrap();
        assert_eq!(number(&mut client, "SELECT COUNT(*) FROM #n"), 1);
    }
}

#[test]
fn bulk_loads_are_all_or_nothing() {
    let folder = Folder::new("client-bulk");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    all(&mut client, "CREATE DATABASE d; USE d; CREATE TABLE dbo.b (id int NOT NULL PRIMARY KEY, t nvarchar(40) NULL)");
    let columns = [("id".to_owned(), SqlType::Int), ("t".to_owned(), SqlType::nvarchar(40))];
    let row = |n: i32| [Scalar::Int(n), if n % 7 == 0 { Scalar::Null } else { Scalar::text(format!("Zeile {n}")) }];
    let mut bulk = client.bulk("dbo.b", &columns, "TABLOCK").unwrap();
    for n in 0..100_000 {
        bulk.row(&row(n)).unwrap();
    }
    assert_eq!(bulk.finish().unwrap().finish().unwrap().affected, 100_000);
    assert_eq!(number(&mut client, "SELECT COUNT(t) FROM dbo.b"), 85_714);
    assert_eq!(all(&mut client, "SELECT id, t FROM dbo.b WHERE id = 99999").rows, [row(99_999).to_vec()]);

    let mut bulk = client.bulk("dbo.b", &columns, "").unwrap();
    for n in [100_001, 100_002, 5] {
        bulk.row(&row(n)).unwrap();
    }
    match bulk.finish().unwrap().finish() {
        Err(ClientError::Server(error)) => assert_eq!(error.number, 2627),
        other => panic!("a duplicate key was loaded: {other:?}"),
    }
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM dbo.b"), 100_000);
}
