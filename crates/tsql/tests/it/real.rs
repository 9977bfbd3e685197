//! Whole batches as applications and administrators send them: they parse, and into how many statements.

use thawdb_tsql::{ParseOptions, parse_batch};

/// Batches, also the material of the mutation tests.
pub const BATCHES: &[&str] = &[
    // What drivers and tools say when they connect.
    "set quoted_identifier off set arithabort off set numeric_roundabort off set ansi_warnings on set ansi_padding on \
     set ansi_nulls on set concat_null_yields_null on set cursor_close_on_commit off set implicit_transactions off \
     set language us_english set dateformat mdy set datefirst 7 set transaction isolation level read committed",
    "SET ROWCOUNT 0 SET TEXTSIZE 2147483647 SET LOCK_TIMEOUT -1 SET DEADLOCK_PRIORITY NORMAL SET QUERY_GOVERNOR_COST_LIMIT 0",
    "select @@microsoftversion; select SERVERPROPERTY(N'ProductVersion'), @@SPID; SELECT ORIGINAL_LOGIN(), SUSER_SNAME()",
    "IF @@TRANCOUNT > 0 COMMIT TRAN; SET XACT_ABORT ON; BEGIN TRANSACTION",
    "exec sp_executesql N'SELECT @a', N'@a int, @b nvarchar(max) OUTPUT', @a = -1, @b = @out OUTPUT",
    "sp_help Votes",
    "{call sys.sp_tables(N'%', N'dbo', NULL, N'''TABLE''')}",
    "INSERT BULK dbo.Votes ([Id] int, [Name] nvarchar(40) COLLATE SQL_Latin1_General_CP1_CI_AS, [At] datetime2(7)) WITH (TABLOCK, CHECK_CONSTRAINTS, ROWS_PER_BATCH = 1000, ORDER (Id ASC))",
    // The first slice's own statements.
    "CREATE DATABASE demo ON PRIMARY (NAME = demo, FILENAME = '/data/demo.mdf', SIZE = 64MB, MAXSIZE = UNLIMITED, FILEGROWTH = 10%), \
     FILEGROUP fg2 DEFAULT (NAME = N'demo2', FILENAME = N'/data/demo2.ndf', SIZE = 8192KB) \
     LOG ON (NAME = demo_log, FILENAME = '/data/demo.ldf', SIZE = 1 GB, FILEGROWTH = 64MB) COLLATE Latin1_General_CI_AS WITH TRUSTWORTHY ON, DB_CHAINING OFF",
    "CREATE TABLE dbo.Votes (Id int IDENTITY(1,1) NOT NULL CONSTRAINT PK_Votes PRIMARY KEY CLUSTERED WITH (FILLFACTOR = 100, DATA_COMPRESSION = PAGE) ON [PRIMARY], \
     PostId int NOT NULL, UserId int NULL REFERENCES dbo.Users (Id) ON DELETE SET NULL, BountyAmount int, VoteTypeId tinyint NOT NULL CHECK (VoteTypeId BETWEEN 1 AND 16), \
     CreationDate datetime NOT NULL DEFAULT GETDATE(), Total AS (BountyAmount * 2) PERSISTED, INDEX IX_Post NONCLUSTERED (PostId DESC) INCLUDE (UserId) WHERE UserId IS NOT NULL, \
     CONSTRAINT FK_Post FOREIGN KEY (PostId) REFERENCES Posts (Id) ON UPDATE CASCADE, UNIQUE (PostId, UserId)) ON [PRIMARY] TEXTIMAGE_ON [PRIMARY] WITH (DATA_COMPRESSION = NONE)",
    "BULK INSERT dbo.Votes FROM '/data/votes.csv' WITH (FORMAT = 'CSV', FIRSTROW = 2, FIELDTERMINATOR = ',', ROWTERMINATOR = '0x0a', TABLOCK, BATCHSIZE = 100000, KEEPNULLS, ORDER (Id ASC))",
    "CREATE NONCLUSTERED INDEX IX_Votes_PostId ON dbo.Votes (PostId ASC, VoteTypeId DESC) INCLUDE (UserId) WHERE VoteTypeId = 2 AND UserId IS NOT NULL \
     WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 5 MINUTES, ABORT_AFTER_WAIT = SELF)), RESUMABLE = ON, MAX_DURATION = 240 MINUTES, MAXDOP = 2, SORT_IN_TEMPDB = OFF, DATA_COMPRESSION = PAGE) ON [fg2]",
    "ALTER INDEX IX_Votes_PostId ON dbo.Votes PAUSE; ALTER INDEX IX_Votes_PostId ON dbo.Votes RESUME WITH (MAXDOP = 4, MAX_DURATION = 10) \
     ALTER INDEX ALL ON dbo.Votes REBUILD PARTITION = ALL WITH (ONLINE = OFF) ALTER INDEX x ON v ABORT ALTER INDEX x ON v REORGANIZE DISABLE TRIGGER ALL ON v",
    "DBCC CHECKDB ('demo', NOINDEX) WITH NO_INFOMSGS, PHYSICAL_ONLY, MAXDOP = 4; DBCC CHECKTABLE (N'dbo.Votes') DBCC DROPCLEANBUFFERS DBCC SHRINKFILE (demo_log, 1) DBCC TRACEON (3604, -1)",
    "BACKUP DATABASE demo TO DISK = '/b/1.bak', DISK = N'/b/2.bak' WITH INIT, COMPRESSION, CHECKSUM, STATS = 10, COPY_ONLY \
     BACKUP LOG @db TO DISK = @file WITH NO_TRUNCATE; RESTORE DATABASE demo FROM DISK = '/b/1.bak' WITH MOVE 'demo' TO '/d/x.mdf', REPLACE, NORECOVERY, STATS = 5 \
     RESTORE LOG demo FROM DISK = '/b/l.trn' WITH RECOVERY, STOPAT = '2026-01-01' RESTORE HEADERONLY FROM DISK = 'x' RESTORE DATABASE demo WITH RECOVERY",
    "ALTER DATABASE demo SET RECOVERY SIMPLE WITH NO_WAIT ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON, ALLOW_SNAPSHOT_ISOLATION ON WITH ROLLBACK IMMEDIATE \
     ALTER DATABASE demo SET SINGLE_USER WITH ROLLBACK AFTER 10 SECONDS ALTER DATABASE demo SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE, MAX_STORAGE_SIZE_MB = 100) \
     ALTER DATABASE demo ADD FILE (NAME = f3, FILENAME = '/x') TO FILEGROUP fg2 ALTER DATABASE demo MODIFY FILE (NAME = f3, SIZE = 100MB) ALTER DATABASE demo REMOVE FILE f3 \
     ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 4 ALTER DATABASE demo SET TARGET_RECOVERY_TIME = 60 SECONDS ALTER DATABASE demo MODIFY NAME = demo2",
    // Procedures and functions.
    "CREATE OR ALTER PROCEDURE dbo.p @a int = 1, @b nvarchar(50) = N'x' OUTPUT, @t dbo.T READONLY WITH RECOMPILE, EXECUTE AS OWNER AS\n\
     BEGIN\n SET NOCOUNT ON;\n BEGIN TRY\n  BEGIN TRAN;\n  SAVE TRAN s1;\n  INSERT INTO @x (a) OUTPUT inserted.a INTO #o (a) SELECT a FROM @t;\n  COMMIT;\n END TRY\n\
     BEGIN CATCH\n  IF XACT_STATE() <> 0 ROLLBACK TRAN;\n  DECLARE @m nvarchar(2048) = ERROR_MESSAGE();\n  RAISERROR (N'%s at %d', 16, 1, @m, @@ROWCOUNT) WITH NOWAIT;\n  THROW;\n END CATCH;\n RETURN -1;\nEND",
    "CREATE FUNCTION dbo.f (@a int) RETURNS TABLE WITH SCHEMABINDING AS RETURN (WITH c AS (SELECT @a AS a) SELECT a FROM c)",
    "CREATE FUNCTION dbo.g (@a int = 0) RETURNS @r TABLE (a int PRIMARY KEY, b varchar(10) DEFAULT ('x')) AS BEGIN INSERT @r (a) VALUES (@a); RETURN END",
    "CREATE FUNCTION dbo.h (@s varchar(max)) RETURNS int AS BEGIN DECLARE @i int = 0; WHILE @i < 10 BEGIN SET @i += 1; IF @i = 5 BREAK; ELSE CONTINUE END; RETURN @i END",
    "CREATE TRIGGER tr ON dbo.Votes AFTER INSERT, UPDATE AS IF UPDATE(PostId) AND EXISTS (SELECT * FROM inserted) BEGIN ROLLBACK; RETURN END",
    "CREATE VIEW dbo.v (a, b) WITH SCHEMABINDING AS SELECT a, COUNT_BIG(*) FROM dbo.t GROUP BY a WITH CHECK OPTION",
    // Queries.
    "WITH c AS (SELECT a, ROW_NUMBER() OVER (PARTITION BY b ORDER BY c DESC) rn FROM t), d (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM d WHERE x < 10) \
     SELECT TOP (10) PERCENT WITH TIES c.*, d.x AS [the x], SUM(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), total = COUNT(DISTINCT a), \
     CASE a WHEN 1 THEN 'one' ELSE NULL END, CONVERT(varchar(10), GETDATE(), 121) COLLATE Latin1_General_BIN FROM c WITH (NOLOCK, INDEX(1)) INNER HASH JOIN d ON c.a = d.x \
     LEFT OUTER JOIN (SELECT a FROM e) AS e ON e.a = c.a CROSS APPLY (VALUES (1, 'a'), (2, 'b')) v (n, s) OUTER APPLY dbo.f(c.a) AS f, g (NOLOCK) \
     WHERE c.rn = 1 AND (c.a LIKE '%x[_]%' ESCAPE '!' OR c.b NOT IN (1, 2, 3)) AND EXISTS (SELECT 1 FROM h WHERE h.a = c.a) AND c.d >= ALL (SELECT 1) \
     GROUP BY c.a, ROLLUP (b, (c, d)) HAVING COUNT(*) > 1 ORDER BY 1 DESC, c.a OPTION (RECOMPILE, MAXDOP 1, HASH GROUP, OPTIMIZE FOR (@p = 1, @q UNKNOWN), USE HINT ('X'))",
    "SELECT a FROM t ORDER BY a OFFSET @n ROWS FETCH NEXT 10 ROWS ONLY FOR JSON PATH, ROOT('r'), INCLUDE_NULL_VALUES",
    "SELECT * FROM (SELECT y, a FROM t) s PIVOT (SUM(a) FOR y IN ([2001], [2002])) AS p UNPIVOT (v FOR k IN (a, b)) AS u",
    "SELECT j.a, x.value('(/r/@b)[1]', 'int') FROM OPENJSON(@j, '$.a') WITH (a int '$.x', b nvarchar(max) AS JSON) AS j CROSS APPLY @x.nodes('/r') AS n(x)",
    "SELECT * FROM OPENROWSET(BULK '/x.csv', FORMATFILE = '/x.fmt', FIRSTROW = 2) AS r(a, b), OPENQUERY(srv, 'select 1') q, db..t, srv.db.dbo.t",
    "SELECT {d '2020-01-31'}, {ts '2020-01-31 10:00:00'}, {fn CONCAT('a', {fn UCASE('b')})}, {fn NOW()} FROM {oj a LEFT OUTER JOIN b ON a.x = b.x}",
    "MERGE INTO dbo.t WITH (HOLDLOCK) AS d USING (VALUES (1, 'x')) AS s (id, n) ON d.id = s.id WHEN MATCHED AND d.n <> s.n THEN UPDATE SET n = s.n, d.u += 1 \
     WHEN NOT MATCHED BY TARGET THEN INSERT (id, n) VALUES (s.id, DEFAULT) WHEN NOT MATCHED BY SOURCE THEN DELETE OUTPUT $action, inserted.*, deleted.id;",
    "UPDATE TOP (5) v SET v.a = v.a + 1, @x = b = 2, c.WRITE('x', 0, NULL) OUTPUT deleted.a, inserted.a AS new INTO @o FROM dbo.v AS v JOIN w ON v.id = w.id WHERE CURRENT OF cur",
    "DELETE FROM v OUTPUT deleted.* FROM dbo.votes v WITH (READPAST) WHERE v.id IN (SELECT id FROM w) OPTION (MAXDOP 1)",
    // Control of flow and cursors.
    "DECLARE c CURSOR LOCAL FAST_FORWARD FOR SELECT name FROM sys.databases; OPEN c; FETCH NEXT FROM c INTO @n; WHILE @@FETCH_STATUS = 0 BEGIN PRINT @n FETCH c INTO @n END CLOSE c DEALLOCATE c",
    "DECLARE @a int = 1, @t TABLE (a int), @b varchar(10); IF @a = 1 GOTO done; WAITFOR DELAY '00:00:01'; done: PRINT 'x' RETURN",
    "EXEC @r = dbo.p 1, @x OUTPUT, DEFAULT, 'a', NULL, -2.5, 0x01, bare WITH RECOMPILE EXEC ('SELECT ' + @a, 1) AT srv EXEC sp_foo; EXECUTE AS USER = 'x'; REVERT",
    "GRANT SELECT, UPDATE (a, b) ON OBJECT::dbo.t TO u, PUBLIC WITH GRANT OPTION; DENY VIEW SERVER STATE TO x REVOKE ALL ON SCHEMA::dbo FROM y CASCADE",
    "CREATE LOGIN l WITH PASSWORD = 'x' MUST_CHANGE, CHECK_POLICY = OFF, DEFAULT_DATABASE = [demo] CREATE USER u FOR LOGIN l WITH DEFAULT_SCHEMA = Sales ALTER ROLE db_owner ADD MEMBER u",
    "CREATE EVENT SESSION s ON SERVER ADD EVENT sqlserver.sql_statement_completed (SET collect_statement = (1) ACTION (sqlserver.session_id, sqlserver.sql_text) \
     WHERE (sqlserver.database_id = 5 AND duration > 1000 AND package0.divides_by_uint64(sqlserver.session_id, 2))), ADD EVENT sqlos.wait_info \
     ADD TARGET package0.event_file (SET filename = N'x.xel') WITH (MAX_MEMORY = 4096 KB, EVENT_RETENTION_MODE = ALLOW_SINGLE_EVENT_LOSS, MAX_DISPATCH_LATENCY = 30 SECONDS, STARTUP_STATE = ON)",
    "ALTER EVENT SESSION s ON SERVER STATE = START; DROP EVENT SESSION s ON SERVER",
    "CREATE SEQUENCE dbo.s AS bigint START WITH 1 INCREMENT BY -1 NO MINVALUE MAXVALUE 100 NO CYCLE CACHE 10 CREATE SYNONYM x FOR db.dbo.y CREATE TYPE dbo.T AS TABLE (a int NOT NULL, INDEX i (a)) CREATE TYPE SSN FROM varchar(11) NOT NULL",
    "ALTER TABLE t WITH NOCHECK ADD c int NOT NULL CONSTRAINT DF DEFAULT (0) WITH VALUES, CONSTRAINT ck CHECK (c > 0), CONSTRAINT df2 DEFAULT 'x' FOR d \
     ALTER TABLE t ALTER COLUMN c bigint NULL ALTER TABLE t DROP CONSTRAINT IF EXISTS ck, COLUMN c, d ALTER TABLE t CHECK CONSTRAINT ALL ALTER TABLE t REBUILD WITH (DATA_COMPRESSION = PAGE) \
     ALTER TABLE t SWITCH PARTITION 1 TO u ALTER TABLE t SET (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.h)) ALTER TABLE t DISABLE TRIGGER ALL",
    "DROP TABLE IF EXISTS #a, dbo.b DROP INDEX IF EXISTS i ON t, j ON t DROP INDEX t.i DROP DATABASE a, b DROP PROC p DROP TRIGGER x ON DATABASE TRUNCATE TABLE dbo.t WITH (PARTITIONS (1, 3 TO 5))",
    "CREATE STATISTICS st ON t (a, b) WHERE a > 1 WITH FULLSCAN, NORECOMPUTE UPDATE STATISTICS t (st) WITH SAMPLE 50 PERCENT UPDATE STATISTICS t CHECKPOINT KILL 55 RECONFIGURE WITH OVERRIDE SET STATISTICS IO, TIME ON SET IDENTITY_INSERT t ON",
    "CREATE FULLTEXT INDEX ON t (a LANGUAGE 1033) KEY INDEX pk WITH STOPLIST = SYSTEM; SELECT 1",
    "CREATE PARTITION FUNCTION pf (datetime2(0)) AS RANGE RIGHT FOR VALUES ('2020-01-01', '2021-01-01') CREATE PARTITION SCHEME ps AS PARTITION pf ALL TO ([PRIMARY])",
];

