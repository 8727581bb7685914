//! The `tidepool` program: wires, then waits.

use std::process::ExitCode;
use tidepool_host::access::Access;
use tidepool_host::cli;
use tidepool_host::config::{Invocation, ServeConfig};
use tidepool_host::http::{Server, ServerConfig};
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
    let access = Access::open(&config.access)?;
    let shutdown = Shutdown::on_signals()?;
    let (store, mut threads) = Store::open(config.store)?;
    let server =
        Server::bind(ServerConfig { store: store.clone(), access, http: config.http }).await;
    let served = match server {
        Ok(server) => {
            tracing::info!(address = %server.address(), "listening");
            tokio::select! {
                () = server.run(shutdown) => Ok(()),
                Ok(error) = &mut threads.failed => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    };
    // Threads are waited for where waiting is allowed.
    tokio::task::spawn_blocking(move || store.close(threads)).await?;
    if served.is_ok() {
        tracing::info!("stopped cleanly");
    }
    served
}
