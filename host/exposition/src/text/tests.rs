//! Lines of every kind, invalid lines, and arbitrary bytes.

use super::{TextParser, TextReader};
use crate::TextFormat::{Openmetrics, Prometheus};
use crate::*;
use proptest::prelude::*;
use std::borrow::Cow;

/// Calls `look` with the only item of a line.
fn with_item<T>(
    line: &str,
    format: TextFormat,
    look: impl FnOnce(Item<'_>) -> T,
) -> Result<T, ParseError> {
    let mut parser = TextParser::new(format);
    parser.feed(line.as_bytes());
    parser.feed(b"\n");
    match parser.next()? {
        Some(item) => Ok(look(item)),
        None => Err(ParseError::NoEnd { lines: 0 }),
    }
}

fn labels(line: &str, format: TextFormat) -> Result<LabelPairs, String> {
    let labels = with_item(line, format, |item| match item {
        Item::Sample(sample) => sample.series.labels().map_err(|error| error.to_string()),
        other => Err(format!("{other:?}")),
    });
    labels.map_err(|error| error.to_string())?
}

fn pairs(pairs: &[(&str, &str)]) -> LabelPairs {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

type Numbers = (f64, Option<i64>, Option<(LabelPairs, f64, Option<i64>)>);

fn numbers(line: &str, format: TextFormat) -> Option<Numbers> {
    let numbers = with_item(line, format, |item| match item {
        Item::Sample(sample) => {
            let exemplar = sample.exemplar.map(|e| (e.labels(), e.value, e.timestamp_ms));
            Some((sample.value, sample.timestamp_ms, exemplar))
        }
        _ => None,
    });
    numbers.ok().flatten()
}

#[test]
fn series_of_every_shape() {
    for format in [Openmetrics, Prometheus] {
        assert_eq!(labels("up 1", format), Ok(pairs(&[("__name__", "up")])));
        assert_eq!(labels("up{} 1", format), Ok(pairs(&[("__name__", "up")])));
        assert_eq!(
            labels(r#":a{b="c",A="\"\\\n\x}",e="",} 1"#, format),
            Ok(pairs(&[("A", "\"\\\n\\x}"), ("__name__", ":a"), ("b", "c")]))
        );
        assert_eq!(
            labels(r#"{"a.\"b","c d"="é"} 1"#, format),
            Ok(pairs(&[("__name__", "a.\"b"), ("c d", "é")]))
        );
    }
    let wanted = pairs(&[("__name__", "up"), ("a", "b"), ("c", "d")]);
    for line in [
        "  up{ a = \"b\" , c=\"d\" }\t 1",
        "up { a = \"b\" , c = \"d\" } 1",
        "up\t{a=\"b\" c=\"d\"}1",
        "up{a=\"b\"c=\"d\"} 1",
    ] {
        assert_eq!(labels(line, Prometheus), Ok(wanted.clone()), "{line:?}");
        assert!(labels(line, Openmetrics).is_err(), "{line:?}");
    }
    assert_eq!(
        labels("a{b=\"c\nd\\n\"} 1", Prometheus),
        Ok(pairs(&[("__name__", "a"), ("b", "c\nd\n")]))
    );
}

#[test]
fn samples_of_both_formats() {
    let exemplar = (pairs(&[("t", "x")]), 0.5, Some(1_700_000_001_000));
    assert_eq!(
        numbers("a_total 1.5 1700000000.123 # {t=\"x\"} 0.5 1700000001", Openmetrics),
        Some((1.5, Some(1_700_000_000_123), Some(exemplar)))
    );
    assert_eq!(
        numbers("a_bucket{le=\"1\"} 1 # {} 2", Openmetrics),
        Some((1.0, None, Some((Vec::new(), 2.0, None))))
    );
    assert_eq!(
        numbers("a{b=\"# {\"}  +Inf\t1700000000123 ", Prometheus),
        Some((f64::INFINITY, Some(1_700_000_000_123), None))
    );
}

#[test]
fn what_else_a_line_says() {
    let family = || Cow::Borrowed("a_seconds");
    let help = |help: &'static str| Item::Help { family: family(), help: help.into() };
    let kind = |kind| Item::Type { family: family(), kind };
    for (line, format, wanted) in [
        ("# TYPE a_seconds counter", Openmetrics, kind(MetricType::Counter)),
        ("# HELP a_seconds x \\\\ \\n \\\" y", Openmetrics, help("x \\ \n \" y")),
        ("# HELP a_seconds x \\\\ \\n \\\" y", Prometheus, help("x \\ \n \\\" y")),
        ("# HELP a_seconds ", Openmetrics, help("")),
        ("# HELP a_seconds", Prometheus, help("")),
        ("# HELP \t a_seconds  x ", Prometheus, help(" x ")),
        (
            "# UNIT a_seconds seconds",
            Openmetrics,
            Item::Unit { family: family(), unit: "seconds".into() },
        ),
        (
            "# TYPE \"a.b\" gauge",
            Openmetrics,
            Item::Type { family: "a.b".into(), kind: MetricType::Gauge },
        ),
        ("#  TYPE\ta_seconds untyped", Prometheus, kind(MetricType::Unknown)),
        ("# EOF", Openmetrics, Item::End),
    ] {
        let found = with_item(line, format, |item| assert_eq!(item, wanted, "{line:?}"));
        assert_eq!(found, Ok(()), "{line:?}");
    }
    for comment in ["#", "# anything", "#TYPEx", "# EOF", "# TYPE", "#HELP a b"] {
        let is_comment = with_item(comment, Prometheus, |item| item == Item::Comment);
        assert_eq!(is_comment, Ok(true), "{comment:?}");
    }
}

/// Regression: a line of a megabyte was kept whole with each target that sent one, and with each
/// error of an import.
#[test]
fn an_error_keeps_the_beginning_of_a_line() {
    for (letter, bytes) in [('a', 1), ('é', 2), ('\u{1f600}', 4)] {
        let line = format!("a {}", letter.to_string().repeat(LINE_BYTES_MAX / 8));
        let found = with_item(&line, Prometheus, |_| ());
        let Err(ParseError::Line { text, .. }) = &found else { panic!("{found:?}") };
        assert_eq!(text.chars().count(), 201, "of {bytes} bytes each");
        let shown = found.map_err(|error| error.to_string()).expect_err("it is wrong");
        assert!(shown.ends_with(" …") && shown.len() < 200 * bytes + 100, "{shown}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let column = |line: &str, format| match with_item(line, format, |_| ()) {
        Err(ParseError::Line { place, .. }) => Some(place.column),
        _ => None,
    };
    for (line, wanted) in [
        ("", 1),
        ("1a 1", 1),
        ("a", 2),
        ("a 1 ", 5),
        ("a  1", 3),
        ("a x", 3),
        ("a 1 x", 5),
        ("a 1 1 1", 6),
        ("a{b=\"c} 1", 5),
        ("a{b=\"c\" 1", 10),
        ("# foo", 2),
        ("# TYPE a foo", 10),
        ("# TYPE", 2),
        ("# HELP a", 9),
        ("# UNIT a_b c", 12),
        ("a 1 # {x=\"y\"}", 14),
        ("a 1 1 # {x=\"y\"} z", 17),
        ("a 1 1 # {\"x\"} 1", 13),
    ] {
        assert_eq!(column(line, Openmetrics), Some(wanted), "{line:?}");
    }
    for (line, wanted) in [
        ("a 1 -5", 5),
        ("# TYPE a  counter", 9),
        ("# TYPE a counter ", 9),
        ("a 1 1 x", 7),
        ("a{b=\"c\\\nd\"} 1", 7),
    ] {
        assert_eq!(column(line, Prometheus), Some(wanted), "{line:?}");
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
fn places_are_of_the_whole_text() {
    let text = "a 1\n\n# x\nb{c=\"d\ne\"f=\"g\nh\"} 1\n  i{j=\"k\"\"l\"} 1\nm{n=\"o\np\"} q\nr 1\n";
    let mut parser = TextParser::new(Prometheus);
    parser.feed(text.as_bytes());
    parser.end();
    let mut found = Vec::new();
    loop {
        match parser.next() {
            Ok(None) => break,
            Ok(Some(Item::Sample(sample))) => found.push(match sample.series.labels() {
                Ok(_) => format!("{:?}", sample.series.place()),
                Err(error) => error.to_string(),
            }),
            Ok(Some(_)) => {}
            Err(error) => found.push(error.to_string()),
        }
    }
    let place = |line, column| format!("{:?}", Some(TextPosition { line, column }));
    let wanted = [
        place(1, 1),
        place(4, 1),
        "the metric name is not given once at line 7, column 10".to_owned(),
        "line 9: this is not a value at column 5: \"p\\\"} q\"".to_owned(),
        // The next line is parsed alone.
        "line 9: this is not a value at column 2: \"p\\\"} q\"".to_owned(),
        place(10, 1),
    ];
    assert_eq!(found, wanted);
}

fn read(text: &str, format: TextFormat) -> Result<usize, String> {
    let mut reader = TextReader::new(text.as_bytes(), format);
    let mut items = 0;
    loop {
        match reader.next_item() {
            Ok(Some(_)) => items += 1,
            Ok(None) => return Ok(items),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[test]
fn texts_end_where_they_say() {
    assert_eq!(read("a 1\n# EOF\n", Openmetrics), Ok(2));
    assert_eq!(read("a 1\n# EOF", Openmetrics), Ok(2));
    assert_eq!(read("a 1\n \n# x\na 2", Prometheus), Ok(3));
    let refused = |text, format| read(text, format).err().unwrap_or_default();
    assert!(refused("a 1\n", Openmetrics).contains("without `# EOF`"));
    assert!(refused("# EOF\na 1\n", Openmetrics).contains("line 2"));
    assert!(
        refused("a 1\na x\n# EOF\n", Openmetrics)
            .starts_with("line 2: this is not a value at column 3")
    );
    let long = format!("a{{b=\"{}\"}} 1\n", "x".repeat(LINE_BYTES_MAX));
    assert!(refused(&long, Prometheus).contains("longer than"));
}

#[test]
fn an_open_string_ends_with_its_line() {
    let mut text = "a{b=\"c 1\n".to_owned();
    text.push_str(&"d 2\n".repeat(LINE_BYTES_MAX / 4 + 10));
    let mut reader = TextReader::new(text.as_bytes(), Prometheus);
    let first = reader.next_item().err().map(|error| error.to_string());
    let wanted = "line 1: a string does not end at column 5: \"a{b=\\\"c 1\"";
    assert_eq!(first.as_deref(), Some(wanted));
    let mut items = 0;
    while let Ok(Some(_)) = reader.next_item() {
        items += 1;
    }
    assert_eq!(items, LINE_BYTES_MAX / 4 + 10);
}

#[test]
fn hostile_pieces_cost_no_square() {
    // Each line break ends a piece, and a string is open at each: a sample of a whole line's
    // length.
    let mut parser = TextParser::new(Prometheus);
    parser.feed(b"a{");
    for _ in 0..LINE_BYTES_MAX / 6 - 10 {
        parser.feed(b"b=\"\n\",");
        assert_eq!(parser.next(), Ok(None));
    }
    parser.feed(b"} 1\n");
    parser.end();
    assert!(matches!(parser.next(), Ok(Some(Item::Sample(_)))));
}

/// Regression: 3 kB of gzip stopped all pushes for half an hour. Behind each of 400,000 lines of
/// five bytes, the string that it leaves open was searched in the next mebibyte. The test counts
/// the bytes examined, not the time.
#[test]
fn wrong_lines_with_open_strings_cost_no_square() {
    let line = b"{\"\\\"\n";
    let lines = 4 * LINE_BYTES_MAX / line.len();
    for piece_lines in [1, 1000, lines] {
        let mut parser = TextParser::new(Prometheus);
        let mut wrong = 0;
        let mut good = 0;
        let mut take = |parser: &mut TextParser| {
            loop {
                match parser.next() {
                    Ok(None) => break,
                    Ok(Some(_)) => good += 1,
                    Err(error) if error.is_line() => wrong += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        for piece in line.repeat(lines).chunks(piece_lines * line.len()) {
            parser.feed(piece);
            take(&mut parser);
        }
        parser.feed(b"a 1\n");
        parser.end();
        take(&mut parser);
        let text = (lines * line.len()) as u64;
        assert!(parser.in_vain() <= text + 5 * LINE_BYTES_MAX as u64, "{}", parser.in_vain());
        // The last line is valid.
        assert_eq!((wrong, good), (lines, 1));
    }
}

/// Regression: a wrong line of a mebibyte was copied into its error as a whole.
#[test]
fn an_error_holds_the_beginning_of_a_long_line() {
    let mut parser = TextParser::new(Prometheus);
    parser.feed(format!("a {}\n", "\u{e9}".repeat(LINE_BYTES_MAX / 4)).as_bytes());
    let error = parser.next().expect_err("no value");
    let shown =
        format!("line 1: this is not a value at column 3: \"a {}\" …", "\u{e9}".repeat(198));
    assert_eq!(error.to_string(), shown);
    let ParseError::Line { text, .. } = error else { panic!("{error}") };
    assert!(text.len() < 1000, "{}", text.len());
}

/// Returns the items of a text in pieces, as text.
fn in_pieces(text: &[u8], cuts: &[usize], format: TextFormat) -> Vec<String> {
    let mut parser = TextParser::new(format);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.push(text.len());
    cuts.sort_unstable();
    let mut found = Vec::new();
    let mut start = 0;
    for (at, cut) in cuts.iter().enumerate() {
        parser.feed(&text[start..*cut]);
        start = *cut;
        if at + 1 == cuts.len() {
            parser.end();
        }
        loop {
            match parser.next() {
                Ok(None) => break,
                Ok(Some(Item::Sample(sample))) => {
                    let labels = sample.series.labels();
                    let exemplar = sample.exemplar.as_ref().map(Exemplar::labels);
                    found.push(format!("{sample:?} {labels:?} {exemplar:?}"));
                }
                Ok(Some(item)) => found.push(format!("{item:?}")),
                Err(error) => {
                    found.push(error.to_string());
                    if !error.is_line() {
                        return found;
                    }
                }
            }
        }
    }
    assert_eq!(parser.bytes(), text.len() as u64);
    found
}

/// Valid lines, and lines that are nearly valid.
const LINES: &str = "([a-z#]{1,3}[ {}=\",0-9a-zA-Z#\\\\\n\t\u{e9}]{0,20}\n\
    |a\\{b=\"[\n\"\\\\,}=a]{0,8}\"?\\} 1\n\
    |# (TYPE|HELP) a (counter|x)\n\
    |a 1( 5)?( # \\{b=\"c\"\\} 1)?\n\
    |# EOF\n){0,12}";

/// Reads a text in two pieces where some series are known. Returns line, series and bits of the
/// value of samples without timestamps and exemplars, and other items whole. Also returns all
/// series.
fn with_known(
    text: &[u8],
    cut: usize,
    format: TextFormat,
    known: &[String],
) -> (Vec<String>, Vec<String>) {
    let mut parser = TextParser::new(format);
    let (mut found, mut all_series) = (Vec::new(), Vec::new());
    let (first, second) = text.split_at(cut % (text.len() + 1));
    for (piece, is_last) in [(first, false), (second, true)] {
        parser.feed(piece);
        if is_last {
            parser.end();
        }
        loop {
            let taken = known.iter().find_map(|series| {
                parser.take_known(series.as_bytes()).map(|value| (series, value))
            });
            if let Some((series, value)) = taken {
                found.push(format!("{} {series:?} {:x}", parser.line_number(), value.to_bits()));
                continue;
            }
            match parser.next() {
                Ok(None) => break,
                Ok(Some(Item::Sample(Sample {
                    series,
                    value,
                    timestamp_ms: None,
                    exemplar: None,
                    ..
                }))) => {
                    let series = series.text.to_owned();
                    let line = parser.line_number();
                    found.push(format!("{line} {series:?} {:x}", value.to_bits()));
                    all_series.push(series);
                }
                Ok(Some(item)) => found.push(format!("{item:?}")),
                Err(error) => {
                    found.push(error.to_string());
                    if !error.is_line() {
                        return (found, all_series);
                    }
                }
            }
        }
    }
    (found, all_series)
}

proptest! {
    #[test]
    fn known_series_say_the_same(text in LINES, other in LINES, cut in any::<usize>()) {
        for format in [Openmetrics, Prometheus] {
            let (expected, mut known) = with_known(text.as_bytes(), cut, format, &[]);
            known.extend(with_known(other.as_bytes(), 0, format, &[]).1);
            prop_assert_eq!(with_known(text.as_bytes(), cut, format, &known).0, expected);
        }
    }

    #[test]
    fn any_bytes_are_survived_in_any_pieces(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<usize>(), 0..5),
    ) {
        for format in [Openmetrics, Prometheus] {
            prop_assert_eq!(in_pieces(&bytes, &cuts, format), in_pieces(&bytes, &[], format));
        }
    }

    #[test]
    fn pieces_do_not_matter(
        text in LINES,
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        for format in [Openmetrics, Prometheus] {
            let (pieces, whole) =
                (in_pieces(text.as_bytes(), &cuts, format), in_pieces(text.as_bytes(), &[], format));
            prop_assert_eq!(pieces, whole);
            let every: Vec<usize> = (0..text.len()).collect();
            let (pieces, whole) =
                (in_pieces(text.as_bytes(), &every, format), in_pieces(text.as_bytes(), &[], format));
            prop_assert_eq!(pieces, whole);
        }
    }

    #[test]
    fn what_is_escaped_comes_back(value in any::<String>()) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let line = format!("a{{b=\"{escaped}\"}} 1");
        let read = labels(&line, Openmetrics).map_err(TestCaseError::fail)?;
        let found = read.iter().find(|(name, _)| name == "b").map(|(_, value)| value.as_str());
        prop_assert_eq!(found.unwrap_or_default(), value);
    }
}
