//! One behaviour a test.

use super::world::*;
use crate::config::GroupBy;
use crate::dispatch::Terms;
use crate::dispatch::groups::{ALERTS_MAX, Progress};
use crate::event::{Change, Origin};
use std::time::Duration;
use tidepool_rules::labels::LabelSet;

const NOTHING: [&str; 0] = [];

#[test]
fn the_first_notification_waits_for_further_alerts() {
    let mut world = World::new(terms());
    world.fire("A");
    assert_eq!(world.told(), NOTHING);
    assert_eq!(world.groups.wake(world.moment()), Some(Duration::from_secs(GROUP_WAIT)));
    world.pass(GROUP_WAIT - 1);
    world.fire("B");
    assert_eq!(world.told(), NOTHING);
    world.pass(1);
    assert_eq!(world.told(), ["first: A* firing, B* firing"]);
    assert_eq!(world.told(), NOTHING);
}

#[test]
fn an_alert_that_waited_elsewhere_is_told_at_once() {
    let mut world = World::new(terms());
    let begin_ms = world.moment().wall_ms;
    world.pass(GROUP_WAIT);
    world.add(event(Change::Firing, "A", begin_ms));
    assert_eq!(world.told(), ["first: A* firing"]);
}

#[test]
fn changes_of_a_group_wait_for_its_interval() {
    let mut world = World::new(terms());
    world.fire("A");
    world.pass(GROUP_WAIT);
    assert_eq!(world.told().len(), 1);
    world.pass(1);
    world.fire("B");
    world.pass(GROUP_INTERVAL - 2);
    assert_eq!(world.told(), NOTHING);
    world.pass(1);
    assert_eq!(world.told(), ["new: B* firing, A firing"]);
    world.resolve("A");
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), ["resolved: A* resolved, B firing"]);
    world.resolve("B");
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), ["resolved: B* resolved"]);
    // The group is gone: the next alert has a new one.
    world.fire("C");
    world.pass(GROUP_WAIT);
    assert_eq!(world.told(), ["first: C* firing"]);
}

#[test]
fn a_group_without_changes_is_repeated() {
    let mut world = World::new(terms());
    world.fire("A");
    world.pass(GROUP_WAIT);
    let first = world.next().unwrap();
    let id = first.notification.alerts[0].id.clone();
    world.accept(first);
    for _ in 0..REPEAT_INTERVAL / GROUP_INTERVAL - 1 {
        world.pass(GROUP_INTERVAL);
        assert_eq!(world.told(), NOTHING);
    }
    world.pass(GROUP_INTERVAL);
    let repeat = world.next().unwrap();
    assert_eq!(text(&repeat.notification), "repeat: A firing");
    assert_eq!(repeat.notification.alerts[0].id, id);
    world.accept(repeat);
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), NOTHING);
}

#[test]
fn repetitions_continue_in_step_after_a_restart() {
    let mut world = World::new(terms());
    world.fire("A");
    world.pass(GROUP_WAIT);
    assert_eq!(world.told().len(), 1);
    // Two restarts between two repetitions do not put them off.
    world.pass(REPEAT_INTERVAL / 2);
    world.restart();
    world.pass(REPEAT_INTERVAL / 4);
    world.restart();
    world.pass(REPEAT_INTERVAL / 4 - GROUP_WAIT - 1);
    assert_eq!(world.told(), NOTHING);
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), ["repeat: A firing"]);
}

#[test]
fn an_alert_that_ends_within_the_wait_is_told_twice_in_order() {
    let mut world = World::new(terms());
    world.fire("A");
    world.fire("B");
    world.resolve("A");
    world.fire("A");
    world.pass(GROUP_WAIT);
    assert_eq!(
        world.told(),
        [
            "first: A* firing, B* firing",
            "resolved: A* resolved, B firing",
            "new: A* firing, B firing"
        ]
    );
}

