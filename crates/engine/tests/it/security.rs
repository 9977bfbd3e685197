//! Logins, users, roles and permissions, as those see them who have few.
//!
//! Each test has an instance of its own, in which sa has made a database `shop` with a secret table; others log in with their
//! passwords and are told what they may not do, by SQL Server's numbers.

use crate::asked::is_done;
use crate::script::{config, fresh_engine, said};
use std::sync::Arc;
use thawdb_engine::{Engine, LoginRequest, Secret, Session};

pub const PASSWORD: &str = "Wonder-Land9";

/// The first error that a batch told, or `ok`.
pub fn outcome(session: &mut Session, batch: &str) -> String {
    let lines = said(session, batch);
    let told = lines.iter().find_map(|line| line.strip_prefix("Msg ").and_then(|rest| rest.split(',').next()).map(str::to_owned));
    told.unwrap_or_else(|| "ok".to_owned())
}

/// The rows of a batch's results, columns between bars, rows between semicolons.
pub fn rows(session: &mut Session, batch: &str) -> String {
    let lines = said(session, batch);
    let told = |line: &&String| !["[", "done", "info", "env", "status"].iter().any(|start| line.starts_with(start));
    let shown = lines.iter().filter(told);
    shown.map(String::as_str).collect::<Vec<_>>().join("; ")
}

pub fn login(engine: &Arc<Engine>, user: &str, password: &str, database: &str) -> Result<Session, i32> {
    let request = LoginRequest { user: user.into(), password: Secret::new(password), database: database.into(), ..LoginRequest::default() };
    engine.login(request).map(|(session, _)| session).map_err(|error| error.number)
}

/// A session of a login of this name, with the password all of them have.
pub fn enter(engine: &Arc<Engine>, user: &str, database: &str) -> Session {
    login(engine, user, PASSWORD, database).unwrap_or_else(|number| panic!("{user} is refused with {number}"))
}

pub fn shop(name: &str) -> (Arc<Engine>, Session) {
    let (engine, _) = fresh_engine(name);
    let mut sa = engine.internal_session();
    is_done(
        &mut sa,
        &format!("CREATE LOGIN alice WITH PASSWORD = '{PASSWORD}'; CREATE LOGIN bob WITH PASSWORD = '{PASSWORD}'; CREATE DATABASE shop"),
    );
    is_done(&mut sa, "USE shop");
    is_done(&mut sa, "CREATE USER alice FOR LOGIN alice");
    is_done(
        &mut sa,
        "CREATE TABLE dbo.secret (id int IDENTITY PRIMARY KEY, name nvarchar(40), price int); INSERT dbo.secret VALUES (N'gold', 7)",
    );
    is_done(&mut sa, "CREATE TABLE dbo.shown (id int PRIMARY KEY, note nvarchar(40)); INSERT dbo.shown VALUES (1, N'hello')");
    (engine, sa)
}

