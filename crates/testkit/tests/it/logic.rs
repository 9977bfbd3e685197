//! Runs the files of `tests/logic`.
//!
//! `THAWDB_LOGIC=merge` runs those whose name has the word.

use std::path::Path;
use thawdb_testkit::logic::run_file;

/// The suite may only grow.
const RECORDS_MIN: usize = 500;

#[test]
fn answers_are_those_documented() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/logic");
    let chosen = std::env::var("THAWDB_LOGIC").ok();
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("the suite is there").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let (mut total, mut wrong) = (0, Vec::new());
    for file in files.iter().filter(|file| chosen.as_ref().is_none_or(|word| file.to_string_lossy().contains(word.as_str()))) {
        let text = std::fs::read_to_string(file).expect("readable");
        let (count, failures) = run_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        total += count;
        wrong.extend(failures.into_iter().map(|failure| format!("{}, {failure}", file.display())));
    }
    assert!(wrong.is_empty(), "{} of {total} records are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(chosen.is_some() || total >= RECORDS_MIN, "{total} records");
}
