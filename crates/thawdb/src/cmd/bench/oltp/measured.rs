//! One measurement: how many operations, how long each took, what processor time they cost; and the processor time that
//! the system says processes have used.

use crate::cmd::Failure;
use crate::cmd::figures::Figures;

/// Clock ticks a second in `/proc`: 100 on every Linux that Rust runs on (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
const AREA: &str = "oltp";

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Seconds each operation took; unordered.
    pub latencies: Vec<f64>,
    /// Seconds the measuring went on.
    pub seconds: f64,
    /// Processor seconds of clients and server together, user and system.
    pub cpu_seconds: f64,
}

impl Measured {
    /// Adds another round.
    pub fn merge(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
    }

    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds.max(1e-9)
    }

    pub fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.latencies.len().max(1) as f64
    }

    /// The latency that so many percent of the operations do not exceed, in microseconds.
    pub fn percentile_us(&mut self, percent: usize) -> f64 {
        self.latencies.sort_by(f64::total_cmp);
        let at = (self.latencies.len() * percent / 100).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(at).copied().unwrap_or(0.0) * 1e6
    }
}

/// One line of the comparison: ours, a rival's if he ran, and the ratio of the rates.
pub fn report(figures: &mut Figures, name: &str, ours: &mut Measured, theirs: Option<(&str, &mut Measured)>) {
    let notes = |m: &mut Measured| {
        format!("p50 {:.0} us, p99 {:.0} us, CPU {:.1} us an operation", m.percentile_us(50), m.percentile_us(99), m.cpu_us())
    };
    let note = notes(ours);
    println!("{name}: {:.0}/s, {note}", ours.per_second());
    figures.note(AREA, name, ours.per_second(), "/s", note);
    if let Some((who, theirs)) = theirs {
        let note = notes(theirs);
        println!("{name}, {who}: {:.0}/s, {note}", theirs.per_second());
        figures.note(AREA, format!("{name}, {who}"), theirs.per_second(), "/s", note);
        let p99 = ours.percentile_us(99) / theirs.percentile_us(99).max(1e-9);
        let cpu = ours.cpu_us() / theirs.cpu_us().max(1e-9);
        let ratio = ours.per_second() / theirs.per_second().max(1e-9);
        println!("{name}, ratio: {ratio:.2} x the rate, {p99:.2} x the p99, {cpu:.2} x the CPU");
        figures.note(AREA, format!("{name}, ratio"), ratio, "x", format!("p99 {p99:.2} x, CPU {cpu:.2} x"));
    }
}

/// Processor seconds a process has used, ended children that it waited for included.
pub fn process_cpu_seconds(process: u32) -> Result<f64, Failure> {
    stat(process).map(|(_, seconds)| seconds)
}

/// Processor seconds of a process, its children that live, and all that it has waited for.
pub fn family_cpu_seconds(process: u32) -> Result<f64, Failure> {
    let mut seconds = process_cpu_seconds(process)?;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // One that ends while we look is no child any more.
        if let Ok((parent, used)) = stat(id)
            && parent == process
        {
            seconds += used;
        }
    }
    Ok(seconds)
}

/// Parent and processor seconds, from `/proc/ID/stat` (proc(5)): what follows the name in parentheses.
fn stat(process: u32) -> Result<(u32, f64), Failure> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).map_err(|e| Failure::of(&path, e))?;
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = rest.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
    let ticks: u64 = fields.get(10..14).map_or(0, |times| times.iter().sum());
    let parent = fields.first().copied().and_then(|parent| u32::try_from(parent).ok()).unwrap_or(0);
    Ok((parent, ticks as f64 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_ordered_latencies() {
        let latencies = (1..=200).rev().map(|us| f64::from(us) * 1e-6).collect();
        let mut measured = Measured { latencies, seconds: 2.0, cpu_seconds: 0.001 };
        assert!((measured.percentile_us(50) - 101.0).abs() < 1e-6);
        assert!((measured.percentile_us(99) - 199.0).abs() < 1e-6);
        assert!((measured.per_second() - 100.0).abs() < 1e-9);
        assert!((measured.cpu_us() - 5.0).abs() < 1e-9);
        assert!(Measured::default().percentile_us(99) == 0.0);
    }

    #[test]
    fn this_process_has_a_parent_and_uses_the_processor() {
        let (parent, _) = stat(std::process::id()).unwrap();
        assert!(parent > 0);
        assert!(process_cpu_seconds(std::process::id()).unwrap() >= 0.0);
    }
}
