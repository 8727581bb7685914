//! The resources that all delivery runs of a destination share.

use super::config::DestinationConfig;
use super::figures::Figures;
use super::needs::Needs;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_store::Store;

use std::sync::Arc;
use std::time::Duration;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_runtime::Label;
use tokio::runtime::Handle;

/// Interval of looks at the log while there are no new samples.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Interval of updating figures, deleting segments and checking limits.
pub(super) const TIDY_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Resources {
    pub number: u64,
    pub config: DestinationConfig,
    pub external_labels: Vec<Label>,
    /// Memory limit of the engine instance.
    pub memory_bytes_max: usize,
    pub figures: Arc<Figures>,
    pub needs: Arc<Needs>,
    pub store: Store,
    pub runtime: Handle,
    /// Stop signals of the process and of this destination.
    pub shutdown: [Shutdown; 2],
}

impl Resources {
    /// Returns the time before which samples are too old to be sent; `i64::MIN` without a limit.
    pub fn not_before_ms(&self) -> i64 {
        let limit = self.config.queue.sample_age_limit;
        match limit.is_zero() {
            true => i64::MIN,
            false => system_now_ms().saturating_sub(limit.as_millis() as i64),
        }
    }

    /// Waits for `pause`; returns whether a stop signal has arrived by then.
    pub fn is_stopping_within(&self, pause: Duration) -> bool {
        let [mut all, mut one] = self.shutdown.clone();
        self.runtime.block_on(async {
            tokio::select! {
                // A stop signal must be noticed even with a pause of zero.
                biased;
                () = all.wait() => true,
                () = one.wait() => true,
                () = tokio::time::sleep(pause) => false,
            }
        })
    }
}
