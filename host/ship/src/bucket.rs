//! Object storage as named by a URL: a directory, or a bucket of S3, Google or Azure.
//!
//! Endpoint, region and credentials come from the environment, under the names that `object_store`
//! and the providers' tools use. Memory is bounded: a file is sent in parts of a few megabytes, one
//! at a time.

use super::ShipError;
use super::pace::Pace;
use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload};
use tidepool_disk::BlockFile;
use tidepool_settings::redact::shown_text;
use url::Url;

/// Minimum size of a part. S3 accepts a smaller part only at the end.
const PART_BYTES: u64 = 5 << 20;

/// Maximum number of parts of an object. S3 accepts 10,000 and Azure 50,000.
const PARTS_MAX: u64 = 9_000;

/// Bytes handed to the network at a time, and so the granularity of the bandwidth limit.
const PIECE_BYTES: u64 = 16 << 10;

/// The storage that blocks are uploaded to.
pub struct Bucket {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    url: String,
    /// Bandwidth limit for a directory. For other stores, the HTTP client applies the limit.
    pace: Option<Pace>,
}

impl Bucket {
    /// Opens the bucket of a URL. Nothing is sent yet.
    pub fn open(url: &str, bytes_per_second_max: u64) -> Result<Bucket, ShipError> {
        let shown = shown_text(url);
        let wrong = |reason: String| ShipError::Url { url: shown.clone(), reason };
        let unusable = |source| ShipError::Configuration { url: shown.clone(), source };
        let parsed = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        let place = ObjectStoreScheme::parse(&parsed).map_err(|error| wrong(error.to_string()))?;
        let pace = Pace::new(bytes_per_second_max);
        match place {
            (ObjectStoreScheme::Local, _) => {
                let dir = parsed.to_file_path().map_err(|()| wrong("is not a path".to_owned()))?;
                std::fs::create_dir_all(&dir).map_err(|error| wrong(error.to_string()))?;
                let store = LocalFileSystem::new_with_prefix(&dir).map_err(unusable)?;
                Ok(Bucket {
                    // `meta.json` marks a complete block, so earlier files must be synced.
                    store: Box::new(store.with_fsync(true)),
                    prefix: Path::default(),
                    url: shown.clone(),
                    pace: Some(pace),
                })
            }
            #[cfg(feature = "cloud")]
            (
                scheme @ (ObjectStoreScheme::AmazonS3
                | ObjectStoreScheme::GoogleCloudStorage
                | ObjectStoreScheme::MicrosoftAzure),
                prefix,
            ) => {
                let store = super::client::cloud_store(scheme, url, pace).map_err(unusable)?;
                Ok(Bucket { store, prefix, url: shown.clone(), pace: None })
            }
            _ => Err(wrong("is not an object storage that this build supports".to_owned())),
        }
    }

    /// Returns the length of an object; `None` if it does not exist.
    pub async fn size(&self, name: &str) -> Result<Option<u64>, ShipError> {
        match self.store.head(&self.path(name)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(self.failed(name, source)),
        }
    }

    /// Returns an object of at most `bytes_max` bytes; `None` if it does not exist.
    pub async fn get(&self, name: &str, bytes_max: u64) -> Result<Option<Bytes>, ShipError> {
        let found = match self.store.get(&self.path(name)).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|source| self.failed(name, source))?,
        };
        // The length is known before the body, which is not read if it is too long.
        let bytes = found.meta.size;
        if bytes > bytes_max {
            return Err(ShipError::TooLarge { object: self.name(name), bytes });
        }
        found.bytes().await.map(Some).map_err(|source| self.failed(name, source))
    }

    /// Writes a small object in one request.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), ShipError> {
        self.pass(bytes.len()).await;
        let put = self.store.put(&self.path(name), bytes.into()).await;
        put.map(drop).map_err(|source| self.failed(name, source))
    }

    /// Writes a file of a block. The object appears completely or not at all.
    pub async fn put_file(&self, name: &str, file: &BlockFile) -> Result<(), ShipError> {
        let bytes = file.size_bytes();
        if bytes <= PART_BYTES {
            let payload = payload(file, 0, bytes)?;
            self.pass(payload.content_length()).await;
            let put = self.store.put(&self.path(name), payload).await;
            return put.map(drop).map_err(|source| self.failed(name, source));
        }
        let upload = self.store.put_multipart(&self.path(name)).await;
        let mut upload = upload.map_err(|source| self.failed(name, source))?;
        let done = self.put_parts(name, file, &mut *upload).await;
        if done.is_err() {
            // Otherwise the parts would use space until the bucket's lifecycle rules delete them.
            let _ = upload.abort().await;
        }
        done
    }

    async fn put_parts(
        &self,
        name: &str,
        file: &BlockFile,
        upload: &mut dyn MultipartUpload,
    ) -> Result<(), ShipError> {
        let bytes = file.size_bytes();
        // Larger files have larger parts, so that the number of parts stays within the limit.
        let part_bytes = PART_BYTES.max(bytes.div_ceil(PARTS_MAX));
        let mut offset = 0;
        while offset < bytes {
            let len = part_bytes.min(bytes - offset);
            let payload = payload(file, offset, len)?;
            self.pass(payload.content_length()).await;
            upload.put_part(payload).await.map_err(|source| self.failed(name, source))?;
            offset += len;
        }
        upload.complete().await.map(drop).map_err(|source| self.failed(name, source))
    }

    async fn pass(&self, bytes: usize) {
        if let Some(pace) = &self.pace {
            pace.pass(bytes).await;
        }
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.parts().chain(Path::from(name).parts()).collect()
    }

    fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.url.trim_end_matches('/'))
    }

    fn failed(&self, name: &str, source: object_store::Error) -> ShipError {
        ShipError::Bucket { object: self.name(name), source }
    }
}

/// Reads a range of a file, split into pieces.
fn payload(file: &BlockFile, mut offset: u64, mut bytes: u64) -> Result<PutPayload, ShipError> {
    let mut pieces = Vec::new();
    while bytes > 0 {
        let piece = bytes.min(PIECE_BYTES);
        // Not above `PIECE_BYTES`, so the cast cannot truncate.
        pieces.push(Bytes::from(file.read_at(offset, piece as u32)?));
        offset += piece;
        bytes -= piece;
    }
    Ok(pieces.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_names_no_bucket_is_refused_in_words() {
        for (url, what) in [
            ("bucket", "relative URL"),
            ("ftp://host/path", "s3://bucket"),
            ("http://host/bucket", "is not an object storage"),
            ("memory:///", "is not an object storage"),
        ] {
            let Err(error) = Bucket::open(url, 0) else { panic!("{url}") };
            let text = error.to_string();
            assert!(text.contains(url) && text.contains(what), "{text}");
        }
    }
}
