//! Content of a data directory: blocks and the write-ahead log, by the names that Prometheus gives
//! them (`tsdb/docs/format` there).

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A block, as its `meta.json` describes it.
#[derive(Clone, Debug)]
pub struct Block {
    pub path: PathBuf,
    pub ulid: String,
    /// First millisecond of the range.
    pub min_ms: i64,
    /// End of the range, not included.
    pub end_ms: i64,
    /// Number of samples according to `meta.json`.
    pub samples: u64,
    /// Number of series according to `meta.json`.
    pub series: u64,
    /// Whether `meta.json` says that the block has only out-of-order samples.
    pub is_out_of_order: bool,
}

/// Returns the finished blocks, in time order.
pub fn blocks(data_dir: &Path) -> io::Result<Vec<Block>> {
    let mut blocks = Vec::new();
    for entry in fs::read_dir(data_dir)? {
        let path = entry?.path();
        // A directory with an extension is being written or deleted.
        if path.extension().is_some() {
            continue;
        }
        let Ok(meta) = fs::read(path.join("meta.json")) else { continue };
        let meta: Value = serde_json::from_slice(&meta)?;
        blocks.push(Block {
            ulid: meta["ulid"].as_str().unwrap_or_default().to_string(),
            min_ms: meta["minTime"].as_i64().unwrap_or(i64::MIN),
            end_ms: meta["maxTime"].as_i64().unwrap_or(i64::MIN),
            samples: meta["stats"]["numSamples"].as_u64().unwrap_or(0),
            series: meta["stats"]["numSeries"].as_u64().unwrap_or(0),
            is_out_of_order: meta["compaction"]["hints"]
                .as_array()
                .is_some_and(|hints| hints.iter().any(|hint| hint == "from-out-of-order")),
            path,
        });
    }
    blocks.sort_by_key(|block| block.min_ms);
    Ok(blocks)
}

/// Returns the numbers of the log's segments, ascending.
pub fn wal_segments(data_dir: &Path) -> io::Result<Vec<u64>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(data_dir.join("wal"))? {
        segments.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    segments.sort_unstable();
    Ok(segments)
}

/// Returns the quarantined files, oldest first; a missing directory is no error.
pub fn quarantine(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let directory = data_dir.join("set-aside");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Returns the total size of the files below a directory; files that vanish meanwhile do not count.
pub fn total_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => total_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(bytes).sum()
}

/// Copies a directory recursively to a new place.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.metadata()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Flips one bit of a file.
pub fn flip(file: &Path, at: usize) -> io::Result<()> {
    let mut bytes = fs::read(file)?;
    bytes[at] ^= 0x10;
    fs::write(file, bytes)
}

/// Returns the path of a segment of the log.
pub fn segment(data_dir: &Path, number: u64) -> PathBuf {
    data_dir.join(format!("wal/{number:08}"))
}
