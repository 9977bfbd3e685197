//! An expression as catalog views show it: SQL Server's normal form.
//!
//! ```text
//! DEFAULT 0                 ((0))                 CHECK (Score > 0 and Score < 10)   ([Score]>(0) AND [Score]<(10))
//! DEFAULT GETDATE()         (getdate())           CHECK (a BETWEEN 1 AND 5)          ([a]>=(1) AND [a]<=(5))
//! DEFAULT N'x'              (N'x')                CHECK (a IN ('x', 'y'))            ([a]='y' OR [a]='x')
//! AS CAST(a AS int) + 1     (CONVERT([int],[a])+(1))
//! ```
//!
//! 1. The form reads back: `definition(parse_expr(definition(e)))` is `definition(e)` (test `definitions_read_back`).
//! 2. Parentheses the user wrote are kept only where the form needs them; numbers have their own.
//!
//! Queries have no place in a default, check or computed column, and no form here: `definition` is `None`, which the
//! engine reports as error 1046.

use std::fmt::Write;

use crate::ast::{
    BinaryOp, CaseBranch, ColumnName, CompareOp, DataType, Expr, ExprKind, FunctionCall, Ident, Literal, Niladic, ObjectName, OdbcLiteral,
    TypeParameter, UnaryOp,
};

/// The expression's text for `sys.default_constraints.definition` and its relatives; `None` if it contains a query.
#[must_use]
pub fn definition(expr: &Expr) -> Option<String> {
    let mut out = String::from("(");
    write_expr(expr, Level::Or, &mut out)?;
    out.push(')');
    Some(out)
}

/// How tightly a place binds: an expression of a looser level needs parentheses there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Predicate,
    Additive,
    Multiplicative,
    Unary,
    Primary,
}

fn level(kind: &ExprKind) -> Level {
    match kind {
        ExprKind::Paren(inner) => level(&inner.kind),
        // IN is shown as comparisons under OR, BETWEEN as two under AND, and their negations under NOT.
        ExprKind::InList { negated: false, list, .. } if list.len() > 1 => Level::Or,
        ExprKind::InList { negated: true, list, .. } if list.len() > 1 => Level::Not,
        ExprKind::Or(_) => Level::Or,
        ExprKind::And(_) | ExprKind::Between { negated: false, .. } => Level::And,
        ExprKind::Between { negated: true, .. } | ExprKind::Like { negated: true, .. } | ExprKind::Not(_) => Level::Not,
        _ if kind.is_condition() => Level::Predicate,
        ExprKind::Binary { op: BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo, .. } => Level::Multiplicative,
        ExprKind::Binary { .. } => Level::Additive,
        // A sign binds looser than `*`, so it stands in parentheses wherever an operand is wanted; ~ binds tightest.
        ExprKind::Unary { op: UnaryOp::BitNot, .. } => Level::Unary,
        ExprKind::Unary { operand, .. } if number(operand).is_some() => Level::Primary,
        ExprKind::Unary { .. } => Level::Additive,
        _ => Level::Primary,
    }
}

/// Writes `expr` where something of at least `place` is wanted.
fn write_expr(expr: &Expr, place: Level, out: &mut String) -> Option<()> {
    let mut expr = expr;
    while let ExprKind::Paren(inner) = &expr.kind {
        expr = inner;
    }
    let parenthesise = level(&expr.kind) < place;
    if parenthesise {
        out.push('(');
    }
    write_kind(&expr.kind, out)?;
    if parenthesise {
        out.push(')');
    }
    Some(())
}

