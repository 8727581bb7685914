//! What a file of unit tests has.

use super::histogram::Histogram;
use super::notation::Sequence;
use crate::file::{Labels, Mistake, Position};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct TestFile {
    pub path: PathBuf,
    /// Patterns; relative ones begin at the folder of the file.
    pub rule_files: Vec<String>,
    /// Not zero.
    pub evaluation_interval: Duration,
    /// Names of groups, each once; others have the place of the first one.
    pub group_eval_order: Vec<String>,
    /// Whether values that differ in the last bit are the same.
    pub fuzzy_compare: bool,
    pub tests: Vec<Test>,
    /// Where something begins after the first document, which is not read.
    pub ignored: Option<Position>,
}

/// Series, and what is expected of rules and expressions over them.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    pub position: Position,
    /// Empty for none.
    pub name: String,
    /// Time between two values of a series; not zero.
    pub interval: Duration,
    /// Time of the first values and of the first evaluation.
    pub start_ms: i64,
    pub series: Vec<InputSeries>,
    pub alerts: Vec<AlertTest>,
    pub expressions: Vec<ExpressionTest>,
    pub external_labels: Labels,
    pub external_url: String,
    /// Wrong series, for which the test fails.
    pub mistakes: Vec<Mistake>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct InputSeries {
    pub labels: Labels,
    pub values: Sequence,
}

/// All firing alerts of a name at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertTest {
    /// Since the start.
    pub eval_time: Duration,
    /// Empty if it is missing, for which the test fails.
    pub alert: String,
    pub expected: Vec<ExpectedAlert>,
}

/// Empty values count, as in upstream: no alert has a label without a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedAlert {
    pub labels: Labels,
    pub annotations: Labels,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExpressionTest {
    pub expression: String,
    /// Since the start.
    pub eval_time: Duration,
    /// An error fails the expression, with this text.
    pub expected: Result<Vec<ExpectedSample>, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedSample {
    pub labels: Labels,
    pub value: f64,
    pub histogram: Option<Histogram>,
}
