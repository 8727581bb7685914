//! Our parameters for long lists: `search` filters by words, `offset` and `limit` select a part.
//! The response then has the number of matching entries in `total`. Without `search` and `offset`,
//! the response is the same as upstream's.

use super::envelope::ApiError;
use super::parameters::Parameters;

/// The requested part of a list, and the number of entries seen so far.
#[derive(Debug, Default)]
pub struct Window {
    /// Words of `search` in lower case.
    words: Vec<String>,
    offset: u64,
    /// Maximum number of entries; 0 for no limit.
    limit: u64,
    total: u64,
}

impl Window {
    /// Reads the parameters; `None` without `search` and `offset`.
    pub fn of(parameters: &Parameters) -> Result<Option<Window>, ApiError> {
        let (offset, limit) = (parameters.number("offset")?, parameters.limit()?);
        let search = parameters.first("search");
        // Without `search` and `offset`, `limit` has the same meaning as in upstream.
        if offset.is_none() && search.is_empty() {
            return Ok(None);
        }
        let offset = u64::try_from(offset.unwrap_or(0))
            .map_err(|_| ApiError::parameter("offset", "offset must be non-negative"))?;
        let words = search.split_whitespace().map(str::to_lowercase).collect();
        Ok(Some(Window { words, offset, limit, total: 0 }))
    }

    /// Counts an entry if `text` matches, and returns whether the response includes it.
    pub fn takes(&mut self, text: &str) -> bool {
        if !self.finds(text) {
            return false;
        }
        let place = self.total;
        self.total += 1;
        place >= self.offset && (self.limit == 0 || place - self.offset < self.limit)
    }

    /// Returns the number of matching entries so far, inside and outside of the requested part.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns whether entries after the requested part matched.
    pub fn is_cut_off(&self) -> bool {
        self.limit != 0 && self.total > self.offset.saturating_add(self.limit)
    }

    /// Returns whether a text contains all words in the given order, ignoring case.
    fn finds(&self, text: &str) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let lower = text.to_lowercase();
        let mut rest = lower.as_str();
        self.words.iter().all(|word| match rest.find(word) {
            Some(at) => {
                rest = &rest[at + word.len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(search: &str, offset: u64, limit: u64) -> Window {
        let words = search.split_whitespace().map(str::to_owned).collect();
        Window { words, offset, limit, total: 0 }
    }

    #[test]
    fn a_part_of_what_is_found_is_taken() {
        let names = ["node_cpu", "node_load1", "up", "NODE_disk", "node_x"];
        let of = |mut window: Window| {
            let taken: Vec<&str> = names.into_iter().filter(|name| window.takes(name)).collect();
            (taken, window.total(), window.is_cut_off())
        };
        assert_eq!(of(window("node", 1, 2)), (vec!["node_load1", "NODE_disk"], 4, true));
        assert_eq!(of(window("node", 3, 2)), (vec!["node_x"], 4, false));
        assert_eq!(of(window("", 4, 0)), (vec!["node_x"], 5, false));
        assert_eq!(of(window("up", 7, 1)), (vec![], 1, false));
        assert_eq!(of(window("up", u64::MAX, u64::MAX)), (vec![], 1, false));
    }

    #[test]
    fn words_are_found_in_their_order() {
        for (search, found) in [("od lo", true), ("lo od", false), ("oad oad", false), ("", true)] {
            assert_eq!(window(search, 0, 0).finds("Node_LOAD1"), found, "{search}");
        }
    }
}
