//! A target: its labels, its URL, when it is scraped, and how that went.
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

/// Targets that discovery found together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TargetGroup {
    /// What found them, such as a file.
    pub source: String,
    /// The labels of each.
    pub targets: Vec<Labels>,
    /// Labels of all.
    pub labels: Labels,
}

/// How the last scrape went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// There was none yet.
    #[default]
    Unknown,
    /// It was good.
    Up,
    /// It failed.
    Down,
}

impl Health {
    /// The word in answers of the API.
    pub fn name(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Up => "up",
            Health::Down => "down",
        }
    }
}

/// What the API shows of a target's scrapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// How the last scrape went.
    pub health: Health,
    /// Why the last scrape failed, or is not stored as a whole.
    pub last_error: Option<ScrapeError>,
    /// When it was, since the epoch.
    pub last_scrape: Option<Duration>,
    /// How long it took.
    pub last_duration: Duration,
}

/// A target.
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
    /// A target with these labels, which [`target_labels`] gave for those before relabeling.
    pub fn new(job: &Job, labels: LabelMap, discovered: Labels) -> Target {
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

    /// All its labels, those that say how it is scraped among them.
    pub fn labels(&self) -> &LabelMap {
        &self.labels
    }

    /// The labels that its series get.
    pub fn public_labels(&self) -> Vec<(String, String)> {
        let public = self.labels.iter().filter(|(name, _)| !name.starts_with(RESERVED_PREFIX));
        public.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Its labels before relabeling.
    pub fn discovered_labels(&self) -> Labels {
        self.shared().discovered.clone()
    }

    /// Notes what discovery says now of a target that is the same.
    pub fn set_discovered_labels(&self, discovered: Labels) {
        self.shared().discovered = discovered;
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its URL without what may be secret.
    pub fn shown_url(&self) -> String {
        shown_request(&self.url)
    }

    /// The Unix socket that is connected to instead of the address.
    pub fn unix_socket(&self) -> Option<&str> {
        self.labels.get(names::UNIX_SOCKET).map(String::as_str)
    }

    /// Time between scrapes.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Longest time of a scrape.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A setting of the job that a label of the target overrides.
    pub fn is_on(&self, name: &str, default: bool) -> bool {
        self.labels.get(name).and_then(|value| labels::truth(value)).unwrap_or(default)
    }

    /// What targets that are one have in common: labels and URL.
    pub fn identity(&self) -> (&LabelMap, &str) {
        (&self.labels, &self.url)
    }

    /// A number that spreads targets over the interval.
    pub fn hash(&self) -> u64 {
        let labels = self.labels.iter().flat_map(|(name, value)| [name, value]);
        let texts = labels.map(String::as_str).chain([self.url()]);
        let mut hash = FNV_START;
        for text in texts {
            hash = fnv(hash, text.as_bytes());
            // Ends the text, and is in none.
            hash = fnv(hash, &[0xff]);
        }
        hash
    }

    /// Notes how a scrape went.
    pub fn report(&self, at: Duration, took: Duration, result: &Result<(), ScrapeError>) {
        self.shared().state = State {
            health: if result.is_ok() { Health::Up } else { Health::Down },
            last_error: result.as_ref().err().cloned(),
            last_scrape: Some(at),
            last_duration: took,
        };
    }

    /// Notes what the store refused of a scrape. Its own error says more.
    pub fn report_refused(&self, error: ScrapeError) {
        self.shared().state.last_error.get_or_insert(error);
    }

    /// How its scrapes go.
    pub fn state(&self) -> State {
        self.shared().state.clone()
    }

    /// Where its families' metadata is.
    pub(crate) fn set_families(&self, families: Arc<Mutex<Families>>) {
        self.shared().families = families;
    }

    /// Reads the metadata of its families.
    pub fn with_families<T>(&self, read: impl FnOnce(&Families) -> T) -> T {
        let families = self.shared().families.clone();
        let families = families.lock().unwrap_or_else(PoisonError::into_inner);
        read(&families)
    }

    /// The metadata of its families, by ascending name.
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

/// What separates the schedules of servers that scrape the same targets: host name and external
/// labels.
pub fn offset_seed(host_name: &str, external_labels: &LabelMap) -> u64 {
    let mut hash = fnv(FNV_START, host_name.as_bytes());
    for (name, value) in external_labels {
        hash = fnv(hash, format!("{name}={value:?},").as_bytes());
    }
    hash
}

/// The URL of a target. Not all labels make a valid one; the request tells.
fn url_text(labels: &LabelMap, params: &BTreeMap<String, Vec<String>>) -> String {
    let of = |name: &str| labels.get(name).map_or("", String::as_str);
    let mut params = params.clone();
    for (label, value) in labels {
        let Some(name) = label.strip_prefix(names::PARAM_PREFIX) else { continue };
        let values = params.entry(name.to_owned()).or_default();
        match values.first_mut() {
            Some(first) => first.clone_from(value),
            None => values.push(value.clone()),
        }
    }
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

/// Labels before relabeling, without what may be secret: in parameters, paths and URLs of lists.
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

/// What is probed, with the scheme that it has if it names none.
fn probed_url(module: &Module, labels: &LabelMap) -> String {
    let address = labels.get(names::ADDRESS).map_or("", String::as_str);
    match module.scheme() {
        Some(scheme) if !address.contains("://") => format!("{scheme}://{address}"),
        _ => address.to_owned(),
    }
}

/// A path as URLs have it.
fn escaped_path(path: &str) -> String {
    let Ok(mut url) = Url::parse("http://localhost/") else { return path.to_owned() };
    // What looks like an escape is none: the path is not one of a URL yet.
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

    /// Upstream: TestTargetURL, TestTargetURL_Unix, TestTargetURL_UnixEmptyAddress.
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

    /// Upstream: TestTargetLabels.
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
