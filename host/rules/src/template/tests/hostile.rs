//! Templates that would take much time, memory or stack.

use super::*;
use proptest::prelude::*;

/// Runs on a stack smaller than that of any thread here.
fn on_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let builder = std::thread::Builder::new().stack_size(1024 * 1024);
    builder.spawn(run).expect("a thread").join().expect("no panic")
}

fn reason(text: &str) -> Reason {
    let text = text.to_owned();
    on_small_stack(move || {
        let template = Template::of_alert("a", &text).expect("a template");
        match template.expand(&data(), &Answer(vec![]), &Limits::default()) {
            Err(TemplateError::Expansion(error)) => error.reason,
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn expansions_are_bounded() {
    let steps = Reason::Steps { steps_max: 1_000_000 };
    let output = Reason::Output { bytes_max: 256 * 1024 };
    let letters = "a".repeat(1000);
    for (text, expected) in [
        ("{{range 1000000000}}{{end}}", &steps),
        ("{{range 1000}}{{range 1000}}{{range 1000}}{{end}}{{end}}{{end}}", &steps),
        ("{{range 100000}}{{query \"up\"}}{{end}}", &steps),
        ("{{range $i := 100000}}{{match (printf \"a%d\" $i) \"b\"}}{{end}}", &steps),
        ("{{range 100000}}{{$x := printf \"%200000d\" 1}}{{end}}", &steps),
        (
            &format!(
                "{{{{range 100000}}}}{{{{$x := match \"(a?){{300}}b\" \"{letters}\"}}}}{{{{end}}}}"
            ),
            &steps,
        ),
        (
            &format!(
                "{{{{range 100000}}}}{{{{$x := (index (args) `1`){}}}}}{{{{end}}}}",
                ".a".repeat(10_000)
            ),
            &steps,
        ),
        (
            &format!(
                "{{{{range 100000}}}}{{{{$x := reReplaceAll \"\" \"{}\" \"{letters}\"}}}}{{{{end}}}}",
                "$9".repeat(10_000)
            ),
            &steps,
        ),
        ("{{range 1000000}}{{printf \"%1000d\" 1}}{{end}}", &output),
        ("{{printf \"%1000000d\" 1}}", &output),
        ("{{printf \"%.1000000f\" 1.5}}", &output),
        ("{{printf \"%.1000000d\" 1}}{{printf \"%-1000000s\" \"\"}}", &output),
        ("{{printf \"%*x\" 1000000 1.5}}", &output),
        ("{{printf \"%1000000U\" 1}}", &output),
        ("{{$x := \"ab\"}}{{range 100}}{{$x = printf \"%s%s\" $x $x}}{{end}}", &output),
        ("{{$x := \"ab\"}}{{range 100}}{{$x = reReplaceAll \"(.*)\" \"$1$1\" $x}}{{end}}", &output),
        ("{{$x := 1}}{{range 45}}{{$x = args $x $x}}{{end}}{{$x}}", &output),
        ("{{$x := 1}}{{range 45}}{{$x = args $x $x}}{{end}}{{printf \"%d\" $x}}", &output),
        (
            "{{$x := html (printf \"%200000s\" \"<\")}}{{html (reReplaceAll \" \" \"<\" $x)}}",
            &output,
        ),
        ("{{$x := 1}}{{range 1000}}{{$x = args $x}}{{end}}", &Reason::Nesting { nesting_max: 50 }),
        (
            "{{define \"a\"}}{{template \"a\" .}}{{end}}{{template \"a\" .}}",
            &Reason::Nesting { nesting_max: evaluate::NESTING_MAX },
        ),
    ] {
        assert_eq!(reason(text), *expected, "{text}");
    }
}

#[test]
fn recursion_through_everything_fits_a_small_stack() {
    let deep = "(or 0 (and 1 ".repeat(40) + "0" + &"))".repeat(40);
    let text = format!(
        "{{{{define \"a\"}}}}{{{{with 1}}}}{{{{if true}}}}{{{{range 1}}}}{{{{$x := {deep}}}}}\
         {{{{template \"a\" (printf \"%d\" (len (printf \"%v\" $x)))}}}}\
         {{{{end}}}}{{{{end}}}}{{{{end}}}}{{{{end}}}}{{{{template \"a\" .}}}}"
    );
    assert_eq!(reason(&text), Reason::Nesting { nesting_max: evaluate::NESTING_MAX });
}

#[test]
fn texts_that_nest_deep_are_refused() {
    for (open, inner, close) in [
        ("{{if 1}}", "", "{{end}}"),
        ("{{range 1}}", "x", "{{else}}{{end}}"),
        ("{{with 1}}{{else}}", "x", "{{end}}"),
        ("{{block \"a\" .}}", "", "{{end}}"),
    ] {
        let text = open.repeat(10_000) + inner + &close.repeat(10_000);
        let error = on_small_stack(move || Template::parse("a", &text).unwrap_err());
        assert!(matches!(error, TemplateError::Syntax { line: 1, .. }), "{open} {error}");
    }
    let parentheses = format!("{{{{{}1{}}}}}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(on_small_stack(move || Template::parse("a", &parentheses)).is_err());
    // As many as one likes stand beside each other.
    let chain = "{{if 0}}".to_owned() + &"{{else if 0}}".repeat(10_000) + "{{else}}x{{end}}";
    assert_eq!(expand(&chain, Value::None, vec![]).as_deref(), Ok("x"));
}

#[test]
fn long_texts_take_time_in_proportion() {
    let repeated = |part: &str| part.repeat(TEXT_BYTES_MAX / part.len());
    for text in [
        repeated("a"),
        repeated("{{1}}"),
        repeated("{{"),
        repeated("{{$x := 1}}"),
        repeated("{{/**/}}"),
        repeated("{{- 1 -}} "),
        format!(
            "{{{{{}1}}}}",
            repeated("1|print|")[..TEXT_BYTES_MAX - 10].trim_end_matches(|c| c != '|')
        ),
        format!("{{{{print {}}}}}", &repeated("1 ")[..TEXT_BYTES_MAX - 12]),
        format!("{{{{print .{}}}}}", &repeated("a.a")[..TEXT_BYTES_MAX - 12]),
        format!("{{{{\"{}\"}}}}", &repeated("\\n")[..TEXT_BYTES_MAX - 6]),
        repeated("\n{{ \"\n"),
    ] {
        assert!(text.len() <= TEXT_BYTES_MAX);
        if let Ok(template) = Template::parse("a", &text) {
            let _ = template.expand(&data(), &Answer(vec![]), &Limits::default());
        }
    }
    let variables: String = (0..30_000).map(|place| format!("{{{{$x{place} := 1}}}}")).collect();
    assert!(expand(&variables, Value::None, vec![]).is_ok());
    let error = Template::parse("a", &"a".repeat(TEXT_BYTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, TemplateError::TooLong { .. }));
}

proptest! {
    #[test]
    fn any_text_expands_or_fails(parts in prop::collection::vec(prop::sample::select(PARTS), 0..24)) {
        let text = parts.concat();
        if let Ok(template) = Template::of_alert("a", &text) {
            let answer = Answer(vec![sample(1.0, &[("a", "b")]), sample(2.0, &[])]);
            let _ = template.expand(&data(), &answer, &Limits::default());
        }
    }

    #[test]
    fn any_format_prints(format in "(%[-+# 0]{0,2}([0-9]{1,7}|\\*|\\[[0-9]?\\])?(\\.[0-9]{0,7}|\\.\\*)?[a-zA-Z%é]?){0,4}") {
        let text = format!("{{{{ printf `{format}` 5 $value -1 \"é\\n\" $labels nil (toTime now) . }}}}");
        let template = Template::of_alert("a", &text).expect("a template");
        let _ = template.expand(&data(), &Answer(vec![]), &Limits::default());
    }
}

const PARTS: &[&str] = &[
    "{{",
    "}}",
    "{{- ",
    " -}}",
    "{{end}}",
    "{{else}}",
    "{{if ",
    "{{range ",
    "{{with ",
    "{{define \"a\"}}",
    "{{template \"a\" .}}",
    "{{block \"a\" .}}",
    "{{break}}",
    "{{continue}}",
    "$x := ",
    "$x",
    "$x = ",
    "$i, $e := ",
    " ",
    "1",
    "-1",
    "1.5",
    "\"é\"",
    "`a`",
    "'a'",
    "nil",
    "true",
    ".",
    "$",
    "$labels",
    "$value",
    ".Labels",
    ".Value",
    ".x",
    "|",
    "(",
    ")",
    "query \"up\"",
    "first ",
    "args ",
    "printf \"%v %d %s\" ",
    "printf \"%5.2x\" ",
    "print ",
    "index ",
    "slice ",
    "len ",
    "eq ",
    "lt ",
    "and ",
    "or ",
    "not ",
    "toTime ",
    "toDuration ",
    ".Format \"2006\"",
    ".Add ",
    "humanize ",
    "humanizeTimestamp ",
    "title ",
    "match ",
    "reReplaceAll \"(.)\" \"$1-\" ",
    "html ",
    "js ",
    "stripDomain ",
    "/*",
    "*/",
    "\n",
    "x",
];
