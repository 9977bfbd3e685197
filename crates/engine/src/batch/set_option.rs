//! SET: what each option does, and which are known but not built.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::{message, unsupported_option};
use crate::session::isolation::Isolation;
use crate::session::options::Options;
use std::sync::Arc;
use thawdb_tsql::ast::{Expr, IsolationLevel, ObjectName, SetOption};
use thawdb_types::convert::DateOrder;
use thawdb_types::{Scalar, SqlType};

impl Interpreter<'_, '_> {
    /// SET.
    pub(crate) fn set_option(&mut self, option: &SetOption) -> Result<(), Failure> {
        match option {
            SetOption::Switch { names, on } => names.iter().try_for_each(|name| self.set_switch(name, *on)),
            SetOption::Statistics { names, on } => names.iter().try_for_each(|name| self.set_statistics(name, *on)),
            SetOption::Offsets { .. } => Err(unsupported_option("OFFSETS").into()),
            SetOption::IdentityInsert { table, on } => self.set_identity_insert(table, *on),
            SetOption::IsolationLevel(level) => self.set_isolation(*level),
            SetOption::Value { name, value } => self.set_value(name, value),
        }
    }

    fn set_switch(&mut self, name: &str, on: bool) -> Result<(), Failure> {
        if on && matches!(name, "SHOWPLAN_TEXT" | "SHOWPLAN_ALL") {
            self.session.allow_database("SHOWPLAN", self.session.database.id)?;
        }
        let options: &mut Options = &mut self.session.options;
        match name {
            "NOCOUNT" => options.nocount = on,
            "XACT_ABORT" => options.xact_abort = on,
            "ANSI_NULLS" => options.ansi_nulls = on,
            "ANSI_PADDING" => options.ansi_padding = on,
            "ANSI_WARNINGS" => options.ansi_warnings = on,
            "ANSI_NULL_DFLT_ON" => options.ansi_null_default_on = on,
            "ANSI_NULL_DFLT_OFF" => options.ansi_null_default_on = !on && options.ansi_null_default_on,
            "ANSI_DEFAULTS" => {
                options.ansi_nulls = on;
                options.ansi_padding = on;
                options.ansi_warnings = on;
                options.ansi_null_default_on = on;
                options.quoted_identifier = on;
                options.implicit_transactions = on;
                options.cursor_close_on_commit = on;
            }
            "ARITHABORT" => options.arithmetic_abort = on,
            "ARITHIGNORE" if !on => {}
            "CONCAT_NULL_YIELDS_NULL" => options.concat_null_yields_null = on,
            "QUOTED_IDENTIFIER" => options.quoted_identifier = on,
            "NUMERIC_ROUNDABORT" if !on => options.numeric_round_abort = false,
            "IMPLICIT_TRANSACTIONS" => options.implicit_transactions = on,
            "CURSOR_CLOSE_ON_COMMIT" => options.cursor_close_on_commit = on,
            "NOEXEC" => options.no_exec = on,
            "PARSEONLY" => options.parse_only = on,
            "FMTONLY" => options.format_only = on,
            "SHOWPLAN_TEXT" => options.showplan_text = on,
            "SHOWPLAN_ALL" => options.showplan_all = on,
            "FORCEPLAN" | "REMOTE_PROC_TRANSACTIONS" | "DISABLE_DEF_CNST_CHK" | "SHOWPLAN_XML" if !on => {}
            _ => return Err(unsupported_option(name).into()),
        }
        Ok(())
    }

    fn set_statistics(&mut self, name: &str, on: bool) -> Result<(), Failure> {
        match name {
            "IO" => self.session.options.statistics_io = on,
            "TIME" => self.session.options.statistics_time = on,
            _ if !on => {}
            _ => return Err(unsupported_option(format!("STATISTICS {name}")).into()),
        }
        Ok(())
    }

    fn set_identity_insert(&mut self, name: &ObjectName, on: bool) -> Result<(), Failure> {
        let table = crate::ddl::names::find_table(self.session, name)?.ok_or_else(|| message(1088, &[&crate::ddl::names::shown(name)]))?;
        if table.id.0 > 0 && !table.name.starts_with('#') && !self.session.is_sysadmin() {
            let judge = self.session.judge(table.database)?;
            if !judge.allows(crate::security::rule::Securable::Object(table.id.0), "ALTER") {
                return Err(message(1088, &[&crate::ddl::names::shown(name)]).into());
            }
        }
        let identity = (table.database, table.id);
        if !table.columns.iter().any(|column| column.identity.is_some()) {
            return Err(message(8106, &[&crate::ddl::names::shown(name)]).into());
        }
        if !on {
            if self.session.options.identity_insert == Some(identity) {
                self.session.options.identity_insert = None;
            }
            return Ok(());
        }
        if let Some((database, other)) = self.session.options.identity_insert.filter(|held| *held != identity)
            && let Some(other) = self.session.table(database, other)
        {
            let database = self.session.storage_of(database)?.name();
            return Err(message(8107, &[&database, &other.schema_name, &other.name, &table.name]).into());
        }
        self.session.options.identity_insert = Some(identity);
        Ok(())
    }

