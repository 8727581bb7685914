//! Parameters of ours for long lists: `search` keeps what has all of its words, `offset` and
//! `limit` choose a part. Such answers say in the field `total` how many entries there are. Without
//! `search` and `offset` an answer is as upstream's.

use super::envelope::ApiError;
use super::parameters::Parameters;

/// The part of a list that is asked for, and what was counted so far.
#[derive(Debug, Default)]
pub struct Window {
    /// Words in lower case.
    words: Vec<String>,
    offset: u64,
    /// Most entries; 0 is no limit.
    limit: u64,
    total: u64,
}

impl Window {
    /// What a request asks for; `None` if it asks as of upstream.
    pub fn of(parameters: &Parameters) -> Result<Option<Window>, ApiError> {
        let (offset, limit) = (parameters.number("offset")?, parameters.limit()?);
        let search = parameters.first("search");
        if offset.is_none() && search.is_empty() {
            return Ok(None);
        }
        let offset = u64::try_from(offset.unwrap_or(0))
            .map_err(|_| ApiError::parameter("offset", "offset must be non-negative"))?;
        let words = search.split_whitespace().map(str::to_lowercase).collect();
        Ok(Some(Window { words, offset, limit, total: 0 }))
    }

    /// Counts an entry with this text. Whether the answer has it.
    pub fn takes(&mut self, text: &str) -> bool {
        if !self.finds(text) {
            return false;
        }
        let place = self.total;
        self.total += 1;
        place >= self.offset && (self.limit == 0 || place - self.offset < self.limit)
    }

    /// Entries that were found so far, those outside of the part included.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether some were found behind the part.
    pub fn is_cut_off(&self) -> bool {
        self.limit != 0 && self.total > self.offset.saturating_add(self.limit)
    }

    /// Whether a text has all words in it, in their order and in any case.
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
