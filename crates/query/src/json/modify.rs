//! JSON_MODIFY: the text with one place of it changed, everything else as it was written.

use super::path::{Path, Place, Step};
use super::scan::{Fault, Kind, Scanner, Value, quote_into};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// `new` is JSON; `None` is NULL: deletes the member in lax mode, becomes null otherwise.
pub(super) fn modify(text: &str, path: &Path, new: Option<&str>) -> Result<String, SqlError> {
    let fault = |fault: Fault| fault.error(text);
    // Unlike the reading functions, this one gives the whole text back, so the whole must be JSON.
    let mut scanner = Scanner::new(text);
    scanner.value().and_then(|_| scanner.end()).map_err(fault)?;
    if path.steps.is_empty() && !path.append {
        return Err(message(13619, &[]));
    }
    let json = new.unwrap_or("null");
    match path.walk(text).map_err(fault)? {
        Place::Value { value, .. } if path.append => match (value.kind, path.strict) {
            (Kind::Array, _) => append(text, value, json).map_err(fault),
            (_, true) => Err(message(13621, &[])),
            (_, false) => Ok(text.to_owned()),
        },
        Place::Value { value, key: Some(key), before } if new.is_none() && !path.strict => delete(text, key, value, before).map_err(fault),
        Place::Value { value, .. } => Ok(splice(text, value.start, value.end, json)),
        Place::Missing { .. } | Place::Nowhere if path.strict => Err(message(13608, &[])),
        Place::Missing { container, members } => match path.steps.last() {
            Some(Step::Key(name)) if new.is_some() || path.append => {
                let mut member = String::new();
                quote_into(&mut member, name);
                member.push(':');
                member.push_str(&if path.append { format!("[{json}]") } else { json.to_owned() });
                Ok(insert_last(text, container, members, &member))
            }
            _ => Ok(text.to_owned()),
        },
        Place::Nowhere => Ok(text.to_owned()),
    }
}

fn splice(text: &str, start: usize, end: usize, new: &str) -> String {
    [&text[..start], new, &text[end..]].concat()
}

/// Behind the last member, before the closing bracket.
fn insert_last(text: &str, container: Value, members: usize, new: &str) -> String {
    let close = container.end - 1;
    let behind = text[..close].trim_end_matches([' ', '\t', '\n', '\r']).len();
    let separator = if members == 0 { "" } else { "," };
    [&text[..behind], separator, new, &text[behind..]].concat()
}

fn append(text: &str, array: Value, new: &str) -> Result<String, Fault> {
    let mut scanner = Scanner::at(text, array);
    scanner.open();
    let empty = !scanner.next_element(true)?;
    Ok(insert_last(text, array, usize::from(!empty), new))
}

/// Takes the member that begins at `key` out, with the comma that joined it.
fn delete(text: &str, key: usize, value: Value, before: usize) -> Result<String, Fault> {
    let space = [' ', '\t', '\n', '\r'];
    if before > 0 {
        let comma = text[..key].trim_end_matches(space).len() - 1;
        return Ok(splice(text, comma, value.end, ""));
    }
    let rest = text[value.end..].trim_start_matches(space);
    let end = match rest.strip_prefix(',') {
        Some(next) => text.len() - next.trim_start_matches(space).len(),
        None => value.end,
    };
    Ok(splice(text, key, end, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, path: &str, new: Option<&str>) -> String {
        modify(text, &Path::parse(path).expect("parses"), new).expect("changes")
    }

    #[test]
    fn only_the_place_changes() {
        let text = r#"{ "a" : 1, "b":[1, 2] , "c":{} }"#;
        assert_eq!(changed(text, "$.a", Some("\"x\"")), r#"{ "a" : "x", "b":[1, 2] , "c":{} }"#);
        assert_eq!(changed(text, "$.b[1]", Some("7")), r#"{ "a" : 1, "b":[1, 7] , "c":{} }"#);
        assert_eq!(changed(text, "append $.b", Some("3")), r#"{ "a" : 1, "b":[1, 2,3] , "c":{} }"#);
        assert_eq!(changed(text, "$.d", Some("4")), r#"{ "a" : 1, "b":[1, 2] , "c":{},"d":4 }"#);
        assert_eq!(changed(text, "$.c.e", Some("5")), r#"{ "a" : 1, "b":[1, 2] , "c":{"e":5} }"#);
        assert_eq!(changed(text, "append $.f", Some("6")), r#"{ "a" : 1, "b":[1, 2] , "c":{},"f":[6] }"#);
        assert_eq!(changed(text, "$.x.y", Some("6")), text);
        assert_eq!(changed("[]", "append $", Some("1")), "[1]");
    }

    #[test]
    fn null_deletes_a_member_in_lax_mode() {
        assert_eq!(changed(r#"{"a":1,"b":2}"#, "$.a", None), r#"{"b":2}"#);
        assert_eq!(changed(r#"{"a":1, "b":2}"#, "$.b", None), r#"{"a":1}"#);
        assert_eq!(changed(r#"{"a":1}"#, "$.a", None), "{}");
        assert_eq!(changed(r#"{"a":1}"#, "strict $.a", None), r#"{"a":null}"#);
        assert_eq!(changed("[1,2]", "$[0]", None), "[null,2]");
        assert_eq!(changed(r#"{"a":1}"#, "$.b", None), r#"{"a":1}"#);
    }

    #[test]
    fn strict_refuses() {
        let number = |path: &str| modify(r#"{"a":1}"#, &Path::parse(path).expect("parses"), Some("2")).expect_err(path).number;
        assert_eq!((number("strict $.b"), number("append strict $.a"), number("$")), (13608, 13621, 13619));
    }
}
