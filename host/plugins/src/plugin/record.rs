//! The appends and webhook requests of a plugin in a trial run: they are recorded and not sent
//! anywhere.

use std::sync::{Mutex, PoisonError};

/// Bytes that are kept of one trial.
const BYTES_MAX: usize = 256 << 20;

/// The samples and requests that a plugin appended and posted, in order.
#[derive(Default)]
pub struct Record {
    kept: Mutex<Kept>,
}

/// The recorded output.
#[derive(Default)]
pub struct Kept {
    /// Remote-write 2.0 bodies.
    pub appended: Vec<Vec<u8>>,
    /// Requests to webhooks.
    pub posts: Vec<Post>,
    bytes: usize,
}

/// A request to a webhook that was not made.
pub struct Post {
    /// Where to.
    pub url: String,
    /// Its header of this name.
    pub content_type: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// There is no room for more.
pub struct Full;

impl Record {
    /// Keeps what was appended.
    pub fn appended(&self, body: &[u8]) -> Result<(), Full> {
        self.keep(body.len(), |kept| kept.appended.push(body.to_vec()))
    }

    /// Keeps a request.
    pub fn posted(&self, post: Post) -> Result<(), Full> {
        self.keep(post.url.len() + post.body.len(), |kept| kept.posts.push(post))
    }

    /// Returns what was kept until now.
    pub fn take(&self) -> Kept {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, bytes: usize, keep: impl FnOnce(&mut Kept)) -> Result<(), Full> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes = kept.bytes.saturating_add(bytes);
        if kept.bytes > BYTES_MAX {
            return Err(Full);
        }
        keep(&mut kept);
        Ok(())
    }
}
