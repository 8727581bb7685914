//! Expectations are facts of `silence/silence_test.go` in prometheus/alertmanager: which updates
//! keep the identifier, and which end a silence and begin another.

use super::*;
use SilenceState::{Active, Expired, Pending};

#[test]
fn only_alerts_that_match_are_silenced_and_only_while_it_is_active() {
    let node = Node::new();
    assert_eq!(node.silences.silencing(&labels()), None);
    let id = node.silences.set(&wanted(MINUTE_MS, HOUR_MS)).expect("a silence");
    assert_eq!((node.state(id), node.silences.silencing(&labels())), (Pending, None));
    node.clocks.pass(MINUTE_MS);
    assert_eq!(node.silences.silencing(&labels()), Some(id));
    assert_eq!(node.silences.silencing(&LabelSet::new([("job", "other")])), None);
    node.clocks.pass(HOUR_MS - MINUTE_MS);
    // The end is included.
    assert_eq!(node.state(id), Active);
    node.clocks.pass(1);
    assert_eq!((node.state(id), node.silences.silencing(&labels())), (Expired, None));
}

#[test]
fn a_new_silence_does_not_begin_in_the_past() {
    let node = Node::new();
    let id = node.silences.set(&wanted(-HOUR_MS, HOUR_MS)).expect("a silence");
    assert_eq!(node.span(id), (0, HOUR_MS));
    let without_start = Wanted { starts_at_ms: None, ..wanted(0, HOUR_MS) };
    let id = node.silences.set(&without_start).expect("a silence");
    assert_eq!(node.span(id), (0, HOUR_MS));
}

struct Update {
    name: &'static str,
    /// Times of the silence, made at noon.
    before: (i64, i64),
    /// Time at which it is changed.
    at_ms: i64,
    after: (i64, i64),
    matchers: &'static str,
    is_kept: bool,
    /// State of the silence that was there before.
    state: SilenceState,
}

#[test]
fn updates_do_not_rewrite_the_past() {
    let (minute, hour) = (MINUTE_MS, HOUR_MS);
    for update in [
        Update {
            name: "extended",
            before: (0, hour),
            at_ms: minute,
            after: (0, 2 * hour),
            matchers: "job=node",
            is_kept: true,
            state: Active,
        },
        Update {
            name: "shortened, with a start of the same second",
            before: (0, hour),
            at_ms: minute,
            after: (999, 2 * minute),
            matchers: "job=node",
            is_kept: true,
            state: Active,
        },
        Update {
            name: "another start of an active one",
            before: (0, hour),
            at_ms: minute,
            after: (minute, hour),
            matchers: "job=node",
            is_kept: false,
            state: Expired,
        },
        Update {
            name: "other matchers",
            before: (0, hour),
            at_ms: minute,
            after: (0, hour),
            matchers: "job=other",
            is_kept: false,
            state: Expired,
        },
        Update {
            name: "a pending one begins earlier",
            before: (hour, 2 * hour),
            at_ms: minute,
            after: (2 * minute, hour),
            matchers: "job=node",
            is_kept: true,
            state: Pending,
        },
        Update {
            name: "a pending one begins in the past",
            before: (hour, 2 * hour),
            at_ms: minute,
            after: (0, hour),
            matchers: "job=node",
            is_kept: false,
            state: Expired,
        },
        Update {
            name: "an expired one",
            before: (0, minute),
            at_ms: 2 * minute,
            after: (0, hour),
            matchers: "job=node",
            is_kept: false,
            state: Expired,
        },
    ] {
        let node = Node::new();
        let name = update.name;
        let before = node.silences.set(&wanted(update.before.0, update.before.1)).expect(name);
        node.clocks.pass(update.at_ms);
        let changed = Wanted {
            id: Some(before),
            matchers: Matchers::parse(update.matchers).expect(name),
            comment: "changed".to_owned(),
            ..wanted(update.after.0, update.after.1)
        };
        let after = node.silences.set(&changed).expect(name);
        assert_eq!(after == before, update.is_kept, "{name}");
        assert_eq!(node.state(before), update.state, "{name}");
        let silence = node.silences.get(after).expect(name).0;
        assert_eq!(silence.comment, "changed", "{name}");
        assert_eq!(silence.updated_at_ms, node.clocks.now_ms(), "{name}");
        let expected = match update.is_kept {
            true => update.after,
            false => (update.after.0.max(update.at_ms), update.after.1),
        };
        assert_eq!(node.span(after), expected, "{name}");
    }
}

