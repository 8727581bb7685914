//! Valid messages that demand too much of the head.

use super::{assert_serves, figure, start};
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::{Version, compress};
use tidepool_tests::series::Series;
use tidepool_tests::tidepool::Config;

/// Large requests with no content, and with too much of one kind.
#[test]
fn hostile_messages_leave_the_head_as_it_was() {
    let store = start(&[]);
    assert_serves(&store, "up");
    let head_bytes = || figure(&store, "tidepool_head_memory_bytes");
    let before = head_bytes();
    let field = |tag: u8, content: &[u8]| {
        let mut bytes = vec![tag];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    };
    let body_bytes = 30 << 20;
    let mib_30 = |part: &[u8]| part.repeat(body_bytes / part.len());
    let nested = (0..2_000).fold(vec![], |inner, _| field(0x3a, &inner));
    for (what, version, message, status) in [
        ("empty series", Version::V1, mib_30(&[0x0a, 0]), 400),
        ("empty series", Version::V2, mib_30(&[0x2a, 0]), 400),
        ("empty labels", Version::V1, field(0x0a, &mib_30(&[0x0a, 0])), 400),
        ("empty samples", Version::V2, field(0x2a, &mib_30(&[0x12, 0])), 400),
        ("empty histograms", Version::V2, field(0x2a, &mib_30(&[0x1a, 0])), 400),
        ("empty symbols", Version::V2, mib_30(&[0x22, 0]), 400),
        ("no symbols", Version::V2, field(0x2a, &[0x0a, 2, 1, 2]), 400),
        ("unknown fields, nested", Version::V1, nested.repeat(4), 204),
    ] {
        let body = compress(&message);
        let response = store.writer().send_body(version, &body).expect("an answer");
        assert_eq!(response.status, status, "{what}: {}", response.text());
        assert!(response.body.len() < 16 << 10, "{what}: {} bytes", response.body.len());
        // The instance keeps the memory of the largest body, and of one decoded body: at most 256
        // MiB, and a quarter of the head's memory.
        let grown = (head_bytes() - before) as usize;
        let most = match what {
            "empty series" => body_bytes + (2 << 20),
            _ => body_bytes + (258 << 20),
        };
        assert!(grown <= most, "{what}: the head grew by {grown} bytes");
    }
    assert_eq!(figure(&store, "prometheus_tsdb_head_series"), 1.0);
    let crashes = figure(&store, "tidepool_instance_crashes_total{role=\"head\"}");
    assert_eq!(crashes, 0.0, "{}", store.server.log());
    let first = head_bytes();
    for _ in 0..3 {
        let body = compress(&mib_30(&[0x22, 0]));
        let response = store.writer().send_body(Version::V2, &body).expect("an answer");
        assert_eq!(response.status, 400);
    }
    assert_eq!(head_bytes(), first, "the same again takes nothing more");
    assert_serves(&store, "up");
}

#[test]
fn label_limits_are_flags() {
    let flags = ["--max-label-names-per-series=3", "--max-label-value-length=20"];
    let store = start(&flags);
    let long = "v".repeat(21);
    let time_ms = now_ms();
    let bad = Series::new(&[("__name__", "long"), ("a", &long)], &[(time_ms, 1.0)]);
    let many = [("__name__", "many"), ("a", "1"), ("b", "2"), ("c", "3")];
    let many = Series::new(&many, &[(time_ms, 1.0)]);
    let good = Series::new(&[("__name__", "good"), ("a", "1"), ("b", "2")], &[(time_ms, 1.0)]);
    for version in Version::ALL {
        let rows = [bad.row(), good.row(), many.row()];
        let response = store.writer().send(version, &rows).expect("an answer");
        assert_eq!(response.status, 400);
        let text = response.text();
        assert!(text.contains("value of label \"a\" has 21 bytes; at most 20"), "{text}");
        assert!(text.contains("the label set has 4 labels; at most 3"), "{text}");
    }
    assert_eq!(figure(&store, "prometheus_tsdb_head_series"), 1.0);
}

#[test]
fn limits_that_contradict_each_other_end_the_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(directory.path()).flag("--max-inflight-bytes=10MiB");
    let config = config.flag("--max-request-size=6MiB");
    let error = config.start().expect_err("it cannot work").to_string();
    assert!(error.contains("--max-request-size"), "{error}");
}
