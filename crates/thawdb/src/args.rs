//! The command line.
//!
//! `-h` is not help under `sql`, where it is sqlcmd's "rows between headings"; `--help` is help everywhere.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A SQL Server-compatible relational database in one binary.
#[derive(Debug, Parser)]
#[command(name = "thawdb", version, about, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)] // each variant is the command of its name, its arguments documented in their own struct
pub enum Command {
    /// Serve a data folder to SQL Server clients (TDS)
    Serve(ServeArguments),
    /// Run T-SQL on a server, or on a data folder without one
    #[command(disable_help_flag = true)]
    Sql(SqlArguments),
    /// Load a table, query it, index it four ways, once through a log that is always full, kill it twice, and look whether
    /// all is there
    Demo(DemoArguments),
    /// Measure
    Bench(BenchArguments),
    /// Show a page of a data file of a closed database
    DumpPage(DumpPageArguments),
    /// Show the log file of a closed database
    DumpLog(DumpLogArguments),
    /// Run the whole engine on a simulated disk, from seeds: crashes, torn and lost writes, rot, full disks, I/O errors
    Simulate(SimulateArguments),
    /// Feed a decoder mutated input: page, record, block, row, key, tsql, or all of them; or damage a disk: mutate
    Fuzz(FuzzArguments),
    /// The child that the demo kills while it inserts
    #[command(hide = true)]
    DemoWriter(DemoWriterArguments),
    /// The child that `bench recovery` kills
    #[command(hide = true)]
    BenchRecoveryWriter(BenchRecoveryWriterArguments),
    /// The child that the demo kills while it builds an index
    #[command(hide = true)]
    DemoBuilder(DemoWriterArguments),
}

/// Which page.
#[derive(Debug, Clone, Args)]
pub struct DumpPageArguments {
    /// Data file
    pub file: PathBuf,
    /// Number of the page in it
    pub page: u32,
    /// Show the header only
    #[arg(long, conflicts_with = "bytes")]
    pub header: bool,
    /// Show all bytes too
    #[arg(long)]
    pub bytes: bool,
}

/// Which log.
#[derive(Debug, Clone, Args)]
pub struct DumpLogArguments {
    /// Log file
    pub file: PathBuf,
}

/// Where the data is, and with how much memory.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Folder of the databases; made if missing
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1433")]
    pub listen: SocketAddr,
    /// File whose first line is the password of sa; otherwise MSSQL_SA_PASSWORD is looked at
    #[arg(long, value_name = "FILE")]
    pub sa_password_file: Option<PathBuf>,
    /// Most memory to use
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Certificate chain for TLS, PEM; without it one is made at each start, which clients must be told to trust
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Refuse clients that do not encrypt
    #[arg(long)]
    pub require_encryption: bool,
    /// What @@SERVERNAME says; the machine's name unless given
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// Most statements at once
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: u16,
}

/// Which runs.
#[derive(Debug, Clone, Args)]
pub struct SimulateArguments {
    /// First seed; the same seed is the same run, byte for byte
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// How many seeds, one after another
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub runs: u64,
    /// Print every step as it is done
    #[arg(long)]
    pub trace: bool,
    /// Go on after a violation, to see all of them
    #[arg(long)]
    pub keep_going: bool,
    /// Run only the seeds whose logs are small and do not grow; the others are passed over and not counted
    #[arg(long)]
    pub small_logs: bool,
}

