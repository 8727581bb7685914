//! Blocks of others that end later than the log's samples begin.

use super::*;
use crate::block::{BlockBuilder, BlockDesc, BlockMetaParams, SymbolCollector};
use crate::chunk::XorAppender;
use crate::storage::Blocks as _;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A block of one sample that covers `0..1000`, merged of blocks of these ranges.
fn put_block(blocks: &MemoryBlocks, hint: Option<&str>, parents: &[(i64, i64)]) -> TestResult {
    let labels = Labels::from_sorted([(LABEL_NAME, "in_block"), ("job", "test")]);
    let mut symbols = SymbolCollector::new(1);
    symbols.add(&labels);
    let mut appender = XorAppender::new();
    appender.append(50, 0.5);
    let mut builder = BlockBuilder::new(blocks.create(1)?, symbols)?;
    builder.add_series(&labels, &[appender.to_chunk().ok_or("a chunk")?])?;
    let parent = |(min_time_ms, max_time_ms): &(i64, i64)| {
        let (min_time_ms, max_time_ms) = (*min_time_ms, *max_time_ms);
        BlockDesc { ulid: "01DXXFZDYD1MQW6079WK0K6EDQ".to_owned(), min_time_ms, max_time_ms }
    };
    builder.finish(BlockMetaParams {
        min_time_ms: 0,
        max_time_ms: 1000,
        level: 1 + u32::from(!parents.is_empty()),
        parents: parents.iter().map(parent).collect(),
        hints: hint.map(str::to_owned).into_iter().collect(),
        ..BlockMetaParams::default()
    })?;
    Ok(())
}

/// Upstream makes such blocks while only the log has the in-order samples of the same time.
#[test]
fn blocks_of_out_of_order_samples_or_of_some_series_do_not_replace_the_log() -> TestResult {
    for (hint, is_kept) in [
        (Some("from-out-of-order"), true),
        (Some("from-stale-series"), true),
        (Some("from-selected-series"), true),
        (Some("something-else"), false),
        (None, false),
    ] {
        let mut node = Node::new();
        node.append("in_log", 100, 1.0f64.to_bits());
        put_block(&node.blocks, hint, &[])?;
        node.restart();
        let all = node.select(Vec::new(), TimeRange::ALL);
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let wanted: &[&str] = if is_kept { &["in_block", "in_log"] } else { &["in_block"] };
        assert_eq!(names, wanted, "{hint:?}");
    }
    Ok(())
}

/// Prometheus loses the hint when it merges two blocks of out-of-order samples.
#[test]
fn merged_blocks_replace_the_log_only_if_their_newest_parent_stands_alone() -> TestResult {
    let cases: [(&[(i64, i64)], bool); 5] = [
        (&[(0, 1000), (0, 1000)], true),
        (&[(0, 500), (500, 1000), (700, 800)], true),
        (&[(0, 1000), (900, 950)], true),
        (&[(0, 500), (500, 1000)], false),
        (&[(0, 500), (0, 500), (500, 1000)], false),
    ];
    for (parents, is_kept) in cases {
        let mut node = Node::new();
        node.append("in_log", 100, 1.0f64.to_bits());
        put_block(&node.blocks, None, parents)?;
        node.restart();
        let all = node.select(Vec::new(), TimeRange::ALL);
        assert_eq!(all.contains_key("in_log"), is_kept, "{parents:?}");
    }
    Ok(())
}