fn write_kind(kind: &ExprKind, out: &mut String) -> Option<()> {
    match kind {
        ExprKind::Paren(inner) => write_expr(inner, Level::Primary, out),
        ExprKind::Literal(literal) => {
            write_literal(literal, out);
            Some(())
        }
        ExprKind::Column(column) => {
            write_column(column, out);
            Some(())
        }
        ExprKind::Variable(variable) => push(out, &variable.name),
        ExprKind::GlobalVariable(name) => push(out, &name.to_ascii_lowercase()),
        ExprKind::Pseudo { table, name } => {
            if let Some(table) = table {
                write_name(table, out);
                out.push('.');
            }
            push(out, &format!("${name}"))
        }
        ExprKind::Default => push(out, "DEFAULT"),
        ExprKind::Unary { op, operand } => write_unary(*op, operand, out),
        ExprKind::Binary { op, left, right } => write_binary(*op, left, right, out),
        ExprKind::Case { operand, branches, otherwise } => write_case(operand.as_deref(), branches, otherwise.as_deref(), out),
        ExprKind::Collate { operand, collation } => {
            write_expr(operand, Level::Primary, out)?;
            push(out, &format!(" collate {}", collation.text))
        }
        ExprKind::AtTimeZone { operand, zone } => {
            write_expr(operand, Level::Primary, out)?;
            out.push_str(" AT TIME ZONE ");
            write_expr(zone, Level::Primary, out)
        }
        ExprKind::Niladic(niladic) => push(out, niladic_text(*niladic)),
        _ if kind.is_condition() => write_condition(kind, out),
        _ => write_call(kind, out),
    }
}

fn push(out: &mut String, text: &str) -> Option<()> {
    out.push_str(text);
    Some(())
}

fn write_unary(op: UnaryOp, operand: &Expr, out: &mut String) -> Option<()> {
    let sign = match op {
        UnaryOp::Plus => '+',
        UnaryOp::Minus => '-',
        UnaryOp::BitNot => '~',
    };
    match number(operand) {
        // (-1), the sign inside the number's own parentheses.
        Some(text) if op != UnaryOp::BitNot => {
            let _ = write!(out, "({sign}{text})");
            Some(())
        }
        _ => {
            out.push(sign);
            write_expr(operand, if op == UnaryOp::BitNot { Level::Unary } else { Level::Multiplicative }, out)
        }
    }
}

fn write_binary(op: BinaryOp, left: &Expr, right: &Expr, out: &mut String) -> Option<()> {
    let (level, tighter) = match op {
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo => (Level::Multiplicative, Level::Unary),
        _ => (Level::Additive, Level::Multiplicative),
    };
    // A sign on the left would take the rest of the chain into its operand.
    let signed = matches!(strip(left), ExprKind::Unary { op: UnaryOp::Plus | UnaryOp::Minus, .. });
    write_expr(left, if signed { Level::Unary } else { level }, out)?;
    out.push_str(binary_text(op));
    write_expr(right, tighter, out)
}

fn strip(expr: &Expr) -> &ExprKind {
    let mut kind = &expr.kind;
    while let ExprKind::Paren(inner) = kind {
        kind = &inner.kind;
    }
    kind
}

fn binary_text(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Modulo => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::Concat => "||",
    }
}

fn compare_text(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "=",
        CompareOp::NotEqual => "<>",
        CompareOp::Less => "<",
        CompareOp::LessOrEqual => "<=",
        CompareOp::Greater => ">",
        CompareOp::GreaterOrEqual => ">=",
    }
}

fn niladic_text(niladic: Niladic) -> &'static str {
    match niladic {
        // The normal form of CURRENT_TIMESTAMP is the function it stands for.
        Niladic::CurrentTimestamp => "getdate()",
        Niladic::CurrentDate => "current_date",
        Niladic::CurrentTime => "current_time",
        Niladic::CurrentUser => "user_name()",
        Niladic::SessionUser => "session_user",
        Niladic::SystemUser => "suser_sname()",
        Niladic::User => "user_name()",
    }
}

fn write_case(operand: Option<&Expr>, branches: &[CaseBranch], otherwise: Option<&Expr>, out: &mut String) -> Option<()> {
    out.push_str("case");
    if let Some(operand) = operand {
        out.push(' ');
        write_expr(operand, Level::Additive, out)?;
    }
    for branch in branches {
        out.push_str(" when ");
        write_expr(&branch.when, Level::Or, out)?;
        out.push_str(" then ");
        write_expr(&branch.then, Level::Additive, out)?;
    }
    if let Some(otherwise) = otherwise {
        out.push_str(" else ");
        write_expr(otherwise, Level::Additive, out)?;
    }
    push(out, " end")
}

