//! A target: its labels, its URL, its schedule, and the state of its scrapes.
//!
//! Source: `scrape/target.go` of prometheus/prometheus.

pub mod labels;

pub use labels::{LabelMap, TargetError, discovered_labels, names, target_labels};

use crate::cache::Families;
use crate::error::ScrapeError;
use crate::job::Job;
use crate::labels::{Labels, RESERVED_PREFIX};
use crate::store::FamilyMetadata;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidepool_probe::Module;
use tidepool_settings::duration::duration;
use tidepool_settings::redact::{HIDDEN, is_secret_name, shown_request};
use url::Url;

/// A group of targets with common labels, as a discovery source lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetGroup {
    /// Source that lists the targets, such as a file.
    pub source: String,
    /// Labels of each target, the address among them.
    pub targets: Vec<Labels>,
    /// Labels that all targets have.
    pub labels: Labels,
}

/// Outcome of the last scrape of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Not scraped yet.
    #[default]
    Unknown,
    Up,
    Down,
}

impl Health {
    /// Returns the word in answers of the API.
    pub fn name(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Up => "up",
            Health::Down => "down",
        }
    }
}

/// State of a target's scrapes, as the API shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub health: Health,
    /// Reason why the last scrape failed, or why the store refused some of its samples.
    pub last_error: Option<ScrapeError>,
    /// Time of the last scrape since the Unix epoch.
    pub last_scrape: Option<Duration>,
    pub last_duration: Duration,
}

#[derive(Debug)]
pub struct Target {
    labels: LabelMap,
    url: String,
    interval: Duration,
    timeout: Duration,
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
    discovered: Labels,
    state: State,
    families: Arc<Mutex<Families>>,
}

