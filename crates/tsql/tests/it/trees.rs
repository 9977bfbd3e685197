//! Texts and their trees, in the notation of `dump`.

use thawdb_tsql::{ParseOptions, parse_batch};

use crate::dump::dump;

/// Text and dump; also the material of the mutation tests.
#[rustfmt::skip]
pub const CASES: &[(&str, &str)] = &[
    (
        "SELECT 1",
        "(Query body=(Select items=[(Expr expr=1)]))",
    ),
    (
        r#"SELECT a, b.c, d..t.x, [q]]x], "dq" FROM s.t AS t"#,
        r#"(Query body=(Select items=[(Expr expr=a) (Expr expr=b.c) (Expr expr=d..t.x) (Expr expr=[q]x]) (Expr expr="dq")] from=[(NamedTable name=s.t alias=t)]))"#,
    ),
    (
        "SELECT DISTINCT TOP (5) WITH TIES a x, y = b, 'lit' AS 'string alias', t.* FROM t",
        r#"(Query body=(Select distinct=true top=(Top count=5 with_ties=true parenthesised=true) items=[(Expr expr=a alias=x) (Expr expr=b alias=y) (Expr expr='lit' alias="string alias") (Wildcard table=t)] from=[(NamedTable name=t)]))"#,
    ),
    (
        "SELECT @a = 1, @b += a FROM t",
        "(Query body=(Select items=[(Assign variable=@a op=Set value=1) (Assign variable=@b op=Add value=a)] from=[(NamedTable name=t)]))",
    ),
    (
        "SELECT 2147483647, 2147483648, 1.50, .5, 1e3, $12.5, 0xABC, 'it''s', N'é', NULL",
        "(Query body=(Select items=[(Expr expr=2147483647) (Expr expr=2147483648) (Expr expr=1.50) (Expr expr=.5) (Expr expr=1e3) (Expr expr=$12.5) (Expr expr=(Binary [10 188])) (Expr expr='it's') (Expr expr=N'é') (Expr expr=Null)]))",
    ),
    (
        "SELECT a + b * c - d / e % f & g | h ^ i",
        "(Query body=(Select items=[(Expr expr=(Binary op=BitXor left=(Binary op=BitOr left=(Binary op=BitAnd left=(Binary op=Subtract left=(Binary op=Add left=a right=(Binary op=Multiply left=b right=c)) right=(Binary op=Modulo left=(Binary op=Divide left=d right=e) right=f)) right=g) right=h) right=i))]))",
    ),
    (
        "SELECT -100 / -100 * 10",
        "(Query body=(Select items=[(Expr expr=(Unary op=Minus operand=(Binary op=Divide left=100 right=(Unary op=Minus operand=(Binary op=Multiply left=100 right=10)))))]))",
    ),
    (
        "SELECT - - 1, ~ - 1, -(a), +a",
        "(Query body=(Select items=[(Expr expr=(Unary op=Minus operand=(Unary op=Minus operand=1))) (Expr expr=(Unary op=BitNot operand=(Unary op=Minus operand=1))) (Expr expr=(Unary op=Minus operand=(Paren a))) (Expr expr=(Unary op=Plus operand=a))]))",
    ),
    (
        "SELECT ((1)), (SELECT 1), ((SELECT 1) + 2), ((SELECT 1) UNION (SELECT 2))",
        "(Query body=(Select items=[(Expr expr=(Paren (Paren 1))) (Expr expr=(Subquery (Query body=(Select items=[(Expr expr=1)])))) (Expr expr=(Paren (Binary op=Add left=(Subquery (Query body=(Select items=[(Expr expr=1)]))) right=2))) (Expr expr=(Subquery (Query body=(Set op=Union operands=[(Paren (Query body=(Select items=[(Expr expr=1)]))) (Paren (Query body=(Select items=[(Expr expr=2)])))]))))]))",
    ),
    (
        "SELECT 1 WHERE a = 1 OR b > = 2 AND NOT c ! = 3 OR d !< 4",
        "(Query body=(Select items=[(Expr expr=1)] where_=(Or [(Compare op=Equal left=a right=1) (And [(Compare op=GreaterOrEqual left=b right=2) (Not (Compare op=NotEqual left=c right=3))]) (Compare op=GreaterOrEqual left=d right=4)])))",
    ),
    (
        "SELECT 1 WHERE (a = 1 OR b = 2) AND (c) = 3",
        "(Query body=(Select items=[(Expr expr=1)] where_=(And [(Paren (Or [(Compare op=Equal left=a right=1) (Compare op=Equal left=b right=2)])) (Compare op=Equal left=(Paren c) right=3)])))",
    ),
    (
        r"SELECT 1 WHERE a IS NOT NULL AND b IS DISTINCT FROM c AND d NOT BETWEEN 1 AND 2 AND e LIKE 'x' ESCAPE '\'",
        r"(Query body=(Select items=[(Expr expr=1)] where_=(And [(IsNull operand=a negated=true) (IsDistinctFrom left=b right=c) (Between operand=d low=1 high=2 negated=true) (Like operand=e pattern='x' escape='\')])))",
    ),
    (
        "SELECT 1 WHERE a IN (1, 2) AND b NOT IN (SELECT x FROM y) AND EXISTS (SELECT *  FROM z) AND c = ANY (SELECT 1) AND CONTAINS((p, q), N'w')",
        r#"(Query body=(Select items=[(Expr expr=1)] where_=(And [(InList operand=a list=[1 2]) (InQuery operand=b query=(Query body=(Select items=[(Expr expr=x)] from=[(NamedTable name=y)])) negated=true) (Exists (Query body=(Select items=[(Wildcard)] from=[(NamedTable name=z)]))) (Quantified op=Equal quantifier=Any left=c query=(Query body=(Select items=[(Expr expr=1)]))) (FullText predicate="CONTAINS" columns=[p q] search=N'w')])))"#,
    ),
    (
        "SELECT CASE WHEN a = 1 THEN 'x' ELSE 'y' END, CASE a WHEN 1 THEN 2 END, IIF(a > 1, b, c), COALESCE(a, b), NULLIF(a, 0)",
        "(Query body=(Select items=[(Expr expr=(Case branches=[(CaseBranch when=(Compare op=Equal left=a right=1) then='x')] otherwise='y')) (Expr expr=(Case operand=a branches=[(CaseBranch when=1 then=2)])) (Expr expr=(Iif condition=(Compare op=Greater left=a right=1) then=b otherwise=c)) (Expr expr=(Coalesce [a b])) (Expr expr=(NullIf a 0))]))",
    ),
    (
        "SELECT CAST(a AS decimal(10, 2)), TRY_CONVERT(nvarchar(max), a, 121), PARSE('1' AS int USING 'de-DE'), CONVERT(double precision, x), CAST(x AS national character varying(5))",
        "(Query body=(Select items=[(Expr expr=(Cast operand=a data_type=(DataType name=decimal parameters=[(Number 10) (Number 2)]))) (Expr expr=(Convert data_type=(DataType name=nvarchar parameters=[Max]) operand=a style=121 try_=true)) (Expr expr=(Parse operand='1' data_type=(DataType name=int) culture='de-DE')) (Expr expr=(Convert data_type=(DataType name=float) operand=x)) (Expr expr=(Cast operand=x data_type=(DataType name=nvarchar parameters=[(Number 5)])))]))",
    ),
    (
        "SELECT COUNT(*), COUNT(DISTINCT a), STRING_AGG(a, ',') WITHIN GROUP (ORDER BY a DESC), LEFT(a, 1), dbo.f(DEFAULT), GETDATE(), CURRENT_TIMESTAMP, USER",
        "(Query body=(Select items=[(Expr expr=(FunctionCall name=COUNT star=true)) (Expr expr=(FunctionCall name=COUNT distinct=true arguments=[a])) (Expr expr=(FunctionCall name=STRING_AGG arguments=[a ','] within_group=[(OrderItem expr=a descending=true)])) (Expr expr=(FunctionCall name=LEFT arguments=[a 1])) (Expr expr=(FunctionCall name=dbo.f arguments=[Default])) (Expr expr=(FunctionCall name=GETDATE)) (Expr expr=(Niladic CurrentTimestamp)) (Expr expr=(Niladic User))]))",
    ),
    (
        "SELECT SUM(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING), LAG(a, 1) IGNORE NULLS OVER w FROM t WINDOW w AS (ORDER BY a)",
        "(Query body=(Select items=[(Expr expr=(FunctionCall name=SUM arguments=[a] over=(Spec (WindowSpec partition_by=[b] order_by=[(OrderItem expr=c)] frame=(Frame rows=true start=(Preceding 1) end=UnboundedFollowing))))) (Expr expr=(FunctionCall name=LAG arguments=[a 1] null_treatment=IgnoreNulls over=(Named w)))] from=[(NamedTable name=t)] windows=[(NamedWindow name=w spec=(WindowSpec order_by=[(OrderItem expr=a)]))]))",
    ),
    (
        "SELECT a COLLATE Latin1_General_BIN, b AT TIME ZONE 'UTC' AT TIME ZONE 'CET', x.value('.', 'int'), @x.query('a'), geography::Point(1, 2, 4326), g.Lat",
        "(Query body=(Select items=[(Expr expr=(Collate operand=a collation=Latin1_General_BIN)) (Expr expr=(AtTimeZone operand=(AtTimeZone operand=b zone='UTC') zone='CET')) (Expr expr=(Method receiver=x method=value arguments=['.' 'int'])) (Expr expr=(Method receiver=@x method=query arguments=['a'])) (Expr expr=(StaticMethod data_type=geography method=Point arguments=[1 2 4326])) (Expr expr=g.Lat)]))",
    ),
    (
        "SELECT $identity, t.$rowguid, IDENTITYCOL, @@ROWCOUNT, NEXT VALUE FOR dbo.s OVER (ORDER BY a), $PARTITION.pf(a), db.$PARTITION.pf(1)",
        r#"(Query body=(Select items=[(Expr expr=(Pseudo name="identity")) (Expr expr=(Pseudo table=t name="rowguid")) (Expr expr=(Pseudo name="identity")) (Expr expr=(GlobalVariable "@@ROWCOUNT")) (Expr expr=(NextValueFor sequence=dbo.s over=(WindowSpec order_by=[(OrderItem expr=a)]))) (Expr expr=(PartitionFunction function=pf arguments=[a])) (Expr expr=(PartitionFunction function=db..pf arguments=[1]))]))"#,
    ),
    (
        "SELECT TRIM(a), TRIM('x' FROM a), TRIM(LEADING 'x' FROM a), JSON_OBJECT('a':1, 'b':c ABSENT ON NULL), JSON_ARRAY(1, 2)",
        "(Query body=(Select items=[(Expr expr=(FunctionCall name=TRIM arguments=[a])) (Expr expr=(Trim characters='x' source=a)) (Expr expr=(Trim side=Leading characters='x' source=a)) (Expr expr=(JsonObject members=[['a' 1] ['b' c]] absent_on_null=true)) (Expr expr=(JsonArray elements=[1 2] absent_on_null=true))]))",
    ),
    (
        "SELECT {d '2020-01-31'}, {fn LEFT('a', 1)}, {fn EXTRACT(YEAR FROM d)}",
        r#"(Query body=(Select items=[(Expr expr=(Odbc kind=Date value="2020-01-31")) (Expr expr=(FunctionCall name=LEFT arguments=['a' 1] odbc=true)) (Expr expr=(FunctionCall name=EXTRACT arguments=[YEAR d] odbc=true))]))"#,
    ),
    (
        "SELECT DATEADD(day, 1, a), DATEPART(iso_week, b)",
        "(Query body=(Select items=[(Expr expr=(FunctionCall name=DATEADD arguments=[day 1 a])) (Expr expr=(FunctionCall name=DATEPART arguments=[iso_week b]))]))",
    ),
    (
        "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 EXCEPT SELECT 4 INTERSECT SELECT 5 ORDER BY 1",
        "(Query body=(Set op=Except operands=[(Set op=UnionAll operands=[(Select items=[(Expr expr=1)]) (Select items=[(Expr expr=2)]) (Select items=[(Expr expr=3)])]) (Set op=Intersect operands=[(Select items=[(Expr expr=4)]) (Select items=[(Expr expr=5)])])]) order_by=[(OrderItem expr=1)])",
    ),
    (
        "SELECT * FROM a, b AS c WITH (NOLOCK, INDEX (1, ix)), d (UPDLOCK), @v e, f(1) g (x, y), ::fn_x(1)",
        r#"(Query body=(Select items=[(Wildcard)] from=[(NamedTable name=a) (NamedTable name=b alias=c hints=[(Word "NOLOCK") (Index [(Number 1) ix])]) (NamedTable name=d hints=[(Word "UPDLOCK")]) (Variable variable=@v alias=e) (Function name=f arguments=[1] alias=(Alias name=g columns=[x y])) (Function name=fn_x arguments=[1])]))"#,
    ),
    (
        "SELECT * FROM a JOIN b ON a.x = b.x LEFT OUTER HASH JOIN c JOIN d ON c.x = d.x ON a.x = c.x CROSS JOIN e",
        "(Query body=(Select items=[(Wildcard)] from=[(Join kind=Cross left=(Join kind=Left hint=Hash left=(Join kind=Inner left=(NamedTable name=a) right=(NamedTable name=b) on=(Compare op=Equal left=a.x right=b.x)) right=(Join kind=Inner left=(NamedTable name=c) right=(NamedTable name=d) on=(Compare op=Equal left=c.x right=d.x)) on=(Compare op=Equal left=a.x right=c.x)) right=(NamedTable name=e))]))",
    ),
    (
        "SELECT * FROM a CROSS APPLY f(a.x) OUTER APPLY (SELECT 1 y) b FULL JOIN (c CROSS JOIN d) ON 1 = 1",
        "(Query body=(Select items=[(Wildcard)] from=[(Join kind=Full left=(Apply outer=true left=(Apply left=(NamedTable name=a) right=(Function name=f arguments=[a.x])) right=(Derived query=(Query body=(Select items=[(Expr expr=1 alias=y)])) alias=(Alias name=b))) right=(Join kind=Cross left=(NamedTable name=c) right=(NamedTable name=d)) on=(Compare op=Equal left=1 right=1))]))",
    ),
    (
        "SELECT * FROM t FOR SYSTEM_TIME AS OF @d AS x TABLESAMPLE (10 PERCENT) REPEATABLE (1)",
        "(Query body=(Select items=[(Wildcard)] from=[(NamedTable name=t alias=x system_time=(AsOf @d) sample=(TableSample count=10 repeatable=1))]))",
    ),
    (
        "SELECT * FROM (VALUES (1, 'a'), (2, DEFAULT)) AS v (n, s)",
        "(Query body=(Select items=[(Wildcard)] from=[(Values rows=[[1 'a'] [2 Default]] alias=(Alias name=v columns=[n s]))]))",
    ),
    (
        "SELECT * FROM (SELECT y, a FROM t) s PIVOT (SUM(a) FOR y IN ([1], [2])) AS p",
        "(Query body=(Select items=[(Wildcard)] from=[(Pivot (Pivot input=(Derived query=(Query body=(Select items=[(Expr expr=y) (Expr expr=a)] from=[(NamedTable name=t)])) alias=(Alias name=s)) aggregate=SUM arguments=[a] column=y values=[[1] [2]] alias=(Alias name=p)))]))",
    ),
    (
        "SELECT * FROM t UNPIVOT (v FOR k IN (a, b)) u",
        "(Query body=(Select items=[(Wildcard)] from=[(Unpivot (Unpivot input=(NamedTable name=t) value=v column=k columns=[a b] alias=(Alias name=u)))]))",
    ),
    (
        "SELECT * FROM OPENJSON(@j, '$.x') WITH (a int '$.a', b nvarchar(max) AS JSON) j CROSS APPLY @x.nodes('/r') AS n (c)",
        "(Query body=(Select items=[(Wildcard)] from=[(Apply left=(Function name=OPENJSON arguments=[@j '$.x'] schema=[(RowsetColumn name=a data_type=(DataType name=int) path='$.a') (RowsetColumn name=b data_type=(DataType name=nvarchar parameters=[Max]) as_json=true)] alias=(Alias name=j)) right=(Method call=(Method receiver=@x method=nodes arguments=['/r']) alias=(Alias name=n columns=[c])))]))",
    ),
    (
        "SELECT * FROM OPENROWSET(BULK '/f.csv', FORMAT = 'CSV', SINGLE_BLOB) AS r",
        r#"(Query body=(Select items=[(Wildcard)] from=[(OpenRowset (OpenRowset source=(Bulk files=["/f.csv"] options=[(OptionItem name="FORMAT" value='CSV') (OptionItem name="SINGLE_BLOB")]) alias=(Alias name=r)))]))"#,
    ),
    (
        "SELECT a, SUM(b) FROM t GROUP BY ROLLUP (a, (b, c)), GROUPING SETS ((a, b), (), CUBE (c)) HAVING SUM(b) > 1",
        "(Query body=(Select items=[(Expr expr=a) (Expr expr=(FunctionCall name=SUM arguments=[b]))] from=[(NamedTable name=t)] group_by=(GroupBy items=[(Rollup [[a] [b c]]) (GroupingSets [(Composite [a b]) (Composite []) (Cube [[c]])])]) having=(Compare op=Greater left=(FunctionCall name=SUM arguments=[b]) right=1)))",
    ),
    (
        "SELECT a FROM t ORDER BY a DESC, b OFFSET 5 ROWS FETCH NEXT 10 ROWS ONLY FOR XML PATH('r'), ROOT('x'), TYPE",
        r#"(Query body=(Select items=[(Expr expr=a)] from=[(NamedTable name=t)]) order_by=[(OrderItem expr=a descending=true) (OrderItem expr=b)] offset=(Offset offset=5 fetch=10) for_clause=(Xml mode="PATH" name="r" options=[(OptionItem name="ROOT" value='x') (OptionItem name="TYPE")]))"#,
    ),
    (
        "SELECT a INTO #t FROM u OPTION (MAXDOP 2, RECOMPILE, MERGE JOIN, OPTIMIZE FOR UNKNOWN)",
        r#"(Query body=(Select items=[(Expr expr=a)] into=(SelectInto table=#t) from=[(NamedTable name=u)]) hints=[(Value "MAXDOP" 2) (Words "RECOMPILE") (Words "MERGE JOIN") (OptimizeFor [])])"#,
    ),
    (
        "WITH a (x) AS (SELECT 1), b AS (SELECT x FROM a) SELECT * FROM b",
        "(Query with=(With ctes=[(Cte name=a columns=[x] query=(Query body=(Select items=[(Expr expr=1)]))) (Cte name=b query=(Query body=(Select items=[(Expr expr=x)] from=[(NamedTable name=a)])))]) body=(Select items=[(Wildcard)] from=[(NamedTable name=b)]))",
    ),
    (
        "INSERT t VALUES (1, DEFAULT), (2, NULL)",
        "(Insert (Insert target=t source=(Values [[1 Default] [2 Null]])))",
    ),
    (
        "INSERT INTO db..t WITH (TABLOCK) (a, b) OUTPUT inserted.a INTO @o (x) SELECT 1, 2",
        r#"(Insert (Insert target=(DmlTarget kind=db..t hints=[(Word "TABLOCK")]) columns=[a b] output=[(Output items=[(Expr expr=inserted.a)] into=(OutputInto target=@o columns=[x]))] source=(Query (Query body=(Select items=[(Expr expr=1) (Expr expr=2)])))))"#,
    ),
    (
        "INSERT t DEFAULT VALUES",
        "(Insert (Insert target=t source=DefaultValues))",
    ),
    (
        "INSERT #t (a) EXEC p 1",
        "(Insert (Insert target=#t columns=[a] source=(Execute (Execute module=p arguments=[(Argument value=1)]))))",
    ),
    (
        "WITH c AS (SELECT 1 a) UPDATE TOP (5) t SET a = 1, t.b += DEFAULT, @v = c = 2, d.WRITE('x', 0, 1) FROM c WHERE t.a = c.a",
        "(Update (Update with=(With ctes=[(Cte name=c query=(Query body=(Select items=[(Expr expr=1 alias=a)])))]) top=(Top count=5 parenthesised=true) target=t assignments=[(Column column=a op=Set value=1) (Column column=t.b op=Add value=Default) (Variable variable=@v column=c op=Set value=2) (Method column=d method=WRITE arguments=['x' 0 1])] from=[(NamedTable name=c)] where_=(Compare op=Equal left=t.a right=c.a)))",
    ),
    (
        "DELETE TOP (1) FROM t OUTPUT deleted.* FROM u WHERE CURRENT OF GLOBAL k",
        "(Delete (Delete top=(Top count=1 parenthesised=true) target=t output=[(Output items=[(Wildcard table=deleted)])] from=[(NamedTable name=u)] where_=(CurrentOf (Name name=k global=true))))",
    ),
    (
        "MERGE t AS d USING s ON d.a = s.a WHEN MATCHED AND s.b = 1 THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT (a) VALUES (1) WHEN NOT MATCHED BY SOURCE THEN DELETE OUTPUT $action;",
        r#"(Merge (Merge target=t alias=d source=(NamedTable name=s) on=(Compare op=Equal left=d.a right=s.a) clauses=[(MergeClause when=Matched condition=(Compare op=Equal left=s.b right=1) action=(Update [(Column column=a op=Set value=1)])) (MergeClause when=NotMatchedByTarget action=(Insert columns=[a] values=[1])) (MergeClause when=NotMatchedBySource action=Delete)] output=[(Output items=[(Expr expr=(Pseudo name="action"))])]))"#,
    ),
    (
        "TRUNCATE TABLE dbo.t",
        "(TruncateTable (TruncateTable table=dbo.t))",
    ),
    (
        "BULK INSERT t FROM '/f' WITH (FIRSTROW = 2, FIELDTERMINATOR = '|', TABLOCK, ORDER (a DESC))",
        r#"(BulkInsert (BulkInsert table=t file="/f" options=[(OptionItem name="FIRSTROW" value=2) (OptionItem name="FIELDTERMINATOR" value='|') (OptionItem name="TABLOCK")] order=[[a true]]))"#,
    ),
    (
        "INSERT BULK t (a int, b nvarchar(10) COLLATE Latin1_General_CI_AS) WITH (TABLOCK)",
        r#"(InsertBulk (InsertBulk table=t columns=[(InsertBulkColumn name=a data_type=(DataType name=int)) (InsertBulkColumn name=b data_type=(DataType name=nvarchar parameters=[(Number 10)]) collation=Latin1_General_CI_AS)] options=[(OptionItem name="TABLOCK")]))"#,
    ),
    (
        "DECLARE @a int, @b nvarchar(max) = N'x', @c AS CURSOR",
        "(Declare [(Declaration variable=@a data_type=(DataType name=int)) (Declaration variable=@b data_type=(DataType name=nvarchar parameters=[Max]) value=N'x') (Declaration variable=@c data_type=(DataType name=cursor))])",
    ),
    (
        "DECLARE @a int = 1, @t TABLE (x int PRIMARY KEY)",
        "(Block [(Declare [(Declaration variable=@a data_type=(DataType name=int) value=1)]) (DeclareTable (DeclareTable variable=@t body=(TableBody columns=[(ColumnDefinition name=x kind=(Regular (RegularColumn data_type=(DataType name=int) constraints=[(PrimaryKey (KeyConstraint))])))])))])",
    ),
    (
        "DECLARE c SCROLL CURSOR LOCAL FOR SELECT 1 FOR UPDATE OF a",
        r#"(DeclareCursor (DeclareCursor name=c cursor=(CursorDefinition options=["SCROLL" "LOCAL"] query=(Query body=(Select items=[(Expr expr=1)])) for_clause=(Update [a]))))"#,
    ),
    (
        "SET @a += 1",
        "(SetVariable (SetVariable variable=@a op=Add value=1))",
    ),
    (
        "SET @x.modify('delete /a')",
        "(SetVariable (SetVariable variable=@x op=Set value=(Method receiver=@x method=modify arguments=['delete /a']) property=modify))",
    ),
    (
        "SET NOCOUNT, XACT_ABORT ON",
        r#"(SetOption (Switch names=["NOCOUNT" "XACT_ABORT"] on=true))"#,
    ),
    (
        "SET TRANSACTION ISOLATION LEVEL SNAPSHOT",
        "(SetOption (IsolationLevel Snapshot))",
    ),
    (
        "SET LANGUAGE us_english SET ROWCOUNT 5 SET LOCK_TIMEOUT -1",
        r#"(SetOption (Value name="LANGUAGE" value=N'us_english')) ; (SetOption (Value name="ROWCOUNT" value=5)) ; (SetOption (Value name="LOCK_TIMEOUT" value=(Unary op=Minus operand=1)))"#,
    ),
    (
        "SET IDENTITY_INSERT dbo.t OFF SET STATISTICS IO, TIME ON",
        r#"(SetOption (IdentityInsert table=dbo.t)) ; (SetOption (Statistics names=["IO" "TIME"] on=true))"#,
    ),
    (
        "IF a = 1 SELECT 1; ELSE IF b = 2 SELECT 2 ELSE BEGIN SELECT 3 END",
        "(If (If condition=(Compare op=Equal left=a right=1) then=(Query body=(Select items=[(Expr expr=1)])) otherwise=(If (If condition=(Compare op=Equal left=b right=2) then=(Query body=(Select items=[(Expr expr=2)])) otherwise=(Block [(Query body=(Select items=[(Expr expr=3)]))])))))",
    ),
    (
        "WHILE 1 = 1 BEGIN BREAK CONTINUE END",
        "(While (While condition=(Compare op=Equal left=1 right=1) body=(Block [Break Continue])))",
    ),
    (
        "BEGIN TRY SELECT 1 END TRY BEGIN CATCH THROW END CATCH",
        "(TryCatch (TryCatch body=[(Query body=(Select items=[(Expr expr=1)]))] handler=[(Throw None)]))",
    ),
    (
        "THROW 50001, N'x', 1; RAISERROR ('m %d', 16, 1, @a) WITH NOWAIT, LOG",
        "(Throw (Throw number=50001 message=N'x' state=1)) ; (RaiseError (RaiseError message='m %d' severity=16 state=1 arguments=[@a] log=true no_wait=true))",
    ),
    (
        "GOTO x; x: PRINT 'a' + @b WAITFOR DELAY '0:0:1' RETURN",
        "(Goto x) ; (Label x) ; (Print (Binary op=Add left='a' right=@b)) ; (WaitFor (WaitFor kind=Delay value='0:0:1')) ; (Return None)",
    ),
    (
        "BEGIN TRAN t1 WITH MARK 'm' SAVE TRAN s COMMIT WORK ROLLBACK TRAN @n COMMIT WITH (DELAYED_DURABILITY = ON)",
        r#"(BeginTransaction (BeginTransaction name=t1 mark="m")) ; (SaveTransaction s) ; (CommitTransaction (CommitTransaction)) ; (RollbackTransaction (RollbackTransaction name=@n)) ; (CommitTransaction (CommitTransaction delayed_durability=true))"#,
    ),
    (
        "EXEC @r = a.b.p;2 1, @x OUT, @p = DEFAULT, bare, -1 WITH RECOMPILE",
        "(Execute (Execute return_variable=@r module=a.b.p number=2 arguments=[(Argument value=1) (Argument value=@x output=true) (Argument parameter=@p value=Default) (Argument value=N'bare') (Argument value=(Unary op=Minus operand=1))] recompile=true))",
    ),
    (
        "EXEC ('x' + @y) AT srv EXECUTE AS LOGIN = 'l' WITH NO REVERT REVERT",
        "(ExecuteString (ExecuteString text=(Binary op=Add left='x' right=@y) at=srv)) ; (ExecuteAs (ExecuteAs principal=(Login 'l') no_revert=true)) ; (Revert None)",
    ),
    (
        "sp_who 'active'",
        "(Execute (Execute module=sp_who arguments=[(Argument value='active')]))",
    ),
    (
        "{call dbo.p(1, N'x')}",
        "(OdbcCall (Execute module=dbo.p arguments=[(Argument value=1) (Argument value=N'x')]))",
    ),
    (
        "USE [master] OPEN c FETCH PRIOR FROM GLOBAL c INTO @a, @b FETCH ABSOLUTE -1 FROM c CLOSE c DEALLOCATE @c",
        "(Use [master]) ; (OpenCursor (Name name=c)) ; (Fetch (Fetch direction=Prior cursor=(Name name=c global=true) into=[@a @b])) ; (Fetch (Fetch direction=(Absolute (Unary op=Minus operand=1)) cursor=(Name name=c))) ; (CloseCursor (Name name=c)) ; (DeallocateCursor @c)",
    ),
    (
        "CREATE TABLE t (a int IDENTITY (1, 1) NOT NULL PRIMARY KEY, b varchar(10) COLLATE x NULL CONSTRAINT d DEFAULT ('x'), c AS (a + 1) PERSISTED)",
        r#"(CreateTable (CreateTable name=t body=(TableBody columns=[(ColumnDefinition name=a kind=(Regular (RegularColumn data_type=(DataType name=int) nullable=false identity=(Identity seed="1" increment="1") constraints=[(PrimaryKey (KeyConstraint))]))) (ColumnDefinition name=b kind=(Regular (RegularColumn data_type=(DataType name=varchar parameters=[(Number 10)]) collation=x nullable=true default=(DefaultDefinition name=d value=(Paren 'x'))))) (ColumnDefinition name=c kind=(Computed (ComputedColumn expr=(Paren (Binary op=Add left=a right=1)) persisted=true)))])))"#,
    ),
    (
        "CREATE TABLE t (a int, CONSTRAINT pk PRIMARY KEY NONCLUSTERED (a DESC) WITH (FILLFACTOR = 80) ON fg, FOREIGN KEY (a) REFERENCES u (b) ON DELETE CASCADE ON UPDATE NO ACTION, CHECK (a > 0), INDEX i UNIQUE (a))",
        "(CreateTable (CreateTable name=t body=(TableBody columns=[(ColumnDefinition name=a kind=(Regular (RegularColumn data_type=(DataType name=int))))] constraints=[(TableConstraint name=pk kind=(PrimaryKey (KeyConstraint clustered=false columns=[(IndexKey column=a descending=true)] options=[(FillFactor 80)] on=(StorageTarget name=fg)))) (ForeignKey (ForeignKey columns=[a] table=u referenced_columns=[b] on_delete=Cascade on_update=NoAction)) (Check condition=(Compare op=Greater left=a right=0))] indexes=[(InlineIndex name=i unique=true keys=[(IndexKey column=a)])])))",
    ),
    (
        "CREATE TABLE t (s datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL, PERIOD FOR SYSTEM_TIME (s, e)) WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.H), MEMORY_OPTIMIZED = ON)",
        r#"(CreateTable (CreateTable name=t body=(TableBody columns=[(ColumnDefinition name=s kind=(Regular (RegularColumn data_type=(DataType name=datetime2) nullable=false hidden=true generated=RowStart)))] period=(SystemTimePeriod start=s end=e)) options=[(OptionItem name="SYSTEM_VERSIONING" value=(SwitchList true [(OptionItem name="HISTORY_TABLE" value=dbo.H)])) (OptionItem name="MEMORY_OPTIMIZED" value=(Switch true))]))"#,
    ),
    (
        "ALTER TABLE t WITH NOCHECK ADD a int, CONSTRAINT d DEFAULT 1 FOR b",
        "(AlterTable (AlterTable table=t action=(Add check=false body=(TableBody columns=[(ColumnDefinition name=a kind=(Regular (RegularColumn data_type=(DataType name=int))))] constraints=[(TableConstraint name=d kind=(Default value=1 column=b))]))))",
    ),
    (
        "ALTER TABLE t ALTER COLUMN a bigint NOT NULL",
        "(AlterTable (AlterTable table=t action=(AlterColumn column=(AlterColumn name=a data_type=(DataType name=bigint) nullable=false))))",
    ),
    (
        "ALTER TABLE t DROP CONSTRAINT c, COLUMN a, b",
        "(AlterTable (AlterTable table=t action=(Drop [(AlterTableDrop name=c) (AlterTableDrop column=true name=a) (AlterTableDrop column=true name=b)])))",
    ),
    (
        "ALTER TABLE t NOCHECK CONSTRAINT ALL",
        "(AlterTable (AlterTable table=t action=(CheckConstraint)))",
    ),
    (
        "DROP TABLE IF EXISTS a, b.c",
        "(Drop (DropObject kind=Table if_exists=true names=[a b.c]))",
    ),
    (
        "CREATE UNIQUE NONCLUSTERED INDEX i ON t (a, b DESC) INCLUDE (c) WHERE a > 1 WITH (ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 60 MINUTES, MAXDOP = 4, FILLFACTOR = 90, DROP_EXISTING = ON, DATA_COMPRESSION = PAGE ON PARTITIONS (1 TO 3)) ON ps (a)",
        r#"(CreateIndex (CreateIndex unique=true clustered=false name=i table=t keys=[(IndexKey column=a) (IndexKey column=b descending=true)] include=[c] filter=(Compare op=Greater left=a right=1) options=[(Online on=true) (Resumable true) (MaxDuration 60) (MaxDop 4) (FillFactor 90) (DropExisting true) (DataCompression method="PAGE" partitions=[[1 3]])] on=(StorageTarget name=ps column=a)))"#,
    ),
    (
        "ALTER INDEX i ON t RESUME WITH (MAX_DURATION = 5, WAIT_AT_LOW_PRIORITY (MAX_DURATION = 1 MINUTES, ABORT_AFTER_WAIT = BLOCKERS))",
        "(AlterIndex (AlterIndex name=i table=t action=(Resume [(MaxDuration 5) (WaitAtLowPriority (LowPriorityWait max_duration_minutes=1 abort_after_wait=Blockers))])))",
    ),
    (
        "ALTER INDEX ALL ON t REBUILD PARTITION = 2 WITH (ONLINE = OFF)",
        "(AlterIndex (AlterIndex table=t action=(Rebuild partition=2 options=[(Online)])))",
    ),
    (
        "DROP INDEX i ON t, u.j",
        "(DropIndex (DropIndex items=[(DropIndexItem name=i table=t) (DropIndexItem name=j table=u)]))",
    ),
    (
        "UPDATE STATISTICS t i WITH SAMPLE 10 PERCENT, NORECOMPUTE",
        r#"(UpdateStatistics (UpdateStatistics table=t names=[i] options=[(OptionItem name="SAMPLE" value=(Quantity 10 "PERCENT")) (OptionItem name="NORECOMPUTE")]))"#,
    ),
    (
        "CREATE DATABASE d ON (NAME = a, FILENAME = 'x', SIZE = 10, MAXSIZE = UNLIMITED, FILEGROWTH = 5%) LOG ON (NAME = 'l', FILENAME = 'y', SIZE = 512KB) COLLATE c FOR ATTACH",
        r#"(CreateDatabase (CreateDatabase name=d primary=[(FileSpec name=a file_name="x" size=(Bytes 10485760) max_size=Unlimited file_growth=(Percent 5))] log=[(FileSpec name="l" file_name="y" size=(Bytes 524288))] collation=c attach=Attach))"#,
    ),
    (
        "ALTER DATABASE d SET RECOVERY FULL, AUTO_CLOSE OFF WITH ROLLBACK IMMEDIATE",
        r#"(AlterDatabase (AlterDatabase name=d action=(Set options=[(OptionItem name="RECOVERY" value=(Word "FULL")) (OptionItem name="AUTO_CLOSE" value=(Switch false))] termination=RollbackImmediate)))"#,
    ),
    (
        "ALTER DATABASE CURRENT SET QUERY_STORE = ON (OPERATION_MODE = READ_ONLY)",
        r#"(AlterDatabase (AlterDatabase action=(Set options=[(OptionItem name="QUERY_STORE" value=(SwitchList true [(OptionItem name="OPERATION_MODE" value=(Word "READ_ONLY"))]))])))"#,
    ),
    (
        "ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 4",
        r#"(AlterDatabaseScoped (AlterDatabaseScoped option=(OptionItem name="MAXDOP" value=4)))"#,
    ),
    (
        "CREATE PROC p @a int = 1 OUTPUT, @t dbo.T READONLY WITH RECOMPILE AS SELECT @a RETURN 5",
        r#"(CreateProcedure (CreateProcedure mode=Create name=p parameters=[(Parameter variable=@a data_type=(DataType name=int) default=1 output=true) (Parameter variable=@t data_type=(DataType name=dbo.T) read_only=true)] options=[(Word "RECOMPILE")] body=(Statements [(Query body=(Select items=[(Expr expr=@a)])) (Return 5)])))"#,
    ),
    (
        "CREATE OR ALTER FUNCTION f (@a int) RETURNS int WITH SCHEMABINDING AS BEGIN RETURN @a END",
        r#"(CreateFunction (CreateFunction mode=CreateOrAlter name=f parameters=[(Parameter variable=@a data_type=(DataType name=int))] returns=(Scalar data_type=(DataType name=int)) options=[(Word "SCHEMABINDING")] body=(Statements [(Return @a)])))"#,
    ),
    (
        "CREATE VIEW v (a) AS SELECT 1 WITH CHECK OPTION",
        "(CreateView (CreateView mode=Create name=v columns=[a] query=(Query body=(Select items=[(Expr expr=1)])) check_option=true))",
    ),
    (
        "ALTER TRIGGER g ON DATABASE FOR CREATE_TABLE, DROP_TABLE AS PRINT 'x'",
        r#"(CreateTrigger (CreateTrigger mode=Alter name=g target=Database events=["CREATE_TABLE" "DROP_TABLE"] body=(Statements [(Print 'x')])))"#,
    ),
    (
        "CREATE SCHEMA s AUTHORIZATION dbo GRANT SELECT ON SCHEMA::s TO PUBLIC",
        r#"(CreateSchema (CreateSchema name=s authorization=dbo elements=[(Permission (Permission action=Grant permissions=[["SELECT" []]] securable=(Securable class="SCHEMA" name=s) principals=[PUBLIC]))]))"#,
    ),
    (
        "CREATE SEQUENCE s AS int START WITH -5 INCREMENT BY 2 NO MAXVALUE CYCLE NO CACHE",
        "(CreateSequence (Sequence name=s data_type=(DataType name=int) start=(Unary op=Minus operand=5) increment=2 maximum=None cycle=true cache=NoCache))",
    ),
    (
        "CREATE LOGIN l WITH PASSWORD = 'secret' MUST_CHANGE, DEFAULT_DATABASE = Demo",
        r#"(CreateLogin (Login name=l password=(Password must_change=true) options=[(OptionItem name="DEFAULT_DATABASE" value=N'Demo')]))"#,
    ),
    (
        "GRANT VIEW ANY DATABASE, UPDATE (a) TO u WITH GRANT OPTION",
        r#"(Permission (Permission action=Grant permissions=[["VIEW ANY DATABASE" []] ["UPDATE" [a]]] principals=[u] with_grant_option=true))"#,
    ),
    (
        "BACKUP DATABASE d TO DISK = 'x', URL = @u WITH INIT, STATS = 10",
        r#"(Backup (Backup kind=Database database=d to=[(BackupDevice kind=Disk target='x') (BackupDevice kind=Url target=@u)] options=[(OptionItem name="INIT") (OptionItem name="STATS" value=10)]))"#,
    ),
    (
        "RESTORE DATABASE d FROM DISK = 'x' WITH MOVE 'a' TO 'b', NORECOVERY",
        r#"(Restore (Restore kind=Database database=d from=[(BackupDevice kind=Disk target='x')] moves=[['a' 'b']] options=[(OptionItem name="NORECOVERY")]))"#,
    ),
    (
        "DBCC CHECKDB (d, NOINDEX) WITH NO_INFOMSGS, MAXDOP = 2",
        r#"(Dbcc (Dbcc name="CHECKDB" arguments=[d NOINDEX] options=[(OptionItem name="NO_INFOMSGS") (OptionItem name="MAXDOP" value=2)]))"#,
    ),
    (
        "CHECKPOINT KILL 52 WITH STATUSONLY RECONFIGURE WITH OVERRIDE SHUTDOWN",
        r#"(Checkpoint None) ; (Kill (Kill session=52 what="" status_only=true)) ; (Reconfigure with_override=true) ; (Shutdown)"#,
    ),
    (
        "CREATE EVENT SESSION s ON SERVER ADD EVENT p.e (ACTION (q.a) WHERE d > 5 AND q.f(x, 1)) ADD TARGET p.ring_buffer WITH (MAX_MEMORY = 4 MB)",
        r#"(CreateEventSession (EventSession name=s on_server=true events=[(SessionEvent name=[p e] actions=[[q a]] predicate=(And [(Compare op=Greater left=d right=5) (FunctionCall name=q.f arguments=[x 1])]))] targets=[(SessionTarget name=[p ring_buffer])] options=[(OptionItem name="MAX_MEMORY" value=(Quantity 4 "MB"))]))"#,
    ),
    (
        "ALTER EVENT SESSION s ON SERVER STATE = START",
        "(AlterEventSession (AlterEventSession name=s on_server=true actions=[(State start=true)]))",
    ),
    (
        "CREATE FULLTEXT INDEX ON t (a) KEY INDEX pk SELECT 1",
        r#"(Unbuilt (Unbuilt name="CREATE FULLTEXT INDEX")) ; (Query body=(Select items=[(Expr expr=1)]))"#,
    ),
];

