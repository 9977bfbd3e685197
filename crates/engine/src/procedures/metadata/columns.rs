//! What drivers ask of tables and their columns: `sp_tables`, `sp_columns`, `sp_special_columns`, and what a bulk copy
//! asks of collations.

use super::types::{odbc, odbc_octets, odbc_sizes};
use crate::procedures::catalog::CatalogProcedure;

const COLUMNS_PARAMETERS: &str = "@table_name nvarchar(384), @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, \
     @column_name nvarchar(384) = NULL, @NameScope int = 0, @ODBCVer int = 2, @fUsePattern bit = 1";
/// The older form has no scope of names.
const COLUMNS_90_PARAMETERS: &str = "@table_name nvarchar(384), @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, \
     @column_name nvarchar(384) = NULL, @ODBCVer int = 2, @fUsePattern bit = 1";
const SPECIAL_PARAMETERS: &str = "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL, @col_type char(1) = 'R', \
     @scope char(1) = 'T', @nullable char(1) = 'U', @ODBCVer int = 2";

/// `sp_columns`: `$type` is the number of the type, `$more` the columns between IS_NULLABLE and SS_DATA_TYPE.
macro_rules! columns_text {
    ($type:literal, $sql_type:literal, $sub:literal, $more:literal) => {
        concat!(
            "SELECT CAST(DB_NAME() AS sysname) AS TABLE_QUALIFIER, CAST(s.name AS sysname) AS TABLE_OWNER, CAST(o.name AS sysname) AS TABLE_NAME, \
             CAST(c.name AS sysname) AS COLUMN_NAME, CAST(",
            $type,
            " AS smallint) AS DATA_TYPE, CAST(TYPE_NAME(c.user_type_id) + CASE WHEN c.is_identity = 0 THEN '' \
             WHEN c.system_type_id IN (106, 108) THEN '() identity' ELSE ' identity' END AS sysname) AS TYPE_NAME, ",
            odbc_sizes!(),
            ", CAST(c.is_nullable AS smallint) AS NULLABLE, CAST(NULL AS varchar(254)) AS REMARKS, \
             CAST(d.definition AS nvarchar(4000)) AS COLUMN_DEF, CAST(",
            $sql_type,
            " AS smallint) AS SQL_DATA_TYPE, CAST(",
            $sub,
            " AS smallint) AS SQL_DATETIME_SUB, ",
            odbc_octets!(),
            ", CAST(ROW_NUMBER() OVER (PARTITION BY c.object_id ORDER BY c.column_id) AS int) AS ORDINAL_POSITION, \
             CAST(CASE c.is_nullable WHEN 1 THEN 'YES' ELSE 'NO' END AS varchar(254)) AS IS_NULLABLE, ",
            $more,
            "CAST(CASE c.is_nullable WHEN 1 THEN odbc.ss_null ELSE odbc.ss END AS tinyint) AS SS_DATA_TYPE \
             FROM sys.all_columns AS c JOIN sys.all_objects AS o ON o.object_id = c.object_id JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
             LEFT JOIN sys.default_constraints AS d ON d.object_id = c.default_object_id JOIN ",
            odbc!(),
            " ON odbc.id = c.system_type_id \
             WHERE ((@fUsePattern = 1 AND o.name LIKE @table_name) OR o.name = @table_name) \
             AND (@table_owner IS NULL OR (@fUsePattern = 1 AND s.name LIKE @table_owner) OR s.name = @table_owner) \
             AND (@column_name IS NULL OR (@fUsePattern = 1 AND c.name LIKE @column_name) OR c.name = @column_name) \
             AND (@table_qualifier IS NULL OR @table_qualifier = DB_NAME()) \
             ORDER BY TABLE_QUALIFIER, TABLE_OWNER, TABLE_NAME, ORDINAL_POSITION"
        )
    };
}

const COLUMNS_TEXT: &str = columns_text!(
    "CASE WHEN c.max_length = -1 THEN CASE c.system_type_id WHEN 167 THEN -1 WHEN 231 THEN -10 WHEN 165 THEN -4 ELSE odbc.old END ELSE odbc.old END",
    "CASE WHEN odbc.old IN (11, 93) THEN 9 WHEN c.max_length = -1 THEN CASE c.system_type_id WHEN 167 THEN -1 WHEN 231 THEN -10 WHEN 165 THEN -4 \
     ELSE odbc.old END ELSE odbc.old END",
    "CASE WHEN odbc.old = 11 THEN 3 END",
    ""
);

const COLUMNS_100_TEXT: &str = columns_text!(
    "CASE WHEN @ODBCVer < 3 THEN odbc.type2 ELSE odbc.type3 END",
    "odbc.sql3",
    "odbc.sub",
    "CAST(c.is_sparse AS smallint) AS SS_IS_SPARSE, CAST(c.is_column_set AS smallint) AS SS_IS_COLUMN_SET, \
     CAST(c.is_computed AS smallint) AS SS_IS_COMPUTED, CAST(c.is_identity AS smallint) AS SS_IS_IDENTITY, \
     CAST(NULL AS sysname) AS SS_UDT_CATALOG_NAME, CAST(NULL AS sysname) AS SS_UDT_SCHEMA_NAME, \
     CAST(NULL AS nvarchar(4000)) AS SS_UDT_ASSEMBLY_TYPE_NAME, CAST(NULL AS sysname) AS SS_XML_SCHEMACOLLECTION_CATALOG_NAME, \
     CAST(NULL AS sysname) AS SS_XML_SCHEMACOLLECTION_SCHEMA_NAME, CAST(NULL AS sysname) AS SS_XML_SCHEMACOLLECTION_NAME, "
);

