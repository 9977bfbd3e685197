//! The rules about single files.
//!
//! ```text
//! file-length      1,500 lines outside tests            header       begins with //!
//! function-length  70 lines                             unwrap       none outside tests
//! platform         clocks, threads, files, sockets and std locks only in the crates that own them
//! unsafe           only in device, storage::pool and named kernels
//! to-do            with an owner or issue               ignored-test none
//! absolute-path    no path of one machine, in any text of the project
//! ```
//!
//! The numbers and the reasons are those of the house rules. Each rule is one function over one [`Source`].

use std::fs;
use std::io;
use std::path::Path;

use crate::Finding;
use crate::functions::functions;
use crate::source::{Source, read_all, walk};

/// Longest file, lines outside tests. Beyond it a file holds more than one thing.
pub const FILE_LINES_MAX: usize = 1500;

/// Longest function. Flat dispatch and grammar tables are named in the exceptions.
pub const FUNCTION_LINES_MAX: usize = 70;

/// Where clocks, threads, files, sockets and std's locks may be used directly: the layer that wraps them, the binary,
/// the listener, and what is no part of the product.
const PLATFORM: &[&str] = &[
    "crates/observe/",
    "crates/device/",
    "crates/thawdb/",
    "crates/tds/src/server",
    "crates/tds/src/client",
    "crates/testkit/",
    "crates/xtask/",
];

/// Where `unsafe` may stand. A new kernel module is named here when its invariants are written down.
const UNSAFE: &[&str] = &["crates/device/", "crates/storage/src/pool"];

/// What only [`PLATFORM`] may say. Each is split so that this file does not say it.
const PLATFORM_WORDS: &[(&str, &str)] = &[
    ("Instant::now", "take the time from device::Env"),
    ("SystemTime", "take the time from device::Env"),
    ("thread::spawn", "run work on the workers that device::Env gives"),
    ("std::fs", "reach files through device::Env"),
    ("std::net", "sockets belong to the listener"),
];

/// std's locks, which have neither name nor count.
const LOCKS: &[&str] = &["Mutex", "RwLock", "Condvar"];

/// Kinds of files whose text is searched for absolute paths.
const TEXTS: &[&str] = &["rs", "md", "toml", "sh", "yml", "yaml", "py", "go", "txt", "sql", "proptest-regressions"];

/// All findings about single files.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let files = walk(root, is_text)?;
    for path in files.iter().filter(|path| *path != "crates/xtask/src/tidy.rs") {
        // A file that is no UTF-8 is no text of ours.
        if let Ok(text) = String::from_utf8(fs::read(root.join(path))?) {
            absolute_paths(path, &text, &mut findings);
        }
    }
    for source in read_all(root, &files)? {
        check_source(&source, &mut findings);
    }
    Ok(findings)
}

/// All rules about one Rust file.
pub fn check_source(source: &Source, findings: &mut Vec<Finding>) {
    file_length(source, findings);
    function_length(source, findings);
    header(source, findings);
    unwraps(source, findings);
    platform(source, findings);
    locks(source, findings);
    unsafe_code(source, findings);
    to_dos(source, findings);
    ignored_tests(source, findings);
}

fn is_text(path: &Path) -> bool {
    match path.extension() {
        Some(extension) => TEXTS.iter().any(|text| extension == *text),
        // Scripts without an extension live in .ci only.
        None => path.parent().is_some_and(|folder| folder.ends_with(".ci")),
    }
}

fn finding(rule: &'static str, place: &str, line: usize, text: impl Into<String>) -> Finding {
    Finding { rule, place: place.to_owned(), line, text: text.into() }
}

fn file_length(source: &Source, findings: &mut Vec<Finding>) {
    let count = source.production_line_count();
    if count > FILE_LINES_MAX {
        findings.push(finding("file-length", &source.path, 0, format!("{count} lines outside tests, {FILE_LINES_MAX} are the most")));
    }
}

fn function_length(source: &Source, findings: &mut Vec<Finding>) {
    for function in functions(source) {
        if function.length > FUNCTION_LINES_MAX && !source.is_test(function.line) {
            let place = format!("{}::{}", source.path, function.name);
            let text = format!("{} is {} lines long, {FUNCTION_LINES_MAX} are the most", function.name, function.length);
            findings.push(finding("function-length", &place, function.line, text));
        }
    }
}

fn header(source: &Source, findings: &mut Vec<Finding>) {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if !first.trim_start().starts_with("//!") {
        findings.push(finding("header", &source.path, 1, "the file does not begin with its purpose (//!)"));
    }
}

fn unwraps(source: &Source, findings: &mut Vec<Finding>) {
    for (line, _) in source.production_lines().filter(|(_, code)| code.contains(".unwrap()")) {
        findings.push(finding("unwrap", &source.path, line, "unwrap outside tests: use expect and state the invariant"));
    }
}

fn allowed(source: &Source, places: &[&str]) -> bool {
    places.iter().any(|place| source.path.starts_with(place))
}

fn platform(source: &Source, findings: &mut Vec<Finding>) {
    if allowed(source, PLATFORM) {
        return;
    }
    for (line, code) in source.production_lines() {
        for (word, advice) in PLATFORM_WORDS {
            if contains_word(code, word) {
                findings.push(finding("platform", &source.path, line, format!("{word}: {advice}")));
            }
        }
    }
}

