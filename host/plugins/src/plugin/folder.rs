//! The plugins to load: files of the directory, and their settings in the configuration.

use super::config::{PluginSettings, PluginsConfig, check_name};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Tells a file from what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// A plugin that should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its settings.
    pub settings: PluginSettings,
    /// Its file.
    pub path: PathBuf,
    /// The file as it is now, if it is there.
    pub stamp: Option<Stamp>,
    /// Whether the configuration speaks of it.
    pub is_configured: bool,
}

impl Stamp {
    fn of(found: &Metadata) -> Stamp {
        let changed = (found.mtime(), found.mtime_nsec());
        Stamp { inode: found.ino(), bytes: found.size(), changed }
    }
}

/// Plugins by name. A file that the configuration does not speak of is one with the defaults.
pub fn wanted(config: &PluginsConfig) -> io::Result<BTreeMap<String, Wanted>> {
    let Some(directory) = &config.directory else { return Ok(BTreeMap::new()) };
    let mut wanted = configured(config);
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // What is gone again, or is no file, is none.
        let Ok(found) = fs::metadata(&path) else { continue };
        if !found.is_file() {
            continue;
        }
        let stamp = Some(Stamp::of(&found));
        let mut is_spoken_of = false;
        for one in wanted.values_mut().filter(|one| one.path == path) {
            one.stamp = stamp;
            is_spoken_of = true;
        }
        if let Some(name) = name_of(&path).filter(|_| !is_spoken_of) {
            let settings = PluginSettings::named(name);
            let new = Wanted { settings, stamp, path: path.clone(), is_configured: false };
            wanted.entry(name.to_owned()).or_insert(new);
        }
    }
    Ok(wanted)
}

/// Those that the configuration speaks of, as if none of their files were there.
pub fn configured(config: &PluginsConfig) -> BTreeMap<String, Wanted> {
    let directory = config.directory.as_deref().unwrap_or(Path::new(""));
    let wanted = |settings: &PluginSettings| {
        let path = directory.join(&settings.file);
        Wanted { settings: settings.clone(), stamp: None, path, is_configured: true }
    };
    config.plugins.iter().map(|settings| (settings.name.clone(), wanted(settings))).collect()
}

/// The name of a plugin's file; others are none.
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
