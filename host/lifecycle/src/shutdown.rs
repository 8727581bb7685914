//! The stop signal: SIGTERM or SIGINT, heard by everyone who holds a [`Shutdown`].

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Tells when to stop. Clones hear the same signal.
#[derive(Clone)]
pub struct Shutdown {
    stopping: watch::Receiver<bool>,
}

/// Stops those who hold the [`Shutdown`] it came with; so does dropping it.
pub struct ShutdownTrigger(watch::Sender<bool>);

impl Shutdown {
    /// Stops when the process is asked to.
    pub fn on_signals() -> io::Result<Shutdown> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (trigger, shutdown) = Shutdown::manual();
        tokio::spawn(async move {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            tracing::info!(signal = name, "stopping");
            trigger.stop();
        });
        Ok(shutdown)
    }

    /// Stops when the trigger says so.
    pub fn manual() -> (ShutdownTrigger, Shutdown) {
        let (sender, stopping) = watch::channel(false);
        (ShutdownTrigger(sender), Shutdown { stopping })
    }

    /// Waits until it is time to stop.
    pub async fn wait(&mut self) {
        // An error means that the trigger is gone, which says the same.
        let _ = self.stopping.wait_for(|stopping| *stopping).await;
    }
}

impl ShutdownTrigger {
    /// Stops everyone.
    pub fn stop(self) {
        // All receivers may be dropped.
        let _ = self.0.send(true);
    }
}
