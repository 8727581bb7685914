//! The shipping thread: looks for finished blocks and uploads them one by one, until the node
//! stops. Failures are retried with growing pauses, without end.
//!
//! The thread has a low priority, so that uploads do not take CPU time from writes.

use super::block_info::BlockInfo;
use super::bucket::Bucket;
use super::plan::{Survey, survey};
use super::state::{Shipped, ShippedFile};
use super::upload::{Outcome, upload};
use super::{ShipConfig, ShipError, ShipFigures};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidepool_disk::{BlockDirs, DataDir};
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_protocol::prom::external_labels::ExternalLabels;
use tidepool_settings::redact::shown_text;

/// The interval between looks for finished blocks is `LOOK_EVERY_MIN` to `LOOK_EVERY_MAX`.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(100);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(10);

/// Pause after the first failure. It doubles with each further failure up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause after failures, before a random change.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// The thread's niceness. The kernel's lowest priority is 19.
const NICENESS: i32 = 10;

/// Rewrites blocks without their deleted samples. The error has the reason if it cannot.
pub type CleanTombstones =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// Ships blocks. Created before the data directory is opened.
pub struct Shipper {
    config: ShipConfig,
    bucket: Bucket,
    labels: ExternalLabels,
    look_every: Duration,
    figures: Arc<ShipFigures>,
}

struct Worker {
    shipper: Shipper,
    data: DataDir,
    blocks: BlockDirs,
    clean: CleanTombstones,
}

pub type ShipThread = std::thread::JoinHandle<()>;

impl Shipper {
    /// Opens the bucket, but starts nothing. Looks every hundredth part of `block_duration`.
    pub fn open(
        config: ShipConfig,
        labels: ExternalLabels,
        block_duration: Duration,
    ) -> Result<Shipper, ShipError> {
        let bucket = Bucket::open(&config.url, config.bytes_per_second_max)?;
        let look_every = (block_duration / 100).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX);
        Ok(Shipper { config, bucket, labels, look_every, figures: Arc::default() })
    }

    pub fn figures(&self) -> Arc<ShipFigures> {
        Arc::clone(&self.figures)
    }

    /// Starts the thread, which ends at the stop signal.
    pub fn spawn(
        self,
        data: &DataDir,
        clean: CleanTombstones,
        shutdown: Shutdown,
    ) -> io::Result<ShipThread> {
        let blocks = BlockDirs::open(data);
        let worker = Worker { shipper: self, data: data.clone(), blocks, clean };
        // A separate runtime, because uploads read files and must not block the network threads.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("ship".to_owned()).spawn(move || {
            // On Linux this sets the priority of this thread alone.
            if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
                tracing::debug!(%error, "could not lower the priority of the shipping thread");
            }
            runtime.block_on(worker.run(shutdown));
            // A hanging directory or an unresolvable name must not delay the stop.
            runtime.shutdown_background();
        })
    }
}

