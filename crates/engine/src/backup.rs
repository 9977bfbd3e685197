//! BACKUP DATABASE and BACKUP LOG, to a file or to `NUL`.
//!
//! ```text
//! statement ─► what is refused (3021, 911, 3147, 4212, 4208, 4214) ─► medium ─► storage gives pages and log ─► 4035, 3014
//! ```
//!
//! What fails is told by its own number and then by 3013, as SQL Server does. `NUL` discards the bytes and does everything
//! else: the chain goes on, log is freed. The bytes of a backup file are `thawdb_maintain::backup`'s.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::instance::{MASTER_ID, TEMPDB_ID};
use crate::messages::{message, unsupported_option};
use crate::storage_error::operating_system_error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thawdb_maintain::{BackupMedium, BackupOf};
use thawdb_storage::log::RecoveryModel;
use thawdb_storage::store::data_backup::BackupSink;
use thawdb_storage::{FileKind, Lsn, PageId, StorageError};
use thawdb_tsql::ast::{Backup, BackupDeviceKind, BackupKind, NameOrVariable, OptionItem, OptionValue};
use thawdb_types::{Scalar, SqlError};

const PAGE_BYTES: u64 = 8192;
const MEGABYTE: u64 = 1 << 20;
const NS_PER_MS: u64 = 1_000_000;

/// What WITH said.
#[derive(Default)]
struct Options {
    copy_only: bool,
    afresh: bool,
    /// STATS = n: a message each n per cent.
    stats: Option<u64>,
}

/// BACKUP.
pub(crate) fn backup(interpreter: &mut Interpreter<'_, '_>, node: &Backup) -> Result<(), Failure> {
    let statement = match node.kind {
        BackupKind::Database => "BACKUP DATABASE",
        BackupKind::Log => "BACKUP LOG",
    };
    if interpreter.session.transactions.count > 0 {
        return Err(message(3021, &[]).into());
    }
    let outcome = run(interpreter, node, statement);
    outcome.map_err(|failure| {
        if failure.is_cancelled() || failure.error.severity < 11 || failure.error.number == 40517 {
            return failure;
        }
        interpreter.session.infos.push(failure.error);
        message(3013, &[&statement]).into()
    })
}

fn run(interpreter: &mut Interpreter<'_, '_>, node: &Backup, statement: &str) -> Result<(), Failure> {
    let open = database_of(interpreter, &node.database)?;
    let options = options_of(interpreter, &node.options)?;
    check_allowed(&open, node.kind, statement)?;
    if !node.files.is_empty() {
        return Err(unsupported_option("FILE").into());
    }
    if let [_, second, ..] = node.to.as_slice() {
        return Err(unsupported_option("several devices").at_line(second.span.line).into());
    }
    if !node.mirrors.is_empty() {
        return Err(unsupported_option("MIRROR TO").into());
    }
    let path = device_of(interpreter, node)?;
    let medium = open_medium(interpreter, path.as_deref(), options.afresh)?;
    let began = interpreter.session.engine.config.env.clock.monotonic_ns();
    let told = match node.kind {
        BackupKind::Database => back_up_data(interpreter, &open, medium, &options, path.as_deref())?,
        BackupKind::Log => back_up_log(interpreter, &open, medium, &options, path.as_deref())?,
    };
    let took = interpreter.session.engine.config.env.clock.monotonic_ns().saturating_sub(began);
    let mut pages = 0;
    let name = open.name();
    for (file, count, number) in &told {
        pages += count;
        interpreter.out.message(&message(4035, &[count, &name, file, number]));
    }
    interpreter.out.message(&finished(statement, pages, took));
    Ok(())
}

/// 3014 with seconds to the millisecond and megabytes a second to the thousandth.
fn finished(statement: &str, pages: u64, took_ns: u64) -> SqlError {
    let ms = (took_ns / NS_PER_MS).max(1);
    let thousandths = u128::from(pages * PAGE_BYTES) * 1_000_000 / u128::from(MEGABYTE) / u128::from(ms);
    let three = |value: u128| format!("{:03}", value % 1000);
    let text = format!(
        "{statement} successfully processed {pages} pages in {}.{} seconds ({}.{} MB/sec).",
        ms / 1000,
        three(u128::from(ms)),
        thousandths / 1000,
        three(thousandths)
    );
    SqlError { text, ..message(3014, &[&statement, &0, &0, &0, &0, &0]) }
}

