//! The chain of transforms: what each makes of a request, by their order.

use super::batch::{Interest, View, ViewError, edited, write};
use super::bindings::transform::exports::tidepool::plugin::transform_batches::Verdict;
use super::config::OnFault;
use super::fault::Fault;
use super::health::Admitted;
use super::pool::Plugin;
use super::state::columns_bytes_max;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tidepool_lifecycle::priority::lower_priority;
use tidepool_runtime::{Error, RemoteWriteVersion, WriteOutcome, nothing_written};
use tidepool_store::{Body, StoreError};
use tokio::runtime::Handle;

/// A remote-write request, decompressed.
pub struct Request {
    /// Which message.
    pub version: RemoteWriteVersion,
    /// The message.
    pub body: Body,
}

/// The result of the transforms for a request.
pub struct Transformed {
    /// The requests to store, one after the other; none if all of it was dropped.
    pub requests: Vec<Request>,
    /// What the sender sent; unknown of a request that no transform saw.
    sent: Option<WriteOutcome>,
}

/// Transforms by their order.
#[derive(Clone, Default)]
pub struct Transforms {
    /// Those that are loaded, and the names of those that should be and are not.
    pub chain: Vec<Link>,
}

/// A place in the chain.
#[derive(Clone)]
pub enum Link {
    /// A transform.
    Loaded(Arc<Plugin>),
    /// One that could not be loaded, and without which nothing is stored.
    Missing(Arc<str>),
    /// One that is being loaded, and without which nothing is stored before that.
    Loading(Arc<str>),
}

/// A request in the chain. Its columns are made once, as long as no plugin changes it.
struct Step {
    request: Request,
    view: Option<View>,
}

/// The result of a plugin for a step.
enum Next {
    Unchanged,
    Replaced(Vec<Request>),
}

impl Transforms {
    /// Whether none of them has anything to say of a request at the moment, so that it can be
    /// stored as it is. Must be called in the async runtime.
    pub fn pass_by(&self, request: &Request) -> bool {
        let pass = |link: &Link| matches!(link, Link::Loaded(plugin) if passes_by(plugin));
        if !self.chain.iter().all(pass) {
            return false;
        }
        for plugin in self.loaded() {
            request.pass_by(plugin);
        }
        true
    }

    /// Lets all transforms work on a request.
    pub async fn apply(&self, request: Request) -> Result<Transformed, StoreError> {
        self.check_complete()?;
        let (interest, bytes_max) = self.wanted();
        let Request { version, body } = &request;
        let view = match View::of(*version, body, interest, bytes_max) {
            Ok(view) => view,
            // Too large for all of them.
            Err(ViewError::TooLarge(_)) if !self.loaded().any(|plugin| rejects(plugin)) => {
                self.loaded().for_each(|plugin| plugin.count_skipped());
                return Ok(Transformed::untouched(request));
            }
            Err(error) => return Err(invalid(error)),
        };
        let sent = Some(view.as_outcome());
        let sent_bytes = view.bytes;
        let mut steps = vec![Step { request, view: Some(view) }];
        for plugin in self.loaded() {
            let mut next = Vec::with_capacity(steps.len());
            for mut step in steps {
                if passes_by(plugin) {
                    step.request.pass_by(plugin);
                    next.push(step);
                    continue;
                }
                if !step.fits(plugin, interest, bytes_max)? {
                    plugin.count_skipped();
                    if rejects(plugin) {
                        return Err(too_large(plugin, sent_bytes));
                    }
                    next.push(step);
                    continue;
                }
                match step.judged_by(plugin).await {
                    Ok(Next::Unchanged) => next.push(step),
                    Ok(Next::Replaced(requests)) => {
                        let steps = requests.into_iter().map(|r| Step { request: r, view: None });
                        next.extend(steps);
                    }
                    Err(_) if plugin.settings.on_fault == OnFault::Pass => next.push(step),
                    Err(fault) => return Err(rejected(&plugin.settings.name, &fault.to_string())),
                }
            }
            steps = next;
        }
        let requests = steps.into_iter().map(|step| step.request).collect();
        Ok(Transformed { requests, sent })
    }

    /// Whether all are there without which nothing is stored.
    fn check_complete(&self) -> Result<(), StoreError> {
        for link in &self.chain {
            match link {
                Link::Loaded(_) => {}
                Link::Missing(name) => return Err(rejected(name, "it could not be loaded")),
                Link::Loading(name) => {
                    return Err(StoreError::PluginLoading { plugin: name.to_string() });
                }
            }
        }
        Ok(())
    }

    fn loaded(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.chain.iter().filter_map(|link| match link {
            Link::Loaded(plugin) => Some(plugin),
            Link::Missing(_) | Link::Loading(_) => None,
        })
    }

    /// What at least one of them wants to see, and what the roomiest has room for.
    fn wanted(&self) -> (Interest, usize) {
        let mut wanted = (Interest::empty(), 0);
        for plugin in self.loaded() {
            wanted.0 |= plugin.interest;
            wanted.1 = wanted.1.max(columns_bytes_max(&plugin.settings));
        }
        wanted
    }
}

impl Request {
    /// No write waits for a plugin that is disabled and without which batches may be stored.
    /// Whether it works again shows a copy of the batch.
    fn pass_by(&self, plugin: &Arc<Plugin>) {
        plugin.count_skipped();
        if let Some(admitted) = plugin.admit() {
            let copy = Request { version: self.version, body: self.body.to_vec().into() };
            try_beside(Arc::clone(plugin), admitted, copy);
        }
    }
}

