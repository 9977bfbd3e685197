//! What drivers ask of types: ODBC's numbers for each, and `sp_datatype_info`.
//!
//! The texts of this folder share the table of [`odbc!`]: it is a macro because a procedure's text is put together when
//! the engine is compiled.

use crate::procedures::catalog::CatalogProcedure;

/// A derived table `odbc`: the id of a type, its ODBC 3 number, its ODBC 2 number, what the calls from before the types
/// of 2008 say, SQL_DATA_TYPE and SQL_DATETIME_SUB, and SS_DATA_TYPE without and with NULLs.
macro_rules! odbc {
    () => {
        "(VALUES (127, -5, -5, -5, -5, NULL, 63, 108), (104, -7, -7, -7, -7, NULL, 50, 50), (175, 1, 1, 1, 1, NULL, 47, 39), \
         (40, 91, -9, -9, 9, 1, 0, 0), (61, 93, 11, 11, 9, 3, 61, 111), (42, 93, -9, -9, 9, 3, 0, 0), \
         (43, -155, -9, -9, -155, 0, 0, 0), (106, 3, 3, 3, 3, NULL, 55, 106), (62, 6, 6, 6, 6, NULL, 62, 109), \
         (34, -4, -4, -4, -4, NULL, 34, 34), (56, 4, 4, 4, 4, NULL, 56, 38), (60, 3, 3, 3, 3, NULL, 60, 110), \
         (239, -8, -8, -8, -8, NULL, 47, 39), (99, -10, -10, -10, -10, NULL, 35, 35), (108, 2, 2, 2, 2, NULL, 63, 108), \
         (231, -9, -9, -9, -9, NULL, 39, 39), (59, 7, 7, 7, 7, NULL, 59, 109), (58, 93, 11, 11, 9, 3, 58, 111), \
         (52, 5, 5, 5, 5, NULL, 52, 38), (122, 3, 3, 3, 3, NULL, 122, 110), (98, -150, -150, -150, -150, NULL, 39, 39), \
         (35, -1, -1, -1, -1, NULL, 35, 35), (41, -154, -9, -9, -154, 0, 0, 0), (48, -6, -6, -6, -6, NULL, 48, 38), \
         (36, -11, -11, -11, -11, NULL, 37, 37), (165, -3, -3, -3, -3, NULL, 37, 37), (167, 12, 12, 12, 12, NULL, 39, 39), \
         (173, -2, -2, -2, -2, NULL, 45, 37), (189, -2, -2, -2, -2, NULL, 45, 37), (241, -152, -152, -152, -152, NULL, 0, 0), \
         (240, -151, -151, -151, -151, NULL, 23, 23)) AS odbc(id, type3, type2, old, sql3, sub, ss, ss_null)"
    };
}

/// PRECISION, LENGTH, SCALE and RADIX of what `c` (a row of columns or parameters) is, with `@ODBCVer` at hand.
macro_rules! odbc_sizes {
    () => {
        "CAST(CASE WHEN c.max_length = -1 THEN 0 WHEN c.system_type_id = 62 AND @ODBCVer < 3 THEN 15 \
         WHEN c.system_type_id = 59 AND @ODBCVer < 3 THEN 7 WHEN c.precision > 0 THEN c.precision \
         WHEN c.system_type_id IN (34, 35) THEN 2147483647 WHEN c.system_type_id = 99 THEN 1073741823 \
         WHEN c.system_type_id = 36 THEN 36 WHEN c.system_type_id = 98 THEN 8000 \
         WHEN c.system_type_id IN (231, 239) THEN c.max_length / 2 ELSE c.max_length END AS int) AS [PRECISION], \
         CAST(CASE WHEN c.max_length = -1 THEN 0 WHEN c.system_type_id IN (106, 108, 60, 122) THEN c.precision + 2 \
         WHEN c.system_type_id IN (58, 61, 42) THEN 16 WHEN c.system_type_id = 40 THEN 6 WHEN c.system_type_id = 41 THEN 12 \
         WHEN c.system_type_id = 43 THEN 20 WHEN c.system_type_id IN (34, 35) THEN 2147483647 \
         WHEN c.system_type_id = 99 THEN 2147483646 WHEN c.system_type_id = 98 THEN 8000 ELSE c.max_length END AS int) AS LENGTH, \
         CAST(CASE WHEN c.system_type_id IN (48, 52, 56, 60, 106, 108, 122, 127, 61, 58, 40, 41, 42, 43) THEN c.scale END AS smallint) AS SCALE, \
         CAST(CASE WHEN c.system_type_id IN (48, 52, 56, 60, 106, 108, 122, 127) THEN 10 \
         WHEN c.system_type_id IN (59, 62) THEN CASE WHEN @ODBCVer < 3 THEN 10 ELSE 2 END END AS smallint) AS RADIX"
    };
}

