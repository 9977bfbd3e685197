//! Texts parsed once: their trees, and beside each what running it has led to.
//!
//! ```text
//! text ─► ParsedTexts ─► Parsed { tree, kept: KeptRuns }   hit: the plan of a step by its number
//!                                     └ miss ─► PlanCache, by text, for statements that occur in other texts too
//! ```
//! Invariant: a tree given out is what the parser made of this very text under this setting of QUOTED_IDENTIFIER.
//! Bounded in texts; texts with errors or longer than [`TEXT_BYTES_MAX`] are not kept.
//!
//! Lock: PARSED_TEXTS (rank 5), for a look or a change.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_tsql::ast::Parameter;
use thawdb_tsql::{Batch, ParseOptions, SyntaxError, parse_batch, parse_parameter_list};

use crate::batch::kept::KeptRuns;

static PARSED_TEXTS: LockClass = LockClass::new("PARSED_TEXTS", 5);

/// Texts kept a shard: 2,048 in all, at about 4 KiB a tree.
const ENTRIES_MAX: usize = 128;
const SHARD_COUNT: usize = 16;
/// Longer texts are loads of literals or scripts, seldom said twice.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// A text and what was made of it.
pub(crate) struct Parsed {
    pub(crate) batch: Batch,
    pub(crate) kept: KeptRuns,
    /// Of a template: whether texts may be run by it (`batch::simple`).
    pub(crate) simple: OnceLock<bool>,
}

impl Parsed {
    fn new(text: &str, options: &ParseOptions) -> Self {
        Self { batch: parse_batch(text, options), kept: KeptRuns::default(), simple: OnceLock::new() }
    }
}

struct Entry<T> {
    text: Box<str>,
    quoted_identifier: bool,
    used: u64,
    made: Arc<T>,
}

struct Shard<T> {
    // Keyed by a hash, so that a look compares one text at most; order never leaves this map.
    entries: BTreeMap<u64, Entry<T>>,
    clock: u64,
}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), clock: 0 }
    }
}

/// Things made of texts.
struct Kept<T>(Vec<Mutex<Shard<T>>>);

impl<T> Kept<T> {
    fn new() -> Self {
        Self((0..SHARD_COUNT).map(|_| Mutex::new(&PARSED_TEXTS, Shard::default())).collect())
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard<T>> {
        &self.0[usize::try_from(hash % SHARD_COUNT as u64).expect("below the shard count")]
    }

    fn get(&self, hash: u64, text: &str, quoted_identifier: bool) -> Option<Arc<T>> {
        let mut shard = self.shard(hash).lock();
        shard.clock += 1;
        let clock = shard.clock;
        let entry = shard.entries.get_mut(&hash)?;
        if *entry.text != *text || entry.quoted_identifier != quoted_identifier {
            return None;
        }
        entry.used = clock;
        Some(entry.made.clone())
    }

    fn put(&self, hash: u64, text: &str, quoted_identifier: bool, made: Arc<T>) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        let mut shard = self.shard(hash).lock();
        if shard.entries.len() >= ENTRIES_MAX {
            let mut ages: Vec<u64> = shard.entries.values().map(|entry| entry.used).collect();
            ages.sort_unstable();
            let oldest_kept = ages[ages.len() / 8];
            shard.entries.retain(|_, entry| entry.used > oldest_kept);
        }
        shard.clock += 1;
        let used = shard.clock;
        shard.entries.insert(hash, Entry { text: text.into(), quoted_identifier, used, made });
    }

    fn clear(&self) {
        self.0.iter().for_each(|shard| *shard.lock() = Shard::default());
    }
}

/// The parsed texts of an instance.
pub(crate) struct ParsedTexts {
    batches: Kept<Parsed>,
    parameters: Kept<Vec<Parameter>>,
}

fn hash_of(text: &str, quoted_identifier: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (text, quoted_identifier).hash(&mut hasher);
    hasher.finish()
}

impl ParsedTexts {
    pub(crate) fn new() -> Self {
        Self { batches: Kept::new(), parameters: Kept::new() }
    }

    /// The tree of a batch that was made before.
    pub(crate) fn known(&self, text: &str, options: &ParseOptions) -> Option<Arc<Parsed>> {
        self.batches.get(hash_of(text, options.quoted_identifier), text, options.quoted_identifier)
    }

    /// The tree of a batch; one with errors is made anew each time.
    pub(crate) fn batch(&self, text: &str, options: &ParseOptions) -> Arc<Parsed> {
        let hash = hash_of(text, options.quoted_identifier);
        if let Some(kept) = self.batches.get(hash, text, options.quoted_identifier) {
            return kept;
        }
        let parsed = Arc::new(Parsed::new(text, options));
        if parsed.batch.errors.is_empty() {
            self.batches.put(hash, text, options.quoted_identifier, parsed.clone());
        }
        parsed
    }

    /// The parameters that a declaration declares.
    pub(crate) fn parameters(&self, text: &str) -> Result<Arc<Vec<Parameter>>, Vec<SyntaxError>> {
        let options = ParseOptions::default();
        let hash = hash_of(text, options.quoted_identifier);
        if let Some(kept) = self.parameters.get(hash, text, options.quoted_identifier) {
            return Ok(kept);
        }
        let parsed = Arc::new(parse_parameter_list(text, &options)?);
        self.parameters.put(hash, text, options.quoted_identifier, parsed.clone());
        Ok(parsed)
    }

    /// Forgets everything (DBCC FREEPROCCACHE).
    pub(crate) fn clear(&self) {
        self.batches.clear();
        self.parameters.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once_and_by_its_setting() {
        let texts = ParsedTexts::new();
        let options = |quoted_identifier| ParseOptions { quoted_identifier };
        let first = texts.batch("SELECT 1", &options(true));
        assert!(Arc::ptr_eq(&first, &texts.batch("SELECT 1", &options(true))));
        assert!(!Arc::ptr_eq(&first, &texts.batch("SELECT 1", &options(false))));
        let wrong = texts.batch("SELEC 1 FROM", &options(true));
        assert!(!wrong.batch.errors.is_empty());
        assert!(!Arc::ptr_eq(&wrong, &texts.batch("SELEC 1 FROM", &options(true))), "errors are not kept");
        texts.clear();
        assert!(!Arc::ptr_eq(&first, &texts.batch("SELECT 1", &options(true))));
    }

    #[test]
    fn many_texts_do_not_grow_it_for_ever() {
        let texts = ParsedTexts::new();
        for number in 0..4 * ENTRIES_MAX * SHARD_COUNT {
            texts.batch(&format!("SELECT {number}"), &ParseOptions::default());
        }
        let kept: usize = texts.batches.0.iter().map(|shard| shard.lock().entries.len()).sum();
        assert!(kept <= ENTRIES_MAX * SHARD_COUNT, "{kept} kept");
    }
}
