//! Collects the promises that a storage breaks.

use std::fmt::Debug;

#[derive(Default)]
pub struct Broken {
    pub sentences: Vec<String>,
}

impl Broken {
    /// Records a sentence unless a call returned the expected value.
    pub fn same<T: PartialEq + Debug>(&mut self, what: &str, got: T, expected: T) {
        if got != expected {
            self.sentences.push(format!("{what}: {got:?} instead of {expected:?}"));
        }
    }

    /// Records a sentence unless a condition holds.
    pub fn holds(&mut self, what: &str, holds: bool) {
        if !holds {
            self.sentences.push(what.to_owned());
        }
    }

    /// Records a sentence unless a call succeeded; returns its result.
    pub fn done<T, E: Debug>(&mut self, what: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.sentences.push(format!("{what}: failed with {error:?}"))).ok()
    }
}
