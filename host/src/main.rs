//! The `tidepool` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidepool_host::program::run()
}
