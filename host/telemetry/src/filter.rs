//! The filter of log lines: a level for all targets, and levels of single targets.
//!
//! ```text
//! warn                               warnings and errors
//! info,tidepool_store=debug          and all lines of the store
//! ```
//!
//! The library accepts any word as the name of a target, and then writes all lines of that target
//! and no others: `warning` would silence everything. So this module checks the words.

use std::fmt;
use std::str::FromStr;

/// The levels of a whole process, as Prometheus names them.
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

/// Further levels, for single targets only.
const TARGET_LEVELS: [&str; 2] = ["trace", "off"];

/// Level of targets that are not named.
const LEVEL_DEFAULT: &str = "info";

/// The former crate, since divided: filters with its modules apply to their replacements.
const DIVIDED: &str = "tidepool_host";

/// Modules of the former crate, each with the crate or module that replaces it.
const MOVED: [(&str, &str); 20] = [
    ("access", "tidepool_server::access"),
    ("forward", "tidepool_forward"),
    ("http", "tidepool_server::http"),
    ("intake", "tidepool_plugins::intake"),
    ("otlp", "tidepool_protocol::otlp"),
    ("plugin", "tidepool_plugins::plugin"),
    ("prom", "tidepool_protocol::prom"),
    ("scrape", "tidepool_scraping"),
    ("ship", "tidepool_ship"),
    ("store", "tidepool_store"),
    ("store", "tidepool_query"),
    ("telemetry", "tidepool_telemetry"),
    ("text", "tidepool_protocol::text"),
    ("wasm", "tidepool_runtime"),
    ("open_files", "tidepool_lifecycle::open_files"),
    ("priority", "tidepool_lifecycle::priority"),
    ("reload", "tidepool_lifecycle::reload"),
    ("resident", "tidepool_lifecycle::resident"),
    ("shutdown", "tidepool_lifecycle::shutdown"),
    ("supervisor", "tidepool_lifecycle::supervisor"),
];

/// A valid filter of log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// Reason for which a filter is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The word is no level.
    #[error(
        "{0:?} is not a level: use debug, info, warn or error, or add levels of single targets, as in info,tidepool_store=debug"
    )]
    Level(String),
    /// The word before `=` is no target.
    #[error("{0:?} is not a target such as tidepool_store")]
    Target(String),
    /// A second level without a target.
    #[error("{0:?} is a second level for everything")]
    SecondLevel(String),
}

impl FromStr for LogFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<LogFilter, FilterError> {
        let mut level: Option<&str> = None;
        let mut targets = String::new();
        for directive in text.split(',').map(str::trim) {
            let Some((target, word)) = directive.rsplit_once('=') else {
                if level.is_some() {
                    return Err(FilterError::SecondLevel(directive.to_owned()));
                }
                // `trace` and `off` are refused: as the level of a whole process they are mistakes.
                level = Some(level_of(directive, &[])?);
                continue;
            };
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
            if target.is_empty() || !target.chars().all(is_of_name) {
                return Err(FilterError::Target(target.to_owned()));
            }
            let level = level_of(word, &TARGET_LEVELS)?;
            // The target as written stays in the filter, since it may name another crate.
            for target in [target.to_owned()].into_iter().chain(moved(target)) {
                targets.push_str(&format!(",{target}={level}"));
            }
        }
        Ok(LogFilter(level.unwrap_or(LEVEL_DEFAULT).to_owned() + &targets))
    }
}

/// The new names of a target of the former crate; empty for other targets.
fn moved(target: &str) -> Vec<String> {
    let Some(part) = target.strip_prefix(DIVIDED) else { return Vec::new() };
    let part = match part.strip_prefix("::") {
        Some(part) => part,
        None if part.is_empty() => part,
        None => return Vec::new(),
    };
    let named = |(module, new): &(&str, &str)| match part.strip_prefix(module) {
        Some(rest) if rest.is_empty() || rest.starts_with("::") => Some(format!("{new}{rest}")),
        _ => part.is_empty().then(|| (*new).to_owned()),
    };
    MOVED.iter().filter_map(named).collect()
}

/// Returns the level that a word names, in upper or lower case.
fn level_of(word: &str, more: &[&'static str]) -> Result<&'static str, FilterError> {
    let lower = word.to_ascii_lowercase();
    let name = if lower == "warning" { "warn" } else { lower.as_str() };
    let found = LEVELS.iter().chain(more).find(|level| **level == name);
    found.copied().ok_or_else(|| FilterError::Level(word.to_owned()))
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::EnvFilter;

    #[test]
    fn levels_and_targets_are_taken() {
        for (text, expected) in [
            ("debug", "debug"),
            ("Info", "info"),
            ("warning", "warn"),
            ("ERROR", "error"),
            ("info,tidepool_store=debug", "info,tidepool_store=debug"),
            ("hyper=off, warn ,object_store=trace", "warn,hyper=off,object_store=trace"),
            ("tidepool_scrape::pool=debug", "info,tidepool_scrape::pool=debug"),
        ] {
            let filter = LogFilter::from_str(text).map(|filter| filter.to_string());
            assert_eq!(filter, Ok(expected.to_owned()), "{text:?}");
            assert!(EnvFilter::try_new(expected).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn modules_that_moved_are_meant_by_their_former_names() {
        let of = |text: &str| LogFilter::from_str(text).map(|filter| filter.to_string());
        let one = "info,tidepool_host::shutdown::x=debug,tidepool_lifecycle::shutdown::x=debug";
        assert_eq!(of("tidepool_host::shutdown::x=debug"), Ok(one.to_owned()));
        let all = of("tidepool_host=debug").expect("a filter");
        assert_eq!(all.matches("=debug").count(), MOVED.len() + 1, "{all}");
        assert!(all.contains("tidepool_telemetry=debug"), "{all}");
        for other in ["tidepool_hosts=debug", "tidepool_host::shut=debug"] {
            assert_eq!(of(other), Ok(format!("info,{other}")));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            " ",
            ",",
            "verbose",
            "fatal",
            "off",
            "trace",
            "none",
            "1",
            "info,",
            "info,debug",
            "tidepool_host",
            "tidepool_host,info",
            "a=b=c",
            "=info",
            "a=",
            "a b=info",
            "[x]=info",
            "a[x{y=1}]=info",
            "info,verbose",
            "warn;info",
        ] {
            assert!(LogFilter::from_str(text).is_err(), "{text:?}");
        }
        let said = LogFilter::from_str("verbose").map_err(|error| error.to_string());
        assert!(said.is_err_and(|said| said.contains("debug, info, warn or error")));
    }
}
