//! The command line, and what it becomes: one validated structure. Starts nothing.

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
use tidepool_forward::ForwardConfig;
use tidepool_forward::flags::ForwardFlags;
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
    plugins: PluginFlags,
}

impl ServeArgs {
    /// Whether flags of the same topic go together.
    fn check(&self) -> Result<(), String> {
        self.general.check()?;
        self.server.security.check()
    }
}

/// What to do: serve, or run one of other commands.
#[derive(Clone, Debug)]
pub enum Invocation<C> {
    /// Serve.
    Serve {
        /// What with.
        config: Box<ServeConfig>,
        /// The same as flags.
        settings: Settings,
    },
    /// Run another command.
    Other(C),
}

/// All that `tidepool serve` needs to know.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// The store's part.
    pub store: StoreConfig,
    /// What queries may take and use.
    pub queries: QueryConfig,
    /// Flags that give more memory than can be used.
    pub unused_memory: Vec<UnusedMemory>,
    /// Who may connect and ask.
    pub access: AccessConfig,
    /// The server's part.
    pub http: HttpConfig,
    /// Where finished blocks go, if anywhere.
    pub ship: Option<ShipConfig>,
    /// Which plugins there are.
    pub plugins: PluginsConfig,
    /// Who else gets all samples.
    pub forward: ForwardConfig,
    /// What is scraped.
    pub scrape: ScrapeConfig,
    /// How often to look whether the configuration file has changed, if at all.
    pub reload_interval: Option<Duration>,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written.
    pub log_level: LogFilter,
}

impl ServeConfig {
    /// Whether the parts go together.
    fn check(&self) -> Result<(), String> {
        self.store.memory.check().map_err(|error| error.to_string())?;
        let has_labels = !self.http.external_labels.is_empty();
        tidepool_ship::flags::check(self.ship.as_ref(), has_labels)?;
        self.forward.check()?;
        tidepool_server::flags::check(&self.http, &self.access)
    }
}
