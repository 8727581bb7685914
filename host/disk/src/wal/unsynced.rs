//! The records appended since the last completed sync, so that they can be written again.
//!
//! A sync that fails may have lost any of it for good, though it still reads well: the kernel
//! counts the pages as written. Later records rely on what is lost, such as the labels of their
//! series, and a sender that repeats a batch gets the answer that it is stored. So the next segment
//! begins with a copy. Replay passes over what it meets a second time.

/// Most bytes that are kept. Beyond, a failed sync is only reported.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Buffers larger than this are given back when they are no longer needed.
const BUFFER_KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Records, in the order in which they were appended.
#[derive(Default)]
pub(super) struct Unsynced {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Whether some are missing here.
    has_lost: bool,
}

impl Unsynced {
    /// Adds records.
    pub fn add<R: AsRef<[u8]>>(&mut self, records: &[R]) {
        for record in records {
            let record = record.as_ref();
            self.has_lost |= self.bytes.len() + record.len() > BYTES_MAX;
            if self.has_lost {
                (self.bytes, self.ends) = (Vec::new(), Vec::new());
                return;
            }
            self.bytes.extend_from_slice(record);
            self.ends.push(self.bytes.len());
        }
    }

    /// Drops all: they are durable now.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_KEPT_BYTES_MAX);
        self.ends.clear();
        self.has_lost = false;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && !self.has_lost
    }

    /// All of them; `None` if that was too much to keep.
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
