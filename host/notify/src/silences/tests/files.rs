//! The file, whole and damaged.

use super::*;
use file::{DAMAGED_FILE, FILE, decode, encode};
use proptest::prelude::*;

fn silence(number: i64) -> Arc<Silence> {
    let texts = ["a\"b=~c", "line\nfeed", "\u{1f642}", "]}"];
    let text = texts[number as usize % texts.len()];
    Arc::new(Silence {
        id: SilenceId::random().expect("an id"),
        matchers: Matchers::parse("a=\"b\",c!=d,\"e f\"=~\"g|h\",i!~\"j.*\"").expect("matchers"),
        starts_at_ms: NOON_MS + number,
        ends_at_ms: NOON_MS + number * HOUR_MS,
        updated_at_ms: NOON_MS - number,
        created_by: text.to_owned(),
        comment: text.repeat(3),
        annotations: Labels::from([(text.to_owned(), text.to_owned())]),
        doubted_since: (number % 2 == 0).then_some(Duration::ZERO),
    })
}

fn silences() -> Map {
    (1..=3).map(silence).map(|silence| (silence.id, silence)).collect()
}

fn decoded(bytes: &[u8]) -> file::Content {
    decode(bytes, Duration::ZERO)
}

#[test]
fn what_is_written_is_read_back() {
    for all in [Map::new(), silences()] {
        let text = encode(&all, NOON_MS);
        let content = decoded(text.as_bytes());
        assert_eq!(content.silences, all);
        assert_eq!((content.judged_ms, content.damaged), (Some(NOON_MS), 0));
        // Other programs can read it, too.
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
    }
}

/// The bytes of a file of version 1; the checksum was computed by another program.
#[test]
fn a_file_of_this_version_is_read() {
    let text = concat!(
        "{\"version\":1,\"judgedAt\":\"2026-11-08T12:00:00.000Z\",\"silences\":[\n",
        "{\"crc32c\":\"fd134fc6\",\"silence\":",
        "{\"id\":\"01020304-0506-4708-890a-0b0c0d0e0f10\",",
        "\"updatedAt\":\"2026-11-08T12:00:00.000Z\",\"comment\":\"c\",\"createdBy\":\"d\",",
        "\"endsAt\":\"2026-11-08T13:00:00.000Z\",\"matchers\":[{\"isEqual\":true,",
        "\"isRegex\":false,\"name\":\"job\",\"value\":\"node\"}],",
        "\"startsAt\":\"2026-11-08T12:00:00.000Z\"}}\n]}\n"
    );
    let content = decoded(text.as_bytes());
    assert_eq!((content.silences.len(), content.damaged), (1, 0));
    let silence = content.silences.into_values().next().expect("a silence");
    assert_eq!(silence.id.to_string(), "01020304-0506-4708-890a-0b0c0d0e0f10");
    assert_eq!(silence.matchers.to_string(), "{job=\"node\"}");
    assert_eq!((silence.starts_at_ms, silence.ends_at_ms), (NOON_MS, NOON_MS + HOUR_MS));
}

#[test]
fn truncation_costs_only_the_silences_behind_it() {
    let all = silences();
    let text = encode(&all, NOON_MS);
    let ends: Vec<usize> = text.match_indices("}}").map(|(at, _)| at + 2).collect();
    for end in 0..text.len() {
        let content = decoded(&text.as_bytes()[..end]);
        let whole = all.len().min(ends.iter().filter(|whole| **whole <= end).count());
        assert_eq!(content.silences.len(), whole, "{end}");
        assert!(content.silences.iter().all(|(id, silence)| all.get(id) == Some(silence)), "{end}");
        // The last line may lack its newline.
        assert_eq!(content.damaged == 0, text.as_bytes()[..end].ends_with(b"\n]}"), "{end}");
    }
}

#[test]
fn a_changed_byte_costs_only_the_silences_that_it_touches() {
    let all = silences();
    let text = encode(&all, NOON_MS);
    for at in 0..text.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= flip;
            let content = decoded(&bytes);
            assert!(content.silences.len() + 2 >= all.len(), "{at} {flip}");
            let is_same = |(id, silence): (&SilenceId, _)| all.get(id) == Some(silence);
            assert!(content.silences.iter().all(is_same), "{at} {flip}");
        }
    }
}

#[test]
fn the_intact_silences_of_a_damaged_file_hold_and_the_file_is_kept() {
    let mut node = Node::new();
    let first = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let second = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let folder = node.folder.path().join("alerts");
    let text = String::from_utf8(node.file()).expect("text");
    let damaged = text.replacen("maintenance", "maintenancf", 1);
    std::fs::write(folder.join(FILE), &damaged).expect("damage");
    node.restart();
    let left: Vec<SilenceId> = node.silences.list().iter().map(|(silence, _)| silence.id).collect();
    assert_eq!(left, [first.max(second)]);
    let kept = std::fs::read_to_string(folder.join(DAMAGED_FILE)).expect("a file");
    assert_eq!(kept, damaged);
    let mut text = MetricsText::default();
    node.silences.show(&mut text);
    let text = text.finish();
    assert!(text.contains("tidepool_silences_damaged_total 1\n"), "{text}");
    assert!(text.contains("tidepool_silences{state=\"active\"} 1\n"), "{text}");
    // The new file is intact.
    node.restart();
    assert_eq!(node.silences.list().len(), 1);
    assert_eq!(decoded(&node.file()).damaged, 0);
}

#[test]
fn identifiers_are_uuids() {
    let id = SilenceId::random().expect("an id");
    let text = id.to_string();
    assert_eq!(text.parse(), Ok(id));
    assert_eq!((text.len(), &text[14..15]), (36, "4"));
    assert!("89ab".contains(&text[19..20]), "{text}");
    assert_eq!(text.to_uppercase().parse(), Ok(id));
    for wrong in ["", "x", &text[1..], &text.replace('-', "+"), &text.replace('-', ""), "ä"] {
        assert!(wrong.parse::<SilenceId>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        text in "[{}\\[\\]\":,\n0-9a-z]{0,80}",
    ) {
        for bytes in [&bytes, text.as_bytes()] {
            prop_assert_eq!(decoded(bytes).silences, Map::new());
        }
    }
}