#[test]
fn equal_labels_of_two_rules_are_never_in_one_notification() {
    let mut world = World::new(terms());
    world.fire("A");
    let mut other = event(Change::Firing, "A", world.moment().wall_ms);
    other.origin = Origin { file: "rules.yml".into(), group: "other".into() };
    world.add(other);
    world.pass(GROUP_WAIT);
    let mut urls = Vec::new();
    while let Some(due) = world.next() {
        assert_eq!(due.notification.alerts.len(), 1);
        urls.push(due.notification.alerts[0].generator_url.clone());
        world.accept(due);
    }
    assert_eq!(urls, ["/rule?group=g", "/rule?group=other"]);
}

#[test]
fn groups_are_by_the_labels_that_are_named() {
    let labels = LabelSet::new([("alertname", "A"), ("job", "node"), ("x", "1")]);
    let of = |group_by, matchers: &str| {
        let terms = Terms { grouping: grouped(group_by).grouping, ..matching(matchers) };
        terms.group_key(&terms.group_of(&labels))
    };
    let by = |names: &[&str]| GroupBy::Labels(names.iter().map(|name| (*name).into()).collect());
    assert_eq!(of(by(&[]), ""), "{}:{}");
    assert_eq!(
        of(by(&["job", "alertname", "absent"]), r#"{severity="page"}"#),
        r#"{}/{severity="page"}:{alertname="A", job="node"}"#
    );
    assert_eq!(of(GroupBy::EachAlert, ""), r#"{}:{alertname="A", job="node", x="1"}"#);
}

#[test]
fn each_group_has_its_own_notification() {
    let mut world = World::new(grouped(GroupBy::EachAlert));
    world.fire("A");
    world.fire("B");
    world.pass(GROUP_WAIT);
    let mut told = world.told();
    told.sort();
    assert_eq!(told, ["first: A* firing", "first: B* firing"]);
}

#[test]
fn only_what_matches_is_delivered() {
    let mut world = World::new(matching(r#"{severity="page"}"#));
    world.groups.take_progress();
    world.fire("A");
    world.read();
    assert_eq!((world.groups.position().through, world.groups.progress()), (1, Progress::Passed));
    let mut paging = event(Change::Firing, "B", world.moment().wall_ms);
    paging.labels = paging.labels.with([("severity", "page")]);
    world.add(paging);
    world.pass(GROUP_WAIT);
    assert_eq!(world.told(), ["first: B* firing"]);
}

#[test]
fn rules_that_are_not_named_are_for_those_who_ask_for_them() {
    let told = |matchers: &str| {
        let mut world = World::new(matching(matchers));
        let mut builtin = event(Change::Firing, "A", world.moment().wall_ms);
        builtin.is_unnamed = true;
        world.add(builtin);
        world.pass(GROUP_WAIT);
        world.told().len()
    };
    assert_eq!([told(""), told(r#"{alertname="A"}"#), told(r#"{alertname="B"}"#)], [0, 1, 0]);
}

#[test]
fn without_resolved_only_beginnings_are_delivered() {
    let mut world = World::new(Terms { send_resolved: false, ..terms() });
    world.fire("A");
    world.resolve("A");
    world.pass(GROUP_WAIT);
    assert_eq!(world.told(), ["first: A* firing"]);
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), NOTHING);
    assert_eq!(world.groups.position().through, 2);
    assert_eq!(world.groups.wake(world.moment()), None, "the group is gone");
}

#[test]
fn a_muted_alert_is_told_when_its_silence_ends() {
    let mut world = World::new(terms());
    world.silenced.insert("A".into());
    let number = world.fire("A");
    world.pass(GROUP_WAIT);
    assert_eq!(world.told(), NOTHING);
    assert_eq!(world.groups.position().muted, [number]);
    assert_eq!(world.groups.position().through, number);
    assert_eq!(world.groups.take_totals().silenced, 1);
    world.restart();
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), NOTHING);
    world.silenced.clear();
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), ["first: A* firing"]);
    assert_eq!(world.groups.position().muted, NUMBERS);
    world.resolve("A");
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), ["resolved: A* resolved"]);
}

const NUMBERS: [u64; 0] = [];

