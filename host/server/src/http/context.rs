//! State shared by all requests: the store, the settings and the counters. Every endpoint depends
//! on this file, and it depends on no endpoint.

use super::config::HttpConfig;
use super::counters::{HttpCounters, Translation};
use super::durations::Durations;
use super::request_log::RequestLog;
use crate::access::Access;
use tidepool_forward::figures::ForwardFigures;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_plugins::Plugins;
use tidepool_plugins::intake::Intake;
use tidepool_query::Queries;
use tidepool_scraping::Scraping;
use tidepool_ship::ShipFigures;
use tidepool_store::{BodyBudget, Store};

use std::sync::Arc;
use tidepool_lifecycle::clock::system_now_ms;
use tokio::sync::{Notify, watch};

/// Settings of requests, always from one configuration: an endpoint must not be enabled with the
/// access rules of another configuration.
#[derive(Clone)]
pub struct Live {
    /// Limits, labels and enabled endpoints.
    pub http: Arc<HttpConfig>,
    pub access: Arc<Access>,
}

/// The components of a server.
pub struct ServerConfig {
    pub store: Store,
    pub queries: Queries,
    /// Plugins in front of the store, if configured.
    pub plugins: Option<Plugins>,
    /// Metrics of shipping, if enabled.
    pub ship: Option<Arc<ShipFigures>>,
    /// Metrics of forwarding, by destination.
    pub forward: ForwardFigures,
    pub scraping: Scraping,
    /// Current settings. Changes apply to later requests, but not to the address, nor to the limits
    /// of connections and of all bodies.
    pub live: watch::Receiver<Live>,
    /// Triggers a reload of the configuration.
    pub reload: ReloadHandle,
}

/// State of a request. Clones share everything but the settings.
#[derive(Clone)]
pub struct Context {
    pub store: Store,
    pub queries: Queries,
    pub plugins: Option<Plugins>,
    /// As of the arrival of the request.
    pub access: Arc<Access>,
    pub ship: Option<Arc<ShipFigures>>,
    /// Metrics of forwarding, by destination.
    pub forward: ForwardFigures,
    pub scraping: Scraping,
    /// As of the arrival of the request.
    pub http: Arc<HttpConfig>,
    pub bodies: BodyBudget,
    pub counters: Arc<HttpCounters>,
    pub durations: Arc<Durations>,
    pub translation: Arc<Translation>,
    pub requests: Arc<RequestLog>,
    pub reload: ReloadHandle,
    /// Start of the server in milliseconds since the epoch.
    pub started_ms: i64,
    pub crowded: Arc<Crowded>,
    live: watch::Receiver<Live>,
}

/// Wakes the longest waiting connection, which then gives up its place.
#[derive(Default)]
pub struct Crowded {
    /// For connections without a request.
    pub idle: Notify,
    /// For connections with slow request bodies.
    pub slow: Notify,
}

impl Context {
    /// Creates the context of a server that starts now.
    pub fn new(config: ServerConfig, durations: Durations) -> Context {
        let ServerConfig { store, queries, plugins, ship, forward, scraping, live, reload } =
            config;
        let Live { http, access } = live.borrow().clone();
        Context {
            store,
            queries,
            plugins,
            access,
            ship,
            forward,
            scraping,
            bodies: BodyBudget::new(http.inflight_bytes_max),
            http,
            counters: Arc::new(HttpCounters::default()),
            durations: Arc::new(durations),
            translation: Arc::new(Translation::default()),
            requests: Arc::new(RequestLog::default()),
            reload,
            started_ms: system_now_ms(),
            crowded: Arc::default(),
            live,
        }
    }

    /// Entry to the store, through plugins if configured.
    pub fn intake(&self) -> Intake {
        Intake::new(self.store.clone(), self.plugins.clone())
    }

    /// Returns the context with the current settings.
    pub fn now(&self) -> Context {
        // Both are taken in one borrow, so that a reload cannot come between them.
        let Live { http, access } = self.live.borrow().clone();
        Context { http, access, ..self.clone() }
    }

    /// Returns a function that gives the current access rules at each call.
    pub fn current_access(&self) -> impl Fn() -> Arc<Access> + use<> {
        let live = self.live.clone();
        move || Arc::clone(&live.borrow().access)
    }
}
