//! Clocks that are set, doubted and lost. Times are relative to noon.

use super::*;
use SilenceState::{Active, Expired, Pending};

#[test]
fn a_clock_that_is_set_moves_active_silences() {
    for step_ms in [3 * HOUR_MS, -3 * HOUR_MS, 61_000, -61_000, 20 * 365 * 24 * HOUR_MS] {
        let node = Node::new();
        let id = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
        let planned = node.silences.set(&wanted(HOUR_MS, 2 * HOUR_MS)).expect("a silence");
        node.clocks.pass(20 * MINUTE_MS);
        node.clocks.set(node.clocks.now_ms() + step_ms, false);
        assert!(node.silences.silencing(&labels()).is_some(), "{step_ms}");
        assert_eq!(node.span(id), (step_ms, HOUR_MS + step_ms), "{step_ms}");
        let updated_at_ms = node.silences.get(id).expect("a silence").0.updated_at_ms;
        assert_eq!(updated_at_ms, node.clocks.now_ms());
        // What has not begun is for a time of the clock.
        assert_eq!(node.span(planned), (HOUR_MS, 2 * HOUR_MS));
        node.clocks.pass(40 * MINUTE_MS);
        assert_eq!(node.state(id), Active, "{step_ms}");
        node.clocks.pass(1);
        assert_eq!(node.state(id), Expired, "{step_ms}");
    }
}

#[test]
fn small_differences_move_nothing_and_what_has_ended_does_not_come_back() {
    let node = Node::new();
    let id = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    node.clocks.set(NOON_MS + 60_000, false);
    assert_eq!((node.state(id), node.span(id)), (Active, (0, HOUR_MS)));
    node.clocks.pass(HOUR_MS);
    assert_eq!(node.state(id), Expired);
    node.clocks.set(NOON_MS, false);
    assert_eq!((node.state(id), node.silences.silencing(&labels())), (Expired, None));
    node.clocks.pass(HOUR_MS);
    assert_eq!(node.state(id), Expired);
}

#[test]
fn moved_times_are_stored_by_the_next_maintenance_and_nothing_else_is() {
    let mut node = Node::new();
    let id = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let before = node.file();
    node.clocks.pass(MINUTE_MS);
    node.silences.maintain();
    assert_eq!(node.file(), before);
    node.clocks.set(NOON_MS + 5 * HOUR_MS, false);
    node.silences.maintain();
    let moved = node.span(id);
    assert_eq!(moved, (5 * HOUR_MS - MINUTE_MS, 6 * HOUR_MS - MINUTE_MS));
    node.restart();
    assert_eq!(node.span(id), moved);
}

#[test]
fn while_the_clock_is_doubted_states_stay() {
    let node = Node::new();
    let active = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let pending = node.silences.set(&wanted(HOUR_MS, 2 * HOUR_MS)).expect("a silence");
    for wall_ms in [0, NOON_MS + 90 * MINUTE_MS, NOON_MS + 1000 * HOUR_MS] {
        node.clocks.set(wall_ms, true);
        node.clocks.pass(10 * MINUTE_MS);
        node.silences.maintain();
        assert_eq!((node.state(active), node.state(pending)), (Active, Pending), "{wall_ms}");
    }
    // 30 minutes have passed in truth.
    node.clocks.set(NOON_MS + 30 * MINUTE_MS, false);
    assert_eq!((node.state(active), node.span(active)), (Active, (0, HOUR_MS)));
    node.clocks.pass(30 * MINUTE_MS + 1);
    assert_eq!((node.state(active), node.state(pending)), (Expired, Active));
}

#[test]
fn what_was_active_at_the_last_write_is_active_after_a_boot_in_1970() {
    let mut node = Node::new();
    let active = node.silences.set(&wanted(0, HOUR_MS)).expect("a silence");
    let pending = node.silences.set(&wanted(2 * HOUR_MS, 3 * HOUR_MS)).expect("a silence");
    node.clocks.boot(0, true);
    node.restart();
    node.clocks.pass(5 * HOUR_MS);
    assert_eq!((node.state(active), node.state(pending)), (Active, Pending));
    // The true time tells that one has ended meanwhile, and the other has begun.
    node.clocks.set(NOON_MS + 2 * HOUR_MS, false);
    assert_eq!((node.state(active), node.state(pending)), (Expired, Active));
    assert_eq!(node.span(active), (0, HOUR_MS));
}

#[test]
fn a_silence_that_is_set_in_1970_lasts_as_long_as_it_was_meant_to() {
    let mut node = Node::new();
    node.silences.set(&wanted(-HOUR_MS, HOUR_MS)).expect("a silence");
    for is_restarted in [false, true] {
        node.clocks.boot(MINUTE_MS, true);
        node.restart();
        // A client on the node has the same clock.
        let by_node = |ends_ms| wanted(MINUTE_MS - NOON_MS, MINUTE_MS + ends_ms - NOON_MS);
        let id = node.silences.set(&by_node(HOUR_MS)).expect("a silence");
        assert_eq!(node.state(id), Active);
        node.clocks.pass(20 * MINUTE_MS);
        if is_restarted {
            node.clocks.boot(MINUTE_MS, true);
            node.restart();
        }
        assert_eq!(node.state(id), Active);
        let true_ms = node.clocks.now_ms().max(NOON_MS) + 24 * HOUR_MS;
        node.clocks.set(true_ms, false);
        // A boot hides how long the node did not run, so then it lasts longer.
        let rest_ms = if is_restarted { HOUR_MS } else { 40 * MINUTE_MS };
        assert_eq!(node.silences.get(id).expect("a silence").0.ends_at_ms, true_ms + rest_ms);
        node.silences.maintain();
        node.clocks.pass(rest_ms + 1);
        assert_eq!(node.state(id), Expired);
    }
}

#[test]
fn a_silence_of_a_doubted_clock_can_be_changed_and_ended() {
    let node = Node::new();
    node.clocks.set(MINUTE_MS, true);
    let by_node = wanted(MINUTE_MS - NOON_MS, HOUR_MS - NOON_MS);
    let id = node.silences.set(&by_node).expect("a silence");
    // As it is shown, with a later end.
    let (starts_ms, ends_ms) = node.span(id);
    let longer = Wanted { id: Some(id), ..wanted(starts_ms, ends_ms + HOUR_MS) };
    assert_eq!(node.silences.set(&longer).expect("an update"), id);
    assert_eq!(node.state(id), Active);
    node.silences.expire(id).expect("expired");
    assert_eq!(node.state(id), Expired);
    node.clocks.set(NOON_MS + HOUR_MS, false);
    assert_eq!(node.state(id), Expired);
}
