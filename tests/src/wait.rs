//! Waits for another process, always with a timeout; formats errors with their causes.

use std::error::Error;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// Error for something that did not happen in time.
#[derive(Debug, thiserror::Error)]
#[error("waited {:.0} s for {what}", .waited.as_secs_f64())]
pub struct TimedOut {
    /// Description of the awaited event.
    pub what: String,
    pub waited: Duration,
}

/// Calls a function repeatedly until it returns a value.
pub fn until<T>(
    what: &str,
    timeout: Duration,
    look: impl FnMut() -> Option<T>,
) -> Result<T, TimedOut> {
    until_every(PAUSE, what, timeout, look)
}

/// Calls a function after each such pause until it returns a value.
pub fn until_every<T>(
    pause: Duration,
    what: &str,
    timeout: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T, TimedOut> {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if start.elapsed() >= timeout {
            return Err(TimedOut { what: what.to_string(), waited: start.elapsed() });
        }
        std::thread::sleep(pause);
    }
}

/// Formats an error and all its causes in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
