//! Runs work of many milliseconds outside the network threads. A node with two cores has one
//! network thread, and blocking it blocks all connections, scrapes and timers.

use tidepool_store::StoreError;
use tokio::sync::Semaphore;

/// Maximum number of jobs. More would not finish sooner on small nodes, but use memory for input.
static TURNS: Semaphore = Semaphore::const_new(2);

/// Runs work on a blocking thread. The work ends normally even if the caller is dropped.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let turn = TURNS.acquire().await.map_err(|_| StoreError::Stopped)?;
    // The permit moves into the work, which continues if the caller is dropped.
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|error| StoreError::Runtime(error.to_string()))
}

/// Same as `run` for long work; short work runs on the calling thread.
pub async fn run_if<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    if is_long { run(work).await } else { Ok(work()) }
}
