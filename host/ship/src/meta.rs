//! A block's `meta.json` in the bucket: the local one with an additional section for Thanos.
//!
//! ```json
//! "thanos": {
//!   "version": 1,
//!   "labels": {"node": "edge-7"},
//!   "downsample": {"resolution": 0},
//!   "source": "tidepool",
//!   "segment_files": ["000001"],
//!   "files": [{"rel_path": "chunks/000001", "size_bytes": 1234}, …, {"rel_path": "meta.json"}],
//!   "upload_time": "2026-01-02T03:04:05Z"
//! }
//! ```
//!
//! Source: `pkg/block/metadata/meta.go` in thanos-io/thanos, where `source` is free text.

use super::block_info::BlockInfo;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tidepool_protocol::prom::external_labels::ExternalLabels;

/// Name of the program that uploaded the block.
const SOURCE: &str = "tidepool";

/// A file of a block and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// Path relative to the block's directory.
    pub path: String,
    pub bytes: u64,
}

/// Returns a block's `meta.json` for the bucket. `files` are sorted by path, without `meta.json`.
pub fn bucket_meta(
    block: &BlockInfo,
    labels: &ExternalLabels,
    files: &[FileSize],
    uploaded: Timestamp,
) -> Vec<u8> {
    let sized = |file: &FileSize| json!({ "rel_path": file.path, "size_bytes": file.bytes });
    let mut listed: Vec<Value> = files.iter().map(sized).collect();
    // The size of `meta.json` is omitted, because it depends on this list.
    listed.push(json!({ "rel_path": "meta.json" }));
    let segments = files.iter().filter_map(|file| file.path.strip_prefix("chunks/"));
    let thanos = json!({
        "version": 1,
        "labels": label_map(labels),
        "downsample": { "resolution": 0 },
        "source": SOURCE,
        "segment_files": segments.collect::<Vec<_>>(),
        "files": listed,
        "upload_time": uploaded.to_string(),
    });
    let mut meta = block.meta.clone();
    if let Some(fields) = meta.as_object_mut() {
        // The node identifies the block by the name of its directory.
        fields.insert("ulid".to_owned(), json!(block.ulid));
        fields.insert("thanos".to_owned(), thanos);
    }
    format!("{meta:#}\n").into_bytes()
}

/// Compares a block with the `meta.json` found in a bucket; returns a difference, if any.
pub fn difference(block: &BlockInfo, labels: &ExternalLabels, found: &[u8]) -> Option<String> {
    let found: Value = match serde_json::from_slice(found) {
        Ok(found) => found,
        Err(error) => return Some(format!("its meta.json does not decode: {error}")),
    };
    for path in ["/minTime", "/maxTime", "/stats/numSamples", "/stats/numSeries"] {
        let (ours, theirs) = (block.meta.pointer(path), found.pointer(path));
        if ours != theirs {
            let shown = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
            let (theirs, ours) = (shown(theirs), shown(ours));
            return Some(format!("{path} is {theirs} in the bucket and {ours} here"));
        }
    }
    // Blocks of two nodes may differ in nothing else.
    let theirs = found.pointer("/thanos/labels").cloned().unwrap_or_default();
    let ours = Value::Object(label_map(labels));
    (theirs != ours)
        .then(|| format!("its external labels are {theirs}, those of this node are {ours}"))
}

fn label_map(labels: &ExternalLabels) -> Map<String, Value> {
    labels.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_again_and_told_from_others() -> Result<(), Box<dyn std::error::Error>> {
        let meta = json!({
            "ulid": "a", "minTime": 1, "maxTime": 9, "version": 1,
            "stats": { "numSamples": 5, "numSeries": 2 },
            "compaction": { "level": 1, "sources": ["a"] },
        });
        let block = BlockInfo {
            ulid: "a".to_owned(),
            min_time_ms: 1,
            max_time_ms: 9,
            level: 1,
            samples: 5,
            tombstones: 0,
            sources: vec!["a".to_owned()],
            meta,
        };
        let labels = |text: &str| -> Result<ExternalLabels, String> {
            text.split(',').map(str::parse).collect()
        };
        let ours = labels("node=n1,site=s")?;
        let files = [("chunks/000001", 7), ("chunks/000002", 8), ("index", 9)];
        let files = files.map(|(path, bytes)| FileSize { path: path.to_owned(), bytes });
        let written = bucket_meta(&block, &ours, &files, Timestamp::UNIX_EPOCH);
        let read: Value = serde_json::from_slice(&written)?;
        assert_eq!(read["minTime"], 1);
        assert_eq!(read["thanos"]["labels"], json!({ "node": "n1", "site": "s" }));
        assert_eq!(read["thanos"]["segment_files"], json!(["000001", "000002"]));
        assert_eq!(read["thanos"]["upload_time"], "1970-01-01T00:00:00Z");
        assert_eq!(read["thanos"]["files"][2], json!({ "rel_path": "index", "size_bytes": 9 }));
        assert_eq!(read["thanos"]["files"][3], json!({ "rel_path": "meta.json" }));

        assert_eq!(difference(&block, &ours, &written), None);
        let other = difference(&block, &labels("node=n2,site=s")?, &written);
        assert!(other.is_some_and(|text| text.contains("n1") && text.contains("n2")));
        let mut longer = block;
        longer.meta["stats"]["numSamples"] = json!(6);
        let other = difference(&longer, &ours, &written);
        assert!(
            other.is_some_and(|text| text.contains("numSamples is 5 in the bucket and 6 here"))
        );
        assert!(difference(&longer, &ours, b"{").is_some());
        Ok(())
    }
}
