//! Statements that touch no table: variables, PRINT, RAISERROR, THROW, WAITFOR, USE.

use crate::api::sink::EnvChange;
use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::messages::message;
use crate::rows;
use std::time::Duration;
use thawdb_query::compile::{bind_assignment, bind_scalar};
use thawdb_query::exec::{eval_condition, eval_scalar};
use thawdb_query::expr::Expr as BoundExpr;
use thawdb_query::functions::format_message;
use thawdb_tsql::ast::{AssignOp, BinaryOp, Declaration, Expr, ExprKind, Ident, RaiseError, SetVariable, Throw, WaitFor, WaitForKind};
use thawdb_types::{Collation, Scalar, SqlError, SqlType, TypeUse};

/// Longest sleep between looks at the cancel mark.
const WAIT_SLICE: Duration = Duration::from_millis(20);

impl Interpreter<'_, '_> {
    fn bind(&self, expr: &Expr) -> Result<BoundExpr, Failure> {
        bind_scalar(expr, &CompileCx::new(self.session, self.at)).map_err(Failure::compile)
    }

    /// Whether the condition of the present step holds.
    pub(crate) fn condition(&mut self, expr: &Expr) -> Result<bool, Failure> {
        if let Some([kept]) = self.kept_exprs() {
            return Ok(self.kept_value(kept)? == Scalar::Bit(true));
        }
        let bound = self.bind(expr)?;
        self.keep_exprs([(0, bound.clone())]);
        self.transactional(|this| Ok(eval_condition(&bound, this.session)?))
    }

    /// The value of an expression, and its type.
    pub(crate) fn value(&mut self, expr: &Expr) -> Result<(Scalar, SqlType), Failure> {
        let bound = self.bind(expr)?;
        let value = self.transactional(|this| Ok(eval_scalar(&bound, this.session)?))?;
        Ok((value, bound.sql_type))
    }

    /// The value of an expression as an assignment to `target` takes it.
    pub(crate) fn assignment(&mut self, expr: &Expr, target: SqlType) -> Result<Scalar, Failure> {
        let cx = CompileCx::new(self.session, self.at);
        let bound = bind_assignment(expr, target, &cx).map_err(Failure::compile)?;
        self.transactional(|this| Ok(eval_scalar(&bound, this.session)?))
    }

