//! Keeps records appended since the last completed sync, so that they can be written again.
//!
//! A failed sync may have lost any of these records for good, although they can still be read: the
//! kernel considers the pages written. Later records depend on lost ones, for example on the labels
//! of a series, and a sender that repeats a batch gets the answer that it is stored. So the next
//! segment begins with a copy of these records. Replay skips records that it has read before.

/// Maximum size of the kept records. If it is exceeded, a failed sync is only reported.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// A larger buffer is reduced to this size when its records are durable.
const BUFFER_KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Unsynced records, in the order in which they were appended.
#[derive(Default)]
pub(super) struct Unsynced {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Whether the limit was exceeded, so that records are missing.
    has_lost: bool,
}

impl Unsynced {
    pub fn add<R: AsRef<[u8]>>(&mut self, records: &[R]) {
        for record in records {
            let record = record.as_ref();
            self.has_lost |= self.bytes.len() + record.len() > BYTES_MAX;
            // Some of the records would be useless: later records may depend on missing ones.
            if self.has_lost {
                (self.bytes, self.ends) = (Vec::new(), Vec::new());
                return;
            }
            self.bytes.extend_from_slice(record);
            self.ends.push(self.bytes.len());
        }
    }

    /// Drops all records, because they are durable now.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_KEPT_BYTES_MAX);
        self.ends.clear();
        self.has_lost = false;
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && !self.has_lost
    }

    /// Returns all records; `None` if they exceeded the limit.
    pub fn records(&self) -> Option<Vec<&[u8]>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let record = |(start, end): (usize, &usize)| &self.bytes[start..*end];
        (!self.has_lost).then(|| starts.zip(&self.ends).map(record).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_up_to_a_bound() {
        let mut unsynced = Unsynced::default();
        unsynced.add(&[&b"a"[..], b"", b"bc"]);
        unsynced.add(&[b"d"]);
        assert_eq!(unsynced.records(), Some(vec![&b"a"[..], b"", b"bc", b"d"]));
        unsynced.add(&[vec![0; BYTES_MAX]]);
        assert_eq!(unsynced.records(), None);
        unsynced.add(&[b"e"]);
        assert_eq!(unsynced.records(), None);
        unsynced.clear();
        assert_eq!(unsynced.records(), Some(vec![]));
        unsynced.add(&[b"f"]);
        assert_eq!(unsynced.records(), Some(vec![&b"f"[..]]));
    }
}