#[test]
fn logins_come_and_go() {
    let (engine, mut sa) = shop("security-logins");
    assert_eq!(login(&engine, "alice", PASSWORD, "shop").map(|_| ()), Ok(()));
    for (user, password) in [("alice", "wrong"), ("nobody", PASSWORD), ("alice", ""), ("sysadmin", PASSWORD)] {
        assert_eq!(login(&engine, user, password, "").err(), Some(18456), "{user}");
    }
    assert_eq!(login(&engine, "bob", PASSWORD, "shop").err(), Some(4060));
    assert_eq!(login(&engine, "bob", PASSWORD, "nowhere").err(), Some(4060));
    assert_eq!(login(&engine, "bob", PASSWORD, "").map(|_| ()), Ok(()));
    is_done(&mut sa, "ALTER LOGIN bob WITH DEFAULT_DATABASE = shop");
    assert_eq!(login(&engine, "bob", PASSWORD, "").err(), Some(4064));
    assert_eq!(login(&engine, "bob", PASSWORD, "master").map(|_| ()), Ok(()));
    is_done(&mut sa, "ALTER LOGIN bob DISABLE");
    assert_eq!(login(&engine, "bob", PASSWORD, "master").err(), Some(18456));
    is_done(&mut sa, "ALTER LOGIN bob ENABLE; USE master; DENY CONNECT SQL TO bob");
    assert_eq!(login(&engine, "bob", PASSWORD, "master").err(), Some(18456));
    is_done(&mut sa, "REVOKE CONNECT SQL FROM bob; ALTER LOGIN bob WITH NAME = robert, PASSWORD = 'Another-1word'");
    assert_eq!(login(&engine, "bob", PASSWORD, "master").err(), Some(18456));
    assert_eq!(login(&engine, "Robert", "Another-1word", "master").map(|_| ()), Ok(()));
    let mut alice = enter(&engine, "alice", "shop");
    for (batch, expected) in [
        ("ALTER LOGIN alice WITH PASSWORD = 'Wonder-Land10'", "15151"),
        ("ALTER LOGIN alice WITH PASSWORD = 'Wonder-Land10' OLD_PASSWORD = 'wrong'", "15151"),
        ("ALTER LOGIN alice WITH PASSWORD = 'short' OLD_PASSWORD = 'Wonder-Land9'", "15116"),
        ("ALTER LOGIN alice WITH PASSWORD = 'Wonder-Land10' OLD_PASSWORD = 'Wonder-Land9'", "ok"),
        ("ALTER LOGIN robert WITH PASSWORD = 'Wonder-Land10'", "15151"),
        ("ALTER LOGIN sa WITH PASSWORD = 'Wonder-Land10'", "15151"),
        ("ALTER LOGIN sa DISABLE", "15151"),
        ("ALTER LOGIN alice WITH NAME = eve", "15151"),
        ("CREATE LOGIN mallory WITH PASSWORD = 'Wonder-Land10'", "15247"),
        ("DROP LOGIN robert", "15151"),
    ] {
        assert_eq!(outcome(&mut alice, batch), expected, "{batch}");
    }
    assert_eq!(login(&engine, "alice", "Wonder-Land10", "shop").map(|_| ()), Ok(()));
    for (batch, expected) in [
        ("CREATE LOGIN alice WITH PASSWORD = 'Wonder-Land10'", "15025"),
        ("CREATE LOGIN sysadmin WITH PASSWORD = 'Wonder-Land10'", "15025"),
        ("CREATE LOGIN weak WITH PASSWORD = 'weakweak'", "15118"),
        ("CREATE LOGIN weak WITH PASSWORD = 'weakweak', CHECK_POLICY = OFF", "ok"),
        ("CREATE LOGIN hashed WITH PASSWORD = 0x0200 HASHED", "40517"),
        ("CREATE LOGIN [house\\eve] FROM WINDOWS", "15401"),
        ("CREATE LOGIN eve FROM WINDOWS", "15407"),
        ("CREATE LOGIN eve WITH PASSWORD = 'Wonder-Land10', DEFAULT_DATABASE = nowhere", "15010"),
        ("ALTER LOGIN nobody ENABLE", "15151"),
        ("DROP LOGIN nobody", "15151"),
        ("DROP LOGIN sa", "15150"),
        ("DROP LOGIN alice", "15434"),
        ("DROP LOGIN weak", "ok"),
    ] {
        assert_eq!(outcome(&mut sa, batch), expected, "{batch}");
    }
}

#[test]
fn what_was_granted_is_there_after_a_restart() {
    let (engine, mut sa) = shop("security-restart");
    let folder = crate::folders::path_of("security-restart");
    is_done(&mut sa, "CREATE ROLE readers; ALTER ROLE readers ADD MEMBER alice; GRANT SELECT ON dbo.shown TO readers");
    is_done(
        &mut sa,
        "DENY SELECT ON dbo.secret TO readers; USE master; GRANT VIEW SERVER STATE TO bob; ALTER SERVER ROLE dbcreator ADD MEMBER bob",
    );
    drop(sa);
    engine.close().expect("closes");
    drop(engine);
    let engine = Engine::open(config(&folder)).expect("opens again");
    let mut alice = enter(&engine, "alice", "shop");
    assert_eq!(rows(&mut alice, "SELECT note FROM dbo.shown"), "hello");
    assert_eq!(outcome(&mut alice, "SELECT * FROM dbo.secret"), "229");
    let mut bob = enter(&engine, "bob", "");
    assert_eq!(outcome(&mut bob, "SELECT COUNT(*) FROM sys.dm_os_wait_stats"), "ok");
    assert_eq!(outcome(&mut bob, "CREATE DATABASE bobs"), "ok");
    assert_eq!(rows(&mut bob, "USE bobs; SELECT USER_NAME(), IS_SRVROLEMEMBER('dbcreator'), IS_MEMBER('db_owner')"), "dbo | 1 | 1");
    engine.close().expect("closes");
}