fn database_of(interpreter: &mut Interpreter<'_, '_>, name: &NameOrVariable) -> Result<Arc<OpenDatabase>, Failure> {
    let name = match name {
        NameOrVariable::Name(name) => name.text.clone(),
        NameOrVariable::Variable(variable) => {
            let frame = interpreter.session.frame();
            let position = frame.position(&variable.name).ok_or_else(|| Failure::compile(message(137, &[&variable.name])))?;
            match &frame.variables[position].value {
                Scalar::Text(text) => text.clone(),
                _ => String::new(),
            }
        }
    };
    Ok(interpreter.session.engine.usable_database(&name)?.ok_or_else(|| message(911, &[&name]))?)
}

fn check_allowed(open: &OpenDatabase, kind: BackupKind, statement: &str) -> Result<(), SqlError> {
    if open.id == TEMPDB_ID {
        return Err(message(3147, &[]));
    }
    if kind == BackupKind::Database {
        return Ok(());
    }
    if open.id == MASTER_ID {
        return Err(message(4212, &[]));
    }
    let policy = open.storage.store().log().map(|log| log.policy()).unwrap_or_default();
    if policy.model == RecoveryModel::Simple {
        return Err(message(4208, &[&statement]));
    }
    if policy.chain.is_none() { Err(message(4214, &[])) } else { Ok(()) }
}

fn options_of(interpreter: &mut Interpreter<'_, '_>, items: &[OptionItem]) -> Result<Options, Failure> {
    let mut options = Options::default();
    for item in items {
        match item.name.as_str() {
            "COPY_ONLY" => options.copy_only = true,
            "INIT" | "FORMAT" => options.afresh = true,
            // Names are for the history in msdb; checksums are always made; what is written now never replaces another's
            // file without INIT; nothing here is ever on tape.
            "NOINIT" | "NOFORMAT" | "NAME" | "DESCRIPTION" | "MEDIANAME" | "MEDIADESCRIPTION" | "CHECKSUM" | "STOP_ON_ERROR" | "SKIP"
            | "NOSKIP" | "NOREWIND" | "NOUNLOAD" | "REWIND" | "UNLOAD" | "NO_COMPRESSION" | "BUFFERCOUNT" | "BLOCKSIZE"
            | "MAXTRANSFERSIZE" => {}
            "STATS" => {
                let step = match &item.value {
                    OptionValue::Expr(expr) => interpreter.int_value(expr)?.unwrap_or(10),
                    _ => 10,
                };
                options.stats = Some(u64::try_from(step.clamp(1, 100)).expect("at least 1"));
            }
            name => return Err(unsupported_option(name).at_line(item.span.line).into()),
        }
    }
    Ok(options)
}

/// The file to write; `None` is NUL.
fn device_of(interpreter: &mut Interpreter<'_, '_>, node: &Backup) -> Result<Option<PathBuf>, Failure> {
    let device = node.to.first().ok_or_else(|| message(3201, &[&"", &"3"]))?;
    let target = interpreter.text_value(&device.target)?.unwrap_or_default();
    match device.kind {
        BackupDeviceKind::Disk if target.trim().eq_ignore_ascii_case("NUL") || target.trim().eq_ignore_ascii_case("NUL:") => Ok(None),
        BackupDeviceKind::Disk => {
            let path = PathBuf::from(&target);
            let folder = &interpreter.session.engine.config.data_folder;
            Ok(Some(if path.is_absolute() { path } else { folder.join("backup").join(path) }))
        }
        BackupDeviceKind::Url => Err(unsupported_option("TO URL").into()),
        BackupDeviceKind::Tape => Err(unsupported_option("TO TAPE").into()),
        BackupDeviceKind::Logical => Err(message(3206, &[&target]).into()),
    }
}

fn open_medium(interpreter: &Interpreter<'_, '_>, path: Option<&Path>, afresh: bool) -> Result<BackupMedium, SqlError> {
    let Some(path) = path else { return Ok(BackupMedium::null()) };
    let env = &interpreter.session.engine.config.env;
    if path.starts_with(interpreter.session.engine.config.data_folder.join("backup"))
        && let Some(folder) = path.parent()
    {
        // The default folder is ours to make; any other must be there.
        env.device.create_folder(folder).map_err(|error| medium_error(path, error.into()))?;
    }
    BackupMedium::open(env, path, afresh).map_err(|error| medium_error(path, error))
}

fn medium_error(path: &Path, error: StorageError) -> SqlError {
    match error {
        StorageError::Io(error) => message(3201, &[&path.display(), &operating_system_error(error.os_error)]),
        _ => message(3241, &[&path.display()]),
    }
}

