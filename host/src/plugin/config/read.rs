//! Reading the section: every key is known, and what is wrong is named with its line.

use super::{Grants, Limits, OnFault, PluginSettings, check_name, is_reserved};
use crate::config::section::Section;
use crate::config::{Wrong, bytes, duration, line};
use saphyr::{MarkedYaml, YamlData};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Longest path that a decoder may have.
const PATH_BYTES_MAX: usize = 256;

/// A page of linear memory.
const MEMORY_BYTES_MIN: usize = 64 << 10;

const TIME_MIN: Duration = Duration::from_millis(1);
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
const SCHEDULE_MIN: Duration = Duration::from_secs(1);
const SCHEDULE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads the section.
pub fn read(section: &MarkedYaml<'_>) -> Result<Vec<PluginSettings>, Wrong> {
    let YamlData::Sequence(items) = &section.data else {
        return Err((line(section), "plugins: a list is wanted".to_owned()));
    };
    let mut plugins: Vec<PluginSettings> = Vec::with_capacity(items.len());
    for item in items {
        let plugin = plugin(Section::of("plugins", item)?)?;
        for other in &plugins {
            if other.name == plugin.name {
                let what = format!("plugins: {} is there twice", plugin.name);
                return Err((line(item), what));
            }
            if let Some(path) = plugin.paths.iter().find(|path| other.paths.contains(path)) {
                let what = format!("plugins.paths: {path:?} is taken by {}", other.name);
                return Err((line(item), what));
            }
        }
        plugins.push(plugin);
    }
    Ok(plugins)
}

fn plugin(mut section: Section<'_, '_>) -> Result<PluginSettings, Wrong> {
    let checked = |text: &str| check_name(text).map(|()| text.to_owned());
    let Some(name) = section.get("name", checked)? else {
        return Err(section.wrong("a name is missing"));
    };
    let mut settings = PluginSettings::named(&name);
    set(&mut settings.file, section.get("file", plain_file)?);
    settings.world = section.get("world", str::parse)?;
    set(&mut settings.order, section.get("order", whole)?);
    set(&mut settings.config, section.text("config")?);
    set(&mut settings.schedule, section.get("schedule", schedule)?);
    set(&mut settings.on_fault, section.get("on-fault", on_fault)?);
    set(&mut settings.paths, section.each("paths", own_path)?);
    if let Some(limits) = section.section("limits")? {
        settings.limits = read_limits(limits)?;
    }
    if let Some(grants) = section.section("grants")? {
        settings.grants = read_grants(grants)?;
    }
    if let Some(world) = settings.world {
        settings.check_world(world).map_err(|what| section.wrong(what))?;
    }
    section.end()?;
    Ok(settings)
}

fn read_limits(mut section: Section<'_, '_>) -> Result<Limits, Wrong> {
    let mut limits = Limits::default();
    set(&mut limits.memory_bytes_max, section.get("memory", memory)?);
    limits.time = section.get("time", time)?;
    set(&mut limits.output_bytes_max, section.get("output", output)?);
    set(&mut limits.queue, section.get("queue", at_least_one)?);
    set(&mut limits.instances, section.get("instances", at_least_one)?);
    section.end()?;
    Ok(limits)
}

fn read_grants(mut section: Section<'_, '_>) -> Result<Grants, Wrong> {
    let mut grants = Grants::default();
    set(&mut grants.webhooks, section.each("webhooks", webhook)?);
    grants.directory = section.get("directory", directory)?;
    set(&mut grants.is_writable, section.flag("writable")?);
    if grants.is_writable && grants.directory.is_none() {
        return Err(section.wrong("writable: there is no directory to write to"));
    }
    section.end()?;
    Ok(grants)
}

/// Takes over what the file says; what it does not say stays as it was.
fn set<T>(setting: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *setting = said;
    }
}

fn whole(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| format!("{text:?} is no number from 1 to 1024"))
}

