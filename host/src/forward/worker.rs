//! The thread of one destination: reads, hands requests to senders, and writes down where delivery
//! stands after each answer. It waits for nobody but the engine and its own files.

use super::backlog::{Pace, Window};
use super::client::Client;
use super::config::{BacklogOrder, DestinationConfig};
use super::figures::Figures;
use super::position::{Position, PositionFile};
use super::resharding::{Resharding, UPDATE_EVERY};
use super::sender::{Outcome, Outgoing, Sender};
use super::tail::{Feeding, Read, Tails, segments};
use super::{ForwardError, Needs};
use crate::disk::SyncPolicy;
use crate::shutdown::Shutdown;
use crate::store::{Store, system_now_ms};
use crate::wasm::{Destination, ForwardSettings, Label, RemoteWriteVersion, Request};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Memory of the engine instance.
const MEMORY_BYTES_MAX: usize = 1 << 30;

/// How often the log is looked at while nothing happens.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often figures are taken, segments deleted, and limits looked at.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Parts of the log that are read between two looks at answers.
const STEPS: usize = 16;

/// Longest time at the end that requests on their way are waited for.
const END_WAIT: Duration = Duration::from_secs(3);

/// Pause before a worker that failed begins anew.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// What a worker works with.
pub(super) struct Parts {
    pub number: usize,
    pub config: DestinationConfig,
    pub external_labels: Vec<Label>,
    pub figures: Arc<Figures>,
    pub needs: Arc<Needs>,
    pub store: Store,
    pub runtime: Handle,
    pub shutdown: Shutdown,
}

/// The thread's state over all of its lives.
pub(super) struct Worker {
    parts: Parts,
    sender: Arc<Sender>,
    file: PositionFile,
    position: Position,
    version: RemoteWriteVersion,
}

/// A request that is on its way.
struct OnItsWay {
    task: JoinHandle<()>,
    rows: u64,
    newest_ms: i64,
}

#[derive(Default)]
struct Shard {
    on_its_way: Option<OnItsWay>,
    /// Since when rows wait without a request.
    since: Option<Instant>,
}

/// Shard, generation of shards, and how it ended.
type Answered = (u32, u64, Outcome);

/// One life: it ends with the process, or with its instance.
struct Life<'w> {
    parts: &'w Parts,
    sender: &'w Arc<Sender>,
    file: &'w mut PositionFile,
    version: &'w mut RemoteWriteVersion,
    destination: Destination,
    tails: Tails,
    shards: Vec<Shard>,
    generation: u64,
    answers: (SyncSender<Answered>, Receiver<Answered>),
    resharding: Resharding,
    resharded: Instant,
    /// Shards that there are to be once no row waits.
    wanted: Option<u32>,
    window: Option<Window>,
    /// The window that was opened last.
    last_window: Option<i64>,
    /// Rows that it should have and that were not taken yet; not known of one that an earlier life
    /// has begun.
    rows_left: Option<u64>,
    /// Whether an earlier life may have delivered some of the first window.
    has_resumed_window: bool,
    pace: Pace,
    tidied: Instant,
    synced: Instant,
    detached: Option<Instant>,
    delivered: Option<Instant>,
    metadata_sent: Option<Instant>,
    compressor: snap::raw::Encoder,
}

/// Where rows go that are read: parts of a life that are borrowed at the same time as others.
macro_rules! feeding {
    ($life:expr, $capacity:expr) => {
        Feeding {
            destination: &mut $life.destination,
            capacity: $capacity,
            figures: &$life.parts.figures,
            resharding: &mut $life.resharding,
        }
    };
}

impl Worker {
    pub fn new(parts: Parts, client: Client, file: PositionFile, position: Position) -> Worker {
        let sender = Arc::new(Sender {
            client,
            queue: parts.config.queue.clone(),
            figures: Arc::clone(&parts.figures),
            name: parts.config.name.clone(),
        });
        let version = parts.config.version;
        Worker { parts, sender, file, position, version }
    }

    /// Works until it is time to stop. What fails is begun anew from the written position.
    pub fn run(mut self) {
        let Parts { config, .. } = &self.parts;
        let url = shown_url(config);
        tracing::info!(remote_name = config.name, url, "samples are forwarded");
        loop {
            let stopping = match self.live() {
                Ok(()) => true,
                Err(error) => {
                    let remote_name = &self.parts.config.name;
                    tracing::error!(
                        remote_name, %error,
                        "forwarding failed; it goes on from where delivery stood"
                    );
                    self.parts.is_stopping_within(RESTART_PAUSE)
                }
            };
            if stopping {
                return;
            }
        }
    }

