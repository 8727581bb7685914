use super::*;
use crate::journal::format::{
    ENTRY_RECORD_BYTES_MIN, FRAME_BYTES, MAGIC, MARKER, NUMBER_MAX, PAYLOAD_BYTES_MAX, Record,
    decode, encode_begin, encode_event, encode_open, payload_bytes_bound, unframe,
};
use proptest::prelude::*;
use tidepool_rules::file::Labels;

const DOCUMENT: &str = include_str!("../../../../docs/alert-journal.md");

/// The bytes of the document's example: lines that begin with two hexadecimal digits.
fn worked_bytes() -> Vec<u8> {
    let (_, block) = DOCUMENT.split_once("```hex\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let digits = |line: &str| {
        let hex = line.split(" ;").next().unwrap().to_owned();
        let bytes: Vec<u8> =
            hex.split_whitespace().map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        bytes
    };
    block.lines().flat_map(digits).collect()
}

/// What the document says of its example.
fn worked_events() -> (Event, Event) {
    let open = Event {
        change: Change::Firing,
        time_ms: 1_792_000_000_000,
        origin: Origin { file: "a.yml".into(), group: "g".into() },
        labels: LabelSet::new([("alertname", "Hot"), ("job", "é")]),
        annotations: Arc::new([("summary".to_owned(), "It is hot".to_owned())].into()),
        value: 1.5,
        fired_at_ms: 1_792_000_000_000,
        cause: Cause::Evaluation,
        is_unnamed: false,
    };
    let ended = Event {
        change: Change::Resolved,
        time_ms: 1_792_000_060_000,
        annotations: Arc::default(),
        value: -1.0,
        cause: Cause::RuleRemoved,
        is_unnamed: true,
        ..open.clone()
    };
    (open, ended)
}

#[test]
fn the_documents_bytes_are_those_of_a_segment() {
    let (open, ended) = worked_events();
    let mut bytes = MAGIC.to_vec();
    encode_begin(&mut bytes, 12, 1);
    assert!(encode_open(&mut bytes, &Entry { number: 9, event: open.clone() }));
    assert!(encode_event(&mut bytes, &Entry { number: 12, event: ended.clone() }));
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(worked_bytes(), bytes, "{}", hex.join(" "));

    let disk = disk();
    disk.put(&segment_path(12), &worked_bytes());
    let mut found = Vec::new();
    let damage = read_dir(&disk, Path::new(DIR), 0, &mut |item| match item {
        Item::Open(entry) => found.push((true, entry.clone())),
        Item::Event(entry) => found.push((false, entry.clone())),
    });
    assert_eq!(damage.unwrap(), []);
    let expected =
        [(true, Entry { number: 9, event: open }), (false, Entry { number: 12, event: ended })];
    assert_eq!(found, expected);
}

/// CRC-32C of "123456789" is a known value; the length stands before the payload.
#[test]
fn a_checksum_covers_length_and_payload() {
    assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    let mut bytes = Vec::new();
    encode_begin(&mut bytes, 1, 0);
    let payload = unframe(&bytes).unwrap();
    let covered = [&bytes[4..8], payload].concat();
    assert_eq!(bytes[8..12], crc32c::crc32c(&covered).to_le_bytes());
    assert_eq!(payload.len(), 13);
}

#[test]
fn the_shortest_record_has_the_length_that_is_assumed() {
    let mut event = fires("A", 0);
    event.origin = Origin { file: "".into(), group: "".into() };
    (event.labels, event.annotations) = (LabelSet::default(), Arc::default());
    let mut bytes = Vec::new();
    assert!(encode_event(&mut bytes, &Entry { number: 1, event }));
    assert_eq!(bytes.len() as u64, ENTRY_RECORD_BYTES_MIN);
}

/// An annotation is text of the outside. It could otherwise forge events when damage is skipped.
#[test]
fn no_text_looks_like_a_record() {
    for byte in MARKER {
        assert!(std::str::from_utf8(&[byte]).is_err());
        for (first, last) in [(0xc2_u8, 0x80_u8), (0xdf, 0xbf)] {
            assert!(![first, last].contains(&byte));
        }
    }
    assert!((0..=char::MAX as u32).filter_map(char::from_u32).all(|char| {
        let mut bytes = [0; 4];
        !char.encode_utf8(&mut bytes).bytes().any(|byte| MARKER.contains(&byte))
    }));
}

