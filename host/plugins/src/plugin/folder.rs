//! The plugins that should be loaded: files of the directory, with their settings.

use super::config::{PluginSettings, PluginsConfig, check_name};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Identity of a file's content, used to detect that a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// A plugin that should be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub settings: PluginSettings,
    /// Path of the `.wasm` file, which may not exist.
    pub path: PathBuf,
    /// Stamp of the file; `None` if there is no file.
    pub stamp: Option<Stamp>,
    /// Whether the configuration file has settings for this plugin.
    pub is_configured: bool,
}

impl Stamp {
    fn of(found: &Metadata) -> Stamp {
        let changed = (found.mtime(), found.mtime_nsec());
        Stamp { inode: found.ino(), bytes: found.size(), changed }
    }
}

/// Lists plugins by name. A file without settings in the configuration has the defaults.
pub fn wanted(config: &PluginsConfig) -> io::Result<BTreeMap<String, Wanted>> {
    let Some(directory) = &config.directory else { return Ok(BTreeMap::new()) };
    let mut wanted = configured(config);
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Ignores files that were removed meanwhile, and everything that is not a file.
        let Ok(found) = fs::metadata(&path) else { continue };
        if !found.is_file() {
            continue;
        }
        let stamp = Some(Stamp::of(&found));
        let mut is_spoken_of = false;
        // Several items of the configuration may share a file and have different settings.
        for one in wanted.values_mut().filter(|one| one.path == path) {
            one.stamp = stamp;
            is_spoken_of = true;
        }
        if let Some(name) = name_of(&path).filter(|_| !is_spoken_of) {
            let settings = PluginSettings::named(name);
            let new = Wanted { settings, stamp, path: path.clone(), is_configured: false };
            // A configured plugin with the same name and another file takes precedence.
            wanted.entry(name.to_owned()).or_insert(new);
        }
    }
    Ok(wanted)
}

/// Lists the plugins of the configuration, without looking for their files.
pub fn configured(config: &PluginsConfig) -> BTreeMap<String, Wanted> {
    let directory = config.directory.as_deref().unwrap_or(Path::new(""));
    let wanted = |settings: &PluginSettings| {
        let path = directory.join(&settings.file);
        Wanted { settings: settings.clone(), stamp: None, path, is_configured: true }
    };
    config.plugins.iter().map(|settings| (settings.name.clone(), wanted(settings))).collect()
}

/// Returns the name of a plugin's file, or `None` for any other file.
fn name_of(path: &Path) -> Option<&str> {
    let is_plugin = path.extension().is_some_and(|extension| extension == "wasm");
    path.file_stem()?.to_str().filter(|name| is_plugin && check_name(name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_plugins_by_their_names_or_by_the_configuration() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        for file in ["a.wasm", "b.wasm", "c.txt", "d e.wasm", ".wasm"] {
            fs::write(directory.path().join(file), file)?;
        }
        fs::create_dir(directory.path().join("f.wasm"))?;
        let mut settings = PluginSettings::named("x");
        settings.file = "a.wasm".to_owned();
        let missing = PluginSettings::named("y");
        let config = PluginsConfig {
            directory: Some(directory.path().to_owned()),
            memory_bytes_max: 0,
            compiler_bytes_max: 0,
            plugins: vec![settings, missing],
        };
        let found = wanted(&config)?;
        let told: Vec<_> = found
            .iter()
            .map(|(name, one)| (name.as_str(), one.stamp.is_some(), one.is_configured))
            .collect();
        assert_eq!(told, [("b", true, false), ("x", true, true), ("y", false, true)]);
        fs::write(directory.path().join("b.wasm"), "longer than before")?;
        assert_ne!(wanted(&config)?.get("b").map(|b| b.stamp), found.get("b").map(|b| b.stamp));
        Ok(())
    }
}