impl Worker {
    async fn run(self, mut shutdown: Shutdown) {
        let bucket = shown_text(&self.shipper.config.url);
        tracing::info!(bucket, "shipping of blocks started");
        tokio::select! {
            // A stop aborts an upload at any point. The next start continues with the same block.
            () = shutdown.wait() => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        let mut file = ShippedFile::open(&self.data);
        let mut failures = 0u32;
        loop {
            let pause = match self.ship_due(&mut file).await {
                Ok(()) => {
                    failures = 0;
                    self.figures().rounds.fetch_add(1, Relaxed);
                    self.shipper.look_every
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.figures().upload_failures.fetch_add(1, Relaxed);
                    let pause = pause_after(failures);
                    tracing::warn!(
                        error = chain(&error),
                        blocks_waiting = self.figures().blocks_waiting.load(Relaxed),
                        again_in_seconds = pause.as_secs_f64().round(),
                        "shipping of blocks failed; it will be retried"
                    );
                    pause
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Ships all due blocks. A faulty block does not keep other blocks from being shipped.
    async fn ship_due(&self, file: &mut ShippedFile) -> Result<(), ShipError> {
        let due = self.due(&mut file.shipped).await?;
        // `due` may have removed blocks from the list.
        file.save(&self.data)?;
        let mut failed = None;
        for (at, block) in due.iter().enumerate() {
            self.count_waiting(due.get(at..).unwrap_or_default());
            match self.ship(&block.ulid).await {
                Ok(()) => {
                    // Saved after each block, because an upload may have taken hours.
                    file.shipped.insert(block);
                    file.save(&self.data)?;
                }
                Err(error) if error.is_gone() => {}
                Err(error) if error.is_of_one_block() => failed = Some(error),
                // An error of the bucket would recur for the other blocks.
                Err(error) => return Err(error),
            }
        }
        match failed {
            Some(error) => {
                // Updates the number of waiting blocks, which now excludes the shipped blocks.
                self.look(&mut file.shipped)?;
                Err(error)
            }
            None => {
                self.count_waiting(&[]);
                Ok(())
            }
        }
    }

    /// Returns the due blocks, oldest first. Blocks with deleted samples are rewritten first:
    /// Thanos ignores tombstones, so deleted samples would be visible again in the bucket.
    async fn due(&self, shipped: &mut Shipped) -> Result<Vec<BlockInfo>, ShipError> {
        let due = self.look(shipped)?;
        if due.iter().all(|block| block.tombstones == 0) {
            return Ok(due);
        }
        if let Err(reason) = (self.clean)().await {
            // Blocks that still have deleted samples are refused later, one by one.
            tracing::debug!(reason, "blocks could not be rewritten without deletions");
        }
        self.look(shipped)
    }

    fn figures(&self) -> &ShipFigures {
        &self.shipper.figures
    }

    fn look(&self, shipped: &mut Shipped) -> Result<Vec<BlockInfo>, ShipError> {
        let Survey { found: mut blocks, unread } = survey(&self.blocks)?;
        // An unreadable block may have sources that must stay in the list.
        if unread.is_empty() {
            shipped.retain(&blocks);
        }
        blocks.retain(|block| block.is_due(shipped, self.shipper.config.with_compacted));
        self.count_waiting(&blocks);
        Ok(blocks)
    }

    fn count_waiting(&self, blocks: &[BlockInfo]) {
        let from_ms = blocks.iter().map(|block| block.min_time_ms).min().unwrap_or(0);
        let to_ms = blocks.iter().map(|block| block.max_time_ms).max().unwrap_or(0);
        let ShipFigures { blocks_waiting, waiting_span_ms, .. } = self.figures();
        blocks_waiting.store(blocks.len() as u64, Relaxed);
        waiting_span_ms.store(to_ms.saturating_sub(from_ms).max(0) as u64, Relaxed);
    }

    async fn ship(&self, ulid: &str) -> Result<(), ShipError> {
        // Earlier uploads may have taken hours, and samples may have been deleted meanwhile.
        let block = BlockInfo::read(&self.blocks, ulid)?;
        block.check_deletions()?;
        let started = Instant::now();
        let Shipper { bucket, labels, figures, .. } = &self.shipper;
        match upload(bucket, &self.blocks, &block, labels, figures).await? {
            Outcome::Uploaded { bytes } => {
                figures.uploads.fetch_add(1, Relaxed);
                figures.last_upload_ms.store(system_now_ms().max(0) as u64, Relaxed);
                let seconds = started.elapsed().as_secs_f64();
                tracing::info!(
                    block = ulid,
                    samples = block.samples,
                    bytes,
                    seconds,
                    "block shipped"
                );
            }
            Outcome::AlreadyThere => {
                figures.already_there.fetch_add(1, Relaxed);
                tracing::info!(block = ulid, "block is already in the bucket");
            }
            Outcome::Taken { difference } => {
                figures.conflicts.fetch_add(1, Relaxed);
                tracing::error!(
                    block = ulid,
                    difference,
                    "the bucket has a different block with this ULID; this block is not shipped. \
                     Was the data directory copied from another node, or an external label \
                     changed?"
                );
            }
        }
        Ok(())
    }
}

/// Returns a pause that doubles with each failure, plus or minus a random fifth: nodes that lost
/// the same uplink must not all retry at the same time.
fn pause_after(failures: u32) -> Duration {
    // The shift must be less than the number of bits.
    let doubled = PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let chance = RandomState::new().hash_one(0u64) as f64 / u64::MAX as f64;
    doubled.min(PAUSE_MAX).mul_f64(0.8 + 0.4 * chance)
}

/// Returns the texts of an error and its causes, which `Display` of the client omits.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        assert!(pause_after(1) >= PAUSE.mul_f64(0.8) && pause_after(1) <= PAUSE.mul_f64(1.2));
        assert!(pause_after(4) >= PAUSE.mul_f64(6.4));
        for failures in [9, 10, 1000, u32::MAX] {
            let pause = pause_after(failures);
            assert!(pause >= PAUSE.mul_f64(200.0) && pause <= PAUSE_MAX.mul_f64(1.2), "{pause:?}");
        }
    }
}
