//! Reads the configuration again: on SIGHUP, on request, and when a file changes. Applies the
//! settings that can be reloaded, and reports the others as needing a restart.

mod files;

pub use files::ConfigFiles;

use crate::config::{ConfigError, ConfigSource, Settings, is_reloadable};
use tidepool_evaluation::Rules;
use tidepool_forward::{Destinations, ForwardError};
use tidepool_notify::notifier::{Notifier, NotifierError};
use tidepool_plugins::Plugins;
use tidepool_query::Queries;
use tidepool_scraping::{Scraping, ScrapingError};
use tidepool_server::access::AccessError;
use tidepool_server::flags::warn_of_strangers;
use tidepool_server::http::{Live, external_url};
use tidepool_store::{Store, StoreError};

use std::sync::Arc;
use tidepool_lifecycle::reload::{self as lifecycle, ReloadOutcome, ReloadRequests};
use tidepool_lifecycle::supervisor::Supervisor;
use tidepool_telemetry::LogLevel;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Reason why a reload failed and the old configuration stays in use.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The new configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A certificate or credentials file cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The store could not apply its settings.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A destination of forwarding cannot be used.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// A scrape job cannot be used.
    #[error(transparent)]
    Scraping(#[from] ScrapingError),
    /// A receiver of alerts or an Alertmanager cannot be used.
    #[error(transparent)]
    Notifier(#[from] NotifierError),
    /// The level of log lines cannot be changed.
    #[error("--log-level: {0}")]
    LogLevel(#[from] tracing_subscriber::reload::Error),
}

/// Applies a new configuration to the running features through their handles.
pub struct Reloader {
    pub source: ConfigSource,
    pub files: ConfigFiles,
    /// Settings at the start of the process, with which settings that need a restart are compared.
    pub started_with: Settings,
    /// Settings of the last successful reload, or else of the start.
    pub current: Settings,
    /// Gets retention, reserve and the timeout of reads.
    pub store: Store,
    /// Gets the limits of queries.
    pub queries: Queries,
    /// Gets the settings of later HTTP requests.
    pub live: watch::Sender<Live>,
    pub plugins: Option<Plugins>,
    pub forward: Destinations,
    pub scraping: Scraping,
    pub rules: Rules,
    pub notifier: Notifier,
    pub log_level: LogLevel,
    pub supervisor: Supervisor,
}

impl Reloader {
    /// Handles reload requests until all senders are dropped.
    pub async fn run(mut self, mut requests: ReloadRequests) {
        while let Some(request) = requests.next().await {
            let supervisor = self.supervisor.clone();
            // systemd must be notified before the reload starts.
            supervisor.reloading().await;
            // On a blocking thread, because files are read.
            let (reloader, outcome) = match tokio::task::spawn_blocking(move || {
                let outcome = self.reload();
                (self, outcome)
            })
            .await
            {
                Ok(done) => done,
                // The reload panicked, so the state of this task is lost. systemd must not wait for
                // the end of the reload.
                Err(_) => return supervisor.reloaded().await,
            };
            self = reloader;
            supervisor.reloaded().await;
            request.answer(outcome.map_err(|error| lifecycle::ReloadError::Refused(error.into())));
        }
    }

    fn reload(&mut self) -> Result<ReloadOutcome, ReloadError> {
        // Done first, so that the next check notices a change during the reload.
        self.files.begin_reading();
        // These labels identify the node's blocks in the bucket, so they must not change.
        let ships = self.started_with.is_given("ship");
        let can = |name: &str| is_reloadable(name) && !(ships && name == "external-label");
        let (mut config, settings) = self.source.serve_again(&self.started_with, can)?;
        self.files.include(&config.scrape.settings, &config.rules);
        let access = Arc::clone(&self.live.borrow().access);
        let access = Arc::new(access.reopen(&config.access)?);
        self.log_level.set(&config.log_level)?;
        let forwards = self.forward.reload(&config.forward, &config.http.external_labels)?;
        self.store.reload(&config.store)?;
        self.queries.reload(config.queries);
        // Waits until running scrapes have ended; this thread may block.
        let external_labels = &config.http.external_labels;
        let applied = self.scraping.apply(&config.scrape, external_labels);
        Handle::current().block_on(applied)?;
        config.rules.external_url = external_url(&config.http, &access);
        config.notify.external_url = config.rules.external_url.clone();
        self.notifier.apply(&config.notify)?;
        Handle::current().block_on(self.rules.apply(&config.rules));
        warn_of_strangers(&config.http.listen, &access);
        // Replaced together: a request never sees new settings with old credentials.
        self.live.send_replace(Live { http: Arc::new(config.http), access });
        if let Some(plugins) = &self.plugins {
            plugins.reload(&config.plugins);
        }
        let owned = |names: Vec<&str>, reloadable: bool| {
            let wanted = names.into_iter().filter(|name| can(name) == reloadable);
            wanted.map(str::to_owned).collect()
        };
        let mut changed: Vec<String> = owned(settings.changes(&self.current), true);
        // Settings show no secrets, so a change of secrets is only reported by `forwards`.
        if forwards && changed.iter().all(|name| !name.starts_with("remote")) {
            changed.push("remote_write".to_owned());
        }
        let outcome = ReloadOutcome {
            changed,
            // Compared with the start, because only a restart applies these changes.
            need_restart: owned(settings.changes(&self.started_with), false),
        };
        self.current = settings;
        Ok(outcome)
    }
}
