//! A login that may read one table and run one procedure, and every way we know by which it might read, write or learn more.
//!
//! What must stay unknown is the number 4711 in `dbo.secret`, and the names that hold `hidden`: whatever a batch answers, rows,
//! messages and metadata, none of it may show them. A way is a batch, the number it is refused with (`ok` where SQL Server answers
//! with nothing, NULL or no rows), tried by `mallory`, who is a user of the database and of nothing else.

use crate::asked::is_done;
use crate::script::{config, said};
use crate::security::{PASSWORD, enter, login, outcome, rows, shop};
use std::sync::Arc;
use thawdb_engine::{Engine, Session};

/// What sa makes: secrets, and the little that mallory has.
const MADE: &[&str] = &[
    "CREATE TABLE dbo.hidden_table (id int IDENTITY PRIMARY KEY, hidden_column int CONSTRAINT hidden_default DEFAULT 4711, CONSTRAINT hidden_check CHECK (hidden_column > 0))",
    "INSERT dbo.secret VALUES (N'x4711', 4711); INSERT dbo.hidden_table DEFAULT VALUES",
    "CREATE SCHEMA hidden_schema",
    "CREATE TABLE hidden_schema.t (a int); INSERT hidden_schema.t VALUES (4711)",
    "CREATE VIEW dbo.hidden_view AS SELECT price FROM dbo.secret",
    "CREATE PROCEDURE dbo.hidden_procedure AS SELECT price FROM dbo.secret",
    "CREATE FUNCTION dbo.hidden_scalar() RETURNS int AS BEGIN RETURN (SELECT MAX(price) FROM dbo.secret) END",
    "CREATE FUNCTION dbo.hidden_inline() RETURNS TABLE AS RETURN SELECT price FROM dbo.secret",
    "CREATE FUNCTION dbo.hidden_rows() RETURNS @r TABLE (price int) AS BEGIN INSERT @r SELECT price FROM dbo.secret RETURN END",
    "CREATE SEQUENCE dbo.hidden_sequence START WITH 4711",
    "CREATE SYNONYM dbo.hidden_synonym FOR dbo.secret",
    "CREATE TYPE dbo.hidden_type AS TABLE (a int DEFAULT 4711)",
    "CREATE TRIGGER dbo.hidden_trigger ON dbo.secret AFTER UPDATE AS RETURN",
    "CREATE INDEX hidden_index ON dbo.secret (price)",
    "CREATE ROLE hidden_role",
    "CREATE USER hidden_user WITHOUT LOGIN",
    "GRANT SELECT ON dbo.hidden_table TO hidden_user",
    "CREATE TABLE dbo.drop_box (a int, b int)",
    "CREATE PROCEDURE dbo.harmless AS SELECT COUNT(*) AS n FROM dbo.secret",
    "CREATE PROCEDURE dbo.careless @t nvarchar(400) AS EXEC(@t)",
    "CREATE LOGIN mallory WITH PASSWORD = 'Wonder-Land9'; CREATE USER mallory FOR LOGIN mallory",
    "GRANT SELECT ON dbo.shown TO mallory; GRANT EXECUTE ON dbo.harmless TO mallory; GRANT EXECUTE ON dbo.careless TO mallory",
    "GRANT INSERT ON dbo.drop_box TO mallory",
    "CREATE DATABASE hidden_base",
    "CREATE TABLE hidden_base.dbo.t (a int); INSERT hidden_base.dbo.t VALUES (4711)",
];

