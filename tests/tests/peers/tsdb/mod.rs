//! `tidepool tsdb`: the command line over a data directory, judged by upstream's tools.

mod change;
mod import;
mod look;
mod verify;
