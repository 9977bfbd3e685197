//! The shell: batches in, tables out, as sqlcmd has it.
//!
//! ```text
//! text ── script (GO, commands) ──► batch ──► Target (server or embedded) ──► Printer (tables, messages)
//! ```
//!
//! Invariants: H1 rows and counts go to the output, messages of severity above 10 to standard error, in the order
//! they came ([`table::Printer`] flushes one before it writes the other). H2 a batch that fails does not end the
//! shell unless asked to (`-b`); a connection that is lost does.
//!
//! Locks: none. What it does not do: sqlcmd's variables (`$(name)`, `:setvar`), `:connect`, `!!`.

pub mod script;
pub mod table;
pub mod target;
#[cfg(test)]
mod tests;

use script::{Line, Lines};
use std::io::{BufRead, Write};
use table::Printer;
use target::{Target, TargetError};
use thawdb_tsql::{ScriptBatch, split_script};

/// How the shell behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How tables look.
    pub table: table::TableSettings,
    /// Ends with exit code 1 at the first error of severity above 10 (`-b`).
    pub stop_on_error: bool,
    /// Shows prompts.
    pub prompts: bool,
}

/// How a run of the shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All is done.
    Done,
    /// `:quit` was met.
    Quit,
    /// A batch failed and `-b` was given.
    Failed,
}

/// A shell over a connection.
pub struct Shell<'t> {
    target: Box<dyn Target + 't>,
    printer: Printer,
    settings: Settings,
}

impl<'t> Shell<'t> {
    /// A shell that writes tables to `output` and errors to `errors`.
    pub fn new(target: Box<dyn Target + 't>, settings: Settings, output: Box<dyn Write>, errors: Box<dyn Write>) -> Self {
        let printer = Printer::new(settings.table.clone(), target.server_name(), output, errors);
        Self { target, printer, settings }
    }

    /// Runs a whole script.
    pub fn run_script(&mut self, text: &str) -> Result<Ending, TargetError> {
        let (text, quit) = script::without_commands(text);
        for batch in split_script(&text) {
            if self.run_batch(&batch)? == Ending::Failed {
                return Ok(Ending::Failed);
            }
        }
        Ok(if quit { Ending::Quit } else { Ending::Done })
    }

    /// Runs what is typed, batch by batch.
    pub fn run_interactive(&mut self, input: &mut dyn BufRead) -> Result<Ending, TargetError> {
        let mut lines = Lines::default();
        let mut line = String::new();
        loop {
            self.prompt(lines.next_number())?;
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(Ending::Done);
            }
            match lines.add(&line) {
                Line::More => {}
                Line::Quit => return Ok(Ending::Quit),
                Line::Help => self.printer.line(script::HELP)?,
                Line::Unknown(command) => self.printer.complain(&format!("There is no command ':{command}'; :help lists them."))?,
                Line::Batches(batches) => {
                    for batch in batches {
                        if self.run_batch(&batch)? == Ending::Failed {
                            return Ok(Ending::Failed);
                        }
                    }
                }
            }
        }
    }

    fn prompt(&mut self, number: u32) -> Result<(), TargetError> {
        if self.settings.prompts {
            self.printer.write(&format!("{number}> "))?;
            self.printer.flush()?;
        }
        Ok(())
    }

    fn run_batch(&mut self, batch: &ScriptBatch) -> Result<Ending, TargetError> {
        for _ in 0..batch.count {
            self.printer.begin_batch();
            self.target.run(&batch.text, &mut self.printer)?;
            self.printer.flush()?;
            if self.printer.failed() && self.settings.stop_on_error {
                return Ok(Ending::Failed);
            }
        }
        Ok(Ending::Done)
    }
}
