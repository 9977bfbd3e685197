//! Catalog procedures: T-SQL texts over the views. Those that drivers ask are in `metadata`.

/// A procedure whose body is a text.
#[derive(Debug)]
pub(crate) struct CatalogProcedure {
    /// Its name, lower case.
    pub(crate) name: &'static str,
    /// Its parameters as sp_executesql declares them, defaults included.
    pub(crate) parameters: &'static str,
    /// Its body.
    pub(crate) text: &'static str,
}

/// All of them.
pub(crate) const PROCEDURES: &[CatalogProcedure] = &[
    CatalogProcedure {
        name: "sp_lock",
        parameters: "@spid1 int = NULL, @spid2 int = NULL",
        text: "SELECT CAST(request_session_id AS smallint) AS spid, CAST(resource_database_id AS smallint) AS dbid, \
               CAST(CASE resource_type WHEN 'OBJECT' THEN resource_associated_entity_id ELSE 0 END AS int) AS ObjId, \
               CAST(0 AS smallint) AS IndId, CAST(CASE resource_type WHEN 'DATABASE' THEN 'DB' WHEN 'OBJECT' THEN 'TAB' \
               WHEN 'KEY' THEN 'KEY' WHEN 'HOBT' THEN 'HBT' WHEN 'PAGE' THEN 'PAG' WHEN 'METADATA' THEN 'MD' ELSE 'APP' END \
               AS nvarchar(4)) AS Type, CAST(resource_description AS nvarchar(32)) AS Resource, CAST(request_mode AS nvarchar(8)) AS Mode, \
               CAST(CASE request_status WHEN 'CONVERT' THEN 'CNVRT' ELSE request_status END AS nvarchar(5)) AS Status \
               FROM sys.dm_tran_locks WHERE @spid1 IS NULL OR request_session_id = @spid1 OR request_session_id = @spid2 \
               ORDER BY spid, dbid, ObjId, Type, Resource",
    },
    CatalogProcedure {
        name: "sp_databases",
        parameters: "",
        text: "SELECT d.name AS DATABASE_NAME, CAST(SUM(CAST(f.size AS bigint)) * 8 AS int) AS DATABASE_SIZE, \
               CAST(NULL AS varchar(254)) AS REMARKS FROM sys.databases AS d JOIN sys.master_files AS f ON f.database_id = d.database_id \
               GROUP BY d.name ORDER BY d.name",
    },
    CatalogProcedure { name: "sp_readerrorlog", parameters: ERROR_LOG_PARAMETERS, text: ERROR_LOG_TEXT },
    CatalogProcedure { name: "xp_readerrorlog", parameters: ERROR_LOG_PARAMETERS, text: ERROR_LOG_TEXT },
    CatalogProcedure { name: "sp_who", parameters: WHO_PARAMETERS, text: WHO_TEXT },
    CatalogProcedure { name: "sp_who2", parameters: WHO_PARAMETERS, text: WHO_TEXT },
    CatalogProcedure {
        name: "sp_helpdb",
        parameters: "@dbname sysname = NULL",
        text: "IF @dbname IS NOT NULL AND DB_ID(@dbname) IS NULL BEGIN RAISERROR(15010, 16, 1, @dbname) RETURN END \
               SELECT d.name, CAST(STR(SUM(CAST(f.size AS float)) / 128, 10, 2) + ' MB' AS nvarchar(13)) AS db_size, N'sa' AS owner, \
               CAST(d.database_id AS smallint) AS dbid, CAST(CONVERT(varchar(11), d.create_date, 100) AS nvarchar(11)) AS created, \
               CAST('Status=ONLINE, Updateability=READ_WRITE, UserAccess=MULTI_USER, Recovery=' + d.recovery_model_desc AS nvarchar(600)) AS status, \
               d.compatibility_level FROM sys.databases AS d JOIN sys.master_files AS f ON f.database_id = d.database_id \
               WHERE @dbname IS NULL OR d.name = @dbname \
               GROUP BY d.name, d.database_id, d.create_date, d.recovery_model_desc, d.compatibility_level ORDER BY d.name \
               IF @dbname IS NOT NULL SELECT f.name, CAST(f.file_id AS smallint) AS fileid, f.physical_name AS filename, \
               CASE f.type WHEN 0 THEN CASE f.data_space_id WHEN 1 THEN N'PRIMARY' ELSE FILEGROUP_NAME(f.data_space_id) END END AS filegroup, \
               CAST(CAST(f.size AS bigint) * 8 AS nvarchar(15)) + N' KB' AS size, \
               CASE f.max_size WHEN -1 THEN N'Unlimited' ELSE CAST(CAST(f.max_size AS bigint) * 8 AS nvarchar(15)) + N' KB' END AS maxsize, \
               CASE f.is_percent_growth WHEN 1 THEN CAST(f.growth AS nvarchar(15)) + N'%' ELSE CAST(CAST(f.growth AS bigint) * 8 AS nvarchar(15)) + N' KB' END AS growth, \
               CASE f.type WHEN 0 THEN 'data only' ELSE 'log only' END AS usage \
               FROM sys.master_files AS f WHERE f.database_id = DB_ID(@dbname)",
    },
    CatalogProcedure { name: "sp_helptext", parameters: "@objname nvarchar(776), @columnname sysname = NULL", text: HELPTEXT_TEXT },
    CatalogProcedure {
        name: "sp_helpfile",
        parameters: "@filename sysname = NULL",
        text: "IF @filename IS NOT NULL AND FILE_ID(@filename) IS NULL BEGIN RAISERROR(15325, 16, 1, 'file', @filename) RETURN END \
               SELECT f.name, CAST(f.file_id AS smallint) AS fileid, f.physical_name AS filename, \
               CASE f.type WHEN 0 THEN FILEGROUP_NAME(f.data_space_id) END AS filegroup, \
               CAST(CAST(f.size AS bigint) * 8 AS nvarchar(15)) + N' KB' AS size, \
               CASE f.max_size WHEN -1 THEN N'Unlimited' ELSE CAST(CAST(f.max_size AS bigint) * 8 AS nvarchar(15)) + N' KB' END AS maxsize, \
               CASE f.is_percent_growth WHEN 1 THEN CAST(f.growth AS nvarchar(15)) + N'%' ELSE CAST(CAST(f.growth AS bigint) * 8 AS nvarchar(15)) + N' KB' END AS growth, \
               CASE f.type WHEN 0 THEN 'data only' ELSE 'log only' END AS usage \
               FROM sys.database_files AS f WHERE @filename IS NULL OR f.name = @filename ORDER BY f.file_id",
    },
    CatalogProcedure {
        name: "sp_help",
        parameters: "@objname nvarchar(776) = NULL",
        text: "IF @objname IS NULL BEGIN SELECT o.name AS Name, SCHEMA_NAME(o.schema_id) AS Owner, \
               CASE o.type WHEN 'U ' THEN 'user table' ELSE o.type_desc END AS Object_type FROM sys.objects AS o ORDER BY o.type DESC, o.name RETURN END \
               DECLARE @id int = OBJECT_ID(@objname) \
               DECLARE @db sysname = DB_NAME() \
               IF @id IS NULL BEGIN RAISERROR(15009, 16, 1, @objname, @db) RETURN END \
               SELECT o.name AS Name, SCHEMA_NAME(o.schema_id) AS Owner, CASE o.type WHEN 'U ' THEN 'user table' ELSE 'view' END AS Type, \
               o.create_date AS Created_datetime FROM sys.all_objects AS o WHERE o.object_id = @id \
               SELECT c.name AS Column_name, TYPE_NAME(c.user_type_id) AS Type, CASE c.is_computed WHEN 0 THEN 'no' ELSE 'yes' END AS Computed, \
               CAST(c.max_length AS int) AS Length, CAST(c.precision AS char(5)) AS Prec, CAST(c.scale AS char(5)) AS Scale, \
               CASE c.is_nullable WHEN 0 THEN 'no' ELSE 'yes' END AS Nullable, 'no' AS TrimTrailingBlanks, 'no' AS FixedLenNullInSource, \
               c.collation_name AS Collation FROM sys.all_columns AS c WHERE c.object_id = @id ORDER BY c.column_id \
               SELECT i.name AS index_name, CASE WHEN i.index_id = 1 THEN 'clustered' ELSE 'nonclustered' END \
               + CASE WHEN i.is_unique = 1 THEN ', unique' ELSE '' END + CASE WHEN i.is_primary_key = 1 THEN ', primary key' ELSE '' END \
               + ' located on PRIMARY' AS index_description FROM sys.indexes AS i WHERE i.object_id = @id AND i.index_id > 0 ORDER BY i.index_id",
    },
    CatalogProcedure {
        name: "sp_server_info",
        parameters: "@attribute_id int = NULL",
        text: "SELECT * FROM (VALUES (1, CAST('DBMS_NAME' AS varchar(60)), CAST('Microsoft SQL Server' AS varchar(255))), \
               (2, 'DBMS_VER', 'Microsoft SQL Server 2022 - 16.0.1000.6'), (10, 'OWNER_TERM', 'owner'), (11, 'TABLE_TERM', 'table'), \
               (12, 'MAX_OWNER_NAME_LENGTH', '128'), (13, 'TABLE_LENGTH', '128'), (14, 'MAX_QUAL_LENGTH', '128'), (15, 'COLUMN_LENGTH', '128'), \
               (16, 'IDENTIFIER_CASE', 'MIXED'), (17, 'TX_ISOLATION', '2')) AS a(attribute_id, attribute_name, attribute_value) \
               WHERE @attribute_id IS NULL OR attribute_id = @attribute_id ORDER BY attribute_id",
    },
    CatalogProcedure {
        name: "xp_msver",
        parameters: "@optname sysname = NULL",
        text: "SELECT * FROM (VALUES (CAST(1 AS smallint), CAST('ProductName' AS sysname), CAST(NULL AS int), CAST('Microsoft SQL Server' AS nvarchar(512))), \
               (2, 'ProductVersion', 1048576, '16.0.1000.6'), (3, 'Language', 1033, 'English (United States)'), (4, 'Platform', NULL, 'NT x64')) \
               AS v([Index], Name, Internal_Value, Character_Value) WHERE @optname IS NULL OR Name = @optname ORDER BY 1",
    },
    CatalogProcedure {
        name: "sp_configure",
        parameters: "@configname varchar(35) = NULL, @configvalue int = NULL",
        text: "IF @configname IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sys.configurations WHERE name = @configname) \
               BEGIN RAISERROR(15123, 16, 1, @configname) RETURN END \
               SELECT name, CAST(minimum AS int) AS minimum, CAST(maximum AS int) AS maximum, CAST(value AS int) AS config_value, \
               CAST(value_in_use AS int) AS run_value FROM sys.configurations \
               WHERE @configname IS NULL OR name = @configname ORDER BY name",
    },
];

