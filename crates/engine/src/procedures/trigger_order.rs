//! sp_settriggerorder: which AFTER trigger of a statement fires first or last.
//!
//! ```text
//! @triggername, @order First | Last | None, @stmttype INSERT | UPDATE | DELETE [, @namespace] ─► TriggerDef::order
//! ```
//!
//! Messages: 15165 (no such trigger), 15600 (no such order or statement), 15125 (the trigger does not fire for the statement),
//! 15130 (another trigger has the place already).

use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::module::find_object;
use crate::ddl::names::parse_name;
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::message;
use crate::procedures::{Returned, parameter};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ObjectDef, ObjectId, ObjectKind, TriggerDef};
use thawdb_types::SqlError;

const NAME: &str = "sp_settriggerorder";
const PARAMETERS: [&str; 4] = ["@triggername", "@order", "@stmttype", "@namespace"];

/// Calls it, as a statement of its own.
pub(crate) fn call(session: &mut SessionState, arguments: &[Argument]) -> Result<Returned, Failure> {
    let mut given: [Option<String>; 4] = [None, None, None, None];
    for (at, argument) in arguments.iter().enumerate() {
        given[parameter::place(NAME, &PARAMETERS, at, argument)?] = argument.value.as_text().map(str::to_owned);
    }
    let [name, order, statement, _] = given;
    let missing = |at: usize| message(201, &[&NAME, &PARAMETERS[at]]);
    let (name, order) = (name.ok_or_else(|| missing(0))?, order.ok_or_else(|| missing(1))?);
    let statement = statement.ok_or_else(|| missing(2))?;
    let mark = session.begin_statement();
    let outcome = set_order(session, &name, &order, &statement).and_then(|()| session.end_statement());
    if let Err(error) = outcome {
        session.undo_statement(&mark)?;
        return Err(error.into());
    }
    Ok(Returned::default())
}

fn set_order(session: &mut SessionState, name: &str, order: &str, statement: &str) -> Result<(), SqlError> {
    let unknown = || message(15165, &[&name]);
    let parsed = parse_name(name).ok_or_else(unknown)?;
    let found = find_object(session, &parsed)?.filter(|found| found.object.kind == ObjectKind::Trigger);
    let found = found.ok_or_else(unknown)?;
    let (object, open) = (found.object, found.database);
    if !session.may_alter(open.id, object.parent.unwrap_or(object.id)) {
        return Err(unknown());
    }
    let trigger = object.trigger.ok_or_else(unknown)?;
    let words = ["INSERT", "UPDATE", "DELETE"];
    let wrong = || message(15600, &[&"sys.sp_settriggerorder"]);
    let at = words.iter().position(|word| word.eq_ignore_ascii_case(statement)).ok_or_else(wrong)?;
    let place = match order.to_ascii_lowercase().as_str() {
        "first" => 1u8 << at,
        "last" => 1 << (at + 4),
        "none" => 0,
        _ => return Err(wrong()),
    };
    if trigger.instead_of || ![trigger.insert, trigger.update, trigger.delete][at] {
        return Err(message(15125, &[&name, &words[at]]));
    }
    let now = session.engine.now_datetime();
    change_catalog(session, &open, |catalog, part| {
        let parent = object.parent.unwrap_or(ObjectId(0));
        let taken = |known: &Arc<ObjectDef>| known.id != object.id && known.trigger.is_some_and(|other| other.order & place != 0);
        if catalog.triggers_of(parent).any(taken) {
            return Err(message(15130, &[&order, &words[at]]));
        }
        let mut changed = (*object).clone();
        let both = (1u8 << at) | (1 << (at + 4));
        changed.trigger = Some(TriggerDef { order: (trigger.order & !both) | place, ..trigger });
        changed.modified = now;
        catalog.put_object(&mut part.txn, changed).map_err(catalog_error(&open))
    })
}
