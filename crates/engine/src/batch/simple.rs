//! Texts that differ in their literals only: simple parameterization of queries for one row.
//!
//! ```text
//! SELECT b FROM t WHERE id = 17   ─ not seen before ─► SELECT b FROM t WHERE id = @__1, @__1 int = 17
//!                                                          └ its plan reads one row by key? ─ no ─► the text as it is, from now on
//! ```
//! As in SQL Server a literal becomes a parameter only where no other value could ask for another plan. What qualifies is
//! narrower here: one SELECT whose plan is a `PointRead`, and literals of digits or characters right after `=`.
//!
//! Invariants: 1. the template differs from the text in nothing but those literals; what a scan by bytes cannot be sure of
//! (comments, quotes within quotes, quoted identifiers) is left alone ([`Template::of`]). 2. Whether a template qualifies is
//! decided by its plan before anything runs ([`qualifies`]); an error there is told by the text as it is.
//! No lock of its own; bounded by [`TEXT_BYTES_MAX`] and [`LITERALS_MAX`].

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::outbox::Outbox;
use crate::batch::parsed::Parsed;
use crate::batch::program::Program;
use crate::session::frame::Variable;
use crate::session::state::SessionState;
use thawdb_query::compile::CompiledKind;
use thawdb_tsql::ParseOptions;
use thawdb_tsql::ast::{Stmt, StmtKind};
use thawdb_types::{Collation, MaxLength, Scalar, SqlType};

/// Point queries are short.
const TEXT_BYTES_MAX: usize = 1024;
/// Columns of a key, and a few conditions besides.
const LITERALS_MAX: usize = 8;
/// Digits that surely fit an int.
const DIGITS_MAX: usize = 9;
/// The type of a parameter that was a character literal, as SQL Server makes it.
const TEXT_TYPE: SqlType = SqlType::VarChar { length: MaxLength::Limited(8000), collation: Collation::DEFAULT };

/// A text with parameters in place of literals.
#[derive(Debug, PartialEq)]
struct Template {
    text: String,
    values: Vec<Scalar>,
}

impl Template {
    /// The template of a text, if it has literals that may be parameters and nothing that is hard to be sure of.
    fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let head = bytes.get(..7)?;
        if bytes.len() > TEXT_BYTES_MAX || !text.is_ascii() || !head[..6].eq_ignore_ascii_case(b"SELECT") || !head[6].is_ascii_whitespace()
        {
            return None;
        }
        let mut template = Self { text: String::with_capacity(bytes.len() + 16), values: Vec::new() };
        let (mut at, mut copied, mut in_condition) = (0, 0, false);
        while at < bytes.len() {
            let end = match bytes[at] {
                b'"' | b'@' => return None,
                b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
                b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
                b'[' => at + bytes[at..].iter().position(|b| *b == b']')? + 1,
                b'\'' => at + 1 + bytes[at + 1..].iter().position(|b| *b == b'\'')? + 1,
                b if b.is_ascii_alphanumeric() || b == b'_' => at + bytes[at..].iter().take_while(|b| is_word(**b)).count(),
                _ => at + 1,
            };
            // Two quotes in a row are one within a literal.
            if bytes[at] == b'\'' && bytes.get(end) == Some(&b'\'') {
                return None;
            }
            in_condition |= text[at..end].eq_ignore_ascii_case("WHERE");
            // Before WHERE a literal is a column of the result, whose type it decides.
            if let Some(value) = literal(&text[at..end]).filter(|_| in_condition && follows_equals(&bytes[..at])) {
                template.text.push_str(&text[copied..at]);
                template.values.push(value);
                template.text.push_str(&name_of(template.values.len()));
                copied = end;
            }
            at = end;
        }
        template.text.push_str(&text[copied..]);
        (1..=LITERALS_MAX).contains(&template.values.len()).then_some(template)
    }

    fn variables(self) -> impl Iterator<Item = Variable> {
        let variable = |(number, value): (usize, Scalar)| {
            let sql_type = if matches!(value, Scalar::Int(_)) { SqlType::Int } else { TEXT_TYPE };
            Variable { name: name_of(number), sql_type, value, declared_at: 0 }
        };
        (1..).zip(self.values).map(variable)
    }
}

fn name_of(number: usize) -> String {
    format!("@__{number}")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'#')
}

