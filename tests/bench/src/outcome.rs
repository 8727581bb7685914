//! Measurements: figures of rows and points of charts, kept in a file by scenario, so that
//! scenarios can be measured one by one.

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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub row: String,
    pub server: String,
    /// Measured value, in the unit of the row.
    pub value: f64,
    /// Wall time, in the unit of the row.
    pub wall: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    pub chart: String,
    pub server: String,
    /// Position on the x axis.
    pub x: f64,
    /// Value on the y axis.
    pub y: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub figures: Vec<Figure>,
    pub points: Vec<Point>,
}

/// Kept results of one scenario, with their origin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Commit, with a `+` if files differed from it.
    pub commit: String,
    /// Number of rounds; the least of each figure counts.
    pub rounds: usize,
    /// Duration of the measurement in seconds.
    pub took_s: f64,
    pub outcome: Outcome,
}

/// All kept results, by the name of the scenario.
pub type SavedFigures = BTreeMap<String, Measured>;

impl Outcome {
    /// Adds a figure.
    ///
    /// # Panics
    /// Panics if there is no such row: no table would show the figure.
    pub fn add(&mut self, row: &str, contender: Contender, value: f64) {
        self.push(row, contender, value, None);
    }

    /// Adds a figure and its wall time.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn add_timed(&mut self, row: &str, contender: Contender, value: f64, wall: f64) {
        self.push(row, contender, value, Some(wall));
    }

    fn push(&mut self, row: &str, contender: Contender, value: f64, wall: Option<f64>) {
        assert!(row_of(row).is_some(), "no row of the table is called {row}");
        let (row, server) = (row.to_string(), contender.to_string());
        eprintln!("  {server}: {row} = {value:.3}");
        self.figures.push(Figure { row, server, value, wall });
    }

    pub fn point(&mut self, chart: &str, contender: Contender, x: f64, y: f64) {
        let (chart, server) = (chart.to_string(), contender.to_string());
        eprintln!("  {server}: {chart} at {x} = {y:.3}");
        self.points.push(Point { chart, server, x, y });
    }

    pub fn extend(&mut self, other: Outcome) {
        self.figures.extend(other.figures);
        self.points.extend(other.points);
    }

    /// Replaces figures by those of another round that are less.
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

/// Loads the results kept from earlier runs.
pub fn load_kept() -> Result<SavedFigures, BenchError> {
    let path = kept_path();
    match fs::read(&path) {
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|source| BenchError::Figures { path, source })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(SavedFigures::default()),
        Err(error) => Err(error.into()),
    }
}

/// Measures a scenario some times and keeps the least of each figure.
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

/// Keeps the results of a scenario in place of its earlier ones.
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

/// Returns the commit that is checked out, followed by `+` if files were changed.
pub fn commit() -> Result<String, BenchError> {
    let git = |arguments: &[&str]| -> Result<String, BenchError> {
        let output = Command::new("git").args(arguments).current_dir(workspace()).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    // Files that the benchmark itself writes do not count.
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