    fn set_isolation(&mut self, level: IsolationLevel) -> Result<(), Failure> {
        let isolation = match level {
            IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
            IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Snapshot => Isolation::Snapshot,
            IsolationLevel::Serializable => Isolation::Serializable,
        };
        self.choose_isolation(isolation)
    }

    /// Chooses the isolation of the statements to come, in an open transaction too: locks held already stay.
    pub(crate) fn choose_isolation(&mut self, isolation: Isolation) -> Result<(), Failure> {
        self.session.options.isolation = isolation;
        self.session.ticket.facts.lock().isolation = isolation.number();
        Ok(())
    }

    fn set_value(&mut self, name: &str, value: &Expr) -> Result<(), Failure> {
        match name {
            "ROWCOUNT" => {
                let rows = self.int_value(value)?.unwrap_or(0);
                self.session.options.row_count = u64::try_from(rows).map_err(|_| message(1014, &[]))?;
            }
            "LOCK_TIMEOUT" => {
                let ms = self.int_value(value)?.unwrap_or(-1);
                let ms = i32::try_from(ms).unwrap_or(-1);
                self.session.options.lock_timeout_ms = ms.max(-1);
                self.session.ticket.facts.lock().lock_timeout_ms = ms.max(-1);
            }
            "DATEFIRST" => {
                let day = self.int_value(value)?.unwrap_or(7);
                let day = u8::try_from(day).ok().filter(|day| (1..=7).contains(day)).ok_or_else(|| message(2742, &[&day]))?;
                self.session.options.date_first = day;
                self.session.ticket.facts.lock().date_first = day;
            }
            "TEXTSIZE" => {
                let size = self.int_value(value)?.unwrap_or(0);
                let size = i32::try_from(size).unwrap_or(i32::MAX);
                self.session.options.text_size = if size == -1 || size == 0 { if size == 0 { 4096 } else { i32::MAX } } else { size };
            }
            "DEADLOCK_PRIORITY" => self.set_deadlock_priority(value)?,
            "DATEFORMAT" => self.set_date_format(value)?,
            "LANGUAGE" => self.set_language(value)?,
            "CONTEXT_INFO" => {
                if let Scalar::Binary(bytes) = self.assignment(value, SqlType::varbinary(128))? {
                    self.session.options.context_info = Arc::from(bytes);
                }
            }
            "QUERY_GOVERNOR_COST_LIMIT" => {}
            _ => return Err(unsupported_option(name).into()),
        }
        Ok(())
    }

    fn set_deadlock_priority(&mut self, value: &Expr) -> Result<(), Failure> {
        let text = self.text_value(value)?.unwrap_or_default();
        let priority = match text.to_ascii_uppercase().as_str() {
            "LOW" => Some(-5),
            "NORMAL" => Some(0),
            "HIGH" => Some(5),
            other => other.parse::<i8>().ok().filter(|p| (-10..=10).contains(p)),
        };
        self.session.options.deadlock_priority = priority.ok_or_else(|| message(195, &[&text, &"DEADLOCK_PRIORITY option"]))?;
        Ok(())
    }

    fn set_date_format(&mut self, value: &Expr) -> Result<(), Failure> {
        let text = self.text_value(value)?.unwrap_or_default();
        let order = DateOrder::by_name(&text).ok_or_else(|| message(2741, &[&text]))?;
        self.session.options.date_order = order;
        self.session.ticket.facts.lock().date_order = order;
        Ok(())
    }

    fn set_language(&mut self, value: &Expr) -> Result<(), Failure> {
        let text = self.text_value(value)?.unwrap_or_default();
        if !["us_english", "english"].iter().any(|known| text.eq_ignore_ascii_case(known)) {
            return Err(unsupported_option(format!("LANGUAGE {text}")).into());
        }
        let language = crate::instance::login::LANGUAGE.to_owned();
        self.out.env_change(&crate::api::sink::EnvChange::Language { old: language.clone(), new: language.clone() });
        self.out.message(&message(5703, &[&language]));
        Ok(())
    }
}
