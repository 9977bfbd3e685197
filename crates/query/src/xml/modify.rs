//! modify(): the XML data modification language over a value's text.
//!
//! ```text
//! insert content [as first | as last] into | before | after path      delete path      replace value of path with value
//!
//! text ─ parse ─► Dml     value ─ tree ─► nodes of the path ─► ranges of its text ─► the text with other pieces there ─► normal form
//! ```
//! A value's text is in one normal form ([`thawdb_types::xml`]), and the tree knows where each node stands in it, so a change is
//! a splice: no tree that can be written to is needed.
//!
//! Invariants: edits do not overlap (what lies in a deleted node is deleted with it, [`apply`]); the result is read again, so that
//! no change makes a value that is not well-formed. Failure: 2209 for a text that does not parse, 2226, 2337 and 2356 for targets
//! that will not do, the 94xx messages for content that is no XML, 5302 for NULL. It knows no FLWOR and no typed XML (9335).
//! Source: XML Data Modification Language, documentation of SQL Server.

use super::modify_parse::{Action, Content, Dml, Piece, Place, Value};
use super::xpath::{Focus, Item, evaluate};
use crate::functions::call::Call;
use roxmltree::Node;
use std::ops::Range;
use thawdb_types::error::message;
use thawdb_types::xml::{escape_attribute_into, escape_text_into, normalise, parse as parse_xml, wrapped};
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T> = std::result::Result<T, SqlError>;

/// A part of the text and what stands there afterwards.
type Edit = (Range<usize>, String);

/// XML MODIFY(xml, text, name of the target, outside ...): the value changed.
pub(crate) fn modify(call: &Call<'_>) -> Result<Scalar> {
    let name = call.text(2).unwrap_or_default();
    let Some(xml) = call.text(0) else { return Err(message(5302, &[&"modify()", &name])) };
    let dml = super::modify_parse::parse(call.text(1).unwrap_or_default())?;
    let outside = Outside {
        texts: call.values[3..].iter().map(|value| value.as_text().map(str::to_owned)).collect(),
        is_xml: call.arguments[3..].iter().map(|argument| argument.sql_type == SqlType::Xml).collect(),
    };
    let text = wrapped(xml);
    let document = parse_xml(&text)?;
    let change = Change { dml: &dml, outside: &outside, root: document.root_element(), text: &text };
    let edited = apply(&text, change.edits()?);
    let content = edited.strip_prefix("<_>").and_then(|rest| rest.strip_suffix("</_>")).unwrap_or_default();
    normalise(content).map(Scalar::Text)
}

/// Values of sql:variable and sql:column, and which of them are XML.
struct Outside {
    texts: Vec<Option<String>>,
    is_xml: Vec<bool>,
}

struct Change<'c, 't, 'i> {
    dml: &'c Dml,
    outside: &'c Outside,
    root: Node<'t, 'i>,
    text: &'c str,
}

