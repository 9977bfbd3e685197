//! Evaluating an XPath expression over a tree.

use super::{Axis, Expr, Function, Operator, Query, Step, Test};
use roxmltree::{Attribute, Node};
use std::cmp::Ordering;

/// A member of a sequence.
#[derive(Debug, Clone)]
pub(crate) enum Item<'t, 'i> {
    Node(Node<'t, 'i>),
    Attribute(Node<'t, 'i>, Attribute<'t, 'i>),
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// Where evaluation stands.
pub(crate) struct Focus<'q, 't, 'i> {
    pub query: &'q Query,
    /// Values of sql:variable and sql:column, `None` for NULL.
    pub outside: &'q [Option<String>],
    pub item: Item<'t, 'i>,
    pub position: usize,
    pub last: usize,
}

impl<'t, 'i> Focus<'_, 't, 'i> {
    fn on(&self, item: Item<'t, 'i>, position: usize, last: usize) -> Self {
        Self { query: self.query, outside: self.outside, item, position, last }
    }
}

impl Item<'_, '_> {
    /// Its string value.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Node(node) if node.is_element() || node.is_root() => {
                node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect()
            }
            Self::Node(node) => node.text().unwrap_or_default().to_owned(),
            Self::Attribute(_, attribute) => attribute.value().to_owned(),
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Boolean(boolean) => boolean.to_string(),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Boolean(boolean) => f64::from(u8::from(*boolean)),
            other => other.text().trim().parse().unwrap_or(f64::NAN),
        }
    }

    fn is_node(&self) -> bool {
        matches!(self, Self::Node(_) | Self::Attribute(..))
    }

    /// Order in the document; attributes behind their element, before its children.
    fn place(&self) -> (u32, usize) {
        match self {
            Self::Node(node) => (node.id().get(), 0),
            Self::Attribute(node, attribute) => (node.id().get(), 1 + attribute.range().start),
            _ => (0, 0),
        }
    }
}

type Items<'t, 'i> = Vec<Item<'t, 'i>>;

/// The items `expr` gives.
pub(crate) fn evaluate<'t, 'i>(expr: &Expr, focus: &Focus<'_, 't, 'i>) -> Items<'t, 'i> {
    match expr {
        Expr::Text(text) => vec![Item::Text(text.clone())],
        Expr::Number(number) => vec![Item::Number(*number)],
        Expr::Outside(which) => focus.outside[*which].iter().map(|text| Item::Text(text.clone())).collect(),
        Expr::Context => vec![focus.item.clone()],
        Expr::Root => vec![root(&focus.item)],
        Expr::Sequence(members) => members.iter().flat_map(|member| evaluate(member, focus)).collect(),
        Expr::Negate(operand) => evaluate(operand, focus).iter().map(|item| Item::Number(-item.number())).collect(),
        Expr::Binary(operator, left, right) => binary(*operator, left, right, focus),
        Expr::Call(function, arguments) => call(*function, arguments, focus),
        Expr::Filter(from, predicates) => filter(evaluate(from, focus), predicates, focus),
        Expr::Path(from, steps) => {
            let mut items = evaluate(from, focus);
            for step in steps {
                let mut found: Items = items.iter().flat_map(|item| filter(along(step, item, focus), &step.predicates, focus)).collect();
                found.sort_by_key(Item::place);
                found.dedup_by_key(|item| item.place());
                items = found;
            }
            items
        }
    }
}

/// Whether what `expr` gives counts as true: a boolean by itself, anything else by being there.
pub(crate) fn holds(items: &[Item<'_, '_>]) -> bool {
    match items {
        [Item::Boolean(boolean)] => *boolean,
        [Item::Number(number)] => *number != 0.0 && !number.is_nan(),
        [Item::Text(text)] => !text.is_empty(),
        other => !other.is_empty(),
    }
}

fn root<'t, 'i>(item: &Item<'t, 'i>) -> Item<'t, 'i> {
    match item {
        // The wrapping element stands for the document.
        Item::Node(node) | Item::Attribute(node, _) => Item::Node(node.document().root_element()),
        other => other.clone(),
    }
}