const ERROR_LOG_PARAMETERS: &str = "@p1 int = 0, @p2 int = 1, @p3 nvarchar(4000) = NULL, @p4 nvarchar(4000) = NULL";
/// Of log 0, the instance's own; there are no older ones, and no agent's.
const ERROR_LOG_TEXT: &str = "SELECT LogDate, ProcessInfo, Text FROM sys.thawdb_error_log \
    WHERE ISNULL(@p1, 0) = 0 AND ISNULL(@p2, 1) = 1 AND (@p3 IS NULL OR CHARINDEX(@p3, Text) > 0) \
    AND (@p4 IS NULL OR CHARINDEX(@p4, Text) > 0) ORDER BY LogDate";

const WHO_PARAMETERS: &str = "@loginame sysname = NULL";

const WHO_TEXT: &str = "SELECT s.session_id AS spid, CAST(0 AS smallint) AS ecid, CAST(s.status AS nchar(30)) AS status, \
     s.login_name AS loginame, CAST(s.host_name AS nchar(128)) AS hostname, CAST('0' AS char(5)) AS blk, DB_NAME(s.database_id) AS dbname, \
     CAST(COALESCE(r.command, N'AWAITING COMMAND') AS nchar(26)) AS cmd, 0 AS request_id \
     FROM sys.dm_exec_sessions AS s LEFT JOIN sys.dm_exec_requests AS r ON r.session_id = s.session_id \
     WHERE @loginame IS NULL OR s.login_name = @loginame OR CAST(s.session_id AS sysname) = @loginame ORDER BY s.session_id";

