//! Alertmanagers of the targets that discovery lists.
//!
//! Source: `notifier/alertmanager.go` of prometheus/prometheus.

use crate::config::alerting::AlertmanagerConfig;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use tidepool_client::Ask;
use tidepool_relabel::{Rule, RuleError, relabel};
use tidepool_scrape::discovery::Groups;
use tidepool_scrape::labels::Labels;
use tidepool_scrape::target::{LabelMap, names};
use tidepool_settings::RelabelConfig;
use tidepool_settings::redact::shown_request;
use url::Url;

/// Label with the path that alerts are posted to.
const PATH: &str = "__alerts_path__";

const ENDPOINT: &str = "api/v2/alerts";

/// Maximum number of Alertmanagers of one item of the configuration: third parties may write the
/// lists, and each Alertmanager has a queue.
const ALERTMANAGERS_MAX: usize = 100;

/// Makes Alertmanagers of targets.
pub(super) struct Finder {
    scheme: String,
    path: String,
    rules: Mutex<Vec<Rule>>,
}

/// URLs that alerts are posted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Each once, in the order of the lists.
    pub active: Vec<String>,
    /// Of targets that a rule drops.
    pub dropped: Vec<String>,
}

impl Finder {
    pub fn new(config: &AlertmanagerConfig) -> Result<Finder, RuleError> {
        let rules = config.relabel_configs.iter().map(RelabelConfig::rule);
        Ok(Finder {
            scheme: config.scheme.clone(),
            path: post_path(&config.path_prefix),
            rules: Mutex::new(rules.collect::<Result<_, _>>()?),
        })
    }

    /// Returns the Alertmanagers of all lists. A target that is none is logged, and costs no other.
    pub fn find(&self, lists: &Groups) -> Found {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut seen, mut surplus) = (Found::default(), BTreeSet::new(), 0);
        for group in lists.iter().flat_map(|list| list.groups()) {
            for target in &group.targets {
                let before = self.labels(target, &group.labels);
                let mut labels = before.clone();
                let (urls, labels) = match relabel(&mut rules, &mut labels) {
                    true => (&mut found.active, labels),
                    false => (&mut found.dropped, before),
                };
                match url_text(&labels) {
                    Err(what) => tracing::error!(
                        source = %group.source, %what,
                        "a discovered target is no Alertmanager; alerts are not sent there"
                    ),
                    Ok(_) if urls.len() >= ALERTMANAGERS_MAX => surplus += 1,
                    Ok(url) if seen.insert(url.clone()) => urls.push(url),
                    Ok(_) => {}
                }
            }
        }
        if surplus > 0 {
            tracing::warn!(
                limit = ALERTMANAGERS_MAX,
                surplus,
                "discovery finds too many Alertmanagers; the surplus gets no alerts"
            );
        }
        found
    }

    /// Returns the labels before relabeling. As upstream, the configuration overrides the target's
    /// scheme and path, and the labels of its group override both.
    fn labels(&self, target: &Labels, group: &Labels) -> LabelMap {
        let mut labels = target.to_map();
        labels.insert(names::SCHEME.to_owned(), self.scheme.clone());
        labels.insert(PATH.to_owned(), self.path.clone());
        for (name, value) in group.iter().filter(|(name, _)| target.get(name).is_empty()) {
            labels.insert(name.to_owned(), value.to_owned());
        }
        labels
    }
}

