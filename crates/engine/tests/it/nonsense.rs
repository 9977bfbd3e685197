//! Batches of words in no order: whatever comes, the session answers and goes on.

use crate::script::{fresh_engine, said};

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "t",
    "u",
    "a",
    "b",
    "*",
    "1",
    "0",
    "NULL",
    "'x'",
    "N'y'",
    "@v",
    "@w",
    "@@ROWCOUNT",
    "(",
    ")",
    ",",
    "=",
    "+",
    "-",
    "/",
    "<",
    ">",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "LIKE",
    "EXISTS",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE",
    "TOP (2)",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "COUNT(*)",
    "SUM(a)",
    "MAX(b)",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "AS",
    "DISTINCT",
    "UNION",
    "ALL",
    "BEGIN",
    "TRAN",
    "COMMIT",
    "ROLLBACK",
    "SAVE TRAN s",
    "IF",
    "PRINT",
    "DECLARE @v int = 1",
    "DECLARE @w varchar(5)",
    "BEGIN TRY",
    "END TRY",
    "BEGIN CATCH",
    "END CATCH",
    "THROW",
    "RAISERROR('r', 16, 1)",
    "RETURN",
    "EXEC",
    "('SELECT 1')",
    "sp_executesql",
    "CREATE TABLE",
    "DROP TABLE",
    "TRUNCATE TABLE",
    "#t",
    "(a int)",
    "CREATE INDEX i",
    "ALTER TABLE",
    "ADD c int NULL",
    "SET NOCOUNT ON",
    "SET XACT_ABORT ON",
    "SET ROWCOUNT 1",
    "USE master",
    "CAST(",
    "AS int)",
    ";",
    "WITH",
    "OVER (ORDER BY a)",
    "ROW_NUMBER()",
    "sys.objects",
    "--",
    "/*",
    "*/",
    "[",
    "]",
    "\"",
    "'",
    "{",
    "}",
    "é",
    "\u{1F600}",
];

/// Whole statements, to be said in any order.
const STATEMENTS: &[&str] = &[
    "INSERT t VALUES (3, 'z')",
    "INSERT u VALUES (1)",
    "INSERT u SELECT a FROM t",
    "UPDATE t SET a = a + 1",
    "UPDATE u SET a = a + 100",
    "DELETE t WHERE a > 3",
    "SELECT * FROM t JOIN u ON t.a = u.a",
    "SELECT b, COUNT(*) FROM t GROUP BY b",
    "SELECT TOP (1) a FROM u ORDER BY a DESC",
    "SELECT 1/0",
    "SELECT CAST('q' AS int)",
    "BEGIN TRAN",
    "COMMIT",
    "ROLLBACK",
    "SAVE TRAN s",
    "ROLLBACK TRAN s",
    "TRUNCATE TABLE t",
    "CREATE TABLE w (a int PRIMARY KEY)",
    "DROP TABLE w",
    "DROP TABLE IF EXISTS w",
    "CREATE INDEX ix ON t (a)",
    "DROP INDEX ix ON t",
    "CREATE TABLE #t (a int)",
    "INSERT #t SELECT a FROM t",
    "DROP TABLE #t",
    "SELECT a INTO w FROM t",
    "INSERT w VALUES (1)",
    "ALTER TABLE t ADD c int NULL",
    "EXEC ('INSERT t (a) VALUES (9)')",
    "EXEC sp_executesql N'UPDATE t SET b = @p', N'@p varchar(10)', 'p'",
    "BEGIN TRY INSERT u VALUES (1), (1) END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH",
    "RAISERROR('r', 16, 1)",
    "SET XACT_ABORT ON",
    "SET XACT_ABORT OFF",
    "SET IMPLICIT_TRANSACTIONS ON",
    "SET IMPLICIT_TRANSACTIONS OFF",
    "SET ROWCOUNT 1",
    "SET ROWCOUNT 0",
    "DBCC CHECKDB WITH NO_INFOMSGS",
    "EXEC sp_columns 't'",
    "CHECKPOINT",
    "SELECT name FROM sys.objects",
    "CREATE SCHEMA s2",
    "DROP SCHEMA s2",
    "THROW 50000, 'x', 1",
    "IF @@TRANCOUNT > 2 ROLLBACK",
];

struct Dice(u64);

impl Dice {
    fn draw(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below the limit")
    }
}

#[test]
fn nothing_said_breaks_a_session() {
    let (engine, _) = fresh_engine("nonsense");
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE t (a int, b varchar(10)) CREATE TABLE u (a int PRIMARY KEY) INSERT t VALUES (1, 'x'), (2, NULL)");
    for round in 0..3_000 {
        let count = 1 + dice.draw(18);
        let words: Vec<_> = (0..count).map(|_| WORDS[dice.draw(WORDS.len())]).collect();
        let batch = words.join(" ");
        let lines = said(&mut session, &batch);
        let broken = lines.iter().find(|line| line.starts_with("Msg 3624"));
        assert!(broken.is_none(), "round {round}: {batch}\n{}", lines.join("\n"));
        if round % 50 == 0 {
            said(&mut session, "IF @@TRANCOUNT > 0 ROLLBACK SET ROWCOUNT 0 SET XACT_ABORT OFF SET NOCOUNT OFF");
        }
    }
    assert_eq!(
        said(&mut session, "IF @@TRANCOUNT > 0 ROLLBACK SET NOCOUNT OFF SET ROWCOUNT 0 SELECT 1 AS a").last().expect("answers"),
        "done 1"
    );
}

#[test]
fn statements_in_any_order_leave_a_sound_database() {
    let (engine, _) = fresh_engine("any-order");
    let mut dice = Dice(0x1234_5678_9ABC_DEF1);
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE t (a int, b varchar(10)) CREATE TABLE u (a int PRIMARY KEY) INSERT t VALUES (1, 'x'), (2, NULL)");
    for round in 0..600 {
        let count = 1 + dice.draw(6);
        let batch = (0..count).map(|_| STATEMENTS[dice.draw(STATEMENTS.len())]).collect::<Vec<_>>().join(";\n");
        let lines = said(&mut session, &batch);
        let broken = lines.iter().find(|line| ["Msg 3624", "Msg 2533", "Msg 89"].iter().any(|bad| line.starts_with(bad)));
        assert!(broken.is_none(), "round {round}:\n{batch}\n{}", lines.join("\n"));
    }
    said(&mut session, "IF @@TRANCOUNT > 0 ROLLBACK SET IMPLICIT_TRANSACTIONS OFF SET ROWCOUNT 0");
    assert_eq!(said(&mut session, "DBCC CHECKDB WITH NO_INFOMSGS"), Vec::<String>::new());
}
