//! The chain of transforms, which are applied to a request in the configured order.

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

pub struct Request {
    pub version: RemoteWriteVersion,
    pub body: Body,
}

/// Result of the transforms for a request.
pub struct Transformed {
    /// Requests to store, one after the other. Empty if everything was dropped.
    pub requests: Vec<Request>,
    /// Counts of the rows that were sent; `None` if no transform saw the request.
    sent: Option<WriteOutcome>,
}

#[derive(Clone, Default)]
pub struct Transforms {
    /// Loaded transforms, and placeholders for transforms that should be loaded.
    pub chain: Vec<Link>,
}

#[derive(Clone)]
pub enum Link {
    Loaded(Arc<Plugin>),
    /// A transform that could not be loaded, although `on-fault` is `reject`. Writes are refused.
    Missing(Arc<str>),
    /// A transform that is being loaded. Writes are refused until then.
    Loading(Arc<str>),
}

/// A request in the chain. Its columns are reused until a plugin changes the request.
struct Step {
    request: Request,
    view: Option<View>,
}

enum Next {
    Unchanged,
    Replaced(Vec<Request>),
}

impl Transforms {
    /// Returns whether no transform applies to a request now, so that it can be stored unchanged.
    /// Must be called in the async runtime.
    pub fn pass_by(&self, request: &Request) -> bool {
        let pass = |link: &Link| matches!(link, Link::Loaded(plugin) if passes_by(plugin));
        if !self.chain.iter().all(pass) {
            return false;
        }
        // In a second loop, or a transform could be counted or tested twice.
        for plugin in self.loaded() {
            request.pass_by(plugin);
        }
        true
    }

    pub async fn apply(&self, request: Request) -> Result<Transformed, StoreError> {
        self.check_complete()?;
        let (interest, bytes_max) = self.wanted();
        let Request { version, body } = &request;
        let view = match View::of(*version, body, interest, bytes_max) {
            Ok(view) => view,
            // No transform has enough memory for the columns, and none is required.
            Err(ViewError::TooLarge(_)) if !self.loaded().any(|plugin| rejects(plugin)) => {
                self.loaded().for_each(|plugin| plugin.count_skipped());
                return Ok(Transformed::untouched(request));
            }
            Err(error) => return Err(invalid(error)),
        };
        let sent = Some(view.as_outcome());
        let sent_bytes = view.bytes;
        // A transform can return two requests: the edited body and an added batch.
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
                    // Columns of the new body are made later, if another transform needs them.
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

    /// Refuses a request while a transform with `on-fault: reject` is not loaded.
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

    /// Returns the columns that any transform wants, and the largest size accepted by any.
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
    /// Skips a disabled plugin that is not required, so that no write waits for it. A copy of the
    /// batch tests whether the plugin works again.
    fn pass_by(&self, plugin: &Arc<Plugin>) {
        plugin.count_skipped();
        if let Some(admitted) = plugin.admit() {
            let copy = Request { version: self.version, body: self.body.to_vec().into() };
            try_beside(Arc::clone(plugin), admitted, copy);
        }
    }
}

impl Step {
    /// Creates the columns if they are missing; returns whether they fit into the plugin's memory.
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
                // The request as sent fitted, so another plugin has made it too large.
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
        // All transforms use the same view; each sees only the columns that it asked for.
        let hidden = view.batch.hide_all_but(plugin.interest);
        let next = plugin
            .call(async |instance, time| {
                let verdict = instance.transform(&view.batch, time).await?;
                next(request, view, verdict)
            })
            .await;
        // Done even after a fault, because the next transform may need all columns.
        view.batch.show(hidden);
        let (next, rows_out) = match next {
            Ok((next, rows_gone)) => (Ok(next), rows.saturating_add_signed(-rows_gone)),
            // After a fault, a passed batch keeps all rows, and a rejected batch loses all.
            Err(fault) => (Err(fault), if rejects(plugin) { 0 } else { rows }),
        };
        figures.rows_out.fetch_add(rows_out, Relaxed);
        next
    }
}

/// Returns whether a batch skips this plugin, because it is disabled and not required.
fn passes_by(plugin: &Plugin) -> bool {
    !rejects(plugin) && plugin.is_disabled()
}

/// Calls a plugin with a copy of a batch at low priority. The result affects only its health.
fn try_beside(plugin: Arc<Plugin>, admitted: Admitted, request: Request) {
    let runtime = Handle::current();
    let tried = Arc::clone(&plugin);
    let work = async move {
        let bytes_max = columns_bytes_max(&plugin.settings);
        let view = View::of(request.version, &request.body, plugin.interest, bytes_max);
        match view {
            // `admitted_call` counts the result and any fault. The result itself is not used.
            Ok(view) => drop(
                plugin
                    .admitted_call(admitted, async |instance, time| {
                        let verdict = instance.transform(&view.batch, time).await?;
                        next(&request, &view, verdict)
                    })
                    .await,
            ),
            // The plugin was not called, so its health is not affected.
            Err(_) => plugin.give_back(admitted),
        }
    };
    let thread = std::thread::Builder::new().name("plugin-try".into());
    // A separate thread, because the test may take as long as a call and must not delay writes.
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

/// Applies a verdict. Returns the number of removed rows, negative if rows were added.
fn next(request: &Request, view: &View, verdict: Verdict) -> Result<(Next, i64), Fault> {
    let of_batch = |batch| -> Result<Request, Fault> {
        Ok(Request { version: RemoteWriteVersion::V2, body: write(batch)?.into() })
    };
    match verdict {
        Verdict::Unchanged => Ok((Next::Unchanged, 0)),
        Verdict::Replaced(batch) => {
            let rows_gone = (view.samples + view.histograms) as i64 - batch.rows() as i64;
            // A batch without rows means that the request is dropped.
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
            // A separate request: the batch is encoded as 2.0, while the body keeps its version.
            if let Some(batch) = edit.added.filter(|batch| batch.rows() > 0) {
                rows_gone -= batch.rows() as i64;
                made.push(of_batch(&batch)?);
            }
            Ok((Next::Replaced(made), rows_gone))
        }
    }
}

impl View {
    /// Returns the outcome for the sender if everything is stored.
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
    pub fn untouched(request: Request) -> Transformed {
        Transformed { requests: vec![request], sent: None }
    }

    /// Returns the outcome for the sender. It counts the rows as sent, because a row that a
    /// transform dropped was accepted and is not a failure.
    pub fn outcome(self, stored: WriteOutcome) -> WriteOutcome {
        // If rows were refused, only the store's counts are correct.
        self.sent.filter(|_| stored.refused == 0).unwrap_or(stored)
    }
}

fn invalid(error: ViewError) -> StoreError {
    StoreError::Refused(Error::Invalid(error.to_string()))
}

/// Returns the error for a request that does not fit into the memory of a required plugin. If the
/// request as sent fits, other plugins made it too large, and the error is not the sender's.
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