    fn live(&mut self) -> Result<(), ForwardError> {
        let Worker { parts, sender, file, position, version } = self;
        while !parts.store.is_ready() {
            if parts.is_stopping_within(LOOK_EVERY) {
                return Ok(());
            }
        }
        let Parts { config, external_labels, store, .. } = &*parts;
        let settings = ForwardSettings {
            external_labels: external_labels.clone(),
            rules: config.rules.clone(),
            exemplars: config.send_exemplars,
            histograms: config.send_native_histograms,
            shards: position.shards.len().max(1) as u32,
        };
        let instance = store.forwarding_instance(MEMORY_BYTES_MAX)?;
        let mut destination = Destination::new(instance, &settings)?;
        destination.resume(&position.shards, &position.gaps)?;
        let has_resumed_window = destination.store_window()?.is_some();
        let tails = Tails::open(store.data(), &position.shards, &mut destination)?;
        let shards = position.shards.iter().map(|_| Shard::default()).collect();
        let now = Instant::now();
        let mut life = Life {
            parts,
            sender,
            file,
            version,
            destination,
            tails,
            shards,
            generation: 0,
            // Each shard has one request on its way; those of shards before may answer, too.
            answers: sync_channel(2 * config.queue.max_shards as usize + 16),
            resharding: Resharding::default(),
            resharded: now,
            wanted: None,
            window: None,
            last_window: None,
            rows_left: None,
            has_resumed_window,
            pace: Pace::new(config.backlog.samples_per_second),
            tidied: now,
            synced: now,
            detached: None,
            delivered: None,
            metadata_sent: None,
            compressor: snap::raw::Encoder::new(),
        };
        let ended = life.work();
        life.abort();
        if let Err(error) = &ended {
            tracing::debug!(%error, "a life of forwarding ended");
            // The next one begins where this one's last answer left it.
            if let Ok(shards) = life.destination.positions()
                && let Ok(gaps) = life.destination.gaps()
            {
                *position = Position { shards, gaps };
            } else {
                let dir = parts.store.data().path().join(crate::disk::wal::FORWARD_DIR);
                if let Ok((_, Some(read))) = PositionFile::open(&dir, &parts.config.name) {
                    *position = read;
                }
            }
        }
        ended
    }
}

impl Parts {
    /// Waits; gives whether it is time to stop.
    fn is_stopping_within(&self, pause: Duration) -> bool {
        let mut shutdown = self.shutdown.clone();
        self.runtime.block_on(async { tokio::time::timeout(pause, shutdown.wait()).await.is_ok() })
    }
}

