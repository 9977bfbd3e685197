//! Figures: what was measured, as a table for people and as tab-separated lines for programs.
//!
//! ```text
//! FIGURE <tab> area <tab> name <tab> value <tab> unit <tab> notes
//! ```
//!
//! Also the stopwatch, progress, and what the system says of this process's memory: the only places of the commands
//! that look at a clock.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// Measures a stretch of time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Seconds since.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    area: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    notes: String,
}

/// All figures of a run.
#[derive(Debug, Default)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// Adds one.
    pub fn add(&mut self, area: &'static str, name: impl Into<String>, value: f64, unit: &'static str) {
        self.note(area, name, value, unit, "");
    }

    /// Adds one with a remark.
    pub fn note(&mut self, area: &'static str, name: impl Into<String>, value: f64, unit: &'static str, notes: impl Into<String>) {
        self.0.push(Figure { area, name: name.into(), value, unit, notes: notes.into() });
    }

    /// Adds a duration, and how many rows a second that was.
    pub fn rate(&mut self, area: &'static str, name: &str, rows: u64, seconds: f64) {
        self.add(area, name, seconds, "s");
        self.add(area, format!("{name}, rate"), rows as f64 / seconds.max(1e-9), "rows/s");
    }

    /// Adds all of another run.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The table.
    pub fn table(&self) -> String {
        let wide = |f: &Figure| f.area.len() + 2 + f.name.chars().count();
        let width = self.0.iter().map(wide).max().unwrap_or(0);
        let line = |f: &Figure| {
            let name = format!("{}: {}", f.area, f.name);
            format!("{name:<width$}  {:>16} {:<7} {}", grouped(f.value), f.unit, f.notes).trim_end().to_owned()
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The tab-separated lines.
    pub fn lines(&self) -> String {
        let line = |f: &Figure| format!("FIGURE\t{}\t{}\t{}\t{}\t{}", f.area, f.name, plain(f.value), f.unit, f.notes);
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 1000.0 || v.fract() == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 3,
        _ => 6,
    }
}

fn plain(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// With a comma at the thousands.
pub fn grouped(value: f64) -> String {
    let text = plain(value);
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Largest resident memory this process has had, in bytes; 0 where the system does not tell.
pub fn peak_memory_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// Sets [`peak_memory_bytes`] back to what is resident now, where the system allows it.
pub fn reset_peak_memory() {
    // Without it a figure is an upper bound, as it is named.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn status_bytes(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Seconds of processor that this process has used, by threads that have ended too.
pub fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Bytes this process has had read from disks; 0 where the system does not tell.
pub fn read_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes:"));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

/// Bytes of all files under a folder.
pub fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// How far something is: a bar on a terminal, a line for every tenth elsewhere.
pub struct Progress {
    what: &'static str,
    total: u64,
    bar: Option<ProgressBar>,
    tenths: u64,
    watch: Stopwatch,
}

impl Progress {
    /// Begins.
    pub fn start(what: &'static str, total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg:<24} [{bar:40}] {human_pos}/{human_len} {per_sec} {eta}");
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            bar.set_style(style.expect("the template is well formed").progress_chars("=> "));
            bar.set_message(what);
            bar
        });
        Self { what, total, bar, tenths: 0, watch: Stopwatch::start() }
    }

    /// So much is done by now.
    pub fn at(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            return bar.set_position(done);
        }
        let tenths = done * 10 / self.total.max(1);
        if tenths > self.tenths {
            self.tenths = tenths;
            let rate = done as f64 / self.watch.seconds().max(1e-9);
            println!(
                "{}: {} % ({} of {}, {} a second)",
                self.what,
                tenths * 10,
                grouped(done as f64),
                grouped(self.total as f64),
                grouped(rate.round())
            );
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people_and_programs() {
        let mut figures = Figures::default();
        figures.rate("load", "Votes", 3_000_000, 1.5);
        figures.note("load", "peak memory", 12.0, "bytes", "of 2 GB");
        let lines =
            "FIGURE\tload\tVotes\t1.500\ts\t\nFIGURE\tload\tVotes, rate\t2000000\trows/s\t\nFIGURE\tload\tpeak memory\t12\tbytes\tof 2 GB";
        assert_eq!(figures.lines(), lines);
        assert!(figures.table().contains("load: Votes, rate         2,000,000 rows/s"), "{}", figures.table());
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (-1_234_567.0, "-1,234,567"), (12.34, "12.3"), (0.5, "0.500")]
        {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn this_process_has_memory() {
        assert!(peak_memory_bytes() > 0);
    }
}
