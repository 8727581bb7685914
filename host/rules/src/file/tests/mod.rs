mod hostile;

use super::*;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

/// Refuses what contains `bad`, and counts the bytes that it has checked.
#[derive(Default)]
struct Counting {
    bytes: Cell<usize>,
}

impl Counting {
    fn check(&self, text: &str) -> Result<(), String> {
        self.bytes.set(self.bytes.get() + text.len());
        match text.contains("bad") {
            true => Err(format!("{text:?} is bad")),
            false => Ok(()),
        }
    }
}

impl Checks for Counting {
    fn expression(&self, text: &str) -> Result<(), String> {
        self.check(text)
    }

    fn template(&self, name: &str, text: &str) -> Result<(), String> {
        self.check(text).map_err(|what| format!("{name}: {what}"))
    }
}

fn parsed(text: &str) -> Result<RuleFile, RuleFileError> {
    parse(Path::new("a.yml"), text.as_bytes(), &Options::default(), &Counting::default())
}

fn refused(text: &str) -> RuleFileError {
    parsed(text).err().unwrap_or_else(|| panic!("accepted: {}", &text[..text.len().min(200)]))
}

/// Cause of the only mistake.
fn cause(text: &str) -> Cause {
    let mut error = refused(text);
    assert_eq!((error.mistakes.len(), error.more), (1, 0), "{error}");
    error.mistakes.remove(0).cause
}

#[test]
fn a_file_becomes_groups() {
    let text = "\
groups:
- name: g
  interval: 1m30s
  query_offset: 0s
  limit: -1
  labels: {team: x}
  rules:
  - record: job:up:sum
    expr: sum(up)
    labels: {a: 1, b: ~}
  -
  - alert: Down
    expr: |
      up == 0
    for: 5m
    keep_firing_for: 1h
    annotations: {summary: '{{ $labels.job }}'}
";
    let labels = |pairs: &[(&str, &str)]| -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let recording = Rule {
        position: Position { line: 8, column: 5 },
        kind: Kind::Recording { record: "job:up:sum".to_owned() },
        expr: "sum(up)".to_owned(),
        labels: labels(&[("a", "1"), ("b", "")]),
    };
    let alerting = Rule {
        position: Position { line: 12, column: 5 },
        kind: Kind::Alerting {
            alert: "Down".to_owned(),
            for_: Duration::from_secs(300),
            keep_firing_for: Duration::from_secs(3600),
            annotations: labels(&[("summary", "{{ $labels.job }}")]),
        },
        expr: "up == 0\n".to_owned(),
        labels: Labels::new(),
    };
    let group = Group {
        position: Position { line: 2, column: 3 },
        name: "g".to_owned(),
        interval: Some(Duration::from_secs(90)),
        query_offset: Some(Duration::ZERO),
        limit: -1,
        labels: labels(&[("team", "x")]),
        rules: vec![recording, alerting],
    };
    let file = RuleFile { path: "a.yml".into(), groups: vec![group], ignored: None };
    assert_eq!(file.rule_count(), 2);
    assert_eq!(parsed(text), Ok(file));
    let zero = parsed("groups: [{name: g, interval: 0s}]\n---\n").expect("a file");
    assert_eq!((zero.groups[0].interval, zero.groups[0].query_offset), (None, None));
    assert_eq!(zero.ignored, Some(Position { line: 2, column: 1 }));
}

