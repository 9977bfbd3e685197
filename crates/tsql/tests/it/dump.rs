//! A tree as an S-expression, short enough to be read in a table of cases.
//!
//! The dump is made of the tree's `Debug` text, so that a new node needs no code here: spans, absent options, empty lists
//! and `false` are left out, identifiers and literals are reduced to what was written.

use thawdb_tsql::ast::Stmt;

/// The statements, one S-expression each, separated by ` ; `.
pub fn dump(statements: &[Stmt]) -> String {
    let texts: Vec<String> = statements.iter().map(|s| show(&read(&mut Reader::new(&format!("{s:?}"))))).collect();
    texts.join(" ; ")
}

enum Node {
    Atom(String),
    Struct(String, Vec<(String, Node)>),
    Tuple(String, Vec<Node>),
    List(Vec<Node>),
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Self {
        Self { chars: text.chars().collect(), at: 0 }
    }

    fn skip(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace() || *c == ',') {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> char {
        self.skip();
        self.chars.get(self.at).copied().unwrap_or('\0')
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == c;
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|c| c.is_alphanumeric() || "_.-+".contains(*c)) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while self.chars[self.at] != '"' {
            self.at += if self.chars[self.at] == '\\' { 2 } else { 1 };
        }
        self.at += 1;
        self.chars[start..self.at].iter().collect()
    }
}

fn read(reader: &mut Reader) -> Node {
    match reader.peek() {
        '"' => Node::Atom(reader.string()),
        '[' => {
            reader.at += 1;
            Node::List(read_until(reader, ']'))
        }
        '(' => {
            reader.at += 1;
            Node::List(read_until(reader, ')'))
        }
        _ => {
            let name = reader.word();
            assert!(!name.is_empty(), "at {:?}", reader.chars[reader.at..].iter().take(40).collect::<String>());
            if reader.chars.get(reader.at) == Some(&'(') {
                reader.at += 1;
                return Node::Tuple(name, read_until(reader, ')'));
            }
            if reader.chars.get(reader.at..reader.at + 2) == Some(&[' ', '{']) {
                reader.at += 2;
                let mut fields = Vec::new();
                while !reader.eat('}') {
                    if reader.eat('.') {
                        reader.at += 1;
                        continue;
                    }
                    reader.skip();
                    let field = reader.word();
                    assert!(reader.eat(':'), "field {field}");
                    fields.push((field, read(reader)));
                }
                return Node::Struct(name, fields);
            }
            Node::Atom(name)
        }
    }
}

fn read_until(reader: &mut Reader, close: char) -> Vec<Node> {
    let mut nodes = Vec::new();
    while !reader.eat(close) {
        nodes.push(read(reader));
    }
    nodes
}

/// A kind and a span, nothing else.
fn is_wrapper(fields: &[(String, Node)]) -> bool {
    fields.iter().any(|(name, _)| name == "kind") && fields.iter().all(|(name, node)| name == "kind" || name == "span" || is_absent(node))
}

fn is_absent(node: &Node) -> bool {
    matches!(node, Node::Atom(a) if a == "None" || a == "false") || matches!(node, Node::List(l) if l.is_empty())
}

fn field<'n>(fields: &'n [(String, Node)], name: &str) -> &'n Node {
    &fields.iter().find(|(field, _)| field == name).unwrap_or_else(|| panic!("no field {name}")).1
}

fn unquote(node: &Node) -> String {
    match node {
        Node::Atom(text) => text.trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\"),
        other => show(other),
    }
}

fn show_ident(fields: &[(String, Node)]) -> String {
    let text = unquote(field(fields, "text"));
    match show(field(fields, "quote")).as_str() {
        "Bracket" => format!("[{text}]"),
        "Double" => format!("\"{text}\""),
        _ => text,
    }
}

fn show_name(fields: &[(String, Node)]) -> String {
    let parts: Vec<String> = ["server", "database", "schema", "name"]
        .iter()
        .map(|part| field(fields, part))
        .map(|n| if is_absent(n) { String::new() } else { show(n) })
        .collect();
    parts.join(".").trim_start_matches('.').to_owned()
}

fn show(node: &Node) -> String {
    match node {
        Node::Atom(text) => text.clone(),
        Node::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" ")),
        Node::Tuple(name, items) => match (name.as_str(), items.as_slice()) {
            ("Some" | "Column" | "Variable" | "Expr" | "Literal" | "Name" | "Select" | "Function" | "Table", [only]) => show(only),
            ("Integer" | "Float", [only]) => unquote(only),
            ("Money", [only]) => format!("${}", unquote(only)),
            _ => format!("({name}{})", items.iter().map(|item| format!(" {}", show(item))).collect::<String>()),
        },
        Node::Struct(name, fields) => match name.as_str() {
            "Ident" => show_ident(fields),
            "ObjectName" => show_name(fields),
            "ColumnName" => match field(fields, "table") {
                table if is_absent(table) => show(field(fields, "column")),
                table => format!("{}.{}", show(table), show(field(fields, "column"))),
            },
            "Variable" if fields.len() == 2 => unquote(field(fields, "name")),
            "Decimal" => unquote(field(fields, "text")),
            "String" => {
                let national = if is_absent(field(fields, "national")) { "" } else { "N" };
                format!("{national}'{}'", unquote(field(fields, "value")))
            }
            _ if is_wrapper(fields) => show(field(fields, "kind")),
            _ => {
                let shown: String = fields
                    .iter()
                    .filter(|(name, node)| name != "span" && !is_absent(node))
                    .map(|(name, node)| format!(" {name}={}", show(node)))
                    .collect();
                format!("({name}{shown})")
            }
        },
    }
}
