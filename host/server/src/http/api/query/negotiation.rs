//! Negotiation of the response format (RFC 9110, section 12.5.1).

use hyper::header::{GetAll, HeaderValue};
use tidepool_protocol::prom::media_type::MediaType;
use tidepool_protocol::prom::query::QUERY_CONTENT_TYPE;
use tidepool_runtime::ResultFormat;

/// Media types that JSON satisfies.
const JSON: [&str; 3] = ["application/json", "application/*", "*/*"];

/// Returns the format with the highest weight. With equal weights the first wins; default JSON.
pub fn preferred(accepted: GetAll<'_, HeaderValue>) -> ResultFormat {
    let lists = accepted.iter().filter_map(|value| value.to_str().ok());
    let mut best = (0.0, ResultFormat::Json);
    for item in lists.flat_map(|list| list.split(',')) {
        let Some(kind) = MediaType::parse(item.trim()) else { continue };
        let weight = match kind.values("q").next().map(str::parse::<f64>) {
            None => 1.0,
            Some(Ok(weight)) => weight,
            Some(Err(_)) => continue,
        };
        let format = match kind {
            _ if kind.is(QUERY_CONTENT_TYPE) => ResultFormat::Protobuf,
            _ if JSON.iter().any(|json| kind.is(json)) => ResultFormat::Json,
            _ => continue,
        };
        if weight > best.0 {
            best = (weight, format);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{ACCEPT, HeaderMap, InvalidHeaderValue};

    #[test]
    fn the_greatest_weight_decides() -> Result<(), InvalidHeaderValue> {
        const LONG: &str = QUERY_CONTENT_TYPE;
        for (values, is_message) in [
            (vec![LONG], true),
            (vec!["application/vnd.tidepool.QueryResponse+protobuf; q=0.1"], true),
            (vec!["application/json", LONG], false),
            (vec!["application/json;q=0.5", LONG], true),
            (vec!["*/*"], false),
            (vec!["text/html, */*;q=0.8"], false),
            (vec!["application/x-protobuf"], false),
            (vec!["application/vnd.tidepool.queryresponse+protobuf;q=0, text/plain"], false),
            (vec!["application/vnd.tidepool.queryresponse+protobuf;q=x"], false),
            (vec!["application/vnd.tidepool.queryresponse+protobuf;q=0.9,*/*;q=0.8"], true),
            (vec!["nonsense"], false),
            (vec![], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append(ACCEPT, HeaderValue::from_str(value)?);
            }
            let format = preferred(headers.get_all(ACCEPT));
            assert_eq!(format == ResultFormat::Protobuf, is_message, "{values:?}");
        }
        Ok(())
    }
}
