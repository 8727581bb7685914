//! The pages about speed: the table and the charts of all measurements, with the commit and the
//! machine, between two marks of a page whose other text is written by hand. Queries, dashboards
//! and scraping have pages of their own.

use super::BenchError;
use super::bars::Bar;
use super::outcome::{Point, SavedFigures};
use super::plot::{self, Panel, RatioBar};
use super::report::{self, COLUMNS};
use super::scenario::Scenario;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tidepool_tests::built::{target_dir, workspace};

const BEGIN: &str = "<!-- Written by `bench docs` from here … -->\n";
const END: &str = "<!-- … to here -->\n";

/// A sheet of charts: its file, and the key, title and x axis of each chart.
type Sheet = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const SHEETS: [Sheet; 2] = [
    (
        "series.svg",
        "Cost by the number of series",
        &[
            ("series-write", "writes: CPU s per M samples", "series"),
            ("series-new", "first samples: CPU s per M new series", "series"),
            ("series-memory", "peak memory on top of an empty server: bytes per series", "series"),
            ("series-read", "streamed read of the newest: CPU s per M series", "series"),
        ],
    ),
    (
        "days.svg",
        "Cost by the days of blocks",
        &[
            ("days-write", "writes: CPU s per M samples", "days"),
            ("days-read", "streamed read of all: CPU s per M samples", "days"),
            ("days-narrow", "streamed read of 10 series, newest day: CPU ms", "days"),
            ("days-start", "s until ready", "days"),
            ("days-memory", "resident after the start, MB", "days"),
        ],
    ),
];

/// A table that is kept as printed: its file in cargo's folder and beside the page about speed, and
/// the page's title.
pub type Kind = (&'static str, &'static str);

pub const QUERIES: Kind = ("queries.md", "Speed of queries");
pub const NARROW: Kind = ("narrow.md", "Speed of narrow requests");
pub const DASHBOARD: Kind = ("dashboard.md", "Dashboards beside ingestion");

/// Keeps a table in place of the earlier one.
pub fn keep((file, _): Kind, table: &str) -> Result<(), BenchError> {
    keep_text(file, table)
}

/// Keeps the chart of a table, as SVG.
pub fn keep_chart(kind: Kind, chart: &str) -> Result<(), BenchError> {
    keep_text(&chart_file(kind), chart)
}

fn keep_text(file: &str, text: &str) -> Result<(), BenchError> {
    let path = kept_path(file);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    Ok(fs::write(path, text)?)
}