/// The ways: batch and what it must answer.
const WAYS: &[(&str, &str)] = &[
    // Reading, straight and round corners.
    ("SELECT * FROM dbo.secret", "229"),
    ("SELECT price FROM secret WHERE 1 = 0", "229"),
    ("SELECT COUNT(*) FROM dbo.secret", "229"),
    ("SELECT 1 WHERE EXISTS (SELECT * FROM dbo.secret WHERE price > 4000)", "229"),
    ("IF EXISTS (SELECT * FROM dbo.secret WHERE price = 4711) PRINT 'yes'", "229"),
    ("WHILE (SELECT MAX(price) FROM dbo.secret) > 0 BREAK", "229"),
    ("DECLARE @v int = (SELECT MAX(price) FROM dbo.secret) SELECT @v", "229"),
    ("DECLARE @v int SET @v = (SELECT MAX(price) FROM dbo.secret) SELECT @v", "229"),
    ("DECLARE @v int SELECT @v = price FROM dbo.secret SELECT @v", "229"),
    ("PRINT (SELECT MAX(price) FROM dbo.secret)", "*"),
    ("RETURN (SELECT MAX(price) FROM dbo.secret)", "*"),
    ("SELECT s.note, (SELECT MAX(price) FROM dbo.secret) FROM dbo.shown AS s", "229"),
    ("SELECT * FROM dbo.shown AS s JOIN dbo.secret AS x ON x.id = s.id", "229"),
    ("SELECT * FROM dbo.shown AS s CROSS APPLY (SELECT price FROM dbo.secret) AS x", "229"),
    ("WITH c AS (SELECT price FROM dbo.secret) SELECT * FROM c", "229"),
    ("SELECT note FROM dbo.shown UNION ALL SELECT name FROM dbo.secret", "229"),
    ("SELECT note FROM dbo.shown EXCEPT SELECT name FROM dbo.secret", "229"),
    ("SELECT * FROM (SELECT TOP (1) * FROM dbo.secret ORDER BY price DESC) AS x", "229"),
    ("SELECT price, COUNT(*) FROM dbo.secret GROUP BY price", "229"),
    ("SELECT note FROM dbo.shown ORDER BY (SELECT MAX(price) FROM dbo.secret)", "229"),
    ("SELECT TOP (SELECT MAX(price) FROM dbo.secret) note FROM dbo.shown", "229"),
    ("SELECT name FROM dbo.secret WITH (NOLOCK)", "229"),
    ("SELECT name FROM dbo.secret WITH (INDEX(hidden_index))", "229"),
    ("SELECT * FROM shop.dbo.secret", "229"),
    ("SELECT * FROM shop..secret", "229"),
    ("SELECT * FROM hidden_schema.t", "229"),
    ("SELECT price FROM dbo.secret FOR JSON PATH", "229"),
    ("SELECT price FROM dbo.secret FOR XML PATH", "229"),
    ("SELECT * FROM OPENJSON((SELECT name FROM dbo.secret FOR JSON PATH))", "229"),
    ("SELECT * FROM STRING_SPLIT((SELECT TOP 1 name FROM dbo.secret), N'x')", "229"),
    ("SELECT * INTO #mine FROM dbo.secret", "229"),
    ("SELECT id, CONVERT(int, name) FROM dbo.secret", "229"),
    ("SELECT 1 / (price - 4711) FROM dbo.secret", "229"),
    // Through objects.
    ("SELECT * FROM dbo.hidden_view", "229"),
    ("EXEC dbo.hidden_procedure", "229"),
    ("EXEC hidden_procedure", "229"),
    ("DECLARE @p sysname = N'dbo.hidden_procedure' EXEC @p", "229"),
    ("{call dbo.hidden_procedure}", "229"),
    ("SELECT dbo.hidden_scalar()", "229"),
    ("DECLARE @v int SET @v = dbo.hidden_scalar() SELECT @v", "229"),
    ("EXEC dbo.hidden_scalar", "*"),
    ("SELECT * FROM dbo.hidden_inline()", "229"),
    ("SELECT * FROM dbo.hidden_rows()", "229"),
    ("SELECT NEXT VALUE FOR dbo.hidden_sequence", "229"),
    ("DECLARE @v bigint SET @v = NEXT VALUE FOR dbo.hidden_sequence SELECT @v", "229"),
    ("SELECT * FROM dbo.hidden_synonym", "229"),
    ("DECLARE @t dbo.hidden_type INSERT @t DEFAULT VALUES SELECT * FROM @t", "229"),
    ("DECLARE c CURSOR FOR SELECT price FROM dbo.secret OPEN c FETCH NEXT FROM c", "229"),
    ("DECLARE @c CURSOR SET @c = CURSOR FOR SELECT price FROM dbo.secret OPEN @c FETCH NEXT FROM @c", "229"),
    ("CREATE TABLE #t1 (n int) INSERT #t1 EXEC dbo.hidden_procedure SELECT * FROM #t1", "229"),
    ("CREATE TABLE #t2 (n int) INSERT #t2 EXEC('SELECT price FROM dbo.secret') SELECT * FROM #t2", "229"),
    ("CREATE TABLE #t3 (n int) INSERT #t3 SELECT price FROM dbo.secret", "229"),
    ("DECLARE @t TABLE (n int) INSERT @t SELECT price FROM dbo.secret SELECT * FROM @t", "229"),
    ("DECLARE @t TABLE (a int DEFAULT dbo.hidden_scalar(), b int) INSERT @t (b) VALUES (1) SELECT a FROM @t", "229"),
    ("CREATE TABLE #t4 (a int DEFAULT dbo.hidden_scalar(), b int) INSERT #t4 (b) VALUES (1) SELECT a FROM #t4", "229"),
    ("CREATE TABLE #t5 (a int CHECK (a < dbo.hidden_scalar())) INSERT #t5 VALUES (4000)", "*"),
    ("CREATE TABLE #t6 (b int, a AS dbo.hidden_scalar()) INSERT #t6 VALUES (1) SELECT a FROM #t6", "229"),
    ("CREATE TABLE #t7 (b int DEFAULT NEXT VALUE FOR dbo.hidden_sequence, c int) INSERT #t7 (c) VALUES (1) SELECT b FROM #t7", "*"),
    // Dynamic SQL, also inside a procedure whose owner may.
    ("EXEC('SELECT * FROM dbo.secret')", "229"),
    ("EXEC sp_executesql N'SELECT * FROM dbo.secret WHERE price > @p', N'@p int', 1", "229"),
    ("EXEC dbo.careless N'SELECT * FROM dbo.secret'", "229"),
    ("EXEC dbo.careless N'EXEC dbo.hidden_procedure'", "229"),
    ("DECLARE @h int EXEC sp_prepare @h OUTPUT, N'', N'SELECT * FROM dbo.secret' EXEC sp_execute @h", "229"),
    ("EXEC('SELECT 1') AS USER = 'dbo'", "15517"),
    ("EXEC('SELECT 1') AS USER = 'hidden_user'", "15517"),
    ("EXEC('SELECT 1') AS LOGIN = 'sa'", "15406"),
    ("EXECUTE AS USER = 'dbo'", "15517"),
    ("EXECUTE AS USER = 'hidden_user'", "15517"),
    ("EXECUTE AS USER = 'nobody_at_all'", "15517"),
    ("EXECUTE AS LOGIN = 'sa'", "15406"),
    ("EXECUTE AS LOGIN = 'alice'", "15406"),
    ("EXECUTE AS CALLER SELECT * FROM dbo.secret", "229"),
    ("REVERT SELECT * FROM dbo.secret", "229"),
    ("BEGIN TRY SELECT * FROM dbo.secret END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH", "ok"),
    // Writing.
    ("INSERT dbo.secret VALUES (N'a', 1)", "229"),
    ("INSERT dbo.shown VALUES (9, N'a')", "229"),
    ("UPDATE dbo.secret SET price = 0", "229"),
    ("UPDATE dbo.shown SET note = N'a'", "229"),
    ("DELETE dbo.secret", "229"),
    ("DELETE s FROM dbo.shown AS s", "229"),
    ("UPDATE x SET price = 0 FROM dbo.secret AS x", "229"),
    ("MERGE dbo.secret AS t USING dbo.shown AS s ON t.id = s.id WHEN MATCHED THEN DELETE;", "229"),
    ("MERGE dbo.shown AS t USING dbo.secret AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = s.name;", "229"),
    ("UPDATE dbo.hidden_view SET price = 1", "229"),
    ("INSERT dbo.hidden_synonym VALUES (N'a', 1)", "229"),
    ("INSERT dbo.drop_box (a) OUTPUT inserted.a VALUES (1)", "229"),
    ("INSERT dbo.drop_box OUTPUT inserted.a INTO dbo.shown (id) VALUES (1, 2)", "229"),
    ("INSERT dbo.drop_box SELECT id, price FROM dbo.secret", "229"),
    ("DELETE dbo.drop_box OUTPUT deleted.*", "229"),
    ("DELETE dbo.drop_box", "229"),
    ("INSERT dbo.shown EXEC('SELECT 5, N''a''')", "229"),
    ("TRUNCATE TABLE dbo.secret", "4701"),
    ("TRUNCATE TABLE dbo.drop_box", "4701"),
    ("SET IDENTITY_INSERT dbo.secret ON", "1088"),
    ("INSERT BULK dbo.secret (name nvarchar(40))", "229"),
    ("BULK INSERT dbo.drop_box FROM '/etc/passwd'", "4834"),
    ("BULK INSERT dbo.secret FROM '/etc/passwd'", "4834"),
    ("SELECT * FROM OPENROWSET(BULK '/etc/passwd', SINGLE_CLOB) AS x", "*"),
    // Definitions.
    ("CREATE TABLE dbo.mine (a int)", "262"),
    ("SELECT note INTO dbo.mine FROM dbo.shown", "262"),
    ("CREATE VIEW dbo.mine AS SELECT * FROM dbo.secret", "262"),
    ("CREATE PROCEDURE dbo.mine AS SELECT * FROM dbo.secret", "262"),
    ("CREATE FUNCTION dbo.mine() RETURNS int AS BEGIN RETURN 1 END", "262"),
    ("CREATE PROCEDURE #mine AS SELECT * FROM dbo.secret", "*"),
    ("CREATE TRIGGER dbo.mine ON dbo.secret AFTER INSERT AS SELECT * FROM inserted", "8197"),
    ("CREATE TRIGGER dbo.mine ON dbo.shown AFTER INSERT AS SELECT * FROM inserted", "8197"),
    ("CREATE SYNONYM dbo.mine FOR dbo.secret", "262"),
    ("CREATE SEQUENCE dbo.mine", "2760"),
    ("CREATE TYPE dbo.mine FROM int", "262"),
    ("CREATE SCHEMA mine", "262"),
    ("CREATE SCHEMA mine AUTHORIZATION dbo", "262"),
    ("CREATE INDEX mine ON dbo.secret (name)", "1088"),
    ("ALTER INDEX ALL ON dbo.secret REBUILD", "1088"),
    ("DROP INDEX hidden_index ON dbo.secret", "3701"),
    ("ALTER TABLE dbo.secret ADD mine int", "4902"),
    ("ALTER TABLE dbo.shown DROP COLUMN note", "4902"),
    ("ALTER PROCEDURE dbo.harmless AS SELECT * FROM dbo.secret", "208"),
    ("CREATE OR ALTER PROCEDURE dbo.harmless AS SELECT * FROM dbo.secret", "208"),
    ("ALTER VIEW dbo.hidden_view AS SELECT 1 AS a", "208"),
    ("DISABLE TRIGGER dbo.hidden_trigger ON dbo.secret", "8197"),
    ("DROP TABLE dbo.secret", "3701"),
    ("DROP TABLE dbo.shown", "3701"),
    ("DROP PROCEDURE dbo.harmless", "3701"),
    ("DROP VIEW dbo.hidden_view", "3701"),
    ("DROP SCHEMA hidden_schema", "15151"),
    ("ALTER SCHEMA dbo TRANSFER hidden_schema.t", "15151"),
    ("ALTER AUTHORIZATION ON dbo.secret TO mallory", "15151"),
    ("ALTER AUTHORIZATION ON SCHEMA::hidden_schema TO mallory", "15151"),
    ("ALTER AUTHORIZATION ON DATABASE::shop TO mallory", "15151"),
    ("EXEC sp_rename 'dbo.secret', 'mine'", "*"),
    ("EXEC sp_rename 'dbo.secret.name', 'mine', 'COLUMN'", "15248"),
    ("EXEC sp_settriggerorder 'dbo.hidden_trigger', 'first', 'UPDATE'", "15165"),
    // Rights.
    ("GRANT SELECT ON dbo.secret TO mallory", "15151"),
    ("GRANT SELECT ON dbo.shown TO hidden_user", "4613"),
    ("GRANT SELECT TO mallory", "4613"),
    ("GRANT CONTROL ON SCHEMA::dbo TO mallory", "15151"),
    ("REVOKE SELECT ON dbo.hidden_table FROM hidden_user", "15151"),
    ("DENY SELECT ON dbo.secret TO alice", "15151"),
    ("GRANT IMPERSONATE ON USER::dbo TO mallory", "15151"),
    ("ALTER ROLE db_owner ADD MEMBER mallory", "15151"),
    ("ALTER ROLE hidden_role ADD MEMBER mallory", "15151"),
    ("EXEC sp_addrolemember 'db_owner', 'mallory'", "15151"),
    ("ALTER SERVER ROLE sysadmin ADD MEMBER mallory", "15151"),
    ("EXEC sp_addsrvrolemember 'mallory', 'sysadmin'", "15151"),
    ("CREATE USER eve WITHOUT LOGIN", "15247"),
    ("CREATE ROLE mine", "15247"),
    ("CREATE SERVER ROLE mine", "15247"),
    ("DROP USER hidden_user", "15151"),
    ("DROP ROLE hidden_role", "15151"),
    ("ALTER USER hidden_user WITH NAME = mine", "15151"),
    ("ALTER USER mallory WITH NAME = dbo2", "15151"),
    ("ALTER USER mallory WITH LOGIN = sa", "15151"),
    // The instance.
    ("USE hidden_base", "916"),
    ("SELECT * FROM hidden_base.dbo.t", "916"),
    ("SELECT * FROM hidden_base.dbo.no_such_table", "916"),
    ("INSERT hidden_base.dbo.t VALUES (1)", "916"),
    ("EXEC hidden_base.dbo.no_such_procedure", "916"),
    ("SELECT * FROM hidden_base.sys.objects", "916"),
    ("SELECT * FROM hidden_base.INFORMATION_SCHEMA.TABLES", "916"),
    ("TRUNCATE TABLE hidden_base.dbo.t", "916"),
    ("CREATE DATABASE mine", "262"),
    ("DROP DATABASE hidden_base", "3701"),
    ("ALTER DATABASE shop SET RECOVERY SIMPLE", "5011"),
    ("ALTER DATABASE hidden_base SET RECOVERY SIMPLE", "5011"),
    ("BACKUP DATABASE shop TO DISK = '/tmp/mine.bak'", "262"),
    ("BACKUP LOG shop TO DISK = '/tmp/mine.trn'", "262"),
    ("CHECKPOINT", "262"),
    ("DBCC PAGE (shop, 1, 8, 3)", "2571"),
    ("DBCC IND (shop, 'dbo.secret', 1)", "2571"),
    ("DBCC CHECKDB", "2571"),
    ("DBCC CHECKTABLE ('dbo.secret')", "2571"),
    ("DBCC CHECKIDENT ('dbo.secret')", "2571"),
    ("DBCC SHRINKDATABASE (shop)", "2571"),
    ("DBCC FREEPROCCACHE", "2571"),
    ("DBCC SQLPERF (LOGSPACE)", "2571"),
    ("KILL 51", "6102"),
    ("RECONFIGURE", "5812"),
    ("SHUTDOWN", "6004"),
    ("SET SHOWPLAN_TEXT ON", "262"),
    ("SET SHOWPLAN_ALL ON", "262"),
    ("SELECT * FROM sys.dm_os_wait_stats", "300"),
    ("SELECT * FROM sys.dm_exec_query_stats", "300"),
    ("SELECT * FROM sys.dm_exec_cached_plans", "300"),
    ("SELECT * FROM sys.dm_exec_connections", "300"),
    ("SELECT * FROM sys.dm_tran_locks", "300"),
    ("EXEC sp_lock", "300"),
    ("EXEC sp_readerrorlog", "300"),
    ("SELECT * FROM sys.dm_exec_sql_text(0x00)", "300"),
    ("SELECT * FROM sys.dm_db_file_space_usage", "262"),
];

