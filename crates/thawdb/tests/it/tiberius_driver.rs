//! tiberius, an independent driver: types, transactions, errors, a million rows; encrypted and not.

use crate::support::{Folder, PASSWORD, TestServer};
use tiberius::numeric::Numeric;
use tiberius::time::{Date, DateTime, DateTime2, Time};
use tiberius::{AuthMethod, ColumnData, Config, EncryptionLevel, FromSql, IntoSql, ToSql, TokenRow, Uuid};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

type Client = tiberius::Client<Compat<TcpStream>>;

/// Rows of the bulk load without encryption; a tenth of it with.
const ROWS: i32 = 1_000_000;

async fn connect(server: &TestServer, encryption: EncryptionLevel, database: &str) -> tiberius::Result<Client> {
    let mut config = Config::new();
    config.host("127.0.0.1");
    config.port(server.port);
    config.database(database);
    config.authentication(AuthMethod::sql_server("sa", PASSWORD));
    config.encryption(encryption);
    config.trust_cert();
    let socket = TcpStream::connect(config.get_addr()).await?;
    socket.set_nodelay(true)?;
    tiberius::Client::connect(config, socket.compat_write()).await
}

async fn execute(client: &mut Client, text: &str) {
    client.simple_query(text).await.and_then(|_| Ok(())).unwrap_or_else(|error| panic!("{text}: {error}"));
}

async fn number(client: &mut Client, text: &str) -> i64 {
    let row = client.simple_query(text).await.unwrap().into_row().await.unwrap().unwrap();
    row.try_get::<i64, _>(0).unwrap_or_else(|_| row.get::<i32, _>(0).map(i64::from)).unwrap()
}

/// A value goes in as a parameter and comes back the same; NULL of its type too.
async fn round_trip<T>(client: &mut Client, sql_type: &str, values: &[T])
where
    T: ToSql + Clone + PartialEq + std::fmt::Debug + for<'a> FromSql<'a>,
    Option<T>: ToSql,
{
    execute(client, &format!("CREATE TABLE #t (id int NOT NULL, v {sql_type} NULL)")).await;
    let with_null = std::iter::once(None).chain(values.iter().cloned().map(Some));
    for (id, value) in (0i32..).zip(with_null) {
        let done = client.execute("INSERT #t VALUES (@P1, @P2)", &[&id, &value]).await;
        assert_eq!(done.unwrap_or_else(|e| panic!("{sql_type} {value:?}: {e}")).total(), 1);
        let row = client.query("SELECT v FROM #t WHERE id = @P1", &[&id]).await.unwrap().into_row().await.unwrap().unwrap();
        assert_eq!(row.try_get::<T, _>(0).unwrap(), value, "{sql_type}");
    }
    execute(client, "DROP TABLE #t").await;
}

/// A date or time as the driver's own bytes: it converts them only to the types of other crates.
#[derive(Debug, Clone, PartialEq)]
struct Moment(ColumnData<'static>);

impl ToSql for Moment {
    fn to_sql(&self) -> ColumnData<'_> {
        self.0.clone()
    }
}

impl FromSql<'_> for Moment {
    fn from_sql(value: &ColumnData<'static>) -> tiberius::Result<Option<Self>> {
        let null =
            matches!(value, ColumnData::Date(None) | ColumnData::Time(None) | ColumnData::DateTime(None) | ColumnData::DateTime2(None));
        Ok((!null).then(|| Self(value.clone())))
    }
}

