//! Bodies on which a decoder fails. A sender that is asked to retry sends the same body again
//! before all later bodies. A body on which the decoder fails repeatedly is therefore refused
//! finally.

use super::bindings::decoder::exports::tidepool::plugin::decode_bodies::Request;
use super::fault::Fault;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use tidepool_runtime::MemoryBound;

/// Number of failures after which a body is refused finally.
pub const FAILURES_MAX: u32 = 3;

/// Maximum number of remembered bodies. The body that failed longest ago is dropped first.
const BODIES_MAX: usize = 256;

#[derive(Default)]
pub struct PoisonList {
    hasher: RandomState,
    /// Hash and number of failures of each body, the latest failure last.
    failed: Mutex<VecDeque<(u64, u32)>>,
}

impl PoisonList {
    /// Returns the hash of a request: of everything that the decoder sees except the time.
    pub fn key(&self, request: &Request) -> u64 {
        let Request { content_type, path, query, body, received_ms: _ } = request;
        self.hasher.hash_one((content_type, path, query, body))
    }

    /// Counts a failure of a body, and returns the number of failures so far.
    pub fn failed(&self, key: u64) -> u32 {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let at = failed.iter().position(|(other, _)| *other == key);
        // Removed and pushed again, so that the queue stays in order of the last failure.
        let before = at.and_then(|at| failed.remove(at)).map_or(0, |(_, count)| count);
        if failed.len() >= BODIES_MAX {
            failed.pop_front();
        }
        let count = before.saturating_add(1);
        failed.push_back((key, count));
        count
    }
}

/// Returns whether the body may have caused a fault. Timeouts and a lack of shared memory depend on
/// other things than the body.
pub fn may_be_poison(fault: &Fault) -> bool {
    match fault {
        Fault::Trap(_) | Fault::Memory(MemoryBound::Own) | Fault::Flood(_) | Fault::Invalid(_) => {
            true
        }
        Fault::Refused(_)
        | Fault::Timeout(_)
        | Fault::Memory(MemoryBound::Shared)
        | Fault::Skipped(_)
        | Fault::View(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &[u8]) -> Request {
        let (content_type, path, query) = (String::new(), String::new(), String::new());
        Request { content_type, path, query, received_ms: 0, body: body.to_vec() }
    }

    #[test]
    fn failures_are_counted_by_body_within_bounds() {
        let list = PoisonList::default();
        let [bad, other] = [b"bad", b"two"].map(|body| list.key(&request(body)));
        let later = Request { received_ms: 5, ..request(b"bad") };
        assert_eq!(list.key(&later), bad);
        let moved = Request { query: "db=a".to_owned(), ..request(b"bad") };
        assert_ne!(list.key(&moved), bad);
        assert_eq!([list.failed(bad), list.failed(other), list.failed(bad)], [1, 1, 2]);
        for number in 0..BODIES_MAX - 1 {
            list.failed(list.key(&request(&number.to_le_bytes())));
        }
        assert_eq!([list.failed(bad), list.failed(other)], [3, 1]);
    }
}
