//! Reading ahead: a thread reads, checks and unpacks a log while the batches before are worked on.
//!
//! The batches are the same as without it. Until its end the thread alone works on the files.

use super::replay::{Replay, ReplayBatch};
use crate::error::Result;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Batches that wait, at most: enough to bridge a slow read, and a few mebibytes.
const BATCHES_MAX: usize = 4;

/// A replay, perhaps on a thread of its own.
pub(super) struct ReadAhead {
    replay: Arc<Mutex<Replay>>,
    thread: Option<Reader>,
}

struct Reader {
    batches: Receiver<Result<ReplayBatch>>,
    thread: JoinHandle<()>,
}

impl ReadAhead {
    /// Begins nothing before it is asked.
    pub fn new(replay: Replay) -> ReadAhead {
        ReadAhead { replay: Arc::new(Mutex::new(replay)), thread: None }
    }

    /// Reads on a thread from now on, in batches of about `bytes_max` whatever is asked for.
    pub fn start(&mut self, bytes_max: u32) {
        let (sender, batches) = sync_channel(BATCHES_MAX);
        let replay = Arc::clone(&self.replay);
        let read = move || {
            let mut replay = replay.lock().unwrap_or_else(PoisonError::into_inner);
            // What failed is tried again, as if it had been asked for again.
            while let Some(batch) = replay.batch(bytes_max).transpose() {
                if sender.send(batch).is_err() {
                    break;
                }
            }
        };
        match std::thread::Builder::new().name("log-reader".into()).spawn(read) {
            Ok(thread) => self.thread = Some(Reader { batches, thread }),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "could not start a thread that reads the WAL ahead; replay takes longer"
                )
            }
        }
    }

    /// The next batch; `None` at the end.
    pub fn next(&mut self, bytes_max: u32) -> Result<Option<ReplayBatch>> {
        if let Some(reader) = &self.thread {
            if let Ok(batch) = reader.batches.recv() {
                return batch.map(Some);
            }
            self.end_thread();
        }
        // A thread that came to the end has left nothing but that.
        self.replay.lock().unwrap_or_else(PoisonError::into_inner).batch(bytes_max)
    }

    /// Works on the replay itself, once all is read.
    pub fn ended<T>(mut self, work: impl FnOnce(&mut Replay) -> T) -> T {
        self.end_thread();
        work(&mut self.replay.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end_thread(&mut self) {
        let Some(Reader { batches, thread }) = self.thread.take() else { return };
        drop(batches);
        if let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for ReadAhead {
    /// No other log of the directory may be opened before the thread has let go of its files.
    fn drop(&mut self) {
        self.end_thread();
    }
}
