//! value(), query(), exist() and nodes() of an xml value, and a row of FOR XML.

use super::format::{Layout, value_text};
use super::xpath::{Focus, Item, evaluate, holds, parse};
use crate::bind::query::auto_nesting::nest;
use crate::context::SessionInfo;
use crate::functions::call::Call;
use crate::functions::or_null;
use crate::phys::{OutputColumn, RowSource};
use thawdb_types::convert::convert;
use thawdb_types::xml::{escape_text_into, parse as parse_xml, wrapped, write_node};
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

/// Begins a row of nodes(): paths then start at the one node, not above it. XML has no such character.
const NODE: char = '\u{1}';

/// Evaluates `path` over `xml` and hands the items to `give`. `outside` are the values of sql:variable and sql:column.
fn over<T>(xml: &str, path: &str, method: &str, outside: &[Scalar], give: impl FnOnce(Vec<Item<'_, '_>>) -> Result<T>) -> Result<T> {
    let query = parse(path, method)?;
    let outside: Vec<Option<String>> = outside.iter().map(|value| value.as_text().map(str::to_owned)).collect();
    let is_node = xml.starts_with(NODE);
    let text = wrapped(xml.trim_start_matches(NODE));
    let document = parse_xml(&text)?;
    let root = document.root_element();
    let item = Item::Node(if is_node { root.first_child().unwrap_or(root) } else { root });
    let focus = Focus { query: &query, outside: &outside, item, position: 1, last: 1 };
    give(evaluate(&query.expr, &focus))
}

/// XML VALUE(xml, path, outside ...): the one item as a value of the result's type.
pub(crate) fn value(call: &Call<'_>) -> Result {
    let (xml, path) = (or_null!(call.text(0)), or_null!(call.text(1)));
    let text = over(xml, path, "value()", &call.values[2..], |items| Ok(items.first().map(Item::text)))?;
    convert(&Scalar::Text(or_null!(text)), &SqlType::NVARCHAR_MAX, call.result, 0)
}

/// XML EXIST(xml, path, outside ...): 1 for any item.
pub(crate) fn exist(call: &Call<'_>) -> Result {
    let (xml, path) = (or_null!(call.text(0)), or_null!(call.text(1)));
    over(xml, path, "exist()", &call.values[2..], |items| {
        // A comparison is an item, true or not.
        Ok(Scalar::Bit(match items.as_slice() {
            [Item::Boolean(_)] => true,
            other => holds(other) || !other.is_empty(),
        }))
    })
}

/// XML QUERY(xml, path, outside ...): the items as XML.
pub(crate) fn query(call: &Call<'_>) -> Result {
    let (xml, path) = (or_null!(call.text(0)), or_null!(call.text(1)));
    over(xml, path, "query()", &call.values[2..], |items| {
        let mut out = String::new();
        for (at, item) in items.iter().enumerate() {
            let atomic = !matches!(item, Item::Node(_));
            if atomic && at > 0 {
                out.push(' ');
            }
            write_item(&mut out, item)?;
        }
        Ok(Scalar::Text(out))
    })
}

fn write_item(out: &mut String, item: &Item<'_, '_>) -> Result<()> {
    match item {
        Item::Node(node) if *node == node.document().root_element() => node.children().try_for_each(|child| write_node(out, child)),
        Item::Node(node) => write_node(out, *node),
        other => {
            escape_text_into(out, &other.text());
            Ok(())
        }
    }
}

/// FOR XML of one row: the layout, then the columns' values.
pub(crate) fn for_xml_row(call: &Call<'_>) -> Result {
    let layout = Layout::decode(call.text(0).expect("the binder writes the layout"));
    let mut out = String::new();
    layout.write_row(&mut out, |column, in_attribute| match call.value(column + 1) {
        Scalar::Null => Ok(None),
        value => value_text(value, call.type_of(column + 1), in_attribute).map(Some),
    })?;
    Ok(Scalar::Text(out))
}

/// `FOR XML NEST`: rows of several levels put into one another.
pub(crate) fn for_xml_nest(call: &Call<'_>) -> Result {
    let names: Vec<&str> = call.text(0).expect("the binder writes the names").split('\u{1f}').collect();
    let Some(rows) = call.text(1) else { return Ok(Scalar::Null) };
    let close = |out: &mut String, level: usize| out.extend(["</", names[level], ">"]);
    let open = |out: &mut String, level: usize, element: &str| match element.strip_suffix("/>") {
        Some(begin) => out.extend([begin, ">"]),
        None => out.push_str(element.strip_suffix(&format!("</{}>", names[level])).unwrap_or(element)),
    };
    Ok(Scalar::Text(nest(rows, "", open, close)))
}

/// nodes(path): a row for each node, as an xml value of its own.
#[derive(Debug)]
pub(crate) struct Nodes {
    columns: [OutputColumn; 1],
}

impl Nodes {
    pub(crate) fn new() -> Self {
        Self { columns: [OutputColumn { name: "node".to_owned(), sql_type: SqlType::Xml, nullable: false, identity: false }] }
    }
}

impl RowSource for Nodes {
    fn name(&self) -> &str {
        "XML Reader"
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Vec<Vec<Scalar>>> {
        let (Some(xml), Some(path)) = (arguments[0].as_text(), arguments[1].as_text()) else {
            return Ok(Vec::new());
        };
        over(xml, path, "nodes()", &arguments[2..], |items| {
            let mut rows = Vec::with_capacity(items.len());
            for item in &items {
                let mut node = String::from(NODE);
                write_item(&mut node, item)?;
                rows.push(vec![Scalar::Text(node)]);
            }
            Ok(rows)
        })
    }
}
