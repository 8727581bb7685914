//! What failures and refusals hold up, and for how long.

use super::world::*;
use crate::config::GroupBy;
use std::time::Duration;

const NOTHING: [&str; 0] = [];

#[test]
fn a_failure_holds_up_everything_and_a_refusal_its_group() {
    let mut world = World::new(grouped(GroupBy::EachAlert));
    world.fire("A");
    world.fire("B");
    world.pass(GROUP_WAIT);
    for pause in [1, 2, 4] {
        let due = world.next().unwrap();
        world.fail(due);
        assert!(world.next().is_none());
        assert_eq!(world.groups.wake(world.moment()), Some(world.now + Duration::from_secs(pause)));
        world.pass(pause);
    }
    let failing = world.groups.failing().unwrap();
    let since_ms = BEGIN_MS + GROUP_WAIT as i64 * 1000;
    assert_eq!((failing.since_ms, failing.is_refusal), (since_ms, false));
    let due = world.next().unwrap();
    let refused = text(&due.notification);
    world.refuse(due);
    assert!(world.groups.failing().unwrap().is_refusal);
    let other = world.told();
    assert_eq!(other.len(), 1);
    assert_ne!(other[0], refused);
    world.pass(1);
    assert_eq!(world.told(), [refused]);
    assert_eq!(world.groups.failing(), None);
    let totals = world.groups.take_totals();
    assert_eq!((totals.sent, totals.delivered, totals.failed), (2, 2, 4));
}

/// Answers all that is due now, and refuses notifications with one alert. Returns the names in each
/// notification, with a mark for refused ones.
fn told_without(world: &mut World, unwanted: &str) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(due) = world.next() {
        let alerts = due.notification.alerts.iter();
        let names: Vec<&str> = alerts.map(|alert| alert.labels.get("alertname")).collect();
        let is_refused = names.contains(&unwanted);
        told.push(format!("{}{}", names.join(""), if is_refused { "!" } else { "" }));
        match is_refused {
            true => world.refuse(due),
            false => world.accept(due),
        }
    }
    told
}

#[test]
fn an_alert_that_is_refused_holds_up_no_other() {
    let mut world = World::new(terms());
    for name in ["A", "B", "C", "D", "E"] {
        world.fire(name);
    }
    world.pass(GROUP_WAIT);
    // Found by halves, and tried again alone.
    assert_eq!(told_without(&mut world, "D"), ["ABCDE!", "AB", "CDEAB!", "C", "DEABC!", "D!"]);
    assert!(world.groups.failing().unwrap().is_refusal);
    let backlog = world.groups.backlog(world.moment());
    assert_eq!((backlog.undelivered, backlog.waiting), (2, 0));
    world.pass(1);
    assert_eq!(told_without(&mut world, "D"), ["E", "D!"]);
    world.resolve("A");
    world.fire("F");
    assert_eq!(told_without(&mut world, "D"), NOTHING);
    world.pass(2);
    assert_eq!(told_without(&mut world, "D"), ["AFBCE", "D!"], "together with what is tried again");
    let before = world.groups.failing().unwrap();
    assert_eq!(before.since_ms, BEGIN_MS + GROUP_WAIT as i64 * 1000);
    assert_eq!(world.groups.position().through, 3);
    // Its end follows its beginning.
    world.resolve("D");
    world.pass(GROUP_INTERVAL);
    assert_eq!(
        world.told(),
        ["new: D* firing", "resolved: D* resolved, B firing, C firing, E firing, F firing"]
    );
    assert_eq!(world.groups.failing(), None);
    assert_eq!(world.groups.position().through, 8);
}

/// As with a wrong token.
#[test]
fn a_receiver_that_refuses_everything_is_asked_ever_less() {
    let mut world = World::new(terms());
    for number in 0..64 {
        world.fire(&format!("A{number:02}"));
    }
    world.pass(GROUP_WAIT);
    let mut asked = 0;
    for _ in 0..3600 {
        while let Some(due) = world.next() {
            world.refuse(due);
            asked += 1;
        }
        world.pass(1);
    }
    assert!((7 + 8..40).contains(&asked), "{asked} requests in an hour");
    assert_eq!(world.groups.backlog(world.moment()).undelivered, 64);
    let mut delivered = 0;
    for _ in 0..600 {
        while let Some(due) = world.next() {
            delivered += due.notification.alerts.iter().filter(|alert| alert.is_news).count();
            world.accept(due);
        }
        world.pass(1);
    }
    assert_eq!(delivered, 64);
}

#[test]
fn what_a_receiver_was_not_sent_follows_at_once() {
    let mut world = World::new(terms());
    for name in ["A", "B", "C"] {
        world.fire(name);
    }
    world.pass(GROUP_WAIT);
    for news in ["A*", "B*", "C*"] {
        let due = world.next().unwrap();
        assert!(text(&due.notification).contains(&format!(": {news} firing")), "{news}");
        world.accept_some(due, 1);
    }
    assert!(world.next().is_none());
    let totals = world.groups.take_totals();
    assert_eq!((totals.sent, totals.delivered), (3, 3));
}

#[test]
fn a_refused_group_that_is_silenced_fails_no_more() {
    let mut world = World::new(terms());
    world.fire("A");
    world.pass(GROUP_WAIT);
    let due = world.next().unwrap();
    world.refuse(due);
    world.silenced.insert("A".into());
    world.pass(1);
    assert_eq!(world.told(), NOTHING);
    assert_eq!(world.groups.failing(), None);
    assert_eq!(world.groups.backlog(world.moment()).undelivered, 0);
}
