//! What was measured: figures of rows and points of charts, kept in a file by scenario, so that the
//! scenarios need not be measured in one go.

use super::bars::row_of;
use super::contender::Contender;
use super::scenario::Scenario;
use super::{BenchError, Context};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tidepool_tests::built::{target_dir, workspace};

/// One cell of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// The row's key.
    pub row: String,
    /// The server's name.
    pub server: String,
    /// What was measured, in the unit of the row.
    pub value: f64,
    /// Wall time, in the unit of the row.
    pub wall: Option<f64>,
}

/// One point of a chart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The chart's key.
    pub chart: String,
    /// The server's name.
    pub server: String,
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
}

/// What one scenario gave.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Cells.
    pub figures: Vec<Figure>,
    /// Points.
    pub points: Vec<Point>,
}

/// What one scenario gave, and of what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The commit, with a `+` if files differed from it.
    pub commit: String,
    /// The least of each figure in so many rounds.
    pub rounds: usize,
    /// How long it took.
    pub took_s: f64,
    /// What it gave.
    pub outcome: Outcome,
}

/// All that is kept, by the name of the scenario.
pub type Kept = BTreeMap<String, Measured>;

impl Outcome {
    /// Adds a figure.
    ///
    /// # Panics
    /// When there is no such row: a figure that no table shows.
    pub fn add(&mut self, row: &str, contender: Contender, value: f64) {
        self.push(row, contender, value, None);
    }

    /// Adds a figure and its wall time.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn add_timed(&mut self, row: &str, contender: Contender, value: f64, wall: f64) {
        self.push(row, contender, value, Some(wall));
    }

    fn push(&mut self, row: &str, contender: Contender, value: f64, wall: Option<f64>) {
        assert!(row_of(row).is_some(), "no row of the table is called {row}");
        let (row, server) = (row.to_string(), contender.to_string());
        eprintln!("  {server}: {row} = {value:.3}");
        self.figures.push(Figure { row, server, value, wall });
    }

    /// Adds a point.
    pub fn point(&mut self, chart: &str, contender: Contender, x: f64, y: f64) {
        let (chart, server) = (chart.to_string(), contender.to_string());
        eprintln!("  {server}: {chart} at {x} = {y:.3}");
        self.points.push(Point { chart, server, x, y });
    }

    /// Takes over all of another outcome.
    pub fn extend(&mut self, other: Outcome) {
        self.figures.extend(other.figures);
        self.points.extend(other.points);
    }

    /// Takes over what another round measured as less.
    pub fn keep_least(&mut self, other: Outcome) {
        if self.figures.is_empty() && self.points.is_empty() {
            *self = other;
            return;
        }
        let least = |a: Option<f64>, b: Option<f64>| Some(a?.min(b?));
        for (mine, theirs) in self.figures.iter_mut().zip(other.figures) {
            mine.value = mine.value.min(theirs.value);
            mine.wall = least(mine.wall, theirs.wall);
        }
        for (mine, theirs) in self.points.iter_mut().zip(other.points) {
            mine.y = mine.y.min(theirs.y);
        }
    }
}

/// What is kept from runs before.
pub fn load_kept() -> Result<Kept, BenchError> {
    let path = kept_path();
    match fs::read(&path) {
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|source| BenchError::Figures { path, source })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kept::default()),
        Err(error) => Err(error.into()),
    }
}

/// Measures a scenario so many times.
pub fn measure(
    context: &Context,
    scenario: Scenario,
    rounds: usize,
) -> Result<Measured, BenchError> {
    let start = std::time::Instant::now();
    let mut outcome = Outcome::default();
    for _ in 0..rounds {
        outcome.keep_least(scenario.measure(context)?);
    }
    let took_s = start.elapsed().as_secs_f64();
    Ok(Measured { commit: commit()?, rounds, took_s, outcome })
}

/// Keeps what a scenario gave in place of what it gave before.
pub fn keep(scenario: Scenario, measured: &Measured) -> Result<(), BenchError> {
    let mut kept = load_kept()?;
    kept.insert(scenario.name(), measured.clone());
    let path = kept_path();
    let figures = |source| BenchError::Figures { path: path.clone(), source };
    let text = serde_json::to_string_pretty(&kept).map_err(figures)?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    Ok(fs::write(&path, text)?)
}

fn kept_path() -> PathBuf {
    target_dir().join("bench/figures.json")
}

/// The commit that is checked out; with a sign after it, if files were changed.
pub fn commit() -> Result<String, BenchError> {
    let git = |arguments: &[&str]| -> Result<String, BenchError> {
        let output = Command::new("git").args(arguments).current_dir(workspace()).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    // What the benchmark itself writes does not count.
    let changes = git(&["status", "--porcelain", "--", ".", ":!host/docs"])?;
    Ok(if changes.is_empty() { commit } else { commit + "+" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_rounds_is_kept() {
        let round = |value: f64, wall: f64| {
            let mut outcome = Outcome::default();
            outcome.add_timed("10k-1.0-cpu", Contender::Tidepool, value, wall);
            outcome.point("series-write", Contender::Tidepool, 1.0, value);
            outcome
        };
        let mut least = Outcome::default();
        for (value, wall) in [(3.0, 1.0), (2.0, 4.0), (5.0, 2.0)] {
            least.keep_least(round(value, wall));
        }
        assert_eq!((least.figures[0].value, least.figures[0].wall), (2.0, Some(1.0)));
        assert_eq!((least.figures.len(), least.points[0].y), (1, 2.0));
    }
}
