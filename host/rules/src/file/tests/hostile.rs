//! Whatever a file has, it is read or refused in bounded time and memory.

use super::super::reader::TEXT_BYTES_MAX;
use super::*;
use proptest::prelude::*;
use std::time::Instant;

/// Aliases and labels of groups multiply what a file says: bounds hold for what they stand for.
#[test]
fn what_multiplies_is_bounded() {
    let error = refused(&("groups:\n".to_owned() + &"- {}\n".repeat(5000)));
    assert_eq!((error.mistakes.len(), error.more), (MISTAKES_MAX, 4000));
    assert!(error.to_string().ends_with("\na.yml: and 4000 more mistakes"));
    let many = "groups:\n- name: g\n  rules:\n".to_owned()
        + &"  - {record: m, expr: a}\n".repeat(RULES_MAX + 1);
    assert_eq!(cause(&many), Cause::Rules(RULES_MAX));

    let expr = "x".repeat(1 << 20);
    let text = format!("groups:\n- name: g\n  rules:\n  - &a {{record: m, expr: '{expr}'}}\n");
    let text = text + &"  - *a\n".repeat(10_000);
    let checks = Counting::default();
    let read = parse(Path::new("a.yml"), text.as_bytes(), &Options::default(), &checks);
    let causes = read.err().map(|error| error.mistakes[0].cause.clone());
    assert_eq!(causes, Some(Cause::Texts(TEXT_BYTES_MAX)));
    assert!(checks.bytes.get() <= TEXT_BYTES_MAX);

    let label = "x".repeat(1 << 20);
    let text = format!("groups:\n- name: g\n  labels: {{a: {label}}}\n  rules:\n");
    assert_eq!(
        cause(&(text + &"  - {record: m, expr: a}\n".repeat(100))),
        Cause::Texts(TEXT_BYTES_MAX)
    );

    // Nine times nine times nine …
    let mut text = "a: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for number in 1..9 {
        let aliases = vec![format!("*a{}", number - 1); 9].join(", ");
        text += &format!("b{number}: &a{number} [{aliases}]\n");
    }
    assert!(matches!(cause(&text), Cause::Yaml(what) if what.contains("aliases stand for more")));
    let is_too_deep = |shape: &str, said: &str| matches!(cause(&shape.repeat(1 << 16)), Cause::Yaml(what) if what.contains(said));
    assert!(is_too_deep("- ", "lists and mappings inside of each other"));
    assert!(is_too_deep("[", "recursion limit exceeded"));

    let name = "n".repeat(1 << 20);
    let error = refused(&format!(
        "? {name}\n: 1\ngroups: [{{name: g, labels: {{? '{name}{{}}' : [], '': 1}}}}]\n"
    ));
    assert!(error.mistakes.iter().all(|mistake| mistake.to_string().len() < 1000));
    let rule = format!(
        "groups: [{{name: g, rules: [{{alert: '{name}', expr: 'bad{name}', labels: {{a: 'bad{name}'}}}}]}}]"
    );
    let error = refused(&rule);
    assert_eq!(error.mistakes.len(), 2);
    assert!(error.to_string().len() < 4000);
}

#[test]
fn nodes_are_bounded_in_memory() {
    assert!(matches!(cause(&"- a\n".repeat(1 << 21)), Cause::Memory(_)));
}

/// Would take minutes if the time were not linear.
#[test]
fn hostile_texts_take_little_time() {
    const BYTES: usize = 1 << 18;
    let shapes = [
        "[",
        "{",
        "- ",
        "? ",
        "- - - a\n",
        "&a ",
        "*a ",
        "!a ",
        "'",
        "\"",
        "|\n",
        "a: |\n ",
        ">\n\n",
        "#",
        "#\n",
        ": ",
        "a: b: ",
        "a\n",
        "a: ",
        ",",
        "%a\n",
        "--- ",
        "---\n",
        "...\n",
        "\t",
        " ",
        "\n",
        "\r",
        "\\",
        "\"\\\n",
        "a: &a b\n",
        "- &a a\n- *a\n",
        "? a\n: b\n",
        "{a: b}, ",
        "[a, ",
        "'' ",
        "<<: {}\n",
        "<<: *a\n",
        "\u{feff}",
        "a: 'b",
        "{? ",
        "- a: b\n  c: d\n",
        "- {name: a, rules: [{}]}\n",
        "\u{85}",
        "a b ",
        "x: [1, 2]\n",
    ];
    for shape in shapes {
        for before in ["", "groups:\n- name: g\n  rules:\n", "{"] {
            let text = before.to_owned() + &shape.repeat(BYTES / shape.len());
            let began = Instant::now();
            let read = parsed(&text);
            let took = began.elapsed();
            assert!(took < Duration::from_secs(10), "{before:?} {shape:?}: {took:?}");
            if let Err(error) = read {
                assert!(error.to_string().len() < 1 << 21, "{before:?} {shape:?}");
            }
        }
    }
}

const VALID: &str = "\
groups:
- name: g
  interval: 1m
  query_offset: 5s
  limit: 10
  labels: {team: x}
  rules:
  - &a
    record: job:up:sum
    expr: \"sum(up)\"
    labels:
      a: 'b'
  - <<: *a
    record: other
  - alert: Down # as usual
    expr: |
      up == 0
    for: 5m
    keep_firing_for: 1h
    annotations:
      summary: >-
        {{ $labels.job }}
...
";

/// What errors promise holds for any input.
fn hold(bytes: &[u8]) {
    let path = Path::new("a.yml");
    for ignore_unknown_fields in [false, true] {
        let options = Options { ignore_unknown_fields, ..Options::default() };
        match parse(path, bytes, &options, &Counting::default()) {
            Ok(file) => {
                lint(std::slice::from_ref(&file));
                for group in &file.groups {
                    assert!(!group.name.is_empty());
                    assert!(
                        group
                            .rules
                            .iter()
                            .all(|rule| !rule.name().is_empty() && !rule.expr.is_empty())
                    );
                }
            }
            Err(error) => {
                assert!(!error.mistakes.is_empty());
                let place = |mistake: &Mistake| (mistake.place.line, mistake.place.column);
                assert!(error.mistakes.is_sorted_by_key(place));
                let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count();
                for mistake in &error.mistakes {
                    assert!((1..=lines + 1).contains(&(mistake.place.line as usize)), "{mistake}");
                    assert!(mistake.place.column > 0);
                }
            }
        }
    }
}

#[test]
fn the_file_of_the_property_is_valid() {
    assert_eq!(parsed(VALID).map(|file| file.rule_count()), Ok(3));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        hold(&bytes);
    }

    #[test]
    fn any_signs_are_read_or_refused(text in "[-\\[\\]{}:,?&*!|>'\"%@`#~<=a0. \n\t]{0,300}") {
        hold(text.as_bytes());
    }

    #[test]
    fn a_changed_file_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, "[-\\[\\]{}:,&*!|>'\"# \na-z0]{1,4}"), 1..8),
    ) {
        let mut bytes = VALID.as_bytes().to_vec();
        for (index, change, text) in changes {
            let at = index.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + text.len()).min(bytes.len());
            match change {
                0 => drop(bytes.splice(at..at, text.bytes())),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..end, text.bytes())),
                _ => bytes.truncate(at.max(1)),
            }
        }
        hold(&bytes);
    }
}
