//! Tests of whole OTLP requests.

use super::proto::collector::metrics::v1::ExportMetricsServiceRequest;
use super::proto::metrics::v1::metric::Data;
use super::proto::metrics::v1::number_data_point::Value;
use super::proto::metrics::v1::summary_data_point::ValueAtQuantile;
use super::proto::metrics::v1::{
    AggregationTemporality, Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge,
    Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    Summary, SummaryDataPoint, exemplar, exponential_histogram_data_point,
};
use super::testing::{Rows, attributes};
use super::*;
use proptest::prelude::*;

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;
const NS: u64 = 1_000_000_000;

fn metric(name: &str, unit: &str, data: Data) -> Metric {
    Metric {
        name: name.into(),
        unit: unit.into(),
        description: "help".into(),
        data: Some(data),
        metadata: Vec::new(),
    }
}

fn number(time_ns: u64, value: Value) -> NumberDataPoint {
    NumberDataPoint { time_unix_nano: time_ns, value: Some(value), ..NumberDataPoint::default() }
}

fn gauge(points: Vec<NumberDataPoint>) -> Data {
    Data::Gauge(Gauge { data_points: points })
}

fn sum(is_monotonic: bool, temporality: i32, points: Vec<NumberDataPoint>) -> Data {
    Data::Sum(Sum { data_points: points, aggregation_temporality: temporality, is_monotonic })
}