fn write_condition(kind: &ExprKind, out: &mut String) -> Option<()> {
    match kind {
        ExprKind::And(operands) => write_joined(operands, " AND ", Level::Not, out),
        ExprKind::Or(operands) => write_joined(operands, " OR ", Level::And, out),
        ExprKind::Not(operand) => {
            out.push_str("NOT ");
            write_expr(operand, Level::Not, out)
        }
        ExprKind::Compare { op, left, right } => write_comparison(left, compare_text(*op), right, out),
        ExprKind::IsNull { operand, negated } => {
            write_expr(operand, Level::Additive, out)?;
            push(out, if *negated { " IS NOT NULL" } else { " IS NULL" })
        }
        ExprKind::IsDistinctFrom { left, right, negated } => {
            write_comparison(left, if *negated { " IS NOT DISTINCT FROM " } else { " IS DISTINCT FROM " }, right, out)
        }
        ExprKind::Between { operand, low, high, negated } => {
            out.push_str(if *negated { "NOT (" } else { "" });
            write_comparison(operand, ">=", low, out)?;
            out.push_str(" AND ");
            write_comparison(operand, "<=", high, out)?;
            push(out, if *negated { ")" } else { "" })
        }
        ExprKind::InList { operand, list, negated: true } if list.len() == 1 => write_comparison(operand, "<>", &list[0], out),
        ExprKind::InList { operand, list, negated } => {
            out.push_str(if *negated { "NOT (" } else { "" });
            // SQL Server shows the members from the last to the first.
            for (at, member) in list.iter().rev().enumerate() {
                out.push_str(if at == 0 { "" } else { " OR " });
                write_comparison(operand, "=", member, out)?;
            }
            push(out, if *negated { ")" } else { "" })
        }
        ExprKind::Like { operand, pattern, escape, negated } => {
            out.push_str(if *negated { "NOT " } else { "" });
            write_comparison(operand, " like ", pattern, out)?;
            if let Some(escape) = escape {
                out.push_str(" escape ");
                write_expr(escape, Level::Additive, out)?;
            }
            Some(())
        }
        ExprKind::UpdatedColumn(column) => {
            out.push_str("update(");
            write_ident(column, out);
            push(out, ")")
        }
        _ => None,
    }
}

fn write_comparison(left: &Expr, op: &str, right: &Expr, out: &mut String) -> Option<()> {
    write_expr(left, Level::Additive, out)?;
    out.push_str(op);
    write_expr(right, Level::Additive, out)
}

fn write_joined(operands: &[Expr], word: &str, place: Level, out: &mut String) -> Option<()> {
    for (at, operand) in operands.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { word });
        write_expr(operand, place, out)?;
    }
    Some(())
}

fn write_list(operands: &[Expr], out: &mut String) -> Option<()> {
    write_joined(operands, ",", Level::Additive, out)
}

fn write_call(kind: &ExprKind, out: &mut String) -> Option<()> {
    match kind {
        ExprKind::Function(call) => write_function(call, out),
        ExprKind::Coalesce(arguments) => write_named("coalesce(", arguments, out),
        ExprKind::NullIf(first, second) => {
            out.push_str("nullif(");
            write_expr(first, Level::Additive, out)?;
            out.push(',');
            write_expr(second, Level::Additive, out)?;
            push(out, ")")
        }
        ExprKind::Cast { operand, data_type, try_ } => write_convert(*try_, data_type, operand, None, out),
        ExprKind::Convert { data_type, operand, style, try_ } => write_convert(*try_, data_type, operand, style.as_deref(), out),
        ExprKind::Iif { condition, then, otherwise } => {
            let branch = CaseBranch { when: (**condition).clone(), then: (**then).clone() };
            write_case(None, &[branch], Some(otherwise), out)
        }
        ExprKind::NextValueFor { sequence, over: None } => {
            out.push_str("NEXT VALUE FOR ");
            write_name(sequence, out);
            Some(())
        }
        ExprKind::Parse { operand, data_type, culture, try_ } => {
            out.push_str(if *try_ { "try_parse(" } else { "parse(" });
            write_expr(operand, Level::Additive, out)?;
            out.push_str(" as ");
            write_type(data_type, out);
            if let Some(culture) = culture {
                out.push_str(" using ");
                write_expr(culture, Level::Additive, out)?;
            }
            push(out, ")")
        }
        ExprKind::Method { receiver, method, arguments } => {
            write_expr(receiver, Level::Primary, out)?;
            let _ = write!(out, ".[{}]", method.text.replace(']', "]]"));
            arguments.as_ref().map_or(Some(()), |arguments| write_named("(", arguments, out))
        }
        ExprKind::StaticMethod { data_type, method, arguments } => {
            write_name(data_type, out);
            let _ = write!(out, "::[{}]", method.text.replace(']', "]]"));
            arguments.as_ref().map_or(Some(()), |arguments| write_named("(", arguments, out))
        }
        ExprKind::Trim { side, characters, source } => {
            out.push_str("trim(");
            if let Some(side) = side {
                let _ = write!(out, "{} ", format!("{side:?}").to_ascii_uppercase());
            }
            if let Some(characters) = characters {
                write_expr(characters, Level::Additive, out)?;
                out.push_str(" FROM ");
            }
            write_expr(source, Level::Additive, out)?;
            push(out, ")")
        }
        _ => None,
    }
}

