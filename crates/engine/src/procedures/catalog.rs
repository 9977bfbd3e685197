//! Catalog procedures: T-SQL texts over the views, with the columns that ODBC and JDBC drivers expect.

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
    CatalogProcedure {
        name: "sp_tables",
        parameters: "@table_name nvarchar(384) = NULL, @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, \
                     @table_type varchar(100) = NULL, @fUsePattern bit = 1",
        text: "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, \
               CAST(CASE o.type WHEN 'U ' THEN 'TABLE' WHEN 'V ' THEN CASE WHEN o.is_ms_shipped = 1 THEN 'SYSTEM TABLE' ELSE 'VIEW' END \
               END AS varchar(32)) AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS \
               FROM sys.all_objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
               WHERE o.type IN ('U ', 'V ') \
               AND (@table_name IS NULL OR (@fUsePattern = 1 AND o.name LIKE @table_name) OR (@fUsePattern = 0 AND o.name = @table_name)) \
               AND (@table_owner IS NULL OR (@fUsePattern = 1 AND s.name LIKE @table_owner) OR (@fUsePattern = 0 AND s.name = @table_owner)) \
               AND (@table_type IS NULL OR CHARINDEX('''' + CASE WHEN o.type = 'U ' THEN 'TABLE' WHEN o.is_ms_shipped = 1 \
               THEN 'SYSTEM TABLE' ELSE 'VIEW' END + '''', @table_type) > 0) \
               ORDER BY TABLE_TYPE, TABLE_QUALIFIER, TABLE_OWNER, TABLE_NAME",
    },
    CatalogProcedure { name: "sp_readerrorlog", parameters: ERROR_LOG_PARAMETERS, text: ERROR_LOG_TEXT },
    CatalogProcedure { name: "xp_readerrorlog", parameters: ERROR_LOG_PARAMETERS, text: ERROR_LOG_TEXT },
    CatalogProcedure { name: "sp_columns", parameters: COLUMNS_PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure { name: "sp_columns_90", parameters: COLUMNS_PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure { name: "sp_columns_100", parameters: COLUMNS_PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure {
        name: "sp_pkeys",
        parameters: "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL",
        text: "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, t.name AS TABLE_NAME, c.name AS COLUMN_NAME, \
               CAST(ic.key_ordinal AS smallint) AS KEY_SEQ, i.name AS PK_NAME \
               FROM sys.indexes AS i JOIN sys.tables AS t ON t.object_id = i.object_id JOIN sys.schemas AS s ON s.schema_id = t.schema_id \
               JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
               JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
               WHERE i.is_primary_key = 1 AND t.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) \
               ORDER BY TABLE_QUALIFIER, TABLE_OWNER, TABLE_NAME, KEY_SEQ",
    },
    CatalogProcedure { name: "sp_statistics", parameters: STATISTICS_PARAMETERS, text: STATISTICS_TEXT },
    CatalogProcedure { name: "sp_statistics_100", parameters: STATISTICS_PARAMETERS, text: STATISTICS_TEXT },
    CatalogProcedure {
        name: "sp_fkeys",
        parameters: "@pktable_name sysname = NULL, @pktable_owner sysname = NULL, @pktable_qualifier sysname = NULL, \
                     @fktable_name sysname = NULL, @fktable_owner sysname = NULL, @fktable_qualifier sysname = NULL",
        text: "SELECT CAST(NULL AS sysname) AS PKTABLE_QUALIFIER, CAST(NULL AS sysname) AS PKTABLE_OWNER, CAST(name AS sysname) AS PKTABLE_NAME, \
               CAST(NULL AS sysname) AS PKCOLUMN_NAME, CAST(NULL AS sysname) AS FKTABLE_QUALIFIER, CAST(NULL AS sysname) AS FKTABLE_OWNER, \
               CAST(NULL AS sysname) AS FKTABLE_NAME, CAST(NULL AS sysname) AS FKCOLUMN_NAME, CAST(0 AS smallint) AS KEY_SEQ, \
               CAST(0 AS smallint) AS UPDATE_RULE, CAST(0 AS smallint) AS DELETE_RULE, CAST(NULL AS sysname) AS FK_NAME, \
               CAST(NULL AS sysname) AS PK_NAME, CAST(0 AS smallint) AS DEFERRABILITY FROM sys.foreign_keys",
    },
    CatalogProcedure {
        name: "sp_stored_procedures",
        parameters: "@sp_name nvarchar(390) = NULL, @sp_owner nvarchar(384) = NULL, @sp_qualifier sysname = NULL, @fUsePattern bit = 1",
        text: "SELECT DB_NAME() AS PROCEDURE_QUALIFIER, SCHEMA_NAME(schema_id) AS PROCEDURE_OWNER, CAST(name AS nvarchar(134)) AS PROCEDURE_NAME, \
               -1 AS NUM_INPUT_PARAMS, -1 AS NUM_OUTPUT_PARAMS, -1 AS NUM_RESULT_SETS, CAST(NULL AS varchar(254)) AS REMARKS, \
               CAST(2 AS smallint) AS PROCEDURE_TYPE FROM sys.procedures",
    },
    CatalogProcedure { name: "sp_datatype_info", parameters: TYPES_PARAMETERS, text: TYPES_TEXT },
    CatalogProcedure { name: "sp_datatype_info_90", parameters: TYPES_PARAMETERS, text: TYPES_TEXT },
    CatalogProcedure { name: "sp_datatype_info_100", parameters: TYPES_PARAMETERS, text: TYPES_TEXT },
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

const COLUMNS_PARAMETERS: &str = "@table_name nvarchar(384), @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, \
     @column_name nvarchar(384) = NULL, @ODBCVer int = 2, @fUsePattern bit = 1";

/// ODBC's numbers of types: concise type, then what the views already tell.
const COLUMNS_TEXT: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, o.name AS TABLE_NAME, c.name AS COLUMN_NAME, \
     CAST(CASE TYPE_NAME(c.system_type_id) WHEN 'bit' THEN -7 WHEN 'tinyint' THEN -6 WHEN 'smallint' THEN 5 WHEN 'int' THEN 4 \
     WHEN 'bigint' THEN -5 WHEN 'decimal' THEN 3 WHEN 'numeric' THEN 2 WHEN 'money' THEN 3 WHEN 'smallmoney' THEN 3 WHEN 'real' THEN 7 \
     WHEN 'float' THEN 6 WHEN 'date' THEN -9 WHEN 'time' THEN -9 WHEN 'datetime2' THEN -9 WHEN 'datetimeoffset' THEN -9 WHEN 'datetime' THEN 11 \
     WHEN 'smalldatetime' THEN 11 WHEN 'char' THEN 1 WHEN 'varchar' THEN CASE c.max_length WHEN -1 THEN -1 ELSE 12 END WHEN 'text' THEN -1 \
     WHEN 'nchar' THEN -8 WHEN 'nvarchar' THEN CASE c.max_length WHEN -1 THEN -10 ELSE -9 END WHEN 'ntext' THEN -10 WHEN 'binary' THEN -2 \
     WHEN 'timestamp' THEN -2 WHEN 'varbinary' THEN CASE c.max_length WHEN -1 THEN -4 ELSE -3 END WHEN 'image' THEN -4 \
     WHEN 'uniqueidentifier' THEN -11 ELSE -10 END AS smallint) AS DATA_TYPE, \
     CAST(TYPE_NAME(c.user_type_id) + CASE WHEN c.is_identity = 1 THEN ' identity' ELSE '' END AS sysname) AS TYPE_NAME, \
     CASE WHEN c.precision > 0 THEN CAST(c.precision AS int) WHEN c.max_length = -1 THEN 0 \
     WHEN c.system_type_id IN (99, 231, 239) THEN CAST(c.max_length AS int) / 2 ELSE CAST(c.max_length AS int) END AS [PRECISION], \
     CASE WHEN c.max_length = -1 THEN 0 WHEN c.system_type_id IN (106, 108) THEN CAST(c.precision AS int) + 2 \
     WHEN c.system_type_id IN (58, 61) THEN 16 ELSE CAST(c.max_length AS int) END AS LENGTH, \
     CASE WHEN c.system_type_id IN (48, 52, 56, 60, 106, 108, 122, 127, 61, 41, 42, 43) THEN CAST(c.scale AS smallint) END AS SCALE, \
     CASE WHEN c.system_type_id IN (48, 52, 56, 60, 106, 108, 122, 127) THEN CAST(10 AS smallint) \
     WHEN c.system_type_id IN (59, 62) THEN CAST(2 AS smallint) END AS RADIX, \
     CAST(c.is_nullable AS smallint) AS NULLABLE, CAST(NULL AS varchar(254)) AS REMARKS, d.definition AS COLUMN_DEF, \
     CAST(CASE WHEN c.system_type_id IN (40, 41, 42, 43, 58, 61) THEN 9 ELSE 0 END AS smallint) AS SQL_DATA_TYPE, \
     CAST(CASE WHEN c.system_type_id IN (58, 61, 42) THEN 3 END AS smallint) AS SQL_DATETIME_SUB, \
     CASE WHEN c.max_length = -1 THEN 0 WHEN c.system_type_id IN (34, 35, 99, 165, 167, 173, 175, 231, 239) THEN CAST(c.max_length AS int) END \
     AS CHAR_OCTET_LENGTH, CAST(ROW_NUMBER() OVER (PARTITION BY c.object_id ORDER BY c.column_id) AS int) AS ORDINAL_POSITION, \
     CAST(CASE c.is_nullable WHEN 1 THEN 'YES' ELSE 'NO' END AS varchar(254)) AS IS_NULLABLE, CAST(0 AS tinyint) AS SS_DATA_TYPE \
     FROM sys.all_columns AS c JOIN sys.all_objects AS o ON o.object_id = c.object_id JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
     LEFT JOIN sys.default_constraints AS d ON d.object_id = c.default_object_id \
     WHERE (o.name LIKE @table_name OR (@fUsePattern = 0 AND o.name = @table_name)) \
     AND (@table_owner IS NULL OR s.name LIKE @table_owner) AND (@column_name IS NULL OR c.name LIKE @column_name) \
     ORDER BY TABLE_QUALIFIER, TABLE_OWNER, TABLE_NAME, ORDINAL_POSITION";

const STATISTICS_PARAMETERS: &str = "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL, \
     @index_name sysname = '%', @is_unique char(1) = 'N', @accuracy char(1) = 'Q'";

const STATISTICS_TEXT: &str = "SELECT DB_NAME() AS TABLE_QUALIFIER, s.name AS TABLE_OWNER, t.name AS TABLE_NAME, \
     CAST(CASE i.is_unique WHEN 1 THEN 0 ELSE 1 END AS smallint) AS NON_UNIQUE, t.name AS INDEX_QUALIFIER, i.name AS INDEX_NAME, \
     CAST(CASE i.index_id WHEN 1 THEN 1 ELSE 3 END AS smallint) AS TYPE, CAST(ic.key_ordinal AS smallint) AS SEQ_IN_INDEX, \
     c.name AS COLUMN_NAME, CAST(CASE ic.is_descending_key WHEN 1 THEN 'D' ELSE 'A' END AS char(1)) AS COLLATION, \
     CAST(NULL AS int) AS CARDINALITY, CAST(NULL AS int) AS PAGES, CAST(NULL AS varchar(128)) AS FILTER_CONDITION \
     FROM sys.indexes AS i JOIN sys.tables AS t ON t.object_id = i.object_id JOIN sys.schemas AS s ON s.schema_id = t.schema_id \
     JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
     JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
     WHERE t.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) AND ic.is_included_column = 0 \
     AND i.name LIKE @index_name AND (@is_unique <> 'Y' OR i.is_unique = 1) \
     ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, SEQ_IN_INDEX";

const TYPES_PARAMETERS: &str = "@data_type int = 0, @ODBCVer tinyint = 2";

const TYPES_TEXT: &str = "SELECT * FROM (SELECT t.name AS TYPE_NAME, CAST(CASE t.name WHEN 'bit' THEN -7 WHEN 'tinyint' THEN -6 \
     WHEN 'smallint' THEN 5 WHEN 'int' THEN 4 WHEN 'bigint' THEN -5 WHEN 'decimal' THEN 3 WHEN 'numeric' THEN 2 WHEN 'money' THEN 3 \
     WHEN 'smallmoney' THEN 3 WHEN 'real' THEN 7 WHEN 'float' THEN 6 WHEN 'datetime' THEN 11 WHEN 'smalldatetime' THEN 11 WHEN 'char' THEN 1 \
     WHEN 'varchar' THEN 12 WHEN 'text' THEN -1 WHEN 'nchar' THEN -8 WHEN 'ntext' THEN -10 WHEN 'binary' THEN -2 WHEN 'timestamp' THEN -2 \
     WHEN 'varbinary' THEN -3 WHEN 'image' THEN -4 WHEN 'uniqueidentifier' THEN -11 WHEN 'sql_variant' THEN -150 WHEN 'xml' THEN -152 \
     ELSE -9 END AS smallint) AS DATA_TYPE, CASE WHEN t.precision > 0 THEN CAST(t.precision AS int) ELSE CAST(t.max_length AS int) END AS [PRECISION], \
     CAST(CASE WHEN t.collation_name IS NOT NULL THEN '''' WHEN t.system_type_id IN (165, 173, 34) THEN '0x' END AS varchar(32)) AS LITERAL_PREFIX, \
     CAST(CASE WHEN t.collation_name IS NOT NULL THEN '''' END AS varchar(32)) AS LITERAL_SUFFIX, \
     CAST(CASE WHEN t.name IN ('decimal', 'numeric') THEN 'precision,scale' WHEN t.name IN ('char', 'varchar', 'nchar', 'nvarchar') THEN 'max length' \
     END AS varchar(32)) AS CREATE_PARAMS, CAST(t.is_nullable AS smallint) AS NULLABLE, \
     CAST(CASE WHEN t.collation_name IS NULL THEN 0 ELSE 1 END AS smallint) AS CASE_SENSITIVE, CAST(3 AS smallint) AS SEARCHABLE, \
     CAST(CASE t.name WHEN 'tinyint' THEN 1 ELSE 0 END AS smallint) AS UNSIGNED_ATTRIBUTE, \
     CAST(CASE WHEN t.name IN ('money', 'smallmoney') THEN 1 ELSE 0 END AS smallint) AS MONEY, CAST(0 AS smallint) AS AUTO_INCREMENT, \
     t.name AS LOCAL_TYPE_NAME, CAST(0 AS smallint) AS MINIMUM_SCALE, CAST(t.scale AS smallint) AS MAXIMUM_SCALE, t.user_type_id AS USERTYPE \
     FROM sys.types AS t) AS x WHERE @data_type = 0 OR DATA_TYPE = @data_type ORDER BY DATA_TYPE, TYPE_NAME";

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
