//! Messages that only an engine raises, beside the catalogue of `thawdb_types`.
//!
//! Texts are SQL Server's, with its own place holders. A number is in one of the two tables, never in both.

use std::fmt::Display;
use thawdb_types::SqlError;
use thawdb_types::error::format_text;

/// (number, severity, text), rising by number: [`find`] searches by halves.
const CATALOGUE: &[(i32, u8, &str)] = &[
    (179, 15, "Cannot use the OUTPUT option when passing a constant to a stored procedure."),
    (
        608,
        16,
        "No catalog entry found for partition ID %I64d in database %d. The metadata is inconsistent. Run DBCC CHECKDB to check for a metadata corruption.",
    ),
    (1999, 16, "Column '%.*ls' in table '%.*ls' is of a type that is invalid for use as included column in an index."),
    (2501, 16, "Cannot find a table or object with the name \"%.*ls\". Check the system catalog."),
    (2560, 16, "Parameter %d is incorrect for this DBCC statement."),
    (
        2570,
        16,
        "Page %S_PGID, slot %d in object ID %d, index ID %d, partition ID %I64d, alloc unit ID %I64d (type \"%.*ls\"). Column \"%.*ls\" value is out of range for data type \"%.*ls\".  Update column to a legal value.",
    ),
    (2571, 14, "User '%.*ls' does not have permission to run %ls."),
    (2755, 16, "SETERROR and severity are not consistent."),
    (2759, 16, "CREATE SCHEMA failed due to previous errors."),
    (3617, 11, "Operation cancelled by user."),
    (
        3624,
        20,
        "A system assertion check has failed. Check the SQL Server error log for details. Typically, an assertion failure is caused by a software bug or data corruption. To check for database corruption, consider running DBCC CHECKDB. Detail: %ls.",
    ),
    (5008, 16, "This ALTER DATABASE statement is not supported. Correct the syntax and execute the statement again."),
    (5058, 16, "Option '%.*ls' cannot be set in database '%.*ls'."),
    (5169, 16, "FILEGROWTH cannot be greater than MAXSIZE for file '%.*ls'."),
    (6101, 16, "Session ID %d is not valid."),
    (
        8646,
        21,
        "Unable to find index entry in index ID %d, of table %d, in database '%.*ls'. The indicated index is corrupt or there is a problem with the current update plan. Run DBCC CHECKDB or DBCC CHECKTABLE. If the problem persists, contact product support.",
    ),
    (8904, 16, "Extent %S_PGID in database ID %d is allocated by more than one allocation object."),
    (
        8933,
        16,
        "Table error: Object ID %d, index ID %d, partition ID %I64d, alloc unit ID %I64d (type %.*ls). The low key value on page %S_PGID (level %d) is not >= the key value in the parent %S_PGID slot %d.",
    ),
    (
        8946,
        16,
        "Table error: Allocation page %S_PGID has invalid %ls page header values. Type is %d. Check type, alloc unit ID and page ID on the page.",
    ),
    (8954, 16, "%.*ls found %d allocation errors and %d consistency errors not associated with any single object."),
    (
        8970,
        16,
        "Row error: Object ID %d, index ID %d, partition ID %I64d, alloc unit ID %I64d (type %.*ls), page ID %S_PGID, row ID %d. Column '%.*ls' was created NOT NULL, but is NULL in the row.",
    ),
    (15048, 16, "Valid values of the database compatibility level are 100, 110, 120, 130, 140, 150, or 160."),
    (
        35100,
        16,
        "Error number %d in the THROW statement is outside the valid range. Specify an error number in the valid range of 50000 to 2147483647.",
    ),
    (40510, 16, "Statement '%.*ls' is not supported in this version of SQL Server."),
];

/// A row or key longer than a page holds: 511 or 1946.
pub(crate) fn too_long(bytes: usize, bytes_max: usize) -> SqlError {
    if bytes_max < thawdb_storage::Database::INLINE_BYTES_MAX {
        message(1946, &[&bytes, &"", &bytes_max, &"nonclustered"])
    } else {
        message(511, &[&bytes, &bytes_max])
    }
}

fn find(number: i32) -> Option<&'static (i32, u8, &'static str)> {
    let within = |catalogue: &'static [(i32, u8, &'static str)]| {
        catalogue.binary_search_by_key(&number, |entry| entry.0).ok().map(|index| &catalogue[index])
    };
    within(CATALOGUE).or_else(|| within(crate::messages_files::CATALOGUE)).or_else(|| within(crate::messages_index::CATALOGUE))
}

/// The message of `number` with its place holders filled, line unknown.
pub(crate) fn message(number: i32, arguments: &[&dyn Display]) -> SqlError {
    match find(number) {
        Some((_, severity, text)) => {
            SqlError { number, severity: *severity, state: 1, text: format_text(text, arguments), line: 0, procedure: None }
        }
        None => thawdb_types::message(number, arguments),
    }
}

/// Whether a number has a text, for RAISERROR and sys.messages.
pub(crate) fn template(number: i32) -> Option<&'static str> {
    find(number).map(|found| found.2).or_else(|| thawdb_types::messages::find(number).map(|found| found.text))
}

/// `Statement '%.*ls' is not supported`: what is not built says so by name.
pub(crate) fn unsupported(what: impl Display) -> SqlError {
    message(40510, &[&what])
}

/// `Keyword or statement option '%.*ls' is not supported`.
pub(crate) fn unsupported_option(what: impl Display) -> SqlError {
    message(40517, &[&what])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_rises_and_repeats_nothing() {
        let (files, indexes) = (crate::messages_files::CATALOGUE, crate::messages_index::CATALOGUE);
        assert!([CATALOGUE, files, indexes].iter().all(|list| list.windows(2).all(|pair| pair[0].0 < pair[1].0)));
        let all: Vec<_> = CATALOGUE.iter().chain(files).chain(indexes).collect();
        let mut numbers: Vec<_> = all.iter().map(|entry| entry.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all.len(), "a number is in two tables");
        for entry in all {
            assert!(thawdb_types::messages::find(entry.0).is_none(), "{} is in both tables", entry.0);
        }
    }

    #[test]
    fn place_holders_are_filled_in_order() {
        let error = message(8107, &[&"a", &"b", &"c", &"d"]);
        assert_eq!(error.text, "IDENTITY_INSERT is already ON for table 'a.b.c'. Cannot perform SET operation for table 'd'.");
        assert_eq!(message(1205, &[&51, &"lock"]).severity, 13);
    }

    /// Every `message(N` and `RAISERROR(N` written in the files of a folder.
    fn raised(folder: &std::path::Path, numbers: &mut Vec<i32>) {
        for entry in std::fs::read_dir(folder).expect("sources are there").flatten() {
            if entry.path().is_dir() {
                raised(&entry.path(), numbers);
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).expect("sources are text");
            for start in ["message(", "RAISERROR("] {
                let places = text.match_indices(start).map(|(at, _)| &text[at + start.len()..]);
                numbers.extend(
                    places.filter_map(|rest| {
                        rest.split(|c: char| !c.is_ascii_digit() && c != '_').next()?.replace('_', "").parse::<i32>().ok()
                    }),
                );
            }
        }
    }

    #[test]
    fn every_number_raised_has_a_text() {
        let mut numbers = Vec::new();
        raised(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut numbers);
        assert!(numbers.len() > 100, "the sources were not found");
        let missing: Vec<_> = numbers.into_iter().filter(|number| *number != 0 && template(*number).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} have no text");
    }
}
