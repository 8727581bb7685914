//! Targets that vanish and return, and reloads that change jobs: the number of scrapes meanwhile
//! differs, so the values of each series are compared without repetitions.

use super::exposer::{Page, Scripts};
use super::{DURATION_TOLERANCE_S, Pair, Side, TIMEOUT, assert_alike, configuration, job, shown};
use super::{SampleTime, Scraped, told, up_of};
use std::fs;
use tidepool_tests::histogram::Value;
use tidepool_tests::wait;

const TIMEOUT_S: f64 = 2.0;
/// Age of the staleness marker at a target's end: one interval after its last scrape. A busy
/// machine scrapes late.
const MARK_MS: std::ops::RangeInclusive<i64> = 500..=4_500;

impl Side {
    /// Returns the values of all series, each only if it differs from the one before.
    pub fn collapsed(&self) -> Scraped {
        let mut collapsed = Scraped::new();
        for series in self.series().values().flatten() {
            if series.labels.value("which") == "gone" {
                continue;
            }
            let is_duration = series.labels.value("__name__") == "scrape_duration_seconds";
            let limit = is_duration.then_some(TIMEOUT_S + DURATION_TOLERANCE_S);
            let mut values: Vec<String> =
                told(&series.points).map(|point| shown(&point.value, limit)).collect();
            values.dedup();
            let values = values.into_iter().enumerate();
            let values = values.map(|(at, value)| (SampleTime::Scrape(at), value)).collect();
            collapsed.insert(self.name_of(series), values);
        }
        collapsed
    }

    /// Returns whether a job's `up` has ended.
    fn has_ended(&self, which: &str) -> bool {
        let of_target = self.series().remove(which).unwrap_or_default();
        let last = up_of(&of_target).and_then(|series| series.points.last());
        last.is_some_and(|point| matches!(point.value, Value::Stale(_)))
    }

    #[track_caller]
    fn wait_for_end(&self, which: &str) {
        let has_ended = || self.has_ended(which).then_some(());
        wait::until("a mark", TIMEOUT, has_ended)
            .unwrap_or_else(|error| panic!("{which}: {error}\n{}", self.server.log()));
        let mark_ms = self.mark_ms(which);
        assert!(MARK_MS.contains(&mark_ms), "{which}: {mark_ms} ms");
    }

    /// Returns the time from a target's last scrape to its staleness marker.
    fn mark_ms(&self, which: &str) -> i64 {
        let of_target = self.series().remove(which).unwrap_or_default();
        let points = &up_of(&of_target).expect("it was scraped").points;
        let mark = points.iter().position(|point| matches!(point.value, Value::Stale(_)));
        let mark = mark.expect("it was marked");
        points[mark].timestamp_ms - points[mark - 1].timestamp_ms
    }
}

impl Pair {
    fn turn(&self, number: usize) {
        self.sides().iter().for_each(|side| side.exposer.turn(number));
    }

    /// Waits until both have requested these paths often enough in this turn that the last scrape
    /// but one is stored.
    #[track_caller]
    fn wait_for_requests(&self, paths: &[&str]) {
        for (side, path) in
            self.sides().iter().flat_map(|side| paths.iter().map(move |p| (side, p)))
        {
            let was_asked = || (side.exposer.asked(path) >= 3).then_some(());
            wait::until("requests", TIMEOUT, was_asked)
                .unwrap_or_else(|error| panic!("{path}: {error}\n{}", side.server.log()));
        }
    }

    #[track_caller]
    fn wait_for_ends(&self, which: &str) {
        self.sides().iter().for_each(|side| side.wait_for_end(which));
    }

    /// Waits until both have the same.
    #[track_caller]
    pub fn assert_becomes_same(&self) {
        let is_same = || (self.ours.collapsed() == self.theirs.collapsed()).then_some(());
        if wait::until("the same", TIMEOUT, is_same).is_err() {
            assert_alike(&self.theirs.collapsed(), &self.ours.collapsed());
        }
    }
}

