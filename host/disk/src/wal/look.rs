//! Reading the logs without a change: nothing is created, truncated, repaired or locked, and
//! another process may be writing meanwhile.
//!
//! All files are opened at once, so that what a checkpoint replaces while it is read stays
//! readable.

use super::logs::LogKind;
use super::pack::Unpacker;
use super::plan::{Oddity, ReadingPlan, Source};
use super::reader::{DamagedPlace, SegmentReader, Tail};
use super::segment::WalListing;
use super::stats::Counters;
use crate::DataDir;
use crate::error::{Action, Result};
use crate::fs::{Access, Disk, DiskFile, tree_bytes};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often the directory is listed again if a listed file is gone before it is opened.
const LIST_TRIES: usize = 10;

/// Reads both logs from their fronts to their ends: all of the in-order one, then the out-of-order
/// one.
#[derive(Default)]
pub struct LogReader {
    files: VecDeque<OpenSource>,
    current: Option<(OpenSource, SegmentReader)>,
    unpacker: Unpacker,
    oddities: Vec<Oddity>,
    bytes_total: u64,
    /// Bytes of the files read to their end.
    bytes_done: u64,
}

struct OpenSource {
    log: LogKind,
    source: Source,
    file: Arc<dyn DiskFile>,
}

/// A piece of one segment.
#[derive(Debug)]
pub struct LogPiece {
    /// Which log it belongs to.
    pub log: LogKind,
    /// The segment's number; a checkpoint counts as the segment it ends with.
    pub segment: u32,
    /// The segment's file.
    pub path: PathBuf,
    /// Whole records, each with the place where it begins.
    pub records: Vec<(u64, Vec<u8>)>,
    /// Places that cannot be read.
    pub damaged: Vec<DamagedPlace>,
    /// A tail that a crash may have torn, or that another process is writing right now.
    pub torn_tail: Option<DamagedPlace>,
}

impl LogReader {
    /// Opens what there is. No log at all is fine.
    pub fn open(data: &DataDir) -> Result<LogReader> {
        let mut reader = LogReader::default();
        let disk = data.disk();
        // The out-of-order log first: if it loses a segment to a cut meanwhile, the cut's block is
        // committed already, and so are its in-order samples.
        for (log, dir) in [
            (LogKind::OutOfOrder, data.out_of_order_wal_path()),
            (LogKind::InOrder, data.wal_path()),
        ] {
            let (files, plan_oddities) = open_log(&*disk, log, &dir)?;
            reader.bytes_total += files.iter().map(|file| file.source.size_bytes).sum::<u64>();
            reader.oddities.extend(plan_oddities);
            reader.files = files.into_iter().chain(reader.files.drain(..)).collect();
        }
        Ok(reader)
    }

    /// Opens one segment, whatever it is called and wherever it lies.
    pub fn open_segment(data: &DataDir, path: &Path) -> Result<LogReader> {
        let file = data.disk().open(path, Access::Read).map_err(Action::Open.failed(path))?;
        let size_bytes = file.size().map_err(Action::Open.failed(path))?;
        let path = path.to_owned();
        let source = Source { segment: 0, path, size_bytes, is_last: false, must_stay: false };
        let source = OpenSource { log: LogKind::InOrder, source, file };
        Ok(LogReader { files: [source].into(), bytes_total: size_bytes, ..LogReader::default() })
    }

    /// Irregularities of the directories.
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Bytes read, and bytes to read.
    pub fn progress(&self) -> (u64, u64) {
        let in_current = self.current.as_ref().map_or(0, |(_, reader)| reader.position());
        (self.bytes_done + in_current, self.bytes_total)
    }

    /// The next records of one segment, about `bytes_max` long, and the damage between them;
    /// `None` at the end.
    pub fn next(&mut self, bytes_max: u32) -> Option<LogPiece> {
        loop {
            let (file, mut reader) = match self.current.take() {
                Some(current) => current,
                None => {
                    let file = self.files.pop_front()?;
                    let (disk_file, source) = (Arc::clone(&file.file), &file.source);
                    let counters = Arc::new(Counters::default());
                    let reader = SegmentReader::new(
                        disk_file,
                        source.path.clone(),
                        source.size_bytes,
                        counters,
                    );
                    (file, reader)
                }
            };
            let Source { segment, path, size_bytes, is_last, .. } = &file.source;
            let mut piece = LogPiece {
                log: file.log,
                segment: *segment,
                path: path.clone(),
                records: Vec::new(),
                damaged: Vec::new(),
                torn_tail: None,
            };
            let mut bytes = 0;
            let mut is_at_end = false;
            while bytes < bytes_max as usize {
                let Some(record) = reader.next(&mut self.unpacker) else {
                    is_at_end = true;
                    break;
                };
                bytes += record.len().max(1);
                piece.records.push((reader.record_start(), record));
            }
            if is_at_end {
                if let Tail::Torn { whole_end, cause } = reader.tail() {
                    reader.count_tail();
                    let place =
                        DamagedPlace { offset: whole_end, bytes: size_bytes - whole_end, cause };
                    piece.damaged = reader.take_damaged();
                    if *is_last {
                        piece.damaged.pop();
                        piece.torn_tail = Some(place);
                    }
                } else {
                    piece.damaged = reader.take_damaged();
                }
                self.bytes_done += size_bytes;
            } else {
                piece.damaged = reader.take_damaged();
                self.current = Some((file, reader));
            }
            let is_empty = piece.records.is_empty() && piece.damaged.is_empty();
            if !is_empty || piece.torn_tail.is_some() {
                return Some(piece);
            }
        }
    }
}

/// Opens all files of a log, listing again where one vanished meanwhile.
fn open_log(disk: &dyn Disk, log: LogKind, dir: &Path) -> Result<(Vec<OpenSource>, Vec<Oddity>)> {
    let mut tries_left = LIST_TRIES;
    'list: loop {
        tries_left -= 1;
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match disk.list(dir) {
            Err(error) if is_gone(&error) => return Ok((Vec::new(), Vec::new())),
            listed => drop(listed.map_err(Action::List.failed(dir))?),
        }
        let ReadingPlan { sources, mut oddities } =
            ReadingPlan::new(disk, &WalListing::read(disk, dir)?);
        let mut files = Vec::with_capacity(sources.len());
        for source in sources {
            match disk.open(&source.path, Access::Read) {
                Ok(file) => files.push(OpenSource { log, source, file }),
                Err(error) if is_gone(&error) && tries_left > 0 => continue 'list,
                Err(error) => {
                    let (path, reason) = (source.path, error.to_string());
                    oddities.push(Oddity::Unreadable { path, reason });
                }
            }
        }
        return Ok((files, oddities));
    }
}

/// Bytes that the directory of a log takes; none if there is none.
pub fn wal_bytes(data: &DataDir, log: LogKind) -> Result<u64> {
    let dir = log.dir(data);
    match tree_bytes(&*data.disk(), &dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        counted => counted.map_err(Action::List.failed(dir)),
    }
}