fn filter<'t, 'i>(mut items: Items<'t, 'i>, predicates: &[Expr], focus: &Focus<'_, 't, 'i>) -> Items<'t, 'i> {
    for predicate in predicates {
        let last = items.len();
        let mut position = 0;
        items.retain(|item| {
            position += 1;
            let found = evaluate(predicate, &focus.on(item.clone(), position, last));
            match found.as_slice() {
                [Item::Number(number)] => *number == position as f64,
                other => holds(other),
            }
        });
    }
    items
}

fn along<'t, 'i>(step: &Step, item: &Item<'t, 'i>, focus: &Focus<'_, 't, 'i>) -> Items<'t, 'i> {
    let (Item::Node(node) | Item::Attribute(node, _)) = item else {
        return Vec::new();
    };
    if let Item::Attribute(owner, _) = item {
        return match step.axis {
            Axis::Parent => vec![Item::Node(*owner)],
            Axis::Myself | Axis::DescendantOrSelf => vec![item.clone()],
            Axis::Child | Axis::Attribute => Vec::new(),
        };
    }
    let fits = |node: &Node<'t, 'i>| node_fits(&step.test, node, focus.query);
    match step.axis {
        Axis::Child => node.children().filter(fits).map(Item::Node).collect(),
        Axis::DescendantOrSelf => node.descendants().filter(fits).map(Item::Node).collect(),
        Axis::Myself => Some(*node).filter(fits).map(Item::Node).into_iter().collect(),
        Axis::Parent => node.parent_element().filter(fits).map(Item::Node).into_iter().collect(),
        Axis::Attribute => {
            let fits = |attribute: &Attribute<'_, '_>| name_fits(&step.test, attribute.name(), attribute.namespace(), true, focus.query);
            node.attributes().filter(fits).map(|attribute| Item::Attribute(*node, attribute)).collect()
        }
    }
}

fn node_fits(test: &Test, node: &Node<'_, '_>, query: &Query) -> bool {
    match test {
        Test::Node => true,
        Test::Text => node.is_text(),
        Test::Comment => node.is_comment(),
        Test::Instruction => node.is_pi(),
        Test::Any => node.is_element(),
        Test::Name(..) => node.is_element() && name_fits(test, node.tag_name().name(), node.tag_name().namespace(), false, query),
    }
}

fn name_fits(test: &Test, name: &str, namespace: Option<&str>, attribute: bool, query: &Query) -> bool {
    let Test::Name(prefix, local) = test else {
        return matches!(test, Test::Any | Test::Node);
    };
    let declared = |prefix: &str| query.namespaces.iter().find(|(known, _)| known == prefix).map(|(_, uri)| uri.as_str());
    let wanted = match prefix.as_deref() {
        Some("*") => return local == name,
        Some("xml") => Some("http://www.w3.org/XML/1998/namespace"),
        Some(prefix) => declared(prefix).or(Some("")),
        None if attribute => None,
        None => declared(""),
    };
    local == name && namespace == wanted
}

fn binary<'t, 'i>(operator: Operator, left: &Expr, right: &Expr, focus: &Focus<'_, 't, 'i>) -> Items<'t, 'i> {
    let boolean = |value: bool| vec![Item::Boolean(value)];
    match operator {
        Operator::Or => boolean(holds(&evaluate(left, focus)) || holds(&evaluate(right, focus))),
        Operator::And => boolean(holds(&evaluate(left, focus)) && holds(&evaluate(right, focus))),
        Operator::Union => {
            let mut items = evaluate(left, focus);
            items.extend(evaluate(right, focus));
            items.sort_by_key(Item::place);
            items.dedup_by_key(|item| item.place());
            items
        }
        Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo => {
            let (left, right) = (evaluate(left, focus), evaluate(right, focus));
            let (Some(left), Some(right)) = (left.first(), right.first()) else {
                return Vec::new();
            };
            vec![Item::Number(calculate(operator, left.number(), right.number()))]
        }
        comparison => {
            let (left, right) = (evaluate(left, focus), evaluate(right, focus));
            boolean(left.iter().any(|a| right.iter().any(|b| compares(comparison, a, b))))
        }
    }
}

fn calculate(operator: Operator, left: f64, right: f64) -> f64 {
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => left % right,
    }
}

