//! Running a command to its end, but not for ever: one that hangs is told apart from one that fails, with all that can be seen
//! of it, because it may hang on one machine in a thousand runs.
//!
//! A command has a process group of its own, so that a child it left behind, which may hold its output open, is found too.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// More than the slowest machine needs for any command of these tests.
const PATIENCE: Duration = Duration::from_secs(400);
/// Between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// What the command says and how it ends.
///
/// # Panics
/// If it takes longer than [`PATIENCE`]: with what it said so far and the stacks of its threads and its children's.
pub fn output(command: &mut Command) -> Output {
    within(command, PATIENCE).unwrap_or_else(|seen| panic!("{command:?} has not ended\n{seen}"))
}

fn within(command: &mut Command, patience: Duration) -> Result<Output, String> {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let (stdout, stderr) = (Heard::of(child.stdout.take()), Heard::of(child.stderr.take()));
    let until = Instant::now() + patience;
    loop {
        let ended = child.try_wait().expect("it is our child");
        if let Some(status) = ended.filter(|_| stdout.is_all() && stderr.is_all()) {
            return Ok(Output { status, stdout: stdout.bytes(), stderr: stderr.bytes() });
        }
        if Instant::now() > until {
            let seen = seen_of(&child);
            kill_all(&child);
            let said = [stdout, stderr].map(|heard| String::from_utf8_lossy(&heard.bytes()).into_owned());
            return Err(format!("{ended:?}\n{}\n{}\n{seen}", said[0], said[1]));
        }
        thread::sleep(PAUSE);
    }
}

/// How a child ends.
///
/// # Panics
/// If that takes longer than [`PATIENCE`], with the stacks of its threads and its children's.
pub fn end(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return status;
        }
        if Instant::now() > until {
            let seen = seen_of(child);
            kill_all(child);
            panic!("process {} has not ended\n{seen}", child.id());
        }
        thread::sleep(PAUSE);
    }
}

/// What a pipe has given so far.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    hearer: JoinHandle<()>,
}

impl Heard {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let mut pipe = pipe.expect("it is a pipe");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let theirs = bytes.clone();
        let hearer = thread::spawn(move || {
            let mut some = [0; 4096];
            loop {
                let count = pipe.read(&mut some).expect("a pipe can be read");
                if count == 0 {
                    return;
                }
                theirs.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&some[..count]);
            }
        });
        Self { bytes, hearer }
    }

    fn is_all(&self) -> bool {
        self.hearer.is_finished()
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The process, if it still is, and those of its group.
fn family(child: &Child) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    numbers.filter(|process| *process == child.id() || group_of(*process) == Some(child.id())).collect()
}

/// Behind the name, which may hold anything: state, parent, group.
fn group_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// Names, states and stacks of its threads; the stacks only where gdb is there.
fn seen_of(child: &Child) -> String {
    let mut seen = String::new();
    for process in family(child) {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let of = |what: &str| std::fs::read_to_string(thread.path().join(what)).unwrap_or_default().trim().to_owned();
            writeln!(seen, "{process} {:?}: {} | waits in {}", thread.file_name(), of("stat"), of("wchan")).expect("a String takes it");
        }
        let stacks = Command::new("gdb").args(["-p", &process.to_string(), "-batch", "-ex", "thread apply all backtrace 24"]).output();
        seen.push_str(&stacks.map_or_else(|_| "no gdb".into(), |stacks| String::from_utf8_lossy(&stacks.stdout).into_owned()));
    }
    seen
}

fn kill_all(child: &Child) {
    let family: Vec<String> = family(child).iter().map(u32::to_string).collect();
    // The shell has the command, where no program may. Whoever has ended meanwhile is not there to be killed.
    let _ = Command::new("sh").args(["-c", &format!("kill -KILL {}", family.join(" "))]).stderr(Stdio::null()).status();
}

#[test]
fn what_a_command_says_and_how_it_ends() {
    let ended = output(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]));
    assert_eq!((ended.status.code(), ended.stdout.as_slice(), ended.stderr.as_slice()), (Some(3), &b"out\n"[..], &b"err\n"[..]));
}

/// Alone, and gone before a child of its own that holds its output open.
#[test]
fn what_can_be_seen_of_one_that_hangs() {
    for script in ["echo begun; sleep 600 & wait", "echo begun; sleep 600 &"] {
        let seen = within(Command::new("sh").args(["-c", script]), Duration::from_millis(300)).expect_err("it sleeps");
        assert!(seen.contains("begun") && seen.contains("(sleep)"), "{script}: {seen}");
    }
}
