//! Measurements as markdown tables: one of all bars, and one of custom loads.

use super::bars::{ROWS, Row};
use super::custom::Measurement;
use super::outcome::{Figure, SavedFigures};
use super::plot::short;
use super::trial::ReadCost;
use std::fmt::Write as _;
use std::time::Duration;
use tidepool_tests::{prometheus, tidepool, victoria_metrics, vmagent};

/// Servers that have a column; the last two have one only if they were measured.
pub const COLUMNS: [&str; 4] =
    [tidepool::NAME, prometheus::NAME_V3, victoria_metrics::NAME, vmagent::NAME];

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

/// A row of the table with its figures.
pub struct Filled<'a> {
    pub row: &'static Row,
    /// Figures in the order of [`COLUMNS`].
    pub figures: [Option<&'a Figure>; 4],
}

impl Filled<'_> {
    /// Returns the ratio of tidepool's need to Prometheus'.
    pub fn ratio(&self) -> Option<f64> {
        let [ours, theirs, ..] = self.figures;
        Some(ours?.value / theirs?.value).filter(|ratio| ratio.is_finite())
    }

    fn is_reached(&self) -> Option<bool> {
        let [ours, theirs, ..] = self.figures;
        self.row.bar.is_reached(ours?.value, theirs.map(|figure| figure.value))
    }
}

/// Returns the rows with at least one measurement.
pub fn filled(kept: &SavedFigures) -> Vec<Filled<'_>> {
    let find = |row: &Row, server: &str| {
        let figures = &kept.get(&row.scenario.name())?.outcome.figures;
        figures.iter().find(|figure| figure.row == row.key && figure.server == server)
    };
    ROWS.iter()
        .map(|row| Filled { row, figures: COLUMNS.map(|server| find(row, server)) })
        .filter(|filled| filled.figures.iter().any(Option::is_some))
        .collect()
}

/// Returns the table of all bars that were measured.
pub fn table(kept: &SavedFigures) -> String {
    let rows = filled(kept);
    let is_measured = |column: usize| rows.iter().any(|row| row.figures[column].is_some());
    let columns: Vec<usize> =
        (0..COLUMNS.len()).filter(|&column| column < 2 || is_measured(column)).collect();
    let names = columns.iter().map(|&column| COLUMNS[column]);
    let mut text = line(std::iter::once("").chain(names).chain(["ratio", "bar", "reached"]));
    text += &line(vec!["---"; columns.len() + 4]);
    for filled in rows {
        let mut cells = vec![filled.row.title.to_string()];
        let figures = columns.iter().map(|&column| filled.figures[column]);
        cells.extend(figures.map(|figure| figure.map_or_else(String::new, cell)));
        cells.push(filled.ratio().map_or_else(String::new, |ratio| format!("{} ×", short(ratio))));
        cells.push(filled.row.bar.to_string());
        let reached = match filled.is_reached() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        cells.push(reached.to_string());
        text += &line(&cells);
    }
    text
}

/// Returns a table with one row for each measurement.
pub fn custom_table(measurements: &[Measurement]) -> String {
    let mut text = line(HEADINGS);
    text += &line(["---"; HEADINGS.len()]);
    for Measurement { contender, version, write, reads } in measurements {
        let per_sample = |bytes: u64| format!("{:.2}", write.per_sample(bytes));
        let rate = write.samples as f64 / write.cost.wall.as_secs_f64() / 1e3;
        let mut cells = vec![
            contender.to_string(),
            version.to_string(),
            format!("{:.2}", write.cost.cpu_s_per_million(write.samples)),
            format!("{rate:.0}"),
            megabytes(write.peak_memory_bytes),
            per_sample(write.written_bytes),
            per_sample(write.kept_bytes),
            write.retries.to_string(),
        ];
        if let Some(reads) = reads {
            let cost =
                |read: &ReadCost| [seconds(read.cost.cpu), megabytes(read.extra_memory_bytes)];
            cells.extend(reads.iter().flat_map(cost));
            cells.push(megabytes(reads.iter().map(|read| read.answer_bytes).sum()));
        }
        cells.resize(HEADINGS.len(), String::new());
        text += &line(&cells);
    }
    text
}

fn cell(figure: &Figure) -> String {
    match figure.wall {
        Some(wall) => format!("{} ({})", short(figure.value), short(wall)),
        None => short(figure.value),
    }
}

/// Formats a line of a table.
pub fn line(cells: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
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
