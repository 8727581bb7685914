//! `tidepool tsdb`: the commands for a data directory, by themselves.

mod change;
mod import;
mod look;
mod verify;
