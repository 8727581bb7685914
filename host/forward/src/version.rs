//! Chooses the version of remote write for a receiver: the configured version, or 1.0 for a while
//! after the receiver did not accept 2.0.
//!
//! Source: Remote-Write 2.0 specification, sections "Required Written Response Headers" and "2.x vs
//! 1.x Compatibility".

use std::time::{Duration, Instant};
use tidepool_runtime::RemoteWriteVersion;

/// Time for which a receiver gets 1.0 after it did not accept 2.0. By then it may have been
/// updated, or the refusal may have come from another server.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(300);

/// The configured version, and whether 1.0 is used instead of it.
pub(super) struct Negotiated {
    configured: RemoteWriteVersion,
    /// Time since which 1.0 is sent instead of 2.0.
    fell_back: Option<Instant>,
    has_told: bool,
}

impl Negotiated {
    pub fn new(configured: RemoteWriteVersion) -> Negotiated {
        Negotiated { configured, fell_back: None, has_told: false }
    }

    /// Returns the version for a request that is made at `now`.
    pub fn version(&mut self, now: Instant) -> RemoteWriteVersion {
        let is_over = |at: &Instant| now.saturating_duration_since(*at) >= ASK_AGAIN_AFTER;
        self.fell_back = self.fell_back.take_if(|at| !is_over(at));
        match self.fell_back {
            Some(_) => RemoteWriteVersion::V1,
            None => self.configured,
        }
    }

    /// Records that the receiver did not accept 2.0; returns whether this is to be logged.
    pub fn not_taken(&mut self, now: Instant) -> bool {
        self.fell_back = Some(now);
        // Requests sent before the first refusal end with the same refusal, which is logged once.
        !std::mem::replace(&mut self.has_told, true)
    }

    /// Records an accepted version; returns whether 2.0 works again after 1.0 was used.
    pub fn taken(&mut self, version: RemoteWriteVersion) -> bool {
        version == RemoteWriteVersion::V2 && std::mem::take(&mut self.has_told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RemoteWriteVersion::{V1, V2};

    #[test]
    fn a_receiver_that_did_not_take_2_0_is_asked_again() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut negotiated = Negotiated::new(V2);
        assert_eq!(negotiated.version(at(0)), V2);
        assert!(negotiated.not_taken(at(1)));
        // Other requests were on their way.
        assert!(!negotiated.not_taken(at(2)));
        assert!(!negotiated.taken(V1));
        assert_eq!([2, 100, 301].map(|seconds| negotiated.version(at(seconds))), [V1, V1, V1]);
        assert_eq!(negotiated.version(at(302)), V2);
        assert!(!negotiated.not_taken(at(303)), "it is no news");
        assert_eq!(negotiated.version(at(602)), V1);
        assert_eq!(negotiated.version(at(603)), V2);
        assert!(negotiated.taken(V2) && !negotiated.taken(V2));
        assert!(negotiated.not_taken(at(700)), "it is news again");
    }

    #[test]
    fn a_receiver_of_1_0_gets_1_0() {
        let mut negotiated = Negotiated::new(V1);
        assert_eq!(negotiated.version(Instant::now()), V1);
        assert!(!negotiated.taken(V1));
    }
}
