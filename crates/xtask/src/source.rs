//! One Rust file as the rules see it: comments and literals apart from code, test code marked.
//!
//! ```text
//! text:      let a = "x"; // why        #[cfg(test)] mod tests { ... }
//! code:      let a = " ";               #[cfg(test)] mod tests { ... }        same length, same lines
//! comments:                 why
//! is_test:   no                         yes, every line
//! ```
//!
//! 1. `code` has the text's byte length and its line ends, so that a place in one is the place in the other
//!    (test `masks_keep_places`).
//! 2. Test code is what a `#[cfg(test)]` item holds, the files such a `mod` pulls in ([`read_all`]), and every file under `tests/`, `benches/`, `examples/` or named
//!    `tests.rs`.
//!
//! It is no parser: it knows strings, raw strings, characters, lifetimes and nested comments, and counts braces.

use std::fs;
use std::io;
use std::path::Path;

/// A Rust file.
#[derive(Debug)]
pub struct Source {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// As it is.
    pub text: String,
    /// With the contents of comments and literals blanked.
    pub code: String,
    /// The comments' contents, all else blanked.
    pub comments: String,
    /// For each line, whether it is test code.
    test_lines: Vec<bool>,
}

impl Source {
    /// Reads the parts of a file's text apart.
    #[must_use]
    pub fn new(path: &str, text: String) -> Self {
        let (code, comments) = mask(&text);
        let count = text.lines().count();
        let whole = is_test_file(path);
        let mut test_lines = vec![whole; count];
        if !whole {
            mark_test_items(&code, &mut test_lines);
        }
        Self { path: path.to_owned(), text, code, comments, test_lines }
    }

    /// The files that a `#[cfg(test)] mod name;` of this one pulls in: `name.rs` and `name/`, as beginnings of paths.
    #[must_use]
    pub fn test_modules(&self) -> Vec<String> {
        let Some((folder, file)) = self.path.rsplit_once('/') else { return Vec::new() };
        let stem = file.trim_end_matches(".rs");
        let base = if matches!(stem, "lib" | "main" | "mod") { folder.to_owned() } else { format!("{folder}/{stem}") };
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let declared = lines.windows(2).filter(|pair| pair[0].starts_with("#[cfg(test)]") || pair[0].starts_with("#[cfg(all(test"));
        declared
            .filter_map(|pair| pair[1].strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name))
            .flat_map(|name| [format!("{base}/{name}.rs"), format!("{base}/{name}/")])
            .collect()
    }

    /// Makes all of the file test code.
    pub fn set_test(&mut self) {
        self.test_lines.fill(true);
    }

    /// The lines outside tests: number from 1, code.
    pub fn production_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().filter(|(at, _)| !self.is_test(at + 1)).map(|(at, line)| (at + 1, line))
    }

    /// True if line `number` (from 1) is test code.
    #[must_use]
    pub fn is_test(&self, number: usize) -> bool {
        self.test_lines.get(number.wrapping_sub(1)).copied().unwrap_or(false)
    }

    /// The number of lines outside tests.
    #[must_use]
    pub fn production_line_count(&self) -> usize {
        self.test_lines.iter().filter(|test| !**test).count()
    }

    /// The line, from 1, of a byte offset.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        1 + self.code.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count()
    }
}

/// The Rust files of the workspace's crates among `paths`, in their order, each knowing what of it is test code.
///
/// # Errors
/// A file that cannot be read.
pub fn read_all(root: &Path, paths: &[String]) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths.iter().filter(|path| path.starts_with("crates/") && path.ends_with(".rs")) {
        sources.push(Source::new(path, fs::read_to_string(root.join(path))?));
    }
    let test_modules: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        if test_modules.iter().any(|module| source.path.starts_with(module.as_str())) {
            source.set_test();
        }
    }
    Ok(sources)
}

/// The files of the project whose names `wanted` takes, relative to its root, in order.
///
/// # Errors
/// A folder that cannot be read.
pub fn walk(root: &Path, wanted: fn(&Path) -> bool) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    walk_folder(root, root, wanted, &mut files)?;
    Ok(files)
}

fn walk_folder(root: &Path, folder: &Path, wanted: fn(&Path) -> bool, files: &mut Vec<String>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            if name != ".git" && !name.starts_with("target") && name != "node_modules" {
                walk_folder(root, &path, wanted, files)?;
            }
        } else if kind.is_file() && wanted(&path) {
            let relative = path.strip_prefix(root).expect("the walk stays below the root");
            files.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples" | "tests.rs"))
}

