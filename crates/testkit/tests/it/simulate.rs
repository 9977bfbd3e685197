//! The whole engine on the simulated disk: a few seeds of every kind of trouble, and that a seed replays.
//!
//! `THAWDB_SIMULATE_SEED` runs one seed, `THAWDB_SIMULATE_SEEDS` that many, from `THAWDB_SIMULATE_FROM` on, and with
//! `THAWDB_SIMULATE_ALL` violations do not end it; `thawdb simulate` is the long mode.

use thawdb_testkit::simulate::{Plan, Summary, run, run_plan};

/// Seeds of an ordinary run of the tests.
const SEEDS: u64 = 300;

#[test]
fn nothing_acknowledged_is_lost_and_no_damage_is_served() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match (variable("THAWDB_SIMULATE_SEED"), variable("THAWDB_SIMULATE_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => {
            let from = variable("THAWDB_SIMULATE_FROM").unwrap_or(0);
            from..from + count.unwrap_or(SEEDS)
        }
    };
    let mut summary = Summary::default();
    for seed in seeds {
        if variable("THAWDB_SIMULATE_ALL").is_some() {
            println!("running {seed}");
        }
        match run_plan(Plan { traces: variable("THAWDB_SIMULATE_SEED").is_some(), ..Plan::of(seed) }) {
            Ok(outcome) => summary.add(&outcome),
            Err(violation) if variable("THAWDB_SIMULATE_ALL").is_some() => println!("{violation}"),
            Err(violation) => panic!("{violation}"),
        }
    }
    println!("{summary}");
}

#[test]
fn a_seed_replays_byte_for_byte() {
    for seed in 0..12 {
        assert_eq!(run(seed).expect("no violation"), run(seed).expect("no violation"), "seed {seed}");
    }
}
