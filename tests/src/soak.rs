//! How often tests repeat themselves: a few times in `tests/run`, many times in `tests/run --soak`.

use std::ops::Range;

/// The variable that has other worlds of faults run: one by its seed, such as `17`, or a range such
/// as `1000..1040`.
pub const SEEDS_VARIABLE: &str = "TIDEPOOL_FAULT_SEEDS";

/// Set while `tests/run --soak` runs.
const VARIABLE: &str = "TIDEPOOL_SOAK";

/// One of two counts: for each run of the tests, and for those that repeat for long.
pub fn count(each_run: usize, soak: usize) -> usize {
    if std::env::var_os(VARIABLE).is_some() { soak } else { each_run }
}

/// The seeds of worlds of faults: so many from zero on, as [`count`] has it, or those that the
/// variable names.
///
/// # Panics
///
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
