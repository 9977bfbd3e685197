//! sp_set_session_context: sets a key of the session context.
//!
//! An extended procedure: arguments count by their places, whatever their names.
//!
//! | wrong | answer |
//! |---|---|
//! | one argument; more than three | 16903; 16914 |
//! | @key NULL | 225 |
//! | @read_only NULL, a value that no sql_variant holds | 15600 |
//! | a key of no or more than 128 characters, a read-only key, more than 1 MB | 15666, 15664, 15665 |

use crate::batch::arguments::Argument;
use crate::messages::message;
use crate::procedures::Returned;
use crate::session::state::SessionState;
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::{Scalar, SqlError, SqlType, variant};

const NAME: &str = "sp_set_session_context";
/// How the server names it in its own messages.
const INNER_NAME: &str = "sp_set_connection_context";

/// Calls it.
pub(crate) fn call(session: &mut SessionState, arguments: &[Argument]) -> Result<Returned, SqlError> {
    set(session, arguments).map_err(|error| SqlError { procedure: Some(format!("sys.{NAME}")), ..error })?;
    Ok(Returned::default())
}

fn set(session: &mut SessionState, arguments: &[Argument]) -> Result<(), SqlError> {
    let (key, value, read_only) = match arguments {
        [key, value] => (key, value, false),
        [key, value, flag] => (key, value, is_set(flag)?),
        [_, _, _, ..] => return Err(message(16914, &[&INNER_NAME])),
        _ => return Err(message(16903, &[&INNER_NAME])),
    };
    let key = key.value.as_text().ok_or_else(|| message(225, &[&"procedure", &NAME]))?;
    let value = match (&value.value, &value.sql_type) {
        (Scalar::Null, _) => None,
        (Scalar::Binary(bytes), SqlType::SqlVariant) => Some(bytes.clone()),
        (plain, base) if variant::holds(base) => Some(variant::encode(plain, base)),
        _ => return Err(message(15600, &[&INNER_NAME])),
    };
    session.key_values.set(key, value, read_only)
}

fn is_set(flag: &Argument) -> Result<bool, SqlError> {
    if flag.is_default {
        return Ok(false);
    }
    let bit = convert(&flag.value, &flag.sql_type, &SqlType::Bit, &ConvertOptions::default());
    match bit {
        Ok(Scalar::Bit(set)) => Ok(set),
        _ => Err(message(15600, &[&INNER_NAME])),
    }
}