/// As [`round_trip`], for what has no NULL of its own type.
async fn round_trip_moments(client: &mut Client, sql_type: &str, values: &[ColumnData<'static>]) {
    for value in values {
        let moment = Moment(value.clone());
        let text = format!("SELECT CAST(@P1 AS {sql_type}), CAST(NULL AS {sql_type})");
        let row = client.query(text, &[&moment]).await.unwrap().into_row().await.unwrap().unwrap();
        assert_eq!(row.try_get::<Moment, _>(0).unwrap(), Some(moment), "{sql_type}");
        assert_eq!(row.try_get::<Moment, _>(1).unwrap(), None, "{sql_type}");
    }
}

async fn round_trip_text(client: &mut Client, sql_type: &str, values: &[&str]) {
    for value in values {
        let text = format!("SELECT CAST(@P1 AS {sql_type}), @P1, CAST(NULL AS {sql_type})");
        let row = client.query(text, &[value]).await.unwrap().into_row().await.unwrap().unwrap();
        assert_eq!((row.get::<&str, _>(0), row.get::<&str, _>(1), row.get::<&str, _>(2)), (Some(*value), Some(*value), None), "{sql_type}");
    }
}

async fn round_trip_bytes(client: &mut Client, sql_type: &str, values: &[&[u8]]) {
    for value in values {
        let row = client.query(format!("SELECT CAST(@P1 AS {sql_type})"), &[value]).await.unwrap().into_row().await.unwrap().unwrap();
        assert_eq!(row.get::<&[u8], _>(0), Some(*value), "{sql_type}");
    }
}

async fn types(client: &mut Client) {
    round_trip(client, "tinyint", &[0u8, 255]).await;
    round_trip(client, "smallint", &[i16::MIN, i16::MAX]).await;
    round_trip(client, "int", &[i32::MIN, 0, i32::MAX]).await;
    round_trip(client, "bigint", &[i64::MIN, i64::MAX]).await;
    round_trip(client, "real", &[f32::MIN, -1.5]).await;
    round_trip(client, "float", &[f64::MAX, f64::MIN_POSITIVE, -0.25]).await;
    round_trip(client, "bit", &[true, false]).await;
    round_trip(client, "decimal(38,4)", &[Numeric::new_with_scale(-(10i128.pow(38) - 1), 4), Numeric::new_with_scale(1, 4)]).await;
    round_trip(client, "decimal(9,2)", &[Numeric::new_with_scale(999_999_999, 2)]).await;
    round_trip(client, "uniqueidentifier", &[Uuid::nil(), Uuid::from_u128(0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF)]).await;
    let date = |days| ColumnData::Date(Some(Date::new(days)));
    round_trip_moments(client, "date", &[date(0), date(3_652_058)]).await;
    let time = |ticks| ColumnData::Time(Some(Time::new(ticks, 7)));
    round_trip_moments(client, "time(7)", &[time(0), time(863_999_999_999)]).await;
    let datetime = |days, units| ColumnData::DateTime(Some(DateTime::new(days, units)));
    round_trip_moments(client, "datetime", &[datetime(-53_690, 0), datetime(2_958_463, 25_919_999)]).await;
    let datetime2 = |days, ticks| ColumnData::DateTime2(Some(DateTime2::new(Date::new(days), Time::new(ticks, 7))));
    round_trip_moments(client, "datetime2(7)", &[datetime2(0, 0), datetime2(3_652_058, 863_999_999_999)]).await;
    round_trip_text(client, "varchar(20)", &["", "plain", "café £ €"]).await;
    round_trip_text(client, "nvarchar(20)", &["", "日本語", "😀🎉", "' -- ;"]).await;
    round_trip_text(client, "char(3)", &["ab "]).await;
    round_trip_text(client, "nchar(3)", &["日本 "]).await;
    let long = "ü".repeat(100_000);
    round_trip_text(client, "nvarchar(max)", &["", &long]).await;
    round_trip_bytes(client, "varbinary(20)", &[&[], &[0, 1, 255]]).await;
    round_trip_bytes(client, "binary(3)", &[&[0, 1, 255]]).await;
    round_trip_bytes(client, "varbinary(max)", &[&[7; 100_000]]).await;
}

async fn transaction(client: &mut Client) {
    execute(client, "CREATE TABLE dbo.accounts (id int NOT NULL PRIMARY KEY, balance int NOT NULL)").await;
    execute(client, "INSERT dbo.accounts VALUES (1, 100), (2, 0)").await;
    for (ending, balance) in [("ROLLBACK", 0), ("COMMIT", 30)] {
        execute(client, "BEGIN TRANSACTION").await;
        client.execute("UPDATE dbo.accounts SET balance = balance + @P1 WHERE id = 2", &[&30i32]).await.unwrap();
        assert_eq!(number(client, "SELECT balance FROM dbo.accounts WHERE id = 2").await, 30);
        execute(client, ending).await;
        assert_eq!(number(client, "SELECT balance FROM dbo.accounts WHERE id = 2").await, balance);
    }
    execute(client, "DROP TABLE dbo.accounts").await;
}

async fn errors(client: &mut Client) {
    execute(client, "CREATE TABLE #keys (id int NOT NULL PRIMARY KEY); INSERT #keys VALUES (1)").await;
    for (text, number, class, line) in [
        ("\n\nSELECT * FROM dbo.nonesuch", 208, 16, 3),
        ("\nINSERT #keys VALUES (1)", 2627, 14, 2),
        ("DECLARE @zero int = 0\n\n\nSELECT 1 / @zero", 8134, 16, 4),
    ] {
        let outcome = match client.simple_query(text).await {
            Ok(stream) => stream.into_results().await.map(drop),
            Err(error) => Err(error),
        };
        match outcome {
            Err(tiberius::error::Error::Server(error)) => {
                assert_eq!((error.code(), error.class(), error.line()), (number, class, line), "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(number(client, "SELECT COUNT(*) FROM #keys").await, 1);
}

async fn bulk(client: &mut Client, rows: i32) {
    execute(client, "CREATE TABLE dbo.bulk_rows (id int NOT NULL, name nvarchar(40) NULL, big bigint NOT NULL)").await;
    let mut load = client.bulk_insert("dbo.bulk_rows").await.unwrap();
    for n in 0..rows {
        let mut row = TokenRow::with_capacity(3);
        row.push(n.into_sql());
        row.push(if n % 7 == 0 { ColumnData::String(None) } else { format!("Zeile {n}").into_sql() });
        row.push((i64::from(n) * -1_000_000_007).into_sql());
        load.send(row).await.unwrap();
    }
    assert_eq!(load.finalize().await.unwrap().total(), u64::try_from(rows).unwrap());
    let all = i64::from(rows);
    assert_eq!(number(client, "SELECT COUNT(*) FROM dbo.bulk_rows").await, all);
    assert_eq!(number(client, "SELECT COUNT(name) FROM dbo.bulk_rows").await, all - (all + 6) / 7);
    assert_eq!(number(client, "SELECT SUM(CAST(id AS bigint)) FROM dbo.bulk_rows").await, all * (all - 1) / 2);
    assert_eq!(number(client, "SELECT MIN(big) FROM dbo.bulk_rows").await, (all - 1) * -1_000_000_007);
    execute(client, "DROP TABLE dbo.bulk_rows").await;
}

fn with_client<F>(name: &str, encryption: EncryptionLevel, check: F)
where
    F: AsyncFnOnce(&mut Client),
{
    let folder = Folder::new(name);
    let server = TestServer::start(folder.path(), &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = connect(&server, encryption, "master").await.unwrap();
        execute(&mut client, "CREATE DATABASE tests").await;
        execute(&mut client, "USE tests").await;
        check(&mut client).await;
        let mut again = connect(&server, encryption, "tests").await.unwrap();
        assert_eq!(number(&mut again, "SELECT COUNT(*) FROM sys.tables").await, 0);
    });
    assert_eq!(server.stop(), Some(0));
}

async fn everything(client: &mut Client) {
    types(client).await;
    transaction(client).await;
    errors(client).await;
}

#[test]
fn everything_unencrypted() {
    with_client("tiberius-plain", EncryptionLevel::NotSupported, everything);
}

#[test]
fn everything_with_an_encrypted_login() {
    with_client("tiberius-login", EncryptionLevel::Off, everything);
}

#[test]
fn everything_encrypted() {
    with_client("tiberius-tls", EncryptionLevel::Required, everything);
}

#[test]
fn a_million_rows_by_bulk_load() {
    with_client("tiberius-bulk", EncryptionLevel::NotSupported, async |client: &mut Client| bulk(client, ROWS).await);
}

#[test]
fn many_rows_by_encrypted_bulk_load() {
    with_client("tiberius-bulk-tls", EncryptionLevel::Required, async |client: &mut Client| bulk(client, ROWS / 10).await);
}
