//! What is allowed to break a rule, for now.
//!
//! ```text
//! # why it is so
//! rule place                    crates/a/src/b.rs, or crates/a/src/b.rs::function for function-length
//! ```
//!
//! 1. The list may only shrink: [`EXCEPTIONS_MAX`] is its length and is lowered with it, never raised without a reason
//!    in the commit (test `the_list_has_shrunk`).
//! 2. An exception that nothing needs is a finding (`stale-exception`).
//! 3. No exception for the length of a file: such a file is split.

use crate::Finding;

/// The list, relative to the workspace.
pub const FILE: &str = "crates/xtask/exceptions.txt";

/// How many exceptions there may be.
pub const EXCEPTIONS_MAX: usize = 1;

/// The findings that no exception covers, and those about the list itself.
#[must_use]
pub fn apply(findings: Vec<Finding>, listed: &str) -> Vec<Finding> {
    let mut exceptions: Vec<(usize, &str, &str, bool)> = Vec::new();
    let mut left = Vec::new();
    for (at, line) in listed.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(' ') {
            Some((rule, place)) if rule != "file-length" => exceptions.push((at + 1, rule, place.trim(), false)),
            _ => left.push(about_list(at + 1, format!("`{line}` is no exception this list may hold"))),
        }
    }
    if exceptions.len() > EXCEPTIONS_MAX {
        left.push(about_list(0, format!("{} exceptions, {EXCEPTIONS_MAX} are the most: the list may only shrink", exceptions.len())));
    }
    for finding in findings {
        match exceptions.iter_mut().find(|(_, rule, place, _)| *rule == finding.rule && *place == finding.place) {
            Some(exception) => exception.3 = true,
            None => left.push(finding),
        }
    }
    let stale = exceptions.iter().filter(|exception| !exception.3);
    left.extend(stale.map(|(line, rule, place, _)| about_list(*line, format!("`{rule} {place}` is needed no more: remove it"))));
    left
}

fn about_list(line: usize, text: String) -> Finding {
    Finding { rule: "stale-exception", place: FILE.to_owned(), line, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &'static str, place: &str) -> Finding {
        Finding { rule, place: place.to_owned(), line: 3, text: String::new() }
    }

    #[test]
    fn covers_by_rule_and_place_and_reports_what_is_stale() {
        let findings = vec![finding("unwrap", "a.rs"), finding("unwrap", "b.rs"), finding("header", "a.rs")];
        let left = apply(findings, "# why\nunwrap a.rs\n\nunsafe c.rs\nfile-length a.rs\n");
        let shown: Vec<_> = left.iter().map(|f| (f.rule, f.place.as_str(), f.line)).collect();
        assert!(shown.contains(&("unwrap", "b.rs", 3)) && shown.contains(&("header", "a.rs", 3)));
        assert!(!shown.contains(&("unwrap", "a.rs", 3)));
        assert!(shown.contains(&("stale-exception", FILE, 4)), "the unsafe one is not needed");
        assert!(shown.contains(&("stale-exception", FILE, 5)), "a file's length has no exception");
    }
}
