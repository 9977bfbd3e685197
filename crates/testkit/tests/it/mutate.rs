//! Mutated pages, log blocks and files: each is seen or harmless, none panics, the other database goes on.
//!
//! `THAWDB_MUTATIONS` says how many; `THAWDB_MUTATION` runs one.

use std::collections::BTreeMap;
use thawdb_testkit::mutate::{Fate, Place, run};

/// Mutations of an ordinary run of the tests.
const MUTATIONS: u64 = 250;

#[test]
fn every_mutation_is_seen_or_harmless() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match variable("THAWDB_MUTATION") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("THAWDB_MUTATIONS").unwrap_or(MUTATIONS),
    };
    let count = seeds.end - seeds.start;
    let mut fates: BTreeMap<(Place, Fate), u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for seed in seeds {
        match run(seed) {
            Ok(what) => *fates.entry(what).or_default() += 1,
            Err(what) => wrong.push(what),
        }
    }
    println!("{fates:?}");
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    if count >= MUTATIONS {
        let seen: u64 = fates.iter().filter(|((_, fate), _)| *fate == Fate::Detected).map(|(_, count)| count).sum();
        assert!(seen > count / 4, "the mutations hardly hit anything: {fates:?}");
    }
}
