//! A query as it is asked.

use std::time::Duration;
use tidepool_runtime::{QueryTimes, ResultFormat};

/// A query.
#[derive(Clone, Debug)]
pub struct Expression {
    /// Its text.
    pub text: String,
    /// When it is evaluated.
    pub times: QueryTimes,
    /// How the answer is written.
    pub format: ResultFormat,
    /// How far back instant selectors look, unless as the configuration says.
    pub lookback: Option<Duration>,
    /// Most series of the answer; 0 for no limit.
    pub series_max: u64,
    /// Longest time the query may take, unless the configuration allows less.
    pub timeout: Option<Duration>,
    /// Whether samples are counted for each step, if the configuration allows it.
    pub per_step: bool,
    /// Whether all is evaluated, whatever is known of an earlier answer.
    pub is_fresh: bool,
}
