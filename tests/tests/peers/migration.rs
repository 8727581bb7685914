//! A node moves from Prometheus to tidepool and back repeatedly, on one data directory: the next
//! server answers with everything that was ever acknowledged, including the head, and continues.

use std::path::Path;
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::data_dir;
use tidepool_tests::node::{End, KILL, Node, Owner, PROMETHEUS_2, PROMETHEUS_3, STOP, TIDEPOOL};
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::sender::{recent_data, uncut_ms_max};
use tidepool_tests::series::{Dataset, Labels, Row, Sample, Shape, Texture};
use tidepool_tests::upstream_race::again_after_race;
use tidepool_tests::wait;

/// Makes rough data of some hours that end now.
fn hours(seed: u64, hours: usize, series: usize) -> Dataset {
    let (scrapes, interval_ms) = (hours * 240, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    Dataset::generate(Shape { seed, series, scrapes, start_ms, interval_ms, texture })
}

/// Lets the owners work in turn, each on its part of the data. Every series is absent in one part
/// of four. With out-of-order samples, every fifth scrape of 25 minutes comes after the others,
/// backwards.
fn take_turns(node: &mut Node, data: &Dataset, out_of_order: bool, turns: &[(Owner, End)]) {
    let scrapes: Vec<Vec<Row<'_>>> = data.scrapes().collect();
    let per_turn = scrapes.len().div_ceil(turns.len());
    for (turn, (scrapes, (owner, end))) in scrapes.chunks(per_turn).zip(turns).enumerate() {
        let server = node.start(*owner);
        node.assert_holds(&server, &format!("turn {turn}, {owner:?} has taken over"));
        let is_here = |row: &&Row<'_>| {
            let number = data.series.iter().position(|s| s.labels == *row.labels);
            number.is_none_or(|number| (number + turn) % 4 != 0)
        };
        let is_out_of_order = |scrape: usize| out_of_order && scrape % 5 == 3;
        for scrapes in scrapes.chunks(100) {
            let in_order = (0..scrapes.len()).filter(|scrape| !is_out_of_order(*scrape));
            let held_back = (0..scrapes.len()).rev().filter(|scrape| is_out_of_order(*scrape));
            for scrape in in_order.chain(held_back) {
                let rows: Vec<Row<'_>> = scrapes[scrape].iter().filter(is_here).copied().collect();
                node.send(&server, &rows);
            }
        }
        if *owner == TIDEPOOL {
            wait_for_blocks(node, &server);
        }
        node.assert_holds(&server, &format!("turn {turn}, {owner:?} has worked"));
        end(server).expect("it ends");
    }
}

/// Waits until blocks have all acknowledged samples, except those of the last one and a half.
fn wait_for_blocks(node: &Node, server: &Server) {
    let last_ms = node.acknowledged().iter().filter_map(|s| s.samples.last());
    let last_ms = last_ms.map(|sample| sample.timestamp_ms).max().expect("there are samples");
    let is_cut = || {
        let blocks = data_dir::blocks(&node.data_dir()).ok()?;
        let end_ms = blocks.iter().map(|block| block.end_ms).max();
        let first_ms = node.acknowledged().iter().filter_map(|s| s.samples.first());
        let begin_ms = end_ms.or_else(|| first_ms.map(|sample| sample.timestamp_ms).min())?;
        (last_ms - begin_ms <= uncut_ms_max(node.block_ms())).then_some(())
    };
    wait::until("blocks", Duration::from_secs(90), is_cut)
        .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", server.log()));
}

