//! What drivers ask of keys and indexes: `sp_pkeys`, `sp_fkeys`, `sp_statistics`.

use crate::procedures::catalog::CatalogProcedure;

const FOREIGN_KEYS_TEXT: &str = "IF @pktable_name IS NULL AND @fktable_name IS NULL BEGIN RAISERROR(15252, 16, 1) RETURN END \
     SELECT CAST(DB_NAME() AS sysname) AS PKTABLE_QUALIFIER, CAST(ps.name AS sysname) AS PKTABLE_OWNER, CAST(p.name AS sysname) AS PKTABLE_NAME, \
     CAST(pc.name AS sysname) AS PKCOLUMN_NAME, CAST(DB_NAME() AS sysname) AS FKTABLE_QUALIFIER, CAST(fs.name AS sysname) AS FKTABLE_OWNER, \
     CAST(f.name AS sysname) AS FKTABLE_NAME, CAST(fc.name AS sysname) AS FKCOLUMN_NAME, CAST(k.constraint_column_id AS smallint) AS KEY_SEQ, \
     CAST(CASE fk.update_referential_action WHEN 0 THEN 1 WHEN 1 THEN 0 ELSE fk.update_referential_action END AS smallint) AS UPDATE_RULE, \
     CAST(CASE fk.delete_referential_action WHEN 0 THEN 1 WHEN 1 THEN 0 ELSE fk.delete_referential_action END AS smallint) AS DELETE_RULE, \
     CAST(fk.name AS sysname) AS FK_NAME, CAST(i.name AS sysname) AS PK_NAME, CAST(7 AS smallint) AS DEFERRABILITY \
     FROM sys.foreign_keys AS fk JOIN sys.foreign_key_columns AS k ON k.constraint_object_id = fk.object_id \
     JOIN sys.tables AS p ON p.object_id = fk.referenced_object_id JOIN sys.schemas AS ps ON ps.schema_id = p.schema_id \
     JOIN sys.columns AS pc ON pc.object_id = k.referenced_object_id AND pc.column_id = k.referenced_column_id \
     JOIN sys.tables AS f ON f.object_id = fk.parent_object_id JOIN sys.schemas AS fs ON fs.schema_id = f.schema_id \
     JOIN sys.columns AS fc ON fc.object_id = k.parent_object_id AND fc.column_id = k.parent_column_id \
     LEFT JOIN sys.indexes AS i ON i.object_id = fk.referenced_object_id AND i.index_id = fk.key_index_id \
     WHERE (@pktable_name IS NULL OR p.name = @pktable_name) AND (@pktable_owner IS NULL OR ps.name = @pktable_owner) \
     AND (@pktable_qualifier IS NULL OR @pktable_qualifier = DB_NAME()) \
     AND (@fktable_name IS NULL OR f.name = @fktable_name) AND (@fktable_owner IS NULL OR fs.name = @fktable_owner) \
     AND (@fktable_qualifier IS NULL OR @fktable_qualifier = DB_NAME()) \
     ORDER BY CASE WHEN @pktable_name IS NULL THEN ps.name ELSE fs.name END, CASE WHEN @pktable_name IS NULL THEN p.name ELSE f.name END, \
     fk.name, k.constraint_column_id";

const STATISTICS_PARAMETERS: &str = "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL, \
     @index_name sysname = '%', @is_unique char(1) = 'N', @accuracy char(1) = 'Q'";

