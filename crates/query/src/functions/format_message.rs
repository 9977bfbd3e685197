//! The place holders of RAISERROR and FORMATMESSAGE: `% [flags] [width] [.precision] [h|l|I64] type`.
//!
//! Types are d i (signed), u o x X (unsigned), s (text) and `%%`. 2787 for a specification that is none, 2786 for an
//! argument of the wrong kind, 2748 for a type that cannot be given at all. The text is cut at 2,047 characters.

use super::call::Call;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

/// Characters of a message: the client sees 2,047 and an ellipsis.
const TEXT_MAX: usize = 2_047;

/// FORMATMESSAGE: of a text, or of a message's number, which gives NULL where there is no such message of the users'.
pub(super) fn evaluate(call: &Call<'_>) -> Result<Scalar, SqlError> {
    let Some(template) = call.text(0) else { return Ok(Scalar::Null) };
    let arguments: Vec<_> =
        call.values.iter().zip(call.arguments).skip(1).map(|(value, argument)| (value.clone(), argument.sql_type)).collect();
    format_message(template, &arguments).map(Scalar::Text)
}

/// A value as messages show it.
fn display(value: &Scalar, sql_type: &SqlType) -> String {
    match thawdb_types::convert::convert(value, sql_type, &SqlType::nvarchar(4000), &Default::default()) {
        Ok(Scalar::Text(text)) => text,
        _ => String::new(),
    }
}

struct Spec {
    left: bool,
    plus: bool,
    zero: bool,
    blank: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

struct Arguments<'a> {
    rest: std::slice::Iter<'a, (Scalar, SqlType)>,
    used: usize,
}

impl<'a> Arguments<'a> {
    fn next(&mut self) -> Option<&'a (Scalar, SqlType)> {
        self.used += 1;
        self.rest.next()
    }

    fn number(&mut self) -> Result<i64, SqlError> {
        let used = self.used + 1;
        match self.next() {
            None => Ok(0),
            Some((value, sql_type)) if sql_type.is_integer() || *sql_type == SqlType::Bit => Ok(value.as_i64().unwrap_or(0)),
            Some(_) => Err(message(2786, &[&used])),
        }
    }
}

/// `template` with its place holders filled.
pub fn format_message(template: &str, arguments: &[(Scalar, SqlType)]) -> Result<String, SqlError> {
    for (at, (_, sql_type)) in arguments.iter().enumerate() {
        let allowed = sql_type.is_integer() || *sql_type == SqlType::Bit || sql_type.is_text() || sql_type.is_binary();
        if !allowed {
            return Err(message(2748, &[&sql_type.message_name(), &(at + 4)]));
        }
    }
    let mut arguments = Arguments { rest: arguments.iter(), used: 0 };
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let (spec, after) = parse_spec(rest, &mut arguments)?;
        text.push_str(&fill(&spec, &mut arguments)?);
        rest = after;
    }
    text.push_str(rest);
    if text.chars().count() > TEXT_MAX {
        text = text.chars().take(TEXT_MAX - 3).chain("...".chars()).collect();
    }
    Ok(text)
}

fn parse_spec<'t>(text: &'t str, arguments: &mut Arguments<'_>) -> Result<(Spec, &'t str), SqlError> {
    let invalid = || message(2787, &[&format!("%{}", text.chars().take(5).collect::<String>())]);
    let mut spec = Spec { left: false, plus: false, zero: false, blank: false, alternate: false, width: 0, precision: None, kind: 'd' };
    let mut rest = text;
    while let Some(flag) = rest.chars().next().filter(|c| "-+0 #".contains(*c)) {
        match flag {
            '-' => spec.left = true,
            '+' => spec.plus = true,
            '0' => spec.zero = true,
            ' ' => spec.blank = true,
            _ => spec.alternate = true,
        }
        rest = &rest[1..];
    }
    let (width, after) = parse_number(rest, arguments)?;
    spec.width = width.unwrap_or(0);
    rest = after;
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = parse_number(after, arguments)?;
        spec.precision = Some(precision.unwrap_or(0));
        rest = after;
    }
    for size in ["I64", "h", "l"] {
        if let Some(after) = rest.strip_prefix(size) {
            rest = after;
            break;
        }
    }
    spec.kind = rest.chars().next().filter(|c| "diosuxX".contains(*c)).ok_or_else(invalid)?;
    Ok((spec, &rest[1..]))
}

