//! The command line, and what it becomes: one validated structure. Starts nothing.

mod file;
mod flags;
mod forward;
mod general;
mod help;
mod log;
mod memory;
mod network;
mod otlp;
mod plugins;
mod query;
mod read;
mod scrape;
mod security;
mod series;
mod serve;
mod ship;
mod shown;
mod source;
mod storage;
mod upstream;
mod values;
mod wal;

pub use file::FileError;
pub use memory::UnusedMemory;
pub use source::{ConfigError, ConfigSource, Settings};

use clap::{Args, Parser, Subcommand};
use forward::ForwardArgs;
use general::GeneralArgs;
use log::LogArgs;
use memory::MemoryArgs;
use network::HttpArgs;
use otlp::OtlpArgs;
use plugins::PluginArgs;
use query::QueryArgs;
use read::ReadArgs;
use scrape::ScrapeArgs;
use security::SecurityArgs;
use series::SeriesArgs;
use ship::ShipArgs;
use std::time::Duration;
use storage::StorageArgs;
use tidepool_forward::ForwardConfig;
use tidepool_plugins::config::PluginsConfig;
use tidepool_scraping::ScrapeConfig;
use tidepool_server::access::AccessConfig;
use tidepool_server::http::HttpConfig;
use tidepool_ship::ShipConfig;
use tidepool_store::StoreConfig;
use tidepool_telemetry::{LogFilter, LogFormat};
use wal::WalArgs;

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

/// The flags of `serve`, by topic. Each topic is a heading of the help.
#[derive(Debug, Clone, Args)]
struct ServeArgs {
    #[command(flatten)]
    general: GeneralArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    http: HttpArgs,
    #[command(flatten)]
    security: SecurityArgs,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    wal: WalArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    series: SeriesArgs,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    query: QueryArgs,
    #[command(flatten)]
    otlp: OtlpArgs,
    #[command(flatten)]
    forward: ForwardArgs,
    #[command(flatten)]
    ship: ShipArgs,
    #[command(flatten)]
    scrape: ScrapeArgs,
    #[command(flatten)]
    plugins: PluginArgs,
}

impl ServeArgs {
    /// Whether flags of the same topic go together.
    fn check(&self) -> Result<(), String> {
        self.general.check()?;
        self.security.check()
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
        self.check_ship()?;
        self.forward.check()?;
        self.check_security()?;
        self.check_network()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command line means.
    pub fn read(arguments: &[&str]) -> Result<(ServeConfig, Settings), ConfigError> {
        let arguments = ["tidepool"].iter().chain(arguments).map(|text| (*text).into());
        ConfigSource::new(arguments).serve()
    }

    #[test]
    fn the_defaults_and_the_named_command_agree() -> Result<(), ConfigError> {
        let (bare, settings) = read(&[])?;
        let named = read(&["serve"])?;
        assert_eq!(format!("{bare:?} {settings:?}"), format!("{:?} {:?}", named.0, named.1));
        assert_eq!(bare.http.listen.to_string(), "127.0.0.1:9201");
        Ok(())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        source::command::<crate::cli::CliCommand>().debug_assert();
    }

    #[test]
    fn flags_that_need_others_are_named() {
        for (arguments, expected) in [
            (["--tls-cert-file=a", ""], "--tls-cert-file needs --tls-key-file"),
            (["--tls-key-file=a", ""], "--tls-key-file needs --tls-cert-file"),
            (["--tls-client-ca-file=a", ""], "--tls-client-ca-file needs --tls-cert-file"),
            (["--label=a=b", "--label=a=c"], "--external-label sets the label \"a\" twice"),
        ] {
            let arguments: Vec<&str> =
                arguments.into_iter().filter(|text| !text.is_empty()).collect();
            let error = read(&arguments).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(expected));
        }
    }

    #[test]
    fn limits_without_which_nothing_works_are_refused_with_their_flag() {
        for (flag, least) in [
            ("--memory-limit", "96MiB"),
            ("--head-memory-limit", "8MiB"),
            ("--reads-memory-limit", "8MiB"),
            ("--query-memory-limit", "3MiB"),
            ("--compactor-memory-limit", "8MiB"),
            ("--remote-write-memory-limit", "3MiB"),
            ("--plugins-memory-limit", "1MiB"),
            ("--max-inflight-bytes", "64KiB"),
            ("--max-request-size", "1KiB"),
            ("--wal-buffer-size", "32KiB"),
            ("--read-max-bytes-in-frame", "1KiB"),
        ] {
            let error = read(&[&format!("{flag}=1")]).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(error.contains(flag) && error.contains(least), "{flag}: {error}");
        }
        assert!(read(&["--max-connections=0"]).is_err());
    }

    #[test]
    fn flags_are_shown_as_they_were_given() -> Result<(), ConfigError> {
        for words in [&[][..], &["serve"]] {
            let given = ["--external-label=a=b", "--label=c=d", "--enable-admin-api"];
            let words: Vec<&str> = words.iter().copied().chain(given).collect();
            let (config, _) = read(&words)?;
            let shown = |name: &str| config.http.flags.get(name).map(String::as_str);
            assert_eq!(shown("external-label"), Some("a=b,c=d"));
            assert_eq!(shown("enable-admin-api"), Some("true"));
            assert_eq!(shown("web.enable-admin-api"), Some("true"));
            assert_eq!(shown("block-duration"), Some("2h"));
            assert_eq!(shown("memory-limit"), Some(""));
            assert_eq!((shown("help"), shown("version")), (None, None));
        }
        Ok(())
    }
}