#[test]
fn all_mistakes_are_told_in_the_order_of_the_file() {
    let text = "\
owner: me
groups:
- interval: 5x
  nmae: g
  rules:
  - fro: 5m
    expr: [up]
    labels:
      __name__: x
      team: [a]
      team: b
      tpl: bad
    alert: A
  - for: 1m
    record: m{a=\"b\"}
    annotations: {'': x}
  - {}
- name: h
- name: h
  limit: many
  rules: {}
";
    let expected = "\
a.yml:1:1: owner: there is no such key; there are groups
a.yml:3:3: groups[0]: a group needs a name
a.yml:3:13: groups[0].interval: \"5x\" is not a duration such as 30s, 5m or 1h30m
a.yml:4:3: groups[0].nmae: there is no such key; did you mean name?
a.yml:6:5: groups[0].rules[0].fro: there is no such key; did you mean for?
a.yml:7:11: groups[0].rules[0].expr: expected one plain value
a.yml:9:7: groups[0].rules[0].labels.__name__: invalid label name: \"__name__\"
a.yml:10:13: groups[0].rules[0].labels.team: expected one plain value
a.yml:11:7: groups[0].rules[0].labels: the key team is there already, in line 10
a.yml:12:12: groups[0].rules[0].labels.tpl: the template is not valid: A: \"bad\" is bad
a.yml:14:5: groups[0].rules[1].expr: expr must be set
a.yml:15:13: groups[0].rules[1].for: a recording rule has no for (line 14); only an alerting rule has
a.yml:15:13: groups[0].rules[1].annotations: a recording rule has no annotations (line 16); only an alerting rule has
a.yml:15:13: groups[0].rules[1].record: braces in the name of a recording rule: \"m{a=\\\"b\\\"}\"; do they belong into expr?
a.yml:16:19: groups[0].rules[1].annotations.: invalid annotation name: \"\"
a.yml:17:5: groups[0].rules[2]: one of record and alert must be set
a.yml:17:5: groups[0].rules[2].expr: expr must be set
a.yml:19:9: groups[1].name: the group name \"h\" is repeated in the same file, from line 18
a.yml:20:10: groups[2].limit: expected a whole number of at most 64 bits
a.yml:21:10: groups[2].rules: expected a list";
    let expected = expected.replace("groups[1].name", "groups[2].name");
    assert_eq!(refused(text).to_string(), expected);
}

#[test]
fn what_is_no_text_has_a_place() {
    let options = Options::default();
    let error = |bytes: &[u8]| {
        let read = parse(Path::new("a.yml"), bytes, &options, &Counting::default());
        read.err().map(|error| error.to_string())
    };
    let said = "a.yml:2:4: this is not text in UTF-8";
    assert_eq!(
        error(b"groups:\n# \xc3\xa4\xff").as_deref(),
        Some("a.yml:2:4: this is not text in UTF-8")
    );
    assert_eq!(error(b"groups:\n# a\xff").as_deref(), Some(said));
    let said = error("groups: []\n# ä\u{1}\n---\n".as_bytes());
    assert!(said.is_some_and(|said| said.starts_with("a.yml:2:4: the control character '\\u{1}'")));
    // Behind the document nothing is read.
    assert_eq!(error(b"groups: []\n---\n\x01"), None);
    let said = "a.yml:2:1: this is not YAML: ";
    assert!(error(b"groups: [\n").is_some_and(|error| error.starts_with(said)));
    let long = vec![b'#'; (16 << 20) + 1];
    assert_eq!(error(&long).as_deref(), Some("a.yml:1:1: it has more than 16777216 bytes"));
    assert_eq!(error(&long[1..]), None);
}

#[test]
fn files_are_read_with_one_bound() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let rules = "groups: [{name: a, rules: [{record: m, expr: a}, {record: n, expr: a}]}]";
    let paths = ["a.yml", "b.yml", "none.yml"].map(|name| folder.path().join(name));
    for path in &paths[..2] {
        std::fs::write(path, rules)?;
    }
    let options = Options { rules_max: 3, ..Options::default() };
    let checks = Counting::default();
    let read = read_all(&paths, &options, &checks);
    assert_eq!(read[0].as_ref().map(RuleFile::rule_count), Ok(2));
    let causes =
        |number: usize| read[number].as_ref().err().map(|error| error.mistakes[0].cause.clone());
    assert_eq!(causes(1), Some(Cause::Rules(3)));
    let missing = read[2].as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(missing.contains("none.yml: No such file"), "{missing}");
    assert_eq!(super::read(&paths[1], &options, &checks).map(|file| file.rule_count()), Ok(2));
    Ok(())
}