#[test]
fn permissions_cover_and_deny() {
    let (engine, mut sa) = shop("security-cover");
    is_done(&mut sa, "CREATE SCHEMA sales");
    is_done(&mut sa, "CREATE TABLE sales.orders (id int PRIMARY KEY, total int); INSERT sales.orders VALUES (1, 10)");
    let mut alice = enter(&engine, "alice", "shop");
    let read = "SELECT total FROM sales.orders";
    let steps: [(&str, &str); 14] = [
        ("SELECT 1", "229"),
        ("GRANT SELECT ON sales.orders TO alice", "ok"),
        ("DENY SELECT ON SCHEMA::sales TO alice", "229"),
        ("REVOKE SELECT ON SCHEMA::sales FROM alice", "ok"),
        ("REVOKE SELECT ON sales.orders FROM alice", "229"),
        ("GRANT CONTROL ON SCHEMA::sales TO alice", "ok"),
        ("DENY CONTROL ON sales.orders TO alice", "229"),
        ("REVOKE CONTROL ON sales.orders FROM alice; REVOKE CONTROL ON SCHEMA::sales FROM alice", "229"),
        ("ALTER ROLE db_datareader ADD MEMBER alice", "ok"),
        ("ALTER ROLE db_denydatareader ADD MEMBER alice", "229"),
        ("ALTER ROLE db_denydatareader DROP MEMBER alice; ALTER ROLE db_datareader DROP MEMBER alice", "229"),
        ("GRANT SELECT TO public", "ok"),
        ("REVOKE SELECT FROM public; GRANT SELECT ON sales.orders (total) TO alice; DENY SELECT ON sales.orders TO bob_role", "ok"),
        ("ALTER ROLE bob_role ADD MEMBER alice", "ok"),
    ];
    is_done(&mut sa, "CREATE ROLE bob_role");
    for (change, expected) in steps {
        is_done(&mut sa, change);
        assert_eq!(outcome(&mut alice, read), expected, "{change}");
    }
    assert_eq!(outcome(&mut alice, "SELECT id FROM sales.orders"), "230");
    assert_eq!(outcome(&mut alice, "SELECT * FROM sales.orders"), "230");
    assert_eq!(outcome(&mut alice, "SELECT total FROM sales.orders WHERE id = 1"), "230");
    assert_eq!(outcome(&mut alice, "UPDATE sales.orders SET total = 1"), "229");
    is_done(&mut sa, "GRANT UPDATE ON sales.orders (total) TO alice");
    assert_eq!(outcome(&mut alice, "UPDATE sales.orders SET total = 11"), "ok");
    assert_eq!(outcome(&mut alice, "UPDATE sales.orders SET total = 11 WHERE id = 1"), "230");
    assert_eq!(outcome(&mut alice, "UPDATE sales.orders SET id = 2"), "230");
    is_done(&mut sa, "ALTER ROLE db_owner ADD MEMBER alice");
    assert_eq!(outcome(&mut alice, "SELECT id FROM sales.orders"), "230", "a denial outweighs db_owner");
    assert_eq!(outcome(&mut alice, "CREATE TABLE sales.more (a int)"), "ok");
}