/// Batches that answer, and must show nothing: each is looked through for what is hidden.
const LOOKS: &[&str] = &[
    "SELECT * FROM sys.objects",
    "SELECT * FROM sys.all_objects",
    "SELECT * FROM sys.tables",
    "SELECT * FROM sys.views",
    "SELECT * FROM sys.procedures",
    "SELECT * FROM sys.columns",
    "SELECT * FROM sys.indexes",
    "SELECT * FROM sys.index_columns",
    "SELECT * FROM sys.triggers",
    "SELECT * FROM sys.sql_modules",
    "SELECT * FROM sys.synonyms",
    "SELECT * FROM sys.sequences",
    "SELECT * FROM sys.types",
    "SELECT * FROM sys.table_types",
    "SELECT * FROM sys.schemas",
    "SELECT * FROM sys.key_constraints",
    "SELECT * FROM sys.check_constraints",
    "SELECT * FROM sys.default_constraints",
    "SELECT * FROM sys.foreign_keys",
    "SELECT * FROM sys.parameters",
    "SELECT * FROM sys.partitions",
    "SELECT * FROM sys.identity_columns",
    "SELECT * FROM sys.sysobjects",
    "SELECT * FROM sysobjects",
    "SELECT * FROM sys.syscolumns",
    "SELECT * FROM sys.database_principals",
    "SELECT * FROM sys.database_role_members",
    "SELECT * FROM sys.database_permissions",
    "SELECT * FROM sysusers",
    "SELECT * FROM sys.dm_db_partition_stats",
    "SELECT * FROM INFORMATION_SCHEMA.TABLES",
    "SELECT * FROM INFORMATION_SCHEMA.COLUMNS",
    "SELECT * FROM INFORMATION_SCHEMA.VIEWS",
    "SELECT * FROM INFORMATION_SCHEMA.ROUTINES",
    "SELECT * FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS",
    "SELECT * FROM INFORMATION_SCHEMA.SCHEMATA",
    "EXEC sp_tables",
    "EXEC sp_columns 'secret'",
    "EXEC sp_columns '%'",
    "EXEC sp_statistics 'secret'",
    "EXEC sp_pkeys 'hidden_table'",
    "EXEC sp_stored_procedures",
    "EXEC sp_helptext 'dbo.harmless'",
    "EXEC sp_helptext 'dbo.hidden_procedure'",
    "EXEC sp_helpuser",
    "EXEC sp_helprolemember",
    "EXEC sp_helplogins",
    "SELECT OBJECT_DEFINITION(OBJECT_ID('dbo.harmless'))",
    "SELECT id, name FROM sys.messages WHERE 1 = 0",
    "SELECT OBJECT_ID('dbo.hidden_table'), OBJECT_ID('dbo.hidden_view'), OBJECT_ID('dbo.hidden_check')",
    "SELECT SCHEMA_ID('hidden_schema'), DATABASE_PRINCIPAL_ID('hidden_role'), USER_ID('hidden_user'), TYPE_ID('dbo.hidden_type')",
    "SELECT COL_LENGTH('dbo.hidden_table', 'hidden_column'), IDENT_CURRENT('dbo.hidden_table'), INDEX_COL('dbo.secret', 2, 1)",
    "SELECT HAS_PERMS_BY_NAME('dbo.hidden_table', 'OBJECT', 'SELECT'), HAS_DBACCESS('hidden_base'), IS_MEMBER('hidden_role')",
    "DECLARE @n int = 0 WHILE @n < 60 BEGIN IF OBJECT_NAME(901578250 + @n * 16000057) LIKE '%hidden%' PRINT OBJECT_NAME(901578250 + @n * 16000057) SET @n += 1 END",
    "DECLARE @n int = 0 WHILE @n < 30 BEGIN IF USER_NAME(@n) LIKE 'hidden%' OR SCHEMA_NAME(@n) LIKE 'hidden%' PRINT 'found' + USER_NAME(@n) SET @n += 1 END",
    "SELECT * FROM fn_my_permissions('dbo.hidden_table', 'OBJECT')",
    "SELECT * FROM sys.master_files",
    "SELECT * FROM sys.server_principals",
    "SELECT * FROM sys.sql_logins",
    "SELECT * FROM sys.syslogins",
    "SELECT * FROM sys.server_permissions",
    "SELECT * FROM sys.dm_exec_sessions",
    "SELECT * FROM sys.dm_exec_requests",
    "SELECT * FROM sys.sysprocesses",
    "EXEC sp_who",
    "EXEC dbo.harmless",
];

