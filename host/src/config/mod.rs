//! Converts the command line to one validated structure. Starts nothing.

mod file;
mod flags;
mod general;
mod help;
mod log;
mod serve;
mod shown;
mod source;
#[cfg(test)]
mod tests;
mod topics;
mod upstream;

pub use file::FileError;
pub use source::{ConfigError, ConfigSource, Settings};
pub use topics::is_reloadable;

use clap::{Args, Parser, Subcommand};
use general::GeneralFlags;
use log::LogFlags;
use std::time::Duration;
use tidepool_evaluation::RulesConfig;
use tidepool_evaluation::flags::RuleFlags;
use tidepool_forward::ForwardConfig;
use tidepool_forward::flags::ForwardFlags;
use tidepool_notify::config::NotifyConfig;
use tidepool_notify::flags::NotifyFlags;
use tidepool_plugins::config::PluginsConfig;
use tidepool_plugins::flags::PluginFlags;
use tidepool_query::QueryConfig;
use tidepool_query::flags::QueryFlags;
use tidepool_scraping::ScrapeConfig;
use tidepool_scraping::flags::ScrapeFlags;
use tidepool_server::access::AccessConfig;
use tidepool_server::flags::ServerFlags;
use tidepool_server::http::HttpConfig;
use tidepool_ship::ShipConfig;
use tidepool_ship::flags::ShipFlags;
use tidepool_store::StoreConfig;
use tidepool_store::flags::{StoreFlags, UnusedMemory};
use tidepool_telemetry::{LogFilter, LogFormat};

/// Prometheus-compatible metrics store for edge nodes. Without a command, it serves.
#[derive(Debug, Parser)]
#[command(name = "tidepool", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Cli<C: Subcommand> {
    #[command(subcommand)]
    command: Option<Command<C>>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Command<C: Subcommand> {
    /// Run the server
    Serve(Box<ServeArgs>),
    /// A command that needs no server, which is not known here.
    #[command(flatten)]
    Other(C),
}

/// The flags of `serve`, by feature. Each topic of a feature is a heading of the help.
#[derive(Debug, Clone, Args)]
struct ServeArgs {
    #[command(flatten)]
    general: GeneralFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    query: QueryFlags,
    #[command(flatten)]
    forward: ForwardFlags,
    #[command(flatten)]
    ship: ShipFlags,
    #[command(flatten)]
    scrape: ScrapeFlags,
    #[command(flatten)]
    rules: RuleFlags,
    #[command(flatten)]
    notify: NotifyFlags,
    #[command(flatten)]
    plugins: PluginFlags,
}

impl ServeArgs {
    /// Refuses flags of one topic that contradict each other.
    fn check(&self) -> Result<(), String> {
        self.general.check()?;
        self.server.security.check()
    }
}

/// The requested action: serving, or another command.
#[derive(Clone, Debug)]
pub enum Invocation<C> {
    Serve {
        /// Validated configuration of the server.
        config: Box<ServeConfig>,
        /// The same configuration as flags, for reloads and the API.
        settings: Settings,
    },
    Other(C),
}

/// Complete configuration of `tidepool serve`.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub store: StoreConfig,
    pub queries: QueryConfig,
    /// Memory flags whose values exceed the usable memory.
    pub unused_memory: Vec<UnusedMemory>,
    /// Credentials, TLS and permitted origins of clients.
    pub access: AccessConfig,
    pub http: HttpConfig,
    /// Shipping of finished blocks; `None` if it is off.
    pub ship: Option<ShipConfig>,
    pub plugins: PluginsConfig,
    /// Destinations that receive all samples by remote write.
    pub forward: ForwardConfig,
    pub scrape: ScrapeConfig,
    pub rules: RulesConfig,
    pub notify: NotifyConfig,
    /// Interval at which configuration files are checked for changes; `None` disables the checks.
    pub reload_interval: Option<Duration>,
    pub log_format: LogFormat,
    pub log_level: LogFilter,
}

impl ServeConfig {
    /// Refuses settings of different features that contradict each other.
    fn check(&self) -> Result<(), String> {
        self.store.memory.check().map_err(|error| error.to_string())?;
        // Without external labels, a bucket's blocks could not be attributed to their node.
        let has_labels = !self.http.external_labels.is_empty();
        tidepool_ship::flags::check(self.ship.as_ref(), has_labels)?;
        self.forward.check()?;
        tidepool_server::flags::check(&self.http, &self.access)
    }
}
