//! Limits of SAMPLES answers, which apply before the first byte; later failures; and the memory of
//! an answer.

use super::{dataset, status, store_with};
use std::io::{Seek, SeekFrom, Write};
use tidepool_tests::busy::busy_store;
use tidepool_tests::data_dir;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::proto::prometheus::read_request::ResponseType::{Samples, StreamedXorChunks};
use tidepool_tests::remote_read::{ReadError, Reader, everything, matcher, query};
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{hours_of_data, read_all, send_all, wait_for_blocks};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::chain;

#[test]
fn samples_are_limited_for_each_query() {
    let data = dataset(31, 50, 40);
    for (limit, taken) in [(2_000, true), (1_999, false), (1, false), (0, true)] {
        let store = store_with(&[&format!("--read-sample-limit={limit}")], &data);
        let (found, text) = status(&store.reader(), &[read_all(), read_all()], Samples);
        assert_eq!(found, if taken { 200 } else { 400 }, "{limit}: {text}");
        assert!(taken || text.contains(&format!("{limit}")), "{text}");
        // Streams have no such limit.
        assert_eq!(status(&store.reader(), &[read_all()], StreamedXorChunks).0, 200);
    }
}

/// Small results and large ones: small ones are kept, large ones are counted before they are made.
#[test]
fn bytes_are_limited_for_the_whole_answer() {
    let data = dataset(32, 600, 60);
    let store = store_with(&[], &data);
    let one = query(i64::MIN, i64::MAX, vec![matcher(Type::Eq, "__name__", "node_load5")]);
    for queries in [vec![one.clone()], vec![read_all()], vec![one, read_all(), read_all()]] {
        let message = store.reader().samples_message(&queries).expect("samples");
        let bytes = prost::Message::encoded_len(&message);
        // Zeros are written here, and left out there.
        let bytes = bytes + bytes / 2;
        for (limit, expected) in [(bytes, 200), (bytes / 4, 400), (1, 400)] {
            let flag = format!("--read-response-limit={limit}");
            let store = store_with(&[&flag], &data);
            let (found, text) = status(&store.reader(), &queries, Samples);
            assert_eq!(found, expected, "{limit} of {bytes}: {text}");
            assert!(expected == 200 || text.contains("--read-response-limit"), "{text}");
        }
    }
}

/// Damage found during an answer: a stream that has begun is broken off, so that no client takes it
/// for complete; a SAMPLES answer, which is read twice, has not begun yet.
#[test]
fn a_late_error_ends_the_connection() {
    let data = hours_of_data(33);
    let hour_ms = 3_600_000;
    let store = Store::start_with(|config| config.block_duration("1h")).expect("tidepool starts");
    send_all(&store, Version::V2, &data);
    let blocks = wait_for_blocks(&store, &data, hour_ms);
    let last = blocks.last().expect("a block");
    let chunks = store.config.data_dir().join(&last.ulid).join("chunks/000001");
    let mut file = std::fs::File::options().write(true).open(chunks).expect("a file of chunks");
    // The last chunk's checksum.
    file.seek(SeekFrom::End(-4)).expect("it is longer");
    file.write_all(&[0x55; 4]).expect("it can be written");

    let streamed = store.reader().streamed(&[read_all()]);
    match streamed {
        Err(ReadError::Status { status, body }) => panic!("too early: {status}: {body}"),
        Err(error) => println!("as it should: {}", chain(&error)),
        Ok(_) => panic!("a damaged answer was taken for whole"),
    }
    let (found, text) = status(&store.reader(), &[read_all()], Samples);
    assert_eq!(found, 500, "{text}");
    assert!(text.contains(&last.ulid), "it names the block: {text}");
}

/// The engine and the host report the same about a damaged chunk. Requests that do not need the
/// chunk are answered.
#[test]
fn a_damaged_chunk_is_named() {
    let (store, data) = busy_store(36);
    let dir = store.config.data_dir().to_owned();
    store.server.terminate().expect("tidepool ends");
    let blocks = data_dir::blocks(&dir).expect("blocks");
    let damaged = blocks.first().expect("a block");
    // The first chunk begins after a header of eight bytes.
    data_dir::flip(&damaged.path.join("chunks/000001"), 8 + 30).expect("a file of chunks");
    let server = store.config.start().expect("tidepool starts");
    let reader = Reader::new(&server.url());
    let named = format!(
        "{}/chunks/000001 is damaged at byte 8: the chunk's checksum does not match",
        damaged.ulid
    );
    for kind in [Samples, StreamedXorChunks] {
        let (found, text) = status(&reader, &[read_all()], kind);
        assert_eq!(found, 500, "{kind:?}: {text}");
        assert!(text.contains(&named), "{kind:?}: {text}");
    }
    let behind = everything(damaged.end_ms, i64::MAX);
    let streamed = reader.streamed(std::slice::from_ref(&behind)).expect("a stream");
    let samples: usize = streamed[0].iter().map(|series| series.samples.len()).sum();
    assert!(samples > 0);
    assert_eq!(reader.samples(&[behind]).expect("samples"), streamed);
    let (first_ms, last_ms) = data.time_range_ms().expect("samples");
    assert!(first_ms < damaged.end_ms && damaged.end_ms < last_ms);
}

/// An answer of ninety million bytes before compression.
#[test]
fn answers_of_both_kinds_take_little_memory() {
    let data = dataset(34, 1_000, 5_000);
    let store = store_with(&[], &data);
    let before = store.server.usage().expect("it runs").memory_bytes;
    for kind in ["samples", "streamed"] {
        store.server.reset_peak_memory().expect("it can be");
        let bytes = match kind {
            "samples" => store.reader().drain_samples(&[read_all()]),
            _ => store.reader().drain_streamed(&[read_all()]),
        };
        let bytes = bytes.unwrap_or_else(|error| panic!("{}", chain(&error)));
        let peak = store.server.usage().expect("it runs").peak_memory_bytes;
        let extra = peak.saturating_sub(before);
        println!("{kind}: {bytes} bytes answered, {extra} bytes of memory more");
        assert!(extra < 32 << 20, "{kind}: {extra} bytes more");
    }
}
