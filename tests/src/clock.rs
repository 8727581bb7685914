//! The time at which tests begin: always the same, so that no test depends on the time of day.
//!
//! The program under test gets the offset of its clock. Tests beside foreign servers, whose clocks
//! are not moved, use the system's clock: those of the test program `peers`, and the benchmarks. If
//! the position of samples in the ranges of blocks matters, these tests also use samples that end
//! at [`begin_ms()`], which is long ago by then. Neither tidepool nor Prometheus cuts, merges or
//! drops blocks by a clock that is ahead of the samples.

use std::process::Command;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable that moves the clock of the program under test, in milliseconds.
pub const OFFSET_VARIABLE: &str = "TIDEPOOL_CLOCK_OFFSET_MS";
/// Variable that moves the beginning of tests by some minutes.
const PHASE_VARIABLE: &str = "TIDEPOOL_TEST_PHASE";
/// Prefixes of the test programs that begin at this time.
const PROGRAMS: [&str; 2] = ["process-", "measured-"];
/// 10:37 UTC on 3 March 2026.
const BEGIN_MS: i64 = 1772534220000;

static OFFSET_MS: LazyLock<i64> = LazyLock::new(|| {
    let program = std::env::current_exe().unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if !PROGRAMS.iter().any(|begin| name.starts_with(begin)) {
        return 0;
    }
    begin_ms() - system_ms()
});

/// Returns the time at which tests begin, in milliseconds since the Unix epoch, whatever the clock.
pub fn begin_ms() -> i64 {
    let phase = std::env::var(PHASE_VARIABLE).map_or(0, |phase| {
        let minutes: i64 = phase.parse().unwrap_or_else(|e| panic!("{PHASE_VARIABLE}: {e}"));
        minutes * 60_000
    });
    BEGIN_MS + phase
}

/// Returns milliseconds since the Unix epoch, for the tests and the program under test alike.
pub fn now_ms() -> i64 {
    system_ms() + *OFFSET_MS
}

/// Moves the clock of a command's process.
pub fn moved(command: &mut Command) -> &mut Command {
    command.env(OFFSET_VARIABLE, OFFSET_MS.to_string())
}

/// Returns milliseconds since the Unix epoch by the system's clock.
pub fn system_ms() -> i64 {
    // With a clock before 1970, later tests fail with messages of their own.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
