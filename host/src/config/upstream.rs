//! Prometheus' names: flags with an equivalent here, flags without an equivalent, and the sections
//! of Prometheus' configuration file.
//!
//! For clap, Prometheus' name of a flag is a separate flag, so that errors use the name that was
//! typed. Its value is then passed on under our name.

use super::topics::prometheus;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::{OsStr, OsString};

/// Flags of Prometheus that are always enabled here.
const ALWAYS: [&str; 3] =
    ["config.auto-reload", "web.enable-otlp-receiver", "web.enable-remote-write-receiver"];

/// Prefixes of Prometheus' flags without an equivalent here, each with a hint.
const ABSENT: &[(&str, &str)] = &[
    ("agent", "it stores what it scrapes; `remote_write` forwards it"),
    ("alertmanager.", ALERTS),
    ("auto-gomaxprocs", "it uses the processors that it is given"),
    ("auto-gomemlimit", "--memory-limit bounds the memory of the process"),
    ("rules.alert.resend-delay", ALERTS),
    ("scrape.", SCRAPE),
    ("storage.agent.", "it is no agent; --data-dir says where its data lies"),
    ("storage.remote.flush-deadline", "what was not sent on waits on disk until the next start"),
    ("storage.tsdb.allow-overlapping", "overlapping blocks are always taken"),
    ("storage.tsdb.block-reload-interval", "blocks are seen when they are made"),
    ("storage.tsdb.delayed-compaction", "there is nothing to set up"),
    ("storage.tsdb.head-chunks-write-queue-size", "the head's chunks stay in memory"),
    ("storage.tsdb.max-block-chunk-segment-size", "there is nothing to set up"),
    ("storage.tsdb.no-lockfile", LOCK),
    ("storage.tsdb.retention.percentage", "say --retention-size=80% for 80 percent of the disk"),
    ("storage.tsdb.samples-per-chunk", "a chunk holds about 120"),
    ("storage.tsdb.use-lockfile", LOCK),
    ("storage.tsdb.wal-compression", "--wal-compression says how log records are compressed"),
    ("web.console.", PAGES),
    ("web.max-notifications-subscribers", PAGES),
    ("web.page-title", PAGES),
    ("web.remote-write-receiver.", "remote write 1.0 and 2.0 are both taken"),
    ("web.search.", "it has no such endpoint"),
    ("web.user-assets", PAGES),
];

const SCRAPE: &str = "the configuration file says what is scraped (scrape_configs)";
const ALERTS: &str = "alerts are evaluated and shown, but not sent";
const LOCK: &str = "the data directory is always locked, by flock, which a crash frees";
const PAGES: &str = "it has no pages to set up";

/// Sections of Prometheus' configuration file without an equivalent here, each with a hint.
const SECTIONS: &[(&str, &str)] = &[
    (
        "otlp",
        "say `otlp-translation-strategy`, `otlp-promote-resource-attribute` and the like, as for flags",
    ),
    ("remote_read", "it reads from no other store"),
    ("runtime", "there is nothing of Go's to set up"),
    (
        "storage",
        "say `out-of-order-window`, `retention-time`, `retention-size` and `max-exemplars`",
    ),
    ("tracing", "it sends no traces"),
];

/// Heading of Prometheus' names in the long help.
const HEADING: &str = "Prometheus' names for the same";

/// Error if a flag has different values under two names.
#[derive(Debug, thiserror::Error)]
#[error("--{}={} and --{}={} are the same flag: give one of them", first.0, first.1, second.0, second.1)]
pub struct ConflictingFlags {
    first: (&'static str, String),
    second: (&'static str, String),
}

/// Returns our name of a flag; `name` is our name or Prometheus'.
pub(super) fn our_name(name: &str) -> &str {
    prometheus().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours)
}

/// Adds Prometheus' names to a command's flags.
pub(super) fn with_names(command: Command) -> Command {
    let same = prometheus().filter_map(|(theirs, ours)| {
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(ours))?;
        // Without short form and alias, which clap does not accept twice.
        let arg = arg.clone().id(theirs).long(theirs).short(None::<char>).alias(None::<&str>);
        // Without default, so that a value shows that this name was used.
        Some(arg.default_value(None::<&str>).help(format!("As --{ours}")))
    });
    let always = ALWAYS.iter().map(|name| {
        let arg = Arg::new(*name).long(*name).action(ArgAction::SetTrue);
        arg.help("Nothing: it is always so")
    });
    let hidden = |arg: Arg| {
        let has_values = arg.get_action().takes_values();
        arg.long_help(None::<&str>)
            .help_heading(HEADING)
            .hide_short_help(true)
            .hide_possible_values(has_values)
    };
    let names: Vec<Arg> = same.chain(always).map(hidden).collect();
    command.args(names)
}

/// Returns the flags that were set only under Prometheus' names, converted to our names. `command`
/// must be the command that produced the matches.
pub(super) fn by_our_names(
    command: &Command,
    matches: &ArgMatches,
) -> Result<Vec<OsString>, ConflictingFlags> {
    let mut flags: Vec<OsString> = Vec::new();
    let mut said: Vec<(&'static str, &'static str, &OsStr)> = Vec::new();
    for (theirs, ours) in prometheus() {
        let Some(value) = given(matches, theirs) else { continue };
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(ours));
        let Some(arg) = arg else { continue };
        let own = given(matches, arg.get_id().as_str()).map(|value| (ours, value));
        // Prometheus may have two names for a flag, one of which is deprecated.
        let other = said.iter().find(|(_, name, _)| *name == ours);
        // Equal values under two names are harmless. For different values, neither has priority.
        match own.or(other.map(|(name, _, value)| (*name, *value))) {
            Some((_, same)) if same == value => continue,
            Some((name, other)) => {
                let text = |value: &OsStr| value.to_string_lossy().into_owned();
                let (first, second) = ((theirs, text(value)), (name, text(other)));
                return Err(ConflictingFlags { first, second });
            }
            None => said.push((theirs, ours, value)),
        }
        let mut flag = OsString::from(format!("--{ours}"));
        if !matches!(arg.get_action(), ArgAction::SetTrue) {
            flag.push("=");
            flag.push(value);
        }
        flags.push(flag);
    }
    Ok(flags)
}

