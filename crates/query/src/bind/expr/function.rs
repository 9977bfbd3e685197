//! Calls of functions by name: which kind it is, then arguments to their types.
//!
//! A name with a schema is a user's function (4121 if there is none); a bare name is an aggregate, a window function, a
//! form of its own (ISNULL, CHOOSE, CHECKSUM(*)), or a line of [`crate::functions::signature`]; otherwise 195.

use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::error;
use crate::bind::{Binder, coerce, collation, undeclared};
use crate::compile::{UserFunction, UserFunctionKind, UserParameter};
use crate::functions::signature::{self, Arg, Class, Nulls, Out, Signature};
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::convert::{CastRule, implicit_cast};
use thawdb_types::{Collation, MaxLength, Scalar, SqlError, SqlType};

impl Binder<'_> {
    pub(super) fn bind_call(&mut self, call: &ast::FunctionCall, span: Span) -> Result<BoundExpr, SqlError> {
        let name = &call.name.name.text;
        let system_schema = call.name.schema.as_ref().is_some_and(|s| s.is("sys"));
        if !call.name.is_simple() && !system_schema {
            if call.over.is_none()
                && let Some(bound) = self.bind_user_call(call, span)?
            {
                return Ok(bound);
            }
            let prefix = call.name.schema.as_ref().map_or("", |s| s.text.as_str());
            let full = crate::bind::scope::shown_object(&call.name);
            return Err(error(4121, &[&prefix, &full], span));
        }
        let upper = name.to_ascii_uppercase();
        if call.over.is_some() || super::window::is_window_only(&upper) {
            return self.bind_window_call(&upper, call, span);
        }
        if let Some(function) = super::aggregate::aggregate_function(&upper) {
            return self.bind_aggregate_call(function, call, span);
        }
        if !call.within_group.is_empty() {
            return Err(error(10757, &[&name], span));
        }
        match upper.as_str() {
            "IDENTITY" => return Err(error(177, &[], span)),
            "ISNULL" => return self.bind_isnull(&call.arguments, span),
            "CHOOSE" => return self.bind_choose(&call.arguments, span),
            "CHECKSUM" | "BINARY_CHECKSUM" if call.star => return self.bind_checksum_star(&upper, span),
            "GROUPING" | "GROUPING_ID" => return self.bind_grouping(&upper, &call.arguments, span),
            // ODBC's spellings.
            "UCASE" if call.odbc => return self.bind_function("UPPER", &refs(&call.arguments), span),
            "LCASE" if call.odbc => return self.bind_function("LOWER", &refs(&call.arguments), span),
            "NOW" if call.odbc => return self.bind_function("GETDATE", &[], span),
            "CURDATE" if call.odbc => return self.bind_function("CURRENT_DATE", &[], span),
            "DATABASE" if call.odbc => return self.bind_function("DB_NAME", &[], span),
            "IFNULL" if call.odbc => return self.bind_isnull(&call.arguments, span),
            "LENGTH" if call.odbc => return self.bind_function("LEN", &refs(&call.arguments), span),
            "DAYOFMONTH" if call.odbc => return self.bind_function("DAY", &refs(&call.arguments), span),
            "MOD" if call.odbc && call.arguments.len() == 2 => {
                return self.bind_binary(ast::BinaryOp::Modulo, &call.arguments[0], &call.arguments[1], span);
            }
            _ => {}
        }
        self.bind_function(name, &refs(&call.arguments), span)
    }

    /// JSON_OBJECT and JSON_ARRAY: what their clause says of NULL becomes the last argument.
    pub(super) fn bind_json<'e>(
        &mut self,
        name: &str,
        arguments: impl Iterator<Item = &'e ast::Expr>,
        absent_on_null: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let signature = signature::find(name).ok_or_else(|| error(195, &[&name], span))?;
        let mut bound = arguments.map(|argument| self.bind_expr(argument)).collect::<Result<Vec<_>, _>>()?;
        bound.push(BoundExpr::literal(Scalar::Bit(absent_on_null), SqlType::Bit));
        finish_call(signature, bound, span)
    }

    /// A call of a scalar function of the user's; `None` if there is none of the name.
    fn bind_user_call(&mut self, call: &ast::FunctionCall, span: Span) -> Result<Option<BoundExpr>, SqlError> {
        let Some((function, database, _)) = self.find_user_function(&call.name)? else { return Ok(None) };
        let UserFunctionKind::Scalar(sql_type) = function.kind else { return Ok(None) };
        let mut arguments =
            vec![BoundExpr::literal(Scalar::Int(database.0), SqlType::Int), BoundExpr::literal(Scalar::Int(function.id.0), SqlType::Int)];
        arguments.extend(self.bind_user_arguments(&function, &call.name, &call.arguments)?);
        let kind = BoundExprKind::Function { name: crate::functions::USER_FUNCTION, arguments };
        let _ = span;
        Ok(Some(BoundExpr { kind, sql_type, nullable: true }))
    }

    /// Arguments of a user's function, as its parameters take them: 313 for too few, 8144 for too many.
    pub(crate) fn bind_user_arguments(
        &mut self,
        function: &UserFunction,
        name: &ast::ObjectName,
        arguments: &[ast::Expr],
    ) -> Result<Vec<BoundExpr>, SqlError> {
        let shown = crate::bind::scope::shown_object(name);
        if arguments.len() > function.parameters.len() {
            return Err(error(8144, &[&shown], name.span));
        }
        if arguments.len() < function.parameters.len() {
            return Err(error(313, &[&shown], name.span));
        }
        let mut bound = Vec::with_capacity(arguments.len());
        for (argument, parameter) in arguments.iter().zip(&function.parameters) {
            if parameter.table {
                let table = self.table_argument(argument, parameter)?;
                bound.push(BoundExpr::literal(Scalar::Int(table.id.0), SqlType::Int));
                continue;
            }
            let value = match (&argument.kind, &parameter.default) {
                (ast::ExprKind::Default, Some(default)) => self.bind_expr(default)?,
                (ast::ExprKind::Default, None) => BoundExpr::null(),
                _ => self.bind_expr(argument)?,
            };
            let value = coerce::assign(value, parameter.sql_type, argument.span)?;
            bound.push(coerce::convert(value, parameter.sql_type, argument.span)?);
        }
        Ok(bound)
    }

    /// The table variable that is the argument of a table-valued parameter: 206 for anything else.
    pub(crate) fn table_argument(&self, argument: &ast::Expr, parameter: &UserParameter) -> Result<Arc<TableDef>, SqlError> {
        match &argument.kind {
            ast::ExprKind::Variable(variable) => self.table_of_variable(variable),
            _ => Err(error(206, &[&"value", &parameter.name], argument.span)),
        }
    }

    /// NEXT VALUE FOR a sequence.
    pub(super) fn bind_next_value(&mut self, name: &ast::ObjectName) -> Result<BoundExpr, SqlError> {
        let (database, id, sql_type) = self.find_sequence(name)?;
        let arguments = [database.0, id.0].map(|number| BoundExpr::literal(Scalar::Int(number), SqlType::Int)).into_iter().collect();
        let signature = signature::find("NEXT VALUE FOR").expect("the table has it");
        let kind = BoundExprKind::Function { name: signature.name, arguments };
        let value = BoundExpr { kind, sql_type: SqlType::BigInt, nullable: true };
        // The same sequence is the same column: one number a row, however often the row asks.
        let is_this = |known: &BoundExpr| known.children().iter().zip(value.children()).all(|(a, b)| a.same(b));
        if self.levels.last().is_none_or(|level| level.clause != crate::bind::Clause::Select) {
            return coerce::convert(value, sql_type, name.span);
        }
        let known = self.level().next_values.iter().find(|(_, known)| is_this(known)).map(|(column, _)| *column);
        let column = known.unwrap_or_else(|| self.columns.add("", SqlType::BigInt, true));
        if known.is_none() {
            self.level().next_values.push((column, value));
        }
        coerce::convert(self.column_expr(column), sql_type, name.span)
    }

    /// Binds a call of a function of the table.
    pub(crate) fn bind_function(&mut self, name: &str, arguments: &[&ast::Expr], span: Span) -> Result<BoundExpr, SqlError> {
        let signature = signature::find(name).ok_or_else(|| error(195, &[&name, &"built-in function name"], span))?;
        check_count(signature, arguments.len(), span)?;
        let mut bound = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let wanted = signature.arguments[index.min(signature.arguments.len() - 1)];
            bound.push(match wanted {
                Arg::Part if signature.name == "ISJSON" => json_sort(argument)?,
                Arg::Part => date_part(signature.name, argument)?,
                _ => self.bind_expr(argument)?,
            });
        }
        finish_call(signature, bound, span)
    }

    pub(super) fn bind_niladic(&mut self, which: ast::Niladic, span: Span) -> Result<BoundExpr, SqlError> {
        let name = match which {
            ast::Niladic::CurrentTimestamp => "CURRENT_TIMESTAMP",
            ast::Niladic::CurrentDate => "CURRENT_DATE",
            ast::Niladic::CurrentTime => return Err(error(195, &[&"CURRENT_TIME"], span)),
            ast::Niladic::CurrentUser => "CURRENT_USER",
            ast::Niladic::SessionUser => "SESSION_USER",
            ast::Niladic::SystemUser => "SYSTEM_USER",
            ast::Niladic::User => "USER",
        };
        self.bind_function(name, &[], span)
    }

    pub(super) fn bind_trim(
        &mut self,
        side: Option<ast::TrimSide>,
        characters: Option<&ast::Expr>,
        source: &ast::Expr,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let name = match side {
            Some(ast::TrimSide::Leading) => "LTRIM",
            Some(ast::TrimSide::Trailing) => "RTRIM",
            Some(ast::TrimSide::Both) | None => "TRIM",
        };
        let arguments: Vec<&ast::Expr> = std::iter::once(source).chain(characters).collect();
        self.bind_function(name, &arguments, span)
    }

    /// GROUPING(key) and GROUPING_ID(key, ...): which keys a row of a grouping set lacks. A column the grouping fills in.
    fn bind_grouping(&mut self, name: &str, arguments: &[ast::Expr], span: Span) -> Result<BoundExpr, SqlError> {
        let single = name == "GROUPING";
        if arguments.is_empty() || (single && arguments.len() != 1) {
            return Err(error(174, &[&name.to_ascii_lowercase(), &1], span));
        }
        if !matches!(self.clause(), crate::bind::Clause::Select | crate::bind::Clause::Having | crate::bind::Clause::OrderBy) {
            return Err(error(147, &[], span));
        }
        let mut keys = Vec::with_capacity(arguments.len());
        for argument in arguments {
            keys.push(self.bind_expr(argument)?);
        }
        let sql_type = if single { SqlType::TinyInt } else { SqlType::Int };
        let column = self.columns.add("", sql_type, false);
        self.level().groupings.push((column, keys));
        Ok(BoundExpr { kind: BoundExprKind::Column(column), sql_type, nullable: false })
    }

    fn bind_checksum_star(&mut self, name: &str, span: Span) -> Result<BoundExpr, SqlError> {
        let tables = self.levels.last().map(|l| l.tables.as_slice()).unwrap_or_default();
        let columns: Vec<_> = tables.iter().flat_map(|t| &t.columns).map(|c| self.column_expr(c.column)).collect();
        tables.iter().flat_map(|t| &t.columns).for_each(|c| self.use_column(c.column));
        let signature = signature::find(name).ok_or_else(|| error(195, &[&name, &"built-in function name"], span))?;
        check_count(signature, columns.len(), span)?;
        finish_call(signature, columns, span)
    }
}

