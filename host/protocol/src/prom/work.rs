//! How much work the rows of one request may make, and whether anyone still waits for them.
//!
//! A row has the labels of its resource, its library or its URL again, and whoever takes it copies
//! and hashes them: a label of 250 kB above 260,000 buckets were 64 GB, out of a request of 4 MB.
//! So a request has a budget of label text that grows with its body.

use super::rows::{Gone, LabelSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a label costs beside its text, in bytes: it is looked up and referred to.
const BYTES_PER_LABEL: u64 = 256;

/// What each request may cost, in bytes of label text.
const BYTES_MIN: u64 = 1 << 30;

/// What it may cost beside that for each byte of its body. A data point of thirty bytes with twenty
/// labels costs about this.
const BYTES_PER_BODY_BYTE: u64 = 256;

/// The bounds of a request's work.
#[derive(Debug)]
pub struct WorkLimit {
    bytes_left: u64,
    is_spent: bool,
    client: Client,
}

/// Whether the client of a request still waits for its answer.
#[derive(Clone, Debug, Default)]
pub struct Client(Arc<AtomicBool>);

/// Says that the client is gone when it is dropped.
#[derive(Debug)]
pub struct Presence(Client);

impl Client {
    /// As long as this is kept, the client is there.
    pub fn presence(&self) -> Presence {
        Presence(self.clone())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

impl WorkLimit {
    /// For a request with a body of so many bytes.
    pub fn of_body(body_bytes: usize, client: Client) -> WorkLimit {
        let bytes_left = BYTES_MIN + BYTES_PER_BODY_BYTE.saturating_mul(body_bytes as u64);
        WorkLimit { bytes_left, is_spent: false, client }
    }

    /// To be asked before a row with these labels is taken.
    pub fn take(&mut self, labels: &LabelSet) -> Result<(), Gone> {
        self.go_on()?;
        let text = |(name, value): (&str, &str)| (name.len() + value.len()) as u64;
        let bytes: u64 = labels.iter().map(|label| BYTES_PER_LABEL + text(label)).sum();
        self.is_spent = bytes > self.bytes_left;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.is_spent { Err(Gone) } else { Ok(()) }
    }

    /// To be asked wherever work makes no row.
    pub fn go_on(&self) -> Result<(), Gone> {
        if self.is_spent || self.client.0.load(Relaxed) { Err(Gone) } else { Ok(()) }
    }

    /// Whether the request has asked for more than it may cost.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_rows_of_a_large_body_are_taken() {
        let mut labels = LabelSet::default();
        for label in 0..15 {
            labels.set(&format!("label_{label}"), "a value of usual length");
        }
        // 32 MiB of data points of forty bytes.
        let rows = (32 << 20) / 40;
        let mut limit = WorkLimit::of_body(32 << 20, Client::default());
        assert!((0..rows).all(|_| limit.take(&labels).is_ok()));
    }

    /// The story is told above.
    #[test]
    fn what_long_labels_cost_again_and_again_is_bounded() {
        let mut labels = LabelSet::default();
        labels.set("job", "x".repeat(250_000));
        let mut limit = WorkLimit::of_body(4 << 20, Client::default());
        let taken = (0..260_000).take_while(|_| limit.take(&labels).is_ok()).count();
        assert!((4000..10_000).contains(&taken), "{taken}");
        assert!(limit.is_spent() && limit.go_on().is_err());
        // Nor are short rows taken behind them.
        assert!(limit.take(&LabelSet::default()).is_err() && limit.is_spent());
    }

    #[test]
    fn work_ends_with_its_client() {
        let client = Client::default();
        let presence = client.presence();
        let mut limit = WorkLimit::of_body(0, client);
        assert!(limit.go_on().is_ok() && limit.take(&LabelSet::default()).is_ok());
        drop(presence);
        assert!(limit.go_on().is_err() && limit.take(&LabelSet::default()).is_err());
        assert!(!limit.is_spent());
    }
}
