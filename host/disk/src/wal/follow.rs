//! Reads a log while its writer appends to it, including held segments.
//!
//! Records of the segment being written are read up to the position that its writer has committed:
//! the file may be longer for a moment, until a failed write is undone. If the end of the last
//! segment looks torn, it is read again later.

use super::LogKind;
use super::committed::Committed;
use super::held::{Holding, listing};
use super::pack::Unpacker;
use super::page::HEADER_BYTES;
use super::reader::{DamagedPlace, SegmentReader, Tail};
use super::records::Records;
use super::segment::{SegmentFile, WalListing};
use super::stats::Counters;
use crate::DataDir;
use crate::error::{Action, Result};
use crate::fs::{Access, Disk, DiskFile};
use std::path::PathBuf;
use std::sync::Arc;

pub struct LogFollower {
    disk: Arc<dyn Disk>,
    holding: Holding,
    committed: Committed,
    log: LogKind,
    dir: PathBuf,
    unpacker: Unpacker,
    /// The segment to read next, if none is open.
    next_segment: u32,
    current: Option<Current>,
    /// Segment and byte at which reading stops.
    limit: Option<(u32, u64)>,
}

struct Current {
    segment: u32,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    reader: SegmentReader,
    /// Readable length of the file at the last look.
    size_bytes: u64,
    records: u32,
    /// Whether a later segment existed when the length was read.
    is_final: bool,
}

/// Result of a step of following a log.
#[derive(Debug)]
pub enum Followed {
    /// Whole records of a segment.
    Records {
        segment: u32,
        /// The first record's number within the segment.
        first: u32,
        records: Records,
    },
    /// A segment was read to its end.
    End {
        /// Number of the segment that has ended.
        segment: u32,
    },
    /// The log has no further records for now.
    Nothing,
}

/// Files with the series of a log before a segment: a checkpoint, and the segments after it.
pub struct SeriesFiles {
    files: std::vec::IntoIter<(u32, PathBuf)>,
    disk: Arc<dyn Disk>,
}

impl LogFollower {
    /// Begins at the front of `segment`, or of the first later one.
    pub fn new(data: &DataDir, log: LogKind, segment: u32) -> LogFollower {
        LogFollower {
            disk: data.disk(),
            holding: data.holding().clone(),
            committed: data.committed().of(log).clone(),
            log,
            dir: log.dir(data),
            unpacker: Unpacker::default(),
            next_segment: segment,
            current: None,
            limit: None,
        }
    }

    /// Limits reading to the present end of the log, until the next call.
    pub fn observe(&mut self) -> Result<()> {
        // Unset first, because `size_of` would apply the old limit.
        self.limit = None;
        let last = self.segments()?.pop();
        let last = last.map(|last| (last.number, self.size_of(last.number, last.size_bytes)));
        self.limit = Some(last.unwrap_or((0, 0)));
        Ok(())
    }

    /// The last of the listed segments that may be read.
    fn last_of(&self, segments: &[SegmentFile]) -> Option<u32> {
        let last = segments.last().and_then(|found| self.committed.last_of(found.number));
        self.limit.map_or(last, |(segment, _)| last.min(Some(segment)))
    }

    /// Number of readable bytes in a segment.
    fn size_of(&self, segment: u32, size: u64) -> u64 {
        let size = self.committed.bytes_of(segment, size);
        match self.limit {
            Some((last, limit)) if last == segment => size.min(limit),
            Some((last, _)) if last < segment => 0,
            _ => size,
        }
    }

    /// The position: the segment, and the number of its next record.
    pub fn place(&self) -> (u32, u32) {
        match &self.current {
            Some(current) => (current.segment, current.records),
            None => (self.next_segment, 0),
        }
    }

    /// Number of the log's last segment.
    pub fn last_segment(&self) -> Result<Option<u32>> {
        Ok(self.segments()?.last().map(|found| found.number))
    }

