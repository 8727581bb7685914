//! Reading the configuration again, on SIGHUP, on request, and when a file changes: what can change
//! while the store runs changes, and what cannot is named.

mod files;

pub use files::ConfigFiles;

use crate::config::{ConfigError, ConfigSource, Settings, is_reloadable};
use tidepool_forward::{Destinations, ForwardError};
use tidepool_plugins::Plugins;
use tidepool_query::Queries;
use tidepool_scraping::{Scraping, ScrapingError};
use tidepool_server::access::AccessError;
use tidepool_server::flags::warn_of_strangers;
use tidepool_server::http::Live;
use tidepool_store::{Store, StoreError};

use std::sync::Arc;
use tidepool_lifecycle::reload::{self as lifecycle, ReloadOutcome, ReloadRequests};
use tidepool_lifecycle::supervisor::Supervisor;
use tidepool_telemetry::LogLevel;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Why the configuration stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file of certificates or credentials cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The store could not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A destination of forwarded samples cannot be used.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// A job cannot be scraped.
    #[error(transparent)]
    Scraping(#[from] ScrapingError),
    /// What is logged cannot be changed.
    #[error("--log-level: {0}")]
    LogLevel(#[from] tracing_subscriber::reload::Error),
}

/// What reloads.
pub struct Reloader {
    /// The source of the configuration, which is read again.
    pub source: ConfigSource,
    /// Its files.
    pub files: ConfigFiles,
    /// What was asked for when the process started: what needs a restart differs from this.
    pub started_with: Settings,
    /// What holds now.
    pub current: Settings,
    /// Takes retention, reserve and the timeout of reads.
    pub store: Store,
    /// Take what queries may take and use.
    pub queries: Queries,
    /// Takes what holds for requests that come later.
    pub live: watch::Sender<Live>,
    /// Take what the file says of them.
    pub plugins: Option<Plugins>,
    /// Get what the file says of them.
    pub forward: Destinations,
    /// Scrapes what the file says.
    pub scraping: Scraping,
    /// Logs more or less.
    pub log_level: LogLevel,
    /// Hears of it.
    pub supervisor: Supervisor,
}

impl Reloader {
    /// Works on requests until all senders are dropped.
    pub async fn run(mut self, mut requests: ReloadRequests) {
        while let Some(request) = requests.next().await {
            let supervisor = self.supervisor.clone();
            supervisor.reloading().await;
            // Files are read.
            let (reloader, outcome) = match tokio::task::spawn_blocking(move || {
                let outcome = self.reload();
                (self, outcome)
            })
            .await
            {
                Ok(done) => done,
                Err(_) => return,
            };
            self = reloader;
            supervisor.reloaded().await;
            request.answer(outcome.map_err(|error| lifecycle::ReloadError::Refused(error.into())));
        }
    }

    fn reload(&mut self) -> Result<ReloadOutcome, ReloadError> {
        self.files.begin_reading();
        // In the bucket, these labels distinguish the node's blocks.
        let ships = self.started_with.is_given("ship");
        let can = |name: &str| is_reloadable(name) && !(ships && name == "external-label");
        let (config, settings) = self.source.serve_again(&self.started_with, can)?;
        self.files.include(&config.scrape.settings);
        let access = Arc::clone(&self.live.borrow().access);
        let access = Arc::new(access.reopen(&config.access)?);
        self.log_level.set(&config.log_level)?;
        let forwards = self.forward.reload(&config.forward, &config.http.external_labels)?;
        self.store.reload(&config.store)?;
        self.queries.reload(config.queries);
        // This thread may wait: scrapes under way come to their end.
        let external_labels = &config.http.external_labels;
        let applied = self.scraping.apply(&config.scrape, external_labels);
        Handle::current().block_on(applied)?;
        warn_of_strangers(&config.http.listen, &access);
        self.live.send_replace(Live { http: Arc::new(config.http), access });
        if let Some(plugins) = &self.plugins {
            plugins.reload(&config.plugins);
        }
        let owned = |names: Vec<&str>, reloadable: bool| {
            let wanted = names.into_iter().filter(|name| can(name) == reloadable);
            wanted.map(str::to_owned).collect()
        };
        let mut changed: Vec<String> = owned(settings.changes(&self.current), true);
        // A password or a certificate is not among the settings.
        if forwards && changed.iter().all(|name| !name.starts_with("remote")) {
            changed.push("remote_write".to_owned());
        }
        let outcome = ReloadOutcome {
            changed,
            need_restart: owned(settings.changes(&self.started_with), false),
        };
        self.current = settings;
        Ok(outcome)
    }
}
