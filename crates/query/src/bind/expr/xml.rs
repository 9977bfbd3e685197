//! Methods of xml values: `x.value('path', 'type')`, `x.query('path')`, `x.exist('path')`, and the arguments of `nodes()`.

use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::{error, not_built};
use crate::bind::expr::resolve_type;
use crate::bind::{Binder, coerce};
use crate::xml::xpath::{self, Outside};
use thawdb_tsql::ParseOptions;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{Scalar, SqlError, SqlType, TypeUse};

/// The name that a statement which may change the value gives the method modify(): nobody can write it.
pub const MUTATION: &str = " modify";

impl Binder<'_> {
    pub(super) fn bind_method(
        &mut self,
        receiver: &ast::Expr,
        method: &ast::Ident,
        arguments: Option<&[ast::Expr]>,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let arguments = arguments.unwrap_or_default();
        if let Some(bound) = self.bind_hierarchy_method(receiver, method, arguments, span)? {
            return Ok(bound);
        }
        match (method.text.to_ascii_lowercase().as_str(), arguments.len()) {
            ("value", 2) => {
                let (values, single) = self.bind_path(receiver, &arguments[0], "value()")?;
                if !single {
                    return Err(error(2389, &[&"value()", &"value()", &"xdt:untypedAtomic *"], span));
                }
                let sql_type = self.named_type(&arguments[1], span)?;
                Ok(BoundExpr { kind: BoundExprKind::Function { name: "XML VALUE", arguments: values }, sql_type, nullable: true })
            }
            ("query", 1) => {
                let (values, _) = self.bind_path(receiver, &arguments[0], "query()")?;
                let kind = BoundExprKind::Function { name: "XML QUERY", arguments: values };
                Ok(BoundExpr { kind, sql_type: SqlType::Xml, nullable: true })
            }
            ("exist", 1) => {
                let (values, _) = self.bind_path(receiver, &arguments[0], "exist()")?;
                let kind = BoundExprKind::Function { name: "XML EXIST", arguments: values };
                Ok(BoundExpr { kind, sql_type: SqlType::Bit, nullable: true })
            }
            ("value" | "query" | "exist", _) => Err(error(174, &[&method.text, &(if method.is("value") { 2 } else { 1 })], span)),
            (MUTATION, 1) => self.bind_modify(receiver, &arguments[0]),
            ("modify", _) => Err(error(8137, &[&"modify"], span)),
            _ => Err(not_built("a method call", span)),
        }
    }

    /// The xml value, the path and the outside values it names; whether the path gives at most one item.
    pub(crate) fn bind_path(&mut self, receiver: &ast::Expr, path: &ast::Expr, method: &str) -> Result<(Vec<BoundExpr>, bool), SqlError> {
        let receiver_span = receiver.span;
        let receiver = self.bind_expr(receiver)?;
        if receiver.sql_type != SqlType::Xml {
            return Err(error(258, &[&method.trim_end_matches("()"), &receiver.sql_type.name()], receiver_span));
        }
        let ast::ExprKind::Literal(ast::Literal::String { value: path_text, .. }) = &path.kind else {
            return Err(error(8172, &[&1, &method.trim_end_matches("()")], path.span));
        };
        let path_text = &self.under_namespaces(path_text);
        let query = xpath::parse(path_text, method)?;
        let literal = BoundExpr::literal(Scalar::Text(path_text.clone()), SqlType::NVARCHAR_MAX);
        let mut values = vec![receiver, literal];
        for outside in &query.outside {
            let (Outside::Variable(name) | Outside::Column(name)) = outside;
            let value = self.bind_text(name, path.span)?;
            values.push(coerce::cast(value, SqlType::NVARCHAR_MAX));
        }
        Ok((values, query.expr.is_single()))
    }

    /// The value that modify() makes of the receiver, a column or variable.
    pub(crate) fn bind_modify(&mut self, receiver: &ast::Expr, text: &ast::Expr) -> Result<BoundExpr, SqlError> {
        let name = match &receiver.kind {
            ast::ExprKind::Variable(variable) => variable.name.clone(),
            ast::ExprKind::Column(column) => column.column.text.clone(),
            _ => String::new(),
        };
        let span = receiver.span;
        let receiver = self.bind_expr(receiver)?;
        if receiver.sql_type != SqlType::Xml {
            return Err(error(258, &[&receiver.sql_type.name()], span));
        }
        let ast::ExprKind::Literal(ast::Literal::String { value, .. }) = &text.kind else {
            return Err(error(8172, &[&1, &"modify"], text.span));
        };
        let value = &self.under_namespaces(value);
        let dml = crate::xml::modify_parse::parse(value)?;
        let constant = |text: String| BoundExpr::literal(Scalar::Text(text), SqlType::NVARCHAR_MAX);
        let mut values = vec![receiver, constant(value.clone()), constant(name)];
        for outside in &dml.outside {
            let (Outside::Variable(name) | Outside::Column(name)) = outside;
            let value = self.bind_text(name, text.span)?;
            values.push(if value.sql_type == SqlType::Xml { value } else { coerce::cast(value, SqlType::NVARCHAR_MAX) });
        }
        let kind = BoundExprKind::Function { name: "XML MODIFY", arguments: values };
        Ok(BoundExpr { kind, sql_type: SqlType::Xml, nullable: true })
    }

    /// The text of a method with the namespaces of the statement declared in front.
    fn under_namespaces(&self, text: &str) -> String {
        let declared = |(prefix, uri): &(String, String)| match prefix.as_str() {
            "" => format!("declare default element namespace \"{uri}\"; "),
            prefix => format!("declare namespace {prefix}=\"{uri}\"; "),
        };
        let mut out: String = self.xml_namespaces.iter().map(declared).collect();
        out.push_str(text);
        out
    }

    /// Binds a variable or column named in a literal.
    fn bind_text(&mut self, text: &str, span: Span) -> Result<BoundExpr, SqlError> {
        let parsed = thawdb_tsql::parse_expr(text, &ParseOptions::default()).map_err(|_| error(102, &[&text], span))?;
        self.bind_expr(&parsed)
    }

    fn named_type(&self, argument: &ast::Expr, span: Span) -> Result<SqlType, SqlError> {
        let ast::ExprKind::Literal(ast::Literal::String { value, .. }) = &argument.kind else {
            return Err(error(8172, &[&2, &"value"], argument.span));
        };
        let data_type = thawdb_tsql::parse_data_type(value, &ParseOptions::default()).map_err(|_| error(243, &[value], span))?;
        resolve_type(&data_type, TypeUse::Cast)
    }
}