fn refs(arguments: &[ast::Expr]) -> Vec<&ast::Expr> {
    arguments.iter().collect()
}

fn check_count(signature: &Signature, count: usize, span: Span) -> Result<(), SqlError> {
    let shown = signature.name.to_ascii_lowercase();
    if (signature.required..=signature.most).contains(&count) {
        Ok(())
    } else if signature.required == signature.most {
        Err(error(174, &[&shown, &signature.required], span))
    } else {
        Err(error(189, &[&shown, &signature.required, &signature.most], span))
    }
}

/// The word of DATEADD and its kin; 155 for another, 1023 for what is no word.
fn date_part(function: &str, argument: &ast::Expr) -> Result<BoundExpr, SqlError> {
    let shown = function.to_ascii_lowercase();
    let ast::ExprKind::Column(ast::ColumnName { table: None, column, .. }) = &argument.kind else {
        return Err(error(1023, &[&1, &shown], argument.span));
    };
    let part = signature::date_part(&column.text).ok_or_else(|| error(155, &[&column.text, &shown], argument.span))?;
    Ok(BoundExpr::literal(Scalar::Text(part.to_string()), SqlType::varchar(part.len() as u16)))
}

/// The word that says what ISJSON looks for.
fn json_sort(argument: &ast::Expr) -> Result<BoundExpr, SqlError> {
    let word = match &argument.kind {
        ast::ExprKind::Column(ast::ColumnName { table: None, column, .. }) => column.text.to_ascii_lowercase(),
        _ => String::new(),
    };
    if !matches!(word.as_str(), "value" | "array" | "object" | "scalar") {
        return Err(error(1023, &[&2, &"isjson"], argument.span));
    }
    let length = word.len() as u16;
    Ok(BoundExpr::literal(Scalar::Text(word), SqlType::varchar(length)))
}

