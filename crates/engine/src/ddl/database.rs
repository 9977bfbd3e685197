//! CREATE DATABASE and DROP DATABASE: files exactly where the statement says, or under the data folder.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::lifecycle::{FILE_BYTES, file_spec};
use crate::messages::{message, unsupported, unsupported_option};
use crate::session::state::SessionState;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thawdb_catalog::{DatabaseId, DatabaseRecord, DatabaseState, Properties};
use thawdb_storage::locks::{LockMode, LockWait};
use thawdb_storage::{FileKind, FileSpec, GROWTH_PERCENT};
use thawdb_tsql::ast::{CreateDatabase, FileSize, FileSpec as FileSyntax, ObjectName};
use thawdb_types::{Collation, SqlError};

/// Least size of a file (5174).
const FILE_BYTES_MIN: u64 = 512 << 10;
/// Growth is in whole extents.
const GROWTH_BYTES_UNIT: u64 = 64 << 10;
/// Numbers of the databases that every instance has end here.
const LAST_SYSTEM_DATABASE: i32 = 4;

/// CREATE DATABASE.
pub(crate) fn create_database(interpreter: &mut Interpreter<'_, '_>, node: &CreateDatabase) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    if session.transactions.count > 0 {
        return Err(message(226, &[&"CREATE DATABASE"]).into());
    }
    refuse_unbuilt(node)?;
    let id = session.engine.claim_database_number(&node.name.text)?;
    let record = describe(session, node, id)?;
    session.engine.add_database(record).map_err(|error| {
        // SQL Server says what failed and then that the statement did.
        session.infos.push(error.clone());
        if matches!(error.number, 5170 | 5123) { message(1802, &[]).with_state(4) } else { error }
    })?;
    Ok(())
}

fn refuse_unbuilt(node: &CreateDatabase) -> Result<(), SqlError> {
    if node.attach.is_some() {
        return Err(unsupported("CREATE DATABASE FOR ATTACH"));
    }
    if node.snapshot_of.is_some() {
        return Err(unsupported("CREATE DATABASE AS SNAPSHOT"));
    }
    if let Some(collation) = &node.collation
        && Collation::by_name(&collation.text) != Some(Collation::DEFAULT)
    {
        return Err(match Collation::by_name(&collation.text) {
            None => message(448, &[&collation.text]),
            Some(_) => unsupported_option(format!("COLLATE {}", collation.text)),
        });
    }
    if node.containment.as_deref().is_some_and(|c| c != "NONE") {
        return Err(unsupported_option("CONTAINMENT"));
    }
    match node.options.first() {
        Some(option) => Err(unsupported_option(&option.name)),
        None => Ok(()),
    }
}

fn describe(session: &SessionState, node: &CreateDatabase, id: DatabaseId) -> Result<DatabaseRecord, SqlError> {
    let name = &node.name.text;
    let folder = &session.engine.config.data_folder;
    let mut files = Vec::new();
    for file in &node.primary {
        files.push(file_of(file, FileKind::Rows { filegroup: 1 }, folder)?);
    }
    if files.is_empty() {
        files.push(file_spec(name, folder.join(format!("{name}.mdf")), FileKind::Rows { filegroup: 1 }));
    }
    let mut filegroups = vec![(1, "PRIMARY".to_owned())];
    let mut default = 1;
    for (at, group) in node.filegroups.iter().enumerate() {
        if group.contains.is_some() {
            return Err(unsupported_option(format!("CONTAINS {}", group.contains.as_deref().unwrap_or(""))));
        }
        let number = u16::try_from(at + 2).map_err(|_| message(1828, &[&group.name.text]))?;
        if filegroups.iter().any(|(_, name): &(u16, String)| name.eq_ignore_ascii_case(&group.name.text)) {
            return Err(message(5035, &[&group.name.text]));
        }
        filegroups.push((number, group.name.text.clone()));
        if group.default {
            default = number;
        }
        for file in &group.files {
            files.push(file_of(file, FileKind::Rows { filegroup: number }, folder)?);
        }
    }
    if let Some(second) = node.log.get(1) {
        return Err(unsupported_option("several log files").at_line(second.span.line));
    }
    for file in &node.log {
        files.push(file_of(file, FileKind::Log, folder)?);
    }
    if node.log.is_empty() {
        let beside = files[0].path.parent().filter(|_| !node.primary.is_empty()).unwrap_or(folder).to_owned();
        files.push(file_spec(&format!("{name}_log"), beside.join(format!("{name}_log.ldf")), FileKind::Log));
    }
    check_names(&files)?;
    let mut record = DatabaseRecord {
        id,
        name: name.clone(),
        state: DatabaseState::Creating,
        files,
        filegroups,
        created: session.engine.now_datetime(),
        properties: Properties::from([("RECOVERY".to_owned(), models_recovery(session))]),
        owner_sid: session.server_token().sid.clone(),
    };
    if default != 1 {
        crate::ddl::filegroups::set_default(&mut record, default);
    }
    Ok(record)
}

