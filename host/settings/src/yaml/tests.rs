//! Interpretation of values, and errors with their places.

use super::*;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Sample {
    text: String,
    optional: Option<String>,
    flag: bool,
    number: i32,
    #[serde(deserialize_with = "number::<_, _, 2, 5>")]
    bounded: u8,
    float: f64,
    texts: Vec<String>,
    kind: Kind,
    inner: Inner,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Inner {
    secret: String,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    PlainOne,
    Other,
}

fn sample(text: &str) -> Result<Sample, String> {
    load(text).and_then(|node| read("a", &node)).map_err(|error| error.to_string())
}

#[test]
fn values_are_what_is_expected() -> Result<(), String> {
    let all = "text: 0x10\noptional: 'null'\nflag: true\nnumber: -3\nbounded: 5\nfloat: 1e3\n\
               texts: [1, \"2\", true]\nkind: other\ninner:\n  secret: |\n    a\n    b\n";
    let expected = Sample {
        text: "0x10".into(),
        optional: Some("null".into()),
        flag: true,
        number: -3,
        bounded: 5,
        float: 1000.0,
        texts: ["1", "2", "true"].map(str::to_owned).to_vec(),
        kind: Kind::Other,
        inner: Inner { secret: "a\nb\n".into() },
    };
    assert_eq!(sample(all), Ok(expected));
    for nothing in [
        "",
        "# only this\n",
        "---\n",
        "~\n",
        "text:\noptional:\ntexts:\ninner: ~\n",
        "flag:\nnumber: ~\nfloat: NULL\n",
    ] {
        assert_eq!(sample(nothing), Ok(Sample::default()), "{nothing:?}");
    }
    Ok(())
}

/// Spellings of go-yaml, version 2 (`resolve.go` and `decode.go`).
#[test]
fn plain_values_are_spelled_as_in_go() {
    for text in ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"] {
        assert_eq!(sample(&format!("flag: {text}\n")).map(|read| read.flag), Ok(true), "{text}");
    }
    for text in ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"] {
        assert_eq!(sample(&format!("flag: {text}\n")).map(|read| read.flag), Ok(false), "{text}");
    }
    for (text, number) in [
        ("0b1010_0111_0100_1010_1110", 685_230),
        ("-0b101", -5),
        ("+685_230", 685_230),
        ("02472256", 685_230),
        ("0o2472256", 685_230),
        ("0x_0A_74_AE", 685_230),
        ("-0XF", -15),
        ("0", 0),
        ("08", 8),
        ("685.230_15e+03", 685_230),
        ("1.9", 1),
        ("-1.9", -1),
    ] {
        let read = sample(&format!("number: {text}\n")).map(|read| read.number);
        assert_eq!(read, Ok(number), "{text}");
    }
    for (text, number) in [
        (".5", 0.5),
        ("5.", 5.0),
        ("+1_0.5", 10.5),
        ("0x10", 16.0),
        ("18446744073709551616", 18_446_744_073_709_551_616.0),
        (".inf", f64::INFINITY),
        ("+.Inf", f64::INFINITY),
        ("-.INF", f64::NEG_INFINITY),
    ] {
        let read = sample(&format!("float: {text}\n")).map(|read| read.float);
        assert_eq!(read, Ok(number), "{text}");
    }
    assert!(sample("float: .NaN\n").is_ok_and(|read| read.float.is_nan()));
    for text in ["yes", "0x10", "2001-12-14", "2001-12-14t21:59:43.10-05:00", ".inf", "1_000"] {
        let read = sample(&format!("text: {text}\noptional: {text}\n"));
        let read = read.map(|read| (read.text, read.optional));
        assert_eq!(read, Ok((text.to_owned(), Some(text.to_owned()))));
    }
}

