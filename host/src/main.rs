//! The `tidepool` program: wires, then waits.

use std::process::ExitCode;
use std::sync::Arc;
use tidepool_host::access::Access;
use tidepool_host::cli;
use tidepool_host::config::{Invocation, ServeConfig};
use tidepool_host::http::{Server, ServerConfig};
use tidepool_host::ship::{CleanTombstones, Shipper};
use tidepool_host::shutdown::Shutdown;
use tidepool_host::store::Store;
use tidepool_host::telemetry;

fn main() -> ExitCode {
    let config = match Invocation::from_command_line() {
        Invocation::Serve(config) => *config,
        Invocation::Tsdb(args) => return cli::run(args),
    };
    telemetry::init(config.log_format, &config.log_level);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the async runtime could not be started");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "tidepool ends");
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: ServeConfig) -> Result<(), Box<dyn std::error::Error>> {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %config.store.data_dir.display(),
        wal_sync = ?config.store.wal.sync,
        "tidepool starts"
    );
    config.check_network()?;
    config.check_ship()?;
    let (labels, block_duration) = (&config.http.external_labels, config.store.block_duration);
    let shipper = config.ship.map(|ship| Shipper::open(ship, labels.clone(), block_duration));
    let shipper = shipper.transpose()?;
    let access = Access::open(&config.access)?;
    let shutdown = Shutdown::on_signals()?;
    let (store, mut threads) = Store::open(config.store)?;
    let ship = shipper.as_ref().map(Shipper::figures);
    let http = config.http;
    let server = Server::bind(ServerConfig { store: store.clone(), access, ship, http }).await;
    let started = server.and_then(|server| {
        let spawn = |shipper: Shipper| shipper.spawn(store.data(), clean(&store), shutdown.clone());
        Ok((server, shipper.map(spawn).transpose()?))
    });
    let mut ship_thread = None;
    let served = match started {
        Ok((server, shipping)) => {
            tracing::info!(address = %server.address(), "listening");
            tokio::select! {
                () = server.run(shutdown) => {
                    ship_thread = shipping;
                    Ok(())
                }
                Ok(error) = &mut threads.failed => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    };
    // Threads are waited for where waiting is allowed.
    tokio::task::spawn_blocking(move || {
        if ship_thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that ships blocks panicked");
        }
        store.close(threads);
    })
    .await?;
    if served.is_ok() {
        tracing::info!("stopped cleanly");
    }
    served
}

/// How shipping asks for blocks to be rewritten without what was deleted from them.
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
