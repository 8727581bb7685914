use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tidepool_disk::fs::RealDisk;

/// The file of the module's head, byte for byte.
const DOCUMENTED: &str = r#"{"crc32c":1383707441,"position":{"through":17,"beyond":[[19,24]],"muted":[12],"left_ms":null}}"#;

const DAY_MS: i64 = 86_400_000;

fn documented() -> Position {
    Position { through: 17, beyond: vec![(19, 24)], muted: vec![12] }
}

fn positions(dir: &Path) -> Positions {
    Positions::new(Arc::new(RealDisk), dir.join("receivers"))
}

#[test]
fn the_documented_file_is_what_is_written_and_read() {
    assert_eq!(String::from_utf8(encode(&documented(), None)).unwrap(), DOCUMENTED);
    assert_eq!(decode(DOCUMENTED.as_bytes()), Ok((documented(), None)));
}

#[test]
fn a_file_is_read_back_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let positions = positions(dir.path());
    assert_eq!(positions.load("phone"), Found::Nothing);
    assert!(!dir.path().join("receivers").exists(), "nothing is made before the first write");
    for through in [3, 900] {
        let position = Position { through, ..Position::default() };
        positions.store("phone", &position).unwrap();
        assert_eq!(positions.load("phone"), Found::Position(position));
    }
    assert_eq!(positions.load("other"), Found::Nothing);
    assert_eq!(positions.number_max().unwrap(), 900);
}

#[test]
fn a_damaged_file_is_kept_under_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let positions = positions(dir.path());
    positions.store("phone", &documented()).unwrap();
    let path = dir.path().join("receivers/phone.json");
    let flipped = DOCUMENTED.replace("17", "16");
    std::fs::write(&path, &flipped).unwrap();
    assert_eq!(positions.load("phone"), Found::Damaged);
    assert_eq!(positions.load("phone"), Found::Nothing);
    let kept = std::fs::read_to_string(dir.path().join("receivers/phone.json.damaged")).unwrap();
    assert_eq!(kept, flipped);
    assert_eq!(positions.number_max().unwrap(), 0);
}

#[test]
fn each_cut_and_each_changed_byte_is_damage() {
    for cut in 0..DOCUMENTED.len() {
        assert!(decode(&DOCUMENTED.as_bytes()[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..DOCUMENTED.len() {
        for bit in 0..8 {
            let mut bytes = DOCUMENTED.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            assert!(decode(&bytes).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn a_position_that_cannot_be_is_damage() {
    let wrong = [
        Position { beyond: vec![(18, 20)], ..documented() },
        Position { beyond: vec![(20, 19)], ..documented() },
        Position { beyond: vec![(19, 20), (21, 22)], ..documented() },
        Position { beyond: vec![(30, 31), (21, 22)], ..documented() },
        Position { muted: vec![12, 12], ..documented() },
        Position { muted: vec![25], ..documented() },
    ];
    for position in wrong {
        assert_eq!(decode(&encode(&position, None)), Err(Damage::Order), "{position:?}");
    }
}

#[test]
fn the_position_of_a_receiver_that_left_is_kept_for_two_weeks() {
    let dir = tempfile::tempdir().unwrap();
    let positions = positions(dir.path());
    let is_there = |name| positions.load(name) != Found::Nothing;
    for name in ["stays", "leaves", "returns"] {
        positions.store(name, &documented()).unwrap();
    }
    std::fs::write(dir.path().join("receivers/gone.json.tmp"), "half").unwrap();
    positions.tidy(&["stays", "returns", "leaves"], Some(0)).unwrap();
    positions.tidy(&["stays"], Some(100 * DAY_MS)).unwrap();
    // By a clock that went back, its absence begins again.
    positions.tidy(&["stays"], Some(10 * DAY_MS)).unwrap();
    positions.tidy(&["stays"], None).unwrap();
    positions.tidy(&["stays"], Some(24 * DAY_MS - 1)).unwrap();
    assert!(is_there("leaves") && is_there("returns") && is_there("stays"));
    // A pump writes the position of a receiver that is back.
    positions.store("returns", &documented()).unwrap();
    positions.tidy(&["stays"], Some(24 * DAY_MS)).unwrap();
    assert!(!is_there("leaves") && is_there("returns") && is_there("stays"));
    assert!(!dir.path().join("receivers/gone.json.tmp").exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("receivers"), "a file").unwrap();
    let error = positions(dir.path()).store("phone", &documented()).unwrap_err();
    assert!(error.to_string().starts_with("could not create "), "{error}");
}

proptest! {
    #[test]
    fn hostile_bytes_are_no_position(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes).is_err());
    }

    /// Against a plain set of numbers.
    #[test]
    fn all_but_the_undelivered_is_done(
        undelivered in prop::collection::btree_set(1u64..60, 0..30),
        more in 0u64..5,
        end in 0u64..70,
    ) {
        let read = undelivered.last().copied().unwrap_or(0) + more;
        let position = Position::without(undelivered.iter().copied(), read, []);
        for number in 1..=read + 3 {
            let is_done = number <= read && !undelivered.contains(&number);
            prop_assert_eq!(position.is_done(number), is_done, "{} of {:?}", number, position);
        }
        let done: BTreeSet<u64> = (1..=read).filter(|number| !undelivered.contains(number)).collect();
        prop_assert_eq!(position.last(), done.last().copied().unwrap_or(0));
        let undone = (1..end).filter(|number| !done.contains(number)).count() as u64;
        prop_assert_eq!(position.undone_below(end), undone);
        prop_assert_eq!(decode(&encode(&position, Some(5))), Ok((position, Some(5))));
    }
}
