//! The machine's metrics, compared with a real node_exporter on the same machine: the same
//! families, the same series, and values between tidepool's readings before and after.

mod machine;
mod mixin;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tidepool_node_metrics::{
    CollectError, Kind, Label, NodeMetrics, Options, Paths, Sink, TextFile, TextFileOutcome,
};
use tidepool_tests::http::Client;
use tidepool_tests::node_exporter;
use tidepool_tests::process::Server;

/// Collectors that both programs have.
const COLLECTORS: [&str; 22] = [
    "bonding",
    "conntrack",
    "cpu",
    "diskstats",
    "filefd",
    "filesystem",
    "hwmon",
    "loadavg",
    "mdadm",
    "meminfo",
    "netdev",
    "netstat",
    "os",
    "pressure",
    "sockstat",
    "stat",
    "textfile",
    "thermal_zone",
    "time",
    "timex",
    "uname",
    "vmstat",
];
/// Number of attempts: other programs, mounts and network devices come and go meanwhile.
const ATTEMPTS: usize = 50;
/// Gauges that change all the time, or that node_exporter itself changes. They may differ by this
/// share, or by this much if they count few things; others must be equal.
const RESTLESS: [&str; 15] = [
    "node_cooling_device_cur_state",
    "node_disk_io_now",
    "node_filefd_allocated",
    "node_filesystem_avail_bytes",
    "node_filesystem_files_free",
    "node_filesystem_free_bytes",
    "node_hwmon_",
    "node_load",
    "node_memory_",
    "node_netstat_Tcp_CurrEstab",
    "node_nf_conntrack_entries",
    "node_procs_",
    "node_sockstat_",
    "node_thermal_zone_temp",
    "node_timex_",
];
const GAUGE_SHARE: f64 = 0.1;
const GAUGE_COUNT: f64 = 16.0;
/// Tolerance for idle time that the kernel takes back: `proc_stat(5)`.
const CPU_SECONDS: f64 = 0.1;

/// Parsed content of an exposition.
#[derive(Default)]
struct Page {
    /// Help and type by name.
    families: BTreeMap<String, (String, String)>,
    /// Values by series in the text format.
    samples: BTreeMap<String, f64>,
    family: String,
}

impl Sink for Page {
    fn family(&mut self, name: &str, help: &str, kind: Kind) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
        };
        let before = self.families.insert(name.to_owned(), (help.to_owned(), kind.to_owned()));
        assert_eq!(before, None, "{name} begins once");
        name.clone_into(&mut self.family);
    }

    fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        let escaped =
            |text: &str| text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let before = self.samples.insert(format!("{}{labels}", self.family), value);
        assert_eq!(before, None, "{}{labels} comes once", self.family);
    }

    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome {
        let text = std::str::from_utf8(file.content).expect("a text");
        self.add_text(text);
        TextFileOutcome::Taken
    }

    fn failed(&mut self, collector: &'static str, error: &CollectError) {
        println!("{collector}: {error}");
    }
}

impl Page {
    fn add_text(&mut self, text: &str) {
        for line in text.lines() {
            if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|l| l.split_once(' '))
            {
                self.families.entry(name.to_owned()).or_default().0 = help.to_owned();
            } else if let Some((name, kind)) =
                line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' '))
            {
                self.families.entry(name.to_owned()).or_default().1 = kind.to_owned();
            } else if let Some((series, value)) = line.rsplit_once(' ') {
                self.samples.insert(series.to_owned(), value.parse().expect("a number"));
            }
        }
    }

    fn ours(metrics: &mut NodeMetrics) -> Page {
        let mut page = Page::default();
        metrics.collect(&mut page);
        page
    }

    fn theirs(url: &str) -> Page {
        let answer = Client::default().get(url).expect("an answer");
        assert!(answer.is_success(), "{}", answer.text());
        let mut page = Page::default();
        page.add_text(&answer.text());
        // Metrics of the exporter, not of the machine.
        page.families.remove("node_exporter_build_info");
        page.samples.retain(|series, _| !series.starts_with("node_exporter_build_info"));
        page
    }

    /// Returns whether a series is a counter, by the type of its family.
    fn is_counter(&self, series: &str) -> bool {
        let name = series.split('{').next().unwrap_or_default();
        let kind = self.families.get(name).map_or("", |(_, kind)| kind);
        let is_gauge_without_a_type =
            ["node_netstat_Tcp_CurrEstab", "node_netstat_Ip_Forwarding"].contains(&name);
        kind == "counter" || (kind == "untyped" && !is_gauge_without_a_type)
    }
}

fn is_between(value: f64, one: f64, other: f64, tolerance: f64) -> bool {
    (one.min(other) - tolerance..=one.max(other) + tolerance).contains(&value)
}

/// Starts a node_exporter with these collectors only; returns its page of metrics as well.
fn launch(directory: &Path, collectors: &[&str], flags: &[(&str, &Path)]) -> (Server, String) {
    let mut exporter = node_exporter::launch(directory).expect("node_exporter is there");
    exporter.arguments.push("--web.disable-exporter-metrics".into());
    exporter.arguments.push("--collector.disable-defaults".into());
    exporter.arguments.extend(collectors.iter().map(|name| format!("--collector.{name}").into()));
    for (flag, path) in flags {
        let mut argument = OsString::from(flag);
        argument.push(path);
        exporter.arguments.push(argument);
    }
    let url = format!("http://{}/metrics", exporter.address);
    (exporter.start().expect("node_exporter starts"), url)
}