#[test]
fn what_is_wrong_has_place_and_key_and_keeps_values_back() {
    for (text, said) in [
        ("flag: yEs\n", "1:7: a.flag: expected true or false"),
        ("flag: 1\n", "1:7: a.flag: expected true or false"),
        ("flag: 'true'\n", "1:7: a.flag: expected true or false"),
        ("flag: hunter2\n", "1:7: a.flag: expected true or false"),
        ("number: hunter2\n", "1:9: a.number: expected a whole number"),
        ("number: '1'\n", "1:9: a.number: expected a whole number"),
        ("number: .inf\n", "1:9: a.number: expected a whole number"),
        ("number: 0b2\n", "1:9: a.number: expected a whole number"),
        ("number: yes\n", "1:9: a.number: expected a whole number"),
        ("number: 3000000000\n", "1:9: a.number: expected a whole number"),
        ("bounded: 1\n", "1:10: a.bounded: expected a whole number from 2 to 5"),
        ("bounded: 300\n", "1:10: a.bounded: expected a whole number from 2 to 5"),
        ("float: hunter2\n", "1:8: a.float: expected a number"),
        ("float: inf\n", "1:8: a.float: expected a number"),
        ("float: 1e999\n", "1:8: a.float: expected a number"),
        ("float: off\n", "1:8: a.float: expected a number"),
        ("text: [hunter2]\n", "1:7: a.text: expected one plain value"),
        ("texts: hunter2\n", "1:8: a.texts: expected a list"),
        ("texts:\n  - a\n  - {b: hunter2}\n", "3:5: a.texts[1]: expected one plain value"),
        ("kind: hunter2\n", "1:7: a.kind: expected one of plain_one, other"),
        ("inner: hunter2\n", "1:8: a.inner: expected lines of the form `key: value`"),
        (
            "inner:\n  secrt: hunter2\n",
            "2:3: a.inner.secrt: there is no such key; there are secret",
        ),
        (
            "inner: {secret: hunter2, secret: hunter2}\n",
            "1:26: inner: the key secret is there already, in line 1",
        ),
        ("text: a\n'text': hunter2\n", "2:1: the key text is there already, in line 1"),
        ("texts: [{[a]: hunter2}]\n", "1:10: texts[0]: a key must be plain text"),
        ("text: !include hunter2\n", "1:7: text: the tag !include means nothing here"),
        ("text: a\n---\ntext: hunter2\n", "2:1: a second document"),
        ("text: *hunter\n", "1:7: this is not YAML: "),
        ("texts: &a [*a]\n", "1:12: texts[0]: an alias stands for what it is a part of"),
        ("<<: hunter2\n", "1:5: << wants a mapping"),
        ("- hunter2\n", "1:1: a: expected lines of the form"),
    ] {
        let error = sample(text).expect_err(text);
        assert!(error.starts_with(said) && !error.contains("hunter2"), "{text:?}: {error}");
    }
}

#[test]
fn mappings_are_merged_and_what_stands_there_itself_counts() {
    let text = "x: &x {text: x, number: 1}\ny: &y {text: y, flag: true}\n\
                merged:\n  <<: [*x, *y]\n  number: 2\nsingle: {<<: *y}\n";
    #[derive(Deserialize)]
    struct Document {
        merged: Sample,
        single: Sample,
    }
    let whole: Document = read("", &load(text).expect("YAML")).expect("two samples");
    let merged = Sample { text: "x".into(), number: 2, flag: true, ..Sample::default() };
    assert_eq!(whole.merged, merged);
    assert_eq!(whole.single, Sample { text: "y".into(), flag: true, ..Sample::default() });
}

#[test]
fn values_may_know_their_place() {
    let all: Vec<At<BTreeMap<String, u8>>> =
        read("a", &load("- x: 1\n-   y: 2\n").expect("YAML")).expect("a list");
    let found: Vec<(u32, u32, usize)> =
        all.iter().map(|at| (at.place.line, at.place.column, at.value.len())).collect();
    assert_eq!(found, [(1, 3, 1), (2, 5, 1)]);
}

