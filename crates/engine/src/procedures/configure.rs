//! sp_configure with a value: a setting of the instance is another from the next RECONFIGURE on.
//!
//! ```text
//! sp_configure name, value ─► recorded in master (config_value), 15457 ─► RECONFIGURE or start ─► in use (run_value)
//! ```
//! Which settings can be changed is [`CHANGEABLE`]; the others are shown, and changing them is refused by name (40517).
//! Messages: 15123 (no such option), 15124 (several begin so), 15129 (not a value of it), 15247 (not allowed), 15457.

use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::instance::Engine;
use crate::messages::{message, unsupported_option};
use crate::procedures::{Returned, parameter};
use crate::security::rule::Securable;
use crate::session::state::SessionState;
use crate::views::server::{CONFIGURATIONS, recorded};

const NAME: &str = "sp_configure";
const PARAMETERS: [&str; 2] = ["@configname", "@configvalue"];
/// Settings that something acts on, or that only say what sp_configure shows.
const CHANGEABLE: [i32; 4] = [518, 1505, 1538, 1539];

/// Whether a call gives a value: without one the settings are only shown.
pub(crate) fn gives_value(arguments: &[Argument]) -> bool {
    let is_value = |at: usize, argument: &Argument| parameter::place(NAME, &PARAMETERS, at, argument).is_ok_and(|place| place == 1);
    arguments.iter().enumerate().any(|(at, argument)| is_value(at, argument) && !argument.value.is_null())
}

/// Calls it with a value.
pub(crate) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    if !session.server_judge().allows(Securable::Server, "ALTER SETTINGS") {
        return Err(message(15247, &[]).into());
    }
    let (mut name, mut value) = (None, None);
    for (at, argument) in arguments.iter().enumerate() {
        match parameter::place(NAME, &PARAMETERS, at, argument)? {
            0 => name = argument.value.as_text().map(str::to_owned),
            _ => value = argument.value.as_i64(),
        }
    }
    let name = name.unwrap_or_default();
    let value = value.ok_or_else(|| message(8114, &[&"varchar", &"int"]))?;
    let begins = |full: &str| full.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(&name));
    let exact = CONFIGURATIONS.iter().filter(|setting| setting.1.eq_ignore_ascii_case(&name));
    let found: Vec<_> = match exact.clone().count() {
        0 => CONFIGURATIONS.iter().filter(|setting| begins(setting.1)).collect(),
        _ => exact.collect(),
    };
    let [&(id, full, least, most, ..)] = found[..] else {
        return Err(message(if found.is_empty() { 15_123 } else { 15_124 }, &[&name]).into());
    };
    if !(i64::from(least)..=i64::from(most)).contains(&value) {
        return Err(message(15_129, &[&value, &full]).into());
    }
    if !CHANGEABLE.contains(&id) {
        return Err(unsupported_option(full).into());
    }
    let before = recorded(session, id);
    session.engine.change_master(|instance, txn| instance.put_setting(txn, id, value))?;
    out.message(&message(15_457, &[&full, &before, &value]).at_line(1));
    Ok(Returned::default())
}

impl Engine {
    /// RECONFIGURE: what is recorded is in use. Plans made under other settings are forgotten.
    pub(crate) fn reconfigure(&self) {
        let recorded = self.master.lock().settings.clone();
        let before = std::mem::replace(&mut *self.settings.write(), recorded.clone());
        if before != recorded {
            self.plans.clear();
        }
    }
}