/// A call of a function of the table with its arguments bound.
pub(super) fn call_bound(name: &str, bound: Vec<BoundExpr>, span: Span) -> Result<BoundExpr, SqlError> {
    let signature = signature::find(name).ok_or_else(|| error(195, &[&name, &"built-in function name"], span))?;
    finish_call(signature, bound, span)
}

/// Functions that compare their texts with each other, and so need one collation for them all.
fn compares_texts(name: &str) -> bool {
    matches!(name, "CHARINDEX" | "PATINDEX" | "REPLACE" | "TRANSLATE" | "TRIM" | "LTRIM" | "RTRIM" | "DIFFERENCE")
}

/// Texts of one call under the collation that precedence gives them.
fn under_one_collation(name: &str, mut arguments: Vec<BoundExpr>, span: Span) -> Result<Vec<BoundExpr>, SqlError> {
    let mut chosen: Option<usize> = None;
    for at in 0..arguments.len() {
        if arguments[at].sql_type.collation().is_none() {
            continue;
        }
        chosen = Some(match chosen {
            None => at,
            Some(before) => {
                let shared = collation::shared(&arguments[before], &arguments[at], &name.to_ascii_lowercase(), span)?;
                if shared == arguments[before].sql_type.collation() { before } else { at }
            }
        });
    }
    let Some(common) = chosen.and_then(|at| arguments[at].sql_type.collation()) else { return Ok(arguments) };
    for argument in arguments.iter_mut().filter(|a| a.sql_type.collation().is_some_and(|own| own != common)) {
        let (sql_type, nullable) = (argument.sql_type.with_collation(common), argument.nullable);
        let operand = Box::new(std::mem::replace(argument, BoundExpr::null()));
        *argument = BoundExpr { kind: BoundExprKind::Collate(operand), sql_type, nullable };
    }
    Ok(arguments)
}