/// Marks the lines of every item behind `#[cfg(test)]`.
fn mark_test_items(code: &str, test_lines: &mut [bool]) {
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(test)]").or_else(|| code[from..].find("#[cfg(all(test")) {
        let start = from + found;
        let Some(end) = item_end(code, start) else { return };
        let first = code[..start].matches('\n').count();
        let last = code[..end].matches('\n').count();
        for line in test_lines.iter_mut().take(last + 1).skip(first) {
            *line = true;
        }
        from = end;
    }
}

/// Behind the item at `start`: its closing brace, or the semicolon before any brace.
fn item_end(code: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b';' if depth == 0 => return Some(at + 1),
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some(at + 1),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits a text into code and comments.
fn mask(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let mut code = vec![b' '; bytes.len()];
    let mut comments = vec![b' '; bytes.len()];
    for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        (code[at], comments[at]) = (*byte, *byte);
    }
    let mut at = 0;
    while at < bytes.len() {
        let (end, into) = piece(bytes, at);
        match into {
            Piece::Code => code[at..end].copy_from_slice(&bytes[at..end]),
            Piece::Comment => comments[at..end].copy_from_slice(&bytes[at..end]),
            Piece::Literal => {
                code[at] = bytes[at];
                code[end - 1] = bytes[end - 1];
            }
        }
        at = end;
    }
    (lossless(code), lossless(comments))
}

/// Bytes that were cut at literals' ends may be no UTF-8 any more: those become blanks.
fn lossless(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let ascii = error.into_bytes().into_iter().map(|byte| if byte.is_ascii() { byte } else { b' ' });
        ascii.map(char::from).collect()
    })
}

enum Piece {
    Code,
    Comment,
    Literal,
}

/// The piece at `at`: its end and what it is.
fn piece(bytes: &[u8], at: usize) -> (usize, Piece) {
    let rest = &bytes[at..];
    let word_before = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        return (at + length, Piece::Comment);
    }
    if rest.starts_with(b"/*") {
        return (at + block_comment(rest), Piece::Comment);
    }
    if !word_before && let Some(length) = raw_string(rest) {
        return (at + length, Piece::Literal);
    }
    match rest[0] {
        b'"' => (at + quoted(rest, b'"'), Piece::Literal),
        b'\'' if is_character(rest) => (at + quoted(rest, b'\''), Piece::Literal),
        _ => (at + 1, Piece::Code),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The length of `r"..."`, `r#"..."#`, `br"..."` at the start.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = if rest.starts_with(b"br") { 2 } else { usize::from(rest.starts_with(b"r")) };
    if prefix == 0 {
        return None;
    }
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let inner = open + 1;
    let found = rest[inner..].windows(close.len()).position(|window| window == close);
    Some(found.map_or(rest.len(), |at| inner + at + close.len()))
}

/// True at a character literal, false at a lifetime.
fn is_character(rest: &[u8]) -> bool {
    if rest.get(1) == Some(&b'\\') {
        return true;
    }
    // One character, which may be several bytes, and a quote.
    let length = match rest.get(1) {
        Some(b) if b.is_ascii() => 1,
        Some(b) if *b >= 0xf0 => 4,
        Some(b) if *b >= 0xe0 => 3,
        _ => 2,
    };
    rest.get(1 + length) == Some(&b'\'')
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keep_places() {
        let text = "let a = \"x // é\"; // why 'é'\nlet b = 'x'; let c: &'static str = r#\"un\"safe\"#; /* /* n */ */ d\n";
        let source = Source::new("crates/a/src/lib.rs", text.to_owned());
        assert_eq!(source.code.len(), text.len());
        assert_eq!(source.comments.len(), text.len());
        assert!(!source.code.contains("why") && source.comments.contains("// why"));
        assert!(source.code.contains("&'static str") && source.code.trim_end().ends_with('d'));
        assert!(!source.code.contains("safe"));
        assert_eq!(source.code.find("let b"), text.find("let b"));
    }

    #[test]
    fn test_modules_are_named() {
        let modules = |path: &str| Source::new(path, "mod a;\n#[cfg(test)]\npub(crate) mod b;\n".to_owned()).test_modules();
        assert_eq!(modules("crates/x/src/lib.rs"), ["crates/x/src/b.rs", "crates/x/src/b/"]);
        assert_eq!(modules("crates/x/src/c.rs"), ["crates/x/src/c/b.rs", "crates/x/src/c/b/"]);
    }

    #[test]
    fn test_items_are_marked() {
        let text = "//! x\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}\n";
        let source = Source::new("crates/a/src/lib.rs", text.to_owned());
        let production: Vec<usize> = source.production_lines().map(|(line, _)| line).collect();
        assert_eq!(production, [1, 2, 7, 10]);
        assert_eq!(Source::new("crates/a/tests/it/main.rs", text.to_owned()).production_line_count(), 0);
        assert_eq!(Source::new("crates/a/src/b/tests.rs", text.to_owned()).production_line_count(), 0);
    }
}
