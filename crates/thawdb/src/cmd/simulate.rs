//! `thawdb simulate`: the whole engine on a simulated disk, one seed after another; the long mode of testkit's tests.
//!
//! A violation is printed with its plan and schedule, and ends the command with 1 (or the next seed follows, with
//! `--keep-going`). `--seed N` alone replays it. Failure: a panic that ends the process names its seed first, and so does
//! a run that does not come to its end in [`RUN_SECONDS_MAX`] (a wait that nobody can end).

use crate::args::SimulateArguments;
use crate::cmd::Failure;
use crate::cmd::figures::Stopwatch;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thawdb_testkit::simulate::{Plan, Summary, Trouble, run_plan};

/// What the process ends with when a run does not end.
const HANGS: u8 = 3;

/// Runs between two lines of progress.
const PROGRESS_RUNS: u64 = 1_000;

/// Longest run: a thousand times what one takes on a quiet machine.
const RUN_SECONDS_MAX: u64 = 120;

/// The seed that runs, for a panic nobody catches and for the watch.
static SEED: AtomicU64 = AtomicU64::new(0);

/// Ends the process when one seed runs too long: the thread that runs it cannot be asked to stop.
fn watch_for_a_run_without_end() -> std::io::Result<()> {
    let watch = || {
        let mut last = u64::MAX;
        loop {
            // Relaxed: a seed seen late is a seed seen twice, which costs one more turn.
            let seed = SEED.load(Ordering::Relaxed);
            if seed == last {
                println!("seed {seed}: the run does not end\nreplay: thawdb simulate --trace --seed {seed}\n");
                std::process::exit(i32::from(HANGS));
            }
            last = seed;
            std::thread::sleep(Duration::from_secs(RUN_SECONDS_MAX));
        }
    };
    std::thread::Builder::new().name("thawdb-watch".into()).spawn(watch).map(drop)
}

/// Runs the command.
pub fn run(arguments: &SimulateArguments) -> Result<ExitCode, Failure> {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Relaxed: the number was stored by this thread.
        eprintln!("seed {}:", SEED.load(Ordering::Relaxed));
        told(panic);
    }));
    if !arguments.trace {
        watch_for_a_run_without_end()?;
    }
    let watch = Stopwatch::start();
    let mut summary = Summary::default();
    let mut violations = 0;
    let wanted = |seed: &u64| !arguments.small_logs || Plan::of(*seed).trouble == Trouble::SmallLog;
    let seeds = (arguments.seed..u64::MAX).filter(wanted);
    for seed in seeds.take(usize::try_from(arguments.runs).unwrap_or(usize::MAX)) {
        SEED.store(seed, Ordering::Relaxed);
        match run_plan(Plan { traces: arguments.trace, ..Plan::of(seed) }) {
            Ok(outcome) => summary.add(&outcome),
            Err(violation) => {
                violations += 1;
                println!("{violation}\nreplay: thawdb simulate --trace --seed {seed}\n");
                if !arguments.keep_going {
                    break;
                }
            }
        }
        if summary.runs().is_multiple_of(PROGRESS_RUNS) && arguments.runs > PROGRESS_RUNS {
            eprintln!("{} runs, {violations} violations, {:.0} s", summary.runs(), watch.seconds());
        }
    }
    println!("{summary}{} runs without a violation, {violations} with one, {:.1} s", summary.runs(), watch.seconds());
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
