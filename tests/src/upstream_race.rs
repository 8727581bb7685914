//! Tests in which Prometheus may end by a race of its own.
//!
//! Prometheus writes full chunks of its head into numbered files. When it removes the old ones
//! while an append writes the first chunk of a new one, it counts wrong, and panics at the next
//! file (`ChunkDiskMapper.Truncate`, prometheus/prometheus#11618): seen once in some 250 starts
//! that took out-of-order samples while they wrote short blocks. Such a run proves nothing about
//! tidepool, so it is repeated.

use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind};

/// Prometheus' log line about this race.
const PANIC: &str = "panic: expected newly cut file to have sequence:offset";

/// Maximum number of runs: a race that often is no accident.
const RUNS_MAX: usize = 3;

thread_local! {
    static HAS_PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// Records whether the server with this log ended by the race.
pub(crate) fn note_log(log: &str) {
    if log.contains(PANIC) {
        HAS_PANICKED.set(true);
    }
}

/// Runs the test, and again if it failed after a Prometheus of this thread ended by the race.
pub fn again_after_race(test: fn()) {
    for run in 1..=RUNS_MAX {
        HAS_PANICKED.set(false);
        let Err(failure) = catch_unwind(test) else { return };
        if !HAS_PANICKED.get() || run == RUNS_MAX {
            resume_unwind(failure);
        }
        eprintln!("Prometheus ended by prometheus/prometheus#11618: run {run} does not count");
    }
}

#[cfg(test)]
mod tests {
    use super::{RUNS_MAX, again_after_race, note_log};
    use std::cell::Cell;
    use std::panic::catch_unwind;

    thread_local! {
        static RUNS: Cell<usize> = const { Cell::new(0) };
    }

    fn fail_until(last: usize, log: &str) {
        RUNS.set(RUNS.get() + 1);
        if RUNS.get() < last {
            note_log(log);
            panic!("the server has gone");
        }
    }

    const RACE: &str = "panic: expected newly cut file to have sequence:offset 1:8, got 2:8";

    #[test]
    fn only_a_run_with_the_race_is_done_again() {
        again_after_race(|| fail_until(2, RACE));
        assert_eq!(RUNS.replace(0), 2);
        let other = || again_after_race(|| fail_until(2, "panic: out of memory"));
        assert!(catch_unwind(other).is_err());
        assert_eq!(RUNS.replace(0), 1);
        let always = || again_after_race(|| fail_until(usize::MAX, RACE));
        assert!(catch_unwind(always).is_err());
        assert_eq!(RUNS.get(), RUNS_MAX);
    }
}
