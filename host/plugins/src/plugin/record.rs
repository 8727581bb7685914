//! Record of a trial run: appends and webhook requests of the plugin. The latter are not sent.

use std::sync::{Mutex, PoisonError};

/// Maximum size of a record in bytes.
const BYTES_MAX: usize = 256 << 20;

/// Samples and requests that a plugin appended and posted, in order.
#[derive(Default)]
pub struct Record {
    kept: Mutex<RecordedOutput>,
}

#[derive(Default)]
pub struct RecordedOutput {
    /// Appended samples as remote-write 2.0 bodies.
    pub appended: Vec<Vec<u8>>,
    pub posts: Vec<Post>,
    bytes: usize,
}

/// A recorded webhook request, which was not sent.
pub struct Post {
    pub url: String,
    /// Header `Content-Type`, as the plugin gave it.
    pub content_type: String,
    pub body: Vec<u8>,
}

/// Error of a record that has reached its maximum size.
pub struct Full;

impl Record {
    pub fn appended(&self, body: &[u8]) -> Result<(), Full> {
        self.keep(body.len(), |kept| kept.appended.push(body.to_vec()))
    }

    pub fn posted(&self, post: Post) -> Result<(), Full> {
        self.keep(post.url.len() + post.body.len(), |kept| kept.posts.push(post))
    }

    /// Returns everything recorded since the last call.
    pub fn take(&self) -> RecordedOutput {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, bytes: usize, keep: impl FnOnce(&mut RecordedOutput)) -> Result<(), Full> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes = kept.bytes.saturating_add(bytes);
        // Counted even if refused, so that a full record does not accept smaller items later.
        if kept.bytes > BYTES_MAX {
            return Err(Full);
        }
        keep(&mut kept);
        Ok(())
    }
}