    /// The value of an expression as text; `None` for NULL.
    pub(crate) fn text_value(&mut self, expr: &Expr) -> Result<Option<String>, Failure> {
        match self.assignment(expr, SqlType::NVARCHAR_MAX)? {
            Scalar::Text(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    /// The value of an expression as a whole number; `None` for NULL.
    pub(crate) fn int_value(&mut self, expr: &Expr) -> Result<Option<i64>, Failure> {
        Ok(self.assignment(expr, SqlType::BigInt)?.as_i64())
    }

    /// DECLARE: the variables are there since the scope began; initial values are assigned each time it is reached.
    pub(crate) fn declare(&mut self, declarations: &[Declaration]) -> Result<(), Failure> {
        let (mut assigned, mut only_values) = (Vec::new(), true);
        for declaration in declarations {
            if let Some(value) = &declaration.value {
                assigned.push(self.assign(&declaration.variable.name, value)?);
            } else if self.session.frame().position(&declaration.variable.name).is_none() {
                // A table is made each time the statement is reached.
                only_values = false;
                self.declare_table_of_type(declaration)?;
            }
        }
        if only_values {
            self.keep_exprs(assigned);
        }
        Ok(())
    }

    /// DECLARE @t of a table type; a cursor variable is none.
    fn declare_table_of_type(&mut self, declaration: &Declaration) -> Result<(), Failure> {
        let name = &declaration.variable.name;
        let at = TypeUse::Parameter { ordinal: 1, name };
        if declaration.data_type.name.name.is("cursor") {
            return Ok(());
        }
        match meaning(self.session, &declaration.data_type, at, Collation::DEFAULT)? {
            TypeMeaning::Table(of) => crate::ddl::temporary::declare_of_type(self, name, &of),
            TypeMeaning::Value { .. } => Ok(()),
        }
    }

    /// Assigns a value to a variable; its position and the value's expression come back.
    fn assign(&mut self, name: &str, value: &Expr) -> Result<(usize, BoundExpr), Failure> {
        let position = self.session.frame().position(name);
        let position = position.ok_or_else(|| Failure::compile(message(137, &[&name])))?;
        let target = self.session.frame().variables[position].sql_type;
        let bound = bind_assignment(value, target, &CompileCx::new(self.session, self.at)).map_err(Failure::compile)?;
        let value = self.transactional(|this| Ok(eval_scalar(&bound, this.session)?))?;
        self.session.frame_mut().variables[position].value = value;
        Ok((position, bound))
    }

    /// SET @v = value, SET @v += value.
    pub(crate) fn set_variable(&mut self, node: &SetVariable) -> Result<(), Failure> {
        if let Some(property) = &node.property {
            return self.mutate_variable(node, property);
        }
        let assigned = match binary_of(node.op) {
            None if self.set_cursor_variable(&node.variable, &node.value)? => None,
            None => Some(self.assign(&node.variable.name, &node.value)?),
            Some(op) => {
                let span = node.value.span;
                let left = Expr { kind: ExprKind::Variable(node.variable.clone()), span };
                let right = Expr { kind: ExprKind::Paren(Box::new(node.value.clone())), span };
                let kind = ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) };
                Some(self.assign(&node.variable.name, &Expr { kind, span })?)
            }
        };
        if assigned.is_some() {
            self.keep_exprs(assigned);
        }
        self.session.row_count = 1;
        self.session.last_error = 0;
        Ok(())
    }

    /// SET @v.modify('...').
    fn mutate_variable(&mut self, node: &SetVariable, property: &Ident) -> Result<(), Failure> {
        let mut call = node.value.clone();
        match &mut call.kind {
            ExprKind::Method { method, .. } if property.is("modify") => thawdb_query::bind::expr::MUTATION.clone_into(&mut method.text),
            _ => return Err(crate::messages::unsupported("SET @variable.property").into()),
        }
        self.assign(&node.variable.name, &call)?;
        self.session.row_count = 1;
        self.session.last_error = 0;
        Ok(())
    }

    /// PRINT.
    pub(crate) fn print(&mut self, expr: &Expr) -> Result<(), Failure> {
        let (value, sql_type) = self.value(expr)?;
        let text = if value.is_null() { " ".to_owned() } else { rows::display(&value, &sql_type) };
        let line = expr.span.line;
        self.out.message(&SqlError { number: 0, severity: 0, state: 1, text, line, procedure: None });
        Ok(())
    }

    /// RAISERROR: up to severity 10 a message, from 11 an error, from 20 the end of the session.
    pub(crate) fn raise_error(&mut self, node: &RaiseError) -> Result<(), Failure> {
        let severity = self.int_value(&node.severity)?.unwrap_or(0).clamp(0, 25);
        let state = self.int_value(&node.state)?.unwrap_or(0);
        // A state below 0 is 1, one above 255 is 255, as SQL Server sends them.
        let state = u8::try_from(if state < 0 { 1 } else { state.min(255) }).expect("clamped");
        if severity > 18 && !node.log {
            return Err(message(2754, &[&18]).into());
        }
        let (given, given_type) = self.value(&node.message)?;
        let mut arguments = Vec::with_capacity(node.arguments.len());
        for argument in &node.arguments {
            arguments.push(self.value(argument)?);
        }
        let (number, template) = match given {
            Scalar::Text(text) => (50_000, text),
            value => {
                let number = i32::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0);
                (number, self.stored_message(number, severity, state)?)
            }
        };
        let _ = given_type;
        let text = format_message(&template, &arguments)?;
        let severity = u8::try_from(severity).expect("clamped");
        let error = SqlError { number, severity, state, text, line: 0, procedure: None };
        if severity <= 10 {
            let number = if node.set_error { error.number } else { 0 };
            let sent = SqlError { number: error.number, line: self.line_of_raise(node), ..error };
            self.out.message(&sent);
            self.session.last_error = number;
            return Ok(());
        }
        Err(Failure::raised(error))
    }

    fn line_of_raise(&self, node: &RaiseError) -> u32 {
        node.message.span.line
    }

    fn stored_message(&self, number: i32, severity: i64, state: u8) -> Result<String, Failure> {
        if !(13_000..=i32::MAX).contains(&number) || number == 50_000 {
            return Err(message(2732, &[&number, &13_000, &i32::MAX]).into());
        }
        match crate::messages::template(number) {
            Some(text) => Ok(text.to_owned()),
            None => Err(message(18_054, &[&number, &severity, &state]).into()),
        }
    }

