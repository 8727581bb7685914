//! Progress of long work, on standard error, and only if standard error is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// Interval at which a spinner turns.
const TICK: Duration = Duration::from_millis(200);

/// A progress bar, or nothing without a terminal. The bar is removed on drop.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn bytes(what: impl Into<String>, total: u64) -> Progress {
        let template = "{msg} [{bar:30}] {bytes} of {total_bytes}, {eta} left";
        Progress::new(what, Some(total), template)
    }

    /// Returns a bar for a number without a unit.
    pub fn count(what: impl Into<String>, total: u64) -> Progress {
        Progress::new(what, Some(total), "{msg} [{bar:30}] {percent} %, {eta} left")
    }

    /// Returns a spinner, for work of unknown length.
    pub fn spinner(what: impl Into<String>) -> Progress {
        Progress::new(what, None, "{spinner} {msg}, {elapsed}")
    }

    /// Returns an invisible bar, for output that a visible bar would disturb.
    pub fn none() -> Progress {
        Progress(ProgressBar::hidden())
    }

    fn new(what: impl Into<String>, total: Option<u64>, template: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress::none();
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        // The templates are constants. With an invalid one, the bar has the default look.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.into());
        bar.enable_steady_tick(TICK);
        Progress(bar)
    }

    pub fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    /// Sets the text of the bar, such as the current step.
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

/// Writes a line to standard output. If it is closed, the error is ignored: the work and its exit
/// code still matter.
pub fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Writes a line to standard error. If it is closed, the error is ignored: the work and its exit
/// code still matter.
pub fn warn_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "tidepool: {line}");
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
