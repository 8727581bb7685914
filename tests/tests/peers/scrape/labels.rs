//! Labels of targets and of series: conflicts, relabeling of both, and the parameters of requests.

use super::exposer::{Page, Scripts};
use super::{Pair, configuration, job};

#[test]
fn conflicts_of_labels_end_as_in_prometheus() {
    let pages = vec![
        Page::text("a{job=\"mine\"} 1\nb{instance=\"i\"} 2\nc 3\n"),
        Page::text("a{job=\"mine\",exported_job=\"x\",exported_exported_job=\"y\"} 1\n"),
        Page::text("a{site=\"theirs\"} 1\na{exported_site=\"e\"} 2\n"),
        // Two series become one.
        Page::text("a{zone=\"1\"} 1\na{zone=\"2\"} 2\n"),
        Page::text("up{x=\"1\"} 7\nscrape_samples_scraped{x=\"1\"} 1\n"),
        Page::text("gone 1\nrenamed{old=\"v\"} 2\nmiXed{le=\"1\",quantile=\"0.50\"} 3\n"),
        Page::text("keep_1 1\nkeep_2{path=\"/api/v1/x\"} 2\ndrop_1 3\n"),
        Page::text("c 3\n"),
        Page::text("a{job=\"\",instance=\"\"} 1\nb{site=\"\",x=\"1\"} 2\nc 3\n"),
        Page::openmetrics("a{job=\"\",x=\"\"} 1\n# EOF\n"),
        Page::text("c 3\n"),
    ];
    let scrapes = pages.len();
    let relabel = |rules: &[&str]| format!("metric_relabel_configs: [{}]", rules.join(", "));
    let jobs = [
        job("plain", ""),
        job("honored", "honor_labels: true"),
        job("dropped", &relabel(&["{regex: zone|site, action: labeldrop}"])),
        job(
            "renamed",
            &relabel(&[
                "{source_labels: [__name__], regex: renamed, target_label: __name__, replacement: new}",
                "{source_labels: [old], regex: (.+), target_label: new}",
                "{source_labels: [__name__], action: lowercase, target_label: __name__}",
                "{source_labels: [path], regex: '/api/(v\\d)/.*', target_label: version}",
                "{source_labels: [__name__], modulus: 7, action: hashmod, target_label: shard}",
            ]),
        ),
        job("kept", &relabel(&["{source_labels: [__name__], regex: 'keep_.*', action: keep}"])),
        job("nameless", &relabel(&["{regex: __name__, action: labeldrop}"])),
        job(
            "mapped",
            &relabel(&["{regex: exported_(.+), action: labelmap, replacement: from_$1}"]),
        ),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        let paths = ["/plain", "/honored", "/dropped", "/renamed", "/kept", "/nameless", "/mapped"];
        Scripts::from(paths.map(|path| (path, pages.clone())))
    });
    pair.assert_same(jobs.len(), scrapes, 2.0);
}

#[test]
fn targets_are_relabeled_and_asked_as_by_prometheus() {
    // Targets of one path share its script, so each has one page.
    let page = |name: &str| vec![Page::text(&format!("{name} 1\n"))];
    let target = |which: &str, more: &str| {
        format!("      - {{targets: [ADDRESS], labels: {{which: {which}{more}}}}}\n")
    };
    let relabeled = format!(
        "  - job_name: relabeled\n    params: {{b: [two], a: [one, again]}}\n    \
         relabel_configs:\n      \
         - {{source_labels: [which], regex: never, action: drop}}\n      \
         - {{source_labels: [which], regex: moved, target_label: __metrics_path__, replacement: /moved}}\n      \
         - {{source_labels: [which], regex: asked, target_label: __param_a, replacement: other}}\n      \
         - {{source_labels: [which], regex: named, target_label: instance, replacement: by-name}}\n      \
         - {{source_labels: [which], regex: renamed, target_label: job, replacement: by-rule}}\n      \
         - {{source_labels: [__address__], regex: '(.*):(.*)', target_label: host, replacement: $1}}\n      \
         - {{regex: 'odd_(.*)', action: labelmap, replacement: even_$1}}\n      \
         - {{regex: 'odd_.*', action: labeldrop}}\n    static_configs:\n{}{}{}{}{}{}{}",
        target("plain", ""),
        target("never", ""),
        target("moved", ""),
        target("asked", ", odd_label: value"),
        target("named", ""),
        target("renamed", ", job: overwritten"),
        target("hidden", ", __hidden: x, empty: ''"),
    );
    let redirecting = |path: &str| {
        let page = Page::text("").status("302 Found").header(&format!("Location: {path}"));
        vec![page.clone(), page.status("307 Temporary Redirect")]
    };
    let jobs = [
        relabeled,
        job("redirected", ""),
        job("stays", "follow_redirects: false"),
        job("lost", ""),
        job("circle", ""),
        job("basic", "basic_auth: {username: edge, password: 'p:w'}"),
        job("bearer", "authorization: {credentials: t0ken}"),
        job("headers", "http_headers: {X-Edge: {values: [one, two]}}"),
        job("params", "params: {module: ['a b', 'c&d']}\nscrape_timeout: 1500ms"),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        Scripts::from([
            ("/metrics?a=one&a=again&b=two", page("relabeled")),
            ("/moved?a=one&a=again&b=two", page("moved")),
            ("/metrics?a=other&a=again&b=two", page("asked")),
            ("/metrics?a=other&b=two", page("asked_once")),
            ("/redirected", redirecting("/goal")),
            ("/stays", redirecting("/goal")),
            ("/lost", redirecting("/nowhere")),
            ("/circle", redirecting("/circle")),
            ("/goal", vec![Page::text("goal 1\n")]),
            ("/basic", page("basic")),
            ("/bearer", page("bearer")),
            ("/headers", page("headers")),
            ("/params?module=a+b&module=c%26d", page("params")),
        ])
    });
    pair.assert_same(14, 3, 2.0);
}