/// Joins the parts of the path, each slash once, and resolves dots.
fn post_path(prefix: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in prefix.split('/').chain([ENDPOINT]) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns the URL of labels after relabeling.
fn url_text(labels: &LabelMap) -> Result<String, String> {
    let of = |name: &str| labels.get(name).map_or("", String::as_str);
    let (scheme, address) = (of(names::SCHEME), of(names::ADDRESS));
    if !matches!(scheme, "http" | "https") {
        return Err(format!("its scheme {scheme:?} is neither http nor https"));
    }
    // Also keeps credentials out of URLs, which are labels of metrics.
    if address.is_empty() || address.contains(['/', '?', '#', '@']) {
        return Err(format!("{:?} is not a valid hostname", shown_request(address)));
    }
    let wrong = |error| format!("{address:?} is not a valid hostname: {error}");
    // Parsed with an empty path first, so that the path cannot become a query.
    let mut any = Url::parse("http://host").map_err(wrong)?;
    any.set_path(&of(PATH).replace('%', "%25"));
    // The zone of an IPv6 address follows a percent sign, which has to be escaped in a URL.
    let host = address.replace('%', "%25");
    let text = format!("{scheme}://{host}{}", any.path());
    Ask::get_text(&text).map(|_| text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::alerting::AlertingSection;
    use std::sync::Arc;
    use tidepool_scrape::discovery::List;
    use tidepool_scrape::target::TargetGroup;
    use tidepool_settings::yaml;

    fn finder(item: &str) -> Finder {
        let node = yaml::load(&format!("alertmanagers: [{{{item}}}]")).expect("YAML");
        let section = AlertingSection::read(&node).expect("a section");
        Finder::new(&section.alertmanagers[0]).expect("rules")
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn lists(targets: &[&[(&str, &str)]], group: &[(&str, &str)]) -> Groups {
        let targets = targets.iter().map(|target| labels(target)).collect();
        let group = TargetGroup { source: "0".into(), targets, labels: labels(group) };
        vec![Arc::new(List::unbounded(vec![group]))]
    }

    /// Upstream: TestPostPath.
    #[test]
    fn paths_are_joined() {
        for (prefix, path) in [
            ("", "/api/v2/alerts"),
            ("/", "/api/v2/alerts"),
            ("/prefix", "/prefix/api/v2/alerts"),
            ("/prefix//", "/prefix/api/v2/alerts"),
            ("prefix//", "/prefix/api/v2/alerts"),
            ("/a/../b/./c", "/b/c/api/v2/alerts"),
            ("../..", "/api/v2/alerts"),
        ] {
            assert_eq!(post_path(prefix), path, "{prefix}");
        }
    }

    #[test]
    fn urls_are_made_of_labels() {
        let found = finder("scheme: https, path_prefix: /a b").find(&lists(
            &[
                &[("__address__", "am:9093"), ("__scheme__", "http")],
                &[("__address__", "[fe80::1%eth0]:9093")],
                &[("__address__", "am:9093")],
                &[("__address__", "b/c")],
                &[("__address__", "me:secret@d")],
                &[("__address__", "not a host")],
                &[("job", "am")],
            ],
            &[],
        ));
        assert_eq!(
            found.active,
            [
                "https://am:9093/a%20b/api/v2/alerts",
                "https://[fe80::1%25eth0]:9093/a%20b/api/v2/alerts"
            ]
        );
        assert!(found.dropped.is_empty());
    }

    /// Upstream: `AlertmanagerFromGroup`, TestDroppedAlertmanagers.
    #[test]
    fn rules_choose_and_change_alertmanagers() {
        let finder = finder(
            "relabel_configs: [{action: keep, source_labels: [env], regex: prod}, \
             {source_labels: [prefix], regex: (.+), target_label: __alerts_path__}]",
        );
        let targets: [&[_]; 3] = [
            &[("__address__", "a:1"), ("env", "prod")],
            &[("__address__", "b:2"), ("env", "test")],
            &[("__address__", "c:3"), ("env", "prod"), ("prefix", "/x?y#z")],
        ];
        let found = finder.find(&lists(&targets, &[("__scheme__", "https"), ("env", "test")]));
        assert_eq!(
            found,
            Found {
                active: vec!["https://a:1/api/v2/alerts".into(), "https://c:3/x%3Fy%23z".into()],
                dropped: vec!["https://b:2/api/v2/alerts".into()],
            }
        );
        let ftp = finder.find(&lists(&targets[..1], &[("__scheme__", "ftp")]));
        assert_eq!(ftp, Found::default());
    }

    #[test]
    fn the_number_of_alertmanagers_is_bounded() {
        let names: Vec<String> = (0..300).map(|number| format!("am{number}:9093")).collect();
        let targets: Vec<[(&str, &str); 1]> =
            names.iter().map(|name| [("__address__", name.as_str())]).collect();
        let targets: Vec<&[(&str, &str)]> = targets.iter().map(|one| &one[..]).collect();
        assert_eq!(finder("").find(&lists(&targets, &[])).active.len(), ALERTMANAGERS_MAX);
    }
}
