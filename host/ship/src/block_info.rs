//! The fields of a block's `meta.json` that shipping needs.

use super::ShipError;
use serde_json::Value;
use tidepool_disk::BlockDirs;

/// Maximum size of a `meta.json` that is read.
pub const META_BYTES_MAX: u64 = 16 << 20;

/// A block, with the fields that shipping needs.
#[derive(Clone, Debug)]
pub struct BlockInfo {
    /// ULID, the name of the block's directory.
    pub ulid: String,
    /// Start of the block's range, at or before the first sample.
    pub min_time_ms: i64,
    /// End of the block's range, not included.
    pub max_time_ms: i64,
    /// 1 for a block cut from the head.
    pub level: u64,
    pub samples: u64,
    /// Number of deleted ranges of series whose samples are still in the chunks.
    pub tombstones: u64,
    /// ULIDs of the blocks cut from the head that this block was made of.
    pub sources: Vec<String>,
    /// The whole `meta.json` of the block.
    pub meta: Value,
}

impl BlockInfo {
    pub fn read(blocks: &BlockDirs, ulid: &str) -> Result<BlockInfo, ShipError> {
        let lacks = "lacks minTime, maxTime, stats or compaction";
        BlockInfo::of(ulid, read_meta(blocks, ulid)?).ok_or_else(|| wrong(ulid, lacks.into()))
    }

    pub(super) fn of(ulid: &str, meta: Value) -> Option<BlockInfo> {
        let compaction = meta.get("compaction")?;
        let stats = meta.get("stats")?;
        // Zeros may be omitted, such as `numTombstones` in Prometheus.
        let number = |of: &Value, key: &str| of.get(key).and_then(Value::as_u64).unwrap_or(0);
        let sources = compaction.get("sources").and_then(Value::as_array);
        let sources = sources.into_iter().flatten().filter_map(Value::as_str);
        Some(BlockInfo {
            ulid: ulid.to_owned(),
            min_time_ms: meta.get("minTime")?.as_i64()?,
            max_time_ms: meta.get("maxTime")?.as_i64()?,
            level: number(compaction, "level"),
            samples: number(stats, "numSamples"),
            tombstones: number(stats, "numTombstones"),
            sources: sources.map(str::to_owned).collect(),
            meta,
        })
    }

    /// Checks that the block has no deleted samples. Readers of a bucket ignore tombstones, so a
    /// block is shipped only after it was rewritten without deleted samples.
    pub fn check_deletions(&self) -> Result<(), ShipError> {
        match self.tombstones {
            0 => Ok(()),
            _ => Err(ShipError::Deletions {
                block: self.ulid.clone(),
                reason: "it has deletions, and could not be rewritten without them".to_owned(),
            }),
        }
    }
}

/// Returns the content of a block's `meta.json`.
pub fn read_meta(blocks: &BlockDirs, ulid: &str) -> Result<Value, ShipError> {
    let file = blocks.open_file(ulid, "meta.json")?;
    if file.size_bytes() > META_BYTES_MAX {
        return Err(wrong(ulid, format!("has {} bytes", file.size_bytes())));
    }
    // The bound above fits into 32 bits.
    let bytes = file.read_at(0, file.size_bytes() as u32)?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(ulid, error.to_string()))
}

fn wrong(ulid: &str, reason: String) -> ShipError {
    ShipError::Meta { block: ulid.to_owned(), reason }
}
