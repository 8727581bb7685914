//! `tidepool tsdb`: the command line over a data directory, by itself.

mod change;
mod import;
mod look;
mod verify;
