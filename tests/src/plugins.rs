//! Builds the plugins of `examples/plugins` and `tests/plugins`, and makes directories of plugins
//! for servers.

use crate::built::workspace;
use crate::process::Server;
use crate::tidepool::{Config, Store, StoreError};
use crate::wait;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

/// Timeout of the compiler on a machine with much other work.
const LOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Timeout of a call, unless a test has limits of its own: the defaults are for machines without
/// other work, and exceeding them is a fault.
const LIMITS: &str = "limits: {time: 60s}";

/// Token that clients of a decoder send.
pub const TOKEN: &str = "edge-t0ken==";

/// A directory of plugins with a configuration file.
#[derive(Debug)]
pub struct Plugins {
    directory: PathBuf,
    settings: String,
}

/// Returns the component of a crate in a workspace of plugins, such as `drop-and-relabel`.
pub fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    let folders = ["examples/plugins", "tests/plugins"].map(|folder| workspace().join(folder));
    BUILT.get_or_init(|| folders.iter().for_each(|folder| build(folder, &folder.join("target"))));
    let file = format!("{}.wasm", name.replace('-', "_"));
    let found = folders.map(|folder| folder.join("target/wasm32-wasip2/release").join(&file));
    let found = found.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("there is no plugin {name}"))
}

/// Builds a crate or a workspace for WebAssembly, into a target folder.
pub fn build(folder: &Path, target: &Path) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    // Flags that the outer build sets for this machine do not fit WebAssembly.
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTFLAGS");
    cargo.env("CARGO_TARGET_DIR", target).current_dir(folder).args(["build", "--release"]);
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "building {} failed: {status}", folder.display());
}

impl Plugins {
    /// Starts without plugins, in an existing directory.
    pub fn new(directory: &Path) -> Plugins {
        Plugins { directory: directory.join("plugins"), settings: String::new() }
    }

    /// Adds a plugin with settings of its own, indented as items of a mapping. Without limits among
    /// them, its calls may take long.
    pub fn with(self, name: &str, of: &str, settings: &str) -> Plugins {
        self.with_file(name, &built(of), settings)
    }

    /// Adds a plugin from another file.
    pub fn with_file(mut self, name: &str, file: &Path, settings: &str) -> Plugins {
        let bytes = fs::read(file);
        self.put(name, &bytes.unwrap_or_else(|error| panic!("{}: {error}", file.display())));
        self.settings.push_str(&format!("  - name: {name}\n"));
        let has_limits = settings.lines().any(|line| line.starts_with("limits:"));
        let limits = if has_limits { "" } else { LIMITS };
        for line in settings.lines().chain(limits.lines()) {
            self.settings.push_str(&format!("    {line}\n"));
        }
        self
    }

    /// Replaces a plugin's file in one step, as an update does.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let put = || -> io::Result<()> {
            fs::create_dir_all(&self.directory)?;
            let partial = self.directory.join(format!("{name}.partial"));
            fs::write(&partial, bytes)?;
            fs::rename(partial, self.path(name))
        };
        put().expect("the plugin can be written");
    }

    /// Returns the path of a plugin's file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.wasm"))
    }

    /// Writes the configuration file, and returns its flag.
    pub fn flag(&self) -> String {
        let file = self.directory.with_extension("yml");
        let section = match self.settings.as_str() {
            "" => String::new(),
            settings => format!("plugins:\n{settings}"),
        };
        let text = format!("plugins-dir: {}\n{section}", self.directory.display());
        fs::create_dir_all(&self.directory).expect("the directory can be made");
        fs::write(&file, text).expect("the configuration can be written");
        format!("--config={}", file.display())
    }

    /// Replaces a text in the settings of all plugins.
    pub fn replace(&mut self, from: &str, to: &str) {
        assert!(self.settings.contains(from), "{from:?} is not in {}", self.settings);
        self.settings = self.settings.replace(from, to);
        self.flag();
    }
}

/// Starts a store and waits until its plugins are loaded or have failed to load.
pub fn start(
    plugins: impl FnOnce(Plugins) -> Plugins,
    configure: impl FnOnce(Config) -> Config,
) -> Result<(Store, Plugins), StoreError> {
    let (store, plugins) = start_loading(plugins, configure)?;
    wait_loaded(&store.server);
    Ok((store, plugins))
}

/// Waits until no plugin is being loaded.
pub fn wait_loaded(server: &Server) {
    let is_done = || (server.metric("tidepool_plugins_loading")? == 0.0).then_some(());
    wait::until("the plugins", LOAD_TIMEOUT, is_done).expect("they are loaded");
}

/// Starts a store that may still load its plugins.
pub fn start_loading(
    plugins: impl FnOnce(Plugins) -> Plugins,
    configure: impl FnOnce(Config) -> Config,
) -> Result<(Store, Plugins), StoreError> {
    let directory = tempfile::tempdir()?;
    let plugins = plugins(Plugins::new(directory.path()));
    let config = configure(Config::new(directory.path()).flag(&plugins.flag()));
    let server = config.start()?;
    Ok((Store { server, config, directory }, plugins))
}

/// Returns a metric of a plugin, such as `calls_total` with `outcome="ok"`; 0 if there is none.
pub fn figure(server: &Server, name: &str, plugin: &str, more: &str) -> f64 {
    let page = crate::http::Client::default().get(&format!("{}/metrics", server.url()));
    let page = page.expect("metrics").text();
    let begin = format!("tidepool_plugin_{name}{{plugin=\"{plugin}\",");
    let line = page.lines().find(|line| line.starts_with(&begin) && line.contains(more));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

/// Starts a store whose decoder has the paths at which clients of InfluxDB write, for those with a
/// token.
pub fn influx_store(directory: &Path) -> Store {
    let writers = directory.join("writers");
    fs::write(&writers, format!("bearer {TOKEN}\n")).expect("written");
    let settings = "world: decoder\npaths: [/write, /api/v2/write]";
    let flag = format!("--write-credentials-file={}", writers.display());
    let (store, _) = start(
        |plugins: Plugins| plugins.with("influx", "influx-line", settings),
        |config| config.flag(&flag),
    )
    .expect("tidepool starts");
    store
}
