//! State shared by all requests: the store, the settings and the counters. Every endpoint depends
//! on this file, but this file depends on no endpoint.

use super::config::HttpConfig;
use super::counters::{HttpCounters, Translation};
use super::durations::Durations;
use super::request_log::RequestLog;
use crate::access::Access;
use tidepool_evaluation::Rules;
use tidepool_forward::figures::ForwardFigures;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_notify::notifier::Notifier;
use tidepool_plugins::Plugins;
use tidepool_plugins::intake::Intake;
use tidepool_query::Queries;
use tidepool_scraping::Scraping;
use tidepool_ship::ShipFigures;
use tidepool_store::{BodyBudget, Store};

use std::sync::Arc;
use tidepool_lifecycle::clock::system_now_ms;
use tokio::sync::{Notify, watch};

/// Settings of requests, replaced together: an endpoint must not be enabled while the access rules
/// of an older configuration are still in force.
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
    pub rules: Rules,
    pub notifier: Notifier,
    /// Current settings. Later requests use changed settings, but the address and the limits of
    /// connections and of memory for bodies stay as at the start.
    pub live: watch::Receiver<Live>,
    /// Triggers a reload of the configuration.
    pub reload: ReloadHandle,
}

/// State of a request. Clones share everything except the settings.
#[derive(Clone)]
pub struct Context {
    pub store: Store,
    pub queries: Queries,
    pub plugins: Option<Plugins>,
    /// Access rules at the arrival of the request.
    pub access: Arc<Access>,
    pub ship: Option<Arc<ShipFigures>>,
    /// Metrics of forwarding, by destination.
    pub forward: ForwardFigures,
    pub scraping: Scraping,
    pub rules: Rules,
    pub notifier: Notifier,
    /// Settings at the arrival of the request.
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

/// Wakes the connection that has waited longest, which then closes and so frees its slot.
#[derive(Default)]
pub struct Crowded {
    /// Waited on by connections without a request.
    pub idle: Notify,
    /// Waited on by connections with slow request bodies.
    pub slow: Notify,
}

impl Context {
    /// Creates the context of a server that starts now.
    pub fn new(config: ServerConfig, durations: Durations) -> Context {
        let ServerConfig {
            store,
            queries,
            plugins,
            ship,
            forward,
            scraping,
            rules,
            notifier,
            live,
            reload,
        } = config;
        let Live { http, access } = live.borrow().clone();
        Context {
            store,
            queries,
            plugins,
            access,
            ship,
            forward,
            scraping,
            rules,
            notifier,
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

    /// Returns the entry for writes to the store, which passes them through plugins if configured.
    pub fn intake(&self) -> Intake {
        Intake::new(self.store.clone(), self.plugins.clone())
    }

    /// Returns the context with the current settings.
    pub fn now(&self) -> Context {
        // Both are read in one borrow, so that they are of the same configuration.
        let Live { http, access } = self.live.borrow().clone();
        Context { http, access, ..self.clone() }
    }

    /// Returns a function that returns the current access rules at each call.
    pub fn current_access(&self) -> impl Fn() -> Arc<Access> + use<> {
        let live = self.live.clone();
        move || Arc::clone(&live.borrow().access)
    }
}
