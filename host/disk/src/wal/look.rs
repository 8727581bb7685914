//! Reads the logs without changing them: creates, truncates, repairs and locks nothing. Another
//! process may write to the logs meanwhile.
//!
//! All files are opened at the start, so that files that a checkpoint replaces stay readable.

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

/// Maximum number of listings, if a listed file is removed before it is opened.
const LIST_TRIES: usize = 10;

/// Reads both logs from beginning to end: first the in-order log, then the out-of-order log.
#[derive(Default)]
pub struct LogReader {
    files: VecDeque<OpenSource>,
    current: Option<(OpenSource, SegmentReader)>,
    unpacker: Unpacker,
    oddities: Vec<Oddity>,
    bytes_total: u64,
    /// Bytes of the files that were read to their end.
    bytes_done: u64,
}

struct OpenSource {
    log: LogKind,
    source: Source,
    file: Arc<dyn DiskFile>,
}

#[derive(Debug)]
pub struct LogPiece {
    pub log: LogKind,
    /// Number of the segment; a file of a checkpoint has the number of the last segment it covers.
    pub segment: u32,
    pub path: PathBuf,
    /// Whole records, each with its offset in the file.
    pub records: Vec<(u64, Vec<u8>)>,
    pub damaged: Vec<DamagedPlace>,
    /// An end that a crash may have torn, or that another process is writing now.
    pub torn_tail: Option<DamagedPlace>,
}

impl LogReader {
    /// Opens all files of both logs; missing logs are no error.
    pub fn open(data: &DataDir) -> Result<LogReader> {
        let mut reader = LogReader::default();
        let disk = data.disk();
        // The out-of-order log first: if a cut removes a segment of it meanwhile, the cut's block
        // is committed already, with the out-of-order and the in-order samples.
        for (log, dir) in [
            (LogKind::OutOfOrder, data.out_of_order_wal_path()),
            (LogKind::InOrder, data.wal_path()),
        ] {
            let (files, plan_oddities) = open_log(&*disk, log, &dir)?;
            reader.bytes_total += files.iter().map(|file| file.source.size_bytes).sum::<u64>();
            reader.oddities.extend(plan_oddities);
            // Prepended, because the in-order log is opened second but read first.
            reader.files = files.into_iter().chain(reader.files.drain(..)).collect();
        }
        Ok(reader)
    }

    /// Opens a single segment, whatever its name and directory.
    pub fn open_segment(data: &DataDir, path: &Path) -> Result<LogReader> {
        let file = data.disk().open(path, Access::Read).map_err(Action::Open.failed(path))?;
        let size_bytes = file.size().map_err(Action::Open.failed(path))?;
        let path = path.to_owned();
        let source = Source { segment: 0, path, size_bytes, is_last: false, must_stay: false };
        let source = OpenSource { log: LogKind::InOrder, source, file };
        Ok(LogReader { files: [source].into(), bytes_total: size_bytes, ..LogReader::default() })
    }

    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Number of bytes read so far, and number of all bytes to read.
    pub fn progress(&self) -> (u64, u64) {
        let in_current = self.current.as_ref().map_or(0, |(_, reader)| reader.position());
        (self.bytes_done + in_current, self.bytes_total)
    }

    /// Returns the next records of one segment, about `bytes_max` long, with the damage between
    /// them; `None` at the end of both logs.
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
                // At least 1, so that a piece of empty records ends, too.
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
                        // The torn tail is the last counted place. In the last segment it may be a
                        // write in progress, which is no damage.
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

/// Opens all files of a log. If a file was removed meanwhile, lists the directory again.
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
                // A checkpoint has replaced the file, so the whole listing is outdated.
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

/// Bytes of a log's directory; zero if it does not exist.
pub fn wal_bytes(data: &DataDir, log: LogKind) -> Result<u64> {
    let dir = log.dir(data);
    match tree_bytes(&*data.disk(), &dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        counted => counted.map_err(Action::List.failed(dir)),
    }
}