fn write_named(opening: &str, arguments: &[Expr], out: &mut String) -> Option<()> {
    out.push_str(opening);
    write_list(arguments, out)?;
    push(out, ")")
}

fn write_convert(try_: bool, data_type: &DataType, operand: &Expr, style: Option<&Expr>, out: &mut String) -> Option<()> {
    out.push_str(if try_ { "TRY_CONVERT(" } else { "CONVERT(" });
    write_type(data_type, out);
    out.push(',');
    write_expr(operand, Level::Additive, out)?;
    if let Some(style) = style {
        out.push(',');
        write_expr(style, Level::Additive, out)?;
    }
    push(out, ")")
}

fn write_function(call: &FunctionCall, out: &mut String) -> Option<()> {
    if call.over.is_some() || call.odbc || !call.within_group.is_empty() {
        return None;
    }
    // Built-in functions have one part and are shown in lower case.
    if call.name.is_simple() && call.name.name.quote == crate::ast::Quote::None {
        out.push_str(&call.name.name.text.to_lowercase());
    } else {
        write_name(&call.name, out);
    }
    out.push_str(if call.distinct { "(DISTINCT " } else { "(" });
    if call.star {
        out.push('*');
    }
    // The first argument of a date function is a word, not a column.
    let dated = ["dateadd", "datediff", "datediff_big", "datename", "datepart", "datetrunc", "date_bucket"];
    let part = match call.arguments.first().map(|first| &first.kind) {
        Some(ExprKind::Column(column)) if column.table.is_none() && dated.iter().any(|name| call.name.name.is(name)) => Some(column),
        _ => None,
    };
    match part {
        Some(part) => {
            out.push_str(&part.column.text.to_lowercase());
            out.push_str(if call.arguments.len() > 1 { "," } else { "" });
            write_list(&call.arguments[1..], out)?;
        }
        None => write_list(&call.arguments, out)?,
    }
    push(out, ")")
}

fn write_type(data_type: &DataType, out: &mut String) {
    write_name(&data_type.name, out);
    for (at, parameter) in data_type.parameters.iter().enumerate() {
        out.push(if at == 0 { '(' } else { ',' });
        let _ = match parameter {
            TypeParameter::Number(number) => write!(out, "{number}"),
            TypeParameter::Max => write!(out, "max"),
        };
    }
    out.push_str(if data_type.parameters.is_empty() { "" } else { ")" });
}

fn write_ident(ident: &Ident, out: &mut String) {
    let _ = write!(out, "[{}]", ident.text.replace(']', "]]"));
}

fn write_name(name: &ObjectName, out: &mut String) {
    let prefix = [&name.server, &name.database, &name.schema];
    let first = prefix.iter().position(|part| part.is_some()).unwrap_or(prefix.len());
    for part in &prefix[first..] {
        if let Some(part) = part {
            write_ident(part, out);
        }
        out.push('.');
    }
    write_ident(&name.name, out);
}

fn write_column(column: &ColumnName, out: &mut String) {
    if let Some(table) = &column.table {
        write_name(table, out);
        out.push('.');
    }
    write_ident(&column.column, out);
}

/// The text of a number, without its parentheses.
fn number(expr: &Expr) -> Option<String> {
    match strip(expr) {
        ExprKind::Literal(Literal::Integer(value)) => Some(value.to_string()),
        ExprKind::Literal(Literal::Decimal { text, .. }) => Some(text.clone()),
        ExprKind::Literal(Literal::Float(text)) => Some(text.clone()),
        ExprKind::Literal(Literal::Money(text)) => Some(format!("${text}")),
        _ => None,
    }
}

