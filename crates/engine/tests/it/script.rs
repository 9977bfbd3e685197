//! Runs the files of `tests/sql`.

use crate::folders::folder;
use crate::transcript::Transcript;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thawdb_engine::{Engine, EngineConfig, Session};

/// An engine on an empty folder of its own.
pub fn fresh_engine(name: &str) -> (Arc<Engine>, PathBuf) {
    let folder = folder(name);
    let engine = Engine::open(config(&folder)).expect("an empty folder opens");
    (engine, folder)
}

/// Settings on a folder.
pub fn config(folder: &Path) -> EngineConfig {
    EngineConfig {
        env: thawdb_device::os::env(),
        data_folder: folder.to_owned(),
        memory_bytes_max: 256 << 20,
        sa_password: Some(thawdb_engine::Secret::new("Right-1234")),
        server_name: "thawdb".into(),
    }
}

/// What a batch says in a session.
pub fn said(session: &mut Session, batch: &str) -> Vec<String> {
    let mut transcript = Transcript::default();
    session.execute(batch, &[], &mut transcript);
    assert!(transcript.last.is_some_and(|last| !last.more), "a call ends with its last completion:\n{batch}");
    transcript.lines
}

struct Step {
    session: Option<String>,
    batch: String,
    expected: Vec<String>,
    comments: Vec<String>,
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines().peekable();
    while lines.peek().is_some() {
        let mut step = Step { session: None, batch: String::new(), expected: Vec::new(), comments: Vec::new() };
        while let Some(line) = lines.next_if(|l| l.is_empty() || l.starts_with('#')) {
            step.comments.push(line.to_owned());
        }
        if let Some(line) = lines.next_if(|l| l.starts_with("session ")) {
            step.session = line.split(' ').nth(1).map(str::to_owned);
        }
        let batch: Vec<_> = std::iter::from_fn(|| lines.next_if(|l| *l != "----")).collect();
        if batch.is_empty() {
            assert!(lines.next().is_none(), "a batch is missing");
            break;
        }
        assert!(lines.next().is_some(), "a batch ends with four dashes: {batch:?}");
        step.batch = batch.join("\n");
        step.expected = std::iter::from_fn(|| lines.next_if(|l| !l.is_empty())).map(str::to_owned).collect();
        steps.push(step);
    }
    steps
}

/// A line without the numbers of temporary objects, which are counted by the process, in names that the system made of them.
fn unnumbered(line: &str) -> String {
    const FIRST: &str = "__88CA";
    let mut shown = line.to_owned();
    for (at, _) in line.match_indices(FIRST) {
        let number = at + FIRST.len()..at + FIRST.len() + 4;
        if line.get(number.clone()).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())) {
            shown.replace_range(number, "0000");
        }
    }
    shown
}

fn run_file(path: &Path) {
    let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
    let (engine, folder) = fresh_engine(&name);
    let text = std::fs::read_to_string(path).expect("readable");
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let mut current = "a".to_owned();
    let (mut rewritten, mut wrong) = (String::new(), Vec::new());
    for step in parse(&text) {
        if let Some(name) = &step.session {
            current.clone_from(name);
        }
        let session = sessions.entry(current.clone()).or_insert_with(|| engine.internal_session());
        let told = |line: String| unnumbered(&line.replace(&*folder.to_string_lossy(), "FOLDER"));
        let found: Vec<String> = said(session, &step.batch).into_iter().map(told).collect();
        if found != step.expected {
            wrong.push(format!("{}\n--expected\n{}\n--found\n{}", step.batch, step.expected.join("\n"), found.join("\n")));
        }
        step.comments.iter().for_each(|line| rewritten.push_str(&format!("{line}\n")));
        if let Some(name) = &step.session {
            rewritten.push_str(&format!("session {name}\n"));
        }
        rewritten.push_str(&format!("{}\n----\n", step.batch));
        found.iter().for_each(|line| rewritten.push_str(&format!("{}\n", if line.is_empty() { "''" } else { line })));
    }
    if std::env::var_os("THAWDB_UPDATE").is_some() {
        std::fs::write(path, rewritten).expect("writable");
    } else {
        assert!(wrong.is_empty(), "{}:\n{}", path.display(), wrong.join("\n\n"));
    }
}

#[test]
fn conversations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql");
    let paths = std::fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    files.sort();
    let chosen = std::env::var("THAWDB_FILE").ok();
    for file in files.iter().filter(|f| chosen.as_ref().is_none_or(|c| f.to_string_lossy().contains(c.as_str()))) {
        run_file(file);
    }
}
