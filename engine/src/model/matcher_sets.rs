//! Several sets of matchers; all matchers of at least one set must hold.

use super::{Labels, MatchOp, Matcher, MatcherError, MatcherSpec};

/// Largest number of matchers that are compiled in one slice, within a millisecond or two.
const SLICE_MATCHERS_MAX: usize = 32;
/// Largest length of all names and values of these matchers, in bytes.
const SLICE_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Largest length of all regular expressions of these matchers, in bytes.
const SLICE_REGEX_BYTES_MAX: usize = 512;

/// Sets of matchers: a series is selected if all matchers of one set hold.
///
/// Matchers that select every series are left out, and so are sets that select no series.
pub struct MatcherSets {
    sets: Vec<Vec<Matcher>>,
}

/// Verdict of matcher sets on a value of a label, whatever other labels a series has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every series with this value is selected.
    Selected,
    /// The series' other labels decide whether it is selected.
    Open,
    /// No series with this value is selected.
    Refused,
}

impl MatcherSets {
    /// Compiles sets. Without any set every series is selected, as by a set without matchers.
    pub fn new(specs: &[Vec<MatcherSpec>]) -> Result<MatcherSets, MatcherError> {
        let mut sets = MatcherSets { sets: Vec::with_capacity(specs.len().max(1)) };
        for spec in specs {
            sets.add(spec.iter().map(Matcher::new).collect::<Result<Vec<_>, _>>()?);
        }
        // A request without a selector means all series.
        if specs.is_empty() {
            sets.add(Vec::new());
        }
        Ok(sets)
    }

    /// Makes a single set of compiled matchers.
    pub fn of(matchers: Vec<Matcher>) -> MatcherSets {
        let mut sets = MatcherSets { sets: Vec::new() };
        sets.add(matchers);
        sets
    }

    fn add(&mut self, mut set: Vec<Matcher>) {
        // A set selects nothing if one of its matchers selects nothing.
        if set.iter().all(|matcher| matcher.constant() != Some(false)) {
            set.retain(|matcher| matcher.constant().is_none());
            self.sets.push(set);
        }
    }

    /// Compiles sets within one slice of work; `None` if they need more, or if one is invalid.
    pub fn of_a_slice(specs: &[Vec<MatcherSpec>]) -> Option<MatcherSets> {
        let all = || specs.iter().flatten();
        let bytes: usize = all().map(|spec| spec.name.len() + spec.value.len()).sum();
        let regexes = || all().filter(|spec| matches!(spec.op, MatchOp::Regex | MatchOp::NotRegex));
        let regex_bytes: usize = regexes().map(|spec| spec.value.len()).sum();
        let is_quick = all().count() <= SLICE_MATCHERS_MAX
            && bytes <= SLICE_TEXT_BYTES_MAX
            && regex_bytes <= SLICE_REGEX_BYTES_MAX
            && regexes().all(|spec| Matcher::is_quickly_compiled(&spec.value));
        if !is_quick {
            return None;
        }
        // Only small matchers, because larger ones could exceed the time and memory of a slice.
        let compile = |set: &Vec<MatcherSpec>| -> Option<Vec<Matcher>> {
            set.iter().map(|spec| Matcher::new_small(spec).ok()).collect()
        };
        let mut sets = MatcherSets { sets: Vec::with_capacity(specs.len().max(1)) };
        for set in specs {
            sets.add(compile(set)?);
        }
        if specs.is_empty() {
            sets.add(Vec::new());
        }
        Some(sets)
    }

    /// Returns whether a series with these labels is selected.
    pub fn select(&self, labels: &Labels) -> bool {
        let holds = |matcher: &Matcher| matcher.matches(labels.get(matcher.name()));
        self.sets.iter().any(|set| set.iter().all(holds))
    }

    /// The sets that may select series, in the order given.
    pub fn sets(&self) -> &[Vec<Matcher>] {
        &self.sets
    }

    /// Returns whether every series is selected.
    pub fn select_all(&self) -> bool {
        self.sets.iter().any(Vec::is_empty)
    }

    /// Returns the sets that also have matchers of other labels than this label.
    pub fn beyond(&self, name: &str) -> Vec<&[Matcher]> {
        let looks_beyond = |set: &&[Matcher]| set.iter().any(|matcher| matcher.name() != name);
        self.sets.iter().map(Vec::as_slice).filter(looks_beyond).collect()
    }

    /// Returns the verdict of the sets on a value of this label.
    pub fn verdict(&self, name: &str, value: &str) -> Verdict {
        // One set suffices, so a matching set of this label alone decides.
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

    /// Returns bounds of the selected values of a label: no value is below the first text, and a
    /// value above the second text begins with it.
    pub fn value_bounds(&self, name: &str) -> (&str, Option<&str>) {
        // Only a single set has bounds: several sets would need the union of their bounds.
        let [set] = self.sets.as_slice() else { return ("", None) };
        let mut bounds = ("", None);
        for matcher in set.iter().filter(|matcher| matcher.name() == name) {
            // A negated matcher excludes few values, which gives no bounds.
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