/// CHAR_OCTET_LENGTH of what `c` is.
macro_rules! odbc_octets {
    () => {
        "CAST(CASE WHEN c.max_length = -1 THEN 0 WHEN c.system_type_id IN (34, 35) THEN 2147483647 \
         WHEN c.system_type_id = 99 THEN 2147483646 WHEN c.system_type_id IN (165, 167, 173, 175, 231, 239) THEN c.max_length END AS int) \
         AS CHAR_OCTET_LENGTH"
    };
}

pub(super) use {odbc, odbc_octets, odbc_sizes};

const PARAMETERS: &str = "@data_type int = 0, @ODBCVer tinyint = 2";

/// The text; `since_2008` is whether the types of 2008 have numbers of their own.
macro_rules! text {
    ($since_2008:literal) => {
        concat!(
            "SELECT * FROM (SELECT CAST(t.name AS sysname) AS TYPE_NAME, CAST(CASE WHEN ",
            $since_2008,
            " = 0 THEN odbc.old WHEN @ODBCVer < 3 THEN odbc.type2 ELSE odbc.type3 END AS smallint) AS DATA_TYPE, \
             t.size AS [PRECISION], CAST(t.prefix AS varchar(32)) AS LITERAL_PREFIX, \
             CAST(CASE WHEN t.prefix LIKE '%''' THEN '''' END AS varchar(32)) AS LITERAL_SUFFIX, CAST(t.params AS varchar(32)) AS CREATE_PARAMS, \
             CAST(t.nullable AS smallint) AS NULLABLE, CAST(t.cased AS smallint) AS CASE_SENSITIVE, CAST(t.search AS smallint) AS SEARCHABLE, \
             CAST(CASE WHEN t.auto IS NOT NULL THEN CASE WHEN t.id = 48 THEN 1 ELSE 0 END END AS smallint) AS UNSIGNED_ATTRIBUTE, \
             CAST(CASE WHEN t.id IN (60, 122) THEN 1 ELSE 0 END AS smallint) AS MONEY, CAST(t.auto AS smallint) AS AUTO_INCREMENT, \
             CAST(t.name AS sysname) AS LOCAL_TYPE_NAME, CAST(t.least AS smallint) AS MINIMUM_SCALE, CAST(t.most AS smallint) AS MAXIMUM_SCALE, \
             CAST(CASE WHEN ",
            $since_2008,
            " = 0 AND odbc.old = -9 THEN -9 ELSE odbc.sql3 END AS smallint) AS SQL_DATA_TYPE, \
             CAST(CASE WHEN ",
            $since_2008,
            " = 1 OR odbc.old <> -9 THEN odbc.sub END AS smallint) AS SQL_DATETIME_SUB, \
             CASE WHEN t.id IN (59, 62) THEN 2 WHEN t.auto IS NOT NULL OR t.id = 98 THEN 10 END AS NUM_PREC_RADIX, \
             CAST(NULL AS smallint) AS INTERVAL_PRECISION, CAST(t.usertype AS smallint) AS USERTYPE FROM (VALUES \
             ('bit', 104, 1, NULL, NULL, 1, 0, 2, NULL, 0, 0, 16), ('tinyint', 48, 3, NULL, NULL, 1, 0, 2, 0, 0, 0, 5), \
             ('tinyint identity', 48, 3, NULL, NULL, 0, 0, 2, 1, 0, 0, 5), ('bigint', 127, 19, NULL, NULL, 1, 0, 2, 0, 0, 0, 0), \
             ('bigint identity', 127, 19, NULL, NULL, 0, 0, 2, 1, 0, 0, 0), ('image', 34, 2147483647, '0x', NULL, 1, 0, 0, NULL, NULL, NULL, 20), \
             ('varbinary', 165, 8000, '0x', 'max length', 1, 0, 2, NULL, NULL, NULL, 4), \
             ('binary', 173, 8000, '0x', 'length', 1, 0, 2, NULL, NULL, NULL, 3), ('timestamp', 189, 8, '0x', NULL, 0, 0, 2, NULL, NULL, NULL, 80), \
             ('text', 35, 2147483647, '''', NULL, 1, 1, 1, NULL, NULL, NULL, 19), ('char', 175, 8000, '''', 'length', 1, 1, 3, NULL, NULL, NULL, 1), \
             ('numeric', 108, 38, NULL, 'precision,scale', 1, 0, 2, 0, 0, 38, 10), \
             ('numeric() identity', 108, 38, NULL, 'precision', 0, 0, 2, 1, 0, 0, 10), \
             ('decimal', 106, 38, NULL, 'precision,scale', 1, 0, 2, 0, 0, 38, 24), \
             ('decimal() identity', 106, 38, NULL, 'precision', 0, 0, 2, 1, 0, 0, 24), \
             ('money', 60, 19, '$', NULL, 1, 0, 2, 0, 4, 4, 11), ('smallmoney', 122, 10, '$', NULL, 1, 0, 2, 0, 4, 4, 21), \
             ('int', 56, 10, NULL, NULL, 1, 0, 2, 0, 0, 0, 7), ('int identity', 56, 10, NULL, NULL, 0, 0, 2, 1, 0, 0, 7), \
             ('smallint', 52, 5, NULL, NULL, 1, 0, 2, 0, 0, 0, 6), ('smallint identity', 52, 5, NULL, NULL, 0, 0, 2, 1, 0, 0, 6), \
             ('float', 62, 53, NULL, NULL, 1, 0, 2, 0, NULL, NULL, 8), ('real', 59, 24, NULL, NULL, 1, 0, 2, 0, NULL, NULL, 23), \
             ('varchar', 167, 8000, '''', 'max length', 1, 1, 3, NULL, NULL, NULL, 2), ('date', 40, 10, '''', NULL, 1, 0, 3, NULL, NULL, 0, 0), \
             ('datetime2', 42, 27, '''', 'scale', 1, 0, 3, NULL, 0, 7, 0), ('datetime', 61, 23, '''', NULL, 1, 0, 3, NULL, 3, 3, 12), \
             ('smalldatetime', 58, 16, '''', NULL, 1, 0, 3, NULL, 0, 0, 22), ('time', 41, 16, '''', 'scale', 1, 0, 3, NULL, 0, 7, 0), \
             ('datetimeoffset', 43, 34, '''', 'scale', 1, 0, 3, NULL, 0, 7, 0), ('nchar', 239, 4000, 'N''', 'length', 1, 1, 3, NULL, NULL, NULL, 0), \
             ('nvarchar', 231, 4000, 'N''', 'max length', 1, 1, 3, NULL, NULL, NULL, 0), ('sysname', 231, 128, 'N''', NULL, 0, 1, 3, NULL, NULL, NULL, 18), \
             ('ntext', 99, 1073741823, 'N''', NULL, 1, 1, 1, NULL, NULL, NULL, 0), \
             ('uniqueidentifier', 36, 36, '''', NULL, 1, 0, 2, NULL, NULL, NULL, 0), ('sql_variant', 98, 8000, NULL, NULL, 1, 0, 2, NULL, 0, 0, 0), \
             ('xml', 241, 0, 'N''', NULL, 1, 1, 0, NULL, NULL, NULL, 0)) \
             AS t(name, id, size, prefix, params, nullable, cased, search, auto, least, most, usertype) JOIN ",
            odbc!(),
            " ON odbc.id = t.id) AS x WHERE @data_type = 0 OR DATA_TYPE = @data_type ORDER BY DATA_TYPE, AUTO_INCREMENT, TYPE_NAME"
        )
    };
}

/// sp_datatype_info in its three forms. The older ones call the types of 2008 nvarchar, as drivers from before take them.
pub(super) const PROCEDURES: &[CatalogProcedure] = &[
    CatalogProcedure { name: "sp_datatype_info", parameters: PARAMETERS, text: text!("0") },
    CatalogProcedure { name: "sp_datatype_info_90", parameters: PARAMETERS, text: text!("0") },
    CatalogProcedure { name: "sp_datatype_info_100", parameters: PARAMETERS, text: text!("1") },
];