    /// Returns whether the open segment, at the last look, has bytes that could not be read.
    pub fn is_stuck(&self) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let left = current.size_bytes.saturating_sub(current.reader.whole_end());
            // Fewer bytes are the padding of a page. After an ended segment's last record there is
            // only padding, or damage that the replay has judged.
            left >= HEADER_BYTES as u64 && self.committed.is_open(current.segment)
        })
    }

    /// Bytes of the log that were not read yet.
    pub fn bytes_left(&self) -> u64 {
        let place = self.place().0;
        let segments = self.segments().unwrap_or_default();
        let left = segments.into_iter().filter(|found| found.number >= place);
        let committed =
            |found: SegmentFile| self.committed.bytes_of(found.number, found.size_bytes);
        let bytes: u64 = left.map(committed).sum();
        bytes.saturating_sub(self.current.as_ref().map_or(0, |c| c.reader.whole_end()))
    }

    /// Lists all segments, held ones included, ascending by number.
    fn segments(&self) -> Result<Vec<SegmentFile>> {
        let WalListing { mut segments, .. } = listing(&*self.disk, &self.holding.dir(self.log))?;
        let live = listing(&*self.disk, &self.dir)?;
        // A segment that is being moved may be in both lists.
        segments.retain(|held| live.segments.iter().all(|found| found.number != held.number));
        segments.extend(live.segments);
        segments.sort_by_key(|found| found.number);
        Ok(segments)
    }

    /// Returns the next records, about `bytes_max` long.
    pub fn next(&mut self, bytes_max: usize) -> Result<Followed> {
        loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(Followed::Nothing);
            }
            let Some(current) = &mut self.current else { return Ok(Followed::Nothing) };
            let (segment, first) = (current.segment, current.records);
            let records = current.read(&mut self.unpacker, bytes_max);
            if !records.is_empty() {
                return Ok(Followed::Records { segment, first, records });
            }
            if current.is_final {
                current.report_damage();
                self.next_segment = segment.saturating_add(1);
                self.current = None;
                return Ok(Followed::End { segment });
            }
            // Only now, when the known length was read, does a new look at the file tell whether
            // there is more.
            if !self.look_again()? {
                return Ok(Followed::Nothing);
            }
        }
    }

    /// Continues after the last whole record, up to the segment's present length; returns whether
    /// it has grown or become final.
    fn look_again(&mut self) -> Result<bool> {
        // The list comes before the length: once a later segment exists, the length is final.
        let later = self.last_of(&self.segments()?);
        let Some(Current { segment, path, file, .. }) = &self.current else { return Ok(false) };
        let is_final = later > Some(*segment);
        let size = file.size().map_err(Action::Read.failed(path))?;
        let size = self.size_of(*segment, size);
        let Some(current) = &mut self.current else { return Ok(false) };
        if size <= current.size_bytes && !is_final {
            return Ok(false);
        }
        let start = current.reader.whole_end();
        let (file, path) = (Arc::clone(&current.file), current.path.clone());
        let counters = Arc::new(Counters::default());
        current.reader = SegmentReader::from(file, path, start, size.max(start), counters);
        (current.size_bytes, current.is_final) = (size, is_final);
        Ok(true)
    }

    fn open_next(&mut self) -> Result<bool> {
        let segments = self.segments()?;
        let last = segments.last().map(|found| found.number);
        if let Some(last) = last
            && last.saturating_add(1) < self.next_segment
        {
            tracing::warn!(
                expected = self.next_segment,
                last,
                "the WAL was replaced; forwarding it from its beginning"
            );
            self.next_segment = 0;
        }
        let last = self.last_of(&segments);
        let next = segments.into_iter().find(|found| found.number >= self.next_segment);
        let Some(SegmentFile { number, path, .. }) = next else { return Ok(false) };
        if Some(number) > last {
            return Ok(false);
        }
        if self.next_segment > 0 && number > self.next_segment {
            tracing::warn!(
                expected = self.next_segment,
                found = number,
                "segments of the WAL are missing; what they held is not forwarded"
            );
        }
        // The segment may have been moved to the held ones since the listing.
        let name = path.file_name().map(|name| self.holding.dir(self.log).join(name));
        let opened = self.disk.open(&path, Access::Read).or_else(|error| match &name {
            Some(held) => self.disk.open(held, Access::Read),
            None => Err(error),
        });
        let file = opened.map_err(Action::Open.failed(&path))?;
        // In this order: the length includes everything that was written before a later segment
        // appeared.
        let is_final = last > Some(number);
        let size = file.size().map_err(Action::Open.failed(&path))?;
        let size = self.size_of(number, size);
        let counters = Arc::new(Counters::default());
        let reader = SegmentReader::new(Arc::clone(&file), path.clone(), size, counters);
        let (segment, size_bytes, records) = (number, size, 0);
        self.current = Some(Current { segment, path, file, reader, size_bytes, records, is_final });
        Ok(true)
    }
}