#[test]
fn an_alert_that_began_muted_ends_untold() {
    for restarts in [false, true] {
        let mut world = World::new(terms());
        world.silenced.insert("A".into());
        world.fire("A");
        world.fire("B");
        world.pass(GROUP_WAIT);
        assert_eq!(world.told(), ["first: B* firing"]);
        world.silenced.clear();
        world.resolve("A");
        if restarts {
            world.restart();
        }
        world.pass(GROUP_INTERVAL);
        assert_eq!(world.told(), NOTHING);
        let position = world.groups.position();
        assert_eq!((position.through, position.muted.len()), (3, 0));
        // The next time it fires is another matter.
        world.fire("A");
        world.pass(GROUP_INTERVAL);
        assert_eq!(world.told(), ["new: A* firing, B firing"]);
    }
}

#[test]
fn a_silenced_alert_is_in_no_notification() {
    let mut world = World::new(terms());
    world.fire("A");
    world.fire("B");
    world.pass(GROUP_WAIT);
    assert_eq!(world.told().len(), 1);
    world.silenced.insert("A".into());
    world.fire("C");
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), ["new: C* firing, B firing"]);
    world.pass(REPEAT_INTERVAL);
    assert_eq!(world.told(), ["repeat: B firing, C firing"]);
    // As Alertmanager has it: what ends while it is silenced ends untold.
    world.resolve("A");
    world.pass(GROUP_INTERVAL);
    assert_eq!(world.told(), NOTHING);
    assert_eq!(world.groups.position().through, 4);
}

#[test]
fn labels_of_the_node_are_those_of_its_alerts() {
    let mut terms = grouped(GroupBy::Labels(vec!["node".into()]));
    terms.links.external_labels = LabelSet::new([("alertname", "never"), ("node", "n1")]);
    terms.matchers = vec![crate::matchers::Matchers::parse("node=\"n1\",alertname=\"A\"").unwrap()];
    let mut world = World::new(terms);
    let number = world.fire("A");
    world.pass(GROUP_WAIT);
    let due = world.next().unwrap();
    let (notification, alert) = (&due.notification, &due.notification.alerts[0]);
    let labels = LabelSet::new([("alertname", "A"), ("node", "n1")]);
    assert_eq!(alert.labels, labels, "the label of the alert wins");
    assert_eq!(notification.group_labels.get("node").map(String::as_str), Some("n1"));
    assert_eq!(alert.fingerprint, crate::event::fingerprint(&labels));
    // As the history has it, also if the labels of the node change.
    assert_eq!(alert.id, world.entries[number as usize - 1].event.id());
}

#[test]
fn what_waits_as_configured_is_not_undelivered() {
    let mut world = World::new(terms());
    world.fire("A");
    world.read();
    let counts = |world: &World| {
        let backlog = world.groups.backlog(world.moment());
        (backlog.waiting, backlog.undelivered, backlog.oldest_undelivered_ms)
    };
    assert_eq!(counts(&world), (1, 0, None));
    world.pass(GROUP_WAIT);
    assert_eq!(counts(&world), (0, 1, Some(BEGIN_MS)));
    let due = world.next().unwrap();
    world.refuse(due);
    assert_eq!(counts(&world), (0, 1, Some(BEGIN_MS)));
    world.pass(1);
    assert_eq!(world.told().len(), 1);
    assert_eq!(counts(&world), (0, 0, None));
}

#[test]
fn an_event_is_late_five_minutes_after_the_group_wait() {
    for (age, is_late) in [(330, false), (331, true)] {
        let mut world = World::new(terms());
        world.fire("A");
        world.pass(age);
        let due = world.next().unwrap();
        assert_eq!(due.notification.alerts[0].is_late, is_late, "{age} s");
        assert_eq!(due.notification.alerts[0].starts_at_ms, BEGIN_MS);
        world.accept(due);
        world.pass(REPEAT_INTERVAL);
        let repeat = world.next().unwrap();
        assert!(!repeat.notification.alerts[0].is_late, "no news");
    }
}

