//! `thawdb sql`: the shell, on a server or on a data folder.

use crate::args::{Encrypt, SqlArguments};
use crate::cmd::Failure;
use crate::embed::{self, Instance, Options};
use crate::shell::table::TableSettings;
use crate::shell::target::{Embedded, Remote, Target};
use crate::shell::{Ending, Settings, Shell};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;
use thawdb_tds::client::{Client, ConnectOptions};
use thawdb_tds::prelogin::Encryption;

/// The variable a password is looked for in, sqlcmd's own.
const PASSWORD_VARIABLE: &str = "SQLCMDPASSWORD";
/// Port unless one is named.
const PORT_DEFAULT: u16 = 1433;

/// Runs the command.
pub fn run(arguments: &SqlArguments) -> Result<ExitCode, Failure> {
    match &arguments.data {
        Some(folder) => {
            let instance = embed::open(folder, Options { memory_bytes_max: arguments.memory, ..Options::default() })?;
            let outcome = embedded(&instance, arguments).and_then(|target| converse(target, arguments));
            let closed = instance.close();
            let code = outcome?;
            closed?;
            Ok(code)
        }
        None => converse(remote(arguments)?, arguments),
    }
}

fn embedded(instance: &Instance, arguments: &SqlArguments) -> Result<Box<dyn Target>, Failure> {
    let mut target = Embedded::new(instance);
    if let Some(database) = &arguments.database {
        target.use_database(database)?;
    }
    Ok(Box::new(target))
}

fn remote(arguments: &SqlArguments) -> Result<Box<dyn Target>, Failure> {
    let server = arguments.server.as_deref().expect("the command line has a server or a folder");
    let (host, port) = host_and_port(server)?;
    let password = match &arguments.password {
        Some(password) => password.clone(),
        None => std::env::var(PASSWORD_VARIABLE).map_err(|_| Failure(format!("give a password with -P or in {PASSWORD_VARIABLE}")))?,
    };
    let encryption = match arguments.encrypt {
        Encrypt::Yes => Encryption::On,
        Encrypt::Login => Encryption::Off,
        Encrypt::No => Encryption::NotSupported,
    };
    let options = ConnectOptions {
        host,
        port,
        user: arguments.user.clone(),
        password,
        database: arguments.database.clone().unwrap_or_default(),
        application: "thawdb sql".into(),
        encryption,
        login_timeout: Duration::from_secs(arguments.login_timeout),
        ..ConnectOptions::default()
    };
    let client = Client::connect(&options).map_err(|e| Failure::of(format_args!("cannot connect to {server}"), e))?;
    Ok(Box::new(Remote::new(client, server.to_owned())))
}

/// `host`, `host,port`, `host:port`, `tcp:host,port`, `[::1]:port`.
fn host_and_port(server: &str) -> Result<(String, u16), Failure> {
    let server = server.strip_prefix("tcp:").unwrap_or(server);
    let port_of = |text: &str| text.trim().parse().map_err(|_| Failure(format!("'{text}' is not a port")));
    let bare = |host: &str| match host.trim().trim_start_matches('[').trim_end_matches(']') {
        "" | "." | "(local)" => "127.0.0.1".to_owned(),
        host => host.to_owned(),
    };
    if let Some((host, port)) = server.split_once(',') {
        return Ok((bare(host), port_of(port)?));
    }
    match server.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => Ok((bare(host), port_of(port)?)),
        _ => Ok((bare(server), PORT_DEFAULT)),
    }
}

fn converse(target: Box<dyn Target>, arguments: &SqlArguments) -> Result<ExitCode, Failure> {
    let typed = arguments.query.is_none() && arguments.input.is_empty();
    let settings = Settings {
        table: TableSettings { separator: arguments.separator.clone(), trim: arguments.trim, rows_per_heading: arguments.headings },
        stop_on_error: arguments.stop_on_error,
        prompts: typed && io::stdin().is_terminal(),
    };
    let output: Box<dyn Write> = match &arguments.output {
        Some(path) => Box::new(BufWriter::new(File::create(path).map_err(|e| Failure::of(path.display(), e))?)),
        None => Box::new(BufWriter::new(io::stdout())),
    };
    let mut shell = Shell::new(target, settings, output, Box::new(io::stderr()));
    let ending = if let Some(query) = &arguments.query {
        shell.run_script(query)
    } else if typed {
        shell.run_interactive(&mut io::stdin().lock())
    } else {
        run_files(&mut shell, arguments)?
    };
    match ending {
        Ok(Ending::Failed) => Ok(ExitCode::FAILURE),
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure(error.to_string())),
    }
}

type Outcome = Result<Ending, crate::shell::target::TargetError>;

fn run_files(shell: &mut Shell<'_>, arguments: &SqlArguments) -> Result<Outcome, Failure> {
    for path in &arguments.input {
        let bytes = std::fs::read(path).map_err(|e| Failure::of(path.display(), e))?;
        match shell.run_script(&script_text(&bytes)) {
            Ok(Ending::Done) => {}
            other => return Ok(other),
        }
    }
    Ok(Ok(Ending::Done))
}

/// A file as text: UTF-16 where it says so by its first two bytes, as scripts saved on Windows do; else UTF-8.
fn script_text(bytes: &[u8]) -> String {
    let wide = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xFF, 0xFE, ..] => wide(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => wide(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]).unwrap_or(bytes)).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_in_many_ways() {
        for (text, host, port) in [
            ("h", "h", 1433),
            ("h,1434", "h", 1434),
            ("h:1434", "h", 1434),
            ("tcp:127.0.0.1, 9", "127.0.0.1", 9),
            (".", "127.0.0.1", 1433),
            ("[::1]:99", "::1", 99),
            ("::1", "::1", 1433),
        ] {
            assert_eq!(host_and_port(text).unwrap(), (host.to_owned(), port), "{text}");
        }
        assert!(host_and_port("h,x").is_err());
    }

    #[test]
    fn scripts_come_in_utf_8_and_utf_16() {
        assert_eq!(script_text("é".as_bytes()), "é");
        assert_eq!(script_text(b"\xEF\xBB\xBFa"), "a");
        assert_eq!(script_text(&[0xFF, 0xFE, 0xE9, 0]), "é");
        assert_eq!(script_text(&[0xFE, 0xFF, 0, 0xE9]), "é");
    }
}
