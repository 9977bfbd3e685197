//! Messages of files, log and backups, beside those of [`crate::messages`]. Rising by number.

/// (number, severity, text).
pub(crate) const CATALOGUE: &[(i32, u8, &str)] = &[
    (
        652,
        16,
        "The index \"%.*ls\" for table \"%.*ls\" (RowsetId %I64d) resides on a read-only filegroup (\"%.*ls\"), which cannot be modified.",
    ),
    (1826, 16, "User-defined filegroups are not allowed on \"%ls\"."),
    (3147, 16, "Backup and restore operations are not allowed on database tempdb."),
    (
        3206,
        16,
        "Backup device '%.*ls' does not exist. To view existing backup devices, use the sys.backup_devices catalog view. To create a new backup device use either sp_addumpdevice or SQL Server Management Studio.",
    ),
    (3211, 10, "%d percent processed."),
    (4035, 10, "Processed %I64d pages for database '%ls', file '%ls' on file %d."),
    (
        4208,
        16,
        "The statement %hs is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change the recovery model using ALTER DATABASE.",
    ),
    (4212, 16, "Cannot back up the log of the master database. Use BACKUP DATABASE instead."),
    (4214, 16, "BACKUP LOG cannot be performed because there is no current database backup."),
    (5009, 16, "One or more files listed in the statement could not be found or could not be initialized."),
    (5020, 16, "The primary data or log file cannot be removed from a database."),
    (5021, 10, "The %S_MSG name '%.*ls' has been set."),
    (
        5035,
        16,
        "Filegroup '%.*ls' already exists in this database. Specify a different name or remove the conflicting filegroup if it is empty.",
    ),
    (5036, 16, "MODIFY FILE failed. Specify logical name."),
    (5038, 16, "MODIFY FILE failed for file \"%.*ls\". At least one property per file must be specified."),
    (5039, 16, "MODIFY FILE failed. Specified size is less than or equal to current size."),
    (5040, 16, "MODIFY FILE failed. Size is greater than MAXSIZE."),
    (5043, 10, "The filegroup property '%ls' has been set."),
    (5045, 16, "The filegroup already has the '%ls' property set."),
    (5047, 16, "Cannot add, remove, or modify files in filegroup '%.*ls'. The filegroup is read-only."),
    (5050, 16, "Cannot change the properties of empty filegroup '%.*ls'. The filegroup must contain at least one file."),
    (5070, 16, "Database state cannot be changed while other users are using the database '%.*ls'"),
    (8985, 16, "Could not locate file '%.*ls' for database '%.*ls' in sys.database_files. The file either does not exist, or was dropped."),
    (9008, 10, "Cannot shrink log file %d (%ls) because the logical log file located at the end of the file is in use."),
    (15325, 16, "The current database does not contain a %s named '%ls'."),
];
