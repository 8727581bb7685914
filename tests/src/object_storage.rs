//! A real S3-compatible server whose buckets are directories, so that tests can inspect them.

use crate::peers::{MissingPeer, built};
use crate::process::{Launch, ProcessError, Server, free_address};
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const ACCESS_KEY: &str = "tide";
const SECRET_KEY: &str = "pool-secret";
const BUCKET: &str = "metrics";

/// Launch of the server, whose address stays the same.
#[derive(Clone, Debug)]
pub struct ObjectStorage {
    directory: PathBuf,
    address: SocketAddr,
}

/// Reason why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ObjectStorageError {
    #[error(transparent)]
    Missing(#[from] MissingPeer),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The directory for its buckets could not be made.
    #[error("its directory could not be made")]
    Directory(#[from] io::Error),
}

impl ObjectStorage {
    /// Prepares a server with one empty bucket. It needs a file system with extended attributes.
    pub fn new(directory: &Path) -> Result<ObjectStorage, ObjectStorageError> {
        let storage =
            ObjectStorage { directory: directory.to_path_buf(), address: free_address()? };
        std::fs::create_dir_all(storage.bucket())?;
        Ok(storage)
    }

    pub fn bucket(&self) -> PathBuf {
        self.directory.join("root").join(BUCKET)
    }

    /// Returns the value of `--ship` for a path in the bucket.
    pub fn url(&self, path: &str) -> String {
        format!("s3://{BUCKET}/{path}")
    }

    /// Returns `env` with the variables of a client, to start a client with.
    pub fn environment(&self, secret_key: Option<&str>) -> Vec<OsString> {
        let secret_key = secret_key.unwrap_or(SECRET_KEY);
        [
            "env".to_owned(),
            format!("AWS_ENDPOINT=http://{}", self.address),
            "AWS_ALLOW_HTTP=true".to_owned(),
            "AWS_REGION=us-east-1".to_owned(),
            format!("AWS_ACCESS_KEY_ID={ACCESS_KEY}"),
            format!("AWS_SECRET_ACCESS_KEY={secret_key}"),
        ]
        .map(OsString::from)
        .into()
    }

    /// Starts the server and waits until it answers.
    pub fn start(&self) -> Result<Server, ObjectStorageError> {
        let mut arguments: Vec<OsString> = vec![
            format!("--port={}", self.address).into(),
            format!("--access={ACCESS_KEY}").into(),
            format!("--secret={SECRET_KEY}").into(),
            "--health=/health".into(),
            "posix".into(),
        ];
        arguments.push(self.directory.join("root").into());
        let launch = Launch {
            name: "versitygw",
            program: built("versitygw")?,
            arguments,
            address: self.address,
            ready_path: "/health",
            log_path: self.directory.join("versitygw.log"),
        };
        Ok(launch.start()?)
    }
}