fn locked_down(name: &str) -> (Arc<Engine>, Session, Session) {
    let (engine, mut sa) = shop(name);
    MADE.iter().for_each(|batch| is_done(&mut sa, batch));
    let mallory = enter(&engine, "mallory", "shop");
    (engine, sa, mallory)
}

/// Whether anything a batch said shows what is hidden, apart from what the batch itself names.
fn shows_hidden(batch: &str, lines: &[String]) -> Option<String> {
    // Names of columns are the system's own.
    let lines = lines.iter().filter(|line| !line.starts_with('['));
    let secret = |line: &&String| {
        line.contains("4711")
            || line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word.contains("hidden") && word != "is_hidden" && !batch.contains(word))
    };
    let mut lines = lines;
    lines.find(secret).cloned()
}

#[test]
fn no_way_in() {
    let (_engine, mut sa, mut mallory) = locked_down("lockdown-ways");
    assert!(WAYS.len() >= 100, "{} ways", WAYS.len());
    let before = rows(&mut sa, "SELECT COUNT(*), SUM(price), MIN(name) FROM dbo.secret; SELECT COUNT(*), MIN(note) FROM dbo.shown");
    let mut wrong = Vec::new();
    for (batch, expected) in WAYS {
        let lines = said(&mut mallory, batch);
        let told = lines.iter().find_map(|line| line.strip_prefix("Msg ").and_then(|rest| rest.split(',').next()));
        let told = told.unwrap_or("ok");
        let fits = if *expected == "*" { told != "ok" } else { told == *expected };
        if !fits {
            wrong.push(format!("{batch}\n   expected {expected}, told {told}: {}", lines.join(" / ")));
        }
        if let Some(line) = shows_hidden(batch, &lines) {
            wrong.push(format!("{batch}\n   shows {line}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), WAYS.len(), wrong.join("\n"));
    let after = rows(&mut sa, "SELECT COUNT(*), SUM(price), MIN(name) FROM dbo.secret; SELECT COUNT(*), MIN(note) FROM dbo.shown");
    assert_eq!(after, before, "something was written");
    assert_eq!(rows(&mut mallory, "SELECT note FROM dbo.shown"), "hello", "what is allowed still works");
}

#[test]
fn no_name_is_learned() {
    let (_engine, _sa, mut mallory) = locked_down("lockdown-names");
    let mut wrong = Vec::new();
    for batch in LOOKS {
        let lines = said(&mut mallory, batch);
        // What a batch asks for by name it may be told about only as nothing.
        let rows: Vec<String> = lines.iter().filter(|line| !line.starts_with("Msg ")).cloned().collect();
        if let Some(line) = shows_hidden("", &rows) {
            wrong.push(format!("{batch}\n   shows {line}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), LOOKS.len(), wrong.join("\n"));
    for (query, expected) in [
        ("SELECT OBJECT_ID('dbo.hidden_table'), OBJECT_ID('dbo.secret'), SCHEMA_ID('hidden_schema')", "NULL | NULL | NULL"),
        ("SELECT name FROM sys.objects WHERE type IN ('U', 'P', 'V', 'FN') ORDER BY name", "careless; drop_box; harmless; shown"),
        ("SELECT COUNT(*) FROM sys.sql_modules WHERE definition IS NOT NULL", "0"),
        ("SELECT OBJECT_DEFINITION(OBJECT_ID('dbo.harmless'))", "NULL"),
        ("SELECT name FROM sys.sql_logins ORDER BY principal_id", "sa; mallory"),
        ("SELECT COUNT(*) FROM sys.dm_exec_sessions", "1"),
        ("SELECT HAS_PERMS_BY_NAME('dbo.shown', 'OBJECT', 'SELECT'), HAS_PERMS_BY_NAME('dbo.shown', 'OBJECT', 'INSERT')", "1 | 0"),
        ("SELECT HAS_DBACCESS('hidden_base'), HAS_DBACCESS('shop'), IS_MEMBER('db_owner'), IS_SRVROLEMEMBER('sysadmin')", "0 | 1 | 0 | 0"),
    ] {
        assert_eq!(rows(&mut mallory, query), expected, "{query}");
    }
}

#[test]
fn nobody_else_gets_in_beside() {
    let (engine, mut sa, mut mallory) = locked_down("lockdown-beside");
    // What ran for sa and is kept does not run for mallory, nor the other way round.
    for _ in 0..3 {
        assert_eq!(outcome(&mut sa, "USE shop; SELECT name FROM dbo.secret WHERE id = 1"), "ok");
        assert_eq!(outcome(&mut mallory, "SELECT name FROM dbo.secret WHERE id = 1"), "229");
    }
    // A right taken away is gone at the next statement, though the plan is the same.
    assert_eq!(outcome(&mut mallory, "SELECT note FROM dbo.shown WHERE id = 1"), "ok");
    is_done(&mut sa, "REVOKE SELECT ON dbo.shown FROM mallory");
    assert_eq!(outcome(&mut mallory, "SELECT note FROM dbo.shown WHERE id = 1"), "229");
    is_done(&mut sa, "GRANT SELECT ON dbo.shown TO mallory");
    assert_eq!(outcome(&mut mallory, "SELECT note FROM dbo.shown WHERE id = 1"), "ok");
    // One that is given and taken back in a transaction that is rolled back was never there.
    is_done(&mut sa, "BEGIN TRANSACTION GRANT SELECT ON dbo.secret TO mallory");
    assert_eq!(outcome(&mut mallory, "SELECT note FROM dbo.shown WHERE id = 1"), "ok");
    is_done(&mut sa, "ROLLBACK");
    assert_eq!(outcome(&mut mallory, "SELECT price FROM dbo.secret"), "229");
    // A user that is dropped is nobody at once.
    is_done(&mut sa, "DROP USER mallory");
    assert_eq!(outcome(&mut mallory, "SELECT note FROM dbo.shown WHERE id = 1"), "916");
    assert_eq!(login(&engine, "mallory", PASSWORD, "shop").err(), Some(4060));
}

#[test]
fn the_owner_of_one_database_is_nobody_in_another() {
    let (_engine, mut sa, mut mallory) = locked_down("lockdown-owner");
    is_done(&mut sa, "ALTER ROLE db_owner ADD MEMBER mallory");
    for (batch, expected) in [
        ("DBCC CHECKTABLE ('dbo.secret') WITH NO_INFOMSGS", "ok"),
        ("DBCC CHECKTABLE ('hidden_base.dbo.t') WITH NO_INFOMSGS", "2571"),
        ("DBCC CHECKTABLE (hidden_base..t) WITH NO_INFOMSGS", "2571"),
        ("DECLARE @t sysname = N'hidden_base.dbo.t' DBCC CHECKTABLE (@t) WITH NO_INFOMSGS", "*"),
        ("DBCC CHECKIDENT ('hidden_base.dbo.t', RESEED, 1)", "2571"),
        ("DBCC CHECKDB (hidden_base)", "2571"),
        ("DBCC SHRINKDATABASE (hidden_base)", "2571"),
        ("DROP DATABASE hidden_base", "3701"),
        ("SELECT * FROM hidden_base.dbo.t", "916"),
    ] {
        let lines = said(&mut mallory, batch);
        let told = outcome(&mut mallory, batch);
        assert!(told == expected || (expected == "*" && told != "ok"), "{batch}: {lines:?}");
        assert_eq!(shows_hidden(batch, &lines), None, "{batch}");
    }
    assert_eq!(rows(&mut sa, "SELECT a FROM hidden_base.dbo.t"), "4711");
}

#[test]
fn who_may_change_users_gets_no_login_of_another() {
    let (engine, mut sa, mut mallory) = locked_down("lockdown-users");
    is_done(
        &mut sa,
        "ALTER ROLE db_accessadmin ADD MEMBER mallory; CREATE LOGIN rich WITH PASSWORD = 'Wonder-Land9'; CREATE USER rich FOR LOGIN rich",
    );
    is_done(&mut sa, "GRANT SELECT ON dbo.secret TO rich");
    // The user's rights would be her own's with the next login.
    assert_eq!(outcome(&mut mallory, "ALTER USER rich WITH LOGIN = alice"), "15151");
    assert_eq!(outcome(&mut mallory, "ALTER USER rich WITH DEFAULT_SCHEMA = dbo"), "ok");
    assert_eq!(outcome(&mut enter(&engine, "alice", "shop"), "SELECT price FROM dbo.secret"), "229");
    assert_eq!(outcome(&mut sa, "ALTER USER rich WITH LOGIN = rich"), "ok");
}

#[test]
fn one_that_could_not_be_opened_is_dropped_by_those_who_may() {
    let (engine, mut sa, mallory) = locked_down("lockdown-unopened");
    is_done(&mut sa, "USE master");
    let file = rows(&mut sa, "SELECT physical_name FROM sys.master_files WHERE name = N'hidden_base'");
    drop((sa, mallory));
    engine.close().expect("closes");
    drop(engine);
    std::fs::write(&file, b"no database").expect("the file is there");
    let folder = std::path::Path::new(&file).ancestors().nth(1).expect("a folder").to_owned();
    let engine = Engine::open(config(&folder)).expect("opens beside a damaged database");
    let mut mallory = enter(&engine, "mallory", "shop");
    assert_eq!(outcome(&mut mallory, "DROP DATABASE hidden_base"), "3701");
    let mut sa = engine.internal_session();
    assert_eq!(rows(&mut sa, "SELECT COUNT(*) FROM sys.databases WHERE name = N'hidden_base'"), "1");
    assert_eq!(outcome(&mut sa, "DROP DATABASE hidden_base"), "ok");
}
