//! The thread that writes events: one sync for all that wait, a new segment after an error, and
//! another attempt after a while. It also drops what the limits drop.

use super::error::{JournalError, Result};
use super::format::{MAGIC, encode_begin, encode_event, encode_open};
use super::segment::path_of;
use super::state::{Batch, Done, State, Target};
use super::{Shared, quarantine};
use std::io;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tidepool_disk::error::Action;
use tidepool_disk::fs::{Access, DiskFile};

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The thread of a journal, which ends when this is dropped.
pub struct JournalThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Writer {
    shared: Arc<Shared>,
    /// The newest segment, open for writing.
    file: Option<(u64, Arc<dyn DiskFile>)>,
    /// A segment that could not be begun, and may not be removed either.
    unfinished: Option<u64>,
    are_parents_synced: bool,
}

impl JournalThread {
    pub(super) fn start(shared: Arc<Shared>) -> JournalThread {
        let (file, unfinished) = (None, None);
        let shared_with_writer = Arc::clone(&shared);
        let writer =
            Writer { shared: shared_with_writer, file, unfinished, are_parents_synced: false };
        let thread = std::thread::Builder::new().name("alert-journal".to_owned());
        let thread = thread.spawn(move || writer.run()).map_err(|source| {
            let error = JournalError::Thread { source };
            tracing::error!(%error, "alerts are not stored");
            let mut state = shared.lock();
            (state.is_stopped, state.last_error) = (true, Some(error.to_string()));
        });
        JournalThread { shared, thread: thread.ok() }
    }

    /// Blocking. Writes what is not on disk yet, once, and ends the thread. The journal stays
    /// readable; what is appended afterwards stays in memory.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.lock().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the alert journal ended by a defect");
        }
    }
}

impl Drop for JournalThread {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends waits for the thread in any case.
struct Stopped(Arc<Shared>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.lock().is_stopped = true;
        self.0.changed.notify_all();
    }
}

