//! Reads files on threads that may block: a file system may be slow, and a mount whose server is
//! gone may never answer.

use crate::ClientError;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum time for reading the files of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits the threads that read files, so that a hanging mount does not occupy all threads.
static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(16)));

/// Runs a function that reads files on a thread that may block.
pub(crate) async fn off_network<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ClientError> + Send + 'static,
) -> Result<T, ClientError> {
    let reading = async {
        let turn = Arc::clone(&TURNS).acquire_owned().await.ok();
        // Released by the thread, which may run longer than the request.
        let reading = spawn_blocking(move || {
            let read = read();
            drop(turn);
            read
        });
        reading.await.unwrap_or(Err(ClientError::SlowFiles(READ_TIMEOUT)))
    };
    timeout(READ_TIMEOUT, reading).await.unwrap_or(Err(ClientError::SlowFiles(READ_TIMEOUT)))
}
