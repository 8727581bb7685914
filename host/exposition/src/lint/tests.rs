use super::{Families, Problem};
use crate::NameValidation;

type TestResult = Result<(), super::LintError>;

fn problems(text: &str) -> Result<Vec<(String, String)>, super::LintError> {
    let families = Families::read(text.as_bytes(), NameValidation::Legacy)?;
    let problems = families.problems().into_iter();
    Ok(problems.map(|Problem { metric, text }| (metric, text)).collect())
}

/// A metric with help and one sample.
fn metric(name: &str, kind: &str, labels: &str) -> String {
    format!("\n# HELP {name} Test metric.\n# TYPE {name} {kind}\n{name}{labels} 10\n")
}

const NO_HELP: &str = "no help text";
const NO_TOTAL: &str = "counter metrics should have \"_total\" suffix";
const ABBREVIATED: &str = "metric names should not contain abbreviated units";

/// Upstream: TestLintCounter, TestLintHistogramSummaryReserved, TestLintMetricTypeInName,
/// TestLintReservedChars, TestLintCamelCase, TestLintUnitAbbreviations.
#[test]
fn one_sample_of_a_metric_is_judged_as_upstream_judges_it() -> TestResult {
    let in_name = |kind: &str| format!("metric name should not include type '{kind}'");
    let le = "non-histogram metrics should not have \"le\" label";
    let quantile = "non-summary metrics should not have \"quantile\" label";
    let snake_case = "should be written in 'snake_case' not 'camelCase'";
    let neither = "non-histogram and non-summary metrics should not have";
    for (name, kind, labels, expected) in [
        ("x_bytes", "counter", "", vec![NO_TOTAL.to_owned()]),
        (
            "x_bytes_total",
            "gauge",
            "",
            vec!["non-counter metrics should not have \"_total\" suffix".into()],
        ),
        ("x_bytes_total", "counter", "", vec![]),
        ("x_bytes", "gauge", "", vec![]),
        ("x_bytes_total", "untyped", "", vec![]),
        ("x_bytes", "untyped", "", vec![]),
        (
            "x_bytes_bucket",
            "gauge",
            "",
            vec!["non-histogram metrics should not have \"_bucket\" suffix".into()],
        ),
        ("x_bytes_count", "gauge", "", vec![format!("{neither} \"_count\" suffix")]),
        ("x_bytes_sum", "gauge", "", vec![format!("{neither} \"_sum\" suffix")]),
        ("x_bytes", "gauge", "{le=\"1\"}", vec![le.into()]),
        ("x_bytes", "gauge", "{quantile=\"1\"}", vec![quantile.into()]),
        ("x_bytes", "untyped", "{quantile=\"1\",le=\"1\"}", vec![]),
        ("http_requests_counter", "counter", "", vec![NO_TOTAL.into(), in_name("counter")]),
        ("instance_memory_limit_bytes_gauge", "gauge", "", vec![in_name("gauge")]),
        ("request_duration_seconds_summary", "summary", "", vec![in_name("summary")]),
        ("request_duration_seconds_histogram", "histogram", "", vec![in_name("histogram")]),
        ("request_duration_seconds_HISTOGRAM", "histogram", "", vec![in_name("histogram")]),
        ("instance_memory_limit_gauge_bytes", "gauge", "", vec![in_name("gauge")]),
        (
            "a_gauge_histogram_b",
            "gaugehistogram",
            "",
            vec![in_name("gauge_histogram"), ABBREVIATED.into()],
        ),
        ("gauge_bytes", "gauge", "", vec![]),
        (
            "request_duration::_seconds",
            "histogram",
            "",
            vec!["metric names should not contain ':'".into()],
        ),
        ("requestDuration_seconds", "histogram", "", vec![format!("metric names {snake_case}")]),
        (
            "request_duration_seconds",
            "histogram",
            "{httpService=\"foo\"}",
            vec![format!("label names {snake_case}")],
        ),
        ("instance_memory_limit_MB", "gauge", "", vec![ABBREVIATED.into()]),
        ("request_sec_duration", "gauge", "", vec![ABBREVIATED.into()]),
        ("s_duration", "gauge", "", vec![]),
        ("x_h_ms", "gauge", "", vec![ABBREVIATED.into(); 2]),
    ] {
        let expected: Vec<(String, String)> =
            expected.into_iter().map(|text| (name.to_owned(), text)).collect();
        assert_eq!(problems(&metric(name, kind, labels))?, expected, "{name} {kind} {labels}");
    }
    for unit in ["b", "kb", "mb", "gb", "tb", "pb", "s", "ms", "us", "ns", "sec", "m", "h", "d"] {
        let name = format!("request_duration_{unit}");
        let expected = [(name.clone(), ABBREVIATED.to_owned())];
        assert_eq!(problems(&metric(&name, "gauge", ""))?, expected, "{unit}");
    }
    Ok(())
}

