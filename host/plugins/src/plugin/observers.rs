//! Observers: each has its own thread at low priority, and a bounded queue.

use super::batch::View;
use super::fault::Fault;
use super::pool::Plugin;
use super::state::columns_bytes_max;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tidepool_lifecycle::priority::lower_priority;
use tidepool_runtime::RemoteWriteVersion;
use tokio::runtime::Handle;

#[derive(Clone)]
pub struct Stored {
    pub version: RemoteWriteVersion,
    /// The message, decompressed; shared by the queues of all observers.
    pub body: Arc<[u8]>,
}

/// Queue of an observer. Dropping this value ends the observer after its queued batches.
pub struct Observer {
    plugin: Arc<Plugin>,
    queue: SyncSender<Stored>,
    queued_bytes: Arc<AtomicUsize>,
}

impl Observer {
    pub fn start(plugin: Arc<Plugin>, runtime: Handle) -> io::Result<Observer> {
        let (queue, batches) = sync_channel(plugin.settings.limits.queue);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let (observing, bytes) = (Arc::clone(&plugin), Arc::clone(&queued_bytes));
        let thread = std::thread::Builder::new().name("observer".into());
        thread.spawn(move || {
            lower_priority();
            observe_all(&observing, &batches, &bytes, &runtime);
        })?;
        Ok(Observer { plugin, queue, queued_bytes })
    }

    /// Queues a batch if there is room in number and in bytes (at most an instance's memory).
    pub fn show(&self, batch: Stored) {
        let bytes = batch.body.len();
        // Added before the check, so that two writers cannot both use the remaining room.
        let waiting = self.queued_bytes.fetch_add(bytes, Relaxed);
        let has_room = waiting + bytes <= self.plugin.settings.limits.memory_bytes_max;
        // Never waits: a slow observer must not delay writes.
        if !has_room || self.queue.try_send(batch).is_err() {
            self.queued_bytes.fetch_sub(bytes, Relaxed);
            self.plugin.figures.left_out.fetch_add(1, Relaxed);
        }
    }
}

fn observe_all(
    plugin: &Plugin,
    batches: &Receiver<Stored>,
    queued_bytes: &AtomicUsize,
    runtime: &Handle,
) {
    while let Ok(batch) = batches.recv() {
        // `observe` logs and counts failures; no caller waits for the result.
        let _ = runtime.block_on(observe(plugin, &batch));
        // Subtracted only now, because the batch uses memory until the observer has seen it.
        queued_bytes.fetch_sub(batch.body.len(), Relaxed);
    }
}

async fn observe(plugin: &Plugin, batch: &Stored) -> Result<(), Fault> {
    let Stored { version, body } = batch;
    let view = View::of(*version, body, plugin.interest, columns_bytes_max(&plugin.settings))?;
    plugin.figures.rows_in.fetch_add(view.samples + view.histograms, Relaxed);
    plugin.call(async |instance, time| instance.observe(&view.batch, time).await).await
}
