//! Work of many milliseconds, beside the threads of the network: a node with two cores has one, and
//! what holds it holds all connections, scrapes and timers.

use tidepool_store::StoreError;
use tokio::sync::Semaphore;

/// At most so many at a time: more would not be done sooner on the nodes this is for, and each
/// holds what it works on.
static TURNS: Semaphore = Semaphore::const_new(2);

/// Does work beside the network. It runs to its end, and counts to it, also when nobody waits for
/// it any more.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let turn = TURNS.acquire().await.map_err(|_| StoreError::Stopped)?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|error| StoreError::Runtime(error.to_string()))
}

/// The same of work that is long; what is short is done at once.
pub async fn run_if<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    if is_long { run(work).await } else { Ok(work()) }
}
