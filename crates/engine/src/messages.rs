//! How the engine raises messages of the catalogue in `thawdb_types`.

use std::fmt::Display;
use thawdb_types::SqlError;
pub(crate) use thawdb_types::message;

/// A row or key longer than a page holds: 511 or 1946.
pub(crate) fn too_long(bytes: usize, bytes_max: usize) -> SqlError {
    if bytes_max < thawdb_storage::Database::INLINE_BYTES_MAX {
        message(1946, &[&bytes, &"", &bytes_max, &"nonclustered"])
    } else {
        message(511, &[&bytes, &bytes_max])
    }
}

/// Whether a number has a text, for RAISERROR and sys.messages.
pub(crate) fn template(number: i32) -> Option<&'static str> {
    thawdb_types::messages::find(number).map(|found| found.text)
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
