//! The thread on which targets are scraped.
//!
//! One thread does all of it: a scrape is a chain of short steps that wait for each other, and
//! handing them to other threads costs more than the steps of small targets. It stores some million
//! samples a second; requests, forwarding and the store have threads of their own.

use std::io;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

pub struct ScrapeThread {
    runtime: Handle,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl ScrapeThread {
    pub fn start() -> io::Result<ScrapeThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("scrape".into()).spawn(move || {
            // The sender is never used: its drop is the signal to stop.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(ScrapeThread { runtime: handle, _stop: stop })
    }

    pub fn runtime(&self) -> Handle {
        self.runtime.clone()
    }
}
