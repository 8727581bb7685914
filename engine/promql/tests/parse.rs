//! Parser and printer compared with upstream's cases, and our own limits.

use tidepool_promql::answer::push_tree;
use tidepool_promql::syntax::{LINE_BYTES_MAX, ParserOptions, parse};

/// Fields of the lines of a table; JSON strings are unquoted.
fn rows<const N: usize>(table: &str) -> Vec<[String; N]> {
    let field = |field: &str| match field.starts_with('"') {
        true => serde_json::from_str(field).expect("a JSON string"),
        false => field.to_owned(),
    };
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| line.split('\t').map(field).collect::<Vec<_>>();
    lines.map(|line| row(line).try_into().expect("the fields of a line")).collect()
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn upstreams_cases_parse_or_fail_as_upstream_says() {
    let options = ParserOptions { fill_modifiers: false, ..ParserOptions::all() };
    let mut wrong = Vec::new();
    for [input, start, end, kind, expected] in rows(include_str!("cases/parse.tsv")) {
        let found = match parse(&input, &options) {
            Ok(expr) => (expr.span, "ok", expr.to_string()),
            Err(error) => (error.span, "error", error.to_string()),
        };
        let (span, found_kind, text) = found;
        let place = (span.start.to_string(), span.end.to_string());
        if (place, found_kind, &text) != ((start.clone(), end.clone()), &kind, &expected) {
            let expected = format!("{start}..{end} {kind} {expected}");
            let found = format!("{}..{} {found_kind} {text}", span.start, span.end);
            wrong.push(format!("{input:?}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert_none(&wrong);
}

/// Prometheus' error for bytes that are not UTF-8. A caller with texts replaces them by U+FFFD.
#[test]
fn bytes_that_are_no_utf8_are_named_as_upstream_names_them() {
    for (bytes, expected) in [
        (&b"up{a=\"\xff\"}"[..], "1:6: parse error: invalid UTF-8 rune"),
        (b"label_replace(up,`b`,`c\xff`,`d`,`.*`)", "1:22: parse error: invalid UTF-8 rune"),
        (b"up\xff", "1:3: parse error: unexpected character: '\u{fffd}'"),
        (b"\xff\xfe+1", "1:1: parse error: unexpected character: '\u{fffd}'"),
        (b"1 + \xff", "1:5: parse error: unexpected character: '\u{fffd}'"),
        (b"sum by (\xff) (up)", "1:9: parse error: unexpected character: '\u{fffd}'"),
        (b"up{\xff=\"a\"}", "1:4: parse error: unexpected character inside braces: '\u{fffd}'"),
        (b"up[\xff]", "1:4: parse error: unexpected character in duration expression: '\u{fffd}'"),
    ] {
        let text = String::from_utf8_lossy(bytes);
        let error = parse(&text, &ParserOptions::all()).expect_err(&text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
    assert!(parse(&String::from_utf8_lossy(b"1 # \xff"), &ParserOptions::all()).is_ok());
}

#[test]
fn upstreams_cases_are_printed_as_upstream_prints_them() {
    let mut wrong = Vec::new();
    for [input, line, split, pretty] in rows(include_str!("cases/print.tsv")) {
        let expr = parse(&input, &ParserOptions::all()).expect("an expression");
        for (found, expected) in [
            (expr.to_string(), line),
            (expr.prettified(10), split),
            (expr.prettified(LINE_BYTES_MAX), pretty),
        ] {
            if found != expected {
                wrong.push(format!("{input:?}\n  expected {expected:?}\n  found    {found:?}"));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn trees_in_json_are_those_of_upstream() {
    let json = |text: &str| -> serde_json::Value { serde_json::from_str(text).expect("JSON") };
    let table = include_str!("cases/tree.tsv").lines().filter(|line| !line.starts_with('#'));
    for line in table {
        let (input, expected) = line.split_once('\t').expect("two fields");
        let input = json(input);
        let input = input.as_str().expect("a text");
        let expr = parse(input, &ParserOptions::all()).expect("an expression");
        let mut found = Vec::new();
        push_tree(&expr, &mut found);
        let found = String::from_utf8(found).expect("a text");
        assert_eq!(json(&found), json(expected), "{input}");
    }
}

#[test]
fn experiments_are_refused_unless_they_are_enabled() {
    let none = ParserOptions { duration_expressions: false, ..ParserOptions::default() };
    for (input, expected) in [
        ("info(up)", "1:1: parse error: function \"info\" is not enabled"),
        (
            "limitk(1, up)",
            "1:1: parse error: limitk() is experimental and must be enabled with \
             --enable-feature=promql-experimental-functions",
        ),
        ("a[5m] smoothed", "1:1: parse error: smoothed modifier is experimental and not enabled"),
        ("a anchored", "1:1: parse error: anchored modifier is experimental and not enabled"),
        (
            "a + fill(0) b",
            "1:1: parse error: binop fill modifiers are experimental and not enabled",
        ),
        ("a[1m+1m]", "1:3: parse error: experimental duration expression is not enabled"),
        ("a[step()]", "1:3: parse error: experimental duration expression is not enabled"),
    ] {
        let found = parse(input, &none).map_err(|error| error.to_string());
        assert_eq!(found.as_ref().map_err(String::as_str).err(), Some(expected), "{input}");
        assert!(parse(input, &ParserOptions::all()).is_ok(), "{input}");
    }
}

#[test]
fn what_is_beyond_the_limits_is_refused() {
    let options = ParserOptions::all();
    let wrapped = |count: usize| format!("{}1{}", "(".repeat(count), ")".repeat(count));
    let chain = |count: usize| vec!["a"; count].join("+");
    assert!(parse(&wrapped(100), &options).is_ok());
    assert!(parse(&chain(10_000), &options).is_ok());
    for (input, expected) in [
        (wrapped(100_000), "the expression is nested too deeply"),
        (chain(20_000), "more than 10000 operators follow one another"),
        ("-".repeat(100_000), "the expression is nested too deeply"),
        (format!("a[{}", "-".repeat(100_000)), "the expression is nested too deeply"),
        (format!("a{}", "[1m:]".repeat(10_000)), "the expression has too many levels"),
        (format!("a{}", "[1m+1m:]".repeat(10_000)), "the expression has too many levels"),
        // Upstream's case of eleven thousand errors, all of which upstream reports.
        (
            format!("({}){}", "-{}-1".repeat(10_000), "[1m:]".repeat(1_000)),
            "more than 10000 operators follow one another",
        ),
        (" ".repeat(2 << 20), "the expression has more than 1048576 bytes"),
        (r#"{a="\xff"}"#.to_owned(), r#""\xff" is no UTF-8"#),
    ] {
        let error = parse(&input, &options).expect_err("an error");
        assert_eq!(error.text, expected);
    }
}

/// Expressions within the limits fit the stack of a component.
#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    let nested = format!("{}a{}", "abs(-(".repeat(49), "))".repeat(49));
    let powers = vec!["a"; 190].join("^");
    let chain = vec!["a"; 990].join(" or ");
    let run = move || {
        for text in [nested, powers, chain] {
            let parsed = parse(&text, &ParserOptions::all());
            let printed = parsed.map(|expr| expr.prettified(LINE_BYTES_MAX).len());
            assert!(printed.is_ok_and(|bytes| bytes >= text.len()), "{text}");
        }
    };
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(run);
    small.expect("a thread").join().expect("no fault");
}

proptest::proptest! {
    /// Any text is parsed or refused, and a printed expression parses to one that prints the same.
    #[test]
    fn any_text_is_parsed_or_refused(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "a", "sum", "rate", "(", ")", "[", "]", "{", "}", ",", ":", "=", "=~", "!=", "\"b\"",
                "`c`", "'", "\\", "1", "5m", "0x1", "1e", ".", "+", "-", "^", "and", "on", "offset",
                "@", "start()", "step()", "by", "bool", "group_left", "fill(1)", "#", "\n", " ", "é",
            ]),
            0..24,
        ),
    ) {
        let text = parts.concat();
        if let Ok(expr) = parse(&text, &ParserOptions::all()) {
            let printed = expr.to_string();
            let again = parse(&printed, &ParserOptions::all()).map(|expr| expr.to_string());
            proptest::prop_assert_eq!(again, Ok(printed), "{}", text);
        }
    }
}