fn request(resource: &[(&str, &str)], metrics: Vec<Metric>) -> Vec<u8> {
    let resource = Resource { attributes: attributes(resource), ..Resource::default() };
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource =
        ResourceMetrics { resource: Some(resource), scope_metrics, schema_url: String::new() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec()
}

fn translated(body: &[u8]) -> Result<(Rows, Report), TranslateError> {
    let mut rows = Rows::default();
    let report = translate(body, &Settings::default(), &mut rows)?;
    Ok((rows, report))
}

#[test]
fn every_kind_becomes_its_series() -> Result<(), TranslateError> {
    let exemplar = |value| Exemplar {
        time_unix_nano: 4 * NS,
        value: Some(exemplar::Value::AsDouble(value)),
        ..Exemplar::default()
    };
    let classic = HistogramDataPoint {
        time_unix_nano: 7 * NS,
        count: 6,
        sum: Some(2.5),
        bucket_counts: vec![1, 2, 3],
        explicit_bounds: vec![0.5, 10.0],
        exemplars: vec![exemplar(0.5), exemplar(0.6), exemplar(99.0)],
        ..HistogramDataPoint::default()
    };
    let no_sum = HistogramDataPoint {
        sum: None,
        flags: 1,
        bucket_counts: vec![],
        explicit_bounds: vec![],
        ..classic.clone()
    };
    let summary = SummaryDataPoint {
        time_unix_nano: 8 * NS,
        count: 2,
        sum: 3.0,
        quantile_values: vec![ValueAtQuantile { quantile: 0.99, value: 1.5 }],
        ..SummaryDataPoint::default()
    };
    let native = ExponentialHistogramDataPoint {
        time_unix_nano: 9 * NS,
        scale: 20,
        ..ExponentialHistogramDataPoint::default()
    };
    let point = number(NS, Value::AsInt(i64::MAX));
    let stale = NumberDataPoint { flags: 1, ..number(2 * NS, Value::AsDouble(1.0)) };
    let with_exemplar = NumberDataPoint { exemplars: vec![exemplar(1.0)], ..point.clone() };
    let body = request(
        &[],
        vec![
            metric("g", "s", gauge(vec![with_exemplar.clone(), stale])),
            metric("c", "1", sum(true, CUMULATIVE, vec![with_exemplar])),
            metric("u", "1", sum(false, CUMULATIVE, vec![point])),
            metric(
                "h",
                "",
                Data::Histogram(Histogram {
                    data_points: vec![classic, no_sum],
                    aggregation_temporality: CUMULATIVE,
                }),
            ),
            metric("q", "", Data::Summary(Summary { data_points: vec![summary] })),
            metric(
                "n",
                "",
                Data::ExponentialHistogram(ExponentialHistogram {
                    data_points: vec![native],
                    aggregation_temporality: CUMULATIVE,
                }),
            ),
        ],
    );
    let (rows, report) = translated(&body)?;
    assert_eq!(report, Report::default());
    let wanted = [
        "__name__=g_seconds 1000 9223372036854776000",
        "__name__=g_seconds 2000 7ff0000000000002",
        "__name__=c_total 1000 9223372036854776000 #1@4000",
        "__name__=u 1000 9223372036854776000",
        "__name__=h_sum 7000 2.5",
        "__name__=h_count 7000 6",
        "__name__=h_bucket,le=0.5 7000 1 #0.5@4000",
        "__name__=h_bucket,le=10 7000 3 #0.6@4000",
        "__name__=h_bucket,le=+Inf 7000 6 #99@4000",
        "__name__=h_count 7000 7ff0000000000002",
        "__name__=h_bucket,le=+Inf 7000 7ff0000000000002",
        "__name__=q_sum 8000 3",
        "__name__=q_count 8000 2",
        "__name__=q,quantile=0.99 8000 1.5",
        "__name__=n 9000 schema 8",
    ];
    assert_eq!(rows.rows, wanted);
    let families = [
        "g_seconds Gauge \"help\" \"seconds\"",
        "c_total Counter \"help\" \"\"",
        "u Gauge \"help\" \"\"",
        "h Histogram \"help\" \"\"",
        "q Summary \"help\" \"\"",
        "n Histogram \"help\" \"\"",
    ];
    assert_eq!(rows.families, families);
    Ok(())
}

#[test]
fn what_cannot_be_translated_is_counted_and_the_rest_is_kept() -> Result<(), TranslateError> {
    let point = || number(NS, Value::AsInt(1));
    let unnamed = NumberDataPoint { attributes: attributes(&[("..", "x")]), ..point() };
    let crowd: Vec<(String, String)> =
        (0..=ATTRIBUTES_MAX).map(|i| (format!("a{i}"), String::new())).collect();
    let crowd: Vec<(&str, &str)> = crowd.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let crowded = NumberDataPoint { attributes: attributes(&crowd), ..point() };
    let long = "x".repeat(PART_BYTES_MAX);
    let large = NumberDataPoint { attributes: attributes(&[("a", &long)]), ..point() };
    let delta = AggregationTemporality::Delta as i32;
    let mut nothing = metric("nothing", "", gauge(vec![]));
    nothing.data = None;
    let timeless = number(0, Value::AsInt(1));
    let body = request(
        &[],
        vec![
            metric("delta", "", sum(true, delta, vec![point(), point()])),
            metric("unspecified", "", sum(true, 0, vec![point()])),
            metric("empty", "", gauge(vec![])),
            nothing,
            metric("...", "", gauge(vec![point()])),
            metric("ok", "", gauge(vec![unnamed, crowded, large, timeless, point()])),
        ],
    );
    let (rows, report) = translated(&body)?;
    assert_eq!(rows.rows, ["__name__=ok 1000 1"]);
    assert_eq!(report.rejected_points, 2 + 1 + 1 + 4);
    let wanted = [
        "\"delta\": its temporality",
        "\"unspecified\": its temporality",
        "\"nothing\": it has no data",
        "\"...\": the name",
        "\"ok\": a data point: the name \"..\"",
        "\"ok\": a data point: it has 257 attributes",
        "\"ok\": a data point: it has 2621",
        "\"ok\": a data point: it has no time",
    ];
    assert_eq!(report.reasons.len(), wanted.len());
    for (reason, wanted) in report.reasons.iter().zip(wanted) {
        assert!(reason.contains(wanted), "{reason}");
    }
    let body = request(
        &[("service.name", "a"), ("b", &long)],
        vec![metric("m", "", gauge(vec![point()]))],
    );
    let (rows, report) = translated(&body)?;
    assert_eq!((rows.rows.len(), report.rejected_points), (0, 1));
    Ok(())
}

#[test]
fn target_info_covers_the_time_of_the_data_points() -> Result<(), TranslateError> {
    let at = |seconds: u64| number(seconds * NS, Value::AsInt(1));
    let infos =
        |resource: &[(&str, &str)], seconds: &[u64]| -> Result<Vec<String>, TranslateError> {
            let points = seconds.iter().map(|seconds| at(*seconds)).collect();
            let (rows, _) = translated(&request(resource, vec![metric("m", "", gauge(points))]))?;
            let infos = rows.rows.into_iter();
            Ok(infos
                .filter_map(|row| Some(row.strip_prefix("__name__=target_info,")?.into()))
                .collect())
        };
    let resource = [("service.name", "a"), ("host.name", "h")];
    let labels = "host_name=h,job=a";
    let times =
        |ms: &[i64]| -> Vec<String> { ms.iter().map(|ms| format!("{labels} {ms} 1")).collect() };
    assert_eq!(infos(&resource, &[1000])?, times(&[1_000_000]));
    assert_eq!(
        infos(&resource, &[1350, 1000])?,
        times(&[1_000_000, 1_150_000, 1_300_000, 1_350_000])
    );
    assert_eq!(infos(&resource, &[1300, 1000])?, times(&[1_000_000, 1_150_000, 1_300_000]));
    assert_eq!(infos(&resource, &[1000, 1601, 1700])?, times(&[1_000_000, 1_601_000, 1_700_000]));
    // None without job and instance, and none without further attributes.
    assert!(infos(&[("host.name", "h")], &[1])?.is_empty());
    assert!(infos(&[("service.name", "a"), ("service.instance.id", "i")], &[1])?.is_empty());
    assert!(infos(&resource, &[])?.is_empty());
    // Points with wrong times add none in between; the latest are kept.
    assert_eq!(infos(&resource, &[0, 1_700_000_000])?, times(&[1_700_000_000_000]));
    assert_eq!(infos(&resource, &[1, 1_700_000_000])?, times(&[1000, 1_700_000_000_000]));
    let far: Vec<u64> = (1..=10_010).map(|i| i * 1000).collect();
    let all = infos(&resource, &far)?;
    assert_eq!(all.len(), 10_000);
    assert_eq!(all.last(), times(&[10_010_000_000]).last());
    Ok(())
}

#[test]
fn what_is_cut_short_leaves_no_trace() -> Result<(), TranslateError> {
    let points = vec![number(NS, Value::AsInt(1)), number(2 * NS, Value::AsInt(2))];
    let body = request(&[("service.name", "a")], vec![metric("m", "", gauge(points))]);
    assert_eq!(translated(&body)?.0.rows.len(), 2);
    for end in 1..body.len() {
        let mut rows = Rows::default();
        let cut = translate(&body[..end], &Settings::default(), &mut rows);
        assert!(matches!(cut, Err(TranslateError::Malformed(_))), "{end}");
        assert!(rows.rows.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = translated(&bytes);
    }

    /// Replaces bytes in the middle of a request.
    #[test]
    fn damaged_requests_are_survived(place in 0usize..200, with in prop::collection::vec(any::<u8>(), 1..20)) {
        let buckets = exponential_histogram_data_point::Buckets { offset: 1, bucket_counts: vec![1, 0, 2] };
        let native = ExponentialHistogramDataPoint { time_unix_nano: NS, positive: Some(buckets), ..Default::default() };
        let native = ExponentialHistogram { data_points: vec![native], aggregation_temporality: CUMULATIVE };
        let classic = HistogramDataPoint { bucket_counts: vec![1, 2], explicit_bounds: vec![1.0], time_unix_nano: NS, ..Default::default() };
        let classic = Histogram { data_points: vec![classic], aggregation_temporality: CUMULATIVE };
        let mut body = request(&[("service.name", "a"), ("b", "c")], vec![
            metric("n", "s", Data::ExponentialHistogram(native)),
            metric("h", "s", Data::Histogram(classic)),
            metric("g", "s", gauge(vec![number(NS, Value::AsInt(1))])),
        ]);
        let start = place.min(body.len());
        let end = (start + with.len()).min(body.len());
        body.splice(start..end, with);
        let _ = translated(&body);
    }
}
