//! Reads files where others do not wait for them: a file system may take its time, and a mount
//! whose server is gone may never answer.

use crate::ClientError;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum time for reading the files of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that read files of requests; bounded, so that a mount which hangs takes no others.
static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(16)));

/// Runs a function that reads files on a thread that may block.
pub(crate) async fn off_network<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ClientError> + Send + 'static,
) -> Result<T, ClientError> {
    let reading = async {
        let turn = Arc::clone(&TURNS).acquire_owned().await.ok();
        // The thread gives the turn back, since it may outlive the request.
        let reading = spawn_blocking(move || {
            let read = read();
            drop(turn);
            read
        });
        reading.await.unwrap_or(Err(ClientError::SlowFiles(READ_TIMEOUT)))
    };
    timeout(READ_TIMEOUT, reading).await.unwrap_or(Err(ClientError::SlowFiles(READ_TIMEOUT)))
}