impl Writer {
    fn run(mut self) {
        let _stopped = Stopped(Arc::clone(&self.shared));
        let mut pause = PAUSE_MIN;
        while let Some(batch) = self.next_batch() {
            match self.write(&batch) {
                Ok(done) => {
                    pause = PAUSE_MIN;
                    self.written(&batch, &done);
                    self.drop_surplus();
                }
                Err(error) => {
                    let is_stopping = self.failed(&batch, &error);
                    let unwritten = self.shared.lock().unwritten.len();
                    tracing::warn!(
                        %error, unwritten, pause_seconds = pause.as_secs(),
                        "could not write the alert journal: events stay in memory, and are \
                         delivered from there"
                    );
                    if is_stopping {
                        return;
                    }
                    self.pause(pause);
                    pause = (2 * pause).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Waits for events. `None` if the thread shall stop and all is written.
    fn next_batch(&self) -> Option<Batch> {
        let mut state = self.shared.lock();
        loop {
            if std::mem::replace(&mut state.are_bounds_new, false) {
                state.is_idle = false;
                drop(state);
                self.drop_surplus();
                state = self.shared.lock();
                continue;
            }
            if let Some(batch) = state.batch() {
                (state.is_idle, state.is_hurried) = (false, false);
                return Some(batch);
            }
            state.is_idle = true;
            self.shared.changed.notify_all();
            if state.is_stopping {
                return None;
            }
            state = self.wait(state);
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a write is worth another attempt, or somebody wants one.
    fn pause(&self, pause: Duration) {
        let state = self.shared.lock();
        let waits = |state: &mut State| !state.is_hurried && !state.is_stopping;
        let waited = self.shared.changed.wait_timeout_while(state, pause, waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn written(&self, batch: &Batch, done: &Done) {
        let mut state = self.shared.lock();
        state.written(batch, done);
        if state.last_error.take().is_some() {
            tracing::info!(events = batch.entries.len(), "the alert journal is written again");
        }
        self.shared.publish(&state);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Returns whether the thread shall stop.
    fn failed(&mut self, batch: &Batch, error: &JournalError) -> bool {
        self.file = None;
        let mut state = self.shared.lock();
        state.failed(batch, error.to_string());
        self.shared.publish(&state);
        let is_stopping = state.is_stopping;
        drop(state);
        self.shared.changed.notify_all();
        is_stopping
    }

    fn write(&mut self, batch: &Batch) -> Result<Done> {
        let mut done = Done { bytes: 0, snapshot_end: 0, too_long: 0 };
        let mut bytes = Vec::new();
        let first = batch.entries.first().map_or(0, |entry| entry.number);
        if let Target::Begin { opens } = &batch.target {
            let (mut snapshot, mut count) = (Vec::new(), 0);
            for entry in opens {
                count += u32::from(encode_open(&mut snapshot, entry));
            }
            bytes.extend_from_slice(MAGIC);
            encode_begin(&mut bytes, first, count);
            bytes.append(&mut snapshot);
            done.snapshot_end = bytes.len() as u64;
        }
        for entry in &batch.entries {
            done.too_long += u64::from(!encode_event(&mut bytes, entry));
        }
        match batch.target {
            Target::Append { first, bytes: offset } => self.append(first, offset, &bytes)?,
            Target::Begin { .. } => self.begin(first, &bytes)?,
        }
        done.bytes = bytes.len() as u64;
        Ok(done)
    }

    fn append(&mut self, first: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let path = path_of(&self.shared.dir, first);
        let file = match &self.file {
            Some((number, file)) if *number == first => Arc::clone(file),
            _ => {
                let opened = self.shared.disk.open(&path, Access::Write);
                let file = opened.map_err(JournalError::on(Action::Open, &path))?;
                let size_bytes = file.size().map_err(JournalError::on(Action::Open, &path))?;
                if size_bytes > offset {
                    // The torn end that a crash left.
                    file.set_len(offset).map_err(JournalError::on(Action::Write, &path))?;
                }
                self.file = Some((first, Arc::clone(&file)));
                file
            }
        };
        write_and_sync(&path, &*file, offset, bytes).inspect_err(|_| {
            // For the space alone: what is left of the batch is written once more elsewhere.
            let _ = file.set_len(offset);
        })
    }

    fn begin(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let (disk, dir) = (Arc::clone(&self.shared.disk), self.shared.dir.clone());
        let path = path_of(&dir, first);
        self.file = None;
        disk.create_dir(&dir).map_err(JournalError::on(Action::Create, &dir))?;
        let mut created = disk.create(&path);
        if let Err(error) = &created
            && error.kind() == io::ErrorKind::AlreadyExists
        {
            match self.unfinished == Some(first) {
                true => {
                    disk.remove_file(&path).map_err(JournalError::on(Action::Remove, &path))?;
                }
                // The numbers of the directory could not be read at the start.
                false => {
                    let kept = quarantine::take(&*disk, &self.shared.parent, &path)?;
                    let (path, kept) = (path.display(), kept.display());
                    tracing::warn!(%path, %kept, "quarantined an unknown segment");
                }
            }
            created = disk.create(&path);
        }
        let file = created.map_err(JournalError::on(Action::Create, &path))?;
        self.unfinished = Some(first);
        let written = write_and_sync(&path, &*file, 0, bytes).and_then(|()| self.sync_names(&dir));
        if let Err(error) = written {
            // If this fails, the next attempt or the next start sees to it.
            let _ = disk.remove_file(&path);
            return Err(error);
        }
        (self.unfinished, self.file) = (None, Some((first, file)));
        Ok(())
    }

    /// Makes the name of a new segment durable, and those of the directories, which may be new.
    fn sync_names(&mut self, dir: &Path) -> Result<()> {
        let parents = if self.are_parents_synced { 0 } else { 2 };
        for dir in dir.ancestors().take(1 + parents) {
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            self.shared.disk.sync_dir(dir).map_err(JournalError::on(Action::Sync, dir))?;
        }
        self.are_parents_synced = true;
        Ok(())
    }

    /// Removes the segments that the limits drop.
    fn drop_surplus(&self) {
        let now_ms = (self.shared.now)();
        loop {
            let Some(first) = self.shared.lock().surplus(now_ms) else { return };
            let path = path_of(&self.shared.dir, first);
            match self.shared.disk.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let path = path.display();
                    tracing::warn!(%path, %error, "could not drop a segment of the alert journal");
                    return;
                }
                _ => {}
            }
            let mut state = self.shared.lock();
            state.drop_oldest();
            self.shared.publish(&state);
            tracing::debug!(segment = first, "dropped a segment of the alert journal");
        }
    }
}

fn write_and_sync(path: &Path, file: &dyn DiskFile, offset: u64, bytes: &[u8]) -> Result<()> {
    file.write_at(offset, bytes).map_err(JournalError::on(Action::Write, path))?;
    file.sync_data().map_err(JournalError::on(Action::Sync, path))
}
