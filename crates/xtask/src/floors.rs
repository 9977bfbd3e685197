//! Who may depend on whom: the floors of the house, and the order inside `storage`.
//!
//! ```text
//! 7 thawdb                          storage:  6 database and the other doors
//! 6 tds                                       5 checkpoint recovery
//! 5 engine                                    4 txn versions locks ...
//! 4 maintain query                            3 btree heap lob sort ...
//! 3 catalog                                   2 space log pool ...
//! 2 storage                                   1 page
//! 1 device                                    0 ids, errors, plain data
//! 0 observe tsql types              testkit: a dev-dependency of anyone; xtask: depends on nothing
//! ```
//!
//! 1. A crate depends only on crates of lower floors, never beside it ([`check_dependency`]).
//! 2. `testkit` is only a dev-dependency, but for the binary, whose long modes of the tests it is; nothing depends on `xtask`.
//! 3. Some libraries end at a floor: storage knows no Arrow, and nothing below the wire knows an async runtime.
//! 4. A module of `storage` uses only modules of its own height or below ([`storage_order`]).
//!
//! A crate or module missing in the tables is a finding: new rooms get their place before they get their code.

use std::fs;
use std::io;
use std::path::Path;

use crate::Finding;
use crate::source::{Source, read_all, walk};

/// The rules checked here.
pub const RULES: &[&str] = &["floor", "storage-order"];

/// Each crate's floor.
const FLOORS: &[(&str, u32)] = &[
    ("observe", 0),
    ("tsql", 0),
    ("types", 0),
    ("device", 1),
    ("storage", 2),
    ("catalog", 3),
    ("maintain", 4),
    ("query", 4),
    ("engine", 5),
    ("tds", 6),
    ("thawdb", 7),
];

/// May see every floor, and be seen by tests only.
const TESTKIT: &str = "testkit";

/// Libraries that crates below `tds` must not have, or `storage` must not: crate, beginning of the library's name.
const FORBIDDEN: &[(&str, &str)] = &[
    ("observe", "tokio"),
    ("tsql", ""),
    ("types", "tokio"),
    ("device", "tokio"),
    ("device", "arrow"),
    ("storage", "tokio"),
    ("storage", "arrow"),
    ("catalog", "tokio"),
    ("maintain", "tokio"),
    ("query", "tokio"),
    ("engine", "tokio"),
];

/// The height of each module of `storage`; `a::b` is a part of `a` that has a height of its own.
const STORAGE: &[(&str, u32)] = &[
    // Numbers, errors, plain data: no behaviour.
    ("error", 0),
    ("hash", 0),
    ("ids", 0),
    ("memory", 0),
    ("spec", 0),
    ("page", 1),
    ("ahead_page", 2),
    ("record", 1),
    // The bytes of a version, which compacting a page must be able to read.
    ("versions::version", 1),
    ("log", 2),
    ("mini", 2),
    ("page_reads", 1),
    ("pool", 2),
    ("space", 2),
    ("store", 2),
    ("units", 2),
    ("btree", 3),
    ("heap", 3),
    ("lob", 3),
    ("sort", 3),
    ("locks", 4),
    ("row_block", 4),
    ("undo", 4),
    ("versions", 4),
    ("checkpoint", 5),
    ("recovery", 5),
    // The doors: what other crates call.
    ("bulk", 6),
    ("check", 6),
    ("cleaner", 6),
    ("compaction", 6),
    ("database", 6),
    ("format_tests", 6),
    ("large", 6),
    ("locked_scan", 6),
    ("look", 6),
    ("rollback", 6),
    ("private_row", 6),
    ("row_change", 6),
    ("read_ahead", 6),
    ("scan", 6),
    ("storage", 6),
    ("txn", 6),
    ("txn_locks", 6),
    ("unique", 6),
    ("view", 6),
];

/// All findings about dependencies.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut folders: Vec<_> = fs::read_dir(root.join("crates"))?.collect::<io::Result<_>>()?;
    folders.sort_by_key(fs::DirEntry::file_name);
    for folder in folders {
        let manifest = folder.path().join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let name = folder.file_name().to_string_lossy().into_owned();
        let place = format!("crates/{name}/Cargo.toml");
        check_manifest(&name, &place, &fs::read_to_string(manifest)?, &mut findings);
    }
    let files = walk(root, |path| path.extension().is_some_and(|extension| extension == "rs"))?;
    let sources = read_all(root, &files)?;
    for source in sources.iter().filter(|source| source.path.starts_with("crates/storage/src/")) {
        storage_order(source, &mut findings);
    }
    Ok(findings)
}