/// Cases of upstream's test TestLintMetricUnits.
#[test]
fn units_are_base_units() -> TestResult {
    for unit in [
        "amperes", "bytes", "grams", "celsius", "meters", "metres", "moles", "seconds", "joules",
        "kelvin", "volts",
    ] {
        assert_eq!(problems(&metric(&format!("x_{unit}"), "untyped", ""))?, [], "{unit}");
    }
    for (unit, base) in [
        ("milliamperes", "amperes"),
        ("gigabytes", "bytes"),
        ("kilograms", "grams"),
        ("nanocelsius", "celsius"),
        ("kilometers", "meters"),
        ("picometers", "meters"),
        ("microseconds", "seconds"),
        ("minutes", "seconds"),
        ("hours", "seconds"),
        ("days", "seconds"),
        ("kelvins", "kelvin"),
        ("fahrenheit", "celsius"),
        ("rankine", "celsius"),
        ("inches", "meters"),
        ("yards", "meters"),
        ("miles", "meters"),
        ("bits", "bytes"),
        ("calories", "joules"),
        ("pounds", "grams"),
        ("ounces", "grams"),
    ] {
        let name = format!("x_{unit}");
        let text = format!("use base unit \"{base}\" instead of \"{unit}\"");
        assert_eq!(problems(&metric(&name, "untyped", ""))?, [(name, text)], "{unit}");
    }
    Ok(())
}

/// Upstream: TestLintNoHelpText, TestLintDuplicateMetric, and the whole histograms and summaries of
/// TestLintHistogramSummaryReserved.
#[test]
fn whole_families_are_judged_as_upstream_judges_them() -> TestResult {
    let quantile = "non-summary metrics should not have \"quantile\" label";
    let le = "non-histogram metrics should not have \"le\" label";
    for (text, expected) in [
        ("# TYPE go_goroutines gauge\ngo_goroutines 24\n", &[("go_goroutines", NO_HELP)][..]),
        (
            "# HELP go_goroutines\n# TYPE go_goroutines gauge\ngo_goroutines 24\n\
             # TYPE go_threads gauge\ngo_threads 10\n",
            &[("go_goroutines", NO_HELP), ("go_threads", NO_HELP)],
        ),
        ("# HELP a Text.\n# TYPE a gauge\na 24\n", &[]),
        // A family without samples is not judged.
        ("# TYPE a counter\n", &[]),
        (
            "# HELP h Text.\n# TYPE h histogram\nh_bucket{le=\"0.005\",quantile=\"0.01\"} 0\n\
             h_bucket{le=\"+Inf\",quantile=\"0.01\"} 69\nh_sum 28.7\nh_count 69\n",
            &[("h", quantile)],
        ),
        (
            "# HELP q Text.\n# TYPE q summary\nq{quantile=\"0\",le=\"0.01\"} 4e-05\n\
             q{quantile=\"1\",le=\"0.01\"} 0.02\nq_sum 1.7\nq_count 5962\n",
            &[("q", le)],
        ),
        (
            "# HELP h Text.\n# TYPE h histogram\nh_bucket{le=\"0.005\"} 0\n\
             h_bucket{le=\"+Inf\"} 69\nh_sum 28.7\nh_count 69\n",
            &[],
        ),
        (
            "# HELP q Text.\n# TYPE q summary\nq{quantile=\"0\"} 4e-05\nq{quantile=\"1\"} 0.02\n\
             q_sum 1.7\nq_count 5962\n",
            &[],
        ),
        (
            "# HELP a_total Text.\n# TYPE a_total counter\na_total{bar=\"abc\", spam=\"xyz\"} 1\n\
             a_total{bar=\"abc\", spam=\"xyz\"} 2\n",
            &[("a_total", "metric not unique")],
        ),
        // Another order of labels makes another series, as in upstream.
        ("# HELP a Text.\na{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 2\n", &[]),
    ] {
        let own = |(metric, text): &(&str, &str)| ((*metric).to_owned(), (*text).to_owned());
        let expected: Vec<(String, String)> = expected.iter().map(own).collect();
        assert_eq!(problems(text)?, expected, "{text}");
    }
    Ok(())
}

