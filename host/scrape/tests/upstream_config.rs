//! Upstream's own configuration files have upstream's verdicts (`config/config_test.go`). The files
//! are read where Go keeps the module that the peers are built of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tidepool_scrape::config::{ScrapeSettings, Sections};
use tidepool_settings::yaml::{self, Data};

const MODULE: &str = "github.com/prometheus/prometheus";

/// Set where tests against other programs must not be skipped.
const REQUIRED: &str = "TIDEPOOL_REQUIRE_PEERS";

/// The sections that are read here.
const SECTIONS: [&str; 3] = ["global", "scrape_configs", "scrape_config_files"];

/// Discovery that is not supported; errors in its sections are not looked for.
const UNSUPPORTED: &str = "_sd_configs: this discovery is not supported";

/// Faults in files that upstream refuses.
const REFUSED: [(&str, &str); 46] = [
    ("bearertoken.bad.yml", "bearer_token and bearer_token_file: only one of them"),
    ("bearertoken_basicauth.bad.yml", "only one of them is allowed"),
    ("dropequal.bad.yml", "needs a target_label"),
    ("dropequal1.bad.yml", "takes no "),
    ("empty_metric_relabel_config.bad.yml", "metric_relabel_configs[0]: a relabel rule"),
    ("empty_scrape_config.bad.yml", "empty or null scrape config section"),
    ("empty_scrape_config_action.bad.yml", "there is no action \"\""),
    ("empty_static_config.bad.yml", "empty or null section in static_configs"),
    ("empty_target_relabel_config.bad.yml", "relabel_configs[0]: a relabel rule"),
    ("http_token_file.bad.yml", "bearer_token and bearer_token_file: only one of them"),
    ("http_url_bad_scheme.bad.yml", "URL scheme must be 'http' or 'https'"),
    ("http_url_no_host.bad.yml", "host is missing in URL"),
    ("http_url_no_scheme.bad.yml", "URL scheme must be 'http' or 'https'"),
    ("jobname.bad.yml", "job_name is empty"),
    ("jobname_dup.bad.yml", "found multiple scrape configs with job name \"prometheus\""),
    ("keepequal.bad.yml", "needs a target_label"),
    ("keepequal1.bad.yml", "takes no "),
    ("labeldrop.bad.yml", "takes no source_labels"),
    ("labeldrop2.bad.yml", "takes no modulus"),
    ("labeldrop3.bad.yml", "takes no separator"),
    ("labeldrop4.bad.yml", "takes no replacement"),
    ("labeldrop5.bad.yml", "takes no target_label"),
    ("labelkeep.bad.yml", "takes no source_labels"),
    ("labelkeep2.bad.yml", "takes no modulus"),
    ("labelkeep3.bad.yml", "takes no separator"),
    ("labelkeep4.bad.yml", "takes no replacement"),
    ("labelkeep5.bad.yml", "takes no target_label"),
    ("lowercase.bad.yml", "needs a target_label"),
    ("lowercase3.bad.yml", "takes no replacement"),
    ("modulus_missing.bad.yml", "needs a target_label"),
    ("regex.bad.yml", "needs a target_label"),
    ("scrape_body_size_limit.bad.yml", "has no unit"),
    ("scrape_config_files_double_import.bad.yml", "found multiple scrape configs with job name"),
    ("scrape_config_files_duplicate.bad.yml", "first found in main config file"),
    ("scrape_config_files_global.bad.yml", "scrape timeout greater than scrape interval"),
    ("scrape_config_files_glob.bad.yml", "invalid scrape config file path \"scrape_configs/*/*\""),
    ("scrape_config_files_fallback_scrape_protocol1.bad.yml", "unknown scrape protocol"),
    ("scrape_config_files_scrape_protocols.bad.yml", "unknown scrape protocol prometheusproto"),
    ("scrape_config_files_scrape_protocols2.bad.yml", "duplicated protocol in scrape_protocols"),
    ("scrape_config_utf8_conflicting.bad.yml", "utf8 metric names requested but validation"),
    ("scrape_interval.bad.yml", "scrape timeout greater than scrape interval"),
    ("target_label_hashmod_missing.bad.yml", "needs a target_label"),
    ("target_label_missing.bad.yml", "needs a target_label"),
    ("unknown_global_attr.bad.yml", "there is no such key"),
    ("uppercase3.bad.yml", "takes no replacement"),
    ("url_in_targetgroup.bad.yml", "\"http://bad\" is not a valid hostname"),
];

/// Returns the directory; `None` if it is absent and not required.
fn testdata() -> Option<PathBuf> {
    match find() {
        Ok(directory) => Some(directory),
        Err(reason) => {
            let is_required = std::env::var_os(REQUIRED).is_some();
            assert!(!is_required, "upstream's configuration files are missing: {reason}");
            eprintln!("SKIPPED: upstream's configuration files are missing: {reason}");
            None
        }
    }
}

fn find() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/go.mod");
    let text = std::fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
    let mut words = text.lines().filter_map(|line| line.trim().split_once(' '));
    let (_, version) = words.find(|(module, _)| *module == MODULE).ok_or("no version in go.mod")?;
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output();
    let output = output.map_err(|error| format!("go: {error}"))?;
    let cache = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version.split_whitespace().next().unwrap_or_default();
    let directory = PathBuf::from(format!("{cache}/{MODULE}@{version}/config/testdata"));
    match directory.is_dir() {
        true => Ok(directory),
        false => Err(format!("{} is no folder", directory.display())),
    }
}

