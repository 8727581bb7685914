//! A query with the parameters of its request.

use std::time::Duration;
use tidepool_runtime::{QueryTimes, ResultFormat};

#[derive(Clone, Debug)]
pub struct Expression {
    pub text: String,
    pub times: QueryTimes,
    pub format: ResultFormat,
    /// Lookback delta of instant selectors; `None` means the configured one.
    pub lookback: Option<Duration>,
    /// Maximum number of series in the answer; 0 for no limit.
    pub series_max: u64,
    /// Timeout of the request. The configured timeout applies if it is shorter.
    pub timeout: Option<Duration>,
    /// Whether samples are counted per step, provided that the feature is enabled.
    pub per_step: bool,
    /// Whether the result cache is bypassed, so that all steps are evaluated.
    pub is_fresh: bool,
}