#[test]
fn chains_of_ownership_and_contexts() {
    let (engine, mut sa) = shop("security-chains");
    for batch in [
        "CREATE USER owner2 WITHOUT LOGIN; CREATE ROLE vendors",
        "CREATE SCHEMA other AUTHORIZATION owner2",
        "CREATE TABLE other.books (id int PRIMARY KEY, title nvarchar(40)); INSERT other.books VALUES (1, N'atlas')",
        "CREATE VIEW dbo.prices AS SELECT name, price FROM dbo.secret",
        "CREATE VIEW dbo.nested AS SELECT price FROM dbo.prices",
        "CREATE VIEW dbo.broken AS SELECT title FROM other.books",
        "CREATE PROCEDURE dbo.best AS SELECT MAX(price) FROM dbo.secret",
        "CREATE PROCEDURE dbo.best_of_best AS EXEC dbo.best",
        "CREATE PROCEDURE dbo.best_by_text AS EXEC('SELECT MAX(price) FROM dbo.secret')",
        "CREATE PROCEDURE dbo.broken_call AS SELECT title FROM other.books",
        "CREATE PROCEDURE dbo.as_owner WITH EXECUTE AS OWNER AS EXEC('SELECT MAX(price), USER_NAME() FROM dbo.secret')",
        "CREATE PROCEDURE dbo.as_other WITH EXECUTE AS 'owner2' AS SELECT title, USER_NAME() FROM other.books",
        "CREATE PROCEDURE dbo.who AS SELECT USER_NAME(), SUSER_SNAME(), ORIGINAL_LOGIN()",
        "CREATE FUNCTION dbo.top_price() RETURNS int AS BEGIN RETURN (SELECT MAX(price) FROM dbo.secret) END",
        "CREATE FUNCTION dbo.all_prices() RETURNS TABLE AS RETURN SELECT price FROM dbo.secret",
        "CREATE TABLE dbo.log (note nvarchar(40))",
        "CREATE TABLE dbo.box (a int); GRANT INSERT ON dbo.box TO alice",
        "CREATE TRIGGER dbo.box_log ON dbo.box AFTER INSERT AS INSERT dbo.log SELECT N'box' FROM inserted",
        "CREATE SYNONYM dbo.alias FOR dbo.prices",
        "GRANT SELECT ON dbo.prices TO alice; GRANT SELECT ON dbo.nested TO alice; GRANT SELECT ON dbo.broken TO alice",
        "GRANT EXECUTE ON SCHEMA::dbo TO alice; GRANT SELECT ON dbo.all_prices TO alice",
    ] {
        is_done(&mut sa, batch);
    }
    let mut alice = enter(&engine, "alice", "shop");
    for (batch, expected) in [
        ("SELECT price FROM dbo.prices", "7"),
        ("SELECT price FROM dbo.nested", "7"),
        ("SELECT price FROM dbo.alias", "7"),
        ("EXEC dbo.best", "7"),
        ("EXEC dbo.best_of_best", "7"),
        ("SELECT dbo.top_price()", "7"),
        ("SELECT price FROM dbo.all_prices()", "7"),
        ("EXEC dbo.as_owner", "7 | dbo"),
        ("EXEC dbo.as_other", "atlas | owner2"),
        ("EXEC dbo.who", "alice | alice | alice"),
    ] {
        let shown = rows(&mut alice, batch);
        assert_eq!(shown.replace("; done-in-proc 1", "").replace("; done-proc", ""), expected, "{batch}");
    }
    for (batch, expected) in [
        ("SELECT * FROM dbo.secret", "229"),
        ("SELECT title FROM dbo.broken", "229"),
        ("EXEC dbo.best_by_text", "229"),
        ("EXEC dbo.broken_call", "229"),
        ("INSERT dbo.box VALUES (1)", "ok"),
        ("INSERT dbo.log VALUES (N'mine')", "229"),
        ("SELECT USER_NAME() FROM dbo.secret", "229"),
    ] {
        assert_eq!(outcome(&mut alice, batch), expected, "{batch}");
    }
    is_done(&mut sa, "DENY SELECT ON dbo.prices TO vendors; ALTER ROLE vendors ADD MEMBER alice");
    assert_eq!(outcome(&mut alice, "SELECT price FROM dbo.prices"), "229");
    assert_eq!(outcome(&mut alice, "SELECT price FROM dbo.nested"), "ok", "the chain does not look at what is inside");
    is_done(&mut sa, "ALTER AUTHORIZATION ON dbo.best TO owner2");
    assert_eq!(outcome(&mut alice, "EXEC dbo.best"), "229", "its permissions went, and its chain");
    assert_eq!(rows(&mut sa, "SELECT note FROM dbo.log"), "box");
    // A user made by EXECUTE AS reads with its own rights; REVERT gives the old ones back.
    assert_eq!(rows(&mut sa, "EXECUTE AS USER = 'alice'; SELECT USER_NAME(), SUSER_SNAME(), ORIGINAL_LOGIN()"), "alice | alice | sa");
    assert_eq!(outcome(&mut sa, "SELECT * FROM dbo.secret"), "229");
    assert_eq!(outcome(&mut sa, "USE model"), "916");
    assert_eq!(outcome(&mut sa, "EXECUTE AS LOGIN = 'sa'"), "15406");
    assert_eq!(outcome(&mut sa, "REVERT; SELECT * FROM dbo.secret"), "ok");
    assert_eq!(outcome(&mut sa, "EXECUTE AS LOGIN = 'bob'"), "916", "bob is nobody here");
    assert_eq!(
        rows(&mut sa, "USE master; EXECUTE AS LOGIN = 'bob'; SELECT SUSER_SNAME(), IS_SRVROLEMEMBER('sysadmin'); REVERT"),
        "bob | 0"
    );
    is_done(&mut sa, "USE shop; EXEC('EXECUTE AS USER = ''alice''')");
    assert_eq!(rows(&mut sa, "SELECT USER_NAME()"), "dbo", "a context ends with its text");
    is_done(&mut sa, "DECLARE @c varbinary(100); EXECUTE AS USER = 'alice' WITH COOKIE INTO @c; REVERT WITH COOKIE = @c");
    assert_eq!(outcome(&mut sa, "DECLARE @c varbinary(100); EXECUTE AS USER = 'alice' WITH COOKIE INTO @c; REVERT"), "15591");
    assert_eq!(outcome(&mut sa, "REVERT; EXECUTE AS USER = 'alice' WITH NO REVERT; REVERT"), "15591");
}