#[test]
fn many_alerts_are_delivered_in_bounded_notifications() {
    let mut world = World::new(terms());
    let count = 2 * ALERTS_MAX + 7;
    for number in 0..count {
        world.fire(&format!("A{number}"));
    }
    world.pass(GROUP_WAIT);
    let mut news = Vec::new();
    let mut sizes = Vec::new();
    while let Some(due) = world.next() {
        let alerts = &due.notification.alerts;
        news.extend(alerts.iter().filter(|alert| alert.is_news).map(|alert| alert.id.clone()));
        sizes.push((alerts.len(), due.notification.truncated_alerts));
        world.accept(due);
    }
    let ids: Vec<String> = world.entries.iter().map(|entry| entry.event.id()).collect();
    assert_eq!(news, ids);
    // The context of the third is cut; what is news never is.
    assert_eq!(sizes, [(ALERTS_MAX, 0), (ALERTS_MAX, ALERTS_MAX), (ALERTS_MAX, 507)]);
}

#[test]
fn a_large_alert_is_sent_alone() {
    let mut world = World::new(terms());
    for name in ["A", "B"] {
        let mut large = event(Change::Firing, name, world.moment().wall_ms);
        let text = ("text".to_owned(), "x".repeat(300 << 10));
        large.annotations = std::sync::Arc::new([text].into());
        world.add(large);
    }
    world.pass(GROUP_WAIT);
    assert_eq!(world.told(), ["first: A* firing", "new: B* firing"]);
}

/// What the journal drops while the receiver fails, and what then is delivered and counted.
#[test]
fn what_the_journal_drops_is_counted_and_the_rest_is_delivered() {
    let cases: [(u64, &[&str], u64); 5] = [
        (1, &["first: A* firing", "resolved: A* resolved", "new: A* firing"], 0),
        // The alert was open before the oldest event: its beginning is kept.
        (2, &["first: A* firing", "resolved: A* resolved", "new: A* firing"], 0),
        (3, &["first: A* firing"], 2),
        (4, &["first: A* firing"], 2),
        (9, &["first: A* firing"], 2),
    ];
    for (oldest, told, dropped) in cases {
        for is_read in [true, false] {
            for restarts in [true, false] {
                let mut world = World::new(terms());
                world.fire("A");
                world.pass(1);
                world.resolve("A");
                world.pass(1);
                world.fire("A");
                if is_read {
                    world.read();
                }
                world.oldest = oldest.min(4);
                if restarts {
                    world.restart();
                }
                world.pass(GROUP_WAIT);
                let case = format!("{oldest}, read {is_read}, restarts {restarts}");
                // The last beginning is told first when the one before it was not.
                let found: Vec<String> =
                    world.told().iter().map(|text| text.replace("new: ", "first: ")).collect();
                let told: Vec<String> =
                    told.iter().map(|text| text.replace("new: ", "first: ")).collect();
                assert_eq!(found, told, "{case}");
                assert_eq!(world.groups.take_totals().dropped, dropped, "{case}");
                assert_eq!(world.groups.position().through, 3, "{case}");
            }
        }
    }
}

#[test]
fn an_alert_whose_end_was_dropped_is_repeated_no_more() {
    for is_read in [true, false] {
        let mut world = World::new(terms());
        world.fire("A");
        world.pass(GROUP_WAIT);
        assert_eq!(world.told().len(), 1);
        world.resolve("A");
        if is_read {
            world.read();
        }
        world.oldest = 3;
        world.fire("B");
        world.pass(GROUP_INTERVAL);
        assert_eq!(world.told(), ["first: B* firing"], "read {is_read}");
        assert_eq!(world.groups.take_totals().dropped, 1);
    }
}

#[test]
fn a_new_receiver_hears_of_what_fires() {
    let mut world = World::new(terms());
    world.fire("A");
    world.fire("B");
    world.resolve("A");
    world.pass(GROUP_WAIT);
    world.start(super::super::Known::AllButFiring);
    let position = world.groups.position();
    assert_eq!((position.through, position.beyond), (1, vec![(3, 3)]));
    assert_eq!(world.told(), ["first: B* firing"]);
    assert_eq!(world.groups.position().through, 3);
}
