//! Why a block could not be shipped.

use std::path::PathBuf;
use tidepool_disk::DiskError;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The URL of the bucket names none.
    #[error(
        "--ship={url}: {reason}; give file:///path, s3://bucket, gs://bucket or az://container, \
             each with an optional path"
    )]
    Url {
        /// The value of the flag.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bucket cannot be used as it is configured.
    #[error(
        "--ship={url}: {source}; endpoint, region and credentials come from the environment, see \
         host/docs/shipping.md"
    )]
    Configuration {
        /// The bucket.
        url: String,
        /// The error of the client.
        source: object_store::Error,
    },
    /// The bucket did not do what it was asked.
    #[error("{object}: {source}")]
    Bucket {
        /// The object.
        object: String,
        /// The error of the client.
        source: object_store::Error,
    },
    /// An object is larger than anything of its kind.
    #[error("{object} has {bytes} bytes, which is too long for a meta.json")]
    TooLarge {
        /// The object.
        object: String,
        /// Its length.
        bytes: u64,
    },
    /// A block's files cannot be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A block's `meta.json` does not say what every block's says.
    #[error("block {block}: meta.json {reason}")]
    Meta {
        /// The block.
        block: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of what was shipped does not read.
    #[error("{path}: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A block has deletions that would come back in the bucket.
    #[error("block {block} is not shipped yet: {reason}")]
    Deletions {
        /// The block.
        block: String,
        /// Why it could not be rewritten without them.
        reason: String,
    },
}

impl ShipError {
    /// Whether it is about one block only, so that others can be tried.
    pub fn is_of_one_block(&self) -> bool {
        matches!(self, ShipError::Disk(_) | ShipError::Meta { .. } | ShipError::Deletions { .. })
    }

    /// Whether the block was removed meanwhile.
    pub fn is_gone(&self) -> bool {
        matches!(self, ShipError::Disk(error) if error.is_not_found())
    }
}