impl Life<'_> {
    fn work(&mut self) -> Result<(), ForwardError> {
        self.write_position(false)?;
        loop {
            let mut has_done = self.take_answers(Duration::ZERO)?;
            has_done |= self.read()?;
            has_done |= self.send(false)?;
            if self.tidied.elapsed() >= TIDY_EVERY {
                self.tidied = Instant::now();
                self.tidy()?;
            }
            if has_done {
                if self.parts.is_stopping_within(Duration::ZERO) {
                    return self.end();
                }
                continue;
            }
            self.take_answers(LOOK_EVERY)?;
            if self.parts.is_stopping_within(Duration::ZERO) {
                return self.end();
            }
        }
    }

    /// Gives requests that are on their way some time to be answered.
    fn end(&mut self) -> Result<(), ForwardError> {
        let until = Instant::now() + END_WAIT;
        while self.shards.iter().any(|shard| shard.on_its_way.is_some()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.take_answers(left)? {
                break;
            }
        }
        let failed = |source| self.parts.position_error(source);
        self.file.sync().map_err(failed)
    }

    /// Ends all requests; whether they were delivered nobody will know.
    fn abort(&mut self) {
        self.generation += 1;
        for shard in &mut self.shards {
            if let Some(sent) = shard.on_its_way.take() {
                sent.task.abort();
            }
            shard.since = None;
        }
    }

    /// Takes what was answered, the first within this time; gives whether anything was.
    fn take_answers(&mut self, wait: Duration) -> Result<bool, ForwardError> {
        let first = match wait.is_zero() {
            true => self.answers.1.try_recv().map_err(|_| RecvTimeoutError::Timeout),
            false => self.answers.1.recv_timeout(wait),
        };
        let Ok(first) = first else { return Ok(false) };
        let mut next = Some(first);
        let mut is_done = false;
        while let Some((shard_number, generation, outcome)) = next {
            next = self.answers.1.try_recv().ok();
            let shard = self.shards.get_mut(shard_number as usize);
            let Some(shard) = shard.filter(|_| generation == self.generation) else { continue };
            let Some(sent) = shard.on_its_way.take() else { continue };
            // What waits behind it has waited.
            shard.since = Some(Instant::now());
            match outcome {
                Outcome::Delivered(took) => {
                    self.resharding.went_out(sent.rows, took);
                    self.delivered = Some(Instant::now());
                    self.parts.figures.newest_sent_ms.fetch_max(sent.newest_ms, Relaxed);
                }
                Outcome::Refused => {}
                Outcome::UnknownVersion => {
                    if *self.version == RemoteWriteVersion::V2 {
                        *self.version = RemoteWriteVersion::V1;
                        tracing::warn!(
                            remote_name = self.parts.config.name,
                            "the receiver does not take remote write 2.0; it gets 1.0 until the \
                             next start"
                        );
                    }
                    self.send_shard(shard_number)?;
                    continue;
                }
                Outcome::Stale => {
                    self.send_shard(shard_number)?;
                    continue;
                }
            }
            self.destination.done(shard_number)?;
            is_done = true;
        }
        if is_done {
            self.write_position(false)?;
        }
        Ok(true)
    }

    /// Reads some of the logs and of what they have no more; gives whether there was anything.
    fn read(&mut self) -> Result<bool, ForwardError> {
        if self.wanted.is_some() {
            return Ok(false);
        }
        let order = self.parts.config.backlog.order;
        let has_window = self.window.is_some() || self.destination.store_window()?.is_some();
        let mut has_read = false;
        if order == BacklogOrder::NewestFirst || !has_window {
            for _ in 0..STEPS {
                let mut feeding = feeding!(self, self.parts.config.queue.capacity);
                match self.tails.step(&mut feeding)? {
                    Read::Some => has_read = true,
                    Read::End | Read::Full => break,
                }
            }
        }
        if has_window {
            has_read |= self.read_window()?;
        }
        Ok(has_read)
    }

    fn read_window(&mut self) -> Result<bool, ForwardError> {
        let Some(window) = self.destination.store_window()? else {
            self.window = None;
            return Ok(false);
        };
        if self.is_window_too_old(&window) {
            self.drop_window(&window, &self.parts.figures.dropped.too_old)?;
            return Ok(true);
        }
        if !self.pace.has_room() {
            return Ok(false);
        }
        let mut open = match self.window.take().filter(|open| open.start_ms() == window.start_ms) {
            Some(open) => open,
            // An open read keeps the head from forgetting: none is opened that could not go on.
            None if self.is_any_full()? => return Ok(false),
            None => {
                // Before the store is read: what comes late meanwhile is sent from the log.
                let late_end = self.tails.late_end()?;
                self.destination.begin_store_window(late_end)?;
                self.write_position(true)?;
                if self.last_window.replace(window.start_ms) != Some(window.start_ms) {
                    self.rows_left = (!self.has_resumed_window).then_some(window.rows);
                    self.has_resumed_window = false;
                }
                let opened = Window::open(&self.parts.store, &self.parts.runtime, &window);
                match opened {
                    Ok(open) => open,
                    Err(error) => return self.store_failed(&error),
                }
            }
        };
        if open.has_ended() {
            // Its rows are counted by the window until they are delivered.
            if !self.destination.has_store_rows()? {
                if let Some(samples) = self.rows_left.filter(|samples| *samples > 0) {
                    self.parts.figures.dropped.not_stored.fetch_add(samples, Relaxed);
                    tracing::warn!(
                        remote_name = self.parts.config.name,
                        samples,
                        from_ms = window.start_ms,
                        to_ms = window.end_ms,
                        "samples that waited to be forwarded are not in the store any more: they \
                         were deleted, or dropped by retention"
                    );
                }
                self.last_window = None;
                self.destination.end_store_window()?;
                self.write_position(true)?;
                return Ok(true);
            }
            self.window = Some(open);
            return Ok(false);
        }
        let capacity = self.parts.config.queue.capacity;
        // Live samples find room beside these.
        let capacity = match self.parts.config.backlog.order {
            BacklogOrder::OldestFirst => capacity,
            BacklogOrder::NewestFirst => (capacity / 2).max(1),
        };
        let mut feeding = feeding!(self, capacity);
        match open.step(&mut feeding, &self.parts.runtime) {
            Ok(rows) => {
                let taken = rows.unwrap_or(0);
                self.pace.took(taken);
                self.rows_left = self.rows_left.map(|left| left.saturating_sub(taken));
                // Nor does one stay open that waits for long.
                self.window = (!open.is_stuck()).then_some(open);
                Ok(rows.is_some())
            }
            Err(ForwardError::Call(error)) => Err(error.into()),
            Err(error) => self.store_failed(&error),
        }
    }

    fn is_any_full(&mut self) -> Result<bool, ForwardError> {
        let capacity = self.parts.config.queue.capacity;
        Ok(self.destination.pending()?.iter().any(|rows| *rows >= (capacity / 2).max(1)))
    }

    /// The store could not be read: it is tried again, from where that ended.
    fn store_failed(&mut self, error: &ForwardError) -> Result<bool, ForwardError> {
        tracing::debug!(%error, "what is missing in the log could not be read; trying again");
        self.window = None;
        self.parts.is_stopping_within(LOOK_EVERY);
        Ok(false)
    }

    fn is_window_too_old(&self, window: &crate::wasm::StoreWindow) -> bool {
        window.end_ms < self.not_before_ms()
    }

    /// Gives up a window.
    fn drop_window(
        &mut self,
        window: &crate::wasm::StoreWindow,
        dropped: &std::sync::atomic::AtomicU64,
    ) -> Result<(), ForwardError> {
        // What of it waits in queues is sent all the same.
        let is_begun = self.last_window == Some(window.start_ms);
        let samples = self.rows_left.filter(|_| is_begun).unwrap_or(window.rows);
        self.window = None;
        dropped.fetch_add(samples, Relaxed);
        tracing::warn!(
            remote_name = self.parts.config.name,
            samples,
            from_ms = window.start_ms,
            to_ms = window.end_ms,
            "samples that waited to be forwarded are dropped, as sample_age_limit and \
             backlog.max_bytes say"
        );
        self.last_window = None;
        self.destination.end_store_window()?;
        self.write_position(true)
    }

    /// Samples before this are too old to be sent.
    fn not_before_ms(&self) -> i64 {
        let limit = self.parts.config.queue.sample_age_limit;
        match limit.is_zero() {
            true => i64::MIN,
            false => system_now_ms().saturating_sub(limit.as_millis() as i64),
        }
    }

    /// Sends of each shard that has none on its way what waits long enough, or all that waits; gives
    /// whether anything was sent.
    fn send(&mut self, all: bool) -> Result<bool, ForwardError> {
        let pending = self.destination.pending()?;
        let rows: u64 = pending.iter().map(|rows| u64::from(*rows)).sum();
        self.parts.figures.pending.store(rows, Relaxed);
        let queue = &self.parts.config.queue;
        let mut has_sent = false;
        for (number, rows) in (0..).zip(pending) {
            let Some(shard) = self.shards.get_mut(number as usize) else { continue };
            if shard.on_its_way.is_some() {
                continue;
            }
            if rows == 0 {
                shard.since = None;
                continue;
            }
            let since = *shard.since.get_or_insert_with(Instant::now);
            let is_due = rows >= queue.max_samples_per_send
                || since.elapsed() >= queue.batch_send_deadline
                || self.wanted.is_some()
                || self.window.as_ref().is_some_and(Window::has_ended)
                || all;
            if is_due {
                self.send_shard(number)?;
                has_sent = true;
            }
        }
        Ok(has_sent)
    }

    fn send_shard(&mut self, number: u32) -> Result<(), ForwardError> {
        let rows_max = self.parts.config.queue.max_samples_per_send;
        let not_before_ms = self.not_before_ms();
        let request = self.destination.take(number, *self.version, rows_max, not_before_ms)?;
        let Some(request) = request else { return Ok(()) };
        let Request { body, samples, histograms, exemplars, too_old, newest_ms } = request;
        if too_old > 0 {
            self.parts.figures.dropped.too_old.fetch_add(too_old, Relaxed);
            self.resharding.dropped(too_old);
        }
        if body.is_empty() {
            self.destination.done(number)?;
            return self.write_position(false);
        }
        let compressed = self.compressor.compress_vec(&body);
        let compressed = compressed.map_err(|error| {
            crate::store::StoreError::Runtime(format!("a request could not be compressed: {error}"))
        })?;
        let limit = self.parts.config.queue.sample_age_limit;
        // What has just passed the limit is not looked at each time.
        let stale_at = (!limit.is_zero()).then(|| Instant::now() + limit / 10);
        let outgoing = Outgoing {
            body: Bytes::from(compressed),
            version: *self.version,
            samples,
            histograms,
            exemplars,
            stale_at,
        };
        let (sender, answers) = (Arc::clone(self.sender), self.answers.0.clone());
        let generation = self.generation;
        let task = self.parts.runtime.spawn(async move {
            let outcome = sender.send(&outgoing).await;
            // There is room for one answer of each shard.
            let _ = answers.try_send((number, generation, outcome));
        });
        if let Some(shard) = self.shards.get_mut(number as usize) {
            let rows = samples + histograms;
            shard.on_its_way = Some(OnItsWay { task, rows, newest_ms });
            shard.since = None;
        }
        Ok(())
    }

    /// Writes down where delivery stands; gaps only if they may have changed.
    fn write_position(&mut self, with_gaps: bool) -> Result<(), ForwardError> {
        let shards = self.destination.positions()?;
        let gaps = if with_gaps { Some(self.destination.gaps()?) } else { None };
        let failed = |source| self.parts.position_error(source);
        self.file.write(&shards, gaps).map_err(failed)?;
        let (ordered, _) = segments(&shards);
        self.parts.figures.segment.store(u64::from(ordered), Relaxed);
        let every = match self.parts.store.config().wal.sync {
            SyncPolicy::Off => return Ok(()),
            SyncPolicy::Interval(interval) | SyncPolicy::Batch { interval, .. } => interval,
            SyncPolicy::Always => TIDY_EVERY,
        };
        if self.synced.elapsed() >= every {
            self.synced = Instant::now();
            self.file.sync().map_err(|source| self.parts.position_error(source))?;
        }
        Ok(())
    }

    /// What is done once a second.
    fn tidy(&mut self) -> Result<(), ForwardError> {
        let parts = self.parts;
        if let Ok(newest_ms) = parts.runtime.block_on(parts.store.newest_time_ms())
            && newest_ms > i64::MIN
        {
            parts.figures.newest_ms.store(newest_ms, Relaxed);
        }
        let gap_rows = self.destination.gap_rows()?;
        let gap_bytes = (gap_rows as f64 * parts.figures.bytes_per_sample()) as u64;
        let bytes_left = self.tails.bytes_left() + gap_bytes;
        parts.figures.gap_rows.store(gap_rows, Relaxed);
        parts.figures.bytes_left.store(bytes_left, Relaxed);
        self.tails.forget_series(&mut self.destination)?;
        let needed = segments(&self.destination.positions()?);
        parts.needs.note(parts.number, needed)?;
        let backlog = &parts.config.backlog;
        let is_beyond = backlog.max_bytes > 0 && bytes_left > backlog.max_bytes;
        let lags = parts.figures.lag_seconds() > backlog.newest_first_after.as_secs_f64();
        let is_recent = |at: Option<Instant>, within| at.is_some_and(|at| at.elapsed() < within);
        let skips = backlog.order == BacklogOrder::NewestFirst
            && lags
            && is_recent(self.delivered, TIDY_EVERY)
            && !is_recent(self.detached, backlog.newest_first_after);
        if parts.needs.is_too_much(needed) || skips || (is_beyond && gap_rows == 0) {
            self.detach()?;
        }
        if is_beyond && let Some(window) = self.destination.store_window()? {
            self.drop_window(&window, &parts.figures.dropped.backlog_bytes)?;
            // The next one at once, if that is not enough.
            self.tidied = Instant::now() - TIDY_EVERY;
        }
        self.reshard()?;
        self.send_metadata()
    }

    /// Leaves what was not delivered of the logs to be taken from the store.
    fn detach(&mut self) -> Result<(), ForwardError> {
        self.abort();
        self.detached = Some(Instant::now());
        let mut rows = self.destination.detach()?;
        let in_log = &self.parts.figures.samples_in;
        let before = in_log.load(Relaxed);
        // Each cycle reads what was there when it began.
        for _ in 0..2 {
            loop {
                let mut feeding = feeding!(self, u32::MAX);
                if self.tails.step(&mut feeding)? != Read::Some {
                    break;
                }
            }
        }
        self.destination.attach()?;
        rows += in_log.load(Relaxed) - before;
        self.write_position(true)?;
        tracing::info!(
            remote_name = self.parts.config.name,
            samples = rows,
            "what was not delivered of the log will be taken from blocks"
        );
        Ok(())
    }

    /// Looks every ten seconds whether more or fewer shards are wanted.
    fn reshard(&mut self) -> Result<(), ForwardError> {
        let now = self.shards.len() as u32;
        let figures = &self.parts.figures;
        figures.shards.store(u64::from(now), Relaxed);
        let elapsed = self.resharded.elapsed();
        if elapsed >= UPDATE_EVERY {
            self.resharded = Instant::now();
            let queue = &self.parts.config.queue;
            let bounds = (queue.min_shards, queue.max_shards);
            let delay = figures.lag_seconds();
            let (wanted, desired) = self.resharding.desired(now, bounds, delay, elapsed);
            let wanted = wanted.clamp(bounds.0, bounds.1);
            figures.shards_desired_milli.store((desired * 1000.0) as u64, Relaxed);
            // Not while nothing is delivered: what takes long then is not the number's fault.
            let delivers = self.delivered.is_some_and(|at| at.elapsed() < UPDATE_EVERY);
            self.wanted = (wanted != now && delivers).then_some(wanted);
        }
        let Some(wanted) = self.wanted else { return Ok(()) };
        let is_idle = self.shards.iter().all(|shard| shard.on_its_way.is_none());
        if is_idle && self.destination.reshard(wanted)? {
            tracing::info!(
                remote_name = self.parts.config.name,
                from = now,
                to = wanted,
                "number of shards changed"
            );
            self.generation += 1;
            self.shards = (0..wanted).map(|_| Shard::default()).collect();
            self.wanted = None;
            self.parts.figures.shards.store(u64::from(wanted), Relaxed);
            self.write_position(false)?;
        } else if is_idle && self.destination.pending()?.iter().all(|rows| *rows == 0) {
            // An earlier life delivered some of what is still to be read: not yet.
            self.wanted = None;
        }
        Ok(())
    }

    /// Sends what is known of metric families, where requests do not say it themselves.
    fn send_metadata(&mut self) -> Result<(), ForwardError> {
        let metadata = &self.parts.config.metadata;
        let is_due = self.metadata_sent.is_none_or(|at| at.elapsed() >= metadata.send_interval);
        if !metadata.send || *self.version != RemoteWriteVersion::V1 || !is_due {
            return Ok(());
        }
        self.metadata_sent = Some(Instant::now());
        let mut bodies = Vec::new();
        let mut after = String::new();
        while let Some(request) =
            self.destination.metadata(&after, metadata.max_samples_per_send)?
        {
            after = request.last;
            if let Ok(body) = self.compressor.compress_vec(&request.body) {
                bodies.push(Bytes::from(body));
            }
        }
        let sender = Arc::clone(self.sender);
        self.parts.runtime.spawn(async move {
            for body in bodies {
                let sent = sender.client.send(body, "application/x-protobuf", "0.1.0", 0).await;
                let figures = &sender.figures;
                match sent.is_ok_and(|answer| answer.status.is_success()) {
                    true => figures.metadata.fetch_add(1, Relaxed),
                    // It is sent once more with the next.
                    false => figures.metadata_failed.fetch_add(1, Relaxed),
                };
            }
        });
        Ok(())
    }
}

impl Parts {
    fn position_error(&self, source: std::io::Error) -> ForwardError {
        ForwardError::Position { name: self.config.name.clone(), source }
    }
}

/// The URL without what is secret in it.
pub(super) fn shown_url(config: &DestinationConfig) -> String {
    let mut url = config.url.clone();
    // A URL with a host takes both.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}
