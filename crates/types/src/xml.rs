//! xml values as text in one normal form.
//!
//! A value is kept as text that is well-formed content: any number of elements, text, comments and instructions, without
//! declaration or document type; white space between tags dropped unless `xml:space` keeps it; empty elements closed at
//! once; entities resolved and only what must be escaped. Two texts that SQL Server would store alike are alike here.
//!
//! Reading is roxmltree's (a read-only tree over the text); what is ours is the form and the message numbers.
//! Source: the documented behaviour of the xml type; Extensible Markup Language (XML) 1.0.

use crate::SqlError;
use crate::error::message;
use roxmltree::{Document, Error, Node, ParsingOptions};

/// Levels of elements in a value.
pub const DEPTH_MAX: usize = 128;
/// Wraps content so that it has the one root a document needs.
const WRAP: (&str, &str) = ("<_>", "</_>");

/// `content` wrapped for [`parse`].
pub fn wrapped(content: &str) -> String {
    [WRAP.0, content, WRAP.1].concat()
}

/// The tree of [`wrapped`] content; the content is the children of its root element.
///
/// # Errors
/// The 94xx messages of XML parsing, and 6359 for a document type.
pub fn parse(wrapped: &str) -> Result<Document<'_>, SqlError> {
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    Document::parse_with_options(wrapped, options).map_err(|error| parse_error(&error))
}

/// Text in the normal form.
///
/// # Errors
/// Those of [`parse`], and 6335 for more than [`DEPTH_MAX`] levels.
pub fn normalise(text: &str) -> Result<String, SqlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let body = match text.strip_prefix("<?xml").filter(|rest| rest.starts_with([' ', '\t', '\r', '\n', '?'])) {
        Some(rest) => rest.split_once("?>").ok_or_else(|| message(9400, &[&1, &text.chars().count()]))?.1,
        None => text,
    };
    // The reader would only say that it cannot stand inside an element.
    if body.trim_start().starts_with("<!DOCTYPE") {
        return Err(message(6359, &[]));
    }
    let wrapped = wrapped(body);
    let document = parse(&wrapped)?;
    let mut out = String::with_capacity(body.len());
    for child in document.root_element().children() {
        write(&mut out, child, false, 1)?;
    }
    Ok(out)
}

/// Appends a node in the normal form.
///
/// # Errors
/// 6335 for too many levels.
pub fn write_node(out: &mut String, node: Node<'_, '_>) -> Result<(), SqlError> {
    write(out, node, true, 1)
}

fn write(out: &mut String, node: Node<'_, '_>, keep_space: bool, depth: usize) -> Result<(), SqlError> {
    if depth > DEPTH_MAX {
        return Err(message(6335, &[&DEPTH_MAX]));
    }
    if node.is_element() {
        return write_element(out, node, keep_space, depth);
    }
    let text = node.text().unwrap_or_default();
    if node.is_comment() {
        out.extend(["<!--", text, "-->"]);
    } else if let Some(instruction) = node.pi() {
        out.extend(["<?", instruction.target]);
        instruction.value.iter().for_each(|value| out.extend([" ", value]));
        out.push_str("?>");
    } else if keep_space || !text.chars().all(is_space) {
        escape_text_into(out, text);
    }
    Ok(())
}

fn write_element(out: &mut String, node: Node<'_, '_>, keep_space: bool, depth: usize) -> Result<(), SqlError> {
    let source = node.document().input_text();
    let name = qualified_name(&source[node.range().start + 1..]);
    out.extend(["<", name]);
    let inherited = node.parent_element();
    for declared in node.namespaces() {
        let known = inherited.is_some_and(|parent| parent.lookup_namespace_uri(declared.name()) == Some(declared.uri()));
        if !known {
            out.push_str(" xmlns");
            declared.name().iter().for_each(|prefix| out.extend([":", prefix]));
            write_attribute_value(out, declared.uri());
        }
    }
    let mut keep_space = keep_space;
    for attribute in node.attributes() {
        out.extend([" ", &source[attribute.range_qname()]]);
        write_attribute_value(out, attribute.value());
        if attribute.name() == "space" && attribute.namespace() == Some("http://www.w3.org/XML/1998/namespace") {
            keep_space = attribute.value() == "preserve";
        }
    }
    let begun = out.len();
    out.push('>');
    for child in node.children() {
        write(out, child, keep_space, depth + 1)?;
    }
    if out.len() == begun + 1 {
        out.truncate(begun);
        out.push_str("/>");
    } else {
        out.extend(["</", name, ">"]);
    }
    Ok(())
}

