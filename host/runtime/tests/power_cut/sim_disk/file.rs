//! One simulated file: its bytes, and their possible states after a power cut.

use std::sync::Arc;
use tidepool_tests::series::Random;

const PAGE_BYTES: usize = 4096;

#[derive(Clone, Default)]
pub(super) struct FileNode {
    pub seen: Arc<Vec<u8>>,
    pub durable: Arc<Vec<u8>>,
    pub unsynced: Vec<FileChange>,
}

#[derive(Clone)]
pub(super) enum FileChange {
    Write {
        offset: usize,
        bytes: Arc<[u8]>,
    },
    /// Changes the length and the bytes from `from` on.
    SetLen {
        len: usize,
        from: usize,
    },
}

impl FileNode {
    pub fn change(&mut self, change: FileChange) {
        change.apply(Arc::make_mut(&mut self.seen));
        self.unsynced.push(change);
    }

    /// Bytes of the file after a power cut.
    pub fn survivor(&self, random: &mut Random) -> Vec<u8> {
        if self.unsynced.is_empty() {
            return self.durable.to_vec();
        }
        let mut versions = vec![self.durable.to_vec()];
        for change in &self.unsynced {
            let mut next = versions.last().cloned().unwrap_or_default();
            change.apply(&mut next);
            versions.push(next);
        }
        let last = versions.len() - 1;
        match random.below(6) {
            0 => return versions.swap_remove(0),
            1 => return versions.swap_remove(last),
            // In order, up to some byte of some change.
            2 => {
                let at = random.below(last as u64) as usize;
                let (before, after) = (&versions[at], &versions[at + 1]);
                let end = random.below(after.len() as u64 + 1) as usize;
                let mut torn = after[..end].to_vec();
                torn.extend_from_slice(before.get(end..).unwrap_or_default());
                return torn;
            }
            _ => {}
        }
        let any = |random: &mut Random| match random.below(4) {
            0 => 0,
            1 => last,
            _ => random.below(versions.len() as u64) as usize,
        };
        let mut survivor = vec![0; versions[any(random)].len()];
        for (at, page) in (0..).step_by(PAGE_BYTES).zip(survivor.chunks_mut(PAGE_BYTES)) {
            let mut end = page.len();
            // Torn pages are rarer than whole ones.
            while end > 0 {
                let version = &versions[any(random)];
                let from = version.get(at..version.len().min(at + end)).unwrap_or_default();
                page[..end].fill(0);
                page[..from.len()].copy_from_slice(from);
                end = if random.one_in(4) { random.below(end as u64) as usize } else { 0 };
            }
        }
        survivor
    }

    /// Makes the present content of changed pages durable.
    pub fn sync(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        durable.resize(self.seen.len(), 0);
        for change in self.unsynced.drain(..) {
            let (start, end) = change.range(self.seen.len());
            let start = start - start % PAGE_BYTES;
            let end = end.next_multiple_of(PAGE_BYTES).min(self.seen.len());
            if start < end {
                durable[start..end].copy_from_slice(&self.seen[start..end]);
            }
        }
    }
}

impl FileChange {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            FileChange::SetLen { len, .. } => file.resize(*len, 0),
            FileChange::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*offset..end].copy_from_slice(bytes);
            }
        }
    }

    /// The range of bytes that the change touches in a file of length `len`.
    fn range(&self, len: usize) -> (usize, usize) {
        match self {
            FileChange::SetLen { from, .. } => ((*from).min(len), len),
            FileChange::Write { offset, bytes } => {
                ((*offset).min(len), (offset + bytes.len()).min(len))
            }
        }
    }
}
