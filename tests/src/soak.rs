//! Repetitions of tests: few in `tests/run`, many in `tests/run --soak`.

use std::ops::Range;

/// Variable that selects other worlds of faults: one by its seed, such as `17`, or a range such as
/// `1000..1040`.
pub const SEEDS_VARIABLE: &str = "TIDEPOOL_FAULT_SEEDS";

/// Set while `tests/run --soak` runs.
const VARIABLE: &str = "TIDEPOOL_SOAK";

/// Returns one of two counts: for ordinary runs of the tests, or for long ones.
pub fn count(each_run: usize, soak: usize) -> usize {
    if std::env::var_os(VARIABLE).is_some() { soak } else { each_run }
}

/// Returns the seeds of worlds of faults: as many from zero on as [`count`] returns, or those that
/// the variable names.
///
/// # Panics
///
/// If the variable is set but names no seeds.
/// If the variable names none.
pub fn seeds(each_run: usize, soak: usize) -> Range<u64> {
    match std::env::var(SEEDS_VARIABLE) {
        Ok(text) => range(&text).unwrap_or_else(|| panic!("{SEEDS_VARIABLE} is {text:?}")),
        Err(_) => 0..count(each_run, soak) as u64,
    }
}

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = match text.split_once("..") {
        Some((start, end)) => (start.parse().ok()?, end.parse().ok()?),
        None => (text.parse().ok()?, text.parse::<u64>().ok()? + 1),
    };
    (start < end).then_some(start..end)
}
