//! The shell over a target that answers by rote.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;
use thawdb_engine::OutputColumn;
use thawdb_types::{Scalar, SqlError, SqlType, message};

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Answers `rows` with a table, `error` with 208, anything else with its own text.
#[derive(Default)]
struct Parrot(Rc<RefCell<Vec<String>>>);

impl Target for Parrot {
    fn run(&mut self, batch: &str, printer: &mut Printer) -> Result<(), TargetError> {
        self.0.borrow_mut().push(batch.trim().to_owned());
        match batch.trim() {
            "rows" => {
                let column = |name: &str, sql_type| OutputColumn { name: name.into(), sql_type, nullable: true, identity: false };
                printer.columns(&[column("Id", SqlType::Int), column("Name", SqlType::nvarchar(6)), column("", SqlType::decimal(4, 2))]);
                printer.row(&[Scalar::Int(1), Scalar::text("Zoë"), Scalar::Decimal(150)]);
                printer.row(&[Scalar::Null, Scalar::text("a longer one"), Scalar::Null]);
                printer.done(Some(2));
            }
            "error" => {
                let error = message(208, &[&"dbo.t"]).at_line(3);
                printer.message(&SqlError { procedure: Some("p".into()), ..error });
                printer.done(None);
            }
            other => printer.line(other)?,
        }
        Ok(())
    }

    fn server_name(&self) -> String {
        "X".into()
    }
}

fn run(settings: Settings, work: impl FnOnce(&mut Shell<'_>) -> Ending) -> (String, String, Vec<String>, Ending) {
    let (output, errors, parrot) = (Kept::default(), Kept::default(), Parrot::default());
    let asked = parrot.0.clone();
    let mut shell = Shell::new(Box::new(parrot), settings, Box::new(output.clone()), Box::new(errors.clone()));
    let ending = work(&mut shell);
    drop(shell);
    (output.text(), errors.text(), asked.take(), ending)
}

fn settings() -> Settings {
    Settings { table: table::TableSettings::default(), stop_on_error: false, prompts: false }
}

#[test]
fn tables_look_like_sqlcmds() {
    let (output, errors, ..) = run(settings(), |shell| shell.run_script("rows").unwrap());
    let expected = "Id          Name         \n\
                    ----------- ------ ------\n\
                    \x20         1 Zoë      1.50\n\
                    \x20      NULL a long   NULL\n\
                    \n(2 rows affected)\n";
    assert_eq!((output.as_str(), errors.as_str()), (expected, ""));
}

#[test]
fn trimmed_tables_with_a_separator_and_repeated_headings() {
    let table = table::TableSettings { separator: "|".into(), trim: true, rows_per_heading: 1 };
    let (output, ..) = run(Settings { table, ..settings() }, |shell| shell.run_script("rows").unwrap());
    let expected = "Id|Name|\n--|----|-\n1|Zoë|1.50\n\nId|Name|\n--|----|-\nNULL|a longer one|NULL\n\n(2 rows affected)\n";
    assert_eq!(output, expected);
    let table = table::TableSettings { separator: ",".into(), trim: true, rows_per_heading: -1 };
    let (output, ..) = run(Settings { table, ..settings() }, |shell| shell.run_script("rows").unwrap());
    assert_eq!(output, "1,Zoë,1.50\nNULL,a longer one,NULL\n\n(2 rows affected)\n");
}

#[test]
fn errors_go_to_standard_error_and_stop_only_when_told_to() {
    let script = "error\nGO\nhello\nGO 2\n:quit\nnever\n";
    let (output, errors, asked, ending) = run(settings(), |shell| shell.run_script(script).unwrap());
    assert_eq!(errors, "Msg 208, Level 16, State 1, Server X, Procedure p, Line 3\nInvalid object name 'dbo.t'.\n");
    assert_eq!((output.as_str(), ending), ("hello\nhello\n", Ending::Quit));
    assert_eq!(asked, ["error", "hello", "hello"]);
    let (_, _, asked, ending) = run(Settings { stop_on_error: true, ..settings() }, |shell| shell.run_script(script).unwrap());
    assert_eq!((asked, ending), (vec!["error".to_owned()], Ending::Failed));
}

#[test]
fn typed_batches_run_at_go_with_prompts() {
    let settings = Settings { prompts: true, ..settings() };
    let typed = "one\ntwo\nGO\n:nonesuch\nexit\n";
    let (output, _, asked, ending) = run(settings, |shell| shell.run_interactive(&mut typed.as_bytes()).unwrap());
    assert_eq!((asked, ending), (vec!["one\ntwo".to_owned()], Ending::Quit));
    assert_eq!(output, "1> 2> 3> one\ntwo\n1> 1> ");
}
