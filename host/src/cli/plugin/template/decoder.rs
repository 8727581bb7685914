//! Makes samples of bodies of `POST /api/v1/push/NAME`: here, lines of `metric value`.

use tidepool_plugin::BatchBuilder;
use tidepool_plugin::decoder::{Decoded, Guest, Refusal, Request};

struct Plugin;

impl Guest for Plugin {
    fn configure(_config: String) -> Result<(), String> {
        Ok(())
    }

    fn decode(request: Request) -> Result<Decoded, Refusal> {
        let text = std::str::from_utf8(&request.body)
            .map_err(|error| Refusal::Malformed(format!("the body is not UTF-8: {error}")))?;
        let mut batch = BatchBuilder::new();
        let (mut refused, mut reasons) = (0, Vec::new());
        for (number, line) in text.lines().enumerate() {
            let parsed = line.split_once(' ').and_then(|(name, value)| {
                Some((name, value.trim().parse::<f64>().ok()?))
            });
            match parsed {
                Some((name, value)) => {
                    let series = batch.series([("__name__", name)]);
                    batch.sample(series, request.received_ms, value);
                }
                // Good lines are stored beside wrong ones.
                None => {
                    refused += 1;
                    reasons.push(format!("line {}: `metric value` is wanted", number + 1));
                }
            }
        }
        Ok(Decoded { batch: batch.finish(), refused, reasons })
    }
}

tidepool_plugin::export_decoder!(Plugin);