fn write_literal(literal: &Literal, out: &mut String) {
    let _ = match literal {
        Literal::Null => write!(out, "NULL"),
        Literal::Integer(value) => write!(out, "({value})"),
        Literal::Decimal { text, .. } | Literal::Float(text) => write!(out, "({text})"),
        Literal::Money(text) => write!(out, "(${text})"),
        Literal::String { value, national } => {
            write!(out, "{}'{}'", if *national { "N" } else { "" }, value.replace('\'', "''"))
        }
        Literal::Binary(bytes) => {
            out.push_str("0x");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02X}"))
        }
        Literal::Odbc { kind, value } => {
            let word = match kind {
                OdbcLiteral::Date => "d",
                OdbcLiteral::Time => "t",
                OdbcLiteral::Timestamp => "ts",
                OdbcLiteral::Guid => "guid",
            };
            write!(out, "{{{word} '{}'}}", value.replace('\'', "''"))
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParseOptions, parse_expr};

    const CASES: &[(&str, &str)] = &[
        ("0", "((0))"),
        ("-1", "((-1))"),
        ("1.50", "((1.50))"),
        ("NULL", "(NULL)"),
        ("(((0)))", "((0))"),
        ("'it''s'", "('it''s')"),
        ("N'é'", "(N'é')"),
        ("0x0a", "(0x0A)"),
        ("$1.5", "(($1.5))"),
        ("GETDATE()", "(getdate())"),
        ("CURRENT_TIMESTAMP", "(getdate())"),
        ("dbo.F(a, 1)", "([dbo].[F]([a],(1)))"),
        ("a + b * 2", "([a]+[b]*(2))"),
        ("(a + b) * 2", "(([a]+[b])*(2))"),
        ("a - (b - c)", "([a]-([b]-[c]))"),
        ("-a * b", "(-[a]*[b])"),
        ("(-a) * b", "((-[a])*[b])"),
        ("~a & 1", "(~[a]&(1))"),
        ("Score > 0 AND Score < 10", "([Score]>(0) AND [Score]<(10))"),
        ("(a = 1 OR b = 2) AND NOT c IS NULL", "(([a]=(1) OR [b]=(2)) AND NOT [c] IS NULL)"),
        ("a BETWEEN 1 AND 5", "([a]>=(1) AND [a]<=(5))"),
        ("a NOT BETWEEN 1 AND 5", "(NOT ([a]>=(1) AND [a]<=(5)))"),
        ("a IN ('x', 'y')", "([a]='y' OR [a]='x')"),
        ("a NOT IN (1, 2)", "(NOT ([a]=(2) OR [a]=(1)))"),
        ("a NOT IN (1) AND b = 1", "([a]<>(1) AND [b]=(1))"),
        ("a LIKE 'x%' ESCAPE '!'", "([a] like 'x%' escape '!')"),
        ("CAST(a AS decimal(10, 2))", "(CONVERT([decimal](10,2),[a]))"),
        ("CONVERT(varchar(max), a, 121)", "(CONVERT([varchar](max),[a],(121)))"),
        ("CASE WHEN a = 1 THEN 2 ELSE 3 END", "(case when [a]=(1) then (2) else (3) end)"),
        ("IIF(a = 1, 'y', 'n')", "(case when [a]=(1) then 'y' else 'n' end)"),
        ("DATEADD(Day, -1, GETDATE())", "(dateadd(day,(-1),getdate()))"),
        ("NEXT VALUE FOR dbo.s", "(NEXT VALUE FOR [dbo].[s])"),
        ("a.value('(/x)[1]', 'int')", "([a].[value]('(/x)[1]','int'))"),
    ];

    #[test]
    fn normal_form() {
        for (text, expected) in CASES {
            let expr = parse_expr(text, &ParseOptions::default()).unwrap();
            assert_eq!(definition(&expr).as_deref(), Some(*expected), "{text}");
        }
    }

    #[test]
    fn definitions_read_back() {
        for (_, text) in CASES {
            let expr = parse_expr(text, &ParseOptions::default()).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(definition(&expr).as_deref(), Some(*text));
        }
    }

    #[test]
    fn queries_have_no_form() {
        for text in ["(SELECT 1)", "a IN (SELECT 1)", "EXISTS (SELECT 1)", "1 + (SELECT 1)"] {
            assert_eq!(definition(&parse_expr(text, &ParseOptions::default()).unwrap()), None, "{text}");
        }
    }
}
