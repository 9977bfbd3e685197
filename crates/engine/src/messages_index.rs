//! Messages of index operations, beside those of [`crate::messages`]. Rising by number.

/// (number, severity, text).
pub(crate) const CATALOGUE: &[(i32, u8, &str)] = &[
    (1917, 16, "Cannot create, rebuild or drop an index on a local temporary table online. Perform the index operation offline."),
    (
        1930,
        16,
        "Cannot convert a nonclustered index to a clustered index because a foreign key constraint references the index. Remove the foreign key constraint and then retry the operation.",
    ),
    (1968, 16, "Cannot convert a nonclustered index to a clustered index online using DROP_EXISTING option."),
    (1973, 16, "Cannot perform the specified operation on disabled index '%.*ls' on %S_MSG '%.*ls'."),
    (1974, 16, "Cannot perform the specified operation on %S_MSG '%.*ls' because its clustered index '%.*ls' is disabled."),
    (1987, 16, "Cannot %ls nonclustered index '%.*ls' on %S_MSG '%.*ls' because its clustered index is disabled."),
    (1989, 16, "Cannot enable foreign key constraint '%.*ls' as index '%.*ls' on referenced key is disabled."),
    (
        1992,
        10,
        "Warning: Foreign key '%.*ls' on table '%.*ls' referencing table '%.*ls' was disabled as a result of disabling the index '%.*ls'.",
    ),
    (
        2551,
        16,
        "The indexes on table \"%.*ls\" cannot be reorganized because there is already an online index build or rebuild in progress on the table.",
    ),
    (2552, 16, "The index \"%.*ls\" (partition %I64d) on table \"%.*ls\" cannot be reorganized because page level locking is disabled."),
    (3750, 10, "Warning: Index '%.*ls' on %S_MSG '%.*ls' was disabled as a result of disabling the clustered index on the %S_MSG."),
    (7729, 16, "Cannot specify partition number in the %S_MSG %S_MSG statement as the %S_MSG '%.*ls' is not partitioned."),
    (
        7735,
        16,
        "Cannot specify partition number in alter %S_MSG statement to rebuild or reorganize a partition of %S_MSG '%.*ls' as %S_MSG is not partitioned.",
    ),
    (
        10676,
        10,
        "The resumable index '%.*ls' on object '%.*ls' is being auto aborted because it has remained paused for more than %d minutes. Refer to the PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES DATABASE SCOPED CONFIGURATION option for configuring the threshold for automatically aborting paused index operations.",
    ),
    (11434, 15, "The %S_MSG option is not supported for the disabled index '%.*ls' on %S_MSG '%.*ls'."),
    (11435, 15, "The %S_MSG option is not supported for Heaps at %S_MSG '%.*ls'."),
];
