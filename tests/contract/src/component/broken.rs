//! What was found.

use std::fmt::Debug;

/// Promises that were not kept.
#[derive(Default)]
pub struct Broken {
    pub sentences: Vec<String>,
}

impl Broken {
    /// A call has to return this.
    pub fn same<T: PartialEq + Debug>(&mut self, what: &str, got: T, expected: T) {
        if got != expected {
            self.sentences.push(format!("{what}: {got:?} instead of {expected:?}"));
        }
    }

    /// Something has to hold.
    pub fn holds(&mut self, what: &str, holds: bool) {
        if !holds {
            self.sentences.push(what.to_owned());
        }
    }

    /// A call has to succeed; returns its result.
    pub fn done<T, E: Debug>(&mut self, what: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.sentences.push(format!("{what}: failed with {error:?}"))).ok()
    }
}