#[test]
fn an_expired_silence_stays_as_it_is() {
    let node = Node::new();
    let id = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    node.clocks.pass(MINUTE_MS);
    node.silences.expire(id).expect("expired");
    assert_eq!(node.state(id), Expired);
    let (before, bytes) = (node.silences.get(id), node.file());
    node.clocks.pass(MINUTE_MS);
    node.silences.expire(id).expect("expired");
    assert_eq!((node.silences.get(id), node.file()), (before, bytes));
    let pending = node.silences.set(&wanted(HOUR_MS, 2 * HOUR_MS)).expect("a silence");
    node.silences.expire(pending).expect("expired");
    assert_eq!(node.state(pending), Expired);
    let unknown = SilenceId::random().expect("an id");
    assert!(matches!(node.silences.expire(unknown), Err(SilenceError::NotFound)));
}

#[test]
fn what_no_silence_can_be_is_refused() {
    let node = Node::new();
    let matchers =
        |text: &str| Wanted { matchers: Matchers::parse(text).expect(text), ..wanted(0, HOUR_MS) };
    let unknown = Wanted { id: SilenceId::random(), ..wanted(0, HOUR_MS) };
    let long = Wanted { comment: "c".repeat(SILENCE_BYTES_MAX), ..wanted(0, HOUR_MS) };
    for (refused, expected) in [
        (unknown, "silence not found"),
        (wanted(HOUR_MS, HOUR_MS), "Failed to create silence: start time must be before end time"),
        (wanted(-HOUR_MS, -1), "Failed to create silence: end time can't be in the past"),
        (matchers(""), "invalid silence: matcher set 0 is empty"),
        (
            matchers("a=\"\",b=~\".*\""),
            "invalid silence: matcher set 0: at least one matcher must not match the empty string",
        ),
        (long, "silence exceeded maximum size: "),
    ] {
        let error = node.silences.set(&refused).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    // As in Alertmanager: a matcher with != does not count as one that matches everything.
    node.silences.set(&matchers("a!=b")).expect("a silence");
    assert_eq!(node.silences.list().len(), 1);
}

#[test]
fn expressions_of_all_silences_are_bounded() {
    let node = Node::new();
    let matchers = Matchers::parse("job=~\"(a[a-z]*b){200}c\"").expect("matchers");
    let bytes = matchers.compiled_bytes();
    assert!(bytes > EXPRESSIONS_BYTES_MAX / SILENCES_MAX, "{bytes}");
    let large = Wanted { matchers, ..wanted(0, HOUR_MS) };
    let set = (0..SILENCES_MAX).take_while(|_| node.silences.set(&large).is_ok()).count();
    assert_eq!(set, EXPRESSIONS_BYTES_MAX / bytes);
    assert!(matches!(node.silences.set(&large), Err(SilenceError::Expressions)));
    node.silences.set(&wanted(0, HOUR_MS)).expect("a silence without expressions");
}

#[test]
fn expired_silences_make_room_and_are_removed_after_five_days() {
    let node = Node::with_max(2);
    let first = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let second = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let error = node.silences.set(&wanted(0, HOUR_MS)).expect_err("no room").to_string();
    assert_eq!(error, "exceeded maximum number of silences: 2 (limit: 2)");
    // An update needs no room.
    let update = Wanted { id: Some(second), ..wanted(0, 2 * HOUR_MS) };
    assert_eq!(node.silences.set(&update).expect("an update"), second);
    node.clocks.pass(MINUTE_MS);
    node.silences.expire(second).expect("expired");
    let third = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    assert!(node.silences.get(second).is_none() && node.silences.get(first).is_some());
    node.clocks.pass(HOUR_MS + 120 * HOUR_MS - MINUTE_MS - 1);
    node.silences.maintain();
    assert!(node.silences.get(third).is_some());
    node.clocks.pass(1);
    node.silences.maintain();
    assert_eq!(node.silences.list(), []);
}
