use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const FORM: Option<Form> = Some(Form::Parts);

/// Scrapes these texts once, all tracked, with references by name; returns the stale series.
fn scrape(cache: &mut Cache, texts: &[(&str, SeriesRef)], is_good: bool) -> Vec<SeriesRef> {
    for (text, reference) in texts {
        let slot = match cache.look_up(text.as_bytes()) {
            Lookup::Known { slot, .. } => slot,
            _ => cache.insert(text.as_bytes(), FORM),
        };
        cache.set_reference(slot, Some(*reference));
        cache.track(slot);
    }
    let stale = cache.stale();
    cache.finish(is_good, &stale, &mut Families::default());
    stale
}

#[test]
fn vanished_series_are_stale_once() {
    let mut cache = Cache::new(7);
    let both = [("a", 1), ("b", 2)];
    assert!(scrape(&mut cache, &both, true).is_empty());
    assert!(scrape(&mut cache, &both, true).is_empty());
    assert_eq!(scrape(&mut cache, &[("b", 2)], true), [1]);
    assert!(scrape(&mut cache, &[("b", 2)], true).is_empty());
    assert_eq!(cache.len(), 1);
    assert_eq!(scrape(&mut cache, &[], false), [2]);
    assert!(scrape(&mut cache, &[], false).is_empty());
    assert_eq!(cache.len(), 1, "a failed scrape removes nothing");
    assert!(scrape(&mut cache, &both, true).is_empty());
}

#[test]
fn a_series_under_another_text_is_not_stale() {
    let mut cache = Cache::new(7);
    scrape(&mut cache, &[("m{a=\"1\",b=\"1\"}", 5), ("n", 6)], true);
    assert_eq!(scrape(&mut cache, &[("m{b=\"1\",a=\"1\"}", 5)], true), [6]);
    assert!(scrape(&mut cache, &[("m{a=\"1\",b=\"1\"}", 5)], true).is_empty());
}

/// Regression: prometheus/prometheus#16160, false duplicates after failed scrapes.
#[test]
fn a_failed_scrape_makes_no_duplicates_of_the_next() {
    let mut cache = Cache::new(7);
    scrape(&mut cache, &[("a", 1)], false);
    assert!(matches!(cache.look_up(b"a"), Lookup::Known { is_repeated: false, .. }));
    assert!(matches!(cache.look_up(b"a"), Lookup::Known { is_repeated: true, .. }));
}

#[test]
fn a_reference_may_change_while_the_series_is_exposed() {
    let mut cache = Cache::new(7);
    scrape(&mut cache, &[("a", 100)], true);
    assert!(scrape(&mut cache, &[("a", 200)], true).is_empty());
    assert_eq!(scrape(&mut cache, &[], true), [200]);
}

#[test]
fn dropped_series_are_remembered_while_they_are_exposed() {
    let mut cache = Cache::new(7);
    cache.insert(b"a", None);
    cache.finish(true, &[], &mut Families::default());
    assert_eq!(cache.look_up(b"a"), Lookup::Dropped);
    cache.finish(true, &[], &mut Families::default());
    cache.finish(true, &[], &mut Families::default());
    assert_eq!(cache.look_up(b"a"), Lookup::New);
}

/// Follows the upstream test TestScrapeLoopCacheMemoryExhaustionProtection.
#[test]
fn failing_scrapes_with_changing_series_do_not_grow_the_cache() {
    let mut cache = Cache::new(7);
    let mut forced = 0;
    for iteration in 0..5 {
        for number in 0..500 {
            let text = format!("metric_{number}_{iteration}");
            assert_eq!(cache.look_up(text.as_bytes()), Lookup::New);
            cache.insert(text.as_bytes(), FORM);
        }
        forced += u32::from(cache.finish(false, &[], &mut Families::default()).is_forced);
        assert!(cache.len() <= 1500, "{} entries", cache.len());
    }
    assert_eq!(forced, 2);
}

#[test]
fn memory_is_given_back() {
    let mut cache = Cache::new(7);
    let texts: Vec<String> = (0..5000).map(|number| format!("m{number}")).collect();
    let rows: Vec<(&str, SeriesRef)> =
        texts.iter().enumerate().map(|(place, text)| (text.as_str(), place as u64)).collect();
    scrape(&mut cache, &rows, true);
    assert_eq!(scrape(&mut cache, &rows[..10], true).len(), 4990);
    assert!(cache.entries.capacity() >= 5000, "places stay until the next scrape begins");
    cache.shrink();
    assert!(cache.entries.capacity() < 100);
    assert!(scrape(&mut cache, &rows[..10], true).is_empty());
}

