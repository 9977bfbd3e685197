//! The functions of a file: name, first line, number of lines.
//!
//! Found by counting brackets in masked code; a declaration without a body (in a trait) has no length.

use crate::source::Source;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, without path.
    pub name: String,
    /// The line of the word `fn`, from 1.
    pub line: usize,
    /// Lines from there to the closing brace.
    pub length: usize,
}

/// All functions of a file, those within functions included.
#[must_use]
pub fn functions(source: &Source) -> Vec<Function> {
    let code = source.code.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = source.code[from..].find("fn ") {
        let start = from + at;
        from = start + 3;
        let inside_word = start > 0 && (code[start - 1].is_ascii_alphanumeric() || code[start - 1] == b'_');
        let name: String = source.code[from..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if inside_word || name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(code, from) {
            let line = source.line_of(start);
            found.push(Function { name, line, length: source.line_of(end) - line + 1 });
        }
    }
    found
}

/// The closing brace of the body behind a signature; `None` for a declaration.
fn body_end(code: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = from;
    loop {
        match code.get(at)? {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    let mut braces = 0_usize;
    for (end, byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'{' => braces += 1,
            b'}' => braces -= 1,
            _ => {}
        }
        if braces == 0 {
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_bodies() {
        let text = "trait T { fn a(&self) -> [u8; 4]; }\nfn b() -> u8 {\n    let f = |x: u8| { x };\n    f(1)\n}\npub(crate) fn c<T>(t: T)\nwhere\n    T: Fn(u8),\n{\n}\nlet often = 1;\n";
        let found = functions(&Source::new("x.rs", text.to_owned()));
        let shown: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(shown, [("b", 2, 4), ("c", 6, 5)]);
    }
}
