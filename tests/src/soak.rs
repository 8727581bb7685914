//! How often tests repeat themselves: a few times in `tests/run`, many times in `tests/run --soak`.

/// Set while `tests/run --soak` runs.
const VARIABLE: &str = "TIDEPOOL_SOAK";

/// One of two counts: for each run of the tests, and for those that repeat for long.
pub fn count(each_run: usize, soak: usize) -> usize {
    if std::env::var_os(VARIABLE).is_some() { soak } else { each_run }
}
