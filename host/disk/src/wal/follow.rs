//! Reads a log while its writer appends to it, including segments that are held for forwarding.
//!
//! In the segment that is being written, records are read up to the position that the writer has
//! committed: until a failed write is undone, the file may be longer. If the last segment seems to
//! end in a torn record, the end is read again later.

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
    /// Number of the segment to read next, if no segment is open.
    next_segment: u32,
    current: Option<Current>,
    /// Segment and byte at which reading stops: see [`LogFollower::observe`].
    limit: Option<(u32, u64)>,
}

struct Current {
    segment: u32,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    reader: SegmentReader,
    /// Readable length of the file when it was last checked.
    size_bytes: u64,
    records: u32,
    /// Whether a later segment existed at that time, so that the length is final.
    is_final: bool,
}

/// Result of a step of following a log.
#[derive(Debug)]
pub enum Followed {
    /// Whole records of a segment.
    Records {
        segment: u32,
        /// Number of the first of these records within the segment.
        first: u32,
        records: Records,
    },
    /// The segment was read to its end.
    End {
        /// Number of the segment that has ended.
        segment: u32,
    },
    /// The log has no further records for now.
    Nothing,
}

/// Files with the series of the records before a segment: checkpoints, and segments between them.
pub struct SeriesFiles {
    files: std::vec::IntoIter<(u32, PathBuf)>,
    disk: Arc<dyn Disk>,
}

impl LogFollower {
    /// Begins at the front of `segment` or, without this segment, of the first later one.
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

    /// Limits reading to the present end of the log. The next call moves the limit.
    pub fn observe(&mut self) -> Result<()> {
        // Removed first, because `size_of` would apply the old limit.
        self.limit = None;
        let last = self.segments()?.pop();
        let last = last.map(|last| (last.number, self.size_of(last.number, last.size_bytes)));
        self.limit = Some(last.unwrap_or((0, 0)));
        Ok(())
    }

    /// Number of the last segment in the list that may be read.
    fn last_of(&self, segments: &[SegmentFile]) -> Option<u32> {
        let last = segments.last().and_then(|found| self.committed.last_of(found.number));
        self.limit.map_or(last, |(segment, _)| last.min(Some(segment)))
    }

    /// Number of readable bytes in a segment whose file has `size` bytes.
    fn size_of(&self, segment: u32, size: u64) -> u64 {
        let size = self.committed.bytes_of(segment, size);
        match self.limit {
            Some((last, limit)) if last == segment => size.min(limit),
            Some((last, _)) if last < segment => 0,
            _ => size,
        }
    }

    /// The position: the number of the segment, and of its next record.
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

    /// Returns whether the open segment has bytes that could not be read when it was last checked.
    pub fn is_stuck(&self) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let left = current.size_bytes.saturating_sub(current.reader.whole_end());
            // Fewer bytes are padding of a page. Only the open segment counts: in an ended segment
            // the rest is padding, or damage that the replay has reported.
            left >= HEADER_BYTES as u64 && self.committed.is_open(current.segment)
        })
    }

    /// Number of bytes of the log that were not read yet.
    pub fn bytes_left(&self) -> u64 {
        let place = self.place().0;
        let segments = self.segments().unwrap_or_default();
        let left = segments.into_iter().filter(|found| found.number >= place);
        let committed =
            |found: SegmentFile| self.committed.bytes_of(found.number, found.size_bytes);
        let bytes: u64 = left.map(committed).sum();
        bytes.saturating_sub(self.current.as_ref().map_or(0, |c| c.reader.whole_end()))
    }

    /// Lists all segments, including held segments, ascending by number.
    fn segments(&self) -> Result<Vec<SegmentFile>> {
        let WalListing { mut segments, .. } = listing(&*self.disk, &self.holding.dir(self.log))?;
        let live = listing(&*self.disk, &self.dir)?;
        // A segment that is being moved may be in both listings.
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
            // The file is checked again only when its known length was read.
            if !self.look_again()? {
                return Ok(Followed::Nothing);
            }
        }
    }

    /// Continues after the last whole record, up to the segment's present length. Returns whether
    /// the segment has grown or its length has become final.
    fn look_again(&mut self) -> Result<bool> {
        // The listing comes before the length: if a later segment exists, the length is final.
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
        // The segment may have been moved to the held segments since the listing.
        let name = path.file_name().map(|name| self.holding.dir(self.log).join(name));
        let opened = self.disk.open(&path, Access::Read).or_else(|error| match &name {
            Some(held) => self.disk.open(held, Access::Read),
            None => Err(error),
        });
        let file = opened.map_err(Action::Open.failed(&path))?;
        // The length is read after the listing. So if a later segment is listed, the length
        // includes everything.
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

    // Called only for a final length, so a torn end cannot become whole any more.
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
    /// Lists the files that have the series of records from `segment` of the in-order log on.
    pub fn before(data: &DataDir, segment: u32) -> Result<SeriesFiles> {
        let (disk, holding) = (data.disk(), data.holding());
        let held = listing(&*disk, &holding.dir(LogKind::InOrder))?;
        let live = listing(&*disk, &data.wal_path())?;
        // All earlier files: rows that are still to be read may refer to series that no other file
        // has. Segments that no destination needs were deleted before.
        let segments = held.segments.iter().chain(&live.segments);
        let before = segments.filter(|found| found.number < segment);
        let mut files: Vec<_> = before.map(|found| (found.number, found.path.clone())).collect();
        for found in held.checkpoints.iter().chain(&live.checkpoints) {
            for inside in listing(&*disk, &found.path)?.segments {
                files.push((found.number, inside.path));
            }
        }
        // Later files override earlier files, and a checkpoint the segments that it replaces.
        files.sort_by_key(|(number, _)| *number);
        Ok(SeriesFiles { files: files.into_iter(), disk })
    }

    /// Number of the newest checkpoint.
    pub fn newest_checkpoint_number(data: &DataDir) -> Result<Option<u32>> {
        let live = listing(&*data.disk(), &data.wal_path())?;
        Ok(live.checkpoints.last().map(|found| found.number))
    }

    /// Returns the files of the newest checkpoint, and its number.
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
