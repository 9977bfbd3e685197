//! Logging in over the wire as somebody else than sa: let in, told no, by our own client and by tiberius.

use crate::support::{Folder, TestServer};
use thawdb_tds::client::{Client, ClientError, ConnectOptions};
use tiberius::{AuthMethod, Config, EncryptionLevel};
use tokio_util::compat::TokioAsyncWriteCompatExt;

const PASSWORD: &str = "Wonder-Land9";

/// The number of the error a batch ends with; 0 for none.
fn outcome(client: &mut Client, text: &str) -> i32 {
    match client.batch(text).and_then(|response| response.finish()) {
        Ok(_) => 0,
        Err(ClientError::Server(error)) => error.number,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn refused(server: &TestServer, options: &ConnectOptions) -> Option<(i32, String)> {
    match server.try_connect(options) {
        Ok(_) => None,
        Err(ClientError::Server(error)) => Some((error.number, error.text)),
        Err(error) => panic!("{error}"),
    }
}

fn server_with_a_shop(folder: &Folder) -> TestServer {
    let server = TestServer::start(folder.path(), &[]);
    let mut sa = server.connect();
    for text in [
        format!("CREATE LOGIN alice WITH PASSWORD = '{PASSWORD}'; CREATE LOGIN bob WITH PASSWORD = '{PASSWORD}'; ALTER LOGIN bob DISABLE")
            .as_str(),
        "CREATE DATABASE shop",
        "USE shop CREATE USER alice FOR LOGIN alice CREATE TABLE dbo.secret (a int) CREATE TABLE dbo.shown (a int) INSERT dbo.shown VALUES (1)",
        "USE shop GRANT SELECT ON dbo.shown TO alice",
    ] {
        assert_eq!(outcome(&mut sa, text), 0, "{text}");
    }
    server
}

#[test]
fn a_user_with_few_rights() {
    let folder = Folder::new("logins");
    let server = server_with_a_shop(&folder);
    let as_user = |user: &str, password: &str, database: &str| ConnectOptions {
        user: user.into(),
        password: password.into(),
        database: database.into(),
        ..server.options()
    };
    let mut alice = server.try_connect(&as_user("alice", PASSWORD, "shop")).expect("alice is let in");
    assert_eq!(outcome(&mut alice, "SELECT a FROM dbo.shown"), 0);
    assert_eq!(outcome(&mut alice, "SELECT a FROM dbo.secret"), 229);
    assert_eq!(outcome(&mut alice, "INSERT BULK dbo.secret (a int)"), 229);
    assert_eq!(outcome(&mut alice, "CREATE TABLE dbo.mine (a int)"), 262);
    assert_eq!(outcome(&mut alice, "USE model"), 916);
    let told = |user: &str, password: &str| refused(&server, &as_user(user, password, ""));
    // The same words, whatever was wrong: only the name in them is what was said.
    let expected = |user: &str| Some((18456, format!("Login failed for user '{user}'.")));
    assert_eq!(told("alice", "wrong"), expected("alice"));
    assert_eq!(told("nobody", PASSWORD), expected("nobody"));
    assert_eq!(told("bob", PASSWORD), expected("bob"), "a disabled login");
    assert_eq!(told("sysadmin", PASSWORD), expected("sysadmin"), "a role");
    assert_eq!(refused(&server, &as_user("alice", PASSWORD, "nowhere")).map(|(number, _)| number), Some(4060));
    assert_eq!(refused(&server, &as_user("alice", PASSWORD, "model")).map(|(number, _)| number), Some(4060));
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(with_tiberius(&server));
    server.stop();
}

async fn with_tiberius(server: &TestServer) {
    let mut config = Config::new();
    config.host("127.0.0.1");
    config.port(server.port);
    config.database("shop");
    config.authentication(AuthMethod::sql_server("alice", PASSWORD));
    config.encryption(EncryptionLevel::Required);
    config.trust_cert();
    let socket = tokio::net::TcpStream::connect(config.get_addr()).await.unwrap();
    let mut client = tiberius::Client::connect(config, socket.compat_write()).await.expect("alice is let in");
    let row =
        client.query("SELECT a, SUSER_SNAME() FROM dbo.shown WHERE a = @P1", &[&1i32]).await.unwrap().into_row().await.unwrap().unwrap();
    assert_eq!((row.get::<i32, _>(0), row.get::<&str, _>(1)), (Some(1), Some("alice")));
    let refused = match client.query("SELECT a FROM dbo.secret WHERE a = @P1", &[&1i32]).await {
        Ok(stream) => stream.into_results().await.map(drop),
        Err(error) => Err(error),
    };
    match refused {
        Err(tiberius::error::Error::Server(error)) => assert_eq!((error.code(), error.class()), (229, 14)),
        other => panic!("{other:?}"),
    }
}
