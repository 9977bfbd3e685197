//! A sink that writes down what a client would see.

use thawdb_engine::{Batch, DoneInfo, DoneKind, EnvChange, OutputColumn, ResultSink, SinkClosed};
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// What a call said, line by line.
#[derive(Default)]
pub struct Transcript {
    pub lines: Vec<String>,
    types: Vec<SqlType>,
    pub last: Option<DoneInfo>,
}

/// A value as the transcripts show it.
pub fn shown(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Text(text) => text.replace('\n', "\\n"),
        Scalar::Binary(bytes) if *sql_type == SqlType::SqlVariant => {
            let (base, value) = thawdb_types::variant::decode(bytes).expect("the bytes of a sql_variant");
            format!("{}:{}", base.name(), shown(&value, &base))
        }
        Scalar::Binary(bytes) => format!("0x{}", bytes.iter().map(|b| format!("{b:02X}")).collect::<String>()),
        Scalar::Bit(on) => i32::from(*on).to_string(),
        Scalar::Float(value) => value.to_string(),
        Scalar::Real(value) => value.to_string(),
        other => {
            // All that the value has: milliseconds of datetime, four digits of money.
            let style = if matches!(sql_type, SqlType::Money | SqlType::SmallMoney) { 2 } else { 121 };
            let options = thawdb_types::convert::ConvertOptions::with_style(style);
            match thawdb_types::convert::convert(other, sql_type, &SqlType::nvarchar(4000), &options) {
                Ok(Scalar::Text(text)) => text,
                _ => format!("{other:?}"),
            }
        }
    }
}

impl ResultSink for Transcript {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        self.types = columns.iter().map(|c| c.sql_type).collect();
        let named: Vec<_> = columns.iter().map(|c| format!("{} {}", c.name, c.sql_type.name()).trim().to_owned()).collect();
        self.lines.push(format!("[{}]", named.join(", ")));
        Ok(())
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        for row in 0..batch.row_count {
            let values: Vec<_> = batch.columns.iter().zip(&self.types).map(|(c, t)| shown(&scalar_at(c.as_ref(), row, t), t)).collect();
            self.lines.push(values.join(" | "));
        }
        Ok(())
    }

    fn done(&mut self, info: DoneInfo) {
        assert!(self.last.is_none_or(|last| last.more), "a completion after the last");
        self.last = Some(info);
        let kind = match info.kind {
            DoneKind::Statement => "done",
            DoneKind::InProcedure => "done-in-proc",
            DoneKind::Procedure => "done-proc",
        };
        let mut line = kind.to_owned();
        if let Some(count) = info.rows_affected {
            line.push_str(&format!(" {count}"));
        }
        if info.error {
            line.push_str(" error");
        }
        if info.cancelled {
            line.push_str(" cancelled");
        }
        // The last completion of a call says nothing new when it counts nothing.
        if !(line == "done" && !info.more) {
            self.lines.push(line);
        }
    }

    fn message(&mut self, message: &SqlError) {
        let procedure = message.procedure.as_ref().map_or(String::new(), |name| format!(", Procedure {name}"));
        let text = message.text.replace('\n', "\\n");
        self.lines.push(if message.severity <= 10 {
            format!("info {}: {text}", message.number)
        } else {
            format!("Msg {}, Level {}, State {}{procedure}, Line {}: {text}", message.number, message.severity, message.state, message.line)
        });
    }

    fn return_status(&mut self, status: i32) {
        self.lines.push(format!("status {status}"));
    }

    fn return_value(&mut self, ordinal: u16, name: &str, sql_type: &SqlType, value: &Scalar) {
        self.lines.push(format!("value {ordinal} {name} {}: {}", sql_type.name(), shown(value, sql_type)));
    }

    fn env_change(&mut self, change: &EnvChange) {
        self.lines.push(match change {
            EnvChange::Database { new, .. } => format!("env database {new}"),
            EnvChange::Language { new, .. } => format!("env language {new}"),
            EnvChange::BeginTransaction { .. } => "env begin".into(),
            EnvChange::CommitTransaction { .. } => "env commit".into(),
            EnvChange::RollbackTransaction { .. } => "env rollback".into(),
            EnvChange::ResetConnection => "env reset".into(),
        });
    }
}
