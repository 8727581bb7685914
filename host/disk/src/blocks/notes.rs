//! Notes about files of blocks, kept in memory: what those who open a file leave for the next.
//!
//! Bounded: the notes that were not asked for the longest go first. Those of a block that is
//! deleted go the same way.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of all notes together.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Notes about files. Cheap to clone; clones share what is kept.
#[derive(Clone, Default)]
pub(super) struct Notes {
    kept: Arc<Mutex<VecDeque<Note>>>,
}

struct Note {
    path: Arc<Path>,
    bytes: Arc<[u8]>,
}

impl Notes {
    /// The notes about a file.
    pub(super) fn of(&self, path: &Path) -> Option<Vec<u8>> {
        let found = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let at = kept.iter().position(|note| *note.path == *path)?;
            let note = kept.remove(at)?;
            let bytes = Arc::clone(&note.bytes);
            kept.push_back(note);
            bytes
        };
        Some(found.to_vec())
    }

    /// Keeps notes in place of earlier ones.
    pub(super) fn keep(&self, path: &Arc<Path>, bytes: Vec<u8>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|note| note.path != *path);
        kept.push_back(Note { path: Arc::clone(path), bytes: bytes.into() });
        let mut total: usize = kept.iter().map(Note::memory_bytes).sum();
        while total > BYTES_MAX
            && let Some(oldest) = kept.pop_front()
        {
            total -= oldest.memory_bytes();
        }
    }
}

impl Note {
    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.path.as_os_str().len() + size_of::<Note>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Arc<Path> {
        Path::new(name).into()
    }

    #[test]
    fn the_latest_notes_come_back() {
        let notes = Notes::default();
        assert_eq!(notes.of(&path("a")), None);
        notes.keep(&path("a"), vec![1]);
        notes.clone().keep(&path("b"), vec![2]);
        notes.keep(&path("a"), vec![3]);
        assert_eq!((notes.of(&path("a")), notes.of(&path("b"))), (Some(vec![3]), Some(vec![2])));
    }

    #[test]
    fn those_that_are_asked_for_stay() {
        let notes = Notes::default();
        let third = vec![7; BYTES_MAX / 3];
        for name in ["a", "b"] {
            notes.keep(&path(name), third.clone());
        }
        assert!(notes.of(&path("a")).is_some());
        notes.keep(&path("c"), third.clone());
        let is_kept = |name: &str| notes.of(&path(name)).is_some();
        assert_eq!(["a", "b", "c"].map(is_kept), [true, false, true]);
        notes.keep(&path("d"), vec![7; BYTES_MAX + 1]);
        assert_eq!(["a", "c", "d"].map(is_kept), [false, false, false]);
    }
}
