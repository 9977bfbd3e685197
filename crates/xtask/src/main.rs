//! `cargo xtask tidy`, `cargo xtask check-floors`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let root = std::env::args().nth(2).map_or_else(xtask::workspace_root, std::path::PathBuf::from);
    let wanted: fn(&xtask::Finding) -> bool = match std::env::args().nth(1).as_deref() {
        Some("tidy") => |finding| !xtask::floors::RULES.contains(&finding.rule),
        Some("check-floors") => |finding| xtask::floors::RULES.contains(&finding.rule),
        Some("check") => |_| true,
        _ => {
            eprintln!("usage: cargo xtask tidy | check-floors | check [folder]");
            return ExitCode::from(2);
        }
    };
    match xtask::check_all(&root) {
        Ok(mut findings) => {
            findings.retain(wanted);
            for finding in &findings {
                println!("{finding}");
            }
            println!("{} findings", findings.len());
            if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("cannot read the workspace: {error}");
            ExitCode::FAILURE
        }
    }
}