#[test]
fn users_roles_and_schemas() {
    let (engine, mut sa) = shop("security-users");
    for (batch, expected) in [
        ("CREATE USER alice FOR LOGIN bob", "15023"),
        ("CREATE USER carol FOR LOGIN alice", "15063"),
        ("CREATE USER carol FOR LOGIN carol", "15007"),
        ("CREATE USER carol", "15007"),
        ("CREATE USER carol WITH PASSWORD = 'Wonder-Land9'", "33233"),
        ("CREATE USER carol WITHOUT LOGIN WITH DEFAULT_SCHEMA = Hers", "ok"),
        ("CREATE USER robert FOR LOGIN sa", "15063"),
        ("CREATE ROLE carol", "15023"),
        ("CREATE ROLE Clerks AUTHORIZATION carol", "ok"),
        ("CREATE ROLE more AUTHORIZATION nobody", "15151"),
        ("ALTER ROLE clerks ADD MEMBER alice; ALTER ROLE clerks ADD MEMBER carol", "ok"),
        ("ALTER ROLE clerks ADD MEMBER nobody", "15151"),
        ("ALTER ROLE nothing ADD MEMBER alice", "15151"),
        ("ALTER ROLE clerks ADD MEMBER clerks", "15413"),
        ("ALTER ROLE clerks ADD MEMBER dbo", "15405"),
        ("ALTER ROLE db_owner ADD MEMBER clerks; ALTER ROLE clerks ADD MEMBER db_owner", "15405"),
        ("ALTER ROLE db_owner DROP MEMBER clerks", "ok"),
        ("DROP ROLE clerks", "15144"),
        ("DROP ROLE db_owner", "15150"),
        ("DROP USER dbo", "15150"),
        ("DROP USER carol", "15421"),
        ("DROP USER nobody", "15151"),
        ("DROP USER IF EXISTS nobody; DROP ROLE IF EXISTS nobody", "ok"),
        ("CREATE SCHEMA Hers AUTHORIZATION carol", "ok"),
        ("ALTER AUTHORIZATION ON ROLE::clerks TO dbo", "ok"),
        ("DROP USER carol", "15138"),
        ("ALTER USER carol WITH NAME = caroline", "ok"),
        ("ALTER ROLE clerks WITH NAME = vendors", "ok"),
        ("EXEC sp_addrolemember 'db_datareader', 'caroline'; EXEC sp_droprolemember 'db_datareader', 'caroline'", "ok"),
        ("EXEC sp_addrolemember 'nothing', 'caroline'", "15014"),
        ("GRANT SELECT ON dbo.nothing TO alice", "15151"),
        ("GRANT SELECT ON dbo.secret TO nobody", "15151"),
        ("GRANT SELECT ON dbo.secret TO dbo", "4624"),
        ("GRANT SELECT ON dbo.secret TO db_owner", "4617"),
        ("GRANT EXECUTE ON dbo.secret TO alice", "4606"),
        ("GRANT VIEW SERVER STATE TO bob", "4621"),
        ("GRANT INSERT ON dbo.secret (name) TO alice", "1020"),
        ("GRANT SELECT ON dbo.secret (nothing) TO alice", "1911"),
        ("GRANT ALL ON dbo.secret TO alice; REVOKE ALL ON dbo.secret FROM alice", "ok"),
        ("GRANT SELECT ON dbo.secret TO alice WITH GRANT OPTION", "ok"),
        ("EXECUTE AS USER = 'alice'; GRANT SELECT ON dbo.secret TO caroline; REVERT", "ok"),
        ("EXECUTE AS USER = 'alice'; GRANT INSERT ON dbo.secret TO caroline", "*"),
        ("REVERT; REVOKE SELECT ON dbo.secret FROM alice", "4611"),
        ("REVOKE SELECT ON dbo.secret FROM alice CASCADE", "ok"),
    ] {
        let told = outcome(&mut sa, batch);
        assert!(if expected == "*" { told != "ok" } else { told == expected }, "{batch}: {told}, not {expected}");
    }
    assert_eq!(rows(&mut sa, "SELECT COUNT(*) FROM sys.database_permissions WHERE permission_name = 'SELECT'"), "0");
    let members = "SELECT USER_NAME(role_principal_id), USER_NAME(member_principal_id) FROM sys.database_role_members WHERE role_principal_id < 16384";
    assert_eq!(rows(&mut sa, members), "vendors | alice; vendors | caroline");
    // Names without a schema: the user's own first, dbo next; what is made goes to the user's own.
    is_done(
        &mut sa,
        "CREATE TABLE Hers.shown (note nvarchar(40)); INSERT Hers.shown VALUES (N'hers'); GRANT SELECT ON dbo.shown TO caroline",
    );
    is_done(&mut sa, "GRANT CREATE TABLE TO caroline");
    is_done(&mut sa, "EXECUTE AS USER = 'caroline'");
    assert_eq!(rows(&mut sa, "SELECT SCHEMA_NAME(), note FROM shown"), "Hers | hers");
    assert_eq!(rows(&mut sa, "SELECT note FROM dbo.shown"), "hello");
    assert_eq!(outcome(&mut sa, "CREATE TABLE fresh (a int)"), "ok");
    assert_eq!(outcome(&mut sa, "CREATE TABLE dbo.fresh (a int)"), "2760");
    assert_eq!(rows(&mut sa, "SELECT OBJECT_SCHEMA_NAME(OBJECT_ID('fresh')); DROP TABLE fresh"), "Hers");
    is_done(&mut sa, "REVERT");
    let mut alice = enter(&engine, "alice", "shop");
    assert_eq!(rows(&mut alice, "SELECT IS_MEMBER('vendors'), IS_MEMBER('db_owner'), IS_MEMBER('nothing'), USER_ID()"), "1 | 0 | NULL | 5");
    is_done(&mut sa, "ALTER AUTHORIZATION ON DATABASE::shop TO bob");
    let mut bob = enter(&engine, "bob", "shop");
    assert_eq!(rows(&mut bob, "SELECT USER_NAME(), price FROM dbo.secret"), "dbo | 7");
    assert_eq!(outcome(&mut sa, "DROP LOGIN bob"), "15434");
    drop(bob);
    assert_eq!(outcome(&mut sa, "DROP LOGIN bob"), "15174");
}

