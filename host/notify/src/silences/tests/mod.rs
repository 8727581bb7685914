//! Silences over clocks, updates and broken disks.

mod api;
mod clocks;
mod disk;
mod files;
mod updates;

use super::*;
use crate::matchers::Matchers;
use std::path::Path;
use tempfile::TempDir;
use tidepool_disk::fs::RealDisk;
use tidepool_rules::file::Labels;

/// 2026-11-08T12:00:00Z.
pub const NOON_MS: i64 = 1_794_139_200_000;

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Clocks that a test sets.
#[derive(Clone)]
pub struct Clocks(Arc<Mutex<Now>>);

impl Clocks {
    pub fn at(wall_ms: i64) -> Clocks {
        let monotonic = Duration::from_secs(1000);
        Clocks(Arc::new(Mutex::new(Now { wall_ms, is_doubted: false, monotonic })))
    }

    /// Lets time pass on both clocks.
    pub fn pass(&self, ms: i64) {
        let mut now = self.0.lock().expect("clocks");
        now.wall_ms += ms;
        now.monotonic += Duration::from_millis(ms as u64);
    }

    /// Sets the clock; no time passes.
    pub fn set(&self, wall_ms: i64, is_doubted: bool) {
        let mut now = self.0.lock().expect("clocks");
        (now.wall_ms, now.is_doubted) = (wall_ms, is_doubted);
    }

    /// Starts the monotonic clock again, as a boot does.
    pub fn boot(&self, wall_ms: i64, is_doubted: bool) {
        let monotonic = Duration::ZERO;
        *self.0.lock().expect("clocks") = Now { wall_ms, is_doubted, monotonic };
    }

    pub fn now_ms(&self) -> i64 {
        self.0.lock().expect("clocks").wall_ms
    }

    pub fn clock(&self) -> Clock {
        let clocks = self.clone();
        Arc::new(move || *clocks.0.lock().expect("clocks"))
    }
}

/// Silences in a temporary directory, at noon.
pub struct Node {
    pub folder: TempDir,
    pub clocks: Clocks,
    pub silences: Silences,
}

impl Node {
    pub fn new() -> Node {
        Node::with_max(SILENCES_MAX)
    }

    pub fn with_max(silences_max: usize) -> Node {
        let folder = tempfile::tempdir().expect("a directory");
        let clocks = Clocks::at(NOON_MS);
        let silences = open(folder.path(), silences_max, &clocks);
        Node { folder, clocks, silences }
    }

    pub fn restart(&mut self) {
        self.silences = open(self.folder.path(), SILENCES_MAX, &self.clocks);
    }

    pub fn state(&self, id: SilenceId) -> SilenceState {
        self.silences.get(id).expect("a silence").1
    }

    /// Times relative to noon.
    pub fn span(&self, id: SilenceId) -> (i64, i64) {
        let silence = self.silences.get(id).expect("a silence").0;
        (silence.starts_at_ms - NOON_MS, silence.ends_at_ms - NOON_MS)
    }

    pub fn file(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("alerts").join(file::FILE)).expect("a file")
    }
}

fn open(folder: &Path, silences_max: usize, clocks: &Clocks) -> Silences {
    Silences::open(Arc::new(RealDisk), folder.join("alerts"), silences_max, clocks.clock())
}

/// A silence of `job="node"` with times relative to noon.
pub fn wanted(starts_ms: i64, ends_ms: i64) -> Wanted {
    Wanted {
        id: None,
        matchers: Matchers::parse("job=node").expect("matchers"),
        starts_at_ms: Some(NOON_MS + starts_ms),
        ends_at_ms: NOON_MS + ends_ms,
        created_by: "ada".to_owned(),
        comment: "maintenance".to_owned(),
        annotations: Labels::new(),
    }
}

pub fn labels() -> LabelSet {
    LabelSet::new([("alertname", "DiskFull"), ("job", "node")])
}