fn given<'a>(matches: &'a ArgMatches, id: &str) -> Option<&'a OsStr> {
    let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
    is_given.then(|| matches.get_raw(id))??.next_back()
}

/// Returns a message for a flag that clap does not know but Prometheus has.
pub(super) fn absent_flag(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = flag.strip_prefix("--")?;
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let found = ABSENT.iter().find(|(start, _)| is_unknown && name.starts_with(start));
    found.map(|(_, hint)| format!("tidepool has no flag {flag}, which is Prometheus': {hint}"))
}

/// Returns a message for a section of Prometheus' file that has no equivalent here.
pub(super) fn absent_section(name: &str) -> Option<String> {
    let found = SECTIONS.iter().find(|(section, _)| *section == name);
    found.map(|(_, hint)| format!("tidepool does not know the section `{name}`: {hint}"))
}

#[cfg(test)]
mod tests {
    use crate::config::ConfigError;
    use crate::config::tests::read;

    #[test]
    fn prometheus_names_say_the_same() -> Result<(), ConfigError> {
        let theirs = [
            "--storage.tsdb.path=/d",
            "--web.listen-address=:9201",
            "--storage.tsdb.retention.time=30d",
            "--storage.tsdb.retention.size=512MB",
            "--storage.tsdb.out-of-order-time-window=30m",
            "--storage.tsdb.min-block-duration=1h",
            "--storage.tsdb.max-block-duration=1d",
            "--storage.tsdb.wal-segment-size=32MB",
            "--storage.tsdb.wal-compression-type=zstd",
            "--storage.tsdb.delay-compact-file.path=/f",
            "--query.lookback-delta=1m",
            "--query.max-concurrency=3",
            "--query.max-samples=6",
            "--query.timeout=30s",
            "--storage.remote.read-concurrent-limit=4",
            "--storage.remote.read-sample-limit=5",
            "--storage.remote.read-max-bytes-in-frame=65536",
            "--web.enable-lifecycle",
            "--web.enable-admin-api",
            "--web.enable-remote-write-receiver",
            "--web.enable-otlp-receiver",
            "--web.max-connections=7",
            "--web.read-timeout=2m",
            "--web.config.file=w",
            "--web.cors.origin=a",
            "--log.level=WARN",
            "--log.format=logfmt",
        ];
        let ours = [
            "--data-dir=/d",
            "--listen=:9201",
            "--retention-time=30d",
            "--retention-size=512MB",
            "--out-of-order-window=30m",
            "--block-duration=1h",
            "--max-block-duration=1d",
            "--wal-segment-size=32MB",
            "--wal-compression=zstd",
            "--delay-compact-file=/f",
            "--query-lookback-delta=1m",
            "--query-max-concurrency=3",
            "--query-max-samples=6",
            "--query-timeout=30s",
            "--read-concurrency=4",
            "--read-sample-limit=5",
            "--read-max-bytes-in-frame=65536",
            "--enable-lifecycle",
            "--enable-admin-api",
            "--max-connections=7",
            "--request-timeout=2m",
            "--web-config-file=w",
            "--cors-origin=a",
            "--log-level=WARN",
            "--log-format=logfmt",
        ];
        let shown = |(config, settings)| format!("{config:?} {settings:?}");
        let expected = shown(read(&ours)?);
        assert_eq!(shown(read(&theirs)?), expected);
        let named: Vec<&str> = ["serve"].into_iter().chain(theirs).collect();
        assert_eq!(shown(read(&named)?), expected);
        // The value may be an argument of its own, and both names may have the same value.
        let split = ["--storage.tsdb.path", "/d", "--data-dir", "/d"];
        assert_eq!(shown(read(&split)?), shown(read(&["--data-dir=/d"])?));
        Ok(())
    }

    #[test]
    fn what_two_names_say_must_be_the_same() {
        let said = |arguments: &[&str]| match read(arguments) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let twice = said(&["--data-dir=/a", "--storage.tsdb.path=/b"]);
        let expected =
            "--storage.tsdb.path=/b and --data-dir=/a are the same flag: give one of them";
        assert_eq!(twice, expected);
        let twice = said(&["--storage.tsdb.retention=1d", "--storage.tsdb.retention.time=2d"]);
        assert!(twice.contains("are the same flag"), "{twice}");
        let wrong = said(&["--storage.tsdb.retention.time=soon"]);
        assert!(wrong.contains("'--storage.tsdb.retention.time <DURATION>'"), "{wrong}");
        let absent = said(&["serve", "--web.page-title=a"]);
        assert!(absent.starts_with("tidepool has no flag --web.page-title"), "{absent}");
        for (mistyped, meant) in [
            ("--storage.tsdb.paht=/d", "'--storage.tsdb.path'"),
            ("--web.listen-adress=:1", "'--web.listen-address'"),
            ("--data_dir=/d", "'--data-dir'"),
            ("--retention.time=1d", "'--retention-time'"),
        ] {
            let unknown = said(&[mistyped]);
            assert!(unknown.contains(meant), "{mistyped}: {unknown}");
        }
    }
}
