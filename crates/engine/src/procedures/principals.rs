//! The old procedures for logins, users, roles: T-SQL texts that say the statements which took their place.
//!
//! The statements ask who may run them, so these need not.

use crate::procedures::catalog::CatalogProcedure;

/// A procedure that builds a statement in `@s` and runs it.
const fn says(name: &'static str, parameters: &'static str, text: &'static str) -> CatalogProcedure {
    CatalogProcedure { name, parameters, text }
}

/// All of them.
pub(crate) const PROCEDURES: &[CatalogProcedure] = &[
    says(
        "sp_addlogin",
        "@loginame sysname, @passwd sysname = NULL, @defdb sysname = 'master', @deflanguage sysname = NULL, @sid varbinary(16) = NULL, \
         @encryptopt varchar(20) = NULL",
        "DECLARE @s nvarchar(max) = N'CREATE LOGIN ' + QUOTENAME(@loginame) + N' WITH PASSWORD = N''' + REPLACE(ISNULL(@passwd, N''), N'''', N'''''') \
         + N''', DEFAULT_DATABASE = ' + QUOTENAME(@defdb) + N', CHECK_POLICY = OFF' EXEC(@s)",
    ),
    says("sp_droplogin", "@loginame sysname", "DECLARE @s nvarchar(max) = N'DROP LOGIN ' + QUOTENAME(@loginame) EXEC(@s)"),
    says(
        "sp_password",
        "@old sysname = NULL, @new sysname, @loginame sysname = NULL",
        "DECLARE @s nvarchar(max) = N'ALTER LOGIN ' + QUOTENAME(ISNULL(@loginame, SUSER_SNAME())) + N' WITH PASSWORD = N''' \
         + REPLACE(@new, N'''', N'''''') + N'''' + CASE WHEN @old IS NULL THEN N'' ELSE N' OLD_PASSWORD = N''' + REPLACE(@old, N'''', N'''''') + N'''' END \
         EXEC(@s)",
    ),
    says(
        "sp_defaultdb",
        "@loginame sysname, @defdb sysname",
        "DECLARE @s nvarchar(max) = N'ALTER LOGIN ' + QUOTENAME(@loginame) + N' WITH DEFAULT_DATABASE = ' + QUOTENAME(@defdb) EXEC(@s)",
    ),
    says(
        "sp_adduser",
        "@loginame sysname, @name_in_db sysname = NULL, @grpname sysname = NULL",
        "DECLARE @n sysname = ISNULL(@name_in_db, @loginame) \
         DECLARE @s nvarchar(max) = N'CREATE USER ' + QUOTENAME(@n) + N' FOR LOGIN ' + QUOTENAME(@loginame) EXEC(@s) \
         IF @grpname IS NOT NULL BEGIN SET @s = N'ALTER ROLE ' + QUOTENAME(@grpname) + N' ADD MEMBER ' + QUOTENAME(@n) EXEC(@s) END",
    ),
    says(
        "sp_grantdbaccess",
        "@loginame sysname, @name_in_db sysname = NULL",
        "DECLARE @s nvarchar(max) = N'CREATE USER ' + QUOTENAME(ISNULL(@name_in_db, @loginame)) + N' FOR LOGIN ' + QUOTENAME(@loginame) EXEC(@s)",
    ),
    says("sp_revokedbaccess", "@name_in_db sysname", "DECLARE @s nvarchar(max) = N'DROP USER ' + QUOTENAME(@name_in_db) EXEC(@s)"),
    says("sp_dropuser", "@name_in_db sysname", "DECLARE @s nvarchar(max) = N'DROP USER ' + QUOTENAME(@name_in_db) EXEC(@s)"),
    says(
        "sp_addrole",
        "@rolename sysname, @ownername sysname = NULL",
        "DECLARE @s nvarchar(max) = N'CREATE ROLE ' + QUOTENAME(@rolename) + ISNULL(N' AUTHORIZATION ' + QUOTENAME(@ownername), N'') EXEC(@s)",
    ),
    says("sp_droprole", "@rolename sysname", "DECLARE @s nvarchar(max) = N'DROP ROLE ' + QUOTENAME(@rolename) EXEC(@s)"),
    says(
        "sp_addrolemember",
        "@rolename sysname, @membername sysname",
        "IF DATABASE_PRINCIPAL_ID(@rolename) IS NULL BEGIN RAISERROR(15014, 16, 1, @rolename) RETURN END \
         IF DATABASE_PRINCIPAL_ID(@membername) IS NULL BEGIN RAISERROR(15410, 11, 1, @membername) RETURN END \
         DECLARE @s nvarchar(max) = N'ALTER ROLE ' + QUOTENAME(@rolename) + N' ADD MEMBER ' + QUOTENAME(@membername) EXEC(@s)",
    ),
    says(
        "sp_droprolemember",
        "@rolename sysname, @membername sysname",
        "IF DATABASE_PRINCIPAL_ID(@rolename) IS NULL BEGIN RAISERROR(15014, 16, 1, @rolename) RETURN END \
         IF DATABASE_PRINCIPAL_ID(@membername) IS NULL BEGIN RAISERROR(15410, 11, 1, @membername) RETURN END \
         DECLARE @s nvarchar(max) = N'ALTER ROLE ' + QUOTENAME(@rolename) + N' DROP MEMBER ' + QUOTENAME(@membername) EXEC(@s)",
    ),
    says(
        "sp_addsrvrolemember",
        "@loginame sysname, @rolename sysname = NULL",
        "DECLARE @s nvarchar(max) = N'ALTER SERVER ROLE ' + QUOTENAME(@rolename) + N' ADD MEMBER ' + QUOTENAME(@loginame) EXEC(@s)",
    ),
    says(
        "sp_dropsrvrolemember",
        "@loginame sysname, @rolename sysname = NULL",
        "DECLARE @s nvarchar(max) = N'ALTER SERVER ROLE ' + QUOTENAME(@rolename) + N' DROP MEMBER ' + QUOTENAME(@loginame) EXEC(@s)",
    ),
    says(
        "sp_helpsrvrolemember",
        "@srvrolename sysname = NULL",
        "SELECT r.name AS ServerRole, m.name AS MemberName, m.sid AS MemberSID FROM sys.server_role_members AS x \
         JOIN sys.server_principals AS r ON r.principal_id = x.role_principal_id \
         JOIN sys.server_principals AS m ON m.principal_id = x.member_principal_id \
         WHERE @srvrolename IS NULL OR r.name = @srvrolename ORDER BY r.name, m.name",
    ),
    says(
        "sp_helprolemember",
        "@rolename sysname = NULL",
        "SELECT r.name AS DbRole, m.name AS MemberName, m.sid AS MemberSID FROM sys.database_role_members AS x \
         JOIN sys.database_principals AS r ON r.principal_id = x.role_principal_id \
         JOIN sys.database_principals AS m ON m.principal_id = x.member_principal_id \
         WHERE @rolename IS NULL OR r.name = @rolename ORDER BY r.name, m.name",
    ),
    says(
        "sp_helpdbfixedrole",
        "@rolename sysname = NULL",
        "SELECT DbFixedRole, Description FROM (VALUES (1, N'db_owner', N'DB Owners'), (2, N'db_accessadmin', N'DB Access Administrators'), \
         (3, N'db_securityadmin', N'DB Security Administrators'), (4, N'db_ddladmin', N'DB DDL Administrators'), \
         (5, N'db_backupoperator', N'DB Backup Operator'), (6, N'db_datareader', N'DB Data Reader'), (7, N'db_datawriter', N'DB Data Writer'), \
         (8, N'db_denydatareader', N'DB Deny Data Reader'), (9, N'db_denydatawriter', N'DB Deny Data Writer')) AS x(n, DbFixedRole, Description) \
         WHERE @rolename IS NULL OR DbFixedRole = @rolename ORDER BY n",
    ),
    says(
        "sp_helplogins",
        "@LoginNamePattern sysname = NULL",
        "SELECT p.name AS LoginName, p.sid AS SID, p.default_database_name AS DefDBName, p.default_language_name AS DefLangName, \
         CAST('no' AS char(5)) AS AUser, CAST('no' AS char(7)) AS ARemote FROM sys.server_principals AS p \
         WHERE p.type = 'S' AND (@LoginNamePattern IS NULL OR p.name = @LoginNamePattern) ORDER BY p.name",
    ),
    says(
        "sp_helpuser",
        "@name_in_db sysname = NULL",
        "SELECT u.name AS UserName, ISNULL(r.name, N'public') AS RoleName, SUSER_SNAME(u.sid) AS LoginName, u.default_schema_name AS DefSchemaName, \
         CAST(u.principal_id AS int) AS UserID, u.sid AS SID FROM sys.database_principals AS u \
         LEFT JOIN sys.database_role_members AS x ON x.member_principal_id = u.principal_id \
         LEFT JOIN sys.database_principals AS r ON r.principal_id = x.role_principal_id \
         WHERE u.type = 'S' AND (@name_in_db IS NULL OR u.name = @name_in_db) ORDER BY u.name, r.name",
    ),
    says(
        "sp_changedbowner",
        "@loginame sysname, @map varchar(5) = NULL",
        "DECLARE @s nvarchar(max) = N'ALTER AUTHORIZATION ON DATABASE::' + QUOTENAME(DB_NAME()) + N' TO ' + QUOTENAME(@loginame) EXEC(@s)",
    ),
    says(
        "sp_grantlogin",
        "@loginame sysname",
        "DECLARE @s nvarchar(max) = N'CREATE LOGIN ' + QUOTENAME(@loginame) + N' FROM WINDOWS' EXEC(@s)",
    ),
    says("sp_revokelogin", "@loginame sysname", "DECLARE @s nvarchar(max) = N'DROP LOGIN ' + QUOTENAME(@loginame) EXEC(@s)"),
    says("sp_denylogin", "@loginame sysname", "DECLARE @s nvarchar(max) = N'DENY CONNECT SQL TO ' + QUOTENAME(@loginame) EXEC(@s)"),
];
