//! Results of the tests of a file.

/// A file with its tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suite {
    /// Path of the file.
    pub name: String,
    /// Local time of the run, without time zone; empty if the file could not be read.
    pub time: String,
    pub cases: Vec<Case>,
    /// Why no test ran.
    pub aborted: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    /// Texts of all that failed.
    pub failures: Vec<String>,
}

impl Suite {
    pub fn has_passed(&self) -> bool {
        self.aborted.is_none() && self.failure_count() == 0
    }

    pub fn failure_count(&self) -> usize {
        self.cases.iter().map(|case| case.failures.len()).sum()
    }

    /// What failed, in the order of the tests.
    pub fn errors(&self) -> impl Iterator<Item = &str> {
        let failures = self.cases.iter().flat_map(|case| &case.failures);
        self.aborted.iter().chain(failures).map(String::as_str)
    }
}
