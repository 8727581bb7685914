//! Limits the work for the rows of one request, and stops it when the client disconnects.
//!
//! Each row repeats the labels of its resource, its scope or its URL, and the receiver of the rows
//! copies and hashes them: a label of 250 kB with 260,000 buckets took 64 GB, from a request of 4
//! MB. So the label text of a request has a budget, which grows with the body.

use super::rows::{LabelSet, ReceiverClosed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Cost of a label in addition to its text, in bytes, for the lookup and the reference.
const BYTES_PER_LABEL: u64 = 256;

/// Minimum budget of a request, in bytes of label text.
const BYTES_MIN: u64 = 1 << 30;

/// Additional budget for each byte of the body. A data point of thirty bytes with twenty labels
/// costs about this much per byte.
const BYTES_PER_BODY_BYTE: u64 = 256;

/// Remaining budget of a request.
#[derive(Debug)]
pub struct WorkLimit {
    bytes_left: u64,
    is_spent: bool,
    client: Client,
}

/// State of a client: whether it still waits for the answer.
#[derive(Clone, Debug, Default)]
pub struct Client(Arc<AtomicBool>);

/// Guard that marks the client as gone when dropped.
#[derive(Debug)]
pub struct Presence(Client);

impl Client {
    /// Returns a guard; the client counts as waiting until the guard is dropped.
    pub fn presence(&self) -> Presence {
        Presence(self.clone())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Relaxed is enough: no other memory depends on the flag.
        self.0.0.store(true, Relaxed);
    }
}

impl WorkLimit {
    /// Creates the limit for a body of `body_bytes` bytes.
    pub fn of_body(body_bytes: usize, client: Client) -> WorkLimit {
        let bytes_left = BYTES_MIN + BYTES_PER_BODY_BYTE.saturating_mul(body_bytes as u64);
        WorkLimit { bytes_left, is_spent: false, client }
    }

    /// Charges the labels of a row; to be called before the row is written.
    pub fn take(&mut self, labels: &LabelSet) -> Result<(), ReceiverClosed> {
        self.go_on()?;
        let text = |(name, value): (&str, &str)| (name.len() + value.len()) as u64;
        let bytes: u64 = labels.iter().map(|label| BYTES_PER_LABEL + text(label)).sum();
        // `go_on` then fails, so that no shorter row is accepted after a refused row.
        self.is_spent = bytes > self.bytes_left;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.is_spent { Err(ReceiverClosed) } else { Ok(()) }
    }

    /// Fails if no more rows are accepted. To be called during work that writes no rows.
    pub fn go_on(&self) -> Result<(), ReceiverClosed> {
        if self.is_spent || self.client.0.load(Relaxed) { Err(ReceiverClosed) } else { Ok(()) }
    }

    /// Returns whether the request has exceeded its budget.
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

    /// The case that the module's head comment describes.
    #[test]
    fn what_long_labels_cost_again_and_again_is_bounded() {
        let mut labels = LabelSet::default();
        labels.set("job", "x".repeat(250_000));
        let mut limit = WorkLimit::of_body(4 << 20, Client::default());
        let taken = (0..260_000).take_while(|_| limit.take(&labels).is_ok()).count();
        assert!((4000..10_000).contains(&taken), "{taken}");
        assert!(limit.is_spent() && limit.go_on().is_err());
        // No shorter row is taken behind them.
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