impl<'t, 'i> Change<'_, 't, 'i> {
    fn items(&self, value: &Value) -> Vec<Item<'t, 'i>> {
        let outside = &self.outside.texts[value.outside.clone()];
        let focus = Focus { query: &value.query, outside, item: Item::Node(self.root), position: 1, last: 1 };
        evaluate(&value.query.expr, &focus)
    }

    /// The items' texts, with a blank between them.
    fn text_of(&self, value: &Value) -> String {
        self.items(value).iter().map(Item::text).collect::<Vec<_>>().join(" ")
    }

    fn edits(&self) -> Result<Vec<Edit>> {
        match &self.dml.action {
            Action::Delete(path) => {
                Ok(self.items(path).iter().filter_map(|item| self.range_of(item)).map(|r| (r, String::new())).collect())
            }
            Action::Replace { path, with } => self.replace(path, with),
            Action::Insert { content, place, path } => self.insert(content, *place, path),
        }
    }

    /// Where an item stands, an attribute with the blank before it.
    fn range_of(&self, item: &Item<'_, '_>) -> Option<Range<usize>> {
        match item {
            Item::Node(node) if *node == self.root => None,
            Item::Node(node) => Some(node.range()),
            Item::Attribute(_, attribute) => {
                let range = attribute.range();
                let blanks = self.text[..range.start].len() - self.text[..range.start].trim_end().len();
                Some(range.start - blanks..range.end)
            }
            _ => None,
        }
    }

    fn replace(&self, path: &Value, with: &Value) -> Result<Vec<Edit>> {
        if !path.query.expr.is_single() {
            return Err(message(2337, &[&"modify()", &path.found()]));
        }
        let new = self.text_of(with);
        let mut out = String::new();
        match self.items(path).first() {
            None => Ok(Vec::new()),
            Some(Item::Attribute(_, attribute)) => {
                escape_attribute_into(&mut out, &new);
                Ok(vec![(attribute.range_value(), out)])
            }
            Some(Item::Node(node)) if node.is_text() => {
                escape_text_into(&mut out, &new);
                Ok(vec![(node.range(), out)])
            }
            Some(_) => Err(message(2356, &[&"modify()", &path.found()])),
        }
    }

    fn insert(&self, content: &[Content], place: Place, path: &Value) -> Result<Vec<Edit>> {
        if !path.query.expr.is_single() {
            return Err(message(2226, &[&"modify()", &path.found()]));
        }
        let items = self.items(path);
        let Some(Item::Node(target)) = items.first() else { return Ok(Vec::new()) };
        let (mut markup, mut attributes) = (String::new(), String::new());
        for piece in content {
            self.write(piece, &mut markup, &mut attributes)?;
        }
        let mut edits = Vec::new();
        if !attributes.is_empty() {
            if !target.is_element() {
                return Err(message(2226, &[&"modify()", &path.found()]));
            }
            let at = target.range().start + 1 + self.name_of(target).len();
            edits.push((at..at, attributes));
        }
        if !markup.is_empty() {
            edits.push(self.insertion(target, place, markup));
        }
        Ok(edits)
    }

    fn name_of(&self, element: &Node<'_, '_>) -> &str {
        let source = &self.text[element.range().start + 1..];
        &source[..source.find([' ', '/', '>', '\t', '\r', '\n']).unwrap_or(source.len())]
    }

    fn insertion(&self, target: &Node<'_, '_>, place: Place, markup: String) -> Edit {
        let range = target.range();
        match place {
            Place::Before => (range.start..range.start, markup),
            Place::After => (range.end..range.end, markup),
            Place::First | Place::Last if !target.has_children() => {
                // An element without content is closed at once in the normal form; the wrapping root is not.
                match self.text[range.clone()].strip_suffix("/>") {
                    Some(_) => (range.end - 2..range.end, format!(">{markup}</{}>", self.name_of(target))),
                    None => {
                        let at = range.end - "</>".len() - self.name_of(target).len();
                        (at..at, markup)
                    }
                }
            }
            Place::First => {
                let at = target.first_child().map_or(range.end, |child| child.range().start);
                (at..at, markup)
            }
            Place::Last => {
                let at = target.last_child().map_or(range.end, |child| child.range().end);
                (at..at, markup)
            }
        }
    }

    fn write(&self, content: &Content, markup: &mut String, attributes: &mut String) -> Result<()> {
        match content {
            Content::Markup(pieces) => self.write_markup(pieces, markup),
            Content::Attribute { name, value } => {
                attributes.extend([" ", name, "=\""]);
                escape_attribute_into(attributes, &self.text_of(value));
                attributes.push('"');
            }
            Content::Text(value) => escape_text_into(markup, &self.text_of(value)),
            Content::Value(value) if value.outside.len() == 1 && self.outside.is_xml[value.outside.start] => {
                markup.push_str(self.outside.texts[value.outside.start].as_deref().unwrap_or_default());
            }
            Content::Value(value) => {
                for item in self.items(value) {
                    match item {
                        Item::Node(node) => thawdb_types::xml::write_node(markup, node)?,
                        other => escape_text_into(markup, &other.text()),
                    }
                }
            }
        }
        Ok(())
    }

    fn write_markup(&self, pieces: &[Piece], markup: &mut String) {
        for piece in pieces {
            match piece {
                Piece::Literal(text) => markup.push_str(text),
                Piece::InAttribute(value) => escape_attribute_into(markup, &self.text_of(value)),
                Piece::InContent(value) => escape_text_into(markup, &self.text_of(value)),
            }
        }
    }
}

/// The text with its edits made, from the end on; an edit inside a part that goes away is nothing.
fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, new) in edits {
        if range.start < at {
            continue;
        }
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_inside_of_a_deleted_part_are_nothing() {
        let edits = vec![(2..6, String::new()), (3..4, "x".to_owned()), (8..8, "+".to_owned())];
        assert_eq!(apply("0123456789", edits), "0167+89");
    }
}
