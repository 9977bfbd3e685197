//! The house rules that a machine can check: `cargo xtask tidy` and `cargo xtask check-floors`.
//!
//! ```text
//! files of the workspace ─ Source (text, code without comments and strings, test lines) ─ rules ─> findings
//! Cargo.toml of each crate ─ dependencies ─ floors ─> findings
//! findings - exceptions.txt ─> what fails, and exceptions that nothing needs any more
//! ```
//!
//! 1. A rule sees one file's masked code, so that a word in a string or comment is no finding.
//! 2. Exceptions live in `crates/xtask/exceptions.txt`, one a line; one that is not needed is itself a finding, and their
//!    number may not exceed [`exceptions::EXCEPTIONS_MAX`], which may only be lowered.
//! 3. No dependency: the check must be built in a second and run in one.
//!
//! Both checks are ordinary tests too (`tests/it`). It does not replace rustc's and clippy's lints, which see types.

pub mod exceptions;
pub mod floors;
pub mod functions;
pub mod source;
pub mod tidy;

use std::path::{Path, PathBuf};

/// One thing that is against a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule's name, as exceptions name it.
    pub rule: &'static str,
    /// The file, relative to the workspace, with `/`; of a function `file::function`.
    pub place: String,
    /// Line from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub text: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.place.split("::").next().unwrap_or(&self.place);
        write!(f, "{file}:{}: [{}] {}", self.line, self.rule, self.text)
    }
}

/// The workspace this crate belongs to.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in crates/");
    crates.parent().expect("crates/ lies in the workspace").to_owned()
}

/// Both checks, exceptions applied.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn check_all(root: &Path) -> std::io::Result<Vec<Finding>> {
    let mut findings = tidy::check(root)?;
    findings.extend(floors::check(root)?);
    findings.sort();
    let listed = std::fs::read_to_string(root.join(exceptions::FILE)).unwrap_or_default();
    Ok(exceptions::apply(findings, &listed))
}