impl Step {
    /// Makes columns if there are none yet, and says whether a plugin has room for them.
    fn fits(
        &mut self,
        plugin: &Plugin,
        interest: Interest,
        bytes_max: usize,
    ) -> Result<bool, StoreError> {
        if self.view.is_none() {
            let Request { version, body } = &self.request;
            match View::of(*version, body, interest, bytes_max) {
                Ok(view) => self.view = Some(view),
                // A plugin made it so large.
                Err(ViewError::TooLarge(_)) => return Ok(false),
                Err(error) => return Err(invalid(error)),
            }
        }
        let bytes_max = columns_bytes_max(&plugin.settings);
        Ok(self.view.as_ref().is_some_and(|view| view.bytes <= bytes_max))
    }

    async fn judged_by(&mut self, plugin: &Plugin) -> Result<Next, Fault> {
        let Step { request, view: Some(view) } = self else { return Ok(Next::Unchanged) };
        let figures = &plugin.figures;
        let rows = view.samples + view.histograms;
        figures.rows_in.fetch_add(rows, Relaxed);
        let hidden = view.batch.hide_all_but(plugin.interest);
        let next = plugin
            .call(async |instance, time| {
                let verdict = instance.transform(&view.batch, time).await?;
                next(request, view, verdict)
            })
            .await;
        view.batch.show(hidden);
        let (next, rows_out) = match next {
            Ok((next, rows_gone)) => (Ok(next), rows.saturating_add_signed(-rows_gone)),
            Err(fault) => (Err(fault), if rejects(plugin) { 0 } else { rows }),
        };
        figures.rows_out.fetch_add(rows_out, Relaxed);
        next
    }
}

/// Whether a batch goes on as if a plugin were not there.
fn passes_by(plugin: &Plugin) -> bool {
    !rejects(plugin) && plugin.is_disabled()
}

/// Calls a plugin for a copy of a batch, at low priority, and for its health alone.
fn try_beside(plugin: Arc<Plugin>, admitted: Admitted, request: Request) {
    let runtime = Handle::current();
    let tried = Arc::clone(&plugin);
    let work = async move {
        let bytes_max = columns_bytes_max(&plugin.settings);
        let view = View::of(request.version, &request.body, plugin.interest, bytes_max);
        match view {
            // What it made of the copy, and what failed, is counted where it is called.
            Ok(view) => drop(
                plugin
                    .admitted_call(admitted, async |instance, time| {
                        let verdict = instance.transform(&view.batch, time).await?;
                        next(&request, &view, verdict)
                    })
                    .await,
            ),
            Err(_) => plugin.give_back(admitted),
        }
    };
    let thread = std::thread::Builder::new().name("plugin-try".into());
    let begun = thread.spawn(move || {
        lower_priority();
        runtime.block_on(work);
    });
    if let Err(error) = begun {
        tried.give_back(admitted);
        tracing::warn!(plugin = tried.settings.name, %error, "could not start a thread for a trial run of a plugin");
    }
}

fn rejects(plugin: &Plugin) -> bool {
    plugin.settings.on_fault == OnFault::Reject
}

/// Carries a verdict out, and returns how many rows are gone by it: less than none if there are
/// more.
fn next(request: &Request, view: &View, verdict: Verdict) -> Result<(Next, i64), Fault> {
    let of_batch = |batch| -> Result<Request, Fault> {
        Ok(Request { version: RemoteWriteVersion::V2, body: write(batch)?.into() })
    };
    match verdict {
        Verdict::Unchanged => Ok((Next::Unchanged, 0)),
        Verdict::Replaced(batch) => {
            let rows_gone = (view.samples + view.histograms) as i64 - batch.rows() as i64;
            let made = match batch.rows() {
                0 => Vec::new(),
                _ => vec![of_batch(&batch)?],
            };
            Ok((Next::Replaced(made), rows_gone))
        }
        Verdict::Edited(edit) => {
            let edited = edited(request.version, &request.body, view, &edit)?;
            let mut made = Vec::with_capacity(2);
            if edited.has_content {
                made.push(Request { version: request.version, body: edited.body.into() });
            }
            let mut rows_gone = edited.dropped_rows as i64;
            if let Some(batch) = edit.added.filter(|batch| batch.rows() > 0) {
                rows_gone -= batch.rows() as i64;
                made.push(of_batch(&batch)?);
            }
            Ok((Next::Replaced(made), rows_gone))
        }
    }
}

impl View {
    /// The answer to the sender if all of it is stored.
    fn as_outcome(&self) -> WriteOutcome {
        WriteOutcome {
            samples_written: self.samples,
            histograms_written: self.histograms,
            exemplars_written: self.exemplars,
            ..nothing_written()
        }
    }
}

impl Transformed {
    /// A request that no transform saw.
    pub fn untouched(request: Request) -> Transformed {
        Transformed { requests: vec![request], sent: None }
    }

    /// The answer to the sender. It counts what the sender sent: what a transform dropped was
    /// taken, and is no failure.
    pub fn outcome(self, stored: WriteOutcome) -> WriteOutcome {
        self.sent.filter(|_| stored.refused == 0).unwrap_or(stored)
    }
}

fn invalid(error: ViewError) -> StoreError {
    StoreError::Refused(Error::Invalid(error.to_string()))
}

/// A request that a needed plugin has no room for. A sender may send smaller ones; what other
/// plugins made so large is no fault of the sender's.
fn too_large(plugin: &Plugin, sent_bytes: usize) -> StoreError {
    let bytes_max = columns_bytes_max(&plugin.settings);
    if sent_bytes > bytes_max {
        return invalid(ViewError::TooLarge(bytes_max));
    }
    let why = format!(
        "the output of the transforms before it takes more than {bytes_max} bytes in columns \
         (half of limits.memory)"
    );
    rejected(&plugin.settings.name, &why)
}

fn rejected(plugin: &str, why: &str) -> StoreError {
    StoreError::Plugin { plugin: plugin.to_owned(), why: why.to_owned() }
}
