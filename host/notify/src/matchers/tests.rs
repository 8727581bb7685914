//! Expectations are facts of upstream's tables: `matcher/parse/parse_test.go`,
//! `pkg/labels/parse_test.go` and `matcher/compat/parse_test.go`.

use super::*;
use MatchOp::{Equal, NotEqual, NotRegex, Regex};
use proptest::prelude::*;

type Expected<'a> = &'a [(&'a str, MatchOp, &'a str)];

fn triples(matchers: &Matchers) -> Vec<(&str, MatchOp, &str)> {
    matchers.iter().map(|matcher| (matcher.name(), matcher.op(), matcher.value())).collect()
}

fn assert_read(text: &str, expected: Expected<'_>) {
    let matchers = Matchers::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(triples(&matchers), expected, "{text}");
}

#[test]
fn lists_are_read_as_by_upstream() {
    let cases: &[(&str, Expected<'_>)] = &[
        ("", &[]),
        ("{}", &[]),
        ("{foo=bar,}", &[("foo", Equal, "bar")]),
        ("foo!=bar,", &[("foo", NotEqual, "bar")]),
        ("{foo=~[a-z]+}", &[("foo", Regex, "[a-z]+")]),
        ("{foo!~[a-z]+}", &[("foo", NotRegex, "[a-z]+")]),
        ("{foo=🙂bar}", &[("foo", Equal, "🙂bar")]),
        ("{\"foo\"=~\"\\\\d+\"}", &[("foo", Regex, "\\d+")]),
        ("{\"foo\"=\"\\xf0\\x9f\\x99\\x82\"}", &[("foo", Equal, "🙂")]),
        ("{\"foo\"=\"\\U0001f642\"}", &[("foo", Equal, "🙂")]),
        ("{\"foo\"=\"bar\\n\\t\\\"\\\\\\101\"}", &[("foo", Equal, "bar\n\t\"\\A")]),
        ("\"a name\"=\"bar\"", &[("a name", Equal, "bar")]),
        ("{Σ=\"bar\"}", &[("Σ", Equal, "bar")]),
        (
            " { foo = \"bar\" , dings != \"bums\", } ",
            &[("foo", Equal, "bar"), ("dings", NotEqual, "bums")],
        ),
        ("{foo=\"bar,quux\", job=\"job1\"}", &[("foo", Equal, "bar,quux"), ("job", Equal, "job1")]),
        ("{foo=~\"a{2,3}\"}", &[("foo", Regex, "a{2,3}")]),
    ];
    for (text, expected) in cases {
        assert_read(text, expected);
    }
}

#[test]
fn what_only_the_older_syntax_has_is_read() {
    let cases: &[(&str, Expected<'_>)] = &[
        // Each brace is optional by itself.
        ("{", &[]),
        ("}", &[]),
        ("foo=bar}", &[("foo", Equal, "bar")]),
        ("{foo='}", &[("foo", Equal, "'")]),
        ("{foo=\\\"}", &[("foo", Equal, "\"")]),
        ("tricky=~~~", &[("tricky", Regex, "~~")]),
        ("trickier==\\\\=\\=\\\"", &[("trickier", Equal, "=\\=\\=\"")]),
        ("{foo=bar}}", &[("foo", Equal, "bar}")]),
        ("{foo=,bar=}}", &[("foo", Equal, ""), ("bar", Equal, "}")]),
        ("{foo=bar\\n}", &[("foo", Equal, "bar\n")]),
        ("{foo=bar\\t}", &[("foo", Equal, "bar\\t")]),
        ("{foo=bar\\}", &[("foo", Equal, "bar\\")]),
        ("job=", &[("job", Equal, "")]),
        ("{foo=", &[("foo", Equal, "")]),
        ("foo=bar baz", &[("foo", Equal, "bar baz")]),
        ("{foo=\"bar\\w\"}", &[("foo", Equal, "bar\\w")]),
        (
            "contains_quote != \"\\\"\" , contains_comma !~ \"foo,bar\" , ",
            &[("contains_quote", NotEqual, "\""), ("contains_comma", NotRegex, "foo,bar")],
        ),
        // Both read it; the older meaning holds.
        ("foo=\"\\t\"", &[("foo", Equal, "\\t")]),
    ];
    for (text, expected) in cases {
        assert_read(text, expected);
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, expected) in [
        (",", "bad matcher format: , (column 1: expected label name)"),
        ("{,}", "bad matcher format: {,} (column 2: expected label name)"),
        ("\"a\"=b}", "(column 6: expected opening brace)"),
        ("{\"ä\"=b", "(column 7: expected close brace)"),
        ("{}x", "(column 3: expected end of input)"),
        ("{foo bar}", "(column 6: expected an operator such as '=', '!=', '=~' or '!~')"),
        ("\"a\"!b", "(column 5: expected one of '=~')"),
        ("\"a\"=\"\\w\"", "(column 6: invalid escape sequence)"),
        ("\"a\"=\"\\xf0\\x9f\"", "(column 5: the text in quotes is not valid UTF-8)"),
        ("\"a\"=\"b", "(column 5: missing end \")"),
        ("job=\"value", "matcher value contains unescaped double quote: \"value"),
        ("job=value\"", "matcher value contains unescaped double quote: value\""),
        ("{\"\"=a}", "invalid label name \"\""),
        (
            "{foo=~\"invalid[regexp\"}",
            "invalid regular expression \"invalid[regexp\": error parsing",
        ),
        ("a=~\"\\\\pL{1000}\"", "invalid regular expression \"\\\\pL{1000}\""),
    ] {
        let error = Matchers::parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let long = format!("a={}", "b".repeat(TEXT_BYTES_MAX));
    let bytes = TEXT_BYTES_MAX + 2;
    assert_eq!(Matchers::parse(&long), Err(MatchersError::TooLong { bytes }));
}

#[test]
fn a_single_matcher_has_no_braces() {
    let one = |text: &str| Matcher::parse(text).map(|matcher| matcher.to_string());
    assert_eq!(one("foo=bar"), Ok("foo=\"bar\"".to_owned()));
    // The older syntax has no end of a value but that of the text.
    assert_eq!(one("foo=bar,bar=baz"), Ok("foo=\"bar,bar=baz\"".to_owned()));
    assert!(one("\"a\"=b,\"c\"=d").is_err());
    for text in ["{foo=bar}", "{foo=bar", "foo=bar}"] {
        assert_eq!(one(text), Err(MatchersError::Brace(text.to_owned())));
    }
    assert!(one("").is_err() && one("foo").is_err());
}

#[test]
fn all_matchers_must_match_whole_values() {
    let labels = LabelSet::new([("alertname", "DiskFull"), ("job", "node")]);
    for (text, expected) in [
        ("", true),
        ("job=node", true),
        ("job=node,alertname=Other", false),
        ("job!=node", false),
        ("job=~no", false),
        ("job=~\"no..\"", true),
        ("job!~\"no..\"", false),
        ("alertname=~\"Disk|Full\"", false),
        // An absent label is empty.
        ("team=\"\"", true),
        ("team!=\"\"", false),
        ("team!=a", true),
        ("team=~\".*\"", true),
        ("team=~\".+\"", false),
        ("team!~\".+\"", true),
    ] {
        let matchers = Matchers::parse(text).expect(text);
        assert_eq!(matchers.matches(&labels), expected, "{text}");
    }
}

#[test]
fn a_label_is_asked_for_by_a_value_that_it_must_have() {
    for (text, expected) in [
        ("alertname=DiskFull", true),
        ("severity=page,alertname=~\"Disk.*\"", true),
        ("alertname=~\".+\"", true),
        ("", false),
        ("severity=page", false),
        ("alertname=\"\"", false),
        ("alertname=~\".*\"", false),
        ("alertname!=Watchdog", false),
        ("alertname!~\"Watch.*\"", false),
        ("alertname!=\"\"", false),
    ] {
        assert_eq!(Matchers::parse(text).expect(text).asks_for("alertname"), expected, "{text}");
    }
}

fn op() -> impl Strategy<Value = MatchOp> {
    prop::sample::select(vec![Equal, NotEqual, Regex, NotRegex])
}

proptest! {
    #[test]
    fn what_is_shown_is_read_back(
        parts in prop::collection::vec((".{1,6}", op(), "\\PC{0,8}|[\\\\\"\n{},= ]{0,6}"), 0..4)
    ) {
        let made = parts.iter().map(|(name, op, value)| Matcher::new(*op, name, value));
        // Other values are no expressions.
        if let Ok(matchers) = made.collect::<Result<Vec<_>, _>>().map(Matchers::of) {
            prop_assert_eq!(Matchers::parse(&matchers.to_string()), Ok(matchers));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a{}=!~,\"\\\\ nxuU0-9ä']{0,24}|.{0,40}") {
        let _ = (Matchers::parse(&text), Matcher::parse(&text));
    }
}
