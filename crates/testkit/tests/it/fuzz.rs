//! Every codec against mutated input: a bounded part of what `thawdb fuzz` does without end.

use thawdb_observe::seeded::SeededRandom;
use thawdb_testkit::fuzz::TARGETS;

/// Inputs of each target in an ordinary run of the tests.
const INPUTS: u64 = 5_000;

#[test]
fn no_decoder_panics() {
    for (name, target) in TARGETS {
        for seed in 0..INPUTS {
            let outcome = std::panic::catch_unwind(|| target(&mut SeededRandom::new(seed)));
            assert!(outcome.is_ok(), "target {name}, seed {seed}");
        }
    }
}
