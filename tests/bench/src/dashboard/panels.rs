//! Requests of a dashboard: typical panels over counters, histograms and gauges, and the look-ups
//! that fill its variables.
//!
//! Metrics are those of [`data`]. Each viewer has other values of the variables `$cluster` and
//! `$job`, so that no two of the first forty send the same requests.

use super::super::queries::data;
use tidepool_tests::prometheus::percent_encode;

pub const STEP_MS: i64 = 15_000;
/// Length of the range that panels show.
const RANGE_MS: i64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A graph over the last hour.
    Range,
    /// The value at the current time.
    Instant,
    /// Values of a label in the series of a selector.
    Values(&'static str),
    /// Label sets of a selector's series.
    Series,
}

/// A panel or a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    pub kind: Kind,
    /// Expression of a panel, or selector of a look-up.
    pub promql: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Path, and for GET the parameters.
    pub target: String,
    /// Form of a POST request.
    pub form: Option<String>,
}

/// Ordered so that the first panels have all kinds.
const PANELS: [(Kind, &str); 24] = [
    (Kind::Range, "sum by (job) (rate(x{cluster=\"$cluster\"}[5m]))"),
    (Kind::Range, "histogram_quantile(0.99, sum by (le) (rate(b{$these}[5m])))"),
    (Kind::Range, "topk(5, sum by (instance) (rate(x{cluster=\"$cluster\"}[5m])))"),
    (Kind::Instant, "sum(rate(x{$these}[5m]))"),
    (Kind::Range, "avg by (instance) (g{$these})"),
    (Kind::Range, "sum(rate(x{$these}[5m])) / sum(rate(y{$these}[5m]))"),
    (Kind::Range, "max by (instance) (g{$these})"),
    (Kind::Instant, "count(count by (instance) (x{$these}))"),
    (Kind::Range, "sum by (instance) (rate(x{$these}[5m]))"),
    (Kind::Range, "sum by (device) (rate(x{$these}[1m]))"),
    (Kind::Range, "sum by (interface) (rate(y{$these}[5m]))"),
    (Kind::Range, "sum(rate(y{$these}[1m]))"),
    (Kind::Range, "histogram_quantile(0.5, sum by (le) (rate(b{$these}[5m])))"),
    (Kind::Range, "histogram_quantile(0.95, sum by (le, instance) (rate(b{$these}[5m])))"),
    (
        Kind::Range,
        "sum by (instance) (rate(b{$these,le=\"0.1\"}[5m])) / sum by (instance) (rate(b{$these,le=\"+Inf\"}[5m]))",
    ),
    (Kind::Range, "sum by (instance) (g{$these}) / sum by (instance) (h{$these})"),
    (Kind::Range, "quantile(0.9, h{$these})"),
    (Kind::Range, "avg_over_time(g{$these,device=\"disk0\"}[5m])"),
    (Kind::Range, "max(max_over_time(h{$these}[10m]))"),
    (Kind::Range, "h{$these,device=~\"disk[0-2]\"}"),
    (Kind::Instant, "histogram_quantile(0.99, sum by (le) (rate(b{$these}[5m])))"),
    (Kind::Instant, "max(g{$these})"),
    (Kind::Instant, "sum(increase(y{$these}[1h]))"),
    (Kind::Instant, "topk(10, sum by (instance) (rate(x{cluster=\"$cluster\"}[5m])))"),
];

/// Look-ups at the beginning of each refresh.
const LOOK_UPS: [(Kind, &str); 3] = [
    (Kind::Values("cluster"), "x"),
    (Kind::Values("job"), "x{cluster=\"$cluster\"}"),
    (Kind::Series, "g{$these,device=\"disk0\"}"),
];

/// Maximum number of panels in a dashboard.
pub const PANELS_MAX: usize = PANELS.len();

/// Returns a viewer's requests at each refresh: look-ups, then this number of panels. `instances`
/// is the number of instances in the data.
pub fn of_viewer(number: usize, instances: usize, panels: usize) -> Vec<Panel> {
    let (cluster, job) = data::place(number % instances.max(1));
    let these = format!("cluster=\"{cluster}\",job=\"{job}\"");
    let filled = |(kind, template): (Kind, &str)| Panel {
        kind,
        promql: template.replace("$these", &these).replace("$cluster", &cluster),
    };
    LOOK_UPS.into_iter().chain(PANELS.into_iter().take(panels)).map(filled).collect()
}

