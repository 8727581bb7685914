//! Measurements as a markdown table.

use super::{Measurement, ReadCost};
use std::fmt::Write as _;
use std::time::Duration;

const HEADINGS: [&str; 13] = [
    "server",
    "remote write",
    "CPU s / M samples",
    "k samples/s",
    "peak MB",
    "written B/sample",
    "kept B/sample",
    "retries",
    "streamed: CPU s",
    "+MB",
    "SAMPLES: CPU s",
    "+MB",
    "answers MB",
];

/// One row a measurement.
pub fn table(measurements: &[Measurement]) -> String {
    let mut text = row(&HEADINGS.map(str::to_string));
    text += &row(&["---"; HEADINGS.len()].map(str::to_string));
    for m in measurements {
        let per_sample = |bytes: u64| format!("{:.2}", bytes as f64 / m.samples as f64);
        let per_million = m.cpu.as_secs_f64() / (m.samples as f64 / 1e6);
        let rate = m.samples as f64 / m.wall.as_secs_f64() / 1e3;
        let answers = m.streamed.answer_bytes + m.sampled.answer_bytes;
        let extra = |cost: &ReadCost| megabytes(cost.extra_memory_bytes);
        text += &row(&[
            m.contender.to_string(),
            m.version.to_string(),
            format!("{per_million:.2}"),
            format!("{rate:.0}"),
            megabytes(m.peak_memory_bytes),
            per_sample(m.written_bytes),
            per_sample(m.kept_bytes),
            m.retries.to_string(),
            seconds(m.streamed.cpu),
            extra(&m.streamed),
            seconds(m.sampled.cpu),
            extra(&m.sampled),
            megabytes(answers),
        ]);
    }
    text
}

fn row(cells: &[String]) -> String {
    let mut text = String::from("|");
    for cell in cells {
        // Writing to a string does not fail.
        let _ = write!(text, " {cell} |");
    }
    text.push('\n');
    text
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn seconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64())
}
