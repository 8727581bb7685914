//! The work that all embedders do. `work.py` and `js/test/bench/embedder.ts` have the same in their
//! languages.

use std::time::Instant;

pub const SERIES: usize = 1000;
pub const STEPS: usize = 1000;
pub const SAMPLES: usize = SERIES * STEPS;

/// Number of steps of all series that one call appends.
pub const STEPS_A_CALL: usize = 10;

/// Number of runs; the one with the least CPU time counts.
pub const RUNS: usize = 3;

pub const START_MS: i64 = 1_700_000_000_000;
pub const END_MS: i64 = START_MS + STEP_MS * STEPS as i64;
const STEP_MS: i64 = 15_000;

pub fn labels(series: usize) -> [(&'static str, String); 4] {
    [
        ("__name__", "http_requests_total".into()),
        ("code", "200".into()),
        ("job", "api".into()),
        ("path", format!("/{series}")),
    ]
}

pub fn time_ms(step: usize) -> i64 {
    START_MS + STEP_MS * step as i64
}

pub fn value(series: usize, step: usize) -> f64 {
    ((series * 31 + step * 17) % 1000) as f64 / 8.0
}

/// Returns the sum of all values, which are eighths, so that the order of adding does not matter.
pub fn sum() -> f64 {
    (0..SERIES).flat_map(|series| (0..STEPS).map(move |step| value(series, step))).sum()
}

/// Wall-clock and CPU seconds of a part of the work, over all threads.
#[derive(Clone, Copy)]
pub struct Spent {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

impl Spent {
    pub const MOST: Spent = Spent { seconds: f64::INFINITY, cpu_seconds: f64::INFINITY };

    /// Returns the run with less CPU time.
    pub fn least(self, other: Spent) -> Spent {
        if other.cpu_seconds < self.cpu_seconds { other } else { self }
    }
}

pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (began, cpu_began) = (Instant::now(), cpu_seconds());
    let given = work();
    let spent =
        Spent { seconds: began.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds() - cpu_began };
    (given, spent)
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