/// What is fuzzed, and for how long.
#[derive(Debug, Clone, Args)]
pub struct FuzzArguments {
    /// Target
    #[arg(default_value = "all")]
    pub target: String,
    /// For so long, divided among the targets
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub seconds: u64,
    /// First seed
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// So many seeds of each target rather than for a time
    #[arg(long, value_name = "COUNT")]
    pub inputs: Option<u64>,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Encrypt {
    /// Everything
    #[value(alias = "m", alias = "s", alias = "true")]
    Yes,
    /// The login only
    #[value(alias = "o", alias = "optional")]
    Login,
    /// Nothing
    #[value(alias = "disable", alias = "false")]
    No,
}

/// sqlcmd's options, as far as they have a meaning here.
#[derive(Debug, Clone, Args)]
pub struct SqlArguments {
    /// Server: host, host,port or host:port
    #[arg(short = 'S', long, value_name = "HOST,PORT", conflicts_with = "data", required_unless_present = "data")]
    pub server: Option<String>,
    /// Data folder, run on without a server
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Login name
    #[arg(short = 'U', long, value_name = "NAME", default_value = "sa")]
    pub user: String,
    /// Password; better in the variable SQLCMDPASSWORD, where other users do not see it
    #[arg(short = 'P', long)]
    pub password: Option<String>,
    /// Database to begin in
    #[arg(short = 'd', long, value_name = "NAME")]
    pub database: Option<String>,
    /// Runs this and leaves
    #[arg(short = 'Q', long, value_name = "TEXT", conflicts_with = "input")]
    pub query: Option<String>,
    /// Runs these files and leaves
    #[arg(short = 'i', long, value_name = "FILE", action = ArgAction::Append)]
    pub input: Vec<PathBuf>,
    /// Writes results there instead of to standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows between headings: 0 for one heading, -1 for none
    #[arg(short = 'h', long, value_name = "COUNT", default_value_t = 0, allow_hyphen_values = true)]
    pub headings: i64,
    /// Between columns
    #[arg(short = 's', long, value_name = "TEXT", default_value = " ")]
    pub separator: String,
    /// Without padding
    #[arg(short = 'W', long)]
    pub trim: bool,
    /// Ends with exit code 1 at the first error
    #[arg(short = 'b', long)]
    pub stop_on_error: bool,
    /// Encryption of the connection
    #[arg(short = 'N', long, value_name = "HOW", default_value = "yes")]
    pub encrypt: Encrypt,
    /// Takes any certificate of the server; always so as yet, the option is there for scripts written for sqlcmd
    #[arg(short = 'C', long)]
    pub trust_server_certificate: bool,
    /// Seconds that connecting and logging in may take
    #[arg(short = 'l', long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=65_534))]
    pub login_timeout: u64,
    /// Most memory to use with --data
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Shows this
    #[arg(long, action = ArgAction::Help)]
    pub help: Option<bool>,
}

/// The demo's options.
#[derive(Debug, Clone, Args)]
pub struct DemoArguments {
    /// Rows of Votes; all of them are 52928720
    #[arg(long, default_value_t = crate::cmd::demo::ROWS_DEFAULT, value_parser = clap::value_parser!(u64).range(1000..=4_000_000_000))]
    pub rows: u64,
    /// Folder for the data; a temporary one unless given
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Leaves the data where it is
    #[arg(long)]
    pub keep: bool,
    /// Picture of the builds' speed over time
    #[arg(long, value_name = "FILE", default_value = "thawdb-demo.svg")]
    pub svg: PathBuf,
    /// Most memory to use
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = parse_bytes)]
    pub memory: u64,
}

/// What `bench recovery` tells its child.
#[derive(Debug, Clone, Args)]
pub struct BenchRecoveryWriterArguments {
    /// Folder of the databases
    #[arg(long)]
    pub data: PathBuf,
    /// Rows of Votes
    #[arg(long)]
    pub rows: u64,
    /// Most memory to use
    #[arg(long, value_parser = parse_bytes)]
    pub memory: u64,
    /// Log that redo is to find at the least
    #[arg(long, value_parser = parse_bytes)]
    pub log: Option<u64>,
}