impl Target {
    /// Creates a target from the labels that [`target_labels`] returned and the discovered labels.
    pub fn new(job: &Job, labels: LabelMap, discovered: Labels) -> Target {
        // `target_labels` has checked the labels, so the default is only for absent labels.
        let length = |name, default| {
            labels.get(name).and_then(|text| duration(text).ok()).unwrap_or(default)
        };
        Target {
            url: match &job.probe {
                Some(module) => probed_url(module, &labels),
                None => url_text(&labels, &job.params),
            },
            interval: length(names::SCRAPE_INTERVAL, job.interval),
            timeout: length(names::SCRAPE_TIMEOUT, job.timeout),
            labels,
            shared: Mutex::new(Shared {
                discovered,
                state: State::default(),
                families: Arc::default(),
            }),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all labels, including the labels that control its scrapes.
    pub fn labels(&self) -> &LabelMap {
        &self.labels
    }

    /// Returns the labels that the target's series get.
    pub fn public_labels(&self) -> Vec<(String, String)> {
        let public = self.labels.iter().filter(|(name, _)| !name.starts_with(RESERVED_PREFIX));
        public.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the labels before relabeling.
    pub fn discovered_labels(&self) -> Labels {
        self.shared().discovered.clone()
    }

    /// Replaces the labels before relabeling, which may change while the target stays the same.
    pub fn set_discovered_labels(&self, discovered: Labels) {
        self.shared().discovered = discovered;
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL without parts that may be secret.
    pub fn shown_url(&self) -> String {
        shown_request(&self.url)
    }

    /// Returns the Unix socket that is used instead of the address.
    pub fn unix_socket(&self) -> Option<&str> {
        self.labels.get(names::UNIX_SOCKET).map(String::as_str)
    }

    pub fn interval(&self) -> Duration {
        self.interval
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns a setting of the job that a label of the target may override.
    pub fn is_on(&self, name: &str, default: bool) -> bool {
        self.labels.get(name).and_then(|value| labels::truth(value)).unwrap_or(default)
    }

    /// Returns labels and URL. Targets that agree in both are scraped as one target.
    pub fn identity(&self) -> (&LabelMap, &str) {
        (&self.labels, &self.url)
    }

    /// Returns a hash that determines the offset of the target's scrapes in the interval.
    pub fn hash(&self) -> u64 {
        let labels = self.labels.iter().flat_map(|(name, value)| [name, value]);
        let texts = labels.map(String::as_str).chain([self.url()]);
        let mut hash = FNV_START;
        for text in texts {
            hash = fnv(hash, text.as_bytes());
            // Separates the texts: UTF-8 never contains this byte.
            hash = fnv(hash, &[0xff]);
        }
        hash
    }

    /// Records the outcome of a scrape.
    pub fn report(&self, at: Duration, took: Duration, result: &Result<(), ScrapeError>) {
        self.shared().state = State {
            health: if result.is_ok() { Health::Up } else { Health::Down },
            last_error: result.as_ref().err().cloned(),
            last_scrape: Some(at),
            last_duration: took,
        };
    }

    /// Records that the store refused samples, unless the scrape has an error of its own.
    pub fn report_refused(&self, error: ScrapeError) {
        self.shared().state.last_error.get_or_insert(error);
    }

    pub fn state(&self) -> State {
        self.shared().state.clone()
    }

    /// Sets the metadata that the API reads.
    pub(crate) fn set_families(&self, families: Arc<Mutex<Families>>) {
        self.shared().families = families;
    }

    /// Reads the metadata of the target's families.
    pub fn with_families<T>(&self, read: impl FnOnce(&Families) -> T) -> T {
        let families = self.shared().families.clone();
        let families = families.lock().unwrap_or_else(PoisonError::into_inner);
        read(&families)
    }

    /// Returns the metadata of the target's families, by ascending name.
    pub fn metadata(&self) -> Vec<FamilyMetadata> {
        self.with_families(Families::list)
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of 64 bits, as upstream hashes targets.
pub(crate) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// Returns a seed made of host name and external labels. Different seeds make servers scrape the
/// same targets at different times.
pub fn offset_seed(host_name: &str, external_labels: &LabelMap) -> u64 {
    let mut hash = fnv(FNV_START, host_name.as_bytes());
    for (name, value) in external_labels {
        hash = fnv(hash, format!("{name}={value:?},").as_bytes());
    }
    hash
}

/// Returns the URL of a target. Labels can make it invalid; creating the request reports that.
fn url_text(labels: &LabelMap, params: &BTreeMap<String, Vec<String>>) -> String {
    let of = |name: &str| labels.get(name).map_or("", String::as_str);
    let mut params = params.clone();
    for (label, value) in labels {
        let Some(name) = label.strip_prefix(names::PARAM_PREFIX) else { continue };
        let values = params.entry(name.to_owned()).or_default();
        // Upstream: the label replaces the first value of its parameter.
        match values.first_mut() {
            Some(first) => first.clone_from(value),
            None => values.push(value.clone()),
        }
    }
    // The zone of an IPv6 address follows a percent sign, which has to be escaped in a URL.
    let host = match of(names::ADDRESS) {
        "" if labels.contains_key(names::UNIX_SOCKET) => "localhost",
        address => &address.replace('%', "%25"),
    };
    let pairs =
        params.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}://{host}{}{mark}{query}", of(names::SCHEME), escaped_path(of(names::METRICS_PATH)))
}

/// Returns the labels before relabeling, without secrets in parameters, paths, addresses and URLs.
pub fn shown_discovered(labels: &Labels) -> BTreeMap<String, String> {
    let shown = |(name, value): (&str, &str)| {
        let is_secret = name.strip_prefix(names::PARAM_PREFIX).is_some_and(is_secret_name);
        let value = match name {
            _ if is_secret => HIDDEN.to_owned(),
            names::METRICS_PATH | names::ADDRESS | names::URL => shown_request(value),
            _ => value.to_owned(),
        };
        (name.to_owned(), value)
    };
    labels.iter().map(shown).collect()
}

/// Returns the address that is probed, with the module's scheme if it has none.
fn probed_url(module: &Module, labels: &LabelMap) -> String {
    let address = labels.get(names::ADDRESS).map_or("", String::as_str);
    match module.scheme() {
        Some(scheme) if !address.contains("://") => format!("{scheme}://{address}"),
        _ => address.to_owned(),
    }
}

/// Escapes a path for a URL.
fn escaped_path(path: &str) -> String {
    let Ok(mut url) = Url::parse("http://localhost/") else { return path.to_owned() };
    // A `%` in the label is a literal character, not the start of an escape.
    url.set_path(&path.replace('%', "%25"));
    url.path().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(pairs: &[(&str, &str)], job: &Job) -> Target {
        let labels: LabelMap =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Target::new(job, labels, Labels::default())
    }

    /// Follows the upstream tests TestTargetURL, TestTargetURL_Unix,
    /// TestTargetURL_UnixEmptyAddress.
    #[test]
    fn urls_are_made_of_labels() {
        let values = |list: &[&str]| list.iter().map(|value| (*value).to_owned()).collect();
        let params = BTreeMap::from([
            ("abc".to_owned(), values(&["foo", "bar", "baz"])),
            ("xyz".to_owned(), values(&["hoo"])),
        ]);
        let job = Job { params, ..Job::new("a") };
        let with_params = [
            ("__address__", "example.com:1234"),
            ("__scheme__", "https"),
            ("__metrics_path__", "/metricz"),
            ("__param_abc", "overwrite"),
            ("__param_cde", "h u?"),
        ];
        let query = "abc=overwrite&abc=bar&abc=baz&cde=h+u%3F&xyz=hoo";
        let expected = format!("https://example.com:1234/metricz?{query}");
        assert_eq!(target(&with_params, &job).url(), expected);
        let job = Job::new("a");
        let plain =
            [("__address__", "[::1]:80"), ("__scheme__", "http"), ("__metrics_path__", "a?b")];
        assert_eq!(target(&plain, &job).url(), "http://[::1]:80/a%3Fb");
        let zone = [("__address__", "[fe80::1%eth0]:80"), ("__scheme__", "http")];
        let zone = target(&[&zone[..], &[("__metrics_path__", "/a%2Fb c")]].concat(), &job);
        assert_eq!(zone.url(), "http://[fe80::1%25eth0]:80/a%252Fb%20c");
        let socket = [("__unix_socket__", "/tmp/sock"), ("__scheme__", "http")];
        assert_eq!(target(&socket, &job).url(), "http://localhost/");
        assert_eq!(target(&socket, &job).unix_socket(), Some("/tmp/sock"));
    }

    /// Follows the upstream test TestTargetLabels.
    #[test]
    fn reserved_labels_do_not_reach_series() {
        let labels = [("__address__", "a"), ("job", "j"), ("foo", "bar"), ("__param_x", "y")];
        let public = [("foo".to_owned(), "bar".to_owned()), ("job".to_owned(), "j".to_owned())];
        assert_eq!(target(&labels, &Job::new("a")).public_labels(), public);
    }

    /// Upstream: TestTargetIntervalAndTimeoutRelabel and those of histograms.
    #[test]
    fn labels_override_the_job() {
        let job = Job::new("a");
        let labels = [("__scrape_interval__", "2s"), ("__scrape_timeout__", "500ms")];
        let of = target(&labels, &job);
        assert_eq!(
            (of.interval(), of.timeout()),
            (Duration::from_secs(2), Duration::from_millis(500))
        );
        let of = target(&[(names::NATIVE_HISTOGRAMS, "T"), (names::ALWAYS_CLASSIC, "x")], &job);
        assert_eq!((of.interval(), of.timeout()), (job.interval, job.timeout));
        assert!(of.is_on(names::NATIVE_HISTOGRAMS, false));
        assert!(of.is_on(names::ALWAYS_CLASSIC, true) && !of.is_on(names::CONVERT_CLASSIC, false));
    }

    #[test]
    fn secrets_of_targets_are_not_shown() {
        let found = [
            ("__address__", "a:80"),
            ("__meta_url", "http://me:pass@lists/t?token=1&site=2"),
            ("__metrics_path__", "/x?key=1"),
            ("__param_api_key", "1"),
            ("__param_module", "http_2xx"),
        ];
        let found: LabelMap = found.map(|(name, value)| (name.into(), value.into())).into();
        let shown = shown_discovered(&Labels::of(&found));
        let shown: Vec<&str> = shown.values().map(String::as_str).collect();
        let expected =
            ["a:80", "http://lists/t?token=xxxxx&site=2", "/x?key=xxxxx", "xxxxx", "http_2xx"];
        assert_eq!(shown, expected);
        let params =
            [("module".to_owned(), vec!["m".to_owned()]), ("token".into(), vec!["t".into()])];
        let job = Job { params: params.into(), ..Job::new("a") };
        let target = target(&[("__address__", "a:80"), ("__scheme__", "http")], &job);
        assert_eq!(target.url(), "http://a:80/?module=m&token=t");
        assert_eq!(target.shown_url(), "http://a:80/?module=m&token=xxxxx");
    }

    #[test]
    fn reports_change_the_state() {
        let target = target(&[], &Job::new("a"));
        assert_eq!(target.state(), State::default());
        let (at, took) = (Duration::from_secs(9), Duration::from_millis(3));
        target.report(at, took, &Err(ScrapeError::NoMetricName));
        assert_eq!(target.state().health.name(), "down");
        target.report(at, took, &Ok(()));
        let last_scrape = Some(at);
        let up = State { health: Health::Up, last_error: None, last_scrape, last_duration: took };
        assert_eq!(target.state(), up);
    }
}
