//! Several sets of matchers, of which one must hold as a whole.

use super::{Matcher, MatcherError, MatcherSpec};

/// Sets of matchers: a series is selected if all matchers of one set hold.
///
/// Matchers that take every series are left out, and so are sets that take none.
pub struct MatcherSets {
    sets: Vec<Vec<Matcher>>,
}

/// What sets of matchers say of one value of a label, whatever else the series carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every series with this value is selected.
    Selected,
    /// It depends on the series' other labels.
    Open,
    /// No series with this value is selected.
    Refused,
}

impl MatcherSets {
    /// Compiles sets. No set at all selects every series, as does a set without matchers.
    pub fn new(specs: &[Vec<MatcherSpec>]) -> Result<MatcherSets, MatcherError> {
        let mut sets = Vec::with_capacity(specs.len().max(1));
        for spec in specs {
            let mut set = spec.iter().map(Matcher::new).collect::<Result<Vec<_>, _>>()?;
            if set.iter().all(|matcher| matcher.constant() != Some(false)) {
                set.retain(|matcher| matcher.constant().is_none());
                sets.push(set);
            }
        }
        if specs.is_empty() {
            sets.push(Vec::new());
        }
        Ok(MatcherSets { sets })
    }

    /// The sets.
    pub fn sets(&self) -> &[Vec<Matcher>] {
        &self.sets
    }

    /// Whether every series is selected.
    pub fn select_all(&self) -> bool {
        self.sets.iter().any(Vec::is_empty)
    }

    /// The sets that look at more than this label.
    pub fn beyond(&self, name: &str) -> Vec<&[Matcher]> {
        let looks_beyond = |set: &&[Matcher]| set.iter().any(|matcher| matcher.name() != name);
        self.sets.iter().map(Vec::as_slice).filter(looks_beyond).collect()
    }

    /// What the sets say of a value of this label.
    pub fn verdict(&self, name: &str, value: &str) -> Verdict {
        let mut verdict = Verdict::Refused;
        for set in &self.sets {
            let mut of_name = set.iter().filter(|matcher| matcher.name() == name);
            if of_name.all(|matcher| matcher.matches(value)) {
                if set.iter().all(|matcher| matcher.name() == name) {
                    return Verdict::Selected;
                }
                verdict = Verdict::Open;
            }
        }
        verdict
    }

    /// Bounds of the values of a label that may be selected: none is below the first text, and
    /// none is above the second but those that begin with it.
    pub fn value_bounds(&self, name: &str) -> (&str, Option<&str>) {
        let [set] = self.sets.as_slice() else { return ("", None) };
        let mut bounds = ("", None);
        for matcher in set.iter().filter(|matcher| matcher.name() == name) {
            if matcher.is_negated() {
                continue;
            }
            let beginnings = matcher.literals().unwrap_or(matcher.prefixes());
            if let (Some(first), Some(last)) = (beginnings.first(), beginnings.last())
                && !first.is_empty()
            {
                bounds = (first.as_str().max(bounds.0), Some(last.as_str()));
            }
        }
        bounds
    }
}
