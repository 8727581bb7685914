//! The `tidepool` program: starts and connects the features, then waits for the stop signal.

use crate::cli;
use crate::config::{ConfigError, ConfigSource, Invocation, ServeConfig, Settings};
use crate::notification;
use crate::reload::{ConfigFiles, Reloader};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tidepool_evaluation::Rules;
use tidepool_forward::Forwarding;
use tidepool_lifecycle::open_files;
use tidepool_lifecycle::processors::processors;
use tidepool_lifecycle::reload::ReloadHandle;
use tidepool_lifecycle::resident;
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_lifecycle::supervisor::Supervisor;
use tidepool_plugins::Plugins;
use tidepool_plugins::config::PluginsConfig;
use tidepool_plugins::intake::Intake;
use tidepool_query::Queries;
use tidepool_runtime::Image;
use tidepool_scraping::Scraping;
use tidepool_server::access::Access;
use tidepool_server::flags::warn_of_strangers;
use tidepool_server::http::Live;
use tidepool_server::http::{Server, ServerConfig, external_url};
use tidepool_ship::{CleanTombstones, Shipper};
use tidepool_store::Store;
use tidepool_store::flags::UnusedMemory;
use tidepool_telemetry::{self as telemetry, LogLevel};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

/// Maximum wait for threads that read files, after everything else has ended.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Runs the command of the command line with this image of the engine; returns the exit code.
pub fn run(engine: Image) -> ExitCode {
    engine.install();
    // The allocator's settings must be made before any other thread starts.
    resident::give_back_large();
    let source = ConfigSource::new(std::env::args_os());
    let (config, settings) = match source.read() {
        Ok(Invocation::Serve { config, settings }) => (*config, settings),
        Ok(Invocation::Other(command)) => return cli::run(command),
        // Clap prints help to standard output and errors to standard error.
        Err(ConfigError::CommandLine(error)) => error.exit(),
        Err(error) => {
            // If standard error is closed, the exit code still shows the failure.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            return ExitCode::from(2);
        }
    };
    let log_level = telemetry::init(config.log_format, &config.log_level.to_string());
    let runtime = match network_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "could not start the async runtime");
            return ExitCode::FAILURE;
        }
    };
    let served = runtime.block_on(serve(config, source, settings, log_level));
    // Limited, because a thread that reads a file on a dead mount may never end.
    runtime.shutdown_timeout(LAST_WAIT);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "tidepool ends");
            ExitCode::FAILURE
        }
    }
}

/// Creates the network runtime with half as many threads as processors, because the engine's
/// threads need the other processors. More threads would be woken in turn by each request, which
/// costs more than a small response.
fn network_runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads((processors() / 2).max(1)).enable_all().build()
}