/// The scale of DATETIME2FROMPARTS and its kin must be known when the call is bound: 10760, 1002.
fn check_scale(signature: &Signature, arguments: &[BoundExpr], span: Span) -> Result<(), SqlError> {
    let sql_type = match signature.name {
        "TIMEFROMPARTS" => "time",
        "DATETIME2FROMPARTS" => "datetime2",
        "DATETIMEOFFSETFROMPARTS" => "datetimeoffset",
        _ => return Ok(()),
    };
    match arguments.last().and_then(signature::constant_int) {
        None => Err(error(10760, &[&sql_type], span)),
        Some(scale) if !(0..=7).contains(&scale) => Err(error(1002, &[&span.line, &scale], span)),
        Some(_) => Ok(()),
    }
}

fn finish_call(signature: &'static Signature, bound: Vec<BoundExpr>, span: Span) -> Result<BoundExpr, SqlError> {
    if signature.name == "SUBSTRING" && bound[0].is_null() && undeclared::number_of(&bound[0]).is_none() {
        return Err(error(8116, &[&"NULL", &1, &"substring"], span));
    }
    check_scale(signature, &bound, span)?;
    let bound = if compares_texts(signature.name) { under_one_collation(signature.name, bound, span)? } else { bound };
    let common = signature.arguments.contains(&Arg::Common);
    let arguments = if common {
        coerce::unify(bound.into_iter().map(|b| (b, span)).collect(), signature.name)?.0
    } else {
        let last = signature.arguments.len().saturating_sub(1);
        let each = bound.into_iter().enumerate();
        each.map(|(i, b)| convert_argument(signature, signature.arguments[i.min(last)], i, b, span)).collect::<Result<Vec<_>, _>>()?
    };
    let sql_type = match signature.result {
        Out::Type(sql_type) => sql_type,
        Out::Same(index) => arguments[index].sql_type,
        Out::Rule(rule) => rule(&arguments),
    };
    let nullable = match signature.nulls {
        Nulls::Never => false,
        Nulls::Maybe => true,
        Nulls::Strict => arguments.iter().any(|a| a.nullable),
    };
    debug_assert!(signature.class != Class::Volatile || nullable || signature.nulls == Nulls::Never);
    Ok(BoundExpr { kind: BoundExprKind::Function { name: signature.name, arguments }, sql_type, nullable })
}