/// A dependency as a manifest has it.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    name: String,
    dev: bool,
    line: usize,
}

/// The dependencies of a manifest. Only the table forms that cargo writes are known.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section: Option<bool> = None;
    for (at, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let last = header.rsplit('.').next().unwrap_or(header);
            section = match last {
                "dependencies" | "build-dependencies" => Some(false),
                "dev-dependencies" => Some(true),
                // [dependencies.name]
                name => {
                    let dev = header.contains("dev-dependencies.");
                    if header.contains("dependencies.") {
                        found.push(Dependency { name: name.to_owned(), dev, line: at + 1 });
                    }
                    None
                }
            };
        } else if let (Some(dev), Some((name, _))) = (section, line.split_once(['=', '.'])) {
            found.push(Dependency { name: name.trim().trim_matches('"').to_owned(), dev, line: at + 1 });
        }
    }
    found
}

fn check_manifest(name: &str, place: &str, manifest: &str, findings: &mut Vec<Finding>) {
    let known = name == TESTKIT || name == "xtask" || floor_of(name).is_some();
    if !known {
        findings.push(finding(place, 0, format!("crate {name} has no floor: give it one in xtask's table")));
        return;
    }
    for dependency in dependencies(manifest) {
        if let Some(text) = check_dependency(name, &dependency) {
            findings.push(finding(place, dependency.line, text));
        }
    }
}

fn floor_of(name: &str) -> Option<u32> {
    FLOORS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, floor)| *floor)
}

/// What is wrong with a dependency of crate `name`, if anything.
fn check_dependency(name: &str, dependency: &Dependency) -> Option<String> {
    let target = match dependency.name.as_str() {
        "thawdb" => "thawdb",
        "xtask" => return Some("nothing depends on xtask".to_owned()),
        other => match other.strip_prefix("thawdb-") {
            Some(target) => target,
            None => return check_library(name, dependency),
        },
    };
    if name == "xtask" {
        return Some("xtask depends on nothing of the house".to_owned());
    }
    if target == TESTKIT {
        // The binary's commands `simulate` and `fuzz` are the long mode of the tests: the same code.
        return (!dependency.dev && name != "thawdb").then(|| "testkit is for tests: a dev-dependency only".to_owned());
    }
    if name == TESTKIT {
        return None;
    }
    match (floor_of(name), floor_of(target)) {
        (Some(own), Some(other)) if other < own => None,
        (Some(own), Some(other)) => Some(format!("{name} (floor {own}) may not depend on {target} (floor {other})")),
        _ => Some(format!("{target} has no floor: give it one in xtask's table")),
    }
}

fn check_library(name: &str, dependency: &Dependency) -> Option<String> {
    let forbidden = FORBIDDEN.iter().any(|(crate_name, library)| *crate_name == name && dependency.name.starts_with(library));
    (forbidden && !dependency.dev).then(|| format!("{name} must not know {}", dependency.name))
}

fn finding(place: &str, line: usize, text: String) -> Finding {
    Finding { rule: "floor", place: place.to_owned(), line, text }
}

/// The height of `a::b`: its own, or that of `a`.
fn height_of(path: &str) -> Option<u32> {
    let listed = |name: &str| STORAGE.iter().find(|(listed, _)| *listed == name).map(|(_, height)| *height);
    listed(path).or_else(|| listed(path.split("::").next().unwrap_or(path)))
}

/// Findings about one file of `storage`: modules above its own that it uses.
fn storage_order(source: &Source, findings: &mut Vec<Finding>) {
    let below = source.path.trim_start_matches("crates/storage/src/").trim_end_matches(".rs");
    let module = below.split('/').take(2).collect::<Vec<_>>().join("::");
    if module == "lib" {
        return;
    }
    let order = |line: usize, text: String| Finding { rule: "storage-order", place: source.path.clone(), line, text };
    let Some(own) = height_of(&module) else {
        findings.push(order(0, format!("module {module} has no height: give it one in xtask's table")));
        return;
    };
    for (line, used) in used_modules(source) {
        match height_of(&used) {
            Some(height) if height <= own => {}
            Some(height) => findings.push(order(line, format!("{module} (height {own}) may not use {used} (height {height})"))),
            // Not a module: an item re-exported at the crate's root.
            None => {}
        }
    }
}

