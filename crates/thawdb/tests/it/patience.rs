//! Running a command to its end, but not for ever: one that hangs is told apart from one that fails, with all that can be seen
//! of it, because it may hang on one machine in a thousand runs.

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
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
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (stdout, stderr) = (hear(child.stdout.take()), hear(child.stderr.take()));
    let until = Instant::now() + PATIENCE;
    loop {
        let ended = child.try_wait().expect("it is our child");
        if let Some(status) = ended.filter(|_| stdout.is_finished() && stderr.is_finished()) {
            return Output { status, stdout: stdout.join().expect("heard"), stderr: stderr.join().expect("heard") };
        }
        if Instant::now() > until {
            let seen = seen_of(&child);
            kill_all(&child);
            let said = [stdout, stderr].map(|pipe| String::from_utf8_lossy(&pipe.join().expect("heard")).into_owned());
            panic!("{command:?} has not ended ({ended:?})\n{}\n{}\n{seen}", said[0], said[1]);
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

fn hear(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("it is a pipe");
    thread::spawn(move || {
        let mut heard = Vec::new();
        pipe.read_to_end(&mut heard).expect("a pipe can be read");
        heard
    })
}

/// The process and those it started that still are.
fn family(child: &Child) -> Vec<String> {
    let mut family = vec![child.id().to_string()];
    let mut at = 0;
    while at < family.len() {
        let found = Command::new("pgrep").args(["-P", &family[at]]).output();
        let found = found.map_or_else(|_| String::new(), |found| String::from_utf8_lossy(&found.stdout).into_owned());
        family.extend(found.split_whitespace().map(str::to_owned));
        at += 1;
    }
    family
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
        let stacks = Command::new("gdb").args(["-p", &process, "-batch", "-ex", "thread apply all backtrace 24"]).output();
        seen.push_str(&stacks.map_or_else(|_| "no gdb".into(), |stacks| String::from_utf8_lossy(&stacks.stdout).into_owned()));
    }
    seen
}

fn kill_all(child: &Child) {
    // Whoever has ended meanwhile is not there to be killed.
    let _ = Command::new("kill").arg("-KILL").args(family(child)).status();
}

#[test]
fn what_a_command_says_and_how_it_ends() {
    let ended = output(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]));
    assert_eq!((ended.status.code(), ended.stdout.as_slice(), ended.stderr.as_slice()), (Some(3), &b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn what_can_be_seen_of_one_that_hangs() {
    let mut child = Command::new("sh").args(["-c", "sleep 600 & wait"]).spawn().expect("it starts");
    let seen = loop {
        let seen = seen_of(&child);
        if seen.contains("(sleep)") {
            break seen;
        }
    };
    kill_all(&child);
    assert!(seen.contains("(sh)"), "{seen}");
    assert!(!child.wait().expect("it is our child").success());
}
