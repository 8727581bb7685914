//! A store in a temporary directory, and the records of its logs as the host reads them.

use crate::{TestResult, image};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use tidepool_disk::wal::{Followed, LogFollower, LogKind, Logs, Records};
use tidepool_disk::{BlockDirs, DataDir, WalOptions};
use tidepool_runtime::{
    Destination, Fed, ForwardSettings, FrameFormat, Instance, InstanceLimits, InstanceLogs,
    InstanceStorage, Options, RemoteWriteVersion, Role, Runtime, Selection, ShardPosition,
    StoreWindow, TimeRange,
};
use tidepool_tests::remote_write::{Version, message_bytes};
use tidepool_tests::series::{Row, Series};

const LIMITS: InstanceLimits = InstanceLimits { memory_bytes_max: 1 << 30, deadline: None };

const HOUR_MS: i64 = 3_600_000;

/// One instance that owns log, head and blocks.
pub struct Node {
    data: DataDir,
    logs: Arc<Mutex<Logs>>,
    instance: Instance,
    _dir: TempDir,
}

pub struct Piece {
    pub log: LogKind,
    pub segment: u32,
    /// Number of the first record in the segment.
    pub first: u32,
    pub records: Records,
}

impl Node {
    pub fn new() -> TestResult<Node> {
        image::install();
        let dir = tempfile::tempdir()?;
        let data = DataDir::open(dir.path())?;
        let logs = Arc::new(Mutex::new(Logs::open(&data, WalOptions::default())?));
        let storage = InstanceStorage {
            logs: InstanceLogs::Owned(Arc::clone(&logs)),
            blocks: BlockDirs::open(&data),
            head: None,
            memory: None,
        };
        let options = Options {
            future_limit_ms: i64::MAX / 4,
            out_of_order_window_ms: 2 * HOUR_MS,
            exemplars_max: 100,
            hash_seed: 7,
            ..Options::without_limits(Role::All, 2 * HOUR_MS)
        };
        let mut instance = Runtime::shared()?.instantiate(options, storage, LIMITS)?;
        while !instance.replay(1 << 20)?.done {}
        Ok(Node { data, logs, instance, _dir: dir })
    }

    /// Stores a message of which no row may be refused.
    pub fn write_message(&mut self, version: RemoteWriteVersion, body: &[u8]) -> TestResult {
        let written = self.instance.append_remote_write(version, body, crate::BASE_MS)?;
        assert_eq!(written.refused, 0, "{:?}", written.refusals);
        Ok(self.logs().sync()?)
    }

    /// Stores rows in one request.
    pub fn write(&mut self, series: &[Series]) -> TestResult {
        let rows: Vec<Row<'_>> = series.iter().map(Series::row).collect();
        self.write_message(RemoteWriteVersion::V2, &message_bytes(Version::V2, &rows))
    }

    /// Ends the current segment of a log and returns its number.
    pub fn cut_segment(&mut self, log: LogKind) -> TestResult<u32> {
        let segment = self.logs().get(log)?.cut_segment()?;
        self.logs().sync()?;
        Ok(segment)
    }

    fn logs(&self) -> std::sync::MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pieces(&self, log: LogKind) -> TestResult<Vec<Piece>> {
        let mut follower = LogFollower::new(&self.data, log, 0);
        let mut pieces = Vec::new();
        loop {
            match follower.next(1 << 20)? {
                Followed::Records { segment, first, records } => {
                    pieces.push(Piece { log, segment, first, records });
                }
                Followed::End { .. } => {}
                Followed::Nothing => return Ok(pieces),
            }
        }
    }

    /// All records of both logs, in the order in which a host may feed them.
    pub fn all_pieces(&self) -> TestResult<Vec<Piece>> {
        let mut pieces = self.pieces(LogKind::InOrder)?;
        pieces.extend(self.pieces(LogKind::OutOfOrder)?);
        Ok(pieces)
    }

    /// The series of a window with their chunks, as the store has them.
    pub fn stored(&mut self, window: &StoreWindow) -> TestResult<Vec<u8>> {
        let cursor = self.instance.select(&Selection {
            matchers: Vec::new(),
            range: TimeRange { start_ms: window.start_ms, end_ms: window.end_ms },
            format: FrameFormat::ChunkedSeries,
            query_index: 0,
            frame_bytes_max: 0,
            samples_max: 0,
            external_labels: Vec::new(),
        })?;
        let mut frames = Vec::new();
        loop {
            let next = self.instance.next_frames(cursor, 1 << 20)?;
            if next.is_empty() {
                break;
            }
            frames.extend(next);
        }
        self.instance.close_cursor(cursor)?;
        Ok(frames)
    }

    /// Makes a destination, in an instance of its own.
    pub fn destination(&self, settings: &ForwardSettings) -> TestResult<Destination> {
        let storage = InstanceStorage {
            logs: InstanceLogs::None,
            blocks: BlockDirs::open(&self.data),
            head: None,
            memory: None,
        };
        let instance = Runtime::shared()?.instantiate_closed(storage, LIMITS)?;
        Ok(Destination::new(instance, settings)?)
    }

    /// Makes a destination that continues from another one's positions.
    pub fn resumed(&self, positions: &[ShardPosition], gaps: &[u8]) -> TestResult<Destination> {
        let mut destination = self.destination(&settings(1))?;
        destination.resume(positions, gaps)?;
        Ok(destination)
    }
}

/// Settings that send everything unchanged.
pub fn settings(shards: u32) -> ForwardSettings {
    let (external_labels, rules) = (Vec::new(), Vec::new());
    ForwardSettings { external_labels, rules, exemplars: true, histograms: true, shards }
}

/// Feeds whole pieces, for which the queues must have room.
pub fn feed(to: &mut Destination, pieces: &[Piece]) -> TestResult<Vec<Fed>> {
    pieces.iter().map(|piece| feed_piece(to, piece, u32::MAX)).collect()
}

pub fn feed_piece(to: &mut Destination, piece: &Piece, capacity: u32) -> TestResult<Fed> {
    let Piece { log, segment, first, records } = piece;
    let fed = to.feed(*log, *segment, *first, &records.bytes, &records.lengths, capacity)?;
    assert!(fed.is_full || fed.records as usize == records.len(), "{fed:?}");
    Ok(fed)
}
