//! The section `plugins` with the keys of the file. Unknown keys are refused, and every error has a
//! position in the file.

use super::{Grants, Limits, OnFault, PluginSettings, World, check_name, is_reserved};
use serde::{Deserialize, Deserializer};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use tidepool_settings::duration::{bytes, duration};
use tidepool_settings::yaml::{self, At};

/// Maximum length of a decoder's path in bytes.
const PATH_BYTES_MAX: usize = 256;

/// Minimum linear memory of an instance: one page.
const MEMORY_BYTES_MIN: usize = 64 << 10;

const TIME_MIN: Duration = Duration::from_millis(1);
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
const SCHEDULE_MIN: Duration = Duration::from_secs(1);
const SCHEDULE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads the section. Names and paths must be unique among all plugins.
pub fn read(section: &yaml::Node) -> Result<Vec<PluginSettings>, yaml::Error> {
    let items: Vec<At<PluginSettings>> = yaml::read("plugins", section)?;
    let mut plugins: Vec<PluginSettings> = Vec::with_capacity(items.len());
    for (number, At { place, value: plugin }) in items.into_iter().enumerate() {
        let wrong = |key, what: String| {
            Err(yaml::Error::new(place, format!("plugins[{number}].{key}"), what))
        };
        // Quadratic, but the list is written by a person and short.
        for other in &plugins {
            if other.name == plugin.name {
                return wrong("name", format!("{} is there already", plugin.name));
            }
            if let Some(path) = plugin.paths.iter().find(|path| other.paths.contains(path)) {
                return wrong("paths", format!("{path:?} is taken by {}", other.name));
            }
        }
        plugins.push(plugin);
    }
    Ok(plugins)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Section {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default, deserialize_with = "file")]
    file: Option<String>,
    #[serde(default, deserialize_with = "world")]
    world: Option<World>,
    #[serde(default)]
    order: i32,
    #[serde(default)]
    config: String,
    #[serde(default, deserialize_with = "schedule")]
    schedule: Option<Duration>,
    #[serde(default)]
    on_fault: OnFault,
    #[serde(default)]
    paths: Vec<OwnPath>,
    #[serde(default)]
    limits: Limits,
    #[serde(default, deserialize_with = "grants")]
    grants: Grants,
}

/// A URL path that a decoder answers in addition to `/api/v1/push/NAME`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct OwnPath(String);

/// A granted URL. The grant includes longer URLs that continue with `/` or `?`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Webhook(String);

impl TryFrom<Section> for PluginSettings {
    type Error = String;

    fn try_from(section: Section) -> Result<PluginSettings, String> {
        let defaults = PluginSettings::named(&section.name);
        let settings = PluginSettings {
            name: section.name,
            file: section.file.unwrap_or(defaults.file),
            world: section.world,
            order: section.order,
            on_fault: section.on_fault,
            config: section.config,
            schedule: section.schedule.unwrap_or(defaults.schedule),
            paths: section.paths.into_iter().map(|OwnPath(path)| path).collect(),
            limits: section.limits,
            grants: section.grants,
        };
        // Otherwise the world is known, and the settings checked, only when the file is loaded.
        if let Some(world) = settings.world {
            settings.check_world(world)?;
        }
        Ok(settings)
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    yaml::parsed(deserializer, |text| check_name(text).map(|()| text.to_owned()))
}

fn world<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<World>, D::Error> {
    yaml::parsed(deserializer, |text| text.parse().map(Some))
}

/// Reads the name of a file. Paths are refused, because only one directory is watched.
fn file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    yaml::parsed(deserializer, |text| {
        match !text.is_empty() && !text.contains('/') && text.ends_with(".wasm") {
            true => Ok(Some(text.to_owned())),
            false => {
                Err(format!("{text:?} is not the name of a .wasm file in the directory of plugins"))
            }
        }
    })
}

fn schedule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let otherwise = "expected a duration from 1s to 366d";
    within(deserializer, SCHEDULE_MIN..=SCHEDULE_MAX, otherwise)
}

pub(super) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    within(deserializer, TIME_MIN..=TIME_MAX, "expected a duration from 1ms to 24h")
}

fn within<'de, D: Deserializer<'de>>(
    deserializer: D,
    bounds: RangeInclusive<Duration>,
    otherwise: &str,
) -> Result<Option<Duration>, D::Error> {
    yaml::parsed(deserializer, |text| {
        let duration = duration(text)?;
        if bounds.contains(&duration) { Ok(Some(duration)) } else { Err(otherwise.to_owned()) }
    })
}

/// Reads the memory limit. An instance needs at least one page of linear memory.
pub(super) fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    size(deserializer, MEMORY_BYTES_MIN, "expected at least 64KiB")
}

pub(super) fn output<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    size(deserializer, 1, "expected at least 1 byte")
}

fn size<'de, D: Deserializer<'de>>(
    deserializer: D,
    min: usize,
    otherwise: &str,
) -> Result<usize, D::Error> {
    yaml::parsed(deserializer, |text| {
        let size = bytes(text).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))?;
        if size >= min { Ok(size) } else { Err(otherwise.to_owned()) }
    })
}

fn grants<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Grants, D::Error> {
    // Checked here, because only here both keys are known.
    let grants = Grants::deserialize(deserializer)?;
    match grants.is_writable && grants.directory.is_none() {
        true => Err(serde::de::Error::custom("writable: it needs a directory")),
        false => Ok(grants),
    }
}

pub(super) fn webhooks<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let webhooks = Vec::deserialize(deserializer)?;
    Ok(webhooks.into_iter().map(|Webhook(url)| url).collect())
}

/// Reads a directory, which must exist.
pub(super) fn directory<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PathBuf>, D::Error> {
    // A missing directory is refused here, because every start of the plugin would fail.
    yaml::parsed(deserializer, |text| match std::fs::metadata(text) {
        Ok(found) if found.is_dir() => Ok(Some(PathBuf::from(text))),
        Ok(_) => Err(format!("{text:?} is not a directory")),
        Err(error) => Err(format!("the directory {text:?} cannot be granted: {error}")),
    })
}

impl TryFrom<String> for OwnPath {
    type Error = String;

    fn try_from(text: String) -> Result<OwnPath, String> {
        // The characters that RFC 3986 allows in a path. Others never arrive unescaped.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-._~:@!$&'()*+,;=%".contains(c);
        if !text.starts_with('/') || text.len() > PATH_BYTES_MAX || !text.chars().all(is_plain) {
            return Err(format!("{text:?} is not a path such as /api/v2/write"));
        }
        if is_reserved(&text) {
            return Err(format!(
                "{text:?} is reserved: /, /metrics and all paths below /api/v1/ and /-/ belong to \
                 tidepool"
            ));
        }
        Ok(OwnPath(text))
    }
}

impl TryFrom<String> for Webhook {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Webhook, &'static str> {
        // The error does not show the URL, because knowing it often suffices to post to it.
        match url::Url::parse(&text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
                Ok(Webhook(url.into()))
            }
            _ => Err("expected a URL such as http://127.0.0.1:9093/"),
        }
    }
}
