//! Arguments of a procedure call, from a statement or a remote call, and their way to the parameters.

use crate::api::parameter::Parameter;
use crate::messages::message;
use crate::rows;
use thawdb_types::{Scalar, SqlError, SqlType};

/// One argument.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// Name of the parameter with its `@`; empty when given by position.
    pub(crate) name: String,
    pub(crate) value: Scalar,
    pub(crate) sql_type: SqlType,
    /// Whether the caller wants the value back.
    pub(crate) output: bool,
    /// Variable of the calling scope that takes it.
    pub(crate) target: Option<usize>,
    /// DEFAULT was written, or nothing was sent.
    pub(crate) is_default: bool,
}

impl From<&Parameter> for Argument {
    fn from(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name.clone(),
            value: parameter.value.clone(),
            sql_type: parameter.sql_type,
            output: parameter.output,
            target: None,
            is_default: false,
        }
    }
}

/// Arguments laid out by the names of a procedure's parameters.
pub(crate) struct Matched<'a> {
    procedure: &'a str,
    names: &'a [&'a str],
    found: Vec<Option<&'a Argument>>,
}

/// Gives each argument its parameter: 8143, 8144, 8145 for those that fit none. `names` have no `@`.
pub(crate) fn matched<'a>(procedure: &'a str, names: &'a [&'a str], arguments: &'a [Argument]) -> Result<Matched<'a>, SqlError> {
    let mut found: Vec<Option<&Argument>> = vec![None; names.len()];
    for (at, argument) in arguments.iter().enumerate() {
        let position = if argument.name.is_empty() {
            (at < names.len()).then_some(at).ok_or_else(|| message(8144, &[&procedure]))?
        } else {
            let bare = argument.name.trim_start_matches('@');
            let known = names.iter().position(|name| name.eq_ignore_ascii_case(bare));
            known.ok_or_else(|| message(8145, &[&argument.name, &procedure]))?
        };
        if found[position].replace(argument).is_some() {
            return Err(message(8143, &[&format!("@{}", names[position])]));
        }
    }
    Ok(Matched { procedure, names, found })
}

impl Matched<'_> {
    /// The argument of a parameter, if it was given one.
    pub(crate) fn get(&self, name: &str) -> Option<&Argument> {
        let position = self.names.iter().position(|known| *known == name)?;
        self.found[position].filter(|argument| !argument.is_default)
    }

    /// Its text; `None` if it is NULL or was not given.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, SqlError> {
        match self.get(name) {
            None => Ok(None),
            Some(argument) => match rows::convert(&argument.value, &argument.sql_type, &SqlType::NVARCHAR_MAX)? {
                Scalar::Text(text) => Ok(Some(text)),
                _ => Ok(None),
            },
        }
    }

    /// Its whole number; `None` if it is NULL or was not given.
    pub(crate) fn int(&self, name: &str) -> Result<Option<i32>, SqlError> {
        match self.get(name) {
            None => Ok(None),
            Some(argument) => match rows::convert(&argument.value, &argument.sql_type, &SqlType::Int)? {
                Scalar::Int(value) => Ok(Some(value)),
                _ => Ok(None),
            },
        }
    }

    /// Its text, which must be given: 201 otherwise.
    pub(crate) fn required_text(&self, name: &str) -> Result<String, SqlError> {
        self.text(name)?.ok_or_else(|| message(201, &[&self.procedure, &format!("@{name}")]))
    }
}
