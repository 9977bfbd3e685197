//! `thawdb fuzz`: testkit's fuzz targets and mutations for as long as one likes.
//!
//! An input that makes a decoder panic ends the command with 1 and names its target and seed; the seed alone
//! (`--seed N --inputs 1`) repeats it.

use crate::args::FuzzArguments;
use crate::cmd::Failure;
use crate::cmd::figures::Stopwatch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use thawdb_observe::seeded::SeededRandom;
use thawdb_testkit::fuzz::TARGETS;
use thawdb_testkit::mutate;

/// Inputs between two looks at the clock.
const BATCH: u64 = 100;

/// Runs the command.
pub fn run(arguments: &FuzzArguments) -> Result<ExitCode, Failure> {
    let chosen: Vec<_> = TARGETS.iter().filter(|(name, _)| arguments.target == "all" || arguments.target == *name).collect();
    if arguments.target == "mutate" {
        return until("mutate", arguments, arguments.seconds as f64, &|seed| mutate::run(seed).map(drop));
    }
    if chosen.is_empty() {
        return Err(Failure(format!("no target {}", arguments.target)));
    }
    let seconds = arguments.seconds as f64 / chosen.len() as f64;
    for (name, target) in chosen {
        let outcome = until(name, arguments, seconds, &|seed| {
            target(&mut SeededRandom::new(seed));
            Ok(())
        })?;
        if outcome != ExitCode::SUCCESS {
            return Ok(outcome);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs one target seed after seed until its time or its inputs are over.
fn until(name: &str, arguments: &FuzzArguments, seconds: f64, one: &dyn Fn(u64) -> Result<(), String>) -> Result<ExitCode, Failure> {
    let watch = Stopwatch::start();
    let mut seed = arguments.seed;
    let is_over = |seed: u64| match arguments.inputs {
        Some(count) => seed - arguments.seed >= count,
        None => (seed - arguments.seed).is_multiple_of(BATCH) && watch.seconds() >= seconds,
    };
    while !is_over(seed) {
        match catch_unwind(AssertUnwindSafe(|| one(seed))) {
            Ok(Ok(())) => seed += 1,
            Ok(Err(what)) => return told(name, seed, &what),
            Err(_) => return told(name, seed, "it panicked"),
        }
    }
    println!("{name}: {} inputs, {:.1} s", seed - arguments.seed, watch.seconds());
    Ok(ExitCode::SUCCESS)
}

fn told(name: &str, seed: u64, what: &str) -> Result<ExitCode, Failure> {
    println!("{name}, seed {seed}: {what}\nrepeat: thawdb fuzz {name} --seed {seed} --inputs 1");
    Ok(ExitCode::FAILURE)
}
