//! The log, one file per behaviour. Other tests check it with upstream's own programs.

mod checkpoints;
mod damage;
mod faults;
mod follow;
mod gather;
mod repair;
mod round_trip;

use super::*;
use crate::testing::FaultyDisk;
use std::path::Path;

/// Two pages, so that tests which write little reach a second segment.
const SMALL: WalOptions = WalOptions {
    segment_bytes_max: 2 * PAGE_BYTES as u64,
    compression: Compression::None,
    sync: SyncPolicy::Always,
};

/// Bytes that no compressor shortens; each seed gives others.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 29)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn open(path: &Path, options: WalOptions) -> Wal {
    let data = DataDir::open(path).expect("data directory");
    Wal::open(&data, options).expect("log")
}

fn open_on(disk: &FaultyDisk, path: &Path, options: WalOptions) -> Wal {
    let data = DataDir::open_on(Arc::new(disk.clone()), path).expect("data directory");
    Wal::open(&data, options).expect("log")
}

/// Replays the log; returns all records with their segments.
fn replay(wal: &mut Wal) -> Vec<(u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(batch) = wal.replay_batch(10_000).expect("replays") {
        all.extend(batch.records.iter().map(|record| (batch.segment, record.to_vec())));
    }
    all
}

/// Opens a log, replays it and closes it; returns the records.
fn replayed(path: &Path) -> Vec<Vec<u8>> {
    replay(&mut open(path, SMALL)).into_iter().map(|(_, record)| record).collect()
}

/// Names in the log's directory, ascending.
fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(path.join("wal"))
        .expect("list")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

fn segment_path(path: &Path, number: u32) -> PathBuf {
    path.join("wal").join(segment::segment_name(number))
}