#[test]
fn batches_parse() {
    for text in BATCHES {
        let batch = parse_batch(text, &ParseOptions::default());
        assert!(batch.errors.is_empty(), "{text}\n{}", batch.errors[0]);
        assert!(!batch.statements.is_empty());
    }
}

#[test]
fn statements_are_told_apart_without_semicolons() {
    let count = |text: &str| parse_batch(text, &ParseOptions::default()).statements.len();
    assert_eq!(count(BATCHES[0]), 13);
    assert_eq!(
        count("SELECT 1 SELECT 2 PRINT 'x' EXEC p 1, 2 UPDATE t SET a = 1 DELETE t SELECT a FROM t IF 1 = 1 SELECT 1 ELSE SELECT 2"),
        8
    );
    assert_eq!(count("COMMIT SELECT 1"), 2);
    assert_eq!(count("BEGIN TRAN t1 SELECT 1 ROLLBACK TRAN t1"), 3);
    assert_eq!(count("RETURN SELECT 1"), 2);
    assert_eq!(count("SELECT a FROM t label1: SELECT 2"), 3);
    assert_eq!(count(";;SELECT 1;;"), 1);
    assert_eq!(count(""), 0);
}

#[test]
fn spans_give_back_the_text_and_the_line() {
    let text = "SELECT 1;\n\n  UPDATE t\n SET a = 1 ;\nIF 1 = 1\n  PRINT 'x'";
    let batch = parse_batch(text, &ParseOptions::default());
    let found: Vec<_> = batch.statements.iter().map(|s| (s.span.line, s.span.slice(text))).collect();
    assert_eq!(found, [(1, "SELECT 1"), (3, "UPDATE t\n SET a = 1"), (5, "IF 1 = 1\n  PRINT 'x'")]);
}

#[test]
fn quoted_identifier_decides_what_double_quotes_are() {
    let off = ParseOptions { quoted_identifier: false };
    let on = ParseOptions::default();
    let tree = |options: &ParseOptions| crate::dump::dump(&parse_batch("SELECT \"x\"", options).statements);
    assert!(tree(&on).contains("expr=\"x\""), "{}", tree(&on));
    assert!(tree(&off).contains("expr='x'"), "{}", tree(&off));
}
