//! The system's clock. All parts of the program read the time through this module.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Environment variable with a number of milliseconds that is added to the time. Only tests set it,
/// so that they do not depend on the time of day.
const OFFSET_VARIABLE: &str = "TIDEPOOL_CLOCK_OFFSET_MS";

/// Milliseconds since the Unix epoch by the system's clock, which may be wrong.
pub fn system_now_ms() -> i64 {
    i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX)
}

/// Time since the Unix epoch in the clock's resolution; zero for a clock before the epoch.
pub fn since_epoch() -> Duration {
    // Read once, because every request asks for the time.
    static OFFSET_MS: LazyLock<i64> = LazyLock::new(|| {
        let offset = std::env::var(OFFSET_VARIABLE).ok();
        offset.and_then(|offset| offset.parse().ok()).unwrap_or(0)
    });
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let offset = Duration::from_millis(OFFSET_MS.unsigned_abs());
    match *OFFSET_MS < 0 {
        true => since.saturating_sub(offset),
        false => since.saturating_add(offset),
    }
}

/// Time since the machine was started, on a clock that is never set and that counts the time in
/// which the machine was suspended (`CLOCK_BOOTTIME`).
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of [`system_now_ms`] as a calendar time, for texts and file names.
pub fn system_now() -> Timestamp {
    Timestamp::from_millisecond(system_now_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
}
