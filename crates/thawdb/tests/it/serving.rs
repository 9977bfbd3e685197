//! `thawdb serve`: passwords, encryption, signals, what stays on disk.

use crate::patience;
use crate::support::{Folder, PASSWORD, TestServer, texts, thawdb};
use thawdb_tds::client::{Client, ClientError, ConnectOptions};
use thawdb_tds::prelogin::Encryption;
use thawdb_tds::server::{Certificate, Server, ServerConfig};
use thawdb_types::Scalar;

fn scalar(client: &mut Client, text: &str) -> Scalar {
    client.batch(text).unwrap().finish().unwrap().rows[0][0].clone()
}

#[test]
fn a_new_folder_needs_a_good_password() {
    let folder = Folder::new("password");
    let data = folder.path().join("data");
    for (password, complaint) in
        [(None, "needs a password"), (Some(""), "policy"), (Some("short1!"), "too short"), (Some("alllowercase"), "three of these")]
    {
        let mut command = thawdb(&["serve", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(&data);
        if let Some(password) = password {
            command.env("MSSQL_SA_PASSWORD", password);
        }
        let output = patience::output(&mut command);
        let (said, complained) = texts(&output);
        assert_eq!((output.status.code(), said.as_str()), (Some(1), ""), "{password:?}");
        assert!(complained.contains(complaint), "{password:?}: {complained}");
        assert!(!data.exists(), "nothing is made before the password is right");
    }
}

#[test]
fn encryption_is_as_agreed() {
    let folder = Folder::new("encryption");
    let server = TestServer::start(folder.path(), &[]);
    for (encryption, encrypted) in [(Encryption::NotSupported, false), (Encryption::Off, false), (Encryption::On, true)] {
        let options = ConnectOptions { encryption, ..server.options() };
        let mut client = server.try_connect(&options).unwrap();
        assert_eq!(client.is_encrypted(), encrypted);
        assert_eq!(
            scalar(&mut client, "SELECT N'größer als ein Paket: ' + REPLICATE(N'ü', 3900)").as_text().unwrap().chars().count(),
            3922
        );
        let refused = server.try_connect(&ConnectOptions { password: "Wrong-Password-1".into(), ..options });
        assert!(matches!(refused, Err(ClientError::Server(error)) if error.number == 18456 && error.severity == 14));
    }
    assert_eq!(server.stop(), Some(0));
    let server = TestServer::start(folder.path(), &["--require-encryption"]);
    assert!(server.try_connect(&server.options()).is_err());
    for encryption in [Encryption::Off, Encryption::On] {
        let mut client = server.try_connect(&ConnectOptions { encryption, ..server.options() }).unwrap();
        assert!(client.is_encrypted());
        assert_eq!(scalar(&mut client, "SELECT 1"), Scalar::Int(1));
    }
}

#[test]
fn what_was_committed_survives_both_signals() {
    let folder = Folder::new("signals");
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.connect();
    for text in
        ["CREATE DATABASE kept", "USE kept", "CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, n int NOT NULL)", "INSERT dbo.t VALUES (1)"]
    {
        client.batch(text).unwrap().finish().unwrap();
    }
    assert_eq!(client.database(), "kept");
    assert_eq!(server.stop(), Some(0));
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.try_connect(&ConnectOptions { database: "kept".into(), ..server.options() }).unwrap();
    client.batch("INSERT dbo.t VALUES (2), (3)").unwrap().finish().unwrap();
    client.batch("BEGIN TRANSACTION INSERT dbo.t VALUES (4)").unwrap().finish().unwrap();
    server.kill();
    let server = TestServer::start(folder.path(), &[]);
    let mut client = server.try_connect(&ConnectOptions { database: "kept".into(), ..server.options() }).unwrap();
    let rows = client.batch("SELECT n FROM dbo.t ORDER BY n").unwrap().finish().unwrap().rows;
    assert_eq!(rows.concat(), [Scalar::Int(1), Scalar::Int(2), Scalar::Int(3)]);
    client.batch("DBCC CHECKDB").unwrap().finish().unwrap();
}

#[test]
fn a_folder_with_a_password_needs_none_the_next_time() {
    let folder = Folder::new("kept-password");
    assert_eq!(TestServer::start(folder.path(), &[]).stop(), Some(0));
    let (output, password_file) = (folder.path().join("out"), folder.path().join("password"));
    std::fs::write(&password_file, "Another-Password-2\n").unwrap();
    let server = TestServer::start(folder.path(), &["--sa-password-file", password_file.to_str().unwrap()]);
    let options = ConnectOptions { password: "Another-Password-2".into(), ..server.options() };
    assert!(server.try_connect(&options).is_ok());
    assert!(server.try_connect(&ConnectOptions { password: PASSWORD.into(), ..options }).is_err());
    drop((server, output));
}

#[test]
fn one_told_to_stop_before_it_serves_does_not_serve() {
    let folder = Folder::new("stopped");
    let instance = thawdb::open(folder.path(), thawdb::Options { memory_bytes_max: 128 << 20, ..thawdb::Options::default() }).unwrap();
    let config = ServerConfig {
        server_name: "thawdb".into(),
        address: "127.0.0.1:0".parse().unwrap(),
        certificate: Certificate::SelfSigned { names: vec!["localhost".into()] },
        encryption: Encryption::Off,
        worker_count_max: 4,
    };
    let server = Server::bind(instance.engine().clone(), config).unwrap();
    // A signal may come as soon as the port is there, which is before anybody waits for one.
    server.stop_handle().stop();
    server.run().unwrap();
    instance.close().unwrap();
}
