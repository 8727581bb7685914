//! Lines of every kind, lines that are none, and bytes of no kind at all.

use super::TextFormat::{Openmetrics, Prometheus};
use super::*;
use proptest::prelude::*;

type TestResult = Result<(), LineError>;

fn sample(line: &str, format: TextFormat) -> Result<SampleLine<'_>, LineError> {
    match parse_line(line, format)? {
        Event::Sample(sample) => Ok(sample),
        _ => Err(LineError { what: "no sample", offset: 0 }),
    }
}

fn labels(line: &str, format: TextFormat) -> Result<Vec<(String, String)>, LineError> {
    sample(line, format)?.labels()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn series_of_every_shape() -> TestResult {
    for format in [Openmetrics, Prometheus] {
        assert_eq!(labels("up 1", format)?, pairs(&[("__name__", "up")]));
        assert_eq!(labels("up{} 1", format)?, pairs(&[("__name__", "up")]));
        assert_eq!(
            labels(r#":a{b="c",A="\"\\\n\x}",e="",} 1"#, format)?,
            pairs(&[("A", "\"\\\n\\x}"), ("__name__", ":a"), ("b", "c")])
        );
        assert_eq!(
            labels(r#"{"a.\"b","c d"="é"} 1"#, format)?,
            pairs(&[("__name__", "a.\"b"), ("c d", "é")])
        );
    }
    let spaced = labels("up { a = \"b\" , c = \"d\" } 1", Prometheus);
    assert!(spaced.is_err(), "no space before the brace: {spaced:?}");
    assert_eq!(
        labels("  up{ a = \"b\" , c=\"d\" }\t 1", Prometheus)?,
        pairs(&[("__name__", "up"), ("a", "b"), ("c", "d")])
    );
    Ok(())
}

#[test]
fn samples_of_both_formats() -> TestResult {
    let line = sample("a_total 1.5 1700000000.123 # {t=\"x\"} 0.5 1700000001", Openmetrics)?;
    assert_eq!((line.value, line.timestamp_ms), (1.5, Some(1_700_000_000_123)));
    let exemplar = line.exemplar.ok_or(LineError { what: "no exemplar", offset: 0 })?;
    assert_eq!(exemplar.labels, pairs(&[("t", "x")]));
    assert_eq!((exemplar.value, exemplar.timestamp_ms), (0.5, Some(1_700_000_001_000)));
    let line = sample("a_bucket{le=\"1\"} 1 # {} 2", Openmetrics)?;
    assert_eq!((line.timestamp_ms, line.exemplar.is_some()), (None, true));
    let line = sample("a{b=\"# {\"}  +Inf\t1700000000123 ", Prometheus)?;
    assert_eq!((line.value, line.timestamp_ms), (f64::INFINITY, Some(1_700_000_000_123)));
    Ok(())
}

#[test]
fn what_else_a_line_says() -> TestResult {
    let family = || "a_seconds".to_owned();
    assert_eq!(
        parse_line("# TYPE a_seconds counter", Openmetrics)?,
        Event::Type { family: family(), kind: "counter" }
    );
    assert_eq!(
        parse_line("# HELP a_seconds x \\\\ \\n y", Openmetrics)?,
        Event::Help { family: family(), help: "x \\ \n y".into() }
    );
    assert_eq!(
        parse_line("# UNIT a_seconds seconds", Openmetrics)?,
        Event::Unit { family: family(), unit: "seconds" }
    );
    assert_eq!(
        parse_line("# TYPE \"a.b\" gauge", Openmetrics)?,
        Event::Type { family: "a.b".into(), kind: "gauge" }
    );
    assert_eq!(
        parse_line("# HELP a_seconds", Openmetrics)?,
        Event::Help { family: family(), help: String::new() }
    );
    assert_eq!(parse_line("# EOF", Openmetrics)?, Event::End);
    for comment in ["", "  ", "#", "# anything", "#TYPEx", "# EOF"] {
        assert_eq!(parse_line(comment, Prometheus)?, Event::Comment, "{comment:?}");
    }
    assert_eq!(
        parse_line("#  TYPE\ta_seconds  untyped ", Prometheus)?,
        Event::Type { family: family(), kind: "untyped" }
    );
    Ok(())
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    for (line, offset) in [
        ("", 0),
        ("1a 1", 0),
        ("a", 1),
        ("a 1 ", 4),
        ("a  1", 2),
        ("a x", 2),
        ("a 1 x", 4),
        ("a 1 1 1", 5),
        ("a{b=\"c} 1", 4),
        ("a{b=\"c\" 1", 9),
        ("# foo", 1),
        ("# TYPE a foo", 9),
        ("# TYPE", 1),
        ("# UNIT a_b c", 11),
        ("a 1 # {x=\"y\"}", 13),
        ("a 1 1 # {x=\"y\"} z", 16),
        ("a 1 1 # {\"x\"} 1", 12),
    ] {
        let refused = parse_line(line, Openmetrics).err().map(|error| error.offset);
        assert_eq!(refused, Some(offset), "{line:?}");
    }
    for series in
        ["{b=\"c\"}", "{}", "a{b}", "a{b=c}", "a{b=\"c\",b=\"d\"}", "a{\"x\"}", "a{b=\"c\";}"]
    {
        let line = format!("{series} 1");
        assert!(labels(&line, Openmetrics).is_err(), "{series:?}");
        assert!(labels(&line, Prometheus).is_err(), "{series:?}");
    }
}

#[test]
fn texts_end_where_they_say() {
    let read = |text: &str, format| {
        let mut reader = TextReader::new(text.as_bytes(), format);
        let mut events = 0;
        loop {
            match reader.next_event() {
                Ok(Some(_)) => events += 1,
                Ok(None) => return Ok(events),
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    assert_eq!(read("a 1\n# EOF\n", Openmetrics), Ok(2));
    assert_eq!(read("a 1\n# EOF", Openmetrics), Ok(2));
    assert_eq!(read("a 1\n\na 2", Prometheus), Ok(3));
    let refused = |text, format| read(text, format).err().unwrap_or_default();
    assert!(refused("a 1\n", Openmetrics).contains("without `# EOF`"));
    assert!(refused("# EOF\na 1\n", Openmetrics).contains("line 2"));
    assert!(
        refused("a 1\na x\n# EOF\n", Openmetrics)
            .starts_with("line 2: this is not a value at byte 2")
    );
    let long = format!("a{{b=\"{}\"}} 1\n", "x".repeat(LINE_BYTES_MAX));
    assert!(refused(&long, Prometheus).contains("longer than"));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in [Openmetrics, Prometheus] {
            let mut reader = TextReader::new(bytes.as_slice(), format);
            while let Ok(Some(_)) = reader.next_event() {}
        }
    }

    #[test]
    fn almost_lines_are_survived(line in r#"[#ab_{}"=,\\ \t019.:n]{0,40}"#) {
        for format in [Openmetrics, Prometheus] {
            if let Ok(Event::Sample(sample)) = parse_line(&line, format) {
                let _ = sample.labels();
            }
        }
    }

    #[test]
    fn what_is_escaped_comes_back(value in any::<String>()) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let line = format!("a{{b=\"{escaped}\"}} 1");
        let read = labels(&line, Openmetrics).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let found = read.iter().find(|(name, _)| name == "b").map(|(_, value)| value.as_str());
        prop_assert_eq!(found.unwrap_or_default(), value);
    }
}