/// Messages as promtool 3.15 writes them.
#[test]
fn what_cannot_be_read_is_named_in_upstreams_words() {
    for (text, line, what) in [
        ("x 1", 1, "unexpected end of input stream"),
        ("# TYPE x gauge\n#", 2, "unexpected end of input stream"),
        ("# HELP x a\n# HELP x b\n", 2, "second HELP line for metric name \"x\""),
        (
            "x 1\n# TYPE x gauge\n",
            2,
            "second TYPE line for metric name \"x\", or TYPE reported after samples",
        ),
        ("# TYPE x info\n", 1, "unknown metric type \"info\""),
        ("# TYPE x{ gauge\n", 1, "invalid metric name in comment"),
        ("# HELP x a\\q\n", 1, "invalid escape sequence '\\q'"),
        ("1x 1\n", 1, "invalid metric name"),
        ("{} 1\n", 1, "invalid metric name"),
        ("{\"a.b\"} 1\n", 1, "invalid metric name \"a.b\""),
        ("x{\"a.b\"=\"c\"} 1\n", 1, "invalid label name \"a.b\""),
        ("x{,} 1\n", 1, "invalid label name for metric \"x\""),
        ("x{__name__=\"y\"} 1\n", 1, "label name \"__name__\" is reserved"),
        ("x{a=\"b\",a=\"c\"} 1\n", 1, "duplicate label names for metric \"x\""),
        ("x{a} 1\n", 1, "expected '=' after label name, found '}'"),
        ("{x,y} 1\n", 1, "multiple metric names for metric \"x\""),
        ("{x 1\n", 1, "unexpected end of metric name '1'"),
        ("x{a=b} 1\n", 1, "expected '\"' at start of label value, found 'b'"),
        ("x{a=\"b\n\"} 1\n", 1, "label value \"b\" contains unescaped new-line"),
        ("\"x\n\" 1\n", 1, "metric name \"x\" contains unescaped new-line"),
        ("x{a=\"b\" c=\"d\"} 1\n", 1, "unexpected end of label value \"b\""),
        ("x\n", 1, "expected float as value, got \"\""),
        ("x 0x1p3\n", 1, "expected float as value, got \"0x1p3\""),
        ("x 1 \n", 1, "expected integer as timestamp, got \"\""),
        ("x 1 1.5\n", 1, "expected integer as timestamp, got \"1.5\""),
        ("x 1 2 3\n", 1, "spurious string after timestamp: \" 3\""),
        (
            "# TYPE h histogram\nh_bucket{le=\"x\"} 1\n",
            2,
            "expected float as value for 'le' label, got \"x\"",
        ),
        (
            "# TYPE q summary\nq{quantile=\"x\"} 1\n",
            2,
            "expected float as value for 'quantile' label, got \"x\"",
        ),
        ("# TYPE h histogram\nh_count -1\n", 2, "negative count for histogram \"h\""),
        (
            "# TYPE h histogram\nh_bucket{le=\"1\"} -1\n",
            2,
            "negative bucket population for histogram \"h\"",
        ),
    ] {
        let expected = format!("text format parsing error in line {line}: {what}");
        assert_eq!(problems(text).map_err(|error| error.to_string()), Err(expected), "{text}");
    }
    // Upstream adds these labels to the previous sample.
    let error = problems("x 1\n{a=\"b\"} 1\n").map_err(|error| error.to_string());
    let expected = "text format parsing error in line 2: invalid metric name";
    assert_eq!(error, Err(expected.to_owned()));
}

/// The table as promtool 3.15 prints it, whose order of equal numbers is random.
#[test]
fn series_are_counted_and_shown_as_promtool_shows_them() -> TestResult {
    let text = "# TYPE h histogram\nh_bucket{a=\"1\",le=\"1\"} 1\nh_bucket{le=\"+Inf\",a=\"1\"} 1\n\
                h_bucket{a=\"2\",le=\"1\"} 1\n# TYPE q summary\nq{quantile=\"0.5\"} 1\nq_count 1\n\
                {\"a.b\"} 1\nlonger_than_a_heading 1\nlonger_than_a_heading{x=\"1\"} 1\n";
    let families = Families::read(text.as_bytes(), NameValidation::Utf8)?;
    let expected = "Metric                   Cardinality    Percentage    \n\
                    h                        8              57.14%        \n\
                    q                        3              21.43%        \n\
                    longer_than_a_heading    2              14.29%        \n\
                    a.b                      1              7.14%         \n\
                    Total                    14             100%          \n";
    assert_eq!(families.cardinality().to_string(), expected);
    let none = Families::read(&b""[..], NameValidation::Utf8)?.cardinality();
    let expected =
        "Metric    Cardinality    Percentage    \nTotal     0              100%          \n";
    assert_eq!(none.to_string(), expected);
    Ok(())
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "([ -~]|\\PC){0,60}\n", pieces in "[a{}\"=,#_ \n1]{0,80}") {
        for text in [text, pieces] {
            if let Ok(families) = Families::read(text.as_bytes(), NameValidation::Utf8) {
                families.problems();
                families.cardinality();
            }
        }
    }
}