/// Lines of a definition, each with its line break, at most 255 characters a row.
const HELPTEXT_TEXT: &str = "SET NOCOUNT ON DECLARE @id int = OBJECT_ID(@objname) DECLARE @db sysname = DB_NAME() \
    IF @id IS NULL BEGIN RAISERROR(15009, 16, 1, @objname, @db) RETURN END \
    DECLARE @text nvarchar(max) = OBJECT_DEFINITION(@id) \
    IF @text IS NULL BEGIN \
    IF EXISTS (SELECT * FROM sys.sql_modules WHERE object_id = @id) BEGIN RAISERROR(15471, 10, 1, @objname) RETURN END \
    RAISERROR(15197, 16, 1, @objname) RETURN END \
    DECLARE @lines TABLE (n int IDENTITY PRIMARY KEY, t nvarchar(255)) \
    DECLARE @end bigint, @line nvarchar(max) \
    WHILE DATALENGTH(@text) > 0 BEGIN \
    SET @end = CHARINDEX(NCHAR(10), @text) \
    SET @line = CASE WHEN @end = 0 THEN @text ELSE SUBSTRING(@text, 1, @end) END \
    SET @text = CASE WHEN @end = 0 THEN N'' ELSE SUBSTRING(@text, @end + 1, DATALENGTH(@text)) END \
    WHILE DATALENGTH(@line) > 510 BEGIN \
    INSERT @lines (t) VALUES (SUBSTRING(@line, 1, 255)) SET @line = SUBSTRING(@line, 256, DATALENGTH(@line)) END \
    INSERT @lines (t) VALUES (@line) END \
    SELECT t AS Text FROM @lines ORDER BY n";
