//! Webhooks and heartbeats against a server that says what it was sent.

use super::heartbeat::Heartbeat;
use super::webhook::Webhook;
use super::*;
use crate::config::NotifySection;
use crate::notification::tests::{alert, notification};
use std::sync::atomic::{AtomicBool, Ordering};
use tidepool_lifecycle::shutdown::Shutdown;
use tidepool_settings::yaml;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A server that gives each request the next answer, and the last one to all others.
struct Server {
    address: String,
    requests: mpsc::UnboundedReceiver<String>,
}

async fn server(answers: &[&str]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, requests) = mpsc::unbounded_channel();
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    tokio::spawn(async move {
        let mut answers = answers.iter();
        let mut answer = answers.next();
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = read_request(&mut stream).await;
            if sender.send(request).is_err() {
                return;
            }
            let text = answer.map(String::as_str).unwrap_or_default();
            let _ = stream.write_all(text.as_bytes()).await;
            if text.contains("endless") {
                // Each piece arrives, and the answer does not end.
                tokio::spawn(async move { while stream.write_all(&[b'x'; 1000]).await.is_ok() {} });
            } else if text.is_empty() || text.contains("Content-Length: 99") {
                tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
            }
            answer = answers.next().or(answer);
        }
    });
    Server { address, requests }
}

/// Reads a head and as many bytes as it says.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a length")) {
                return text;
            }
        }
        if stream.read_buf(&mut bytes).await.expect("bytes") == 0 {
            return text;
        }
    }
}

fn receiver(text: &str) -> ReceiverConfig {
    let node = yaml::load(&format!("receivers:\n- name: phone\n{text}")).expect("YAML");
    let section = NotifySection::read(&node).expect(text);
    section.receivers.into_iter().next().expect("a receiver")
}

fn webhook(address: &str, more: &str) -> Webhook {
    let text = format!("  webhook:\n    url: http://{address}/hook/hunter2hunter2\n{more}");
    match receiver(&text).kind {
        ReceiverKind::Webhook(webhook) => Webhook::open(&webhook).expect("a webhook"),
        other => panic!("{other:?}"),
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nqueued";

fn page(name: &str) -> crate::notification::NotifiedAlert {
    alert(&[("alertname", "Page"), ("instance", name)], &[("summary", "line 1\nline 2 ü")])
}

#[tokio::test]
async fn the_body_is_alertmanagers_message() {
    let mut server = server(&[OK]).await;
    let notification = notification(vec![page("a")]);
    let answered = webhook(&server.address, "").deliver(&notification).await;
    assert_eq!(answered, Ok(Answered { summary: "200 OK: queued".into(), alerts: 1 }));
    let request = server.requests.recv().await.expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /hook/hunter2hunter2 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert_eq!(body.as_bytes(), notification.excerpt(0).json());
}

#[tokio::test]
async fn templates_make_headers_and_body() {
    let mut server = server(&[OK]).await;
    let more = "    method: PUT\n    headers:\n      X-Title: '{{ .CommonAnnotations.summary }}'\n      \
                X-Long: '{{ printf \"%5000s\" \"ü\" }}x{{ printf \"%09000d\" 1 }}'\n    \
                body: '{{ range .Alerts }}{{ .Labels.instance }} {{ end }}'\n    max_alerts: 2\n    \
                basic_auth: {username: u, password: p}\n";
    let alerts = ["a", "b", "c"].map(page).to_vec();
    let answered = webhook(&server.address, more).deliver(&notification(alerts)).await;
    assert!(answered.is_ok(), "{answered:?}");
    let request = server.requests.recv().await.expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("PUT "), "{head}");
    // A break of the line would be a header of its own.
    assert!(head.contains("x-title: line 1 line 2 ü\r\n"), "{head}");
    assert!(head.contains("content-type: text/plain; charset=utf-8\r\n"), "{head}");
    assert!(head.contains("authorization: Basic dTpw"), "{head}");
    let long = head.lines().find_map(|line| line.strip_prefix("x-long: ")).expect("a header");
    assert!(long.len() <= webhook::HEADER_BYTES_MAX, "{}", long.len());
    assert_eq!(body, "a b ");
}

#[tokio::test]
async fn a_content_type_is_that_of_the_body_or_the_configuration() {
    let mut server = server(&[OK]).await;
    for (more, expected) in [
        ("    body: '{\"text\": {{ toJson .Status }}}'\n", "content-type: application/json"),
        ("    body: '{\"text\": {{ .Status }}}'\n", "content-type: text/plain; charset=utf-8"),
        ("    headers: {Content-Type: text/x}\n", "content-type: text/x"),
    ] {
        let notification = notification(vec![page("a")]);
        let answered = webhook(&server.address, more).deliver(&notification).await;
        assert!(answered.is_ok(), "{more}");
        let request = server.requests.recv().await.expect("a request");
        let types = request.lines().filter(|line| line.starts_with("content-type"));
        assert_eq!(types.collect::<Vec<_>>(), [expected]);
    }
}

#[tokio::test]
async fn an_answer_says_who_is_held_up() {
    let again = |what: &str, seconds: Option<u64>| {
        let retry_after = seconds.map(Duration::from_secs);
        DeliveryError::Failed { what: what.into(), retry_after }
    };
    for (answer, expected) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", Ok("204 No Content")),
        ("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", Ok("201 Created")),
        (
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 38\r\n\r\nno <b>\n such /hook/hunter2hunter2 here",
            Err(DeliveryError::Refused {
                what: "400 Bad Request: no <b> such <secret> here".into(),
            }),
        ),
        (
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            Err(DeliveryError::Refused { what: "401 Unauthorized".into() }),
        ),
        (
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
            Err(again("429 Too Many Requests", Some(7))),
        ),
        (
            "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
            Err(again("408 Request Timeout", None)),
        ),
        (
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 9999\r\nContent-Length: 1\r\n\r\nx",
            Err(again("503 Service Unavailable: x", Some(300))),
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/hunter2\r\nContent-Length: 0\r\n\r\n",
            Err(again(
                "302 Found: redirects are not followed; name the receiver's own URL, or set \
                 follow_redirects",
                None,
            )),
        ),
    ] {
        let server = server(&[answer]).await;
        let notification = notification(vec![page("a")]);
        let found = webhook(&server.address, "").deliver(&notification).await;
        assert_eq!(found.map(|answered| answered.summary), expected.map(str::to_owned), "{answer}");
    }
    let errors = [
        (DeliveryError::Refused { what: "a".into() }, true),
        (DeliveryError::TooLarge { bytes_max: 1 }, true),
        (again("a", None), false),
        (DeliveryError::Timeout(Duration::from_secs(1)), false),
    ];
    for (error, is_refusal) in errors {
        assert_eq!(error.is_refusal(), is_refusal, "{error}");
    }
}