/// Lists of nine aliases of the previous list: 9⁹ values if each was expanded.
#[test]
fn aliases_that_expand_to_very_much_are_refused() {
    let mut text = "l0: &l0 [a, a, a, a, a, a, a, a, a]\n".to_owned();
    for level in 1..9 {
        let before = format!("*l{}", level - 1);
        text += &format!("l{level}: &l{level} [{}]\n", [before.as_str(); 9].join(", "));
    }
    let error = load(&text).expect_err("a bomb").to_string();
    assert!(
        error.contains("l5[") && error.contains("aliases stand for more than 100000"),
        "{error}"
    );
    // Mappings that are merged into each other expand in the same way.
    let keys: Vec<String> = (0..1000).map(|key| format!("k{key}: 1")).collect();
    let mut text = format!("base: &base {{{}}}\nall:\n", keys.join(", "));
    text += &"  - {<<: *base}\n".repeat(200);
    let error = load(&text).expect_err("many merges").to_string();
    assert!(error.contains("aliases stand for more"), "{error}");
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    for text in ["- ".repeat(100_000), "[".repeat(100_000), "a: {".repeat(100_000)] {
        assert!(load(&text).is_err(), "{}", &text[..8]);
    }
    let error = load(&"- ".repeat(65)).expect_err("65 lists").to_string();
    assert!(error.contains("more than 64 lists and mappings"), "{error}");
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Shared {
    inner: Inner,
    number: u8,
}

impl Part for Shared {
    const KEYS: &'static [&'static str] = &["inner", "number"];
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Rest {
    text: String,
}

#[test]
fn keys_of_a_part_are_read_strictly_and_with_their_place() {
    let read = |text: &str| -> Result<With<Shared, Rest>, String> {
        let read = load(text).and_then(|node| read("a", &node));
        read.map_err(|error| error.to_string())
    };
    let both = read("number: 3\ntext: b\ninner: {secret: c}\n");
    let both = both.map(|With { part, rest }| (part.number, part.inner.secret, rest.text));
    assert_eq!(both, Ok((3, "c".to_owned(), "b".to_owned())));
    for (text, said) in [
        ("number: 3\n", "1:1: a: text is missing"),
        ("text: b\nnumber: c\n", "2:9: a.number: expected a whole number from 0 to 255"),
        (
            "text: b\ntexts: c\n",
            "2:1: a.texts: there is no such key; there are text, inner, number",
        ),
        (
            "text: b\ninner: {text: c}\n",
            "2:9: a.inner.text: there is no such key; there are secret",
        ),
        ("- text: b\n", "1:1: a: expected lines of the form `key: value`"),
    ] {
        assert_eq!(read(text).map(|_| ()), Err(said.to_owned()), "{text}");
    }
}

#[test]
fn the_first_document_is_read_and_the_rest_has_a_place() {
    let first = |text: &str| load_first(text, &mut |_| Ok(()));
    for (text, rest) in [
        ("a: 1\n", None),
        ("", None),
        ("a: 1\n...\n", None),
        ("a: 1\n---\nb: 2\n", Some(2)),
        ("a: 1\n---\n{ : [\n", Some(2)),
        ("a: 1\n...\n}\n", Some(3)),
    ] {
        let read = first(text).map(|first| first.rest.map(|place| place.line));
        assert_eq!(read, Ok(rest), "{text:?}");
    }
    assert!(first("a: [\n---\nb: 2\n").is_err());
    let read = first("a: 1\nb: {c: 1, c: 2, c: {d: 3}}\na: 2\n").expect("a document");
    let repeated: Vec<String> = read.repeated.iter().map(ToString::to_string).collect();
    assert_eq!(
        repeated,
        [
            "2:11: b: the key c is there already, in line 2",
            "2:17: b: the key c is there already, in line 2",
            "3:1: the key a is there already, in line 1",
        ]
    );
    let Data::Map(entries) = &read.root.data else { panic!("no mapping") };
    assert_eq!(
        entries.iter().map(|entry| entry.value.text()).collect::<Vec<_>>(),
        [Some("1"), None]
    );
}

#[test]
fn a_block_has_the_place_of_its_key_and_quotes_do_not_merge() {
    let text = "a:\n  b: |\n\n    text\n'<<': {c: 1}\n";
    let root = load(text).expect("a document");
    let Data::Map(entries) = &root.data else { panic!("no mapping") };
    let Data::Map(inner) = &entries[0].value.data else { panic!("no mapping") };
    assert_eq!(inner[0].value.place, Position { line: 2, column: 3 });
    assert_eq!(inner[0].value.text(), Some("\ntext\n"));
    assert_eq!(entries[1].key, "<<");
    let twice = "<<: {a: 1}\n<<: {b: 2}\n";
    assert!(load(twice).is_ok());
    let first = load_first(twice, &mut |_| Ok(())).expect("a document");
    assert_eq!(first.repeated[0].to_string(), "2:1: the key << is there already, in line 1");
}
