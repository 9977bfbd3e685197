//! SET SHOWPLAN_TEXT ON: the plan instead of its rows, as one column of lines.

use crate::api::batch::Batch;
use crate::api::sink::StatementKind;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use thawdb_query::compile::Compiled;
use thawdb_query::explain::{explain_lines, session_names};
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ast::Stmt;
use thawdb_types::SqlType;
use thawdb_types::column::array_from_scalars;

impl Interpreter<'_, '_> {
    /// Sends the statement's text, then its plan.
    pub(crate) fn show_plan(&mut self, statement: &Stmt, plan: &Compiled) -> Result<(), Failure> {
        let names = session_names(self.session);
        let lines = explain_lines(&plan.node, &names);
        drop(names);
        self.lines(vec![statement.span.slice(self.text).to_owned()])?;
        self.lines(lines)
    }

    fn lines(&mut self, lines: Vec<String>) -> Result<(), Failure> {
        let sql_type = SqlType::nvarchar(4000);
        let column = OutputColumn { name: "StmtText".into(), sql_type, nullable: true, identity: false };
        let values: Vec<_> = lines.into_iter().map(thawdb_types::Scalar::Text).collect();
        let array = array_from_scalars(&sql_type, &values);
        self.out.columns(&[column])?;
        self.out.rows(&Batch { columns: vec![array], row_count: values.len() })?;
        let count = self.shown_count(values.len() as u64);
        self.out.done(StatementKind::Select, count, false);
        Ok(())
    }
}
