//! Lines on their way to becoming batches: GO ends a batch, commands are the shell's own.

use thawdb_tsql::{ScriptBatch, split_script};

/// What `:help` says.
pub const HELP: &str = "\
GO [n]        runs what has been typed, n times
:reset        forgets it
:quit, exit   leaves
:help         this";

/// What a line did.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// It was added.
    More,
    /// GO: these are to be run.
    Batches(Vec<ScriptBatch>),
    /// Leave.
    Quit,
    /// Tell about the commands.
    Help,
    /// A command there is none of.
    Unknown(String),
}

/// Lines typed so far.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    count: u32,
}

impl Lines {
    /// Number of the next line, from 1.
    pub fn next_number(&self) -> u32 {
        self.count + 1
    }

    /// Takes a line with its end.
    pub fn add(&mut self, line: &str) -> Line {
        if let Some(command) = command(line) {
            return self.obey(command);
        }
        let line = line.trim_end_matches(['\r', '\n']);
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
        if !first_word_is_go(line) {
            return Line::More;
        }
        // Only the splitter knows whether this GO stands inside a string or a comment: then it is still in the text.
        let batches = split_script(&self.text);
        if batches.last().is_some_and(|batch| batch.text.trim_end_matches('\n').ends_with(line)) {
            return Line::More;
        }
        self.reset();
        Line::Batches(batches)
    }

    fn obey(&mut self, command: Command<'_>) -> Line {
        match command {
            Command::Quit => Line::Quit,
            Command::Help => Line::Help,
            Command::Reset => {
                self.reset();
                Line::More
            }
            Command::Unknown(name) => Line::Unknown(name.to_owned()),
        }
    }

    fn reset(&mut self) {
        self.text.clear();
        self.count = 0;
    }
}

fn first_word_is_go(line: &str) -> bool {
    let mut words = line.split(|c: char| c.is_whitespace() || c == ';' || c == '-').filter(|word| !word.is_empty());
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("go"))
}

enum Command<'l> {
    Quit,
    Help,
    Reset,
    Unknown(&'l str),
}

/// A line that is for the shell: begins with a colon, or is `quit`, `exit` or `reset` alone.
fn command(line: &str) -> Option<Command<'_>> {
    let line = line.trim();
    let name = line.strip_prefix(':');
    let word = name.unwrap_or(line).to_ascii_lowercase();
    match (word.as_str(), name) {
        ("quit" | "exit", _) => Some(Command::Quit),
        ("reset", _) => Some(Command::Reset),
        ("help", Some(_)) => Some(Command::Help),
        (_, Some(name)) => Some(Command::Unknown(name)),
        (_, None) => None,
    }
}

/// The script up to its first `:quit`, other lines that are for the shell emptied so that line numbers stay; and
/// whether there was a `:quit`. Only lines that begin with a colon count: a script may well have a column `reset`.
pub fn without_commands(text: &str) -> (String, bool) {
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match command(line).filter(|_| line.trim_start().starts_with(':')) {
            None => kept.push_str(line),
            Some(Command::Quit) => return (kept, true),
            Some(_) => kept.push('\n'),
        }
    }
    (kept, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(lines: &[&str]) -> Vec<Line> {
        let mut all = Lines::default();
        lines.iter().map(|line| all.add(&format!("{line}\n"))).filter(|line| *line != Line::More).collect()
    }

    fn batch(text: &str, first_line: u32, count: u32) -> ScriptBatch {
        ScriptBatch { text: text.into(), first_line, count }
    }

    #[test]
    fn go_runs_and_counts() {
        assert_eq!(typed(&["SELECT 1", "  go 3"]), [Line::Batches(vec![batch("SELECT 1\n", 1, 3)])]);
        assert_eq!(typed(&["GO"]), [Line::Batches(vec![])]);
        let twice = typed(&["a", "GO", "b", "Go;"]);
        assert_eq!(twice, [Line::Batches(vec![batch("a\n", 1, 1)]), Line::Batches(vec![batch("b\n", 1, 1)])]);
    }

    #[test]
    fn go_inside_strings_and_comments_is_text() {
        assert_eq!(typed(&["SELECT '", "GO", "'", "GO"]), [Line::Batches(vec![batch("SELECT '\nGO\n'\n", 1, 1)])]);
        assert_eq!(typed(&["/*", "go", "*/ x", "go"]), [Line::Batches(vec![batch("/*\ngo\n*/ x\n", 1, 1)])]);
        assert_eq!(typed(&["gone", "go_on"]), []);
    }

    #[test]
    fn commands_are_obeyed() {
        assert_eq!(typed(&["x", ":reset", "y", "GO", ":QUIT"]), [Line::Batches(vec![batch("y\n", 1, 1)]), Line::Quit]);
        assert_eq!(typed(&["exit"]), [Line::Quit]);
        assert_eq!(typed(&[":nonesuch"]), [Line::Unknown("nonesuch".into())]);
        assert_eq!(without_commands("a\n:on error exit\nb\n:quit\nc\n"), ("a\n\nb\n".into(), true));
        assert_eq!(without_commands("a\nreset\n"), ("a\nreset\n".into(), false));
    }
}
