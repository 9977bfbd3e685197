//! What drivers ask of procedures and functions: `sp_stored_procedures` and `sp_sproc_columns`.

use super::types::{odbc, odbc_octets, odbc_sizes};
use crate::procedures::catalog::CatalogProcedure;

/// ODBC names a procedure with its number, `;1`, and a function with `;0`.
const ROUTINES_TEXT: &str = "SELECT CAST(DB_NAME() AS sysname) AS PROCEDURE_QUALIFIER, CAST(SCHEMA_NAME(o.schema_id) AS sysname) AS PROCEDURE_OWNER, \
     CAST(o.name + CASE o.type WHEN 'P ' THEN N';1' ELSE N';0' END AS nvarchar(134)) AS PROCEDURE_NAME, -1 AS NUM_INPUT_PARAMS, \
     -1 AS NUM_OUTPUT_PARAMS, -1 AS NUM_RESULT_SETS, CAST(NULL AS varchar(254)) AS REMARKS, CAST(2 AS smallint) AS PROCEDURE_TYPE \
     FROM sys.objects AS o WHERE o.type IN ('P ', 'FN', 'TF', 'IF') \
     AND (@sp_name IS NULL OR (@fUsePattern = 1 AND o.name LIKE @sp_name) OR o.name = @sp_name) \
     AND (@sp_owner IS NULL OR (@fUsePattern = 1 AND SCHEMA_NAME(o.schema_id) LIKE @sp_owner) OR SCHEMA_NAME(o.schema_id) = @sp_owner) \
     AND (@sp_qualifier IS NULL OR @sp_qualifier = DB_NAME()) ORDER BY 1, 2, 3";

const PARAMETERS: &str = "@procedure_name nvarchar(390) = '%', @procedure_owner nvarchar(384) = NULL, @procedure_qualifier sysname = NULL, \
     @column_name nvarchar(384) = NULL, @ODBCVer int = 2, @fUsePattern bit = 1";

/// A row for each parameter, and one before them for what is returned: `$more` are the columns before SS_DATA_TYPE.
macro_rules! columns_text {
    ($type:literal, $more:literal) => {
        concat!(
            "DECLARE @bare nvarchar(390) = CASE WHEN @procedure_name LIKE N'%;[0-9]' THEN LEFT(@procedure_name, LEN(@procedure_name) - 2) \
             ELSE @procedure_name END \
             SELECT CAST(DB_NAME() AS sysname) AS PROCEDURE_QUALIFIER, CAST(SCHEMA_NAME(o.schema_id) AS sysname) AS PROCEDURE_OWNER, \
             CAST(o.name + CASE o.type WHEN 'P ' THEN N';1' ELSE N';0' END AS nvarchar(134)) AS PROCEDURE_NAME, \
             CAST(c.name AS sysname) AS COLUMN_NAME, CAST(CASE WHEN c.parameter_id = 0 THEN 5 WHEN c.is_output = 1 THEN 2 ELSE 1 END AS smallint) \
             AS COLUMN_TYPE, CAST(",
            $type,
            " AS smallint) AS DATA_TYPE, CAST(TYPE_NAME(c.user_type_id) AS sysname) AS TYPE_NAME, ",
            odbc_sizes!(),
            ", CAST(CASE WHEN c.parameter_id = 0 AND o.type = 'P ' THEN 0 ELSE 1 END AS smallint) AS NULLABLE, CAST(NULL AS varchar(254)) AS REMARKS, \
             CAST(NULL AS nvarchar(4000)) AS COLUMN_DEF, CAST(odbc.sql3 AS smallint) AS SQL_DATA_TYPE, \
             CAST(odbc.sub AS smallint) AS SQL_DATETIME_SUB, ",
            odbc_octets!(),
            ", c.parameter_id AS ORDINAL_POSITION, \
             CAST(CASE WHEN c.parameter_id = 0 AND o.type = 'P ' THEN 'NO' ELSE 'YES' END AS varchar(254)) AS IS_NULLABLE, ",
            $more,
            "CAST(odbc.ss_null AS tinyint) AS SS_DATA_TYPE FROM sys.objects AS o JOIN ( \
             SELECT p.object_id, p.parameter_id, CASE p.parameter_id WHEN 0 THEN N'@RETURN_VALUE' ELSE p.name END AS name, p.system_type_id, \
             p.user_type_id, p.max_length, p.precision, p.scale, p.is_output FROM sys.parameters AS p \
             UNION ALL SELECT r.object_id, 0, N'@RETURN_VALUE', 56, 56, 4, 10, 0, CAST(0 AS bit) FROM sys.procedures AS r) AS c \
             ON c.object_id = o.object_id LEFT JOIN ",
            odbc!(),
            " ON odbc.id = c.system_type_id WHERE o.type IN ('P ', 'FN', 'TF', 'IF') \
             AND ((@fUsePattern = 1 AND o.name LIKE @bare) OR o.name = @bare) \
             AND (@procedure_owner IS NULL OR (@fUsePattern = 1 AND SCHEMA_NAME(o.schema_id) LIKE @procedure_owner) \
             OR SCHEMA_NAME(o.schema_id) = @procedure_owner) AND (@procedure_qualifier IS NULL OR @procedure_qualifier = DB_NAME()) \
             AND (@column_name IS NULL OR (@fUsePattern = 1 AND c.name LIKE @column_name) OR c.name = @column_name) \
             ORDER BY 1, 2, 3, c.parameter_id"
        )
    };
}

const COLUMNS_TEXT: &str = columns_text!("odbc.old", "");
const COLUMNS_100_TEXT: &str = columns_text!(
    "CASE WHEN c.system_type_id = 243 THEN -153 WHEN @ODBCVer < 3 THEN odbc.type2 ELSE odbc.type3 END",
    "CASE WHEN c.system_type_id = 243 THEN CAST(DB_NAME() AS sysname) END AS SS_TYPE_CATALOG_NAME, \
     CASE WHEN c.system_type_id = 243 THEN (SELECT CAST(SCHEMA_NAME(t.schema_id) AS sysname) FROM sys.types AS t \
     WHERE t.user_type_id = c.user_type_id) END AS SS_TYPE_SCHEMA_NAME, CAST(NULL AS sysname) AS SS_UDT_CATALOG_NAME, \
     CAST(NULL AS sysname) AS SS_UDT_SCHEMA_NAME, CAST(NULL AS nvarchar(4000)) AS SS_UDT_ASSEMBLY_TYPE_NAME, \
     CAST(NULL AS sysname) AS SS_XML_SCHEMACOLLECTION_CATALOG_NAME, CAST(NULL AS sysname) AS SS_XML_SCHEMACOLLECTION_SCHEMA_NAME, \
     CAST(NULL AS sysname) AS SS_XML_SCHEMACOLLECTION_NAME, "
);

pub(super) const PROCEDURES: &[CatalogProcedure] = &[
    CatalogProcedure {
        name: "sp_stored_procedures",
        parameters: "@sp_name nvarchar(390) = NULL, @sp_owner nvarchar(384) = NULL, @sp_qualifier sysname = NULL, @fUsePattern bit = 1",
        text: ROUTINES_TEXT,
    },
    CatalogProcedure { name: "sp_sproc_columns", parameters: PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure { name: "sp_sproc_columns_90", parameters: PARAMETERS, text: COLUMNS_TEXT },
    CatalogProcedure { name: "sp_sproc_columns_100", parameters: PARAMETERS, text: COLUMNS_100_TEXT },
];
