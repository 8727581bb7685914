//! Pushed text is stored as Prometheus 3.15 stores its scrapes of the same text.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::histogram::{ValueSeries, assert_same_values};
use tidepool_tests::http::Client;
use tidepool_tests::peers::Release;
use tidepool_tests::process::Server;
use tidepool_tests::series::Labels;
use tidepool_tests::text_push::{CLASSIC, OPEN_METRICS, all_series, assert_stored, push};
use tidepool_tests::tidepool::Store;
use tidepool_tests::wait;
use tidepool_tests::{otlp, prometheus};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns text with every kind of family, at a time.
fn text(content_type: &str, timestamp_ms: i64) -> String {
    let (requests, time, end) = match content_type {
        OPEN_METRICS => {
            let seconds = format!("{}.{:03}", timestamp_ms / 1000, timestamp_ms % 1000);
            ("requests", seconds, "# UNIT size_bytes bytes\n# EOF\n")
        }
        _ => ("requests_total", timestamp_ms.to_string(), "\n# a remark\n"),
    };
    let mut text = format!(
        "# HELP {requests} Requests \\\\ served,\\nby \u{fc}ber.\n# TYPE {requests} counter\n"
    );
    for (series, value) in [
        ("requests_total{path=\"/\",code=\"200\"}", "1027"),
        ("requests_total{path=\"a\\\\b\\\"c\\nd\",code=\"\"}", "3e10"),
    ] {
        text += &format!("{series} {value} {time}\n");
    }
    text += "# TYPE temperature gauge\n# HELP temperature How warm.\n";
    for (series, value) in [
        ("temperature{room=\"lab\"}", "-0"),
        ("temperature{room=\"hall\"}", "NaN"),
        ("temperature{room=\"oven\"}", "+Inf"),
        ("temperature{instance=\"own\",job=\"own\"}", "-Inf"),
        ("{\"temperature\",\"the.room\"=\"cellar\"}", "4.9e-324"),
    ] {
        text += &format!("{series} {value} {time}\n");
    }
    text += "# TYPE size_bytes histogram\n# HELP size_bytes How large.\n";
    for (series, value) in [
        ("size_bytes_bucket{le=\"1\"}", "1"),
        ("size_bytes_bucket{le=\"2.5\"}", "3"),
        ("size_bytes_bucket{le=\"+Inf\"}", "4"),
        ("size_bytes_sum", "12.75"),
        ("size_bytes_count", "4"),
    ] {
        text += &format!("{series} {value} {time}\n");
    }
    text += "# TYPE quantiles summary\n";
    for (series, value) in
        [("quantiles{quantile=\"0.5\"}", "0.25"), ("quantiles_sum", "7"), ("quantiles_count", "2")]
    {
        text += &format!("{series} {value} {time}\n");
    }
    text + end
}

/// Serves a text to all clients.
fn serve(content_type: &'static str, text: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let _ = stream.read(&mut [0; 4096]);
            let length = text.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n"
            );
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
        }
    });
    address
}

/// Returns scraped series, without those that a scrape adds.
fn scraped(server: &Server, address: SocketAddr) -> Vec<ValueSeries> {
    let address = address.to_string();
    let added = [("job", "pushed"), ("instance", address.as_str())];
    let mut series = all_series(server);
    series.retain(|series| {
        let name = series.labels.value("__name__");
        name != "up" && !name.starts_with("scrape_")
    });
    for one in &mut series {
        let pairs = one.labels.pairs().iter();
        let pairs = pairs.filter(|(name, value)| !added.contains(&(name.as_str(), value.as_str())));
        one.labels = Labels::from_pairs(pairs.cloned());
    }
    series
}

fn metadata(server: &Server) -> serde_json::Value {
    let url = format!("{}/api/v1/metadata", server.url());
    let response = Client::default().get(&url).expect("an answer");
    let answer: serde_json::Value = serde_json::from_slice(&response.body).expect("it is JSON");
    answer["data"].clone()
}

#[test]
fn what_is_pushed_is_what_prometheus_scrapes() {
    for content_type in [CLASSIC, OPEN_METRICS] {
        let text = text(content_type, now_ms() - 60_000);
        let address = serve(content_type, text.clone());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let prometheus = prometheus::Config::new(Release::V3, directory.path())
            .expect("the directory can be used")
            .scrape_honestly("pushed", address)
            .start()
            .expect("Prometheus starts");
        let store = Store::start().expect("tidepool starts");
        assert_stored(&push(&store.server, "", &[("Content-Type", content_type)], text.as_bytes()));

        let all = || Some(scraped(&prometheus, address)).filter(|series| series.len() > 10);
        let wanted = wait::until("a scrape", TIMEOUT, all).expect("series");
        assert_same_values(content_type, &wanted, &all_series(&store.server));
        assert_eq!(metadata(&store.server), metadata(&prometheus), "{content_type}");

        // Sent again, compressed: this stores nothing new.
        let compressed = otlp::gzip(text.as_bytes()).expect("gzip");
        let headers = [("Content-Type", content_type), ("Content-Encoding", "gzip")];
        assert_stored(&push(&store.server, "", &headers, &compressed));
        assert_same_values(content_type, &wanted, &all_series(&store.server));
    }
}
