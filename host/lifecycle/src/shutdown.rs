//! The stop signal: SIGTERM or SIGINT reaches every holder of a [`Shutdown`].

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Receives the stop signal. Clones receive the same signal.
#[derive(Clone)]
pub struct Shutdown {
    stopping: watch::Receiver<bool>,
}

/// Sends the stop signal to the [`Shutdown`] that was made with it, also when it is dropped.
pub struct ShutdownTrigger(watch::Sender<bool>);

impl Shutdown {
    /// Makes a stop signal that SIGTERM or SIGINT sends.
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

    /// Makes a stop signal that the trigger sends.
    pub fn manual() -> (ShutdownTrigger, Shutdown) {
        let (sender, stopping) = watch::channel(false);
        (ShutdownTrigger(sender), Shutdown { stopping })
    }

    /// Waits for the stop signal.
    pub async fn wait(&mut self) {
        // An error means that the trigger was dropped, which is handled like the signal.
        let _ = self.stopping.wait_for(|stopping| *stopping).await;
    }
}

impl ShutdownTrigger {
    pub fn stop(self) {
        // An error means that no one waits for the signal any more.
        let _ = self.0.send(true);
    }
}
