//! Sections with values that are accepted and refused. Upstream's own files are tested in
//! `tests/upstream_config.rs`.

use super::*;
use crate::labels::Labels;
use crate::protocol::Protocol;
use crate::target::LabelMap;
use std::time::Duration;
use tidepool_settings::yaml::{Data, Node};

fn settings(text: &str, directory: &Path) -> Result<ScrapeSettings, String> {
    let node = yaml::load(text).map_err(|error| error.to_string())?;
    let Data::Map(entries) = &node.data else { return Err("no sections".into()) };
    let section = |name: &str| -> Option<&Node> {
        entries.iter().find(|entry| entry.key == name).map(|entry| entry.value.as_ref())
    };
    let (global, jobs) = (section("global"), section("scrape_configs"));
    let files = section("scrape_config_files");
    let (probe_modules, probes) = (section("probe_modules"), section("probe_configs"));
    let sections = Sections { global, jobs, files, probe_modules, probes, ..Sections::default() };
    ScrapeSettings::read(sections, directory).map_err(|error| error.to_string())
}

#[test]
fn all_of_a_job_is_read() {
    let text = "
global:
  scrape_interval: 15s
  external_labels: {site: edge}
  sample_limit: 1500
  label_limit: 30
  evaluation_interval: 30s
  query_log_file: query.log
  scrape_failure_log_file: fail.log
scrape_configs:
  - job_name: all
    honor_labels: true
    honor_timestamps: false
    track_timestamps_staleness: true
    scrape_interval: 50s
    scrape_timeout: 5s
    scrape_protocols: [PrometheusText0.0.4, PrometheusProto]
    fallback_scrape_protocol: OpenMetricsText0.0.1
    metrics_path: /my_path
    scheme: https
    params: {module: [a, b], x: [1]}
    body_size_limit: 10MB
    sample_limit: 1000
    target_limit: 35
    label_limit: 35
    label_name_length_limit: 210
    label_value_length_limit: 211
    keep_dropped_targets: 4
    native_histogram_bucket_limit: 160
    native_histogram_min_bucket_factor: 1.1
    scrape_native_histograms: true
    always_scrape_classic_histograms: true
    convert_classic_histograms_to_nhcb: true
    extra_scrape_metrics: true
    metric_name_validation_scheme: legacy
    enable_compression: false
    scrape_failure_log_file: own.log
    basic_auth: {username: me, password_file: password}
    enable_http2: false
    static_configs:
      - targets: ['a:9100', 'b:9100']
        labels: {rack: 7}
      - targets: ['c:9100']
    file_sd_configs:
      - files: [foo/*.slow.json, /etc/single.yml]
        refresh_interval: 10m
      - files: [bar.yaml]
    http_sd_configs:
      - url: http://me:hunter2@lists.example/a
        tls_config: {ca_file: ca.pem}
    dns_sd_configs:
      - names: [_web._tcp.example]
      - {names: [a.example], type: a, port: 9100, refresh_interval: 15s}
    relabel_configs:
      - {source_labels: [job], target_label: job, replacement: 'x$1'}
    metric_relabel_configs:
      - {source_labels: [__name__], regex: go_.*, action: drop}
  - job_name: bare
";
    let settings = settings(text, Path::new("/etc/x")).expect("a configuration");
    assert_eq!(settings.global.external_labels, LabelMap::from([("site".into(), "edge".into())]));
    assert_eq!(settings.global.evaluation_interval, Duration::from_secs(30));
    assert_eq!(settings.global.query_log_file, Some("/etc/x/query.log".into()));
    assert_eq!(settings.global.unused, ["query_log_file"]);
    let [all, bare] = settings.jobs.as_slice() else { panic!("{settings:?}") };
    let job = &all.job;
    assert_eq!((job.name.as_str(), job.scheme.as_str()), ("all", "https"));
    assert_eq!(job.metrics_path, "/my_path");
    assert_eq!((job.interval.as_secs(), job.timeout.as_secs()), (50, 5));
    assert_eq!(job.protocols, [Protocol::PrometheusText0_0_4, Protocol::PrometheusProto]);
    assert_eq!(job.fallback, Some(Protocol::OpenMetricsText0_0_1));
    assert!(job.honor_labels && !job.honor_timestamps && job.track_timestamps_staleness);
    assert_eq!(job.params["module"], ["a", "b"]);
    assert_eq!(job.params["x"], ["1"]);
    let limits = &job.limits;
    assert_eq!((limits.body_bytes, limits.samples, limits.targets), (10 << 20, 1000, 35));
    assert_eq!((limits.dropped_targets, limits.buckets), (4, 160));
    let labels = &limits.labels;
    assert_eq!((labels.labels, labels.name_bytes, labels.value_bytes), (35, 210, 211));
    assert_eq!(job.bucket_factor_min, 1.1);
    assert!(job.native_histograms && job.always_classic_histograms);
    assert!(job.convert_classic_histograms && job.extra_metrics && !job.compression);
    assert_eq!((job.validation.as_str(), job.escaping.as_str()), ("legacy", "underscores"));
    assert_eq!((job.relabel.len(), job.metric_relabel.len()), (1, 1));
    let client = format!("{:?}", job.client);
    assert!(client.contains("me:/etc/x/password"), "{client}");
    assert_eq!(all.job.failure_log_file, Some("/etc/x/own.log".into()));

    let [lists, files, more_files, http, srv, a] = all.discovery.as_slice() else {
        panic!("{:?}", all.discovery)
    };
    let DiscoveryConfig::Static(groups) = lists else { panic!("{lists:?}") };
    let sources: Vec<&str> = groups.iter().map(|group| group.source.as_str()).collect();
    assert_eq!(sources, ["0", "1"]);
    assert_eq!(groups[0].targets[1].get("__address__"), "b:9100");
    assert_eq!(groups[0].labels.get("rack"), "7");
    let DiscoveryConfig::File(files) = files else { panic!("{files:?}") };
    assert_eq!(files.refresh_interval, Duration::from_secs(600));
    let pattern = |text| Pattern::parse(text).expect("a pattern");
    assert_eq!(files.files, [pattern("/etc/x/foo/*.slow.json"), pattern("/etc/single.yml")]);
    let DiscoveryConfig::File(more_files) = more_files else { panic!("{more_files:?}") };
    assert_eq!(more_files.refresh_interval, Duration::from_secs(5));
    let DiscoveryConfig::Http(http) = http else { panic!("{http:?}") };
    assert_eq!(http.url_text, "http://lists.example/a");
    assert_eq!(http.refresh_interval, Duration::from_secs(60));
    let shown = format!("{http:?}");
    assert!(shown.contains("/etc/x/ca.pem") && !shown.contains("hunter2"), "{shown}");
    let dns = |name: &str, seconds, kind| {
        let refresh_interval = Duration::from_secs(seconds);
        DiscoveryConfig::Dns(DnsConfig { names: vec![name.into()], refresh_interval, kind })
    };
    assert_eq!(*srv, dns("_web._tcp.example", 30, DnsType::Srv));
    assert_eq!(*a, dns("a.example", 15, DnsType::A(9100)));

    let limits = crate::job::LabelLimits { labels: 30, ..Default::default() };
    let mut expected = Job::new("bare");
    expected.interval = Duration::from_secs(15);
    expected.limits.samples = 1500;
    expected.limits.labels = limits;
    expected.failure_log_file = Some("/etc/x/fail.log".into());
    assert_eq!(bare.job, expected);
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let job = |lines: &str| format!("scrape_configs:\n- job_name: a\n  {lines}\n");
    for (text, said) in [
        (
            job("consul_sd_configs: [{server: 'a:1'}]"),
            "3:3: scrape_configs[0].consul_sd_configs: this discovery is not supported; write its \
             targets to a file for file_sd_configs, or serve them as JSON",
        ),
        (
            job("scrape_intervall: 5s"),
            "3:3: scrape_configs[0].scrape_intervall: there is no such key; there are job_name, ",
        ),
        (job("honor_labels: 1"), "3:17: scrape_configs[0].honor_labels: expected true or false"),
        (job("scheme: ftp"), "3:11: scrape_configs[0].scheme: expected http or https"),
        (job("body_size_limit: 100"), "3:20: scrape_configs[0].body_size_limit: \"100\" has no"),
        (
            job("tls_config: {cert_file: a}"),
            "3:15: scrape_configs[0].tls_config: cert_file and key_file belong together",
        ),
        (
            job("file_sd_configs: [{files: [a*b*.json]}]"),
            "3:29: scrape_configs[0].file_sd_configs[0].files: path name \"a*b*.json\" is not",
        ),
        (
            job("file_sd_configs: [{files: [a.txt]}]"),
            "3:29: scrape_configs[0].file_sd_configs[0].files: path name \"a.txt\" is not valid",
        ),
        (
            job("file_sd_configs: [{files: []}]"),
            "3:29: scrape_configs[0].file_sd_configs[0].files: file service discovery config must",
        ),
        (
            job("dns_sd_configs: [{names: []}]"),
            "3:20: scrape_configs[0].dns_sd_configs[0]: DNS-SD config must contain at least one",
        ),
        (
            job("dns_sd_configs: [{names: [a], type: A}]"),
            "3:20: scrape_configs[0].dns_sd_configs[0]: a port is required",
        ),
        (
            job("dns_sd_configs: [{names: [a], type: MX, port: 1}]"),
            "3:20: scrape_configs[0].dns_sd_configs[0]: DNS-SD records of type MX are not supported",
        ),
        (
            job("http_sd_configs: [{url: 'http://a/', ur: b}]"),
            "3:40: scrape_configs[0].http_sd_configs[0].ur: there is no such key; there are url, \
             refresh_interval, basic_auth, ",
        ),
        (
            job("static_configs: [{targets: ['a/b']}]"),
            "2:3: scrape_configs[0]: static_configs: \"a/b\" is not a valid hostname",
        ),
        (
            job("metric_name_validation_scheme: legacy\n  relabel_configs: [{target_label: a.b}]"),
            "2:3: scrape_configs[0]: a relabel rule: \"a.b\" is not a valid label name",
        ),
        (
            job("native_histogram_bucket_limit: -1"),
            "3:34: scrape_configs[0].native_histogram_bucket_limit: expected a whole number",
        ),
        (
            "global: {scrape_interval: 5s, scrape_timeout: 6s}\n".into(),
            "1:9: global: global scrape timeout greater than scrape interval",
        ),
        (
            "global: {external_labels: {'': a}}\n".into(),
            "1:9: global: external_labels: \"\" is not a valid label name",
        ),
        ("scrape_configs: {a: b}\n".into(), "1:17: scrape_configs: expected a list"),
    ] {
        let error = settings(&text, Path::new("")).expect_err(&text);
        assert!(error.starts_with(said), "{text}: {error}");
    }
    // Relabeling may make a valid address of it.
    let relabels = job("static_configs: [{targets: ['a/b']}]\n  relabel_configs: [{action: \
                        labeldrop, regex: x}]");
    assert!(settings(&relabels, Path::new("")).is_ok());
}

#[test]
fn further_files_are_named_in_errors() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("one.yml");
    let text = "scrape_config_files: ['*.yml']\n";
    let read = |content: &str| {
        std::fs::write(&path, content)?;
        Ok::<_, std::io::Error>(settings(text, folder.path()))
    };
    let good = "scrape_configs: [{job_name: a, file_sd_configs: [{files: [b.json]}]}]";
    let found = read(good)?.expect("a configuration");
    assert_eq!(found.further_files(), std::slice::from_ref(&path));
    let DiscoveryConfig::File(files) = &found.jobs[0].discovery[0] else { panic!("{found:?}") };
    let expected = Pattern::parse(&folder.path().join("b.json").display().to_string());
    assert_eq!(files.files, expected.as_slice());
    assert_eq!(read("")?.map(|settings| settings.jobs.len()), Ok(0));
    for (content, said) in [
        ("scrape_configs: [{job: a}]", "1:19: scrape_configs[0].job: there is no such key"),
        ("global: {}", "1:1: global: there is no such key; there is scrape_configs"),
        ("- a", "1:1: expected lines of the form"),
    ] {
        let error = read(content)?.map(drop).expect_err(content);
        let said = format!("{}:{said}", path.display());
        assert!(error.starts_with(&said), "{error}");
    }
    Ok(())
}

#[test]
fn paths_that_further_files_inherit_are_relative_to_the_first_file() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let jobs = folder.path().join("jobs");
    std::fs::create_dir(&jobs)?;
    std::fs::write(jobs.join("one.yml"), "scrape_configs: [{job_name: a}]")?;
    let text = "global: {scrape_failure_log_file: fail.log}\nscrape_config_files: [jobs/*.yml]\n";
    let found = settings(text, folder.path()).expect("a configuration");
    assert_eq!(found.jobs[0].job.failure_log_file, Some(folder.path().join("fail.log")));
    Ok(())
}

#[test]
fn probes_are_jobs() {
    let text = "
global: {scrape_interval: 30s}
scrape_configs: [{job_name: a}]
probe_modules:
  own: {prober: tcp, timeout: 2s}
probe_configs:
  - job_name: web
    scrape_timeout: 5s
    sample_limit: 40
    static_configs: [{targets: ['https://a.example/x?y=1', 'b.example']}]
    file_sd_configs: [{files: [probed.yml]}]
    relabel_configs: [{source_labels: [instance], target_label: site}]
    metric_relabel_configs: [{source_labels: [phase], regex: tls, action: drop}]
  - {job_name: ports, module: own, static_configs: [{targets: ['127.0.0.1:22']}]}
";
    let settings = settings(text, Path::new("/etc/x")).expect("a configuration");
    let [scraped, web, ports] = settings.jobs.as_slice() else { panic!("{settings:?}") };
    assert_eq!(scraped.job.probe, None);
    let job = &web.job;
    assert_eq!((job.interval.as_secs(), job.timeout.as_secs()), (30, 5));
    assert_eq!((job.limits.samples, job.relabel.len(), job.metric_relabel.len()), (40, 1, 1));
    let [DiscoveryConfig::Static(groups), DiscoveryConfig::File(files)] = web.discovery.as_slice()
    else {
        panic!("{:?}", web.discovery)
    };
    assert_eq!(files.files, [Pattern::parse("/etc/x/probed.yml").expect("a pattern")]);
    let target = |labels: &Labels| {
        let discovered = crate::target::discovered_labels(job, labels, &Labels::default());
        let labels = crate::target::target_labels(job, discovered, &mut []);
        let labels = labels.expect("a target").expect("kept");
        let target = crate::target::Target::new(job, labels, Labels::default());
        let own = |(name, value): &(String, String)| (name == "instance").then(|| value.clone());
        let instance = target.public_labels().iter().find_map(own);
        (instance.expect("an instance"), target.url().to_owned())
    };
    let page = "https://a.example/x?y=1".to_owned();
    assert_eq!(target(&groups[0].targets[0]), (page.clone(), page));
    let host = ("b.example".to_owned(), "http://b.example".to_owned());
    assert_eq!(target(&groups[0].targets[1]), host);
    let module = ports.job.probe.as_ref().expect("a module");
    assert_eq!(module.timeout, Some(Duration::from_secs(2)));
}

#[test]
fn what_is_wrong_with_probes_is_named() {
    for (text, expected) in [
        ("probe_configs: [{job_name: a, module: none}]", "http_2xx, tcp_connect"),
        ("probe_configs: [{module: http_2xx}]", "job_name is empty"),
        ("probe_configs: [{job_name: a, metrics_path: /x}]", "metrics_path"),
        ("probe_configs: [{job_name: a}, {job_name: a}]", "job name \"a\""),
        ("{scrape_configs: [{job_name: a}], probe_configs: [{job_name: a}]}", "probe_configs[0]"),
        ("probe_configs: [{job_name: a, ec2_sd_configs: []}]", "not supported"),
        ("probe_modules: {a: {prober: dns}}", "\"dns\" is not supported"),
    ] {
        let error = settings(text, Path::new("")).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}