/// The recovery model of model: what a new database begins with.
fn models_recovery(session: &SessionState) -> String {
    let model = session.engine.database_named("model").map(|open| open.record());
    model.and_then(|record| record.properties.get("RECOVERY").cloned()).unwrap_or_else(|| "FULL".to_owned())
}

/// One file as its clause says.
pub(crate) fn file_of(syntax: &FileSyntax, kind: FileKind, folder: &Path) -> Result<FileSpec, SqlError> {
    let line = syntax.span.line;
    let name = syntax.name.as_ref().map(|name| name.text.clone()).ok_or_else(|| message(1828, &[&""]).at_line(line))?;
    let extension = if kind == FileKind::Log { "ldf" } else { "mdf" };
    let path = syntax.file_name.as_ref().map_or_else(|| folder.join(format!("{name}.{extension}")), PathBuf::from);
    let bytes = |size: Option<FileSize>, default: u64| match size {
        None => Ok(default),
        Some(FileSize::Bytes(bytes)) => Ok(bytes),
        Some(FileSize::Percent(_) | FileSize::Unlimited) => Err(unsupported_option("SIZE").at_line(line)),
    };
    let size_bytes = bytes(syntax.size, FILE_BYTES.0)?;
    if size_bytes < FILE_BYTES_MIN {
        return Err(message(5174, &[]).at_line(line));
    }
    let size_bytes_max = match syntax.max_size {
        None | Some(FileSize::Unlimited) => None,
        Some(FileSize::Bytes(most)) => Some(most),
        Some(FileSize::Percent(_)) => return Err(unsupported_option("MAXSIZE").at_line(line)),
    };
    if size_bytes_max.is_some_and(|most| most < size_bytes) {
        return Err(message(5061, &[]).at_line(line));
    }
    let growth_bytes = syntax.file_growth.map_or(Ok(FILE_BYTES.1), |growth| growth_of(growth).map_err(|error| error.at_line(line)))?;
    let in_bytes = growth_bytes & GROWTH_PERCENT == 0;
    if size_bytes_max.is_some_and(|most| in_bytes && growth_bytes > most && syntax.file_growth.is_some()) {
        return Err(message(5169, &[&name]).at_line(line));
    }
    Ok(FileSpec { name, path, kind, size_bytes, size_bytes_max, growth_bytes })
}

/// A growth step as storage keeps it: whole extents, or per cent.
pub(crate) fn growth_of(growth: FileSize) -> Result<u64, SqlError> {
    match growth {
        FileSize::Bytes(bytes) => Ok(bytes.next_multiple_of(GROWTH_BYTES_UNIT)),
        FileSize::Percent(0) => Ok(0),
        FileSize::Percent(percent) => Ok(GROWTH_PERCENT | u64::from(percent)),
        FileSize::Unlimited => Err(unsupported_option("FILEGROWTH")),
    }
}

pub(crate) fn check_names(files: &[FileSpec]) -> Result<(), SqlError> {
    for (at, file) in files.iter().enumerate() {
        if files[..at].iter().any(|earlier| earlier.name.eq_ignore_ascii_case(&file.name)) {
            return Err(message(1828, &[&file.name]));
        }
        if files[..at].iter().any(|earlier| earlier.path == file.path) {
            return Err(message(5170, &[&file.path.display()]));
        }
    }
    Ok(())
}

/// DROP DATABASE: 3701 if there is none, 3702 if it is in use, 3708 for one of the system's.
pub(crate) fn drop_database(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, if_exists: bool) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    if session.transactions.count > 0 {
        return Err(message(574, &[&"DROP DATABASE"]).into());
    }
    let name = &name.name.text;
    let Some(open) = session.engine.database_named(name) else {
        if session.engine.remove_unopened(name)? {
            return Ok(());
        }
        return if if_exists { Ok(()) } else { Err(message(3701, &[&"drop", &"database", name]).with_state(1).into()) };
    };
    if open.id.0 <= LAST_SYSTEM_DATABASE {
        return Err(message(3708, &[&"drop", &"database", name, &"database"]).into());
    }
    let wait = LockWait { timeout: Some(Duration::ZERO), ..LockWait::default() };
    let engine = session.engine.clone();
    let mut owner = engine.locks.owner();
    let id = open.id;
    let outcome = match engine.locks.acquire(&mut owner, open.database_resource(), LockMode::X, wait) {
        Ok(()) => {
            drop(open);
            engine.remove_database(id)
        }
        Err(_) => Err(message(3702, &[name])),
    };
    engine.locks.release_all(&mut owner);
    outcome.map_err(Failure::run)
}