/// Counts what goes through it and tells per cents.
struct Told<'a, 'b, 's, 'o> {
    interpreter: &'a mut Interpreter<'s, 'o>,
    medium: &'b mut BackupMedium,
    done: u64,
    total: u64,
    step: Option<u64>,
    next: u64,
}

impl Told<'_, '_, '_, '_> {
    fn more(&mut self, bytes: usize) -> Result<(), StorageError> {
        self.interpreter.session.cancel.check().map_err(|_| StorageError::Cancelled)?;
        self.done += bytes as u64;
        let Some(step) = self.step else { return Ok(()) };
        while self.next < 100 && self.done * 100 >= self.next * self.total.max(1) {
            self.interpreter.out.message(&message(3211, &[&self.next]));
            self.next += step;
        }
        Ok(())
    }
}

impl BackupSink for Told<'_, '_, '_, '_> {
    fn pages(&mut self, first: PageId, bytes: &[u8]) -> Result<(), StorageError> {
        self.medium.pages(first, bytes)?;
        self.more(bytes.len())
    }

    fn log(&mut self, at: Lsn, bytes: &[u8]) -> Result<(), StorageError> {
        self.medium.log(at, bytes)?;
        self.more(bytes.len())
    }

    fn finish(&mut self, first: Lsn, last: Lsn) -> Result<(), StorageError> {
        self.medium.finish(first, last)?;
        if self.step.is_some() {
            self.interpreter.out.message(&message(3211, &[&100]));
        }
        Ok(())
    }
}

type FilesTold = Vec<(String, u64, u32)>;

fn failed(interpreter: &Interpreter<'_, '_>, open: &OpenDatabase, path: Option<&Path>, error: StorageError) -> Failure {
    match (error, path) {
        (StorageError::Io(error), Some(path)) if error.path == path => {
            message(3202, &[&path.display(), &operating_system_error(error.os_error)]).into()
        }
        (error, _) => Failure::run(interpreter.session.storage_failure(open.id, error)),
    }
}

fn log_name(open: &OpenDatabase) -> String {
    open.record().files.iter().find(|file| file.kind == FileKind::Log).map_or_else(String::new, |file| file.name.clone())
}

fn back_up_log(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    mut medium: BackupMedium,
    options: &Options,
    path: Option<&Path>,
) -> Result<FilesTold, Failure> {
    let store = open.storage.store().clone();
    let log = store.log().cloned().ok_or_else(|| message(4212, &[]))?;
    let number = medium.set_number();
    let total = log.policy().keeps_from().map_or(0, |from| log.bytes_since(from));
    let begun = medium.begin(BackupOf::Log, log.stamp(), &open.name());
    begun.map_err(|error| failed(interpreter, open, path, error))?;
    let now = interpreter.session.engine.now_datetime();
    let taken = {
        let step = options.stats;
        let mut told = Told { interpreter: &mut *interpreter, medium: &mut medium, done: 0, total, step, next: step.unwrap_or(100) };
        store.back_up_log(now, options.copy_only, &mut told)
    };
    let taken = taken.map_err(|error| failed(interpreter, open, path, error))?;
    Ok(vec![(log_name(open), taken.bytes.div_ceil(PAGE_BYTES), number)])
}

fn back_up_data(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    mut medium: BackupMedium,
    options: &Options,
    path: Option<&Path>,
) -> Result<FilesTold, Failure> {
    let store = open.storage.store().clone();
    let stamp = store.log().map_or(0, |log| log.stamp());
    let number = medium.set_number();
    let begun = medium.begin(BackupOf::Database, stamp, &open.name());
    begun.map_err(|error| failed(interpreter, open, path, error))?;
    let total = store.files().map(|file| u64::from(file.pages()) * PAGE_BYTES).sum();
    let taken = {
        let step = options.stats;
        let mut told = Told { interpreter: &mut *interpreter, medium: &mut medium, done: 0, total, step, next: step.unwrap_or(100) };
        store.back_up_data(&mut told)
    };
    let taken = taken.map_err(|error| failed(interpreter, open, path, error))?;
    let name_of = |number: u16| store.file(number).map_or_else(|_| String::new(), |file| file.spec().name.clone());
    let mut told: FilesTold = taken.pages.iter().map(|(file, pages)| (name_of(*file), *pages, number)).collect();
    told.push((log_name(open), taken.log_bytes.div_ceil(PAGE_BYTES), number));
    Ok(told)
}
