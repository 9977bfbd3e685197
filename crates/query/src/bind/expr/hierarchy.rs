//! Methods of hierarchyid: `h.GetAncestor(1)`, `hierarchyid::GetRoot()`. Their names are told apart by case, as those of the
//! common language runtime are: 6506 for one that is not there.

use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::{error, not_built};
use crate::bind::{Binder, coerce};
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{SqlError, SqlType};

/// A method: its name, the function that evaluates it, the types of its arguments and of its value.
type Method = (&'static str, &'static str, &'static [SqlType], SqlType);

const H: SqlType = SqlType::HierarchyId;
const METHODS: &[Method] = &[
    ("GetAncestor", "HIERARCHY ANCESTOR", &[SqlType::Int], H),
    ("GetDescendant", "HIERARCHY DESCENDANT", &[H, H], H),
    ("GetLevel", "HIERARCHY LEVEL", &[], SqlType::SmallInt),
    ("GetReparentedValue", "HIERARCHY REPARENT", &[H, H], H),
    ("IsDescendantOf", "HIERARCHY BELOW", &[H], SqlType::Bit),
    ("ToString", "HIERARCHY TEXT", &[], SqlType::nvarchar(4000)),
];
const STATIC_METHODS: &[Method] = &[("GetRoot", "HIERARCHY ROOT", &[], H), ("Parse", "HIERARCHY PARSE", &[SqlType::nvarchar(4000)], H)];

impl Binder<'_> {
    /// A method of a hierarchyid value; `None` for another type's.
    pub(super) fn bind_hierarchy_method(
        &mut self,
        receiver: &ast::Expr,
        method: &ast::Ident,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Result<Option<BoundExpr>, SqlError> {
        let known = METHODS.iter().find(|(name, ..)| method.is(name));
        // The name alone says that it is no method of xml; any other must be asked of the receiver's type.
        let Some(known) = known else { return Ok(None) };
        let receiver = self.bind_expr(receiver)?;
        if receiver.sql_type != H {
            return Err(error(258, &[&receiver.sql_type.name()], span));
        }
        self.method_call(known, method, Some(receiver), arguments, span).map(Some)
    }

    /// `type::Method(...)`.
    pub(super) fn bind_static_method(
        &mut self,
        data_type: &ast::ObjectName,
        method: &ast::Ident,
        arguments: Option<&[ast::Expr]>,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        if !data_type.name.is("hierarchyid") {
            return Err(not_built("a method call", span));
        }
        let known = STATIC_METHODS.iter().find(|(name, ..)| method.is(name));
        let known = known.ok_or_else(|| no_method(method, span))?;
        self.method_call(known, method, None, arguments.unwrap_or_default(), span)
    }

    fn method_call(
        &mut self,
        (name, function, types, sql_type): &Method,
        method: &ast::Ident,
        receiver: Option<BoundExpr>,
        arguments: &[ast::Expr],
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        if method.text != *name {
            return Err(no_method(method, span));
        }
        if arguments.len() != types.len() {
            return Err(error(174, &[name, &types.len()], span));
        }
        let mut bound: Vec<BoundExpr> = receiver.into_iter().collect();
        for (argument, wanted) in arguments.iter().zip(*types) {
            bound.push(coerce::convert(self.bind_expr(argument)?, *wanted, argument.span)?);
        }
        Ok(BoundExpr { kind: BoundExprKind::Function { name: function, arguments: bound }, sql_type: *sql_type, nullable: true })
    }
}

fn no_method(method: &ast::Ident, span: Span) -> SqlError {
    let class = "Microsoft.SqlServer.Types.SqlHierarchyId";
    error(6506, &[&method.text, &class, &"Microsoft.SqlServer.Types"], span)
}