#[test]
fn trees() {
    for (text, expected) in CASES {
        let batch = parse_batch(text, &ParseOptions::default());
        assert!(batch.errors.is_empty(), "{text}: {}", batch.errors[0]);
        assert_eq!(dump(&batch.statements), *expected, "{text}");
    }
}

#[test]
fn parameter_lists() {
    let list = |text: &str| thawdb_tsql::parse_parameter_list(text, &ParseOptions::default());
    let parameters = list("@a int, @b AS nvarchar(50) = N'x' OUTPUT,@t dbo.T READONLY").expect("a list");
    let shown: Vec<_> =
        parameters.iter().map(|p| (p.variable.name.as_str(), p.data_type.name.name.text.as_str(), p.output, p.read_only)).collect();
    assert_eq!(shown, [("@a", "int", false, false), ("@b", "nvarchar", true, false), ("@t", "T", false, true)]);
    assert_eq!(list(""), Ok(Vec::new()));
    assert_eq!(list("@a").expect_err("a type is missing")[0].number, 102);
    assert_eq!(list("@a int @b int").expect_err("a comma is missing")[0].near, "@b");
}

#[test]
fn names_and_types_alone() {
    let name = thawdb_tsql::parse_object_name("[a b]..[c]]d]", &ParseOptions::default()).expect("a name");
    assert_eq!((name.database.map(|d| d.text), name.schema, name.name.text.as_str()), (Some("a b".to_owned()), None, "c]d"));
    assert!(thawdb_tsql::parse_object_name("a.b.c.d.e", &ParseOptions::default()).is_err());
    let data_type = thawdb_tsql::parse_data_type("decimal(10, 2)", &ParseOptions::default()).expect("a type");
    assert_eq!(data_type.parameters.len(), 2);
    assert!(thawdb_tsql::parse_data_type("int int", &ParseOptions::default()).is_err());
}
