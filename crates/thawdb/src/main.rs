//! The ThawDB binary: the command line, and nothing else.

use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;
use thawdb::args::{Arguments, Command};
use thawdb::cmd;

fn main() -> ExitCode {
    let started = Instant::now();
    let outcome = match Arguments::parse().command {
        Command::Serve(arguments) => cmd::serve::run(&arguments, started),
        Command::Sql(arguments) => cmd::sql::run(&arguments),
        Command::Demo(arguments) => cmd::demo::run(&arguments),
        Command::Bench(arguments) => cmd::bench::run(&arguments),
        Command::DumpPage(arguments) => cmd::dump::run_page(&arguments),
        Command::DumpLog(arguments) => cmd::dump::run_log(&arguments),
        Command::Fuzz(arguments) => cmd::fuzz::run(&arguments),
        Command::Simulate(arguments) => cmd::simulate::run(&arguments),
        Command::DemoWriter(arguments) => cmd::demo::writer::run(&arguments),
        Command::BenchRecoveryWriter(arguments) => cmd::bench::recovery::write(&arguments),
        Command::DemoBuilder(arguments) => cmd::demo::builder::run(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        eprintln!("thawdb: {failure}");
        ExitCode::FAILURE
    })
}