/// With '%' for one of qualifier, owner and type, and '' for the others, the names there are; else the tables.
const TABLES_TEXT: &str = "IF @table_qualifier = '%' AND @table_owner = '' AND @table_name = '' \
     SELECT CAST(name AS sysname) AS TABLE_QUALIFIER, CAST(NULL AS sysname) AS TABLE_OWNER, CAST(NULL AS sysname) AS TABLE_NAME, \
     CAST(NULL AS varchar(32)) AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS FROM sys.databases ORDER BY 1 \
     ELSE IF @table_owner = '%' AND @table_qualifier = '' AND @table_name = '' \
     SELECT CAST(NULL AS sysname) AS TABLE_QUALIFIER, CAST(name AS sysname) AS TABLE_OWNER, CAST(NULL AS sysname) AS TABLE_NAME, \
     CAST(NULL AS varchar(32)) AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS FROM sys.schemas ORDER BY 2 \
     ELSE IF @table_type = '%' AND @table_qualifier = '' AND @table_owner = '' AND @table_name = '' \
     SELECT CAST(NULL AS sysname) AS TABLE_QUALIFIER, CAST(NULL AS sysname) AS TABLE_OWNER, CAST(NULL AS sysname) AS TABLE_NAME, \
     CAST(type AS varchar(32)) AS TABLE_TYPE, CAST(NULL AS varchar(254)) AS REMARKS \
     FROM (VALUES ('SYSTEM TABLE'), ('TABLE'), ('VIEW')) AS t(type) ORDER BY 4 \
     ELSE SELECT CAST(DB_NAME() AS sysname) AS TABLE_QUALIFIER, CAST(s.name AS sysname) AS TABLE_OWNER, CAST(o.name AS sysname) AS TABLE_NAME, \
     CAST(CASE o.type WHEN 'U ' THEN 'TABLE' WHEN 'S ' THEN 'SYSTEM TABLE' ELSE 'VIEW' END AS varchar(32)) AS TABLE_TYPE, \
     CAST(NULL AS varchar(254)) AS REMARKS FROM sys.all_objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
     WHERE o.type IN ('S ', 'U ', 'V ') \
     AND (@table_name IS NULL OR (@fUsePattern = 1 AND o.name LIKE @table_name) OR o.name = @table_name) \
     AND (@table_owner IS NULL OR (@fUsePattern = 1 AND s.name LIKE @table_owner) OR s.name = @table_owner) \
     AND (@table_qualifier IS NULL OR @table_qualifier = DB_NAME() OR @table_qualifier = '%') \
     AND (@table_type IS NULL OR CHARINDEX('''' + CASE o.type WHEN 'U ' THEN 'TABLE' WHEN 'S ' THEN 'SYSTEM TABLE' ELSE 'VIEW' END + '''', \
     @table_type) > 0) ORDER BY TABLE_TYPE, TABLE_QUALIFIER, TABLE_OWNER, TABLE_NAME";

/// The columns that tell rows apart (R: the primary key, or else a unique index) or that change with every update (V).
const SPECIAL_TEXT: &str = concat!(
    "DECLARE @id int = (SELECT TOP (1) t.object_id FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id \
     WHERE t.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) ORDER BY CASE s.name WHEN SCHEMA_NAME() THEN 0 ELSE 1 END) \
     DECLARE @index int = (SELECT TOP (1) index_id FROM sys.indexes AS i WHERE i.object_id = @id AND i.is_unique = 1 AND i.has_filter = 0 \
     AND (@nullable = 'U' OR NOT EXISTS (SELECT * FROM sys.index_columns AS k JOIN sys.columns AS n ON n.object_id = k.object_id \
     AND n.column_id = k.column_id WHERE k.object_id = i.object_id AND k.index_id = i.index_id AND n.is_nullable = 1)) \
     ORDER BY i.is_primary_key DESC, i.index_id) \
     SELECT CASE WHEN @col_type = 'R' THEN CAST(CASE @scope WHEN 'C' THEN 0 ELSE 1 END AS smallint) END AS SCOPE, \
     CAST(c.name AS sysname) AS COLUMN_NAME, CAST(CASE WHEN @ODBCVer < 3 THEN odbc.type2 ELSE odbc.type3 END AS smallint) AS DATA_TYPE, \
     CAST(TYPE_NAME(c.user_type_id) + CASE c.is_identity WHEN 1 THEN ' identity' ELSE '' END AS sysname) AS TYPE_NAME, ",
    odbc_sizes!(),
    ", CAST(1 AS smallint) AS PSEUDO_COLUMN FROM sys.columns AS c JOIN ",
    odbc!(),
    " ON odbc.id = c.system_type_id LEFT JOIN sys.index_columns AS k ON k.object_id = c.object_id AND k.column_id = c.column_id \
     AND k.index_id = @index AND k.is_included_column = 0 WHERE c.object_id = @id \
     AND ((@col_type = 'R' AND k.key_ordinal IS NOT NULL) OR (@col_type = 'V' AND c.system_type_id = 189)) ORDER BY k.key_ordinal, c.column_id"
);

/// What bulk copies ask before they send text: the collation of each column, by id as TDS has it and by name.
const TABLE_COLLATIONS_TEXT: &str = "SELECT colid, name, tds_collation_100 AS tds_collation, collation_100 AS collation \
     FROM sys.spt_tablecollations_view WHERE object_id = OBJECT_ID(@object) ORDER BY colid";

/// Who may do what with tables, and with `$column` their columns: the owner everything, others what they were granted.
macro_rules! privileges_text {
    ($column:literal, $from:literal, $where:literal, $minor:literal) => {
        concat!(
            "SELECT CAST(DB_NAME() AS sysname) AS TABLE_QUALIFIER, CAST(s.name AS sysname) AS TABLE_OWNER, CAST(t.name AS sysname) AS TABLE_NAME, ",
            $column,
            "CAST(x.grantor AS sysname) AS GRANTOR, CAST(x.grantee AS sysname) AS GRANTEE, CAST(x.privilege AS varchar(32)) AS PRIVILEGE, \
             CAST(x.grantable AS varchar(3)) AS IS_GRANTABLE FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id ",
            $from,
            " CROSS APPLY (SELECT USER_NAME(COALESCE(t.principal_id, s.principal_id)) AS grantor, \
             USER_NAME(COALESCE(t.principal_id, s.principal_id)) AS grantee, p.privilege, 'YES' AS grantable \
             FROM (VALUES ('DELETE'), ('INSERT'), ('REFERENCES'), ('SELECT'), ('UPDATE')) AS p(privilege) \
             UNION ALL SELECT USER_NAME(g.grantor_principal_id), USER_NAME(g.grantee_principal_id), g.permission_name, \
             CASE g.state WHEN 'W' THEN 'YES' ELSE 'NO' END FROM sys.database_permissions AS g WHERE g.class = 1 AND g.major_id = t.object_id \
             AND g.state IN ('G', 'W') AND g.permission_name IN ('DELETE', 'INSERT', 'REFERENCES', 'SELECT', 'UPDATE') AND ",
            $minor,
            ") AS x WHERE ",
            $where,
            " AND (@table_qualifier IS NULL OR @table_qualifier = DB_NAME()) ORDER BY 1, 2, 3, 4, 5, 6, 7"
        )
    };
}

const TABLE_PRIVILEGES_TEXT: &str = privileges_text!(
    "",
    "",
    "((@fUsePattern = 1 AND t.name LIKE @table_name) OR t.name = @table_name) \
     AND (@table_owner IS NULL OR (@fUsePattern = 1 AND s.name LIKE @table_owner) OR s.name = @table_owner)",
    "g.minor_id = 0"
);

const COLUMN_PRIVILEGES_TEXT: &str = privileges_text!(
    "CAST(c.name AS sysname) AS COLUMN_NAME, ",
    "JOIN sys.columns AS c ON c.object_id = t.object_id",
    "x.privilege <> 'DELETE' AND t.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) \
     AND (@column_name IS NULL OR c.name LIKE @column_name)",
    "g.minor_id IN (0, c.column_id)"
);

pub(super) const PROCEDURES: &[CatalogProcedure] = &[
    CatalogProcedure {
        name: "sp_table_privileges",
        parameters: "@table_name nvarchar(384), @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, @fUsePattern bit = 1",
        text: TABLE_PRIVILEGES_TEXT,
    },
    CatalogProcedure {
        name: "sp_column_privileges",
        parameters: "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL, @column_name nvarchar(384) = NULL",
        text: COLUMN_PRIVILEGES_TEXT,
    },
    CatalogProcedure {
        name: "sp_tables",
        parameters: "@table_name nvarchar(384) = NULL, @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, \
                     @table_type varchar(100) = NULL, @fUsePattern bit = 1",
        text: TABLES_TEXT,
    },
    CatalogProcedure { name: "sp_columns", parameters: COLUMNS_90_PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure { name: "sp_columns_90", parameters: COLUMNS_90_PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure { name: "sp_columns_100", parameters: COLUMNS_PARAMETERS, text: COLUMNS_100_TEXT },
    CatalogProcedure { name: "sp_special_columns", parameters: SPECIAL_PARAMETERS, text: SPECIAL_TEXT },
    CatalogProcedure { name: "sp_special_columns_90", parameters: SPECIAL_PARAMETERS, text: SPECIAL_TEXT },
    CatalogProcedure { name: "sp_special_columns_100", parameters: SPECIAL_PARAMETERS, text: SPECIAL_TEXT },
    CatalogProcedure { name: "sp_tablecollations_100", parameters: "@object nvarchar(776)", text: TABLE_COLLATIONS_TEXT },
];