fn size(text: &str) -> Result<usize, String> {
    bytes(text).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Linear memory comes in pages: with less than one nothing starts.
fn memory(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    if bytes >= MEMORY_BYTES_MIN { Ok(bytes) } else { Err("64KiB at least are wanted".to_owned()) }
}

fn output(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    if bytes > 0 {
        Ok(bytes)
    } else {
        Err("a plugin that may give nothing is of no use".to_owned())
    }
}

fn time(text: &str) -> Result<Duration, String> {
    within(text, TIME_MIN..=TIME_MAX, "a call takes from 1ms to 24h")
}

fn schedule(text: &str) -> Result<Duration, String> {
    within(
        text,
        SCHEDULE_MIN..=SCHEDULE_MAX,
        "a job runs once a second at most, once a year at least",
    )
}

fn within(
    text: &str,
    bounds: RangeInclusive<Duration>,
    otherwise: &str,
) -> Result<Duration, String> {
    let duration = duration(text)?;
    if bounds.contains(&duration) { Ok(duration) } else { Err(otherwise.to_owned()) }
}

/// A directory that is there.
fn directory(text: &str) -> Result<PathBuf, String> {
    match std::fs::metadata(text) {
        Ok(found) if found.is_dir() => Ok(PathBuf::from(text)),
        Ok(_) => Err(format!("{text:?} is no directory")),
        Err(error) => Err(format!("the directory {text:?} cannot be granted: {error}")),
    }
}

fn on_fault(text: &str) -> Result<OnFault, String> {
    match text {
        "pass" => Ok(OnFault::Pass),
        "reject" => Ok(OnFault::Reject),
        _ => Err(format!("{text:?} is neither pass nor reject")),
    }
}

/// A file of the directory itself: what lies elsewhere is not looked for.
fn plain_file(text: &str) -> Result<String, String> {
    match !text.is_empty() && !text.contains('/') && text.ends_with(".wasm") {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no name of a .wasm file in the directory of plugins")),
    }
}

/// The path of a URL that a decoder answers beside its own.
fn own_path(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-._~:@!$&'()*+,;=%".contains(c);
    if !text.starts_with('/') || text.len() > PATH_BYTES_MAX || !text.chars().all(is_plain) {
        return Err(format!("{text:?} is no path such as /api/v2/write"));
    }
    if is_reserved(text) {
        return Err(format!(
            "{text:?} is tidepool's: what begins with /api/v1/ or /-/, /metrics and / are"
        ));
    }
    Ok(text.to_owned())
}

/// A URL; what begins with it, and goes on after a slash, is granted.
fn webhook(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            Ok(url.as_str().to_owned())
        }
        _ => Err(format!("{text:?} is no URL such as http://127.0.0.1:9093/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::config::World;
    use saphyr::YamlLoader;
    use saphyr_parser::Parser;

    fn settings(text: &str) -> Result<Vec<PluginSettings>, Wrong> {
        let mut loader = YamlLoader::<MarkedYaml<'_>>::default();
        loader.early_parse(false);
        let loaded = Parser::new_from_str(text).load(&mut loader, true);
        assert!(loaded.is_ok(), "{text:?}");
        read(&loader.into_documents()[0])
    }

    #[test]
    fn all_keys_are_read() {
        let text = "- name: a\n- name: b\n  file: c.wasm\n  order: -3\n  \
                    on-fault: reject\n  schedule: 5m\n  config: |\n    x: 1\n    y: 2\n  \
                    limits: {memory: 1MiB, time: 2s, output: 3KiB, queue: 4, instances: 5}\n  \
                    grants:\n    webhooks: [http://127.0.0.1:9093/x]\n    directory: /\n    \
                    writable: true\n";
        let expected = PluginSettings {
            name: "b".into(),
            file: "c.wasm".into(),
            world: None,
            order: -3,
            on_fault: OnFault::Reject,
            config: "x: 1\ny: 2\n".into(),
            schedule: Duration::from_secs(300),
            paths: Vec::new(),
            limits: Limits {
                memory_bytes_max: 1 << 20,
                time: Some(Duration::from_secs(2)),
                output_bytes_max: 3 << 10,
                queue: 4,
                instances: 5,
            },
            grants: Grants {
                webhooks: vec!["http://127.0.0.1:9093/x".into()],
                directory: Some("/".into()),
                is_writable: true,
            },
        };
        assert_eq!(settings(text), Ok(vec![PluginSettings::named("a"), expected]));
        let job = settings("- {name: a, world: job}").map(|all| all[0].world);
        assert_eq!(job, Ok(Some(World::Job)));
        let decoder = "- {name: a, world: decoder, paths: [/write, /api/v2/write]}";
        let paths = settings(decoder).map(|all| all.into_iter().flat_map(|p| p.paths).collect());
        assert_eq!(paths, Ok(vec!["/write".to_owned(), "/api/v2/write".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, what) in [
            ("a: b\n", 1, "a list"),
            ("- name: a\n- order: 1\n", 2, "a name is missing"),
            ("- name: a/b\n", 1, "no name of a plugin"),
            ("- name: a\n- name: a\n", 2, "there twice"),
            ("- name: a\n  world: filter\n", 2, "none of transform"),
            ("- name: a\n  ordr: 1\n", 2, "plugins.ordr: there is no such key"),
            ("- name: a\n  on-fault: ignore\n", 2, "neither pass nor reject"),
            (
                "- name: a\n  limits: {memory: much}\n",
                2,
                "plugins.limits.memory: \"much\" is no size",
            ),
            ("- name: a\n  limits:\n    time: 5\n", 3, "no duration"),
            ("- name: a\n  limits: {queue: 0}\n", 2, "from 1 to 1024"),
            ("- name: a\n  limits: {memory: 65535B}\n", 2, "64KiB at least"),
            ("- name: a\n  limits: {output: 0B}\n", 2, "may give nothing"),
            ("- name: a\n  limits: {time: 0s}\n", 2, "is no time"),
            ("- name: a\n  limits: {time: 100000d}\n", 2, "from 1ms to 24h"),
            ("- name: a\n  schedule: 100000d\n", 2, "once a year at least"),
            ("- name: a\n  grants: {directory: /no/such}\n", 2, "cannot be granted"),
            ("- name: a\n  grants: {directory: /dev/null}\n", 2, "is no directory"),
            ("- name: a\n  grants: {writable: true}\n", 2, "no directory to write to"),
            ("- {name: a, world: job, on-fault: reject}\n", 1, "only transforms have on-fault"),
            ("- {name: a, world: decoder, order: 1}\n", 1, "only transforms have order"),
            ("- {name: a, world: observer, schedule: 5m}\n", 1, "only jobs have schedule"),
            ("- {name: a, world: job, limits: {queue: 3}}\n", 1, "only observers have"),
            ("- {name: a, world: job, limits: {instances: 3}}\n", 1, "transforms and decoders"),
            ("- {name: a, world: decoder, grants: {webhooks: ['http://x']}}\n", 1, "only jobs and"),
            ("- name: a\n  grants:\n    webhooks: [ftp://x]\n", 3, "no URL"),
            ("- name: a\n  file: ../x.wasm\n", 2, "no name of a .wasm file"),
            ("- name: a\n  schedule: 10ms\n", 2, "once a second"),
            ("- name: a\n  paths: [write]\n", 2, "no path such as"),
            ("- name: a\n  paths:\n    - /w\n    - /api/v1/write\n", 4, "is tidepool's"),
            ("- name: a\n  paths: [/metrics]\n", 2, "is tidepool's"),
            ("- name: a\n  paths: ['/a b']\n", 2, "no path such as"),
            ("- name: a\n  paths: [/w]\n  world: job\n", 1, "only decoders have paths"),
            ("- {name: a, paths: [/w]}\n- {name: b, paths: [/v, /w]}\n", 2, "is taken by a"),
        ] {
            match settings(text) {
                Err((at, said)) => {
                    assert!(said.contains(what), "{text:?}: {said}");
                    assert_eq!(at, line, "{text:?}: {said}");
                }
                Ok(settings) => panic!("{text:?}: {settings:?}"),
            }
        }
    }
}