/// What the demo tells its children.
#[derive(Debug, Clone, Args)]
pub struct DemoWriterArguments {
    /// Folder of the databases
    #[arg(long)]
    pub data: PathBuf,
    /// Database to write to
    #[arg(long)]
    pub database: String,
    /// Most memory to use
    #[arg(long, value_parser = parse_bytes)]
    pub memory: u64,
}

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// Point look-ups and small transactions, in process and over the wire
    Oltp,
    /// Votes through BULK INSERT of a CSV file, and the index on PostId
    Load,
    /// Whole-table queries
    Scan,
    /// Building indexes
    Index,
    /// Four analytic queries, warm and cold; beside PostgreSQL if asked
    Analytic,
    /// The first answers after kill -9 with every row changed by an open transaction, and its rollback beside others
    Recovery,
    /// Loops, procedures of point statements, point queries as text; beside PL/pgSQL if asked
    Language,
    /// The 22 queries of TPC-H, with one thread and with two; beside PostgreSQL if asked
    Tpch,
}

/// The benchmarks' options.
#[derive(Debug, Clone, Args)]
pub struct BenchArguments {
    /// What to measure; everything unless given
    #[arg(value_enum)]
    pub what: Option<Bench>,
    /// Rows of Votes
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=4_000_000_000))]
    pub rows: u64,
    /// Folder for the data; a temporary one unless given
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Leaves the data where it is
    #[arg(long)]
    pub keep: bool,
    /// Most memory to use
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Seconds each measurement of `oltp` runs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// `load`, `index`, `analytic`, `oltp`, `language`, `tpch`: the same rows on a PostgreSQL of its own, and the ratio
    #[arg(long)]
    pub postgres: bool,
    /// `oltp`: the same rows in SQLite, and the ratio; needs a C compiler and SQLite's headers
    #[arg(long)]
    pub sqlite: bool,
    /// `oltp`: hundreds of thousands of accounts
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: u32,
    /// `oltp`: rounds of each measurement, ours and the rival's in turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// `tpch`: scale factor; 1 is a gigabyte
    #[arg(long, default_value_t = 1.0)]
    pub factor: f64,
    /// `oltp`: only this kind of work: select, insert, update or tpcb; `tpch`: only these queries: q01,q17
    #[arg(long)]
    pub kind: Option<String>,
    /// `recovery`: log to be redone at the least; what the open transaction has logged unless given
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub log: Option<u64>,
}

/// `2GB`, `512MB`, `64KB`, `1048576`: powers of 1,024, as SQL Server counts.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        unit => return Err(format!("'{unit}' is no unit of size; write for example 512MB or 2GB")),
    };
    let number: u64 = digits.parse().map_err(|_| "write a number and a unit, for example 512MB or 2GB".to_owned())?;
    number.checked_mul(factor).filter(|bytes| *bytes >= 1 << 16).ok_or_else(|| "that size cannot be used".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sqlcmds_spellings_are_understood() {
        let line =
            ["thawdb", "sql", "-S", "h,1434", "-U", "sa", "-P", "x", "-h", "-1", "-s", "|", "-W", "-b", "-C", "-No", "-Q", "SELECT 1"];
        let Command::Sql(sql) = Arguments::parse_from(line).command else { panic!("sql was asked for") };
        assert_eq!((sql.headings, sql.separator.as_str(), sql.trim, sql.stop_on_error), (-1, "|", true, true));
        assert_eq!(sql.encrypt, Encrypt::Login);
        assert!(Arguments::try_parse_from(["thawdb", "sql", "-Q", "SELECT 1"]).is_err());
        assert!(Arguments::try_parse_from(["thawdb", "sql", "-S", "h", "--data", "d"]).is_err());
        assert!(Arguments::try_parse_from(["thawdb", "serve", "--data", "d", "--cert", "c"]).is_err());
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("2GB", Some(2 << 30)), ("512mb", Some(512 << 20)), ("65536", Some(65_536)), ("1", None), ("x", None), ("2QB", None)]
        {
            assert_eq!(parse_bytes(text).ok(), bytes, "{text}");
        }
    }
}