fn locks(source: &Source, findings: &mut Vec<Finding>) {
    if allowed(source, PLATFORM) {
        return;
    }
    let mut from = 0;
    while let Some(at) = source.code[from..].find("std::sync::") {
        let start = from + at;
        from = start + "std::sync::".len();
        let rest = &source.code[from..];
        // `use std::sync::{a, b}` or a single path.
        let named = if rest.starts_with('{') { rest.split('}').next() } else { rest.split(|c: char| !c.is_alphanumeric()).next() };
        let line = source.line_of(start);
        for lock in LOCKS.iter().filter(|lock| named.is_some_and(|named| contains_word(named, lock)) && !source.is_test(line)) {
            findings.push(finding(
                "platform",
                &source.path,
                line,
                format!("std's {lock} has no name and is not counted: use observe::sync"),
            ));
        }
    }
}

fn unsafe_code(source: &Source, findings: &mut Vec<Finding>) {
    if allowed(source, UNSAFE) {
        return;
    }
    for (at, _) in source.code.lines().enumerate().filter(|(_, code)| contains_word(code, "unsafe")) {
        findings.push(finding("unsafe", &source.path, at + 1, "unsafe stands only in device, storage::pool and named kernel modules"));
    }
}

fn to_dos(source: &Source, findings: &mut Vec<Finding>) {
    for (at, comment) in source.comments.lines().enumerate() {
        for word in ["TODO", "FIXME"] {
            let owned = comment.find(word).is_none_or(|found| comment[found + word.len()..].starts_with('('));
            if contains_word(comment, word) && !owned {
                findings.push(finding("to-do", &source.path, at + 1, format!("{word} without an owner or issue: {word}(#12)")));
            }
        }
    }
}

fn ignored_tests(source: &Source, findings: &mut Vec<Finding>) {
    for (at, _) in source.code.lines().enumerate().filter(|(_, code)| code.contains("#[ignore")) {
        findings.push(finding("ignored-test", &source.path, at + 1, "no ignored tests: assert today's answer and say why it is wrong"));
    }
}

fn absolute_paths(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (at, line) in text.lines().enumerate() {
        for folder in ["/work/", "/root/"] {
            let found = line.match_indices(folder).any(|(start, _)| {
                let before = line[..start].chars().next_back();
                before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')')))
            });
            if found {
                findings.push(finding("absolute-path", path, at + 1, "a path of one machine: write it relative to the project"));
            }
        }
    }
}

/// True if `word` stands in `code` with no word character on either side.
fn contains_word(code: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(start, _)| {
        let before = code[..start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that `body`, behind a header, breaks.
    fn rules(path: &str, body: &str) -> Vec<&'static str> {
        let mut findings = Vec::new();
        check_source(&Source::new(path, format!("//! Header.\n{body}")), &mut findings);
        findings.into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn each_rule_finds_what_it_forbids() {
        let long = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(69));
        for (body, rule) in [
            ("fn a() { b().unwrap(); }", "unwrap"),
            ("fn a() { let t = std::time::Instant::now(); }", "platform"),
            ("use std::time::SystemTime;", "platform"),
            ("fn a() { std::thread::spawn(b); }", "platform"),
            ("use std::fs::File;", "platform"),
            ("use std::net::TcpStream;", "platform"),
            ("use std::sync::Mutex;", "platform"),
            ("use std::sync::{Arc, RwLock};", "platform"),
            ("fn a() { unsafe { b() } }", "unsafe"),
            ("// TODO later", "to-do"),
            ("/* FIXME: this */", "to-do"),
            ("#[test]\n#[ignore = \"slow\"]\nfn a() {}", "ignored-test"),
            (long.as_str(), "function-length"),
        ] {
            assert_eq!(rules("crates/query/src/a.rs", body), [rule], "{body}");
        }
        let file = "fn a() {}\n".repeat(FILE_LINES_MAX);
        assert_eq!(rules("crates/query/src/a.rs", &file), ["file-length"]);
        let mut findings = Vec::new();
        check_source(&Source::new("crates/query/src/a.rs", "fn a() {}".to_owned()), &mut findings);
        assert_eq!(findings[0].rule, "header");
    }

    #[test]
    fn what_is_allowed_is_not_found() {
        for (path, body) in [
            ("crates/query/src/a.rs", "#[cfg(test)]\nmod tests {\n    fn a() { b().unwrap(); std::fs::read(c); }\n}"),
            ("crates/query/tests/it/main.rs", "fn a() { b().unwrap(); std::thread::spawn(c); }"),
            ("crates/query/src/a.rs", "// TODO(#12) later\nfn a() { b(\"unsafe TODO std::fs .unwrap()\"); }"),
            ("crates/query/src/a.rs", "use std::sync::{Arc, atomic::AtomicU64};"),
            ("crates/query/src/a.rs", "#![deny(unsafe_code)]\nfn a() { b().unwrap_or(1); my_std::fs_x(); }"),
            ("crates/device/src/a.rs", "fn a() { unsafe { b() } std::thread::spawn(c); }"),
            ("crates/storage/src/pool/word.rs", "fn a() { unsafe { b() } }"),
        ] {
            assert_eq!(rules(path, body), Vec::<&str>::new(), "{body}");
        }
        let fits = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(68));
        assert!(rules("crates/query/src/a.rs", &fits).is_empty());
    }

    #[test]
    fn absolute_paths_are_found_in_any_text() {
        let count = |text: &str| {
            let mut findings = Vec::new();
            absolute_paths("README.md", text, &mut findings);
            findings.len()
        };
        assert_eq!(count("see /work/x and `/root/y`"), 2);
        assert_eq!(count("https://example.com/work/x, ${HOME}/work/a, framework/, ./work/b"), 0);
    }
}