#[test]
fn the_machine_is_as_node_exporter_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text_files = directory.path().join("text \"files\"");
    fs::create_dir(&text_files).expect("a directory");
    let text =
        "# HELP job_seconds How long.\n# TYPE job_seconds gauge\njob_seconds{job=\"a\"} 7.5\n";
    fs::write(text_files.join("job.prom"), text).expect("written");
    let flag = ("--collector.textfile.directory=", text_files.as_path());
    let (_exporter, url) = launch(directory.path(), &COLLECTORS, &[flag]);
    let textfile_directories = vec![text_files];
    let mut metrics = NodeMetrics::new(Options { textfile_directories, ..Options::default() });

    // Gauges that were between both readings at least once.
    let mut fitting = BTreeSet::new();
    let mut differences = BTreeSet::new();
    for _ in 0..ATTEMPTS {
        let before = Page::ours(&mut metrics);
        let theirs = Page::theirs(&url);
        let after = Page::ours(&mut metrics);
        let names = |page: &Page| page.samples.keys().cloned().collect::<BTreeSet<_>>();
        differences = names(&before).symmetric_difference(&names(&theirs)).cloned().collect();
        if !differences.is_empty() || names(&before) != names(&after) {
            continue;
        }
        assert_eq!(before.families, theirs.families);
        let mut missing = BTreeMap::new();
        for (series, value) in &theirs.samples {
            let (one, other) = (before.samples[series], after.samples[series]);
            // The duration of a collector depends on the program.
            if series.starts_with("node_scrape_collector_duration_seconds") {
                continue;
            }
            if theirs.is_counter(series) || series == "node_time_seconds" {
                let is_cpu = series.starts_with("node_cpu_seconds_total");
                let tolerance = if is_cpu { CPU_SECONDS } else { 0.0 };
                let is_fitting = is_between(*value, one, other, tolerance);
                assert!(is_fitting, "{series}: {value} is not between {one} and {other}");
            } else if is_between(*value, one, other, 0.0) {
                fitting.insert(series.clone());
            } else if !fitting.contains(series) {
                missing.insert(series.clone(), (one, *value, other));
            }
        }
        missing.retain(|series, (one, value, other)| {
            let is_restless = RESTLESS.iter().any(|name| series.starts_with(name));
            let tolerance = GAUGE_COUNT.max(GAUGE_SHARE * value.abs());
            !is_restless || !is_between(*value, *one, *other, tolerance)
        });
        if missing.is_empty() {
            assert!(theirs.samples.len() > 200, "{:?}", theirs.samples.keys());
            assert!(theirs.samples.contains_key(r#"job_seconds{job="a"}"#));
            return;
        }
        differences = missing.into_iter().map(|(series, of)| format!("{series}: {of:?}")).collect();
    }
    panic!("differ in every attempt: {differences:#?}");
}

/// Collectors that read only files.
const OF_FILES: [&str; 16] = [
    "bonding",
    "conntrack",
    "cpu",
    "diskstats",
    "filefd",
    "hwmon",
    "loadavg",
    "mdadm",
    "meminfo",
    "netstat",
    "os",
    "pressure",
    "sockstat",
    "stat",
    "thermal_zone",
    "vmstat",
];
/// Series prefixes of the other collectors.
const OF_OTHERS: [&str; 6] = [
    "node_filesystem_",
    "node_network_",
    "node_textfile_",
    "node_time_",
    "node_timex_",
    "node_uname_",
];

#[test]
fn a_made_up_machine_is_as_node_exporter_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    for (name, content) in machine::FILES {
        fs::create_dir_all(path(name).parent().expect("a parent")).expect("directories");
        fs::write(path(name), content).expect("written");
    }
    let device = path("sys/devices/platform/coretemp.0");
    symlink(&device, device.join("hwmon/hwmon0/device")).expect("a link");
    symlink(device.join("hwmon/hwmon0"), path("sys/class/hwmon/hwmon0")).expect("a link");

    let paths = Paths {
        procfs: path("proc"),
        sysfs: path("sys"),
        rootfs: path("root"),
        udev_data: path("udev"),
    };
    let flags = [
        ("--path.procfs=", paths.procfs.as_path()),
        ("--path.sysfs=", &paths.sysfs),
        ("--path.rootfs=", &paths.rootfs),
        ("--path.udev.data=", &paths.udev_data),
    ];
    let (_exporter, url) = launch(directory.path(), &OF_FILES, &flags);
    let mut theirs = Page::theirs(&url);
    let mut ours = Page::ours(&mut NodeMetrics::new(Options { paths, ..Options::default() }));

    let is_shared = |name: &str| !OF_OTHERS.iter().any(|other| name.starts_with(other));
    ours.families.retain(|name, _| is_shared(name));
    assert_eq!(ours.families, theirs.families);
    for page in [&mut ours, &mut theirs] {
        page.samples.retain(|series, _| {
            is_shared(series) && !series.starts_with("node_scrape_collector_duration_seconds")
        });
    }
    // All other collectors of tidepool have an outcome, too.
    ours.samples.retain(|series, _| {
        let collector = series.strip_prefix("node_scrape_collector_success{collector=\"");
        collector.is_none_or(|rest| OF_FILES.contains(&rest.trim_end_matches("\"}")))
    });
    assert_eq!(ours.samples, theirs.samples);
    assert!(ours.samples.len() > 150, "{}", ours.samples.len());
}
