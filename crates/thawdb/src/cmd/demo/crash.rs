//! The demo's crash: a child that writes is killed with SIGKILL, and what it had been told is durable is looked for.

use crate::args::DemoArguments;
use crate::cmd::Failure;
use crate::cmd::demo::DATABASE;
use crate::cmd::demo::writer::{ROWS_PER_TRANSACTION, payload};
use crate::embed::Session;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The child is killed once it has this many rows acknowledged.
const ROWS_BEFORE_KILL: u64 = 5_000;

/// Makes the table the child writes to, and lets the small log free itself, since nobody backs it up from now on.
pub(crate) fn prepare(session: &mut Session) -> Result<(), Failure> {
    session.execute(&format!("ALTER DATABASE [{DATABASE}] SET RECOVERY SIMPLE"))?;
    let table = "CREATE TABLE dbo.Acknowledged (Id int NOT NULL PRIMARY KEY, Batch int NOT NULL, Payload nvarchar(100) NOT NULL)";
    session.execute(table)?;
    session.execute("CREATE INDEX IX_Acknowledged_Batch ON dbo.Acknowledged (Batch)")?;
    Ok(())
}

/// Starts the child, kills it in the middle, and tells the last Id it had acknowledged.
pub(crate) fn write_and_kill(arguments: &DemoArguments, folder: &Path) -> Result<u64, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("demo-writer")
        .arg("--data")
        .arg(folder)
        .args(["--database", DATABASE, "--memory", &arguments.memory.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let acknowledged = read_until_killed(&mut child);
    // Whatever happened while reading, the child does not outlive us.
    let _ = child.kill();
    let status = child.wait()?;
    let acknowledged = acknowledged?;
    if status.success() || acknowledged < ROWS_BEFORE_KILL {
        return Err(Failure(format!("the writer ended by itself ({status}) after {acknowledged} rows")));
    }
    Ok(acknowledged)
}

fn read_until_killed(child: &mut Child) -> Result<u64, Failure> {
    let output = child.stdout.take().expect("standard output is a pipe");
    let mut acknowledged = 0;
    let mut killed = false;
    for line in BufReader::new(output).lines() {
        // A line cut by the kill is no acknowledgement that anyone received.
        let Ok(id) = line?.parse() else { break };
        // A cut number is a prefix, so smaller than the one before it.
        acknowledged = acknowledged.max(id);
        if acknowledged >= ROWS_BEFORE_KILL && !killed {
            child.kill()?;
            killed = true;
        }
    }
    Ok(acknowledged)
}

/// Looks for every acknowledged row, its text, and half transactions; tells how many rows there are.
pub(crate) fn verify(session: &mut Session, acknowledged: u64) -> Result<u64, Failure> {
    let results = session.execute("SELECT Id, Batch, Payload FROM dbo.Acknowledged ORDER BY Id")?;
    let set = results.sets.first().ok_or_else(|| Failure("the rows cannot be read".into()))?;
    let mut found = 0;
    for row in set.rows() {
        found += 1;
        let id = row[0].as_i64().and_then(|id| u64::try_from(id).ok());
        if id != Some(found) || row[2].as_text() != Some(&payload(found)) {
            return Err(Failure(format!("row {found} is missing or wrong after the crash: {row:?}")));
        }
    }
    if found < acknowledged {
        return Err(Failure(format!("{acknowledged} rows were acknowledged and {found} are there after the crash")));
    }
    if found % ROWS_PER_TRANSACTION != 0 {
        return Err(Failure(format!("half a transaction is there after the crash: {found} rows")));
    }
    Ok(found)
}
