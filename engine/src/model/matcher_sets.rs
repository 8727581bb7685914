//! Several sets of matchers, of which one must hold as a whole.

use super::{Labels, MatchOp, Matcher, MatcherError, MatcherSpec};

/// What is compiled within a millisecond or two: so many matchers, so many bytes of names and
/// values, and of expressions among them.
const SLICE_MATCHERS_MAX: usize = 32;
const SLICE_TEXT_BYTES_MAX: usize = 16 * 1024;
const SLICE_REGEX_BYTES_MAX: usize = 512;

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
        let mut sets = MatcherSets { sets: Vec::with_capacity(specs.len().max(1)) };
        for spec in specs {
            sets.add(spec.iter().map(Matcher::new).collect::<Result<Vec<_>, _>>()?);
        }
        if specs.is_empty() {
            sets.add(Vec::new());
        }
        Ok(sets)
    }

    /// One set, of compiled matchers.
    pub fn of(matchers: Vec<Matcher>) -> MatcherSets {
        let mut sets = MatcherSets { sets: Vec::new() };
        sets.add(matchers);
        sets
    }

    fn add(&mut self, mut set: Vec<Matcher>) {
        if set.iter().all(|matcher| matcher.constant() != Some(false)) {
            set.retain(|matcher| matcher.constant().is_none());
            self.sets.push(set);
        }
    }

    /// Compiles sets if that is quickly done; `None` where it is not, or not at all.
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

    /// Whether a series with these labels is selected.
    pub fn select(&self, labels: &Labels) -> bool {
        let holds = |matcher: &Matcher| matcher.matches(labels.get(matcher.name()));
        self.sets.iter().any(|set| set.iter().all(holds))
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

    /// The verdict of the sets on a value of this label.
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
