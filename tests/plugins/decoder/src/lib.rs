//! A decoder that does what the request body tells it to do.

use tidepool_plugin::BatchBuilder;
use tidepool_plugin::decoder::{Decoded, Guest, Refusal, Request};

struct Hostile;

impl Guest for Hostile {
    fn configure(_: String) -> Result<(), String> {
        Ok(())
    }

    fn decode(request: Request) -> Result<Decoded, Refusal> {
        let long = || "one line\nand another ".repeat(1 << 20);
        match request.body.as_slice() {
            b"trap" => panic!("as it was told"),
            b"sleep" => std::thread::sleep(std::time::Duration::from_secs(3600)),
            b"long" => return Err(Refusal::Malformed(long())),
            b"long-reasons" => {
                let batch = BatchBuilder::new().finish();
                return Ok(Decoded { batch, refused: 1, reasons: vec![long()] });
            }
            _ => {}
        }
        let mut batch = BatchBuilder::new();
        let series = batch.series([("__name__", "decoded")]);
        batch.sample(series, request.received_ms, 1.0);
        Ok(Decoded { batch: batch.finish(), refused: 0, reasons: Vec::new() })
    }
}

tidepool_plugin::export_decoder!(Hostile);