impl Current {
    fn read(&mut self, unpacker: &mut Unpacker, bytes_max: usize) -> Records {
        let mut records = Records::default();
        while records.bytes.len().max(records.len()) < bytes_max {
            let before = records.bytes.len();
            if !self.reader.next_onto(unpacker, &mut records.bytes) {
                break;
            }
            records.lengths.push((records.bytes.len() - before) as u32);
        }
        self.records = self.records.saturating_add(records.len() as u32);
        records
    }

    // Called for final segments only, so a torn end can no longer become whole.
    fn report_damage(&mut self) {
        if let Tail::Torn { .. } = self.reader.tail() {
            self.reader.count_tail();
        }
        for DamagedPlace { offset, bytes, cause } in self.reader.take_damaged() {
            tracing::warn!(
                path = %self.path.display(), offset, bytes, %cause,
                "WAL segment is damaged; unreadable records are not forwarded"
            );
        }
    }
}

impl SeriesFiles {
    /// Lists the files with the series of a segment of the in-order log, and of later segments.
    pub fn before(data: &DataDir, segment: u32) -> Result<SeriesFiles> {
        let (disk, holding) = (data.disk(), data.holding());
        let held = listing(&*disk, &holding.dir(LogKind::InOrder))?;
        let live = listing(&*disk, &data.wal_path())?;
        // All of them: rows still to be read may refer to series that no other file has. Segments
        // that no destination needs have been released.
        let segments = held.segments.iter().chain(&live.segments);
        let before = segments.filter(|found| found.number < segment);
        let mut files: Vec<_> = before.map(|found| (found.number, found.path.clone())).collect();
        for found in held.checkpoints.iter().chain(&live.checkpoints) {
            for inside in listing(&*disk, &found.path)?.segments {
                files.push((found.number, inside.path));
            }
        }
        // Later files override earlier ones, and a checkpoint overrides the segments it replaces.
        files.sort_by_key(|(number, _)| *number);
        Ok(SeriesFiles { files: files.into_iter(), disk })
    }

    /// Number of the newest checkpoint.
    pub fn newest_checkpoint_number(data: &DataDir) -> Result<Option<u32>> {
        let live = listing(&*data.disk(), &data.wal_path())?;
        Ok(live.checkpoints.last().map(|found| found.number))
    }

    /// The files of the newest checkpoint, and its number.
    pub fn newest_checkpoint(data: &DataDir) -> Result<Option<(u32, SeriesFiles)>> {
        let disk = data.disk();
        let live = listing(&*disk, &data.wal_path())?;
        let Some(found) = live.checkpoints.last() else { return Ok(None) };
        let inside = listing(&*disk, &found.path)?.segments;
        let files: Vec<_> = inside.into_iter().map(|file| (found.number, file.path)).collect();
        Ok(Some((found.number, SeriesFiles { files: files.into_iter(), disk })))
    }

    /// Passes all records to `take`, in batches of about `bytes_max`.
    pub fn each<E>(
        self,
        bytes_max: usize,
        mut take: impl FnMut(u32, Records) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut unpacker = Unpacker::default();
        for (segment, path) in self.files {
            let opened = self.disk.open(&path, Access::Read);
            let sized = opened.and_then(|file| Ok((file.size()?, file)));
            let (size, file) = match sized {
                Ok(sized) => sized,
                Err(error) => {
                    tracing::warn!(
                        path = %path.display(), %error,
                        "skipped a WAL file that cannot be read"
                    );
                    continue;
                }
            };
            let counters = Arc::new(Counters::default());
            let mut reader = SegmentReader::new(file, path, size, counters);
            loop {
                let mut records = Records::default();
                while records.bytes.len() < bytes_max {
                    let before = records.bytes.len();
                    if !reader.next_onto(&mut unpacker, &mut records.bytes) {
                        break;
                    }
                    records.lengths.push((records.bytes.len() - before) as u32);
                }
                if records.is_empty() {
                    break;
                }
                take(segment, records)?;
            }
        }
        Ok(())
    }
}