#[test]
fn records_and_fields_of_a_newer_program_are_skipped() {
    let frame = |payload: &[u8]| {
        let length = (payload.len() as u32).to_le_bytes();
        let sum = crc32c::crc32c(&[&length, payload].concat()).to_le_bytes();
        [&MARKER, &length, &sum, payload].concat()
    };
    let mut entry = Vec::new();
    assert!(encode_event(&mut entry, &Entry { number: 1, event: fires("A", 1000) }));
    let longer = frame(&[&entry[FRAME_BYTES..], b"\x07new"].concat());
    let bytes = [&MAGIC[..], &frame(b"\x09new"), &longer, &frame(b"")].concat();
    let disk = disk();
    disk.put(&segment_path(1), &bytes);
    let (journal, _thread) = open(&disk);
    assert_eq!(events(&journal), [fires("A", 1000)]);
    // The empty payload alone is damage.
    assert_eq!(journal.figures().damaged_total, 1);
}

#[test]
fn an_event_that_is_too_long_loses_annotations_first() {
    let (journal, thread) = open(&disk());
    let long = "é".repeat(PAYLOAD_BYTES_MAX / 2);
    let with_long = |count: usize| {
        let pairs = (0..count).map(|index| (index.to_string(), long.clone()));
        Event { annotations: Arc::new(pairs.collect()), ..fires("A", 1000) }
    };
    let mut endless = fires("B", 1000);
    endless.labels = LabelSet::new([("alertname", long.as_str())]);
    journal.append(vec![with_long(2), with_long(1000), endless, fires("C", 1000)]);
    journal.flush();
    let found = events(&journal);
    let expected: Labels =
        ["0", "1"].map(|name| (name.to_owned(), "é".repeat(512))).into_iter().collect();
    assert_eq!(*found[0].annotations, expected);
    assert!(found[1].annotations.is_empty());
    // The third one is never written, and is open nevertheless.
    assert_eq!(found[2..], [fires("C", 1000)]);
    assert_eq!((journal.figures().lost_total, open_numbers(&journal)), (1, vec![2, 3, 4]));
    thread.stop();
}

fn any_event() -> impl Strategy<Value = Event> {
    let pairs = || prop::collection::btree_map(".{0,8}", ".{1,40}", 0..5);
    let cause = prop_oneof![Just(Cause::Evaluation), Just(Cause::RuleRemoved), Just(Cause::Unseen)];
    let texts = (".{0,20}", ".{0,20}");
    let facts = (any::<bool>(), cause, any::<bool>());
    (texts, pairs(), pairs(), any::<(i64, i64, f64)>(), facts).prop_map(
        |((file, group), labels, annotations, (time_ms, fired_at_ms, value), facts)| Event {
            change: if facts.0 { Change::Firing } else { Change::Resolved },
            time_ms,
            origin: Origin { file: file.into(), group: group.into() },
            labels: LabelSet::of(&labels),
            annotations: Arc::new(annotations),
            value,
            fired_at_ms,
            cause: facts.1,
            is_unnamed: facts.2,
        },
    )
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(event in any_event(), number in 1..=NUMBER_MAX) {
        let (mut bytes, bound) = (Vec::new(), payload_bytes_bound(&event));
        let value = event.value;
        let entry = Entry { number, event };
        prop_assert!(encode_event(&mut bytes, &entry));
        prop_assert!(bytes.len() <= FRAME_BYTES + bound);
        let Some(Record::Event(mut decoded)) = decode(unframe(&bytes).unwrap()) else {
            panic!("no event");
        };
        prop_assert_eq!(decoded.event.value.to_bits(), value.to_bits());
        // Not a number is unlike itself.
        decoded.event.value = 0.0;
        let expected = Entry { event: Event { value: 0.0, ..entry.event }, ..entry };
        prop_assert_eq!(decoded, expected);
    }

    /// A checksum stands before this only against accidents.
    #[test]
    fn hostile_payloads_do_no_harm(
        event in any_event(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        garbage in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        decode(&garbage);
        let mut bytes = Vec::new();
        let entry = Entry { number: 1, event };
        prop_assert!(encode_event(&mut bytes, &entry));
        let mut payload = bytes.split_off(FRAME_BYTES);
        for (at, byte) in edits {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        decode(&payload);
        for length in 0..payload.len() {
            decode(&payload[..length]);
        }
    }
}
