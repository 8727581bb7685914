//! `meta.json`: the properties of a block. Keys, their order and the indentation are Prometheus'.
//!
//! Unknown keys (other tools add theirs) are ignored when decoding and not kept.

use super::{BlockError, Tombstones};
use crate::model::TimeRange;
use crate::storage::Blocks;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Name of the file inside a block.
pub const META_FILE: &str = "meta.json";

/// The only version of `meta.json` that exists.
const VERSION: u64 = 1;

/// Key of an object with properties that only this store reads.
const OWN_KEY: &str = "tidepool";

/// Key of the checksum of tombstones whose deletions the log has too.
const IN_LOG_KEY: &str = "deletionsInLog";

/// Largest file that is read; a block compacted from a hundred thousand others would fit.
const META_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// The content of a block's `meta.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockMeta {
    /// The block's name, a ULID.
    pub ulid: String,
    /// Start of the time range in milliseconds, inclusive.
    #[serde(rename = "minTime")]
    pub min_time_ms: i64,
    /// End of the time range in milliseconds, exclusive.
    #[serde(rename = "maxTime")]
    pub max_time_ms: i64,
    /// Counts of the block's samples, series and chunks.
    #[serde(default)]
    pub stats: BlockStats,
    /// Level, sources and parents of the block.
    pub compaction: CompactionMeta,
    /// Version of the format, always 1.
    pub version: u64,
}

/// Counts of the contents of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockStats {
    /// Number of samples of every kind.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_samples: u64,
    /// Number of samples that are floats.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_float_samples: u64,
    /// Number of samples that are native histograms.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_histogram_samples: u64,
    /// Number of series in the index.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_series: u64,
    /// Number of chunks that the index lists.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_chunks: u64,
    /// Number of deleted ranges, counted per series, that are not applied yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_tombstones: u64,
}

/// Origin of a block: level, sources and parents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionMeta {
    /// 1 for a block cut from a head; each compaction adds one.
    pub level: u32,
    /// ULIDs of all blocks cut from a head that this block was made of.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub sources: Vec<String>,
    /// Whether the block holds no sample and is to be deleted.
    #[serde(skip_serializing_if = "is_false")]
    pub deletable: bool,
    /// Blocks from which a compaction made this block.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub parents: Vec<BlockDesc>,
    /// Whether a compaction of the block failed.
    #[serde(skip_serializing_if = "is_false")]
    pub failed: bool,
    /// Hints on the content, such as `from-out-of-order`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub hints: Vec<String>,
}

/// A block's name and time range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDesc {
    /// ULID, the name of the block's directory.
    pub ulid: String,
    /// Start of the time range in milliseconds, inclusive.
    #[serde(rename = "minTime")]
    pub min_time_ms: i64,
    /// End of the time range in milliseconds, exclusive.
    #[serde(rename = "maxTime")]
    pub max_time_ms: i64,
}

/// Reads a block's `meta.json` without opening its other files.
pub fn read_meta(blocks: &dyn Blocks, block: &str) -> Result<BlockMeta, BlockError> {
    BlockMeta::decode(block, &read_json(blocks, block)?)
}

/// Returns a block's `meta.json` with a new count of tombstones, and a note whether the log has the
/// same deletions. All other content is kept, also keys that other tools added.
pub fn meta_with_tombstones(
    blocks: &dyn Blocks,
    block: &str,
    tombstones: &Tombstones,
    are_in_log: bool,
) -> Result<Vec<u8>, BlockError> {
    // Edited as JSON: a round trip through `BlockMeta` would lose the keys of other tools.
    let mut meta = read_object(blocks, block)?;
    let stats = meta.entry("stats").or_insert_with(|| Map::new().into());
    if let Some(stats) = stats.as_object_mut() {
        // Prometheus omits a count of zero.
        match tombstones.count() {
            0 => stats.remove("numTombstones"),
            count => stats.insert("numTombstones".to_owned(), count.into()),
        };
    }
    // An old note is removed, since it would claim deletions that the log does not have.
    match are_in_log {
        true => meta.insert(OWN_KEY.to_owned(), json!({ IN_LOG_KEY: tombstones.checksum() })),
        false => meta.remove(OWN_KEY),
    };
    to_json(&meta).map_err(|source| BlockError::Meta { block: block.to_owned(), source })
}

