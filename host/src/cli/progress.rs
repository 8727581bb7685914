//! Progress of long work, on standard error and only if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// How often a spinner turns while nothing is reported.
const TICK: Duration = Duration::from_millis(200);

/// A bar, or nothing without a terminal. Dropping it removes the bar.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar up to a number of bytes.
    pub fn bytes(what: impl Into<String>, total: u64) -> Progress {
        let template = "{msg} [{bar:30}] {bytes} of {total_bytes}, {eta} left";
        Progress::new(what, Some(total), template)
    }

    /// A bar up to a number of no particular unit.
    pub fn count(what: impl Into<String>, total: u64) -> Progress {
        Progress::new(what, Some(total), "{msg} [{bar:30}] {percent} %, {eta} left")
    }

    /// A spinner, for work whose end is not known.
    pub fn spinner(what: impl Into<String>) -> Progress {
        Progress::new(what, None, "{spinner} {msg}, {elapsed}")
    }

    /// Nothing, where it would be in the way.
    pub fn none() -> Progress {
        Progress(ProgressBar::hidden())
    }

    fn new(what: impl Into<String>, total: Option<u64>, template: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress::none();
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.into());
        bar.enable_steady_tick(TICK);
        Progress(bar)
    }

    /// Where it is, of how much.
    pub fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// What is being done now.
    pub fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// Writes a line to standard error above the bar.
    pub fn warn(&self, line: &str) {
        self.0.suspend(|| warn_line(line));
    }

    /// Writes a line to standard output above the bar.
    pub fn print(&self, line: &str) {
        self.0.suspend(|| print_line(line));
    }
}

/// Writes a line to standard output. If its reader has closed it, the work and its exit code
/// still count.
pub fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Writes a line to standard error. If its reader has closed it, the work and its exit code
/// still count.
pub fn warn_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "tidepool: {line}");
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
