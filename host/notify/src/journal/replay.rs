//! Reads events in order, over segments and what is not written yet, and keeps the alerts that are
//! open on the way.
//!
//! ```text
//! segments   ┌ snapshot, 1 2 3 ┐ ┌ snapshot, 4 5 6 ┐ ┌ snapshot, 7 8 ┐   memory: 9 10
//! from = 5                         read ▲ │ visited: open as of 5, 5, 6, 7 …
//! ```
//!
//! Reading begins at the last whole snapshot before `from`. Later snapshots are compared with what
//! the events before them left open: they differ where an event was lost.

use super::open_alerts::OpenAlerts;
use super::reader::{Piece, Reader};
use super::segment::{Segment, path_of};
use crate::event::Entry;
use crate::journal::format::Record;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tidepool_disk::fs::Disk;

/// What a scan of the journal visits.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// An alert that was open before the events that follow, with the event of its begin, which is
    /// before them or is lost.
    Open(&'a Entry),
    Event(&'a Entry),
}

pub(super) struct Replay<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) dir: &'a Path,
    from: u64,
    visit: &'a mut dyn FnMut(Item<'_>),
    open: OpenAlerts,
    /// Number of the last event; later ones have larger numbers.
    last: u64,
    is_visiting: bool,
}

/// The snapshot of a segment as far as it was read.
#[derive(Default)]
struct Snapshot {
    expected: Option<u32>,
    opens: Vec<Arc<Entry>>,
    is_done: bool,
}

impl<'a> Replay<'a> {
    pub(super) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        from: u64,
        visit: &'a mut dyn FnMut(Item<'_>),
    ) -> Replay<'a> {
        let (open, last, is_visiting) = (OpenAlerts::default(), 0, false);
        Replay { disk, dir, from, visit, open, last, is_visiting }
    }

    /// Reads segments and events behind them. Calls `trouble` for what is damaged in a segment.
    pub(super) fn run<'s>(
        mut self,
        segments: &'s [Segment],
        unwritten: &[Arc<Entry>],
        trouble: &mut dyn FnMut(&'s Segment, Piece),
    ) {
        let begin = segments.partition_point(|segment| segment.first <= self.from);
        let is_whole = |segment: &Segment| segment.is_snapshot_whole;
        let begin = segments[..begin].iter().rposition(is_whole).unwrap_or(0);
        for (index, segment) in segments.iter().enumerate().skip(begin) {
            let limit = segments.get(index + 1).map_or(u64::MAX, |next| next.first);
            if !segment.is_readable {
                continue;
            }
            match self.segment(segment, limit, trouble) {
                // The limits dropped it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => trouble(segment, Piece::Unreadable { offset: 0, source }),
                Ok(()) => {}
            }
        }
        for entry in unwritten {
            self.event(entry);
        }
        self.begin_visits();
    }

    fn segment<'s>(
        &mut self,
        segment: &'s Segment,
        limit: u64,
        trouble: &mut dyn FnMut(&'s Segment, Piece),
    ) -> io::Result<()> {
        let path = path_of(self.dir, segment.first);
        let mut reader = Reader::open(self.disk, &path, Some(segment.bytes))?;
        let mut snapshot = Snapshot::default();
        while let Some(piece) = reader.next() {
            match piece {
                Piece::Record(Record::Begin { opens, .. }) => snapshot.expected = Some(opens),
                Piece::Record(Record::Open(entry)) => snapshot.opens.push(Arc::new(entry)),
                Piece::Record(Record::Event(entry)) => {
                    self.snapshot(&mut snapshot);
                    if entry.number >= segment.first && entry.number < limit {
                        self.event(&Arc::new(entry));
                    }
                }
                Piece::Record(Record::Unknown) => {}
                piece => trouble(segment, piece),
            }
        }
        self.snapshot(&mut snapshot);
        Ok(())
    }

    fn snapshot(&mut self, snapshot: &mut Snapshot) {
        if std::mem::replace(&mut snapshot.is_done, true) {
            return;
        }
        let opens = std::mem::take(&mut snapshot.opens);
        for entry in opens.iter().filter(|entry| !self.open.has(entry)) {
            if self.is_visiting {
                (self.visit)(Item::Open(entry));
            }
        }
        if snapshot.expected == u32::try_from(opens.len()).ok() {
            self.open.clear();
        }
        for entry in &opens {
            self.open.apply(entry);
        }
    }

    fn event(&mut self, entry: &Arc<Entry>) {
        if entry.number <= self.last {
            return;
        }
        self.last = entry.number;
        if entry.number >= self.from {
            self.begin_visits();
            (self.visit)(Item::Event(entry));
        }
        self.open.apply(entry);
    }

    fn begin_visits(&mut self) {
        if !std::mem::replace(&mut self.is_visiting, true) {
            for entry in self.open.entries() {
                (self.visit)(Item::Open(&entry));
            }
        }
    }
}