/// A target whose series change each time, beside some that stay.
#[test]
fn texts_that_vanish_take_no_memory() {
    let mut cache = Cache::new(7);
    let mut most = 0;
    for round in 0..50 {
        let texts: Vec<String> = (0..1000)
            .map(|number| match number % 2 {
                0 => format!("stays{{number=\"{number:04}\"}}"),
                _ => format!("comes{{number=\"{number:04}\",round=\"{round:04}\"}}"),
            })
            .collect();
        let rows: Vec<(&str, SeriesRef)> = (0..)
            .zip(&texts)
            .map(|(at, text)| (text.as_str(), ((round * (at % 2)) << 32) | at))
            .collect();
        cache.shrink();
        let gone = scrape(&mut cache, &rows, true);
        assert_eq!(gone.len(), if round < 2 { round as usize * 500 } else { 500 }, "{round}");
        assert_eq!(cache.len(), 1000);
        most = most.max(cache.texts.bytes());
    }
    let all_bytes = 500 * (40 + 24);
    assert!(most < 4 * all_bytes, "{most}");
}

#[test]
fn exemplars_stay_with_their_series() {
    let mut cache = Cache::new(7);
    let texts: Vec<String> = (0..3000).map(|number| format!("m{number}")).collect();
    let rows: Vec<(&str, SeriesRef)> =
        texts.iter().enumerate().map(|(place, text)| (text.as_str(), place as u64)).collect();
    scrape(&mut cache, &rows, true);
    let exemplar = |value: f64| TimelessExemplar { labels: Labels::of(&BTreeMap::new()), value };
    for (place, _) in texts.iter().enumerate() {
        let timeless = Some(exemplar(place as f64));
        cache.note_exemplar(StoredExemplar { slot: Slot(place as u32), at_ms: 1, timeless });
    }
    let kept = [rows[5], rows[700], rows[2999]];
    scrape(&mut cache, &kept, true);
    cache.shrink();
    assert_eq!(cache.exemplars.len(), kept.len());
    for (text, number) in kept {
        let Lookup::Known { slot, .. } = cache.look_up(text.as_bytes()) else { panic!("known") };
        assert!(cache.is_repeated(slot, &exemplar(number as f64)), "{text}");
        assert!(!cache.is_repeated(slot, &exemplar(number as f64 + 1.0)), "{text}");
    }
}

#[test]
fn what_the_store_refuses_is_tracked_no_more() {
    let mut cache = Cache::new(7);
    scrape(&mut cache, &[("a", 1), ("b", 2)], true);
    // Of b and c all samples are refused; c is new.
    scrape(&mut cache, &[("a", 1), ("b", 2), ("c", 3)], true);
    assert_eq!(cache.untrack_refused(|reference| reference > 1), [2]);
    assert_eq!(scrape(&mut cache, &[], true), [1]);
}

#[test]
fn series_that_end_are_returned_with_their_texts() {
    let mut cache = Cache::new(7);
    scrape(&mut cache, &[("a", 1), ("b", 2)], true);
    let Lookup::Known { slot, .. } = cache.look_up(b"b") else { panic!("b is known") };
    cache.track(slot);
    let stale = cache.stale();
    let finished = cache.finish(true, &stale, &mut Families::default());
    let ended: Vec<(SeriesRef, &[u8])> =
        finished.ended.iter().map(|ended| (ended.reference, &*ended.text)).collect();
    assert_eq!((stale, ended), (vec![1], vec![(1, &b"a"[..])]));
}

proptest! {
    /// Compares with plain sets: any scrapes in any order, good or failed.
    #[test]
    fn agrees_with_sets(scrapes: Vec<(bool, Vec<(u8, bool)>)>) {
        let mut cache = Cache::new(7);
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        let mut before: BTreeSet<SeriesRef> = BTreeSet::new();
        for (iteration, (is_good, series)) in scrapes.into_iter().enumerate() {
            let mut now = BTreeSet::new();
            for (number, is_tracked) in series {
                let text = format!("m{}", number % 16);
                let expected = known.insert(text.clone(), iteration as u32);
                let slot = match cache.look_up(text.as_bytes()) {
                    Lookup::Known { slot, is_repeated } => {
                        prop_assert_eq!(expected.map(|seen| seen == iteration as u32), Some(is_repeated));
                        slot
                    }
                    _ => {
                        prop_assert_eq!(expected, None);
                        cache.insert(text.as_bytes(), FORM)
                    }
                };
                cache.set_reference(slot, Some(u64::from(number % 16)));
                if is_tracked {
                    cache.track(slot);
                    now.insert(u64::from(number % 16));
                }
            }
            let stale: BTreeSet<SeriesRef> = cache.stale().into_iter().collect();
            prop_assert_eq!(stale, before.difference(&now).copied().collect::<BTreeSet<_>>());
            cache.finish(is_good, &[], &mut Families::default());
            if is_good {
                known.retain(|_, seen| *seen == iteration as u32);
            }
            prop_assert_eq!(cache.len(), known.len());
            before = now;
        }
    }
}