#[test]
fn targets_vanish_and_come_back_as_in_prometheus() {
    let jobs = ["  - job_name: files\n    metrics_path: /files\n    file_sd_configs: \
                 [{files: ['DIRECTORY/targets/*.json'], refresh_interval: 1s}]\n"
        .to_owned()];
    let pages = vec![Page::text("a 1\nb 1\n"), Page::text("a 2\nc 2\n"), Page::text("a 2\nc 2\n")];
    let targets = |side: &Side, text: &str| {
        let folder = side.directory.join("targets");
        fs::create_dir_all(&folder).expect("a directory");
        let text = text.replace("ADDRESS", &side.exposer.address().to_string());
        // Replaced by a rename, because a server may read the file meanwhile.
        let new = side.directory.join("new");
        fs::write(&new, text).expect("a file");
        fs::rename(new, folder.join("all.json")).expect("a file");
    };
    let listed = "[{\"targets\": [\"ADDRESS\"], \"labels\": {\"which\": \"files\"}}]";
    // Prometheus watches only folders that exist.
    let configuration = configuration(&jobs);
    let pair = Pair::start(&configuration, |_| Scripts::from([("/files", pages.clone())]));
    pair.turn(0);
    pair.sides().iter().for_each(|side| targets(side, listed));
    pair.sides().iter().for_each(|side| side.reload(&configuration));
    pair.wait_for_requests(&["/files"]);
    pair.assert_becomes_same();

    // A file that cannot be parsed keeps its targets.
    pair.sides().iter().for_each(|side| targets(side, "[{\"targets\": "));
    pair.turn(0);
    pair.wait_for_requests(&["/files"]);
    pair.sides().iter().for_each(|side| targets(side, "[]"));
    pair.wait_for_ends("files");
    pair.assert_becomes_same();

    pair.turn(1);
    pair.sides().iter().for_each(|side| targets(side, listed));
    pair.wait_for_requests(&["/files"]);
    pair.assert_becomes_same();

    // With another label it is another target.
    let other = listed.replace("\"files\"}", "\"files\", \"rack\": \"2\"}");
    pair.turn(2);
    pair.sides().iter().for_each(|side| targets(side, &other));
    let is_renamed = |side: &Side| side.collapsed().keys().any(|name| name.contains("rack"));
    for side in pair.sides() {
        wait::until("another target", TIMEOUT, || is_renamed(side).then_some(()))
            .unwrap_or_else(|error| panic!("{error}\n{}", side.server.log()));
    }
    pair.turn(2);
    pair.wait_for_requests(&["/files"]);
    pair.assert_becomes_same();
}

#[test]
fn a_reload_changes_jobs_as_in_prometheus() {
    let paths = ["/steady", "/slower", "/relabeled", "/honest", "/timed", "/gone", "/added"];
    let page = Page::text("a{job=\"own\"} 1\nb 2\nwith_time 3\n");
    let steady = [job("steady", ""), job("slower", "scrape_interval: 2s")];
    let before = [
        job("relabeled", ""),
        job("honest", ""),
        job("timed", "scrape_timeout: 1s"),
        job("gone", ""),
    ];
    let rule = "metric_relabel_configs: [{source_labels: [__name__], regex: b, action: drop}, \
                {target_label: added, replacement: later}]";
    let after = [
        job("relabeled", rule),
        job("honest", "honor_labels: true"),
        job("timed", "scrape_timeout: 1500ms"),
        job("added", ""),
    ];
    let slower = [job("steady", ""), job("slower", "scrape_interval: 3s")];
    let pair = Pair::start(&configuration(&[&steady[..], &before[..]].concat()), |_| {
        Scripts::from(paths.map(|path| (path, vec![page.clone()])))
    });
    pair.wait_for_requests(&paths[..6]);
    pair.assert_becomes_same();

    let changed = configuration(&[&slower[..], &after[..]].concat());
    pair.sides().iter().for_each(|side| side.reload(&changed));
    // Prometheus leaves the series of a removed job without a staleness marker.
    pair.ours.wait_for_end("gone");
    assert!(!pair.theirs.has_ended("gone"));
    pair.turn(0);
    pair.wait_for_requests(&["/steady", "/slower", "/relabeled", "/honest", "/timed", "/added"]);
    pair.assert_becomes_same();

    // An invalid configuration changes nothing.
    let wrong = changed.replace("scrape_timeout: 1500ms", "scrape_timeout: 1h");
    pair.sides().iter().for_each(|side| side.reload(&wrong));
    pair.turn(0);
    pair.wait_for_requests(&["/steady", "/timed", "/added"]);
    pair.assert_becomes_same();
}
