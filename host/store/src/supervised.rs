//! Reports the store's state to systemd.

use super::Store;
use tidepool_lifecycle::supervisor::Service;

impl Service for Store {
    fn is_ready(&self) -> bool {
        Store::is_ready(self)
    }

    fn progress(&self) -> (u64, u64) {
        let figures = self.replay_status().figures;
        (figures.bytes_done, figures.percent())
    }

    async fn answers(&self) -> bool {
        // The call is cheap, and its answer shows that the head thread is not stuck.
        self.newest_time_ms().await.is_ok()
    }
}