fn convert_argument(signature: &Signature, wanted: Arg, index: usize, bound: BoundExpr, span: Span) -> Result<BoundExpr, SqlError> {
    if undeclared::number_of(&bound).is_some() {
        return Ok(BoundExpr { sql_type: undeclared::of_argument(wanted).unwrap_or(bound.sql_type), ..bound });
    }
    let from = bound.sql_type;
    let type_name = if bound.is_null() { "NULL" } else { from.message_name() };
    let invalid = || {
        // A name of several words is a clause's, and written as such.
        let shown = if signature.name.contains(' ') { signature.name.to_owned() } else { signature.name.to_ascii_lowercase() };
        error(8116, &[&type_name, &(index + 1), &shown], span)
    };
    let to = |bound: BoundExpr, target: SqlType| {
        if bound.is_null() || from == target || implicit_cast(&from, &target) == CastRule::Allowed {
            coerce::convert(bound, target, span)
        } else {
            Err(invalid())
        }
    };
    let display = |t: &SqlType| SqlType::varchar(t.length().unwrap_or(8000).clamp(1, 8000));
    // Only these take text and ntext as they are.
    let takes_large = matches!(signature.name, "SUBSTRING" | "PATINDEX" | "DATALENGTH");
    if matches!(wanted, Arg::Text | Arg::Concat) && matches!(from, SqlType::Text { .. } | SqlType::NText { .. }) && !takes_large {
        return Err(invalid());
    }
    match wanted {
        Arg::Part | Arg::Any | Arg::Common => Ok(bound),
        Arg::Text | Arg::TextOrBinary if from.is_text() => Ok(bound),
        Arg::TextOrBinary if from.is_binary() => Ok(bound),
        Arg::Text | Arg::TextOrBinary if bound.is_null() => to(bound, SqlType::varchar(1)),
        Arg::Text | Arg::TextOrBinary if from.is_binary() => to(bound, display(&from)),
        Arg::Text | Arg::TextOrBinary => to(bound, SqlType::varchar(8000)),
        Arg::Concat if from.is_text() => Ok(bound),
        Arg::Concat if bound.is_null() => to(bound, SqlType::varchar(1)),
        Arg::Concat => to(bound, SqlType::varchar(signature::display_length(&from).clamp(1, 8000) as u16)),
        Arg::Unicode => {
            let collation = from.collation().unwrap_or(Collation::DEFAULT);
            // A varchar may have more characters than a limited nvarchar takes.
            let long = from.is_large() || from.length().is_some_and(|length| length > 4000);
            let length = if long { MaxLength::Max } else { MaxLength::Limited(4000) };
            if from.is_unicode() && !matches!(from, SqlType::NText { .. }) {
                return Ok(bound);
            }
            to(bound, SqlType::NVarChar { length, collation })
        }
        Arg::National if matches!(from, SqlType::NChar { .. } | SqlType::NVarChar { .. }) && !bound.is_null() => Ok(bound),
        Arg::Character if from.is_text() && !from.is_large() && !bound.is_null() => Ok(bound),
        Arg::DateAndTime if from.is_date_time() && !matches!(from, SqlType::Date | SqlType::Time { .. }) && !bound.is_null() => Ok(bound),
        Arg::National | Arg::Character | Arg::DateAndTime => Err(invalid()),
        Arg::Variant => to(bound, SqlType::SqlVariant),
        Arg::Int => to(bound, SqlType::Int),
        Arg::BigInt => to(bound, SqlType::BigInt),
        Arg::Float => to(bound, SqlType::Float),
        Arg::Bit => to(bound, SqlType::Bit),
        Arg::Number if from.is_numeric() && from != SqlType::Bit => Ok(bound),
        Arg::Number => to(bound, SqlType::Float),
        Arg::Date if from.is_date_time() => Ok(bound),
        Arg::Date => to(bound, SqlType::DateTime),
        Arg::Offset if from.is_date_time() => Ok(bound),
        Arg::Offset if from.is_text() => to(bound, SqlType::DateTimeOffset { scale: 7 }),
        Arg::Offset => to(bound, SqlType::DateTime),
        Arg::Binary if from.is_binary() => Ok(bound),
        Arg::Binary if from == SqlType::SqlVariant => Err(invalid()),
        Arg::Binary => {
            let length =
                from.length().map_or(MaxLength::Max, |n| MaxLength::Limited(if from.is_unicode() { n.saturating_mul(2) } else { n }));
            Ok(coerce::cast(bound, SqlType::VarBinary { length }))
        }
    }
}
