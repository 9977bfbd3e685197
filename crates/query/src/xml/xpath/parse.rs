//! XPath text to [`Expr`]: recursive descent, one function a level of precedence.

use super::{Axis, Expr, Function, Operator, Outside, Query, Step, Test};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// Nesting of parentheses and predicates taken; beyond it 9335.
const DEPTH_MAX: usize = 64;

/// Parses the query of method `method` (for messages: `value()`).
pub(crate) fn parse(text: &str, method: &str) -> Result<Query, SqlError> {
    let mut parser =
        Parser { text, at: 0, method, depth: 0, query: Query { expr: Expr::Context, namespaces: Vec::new(), outside: Vec::new() } };
    parser.prolog()?;
    let expr = parser.sequence()?;
    parser.skip_space();
    if parser.at < text.len() {
        return parser.fault();
    }
    Ok(Query { expr, ..parser.query })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    method: &'a str,
    depth: usize,
    query: Query,
}

type Parsed<T> = Result<T, SqlError>;

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("avg", Function::Avg, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, 64),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("data", Function::Data, 1, 1),
    ("distinct-values", Function::DistinctValues, 1, 1),
    ("empty", Function::Empty, 1, 1),
    ("exists", Function::Exists, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("last", Function::Last, 0, 0),
    ("local-name", Function::LocalName, 0, 1),
    ("lower-case", Function::LowerCase, 1, 1),
    ("max", Function::Max, 1, 1),
    ("min", Function::Min, 1, 1),
    ("name", Function::Name, 0, 1),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("string", Function::String, 0, 1),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
    ("upper-case", Function::UpperCase, 1, 1),
];

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn fault<T>(&self) -> Parsed<T> {
        let near: String = self.rest().trim_start().chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        Err(message(2209, &[&self.method, &(if near.is_empty() { "<eof>" } else { near.as_str() })]))
    }

    fn unsupported<T>(&self, what: &str) -> Parsed<T> {
        Err(message(9335, &[&self.method, &what]))
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { self.fault() }
    }

    /// A word that is not the beginning of a longer name.
    fn eat_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.rest().strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c| is_name(c) || c == ':' || c == '('));
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn name(&mut self) -> Option<String> {
        self.skip_space();
        let rest = self.rest();
        if !rest.starts_with(is_name_start) {
            return None;
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.at += end;
        Some(name)
    }

    fn string(&mut self) -> Parsed<String> {
        self.skip_space();
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return self.fault();
        };
        let mut out = String::new();
        self.at += 1;
        loop {
            let Some(end) = self.rest().find(quote) else {
                return self.fault();
            };
            out.push_str(&self.rest()[..end]);
            self.at += end + 1;
            if !self.rest().starts_with(quote) {
                return Ok(out.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"));
            }
            out.push(quote);
            self.at += 1;
        }
    }

    /// `declare namespace p = "uri"; declare default element namespace "uri";`
    fn prolog(&mut self) -> Parsed<()> {
        while self.eat_word("declare") {
            let prefix = if self.eat_word("default") {
                if !self.eat_word("element") {
                    return self.fault();
                }
                String::new()
            } else {
                String::from("?")
            };
            if !self.eat_word("namespace") {
                return self.fault();
            }
            let prefix = match prefix.as_str() {
                "" => prefix,
                _ => {
                    let Some(name) = self.name() else { return self.fault() };
                    self.expect("=")?;
                    name
                }
            };
            let uri = self.string()?;
            self.expect(";")?;
            self.query.namespaces.push((prefix, uri));
        }
        Ok(())
    }

    fn sequence(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.unsupported("deep nesting");
        }
        for word in ["for", "let", "some", "every", "if"] {
            let before = self.at;
            if self.eat_word(word) {
                self.skip_space();
                if self.rest().starts_with(['$', '(']) {
                    return self.unsupported(word);
                }
                self.at = before;
            }
        }
        let first = self.or()?;
        let mut members = vec![first];
        while self.eat(",") {
            members.push(self.or()?);
        }
        self.depth -= 1;
        Ok(if members.len() == 1 { members.remove(0) } else { Expr::Sequence(members) })
    }

    fn or(&mut self) -> Parsed<Expr> {
        let mut left = self.and()?;
        while self.eat_word("or") {
            left = Expr::Binary(Operator::Or, Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed<Expr> {
        let mut left = self.comparison()?;
        while self.eat_word("and") {
            left = Expr::Binary(Operator::And, Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        const SIGNS: [(&str, Operator); 6] = [
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        const WORDS: [(&str, Operator); 6] = [
            ("eq", Operator::Equal),
            ("ne", Operator::NotEqual),
            ("lt", Operator::Less),
            ("le", Operator::LessOrEqual),
            ("gt", Operator::Greater),
            ("ge", Operator::GreaterOrEqual),
        ];
        let left = self.sum()?;
        let sign = SIGNS.iter().find(|(sign, _)| self.eat(sign));
        let Some((_, operator)) = sign.or_else(|| WORDS.iter().find(|(word, _)| self.eat_word(word))) else {
            return Ok(left);
        };
        Ok(Expr::Binary(*operator, Box::new(left), Box::new(self.sum()?)))
    }

    fn sum(&mut self) -> Parsed<Expr> {
        let mut left = self.product()?;
        loop {
            let operator = match () {
                () if self.eat("+") => Operator::Add,
                () if self.eat("-") => Operator::Subtract,
                () => return Ok(left),
            };
            left = Expr::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Parsed<Expr> {
        let mut left = self.union()?;
        loop {
            let operator = match () {
                () if self.eat("*") => Operator::Multiply,
                () if self.eat_word("div") => Operator::Divide,
                () if self.eat_word("mod") => Operator::Modulo,
                () => return Ok(left),
            };
            left = Expr::Binary(operator, Box::new(left), Box::new(self.union()?));
        }
    }

    fn union(&mut self) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while self.eat("|") || self.eat_word("union") {
            left = Expr::Binary(Operator::Union, Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        if !self.eat("-") {
            return self.path();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.unsupported("deep nesting");
        }
        let operand = self.unary()?;
        self.depth -= 1;
        Ok(Expr::Negate(Box::new(operand)))
    }

    fn path(&mut self) -> Parsed<Expr> {
        self.skip_space();
        if self.eat("//") {
            let mut steps = vec![any_below()];
            self.steps(&mut steps)?;
            return Ok(Expr::Path(Box::new(Expr::Root), steps));
        }
        if self.eat("/") {
            self.skip_space();
            if !self.rest().starts_with(|c| is_name_start(c) || matches!(c, '*' | '@' | '.')) {
                return Ok(Expr::Root);
            }
            let mut steps = Vec::new();
            self.steps(&mut steps)?;
            return Ok(Expr::Path(Box::new(Expr::Root), steps));
        }
        let Some(mut from) = self.primary()? else {
            let mut steps = Vec::new();
            self.steps(&mut steps)?;
            return Ok(Expr::Path(Box::new(Expr::Context), steps));
        };
        let predicates = self.predicates()?;
        if !predicates.is_empty() {
            from = Expr::Filter(Box::new(from), predicates);
        }
        let mut steps = Vec::new();
        self.more_steps(&mut steps)?;
        Ok(if steps.is_empty() { from } else { Expr::Path(Box::new(from), steps) })
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        steps.push(self.step()?);
        self.more_steps(steps)
    }

    fn more_steps(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        loop {
            if self.eat("//") {
                steps.push(any_below());
            } else if !self.eat("/") {
                return Ok(());
            }
            steps.push(self.step()?);
        }
    }

    fn step(&mut self) -> Parsed<Step> {
        if self.eat("..") {
            return Ok(Step { axis: Axis::Parent, test: Test::Node, predicates: self.predicates()? });
        }
        if self.eat(".") {
            return Ok(Step { axis: Axis::Myself, test: Test::Node, predicates: self.predicates()? });
        }
        let mut axis = if self.eat("@") { Axis::Attribute } else { Axis::Child };
        for (word, named) in [
            ("child::", Axis::Child),
            ("attribute::", Axis::Attribute),
            ("descendant-or-self::", Axis::DescendantOrSelf),
            ("self::", Axis::Myself),
            ("parent::", Axis::Parent),
        ] {
            if self.eat(word) {
                axis = named;
                break;
            }
        }
        let test = self.test()?;
        Ok(Step { axis, test, predicates: self.predicates()? })
    }

    fn test(&mut self) -> Parsed<Test> {
        if self.eat("*:") {
            let Some(name) = self.name() else { return self.fault() };
            return Ok(Test::Name(Some("*".to_owned()), name));
        }
        if self.eat("*") {
            return Ok(Test::Any);
        }
        let Some(name) = self.name() else { return self.fault() };
        if self.rest().starts_with(':') && !self.rest().starts_with("::") {
            self.at += 1;
            let Some(local) = self.name() else { return self.fault() };
            return Ok(Test::Name(Some(name), local));
        }
        if !self.eat("(") {
            return Ok(Test::Name(None, name));
        }
        self.expect(")")?;
        match name.as_str() {
            "text" => Ok(Test::Text),
            "node" => Ok(Test::Node),
            "comment" => Ok(Test::Comment),
            "processing-instruction" => Ok(Test::Instruction),
            other => Err(message(2395, &[&self.method, &other])),
        }
    }

    fn predicates(&mut self) -> Parsed<Vec<Expr>> {
        let mut predicates = Vec::new();
        while self.eat("[") {
            predicates.push(self.sequence()?);
            self.expect("]")?;
        }
        Ok(predicates)
    }

    /// What is no step: literals, calls, parentheses, the context. `None` for a step.
    fn primary(&mut self) -> Parsed<Option<Expr>> {
        self.skip_space();
        let Some(first) = self.rest().chars().next() else {
            return self.fault();
        };
        match first {
            '"' | '\'' => self.string().map(|text| Some(Expr::Text(text))),
            '0'..='9' => self.number().map(Some),
            '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number().map(Some),
            '.' if !self.rest().starts_with("..") => {
                self.at += 1;
                Ok(Some(Expr::Context))
            }
            '(' => {
                self.at += 1;
                if self.eat(")") {
                    return Ok(Some(Expr::Sequence(Vec::new())));
                }
                let inside = self.sequence()?;
                self.expect(")")?;
                Ok(Some(Expr::Sequence(vec![inside])))
            }
            '$' => self.unsupported("$"),
            '<' => self.unsupported("element constructor"),
            c if is_name_start(c) => self.call(),
            _ => Ok(None),
        }
    }

    fn number(&mut self) -> Parsed<Expr> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        match rest[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(Expr::Number(number))
            }
            Err(_) => self.fault(),
        }
    }

    fn call(&mut self) -> Parsed<Option<Expr>> {
        let begin = self.at;
        for (name, made) in [("sql:variable", Outside::Variable as fn(String) -> Outside), ("sql:column", Outside::Column)] {
            if self.eat(name) {
                self.expect("(")?;
                let named = made(self.string()?);
                self.expect(")")?;
                self.query.outside.push(named);
                return Ok(Some(Expr::Outside(self.query.outside.len() - 1)));
            }
        }
        let _ = self.eat("fn:");
        let name = self.name().unwrap_or_default();
        let node_test = matches!(name.as_str(), "text" | "node" | "comment" | "processing-instruction");
        if node_test || !self.eat("(") {
            self.at = begin;
            return Ok(None);
        }
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return Err(message(2395, &[&self.method, &name]));
        };
        let mut arguments = Vec::new();
        if !self.eat(")") {
            loop {
                arguments.push(self.or()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        if !(*least..=*most).contains(&arguments.len()) {
            return self.fault();
        }
        Ok(Some(Expr::Call(*function, arguments)))
    }
}

fn any_below() -> Step {
    Step { axis: Axis::DescendantOrSelf, test: Test::Node, predicates: Vec::new() }
}