/// Returns whether `meta.json` notes that the log has the same deletions. The note is the checksum
/// of these tombstones; Prometheus drops it, as any unknown key, when it deletes.
pub fn are_deletions_in_log(
    blocks: &dyn Blocks,
    block: &str,
    tombstones: &Tombstones,
) -> Result<bool, BlockError> {
    let meta = read_object(blocks, block)?;
    let checksum = meta.get(OWN_KEY).and_then(|own| own.get(IN_LOG_KEY)).and_then(Value::as_u64);
    Ok(checksum == Some(tombstones.checksum().into()))
}

fn read_object(blocks: &dyn Blocks, block: &str) -> Result<Map<String, Value>, BlockError> {
    let json = read_json(blocks, block)?;
    let to_error = |source| BlockError::Meta { block: block.to_owned(), source };
    serde_json::from_slice(&json).map_err(to_error)
}

fn read_json(blocks: &dyn Blocks, block: &str) -> Result<Vec<u8>, BlockError> {
    let file = blocks.open(block, META_FILE)?;
    // A longer file is cut here and then fails to parse, which is the error to report.
    let len = u32::try_from(file.size()).unwrap_or(u32::MAX).min(META_BYTES_MAX);
    Ok(file.read_at(0, len)?)
}

fn to_json(content: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = Vec::new();
    // Prometheus indents by one tab per level.
    let tabs = serde_json::ser::PrettyFormatter::with_indent(b"\t");
    content.serialize(&mut serde_json::Serializer::with_formatter(&mut json, tabs))?;
    Ok(json)
}

impl BlockStats {
    /// Adds the sample counts of `other`; series and chunks are counted elsewhere.
    pub(crate) fn add_samples(&mut self, other: &BlockStats) {
        self.num_samples += other.num_samples;
        self.num_float_samples += other.num_float_samples;
        self.num_histogram_samples += other.num_histogram_samples;
    }
}

impl BlockMeta {
    pub(super) fn new(desc: BlockDesc, stats: BlockStats, compaction: CompactionMeta) -> BlockMeta {
        let BlockDesc { ulid, min_time_ms, max_time_ms } = desc;
        BlockMeta { ulid, min_time_ms, max_time_ms, stats, compaction, version: VERSION }
    }

    /// Decodes the file's content; `block` is named in errors.
    pub fn decode(block: &str, json: &[u8]) -> Result<BlockMeta, BlockError> {
        let to_error = |source| BlockError::Meta { block: block.to_owned(), source };
        let meta: BlockMeta = serde_json::from_slice(json).map_err(to_error)?;
        // Prometheus reads no other version either.
        if meta.version == VERSION {
            return Ok(meta);
        }
        let (block, file) = (block.to_owned(), META_FILE.to_owned());
        Err(BlockError::UnsupportedVersion { block, file, version: meta.version })
    }

    /// Encodes the file's content, byte for byte as Prometheus writes it.
    pub fn encode(&self) -> Result<Vec<u8>, BlockError> {
        to_json(self).map_err(|source| BlockError::Meta { block: self.ulid.clone(), source })
    }

    /// Returns the ULID of the newest source block, so compaction makes no block newer. If two
    /// blocks have samples of one series at the same time, the block with the larger result wins.
    pub fn newest_source(&self) -> &str {
        self.compaction.sources.iter().max().map_or(&self.ulid, String::as_str)
    }

    /// Returns the time range, both ends inclusive; empty for a block that ends where it begins.
    pub fn time_range(&self) -> TimeRange {
        TimeRange { start_ms: self.min_time_ms, end_ms: self.max_time_ms.saturating_sub(1) }
    }

    /// Returns the block's name and time range.
    pub fn desc(&self) -> BlockDesc {
        let BlockMeta { ulid, min_time_ms, max_time_ms, .. } = self;
        BlockDesc { ulid: ulid.clone(), min_time_ms: *min_time_ms, max_time_ms: *max_time_ms }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Decodes `null` as the default: Go encodes an empty list as `null` where it does not omit it.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
