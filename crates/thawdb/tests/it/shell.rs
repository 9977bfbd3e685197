//! `thawdb sql`, on a server and on a folder: the same tables, messages and exit codes.

use crate::patience;
use crate::support::{Folder, PASSWORD, TestServer, texts, thawdb};

const SCRIPT: &str = "\
CREATE DATABASE shop
GO
USE shop
GO
CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, name nvarchar(12) NULL, price decimal(7,2) NULL)
INSERT dbo.items VALUES (1, N'Brötchen', 0.45), (2, NULL, 12)
SELECT id, name, price FROM dbo.items ORDER BY id
GO
PRINT 'between'
SELECT * FROM dbo.nonesuch
GO
SELECT COUNT(*) FROM dbo.items
GO 2
DROP TABLE dbo.items
USE master
DROP DATABASE shop
GO
:quit
SELECT 'never'
";

const OUTPUT: &str = "\
Changed database context to 'shop'.

(2 rows affected)
id          name         price    
----------- ------------ ---------
          1 Brötchen           .45
          2 NULL             12.00

(2 rows affected)
between
           
-----------
          2

(1 rows affected)
           
-----------
          2

(1 rows affected)
Changed database context to 'master'.
";

fn check(connection: &[&str], server_name: &str, script: &std::path::Path) {
    let run = |more: &[&str]| patience::output(thawdb(&["sql"]).args(connection).args(more).env("SQLCMDPASSWORD", PASSWORD));
    let output = run(&["-i", script.to_str().unwrap()]);
    let (said, complained) = texts(&output);
    assert_eq!(said, OUTPUT, "{complained}");
    assert_eq!(complained, format!("Msg 208, Level 16, State 1, Server {server_name}, Line 2\nInvalid object name 'dbo.nonesuch'.\n"));
    assert_eq!(output.status.code(), Some(0));

    let output = run(&["-b", "-Q", "SELECT 1 / 0"]);
    let (_, complained) = texts(&output);
    assert!(complained.contains("Msg 8134, Level 16, State 1,"), "{complained}");
    assert_eq!(output.status.code(), Some(1));

    let output = run(&["-h", "-1", "-W", "-s", ",", "-Q", "SELECT 'a' AS x, 1.50 AS y, NULL AS z"]);
    assert_eq!(texts(&output), ("a,1.50,NULL\n\n(1 rows affected)\n".into(), String::new()));

    let output = run(&["-d", "nonesuch", "-Q", "SELECT 1"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn on_a_server() {
    let folder = Folder::new("shell-server");
    let script = folder.path().join("script.sql");
    std::fs::write(&script, SCRIPT).unwrap();
    let server = TestServer::start(&folder.path().join("data"), &[]);
    let name = format!("127.0.0.1,{}", server.port);
    for encrypt in ["yes", "login", "no"] {
        check(&["-S", &name, "-U", "sa", "-N", encrypt], &name, &script);
    }
}

#[test]
fn on_a_folder() {
    let folder = Folder::new("shell-folder");
    let script = folder.path().join("script.sql");
    std::fs::write(&script, SCRIPT).unwrap();
    let data = folder.path().join("data");
    check(&["--data", data.to_str().unwrap()], &thawdb::embed::server_name(), &script);
}

#[test]
fn typed_text_and_an_output_file() {
    use std::io::Write;
    let folder = Folder::new("shell-typed");
    let (data, file) = (folder.path().join("data"), folder.path().join("out.txt"));
    let mut child = thawdb(&["sql", "--data", data.to_str().unwrap(), "-W", "-o", file.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all("DECLARE @a int = 20\nSELECT @a + 1 AS n\nGO\nexit\n".as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "n\n-\n21\n\n(1 rows affected)\n");
}
