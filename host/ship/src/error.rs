//! Reasons why a block could not be shipped.

use std::path::PathBuf;
use tidepool_disk::DiskError;

#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The URL names no bucket.
    #[error(
        "--ship={url}: {reason}; give file:///path, s3://bucket, gs://bucket or az://container, \
             each with an optional path"
    )]
    Url {
        /// Value of the flag, without its secrets.
        url: String,
        reason: String,
    },
    /// The configuration of the bucket is not usable.
    #[error(
        "--ship={url}: {source}; endpoint, region and credentials come from the environment, see \
         host/docs/shipping.md"
    )]
    Configuration {
        /// URL of the bucket, without its secrets.
        url: String,
        source: object_store::Error,
    },
    /// A request to the bucket failed.
    #[error("{object}: {source}")]
    Bucket {
        /// URL of the bucket, with the name of the object.
        object: String,
        source: object_store::Error,
    },
    /// An object is larger than the maximum for its kind.
    #[error("{object} has {bytes} bytes, which is too long for a meta.json")]
    TooLarge {
        object: String,
        /// Length of the object in the bucket.
        bytes: u64,
    },
    /// A block's files cannot be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A block's `meta.json` is not valid JSON, or a required field is missing.
    #[error("block {block}: meta.json {reason}")]
    Meta {
        /// ULID of the block in the data directory.
        block: String,
        reason: String,
    },
    /// The list of shipped blocks cannot be read.
    #[error("{path}: {reason}")]
    State {
        /// Path of the file with the list.
        path: PathBuf,
        reason: String,
    },
    /// A block has deleted samples, which readers of the bucket would see again.
    #[error("block {block} is not shipped yet: {reason}")]
    Deletions {
        block: String,
        /// Reason why the deleted samples are still in the block.
        reason: String,
    },
}

impl ShipError {
    /// Returns whether the error concerns one block only, so that other blocks can be shipped.
    pub fn is_of_one_block(&self) -> bool {
        matches!(self, ShipError::Disk(_) | ShipError::Meta { .. } | ShipError::Deletions { .. })
    }

    /// Returns whether the block's directory was removed meanwhile.
    pub fn is_gone(&self) -> bool {
        matches!(self, ShipError::Disk(error) if error.is_not_found())
    }
}
