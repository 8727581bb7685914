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
    /// The block was uploaded.
    Uploaded {
        /// Bytes of the files that the bucket did not have yet.
        bytes: u64,
    },
    AlreadyThere,
    /// The bucket has another block under this name. It is not replaced.
    Taken {
        difference: String,
    },
}

/// Uploads a block, unless the bucket has it. If the block is removed or samples in it are deleted
/// during the upload, the result is an error, and `meta.json` is not uploaded.
pub async fn upload(
    bucket: &Bucket,
    blocks: &BlockDirs,
    block: &BlockInfo,
    labels: &ExternalLabels,
    figures: &ShipFigures,
) -> Result<Outcome, ShipError> {
    let files = open_files(blocks, &block.ulid)?;
    let meta_name = format!("{}/meta.json", block.ulid);
    // `meta.json` is uploaded last, so if it exists, the block in the bucket is complete.
    if let Some(found) = bucket.get(&meta_name, META_BYTES_MAX).await? {
        return Ok(match difference(block, labels, &found) {
            None => Outcome::AlreadyThere,
            Some(difference) => Outcome::Taken { difference },
        });
    }
    let mut sent = 0;
    for (path, file) in &files {
        let name = format!("{}/{path}", block.ulid);
        // Objects appear completely or not at all, and a block's files never change. So an object
        // of the same length was uploaded by an interrupted upload.
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
    // The upload may have taken hours. Without `meta.json`, the bucket's readers ignore the block,
    // so samples deleted meanwhile are not visible yet.
    BlockInfo::read(blocks, &block.ulid)?.check_deletions()?;
    bucket.put(&meta_name, bucket_meta(block, labels, &sizes, system_now())).await?;
    Ok(Outcome::Uploaded { bytes: sent })
}

/// Opens the files of a block in the order of upload, without `meta.json`.
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
