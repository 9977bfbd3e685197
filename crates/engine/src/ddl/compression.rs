//! DATA_COMPRESSION as statements say it.
//!
//! | said | answer |
//! |---|---|
//! | NONE, ROW, PAGE | the setting, kept with the index or heap |
//! | twice in one clause | 7711 |
//! | ON PARTITIONS | 7729: nothing is partitioned |
//! | COLUMNSTORE, COLUMNSTORE_ARCHIVE | 40517: there are no columnstore indexes |
//! | another word | 102 |
//!
//! The table's option is that of its heap or clustered index unless that index says another; other indexes say theirs
//! themselves. A clustered index that says nothing takes over the heap's setting, a heap that of the clustered index it was.

use crate::messages::{message, unsupported_option};
use thawdb_catalog::Compression;
use thawdb_tsql::ast::{IndexOption, IndexOptionKind, OptionItem, OptionValue};
use thawdb_types::SqlError;

/// The setting that a word names.
pub(crate) fn method(word: &str) -> Result<Compression, SqlError> {
    match Compression::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(word)) {
        Some(known) => Ok(known),
        None if word.to_ascii_uppercase().starts_with("COLUMNSTORE") => Err(unsupported_option(format!("DATA_COMPRESSION = {word}"))),
        None => Err(message(102, &[&word])),
    }
}

/// What the options of an index say, if they say it. `statement` and `object` are for 7729: "create", "index".
pub(crate) fn said(options: &[IndexOption], (statement, kind, name): (&str, &str, &str)) -> Result<Option<Compression>, SqlError> {
    let mut found = None;
    for option in options {
        let IndexOptionKind::DataCompression { method: word, partitions } = &option.kind else { continue };
        let line = option.span.line;
        if found.is_some() {
            return Err(message(7711, &[]).at_line(line));
        }
        if !partitions.is_empty() {
            return Err(message(7729, &[&statement, &kind, &kind, &name]).at_line(line));
        }
        found = Some(method(word).map_err(|error| error.at_line(line))?);
    }
    Ok(found)
}

/// What the options behind CREATE TABLE's columns say; any other option is refused by name.
pub(crate) fn of_table(options: &[OptionItem]) -> Result<Compression, SqlError> {
    let mut found = None;
    for option in options {
        let line = option.span.line;
        let word = match &option.value {
            OptionValue::Word(word) if option.name == "DATA_COMPRESSION" => word,
            _ => return Err(unsupported_option(&option.name).at_line(line)),
        };
        if found.is_some() {
            return Err(message(7711, &[]).at_line(line));
        }
        found = Some(method(word).map_err(|error| error.at_line(line))?);
    }
    Ok(found.unwrap_or_default())
}
