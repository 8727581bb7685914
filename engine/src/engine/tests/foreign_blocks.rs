//! Foreign blocks that end later than the log's samples begin.

use super::*;
use crate::block::{BlockBuilder, BlockDesc, BlockMetaParams, BlockReader, SymbolCollector};
use crate::chunk::XorAppender;
use crate::storage::Blocks as _;

type TestResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A block of one sample over `0..1000`, merged of blocks of these ranges.
fn put_block(blocks: &MemoryBlocks, hint: Option<&str>, parents: &[(i64, i64)]) -> TestResult {
    put_block_over(blocks, 0, ("in_block", &[50]), hint, parents)
}

/// The same from this time on, with samples of a named series.
fn put_block_over(
    blocks: &MemoryBlocks,
    min_time_ms: i64,
    (name, times): (&str, &[i64]),
    hint: Option<&str>,
    parents: &[(i64, i64)],
) -> TestResult {
    let labels = Labels::from_sorted([(LABEL_NAME, name), ("job", "test")]);
    let mut symbols = SymbolCollector::new(1);
    symbols.add(&labels);
    let mut appender = XorAppender::new();
    for time_ms in times {
        appender.append(*time_ms, 0.5);
    }
    let mut builder = BlockBuilder::new(blocks.create(1)?, symbols)?;
    builder.add_series(&labels, &[appender.to_chunk().ok_or("a chunk")?])?;
    let parent = |(min_time_ms, max_time_ms): &(i64, i64)| {
        let (min_time_ms, max_time_ms) = (*min_time_ms, *max_time_ms);
        BlockDesc { ulid: "01DXXFZDYD1MQW6079WK0K6EDQ".to_owned(), min_time_ms, max_time_ms }
    };
    builder.finish(BlockMetaParams {
        min_time_ms,
        max_time_ms: min_time_ms + 1000,
        level: 1 + u32::from(!parents.is_empty()),
        parents: parents.iter().map(parent).collect(),
        hints: hint.map(str::to_owned).into_iter().collect(),
        ..BlockMetaParams::default()
    })?;
    Ok(())
}

/// Upstream makes such blocks while only the log has the in-order samples of their time.
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

fn times_of(node: &Node, name: &str) -> Vec<i64> {
    let all = node.select(Vec::new(), TimeRange::ALL);
    all.get(name).map(|samples| samples.keys().copied().collect()).unwrap_or_default()
}

/// Deletes from the first series of the only block, keeping the keys that upstream knows.
fn delete_as_upstream(blocks: &MemoryBlocks, start_ms: i64, end_ms: i64) -> TestResult {
    let ulid = blocks.list()?.remove(0);
    let block = BlockReader::open(blocks, &ulid)?;
    let mut tombstones = block.tombstones().clone();
    let series = block.select(&[])?.remove(0);
    tombstones.add(series, TimeRange { start_ms, end_ms });
    blocks.replace_tombstones(&ulid, &tombstones.encode(), &block.meta().encode()?)?;
    Ok(())
}

const ONE: u64 = 1.0f64.to_bits();

/// Upstream drops its log's samples of such a block's time, so its log has no such deletion.
#[test]
fn what_upstream_deleted_from_blocks_is_deleted_from_the_log() -> TestResult {
    let overlapping: &[(i64, i64)] = &[(0, 1000), (0, 1000)];
    for (hint, parents) in [
        (Some("from-out-of-order"), &[][..]),
        (Some("from-stale-series"), &[]),
        (None, overlapping),
    ] {
        let mut node = Node::with(WITH_OUT_OF_ORDER);
        for time_ms in [100, 200, 300, 400] {
            node.append("m", time_ms, ONE);
            node.append("other", time_ms, ONE);
        }
        put_block_over(&node.blocks, 0, ("m", &[100, 200, 300, 400]), hint, parents)?;
        delete_as_upstream(&node.blocks, 100, 300)?;
        // Upstream took it out of order, after that.
        node.append("m", 250, ONE);
        node.restart();
        assert_eq!(times_of(&node, "m"), [250, 400], "{hint:?}");
        assert_eq!(times_of(&node, "other"), [100, 200, 300, 400], "{hint:?}");

        // What is stored again counts, however often the log is read.
        node.append("m", 200, ONE);
        node.restart();
        node.restart();
        assert_eq!(times_of(&node, "m"), [200, 250, 400], "{hint:?}");

        // So it does after deletions here.
        node.delete("m", 200, 200)?;
        node.append("m", 100, ONE);
        node.append("m", 200, ONE);
        node.restart();
        assert_eq!(times_of(&node, "m"), [100, 200, 250, 400], "{hint:?}");

        // Upstream again.
        delete_as_upstream(&node.blocks, 0, 400)?;
        node.restart();
        assert_eq!(times_of(&node, "m"), [100, 200, 250], "{hint:?}");
    }
    Ok(())
}

#[test]
fn what_upstream_deleted_from_blocks_ends_what_was_saved_of_the_head() -> TestResult {
    let mut node = Node::new();
    node.append("m", 100, ONE);
    put_block_over(&node.blocks, 0, ("m", &[100]), Some("from-out-of-order"), &[])?;
    node.restart();
    let mut saved = node.engine.save_head()?;
    let first = saved.next(u32::MAX);
    let mut unread = Node::open_unread(&node.wal, &node.blocks, node.options);
    unread.load_head(&first)?;
    delete_as_upstream(&node.blocks, 100, 100)?;
    let mut unread = Node::open_unread(&node.wal, &node.blocks, node.options);
    let outdated = unread.load_head(&first);
    assert!(outdated.is_err_and(|error| error.to_string().contains("deleted from blocks")));
    Ok(())
}

/// Rewritten for its deletions, a block of several others would look like one that was cut.
#[test]
fn blocks_that_are_cleaned_do_not_replace_the_log() -> TestResult {
    let mut node = Node::with(WITH_OUT_OF_ORDER);
    for time_ms in [100, 200] {
        node.append("m", time_ms, ONE);
    }
    node.append("in_log", 900, ONE);
    put_block_over(&node.blocks, 0, ("m", &[100, 200]), None, &[(0, 500), (500, 1000)])?;
    // There is a later one that may hold nothing but out-of-order samples.
    put_block_over(&node.blocks, 1000, ("m", &[1100]), Some("from-out-of-order"), &[])?;
    node.restart();
    node.delete("m", 100, 100)?;
    while !node.engine.clean_tombstones(1_000_000, ROOM)?.done {}
    node.restart();
    assert_eq!(times_of(&node, "m"), [200, 1100]);
    assert_eq!(times_of(&node, "in_log"), [900]);
    Ok(())
}
