//! Selections compared with a plain filter over all series.

use super::*;
use crate::model::{MatchOp, Matcher, MatcherSpec};
use proptest::prelude::*;

/// Few names and values, so that matchers meet; one label with many values.
pub(crate) fn any_series() -> impl Strategy<Value = Vec<SeriesSamples>> {
    let labels = (0..4u32, 0..4u32, 0..200u32, 0..3u32);
    prop::collection::btree_set(labels, 1..150).prop_map(|all| {
        let series = |(a, b, many, metric): (u32, u32, u32, u32)| {
            let text = |n: u32| if n == 0 { String::new() } else { format!("v{n}") };
            let (a, b, many, metric) = (text(a), text(b), text(many), format!("metric_{metric}"));
            let pairs = [
                ("a", a.as_str()),
                ("b", b.as_str()),
                ("many", many.as_str()),
                ("__name__", metric.as_str()),
            ];
            (Labels::from_pairs(pairs).unwrap_or_default(), vec![sample(1, 1.0)])
        };
        let mut all: Vec<_> = all.into_iter().map(series).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    })
}

pub(crate) fn any_matcher() -> impl Strategy<Value = MatcherSpec> {
    let name = prop::sample::select(vec!["a", "b", "many", "__name__", "absent", ""]);
    let op = prop::sample::select(vec![
        MatchOp::Equal,
        MatchOp::NotEqual,
        MatchOp::Regex,
        MatchOp::NotRegex,
    ]);
    let value = prop_oneof![
        Just(String::new()),
        prop::sample::select(vec!["v1", "v2", "v77", "metric_1", "nothing"])
            .prop_map(str::to_owned),
        prop::sample::select(vec![
            ".*",
            ".+",
            "v1|v2|v77",
            "|v1",
            "v1.*",
            "v1.+",
            "(?:v1|v2|v10).*",
            "v1.*|v1[0-9]",
            "x|",
            "x|v1.*|",
            "v10[0-9]|v7+",
            ".*1",
            "v[0-9]+|",
            "metric_[01]",
            "v(3|5)?"
        ])
        .prop_map(str::to_owned),
    ];
    (name, op, value).prop_map(|(name, op, value)| MatcherSpec { name: name.to_owned(), op, value })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn selections_agree_with_a_plain_filter(
        series in any_series(),
        specs in prop::collection::vec(any_matcher(), 0..4),
    ) {
        let blocks = MemoryBlocks::default();
        let meta = write(&blocks, &series).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let block = BlockReader::open(&blocks, &meta.ulid).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let matchers: Vec<Matcher> = specs.iter().filter_map(|spec| Matcher::new(spec).ok()).collect();
        prop_assert_eq!(matchers.len(), specs.len());
        let refs = block.select(&matchers).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let selected: Result<Vec<Labels>, _> = refs.iter().map(|r| block.series_labels(*r)).collect();
        let selected = selected.map_err(|e| TestCaseError::fail(e.to_string()))?;
        let is_selected = |labels: &&Labels| matchers.iter().all(|m| m.matches(labels.get(m.name())));
        let expected: Vec<Labels> = series.iter().map(|(labels, _)| labels).filter(is_selected).cloned().collect();
        prop_assert_eq!(selected, expected);
    }
}