/// The value of a word that is a literal of digits or characters.
fn literal(word: &str) -> Option<Scalar> {
    if let Some(characters) = word.strip_prefix('\'') {
        return Some(Scalar::text(characters.strip_suffix('\'')?));
    }
    let digits = (1..=DIGITS_MAX).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| word.parse().ok().map(Scalar::Int)).flatten()
}

/// Whether what comes before ends in `=`, and that is no part of another operator.
fn follows_equals(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    before.strip_suffix(b"=").is_some_and(|rest| !rest.last().is_some_and(|b| b"<>!+-*/%&|^=".contains(b)))
}

/// Runs a text that was not seen before by its template; `None` if it has none that qualifies, and then nothing was done.
pub(crate) fn run(session: &mut SessionState, out: &mut Outbox<'_>, text: &str) -> Option<Result<Option<i32>, Failure>> {
    let options = &session.options;
    if !session.frame().variables.is_empty() || options.parse_only || options.no_exec || options.format_only || options.shows_plan() {
        return None;
    }
    let template = Template::of(text)?;
    let engine = session.engine.clone();
    let parsed = engine.plans.texts.batch(&template.text, &ParseOptions { quoted_identifier: options.quoted_identifier });
    if parsed.simple.get() == Some(&false) || !parsed.batch.errors.is_empty() {
        return None;
    }
    let [statement] = &parsed.batch.statements[..] else { return None };
    let text = template.text.clone();
    session.frame_mut().variables.extend(template.variables());
    let qualified = *parsed.simple.get_or_init(|| qualifies(session, out, (&text, &parsed), statement));
    if !qualified {
        session.frame_mut().variables.clear();
        return None;
    }
    let program = Program::new(&parsed.batch.statements).ok()?;
    let kept = parsed.kept.run(session, program.steps.len());
    Some(Interpreter { session, out, text: &text, kept: Some(&kept), at: 0, guarded: false }.run(&program))
}

/// Whether the plan of a template reads one row.
fn qualifies(session: &mut SessionState, out: &mut Outbox<'_>, (text, parsed): (&str, &Parsed), statement: &Stmt) -> bool {
    if !matches!(statement.kind, StmtKind::Select(_)) {
        return false;
    }
    let kept = parsed.kept.run(session, 1);
    let mut interpreter = Interpreter { session, out, text, kept: Some(&kept), at: 0, guarded: false };
    interpreter.plan_of(statement).is_ok_and(|plan| plan.point.is_some() && matches!(plan.kind, CompiledKind::Rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &[Scalar])>) {
        let expected = expected.map(|(text, values)| Template { text: text.into(), values: values.to_vec() });
        assert_eq!(Template::of(text), expected, "{text}");
    }

    #[test]
    fn literals_after_equals_become_parameters() {
        check("SELECT a FROM t WHERE id = 17", Some(("SELECT a FROM t WHERE id = @__1", &[Scalar::Int(17)])));
        let both = [Scalar::Int(1), Scalar::text("x y")];
        check(
            "select c = 5, a from [t 1] where id=1 and p= 'x y';",
            Some(("select c = 5, a from [t 1] where id=@__1 and p= @__2;", &both)),
        );
        check("SELECT a FROM t2 WHERE id = 1 AND n > 3", Some(("SELECT a FROM t2 WHERE id = @__1 AND n > 3", &[Scalar::Int(1)])));
    }

    #[test]
    fn what_is_not_surely_a_literal_of_a_comparison_stays() {
        for text in [
            "SELECT a = 5, b = 'x' FROM t",
            "SELECT a FROM t WHERE id >= 17",
            "SELECT a FROM t WHERE id <> 17 AND n != 4",
            "SELECT a FROM t WHERE id = 1.5",
            "SELECT a FROM t WHERE id = 0x17",
            "SELECT a FROM t WHERE id = 1e5",
            "SELECT a FROM t WHERE id = -5",
            "SELECT a FROM t WHERE id = 12345678901",
            "SELECT a FROM t WHERE id = x1",
            "SELECT a FROM t WHERE p = 'it''s'",
            "SELECT a FROM t WHERE p = N'x'",
            "SELECT a FROM t WHERE p = 'open",
            "SELECT a FROM t WHERE p = \"x\" AND id = 1",
            "SELECT a FROM t /* c */ WHERE id = 1",
            "SELECT a FROM t -- id = 1",
            "SELECT @a FROM t WHERE id = 1",
            "SELECT a FROM t WHERE p = 'caf\u{e9}' AND id = 1",
            "UPDATE t SET a = 1",
            "SELECT",
        ] {
            check(text, None);
        }
    }
}
