//! Bodies of all kinds: whole, cut off, slow, compressed, of the wrong type, and with edge cases
//! for parsers.

use super::exposer::{OPENMETRICS, Page, Scripts, TEXT};
use super::{Pair, configuration, job};

#[test]
fn a_script_of_pages_is_scraped_as_prometheus_scrapes_it() {
    let pages = vec![
        Page::text(
            "# TYPE a counter\na 1\nb{x=\"1\"} 2\nb{x=\"2\"} 3\nh_bucket{le=\"1\"} 1\n\
             h_bucket{le=\"+Inf\"} 2\n",
        ),
        Page::text("a 2\nb{x=\"2\"} 3\n"),
        Page::text("a 0\nb{x=\"1\"} 2.5\nb{x=\"2\"} 3\n"),
        Page::text("a 7\n").status("500 Internal Server Error"),
        Page::text("a 4\nb{x=\"1\"} NaN\nb{x=\"2\"} +Inf\n"),
        Page::text("a 5\nb{x=\"1\"} 1\n").cut(),
        Page::text("a 6\n"),
        Page::new("text/html", "a 7\n"),
        Page::text("a 8\na 9\nb{x=\"1\"} 1\nb{x=\"1\"} 2\n"),
        Page::openmetrics("# TYPE a counter\na_total 1 # {t=\"1\"} 0.5\n# EOF\n"),
        Page::openmetrics("# TYPE a counter\na_total 2\n"),
        Page::text("c{job=\"mine\",instance=\"i\",exported_job=\"e\"} 1\na 11\n"),
        Page::text("a 12\nb{x=\"1\" 3\n"),
        Page::text(""),
        Page::text("le_h_bucket{le=\"10\"} 1\nq{quantile=\"1\"} 2\na 14\n"),
        Page::text("a{x=\"\",y=\"1\"} 1\n{\"a.b\",z=\"1\"} 3\n"),
        Page::text("a 16 \n# comment\n\na{x=\"1\"}  2 \n"),
        Page::text("last 1\n"),
    ];
    let scrapes = pages.len();
    let jobs = [job("script", "")];
    let pair = Pair::start(&configuration(&jobs), |_| Scripts::from([("/script", pages.clone())]));
    pair.assert_same(1, scrapes, 2.0);
}

#[test]
fn bodies_arrive_as_they_arrive_at_prometheus() {
    let many: String = (0..900).map(|n| format!("many{{number=\"{n}\"}} {n}\n")).collect();
    let whole = usize::MAX;
    let encoded = vec![
        Page::text("a 1\nb 1\n").gzip(whole),
        Page::text(&many).gzip(whole),
        Page::text(&many).gzip(600),
        Page::text("a 4\n").chunked(),
        Page::text(&many).gzip(whole).chunked(),
        // Content that differs from the header.
        Page::text("a 6\n").header("Content-Encoding: gzip"),
        Page::text("a 7\n").gzip(whole).cut(),
        Page::text("a 8\n").header("Content-Encoding: identity"),
        Page::text("").gzip(whole),
        // Headers of servers written by hand; a media type in place of an encoding.
        Page::text("a 10\n").header("X-Spaced : 1"),
        Page::text("a 11\n").header("X-Folded: 1\r\n 2"),
        Page::text("a 12\n").header("Content-Encoding: text/plain; version=0.0.4"),
        Page::text("a 13\n").header("Content-Encoding: UTF-8"),
        Page::text("a 14\n"),
    ];
    let slow = vec![
        Page::text("a 1\nb 1\n"),
        Page::text("a 2\nb 2\n").stalls(),
        Page::text("a 3\nb 3\n"),
        Page::text("a 4\n").silent(),
        Page::text("a 5\n").gzip(whole).stalls(),
        Page::text("a 6\n"),
    ];
    let scrapes = encoded.len();
    let jobs = [job("encoded", ""), job("slow", "scrape_timeout: 1s")];
    let pair = Pair::start(&configuration(&jobs), |_| {
        Scripts::from([("/encoded", encoded.clone()), ("/slow", slow.clone())])
    });
    pair.assert_same(2, scrapes, 2.0);
}

#[test]
fn content_types_count_as_for_prometheus() {
    let body = "# TYPE a counter\na 1\n";
    let open = "# TYPE a counter\na_total 1\n# EOF\n";
    let typed = vec![
        Page::text(body),
        Page::text(body).without_type(),
        Page::new("text/plain", body),
        Page::new("text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8", body),
        Page::new("text/plain; version=9", body),
        Page::new("application/openmetrics-text", open),
        Page::new("application/openmetrics-text; version=0.0.1", open),
        Page::new("application/openmetrics-text; version=7.0.0", open),
        Page::new("application/json", "{}"),
        Page::new("text/plain; charset", body),
        Page::new(" TEXT/PLAIN ; Version=0.0.4", body),
        Page::new("", body),
        Page::text(body).header("Content-Type: text/html"),
    ];
    let odd = vec![
        Page::openmetrics("# TYPE u unknown\nu 1\n# EOF\nv 1\n"),
        Page::openmetrics("# TYPE u_seconds gauge\n# UNIT u_seconds seconds\nu_seconds 1e3\n# EOF"),
        Page::text("a{x=\"1\",x=\"2\"} 1\n"),
        Page::text("a{__name__=\"b\"} 1\n"),
        Page::text("{\"quoted name\",x=\"1\"} 1\nñ 1\n"),
        Page::text("# a comment\n#\n# HELP\n# TYPE x y\na 1\n"),
        Page::text("a 0x10\nb 1e400\nc -Inf\nd nan\ne 1_000\n"),
        Page::text("a 0x1p4\n"),
        Page::text("a{x=\"\\n\\\\\\\"\"} 1\nb{x=\"\\t\"} 1\n"),
        Page::text("a{x=\"1\",} 1\nb{ y = \"2\" } 2\n"),
        Page::new(TEXT, b"a{x=\"\xff\"} 1\n".as_slice()),
        Page::new(OPENMETRICS, "a 1\n# EOF\n"),
        Page::text("a{x=\"1\"} 1\n"),
        Page::text("a 1\n{x=\"1\"} 1\nb 1\n"),
        Page::text("a 1\nb{x=1} 1\nc 1\n"),
        Page::openmetrics("a 1\n{x=\"1\"} 1\n# EOF\n"),
        Page::text("a{x=\"1\"} 1\n"),
    ];
    let scrapes = odd.len();
    let jobs = [
        job("typed", ""),
        job("fallback", "fallback_scrape_protocol: PrometheusText0.0.4"),
        job("fallback_open", "fallback_scrape_protocol: OpenMetricsText1.0.0"),
        job("odd", ""),
        job("legacy", "metric_name_validation_scheme: legacy"),
        job(
            "escaped",
            "metric_name_escaping_scheme: underscores\nscrape_protocols: [PrometheusText1.0.0]",
        ),
        job("one_protocol", "scrape_protocols: [OpenMetricsText0.0.1]\nenable_compression: false"),
    ];
    let pair = Pair::start(&configuration(&jobs), |_| {
        let mut scripts = Scripts::new();
        for path in ["/typed", "/fallback", "/fallback_open"] {
            scripts.insert(path, typed.clone());
        }
        for path in ["/odd", "/legacy", "/escaped", "/one_protocol"] {
            scripts.insert(path, odd.clone());
        }
        scripts
    });
    pair.assert_same(jobs.len(), scrapes, 2.0);
}
