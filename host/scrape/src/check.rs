//! Checks what a configuration refers to: whether files exist, whether target lists can be read,
//! and whether the listed targets can be scraped. The checks are exactly those of `promtool check
//! config`.
//!
//! Source: `checkConfig` in `cmd/promtool/main.go` of prometheus/prometheus 3.15.

use crate::config::{Depth, DiscoveryConfig, Pattern, ScrapeConfig, matching};
use crate::discovery::listed;
use crate::pool::{PoolError, rules};
use crate::target::{TargetError, TargetGroup, discovered_labels, target_labels};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidepool_client::config::{Credentials, TlsConfig};
use tidepool_relabel::Rule;
use tidepool_settings::Secret;

/// Faults of a job that its YAML does not show.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A file does not exist or is inaccessible.
    #[error("error checking {what} {}: {source}", path.display())]
    File {
        /// Purpose of the file, for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A certificate is in a file, but its key is not, or the reverse.
    #[error("client {what} file {} specified without client {other} file", path.display())]
    Alone {
        /// Part that is in a file: `cert` or `key`.
        what: &'static str,
        /// Part that is not in a file.
        other: &'static str,
        path: PathBuf,
    },
    /// The directory of a pattern cannot be read.
    #[error("checking SD file {pattern}: {source}")]
    Pattern {
        pattern: Pattern,
        /// Error of reading the directory.
        source: io::Error,
    },
    /// A list of targets cannot be read.
    #[error("checking SD file {}: {what}", path.display())]
    List {
        path: PathBuf,
        /// Fault of the list, with its place.
        what: String,
    },
    /// A target that cannot be scraped.
    #[error("scrape job {job}: instance {index} in group {group}: {source}")]
    Target {
        job: String,
        /// Index within the group, from 0.
        index: usize,
        group: String,
        source: TargetError,
    },
    /// A relabel rule does not compile.
    #[error(transparent)]
    Rule(#[from] PoolError),
}

/// A pattern without matching files. The files may be created later, so this is no error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("file {:?} for file_sd in scrape job {job:?} does not exist", pattern.to_string())]
pub struct MissingList {
    pub pattern: Pattern,
    pub job: String,
}

/// Checks all jobs up to the first fault. Patterns without files are added to `missing`.
pub fn check(
    jobs: &[ScrapeConfig],
    depth: Depth,
    missing: &mut Vec<MissingList>,
) -> Result<(), CheckError> {
    jobs.iter().try_for_each(|job| check_job(job, depth, missing))
}

/// Returns the first job whose interval is at least the lookback of queries. Its samples become
/// stale before the next scrape.
pub fn too_long_interval(jobs: &[ScrapeConfig], lookback: Duration) -> Option<&ScrapeConfig> {
    jobs.iter().find(|job| job.job.interval >= lookback)
}

fn check_job(
    config: &ScrapeConfig,
    depth: Depth,
    missing: &mut Vec<MissingList>,
) -> Result<(), CheckError> {
    let job = &config.job;
    // promtool checks this file, but not password files and CA files.
    if let (Depth::Files, Credentials::Authorization { credentials: Secret::File(path), .. }) =
        (depth, &job.client.credentials)
    {
        exists("authorization credentials or bearer token file", path)?;
    }
    check_tls(&job.client.tls, depth)?;
    let mut relabel = rules(&job.name, &job.relabel)?;
    for discovery in &config.discovery {
        match discovery {
            DiscoveryConfig::Static(groups) => check_targets(config, &mut relabel, groups)?,
            DiscoveryConfig::File(files) if depth == Depth::Files => {
                for pattern in &files.files {
                    let wrong = |source| CheckError::Pattern { pattern: pattern.clone(), source };
                    let paths = matching(pattern).map_err(wrong)?;
                    if paths.is_empty() {
                        missing
                            .push(MissingList { pattern: pattern.clone(), job: job.name.clone() });
                    }
                    for path in paths {
                        let groups = listed(&path);
                        let groups = groups.map_err(|what| CheckError::List { path, what })?;
                        check_targets(config, &mut relabel, groups.groups())?;
                    }
                }
            }
            // Like promtool, the check contacts neither servers nor the DNS.
            DiscoveryConfig::File(_) | DiscoveryConfig::Http(_) | DiscoveryConfig::Dns(_) => {}
        }
    }
    Ok(())
}

fn check_tls(tls: &TlsConfig, depth: Depth) -> Result<(), CheckError> {
    let Some((certificate, key)) = &tls.client else { return Ok(()) };
    let alone = |what, other, path: &Path| CheckError::Alone { what, other, path: path.to_owned() };
    match (certificate, key) {
        (Secret::File(certificate), Secret::File(key)) if depth == Depth::Files => {
            exists("client cert file", certificate)?;
            exists("client key file", key)
        }
        (Secret::File(certificate), Secret::Text(_)) => Err(alone("cert", "key", certificate)),
        (Secret::Text(_), Secret::File(key)) => Err(alone("key", "cert", key)),
        (Secret::File(_), Secret::File(_)) | (Secret::Text(_), Secret::Text(_)) => Ok(()),
    }
}

fn exists(what: &'static str, path: &Path) -> Result<(), CheckError> {
    let wrong = |source| CheckError::File { what, path: path.to_owned(), source };
    std::fs::metadata(path).map(drop).map_err(wrong)
}

fn check_targets(
    config: &ScrapeConfig,
    relabel: &mut [Rule],
    groups: &[TargetGroup],
) -> Result<(), CheckError> {
    for group in groups {
        for (index, labels) in group.targets.iter().enumerate() {
            let discovered = discovered_labels(&config.job, labels, &group.labels);
            target_labels(&config.job, discovered, relabel).map_err(|source| {
                CheckError::Target {
                    job: config.job.name.clone(),
                    index,
                    group: group.source.clone(),
                    source,
                }
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ScrapeSettings, Sections};
    use tidepool_settings::yaml;

    /// Returns the verdict on a job, and the missing lists.
    fn checked(directory: &Path, job: &str, depth: Depth) -> (Result<(), String>, Vec<String>) {
        let node = yaml::load(&format!("- {{job_name: j, {job}}}")).expect("YAML");
        let sections = Sections { jobs: Some(&node), ..Sections::default() };
        let settings = ScrapeSettings::read(sections, directory).expect("a job");
        let mut missing = Vec::new();
        let verdict = check(&settings.jobs, depth, &mut missing);
        let missing = missing.iter().map(ToString::to_string).collect();
        (verdict.map_err(|error| error.to_string()), missing)
    }

    /// Each with promtool's verdict without `--syntax-only`, and with it.
    #[test]
    fn verdicts_are_promtools() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        for (name, text) in [
            ("there", "x"),
            ("good.json", r#"[{"targets": ["a:1"], "labels": {"x": "y"}}]"#),
            ("bad.json", r#"[{"targets": ["a:1"], "x": 1}]"#),
            ("path.yml", "- targets: ['a/b']\n"),
            ("null.yml", "- \n"),
        ] {
            std::fs::write(folder.path().join(name), text)?;
        }
        let at = |name: &str| folder.path().join(name).display().to_string();
        let none = "No such file or directory (os error 2)";
        let lists = |name: &str| format!("file_sd_configs: [{{files: ['{name}']}}]");
        let token = "authorization credentials or bearer token file";
        for (job, files, syntax) in [
            ("bearer_token_file: there".to_owned(), None, None),
            (
                "bearer_token_file: none".to_owned(),
                Some(format!("error checking {token} {}: {none}", at("none"))),
                None,
            ),
            (
                "authorization: {credentials_file: none}".to_owned(),
                Some(format!("error checking {token} {}: {none}", at("none"))),
                None,
            ),
            // promtool looks at neither.
            ("basic_auth: {username: a, password_file: none}".to_owned(), None, None),
            ("tls_config: {ca_file: none}".to_owned(), None, None),
            (
                "tls_config: {cert_file: none, key_file: there}".to_owned(),
                Some(format!("error checking client cert file {}: {none}", at("none"))),
                None,
            ),
            (
                "tls_config: {cert_file: there, key_file: none}".to_owned(),
                Some(format!("error checking client key file {}: {none}", at("none"))),
                None,
            ),
            (
                "tls_config: {cert_file: there, key: x}".to_owned(),
                Some(format!("client cert file {} specified without client key file", at("there"))),
                Some(format!("client cert file {} specified without client key file", at("there"))),
            ),
            ("static_configs: [{targets: ['a:1', b]}]".to_owned(), None, None),
            (
                "static_configs: [{targets: [a, b], labels: {__scrape_interval__: 1s}}]".to_owned(),
                Some("scrape job j: instance 0 in group 0: scrape timeout cannot be greater than scrape interval (\"10s\" > \"1s\")".to_owned()),
                Some("scrape job j: instance 0 in group 0: scrape timeout cannot be greater than scrape interval (\"10s\" > \"1s\")".to_owned()),
            ),
            (lists("good.json"), None, None),
            (lists("g*.json"), None, None),
            (
                lists("path.yml"),
                Some(format!(
                    "scrape job j: instance 0 in group {}:0: \"a/b\" is not a valid hostname",
                    at("path.yml")
                )),
                None,
            ),
            (
                lists("null.yml"),
                Some(format!("checking SD file {}: nil target group item found", at("null.yml"))),
                None,
            ),
        ] {
            for (depth, expected) in [(Depth::Files, files), (Depth::Syntax, syntax)] {
                let (verdict, missing) = checked(folder.path(), &job, depth);
                assert_eq!((verdict.err(), missing), (expected, vec![]), "{job} {depth:?}");
            }
        }
        let (verdict, _) = checked(folder.path(), &lists("bad.json"), Depth::Files);
        let start = format!("checking SD file {}: unknown field `x`", at("bad.json"));
        assert!(verdict.as_ref().is_err_and(|error| error.starts_with(&start)), "{verdict:?}");
        for name in ["none.json", "n*e.json"] {
            let expected = format!(
                "file {:?} for file_sd in scrape job \"j\" does not exist",
                folder.path().join(name)
            );
            let found = checked(folder.path(), &lists(name), Depth::Files);
            assert_eq!(found, (Ok(()), vec![expected]));
            assert_eq!(checked(folder.path(), &lists(name), Depth::Syntax), (Ok(()), vec![]));
        }
        Ok(())
    }

    #[test]
    fn an_interval_as_long_as_queries_look_back_is_too_long() {
        let job = |seconds| {
            let job = crate::job::Job {
                interval: Duration::from_secs(seconds),
                ..crate::job::Job::new(format!("every {seconds}"))
            };
            ScrapeConfig::new(job, Vec::new())
        };
        let jobs = [job(60), job(300), job(600)];
        let found = |seconds| {
            let found = too_long_interval(&jobs, Duration::from_secs(seconds));
            found.map(|config| config.job.name.as_str())
        };
        assert_eq!((found(60), found(61)), (Some("every 60"), Some("every 300")));
        assert_eq!(found(601), None);
    }
}
