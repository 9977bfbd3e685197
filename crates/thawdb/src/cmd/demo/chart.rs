//! A picture of rows a second over time, as SVG: a line a build.
//!
//! A line's height in an interval is the rows that went through the build in it, by its percentage, over the interval's
//! length. Intervals are equal over the whole picture, so that lines can be compared by eye.

use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;
const RIGHT: f64 = 30.0;
/// Intervals of the whole picture.
const INTERVALS: usize = 60;
/// Marks on each axis.
const MARKS: usize = 5;
/// Colours that stay apart in print and to most eyes (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#56b4e9"];

/// A build.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Seconds since the start, and rows done by then; both rising.
    pub(crate) points: Vec<(f64, f64)>,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl Line {
    /// Rows done by a moment: between two points as if in a straight line.
    fn done_by(&self, seconds: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 < seconds);
        let before = if after == 0 { (0.0, 0.0) } else { self.points[after - 1] };
        match self.points.get(after) {
            None => before.1,
            Some(next) if next.0 <= before.0 => next.1,
            Some(next) => before.1 + (next.1 - before.1) * (seconds - before.0) / (next.0 - before.0),
        }
    }

    /// Rows a second in each interval of `length` seconds; the last is as long as the build still takes.
    fn rates(&self, length: f64) -> Vec<(f64, f64)> {
        let count = (self.seconds / length).ceil() as usize;
        let ends = (1..=count).map(|n| (n as f64 * length).min(self.seconds));
        let mut before = 0.0;
        ends.filter_map(|end| {
            let (from, width) = (before, end - before);
            before = end;
            // A remnant of an interval says nothing of speed.
            (width > length / 2.0).then(|| (from + width / 2.0, (self.done_by(end) - self.done_by(from)).max(0.0) / width))
        })
        .collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// 1, 2 or 5 times a power of ten, at least `value`.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

/// The picture.
pub(crate) fn svg(title: &str, lines: &[Line]) -> String {
    let longest = lines.iter().map(|line| line.seconds).fold(1e-3, f64::max);
    let rates: Vec<_> = lines.iter().map(|line| line.rates(longest / INTERVALS as f64)).collect();
    let fastest = round_up(rates.iter().flatten().map(|(_, rate)| *rate).fold(1.0, f64::max));
    let x = |seconds: f64| LEFT + seconds / longest * (WIDTH - LEFT - RIGHT);
    let y = |rate: f64| HEIGHT - BOTTOM - rate / fastest * (HEIGHT - TOP - BOTTOM);
    let mut out = String::new();
    let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes everything");
    put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n"
    ));
    put(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"));
    put(format_args!("<text x=\"{LEFT}\" y=\"24\" font-size=\"16\">{}</text>\n", escaped(title)));
    for mark in 0..=MARKS {
        let part = mark as f64 / MARKS as f64;
        let (rate, seconds) = (fastest * part, longest * part);
        let (across, up) = (x(seconds), y(rate));
        put(format_args!("<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{up:.1}\" y2=\"{up:.1}\" stroke=\"#ddd\"/>\n", WIDTH - RIGHT));
        put(format_args!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.1} M</text>\n", LEFT - 8.0, up + 4.0, rate / 1e6));
        put(format_args!("<text x=\"{across:.1}\" y=\"{}\" text-anchor=\"middle\">{seconds:.1}</text>\n", HEIGHT - BOTTOM + 20.0));
    }
    put(format_args!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">seconds of work</text>\n",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 16.0
    ));
    put(format_args!("<text x=\"{LEFT}\" y=\"{}\" text-anchor=\"end\">rows/s</text>\n", TOP - 14.0));
    for (at, (line, rates)) in lines.iter().zip(&rates).enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let points: Vec<String> = rates.iter().map(|(seconds, rate)| format!("{:.1},{:.1}", x(*seconds), y(*rate))).collect();
        put(format_args!("<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n", points.join(" ")));
        let (legend_x, legend_y) = (LEFT + 8.0 + (at % 2) as f64 * 420.0, TOP - 22.0 + (at / 2) as f64 * 18.0);
        put(format_args!(
            "<text x=\"{legend_x}\" y=\"{legend_y}\" fill=\"{colour}\">{}: {:.2} s</text>\n",
            escaped(&line.name),
            line.seconds
        ));
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(name: &str, seconds: f64, rows: f64) -> Line {
        Line { name: name.into(), points: (1..=10).map(|n| (seconds * f64::from(n) / 10.0, rows * f64::from(n) / 10.0)).collect(), seconds }
    }

    #[test]
    fn an_even_build_is_a_level_line() {
        let rates = even("a", 6.0, 600.0).rates(1.0);
        assert_eq!(rates.len(), 6);
        assert!(rates.iter().all(|(_, rate)| (rate - 100.0).abs() < 1e-6), "{rates:?}");
        let slower = Line { points: vec![(1.0, 100.0), (2.0, 150.0)], ..even("b", 2.0, 0.0) };
        assert_eq!(slower.rates(1.0).iter().map(|(_, rate)| rate.round()).collect::<Vec<_>>(), [100.0, 50.0]);
    }

    #[test]
    fn the_picture_has_a_line_a_build_and_no_markup_of_names() {
        let picture = svg("a < b & c", &[even("offline", 1.0, 1e6), even("<script>", 2.0, 1e6)]);
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(picture.contains("a &lt; b &amp; c") && picture.contains("&lt;script&gt;: 2.00 s"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
        assert!(svg("none", &[]).ends_with("</svg>\n"));
        assert_eq!([round_up(3.0), round_up(0.12), round_up(7e6)], [5.0, 0.2, 1e7]);
    }
}