fn write_attribute_value(out: &mut String, value: &str) {
    out.push_str("=\"");
    escape_attribute_into(out, value);
    out.push('"');
}

fn qualified_name(tag: &str) -> &str {
    let end = tag.find(|c: char| is_space(c) || c == '/' || c == '>').unwrap_or(tag.len());
    &tag[..end]
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Appends `text` as the text of an element.
pub fn escape_text_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0D;"),
            c => out.push(c),
        }
    }
}

/// Appends `text` as the value of an attribute in double quotes.
pub fn escape_attribute_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#x09;"),
            '\n' => out.push_str("&#x0A;"),
            '\r' => out.push_str("&#x0D;"),
            c => out.push(c),
        }
    }
}

/// The message for what the reader met, at the place it has in the text without its wrapping.
fn parse_error(error: &Error) -> SqlError {
    let at = error.pos();
    let column = if at.row == 1 { at.col.saturating_sub(WRAP.0.len() as u32) } else { at.col };
    let number = match error {
        Error::UnexpectedCloseTag(_, found, _) if found.as_str() == "_" => 9400,
        Error::UnexpectedCloseTag(..) | Error::UnexpectedEntityCloseTag(_) => 9436,
        Error::UnexpectedEndOfStream | Error::UnclosedRootNode | Error::NoRootNode => 9400,
        Error::DuplicatedAttribute(..) => 9437,
        Error::UnknownEntityReference(..) | Error::MalformedEntityReference(_) => 9411,
        Error::UnknownNamespace(..) => 9459,
        Error::NonXmlChar(..) => 9420,
        Error::InvalidName(_) => 9455,
        Error::InvalidChar2("a quote", ..) | Error::InvalidAttributeValue(_) => 9413,
        _ => 9402,
    };
    message(number, &[&at.row, &column])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form() {
        for (text, normal) in [
            ("<?xml version=\"1.0\"?><a></a>", "<a/>"),
            ("<a x='1\"' y = \"2\">\n  <b>t &amp; &#65;</b>\n</a>", "<a x=\"1&quot;\" y=\"2\"><b>t &amp; A</b></a>"),
            ("x<!--c--><?p d?><a/><b/>", "x<!--c--><?p d?><a/><b/>"),
            ("<a><![CDATA[<>]]></a>", "<a>&lt;&gt;</a>"),
            ("<p:a xmlns:p=\"u\"><p:b/></p:a>", "<p:a xmlns:p=\"u\"><p:b/></p:a>"),
            ("<a xml:space=\"preserve\"> </a>", "<a xml:space=\"preserve\"> </a>"),
            ("", ""),
        ] {
            let found = normalise(text).expect(text);
            assert_eq!(found, normal);
            assert_eq!(normalise(&found).expect("is well-formed"), normal, "the form is stable");
        }
    }

    #[test]
    fn what_is_not_xml() {
        for (text, number) in
            [("<a>", 9400), ("<a></b>", 9436), ("<a x=1/>", 9413), ("<a x='1' x='2'/>", 9437), ("&nope;", 9411), ("<!DOCTYPE a><a/>", 6359)]
        {
            assert_eq!(normalise(text).expect_err(text).number, number, "{text}");
        }
        let deep = "<a>".repeat(200) + &"</a>".repeat(200);
        assert_eq!(normalise(&deep).expect_err("too deep").number, 6335);
    }
}
