//! Reads ahead: a thread reads, checks and decompresses a log while earlier batches are applied.
//!
//! The batches are the same as without the thread. While the thread runs, only it uses the files.

use super::replay::{Replay, ReplayBatch};
use crate::error::Result;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Maximum number of waiting batches: enough for the time of a slow read, in a few mebibytes.
const BATCHES_MAX: usize = 4;

/// A replay that can run on a thread of its own.
pub(super) struct ReadAhead {
    replay: Arc<Mutex<Replay>>,
    thread: Option<Reader>,
}

struct Reader {
    batches: Receiver<Result<ReplayBatch>>,
    thread: JoinHandle<()>,
}

impl ReadAhead {
    /// Wraps a replay without starting a thread.
    pub fn new(replay: Replay) -> ReadAhead {
        ReadAhead { replay: Arc::new(Mutex::new(replay)), thread: None }
    }

    /// Starts the thread. Its batches have about `bytes_max` bytes, whatever `next` requests.
    pub fn start(&mut self, bytes_max: u32) {
        let (sender, batches) = sync_channel(BATCHES_MAX);
        let replay = Arc::clone(&self.replay);
        let read = move || {
            let mut replay = replay.lock().unwrap_or_else(PoisonError::into_inner);
            // After an error the loop reads again, as a caller would without the thread.
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

    pub fn next(&mut self, bytes_max: u32) -> Result<Option<ReplayBatch>> {
        if let Some(reader) = &self.thread {
            if let Ok(batch) = reader.batches.recv() {
                return batch.map(Some);
            }
            self.end_thread();
        }
        // If the thread has reached the end, nothing is left to read, and this returns `None`.
        self.replay.lock().unwrap_or_else(PoisonError::into_inner).batch(bytes_max)
    }

    /// Ends the thread, then runs `work` on the replay, which must be at its end.
    pub fn ended<T>(mut self, work: impl FnOnce(&mut Replay) -> T) -> T {
        self.end_thread();
        work(&mut self.replay.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end_thread(&mut self) {
        let Some(Reader { batches, thread }) = self.thread.take() else { return };
        // Without a receiver, a thread that is blocked in `send` ends.
        drop(batches);
        if let Err(panic) = thread.join()
            // A second panic during unwinding would abort the process.
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for ReadAhead {
    /// Waits for the thread: another log of the directory may be opened only after the thread has
    /// closed its files.
    fn drop(&mut self) {
        self.end_thread();
    }
}
