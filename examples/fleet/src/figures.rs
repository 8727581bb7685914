//! The figures as a table, a summary and a chart.

use crate::fleet::{Figures, Way};
use std::fmt::Write as _;
use tidepool_bench::plot::{self, RatioBar};

/// Name of a figure, and the function that reads it.
type Column = (&'static str, fn(&Figures) -> f64);

const COLUMNS: [Column; 7] = [
    ("requests", |f| f.requests),
    ("MB sent", |f| f.bytes / 1e6),
    ("kB a request", |f| f.bytes / f.requests / 1e3),
    ("samples/s", |f| f.samples / f.wall.as_secs_f64()),
    ("centre, CPU s a million", |f| f.centre_cpu.as_secs_f64() / f.samples * 1e6),
    ("nodes, CPU s a million", |f| f.nodes_cpu.as_secs_f64() / f.samples * 1e6),
    ("peak of a node, MB", |f| f.node_memory_bytes as f64 / 1e6),
];

/// Returns a markdown table with one row for each way of forwarding.
pub fn table(results: &[(Way, Figures)]) -> String {
    let mut text = String::from("| forwarded by |");
    for (title, _) in COLUMNS {
        // Writing to a string does not fail, here and below.
        let _ = write!(text, " {title} |");
    }
    text += "\n| --- |";
    text += &" --- |".repeat(COLUMNS.len());
    for (way, figures) in results {
        let _ = write!(text, "\n| {way} |");
        for (_, value) in COLUMNS {
            let _ = write!(text, " {} |", plot::short(value(figures)));
        }
    }
    text + "\n"
}

/// Returns the effects of larger shards and of remote write 2.0 as text.
pub fn summary(results: &[(Way, Figures)]) -> String {
    let [(_, small), (_, large), (_, v1)] = results else { return String::new() };
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    format!(
        "Half the shards, each of twice the size: {:.0} % of the requests at {:.0} % of the \
         throughput.\n2.0 against 1.0: {:.0} % less sent, {:.0} % less CPU at the centre.",
        percent(large.requests, small.requests),
        percent(small.wall.as_secs_f64(), large.wall.as_secs_f64()),
        100.0 - percent(large.bytes, v1.bytes),
        100.0 - percent(large.centre_cpu.as_secs_f64(), v1.centre_cpu.as_secs_f64()),
    )
}

/// Returns the same effects as a bar chart.
pub fn plot(results: &[(Way, Figures)]) -> String {
    let [(_, small), (_, large), (_, v1)] = results else { return String::new() };
    let bar = |title: &str, value: f64, of: f64, bar| RatioBar {
        title: title.to_string(),
        ratio: value / of,
        bar,
    };
    let cpu = |figures: &Figures| figures.centre_cpu.as_secs_f64();
    plot::ratios(
        "one way of forwarding ÷ the other; less is better",
        &[
            bar(
                "requests, 100 large shards against 200 small",
                large.requests,
                small.requests,
                None,
            ),
            bar("bytes sent, 2.0 against 1.0", large.bytes, v1.bytes, Some(0.53)),
            bar("CPU of the centre, 2.0 against 1.0", cpu(large), cpu(v1), Some(0.47)),
        ],
    )
}
