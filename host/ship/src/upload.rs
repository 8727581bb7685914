//! Uploads one block: chunks, then the index, and `meta.json` last.

use super::block_info::{BlockInfo, META_BYTES_MAX};
use super::bucket::Bucket;
use super::meta::{FileSize, bucket_meta, difference};
use super::{ShipError, ShipFigures};
use std::sync::atomic::Ordering::Relaxed;
use tidepool_disk::{BlockDirs, BlockFile};
use tidepool_lifecycle::clock::system_now;
use tidepool_protocol::prom::external_labels::ExternalLabels;

/// Result of uploading a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The block is in the bucket now.
    Uploaded {
        /// Bytes of the files that were not there yet.
        bytes: u64,
    },
    AlreadyThere,
    /// The bucket has another block under this name, which stays.
    Taken {
        difference: String,
    },
}

/// Uploads a block, unless the bucket has it. A block that is deleted meanwhile, or loses samples,
/// is an error, and stays without `meta.json`.
pub async fn upload(
    bucket: &Bucket,
    blocks: &BlockDirs,
    block: &BlockInfo,
    labels: &ExternalLabels,
    figures: &ShipFigures,
) -> Result<Outcome, ShipError> {
    let files = open_files(blocks, &block.ulid)?;
    let meta_name = format!("{}/meta.json", block.ulid);
    // Uploaded last, so its presence means that the block is whole.
    if let Some(found) = bucket.get(&meta_name, META_BYTES_MAX).await? {
        return Ok(match difference(block, labels, &found) {
            None => Outcome::AlreadyThere,
            Some(difference) => Outcome::Taken { difference },
        });
    }
    let mut sent = 0;
    for (path, file) in &files {
        let name = format!("{}/{path}", block.ulid);
        // Objects appear as a whole and a block's files never change: an object of this length is
        // left from an upload that was cut short.
        if bucket.size(&name).await? == Some(file.size_bytes()) {
            continue;
        }
        bucket.put_file(&name, file).await?;
        sent += file.size_bytes();
        figures.uploaded_bytes.fetch_add(file.size_bytes(), Relaxed);
    }
    let sized = |(path, file): &(String, BlockFile)| FileSize {
        path: path.clone(),
        bytes: file.size_bytes(),
    };
    let sizes: Vec<FileSize> = files.iter().map(sized).collect();
    // The upload may have taken hours. Samples deleted meanwhile are visible in the bucket only
    // once `meta.json` is there.
    BlockInfo::read(blocks, &block.ulid)?.check_deletions()?;
    bucket.put(&meta_name, bucket_meta(block, labels, &sizes, system_now())).await?;
    Ok(Outcome::Uploaded { bytes: sent })
}

/// Opens the files of a block except `meta.json`, in the order of their upload.
fn open_files(blocks: &BlockDirs, ulid: &str) -> Result<Vec<(String, BlockFile)>, ShipError> {
    let mut files = Vec::new();
    loop {
        let path = format!("chunks/{:06}", files.len() + 1);
        match blocks.open_file(ulid, &path) {
            Ok(file) => files.push((path, file)),
            // Chunk files are numbered without gaps; a block has at least one.
            Err(error) if error.is_not_found() && !files.is_empty() => break,
            Err(error) => return Err(error.into()),
        }
    }
    files.push(("index".to_owned(), blocks.open_file(ulid, "index")?));
    Ok(files)
}