/// One row for the table itself (type 0), and one for each key column of each index.
const STATISTICS_TEXT: &str = "DECLARE @id int = (SELECT TOP (1) t.object_id FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id \
     WHERE t.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) ORDER BY CASE s.name WHEN SCHEMA_NAME() THEN 0 ELSE 1 END) \
     SELECT CAST(DB_NAME() AS sysname) AS TABLE_QUALIFIER, CAST(OBJECT_SCHEMA_NAME(@id) AS sysname) AS TABLE_OWNER, \
     CAST(@table_name AS sysname) AS TABLE_NAME, x.NON_UNIQUE, x.INDEX_QUALIFIER, x.INDEX_NAME, x.TYPE, x.SEQ_IN_INDEX, x.COLUMN_NAME, \
     x.COLLATION, x.CARDINALITY, x.PAGES, CAST(x.FILTER_CONDITION AS varchar(128)) AS FILTER_CONDITION FROM ( \
     SELECT CAST(NULL AS smallint) AS NON_UNIQUE, CAST(NULL AS sysname) AS INDEX_QUALIFIER, CAST(NULL AS sysname) AS INDEX_NAME, \
     CAST(0 AS smallint) AS TYPE, CAST(NULL AS smallint) AS SEQ_IN_INDEX, CAST(NULL AS sysname) AS COLUMN_NAME, CAST(NULL AS char(1)) AS COLLATION, \
     CAST((SELECT SUM(p.rows) FROM sys.partitions AS p WHERE p.object_id = @id AND p.index_id < 2) AS int) AS CARDINALITY, \
     CAST((SELECT SUM(p.used_page_count) FROM sys.dm_db_partition_stats AS p WHERE p.object_id = @id AND p.index_id < 2) AS int) AS PAGES, CAST(NULL AS nvarchar(max)) AS FILTER_CONDITION WHERE @id IS NOT NULL \
     UNION ALL SELECT CAST(1 - CAST(i.is_unique AS smallint) AS smallint), CAST(@table_name AS sysname), CAST(i.name AS sysname), \
     CAST(CASE i.index_id WHEN 1 THEN 1 ELSE 3 END AS smallint), CAST(ic.key_ordinal AS smallint), CAST(c.name AS sysname), \
     CAST(CASE ic.is_descending_key WHEN 1 THEN 'D' ELSE 'A' END AS char(1)), \
     CAST((SELECT SUM(p.rows) FROM sys.partitions AS p WHERE p.object_id = @id AND p.index_id = i.index_id) AS int), \
     CAST((SELECT SUM(p.used_page_count) FROM sys.dm_db_partition_stats AS p WHERE p.object_id = @id AND p.index_id = i.index_id) AS int), i.filter_definition \
     FROM sys.indexes AS i JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
     JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
     WHERE i.object_id = @id AND ic.is_included_column = 0 AND i.name LIKE @index_name AND (@is_unique <> 'Y' OR i.is_unique = 1)) AS x \
     ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, SEQ_IN_INDEX";

pub(super) const PROCEDURES: &[CatalogProcedure] = &[
    CatalogProcedure {
        name: "sp_pkeys",
        parameters: "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL",
        text: "SELECT CAST(DB_NAME() AS sysname) AS TABLE_QUALIFIER, CAST(s.name AS sysname) AS TABLE_OWNER, CAST(t.name AS sysname) AS TABLE_NAME, \
               CAST(c.name AS sysname) AS COLUMN_NAME, CAST(ic.key_ordinal AS smallint) AS KEY_SEQ, CAST(i.name AS sysname) AS PK_NAME \
               FROM sys.indexes AS i JOIN sys.tables AS t ON t.object_id = i.object_id JOIN sys.schemas AS s ON s.schema_id = t.schema_id \
               JOIN sys.index_columns AS ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
               JOIN sys.columns AS c ON c.object_id = ic.object_id AND c.column_id = ic.column_id \
               WHERE i.is_primary_key = 1 AND t.name = @table_name AND (@table_owner IS NULL OR s.name = @table_owner) \
               AND (@table_qualifier IS NULL OR @table_qualifier = DB_NAME()) ORDER BY TABLE_QUALIFIER, TABLE_OWNER, TABLE_NAME, KEY_SEQ",
    },
    CatalogProcedure {
        name: "sp_fkeys",
        parameters: "@pktable_name sysname = NULL, @pktable_owner sysname = NULL, @pktable_qualifier sysname = NULL, \
                     @fktable_name sysname = NULL, @fktable_owner sysname = NULL, @fktable_qualifier sysname = NULL",
        text: FOREIGN_KEYS_TEXT,
    },
    CatalogProcedure { name: "sp_statistics", parameters: STATISTICS_PARAMETERS, text: STATISTICS_TEXT },
    CatalogProcedure { name: "sp_statistics_100", parameters: STATISTICS_PARAMETERS, text: STATISTICS_TEXT },
];