fn parse_number<'t>(text: &'t str, arguments: &mut Arguments<'_>) -> Result<(Option<usize>, &'t str), SqlError> {
    if let Some(after) = text.strip_prefix('*') {
        let width = arguments.number()?;
        return Ok((Some(usize::try_from(width.clamp(0, 2_047)).expect("clamped")), after));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = text.split_at(digits);
    Ok((number.parse::<usize>().ok().map(|n| n.min(TEXT_MAX)), after))
}

fn fill(spec: &Spec, arguments: &mut Arguments<'_>) -> Result<String, SqlError> {
    let used = arguments.used + 1;
    let Some((value, sql_type)) = arguments.next() else { return Ok("(null)".into()) };
    if value.is_null() {
        return Ok(pad(spec, "(null)".into()));
    }
    let whole = sql_type.is_integer() || *sql_type == SqlType::Bit;
    if (spec.kind == 's') == whole {
        return Err(message(2786, &[&used]));
    }
    if spec.kind == 's' {
        let text = display(value, sql_type);
        let cut = spec.precision.map_or(text.clone(), |most| text.chars().take(most).collect());
        return Ok(pad(spec, cut));
    }
    let number = value.as_i64().unwrap_or(0);
    // Without I64 a negative number shows as 32 bits in unsigned forms, as C's printf has it.
    let unsigned = if *sql_type == SqlType::BigInt { number.cast_unsigned() } else { number.cast_unsigned() & 0xFFFF_FFFF };
    let digits = match spec.kind {
        'o' => format!("{}{unsigned:o}", if spec.alternate { "0" } else { "" }),
        'x' => format!("{}{unsigned:x}", if spec.alternate { "0x" } else { "" }),
        'X' => format!("{}{unsigned:X}", if spec.alternate { "0X" } else { "" }),
        'u' => unsigned.to_string(),
        _ => number.unsigned_abs().to_string(),
    };
    let digits = format!("{digits:0>width$}", width = spec.precision.unwrap_or(0));
    let sign = match spec.kind {
        'd' | 'i' if number < 0 => "-",
        'd' | 'i' if spec.plus => "+",
        'd' | 'i' if spec.blank => " ",
        _ => "",
    };
    let zeros = if spec.zero && !spec.left && spec.precision.is_none() { spec.width.saturating_sub(sign.len()) } else { 0 };
    Ok(pad(spec, format!("{sign}{digits:0>zeros$}")))
}

fn pad(spec: &Spec, text: String) -> String {
    let width = spec.width;
    if spec.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_the_manual() {
        let text = |t: &str| (Scalar::Text(t.into()), SqlType::nvarchar(100));
        let int = |n: i32| (Scalar::Int(n), SqlType::Int);
        let check = |template: &str, arguments: &[(Scalar, SqlType)], expected: &str| {
            assert_eq!(format_message(template, arguments).expect("formats").as_str(), expected, "{template}");
        };
        check("This is message %s %d.", &[text("number"), int(5)], "This is message number 5.");
        check("<<%*.*s>>", &[int(7), int(3), text("abcde")], "<<    abc>>");
        check("<<%7.3s>>", &[text("abcde")], "<<    abc>>");
        check("<<%-7d>>|%+d|%05d|%x|%#X", &[int(12), int(7), int(42), int(255), int(255)], "<<12     >>|+7|00042|ff|0XFF");
        check("100%% %u", &[int(-1)], "100% 4294967295");
        check("%s", &[], "(null)");
        assert_eq!(format_message("%d", &[text("x")]).expect_err("wrong kind").number, 2786);
        assert_eq!(format_message("%q", &[text("x")]).expect_err("no such form").number, 2787);
        assert_eq!(format_message("%s", &[(Scalar::Float(1.0), SqlType::Float)]).expect_err("float").number, 2748);
    }
}