#[test]
fn columns_are_asked_about_however_they_are_named() {
    let (engine, mut sa) = shop("security-columns");
    is_done(&mut sa, "GRANT SELECT, UPDATE ON dbo.secret (name) TO alice; CREATE SYNONYM dbo.alias FOR dbo.secret");
    is_done(
        &mut sa,
        "CREATE TABLE dbo.worked (a int, b int, c AS a + b); INSERT dbo.worked (a, b) VALUES (1, 2); GRANT SELECT ON dbo.worked (c) TO alice",
    );
    let mut alice = enter(&engine, "alice", "shop");
    for (batch, expected) in [
        ("SELECT name FROM dbo.secret", "ok"),
        ("SELECT s.name FROM dbo.secret AS s", "ok"),
        ("SELECT $IDENTITY FROM dbo.secret", "230"),
        ("SELECT name FROM dbo.secret ORDER BY price", "230"),
        ("SELECT name FROM dbo.secret GROUP BY name HAVING MAX(price) > 1", "230"),
        ("SELECT name, ROW_NUMBER() OVER (ORDER BY price) FROM dbo.secret", "230"),
        ("SELECT a.name FROM dbo.secret AS a JOIN dbo.secret AS b ON a.price = b.price", "230"),
        ("SELECT x.p FROM dbo.secret AS s CROSS APPLY (SELECT s.price + 1 AS p) AS x", "230"),
        ("WITH c AS (SELECT * FROM dbo.secret) SELECT name FROM c", "230"),
        ("SELECT d.name FROM (SELECT name, price FROM dbo.secret) AS d", "230"),
        ("SELECT CHECKSUM(*) FROM dbo.secret", "230"),
        ("SELECT v FROM (SELECT price AS v FROM dbo.secret) AS s", "230"),
        ("SELECT v FROM dbo.secret UNPIVOT (v FOR n IN (price)) AS u", "230"),
        ("SELECT * FROM (SELECT name, price FROM dbo.secret) AS s PIVOT (MAX(price) FOR name IN ([gold])) AS p", "230"),
        ("SELECT COUNT(*) FROM dbo.secret", "ok"),
        ("SELECT COUNT(price) FROM dbo.secret", "230"),
        ("UPDATE dbo.secret SET name = N'g'", "ok"),
        ("UPDATE dbo.secret SET name = name", "ok"),
        ("UPDATE dbo.secret SET name = CAST(price AS nvarchar(40))", "230"),
        ("UPDATE dbo.secret SET name = N'g' OUTPUT deleted.price", "230"),
        ("UPDATE dbo.secret SET name = N'g' OUTPUT inserted.name", "ok"),
        ("UPDATE dbo.secret SET price = 1", "230"),
        ("SELECT c FROM dbo.worked", "ok"),
        ("SELECT a FROM dbo.worked", "230"),
        ("SELECT * FROM dbo.worked", "230"),
        ("SELECT name FROM dbo.alias", "ok"),
        ("SELECT price FROM dbo.alias", "230"),
    ] {
        assert_eq!(outcome(&mut alice, batch), expected, "{batch}");
    }
    is_done(&mut sa, "REVOKE SELECT, UPDATE ON dbo.secret (name) FROM alice; GRANT SELECT, UPDATE ON dbo.alias TO alice");
    assert_eq!(outcome(&mut alice, "SELECT price FROM dbo.secret"), "229");
    assert_eq!(outcome(&mut alice, "SELECT price FROM dbo.alias"), "ok", "the synonym's permission, for what has its owner");
    assert_eq!(outcome(&mut alice, "UPDATE dbo.alias SET price = 9 WHERE id = 1"), "ok");
    assert_eq!(outcome(&mut alice, "DELETE dbo.alias"), "229");
}