/// The first two parts of all `crate::` paths outside tests; in a group the first part only.
fn used_modules(source: &Source) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    for (start, found) in source.code.match_indices("crate::") {
        let line = source.line_of(start);
        if source.is_test(line) {
            continue;
        }
        let rest = &source.code[start + found.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            used.extend(group_members(group).into_iter().map(|name| (line, name)));
        } else {
            let path: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            used.push((line, path.split("::").take(2).collect::<Vec<_>>().join("::")));
        }
    }
    used
}

/// The first names of `a, b::c, d::{e, f}` up to the closing brace.
fn group_members(group: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut taking = true;
    let mut depth = 0_u32;
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            '{' => depth += 1,
            ',' if depth == 0 => {
                names.push(String::new());
                taking = true;
            }
            c if depth == 0 && taking && (c.is_alphanumeric() || c == '_') => names.last_mut().expect("never empty").push(c),
            ':' => taking = false,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(name: &str, manifest: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check_manifest(name, "Cargo.toml", manifest, &mut findings);
        findings.into_iter().map(|f| f.text).collect()
    }

    #[test]
    fn dependencies_point_down() {
        assert!(texts("query", "[dependencies]\nthawdb-types.workspace = true\nserde = \"1\"\n").is_empty());
        assert!(texts("thawdb", "[dependencies.thawdb-tds]\nworkspace = true\n").is_empty());
        for (name, manifest) in [
            ("query", "[dependencies]\nthawdb-engine.workspace = true\n"),
            ("query", "[dependencies]\nthawdb-maintain = { path = \"../maintain\" }\n"),
            ("storage", "[dependencies]\nthawdb-testkit.workspace = true\n"),
            ("storage", "[target.'cfg(unix)'.dependencies]\nthawdb-catalog.workspace = true\n"),
            ("storage", "[dependencies]\narrow-array.workspace = true\n"),
            ("engine", "[dependencies.tokio]\nversion = \"1\"\n"),
            ("tsql", "[dependencies]\nlogos = \"1\"\n"),
            ("xtask", "[dependencies]\nthawdb-types.workspace = true\n"),
            ("cellar", "[dependencies]\n"),
        ] {
            assert_eq!(texts(name, manifest).len(), 1, "{name}: {manifest}");
        }
    }

    #[test]
    fn testkit_is_for_tests() {
        assert!(texts("storage", "[dependencies]\n[dev-dependencies]\nthawdb-testkit.workspace = true\n").is_empty());
        assert!(texts("testkit", "[dependencies]\nthawdb-engine.workspace = true\n").is_empty());
    }

    #[test]
    fn storage_modules_look_down() {
        let count = |path: &str, text: &str| {
            let mut findings = Vec::new();
            storage_order(&Source::new(path, text.to_owned()), &mut findings);
            findings.len()
        };
        assert_eq!(count("crates/storage/src/btree/mod.rs", "use crate::page::A;\nuse crate::{ids::B, pool::{C, recovery}};"), 0);
        assert_eq!(count("crates/storage/src/page/mod.rs", "use crate::pool::A;"), 1);
        assert_eq!(count("crates/storage/src/log.rs", "use crate::{page::A, recovery::B};\nfn a() { crate::btree::c() }"), 2);
        assert_eq!(count("crates/storage/src/page/mod.rs", "#[cfg(test)]\nmod tests {\n    use crate::pool::A;\n}"), 0);
        assert_eq!(count("crates/storage/src/btree/node.rs", "use crate::versions::version::V;"), 0);
        assert_eq!(count("crates/storage/src/btree/node.rs", "use crate::versions::store::S;"), 1);
        assert_eq!(count("crates/storage/src/versions/version.rs", "use crate::pool::A;"), 1);
        assert_eq!(count("crates/storage/src/cellar.rs", ""), 1);
    }
}
