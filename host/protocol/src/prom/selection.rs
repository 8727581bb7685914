//! Limits on the matchers and selectors of one request, equal for all endpoints.
//!
//! Each matcher costs work for every series or value that it is compared with, and each selector a
//! list of series. So both are counted while a request is parsed, before any of that work.

use tidepool_runtime::Matcher;

/// Limit on the selectors of one request; queries of a remote read count as selectors.
pub const SELECTORS_MAX: usize = 100;

/// Limit on the matchers of one request, over all selectors; a metric name counts as a matcher.
pub const MATCHERS_MAX: usize = 200;

/// Error of a request with too many selectors or matchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at most {max} {what} are allowed in one request; ask several times")]
pub struct SelectionError {
    what: &'static str,
    max: usize,
}

/// Counts the selectors and matchers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectionCount {
    selectors: usize,
    matchers: usize,
}

impl SelectionCount {
    /// Counts one more selector; too many are an error.
    pub fn selector(&mut self) -> Result<(), SelectionError> {
        let what = "selectors";
        count(&mut self.selectors, SelectionError { what, max: SELECTORS_MAX })
    }

    /// Counts one more matcher, of any selector.
    pub fn matcher(&mut self) -> Result<(), SelectionError> {
        let what = "matchers (of all selectors together)";
        count(&mut self.matchers, SelectionError { what, max: MATCHERS_MAX })
    }

    /// Checks selectors that are already parsed.
    pub fn check<'a>(
        selectors: impl IntoIterator<Item = &'a Vec<Matcher>>,
    ) -> Result<(), SelectionError> {
        let mut all = SelectionCount::default();
        for matchers in selectors {
            all.selector()?;
            matchers.iter().try_for_each(|_| all.matcher())?;
        }
        Ok(())
    }
}

fn count(number: &mut usize, error: SelectionError) -> Result<(), SelectionError> {
    *number += 1;
    if *number > error.max { Err(error) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidepool_runtime::MatchOp;

    fn selectors(matchers: &[usize]) -> Vec<Vec<Matcher>> {
        let matcher = Matcher { name: "a".into(), op: MatchOp::NotEqual, value: "1".into() };
        matchers.iter().map(|count| vec![matcher.clone(); *count]).collect()
    }

    #[test]
    fn limits_count_over_the_whole_request() {
        for allowed in [vec![], vec![200], vec![150, 50], vec![2; 100], vec![0; 100]] {
            assert_eq!(SelectionCount::check(&selectors(&allowed)), Ok(()), "{allowed:?}");
        }
        for (refused, limit) in [
            (vec![201], "at most 200 matchers"),
            (vec![100, 101], "at most 200 matchers"),
            (vec![3; 67], "at most 200 matchers"),
            (vec![1; 101], "at most 100 selectors"),
        ] {
            let error = SelectionCount::check(&selectors(&refused)).map_err(|e| e.to_string());
            assert!(error.is_err_and(|text| text.starts_with(limit)), "{refused:?}");
        }
    }
}
