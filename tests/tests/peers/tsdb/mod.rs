//! `tidepool tsdb`, the commands for a data directory, compared with upstream's tools.

mod change;
mod import;
mod look;
mod verify;
