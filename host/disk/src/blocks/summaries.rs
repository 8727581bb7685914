//! Summaries of block files, which the engine makes, kept in memory for later opens of a file.
//!
//! Their total size is limited. The least recently used summaries are dropped first, including
//! summaries of deleted blocks.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of all summaries together.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Summaries of files. Cheap to clone; clones share the memory.
#[derive(Clone, Default)]
pub(super) struct Summaries {
    kept: Arc<Mutex<VecDeque<Summary>>>,
}

struct Summary {
    path: Arc<Path>,
    bytes: Arc<[u8]>,
}

impl Summaries {
    /// Returns the summary of a file and marks it as used.
    pub(super) fn of(&self, path: &Path) -> Option<Vec<u8>> {
        let found = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let at = kept.iter().position(|summary| *summary.path == *path)?;
            let summary = kept.remove(at)?;
            let bytes = Arc::clone(&summary.bytes);
            // Summaries are dropped from the front, so a used summary moves to the back.
            kept.push_back(summary);
            bytes
        };
        // Copied after the lock is released, because a summary may have megabytes.
        Some(found.to_vec())
    }

    /// Keeps a summary, replacing an earlier summary of the same file.
    pub(super) fn keep(&self, path: &Arc<Path>, bytes: Vec<u8>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|summary| summary.path != *path);
        kept.push_back(Summary { path: Arc::clone(path), bytes: bytes.into() });
        let mut total: usize = kept.iter().map(Summary::memory_bytes).sum();
        while total > BYTES_MAX
            && let Some(oldest) = kept.pop_front()
        {
            total -= oldest.memory_bytes();
        }
    }
}

impl Summary {
    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.path.as_os_str().len() + size_of::<Summary>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Arc<Path> {
        Path::new(name).into()
    }

    #[test]
    fn the_latest_summary_comes_back() {
        let summaries = Summaries::default();
        assert_eq!(summaries.of(&path("a")), None);
        summaries.keep(&path("a"), vec![1]);
        summaries.clone().keep(&path("b"), vec![2]);
        summaries.keep(&path("a"), vec![3]);
        assert_eq!(
            (summaries.of(&path("a")), summaries.of(&path("b"))),
            (Some(vec![3]), Some(vec![2]))
        );
    }

    #[test]
    fn those_that_are_asked_for_stay() {
        let summaries = Summaries::default();
        let third = vec![7; BYTES_MAX / 3];
        for name in ["a", "b"] {
            summaries.keep(&path(name), third.clone());
        }
        assert!(summaries.of(&path("a")).is_some());
        summaries.keep(&path("c"), third.clone());
        let is_kept = |name: &str| summaries.of(&path(name)).is_some();
        assert_eq!(["a", "b", "c"].map(is_kept), [true, false, true]);
        summaries.keep(&path("d"), vec![7; BYTES_MAX + 1]);
        assert_eq!(["a", "c", "d"].map(is_kept), [false, false, false]);
    }
}