#[tokio::test]
async fn a_delivery_ends_whatever_the_server_does() {
    let notification = notification(vec![page("a")]);
    let timeout = "    timeout: 300ms\n";
    // Nothing comes.
    let silent = server(&[""]).await;
    let found = webhook(&silent.address, timeout).deliver(&notification).await;
    assert_eq!(found, Err(DeliveryError::Timeout(Duration::from_millis(300))));
    // The status counts, however the text goes on.
    let head = "HTTP/1.1 200 OK\r\nX: endless\r\nContent-Length: 99999999\r\n\r\n";
    for (answer, text) in [
        (head, "x".repeat(ANSWER_BYTES_MAX - "200 OK: ".len())),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nbegin", "begin".to_owned()),
    ] {
        let server = server(&[answer]).await;
        let found = webhook(&server.address, timeout).deliver(&notification).await;
        assert_eq!(found, Ok(Answered { summary: format!("200 OK: {text}"), alerts: 1 }));
    }
    // Nothing listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let error = webhook(&address, "").deliver(&notification).await.expect_err("no server");
    assert!(!error.is_refusal() && !error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_flood_of_alerts_is_truncated() {
    let mut server = server(&[OK]).await;
    let long = "x".repeat(100_000);
    let flood: Vec<_> =
        (0..64).map(|_| alert(&[("alertname", "A")], &[("summary", long.as_str())])).collect();
    let notification = notification(flood);
    let answered = webhook(&server.address, "").deliver(&notification).await;
    assert!(answered.is_ok(), "{answered:?}");
    let request = server.requests.recv().await.expect("a request");
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    let message: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert!(body.len() <= BODY_BYTES_MAX, "{}", body.len());
    assert_eq!(message["alerts"].as_array().map(Vec::len), Some(8));
    assert_eq!(message["truncatedAlerts"], 56);
    // So are those of a template, which would otherwise fail each time.
    let more =
        "    body: '{{ range .Alerts }}{{ .Annotations.summary }}{{ end }}{{ len .Alerts }}'\n";
    assert!(webhook(&server.address, more).deliver(&notification).await.is_ok());
    let request = server.requests.recv().await.expect("a request");
    assert!(request.ends_with("xx8"), "{}", &request[request.len() - 20..]);
}

#[tokio::test]
async fn what_no_template_can_make_is_refused() {
    let server = server(&[OK]).await;
    let notification = notification(vec![page("a")]);
    for (more, said) in [
        (
            "    body: '{{ .Nothing }}'\n",
            "body cannot be made: template: :1:3: executing \"\" at <.Nothing>: can't evaluate \
             field Nothing in type *template.Data; correct the template in the configuration",
        ),
        ("    body: '{{ range 100000000 }}{{ end }}'\n", "body cannot be made: "),
        ("    headers: {X-A: '{{ index .Alerts 5 }}'}\n", "headers.x-a cannot be made: "),
    ] {
        let error = webhook(&server.address, more).deliver(&notification).await;
        let error = error.expect_err(more);
        assert!(error.is_refusal() && error.to_string().starts_with(said), "{error}");
    }
    let huge = "x".repeat(BODY_BYTES_MAX);
    let huge = crate::notification::tests::notification(vec![alert(&[], &[("a", huge.as_str())])]);
    let error = webhook(&server.address, "").deliver(&huge).await;
    assert_eq!(error, Err(DeliveryError::TooLarge { bytes_max: BODY_BYTES_MAX }));
}

#[tokio::test]
async fn a_file_of_a_url_is_read_each_time() {
    let mut server = server(&[OK]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("url");
    let config = receiver(&format!("  webhook: {{url_file: '{}'}}\n", path.display()));
    let opened = open(&config).expect("a receiver").expect("no heartbeat");
    let notification = notification(vec![page("a")]);
    let error = opened.deliver(&notification).await.expect_err("no file");
    assert!(!error.is_refusal() && error.to_string().starts_with("url_file "), "{error}");
    for target in ["/one", "/two"] {
        std::fs::write(&path, format!("http://{}{target}\n", server.address)).expect("a file");
        assert!(opened.deliver(&notification).await.is_ok());
        let request = server.requests.recv().await.expect("a request");
        assert!(request.starts_with(&format!("POST {target} HTTP/1.1\r\n")), "{request}");
    }
}

#[tokio::test]
async fn heartbeats_stop_with_health_and_come_again() {
    let failure =
        "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let answers = [OK, failure, OK];
    let mut server = server(&answers).await;
    let text = format!("  heartbeat: {{url: 'http://{}/beat', interval: 10ms}}\n", server.address);
    let config = receiver(&text);
    assert!(open(&config).expect("settings").is_none());
    let ReceiverKind::Heartbeat(config) = &config.kind else { panic!("no heartbeat") };
    let is_well = Arc::new(AtomicBool::new(true));
    let well = is_well.clone();
    let health = move || match well.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err("the disk is full".to_owned()),
    };
    let heartbeat = Heartbeat::open("watchdog", config, Arc::new(health)).expect("a heartbeat");
    let figures = heartbeat.figures();
    let (trigger, shutdown) = Shutdown::manual();
    let task = tokio::spawn(heartbeat.run(shutdown));
    for _ in 0..3 {
        let request = server.requests.recv().await.expect("a request");
        assert!(request.starts_with("GET /beat HTTP/1.1\r\n"), "{request}");
    }
    is_well.store(false, Ordering::Relaxed);
    while figures.skipped_total.load(Ordering::Relaxed) < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(figures.failed_total.load(Ordering::Relaxed), 1);
    assert!(figures.succeeded_at_ms.load(Ordering::Relaxed) > 0);
    // None of the requests that were sent before is left, and none is sent now.
    while server.requests.try_recv().is_ok() {}
    let sent = figures.sent_total.load(Ordering::Relaxed);
    let skipped = figures.skipped_total.load(Ordering::Relaxed);
    while figures.skipped_total.load(Ordering::Relaxed) < skipped + 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(figures.sent_total.load(Ordering::Relaxed), sent);
    assert!(server.requests.try_recv().is_err());
    is_well.store(true, Ordering::Relaxed);
    assert!(server.requests.recv().await.is_some());
    trigger.stop();
    task.await.expect("an end");
}
