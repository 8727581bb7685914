//! The page for browsers, or, in a program that was built without npm, the list of endpoints in its
//! place. `js/ui` tests the page in a browser.

use tidepool_tests::cli::run_command;
use tidepool_tests::guarded::{Node, curl};
use tidepool_tests::http::Client;

const HTML: [&str; 2] = ["--header", "Accept: text/html,*/*;q=0.8"];

#[test]
fn browsers_get_the_page_and_others_the_list() {
    let server = Node::open_to_all().start();
    let get = |path: &str| Client::default().get(&format!("{}{path}", server.url()));
    let list = get("/").expect("an answer");
    assert_eq!(list.header("content-type"), Some("text/plain; charset=utf-8"));
    let (status, head) = curl(&server, "http", "/", &HTML);
    assert_eq!(status, 200);
    assert!(head.contains("vary: accept"), "{head}");
    if list.text().contains("There is no page for browsers in this program: ") {
        assert!(head.contains("content-type: text/plain"), "{head}");
        return;
    }
    assert!(head.contains("content-type: text/html; charset=utf-8"), "{head}");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-cache",
    ] {
        assert!(head.contains(header), "{header} is missing:\n{head}");
    }

    // The document is requested again by its tag; the files that it names are not.
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag");
    let known = [HTML[0], HTML[1], "--header", &format!("If-None-Match: {etag}")];
    assert_eq!(curl(&server, "http", "/", &known).0, 304);
    let page = std::process::Command::new("curl")
        .args(["--silent", "--compressed"])
        .args(HTML)
        .arg(format!("{}/", server.url()))
        .output()
        .expect("curl is installed");
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    // Script, style sheet and licences, and the modules that the script needs.
    let files: Vec<&str> = page.split('"').filter(|part| part.starts_with("ui/")).collect();
    assert!(files.len() >= 3, "{page}");
    for path in files {
        let (status, head) = curl(&server, "http", &format!("/{path}"), &["--compressed"]);
        assert_eq!(status, 200, "{path}");
        assert!(head.contains("immutable") && head.contains("content-encoding: gzip"), "{head}");
        let (_, head) = curl(&server, "http", &format!("/{path}"), &[]);
        assert!(!head.contains("content-encoding"), "{head}");
    }
    assert_eq!(curl(&server, "http", "/ui/app.js", &[]).0, 404);
}

#[test]
fn links_to_queries_lead_to_the_page() {
    let server = Node::open_to_all().start();
    for path in ["/graph", "/query"] {
        let path = format!("{path}?g0.expr=up%20%3D%3D%200&g0.tab=1");
        let (status, head) = curl(&server, "http", &path, &[]);
        assert_eq!(status, 302);
        let expected = "location: ./?g0.expr=up%20%3d%3d%200&g0.tab=1#/query";
        assert!(head.contains(expected), "{head}");
    }
}

#[test]
fn the_program_writes_a_viewer_or_says_why_it_has_none() {
    let written = run_command("viewer", &[], "");
    if written.code != Some(0) {
        assert_eq!(written.stdout, "");
        assert!(written.stderr.contains("there is no viewer in this program: "), "{written:?}");
        return;
    }
    let text = written.stdout;
    assert!(text.starts_with("<!doctype html>") && text.ends_with("</html>\n"));
    for part in [
        "<title>tidepool viewer</title>",
        "connect-src 'none'",
        "data-module=\"engine.core.wasm\"",
        "id=\"worker\"",
    ] {
        assert!(text.contains(part), "{part} is missing");
    }
}
