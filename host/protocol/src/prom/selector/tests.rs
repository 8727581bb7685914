//! Selectors that Prometheus takes, and some that it refuses.

use super::*;

type Plain<'a> = (&'a str, MatchOp, &'a str);

fn parsed(text: &str) -> Result<Vec<(String, MatchOp, String)>, SelectorError> {
    let matchers = parse_selector(text)?;
    Ok(matchers.into_iter().map(|m| (m.name, m.op, m.value)).collect())
}

#[test]
fn what_prometheus_takes_is_taken() -> Result<(), SelectorError> {
    use MatchOp::{Equal, NotEqual, NotRegex, Regex};
    let cases: &[(&str, &[Plain<'_>])] = &[
        ("up", &[("__name__", Equal, "up")]),
        (" job:up:rate5m ", &[("__name__", Equal, "job:up:rate5m")]),
        ("up{}", &[("__name__", Equal, "up")]),
        ("{}", &[]),
        ("sum{by=\"x\"}", &[("__name__", Equal, "sum"), ("by", Equal, "x")]),
        (
            "up{job=\"x\",instance=~'a.*', a!=`b`,c!~\"d\",}",
            &[
                ("__name__", Equal, "up"),
                ("job", Equal, "x"),
                ("instance", Regex, "a.*"),
                ("a", NotEqual, "b"),
                ("c", NotRegex, "d"),
            ],
        ),
        ("{__name__=~\".+\"}", &[("__name__", Regex, ".+")]),
        ("{__name__!=\"\"}", &[("__name__", NotEqual, "")]),
        ("{\"my.metric\"}", &[("__name__", Equal, "my.metric")]),
        (
            "{\"my.metric\", \"my.label\" = \"ü\"}",
            &[("__name__", Equal, "my.metric"), ("my.label", Equal, "ü")],
        ),
        ("{ # a comment }\n a = \"b\" } # more", &[("a", Equal, "b")]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> =
            expected.iter().map(|(n, op, v)| ((*n).to_owned(), *op, (*v).to_owned())).collect();
        assert_eq!(parsed(text)?, expected, "{text}");
    }
    let escapes = r#"{a="\"\\\n\x41\102\u00e9\U0001F600\xc3\xa9",b='\'"',c=`\n`}"#;
    let values: Vec<String> = parsed(escapes)?.into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, ["\"\\\nABé😀é", "'\"", "\\n"]);
    Ok(())
}

#[test]
fn what_is_no_selector_is_refused_with_its_place() {
    for (text, column) in [
        ("", 1),
        ("{", 2),
        ("up{", 4),
        ("1up", 1),
        ("up offset 5m", 4),
        ("up[5m]", 3),
        ("up{a=\"b\"}[5m]", 10),
        ("up{a}", 5),
        ("up{a=b}", 6),
        ("up{a=\"b", 6),
        ("up{a=\"b\nc\"}", 6),
        ("up{a=\"b\" c=\"d\"}", 10),
        ("up{a=\"b\",,}", 10),
        ("up{a:b=\"x\"}", 5),
        ("up{a==\"x\"}", 6),
        ("up{a=\"\\q\"}", 8),
        ("up{a=\"\\'\"}", 8),
        ("up{a=\"\\x4\"}", 8),
        ("up{a=\"\\400\"}", 8),
        ("up{a=\"\\ud800\"}", 8),
        ("up{a=\"\\xff\"}", 6),
        ("up{é=\"x\"}", 4),
    ] {
        match parsed(text) {
            Err(SelectorError::Syntax { column: found, reason }) => {
                assert_eq!(found, column, "{text}: {reason}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn what_takes_series_without_the_label_is_known() -> Result<(), SelectorError> {
    for (selector, expected) in [
        ("{a=\"\"}", true),
        ("{a=\"b\"}", false),
        ("{a!=\"\"}", false),
        ("{a!=\"b\"}", true),
        ("{a=~\".*\"}", true),
        ("{a=~\".+\"}", false),
        ("{a=~\"b|\"}", true),
        ("{a=~\"(b?)(c*)\"}", true),
        ("{a=~\"b?c\"}", false),
        ("{a=~\"^$\"}", true),
        ("{a=~\"\\\\b\"}", false),
        ("{a=~\"\\\\B\"}", true),
        ("{a!~\".*\"}", false),
        ("{a!~\".+\"}", true),
        ("{a=~\"(\"}", false),
        ("{a!~\"(\"}", false),
        ("{a=~\"(?i)(?:x{0}|y{2,})\"}", true),
        ("{a=~\"x{1,2}[yz]*\"}", false),
        ("{a=~\"\\\\pL\"}", false),
    ] {
        let matchers = parse_selector(selector)?;
        assert_eq!(matchers.iter().all(matches_empty), expected, "{selector}");
    }
    Ok(())
}

/// Too many matchers are refused before all of them are parsed.
#[test]
fn matchers_are_counted_over_all_selectors() -> Result<(), SelectorError> {
    let with = |matchers: usize| format!("up{{{}}}", "a=\"\",".repeat(matchers));
    let read = |texts: &[String]| {
        let mut count = SelectionCount::default();
        texts.iter().try_for_each(|text| parse_counted(text, &mut count).map(drop))
    };
    read(&[with(199)])?;
    read(&[with(99), with(99)])?;
    read(&vec![with(0); 100])?;
    let unread = format!("up{{{}(", "a=\"\",".repeat(200));
    for refused in [vec![with(200)], vec![with(99), with(100)], vec![with(0); 101], vec![unread]] {
        let error = read(&refused);
        assert!(matches!(error, Err(SelectorError::TooMuch(_))), "{error:?}");
    }
    Ok(())
}