/// Reads a file, and returns whether it has no other section.
fn read(path: &Path) -> (Result<ScrapeSettings, String>, bool) {
    let bytes = std::fs::read(path).expect("a file");
    let Ok(text) = String::from_utf8(bytes) else { return (Err("it is not text".into()), true) };
    let node = match yaml::load(&text) {
        Ok(node) => node,
        Err(error) => return (Err(error.to_string()), true),
    };
    let Data::Map(entries) = &node.data else { return (Err("no sections".into()), false) };
    let section = |name: &str| {
        entries.iter().find(|entry| entry.key == name).map(|entry| entry.value.as_ref())
    };
    let [global, jobs, files] = SECTIONS.map(section);
    let is_whole = entries.iter().all(|entry| SECTIONS.contains(&entry.key.as_str()));
    let directory = path.parent().expect("a folder");
    let read =
        ScrapeSettings::read(Sections { global, jobs, files, ..Sections::default() }, directory);
    (read.map_err(|error| error.to_string()), is_whole)
}

#[test]
fn verdicts_are_upstreams() {
    let Some(directory) = testdata() else { return };
    let refused = BTreeMap::from(REFUSED);
    let mut wrong = Vec::new();
    let mut found = 0;
    for entry in std::fs::read_dir(&directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.ends_with(".yml") {
            continue;
        }
        let (read, is_whole) = read(&path);
        let error = read.map(drop).err();
        let is_right = match (&error, refused.get(name)) {
            (error, Some(said)) => {
                found += 1;
                error.as_ref().is_some_and(|error| error.contains(said))
            }
            (Some(error), None) if error.contains(UNSUPPORTED) => true,
            // What else is wrong lies in other sections.
            (_, None) if !is_whole => true,
            (error, None) => error.is_some() == name.contains(".bad."),
        };
        if !is_right {
            wrong.push(format!("{name}: {error:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(found, REFUSED.len(), "files are gone");
}

/// Upstream: `TestGetScrapeConfigs`, `TestScrapeConfigNameValidationSettings`,
/// `TestScrapeConfigNameEscapingSettings` and their neighbours.
#[test]
fn values_are_upstreams() {
    let Some(directory) = testdata() else { return };
    let jobs = |name: &str| {
        let (read, _) = read(&directory.join(name));
        read.unwrap_or_else(|error| panic!("{name}: {error}")).jobs
    };
    let job = |name: &str| jobs(name).swap_remove(0).job;
    for (name, expected) in [
        ("scrape_config_files.good.yml", &[("prometheus", 60, 10)][..]),
        ("scrape_config_files_only.good.yml", &[("prometheus", 60, 10)]),
        (
            "scrape_config_files_combined.good.yml",
            &[("node", 60, 10), ("prometheus", 60, 10), ("alertmanager", 60, 10)],
        ),
        ("scrape_interval_larger.good.yml", &[("prometheus", 5, 5)]),
    ] {
        let found = jobs(name);
        let found: Vec<(&str, u64, u64)> = found
            .iter()
            .map(|ours| {
                let job = &ours.job;
                (job.name.as_str(), job.interval.as_secs(), job.timeout.as_secs())
            })
            .collect();
        assert_eq!(found, expected, "{name}");
    }
    for (name, validation, escaping) in [
        ("scrape_config_default_validation_mode.yml", "utf8", "allow-utf-8"),
        ("scrape_config_global_validation_mode.yml", "legacy", "dots"),
        ("scrape_config_local_validation_mode.yml", "legacy", "values"),
        ("scrape_config_local_global_validation_mode.yml", "utf8", "dots"),
        ("scrape_config_local_infer_escaping.yml", "legacy", "underscores"),
    ] {
        let job = job(name);
        let found = (job.validation.as_str(), job.escaping.as_str());
        assert_eq!(found, (validation, escaping), "{name}");
    }
    for (name, native, protocol) in [
        ("global_enable_scrape_native_hist.good.yml", true, "PrometheusProto"),
        (
            "global_enable_scrape_native_hist_and_scrape_protocols.good.yml",
            true,
            "PrometheusText0.0.4",
        ),
        ("local_enable_scrape_native_hist.good.yml", true, "PrometheusProto"),
        (
            "local_enable_scrape_native_hist_and_scrape_protocols.good.yml",
            true,
            "PrometheusText0.0.4",
        ),
        ("local_disable_scrape_native_hist.good.yml", false, "OpenMetricsText1.0.0"),
        (
            "global_scrape_protocols_and_local_disable_scrape_native_hist.good.yml",
            false,
            "PrometheusText0.0.4",
        ),
    ] {
        let job = job(name);
        let first = job.protocols.first().map(|protocol| protocol.name());
        assert_eq!((job.native_histograms, first), (native, Some(protocol)), "{name}");
    }
    assert!(job("global_convert_classic_hist_to_nhcb.good.yml").convert_classic_histograms);
    assert!(!job("local_disable_convert_classic_hist_to_nhcb.good.yml").convert_classic_histograms);
    assert!(job("local_convert_classic_hist_to_nhcb.good.yml").convert_classic_histograms);
    assert!(job("global_enable_always_scrape_classic_hist.good.yml").always_classic_histograms);
    assert!(!job("local_disable_always_scrape_classic_hist.good.yml").always_classic_histograms);
    assert!(job("global_enable_extra_scrape_metrics.good.yml").extra_metrics);
    assert!(!job("local_disable_extra_scrape_metrics.good.yml").extra_metrics);
    assert!(!job("scrape_config_disable_compression.good.yml").compression);
    let (global, _) = read(&directory.join("global_timeout.good.yml"));
    let timeout = global.map(|settings| settings.global.scrape_timeout);
    assert_eq!(timeout, Ok(Duration::from_secs(3600)));
}
