//! Messages that only an engine raises, beside the catalogue of `thawdb_types`.
//!
//! Texts are SQL Server's, with its own place holders. A number is in one of the two tables, never in both.

use std::fmt::Display;
use thawdb_types::SqlError;
use thawdb_types::error::format_text;

/// (number, severity, text), rising by number: [`find`] searches by halves.
const CATALOGUE: &[(i32, u8, &str)] = &[
    (179, 15, "Cannot use the OUTPUT option when passing a constant to a stored procedure."),
    (226, 16, "%ls statement not allowed within multi-statement transaction."),
    (1999, 16, "Column '%.*ls' in table '%.*ls' is of a type that is invalid for use as included column in an index."),
    (2501, 16, "Cannot find a table or object with the name \"%.*ls\". Check the system catalog."),
    (2560, 16, "Parameter %d is incorrect for this DBCC statement."),
    (2571, 14, "User '%.*ls' does not have permission to run %ls."),
    (2738, 16, "A table can only have one timestamp column. Because table '%.*ls' already has one, the column '%.*ls' cannot be added."),
    (2755, 16, "SETERROR and severity are not consistent."),
    (2759, 16, "CREATE SCHEMA failed due to previous errors."),
    (2786, 16, "The data type of substitution parameter %d does not match the expected type of the format specification."),
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
        8946,
        16,
        "Table error: Allocation page %S_PGID has invalid %ls page header values. Type is %d. Check type, alloc unit ID and page ID on the page.",
    ),
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
    CATALOGUE.binary_search_by_key(&number, |entry| entry.0).ok().map(|index| &CATALOGUE[index])
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
        assert!(CATALOGUE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for entry in CATALOGUE {
            assert!(thawdb_types::messages::find(entry.0).is_none(), "{} is in both tables", entry.0);
        }
    }

    #[test]
    fn place_holders_are_filled_in_order() {
        let error = message(8107, &[&"a", &"b", &"c", &"d"]);
        assert_eq!(error.text, "IDENTITY_INSERT is already ON for table 'a.b.c'. Cannot perform SET operation for table 'd'.");
        assert_eq!(message(1205, &[&51, &"lock"]).severity, 13);
    }

    #[test]
    fn every_number_raised_has_a_text() {
        // Numbers raised in this crate are written as `message(N`: each must be in a table.
        let sources = include_str!("../tests/numbers.txt");
        for number in sources.lines().filter_map(|line| line.trim().parse::<i32>().ok()) {
            assert!(template(number).is_some(), "{number} has no text");
        }
    }
}
