//! The session context: values by key that sp_set_session_context sets and SESSION_CONTEXT tells.
//!
//! 1. Keys and values together take [`BYTES_MAX`] at most ([`KeyValues::set`], 15665).
//! 2. A key that was set read-only keeps its value until the session is reset (15664).
//!
//! Keys are one whatever their case and the spaces behind them. Transactions have no part in it. A reset of the connection
//! forgets everything (`Session::reset`).

use crate::messages::message;
use std::collections::BTreeMap;
use thawdb_types::{Scalar, SqlError};

/// What a session may keep.
const BYTES_MAX: usize = 1 << 20;
/// The longest key, in bytes of UTF-16.
const KEY_BYTES_MAX: usize = 256;

#[derive(Debug, Clone)]
struct Entry {
    /// The key as it was first written.
    key: String,
    /// The bytes of a sql_variant.
    value: Vec<u8>,
    read_only: bool,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.key.encode_utf16().count() * 2 + self.value.len()
    }
}

/// The values of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyValues {
    entries: BTreeMap<String, Entry>,
}

fn folded(key: &str) -> String {
    key.trim_end_matches(' ').to_lowercase()
}

impl KeyValues {
    /// The value of a key as a sql_variant; NULL if it has none.
    pub(crate) fn get(&self, key: &str) -> Scalar {
        // A key that was locked without a value has none.
        let entry = self.entries.get(&folded(key)).filter(|entry| !entry.value.is_empty());
        entry.map_or(Scalar::Null, |entry| Scalar::Binary(entry.value.clone()))
    }

    /// Sets a key to the bytes of a sql_variant, or frees it; 15664, 15665, 15666.
    pub(crate) fn set(&mut self, key: &str, value: Option<Vec<u8>>, read_only: bool) -> Result<(), SqlError> {
        if key.is_empty() || key.encode_utf16().count() * 2 > KEY_BYTES_MAX {
            return Err(message(15666, &[&key]));
        }
        let folded = folded(key);
        let known = self.entries.get(&folded);
        if let Some(known) = known.filter(|known| known.read_only) {
            return Err(message(15664, &[&known.key]));
        }
        let entry =
            Entry { key: known.map_or_else(|| key.to_owned(), |known| known.key.clone()), value: value.unwrap_or_default(), read_only };
        if entry.value.is_empty() && !read_only {
            self.entries.remove(&folded);
            return Ok(());
        }
        let others: usize = self.entries.iter().filter(|(name, _)| **name != folded).map(|(_, other)| other.bytes()).sum();
        if others + entry.bytes() > BYTES_MAX {
            return Err(message(15665, &[&entry.key]));
        }
        self.entries.insert(folded, entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_one_whatever_their_case_and_locks_hold() {
        let mut values = KeyValues::default();
        values.set("Email", Some(vec![1]), false).expect("fits");
        values.set("email ", Some(vec![2]), true).expect("may change");
        assert_eq!(values.get("EMAIL"), Scalar::Binary(vec![2]));
        let refused = values.set("email", Some(vec![3]), false).expect_err("is read-only");
        assert_eq!((refused.number, refused.text.contains("'Email'")), (15664, true));
    }

    #[test]
    fn freeing_makes_room() {
        let mut values = KeyValues::default();
        for number in 0..131 {
            values.set(&format!("k{number}"), Some(vec![7; 7990]), false).expect("fits");
        }
        let full = values.set("more", Some(vec![7; 7990]), false).expect_err("is beyond 1 MB");
        assert_eq!(full.number, 15665);
        values.set("k0", None, false).expect("frees");
        values.set("more", Some(vec![7; 7990]), false).expect("fits again");
        assert_eq!(values.get("k0"), Scalar::Null);
        assert_eq!(values.set(&"k".repeat(129), None, false).map_err(|error| error.number), Err(15666));
    }
}