/// Asserts that no file is left that Prometheus could take for the current head.
fn assert_no_caches(data_dir: &Path) {
    let names: Vec<String> = std::fs::read_dir(data_dir)
        .expect("the directory is there")
        .map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("chunk"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

/// Minutes of data, all of it in the log.
#[test]
fn the_head_moves_there_and_back() {
    for (seed, prometheus) in [(101, PROMETHEUS_2), (102, PROMETHEUS_3)] {
        let data = recent_data(seed, 120, 900);
        let mut node = Node::default();
        let turns = [
            (prometheus, STOP),
            (TIDEPOOL, STOP),
            (prometheus, KILL),
            (TIDEPOOL, KILL),
            (prometheus, STOP),
            (TIDEPOOL, KILL),
        ];
        take_turns(&mut node, &data, false, &turns);
        assert_no_caches(&node.data_dir());
        assert!(data_dir::blocks(&node.data_dir()).expect("blocks").is_empty());
        for release in Release::ALL {
            node.assert_promtool_agrees(release);
        }
        let server = node.start(prometheus);
        node.assert_holds(&server, "at the end");
    }
}

/// Moves hours of data with out-of-order samples: blocks, checkpoints, and both logs.
fn move_everything(seed: u64, turns: &[(Owner, End)]) {
    let data = hours(seed, 6, 60);
    let mut node = Node::default().out_of_order_window("40m").blocks(5, 45);
    if turns[0].0 == TIDEPOOL {
        node = node.prometheus_records();
    }
    take_turns(&mut node, &data, true, turns);
    let blocks = data_dir::blocks(&node.data_dir()).expect("blocks");
    assert!(blocks.len() >= 5, "{blocks:?}");
    let server = node.start(TIDEPOOL);
    node.assert_holds(&server, "at the end");
    STOP(server).expect("it ends");
    assert_no_caches(&node.data_dir());
    for release in Release::ALL {
        node.assert_promtool_agrees(release);
        let server = node.start(Owner::Prometheus(release));
        node.assert_holds(&server, &format!("{release:?} at the very end"));
        STOP(server).expect("it ends");
    }
}

#[test]
fn blocks_and_both_logs_move_from_prometheus_2() {
    again_after_race(|| {
        let turns = [
            (PROMETHEUS_2, STOP),
            (TIDEPOOL, STOP),
            (PROMETHEUS_2, KILL),
            (TIDEPOOL, KILL),
            (PROMETHEUS_2, KILL),
            (TIDEPOOL, STOP),
        ];
        move_everything(103, &turns);
    });
}

#[test]
fn blocks_and_both_logs_move_from_prometheus_3() {
    again_after_race(|| {
        let turns = [
            (PROMETHEUS_3, KILL),
            (TIDEPOOL, KILL),
            (PROMETHEUS_3, STOP),
            (TIDEPOOL, KILL),
            (PROMETHEUS_3, KILL),
            (TIDEPOOL, STOP),
        ];
        move_everything(104, &turns);
    });
}

/// A node that was tidepool's from the first day, and an upgrade of Prometheus on the way.
#[test]
fn blocks_and_both_logs_move_from_tidepool() {
    again_after_race(|| {
        let turns = [
            (TIDEPOOL, STOP),
            (PROMETHEUS_2, STOP),
            (TIDEPOOL, KILL),
            (PROMETHEUS_3, KILL),
            (TIDEPOOL, STOP),
            (PROMETHEUS_3, STOP),
        ];
        move_everything(105, &turns);
    });
}

/// Prometheus merges a block of out-of-order samples of the head's own time with the blocks before
/// it, without a mark in the merged block. Started again, both releases take its end for the start
/// of their head, and lose the in-order samples there (2.42 and 3.15; Prometheus' issue 18379 is
/// about such losses). The log still has them.
#[test]
fn in_order_samples_beside_merged_out_of_order_ones_move() {
    again_after_race(|| {
        for release in Release::ALL {
            let mut node = Node::default().out_of_order_window("40m").blocks(5, 45);
            let server = node.start(Owner::Prometheus(release));
            merge_within_the_head(&mut node, &server);
            node.assert_holds(&server, &format!("{release:?} has merged"));
            KILL(server).expect("it ends");
            for end in [KILL, STOP] {
                let server = node.start(TIDEPOOL);
                node.assert_holds(&server, &format!("tidepool has taken over from {release:?}"));
                end(server).expect("it ends");
            }
        }
    });
}

/// Prometheus records a deletion in the block, and nowhere else: the log's samples of the block's
/// time are dropped at its next start. tidepool keeps them, without the deleted ones.
#[test]
fn what_prometheus_deleted_stays_deleted() {
    again_after_race(|| {
        for release in Release::ALL {
            let mut node = Node::default()
                .out_of_order_window("40m")
                .blocks(5, 45)
                .prometheus_flag("--web.enable-admin-api")
                .tidepool_flag("--enable-admin-api");
            let server = node.start(Owner::Prometheus(release));
            merge_within_the_head(&mut node, &server);
            let first_ms = node.acknowledged()[0].samples[0].timestamp_ms;
            node.delete(&server, "db", first_ms..=first_ms + 3_600_000);
            node.delete(&server, "api", first_ms + 300_000..=first_ms + 800_000);
            node.assert_holds(&server, &format!("{release:?} has deleted"));
            KILL(server).expect("it ends");
            for (turn, end) in [KILL, STOP, KILL, KILL].into_iter().enumerate() {
                let server = node.start(TIDEPOOL);
                node.assert_holds(&server, &format!("turn {turn} after {release:?}"));
                // Later samples are kept, and so are later deletions here.
                let labels = Labels::from_pairs([("__name__", "up"), ("job", "db")]);
                let timestamp_ms = first_ms + 30_000 * (1 + turn as i64);
                let samples = [Sample { timestamp_ms, value: turn as f64 }];
                if turn == 2 {
                    node.delete(&server, "db", first_ms..=first_ms + 45_000);
                }
                node.send(&server, &[Row { labels: &labels, samples: &samples }]);
                end(server).expect("it ends");
            }
        }
    });
}

/// In-order seconds, from and to; out-of-order seconds; the resulting blocks, from and to in block
/// durations.
type Step = (i64, i64, &'static [i64], &'static [(i64, i64)]);

/// Sends samples such that blocks of out-of-order samples are cut from the last ten minutes, and
/// the first of them merged with those before, while the head is not cut, because it spans less
/// than 7.5 minutes.
fn merge_within_the_head(node: &mut Node, server: &Server) {
    let start_ms = now_ms() / (3 * node.block_ms()) * 3 * node.block_ms() - 6 * node.block_ms();
    let labels = ["api", "db"].map(|job| Labels::from_pairs([("__name__", "up"), ("job", job)]));
    let steps: [Step; 3] = [
        (0, 450, &[], &[]),
        (450, 750, &[], &[(0, 1)]),
        (750, 1050, &[667, 967], &[(0, 3), (3, 4)]),
    ];
    for (from_s, to_s, out_of_order_s, ranges) in steps {
        let in_order_s = (from_s..to_s).step_by(15);
        let sample = |s: i64| Sample { timestamp_ms: start_ms + s * 1000, value: s as f64 };
        let samples: Vec<Sample> =
            in_order_s.chain(out_of_order_s.iter().copied()).map(sample).collect();
        let in_order = &samples[..samples.len() - out_of_order_s.len()];
        let rows = [(&labels[0], &samples[..]), (&labels[1], in_order)];
        node.send(server, &rows.map(|(labels, samples)| Row { labels, samples }));
        let wanted = ranges.iter().map(|(from, to)| (from * node.block_ms(), to * node.block_ms()));
        let wanted: Vec<(i64, i64)> = wanted.collect();
        let are_there = || {
            let blocks = data_dir::blocks(&node.data_dir()).ok()?;
            let found = blocks.iter().map(|b| (b.min_ms - start_ms, b.end_ms - start_ms));
            found.eq(wanted.iter().copied()).then_some(())
        };
        wait::until("blocks", Duration::from_secs(90), are_there)
            .unwrap_or_else(|e| panic!("{e}; the log says:\n{}", server.log()));
    }
}
