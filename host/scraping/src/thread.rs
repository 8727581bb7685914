//! The thread that makes all scrapes.
//!
//! One thread is enough: a scrape is a chain of short steps that depend on each other, and handing
//! them to other threads costs more than the steps of small targets. The thread can store some
//! million samples a second; requests, forwarding and the store have threads of their own.

use std::io;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

pub struct ScrapeThread {
    runtime: Handle,
    /// Dropping the sender ends the thread.
    _stop: oneshot::Sender<()>,
}

impl ScrapeThread {
    pub fn start() -> io::Result<ScrapeThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("scrape".into()).spawn(move || {
            // Nothing is ever sent: dropping the sender is the signal to stop.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(ScrapeThread { runtime: handle, _stop: stop })
    }

    pub fn runtime(&self) -> Handle {
        self.runtime.clone()
    }
}
