//! Parses a list of targets, in JSON or YAML, into target groups. The memory of each group is
//! counted before it is allocated.

use super::list::Room;
use crate::labels::Labels;
use crate::target::{LabelMap, TargetGroup, names};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use tidepool_settings::yaml;

/// The keys of a group.
const KEYS: &[&str] = &["targets", "labels"];

/// Memory of a map entry besides its texts: its share of a map node, and two allocations.
const ENTRY_BYTES: usize = 96;

/// Memory of a label in a set besides its texts: two length fields.
const LENGTHS_BYTES: usize = 8;

/// Origin of a list, which its groups carry.
pub(super) struct Origin<'a> {
    /// Prefix of the sources of the groups.
    pub source: String,
    /// Label that all targets get.
    pub label: (&'static str, &'a str),
}

/// Reads a list in JSON. Keys may be in capitals, because Go accepts capitals and servers in other
/// languages send them.
pub(super) fn json(
    bytes: &[u8],
    origin: &Origin<'_>,
    room: &mut Room,
) -> Result<Vec<TargetGroup>, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let groups = Groups { room, origin, ignores_case: true }.deserialize(&mut reader);
    let groups = groups.and_then(|groups| reader.end().map(|()| groups));
    groups.map_err(|error| error.to_string())?
}

pub(super) fn yaml(
    bytes: &[u8],
    origin: &Origin<'_>,
    room: &mut Room,
) -> Result<Vec<TargetGroup>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let before = room.bytes();
    let node =
        yaml::load_counted(text, &mut |bytes| room.take(bytes).map_err(|error| error.to_string()));
    let node = node.map_err(|error| error.to_string())?;
    let nodes_bytes = room.bytes() - before;
    let groups = Groups { room: &mut *room, origin, ignores_case: false };
    let groups = yaml::read_seed("", &node, groups);
    let groups = groups.map_err(|error| error.to_string())?;
    // The node is freed before its memory is counted as free.
    drop(node);
    room.back_to(room.bytes() - nodes_bytes);
    groups
}

/// Groups of a list, or upstream's error message for a `null` instead of a group.
type Listed = Result<Vec<TargetGroup>, String>;

/// Reads a list. A group without targets gets a number, but is not kept.
struct Groups<'a> {
    room: &'a mut Room,
    origin: &'a Origin<'a>,
    /// Whether keys may be written in capitals.
    ignores_case: bool,
}

impl<'de> DeserializeSeed<'de> for Groups<'_> {
    type Value = Listed;

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<Listed, D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Groups<'_> {
    type Value = Listed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of groups of targets")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Listed, A::Error> {
        let Groups { room, origin, ignores_case } = self;
        let mut groups = Vec::new();
        let mut has_nothing = false;
        let mut number = 0_usize;
        while let Some(group) =
            items.next_element_seed(Group { room: &mut *room, origin, ignores_case, number })?
        {
            number += 1;
            match group {
                Some(group) if !group.targets.is_empty() => {
                    room.push(&mut groups, group).map_err(A::Error::custom)?;
                }
                Some(_) => {}
                None => has_nothing = true,
            }
        }
        Ok(match has_nothing {
            true => Err("nil target group item found".to_owned()),
            false => Ok(groups),
        })
    }
}

struct Group<'a> {
    room: &'a mut Room,
    origin: &'a Origin<'a>,
    ignores_case: bool,
    number: usize,
}

enum Key {
    Targets,
    Labels,
}

