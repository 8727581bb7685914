//! The thread on which targets are scraped.
//!
//! All on one: a scrape is a chain of short steps that wait for each other, and threads that hand
//! them on cost more than the steps of small targets do. It does some million samples a second;
//! requests, forwarding and the store have threads of their own.

use std::io;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Runs tasks until it is dropped.
pub struct ScrapeThread {
    runtime: Handle,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl ScrapeThread {
    /// Starts the thread.
    pub fn start() -> io::Result<ScrapeThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("scrape".into()).spawn(move || {
            // An error means that the sender was dropped, which is what is waited for.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(ScrapeThread { runtime: handle, _stop: stop })
    }

    /// Spawns tasks on the thread.
    pub fn runtime(&self) -> Handle {
        self.runtime.clone()
    }
}
