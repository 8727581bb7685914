//! The context that all requests share: the store, the settings and the counters. Every endpoint
//! uses this file; it uses no endpoint.

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

/// What holds for requests: both parts always come from one configuration, so that nothing is
/// offered to those whom only another one would let in.
#[derive(Clone)]
pub struct Live {
    /// Limits, labels and what is offered.
    pub http: Arc<HttpConfig>,
    /// To whom.
    pub access: Arc<Access>,
}

/// The parts of a server.
pub struct ServerConfig {
    /// The store that it serves.
    pub store: Store,
    /// The queries of that store.
    pub queries: Queries,
    /// What stands before the store, if anything does.
    pub plugins: Option<Plugins>,
    /// The figures of shipping, if it is on.
    pub ship: Option<Arc<ShipFigures>>,
    /// The figures of forwarding, by destination.
    pub forward: ForwardFigures,
    /// What is scraped.
    pub scraping: Scraping,
    /// Where, within which bounds and whom. What changes holds for requests that come later, but
    /// for the address, and the bounds of connections and of bodies together.
    pub live: watch::Receiver<Live>,
    /// Reads the configuration again.
    pub reload: ReloadHandle,
}

/// What every request may use. Clones share all of it but the configuration.
#[derive(Clone)]
pub struct Context {
    pub store: Store,
    pub queries: Queries,
    pub plugins: Option<Plugins>,
    /// As it was when the request came.
    pub access: Arc<Access>,
    pub ship: Option<Arc<ShipFigures>>,
    /// The figures of forwarding, by destination.
    pub forward: ForwardFigures,
    pub scraping: Scraping,
    /// As it was when the request came.
    pub http: Arc<HttpConfig>,
    pub bodies: BodyBudget,
    pub counters: Arc<HttpCounters>,
    pub durations: Arc<Durations>,
    pub translation: Arc<Translation>,
    pub requests: Arc<RequestLog>,
    pub reload: ReloadHandle,
    /// When the server was started.
    pub started_ms: i64,
    pub crowded: Arc<Crowded>,
    live: watch::Receiver<Live>,
}

/// Tells the connection that waits the longest to give up its place.
#[derive(Default)]
pub struct Crowded {
    /// Of those without a request.
    pub idle: Notify,
    /// Of those whose requests' bodies come slowly.
    pub slow: Notify,
}

impl Context {
    /// For a server that starts now.
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

    /// The way into the store.
    pub fn intake(&self) -> Intake {
        Intake::new(self.store.clone(), self.plugins.clone())
    }

    /// With the configuration as it is now.
    pub fn now(&self) -> Context {
        let Live { http, access } = self.live.borrow().clone();
        Context { http, access, ..self.clone() }
    }

    /// Returns who may ask, as it is whenever it is called.
    pub fn current_access(&self) -> impl Fn() -> Arc<Access> + use<> {
        let live = self.live.clone();
        move || Arc::clone(&live.borrow().access)
    }
}