async fn serve(
    config: ServeConfig,
    source: ConfigSource,
    settings: Settings,
    log_level: LogLevel,
) -> Result<(), Box<dyn std::error::Error>> {
    // Raised before files are opened: blocks and connections may exceed the soft limit.
    let open_files_max = open_files::raise_limit();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %config.store.data_dir.display(),
        wal_sync = ?config.store.wal.sync,
        open_files_max,
        "tidepool starts"
    );
    let access = Arc::new(Access::open(&config.access)?);
    warn_of_strangers(&config.http.listen, &access);
    config.unused_memory.iter().for_each(UnusedMemory::warn);
    let (labels, block_duration) = (&config.http.external_labels, config.store.block_duration);
    let shipper = config.ship.map(|ship| Shipper::open(ship, labels.clone(), block_duration));
    let shipper = shipper.transpose()?;
    // Installed before the slow part of the start, so that a stop during the replay is clean.
    let shutdown = Shutdown::on_signals()?;
    let supervisor = Supervisor::from_environment();
    let (reload, requests) = ReloadHandle::new();
    reload.clone().on_hangup(shutdown.clone())?;
    let files = ConfigFiles::new(&source, &config.scrape.settings, &config.rules);
    if let Some(every) = config.reload_interval {
        files.clone().watch(reload.clone(), every, shutdown.clone());
    }
    // Bound before the data directory is created: if the address is in use, none is created.
    let listener = config.http.listen.bind().await?;
    let forwarding = Forwarding::open(config.forward, &config.store.data_dir)?;
    let external_labels = config.http.external_labels.clone();
    let data_dir = config.store.data_dir.clone();
    // Starts the replay on another thread. Until it ends, requests are answered with 503.
    let (store, mut threads) = Store::open(config.store)?;
    let queries = Queries::open(&store, config.queries);
    let plugins = open_plugins(config.plugins, &queries)?;
    let intake = Intake::new(store.clone(), plugins.clone());
    let mut rules_config = config.rules;
    rules_config.external_url = external_url(&config.http, &access);
    let external_url = rules_config.external_url.clone();
    let notification = notification::start(config.notify, external_url, &store, &data_dir);
    let (notifier, notifier_thread) = notification.await?;
    let rules = Rules::start(&rules_config, intake.clone(), queries.clone(), notifier.clone());
    let scraping =
        Scraping::start(&config.scrape, intake, &external_labels, &data_dir, shutdown.clone());
    let (scraping, scrapes) = scraping.await?;
    // A watch channel, with which a reload replaces the settings for later requests.
    let (live, current) = watch::channel(Live { http: Arc::new(config.http), access });
    let server = ServerConfig {
        store: store.clone(),
        queries: queries.clone(),
        plugins: plugins.clone(),
        ship: shipper.as_ref().map(Shipper::figures),
        forward: forwarding.figures(),
        scraping: scraping.clone(),
        rules: rules.clone(),
        notifier: notifier.clone(),
        live: current,
        reload,
    };
    // Shipping and forwarding start after the server was created, which may fail.
    let started = Server::new(listener, server).and_then(|server| {
        let spawn = |shipper: Shipper| shipper.spawn(store.data(), clean(&store), shutdown.clone());
        let forwarding = forwarding.spawn(&store, &external_labels, &shutdown);
        let forwarding = forwarding.map_err(std::io::Error::other)?;
        Ok((server, shipper.map(spawn).transpose()?, forwarding))
    });
    let (mut ship_thread, mut forward_threads) = (None, None);
    let served: Result<(), Box<dyn std::error::Error>> = match started {
        Ok((server, shipping, forwarding)) => {
            tracing::info!(address = %server.address(), "listening");
            let started = store.clone();
            // After the replay, the memory of code that only the start needs can be freed.
            tokio::spawn(resident::give_back_start(move || started.is_ready(), Image::carried()));
            let followed = supervisor.clone().follow(store.clone(), shutdown.clone());
            tokio::spawn(followed);
            let reloader = Reloader {
                source,
                files,
                started_with: settings.clone(),
                current: settings,
                store: store.clone(),
                queries: queries.clone(),
                live,
                plugins,
                forward: forwarding.clone(),
                scraping,
                rules: rules.clone(),
                notifier: notifier.clone(),
                log_level,
                supervisor,
            };
            tokio::spawn(reloader.run(requests));
            // A failed thread of the store cannot be replaced, so the program ends.
            tokio::select! {
                () = server.run(shutdown) => {
                    // Rules end before the store, so that their last samples are stored.
                    rules.stop().await;
                    // After the last evaluation, so that it is told.
                    notifier.stop().await;
                    // Scrapes end before the store, so that their last samples are stored.
                    if let Err(error) = scrapes.await {
                        tracing::error!(%error, "scraping panicked");
                    }
                    (ship_thread, forward_threads) = (shipping, Some(forwarding));
                    Ok(())
                }
                Ok(error) = &mut threads.failed => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    };
    // Joined on a blocking thread, because the network runtime must continue meanwhile.
    let closed = tokio::task::spawn_blocking(move || {
        if ship_thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that ships blocks panicked");
        }
        if let Some(threads) = forward_threads {
            threads.join();
        }
        notifier_thread.stop();
        // Queries end before the store, because they read from it.
        queries.close();
        store.close(threads)
    })
    .await?;
    // Logged here, because `served` is returned first and would hide this error.
    if let (Err(_), Err(error)) = (&served, &closed) {
        tracing::error!(%error, "could not stop cleanly");
    }
    served?;
    closed?;
    tracing::info!("stopped cleanly");
    Ok(())
}

/// Starts the loading of plugins. Writes that need a plugin are refused until it is loaded.
fn open_plugins(config: PluginsConfig, queries: &Queries) -> Result<Option<Plugins>, String> {
    if config.directory.is_none() {
        return Ok(None);
    }
    Plugins::open(config, queries, Handle::current()).map(Some)
}

/// Returns the function with which shipping asks for blocks without deleted samples.
fn clean(store: &Store) -> CleanTombstones {
    let store = store.clone();
    Arc::new(move || {
        let store = store.clone();
        Box::pin(async move {
            let left = store.clean_tombstones().await.map_err(|error| error.to_string())?;
            left.first().map_or(Ok(()), |bad| Err(format!("{}: {}", bad.where_, bad.reason)))
        })
    })
}