impl Panel {
    /// Returns whether this request fills a variable.
    pub fn is_look_up(&self) -> bool {
        matches!(self.kind, Kind::Values(_) | Kind::Series)
    }

    /// Makes the request that Grafana sends at a time: ranges begin and end at a multiple of the
    /// step.
    pub fn request(&self, now_ms: i64) -> Request {
        let text = percent_encode(&self.promql);
        let aligned = |ms: i64| ms.div_euclid(STEP_MS) * STEP_MS;
        let range = |start_ms: i64, end_ms: i64| {
            format!("start={}&end={}", seconds(start_ms), seconds(end_ms))
        };
        let all = range(now_ms - RANGE_MS, now_ms);
        let post = |target: &str, form: String| Request {
            target: format!("/api/v1/{target}"),
            form: Some(form),
        };
        match self.kind {
            Kind::Range => {
                let range = range(aligned(now_ms - RANGE_MS), aligned(now_ms));
                post("query_range", format!("query={text}&{range}&step={}", STEP_MS / 1_000))
            }
            Kind::Instant => post("query", format!("query={text}&time={}", seconds(now_ms))),
            Kind::Series => post("series", format!("match[]={text}&{all}")),
            Kind::Values(label) => {
                let target = format!("/api/v1/label/{label}/values?match[]={text}&{all}");
                Request { target, form: None }
            }
        }
    }
}

/// Returns the end of the last step up to a time.
pub fn last_step_ms(now_ms: i64) -> i64 {
    now_ms.div_euclid(STEP_MS) * STEP_MS
}

fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms.div_euclid(1_000), ms.rem_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn viewers_ask_for_different_series() {
        let of = |viewer| of_viewer(viewer, 200, PANELS_MAX);
        let mut all = BTreeSet::new();
        for viewer in 0..40 {
            let panels = of(viewer);
            assert_eq!(panels.len(), 27);
            assert_eq!(panels.iter().filter(|panel| panel.is_look_up()).count(), 3);
            assert!(panels.iter().all(|panel| !panel.promql.contains('$')), "{panels:?}");
            all.insert(panels[4].promql.clone());
        }
        assert_eq!(all.len(), 40);
        assert!(all.contains(
            "histogram_quantile(0.99, sum by (le) (rate(b{cluster=\"cluster-3\",job=\"service-9\"}[5m])))"
        ));
        // With few instances, the variables have only values that exist.
        assert_eq!(of_viewer(7, 4, 1), of_viewer(3, 4, 1));
    }

    #[test]
    fn fewer_panels_still_have_graphs_and_single_values() {
        let kinds: Vec<Kind> = of_viewer(0, 1, 4)[3..].iter().map(|panel| panel.kind).collect();
        assert_eq!(kinds, [Kind::Range, Kind::Range, Kind::Range, Kind::Instant]);
    }

    #[test]
    fn ranges_are_aligned_to_the_step_and_instants_are_not() {
        let now_ms = 1_800_000_007_250;
        let panel = |kind| Panel { kind, promql: "a{b=\"c\"}".to_string() };
        let form = |kind| panel(kind).request(now_ms).form.expect("a form");
        assert_eq!(
            form(Kind::Range),
            "query=a%7Bb%3D%22c%22%7D&start=1799996400.000&end=1800000000.000&step=15"
        );
        assert_eq!(form(Kind::Instant), "query=a%7Bb%3D%22c%22%7D&time=1800000007.250");
        assert_eq!(
            form(Kind::Series),
            "match[]=a%7Bb%3D%22c%22%7D&start=1799996407.250&end=1800000007.250"
        );
        let values = panel(Kind::Values("job")).request(now_ms);
        assert!(values.target.starts_with("/api/v1/label/job/values?match[]=a%7B"));
        assert_eq!(values.form, None);
        assert_eq!(last_step_ms(now_ms), 1_800_000_000_000);
    }
}