/// Reads the key of a group.
struct KeyOf {
    ignores_case: bool,
}

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Key, D::Error> {
        key.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyOf {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key of a group")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
        let is = |known| key == known || (self.ignores_case && key.eq_ignore_ascii_case(known));
        match key {
            _ if is("targets") => Ok(Key::Targets),
            _ if is("labels") => Ok(Key::Labels),
            _ => Err(E::unknown_field(key, KEYS)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Group<'_> {
    type Value = Option<TargetGroup>;

    fn deserialize<D: Deserializer<'de>>(self, group: D) -> Result<Option<TargetGroup>, D::Error> {
        group.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Group<'_> {
    type Value = Option<TargetGroup>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group of targets")
    }

    fn visit_none<E: Error>(self) -> Result<Option<TargetGroup>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<TargetGroup>, E> {
        self.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, group: D) -> Result<Option<TargetGroup>, D::Error> {
        group.deserialize_struct("group", KEYS, self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<TargetGroup>, A::Error> {
        let Group { room, origin, ignores_case, number } = self;
        let before = room.bytes();
        let (mut targets, mut map) = (Vec::new(), LabelMap::new());
        let (mut targets_bytes, mut map_bytes) = (0, 0);
        // The last value of a repeated key wins, as in Go. The YAML parser refuses such keys.
        while let Some(key) = entries.next_key_seed(KeyOf { ignores_case })? {
            let bytes = match key {
                Key::Targets => {
                    targets = Vec::new();
                    &mut targets_bytes
                }
                Key::Labels => {
                    map = LabelMap::new();
                    &mut map_bytes
                }
            };
            // This value replaces an earlier value of the key, whose memory is free now.
            room.back_to(room.bytes() - *bytes);
            let start = room.bytes();
            match key {
                Key::Targets => targets = entries.next_value_seed(Targets(&mut *room))?,
                Key::Labels => map = entries.next_value_seed(LabelsOf(&mut *room))?,
            }
            *bytes = room.bytes() - start;
        }
        if map.contains_key("") {
            return Err(A::Error::custom("a label has no name"));
        }
        if targets.is_empty() {
            // Neither the targets nor the labels of the group are kept.
            room.back_to(before);
            return Ok(Some(TargetGroup::default()));
        }
        let (name, value) = origin.label;
        map.insert(name.to_owned(), value.to_owned());
        let lengths = |(name, value): (&String, &String)| name.len() + value.len() + LENGTHS_BYTES;
        // Counted before the labels are encoded, because map and encoded labels exist together.
        room.take_text(map.iter().map(lengths).sum()).map_err(A::Error::custom)?;
        let labels = Labels::of(&map);
        drop(map);
        room.back_to(room.bytes() - map_bytes);
        let mut source = format!("{}:{number}", origin.source);
        // Only the length is counted, so the capacity must not exceed it.
        source.shrink_to_fit();
        room.take_text(source.len()).map_err(A::Error::custom)?;
        Ok(Some(TargetGroup { source, targets, labels }))
    }
}

/// Reads the addresses of a group.
struct Targets<'a>(&'a mut Room);

impl<'de> DeserializeSeed<'de> for Targets<'_> {
    type Value = Vec<Labels>;

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<Vec<Labels>, D::Error> {
        list.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Targets<'_> {
    type Value = Vec<Labels>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of addresses")
    }

    fn visit_none<E: Error>(self) -> Result<Vec<Labels>, E> {
        Ok(Vec::new())
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<Labels>, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, list: D) -> Result<Vec<Labels>, D::Error> {
        list.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Labels>, A::Error> {
        let Targets(room) = self;
        let mut targets = Vec::new();
        let address = |address: &str| Labels::one(names::ADDRESS, address);
        let bytes = names::ADDRESS.len() + LENGTHS_BYTES;
        while let Some(target) =
            items.next_element_seed(Text { room: &mut *room, bytes, make: address })?
        {
            room.push(&mut targets, target).map_err(A::Error::custom)?;
        }
        Ok(targets)
    }
}

/// Reads the labels of a group.
struct LabelsOf<'a>(&'a mut Room);

impl<'de> DeserializeSeed<'de> for LabelsOf<'_> {
    type Value = LabelMap;

    fn deserialize<D: Deserializer<'de>>(self, map: D) -> Result<LabelMap, D::Error> {
        map.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for LabelsOf<'_> {
    type Value = LabelMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_none<E: Error>(self) -> Result<LabelMap, E> {
        Ok(LabelMap::new())
    }

    fn visit_unit<E: Error>(self) -> Result<LabelMap, E> {
        Ok(LabelMap::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, map: D) -> Result<LabelMap, D::Error> {
        map.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<LabelMap, A::Error> {
        let LabelsOf(room) = self;
        let mut map = LabelMap::new();
        let (bytes, make) = (ENTRY_BYTES / 2, str::to_owned);
        while let Some(name) = entries.next_key_seed(Text { room: &mut *room, bytes, make })? {
            let value = entries.next_value_seed(Text { room: &mut *room, bytes, make })?;
            map.insert(name, value);
        }
        Ok(map)
    }
}

/// Decodes a text as Go's `encoding/json` does: U+FFFD replaces each byte that is not UTF-8, and
/// each surrogate without its pair.
fn replaced(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    while let Some(chunk) = bytes.utf8_chunks().next() {
        text.push_str(chunk.valid());
        bytes = &bytes[chunk.valid().len()..];
        bytes = match bytes {
            [] => break,
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, rest @ ..] | [_, rest @ ..] => rest,
        };
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text
}

/// Reads a text and makes a value of it, which needs `bytes` more than the text.
struct Text<'a, F> {
    room: &'a mut Room,
    bytes: usize,
    make: F,
}

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Text<'_, F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<T, D::Error> {
        // As bytes, because serde_json refuses to read invalid UTF-8 as a text.
        text.deserialize_bytes(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Text<'_, F> {
    type Value = T;

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.visit_str(text),
            Err(_) => {
                // A replaced byte becomes three bytes.
                self.room.take(bytes.len() * 3).map_err(E::custom)?;
                let text = replaced(bytes);
                self.room.back_to(self.room.bytes() - bytes.len() as u64 * 3);
                self.visit_str(&text)
            }
        }
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.room.take_text(self.bytes + text.len()).map_err(E::custom)?;
        Ok((self.make)(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBound;

    fn origin() -> Origin<'static> {
        Origin { source: "list".to_owned(), label: ("__meta_url", "u") }
    }

    fn with<T>(bytes_max: u64, read: impl FnOnce(&mut Room) -> T) -> (T, u64) {
        let memory = MemoryBound::new(bytes_max);
        let mut room = Room::new(&memory);
        let read = read(&mut room);
        assert_eq!(memory.held_bytes() > 0, room.bytes() > 0);
        (read, room.bytes())
    }

    #[test]
    fn both_texts_say_the_same() {
        let list = r#"[{}, {"targets": ["b:1", "a:1", ""], "labels": {"x": "y", "a": ""}},
            {"labels": null, "targets": null}, {"targets": ["c"]}, {"labels": {"a": "b"}}]"#;
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let address = |address| labels(&[("__address__", address)]);
        let expected = [
            TargetGroup {
                source: "list:1".into(),
                targets: vec![address("b:1"), address("a:1"), address("")],
                labels: labels(&[("__meta_url", "u"), ("x", "y")]),
            },
            TargetGroup {
                source: "list:3".into(),
                targets: vec![address("c")],
                labels: labels(&[("__meta_url", "u")]),
            },
        ];
        let of_json = with(1 << 20, |room| json(list.as_bytes(), &origin(), room));
        let of_yaml = with(1 << 20, |room| yaml(list.as_bytes(), &origin(), room));
        assert_eq!(of_json.0.as_deref(), Ok(&expected[..]));
        assert_eq!(of_yaml, of_json, "and takes the same in the end");
    }

    /// Keys as .NET's serializer writes them by default.
    #[test]
    fn only_json_has_keys_in_capitals() {
        let list = r#"[{"Targets": ["a:1"], "LABELS": {"Env": "b"}}]"#;
        let read = with(1 << 20, |room| json(list.as_bytes(), &origin(), room)).0;
        let groups = read.expect("a list");
        let of_first: Vec<_> = groups[0].labels.iter().collect();
        assert_eq!(of_first, [("Env", "b"), ("__meta_url", "u")]);
        assert_eq!(groups[0].targets.len(), 1);
        let read = with(1 << 20, |room| yaml(list.as_bytes(), &origin(), room)).0;
        let what = read.expect_err("YAML has one spelling");
        assert!(what.starts_with("1:3: [0].Targets: there is no such key"), "{what}");
    }

    /// JSON as `encoding/json` of Go 1.26 reads it.
    #[test]
    fn json_is_read_as_go_reads_it() {
        let list = b"[{\"targets\": [\"a:1\", \"b\\ud800:1\", \"c\xff\xe2\x82:\\udc00\\ud83d\\ude00\"],\
            \"labels\": {\"x\": \"1\", \"x\": \"2\", \"y\": \"3\"}}, \
            {\"targets\": [\"d\", \"e\"], \"labels\": {\"x\": \"1\"}, \"Targets\": [\"f\"], \"labels\": {}}]";
        let (read, held) = with(1 << 20, |room| json(list, &origin(), room));
        let groups = read.expect("a list");
        let found = groups.iter().map(|group| {
            let of = |labels: &Labels| {
                labels.iter().map(|(_, value)| value.to_owned()).collect::<Vec<_>>().join(" ")
            };
            (group.targets.iter().map(of).collect::<Vec<_>>().join(" "), of(&group.labels))
        });
        let first = ("a:1 b\u{fffd}:1 c\u{fffd}\u{fffd}\u{fffd}:\u{fffd}\u{1f600}", "u 2 3");
        let expected = [first, ("f", "u")].map(|(one, other)| (one.to_owned(), other.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        // Values before the last one of a repeated key hold no memory.
        let once = b"[{\"targets\": [\"a:1\", \"b\\ud800:1\", \"c\xff\xe2\x82:\\udc00\\ud83d\\ude00\"],\
            \"labels\": {\"x\": \"1\", \"x\": \"2\", \"y\": \"3\"}}, {\"targets\": [\"f\"], \"labels\": {}}]";
        assert_eq!(with(1 << 20, |room| json(once, &origin(), room)).1, held);
    }

    #[test]
    fn what_is_no_list_says_where() {
        let nil = "nil target group item found";
        for (text, of_json, of_yaml) in [
            ("{}", "invalid type: map, expected a list of groups of targets at line 1 ", "1:1: "),
            ("[null, {\"targets\": [\"a\"]}]", nil, nil),
            (
                "[{}, {\"x\": 1}]",
                "unknown field `x`, expected `targets` or `labels` at line 1 ",
                "1:7: [1].x: ",
            ),
            (
                "[{\"labels\": {\"\": \"a\"}}]",
                "a label has no name at line 1 ",
                "1:2: [0]: a label has no name",
            ),
            (
                "[{\"targets\": [[]]}]",
                "invalid type: sequence, expected a string at line 1 ",
                "1:15: [0].targets[0]: ",
            ),
            ("[]]", "trailing characters at line 1 column 3", "1:3: "),
        ] {
            let (read, _) = with(1 << 20, |room| json(text.as_bytes(), &origin(), room));
            let what = read.expect_err(text);
            assert!(what.starts_with(of_json), "{text}: {what}");
            let (read, _) = with(1 << 20, |room| yaml(text.as_bytes(), &origin(), room));
            let what = read.expect_err(text);
            assert!(what.starts_with(of_yaml), "{text}: {what}");
        }
    }

    /// Regression: a list of 32 MiB took 10 GB. Whatever a list repeats, no more of it is read than
    /// there is memory for.
    #[test]
    fn no_more_is_read_than_there_is_room_for() {
        const MIB: u64 = 1 << 20;
        let repeated = |open: &str, item: &str, close: &str| {
            let items = vec![item; 2 * MIB as usize / item.len()];
            format!("{open}{}{close}", items.join(","))
        };
        for (text, is_bounded_in_json) in [
            (repeated("[", r#"{"targets":[""]}"#, "]"), true),
            (repeated("[", r#"{"targets":["a"],"labels":{"b":"c"}}"#, "]"), true),
            (repeated(r#"[{"targets":["#, "\"\"", "]}]"), true),
            (repeated(r#"[{"targets":["#, "\"a:1\"", "]}]"), true),
            (repeated(r#"[{"labels":{"#, r#""":"""#, "}}]"), true),
            // Nothing of these is kept.
            (repeated("[", "{}", "]"), false),
            (repeated("[", r#"{"labels":{"a":""}}"#, "]"), false),
        ] {
            let beginning = &text[..40];
            let (read, bytes) = with(4 * MIB, |room| json(text.as_bytes(), &origin(), room));
            assert!(bytes <= 2 * MIB, "{beginning}: {bytes}");
            assert_eq!(read.is_err(), is_bounded_in_json, "{beginning}");
            if let Err(what) = read {
                assert!(what.starts_with("no memory left for this list of targets"), "{what}");
                assert!(what.contains("raise --memory-limit at line 1 column "), "{what}");
            }
            let (read, bytes) = with(4 * MIB, |room| yaml(text.as_bytes(), &origin(), room));
            assert!(bytes <= 2 * MIB, "{beginning}: {bytes}");
            // The repeated key is found first.
            let what = read.expect_err("nodes take room");
            assert!(what.contains("no memory left") || what.contains("there already"), "{what}");
        }
    }
}
