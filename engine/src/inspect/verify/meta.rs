//! Checks of `meta.json` and `tombstones`.

use super::{BlockCounts, Report};
use crate::block::{BlockError, BlockMeta, META_FILE, TOMBSTONES_FILE, Tombstones, read_meta};
use crate::storage::{Blocks, StorageError, StorageResult};

const ULID_LEN: usize = 26;

/// Checks `meta.json` and `tombstones`; returns the content of `meta.json` if it can be used.
pub fn check_meta(
    blocks: &dyn Blocks,
    block: &str,
    report: &mut Report,
) -> StorageResult<Option<BlockMeta>> {
    match Tombstones::read(blocks, block) {
        Ok(_) => {}
        Err(BlockError::Storage(error)) => return Err(error),
        Err(error) => report.block_error(TOMBSTONES_FILE, &error),
    }
    let meta = match read_meta(blocks, block) {
        Ok(meta) => meta,
        Err(BlockError::Storage(StorageError::NotFound { .. })) => {
            report.error(META_FILE, 0, "the file is missing");
            return Ok(None);
        }
        Err(BlockError::Storage(error)) => return Err(error),
        Err(error) => {
            report.block_error(META_FILE, &error);
            return Ok(None);
        }
    };
    let mut wrong = |what: String| report.error(META_FILE, 0, what);
    if meta.ulid != block {
        wrong(format!("it says that the block is {}", meta.ulid));
    }
    if meta.min_time_ms > meta.max_time_ms {
        let (min, max) = (meta.min_time_ms, meta.max_time_ms);
        wrong(format!("the block ends at {max} ms, before it begins at {min} ms"));
    }
    let compaction = &meta.compaction;
    if compaction.level == 0 {
        wrong("the level of compaction is missing".to_owned());
    }
    if compaction.sources.is_empty() {
        wrong("the list of sources is missing".to_owned());
    }
    let parents = compaction.parents.iter().map(|parent| &parent.ulid);
    for ulid in compaction.sources.iter().chain(parents).filter(|ulid| !is_ulid(ulid)) {
        wrong(format!("{ulid:?} is not the name of a block"));
    }
    Ok(Some(meta))
}

/// Compares the counts in `meta.json` with the block. Only newer versions of Prometheus count
/// floats and histograms.
pub fn check_counts(meta: &BlockMeta, found: &BlockCounts, report: &mut Report) {
    let stats = &meta.stats;
    let histograms = found.samples - found.float_samples;
    // Older versions leave both counts at zero, which is no contradiction.
    let counts_kinds = stats.num_float_samples + stats.num_histogram_samples > 0;
    for (what, says, is) in [
        ("samples", stats.num_samples, found.samples),
        ("series", stats.num_series, found.series),
        ("chunks", stats.num_chunks, found.chunks),
        (
            "float samples",
            if counts_kinds { stats.num_float_samples } else { found.float_samples },
            found.float_samples,
        ),
        (
            "histogram samples",
            if counts_kinds { stats.num_histogram_samples } else { histograms },
            histograms,
        ),
    ] {
        if says != is {
            report.error(META_FILE, 0, format!("it counts {says} {what}, but there are {is}"));
        }
    }
}

/// Returns whether a text is a ULID: digits and capital letters except I, L, O and U.
fn is_ulid(text: &str) -> bool {
    let is_digit =
        |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !b"ILOU".contains(&byte));
    text.len() == ULID_LEN && text.bytes().all(is_digit)
}