fn compares(operator: Operator, left: &Item<'_, '_>, right: &Item<'_, '_>) -> bool {
    let numeric = matches!(left, Item::Number(_)) || matches!(right, Item::Number(_));
    let order = match (left, right) {
        (Item::Boolean(a), b) | (b, Item::Boolean(a)) => a.cmp(&holds(std::slice::from_ref(b))),
        _ if numeric => match left.number().partial_cmp(&right.number()) {
            Some(order) => order,
            None => return operator == Operator::NotEqual,
        },
        _ => left.text().cmp(&right.text()),
    };
    match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

fn call<'t, 'i>(function: Function, arguments: &[Expr], focus: &Focus<'_, 't, 'i>) -> Items<'t, 'i> {
    let items = |at: usize| match arguments.get(at) {
        Some(argument) => evaluate(argument, focus),
        None => vec![focus.item.clone()],
    };
    let text = |at: usize| items(at).first().map(Item::text).unwrap_or_default();
    let number = |value: f64| vec![Item::Number(value)];
    let boolean = |value: bool| vec![Item::Boolean(value)];
    let string = |value: String| vec![Item::Text(value)];
    match function {
        Function::Position => number(focus.position as f64),
        Function::Last => number(focus.last as f64),
        Function::Count => number(items(0).len() as f64),
        Function::Sum | Function::Avg | Function::Min | Function::Max => total(function, &items(0)),
        Function::Not => boolean(!holds(&items(0))),
        Function::Empty => boolean(items(0).is_empty()),
        Function::Exists => boolean(!items(0).is_empty()),
        Function::True => boolean(true),
        Function::False => boolean(false),
        Function::String => string(text(0)),
        Function::Number => number(items(0).first().map_or(f64::NAN, Item::number)),
        Function::Data => items(0).iter().map(|item| if item.is_node() { Item::Text(item.text()) } else { item.clone() }).collect(),
        Function::Concat => string((0..arguments.len()).map(text).collect()),
        Function::Contains => boolean(text(0).contains(&text(1))),
        Function::Substring => string(substring(&text(0), items(1).first(), arguments.get(2).map(|_| items(2)).as_deref())),
        Function::StringLength => number(text(0).chars().count() as f64),
        Function::LocalName | Function::Name => string(items(0).first().map(name_of).unwrap_or_default()),
        Function::UpperCase => string(text(0).to_uppercase()),
        Function::LowerCase => string(text(0).to_lowercase()),
        Function::Floor => items(0).iter().take(1).map(|item| Item::Number(item.number().floor())).collect(),
        Function::Ceiling => items(0).iter().take(1).map(|item| Item::Number(item.number().ceil())).collect(),
        Function::Round => items(0).iter().take(1).map(|item| Item::Number((item.number() + 0.5).floor())).collect(),
        Function::DistinctValues => {
            let mut seen: Vec<String> = Vec::new();
            items(0).iter().map(Item::text).for_each(|value| {
                if !seen.contains(&value) {
                    seen.push(value)
                }
            });
            seen.into_iter().map(Item::Text).collect()
        }
    }
}

fn total<'t, 'i>(function: Function, items: &[Item<'_, '_>]) -> Items<'t, 'i> {
    let numbers = items.iter().map(Item::number);
    match function {
        Function::Sum => vec![Item::Number(numbers.sum())],
        _ if items.is_empty() => Vec::new(),
        Function::Avg => vec![Item::Number(numbers.sum::<f64>() / items.len() as f64)],
        Function::Min => vec![Item::Number(numbers.fold(f64::INFINITY, f64::min))],
        _ => vec![Item::Number(numbers.fold(f64::NEG_INFINITY, f64::max))],
    }
}

fn name_of(item: &Item<'_, '_>) -> String {
    match item {
        Item::Node(node) => node.tag_name().name().to_owned(),
        Item::Attribute(_, attribute) => attribute.name().to_owned(),
        _ => String::new(),
    }
}

/// XPath's substring: positions from 1, rounded; what lies outside is not there.
fn substring(text: &str, start: Option<&Item<'_, '_>>, length: Option<&[Item<'_, '_>]>) -> String {
    let start = (start.map_or(f64::NAN, Item::number) + 0.5).floor();
    let end = match length {
        None => f64::INFINITY,
        Some(length) => start + (length.first().map_or(f64::NAN, Item::number) + 0.5).floor(),
    };
    text.chars().enumerate().filter(|(at, _)| (*at as f64 + 1.0) >= start && (*at as f64 + 1.0) < end).map(|(_, c)| c).collect()
}
