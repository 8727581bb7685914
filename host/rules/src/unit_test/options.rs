//! What is run, and what is shown.

use crate::file;
use tidepool_relabel::Search;

pub struct Options<'a> {
    /// Names of the tests that run; `None`: all.
    pub run: Option<&'a Search>,
    /// Whether wrong alerts are shown as differences, in colours.
    pub diff: bool,
    /// Whether names and all samples of the tests are written.
    pub debug: bool,
    /// How rule files are read.
    pub rules: file::Options,
}