    /// THROW: with arguments a new error of severity 16, without them the one being handled again.
    pub(crate) fn throw(&mut self, node: Option<&Throw>) -> Result<(), Failure> {
        let Some(node) = node else {
            let caught = self.session.frame().caught.last().map(|(_, error)| error.clone());
            return Err(match caught {
                Some(error) => Failure::thrown(error),
                None => Failure::compile(message(10_704, &[])),
            });
        };
        let number = self.int_value(&node.number)?.unwrap_or(0);
        let number = i32::try_from(number).ok().filter(|n| *n >= 50_000).ok_or_else(|| message(35_100, &[&number]))?;
        let text = self.text_value(&node.message)?.unwrap_or_default();
        let state = self.int_value(&node.state)?.unwrap_or(0);
        let state = u8::try_from(state.clamp(0, 255)).expect("clamped");
        Err(Failure::thrown(SqlError { number, severity: 16, state, text, line: 0, procedure: None }))
    }

    /// WAITFOR DELAY, WAITFOR TIME.
    pub(crate) fn wait_for(&mut self, node: &WaitFor) -> Result<(), Failure> {
        let text = self.text_value(&node.value)?.unwrap_or_default();
        let asked = parse_delay(text.trim()).ok_or_else(|| message(148, &[&text]))?;
        let clock = self.session.engine.config.env.clock.clone();
        let delay = match node.kind {
            WaitForKind::Delay => asked,
            WaitForKind::Time => {
                let local_ns = clock.utc_ns() + i128::from(clock.local_offset_minutes()) * 60_000_000_000;
                let day = Duration::from_secs(86_400);
                let now = u64::try_from(local_ns.rem_euclid(86_400_000_000_000)).expect("within a day");
                let now = Duration::from_nanos(now);
                if asked >= now { asked - now } else { day - now + asked }
            }
        };
        let end = clock.monotonic_ns().saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        loop {
            self.session.check()?;
            let now = clock.monotonic_ns();
            if now >= end {
                return Ok(());
            }
            clock.sleep(WAIT_SLICE.min(Duration::from_nanos(end - now)));
        }
    }

    /// USE.
    pub(crate) fn use_database(&mut self, name: &Ident) -> Result<(), Failure> {
        let old = self.session.database.name();
        let open = self.session.engine.usable_database(&name.text)?.ok_or_else(|| message(911, &[&name.text]))?;
        self.session.check_entry(open.id)?;
        let new = open.name();
        self.session.use_database(open)?;
        self.out.env_change(&EnvChange::Database { old, new: new.clone() });
        self.out.message(&message(5701, &[&new]).with_state(1));
        Ok(())
    }
}

fn binary_of(op: AssignOp) -> Option<BinaryOp> {
    Some(match op {
        AssignOp::Set => return None,
        AssignOp::Add => BinaryOp::Add,
        AssignOp::Subtract => BinaryOp::Subtract,
        AssignOp::Multiply => BinaryOp::Multiply,
        AssignOp::Divide => BinaryOp::Divide,
        AssignOp::Modulo => BinaryOp::Modulo,
        AssignOp::BitAnd => BinaryOp::BitAnd,
        AssignOp::BitOr => BinaryOp::BitOr,
        AssignOp::BitXor => BinaryOp::BitXor,
    })
}

/// `hh:mm[:ss[.mss]]`, up to 24 hours.
fn parse_delay(text: &str) -> Option<Duration> {
    let mut parts = text.split(':');
    let number = |part: &str| (!part.is_empty() && part.len() <= 2).then(|| part.parse::<u64>().ok()).flatten();
    let hours = number(parts.next()?)?;
    let minutes = parts.next().map_or(Some(0), number)?;
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let whole = number(whole)?;
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || whole > 59 {
        return None;
    }
    Some(Duration::from_secs(hours * 3600 + minutes * 60 + whole) + Duration::from_secs_f64(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays() {
        assert_eq!(parse_delay("00:00:01.5"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_delay("01:02"), Some(Duration::from_secs(3720)));
        for wrong in ["", "x", "25:00", "00:61", "00:00:00:00", "1"] {
            assert!(parse_delay(wrong).is_none() || wrong == "1", "{wrong}");
        }
    }
}
