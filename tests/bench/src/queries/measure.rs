//! Cost of one query in a server that was just started.

use super::super::BenchError;
use super::super::trial::settle;
use super::catalogue::STEP_MS;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidepool_tests::http::{Client, Response};
use tidepool_tests::process::{Server, UsageError};
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::wait::chain;

/// Pause between two looks at a server's memory.
const LOOK_PAUSE: Duration = Duration::from_millis(2);
/// Longest wait until a server is idle after its answer; background work meanwhile is counted.
const IDLE_AFTER_MAX: Duration = Duration::from_millis(200);
/// Maximum bytes of an error that are quoted.
const QUOTE_BYTES_MAX: usize = 300;
const HOUR_MS: i64 = 3_600_000;

/// Cost of a query, or the combined cost of several runs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// CPU of the server, until it was idle.
    pub cpu: Duration,
    /// Time from the request to the last byte of the answer.
    pub wall: Duration,
    /// Peak of the server's anonymous memory.
    pub peak_bytes: u64,
    /// Peak of anonymous memory over the memory before the request.
    pub extra_bytes: u64,
}

impl Cost {
    /// Combines two runs: the lesser times, which other work on the machine only makes longer, and
    /// the larger memory.
    pub fn joined(self, other: Cost) -> Cost {
        Cost {
            cpu: self.cpu.min(other.cpu),
            wall: self.wall.min(other.wall),
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
            extra_bytes: self.extra_bytes.max(other.extra_bytes),
        }
    }
}

/// Sends a query over some hours up to a time, or at that time. Returns the answer's body, or the
/// reason for its absence.
pub fn ask(
    server: &Server,
    idle_window: Duration,
    promql: &str,
    end_ms: i64,
    hours: Option<u32>,
) -> Result<Result<(Cost, Vec<u8>), String>, BenchError> {
    let query = percent_encode(promql);
    let seconds = |ms: i64| ms as f64 / 1e3;
    let (path, form) = match hours {
        None => ("query", format!("query={query}&time={}", seconds(end_ms))),
        Some(hours) => {
            let start = seconds(end_ms - i64::from(hours) * HOUR_MS);
            let (end, step) = (seconds(end_ms), seconds(STEP_MS));
            ("query_range", format!("query={query}&start={start}&end={end}&step={step}"))
        }
    };
    let url = format!("{}/api/v1/{path}", server.url());
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];

    let before = settle(server, idle_window)?;
    let is_over = AtomicBool::new(false);
    let (answer, wall, peak_bytes) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(server, &is_over));
        let begun = Instant::now();
        let answer = Client::default().post(&url, &headers, form.as_bytes());
        let wall = begun.elapsed();
        is_over.store(true, Relaxed);
        match watch.join() {
            Ok(peak_bytes) => (answer, wall, peak_bytes),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    let body = match answer {
        Ok(Response { status: 200, body, .. }) => body,
        Ok(refusal) => return Ok(Err(quoted(&refusal))),
        Err(error) => return Ok(Err(chain(&error))),
    };
    let after = settle(server, idle_window.min(IDLE_AFTER_MAX))?;
    let peak_bytes = peak_bytes?.max(before.anonymous_memory_bytes);
    let extra_bytes = peak_bytes - before.anonymous_memory_bytes;
    Ok(Ok((Cost { cpu: after.cpu - before.cpu, wall, peak_bytes, extra_bytes }, body)))
}

/// Returns the peak of a server's memory until the flag is set.
fn watch(server: &Server, is_over: &AtomicBool) -> Result<u64, UsageError> {
    let mut peak_bytes = 0;
    loop {
        let was_over = is_over.load(Relaxed);
        peak_bytes = server.anonymous_memory()?.max(peak_bytes);
        if was_over {
            return Ok(peak_bytes);
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}

/// Returns a refusal as one line.
fn quoted(refusal: &Response) -> String {
    let text = refusal.text();
    let end = text.floor_char_boundary(QUOTE_BYTES_MAX);
    format!("{}: {}", refusal.status, text[..end].replace(['\n', '|'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_by_the_least_times_and_the_most_memory() {
        let cost = |cpu, wall, peak_bytes, extra_bytes| Cost {
            cpu: Duration::from_millis(cpu),
            wall: Duration::from_millis(wall),
            peak_bytes,
            extra_bytes,
        };
        let Cost { cpu, wall, peak_bytes, extra_bytes } =
            cost(5, 9, 70, 20).joined(cost(6, 8, 60, 30));
        assert_eq!((cpu, wall), (Duration::from_millis(5), Duration::from_millis(8)));
        assert_eq!((peak_bytes, extra_bytes), (70, 30));
    }
}
