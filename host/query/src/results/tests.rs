//! Tests of reading, caching, joining and writing random answers, and of the cache's limits.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use tidepool_runtime::QueryTimes;

const STEP_MS: i64 = 500;

/// Label sets in order. The text of the second one needs escapes in JSON.
const METRICS: [&str; 4] =
    [r#"{}"#, r#"{"a":"\"\\\n\u0001é"}"#, r#"{"a":"b","c":"]}"}"#, r#"{"b":""}"#];

/// Points by series and step: a float, a native histogram, or none.
type Table = Vec<Vec<Option<(bool, u32)>>>;

fn tables() -> impl Strategy<Value = Table> {
    let point = prop::option::weighted(0.8, (any::<bool>(), any::<u32>()));
    prop::collection::vec(prop::collection::vec(point, 24), METRICS.len())
}

fn steps(first: i64, last: i64) -> Steps {
    let time = |step: i64| -1_500 + step * STEP_MS;
    let (start_ms, end_ms) = (time(first), time(last));
    Steps::of(QueryTimes::Range { start_ms, end_ms, step_ms: STEP_MS }).expect("steps")
}

/// Formats the engine's answer, without the code under test.
fn written(table: &Table, first: usize, last: usize) -> String {
    let mut all = Vec::new();
    for (metric, points) in METRICS.iter().zip(table) {
        let (mut floats, mut histograms) = (Vec::new(), Vec::new());
        for (step, point) in points.iter().enumerate().take(last + 1).skip(first) {
            let Some((is_float, value)) = point else { continue };
            let ms = -1_500 + step as i64 * STEP_MS;
            let time = match ms % 1000 {
                0 => format!("{}", ms / 1000),
                _ => format!("{}{}.500", if ms < 0 { "-" } else { "" }, (ms / 1000).abs()),
            };
            match is_float {
                true => floats.push(format!("[{time},\"{value}.5e-07\"]")),
                false => histograms.push(format!(
                    "[{time},{{\"count\":\"{value}\",\"sum\":\"1\",\"buckets\":[[3,\"-1\",\"1\",\"2\"],[0,\"1\",\"2\",\"3\"]]}}]"
                )),
            }
        }
        let list = |name: &str, points: &[String]| match points {
            [] => String::new(),
            _ => format!(",\"{name}\":[{}]", points.join(",")),
        };
        if !floats.is_empty() || !histograms.is_empty() {
            let lists = list("values", &floats) + &list("histograms", &histograms);
            all.push(format!("{{\"metric\":{metric}{lists}}}"));
        }
    }
    format!("\"resultType\":\"matrix\",\"result\":[{}]", all.join(","))
}

fn results(bytes_max: u64) -> Results {
    Results::new(bytes_max, &MemoryPool::new(64 << 20), &Arc::default())
}

fn read(results: &Results, steps: Steps, text: &str) -> Option<Answer> {
    let mut reader = results.reader(steps);
    reader.read(text.as_bytes())?;
    reader.finish()
}

fn answer_of(results: &Results, table: &Table, first: usize, last: usize) -> Answer {
    let steps = steps(first as i64, last as i64);
    read(results, steps, &written(table, first, last)).expect("an answer that is understood")
}

fn text_of(answer: &Answer, steps: Steps, part: usize) -> String {
    let mut writer = answer.write(steps);
    let mut out = Vec::new();
    loop {
        let bytes = writer.next_part(part);
        if bytes.is_empty() {
            return String::from_utf8(out).expect("text");
        }
        out.extend(bytes);
    }
}

proptest! {
    #[test]
    fn pieces_are_written_as_the_whole(
        table in tables(),
        cuts in (0..8_usize, 8..16_usize, 16..24_usize),
        asked in (0..24_usize, 0..24_usize),
        part in 1..400_usize,
    ) {
        let results = results(1 << 20);
        let (one, two, end) = cuts;
        let pieces = [
            answer_of(&results, &table, 0, one),
            answer_of(&results, &table, one.saturating_sub(1), two),
            answer_of(&results, &table, two + 1, end),
        ];
        let middle = steps(one as i64 + 1, two as i64);
        let used = [(&pieces[0], pieces[0].steps), (&pieces[1], middle), (&pieces[2], pieces[2].steps)];
        let used: Vec<_> = used.into_iter().filter(|(_, it)| it.first_ms <= it.last_ms).collect();
        let joined = results.join(&used).expect("it fits");
        prop_assert_eq!(joined.steps, steps(0, end as i64));
        let (first, last) = (asked.0.min(asked.1).min(end), asked.0.max(asked.1).min(end));
        let found = text_of(&joined, steps(first as i64, last as i64), part);
        prop_assert_eq!(&found, &written(&table, first, last));
        // Checks the test's own format.
        let json: Result<Value, _> = serde_json::from_str(&format!("{{{found}}}"));
        prop_assert!(json.is_ok());
    }

    /// Joins answers whose parts are cut between any two series.
    #[test]
    fn answers_are_joined_as_they_come(
        table in tables(),
        cuts in (0..23_usize, 0..23_usize),
        lengths in prop::collection::vec(1..4_usize, 12),
        part in 1..400_usize,
    ) {
        let (one, two) = (cuts.0.min(cuts.1), cuts.0.max(cuts.1));
        let mut ranges = vec![(0, one), (one + 1, two), (two + 1, 23)];
        ranges.retain(|(first, last)| first <= last);
        let mut lengths = lengths.into_iter().cycle();
        let pieces = ranges.into_iter().map(|(first, last)| {
            let text = written(&table, first, last);
            // Cut behind each series but the last; the comma belongs to the next one.
            let ends = text.match_indices(",{\"metric\"").map(|(at, _)| at);
            let ends: Vec<usize> =
                ends.step_by(lengths.next().unwrap_or(1)).chain([text.len()]).collect();
            let mut at = 0;
            let mut parts = ends.into_iter().map(move |end| {
                let part = text.as_bytes()[at..end].to_vec();
                at = end;
                part
            });
            let first = parts.next().unwrap_or_default();
            let rest: Source<'static> = Box::new(move || Ok(parts.next().unwrap_or_default()));
            (first, rest)
        });
        let mut joined = Joined::new(pieces);
        let mut found = Vec::new();
        loop {
            let bytes = joined.next_part(part).expect("they fit");
            if bytes.is_empty() {
                break;
            }
            found.extend(bytes);
        }
        prop_assert_eq!(String::from_utf8(found).expect("text"), written(&table, 0, 23));
    }

    /// Refuses incomplete answers, other text, and other steps.
    #[test]
    fn other_texts_are_not_kept(table in tables(), at in any::<prop::sample::Index>()) {
        let results = results(1 << 20);
        let all = steps(0, 23);
        let text = written(&table, 0, 23);
        let cut = at.index(text.len());
        if text.is_char_boundary(cut) {
            prop_assert!(read(&results, all, &text[..cut]).is_none());
            let longer = format!("{}]{}", &text[..cut], &text[cut..]);
            let found = read(&results, all, &longer);
            // The added bracket may be part of a string.
            prop_assert!(found.is_none_or(|found| text_of(&found, all, 1) == longer));
        }
        // Refuses steps of another phase, and points outside of the range.
        if table.iter().flatten().any(Option::is_some) {
            let late = Steps { first_ms: all.first_ms + 1, ..all };
            prop_assert!(read(&results, late, &text).is_none());
        }
    }
}

/// Refuses to join answers that are incomplete or out of order.
#[test]
fn what_does_not_fit_is_not_joined() {
    let text = written(&full(), 0, 23);
    let join = |first: &str| {
        let nothing = || -> Source<'static> { Box::new(|| Ok(Vec::new())) };
        let other = text.clone().into_bytes();
        let mut joined = Joined::new([(first.as_bytes().to_vec(), nothing()), (other, nothing())]);
        joined.next_part(usize::MAX).is_ok()
    };
    assert!(join(&text));
    for cut in (1..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        assert!(!join(&text[..cut]), "{}", &text[..cut]);
    }
    let (metric, other) = (METRICS[1], METRICS[2]);
    assert!(join(&text.replacen(metric, "{\"a\":\"a\"}", 1)));
    assert!(!join(&text.replacen(metric, other, 1)));
    assert!(!join(&text.replacen("\"resultType\"", "\"result\"", 1)));
}

#[test]
fn series_out_of_order_are_not_kept() {
    let results = results(1 << 20);
    let of = |metrics: [&str; 2]| {
        let series = metrics.map(|it| format!("{{\"metric\":{it},\"values\":[[0,\"1\"]]}}"));
        let text = format!("\"resultType\":\"matrix\",\"result\":[{}]", series.join(","));
        read(&results, steps(0, 23), &text).is_some()
    };
    assert!(of([METRICS[0], METRICS[1]]));
    assert!(!of([METRICS[1], METRICS[0]]));
    assert!(!of([METRICS[1], METRICS[1]]));
}

fn key(text: &str) -> Key {
    Key {
        text: text.to_owned(),
        step_ms: STEP_MS,
        phase_ms: 0,
        lookback_ms: 1,
        subquery_step_ms: 60_000,
        samples_max: 0,
        features: QueryFeatures::default(),
    }
}

fn full() -> Table {
    vec![vec![Some((true, 7)); 24]; METRICS.len()]
}

#[test]
fn steps_are_known_until_an_older_sample_is_stored() {
    let results = results(1 << 20);
    let all = steps(0, 23);
    let known = |results: &Results| {
        let known = results.known(&key("a"), all);
        known.found.map(|(_, right)| right)
    };
    let keep = |moment| {
        let answer = Arc::new(answer_of(&results, &full(), 0, 23));
        results.keep(key("a"), moment, answer, 24);
    };
    assert_eq!(known(&results), None);
    let before = results.known(&key("a"), all).moment;
    results.ledger.stored(steps(20, 20).first_ms);
    keep(before);
    // Stored after the evaluation began, so the sample may be missing in the answer.
    assert_eq!(known(&results), Some(steps(0, 19)));
    results.ledger.stored(steps(10, 10).first_ms + 1);
    assert_eq!(known(&results), Some(steps(0, 10)));
    results.ledger.stored(i64::MIN);
    assert_eq!(known(&results), None);

    keep(results.known(&key("a"), all).moment);
    assert_eq!(known(&results), Some(all));
    assert!(results.known(&key("b"), all).found.is_none());
    assert!(results.known(&key("a"), steps(24, 30)).found.is_none());
    let before = results.known(&key("a"), all).moment;
    results.ledger.changed();
    assert_eq!(known(&results), None);
    // An answer evaluated before a deletion may contain deleted samples.
    keep(before);
    assert_eq!(known(&results), None);
}

#[test]
fn the_memory_is_bounded() {
    let results = results(64 << 10);
    let all = steps(0, 23);
    let moment = results.known(&key("0"), all).moment;
    let bytes = |results: &Results| lock(&results.answers).bytes;
    for number in 0..500 {
        let answer = Arc::new(answer_of(&results, &full(), 0, 23));
        results.keep(key(&number.to_string()), moment, answer, 24);
        assert!(bytes(&results) <= 64 << 10, "{}", bytes(&results));
        // The first answer is used each time, so it is never evicted.
        assert!(results.known(&key("0"), all).found.is_some(), "{number}");
    }
    assert!(bytes(&results) > 48 << 10, "{}", bytes(&results));
    assert!(results.known(&key("499"), all).found.is_some());
    assert!(results.known(&key("1"), all).found.is_none());
    let kept = lock(&results.answers).by_key.len();
    let mut text = MetricsText::default();
    results.show(&mut text);
    let text = text.finish();
    let evicted = format!("tidepool_query_cache_evictions_total {}\n", 500 - kept);
    assert!(text.contains(&evicted), "{text}");
    assert!(text.contains(&format!("tidepool_query_cache_entries {kept}\n")), "{text}");
    // The cache takes its memory from the pool of reads, and gives it back.
    assert!(results.pool.used_bytes() > 32 << 10, "{}", results.pool.used_bytes());
    assert_eq!(results.pool.used_bytes(), results.shared_bytes());
    results.ledger.changed();
    assert_eq!((bytes(&results), results.pool.used_bytes()), (0, 0));

    // An answer is not cached if it is too large, or if reads have no memory left.
    let long = json!({ "a": "x".repeat(20 << 10) }).to_string();
    let text = format!(
        "\"resultType\":\"matrix\",\"result\":[{{\"metric\":{long},\"values\":[[0,\"1\"]]}}]"
    );
    assert!(read(&results, all, &text).is_none());
    let mut others = results.pool.share();
    assert!(others.grow_to(results.pool.bytes_max()));
    assert!(read(&results, all, &written(&full(), 0, 23)).is_none());
    assert!(!Results::new(0, &results.pool, &results.ledger).are_kept());
}

fn note(text: &str) -> tidepool_runtime::Annotation {
    tidepool_runtime::Annotation { is_warning: false, text: text.to_owned() }
}

#[test]
fn notes_are_those_of_all_pieces_or_the_answer_is_not_known() {
    let results = results(1 << 20);
    let table: Table = vec![vec![Some((true, 1)); 24]; METRICS.len()];
    let piece = |first: usize, last: usize, texts: &[&str]| {
        let answer = answer_of(&results, &table, first, last);
        let notes = texts.iter().map(|text| note(text)).collect();
        let notes = Notes::new(notes, answer.steps).expect("few");
        answer.with_notes(notes).expect("room")
    };
    let of = |answer: &Answer| -> Vec<String> {
        answer.notes().all().iter().map(|note| note.text.clone()).collect()
    };
    let join =
        |old: &Answer, used: Steps, new: &Answer| results.join(&[(old, used), (new, new.steps)]);
    let (old, same, other, none) =
        (piece(0, 9, &["a"]), piece(10, 11, &["a"]), piece(10, 11, &["b"]), piece(10, 11, &[]));
    let rest = steps(3, 9);
    let joined = join(&old, rest, &same).expect("the same notes");
    assert_eq!(of(&joined), ["a"]);
    assert!(joined.bytes() > join(&piece(0, 9, &[]), rest, &none).expect("no notes").bytes());
    assert!(join(&old, rest, &other).is_none());
    assert!(join(&old, rest, &none).is_none());
    // It is unknown which steps the annotations belong to.
    assert!(results.join(&[(&old, rest)]).is_none());
    assert!(old.notes().are_of(steps(0, 12)) && !old.notes().are_of(rest));
    // The new piece has all annotations, whichever steps are requested beside it.
    assert!(joined.notes().are_of(steps(5, 11)) && !joined.notes().are_of(steps(3, 10)));
    let many: Vec<_> = (0..11).map(|number| note(&number.to_string())).collect();
    assert!(Notes::new(many, rest).is_none());
}

#[test]
fn what_has_changing_notes_is_not_kept_any_more() {
    let results = results(1 << 20);
    let table: Table = vec![vec![Some((true, 1)); 24]; METRICS.len()];
    let keep = |texts: &[&str]| {
        let answer = answer_of(&results, &table, 0, 9);
        let notes = Notes::new(texts.iter().map(|text| note(text)).collect(), answer.steps);
        let answer = answer.with_notes(notes.expect("few")).expect("room");
        results.keep(key("a"), results.ledger.moment(), Arc::new(answer), 10);
        results.known(&key("a"), steps(0, 9)).found.is_some()
    };
    assert!(keep(&["x"]));
    results.forget_unsteady(&key("a"));
    assert!(results.known(&key("a"), steps(0, 9)).found.is_none());
    assert!(!keep(&["x"]));
    assert!(keep(&[]));
    for number in 0..UNSTEADY_MAX {
        results.forget_unsteady(&key(&number.to_string()));
    }
    assert!(keep(&["x"]));
}
