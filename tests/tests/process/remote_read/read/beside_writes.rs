//! Heavy reads during ingestion: every write is acknowledged, no sample is lost, and no read
//! returns a wrong answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tidepool_tests::clock::now_ms;
use tidepool_tests::remote_write::Version;
use tidepool_tests::sender::{Sender, assert_holds, read_all};
use tidepool_tests::series::{Dataset, Shape, Texture};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait::chain;

const READERS: usize = 20;

#[test]
fn writes_go_on_beside_twenty_reads() {
    // Blocks are cut meanwhile, too.
    let store = Store::start_with(|config| config.block_duration("10m")).expect("tidepool starts");
    let (scrapes, interval_ms) = (240, 15_000);
    let start_ms = now_ms() - scrapes as i64 * interval_ms;
    let texture = Texture::Rough;
    let shape = Shape { seed: 51, series: 2_000, scrapes, start_ms, interval_ms, texture };
    let data = Dataset::generate(shape);
    let sender = Sender::new(&data, Version::V2);
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..READERS {
            let (store, stop, reads) = (&store, &stop, &reads);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    // Both kinds are checked strictly: order, chunk times, checksums.
                    let read = match number % 2 {
                        0 => store.reader().samples(&[read_all()]),
                        _ => store.reader().streamed(&[read_all()]),
                    };
                    read.unwrap_or_else(|error| panic!("{}", chain(&error)));
                    reads.fetch_add(1, Relaxed);
                }
            });
        }
        // Panics at any answer but 204.
        let sent =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sender.send_all(&store)));
        stop.store(true, Relaxed);
        if let Err(panic) = sent {
            std::panic::resume_unwind(panic);
        }
    });
    println!("{} reads beside {} requests", reads.load(Relaxed), sender.request_count());
    assert_eq!(sender.acknowledged(), sender.request_count());
    assert!(reads.load(Relaxed) > 0, "no read came to its end");
    assert_holds(&store, &data);
}