/// Reads a kept file; `None` if there is none.
fn kept_text(file: &str) -> Result<Option<String>, BenchError> {
    match fs::read_to_string(kept_path(file)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn chart_file((file, _): Kind) -> String {
    Path::new(file).with_extension("svg").display().to_string()
}

fn kept_path(file: &str) -> PathBuf {
    target_dir().join("bench").join(file)
}

/// Writes pages and charts into a folder; returns the paths of the pages.
pub fn write(kept: &SavedFigures, folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let is_of_scraping = |name: &String| *name == Scenario::Scraping.name();
    let (scraping, others): (SavedFigures, SavedFigures) =
        kept.clone().into_iter().partition(|(name, _)| is_of_scraping(name));
    let charts = folder.join("speed");
    fs::create_dir_all(&charts)?;
    let mut written = Vec::new();
    if !others.is_empty() {
        let images = write_charts(&others, &charts)?;
        let text = format!("\n{}\n{}\n{images}", origin(&others)?, report::table(&others));
        written.push(replace(folder.join("speed.md"), "Speed", &text)?);
    }
    if !scraping.is_empty() {
        let text = format!("\n{}\n{}\n", origin(&scraping)?, report::table(&scraping));
        written.push(replace(charts.join("scraping.md"), "Speed of scraping", &text)?);
    }
    for kind in [QUERIES, NARROW, DASHBOARD] {
        let (file, title) = kind;
        let Some(table) = kept_text(file)? else { continue };
        let mut text = format!("\n{table}\n");
        let chart = chart_file(kind);
        if let Some(svg) = kept_text(&chart)? {
            fs::write(charts.join(&chart), svg)?;
            let _ = writeln!(text, "![{title}]({chart})\n");
        }
        written.push(replace(charts.join(file), title, &text)?);
    }
    if written.is_empty() { Err(BenchError::NoFigures) } else { Ok(written) }
}

/// Replaces the text between the marks of a page.
fn replace(path: PathBuf, title: &str, text: &str) -> Result<PathBuf, BenchError> {
    let page = fs::read_to_string(&path).unwrap_or_else(|_| format!("# {title}\n\n{BEGIN}{END}"));
    let before = page.split_once(BEGIN).map_or(page.as_str(), |(before, _)| before);
    let after = page.split_once(END).map_or("", |(_, after)| after);
    fs::write(&path, format!("{before}{BEGIN}{text}{END}{after}"))?;
    Ok(path)
}

/// Writes the charts; returns the lines that show them.
fn write_charts(kept: &SavedFigures, charts: &Path) -> Result<String, BenchError> {
    let mut images = String::new();
    let mut image = |file: &str, title: &str, svg: String| -> Result<(), BenchError> {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(images, "![{title}](speed/{file})\n");
        Ok(fs::write(charts.join(file), svg)?)
    };
    image("ratios.svg", "What tidepool needs of what Prometheus needs", ratios(kept))?;
    for (file, title, panels) in SHEETS {
        let panels: Vec<Panel> = panels
            .iter()
            .map(|&(key, title, x_title)| panel(kept, key, title, x_title))
            .filter(|panel| !panel.curves.is_empty())
            .collect();
        if !panels.is_empty() {
            image(file, title, plot::panels(&panels))?;
        }
    }
    Ok(images)
}

/// Returns the commits, the machine and the versions of the other servers as text.
fn origin(kept: &SavedFigures) -> Result<String, BenchError> {
    let mut text = String::new();
    let commits: Vec<&str> = kept.values().map(|measured| measured.commit.as_str()).collect();
    let all_same = commits.windows(2).all(|pair| pair[0] == pair[1]);
    if let (true, Some(commit)) = (all_same, commits.first()) {
        let _ = write!(text, "Commit {commit}. ");
    } else {
        let each = kept.iter().map(|(name, measured)| format!("{name} {}", measured.commit));
        let _ = write!(text, "Commits: {}. ", each.collect::<Vec<_>>().join(", "));
    }
    text += &machine()?;
    text.push('\n');
    Ok(text)
}

/// Returns the machine and the versions of the other servers as text.
pub fn machine() -> Result<String, BenchError> {
    let field = |file: &str, name: &str| -> Result<String, BenchError> {
        let text = fs::read_to_string(file)?;
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        Ok(line.split_once(':').map_or("", |(_, value)| value).trim().to_string())
    };
    let memory_kb = field("/proc/meminfo", "MemTotal")?;
    let memory_kb: f64 = memory_kb.trim_end_matches(" kB").parse().unwrap_or(0.0);
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel: Vec<&str> = kernel.trim().splitn(3, '.').collect();
    Ok(format!(
        "Machine: {cores} cores ({}), {:.0} GB of memory, Linux {}. Beside it: Prometheus {}, \
         VictoriaMetrics {} (Go modules). Servers and senders share the machine; the data is on \
         its disk.",
        field("/proc/cpuinfo", "model name")?,
        memory_kb / 1e6,
        kernel.iter().take(2).copied().collect::<Vec<_>>().join("."),
        pinned("tests/peers/go.mod", "github.com/prometheus/prometheus ")?,
        pinned("tests/peers/senders/go.mod", "github.com/VictoriaMetrics/VictoriaMetrics ")?,
    ))
}

/// Returns the version of a module that a file pins.
fn pinned(file: &str, module: &str) -> Result<String, BenchError> {
    let text = fs::read_to_string(workspace().join(file))?;
    let rest = text.lines().find_map(|line| line.split_once(module));
    Ok(rest.and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("?").to_string())
}

fn ratios(kept: &SavedFigures) -> String {
    let mut bars = Vec::new();
    for filled in report::filled(kept) {
        let Some(ratio) = filled.ratio() else { continue };
        let theirs = filled.figures[1].map(|figure| figure.value);
        let bar = match filled.row.bar {
            Bar::None => None,
            Bar::Ratio { bar, prometheus } => Some(bar / prometheus),
            Bar::AtMost(most) => theirs.map(|theirs| most / theirs),
        };
        let title = filled.row.title.trim_end_matches(" (wall)").to_string();
        bars.push(RatioBar { title, ratio, bar });
    }
    plot::ratios("tidepool ÷ Prometheus; less is better", &bars)
}

fn panel(kept: &SavedFigures, key: &str, title: &str, x_title: &str) -> Panel {
    let points = || kept.values().flat_map(|measured| &measured.outcome.points);
    let of = |server: &str| -> Vec<(f64, f64)> {
        let mine = |point: &&Point| point.chart == key && point.server == server;
        points().filter(mine).map(|point| (point.x, point.y)).collect()
    };
    let curves = COLUMNS.map(|server| (server.to_string(), of(server)));
    Panel {
        title: title.to_string(),
        x_title: x_title.to_string(),
        curves: curves.into_iter().filter(|(_, points)| !points.is_empty()).collect(),
    }
}
